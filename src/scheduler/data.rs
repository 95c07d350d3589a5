//! Public data of jobs and monitors, and requests for new monitors. HTTP and the command line share
//! them.

use super::job::JobKind;
use super::monitors::{next_expected, row_of};
use super::notifications::HealthNotifier;
use crate::http::Address;
use crate::monitor::{LONGEST_RUN, MARGINS, Monitor, Slug, USUAL_MARGIN};
use crate::schedule::Schedule;
use crate::store::{CheckInRow, MonitorRow, Store, StoreError, StoredJobRun};
use jiff::Timestamp;
use ring::rand::{SecureRandom, SystemRandom};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::time::Duration;

/// Check-ins in the strip of a monitor.
pub const STRIP: u32 = 50;
/// The longest name of a monitor, in bytes.
const LONGEST_NAME: usize = 200;

/// A job.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct JobData {
    /// The name of the job.
    pub name: String,
    /// `builtin` or `task`.
    pub kind: &'static str,
    /// The schedule: `every 30m`, or a cron expression; null if the task cannot be read.
    pub schedule: Option<String>,
    /// The time zone of the schedule.
    pub zone: Option<String>,
    /// The next due time, in RFC 3339.
    pub next_at: Option<String>,
    /// The newest run.
    pub last: Option<JobRunData>,
    /// `idle`, `running` or `disabled`.
    pub state: &'static str,
    /// The monitor that receives its check-ins.
    pub monitor: Option<String>,
    /// The reason why it is disabled.
    pub fault: Option<String>,
}

/// A run of a job, or a due time that passed without a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct JobRunData {
    /// The due time, in RFC 3339; null for a run on request.
    pub due_at: Option<String>,
    /// The time when it began, or was found to be missed.
    pub began_at: String,
    /// The time when it ended.
    pub ended_at: Option<String>,
    /// `running`, `ok`, `failed`, `missed`, `skipped` or `interrupted`.
    pub state: String,
    /// The number of tries.
    pub tries: u64,
    /// The number of due times that this row represents, where several were missed.
    pub count: u64,
    /// The error.
    pub error: Option<String>,
    /// The id of the run that it started.
    pub run: Option<String>,
}

impl JobData {
    /// Creates the data of a job, with its newest run.
    pub fn new(shown: ShownJob, last: Option<&StoredJobRun>) -> Self {
        let ShownJob { name, kind, schedule, next, state, monitor, fault } = shown;
        let (schedule, zone) = schedule.unzip();
        let (kind, state, next_at) = (kind.word(), state.word(), next.map(rfc3339));
        Self { name, kind, schedule, zone, next_at, last: last.map(JobRunData::from_run), state, monitor, fault }
    }
}

impl JobRunData {
    /// Converts a stored run.
    pub fn from_run(run: &StoredJobRun) -> Self {
        Self {
            due_at: run.due_ms.map(of_ms),
            began_at: of_ms(run.began_ms),
            ended_at: run.ended_ms.map(of_ms),
            state: run.state.clone(),
            tries: run.tries,
            count: run.count,
            error: run.message.clone(),
            run: run.run.clone(),
        }
    }
}

/// A monitor.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct MonitorData {
    /// The identifier of the monitor.
    pub slug: String,
    /// The display name.
    pub name: String,
    /// The schedule of expected check-ins: `every 30m`, or a cron expression.
    pub schedule: String,
    /// The time zone of the schedule.
    pub zone: String,
    /// The allowed delay of a check-in.
    pub margin_minutes: f64,
    /// The longest allowed run; null for no limit.
    pub max_runtime_minutes: Option<f64>,
    /// `healthy`, `late`, `missed`, `failing` or `timed_out`.
    pub health: String,
    /// The time since which it has this health, in RFC 3339.
    pub since: String,
    /// The newest check-in.
    pub last_checkin: Option<CheckInData>,
    /// The next expected check-in: in the past if it is late, null if the task's file is gone.
    pub next_expected_at: Option<String>,
    /// The scheduled task that it belongs to.
    pub task: Option<String>,
    /// True if the file of the task is gone. Until it is back, no check-in is expected, and the
    /// monitor may be removed.
    pub task_gone: bool,
    /// The notification of a health change: `command`, `webhook`, or null.
    pub on_change: Option<&'static str>,
    /// The newest check-ins, newest first.
    pub strip: Vec<CheckInData>,
}

