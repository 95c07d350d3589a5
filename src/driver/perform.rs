//! One action, one effect, one event: how each thing that the machine asks for is done. Decides nothing.

use super::briefing::chain;
use super::ground::Ground;
use super::inbox::{Inbox, Outbox};
use super::stop::Stop;
use super::{Settings, environment, interrupted, memory, report, servers, summary};
use crate::chat::{ModelError, ModelFault, ToolOutcome, Usage};
use crate::fail_point::reach;
use crate::gate::{Gate, Seal};
use crate::id::CallId;
use crate::mcp::Servers;
use crate::moment::Moment;
use crate::provider::Request;
use crate::run::{Action, Event, Query, Run, StateName, TaskResult};
use crate::store::RunDir;
use crate::task::Task;
use crate::tool::{Effect, Tool, ToolHost, ToolRequest};
use crate::verdict::{Ruling, StepProgress, Verdict};
use std::sync::{Arc, OnceLock};
use tokio_util::sync::CancellationToken;

/// What the effects of one run share.
#[derive(Debug, Clone)]
pub(super) struct Hands {
    pub(super) settings: Arc<Settings>,
    pub(super) task: Arc<Task>,
    pub(super) run_dir: RunDir,
    /// The user's wish to stop.
    pub(super) stop: Stop,
    /// Made in Planning: there is neither a gate nor a tool host before.
    pub(super) ready: Arc<OnceLock<Arc<Ready>>>,
}

#[derive(Debug)]
pub(super) struct Ready {
    pub(super) ground: Ground,
    pub(super) gate: Option<Arc<Gate>>,
    /// Also of a run without a gate: what git does is looked at whenever a run ends.
    pub(super) seal: Arc<Seal>,
    pub(super) host: Arc<ToolHost>,
    pub(super) servers: Arc<Servers>,
}

