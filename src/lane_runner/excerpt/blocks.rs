//! A reader that groups output lines into blocks. A block is a few lines that explain something
//! together. The reader keeps the first and the last blocks, in bounded memory.

use super::signs::{LineMeaning, Sign, SignReach, sign_of};
use std::collections::{HashSet, VecDeque};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

/// The number of blocks remembered to drop repeated ones.
const REMEMBERED: usize = 4096;

/// A line that may be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ExcerptLine {
    /// The number of the line. Empty lines do not count; repeated lines count once.
    pub(super) number: u64,
    /// The text of the line, shortened to a readable length.
    pub(super) text: String,
}

/// Lines that explain something together. They need not be adjacent, because noise is left out.
pub(super) type ExcerptBlock = Vec<ExcerptLine>;

/// The parts of an output that were kept.
#[derive(Debug, Default)]
pub(super) struct KeptBlocks {
    pub(super) causes: EndBlocks,
    pub(super) names: EndBlocks,
    pub(super) sums: EndBlocks,
    pub(super) hints: EndBlocks,
    pub(super) warnings: EndBlocks,
    /// The last lines that are not noise.
    pub(super) tail: VecDeque<ExcerptLine>,
    /// The number of all lines.
    pub(super) lines: u64,
}

/// The first blocks, and the last ones if there were too many.
#[derive(Debug, Default)]
pub(super) struct EndBlocks {
    pub(super) first: Vec<ExcerptBlock>,
    pub(super) last: VecDeque<ExcerptBlock>,
    first_bytes: usize,
    last_bytes: usize,
}

/// Reads lines into blocks.
#[derive(Debug)]
pub(super) struct BlockReader {
    /// The number of bytes kept of each kind, at each end.
    room: usize,
    kept: KeptBlocks,
    tail_bytes: usize,
    /// The newest line and the number of its repetitions. The reader processes it when a different
    /// line arrives.
    held: Option<(String, u64)>,
    open: Option<Open>,
    heading: Option<(&'static str, ExcerptLine)>,
    seen: HashSet<u64>,
}

/// A block that may continue.
#[derive(Debug)]
struct Open {
    means: LineMeaning,
    reach: SignReach,
    /// The indentation of its first line.
    indent: usize,
    bytes: usize,
    block: ExcerptBlock,
    /// The hash that identifies a repeated block.
    hash: DefaultHasher,
}

impl BlockReader {
    pub(super) fn new(room: usize) -> Self {
        let (kept, seen) = (KeptBlocks::default(), HashSet::new());
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

    pub(super) fn finish(mut self) -> KeptBlocks {
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
        let mut line = ExcerptLine { number: self.kept.lines, text: cut(text, self.room / 8) };
        self.kept.lines += 1;
        if times > 1 {
            line.text.push_str(&format!(" [{times} times]"));
        }
        match sign.map(|sign| (sign, sign.means)) {
            Some((_, LineMeaning::Noise)) => return,
            Some((sign, LineMeaning::Heading)) => {
                self.close();
                self.heading = Some((sign.tool, line.clone()));
            }
            Some((_, LineMeaning::More(reach))) => {
                if let Some(open) = &mut self.open {
                    (open.reach, open.indent) = (reach, indent_of(&line.text));
                    open.push(&line, self.room / 2);
                }
            }
            Some((sign, means)) if self.open.as_ref().is_none_or(|open| yields(open.means, means)) => {
                self.close();
                self.open = Some(self.open_block(sign, &line));
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
            Some(SignReach::Line | SignReach::Paragraph(_)) => self.close(),
            Some(SignReach::Lines(_) | SignReach::Deeper(_)) | None => {}
        }
    }

    fn open_block(&mut self, sign: &'static Sign, line: &ExcerptLine) -> Open {
        let reach = match sign.means {
            LineMeaning::Cause(reach)
            | LineMeaning::Hint(reach)
            | LineMeaning::Warning(reach)
            | LineMeaning::More(reach) => reach,
            LineMeaning::Heading | LineMeaning::Name | LineMeaning::Sum | LineMeaning::Noise => SignReach::Line,
        };
        let mut open = Open {
            means: sign.means,
            reach,
            indent: indent_of(&line.text),
            bytes: 0,
            block: ExcerptBlock::new(),
            hash: DefaultHasher::new(),
        };
        if matches!(sign.means, LineMeaning::Cause(_)) {
            open.block.extend(self.heading.take_if(|(tool, _)| *tool == sign.tool).map(|(_, heading)| heading));
        }
        let is_near = |line: &&ExcerptLine| line.text.starts_with([' ', '\t']);
        let near: Vec<&ExcerptLine> = self.kept.tail.iter().rev().take(sign.before).take_while(is_near).collect();
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
            LineMeaning::Cause(_) | LineMeaning::More(_) => &mut self.kept.causes,
            LineMeaning::Name => &mut self.kept.names,
            LineMeaning::Sum => &mut self.kept.sums,
            LineMeaning::Hint(_) => &mut self.kept.hints,
            LineMeaning::Warning(_) => &mut self.kept.warnings,
            LineMeaning::Heading | LineMeaning::Noise => return,
        };
        ends.push(open.block, self.room);
    }

    fn keep_in_tail(&mut self, line: ExcerptLine) {
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
    fn takes(&mut self, line: &ExcerptLine, most: usize) -> bool {
        let left = match &mut self.reach {
            SignReach::Line => return false,
            SignReach::Deeper(_) if indent_of(&line.text) <= self.indent => return false,
            SignReach::Lines(left) | SignReach::Paragraph(left) | SignReach::Deeper(left) => left,
        };
        if *left == 0 {
            return false;
        }
        *left -= 1;
        self.push(line, most);
        true
    }

    fn push(&mut self, line: &ExcerptLine, most: usize) {
        let loose = matches!(self.means, LineMeaning::Hint(_) | LineMeaning::Warning(_));
        // In blocks that may be noise, lines that differ only in digits are equal.
        line.text.bytes().filter(|byte| !(loose && byte.is_ascii_digit())).for_each(|byte| byte.hash(&mut self.hash));
        self.bytes += line.text.len() + 1;
        if self.bytes <= most || self.block.is_empty() {
            self.block.push(line.clone());
        }
    }
}

impl EndBlocks {
    fn push(&mut self, block: ExcerptBlock, room: usize) {
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
fn yields(open: LineMeaning, new: LineMeaning) -> bool {
    match new {
        LineMeaning::Cause(_) | LineMeaning::Name | LineMeaning::Sum => true,
        LineMeaning::Hint(_) => matches!(open, LineMeaning::Hint(_) | LineMeaning::Name | LineMeaning::Sum),
        LineMeaning::Warning(_) => {
            matches!(open, LineMeaning::Warning(_) | LineMeaning::Hint(_) | LineMeaning::Name | LineMeaning::Sum)
        }
        LineMeaning::More(_) | LineMeaning::Heading | LineMeaning::Noise => false,
    }
}

fn bytes_of(block: &ExcerptBlock) -> usize {
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
