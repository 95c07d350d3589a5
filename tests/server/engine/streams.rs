//! Tests of the event stream of a run: from its start, from the middle, across the death of a
//! server, with a slow reader, and after its end.

use crate::server::engine::site::{Heard, Server, Site};
use crate::support::{Model, Turn, call, hang, say, shell, write};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Returns a script that lists files, runs a command and then writes the file `done`.
fn script() -> [crate::support::Turn; 4] {
    [
        call("files-list", json!({})).saying("I look around."),
        shell("echo one; echo two"),
        write("done", "1\n"),
        say("It is done."),
    ]
}

/// Returns the events of the journal as a reader after the end gets them, without their times.
async fn from_journal(server: &Server, run: &str) -> Vec<Heard> {
    let all = server.follow(run, None).await.all().await;
    all.into_iter().map(timeless).collect()
}

fn timeless(mut heard: Heard) -> Heard {
    if let Some(data) = heard.data.as_object_mut() {
        data.remove("at");
    }
    heard
}

/// Returns those events that the journal has, without their times.
fn kept(all: &[Heard]) -> Vec<Heard> {
    all.iter().filter(|heard| heard.kept().is_some() || heard.name.is_some()).cloned().map(timeless).collect()
}

/// Returns the data of all events of one type.
fn of<'h>(all: &'h [Heard], kind: &str) -> Vec<&'h Value> {
    all.iter().filter(|heard| heard.data["type"] == kind).map(|heard| &heard.data["data"]).collect()
}

#[tokio::test]
async fn who_follows_from_the_start_hears_all_with_growing_numbers_and_an_end_once() {
    long_test!();
    let model = Model::new(script());
    let site = Site::with(&model);
    let server = site.serve(&[]);
    let run = server.submit("Make the file `done`.").await;
    let live = server.follow(&run, None).await.all().await;
    let after = from_journal(&server, &run).await;
    let numbers: Vec<u64> = live.iter().filter_map(|heard| heard.data["seq"].as_u64()).collect();
    assert!(numbers.is_sorted_by(|one, next| one < next), "no event comes twice: {numbers:?}");
    // A text that was sent in pieces has a number of its own in the journal if the run on the base
    // ended between its last piece and its end.
    let whole = after.iter().filter(|heard| heard.data["from"].is_u64()).filter_map(|heard| heard.data["seq"].as_u64());
    let all: BTreeSet<u64> = numbers.iter().copied().chain(whole).collect();
    assert_eq!(all, (1..=numbers[numbers.len() - 1]).collect(), "no event is missing");
    for all in [&live, &after] {
        let texts = of(all, "text").into_iter().filter_map(Value::as_str);
        assert_eq!(texts.collect::<String>(), "I look around.It is done.");
        let steps = of(all, "lane_step").into_iter().filter(|step| step["ended"]["status"] == "passed");
        assert_eq!(steps.count(), 1);
    }
    assert_eq!((of(&live, "tool_call"), of(&live, "tool_call").len()), (of(&after, "tool_call"), 3));
    assert_eq!(kept(&live), kept(&after));
    let end = live.last().unwrap();
    assert_eq!((end.name.as_deref(), &end.data["state"]), (Some("end"), &json!("ended")));
    assert_eq!(end.data["outcome"]["verified"], json!(true));
    let again = server.follow(&run, Some(&end.id)).await;
    assert_eq!(again.response.status().as_u16(), 204);
    for wrong in ["x", "1.2", "-1", "1.2.3", "1.2.3.4", "1.end.end", "99999999999999999999"] {
        assert_eq!(server.follow(&run, Some(wrong)).await.response.status().as_u16(), 400, "{wrong}");
    }
}

