//! Tests of syncing runs of another machine: a second folder with its own state sends its runs to
//! the server.

use crate::server::http::support::{Answer, Place, Server, TOKEN};
use crate::support::{PATIENCE, until};
use serde_json::Value;
use std::fs;
use std::process::Output;

/// Makes another machine with a task that a cassette answers.
fn machine() -> Place {
    let place = Place::new();
    let file = |name: &str, text: &str| fs::write(place.path().join("project").join(name), text).unwrap();
    file("answers.yaml", "turns:\n  - text: Done.\n");
    file("task.md", "---\ntitle: Of another machine\nmodel: cassette/answers.yaml\nlane: false\n---\nDo it.\n");
    place
}

fn ran(place: &Place, args: &[&str], env: &[(&str, &str)]) -> (i32, String, String) {
    let Output { status, stdout, stderr } = place.fledge(args, env).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (status.code().unwrap_or(-1), text(stdout), text(stderr))
}

const RUN: [&str; 5] = ["run", "task.md", "--ni", "--sandbox", "off"];

fn listed(server: &Server) -> Vec<Value> {
    let answer = server.get("/v1/runs");
    assert_eq!(answer.status, 200, "{answer:?}");
    let data: Value = serde_json::from_str(&answer.body).unwrap();
    data["runs"].as_array().unwrap().clone()
}

fn url(server: &Server) -> String {
    format!("http://{}", server.address)
}

#[test]
fn a_run_of_another_machine_is_listed_shown_and_streamed_but_not_resumed() {
    let (here, there) = (Place::new(), machine());
    let server = here.serve(&[]);
    let to = url(&server);
    let sync = [("FLEDGE_SYNC_TOKEN", TOKEN)];
    let (code, _, said) = ran(&there, &[&RUN[..], &["--sync", &to]].concat(), &sync);
    assert_eq!(code, 0, "{said}");
    let runs = listed(&server);
    assert_eq!(runs.len(), 1, "{said}");
    let run = runs[0]["id"].as_str().unwrap();
    assert_eq!((runs[0]["title"].as_str(), runs[0]["state"].as_str()), (Some("Of another machine"), Some("ended")));
    assert!(runs[0]["machine"].as_str().is_some_and(|name| !name.is_empty()), "{runs:?}");
    let whole: Value = serde_json::from_str(&server.get(&format!("/v1/runs/{run}")).body).unwrap();
    assert!(whole["story"].to_string().contains("Done."), "{whole}");
    let address = server.address;
    let asking = format!(
        "GET /v1/runs/{run}/events HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {TOKEN}\r\nConnection: close\r\n\r\n"
    );
    let events = server.ask(asking.as_bytes());
    assert!(events.body.contains("event: end") && events.body.contains("Done."), "{}", events.body);
    let export = |place: &Place| ran(place, &["runs", "export", run], &[]).1;
    let records = |text: String| text.lines().skip(1).map(str::to_owned).collect::<Vec<_>>();
    let (ours, theirs) = (records(export(&here)), records(export(&there)));
    assert!(!theirs.is_empty());
    assert_eq!(ours, theirs);
    let (code, _, said) = ran(&here, &["runs", "resume", run], &[]);
    assert!(code == 2 && said.contains("resume it there"), "{code}: {said}");
    let (code, _, said) = ran(&here, &["runs", "show", "last"], &[]);
    assert!(code == 2 && said.contains("began on this machine"), "the last run is one of this machine: {said}");
    let traces = [ours.concat(), whole.to_string(), events.body].concat();
    assert!(!traces.contains(TOKEN));
}

#[test]
fn a_run_of_a_dead_machine_is_lost_in_the_list_and_the_api() {
    long_test!();
    let (here, there) = (Place::new(), machine());
    let server = here.serve(&[]);
    let (code, _, said) =
        ran(&there, &[&RUN[..], &["--sync", &url(&server)]].concat(), &[("FLEDGE_SYNC_TOKEN", TOKEN)]);
    assert_eq!(code, 0, "{said}");
    let run = listed(&server)[0]["id"].as_str().unwrap().to_owned();
    let change = |sql: &str| {
        let project = fs::read_dir(here.path().join("state")).unwrap().find_map(|entry| {
            let path = entry.unwrap().path().join("fledge.db");
            path.exists().then_some(path)
        });
        let db = rusqlite::Connection::open(project.unwrap()).unwrap();
        db.busy_timeout(PATIENCE).unwrap();
        assert_eq!(db.execute(sql, []).unwrap(), 1);
    };
    change("UPDATE runs SET ended_at = NULL, exit_code = NULL");
    assert_eq!(listed(&server)[0]["state"], "running");
    change("UPDATE received SET heard_at = heard_at - 301000, machine = 'ci-7'");
    let whole: Value = serde_json::from_str(&server.get(&format!("/v1/runs/{run}")).body).unwrap();
    for row in [&listed(&server)[0], &whole] {
        assert_eq!((row["state"].as_str(), row["machine"].as_str()), (Some("lost"), Some("ci-7")), "{row}");
        assert!(row["heard_at"].is_string(), "{row}");
    }
    let found = |state: &str| {
        let list: Value = serde_json::from_str(&server.get(&format!("/v1/runs?state={state}")).body).unwrap();
        list["runs"].as_array().unwrap().len()
    };
    assert_eq!(["lost", "running"].map(found), [1, 0]);
    let (_, list, _) = ran(&here, &["runs", "list"], &[]);
    assert!(list.contains("  lost  "), "{list}");
    let (_, shown, _) = ran(&here, &["runs", "show", &run], &[]);
    assert!(shown.contains("● lost: ") && shown.contains("; the machine ci-7 was last heard 5m ago"), "{shown}");
}

