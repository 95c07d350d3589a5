//! Endpoint settings that take effect on the wire: timeouts, tries, waits, sizes, and headers from
//! other sources.

use crate::support::{Ended, Fledge, Model, SOON, Turn, hang, say, status};

fn configured(model: &Model, top: &str, entry: &str) -> Fledge {
    let url = model.url();
    let yaml = format!("{top}\nmodels:\n  m: {{ provider: openai, model: m, base_url: '{url}/v1', {entry} }}\n");
    Fledge::new()
        .task("---\nmodel: m\nlane: false\n---\nDo it.")
        .file("../home/.config/fledge/config.yaml", yaml)
        .args(&["run", "task.md", "--json"])
}

fn run(script: Turn, top: &str, entry: &str) -> (Ended, usize) {
    let model = Model::new([script.always()]);
    let ended = configured(&model, top, entry).run();
    (ended, model.count())
}

#[test]
fn every_clock_of_a_model_can_be_set_and_ends_its_turn() {
    long_test!();
    for (script, clock, why) in [
        (hang(), "first_byte", "no answer within 1s"),
        (say("half").hanging(), "idle", "the stream sent nothing new for 1s"),
        (say("half").hanging(), "turn", "the turn took longer than 1s"),
    ] {
        let (ended, requests) = run(script, "max_tries: 1", &format!("timeouts: {{ {clock}: 1s }}"));
        let message = ended.must_be(3, "provider_failed")["message"].to_string();
        assert!(message.contains(why), "{clock}: {message}");
        assert_eq!(requests, 1, "{clock}");
        assert!(ended.took < SOON, "{clock}: {:?}", ended.took);
    }
}

#[test]
fn tries_waits_and_the_size_of_an_answer_can_be_set() {
    long_test!();
    let (ended, requests) = run(status(500).header("retry-after-ms", "1"), "max_tries: 2", "tier: code");
    ended.must_be(3, "provider_failed");
    assert_eq!(requests, 2);
    let (ended, requests) = run(status(429).header("retry-after", "5"), "max_wait: 2s", "tier: code");
    assert_eq!(ended.code, Some(7), "{}", ended.story());
    assert!(requests == 1 && ended.took < SOON, "{requests} {:?}", ended.took);
    let (ended, requests) = run(say(&"long ".repeat(2_000)), "max_tries: 1", "max_response: 4KB");
    let message = ended.must_be(3, "model_protocol")["message"].to_string();
    assert!(message.contains("more than 4000 bytes") && requests == 1, "{message}");
}

#[test]
fn headers_come_from_variables_files_and_programs_and_no_value_is_shown() {
    let model = Model::new([say("b3arer-word 0rg-value f1le-value pr0gram-value").always()]);
    let entry = "headers: { X-Org: { env: ORG }, X-File: { file: ~/token }, X-Prog: { command: 'echo pr0gram''''-value' }, \
        Authorization: { env: AUTH } }";
    let place = || configured(&model, "", entry).file("../home/token", "f1le-value\n");
    let place = || {
        use std::os::unix::fs::PermissionsExt as _;
        let place = place();
        let token = place.workspace().join("../home/token");
        std::fs::set_permissions(token, std::fs::Permissions::from_mode(0o600)).unwrap();
        place
    };
    let ended = place().env("ORG", "0rg-value").env("AUTH", "Bearer b3arer-word").run();
    ended.must_be(0, "skipped");
    let sent = &model.asked()[0].headers;
    let names = ["x-org", "x-file", "x-prog", "authorization"].map(|name| sent[name].as_str());
    assert_eq!(names, ["0rg-value", "f1le-value", "pr0gram-value", "Bearer b3arer-word"]);
    std::fs::remove_file(ended.path("../home/token")).unwrap();
    for secret in ["0rg-value", "f1le-value", "pr0gram-value", "b3arer-word"] {
        assert!(!ended.traces().contains(secret), "{secret}: {}", ended.story());
    }
    assert_eq!(ended.report()["summary"], "*** *** *** ***");
    let unset = place().env("AUTH", "x").run();
    unset.must_exit(2);
    assert!(unset.stderr.contains("no value for the header `X-Org` of the model `m` (set ORG)"), "{}", unset.story());
}

#[test]
fn a_key_that_has_taken_the_place_of_another_is_hidden_like_that_one() {
    let told = "It was sk-rotated-1 and is sk-rotated-2, 736b2d726f74617465642d32.";
    let model = Model::new([status(401), say(told)]);
    let command = "api_key_command: 'echo x >> ~/n; echo sk-rota''''ted-$(wc -l < ~/n | tr -d \" \")'";
    let ended = configured(&model, "", command).run();
    let report = ended.must_be(0, "skipped");
    let keys: Vec<String> = model.asked().iter().map(|asked| asked.headers["authorization"].clone()).collect();
    assert_eq!(keys, ["Bearer sk-rotated-1", "Bearer sk-rotated-2"]);
    assert_eq!(report["summary"], "It was *** and is ***, ***.");
    assert!(!ended.traces().contains("sk-rotated-"), "{}", ended.story());
}
