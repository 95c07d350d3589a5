//! The server from outside, as whoever reaches its socket meets it: the built binary in a folder of its own, and bytes over TCP.
#![expect(clippy::disallowed_methods, reason = "tests start the program, read PATH and wait until a time is over")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops")]

mod crowds;
mod entering;
mod hostile;
mod jobs;
mod rows;
mod starting;
mod support;
mod sync;
