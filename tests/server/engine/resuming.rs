//! Tests of resuming runs over the API, with new limits.

use crate::server::engine::site::{Server, Site};
use crate::support::{Model, hang, say, write};
use serde_json::{Value, json};

const ONE_TURN: &str = "---\nbudget: { turns: 1 }\n---\nMake the file `done`.";

/// Returns a model that makes the file in its second turn.
fn in_two_turns() -> Model {
    Model::new([write("half", "1\n"), write("done", "2\n"), say("Done.")])
}

async fn resume(server: &Server, run: &str, limits: Value) -> (u16, Value) {
    let (status, answer) = server.post(&format!("/v1/runs/{run}/resume"), limits).await;
    (status.as_u16(), answer)
}

#[tokio::test]
async fn a_run_that_a_limit_ended_goes_on_with_a_higher_limit() {
    long_test!();
    let model = in_two_turns();
    let site = Site::with(&model);
    let server = site.serve(&[]);
    let run = server.submit(ONE_TURN).await;
    assert_eq!(server.ended(&run).await["outcome"]["reason"], "max_turns");
    let (status, row) = resume(&server, &run, json!({ "max_turns": 9, "max_time": "2h" })).await;
    assert_eq!((status, &row["state"], &row["outcome"]), (202, &json!("queued"), &Value::Null), "{row:#}");
    let row = server.until(&run, |row| row["outcome"]["reason"] == "verified").await;
    let limits = &row["result"]["limits"];
    assert_eq!((&limits["turns"], &limits["time_ms"]), (&json!(9), &json!(7_200_000)), "{row:#}");
    assert_eq!((model.count(), &row["result"]["usage"]["requests"]), (3, &json!(3)), "{row:#}");
    let (status, problem) = resume(&server, &run, json!({})).await;
    assert_eq!(status, 409, "{problem}");
    let detail = problem["detail"].as_str().unwrap();
    assert!(detail.starts_with(&format!("run {run} has ended (verified), so it cannot be resumed")), "{detail}");
    let replayed = site.fledge(&["runs", "replay", &run]).output().unwrap();
    assert!(replayed.status.success(), "{}", String::from_utf8_lossy(&replayed.stderr));
}

#[tokio::test]
async fn what_cannot_be_resumed_is_refused_with_the_limit_or_the_reason() {
    long_test!();
    let model = in_two_turns();
    let site = Site::with(&model);
    let server = site.serve(&[]);
    let run = server.submit(ONE_TURN).await;
    server.ended(&run).await;
    let reached = format!("run {run} cannot go on: the turn limit was reached; raise max_turns");
    let used = format!("max_tokens 5 is too low: 110 are used by run {run} already");
    for (limits, field, says) in [
        (json!({}), "max_turns", reached.as_str()),
        (json!({ "max_turns": 1 }), "max_turns", &reached),
        (json!({ "max_time": "3h" }), "max_turns", &reached),
        (json!({ "max_turns": 9, "max_tokens": 5 }), "max_tokens", &used),
        (json!({ "max_turns": 0 }), "max_turns", "invalid `max_turns`: expected a whole number of at least 1"),
        (json!({ "max_retries": 101 }), "max_retries", "invalid `max_retries`: expected a whole number from 0 to 100"),
        (json!({ "max_time": "soon" }), "max_time", "invalid `max_time`: `soon` is not a duration"),
        (json!({ "max_usd": 0 }), "max_usd", "invalid `max_usd` 0: expected US dollars"),
    ] {
        let path = format!("/v1/runs/{run}/resume");
        let (status, problem) = server.post(&path, limits).await;
        assert_eq!((status.as_u16(), &problem["errors"][0]["field"]), (422, &json!(field)), "{problem:#}");
        assert!(problem["detail"].as_str().unwrap().starts_with(says), "{says}: {problem:#}");
        server.must_describe("/v1/runs/{id}/resume", status, &problem).await;
    }
    assert_eq!(resume(&server, &run, json!({ "max_turns": "many" })).await.0, 422);
    assert_eq!(resume(&server, &run, json!({ "turns": 3 })).await.0, 422);
    assert_eq!(resume(&server, "nothing", json!({})).await.0, 404);
    let bare = server.client.post(format!("{}/v1/runs/{run}/resume", server.url)).send().await.unwrap();
    assert_eq!(bare.status(), 422, "the body is optional");
    assert_eq!(model.count(), 1, "nothing was resumed");
    assert_eq!(server.ended(&run).await["outcome"]["reason"], "max_turns");
    let (status, problem) = server.post("/v1/runs", json!({ "task": "Make it.", "max_turns": 3 })).await;
    assert_eq!((status.as_u16(), &problem["errors"][0]["field"]), (422, &json!("max_turns")), "{problem:#}");
}

