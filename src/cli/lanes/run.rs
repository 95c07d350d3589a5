//! `fledge lanes run`: runs one lane, in place or in a clean room.

use super::super::clean_gate::{CleanGate, lost};
use super::super::failure::CliError;
use super::super::options::{glob, wall_choice};
use super::super::runtime::block_on;
use super::super::signals;
use super::output::{LaneOutput, LaneOutputArguments};
use super::refusal::Refused;
use super::surroundings::Surroundings;
use super::{against, failed, plan, say, watch};
use crate::config::EnvironmentLayer;
use crate::driver::{RunError, StopToken};
use crate::gate::{self, EnteredRoom, last_clean};
use crate::lane::{CanaryTerms, Lane, RoomKind, StartFacts, StepSelection};
use crate::lane_files::{self, LoadedLane};
use crate::lane_runner::{LaneOutcome, LaneRoom, LaneRuling, recall, remember, run_lane};
use crate::process::cores;
use crate::process::sandbox::SandboxChoice;
use crate::report::lane_data;
use crate::store::{self, LaneDir};
use crate::tool::SecretMask;
use crate::verdict::{Reason, StopCause};
use crate::workspace::changed_paths;
use crate::yaml::listed;
use anyhow::{Context, anyhow};
use clap::Args;
use std::cell::Cell;
use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  fledge lanes run verify\n  fledge lanes run verify --only test --watch\n  fledge lanes run verify --clean --junit results.xml\n  fledge lanes run verify --clean --base origin/main"
)]
pub(in crate::cli) struct RunLaneArguments {
    /// Name of the lane
    pub(super) name: String,
    /// Start with this step
    #[arg(long, value_name = "STEP", conflicts_with = "only")]
    from: Option<String>,
    /// Run only this step
    #[arg(long, value_name = "STEP")]
    only: Option<String>,
    /// Run all steps, even after a failure
    #[arg(long)]
    keep_going: bool,
    /// Run at most N steps in parallel [default: `jobs` of the lane, else number of cores]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = how_many)]
    jobs: Option<NonZeroUsize>,
    /// Run again whenever files change
    ///
    /// A change during a run starts one more run at its end. Ignored files do not count.
    #[arg(long, conflicts_with = "dry_run")]
    watch: bool,
    /// Run as a gate would: the current tree in a clean room
    ///
    /// With sandbox, setup, caches and canary.
    #[arg(long)]
    clean: bool,
    /// Judge the current tree as work on a commit
    ///
    /// Lanes, configuration, protected paths and tests are those of the commit. The exit codes are
    /// those of `fledge run`: 0 for a pass, 1 for a failure, 5 if the gate could not run, 6 if the
    /// gate was tampered with.
    #[arg(
        long,
        value_name = "REF",
        requires = "clean",
        conflicts_with_all = ["from", "only", "keep_going", "jobs", "dry_run"]
    )]
    base: Option<String>,
    /// Allow changes to a protected path, as a glob; repeatable
    #[arg(long, value_name = "GLOB", value_parser = glob, requires = "base")]
    pub(super) allow_edit: Vec<String>,
    /// Sandbox of the clean room: auto, required or off
    ///
    /// auto: the best sandbox that works here; without one, fledge refuses to run.
    ///
    /// required: bubblewrap.
    ///
    /// off: no sandbox.
    ///
    /// Default: `sandbox` of the configuration, else auto.
    #[arg(long, value_name = "CHOICE", value_parser = wall_choice, requires = "clean")]
    pub(super) sandbox: Option<SandboxChoice>,
    /// Print what would run, and run nothing
    #[arg(long, conflicts_with_all = ["junit", "summary", "sarif", "code_quality", "output"])]
    dry_run: bool,
    #[command(flatten)]
    pub(super) voice: LaneOutputArguments,
}

impl RunLaneArguments {
    /// Returns true if all steps are requested.
    fn is_whole(&self) -> bool {
        self.from.is_none() && self.only.is_none()
    }
}

