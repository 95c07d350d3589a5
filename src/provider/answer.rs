//! The decoding of one answer from its bytes: framing and decoder together, without a connection.

use super::{
    DeltaSink,
    codec::{Decoder, Dialect, EventProgress},
    framing::{EventFraming, FramingError},
};
use crate::chat::{ModelError, Reply, Spent};

/// An answer whose bytes are still arriving.
#[derive(Debug)]
pub(super) struct AnswerStream {
    framing: EventFraming,
    decoder: Box<dyn Decoder>,
}

impl AnswerStream {
    /// Creates an answer before its first byte.
    pub(super) fn new(dialect: &dyn Dialect, turn: u64) -> Self {
        Self { framing: EventFraming::new(dialect.form()), decoder: dialect.decoder(turn) }
    }

    /// Decodes the next bytes and returns their effect on the answer. Bytes after the end of the
    /// answer are ignored.
    pub(super) fn push(&mut self, bytes: &[u8], deltas: DeltaSink<'_>) -> Result<EventProgress, ModelError> {
        let mut pulse = EventProgress::Idle;
        self.framing.push(bytes);
        while let Some(event) = self.framing.next_event()? {
            match self.decoder.feed(event, deltas)? {
                EventProgress::Idle => {}
                EventProgress::Progress => pulse = EventProgress::Progress,
                done @ EventProgress::Done(_) => return Ok(done),
            }
        }
        Ok(pulse)
    }

    /// Decodes the data of an event that did not come from a stream.
    pub(super) fn feed(&mut self, event: &str, deltas: DeltaSink<'_>) -> Result<EventProgress, ModelError> {
        self.decoder.feed(event, deltas)
    }

    /// Ends the answer after its last byte.
    ///
    /// Some servers forget the end of the very last event, so the remaining bytes may be the event
    /// that ends the answer. If the body is known to be whole (`is_whole`), a complete answer
    /// counts without the end marker of the protocol; see [`Decoder::close`].
    pub(super) fn finish(&mut self, is_whole: bool, deltas: DeltaSink<'_>) -> Result<Reply, ModelError> {
        match self.framing.finish().map(|event| self.decoder.feed(event, deltas)) {
            Some(Ok(EventProgress::Done(reply))) => return Ok(*reply),
            Some(Ok(EventProgress::Idle | EventProgress::Progress)) if is_whole => {}
            Some(_) => return Err(ModelError::network("the stream ended in the middle of an event")),
            None => {}
        }
        let reply = if is_whole { self.decoder.close(deltas)? } else { None };
        reply.ok_or_else(|| ModelError::network("the stream ended before the answer did"))
    }

    /// Returns the use of the answer so far, as far as the provider reported it.
    pub(super) fn spent(&self) -> Spent {
        self.decoder.spent()
    }
}

impl From<FramingError> for ModelError {
    fn from(error: FramingError) -> Self {
        super::codec::protocol(error.to_string())
    }
}
