//! `fledge runs`: the stored runs, for people and as JSON. Only `prune`, `resume` and `continue`
//! change stored runs or create folders.

mod apply;
mod attest;
mod continue_run;
mod data;
mod diff;
mod export;
mod leftovers;
mod list;
mod logs;
mod prune;
mod replay;
mod resume;
mod scenes;
mod show;
mod undo;
mod watch;

pub(super) use apply::{ApplyArguments, apply};

use super::configured;
use super::failure::{CliError, start_of};
use super::project::ProjectArguments;
use crate::config::EnvironmentLayer;
use crate::driver::{self, JOURNAL_SCHEMA_VERSION, ResumeError, project_of};
use crate::report::story::RunStory;
use crate::store::{RunHead, RunListFilter, RunRow, Store, StoreError, project_dir};
use anyhow::anyhow;
use clap::{Args, Subcommand};
use std::path::PathBuf;

/// The least characters of an id to find a run of another project.
const SHORTEST: usize = 8;
/// The maximum number of runs named when no run has the given name.
const NAMED: u32 = 5;
/// Words that name a run.
const WORDS: [&str; 2] = ["last", "last-failed"];

#[derive(Debug, Args)]
#[command(
    after_help = "Name a run by its id or a unique prefix of the id, by its run key, or by `last` or `last-failed`.\n\n\
    Examples:\n  fledge runs list --failed\n  fledge runs show last\n  fledge runs diff last --stat\n  fledge runs \
    logs last test\n  fledge runs export last | jq .kind"
)]
pub(super) struct RunsArguments {
    #[command(flatten)]
    project: ProjectArguments,
    #[command(subcommand)]
    verb: RunsVerb,
}

#[derive(Debug, Subcommand)]
enum RunsVerb {
    /// Resume an interrupted run
    Resume(resume::ResumeArguments),
    /// Start a new run with the conversation of an ended run
    Continue(continue_run::ContinueArguments),
    /// Check that fledge would decide a run today as it did then
    ///
    /// Calls no model and changes nothing.
    Replay(replay::ReplayArguments),
    /// List runs, newest first
    List(list::ListRunsArguments),
    /// Show what happened in a run, turn by turn
    Show(show::ShowRunArguments),
    /// Follow a run under way, even one of another terminal
    Watch(watch::WatchArguments),
    /// Show what a run has changed
    Diff(diff::DiffArguments),
    /// Print a statement about a verified run, to be signed
    Attest(attest::AttestArguments),
    /// Restore the files as they were before a run
    Undo(undo::UndoArguments),
    /// List the logs of a run's gate steps, or print one
    Logs(logs::LogsArguments),
    /// Export a run's journal or its conversation as JSON
    Export(export::ExportArguments),
    /// Remove runs that are old or too many
    Prune(prune::PruneArguments),
}

/// Runs the verb; returns the exit code.
///
/// # Errors
/// When the run does not exist, or the store cannot be read.
pub(super) fn run(arguments: RunsArguments, environment: &EnvironmentLayer) -> Result<u8, CliError> {
    let shelf = RunsContext::open(arguments.project.root(environment)?, environment)?;
    match arguments.verb {
        RunsVerb::Resume(arguments) => resume::run(&shelf, &arguments, environment),
        RunsVerb::Continue(arguments) => continue_run::run(&shelf, &arguments, environment),
        RunsVerb::Replay(arguments) => replay::run(&shelf, &arguments),
        RunsVerb::List(arguments) => list::list(&shelf, &arguments),
        RunsVerb::Show(arguments) => show::show(&shelf, &arguments),
        RunsVerb::Watch(arguments) => watch::watch(&shelf, &arguments, environment),
        RunsVerb::Logs(arguments) => logs::logs(&shelf, &arguments),
        RunsVerb::Export(arguments) => export::export(&shelf, &arguments),
        RunsVerb::Diff(arguments) => diff::diff(&shelf, &arguments, environment),
        RunsVerb::Attest(arguments) => attest::attest(&shelf, &arguments, environment),
        RunsVerb::Undo(arguments) => undo::undo(&shelf, &arguments, environment),
        RunsVerb::Prune(arguments) => prune::prune(&shelf, &arguments, environment),
    }
}

