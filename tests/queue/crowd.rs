//! Many concurrent workers.

use crate::queue::stage::{Stage, job, pool, rows, with};
use crate::queue::worker::{Log, start};
use fledge::queue::{JobSpec, Priority, Queue, QueueState};
use std::collections::BTreeSet;
use std::time::Duration;

const MINUTE: Duration = Duration::from_secs(60);

pub(crate) fn many_jobs_and_processes_leave_one_result_each_and_nothing_else<S: Stage>() {
    with(async |stage: &S, queue| {
        let log = Log::new();
        let many: Vec<_> =
            (0..200).map(|at| JobSpec { payload: "work 0".into(), ..job(&format!("job-{at}")) }).collect();
        queue.submit(&many).await.unwrap();
        let workers = ["a", "b", "c", "d"].map(|name| start(stage, &log, name, MINUTE));
        workers.into_iter().for_each(|mut worker| assert!(worker.wait().success()));
        let (rows, lines) = (rows(&queue).await, log.lines());
        assert!(rows.iter().all(|row| (row.state, row.attempt) == (QueueState::Done, 1)), "{rows:?}");
        for word in ["begin", "result"] {
            let of: Vec<_> = lines.iter().filter(|line| line.word == word).collect();
            let jobs: BTreeSet<_> = of.iter().map(|line| &line.job).collect();
            assert_eq!((of.len(), jobs.len()), (200, 200), "{word}");
        }
        let tokens: BTreeSet<_> = rows.iter().map(|row| row.result.as_ref().unwrap().token).collect();
        assert_eq!(tokens.len(), 200);
        let status = queue.status(None).await.unwrap();
        assert_eq!((status.done, status.open(), status.pools[0].running), (200, 0, 0));
    });
}

pub(crate) fn more_processes_than_the_limit_never_run_more_than_it<S: Stage>() {
    with(async |stage: &S, queue| {
        let (log, limit) = (Log::new(), 2);
        queue.limit(&pool("p"), Some(limit)).await.unwrap();
        let priorities = [Priority::Low, Priority::Normal, Priority::High];
        let of = |at: usize| JobSpec {
            payload: "work 10".into(),
            priority: priorities[at % 3],
            ..job(&format!("job-{at}"))
        };
        queue.submit(&(0..36).map(of).collect::<Vec<_>>()).await.unwrap();
        let workers = ["a", "b", "c", "d", "e", "f"].map(|name| start(stage, &log, name, MINUTE));
        workers.into_iter().for_each(|mut worker| assert!(worker.wait().success()));
        let mut running = 0;
        for line in log.lines() {
            match line.word.as_str() {
                "begin" => running += 1,
                "end" => running -= 1,
                _ => {}
            }
            assert!(running <= limit, "{line:?}");
        }
        assert_eq!(queue.status(None).await.unwrap().done, 36);
    });
}
