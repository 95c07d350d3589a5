//! Output of a step's log, line by line from its file. Memory use is small even for a long log.

use crate::process::clean;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

/// The size of the read buffer, in bytes.
const READ: usize = 64 * 1024;
/// The longest piece of a line to show at once, in bytes.
const LONGEST: u64 = 8 * 1024;

/// Passes each line to `say`, cleaned and without its line end. Returns the number of lines.
///
/// # Errors
/// When the file cannot be read.
pub(super) fn each_line(log: &Path, mut say: impl FnMut(&str)) -> io::Result<usize> {
    let (mut file, mut line, mut count) = (BufReader::with_capacity(READ, File::open(log)?), Vec::new(), 0);
    loop {
        line.clear();
        if file.by_ref().take(LONGEST).read_until(b'\n', &mut line)? == 0 {
            return Ok(count);
        }
        say(clean(&line).trim_end_matches('\n'));
        count += 1;
    }
}

/// Passes at most `most` lines to `say`: the first and the last ones, with a note about the lines
/// left out between them.
///
/// # Errors
/// When the file cannot be read.
pub(super) fn both_ends(log: &Path, most: usize, mut say: impl FnMut(&str)) -> io::Result<()> {
    let (mut first, mut last, mut hidden) = (most / 2, VecDeque::new(), 0u64);
    each_line(log, |line| {
        if first > 0 {
            first -= 1;
            return say(line);
        }
        if last.len() == most - most / 2 {
            last.pop_front();
            hidden += 1;
        }
        last.push_back(line.to_owned());
    })?;
    if hidden > 0 {
        say(&format!("[… {hidden} lines left out; the log has the rest …]"));
    }
    last.iter().for_each(|line| say(line));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(text: &[u8]) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        file
    }

    #[test]
    fn lines_are_harmless_and_of_a_bounded_length() {
        let text = [b"one\n\n10%\r99%\n\x1b[2Jtwo\xff\n".to_vec(), vec![b'x'; 9000]].concat();
        let mut lines = Vec::new();
        let count = each_line(log(&text).path(), |line| lines.push(line.to_owned())).unwrap();
        let long = ["x".repeat(8192), "x".repeat(808)];
        assert_eq!((count, &lines[..4]), (6, &["one", "", "99%", "two\u{fffd}"].map(str::to_owned)[..]));
        assert_eq!(lines[4..], long);
    }

    #[test]
    fn of_a_long_log_both_ends_are_shown() {
        let text: String = (0..9).map(|n| format!("{n}\n")).collect();
        let shown = |most| {
            let mut lines = Vec::new();
            both_ends(log(text.as_bytes()).path(), most, |line| lines.push(line.to_owned())).unwrap();
            lines.join(" ")
        };
        assert_eq!(shown(9), "0 1 2 3 4 5 6 7 8");
        assert_eq!(shown(4), "0 1 [… 5 lines left out; the log has the rest …] 7 8");
    }
}
