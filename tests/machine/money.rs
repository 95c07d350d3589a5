//! Costs other than answers: calls that broke off, were cancelled or were cut off by a crash, and
//! failed summaries. Also the maximum cost of a call.

use crate::machine::walk::{
    Walk, breaks, calls, cancel, fails, interrupted, ran, replies, says, spec, summarised, text, unsummarised,
};
use fledge::chat::{Block, ModelError, ModelErrorKind, Price, Reply, Spent, StopReason, ToolOutcome, Usage};
use fledge::id::CallId;
use fledge::limits::Limits;
use fledge::run::{Action, AgentEvent, Event, ModelTerms, RunPlan, RunSpec, TaskResult};
use fledge::verdict::Reason;

/// Prices of $3 per million input tokens and $15 per million output tokens.
fn terms() -> ModelTerms {
    let price = Price { input: 3_000_000, output: 15_000_000, cached_input: 3_000_000, cache_write: 3_000_000 };
    ModelTerms { price: Some(price), ..ModelTerms::default() }
}

fn with(limits: Limits, terms: ModelTerms) -> RunSpec {
    RunSpec { limits, terms: vec![terms], models: vec!["anthropic/model-v1".into()], ..spec() }
}

fn dollars(micros: u64) -> RunSpec {
    with(Limits { usd_micros: Some(micros), ..Limits::default() }, terms())
}

fn tokens(tokens: u64) -> RunSpec {
    with(Limits { tokens: Some(tokens), ..Limits::default() }, terms())
}

fn used(input_tokens: u64, output_tokens: u64) -> Usage {
    Usage { input_tokens, output_tokens, ..Usage::default() }
}

fn result(walk: &Walk) -> TaskResult {
    walk.run.result().expect("a result")
}

fn most(walk: &Walk) -> Option<u64> {
    walk.asked().into_iter().find_map(|action| if let Action::CallModel { most, .. } = action { most } else { None })
}

#[test]
fn an_interrupted_answer_costs_its_counted_and_received_tokens() {
    let walk =
        Walk::calling(dollars(5_000_000)).answer(breaks(ModelErrorKind::Network, Some(used(1_000_000, 1)), 4_000));
    assert_eq!(walk.run.label(), "BackingOff");
    let usage = result(&walk.then(cancel())).usage;
    assert_eq!((usage.requests, usage.total.input_tokens, usage.total.output_tokens), (1, 1_000_000, 1_000));
    assert_eq!(usage.total.cost_micros, Some(3_015_000));
    assert_eq!(usage.by_model["model-v1"], usage.total);
}

#[test]
fn a_cost_that_leaves_out_a_model_without_a_price_says_so() {
    let said = |model: &str, cost_micros| {
        let usage = Some(Usage { cost_micros, ..used(10, 5) });
        let content = vec![Block::ToolUse(crate::machine::walk::tool("c", "files-read"))];
        let reply = Reply { content, stop: StopReason::ToolUse, usage, model: model.into(), lacks_end: false };
        move |call| Event::ModelCompleted { call, reply: Box::new(reply) }
    };
    let walk = Walk::calling(spec()).answer(said("a", Some(1_100))).answer(ran(ToolOutcome::ok("1")));
    assert_eq!(result(&walk.clone().then(cancel())).warnings, Vec::<String>::new());
    let result = result(&walk.answer(said("b", None)).then(cancel()));
    assert_eq!((result.usage.total.cost_micros, result.usage.unpriced()), (Some(1_100), vec!["b"]));
    assert_eq!(result.warnings, ["the cost leaves out models without a known price: b"]);
}

#[test]
fn an_answer_that_nobody_counted_is_estimated_by_its_bytes_and_says_so() {
    let uncounted = |usage: Option<Usage>| {
        let reply = Reply {
            content: text(&"x".repeat(44)),
            stop: StopReason::EndTurn,
            usage,
            model: "m".into(),
            lacks_end: false,
        };
        let walk = Walk::calling(dollars(5_000_000));
        let aside = walk.run.reserved();
        (aside, result(&walk.answer(|call| Event::ModelCompleted { call, reply: Box::new(reply) }).then(cancel())))
    };
    let counted = uncounted(Some(used(30, 12))).1;
    assert_eq!((counted.usage.total.total(), counted.usage.total.estimated_tokens), (42, 0));
    for (said, warnings) in [(None, 0), (Some(used(u64::MAX, 1)), 1)] {
        let (aside, result) = uncounted(said);
        let total = &result.usage.total;
        assert_eq!((total.output_tokens, result.warnings.len()), (11, warnings), "{result:?}");
        assert_eq!(total.input_tokens, aside.input_tokens, "what was sent is known");
        assert_eq!(total.estimated_tokens, total.total());
        assert_eq!(total.cost_micros, terms().price.map(|price| price.cost_micros(total)));
        assert!(total.output_tokens < aside.output_tokens, "the most that it could take is not charged");
    }
}

