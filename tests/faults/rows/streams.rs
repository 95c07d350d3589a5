//! Faults inside a stream: it stalls, breaks off, reports an error, violates its protocol, or is
//! too large.

use super::{Case, Entry, ends, holds, stream};
use crate::faults::play::Played;
use crate::faults::server::Act;
use crate::faults::voice::{Answer, Wire, say, status, write};
use fledge::chat::text_of;
use fledge::provider::MAX_EVENT;
use fledge::verdict::Reason;
use serde_json::json;
use std::time::Duration;

pub(super) const ROWS: &[Entry] = &[
    ("L14", "headers, then silence", l14),
    ("L15", "pings for ever", l15),
    ("L16", "one byte at a time for ever", l16),
    ("L17", "reset in the middle", l17),
    ("L18", "clean end too early", l18),
    ("L19", "an error inside a 200", l19),
    ("L20", "framing", l20),
    ("L21", "a line without measure", l21),
    ("L22", "data that is not JSON", l22),
    ("L23", "unknown events and blocks", l23),
    ("L24", "the protocol's order broken", l24),
    ("L35", "a 200 that is no stream", l35),
    ("L39", "a flood of text", l39),
];

/// Returns a turn with text and a whole tool call, without the events that end it.
pub(super) fn half(wire: Wire) -> String {
    let mut frames = wire.frames(&Answer { text: "I write.".into(), ..write("half") });
    let end = match wire {
        Wire::Responses | Wire::Ollama => 1,
        Wire::Anthropic => 2,
        Wire::Chat => 3, // the finish reason, the usage, and the end marker
    };
    frames.truncate(frames.len() - end);
    frames.concat()
}

/// Returns half a turn, cut in the middle of the tool's arguments.
fn cut(wire: Wire) -> String {
    let half = half(wire);
    half[..half.rfind("path").unwrap()].to_owned()
}

fn l14(wire: Wire) -> Vec<Case> {
    let case = |name, body: String| {
        Case::mends(wire, name, vec![stream(wire, body, [Act::Stall])]).clocked(|clocks, short| clocks.idle = short)
    };
    vec![case("at once", String::new()), case("after a tool call", half(wire))]
}

fn l15(wire: Wire) -> Vec<Case> {
    let case = |name, ping: String| {
        let script = stream(wire, half(wire), [Act::Drip(ping.into_bytes(), Duration::from_millis(2))]);
        Case::mends(wire, name, vec![script]).clocked(|clocks, short| clocks.idle = short)
    };
    let comment = if wire == Wire::Ollama { "\n" } else { ": still here\n\n" };
    vec![case("pings", wire.ping()), case("comments", comment.into())]
}

fn l16(wire: Wire) -> Vec<Case> {
    let frames = wire.frames(&say("x"));
    let piece = frames.iter().find(|frame| frame.contains("\"x\"")).unwrap().clone();
    let before = frames.iter().take_while(|frame| !frame.contains("\"x\"")).cloned().collect::<String>();
    let script = stream(wire, before, [Act::Drip(piece.into_bytes(), Duration::from_millis(3))]);
    vec![Case::mends(wire, "", vec![script]).clocked(|clocks, short| clocks.turn = short)]
}

fn l17(wire: Wire) -> Vec<Case> {
    vec![
        Case::mends(wire, "after a tool call", vec![stream(wire, half(wire), [Act::Reset])]),
        Case::mends(wire, "in a tool call", vec![stream(wire, cut(wire), [Act::Reset])]),
        Case::mends(wire, "before the headers", vec![vec![Act::Reset]]),
        Case::stays("for ever", vec![stream(wire, half(wire), [Act::Reset])], Reason::ProviderFailed, 4),
    ]
}

fn l18(wire: Wire) -> Vec<Case> {
    let body = half(wire);
    let mut all = wire.frames(&write("half"));
    all.pop();
    let mut cases = vec![
        Case::mends(wire, "after a tool call", vec![stream(wire, &body, [])]),
        Case::mends(wire, "in a tool call", vec![stream(wire, cut(wire), [])]),
        Case::mends(wire, "chunked, and ended", vec![ends::chunked(wire, &body, true)]),
        Case::mends(wire, "all but the last event", vec![stream(wire, all.concat(), [])]),
        Case::mends(wire, "nothing at all", vec![stream(wire, "", [])]),
    ];
    cases.push(Case::stays("for ever", vec![stream(wire, body, [])], Reason::ProviderFailed, 4));
    cases
}

