//! Jobs and monitors with a settable clock and a real store.

use super::tasks::{RunOrder, TaskEnd, TaskFinding, TaskSubmitter};
use super::*;
use crate::id::RunId;
use crate::monitor::{Health, Source, Status};
use crate::schedule::Schedule;
use crate::store::{MonitorRow, MonitorWrite, Store, StoredJob};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use jiff::{SignedDuration, Timestamp};
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

pub(super) fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

/// A wall clock that follows tokio's paused clock and can be set.
#[derive(Debug)]
pub(super) struct SetClock(Mutex<Timestamp>);

impl SetClock {
    pub(super) fn at(now: Timestamp) -> Arc<Self> {
        Arc::new(Self(Mutex::new(now)))
    }

    pub(super) fn jump(&self, by: SignedDuration) {
        let mut now = self.0.lock().unwrap();
        *now = now.checked_add(by).unwrap();
    }

    /// Advances both clocks in small steps, so that no task sleeps past the next event. A paused
    /// clock advances only when every task is idle, including those on the threads of the store. So
    /// each step is complete before the next one begins.
    pub(super) async fn pass(&self, time: Duration) {
        for _ in 0..time.as_secs() / 5 {
            self.jump(SignedDuration::from_secs(5));
            tokio::time::sleep(Duration::from_secs(5)).await;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

impl WallClock for SetClock {
    fn now(&self) -> Timestamp {
        *self.0.lock().unwrap()
    }
}

pub(super) fn ledger(home: &Path) -> SchedulerStore {
    SchedulerStore::open(&home.join("state"), home).unwrap()
}

pub(super) fn quiet() -> Arc<dyn Fn(SchedulerUpdate) + Send + Sync> {
    Arc::new(|_| ())
}

pub(super) fn write_task(home: &Path, name: &str, front: &str) {
    let path = home.join("tasks").join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, format!("---\n{front}\n---\nDo it.\n")).unwrap();
}

/// A job with scripted outcomes.
#[derive(Debug)]
struct Told {
    schedule: Schedule,
    ends: Mutex<Vec<Result<(), JobError>>>,
    begun: AtomicU64,
}

impl ScheduledJob for Told {
    fn name(&self) -> &str {
        "told"
    }

    fn schedule(&self) -> &Schedule {
        &self.schedule
    }

    fn kind(&self) -> JobKind {
        JobKind::Builtin
    }

    fn run(&self, _: JobContext) -> BoxFuture<'_, Result<(), JobError>> {
        self.begun.fetch_add(1, Ordering::Relaxed);
        async { self.ends.lock().unwrap().pop().unwrap_or(Ok(())) }.boxed()
    }
}

fn scheduler(home: &Path, clock: &Arc<SetClock>, builtin: Vec<Arc<dyn ScheduledJob>>) -> Scheduler {
    let clock: Arc<dyn WallClock> = Arc::clone(clock) as Arc<dyn WallClock>;
    Scheduler::new(SchedulerSettings {
        ledger: ledger(home),
        clock,
        builtin,
        workspace: home.to_owned(),
        submit: None,
        tell: quiet(),
    })
}

async fn states(home: &Path) -> Vec<(String, u64)> {
    let store = Store::open(&home.join("state"), home).unwrap();
    store.job_history("told", 10).unwrap().into_iter().map(|run| (run.state, run.tries)).collect()
}

#[tokio::test(start_paused = true)]
async fn what_may_go_well_soon_is_tried_three_times_and_what_would_not_once() {
    let (home, clock) = (crate::test_support::temp_dir(), SetClock::at(at("2026-01-01T00:00:01Z")));
    let soon = || Err(JobError::Retryable("busy".into()));
    let ends = vec![Err(JobError::Final("no".into())), soon(), soon(), soon(), Ok(()), soon()];
    let schedule = Schedule::every(Duration::from_secs(60)).unwrap();
    let job = Arc::new(Told { schedule, ends: Mutex::new(ends), begun: AtomicU64::default() });
    let (stop, scheduler) = (CancellationToken::new(), scheduler(home.path(), &clock, vec![job.clone()]));
    tokio::join!(scheduler.run(&stop, Duration::from_secs(1)), async {
        clock.pass(Duration::from_secs(55)).await; // a job that never ran is due at once
        assert_eq!(states(home.path()).await, [("ok".to_owned(), 2)]);
        clock.pass(Duration::from_secs(50)).await;
        assert_eq!(states(home.path()).await[0], ("failed".to_owned(), 3));
        assert_eq!(scheduler.ask("nobody"), None);
        assert_eq!(scheduler.ask("told"), Some(true));
        clock.pass(Duration::from_secs(5)).await;
        assert_eq!(states(home.path()).await[0], ("failed".to_owned(), 1));
        stop.cancel();
    });
    assert_eq!(job.begun.load(Ordering::Relaxed), 6);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_was_off_for_a_day_does_its_own_work_once() {
    let (home, clock) = (crate::test_support::temp_dir(), SetClock::at(at("2026-01-01T00:00:01Z")));
    let schedule = Schedule::every(Duration::from_secs(1800)).unwrap();
    let job = Arc::new(Told { schedule, ends: Mutex::default(), begun: AtomicU64::default() });
    for begun in 1..=2 {
        let (stop, scheduler) = (CancellationToken::new(), scheduler(home.path(), &clock, vec![job.clone()]));
        tokio::join!(scheduler.run(&stop, Duration::from_secs(1)), async {
            clock.pass(Duration::from_secs(60)).await;
            stop.cancel();
        });
        assert_eq!(job.begun.load(Ordering::Relaxed), begun);
        clock.jump(SignedDuration::from_hours(24));
    }
}

#[test]
fn tasks_with_a_schedule_are_found_and_broken_ones_are_said_beside_them() {
    let home = crate::test_support::temp_dir();
    write_task(home.path(), "nightly.md", "schedule: \"0 3 * * *\"");
    write_task(home.path(), "ci/Hourly run.md", "schedule: { every: 1h, monitor: false }");
    write_task(home.path(), "never.md", "schedule: \"0 0 31 2 *\"");
    write_task(home.path(), "torn.md", "schedule: [");
    write_task(home.path(), "asks.md", "schedule: every 1h\nparams: { x: {} }");
    write_task(home.path(), "races.md", "schedule: every 1h\ncandidates: 3");
    write_task(home.path(), "plain.md", "title: by hand");
    write_task(home.path(), "ci-hourly_run.md", "title: no schedule");
    let found = tasks::scan(home.path());
    let outcome: Vec<String> = found
        .iter()
        .map(|(name, finding)| match finding {
            TaskFinding::Scheduled(task) => format!("{name}: {} {}", task.path, task.timetable.schedule),
            TaskFinding::Broken(why) => format!("{name} is broken: {why}"),
        })
        .collect();
    insta::assert_snapshot!(outcome.join("\n"));
}

pub(super) fn monitor(store: &Store, on_change: &str) -> MonitorRow {
    named_monitor(store, "backup", on_change)
}

pub(super) fn named_monitor(store: &Store, slug: &str, on_change: &str) -> MonitorRow {
    let text = r#"{ "slug": "backup", "schedule": "0 * * * *", "margin_minutes": 10, "max_runtime_minutes": 30 }"#;
    let new: NewMonitor = serde_json::from_str(text).unwrap();
    let (row, _) = new.row(at("2026-03-01T00:30:00Z")).unwrap();
    let row = MonitorRow { slug: slug.into(), on_change: on_change.into(), ..row };
    store.put_monitor(&row).unwrap();
    row
}

#[test]
fn check_ins_are_written_once_and_what_the_system_adds_too() {
    let home = crate::test_support::temp_dir();
    let store = Store::open(&home.path().join("state"), home.path()).unwrap();
    monitor(&store, "");
    let now = |time: &str| at(&format!("2026-03-01T{time}Z"));
    let say = |status, id: &str, time: &str| {
        let outcome = CheckIn { id: Some(id.into()), ..CheckIn::new(status) };
        check_in(&store, "backup", &outcome, now(time)).unwrap().health
    };
    assert_eq!(say(Status::InProgress, "one", "01:01:00"), Health::Healthy);
    assert_eq!(say(Status::InProgress, "one", "01:02:00"), Health::Healthy, "said twice");
    assert_eq!(say(Status::Ok, "one", "01:05:00"), Health::Healthy);
    assert_eq!(say(Status::InProgress, "two", "02:00:00"), Health::Healthy);
    assert_eq!(check_monitor(&store, "backup", now("02:29:00")).unwrap().change, None);
    let timed_out = check_monitor(&store, "backup", now("02:31:00")).unwrap();
    assert_eq!((timed_out.health, timed_out.added), (Health::TimedOut, 1));
    assert_eq!(check_monitor(&store, "backup", now("02:32:00")).unwrap().added, 0);
    let missed = check_monitor(&store, "backup", now("04:30:00")).unwrap();
    assert_eq!((missed.health, missed.added), (Health::Missed, 2));
    assert_eq!(say(Status::Ok, "late", "04:31:00"), Health::Healthy);
    assert_eq!(say(Status::Error, "late", "04:32:00"), Health::Failing, "after all");
    let system = CheckIn { source: Source::System, ..CheckIn::new(Status::Missed) };
    assert!(matches!(check_in(&store, "backup", &system, now("05:00:00")), Err(MonitorError::Status { .. })));
    assert!(matches!(check_monitor(&store, "none", now("05:00:00")), Err(MonitorError::Unknown { .. })));
    let row = store.monitor("backup").unwrap().unwrap();
    let data = MonitorData::from_row(&store, &row, STRIP, now("04:33:00")).unwrap();
    insta::assert_snapshot!(serde_json::to_string_pretty(&data).unwrap());
}

#[test]
fn what_never_ends_is_not_remembered_for_ever() {
    let home = crate::test_support::temp_dir();
    let store = Store::open(&home.path().join("state"), home.path()).unwrap();
    let row = MonitorRow { max_runtime_ms: None, ..monitor(&store, "") };
    assert_eq!(store.put_monitor(&row).unwrap(), MonitorWrite::Done);
    for no in 0..150 {
        let outcome = CheckIn { id: Some(no.to_string()), ..CheckIn::new(Status::InProgress) };
        check_in(&store, "backup", &outcome, at("2026-03-01T01:01:00Z")).unwrap();
    }
    let left = store.check_ins("backup", 1000).unwrap();
    assert_eq!((left.len(), left[0].id.as_str(), left[99].id.as_str()), (100, "149", "50"));
}

#[test]
fn a_monitor_is_replaced_and_removed_by_nobody_but_its_owner() {
    let home = crate::test_support::temp_dir();
    let store = Store::open(&home.path().join("state"), home.path()).unwrap();
    let own = monitor(&store, "");
    let tasks = MonitorRow { owner: Some("backup".into()), schedule: "every 1m".into(), ..own.clone() };
    assert_eq!(store.put_monitor(&tasks).unwrap(), MonitorWrite::Foreign);
    assert_eq!(store.remove_monitor("backup", Some("backup")).unwrap(), MonitorWrite::Foreign);
    assert_eq!(store.monitor("backup").unwrap(), Some(own.clone()));
    assert_eq!(store.remove_monitor("backup", None).unwrap(), MonitorWrite::Done);
    assert_eq!(store.remove_monitor("backup", None).unwrap(), MonitorWrite::Unknown);
    assert_eq!(store.put_monitor(&tasks).unwrap(), MonitorWrite::New);
    let job = StoredJob {
        name: "backup".into(),
        kind: JobKind::Task.word().into(),
        schedule: "every 1m".into(),
        zone: "UTC".into(),
        handled_ms: 0,
    };
    store.settle_job(&job).unwrap();
    assert_eq!(store.put_monitor(&own).unwrap(), MonitorWrite::Foreign);
    assert_eq!(store.remove_monitor("backup", None).unwrap(), MonitorWrite::Foreign);
    assert_eq!(store.monitor("backup").unwrap(), Some(tasks));
}

/// A runner in which every task fails at once.
#[derive(Debug, Default)]
struct AtOnce(Mutex<Vec<String>>);

impl TaskSubmitter for AtOnce {
    fn submit(&self, order: RunOrder) -> BoxFuture<'_, Result<RunId, JobError>> {
        self.0.lock().unwrap().push(order.key.clone());
        async move { Ok(RunId::new(order.path)) }.boxed()
    }

    fn ended(&self, _: RunId) -> BoxFuture<'_, Result<TaskEnd, JobError>> {
        async { Ok(TaskEnd { is_well: false, outcome: "gate_failed".into() }) }.boxed()
    }
}

