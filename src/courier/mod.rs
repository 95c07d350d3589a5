//! One HTTP request to somebody who is not a model, sent once: bounded in time and size, and with no redirect followed.
