//! Picks the part of a step's output that explains why it failed. Pure: it is handed the lines as they come, keeps little of
//! them, and has its answer when the step is over. What lines mean stands in the table in `signs`.

mod blocks;
mod choice;
mod signs;

use blocks::Reader;

/// Bytes of an excerpt that explains a failure.
pub(crate) const EXPLAINED: usize = 4 * 1024;

/// The lines of Go about single tests that are left out.
const GO_GOES_ON: [&str; 5] = ["=== RUN   ", "=== PAUSE ", "=== CONT  ", "=== NAME  ", "--- PASS: "];

/// An excerpt being made. Takes linear time, and memory in proportion to its limit.
#[derive(Debug)]
pub(crate) struct Excerpt {
    limit: usize,
    state: State,
}

#[derive(Debug)]
enum State {
    /// Short so far, and kept whole.
    Whole(String),
    /// Longer than the limit.
    Read(Box<Reader>),
}

impl Excerpt {
    /// One of at most `limit` bytes.
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, state: State::Whole(String::new()) }
    }

    /// Takes the next line: clean text without its end. That Go begins a test or has passed one explains no failure.
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
                let mut reader = Box::new(Reader::new(self.limit));
                text.lines().for_each(|line| reader.line(line));
                reader.line(line);
                self.state = State::Read(reader);
            }
            State::Read(reader) => reader.line(line),
        }
    }

    /// Takes lines that nobody looks at, by their number, from a long output.
    pub(crate) fn skip(&mut self, lines: u64) {
        match &mut self.state {
            State::Whole(_) => {}
            State::Read(reader) => reader.skip(lines),
        }
    }

    /// The whole output if it is short enough. Else the lines that explain its end best, in their order, with a mark for each cut.
    pub(crate) fn finish(self) -> String {
        match self.state {
            State::Whole(text) => text.trim_end().to_owned(),
            State::Read(reader) => choice::choose(&reader.finish(), self.limit),
        }
    }
}

/// The part of `text`, which is clean already, that explains a failure, in at most `limit` bytes.
pub(crate) fn excerpt(text: &str, limit: usize) -> String {
    let mut excerpt = Excerpt::new(limit);
    text.lines().for_each(|line| excerpt.line(line));
    excerpt.finish()
}

#[cfg(test)]
mod tests;
