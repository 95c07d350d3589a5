//! Performs the machine's actions: one action, one effect, one event. Decides nothing.

use super::base_run::BaseRun;
use super::hooks::{UnsavedPaths, only_looks};
use super::inbox::{Inbox, InboxSender};
use super::journal::AgentLineage;
use super::prepared_workspace::PreparedWorkspace;
use super::stop::StopToken;
use super::{DriverSettings, environment, interrupted, memory, report, servers};
use crate::chat::ToolOutcome;
use crate::elapsed::Elapsed;
use crate::error_chain::chain;
use crate::fail_point::reach;
use crate::gate::{Gate, Seal, forget_installations, mask_logs};
use crate::id::{CallId, TreeId};
use crate::mcp::McpServers;
use crate::run::{Action, Event, ModelQuery, Run, SavedReport, StateName, TaskResult, WorkplaceState};
use crate::store::RunDir;
use crate::task::Task;
use crate::tool::{LANE_LOG, ToolHost, ToolRequest};
use crate::verdict::{Ruling, StepProgress, Verdict};
use crate::workspace::worktree::Worktree;
use std::sync::{Arc, OnceLock};
use tokio_util::sync::CancellationToken;

/// The state that the effects of one run share.
#[derive(Debug, Clone)]
pub(super) struct EffectRunner {
    pub(super) settings: Arc<DriverSettings>,
    pub(super) task: Arc<Task>,
    pub(super) run_dir: RunDir,
    /// The user's request to stop.
    pub(super) stop: StopToken,
    /// Set in Planning. Before that, there is neither a gate nor a tool host.
    pub(super) ready: Arc<OnceLock<Arc<RunReady>>>,
    /// The agent of the run whose actions these are.
    pub(super) lineage: AgentLineage,
    /// The worktree of the run, if it has one.
    pub(super) worktree: Option<Arc<Worktree>>,
}

#[derive(Debug)]
pub(super) struct RunReady {
    pub(super) workspace: PreparedWorkspace,
    pub(super) gate: Option<Arc<Gate>>,
    /// Also present without a gate: the end of every run checks git directories.
    pub(super) seal: Arc<Seal>,
    pub(super) host: Arc<ToolHost>,
    pub(super) servers: Arc<McpServers>,
    /// The gate run on the base, beside the agent.
    pub(super) base_run: OnceLock<BaseRun>,
    /// Changes by tools since the last kept state.
    pub(super) unkept: UnsavedPaths,
    /// The agent's final files in an unverified run, once they are kept.
    pub(super) left: OnceLock<TreeId>,
}

impl RunReady {
    /// Returns the tree that the agent began with.
    pub(super) fn seen_base(&self, run: &Run) -> Option<TreeId> {
        let hiding = self.gate.as_ref().filter(|gate| gate.hidden.is_some());
        hiding.map(|gate| gate.base().clone()).or_else(|| run.base().cloned())
    }

    /// Stops the tool host and the MCP servers. Then no process can change the workspace.
    pub(super) async fn close(&self) {
        tokio::join!(self.servers.close(), self.host.close());
        self.servers.tidy();
    }
}

/// The reason that a run cannot continue.
#[derive(Debug)]
pub(super) enum NotReadyReason {
    /// The kept gate is missing or changed, and will stay so.
    GateLost(String),
    /// Any other reason.
    NotNow(String),
}

impl EffectRunner {
    pub(super) fn new(settings: Arc<DriverSettings>, task: Arc<Task>, run_dir: RunDir, stop: StopToken) -> Self {
        let (ready, lineage) = (Arc::default(), AgentLineage::default());
        Self { settings, task, run_dir, stop, ready, lineage, worktree: None }
    }

