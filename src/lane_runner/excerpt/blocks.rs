//! Reads output line by line into blocks, each a few lines that explain something together, and keeps the first and the last
//! of them in bounded memory.

use super::signs::{Means, Reach, Sign, sign_of};
use std::collections::{HashSet, VecDeque};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

/// How many blocks are remembered in order to drop those that come again.
const REMEMBERED: usize = 4096;

/// A line that may be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    /// Its place among all lines; empty ones are not counted, and repeated ones once.
    pub(super) number: u64,
    /// Its text, cut to a readable length.
    pub(super) text: String,
}

/// Lines that explain something together. They need not be adjacent: noise is left out.
pub(super) type Block = Vec<Line>;

/// What was kept of an output.
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

/// The first blocks and, where there were too many, the last.
#[derive(Debug, Default)]
pub(super) struct Ends {
    pub(super) first: Vec<Block>,
    pub(super) last: VecDeque<Block>,
    first_bytes: usize,
    last_bytes: usize,
}

/// Takes lines in.
#[derive(Debug)]
pub(super) struct Reader {
    /// Bytes that are kept of each kind, at either end.
    room: usize,
    kept: Kept,
    tail_bytes: usize,
    /// The newest line and how often it came in a row; it is looked at when another one comes.
    held: Option<(String, u64)>,
    open: Option<Open>,
    heading: Option<(&'static str, Line)>,
    seen: HashSet<u64>,
}

/// A block that may go on.
#[derive(Debug)]
struct Open {
    means: Means,
    reach: Reach,
    /// The indentation of its first line.
    indent: usize,
    bytes: usize,
    block: Block,
    /// What it is known by, when it comes again.
    hash: DefaultHasher,
}

impl Reader {
    pub(super) fn new(room: usize) -> Self {
        let (kept, seen) = (Kept::default(), HashSet::new());
        Self { room, kept, tail_bytes: 0, held: None, open: None, heading: None, seen }
    }

    /// Takes a line, without its end.
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

    /// Takes lines that nobody looks at, by their number.
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

    /// Looks at the line that is held: it begins a block, goes on with one, or is no part of any.
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

    /// An empty line ends a paragraph. It is not counted and never shown.
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

    /// Keeps the block that is open, unless one like it was there before.
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
    /// Takes a line if it belongs here.
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
        // Of what may be chatter, lines that differ in numbers alone are alike.
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

/// Whether a block of the first kind ends where a line of the second stands.
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

/// A long line in at most about `most` bytes, with its start and its end.
fn cut(text: String, most: usize) -> String {
    let most = most.max(80);
    if text.len() <= most {
        return text;
    }
    let start = text.floor_char_boundary(most * 2 / 3);
    let end = text.ceil_char_boundary(text.len() - most / 3);
    format!("{} […] {}", &text[..start], &text[end..])
}
