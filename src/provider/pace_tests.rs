//! Tests of paced providers in virtual time: the number, time and order of requests.

use super::*;
use crate::chat::{Reply, StopReason};
use futures_util::future::join_all;
use std::sync::Mutex as Plain;
use tokio::time::{advance, sleep};

/// A slow model that records its requests and returns the given errors first.
#[derive(Debug)]
struct Slow {
    takes: Duration,
    began: Instant,
    asked: Plain<Vec<(u64, u64)>>,
    at_once: AtomicU32,
    most_at_once: AtomicU32,
    refusals: Plain<Vec<ModelError>>,
    name: &'static str,
}

impl Slow {
    fn new(takes_ms: u64, refusals: Vec<ModelError>) -> Arc<Self> {
        Arc::new(Self {
            takes: Duration::from_millis(takes_ms),
            began: Instant::now(),
            asked: Plain::default(),
            at_once: AtomicU32::new(0),
            most_at_once: AtomicU32::new(0),
            refusals: Plain::new(refusals),
            name: "test/slow",
        })
    }

    /// Returns the requests (by turn number) and their start, in milliseconds.
    fn asked(&self) -> Vec<(u64, u64)> {
        self.asked.lock().unwrap().clone()
    }
}

impl Provider for Slow {
    fn name(&self) -> String {
        self.name.into()
    }

    fn complete<'a>(&'a self, request: &'a ModelRequest, _: DeltaSink<'a>) -> PendingReply<'a> {
        Box::pin(async move {
            let after = u64::try_from(self.began.elapsed().as_millis()).unwrap();
            self.asked.lock().unwrap().push((request.turn, after));
            self.most_at_once.fetch_max(self.at_once.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            sleep(self.takes).await;
            self.at_once.fetch_sub(1, Ordering::SeqCst);
            match self.refusals.lock().unwrap().pop() {
                Some(refusal) => Err(refusal),
                None => Ok(Reply {
                    content: vec![],
                    stop: StopReason::EndTurn,
                    usage: None,
                    model: "slow".into(),
                    lacks_end: false,
                }),
            }
        })
    }
}

fn request(turn: u64) -> ModelRequest {
    ModelRequest { system: String::new(), messages: Arc::new([]), tools: Arc::new([]), turn, max_output: None }
}

fn rate(per_minute: u32, at_once: u32) -> RateLimit {
    let bound = NonZeroU32::new;
    RateLimit { per_minute: bound(per_minute), at_once: bound(at_once), max_wait: Duration::from_secs(120) }
}

fn refusal(retry_after_ms: u64) -> ModelError {
    ModelError { retry_after_ms: Some(retry_after_ms), ..ModelError::new(ModelErrorKind::Busy, "429") }
}

async fn ask(provider: &Arc<dyn Provider>, turn: u64) -> Result<(), ModelError> {
    provider.complete(&request(turn), &|_| {}).await.map(drop)
}

#[tokio::test(start_paused = true)]
async fn no_more_requests_begin_in_any_minute_than_may() {
    let (slow, pacer) = (Slow::new(0, vec![]), Pacer::default());
    let provider = pacer.pace(slow.clone(), "http://a", rate(3, 0));
    join_all((0..8).map(|turn| ask(&provider, turn))).await;
    let times: Vec<u64> = slow.asked().into_iter().map(|(_, after)| after).collect();
    assert_eq!(times, [0, 0, 0, 60_000, 60_000, 60_000, 120_000, 120_000]);
}

#[tokio::test(start_paused = true)]
async fn it_is_known_how_many_requests_wait() {
    let (slow, pacer) = (Slow::new(1000, vec![]), Pacer::default());
    let (provider, waiting) = (pacer.pace(slow.clone(), "http://a", rate(0, 1)), pacer.waiting());
    let asked = join_all((0..3).map(|turn| ask(&provider, turn)));
    let (_, seen) = tokio::join!(asked, async {
        let mut seen = Vec::new();
        for _ in 0..3 {
            sleep(Duration::from_millis(500)).await;
            seen.push(*waiting.borrow());
            sleep(Duration::from_millis(500)).await;
        }
        seen
    });
    assert_eq!((seen, *waiting.borrow()), (vec![2, 1, 0], 0));
}

#[tokio::test(start_paused = true)]
async fn runs_that_share_a_model_share_its_slots_in_order_of_arrival() {
    let (slow, pacer) = (Slow::new(1000, vec![]), Pacer::default());
    let runs: Vec<_> = (0..3).map(|_| pacer.clone().pace(slow.clone(), "http://a", rate(0, 2))).collect();
    join_all((0..6).map(|turn| ask(&runs[usize::try_from(turn % 3).unwrap()], turn))).await;
    assert_eq!(slow.asked(), [(0, 0), (1, 0), (2, 1000), (3, 1000), (4, 2000), (5, 2000)]);
    assert_eq!(slow.most_at_once.load(Ordering::SeqCst), 2);
}

