//! Streams of servers that almost follow the protocol: without its last line, or with a different
//! shape. Complete parts count.

use super::streams::half;
use super::{Case, Entry, holds, stream};
use crate::faults::play::Played;
use crate::faults::server::{Act, Script};
use crate::faults::voice::{Answer, Stop, Wire, call, say, write};
use fledge::chat::text_of;
use fledge::verdict::Reason;
use serde_json::{Value, json};

pub(super) const ROWS: &[Entry] = &[
    ("L44", "the last line left out of a complete answer", l44),
    ("L45", "shapes of servers that speak Chat Completions", l45),
];

/// Returns a response with this body in one chunk and, with `ends`, the terminating chunk.
pub(super) fn chunked(wire: Wire, body: &str, ends: bool) -> Script {
    let head = wire.head().replace("connection: close", "connection: close\r\ntransfer-encoding: chunked");
    let last = if ends { "0\r\n\r\n" } else { "" };
    vec![Act::Send(format!("{head}{:x}\r\n{body}\r\n{last}", body.len()).into_bytes())]
}

/// Returns a response with this body and its length.
fn measured(wire: Wire, body: &str) -> Script {
    let length = format!("connection: close\r\ncontent-length: {}", body.len());
    vec![Act::Send((wire.head().replace("connection: close", &length) + body).into_bytes())]
}

/// Asserts that the run warns once about the model's server, however often the fault occurs.
fn is_warned(played: &Played) -> Result<(), String> {
    let warnings = &played.result.warnings;
    let count = warnings.iter().filter(|warning| warning.contains("does not mark the end of an answer")).count();
    holds(count == 1, || format!("{warnings:?}"))
}

fn l44(wire: Wire) -> Vec<Case> {
    if !matches!(wire, Wire::Anthropic | Wire::Chat) {
        return Vec::new(); // in these formats the last line holds more than the end
    }
    let but_last = |answer: &Answer, last: usize| {
        let frames = wire.frames(answer);
        frames[..frames.len() - last].concat()
    };
    let writes = |name, script: Script| {
        Case::stays(name, vec![script, wire.whole(&say("Done."))], Reason::Verified, 2).runs(1).check(is_warned)
    };
    let body = but_last(&write("a"), 1);
    let mut cases = vec![
        writes("chunked", chunked(wire, &body, true)),
        writes("with a length", measured(wire, &body)),
        Case::stays(
            "in each turn",
            vec![chunked(wire, &body, true), chunked(wire, &but_last(&say("Done."), 1), true)],
            Reason::Verified,
            2,
        )
        .runs(1)
        .check(is_warned),
        Case::mends(wire, "the chunks cut", vec![chunked(wire, &body, false)]),
        Case::mends(wire, "the end of the connection alone", vec![stream(wire, &body, [])]),
        Case::mends(wire, "a call without a reason", vec![chunked(wire, &half(wire), true)]),
    ];
    if wire == Wire::Chat {
        let without = |answer: &Answer| {
            let mut frames = wire.frames(answer);
            frames.remove(frames.len() - 3);
            frames.concat()
        };
        cases.extend([
            writes("nor the usage", chunked(wire, &but_last(&write("a"), 2), true)),
            writes("the finish reason of a call", chunked(wire, &without(&write("a")), true)),
            Case::mends(
                wire,
                "the finish reason of half a call",
                vec![chunked(wire, &without(&call("files-write", "{\"path\":")), true)],
            ),
            Case::mends(wire, "the finish reason of a text", vec![chunked(wire, &without(&say("I am done.")), true)]),
            writes("both, of a call", chunked(wire, &but_last(&write("a"), 3), true)),
            writes("both, of a call, and a length", measured(wire, &but_last(&write("a"), 3))),
            Case::mends(
                wire,
                "both, of half a call",
                vec![chunked(wire, &but_last(&call("files-write", "{\"path\":"), 3), true)],
            ),
            Case::mends(
                wire,
                "both, of a call, and the chunks cut",
                vec![chunked(wire, &but_last(&write("a"), 3), false)],
            ),
            Case::mends(
                wire,
                "both, of a call, and the end of the connection alone",
                vec![stream(wire, but_last(&write("a"), 3), [])],
            ),
            Case::mends(wire, "both, of a text", vec![chunked(wire, &but_last(&say("I am done."), 3), true)]),
        ]);
    }
    cases
}

