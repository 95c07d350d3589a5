//! The laws over events that no driver would send. Arbitrary events enter simulated worlds at
//! arbitrary times. They carry awaited and unknown call ids, and run specs have the largest and
//! smallest numbers.

#![expect(clippy::disallowed_methods, reason = "how many cases to try is asked from outside")]

use crate::machine::laws::{Court, law_01_idle_is_first_and_last, law_12_journals_reproduce, law_13_snapshots_go_on};
use crate::machine::world::{Dice, World, nature};
use fledge::chat::Delta;
use fledge::elapsed::Elapsed;
use fledge::id::CallId;
use fledge::run::{Event, Run, RunSpec, StateName};
use fledge::verdict::{StepProgress, StepStatus};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

/// An arbitrary event inserted into a run.
#[derive(Debug, Clone)]
struct Intrusion {
    /// The number of events before it.
    at: usize,
    kind: u8,
    /// The index of the awaited call that it answers; 3 is a call that is not awaited.
    which: usize,
    /// The seed of its content.
    seed: u64,
    moment: u64,
}

fn intrusion() -> impl Strategy<Value = Intrusion> {
    let moment = prop_oneof![6 => 0..5_000_u64, 1 => any::<u64>()];
    (0..60_usize, 0..22_u8, 0..4_usize, any::<u64>(), moment).prop_map(|(at, kind, which, seed, moment)| Intrusion {
        at,
        kind,
        which,
        seed,
        moment,
    })
}

/// Uses the same cases each time. `PROPTEST_RNG_SEED=…` selects others, and `PROPTEST_CASES=…` runs
/// that many new ones.
fn config() -> ProptestConfig {
    let hunting = std::env::var_os("PROPTEST_CASES").is_some();
    let fixed = ProptestConfig { cases: 64, rng_seed: RngSeed::Fixed(1), ..ProptestConfig::default() };
    ProptestConfig { failure_persistence: None, ..if hunting { ProptestConfig::default() } else { fixed } }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn every_law_holds_whatever_breaks_in(
        seed in any::<u64>(),
        wild in any::<bool>(),
        mut intrusions in proptest::collection::vec(intrusion(), 0..24),
    ) {
        intrusions.sort_by_key(|intrusion| std::cmp::Reverse(intrusion.at));
        live(seed, wild, intrusions).map_err(TestCaseError::fail)?;
    }
}

/// A model answer in place of an awaited summary belongs to no call, so it is not a turn of the
/// run.
#[test]
fn an_answer_of_the_wrong_kind_counts_for_no_law() -> Result<(), String> {
    let intrusion = |at, kind, seed| Intrusion { at, kind, which: 0, seed, moment: 0 };
    live(
        18_017_659_514_086_923_031,
        false,
        vec![intrusion(4, 4, 159_287_543_483_258_718), intrusion(1, 11, 1_526_688_777_155_384_059)],
    )?;
    live(3_684_964_741_991_713_131, false, vec![intrusion(7, 4, 0), intrusion(7, 4, 0)])
}

fn live(seed: u64, wild: bool, mut intrusions: Vec<Intrusion>) -> Result<(), String> {
    let (mut world, mut court) = (World::new(seed), Court::new());
    let (mut run, mut twin) = (Run::new(), Run::new());
    for at in 0..150 {
        let next = match intrusions.pop_if(|next| next.at <= at) {
            Some(intrusion) => Some((Elapsed(intrusion.moment), arbitrary(&intrusion, &run))),
            None => world.next(&run),
        };
        let Some((moment, event)) = next else { break };
        let event = if wild { go_wild(event, seed) } else { event };
        let twins = twin.handle(moment, event.clone());
        let actions = court.handle(&mut run, moment, event)?;
        if twins != actions {
            return Err(format!("law 13: a snapshot went on with {twins:?}, the run itself with {actions:?}"));
        }
        world.hear(actions);
        twin = law_13_snapshots_go_on::restore(&run)?;
    }
    put_to_rest(&mut run, &mut court)?;
    law_12_journals_reproduce::check(&court.journal, &run)
}

