//! `fledge run`: a task in; an exit code, a report and a story out.

use super::drive::{Voice, VoiceArguments, Work, drive};
use super::failure::Failure;
use super::memory::{memory_terms, secrets};
use super::outlet::has_place;
use super::paint::{self, Tone};
use super::runs::{Found, Place, interrupted, keyed, resume};
use super::{block_on, no_output, print_data, print_json};
use crate::config::{self, Environment, ModelChoice, ProviderKind, auto_model, resolve_model};
use crate::driver::{PlanFault, RunError, Settings, prepare, terms};
use crate::id::TreeId;
use crate::limits::{Limits, MAX_SOURCE};
use crate::process::wall::WallChoice;
use crate::provider::{self, Endpoint, Kind, Provider, Secret};
use crate::store::{self, RunRow, RunState, Store};
use crate::task::{self, Commit, GateChoice, ParamValues, Task};
use anyhow::{Context, anyhow};
use clap::Args;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Arguments of `fledge run`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  fledge run task.md\n  fledge run task.md --model anthropic/claude-sonnet-4-5 --report report.json\n  \
    echo 'Fix the failing test' | fledge run - --lane test\n  fledge run task.md --param issue=12 --dry-run"
)]
pub(super) struct RunArguments {
    /// The task: a Markdown file, or `-` for standard input
    task: String,
    /// The model: provider/name, or a name from fledge.yaml; again for a fallback
    #[arg(long, value_name = "MODEL")]
    model: Vec<String>,
    /// The lane that is the gate; again for several
    #[arg(long, value_name = "NAME", conflicts_with = "no_verify")]
    lane: Vec<String>,
    /// Run no gate: the result is `skipped`, not verified by anything
    #[arg(long)]
    no_verify: bool,
    /// Further attempts when the gate fails
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=100))]
    max_retries: Option<u32>,
    /// A value for a parameter of the task
    #[arg(long, value_name = "NAME=VALUE")]
    param: Vec<String>,
    /// A YAML file with values for parameters; --param wins
    #[arg(long, value_name = "FILE")]
    params: Option<PathBuf>,
    /// Write the report to this file too
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Write a patch of verified work to this file, for `git am`
    #[arg(long, value_name = "FILE")]
    patch: Option<PathBuf>,
    /// What becomes a commit: on-success (the verified tree), none
    #[arg(long, value_name = "WHEN", value_parser = commit_choice)]
    commit: Option<Commit>,
    /// Let work that was not committed before the run go into its commit
    #[arg(long)]
    allow_dirty: bool,
    /// A folder with lanes that only the gate knows, outside of the workspace
    #[arg(long, value_name = "DIR")]
    holdout: Option<PathBuf>,
    #[command(flatten)]
    voice: VoiceArguments,
    /// What stands around the agent: auto (the best there is, or a refusal), required (bubblewrap), off
    #[arg(long, value_name = "CHOICE", value_parser = wall_choice)]
    sandbox: Option<WallChoice>,
    /// Whether the agent reaches the network: deny or allow
    #[arg(long, value_name = "CHOICE", value_parser = ["deny", "allow"])]
    network: Option<String>,
    /// Recall nothing of earlier runs, and leave nothing for later ones
    #[arg(long)]
    no_memory: bool,
    /// Show what would be sent and run, and call nothing
    #[arg(long)]
    dry_run: bool,
    /// Go on with the newest interrupted run of this task, or of --run-key; start one if there is none
    #[arg(long)]
    resume_or_start: bool,
    /// A name for the run, by which it is found again; a run that ended unverified gives it up to the next
    #[arg(long, value_name = "KEY", value_parser = run_key)]
    run_key: Option<String>,
    /// The folder that the agent works in
    #[arg(long, short = 'C', value_name = "DIR", default_value = ".")]
    workspace: PathBuf,
}

/// Which wall is wanted.
fn wall_choice(name: &str) -> Result<WallChoice, &'static str> {
    WallChoice::parse(name).ok_or("it is one of auto, required, off")
}

/// What is wanted as a commit.
fn commit_choice(word: &str) -> Result<Commit, &'static str> {
    match word {
        "on-success" => Ok(Commit::OnSuccess),
        "none" => Ok(Commit::None),
        _ => Err("it is one of on-success, none"),
    }
}

/// A name that is no other one's by its form.
fn run_key(key: &str) -> Result<String, &'static str> {
    match key {
        "" => Err("it is empty"),
        "last" | "last-failed" => Err("this name means the newest run: use another one"),
        key if key.contains('#') => Err("`#` stands before the number of a later run of a key: leave it out"),
        key => Ok(key.to_owned()),
    }
}