/// The project whose runs are used, and the time.
#[derive(Debug)]
struct RunsContext {
    state: PathBuf,
    workspace: PathBuf,
    /// The project of these runs. It differs from the workspace if that is the worktree of a run.
    project: PathBuf,
    /// Milliseconds since 1970.
    now_ms: i64,
}

impl RunsContext {
    /// Creates the context of a folder at the current time.
    fn open(workspace: PathBuf, environment: &EnvironmentLayer) -> Result<Self, CliError> {
        let state = environment.state_dir().map_err(CliError::input)?;
        configured::restore_configuration(environment, &workspace);
        let project = project_of(&state, &workspace);
        Ok(Self { state, workspace, project, now_ms: jiff::Timestamp::now().as_millisecond() })
    }

    /// Returns the store of the project, if it exists.
    fn store(&self) -> Result<Option<Store>, CliError> {
        Store::existing(&self.state, &self.project).map_err(failed)
    }

    /// Finds a run by its name. If none exists or more than one, the failure names candidates.
    fn find(&self, name: &str) -> Result<(Store, RunRow), CliError> {
        let none = || {
            let none = anyhow!("there are no runs of {} yet", self.project.display());
            CliError::input(none).hint("run `fledge runs list --all-projects` to see other folders; -C names a folder")
        };
        let Some(store) = self.store()? else {
            if let Some(found) = self.elsewhere(name)? {
                return Ok(found);
            }
            self.must_have_begun(name)?;
            return Err(none());
        };
        let (error, rows) = match store.find(name) {
            Ok(run) => {
                let row = store.run(&run).map_err(failed)?;
                return Ok((store, row));
            }
            Err(StoreError::Ambiguous { name, candidates }) => {
                let rows = candidates.iter().map(|run| store.run(run)).collect::<Result<Vec<_>, _>>();
                (format!("`{name}` is the start of more than one run"), rows.map_err(failed)?)
            }
            Err(StoreError::Unknown { name }) => {
                if let Some(found) = self.elsewhere(&name)? {
                    return Ok(found);
                }
                self.must_have_begun(&name)?;
                let rows = store.runs(&RunListFilter { limit: NAMED, ..RunListFilter::default() }).map_err(failed)?;
                if name == "last-failed" && !rows.is_empty() {
                    let error = anyhow!("no run of {} has failed", self.project.display());
                    return Err(CliError::input(error).hint("run `fledge runs list` to see all runs"));
                }
                if WORDS.contains(&name.as_str()) && !rows.is_empty() {
                    let error = anyhow!("no run of {} began on this machine", self.project.display());
                    return Err(CliError::input(error).hint("name a run by its id: `fledge runs list` shows all runs"));
                }
                (format!("there is no run `{name}`; the newest runs are"), rows)
            }
            Err(error) => return Err(failed(error)),
        };
        if rows.is_empty() {
            return Err(none());
        }
        let named: Result<Vec<String>, StoreError> = rows.iter().map(|row| self.line(&store, row)).collect();
        let named = named.map_err(failed)?.join("\n  ");
        let starts = rows.iter().map(|row| start_of(row.head.id.as_str(), name)).filter(|start| *start != name);
        let keys = rows.iter().filter_map(|row| row.head.run_key.as_deref());
        let failure = CliError::input(anyhow!("{error}:\n  {named}"));
        let failure = failure.hint("give a longer prefix; `fledge runs list` shows all runs");
        Err(failure.near(name, WORDS.into_iter().filter(|word| *word != name).chain(keys).chain(starts)))
    }

    /// Finds a run to resume or continue. A run of another project must be named by its whole id.
    fn find_to_go_on(&self, name: &str) -> Result<(Store, RunRow), CliError> {
        let (store, row) = self.find(name)?;
        let RunHead { id, workspace, .. } = &row.head;
        let is_own = store.folder(id).project() == project_dir(&self.state, &self.project);
        if id.as_str() != name && !is_own {
            let error = anyhow!("there is no run `{name}` here; run {id} belongs to {workspace}");
            return Err(CliError::input(error).hint("give its full id, or name that folder with -C"));
        }
        Ok((store, row))
    }

