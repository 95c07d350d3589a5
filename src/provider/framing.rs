//! Bytes to server-sent events, by the WHATWG standard (HTML, section 9.2), however the bytes are cut.
//!
//! Stricter than the standard in two ways: a line or event over [`MAX_EVENT`] bytes is an error, and so is text that is not
//! UTF-8, because a replaced character is content silently lost. Time is linear in the bytes; memory is one event and one chunk.

/// Bytes that one line, or the data of one event, may have.
pub(super) const MAX_EVENT: usize = 8 * 1024 * 1024;

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// The reader's state between two chunks. Push bytes, then take events until there are none.
#[derive(Debug, Default)]
pub(super) struct Framing {
    buffer: Vec<u8>,
    /// Bytes of the buffer that belong to lines already read.
    taken: usize,
    /// Bytes of the buffer known to hold no end of the current line.
    scanned: usize,
    /// The last line ended in CR: an LF that follows belongs to it.
    after_cr: bool,
    /// The first line was read, so a byte order mark means nothing any more.
    begun: bool,
    name: String,
    /// The data lines so far, each with a line feed; `None` when the event has none.
    data: Option<Vec<u8>>,
}

/// One event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Event {
    /// The `event` field; empty when there was none.
    pub(super) name: String,
    /// The `data` fields, joined by line feeds.
    pub(super) data: String,
}

/// Why bytes are not events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum FramingError {
    #[error("an event of the stream has more than {} MiB", MAX_EVENT / 1024 / 1024)]
    TooLong,
    #[error("the stream is not UTF-8")]
    NotUtf8,
}