/// Runs the verb; gives the exit code.
///
/// # Errors
/// Whatever was wrong before the run began.
pub(super) fn run(arguments: RunArguments, environment: &Environment) -> Result<u8, Failure> {
    let workspace = arguments.workspace.canonicalize();
    let workspace = workspace
        .with_context(|| format!("there is no folder {}", arguments.workspace.display()))
        .map_err(Failure::input)?;
    // A report that could not be written should be known before the work, not after it.
    arguments.report.as_deref().map_or(Ok(()), |path| has_place("--report", path))?;
    arguments.patch.as_deref().map_or(Ok(()), |path| has_place("--patch", path))?;
    let set = config::load(environment, &workspace).map_err(Failure::input)?;
    let task = read_task(&arguments)?;
    let state_dir = environment.state_dir().map_err(Failure::input)?;
    if arguments.dry_run {
        return dry_run(&arguments, &task, settings(&arguments, environment, &set, workspace, state_dir, Vec::new()));
    }
    let connected = |task: &Task| {
        let models = connect_models(&task.models, &set, environment, task_folder(&arguments.task))?;
        Ok(settings(&arguments, environment, &set, workspace.clone(), state_dir.clone(), models))
    };
    let place = Place { workspace: &workspace, state_dir: &state_dir, set: &set };
    start_or_resume(&arguments, environment, task, connected, place)
}

/// Resumes the run that these arguments mean, or starts one.
fn start_or_resume(
    arguments: &RunArguments,
    environment: &Environment,
    task: Task,
    settings: impl FnOnce(&Task) -> Result<Settings, Failure>,
    place: Place<'_>,
) -> Result<u8, Failure> {
    let voice = Voice::new(arguments.voice, place.set, environment);
    let mut key = arguments.run_key.clone();
    if arguments.resume_or_start || key.is_some() {
        let store = place.store()?;
        let digest = store::sha256(task.prompt.as_bytes());
        // A result counts for what was asked then: the same text under another gate is another task.
        let same = |store: &Store, row: &RunRow| {
            terms(store, &row.head.id).is_ok_and(|(_, then)| {
                Task { source: then.task.source.clone(), ..task.clone() } == then.task
                    && place.set.protect == then.protect
            })
        };
        let found = match &key {
            Some(name) => keyed(&store, name).map_err(Failure::own)?,
            None => Found { newest: interrupted(&store, &digest, same).map_err(Failure::own)?, free: String::new() },
        };
        if let Some(row) = found.newest.filter(must_count) {
            let run = &row.head.id;
            if !arguments.resume_or_start {
                let error = anyhow!("the run key `{}` belongs to run {run}", key.unwrap_or_default());
                return Err(Failure::input(error).hint("go on with that run by --resume-or-start, or use another key"));
            }
            if !same(&store, &row) {
                let error = anyhow!("run {run} was begun with another task, gate or options");
                let hint = "`fledge runs resume` goes on with it as it was begun; else use another run key";
                return Err(Failure::input(error).hint(hint));
            }
            let resumed = resume(Work::ResumeOrEnd, run, &reports(arguments), environment, &place, voice);
            let Some(lost) = resumed.as_ref().err().and_then(lost_gate) else { return resumed };
            paint::line(&[
                (Tone::Warn, "! "),
                (Tone::Plain, &format!("{lost}: that run is ended, and another one begins")),
            ]);
        }
        key = key.map(|_| found.free);
    }
    block_on(drive(Work::Task(Box::new(task.clone()), key), settings(&task)?, voice))?
}

/// That a run could only be ended, since what was kept of its gate is gone.
fn lost_gate(failure: &Failure) -> Option<&RunError> {
    failure.cause().filter(|error| matches!(error, RunError::GateLost { .. }))
}

/// Whether a run stands in the way of another one of its key: one that is over and not verified does not.
fn must_count(row: &RunRow) -> bool {
    !matches!(&row.state, RunState::Ended(outcome) if !outcome.verified)
}

fn read_task(arguments: &RunArguments) -> Result<Task, Failure> {
    let text = read_source(&arguments.task)?;
    let values = values(arguments)?;
    let mut task = task::parse(&text, &arguments.task, &values).map_err(Failure::input)?;
    if !arguments.model.is_empty() {
        task.models.clone_from(&arguments.model);
    }
    if !arguments.lane.is_empty() {
        task.gate = GateChoice::Lanes(arguments.lane.clone());
    }
    if arguments.no_verify {
        task.gate = GateChoice::Skip;
    }
    task.commit = arguments.commit.unwrap_or(task.commit);
    task.allow_dirty = arguments.allow_dirty;
    task.max_retries = arguments.max_retries.unwrap_or(task.max_retries);
    Ok(task)
}

pub(super) fn read_source(source: &str) -> Result<String, Failure> {
    if source != "-" {
        let read = store::read_text(Path::new(source), MAX_SOURCE).map_err(Failure::input)?;
        return read.ok_or_else(|| Failure::input(anyhow!("there is no task file {source}")));
    }
    let mut bytes = Vec::new();
    let read = std::io::stdin().lock().take(MAX_SOURCE as u64 + 1).read_to_end(&mut bytes);
    read.context("cannot read the task from standard input").map_err(Failure::input)?;
    if bytes.len() > MAX_SOURCE {
        return Err(Failure::input(anyhow!("the task on standard input is larger than {MAX_SOURCE} bytes")));
    }
    String::from_utf8(bytes).context("the task on standard input is not UTF-8").map_err(Failure::input)
}

