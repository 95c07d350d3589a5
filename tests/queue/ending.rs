//! The ends of jobs, and their reports.

use crate::queue::stage::{LONG, Stage, batch, id, job, jobs, outlived, row, rows, take, with};
use fledge::queue::{
    BuryReason, JobFilter, JobLease, JobSpec, Queue, QueueState, QueueStatus, Released, ResultText, Retry, Revived,
};
use std::time::Duration;

pub(crate) fn after_the_last_delivery_a_job_is_dead_with_its_reason_until_it_is_revived<S: Stage>() {
    with(async |_: &S, queue| {
        let fail = async |lease: &JobLease, why: &str| {
            let retry = Retry::After { delay: Duration::ZERO, why: why.into() };
            queue.release(lease, &retry).await.unwrap()
        };
        queue.submit(&jobs(&["vanished"])).await.unwrap();
        for attempt in 1..=3 {
            let lease = outlived::<S>(&queue).await.unwrap();
            assert_eq!((lease.attempt, lease.is_last), (attempt, attempt == 3));
        }
        queue.submit(&jobs(&["failed"])).await.unwrap();
        for ends in [Released::Queued, Released::Queued, Released::Buried] {
            let lease = take(&queue).await.unwrap();
            assert_eq!(fail(&lease, &format!("try {}", lease.attempt)).await, ends);
        }
        queue.submit(&jobs(&["refused"])).await.unwrap();
        let lease = take(&queue).await.unwrap();
        assert_eq!(queue.bury(&lease, "no such repository").await.unwrap(), Released::Buried);
        assert_eq!(take(&queue).await, None);
        let dead = queue.jobs(&JobFilter { state: Some(QueueState::Dead), ..JobFilter::default() }).await.unwrap();
        let told: Vec<_> = dead.iter().map(|row| (row.id.as_str(), row.attempt, row.why.clone().unwrap())).collect();
        let (failed, refused) = (BuryReason::Failed("try 3".into()), BuryReason::Refused("no such repository".into()));
        assert_eq!(told, [("vanished", 3, BuryReason::Vanished), ("failed", 3, failed), ("refused", 1, refused)]);
        assert_eq!(dead[0].worker.as_ref().unwrap().as_str(), "brief", "who had it last");

        assert_eq!(queue.revive(&id("failed")).await.unwrap(), Revived::Queued);
        assert_eq!(queue.revive(&id("failed")).await.unwrap(), Revived::Is(QueueState::Queued));
        assert_eq!(queue.revive(&id("nobody")).await.unwrap(), Revived::Unknown);
        let lease = take(&queue).await.unwrap();
        assert_eq!((lease.job.as_str(), lease.attempt), ("failed", 1));
        assert_eq!(fail(&lease, "again").await, Released::Queued);
        let lease = take(&queue).await.unwrap();
        queue.complete(&lease, &ResultText("well".into())).await.unwrap();
        let row = row(&queue, "failed").await;
        assert_eq!((row.state, row.attempt, row.why), (QueueState::Done, 2, None));
    });
}

pub(crate) fn a_queue_tells_of_its_jobs_page_by_page<S: Stage>() {
    with(async |_: &S, queue| {
        queue.submit(&jobs(&["e", "d", "c"])).await.unwrap();
        queue.submit(&[JobSpec { batch: batch("other"), ..job("b") }]).await.unwrap();
        let lease = take(&queue).await.unwrap();
        queue.complete(&lease, &ResultText("{}".into())).await.unwrap();
        take(&queue).await.unwrap();
        let names = async |which: JobFilter| {
            let rows = queue.jobs(&which).await.unwrap();
            rows.iter().map(|row| row.id.to_string()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(names(JobFilter::default()).await, "e d c b");
        let first = queue.jobs(&JobFilter { most: 1, ..JobFilter::default() }).await.unwrap().remove(0);
        assert_eq!(names(JobFilter { after: first.place, most: 2, ..JobFilter::default() }).await, "d c");
        assert_eq!(names(JobFilter { batch: Some(batch("other")), ..JobFilter::default() }).await, "b");
        let queued = JobFilter { state: Some(QueueState::Queued), batch: Some(batch("b")), ..JobFilter::default() };
        assert_eq!(names(queued).await, "c");
        let counts = |status: QueueStatus| (status.queued, status.running, status.done, status.dead + status.cancelled);
        let all = queue.status(None).await.unwrap();
        assert_eq!((all.open(), counts(all)), (3, (2, 1, 1, 0)));
        assert_eq!(counts(queue.status(Some(&batch("other"))).await.unwrap()), (1, 0, 0, 0));
        assert_eq!(queue.job(&id("nobody")).await.unwrap(), None);
    });
}

pub(crate) fn what_ended_long_ago_is_forgotten_and_nothing_else<S: Stage>() {
    with(async |_: &S, queue| {
        queue.submit(&jobs(&["done", "running", "queued"])).await.unwrap();
        let lease = take(&queue).await.unwrap();
        queue.complete(&lease, &ResultText("{}".into())).await.unwrap();
        take(&queue).await.unwrap();
        assert_eq!((queue.gc(LONG).await.unwrap(), queue.gc(Duration::ZERO).await.unwrap()), (0, 1));
        let left: Vec<_> = rows(&queue).await.iter().map(|row| row.id.to_string()).collect();
        assert_eq!(left, ["running", "queued"]);
    });
}
