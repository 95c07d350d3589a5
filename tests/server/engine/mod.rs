//! Tests of the engine of a server from outside: the built program, a scripted model on loopback,
//! requests over HTTP, and kills.
//!
//! An ordinary run tries smaller crowds. `FLEDGE_TEST_ALL=1 cargo test --test it server::engine`
//! tries them in full.

mod asking;
mod crowd;
mod jobs;
mod killed;
mod lists;
mod requests;
mod resuming;
mod runs;
mod site;
mod streams;
