//! Lines on standard error, coloured if a terminal supports it. `NO_COLOR` and pipes turn colours
//! off.

pub(super) use super::terminal::can_draw;
pub(super) use super::text_style::{Tone, harmless, is_colourful, one_line, painted};

use super::live::{self, cells};
use super::text_style::coloured;
use crate::config::EnvironmentLayer;
use crate::report::lane::github;
use anstream::ColorChoice;
use clap::ValueEnum;
use std::ffi::OsString;
use std::io::{IsTerminal, Write};
use std::os::fd::AsFd;
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

/// Writes pieces as a line. On a terminal, breaks it between words. A reader that has gone away is
/// not an error.
pub(super) fn line<T: AsRef<str>>(pieces: &[(Tone, T)]) {
    // Broken lines of a file would move from their carets.
    let is_excerpt = pieces.first().is_some_and(|(_, text)| text.as_ref().ends_with(" | "));
    let width = live::drawn_width().or_else(|| columns(&std::io::stderr()).filter(|_| !is_excerpt));
    let Some(width) = width else { return show(pieces, "\n") };
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

/// Returns lines as [`page`] does, broken between words if standard output is a terminal.
pub(super) fn prose<T: AsRef<str>>(lines: &[Vec<(Tone, T)>]) -> String {
    let Some(width) = columns(&std::io::stdout()) else { return page(lines) };
    let pieces = |line: &Vec<(Tone, T)>| -> Vec<Vec<(Tone, String)>> {
        wrapped(&line.iter().map(|(tone, text)| (*tone, text.as_ref())).collect::<Vec<_>>(), width)
    };
    page(&lines.iter().flat_map(pieces).collect::<Vec<_>>())
}

/// Returns the number of columns of a terminal; `None` if the stream is none.
pub(super) fn columns(stream: &(impl IsTerminal + AsFd)) -> Option<usize> {
    const USUAL: usize = 80;
    const LEAST: usize = 30;
    let columns = || rustix::termios::tcgetwinsize(stream).ok().map(|size| usize::from(size.ws_col));
    stream.is_terminal().then(|| columns().filter(|columns| *columns > 0).unwrap_or(USUAL).max(LEAST))
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
    let is_output = hang.1.trim_end().ends_with(['|', '│', '┆']);
    let total: usize = pieces.iter().map(|(_, text)| cells(text)).sum();
    let squeezed: Vec<(Tone, String)> = match is_output && total > width {
        true => pieces.iter().map(|(tone, text)| (*tone, squeezed(text, total - width))).collect(),
        false => Vec::new(),
    };
    let squeezed: Vec<(Tone, &str)> = squeezed.iter().map(|(tone, text)| (*tone, text.as_str())).collect();
    let pieces = if squeezed.is_empty() { pieces } else { &squeezed };
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

/// Makes the rules and gaps in a line of output shorter by `excess` columns, as far as they are
/// long enough. Test runners draw them as wide as the terminal.
fn squeezed(text: &str, excess: usize) -> String {
    const LONG: usize = 6;
    const SHORT: usize = 2;
    let chars: Vec<char> = text.chars().collect();
    let is_rule = |run: &&[char]| run.len() >= LONG && "=-_*#~ ".contains(run[0]);
    let runs = chars.chunk_by(|one, other| one == other);
    let (count, mut left) = (runs.clone().filter(is_rule).count(), excess);
    let share = excess.div_ceil(count.max(1));
    let kept = |run: &[char]| {
        let cut = if is_rule(&run) { share.min(left).min(run.len() - SHORT) } else { 0 };
        left -= cut;
        run[cut..].iter().collect::<String>()
    };
    runs.map(kept).collect()
}

/// Returns the beginning of each further line.
fn hang(pieces: &[(Tone, &str)], width: usize) -> (Tone, String) {
    let (tone, first) = pieces.first().copied().unwrap_or((Tone::Plain, ""));
    let indent = first.len() - first.trim_start_matches(' ').len();
    if first.trim_end().ends_with(['|', '│', '┆']) && cells(first) < width / 2 {
        return (tone, first.to_owned());
    }
    let is_fact = indent >= 2 && cells(first) == FACT && FACT < width / 2;
    // A mark and a padded name, as in `✓ git      `.
    let two = pieces.get(1).map_or(0, |(_, name)| cells(first) + cells(name));
    let is_marked = two == FACT && cells(first) == 2 && FACT < width / 2;
    let is_remedy = first.trim() == "→" && cells(first) < width / 2;
    let columns = match (is_fact || is_marked, is_remedy) {
        (true, _) => FACT,
        (false, true) => cells(first),
        (false, false) => (indent + 2).min(width / 4),
    };
    (Tone::Plain, " ".repeat(columns))
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
        let rule = [(Tone::Faint, "    | "), (Tone::Plain, "=========== 1 failed ===========")];
        assert_eq!(text(&rule, 28), ["    | ====== 1 failed ======"]);
        let dots = [(Tone::Faint, "    | "), (Tone::Plain, "a.py ..F..            [100%]")];
        assert_eq!(text(&dots, 28), ["    | a.py ..F..      [100%]"]);
        let check = [(Tone::Good, "✓ "), (Tone::Strong, "git      "), (Tone::Plain, "the project is not in one")];
        assert_eq!(text(&check, 28), ["✓ git      the project is", "           not in one"]);
        let remedy = [(Tone::Faint, "           → "), (Tone::Plain, "run `git init` here")];
        assert_eq!(text(&remedy, 28), ["           → run `git init`", "             here"]);
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