#[test]
fn an_answer_that_breaks_off_uncounted_costs_what_was_set_aside_for_it() {
    for (usage, fault) in [(None, ModelErrorKind::Network), (Some(used(u64::MAX, 1)), ModelErrorKind::Protocol)] {
        let walk = Walk::calling(dollars(5_000_000));
        let aside = walk.run.reserved();
        let usage = result(&walk.answer(breaks(fault, usage, 40)).then(cancel())).usage;
        assert_eq!((usage.requests, usage.total.total()), (1, aside.tokens()));
        assert_eq!(usage.total.estimated_tokens, aside.tokens());
        assert_eq!(usage.total.cost_micros, Some(aside.usd_micros));
    }
}

#[test]
fn what_was_refused_costs_nothing() {
    let walk = Walk::calling(dollars(5_000_000)).answer(fails(ModelErrorKind::Busy)).then(cancel());
    assert_eq!((result(&walk).usage.requests, result(&walk).usage.total.total()), (0, 0));
}

#[test]
fn what_broke_off_counts_for_the_budget_before_it_is_tried_again() {
    let walk =
        Walk::calling(dollars(3_100_000)).answer(breaks(ModelErrorKind::Network, Some(used(1_000_000, 7_000)), 0));
    walk.ends_as(Reason::BudgetMoney);
    assert!(result(&walk).message.contains("$3.1050 of $3.1000 are spent"), "{}", result(&walk).message);
}

#[test]
fn a_cancelled_answer_is_charged_while_the_report_is_written() {
    let walk = Walk::calling(dollars(5_000_000));
    let call = walk.run.awaited()[0];
    let walk = walk.then(cancel());
    let stopped = breaks(ModelErrorKind::BadRequest, Some(used(500, 1)), 400)(call);
    let walk = walk.then(stopped);
    let usage = result(&walk).usage;
    assert_eq!((usage.requests, usage.total.input_tokens, usage.total.output_tokens), (1, 500, 100));
}

#[test]
fn a_call_that_a_crash_cut_off_is_charged_and_asked_for_anew() {
    let walk = Walk::calling(dollars(5_000_000));
    let aside = walk.run.reserved();
    let walk = walk.answer(interrupted);
    assert!(matches!(walk.asked()[..], [Action::CallModel { call: CallId(3), model: 0, .. }]), "{:?}", walk.asked());
    assert!(walk.told().iter().any(|told| matches!(told, AgentEvent::TurnDiscarded { .. })));
    let usage = result(&walk.answer(says(StopReason::Refusal, "No."))).usage;
    assert_eq!((usage.requests, usage.total.output_tokens), (2, aside.output_tokens + 1));
    assert!(usage.total.cost_micros > Some(aside.usd_micros));
    Walk::calling(tokens(1_100)).answer(interrupted).ends_as(Reason::BudgetTokens);
}

#[test]
fn a_summary_that_a_crash_cut_off_is_charged_and_asked_for_anew() {
    let walk = Walk::calling_after_much(spec()).answer(fails(ModelErrorKind::ContextTooLong));
    let aside = walk.run.reserved();
    let walk = walk.answer(interrupted);
    assert!(matches!(walk.asked()[..], [Action::Compact { call: CallId(4), .. }]));
    assert_eq!(result(&walk.then(cancel())).usage.total.total(), aside.tokens());
}

#[test]
fn an_answer_may_have_what_the_budget_leaves_and_no_call_is_made_that_is_of_no_use() {
    // The length of an answer has no configured limit: it may have 16,384 tokens, or what the
    // budget leaves.
    assert_eq!(most(&Walk::calling(spec())), None, "without a budget that is the provider's matter");
    assert_eq!(most(&Walk::calling(tokens(100_000))), Some(16_384));
    let walk = Walk::calling(tokens(5_000));
    let aside = walk.run.reserved();
    assert_eq!((most(&walk), aside.tokens()), (Some(aside.output_tokens), 5_000));
    // A dollar buys 66,666 output tokens. Half a cent does not buy 1,024 of them.
    let capped = Walk::calling(dollars(50_000));
    assert!(most(&capped).is_some_and(|most| (3_300..3_334).contains(&most)), "{:?}", most(&capped));
    assert!(capped.run.reserved().usd_micros <= 50_000);
    Walk::calling(dollars(5_000)).ends_as(Reason::BudgetMoney);
}

