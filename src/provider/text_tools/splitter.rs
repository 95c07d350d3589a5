//! The extraction of tool calls from a streaming text. Text that may begin a call is held back
//! until it is decided.

use crate::chat::{ToolCall, ToolInput};
use serde::Deserialize;
use serde_json::{Map, Value};

/// The first line of a call.
pub(super) const OPEN: &str = "```tool-call";
/// The last line of a call.
pub(super) const CLOSE: &str = "```";

/// A piece of the answer: text or a call.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum TextPiece {
    Text(String),
    Call(ToolCall),
}

/// The state between two pieces of a text.
#[derive(Debug)]
pub(super) struct TextSplitter {
    /// The turn's number, for the ids of the calls.
    turn: u64,
    calls: u64,
    /// The current block, without its first line.
    block: Option<String>,
    /// The part of the current line that is held back.
    line: String,
    /// True if a part of the current line was passed on. Then the line cannot begin a block.
    is_text: bool,
}

/// A call in the form that the model writes.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    name: String,
    arguments: Map<String, Value>,
}

impl TextSplitter {
    pub(super) fn new(turn: u64) -> Self {
        Self { turn, calls: 0, block: None, line: String::new(), is_text: false }
    }

    /// Processes the next piece of the text. Returns the pieces that are decided now.
    pub(super) fn push(&mut self, text: &str) -> Vec<TextPiece> {
        let mut pieces = Vec::new();
        for part in text.split_inclusive('\n') {
            self.line.push_str(part);
            let is_whole = part.ends_with('\n');
            if is_whole && !self.is_text {
                self.whole_line(&mut pieces);
            } else if self.block.is_none() && (self.is_text || !may_open(&self.line)) {
                pieces.push(TextPiece::Text(std::mem::take(&mut self.line)));
                self.is_text = !is_whole;
            }
        }
        pieces
    }

    /// Ends the text and returns the remaining pieces.
    pub(super) fn finish(&mut self) -> Vec<TextPiece> {
        let mut pieces = Vec::new();
        if !self.line.is_empty() {
            self.whole_line(&mut pieces);
        }
        if let Some(block) = self.block.take() {
            pieces.push(TextPiece::Call(self.malformed("", &block, format!("the block is not closed by {CLOSE}"))));
        }
        pieces
    }

    fn whole_line(&mut self, pieces: &mut Vec<TextPiece>) {
        let line = std::mem::take(&mut self.line);
        match (&mut self.block, line.trim_end()) {
            (None, OPEN) => self.block = Some(String::new()),
            (None, _) => pieces.push(TextPiece::Text(line)),
            (Some(block), CLOSE) => {
                let block = std::mem::take(block);
                self.block = None;
                pieces.push(TextPiece::Call(self.call(&block)));
            }
            (Some(block), _) => block.push_str(&line),
        }
    }

    fn call(&mut self, block: &str) -> ToolCall {
        match serde_json::from_str(block) {
            Ok(Written { name, arguments }) => {
                let input = ToolInput::parse(&Value::Object(arguments).to_string());
                ToolCall { id: self.id(), name, input }
            }
            Err(error) => {
                let value = serde_json::from_str::<Value>(block).unwrap_or_default();
                self.malformed(value["name"].as_str().unwrap_or_default(), block, error.to_string())
            }
        }
    }

    fn malformed(&mut self, name: &str, block: &str, error: String) -> ToolCall {
        let input = ToolInput::Malformed { text: block.trim_end().chars().take(300).collect(), error };
        ToolCall { id: self.id(), name: name.to_owned(), input }
    }

    fn id(&mut self) -> String {
        self.calls += 1;
        format!("call_{}_{}", self.turn, self.calls)
    }
}