    /// Starts the effect of an action. Its answer arrives in the inbox.
    pub(super) fn perform(&self, action: Action, run: &Run, inbox: &mut Inbox) {
        match action {
            Action::Plan { call } => match self.lineage.plan().cloned() {
                Some(plan) => inbox.outbox().send(Event::PlanReady { call, plan: Box::new(plan) }),
                None => self.plan(call, inbox),
            },
            Action::RunTool { call, tool, input } => {
                if tool == LANE_LOG {
                    self.show_logs(run);
                }
                self.run_tool(call, ToolRequest { call: self.lineage.outside(call), name: tool, input }, inbox);
            }
            Action::RunGate { call, attempt } => self.run_gate(call, attempt, run, inbox),
            Action::AnswerQuery { call, query: ModelQuery::File { path } } => self.answer(call, &path, run, inbox),
            Action::AnswerQuery { call, query: ModelQuery::Env { name } } => {
                let env = self.ready.get().and_then(|ready| ready.host.environment());
                let answer = environment::describe(env.as_deref().unwrap_or(&self.settings.env), name.as_deref());
                inbox.outbox().send(Event::QueryAnswered { call, answer });
            }
            Action::AskConfirmation { call, tool } => self.confirm(call, &tool, inbox),
            Action::RunHooks { call } => self.run_hooks(call, run, inbox),
            Action::Deliver { call, tree, base } => self.deliver(call, tree, base, run, inbox),
            Action::SaveReport { call } => self.save_report(call, run, inbox),
            // handled by the loop
            Action::CallModel { .. } | Action::Compact { .. } | Action::RunChild { .. } => {}
            Action::AbortInFlight | Action::Emit { .. } => {}
        }
    }

    /// Performs an action that an earlier process left unanswered. A call that may have changed
    /// something is not repeated, and the model is informed: its progress is unknown.
    pub(super) fn perform_again(&self, action: Action, run: &Run, inbox: &mut Inbox) {
        match action {
            Action::RunTool { call, tool, input } if !only_looks(&tool) => {
                if let Some(path) = input["path"].as_str() {
                    interrupted::tidy(&self.settings.workspace, path);
                }
                self.say_interrupted(call, run, inbox);
            }
            action => self.perform(action, run, inbox),
        }
    }

    /// Answers for a call that was under way when fledge died.
    fn say_interrupted(&self, call: CallId, run: &Run, inbox: &mut Inbox) {
        let finished = move |outcome| Event::ToolFinished { call, outcome };
        let Some(ready) = self.ready.get() else {
            return inbox.outbox().send(finished(ToolOutcome::error(interrupted::UNKNOWN)));
        };
        let (trees, began, stop) = (ready.workspace.trees.clone(), ready.seen_base(run), inbox.stop_token());
        let effect = async move { finished(interrupted::outcome(&trees, began.as_ref(), &stop).await) };
        inbox.start("interrupted", effect, finished(ToolOutcome::error(interrupted::UNKNOWN)));
    }

    /// Stops the tools and the gate run on the base.
    pub(super) async fn close(&self) {
        if let Some(ready) = self.ready.get() {
            tokio::join!(ready.close(), ready.stop_base());
        }
    }

    /// Removes what was installed for the checks. A resumed run installs it again.
    pub(super) async fn forget_installations(&self) {
        if !self.lineage.is_child() {
            forget_installations(self.run_dir.path()).await;
        }
    }

    /// Lets tools read the gate's output. A sub-agent has no gate and reads what its run may read.
    pub(super) fn show_logs(&self, run: &Run) {
        if let Some(ready) = self.ready.get().filter(|_| !self.lineage.is_child()) {
            ready.host.show_logs(run.step_logs());
        }
    }

    fn run_tool(&self, call: CallId, request: ToolRequest, inbox: &mut Inbox) {
        let finished = move |outcome| Event::ToolFinished { call, outcome };
        let Some(ready) = self.ready.get() else {
            return inbox.outbox().send(finished(ToolOutcome::error("the tools are not ready")));
        };
        let (ready, host, outbox, stop) = (ready.clone(), ready.host.clone(), inbox.outbox(), inbox.stop_token());
        ready.unkept.begins(&request.name);
        if ready.servers.may_have(&request.name) {
            let servers = ready.servers.clone();
            let effect = async move { finished(servers::call(&servers, &host, request, &stop).await) };
            return inbox.start("tool", effect, finished(ToolOutcome::error("the tool panicked")));
        }
        let effect = async move {
            let progress = |text| outbox.pass(Event::ToolProgress { call, text });
            let outcome = host.call(request, &stop, &progress).await;
            ready.unkept.ended(&outcome);
            finished(outcome)
        };
        inbox.start("tool", effect, finished(ToolOutcome::error("the tool panicked")));
    }

