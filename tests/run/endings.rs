//! Every reason of the end of a run, reached by a real run: the report, the JSON ending, the words
//! for people, the next commands, and `runs show`.

use crate::support::{Ended, Fledge, Model, Turn, call, garbled, hang, nothing, refuse, say, shell, status, write};
use fledge::verdict::Reason;
use rustix::process::Signal;
use serde_json::{Value, json};

/// A run that ends with a reason.
struct Ending {
    script: Vec<Turn>,
    /// Prepares the run, whose task is done when the file `done` exists.
    place: fn(Fledge) -> Fledge,
    /// The beginnings of the next commands that people get, in order.
    next: &'static [&'static str],
    /// True if the run is interrupted once the model was asked.
    is_interrupted: bool,
}

impl Ending {
    /// Runs the task.
    fn run(self, args: &[&str]) -> Ended {
        let model = Model::new(self.script);
        let fledge = (self.place)(Fledge::simple(&model));
        let run = args.iter().fold(fledge, |fledge, arg| fledge.arg(arg)).start();
        if self.is_interrupted {
            model.wait_for(1);
            run.signal(Signal::INT);
        }
        run.end()
    }
}

const DIFF: &str = "fledge runs diff";
const UNDO: &str = "fledge runs undo";
const LOGS: &str = "fledge runs logs";
const GO_ON: &str = "fledge runs continue";
const RESUME: &str = "fledge runs resume";
const DOCTOR: &str = "fledge doctor";
const CHECK: &str = "fledge models check";
const APPLY: &str = "fledge apply";

/// Creates a row of the table.
fn row(
    script: impl IntoIterator<Item = Turn>,
    place: fn(Fledge) -> Fledge,
    next: &'static [&'static str],
) -> Option<Ending> {
    Some(Ending { script: script.into_iter().collect(), place, next, is_interrupted: false })
}

fn done() -> [Turn; 2] {
    [write("done", "1\n"), say("Done.")]
}

/// Returns a run that ends with this reason; `None` if only a debug build has a way to it.
fn ending(reason: Reason) -> Option<Ending> {
    match reason {
        Reason::Verified => row(done(), |run| run, &[DIFF, UNDO]),
        Reason::Skipped => row(done(), |run| run.arg("--no-verify"), &[DIFF, UNDO]),
        Reason::Stuck => row([say("Done.").always()], |run| run.arg("--stuck-after=2"), &[LOGS, GO_ON]),
        Reason::BadInput => row(done(), |run| run.arg("--expect=passing"), &[]),
        Reason::PlanFailed => row(done(), without_its_server, &[]),
        Reason::ProviderFailed => row([status(401).always()], |run| run, &[CHECK]),
        Reason::Refused => row([refuse("I will not.").always()], |run| run, &[CHECK]),
        Reason::EmptyResponse => row([nothing().always()], |run| run, &[CHECK]),
        Reason::ModelProtocol => row([garbled("files-read").always()], |run| run, &[CHECK]),
        Reason::GateFailed | Reason::MaxTurns | Reason::BudgetTokens | Reason::BudgetMoney | Reason::BudgetTime => {
            limit_ending(reason)
        }
        Reason::LoopDetected => row([shell("echo the same").always()], |run| run, &[GO_ON]),
        Reason::GateErrored => {
            row(done(), |run| run.lane("verify", "steps: [{ name: a, run: no-such-program }]"), &[DOCTOR])
        }
        Reason::NotDelivered => {
            let commit = "git -c user.name=x -c user.email=x@localhost commit -q --allow-empty -m meanwhile";
            let place = |run: Fledge| run.arg("--commit=on-success").arg("--sandbox=off").committed();
            row([shell(commit), write("done", ""), say("Done.")], place, &[APPLY, RESUME, DIFF])
        }
        Reason::NoSandbox => row(done(), without_its_program, &[DOCTOR]),
        Reason::GateTampered => {
            let task = |run: Fledge| run.task("---\non_tamper: fail\n---\nDo it.");
            row([shell("touch done lanes/more.yaml"), say("Done.").always()], task, &[DIFF, GO_ON, UNDO])
        }
        Reason::Blocked => row([status(429).header("retry-after", "3600").always()], |run| run, &[RESUME]),
        Reason::IoError => {
            let place = |run: Fledge| run.file("gone/x", "").arg("--report=gone/report.json");
            row([shell("rm -r gone"), write("done", ""), say("Done.")], place, &[RESUME])
        }
        Reason::Internal if !cfg!(debug_assertions) => None,
        Reason::Internal => row(done(), |run| run.env("FLEDGE_FAIL", "error:plan: begun#1"), &[]),
        Reason::Cancelled => Some(Ending { is_interrupted: true, ..row([hang()], |run| run, &[GO_ON])? }),
    }
}

