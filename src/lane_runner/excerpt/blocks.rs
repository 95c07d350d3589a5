//! A reader that groups output lines into blocks. A block is a few lines that explain something
//! together. The reader keeps the first and the last blocks, in bounded memory.

use super::signs::{Means, Reach, Sign, sign_of};
use std::collections::{HashSet, VecDeque};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

/// The number of blocks remembered to drop repeated ones.
const REMEMBERED: usize = 4096;

/// A line that may be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    /// The number of the line. Empty lines do not count; repeated lines count once.
    pub(super) number: u64,
    /// The text of the line, shortened to a readable length.
    pub(super) text: String,
}

/// Lines that explain something together. They need not be adjacent, because noise is left out.
pub(super) type Block = Vec<Line>;

/// The parts of an output that were kept.
#[derive(Debug, Default)]
pub(super) struct Kept {
    pub(super) causes: Ends,
    pub(super) names: Ends,
    pub(super) sums: Ends,
    pub(super) hints: Ends,
    pub(super) warnings: Ends,
    /// The last lines that are not noise.
    pub(super) tail: VecDeque<Line>,
    /// The number of all lines.
    pub(super) lines: u64,
}

/// The first blocks, and the last ones if there were too many.
#[derive(Debug, Default)]
pub(super) struct Ends {
    pub(super) first: Vec<Block>,
    pub(super) last: VecDeque<Block>,
    first_bytes: usize,
    last_bytes: usize,
}

/// Reads lines into blocks.
#[derive(Debug)]
pub(super) struct Reader {
    /// The number of bytes kept of each kind, at each end.
    room: usize,
    kept: Kept,
    tail_bytes: usize,
    /// The newest line and the number of its repetitions. The reader processes it when a different
    /// line arrives.
    held: Option<(String, u64)>,
    open: Option<Open>,
    heading: Option<(&'static str, Line)>,
    seen: HashSet<u64>,
}

/// A block that may continue.
#[derive(Debug)]
struct Open {
    means: Means,
    reach: Reach,
    /// The indentation of its first line.
    indent: usize,
    bytes: usize,
    block: Block,
    /// The hash that identifies a repeated block.
    hash: DefaultHasher,
}

impl Reader {
    pub(super) fn new(room: usize) -> Self {
        let (kept, seen) = (Kept::default(), HashSet::new());
        Self { room, kept, tail_bytes: 0, held: None, open: None, heading: None, seen }
    }

    /// Reads a line, without its line ending.
    pub(super) fn line(&mut self, text: &str) {
        let text = text.trim_end();
        match &mut self.held {
            Some((held, times)) if held == text => *times += 1,
            _ => {
                self.look();
                self.held = Some((text.to_owned(), 1));
            }
        }
    }

    /// Counts lines without reading them.
    pub(super) fn skip(&mut self, lines: u64) {
        self.look();
        self.close();
        self.kept.lines += lines;
    }

    pub(super) fn finish(mut self) -> Kept {
        self.look();
        self.close();
        self.kept
    }

    /// Processes the held line. It begins a block, continues one, or belongs to none.
    fn look(&mut self) {
        let Some((text, times)) = self.held.take() else { return };
        if text.is_empty() {
            self.blank();
            return;
        }
        let sign = sign_of(&text);
        let mut line = Line { number: self.kept.lines, text: cut(text, self.room / 8) };
        self.kept.lines += 1;
        if times > 1 {
            line.text.push_str(&format!(" [{times} times]"));
        }
        match sign.map(|sign| (sign, sign.means)) {
            Some((_, Means::Noise)) => return,
            Some((sign, Means::Heading)) => {
                self.close();
                self.heading = Some((sign.tool, line.clone()));
            }
            Some((_, Means::More(reach))) => {
                if let Some(open) = &mut self.open {
                    (open.reach, open.indent) = (reach, indent_of(&line.text));
                    open.push(&line, self.room / 2);
                }
            }
            Some((sign, means)) if self.open.as_ref().is_none_or(|open| yields(open.means, means)) => {
                self.close();
                self.open = Some(self.begin(sign, &line));
            }
            Some(_) | None => {
                if !self.open.as_mut().is_some_and(|open| open.takes(&line, self.room / 2)) {
                    self.close();
                }
            }
        }
        self.keep_in_tail(line);
    }

    /// Handles an empty line, which ends a paragraph. Empty lines are neither counted nor shown.
    fn blank(&mut self) {
        match self.open.as_ref().map(|open| open.reach) {
            Some(Reach::Line | Reach::Paragraph(_)) => self.close(),
            Some(Reach::Lines(_) | Reach::Deeper(_)) | None => {}
        }
    }

