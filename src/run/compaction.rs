//! How a conversation becomes shorter: older tool results are cleared first, then the older part is summarised. Here is when, and where it
//! may be cut.

use super::budget::BYTES_PER_TOKEN;
use super::context::Context;
use super::watch::AgentEvent;
use crate::chat::{Block, Image, Message, Role};

/// Messages at the end that stay as they are.
const KEEP: usize = 6;
/// Results at the end that are never cleared; those of the newest turn are not either.
const KEEP_RESULTS: usize = 5;
/// The same in a small window.
const KEEP_FEW_RESULTS: usize = 1;
/// The same in a window in which these would leave no room, the last of them first.
const KEEP_LESS: [usize; 2] = [4, 2];
/// The smallest window of a model, and the largest that is small.
const SMALLEST: u64 = 1000;
const SMALL: u64 = 32_768;
/// Bytes that a result may have however little room there is.
const LEAST_RESULT: usize = 500;
/// Bytes of a result that is worth to be cleared.
const WORTH: usize = 400;
/// Summaries that failed in a row, after which none is asked for any more.
const GIVE_UP_AFTER: u32 = 3;

/// What was cleared.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Cleared {
    pub(super) results: usize,
    /// By how much the conversation is shorter.
    pub(super) bytes: usize,
}

impl Context {
    /// Whether the conversation has grown so long that it should be shortened.
    pub(super) fn is_crowded(&self) -> bool {
        let (Some(room), Some(window)) = (self.room(), self.window()) else { return false };
        // What is as short as it can be is not shortened again before it has grown.
        let grown = self.ledger.shortened_to.map_or(0, |tokens| tokens.saturating_add(window / 8));
        self.ledger.turns > 0 && self.context_tokens() >= room.max(grown)
    }

    /// The tokens that a conversation may have before it is shortened, where that is known. What is set for the answer must find room beside.
    fn room(&self) -> Option<u64> {
        let (terms, window) = (self.charter.terms_of(self.model), self.window()?);
        let percent = terms.compact_at_percent.unwrap_or(self.charter.limits.compact_at_percent);
        let percent = u128::from(window) * u128::from(percent) / 100;
        let answer = terms.max_output_tokens.unwrap_or(0).min(window / 2);
        Some(u64::try_from(percent).unwrap_or(u64::MAX).min(window - answer))
    }

    /// The tokens that the model in use takes, answer included, where that is known.
    pub(super) fn window(&self) -> Option<u64> {
        self.charter.terms_of(self.model).context_window.or(self.charter.context_window)
    }

    /// Clears older results where that alone makes the conversation short enough for a while, and says whether it did.
    pub(super) fn clears_enough(&mut self) -> bool {
        let Some(room) = self.room() else { return false };
        let after = self
            .context_tokens()
            .saturating_sub(tokens(clearable(self.transcript.messages(), self.kept_results()).bytes));
        let enough = match self.window().filter(|_| self.is_small()) {
            Some(window) => room.saturating_sub(window / 8),
            None => room / 4 * 3,
        };
        after <= enough && self.clear_results()
    }

    /// Clears older results; says whether there were any.
    pub(super) fn clear_results(&mut self) -> bool {
        let keep = self.kept_results();
        let Cleared { results, bytes } = self.transcript.clear_results(keep);
        let ledger = &mut self.ledger;
        if ledger.context_tokens > 0 {
            ledger.context_tokens = ledger.context_tokens.saturating_sub(tokens(bytes)).max(1);
            ledger.context_bytes = ledger.context_bytes.saturating_sub(bytes);
        }
        if results > 0 {
            self.tell(AgentEvent::Compaction { success: true, note: format!("{results} older results were cleared") });
        }
        results > 0
    }

    /// How many messages from the start may be replaced by a summary, where there is something to gain.
    pub(super) fn cut(&self) -> Option<usize> {
        let messages = self.transcript.messages();
        let usual = cut(messages, KEEP);
        let Some(room) = self.room().filter(|_| self.is_small()) else { return usual };
        let tail = |upto: usize| tokens(self.transcript.bytes().saturating_sub(self.transcript.bytes_upto(upto)));
        let fewer = KEEP_LESS.into_iter().filter_map(|keep| cut(messages, keep));
        let all: Vec<usize> = usual.into_iter().chain(fewer).collect();
        all.iter().copied().find(|upto| tail(*upto) <= room / 2).or(all.last().copied())
    }

    /// Whether the window is so small that what is kept elsewhere would fill it.
    fn is_small(&self) -> bool {
        !self.is_before(2) && self.window().is_some_and(|window| (SMALLEST..=SMALL).contains(&window))
    }

    /// How many of the newest results are never cleared.
    fn kept_results(&self) -> usize {
        if self.is_small() { KEEP_FEW_RESULTS } else { KEEP_RESULTS }
    }

    /// The bytes that the results of a turn may have together, where the window is known: a quarter of it.
    pub(super) fn room_for_results(&self) -> Option<usize> {
        let window = self.window().filter(|window| !self.is_before(2) && *window >= SMALLEST)?;
        Some(usize::try_from(window).unwrap_or(usize::MAX) / 4 * BYTES_PER_TOKEN)
    }

    /// Whether a summary may still be asked for.
    pub(super) fn may_summarise(&self) -> bool {
        self.streaks.compactions < GIVE_UP_AFTER
    }
}

fn tokens(bytes: usize) -> u64 {
    (bytes / BYTES_PER_TOKEN) as u64
}

