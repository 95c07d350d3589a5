//! Servers that misbehave: none hangs or ends a run, and none leaves anything behind.

use super::scene::{Scene, by_http, said, unique};
use crate::support::{SOON, must_be_gone, running_with, until, until_async};
use fledge::mcp::{McpAnswer, McpServers, ServerConfig};
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

const GONE: &str = "the MCP server `t` has ended or hung twice: fledge does not start it again in this run";

#[tokio::test]
async fn one_that_does_not_start_is_a_warning_with_its_last_words() {
    needs_python!();
    let offer = Scene::new("no start").offer().await;
    let [warning] = offer.warnings.as_slice() else { panic!("{offer:?}") };
    assert!(warning.starts_with("the MCP server `t` did not start: "), "{warning}");
    assert!(
        warning
            .contains("last line on its standard error: \"cannot find my data\"; the run continues without its tools"),
        "{warning}"
    );
    assert_eq!(offer.tools, []);
}

#[tokio::test]
async fn one_that_knows_only_the_older_beginning_is_begun_with_in_that_form_and_soon() {
    needs_python!();
    for mode in ["ignores", "ends"] {
        let (scene, begun) = (Scene::new(mode), Instant::now());
        assert_eq!(scene.offer().await.warnings, Vec::<String>::new(), "{mode}");
        assert!(begun.elapsed() < SOON, "{mode}: {:?}", begun.elapsed());
        assert_eq!(scene.call("echo", "a").await, said("a", false));
        scene.servers.close().await;
        scene.must_be_gone();
    }
}

#[tokio::test]
async fn a_slow_server_that_exits_on_the_new_handshake_gets_the_old_handshake() {
    long_test!();
    needs_python!();
    let scene = Scene::new("ends late");
    assert_eq!(scene.offer().await.warnings, Vec::<String>::new());
    assert_eq!(scene.call("echo", "a").await, said("a", false));
    scene.servers.close().await;
    scene.must_be_gone();
}

#[tokio::test]
async fn one_that_is_required_and_does_not_start_is_an_error() {
    needs_python!();
    let scene = Scene::with("no start", |server| ServerConfig { required: true, ..server });
    let why = scene.servers.offer(&CancellationToken::new()).await.unwrap_err();
    assert!(why.starts_with("the MCP server `t` did not start: "), "{why}");
}

#[tokio::test]
async fn a_program_that_is_not_there_is_named() {
    needs_python!();
    let server = ServerConfig::program("t", vec!["/no/such/program".into()]);
    let folder = crate::support::temp_dir();
    let place = super::scene::place(folder.path(), fledge::process::sandbox::Sandbox::off());
    let offer = McpServers::new(vec![server], place).offer(&CancellationToken::new()).await.unwrap();
    assert!(offer.warnings[0].contains("/no/such/program"), "{:?}", offer.warnings);
}

#[tokio::test]
async fn a_crash_in_a_call_is_its_error_and_the_second_one_is_the_last() {
    needs_python!();
    let scene = Scene::new("good");
    for _ in 0..2 {
        assert_eq!(scene.call("echo", "a").await, said("a", false));
        let why = scene.why("crash", "").await;
        assert!(why.starts_with("the MCP server `t` ended during this call; the call may have done all"), "{why}");
        assert!(why.ends_with("last line on its standard error: \"out of luck\""), "{why}");
    }
    assert_eq!(scene.why("echo", "a").await, GONE);
    scene.must_be_gone();
}

#[tokio::test]
async fn noise_between_answers_is_passed_over() {
    needs_python!();
    let scene = Scene::new("noise");
    assert_eq!(scene.call("echo", "a").await, said("a", false));
    scene.servers.close().await;
}

#[tokio::test]
async fn an_answer_that_is_no_answer_is_an_error_at_once_and_the_session_goes_on() {
    needs_python!();
    for mode in ["half", "bomb"] {
        let scene = Scene::new(mode);
        for _ in 0..2 {
            let McpAnswer::Said { text, is_error: true, .. } = scene.call("echo", "").await else { panic!() };
            assert!(text.starts_with("cannot parse the answer: "), "{text}");
        }
        assert_eq!(scene.notes().matches("initialize").count() - scene.notes().matches("initialized").count(), 1);
        scene.servers.close().await;
    }
}

#[tokio::test]
async fn an_answer_of_a_hundred_megabytes_is_an_error_and_the_session_goes_on() {
    long_test!();
    needs_python!();
    let scene = Scene::new("huge");
    let answer = scene.call("echo", "big").await;
    assert_eq!(answer, said("the answer has more than 8388608 bytes: ask for less", true));
    assert_eq!(scene.call("echo", "small").await, said("small", false));
    scene.servers.close().await;
    let (_http, scene) = by_http("huge");
    let McpAnswer::Said { text, is_error: true, .. } = scene.call("echo", "big").await else { panic!() };
    assert!(text.contains("8388608"), "{text}");
    assert_eq!(scene.call("echo", "small").await, said("small", false));
}

#[tokio::test]
async fn floods_of_news_and_of_questions_hold_nothing_up() {
    long_test!();
    needs_python!();
    for mode in ["news", "questions"] {
        let scene = Scene::new(mode);
        assert_eq!(scene.call("echo", mode).await, said(mode, false));
        scene.servers.close().await;
        scene.must_be_gone();
    }
}

