//! Bytes to events: server-sent events by the WHATWG standard (HTML, section 9.2), or one event a line, however the bytes are cut.
//!
//! Stricter than the standard in two ways: a line or event over [`MAX_EVENT`] bytes is an error, and so is text that is not
//! UTF-8, because a replaced character is content silently lost. Names of events are not kept: every format that is read here says
//! them in the data, too. Time is linear in the bytes; memory is one event and one chunk, and an event of one line is not copied.

use memchr::{memchr, memchr2};

/// Bytes that one line, or the data of one event, may have.
pub const MAX_EVENT: usize = 8 * 1024 * 1024;

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// The reader's state between two chunks. Push bytes, then take events until there are none.
#[derive(Debug)]
pub struct Framing {
    form: Form,
    buffer: Vec<u8>,
    /// Bytes of the buffer that belong to lines already read.
    taken: usize,
    /// Bytes of the buffer known to hold no end of the current line.
    scanned: usize,
    /// The last line ended in CR: an LF that follows belongs to it.
    after_cr: bool,
    /// The first line was read, so a byte order mark means nothing any more.
    begun: bool,
    data: Data,
    /// Data that is not in the buffer, or not in one piece.
    joined: Vec<u8>,
}

/// How a stream is divided into events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Server-sent events.
    Events,
    /// Every line that is not blank.
    Lines,
}

/// Where the data of the event under way is.
#[derive(Debug, Default)]
enum Data {
    /// It has none.
    #[default]
    None,
    /// One line, still in the buffer.
    Within { start: usize, end: usize },
    /// In the place for it.
    Joined,
}

/// Why bytes are not events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FramingError {
    /// A line or an event is over [`MAX_EVENT`].
    #[error("an event of the stream has more than {} MiB", MAX_EVENT / 1024 / 1024)]
    TooLong,
    /// The data of an event is no text.
    #[error("the stream is not UTF-8")]
    NotUtf8,
}

impl Framing {
    /// Before the first byte.
    pub fn new(form: Form) -> Self {
        let (buffer, joined) = (Vec::new(), Vec::new());
        Self { form, buffer, taken: 0, scanned: 0, after_cr: false, begun: false, data: Data::None, joined }
    }

    /// Takes the next bytes of the stream.
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

    /// The data of the next whole event among the bytes pushed so far.
    ///
    /// # Errors
    /// When the bytes are no events; nothing that follows can be trusted then.
    pub fn next_event(&mut self) -> Result<Option<&str>, FramingError> {
        let found = loop {
            let Some((start, end)) = self.next_line()? else { return Ok(None) };
            match self.form {
                Form::Lines if self.buffer[start..end].trim_ascii().is_empty() => {}
                Form::Lines => break Data::Within { start, end },
                Form::Events if start < end => self.field(start, end)?,
                Form::Events => match std::mem::take(&mut self.data) {
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

    /// At the end of the stream: the event that was under way, as if its end had followed. The standard drops it; the caller
    /// decides whether it was whole.
    pub fn finish(&mut self) -> Option<&str> {
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
        let rest = &self.buffer[self.scanned..];
        let found = match self.form {
            Form::Events => memchr2(b'\n', b'\r', rest),
            Form::Lines => memchr(b'\n', rest),
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

    /// Takes a line of an event. All but data is passed over: comments, `event`, `id`, `retry`, and what the standard says to ignore.
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

    /// What a stream gives: its events, the one left over at the end, and the error that ended it.
    type Read = (Vec<String>, Option<String>, Option<FramingError>);

    fn read<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> Read {
        read_as(Form::Events, chunks)
    }

    fn read_as<'a>(form: Form, chunks: impl IntoIterator<Item = &'a [u8]>) -> Read {
        let (mut framing, mut events) = (Framing::new(form), Vec::new());
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
        assert_eq!(read_as(Form::Lines, [text.as_bytes()]), (events, Some("3".into()), None));
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
            for form in [Form::Events, Form::Lines] {
                let cut = read_as(form, cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]));
                prop_assert_eq!(&cut, &read_as(form, [&bytes[..]]));
                prop_assert_eq!(&cut, &read_as(form, bytes.chunks(1)));
            }
        }
    }
}
