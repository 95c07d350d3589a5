//! The start of a run of one task, or its resumption, and its plan without a run.

use super::configured;
use super::connect::{RequestedModels, check_models, connect_models};
use super::drive::{AgentWork, OutputOptions, driven, must_begin, must_reach_server};
use super::failure::CliError;
use super::options::RunOptions;
use super::output::{no_output, print_data, print_json};
use super::paint::{self, Tone};
use super::record;
use super::results::ResultFiles;
use super::resume::{RunsOfKey, interrupted, keyed, resume};
use super::runtime::block_on;
use super::tasks::task_folder;
use crate::chat::money;
use crate::config::{ConfigError, EnvironmentLayer};
use crate::driver::{
    Agent, Briefing, DriverSettings, RunError, RunTerms, StartingPoint, StopToken, base_at, is_for_now, lanes_at,
    must_be_committed, prepare, terms, unmatched,
};
use crate::id::RunId;
use crate::limits::Limits;
use crate::provider::Pacer;
use crate::report::{count, seconds};
use crate::setup::{ProjectContext, mask_task};
use crate::store::{self, RunRow, Store, StoredRunState};
use crate::task::{Task, TaskDefaults};
use crate::tool::LateSecrets;
use crate::workspace::{AtomicOutput, listed_paths};
use anyhow::{Context, anyhow};
use std::path::Path;
use tokio_util::sync::CancellationToken;

/// Runs an agent on a task; returns the exit code.
///
/// # Errors
/// Every failure before the run began.
pub(super) fn run_task(
    options: &RunOptions,
    task: impl FnOnce(&TaskDefaults) -> Result<Task, CliError>,
    environment: &EnvironmentLayer,
) -> Result<u8, CliError> {
    let workspace = options.workspace(environment);
    let root = &options.root(environment);
    let results = options.results.places(root, environment);
    let sound = results.as_ref().ok().cloned().unwrap_or_else(|| options.results.sound_places(root, environment));
    let sound = sound.with(options.beside(root));
    let done = workspace.and_then(|workspace| begin_in(&workspace, options, task, results, environment));
    if let (Err(failure), false) = (&done, options.dry_run)
        && let Err(unwritten) = sound.write_unbegun(failure)
    {
        unwritten.show(); // the exit code stays that of the first failure
    }
    done
}

/// Runs the agent in this workspace, with the places of its results.
fn begin_in(
    workspace: &Path,
    options: &RunOptions,
    task: impl FnOnce(&TaskDefaults) -> Result<Task, CliError>,
    results: Result<ResultFiles, CliError>,
    environment: &EnvironmentLayer,
) -> Result<u8, CliError> {
    let set = configured::load(environment, workspace).map_err(CliError::input)?;
    let task = mask_task(task(&set.defaults).and_then(|task| options.say(task))?, &set, environment);
    let none = LateSecrets::default();
    let state_dir = environment.state_dir().map_err(CliError::input)?;
    let place = ProjectContext { workspace, state_dir: &state_dir, set: &set };
    if options.dry_run {
        let settings = options.settings(environment, &place, &none);
        let notes = must_be_startable(options, &task, environment, &place, &settings, results?)?;
        return dry_run(options, &task, settings, notes);
    }
    let settings = |task: &Task| {
        let asked = RequestedModels { names: &task.models, tier: task.tier, folder: &task_folder(&task.source) };
        match connect_models(&asked, &set, environment, &Pacer::default()) {
            Ok((models, keys)) => Ok(DriverSettings { models, ..options.settings(environment, &place, &keys) }),
            Err(failure) if task.is_fix => Ok(DriverSettings {
                no_models: Some(failure.message()),
                ..options.settings(environment, &place, &none)
            }),
            Err(failure) => Err(at_model(failure, task, place)),
        }
    };
    start_or_resume(options, environment, task, settings, place, results?)
}

/// Adds the place of an unknown model in the task's file, or in the configuration.
fn at_model(failure: CliError, task: &Task, place: ProjectContext<'_>) -> CliError {
    let Some(ConfigError::UnknownModel { name, .. }) = failure.cause() else { return failure };
    let name = name.clone();
    if task.models.is_empty() {
        return failure.at_default_model(place.set, place.workspace);
    }
    failure.at_value(&task.source, "model", &name)
}