/// Checks law 8 from any state: after a cancel and the answer of the report, the run is over.
fn put_to_rest(run: &mut Run, court: &mut Court) -> Result<(), String> {
    let cause = fledge::verdict::StopCause::Token;
    court.handle(run, Elapsed(0), Event::CancelRequested { cause, partial_text: String::new() })?;
    if run.label() == "Delivering" {
        let call = run.awaited().first().copied().unwrap_or(CallId(0));
        court.handle(run, Elapsed(0), Event::Delivered { call, result: Err("lost".into()), ways: None })?;
    }
    if run.state() == StateName::Reporting {
        let call = run.awaited().last().copied().unwrap_or(CallId(0));
        court.handle(run, Elapsed(0), Event::ReportSaved { call, saved: Box::default() })?;
    }
    law_01_idle_is_first_and_last::is_over(run.state())
}

fn arbitrary(intrusion: &Intrusion, run: &Run) -> Event {
    let dice = &mut Dice::new(intrusion.seed);
    let temper = dice.pick(&nature::TEMPERS);
    let awaited = run.awaited();
    let call = match intrusion.which {
        which @ 0..3 if !awaited.is_empty() => awaited[which % awaited.len()],
        _ => CallId(dice.below(40)),
    };
    match intrusion.kind {
        0 => Event::TaskSubmitted { spec: Box::new(nature::spec(dice)) },
        1 => Event::PlanReady { call, plan: Box::new(nature::plan()) },
        2 => Event::PlanFailed { call, reason: nature::any_reason(dice), message: String::new() },
        3 => Event::ModelDelta { call, delta: Delta::ToolCall(nature::call(temper, dice)) },
        4 | 5 => Event::ModelCompleted { call, reply: Box::new(nature::reply(temper, dice)) },
        6 if dice.chance(300) => Event::Interrupted { call },
        6 => Event::ModelFailed { call, error: nature::failure(dice) },
        7 => Event::ConfirmationAnswered { call, approved: dice.chance(500), note: String::new() },
        8 => Event::ToolProgress { call, text: "…".into() },
        9 | 10 => Event::ToolFinished { call, outcome: nature::outcome(temper, dice) },
        11 => {
            let outcome = nature::outcome(temper, dice);
            nature::reported(call, outcome, temper, dice)
        }
        12 => Event::HooksFinished { call, notes: vec!["noted".into()], reported: Vec::new(), checkpoint: None },
        13 => Event::QueryAnswered { call, answer: String::new() },
        14 => nature::summarised(call, temper, dice),
        15 => {
            let progress = StepProgress::Ended(nature::step("a", StepStatus::Skipped));
            Event::GateProgress { call, progress }
        }
        16 => Event::GateFinished { call, verdict: Box::new(nature::verdict(temper, dice)) },
        17 => Event::ReportSaved { call, saved: Box::default() },
        18 => Event::Delivered { call, result: Ok(nature::delivery()), ways: None },
        19 => Event::LimitReached { reason: nature::any_reason(dice) },
        20 => nature::base_judged(dice),
        _ => Event::DeadlinePassed,
    }
}

/// Replaces limits by the largest and smallest numbers.
fn go_wild(event: Event, seed: u64) -> Event {
    let Event::TaskSubmitted { mut spec } = event else { return event };
    let dice = &mut Dice::new(seed);
    let RunSpec { limits, max_retries, stuck_after, context_window, confirm_within_ms, models, .. } = &mut *spec;
    *max_retries = dice.pick(&[0, u32::MAX]);
    *stuck_after = dice.pick(&[None, Some(0), Some(u32::MAX)]);
    *context_window = dice.pick(&[None, Some(0), Some(u64::MAX)]);
    *confirm_within_ms = dice.pick(&[None, Some(0), Some(u64::MAX)]);
    limits.turns = dice.pick(&[20, u64::MAX]);
    limits.tokens = dice.pick(&[None, Some(0), Some(u64::MAX)]);
    limits.usd_micros = dice.pick(&[None, Some(u64::MAX)]);
    limits.time_ms = dice.pick(&[600_000, u64::MAX]);
    limits.calls_per_turn = dice.pick(&[0, usize::MAX]);
    limits.tries = dice.pick(&[0, u32::MAX]);
    limits.max_wait_ms = dice.pick(&[0, u64::MAX]);
    limits.compact_at_percent = dice.pick(&[0, 70, u64::MAX]);
    limits.backoff_ms = dice.pick(&[0, u64::MAX]);
    limits.continuations = dice.pick(&[0, u32::MAX]);
    limits.queries = dice.pick(&[0, u32::MAX]);
    limits.loop_threshold = dice.pick(&[0, 1, usize::MAX]);
    if dice.chance(100) {
        models.clear();
    }
    Event::TaskSubmitted { spec }
}
