//! What the first edition noticed: an answer whose last sentence asks for exactly one named file. Journals of that edition are folded by it.

use super::{Query, is_path};

/// Openings of a sentence that asks to see something.
const ASKING: [&str; 10] = [
    "i need to read ",
    "i need to see ",
    "i need to look at ",
    "i will need to read ",
    "i'll need to read ",
    "let me read ",
    "let me look at ",
    "please show me ",
    "can you show me ",
    "could you show me ",
];
/// Words that may stand between the opening and the path.
const FILLERS: [&str; 6] = ["the file ", "the contents of ", "the content of ", "file ", "the ", "me "];

/// The query that the text ends with, if it does.
pub(super) fn detect(text: &str) -> Option<Query> {
    let line = text.trim().lines().next_back()?.trim();
    let lower = line.to_ascii_lowercase();
    let start = ASKING.iter().filter_map(|asking| lower.rfind(asking).map(|at| (at, at + asking.len()))).max()?;
    let begins_sentence = start.0 == 0 || lower[..start.0].ends_with(". ") || lower[..start.0].ends_with("! ");
    let mut rest = &line[start.1..];
    while let Some(filler) = FILLERS.iter().find(|filler| rest.to_ascii_lowercase().starts_with(**filler)) {
        rest = &rest[filler.len()..];
    }
    let path = rest.trim_end_matches(['.', '?', '!', ':', ' ']).trim_matches(['`', '"', '\'', '*']);
    (begins_sentence && is_path(path)).then(|| Query::File { path: path.to_owned() })
}
