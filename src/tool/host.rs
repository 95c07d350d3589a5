//! The one door to the tools: a request goes in, an outcome comes out, both plain data, and nothing that happens behind it,
//! not even a panic, gets past it.

use super::behind::Behind;
use super::bench::Bench;
use super::contract::{Effect, ToolRequest};
use super::ledger::{Ledger, LedgerCopy};
use super::rules::Rules;
use super::shelf::Shelf;
use super::{Call, Progress, Run, TOOLS, Tool, ToolError, bound, foreign};
use crate::chat::{Detail, FileChange, ToolOutcome};
use crate::id::CallId;
use crate::process::wall::{Holes, NoWall, Wall};
use crate::process::{Bounds, visible};
use crate::verdict::StepLog;
use crate::workspace::ProtectedRule;
use crate::workspace::jail::{Jail, JailError};
use futures_util::FutureExt;
use serde::{Deserialize, Serialize};
use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The least that a result may be bounded to, in bytes: below it a cut would be all note.
pub(super) const MIN_RESULT: usize = 1024;

/// What a tool host works by.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostSettings {
    /// The workspace.
    pub root: PathBuf,
    /// Where the full text of cut results is kept; made when missing. Not in the workspace.
    pub outputs_dir: PathBuf,
    /// Paths that no tool changes.
    pub protected: Vec<ProtectedRule>,
    /// Protected paths that may be changed all the same, as globs.
    pub allow_edit: Vec<String>,
    /// The only paths that may be changed, as globs; empty: all that are not protected.
    pub files: Vec<String>,
    /// The whole environment of shell commands.
    pub env: Vec<(String, String)>,
    /// Bytes of a result that go to the model; at least 1 KiB.
    pub max_result: usize,
    /// The longest that a shell command may take, and what it may take when the call does not say.
    pub shell_timeout: Duration,
    /// What all processes of a shell command may use up together.
    pub bounds: Bounds,
}

