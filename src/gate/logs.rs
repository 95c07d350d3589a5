//! Readers for the logs of steps: they count tests and search for words. They block, longer for
//! longer logs.

use super::evidence::PrintedCounts;
use crate::process::{clean, each_line};
use crate::verdict::StepReport;
use std::collections::BTreeSet;
use std::fs;
use std::io::Read as _;
use std::ops::ControlFlow;
use std::path::Path;

/// The signs of lines that report failed tests.
const FAILURES: [&str; 2] = ["FAIL", "ERROR"];
/// The maximum number of words that are read.
const MOST_WORDS: usize = 10_000;

/// Counts the tests in a log. A log that cannot be read counts nothing.
pub(super) fn counted(log: &Path) -> PrintedCounts {
    let mut printed = PrintedCounts::default();
    let _what_was_read_counts = each_line(log, |line, _| {
        printed.read_line(&clean(line));
        ControlFlow::Continue(())
    });
    printed.end();
    printed
}

/// Returns whether a failed step printed more than its excerpt contains.
pub(super) fn are_shown_in_part(steps: &[StepReport]) -> bool {
    let size = |log: &String| fs::metadata(log).map_or(0, |log| log.len());
    let is_longer = |step: &StepReport| step.log.as_ref().map_or(0, size) > step.excerpt.len() as u64 + 1;
    steps.iter().any(|step| step.status.is_failure() && is_longer(step))
}

/// Returns whether `is_one` holds for a line of a log.
pub(super) fn has_line(log: &Path, is_one: impl Fn(&str) -> bool) -> bool {
    let mut found = false;
    let _what_was_read_counts = each_line(log, |line, _| {
        found = is_one(&clean(line));
        if found { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    found
}

/// Returns whether a line reports a failed test.
pub(super) fn says_failure(line: &str) -> bool {
    FAILURES.iter().any(|sign| line.contains(sign))
}

/// Returns the words in the lines of a log for which `is_read` holds, up to [`MOST_WORDS`].
pub(super) fn words(log: &Path, is_read: fn(&str) -> bool) -> BTreeSet<String> {
    let mut words = BTreeSet::new();
    let _what_was_read_counts = each_line(log, |line, _| {
        let line = clean(line);
        if is_read(&line) {
            words.extend(line.split(|letter: char| !letter.is_alphanumeric() && letter != '_').map(ToOwned::to_owned));
        }
        if words.len() < MOST_WORDS { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    words
}

/// The maximum number of bytes of color codes within a word.
const COLOURS: usize = 256;

/// Returns whether a log contains a word, in a line of any length, even with color codes in it.
pub(super) fn says(log: &Path, word: &str) -> bool {
    let Ok(mut file) = fs::File::open(log) else { return false };
    let (word, mut seen, mut part) = (word.as_bytes(), Vec::new(), vec![0; 1 << 16]);
    loop {
        let has_word = |bytes: &[u8]| bytes.windows(word.len().max(1)).any(|here| here == word);
        if has_word(&seen) || (seen.contains(&b'\x1b') && has_word(clean(&seen).as_bytes())) {
            return true;
        }
        // A word may begin in one part and end in the next.
        seen.drain(..seen.len().saturating_sub(word.len() + COLOURS));
        match file.read(&mut part) {
            Ok(0) | Err(_) => return word.is_empty(),
            Ok(length) => seen.extend_from_slice(&part[..length]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_found_across_long_lines_and_the_rest_of_a_long_line_is_no_line() {
        let dir = crate::test_support::temp_dir();
        let log = dir.path().join("log");
        for before in [0, 4095, 4096, (1 << 16) - 3, 1 << 16] {
            fs::write(&log, format!("{}bafimo {}", "x".repeat(before), "y".repeat(10))).unwrap();
            assert!(says(&log, "bafimo") && !says(&log, "bafima"), "after {before} bytes");
        }
        fs::write(&log, "\u{1b}[31mbaf\u{1b}[1mimo\u{1b}[0m").unwrap();
        assert!(says(&log, "bafimo") && !says(&log, "bafima"));
        fs::write(&log, format!("{}3 passed in 0.1s\n2 passed in 0.1s\n", "x".repeat(4096))).unwrap();
        assert_eq!(counted(&log), {
            let mut printed = PrintedCounts::default();
            printed.read_line("2 passed in 0.1s");
            printed
        });
    }
}
