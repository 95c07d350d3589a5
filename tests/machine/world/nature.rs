//! Generators for the simulated world: run specs, plans, and all answers of models, tools, gates
//! and people.

use crate::support::Dice;
use fledge::chat::{
    Block, Delta, FileChange, FileChangeKind, Message, ModelError, ModelErrorKind, OutcomeDetail, Price, Reply, Spent,
    StopReason, ToolCall, ToolInput, ToolOutcome, Usage,
};
use fledge::id::{CallId, RunId, TreeId};
use fledge::limits::Limits;
use fledge::run::{Delivery, Event, ModelTerms, RunPlan, RunSpec, ToolAccess, ToolRole, ToolRule};
use fledge::task::OnTamper;
use fledge::verdict::{Proof, Reason, Ruling, StepReport, StepStatus, StopCause, TamperFinding, Verdict};
use serde_json::json;
use std::collections::BTreeMap;

/// The main kind of trouble in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Temper {
    Steady,
    Busy,
    Looping,
    Garbled,
    Flaky,
    Silent,
    Endless,
    Spending,
    Cheating,
    Stubborn,
}

pub(crate) const TEMPERS: [Temper; 10] = [
    Temper::Steady,
    Temper::Busy,
    Temper::Looping,
    Temper::Garbled,
    Temper::Flaky,
    Temper::Silent,
    Temper::Endless,
    Temper::Spending,
    Temper::Cheating,
    Temper::Stubborn,
];

const TOOLS: [(&str, ToolRole, ToolAccess); 8] = [
    ("files-read", ToolRole::Reader, ToolAccess::Allowed),
    ("search-grep", ToolRole::Reader, ToolAccess::Allowed),
    ("git-log", ToolRole::Reader, ToolAccess::Ask),
    ("files-edit", ToolRole::Writer, ToolAccess::Allowed),
    ("files-delete", ToolRole::Writer, ToolAccess::Ask),
    ("shell-exec", ToolRole::Writer, ToolAccess::Allowed),
    ("subagent-spawn", ToolRole::Child, ToolAccess::Allowed),
    ("git-push", ToolRole::Writer, ToolAccess::Denied),
];

pub(crate) fn spec(dice: &mut Dice) -> RunSpec {
    let models = ["first", "second", "third"].iter().take(1 + dice.below(3) as usize);
    let usd_micros = dice.pick(&[None, None, None, Some(900), Some(20_000)]);
    let has_prices = usd_micros.is_some() && !dice.chance(100);
    let mut spec = RunSpec {
        terms: models.clone().map(|_| terms(has_prices, dice)).collect(),
        depth: dice.pick(&[0, 0, 0, 1, 2]),
        commits: dice.chance(500),
        verify: !dice.chance(150),
        max_retries: dice.pick(&[0, 1, 3, 3, 5]),
        stuck_after: dice.pick(&[None, None, Some(1), Some(2), Some(3)]),
        on_tamper: dice.pick(&[OnTamper::Restore, OnTamper::Restore, OnTamper::Fail]),
        models: models.map(|name| (*name).to_owned()).collect(),
        context_window: dice.pick(&[None, Some(50), Some(600), Some(200_000)]),
        parallel_reads: dice.chance(500),
        confirm_within_ms: dice.pick(&[None, Some(0), Some(30_000)]),
        limits: Limits {
            turns: dice.pick(&[0, 3, 12, 40, 40]),
            tokens: dice.pick(&[None, None, None, Some(5_000), Some(20_000)]),
            usd_micros,
            time_ms: dice.pick(&[20_000, 600_000, 3_600_000]),
            calls_per_turn: dice.pick(&[2, 64]),
            tries: dice.pick(&[1, 2, 4]),
            loop_threshold: dice.pick(&[2, 4, 8]),
            ..Limits::default()
        },
        seed: dice.throw(),
        ..RunSpec::new(RunId::new("run"), "title", "prompt")
    };
    spec.is_fix = spec.verify && spec.seed.is_multiple_of(20);
    spec
}

