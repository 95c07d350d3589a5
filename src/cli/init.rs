//! `fledge init`: from a project to its first run: a lane, a task, and a configuration where one is wanted. Nothing that is there is
//! written over.

use super::failure::Failure;
use super::lanes::{self, Proof};
use super::paint::{self, Tone};
use super::{block_on, signals};
use crate::config::Environment;
use crate::driver::Stop;
use crate::gate::{self, InitFault};
use crate::lane::detect::{DETECTED_LANE, Detected};
use crate::report::seconds;
use crate::store::{StoreError, read_text, write_new, write_shared};
use crate::task::TaskFault;
use crate::verdict::{StepReport, StepStatus};
use crate::yaml::{Place, Problem, Problems};
use anyhow::Context;
use clap::Args;
use std::path::{Path, PathBuf};

/// The file of the lane.
const LANE: &str = "lanes/verify.yaml";
/// Where the task comes to be.
const TASK: &str = "tasks/first.md";
/// What stands above its text.
const TASK_FRONT: &str = "---\nfiles: [\"**\"] # what may be changed; the checks themselves never are\n\
    budget: { turns: 40, time: 30m } # and usd: 1.00, where the model's price is known\n---\n";
/// Its text, which is for whoever writes the task.
const TASK_TEXT: [&str; 2] = [
    "# Say in one line what is to be done",
    "Then say what is wrong or missing, where to look, and how to see the result.",
];
/// Where the configuration comes to be.
const CONFIG: &str = "fledge.yaml";
/// What is in it.
const CONFIG_TEXT: &str = "# What holds for every task of this project; `fledge config show` says what is set, and by whom.\n\
    # default_model: anthropic/claude-sonnet-4-5\nlane: verify\nbudget: { turns: 100, time: 1h }\n\
    # protect: [\"CODEOWNERS\"]          # paths that no task may change, beside the checks and their tests\n\
    # memory: { ephemeral_ttl: 7d }\n";

/// Arguments of `fledge init`.
#[derive(Debug, Args)]
#[command(
    after_help = "What is there already is left as it is. The lane is what `fledge lanes init` finds. Its steps are run once by hand and once in a\n\
    clean room, as a gate would. A lint that fails there is written with `allow_failure: true`, and a step that cannot run is left out.\n\n\
    Examples:\n  fledge init\n  fledge init --config\n  fledge init --print"
)]
pub(super) struct InitArguments {
    /// Write fledge.yaml too
    #[arg(long)]
    config: bool,
    /// Say what would be written, and write nothing
    #[arg(long)]
    print: bool,
    /// Do not run the checks to see whether they pass
    #[arg(long, conflicts_with = "print")]
    no_check: bool,
    /// Never prompt: there is nothing to ask
    #[arg(long = "ni", alias = "non-interactive", hide = true)]
    _ni: bool,
    /// The project
    #[arg(long, short = 'C', value_name = "DIR", default_value = ".")]
    workspace: PathBuf,
}

/// What became of a file.
enum Written {
    New(String),
    Kept(String),
}

/// Writes what is missing; gives the exit code.
///
/// # Errors
/// When there is no such folder, nothing says how the project is checked, or a file cannot be written.
pub(super) fn run(arguments: &InitArguments, environment: &Environment) -> Result<u8, Failure> {
    let root = arguments.workspace.canonicalize();
    let root = root
        .with_context(|| format!("there is no folder {}", arguments.workspace.display()))
        .map_err(Failure::input)?;
    let env = environment.hand_env();
    let path = env.get("PATH").map_or("", String::as_str);
    let detected = gate::look(&root, path);
    let mut front = TASK_FRONT.to_owned();
    if detected.style.has_single_quotes {
        front = front.replace('"', "'");
    }
    if !detected.style.has_spaced_braces {
        front = front.replace("{ ", "{").replace(" }", "}");
    }
    let task = format!("{front}\n{}\n", TASK_TEXT.join("\n\n"));
    let mut texts = vec![(TASK, task.as_str())];
    texts.extend(arguments.config.then_some((CONFIG, CONFIG_TEXT)));
    if arguments.print {
        return print(&detected, &texts);
    }
    let (lane, detected) = lane(&root, detected)?;
    let mut written = vec![lane];
    for (name, text) in &texts {
        written.push(file(&root, name, text)?);
    }
    for one in &written {
        match one {
            Written::New(name) => paint::line(&[(Tone::Good, "✓ wrote "), (Tone::Plain, name)]),
            Written::Kept(name) => paint::line(&[(Tone::Faint, "- there already: "), (Tone::Plain, name)]),
        }
    }
    if let Some(detected) = detected {
        lanes::say(&detected.remarks);
        if !arguments.no_check {
            try_out(&root, detected, environment)?;
        }
    }
    next(&root, environment);
    Ok(0)
}