/// A check-in.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct CheckInData {
    /// The id of the check-in.
    pub id: String,
    /// The time when it arrived, in RFC 3339, or since when it was missed.
    pub at: String,
    /// `in_progress`, `ok`, `error`, `missed` or `timeout`.
    pub status: String,
    /// `client`, `task` or `system`.
    pub source: String,
    /// The due time that it met, or that was missed.
    pub due_at: Option<String>,
    /// The duration, in milliseconds.
    pub duration_ms: Option<i64>,
    /// The number of check-ins that it represents, where several were missed.
    pub count: u64,
}

impl CheckInData {
    /// Converts a stored check-in.
    pub fn from_row(row: &CheckInRow) -> Self {
        Self {
            id: row.id.clone(),
            at: of_ms(row.at_ms),
            status: row.status.clone(),
            source: row.source.clone(),
            due_at: row.due_ms.map(of_ms),
            duration_ms: row.duration_ms,
            count: row.count,
        }
    }
}

impl MonitorData {
    /// Reads the data of a monitor, with its newest `strip` check-ins.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn from_row(store: &Store, row: &MonitorRow, strip: u32, now: Timestamp) -> Result<Self, StoreError> {
        let received = store.check_ins(&row.slug, strip.max(1))?;
        let known: BTreeSet<Timestamp> =
            received.iter().filter_map(|one| Timestamp::from_millisecond(one.due_ms?).ok()).collect();
        let minutes = |ms: i64| ms as f64 / 60_000.0;
        let next = next_expected(row, &known, now).ok().flatten().filter(|_| !row.is_orphan);
        Ok(Self {
            slug: row.slug.clone(),
            name: row.name.clone(),
            schedule: row.schedule.clone(),
            zone: row.zone.clone(),
            margin_minutes: minutes(row.margin_ms),
            max_runtime_minutes: row.max_runtime_ms.map(minutes),
            health: row.health.clone(),
            since: of_ms(row.since_ms),
            last_checkin: received.first().map(CheckInData::from_row),
            next_expected_at: next.map(rfc3339),
            task: row.owner.clone(),
            task_gone: row.is_orphan,
            on_change: HealthNotifier::parse(&row.on_change).ok().flatten().map(|how| match how {
                HealthNotifier::Command(_) => "command",
                HealthNotifier::Webhook { .. } => "webhook",
            }),
            strip: received.iter().take(strip as usize).map(CheckInData::from_row).collect(),
        })
    }
}

/// A request for a new monitor.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct NewMonitor {
    /// The identifier: small letters, digits, `-` and `_`.
    pub slug: String,
    /// The display name. Default: the identifier.
    #[serde(default)]
    pub name: Option<String>,
    /// The schedule of expected check-ins: `every 30m`, or a cron expression.
    pub schedule: String,
    /// The time zone of a cron expression. Default: UTC.
    #[serde(default)]
    pub zone: Option<String>,
    /// The allowed delay of a check-in. Default: 5.
    #[serde(default)]
    pub margin_minutes: Option<f64>,
    /// The longest allowed run. Default: no limit.
    #[serde(default)]
    pub max_runtime_minutes: Option<f64>,
    /// The webhook to call when the health changes.
    #[serde(default)]
    pub webhook: Option<NewWebhook>,
}

/// A webhook for health changes.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct NewWebhook {
    /// The address.
    pub url: String,
    /// The secret for the signature. By default fledge generates one and returns it once.
    #[serde(default)]
    pub secret: Option<String>,
}

