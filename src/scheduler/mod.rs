//! Scheduled jobs. Each one runs by its schedule, never twice at the same time, with retries for
//! temporary failures. When the server stops, running jobs get a limited time to end.
//!
//! ```text
//! job        what a job is                        clock      what time it is
//! crew       all of them, as they are now         tender     one of them, from moment to moment
//! tasks      tasks that have a schedule           chore      work of fledge's own
//! monitors   check-ins and looks, written down    telling    who else hears of another health
//! ledger     what is kept, where that may block   data       as it is given out
//! shown      how it is with a job                folder     the folder of tasks, watched
//! ```
//!
//! The store records each due time under a unique key before the job begins. So a job begins at
//! most once per due time, even after a crash or a change of the clock. A due time without a run is
//! recorded as missed.

mod builtin_job;
mod clock;
mod data;
mod folder;
mod job;
mod job_loop;
mod monitors;
mod notifications;
mod scheduler_store;
mod shared;
mod shown;
mod tasks;

pub use builtin_job::{BuiltinJob, DELIVERIES, deliveries, memory_expiry, missed_runs};
pub use clock::{SystemClock, WallClock};
pub use data::{CheckInData, JobData, JobRunData, MonitorData, NewMonitor, NewWebhook, STRIP};
pub use job::{JobContext, JobError, JobKind, ScheduledJob};
pub use monitors::{
    CheckIn, HealthChange, MonitorError, MonitorUpdate, check_in, look, monitor_of, next_expected, row_of,
};
pub use notifications::{HealthNotifier, sign};
pub use scheduler_store::SchedulerStore;
pub use shared::{Scheduler, SchedulerSettings, SchedulerUpdate};
pub use shown::{JobState, ShownJob};
pub use tasks::{FOLDER, RunOrder, TaskEnd, TaskFinding, TaskSubmitter, scan};

#[cfg(test)]
mod notifications_tests;
#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tasks_tests;
#[cfg(test)]
mod tests;
