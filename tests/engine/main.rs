//! What a server drives, from outside: the built binary with a scripted model on loopback, asked by HTTP and killed where it hurts.
//!
//! The ordinary suite takes a part of the crowds. All of them: `FLEDGE_SERVE_LOAD=200 FLEDGE_SERVE_KILLS=20 cargo test --test engine`; a seed
//! of one's own: `FLEDGE_SERVE_SEED=7`.
#![expect(
    clippy::disallowed_methods,
    reason = "tests start the program, read variables and measure how long things take"
)]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops")]

mod asking;
mod crowd;
mod jobs;
mod killed;
mod lists;
mod runs;
mod site;
mod streams;
#[path = "../it/support/mod.rs"]
#[expect(dead_code, unused_imports, reason = "what only the other tests need")]
mod support;
