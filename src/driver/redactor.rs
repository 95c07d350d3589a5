//! Hides known secrets in every event before it is written, decided on or shown, even if a secret
//! arrives in two pieces.

use crate::chat::{Delta, Image};
use crate::id::CallId;
use crate::run::Event;
use crate::tool::SecretMask;
use crate::verdict::{Reason, StepProgress};
use serde_json::Value;

/// The shortest start of a secret at the end of a line that makes the line wait for the next one,
/// in bytes.
const DOUBTFUL: usize = 4;

/// Hides the secrets of a mask. Text that may be the start of a secret waits for the next piece.
#[derive(Debug)]
pub(super) struct SecretRedactor {
    mask: SecretMask,
    held: Vec<(RedactedStream, String)>,
}

/// The source of a piece. Pieces with the same source belong together.
#[derive(Debug, Clone, PartialEq)]
enum RedactedStream {
    Text(CallId),
    Thinking(CallId),
    Tool(CallId),
    Step { call: CallId, lane: String, step: String },
}

impl SecretRedactor {
    pub(super) fn new(mask: SecretMask) -> Self {
        Self { mask, held: Vec::new() }
    }

    /// Returns the events that may be passed on, in order: none yet, or also those held back
    /// before.
    pub(super) fn redact_event(&mut self, event: Event) -> Vec<Event> {
        if self.mask.is_idle() {
            return vec![event];
        }
        match piece(event) {
            Ok((stream, text)) => self.piece(stream, &text),
            Err(event) if is_partial(&event) => self.partial(*event).into_iter().collect(),
            Err(event) => {
                let late = std::mem::take(&mut self.held);
                let mut events: Vec<Event> = late.into_iter().flat_map(|(stream, text)| stream.say(text)).collect();
                events.push(self.whole(*event));
                events
            }
        }
    }

    fn piece(&mut self, stream: RedactedStream, text: &str) -> Vec<Event> {
        let at = self.held.iter().position(|(other, _)| *other == stream);
        let held = at.map(|at| self.held.swap_remove(at).1);
        let all = match (held, &stream) {
            (None, _) => text.to_owned(),
            (Some(held), RedactedStream::Step { .. }) => format!("{held}\n{text}"),
            (Some(held), _) => held + text,
        };
        let mut all = self.mask.hidden(&all).unwrap_or(all);
        let mut shown = self.mask.safe_prefix_len(&all);
        if let RedactedStream::Step { .. } = stream {
            let line = all[..shown].rfind('\n');
            match all.len() - shown < DOUBTFUL {
                true => shown = all.len(),
                false => {
                    // Show a line whole, or hold it back.
                    let held = all.split_off(line.map_or(0, |end| end + 1));
                    self.held.push((stream.clone(), held));
                    all.truncate(line.unwrap_or(0));
                    return if line.is_some() { stream.say(all) } else { Vec::new() };
                }
            }
        }
        let held = all.split_off(shown);
        if !held.is_empty() {
            self.held.push((stream.clone(), held));
        }
        if all.is_empty() && !text.is_empty() { Vec::new() } else { stream.say(all) }
    }

    /// Hides secrets in a line that has not ended. A later event has the line again, so its end is
    /// left out if a secret may begin there, and all of it after text that is held back.
    fn partial(&self, event: Event) -> Option<Event> {
        let Event::GateProgress { call, progress: StepProgress::Partial { lane, step, line } } = event else {
            return Some(event);
        };
        let stream = RedactedStream::Step { call, lane: lane.clone(), step: step.clone() };
        if self.held.iter().any(|(held, _)| *held == stream) {
            return None;
        }
        let mut line = self.mask.hidden(&line).unwrap_or(line);
        line.truncate(self.mask.safe_prefix_len(&line));
        let is_left = !line.is_empty();
        is_left.then_some(Event::GateProgress { call, progress: StepProgress::Partial { lane, step, line } })
    }

    /// Hides secrets in an event that is not a piece. If the result cannot be read back, ends the
    /// run instead.
    fn whole(&self, mut event: Event) -> Event {
        let pictures = self.clean_pictures(&mut event);
        let Ok(mut value) = serde_json::to_value(&event) else { return event }; // the journal cannot have it either
        if self.hide(&mut value) {
            event = serde_json::from_value(value).unwrap_or_else(|error| {
                tracing::error!(%error, event = event.name(), "cannot mask an event that contains a secret");
                Event::LimitReached { reason: Reason::Internal }
            });
        }
        if let Event::ToolFinished { outcome, .. } = &mut event {
            outcome.images = pictures;
        }
        event
    }

    /// Takes the pictures out of an event. A masked picture would be invalid, so a picture with a
    /// secret is left out.
    fn clean_pictures(&self, event: &mut Event) -> Vec<Image> {
        let Event::ToolFinished { outcome, .. } = event else { return Vec::new() };
        let mut pictures = std::mem::take(&mut outcome.images);
        let all = pictures.len();
        pictures.retain(|picture| self.mask.hidden(&picture.data).is_none());
        if pictures.len() < all {
            outcome.content.push_str("\n[an image was left out: it contains a secret]");
        }
        pictures
    }

