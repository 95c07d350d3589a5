//! Tests of calls that need approval, asked and answered by HTTP.

use crate::server::engine::site::{Server, Site};
use crate::support::{Model, say, shell};
use serde_json::{Value, json};

const TASK: &str = "---\napprove: { ask: [shell-exec] }\n---\n# Ask first\n\nMake the file `done`.";

async fn asked(server: &Server, run: &str) -> Value {
    let row = server.until(run, |row| row["pending"] == 1).await;
    let (_, open) = server.get(&format!("/v1/runs/{run}/confirmations")).await;
    assert_eq!(row["confirmations"], open["confirmations"]);
    open["confirmations"][0].clone()
}

async fn answer(server: &Server, run: &str, question: &Value, answer: Value) -> u16 {
    let id = question["id"].as_str().unwrap();
    server.post(&format!("/v1/runs/{run}/confirmations/{id}"), answer).await.0.as_u16()
}

#[tokio::test]
async fn a_call_waits_for_a_yes_and_an_answer_counts_once() {
    long_test!();
    let model = Model::new([shell("echo 1 > done"), say("Done.")]);
    let site = Site::with(&model);
    let server = site.serve(&[]);
    let run = server.submit(TASK).await;
    let question = asked(&server, &run).await;
    assert_eq!((&question["tool"], &question["args"]["command"]), (&json!("shell-exec"), &json!("echo 1 > done")));
    assert_eq!(answer(&server, &run, &question, json!({ "answer": "perhaps" })).await, 422);
    assert_eq!(answer(&server, &run, &question, json!({ "answer": "yes" })).await, 200);
    assert_eq!(answer(&server, &run, &question, json!({ "answer": "no" })).await, 409);
    let row = server.ended(&run).await;
    assert_eq!(row["outcome"]["reason"], "verified", "{row:#}");
    assert_eq!(row["pending"], 0);
}

#[tokio::test]
async fn a_call_that_is_denied_is_not_run_and_the_model_hears_why() {
    long_test!();
    let model = Model::new([shell("echo 1 > done"), say("Then not.").always()]);
    let site = Site::with(&model);
    let server = site.serve(&[]);
    let run = server.submit(&TASK.replace("---\n#", "max_retries: 0\n---\n#")).await;
    let question = asked(&server, &run).await;
    assert_eq!(answer(&server, &run, &question, json!({ "answer": "no", "why": "too soon" })).await, 200);
    let row = server.ended(&run).await;
    assert_eq!(row["outcome"]["reason"], "gate_failed", "{row:#}");
    assert!(model.asked()[1].newest().contains("a person said no: too soon"), "{}", model.asked()[1].newest());
}

#[tokio::test]
async fn questions_of_different_runs_do_not_wait_for_each_other() {
    long_test!();
    let model = Model::new([shell("echo 1 > done"), shell("echo 1 > done"), say("Done."), say("Done.")]);
    let site = Site::with(&model);
    let server = site.serve(&[]);
    let (one, other) = (server.submit(TASK).await, server.submit(TASK).await);
    let (first, second) = (asked(&server, &one).await, asked(&server, &other).await);
    assert_ne!(first["id"], second["id"]);
    assert_eq!(answer(&server, &other, &second, json!({ "answer": "yes" })).await, 200);
    assert_eq!(server.ended(&other).await["outcome"]["reason"], "verified");
    assert_eq!(answer(&server, &one, &first, json!({ "answer": "yes" })).await, 200);
    assert_eq!(server.ended(&one).await["outcome"]["reason"], "verified");
}

#[tokio::test]
async fn a_question_that_was_open_when_the_server_died_is_asked_again_by_the_next_one() {
    long_test!();
    let model = Model::new([shell("echo 1 > done"), say("Done.")]);
    let site = Site::with(&model);
    let server = site.serve(&[]);
    let run = server.submit(TASK).await;
    let before = asked(&server, &run).await;
    server.kill();
    let server = site.serve(&[]);
    let after = asked(&server, &run).await;
    assert_ne!(before["id"], after["id"], "an answer to the old one must not count for the new one");
    assert_eq!(answer(&server, &run, &before, json!({ "answer": "yes" })).await, 409);
    assert_eq!(answer(&server, &run, &after, json!({ "answer": "yes" })).await, 200);
    assert_eq!(server.ended(&run).await["outcome"]["reason"], "verified");
}
