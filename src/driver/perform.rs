//! One action, one effect, one event: how each thing that the machine asks for is done. Decides nothing.

use super::briefing::{Briefing, chain, prepare};
use super::inbox::{Inbox, Outbox};
use super::{Settings, enclosure, interrupted, memory, report};
use crate::chat::{FileChange, ModelError, ModelFault, ToolOutcome, Usage};
use crate::fail_point::reach;
use crate::gate::{Gate, Site};
use crate::id::CallId;
use crate::moment::Moment;
use crate::process::wall::{Wall, WallKind};
use crate::provider::Request;
use crate::run::{Action, Event, Query, Run, StateName, TaskResult};
use crate::store::{RunDir, StoreError, sha256, write_whole};
use crate::task::{GateChoice, Task};
use crate::tool::{Effect, HostError, HostSettings, Tool, ToolHost, ToolRequest};
use crate::verdict::{Reason, Ruling, StepProgress, Verdict};
use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use tokio_util::sync::CancellationToken;

/// What the effects of one run share.
#[derive(Debug)]
pub(super) struct Hands {
    pub(super) settings: Arc<Settings>,
    pub(super) task: Arc<Task>,
    pub(super) run_dir: RunDir,
    /// Made in Planning: there is neither a gate nor a tool host before.
    ready: Arc<OnceLock<Ready>>,
}

#[derive(Debug)]
struct Ready {
    gate: Option<Arc<Gate>>,
    host: Arc<ToolHost>,
}

/// Why a run cannot go on.
#[derive(Debug)]
pub(super) enum Unready {
    /// What was kept of the gate is not there as it was written, and never will be.
    GateLost(String),
    /// Anything else.
    NotNow(String),
}

impl Hands {
    pub(super) fn new(settings: Arc<Settings>, task: Arc<Task>, run_dir: RunDir) -> Self {
        Self { settings, task, run_dir, ready: Arc::default() }
    }

    /// Starts an effect for an action; its answer comes through the inbox.
    pub(super) fn perform(&self, action: Action, run: &Run, inbox: &mut Inbox) {
        match action {
            Action::Plan { call } => self.plan(call, inbox),
            Action::CallModel { call, model } => self.call_model(call, model, run, inbox),
            Action::RunTool { call, tool, input } => {
                self.run_tool(ToolRequest { call, name: tool, input }, inbox);
            }
            Action::RunGate { call, attempt } => self.run_gate(call, attempt, inbox),
            Action::AnswerQuery { call, query: Query::File { path } } => self.answer(call, &path, inbox),
            Action::AskConfirmation { call, tool } => {
                let note = format!("nobody is there to approve {}", tool.name);
                inbox.outbox().send(Event::ConfirmationAnswered { call, approved: false, note });
            }
            Action::RunChild { call, .. } => {
                let outcome = ToolOutcome::error("sub-agents are not available: do the work yourself");
                inbox.outbox().send(Event::ChildFinished { call, outcome, usage: Usage::default() });
            }
            Action::RunHooks { call } => inbox.outbox().send(Event::HooksFinished { call, notes: Vec::new() }),
            Action::Compact { call, .. } => {
                let result = Err("summaries are not available: the conversation stays as it is".into());
                inbox.outbox().send(Event::CompactionFinished { call, result, usage: Usage::default() });
            }
            Action::SaveReport { call } => self.save_report(call, run, inbox),
            Action::AbortInFlight | Action::Emit { .. } => {} // the loop's own
        }
    }

    /// Does again what an earlier process was asked for and never answered. What may have changed something is not repeated: nobody knows
    /// how far it came, and the model is told so.
    pub(super) fn perform_again(&self, action: Action, run: &Run, inbox: &mut Inbox) {
        match action {
            Action::RunTool { call, tool, input } if !only_looks(&tool) => {
                if let Some(path) = input["path"].as_str() {
                    interrupted::tidy(&self.settings.workspace, path);
                }
                self.say_interrupted(call, inbox);
            }
            action => self.perform(action, run, inbox),
        }
    }

