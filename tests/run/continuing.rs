//! Tests of `fledge runs continue`: a new run that begins with the conversation of a finished run.

use crate::support::{Ended, Fledge, Model, needs, say, shell, status, write};
use fledge::store::StoredRunState;
use rustix::process::Signal;
use serde_json::Value;

/// Returns the newest run, as JSON.
fn last(ended: Ended) -> (Value, Ended) {
    let ended = ended.again(&["runs", "show", "last", "--json"]).run();
    ended.must_exit(0);
    (serde_json::from_str(&ended.stdout).unwrap(), ended)
}

/// Returns the roles of the messages in a request.
fn roles(body: &Value) -> Vec<&str> {
    body["messages"].as_array().unwrap().iter().map(|message| message["role"].as_str().unwrap()).collect()
}

#[test]
fn a_run_goes_on_with_the_conversation_of_one_that_is_over_and_with_its_terms() {
    long_test!();
    let script = [write("done", ""), say("It is done."), write("more", "1"), say("More is done.")];
    let model = Model::new(script);
    let task = "---\nmax_retries: 5\nallow_edit: [specs/x]\n---\n# First\nMake the file `done`.";
    let ended = Fledge::simple(&model).task(task).run();
    let first = ended.must_be(0, "verified");
    let again = ended.again(&["runs", "continue", "last", "# Now also\nmake `more`"]).anthropic(&model);
    let ended = again.run();
    ended.must_exit(0);
    assert_eq!((ended.file("more").unwrap(), model.count()), ("1".into(), 4));
    let asked = model.asked();
    let (before, after) = (&asked[1].body["messages"], &asked[2].body["messages"]);
    let (before, after) = (before.as_array().unwrap(), after.as_array().unwrap());
    assert_eq!(roles(&asked[2].body), ["user", "assistant", "user", "assistant", "user"]);
    assert_eq!(plain(&after[..3]), plain(before));
    assert!(after[3].to_string().contains("It is done.") && after[4].to_string().contains("make `more`"));
    let (shown, ended) = last(ended);
    assert_eq!((&shown["run"]["parent"], &shown["run"]["title"]), (&first["run"], &"Now also".into()));
    let fitting = ended.again(&["runs", "resume", "last"]).run();
    fitting.must_exit(0); // the run is verified, so fledge prints its result again
    assert_eq!(model.count(), 4);
}

