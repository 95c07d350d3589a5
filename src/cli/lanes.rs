//! `fledge lanes`: the project's lanes, by hand.

use super::display::step_line;
use super::failure::Failure;
use super::paint::{self, LiveLine, Tone};
use super::{block_on, no_output, print_data, signals};
use crate::config::Environment;
use crate::driver::Stop;
use crate::gate::{self, GateFault, InitFault, Loaded};
use crate::lane::{Facts, Lane, Selection};
use crate::lane_runner::{LaneOutcome, LaneRuling, Room, run_lane};
use crate::report::seconds;
use crate::store;
use crate::verdict::{Reason, StepProgress};
use crate::workspace::changed_paths;
use anyhow::{Context, anyhow};
use clap::{Args, Subcommand};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// The verbs of `fledge lanes`.
#[derive(Debug, Subcommand)]
pub(super) enum LanesVerb {
    /// List the project's lanes and what is in them
    List(ListArguments),
    /// Write the lane that the project's files suggest to lanes/verify.yaml, if there is none
    Init(InitArguments),
    /// Run a lane in place
    Run(RunArguments),
}

/// Arguments of `fledge lanes list`.
#[derive(Debug, Args)]
pub(super) struct ListArguments {
    /// As JSON, to standard output
    #[arg(long)]
    json: bool,
}

/// Arguments of `fledge lanes init`.
#[derive(Debug, Args)]
pub(super) struct InitArguments {
    /// Print the file to standard output, and write nothing
    #[arg(long)]
    print: bool,
}

/// Arguments of `fledge lanes run`.
#[derive(Debug, Args)]
pub(super) struct RunArguments {
    /// The lane
    name: String,
    /// Begin with this step
    #[arg(long, value_name = "STEP", conflicts_with = "only")]
    from: Option<String>,
    /// Run this step alone
    #[arg(long, value_name = "STEP")]
    only: Option<String>,
    /// Run everything, also after a failure
    #[arg(long)]
    keep_going: bool,
    /// Steps at once
    #[arg(long, value_name = "N")]
    jobs: Option<NonZeroUsize>,
    /// Never prompt and never draw live lines
    #[arg(long)]
    ni: bool,
    /// Print the result as JSON to standard output
    #[arg(long)]
    json: bool,
}

/// Runs the verb; gives the exit code.
///
/// # Errors
/// An unknown or wrong lane, or no place for logs.
pub(super) fn run(verb: LanesVerb, environment: &Environment) -> Result<u8, Failure> {
    let root = Path::new(".").canonicalize().context("the current folder is gone").map_err(Failure::input)?;
    let env = environment.child_env();
    let path = env.get("PATH").map_or("", String::as_str);
    match verb {
        LanesVerb::List(arguments) => list(&root, &arguments, path),
        LanesVerb::Init(arguments) => init(&root, &arguments, path),
        LanesVerb::Run(arguments) => run_one(root, &arguments, environment, path),
    }
}

fn list(root: &Path, arguments: &ListArguments, path: &str) -> Result<u8, Failure> {
    let detected = gate::look_if_no_lanes(root, path).map_err(GateFault::from).map_err(failed)?;
    let (mut lanes, mut code): (Vec<Lane>, u8) = (Vec::new(), 0);
    match &detected {
        Some(detected) if detected.is_empty() => {}
        Some(detected) => lanes.push(detected.lane().map_err(GateFault::from).map_err(failed)?),
        None => {
            for name in gate::names(root).map_err(failed)? {
                match gate::load(root, &name, path) {
                    Ok(loaded) => lanes.push(loaded.lane),
                    Err(fault) => code = code.max(failed(fault).show()), // what is right is listed all the same
                }
            }
        }
    }
    if arguments.json {
        let lanes: Vec<_> = lanes.iter().map(|lane| lane_as_json(lane, detected.is_some())).collect();
        print_data(&serde_json::json!({ "schema_version": 1, "lanes": lanes }).to_string()).map_err(no_output)?;
        return Ok(code);
    }
    if lanes.is_empty() && code == 0 {
        paint::line(&[(Tone::Plain, "no lanes: there is nothing in lanes/")]);
    }
    for lane in &lanes {
        let mark = if detected.is_some() { " (detected)" } else { "" };
        let line = format!("{}{mark}  {}", lane.name, paint::harmless(&lane.description));
        print_data(line.trim_end()).map_err(no_output)?;
        for step in &lane.steps {
            print_data(&format!("  {}: {}", step.name, paint::harmless(&step.run))).map_err(no_output)?;
        }
    }
    say(detected.iter().flat_map(|detected| &detected.remarks));
    Ok(code)
}

fn lane_as_json(lane: &Lane, is_detected: bool) -> serde_json::Value {
    let mut value = serde_json::json!(lane);
    value["detected"] = is_detected.into();
    value
}

