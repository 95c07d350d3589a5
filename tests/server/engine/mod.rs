//! The engine of a server from outside: the built program, a scripted model on loopback, requests
//! over HTTP, and kills.
//!
//! An ordinary run takes a part of the crowds; `FLEDGE_TEST_ALL=1 cargo test --test it
//! server::engine` takes all.

mod asking;
mod crowd;
mod jobs;
mod killed;
mod lists;
mod requests;
mod runs;
mod site;
mod streams;