fn how_many(number: &str) -> Result<NonZeroUsize, &'static str> {
    number.parse().map_err(|_| "expected a whole number of at least 1; omit the flag for one step per core")
}

/// Runs the lane; returns the exit code.
pub(super) fn run(
    root: &Path,
    arguments: &RunLaneArguments,
    environment: &EnvironmentLayer,
    path: &str,
) -> Result<u8, CliError> {
    block_on(async {
        let stop = StopToken::default();
        let listening = signals::listen(stop.clone()).context("cannot listen for signals").map_err(CliError::own)?;
        let code = if arguments.watch {
            let state = environment.state_dir().into_iter().collect(); // each run reports a missing one
            let once = async |stop: &StopToken| once(LaneRequest { root, arguments, environment, path, stop }).await;
            let apart = [state, arguments.voice.files(environment)].concat();
            watch::watch(root, apart, &stop, once).await
        } else {
            once(LaneRequest { root, arguments, environment, path, stop: &stop }).await
        };
        drop(listening);
        code
    })?
}

/// The request and its context.
#[derive(Clone, Copy)]
pub(super) struct LaneRequest<'a> {
    pub(super) root: &'a Path,
    pub(super) arguments: &'a RunLaneArguments,
    pub(super) environment: &'a EnvironmentLayer,
    /// The search path of the steps.
    path: &'a str,
    pub(super) stop: &'a StopToken,
}

/// Reads the current lane and runs it once; returns the exit code. Reports the end in every
/// requested form, even after an error.
async fn once(ask: LaneRequest<'_>) -> Result<u8, CliError> {
    let LaneRequest { root, arguments, environment, stop, .. } = ask;
    let was_told = Cell::new(false);
    let done = match &arguments.base {
        Some(base) => against::judge(ask, base, &was_told).await,
        None => attempt(ask, &was_told).await,
    };
    if let (Err(failure), false) = (&done, was_told.get()) {
        let refused = Refused { lane: &arguments.name, root, voice: &arguments.voice, is_dry: arguments.dry_run };
        refused.report(failure, environment, stop).await;
    }
    done
}

/// Runs the lane once. Sets `was_told` when the end is reported.
async fn attempt(ask: LaneRequest<'_>, was_told: &Cell<bool>) -> Result<u8, CliError> {
    let LaneRequest { root, arguments, environment, path, stop } = ask;
    arguments.voice.places(environment)?;
    let LoadedLane { mut lane, notes, .. } = lane_files::load(root, &arguments.name, path).map_err(failed)?;
    say(&notes);
    let whole = lane.clone();
    lane.fail_fast &= !arguments.keep_going;
    lane.jobs = arguments.jobs.or(lane.jobs);
    let left_out = left_out(ask, &lane).await?;
    let from = arguments.from.as_deref().and_then(|from| lane.entry(from));
    if arguments.dry_run {
        was_told.set(true);
        let room = if arguments.clean { Some(Surroundings::look(root, &lane, environment, stop).await) } else { None };
        return plan::print(&lane, &left_out, from, room.as_ref(), arguments.voice.json.is_some());
    }
    let runs: Vec<bool> = left_out.iter().map(Option::is_none).collect();
    lane_files::can_run(root, &lane, path, &runs).map_err(failed)?;
    let project = store::project_dir(&state_dir(ask)?, root);
    let logs = LaneDir::create(&project, &uuid::Uuid::now_v7().to_string()).map_err(CliError::own)?;
    let court = match arguments.clean {
        true => Some(CleanGate::open(root, &lane.name, arguments.sandbox, environment, (&project, &logs), stop).await?),
        false => None,
    };
    let entered = enter(ask, &lane, court.as_ref()).await?;
    let voice = LaneOutput::new(&lane, &arguments.voice, root, environment)?;
    let in_place =
        || LaneRoom::new(root.to_owned(), environment.own_env().into_iter().collect(), logs.path().to_owned(), cores());
    let room = LaneRoom {
        left_out,
        listen: voice.listens(),
        pace: voice.pace(),
        expected: recall(&lane, &project),
        ..entered.as_ref().map_or_else(in_place, EnteredRoom::room)
    };
    let show_step = |progress| voice.show_step(progress);
    let outcome = tokio::select! {
        outcome = run_lane(&lane, &room, stop.token(), &show_step) => outcome,
        never = voice.tick(stop) => match never {},
    };
    gate::mask_logs(logs.path(), &SecretMask::of(environment.secrets())).await;
    let doubts = match entered {
        Some(entered) => entered.leave(&outcome, ask.arguments.is_whole(), stop.token()).await.map_err(lost(stop)),
        None => Ok(Vec::new()),
    };
    let doubts = match doubts {
        Ok(doubts) => doubts,
        Err(failure) => {
            voice.break_off(stop).await;
            return Err(failure);
        }
    };
    let differences = differences(ask, &lane, court.as_ref(), (&outcome, &doubts)).await;
    let (word, data_word, code) = ruled(&outcome, &doubts, stop.cause());
    let data = || {
        let mut data = lane_data::ended(&lane, &outcome, data_word, code, from);
        if let Some(court) = &court {
            data["room"] = court.data(&doubts, &differences);
        }
        data
    };
    was_told.set(true);
    let code = voice.close(&outcome, (word, &why(&outcome, &doubts)), code, data, stop).await;
    say(&differences);
    if arguments.is_whole() && outcome.ruling != LaneRuling::Cancelled {
        let reasons = [doubts, differences].concat();
        tell_apart(&whole, &project, court.is_some(), matches!(code, Ok(0)), (&reasons, &outcome));
    }
    remember(&lane, &outcome, &project); // last, because nothing waits for it
    code
}

