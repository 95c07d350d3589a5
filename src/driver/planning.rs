//! The effect of Planning: prepares the workspace, takes the base, reads the lanes of another
//! commit if wanted, freezes the gate, judges the base if needed, and prepares the tools.
//!
//! A resumed run repeats what it needs of this.

use super::briefing::{Briefing, StartingPoint, prepare, tool_names};
use super::effects::{EffectRunner, NotReadyReason, RunReady};
use super::enclosure::variable;
use super::error::PlanError;
use super::hidden::HiddenBase;
use super::hooks::UnsavedPaths;
use super::inbox::{Inbox, InboxSender};
use super::prepared_workspace::{IGNORED, PreparedWorkspace, baseline, no_trees};
use super::{DriverSettings, enclosure, memory, servers, worktree};
use crate::chat::{Block, FileChange};
use crate::error_chain::chain;
use crate::gate::{BaseError, Gate, GateSite, inherit_failed_trees};
use crate::id::CallId;
use crate::process::sandbox::SandboxKind;
use crate::run::{Event, RunPlan, Workplace};
use crate::store::{RunDir, sha256, write_whole};
use crate::task::{Baseline, Expect, GateChoice, Task};
use crate::tool::{HostError, HostSettings, ToolHost};
use crate::verdict::{Reason, Ruling, StepProgress};
use crate::workspace::delivery::{DeliveryError, UserRepository};
use crate::workspace::trees::Trees;
use crate::workspace::worktree::Worktree;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use tokio_util::sync::CancellationToken;

/// The inputs of planning.
pub(super) struct Planner {
    call: CallId,
    pub(super) settings: Arc<DriverSettings>,
    pub(super) task: Arc<Task>,
    pub(super) run_dir: RunDir,
    pub(super) worktree: Option<Arc<Worktree>>,
    ready: Arc<OnceLock<Arc<RunReady>>>,
    outbox: InboxSender,
    pub(super) stop: CancellationToken,
}

impl EffectRunner {
    pub(super) fn plan(&self, call: CallId, inbox: &mut Inbox) {
        let planner = Planner {
            call,
            settings: self.settings.clone(),
            task: self.task.clone(),
            run_dir: self.run_dir.clone(),
            worktree: self.worktree.clone(),
            ready: self.ready.clone(),
            outbox: inbox.outbox(),
            stop: inbox.stop_token(),
        };
        let lost = Event::PlanFailed { call, reason: Reason::Internal, message: "planning panicked".into() };
        let effect = async move {
            match planner.plan().await {
                Ok(plan) => Event::PlanReady { call, plan: Box::new(plan) },
                Err(PlanError { reason, message, .. }) => Event::PlanFailed { call, reason, message },
            }
        };
        inbox.start("plan", effect, lost);
    }