/// Returns a chunk of an answer with this delta and finish reason.
fn chunk(delta: &Value, reason: &Value) -> Value {
    json!({"id": "c", "model": "scripted", "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]})
}

/// Returns the last chunk, with the usage.
fn usage() -> Value {
    json!({"id": "c", "model": "scripted", "choices": [], "usage": {"prompt_tokens": 100, "completion_tokens": 10}})
}

/// Returns a stream of these chunks and its end.
fn said(chunks: &[Value]) -> String {
    chunks.iter().map(|chunk| Wire::Chat.frame(chunk)).collect::<String>() + "data: [DONE]\n\n"
}

fn l45(wire: Wire) -> Vec<Case> {
    if wire != Wire::Chat {
        return Vec::new();
    }
    [texts(), tools(), errors()].into_iter().flatten().collect()
}

/// Returns shapes of an answer that says `Done.`.
fn texts() -> Vec<Case> {
    let (none, stop) = (Value::Null, json!("stop"));
    let (role, text) =
        (chunk(&json!({"role": "assistant", "content": ""}), &none), chunk(&json!({"content": "Done."}), &none));
    let end = chunk(&json!({}), &stop);
    let plain = [role.clone(), text.clone(), end.clone(), usage()];
    let counted = |chunk: &Value| {
        let mut chunk = chunk.clone();
        chunk["usage"] = usage()["usage"].clone();
        chunk
    };
    let openrouter = said(&[role.clone(), text.clone(), end.clone(), counted(&role)]);
    let openrouter = openrouter.replace("data:", ": OPENROUTER PROCESSING\n\ndata:");
    let filters =
        json!({"id": "", "model": "", "object": "", "choices": [], "prompt_filter_results": [{"prompt_index": 0}]});
    let checked = json!({"model": "", "choices": [{"index": 0, "finish_reason": null, "content_filter_offsets": {}}]});
    let azure = [filters, role.clone(), text.clone(), end.clone(), checked, usage()];
    let vllm = [counted(&role), counted(&text), counted(&chunk(&json!({"content": ""}), &stop)), usage()];
    let mut llama_end = end.clone();
    llama_end["timings"] = json!({"predicted_n": 2});
    let llama = [chunk(&json!({"role": "assistant", "content": null}), &none), text.clone(), llama_end, usage()];
    let both = chunk(&json!({"role": "assistant", "content": "Done."}), &stop);
    let bedrock = [
        role.clone(),
        text.clone(),
        chunk(&json!({"role": null, "content": null, "tool_calls": null}), &stop),
        usage(),
    ];
    let empty = plain.clone().map(|chunk| chunk.to_string().replace("null", "\"\""));
    let empty = empty.map(|chunk| format!("data: {chunk}\n\n")).concat() + "data: [DONE]\n\n";
    [
        ("OpenRouter: comments, and a choice beside the usage", openrouter),
        ("Azure OpenAI: chunks of its filters", said(&azure)),
        ("vLLM: usage in each chunk", said(&vllm)),
        ("llama.cpp: null for no text, and timings", said(&llama)),
        ("null for all that is not said", said(&bedrock)),
        ("text and reason in one chunk", said(&[role, both])),
        (
            "LM Studio: role and text in the first chunk",
            said(&[chunk(&json!({"role": "assistant", "content": "Done."}), &none), end, usage()]),
        ),
        ("no usage", said(&plain[..3])),
        ("an empty finish reason", empty),
        ("no space behind `data:`", said(&plain).replace("data: ", "data:")),
    ]
    .into_iter()
    .map(|(name, body)| {
        Case::stays(name, vec![stream(Wire::Chat, body, [])], Reason::Verified, 1).check(|played| {
            let said = played.conversation.last().map(|message| text_of(&message.content)).unwrap_or_default();
            holds(said == "Done." && played.result.warnings.is_empty(), || {
                format!("{said:?}: {:?}", played.result.warnings)
            })
        })
    })
    .collect()
}

/// Returns shapes of an answer that writes two files.
fn tools() -> Vec<Case> {
    let whole = |index: Value, id: Value, path: &str| {
        let arguments = json!({"path": path, "content": "1\n"}).to_string();
        json!({"index": index, "id": id, "type": "function", "function": {"name": "files-write", "arguments": arguments}})
    };
    let none = Value::Null;
    let calls = |calls: &[Value]| chunk(&json!({"role": "assistant", "tool_calls": calls}), &none);
    let ends = |reason: &str| chunk(&json!({}), &json!(reason));
    let (a, b) = (json!("call_1"), json!("call_2"));
    let apart = [calls(&[whole(json!(0), a.clone(), "a")]), calls(&[whole(json!(0), b.clone(), "b")])];
    let together = calls(&[whole(none.clone(), none.clone(), "a"), whole(none.clone(), none.clone(), "b")]);
    let zero = calls(&[whole(json!(0), json!(""), "a"), whole(json!(0), json!(""), "b")]);
    let block = |first: i64| calls(&[whole(json!(first), a.clone(), "a"), whole(json!(first + 1), b.clone(), "b")]);
    let case = |name, body: String| {
        Case::stays(name, vec![stream(Wire::Chat, body, []), Wire::Chat.whole(&say("Done."))], Reason::Verified, 2)
            .runs(2)
    };
    let calling =
        Answer { stop: Stop::End, ..write("a") }.and("call_2", "files-write", "{\"path\":\"b\",\"content\":\"1\"}");
    vec![
        case(
            "Ollama: each call whole, at index 0, and then `stop`",
            said(&[apart[0].clone(), apart[1].clone(), ends("stop"), usage()]),
        ),
        case("calls whole in one chunk, without index and id", said(&[together, ends("tool_calls"), usage()])),
        case("calls whole in one chunk, all at index 0, without ids", said(&[zero, ends("tool_calls"), usage()])),
        case("Bedrock's gateway: a call first, at index -1", said(&[block(-1), ends("tool_calls"), usage()])),
        case("Bedrock's gateway: calls after thoughts, from index 1", said(&[block(1), ends("tool_calls"), usage()])),
        case("Gemini: `stop` after calls in pieces", Wire::Chat.frames(&calling).concat()),
    ]
}

/// Returns errors in the middle of a stream that began well.
fn errors() -> Vec<Case> {
    let text = chunk(&json!({"content": "I wri"}), &Value::Null);
    let complains = |error: Value| vec![stream(Wire::Chat, said(&[text.clone(), error]), [])];
    let failed = json!({"error": {"code": 502, "message": "Provider disconnected"}, "choices": [{"index": 0, "delta": {"content": ""}, "finish_reason": "error"}]});
    let litellm = |code: &str| json!({"error": {"message": "no", "type": "None", "param": "None", "code": code}});
    let vllm = |code: u16| json!({"object": "error", "message": "no", "type": "Error", "param": null, "code": code});
    vec![
        Case::mends(Wire::Chat, "OpenRouter: an error beside a choice", complains(failed)),
        Case::mends(Wire::Chat, "LiteLLM: an error with its code as a text, 503", complains(litellm("503"))),
        Case::stays(
            "LiteLLM: an error with its code as a text, 401",
            complains(litellm("401")),
            Reason::ProviderFailed,
            1,
        ),
        Case::mends(Wire::Chat, "vLLM: an error as a chunk, 500", complains(vllm(500))),
        Case::stays("vLLM: an error as a chunk, 400", complains(vllm(400)), Reason::ProviderFailed, 1),
        Case::mends(Wire::Chat, "an error as a text", complains(json!({"error": "The model has crashed"}))),
        Case::stays(
            "llama.cpp: too long a conversation",
            complains(json!({"error": {"code": 400, "type": "exceed_context_size_error", "message": "no"}})),
            Reason::ProviderFailed,
            1,
        ),
    ]
}