fn terms(has_price: bool, dice: &mut Dice) -> ModelTerms {
    let price = Price { input: 1_000_000, output: dice.pick(&[0, 3_000_000]), ..Price::default() };
    ModelTerms {
        price: has_price.then_some(price),
        context_window: dice.pick(&[None, None, Some(0), Some(900), Some(4_000)]),
        max_output_tokens: dice.pick(&[None, Some(0), Some(50), Some(50), Some(u64::MAX)]),
        largest_output: dice.pick(&[None, Some(0), Some(32_000), Some(u64::MAX)]),
        compact_at_percent: None,
    }
}

pub(crate) fn plan() -> RunPlan {
    let rule = |(name, role, access): (&str, ToolRole, ToolAccess)| ToolRule { name: name.into(), access, role };
    RunPlan {
        messages: vec![Message::user("do it")],
        rules: TOOLS.map(rule).into(),
        gate_digest: "gate".into(),
        ..RunPlan::default()
    }
}

/// A plan whose gate passed on the existing work and on the files that its lanes wrote.
pub(crate) fn passed_plan() -> RunPlan {
    let verdict = Verdict {
        ruling: Ruling::Passed,
        steps: vec![step("a", StepStatus::Passed)],
        findings: Vec::new(),
        duration_ms: 5,
        feedback: String::new(),
        signature: String::new(),
        notes: vec!["a lane has written".into()],
        installed: None,
        failed_before: Vec::new(),
        unchanged_since: None,
        proof: Some(Box::new(proof())),
    };
    RunPlan { base_verdict: Some(Box::new(verdict)), ..plan() }
}

/// Returns a plan that sometimes requires a structured answer.
pub(crate) fn some_plan(dice: &mut Dice) -> RunPlan {
    // The gate passed on the existing work, which matters only to a fix.
    let may_be_done = passed_plan();
    match dice.chance(100) {
        true => RunPlan { output_schema: Some(json!({"type": "object"})), ..plan() },
        false => may_be_done,
    }
}

pub(crate) fn reply(temper: Temper, dice: &mut Dice) -> Reply {
    // Weights of: calls, done, a question, cut off, pause, refusal, nothing.
    let weights = match temper {
        Temper::Steady | Temper::Flaky | Temper::Spending => [600, 300, 40, 20, 20, 10, 10],
        Temper::Busy => [930, 40, 10, 10, 5, 2, 3],
        Temper::Looping | Temper::Garbled => [960, 20, 0, 10, 0, 5, 5],
        Temper::Silent => [200, 100, 200, 0, 0, 100, 400],
        Temper::Endless => [200, 20, 0, 480, 300, 0, 0],
        Temper::Cheating | Temper::Stubborn => [300, 700, 0, 0, 0, 0, 0],
    };
    let text = |text: &str| vec![Block::Text { text: text.into() }];
    let (stop, content) = match dice.weigh(&weights) {
        0 => (dice.pick(&[StopReason::ToolUse, StopReason::ToolUse, StopReason::EndTurn]), calls(temper, dice)),
        1 => (StopReason::EndTurn, text(dice.pick(&["All done.", "{\"done\": true}"]))),
        2 => (StopReason::EndTurn, text(dice.pick(&["I need to read src/main.rs", "Which variables are set?"]))),
        3 => (StopReason::OutputLimit, if dice.chance(400) { calls(temper, dice) } else { text("and so") }),
        4 => (StopReason::Pause, if dice.chance(200) { calls(temper, dice) } else { text("wait") }),
        5 => (StopReason::Refusal, if dice.chance(500) { Vec::new() } else { text("No.") }),
        _ => (dice.pick(&[StopReason::EndTurn, StopReason::ToolUse]), text(dice.pick(&["", " ", "\n"]))),
    };
    let usage = (!dice.chance(200)).then(|| usage(temper, dice));
    Reply { content, stop, usage, model: dice.pick(&["first-v1", "second-v2"]).into(), lacks_end: false }
}

fn calls(temper: Temper, dice: &mut Dice) -> Vec<Block> {
    if temper == Temper::Looping {
        return vec![Block::ToolUse(ToolCall {
            id: format!("l{}", dice.throw()),
            name: "search-grep".into(),
            input: ToolInput::Object(json!({"pattern": "x"})),
        })];
    }
    let count = 1 + dice.below(4) + if dice.chance(30) { 10 } else { 0 };
    let mut content = vec![Block::Thinking { text: "hm".into(), opaque: None }];
    if dice.chance(20) {
        // No provider should send this block; the machine must handle it.
        content.push(Block::ToolResult(fledge::chat::ToolResult::text("x", "?", false)));
    }
    content.extend((0..count).map(|_| Block::ToolUse(call(temper, dice))));
    content
}