/// Returns a run that a limit ends.
fn limit_ending(reason: Reason) -> Option<Ending> {
    let half = write("half", "1\n");
    let look = call("files-read", json!({"path": "task.md"})).using(6_000, 2_000).always();
    let next = &[RESUME, DIFF, GO_ON, UNDO];
    match reason {
        Reason::MaxTurns => row([half, look], |run| limited(run, "turns: 2"), next),
        Reason::BudgetTokens => row([half, look], |run| limited(run, "tokens: 17000"), next),
        Reason::BudgetMoney => {
            let place = |run: Fledge| {
                let price = "price: { input: 100, output: 100 }";
                let models =
                    format!("models: {{ m: {{ provider: anthropic, model: m, {price} }} }}\ndefault_model: m\n");
                limited(run.file(CONFIGURATION, models), "usd: 1")
            };
            row([half, look], place, next)
        }
        Reason::BudgetTime => row([hang()], |run| limited(run, "time: 2s"), &[RESUME, GO_ON]),
        _ => row([half, say("Done.").always()], |run| run.arg("--max-retries=0"), &[LOGS, DIFF, RESUME, GO_ON]),
    }
}

/// The configuration of the user.
const CONFIGURATION: &str = "../home/.config/fledge/config.yaml";

fn limited(run: Fledge, budget: &str) -> Fledge {
    run.task(&format!("---\nbudget: {{ {budget} }}\n---\nMake the file `done`."))
}

/// Names an MCP server that cannot start.
fn without_its_server(run: Fledge) -> Fledge {
    let server = "mcp: { gone: { command: [no-such-program], required: true } }\n";
    run.file(CONFIGURATION, server).task("---\nmcp: [gone]\n---\nMake the file `done`.")
}

/// Runs a fledge program that no longer exists, so that the program cannot start itself in a
/// sandbox.
fn without_its_program(run: Fledge) -> Fledge {
    run.under(&[
        "/bin/sh",
        "-c",
        "cp \"$1\" ../gone; exec 9<../gone; rm ../gone; shift; exec /proc/self/fd/9 \"$@\"",
        "sh",
    ])
}

/// Insists that the run ended with this reason, and that its report says so.
#[track_caller]
fn must_end(ended: &Ended, reason: Reason) -> Value {
    let row = reason.row();
    let report = ended.must_be(row.exit_code.into(), row.word);
    let is_good = matches!(reason, Reason::Verified | Reason::Skipped | Reason::NotDelivered);
    assert_eq!(
        (&report["verified"], &report["done_reason"], &report["cancelled"]),
        (&json!(is_good), &json!(row.done_reason), &json!(reason == Reason::Cancelled)),
        "{reason}: {}",
        ended.story()
    );
    report
}

