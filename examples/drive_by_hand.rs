//! The state machine without a runtime, network or clock. This program acts as the driver and
//! prints the actions that the machine asks for after each event.
//!
//! ```text
//! cargo run --example drive_by_hand
//! ```
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use fledge::chat::{Block, Reply, StopReason, ToolCall, ToolInput, ToolOutcome};
use fledge::elapsed::Elapsed;
use fledge::id::{CallId, RunId};
use fledge::run::{Action, Event, Run, RunPlan, RunSpec, ToolAccess, ToolRole, ToolRule};
use fledge::verdict::{Ruling, Verdict};

fn main() {
    let mut run = Run::new();
    let mut clock = Elapsed(0);
    let mut event = Event::TaskSubmitted { spec: Box::new(RunSpec::new(RunId::new("by-hand"), "Example", "Do it")) };
    let mut attempt = 0;
    loop {
        clock = Elapsed(clock.0 + 100);
        let name = event.name();
        let actions = run.handle(clock, event);
        let asked: Vec<_> = actions.iter().map(Action::name).filter(|name| *name != "Emit").collect();
        println!("{:>5} ms  {name:<14} -> {:<13} asks for {asked:?}", clock.0, run.label());
        let Some(action) = actions.into_iter().find(|action| action.call().is_some()) else { break };
        event = answer(action, &mut attempt);
    }
    if let Some(result) = run.result() {
        println!("{} after {} attempts and {} turns", result.reason, result.attempts.len(), result.turns);
    }
}

/// Returns the event that answers an action of the machine.
fn answer(action: Action, attempt: &mut u32) -> Event {
    match action {
        Action::Plan { call } => {
            let tool = ToolRule { name: "touch".into(), access: ToolAccess::Allowed, role: ToolRole::Writer };
            Event::PlanReady { call, plan: Box::new(RunPlan { rules: vec![tool], ..RunPlan::default() }) }
        }
        Action::CallModel { call, .. } => Event::ModelCompleted { call, reply: Box::new(reply(*attempt, call)) },
        Action::RunTool { call, .. } => Event::ToolFinished { call, outcome: ToolOutcome::ok("done") },
        Action::RunHooks { call } => {
            Event::HooksFinished { call, notes: Vec::new(), reported: Vec::new(), checkpoint: None }
        }
        Action::RunGate { call, .. } => {
            *attempt += 1;
            let ruling = if *attempt == 1 { Ruling::Failed } else { Ruling::Passed };
            let verdict = Verdict {
                ruling,
                steps: Vec::new(),
                findings: Vec::new(),
                duration_ms: 50,
                feedback: "one test failed".into(),
                signature: "test".into(),
                notes: Vec::new(),
                failed_before: Vec::new(),
                unchanged_since: None,
                installed: None,
                proof: None,
            };
            Event::GateFinished { call, verdict: Box::new(verdict) }
        }
        Action::SaveReport { call } => Event::ReportSaved { call, saved: Box::default() },
        other => unreachable!("this example never gets to {}", other.name()),
    }
}

/// Returns a tool call in the first turn of the run, and a final answer in all later turns.
fn reply(attempt: u32, call: CallId) -> Reply {
    let is_first = call == CallId(2); // call 1 was the plan
    let content = if is_first {
        let input = ToolInput::Object(serde_json::json!({ "attempt": attempt }));
        vec![Block::ToolUse(ToolCall { id: format!("call_{call}"), name: "touch".into(), input })]
    } else {
        vec![Block::Text { text: "It is done.".into() }]
    };
    let stop = if is_first { StopReason::ToolUse } else { StopReason::EndTurn };
    Reply { content, stop, usage: None, model: "by-hand".into(), lacks_end: false }
}
