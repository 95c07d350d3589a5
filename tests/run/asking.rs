//! Tests of calls that need approval: asked at a terminal, denied without one, and never bypassed.
#![cfg(target_os = "linux")]

use crate::support::{Fledge, Model, call, needs, say, shell, write};
use crate::support::{PATIENCE, open_terminal, read_some};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use std::fs::File;
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};

const PROMPT: &str = "y yes, n no, a always this command";

/// A run of the program at a terminal with keyboard input.
struct Seat {
    fledge: Fledge,
    child: Child,
    terminal: File,
    /// All output so far, without carriage returns.
    said: String,
    /// The end of the output that a wait has already matched.
    seen: usize,
    _over: Sender<()>,
}

impl Seat {
    fn at(fledge: Fledge, model: &Model, args: &[&str], env: &[(&str, &str)]) -> Self {
        let (main, own) = open_terminal(0, 0);
        let mut command = Command::new("setsid");
        command.args(["--ctty", env!("CARGO_BIN_EXE_fledge"), "run", "task.md"]).args(args);
        command.current_dir(fledge.workspace()).env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command
            .env("TERM", "xterm")
            .env("NO_COLOR", "1")
            .env("HOME", fledge.state())
            .env("FLEDGE_STATE_DIR", fledge.state());
        command.env("ANTHROPIC_BASE_URL", model.url()).env("ANTHROPIC_API_KEY", "sk-x").envs(env.iter().copied());
        command.stdin(own.try_clone().unwrap()).stdout(Stdio::null()).stderr(own);
        let child = command.spawn().unwrap();
        drop(command); // closes our handles of the program's end
        let (over, heard) = channel();
        let pid = Pid::from_child(&child);
        std::thread::spawn(move || {
            if heard.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
                let _it_is_stuck = kill_process(pid, Signal::KILL);
            }
        });
        Self { fledge, child, terminal: main, said: String::new(), seen: 0, _over: over }
    }

    /// Reads until new output contains this text.
    #[track_caller]
    fn wait_for(&mut self, text: &str) {
        let mut bytes = [0; 4096];
        loop {
            if let Some(at) = self.said[self.seen..].find(text) {
                self.seen += at + text.len();
                return;
            }
            let read = read_some(&mut self.terminal, &mut bytes);
            assert!(read > 0, "it ended before {text:?}:\n{}", self.said);
            self.said.push_str(&String::from_utf8_lossy(&bytes[..read]).replace('\r', ""));
        }
    }

    fn types(&mut self, keys: &str) {
        self.terminal.write_all(keys.as_bytes()).unwrap();
    }

    /// Waits for the end. Returns the exit code and all output.
    fn end(mut self) -> (Option<i32>, String, Fledge) {
        let mut rest = Vec::new();
        let _ends_with_an_error = self.terminal.read_to_end(&mut rest);
        self.said.push_str(&String::from_utf8_lossy(&rest).replace('\r', ""));
        (self.child.wait().unwrap().code(), self.said, self.fledge)
    }
}

/// Returns a run whose rules ask for approval.
fn asking(model: &Model, rules: &str) -> Fledge {
    let task = format!("---\napprove: {{ ask: [{rules}] }}\n---\nMake the file `done`.\n");
    Fledge::new().lane("verify", &needs("done")).task(&task).anthropic(model)
}

#[test]
fn a_yes_runs_the_call_a_no_is_told_with_its_reason_and_always_asks_no_more() {
    let model = Model::new([
        shell("touch a")
            .also("shell-exec", json!({ "command": "touch b" }))
            .also("shell-exec", json!({ "command": "ls" })),
        shell("touch done"),
        shell("touch done"),
        say("Done."),
    ]);
    let mut seat = Seat::at(asking(&model, "'shell-exec:touch *'"), &model, &[], &[]);
    seat.wait_for("? shell-exec: allow this call?\n  │ touch a\n");
    seat.wait_for(PROMPT);
    seat.types("y\n");
    seat.wait_for("  │ touch b\n");
    seat.wait_for(PROMPT);
    seat.types("maybe\n");
    seat.wait_for("answer y, n or a");
    seat.types("no not b\n");
    seat.wait_for("  │ touch done\n");
    seat.wait_for(PROMPT);
    seat.types("a\n");
    let (code, said, fledge) = seat.end();
    assert_eq!(code, Some(0), "{said}");
    let there = ["a", "b", "done"].map(|name| fledge.workspace().join(name).exists());
    assert_eq!(there, [true, false, true], "{said}");
    let asked = model.asked();
    assert!(asked[1].newest().contains("denied: a person said no: not b"), "{}", asked[1].newest());
    assert_eq!((asked.len(), said.matches("│ touch done").count()), (4, 1), "{said}");
}

#[test]
fn what_was_typed_before_the_question_is_no_answer_and_nobody_in_time_is_a_no() {
    long_test!();
    let model = Model::new([shell("touch a"), write("done", ""), say("Done.")]);
    let fledge = asking(&model, "'shell-exec:touch *'").file("fledge.yaml", "confirm_within: 2s\n");
    let mut seat = Seat::at(fledge, &model, &[], &[]);
    seat.types("y\ny\n");
    seat.wait_for("y yes, n no, a always this command (within 2.0s): ");
    let (code, said, fledge) = seat.end();
    assert_eq!((code, fledge.workspace().join("a").exists()), (Some(0), false), "{said}");
    assert!(model.asked()[1].newest().contains("denied: no answer within 2.0s"), "{said}");
}

