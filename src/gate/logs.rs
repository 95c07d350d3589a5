//! What the logs of steps say: tests that are counted, words that are looked for. Blocks, for as long as a log is long.

use super::evidence::Printed;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;

/// Bytes of a line of output that are looked at.
const LINE: u64 = 4096;

/// What is counted in a log. A log that cannot be read counts nothing.
pub(super) fn counted(log: &Path) -> Printed {
    let mut printed = Printed::default();
    each_line(log, |line| printed.take(&crate::process::clean(line.as_bytes())));
    printed
}

/// Whether a word stands in a log, in however long a line.
pub(super) fn says(log: &Path, word: &str) -> bool {
    let Ok(mut file) = fs::File::open(log) else { return false };
    let (word, mut seen, mut part) = (word.as_bytes(), Vec::new(), vec![0; 1 << 16]);
    loop {
        if seen.windows(word.len().max(1)).any(|here| here == word) {
            return true;
        }
        // A word may begin in one part and end in the next.
        seen.drain(..seen.len().saturating_sub(word.len()));
        match file.read(&mut part) {
            Ok(0) | Err(_) => return word.is_empty(),
            Ok(length) => seen.extend_from_slice(&part[..length]),
        }
    }
}

/// Reads a log line by line; of long lines the start.
fn each_line(log: &Path, mut take: impl FnMut(&str)) {
    let Ok(file) = fs::File::open(log) else { return };
    let mut reader = BufReader::new(file);
    let mut line = Vec::new();
    while let Ok(length) = (&mut reader).take(LINE).read_until(b'\n', &mut line) {
        if length == 0 {
            return;
        }
        take(&String::from_utf8_lossy(&line));
        if !line.ends_with(b"\n") && reader.skip_until(b'\n').is_err() {
            return;
        }
        line.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_found_across_long_lines_and_the_rest_of_a_long_line_is_no_line() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("log");
        for before in [0, 4095, 4096, (1 << 16) - 3, 1 << 16] {
            fs::write(&log, format!("{}bafimo {}", "x".repeat(before), "y".repeat(10))).unwrap();
            assert!(says(&log, "bafimo") && !says(&log, "bafima"), "after {before} bytes");
        }
        let length = usize::try_from(LINE).unwrap();
        fs::write(&log, format!("{}3 passed in 0.1s\n2 passed in 0.1s\n", "x".repeat(length))).unwrap();
        assert_eq!(counted(&log), {
            let mut printed = Printed::default();
            printed.take("2 passed in 0.1s");
            printed
        });
    }
}