/// Returns true if an incomplete line may begin a block.
fn may_open(line: &str) -> bool {
    OPEN.starts_with(line) || line.strip_prefix(OPEN).is_some_and(|rest| rest.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    /// Returns the remaining text and the calls of a text in pieces.
    fn split<'a>(pieces: impl IntoIterator<Item = &'a str>) -> (String, Vec<ToolCall>) {
        let mut splitter = TextSplitter::new(2);
        let mut found: Vec<TextPiece> = pieces.into_iter().flat_map(|piece| splitter.push(piece)).collect();
        found.extend(splitter.finish());
        let (mut text, mut calls) = (String::new(), Vec::new());
        for piece in found {
            match piece {
                TextPiece::Text(more) => text.push_str(&more),
                TextPiece::Call(call) => calls.push(call),
            }
        }
        (text, calls)
    }

    fn call(number: u64, name: &str, input: ToolInput) -> ToolCall {
        ToolCall { id: format!("call_2_{number}"), name: name.into(), input }
    }

    #[test]
    fn calls_are_taken_out_and_the_text_around_them_stays() {
        let text = "See:\n```tool-call\n{\"name\": \"a\", \"arguments\": {\"p\": 1}}\n```\nand\n```tool-call \r\n{\"name\":\n\"b\",\"arguments\":{}}\n```";
        let calls = vec![call(1, "a", ToolInput::Object(json!({"p": 1}))), call(2, "b", ToolInput::Object(json!({})))];
        assert_eq!(split([text]), ("See:\nand\n".into(), calls));
    }

    #[test]
    fn what_only_looks_like_a_call_is_text() {
        for text in [
            "```tool-calls\n{}\n```\n",
            "``` tool-call\n",
            "a ```tool-call\n{}\n```",
            "```json\n{}\n```",
            "```tool-",
            "",
        ] {
            assert_eq!(split([text]), (text.to_owned(), Vec::new()));
        }
    }

    #[test]
    fn what_is_not_exactly_a_call_is_malformed_and_says_why() {
        for (block, name, error) in [
            ("{\"name\": \"a\"}\n```", "a", "missing field `arguments`"),
            ("{\"name\": \"a\", \"arguments\": {}, \"id\": 1}\n```", "a", "unknown field `id`"),
            ("{\"name\": \"a\", \"arguments\": [1]}\n```", "a", "invalid type: sequence"),
            ("read a.rs\n```", "", "expected value"),
            ("{\"name\": \"a\", \"arguments\": {}}", "", "the block is not closed by ```"),
        ] {
            let (text, calls) = split(["```tool-call\n", block]);
            assert_eq!((text.as_str(), calls.len(), calls[0].name.as_str()), ("", 1, name));
            assert!(
                matches!(&calls[0].input, ToolInput::Malformed { error: found, .. } if found.contains(error)),
                "{calls:?}"
            );
        }
    }

    #[test]
    fn text_is_passed_on_as_soon_as_it_begins_no_block() {
        let mut splitter = TextSplitter::new(1);
        let text = |text: &str| vec![TextPiece::Text(text.into())];
        assert_eq!(splitter.push("Hel"), text("Hel"));
        assert_eq!(splitter.push("lo ```"), text("lo ```"));
        assert_eq!(splitter.push("\n``"), text("\n"));
        assert_eq!(splitter.push("`to"), []);
        assert_eq!(splitter.push("ol"), []);
        assert_eq!(splitter.push("s"), text("```tools"));
    }

    proptest! {
        #[test]
        fn how_the_text_is_cut_changes_nothing(
            parts in prop::collection::vec(prop::sample::select(vec![
                "```", "```tool-call", "\n", "\n", "{\"name\": \"a\", \"arguments\": {}}", "é ", "``", "\r", "tool-call",
            ]), 0..24),
            cuts in prop::collection::vec(0..200_usize, 0..8),
        ) {
            let text = parts.concat();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(text.len())).chain([0, text.len()]).collect();
            cuts.retain(|cut| text.is_char_boundary(*cut));
            cuts.sort_unstable();
            let whole = split([text.as_str()]);
            prop_assert_eq!(&whole, &split(cuts.windows(2).map(|pair| &text[pair[0]..pair[1]])));
            prop_assert_eq!(&whole, &split(text.split_inclusive(|_| true)));
        }
    }
}
