//! Functions that make a program's output harmless and short. Pure: the same bytes give the same
//! text.

use std::fmt::Write as _;

/// The longest marker that [`join`] writes.
const MARKER: usize = 48;
/// The longest piece of a line that is left out for a cut at a line end.
const LINE: usize = 160;

/// Returns the valid text of raw output. Replaces invalid UTF-8, and removes terminal escapes,
/// control characters and invisible direction characters. Keeps only the last state of a line that
/// carriage returns have rewritten.
pub fn clean(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    if bytes.iter().all(|byte| matches!(byte, b' '..=b'~' | b'\n' | b'\t')) {
        return text.into_owned();
    }
    let mut screen = Screen::default();
    let mut chars = text.chars().peekable();
    while let Some(char) = chars.next() {
        match char {
            '\u{1b}' => skip_escape(&mut chars),
            '\u{9b}' => skip_control_sequence(&mut chars),
            '\u{90}' | '\u{98}' | '\u{9d}' | '\u{9e}' | '\u{9f}' => skip_string(&mut chars),
            char => screen.show(char),
        }
    }
    screen.text
}

/// Returns a text without terminal escapes, control characters, and characters that are invisible
/// or change how others appear.
pub fn visible(text: &str) -> String {
    let hides = |c: char| {
        matches!(
            c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'
                ..='\u{180f}'
        ) || matches!(c, '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
    };
    clean(text.as_bytes()).replace(hides, "")
}

/// Returns at most `limit` bytes of `text`: its start, a marked cut, and three times as much of its
/// end.
pub fn shorten(text: &str, limit: usize) -> String {
    if text.len() <= limit { text.to_owned() } else { join(text, text, 0, limit) }
}

/// Returns the start of `head` and the end of `tail` with a marked cut between them, in at most
/// `limit` bytes. `hidden` bytes were between `head` and `tail`. Both may be the same text if it is
/// longer than `limit`.
pub(super) fn join(head: &str, tail: &str, hidden: u64, limit: usize) -> String {
    if limit < 4 * MARKER {
        return tail[from(tail, limit)..].to_owned();
    }
    let room = limit - MARKER;
    let first = whole_lines_upto(head, (room / 4).max(room.saturating_sub(tail.len())));
    let last = whole_lines_from(tail, room - first);
    let same = std::ptr::eq(head, tail);
    let cut = if same { last - first } else { (head.len() - first) + last };
    let mut text = String::new();
    text.push_str(&head[..first]);
    // A u64 has at most 20 digits, so this is never longer than MARKER.
    let _ = write!(text, "\n[… {} bytes left out …]\n", hidden.saturating_add(cut as u64));
    text.push_str(&tail[last..]);
    text
}

/// The visible text of a terminal, built character by character.
#[derive(Default)]
struct Screen {
    text: String,
    line: usize,
    returned: bool,
}

impl Screen {
    fn show(&mut self, char: char) {
        match char {
            '\n' => {
                self.text.push('\n');
                self.line = self.text.len();
                self.returned = false;
            }
            '\r' => self.returned = true,
            '\u{8}' => {
                if self.text.len() > self.line {
                    self.text.pop();
                }
            }
            char if char != '\t' && (char.is_control() || is_invisible(char)) => {}
            char => {
                if std::mem::take(&mut self.returned) {
                    self.text.truncate(self.line);
                }
                self.text.push(char);
            }
        }
    }
}

/// Returns whether a character changes what a reader sees and is itself invisible. These are
/// direction controls, line separators, the byte order mark, and the tag characters that hide text.
pub fn is_invisible(char: char) -> bool {
    matches!(char, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}')
}

type Chars<'a> = std::iter::Peekable<std::str::Chars<'a>>;

/// Skips the characters after an escape character (ECMA-48, section 5.3 and annex on 7-bit forms).
fn skip_escape(chars: &mut Chars<'_>) {
    match chars.peek() {
        Some('[') => {
            chars.next();
            skip_control_sequence(chars);
        }
        Some(']' | 'P' | 'X' | '^' | '_') => {
            chars.next();
            skip_string(chars);
        }
        Some(_) => {
            while chars.next_if(|char| matches!(char, ' '..='/')).is_some() {}
            chars.next_if(|char| matches!(char, '0'..='~'));
        }
        None => {}
    }
}

/// Skips the parameters and the final byte of a control sequence.
fn skip_control_sequence(chars: &mut Chars<'_>) {
    while chars.next_if(|char| matches!(char, ' '..='?')).is_some() {}
    chars.next_if(|char| matches!(char, '@'..='~'));
}

/// Skips a command string up to its terminator. A string without a terminator ends at the end of
/// its line, so that it cannot swallow the rest of the output.
fn skip_string(chars: &mut Chars<'_>) {
    while let Some(char) = chars.next_if(|char| *char != '\n') {
        match char {
            '\u{7}' | '\u{9c}' => return,
            '\u{1b}' if chars.next_if_eq(&'\\').is_some() => return,
            _ => {}
        }
    }
}

/// Returns where to cut after at most `most` bytes. Prefers the end of a line, unless that loses
/// more than [`LINE`] bytes of one.
fn whole_lines_upto(text: &str, most: usize) -> usize {
    let end = upto(text, most);
    let line = text[..end].rfind('\n').map_or(0, |at| at + 1);
    if end < text.len() && end - line <= LINE { line } else { end }
}

/// Returns where to cut before at most `most` bytes, by the rule of [`whole_lines_upto`].
fn whole_lines_from(text: &str, most: usize) -> usize {
    let start = from(text, most);
    let line = text[start..].find('\n').map_or(text.len(), |at| start + at + 1);
    if start > 0 && line - start <= LINE { line } else { start }
}

/// Returns the last character boundary at or before `at`.
fn upto(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

/// Returns the first character boundary that leaves at most `most` bytes after it.
fn from(text: &str, most: usize) -> usize {
    (text.len().saturating_sub(most)..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn escapes_and_control_characters_are_gone() {
        let cases: [(&[u8], &str); 14] = [
            (b"\x1b[31mred\x1b[0m", "red"),
            (b"\x1b]0;title\x07text", "text"),
            (b"\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
            (b"\x1b]52;c;never ended\nnext", "\nnext"),
            (b"\x1b(Bplain\x1b7\x1b=", "plain"),
            (b"\x1bPq#0\x1b\\after", "after"),
            ("\u{9b}1mc1".as_bytes(), "c1"),
            (b"a\0b\x01c\x7f", "abc"),
            (b"tab\tstays\n", "tab\tstays\n"),
            (b"bad \xff\xfe end", "bad \u{fffd}\u{fffd} end"),
            ("rtl\u{202e}txt \u{e0041}hidden".as_bytes(), "rtltxt hidden"),
            (b"over\x08\x08\x08\x08back", "back"),
            (b"\x08\x08x", "x"),
            (b"\x1b", ""),
        ];
        for (bytes, text) in cases {
            assert_eq!(clean(bytes), text, "{bytes:?}");
        }
    }

    #[test]
    fn of_a_progress_line_only_the_last_state_is_left() {
        let cases: [(&[u8], &str); 5] = [
            (b"10%\r20%\r100%\ndone\n", "100%\ndone\n"),
            (b"10%\r20%\r", "20%"),
            (b"one\r\ntwo\r\n", "one\ntwo\n"),
            (b"wait\r\x1b[Kdone\n", "done\n"),
            (b"kept\n\r\nnext", "kept\n\nnext"),
        ];
        for (bytes, text) in cases {
            assert_eq!(clean(bytes), text, "{bytes:?}");
        }
    }

    #[test]
    fn a_long_text_keeps_its_start_and_more_of_its_end() {
        let text: String = (0..1000).map(|n| format!("line {n}\n")).collect();
        let short = shorten(&text, 400);
        assert!(short.len() <= 400 && short.starts_with("line 0\nline 1\n") && short.ends_with("line 998\nline 999\n"));
        assert!(short.contains("line 11\n\n[… 8543 bytes left out …]\nline 971\n"), "{short}");
    }

    proptest! {
        #[test]
        fn any_bytes_become_bounded_text_without_control_characters(bytes in proptest::collection::vec(any::<u8>(), 0..600), limit in 0usize..400) {
            let text = shorten(&clean(&bytes), limit);
            prop_assert!(text.len() <= limit);
            prop_assert!(text.chars().all(|char| char == '\n' || char == '\t' || !char.is_control()));
        }
    }
}
