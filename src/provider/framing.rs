//! The splitting of a byte stream into events: server-sent events of the WHATWG standard (HTML,
//! section 9.2), or one event per line.
//!
//! The result does not depend on how the bytes are divided into chunks. The reader is stricter than
//! the standard in two ways. A line or event over [`MAX_EVENT`] bytes is an error. Text that is not
//! UTF-8 is an error too, because a replacement character would hide lost content. Event names are
//! dropped, because all supported formats repeat them in the data. The run time is linear in the
//! bytes. The buffer holds one event and one chunk, and an event of one line is not copied.

use memchr::{memchr, memchr2};

/// The size limit of one line, or of the data of one event, in bytes.
pub const MAX_EVENT: usize = 8 * 1024 * 1024;

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// The reader's state between two chunks. Push bytes, then take events until none is left.
#[derive(Debug)]
pub struct EventFraming {
    form: FramingFormat,
    buffer: Vec<u8>,
    /// Bytes at the start of the buffer that belong to finished lines.
    taken: usize,
    /// Bytes at the start of the buffer in which no end of the current line was found.
    scanned: usize,
    /// True if the last line ended in CR. A following LF belongs to the same line end.
    after_cr: bool,
    /// True once the first line was read. A byte order mark has no meaning after it.
    begun: bool,
    data: Data,
    /// Event data that is no longer in the buffer, or not contiguous.
    joined: Vec<u8>,
}

/// The way in which a stream is divided into events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FramingFormat {
    /// Server-sent events.
    Events,
    /// One event per non-blank line.
    Lines,
}

/// The location of the current event's data.
#[derive(Debug, Default)]
enum Data {
    /// The event has no data yet.
    #[default]
    None,
    /// One line that is still in the buffer.
    Within { start: usize, end: usize },
    /// In [`EventFraming::joined`].
    Joined,
}

/// The reason why bytes cannot be split into events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FramingError {
    /// A line or an event exceeds [`MAX_EVENT`].
    #[error("an event of the stream has more than {} MiB", MAX_EVENT / 1024 / 1024)]
    TooLong,
    /// The data of an event is not UTF-8.
    #[error("the stream is not UTF-8")]
    NotUtf8,
}

impl EventFraming {
    /// Creates a reader before the first byte.
    pub fn new(form: FramingFormat) -> Self {
        let (buffer, joined) = (Vec::new(), Vec::new());
        Self { form, buffer, taken: 0, scanned: 0, after_cr: false, begun: false, data: Data::None, joined }
    }

    /// Appends the next bytes of the stream.
    pub fn push(&mut self, bytes: &[u8]) {
        if let Data::Within { start, end } = self.data {
            self.joined.clear();
            self.joined.extend_from_slice(&self.buffer[start..end]);
            self.data = Data::Joined;
        }
        self.buffer.drain(..self.taken);
        self.scanned -= self.taken;
        self.taken = 0;
        self.buffer.extend_from_slice(bytes);
    }

    /// Returns the data of the next complete event among the bytes pushed so far.
    ///
    /// # Errors
    /// If the bytes are not valid events. The rest of the stream is then unusable.
    pub fn next_event(&mut self) -> Result<Option<&str>, FramingError> {
        let found = loop {
            let Some((start, end)) = self.next_line()? else { return Ok(None) };
            match self.form {
                FramingFormat::Lines if self.buffer[start..end].trim_ascii().is_empty() => {}
                FramingFormat::Lines => break Data::Within { start, end },
                FramingFormat::Events if start < end => self.field(start, end)?,
                FramingFormat::Events => match std::mem::take(&mut self.data) {
                    Data::None => {}
                    found @ (Data::Within { .. } | Data::Joined) => break found,
                },
            }
        };
        let bytes = match found {
            Data::None => &[][..],
            Data::Within { start, end } => &self.buffer[start..end],
            Data::Joined => &self.joined,
        };
        std::str::from_utf8(bytes).map(Some).map_err(|_| FramingError::NotUtf8)
    }

    /// Ends the stream and returns the unfinished event, as if its end had followed. The standard
    /// drops it; here the caller decides whether it was complete.
    pub fn finish(&mut self) -> Option<&str> {
        self.push(b"\n\n");
        self.next_event().ok().flatten()
    }

