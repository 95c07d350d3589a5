//! Thousands of whole runs in simulated worlds, each from one seed. Each run ends and obeys the
//! laws, and together the runs reach every state of the machine.
//!
//! `FLEDGE_TEST_ALL=1 cargo test --release --test it simulated` tries more runs.

use crate::machine::laws::{Court, law_01_idle_is_first_and_last, law_12_journals_reproduce, law_13_snapshots_go_on};
use crate::machine::world::{Dice, World};
use crate::support::{amount, dice, record_time};
use fledge::run::{AgentEvent, Run};
use fledge::verdict::Reason;
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

const RUNS: u64 = 2_000;
/// The limit on events of one run. A run that passes it would never end.
const MOST_EVENTS: usize = 5_000;

/// The states, events and results that the runs reached.
#[derive(Default)]
struct Reached {
    events: BTreeSet<&'static str>,
    labels: BTreeSet<&'static str>,
    actions: BTreeSet<&'static str>,
    reasons: BTreeSet<Reason>,
}

#[test]
fn simulated_runs_all_end_and_keep_every_law() {
    long_table!();
    record_time();
    let runs = amount(RUNS, 100_000);
    let mut reached = Reached::default();
    let mut dice = dice("simulated runs");
    let is_whole = runs >= RUNS;
    let mut count = 0;
    // Some seeds miss rare cases, so more runs follow until all of them were reached.
    while count < runs || (is_whole && count < 10 * runs && reached.missing().is_some()) {
        count += 1;
        let seed = dice.throw();
        let ended = catch_unwind(AssertUnwindSafe(|| simulate(seed, &mut reached)));
        let broken = match ended {
            Ok(Ok(())) => continue,
            Ok(Err(broken)) => broken,
            Err(_) => "handle panicked (law 12)".into(),
        };
        panic!("{broken}\n  again: FLEDGE_TEST_SEED={} cargo test --test it simulated", crate::support::seed());
    }
    // Fails if the simulation stops reaching some case.
    assert_eq!(reached.missing().filter(|_| is_whole), None, "in {count} runs");
}

fn simulate(seed: u64, reached: &mut Reached) -> Result<(), String> {
    let mut world = World::new(seed);
    let mut crashes = Dice::new(!seed);
    let mut court = Court::new();
    let mut run = Run::new();
    let mut events = 0;
    while let Some((moment, event)) = world.next(&run) {
        reached.events.insert(event.name());
        let actions = court.handle(&mut run, moment, event)?;
        world.hear(actions);
        reached.note(actions, &run);
        if crashes.chance(15) {
            run = law_13_snapshots_go_on::restore(&run)?;
        } else if crashes.chance(3) {
            law_12_journals_reproduce::check(&court.journal, &run)?;
        }
        events += 1;
        if events > MOST_EVENTS {
            return Err(format!("law 1: still {} after {events} events", run.label()));
        }
    }
    law_01_idle_is_first_and_last::is_over(run.state())?;
    law_12_journals_reproduce::check(&court.journal, &run)
}

impl Reached {
    /// Returns the cases that no run has reached yet.
    fn missing(&self) -> Option<String> {
        let names = |all: &[&'static str], met: &BTreeSet<&'static str>| -> Vec<String> {
            all.iter().filter(|name| !met.contains(*name)).map(|name| (*name).to_owned()).collect()
        };
        let reasons = Reason::ALL.iter().filter(|reason| !self.reasons.contains(reason));
        let mut missing = names(&LABELS, &self.labels);
        missing.extend(names(&ACTIONS, &self.actions).into_iter().chain(names(&EVENTS, &self.events)));
        missing.extend(reasons.map(|reason| format!("{reason:?}")));
        (!missing.is_empty()).then(|| missing.join(", "))
    }

    fn note(&mut self, actions: &[fledge::run::Action], run: &Run) {
        self.labels.insert(run.label());
        for action in actions {
            self.actions.insert(action.name());
            if let fledge::run::Action::Emit { event: AgentEvent::Finished { reason, .. } } = action {
                self.reasons.insert(*reason);
            }
        }
    }
}

const LABELS: [&str; 13] = [
    "Idle",
    "Planning",
    "CallingModel",
    "BackingOff",
    "Confirming",
    "RunningTools",
    "Dispatching",
    "RunningHooks",
    "AnsweringQuery",
    "Compacting",
    "Verifying",
    "Delivering",
    "Reporting",
];

const ACTIONS: [&str; 13] = [
    "Plan",
    "CallModel",
    "AskConfirmation",
    "RunTool",
    "RunChild",
    "RunHooks",
    "AnswerQuery",
    "Compact",
    "RunGate",
    "Deliver",
    "SaveReport",
    "AbortInFlight",
    "Emit",
];

const EVENTS: [&str; 23] = [
    "TaskSubmitted",
    "PlanReady",
    "PlanFailed",
    "ModelDelta",
    "ModelCompleted",
    "ModelFailed",
    "Interrupted",
    "DeadlinePassed",
    "ConfirmationAnswered",
    "ToolProgress",
    "ToolFinished",
    "ChildFinished",
    "HooksFinished",
    "QueryAnswered",
    "CompactionFinished",
    "GateProgress",
    "GateFinished",
    "Delivered",
    "ReportSaved",
    "ReportFailed",
    "BaseJudged",
    "LimitReached",
    "CancelRequested",
];
