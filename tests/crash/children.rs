//! A run dies at each fail point while a sub-agent works. The resumed run never repeats the
//! sub-agent's work, and it ends well.

use crate::crash::each;
use crate::support::draw;
use crate::support::{Ended, Fledge, Model, Turn, call, must_be_gone, needs, say, shell, unique, write};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;

/// The arguments that both begin and resume the run.
// No sandbox, so that the dying process itself reaches the fail points in the tools.
const ARGS: [&str; 6] = ["run", "task.md", "--sandbox=off", "--json", "--run-key=k", "--resume-or-start"];

#[test]
fn a_run_that_dies_at_any_place_with_a_sub_agent_at_work_never_does_its_work_twice() {
    long_table!();
    let folder = crate::support::temp_dir();
    let trace = folder.path().join("trace");
    let (model, mark) = cast();
    let calm = beginning(&model).env("FLEDGE_FAIL", &format!("trace:{}", trace.display())).run();
    calm.must_exit(0);
    must_be_gone(&mark);
    assert_eq!((calm.file("log").as_deref(), model.count()), (Some("ran\n"), 5));
    each(&places(&fs::read_to_string(trace).unwrap()), |place| {
        let (model, mark) = cast();
        let mut ended = beginning(&model).env("FLEDGE_FAIL", &format!("abort:{place}")).run();
        assert_eq!(ended.code, None, "it was not reached");
        must_be_gone(&mark);
        let had_begun = ended.rows().len() == 1 && ended.kinds().iter().any(|kind| kind.starts_with("1:"));
        let had_ended = had_begun && ended.kinds().iter().any(|kind| kind == "ChildFinished");
        ended = ended.again(&ARGS).anthropic(&model).run();
        ended.must_exit(0);
        let report = report(&ended);
        assert_eq!(
            (&report["reason"], ended.file("log").as_deref()),
            (&json!("verified"), Some("ran\n")),
            "{}",
            ended.story()
        );
        assert_eq!(report["tools"]["subagent-spawn"]["called"], 1);
        let told =
            model.asked().iter().any(|asked| asked.text.contains("interrupted while this sub-agent was at work"));
        assert_eq!(told, had_begun && !had_ended, "{}", ended.story());
        must_be_gone(&mark);
    });
}

/// Returns a model whose sub-agent runs a command that must not be repeated, and looks before it
/// repeats anything. Also returns a mark in the command lines of that command's processes.
fn cast() -> (Model, String) {
    let mark = unique();
    let command = format!("echo ran >> log; setsid sleep {mark} & sleep 0.01");
    let model = Model::thinking(move |body, _| {
        let messages = body["messages"].as_array().unwrap();
        let is_child = messages[0]["content"].to_string().contains("Do your share");
        let results = results(messages);
        let failed = |tool: &str| results.iter().rfind(|(name, ..)| name == tool).map(|(_, failed, _)| *failed);
        let log = results.iter().rfind(|(name, ..)| name == "files-read").map(|(.., text)| text.contains("ran"));
        let turn = match (is_child, failed("subagent-spawn"), log) {
            (true, ..) if failed("shell-exec").is_none() => shell(&command),
            (true, ..) => say("I have run it."),
            (false, None, _) => call("subagent-spawn", json!({ "task": "Do your share." })),
            (false, Some(true), None) => look(),
            (false, Some(true), Some(false)) if failed("shell-exec").is_none() => shell(&command),
            (false, Some(true), Some(false)) => look(),
            (false, ..) if failed("files-write") != Some(false) => write("done", "x"),
            (false, ..) => say("Done."),
        };
        (Some(turn), messages.len() + if is_child { 100 } else { 0 }) // the same ids in each request
    });
    (model, mark)
}

fn look() -> Turn {
    call("files-read", json!({ "path": "log" }))
}

/// Returns the called tools, whether each failed, and their output.
fn results(messages: &[Value]) -> Vec<(String, bool, String)> {
    let blocks = || messages.iter().filter_map(|message| message["content"].as_array()).flatten();
    let result = |used: &Value| {
        let result = blocks().find(|block| block["tool_use_id"] == used["id"]).cloned().unwrap_or_default();
        (used["name"].as_str().unwrap().to_owned(), result["is_error"] == true, result["content"].to_string())
    };
    blocks().filter(|block| block["type"] == "tool_use").map(result).collect()
}

fn beginning(model: &Model) -> Fledge {
    let fledge = Fledge::new().task("---\nbaseline: never\n---\nHave the part done.").lane("verify", &needs("done"));
    fledge.anthropic(model).args(&ARGS)
}

/// Returns the report of the one run in the store. A run that died before it was stored left an
/// empty folder.
fn report(ended: &Ended) -> Value {
    let row = ended.row();
    let id = row.head.id.as_str();
    let folder = ended.runs().into_iter().find(|folder| folder.ends_with(id)).unwrap();
    serde_json::from_str(&fs::read_to_string(folder.join("report.json")).unwrap()).unwrap()
}

/// Returns every fail point, once for each time it was reached. An ordinary run gets a sample.
fn places(trace: &str) -> Vec<String> {
    let mut counts = BTreeMap::<&str, usize>::new();
    trace.lines().for_each(|name| *counts.entry(name).or_default() += 1);
    let all = counts.iter().flat_map(|(name, count)| (1..=*count).map(move |number| format!("{name}#{number}")));
    draw("deaths with a sub-agent", 3, all.collect())
}