    fn answer(&self, call: CallId, path: &str, run: &Run, inbox: &mut Inbox) {
        let answered = move |answer: String| Event::QueryAnswered { call, answer };
        let Some(ready) = self.ready.get() else {
            return inbox.outbox().send(answered("the tools are not ready".into()));
        };
        let input = serde_json::json!({ "path": path });
        let request = ToolRequest { call: self.lineage.outside(call), name: "files-read".into(), input };
        let (host, stop, asker) = (ready.host.clone(), inbox.stop_token(), self.settings.asker.clone());
        let question = run.must_ask(&request.name).then(|| self.question(&request.name, &request.input));
        let effect = async move {
            if let Some(question) = question
                && let Err(why) = asker.agree(question, &stop).await
            {
                return answered(format!("denied: {why}"));
            }
            answered(host.call(request, &stop, &|_| {}).await.content)
        };
        inbox.start("query", effect, answered("the lookup failed".into()));
    }

    fn run_gate(&self, call: CallId, attempt: u32, run: &Run, inbox: &mut Inbox) {
        let finished = move |verdict| Event::GateFinished { call, verdict: Box::new(verdict) };
        let ready = self.ready.get().and_then(|ready| Some((ready.clone(), ready.gate.clone()?)));
        let Some((ready, gate)) = ready else {
            return inbox.outbox().send(finished(could_not_judge("there is no frozen gate")));
        };
        let site = ready.workspace.site(&self.settings, &self.task, &self.run_dir, run.tools());
        let (workspace, run, effects) = (ready.workspace.clone(), self.run_dir.run(), self.clone());
        let (outbox, stop): (InboxSender, CancellationToken) = (inbox.outbox(), inbox.stop_token());
        ready.unkept.anything();
        let effect = async move {
            let on_step = |progress: StepProgress| {
                let is_output = progress.printed().is_some();
                let event = Event::GateProgress { call, progress };
                if is_output { outbox.pass(event) } else { outbox.send(event) }
            };
            // No process may change the judged files, and the run on the base uses the same room.
            tokio::join!(ready.close(), ready.wait_for_base_run());
            if let Some(why) = effects.missing_worktree() {
                return finished(could_not_judge(&why));
            }
            let mut verdict = gate.judge(&site, attempt, &stop, &on_step).await;
            let tree = verdict.proof.as_ref().map(|proof| proof.tree.clone());
            if let Err(fault) = workspace.keep_candidate(&run, tree, gate.hidden.as_ref(), &stop).await
                && !stop.is_cancelled()
            {
                verdict.notes.push(format!("cannot keep the judged tree: {}", chain(&fault)));
            }
            finished(verdict)
        };
        inbox.start("gate", effect, finished(could_not_judge("the gate panicked")));
    }

    fn save_report(&self, call: CallId, run: &Run, inbox: &mut Inbox) {
        if self.lineage.is_child() {
            // The result of a sub-agent is the answer to a call.
            return inbox.outbox().send(Event::ReportSaved { call, saved: Box::default() });
        }
        let (effects, run, stop) = (self.clone(), run.clone(), inbox.stop_token().child_token());
        let failed = move |message: String| Event::ReportFailed { call, message };
        let effect = async move {
            effects.close().await; // no process may write while files are restored
            let mut notes = effects.put_back_configuration().await;
            notes.extend(effects.put_back_hidden(&stop).await);
            let (outside_tree, unseen) = effects.outside_tree(&run, &stop).await; // before fledge itself installs anything
            notes.extend(unseen.into_iter().chain(effects.moved(run.result().as_ref(), &stop).await));
            notes.extend(effects.bring_in_line(&run, &stop).await);
            let saved = SavedReport { notes: notes.clone(), outside_tree, ..SavedReport::default() };
            match effects.see_out(&stop, effects.save(&run, saved, &stop)).await {
                Some(Ok(saved)) => Event::ReportSaved { call, saved: Box::new(saved) },
                Some(Err(message)) => failed([&[message], notes.as_slice()].concat().join("; ")),
                None => failed("the report was not written before the run had to stop".into()),
            }
        };
        inbox.start("save", effect, failed("writing the report panicked".into()));
    }

