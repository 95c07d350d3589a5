//! The only entry point to the tools. A request goes in and an outcome comes out, both as plain
//! data. No failure of a tool passes this point, not even a panic.

use super::contract::{ToolEffect, ToolRequest};
use super::ledger::{FileLedger, LedgerCopy};
use super::memory_access::MemoryAccess;
use super::rules::ToolRules;
use super::sandboxed_host::SandboxedHost;
use super::tool_context::ToolContext;
use super::{Call, Progress, Run, TOOLS, Tool, ToolError, bound, foreign};
use crate::chat::{FileChange, OutcomeDetail, ToolOutcome};
use crate::id::CallId;
use crate::process::sandbox::{NoSandbox, PathRules, Sandbox};
use crate::process::{ProcessBounds, visible};
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

/// The smallest limit of a result, in bytes. With a lower limit, a cut text would be little more
/// than its note.
pub(super) const MIN_RESULT: usize = 1024;

/// The settings of a tool host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostSettings {
    /// The workspace.
    pub root: PathBuf,
    /// The directory for the full texts of cut results. It is created if missing, and must not be
    /// in the workspace.
    pub outputs_dir: PathBuf,
    /// Paths that tools must not change.
    pub protected: Vec<ProtectedRule>,
    /// Globs of protected paths that tools may change anyway.
    pub allow_edit: Vec<String>,
    /// Globs of the only paths that tools may change. If empty, tools may change every path that is
    /// not protected.
    pub files: Vec<String>,
    /// The whole environment of shell commands.
    pub env: Vec<(String, String)>,
    /// The maximum size of a result for the model, in bytes; at least 1 KiB.
    pub max_result: usize,
    /// The default and the maximum timeout of a shell command.
    pub shell_timeout: Duration,
    /// The resource limits for all processes of a shell command together.
    pub bounds: ProcessBounds,
}

