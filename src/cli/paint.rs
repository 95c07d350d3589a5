//! Lines on standard error, coloured if a terminal supports it. `NO_COLOR` and pipes turn colours
//! off.

pub(super) use super::terminal::can_draw;
pub(super) use super::tone::{Tone, harmless, is_colourful, one_line, painted};

use super::live::{self, cells};
use super::tone::coloured;
use crate::config::EnvironmentLayer;
use crate::report::lane::github;
use anstream::ColorChoice;
use clap::ValueEnum;
use std::ffi::OsString;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};

/// True if GitHub's runner reads the output. It takes some text for commands.
static TO_RUNNER: AtomicBool = AtomicBool::new(false);

/// Bytes of lines to write at once.
const PIECE: usize = 64 * 1024;

/// The choice of coloured output.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum ColorWhen {
    // Colours on a terminal unless NO_COLOR is set, elsewhere if FORCE_COLOR or CLICOLOR_FORCE is
    // set.
    #[default]
    Auto,
    Always,
    Never,
}

impl ColorWhen {
    /// Reads `--color` from a command line that asks for help or has a mistake.
    pub(super) fn of_line(line: impl Iterator<Item = OsString>) -> Self {
        let words: Vec<String> = line.filter_map(|word| word.into_string().ok()).collect();
        let apart = words.windows(2).filter(|pair| pair[0] == "--color").map(|pair| pair[1].as_str());
        let joined = words.iter().filter_map(|word| word.strip_prefix("--color="));
        apart.chain(joined).find_map(|word| Self::from_str(word, false).ok()).unwrap_or_default()
    }

    /// Applies the choice to the whole process. Call it before anything is printed.
    pub(super) fn apply(self, environment: &EnvironmentLayer) {
        let is_set = |name| environment.get(name).is_some_and(|value| !value.is_empty() && value != "0");
        let choice = match self {
            Self::Always => ColorChoice::Always,
            Self::Never => ColorChoice::Never,
            Self::Auto if environment.get("NO_COLOR").is_some_and(|value| !value.is_empty()) => ColorChoice::Never,
            Self::Auto if is_set("FORCE_COLOR") || is_set("CLICOLOR_FORCE") => ColorChoice::Always,
            Self::Auto => ColorChoice::Auto,
        };
        choice.write_global();
    }
}

/// Returns true if this process runs in a job of GitHub Actions.
pub(super) fn is_runner(environment: &EnvironmentLayer) -> bool {
    environment.get("GITHUB_ACTIONS") == Some("true")
}

/// Makes commands of GitHub's runner inert in all later output.
pub(super) fn speak_to_runner() {
    TO_RUNNER.store(true, Ordering::Relaxed);
}

/// Returns true if GitHub's runner reads the output.
pub(super) fn speaks_to_runner() -> bool {
    TO_RUNNER.load(Ordering::Relaxed)
}

/// Writes a command for GitHub's runner.
pub(super) fn command(command: &str) {
    live::above(&format!("{}\n", one_line(command)));
}

/// Writes pieces as a line. If live lines are drawn, breaks it between words. A reader that has
/// gone away is not an error.
pub(super) fn line<T: AsRef<str>>(pieces: &[(Tone, T)]) {
    let Some(width) = live::drawn_width() else { return show(pieces, "\n") };
    let pieces: Vec<(Tone, &str)> = pieces.iter().map(|(tone, text)| (*tone, text.as_ref())).collect();
    wrapped(&pieces, width).iter().for_each(|line| show(line, "\n"));
}

/// Writes pieces without a line end.
pub(super) fn write(pieces: &[(Tone, &str)]) {
    show(pieces, "");
}

/// Writes everything at once, so that no other output comes between.
fn show<T: AsRef<str>>(pieces: &[(Tone, T)], end: &str) {
    log(&(painted(pieces) + end));
}

/// Prints remarks about lanes.
pub(super) fn say<'r>(remarks: impl IntoIterator<Item = &'r String>) {
    for remark in remarks {
        line(&[(Tone::Warn, "note: "), (Tone::Plain, remark)]);
    }
}

/// A buffer that writes many lines in few large pieces.
#[derive(Debug, Default)]
pub(super) struct LineBuffer {
    text: String,
}

impl LineBuffer {
    /// Adds a line; writes the buffer if it is large enough.
    pub(super) fn line<T: AsRef<str>>(&mut self, pieces: &[(Tone, T)]) {
        self.text.push_str(&painted(pieces));
        self.text.push('\n');
        if self.text.len() >= PIECE {
            self.write();
        }
    }

    /// Writes the rest of the buffer.
    pub(super) fn write(&mut self) {
        log(&self.text);
        self.text.clear();
    }
}

/// Returns lines as text for standard output, coloured if a terminal supports it.
pub(super) fn page<T: AsRef<str>>(lines: &[Vec<(Tone, T)>]) -> String {
    let is_colourful = anstream::AutoStream::choice(&std::io::stdout()) != anstream::ColorChoice::Never;
    let lines: Vec<String> = lines.iter().map(|line| coloured(line, is_colourful).trim_end().to_owned()).collect();
    let text = lines.join("\n");
    read_by_runner(&text).into_owned()
}

/// Writes text that has already passed [`harmless`].
pub(super) fn log(text: &str) {
    live::above(&read_by_runner(text));
}

/// Writes the log of this program. A line of the log never continues a line of the model.
#[derive(Debug)]
pub(super) struct LogWriter;

impl Write for LogWriter {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        live::line_above(&read_by_runner(&String::from_utf8_lossy(bytes)));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Returns the text without commands for GitHub's runner, if it reads the output.
fn read_by_runner(text: &str) -> std::borrow::Cow<'_, str> {
    if speaks_to_runner() { github::inert(text).into() } else { text.into() }
}

/// Columns of the name of a fact.
const FACT: usize = 11;

/// Breaks a line into lines of at most `width` columns. A longer word stays whole, so that a path
/// can be copied.
fn wrapped(pieces: &[(Tone, &str)], width: usize) -> Vec<Vec<(Tone, String)>> {
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