#[tokio::test(start_paused = true)]
async fn a_scheduled_task_is_run_at_its_moment_and_its_monitor_hears_of_it() {
    let (home, clock) = (crate::test_support::temp_dir(), SetClock::at(at("2026-01-01T02:59:30Z")));
    write_task(home.path(), "nightly.md", "schedule: \"0 3 * * *\"");
    let submit = Arc::new(AtOnce::default());
    let shared: Arc<dyn WallClock> = Arc::clone(&clock) as Arc<dyn WallClock>;
    let received = Arc::new(Mutex::new(Vec::new()));
    let tell = {
        let received = Arc::clone(&received);
        Arc::new(move |tidings| received.lock().unwrap().push(tidings))
    };
    let terms = SchedulerSettings {
        ledger: ledger(home.path()),
        clock: shared,
        builtin: Vec::new(),
        workspace: home.path().to_owned(),
        submit: Some(Arc::clone(&submit) as Arc<dyn TaskSubmitter>),
        tell,
    };
    let (stop, scheduler) = (CancellationToken::new(), Scheduler::new(terms));
    tokio::join!(scheduler.run(&stop, Duration::from_secs(1)), async {
        clock.pass(Duration::from_secs(60)).await;
        stop.cancel();
    });
    assert_eq!(*submit.0.lock().unwrap(), ["schedule:nightly:2026-01-01T03:00:00Z"]);
    let store = Store::open(&home.path().join("state"), home.path()).unwrap();
    let run = store.job_history("nightly", 10).unwrap().remove(0);
    let expected = ("failed", Some("gate_failed"), Some("tasks/nightly.md"));
    assert_eq!((run.state.as_str(), run.message.as_deref(), run.run.as_deref()), expected);
    let row = store.monitor("nightly").unwrap().unwrap();
    assert_eq!((row.health.as_str(), row.owner.as_deref()), ("failing", Some("nightly")));
    assert!(
        received
            .lock()
            .unwrap()
            .iter()
            .any(|one| matches!(one, SchedulerUpdate::Monitor(change) if change.health == Health::Failing))
    );
}