pub(crate) fn call(temper: Temper, dice: &mut Dice) -> ToolCall {
    let id = match dice.below(12) {
        0 => String::new(),
        1 => "again".into(),
        2 => format!("call_t{}_{}", dice.below(6), dice.below(4)),
        3 => format!("again_t{}_{}", dice.below(6), dice.below(4)),
        _ => format!("c{}", dice.throw()),
    };
    let name = if dice.chance(40) { "no-such-tool" } else { TOOLS[dice.below(TOOLS.len() as u64) as usize].0 };
    let garbled = dice.chance(if temper == Temper::Garbled { 930 } else { 30 });
    // Any finite number must survive the journal unchanged.
    let number = Some(f64::from_bits(dice.throw())).filter(|number| number.is_finite()).unwrap_or(0.5);
    let path = dice.below(3);
    let text = if garbled { "{\"path\":".into() } else { format!("{{\"path\":\"f{path}\",\"n\":{number:e}}}") };
    ToolCall { id, name: name.into(), input: ToolInput::parse(&text) }
}

pub(crate) fn delta(dice: &mut Dice) -> Delta {
    if dice.chance(500) { Delta::Text("so".into()) } else { Delta::Thinking("hm".into()) }
}

pub(crate) fn usage(temper: Temper, dice: &mut Dice) -> Usage {
    let huge = temper == Temper::Spending && dice.chance(20);
    let input_tokens = if huge { u64::MAX - 5 } else { dice.below(900) };
    let cost_micros = dice.chance(600).then(|| dice.below(200));
    Usage { input_tokens, output_tokens: dice.below(90), cost_micros, ..Usage::default() }
}

/// Returns the end of a sub-agent.
pub(crate) fn reported(call: CallId, outcome: ToolOutcome, temper: Temper, dice: &mut Dice) -> Event {
    let usage = usage(temper, dice);
    let by_model =
        if dice.chance(500) { BTreeMap::from([("first-v1".to_owned(), usage.clone())]) } else { BTreeMap::new() };
    let changes = outcome.change.clone().into_iter().collect();
    let turns = dice.below(4);
    Event::ChildFinished { call, outcome, usage, turns, requests: turns, by_model, changes }
}

/// Returns a summary or a failure.
pub(crate) fn summarised(call: CallId, temper: Temper, dice: &mut Dice) -> Event {
    let result = match dice.below(8) {
        0 => Ok(String::new()),
        1 => Ok("at length ".repeat(200)),
        2 | 3 => Err("too long".into()),
        _ => Ok("in short".into()),
    };
    let usage = if dice.chance(300) { Usage::default() } else { usage(temper, dice) };
    let model = dice.pick(&["", "first-v1"]).into();
    let error = (result.is_err() && dice.chance(600)).then(|| failure(dice));
    Event::CompactionFinished { call, result, usage, model, error }
}

pub(crate) fn failure(dice: &mut Dice) -> ModelError {
    use ModelErrorKind::{Auth, BadRequest, Busy, ContextTooLong, Network, NotFound, Protocol, Quota};
    let fault = dice.pick(&[
        Network,
        Network,
        Busy,
        Busy,
        Protocol,
        Protocol,
        Protocol,
        ContextTooLong,
        ContextTooLong,
        Auth,
        Quota,
        NotFound,
        BadRequest,
    ]);
    let retry_after_ms =
        dice.pick(&[None, None, None, Some(0), Some(2_500), Some(120_000), Some(120_001), Some(u64::MAX)]);
    let usage = dice.chance(500).then(|| Usage { cost_micros: None, ..usage(Temper::Spending, dice) });
    let spent = Spent { model: dice.pick(&["", "first-v1"]).into(), usage, bytes: dice.below(500), ..Spent::default() };
    let spent = dice.chance(400).then_some(spent);
    ModelError { retry_after_ms, spent: spent.map(Box::new), ..ModelError::new(fault, "no answer") }
}