#[test]
fn no_server_changes_how_a_run_ends_and_what_it_was_not_told_is_sent_later() {
    long_test!();
    let (here, there) = (Place::new(), machine());
    let env =
        |to: &str| [("FLEDGE_SYNC".to_owned(), to.to_owned()), ("FLEDGE_SYNC_TOKEN".to_owned(), TOKEN.to_owned())];
    let with = |args: &[&str], to: &str| {
        let env = env(to);
        let env: Vec<(&str, &str)> = env.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        ran(&there, args, &env)
    };
    let (code, _, _) = ran(&there, &RUN, &[]); // before any run was sent
    assert_eq!(code, 0);
    let (code, _, said) = with(&RUN, "http://127.0.0.1:9");
    assert!(
        code == 0 && said.contains("not all records were sent: cannot connect to http://127.0.0.1:9"),
        "{code}: {said}"
    );
    assert_eq!(said.matches("not all records were sent").count(), 1, "{said}");
    let server = here.serve(&[]);
    let (code, said, _) =
        ran(&there, &["sync", "--sync", &url(&server)], &[("FLEDGE_SYNC_TOKEN", "wr0ng-token-0123456789")]);
    assert!(code == 1 && said.starts_with("0 runs sent"), "{code}: {said}");
    assert_eq!(listed(&server).len(), 0);
    let (code, said, hint) = with(&["sync"], &url(&server));
    assert!(code == 0 && said.starts_with("1 run sent, "), "{code}: {said}");
    assert!(hint.contains("1 run from before the first sync; pass --all to send them too"), "{hint}");
    let (code, said, _) = with(&["sync", "--all", "--json"], &url(&server));
    let data: Value = serde_json::from_str(&said).unwrap();
    assert_eq!((code, data["runs"].as_u64(), data["left"].as_u64()), (0, Some(1), Some(0)), "{said}");
    assert_eq!(listed(&server).len(), 2);
    let (code, said, _) = with(&["sync"], &url(&server));
    assert!(code == 0 && said.starts_with("0 runs sent, 0 records; 0 runs left"), "{said}");
}

#[test]
fn a_server_that_cannot_be_told_is_refused_before_the_run_begins() {
    let there = machine();
    let refused = |args: &[&str], env: &[(&str, &str)]| {
        let (code, _, said) = ran(&there, args, env);
        assert_eq!(code, 2, "{said}");
        said
    };
    let to = |url| [&RUN[..], &["--sync", url]].concat();
    assert!(refused(&to("http://127.0.0.1:9"), &[]).contains("set FLEDGE_SYNC_TOKEN"));
    let token = [("FLEDGE_SYNC_TOKEN", TOKEN)];
    assert!(refused(&to("http://fledge.example.com"), &token).contains("without https"));
    assert!(refused(&to("fledge.example.com"), &token).contains("https://HOST"));
    assert!(refused(&["sync"], &token).contains("no sync server is configured"));
    fs::write(there.path().join("project/fledge.yaml"), "sync: { url: 'https://evil.example' }\n").unwrap();
    assert!(refused(&RUN, &token).contains("could report your runs to a server that you did not choose"));
    let runs = ran(&there, &["runs", "list", "--json"], &[]).1;
    assert!(!runs.contains("Of another machine"), "{runs}");
}

#[test]
fn a_server_tells_another_one_of_its_runs_by_a_job_that_says_when_it_cannot() {
    long_test!();
    let (far, near) = (Place::new(), machine());
    let server = far.serve(&[]);
    let to = url(&server);
    let config = near.path().join("home/.config/fledge");
    fs::create_dir_all(&config).unwrap();
    let configure = |to: &str| {
        let text = format!("sync: {{ url: '{to}', token_env: FAR_TOKEN }}\n");
        fs::write(config.join("config.yaml"), text).unwrap();
    };
    configure(&to);
    let env = [("FLEDGE_SERVE_TOKEN", TOKEN), ("FAR_TOKEN", TOKEN)];
    let telling = near.serve_with(&[], &env);
    let body = r#"{"task": "---\nmodel: cassette/answers.yaml\nlane: false\nisolation: in-place\n---\n# From a server\n\nDo it.\n"}"#;
    let taken = post(&telling, "/v1/runs", body);
    assert_eq!(taken.status, 201, "{}", taken.body);
    until("the end of the run on the other server", || {
        post(&telling, "/v1/jobs/sync/run", "");
        listed(&server).iter().any(|run| run["title"] == "From a server" && run["state"] == "ended")
    });
    server.stop();
    let body =
        r#"{"task": "---\nmodel: cassette/answers.yaml\nlane: false\nisolation: in-place\n---\nDo it again.\n"}"#;
    assert_eq!(post(&telling, "/v1/runs", body).status, 201);
    until("a job that cannot connect", || {
        post(&telling, "/v1/jobs/sync/run", "");
        telling.get("/v1/jobs/sync/history").body.contains("cannot connect to http://127.0.0.1")
    });
    let (code, said) = telling.stop();
    assert!(code == Some(0) && said.contains("run `fledge sync` to send the rest"), "{code:?} {said}");
}

fn post(server: &Server, path: &str, body: &str) -> Answer {
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {TOKEN}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        server.address,
        body.len()
    );
    server.ask(format!("{head}{body}").as_bytes())
}
