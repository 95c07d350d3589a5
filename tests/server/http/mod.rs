//! Tests of the server at its socket: the built binary in its own folder, and bytes over TCP.

mod crowds;
mod entering;
mod hostile;
mod jobs;
mod rows;
mod starting;
mod support;
mod sync;
