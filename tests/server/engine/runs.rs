//! Tests of run requests: accepted, refused, run, and cancelled.

use crate::server::engine::site::Site;
use crate::support::{Model, git, hang, say, write};
use serde_json::json;
use std::fs;

#[tokio::test]
async fn a_task_that_is_posted_is_verified_and_committed_and_leaves_what_it_came_to() {
    long_test!();
    let model = Model::new([write("done", "1\n"), say("It is done.")]);
    let site = Site::with(&model);
    let server = site.serve(&[]);
    let run = server.submit("# Make done\n\nMake the file `done`.").await;
    let row = server.ended(&run).await;
    assert_eq!((&row["outcome"]["reason"], &row["outcome"]["verified"]), (&json!("verified"), &json!(true)), "{row:#}");
    assert_eq!((&row["id"], &row["title"], &row["source"]), (&json!(run), &json!("Make done"), &json!("-")));
    assert!(row["story"].as_array().unwrap().iter().any(|scene| scene["type"] == "gate"), "{row:#}");
    assert_eq!(row["result"]["verified"], json!(true));
    let commit = row["result"]["commit"].as_str().unwrap();
    assert_eq!(git(&site.project(), &["show", &format!("{commit}:done")]), "1");
    assert!(!site.project().join("done").exists(), "the run works in its own worktree");
    let names: Vec<&str> =
        row["artifacts"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
    for name in ["report.json", "report.md", "journal.jsonl", "diff.patch"] {
        assert!(names.contains(&name), "{names:?}");
    }
    let (status, report) = server.get(&format!("/v1/runs/{run}/artifacts/report.json")).await;
    assert_eq!((status.as_u16(), &report["run"]), (200, &json!(run)));
    let (_, patch) = server.get(&format!("/v1/runs/{run}/artifacts/diff.patch")).await;
    assert!(patch.as_str().unwrap().contains("+++ b/done"), "{patch}");
    let (_, journal) = server.get(&format!("/v1/runs/{run}/artifacts/journal.jsonl")).await;
    assert!(journal.as_str().unwrap().lines().count() > 5);
    let is_log = |name: &&&str| name.starts_with("logs/base/verify/");
    let log = names.iter().find(is_log).unwrap_or_else(|| panic!("{names:?}"));
    assert_eq!(server.get(&format!("/v1/runs/{run}/artifacts/{log}")).await.0.as_u16(), 200, "{log}");
    // Commands that work without a server know the run too.
    let shown = site.json(&["runs", "show", &run, "--json"]);
    assert_eq!(shown["result"], row["result"]);
    assert_eq!(shown["story"], row["story"]);
}

#[tokio::test]
async fn the_same_wish_with_the_same_key_is_one_run_and_another_wish_is_refused() {
    long_test!();
    let model = Model::new([hang()]);
    let site = Site::with(&model);
    let server = site.serve(&["--grace", "1s"]);
    let wish = json!({ "task": "Make the file `done`.", "key": "nightly" });
    let (first, one) = server.post("/v1/runs", wish.clone()).await;
    let (second, other) = server.post("/v1/runs", wish.clone()).await;
    assert_eq!((first.as_u16(), second.as_u16(), &one["id"]), (201, 200, &other["id"]));
    let (status, problem) = server.post("/v1/runs", json!({ "task": "Another.", "key": "nightly" })).await;
    assert_eq!(status.as_u16(), 409, "{problem}");
    model.wait_for(1);
    server.kill();
    let server = site.serve(&["--grace", "1s"]);
    let (status, again) = server.post("/v1/runs", wish).await;
    assert_eq!((status.as_u16(), &again["id"], &again["run_key"]), (200, &one["id"], &json!("nightly")), "{again}");
    assert_eq!(site.json(&["runs", "list", "--json"])["runs"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn what_cannot_be_run_is_refused_with_the_place_and_nothing_is_begun() {
    long_test!();
    let model = Model::new([]);
    let site = Site::with(&model);
    fs::write(site.path().join("outside.md"), "Do this.").unwrap();
    std::os::unix::fs::symlink(site.path().join("outside.md"), site.project().join("link.md")).unwrap();
    let server = site.serve(&[]);
    let (status, problem) =
        server.post("/v1/runs", json!({ "task": "---\nmodle: a\ntier: none\n---\n# Title\n" })).await;
    assert_eq!(status.as_u16(), 422);
    server.must_describe("/v1/runs", status, &problem).await;
    let errors = problem["errors"].as_array().unwrap();
    let places: Vec<(u64, u64)> =
        errors.iter().map(|e| (e["line"].as_u64().unwrap(), e["column"].as_u64().unwrap())).collect();
    assert!(places.contains(&(2, 1)) && places.contains(&(3, 7)), "{problem:#}");
    let rows = [
        (json!({}), 422),
        (json!({ "task": "a", "path": "b" }), 422),
        (json!({ "task": "a", "more": 1 }), 422),
        (json!({ "task": 1 }), 422),
        (json!({ "task": "a", "key": "" }), 422),
        (json!({ "task": "a", "key": "a#2" }), 422),
        (json!({ "task": "a", "params": { "b": [] } }), 422),
        (json!({ "task": "---\nparams: { c: { required: true } }\n---\na {{c}}", "params": { "b": 1 } }), 422),
        (json!({ "task": "---\nmodel: nobody\n---\na" }), 422),
        (json!({ "task": "---\nneeds: [b.md]\n---\na" }), 422),
        (json!({ "path": "tasks/none.md" }), 422),
        (json!({ "path": "../outside.md" }), 422),
        (json!({ "path": "link.md" }), 422),
        (json!({ "path": site.path().join("outside.md") }), 422),
        (json!({ "path": "tasks" }), 422),
        (json!({ "path": "a\u{0}b" }), 422),
        (json!({ "task": "a".repeat(300_000) }), 413),
    ];
    for (wish, expected) in rows {
        let said = wish.to_string();
        let (status, problem) = server.post("/v1/runs", wish).await;
        let said: String = said.chars().take(80).collect();
        assert_eq!(
            (status.as_u16(), problem["status"].as_u64()),
            (expected, Some(expected.into())),
            "{said}: {problem}"
        );
        server.must_describe("/v1/runs", status, &problem).await;
    }
    for path in ["/v1/runs/none", "/v1/runs/..%2f..%2fetc", "/v1/runs/none/events", "/v1/runs/none/artifacts"] {
        assert_eq!(server.get(path).await.0.as_u16(), 404, "{path}");
    }
    let (_, list) = server.get("/v1/runs").await;
    assert_eq!(list, json!({ "runs": [], "next": null }));
    assert_eq!(model.count(), 0);
}

#[tokio::test]
async fn files_that_are_no_artifacts_are_not_given_out() {
    long_test!();
    let model = Model::new([write("done", "1\n"), say("It is done.")]);
    let site = Site::with(&model);
    let server = site.serve(&[]);
    let run = server.submit("Make the file `done`.").await;
    server.ended(&run).await;
    for name in [
        "gate",
        "lock",
        "..%2f..%2ffledge.db",
        "logs%2f..%2flock",
        "logs/../lock",
        "%2fetc%2fpasswd",
        "report.json/",
        "logs",
    ] {
        let (status, _) = server.get(&format!("/v1/runs/{run}/artifacts/{name}")).await;
        assert!(status.is_client_error(), "{name}: {status}");
    }
}

#[tokio::test]
async fn large_files_are_given_out_whole_and_few_at_once_whoever_reads_slowly() {
    long_test!();
    const BYTES: usize = 32 * 1024 * 1024;
    let model = Model::new([write("done", "1\n"), say("It is done.")]);
    let site = Site::with(&model);
    let server = site.serve(&[]);
    let run = server.submit("Make the file `done`.").await;
    server.ended(&run).await;
    let is_logs = |entry: &walkdir::DirEntry| entry.path().ends_with(format!("{run}/logs"));
    let logs = walkdir::WalkDir::new(site.path().join("state")).into_iter().flatten().find(is_logs).unwrap();
    fs::write(logs.path().join("large.log"), vec![b'x'; BYTES]).unwrap();
    let get = async |name: &str| {
        let url = format!("{}/v1/runs/{run}/artifacts/{name}", server.url);
        server.client.get(url).send().await.unwrap()
    };
    let mut slow = Vec::new();
    for _reader in 0..4 {
        slow.push(get("logs/large.log").await);
        assert_eq!(slow.last().unwrap().status(), 200);
    }
    assert_eq!(get("logs/large.log").await.status(), 503, "one more than there may be");
    assert_eq!(get("report.json").await.status(), 200, "small files do not wait");
    drop(slow);
    let whole = get("logs/large.log").await;
    assert_eq!((whole.status().as_u16(), whole.content_length()), (200, Some(BYTES as u64)));
    assert!(whole.bytes().await.unwrap().iter().all(|byte| *byte == b'x'));
}

#[tokio::test]
async fn a_run_can_be_cancelled_while_it_waits_or_works_but_not_after_its_end() {
    let model = Model::new([hang()]);
    let site = Site::with(&model);
    let server = site.serve(&["--max-runs", "1"]);
    let (first, second) = (server.submit("First.").await, server.submit("Second.").await);
    model.wait_for(1);
    let (status, said) = server.post(&format!("/v1/runs/{second}/cancel"), json!({})).await;
    assert_eq!((status.as_u16(), &said["state"]), (200, &json!("ended")));
    let row = server.ended(&second).await;
    assert_eq!((&row["outcome"]["reason"], &row["outcome"]["cancelled"]), (&json!("cancelled"), &json!(true)));
    let (status, _) = server.post(&format!("/v1/runs/{first}/cancel"), json!({})).await;
    assert_eq!(status.as_u16(), 202);
    let row = server.ended(&first).await;
    assert_eq!((&row["outcome"]["reason"], &row["outcome"]["exit_code"]), (&json!("cancelled"), &json!(130)));
    let (status, said) = server.post(&format!("/v1/runs/{first}/cancel"), json!({})).await;
    assert_eq!((status.as_u16(), &said["state"]), (200, &json!("ended")));
    assert_eq!(model.count(), 1, "the second one never began");
}
