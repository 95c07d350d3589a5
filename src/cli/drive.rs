//! The command line's side of a running agent: signals stop it, events are shown or printed, and
//! its result is reported at the end.

use super::display::{RunDisplay, closing, expected};
use super::failure::CliError;
use super::output::{hear_out, json_line, no_output};
use super::output_buffer::OutputBuffer;
use super::paint;
use super::project::{adding, git_at, has_repository, root_of};
use super::results::ResultFiles;
use super::sync_target::{ServerArguments, SyncTarget};
use super::{asking, live, signals};
use crate::config::{self, EnvironmentLayer};
use crate::driver::{self, Agent, DriverSettings, ResumeError, RunError, StopToken};
use crate::id::RunId;
use crate::limits::NewLimits;
use crate::report::{self, NamedRun};
use crate::run::TaskResult;
use crate::store::Store;
use crate::task::Task;
use crate::verdict::{Reason, StopCause};
use crate::workspace::changed_paths;
use anyhow::{Context, anyhow};
use clap::Args;
use std::convert::Infallible;
use std::io::IsTerminal as _;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The interval at which a server receives the news of a run under way.
const PACE: Duration = Duration::from_secs(2);

/// The agent's work.
#[derive(Debug)]
pub(super) enum AgentWork {
    /// A task, with the run key.
    Task(Box<Task>, Option<String>),
    /// Resume a run, with new limits if any are given.
    Resume(RunId, NewLimits),
    /// Resume a run, or end it if it can never be resumed. The caller then starts another run.
    ResumeOrEnd(RunId),
}

// Options of every verb that runs an agent.
#[derive(Debug, Clone, Copy, Args)]
pub(super) struct OutputArguments {
    /// Print events as JSON lines on standard output
    #[arg(help_heading = "Output", long)]
    pub(super) json: bool,
    /// Print errors only
    #[arg(help_heading = "Output", long, short)]
    pub(super) quiet: bool,
    /// Never prompt, and draw no live lines
    #[arg(help_heading = "Output", long)]
    pub(super) ni: bool,
    /// Notify through the terminal when the run ends
    ///
    /// Uses a notification if the terminal supports it, otherwise the bell.
    #[arg(help_heading = "Output", long = "notify")]
    pub(super) rings: bool,
}

/// The output of a run: events, questions, files and messages to a server.
#[derive(Debug, Clone)]
pub(super) struct OutputOptions {
    json: bool,
    pub(super) quiet: bool,
    is_live: bool,
    rings: bool,
    /// Set if a person at the terminal can answer questions; then true if the terminal can move its
    /// cursor.
    asks: Option<bool>,
    results: ResultFiles,
    /// The server that receives news of the run, and the environment with its token.
    server: Option<(config::SyncConfig, EnvironmentLayer)>,
}

impl OutputOptions {
    pub(super) fn new(arguments: OutputArguments, set: &config::ProjectConfig, environment: &EnvironmentLayer) -> Self {
        let OutputArguments { json, quiet, ni, rings } = arguments;
        let (may_ask, can_move) = (!(ni || set.non_interactive), paint::can_draw(environment));
        let asks = (may_ask && asking::is_somebody_there()).then_some(can_move);
        Self {
            json,
            quiet,
            is_live: may_ask && can_move && !(json && std::io::stdout().is_terminal()),
            rings: rings && can_move,
            asks,
            results: ResultFiles::of_job(Path::new("."), environment),
            server: None,
        }
        .telling(&ServerArguments::default(), set, environment)
    }

    /// Sends the news of the run to the given server, or else to the configured one.
    pub(super) fn telling(
        self,
        server: &ServerArguments,
        set: &config::ProjectConfig,
        environment: &EnvironmentLayer,
    ) -> Self {
        Self { server: server.server(set).map(|sync| (sync, environment.clone())), ..self }
    }

    /// Connects the agent's questions and events to the terminal and to standard output.
    fn listen_to(&self, agent: &mut Agent, buffer: &OutputBuffer, display: &Arc<Mutex<RunDisplay>>) {
        if let Some(can_move) = self.asks {
            let screen = asking::screen();
            agent.on_confirmation(move |question| asking::ask(question, can_move, screen.clone()));
        }
        if self.json {
            let buffer = buffer.clone();
            agent.on_record(move |record| buffer.push(&json_line(&serde_json::to_string(record).unwrap_or_default())));
        }
        if !self.quiet {
            let display = display.clone();
            agent.on_record(move |record| match &record.of {
                None => lock(&display).show(&record.event),
                Some(path) => lock(&display).show_of(path, &record.event),
            });
        }
    }

    /// Sets the result files to write at the end.
    pub(super) fn with(self, results: ResultFiles) -> Self {
        Self { results, ..self }
    }
}

/// Runs the work; returns the exit code.
///
/// # Errors
/// When the work cannot begin, or standard output cannot be written.
pub(super) async fn drive(work: AgentWork, settings: DriverSettings, voice: OutputOptions) -> Result<u8, CliError> {
    driven(work, settings, voice).await.map(|(code, _)| code)
}

