//! Tests of jobs and monitors by HTTP and on the command line.

use crate::server::http::support::{Answer, Place, Server, TOKEN};
use crate::support::until;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::io::{Read, Write};

fn send(server: &Server, method: &str, path: &str, body: &str) -> Answer {
    let content = if body.is_empty() { "" } else { "Content-Type: application/json\r\n" };
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {TOKEN}\r\n{content}Content-Length: {}\r\n\r\n",
        server.address,
        body.len()
    );
    server.ask(format!("{head}{body}").as_bytes())
}

fn json_of(answer: &Answer) -> Value {
    serde_json::from_str(&answer.body).unwrap_or_else(|_| panic!("{} {}", answer.status, answer.body))
}

/// Waits for the end of a job's run, and returns it.
fn ended(server: &Server, name: &str) -> Value {
    let mut last = None;
    until(&format!("the end of {name}"), || {
        let history = json_of(&server.get(&format!("/v1/jobs/{name}/history")));
        last = history["runs"].get(0).filter(|run| run["state"] != "running").cloned();
        last.is_some()
    });
    last.unwrap()
}

#[test]
fn fledges_own_jobs_run_at_the_first_start_and_whenever_they_are_asked_to() {
    let place = Place::new();
    let server = place.serve(&[]);
    let own = [
        "worktrees-cleanup",
        "journal-pruning",
        "memory-expiry",
        "missed-runs",
        "deliveries",
        "session-cleanup",
        "link-cleanup",
        "credentials-refresh",
    ];
    for name in own {
        assert_eq!(ended(&server, name)["state"], "ok", "{name}");
    }
    let all = json_of(&server.get("/v1/jobs"));
    let names: Vec<&str> = all["jobs"].as_array().unwrap().iter().filter_map(|job| job["name"].as_str()).collect();
    assert!(own.iter().all(|name| names.contains(name)), "{names:?}");
    let asked = send(&server, "POST", "/v1/jobs/memory-expiry/run", "");
    assert_eq!((asked.status, json_of(&asked)["state"].clone()), (202, json!("asked")));
    assert_eq!(send(&server, "POST", "/v1/jobs/nothing/run", "").status, 404);
    assert_eq!(server.get("/v1/jobs/nothing/history").status, 404);
    let said = place.says(&["jobs", "run", "memory-expiry"], &[("FLEDGE_SERVE_TOKEN", TOKEN)]);
    assert!(said == "exit 0\nstarting job `memory-expiry`\n" || said.contains("already running"), "{said}");
    assert_eq!(json_of(&server.get("/healthz"))["jobs"], "ok");
    server.stop();
    let said = place.says(&["jobs", "run", "memory-expiry"], &[]);
    assert!(said.starts_with("exit 2\nerror: no server is running for PLACE/project"), "{said}");
    let said = place.says(&["jobs", "run", "memory-expire"], &[]);
    assert!(said.contains("did you mean `memory-expiry`?"), "{said}");
}

#[test]
fn a_scheduled_task_that_cannot_be_run_fails_by_itself_and_its_monitor_says_so() {
    long_test!();
    let place = Place::new();
    let tasks = place.path().join("project/tasks");
    fs::create_dir(&tasks).unwrap();
    fs::write(tasks.join("nightly.md"), "---\nschedule: \"0 3 * * *\"\nmodel: nobody/knows\n---\nDo it.\n").unwrap();
    fs::write(tasks.join("broken.md"), "---\nschedule: \"0 0 31 2 *\"\n---\nDo it.\n").unwrap();
    let server = place.serve(&[]);
    server.says("cannot run the scheduled task `broken`");
    assert_eq!(send(&server, "POST", "/v1/jobs/nightly/run", "").status, 202);
    let run = ended(&server, "nightly");
    assert_eq!((run["state"].clone(), run["due_at"].clone()), (json!("failed"), Value::Null), "{run}");
    let monitor = json_of(&server.get("/v1/monitors/nightly"));
    assert_eq!((monitor["health"].clone(), monitor["task"].clone()), (json!("failing"), json!("nightly")));
    let refused = send(&server, "POST", "/v1/jobs/broken/run", "");
    assert_eq!(refused.status, 409);
    assert!(refused.body.contains("is never due"), "{}", refused.body);
    assert_eq!(send(&server, "DELETE", "/v1/monitors/nightly", "").status, 409);
    let listed = place.says(&["jobs", "list"], &[]);
    assert!(listed.contains("nightly") && listed.contains("0 3 * * *") && listed.contains("is never due"), "{listed}");
    let none = "no server is running for this project, so no job starts: run `fledge serve`";
    assert!(!listed.contains(none), "{listed}");
    server.stop();
    let listed = place.says(&["jobs", "list"], &[]);
    assert!(listed.contains("nightly") && listed.contains(none), "{listed}");
}

