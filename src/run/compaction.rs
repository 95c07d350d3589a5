//! Compaction of a conversation: clears older tool results first, then summarises the older
//! messages. This file decides when to compact and where to cut.

use super::budget::BYTES_PER_TOKEN;
use super::context::RunContext;
use super::watch::AgentEvent;
use crate::chat::{Block, Image, Message, Role};

/// Newest messages that a summary never replaces.
const KEEP: usize = 6;
/// Newest results that are never cleared. The results of the newest turn are never cleared either.
const KEEP_RESULTS: usize = 5;
/// `KEEP_RESULTS` for a small context window.
const KEEP_FEW_RESULTS: usize = 1;
/// Smaller values of `KEEP`, tried in this order where a small window has no room for `KEEP`
/// messages.
const KEEP_LESS: [usize; 2] = [4, 2];
/// The bounds of a small context window, in tokens.
const SMALLEST: u64 = 1000;
const SMALL: u64 = 32_768;
/// Bytes that a result keeps even without room.
const LEAST_RESULT: usize = 500;
/// The least size in bytes of a result that is worth clearing.
const WORTH: usize = 400;
/// Failed summaries in a row after which the run asks for no more.
const GIVE_UP_AFTER: u32 = 3;

/// The amount that was cleared.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct ClearedResults {
    pub(super) results: usize,
    /// The bytes that clearing removed from the conversation.
    pub(super) bytes: usize,
}

impl RunContext {
    /// Returns true if the conversation is long enough to be shortened.
    pub(super) fn is_crowded(&self) -> bool {
        let (Some(room), Some(window)) = (self.room(), self.window()) else { return false };
        // After a summary, do not shorten again before the conversation has grown by an eighth of
        // the window.
        let grown = self.ledger.shortened_to.map_or(0, |tokens| tokens.saturating_add(window / 8));
        self.ledger.turns > 0 && self.context_tokens() >= room.max(grown)
    }

    /// Returns the tokens that a conversation may have before it is shortened, if known. Leaves
    /// room for the configured length of an answer.
    fn room(&self) -> Option<u64> {
        let (terms, window) = (self.spec.terms_of(self.model), self.window()?);
        let percent = terms.compact_at_percent.unwrap_or(self.spec.limits.compact_at_percent);
        let percent = u128::from(window) * u128::from(percent) / 100;
        let answer = terms.max_output_tokens.unwrap_or(0).min(window / 2);
        Some(u64::try_from(percent).unwrap_or(u64::MAX).min(window - answer))
    }

    /// Returns the context window of the current model, answer included, if known.
    pub(super) fn window(&self) -> Option<u64> {
        self.spec.terms_of(self.model).context_window.or(self.spec.context_window)
    }

    /// Clears older results if that alone makes the conversation short enough for a while. Returns
    /// true if it cleared any.
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

    /// Clears older results. Returns true if there were any.
    pub(super) fn clear_results(&mut self) -> bool {
        let keep = self.kept_results();
        let ClearedResults { results, bytes } = self.transcript.clear_results(keep);
        let ledger = &mut self.ledger;
        if ledger.context_tokens > 0 {
            ledger.context_tokens = ledger.context_tokens.saturating_sub(tokens(bytes)).max(1);
            ledger.context_bytes = ledger.context_bytes.saturating_sub(bytes);
        }
        if results > 0 {
            self.emit(AgentEvent::Compaction { success: true, note: format!("{results} older results were cleared") });
        }
        results > 0
    }

    /// Returns the number of messages, from the first, that a summary may replace. `None` if a
    /// summary gains nothing.
    pub(super) fn cut(&self) -> Option<usize> {
        let messages = self.transcript.messages();
        let usual = cut(messages, KEEP);
        let Some(room) = self.room().filter(|_| self.is_small()) else { return usual };
        let tail = |upto: usize| tokens(self.transcript.bytes().saturating_sub(self.transcript.bytes_upto(upto)));
        let fewer = KEEP_LESS.into_iter().filter_map(|keep| cut(messages, keep));
        let all: Vec<usize> = usual.into_iter().chain(fewer).collect();
        all.iter().copied().find(|upto| tail(*upto) <= room / 2).or(all.last().copied())
    }

