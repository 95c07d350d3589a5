//! The run of all crash tests: a task that takes several turns, and a model that looks before it
//! repeats anything.

use crate::support::{Ended, Fledge, Model, Turn, call, say, shell, write};
use serde_json::{Value, json};

/// The arguments of the program; they both begin and resume the run.
// No sandbox, so that the dying process itself reaches the fail points in the tools.
const ARGS: [&str; 7] =
    ["run", "task.md", "--sandbox=off", "--json", "--run-key=k", "--resume-or-start", "--report=../copy.json"];
const TASK: &str = "---\ncontext: [notes.md]\nmax_retries: 2\nbaseline: never\nallow_edit: [log.txt, done]\n---\nDo what is to be done.";
const LANE: &str = "fail_fast: false
steps:
  - { name: edited, run: cat *.txt | grep -q new }
  - { name: ran, run: test -s log.txt }
  - parallel: [{ name: there, run: test -f done }, { name: whole, run: test -f b.txt }]
";
const INSTRUCTIONS: &str = "Be brief.\n";

/// Returns the program at the beginning of the run.
pub(crate) fn beginning(model: &Model) -> Fledge {
    let notes = "What is known of this.\n".repeat(2700); // too large for a database row
    let fledge = Fledge::new().task(TASK).lane("verify", LANE).file("AGENTS.md", INSTRUCTIONS.repeat(600));
    fledge.file("notes.md", notes).file("a.txt", "old\n").file("b.txt", "b\n").anthropic(model).args(&ARGS)
}

/// Returns the program for another process in the same folder.
pub(crate) fn again(ended: Ended, model: &Model) -> Fledge {
    ended.again(&ARGS).anthropic(model)
}

/// Returns a model with fixed steps. It looks around, edits a file, runs a command that must not be
/// repeated and asks in prose. It then says too early that it is done, and at last writes the
/// missing file.
pub(crate) fn model() -> Model {
    Model::thinking(|body, _| {
        let said = Said::of(body);
        let read = |path: &str| call("files-read", json!({ "path": path }));
        let look = read("a.txt").also("files-read", json!({"path": "b.txt"})).also("files-list", json!({}));
        let edit = call("files-edit", json!({"path": "a.txt", "old": "old", "new": "new"}));
        let done = |tool, target, turn| said.unless_done(tool, target, turn, read(target));
        let turn = (said.calls.len() < 3 || said.calls[..3].iter().any(|call| call.failed) && said.calls.len() < 6)
            .then_some(look)
            .or_else(|| done("files-edit", "a.txt", edit))
            .or_else(|| done("shell-exec", "log.txt", shell("echo ran >> log.txt; sleep 0.01")))
            .or_else(|| (said.ends == 0).then(|| say("I need to read b.txt.")))
            .or_else(|| (said.ends == 1).then(|| say("Done.")))
            .or_else(|| done("files-write", "done", write("done", "new\n")))
            .or_else(|| Some(say("Now it is.")));
        (turn, body["messages"].as_array().map_or(0, Vec::len)) // the same ids in each request
    })
}

/// The contents of a conversation.
struct Said {
    calls: Vec<Done>,
    /// The number of times that the model said it was done.
    ends: usize,
}

/// A call and its result.
struct Done {
    tool: String,
    path: String,
    result: String,
    failed: bool,
}

impl Said {
    fn of(body: &Value) -> Self {
        let messages = body["messages"].as_array().unwrap();
        let blocks = || messages.iter().filter_map(|message| message["content"].as_array()).flatten();
        let done = |block: &Value| {
            let result = blocks().find(|other| other["tool_use_id"] == block["id"]).cloned().unwrap_or_default();
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let failed = result["is_error"] == true;
            Done {
                tool: text(&block["name"]),
                path: text(&block["input"]["path"]),
                result: result["content"].to_string(),
                failed,
            }
        };
        let calls: Vec<Done> = blocks().filter(|block| block["type"] == "tool_use").map(done).collect();
        let is_end = |message: &&Value| {
            let blocks = message["content"].as_array();
            message["role"] == "assistant" && !blocks.is_some_and(|all| all.iter().any(|one| one["type"] == "tool_use"))
        };
        Self { calls, ends: messages.iter().filter(is_end).count() }
    }

    /// Returns the next turn that brings `target` to its wanted state. After a failure of `tool`,
    /// the model looks first.
    fn unless_done(&self, tool: &str, target: &str, turn: Turn, look: Turn) -> Option<Turn> {
        let Some(tried) = self.calls.iter().rposition(|call| call.tool == tool) else { return Some(turn) };
        if !self.calls[tried].failed {
            return None;
        }
        let looked = self.calls[tried..].iter().rfind(|call| call.tool == "files-read" && call.path == target);
        match looked {
            Some(seen) if !seen.failed => {
                (!seen.result.contains("new") && !seen.result.contains("ran")).then_some(turn)
            }
            Some(seen) if seen.result.contains("does not exist") => Some(turn),
            Some(_) | None => Some(look),
        }
    }
}
