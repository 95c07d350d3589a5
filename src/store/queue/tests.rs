//! Tests of this queue alone. `tests/queue` tests the promises of every queue.

use super::super::Store;
use super::*;
use crate::queue::{Priority, QueueState, WorkerId};
use std::num::NonZeroU32;
use std::os::unix::fs::PermissionsExt;
use std::task::{Context, Poll, Waker};

const LONG: Duration = Duration::from_secs(3600);

fn job(name: &str) -> JobSpec {
    JobSpec {
        id: JobId::parse(name).unwrap(),
        batch: BatchId::parse("b").unwrap(),
        pool: PoolName::parse("p").unwrap(),
        priority: Priority::Normal,
        payload: String::new(),
        deliveries: NonZeroU32::MAX,
        delay: Duration::ZERO,
    }
}

fn worker() -> Worker {
    Worker { id: WorkerId::parse("w").unwrap(), term: LONG, batch: None }
}

#[tokio::test]
async fn a_lease_that_nobody_waited_for_is_given_back_with_the_next_call() {
    let home = crate::test_support::temp_dir();
    let queue = SqliteQueue::open(&home.path().join("queue.db")).unwrap();
    queue.submit(&[job("a")]).await.unwrap();
    let other = SqliteQueue::open(&home.path().join("queue.db")).unwrap();
    let state = async || other.job(&job("a").id).await.unwrap().unwrap().state;
    let (worker, pools) = (worker(), [job("a").pool]);
    let lock = rusqlite::Connection::open(home.path().join("queue.db")).unwrap();
    lock.execute_batch("BEGIN IMMEDIATE").unwrap();
    let mut claim = Box::pin(queue.claim(&worker, &pools, LONG));
    let begun = claim.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    assert!(matches!(begun, Poll::Pending));
    drop(claim);
    lock.execute_batch("COMMIT").unwrap();
    // The claim completes on its own thread, although no caller waits for it.
    while state().await == QueueState::Queued {
        tokio::task::yield_now().await;
    }
    let lease = queue.claim(&worker, &pools, Duration::ZERO).await.unwrap().unwrap();
    assert_eq!(lease.attempt, 1);
}

#[tokio::test]
async fn a_job_that_is_over_waits_again_with_its_new_input_and_one_that_is_open_does_not() {
    let folder = crate::test_support::temp_dir();
    let queue = SqliteQueue::open(&folder.path().join("queue.db")).unwrap();
    let again = |payload: &str| JobSpec { payload: payload.into(), ..job("a") };
    assert_eq!(queue.submit_again(&again("first")).await.unwrap(), Submitted::Queued, "an unknown job is added");
    assert_eq!(queue.submit_again(&again("too early")).await.unwrap(), Submitted::Duplicate);
    let pools = [job("a").pool];
    let lease = queue.claim(&worker(), &pools, Duration::ZERO).await.unwrap().unwrap();
    assert_eq!(queue.submit_again(&again("too early")).await.unwrap(), Submitted::Duplicate);
    queue.complete(&lease, &ResultText("done".into())).await.unwrap();
    assert_eq!(queue.submit_again(&again("second")).await.unwrap(), Submitted::Queued);
    let (known, payload) = queue.job_and_payload(&job("a").id).await.unwrap().unwrap();
    assert_eq!((known.state, known.result, payload.as_str()), (QueueState::Queued, None, "second"));
    let next = queue.claim(&worker(), &pools, Duration::ZERO).await.unwrap().unwrap();
    assert_eq!((next.payload.as_str(), next.attempt), ("second", 1));
    assert_eq!(queue.complete(&lease, &ResultText("late".into())).await.unwrap(), Completed::Lost);
}

#[tokio::test]
async fn many_who_wait_on_one_thread_are_in_nobodys_way() {
    let home = crate::test_support::temp_dir();
    let queue = SqliteQueue::open(&home.path().join("queue.db")).unwrap();
    let (worker, pools) = (worker(), [job("a").pool]);
    let names: Vec<JobSpec> = (0..64).map(|number| job(&format!("job-{number}"))).collect();
    let all = futures_util::future::join_all((0..64).map(|_| queue.claim(&worker, &pools, LONG)));
    let (leases, _) = tokio::join!(all, async { queue.submit(&names).await.unwrap() });
    let mut claimed: Vec<String> = leases.into_iter().map(|lease| lease.unwrap().unwrap().job.to_string()).collect();
    claimed.sort();
    claimed.dedup();
    assert_eq!(claimed.len(), 64);
}

#[tokio::test]
async fn a_queue_is_its_owners_and_no_other_database_is_taken_for_one() {
    let home = crate::test_support::temp_dir();
    let path = home.path().join("of/its/own/queue.db");
    let queue = SqliteQueue::open(&path).unwrap();
    queue.submit(&[job("a")]).await.unwrap();
    for file in std::fs::read_dir(path.parent().unwrap()).unwrap() {
        let file = file.unwrap();
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o077, 0, "{file:?}");
    }
    let store = Store::open(home.path(), Path::new("/a/app")).unwrap();
    let of_runs = store.folder(&crate::id::RunId::new("any")).path().join("../../fledge.db");
    let refused = SqliteQueue::open(&of_runs).unwrap_err();
    assert!(matches!(refused, StoreError::Foreign { .. }), "{refused}");
    rusqlite::Connection::open(&path).unwrap().execute_batch("PRAGMA user_version = 99").unwrap();
    let newer = SqliteQueue::open(&path).unwrap_err();
    assert!(matches!(newer, StoreError::Newer { found: 99, .. }), "{newer}");
}

#[tokio::test]
async fn after_a_failure_of_the_disk_nothing_is_written_again_and_what_was_kept_is_told() {
    let home = crate::test_support::temp_dir();
    let path = home.path().join("queue.db");
    let queue = SqliteQueue::open(&path).unwrap();
    queue.submit(&[job("a")]).await.unwrap();
    queue.tables.lock().await.break_off();
    let refused = queue.submit(&[job("b")]).await.unwrap_err();
    let why = std::error::Error::source(&refused).unwrap();
    assert_eq!(format!("{refused}: {why}"), format!("cannot submit jobs: cannot write {}", path.display()));
    assert_eq!(queue.jobs(&JobFilter::default()).await.unwrap().len(), 1);
    let again = SqliteQueue::open(&path).unwrap();
    assert_eq!(again.submit(&[job("b")]).await.unwrap(), [Submitted::Queued]);
}
