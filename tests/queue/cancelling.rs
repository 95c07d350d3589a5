//! Cancellation of waiting and running jobs.

use crate::queue::stage::{Stage, batch, id, job, jobs, outlived, row, take, taken, until, with};
use crate::queue::worker::{Log, start};
use crate::support::PATIENCE;
use fledge::queue::{
    CancelCount, CancelScope, Completed, JobSpec, Queue, QueueState, Released, Renewed, ResultText, Retry, Revived,
};
use std::time::Duration;

pub(crate) fn what_waits_never_starts_and_what_runs_hears_of_it<S: Stage>() {
    with(async |_: &S, queue| {
        queue.submit(&jobs(&["a", "b", "c", "d"])).await.unwrap();
        queue.submit(&[JobSpec { batch: batch("other"), ..job("e") }]).await.unwrap();
        assert_eq!(queue.cancel(&CancelScope::Job(id("b"))).await.unwrap(), CancelCount { ended: 1, running: 0 });
        let (a, c) = (take(&queue).await.unwrap(), take(&queue).await.unwrap());
        assert_eq!(queue.cancel(&CancelScope::Job(id("a"))).await.unwrap(), CancelCount { ended: 0, running: 1 });
        assert_eq!(
            (queue.renew(&a).await.unwrap(), queue.renew(&c).await.unwrap()),
            (Renewed::Cancelled, Renewed::Kept)
        );
        assert_eq!(queue.cancel(&CancelScope::Batch(batch("b"))).await.unwrap(), CancelCount { ended: 1, running: 2 });
        assert_eq!((taken(&queue).await, taken(&queue).await), ("e".into(), String::new()));
        assert_eq!(queue.status(None).await.unwrap().cancelling, 2);
        assert!(row(&queue, "a").await.is_cancelling);
        for lease in [&a, &c] {
            assert_eq!(queue.renew(lease).await.unwrap(), Renewed::Cancelled);
            let retry = Retry::After { delay: Duration::ZERO, why: "stopped".into() };
            assert_eq!(queue.release(lease, &retry).await.unwrap(), Released::Cancelled);
            assert_eq!(queue.renew(lease).await.unwrap(), Renewed::Lost);
        }
        let status = queue.status(Some(&batch("b"))).await.unwrap();
        assert_eq!((status.cancelled, status.cancelling, status.open()), (4, 0, 0));
        assert_eq!(queue.cancel(&CancelScope::Batch(batch("b"))).await.unwrap(), CancelCount::default());
        assert_eq!(queue.revive(&id("d")).await.unwrap(), Revived::Queued);
        queue.submit(&jobs(&["f"])).await.unwrap();
        assert_eq!((taken(&queue).await, taken(&queue).await), ("d".into(), "f".into()), "they came later");
    });
}

pub(crate) fn a_cancelled_job_ends_with_its_lease_or_with_its_result<S: Stage>() {
    with(async |_: &S, queue| {
        queue.submit(&jobs(&["a", "b", "c"])).await.unwrap();
        let (a, b) = (take(&queue).await.unwrap(), take(&queue).await.unwrap());
        queue.cancel(&CancelScope::Batch(batch("b"))).await.unwrap();
        assert_eq!(queue.complete(&a, &ResultText("in time".into())).await.unwrap(), Completed::First);
        assert_eq!(queue.bury(&b, "no").await.unwrap(), Released::Cancelled);
        let states =
            async || (row(&queue, "a").await.state, row(&queue, "b").await.state, row(&queue, "c").await.state);
        assert_eq!(states().await, (QueueState::Done, QueueState::Cancelled, QueueState::Cancelled));
        assert_eq!(queue.revive(&id("c")).await.unwrap(), Revived::Queued);
        let brief = fledge::queue::Worker { term: S::SHORTEST, ..crate::queue::stage::worker("brief") };
        queue.claim(&brief, &[crate::queue::stage::pool("p")], Duration::ZERO).await.unwrap().unwrap();
        queue.cancel(&CancelScope::Job(id("c"))).await.unwrap();
        until(async || row(&queue, "c").await.state != QueueState::Running).await;
        assert_eq!(states().await.2, QueueState::Cancelled, "its worker died");
        assert_eq!(outlived::<S>(&queue).await, None);
    });
}

pub(crate) fn a_process_that_works_hears_of_a_cancellation_soon<S: Stage>() {
    with(async |stage: &S, queue| {
        let log = Log::new();
        queue.submit(&["a", "b"].map(|name| JobSpec { payload: "work 60000".into(), ..job(name) })).await.unwrap();
        let mut worker = start(stage, &log, "w", Duration::from_secs(60));
        until(async || log.count("begin") == 1).await;
        queue.cancel(&CancelScope::Batch(batch("b"))).await.unwrap();
        tokio::time::timeout(PATIENCE, async { until(async || log.count("stop") == 1).await }).await.unwrap();
        until(async || queue.status(None).await.unwrap().cancelled == 2).await;
        worker.end();
        assert_eq!((log.count("begin"), log.count("result")), (1, 0));
    });
}