/// Values for parameters: those of the file, then those of the flags.
fn values(arguments: &RunArguments) -> Result<ParamValues, Failure> {
    let mut values = ParamValues::new();
    if let Some(path) = &arguments.params {
        let text = store::read_text(path, MAX_SOURCE).map_err(Failure::input)?;
        let text = text.ok_or_else(|| Failure::input(anyhow!("there is no file {}", path.display())))?;
        values = task::parse_values(&text, &path.display().to_string()).map_err(Failure::input)?;
    }
    for pair in &arguments.param {
        let Some((name, value)) = pair.split_once('=') else {
            return Err(Failure::input(anyhow!("--param {pair}: expected NAME=VALUE")));
        };
        values.insert(name.trim().to_owned(), value.to_owned());
    }
    Ok(values)
}

pub(super) fn task_folder(source: &str) -> PathBuf {
    let parent = Path::new(source).parent().filter(|parent| !parent.as_os_str().is_empty() && source != "-");
    parent.unwrap_or(Path::new(".")).to_owned()
}

/// Connects models by their names; without any, the one that is configured.
pub(super) fn connect_models(
    names: &[String],
    set: &config::Settings,
    environment: &Environment,
    folder: PathBuf,
) -> Result<Vec<Arc<dyn Provider>>, Failure> {
    let choices: Result<Vec<ModelChoice>, _> = if names.is_empty() {
        auto_model(set, environment).map(|choice| vec![choice])
    } else {
        names.iter().map(|name| resolve_model(name, set, environment)).collect()
    };
    choices.map_err(Failure::input)?.into_iter().map(|choice| connect(choice, &folder)).collect()
}

fn connect(choice: ModelChoice, folder: &Path) -> Result<Arc<dyn Provider>, Failure> {
    let kind = match choice.provider {
        ProviderKind::Anthropic => Kind::Anthropic,
        ProviderKind::OpenAi => Kind::OpenAi,
        ProviderKind::Cassette => {
            let path = folder.join(&choice.model);
            let text = store::read_text(&path, MAX_SOURCE).map_err(Failure::input)?;
            Kind::Cassette {
                text: text.ok_or_else(|| Failure::input(anyhow!("there is no cassette {}", path.display())))?,
            }
        }
    };
    let headers = choice.headers.into_iter().map(|(name, value)| (name, Secret::new(value.expose())));
    let endpoint = Endpoint {
        key: choice.key.map(|key| Secret::new(key.expose())),
        base_url: choice.base_url,
        headers: headers.collect(),
        max_output_tokens: choice.max_output_tokens,
        ..Endpoint::new(kind, choice.model)
    };
    provider::connect(endpoint).map_err(Failure::input)
}

fn settings(
    arguments: &RunArguments,
    environment: &Environment,
    set: &config::Settings,
    workspace: PathBuf,
    state_dir: PathBuf,
    models: Vec<Arc<dyn Provider>>,
) -> Settings {
    Settings {
        workspace,
        state_dir,
        models,
        env: environment.child_env().into_iter().collect(),
        protect: set.protect.clone(),
        reports: reports(arguments),
        patch: arguments.patch.as_ref().map(|path| std::path::absolute(path).unwrap_or_else(|_| path.clone())),
        jobs: std::thread::available_parallelism().map_or(1, usize::from),
        earlier: None,
        memory: (!arguments.no_memory).then(|| memory_terms(set)),
        secrets: secrets(environment, set),
        holdout: arguments.holdout.clone(),
        baseline: set.baseline.unwrap_or_default(),
        wall: arguments.sandbox.unwrap_or(set.sandbox),
        network: arguments.network.as_ref().map_or(set.network, |word| word == "allow"),
        helper: environment.program().map(Path::to_owned),
    }
}

/// Where the report is written too, as whole paths: the run may be taken up again from another folder.
fn reports(arguments: &RunArguments) -> Vec<PathBuf> {
    arguments.report.iter().map(|path| std::path::absolute(path).unwrap_or_else(|_| path.clone())).collect()
}

/// Prints the plan: what would be sent, the tools, the lanes, the limits. Calls nothing.
fn dry_run(arguments: &RunArguments, task: &Task, settings: Settings) -> Result<u8, Failure> {
    let briefing = prepare(task, &settings, &TreeId::empty(), &[])
        .map_err(|fault: PlanFault| Failure::because(fault.reason, fault))?;
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
            "time_ms": task.budget.time_ms.unwrap_or(defaults.time_ms),
        },
        "warnings": briefing.plan.notes,
    });
    if arguments.voice.json {
        print_json(&plan.to_string()).map_err(no_output)?;
    } else {
        print_data(paint::harmless(&super::display::plan(task, &briefing, &plan["limits"])).trim_end())
            .map_err(no_output)?;
    }
    Ok(0)
}