    /// The answer for a call that was under way when fledge died.
    fn say_interrupted(&self, call: CallId, inbox: &mut Inbox) {
        let (settings, stop) = (self.settings.clone(), inbox.stop_token());
        let finished = move |outcome| Event::ToolFinished { call, outcome };
        let effect = async move { finished(interrupted::outcome(&settings.workspace, &settings.env, &stop).await) };
        inbox.start("interrupted", effect, finished(ToolOutcome::error(interrupted::UNKNOWN)));
    }

    /// Ends what tools run in.
    pub(super) async fn close(&self) {
        if let Some(ready) = self.ready.get() {
            ready.host.close().await;
        }
    }

    /// Makes gate and tools ready again for a run that is past its planning. `gate_file` is the digest of what was kept of the gate.
    pub(super) async fn make_ready(
        &self,
        gate_file: &str,
        sandbox: Option<WallKind>,
        changes: &[FileChange],
    ) -> Result<(), Unready> {
        let wall = enclosure::raise(&self.settings).await.map_err(|fault| Unready::NotNow(fault.message))?;
        // The result says of the whole run which wall stood.
        if let Some(then) = sandbox.filter(|then| *then != wall.kind()) {
            let why = format!("it was begun in the sandbox {}, and here stands {}", then.name(), wall.kind().name());
            return Err(Unready::NotNow(why));
        }
        let path = self.run_dir.gate();
        let bytes = std::fs::read(&path).map_err(|error| {
            let why = format!("{} cannot be read: {error}", path.display());
            if error.kind() == ErrorKind::NotFound { Unready::GateLost(why) } else { Unready::NotNow(why) }
        })?;
        if sha256(&bytes) != gate_file {
            return Err(Unready::GateLost(format!("{} is not what was written", path.display())));
        }
        let gate = Gate::thaw(&bytes, &self.settings.workspace, &self.task.allow_edit);
        let gate = gate.map_err(|fault| Unready::NotNow(format!("{}: {}", path.display(), chain(&fault))))?;
        let host = tool_host(&self.task, &self.settings, Some(&gate), &self.run_dir, wall);
        let host = host.map_err(|error| Unready::NotNow(chain(&error)))?;
        host.recall(changes);
        let gate = (self.task.gate != GateChoice::Skip).then(|| Arc::new(gate));
        let _first = self.ready.set(Ready { gate, host: Arc::new(host) });
        Ok(())
    }

    fn plan(&self, call: CallId, inbox: &mut Inbox) {
        let (settings, task, run_dir, ready) =
            (self.settings.clone(), self.task.clone(), self.run_dir.clone(), self.ready.clone());
        let failed = move |reason, message| Event::PlanFailed { call, reason, message };
        let asked = self.settings.clone();
        let raised = async move { enclosure::raise(&asked).await };
        let work = move |wall: Wall| -> Event {
            let Briefing { mut plan, gate } = match prepare(&task, &settings) {
                Ok(briefing) => briefing,
                Err(fault) => return failed(fault.reason, fault.message),
            };
            enclosure::note(&settings, &wall, &mut plan);
            let host = match tool_host(&task, &settings, gate.as_deref(), &run_dir, wall) {
                Ok(host) => Arc::new(host),
                Err(error @ HostError::HelperInside { .. }) => return failed(Reason::NoSandbox, chain(&error)),
                Err(error) => return failed(Reason::PlanFailed, chain(&error)),
            };
            // Before the agent starts: by the time the run is taken up again, the workspace may say anything.
            if let Some(kept) = gate.as_deref().map(Gate::keep) {
                plan.gate_file = sha256(&kept);
                if let Err(error) = write_whole(&run_dir.gate(), &kept) {
                    return failed(Reason::PlanFailed, chain(&error));
                }
            }
            let gate = gate.filter(|_| task.gate != GateChoice::Skip);
            let _first = ready.set(Ready { gate, host });
            Event::PlanReady { call, plan: Box::new(plan) }
        };
        let lost = Event::PlanFailed { call, reason: Reason::Internal, message: "planning panicked".into() };
        let panicked = lost.clone();
        let effect = async move {
            match raised.await {
                Ok(wall) => tokio::task::spawn_blocking(move || work(wall)).await.unwrap_or(lost),
                Err(fault) => failed(fault.reason, fault.message),
            }
        };
        inbox.start("plan", effect, panicked);
    }