#[tokio::test]
async fn who_comes_back_behind_any_event_misses_none_and_hears_none_twice() {
    long_test!();
    let model = Model::new(script());
    let site = Site::with(&model);
    let server = site.serve(&[]);
    let run = server.submit("Make the file `done`.").await;
    let live = server.follow(&run, None).await.all().await;
    let whole = from_journal(&server, &run).await;
    for heard in &live {
        let mut rest = server.follow(&run, Some(&heard.id)).await;
        if heard.name.is_some() {
            assert_eq!(rest.response.status().as_u16(), 204);
            continue;
        }
        let number = heard.data["seq"].as_u64().unwrap();
        let expected: Vec<Heard> =
            whole.iter().filter(|heard| heard.data["seq"].as_u64().is_none_or(|seq| seq > number)).cloned().collect();
        let mut found = Vec::new();
        while let Some(heard) = rest.next().await {
            let is_end = heard.name.is_some();
            found.push(timeless(heard));
            if is_end {
                break;
            }
        }
        assert_eq!(found, expected, "behind {}", heard.id);
    }
}

#[tokio::test]
async fn a_follower_gets_each_event_once_when_a_new_server_replaces_a_killed_one() {
    long_test!();
    let [first, second, third, last] = script();
    let model = Model::new([first, second, hang(), third, last]);
    let site = Site::with(&model);
    let server = site.serve(&[]);
    let run = server.submit("Make the file `done`.").await;
    let mut stream = server.follow(&run, None).await;
    let mut heard = Vec::new();
    // Reads until only the model can cause the next event.
    loop {
        let next = stream.next().await.unwrap();
        let is_waiting = next.data["data"] == "calling_model";
        heard.push(next);
        if is_waiting && heard.iter().filter(|heard| heard.data["data"] == "calling_model").count() == 3 {
            break;
        }
    }
    model.wait_for(3);
    server.kill();
    let server = site.serve(&[]);
    let last = heard.last().unwrap().id.clone();
    heard.extend(server.follow(&run, Some(&last)).await.all().await);
    let after = from_journal(&server, &run).await;
    must_be_told_alike("a killed server", &heard, &after);
    let kinds: Vec<&Value> = heard.iter().map(|heard| &heard.data["type"]).collect();
    assert!(kinds.contains(&&json!("resumed")), "{kinds:?}");
    assert_eq!(server.ended(&run).await["outcome"]["reason"], "verified");
}

/// Returns the events as the journal tells them: pieces of a text joined, the ends of steps alone,
/// and no numbers of what came in pieces.
fn whole(all: &[Heard]) -> Vec<Value> {
    let (mut whole, mut last): (Vec<Value>, _) = (Vec::new(), None);
    for heard in all {
        let (kind, of) = (heard.data["type"].clone(), heard.data["of"].clone());
        let is_piece = heard.name.is_none() && heard.kept().is_none();
        if kind == "tool_output" || kind == "lane_step" && heard.data["data"]["ended"].is_null() {
            continue;
        }
        let same = last.replace((kind.clone(), of.clone())) == Some((kind.clone(), of.clone()));
        if is_piece && same && (kind == "text" || kind == "thinking") {
            let text = [&whole.last().unwrap()["data"], &heard.data["data"]].map(|text| text.as_str().unwrap());
            let text = text.concat();
            whole.last_mut().unwrap()["data"] = json!(text);
            continue;
        }
        let seq = heard.data["seq"].as_u64().filter(|_| !is_piece);
        whole.push(
            json!({ "type": kind, "of": of, "data": heard.data["data"], "seq": seq, "end": heard.data["state"] }),
        );
    }
    whole
}

/// Insists that a later reader gets the events that a live one got, with unique numbers.
#[track_caller]
fn must_be_told_alike(about: &str, live: &[Heard], after: &[Heard]) {
    for all in [live, after] {
        let numbers: Vec<u64> = all.iter().filter_map(|heard| heard.data["seq"].as_u64()).collect();
        assert!(numbers.is_sorted_by(|a, b| a < b), "{about}: {numbers:?}");
    }
    let (live, after) = (whole(live), whole(after));
    let differs =
        live.iter().zip(&after).position(|(live, after)| live != after).unwrap_or(live.len().min(after.len()));
    let shown = |all: &[Value]| {
        all[differs.saturating_sub(2)..].iter().take(6).map(|one| format!("{one}\n")).collect::<String>()
    };
    assert!(live == after, "{about}: live\n{}later\n{}", shown(&live), shown(&after));
}

