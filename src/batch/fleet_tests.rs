//! Test that runs continue while the source stores an outcome.

use super::*;
use crate::batch::course::{Before, Bounds, Seat};
use crate::test_support::PATIENCE;
use tokio::sync::Mutex;

/// A source with one lock, which both `errand` and `over` need.
#[derive(Default)]
struct OneDoor {
    door: Mutex<()>,
}

impl Source for OneDoor {
    async fn errand(&self, job: usize, _: u32, _: Option<u64>) -> Result<Errand, Refusal> {
        for _ in 0..100 {
            drop(self.door.lock().await);
            tokio::task::yield_now().await;
        }
        Err(Refusal { reason: Reason::BadInput, message: format!("no {job}") })
    }

    async fn over(&self, _: usize, _: &Outcome) -> Result<(), Refusal> {
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
    let seat = |name: &str| Seat { name: name.into(), title: name.into(), ..Seat::default() };
    let names: Vec<(String, String)> = ["a", "b", "c"].map(|name| (name.to_owned(), name.to_owned())).into();
    let mut course =
        Course::new(Bounds { jobs: 3, ..Bounds::default() }, vec![seat("a"), seat("b"), seat("c")], |_| {
            Before::Nothing
        });
    let (stop, tell, source) = (Stop::default(), Tell::new(|_| {}), OneDoor::default());
    let ran = run(&mut course, &names, &source, &stop, &tell);
    let ran = tokio::time::timeout(PATIENCE, ran).await;
    assert_eq!(ran, Ok(Ok(())));
    assert_eq!(course.outcomes().count(), 3);
}
