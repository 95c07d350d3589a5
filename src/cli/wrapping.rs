//! Line breaks between words for narrow terminals. Further lines repeat the bar of a quotation or
//! the indent of a fact.

use super::live::cells;
use super::tone::Tone;

/// Columns of the name of a fact.
const FACT: usize = 11;

/// Breaks a line into lines of at most `width` columns. A longer word stays whole, so that a path
/// can be copied.
pub(super) fn wrapped(pieces: &[(Tone, &str)], width: usize) -> Vec<Vec<(Tone, String)>> {
    let hang = hang(pieces, width);
    let hang_cells = cells(&hang.1);
    let (mut lines, mut line, mut used) = (Vec::new(), Vec::new(), 0);
    for word in words(pieces) {
        let text: String = word.iter().map(|(_, text)| text.as_str()).collect();
        if used + cells(text.trim_end()) > width && used > hang_cells {
            lines.push(std::mem::replace(&mut line, vec![hang.clone()]));
            used = hang_cells;
        }
        used += cells(&text);
        line.extend(word);
    }
    lines.push(line);
    for (_, text) in lines.iter_mut().filter_map(|line| line.last_mut()) {
        text.truncate(text.trim_end().len());
    }
    lines
}

/// Returns the beginning of each further line.
fn hang(pieces: &[(Tone, &str)], width: usize) -> (Tone, String) {
    let (tone, first) = pieces.first().copied().unwrap_or((Tone::Plain, ""));
    let indent = first.len() - first.trim_start_matches(' ').len();
    if first.trim_end().ends_with(['|', '│', '┆']) && cells(first) < width / 2 {
        return (tone, first.to_owned());
    }
    let is_fact = indent >= 2 && cells(first) == FACT && FACT < width / 2;
    (Tone::Plain, " ".repeat(if is_fact { FACT } else { (indent + 2).min(width / 4) }))
}

/// Returns the words as pieces, each with the space behind it.
fn words(pieces: &[(Tone, &str)]) -> Vec<Vec<(Tone, String)>> {
    let (mut words, mut word) = (Vec::new(), Vec::new());
    for (tone, text) in pieces {
        for part in text.split_inclusive(' ') {
            word.push((*tone, part.to_owned()));
            if part.ends_with(' ') {
                words.push(std::mem::take(&mut word));
            }
        }
    }
    words.push(word);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(pieces: &[(Tone, &str)], width: usize) -> Vec<String> {
        wrapped(pieces, width).iter().map(|line| line.iter().map(|(_, text)| text.as_str()).collect()).collect()
    }

    #[test]
    fn each_line_begins_as_its_kind_does() {
        let output = [(Tone::Faint, "    | "), (Tone::Plain, "test result: FAILED. 2 passed")];
        assert_eq!(text(&output, 24), ["    | test result:", "    | FAILED. 2 passed"]);
        let fact = [(Tone::Faint, "  proof    "), (Tone::Plain, "tree 4d5614 in a clean room")];
        assert_eq!(text(&fact, 28), ["  proof    tree 4d5614 in a", "           clean room"]);
        let plain = [(Tone::Bad, "✗ the gate did not pass"), (Tone::Faint, " (2.5s)"), (Tone::Plain, ": verify/test")];
        assert_eq!(text(&plain, 30), ["✗ the gate did not pass", "  (2.5s): verify/test"]);
        assert_eq!(text(&plain, 80), ["✗ the gate did not pass (2.5s): verify/test"]);
    }

    #[test]
    fn a_long_word_stays_whole() {
        let log = [(Tone::Faint, "    log: "), (Tone::Path, "/a/very/long/path/to/the.log")];
        assert_eq!(text(&log, 20), ["    log:", "     /a/very/long/path/to/the.log"]);
    }
}
