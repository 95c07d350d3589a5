//! Tests of servers that are killed or stopped while runs are active: no run is lost, and no action
//! is done twice.

use crate::server::engine::site::Site;
#[cfg(debug_assertions)]
use crate::support::Hold;
use crate::support::{Model, SOON, Turn, amount, dice, hang, say, shell, write};
use serde_json::{Value, json};
use std::time::Duration;

/// Returns a model for any number of runs at once, which decides by the messages alone. It adds one
/// line to a file, once, and ends. If a message says that the command was interrupted and not
/// repeated, it first checks the file.
fn once() -> Model {
    Model::thinking(|body, count| {
        let messages = body["messages"].as_array().cloned().unwrap_or_default();
        let last = messages.last().map(Value::to_string).unwrap_or_default();
        let turn = if messages.len() <= 1 {
            shell("echo once >> done")
        } else if last.contains("did not repeat") || last.contains("gate") && last.contains("failed") {
            shell("test -f done || echo once >> done")
        } else {
            say("Done.")
        };
        (Some(turn), count)
    })
}

#[tokio::test]
async fn servers_killed_under_load_lose_no_run_and_do_none_twice() {
    long_test!();
    let (runs, kills) = (amount(8, 48), amount(2, 12));
    let mut dice = dice("servers killed");
    let model = once();
    let site = Site::with(&model);
    let args = ["--max-runs", "4"];
    let mut server = site.serve(&args);
    let mut ids = Vec::new();
    for number in 0..runs {
        let wish =
            json!({ "task": format!("# Task {number}\n\nMake the file `done`."), "key": format!("task-{number}") });
        ids.push(server.post("/v1/runs", wish).await.1["id"].as_str().unwrap().to_owned());
    }
    for _ in 0..kills {
        tokio::time::sleep(Duration::from_millis(200 + dice.below(1500))).await;
        server.kill();
        server = site.serve(&args);
    }
    for (number, run) in ids.iter().enumerate() {
        let row = server.ended(run).await;
        assert_eq!(row["outcome"]["reason"], "verified", "{row:#}");
        assert_eq!(row["title"], format!("Task {number}"));
        let commit = row["result"]["commit"].as_str().unwrap();
        let done = crate::support::git(&site.project(), &["show", &format!("{commit}:done")]);
        assert_eq!(done.trim(), "once", "run {run} did it twice");
    }
    let all = site.json(&["runs", "list", "--json", "--limit", "1000"]);
    let listed = all["runs"].as_array().unwrap();
    assert_eq!(listed.len(), ids.len(), "each wish is one run");
    for run in &ids {
        let replayed = site.fledge(&["runs", "replay", run]).output().unwrap();
        assert!(replayed.status.success(), "{}", String::from_utf8_lossy(&replayed.stderr));
    }
}

#[tokio::test]
async fn a_stopped_server_leaves_resumable_runs_and_the_next_server_resumes_them() {
    long_test!();
    let model = Model::new([shell("sleep 1; echo 1 >> done"), say("Done.")]);
    let site = Site::with(&model);
    let server = site.serve(&["--grace", "60s"]);
    let run = server.submit("Make the file `done`.").await;
    server.until(&run, |row| row["doing"] == "running tools of turn 1").await;
    server.stop();
    assert_eq!(model.count(), 1, "the tool has come to its end, and the model was not asked again");
    let list = site.json(&["runs", "list", "--json"]);
    assert_eq!(list["runs"][0]["state"], "interrupted");
    let server = site.serve(&[]);
    let row = server.ended(&run).await;
    assert_eq!(row["outcome"]["reason"], "verified", "{row:#}");
    let said = row["story"].to_string();
    assert!(!said.contains("was interrupted while this call was running"), "{said}");
    assert_eq!(model.count(), 2);
}

#[tokio::test]
async fn a_run_that_does_not_stop_within_the_grace_period_is_left_and_resumed() {
    long_test!();
    let model = Model::new([hang(), write("done", "1\n"), say("Done.")]);
    let site = Site::with(&model);
    let server = site.serve(&["--grace", "1s"]);
    let run = server.submit("Make the file `done`.").await;
    model.wait_for(1);
    let took = server.stop();
    assert!(took < SOON, "{took:?}");
    let server = site.serve(&[]);
    assert_eq!(server.ended(&run).await["outcome"]["reason"], "verified");
}