#[tokio::test]
async fn a_run_that_another_process_left_is_resumed() {
    long_test!();
    let model = Model::new([hang(), write("done", "1\n"), say("Done.")]);
    let site = Site::with(&model);
    site.file("task.md", "Make the file `done`.");
    site.commit();
    let mut left = site.fledge(&["run", "task.md"]).spawn().unwrap();
    model.wait_for(1);
    let server = site.serve(&[]);
    let run = site.json(&["runs", "list", "--json"])["runs"][0]["id"].as_str().unwrap().to_owned();
    let (status, problem) = resume(&server, &run, json!({})).await;
    assert_eq!(status, 409, "another process drives it: {problem}");
    left.kill().unwrap();
    left.wait().unwrap();
    server.until(&run, |row| row["state"] == "interrupted").await;
    assert_eq!(resume(&server, &run, json!({ "max_turns": 7 })).await.0, 202);
    let row = server.ended(&run).await;
    assert_eq!(
        (&row["outcome"]["reason"], &row["result"]["limits"]["turns"]),
        (&json!("verified"), &json!(7)),
        "{row:#}"
    );
}

#[tokio::test]
async fn a_resume_that_waited_when_the_server_died_is_done_once_by_the_next_one() {
    long_test!();
    let model = Model::thinking(|body, count| {
        let said = body["messages"].to_string();
        let wrote = |path: &str| said.contains(&format!("\"path\":\"{path}\""));
        let turn = match () {
            () if said.contains("Busy") => hang(),
            () if !wrote("half") => write("half", "1\n"),
            () if !wrote("done") => write("done", "2\n"),
            () => say("Done."),
        };
        (Some(turn), count)
    });
    let site = Site::with(&model);
    let server = site.serve(&["--max-runs", "1"]);
    let run = server.submit(ONE_TURN).await;
    server.ended(&run).await;
    let busy = server.submit("---\nmax_retries: 0\n---\n# Busy\n\nMake the file `done`.").await;
    model.wait_for(2);
    assert_eq!(resume(&server, &run, json!({ "max_turns": 9 })).await.0, 202);
    let (_, row) = server.get(&format!("/v1/runs/{run}")).await;
    assert_eq!((&row["state"], &row["outcome"]), (&json!("queued"), &Value::Null), "{row:#}");
    for (query, states) in [
        ("", vec!["running", "queued"]),
        ("?state=queued", vec!["queued"]),
        ("?state=ended", vec![]),
        ("?outcome=failed", vec![]),
        ("?state=queued&q=nothing", vec![]),
    ] {
        let (_, page) = server.get(&format!("/v1/runs{query}")).await;
        let listed: Vec<&str> =
            page["runs"].as_array().unwrap().iter().map(|row| row["state"].as_str().unwrap()).collect();
        assert_eq!(listed, states, "{query}: {page:#}");
    }
    assert_eq!(resume(&server, &run, json!({ "max_turns": 9 })).await.0, 409, "it waits already");
    server.post(&format!("/v1/runs/{run}/cancel"), json!({})).await;
    assert_eq!(server.ended(&run).await["outcome"]["reason"], "max_turns", "a cancelled resume changes nothing");
    assert_eq!(resume(&server, &run, json!({ "max_turns": 9 })).await.0, 202);
    server.kill();
    let server = site.serve(&["--max-runs", "2"]);
    server.post(&format!("/v1/runs/{busy}/cancel"), json!({})).await;
    let row = server.until(&run, |row| row["state"] == "ended").await;
    assert_eq!(row["result"]["limits"]["turns"], 9, "{row:#}");
    server.ended(&busy).await;
    server.kill();
    let server = site.serve(&[]);
    let again = server.ended(&run).await;
    assert_eq!(again["outcome"], row["outcome"]);
}

#[tokio::test]
async fn a_run_that_continues_another_one_has_the_limits_that_it_is_given() {
    long_test!();
    let model = Model::new([write("done", "1\n"), say("Done."), write("more", "2\n"), say("More is done.")]);
    let site = Site::with(&model);
    let server = site.serve(&[]);
    let first = server.submit("---\nbudget: { turns: 2 }\n---\nMake the file `done`.").await;
    assert_eq!(server.ended(&first).await["outcome"]["reason"], "verified");
    let request = json!({ "after": first, "task": "Make `more` too.", "max_turns": 7, "max_tokens": 90_000 });
    let (status, row) = server.post("/v1/runs", request).await;
    assert_eq!(status.as_u16(), 201, "{row}");
    let row = server.ended(row["id"].as_str().unwrap()).await;
    let limits = &row["result"]["limits"];
    assert_eq!((&limits["turns"], &limits["tokens"]), (&json!(7), &json!(90_000)), "{row:#}");
}
