//! Benchmark of the state machine: events a second over a realistic turn, and whole simulated runs
//! a second. Prints the figures and asserts nothing.

#![expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
#![expect(clippy::print_stdout, reason = "its figures are what it is for")]

#[path = "../tests/support/dice.rs"]
#[expect(dead_code, clippy::unwrap_used, reason = "of what the tests have, the worlds need a part")]
mod dice;
/// The module of the dice in the tests, from which the worlds import them.
mod support {
    pub(crate) use super::dice::Dice;
}
#[path = "../tests/machine/world/mod.rs"]
mod world;

use fledge::chat::{Block, Delta, Reply, StopReason, ToolCall, ToolInput, ToolOutcome, Usage};
use fledge::elapsed::Elapsed;
use fledge::id::{CallId, RunId};
use fledge::limits::Limits;
use fledge::run::{Event, Run, RunSpec};
use std::hint::black_box;
use std::time::{Duration, Instant};

const WINDOW: Duration = Duration::from_secs(2);

fn main() {
    measure("turns of one conversation", "events", || converse(50));
    let mut seed = 0;
    measure("simulated runs", "runs", || {
        seed += 1;
        simulate(seed);
        1
    });
}

/// Repeats the work for a while, and prints how much was done in a second.
fn measure(name: &str, unit: &str, mut work: impl FnMut() -> u64) {
    let start = Instant::now();
    let mut done = 0;
    while start.elapsed() < WINDOW {
        done += work();
    }
    println!("{name}: {:.0} {unit} a second", done as f64 / start.elapsed().as_secs_f64());
}

/// Plays this many turns, with streamed text, an edit and a hook each, and then the gate. Returns
/// the number of events.
fn converse(turns: u64) -> u64 {
    let mut run = Run::new();
    let mut events = 0;
    let mut feed = |event| {
        events += 1;
        black_box(run.handle(Elapsed(events), event));
        run.awaited().first().copied().unwrap_or(CallId(0))
    };
    let limits = Limits { turns: turns + 1, ..Limits::default() };
    let spec = RunSpec { limits, ..RunSpec::new(RunId::new("bench"), "title", "prompt") };
    let call = feed(Event::TaskSubmitted { spec: Box::new(spec) });
    let mut call = feed(Event::PlanReady { call, plan: Box::new(world::nature::plan()) });
    for turn in 0..turns {
        for _ in 0..20 {
            feed(Event::ModelDelta { call, delta: Delta::Text("a few words ".into()) });
        }
        call = feed(Event::ModelCompleted { call, reply: Box::new(edit(turn)) });
        call = feed(Event::ToolFinished { call, outcome: ToolOutcome::ok(format!("edited {turn}")) });
        call = feed(Event::HooksFinished { call, notes: Vec::new(), reported: Vec::new(), checkpoint: None });
    }
    let said = vec![Block::Text { text: "All done.".into() }];
    let call = feed(Event::ModelCompleted { call, reply: Box::new(reply(StopReason::EndTurn, said)) });
    let verdict = world::nature::verdict(world::nature::Temper::Steady, &mut world::Dice::new(1));
    feed(Event::GateFinished { call, verdict: Box::new(verdict) });
    events
}

fn edit(turn: u64) -> Reply {
    let text = format!("{{\"path\": \"src/file{turn}.rs\", \"old\": \"let a = 1;\", \"new\": \"let a = {turn};\"}}");
    let call = ToolCall { id: format!("call_{turn}"), name: "files-edit".into(), input: ToolInput::parse(&text) };
    let said = Block::Text { text: "I change this first, since the test names it.".into() };
    reply(StopReason::ToolUse, vec![said, Block::ToolUse(call)])
}

fn reply(stop: StopReason, content: Vec<Block>) -> Reply {
    let usage = Some(Usage { input_tokens: 900, output_tokens: 90, ..Usage::default() });
    Reply { content, stop, usage, model: "bench-v1".into(), lacks_end: false }
}

fn simulate(seed: u64) {
    let (mut world, mut run) = (world::World::new(seed), Run::new());
    while let Some((moment, event)) = world.next(&run) {
        world.hear(&run.handle(moment, event));
    }
    black_box(run.result());
}
