//! Budgets of a run: reserves before a call, charges after it, and shares of sub-agents.

use crate::machine::walk::{Walk, calls, fails, heard, reported, says, spec};
use fledge::chat::{Block, ModelErrorKind, Price, Reply, StopReason, ToolOutcome, Usage};
use fledge::id::CallId;
use fledge::limits::Limits;
use fledge::run::{Action, AgentEvent, Event, ModelTerms, RunSpec};
use fledge::verdict::Reason;
use std::collections::BTreeMap;

/// Prices of $3 per million input tokens and $15 per million output tokens; answers of at most
/// 1,000 tokens.
fn terms() -> ModelTerms {
    let price = Price { input: 3_000_000, output: 15_000_000, ..Price::default() };
    ModelTerms { price: Some(price), max_output_tokens: Some(1_000), ..ModelTerms::default() }
}

fn with(limits: Limits) -> RunSpec {
    RunSpec { limits, terms: vec![terms()], ..spec() }
}

fn dollars(micros: u64) -> RunSpec {
    with(Limits { usd_micros: Some(micros), ..Limits::default() })
}

fn tokens(tokens: u64) -> RunSpec {
    with(Limits { tokens: Some(tokens), ..Limits::default() })
}

/// Returns an answer that calls a tool and used these tokens.
fn used(input_tokens: u64, output_tokens: u64) -> impl FnOnce(CallId) -> Event {
    counted(Some(Usage { input_tokens, output_tokens, ..Usage::default() }))
}

fn counted(usage: Option<Usage>) -> impl FnOnce(CallId) -> Event {
    let content = vec![Block::ToolUse(crate::machine::walk::tool("c", "no-such-tool"))];
    let reply = Reply { content, stop: StopReason::ToolUse, usage, model: "model-v1".into(), lacks_end: false };
    move |call| Event::ModelCompleted { call, reply: Box::new(reply) }
}

fn message(walk: &Walk) -> String {
    walk.run.result().map(|result| result.message).unwrap_or_default()
}

fn total(walk: &Walk) -> Usage {
    let told =
        walk.told().into_iter().filter_map(|told| if let AgentEvent::Usage(usage) = told { Some(usage) } else { None });
    told.collect::<Vec<_>>().pop().expect("usage")
}

#[test]
fn a_call_that_would_pass_the_money_is_not_made() {
    // 100 tokens in and 10 out cost 450. The next call may cost 330 and more for its input, and
    // 15,000 for an answer.
    let walk = Walk::calling(dollars(15_800)).answer(used(100, 10));
    walk.ends_as(Reason::BudgetMoney);
    assert_eq!(
        message(&walk),
        "the money limit was reached: $0.0004 of $0.0158 are spent, and the next call may take $0.0153"
    );
    let walk = Walk::calling(dollars(16_500)).answer(used(100, 10));
    assert_eq!(walk.run.label(), "CallingModel");
    assert_eq!(walk.answer(says(StopReason::EndTurn, "Done.")).run.label(), "Verifying");
}

#[test]
fn a_call_that_would_pass_the_tokens_is_not_made_not_even_the_first() {
    Walk::calling(tokens(1_000)).ends_as(Reason::BudgetTokens);
    let walk = Walk::calling(tokens(4_000)).answer(used(900, 300));
    assert_eq!(walk.run.label(), "CallingModel");
    let walk = walk.answer(used(1_200, 300));
    walk.ends_as(Reason::BudgetTokens);
    assert!(
        message(&walk).starts_with("the token limit was reached: 2700 of 4000 are spent, and the next call may take 2")
    );
}

#[test]
fn what_is_booked_has_its_price_in_total_and_by_model() {
    let walk = Walk::calling(dollars(1_000_000)).answer(used(1_000, 100)).then(crate::machine::walk::cancel());
    let usage = walk.run.result().map(|result| result.usage).expect("a result");
    assert_eq!(usage.total.cost_micros, Some(4_500));
    assert_eq!(usage.by_model["model-v1"].cost_micros, Some(4_500));
}

#[test]
fn without_a_count_that_can_be_true_an_estimate_by_the_bytes_is_charged() {
    let nonsense = Usage { input_tokens: u64::MAX, output_tokens: 7, ..Usage::default() };
    for usage in [None, Some(Usage::default()), Some(nonsense)] {
        let warns = usage.is_some();
        let walk = Walk::calling(dollars(100_000));
        let aside = walk.run.reserved();
        let walk = walk.answer(counted(usage));
        let charged = total(&walk);
        assert_eq!((charged.input_tokens, charged.estimated_tokens), (aside.input_tokens, charged.total()));
        assert!(charged.output_tokens < 1_000 && charged.cost_micros < Some(aside.usd_micros), "{charged:?}");
        assert_eq!(walk.told().iter().any(|told| matches!(told, AgentEvent::Warning(_))), warns);
    }
}

