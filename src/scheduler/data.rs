//! Jobs and monitors as they are given out, and monitors as they are handed in: the same by HTTP and by the command line.

use super::monitors::{next_expected, row_of};
use super::shown::Shown;
use super::telling::OnChange;
use crate::courier::Address;
use crate::monitor::{LONGEST_RUN, MARGINS, Monitor, Slug, USUAL_MARGIN};
use crate::schedule::Schedule;
use crate::store::{CheckInRow, JobRun, MonitorRow, Store, StoreError};
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
    /// The name that it goes by.
    pub name: String,
    /// `builtin` or `task`.
    pub kind: &'static str,
    /// When it is due: `every 30m`, or a cron expression; null where it cannot be read.
    pub schedule: Option<String>,
    /// The time zone of that.
    pub zone: Option<String>,
    /// When it is due next, in RFC 3339.
    pub next_at: Option<String>,
    /// What became of it last.
    pub last: Option<JobRunData>,
    /// `idle`, `running` or `disabled`.
    pub state: &'static str,
    /// The monitor that hears of it.
    pub monitor: Option<String>,
    /// Why it is disabled.
    pub fault: Option<String>,
}

/// A time that a job was due, or was asked for.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct JobRunData {
    /// When it was due, in RFC 3339; null where somebody asked for it.
    pub due_at: Option<String>,
    /// When it began, or was found to be missed.
    pub began_at: String,
    /// When it ended.
    pub ended_at: Option<String>,
    /// `running`, `ok`, `failed`, `missed`, `skipped` or `interrupted`.
    pub state: String,
    /// How often it was tried.
    pub tries: u64,
    /// How many this stands for, where several were missed.
    pub count: u64,
    /// What went wrong.
    pub error: Option<String>,
    /// The run that it has started.
    pub run: Option<String>,
}

impl JobData {
    /// One, with what became of it last.
    pub fn new(shown: Shown, last: Option<&JobRun>) -> Self {
        let Shown { name, kind, schedule, next, state, monitor, fault } = shown;
        let (schedule, zone) = schedule.unzip();
        let (kind, state, next_at) = (kind.word(), state.word(), next.map(rfc3339));
        Self { name, kind, schedule, zone, next_at, last: last.map(JobRunData::of), state, monitor, fault }
    }
}

impl JobRunData {
    /// One.
    pub fn of(run: &JobRun) -> Self {
        Self {
            due_at: run.due_ms.map(of_ms),
            began_at: of_ms(run.began_ms),
            ended_at: run.ended_ms.map(of_ms),
            state: run.state.clone(),
            tries: run.tries,
            count: run.count,
            error: run.said.clone(),
            run: run.run.clone(),
        }
    }
}

/// A monitor.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct MonitorData {
    /// The name that it goes by.
    pub slug: String,
    /// What it is called.
    pub name: String,
    /// When something is expected: `every 30m`, or a cron expression.
    pub schedule: String,
    /// The time zone of that.
    pub zone: String,
    /// How late it may be.
    pub margin_minutes: f64,
    /// How long it may take; null: as long as it likes.
    pub max_runtime_minutes: Option<f64>,
    /// `healthy`, `late`, `missed`, `failing` or `timed_out`.
    pub health: String,
    /// Since when, in RFC 3339.
    pub since: String,
    /// What was heard last.
    pub last_checkin: Option<CheckInData>,
    /// When something is expected next; in the past where it is late, null where its task has gone.
    pub next_expected_at: Option<String>,
    /// The scheduled task that it belongs to.
    pub task: Option<String>,
    /// Whether the file of that task has gone: nothing is expected until it is back, and the monitor may be removed.
    pub task_gone: bool,
    /// What is done when its health is another one: `command`, `webhook`, or nothing.
    pub on_change: Option<&'static str>,
    /// What was heard, the newest first.
    pub strip: Vec<CheckInData>,
}

/// A check-in.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct CheckInData {
    /// What it goes by.
    pub id: String,
    /// When it came, in RFC 3339, or from when on it was missed.
    pub at: String,
    /// `in_progress`, `ok`, `error`, `missed` or `timeout`.
    pub status: String,
    /// `client`, `task` or `system`.
    pub source: String,
    /// The moment that it met, or that was missed.
    pub due_at: Option<String>,
    /// How long it took.
    pub duration_ms: Option<i64>,
    /// How many it stands for, where several were missed.
    pub count: u64,
}

