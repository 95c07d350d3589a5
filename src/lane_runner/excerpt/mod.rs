//! The part of a step's output that explains a failure. Pure: it receives the lines one by one,
//! keeps few of them, and builds the excerpt at the end of the step. The table in `signs` defines
//! the meaning of lines.

mod blocks;
mod choice;
mod signs;

use blocks::BlockReader;

/// The maximum size of an excerpt that explains a failure, in bytes.
pub(crate) const EXPLAINED: usize = 4 * 1024;

/// Prefixes of Go's progress lines for single tests, which are omitted.
const GO_GOES_ON: [&str; 5] = ["=== RUN   ", "=== PAUSE ", "=== CONT  ", "=== NAME  ", "--- PASS: "];

/// An excerpt under construction. It takes linear time, and memory proportional to its limit.
#[derive(Debug)]
pub(crate) struct Excerpt {
    limit: usize,
    state: State,
}

#[derive(Debug)]
enum State {
    /// The output does not exceed the limit yet and is kept whole.
    Whole(String),
    /// The output is longer than the limit.
    Read(Box<BlockReader>),
}

impl Excerpt {
    /// Creates an excerpt of at most `limit` bytes.
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, state: State::Whole(String::new()) }
    }

    /// Adds the next line: clean text without its line ending. Go's lines about started and passed
    /// tests are dropped, because they explain no failure.
    pub(crate) fn line(&mut self, line: &str) {
        if GO_GOES_ON.iter().any(|start| line.trim_start().starts_with(start)) {
            return;
        }
        match &mut self.state {
            State::Whole(text) if text.len() + line.len() < self.limit => {
                text.push_str(line);
                text.push('\n');
            }
            State::Whole(text) => {
                let mut reader = Box::new(BlockReader::new(self.limit));
                text.lines().for_each(|line| reader.line(line));
                reader.line(line);
                self.state = State::Read(reader);
            }
            State::Read(reader) => reader.line(line),
        }
    }

    /// Counts lines of a long output without reading them.
    pub(crate) fn skip(&mut self, lines: u64) {
        match &mut self.state {
            State::Whole(_) => {}
            State::Read(reader) => reader.skip(lines),
        }
    }

    /// Returns the whole output if it is short enough. Otherwise returns the lines that best
    /// explain the failure, in order, with a mark for each omission.
    pub(crate) fn finish(self) -> String {
        match self.state {
            State::Whole(text) => text.trim_end().to_owned(),
            State::Read(reader) => choice::choose(&reader.finish(), self.limit),
        }
    }
}

/// Returns the part of a clean text that explains a failure, in at most `limit` bytes.
pub(crate) fn excerpt(text: &str, limit: usize) -> String {
    let mut excerpt = Excerpt::new(limit);
    text.lines().for_each(|line| excerpt.line(line));
    excerpt.finish()
}

#[cfg(test)]
mod tests;
