//! The choice of the blocks to show within a byte limit. The chosen lines keep their original
//! order.

use super::blocks::{EndBlocks, ExcerptBlock, ExcerptLine, KeptBlocks};
use std::collections::BTreeMap;

/// Chooses lines in order of value:
///
/// 1. summaries and names of failures, in few lines
/// 2. causes, beginning with the first
/// 3. the end of the output
/// 4. hints
/// 5. warnings, if no causes exist
pub(super) fn choose(kept: &KeptBlocks, limit: usize) -> String {
    let room = limit.saturating_sub(mark(kept.lines).len());
    let mut choice = Choice { lines: BTreeMap::new(), all: kept.lines, room };
    let has_causes = !kept.causes.first.is_empty();
    choice.fill(&kept.sums, limit / 8, 0);
    choice.fill(&kept.names, limit / 5, limit / 8);
    let spare = limit / 8;
    let most = choice.room.saturating_sub(spare);
    choice.fill(&kept.causes, most, most / 4 * 3);
    choice.fill_tail(kept, if has_causes { spare } else { limit / 4 });
    // If a tool has reported the cause, hints add little, and the last hints add most.
    let (most, from_start) = if has_causes { (limit / 8, 0) } else { (choice.room / 2, choice.room / 6) };
    choice.fill(&kept.hints, most, from_start);
    if !has_causes {
        choice.fill(&kept.warnings, choice.room / 2, choice.room / 4);
        choice.fill_tail(kept, choice.room);
    }
    choice.render()
}

struct Choice<'a> {
    lines: BTreeMap<u64, &'a str>,
    /// The number of all lines.
    all: u64,
    room: usize,
}

impl<'a> Choice<'a> {
    /// Takes blocks in at most `share` bytes. It takes the first blocks for `from_start` bytes,
    /// then blocks from the end.
    fn fill(&mut self, ends: &'a EndBlocks, share: usize, from_start: usize) {
        let all: Vec<&ExcerptBlock> = ends.first.iter().chain(&ends.last).collect();
        let floor = self.room.saturating_sub(share);
        let middle = self.room.saturating_sub(from_start);
        let mut next = 0;
        while next < all.len() && self.room > middle && self.add_block(all[next], floor, next == 0) {
            next += 1;
        }
        for (count, block) in all[next..].iter().rev().enumerate() {
            if !self.add_block(block, floor, next == 0 && count == 0) {
                break;
            }
        }
    }

    /// Takes the last lines in at most `share` bytes.
    fn fill_tail(&mut self, kept: &'a KeptBlocks, share: usize) {
        let floor = self.room.saturating_sub(share);
        for line in kept.tail.iter().rev() {
            if !self.take_line(line, floor) {
                break;
            }
        }
    }

    /// Takes a whole block, or with `in_part` as many lines as fit. Returns false if the block is
    /// not whole.
    fn add_block(&mut self, block: &'a ExcerptBlock, floor: usize, in_part: bool) -> bool {
        let before = (self.lines.clone(), self.room);
        let is_whole = block.iter().all(|line| self.take_line(line, floor));
        if !is_whole && !in_part {
            (self.lines, self.room) = before;
        }
        is_whole
    }

    /// Takes a line, if the line and its marks leave `floor` bytes of room.
    fn take_line(&mut self, line: &'a ExcerptLine, floor: usize) -> bool {
        if self.lines.contains_key(&line.number) {
            return true;
        }
        let from = self.lines.range(..line.number).next_back().map_or(0, |(number, _)| number + 1);
        let to = self.lines.range(line.number..).next().map_or(self.all, |(number, _)| *number);
        let marks = mark(line.number - from).len() + mark(to - line.number - 1).len();
        let cost = (line.text.len() + 1 + marks).saturating_sub(mark(to - from).len());
        if cost > self.room.saturating_sub(floor) {
            return false;
        }
        self.room -= cost;
        self.lines.insert(line.number, &line.text);
        true
    }

    fn render(self) -> String {
        if self.lines.is_empty() {
            return String::new(); // even a mark may be too long
        }
        let (mut text, mut next) = (String::new(), 0);
        for (number, line) in self.lines {
            text.push_str(&mark(number - next));
            text.push_str(line);
            text.push('\n');
            next = number + 1;
        }
        text.push_str(&mark(self.all - next));
        text.truncate(text.trim_end().len());
        text
    }
}

/// Formats the mark for this number of omitted lines.
fn mark(hidden: u64) -> String {
    match hidden {
        0 => String::new(),
        1..10 => "[…]\n".into(),
        _ => format!("[… {hidden} lines …]\n"),
    }
}