/// Returns messages without the marks that tell a provider how much to cache.
fn plain(messages: &[Value]) -> Vec<String> {
    let text = |message: &Value| message.to_string().replace(r#""cache_control":{"type":"ephemeral"},"#, "");
    messages.iter().map(text).collect()
}

#[test]
fn one_that_failed_is_gone_on_with_too_and_its_gate_is_frozen_anew() {
    long_test!();
    let model = Model::new([say("I cannot."), write("other", ""), say("Done.")]);
    let ended = Fledge::simple(&model).arg("--max-retries=0").run();
    ended.must_be(1, "gate_failed");
    let again = ended.again(&["runs", "continue", "last-failed", "-", "--json", "--report=copy.json"]);
    let ended = again.lane("verify", "steps: [{ run: test -f other }]").stdin("try `other`").anthropic(&model).run();
    ended.must_exit(0);
    let report: Value = serde_json::from_str(&ended.file("copy.json").unwrap()).unwrap();
    assert_eq!((&report["reason"], &report["title"]), (&"verified".into(), &"try `other`".into()));
    assert_eq!(ended.events_of("started").len(), 1);
}

#[test]
fn a_tool_use_that_was_cancelled_under_way_has_a_result_in_the_next_run() {
    long_test!();
    let model = Model::new([shell("echo begun; sleep 60"), write("done", ""), say("Done.")]);
    let mut running = Fledge::simple(&model).arg("--json").start();
    running.wait_for("{\"text\":\"begun");
    running.signal(Signal::INT);
    let ended = running.end();
    ended.must_be(130, "cancelled");
    let ended = ended.again(&["runs", "continue", "last", "go on"]).anthropic(&model).run();
    ended.must_exit(0);
    let body = &model.asked()[1].body;
    assert_eq!(roles(body), ["user", "assistant", "user"]);
    let newest = body["messages"][2]["content"].as_array().unwrap();
    let kinds: Vec<&Value> = newest.iter().map(|block| &block["type"]).collect();
    assert_eq!(kinds, ["tool_result", "text"], "{body}");
}

#[test]
fn a_continued_run_that_dies_is_resumed_with_the_same_conversation() {
    long_test!();
    let model =
        Model::new([write("done", ""), say("Done."), say("Going on").hanging(), write("more", "1"), say("More.")]);
    let ended = Fledge::simple(&model).run();
    ended.must_be(0, "verified");
    let mut running = ended.again(&["runs", "continue", "last", "more", "--json"]).anthropic(&model).start();
    running.wait_for("Going o");
    running.signal(Signal::KILL);
    let ended = running.end().again(&["runs", "resume", "last"]).anthropic(&model).run();
    ended.must_exit(0);
    assert_eq!((ended.file("more").unwrap(), model.count()), ("1".into(), 5));
    let asked = model.asked();
    assert_eq!(asked[3].body["messages"], asked[2].body["messages"]);
}

#[test]
fn what_cannot_be_gone_on_with_is_refused_and_starts_nothing() {
    let model = Model::new([shell("echo begun; sleep 60"), status(500).always()]);
    let mut running = Fledge::simple(&model).arg("--json").start();
    running.wait_for("{\"text\":\"begun");
    running.signal(Signal::KILL);
    let ended = running.end();
    assert_eq!(ended.row().state, StoredRunState::Interrupted);
    let cases = [
        (&["runs", "continue", "last", "more"], "has not ended: continue it with `fledge runs resume "),
        (&["runs", "continue", "nope", "more"], "there is no run `nope`"),
        (&["runs", "continue", "last", "  "], "no task given"),
    ];
    let refused = |ended: Ended, (arguments, says): (&[&str; 4], &str)| {
        let ended = ended.again(arguments).anthropic(&model).run();
        ended.must_exit(2);
        assert!(ended.stderr.contains(says), "{}", ended.story());
        ended
    };
    let ended = cases.into_iter().fold(ended, refused);
    assert_eq!((ended.runs().len(), model.count()), (1, 1));
}

#[test]
fn where_none_begins_its_report_says_why_in_place_of_an_earlier_one() {
    long_test!();
    let model = Model::new([write("done", ""), say("Done.").always()]);
    let mut ended = Fledge::simple(&model).arg("--report=../copy.json").run();
    ended.must_be(0, "verified");
    for (arguments, says) in [
        (["nope", "more"], "there is no run `nope`"),
        (["last", "  "], "no task given"),
        (["last", "more"], "unknown key `modle`"),
    ] {
        let all = [&["runs", "continue"][..], &arguments, &["--report=../copy.json"]].concat();
        ended = ended.again(&all).file("fledge.yaml", "modle: x\n").anthropic(&model).run();
        ended.must_exit(2);
        let report: Value = serde_json::from_str(&ended.file("../copy.json").unwrap()).unwrap();
        assert_eq!((&report["verified"], &report["run"]), (&false.into(), &Value::Null), "{}", ended.story());
        assert_eq!((&report["reason"], &report["exit_code"]), (&"bad_input".into(), &2.into()));
        assert!(report["message"].as_str().unwrap().contains(says), "{report}");
    }
    let ended = ended.again(&["runs", "continue", "last", "more", "--report=../copy.json"]).file("fledge.yaml", "");
    let ended = ended.anthropic(&model).run();
    ended.must_exit(0);
    let report: Value = serde_json::from_str(&ended.file("../copy.json").unwrap()).unwrap();
    assert_eq!(report["verified"], true);
}

#[test]
fn a_conversation_with_a_removed_server_goes_to_no_other_server() {
    let model = Model::new([write("done", ""), say("Done.")]);
    let stranger = Model::new([say("Thank you for all of it.")]);
    let entry = format!("models:\n  own: {{ provider: anthropic, model: m, base_url: '{}' }}\n", model.url());
    let fledge = Fledge::new().lane("verify", &needs("done")).task("Make the file `done`.");
    let ended = fledge.file("../home/.config/fledge/config.yaml", format!("{entry}default_model: own\n")).run();
    ended.must_be(0, "verified");
    let again = |ended: Ended, config: &str| {
        let again = ended.again(&["runs", "continue", "last", "more"]).anthropic(&stranger);
        again.file("../home/.config/fledge/config.yaml", config).run()
    };
    let ended = again(ended, "");
    ended.must_exit(2);
    assert!(ended.stderr.contains("the model `anthropic/m` of this run now has another address"), "{}", ended.stderr);
    let ended = again(ended, "models:\n  own: { provider: anthropic, model: m }\n");
    ended.must_exit(2);
    assert_eq!(stranger.count(), 0);
}
