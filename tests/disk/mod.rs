//! The store on a disk that loses power. Processes under strace write small histories. Their system
//! calls give thousands of states in which a crash could leave the files. Every state must open,
//! and must hold all acknowledged writes and a prefix of the others.
//!
//! `FLEDGE_TEST_ALL=1 cargo test --release --test it disk::` checks more states.

mod full;
mod judge;
mod power;
mod states;
mod story;
mod trace;
