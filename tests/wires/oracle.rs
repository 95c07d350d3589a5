//! A second reader for comparison: the events of a stream and their text, in the simplest correct
//! code.

use fledge::provider::{FramingFormat, WireFormat};
use serde_json::Value;
use std::collections::BTreeMap;

/// Returns the events of a stream, including a last one without its end. Stops at the first event
/// that is not text, and then returns `false`.
pub(crate) fn events(form: FramingFormat, bytes: &[u8]) -> (Vec<String>, bool) {
    let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
    let found: Vec<Vec<u8>> = match form {
        FramingFormat::Lines => {
            let lines = bytes.split(|byte| *byte == b'\n');
            lines.filter(|line| !line.trim_ascii().is_empty()).map(<[u8]>::to_vec).collect()
        }
        FramingFormat::Events => {
            let mut events = Vec::new();
            let mut data: Vec<Vec<u8>> = Vec::new();
            for line in lines(bytes).into_iter().chain([Vec::new()]) {
                if line.is_empty() {
                    if !data.is_empty() {
                        events.push(data.join(&b'\n'));
                    }
                    data.clear();
                } else if line == b"data" {
                    data.push(Vec::new());
                } else if let Some(value) = line.strip_prefix(b"data:") {
                    data.push(value.strip_prefix(b" ").unwrap_or(value).to_vec());
                }
            }
            events
        }
    };
    let mut texts = Vec::new();
    for event in found {
        match String::from_utf8(event) {
            Ok(text) => texts.push(text),
            Err(_) => return (texts, false),
        }
    }
    (texts, true)
}

fn lines(bytes: &[u8]) -> Vec<Vec<u8>> {
    let (mut lines, mut line, mut after_cr) = (Vec::new(), Vec::new(), false);
    for byte in bytes {
        match byte {
            b'\n' if after_cr => {}
            b'\n' | b'\r' => lines.push(std::mem::take(&mut line)),
            byte => line.push(*byte),
        }
        after_cr = *byte == b'\r';
    }
    lines.push(line);
    lines
}

/// Returns the text of the events up to the end of the answer, or `None` if the answer does not
/// end.
pub(crate) fn said(kind: &WireFormat, events: &[String]) -> Option<String> {
    let (mut text, mut items) = (String::new(), BTreeMap::<u64, String>::new());
    let add = |text: &mut String, value: &Value| text.push_str(value.as_str().unwrap_or_default());
    for event in events {
        if *kind == WireFormat::OpenAi && event.trim() == "[DONE]" {
            return Some(text);
        }
        let event: Value = serde_json::from_str(event).ok()?;
        match kind {
            WireFormat::Anthropic => match event["type"].as_str()? {
                "message_stop" => return Some(text),
                "content_block_start" if event["content_block"]["type"] == "text" => {
                    add(&mut text, &event["content_block"]["text"]);
                }
                "content_block_delta" if event["delta"]["type"] == "text_delta" => {
                    add(&mut text, &event["delta"]["text"])
                }
                _ => {}
            },
            WireFormat::OpenAi => {
                for choice in event["choices"].as_array().into_iter().flatten() {
                    add(&mut text, &choice["delta"]["content"]);
                    add(&mut text, &choice["delta"]["refusal"]);
                }
            }
            WireFormat::OpenAiResponses => match event["type"].as_str()? {
                "response.completed" | "response.incomplete" => return Some(items.into_values().collect()),
                "response.output_text.delta" | "response.refusal.delta" => {
                    add(items.entry(event["output_index"].as_u64()?).or_default(), &event["delta"]);
                }
                "response.output_item.done" if event["item"]["type"] == "message" => {
                    let item = items.entry(event["output_index"].as_u64()?).or_default();
                    item.clear();
                    for part in event["item"]["content"].as_array().into_iter().flatten() {
                        add(item, &part["text"]);
                        add(item, &part["refusal"]);
                    }
                }
                _ => {}
            },
            WireFormat::Ollama => {
                add(&mut text, &event["message"]["content"]);
                if event["done"] == true {
                    return Some(text);
                }
            }
            WireFormat::Cassette { .. } => return None,
        }
    }
    None
}