impl Ready {
    /// Ends what tools run in, and MCP servers: when this returns nobody is left who could change the workspace.
    pub(super) async fn close(&self) {
        tokio::join!(self.servers.close(), self.host.close());
        self.servers.tidy();
    }
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
    pub(super) fn new(settings: Arc<Settings>, task: Arc<Task>, run_dir: RunDir, stop: Stop) -> Self {
        Self { settings, task, run_dir, stop, ready: Arc::default() }
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
            Action::AnswerQuery { call, query: Query::Env { name } } => {
                let answer = environment::told(&self.settings.env, name.as_deref());
                inbox.outbox().send(Event::QueryAnswered { call, answer });
            }
            Action::AskConfirmation { call, tool } => {
                let note = format!("nobody is there to approve {}", tool.name);
                inbox.outbox().send(Event::ConfirmationAnswered { call, approved: false, note });
            }
            Action::RunChild { call, .. } => {
                let outcome = ToolOutcome::error("sub-agents are not available: do the work yourself");
                inbox.outbox().send(Event::ChildFinished {
                    call,
                    outcome,
                    usage: Usage::default(),
                    turns: 0,
                    by_model: Default::default(),
                });
            }
            Action::RunHooks { call } => inbox.outbox().send(Event::HooksFinished { call, notes: Vec::new() }),
            Action::Compact { call, upto } => self.summarise(call, upto, run, inbox),
            Action::Deliver { call, tree, base } => self.deliver(call, tree, base, run, inbox),
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
                self.say_interrupted(call, run, inbox);
            }
            action => self.perform(action, run, inbox),
        }
    }

    /// The answer for a call that was under way when fledge died.
    fn say_interrupted(&self, call: CallId, run: &Run, inbox: &mut Inbox) {
        let finished = move |outcome| Event::ToolFinished { call, outcome };
        let Some(ready) = self.ready.get() else {
            return inbox.outbox().send(finished(ToolOutcome::error(interrupted::UNKNOWN)));
        };
        let (trees, began, stop) = (ready.ground.trees.clone(), run.base().cloned(), inbox.stop_token());
        let effect = async move { finished(interrupted::outcome(&trees, began.as_ref(), &stop).await) };
        inbox.start("interrupted", effect, finished(ToolOutcome::error(interrupted::UNKNOWN)));
    }

    /// Ends what tools run in.
    pub(super) async fn close(&self) {
        if let Some(ready) = self.ready.get() {
            ready.close().await;
        }
    }

    fn call_model(&self, call: CallId, model: usize, run: &Run, inbox: &mut Inbox) {
        let failed =
            move |message: &str| Event::ModelFailed { call, error: ModelError::new(ModelFault::BadRequest, message) };
        let Some(provider) = self.settings.models.get(model).map(|model| model.provider.clone()) else {
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

    fn summarise(&self, call: CallId, upto: usize, run: &Run, inbox: &mut Inbox) {
        let Some(provider) = self.settings.models.get(run.model()).map(|model| model.provider.clone()) else {
            inbox.outbox().send(summary::failed(call, "there is no such model in this run".into()));
            return;
        };
        let messages: Arc<[_]> = run.conversation().iter().take(upto).cloned().collect();
        let (turn, stop) = (run.next_turn(), inbox.stop_token());
        let effect = async move {
            tokio::select! {
                biased;
                () = stop.cancelled() => summary::failed(call, "stopped".into()),
                event = summary::summarise(&provider, &messages, turn, call) => event,
            }
        };
        inbox.start("summary", effect, summary::failed(call, "the provider panicked".into()));
    }

    fn run_tool(&self, request: ToolRequest, inbox: &mut Inbox) {
        let call = request.call;
        let finished = move |outcome| Event::ToolFinished { call, outcome };
        let Some(ready) = self.ready.get() else {
            inbox.outbox().send(finished(ToolOutcome::error("the tools are not ready")));
            return;
        };
        let (host, outbox, stop) = (ready.host.clone(), inbox.outbox(), inbox.stop_token());
        if ready.servers.may_have(&request.name) {
            let servers = ready.servers.clone();
            let effect = async move { finished(servers::call(&servers, &host, request, &stop).await) };
            return inbox.start("tool", effect, finished(ToolOutcome::error("the tool panicked")));
        }
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
        let ready = self.ready.get().and_then(|ready| Some((ready.clone(), ready.gate.clone()?)));
        let Some((ready, gate)) = ready else {
            inbox.outbox().send(finished(could_not_judge("there is no frozen gate")));
            return;
        };
        let site = ready.ground.site(&self.settings, &self.task, &self.run_dir);
        let (ground, run) = (ready.ground.clone(), self.run_dir.run());
        let (outbox, stop): (Outbox, CancellationToken) = (inbox.outbox(), inbox.stop_token());
        let effect = async move {
            let on_step = |progress| {
                let is_output = matches!(progress, StepProgress::Output { .. });
                let event = Event::GateProgress { call, progress };
                if is_output { outbox.pass(event) } else { outbox.send(event) }
            };
            ready.close().await; // nobody is left who could change what is judged
            let mut verdict = gate.judge(&site, attempt, &stop, &on_step).await;
            let tree = verdict.proof.as_ref().map(|proof| proof.tree.clone());
            if let Err(fault) = ground.keep_candidate(&run, tree, &stop).await
                && !stop.is_cancelled()
            {
                verdict.notes.push(format!("the judged tree cannot be kept: {}", chain(&fault)));
            }
            finished(verdict)
        };
        inbox.start("gate", effect, finished(could_not_judge("the gate panicked")));
    }

    fn save_report(&self, call: CallId, run: &Run, inbox: &mut Inbox) {
        let (hands, run, stop) = (self.clone(), run.clone(), inbox.stop_token().child_token());
        let failed = move |message: String| Event::ReportFailed { call, message };
        let effect = async move {
            match hands.see_out(&stop, hands.save(&run, &stop)).await {
                Some(Ok(())) => Event::ReportSaved { call },
                Some(Err(message)) => failed(message),
                None => failed("the report was not written before the run had to stop".into()),
            }
        };
        inbox.start("save", effect, failed("writing the report panicked".into()));
    }

    /// Writes the report of a run that ends because its report cannot be kept, or what it rests on: as far as that goes, so that none says
    /// otherwise; with `again`, where it can take the place of what is there already.
    pub(super) fn replace_report(&self, failed: &Event, run: &Run, again: bool) {
        let mut ending = run.clone();
        ending.handle(Moment::default(), failed.clone());
        let mut copies = self.settings.outlets();
        copies.retain(|outlet| !again || outlet.replaces());
        if let Some(result) = ending.result() {
            report::replace(&result, &self.task, &self.settings, &self.run_dir, &copies);
        }
    }

    /// Writes the report of a run that is over anew where it says something else: a process that could not write down how the run ended has
    /// said so in the report, and the journal has it all the same.
    pub(super) fn correct_report(&self, run: &Run) -> Result<(), String> {
        // One that was cancelled before its start has no report, and a panic leaves the journal in the middle.
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

    /// Keeps what later runs may want to know of this one.
    pub(super) fn remember(&self, result: &TaskResult) {
        memory::keep(result, &self.task, &self.settings);
    }

    async fn save(&self, run: &Run, stop: &CancellationToken) -> Result<(), String> {
        if let Some(path) = &self.settings.patch {
            self.write_patch(path, run, stop).await?;
        }
        let Some(result) = run.result() else { return Ok(()) };
        reach("report", "begun").map_err(|error| chain(&error))?;
        report::save(&result, &self.task, &self.settings, &self.run_dir, stop).await?;
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
        proof: None,
    }
}
