//! Batches: a set of jobs with dependencies, run in parallel within bounds, and their outcomes.
//!
//! ```text
//! plan           tasks × values × repositories → jobs with names and needs    decides
//! job_scheduler  the next job, and how much money it gets                     decides
//! running_jobs   drives the runs of jobs, stops them, reports progress        acts
//! evaluation     the results of models on the same tasks                      decides
//! ```

mod batch_store;
mod budget;
pub mod evaluation;
#[cfg(feature = "cli")]
pub(crate) mod forms;
mod job_scheduler;
mod outcome;
pub mod plan;
mod record;
mod running_jobs;
mod summary;

pub use batch_store::{BatchSelector, BatchStore, BatchStoreError};
pub use job_scheduler::{BatchLimits, BatchScheduler, JobSlot, KnownJob, SchedulerStep};
pub use outcome::{FinishedJob, JobEnding, JobStatus, NotRunReason, RunSummary};
pub use record::{BatchEvent, BatchRecord};
pub use running_jobs::{BatchListener, BatchUpdate, JobRefusal, JobSource, PreparedJob, RunIdentity, run};
#[cfg(feature = "cli")]
pub(crate) use summary::EXIT_CODES_ALONE;
pub use summary::{BATCH_SCHEMA_VERSION, BatchSummary, JobCounts, JobSummary};
