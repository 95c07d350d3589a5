//! Sub-agents. Each one has its own machine, which is driven inside the run that it belongs to.
//!
//! A sub-agent writes to the same journal, uses the same tool host and asks the same person as its
//! run. Its end is the answer to a call. No gate judges it.

use super::bus::{EventBus, EventCount};
use super::drive::{DriveStart, RunDrive};
use super::effects::EffectRunner;
use super::inbox::InboxSender;
use super::journal::JournalWriter;
use super::spawn::SpawnRequest;
use super::stop::StopToken;
use super::{DriverSettings, interrupted};
use crate::chat::{FileChange, ToolOutcome, money};
use crate::elapsed::Elapsed;
use crate::id::{CallId, RunId};
use crate::limits::Limits;
use crate::run::{Event, ModelTerms, Run, RunBill, RunSpec, TaskResult};
use crate::verdict::Reason;
use futures_util::FutureExt;
use serde_json::Value;
use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

/// Bytes of a sub-agent's report that its parent gets.
const REPORT: usize = 12 * 1024;
/// The maximum number of changed paths to name.
const PATHS: usize = 60;

/// A sub-agent that is about to start.
struct SubAgent {
    call: CallId,
    spec: RunSpec,
    effects: EffectRunner,
    bus: EventBus,
    stop: StopToken,
    journal: JournalWriter,
    event_count: EventCount,
    since: Elapsed,
    /// The queue of its parent.
    outbox: InboxSender,
}

impl RunDrive<'_> {
    /// Starts a sub-agent. Its result arrives in the inbox. A sub-agent that cannot start costs
    /// nothing.
    pub(super) fn run_child(&mut self, call: CallId, input: &Value, limits: Limits) {
        self.effects.show_logs(&self.run);
        match self.child(call, input, limits) {
            Ok(child) => {
                let lost = finished(call, ToolOutcome::error("internal error of the sub-agent"), RunBill::default());
                self.inbox.start("child", child.work(), lost);
            }
            Err(why) => {
                self.inbox.outbox().send(finished(call, ToolOutcome::error(why), RunBill::default()));
            }
        }
    }

    /// Starts a sub-agent that an earlier process was asked for. If it had begun, its progress is
    /// unknown, so it is not started again.
    pub(super) fn run_child_again(&mut self, call: CallId, input: &Value, limits: Limits) {
        match self.lost.remove(&call) {
            None => self.run_child(call, input, limits),
            Some(bill) => self.effects.say_child_interrupted(call, bill, &self.run, &mut self.inbox),
        }
    }

    fn child(&self, call: CallId, input: &Value, limits: Limits) -> Result<SubAgent, String> {
        let (wish, effects) = (SpawnRequest::read(input)?, &self.effects);
        let ready = effects.ready.get().ok_or("sub-agents are not available: do the work yourself")?;
        let (plan, tier) = wish.plan(&self.run, effects.lineage.tier().unwrap_or(effects.task.tier), &ready.servers)?;
        let lineage = effects.lineage.child(effects.lineage.number(call), plan, tier);
        let path = lineage.path().unwrap_or_default();
        let settings = Arc::new(effects.settings.for_child(&path, self.run.model()));
        let turns = wish.turns.map_or(limits.turns, |turns| turns.min(limits.turns));
        let spec = RunSpec {
            depth: lineage.depth(),
            limits: Limits { turns, ..limits },
            seed: path.bytes().fold(call.0, |seed, byte| seed.rotate_left(7) ^ u64::from(byte)),
            ..spec(self.id().clone(), &wish, &settings, &self.run)
        };
        Ok(SubAgent {
            call,
            spec,
            bus: self.bus.clone(),
            stop: effects.stop.by(self.inbox.stop_token()),
            journal: self.journal.for_agent(path),
            event_count: self.event_count.clone(),
            since: self.run.now(),
            outbox: self.inbox.outbox(),
            effects: EffectRunner { settings, lineage, ..effects.clone() },
        })
    }
}

impl DriverSettings {
    /// Returns the settings of a sub-agent. Its models are those that its parent has left.
    fn for_child(&self, path: &str, from: usize) -> Self {
        let mut settings = self.clone();
        settings.models.drain(..from.min(self.models.len().saturating_sub(1)));
        for model in &mut settings.models {
            if let Some(provider) = model.provider.for_child(path) {
                model.provider = provider;
            }
        }
        settings
    }
}

/// Builds the run spec of a sub-agent, except for its depth, limits and seed.
fn spec(run: RunId, wish: &SpawnRequest, settings: &DriverSettings, parent: &Run) -> RunSpec {
    let terms: Vec<ModelTerms> = settings.models.iter().map(|model| model.terms).collect();
    let parents = parent.spec();
    RunSpec {
        verify: false,
        max_retries: 0,
        parallel_reads: parents.parallel_reads,
        confirm_within_ms: parents.confirm_within_ms,
        models: settings.models.iter().map(|model| model.provider.name()).collect(),
        terms,
        context_window: parents.context_window,
        ..RunSpec::new(run, wish.title(), wish.task())
    }
}