#[tokio::test(start_paused = true)]
async fn other_models_and_other_addresses_are_counted_by_themselves() {
    let (one, other, pacer) = (Slow::new(1000, vec![]), Slow::new(1000, vec![]), Pacer::default());
    let near = pacer.pace(one.clone(), "http://a/", rate(1, 1));
    let far = pacer.pace(other.clone(), "http://b", rate(1, 1));
    let (first, second) = tokio::join!(ask(&near, 1), ask(&far, 1));
    assert_eq!((first, second, one.asked(), other.asked()), (Ok(()), Ok(()), vec![(1, 0)], vec![(1, 0)]));
}

#[tokio::test(start_paused = true)]
async fn a_wish_to_be_left_alone_holds_every_run_on_that_model_back() {
    let (slow, pacer) = (Slow::new(100, vec![refusal(5000)]), Pacer::default());
    let (one, other) =
        (pacer.pace(slow.clone(), "http://a", rate(0, 0)), pacer.pace(slow.clone(), "http://a", rate(0, 0)));
    assert_eq!(ask(&one, 1).await, Err(refusal(5000)));
    assert_eq!((ask(&other, 2).await, ask(&one, 3).await), (Ok(()), Ok(())));
    assert_eq!(slow.asked(), [(1, 0), (2, 5100), (3, 5200)]);
}

#[tokio::test(start_paused = true)]
async fn a_model_that_asks_for_a_pause_is_asked_after_it_and_delays_no_other_model() {
    let (slow, pacer) = (Slow::new(100, vec![refusal(5000)]), Pacer::default());
    let other = Arc::new(Slow { name: "test/other", ..Arc::into_inner(Slow::new(100, vec![])).unwrap() });
    let one = pacer.pace(slow.clone(), "http://a", rate(0, 0));
    let beside = pacer.pace(other.clone(), "http://a", rate(0, 0));
    assert_eq!((ask(&one, 1).await, ask(&beside, 2).await), (Err(refusal(5000)), Ok(())));
    assert_eq!(other.asked(), [(2, 100)]);
    advance(Duration::from_secs(10)).await;
    assert_eq!((ask(&one, 3).await, ask(&one, 4).await), (Ok(()), Ok(())));
    assert_eq!(slow.asked(), [(1, 0), (3, 10_200), (4, 10_300)]);
}

#[tokio::test(start_paused = true)]
async fn a_pause_longer_than_the_limit_fails_all_waiting_calls_at_once() {
    let (slow, pacer) = (Slow::new(100, vec![refusal(600_000)]), Pacer::default());
    let provider = pacer.pace(slow.clone(), "http://a", rate(0, 1));
    let all = join_all((0..3).map(|turn| ask(&provider, turn))).await;
    let wish = |done: &Result<(), ModelError>| done.as_ref().map_err(|error| (error.fault, error.retry_after_ms)).err();
    let refused = Some((ModelErrorKind::Busy, Some(600_000)));
    assert_eq!(all.iter().map(wish).collect::<Vec<_>>(), [refused, refused, refused]);
    advance(Duration::from_secs(500)).await;
    assert_eq!(wish(&ask(&provider, 3).await), None, "100 s are within what anybody waits");
    assert_eq!(slow.asked(), [(0, 0), (3, 600_100)]);
}

#[tokio::test(start_paused = true)]
async fn what_is_dropped_while_it_waits_leaves_no_trace() {
    let (slow, pacer) = (Slow::new(1000, vec![]), Pacer::default());
    let provider = pacer.pace(slow.clone(), "http://a", rate(2, 1));
    let last = async {
        sleep(Duration::from_millis(20)).await;
        ask(&provider, 9).await
    };
    let impatient = |turn| tokio::time::timeout(Duration::from_millis(10), ask(&provider, turn));
    let (first, dropped, also, last) = tokio::join!(ask(&provider, 1), impatient(2), impatient(3), last);
    assert!(first.is_ok() && dropped.is_err() && also.is_err() && last.is_ok());
    assert_eq!(slow.asked(), [(1, 0), (9, 1000)]);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_dropped_under_way_gives_its_slot_to_the_next() {
    let (slow, pacer) = (Slow::new(60_000, vec![]), Pacer::default());
    let provider = pacer.pace(slow.clone(), "http://a", rate(0, 1));
    let cut = tokio::time::timeout(Duration::from_millis(10), ask(&provider, 1));
    let (cut, next) = tokio::join!(cut, ask(&provider, 2));
    assert!(cut.is_err() && next.is_ok());
    assert_eq!(slow.asked(), [(1, 0), (2, 10)]);
}

#[tokio::test(start_paused = true)]
async fn a_thousand_runs_are_served_in_order_and_none_is_forgotten() {
    let (slow, pacer) = (Slow::new(10, vec![]), Pacer::default());
    let runs: Vec<_> = (0..1000).map(|_| pacer.pace(slow.clone(), "http://a", rate(0, 7))).collect();
    join_all(runs.iter().zip(0..).map(|(run, turn)| ask(run, turn))).await;
    let order: Vec<u64> = slow.asked().into_iter().map(|(turn, _)| turn).collect();
    assert_eq!(order, (0..1000).collect::<Vec<_>>());
    assert_eq!(slow.most_at_once.load(Ordering::SeqCst), 7);
}