impl CheckInData {
    /// One.
    pub fn of(row: &CheckInRow) -> Self {
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
    /// One, with so many check-ins.
    ///
    /// # Errors
    /// When what is kept cannot be read.
    pub fn of(store: &Store, row: &MonitorRow, strip: u32, now: Timestamp) -> Result<Self, StoreError> {
        let heard = store.check_ins(&row.slug, strip.max(1))?;
        let known: BTreeSet<Timestamp> =
            heard.iter().filter_map(|one| Timestamp::from_millisecond(one.due_ms?).ok()).collect();
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
            last_checkin: heard.first().map(CheckInData::of),
            next_expected_at: next.map(rfc3339),
            task: row.owner.clone(),
            task_gone: row.is_orphan,
            on_change: OnChange::of(&row.on_change).ok().flatten().map(|how| match how {
                OnChange::Command(_) => "command",
                OnChange::Webhook { .. } => "webhook",
            }),
            strip: heard.iter().take(strip as usize).map(CheckInData::of).collect(),
        })
    }
}

/// A monitor that somebody wants.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct NewMonitor {
    /// The name that it goes by: small letters, digits, `-` and `_`.
    pub slug: String,
    /// What it is called; else as it goes by.
    #[serde(default)]
    pub name: Option<String>,
    /// When something is expected: `every 30m`, or a cron expression.
    pub schedule: String,
    /// The time zone of a cron expression; else UTC.
    #[serde(default)]
    pub zone: Option<String>,
    /// How late it may be; else 5.
    #[serde(default)]
    pub margin_minutes: Option<f64>,
    /// How long it may take; else as long as it likes.
    #[serde(default)]
    pub max_runtime_minutes: Option<f64>,
    /// Who is told when its health is another one.
    #[serde(default)]
    pub webhook: Option<NewWebhook>,
}

/// An address that is told.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct NewWebhook {
    /// Where to.
    pub url: String,
    /// With what it is signed; else one is made, and given back once.
    #[serde(default)]
    pub secret: Option<String>,
}

impl NewMonitor {
    /// Its row, and the secret that was made for it.
    ///
    /// # Errors
    /// What is wrong with it.
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
            return Err(format!("`name` is a text in one line, of {LONGEST_NAME} bytes at most"));
        }
        let monitor = Monitor { slug, schedule, margin, max_runtime: max_runtime.transpose()? };
        let mut row = row_of(&monitor, &name, None, now);
        let (webhook, made) = self.webhook.map(NewWebhook::checked).transpose()?.unzip();
        row.on_change = webhook.map(|how| how.text()).unwrap_or_default();
        Ok((row, made.flatten()))
    }
}

impl NewWebhook {
    /// As it is kept, and the secret that was made for it.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn checked(self) -> Result<(OnChange, Option<String>), String> {
        let address = Address::parse(&self.url).map_err(|error| error.to_string())?;
        if !address.is_guarded() {
            return Err("a webhook goes to an address with https, or to this machine".into());
        }
        let made = if self.secret.is_none() { Some(secret()?) } else { None };
        let secret = self.secret.or_else(|| made.clone()).unwrap_or_default();
        if !(16..=200).contains(&secret.len()) {
            return Err("the secret of a webhook has 16 to 200 characters".into());
        }
        Ok((OnChange::Webhook { url: self.url, secret }, made))
    }
}

fn length(key: &str, minutes: f64, most: Duration) -> Result<Duration, String> {
    let wrong = || format!("`{key}` is more than 0 and at most {}", most.as_secs() / 60);
    let length = Duration::try_from_secs_f64(minutes * 60.0).map_err(|_| wrong())?;
    if length >= Duration::from_secs(1) && length <= most { Ok(length) } else { Err(wrong()) }
}

fn secret() -> Result<String, String> {
    let mut bytes = [0u8; 24];
    SystemRandom::new().fill(&mut bytes).map_err(|_| "the system gives no random bytes".to_owned())?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// A time as it is given out: RFC 3339 in UTC with milliseconds.
fn rfc3339(time: Timestamp) -> String {
    format!("{time:.3}")
}

fn of_ms(ms: i64) -> String {
    Timestamp::from_millisecond(ms).map(rfc3339).unwrap_or_default()
}