#[tokio::test]
async fn another_health_is_told_to_a_program_until_it_has_heard() {
    let home = crate::test_support::temp_dir();
    let store = Store::open(&home.path().join("state"), home.path()).unwrap();
    let script = "test -e ready || { touch ready; exit 3; }; echo \"$FLEDGE_MONITOR $FLEDGE_HEALTH_WAS $FLEDGE_HEALTH $FLEDGE_DELIVERY\" >> told";
    let how = HealthNotifier::Command(["sh", "-c", script].map(str::to_owned).into());
    monitor(&store, &how.text());
    let clock = SetClock::at(at("2026-03-01T01:00:10Z"));
    check_in(&store, "backup", &CheckIn::new(Status::Error), clock.now()).unwrap();
    let shared: Arc<dyn WallClock> = Arc::clone(&clock) as Arc<dyn WallClock>;
    let env = vec![("PATH".to_owned(), "/usr/bin:/bin".to_owned())];
    let job =
        deliveries(&ledger(home.path()), &shared, home.path().to_owned(), env, crate::http::HttpSettings::default())
            .unwrap();
    let context = || JobContext { no: 1, due: None, is_last: true, stop: CancellationToken::new() };
    job.run(context()).await.unwrap();
    assert!(!home.path().join("told").exists());
    job.run(context()).await.unwrap();
    assert!(!home.path().join("told").exists(), "not before its time");
    clock.jump(SignedDuration::from_secs(60));
    for _twice in 0..2 {
        job.run(context()).await.unwrap();
    }
    let reported = fs::read_to_string(home.path().join("told")).unwrap();
    assert!(reported.starts_with("backup healthy failing ") && reported.lines().count() == 1, "{reported}");
}