impl Framing {
    /// Takes the next bytes of the stream.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.buffer.drain(..self.taken);
        self.scanned -= self.taken;
        self.taken = 0;
        self.buffer.extend_from_slice(bytes);
    }

    /// The next whole event among the bytes pushed so far.
    pub(super) fn next_event(&mut self) -> Result<Option<Event>, FramingError> {
        while let Some((start, end)) = self.next_line()? {
            if start == end {
                if let Some(event) = self.dispatch()? {
                    return Ok(Some(event));
                }
            } else {
                self.field(start, end)?;
            }
        }
        Ok(None)
    }

    /// At the end of the stream: the event that was under way, as if a blank line had followed. The standard drops it; the
    /// caller decides whether it was whole.
    pub(super) fn finish(mut self) -> Option<Event> {
        self.push(b"\n\n");
        self.next_event().ok().flatten()
    }

    /// Where the next line without its end is.
    fn next_line(&mut self) -> Result<Option<(usize, usize)>, FramingError> {
        if self.after_cr && self.taken < self.buffer.len() {
            self.after_cr = false;
            if self.buffer[self.taken] == b'\n' {
                self.taken += 1;
                self.scanned = self.taken;
            }
        }
        let found = self.buffer[self.scanned..].iter().position(|byte| matches!(byte, b'\n' | b'\r'));
        let end = found.map_or(self.buffer.len(), |offset| self.scanned + offset);
        let mut start = self.taken;
        if end - start > MAX_EVENT {
            return Err(FramingError::TooLong);
        }
        if found.is_none() {
            self.scanned = end;
            return Ok(None);
        }
        self.after_cr = self.buffer[end] == b'\r';
        self.taken = end + 1;
        self.scanned = self.taken;
        if !self.begun && self.buffer[start..end].starts_with(BYTE_ORDER_MARK) {
            start += BYTE_ORDER_MARK.len();
        }
        self.begun = true;
        Ok(Some((start, end)))
    }

    fn field(&mut self, start: usize, end: usize) -> Result<(), FramingError> {
        let line = &self.buffer[start..end];
        let colon = line.iter().position(|byte| *byte == b':').unwrap_or(line.len());
        let value = line.get(colon + 1..).unwrap_or_default();
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match &line[..colon] {
            b"data" => {
                let data = self.data.get_or_insert_default();
                if data.len() + value.len() > MAX_EVENT {
                    return Err(FramingError::TooLong);
                }
                data.extend_from_slice(value);
                data.push(b'\n');
            }
            b"event" => self.name = String::from_utf8(value.to_vec()).map_err(|_| FramingError::NotUtf8)?,
            _ => {} // a comment, `id`, `retry`, or what the standard says to ignore
        }
        Ok(())
    }

    fn dispatch(&mut self) -> Result<Option<Event>, FramingError> {
        let name = std::mem::take(&mut self.name);
        let Some(mut data) = self.data.take() else { return Ok(None) };
        data.pop();
        let data = String::from_utf8(data).map_err(|_| FramingError::NotUtf8)?;
        Ok(Some(Event { name, data }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What a stream gives: its events, the one left over at the end, and the error that ended it.
    type Read = (Vec<Event>, Option<Event>, Option<FramingError>);

    fn read<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> Read {
        let (mut framing, mut events) = (Framing::default(), Vec::new());
        for chunk in chunks {
            framing.push(chunk);
            loop {
                match framing.next_event() {
                    Ok(Some(event)) => events.push(event),
                    Ok(None) => break,
                    Err(error) => return (events, None, Some(error)),
                }
            }
        }
        (events, framing.finish(), None)
    }

    fn event(name: &str, data: &str) -> Event {
        Event { name: name.into(), data: data.into() }
    }

    #[test]
    fn the_three_line_ends_mean_the_same() {
        for end in ["\n", "\r", "\r\n"] {
            let text = format!("event: a{end}data: 1{end}{end}data: 2{end}{end}");
            let wanted = (vec![event("a", "1"), event("", "2")], None, None);
            assert_eq!(read([text.as_bytes()]), wanted, "{end:?}");
        }
    }

    #[test]
    fn comments_other_fields_and_events_without_data_are_passed_over() {
        let text = b": hello\nid: 7\nretry: 9\nnonsense\nevent: lost\n\ndata\n\ndata:x\ndata:  y\n\n";
        assert_eq!(read([&text[..]]), (vec![event("", ""), event("", "x\n y")], None, None));
    }

    #[test]
    fn a_byte_order_mark_is_dropped_only_at_the_start() {
        let text = "\u{feff}data: a\n\n\u{feff}data: b\n\n";
        assert_eq!(read([text.as_bytes()]), (vec![event("", "a")], None, None));
    }

    #[test]
    fn an_event_without_its_blank_line_is_only_reported() {
        assert_eq!(read([&b"data: 1\n\ndata: [DONE]"[..]]), (vec![event("", "1")], Some(event("", "[DONE]")), None));
    }

    #[test]
    fn bytes_that_are_not_utf8_are_an_error() {
        assert_eq!(
            read([&b"data: 1\n\ndata: \xff\n\n"[..]]),
            (vec![event("", "1")], None, Some(FramingError::NotUtf8))
        );
    }

    #[test]
    fn an_endless_line_and_an_endless_event_are_errors() {
        let chunk = vec![b'x'; 64 * 1024];
        let line = std::iter::repeat_n(&chunk[..], 200);
        assert_eq!(read(line), (Vec::new(), None, Some(FramingError::TooLong)));

        let lines = [&b"data: "[..], &chunk, b"\n"].concat();
        assert_eq!(read(std::iter::repeat_n(&lines[..], 200)), (Vec::new(), None, Some(FramingError::TooLong)));
    }

    #[test]
    fn a_big_event_in_small_pieces_is_read_in_linear_time() {
        let text = [&b"data: "[..], &vec![b'x'; 4 * 1024 * 1024], b"\n\n"].concat();
        assert_eq!(read(text.chunks(16)).0[0].data.len(), 4 * 1024 * 1024);
    }

    proptest! {
        #[test]
        fn the_events_do_not_depend_on_how_the_bytes_are_cut(
            lines in prop::collection::vec((prop::sample::select(vec![
                "data: 1", "data: {\"text\":\"é 漢 🦀\"}", "data:", "data", "event: é", ": ping", "", "", "id: 3", "\u{feff}data: x",
            ]), prop::sample::select(vec!["\n", "\r", "\r\n"])), 0..24),
            bad in prop::option::weighted(0.1, 0..200usize),
            cuts in prop::collection::vec(0..400usize, 0..12),
        ) {
            let mut bytes: Vec<u8> = lines.iter().flat_map(|(line, end)| [line.as_bytes(), end.as_bytes()].concat()).collect();
            if let Some(byte) = bad.and_then(|at| bytes.get_mut(at)) {
                *byte = 0xff;
            }
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).chain([0, bytes.len()]).collect();
            cuts.sort_unstable();
            let cut = read(cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]));
            prop_assert_eq!(&cut, &read([&bytes[..]]));
            prop_assert_eq!(&cut, &read(bytes.chunks(1)));
        }
    }
}