/// Runs the lane that was just written, by hand and in a clean room, shows both, and amends the file by what failed.
fn try_out(root: &Path, mut detected: Detected, environment: &Environment) -> Result<(), Failure> {
    let begin = |place: &str| {
        paint::line(&[(Tone::Faint, &format!("running the checks {place} (--no-check leaves that out)"))]);
    };
    let proof = block_on(async {
        let stop = Stop::default();
        let listening = signals::listen(stop.clone()).context("cannot listen for signals").map_err(Failure::own)?;
        let proof = lanes::prove(root, DETECTED_LANE, environment, &stop, begin).await;
        drop(listening);
        proof
    })??;
    let before = detected.yaml();
    let env = environment.own_env();
    let mut remarks = amend(&mut detected, &proof, env.get("PATH").map_or("", String::as_str));
    table(&proof);
    remarks.extend(proof.doubts.iter().map(|doubt| format!("in a clean room: {doubt}")));
    let amended = detected.yaml();
    if amended != before {
        let file = root.join(LANE);
        // An edit that was made meanwhile stays.
        if read_text(&file, before.len()).is_ok_and(|text| text.as_ref() == Some(&before)) {
            write_shared(&file, amended.as_bytes()).map_err(Failure::own)?;
            paint::line(&[(Tone::Good, "✓ amended "), (Tone::Plain, LANE)]);
        }
    }
    lanes::say(&remarks);
    Ok(())
}

/// Takes out of a lane what cannot run on the project as it is, or in a clean room, and has only reported which lints fail there. Returns
/// what people should know. `path` is the search path of the steps.
fn amend(detected: &mut Detected, proof: &Proof, path: &str) -> Vec<String> {
    let mut remarks = Vec::new();
    for step in proof.by_hand.iter().filter(|step| step.status.is_failure()) {
        let name = step.step.as_str();
        let lacked = gate::lacks(step, path);
        let is_unable = step.status == StepStatus::Errored || matches!(step.exit_code, Some(126 | 127));
        let is_unable = is_unable || lacked.is_some();
        let why = lacked.unwrap_or_else(|| last_line(step));
        if is_unable && detected.leave_out(name, &format!("it cannot run here: {why}")) {
            remarks.push(format!("`{name}` was left out, because it cannot run here: {why}"));
        } else if is_unable {
            remarks.push(format!(
                "`{name}` cannot run here: {why}; install what it needs, such as the project's dependencies"
            ));
        } else if detected.is_lint(name) {
            detected.let_fail(name, "it fails on the project as it is");
            remarks.push(format!("`{name}` fails on the project as it is, so its failure is only reported"));
        } else {
            remarks.push(format!("`{name}` fails on the project as it is: no run is verified before it passes; `fledge fix` can have it mended"));
        }
    }
    for (room, _) in proof.in_room.iter().flatten().zip(&proof.by_hand).filter(|(room, by_hand)| {
        room.status.is_failure() && by_hand.status == StepStatus::Passed && room.step == by_hand.step
    }) {
        let (name, why) = (room.step.as_str(), last_line(room));
        if detected.leave_out(name, &format!("it passes by hand and fails in a clean room: {why}")) {
            remarks.push(format!("`{name}` was left out, because it fails in a clean room: {why}"));
        }
    }
    remarks
}

/// Shows how each step ended by hand and in the room.
fn table(proof: &Proof) {
    let ended = |step: &StepReport| format!("{} {}", step.status.as_str().replace('_', " "), seconds(step.duration_ms));
    let width = |all: &[String]| all.iter().map(|cell| cell.chars().count()).max().unwrap_or(0);
    let names: Vec<String> = proof.by_hand.iter().map(|step| step.step.clone()).collect();
    let hand: Vec<String> = proof.by_hand.iter().map(ended).collect();
    let (first, second) = (width(&names).max("check".len()), width(&hand).max("by hand".len()));
    paint::line(&[(Tone::Strong, &format!("  {:<first$}  {:<second$}  in a clean room", "check", "by hand"))]);
    let in_room = proof.in_room.as_deref().unwrap_or_default();
    for (place, (name, by_hand)) in names.iter().zip(&hand).enumerate() {
        let room = in_room.get(place);
        let is_same = room.is_some_and(|room| room.status.is_failure() == proof.by_hand[place].status.is_failure());
        let cell = room.map_or_else(|| "not tried".to_owned(), ended);
        let tone = if is_same { Tone::Plain } else { Tone::Warn };
        paint::line(&[(Tone::Plain, format!("  {name:<first$}  {by_hand:<second$}  ")), (tone, cell)]);
        if let Some(room) = room.filter(|room| !is_same && room.status.is_failure()) {
            paint::line(&[(Tone::Faint, format!("  {:<first$}  in the room: {}", "", last_line(room)))]);
        }
    }
    if let Err(why) = &proof.in_room {
        lanes::say([&format!("there was no clean room: {why}")]);
    } else if in_room
        .iter()
        .zip(&proof.by_hand)
        .any(|(room, hand)| room.status.is_failure() && !hand.status.is_failure())
    {
        lanes::say([&"a run judges its work in the room: `fledge lanes run verify --clean` shows all that the checks print there, and docs/gate.md says what a room has".to_owned()]);
    }
}

