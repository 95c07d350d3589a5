//! Seeded simulation of a server that is killed and restarted while its clock jumps. Every due time
//! of a task must begin at most once, and must either begin or be recorded as missed, once.

use super::tasks::{RunOrder, TaskEnd, TaskSubmitter};
use super::tests::{SetClock, at, ledger, quiet, write_task};
use super::*;
use crate::id::RunId;
use crate::schedule::Schedule;
use crate::store::Store;
use crate::test_support::drawn;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use jiff::{SignedDuration, Timestamp};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

const SEEDS: u64 = 6;

/// A runner of tasks that outlives every server: as in reality, a run continues when the server is
/// killed.
#[derive(Debug, Default)]
struct Runner {
    /// By key: how often each run was submitted.
    runs: Mutex<BTreeMap<String, u64>>,
    took: Mutex<BTreeSet<String>>,
    length: Duration,
}

impl TaskSubmitter for Runner {
    fn submit(&self, order: RunOrder) -> BoxFuture<'_, Result<RunId, JobError>> {
        *self.runs.lock().unwrap().entry(order.key.clone()).or_default() += 1;
        async move { Ok(RunId::new(order.key)) }.boxed()
    }

    fn ended(&self, run: RunId) -> BoxFuture<'_, Result<TaskEnd, JobError>> {
        async move {
            if !self.took.lock().unwrap().contains(run.as_str()) {
                sleep(self.length).await;
                self.took.lock().unwrap().insert(run.to_string());
            }
            Ok(TaskEnd { is_well: true, outcome: "verified".into() })
        }
        .boxed()
    }
}

struct Dice(u64);

impl Dice {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }
}

#[test]
fn every_moment_is_begun_once_at_most_and_begun_or_said_to_be_missed() {
    for seed in drawn(0..SEEDS) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        let lived = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| runtime.block_on(live(seed))));
        assert!(lived.is_ok(), "seed {seed}");
    }
}

async fn live(seed: u64) {
    let mut dice = Dice(seed + 1);
    let home = crate::test_support::temp_dir();
    let schedules = ["every 7m", "*/10 * * * *", "13 * * * *", "every 1h"];
    let text = schedules[dice.below(4) as usize];
    write_task(home.path(), "work.md", &format!("schedule: \"{text}\""));
    let (schedule, clock) = (Schedule::parse(text, None).unwrap(), SetClock::at(at("2026-05-05T05:05:00Z")));
    let runner = Arc::new(Runner { length: Duration::from_secs(30 + dice.below(900)), ..Runner::default() });
    // The range of times that a clock showed while a server was running. A server can know no other
    // due times.
    let (mut first, mut latest) = (None, Timestamp::MIN);
    for _life in 0..5 {
        let (stop, scheduler) = (CancellationToken::new(), server(home.path(), &clock, &runner));
        let living = scheduler.run(&stop, Duration::from_millis(1));
        let acting = async {
            for _act in 0..3 {
                settle(&clock).await;
                first.get_or_insert(clock.now());
                latest = latest.max(clock.now());
                for _ in 0..dice.below(25) {
                    clock.pass(Duration::from_secs(60)).await;
                }
                settle(&clock).await;
                latest = latest.max(clock.now());
                match dice.below(4) {
                    0 => clock.jump(SignedDuration::from_mins(dice.below(300) as i64)),
                    1 => clock.jump(-SignedDuration::from_mins(dice.below(200) as i64)),
                    _ => {}
                }
            }
        };
        // A kill: everything is dropped at its current point.
        tokio::select! { () = living => {}, () = acting => {} }
        clock.jump(SignedDuration::from_mins(dice.below(500) as i64)); // until the next server starts
    }
    // The last server lives long enough for everything, at a time later than all others.
    let now = clock.now();
    clock.jump((latest.max(now) + Duration::from_secs(7200)).duration_since(now));
    let (stop, scheduler) = (CancellationToken::new(), server(home.path(), &clock, &runner));
    let living = scheduler.run(&stop, Duration::from_secs(1));
    let acting = async {
        for _ in 0..60 {
            clock.pass(Duration::from_secs(60)).await;
            settle(&clock).await;
        }
        stop.cancel();
    };
    tokio::join!(living, acting);
    judge(home.path(), &schedule, &runner, first.unwrap(), clock.now());
}

/// Asserts that each due time has one row or is counted in one, and that every submitted run has a
/// row.
fn judge(home: &Path, schedule: &Schedule, runner: &Runner, first: Timestamp, now: Timestamp) {
    let store = Store::open(&home.join("state"), home).unwrap();
    let rows = store.job_history("work", 5000).unwrap();
    let mut dues = BTreeSet::new();
    let mut counted = 0;
    for row in rows.iter().filter(|row| row.due_ms.is_some()) {
        let due = Timestamp::from_millisecond(row.due_ms.unwrap()).unwrap();
        assert!(dues.insert(due), "{due} has two rows");
        counted += row.count.saturating_sub(1);
        let key = format!("schedule:work:{due}");
        let was_begun = runner.runs.lock().unwrap().contains_key(&key);
        assert_eq!(was_begun, !matches!(row.state.as_str(), "missed" | "skipped"), "{due} is {}", row.state);
    }
    let expected: Vec<Timestamp> = schedule.due(first, now - Duration::from_secs(900), 10_000).newest;
    let missing: Vec<&Timestamp> = expected.iter().filter(|due| !dues.contains(due)).collect();
    assert!(missing.len() as u64 <= counted, "{missing:?} are not reported; {counted} were counted together");
    let keys: BTreeSet<String> = dues.iter().map(|due| format!("schedule:work:{due}")).collect();
    assert!(runner.runs.lock().unwrap().keys().all(|key| keys.contains(key)), "a run without a row");
    // At most one check-in per due time.
    let received = store.check_ins("work", 5000).unwrap();
    let mut met = BTreeSet::new();
    assert!(received.iter().filter_map(|row| row.due_ms).all(|due| met.insert(due)), "two check-ins for one moment");
}

fn server(home: &Path, clock: &Arc<SetClock>, runner: &Arc<Runner>) -> Scheduler {
    let ledger = ledger(home);
    let shared: Arc<dyn WallClock> = Arc::clone(clock) as Arc<dyn WallClock>;
    let builtin = vec![missed_runs(&ledger, &shared, quiet()).unwrap()];
    let submit: Arc<dyn TaskSubmitter> = Arc::clone(runner) as Arc<dyn TaskSubmitter>;
    Scheduler::new(SchedulerSettings {
        ledger,
        clock: shared,
        builtin,
        workspace: home.to_owned(),
        submit: Some(submit),
        tell: quiet(),
    })
}

/// Lets everything happen that can happen now, including work on the threads of the store.
async fn settle(clock: &SetClock) {
    clock.pass(Duration::from_secs(25)).await;
}