    fn call_model(&self, call: CallId, model: usize, run: &Run, inbox: &mut Inbox) {
        let failed =
            move |message: &str| Event::ModelFailed { call, error: ModelError::new(ModelFault::BadRequest, message) };
        let Some(provider) = self.settings.models.get(model).cloned() else {
            inbox.outbox().send(failed("there is no such model in this run"));
            return;
        };
        let request = Request {
            system: run.system().to_owned(),
            messages: Arc::from(run.conversation()),
            tools: Arc::from(run.tools()),
            turn: run.next_turn(),
        };
        let (outbox, stop) = (inbox.outbox(), inbox.stop_token());
        let effect = async move {
            let deltas = |delta| outbox.send(Event::ModelDelta { call, delta });
            tokio::select! {
                biased;
                () = stop.cancelled() => failed("stopped"),
                answer = provider.complete(&request, &deltas) => match answer {
                    Ok(reply) => Event::ModelCompleted { call, reply: Box::new(reply) },
                    Err(error) => Event::ModelFailed { call, error },
                },
            }
        };
        inbox.start("model", effect, failed("the provider panicked"));
    }

    fn run_tool(&self, request: ToolRequest, inbox: &mut Inbox) {
        let call = request.call;
        let finished = move |outcome| Event::ToolFinished { call, outcome };
        let Some(ready) = self.ready.get() else {
            inbox.outbox().send(finished(ToolOutcome::error("the tools are not ready")));
            return;
        };
        let (host, outbox, stop) = (ready.host.clone(), inbox.outbox(), inbox.stop_token());
        let effect = async move {
            let progress = |text| outbox.pass(Event::ToolProgress { call, text });
            finished(host.call(request, &stop, &progress).await)
        };
        inbox.start("tool", effect, finished(ToolOutcome::error("the tool panicked")));
    }

    fn answer(&self, call: CallId, path: &str, inbox: &mut Inbox) {
        let answered = move |answer: String| Event::QueryAnswered { call, answer };
        let Some(ready) = self.ready.get() else {
            inbox.outbox().send(answered("the tools are not ready".into()));
            return;
        };
        let request = ToolRequest { call, name: "files-read".into(), input: serde_json::json!({ "path": path }) };
        let (host, stop) = (ready.host.clone(), inbox.stop_token());
        let effect = async move { answered(host.call(request, &stop, &|_| {}).await.content) };
        inbox.start("query", effect, answered("looking it up failed".into()));
    }

    fn run_gate(&self, call: CallId, attempt: u32, inbox: &mut Inbox) {
        let finished = move |verdict| Event::GateFinished { call, verdict: Box::new(verdict) };
        let ready = self.ready.get().and_then(|ready| Some((ready.gate.clone()?, ready.host.clone())));
        let Some((gate, host)) = ready else {
            inbox.outbox().send(finished(could_not_judge("there is no frozen gate")));
            return;
        };
        let site = Site {
            root: self.settings.workspace.clone(),
            env: self.settings.env.clone(),
            logs: self.run_dir.logs(),
            project: self.run_dir.project().to_owned(),
            jobs: self.settings.jobs,
            on_tamper: self.task.on_tamper,
        };
        let (outbox, stop): (Outbox, CancellationToken) = (inbox.outbox(), inbox.stop_token());
        let effect = async move {
            let on_step = |progress| {
                let is_output = matches!(progress, StepProgress::Output { .. });
                let event = Event::GateProgress { call, progress };
                if is_output { outbox.pass(event) } else { outbox.send(event) }
            };
            host.close().await; // nobody is left who could change what is judged
            finished(gate.judge(&site, attempt, &stop, &on_step).await)
        };
        inbox.start("gate", effect, finished(could_not_judge("the gate panicked")));
    }