#[tokio::test]
async fn tools_that_cannot_be_offered_are_left_out_and_told_of() {
    needs_python!();
    for (mode, names, warnings) in [("doubles", 2, 2), ("schemas", 1, 3), ("many", 128, 6)] {
        let scene = Scene::new(mode);
        let offer = scene.offer().await;
        assert_eq!((offer.tools.len(), offer.warnings.len()), (names, warnings), "{mode}: {:?}", offer.warnings);
        scene.servers.close().await;
    }
}

#[tokio::test]
async fn one_that_heeds_no_signal_and_no_end_is_gone_all_the_same() {
    needs_python!();
    let scene = Scene::new("deaf");
    scene.offer().await;
    let begun = Instant::now();
    scene.servers.close().await;
    scene.must_be_gone();
    assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
}

#[tokio::test]
async fn a_daemon_that_a_server_forks_is_ended_with_it() {
    needs_python!();
    let scene = Scene::new("daemon");
    let number = unique();
    assert_eq!(scene.call("echo", &number).await, said(&number, false));
    let daemon = format!("sleep {number}");
    until("the daemon", || !running_with(&daemon).is_empty()); // the server may answer before its daemon starts
    scene.servers.close().await;
    must_be_gone(&format!("sleep {number}"));
}

#[tokio::test]
async fn one_that_leaves_its_streams_to_a_daemon_has_ended() {
    needs_python!();
    let scene = Scene::new("gone");
    let number = unique();
    let why = scene.why("echo", &number).await;
    assert!(why.starts_with("the MCP server `t` ended during this call"), "{why}");
    scene.servers.close().await;
    must_be_gone(&format!("sleep {number}"));
}

#[tokio::test]
async fn dropping_servers_ends_them() {
    needs_python!();
    let scene = Scene::new("deaf");
    scene.offer().await;
    let Scene { folder, servers } = scene;
    drop(servers);
    must_be_gone(&folder.path().display().to_string());
}

#[tokio::test]
async fn a_server_that_hangs_in_a_call_is_killed_and_started_again_once() {
    long_test!();
    needs_python!();
    for mode in ["hang", "frozen"] {
        let slow = |server| ServerConfig { timeout: Duration::from_millis(300), ..server };
        let scene = Scene::with(mode, slow);
        let begun = Instant::now();
        for _ in 0..2 {
            let number = unique();
            let why = scene.why("echo", &number).await;
            let wanted =
                "the MCP server `t` did not answer within 300ms; it no longer responds, so fledge ended it and";
            assert!(why.starts_with(wanted), "{mode}: {why}");
            must_be_gone(&format!("sleep {number}"));
            scene.must_be_gone();
        }
        assert_eq!(scene.why("echo", "a").await, GONE, "{mode}");
        scene.servers.close().await;
        assert!(begun.elapsed() < SOON, "{mode}: {:?}", begun.elapsed());
    }
}

#[tokio::test]
async fn one_that_hangs_when_it_is_to_end_holds_nobody_up() {
    needs_python!();
    let (_http, scene) = by_http("slow end");
    scene.offer().await;
    let begun = Instant::now();
    scene.servers.close().await;
    assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
    // A stopped process reacts neither to the end of its input nor to any signal but SIGKILL.
    let scene = Scene::with("frozen", |server| ServerConfig { timeout: Duration::from_secs(600), ..server });
    let number = unique();
    let stop = CancellationToken::new();
    let stopping = async {
        until_async("the server sleeps", || !running_with(&format!("sleep {number}")).is_empty()).await;
        stop.cancel();
    };
    let input = serde_json::json!({ "text": number });
    let begun = Instant::now();
    tokio::join!(scene.servers.call("mcp-t-echo", input, &stop), stopping);
    scene.servers.close().await;
    assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
    scene.must_be_gone();
    must_be_gone(&format!("sleep {number}"));
}

#[tokio::test(start_paused = true)]
async fn one_that_says_nothing_when_it_starts_is_given_up_after_half_a_minute_and_ended() {
    needs_python!();
    let scene = Scene::new("silent");
    let offer = scene.offer().await;
    assert!(offer.warnings[0].contains("not ready within 30s"), "{:?}", offer.warnings);
    scene.must_be_gone();
}

#[tokio::test]
async fn by_http_no_redirect_is_followed_and_a_page_is_no_answer() {
    needs_python!();
    let (_http, scene) = by_http("redirect");
    let offer = scene.offer().await;
    assert_eq!((offer.tools.len(), offer.warnings.len()), (0, 1), "{:?}", offer.warnings);
    let (_http, scene) = by_http("html");
    let McpAnswer::Said { text, is_error: true, .. } = scene.call("echo", "").await else { panic!() };
    assert!(text.contains("500") && text.len() < 1000, "{text}");
    let (http, scene) = by_http("good");
    scene.offer().await;
    drop(http);
    assert!(matches!(scene.call("echo", "").await, McpAnswer::Said { is_error: true, .. }));
}

#[tokio::test]
async fn one_that_says_nothing_at_all_can_be_stopped_while_it_starts() {
    needs_python!();
    let scene = Scene::new("silent");
    let stop = CancellationToken::new();
    let stopping = async {
        let path = scene.folder.path().display().to_string();
        until_async("the server runs", || !running_with(&path).is_empty()).await;
        stop.cancel();
    };
    let (offer, ()) = tokio::join!(scene.servers.offer(&stop), stopping);
    assert_eq!(offer.unwrap().warnings.len(), 1);
    scene.must_be_gone();
}
