//! Tests of `shell-exec`.

use super::*;
use crate::chat::OutcomeDetail;
use std::sync::Mutex;

#[tokio::test]
async fn a_command_runs_in_the_root_with_only_its_own_environment() {
    let fixture = ToolFixture::new();
    let ran =
        fixture.call("shell-exec", json!({"command": "pwd -P; echo $WORD; env | wc -l; echo bad >&2; exit 3"})).await;
    let OutcomeDetail::Output { exit_code: Some(3), signal: None, timed_out: false, .. } = ran.detail else {
        panic!("{ran:?}")
    };
    let root = fixture.tree().canonicalize().unwrap();
    assert!(ran.content.starts_with(&format!("exit code 3\n{}\ngiven\n", root.display())), "{}", ran.content);
    assert!(ran.content.ends_with("\nbad\n") && !ran.is_error, "{}", ran.content);
    assert_eq!(fs::read_dir(fixture.home.path().join("outputs")).unwrap().count(), 0);
}

#[tokio::test]
async fn a_command_that_takes_too_long_is_killed() {
    let fixture = ToolFixture::with(|settings| settings.shell_timeout = Duration::from_millis(100));
    let ran = fixture.call("shell-exec", json!({"command": "sleep 60", "timeout": 5})).await;
    assert!(ran.is_error && matches!(ran.detail, OutcomeDetail::Output { timed_out: true, .. }));
    assert_eq!(ran.content, "timed out after 0.1 s and was killed\n");
}

#[tokio::test]
async fn long_output_of_a_command_can_be_paged() {
    let fixture = ToolFixture::new();
    let ran = fixture.output("shell-exec", json!({"command": "seq 1 5000"})).await;
    assert!(ran.len() <= 4096 && ran.starts_with("exit code 0\n1\n2\n"), "{ran}");
    assert!(ran.ends_with("[23893 bytes in all: files-read @output/1]"), "{ran}");
    let page = fixture.output("files-read", json!({"path": "@output/1", "offset": 4321, "limit": 1})).await;
    assert_eq!(page, "  4321\t4321\n[lines 4321-4321 of 5000; continue with offset 4322]\n");
    assert_eq!(fs::metadata(fixture.home.path().join("outputs/1.txt")).unwrap().permissions().mode() & 0o777, 0o600);
}

#[tokio::test]
async fn progress_comes_in_whole_lines() {
    let fixture = ToolFixture::new();
    let received = Mutex::new(String::new());
    let request = ToolRequest {
        call: CallId(1),
        name: "shell-exec".into(),
        input: json!({"command": "printf '\\303'; printf '\\274\\nend'"}),
    };
    let listen = |text: String| received.lock().unwrap().push_str(&text);
    fixture.host.call(request, &CancellationToken::new(), &listen).await;
    assert_eq!(received.into_inner().unwrap(), "ü\nend");
}

#[tokio::test]
async fn nothing_starts_after_a_stop_and_what_runs_is_ended() {
    let fixture = ToolFixture::new();
    let stop = CancellationToken::new();
    let request = |name: &str, input| ToolRequest { call: CallId(1), name: name.into(), input };
    let command = request("shell-exec", json!({"command": "echo on; exec sleep 60"}));
    let ran = fixture.host.call(command, &stop, &|_| stop.cancel()).await;
    assert!(ran.is_error && ran.content.starts_with("stopped: the run was cancelled\n"), "{}", ran.content);
    let write = request("files-write", json!({"path": "a", "content": "x"}));
    assert_eq!(fixture.host.call(write, &stop, &|_| {}).await, ToolOutcome::error("stopped: the run was cancelled"));
    assert!(!fixture.tree().join("a").exists());
}