impl SubAgent {
    /// Runs the sub-agent to its end and returns the answer for its parent.
    async fn work(self) -> Event {
        let Self { call, spec, effects, bus, stop, journal, event_count, since, outbox } = self;
        let (run, ready) = (spec.run.clone(), effects.ready.get().cloned());
        let path = effects.lineage.path().unwrap_or_default();
        let drive = RunDrive::new(&bus, &stop, effects, journal, run).beside(since, event_count);
        let mut unheard = UndeliveredEvents { drive, call, outbox: Some(outbox) };
        let drive = &mut unheard.drive;
        let went = AssertUnwindSafe(drive.run(DriveStart::Task(Box::new(spec)))).catch_unwind().await;
        if went.is_err() {
            drive.inbox.abort().await; // no one waits for its effects any more
        }
        unheard.outbox = None;
        let drive = &unheard.drive;
        let (bill, result) = (drive.run.bill(), drive.run.result());
        let Some(result) = result.filter(|_| went.is_ok()) else {
            return finished(call, ToolOutcome::error("internal error of the sub-agent"), bill);
        };
        let is_error = result.reason != Reason::Skipped;
        let report = cut(result.summary.trim());
        let id = drive.effects.lineage.outside(CallId(0));
        let text = match ready {
            Some(ready) if !report.is_empty() => {
                ready.host.receive(id, &format!("the sub-agent {path}"), &report, is_error).content
            }
            Some(_) | None => "(no report)".to_owned(),
        };
        let content = format!("{}{text}\n\n{}", opening(&result), closing(&bill));
        let outcome = if is_error { ToolOutcome::error(content) } else { ToolOutcome::ok(content) };
        finished(call, outcome, bill)
    }
}

/// A sub-agent at work. If it is dropped because it did not stop in time, its parent gets the bill.
struct UndeliveredEvents<'a> {
    drive: RunDrive<'a>,
    call: CallId,
    outbox: Option<InboxSender>,
}

impl Drop for UndeliveredEvents<'_> {
    fn drop(&mut self) {
        let Some(outbox) = self.outbox.take() else { return };
        let RunDrive { run, effects, sent, .. } = &self.drive;
        // A model call in flight is charged what is reserved for it, unless it was not sent. The
        // costs of further sub-agents are unknown.
        let unsent = run.awaited().into_iter().filter(|call| !sent.has(*call));
        let free = effects.lineage.asked_for().into_iter().chain(unsent).map(|call| (call, RunBill::default()));
        let bill = run.last_bill(&free.collect::<BTreeMap<_, _>>());
        let late = format!("The sub-agent did not stop in time.\n\n{}", closing(&bill));
        outbox.send(finished(self.call, ToolOutcome::error(late), bill));
    }
}

impl EffectRunner {
    /// Answers for a sub-agent that was under way when fledge died.
    fn say_child_interrupted(&self, call: CallId, bill: RunBill, run: &Run, inbox: &mut super::inbox::Inbox) {
        let unknown = format!("{UNKNOWN}\n\n{}", closing(&bill));
        let lost = finished(call, ToolOutcome::error(unknown), bill.clone());
        let Some(ready) = self.ready.get() else { return inbox.outbox().send(lost) };
        let (trees, began, stop) = (ready.workspace.trees.clone(), ready.seen_base(run), inbox.stop_token());
        let effect = async move {
            let differs = interrupted::what_differs(&trees, began.as_ref(), &stop).await;
            let differs = differs.map(|differs| format!("\n\n{differs}")).unwrap_or_default();
            finished(call, ToolOutcome::error(format!("{UNKNOWN}\n\n{}{differs}", closing(&bill))), bill)
        };
        inbox.start("interrupted", effect, lost);
    }
}

/// The answer for a sub-agent that was under way when fledge was interrupted.
const UNKNOWN: &str = "fledge was interrupted while this sub-agent was at work. \
    The sub-agent may have done all, some or none of its work. fledge did not start it again. \
    Check the files before you continue.";

fn finished(call: CallId, outcome: ToolOutcome, bill: RunBill) -> Event {
    let RunBill { usage, turns, requests, by_model, changes } = bill;
    Event::ChildFinished { call, outcome, usage, turns, requests, by_model, changes }
}

/// Returns why the sub-agent ended. Empty if it completed.
fn opening(result: &TaskResult) -> String {
    match result.reason {
        Reason::Skipped => String::new(),
        _ => format!("The sub-agent did not finish: {}. Its last message:\n", result.message),
    }
}

/// Cuts the report of the sub-agent to the length that its parent gets.
fn cut(text: &str) -> String {
    if text.len() <= REPORT {
        return text.to_owned();
    }
    let kept = &text[..text.floor_char_boundary(REPORT)];
    format!("{kept}\n[… {} bytes left out: the report is too long]", text.len() - kept.len())
}

/// Returns the changed files and the costs, as fledge counted them.
fn closing(bill: &RunBill) -> String {
    let change = |change: &FileChange| format!("{} +{} -{}", change.path, change.added, change.removed);
    let mut files: Vec<String> = bill.changes.iter().take(PATHS).map(change).collect();
    if bill.changes.len() > PATHS {
        files.push(format!("and {} more", bill.changes.len() - PATHS));
    }
    let files =
        if files.is_empty() { "none by file tools (commands are not counted)".to_owned() } else { files.join(", ") };
    let cost = bill.usage.cost_micros.map(|micros| format!(", {}", money(micros))).unwrap_or_default();
    let (turns, input, output) = (bill.turns, bill.usage.input_tokens, bill.usage.output_tokens);
    format!("Files changed: {files}\nUsed: {turns} turns, {input} tokens in, {output} out{cost}")
}

#[cfg(test)]
#[path = "sub_agent_tests.rs"]
mod tests;