    /// Prepares the gate and the tools of a resumed run that is past its planning. `gate_file` is
    /// the digest of the kept gate.
    pub(super) async fn make_ready(
        &self,
        gate_file: &str,
        sandbox: Option<SandboxKind>,
        changes: &[FileChange],
        stop: &CancellationToken,
    ) -> Result<(), NotReadyReason> {
        super::configuration::forget_restored(&self.run_dir);
        let path = self.run_dir.gate();
        let bytes = fs::read(&path).map_err(|error| {
            let why = format!("cannot read {}: {error}", path.display());
            if error.kind() == ErrorKind::NotFound {
                NotReadyReason::GateLost(why)
            } else {
                NotReadyReason::NotNow(why)
            }
        })?;
        if sha256(&bytes) != gate_file {
            return Err(NotReadyReason::GateLost(format!("{} is not the file that fledge wrote", path.display())));
        }
        let gate = Gate::thaw(&bytes, &self.settings.workspace, &self.task.allow_edit);
        let gate = gate.map_err(|fault| NotReadyReason::NotNow(format!("{}: {}", path.display(), chain(&fault))))?;
        let not_now = |fault: PlanError| NotReadyReason::NotNow(fault.message);
        worktree::must_stand(self.worktree.as_deref()).map_err(NotReadyReason::NotNow)?;
        let mut workspace =
            PreparedWorkspace::make(&self.settings, self.worktree.as_deref(), stop).await.map_err(not_now)?;
        // The result names one kind of sandbox for the whole run.
        if let Some(then) = sandbox.filter(|then| *then != workspace.sandbox.kind()) {
            let (then, now) = (then.name(), workspace.sandbox.kind().name());
            return Err(NotReadyReason::NotNow(format!(
                "the run began in the sandbox {then}, but the sandbox here is {now}"
            )));
        }
        let resumed = workspace.trees.resume(gate.base(), stop).await;
        resumed.map_err(|fault| NotReadyReason::NotNow(chain(&fault)))?;
        if let Some(hidden) = &gate.hidden {
            let taken = workspace.take_away(hidden, stop).await;
            taken.map_err(|fault| NotReadyReason::NotNow(chain(&fault)))?;
        }
        let laid = workspace.lay(&gate, &self.settings, &self.run_dir, false, stop).await;
        laid.map_err(NotReadyReason::NotNow)?;
        let top = self.worktree.as_ref().map_or(&self.settings.workspace, |worktree| &worktree.folder);
        workspace.hide_from_agent(&gate, &self.settings, &self.run_dir, top);
        let host = tool_host(&self.task, &self.settings, &gate, &self.run_dir, &workspace);
        let host = host.map_err(|error| NotReadyReason::NotNow(chain(&error)))?;
        host.recall(changes);
        host.ready(stop).await.map_err(|error| NotReadyReason::NotNow(chain(&error)))?;
        let seal = gate.seal.clone();
        let gate = (self.task.gate != GateChoice::Skip).then(|| Arc::new(gate));
        let servers = servers::task_servers(&self.task, &self.settings, &self.run_dir, &workspace);
        let servers = Arc::new(servers.map_err(|fault| NotReadyReason::NotNow(fault.message))?);
        let _first = self.ready.set(Arc::new(RunReady {
            workspace,
            gate,
            seal,
            host: Arc::new(host),
            servers,
            base_run: OnceLock::new(),
            unkept: UnsavedPaths::default(),
            left: OnceLock::new(),
        }));
        Ok(())
    }
}

impl Planner {
    async fn plan(self) -> Result<RunPlan, PlanError> {
        let made = worktree::make(self.worktree.as_deref(), &self.settings, &self.run_dir, &self.stop).await?;
        let workspace = PreparedWorkspace::make(&self.settings, self.worktree.as_deref(), &self.stop).await?;
        self.unhide(&workspace).await.map_err(no_trees)?; // an earlier process may have been interrupted
        let planned = self.plan_on(workspace.clone(), made).await;
        if planned.is_err()
            && let Err(fault) = self.unhide(&workspace).await
        {
            tracing::warn!(why = %chain(&fault), "cannot put hidden files back into the worktree");
        }
        planned
    }

