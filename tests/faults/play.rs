//! A run of one case: the real machine and the real provider against a real socket, with a clock
//! that skips every pause.
//!
//! The player handles provider requests of the machine as the driver does. It pretends that tools,
//! gate and report are done.

use crate::faults::rows::Case;
use crate::faults::server::{Act, Script, Server};
use crate::faults::voice::Wire;
use crate::support::PATIENCE;
use fledge::chat::{Block, FileChange, FileChangeKind, Message, ToolOutcome};
use fledge::elapsed::Elapsed;
use fledge::id::{CallId, RunId};
use fledge::provider::{Endpoint, ModelRequest, Provider, Secret, connect};
use fledge::run::{Action, AgentEvent, Event, Run, RunPlan, RunSpec, TaskResult, ToolAccess, ToolRole, ToolRule};
use fledge::verdict::{Ruling, StopCause, Verdict};
use std::collections::VecDeque;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The key of every endpoint, which must not appear anywhere.
pub(crate) const KEY: &str = "sk-canary-93b1e6d2";
/// The result of a case.
pub(crate) struct Played {
    pub(crate) result: TaskResult,
    pub(crate) server: Server,
    /// The number of tools that ran.
    pub(crate) tools: usize,
    /// The number of summaries of the conversation.
    pub(crate) summaries: usize,
    /// The pauses before further attempts.
    pub(crate) pauses: Vec<Duration>,
    /// All watcher events and journal records, as text.
    pub(crate) told: String,
    pub(crate) conversation: Vec<Message>,
    /// The duration of the case, or the time from its cancellation to its end.
    pub(crate) took: Duration,
    /// The model's connection was still open after the end.
    pub(crate) holds_on: bool,
}

/// Plays a case to its end.
pub(crate) async fn play(wire: Wire, case: &Case) -> Played {
    let server = if case.is_raw { Server::raw(&case.scripts) } else { Server::open(&case.scripts) };
    Stage::set(wire, case, server, false).play(case).await
}

/// Plays a case and cancels it in the middle of its fault.
pub(crate) async fn cancel(wire: Wire, case: &Case) -> Played {
    let mut scripts = case.scripts.clone();
    scripts[case.fault_at] = halved(&scripts[case.fault_at]);
    let server = if case.is_raw { Server::raw(&scripts) } else { Server::open(&scripts) };
    Stage::set(wire, case, server, true).play(case).await
}

/// Returns the first half of a script, which then stalls unless it continues endlessly.
pub(crate) fn halved(script: &Script) -> Script {
    if script.iter().any(|act| matches!(act, Act::Drip(..) | Act::Flood(_) | Act::Stall)) {
        return script.clone();
    }
    match script.first() {
        Some(Act::Send(bytes)) => vec![Act::Send(bytes[..bytes.len() / 2].to_vec()), Act::Stall],
        Some(Act::Drip(..) | Act::Flood(_) | Act::Stall | Act::Reset) | None => vec![Act::Stall],
    }
}

struct Stage {
    run: Run,
    models: Vec<Arc<dyn Provider>>,
    server: Server,
    /// The player cancels the case.
    cancels: bool,
    cancelled: Option<Instant>,
    now: Elapsed,
    coming: VecDeque<Event>,
    tools: usize,
    summaries: usize,
    pauses: Vec<Duration>,
    told: String,
}

impl Stage {
    fn set(wire: Wire, case: &Case, server: Server, cancels: bool) -> Self {
        let base = case.address.clone().unwrap_or_else(|| format!("http://{}/v1", server.address()));
        let base = base.replace("PORT", &server.address().port().to_string());
        let model = |name: &str| {
            let mut endpoint = Endpoint::new(wire.kind(), name);
            (endpoint.base_url, endpoint.key) = (Some(base.clone()), Some(Secret::new(KEY)));
            // A cancelled case has unlimited time, so that nothing else ends it.
            endpoint.clocks = if cancels { endpoint.clocks } else { case.clocks };
            endpoint.max_response = if cancels { endpoint.max_response } else { case.max_response };
            connect(endpoint).unwrap()
        };
        let models = ["scripted", "second"][..case.models].iter().map(|name| model(name)).collect();
        let coming = [Event::TaskSubmitted { spec: Box::new(spec(case)) }].into();
        let run = Run::new();
        let (tools, summaries, pauses, told) = (0, 0, Vec::new(), String::new());
        Self { run, models, server, cancels, cancelled: None, now: Elapsed(0), coming, tools, summaries, pauses, told }
    }

    async fn play(mut self, case: &Case) -> Played {
        let begun = Instant::now();
        while let Some(event) = self.next() {
            assert!(begun.elapsed() < PATIENCE, "still {} after {PATIENCE:?}", self.run.label());
            let _written_to_a_string = writeln!(self.told, "{}", serde_json::to_string(&event).unwrap());
            for action in self.run.handle(self.now, event) {
                self.perform(action, case).await;
            }
        }
        let took = self.cancelled.unwrap_or(begun).elapsed();
        let is_open =
            self.cancelled.is_some() && self.server.count() > 0 && case.address.is_none() && self.pauses.is_empty();
        let holds_on = is_open && tokio::time::timeout(PATIENCE, self.server.hung_up()).await.is_err();
        let result = self.run.result().expect("it ended");
        let conversation = self.run.conversation().to_vec();
        let Self { server, tools, summaries, pauses, told, .. } = self;
        Played { result, server, tools, summaries, pauses, told, conversation, took, holds_on }
    }

