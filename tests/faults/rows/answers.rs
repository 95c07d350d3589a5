//! Faults in complete answers: their requests are impossible, forbidden or empty.

use super::{Case, Entry, holds, told_model};
use crate::faults::play::Played;
use crate::faults::voice::{Answer, Stop, Wire, call, say, write};
use fledge::chat::Block;
use fledge::verdict::Reason;
use serde_json::{Value, json};
use std::collections::BTreeSet;

pub(super) const ROWS: &[Entry] = &[
    ("L25", "arguments that are not JSON", l25),
    ("L26", "cut by the output limit in a call", l26),
    ("L27", "a tool that is not offered", l27),
    ("L28", "an id twice", l28),
    ("L29", "JSON that is a trap", l29),
    ("L30", "nothing, or only thoughts", l30),
    ("L31", "a refusal", l31),
    ("L32", "`pause_turn`", l32),
    ("L33", "`model_context_window_exceeded`", l33),
    ("L34", "stop reason and calls disagree", l34),
    ("L37", "usage missing or absurd", l37),
    ("L38", "300 calls in one turn", l38),
];

/// Returns a case with this answer, followed by a good one.
fn mends(wire: Wire, name: &'static str, answer: &Answer) -> Case {
    Case::mends(wire, name, vec![wire.whole(answer)])
}

fn l25(wire: Wire) -> Vec<Case> {
    let garbled = |text: &str| call("files-write", text);
    let told = |played: &Played| told_model(played, "are not a JSON object");
    vec![
        mends(wire, "no JSON", &garbled("{\"path\": oops")).check(told),
        mends(wire, "no object", &garbled("[1, 2]")).check(told),
        mends(wire, "beside a good one", &garbled("oops").and("call_2", "files-write", "{\"path\":\"a\"}"))
            .check(told)
            .runs(1),
        Case::stays("for ever", vec![wire.whole(&garbled("oops"))], Reason::ModelProtocol, 3),
    ]
}

fn l26(wire: Wire) -> Vec<Case> {
    let cut = if wire == Wire::Ollama { "{\"path\":\"a\"" } else { "{\"path\":\"a\",\"cont" };
    let case = |name, arguments: &str| mends(wire, name, &call("files-write", arguments).stopping(Stop::Length));
    let whole = call("files-write", "{\"path\":\"a\"}").stopping(Stop::Length);
    vec![
        case("cut", cut),
        case("can be read", "{\"path\":\"a\",\"content\":\"\"}"),
        mends(wire, "in text", &say("I begin").stopping(Stop::Length)),
        Case::stays("for ever", vec![wire.whole(&whole)], Reason::ModelProtocol, 4),
    ]
}

fn l27(wire: Wire) -> Vec<Case> {
    let case = |name, tool| mends(wire, name, &call(tool, "{}")).check(|played| told_model(played, "there is no tool"));
    vec![
        case("unknown", "rm-rf"),
        case("another case", "Files-Write"),
        case("no name", ""),
        case("white space", " files-write"),
    ]
}

/// Asserts that every call of the conversation has a unique id and exactly one result.
fn paired(played: &Played) -> Result<(), String> {
    let blocks = || played.conversation.iter().flat_map(|message| &message.content);
    let calls: Vec<&String> =
        blocks().filter_map(|block| if let Block::ToolUse(call) = block { Some(&call.id) } else { None }).collect();
    let results: Vec<&String> = blocks()
        .filter_map(|block| if let Block::ToolResult(result) = block { Some(&result.id) } else { None })
        .collect();
    let own: BTreeSet<&String> = calls.iter().copied().collect();
    holds(calls == results && own.len() == calls.len(), || format!("calls {calls:?}, results {results:?}"))
}

fn l28(wire: Wire) -> Vec<Case> {
    let both = call("files-write", "{\"path\":\"a\"}").and("call_1", "files-write", "{\"path\":\"b\"}");
    let turn = |path| wire.whole(&write(path));
    let none = Answer { calls: vec![(String::new(), "files-write".into(), "{\"path\":\"a\"}".into())], ..both.clone() };
    let mut cases = vec![
        mends(wire, "in a turn", &both).runs(1).check(paired),
        Case { fault_at: 1, ..Case::mends(wire, "of an older turn", vec![turn("a"), turn("b")]) }.runs(2).check(paired),
    ];
    cases.push(match wire {
        // If the format requires an id, a call without one breaks the protocol. Elsewhere, fledge
        // assigns an id.
        Wire::Anthropic | Wire::Responses => mends(wire, "none", &none),
        Wire::Chat | Wire::Ollama => mends(wire, "none", &none).runs(1).check(paired),
    });
    cases
}

fn l29(wire: Wire) -> Vec<Case> {
    let deep = format!("{{\"path\":{}{}}}", "[".repeat(10_000), "]".repeat(10_000));
    let huge = format!("{{\"path\":\"a\",\"n\":{}}}", "9".repeat(400));
    [
        ("10,000 deep", deep.as_str()),
        ("1e400", "{\"path\":\"a\",\"n\":1e400}"),
        ("half a surrogate", "{\"path\":\"a\\ud800\"}"),
        ("a huge integer", &huge),
        ("a key twice", "{\"path\":\"a\",\"path\":\"b\"}"),
        ("a key twice, deeper", "{\"path\":\"a\",\"b\":[{\"c\":1,\"c\":2}]}"),
    ]
    .into_iter()
    .map(|(name, arguments)| mends(wire, name, &call("files-write", arguments)))
    .collect()
}

