//! Notices an answer that ends by asking, in prose, for a file that a tool could have read. Deliberately narrow: the last
//! sentence must say that the speaker needs to read exactly one named path, so that a finished answer is never mistaken.

use serde::{Deserialize, Serialize};

/// What the model asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Query {
    /// The text of a file.
    File {
        /// Its path, as the model wrote it.
        path: String,
    },
}

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

/// One word with a dot or a slash in it, made of what paths are made of.
fn is_path(text: &str) -> bool {
    let plain = |c: char| c.is_alphanumeric() || "._-/+@".contains(c);
    let has_mark = text.contains('/') || text.trim_start_matches('.').contains('.');
    !text.is_empty() && text.len() <= 200 && text.chars().all(plain) && has_mark && !text.contains("..")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn asking_for_one_named_file_at_the_end_is_a_query() {
        for (text, path) in [
            ("I need to read src/main.rs", "src/main.rs"),
            ("The bug must be in there. I need to see the file `src/lib.rs`.", "src/lib.rs"),
            ("First, some thoughts.\n\nCould you show me the contents of \"Cargo.toml\"?", "Cargo.toml"),
            ("Let me look at tests/dates.rs:", "tests/dates.rs"),
        ] {
            assert_eq!(detect(text), Some(Query::File { path: path.into() }), "{text}");
        }
    }

    #[test]
    fn finished_answers_and_vague_wishes_are_not_queries() {
        for text in [
            "",
            "Done. I fixed src/main.rs.",
            "I read src/main.rs and fixed it.",
            "You may need to read README.md.",
            "I need to read the code",
            "I need to read src/main.rs and src/lib.rs to be sure",
            "I need to read ../../etc/passwd",
            "I need to read src/main.rs\nbut it was there already. All done.",
            "To be sure I need to read more.",
        ] {
            assert_eq!(detect(text), None, "{text}");
        }
    }
}
