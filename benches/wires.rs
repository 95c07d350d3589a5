//! Benchmark of reading long answers: through the reader alone, and through each wire format, in
//! chunks as a socket delivers them. Prints megabytes a second.

#![expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
#![expect(clippy::print_stdout, reason = "its figures are what it is for")]
#![expect(clippy::unwrap_used, reason = "a benchmark that cannot go on stops")]

use fledge::provider::{EventFraming, FramingFormat, WireFormat, decode};
use serde_json::json;
use std::{
    hint::black_box,
    time::{Duration, Instant},
};

/// The size of a chunk, in bytes.
const CHUNK: usize = 16 * 1024;
/// The number of text pieces in an answer.
const PIECES: u64 = 20_000;
/// The number of readings of each answer, of which the fastest counts.
const TIMES: usize = 7;

fn main() {
    for kind in [WireFormat::Anthropic, WireFormat::OpenAi, WireFormat::OpenAiResponses, WireFormat::Ollama] {
        let form = if kind == WireFormat::Ollama { FramingFormat::Lines } else { FramingFormat::Events };
        for (size, piece) in [("short", 16), ("long", 4096)] {
            let bytes = answer(&kind, PIECES * 16 / piece, &"a word ".repeat(600)[..piece as usize]);
            let reader = best(&bytes, |chunks| {
                let (mut framing, mut events) = (EventFraming::new(form), 0_u64);
                for chunk in chunks {
                    framing.push(chunk);
                    while let Some(event) = framing.next_event().unwrap() {
                        black_box(event);
                        events += 1;
                    }
                }
                events
            });
            let codec = best(&bytes, |chunks| decode(&kind, chunks, &|delta| drop(black_box(delta))).unwrap());
            println!("{:<17}{size} pieces: reader {reader:>6.0} MB/s, with codec {codec:>6.0} MB/s", kind.name());
        }
    }
}

/// Returns the megabytes a second of the fastest reading.
fn best<'b, T>(bytes: &'b [u8], read: impl Fn(std::slice::Chunks<'b, u8>) -> T) -> f64 {
    let time = |_| {
        let begun = Instant::now();
        black_box(read(bytes.chunks(CHUNK)));
        begun.elapsed()
    };
    let best = (0..TIMES).map(time).min().unwrap_or(Duration::MAX);
    bytes.len() as f64 / 1e6 / best.as_secs_f64()
}

/// Returns an answer with this many pieces of text.
fn answer(kind: &WireFormat, pieces: u64, piece: &str) -> Vec<u8> {
    let event =
        |value: serde_json::Value| format!("event: {}\ndata: {value}\n\n", value["type"].as_str().unwrap_or("x"));
    let all = piece.repeat(pieces as usize);
    let (begin, middle, end) = match kind {
        WireFormat::Anthropic => (
            [
                json!({"type": "message_start", "message": {"model": "m", "usage": {"input_tokens": 5}}}),
                json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
            ]
            .map(event)
            .concat(),
            event(json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": piece}})),
            [
                json!({"type": "content_block_stop", "index": 0}),
                json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}}),
                json!({"type": "message_stop"}),
            ]
            .map(event)
            .concat(),
        ),
        WireFormat::OpenAi => {
            let chunk = |delta, reason| {
                let choice = json!({"index": 0, "delta": delta, "logprobs": null, "finish_reason": reason});
                let chunk = json!({"id": "chatcmpl-0123456789", "object": "chat.completion.chunk", "model": "m", "choices": [choice]});
                format!("data: {chunk}\n\n")
            };
            let end = chunk(json!({}), json!("stop")) + "data: [DONE]\n\n";
            (chunk(json!({"role": "assistant"}), json!(null)), chunk(json!({"content": piece}), json!(null)), end)
        }
        WireFormat::OpenAiResponses => (
            [
                json!({"type": "response.created", "response": {"model": "m"}}),
                json!({"type": "response.output_item.added", "output_index": 0, "item": {"type": "message"}}),
            ]
            .map(event)
            .concat(),
            event(json!({"type": "response.output_text.delta", "item_id": "msg_0123456789", "output_index": 0, "content_index": 0,
                "sequence_number": 5, "delta": piece, "logprobs": []})),
            [
                json!({"type": "response.output_item.done", "output_index": 0, "item": {"type": "message", "content": [{"text": all}]}}),
                json!({"type": "response.completed", "response": {"model": "m"}}),
            ]
            .map(event)
            .concat(),
        ),
        WireFormat::Ollama => {
            let line = |content: &str, more: &str| {
                format!("{{\"model\":\"m\",\"created_at\":\"2026-11-22T00:00:00.0Z\",\"message\":{{\"role\":\"assistant\",\"content\":\"{content}\"}},{more}}}\n")
            };
            (String::new(), line(piece, "\"done\":false"), line("", "\"done\":true,\"done_reason\":\"stop\""))
        }
        WireFormat::Cassette { .. } => Default::default(),
    };
    [begin, middle.repeat(pieces as usize), end].concat().into_bytes()
}
