//! Two real wire formats: requests, parsed answers, retries, and the secrecy of the key.

use crate::support::{Asked, Dialect, Ended, Fledge, KEY, Model, SOON, call, needs, say, shell, status, words, write};
use serde_json::{Value, json};
use std::time::Duration;

const DIALECTS: [Dialect; 2] = [Dialect::Anthropic, Dialect::OpenAi];

fn simple(dialect: Dialect, model: &Model) -> Fledge {
    let fledge = Fledge::new().lane("verify", &needs("done")).task("Make the file `done`.");
    match dialect {
        Dialect::Anthropic => fledge.anthropic(model),
        Dialect::OpenAi => fledge.openai(model),
    }
}

/// Runs two turns: one reads a file and writes another, and one ends the run.
fn two_turns(dialect: Dialect) -> (Ended, [Asked; 2]) {
    let both =
        call("files-read", json!({"path": "hint.txt"})).also("files-write", json!({"path": "done", "content": "1\n"}));
    let model = Model::new([both.saying("I'll look."), say("Done.").using(200, 5)]);
    let run = simple(dialect, &model).file("hint.txt", "write one\n").file("AGENTS.md", "Be brief.").run();
    run.must_be(0, "verified");
    (run, model.asked().try_into().unwrap())
}

#[test]
fn anthropic_gets_system_tools_and_results_by_id() {
    let (_run, [first, second]) = two_turns(Dialect::Anthropic);
    assert_eq!(first.path, "/v1/messages");
    assert_eq!(first.headers["x-api-key"], KEY);
    assert_eq!(first.headers["anthropic-version"], "2023-06-01");
    assert_eq!((&first.body["model"], &first.body["stream"]), (&json!("claude-sonnet-4-5"), &json!(true)));
    let system = first.body["system"][0]["text"].as_str().unwrap();
    assert!(system.contains("test -f done") && system.contains("Be brief."), "{system}");
    assert_eq!(first.body["messages"][0]["content"][0]["text"], "Make the file `done`.");
    let tools = first.body["tools"].as_array().unwrap();
    assert!(tools.iter().all(|tool| tool["input_schema"]["type"] == "object"));
    assert!(words(tools.iter().map(|tool| &tool["name"])).contains(&"files-write"));

    let messages = second.body["messages"].as_array().unwrap();
    assert_eq!(words(messages.iter().map(|message| &message["role"])), ["user", "assistant", "user"]);
    assert_eq!(
        messages[1]["content"],
        json!([
            {"type": "text", "text": "I'll look."},
            {"type": "tool_use", "id": "call_1_0", "name": "files-read", "input": {"path": "hint.txt"}},
            {"type": "tool_use", "id": "call_1_1", "name": "files-write", "input": {"path": "done", "content": "1\n"}},
        ])
    );
    let results = messages[2]["content"].as_array().unwrap();
    assert_eq!(words(results.iter().map(|result| &result["tool_use_id"])), ["call_1_0", "call_1_1"]);
    assert!(results[0]["content"].as_str().unwrap().contains("write one"));
    assert_eq!(results[1]["is_error"], false);
}

#[test]
fn openai_gets_system_tools_and_results_by_id() {
    let (_run, [first, second]) = two_turns(Dialect::OpenAi);
    assert_eq!(first.path, "/v1/chat/completions");
    assert_eq!(first.headers["authorization"], format!("Bearer {KEY}"));
    assert_eq!((&first.body["model"], &first.body["stream"]), (&json!("gpt-5"), &json!(true)));
    assert_eq!(first.body["stream_options"], json!({"include_usage": true}));
    let messages = first.body["messages"].as_array().unwrap();
    assert_eq!(words(messages.iter().map(|message| &message["role"])), ["system", "user"]);
    let tools = first.body["tools"].as_array().unwrap();
    assert!(tools.iter().all(|tool| tool["type"] == "function" && tool["function"]["parameters"]["type"] == "object"));

    let messages = second.body["messages"].as_array().unwrap();
    assert_eq!(words(messages.iter().map(|message| &message["role"])), ["system", "user", "assistant", "tool", "tool"]);
    let calls = messages[2]["tool_calls"].as_array().unwrap();
    assert_eq!(words(calls.iter().map(|call| &call["id"])), ["call_1_0", "call_1_1"]);
    assert_eq!(calls[0]["function"], json!({"name": "files-read", "arguments": "{\"path\":\"hint.txt\"}"}));
    assert_eq!((&messages[3]["tool_call_id"], &messages[4]["tool_call_id"]), (&json!("call_1_0"), &json!("call_1_1")));
    assert!(messages[3]["content"].as_str().unwrap().contains("write one"));
}