#[test]
fn the_default_output_limit_is_raised_once_for_a_model_with_longer_answers() {
    let cut = || says(StopReason::OutputLimit, "and so");
    let long = ModelTerms { largest_output: Some(64_000), ..ModelTerms::default() };
    let mut walk = Walk::calling(with(Limits::default(), long)).answer(cut());
    for _ in 0..3 {
        assert_eq!((walk.run.label(), most(&walk)), ("CallingModel", Some(64_000)));
        walk = walk.answer(cut());
    }
    assert_eq!(walk.run.label(), "CallingModel", "a raised limit is not a continuation");
    walk.answer(cut()).ends_as(Reason::ModelProtocol);
    let set = ModelTerms { max_output_tokens: Some(2_000), ..long };
    assert_eq!(most(&Walk::calling(with(Limits::default(), set)).answer(cut())), None, "what is configured stays");
}

#[test]
fn a_summary_that_fails_in_passing_is_tried_again_and_paid_for_each_time() {
    let broken = |spent| ModelError { spent, ..ModelError::network("it broke off") };
    let spent = Box::new(Spent { usage: Some(used(300, 20)), ..Spent::default() });
    let mut walk = Walk::calling_after_much(spec()).answer(fails(ModelErrorKind::ContextTooLong));
    for _ in 0..3 {
        walk = walk.answer(unsummarised(broken(Some(spent.clone()))));
        assert_eq!(walk.run.label(), "BackingOff");
        walk = walk.wait();
        assert_eq!(walk.run.label(), "Compacting");
    }
    let done = walk.clone().answer(summarised(Ok("so far"), used(300, 20)));
    assert_eq!(done.run.label(), "CallingModel");
    assert_eq!(result(&done.then(cancel())).usage.total, used(1_200, 80));
    let gave_up = walk.answer(unsummarised(broken(None)));
    assert_eq!(gave_up.run.label(), "CallingModel", "then it goes on without");
    let told = |told: &AgentEvent| matches!(told, AgentEvent::Compaction { success: false, .. });
    assert!(gave_up.told().iter().any(told));
    let walk = Walk::calling_after_much(spec()).answer(fails(ModelErrorKind::ContextTooLong));
    let walk = walk.answer(unsummarised(ModelError::new(ModelErrorKind::Auth, "no key")));
    assert_eq!(walk.run.label(), "CallingModel", "what is final is not tried again");
}

/// Estimates the tokens of everything that is sent from its bytes.
fn length(walk: &Walk) -> u64 {
    let bytes = serde_json::to_string(walk.run.conversation()).map_or(0, |text| text.len());
    ((bytes + walk.run.system().len()) / 4) as u64
}

#[test]
fn a_small_window_holds_a_long_run_without_a_summary_at_every_turn() {
    for window in [8_192, 16_384] {
        let terms = ModelTerms { context_window: Some(window), ..ModelTerms::default() };
        let plan = RunPlan { system: "s".repeat(8_000), ..crate::machine::world::nature::plan() };
        let spec = RunSpec { terms: vec![terms], ..spec() };
        let mut walk = Walk::planning(spec).answer(crate::machine::walk::planned(plan));
        let mut summaries = 0;
        for turn in 0..40 {
            assert!(length(&walk) < window * 9 / 10, "{} tokens in turn {turn} of {window}", length(&walk));
            let (id, read) = (format!("c{turn}"), used(length(&walk), 20));
            let call = Block::ToolUse(crate::machine::walk::tool(&id, "files-read"));
            let content = [text("I read on."), vec![call]].concat();
            walk = walk.answer(|call| match replies(StopReason::ToolUse, content)(call) {
                Event::ModelCompleted { call, mut reply } => {
                    reply.usage = Some(read);
                    Event::ModelCompleted { call, reply }
                }
                other => other,
            });
            walk = walk.answer(ran(ToolOutcome::ok(format!("{turn} {}", "x".repeat(30_000)))));
            if walk.run.label() == "Compacting" {
                summaries += 1;
                walk = walk.answer(summarised(Ok(&"in short ".repeat(100)), used(100, 10)));
            }
            assert_eq!(walk.run.label(), "CallingModel", "turn {turn}");
        }
        assert!(summaries <= 10, "{summaries} summaries in a window of {window}");
    }
}

#[test]
fn the_results_of_a_turn_have_a_quarter_of_the_window_together() {
    let terms = ModelTerms { context_window: Some(8_000), ..ModelTerms::default() };
    let both = calls(&[("a", "files-read"), ("b", "files-read")]);
    let mut walk = Walk::calling(RunSpec { terms: vec![terms], ..spec() }).answer(both);
    for _ in 0..2 {
        walk = walk.answer(ran(ToolOutcome::ok("é".repeat(10_000))));
    }
    let heard = crate::machine::walk::heard(&walk.run);
    assert!(heard[0].len() < 8_200 && heard[1].len() < 700, "{} and {}", heard[0].len(), heard[1].len());
    assert!(heard.iter().all(|told| told.contains("bytes left out to save room")));
}
