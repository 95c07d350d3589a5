//! The order and the time of deliveries.

use crate::queue::stage::{LONG, Stage, batch, job, jobs, outlived, pool, row, rows, take, taken, until, with, worker};
use crate::support::PATIENCE;
use fledge::queue::{Completed, JobSpec, MOST_BYTES, Priority, Queue, QueueError, ResultText, Submitted, Worker};
use std::time::{Duration, Instant};

/// A short time that tests wait for.
const BRIEF: Duration = Duration::from_millis(50);
/// The time resolution of a queue.
const TICK: Duration = Duration::from_millis(2);

pub(crate) fn a_job_that_is_submitted_often_and_by_many_is_one_job<S: Stage>() {
    with(async |stage: &S, queue| {
        let twice = queue.submit(&jobs(&["a", "b", "a"])).await.unwrap();
        assert_eq!(twice, [Submitted::Queued, Submitted::Queued, Submitted::Duplicate]);
        let lease = take(&queue).await.unwrap();
        assert_eq!(queue.submit(&jobs(&["a"])).await.unwrap(), [Submitted::Duplicate]);
        assert_eq!(queue.complete(&lease, &ResultText("one".into())).await.unwrap(), Completed::First);
        assert_eq!(queue.submit(&jobs(&["a"])).await.unwrap(), [Submitted::Duplicate]);
        assert_eq!((taken(&queue).await, taken(&queue).await), ("b".into(), String::new()));

        let many: Vec<JobSpec> = (0..20).map(|number| job(&format!("many-{number}"))).collect();
        let each = (0..4).map(|_| async {
            let queue = stage.open().await;
            let said = queue.submit(&many).await.unwrap();
            said.iter().filter(|said| **said == Submitted::Queued).count()
        });
        let added: usize = futures_util::future::join_all(each).await.into_iter().sum();
        assert_eq!((added, rows(&queue).await.len()), (20, 22));
    });
}

pub(crate) fn a_higher_priority_goes_first_and_equals_in_the_order_of_their_submission<S: Stage>() {
    with(async |_: &S, queue| {
        let of = |name: String, priority| JobSpec { priority, ..job(&name) };
        let low: Vec<_> = (0..100).map(|number| of(format!("low-{number}"), Priority::Low)).collect();
        queue.submit(&low).await.unwrap();
        queue.submit(&jobs(&["z", "y"])).await.unwrap();
        let high = JobSpec { pool: pool("other"), ..of("x".into(), Priority::High) };
        queue.submit(&[JobSpec { pool: pool("other"), ..job("a") }, high]).await.unwrap();
        let mut order = Vec::new();
        for _ in 0..7 {
            let lease = queue.claim(&worker("w"), &[pool("other"), pool("p")], Duration::ZERO).await.unwrap();
            order.push(lease.unwrap().job.to_string());
        }
        assert_eq!(order, ["x", "z", "y", "a", "low-0", "low-1", "low-2"]);
    });
}

pub(crate) fn a_limit_holds_over_all_priorities_and_batches<S: Stage>() {
    with(async |_: &S, queue| {
        queue.limit(&pool("p"), Some(2)).await.unwrap();
        let other = JobSpec { batch: batch("other"), priority: Priority::High, ..job("a") };
        queue.submit(&[other, job("b"), JobSpec { priority: Priority::Low, ..job("c") }, job("d")]).await.unwrap();
        queue.submit(&[JobSpec { pool: pool("free"), ..job("e") }]).await.unwrap();
        let (a, b) = (take(&queue).await.unwrap(), take(&queue).await.unwrap());
        assert_eq!(take(&queue).await, None, "two run");
        let elsewhere = queue.claim(&worker("w"), &[pool("p"), pool("free")], Duration::ZERO).await.unwrap();
        assert_eq!(elsewhere.unwrap().job.as_str(), "e");
        queue.complete(&a, &ResultText("a".into())).await.unwrap();
        assert_eq!((taken(&queue).await, taken(&queue).await), ("d".into(), String::new()));
        queue.limit(&pool("p"), Some(1)).await.unwrap();
        queue.bury(&b, "no").await.unwrap();
        assert_eq!(take(&queue).await, None, "one runs, and one may");
        let pools = queue.status(None).await.unwrap().pools;
        let shown: Vec<_> =
            pools.iter().map(|pool| (pool.name.as_str(), pool.limit, pool.queued, pool.running)).collect();
        assert_eq!(shown, [("free", None, 0, 1), ("p", Some(1), 1, 1)]);
        queue.limit(&pool("p"), None).await.unwrap();
        assert_eq!(taken(&queue).await, "c");
        queue.limit(&pool("p"), Some(3)).await.unwrap();
        queue.submit(&jobs(&["f", "g"])).await.unwrap();
        assert!(outlived::<S>(&queue).await.is_some(), "two run, and three may");
        assert_eq!(
            (taken(&queue).await, taken(&queue).await),
            ("f".into(), String::new()),
            "what a dead worker had is free"
        );
    });
}