#[test]
fn what_is_sent_again_is_sent_as_the_same_bytes() {
    long_test!();
    for dialect in DIALECTS {
        let (_run, [first, second]) = two_turns(dialect);
        let unmarked = |asked: &Asked| {
            asked
                .text
                .replace(",\"cache_control\":{\"type\":\"ephemeral\"}", "")
                .replace("\"cache_control\":{\"type\":\"ephemeral\"},", "")
        };
        let part = |asked: &Asked, name: &str| {
            let text = unmarked(asked);
            let value: Value = serde_json::from_str(&text).unwrap();
            value[name].to_string()
        };
        for name in ["system", "tools", "model"] {
            assert_eq!(part(&first, name), part(&second, name), "{dialect:?}");
        }
        let (short, long) = (part(&first, "messages"), part(&second, "messages"));
        assert!(long.starts_with(short.trim_end_matches(']')), "{dialect:?}\n{short}\n{long}");
        let order = |asked: &Asked| {
            ["\"model\"", "\"messages\"", "\"tools\""].map(|name| asked.text.find(name) < asked.text.find("\"stream\""))
        };
        assert_eq!(order(&first), order(&second), "{dialect:?}: the members keep their order");
    }
}

#[test]
fn the_key_that_is_set_chooses_the_provider() {
    long_test!();
    let model = Model::new([say("Done.").always()]);
    let run = |fledge: Fledge| fledge.task("Do it.").arg("--no-verify").run().must_be(0, "skipped");
    assert!(run(Fledge::new().anthropic(&model))["usage"]["by_model"]["scripted-claude"].is_object());
    assert!(run(Fledge::new().openai(&model))["usage"]["by_model"]["scripted-gpt"].is_object());
    let both = Fledge::new().openai(&model).anthropic(&model);
    assert!(run(both.env("FLEDGE_MODEL", "openai/other"))["usage"]["by_model"]["scripted-gpt"].is_object());
    assert_eq!(model.asked().last().unwrap().body["model"], "other");
    let neither = Fledge::new().task("Do it.").arg("--no-verify").run();
    neither.must_exit(2);
    assert!(neither.stderr.contains("set ANTHROPIC_API_KEY or OPENAI_API_KEY"), "{}", neither.stderr);
}

#[test]
fn usage_is_added_up_in_both_dialects() {
    long_test!();
    for dialect in DIALECTS {
        let (run, _) = two_turns(dialect);
        let usage = run.report()["usage"].clone();
        assert_eq!((&usage["requests"], &usage["total"]["input_tokens"]), (&json!(2), &json!(300)), "{dialect:?}");
        assert_eq!(usage["total"]["output_tokens"], 15, "{dialect:?}");
    }
}

#[test]
fn answers_that_come_byte_by_byte_are_the_same_answers() {
    long_test!();
    for dialect in DIALECTS {
        let script = [write("done", "žluťoučký\n").saying("Über…").dripping(), say("Fertig – übrigens.").dripping()];
        let run = simple(dialect, &Model::new(script)).run();
        assert_eq!(run.must_be(0, "verified")["summary"], "Fertig – übrigens.");
        assert_eq!(run.file("done").as_deref(), Some("žluťoučký\n"));
    }
}

