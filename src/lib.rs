//! fledge runs a written task with a language-model agent and does not believe the agent: the work counts only when the
//! project's own checks, frozen before the agent started, pass.
//!
//! The map, from the words that everything shares up to the command line; a module imports only from floors below its own:
//!
//! | floor | decides (pure) | does (world) |
//! |---|---|---|
//! | 8 | | `cli` |
//! | 7 | | [`config`] |
//! | 6 | | [`batch`] |
//! | 5 | | [`driver`] |
//! | 4 | [`report`] | [`gate`] |
//! | 3c | | [`tool`] |
//! | 3b | | [`provider`] · [`lane_runner`] · [`mcp`] |
//! | 3a | [`run`] · [`lane`] · [`spec`] | |
//! | 2 | [`chat`] · [`task`] · [`verdict`] | [`workspace`] · [`store`] · `watch` |
//! | 1b | [`queue`] · [`yaml`] | [`process`] |
//! | 1a | [`id`] · [`moment`] · [`limits`] · [`duration`] · [`causes`] | [`fail_point`] |
//!
//! Start with [`driver::Agent`] to run a task from a program, or with [`run::Run`] to drive the machine by hand.

pub mod batch;
pub mod causes;
pub mod chat;
pub mod config;
pub mod driver;
pub mod duration;
pub mod fail_point;
pub mod gate;
pub mod id;
pub mod lane;
pub mod lane_runner;
pub mod limits;
pub mod mcp;
pub mod moment;
pub mod process;
pub mod provider;
pub mod queue;
pub mod report;
pub mod run;
pub mod spec;
pub mod store;
pub mod task;
pub mod tool;
pub mod verdict;
pub mod workspace;
pub mod yaml;

#[cfg(feature = "cli")]
pub mod cli;
#[cfg(feature = "cli")]
pub mod watch;

pub use driver::{Agent, RunError, Settings};
pub use run::{AgentEvent, StateName, TaskResult};
pub use task::Task;