fn l19(wire: Wire) -> Vec<Case> {
    let said = |kind: &str, message: &str| stream(wire, half(wire) + &wire.complains(kind, message), []);
    let mut cases = vec![Case::mends(wire, "overloaded", vec![said("overloaded_error", "Overloaded")])];
    // Ollama's errors are a text without a type.
    let is_typed = wire != Wire::Ollama;
    let key = if is_typed { said("authentication_error", "no") } else { said("", "unauthorized") };
    let spent = "you have reached your weekly usage limit, upgrade for higher limits";
    let quota = if is_typed { said("insufficient_quota", "no") } else { said("", spent) };
    cases.push(Case::stays("a key", vec![key], Reason::ProviderFailed, 1));
    cases.push(Case::stays("quota", vec![quota], Reason::ProviderFailed, 1));
    cases
}

const SAID: &str = "Žluťoučký 🦀, done.";

fn l20(wire: Wire) -> Vec<Case> {
    let plain = wire.frames(&say(SAID)).concat();
    let case = |name, body: Vec<u8>| {
        Case::stays(name, vec![stream(wire, body, [])], Reason::Verified, 1).check(|played| {
            let said = played.conversation.last().map(|message| text_of(&message.content)).unwrap_or_default();
            holds(said == SAID, || format!("it came as {said:?}"))
        })
    };
    let bytes = [wire.head().as_bytes(), plain.as_bytes()].concat();
    let split = bytes.iter().map(|byte| Act::Send(vec![*byte])).collect();
    let mut cases = vec![
        Case { scripts: vec![split], ..case("byte by byte", Vec::new()) },
        case("CRLF", plain.replace('\n', "\r\n").into_bytes()),
        case("byte order mark", format!("\u{feff}{plain}").into_bytes()),
        case("no final end", plain.trim_end().into()),
        case("blank lines", plain.replace('\n', "\n\n").into_bytes()),
    ];
    if wire != Wire::Ollama {
        cases.push(case("CR", plain.replace('\n', "\r").into_bytes()));
        cases.push(case("comments", plain.replace("data:", ": note\ndata:").into_bytes()));
        cases.push(case("data in lines", plain.replace("\":", "\":\ndata: ").into_bytes()));
        cases.push(case("events without data", plain.replace("\n\n", "\n\nevent: nothing\n\nid: 7\n\n").into_bytes()));
    }
    cases
}

/// Asserts that the bytes of endless answers stay below the cap plus the socket buffers. A
/// connection buffers up to 32 MiB if the client pauses reading, as on a busy machine.
fn bounded(played: &Played) -> Result<(), String> {
    let most = (MAX_EVENT + 4 * 40 * 1024 * 1024) as u64;
    holds(played.server.sent() < most, || format!("{} bytes were taken", played.server.sent()))
}

fn l21(wire: Wire) -> Vec<Case> {
    let prefix = if wire == Wire::Ollama { "{\"x\":\"" } else { "data: {\"x\":\"" };
    let flood = [Act::Flood(vec![b'x'; 256 * 1024])];
    let mut line = vec![b'x'; MAX_EVENT + 1];
    line.splice(..0, prefix.bytes());
    line.push(b'\n');
    vec![
        Case::mends(wire, "8 MiB", vec![stream(wire, line, [Act::Stall])]).check(bounded),
        Case::mends(wire, "endless", vec![stream(wire, prefix, flood)]).check(bounded),
    ]
}

fn l22(wire: Wire) -> Vec<Case> {
    let bad = |text: &str| {
        let event = if wire == Wire::Ollama { format!("{text}\n") } else { format!("data: {text}\n\n") };
        let whole = wire.frames(&write("half"));
        let (first, rest) = whole.split_at(1);
        stream(wire, [first.concat(), event, rest.concat()].concat(), [])
    };
    vec![
        Case::mends(wire, "cut", vec![bad("{\"type\": \"te")]),
        Case::mends(wire, "no object", vec![bad("[1]")]),
        Case::mends(
            wire,
            "no UTF-8",
            vec![{
                let plain = wire.frames(&say("abc\u{1}")).concat().replace("\\u0001", "\u{1}").into_bytes();
                let bytes: Vec<u8> = plain.into_iter().map(|byte| if byte == 1 { 0xff } else { byte }).collect();
                stream(wire, bytes, [])
            }],
        ),
        Case::stays("for ever", vec![bad("oops")], Reason::ModelProtocol, 4),
    ]
}

