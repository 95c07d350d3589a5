//! Tests of inspecting runs: listing, showing, exporting and removing them, and the messages when
//! none exist.

use crate::support::{Ended, Fledge, Model, call, say, shell, words, write};
use fledge::chat::Message;
use ring::digest::{SHA256, digest};
use rustix::process::Signal;
use serde_json::{Value, json};

/// Returns a run that failed its gate once and was then verified.
fn verified() -> Ended {
    let edit = call("files-edit", json!({ "path": "code", "old": "one\n", "new": "two\n" }));
    let model = Model::new([edit.saying("Repairing it."), say("Done."), write("done", "yes\n"), say("Now it is.")]);
    let run = Fledge::simple(&model).file("code", "one\n").arg("--baseline=never").run();
    run.must_be(0, "verified");
    run
}

/// Returns a run that was killed during a command.
fn killed() -> Ended {
    let sleep = json!({ "command": "echo begun; sleep 60" });
    let both = write("other", "1\n").saying("Going on.").also("shell-exec", sleep);
    let model = Model::new([write("half", "1\n"), both]);
    let mut running = Fledge::simple(&model).arg("--json").start();
    running.wait_for("{\"text\":\"begun");
    running.signal(Signal::KILL);
    running.end()
}

/// Returns the JSON output of a `runs` subcommand.
#[track_caller]
fn data(run: Ended, args: &[&str]) -> (Value, Ended) {
    let ended = run.again(args).run();
    ended.must_exit(0);
    (serde_json::from_str(&ended.stdout).unwrap(), ended)
}

#[test]
fn runs_are_listed_with_what_they_came_to() {
    let run = verified();
    let (row, report) = (run.row(), run.report());
    let (list, run) = data(run, &["runs", "list", "--json"]);
    assert_eq!((&list["schema_version"], &list["has_more"]), (&json!(1), &json!(false)));
    let [listed] = list["runs"].as_array().unwrap().as_slice() else { panic!("{list}") };
    assert_eq!((&listed["id"], &listed["state"]), (&json!(row.head.id), &json!("ended")));
    let end = &listed["outcome"];
    assert_eq!(
        [&end["reason"], &end["exit_code"], &end["attempts"], &end["turns"]],
        [&json!("verified"), &json!(0), &json!(2), &report["turns"]]
    );
    let short = listed["short_id"].as_str().unwrap().to_owned();
    let run = run.again(&["runs", "list", "--verified"]).run();
    run.must_exit(0);
    let (year, exact) = listed["started_at"].as_str().unwrap().split_at(4);
    for part in [short.as_str(), "verified", year] {
        assert!(run.stdout.contains(part), "{part} is not in {}", run.story());
    }
    assert!(!run.stdout.contains(exact), "{}", run.story());
    let run = run.again(&["runs", "list", "--failed"]).run();
    run.must_exit(0);
    assert!(run.stdout.is_empty() && run.stderr.starts_with("no such runs of "), "{}", run.story());
    let (all, _) = data(run, &["runs", "list", "--all-projects", "--json"]);
    assert_eq!(all["runs"][0]["id"], listed["id"]);
}

#[test]
fn a_run_is_told_turn_by_turn_with_changes_verdicts_and_its_end() {
    long_test!();
    let run = verified().again(&["runs", "show"]).run();
    run.must_exit(0);
    let mut rest = run.stdout.as_str();
    for part in [
        "  verified",
        "Make the file `done`.",
        "● attempt 1",
        "turn 1",
        "│ Repairing it.",
        "edit code",
        "code +1 -1",
        "    - one",
        "    + two",
        "● gate, attempt 1: failed",
        "✗ verify/there exit 1",
        "● attempt 2",
        "write done",
        "done +1 -0 (new)",
        "    + yes",
        "● gate, attempt 2: passed",
        "● ✓ Verified",
        "attempts",
        "course",
        "model ",
    ] {
        let at = rest.find(part).unwrap_or_else(|| panic!("{part:?} is not in its place in {}", run.stdout));
        rest = &rest[at..];
    }
    assert!(!run.stdout.contains('\u{1b}'), "{:?}", run.stdout);
    let report = run.report();
    let (told, _) = data(run, &["runs", "show", "last", "--json"]);
    assert_eq!((&told["schema_version"], &told["state"]), (&json!(1), &json!("idle")));
    assert_eq!(told["result"]["attempts"], report["attempts"]);
    let types = words(told["story"].as_array().unwrap().iter().map(|scene| &scene["type"]));
    let wanted = [
        "began",
        "planned",
        "attempt",
        "turn",
        "used",
        "tool",
        "checkpoint",
        "turn",
        "used",
        "gate",
        "attempt",
        "turn",
        "used",
        "tool",
        "checkpoint",
        "turn",
        "used",
        "gate",
        "ended",
    ];
    assert_eq!(types, wanted);
}

