//! Files of tasks that go, come back, and cannot be read, while their jobs are under way.

use super::tasks::{Order, Submit, TaskEnd};
use super::tests::{SetClock, at, ledger, quiet, write_task};
use super::*;
use crate::id::RunId;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Runs tasks, each for two and a half minutes, and counts them.
#[derive(Debug, Default)]
struct Slow {
    begun: AtomicU64,
    now: AtomicU64,
    most: AtomicU64,
}

impl Submit for Slow {
    fn submit(&self, order: Order) -> BoxFuture<'_, Result<RunId, JobError>> {
        self.begun.fetch_add(1, Ordering::Relaxed);
        async move { Ok(RunId::new(order.path)) }.boxed()
    }

    fn ended(&self, _: RunId) -> BoxFuture<'_, Result<TaskEnd, JobError>> {
        async {
            self.most.fetch_max(self.now.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
            tokio::time::sleep(Duration::from_secs(150)).await;
            self.now.fetch_sub(1, Ordering::Relaxed);
            Ok(TaskEnd { is_well: true, said: "verified".into() })
        }
        .boxed()
    }
}

fn scheduler(home: &Path, clock: &Arc<SetClock>, submit: &Arc<Slow>) -> Scheduler {
    Scheduler::new(Terms {
        ledger: ledger(home),
        clock: Arc::clone(clock) as Arc<dyn Clock>,
        builtin: Vec::new(),
        workspace: home.to_owned(),
        submit: Some(Arc::clone(submit) as Arc<dyn Submit>),
        tell: quiet(),
    })
}

fn names(scheduler: &Scheduler) -> Vec<String> {
    scheduler.jobs().into_iter().map(|job| job.name).collect()
}

#[tokio::test(start_paused = true)]
async fn a_task_whose_file_was_away_for_a_while_never_runs_beside_itself() {
    let (home, clock) = (tempfile::tempdir().unwrap(), SetClock::at(at("2026-01-01T02:59:30Z")));
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
async fn a_task_whose_file_cannot_be_read_is_not_forgotten_for_that() {
    let (home, clock) = (tempfile::tempdir().unwrap(), SetClock::at(at("2026-01-01T01:00:00Z")));
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