/// Runs the work; returns the exit code and the run.
///
/// # Errors
/// Those of [`drive`].
pub(super) async fn driven(
    mut work: AgentWork,
    settings: DriverSettings,
    voice: OutputOptions,
) -> Result<(u8, RunId), CliError> {
    let models = if let AgentWork::Task(task, _) = &work { task.models.clone() } else { Vec::new() };
    let stop = StopToken::default();
    let listening = signals::listen(stop.clone()).context("cannot listen for signals").map_err(CliError::own)?;
    let (plan, workspace, env) = (plan(&voice, &settings)?, settings.project().to_owned(), settings.env.clone());
    let state_dir = settings.state_dir.clone();
    let mut agent = Agent::new(settings).with_stop(stop.clone());
    let buffer = OutputBuffer::default();
    let known = Store::existing(&state_dir, &workspace).ok().flatten().filter(|_| voice.is_live);
    let before_ms = known.as_ref().map_or(0, |store| taken_ms(store, &work));
    let expected = known.as_ref().map(expected).unwrap_or_default();
    let display = RunDisplay::new(voice.is_live, before_ms).expecting(expected);
    let display = Arc::new(Mutex::new(display));
    voice.listen_to(&mut agent, &buffer, &display);
    if let AgentWork::Task(task, key) = &mut work {
        must_begin(&agent, task, &stop).await?;
        agent = agent.with_run_key(key.take());
    } else if let AgentWork::Resume(_, limits) = &work
        && !limits.is_empty()
    {
        agent = agent.with_limits(*limits);
    }
    let work = async {
        match work {
            AgentWork::Task(task, _) => agent.run_task(*task).await,
            AgentWork::Resume(run, _) => agent.resume(&run).await,
            AgentWork::ResumeOrEnd(run) => agent.resume_or_end(&run).await,
        }
    };
    let ended = tokio::select! {
        biased;
        ended = work => ended,
        never = hint(&stop, voice.quiet, display.clone()) => match never {},
        never = follow(plan.as_ref()) => match never {},
    };
    let mut unwritten = Ok(());
    let heard = async {
        agent.wait_for_watchers(Duration::MAX).await;
        unwritten = buffer.wait_until_written().await;
    };
    // A terminal that accepts no output would block the removal of the live lines.
    let mut was_heard = hear_out(&stop, heard).await && hear_out(&stop, close_display(display)).await;
    let result = match &ended {
        Ok(result) => Some(result.clone()),
        Err(RunError::GateLost { .. }) => None,
        Err(error) => error.result().cloned(),
    };
    let Some(result) = result else { return Err(begin_failure(ended)) };
    let (mut code, run) = (result.exit_code, result.run.clone());
    let (how, results) = ((voice.quiet, voice.rings), voice.results);
    let delivery = Delivery::look(&result, &workspace, &env, stop.token()).await;
    let closing =
        tokio::task::spawn_blocking(move || say_end(&result, (&workspace, &models, &delivery), how, &results));
    let mut written = Ok(());
    was_heard &= hear_out(&stop, async { written = closing.await.unwrap_or(Ok(())) }).await;
    if !was_heard && code == 0 {
        code = Reason::Cancelled.exit_code(Some(stop.cause()));
    }
    if let Some(plan) = &plan {
        let _the_run_is_what_it_is = hear_out(&stop, plan.close()).await;
    }
    drop(listening);
    written?;
    unwritten.map_err(no_output)?;
    Ok((code, run))
}

/// Returns the time that a resumed run has taken so far, in milliseconds.
fn taken_ms(store: &Store, work: &AgentWork) -> u64 {
    match work {
        AgentWork::Task(..) => 0,
        AgentWork::Resume(run, _) | AgentWork::ResumeOrEnd(run) => {
            store.run(run).map_or(0, |row| driver::story(store, &row).0.total_ms())
        }
    }
}

/// Refuses a run that cannot begin, before anything of it is recorded.
pub(super) async fn must_begin(agent: &Agent, task: &Task, stop: &StopToken) -> Result<(), CliError> {
    let Ok(scratch) = tempfile::tempdir() else { return Ok(()) }; // the run itself needs no temporary folder
    tokio::select! {
        biased;
        () = stop.token().cancelled() => Ok(()), // the run begins and ends as cancelled
        checked = agent.must_be_plannable(task, scratch.path()) => checked.map_err(|fault| CliError::unplanned(fault, task)),
    }
}

/// Removes the live lines.
async fn close_display(display: Arc<Mutex<RunDisplay>>) {
    let _a_terminal_may_take_nothing = tokio::task::spawn_blocking(move || lock(&display).close()).await;
}

