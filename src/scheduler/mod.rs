//! Scheduled jobs. Each one runs by its schedule, never twice at the same time, with retries for
//! temporary failures. When the server stops, running jobs get a limited time to end.
//!
//! ```text
//! job              a job: its name, schedule and work
//! clock            the time of day
//! shared           all jobs, as they are now
//! job_loop         the loop of one job
//! tasks            tasks with a schedule, and the watcher of their folder
//! builtin_job      the jobs of fledge itself
//! monitors         check-ins, and the health of monitors
//! notifications    reports a changed health
//! scheduler_store  the storage, where it may block
//! data             jobs and monitors, as users see them
//! ```
//!
//! The store records each due time under a unique key before the job begins. So a job begins at
//! most once per due time, even after a crash or a change of the clock. A due time without a run is
//! recorded as missed.

mod builtin_job;
mod clock;
mod data;
mod job;
mod job_loop;
mod monitors;
mod notifications;
mod scheduler_store;
mod shared;
mod tasks;

pub use builtin_job::{BuiltinJob, DELIVERIES, deliveries, memory_expiry, missed_runs};
pub use clock::{SystemClock, WallClock};
pub use data::{CheckInData, JobData, JobRunData, JobState, MonitorData, NewMonitor, NewWebhook, STRIP, ShownJob};
pub use job::{JobContext, JobError, JobKind, ScheduledJob};
pub use monitors::{
    CheckIn, HealthChange, MonitorError, MonitorUpdate, check_in, check_monitor, monitor_of, next_expected, row_of,
};
pub use notifications::{HealthNotifier, sign};
pub use scheduler_store::SchedulerStore;
pub use shared::{Scheduler, SchedulerSettings, SchedulerUpdate};
pub use tasks::{FOLDER, RunOrder, TaskEnd, TaskFinding, TaskSubmitter, scan};

#[cfg(test)]
mod notifications_tests;
#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tasks_tests;
#[cfg(test)]
mod tests;