#[test]
fn a_monitor_hears_by_one_request_and_is_the_same_at_the_command_line() {
    long_test!();
    let place = Place::new();
    let server = place.serve(&[]);
    let made = send(
        &server,
        "POST",
        "/v1/monitors",
        r#"{"slug":"backup","schedule":"every 1h","webhook":{"url":"http://127.0.0.1:9/x"}}"#,
    );
    assert_eq!(made.status, 201, "{}", made.body);
    assert_eq!(json_of(&made)["webhook_secret"].as_str().map(str::len), Some(48));
    let again = send(&server, "POST", "/v1/monitors", r#"{"slug":"backup","schedule":"every 2h"}"#);
    assert_eq!((again.status, json_of(&again)["on_change"].clone()), (200, json!("webhook")));
    for (wrong, status) in [
        (r#"{"slug":"backup"}"#, 422),
        (r#"{"slug":"Back up","schedule":"@daily"}"#, 422),
        (r#"{"slug":"backup","schedule":"0 0 31 2 *"}"#, 422),
        (r#"{"slug":"backup","schedule":"@daily","zone":"Berlin"}"#, 422),
        (r#"{"slug":"backup","schedule":"@daily","margin_minutes":-1}"#, 422),
        (r#"{"slug":"backup","schedule":"@daily","on_change":{"command":["x"]}}"#, 422),
        (r#"{"slug":"backup","schedule":"@daily","webhook":{"url":"http://example.org/"}}"#, 422),
        ("{", 400),
    ] {
        let refused = send(&server, "POST", "/v1/monitors", wrong);
        assert_eq!(refused.status, status, "{wrong}: {}", refused.body);
    }
    let heard = send(&server, "POST", "/v1/monitors/backup/checkins?status=error", "");
    assert_eq!((heard.status, json_of(&heard)["health"].clone()), (200, json!("failing")), "{}", heard.body);
    let body = r#"{"status":"ok","id":"7","duration_ms":1500}"#;
    let heard = send(&server, "POST", "/v1/monitors/backup/checkins", body);
    assert_eq!(json_of(&heard), json!({ "slug": "backup", "health": "healthy", "changed": true }));
    assert_eq!(json_of(&send(&server, "POST", "/v1/monitors/backup/checkins", body))["changed"], false);
    for path in ["checkins?status=missed", "checkins?status=soon", "checkins", "checkins?status=ok&id=a/b"] {
        let status = send(&server, "POST", &format!("/v1/monitors/backup/{path}"), "").status;
        assert!(status == 422 || status == 400, "{path}: {status}");
    }
    assert_eq!(send(&server, "POST", "/v1/monitors/none/checkins?status=ok", "").status, 404);
    let heard = json_of(&server.get("/v1/monitors/backup/checkins?limit=9"));
    assert_eq!(heard["checkins"].as_array().map(Vec::len), Some(2), "{heard}");
    let shown = place.says(&["monitors", "show", "backup"], &[]);
    assert!(shown.contains("backup  healthy") && shown.contains("✗✓"), "{shown}");
    let said = place.says(&["monitors", "checkin", "backup", "error"], &[]);
    assert_eq!(said, "exit 0\n`backup` is failing\n");
    let said = place.says(&["monitors", "add", "pulse", "--schedule", "every 10m", "--margin", "2m"], &[]);
    assert_eq!(said, "exit 0\n`pulse` added\n");
    let said = place.says(&["monitors", "notify", "pulse", "--command", "true"], &[]);
    assert_eq!(said, "exit 0\nchanges of health run `true`\n");
    let said = place.says(&["monitors", "notify", "pulse", "--webhook", "https://example.org/hook/s3cret"], &[]);
    assert!(
        said.contains("are sent to https://example.org, instead of the program `true`; messages are signed"),
        "{said}"
    );
    let said = place.says(&["monitors", "notify", "pulse", "--off"], &[]);
    assert_eq!(said, "exit 0\nchanges of health are sent to no one, instead of https://example.org\n");
    place.says(&["monitors", "checkin", "pulse", "in_progress", "--id", "8"], &[]);
    let shown = place.says(&["monitors", "show", "pulse"], &[]);
    assert!(shown.contains("  in_progress  client"), "{shown}");
    assert_eq!(json_of(&server.get("/v1/monitors"))["monitors"].as_array().map(Vec::len), Some(2));
    assert_eq!(send(&server, "DELETE", "/v1/monitors/pulse", "").status, 204);
    let said = place.says(&["monitors", "remove", "puls"], &[]);
    assert!(said.starts_with("exit 2\nerror: there is no monitor `puls`"), "{said}");
}

/// Returns the words that a schema of the API's description allows.
fn words_of(document: &Value, schema: &Value) -> BTreeSet<String> {
    let target = schema["$ref"].as_str().and_then(|target| document.pointer(target.trim_start_matches('#')));
    let inner = target.map(|target| words_of(document, target)).unwrap_or_default();
    let some = ["anyOf", "oneOf"].iter().flat_map(|key| schema[*key].as_array()).flatten();
    let own = schema["enum"].as_array().into_iter().flatten().chain([&schema["const"]]);
    let own = own.filter_map(|word| word.as_str().map(str::to_owned));
    own.chain(inner).chain(some.flat_map(|schema| words_of(document, schema))).collect()
}

#[test]
fn a_check_in_is_accepted_with_exactly_the_statuses_that_the_description_offers() {
    let place = Place::new();
    let server = place.serve(&[]);
    let made = send(&server, "POST", "/v1/monitors", r#"{"slug":"backup","schedule":"every 1h"}"#);
    assert_eq!(made.status, 201, "{}", made.body);
    let document = json_of(&server.get("/openapi.json"));
    let post = &document["paths"]["/v1/monitors/{slug}/checkins"]["post"];
    let parameter = post["parameters"].as_array().unwrap().iter().find(|parameter| parameter["name"] == "status");
    let in_query = words_of(&document, &parameter.unwrap()["schema"]);
    let body = &post["requestBody"]["content"]["application/json"]["schema"];
    let body = body["$ref"].as_str().map_or(body, |target| document.pointer(target.trim_start_matches('#')).unwrap());
    let in_body = words_of(&document, &body["properties"]["status"]);
    let path = "/v1/monitors/backup/checkins";
    let all = ["in_progress", "ok", "error", "missed", "timeout", "late", "failing", "timed_out", "healthy"];
    let accepted = |send: &dyn Fn(&str) -> Answer| -> BTreeSet<String> {
        all.into_iter().filter(|word| send(word).status == 200).map(str::to_owned).collect()
    };
    assert_eq!(accepted(&|word| send(&server, "POST", &format!("{path}?status={word}"), "")), in_query);
    let with = |word: &str| send(&server, "POST", path, &json!({ "status": word }).to_string());
    assert_eq!((accepted(&with), in_body.len()), (in_body.clone(), 3));
}

#[test]
fn what_another_process_hears_of_a_monitor_is_told_once_to_all_who_listen_here() {
    let place = Place::new();
    let said = place.says(&["monitors", "add", "backup", "--schedule", "0 3 * * *"], &[]);
    assert!(said.starts_with("exit 0"), "{said}");
    let server = place.serve(&[]);
    assert_eq!(ended(&server, "missed-runs")["state"], "ok"); // the monitor now has a current state
    let asked = |name: &str, before: usize| {
        send(&server, "POST", &format!("/v1/jobs/{name}/run"), "");
        until(name, || {
            let history = json_of(&server.get(&format!("/v1/jobs/{name}/history")));
            let runs = history["runs"].as_array();
            runs.is_some_and(|runs| runs.iter().filter(|run| run["state"] == "ok").count() > before)
        });
    };
    let mut stream = server.connect();
    let head = format!(
        "GET /v1/events HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {TOKEN}\r\nConnection: close\r\n\r\n",
        server.address
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut all = [0; 12];
    stream.read_exact(&mut all).unwrap();
    assert_eq!(&all, b"HTTP/1.1 200");
    let checked = place.says(&["monitors", "checkin", "backup", "error"], &[]);
    assert!(checked.contains("is failing"), "{checked}");
    asked("missed-runs", 1);
    asked("missed-runs", 2);
    server.stop();
    let mut told = String::new();
    stream.read_to_string(&mut told).unwrap();
    let of_it = r#""health":"failing""#;
    assert_eq!((told.matches(of_it).count(), told.contains("backup")), (1, true), "{told}");
}
