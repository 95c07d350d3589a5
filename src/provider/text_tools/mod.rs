//! Tools for models without tool support. The system prompt describes the tools, and the model
//! calls them in fenced blocks of its text. [`TextTools`] wraps a provider and is a provider.

mod splitter;
mod translation;

use super::{DeltaSink, ModelRequest, PendingRenewal, PendingReply, Provider};
use crate::chat::Delta;
use splitter::{TextPiece, TextSplitter};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// A provider that uses only text with its model.
#[derive(Debug)]
pub struct TextTools {
    inner: Arc<dyn Provider>,
}

impl TextTools {
    /// Wraps a provider.
    pub fn new(inner: Arc<dyn Provider>) -> Self {
        Self { inner }
    }
}

impl Provider for TextTools {
    fn name(&self) -> String {
        self.inner.name()
    }

    fn complete<'a>(&'a self, request: &'a ModelRequest, deltas: DeltaSink<'a>) -> PendingReply<'a> {
        Box::pin(async move {
            let (plain, splitter) = (translation::request(request), Mutex::new(TextSplitter::new(request.turn)));
            let split = |step: &dyn Fn(&mut TextSplitter) -> Vec<TextPiece>| {
                let pieces = step(&mut splitter.lock().unwrap_or_else(PoisonError::into_inner));
                for piece in pieces {
                    deltas(match piece {
                        TextPiece::Text(text) => Delta::Text(text),
                        TextPiece::Call(call) => Delta::ToolCall(call),
                    });
                }
            };
            let sink = |delta| match delta {
                Delta::Text(text) => split(&|splitter| splitter.push(&text)),
                delta @ (Delta::Thinking(_) | Delta::ToolCall(_) | Delta::Spent(_)) => deltas(delta),
            };
            let reply = self.inner.complete(&plain, &sink).await?;
            split(&TextSplitter::finish);
            Ok(translation::reply(reply, request.turn))
        })
    }

    fn renew(&self, ahead: Duration) -> PendingRenewal<'_> {
        self.inner.renew(ahead)
    }

    fn for_child(&self, path: &str) -> Option<Arc<dyn Provider>> {
        Some(Arc::new(Self::new(self.inner.for_child(path)?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        chat::{Block, Message, StopReason, ToolCall, ToolInput, ToolSpec},
        provider::Cassette,
    };
    use serde_json::json;

    const CASSETTE: &str = r#"
turns:
  - text: "I look.\n```tool-call\n{\"name\": \"read\", \"arguments\": {\"p\": 1}}\n```\n"
"#;

    #[tokio::test]
    async fn a_call_in_the_text_is_a_call_and_its_block_is_not_shown() {
        let tools = TextTools::new(Arc::new(Cassette::parse(CASSETTE, "c.yaml").unwrap()));
        let tool = ToolSpec { name: "read".into(), description: "d".into(), schema: json!({"type": "object"}) };
        let request = ModelRequest {
            system: "be good".into(),
            messages: [Message::user("go")].into(),
            tools: [tool].into(),
            turn: 1,
            max_output: None,
        };
        let streamed = Mutex::new(Vec::new());
        let reply = tools.complete(&request, &|delta| streamed.lock().unwrap().push(delta)).await.unwrap();
        let call = ToolCall { id: "call_1_1".into(), name: "read".into(), input: ToolInput::Object(json!({"p": 1})) };
        assert_eq!(reply.content, [Block::Text { text: "I look.\n".into() }, Block::ToolUse(call.clone())]);
        assert_eq!(reply.stop, StopReason::ToolUse);
        let (mut message, mut calls) = (String::new(), Vec::new());
        for delta in streamed.into_inner().unwrap() {
            match delta {
                Delta::Text(text) => message.push_str(&text),
                Delta::ToolCall(call) => calls.push(call),
                Delta::Thinking(_) | Delta::Spent(_) => {}
            }
        }
        assert_eq!((message.as_str(), calls), ("I look.\n", vec![call]));
    }
}