    async fn plan_on(
        &self,
        mut workspace: PreparedWorkspace,
        made: Option<(Workplace, Vec<String>)>,
    ) -> Result<RunPlan, PlanError> {
        let run = self.run_dir.run();
        if let Some(earlier) = &self.settings.earlier {
            let (from, to) = (self.run_dir.of_other(&earlier.run).logs(), self.run_dir.logs());
            let unread =
                |error| PlanError::new(Reason::IoError, format!("cannot copy the list of failed trees: {error}"));
            inherit_failed_trees(&from, &to).map_err(unread)?;
        }
        let forget_gone = workspace.forget_gone(&self.settings, &self.stop);
        let ((), start) = futures_util::join!(forget_gone, workspace.base(&self.settings, &run, &self.stop));
        let start = start?;
        let (base, tree) = (start.tree.clone(), start.tree.clone());
        let head = self.head(&workspace, &base).await?;
        self.record_repository(&workspace).await;
        let (mut plan, gate) = self.freeze(&workspace, start).await?;
        let laid = workspace.lay(&gate, &self.settings, &self.run_dir, true, &self.stop).await;
        let unlaid = |why| PlanError::new(Reason::PlanFailed, format!("cannot keep the installed dependencies: {why}"));
        plan.notes.extend(laid.map_err(unlaid)?);
        let top = self.worktree.as_ref().map_or(&self.settings.workspace, |worktree| &worktree.folder);
        workspace.hide_from_agent(&gate, &self.settings, &self.run_dir, top);
        let servers = servers::task_servers(&self.task, &self.settings, &self.run_dir, &workspace)?;
        let host =
            tool_host(&self.task, &self.settings, &gate, &self.run_dir, &workspace).map_err(|error| match error {
                HostError::HelperInside(_) => PlanError::new(Reason::NoSandbox, chain(&error)),
                error => PlanError::new(Reason::PlanFailed, chain(&error)),
            })?;
        (plan.base, plan.head) = (Some(tree), head);
        if let Some((workplace, notes)) = made {
            plan.worktree = Some(workplace);
            plan.notes.extend(notes);
        }
        // Find out before spending anything if the sandbox works around this workspace.
        let unwalled = |error| PlanError::new(Reason::NoSandbox, chain(&error));
        if self.task.gate == GateChoice::Skip {
            host.ready(&self.stop).await.map_err(unwalled)?;
        } else {
            let site = workspace.site(&self.settings, &self.task, &self.run_dir, &plan.tools);
            let (ready, unreached) = futures_util::join!(host.ready(&self.stop), gate.unreached(&site, &self.stop));
            ready.map_err(unwalled)?;
            if let Some(why) = unreached {
                return Err(PlanError::new(Reason::GateErrored, why));
            }
            self.ask_base(&gate, &workspace, &mut plan).await?;
        }
        let needs_model = plan.base_verdict.is_none();
        if let Some(why) = self.settings.no_models.as_ref().filter(|_| needs_model) {
            return Err(PlanError::new(Reason::BadInput, why.clone()));
        }
        let seal = gate.seal.clone();
        let gate = (self.task.gate != GateChoice::Skip).then_some(gate);
        let (host, servers, base_run) = (Arc::new(host), Arc::new(servers), OnceLock::new());
        let (unkept, left) = (UnsavedPaths::default(), OnceLock::new());
        let ready = Arc::new(RunReady { workspace, gate, seal, host, servers, base_run, unkept, left });
        let ready = self.ready.get_or_init(|| ready);
        servers::offer(&ready.servers, &self.task, &self.settings, &mut plan, &self.stop).await?;
        tool_names::note_strays(&self.task, &self.settings.mcp, &mut plan)?;
        super::asking::ask_for(&self.task.approve, &self.settings.asker, &mut plan)?;
        Ok(plan)
    }

    /// Freezes the gate and plans the run, after the hidden tests are gone from the worktree.
    async fn freeze(
        &self,
        workspace: &PreparedWorkspace,
        start: StartingPoint,
    ) -> Result<(RunPlan, Arc<Gate>), PlanError> {
        let (task, settings, run_dir) = (self.task.clone(), self.settings.clone(), self.run_dir.clone());
        let (kind, origin) = (workspace.sandbox.kind(), workspace.origin.clone());
        let exported = run_dir.path().join("lanes-from");
        let lanes_at = export_lanes(&settings, &workspace.trees, &exported, &self.stop).await?;
        let (start, hidden) = self.hide(workspace, start, lanes_at.as_deref()).await?;
        // Earlier runs may have seen the hidden tests.
        let memory = settings.memory.clone().filter(|_| hidden.is_none());
        let settings = Arc::new(DriverSettings { memory, ..DriverSettings::clone(&settings) });
        let failed = |error: &dyn std::error::Error| PlanError::new(Reason::PlanFailed, chain(error));
        let work = move || -> Result<(RunPlan, Arc<Gate>), PlanError> {
            let Briefing { mut plan, mut gate } = prepare(&task, &settings, &start, lanes_at.as_deref())?;
            if let Some(HiddenBase { base, files }) = hidden {
                let hidden = gate.hide(base, &files, (&origin, &start.paths));
                hidden.map_err(|fault| PlanError::bad(fault.to_string()))?;
                plan.notes.extend(files.notes);
            }
            enclosure::note(&settings, kind, &mut plan);
            // Keep the gate before the agent starts: on a resume, the workspace may contain
            // anything.
            let kept = gate.keep(kind);
            plan.gate_file = sha256(&kept);
            write_whole(&run_dir.gate(), &kept).map_err(|error| failed(&error))?;
            keep_ignored(&gate, &origin, &run_dir.path().join(IGNORED), &mut plan.notes);
            Ok((plan, Arc::new(gate)))
        };
        let panicked = |_| PlanError::new(Reason::Internal, "planning panicked");
        let planned = tokio::task::spawn_blocking(work).await.map_err(panicked);
        let _there_may_be_none = fs::remove_dir_all(&exported);
        planned?
    }