#[test]
fn an_interrupted_run_is_shown_and_its_thread_lists_pending_calls() {
    let run = killed().again(&["runs", "show"]).run();
    run.must_exit(0);
    for part in
        ["  interrupted", "│ Going on.", "● interrupted: running tools of turn 2 (shell-exec echo begun; sleep 60), "]
    {
        assert!(run.stdout.contains(part), "{part:?} is not in {}", run.stdout);
    }
    let (thread, run) = data(run, &["runs", "export", "--thread"]);
    let state = &thread["agent_state"];
    assert_eq!((&state["kind"], &state["doing"]), (&json!("executing"), &json!("RunningTools")));
    let pending = state["pending_tool_calls"].as_array().unwrap();
    assert_eq!(words(pending.iter().map(|call| &call["name"])), ["shell-exec"]);
    let messages = thread["conversation"]["messages"].as_array().unwrap();
    assert_eq!(words(messages.iter().map(|message| &message["role"])), ["user", "assistant", "user", "assistant"]);
    // The exported arguments are plain JSON; all other fields match the run.
    let calls =
        [&messages[1]["content"], &messages[3]["content"]].map(|content| content.as_array().unwrap().last().unwrap());
    assert_eq!(calls.map(|call| &call["input"]), [&json!({ "path": "half", "content": "1\n" }), &pending[0]["input"]]);
    assert_eq!(pending[0]["input"], json!({ "command": "echo begun; sleep 60" }));
    let mut wrapped = thread["conversation"]["messages"].clone();
    for message in wrapped.as_array_mut().unwrap() {
        let blocks = message["content"].as_array_mut().unwrap().iter_mut();
        for call in blocks.filter(|block| block["input"].is_object()) {
            call["input"] = json!({ "object": call["input"] });
        }
    }
    let messages: Vec<Message> = serde_json::from_value(wrapped.clone()).unwrap();
    assert_eq!(serde_json::to_value(&messages).unwrap(), wrapped);
    let (list, _) = data(run, &["runs", "list", "--interrupted", "--json"]);
    assert_eq!((&list["runs"][0]["state"], &list["runs"][0]["outcome"]), (&json!("interrupted"), &Value::Null));
}

#[test]
fn an_exported_journal_can_be_read_back_and_verified() {
    long_test!();
    let run = verified();
    let journal = run.journal();
    let run = run.again(&["runs", "export", "last"]).run();
    run.must_exit(0);
    let run = run.again(&["runs", "export", "-o", "journal.jsonl"]).run();
    let text = run.file("journal.jsonl").unwrap();
    let run = run.again(&["runs", "export"]).run();
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), text.as_str()));
    let (first, rest) = text.split_once('\n').unwrap();
    // The exported line contains the exact text that was digested.
    let between = |line: &str, from: &str, to: &str| {
        let start = line.find(from).unwrap() + from.len();
        line[start..line.rfind(to).unwrap()].to_owned()
    };
    let (head, task) = (between(first, "\"head\":", ",\"task\":"), between(first, "\"task\":", ",\"outcome\":"));
    let mut link = digest(&SHA256, format!("[{head},{task}]").as_bytes());
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    assert_eq!(serde_json::from_str::<Value>(first).unwrap()["hash"], hex(link.as_ref()));
    assert_eq!(rest.lines().count(), journal.len());
    for (line, record) in rest.lines().zip(journal) {
        let json: Value = serde_json::from_str(line).unwrap();
        let data = between(line, "\"data\":", ",\"hash\":");
        assert_eq!((&json["seq"], &json["kind"], &data), (&json!(record.seq), &json!(record.kind), &record.data));
        let (seq, at) = (record.seq.to_be_bytes(), record.at_ms.to_be_bytes());
        let content = digest(&SHA256, data.as_bytes());
        let parts: [&[u8]; 5] = [link.as_ref(), &seq, &at, content.as_ref(), record.kind.as_bytes()];
        link = digest(&SHA256, &parts.concat());
        assert_eq!(json["hash"], hex(link.as_ref()));
    }
}