/// Prepares the clean room, if one is requested.
async fn enter<'c>(
    ask: LaneRequest<'_>,
    lane: &Lane,
    court: Option<&'c CleanGate>,
) -> Result<Option<EnteredRoom<'c>>, CliError> {
    let Some(court) = court else { return Ok(None) };
    say(&court.notes(lane));
    let entered = court.gate.enter(judged(lane, ask.arguments), &court.site, ask.stop.token()).await;
    entered.map(Some).map_err(lost(ask.stop))
}

/// Stores the reasons why a lane failed in a clean room. If the lane passes by hand, prints the
/// stored reasons.
fn tell_apart(
    lane: &Lane,
    project: &Path,
    is_clean: bool,
    has_passed: bool,
    (reasons, outcome): (&[String], &LaneOutcome),
) {
    if is_clean {
        if let Err(error) = last_clean::keep(project, lane, has_passed, reasons, &outcome.steps) {
            tracing::debug!(%error, "cannot keep how the lane ended in a clean room");
        }
        return;
    }
    let reasons = if has_passed { last_clean::recall(project, lane) } else { Vec::new() };
    let told = |reason: &String| format!("the last run in a clean room (--clean) failed: {reason}");
    say(&reasons.iter().map(told).collect::<Vec<_>>());
}

/// Prints why a gate would not accept a pass. Returns the reasons why failed steps may pass by
/// hand.
async fn differences(
    ask: LaneRequest<'_>,
    lane: &Lane,
    court: Option<&CleanGate>,
    (outcome, doubts): (&LaneOutcome, &[String]),
) -> Vec<String> {
    say(doubts);
    let Some(court) = court.filter(|_| outcome.ruling != LaneRuling::Passed) else { return Vec::new() };
    let ignored = court.ignored(ask.environment, ask.stop).await;
    let removed: Vec<&str> = ask.environment.kept_from_steps().collect();
    gate::differences(lane, &outcome.steps, &court.site, &ignored, &removed)
}