/// Makes the checks that a run makes before it begins, for a dry run. Starts no program but git.
/// Returns notes about missing keys: a dry run needs none.
fn must_be_startable(
    options: &RunOptions,
    task: &Task,
    environment: &EnvironmentLayer,
    place: &ProjectContext<'_>,
    settings: &DriverSettings,
    results: ResultFiles,
) -> Result<Vec<String>, CliError> {
    let voice = OutputOptions::new(options.voice, place.set, environment);
    let voice = voice.telling(&options.server, place.set, environment).with(results);
    options.record(place.workspace)?;
    if store::is_inside(place.state_dir, place.workspace) {
        let error = RunError::StateInside(place.state_dir.to_owned());
        let hint = "fledge keeps journals and reports in FLEDGE_STATE_DIR, else in ~/.local/state/fledge";
        return Err(CliError::because(error.reason(), error).hint(hint));
    }
    if let Some(name) = options.run_key.as_ref().filter(|_| !options.resume_or_start) {
        let store = place.store().map_err(CliError::own)?;
        let newest = keyed(&store, name).map_err(CliError::own)?.newest;
        newest.filter(|row| must_count(row, false)).map_or(Ok(()), |row| Err(key_taken(name, &row.head.id)))?;
    }
    let asked = RequestedModels { names: &task.models, tier: task.tier, folder: &task_folder(&task.source) };
    let notes = match check_models(&asked, place.set, environment) {
        Err(_) if task.is_fix => Vec::new(), // a gate that passes needs no model
        checked => checked.map_err(|failure| at_model(failure, task, *place))?,
    };
    must_reach_server(&voice, settings)?;
    block_on(must_begin(&Agent::new(settings.clone()), task, &StopToken::default()))??;
    Ok(notes)
}

fn key_taken(key: &str, run: &RunId) -> CliError {
    let error = anyhow!("the run key `{key}` belongs to run {run}");
    CliError::input(error).hint("continue that run with --resume-or-start, or use another key")
}

/// Resumes the run that these arguments mean, or starts one.
fn start_or_resume(
    options: &RunOptions,
    environment: &EnvironmentLayer,
    task: Task,
    settings: impl FnOnce(&Task) -> Result<DriverSettings, CliError>,
    place: ProjectContext<'_>,
    results: ResultFiles,
) -> Result<u8, CliError> {
    let voice =
        OutputOptions::new(options.voice, place.set, environment).telling(&options.server, place.set, environment);
    let voice = voice.with(results);
    let tape = options.record(place.workspace)?;
    let taped = |run: &RunId| {
        tape.as_ref().map_or(Ok(()), |tape| record::write(tape, &place.store().map_err(CliError::own)?, run))
    };
    let mut key = options.run_key.clone();
    if options.resume_or_start || key.is_some() {
        let store = place.store().map_err(CliError::own)?;
        let digest = store::sha256(task.prompt.as_bytes());
        let today = options.settings(environment, &place, &LateSecrets::default());
        let same = |store: &Store, row: &RunRow| {
            terms(store, &row.head.id).is_ok_and(|(_, then)| is_asked_again(&task, &today, &then))
        };
        let found = match &key {
            Some(name) => keyed(&store, name).map_err(CliError::own)?,
            None => {
                RunsOfKey { newest: interrupted(&store, &digest, same).map_err(CliError::own)?, free: String::new() }
            }
        };
        if let Some(row) = found.newest.filter(|row| must_count(row, options.resume_or_start)) {
            let run = &row.head.id;
            if !options.resume_or_start {
                return Err(key_taken(&key.unwrap_or_default(), run));
            }
            if !same(&store, &row) {
                let error = anyhow!("run {run} was started with another task, gate or options");
                let hint = "to continue with the original task, or use another run key";
                let hint = format!("run `fledge runs resume {run}` {hint}");
                return Err(CliError::input(error).hint(hint));
            }
            let resumed = resume(
                AgentWork::ResumeOrEnd(run.clone()),
                run,
                &options.reports(),
                environment,
                &place,
                voice.clone(),
            );
            let Some(lost) = resumed.as_ref().err().and_then(lost_gate) else {
                let code = resumed?;
                return taped(run).map(|()| code);
            };
            paint::line(&[
                (Tone::Warn, "! "),
                (Tone::Plain, &format!("{lost}: ending that run and starting a new run")),
            ]);
        }
        key = key.map(|_| found.free);
    }
    let (code, run) = block_on(driven(AgentWork::Task(Box::new(task.clone()), key), settings(&task)?, voice))??;
    taped(&run).map(|()| code)
}

/// Returns true if today's request is the same as that of an earlier run. An earlier result only
/// counts for the same task, gate and sandbox, and a patch only if that run wrote it there.
fn is_asked_again(task: &Task, today: &DriverSettings, then: &RunTerms) -> bool {
    let is_task = Task { source: then.task.source.clone(), ..task.clone() } == then.task;
    let is_gate =
        (&today.protect, &today.holdout, &today.lanes_from) == (&then.protect, &then.holdout, &then.lanes_from);
    let is_wall = (today.sandbox, today.network) == (then.sandbox, then.network);
    // The earlier run resolved its path through links and `..`.
    let leads = |path: &Path| AtomicOutput::find(path, &today.workspace).ok().map(|output| output.path().to_owned());
    let is_patch = today.patch.as_deref().is_none_or(|path| then.patch.is_some() && leads(path) == then.patch);
    is_task && is_gate && is_wall && is_patch
}