/// What would be cleared.
fn clearable(messages: &[Message], keep: usize) -> Cleared {
    each_old(messages.iter().map(|message| message.content.as_slice()), keep).fold(
        Cleared::default(),
        |sum, (_, _, bytes)| Cleared { results: sum.results + 1, bytes: sum.bytes + bytes - marker(bytes).len() },
    )
}

/// Replaces the text of older results by a line that says so.
pub(super) fn clear(messages: &mut [Message], keep: usize) -> Cleared {
    let cleared = clearable(messages, keep);
    let old: Vec<_> = each_old(messages.iter().map(|message| message.content.as_slice()), keep).collect();
    for (message, block, bytes) in old {
        if let Block::ToolResult(result) = &mut messages[message].content[block] {
            result.content = marker(bytes);
            result.images.clear();
        }
    }
    cleared
}

fn marker(bytes: usize) -> String {
    format!("[a result of {bytes} bytes was cleared to save room: call the tool again if it is needed]")
}

/// The places and bytes of the results that are old and long: those before the newest few, and before the newest turn's.
fn each_old<'m>(
    messages: impl DoubleEndedIterator<Item = &'m [Block]> + ExactSizeIterator,
    keep: usize,
) -> impl Iterator<Item = (usize, usize, usize)> {
    let mut newer = 0;
    messages
        .enumerate()
        .rev()
        .flat_map(move |(message, content)| {
            let results = content.iter().enumerate().filter_map(|(block, content)| match content {
                Block::ToolResult(result) => {
                    Some((message, block, result.content.len() + result.images.len() * Image::BYTES))
                }
                Block::Text { .. }
                | Block::Thinking { .. }
                | Block::ToolUse(_)
                | Block::Image(_)
                | Block::Opaque { .. } => None,
            });
            let results: Vec<_> = results.collect();
            let is_new = newer < keep;
            newer += results.len();
            if is_new { Vec::new() } else { results }
        })
        .filter(|(_, _, bytes)| *bytes >= WORTH)
}

/// How many messages from the start may be replaced by a summary: never between a tool use and its result, never the newest
/// few, and at least two. `None` when there is nothing to gain.
fn cut(messages: &[Message], keep: usize) -> Option<usize> {
    let latest = messages.len().checked_sub(keep)?;
    (2..=latest).rev().find(|upto| messages.get(*upto).is_some_and(begins_a_turn))
}

/// A result as long as there is room for: its beginning and its end.
pub(super) fn shortened(text: String, most: usize) -> String {
    let most = most.max(LEAST_RESULT);
    if text.len() <= most {
        return text;
    }
    let head = text.floor_char_boundary(most / 2);
    let tail = text.ceil_char_boundary(text.len() - most / 2);
    let left_out = tail - head;
    format!(
        "{}\n[{left_out} bytes left out: there is no room for them, ask for less at a time]\n{}",
        &text[..head],
        &text[tail..]
    )
}

/// Whether a message depends on nothing before it: the model's own, which no result precedes, or a plain text of the user.
fn begins_a_turn(message: &Message) -> bool {
    let is_result = |block: &Block| matches!(block, Block::ToolResult(_));
    message.role == Role::Assistant || !message.content.iter().any(is_result)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::{ToolCall, ToolInput, ToolResult};
    use serde_json::json;

    fn turn(n: usize) -> [Message; 2] {
        let id = format!("c{n}");
        let call = ToolCall { id: id.clone(), name: "t".into(), input: ToolInput::Object(json!({})) };
        let result = ToolResult::text(id, "ok", false);
        [
            Message::assistant(vec![Block::ToolUse(call)]),
            Message { role: Role::User, content: vec![Block::ToolResult(result)] },
        ]
    }

    #[test]
    fn older_results_are_cleared_and_keep_their_ids() {
        let mut messages = vec![Message::user("task")];
        messages.extend((0..9).flat_map(turn));
        let results = |messages: &[Message]| {
            let result =
                |block: &Block| if let Block::ToolResult(result) = block { Some(result.clone()) } else { None };
            messages.iter().flat_map(|message| &message.content).filter_map(result).collect::<Vec<_>>()
        };
        assert_eq!(clear(&mut messages.clone(), KEEP_RESULTS), Cleared::default(), "short results are not worth it");
        for message in &mut messages {
            if let [Block::ToolResult(result)] = &mut message.content[..] {
                result.content = "x".repeat(1_000);
            }
        }
        let before = results(&messages);
        let cleared = clear(&mut messages, KEEP_RESULTS);
        let after = results(&messages);
        let line = "[a result of 1000 bytes was cleared to save room: call the tool again if it is needed]";
        assert_eq!(cleared, Cleared { results: 4, bytes: 4 * (1_000 - line.len()) });
        assert!(after[..4].iter().all(|result| result.content == line) && after[4..] == before[4..]);
        assert!(after.iter().zip(&before).all(|(now, then)| now.id == then.id));
        assert_eq!(clear(&mut messages, KEEP_RESULTS), Cleared::default(), "once");
    }

    #[test]
    fn a_cut_never_separates_a_tool_use_from_its_result() {
        for turns in 0..20 {
            let mut messages = vec![Message::user("task")];
            messages.extend((0..turns).flat_map(turn));
            if let Some(upto) = cut(&messages, KEEP) {
                assert_eq!(messages[upto].role, Role::Assistant, "{turns} turns cut at {upto}");
                assert!(messages.len() - upto >= KEEP);
            } else {
                assert!(messages.len() < KEEP + 2, "{turns} turns could have been cut");
            }
        }
    }
}
