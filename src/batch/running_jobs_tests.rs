//! Test that runs continue while the source stores an outcome.

use super::*;
use crate::batch::job_scheduler::{BatchLimits, JobSlot, KnownJob};
use crate::test_support::PATIENCE;
use tokio::sync::Mutex;

/// A source with one lock, which both `errand` and `keep_outcome` need.
#[derive(Default)]
struct OneDoor {
    door: Mutex<()>,
}

impl JobSource for OneDoor {
    async fn errand(&self, job: usize, _: u32, _: Option<u64>) -> Result<PreparedJob, JobRefusal> {
        for _ in 0..100 {
            drop(self.door.lock().await);
            tokio::task::yield_now().await;
        }
        Err(JobRefusal { reason: Reason::BadInput, message: format!("no {job}") })
    }

    async fn keep_outcome(&self, _: usize, _: &FinishedJob) -> Result<(), JobRefusal> {
        for _ in 0..100 {
            let held = self.door.lock().await;
            tokio::task::yield_now().await;
            drop(held);
        }
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn runs_go_on_while_it_is_kept_what_another_one_came_to() {
    let seat = |name: &str| JobSlot { name: name.into(), title: name.into(), ..JobSlot::default() };
    let names: Vec<(String, String)> = ["a", "b", "c"].map(|name| (name.to_owned(), name.to_owned())).into();
    let mut course = BatchScheduler::new(
        BatchLimits { jobs: 3, ..BatchLimits::default() },
        vec![seat("a"), seat("b"), seat("c")],
        |_| KnownJob::Nothing,
    );
    let (stop, tell, source) = (StopToken::default(), BatchListener::new(|_| {}), OneDoor::default());
    let ran = run(&mut course, &names, &source, &stop, &tell);
    let ran = tokio::time::timeout(PATIENCE, ran).await;
    assert_eq!(ran, Ok(Ok(())));
    assert_eq!(course.outcomes().count(), 3);
}
