//! The program dies at every place where it can, and is taken up again: nothing that was told is lost, nothing is done twice that cannot be,
//! and the end is that of a run which nothing happened to.
//!
//! The ordinary suite takes samples. All of it: `FLEDGE_CRASH=all cargo test --test crash`; a seed of one's own: `FLEDGE_CRASH_SEED=7`.
#![expect(clippy::disallowed_methods, reason = "tests start the program and ask how much of them to run")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops")]

mod judge;
mod kills;
mod places;
mod scene;
#[path = "../it/support/mod.rs"]
#[expect(dead_code, unused_imports, reason = "what only the other tests need")]
mod support;
mod syscalls;
mod telling;

/// Whether every case is run, and not only a sample.
fn is_whole() -> bool {
    std::env::var("FLEDGE_CRASH").is_ok_and(|how| how == "all")
}
