//! The text of a model as lines of a terminal, broken between words.

use crate::cli::live::cells;
use crate::cli::paint;

/// Columns of the narrowest line.
const NARROWEST: usize = 10;

/// A text that arrives in pieces.
#[derive(Debug, Default)]
pub(super) struct Prose {
    /// The line that has not ended.
    rest: String,
    /// True while a line is open, which may be empty so far.
    is_open: bool,
}

impl Prose {
    /// Adds a piece. Returns the lines that have ended, of at most `width` columns.
    pub(super) fn push(&mut self, piece: &str, width: usize) -> Vec<String> {
        let mut lines = Vec::new();
        for piece in paint::harmless(piece).replace('\t', "    ").split_inclusive('\n') {
            self.is_open = true;
            self.rest.push_str(piece.trim_end_matches('\n'));
            while let Some(line) = self.first_line(width.max(NARROWEST)) {
                lines.push(line);
            }
            if piece.ends_with('\n') {
                lines.extend(self.end());
            }
        }
        lines
    }

    /// Returns the line that has not ended, if there is one.
    pub(super) fn unfinished(&self) -> Option<&str> {
        self.is_open.then_some(self.rest.as_str())
    }

    /// Ends the open line and returns it.
    pub(super) fn end(&mut self) -> Option<String> {
        std::mem::take(&mut self.is_open).then(|| std::mem::take(&mut self.rest))
    }

    /// Takes a full line from the open one, up to its last space.
    fn first_line(&mut self, width: usize) -> Option<String> {
        let mut taken = 0;
        let too_far = |(_, c): &(usize, char)| {
            taken += cells(c.encode_utf8(&mut [0; 4]));
            taken > width
        };
        let (end, _) = self.rest.char_indices().find(too_far)?;
        let indent = self.rest.len() - self.rest.trim_start().len();
        let begins_word = self.rest[end..].starts_with(' ');
        let at = if begins_word { Some(end) } else { self.rest[..end].rfind(' ').filter(|at| *at > indent) };
        let rest = self.rest.split_off(at.unwrap_or(end));
        let line = std::mem::replace(&mut self.rest, rest.trim_start_matches(' ').to_owned());
        Some(line.trim_end().to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_kept_whole_and_pieces_make_no_difference() {
        let text = "The quick brown fox\n\n    indented code that is long\nverylongwordwithoutspaces";
        let wanted = ["The quick", "brown fox", "", "    indented", "code that is", "long", "verylongwordw"];
        for size in [1, 3, 7, 100] {
            let mut prose = Prose::default();
            let chars: Vec<char> = text.chars().collect();
            let pieces = chars.chunks(size).map(|piece| piece.iter().collect::<String>());
            let lines: Vec<String> = pieces.flat_map(|piece| prose.push(&piece, 13)).collect();
            assert_eq!(lines, wanted, "{size}");
            assert_eq!(prose.unfinished(), Some("ithoutspaces"));
            assert_eq!(prose.end().as_deref(), Some("ithoutspaces"));
            assert_eq!(prose.unfinished(), None);
            assert_eq!(prose.end(), None);
        }
    }

    #[test]
    fn wide_characters_count_twice() {
        let mut prose = Prose::default();
        assert_eq!(prose.push("🦀🦀🦀🦀🦀🦀\u{1b}[2J", 10), ["🦀🦀🦀🦀🦀"]);
        assert_eq!(prose.unfinished(), Some("🦀[2J"));
    }
}
