//! Lines cut from a stream of output: clean text, and whole lines unless they are too long to read.

use crate::process::clean;

/// The maximum size of a line, in bytes.
const LONGEST: usize = 8 * 1024;

/// An incomplete line, and the newest complete line if only the newest one is wanted.
#[derive(Debug, Default)]
pub(super) struct LineReader {
    begun: Vec<u8>,
    newest: Option<Vec<u8>>,
    /// True if the incomplete line has grown since it was returned.
    has_grown: bool,
    /// True if the next output overwrites the incomplete line.
    is_returned: bool,
}

impl LineReader {
    /// Adds a piece of output and returns the lines that it completes.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Vec<String> {
        let mut lines = Vec::new();
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let (piece, is_whole) = piece.strip_suffix(b"\n").map_or((piece, false), |piece| (piece, true));
            let before = self.begun.len();
            self.start_line(piece);
            self.has_grown = !is_whole && (self.has_grown || self.begun.len() > before);
            if is_whole {
                lines.extend(self.take());
            }
        }
        lines
    }

    /// Adds a piece of output. Only its last complete line and the incomplete line after it are
    /// kept.
    pub(super) fn push_newest(&mut self, bytes: &[u8]) {
        let Some(end) = memchr::memrchr(b'\n', bytes) else { return self.write_over(bytes) };
        let whole = match memchr::memrchr(b'\n', &bytes[..end]) {
            Some(start) => &bytes[start + 1..end],
            None => {
                self.write_over(&bytes[..end]);
                &self.begun
            }
        };
        let newest = self.newest.get_or_insert_default();
        newest.clear();
        newest.extend_from_slice(&whole[..whole.len().min(LONGEST)]);
        self.begun.clear();
        (self.has_grown, self.is_returned) = (false, false);
        self.write_over(&bytes[end + 1..]);
    }

    /// Returns the incomplete line if it has visible text, otherwise the newest complete line. Each
    /// state is returned once.
    pub(super) fn newest(&mut self) -> Option<String> {
        let whole = self.newest.take();
        self.partial().or_else(|| whole.map(|line| clean(&line)))
    }

    /// Returns the incomplete line if it has visible text and has grown since it was returned.
    pub(super) fn partial(&mut self) -> Option<String> {
        let begun = std::mem::take(&mut self.has_grown).then(|| clean(&self.begun));
        begun.filter(|line| !line.trim().is_empty())
    }

    /// Returns the incomplete line at the end of the output.
    pub(super) fn rest(&mut self) -> Option<String> {
        if self.begun.is_empty() { None } else { self.take() }
    }

    /// Extends the incomplete line. Text overwritten after a carriage return is dropped, because a
    /// program may draw a progress bar for hours.
    fn write_over(&mut self, piece: &[u8]) {
        let Some(last) = piece.iter().rposition(|byte| *byte != b'\r') else {
            self.is_returned |= !piece.is_empty();
            return;
        };
        let start = memchr::memrchr(b'\r', &piece[..last]).map(|at| at + 1);
        if self.is_returned || start.is_some() {
            self.begun.clear();
        }
        self.start_line(&piece[start.unwrap_or(0)..=last]);
        (self.has_grown, self.is_returned) = (true, last + 1 < piece.len());
    }

    /// Extends the incomplete line up to the maximum size. The rest of the line is only in the log.
    fn start_line(&mut self, piece: &[u8]) {
        let room = LONGEST.saturating_sub(self.begun.len());
        self.begun.extend_from_slice(&piece[..piece.len().min(room)]);
    }

    fn take(&mut self) -> Option<String> {
        let line = clean(&self.begun);
        self.begun.clear();
        Some(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_put_together_to_lines() {
        let mut lines = LineReader::default();
        assert_eq!(lines.push(b"one\ntw"), ["one"]);
        assert_eq!(lines.push("o \x1b[1mü".as_bytes().split_at(7).0), Vec::<String>::new());
        assert_eq!(lines.push(b"\xbc\r\n\nlast"), ["two ü", ""]);
        assert_eq!((lines.partial(), lines.partial()), (Some("last".into()), None));
        assert_eq!(lines.push(b".."), Vec::<String>::new());
        assert_eq!((lines.partial(), lines.push(b"\n")), (Some("last..".into()), vec!["last..".into()]));
        assert_eq!((lines.partial(), lines.push(b"end"), lines.rest()), (None, Vec::new(), Some("end".into())));
        assert_eq!(lines.rest(), None);
    }

    #[test]
    fn of_many_lines_the_newest_is_kept_whole_or_not() {
        let mut lines = LineReader::default();
        for (piece, newest) in [
            ("one", Some("one")),
            ("", None),
            ("\n", Some("one")),
            ("two\nthree\nfo", Some("fo")),
            ("ur\nfive\n", Some("five")),
            ("six", Some("six")),
            (" and\n\n", Some("")),
            ("seven\n \x1b[0m", Some("seven")),
            ("\n10%\r", Some("10%")),
            ("\r", None),
            ("50%\r60%\r\r", Some("60%")),
            ("\r\n", Some("60%")),
            ("seven\neight", Some("eight")),
        ] {
            lines.push_newest(piece.as_bytes());
            assert_eq!(lines.newest().as_deref(), newest, "{piece}");
        }
        assert_eq!((lines.rest(), lines.newest()), (Some("eight".into()), None));
    }

    #[test]
    fn a_line_without_end_takes_little_memory() {
        let mut lines = LineReader::default();
        for _ in 0..1000 {
            assert_eq!(lines.push(&[b'x'; 4096]), Vec::<String>::new());
        }
        assert_eq!(lines.push(b"\nnext\n"), ["x".repeat(LONGEST), "next".into()]);
        for bar in 0..1000 {
            lines.push_newest(format!("{}{bar}\r", "x".repeat(4096)).as_bytes());
        }
        assert_eq!(lines.newest(), Some("x".repeat(4096) + "999"));
    }
}