    /// Returns the range of the next line, without its line end.
    fn next_line(&mut self) -> Result<Option<(usize, usize)>, FramingError> {
        if self.after_cr && self.taken < self.buffer.len() {
            self.after_cr = false;
            if self.buffer[self.taken] == b'\n' {
                self.taken += 1;
                self.scanned = self.taken;
            }
        }
        let rest = &self.buffer[self.scanned..];
        let found = match self.form {
            FramingFormat::Events => memchr2(b'\n', b'\r', rest),
            FramingFormat::Lines => memchr(b'\n', rest),
        };
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

    /// Processes a line of an event. All fields except `data` are ignored: comments, `event`, `id`,
    /// `retry`, and fields that the standard ignores.
    fn field(&mut self, start: usize, end: usize) -> Result<(), FramingError> {
        let line = &self.buffer[start..end];
        let value = match line.strip_prefix(b"data:") {
            Some(value) => value.strip_prefix(b" ").unwrap_or(value),
            None if line == b"data" => &[],
            None => return Ok(()),
        };
        match self.data {
            Data::None => {
                self.data = Data::Within { start: end - value.len(), end };
                return Ok(());
            }
            Data::Within { start, end } => {
                self.joined.clear();
                self.joined.extend_from_slice(&self.buffer[start..end]);
            }
            Data::Joined => {}
        }
        if self.joined.len() + value.len() >= MAX_EVENT {
            return Err(FramingError::TooLong);
        }
        self.joined.push(b'\n');
        self.joined.extend_from_slice(value);
        self.data = Data::Joined;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The result of reading a stream: its events, the unfinished event, and the error.
    type Read = (Vec<String>, Option<String>, Option<FramingError>);

    fn read<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> Read {
        read_as(FramingFormat::Events, chunks)
    }

    fn read_as<'a>(form: FramingFormat, chunks: impl IntoIterator<Item = &'a [u8]>) -> Read {
        let (mut framing, mut events) = (EventFraming::new(form), Vec::new());
        for chunk in chunks {
            framing.push(chunk);
            loop {
                match framing.next_event() {
                    Ok(Some(event)) => events.push(event.to_owned()),
                    Ok(None) => break,
                    Err(error) => return (events, None, Some(error)),
                }
            }
        }
        (events, framing.finish().map(str::to_owned), None)
    }

    #[test]
    fn the_three_line_ends_mean_the_same() {
        for end in ["\n", "\r", "\r\n"] {
            let text = format!("event: a{end}data: 1{end}{end}data: 2{end}{end}");
            let wanted = (vec!["1".into(), "2".into()], None, None);
            assert_eq!(read([text.as_bytes()]), wanted, "{end:?}");
        }
    }

    #[test]
    fn comments_other_fields_and_events_without_data_are_passed_over() {
        let text = b": hello\nid: 7\nretry: 9\nnonsense\nevent: lost\n\ndata\n\ndata:x\ndata:  y\n\n";
        assert_eq!(read([&text[..]]), (vec!["".into(), "x\n y".into()], None, None));
    }

    #[test]
    fn a_byte_order_mark_is_dropped_only_at_the_start() {
        let text = "\u{feff}data: a\n\n\u{feff}data: b\n\n";
        assert_eq!(read([text.as_bytes()]), (vec!["a".into()], None, None));
    }

    #[test]
    fn an_event_without_its_blank_line_is_only_reported() {
        assert_eq!(read([&b"data: 1\n\ndata: [DONE]"[..]]), (vec!["1".into()], Some("[DONE]".into()), None));
    }

    #[test]
    fn bytes_that_are_not_utf8_are_an_error() {
        assert_eq!(read([&b"data: 1\n\ndata: \xff\n\n"[..]]), (vec!["1".into()], None, Some(FramingError::NotUtf8)));
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
        assert_eq!(read(text.chunks(16)).0[0].len(), 4 * 1024 * 1024);
    }

    #[test]
    fn in_lines_every_line_that_is_not_blank_is_an_event() {
        let text = "\u{feff}{\"a\":\r1}\r\n\n \r\ndata: 2\n3";
        let events = vec!["{\"a\":\r1}\r".into(), "data: 2".into()];
        assert_eq!(read_as(FramingFormat::Lines, [text.as_bytes()]), (events, Some("3".into()), None));
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
            for form in [FramingFormat::Events, FramingFormat::Lines] {
                let cut = read_as(form, cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]));
                prop_assert_eq!(&cut, &read_as(form, [&bytes[..]]));
                prop_assert_eq!(&cut, &read_as(form, bytes.chunks(1)));
            }
        }
    }
}