/// Insists on what people read at the end of a run: words without internal names, and the next
/// commands.
#[track_caller]
fn must_tell_people(ended: &Ended, report: &Value, reason: Reason, next: &[&str]) {
    let said = &ended.stderr;
    let heads = ["✓ ", "✗ ", "! ", "– ", "error: "];
    assert!(said.lines().any(|line| heads.iter().any(|head| line.starts_with(head))), "{reason}: {said}");
    let word = reason.row().word;
    assert!(!word.contains('_') || !said.contains(word), "{reason}: {said}");
    let message = report["message"].as_str().unwrap();
    let meaning = format!("{}: ", reason.row().meaning);
    let cause = message.strip_prefix("failed: ").or_else(|| message.strip_prefix(meaning.as_str())).unwrap_or(message);
    let first = cause.lines().next().unwrap();
    let is_told = said.to_lowercase().contains(&first.to_lowercase());
    assert!(is_told || reason.row().exit_code == 0, "{reason}: no {first:?} in {said}");
    let commands = |line: &str| {
        let line = line.strip_prefix("  next     ").or_else(|| line.strip_prefix("           "))?;
        line.starts_with("fledge ").then(|| line.to_owned())
    };
    let commands: Vec<String> = said.lines().filter_map(commands).collect();
    assert_eq!(commands.len(), next.len(), "{reason}: {commands:?}\n{said}");
    for (command, wanted) in commands.iter().zip(next) {
        assert!(command.starts_with(wanted), "{reason}: {command:?} is not {wanted:?}");
    }
    if let Some(limit) = reason.limit() {
        assert!(commands.iter().any(|command| command.contains(limit.flag())), "{reason}: {commands:?}");
    }
}

fn tried(reason: Reason) {
    let Some(row) = ending(reason) else { return };
    let next = row.next;
    let ended = row.run(&[]);
    let report = must_end(&ended, reason);
    must_tell_people(&ended, &report, reason, next);
    let shown = ended.again(&["runs", "show", "last", "--json"]).run();
    shown.must_exit(0);
    let data: Value = serde_json::from_str(&shown.stdout).unwrap();
    // A run without its report has not ended: a resume writes the report.
    let is_over = reason != Reason::IoError;
    assert_eq!(data["run"]["state"], if is_over { "ended" } else { "interrupted" }, "{reason}: {}", shown.story());
    if is_over {
        assert_eq!(data["result"]["reason"], reason.row().word, "{}", shown.story());
        assert_eq!(data["run"]["outcome"]["reason"], reason.row().word, "{}", shown.story());
    }
    let shown = shown.again(&["runs", "show", "last"]).run();
    shown.must_exit(0);
    let label = if is_over { reason.label() } else { "interrupted" };
    let first = shown.stdout.lines().next().unwrap_or_default();
    assert!(first.ends_with(&format!("  {label}")), "{reason}: {}", shown.story());
    let ended = ending(reason).unwrap().run(&["--json"]);
    let report = must_end(&ended, reason);
    let last = ended.events().pop().unwrap();
    let data = &last["data"];
    assert_eq!(last["type"], "finished", "{reason}: {}", ended.story());
    for key in ["reason", "exit_code", "verified"] {
        assert_eq!(data[key], report[key], "{reason}: {}", ended.story());
    }
}

#[test]
fn every_reason_of_an_end_is_reached_by_a_run_that_says_so_everywhere() {
    long_test!();
    let reasons = Reason::ALL.chunks(6);
    std::thread::scope(|scope| {
        for some in reasons {
            scope.spawn(move || some.iter().copied().for_each(tried));
        }
    });
}

#[test]
fn the_table_of_reasons_has_every_reason_that_a_report_can_have() {
    let path = format!("{}/specs/generated/schemas/report.json", env!("CARGO_MANIFEST_DIR"));
    let schema: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let printed = schema["$defs"]["Reason"]["oneOf"].as_array().unwrap();
    let printed: Vec<&str> = printed.iter().map(|one| one["const"].as_str().unwrap()).collect();
    let known: Vec<&str> = Reason::ALL.iter().map(|reason| reason.row().word).collect();
    assert_eq!(known, printed);
    let without_a_run: Vec<Reason> = Reason::ALL.into_iter().filter(|reason| ending(*reason).is_none()).collect();
    let only_by_fail_points = if cfg!(debug_assertions) { vec![] } else { vec![Reason::Internal] };
    assert_eq!(without_a_run, only_by_fail_points);
}