    /// Hides secrets in a value. Returns true if there were any.
    fn hide(&self, value: &mut Value) -> bool {
        match value {
            Value::String(text) => self.mask.hidden(text).map(|hidden| *text = hidden).is_some(),
            Value::Array(values) => values.iter_mut().fold(false, |found, value| self.hide(value) | found),
            Value::Object(fields) => {
                let is_in_names = fields.keys().any(|name| self.mask.hidden(name).is_some());
                if is_in_names {
                    let old = std::mem::take(fields);
                    fields
                        .extend(old.into_iter().map(|(name, value)| (self.mask.hidden(&name).unwrap_or(name), value)));
                }
                fields.values_mut().fold(is_in_names, |found, value| self.hide(value) | found)
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => false,
        }
    }
}

/// Returns the stream and the text of a piece, or as an error the event that is not a piece.
fn piece(event: Event) -> Result<(RedactedStream, String), Box<Event>> {
    match event {
        Event::ModelDelta { call, delta: Delta::Text(text) } => Ok((RedactedStream::Text(call), text)),
        Event::ModelDelta { call, delta: Delta::Thinking(text) } => Ok((RedactedStream::Thinking(call), text)),
        Event::ToolProgress { call, text } => Ok((RedactedStream::Tool(call), text)),
        Event::GateProgress { call, progress: StepProgress::Output { lane, step, line } } => {
            Ok((RedactedStream::Step { call, lane, step }, line))
        }
        event => Err(Box::new(event)),
    }
}

/// Returns true if the event has a line that has not ended.
fn is_partial(event: &Event) -> bool {
    matches!(event, Event::GateProgress { progress: StepProgress::Partial { .. }, .. })
}

impl RedactedStream {
    /// Returns the events for this text.
    fn say(self, text: String) -> Vec<Event> {
        match self {
            Self::Text(call) => vec![Event::ModelDelta { call, delta: Delta::Text(text) }],
            Self::Thinking(call) => vec![Event::ModelDelta { call, delta: Delta::Thinking(text) }],
            Self::Tool(call) => vec![Event::ToolProgress { call, text }],
            Self::Step { call, lane, step } => {
                let output =
                    |line: &str| StepProgress::Output { lane: lane.clone(), step: step.clone(), line: line.into() };
                text.split('\n').map(|line| Event::GateProgress { call, progress: output(line) }).collect()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::ToolOutcome;

    fn redactor() -> SecretRedactor {
        SecretRedactor::new(SecretMask::new(["sk-canary-1"]))
    }

    fn text_event(text: &str) -> Event {
        Event::ToolProgress { call: CallId(1), text: text.into() }
    }

    fn line(line: &str) -> Event {
        let progress = StepProgress::Output { lane: "verify".into(), step: "test".into(), line: line.into() };
        Event::GateProgress { call: CallId(1), progress }
    }

    fn partial(line: &str) -> Event {
        let progress = StepProgress::Partial { lane: "verify".into(), step: "test".into(), line: line.into() };
        Event::GateProgress { call: CallId(1), progress }
    }

    fn seen(events: impl IntoIterator<Item = Event>) -> Vec<Event> {
        let mut redactor = redactor();
        events.into_iter().flat_map(|event| redactor.redact_event(event)).collect()
    }

    #[test]
    fn a_secret_in_two_pieces_is_hidden_and_nothing_else_is_lost() {
        assert_eq!(seen(["a sk-ca", "nary", "-1 b"].map(text_event)), ["a ", "*** b"].map(text_event));
        assert_eq!(seen(["a sk-", "old"].map(text_event)), ["a ", "sk-old"].map(text_event));
        assert_eq!(
            seen([text_event("ask"), Event::DeadlinePassed]),
            [text_event("a"), text_event("sk"), Event::DeadlinePassed]
        );
    }

    #[test]
    fn lines_of_a_step_stay_lines() {
        assert_eq!(seen(["one", "a sk-ca", "nary-1 b", "c"].map(line)), ["one", "a *** b", "c"].map(line));
        assert_eq!(seen(["a sk-ca", "d", "so"].map(line)), ["a sk-ca", "d", "so"].map(line));
        assert_eq!(seen([line("a sk-ca"), Event::DeadlinePassed]), [line("a sk-ca"), Event::DeadlinePassed]);
    }

    #[test]
    fn a_line_that_has_not_ended_shows_no_part_of_a_secret() {
        assert_eq!(seen(["a sk-ca", "a sk-canary-1 b"].map(partial)), ["a ", "a *** b"].map(partial));
        // A secret may have several lines, and the text before it is held back.
        assert_eq!(seen([line("a sk-canar"), partial("b"), line("c")]), ["a sk-canar", "c"].map(line));
        assert_eq!(seen([partial("sk-can")]), []);
    }

    #[test]
    fn an_event_has_no_known_secret_anywhere() {
        let finished = |text: &str| Event::ToolFinished { call: CallId(1), outcome: ToolOutcome::error(text) };
        assert_eq!(seen([finished("key sk-canary-1, 736b2d63616e6172792d31")]), [finished("key ***, ***")]);
    }

    #[test]
    fn a_picture_stays_as_it_is_or_goes_whole() {
        let finished = |content: &str, pictures: &[&[u8]]| {
            let images = pictures.iter().map(|bytes| Image::new("image/png", bytes)).collect();
            Event::ToolFinished { call: CallId(1), outcome: ToolOutcome { images, ..ToolOutcome::ok(content) } }
        };
        let large = vec![0x89; 1_000_000];
        assert_eq!(
            seen([finished("sk-canary-1", &[&large, b"PNG tEXt sk-canary-1 IEND"])]),
            [finished("***\n[an image was left out: it contains a secret]", &[&large])]
        );
    }
}