    /// Judges the base if needed. A task that expects another verdict ends here, at no cost.
    async fn ask_base(&self, gate: &Gate, workspace: &PreparedWorkspace, plan: &mut RunPlan) -> Result<(), PlanError> {
        let site = workspace.site(&self.settings, &self.task, &self.run_dir, &plan.tools);
        let is_wanted = match baseline(&self.settings, &self.task) {
            Baseline::Always => true,
            Baseline::Auto => {
                let rests = !gate.is_clean() && gate.rests_on_base();
                let is_asked = self.task.is_fix || self.task.expect.is_some() || rests;
                is_asked || gate.may_lack_programs(&site, &self.stop).await
            }
            Baseline::Never => self.task.is_fix || gate.needs_base(),
        };
        if !is_wanted {
            plan.judges_base = baseline(&self.settings, &self.task) != Baseline::Never && gate.is_clean();
            return Ok(());
        }
        let on_step = |progress: StepProgress| {
            let is_output = progress.printed().is_some();
            let event = Event::GateProgress { call: self.call, progress };
            if is_output { self.outbox.pass(event) } else { self.outbox.send(event) }
        };
        // A kept verdict may come from other tools or another day, so an expectation needs a new
        // one.
        let (ruling, feedback) = match self.task.is_fix || self.task.expect.is_some() {
            true => self.judge_as_it_is(gate, workspace, &site, &on_step, plan).await?,
            false => {
                let judged = gate.judge_base(&site, &self.stop, &on_step).await.map_err(|fault| not_judged(&fault))?;
                gate.lacks_nothing(&site).map_err(|fault| not_judged(&fault))?;
                judged
            }
        };
        let what = if ruling == Ruling::Passed { "the gate passes on the base" } else { "the gate fails on the base" };
        let unmet =
            |wish: &str| PlanError::bad(format!("{what}, but the task has `expect: {wish}`: there is nothing to do"));
        match (self.task.expect, ruling) {
            (Some(Expect::Failing), Ruling::Passed) => Err(unmet("failing")),
            (Some(Expect::Passing), Ruling::Failed) => Err(unmet("passing")),
            (wish, _) => {
                if (self.task.is_fix || wish == Some(Expect::Failing))
                    && let Some(Block::Text { text }) =
                        plan.messages.last_mut().and_then(|last| last.content.last_mut())
                {
                    text.push_str(&format!("\n\nThe checks now report:\n{feedback}"));
                }
                Ok(())
            }
        }
    }
}

impl Planner {
    /// Judges the workspace as work is judged. For a fix, the whole verdict of a pass goes into the
    /// plan, because it is the result of the run.
    async fn judge_as_it_is(
        &self,
        gate: &Gate,
        workspace: &PreparedWorkspace,
        site: &GateSite,
        on_step: &(dyn Fn(StepProgress) + Send + Sync),
        plan: &mut RunPlan,
    ) -> Result<(Ruling, String), PlanError> {
        let judged = gate.judge_as_it_is(site, &self.stop, on_step).await;
        let mut verdict = judged.map_err(|fault| not_judged(&fault))?;
        let feedback = verdict.feedback.clone();
        match verdict.ruling {
            Ruling::Passed if !self.task.is_fix => Ok((Ruling::Passed, feedback)),
            Ruling::Passed => {
                let tree = verdict.proof.as_ref().map(|proof| proof.tree.clone());
                let (run, hidden) = (self.run_dir.run(), gate.hidden.as_ref());
                if let Err(fault) = workspace.keep_candidate(&run, tree, hidden, &self.stop).await {
                    verdict.notes.push(format!("cannot keep the judged tree: {}", chain(&fault)));
                }
                plan.base_verdict = Some(Box::new(verdict));
                Ok((Ruling::Passed, feedback))
            }
            Ruling::Failed => {
                if let Some(why) = gate.unable(&verdict.steps, site) {
                    return Err(PlanError::new(Reason::GateErrored, why));
                }
                plan.notes.append(&mut verdict.notes);
                plan.base_logs = verdict.logs(0).collect();
                Ok((Ruling::Failed, feedback))
            }
            Ruling::Errored | Ruling::Tampered if self.stop.is_cancelled() => Err(not_judged(&BaseError::Stopped)),
            Ruling::Errored | Ruling::Tampered => {
                let message = format!("the gate cannot judge the current files: {feedback}");
                Err(PlanError::new(Reason::GateErrored, message))
            }
        }
    }
}

