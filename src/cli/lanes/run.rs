//! `fledge lanes run`: one lane, in place or in the room that it has as a gate.

use super::super::failure::Failure;
use super::super::options::wall_choice;
use super::super::{block_on, no_output, print_data, print_json, signals};
use super::clean::{Court, lost};
use super::voice::{Voice, VoiceArguments};
use super::{failed, plan, say, watch};
use crate::config::Environment;
use crate::driver::Stop;
use crate::gate::{self, Entered, Loaded};
use crate::lane::{Facts, Lane, RoomKind, Selection};
use crate::lane_runner::{LaneRuling, Room, recall, remember, run_lane};
use crate::process::wall::WallChoice;
use crate::report::lane_data;
use crate::store::{self, LaneDir};
use crate::tool::Mask;
use crate::verdict::Reason;
use crate::workspace::changed_paths;
use anyhow::{Context, anyhow};
use clap::Args;
use std::num::NonZeroUsize;
use std::path::Path;

/// Arguments of `fledge lanes run`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  fledge lanes run verify\n  fledge lanes run verify --only test --watch\n  fledge lanes run verify --clean --junit results.xml"
)]
pub(in crate::cli) struct RunArguments {
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
    #[arg(long, value_name = "N", value_parser = how_many)]
    jobs: Option<NonZeroUsize>,
    /// Run it again whenever files change that no ignore file names; a change while it runs starts it over
    #[arg(long, conflicts_with = "dry_run")]
    watch: bool,
    /// Run it as a gate would: the tree as it stands, in a fresh room behind the sandbox, with setup, caches and canary
    #[arg(long)]
    clean: bool,
    /// What stands around the room: auto (the best there is, or a refusal), required (bubblewrap), off
    #[arg(long, value_name = "CHOICE", value_parser = wall_choice, requires = "clean")]
    sandbox: Option<WallChoice>,
    /// Say what would run, and run nothing
    #[arg(long, conflicts_with_all = ["junit", "summary", "sarif", "code_quality", "output"])]
    dry_run: bool,
    #[command(flatten)]
    voice: VoiceArguments,
}

fn how_many(number: &str) -> Result<NonZeroUsize, &'static str> {
    number.parse().map_err(|_| "give a number from 1 on, or leave it out for as many as there are cores")
}

/// Runs the lane; gives the exit code.
pub(super) fn run(root: &Path, arguments: &RunArguments, environment: &Environment, path: &str) -> Result<u8, Failure> {
    block_on(async {
        let stop = Stop::default();
        let listening = signals::listen(stop.clone()).context("cannot listen for signals").map_err(Failure::own)?;
        let code = if arguments.watch {
            let state = environment.state_dir().map_err(Failure::input)?;
            let once = async |stop: &Stop| once(root, arguments, environment, path, stop).await;
            let apart = [vec![state], arguments.voice.files(environment, root)].concat();
            watch::watch(root, apart, &stop, once).await
        } else {
            once(root, arguments, environment, path, &stop).await
        };
        drop(listening);
        code
    })?
}