    /// Returns true if the context window is so small that the usual number of kept messages would
    /// fill it.
    fn is_small(&self) -> bool {
        self.window().is_some_and(|window| (SMALLEST..=SMALL).contains(&window))
    }

    /// Returns the number of newest results that are never cleared.
    fn kept_results(&self) -> usize {
        if self.is_small() { KEEP_FEW_RESULTS } else { KEEP_RESULTS }
    }

    /// Returns the bytes that the results of one turn may have together: a quarter of the window.
    /// `None` if the window is unknown.
    pub(super) fn room_for_results(&self) -> Option<usize> {
        let window = self.window().filter(|window| *window >= SMALLEST)?;
        Some(usize::try_from(window).unwrap_or(usize::MAX) / 4 * BYTES_PER_TOKEN)
    }

    /// Returns true if the run may still ask for summaries.
    pub(super) fn may_summarise(&self) -> bool {
        self.streaks.compactions < GIVE_UP_AFTER
    }
}

fn tokens(bytes: usize) -> u64 {
    (bytes / BYTES_PER_TOKEN) as u64
}

/// Returns the amount that [`clear`] would clear.
fn clearable(messages: &[Message], keep: usize) -> ClearedResults {
    each_old(messages.iter().map(|message| message.content.as_slice()), keep).fold(
        ClearedResults::default(),
        |sum, (_, _, bytes)| ClearedResults {
            results: sum.results + 1,
            bytes: sum.bytes + bytes - marker(bytes).len(),
        },
    )
}

/// Replaces the content of older results with a marker.
pub(super) fn clear(messages: &mut [Message], keep: usize) -> ClearedResults {
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

/// Returns message index, block index and bytes of each old, long result. Skips the newest `keep`
/// results and the results of the newest turn.
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

/// Returns the number of messages, from the first, that a summary may replace: at least two, and
/// never the newest `keep`. A cut never separates a tool use from its result. `None` if there is no
/// place to cut.
fn cut(messages: &[Message], keep: usize) -> Option<usize> {
    let latest = messages.len().checked_sub(keep)?;
    (2..=latest).rev().find(|upto| messages.get(*upto).is_some_and(begins_a_turn))
}

/// Returns the beginning and the end of a result that is longer than `most` bytes.
pub(super) fn shortened(text: String, most: usize) -> String {
    let most = most.max(LEAST_RESULT);
    if text.len() <= most {
        return text;
    }
    let head = text.floor_char_boundary(most / 2);
    let tail = text.ceil_char_boundary(text.len() - most / 2);
    let left_out = tail - head;
    format!("{}\n[{left_out} bytes left out to save room: ask for less at a time]\n{}", &text[..head], &text[tail..])
}

/// Returns true if a message does not depend on an earlier one: a message of the model, or a user
/// message without tool results.
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
        assert_eq!(
            clear(&mut messages.clone(), KEEP_RESULTS),
            ClearedResults::default(),
            "short results are not worth it"
        );
        for message in &mut messages {
            if let [Block::ToolResult(result)] = &mut message.content[..] {
                result.content = "x".repeat(1_000);
            }
        }
        let before = results(&messages);
        let cleared = clear(&mut messages, KEEP_RESULTS);
        let after = results(&messages);
        let line = "[a result of 1000 bytes was cleared to save room: call the tool again if it is needed]";
        assert_eq!(cleared, ClearedResults { results: 4, bytes: 4 * (1_000 - line.len()) });
        assert!(after[..4].iter().all(|result| result.content == line) && after[4..] == before[4..]);
        assert!(after.iter().zip(&before).all(|(now, then)| now.id == then.id));
        assert_eq!(clear(&mut messages, KEEP_RESULTS), ClearedResults::default(), "once");
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