/// Returns the state folder. It may be inside the project only for a lane that runs in place. In a
/// clean room, the tree would change with each run.
pub(super) fn state_dir(ask: LaneRequest<'_>) -> Result<PathBuf, CliError> {
    let state = ask.environment.state_dir().map_err(CliError::input)?;
    if store::is_inside(&state, ask.root) {
        let hint = "set FLEDGE_STATE_DIR to a folder outside the project";
        if ask.arguments.clean {
            return Err(CliError::because(Reason::BadInput, RunError::StateInside(state)).hint(hint));
        }
        say([&format!(
            "the state folder `{}` is inside the project, and so are the logs of its steps ({hint})",
            state.display()
        )]);
    }
    Ok(state)
}

/// Returns the lane for its room. A selection of steps has no canary, because the canary may need
/// the steps left out.
fn judged(lane: &Lane, arguments: &RunLaneArguments) -> Lane {
    let canary = if arguments.is_whole() { lane.canary.clone() } else { CanaryTerms::None };
    Lane { room: RoomKind::Clean, canary, ..lane.clone() }
}

/// Returns the reason why a step is left out, by the step's index.
async fn left_out(ask: LaneRequest<'_>, lane: &Lane) -> Result<Vec<Option<String>>, CliError> {
    let LaneRequest { root, arguments, environment, stop, .. } = ask;
    let selection = match (&arguments.from, &arguments.only) {
        (Some(step), _) => StepSelection::From(step.clone()),
        (None, Some(step)) => StepSelection::Only(step.clone()),
        (None, None) => StepSelection::All,
    };
    let asks = !arguments.clean && lane.steps.iter().any(|step| !step.changed.is_empty());
    let changed = if asks { changed_paths(root, &hand_env(environment), stop.token()).await } else { None };
    let state = environment.state_dir().ok().and_then(|state| state.canonicalize().ok());
    let own = state.as_deref().and_then(|state| state.strip_prefix(root).ok());
    let changed = changed.map(|mut paths| {
        paths.retain(|path| own.is_none_or(|own| !Path::new(path).starts_with(own)));
        paths
    });
    // A clean checkout says nothing about changes, so the lane runs completely.
    let changed = changed.filter(|paths| !paths.is_empty());
    let variables = if arguments.clean { environment.step_env() } else { environment.own_env() };
    let facts = StartFacts { variables, changed };
    lane.left_out(&selection, &facts).map_err(|error| CliError::input(anyhow!(error)))
}

fn hand_env(environment: &EnvironmentLayer) -> Vec<(String, String)> {
    environment.hand_env().into_iter().collect()
}

/// Returns the word for people, the word in JSON, and the exit code.
fn ruled(outcome: &LaneOutcome, doubts: &[String], cause: StopCause) -> (&'static str, &'static str, u8) {
    if !doubts.is_empty() {
        return ("passed its steps but would fail as a gate", "failed", 1);
    }
    match outcome.ruling {
        LaneRuling::Passed => ("passed", "passed", 0),
        LaneRuling::Failed => ("failed", "failed", 1),
        LaneRuling::NothingRan if outcome.steps.iter().any(|step| step.tries > 0) => {
            ("ran no step that must pass", "nothing_ran", 1)
        }
        LaneRuling::NothingRan => ("ran nothing", "nothing_ran", 1),
        LaneRuling::Errored => ("could not run", "could_not_run", Reason::GateErrored.row().exit_code),
        LaneRuling::Cancelled => ("cancelled", "cancelled", Reason::Cancelled.exit_code(Some(cause))),
    }
}

/// Returns the reason if no step gives one: the gate's doubts, or why nothing ran.
fn why(outcome: &LaneOutcome, doubts: &[String]) -> String {
    let skipped = outcome.steps.iter().filter(|step| !step.note.is_empty());
    let notes: BTreeSet<&str> = skipped.map(|step| step.note.as_str()).collect();
    match (doubts, outcome.ruling) {
        ([_, ..], _) => doubts.join("; "),
        ([], LaneRuling::NothingRan) => listed(notes),
        ([], LaneRuling::Passed | LaneRuling::Failed | LaneRuling::Errored | LaneRuling::Cancelled) => String::new(),
    }
}