#[test]
fn ctrl_c_at_a_question_cancels_the_run() {
    let model = Model::new([shell("touch a").also("shell-exec", json!({ "command": "touch b" }))]);
    let mut seat = Seat::at(asking(&model, "shell-exec"), &model, &[], &[("FLEDGE_NON_INTERACTIVE", "0")]);
    seat.wait_for(PROMPT);
    seat.types("\x03");
    let (code, said, fledge) = seat.end();
    let there = ["a", "b"].map(|name| fledge.workspace().join(name).exists());
    assert_eq!((code, there), (Some(130), [false, false]), "{said}");
    assert!(said.contains("✗ Cancelled after "), "{said}");
}

#[test]
fn where_nobody_is_a_call_is_denied_at_once_and_the_rest_of_the_turn_goes_on() {
    long_test!();
    let turns =
        || [shell("true; git 'push'").also("files-write", json!({ "path": "done", "content": "" })), say("Done.")];
    let model = Model::new(turns());
    let run = asking(&model, "'shell-exec:git push*'").run();
    let report = run.must_be(0, "verified");
    assert_eq!(report["tools"]["shell-exec"]["denied"], 1);
    assert!(model.asked()[1].newest().contains("denied: cannot approve shell-exec: no terminal or approval handler"));
    assert!(
        report["warnings"].to_string().contains("`git push*` needs approval, but no person can be asked"),
        "{report}"
    );
    let model = Model::new(turns());
    let seat = Seat::at(asking(&model, "'shell-exec:git push*'"), &model, &["--ni"], &[]);
    let (code, said, _) = seat.end();
    assert_eq!(code, Some(0), "{said}");
    assert!(!said.contains("allow this call?") && said.contains("shell-exec was denied"), "{said}");
}

#[test]
fn a_file_that_is_asked_for_in_prose_needs_the_same_yes_as_the_tool() {
    long_test!();
    let model = Model::new([say("I need to read secret.txt"), write("done", ""), say("Done.")]);
    let fledge = asking(&model, "files-read").file("secret.txt", "the canary sings\n");
    fledge.run().must_be(0, "verified");
    let told = model.asked()[1].newest();
    assert!(told.contains("denied: cannot approve files-read: no terminal") && !told.contains("canary"), "{told}");
    let model = Model::new([
        call("files-read", json!({ "path": "secret.txt" })),
        say("I need to read secret.txt"),
        write("done", ""),
        say("Done."),
    ]);
    let mut seat = Seat::at(asking(&model, "files-read").file("secret.txt", "the canary sings\n"), &model, &[], &[]);
    seat.wait_for("? files-read: allow this call?\n  path: secret.txt\n");
    seat.types("n\n");
    seat.wait_for("? files-read: allow this call?\n  path: secret.txt\n");
    seat.wait_for("a always this path: ");
    seat.types("y\n");
    assert_eq!(seat.end().0, Some(0));
    let told: Vec<bool> = model.asked().iter().map(|asked| asked.newest().contains("canary")).collect();
    assert_eq!(told, [false, false, true, false]);
}

#[test]
fn a_question_after_the_environment_is_answered_and_no_secret_is_told() {
    let model = Model::new([
        say("What's in the environment?"),
        say("What's in $ANTHROPIC_API_KEY?"),
        write("done", ""), // two questions in a row are answered
        say("I need to read .env."),
        say("Done."),
    ]);
    let run = Fledge::simple(&model).file(".env", "MODE=test\n").run();
    run.must_be(0, "verified");
    let [all, one, file] = [1, 2, 4].map(|turn| model.asked()[turn].newest());
    assert!(all.contains("PATH=/") && !all.contains("API_KEY"), "{all}");
    assert!(one.contains("`ANTHROPIC_API_KEY` is not shown here"), "{one}");
    assert!(file.contains("MODE=test"), "{file}");
}

#[test]
fn a_question_stays_below_what_others_have_to_say_and_is_answered_there() {
    let cassette = "turns:\n  \
        - tools: [{ name: subagent-spawn, input: { task: ask } }, { name: subagent-spawn, input: { task: talk } }]\n  \
        - { of: 1, tools: [{ name: shell-exec, input: { command: touch done } }] }\n  \
        - { of: 1, text: asked }\n  \
        - { of: 2, tools: [{ name: shell-exec, input: { command: 'until test -e go; do sleep 0.02; done; echo gone' } }] }\n  \
        - { of: 2, text: talked }\n  \
        - { text: Done. }\n";
    let model = Model::new([]);
    let fledge = asking(&model, "'shell-exec:touch *'").file("c.yaml", cassette);
    let go = fledge.workspace().join("go");
    let mut seat = Seat::at(fledge, &model, &["--model=cassette/c.yaml"], &[]);
    let mut size = rustix::termios::tcgetwinsize(&seat.terminal).unwrap();
    (size.ws_col, size.ws_row) = (100, 30);
    rustix::termios::tcsetwinsize(&seat.terminal, size).unwrap();
    seat.wait_for("? shell-exec of sub-agent 1: allow this call?\n  │ touch done\n");
    seat.wait_for(PROMPT);
    File::create(go).unwrap();
    seat.wait_for("  2 ┆ shell until test -e go");
    seat.wait_for("  2 ┆ done");
    seat.wait_for(PROMPT); // the prompt was drawn again below that
    seat.types("y\n");
    seat.wait_for("  1 ┆ done");
    let (code, said, fledge) = seat.end();
    assert_eq!((code, fledge.workspace().join("done").exists()), (Some(0), true), "{said}");
    let below = said.rsplit("  2 ┆ done").next().unwrap();
    assert!(below.contains("? ") && below.contains("│ touch done"), "the whole question is drawn again: {below}");
}
