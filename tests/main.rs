//! The integration tests, built as one test program with a folder for each subject.
//! `tests/README.md` lists the folders.
#![expect(clippy::disallowed_methods, reason = "tests start programs and tasks, read variables and clocks, and wait")]
#![expect(clippy::print_stdout, reason = "tests print what they skip and how much they try")]
#![expect(clippy::unwrap_used, reason = "a test that cannot continue stops")]

#[macro_use]
mod support;

mod architecture;
mod attacks;
mod batch;
mod cli;
mod crash;
mod delivery;
mod disk;
mod faults;
mod gate;
mod lanes;
mod machine;
mod mcp;
mod models;
mod queue;
mod run;
mod sandbox;
mod server;
mod wires;
