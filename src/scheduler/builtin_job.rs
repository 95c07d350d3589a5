//! Built-in jobs of fledge.

use super::WallClock;
use super::job::{JobContext, JobError, JobKind, ScheduledJob, error_line};
use super::monitors::{HealthChange, MonitorError, check_monitor};
use super::notifications::{HealthNotifier, NotifierTools, WITHIN};
use super::scheduler_store::SchedulerStore;
use super::shared::{SchedulerListener, SchedulerUpdate};
use crate::http::HttpSettings;
use crate::monitor::Health;
use crate::schedule::Schedule;
use crate::store::{ForgetSelector, MonitorRow, NewsRow};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use futures_util::stream::{self, StreamExt, TryStreamExt};
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The name of the job that sends notifications of health changes.
pub const DELIVERIES: &str = "deliveries";
/// The maximum number of tries of one notification, and the pause after the first try. The pause
/// doubles with each try.
const MAX_TRIES: u64 = 8;
const PAUSE_MS: i64 = 30_000;
/// Notifications loaded at a time, and monitors handled in parallel. A receiver that does not
/// answer delays no other monitor.
const NEWS: u32 = 1000;
const AT_ONCE: usize = 8;

type Work = Box<dyn Fn(JobContext) -> BoxFuture<'static, Result<(), JobError>> + Send + Sync>;

/// A built-in job: a name, an interval and a function.
pub struct BuiltinJob {
    name: &'static str,
    schedule: Schedule,
    work: Work,
}

impl fmt::Debug for BuiltinJob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BuiltinJob").field("name", &self.name).finish_non_exhaustive()
    }
}

impl BuiltinJob {
    /// Creates a job that runs every `minutes` minutes, at least one.
    ///
    /// # Errors
    /// When the interval is longer than a year.
    pub fn every<F>(
        minutes: u32,
        name: &'static str,
        work: impl Fn(JobContext) -> F + Send + Sync + 'static,
    ) -> Result<Arc<dyn ScheduledJob>, crate::schedule::ScheduleError>
    where
        F: Future<Output = Result<(), JobError>> + Send + 'static,
    {
        let schedule = Schedule::every(Duration::from_secs(u64::from(minutes.max(1)) * 60))?;
        Ok(Arc::new(Self { name, schedule, work: Box::new(move |context| work(context).boxed()) }))
    }
}

impl ScheduledJob for BuiltinJob {
    fn name(&self) -> &str {
        self.name
    }

    fn schedule(&self) -> &Schedule {
        &self.schedule
    }

    fn kind(&self) -> JobKind {
        JobKind::Builtin
    }

    fn run(&self, context: JobContext) -> BoxFuture<'_, Result<(), JobError>> {
        (self.work)(context)
    }
}

/// Creates the job that deletes expired memories every hour.
///
/// # Errors
/// When the interval is longer than a year, which this constant interval is not.
pub fn memory_expiry(
    scheduler_store: &SchedulerStore,
    clock: &Arc<dyn WallClock>,
) -> Result<Arc<dyn ScheduledJob>, crate::schedule::ScheduleError> {
    let (scheduler_store, clock) = (scheduler_store.clone(), Arc::clone(clock));
    BuiltinJob::every(60, "memory-expiry", move |_| {
        let (scheduler_store, now) = (scheduler_store.clone(), clock.now().as_millisecond());
        async move { scheduler_store.with(move |store| store.forget(ForgetSelector::Expired(now)).map(drop)).await }
    })
}

/// Creates the job that checks all monitors every minute. The job detects missed and overlong runs.
/// It reports each change of health to the listener, including changes that other processes wrote.
///
/// # Errors
/// When the interval is longer than a year, which this constant interval is not.
pub fn missed_runs(
    scheduler_store: &SchedulerStore,
    clock: &Arc<dyn WallClock>,
    listener: SchedulerListener,
) -> Result<Arc<dyn ScheduledJob>, crate::schedule::ScheduleError> {
    let (scheduler_store, clock, last_health) =
        (scheduler_store.clone(), Arc::clone(clock), Arc::<Mutex<LastHealth>>::default());
    BuiltinJob::every(1, "missed-runs", move |_| {
        let (scheduler_store, now) = (scheduler_store.clone(), clock.now());
        let (listener, last_health) = (Arc::clone(&listener), Arc::clone(&last_health));
        async move {
            let rows = scheduler_store.with(|store| store.monitors()).await?;
            let unreported = last_health.lock().unwrap_or_else(PoisonError::into_inner).compare(&rows);
            unreported.into_iter().for_each(|change| listener(SchedulerUpdate::Monitor(change)));
            for row in rows {
                let slug = row.slug;
                let checked = scheduler_store.with(move |store| match check_monitor(store, &slug, now) {
                    Ok(received) => Ok(received.change),
                    Err(MonitorError::Store(error)) => Err(error),
                    Err(fault) => {
                        tracing::warn!("{}", error_line(&fault));
                        Ok(None)
                    }
                });
                if let Some(change) = checked.await? {
                    last_health.lock().unwrap_or_else(PoisonError::into_inner).note(&change);
                    listener(SchedulerUpdate::Monitor(change));
                }
            }
            Ok(())
        }
    })
}

