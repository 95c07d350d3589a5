//! Notifications of health changes over real connections, with a settable clock.

use super::notifications::NotifierTools;
use super::tests::{SetClock, at, ledger, named_monitor};
use super::*;
use crate::monitor::Status;
use crate::store::{NewsRow, Store};
use crate::test_support::{PATIENCE, ScriptedServer, ServerAct};
use jiff::SignedDuration;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Starts a server that answers successive requests with these statuses; 0 means no answer. Also
/// returns the address of its hook.
fn receiver(statuses: &[u16]) -> (String, ScriptedServer) {
    let script = |status: &u16| match status {
        0 => vec![ServerAct::Stall],
        status => {
            let answer = format!("HTTP/1.1 {status} So\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
            vec![ServerAct::Send(answer)]
        }
    };
    let server = ScriptedServer::start(statuses.iter().map(script));
    (format!("{}/hook", server.url()), server)
}

/// Returns the notification job for monitors that just began to fail, and its clock.
fn failing(home: &Path, all: &[(&str, &str)]) -> (Arc<dyn ScheduledJob>, Arc<SetClock>) {
    let store = Store::open(&home.join("state"), home).unwrap();
    let clock = SetClock::at(at("2026-03-01T01:00:10Z"));
    for (slug, url) in all {
        let secret = "s3cret-of-the-hook".into();
        named_monitor(&store, slug, &HealthNotifier::Webhook { url: (*url).to_owned(), secret }.text());
        check_in(&store, slug, &CheckIn::new(Status::Error), clock.now()).unwrap();
    }
    let shared: Arc<dyn WallClock> = Arc::clone(&clock) as Arc<dyn WallClock>;
    let job =
        deliveries(&ledger(home), &shared, home.to_owned(), Vec::new(), crate::http::HttpSettings::default()).unwrap();
    (job, clock)
}

fn once() -> JobContext {
    JobContext { no: 1, due: None, is_last: true, stop: CancellationToken::new() }
}

#[tokio::test]
async fn another_health_is_sent_signed_and_again_under_the_same_number_until_it_was_taken() {
    let home = crate::test_support::temp_dir();
    let (url, mut server) = receiver(&[500, 204]);
    let (job, clock) = failing(home.path(), &[("backup", &url)]);
    job.run(once()).await.unwrap();
    clock.jump(SignedDuration::from_secs(60));
    for _twice in 0..2 {
        job.run(once()).await.unwrap();
    }
    let all = server.requests();
    assert_eq!(all.len(), 2, "once it was taken it is not sent again: {all:#?}");
    let part = |request: &str, name: &str| {
        let line = request.lines().find_map(|line| line.strip_prefix(name)).map(|line| line.trim().to_owned());
        line.unwrap_or_else(|| panic!("no {name} in {request}"))
    };
    let body = |request: &str| request.split_once("\r\n\r\n").unwrap().1.to_owned();
    assert_eq!(body(&all[0]), body(&all[1]));
    assert_eq!(part(&all[0], "x-fledge-delivery:"), part(&all[1], "x-fledge-delivery:"));
    for (request, second) in all.iter().zip([at("2026-03-01T01:00:10Z"), at("2026-03-01T01:01:10Z")]) {
        assert!(request.starts_with("POST /hook HTTP/1.1\r\n"), "{request}");
        let signed = sign("s3cret-of-the-hook", second.as_second(), body(request).as_bytes());
        assert_eq!(part(request, "x-fledge-signature:"), signed);
        assert!(!request.contains("s3cret-of-the-hook"), "{request}");
    }
    let data: serde_json::Value = serde_json::from_str(&body(&all[0])).unwrap();
    assert_eq!((&data["data"]["was"], &data["data"]["health"]), (&"healthy".into(), &"failing".into()), "{data}");
}

#[tokio::test]
async fn who_takes_too_long_to_hear_is_left_in_time_and_told_again_later() {
    let home = crate::test_support::temp_dir();
    let (url, mut server) = receiver(&[0]);
    let dir = home.path().to_owned();
    let env = vec![("PATH".to_owned(), "/usr/bin:/bin".to_owned())];
    let means = NotifierTools { dir, env, http: crate::http::HttpSettings::default(), within: PATIENCE };
    let data = "{}".to_owned();
    let news = NewsRow { no: 1, delivery: "d".into(), monitor: "backup".into(), data, made_ms: 0, tries: 0 };
    let stop = CancellationToken::new();
    let silent = HealthNotifier::Webhook { url, secret: "s3cret".into() };
    // Once the receiver has the request, the clock jumps to the time limit.
    let clock = async {
        assert!(server.asked().await.contains("x-fledge-signature: t=7,v1="));
        tokio::time::pause();
        std::future::pending::<()>().await
    };
    let reported =
        tokio::select! { reported = means.deliver(&silent, &news, 7, &stop) => reported, () = clock => unreachable!() };
    assert!(matches!(reported, Err(JobError::Retryable(_))), "{reported:?}");
    tokio::time::resume();
    let slow = HealthNotifier::Command(["sleep", "600"].map(str::to_owned).into());
    let means = NotifierTools { within: Duration::from_millis(300), ..means };
    let reported = means.deliver(&slow, &news, 7, &stop).await;
    assert!(matches!(reported, Err(JobError::Retryable(_))), "{reported:?}");
}

#[tokio::test]
async fn an_address_that_does_not_answer_holds_up_no_other_and_no_stop() {
    let home = crate::test_support::temp_dir();
    let ((dead, mut silent), (well, mut answering)) = (receiver(&[0]), receiver(&[204]));
    let (job, _clock) = failing(home.path(), &[("a", &dead), ("b", &well)]);
    let context = once();
    let store = Store::open(&home.path().join("state"), home.path()).unwrap();
    let untold = || {
        let left = store.monitor_news(i64::MAX, 10).unwrap();
        left.into_iter().map(|news| (news.monitor, news.tries)).collect::<Vec<_>>()
    };
    let ends = async {
        silent.asked().await;
        while untold().len() > 1 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert_eq!(answering.requests().len(), 1);
        context.stop.cancel();
    };
    let both = async { tokio::join!(job.run(context.clone()), ends) };
    let (reported, ()) = tokio::time::timeout(PATIENCE, both).await.unwrap();
    reported.unwrap();
    assert_eq!(untold(), [("a".to_owned(), 0)], "a try that takes all its time would be counted");
}