    /// Returns the next event: an answer, or else the passing of time.
    fn next(&mut self) -> Option<Event> {
        if let Some(event) = self.coming.pop_front() {
            return Some(event);
        }
        let due = self.run.deadline()?;
        if self.cancels && self.cancelled.is_none() {
            return Some(self.cancel()); // in the pause before the next attempt
        }
        self.pauses.push(due.since(self.now));
        self.now = due;
        Some(Event::DeadlinePassed)
    }

    fn cancel(&mut self) -> Event {
        self.cancelled = Some(Instant::now());
        Event::CancelRequested { cause: StopCause::Token, partial_text: String::new() }
    }

    async fn perform(&mut self, action: Action, case: &Case) {
        let event = match action {
            Action::Plan { call } => Event::PlanReady { call, plan: Box::new(plan(case)) },
            Action::CallModel { call, model, most } => self.call_model(call, model, most).await,
            Action::RunTool { call, .. } => {
                self.tools += 1;
                let change = FileChange {
                    path: format!("f{}", self.tools),
                    kind: FileChangeKind::Created,
                    added: 1,
                    removed: 0,
                };
                let outcome = ToolOutcome { change: Some(change), ..ToolOutcome::ok(format!("done {}", self.tools)) };
                Event::ToolFinished { call, outcome }
            }
            Action::RunHooks { call } => {
                Event::HooksFinished { call, notes: Vec::new(), reported: Vec::new(), checkpoint: None }
            }
            Action::Compact { call, .. } => {
                self.summaries += 1;
                Event::CompactionFinished {
                    call,
                    result: Ok("in short".into()),
                    usage: Default::default(),
                    model: String::new(),
                    error: None,
                }
            }
            Action::RunGate { call, .. } => Event::GateFinished { call, verdict: Box::new(passed()) },
            Action::SaveReport { call } => Event::ReportSaved { call, saved: Box::default() },
            Action::Emit { event } => {
                let event: AgentEvent = event;
                let _written_to_a_string = writeln!(self.told, "{}", serde_json::to_string(&event).unwrap());
                return;
            }
            Action::AbortInFlight => return, // nothing is in flight: its future was dropped
            Action::AskConfirmation { .. }
            | Action::RunChild { .. }
            | Action::AnswerQuery { .. }
            | Action::Deliver { .. } => {
                panic!("unexpected action: {action:?}")
            }
        };
        self.coming.push_back(event);
    }

    async fn call_model(&mut self, call: CallId, model: usize, max_output: Option<u64>) -> Event {
        let request = ModelRequest {
            system: self.run.system().to_owned(),
            messages: Arc::from(self.run.conversation()),
            tools: Arc::clone(self.run.tools()),
            turn: self.run.next_turn(),
            max_output,
        };
        let provider = self.models[model].clone();
        let middle = async {
            match self.cancels {
                true => self.server.middle().await,
                false => std::future::pending().await,
            }
        };
        let answer = tokio::select! {
            answer = tokio::time::timeout(PATIENCE, provider.complete(&request, &|_| ())) => Some(answer.expect("it ends")),
            () = middle => None,
        };
        match answer {
            Some(Ok(reply)) => Event::ModelCompleted { call, reply: Box::new(reply) },
            Some(Err(error)) => Event::ModelFailed { call, error },
            None => self.cancel(),
        }
    }
}

fn spec(case: &Case) -> RunSpec {
    let mut spec = RunSpec::new(RunId::new("run"), "a fault", "Do it.");
    spec.models = ["scripted", "second"][..case.models].iter().map(|name| (*name).to_owned()).collect();
    spec.limits.loop_threshold = 1000;
    spec.limits.tokens = case.tokens;
    spec
}

/// Returns a plan with two tools, and with a conversation long enough to summarise.
fn plan(case: &Case) -> RunPlan {
    let rule = |name: &str, role| ToolRule { name: name.into(), access: ToolAccess::Allowed, role };
    let rules = vec![rule("files-read", ToolRole::Reader), rule("files-write", ToolRole::Writer)];
    let earlier = |place: usize| match place % 2 {
        0 => Message::user("Go on."),
        _ => Message::assistant(vec![Block::Text { text: "I go on.".into() }]),
    };
    let mut messages = vec![Message::user("Do it.")];
    if case.is_long {
        messages.extend((1..21).map(earlier));
    }
    RunPlan { system: "Be brief.".into(), messages, rules, ..RunPlan::default() }
}

fn passed() -> Verdict {
    let (steps, findings, notes) = (Vec::new(), Vec::new(), Vec::new());
    let (feedback, signature) = (String::new(), String::new());
    Verdict {
        ruling: Ruling::Passed,
        steps,
        findings,
        duration_ms: 1,
        feedback,
        signature,
        notes,
        installed: None,
        failed_before: Vec::new(),
        unchanged_since: None,
        proof: None,
    }
}