#[test]
fn logs_of_steps_are_listed_and_printed() {
    long_test!();
    let model = Model::new([say("Done."), write("done", ""), say("Done.")]);
    let lane = "steps:\n  - { name: check, run: 'ls; test -f done' }\n";
    let run = Fledge::simple(&model).lane("verify", lane).run();
    let (list, run) = data(run, &["runs", "logs", "--json"]);
    let logs: Vec<_> = list["logs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|log| json!([log["attempt"], log["step"], log["status"]]))
        .collect();
    assert_eq!(logs, [json!([1, "check", "failed"]), json!([2, "check", "passed"])]);
    let run = run.again(&["runs", "logs", "last", "check"]).run();
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), "done\nlanes\ntask.md\n"));
    let run = run.again(&["runs", "logs", "last", "verify/check", "--attempt=1"]).run();
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), "lanes\ntask.md\n"));
    let run = run.again(&["runs", "logs", "last", "nonsense"]).run();
    run.must_exit(2);
    assert!(run.stderr.contains("no log of step `nonsense`; logs: verify/check"), "{}", run.story());
}

#[test]
fn what_is_pruned_is_said_before_and_gone_after() {
    long_test!();
    let run = verified();
    let id = json!([run.row().head.id]);
    let (kept, run) = data(run, &["runs", "prune", "--json"]);
    assert_eq!(kept["runs"], json!([]));
    let (would, run) = data(run, &["runs", "prune", "--keep=0", "--dry-run", "--json"]);
    assert_eq!((&would["runs"], &would["dry_run"]), (&id, &json!(true)));
    assert_eq!(run.runs().len(), 1);
    let (gone, run) = data(run, &["runs", "prune", "--keep=0", "--json"]);
    assert_eq!((&gone["runs"], &gone["bytes"], run.runs().len()), (&id, &would["bytes"], 0));
}

#[test]
fn an_unknown_run_is_refused_with_those_that_there_are() {
    long_test!();
    let fledge = Fledge::new().args(&["runs", "show", "0000"]);
    let state = fledge.state();
    let run = fledge.run();
    run.must_exit(2);
    assert!(run.stderr.starts_with("error: there are no runs of ") && !state.exists(), "{}", run.story());
    let run = verified();
    let row = run.row();
    let run = run.again(&["runs", "show", "nonsense"]).run();
    run.must_exit(2);
    let short: String = row.head.id.as_str().chars().take(8).collect();
    assert!(run.stderr.starts_with("error: there is no run `nonsense`; the newest runs are:\n"), "{}", run.story());
    assert!(run.stderr.contains(&format!("\n  {short}  ")), "{}", run.story());
    let run = run.again(&["runs", "show", "lsat"]).run();
    assert!(run.code == Some(2) && run.stderr.ends_with("  hint: did you mean `last`?\n"), "{}", run.story());
    let run = run.again(&["runs", "export", &short, "-o", "none/file"]).run();
    run.must_exit(2);
}

#[test]
fn what_others_said_in_a_run_moves_no_cursor_when_it_is_told() {
    let evil = "\u{1b}]0;title\u{7}\u{1b}[2J\u{9b}31mred\u{202e}\r\u{8}";
    let script = [
        write(&format!("a{evil}"), evil).saying(evil),
        shell("printf '\\033[31mred\\n'"),
        write("done", ""),
        say(evil),
    ];
    let model = Model::new(script);
    let run = Fledge::simple(&model).task("---\ntitle: \"a\\e[2Jb\"\n---\nDo it.").run();
    let harmful = |c: char| c.is_control() && c != '\n' || c == '\u{202e}';
    let mut run = run;
    for args in [["runs", "show", "--full"].as_slice(), &["runs", "show"], &["runs", "list"], &["runs", "show", "x"]] {
        run = run.again(args).run();
        assert!(!run.story().contains(harmful), "{args:?}: {:?}", run.story());
    }
}