#[test]
fn what_failed_gives_back_what_was_set_aside_for_it() {
    let walk = Walk::calling(dollars(16_500));
    assert_eq!(walk.run.reserved().turns, 1);
    let walk = walk.answer(fails(ModelErrorKind::Busy));
    assert_eq!(walk.run.reserved(), fledge::run::Reserve::default());
    assert_eq!(walk.wait().run.reserved().turns, 1);
}

#[test]
fn a_budget_in_dollars_needs_every_price_and_says_which_line_is_missing() {
    let models = vec!["first".into(), "x/second".into()];
    let spec = RunSpec { models, ..dollars(1_000_000) };
    let walk = Walk::planning(spec).gives("Reporting", &[Action::SaveReport { call: CallId(1) }]);
    walk.ends_as(Reason::BadInput);
    assert_eq!(
        message(&walk),
        "a budget in dollars needs the price of every model, but the price of x/second is unknown\n  \
         add it to the model's entry in the configuration, in dollars per million tokens: \
         price: { input: …, output: … }"
    );
}

fn shares(walk: &Walk) -> Vec<(u64, Option<u64>, Option<u64>)> {
    let share = |action: Action| match action {
        Action::RunChild { limits, .. } => Some((limits.turns, limits.tokens, limits.usd_micros)),
        _ => None,
    };
    walk.asked().into_iter().filter_map(share).collect()
}

fn spawns(count: usize) -> impl FnOnce(CallId) -> Event {
    let names: Vec<String> = (0..count).map(|n| format!("c{n}")).collect();
    let children: Vec<(&str, &str)> = names.iter().map(|id| (id.as_str(), "subagent-spawn")).collect();
    calls(&children)
}

#[test]
fn a_sub_agent_has_at_most_half_of_what_is_left_and_several_have_as_much_each() {
    let limits = Limits { turns: 41, tokens: Some(100_011), usd_micros: Some(1_000_045), ..Limits::default() };
    let calling = || Walk::calling(with(limits.clone()));
    let one = calling().answer(spawns(1));
    assert_eq!(shares(&one), [(20, Some(50_000), Some(500_000))]);
    let three = calling().answer(spawns(3));
    assert_eq!(shares(&three), [(10, Some(25_000), Some(250_000)); 3]);
    let (five, six_each) = ((5, Some(14_285), Some(142_857)), (6, Some(14_286), Some(142_857)));
    let expected = [five, five, six_each, six_each];
    let six = calling().answer(spawns(6));
    assert_eq!(shares(&six), expected, "at most four at once");
    // The share that the first did not use goes to the two that are still to start and to the rest
    // of the run.
    let fifth = six.answer(reported("done"));
    assert_eq!(shares(&fifth), [(7, Some(19_045), Some(190_476))]);
}

#[test]
fn the_turns_of_a_sub_agent_are_the_parent_s() {
    let limits = Limits { turns: 4, ..Limits::default() };
    let finished = |turns| {
        move |call| {
            let usage = Usage { input_tokens: 5, output_tokens: 2, cost_micros: Some(9), ..Usage::default() };
            let by_model = BTreeMap::from([("child-v1".to_owned(), usage.clone())]);
            Event::ChildFinished {
                call,
                outcome: ToolOutcome::ok("done"),
                usage,
                turns,
                requests: turns + 1,
                by_model,
                changes: Vec::new(),
            }
        }
    };
    let hooks = |call| Event::HooksFinished { call, notes: Vec::new(), reported: Vec::new(), checkpoint: None };
    let walk = Walk::calling(with(limits)).answer(spawns(1));
    let goes_on = walk.clone().answer(finished(2)).answer(hooks);
    assert_eq!((goes_on.run.label(), goes_on.run.next_turn()), ("CallingModel", 2));
    let ended = walk.answer(finished(3)).answer(hooks);
    ended.ends_as(Reason::MaxTurns);
    let result = ended.run.result().expect("a result");
    assert_eq!((result.turns, result.usage.requests), (4, 5));
    assert_eq!(result.usage.by_model["child-v1"].total(), 7);
}

#[test]
fn where_too_little_is_left_there_is_no_sub_agent() {
    let limits = Limits { turns: 2, ..Limits::default() };
    let walk = Walk::calling(with(limits)).answer(spawns(2)).gives("CallingModel", &[call_model(3)]);
    assert!(heard(&walk.run).iter().all(|heard| heard.starts_with("too little of this run's budget is left")));
}

#[test]
fn a_sub_agent_of_a_sub_agent_has_none() {
    let at = |depth| Walk::calling(RunSpec { depth, ..spec() }).answer(spawns(1));
    assert_eq!(at(1).run.label(), "Dispatching");
    let several = |depth| shares(&Walk::calling(RunSpec { depth, ..spec() }).answer(spawns(6))).len();
    assert_eq!(
        (several(0), several(1)),
        (4, 1),
        "a sub-agent has one at a time, so no more than four are at work in all"
    );
    let walk = at(2).gives("CallingModel", &[call_model(3)]);
    assert_eq!(heard(&walk.run), ["there is no tool `subagent-spawn` in this task"]);
}

fn call_model(call: u64) -> Action {
    Action::CallModel { call: CallId(call), model: 0, most: None }
}
