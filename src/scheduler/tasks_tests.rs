//! Task files that vanish, return, or cannot be read while their jobs are running.

use super::tasks::{RunOrder, TaskEnd, TaskSubmitter};
use super::tests::{SetClock, at, ledger, monitor, quiet, write_task};
use super::*;
use crate::id::RunId;
use crate::store::{MonitorWrite, Store};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use jiff::SignedDuration;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// A runner that takes two and a half minutes for each task, and counts them.
#[derive(Debug, Default)]
struct Slow {
    begun: AtomicU64,
    now: AtomicU64,
    most: AtomicU64,
}

impl TaskSubmitter for Slow {
    fn submit(&self, order: RunOrder) -> BoxFuture<'_, Result<RunId, JobError>> {
        self.begun.fetch_add(1, Ordering::Relaxed);
        async move { Ok(RunId::new(order.path)) }.boxed()
    }

    fn ended(&self, _: RunId) -> BoxFuture<'_, Result<TaskEnd, JobError>> {
        async {
            self.most.fetch_max(self.now.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
            tokio::time::sleep(Duration::from_secs(150)).await;
            self.now.fetch_sub(1, Ordering::Relaxed);
            Ok(TaskEnd { is_well: true, outcome: "verified".into() })
        }
        .boxed()
    }
}

fn scheduler(home: &Path, clock: &Arc<SetClock>, submit: &Arc<Slow>) -> Scheduler {
    Scheduler::new(SchedulerSettings {
        ledger: ledger(home),
        clock: Arc::clone(clock) as Arc<dyn WallClock>,
        builtin: Vec::new(),
        workspace: home.to_owned(),
        submit: Some(Arc::clone(submit) as Arc<dyn TaskSubmitter>),
        tell: quiet(),
    })
}

fn names(scheduler: &Scheduler) -> Vec<String> {
    scheduler.jobs().into_iter().map(|job| job.name).collect()
}

#[tokio::test(start_paused = true)]
async fn a_task_whose_file_was_away_for_a_while_never_runs_beside_itself() {
    let (home, clock) = (crate::test_support::temp_dir(), SetClock::at(at("2026-01-01T02:59:30Z")));
    let (submit, stop) = (Arc::<Slow>::default(), CancellationToken::new());
    write_task(home.path(), "often.md", "schedule: \"* * * * *\"");
    let scheduler = scheduler(home.path(), &clock, &submit);
    tokio::join!(scheduler.run(&stop, Duration::from_secs(1)), async {
        clock.pass(Duration::from_secs(60)).await;
        assert_eq!(submit.begun.load(Ordering::Relaxed), 1);
        fs::remove_file(home.path().join("tasks/often.md")).unwrap();
        clock.pass(Duration::from_secs(70)).await;
        assert_eq!(names(&scheduler), [""; 0]);
        write_task(home.path(), "often.md", "schedule: \"* * * * *\"");
        clock.pass(Duration::from_secs(600)).await;
        assert_eq!(names(&scheduler), ["often"]);
        stop.cancel();
    });
    let [begun, most] = [&submit.begun, &submit.most].map(|count| count.load(Ordering::Relaxed));
    assert!(begun > 2 && most == 1, "{begun} begun, {most} at once");
}

