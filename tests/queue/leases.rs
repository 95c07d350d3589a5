//! Leases on jobs, and their tokens.

use crate::queue::stage::{LONG, Stage, job, jobs, outlived, row, take, taken, with};
use fledge::queue::{
    CancelScope, Completed, JobSpec, Priority, Queue, QueueState, Released, Renewed, ResultText, Retry,
};
use std::time::Duration;

pub(crate) fn what_is_said_with_a_lease_that_is_over_changes_nothing<S: Stage>() {
    with(async |_: &S, queue| {
        queue.submit(&jobs(&["a"])).await.unwrap();
        let old = outlived::<S>(&queue).await.unwrap();
        let nothing = async |word: Completed| {
            let before = row(&queue, "a").await;
            assert_eq!(queue.renew(&old).await.unwrap(), Renewed::Lost);
            assert_eq!(queue.complete(&old, &ResultText("late".into())).await.unwrap(), word);
            let failed = Retry::After { delay: Duration::ZERO, why: "late".into() };
            for retry in [failed, Retry::Unused] {
                assert_eq!(queue.release(&old, &retry).await.unwrap(), Released::Lost);
            }
            assert_eq!(queue.bury(&old, "late").await.unwrap(), Released::Lost);
            let after = row(&queue, "a").await;
            assert_eq!((before.state, before.attempt, before.result), (after.state, after.attempt, after.result));
        };
        nothing(Completed::Lost).await;
        let new = take(&queue).await.unwrap();
        assert!((old.attempt, old.token < new.token, new.attempt) == (1, true, 2), "{old:?}, {new:?}");
        nothing(Completed::Lost).await;
        assert_eq!(queue.renew(&new).await.unwrap(), Renewed::Kept);
        assert_eq!(queue.complete(&new, &ResultText("in time".into())).await.unwrap(), Completed::First);
        nothing(Completed::AlreadyDone).await;
        assert_eq!(row(&queue, "a").await.result.unwrap().manifest, ResultText("in time".into()));
    });
}

pub(crate) fn the_first_result_counts_and_who_repeats_it_hears_so<S: Stage>() {
    with(async |_: &S, queue| {
        queue.submit(&jobs(&["a"])).await.unwrap();
        let lease = take(&queue).await.unwrap();
        let hand_in = async |text: &str| queue.complete(&lease, &ResultText(text.into())).await.unwrap();
        assert_eq!((hand_in("one").await, hand_in("one").await), (Completed::First, Completed::First));
        assert_eq!(hand_in("two").await, Completed::AlreadyDone);
        let row = row(&queue, "a").await;
        let result = row.result.unwrap();
        assert_eq!((row.state, result.manifest.0.as_str(), result.token), (QueueState::Done, "one", lease.token));
        assert_eq!((result.attempt, result.worker), (1, lease.worker));
    });
}

pub(crate) fn a_number_of_a_lease_is_never_used_again<S: Stage>() {
    with(async |_: &S, queue| {
        let mut tokens = Vec::new();
        let mut first = None;
        for _ in 0..3 {
            queue.submit(&jobs(&["a"])).await.unwrap();
            let lease = take(&queue).await.unwrap();
            assert_eq!(lease.attempt, 1, "forgotten, it is another job");
            tokens.push(lease.token);
            first.get_or_insert(lease);
            queue.cancel(&CancelScope::Job(crate::queue::stage::id("a"))).await.unwrap();
            let last = take(&queue).await;
            assert_eq!(last, None);
            let held = first.as_ref().unwrap();
            let newest = fledge::queue::JobLease { token: *tokens.last().unwrap(), ..held.clone() };
            assert_eq!(queue.release(&newest, &Retry::Unused).await.unwrap(), Released::Cancelled);
            assert_eq!(queue.gc(Duration::ZERO).await.unwrap(), 1);
            assert_eq!(queue.renew(held).await.unwrap(), Renewed::Lost);
        }
        assert!(tokens.is_sorted_by(|one, next| one < next), "{tokens:?}");
    });
}

pub(crate) fn a_job_that_is_given_back_keeps_its_place<S: Stage>() {
    with(async |_: &S, queue| {
        queue.submit(&jobs(&["a", "b", "c"])).await.unwrap();
        queue.submit(&[JobSpec { priority: Priority::Low, ..job("low") }]).await.unwrap();
        let a = take(&queue).await.unwrap();
        assert_eq!(queue.release(&a, &Retry::Unused).await.unwrap(), Released::Queued);
        let a = take(&queue).await.unwrap();
        assert_eq!((a.job.as_str(), a.attempt), ("a", 1), "it was not used");
        let later = Retry::After { delay: LONG, why: "429".into() };
        assert_eq!(queue.release(&a, &later).await.unwrap(), Released::Queued);
        let b = take(&queue).await.unwrap();
        let at_once = Retry::After { delay: Duration::ZERO, why: "429".into() };
        assert_eq!(queue.release(&b, &at_once).await.unwrap(), Released::Queued);
        let b = take(&queue).await.unwrap();
        assert_eq!((b.job.as_str(), b.attempt, b.is_last), ("b", 2, false));
        assert_eq!(
            (taken(&queue).await, taken(&queue).await, taken(&queue).await),
            ("c".into(), "low".into(), String::new())
        );
        let row = row(&queue, "a").await;
        assert_eq!((row.state, row.attempt, row.delay > LONG / 2), (QueueState::Queued, 1, true));
    });
}