    fn begin(&mut self, sign: &'static Sign, line: &Line) -> Open {
        let reach = match sign.means {
            Means::Cause(reach) | Means::Hint(reach) | Means::Warning(reach) | Means::More(reach) => reach,
            Means::Heading | Means::Name | Means::Sum | Means::Noise => Reach::Line,
        };
        let mut open = Open {
            means: sign.means,
            reach,
            indent: indent_of(&line.text),
            bytes: 0,
            block: Block::new(),
            hash: DefaultHasher::new(),
        };
        if matches!(sign.means, Means::Cause(_)) {
            open.block.extend(self.heading.take_if(|(tool, _)| *tool == sign.tool).map(|(_, heading)| heading));
        }
        let is_near = |line: &&Line| line.text.starts_with([' ', '\t']);
        let near: Vec<&Line> = self.kept.tail.iter().rev().take(sign.before).take_while(is_near).collect();
        open.block.extend(near.into_iter().rev().cloned());
        open.push(line, self.room / 2);
        open
    }

    /// Keeps the open block, unless an equal block was seen before.
    fn close(&mut self) {
        let Some(open) = self.open.take() else { return };
        let hash = open.hash.finish();
        if self.seen.contains(&hash) {
            return;
        }
        if self.seen.len() < REMEMBERED {
            self.seen.insert(hash);
        }
        let ends = match open.means {
            Means::Cause(_) | Means::More(_) => &mut self.kept.causes,
            Means::Name => &mut self.kept.names,
            Means::Sum => &mut self.kept.sums,
            Means::Hint(_) => &mut self.kept.hints,
            Means::Warning(_) => &mut self.kept.warnings,
            Means::Heading | Means::Noise => return,
        };
        ends.push(open.block, self.room);
    }

    fn keep_in_tail(&mut self, line: Line) {
        self.tail_bytes += line.text.len() + 1;
        self.kept.tail.push_back(line);
        while self.tail_bytes > self.room {
            let Some(line) = self.kept.tail.pop_front() else { return };
            self.tail_bytes -= line.text.len() + 1;
        }
    }
}

impl Open {
    /// Adds the line to the block if it belongs there.
    fn takes(&mut self, line: &Line, most: usize) -> bool {
        let left = match &mut self.reach {
            Reach::Line => return false,
            Reach::Deeper(_) if indent_of(&line.text) <= self.indent => return false,
            Reach::Lines(left) | Reach::Paragraph(left) | Reach::Deeper(left) => left,
        };
        if *left == 0 {
            return false;
        }
        *left -= 1;
        self.push(line, most);
        true
    }

    fn push(&mut self, line: &Line, most: usize) {
        let loose = matches!(self.means, Means::Hint(_) | Means::Warning(_));
        // In blocks that may be noise, lines that differ only in digits are equal.
        line.text.bytes().filter(|byte| !(loose && byte.is_ascii_digit())).for_each(|byte| byte.hash(&mut self.hash));
        self.bytes += line.text.len() + 1;
        if self.bytes <= most || self.block.is_empty() {
            self.block.push(line.clone());
        }
    }
}

impl Ends {
    fn push(&mut self, block: Block, room: usize) {
        let bytes = bytes_of(&block);
        if self.last.is_empty() && self.first_bytes + bytes <= room {
            self.first_bytes += bytes;
            self.first.push(block);
            return;
        }
        self.last_bytes += bytes;
        self.last.push_back(block);
        while self.last_bytes > room && self.last.len() > 1 {
            self.last_bytes -= self.last.pop_front().as_ref().map_or(0, bytes_of);
        }
    }
}

/// Returns true if a line of kind `new` ends an open block of kind `open`.
fn yields(open: Means, new: Means) -> bool {
    match new {
        Means::Cause(_) | Means::Name | Means::Sum => true,
        Means::Hint(_) => matches!(open, Means::Hint(_) | Means::Name | Means::Sum),
        Means::Warning(_) => matches!(open, Means::Warning(_) | Means::Hint(_) | Means::Name | Means::Sum),
        Means::More(_) | Means::Heading | Means::Noise => false,
    }
}

fn bytes_of(block: &Block) -> usize {
    block.iter().map(|line| line.text.len() + 1).sum()
}

fn indent_of(text: &str) -> usize {
    text.len() - text.trim_start_matches([' ', '\t']).len()
}

/// Shortens a long line to about `most` bytes, and keeps its start and end.
fn cut(text: String, most: usize) -> String {
    let most = most.max(80);
    if text.len() <= most {
        return text;
    }
    let start = text.floor_char_boundary(most * 2 / 3);
    let end = text.ceil_char_boundary(text.len() - most / 3);
    format!("{} […] {}", &text[..start], &text[end..])
}