/// Returns the error of a run that could only be ended because the copy of its gate is lost.
fn lost_gate(failure: &CliError) -> Option<&RunError> {
    failure.cause().filter(|error| matches!(error, RunError::GateLost { .. }))
}

/// Returns true if a run still owns its key. An ended run without verification does not, unless it
/// ended only for now and the caller would resume it.
fn must_count(row: &RunRow, goes_on: bool) -> bool {
    (goes_on && is_for_now(&row.state)) || !matches!(&row.state, StoredRunState::Ended(outcome) if !outcome.verified)
}

/// Prints the plan: the prompts, the tools, the lanes and the limits. Calls nothing.
fn dry_run(options: &RunOptions, task: &Task, settings: DriverSettings, more: Vec<String>) -> Result<u8, CliError> {
    let scratch = tempfile::tempdir().context("cannot create a folder").map_err(CliError::own)?;
    let refused = |fault| CliError::unplanned(fault, task);
    block_on(must_be_committed(task, &settings, scratch.path()))?.map_err(refused)?;
    let at = block_on(lanes_at(&settings, scratch.path()))?.map_err(refused)?;
    let (seen, notes) = block_on(base_at(task, &settings, scratch.path()))?.map_err(refused)?.unzip();
    let seen = seen.as_ref().unwrap_or(&settings);
    let mut briefing = prepare(task, seen, &StartingPoint::unread(&seen.workspace), at.as_deref()).map_err(refused)?;
    let paths = block_on(listed_paths(&seen.workspace, &seen.env, &CancellationToken::new()))?;
    let notes = notes.into_iter().flatten().chain(unmatched(task, &paths)).chain(more);
    briefing.plan.notes.extend(notes);
    let defaults = Limits::default();
    let lanes = briefing.gate.lanes.as_slice();
    let plan = serde_json::json!({
        "schema_version": 1,
        "title": task.title,
        "models": task.models,
        "workspace": settings.workspace.display().to_string(),
        "system": briefing.plan.system,
        "messages": briefing.plan.messages,
        "tools": briefing.plan.tools,
        "lanes": lanes,
        "gate_digest": briefing.plan.gate_digest,
        "max_retries": task.max_retries,
        "limits": {
            "turns": task.budget.turns.unwrap_or(defaults.turns),
            "tokens": task.budget.tokens,
            "usd_micros": task.budget.usd_micros,
            "time_ms": task.budget.time_ms.unwrap_or(defaults.time_ms),
        },
        "warnings": briefing.plan.notes,
    });
    if options.voice.json {
        print_json(&plan.to_string()).map_err(no_output)?;
    } else {
        print_data(paint::harmless(&page(task, &briefing)).trim_end()).map_err(no_output)?;
    }
    Ok(0)
}

/// Returns the plan of a dry run as text.
fn page(task: &Task, briefing: &Briefing) -> String {
    let mut text = format!("# {}\n\n## System prompt\n\n{}\n", task.title, briefing.plan.system);
    for message in &briefing.plan.messages {
        text.push_str(&format!("\n## First message\n\n{}\n", crate::chat::text_of(&message.content)));
    }
    text.push_str("\n## Tools\n\n");
    for tool in briefing.plan.tools.iter() {
        text.push_str(&format!("- {}: {}\n", tool.name, tool.description));
    }
    text.push_str("\n## Gate\n\n");
    for lane in &briefing.gate.lanes {
        for step in &lane.steps {
            text.push_str(&format!("- {}/{}: {}\n", lane.name, step.name, step.run));
        }
    }
    text.push_str("\n## Limits\n\n");
    let (budget, defaults) = (&task.budget, Limits::default());
    for (name, limit) in [
        ("retries", count(task.max_retries.into())),
        ("turns", count(budget.turns.unwrap_or(defaults.turns))),
        ("tokens", budget.tokens.map_or("unlimited".into(), count)),
        ("usd", budget.usd_micros.map_or("unlimited".into(), money)),
        ("time", seconds(budget.time_ms.unwrap_or(defaults.time_ms))),
    ] {
        text.push_str(&format!("- {name}: {limit}\n"));
    }
    for note in &briefing.plan.notes {
        text.push_str(&format!("\nwarning: {note}\n"));
    }
    text
}