fn not_judged(fault: &BaseError) -> PlanError {
    let reason = match fault {
        BaseError::Stopped => Reason::PlanFailed,
        _ => Reason::GateErrored,
    };
    PlanError::new(reason, chain(fault))
}

/// Copies the ignored files that rooms need, before the agent starts. Adds a note for each missing
/// file.
fn keep_ignored(gate: &Gate, origin: &Path, folder: &Path, notes: &mut Vec<String>) {
    let included = gate.lanes.iter().chain(&gate.held_out).flat_map(|lane| &lane.include_ignored);
    let included = included.filter(|path| !gate.installed.folders.contains(path));
    for path in included.chain(&gate.installed.files) {
        let (from, to) = (origin.join(path), folder.join(path));
        let is_file = from.symlink_metadata().is_ok_and(|meta| meta.is_file());
        let copied = || to.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::copy(&from, &to).map(drop));
        match is_file.then(copied) {
            Some(Ok(())) => {}
            Some(Err(error)) => notes.push(format!("cannot copy the ignored file `{path}` for the checks: {error}")),
            None => notes.push(format!("`{path}` in `include_ignored` is not a file in the workspace")),
        }
    }
}

fn tool_host(
    task: &Task,
    settings: &DriverSettings,
    gate: &Gate,
    run: &RunDir,
    workspace: &PreparedWorkspace,
) -> Result<ToolHost, HostError> {
    let host = HostSettings {
        root: settings.workspace.clone(),
        outputs_dir: run.outputs(),
        protected: gate.seal.protection().rules().cloned().collect(),
        allow_edit: task.allow_edit.iter().cloned().chain(gate.compared_by_parts()).collect(),
        files: task.files.clone(),
        env: settings.env.clone(),
        max_result: crate::limits::MAX_RESULT,
        shell_timeout: crate::limits::SHELL_TIMEOUT,
        bounds: settings.limits.bounds(),
    };
    let rules = enclosure::rules(settings, task, run, &workspace.dependencies);
    let shelf = memory::shelf(settings, Some(run.run())).filter(|_| gate.hidden.is_none());
    ToolHost::behind(host, shelf, workspace.sandbox.clone(), rules)
}

/// Exports the commit of `lanes_from` into a folder that does not exist yet. Returns `None` if the
/// lanes of the workspace are used.
///
/// # Errors
/// [`PlanError`] if the repository or the commit does not exist.
async fn export_lanes(
    settings: &DriverSettings,
    trees: &Trees,
    into: &Path,
    stop: &CancellationToken,
) -> Result<Option<PathBuf>, PlanError> {
    let Some(rev) = &settings.lanes_from else { return Ok(None) };
    let exported = async {
        let repository =
            UserRepository::around(trees, &settings.env, stop).await?.ok_or(DeliveryError::NoRepository)?;
        repository.export(rev, into, stop).await
    };
    let done: Result<(), DeliveryError> = exported.await;
    done.map_err(|fault| {
        PlanError::bad(format!("cannot read the lanes of `{rev}` (--lanes-from): {}", chain(&fault)))
    })?;
    Ok(Some(into.to_owned()))
}

/// Exports the commit of `lanes_from` for a caller that starts no run. Creates all files in
/// `scratch`.
///
/// # Errors
/// [`PlanError`], as for a run with these settings.
pub async fn lanes_at(settings: &DriverSettings, scratch: &Path) -> Result<Option<PathBuf>, PlanError> {
    if settings.lanes_from.is_none() {
        return Ok(None);
    }
    let (stop, path) = (CancellationToken::new(), variable(settings, "PATH"));
    let trees = Trees::open(&scratch.join("git"), &settings.workspace, path, &stop).await;
    let trees = trees.map_err(|fault| PlanError::bad(chain(&fault)))?;
    export_lanes(settings, &trees, &scratch.join("lanes"), &stop).await
}
