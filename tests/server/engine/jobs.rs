//! Tests of recurring jobs that a server runs.

use crate::server::engine::site::{Server, Site};
use crate::support::PATIENCE;
use crate::support::{Model, git, say, write};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

/// Returns the runs of a job, the newest first.
async fn history(server: &Server, job: &str) -> Vec<Value> {
    let (_, history) = server.get(&format!("/v1/jobs/{job}/history")).await;
    history["runs"].as_array().cloned().unwrap_or_default()
}

/// Returns the requested runs of a job, the newest first.
async fn asked_for(server: &Server, job: &str) -> Vec<Value> {
    history(server, job).await.into_iter().filter(|run| run["due_at"].is_null()).collect()
}

/// Requests a run of a job, and returns the run once `holds` is true. Waits for the server to find
/// the job.
async fn done(server: &Server, job: &str, holds: impl Fn(&Value) -> bool) -> Value {
    let (late, before) = (Instant::now() + PATIENCE, asked_for(server, job).await.len());
    loop {
        let (status, said) = server.post(&format!("/v1/jobs/{job}/run"), json!({})).await;
        if status.as_u16() == 202 {
            break;
        }
        assert!(Instant::now() < late, "{status}: {said}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    loop {
        let all = asked_for(server, job).await;
        if let Some(run) = all.first().filter(|run| all.len() > before && holds(run)) {
            return run.clone();
        }
        assert!(Instant::now() < late, "{job} does not end: {all:#?}\n{}", server.log());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn is_over(run: &Value) -> bool {
    run["state"] != "running"
}

#[tokio::test]
async fn a_scheduled_task_is_verified_and_checks_in_at_its_start_and_end() {
    long_test!();
    let model = Model::new([write("done", "1\n"), say("It is done.")]);
    let site = Site::with(&model);
    site.file("tasks/nightly.md", "---\nschedule: \"0 3 1 1 *\"\n---\n# Nightly\n\nMake the file `done`.\n");
    site.commit();
    let server = site.serve(&[]);
    let ended = done(&server, "nightly", is_over).await;
    assert_eq!(ended["state"], "ok", "{ended:#}\n{}", server.log());
    let (_, list) = server.get("/v1/runs").await;
    let run = list["runs"][0]["id"].as_str().unwrap();
    let row = server.ended(run).await;
    assert_eq!((&row["title"], &row["outcome"]["verified"]), (&json!("Nightly"), &json!(true)), "{row:#}");
    let commit = row["result"]["commit"].as_str().unwrap();
    assert_eq!(git(&site.project(), &["show", &format!("{commit}:done")]), "1");
    let (status, monitor) = server.get("/v1/monitors/nightly").await;
    assert_eq!((status.as_u16(), &monitor["health"]), (200, &json!("healthy")), "{monitor:#}");
    let heard: Vec<&str> =
        monitor["strip"].as_array().unwrap().iter().map(|one| one["status"].as_str().unwrap()).collect();
    assert_eq!(heard, ["ok"], "{monitor:#}");
}

#[tokio::test]
async fn why_a_task_with_a_schedule_could_not_be_run_stands_in_what_became_of_its_job() {
    let site = Site::new();
    site.file(
        "tasks/nightly.md",
        "---\nschedule: \"0 3 1 1 *\"\nmodel: cassette/absent.yaml\n---\n# Nightly\n\nSay it.\n",
    );
    site.commit();
    let server = site.serve(&[]);
    let ended = done(&server, "nightly", is_over).await;
    assert_eq!(ended["state"], "failed", "{ended:#}");
    let why = ended["error"].as_str().unwrap();
    assert!(why.starts_with("bad input: there is no cassette "), "{ended:#}");
    let text = |args: &[&str]| String::from_utf8(site.fledge(args).output().unwrap().stdout).unwrap();
    assert!(text(&["jobs", "list"]).contains(why), "{}", text(&["jobs", "list"]));
    assert!(server.log().contains(why), "{}", server.log());
}

#[tokio::test]
async fn keys_that_will_not_last_are_asked_for_ahead_and_no_run_waits_for_them() {
    long_test!();
    let model = Model::new([say("Done."), say("Done.")]);
    let site = Site::with(&model);
    let asked = site.path().join("asked");
    let script = site.path().join("key");
    fs::write(&script, format!("#!/bin/sh\necho x >> {0}\necho key-$(wc -l < {0} | tr -d ' ')\n", asked.display()))
        .unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let config = site.path().join("home/.config/fledge");
    fs::create_dir_all(&config).unwrap();
    let entry = format!(
        "models:\n  m: {{ provider: anthropic, model: m, base_url: '{}', api_key_command: ['{}'], api_key_ttl: 2m }}\n",
        model.url(),
        script.display()
    );
    fs::write(config.join("config.yaml"), entry).unwrap();
    let server = site.serve(&[]);
    let times = || fs::read_to_string(&asked).map_or(0, |text| text.lines().count());
    // The job also runs on schedule, every five minutes by the clock.
    let must_have_asked = async |count: usize| {
        // The times are read first: a run of the job is in its history before it asks for
        // credentials.
        let times = times();
        let unasked =
            history(&server, "credentials-refresh").await.iter().filter(|run| !run["due_at"].is_null()).count();
        assert!((count..=count + unasked).contains(&times), "{times} times, not {count}; unasked: {unasked}");
    };
    assert_eq!(done(&server, "credentials-refresh", is_over).await["state"], "ok");
    must_have_asked(0).await;
    let run = server.submit("---\nmodel: m\nlane: false\ntier: read\n---\nSay it.\n").await;
    let row = server.ended(&run).await;
    assert_eq!(row["outcome"]["exit_code"], json!(0), "{row:#}");
    must_have_asked(1).await;
    // Two minutes are less than the five until the next check.
    assert_eq!(done(&server, "credentials-refresh", is_over).await["state"], "ok");
    must_have_asked(2).await;
    let run = server.submit("---\nmodel: m\nlane: false\ntier: read\n---\nSay it again.\n").await;
    server.ended(&run).await;
    must_have_asked(2).await;
    fs::write(&script, "#!/bin/sh\nexit 4\n").unwrap();
    let failed = done(&server, "credentials-refresh", |run| run["error"].is_string()).await;
    assert!(failed["error"].as_str().unwrap().contains("the key command failed with exit code 4"), "{failed:#}");
}