    /// Writes the report of a run whose report or journal failed, wherever possible, so that none
    /// says otherwise. With `again`, only where it can replace an older report.
    pub(super) fn replace_report(&self, failed: &Event, run: &Run, again: bool) {
        if self.lineage.is_child() {
            return;
        }
        let mut ending = run.clone();
        ending.handle(Elapsed::default(), failed.clone());
        let mut copies = self.settings.report_copies();
        copies.retain(|copy| !again || copy.replaces());
        if let Some(result) = ending.result() {
            report::replace(&result, &self.task, &self.settings, &self.run_dir, &copies);
        }
    }

    /// Writes the report of an ended run again if it contradicts the journal. A process may have
    /// reported that it could not record the end, although the journal has it.
    pub(super) fn correct_report(&self, run: &Run) -> Result<(), String> {
        // A run cancelled before its start has no report. After a panic, the journal is incomplete.
        let has_one = |result: &TaskResult| run.state() == StateName::Idle && !result.run.as_str().is_empty();
        match run.result().filter(has_one) {
            Some(result) if !report::says(&self.run_dir, &result) => {
                report::correct(&result, &self.task, &self.settings, &self.run_dir)?;
                self.remember(&result);
                Ok(())
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Keeps a memory of this run for later runs.
    pub(super) fn remember(&self, result: &TaskResult) {
        memory::keep(result, &self.task, &self.settings);
    }

    /// Writes the patch and the report, and adds what only the report knows to `saved`.
    async fn save(&self, run: &Run, mut saved: SavedReport, stop: &CancellationToken) -> Result<SavedReport, String> {
        if let Some(path) = self.settings.patch.as_ref().filter(|_| !self.has_left()) {
            self.write_patch(path, run, stop).await?;
        }
        let Some(mut result) = run.result() else { return Ok(saved) };
        let tree = match result.tree.clone().filter(|_| result.verified) {
            None if !self.has_left() => self.keep_state().await,
            tree => tree,
        };
        // After a stop, leave the worktree first. Once it is removed, there is nothing to compare.
        let is_late = self.worktree.is_some() && self.stop.token().is_cancelled();
        if !is_late {
            saved.difference = self.difference(run, tree.clone(), stop).await;
        }
        saved.worktree = self.leave_worktree(&result, stop).await;
        if is_late && !self.has_left() {
            saved.difference = self.difference(run, tree, stop).await;
        }
        if saved.worktree.as_ref().is_some_and(|it| it.state == WorkplaceState::Removed) {
            saved.outside_tree.ignored.clear(); // gone with the worktree
        }
        result.worktree = saved.worktree.clone().or(result.worktree);
        result.warnings.extend_from_slice(&saved.notes);
        result.difference.clone_from(&saved.difference);
        result.outside_tree.clone_from(&saved.outside_tree);
        if self.stop.token().is_cancelled() {
            // A stopped lane has left its logs unmasked.
            mask_logs(&self.run_dir.logs(), &self.settings.secrets).await;
        }
        reach("report", "begun").map_err(|error| chain(&error))?;
        report::save(&result, &self.task, &self.settings, &self.run_dir, stop).await?;
        reach("report", "done").map_err(|error| chain(&error))?;
        Ok(saved)
    }
}

fn could_not_judge(why: &str) -> Verdict {
    Verdict {
        ruling: Ruling::Errored,
        steps: Vec::new(),
        findings: Vec::new(),
        duration_ms: 0,
        feedback: why.into(),
        signature: String::new(),
        notes: Vec::new(),
        installed: None,
        failed_before: Vec::new(),
        unchanged_since: None,
        proof: None,
    }
}
