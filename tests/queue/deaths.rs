//! Workers that hang, are killed, are stopped, or are killed by their job.

use crate::queue::stage::{Stage, id, job, row, rows, until, with, worker};
use crate::queue::worker::{Line, Log, Process, start};
use crate::support::PATIENCE;
use crate::support::dice;
use fledge::queue::{BuryReason, JobSpec, Queue, QueueState, QueuedJob, Revived};
use rustix::process::Signal;
use std::num::NonZeroU32;
use std::time::Duration;

/// The term of a lease, after which a dead worker's job is delivered again.
const SHORT: Duration = Duration::from_millis(300);

pub(crate) fn who_renews_keeps_its_job_and_who_hangs_loses_it<S: Stage>() {
    with(async |stage: &S, queue| {
        let (log, term) = (Log::new(), Duration::from_secs(1));
        queue.submit(&[("long", "work 2500"), ("hangs", "hang")].map(doing)).await.unwrap();
        let mut workers = ["a", "b", "c"].map(|name| start(stage, &log, name, term));
        until(async || queue.status(None).await.unwrap().done == 2).await;
        workers.iter_mut().for_each(Process::end);
        let lines = log.lines();
        let begun = |job: &str| lines.iter().filter(|line| line.word == "begin" && line.job == job).count();
        assert!(begun("long") == 1 || log.count("late") > 0, "{lines:?}");
        assert!(begun("hangs") >= 2, "{lines:?}");
        let (long, hangs) = (row(&queue, "long").await, row(&queue, "hangs").await);
        assert!(long.attempt == 1 || log.count("late") > 0, "{long:?}");
        assert!(hangs.result.unwrap().attempt >= 2);
    });
}

pub(crate) fn a_job_of_a_killed_process_is_delivered_again<S: Stage>() {
    with(async |stage: &S, queue| {
        let log = Log::new();
        queue.submit(&[doing(("a", "hang"))]).await.unwrap();
        let mut killed = start(stage, &log, "killed", SHORT);
        until(async || log.count("begin") == 1).await;
        killed.end();
        let mut other = start(stage, &log, "other", SHORT);
        until(async || queue.status(None).await.unwrap().done == 1).await;
        assert!(other.wait().success());
        let result = row(&queue, "a").await.result.unwrap();
        assert_eq!(result.worker.as_str(), "other");
        // A worker whose result comes too late claims the job once more.
        assert_eq!(result.attempt as usize, 2 + log.count("refused"));
        one_result_each(&rows(&queue).await, &log.lines());
    });
}

pub(crate) fn a_stopped_process_that_goes_on_cannot_hand_in_its_result<S: Stage>() {
    with(async |stage: &S, queue| {
        for (payload, hears) in [("gate", "refused"), ("gate-renewing", "lost")] {
            let (log, name) = (Log::new(), format!("job-{payload}"));
            queue.submit(&[doing((&name, payload))]).await.unwrap();
            let mut stopped = start(stage, &log, "stopped", SHORT);
            until(async || log.count("begin") == 1).await;
            stopped.signal(Signal::STOP);
            let mut other = start(stage, &log, "other", SHORT);
            until(async || row(&queue, &name).await.state == QueueState::Done).await;
            stopped.signal(Signal::CONT);
            if hears == "refused" {
                log.open_gate();
            }
            until(async || log.count(hears) == 1).await;
            assert!(stopped.wait().success() && other.wait().success());
            let result = row(&queue, &name).await.result.unwrap();
            assert!((result.attempt, result.worker.as_str()) == (2, "other") || log.count("late") > 0, "{result:?}");
            one_result_each(&rows(&queue).await, &log.lines());
        }
    });
}

pub(crate) fn what_kills_every_worker_is_dead_after_its_last_delivery<S: Stage>() {
    with(async |stage: &S, queue| {
        let log = Log::new();
        queue.submit(&[("poison", "die"), ("well", "work 0")].map(doing)).await.unwrap();
        for deliveries in [3, 6] {
            tokio::time::timeout(PATIENCE, async {
                while queue.status(None).await.unwrap().open() > 0 {
                    start(stage, &log, "w", SHORT).wait();
                }
            })
            .await
            .unwrap();
            let poison = row(&queue, "poison").await;
            assert_eq!((poison.state, poison.attempt, poison.why), (QueueState::Dead, 3, Some(BuryReason::Vanished)));
            let begun = log.lines().iter().filter(|line| line.word == "begin" && line.job == "poison").count();
            assert_eq!((begun, row(&queue, "well").await.state), (deliveries, QueueState::Done));
            assert_eq!(queue.revive(&id("poison")).await.unwrap(), Revived::Queued);
        }
    });
}

pub(crate) fn processes_killed_by_chance_lose_nothing_and_do_nothing_twice<S: Stage>() {
    with(async |stage: &S, queue| {
        let (log, mut dice) = (Log::new(), dice("processes killed"));
        let of =
            |at| JobSpec { deliveries: NonZeroU32::new(1000).unwrap(), ..doing((&format!("job-{at}"), "work 20")) };
        queue.submit(&(0..60).map(of).collect::<Vec<_>>()).await.unwrap();
        let mut count = 0..;
        let mut next = || start(stage, &log, worker(&format!("w-{}", count.next().unwrap())).id.as_str(), SHORT);
        let mut workers = [next(), next(), next()];
        for _ in 0..12 {
            tokio::time::sleep(Duration::from_millis(dice.below(160))).await;
            let killed = &mut workers[dice.index(3)];
            killed.end();
            *killed = next();
        }
        until(async || queue.status(None).await.unwrap().open() == 0).await;
        let rows = rows(&queue).await;
        assert!(rows.iter().all(|row| row.state == QueueState::Done), "{rows:?}");
        one_result_each(&rows, &log.lines());
    });
}

/// Returns a job that does what its payload says.
fn doing((name, payload): (&str, &str)) -> JobSpec {
    JobSpec { payload: payload.into(), ..job(name) }
}

/// Asserts that the log of the workers agrees with the queue.
pub(crate) fn one_result_each(rows: &[QueuedJob], lines: &[Line]) {
    for row in rows {
        let of = |word: &str| {
            lines.iter().filter(|line| line.word == word && line.job == row.id.as_str()).collect::<Vec<_>>()
        };
        let (begun, results) = (of("begin"), of("result"));
        assert!(begun.is_sorted_by(|one, next| one.token < next.token), "delivered twice by one number: {begun:?}");
        let kept = row.result.as_ref();
        assert!(results.len() <= 1, "two results counted: {results:?}");
        assert!(results.iter().all(|line| kept.is_some_and(|kept| kept.token == line.token)), "{results:?}, {kept:?}");
        let is_begun = |token| begun.iter().any(|line| line.token == token);
        assert!(kept.is_none_or(|kept| begun.is_empty() || is_begun(kept.token)), "{kept:?}, {begun:?}");
    }
}
