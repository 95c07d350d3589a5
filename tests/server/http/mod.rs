//! The server from outside, as whoever reaches its socket meets it: the built binary in a folder of its own, and bytes over TCP.

mod crowds;
mod entering;
mod hostile;
mod jobs;
mod rows;
mod starting;
mod support;
mod sync;
