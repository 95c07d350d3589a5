//! Tests of the list of all runs: pages, filters, and speed with many runs.

use crate::server::engine::site::Site;
use crate::support::{Model, PATIENCE, SOON, hang, say, write};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

fn titles(list: &Value) -> Vec<&str> {
    list["runs"].as_array().unwrap().iter().map(|run| run["title"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn runs_are_listed_in_parts_those_that_wait_first_and_found_by_what_they_are() {
    long_test!();
    let model = Model::new([write("done", "1\n"), say("Done."), say("I give up."), hang()]);
    let site = Site::with(&model);
    let server = site.serve(&["--max-runs", "1", "--grace", "1s"]);
    let verified = server.submit("# Alpha 100%\n\nMake the file `done`.").await;
    server.ended(&verified).await;
    let failed = server.submit("---\nmax_retries: 0\n---\n# Beta_1\n\nMake the file `done`.").await;
    server.ended(&failed).await;
    let running = server.submit("# Gamma\n\nWait.").await;
    model.wait_for(4);
    for number in 1..=3 {
        server.submit(&format!("# Waits {number}\n\nWait.")).await;
    }
    let waits = server.submit("# Waits 4\n\nWait.").await;
    let (mut all, mut next) = (Vec::new(), String::new());
    loop {
        let (status, page) = server.get(&format!("/v1/runs?limit=2{next}")).await;
        assert_eq!(status.as_u16(), 200, "{page}");
        all.extend(titles(&page).into_iter().map(str::to_owned));
        let Some(before) = page["next"].as_str() else { break };
        next = format!("&before={before}");
    }
    assert_eq!(all, ["Waits 4", "Waits 3", "Waits 2", "Waits 1", "Gamma", "Beta_1", "Alpha 100%"]);
    let rows = [
        ("state=queued", "Waits 4,Waits 3,Waits 2,Waits 1"),
        ("state=running", "Gamma"),
        ("state=interrupted", ""),
        ("state=ended", "Beta_1,Alpha 100%"),
        ("outcome=verified", "Alpha 100%"),
        ("outcome=failed", "Beta_1"),
        ("state=running&outcome=failed", ""),
        ("q=a_1", "Beta_1"),
        ("q=100%25", "Alpha 100%"),
        ("q=waits&limit=1", "Waits 4"),
        ("q=nothing", ""),
    ];
    for (query, expected) in rows {
        let (_, page) = server.get(&format!("/v1/runs?{query}")).await;
        assert_eq!(titles(&page).join(","), expected, "{query}");
    }
    for query in ["limit=0", "limit=501", "limit=x", "state=none", "outcome=none"] {
        assert_eq!(server.get(&format!("/v1/runs?{query}")).await.0.as_u16(), 400, "{query}");
    }
    let (_, page) = server.get(&format!("/v1/runs?before={failed}")).await;
    assert_eq!(titles(&page), ["Alpha 100%"]);
    let (_, row) = server.get(&format!("/v1/runs/{}", &running[..20])).await;
    assert_eq!((&row["id"], &row["doing"]), (&json!(running), &json!("waiting for the model, turn 1")));
    let (_, row) = server.get(&format!("/v1/runs/{waits}")).await;
    assert_eq!((&row["state"], &row["outcome"], &row["story"]), (&json!("queued"), &Value::Null, &json!([])));
    for verb in ["show", "watch", "export", "diff", "undo"] {
        let ended = site.fledge(&["runs", verb, &waits]).output().unwrap();
        let said = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(2), "{verb}: {said}");
        assert!(said.contains(&format!("run {waits} waits in the queue of the server")), "{verb}: {said}");
    }
}

#[tokio::test]
async fn a_part_of_a_list_of_ten_thousand_runs_is_there_at_once() {
    long_test!();
    let site = Site::new();
    let server = site.serve(&[]);
    let database = || {
        let state = std::fs::read_dir(site.path().join("state")).unwrap().map(|entry| entry.unwrap().path());
        state.map(|project| project.join("fledge.db")).find(|path| path.exists()).unwrap()
    };
    // The server removes all but 1,000 runs soon after its start, and then not for a day.
    let begun = Instant::now();
    while server.get("/v1/jobs/journal-pruning/history").await.1["runs"][0]["state"] != "ok" {
        assert!(begun.elapsed() < PATIENCE, "old runs are never removed:\n{}", server.log());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let begun = jiff::Timestamp::now().as_millisecond();
    let sql = format!(
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10000)
        INSERT INTO runs (id, title, source, task_digest, workspace, models, fledge, journal_version, started_at, ended_at, reason, exit_code,
            verified, cancelled, attempts, turns, tokens_in, tokens_out, tokens_cached, summary, bytes, safe_seq, safe_hash)
        SELECT printf('00000000-0000-7000-8000-%012d', i), printf('Run %d', i), '-', '', '/p', '[]', '0', 2, {begun} - 10000 + i, {begun},
            'verified', 0, 1, 0, 1, 1, 1, 1, 0, '', 0, 0, x'00' FROM n"
    );
    rusqlite::Connection::open(database()).unwrap().execute_batch(&sql).unwrap();
    let (mut slowest, mut seen, mut next) = (Duration::ZERO, 0, String::new());
    for _ in 0..30 {
        let watch = Instant::now();
        let (_, page) = server.get(&format!("/v1/runs?limit=50{next}")).await;
        slowest = slowest.max(watch.elapsed());
        seen += titles(&page).len();
        next = format!("&before={}", page["next"].as_str().unwrap());
    }
    let watch = Instant::now();
    let (_, page) = server.get("/v1/runs?q=Run%2077").await;
    slowest = slowest.max(watch.elapsed());
    assert_eq!((seen, titles(&page).len()), (1500, 50));
    println!("the slowest part took {slowest:?}");
    assert!(slowest < SOON, "{slowest:?}");
}