fn init(root: &Path, arguments: &InitArguments, path: &str) -> Result<u8, Failure> {
    let detected = gate::look(root, path);
    if arguments.print && !detected.is_empty() {
        print_data(detected.yaml().trim_end()).map_err(no_output)?;
        return Ok(0);
    }
    let file = gate::write_detected(root, &detected).map_err(|fault| match fault {
        InitFault::Store(_) => Failure::own(fault),
        InitFault::AlreadyThere(_) => Failure::input(fault).hint("see what it would have been with --print"),
        InitFault::NoFolder => Failure::input(fault),
        InitFault::NothingFound(_) => Failure::input(fault).hint("write lanes/verify.yaml by hand: one step is enough"),
    })?;
    let lane = detected.lane().map_err(Failure::input)?;
    let steps: Vec<&str> = lane.steps.iter().map(|step| step.name.as_str()).collect();
    paint::line(&[(Tone::Good, &format!("wrote {file}")), (Tone::Plain, &format!(": {}", steps.join(", ")))]);
    say(&detected.remarks);
    Ok(0)
}

/// Says what is to be known about a detected lane.
fn say<'r>(remarks: impl IntoIterator<Item = &'r String>) {
    for remark in remarks {
        paint::line(&[(Tone::Warn, "note: "), (Tone::Plain, remark)]);
    }
}

fn run_one(root: PathBuf, arguments: &RunArguments, environment: &Environment, path: &str) -> Result<u8, Failure> {
    let Loaded { mut lane, notes } = gate::load(&root, &arguments.name, path).map_err(failed)?;
    say(&notes);
    lane.fail_fast &= !arguments.keep_going;
    lane.jobs = arguments.jobs.or(lane.jobs);
    let env = environment.child_env();
    gate::can_run(&root, &lane, path).map_err(failed)?;
    let state = environment.state_dir().map_err(Failure::input)?;
    let log_dir = state.join("lanes").join(uuid::Uuid::now_v7().to_string());
    store::make_private(&log_dir).map_err(Failure::own)?;
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    let mut room = Room::new(root, env.into_iter().collect(), log_dir, jobs);
    let selection = match (&arguments.from, &arguments.only) {
        (Some(step), _) => Selection::From(step.clone()),
        (None, Some(step)) => Selection::Only(step.clone()),
        (None, None) => Selection::All,
    };
    let live = Mutex::new(LiveLine::new(!arguments.ni));
    let show = |progress: StepProgress| {
        let Ok(live) = live.lock() else { return };
        match progress {
            StepProgress::Started { step, command, .. } => live.begin(&format!("{step}: {command}")),
            StepProgress::Output { line, .. } => live.note(&line),
            StepProgress::Retried(report) => {
                live.clear();
                let note = format!("{} failed (try {}) and is tried again", report.step, report.tries);
                paint::line(&[(Tone::Warn, "  ! "), (Tone::Plain, &note)]);
            }
            StepProgress::Ended(report) => {
                live.clear();
                step_line(&report);
            }
        }
    };
    let stop = Stop::default();
    let (outcome, cause) = block_on(async {
        let listening = signals::listen(stop.clone()).context("cannot listen for signals").map_err(Failure::own)?;
        let asks = lane.steps.iter().any(|step| !step.changed.is_empty());
        let changed = if asks { changed_paths(&room.root, &room.env, stop.token()).await } else { None };
        let facts = Facts { variables: environment.all().clone(), changed };
        room.left_out = lane.left_out(&selection, &facts).map_err(|error| Failure::input(anyhow!(error)))?;
        let outcome = run_lane(&lane, &room, stop.token(), &show).await;
        drop(listening);
        Ok::<_, Failure>((outcome, stop.cause()))
    })??;
    let (word, code) = ruling(outcome.ruling, cause);
    if arguments.json {
        print_data(&as_json(&lane, &outcome, word, code)).map_err(no_output)?;
    }
    let tone = if code == 0 { Tone::Good } else { Tone::Bad };
    let time = format!(" ({})", seconds(u64::try_from(outcome.duration.as_millis()).unwrap_or(u64::MAX)));
    paint::line(&[(tone, &format!("lane {} {word}", lane.name)), (Tone::Faint, &time)]);
    Ok(code)
}

fn ruling(ruling: LaneRuling, cause: crate::verdict::StopCause) -> (&'static str, u8) {
    match ruling {
        LaneRuling::Passed => ("passed", 0),
        LaneRuling::Failed => ("failed", 1),
        LaneRuling::NothingRan => ("ran nothing", 1),
        LaneRuling::Errored => ("could not run", Reason::GateErrored.row().exit_code),
        LaneRuling::Cancelled => ("cancelled", Reason::Cancelled.exit_code(Some(cause))),
    }
}

fn as_json(lane: &Lane, outcome: &LaneOutcome, word: &str, code: u8) -> String {
    serde_json::json!({
        "schema_version": 1,
        "lane": lane.name,
        "result": word.replace(' ', "_"),
        "success": code == 0,
        "exit_code": code,
        "duration_ms": u64::try_from(outcome.duration.as_millis()).unwrap_or(u64::MAX),
        "steps": outcome.steps,
    })
    .to_string()
}

fn failed(fault: GateFault) -> Failure {
    Failure::because(fault.reason(), fault)
}
