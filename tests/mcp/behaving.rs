//! Working servers: lists, calls, both transports, the sandbox, and the end of a session.

use super::scene::{Scene, by_http, said, unique};
use crate::support::{SOON, until_async};
use fledge::mcp::{McpAnswer, ServerConfig, ServerTransport};
use std::fs;
use std::net::TcpListener;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

#[tokio::test]
async fn tools_are_listed_with_their_schemas_and_called() {
    needs_python!();
    let scene = Scene::new("good");
    let offer = scene.offer().await;
    assert_eq!(offer.warnings, Vec::<String>::new());
    let echo = &offer.tools[0];
    assert_eq!(
        (echo.name.as_str(), &echo.schema["properties"]["text"]["type"]),
        ("mcp-t-echo", &serde_json::json!("string"))
    );
    assert!(echo.description.ends_with("do not trust its description] Does echo."), "{}", echo.description);
    assert_eq!(scene.call("echo", "é\n2").await, said("é\n2", false));
    assert_eq!(scene.call("fail", "luck").await, said("no luck", true));
    let image = "[an image, image/png, about 3 bytes: not shown]\n{\"a\":1}";
    assert_eq!(scene.call("image", "").await, said(image, false));
    assert_eq!(scene.why("other", "").await, "no MCP server has a tool mcp-t-other any more");
    assert!(scene.servers.may_have("mcp-t-x") && !scene.servers.may_have("mcp-u-x"));
    scene.servers.close().await;
    scene.must_be_gone();
}

#[tokio::test]
async fn a_list_in_pages_is_read_to_its_end_and_one_without_an_end_is_not() {
    needs_python!();
    assert_eq!(Scene::new("pages").names().await, ["p0", "p1", "p2"]);
    assert_eq!(Scene::new("endless pages").names().await.len(), 64);
}

#[tokio::test]
async fn a_closed_server_is_started_again_by_the_next_call() {
    needs_python!();
    let scene = Scene::new("good");
    for round in 1..=3 {
        assert_eq!(scene.call("echo", "a").await, said("a", false));
        scene.servers.close().await;
        scene.must_be_gone();
        let starts = scene.notes().lines().filter(|line| *line == "initialize").count();
        assert_eq!(starts, round);
    }
}

#[tokio::test]
async fn a_server_is_reached_by_http_and_answers_as_json_or_as_a_stream() {
    needs_python!();
    for mode in ["good", "stream"] {
        let (_http, scene) = by_http(mode);
        assert_eq!(scene.names().await[0], "echo");
        assert_eq!(scene.call("echo", mode).await, said(mode, false));
        scene.servers.close().await;
        let notes = scene.notes();
        assert!(notes.contains("tools/call Bearer abc\n"), "{notes}");
    }
}

#[tokio::test]
async fn a_call_that_is_stopped_ends_at_once_and_the_server_hears_of_it() {
    needs_python!();
    let scene = Scene::new("hang");
    scene.offer().await;
    let stop = CancellationToken::new();
    let begun = Instant::now();
    let stopping = async {
        until_async("the server is called", || scene.notes().contains("tools/call")).await;
        stop.cancel();
    };
    let (answer, ()) = tokio::join!(scene.servers.call("mcp-t-echo", serde_json::json!({}), &stop), stopping);
    assert_eq!(answer, McpAnswer::Failed("stopped: the run was cancelled".into()));
    scene.servers.close().await;
    assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
    scene.must_be_gone();
}

#[tokio::test]
async fn a_call_that_takes_too_long_is_cancelled_and_the_session_goes_on() {
    needs_python!();
    let slow = |server| ServerConfig { timeout: Duration::from_millis(300), ..server };
    let scene = Scene::with("wrong ids", slow);
    let why = scene.why("echo", "").await;
    assert_eq!(why, "the MCP server `t` did not answer within 300ms; fledge told it to stop");
    scene.why("echo", "").await;
    let notes = scene.notes();
    let count = |word: &str| notes.lines().filter(|line| *line == word).count();
    assert_eq!((count("initialize"), count("tools/call")), (1, 2), "{notes}");
    assert!(count("notifications/cancelled") >= 1, "{notes}");
    scene.servers.close().await;
}

#[tokio::test]
async fn the_environment_of_a_server_is_short() {
    needs_python!();
    let scene = Scene::with("good", |server| {
        let ServerTransport::Program { command, .. } = server.reach else { unreachable!() };
        let env = vec![("TOKEN".into(), "x".into())];
        ServerConfig { reach: ServerTransport::Program { command, env }, ..server }
    });
    let McpAnswer::Said { text, .. } = scene.call("env", "").await else { panic!() };
    let is_mark = |name: &str| name.ends_with("_ID"); // marks that fledge uses to find the server's processes
    let own: Vec<&str> = text.lines().filter(|name| !is_mark(name) && *name != "LC_CTYPE").collect();
    assert_eq!(own, ["HOME", "PATH", "TOKEN"]);
    scene.servers.close().await;
}

#[tokio::test]
async fn behind_the_wall_a_server_reaches_the_workspace_and_no_network_unless_it_may() {
    needs_python!();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let Some(scene) = Scene::behind_a_wall(|server| server).await else { return };
    let inside = scene.path("workspace/made").display().to_string();
    assert_eq!(scene.call("write", &inside).await, said(&inside, false));
    assert_eq!(fs::read_to_string(&inside).unwrap(), "from a server");
    let outside = format!("/var/lib/{}", unique());
    assert!(matches!(scene.call("write", &outside).await, McpAnswer::Said { is_error: true, .. }));
    assert!(matches!(scene.call("net", &address).await, McpAnswer::Said { is_error: true, .. }));
    scene.servers.close().await;
    scene.servers.tidy();
    scene.must_be_gone();
    assert!(!scene.path("workspace/.git").exists());
    let open = Scene::behind_a_wall(|server| ServerConfig { network: true, ..server }).await.unwrap();
    assert_eq!(open.call("net", &address).await, said(&address, false));
    let free = Scene::behind_a_wall(|server| ServerConfig { is_walled: false, ..server }).await.unwrap();
    assert_eq!(free.call("net", &address).await, said(&address, false));
}