/// A failure to create or start a tool host. The messages are for the operator.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// The workspace cannot be opened.
    #[error("the workspace")]
    Workspace(#[source] JailError),
    /// The directory for outputs cannot be created or opened.
    #[error("the directory for outputs")]
    Outputs(#[source] JailError),
    /// The directory for outputs is in the workspace, so the agent could write to it.
    #[error("the directory for outputs, `{}`, is inside the workspace", path.display())]
    OutputsInside {
        /// The directory.
        path: PathBuf,
    },
    /// The agent could write to the program that its sandbox depends on.
    #[error("{}: {}", .0, .0.hint)]
    HelperInside(NoSandbox),
    /// The tools of this run cannot be started in the sandbox.
    #[error("the tools cannot be started in the sandbox: {0}")]
    Wall(String),
    /// A glob of protected, allowed or listed paths is invalid.
    #[error("the paths that may be changed")]
    Rules(#[source] ToolError),
}

/// Runs the tool calls of one run. Calls may run in parallel. Changes to files are serialized.
#[derive(Debug)]
pub struct ToolHost {
    context: Arc<ToolContext>,
    /// The host in the sandbox that runs tools which touch the workspace. `None` if they run here.
    behind: Option<SandboxedHost>,
}

impl ToolHost {
    /// Opens the workspace and compiles the rules.
    ///
    /// # Errors
    /// [`HostError`] if a directory cannot be used or a glob is invalid.
    pub fn new(settings: HostSettings) -> Result<Self, HostError> {
        Self::with_memory(settings, None)
    }

    /// Creates a host with the memory of the project.
    ///
    /// # Errors
    /// See [`ToolHost::new`].
    pub fn with_memory(settings: HostSettings, memory: Option<MemoryAccess>) -> Result<Self, HostError> {
        let jail = Jail::open(&settings.root).map_err(HostError::Workspace)?;
        if settings.outputs_dir.starts_with(jail.root()) || settings.outputs_dir.starts_with(&settings.root) {
            return Err(HostError::OutputsInside { path: settings.outputs_dir });
        }
        let rules = ToolRules::new(&settings.protected, &settings.allow_edit, &settings.files);
        let context = ToolContext {
            jail,
            outputs: Jail::make(&settings.outputs_dir).map_err(HostError::Outputs)?,
            rules: rules.map_err(HostError::Rules)?,
            ledger: Mutex::new(FileLedger::default()),
            env: settings.env,
            max_result: settings.max_result.max(MIN_RESULT),
            shell_timeout: settings.shell_timeout,
            bounds: settings.bounds,
            memory,
            logs: Mutex::default(),
        };
        Ok(Self { context: Arc::new(context), behind: None })
    }

    /// Creates a host whose tools run in a sandbox with the access of `path_rules`. All tools
    /// except those for memory and logs run there, in a separate process that the first use starts.
    /// Without a sandbox, this equals [`ToolHost::with_memory`].
    ///
    /// # Errors
    /// See [`ToolHost::new`]. Also fails if programs in the sandbox could write to the program that
    /// the sandbox depends on.
    pub fn behind(
        settings: HostSettings,
        memory: Option<MemoryAccess>,
        sandbox: Sandbox,
        path_rules: PathRules,
    ) -> Result<Self, HostError> {
        let host = Self::with_memory(settings.clone(), memory)?;
        let Some(helper) = sandbox.helper().map(PathBuf::from) else { return Ok(host) };
        path_rules
            .writable
            .iter()
            .try_for_each(|folder| sandbox.check_is_outside(folder))
            .map_err(HostError::HelperInside)?;
        Ok(Self { behind: Some(SandboxedHost::new(sandbox, path_rules, helper, settings)), ..host })
    }

    /// Starts the sandboxed tool process now instead of with the first call, if the host has one.
    /// Cancelling `stop` ends the wait without an error.
    ///
    /// # Errors
    /// [`HostError::Wall`] if the process does not start.
    pub async fn ready(&self, stop: &CancellationToken) -> Result<(), HostError> {
        match &self.behind {
            Some(behind) => behind.ready(stop).await.map_err(HostError::Wall),
            None => Ok(()),
        }
    }

    /// Ends the sandboxed tool process, if there is one. On return, no process that it started is
    /// alive. The next call starts a new process, which knows what the old one did.
    pub async fn close(&self) {
        if let Some(behind) = &self.behind {
            behind.close().await;
        }
    }

    /// Returns the environment of shell commands in the sandbox. `None` without a sandbox, or if
    /// the tool process was not started yet.
    pub fn environment(&self) -> Option<Vec<(String, String)>> {
        self.behind.as_ref()?.environment()
    }

    /// Records the changes that an earlier process of this run made to files, so that the counts
    /// continue from there.
    pub fn recall<'c>(&self, changes: impl IntoIterator<Item = &'c FileChange>) {
        match &self.behind {
            Some(behind) => behind.recall(changes.into_iter().cloned()),
            None => {
                let mut ledger = self.context.ledger();
                changes.into_iter().for_each(|change| ledger.recall(change));
            }
        }
    }

    /// Sets the logs of the gate's steps that the model may read.
    pub fn show_logs(&self, logs: Vec<StepLog>) {
        self.context.show_logs(logs);
    }

    /// Turns an untrusted party's answer to a call into an outcome. The text is cleaned, limited
    /// like every result, and put into a block that names `whose` text it is.
    pub fn receive(&self, call: CallId, whose: &str, text: &str, is_error: bool) -> ToolOutcome {
        let room = self.context.max_result - foreign::FRAME;
        let content = foreign::fenced(whose, &self.context.bounded_to(room, call, visible(text)));
        if is_error { ToolOutcome::error(content) } else { ToolOutcome::ok(content) }
    }

    /// Restores the ledger of an earlier host.
    pub(super) fn restore(&self, ledger: LedgerCopy) {
        self.context.ledger().restore(ledger);
    }

    /// Returns the ledger for the next host.
    pub(super) fn remembered(&self) -> LedgerCopy {
        self.context.ledger().copy()
    }

    /// Runs one call to its end; `stop` makes it end early. Never fails: the outcome carries any
    /// error.
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
            return outcome(&self.context, tool, id, Err(ToolError::Stopped));
        }
        let done = match tool.run {
            Run::Files(run) => {
                let context = Arc::clone(&self.context);
                let work = move || outcome(&context, tool, id, run(&context, &call));
                // Wait even after a stop: otherwise, the thread would continue alone. The work
                // itself checks `stop`.
                tokio::task::spawn_blocking(work).await.map_err(|error| match error.try_into_panic() {
                    Ok(panic) => panicked(tool, panic.as_ref()),
                    Err(_) => ToolError::Stopped,
                })
            }
            Run::Process(run) => {
                AssertUnwindSafe(async { outcome(&self.context, tool, id, run(&self.context, &call, progress).await) })
                    .catch_unwind()
                    .await
                    .map_err(|panic| panicked(tool, panic.as_ref()))
            }
        };
        done.unwrap_or_else(|error| outcome(&self.context, tool, id, Err(error)))
    }
}

fn outcome(context: &ToolContext, tool: Tool, call: CallId, done: Result<ToolOutcome, ToolError>) -> ToolOutcome {
    let outcome = done.unwrap_or_else(|error| ToolOutcome {
        transient: tool.flags.effect == ToolEffect::ReadOnly && error.is_transient(),
        detail: match &error {
            ToolError::Protected { path, why } => {
                OutcomeDetail::Protected { path: path.to_string(), rule: why.clone() }
            }
            _ => OutcomeDetail::None,
        },
        ..ToolOutcome::error(error.to_string())
    });
    ToolOutcome { content: context.bounded(call, outcome.content), ..outcome }
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

    fn broken(_: &ToolContext, _: &Call) -> Done {
        panic!("no such luck")
    }

    fn broken_process<'a>(_: &'a ToolContext, _: &'a Call, _: Progress<'a>) -> BoxFuture<'a, Done> {
        Box::pin(async { panic!("no such luck") })
    }

    fn out_of_handles(_: &ToolContext, _: &Call) -> Done {
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
            bounds: ProcessBounds::default(),
        };
        let call = Call { tool, id: CallId(1), input: json!({}), stop: CancellationToken::new() };
        ToolHost::new(settings).unwrap().perform(call, &|_| {}).await
    }

    #[tokio::test]
    async fn a_panic_in_a_tool_is_an_error_of_that_call() {
        for run in [Run::Files(broken), Run::Process(broken_process)] {
            let outcome = perform(Tool { run, ..TOOLS[0] }).await;
            assert_eq!(outcome, ToolOutcome::error("internal error in files-delete: no such luck"));
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