fn l30(wire: Wire) -> Vec<Case> {
    let ends = |name, answer: Answer| Case::stays(name, vec![wire.whole(&answer)], Reason::EmptyResponse, 2);
    vec![
        ends("nothing", say("")),
        ends("only thoughts", say("").thinking("Hm.")),
        ends("white space", say(" \n")),
        mends(wire, "once", &say("")),
    ]
}

fn l31(wire: Wire) -> Vec<Case> {
    if wire == Wire::Ollama {
        return Vec::new();
    }
    let ends =
        |name, answer: Answer| Case::stays(name, vec![wire.whole(&answer.stopping(Stop::Refusal))], Reason::Refused, 1);
    let mut cases = vec![
        ends("in text", say("I will not.")),
        ends("without a word", say("")),
        ends("with a tool call", Answer { text: "I will not.".into(), ..write("half") }),
    ];
    if wire == Wire::Chat {
        let frames = wire.frames(&say("No.")).concat().replace("\"content\":\"No.\"", "\"refusal\":\"No.\"");
        cases.push(Case::stays("in its own field", vec![vec![wire.streams(frames)]], Reason::Refused, 1));
    }
    if wire == Wire::Responses {
        let swaps =
            [("output_text.delta", "refusal.delta"), ("\"text\":", "\"refusal\":"), ("\"output_text\"", "\"refusal\"")];
        let frames = wire.frames(&say("No.")).concat();
        let frames = swaps.iter().fold(frames, |frames, (from, to)| frames.replace(from, to));
        cases.push(Case::stays("in its own field", vec![vec![wire.streams(frames)]], Reason::Refused, 1));
    }
    cases
}

fn l32(wire: Wire) -> Vec<Case> {
    if wire != Wire::Anthropic {
        return Vec::new();
    }
    let pause = || wire.whole(&say("Searching.").stopping(Stop::Pause));
    let half = wire.whole(&write("half").stopping(Stop::Pause));
    vec![
        Case::mends(wire, "twice", vec![pause(), pause()]),
        Case::stays("for ever", vec![pause()], Reason::ModelProtocol, 4),
        Case::mends(wire, "with a tool call", vec![half]),
    ]
}

fn l33(wire: Wire) -> Vec<Case> {
    if wire != Wire::Anthropic {
        return Vec::new();
    }
    vec![mends(wire, "", &write("half").stopping(Stop::Window))]
}

fn l34(wire: Wire) -> Vec<Case> {
    // The other two formats have no stop reason for tool calls; the presence of calls decides.
    if !matches!(wire, Wire::Anthropic | Wire::Chat) {
        return Vec::new();
    }
    let recorded = |played: &Played| {
        let is_told = |warning: &String| warning.contains("called a tool in an answer that ends its turn");
        holds(played.result.warnings.iter().any(is_told), || format!("{:?}", played.result.warnings))
    };
    let none = wire.whole(&say("").stopping(Stop::Tools));
    let words = wire.whole(&say("I call it now.").stopping(Stop::Tools));
    vec![
        Case::stays("no call", vec![none], Reason::EmptyResponse, 2),
        Case::stays("no call, but words", vec![words], Reason::EmptyResponse, 2),
        mends(wire, "a call at the end", &write("a").stopping(Stop::End)).runs(1).check(recorded),
    ]
}

fn l37(wire: Wire) -> Vec<Case> {
    let charged = |played: &Played| {
        let total = &played.result.usage.total;
        holds((1..100_000).contains(&total.input_tokens), || format!("{total:?} were charged"))
    };
    let usages: [(&'static str, Option<(Value, Value)>); 5] = [
        ("missing", None),
        ("null", Some((Value::Null, Value::Null))),
        ("negative", Some((json!(-5), json!(-7)))),
        ("absurd", Some((json!(1e18 as u64), json!(1)))),
        ("no number", Some((json!("many"), json!(0.5)))),
    ];
    let said = |usage: &Option<(Value, Value)>| Answer { text: "x".repeat(40_000), ..write("a") }.using(usage.clone());
    let case = |(name, usage): (&'static str, Option<(Value, Value)>)| {
        let case = Case::stays(name, vec![wire.whole(&said(&usage))], Reason::BudgetTokens, 1);
        Case { tokens: Some(8_000), ..case }.runs(1).check(charged)
    };
    usages.map(case).into()
}

fn l38(wire: Wire) -> Vec<Case> {
    let calls =
        (0..300).map(|n| (format!("call_{n}"), "files-write".to_owned(), json!({"path": format!("f{n}")}).to_string()));
    let many = Answer { calls: calls.collect(), ..write("a") };
    vec![mends(wire, "", &many).runs(64).check(paired).check(|played| told_model(played, "too many calls"))]
}