pub(crate) fn outcome(temper: Temper, dice: &mut Dice) -> ToolOutcome {
    if temper == Temper::Looping {
        return ToolOutcome::ok("nothing found");
    }
    let kind = dice.pick(&[FileChangeKind::Created, FileChangeKind::Modified, FileChangeKind::Deleted]);
    let path = dice.pick(&["a", "b", "c"]).to_owned();
    let change = dice.chance(400).then(|| FileChange { path, kind, added: dice.below(9), removed: dice.below(9) });
    let is_error = dice.chance(200);
    let content = if is_error { "bad".into() } else { format!("r{}", dice.throw()) };
    ToolOutcome {
        content,
        is_error,
        transient: dice.chance(500),
        change,
        detail: OutcomeDetail::None,
        images: Vec::new(),
    }
}

pub(crate) fn verdict(temper: Temper, dice: &mut Dice) -> Verdict {
    use Ruling::{Errored, Failed, Passed, Tampered};
    let ruling = match temper {
        Temper::Cheating => dice.pick(&[Tampered, Tampered, Tampered, Failed, Passed]),
        Temper::Stubborn => dice.pick(&[Failed, Failed, Failed, Failed, Failed, Failed, Errored, Passed]),
        _ => dice.pick(&[Passed, Passed, Passed, Passed, Failed, Failed, Failed, Errored, Tampered]),
    };
    let mark = dice.pick(&["a", "b", "c"]);
    let finding = || TamperFinding { path: format!("lanes/{mark}"), change: "changed".into(), rule: "lanes".into() };
    let status = if ruling == Passed { StepStatus::Passed } else { StepStatus::Failed };
    Verdict {
        ruling,
        steps: vec![step(mark, status)],
        findings: if ruling == Tampered { vec![finding()] } else { Vec::new() },
        duration_ms: dice.below(5_000),
        feedback: if ruling == Passed { String::new() } else { format!("step {mark} failed") },
        signature: if ruling == Passed { String::new() } else { mark.into() },
        notes: Vec::new(),
        installed: None,
        failed_before: Vec::new(),
        unchanged_since: None,
        proof: (ruling == Passed && dice.chance(700)).then(|| Box::new(proof())),
    }
}

/// Returns a tree id that repeats one digit.
pub(crate) fn tree(digit: char) -> TreeId {
    TreeId::parse(&digit.to_string().repeat(40)).expect("an id")
}

/// Returns the proof for a pass of changed work.
pub(crate) fn proof() -> Proof {
    Proof {
        base: tree('b'),
        tree: tree('c'),
        lanes: "gate".into(),
        room: "clean".into(),
        sandbox: "off".into(),
        tests: None,
        tests_before: None,
        tests_by_name: 0,
        canaries: 0,
        without_canary: BTreeMap::new(),
        held_out: 0,
        hidden: 0,
    }
}

pub(crate) fn delivery() -> Delivery {
    let (commit, branch) = ("d".repeat(40), Some("refs/heads/main".to_owned()));
    Delivery { commit, branch, tree: None, notes: vec!["git has no committer configured".into()] }
}

pub(crate) fn step(name: &str, status: StepStatus) -> StepReport {
    StepReport {
        lane: "verify".into(),
        step: name.into(),
        command: "make".into(),
        status,
        tries: 1,
        exit_code: None,
        signal: None,
        duration_ms: 1,
        log: None,
        excerpt: String::new(),
        note: String::new(),
        tests: None,
    }
}

pub(crate) fn any_reason(dice: &mut Dice) -> Reason {
    dice.pick(&Reason::ALL)
}

/// Returns the gate's verdict on the base, usually a pass.
pub(crate) fn base_judged(dice: &mut Dice) -> Event {
    let result = match dice.below(10) {
        0 => Err("there is no program `x`".into()),
        1..4 => Ok(vec!["verify/lint".into()]),
        _ => Ok(Vec::new()),
    };
    Event::BaseJudged { result }
}

pub(crate) fn any_cause(dice: &mut Dice) -> StopCause {
    dice.pick(&[StopCause::Interrupt, StopCause::Terminate, StopCause::Token])
}