/// A task whose limit leaves no room for a call that was never made.
const BOUND: &str = "---\nbudget: { tokens: 8000 }\n---\nMake the file `done`.";

#[tokio::test]
async fn what_a_server_that_stops_did_not_send_is_not_charged() {
    long_test!();
    let model = Model::new([shell("sleep 1; echo 1 >> done").using(1500, 20), say("Done.").using(1600, 30)]);
    let site = Site::with(&model);
    let server = site.serve(&["--grace", "60s"]);
    let run = server.submit(BOUND).await;
    server.until(&run, |row| row["doing"] == "running tools of turn 1").await;
    server.stop();
    let server = site.serve(&[]);
    let row = server.ended(&run).await;
    assert_eq!((&row["outcome"]["reason"], model.count()), (&json!("verified"), 2), "{row:#}");
    let usage = &row["result"]["usage"];
    assert_eq!(
        [&usage["requests"], &usage["total"]["input_tokens"], &usage["total"]["output_tokens"]],
        [&json!(2), &json!(3100), &json!(50)],
        "{row:#}"
    );
    let replayed = site.fledge(&["runs", "replay", &run]).output().unwrap();
    assert!(replayed.status.success(), "{}", String::from_utf8_lossy(&replayed.stderr));
}

#[tokio::test]
async fn what_a_server_that_stops_has_sent_and_lost_is_charged_once() {
    long_test!();
    let model = Model::new([
        hang(),
        write("done", "1\n").using(1500, 20),
        shell("sleep 1").using(1500, 20),
        say("Done.").using(1600, 30),
    ]);
    let site = Site::with(&model);
    let server = site.serve(&["--grace", "1s"]);
    let run = server.submit("Make the file `done`.").await;
    model.wait_for(1);
    server.stop();
    let server = site.serve(&["--grace", "60s"]);
    server.until(&run, |row| row["doing"] == "running tools of turn 2").await;
    server.stop(); // the interruption loses nothing
    let server = site.serve(&[]);
    let row = server.ended(&run).await;
    assert_eq!((&row["outcome"]["reason"], model.count()), (&json!("verified"), 4), "{row:#}");
    let usage = &row["result"]["usage"];
    assert_eq!(usage["requests"], json!(4), "{row:#}");
    let input = usage["total"]["input_tokens"].as_u64().unwrap_or_default();
    assert!((4700..4600 + 4000).contains(&input), "one request of unknown size beside 4,600 tokens: {row:#}");
}

#[tokio::test]
async fn a_request_that_waited_for_its_turn_when_a_server_ended_is_not_charged() {
    long_test!();
    for is_killed in [true, false] {
        let model = Model::thinking(|body, count| {
            let is_first = body["messages"].to_string().contains("Task 1");
            (Some(if is_first && count == 1 { hang() } else { write("done", "1\n").using(1500, 20) }), count)
        });
        let site = Site::with(&model);
        let own =
            "models:\n  own:\n    provider: anthropic\n    model: claude\n    max_concurrent: 1\ndefault_model: own\n";
        site.file("fledge.yaml", own);
        site.commit();
        let server = site.serve(&["--max-runs", "2", "--grace", "1s"]);
        let sent = server.submit("# Task 1\n\nMake the file `done`.").await;
        model.wait_for(1);
        let waiting = server.submit("---\nbudget: { turns: 1 }\n---\n# Task 2\n\nMake the file `done`.").await;
        server.until(&waiting, |row| row["doing"] == "waiting for the model, turn 1").await;
        match is_killed {
            true => server.kill(),
            false => _ = server.stop(),
        }
        let server = site.serve(&["--max-runs", "2"]);
        let row = server.ended(&waiting).await;
        let usage = &row["result"]["usage"];
        assert_eq!([&usage["requests"], &usage["total"]["input_tokens"]], [&json!(1), &json!(1500)], "{row:#}");
        server.post(&format!("/v1/runs/{sent}/cancel"), json!({})).await;
    }
}