/// The last line that a step has printed, or why it did not run.
fn last_line(step: &StepReport) -> String {
    let said = if step.note.is_empty() {
        step.excerpt.trim_end().lines().next_back().unwrap_or("it printed nothing")
    } else {
        &step.note
    };
    said.trim().to_owned()
}

/// What is wrong with a task that says still what was written here: nobody has said what is to be done.
pub(super) fn unwritten(text: &str, source: &str) -> Option<TaskFault> {
    let mut problems = Problems::default();
    for (line, _) in (1..).zip(text.lines()).filter(|(_, line)| TASK_TEXT.contains(&line.trim())) {
        let place = Place { line, column: 1 };
        let problem = Problem::at(place, "this line is still the one that `fledge init` has written");
        problems.push(problem.hint("say in its place what is to be done, or remove it"));
    }
    (!problems.is_empty()).then(|| TaskFault { file: source.to_owned(), problems: problems.seen_in(text) })
}

/// The lane that is the gate: the one that is there, or the one that is found, with what was found.
fn lane(root: &Path, detected: Detected) -> Result<(Written, Option<Detected>), Failure> {
    match gate::write_detected(root, &detected) {
        Ok(file) => Ok((Written::New(file), Some(detected))),
        Err(InitFault::AlreadyThere(file)) => Ok((Written::Kept(file), None)),
        Err(fault @ InitFault::Store(_)) => Err(Failure::own(fault)),
        Err(fault @ InitFault::NoFolder) => Err(Failure::input(fault)),
        Err(fault @ InitFault::NothingFound(_)) => Err(nothing_found(fault)),
    }
}

fn nothing_found(fault: InitFault) -> Failure {
    Failure::input(fault)
        .hint("write lanes/verify.yaml by hand, one step is enough: `steps: [{ name: test, run: ./check.sh }]`")
}

fn file(root: &Path, name: &str, text: &str) -> Result<Written, Failure> {
    let path = root.join(name);
    if path.symlink_metadata().is_ok() {
        return Ok(Written::Kept(name.into()));
    }
    let made = path.parent().map_or(Ok(()), std::fs::create_dir_all);
    made.with_context(|| format!("cannot make the folder of {name}")).map_err(Failure::input)?;
    let fail = |fault: StoreError| Failure::input(anyhow::Error::new(fault).context(format!("cannot write {name}")));
    let is_new = write_new(&path, text.as_bytes()).map_err(fail)?;
    Ok(if is_new { Written::New(name.into()) } else { Written::Kept(name.into()) })
}

fn print(detected: &Detected, texts: &[(&str, &str)]) -> Result<u8, Failure> {
    if detected.is_empty() {
        return Err(nothing_found(InitFault::NothingFound(detected.remarks.clone())));
    }
    let lane = detected.yaml();
    let all = std::iter::once((LANE, lane.as_str())).chain(texts.iter().copied());
    let page: Vec<String> = all.map(|(name, text)| format!("# {name}\n{}", text.trim_end())).collect();
    super::print_data(&page.join("\n\n")).map_err(super::no_output)?;
    lanes::say(&detected.remarks);
    Ok(0)
}

/// What a person does next.
fn next(root: &Path, environment: &Environment) {
    let mut steps = vec![
        ("fledge lanes run verify", "do the checks pass as they are?"),
        ("fledge doctor", "is all here that a run needs?"),
        ("fledge run tasks/first.md --dry-run", "what would be sent, once the task says what to do"),
        ("fledge run tasks/first.md", "have it done"),
    ];
    if !root.join(".git").exists() {
        steps.insert(0, ("git init", "runs compare trees, by git"));
    }
    if ["ANTHROPIC_API_KEY", "OPENAI_API_KEY", crate::config::MODEL_VARIABLE]
        .iter()
        .all(|name| environment.get(name).is_none())
    {
        steps.insert(
            steps.len() - 1,
            ("export ANTHROPIC_API_KEY=…", "or OPENAI_API_KEY, or a model of your own: docs/models.md"),
        );
    }
    paint::line(&[(Tone::Strong, "Next:")]);
    let width = steps.iter().map(|(command, _)| command.chars().count()).max().unwrap_or(0);
    for (command, why) in steps {
        paint::line(&[(Tone::Plain, format!("  {command:<width$}  ")), (Tone::Faint, why.to_owned())]);
    }
}
