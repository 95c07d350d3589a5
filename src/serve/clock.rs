//! The time of day, for what the server stamps and for what expires.

use jiff::Timestamp;

/// Now.
pub(in crate::serve) fn now() -> Timestamp {
    Timestamp::now()
}