pub(crate) fn a_paused_pool_gives_nothing_until_the_longest_pause_is_over<S: Stage>() {
    with(async |_: &S, queue| {
        queue.submit(&jobs(&["a", "b", "c"])).await.unwrap();
        queue.submit(&[JobSpec { pool: pool("other"), ..job("d") }]).await.unwrap();
        let (p, both) = (pool("p"), [pool("p"), pool("other")]);
        queue.pause(&p, LONG).await.unwrap();
        queue.pause(&p, Duration::from_millis(1)).await.unwrap();
        assert_eq!(queue.claim(&worker("w"), &both, Duration::ZERO).await.unwrap().unwrap().job.as_str(), "d");
        assert_eq!(take(&queue).await, None);
        let paused = queue.status(None).await.unwrap().pools.into_iter().find(|pool| pool.name == p).unwrap().paused;
        assert!(paused > LONG / 2 && paused <= LONG, "{paused:?}");
        queue.resume(&p).await.unwrap();
        assert_eq!(taken(&queue).await, "a");
        let begun = Instant::now();
        queue.pause(&p, BRIEF).await.unwrap();
        assert_eq!(queue.claim(&worker("w"), &both, PATIENCE).await.unwrap().unwrap().job.as_str(), "b");
        assert!(begun.elapsed() + TICK >= BRIEF, "{:?}", begun.elapsed());
    });
}

pub(crate) fn a_job_starts_when_its_time_has_come<S: Stage>() {
    with(async |_: &S, queue| {
        let delayed = |name: &str, delay| JobSpec { delay, ..job(name) };
        queue.submit(&[delayed("never", LONG), job("now")]).await.unwrap();
        assert_eq!(taken(&queue).await, "now");
        let begun = Instant::now();
        queue.submit(&[delayed("soon", BRIEF)]).await.unwrap();
        let delay = row(&queue, "never").await.delay;
        assert!(delay > LONG / 2 && delay <= LONG, "{delay:?}");
        let lease = queue.claim(&worker("w"), &[pool("p")], PATIENCE).await.unwrap().unwrap();
        assert_eq!((lease.job.as_str(), lease.attempt, lease.payload.as_str()), ("soon", 1, "do soon"));
        assert!(begun.elapsed() + TICK >= BRIEF, "{:?}", begun.elapsed());
        assert_eq!(take(&queue).await, None);
    });
}

pub(crate) fn a_worker_of_one_batch_has_its_jobs_alone<S: Stage>() {
    with(async |_: &S, queue| {
        queue.submit(&[job("a"), JobSpec { batch: batch("other"), ..job("b") }]).await.unwrap();
        let other = Worker { batch: Some(batch("other")), ..worker("w") };
        let claim = async || queue.claim(&other, &[pool("p")], Duration::ZERO).await.unwrap();
        assert_eq!(claim().await.unwrap().job.as_str(), "b");
        assert_eq!(claim().await, None);
        assert_eq!(taken(&queue).await, "a");
    });
}

pub(crate) fn who_waits_has_the_job_that_another_connection_brings<S: Stage>() {
    with(async |stage: &S, queue| {
        assert_eq!(queue.claim(&worker("w"), &[pool("p")], Duration::from_millis(20)).await.unwrap(), None);
        let (other, worker, pools) = (stage.open().await, worker("w"), [pool("p")]);
        let (lease, _) = tokio::join!(queue.claim(&worker, &pools, PATIENCE), async {
            tokio::time::sleep(Duration::from_millis(30)).await; // so that `claim` most likely waits first
            other.submit(&jobs(&["a"])).await.unwrap()
        });
        assert_eq!(lease.unwrap().unwrap().job.as_str(), "a");
        until(async || other.status(None).await.unwrap().running == 1).await;
    });
}

pub(crate) fn what_is_too_large_is_refused_and_nothing_is_added<S: Stage>() {
    with(async |_: &S, queue| {
        let of = |bytes| JobSpec { payload: "x".repeat(bytes), ..job("large") };
        let refused = queue.submit(&[job("a"), of(MOST_BYTES + 1)]).await.unwrap_err();
        assert!(matches!(&refused, QueueError::TooLarge { what: "payload", .. }), "{refused}");
        assert_eq!(rows(&queue).await, []);
        queue.submit(&[of(MOST_BYTES)]).await.unwrap();
        let lease = take(&queue).await.unwrap();
        assert_eq!(lease.payload.len(), MOST_BYTES);
        let refused = queue.complete(&lease, &ResultText("x".repeat(MOST_BYTES + 1))).await.unwrap_err().to_string();
        let expected = "the manifest of job large has 262145 bytes, more than the limit of 262144: \
            store large data elsewhere and refer to it by its digest";
        assert_eq!(refused, expected);
        assert_eq!(queue.complete(&lease, &ResultText("x".repeat(MOST_BYTES))).await.unwrap(), Completed::First);
    });
}
