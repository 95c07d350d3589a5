//! Random damage to bytes, from a seed.

use crate::support::Dice;
/// Bytes that are inserted at wrong places.
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

/// Returns one of the streams, damaged one to four times.
pub(crate) fn damaged(valid: &[Vec<u8>], dice: &mut Dice) -> Vec<u8> {
    let mut bytes = valid[dice.index(valid.len())].clone();
    for _ in 0..=dice.index(4) {
        match dice.index(10) {
            0 => flip(&mut bytes, dice),
            1 => drop(bytes.drain(range(&bytes.clone(), 8, dice))),
            2 => drop(bytes.drain(range(&bytes.clone(), usize::MAX, dice))),
            3 => {
                let (range, at) = (range(&bytes, 40, dice), dice.index(bytes.len() + 1));
                let again = bytes[range].to_vec();
                bytes.splice(at..at, again);
            }
            4 => bytes.truncate(dice.index(bytes.len() + 1)),
            5 => {
                let (at, intruder) = (dice.index(bytes.len() + 1), INTRUDERS[dice.index(INTRUDERS.len())]);
                bytes.splice(at..at, intruder.iter().copied());
            }
            6 => bytes.extend_from_slice(&valid[dice.index(valid.len())]),
            _ => bytes = with_lines_moved(&bytes, dice),
        }
    }
    bytes
}

fn flip(bytes: &mut [u8], dice: &mut Dice) {
    let (at, bit) = (dice.index(bytes.len()), dice.index(8));
    if let Some(byte) = bytes.get_mut(at) {
        *byte ^= 1 << bit;
    }
}

fn range(bytes: &[u8], longest: usize, dice: &mut Dice) -> std::ops::Range<usize> {
    let start = dice.index(bytes.len() + 1);
    start..start + dice.index((bytes.len() - start).min(longest) + 1)
}

/// Removes, doubles or swaps lines.
fn with_lines_moved(bytes: &[u8], dice: &mut Dice) -> Vec<u8> {
    let mut lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').filter(|line| line.len() > 1).collect();
    let (one, other) = (dice.index(lines.len()), dice.index(lines.len()));
    if !lines.is_empty() {
        match dice.index(3) {
            0 => drop(lines.remove(one)),
            1 => lines.insert(other, lines[one]),
            _ => lines.swap(one, other),
        }
    }
    let ends: &[u8] = if bytes.windows(2).any(|pair| pair == b"\n\n") { b"\n" } else { b"" };
    lines.into_iter().flat_map(|line| [line, ends].concat()).collect()
}
