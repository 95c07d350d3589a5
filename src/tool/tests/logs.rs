//! Tests of `lane-log` on the output of gate steps.

use super::*;
use crate::verdict::{StepLog, StepStatus};

/// Creates a host with these logs: attempt, step of the lane `verify`, status, output.
fn with(logs: &[(u32, &str, StepStatus, &[u8])]) -> ToolFixture {
    let fixture = ToolFixture::new();
    let log = |(number, (attempt, step, status, printed)): (usize, &(u32, &str, StepStatus, &[u8]))| {
        let path = fixture.home.path().join(format!("{number}.log"));
        if !printed.is_empty() {
            fs::write(&path, printed).unwrap(); // a step that prints nothing leaves no file
        }
        let (lane, step) = step.split_once('/').unwrap_or(("verify", step));
        let path = path.display().to_string();
        StepLog { attempt: *attempt, lane: lane.into(), step: step.into(), status: *status, path }
    };
    fixture.host.show_logs(logs.iter().enumerate().map(log).collect());
    fixture
}

fn numbers(upto: usize) -> Vec<u8> {
    (1..=upto).flat_map(|number| format!("line {number}\n").into_bytes()).collect()
}

#[tokio::test]
async fn the_end_of_what_failed_is_given_first_and_any_page_of_it_when_asked_for() {
    let fixture = with(&[
        (1, "fmt", StepStatus::Passed, b"fine\n"),
        (1, "test", StepStatus::Failed, b"the first time\n"),
        (2, "fmt", StepStatus::Passed, b"fine\n"),
        (2, "test", StepStatus::Failed, &numbers(1000)),
    ]);
    let end = fixture.output("lane-log", json!({"limit": 2})).await;
    let head = "step `test` of lane `verify`, attempt 2: failed, 1000 lines\n";
    let expected =
        format!("{head}   999\tline 999\n  1000\tline 1000\n[lines 999-1000; use `offset` for earlier lines]\n");
    assert_eq!(end, expected);
    let page = fixture.output("lane-log", json!({"step": "test", "offset": 7, "limit": 1})).await;
    assert_eq!(page, format!("{head}     7\tline 7\n[continue with offset 8]\n"));
    let found = fixture.output("lane-log", json!({"step": "test", "pattern": "line 9+$"})).await;
    assert_eq!(found, format!("{head}     9\tline 9\n    99\tline 99\n   999\tline 999\n"));
    let found = fixture.output("lane-log", json!({"step": "test", "pattern": "line 9+$", "limit": 1})).await;
    assert_eq!(found, format!("{head}     9\tline 9\n[continue with offset 10]\n"));
    let none = fixture.output("lane-log", json!({"step": "test", "pattern": "^9"})).await;
    assert_eq!(none, format!("{head}[no line matches]\n"));
    let older = fixture.output("lane-log", json!({"step": "test", "attempt": 1})).await;
    assert_eq!(older, "step `test` of lane `verify`, attempt 1: failed, 1 line\n     1\tthe first time\n");
    let passed = fixture.output("lane-log", json!({"step": "fmt"})).await;
    assert_eq!(passed, "step `fmt` of lane `verify`, attempt 2: passed, 1 line\n     1\tfine\n");
    // A page never exceeds the limit of a result, and loses lines at its far end.
    let long = fixture.output("lane-log", json!({"limit": 2000})).await;
    assert!(long.len() <= 4096 && long.contains("  1000\tline 1000\n[lines "), "{long}");
    let long = fixture.output("lane-log", json!({"offset": 1, "limit": 2000})).await;
    assert!(long.len() <= 4096 && long.starts_with(&format!("{head}     1\tline 1\n")), "{long}");
    let next: usize = long.trim_end_matches("]\n").rsplit(' ').next().unwrap().parse().unwrap();
    assert!(long.contains(&format!("\tline {}\n[continue", next - 1)), "{long}");
}

#[tokio::test]
async fn which_log_is_meant_is_asked_where_it_is_not_clear() {
    let none = ToolFixture::new().call("lane-log", json!({})).await;
    assert_eq!(none, ToolOutcome::error("no log: the project's checks have not been run on your work yet"));
    let fixture = with(&[
        (0, "test", StepStatus::Failed, b"before\n"),
        (1, "test", StepStatus::Failed, b"a\n"),
        (1, "docs/test", StepStatus::TimedOut, b"b\n"),
        (1, "lint", StepStatus::AllowedFailure, b""),
    ]);
    let all = "step `test` of lane `verify`, attempt 1: failed\nstep `test` of lane `docs`, attempt 1: timed out\n\
        step `lint` of lane `verify`, attempt 1: allowed failure\n";
    assert_eq!(fixture.output("lane-log", json!({})).await, all);
    let two = fixture.output("lane-log", json!({"step": "test"})).await;
    assert_eq!(two, all.lines().take(2).map(|line| format!("{line}\n")).collect::<String>());
    let one = fixture.output("lane-log", json!({"step": "test", "lane": "docs"})).await;
    assert_eq!(one, "step `test` of lane `docs`, attempt 1: timed out, 1 line\n     1\tb\n");
    let before = fixture.output("lane-log", json!({"attempt": 0})).await;
    assert_eq!(before, "step `test` of lane `verify`, before any change: failed, 1 line\n     1\tbefore\n");
    let silent = fixture.output("lane-log", json!({"step": "lint"})).await;
    assert_eq!(silent, "step `lint` of lane `verify`, attempt 1: allowed failure\n[no output]\n");
    let unknown = fixture.call("lane-log", json!({"step": "tets"})).await;
    assert!(unknown.is_error, "{unknown:?}");
    let output =
        "no such log (did you mean `test`?); known logs:\nstep `test` of lane `verify`, before any change: failed\n";
    assert!(unknown.content.starts_with(output), "{unknown:?}");
    let past = fixture.call("lane-log", json!({"step": "test", "lane": "verify", "offset": 9})).await;
    assert_eq!(past, ToolOutcome::error("`the log of test` has 1 lines; line 9 is past its end"));
    let wrong = fixture.call("lane-log", json!({"step": "test", "lane": "verify", "pattern": "("})).await;
    assert!(wrong.is_error && wrong.content.contains("unclosed group"), "{wrong:?}");
}

#[tokio::test]
async fn whatever_bytes_a_step_prints_the_page_is_text_of_bounded_lines() {
    let mut printed = b"\x1b[31mred\x1b[0m \xff\xfe 10%\r100%\n".to_vec();
    printed.extend("\u{202e}turned\u{200b}\n".bytes());
    printed.extend(vec![b'x'; 300_000]);
    printed.extend(b"\nno end");
    let fixture = with(&[(1, "test", StepStatus::Failed, &printed)]);
    let page = fixture.output("lane-log", json!({})).await;
    let lines: Vec<&str> = page.lines().collect();
    assert_eq!(lines[1..3], ["     1\t100%", "     2\tturned"], "{page}");
    assert_eq!(lines[3], format!("     3\t{} [… 298000 bytes more]", "x".repeat(2000)));
    assert_eq!(lines[4], "     4\tno end");
}