#[cfg(debug_assertions)] // fail points exist only in debug builds
#[tokio::test]
async fn a_request_that_was_recorded_but_not_sent_is_not_charged() {
    long_test!();
    for is_cancelled in [true, false] {
        let model = Model::new([write("done", "1\n").using(1500, 20), say("Done.").using(1600, 30)]);
        let (hold, site) = (Hold::before_request(2), Site::with(&model));
        let server = site.serve_with(("FLEDGE_FAIL", hold.order().as_str()), &["--grace", "60s"]);
        let run = server.submit(BOUND).await;
        let held = hold.reached();
        let (row, used) = if is_cancelled {
            server.post(&format!("/v1/runs/{run}/cancel"), json!({})).await;
            drop(held);
            (server.ended(&run).await, json!([1, 1500, 20]))
        } else {
            server.asked_to_stop(held);
            assert_eq!(model.count(), 1, "the second request was not sent");
            let server = site.serve(&[]);
            (server.ended(&run).await, json!([2, 3100, 50]))
        };
        assert_eq!(row["outcome"]["reason"], if is_cancelled { "cancelled" } else { "verified" }, "{row:#}");
        let (usage, total) = (&row["result"]["usage"], &row["result"]["usage"]["total"]);
        assert_eq!(json!([usage["requests"], total["input_tokens"], total["output_tokens"]]), used, "{row:#}");
        let replayed = site.fledge(&["runs", "replay", &run]).output().unwrap();
        assert!(replayed.status.success(), "{}", String::from_utf8_lossy(&replayed.stderr));
    }
}

#[tokio::test]
async fn a_run_that_was_cancelled_just_before_the_server_died_is_ended_by_the_next_one() {
    long_test!();
    let turns: [Turn; 2] = [hang(), hang()];
    let model = Model::new(turns);
    let site = Site::with(&model);
    let server = site.serve(&[]);
    let run = server.submit("Make the file `done`.").await;
    model.wait_for(1);
    server.kill();
    // The server wrote this first and then died.
    let state = std::fs::read_dir(site.path().join("state")).unwrap().map(|entry| entry.unwrap().path());
    let queue = state.map(|project| project.join("queue.db")).find(|path| path.exists()).unwrap();
    let told = rusqlite::Connection::open(queue).unwrap();
    assert_eq!(told.execute("UPDATE jobs SET is_cancelling = 1 WHERE state = 'running'", []).unwrap(), 1);
    drop(told);
    let server = site.serve(&[]);
    let row = server.ended(&run).await;
    assert_eq!(
        (&row["outcome"]["reason"], &row["outcome"]["cancelled"]),
        (&json!("cancelled"), &json!(true)),
        "{row:#}"
    );
}

#[tokio::test]
async fn runs_in_the_checkout_itself_come_one_after_the_other() {
    long_test!();
    let model = once();
    let site = Site::with(&model);
    let server = site.serve(&[]);
    let task = |number: u32| {
        format!("---\nisolation: in-place\ncommit: none\n---\n# In place {number}\n\nMake the file `done`.")
    };
    let (one, other) = (server.submit(&task(1)).await, server.submit(&task(2)).await);
    let rows = [server.ended(&one).await, server.ended(&other).await];
    let times: Vec<(&str, &str)> = rows
        .iter()
        .map(|row| (row["started_at"].as_str().unwrap(), row["outcome"]["ended_at"].as_str().unwrap()))
        .collect();
    assert!(times[0].1 <= times[1].0 || times[1].1 <= times[0].0, "they overlap: {times:?}");
}

#[tokio::test]
async fn runs_in_the_checkout_itself_are_alone_in_it_after_a_restart_too() {
    long_test!();
    let model = Model::new([hang(), hang(), hang()]);
    let site = Site::with(&model);
    let server = site.serve(&["--grace", "1s"]);
    let task = |what: &str| format!("---\nisolation: in-place\n---\n{what}\n");
    let runs = [server.submit(&task("First.")).await, server.submit(&task("Second.")).await];
    model.wait_for(1);
    server.kill();
    let server = site.serve(&["--grace", "1s"]);
    model.wait_for(2);
    let late = std::time::Instant::now() + Duration::from_millis(700);
    while std::time::Instant::now() < late {
        assert_eq!(model.count(), 2, "one waits for the other");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    for run in runs {
        server.post(&format!("/v1/runs/{run}/cancel"), json!({})).await;
        assert_eq!(server.ended(&run).await["outcome"]["reason"], "cancelled");
    }
}