    fn save_report(&self, call: CallId, run: &Run, inbox: &mut Inbox) {
        inbox.outbox().send(match self.write_report(run) {
            Ok(()) => Event::ReportSaved { call },
            Err(message) => self.report_failure(call, message, run, true),
        });
    }

    /// The answer when a report cannot be kept, or what it rests on. As far as that goes, the report is written all the same, as the
    /// run ends now, so that none says otherwise; with `again`, where it can take the place of what is there already.
    pub(super) fn report_failure(&self, call: CallId, message: String, run: &Run, again: bool) -> Event {
        let failed = Event::ReportFailed { call, message };
        let mut ending = run.clone();
        ending.handle(Moment::default(), failed.clone());
        let takes = |path: &&PathBuf| !again || std::fs::metadata(path).map_or(true, |meta| meta.is_file());
        let copies: Vec<PathBuf> = self.settings.reports.iter().filter(takes).cloned().collect();
        if let Some(result) = ending.result() {
            report::replace(&result, &self.task, &self.settings, &self.run_dir, &copies);
        }
        failed
    }

    /// Writes the report of a run that is over anew where it says something else: a process that could not write down how the run ended has
    /// said so in the report, and the journal has it all the same.
    pub(super) fn correct_report(&self, run: &Run) -> Result<(), StoreError> {
        // One that was cancelled before its start has no report, and a panic leaves the journal in the middle.
        let has_one = |result: &TaskResult| run.state() == StateName::Idle && !result.run.as_str().is_empty();
        match run.result().filter(has_one) {
            Some(result) if !report::says(&self.run_dir, &result) => {
                report::save(&result, &self.task, &self.settings, &self.run_dir, &self.settings.reports)?;
                self.remember(&result);
                Ok(())
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Keeps what later runs may want to know of this one.
    pub(super) fn remember(&self, result: &TaskResult) {
        memory::keep(result, &self.task, &self.settings);
    }

    fn write_report(&self, run: &Run) -> Result<(), String> {
        let Some(result) = run.result() else { return Ok(()) };
        reach("report", "begun").map_err(|error| chain(&error))?;
        let saved = report::save(&result, &self.task, &self.settings, &self.run_dir, &self.settings.reports);
        saved.map_err(|error| chain(&error))?;
        reach("report", "done").map_err(|error| chain(&error))
    }
}

/// Whether a tool changes nothing, so that it may be run again. One that is not known may.
fn only_looks(tool: &str) -> bool {
    Tool::find(tool).is_some_and(|tool| tool.flags.effect == Effect::ReadOnly)
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
    }
}

fn tool_host(
    task: &Task,
    settings: &Settings,
    gate: Option<&Gate>,
    run: &RunDir,
    wall: Wall,
) -> Result<ToolHost, HostError> {
    let rules = gate.into_iter().flat_map(|gate| gate.seal.protection().rules());
    let host = HostSettings {
        root: settings.workspace.clone(),
        outputs_dir: run.outputs(),
        protected: rules.cloned().collect(),
        allow_edit: task.allow_edit.clone(),
        files: task.files.clone(),
        env: settings.env.clone(),
        max_result: crate::limits::MAX_RESULT,
        shell_timeout: crate::limits::SHELL_TIMEOUT,
    };
    ToolHost::behind(host, memory::shelf(settings, Some(run.run())), wall, enclosure::holes(settings, run))
}