#[tokio::test]
async fn a_late_client_gets_the_events_that_a_live_client_got_of_every_kind_of_run() {
    long_test!();
    let spawn = call("subagent-spawn", json!({ "task": "Write `done`.", "title": "Write" }));
    let runs: [(&str, &str, Vec<Turn>, &str); 6] = [
        ("a calm run", "", script().to_vec(), "verified"),
        (
            "a stream that breaks off",
            "",
            vec![say("Half of a long answer.").breaking_off(), write("done", "1\n"), say("Done.")],
            "verified",
        ),
        ("a base that is judged", "expect: failing", vec![write("done", "1\n"), say("Done.")], "verified"),
        (
            "a sub-agent whose stream breaks off",
            "",
            vec![
                spawn.saying("I delegate."),
                say("Half of the way.").breaking_off(),
                write("done", "1\n").saying("I write."),
                say("Written."),
                say("Done."),
            ],
            "verified",
        ),
        ("a run that is cancelled in an answer", "", vec![say("Going on and on").hanging()], "cancelled"),
        ("a run whose time ends in an answer", "budget: { time: 6s }", vec![say("Going on").hanging()], "budget_time"),
    ];
    for (about, front, turns, reason) in runs {
        let model = Model::new(turns);
        let site = Site::with(&model);
        let server = site.serve(&[]);
        // Beside an answer, the verdict on the base would come before or after the whole of it.
        let task = format!("---\nbaseline: always\n{front}\n---\nMake the file `done`.");
        let run = server.submit(&task).await;
        let (mut stream, mut live) = (server.follow(&run, None).await, Vec::new());
        while let Some(heard) = stream.next().await {
            let (is_end, is_text) = (heard.name.is_some(), heard.data["type"] == "text");
            live.push(heard);
            if is_text && reason == "cancelled" {
                server.post(&format!("/v1/runs/{run}/cancel"), json!({})).await;
            }
            if is_end {
                break;
            }
        }
        assert_eq!(live.last().unwrap().data["outcome"]["reason"], reason, "{about}: {live:#?}");
        let after = from_journal(&server, &run).await;
        must_be_told_alike(about, &live, &after);
    }
}

#[tokio::test]
async fn a_stream_of_a_run_that_waits_begins_when_the_run_does() {
    long_test!();
    let model = Model::new([hang(), write("done", "1\n"), say("Done.")]);
    let site = Site::with(&model);
    let server = site.serve(&["--max-runs", "1"]);
    let first = server.submit("First.").await;
    model.wait_for(1);
    let second = server.submit("Second.").await;
    let stream = server.follow(&second, None).await;
    server.post(&format!("/v1/runs/{first}/cancel"), json!({})).await;
    let all = stream.all().await;
    assert_eq!(all[0].data["type"], "started");
    assert_eq!(all.last().unwrap().data["outcome"]["reason"], "verified");
}

#[tokio::test]
async fn a_run_that_another_process_drives_is_followed_too() {
    long_test!();
    let model = Model::new(script());
    let site = Site::with(&model);
    let server = site.serve(&[]);
    site.file("task.md", "Make the file `done`.");
    let output = site.fledge(&["run", "task.md", "--isolation", "worktree", "--quiet"]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let (_, list) = server.get("/v1/runs").await;
    let run = list["runs"][0]["id"].as_str().unwrap().to_owned();
    let all = server.follow(&run, None).await.all().await;
    assert_eq!(all.last().unwrap().data["outcome"]["reason"], "verified");
}

#[tokio::test]
async fn the_news_say_what_to_fetch_anew() {
    long_test!();
    let model = Model::new([write("done", "1\n"), say("Done.")]);
    let site = Site::with(&model);
    let server = site.serve(&[]);
    let mut news = server.client.get(format!("{}/v1/events", server.url)).send().await.unwrap();
    let run = server.submit("Make the file `done`.").await;
    let mut text = String::new();
    while !text.contains(r#""state":"ended""#) {
        text.push_str(std::str::from_utf8(&news.chunk().await.unwrap().unwrap()).unwrap());
    }
    let told = |state: &str| text.lines().any(|line| line.contains(&run) && line.contains(state));
    assert!(
        told(r#""state":"queued""#) && told(r#""state":"running""#) && told("waiting for the model, turn 1"),
        "{text}"
    );
}