/// Why there can be no tool host: for the operator.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// The workspace can't be opened.
    #[error("the workspace")]
    Workspace(#[source] JailError),
    /// The directory for outputs can't be made or opened.
    #[error("the directory for outputs")]
    Outputs(#[source] JailError),
    /// The agent could write where its own outputs are kept.
    #[error("the directory for outputs, `{}`, is inside the workspace", path.display())]
    OutputsInside {
        /// The directory.
        path: PathBuf,
    },
    /// The agent could write the program that its wall rests on.
    #[error("{}: {}", .0, .0.mend)]
    HelperInside(NoWall),
    /// The wall cannot be built around the tools of this run.
    #[error("the tools cannot be started in the sandbox: {0}")]
    Wall(String),
    /// A glob among the protected, allowed or listed paths is none.
    #[error("the paths that may be changed")]
    Rules(#[source] ToolError),
}

/// Runs tool calls for one run. Calls may come at the same time; changes to files take turns.
#[derive(Debug)]
pub struct ToolHost {
    bench: Arc<Bench>,
    /// Where tools that touch the workspace are run, when it is not here.
    behind: Option<Behind>,
}

impl ToolHost {
    /// Opens the workspace and compiles the rules.
    ///
    /// # Errors
    /// [`HostError`] when a directory can't be used or a glob is none.
    pub fn new(settings: HostSettings) -> Result<Self, HostError> {
        Self::with_memory(settings, None)
    }

    /// The same with the memory of the project.
    ///
    /// # Errors
    /// As those of [`ToolHost::new`].
    pub fn with_memory(settings: HostSettings, shelf: Option<Shelf>) -> Result<Self, HostError> {
        let jail = Jail::open(&settings.root).map_err(HostError::Workspace)?;
        if settings.outputs_dir.starts_with(jail.root()) || settings.outputs_dir.starts_with(&settings.root) {
            return Err(HostError::OutputsInside { path: settings.outputs_dir });
        }
        let rules = Rules::new(&settings.protected, &settings.allow_edit, &settings.files);
        let bench = Bench {
            jail,
            outputs: Jail::make(&settings.outputs_dir).map_err(HostError::Outputs)?,
            rules: rules.map_err(HostError::Rules)?,
            ledger: Mutex::new(Ledger::default()),
            env: settings.env,
            max_result: settings.max_result.max(MIN_RESULT),
            shell_timeout: settings.shell_timeout,
            bounds: settings.bounds,
            shelf,
            logs: Mutex::default(),
        };
        Ok(Self { bench: Arc::new(bench), behind: None })
    }

    /// The same behind a wall: every tool but those of memory and logs runs in a process of its own there, which is started when it is first
    /// needed. What it may reach are these holes. Without a wall it is [`ToolHost::with_memory`].
    ///
    /// # Errors
    /// As those of [`ToolHost::new`]; and when the program that the wall rests on could be written behind it.
    pub fn behind(settings: HostSettings, shelf: Option<Shelf>, wall: Wall, holes: Holes) -> Result<Self, HostError> {
        let host = Self::with_memory(settings.clone(), shelf)?;
        let Some(helper) = wall.helper().map(PathBuf::from) else { return Ok(host) };
        holes.writable.iter().try_for_each(|folder| wall.stands_outside(folder)).map_err(HostError::HelperInside)?;
        Ok(Self { behind: Some(Behind::new(wall, holes, helper, settings)), ..host })
    }

    /// Starts the process in which tools run, where there is to be one, instead of with the first call. A stop ends the wait, and is no error.
    ///
    /// # Errors
    /// [`HostError::Wall`] when it does not begin.
    pub async fn ready(&self, stop: &CancellationToken) -> Result<(), HostError> {
        match &self.behind {
            Some(behind) => behind.ready(stop).await.map_err(HostError::Wall),
            None => Ok(()),
        }
    }

    /// Ends the process in which tools run, if there is one. When this returns, nothing that it started is alive; the next call starts it
    /// again, and it remembers what it did.
    pub async fn close(&self) {
        if let Some(behind) = &self.behind {
            behind.close().await;
        }
    }

    /// The environment that shell commands have behind the wall, where there is one and it was built.
    pub fn environment(&self) -> Option<Vec<(String, String)>> {
        self.behind.as_ref()?.environment()
    }

    /// Takes down what an earlier process did to files in the same run, so that what is counted goes on from there.
    pub fn recall<'c>(&self, changes: impl IntoIterator<Item = &'c FileChange>) {
        match &self.behind {
            Some(behind) => behind.recall(changes.into_iter().cloned()),
            None => {
                let mut ledger = self.bench.ledger();
                changes.into_iter().for_each(|change| ledger.recall(change));
            }
        }
    }

    /// Lets the model read what the gate's steps have printed, as far as it is this.
    pub fn show_logs(&self, logs: Vec<StepLog>) {
        self.bench.show_logs(logs);
    }

    /// What somebody else has said in answer to a call, as its outcome: cleaned, bounded like every result, and marked as theirs.
    pub fn hear(&self, call: CallId, whose: &str, text: &str, is_error: bool) -> ToolOutcome {
        let room = self.bench.max_result - foreign::FRAME;
        let content = foreign::fenced(whose, &self.bench.bounded_to(room, call, visible(text)));
        if is_error { ToolOutcome::error(content) } else { ToolOutcome::ok(content) }
    }

    /// Takes up what an earlier host has left.
    pub(super) fn restore(&self, ledger: LedgerCopy) {
        self.bench.ledger().restore(ledger);
    }

    /// What the next host has to know.
    pub(super) fn remembered(&self) -> LedgerCopy {
        self.bench.ledger().copy()
    }

    /// Runs one call to its end, which `stop` brings near. Never fails: what goes wrong is in the outcome.
    pub async fn call(&self, request: ToolRequest, stop: &CancellationToken, progress: Progress<'_>) -> ToolOutcome {
        let found = Tool::find(&request.name);
        if let (Some(tool), Some(behind)) = (found, &self.behind)
            && !tool.is_at_home()
        {
            return behind.call(tool, request, stop, progress).await;
        }
        let ToolRequest { call: id, name, input } = request;
        match found {
            Some(tool) => self.perform(Call { tool, id, input, stop: stop.clone() }, progress).await,
            None => {
                let known = TOOLS.map(|tool| tool.name).join(", ");
                ToolOutcome::error(ToolError::Unknown { name: bound::line(&name, 80), known }.to_string())
            }
        }
    }

    async fn perform(&self, call: Call, progress: Progress<'_>) -> ToolOutcome {
        let Call { tool, id, .. } = call;
        if call.stop.is_cancelled() {
            return outcome(&self.bench, tool, id, Err(ToolError::Stopped));
        }
        let done = match tool.run {
            Run::Files(run) => {
                let bench = Arc::clone(&self.bench);
                let work = move || outcome(&bench, tool, id, run(&bench, &call));
                // Waited for even after a stop, or the thread would go on alone; the work itself looks at `stop`.
                tokio::task::spawn_blocking(work).await.map_err(|error| match error.try_into_panic() {
                    Ok(panic) => panicked(tool, panic.as_ref()),
                    Err(_) => ToolError::Stopped,
                })
            }
            Run::Process(run) => {
                AssertUnwindSafe(async { outcome(&self.bench, tool, id, run(&self.bench, &call, progress).await) })
                    .catch_unwind()
                    .await
                    .map_err(|panic| panicked(tool, panic.as_ref()))
            }
        };
        done.unwrap_or_else(|error| outcome(&self.bench, tool, id, Err(error)))
    }
}

fn outcome(bench: &Bench, tool: Tool, call: CallId, done: Result<ToolOutcome, ToolError>) -> ToolOutcome {
    let outcome = done.unwrap_or_else(|error| ToolOutcome {
        transient: tool.flags.effect == Effect::ReadOnly && error.is_transient(),
        detail: match &error {
            ToolError::Protected { path, why } => Detail::Protected { path: path.to_string(), rule: why.clone() },
            _ => Detail::None,
        },
        ..ToolOutcome::error(error.to_string())
    });
    ToolOutcome { content: bench.bounded(call, outcome.content), ..outcome }
}

fn panicked(tool: Tool, panic: &(dyn Any + Send)) -> ToolError {
    let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    ToolError::Panicked { tool: tool.name.into(), problem: bound::line(text.unwrap_or("a panic"), 200) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::jail::RelPath;
    use futures_util::future::BoxFuture;
    use rustix::io::Errno;
    use serde_json::json;

    type Done = Result<ToolOutcome, ToolError>;

    fn broken(_: &Bench, _: &Call) -> Done {
        panic!("no such luck")
    }

    fn broken_process<'a>(_: &'a Bench, _: &'a Call, _: Progress<'a>) -> BoxFuture<'a, Done> {
        Box::pin(async { panic!("no such luck") })
    }

    fn out_of_handles(_: &Bench, _: &Call) -> Done {
        Err(JailError::Io { path: RelPath::default(), source: Errno::MFILE.into() })?
    }

    async fn perform(tool: Tool) -> ToolOutcome {
        let home = crate::test_support::temp_dir();
        std::fs::create_dir(home.path().join("tree")).unwrap();
        let settings = HostSettings {
            root: home.path().join("tree"),
            outputs_dir: home.path().join("outputs"),
            protected: Vec::new(),
            allow_edit: Vec::new(),
            files: Vec::new(),
            env: Vec::new(),
            max_result: 0,
            shell_timeout: Duration::ZERO,
            bounds: Bounds::default(),
        };
        let call = Call { tool, id: CallId(1), input: json!({}), stop: CancellationToken::new() };
        ToolHost::new(settings).unwrap().perform(call, &|_| {}).await
    }

    #[tokio::test]
    async fn a_panic_in_a_tool_is_an_error_of_that_call() {
        for run in [Run::Files(broken), Run::Process(broken_process)] {
            let outcome = perform(Tool { run, ..TOOLS[0] }).await;
            assert_eq!(outcome, ToolOutcome::error("files-delete failed inside: no such luck"));
        }
    }

    #[tokio::test]
    async fn a_failure_that_may_pass_is_called_so_for_tools_that_only_look() {
        for (flags, transient) in [(crate::tool::LOOKS, true), (crate::tool::WRITES, false)] {
            let outcome = perform(Tool { flags, run: Run::Files(out_of_handles), ..TOOLS[0] }).await;
            let expected = ToolOutcome { transient, ..ToolOutcome::error("`.`: Too many open files (os error 24)") };
            assert_eq!(outcome, expected);
        }
    }
}