/// The health of each monitor at the last check. Other processes write check-ins too.
#[derive(Default)]
struct LastHealth(Option<BTreeMap<String, Health>>);

impl LastHealth {
    /// Returns the changes since the last check; none at the first check.
    fn compare(&mut self, rows: &[MonitorRow]) -> Vec<HealthChange> {
        let now = rows.iter().filter_map(|row| Some((row.slug.clone(), Health::of(&row.health)?))).collect();
        let Some(before) = self.0.replace(now) else { return Vec::new() };
        let changed = |row: &MonitorRow| {
            let (was, health) = (*before.get(&row.slug)?, Health::of(&row.health)?);
            (was != health).then(|| HealthChange::from_row(row, was, health, row.since_ms))
        };
        rows.iter().filter_map(changed).collect()
    }

    fn note(&mut self, change: &HealthChange) {
        self.0.get_or_insert_default().insert(change.monitor.clone(), change.health);
    }
}

/// Creates the job that sends notifications of health changes: every minute, and on request.
///
/// # Errors
/// When the interval is longer than a year, which this constant interval is not.
pub fn deliveries(
    scheduler_store: &SchedulerStore,
    clock: &Arc<dyn WallClock>,
    dir: PathBuf,
    env: Vec<(String, String)>,
    http: HttpSettings,
) -> Result<Arc<dyn ScheduledJob>, crate::schedule::ScheduleError> {
    let (scheduler_store, clock, tools) =
        (scheduler_store.clone(), Arc::clone(clock), Arc::new(NotifierTools { dir, env, http, within: WITHIN }));
    BuiltinJob::every(1, DELIVERIES, move |context| {
        let (scheduler_store, clock, tools) = (scheduler_store.clone(), Arc::clone(&clock), Arc::clone(&tools));
        async move { send_notifications(&scheduler_store, &clock, &tools, &context.stop).await }
    })
}

async fn send_notifications(
    scheduler_store: &SchedulerStore,
    clock: &Arc<dyn WallClock>,
    tools: &NotifierTools,
    stop: &CancellationToken,
) -> Result<(), JobError> {
    let now = clock.now().as_millisecond();
    let all = scheduler_store.with(move |store| {
        let mut all: BTreeMap<String, (Option<MonitorRow>, Vec<NewsRow>)> = BTreeMap::new();
        for news in store.monitor_news(now, NEWS)? {
            match all.get_mut(&news.monitor) {
                Some((_, more)) => more.push(news),
                None => drop(all.insert(news.monitor.clone(), (store.monitor(&news.monitor)?, vec![news]))),
            }
        }
        Ok(all)
    });
    let each = all
        .await?
        .into_values()
        .map(|(row, news)| send_notifications_of(scheduler_store, clock, tools, stop, row, news));
    stream::iter(each).buffer_unordered(AT_ONCE).try_collect().await
}

/// Sends the notifications of one monitor, oldest first. After a temporary failure, the rest waits
/// for the next try.
async fn send_notifications_of(
    scheduler_store: &SchedulerStore,
    clock: &Arc<dyn WallClock>,
    tools: &NotifierTools,
    stop: &CancellationToken,
    row: Option<MonitorRow>,
    all: Vec<NewsRow>,
) -> Result<(), JobError> {
    let how = row.map_or(Ok(None), |row| HealthNotifier::parse(&row.on_change));
    for news in all {
        let reported = match &how {
            Ok(Some(how)) => tools.deliver(how, &news, clock.now().as_second(), stop).await,
            Ok(None) => Ok(()), // notification was turned off
            Err(error) => Err(JobError::Final(error.to_string())),
        };
        let NewsRow { no, tries, monitor, delivery, .. } = news;
        let now = clock.now().as_millisecond();
        let (again, message) = match reported {
            Ok(()) => (None, None),
            Err(JobError::Resting) => return Ok(()),
            Err(JobError::Retryable(why)) if tries + 1 < MAX_TRIES => {
                (Some(now + (PAUSE_MS << tries.min(10))), Some(why))
            }
            Err(JobError::Retryable(why) | JobError::Final(why)) => {
                tracing::warn!("cannot send a notification of monitor `{monitor}`: {why}");
                (None, Some(why))
            }
        };
        scheduler_store
            .with(move |store| store.told_monitor_news((no, &delivery), now, again, message.as_deref()))
            .await?;
        if again.is_some() {
            return Ok(());
        }
    }
    Ok(())
}