#[test]
fn a_wish_to_wait_is_obeyed_before_the_second_request() {
    let model = Model::new([status(429).header("retry-after", "1"), write("done", ""), say("Done.")]);
    simple(Dialect::Anthropic, &model).run().must_be(0, "verified");
    let asked = model.asked();
    assert_eq!(asked.len(), 3);
    let gap = asked[1].at - asked[0].at;
    assert!(gap >= Duration::from_secs(1) && gap < SOON, "{gap:?}");
    assert_eq!(asked[0].text, asked[1].text);
}

#[test]
fn an_overloaded_or_failing_server_is_asked_again() {
    long_test!();
    for code in [500, 529] {
        let model = Model::new([status(code), write("done", ""), say("Done.")]);
        simple(Dialect::OpenAi, &model).run().must_be(0, "verified");
        assert_eq!(model.count(), 3, "{code}");
    }
}

#[test]
fn a_server_that_stays_down_is_given_up_after_four_tries() {
    long_test!();
    let model = Model::new([status(500).header("retry-after-ms", "1").always()]);
    simple(Dialect::Anthropic, &model).run().must_be(3, "provider_failed");
    assert_eq!(model.count(), 4);
}

#[test]
fn a_stream_that_breaks_off_is_asked_for_again_and_none_of_its_tools_is_run() {
    long_test!();
    for dialect in DIALECTS {
        let broken = shell("touch ran").saying("Half").breaking_off();
        let model = Model::new([broken, write("done", ""), say("Done.")]);
        let run = simple(dialect, &model).run();
        let report = run.must_be(0, "verified");
        assert_eq!(report["tools"], json!({"files-write": {"called": 1, "failed": 0, "denied": 0}}), "{dialect:?}");
        assert_eq!(run.file("ran"), None);
        let asked = model.asked();
        assert_eq!((asked.len(), &asked[0].text), (3, &asked[1].text), "{dialect:?}");
        assert_eq!(report["summary"], "Done.");
    }
}

#[test]
fn the_next_model_of_the_list_takes_over_where_the_first_one_fails_for_good() {
    let (first, second) = (Model::new([status(401).always()]), Model::new([write("done", ""), say("Done.")]));
    let task = "---\nmodel: [anthropic/first, openai/second]\n---\nMake `done`.";
    let run = Fledge::simple(&first).openai(&second).task(task).run();
    let report = run.must_be(0, "verified");
    assert_eq!((first.count(), second.count()), (1, 2));
    assert_eq!(second.asked()[0].body["model"], "second");
    assert!(words(report["warnings"].as_array().unwrap()).iter().any(|warning| warning.contains("openai/second")));
}

#[test]
fn the_key_is_in_nothing_that_is_written_shown_or_handed_on() {
    for dialect in DIALECTS {
        let leak = "env; env > done; cat /proc/self/environ | tr '\\0' '\\n'";
        let model = Model::new([status(401).header("x-should-retry", "true"), shell(leak), say("Done.")]);
        let fledge = simple(dialect, &model).arg("--json").arg("-vv").env("MY_TOKEN", KEY).env("PASSED", KEY);
        let run = fledge.lane("verify", "steps: [{ name: env, run: env && false }]").arg("--max-retries=0").run();
        assert!(run.file("done").is_none_or(|env| env.contains("PATH=")), "the command did run");
        assert!(!run.traces().contains(KEY), "{dialect:?}");
    }
}

#[test]
fn a_server_that_repeats_the_key_in_its_complaint_does_not_get_it_shown() {
    let model = Model::new([status(400).always()]);
    let run = simple(Dialect::Anthropic, &model).env("ANTHROPIC_API_KEY", "scripted 400").arg("--json").run();
    let report = run.must_be(3, "provider_failed");
    assert!(!report["message"].as_str().unwrap().contains("scripted"), "{}", report["message"]);
}