impl NewMonitor {
    /// Returns the row of the monitor, and the secret that fledge generated for it.
    ///
    /// # Errors
    /// A message on the first fault in the request.
    pub fn row(self, now: Timestamp) -> Result<(MonitorRow, Option<String>), String> {
        let schedule = Schedule::parse(&self.schedule, self.zone.as_deref());
        let schedule = schedule.map_err(|fault| format!("{fault}; {}", fault.hint()))?;
        let slug = Slug::parse(&self.slug).map_err(|fault| fault.to_string())?;
        let margin = self
            .margin_minutes
            .map_or(Ok(USUAL_MARGIN), |minutes| length("margin_minutes", minutes, *MARGINS.end()))?;
        let max_runtime = self.max_runtime_minutes.map(|minutes| length("max_runtime_minutes", minutes, LONGEST_RUN));
        let name = self.name.unwrap_or_else(|| slug.to_string());
        if name.trim().is_empty() || name.len() > LONGEST_NAME || name.chars().any(char::is_control) {
            return Err(format!("invalid `name`: expected one line of at most {LONGEST_NAME} bytes"));
        }
        let monitor = Monitor { slug, schedule, margin, max_runtime: max_runtime.transpose()? };
        let mut row = row_of(&monitor, &name, None, now);
        let (webhook, made) = self.webhook.map(NewWebhook::checked).transpose()?.unzip();
        row.on_change = webhook.map(|how| how.text()).unwrap_or_default();
        Ok((row, made.flatten()))
    }
}

impl NewWebhook {
    /// Returns the webhook as it is stored, and the secret that fledge generated for it.
    ///
    /// # Errors
    /// A message on the first fault in the request.
    pub fn checked(self) -> Result<(HealthNotifier, Option<String>), String> {
        let address = Address::parse(&self.url).map_err(|error| error.to_string())?;
        if !address.is_guarded() {
            return Err("a webhook needs an https address, or an address of this machine".into());
        }
        let made = if self.secret.is_none() { Some(secret()?) } else { None };
        let secret = self.secret.or_else(|| made.clone()).unwrap_or_default();
        if !(16..=200).contains(&secret.len()) {
            return Err("the secret of a webhook must have 16 to 200 characters".into());
        }
        Ok((HealthNotifier::Webhook { url: self.url, secret }, made))
    }
}

fn length(key: &str, minutes: f64, most: Duration) -> Result<Duration, String> {
    let wrong = || format!("invalid `{key}`: expected more than 0 and at most {}", most.as_secs() / 60);
    let length = Duration::try_from_secs_f64(minutes * 60.0).map_err(|_| wrong())?;
    if length >= Duration::from_secs(1) && length <= most { Ok(length) } else { Err(wrong()) }
}

fn secret() -> Result<String, String> {
    let mut bytes = [0u8; 24];
    SystemRandom::new().fill(&mut bytes).map_err(|_| "cannot get random bytes from the system".to_owned())?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Formats a time as RFC 3339 in UTC with milliseconds.
fn rfc3339(time: Timestamp) -> String {
    format!("{time:.3}")
}

fn of_ms(ms: i64) -> String {
    Timestamp::from_millisecond(ms).map(rfc3339).unwrap_or_default()
}

/// The state of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobState {
    /// The job waits.
    Idle,
    /// The job runs.
    Running,
    /// The task cannot be run as written.
    Disabled,
}

impl JobState {
    /// Returns the state as a word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Running => "running",
            Self::Disabled => "disabled",
        }
    }
}

/// A job for display.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownJob {
    /// Its name.
    pub name: String,
    /// The origin of the job.
    pub kind: JobKind,
    /// The schedule and its time zone; `None` if the task cannot be read.
    pub schedule: Option<(String, String)>,
    /// The next due time.
    pub next: Option<Timestamp>,
    /// The state of the job.
    pub state: JobState,
    /// The monitor that receives its check-ins.
    pub monitor: Option<String>,
    /// The reason why it is disabled.
    pub fault: Option<String>,
}