    /// Finds a run of another project by the start of its id. Words and run keys are not looked up
    /// there.
    fn elsewhere(&self, name: &str) -> Result<Option<(Store, RunRow)>, CliError> {
        if name.len() < SHORTEST {
            return Ok(None);
        }
        let stores = Store::all(&self.state).map_err(failed)?.into_iter().flatten();
        let found = |store: Store| {
            let row = store.find(name).and_then(|run| store.run(&run)).ok()?;
            row.head.id.as_str().starts_with(name).then_some((store, row))
        };
        let mut found: Vec<_> = stores.filter_map(found).collect();
        Ok(if found.len() == 1 { found.pop() } else { None })
    }

    /// Fails if the id is that of a request for a run that a server has not begun.
    #[cfg(feature = "serve")]
    fn must_have_begun(&self, id: &str) -> Result<(), CliError> {
        use crate::queue::{BuryReason, JobId, QueueState};
        use crate::store::SqliteQueue;
        use crate::verdict::Reason;
        let path = crate::serve::queue_path(&self.state, &self.project);
        let Some(job) = JobId::parse(id).ok().filter(|_| path.exists()) else { return Ok(()) };
        let Some(job) = SqliteQueue::look_up(&path, &job).map_err(CliError::own)? else { return Ok(()) };
        let (what, hint) = match (job.state, job.why) {
            (QueueState::Queued | QueueState::Running, _) => {
                ("waits in the queue of the server, and has not begun".to_owned(), "`fledge serve` begins it")
            }
            (QueueState::Cancelled, _) => ("was cancelled before it began".to_owned(), "send the request again"),
            (_, Some(BuryReason::Failed(why))) => (format!("never began: {why}"), "send the request again"),
            (_, Some(BuryReason::Refused(why))) => {
                let (reason, message) = why.split_once(": ").unwrap_or(("internal", why.as_str()));
                (format!("never began ({}): {message}", Reason::label_of(reason)), "send the request again")
            }
            _ => ("never began".to_owned(), "send the request again"),
        };
        Err(CliError::input(anyhow!("run {id} {what}")).hint(hint))
    }

    #[cfg(not(feature = "serve"))]
    fn must_have_begun(&self, _id: &str) -> Result<(), CliError> {
        Ok(())
    }

    fn line(&self, store: &Store, row: &RunRow) -> Result<String, StoreError> {
        let (short, ago) = (store.short(&row.head.id)?, data::ago(self.now_ms, row.head.started_at_ms));
        let key = row.head.run_key.as_ref().map(|key| format!(" (key {key})")).unwrap_or_default();
        Ok(super::paint::one_line(&format!("{short}  {ago}  {}  {}{key}", data::outcome(row), row.head.title)))
    }
}

/// Returns the story of a run as far as its journal can be read, and the failure that stopped it.
fn story(store: &Store, row: &RunRow) -> (RunStory, Option<CliError>) {
    let (story, fault) = driver::story(store, row);
    let failure = fault.map(|fault| match fault {
        ResumeError::Newer { found, .. } => {
            let newer = anyhow!(
                "the journal has version {found}, but this fledge reads versions up to {JOURNAL_SCHEMA_VERSION}"
            );
            CliError::own(newer).hint("use the fledge that wrote it, or read it raw with `fledge runs export`")
        }
        ResumeError::Unclear { seq, source, .. } => {
            CliError::own(anyhow::Error::new(source).context(format!("record {seq} of the journal is no valid event")))
        }
        ResumeError::Store(error) => failed(error),
        other => CliError::own(other),
    });
    (story, failure)
}

/// Returns the failure for an error of the store. An unknown or ambiguous run is an error of the
/// input.
fn failed(error: StoreError) -> CliError {
    match error {
        StoreError::Unknown { .. }
        | StoreError::Ambiguous { .. }
        | StoreError::KeyTaken { .. }
        | StoreError::Elsewhere { .. } => CliError::input(error),
        StoreError::File { .. }
        | StoreError::Database { .. }
        | StoreError::Newer { .. }
        | StoreError::Foreign { .. }
        | StoreError::Corrupt { .. }
        | StoreError::Damaged { .. }
        | StoreError::Held { .. }
        | StoreError::Broken { .. } => CliError::own(error),
    }
}