/// Reads the lane as it is now, and runs it once; gives the exit code.
async fn once(
    root: &Path,
    arguments: &RunArguments,
    environment: &Environment,
    path: &str,
    stop: &Stop,
) -> Result<u8, Failure> {
    let Loaded { mut lane, notes } = gate::load(root, &arguments.name, path).map_err(failed)?;
    say(&notes);
    lane.fail_fast &= !arguments.keep_going;
    lane.jobs = arguments.jobs.or(lane.jobs);
    let left_out = left_out(root, &lane, arguments, environment, stop).await?;
    let from = arguments.from.as_deref().and_then(|from| lane.entry(from));
    if arguments.dry_run {
        let printed = if arguments.voice.json.is_some() {
            print_json(&lane_data::planned(&lane, &left_out, from).to_string())
        } else {
            print_data(plan::text(&lane, &left_out).trim_end())
        };
        printed.map_err(no_output)?;
        return Ok(0);
    }
    let runs: Vec<bool> = left_out.iter().map(Option::is_none).collect();
    gate::can_run(root, &lane, path, &runs).map_err(failed)?;
    arguments.voice.places(environment)?;
    let project = store::project_dir(&environment.state_dir().map_err(Failure::input)?, root);
    let logs = LaneDir::create(&project, &uuid::Uuid::now_v7().to_string()).map_err(Failure::own)?;
    let court = match arguments.clean {
        true => Some(Court::open(root, &lane.name, arguments.sandbox, environment, (&project, &logs), stop).await?),
        false => None,
    };
    let entered = match &court {
        Some(court) => {
            say(&court.notes(&lane));
            Some(court.gate.enter(judged(&lane, arguments), &court.site, stop.token()).await.map_err(lost(stop))?)
        }
        None => None,
    };
    let voice = Voice::new(&lane, &arguments.voice, environment)?;
    let in_place = || Room::new(root.to_owned(), child_env(environment), logs.path().to_owned(), jobs());
    let room = Room {
        left_out,
        listen: voice.listens(),
        pace: voice.pace(),
        expected: recall(&lane, &project),
        ..entered.as_ref().map_or_else(in_place, Entered::room)
    };
    let hear = |progress| voice.hear(progress);
    let outcome = tokio::select! {
        outcome = run_lane(&lane, &room, stop.token(), &hear) => outcome,
        never = voice.tick(stop) => match never {},
    };
    gate::mask_logs(logs.path(), &Mask::of(environment.secrets())).await;
    let (mut word, mut data_word, mut code) = ruling(outcome.ruling, stop.cause());
    let doubts = match entered {
        Some(entered) => entered.leave(&outcome, stop.token()).await.map_err(lost(stop))?,
        None => Vec::new(),
    };
    if !doubts.is_empty() {
        say(&doubts);
        (word, data_word, code) = ("passed its steps, and as a gate it would fail", "failed", 1);
    }
    if outcome.ruling == LaneRuling::NothingRan && outcome.steps.iter().any(|step| step.tries > 0) {
        word = "ran nothing that has to pass";
    }
    let data = || {
        let mut data = lane_data::ended(&lane, &outcome, data_word, code, from);
        if let Some(court) = &court {
            data["room"] = court.data(&doubts);
        }
        data
    };
    let code = voice.close(&outcome, word, code, data, stop).await;
    remember(&lane, &outcome, &project); // nobody waits for it
    code
}

/// The lane as its room knows it. What is left out may be what its canary is for.
fn judged(lane: &Lane, arguments: &RunArguments) -> Lane {
    let is_whole = arguments.from.is_none() && arguments.only.is_none();
    Lane { room: RoomKind::Clean, canary: lane.canary.clone().filter(|_| is_whole), ..lane.clone() }
}

/// Why steps of the lane are left out, by their number.
async fn left_out(
    root: &Path,
    lane: &Lane,
    arguments: &RunArguments,
    environment: &Environment,
    stop: &Stop,
) -> Result<Vec<Option<String>>, Failure> {
    let selection = match (&arguments.from, &arguments.only) {
        (Some(step), _) => Selection::From(step.clone()),
        (None, Some(step)) => Selection::Only(step.clone()),
        (None, None) => Selection::All,
    };
    let asks = !arguments.clean && lane.steps.iter().any(|step| !step.changed.is_empty());
    let changed = if asks { changed_paths(root, &child_env(environment), stop.token()).await } else { None };
    // Where all is committed nothing is known of what to leave out: a clean checkout is judged whole.
    let changed = changed.filter(|paths| !paths.is_empty());
    let variables = if arguments.clean { environment.child_env() } else { environment.hand_env() };
    let facts = Facts { variables, changed };
    lane.left_out(&selection, &facts).map_err(|error| Failure::input(anyhow!(error)))
}

fn jobs() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

fn child_env(environment: &Environment) -> Vec<(String, String)> {
    environment.hand_env().into_iter().collect()
}

/// The word for people, the one for programs, and the exit code.
fn ruling(ruling: LaneRuling, cause: crate::verdict::StopCause) -> (&'static str, &'static str, u8) {
    match ruling {
        LaneRuling::Passed => ("passed", "passed", 0),
        LaneRuling::Failed => ("failed", "failed", 1),
        LaneRuling::NothingRan => ("ran nothing", "nothing_ran", 1),
        LaneRuling::Errored => ("could not run", "could_not_run", Reason::GateErrored.row().exit_code),
        LaneRuling::Cancelled => ("cancelled", "cancelled", Reason::Cancelled.exit_code(Some(cause))),
    }
}