#[tokio::test(start_paused = true)]
async fn a_task_whose_file_comes_is_a_job_before_a_minute_has_passed() {
    let (home, clock) = (crate::test_support::temp_dir(), SetClock::at(at("2026-01-01T01:00:00Z")));
    let (submit, stop) = (Arc::<Slow>::default(), CancellationToken::new());
    let scheduler = scheduler(home.path(), &clock, &submit);
    let is_there = async |name: &str| {
        // At most fifty seconds pass on the paused clock. On the real clock, the kernel may take
        // longer.
        for _ in 0..5_000 {
            if names(&scheduler).iter().any(|known| known == name) {
                return true;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
            tokio::task::spawn_blocking(|| std::thread::sleep(Duration::from_millis(5))).await.unwrap();
        }
        false
    };
    tokio::join!(scheduler.run(&stop, Duration::from_secs(1)), async {
        tokio::time::sleep(Duration::from_millis(10)).await;
        write_task(home.path(), "first.md", "schedule: \"0 3 * * *\"");
        assert!(is_there("first").await, "the folder has come");
        write_task(home.path(), "deep/second.md", "schedule: \"0 3 * * *\"");
        assert!(is_there("deep-second").await, "the folder is watched");
        stop.cancel();
    });
}

#[tokio::test(start_paused = true)]
async fn a_task_whose_file_cannot_be_read_is_not_forgotten_for_that() {
    let (home, clock) = (crate::test_support::temp_dir(), SetClock::at(at("2026-01-01T01:00:00Z")));
    let (submit, stop) = (Arc::<Slow>::default(), CancellationToken::new());
    write_task(home.path(), "nightly.md", "schedule: \"0 3 * * *\"");
    let scheduler = scheduler(home.path(), &clock, &submit);
    tokio::join!(scheduler.run(&stop, Duration::from_secs(1)), async {
        clock.pass(Duration::from_secs(30)).await;
        fs::write(home.path().join("tasks/nightly.md"), [0xff, 0xfe]).unwrap();
        clock.pass(Duration::from_secs(130)).await;
        assert_eq!(names(&scheduler), ["nightly"]);
        fs::remove_file(home.path().join("tasks/nightly.md")).unwrap();
        clock.pass(Duration::from_secs(70)).await;
        assert_eq!(names(&scheduler), [""; 0]);
        stop.cancel();
    });
}

#[tokio::test(start_paused = true)]
async fn of_a_task_that_is_gone_nothing_is_expected_until_it_is_back() {
    let (home, clock) = (crate::test_support::temp_dir(), SetClock::at(at("2026-01-01T01:00:00Z")));
    let front = "schedule: { cron: \"*/10 * * * *\", monitor: { margin: 1m } }";
    write_task(home.path(), "often.md", front);
    let store = Store::open(&home.path().join("state"), home.path()).unwrap();
    let row = || store.monitor("often").unwrap().unwrap();
    let statuses = || {
        let all = store.check_ins("often", 50).unwrap();
        all.into_iter().map(|one| (one.status, one.count)).collect::<Vec<_>>()
    };
    let work = async |time| {
        let (submit, stop) = (Arc::<Slow>::default(), CancellationToken::new());
        let scheduler = scheduler(home.path(), &clock, &submit);
        tokio::join!(scheduler.run(&stop, Duration::from_secs(1)), async {
            clock.pass(Duration::from_secs(time)).await;
            stop.cancel();
        });
    };
    work(780).await;
    assert_eq!((statuses(), row().is_orphan), (vec![("ok".to_owned(), 1)], false));
    assert_eq!(store.remove_monitor("often", None).unwrap(), MonitorWrite::Foreign);
    fs::remove_file(home.path().join("tasks/often.md")).unwrap();
    clock.jump(SignedDuration::from_hours(10));
    work(5).await; // also if the file vanished while no server ran
    assert!(row().is_orphan);
    let looked = check_monitor(&store, "often", clock.now()).unwrap();
    assert_eq!((looked.added, looked.change, row().health.as_str()), (0, None, "healthy"));
    let data = MonitorData::from_row(&store, &row(), STRIP, clock.now()).unwrap();
    assert_eq!((data.task_gone, data.next_expected_at), (true, None));
    write_task(home.path(), "often.md", front);
    work(5).await;
    let looked = check_monitor(&store, "often", clock.now()).unwrap();
    assert_eq!((looked.added, row().is_orphan), (0, false), "what was due meanwhile was not expected");
    fs::remove_file(home.path().join("tasks/often.md")).unwrap();
    work(5).await;
    assert_eq!(store.remove_monitor("often", None).unwrap(), MonitorWrite::Done);
    assert_eq!((store.monitor("often").unwrap(), statuses()), (None, vec![]));
}

#[tokio::test(start_paused = true)]
async fn a_monitor_of_its_name_that_is_not_its_own_hears_nothing_of_a_task() {
    let (home, clock) = (crate::test_support::temp_dir(), SetClock::at(at("2026-03-01T00:59:30Z")));
    let store = Store::open(&home.path().join("state"), home.path()).unwrap();
    let theirs = monitor(&store, "");
    write_task(home.path(), "backup.md", "schedule: \"0 * * * *\"");
    let (submit, stop) = (Arc::<Slow>::default(), CancellationToken::new());
    let scheduler = scheduler(home.path(), &clock, &submit);
    tokio::join!(scheduler.run(&stop, Duration::from_secs(1)), async {
        clock.pass(Duration::from_secs(240)).await;
        stop.cancel();
    });
    assert_eq!(submit.begun.load(Ordering::Relaxed), 1);
    assert_eq!(store.check_ins("backup", 10).unwrap(), []);
    assert_eq!(store.monitor("backup").unwrap(), Some(theirs));
}
