//! What may happen to bytes on their way, by chance with a seed.

/// SplitMix64 (Steele, Lea and Flood, 2014).
pub(crate) struct Dice(u64);

/// What is put where it does not belong.
const INTRUDERS: [&[u8]; 26] = [
    b"\n",
    b"\r",
    b"\r\n",
    b"\n\n",
    b"\"",
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b":",
    b"\\",
    b"\0",
    b"\xff",
    b"\xc3",
    b"null",
    b"0",
    b"-1",
    b"1e999",
    b"\\ud800",
    b"data: ",
    b"data: [DONE]\n\n",
    b": ping\n\n",
    b"event: error\n",
    b"\xEF\xBB\xBF",
    b"18446744073709551615",
];

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn throw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number from 0 up to but not `end`.
    fn below(&mut self, end: usize) -> usize {
        (self.throw() % end.max(1) as u64) as usize
    }

    /// The bytes in a few pieces.
    pub(crate) fn cut<'b>(&mut self, bytes: &'b [u8]) -> Vec<&'b [u8]> {
        let mut places: Vec<usize> = (0..self.below(9)).map(|_| self.below(bytes.len() + 1)).collect();
        places.extend([0, bytes.len()]);
        places.sort_unstable();
        places.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect()
    }
}

/// One of the streams, damaged once to four times.
pub(crate) fn damaged(valid: &[Vec<u8>], dice: &mut Dice) -> Vec<u8> {
    let mut bytes = valid[dice.below(valid.len())].clone();
    for _ in 0..=dice.below(4) {
        match dice.below(10) {
            0 => flip(&mut bytes, dice),
            1 => drop(bytes.drain(range(&bytes.clone(), 8, dice))),
            2 => drop(bytes.drain(range(&bytes.clone(), usize::MAX, dice))),
            3 => {
                let (range, at) = (range(&bytes, 40, dice), dice.below(bytes.len() + 1));
                let again = bytes[range].to_vec();
                bytes.splice(at..at, again);
            }
            4 => bytes.truncate(dice.below(bytes.len() + 1)),
            5 => {
                let (at, intruder) = (dice.below(bytes.len() + 1), INTRUDERS[dice.below(INTRUDERS.len())]);
                bytes.splice(at..at, intruder.iter().copied());
            }
            6 => bytes.extend_from_slice(&valid[dice.below(valid.len())]),
            _ => bytes = with_lines_moved(&bytes, dice),
        }
    }
    bytes
}

fn flip(bytes: &mut [u8], dice: &mut Dice) {
    let (at, bit) = (dice.below(bytes.len()), dice.below(8));
    if let Some(byte) = bytes.get_mut(at) {
        *byte ^= 1 << bit;
    }
}

fn range(bytes: &[u8], longest: usize, dice: &mut Dice) -> std::ops::Range<usize> {
    let start = dice.below(bytes.len() + 1);
    start..start + dice.below((bytes.len() - start).min(longest) + 1)
}

/// The lines with one gone, doubled, or changed for another.
fn with_lines_moved(bytes: &[u8], dice: &mut Dice) -> Vec<u8> {
    let mut lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').filter(|line| line.len() > 1).collect();
    let (one, other) = (dice.below(lines.len()), dice.below(lines.len()));
    if !lines.is_empty() {
        match dice.below(3) {
            0 => drop(lines.remove(one)),
            1 => lines.insert(other, lines[one]),
            _ => lines.swap(one, other),
        }
    }
    let ends: &[u8] = if bytes.windows(2).any(|pair| pair == b"\n\n") { b"\n" } else { b"" };
    lines.into_iter().flat_map(|line| [line, ends].concat()).collect()
}
