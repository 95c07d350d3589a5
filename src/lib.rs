//! fledge runs a written task with a language-model agent and does not trust the agent.
//!
//! The work counts only if the project's own checks, frozen before the agent started, pass.
//!
//! The modules by floor; a module imports only from floors below its floor:
//!
//! | floor | decides (pure) | does (world) |
//! |---|---|---|
//! | 8 | | `cli` |
//! | 7b | | [`setup`] |
//! | 7a | | [`config`] |
//! | 6b | | `serve` |
//! | 6a | | [`batch`] · [`scheduler`] · [`sync`] |
//! | 5 | | [`driver`] |
//! | 4 | [`report`] | [`gate`] |
//! | 3d | | [`tool`] |
//! | 3c | | [`provider`] · [`lane_runner`] · [`lane_files`] · [`mcp`] |
//! | 3b | | [`workspace`] · [`store`] |
//! | 3a | [`run`] · [`lane`] · [`spec`] | |
//! | 2 | [`chat`] · [`task`] · [`verdict`] · [`monitor`] | `file_watch` |
//! | 1b | [`queue`] · [`yaml`] · [`schedule`] | [`process`] · [`http`] |
//! | 1a | [`id`] · [`elapsed`] · [`limits`] · [`duration`] · [`error_chain`] · [`pattern`] · [`sandbox_kind`] | [`fail_point`] |
//!
//! Start with [`driver::Agent`] to run a task from a program, or with [`run::Run`] to drive the
//! machine by hand.

pub mod batch;
pub mod chat;
pub mod config;
pub mod driver;
pub mod duration;
pub mod elapsed;
pub mod error_chain;
pub mod fail_point;
pub mod gate;
pub mod http;
pub mod id;
pub mod lane;
pub mod lane_files;
pub mod lane_runner;
pub mod limits;
pub mod mcp;
pub mod monitor;
pub mod pattern;
pub mod process;
pub mod provider;
pub mod queue;
pub mod report;
pub mod run;
pub mod sandbox_kind;
pub mod schedule;
pub mod scheduler;
pub mod setup;
pub mod spec;
pub mod store;
pub mod sync;
pub mod task;
pub mod tool;
pub mod verdict;
pub mod workspace;
pub mod yaml;

#[cfg(feature = "cli")]
pub mod cli;
#[cfg(feature = "cli")]
pub mod file_watch;
#[cfg(feature = "serve")]
pub mod serve;

#[cfg(test)]
pub(crate) mod test_support;

pub use driver::{Agent, DriverSettings, RunError};
pub use run::{AgentEvent, StateName, TaskResult};
pub use task::Task;
