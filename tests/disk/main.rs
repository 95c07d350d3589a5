//! The store on a disk that loses power. Small histories are really written, by processes under strace; from the system calls come the
//! states in which the files could be found afterwards, by the thousand, each from one seed. Every one must open, and hold a prefix of
//! what was written with all that was acknowledged.
//!
//! `FLEDGE_DISK_STATES=10000 cargo test --release --test disk` looks at more, where strace may trace;
//! `FLEDGE_DISK_SEED=… cargo test --test disk` looks at one again.
#![expect(
    clippy::disallowed_methods,
    reason = "tests start writers under strace and are told how many states to look at"
)]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops")]

mod dice;
mod disk;
mod full;
mod judge;
mod older;
mod power;
mod story;
mod trace;