fn l23(wire: Wire) -> Vec<Case> {
    let unknown = match wire {
        Wire::Anthropic => vec![
            json!({"type": "hologram", "x": 1}),
            json!({"type": "content_block_start", "index": 0, "content_block": {"type": "hologram", "id": "h"}}),
            json!({"type": "content_block_stop", "index": 0}),
        ],
        Wire::Chat => vec![
            json!({"hologram": 1, "choices": [{"index": 0, "delta": {"hologram": {"id": "h"}}, "finish_reason": null}]}),
        ],
        Wire::Responses => vec![
            json!({"type": "response.hologram.delta", "output_index": 0, "delta": "x"}),
            json!({"type": "response.output_item.added", "output_index": 0, "item": {"type": "hologram_call", "id": "h"}}),
            json!({"type": "response.output_item.done", "output_index": 0, "item": {"type": "hologram_call", "id": "h"}}),
        ],
        Wire::Ollama => vec![
            json!({"model": "m", "hologram": 1, "message": {"content": "", "hologram": {"id": "h"}}, "done": false}),
        ],
    };
    let frames = wire.frames(&say("Done."));
    let (first, rest) = (frames[0].clone(), frames[1..].concat());
    let rest = match wire {
        Wire::Anthropic => rest.replace("\"index\":0", "\"index\":1"),
        Wire::Responses => rest.replace("\"output_index\":0", "\"output_index\":1"),
        Wire::Chat | Wire::Ollama => rest,
    };
    let unknown: String = unknown.iter().map(|event| wire.frame(event)).collect();
    vec![Case::stays("", vec![stream(wire, first + &unknown + &rest, [])], Reason::Verified, 1)]
}

fn l24(wire: Wire) -> Vec<Case> {
    let frames = wire.frames(&Answer { text: "I write.".into(), ..write("half") });
    let case = |name, frames: Vec<String>| Case::mends(wire, name, vec![stream(wire, frames.concat(), [])]);
    let twice = |place: usize| [&frames[..=place], &frames[place..]].concat();
    let without = |place: usize| [&frames[..place], &frames[place + 1..]].concat();
    let mut text_without_reason = wire.frames(&say("I am done."));
    text_without_reason.remove(text_without_reason.len().saturating_sub(3));
    let swapped = |from: &str, to: &str| frames.iter().map(|frame| frame.replace(from, to)).collect::<Vec<_>>();
    match wire {
        Wire::Anthropic => vec![
            case("an index too far", swapped("\"index\":1", "\"index\":2")),
            case("a block never begun", without(4)),
            case("a block never ended", without(3)),
            case("two beginnings", twice(0)),
            case("no beginning", without(0)),
        ],
        Wire::Chat => vec![
            case(
                "an index too far",
                swapped(
                    "\"tool_calls\":[{\"function\":{\"arguments\":\"{",
                    "\"tool_calls\":[{\"index\":7,\"function\":{\"arguments\":\"{",
                )
                .into_iter()
                .map(|frame| frame.replace("\"index\":0,\"type\":\"function\"", "\"index\":7,\"type\":\"function\""))
                .collect(),
            ),
            case(
                "text after the end",
                [&frames[..frames.len() - 1], &frames[1..2], &frames[frames.len() - 1..]].concat(),
            ),
            Case::mends(wire, "no finish reason", vec![stream(wire, text_without_reason.concat(), [])]),
        ],
        Wire::Responses => vec![
            case("an index too far", swapped("\"output_index\":1", "\"output_index\":2")),
            case("an item never begun", without(4)),
            case("an item never ended", without(6)),
            case("two beginnings", twice(0)),
            case("no beginning", without(0)),
        ],
        Wire::Ollama => vec![
            case("a line without `done`", swapped(",\"done\":false", "")),
            case("an end without a reason", swapped(",\"done_reason\":\"stop\"", "")),
        ],
    }
}

fn l35(wire: Wire) -> Vec<Case> {
    let whole = wire.frames(&write("half")).concat();
    let page = |kind: &str, more: &str, body: &str| {
        let head = format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\n{more}connection: close\r\n\r\n");
        vec![Act::Send([head.as_bytes(), body.as_bytes()].concat())]
    };
    let packed = wire.head().replace("connection: close", "content-encoding: gzip\r\nconnection: close");
    let bomb = vec![Act::Send(packed.into_bytes()), Act::Flood(vec![0; 64 * 1024])];
    vec![
        Case::mends(wire, "a page", vec![page("text/html", "", "<html>Sign in</html>")]),
        Case::mends(wire, "another type", vec![page("application/json", "", &whole)]),
        Case::mends(wire, "a stream called a page", vec![page("text/html", "", &whole)]),
        Case::mends(wire, "packed", vec![bomb]).check(bounded),
        Case::mends(wire, "empty", vec![status(200, &[], "")]),
    ]
}

fn l39(wire: Wire) -> Vec<Case> {
    let frames = wire.frames(&say("x"));
    let piece = frames
        .iter()
        .find(|frame| frame.contains("\"x\""))
        .unwrap()
        .replace("\"x\"", &format!("\"{}\"", "x".repeat(8000)));
    let before = frames.iter().take_while(|frame| !frame.contains("\"x\"")).cloned().collect::<String>();
    let case = Case::stays("", vec![stream(wire, before, [Act::Flood(piece.into_bytes())])], Reason::ModelProtocol, 4);
    vec![Case { max_response: 1024 * 1024, ..case }.check(bounded)]
}