/// Reports the end of the run in the closing lines, through the terminal if asked for, and in
/// files.
fn say_end(
    result: &TaskResult,
    (project, models, delivery): (&Path, &[String], &Delivery),
    (is_quiet, rings): (bool, bool),
    results: &ResultFiles,
) -> Result<(), CliError> {
    close(result, is_quiet, project, models, delivery);
    if rings {
        let report::Headline { lead, rest, .. } = report::headline(result);
        live::ring(&result.title, &(lead + &rest));
    }
    results.write(result)
}

/// Checks the server to which the run would be sent, if there is one.
pub(super) fn must_reach_server(voice: &OutputOptions, settings: &DriverSettings) -> Result<(), CliError> {
    let Some((sync, environment)) = &voice.server else { return Ok(()) };
    SyncTarget::new(sync.clone(), environment, &settings.state_dir, settings.project()).map(drop)
}

/// Prepares the messages to the server, if there is one.
fn plan(voice: &OutputOptions, settings: &DriverSettings) -> Result<Option<SyncTarget>, CliError> {
    let Some((sync, environment)) = &voice.server else { return Ok(None) };
    let plan = SyncTarget::new(sync.clone(), environment, &settings.state_dir, settings.project())?;
    plan.mark_runs_for_sync()?;
    Ok(Some(plan))
}

/// Tells a person who wants to stop what another Ctrl-C does. Never returns.
async fn hint(stop: &StopToken, is_quiet: bool, display: Arc<Mutex<RunDisplay>>) -> Infallible {
    stop.token().cancelled().await;
    if stop.cause() == StopCause::Interrupt && !is_quiet {
        let _a_terminal_may_take_nothing = tokio::task::spawn_blocking(move || lock(&display).stopping()).await;
    }
    std::future::pending().await
}

/// Sends news of the run to the server, if there is one. Never returns.
pub(super) async fn follow(plan: Option<&SyncTarget>) -> Infallible {
    match plan {
        Some(plan) => plan.follow(PACE).await,
        None => std::future::pending().await,
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn begin_failure(ended: Result<TaskResult, RunError>) -> CliError {
    let reason = ended.as_ref().err().map_or(Reason::Internal, RunError::reason);
    let hint = match &ended {
        Err(RunError::NotResumed(ResumeError::Gate { .. })) => {
            Some("start a new run with `fledge run`; with --resume-or-start, that also ends this run")
        }
        Err(RunError::NotResumed(_) | RunError::GateLost { .. }) => None,
        Ok(_) | Err(_) => Some("fledge keeps journals and reports in FLEDGE_STATE_DIR, else in ~/.local/state/fledge"),
    };
    let failure = ended.err().map_or_else(
        || CliError::own(anyhow!("the run ended without a result")),
        |error| match error {
            RunError::NotResumed(ResumeError::Stopped { by, .. }) => CliError::stopped(by, error),
            error => CliError::because(reason, error),
        },
    );
    hint.into_iter().fold(failure, CliError::hint)
}

/// Returns the name of the finished run for commands in the current folder: `last`, or its id if
/// the folder belongs to another project.
fn name_of(run: &RunId, project: &Path) -> String {
    let here = Path::new(".").canonicalize().unwrap_or_default();
    let here = root_of(&here, None);
    let is_here = project.canonicalize().is_ok_and(|project| project == here);
    if is_here { "last".to_owned() } else { run.to_string() }
}

/// The place of a run in git, for the next commands.
#[derive(Debug, Default)]
struct Delivery {
    /// True if the work can be committed.
    has_repository: bool,
    /// The command that commits the files which the run began with and no commit has.
    commit_first: String,
}

impl Delivery {
    /// Looks for uncommitted files, if the work of the run is verified and not committed.
    async fn look(result: &TaskResult, project: &Path, env: &[(String, String)], stop: &CancellationToken) -> Self {
        let has_repository = has_repository(project);
        let is_open = result.verified && result.commit.is_none() && result.worktree.is_none();
        if !(is_open && has_repository) {
            return Self { has_repository, ..Self::default() };
        }
        let Some(mut files) = changed_paths(project, env, stop).await else { return Self::default() };
        for path in result.changed_paths() {
            files.remove(path);
        }
        if files.is_empty() {
            return Self { has_repository, ..Self::default() };
        }
        let command = adding(project, &files.into_iter().collect::<Vec<_>>());
        match command.trim_matches('`') {
            command if command.contains(" add -A ") => Self::default(), // it would also commit the work
            command => Self { has_repository, commit_first: command.to_owned() },
        }
    }
}

/// Prints the closing lines: the outcome, the summary and the next commands for the run.
fn close(result: &TaskResult, quiet: bool, project: &Path, models: &[String], delivery: &Delivery) {
    let Delivery { has_repository, commit_first } = delivery;
    let (name, git) = (&name_of(&result.run, project), git_at(project));
    let git = has_repository.then_some(git.as_str());
    let run = NamedRun { name, git, commit_first, models };
    if !(quiet && result.verified && result.exit_code == 0) {
        closing(result, quiet, Some(run)).iter().for_each(|line| paint::line(line));
    }
}
