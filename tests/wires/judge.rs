//! Invariants of all answers, regardless of their bytes.

use crate::support::Dice;
use crate::wires::oracle;
use fledge::{
    chat::{Block, Delta, ModelError, Reply, ToolCall, ToolInput, is_shallow},
    provider::{EventFraming, FramingFormat, WireFormat, decode},
};
use std::sync::Mutex;

type Read = (Vec<Delta>, Result<Reply, ModelError>);

/// Reads the bytes whole and in pieces and checks the answers. Returns true if they are a reply.
pub(crate) fn judged(kind: &WireFormat, bytes: &[u8], dice: &mut Dice, seed: u64) -> bool {
    let shown = || format!("{kind:?}, seed {seed}: {}", String::from_utf8_lossy(bytes));
    let whole = answer(kind, [bytes]);
    assert_eq!(answer(kind, dice.cut(bytes)), whole, "in pieces: {}", shown());
    if seed % 16 == 1 {
        assert_eq!(answer(kind, bytes.chunks(1)), whole, "in single bytes: {}", shown());
    }
    let (deltas, Ok(reply)) = whole else { return false };
    let (mut text, mut thoughts, mut calls) = (String::new(), String::new(), Vec::new());
    for delta in deltas {
        match delta {
            Delta::Text(piece) => text.push_str(&piece),
            Delta::Thinking(piece) => thoughts.push_str(&piece),
            Delta::ToolCall(call) => calls.push(call),
            Delta::Spent(_) => panic!("bytes alone cost nothing: {}", shown()),
        }
    }
    let form = if *kind == WireFormat::Ollama { FramingFormat::Lines } else { FramingFormat::Events };
    assert_eq!(text, reply.text(), "streamed text: {}", shown());
    assert_eq!(oracle::said(kind, &oracle::events(form, bytes).0), Some(reply.text()), "said text: {}", shown());
    assert_eq!(thoughts, thought(&reply), "streamed thoughts: {}", shown());
    assert_eq!(sorted(calls), sorted(reply.tool_calls().cloned().collect()), "streamed calls: {}", shown());
    let is_whole = |call: &ToolCall| match &call.input {
        ToolInput::Object(value) => value.is_object() && is_shallow(value),
        ToolInput::Malformed { error, .. } => !error.is_empty(),
    };
    assert!(reply.tool_calls().all(|call| !call.id.is_empty() && is_whole(call)), "calls: {}", shown());
    let journal = serde_json::to_string(&reply).unwrap();
    assert_eq!(serde_json::from_str::<Reply>(&journal).unwrap(), reply, "the journal: {}", shown());
    true
}

/// Returns the events in the bytes, and false if reading stopped at an error.
pub(crate) fn read<'b>(form: FramingFormat, chunks: impl IntoIterator<Item = &'b [u8]>) -> (Vec<String>, bool) {
    let (mut framing, mut events) = (EventFraming::new(form), Vec::new());
    for chunk in chunks {
        framing.push(chunk);
        loop {
            match framing.next_event() {
                Ok(Some(event)) => events.push(event.to_owned()),
                Ok(None) => break,
                Err(_) => return (events, false),
            }
        }
    }
    framing.push(b"\n\n");
    match framing.next_event() {
        Ok(last) => events.extend(last.map(str::to_owned)),
        Err(_) => return (events, false),
    }
    (events, true)
}

fn answer<'b>(kind: &WireFormat, chunks: impl IntoIterator<Item = &'b [u8]>) -> Read {
    let deltas = Mutex::new(Vec::new());
    let end = decode(kind, chunks, &|delta| deltas.lock().unwrap().push(delta));
    (deltas.into_inner().unwrap(), end)
}

fn thought(reply: &Reply) -> String {
    let thoughts = reply.content.iter().filter_map(|block| match block {
        Block::Thinking { text, .. } => Some(text.as_str()),
        Block::Text { .. } | Block::Image(_) | Block::ToolUse(_) | Block::ToolResult(_) | Block::Opaque { .. } => None,
    });
    thoughts.collect()
}

fn sorted(mut calls: Vec<ToolCall>) -> Vec<String> {
    calls.sort_by(|one, other| one.id.cmp(&other.id));
    let mut told: Vec<String> = calls.iter().map(|call| format!("{call:?}")).collect();
    told.sort();
    told
}
