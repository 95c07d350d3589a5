//! Git's index with the times and numbers of the files of a room. Without them git would read every file of the room when it is first asked.
//! The format is that of gitformat-index(5), versions 2 and 3.

use std::ffi::OsStr;
use std::fs::Metadata;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// Bytes before the first entry.
const HEADER: usize = 12;
/// Bytes of an entry before the object id: ten numbers of four bytes.
const STAT: usize = 40;
/// Bytes of a SHA-1 object id, and of the checksum at the end.
const ID: usize = 20;
/// The bit of an entry's flags that says that two more bytes of flags follow.
const EXTENDED: u16 = 0x4000;

/// Writes what the system says of each file in `folder` into an index that has only modes and ids. `None` where the index has another form: git can
/// use it as it is, and reads the files.
pub(in crate::workspace) fn with_stat(mut index: Vec<u8>, folder: &Path) -> Option<Vec<u8>> {
    let version = number(&index, 4)?;
    if index.get(..4)? != b"DIRC" || !(2..=3).contains(&version) {
        return None;
    }
    let end = index.len().checked_sub(ID)?;
    let mut at = HEADER;
    for _ in 0..number(&index, 8)? {
        let flags_at = at + STAT + ID;
        let flags = u16::from_be_bytes(index.get(flags_at..flags_at + 2)?.try_into().ok()?);
        let name_at = flags_at + if flags & EXTENDED == 0 { 2 } else { 4 };
        let length = index.get(name_at..end)?.iter().position(|byte| *byte == 0)?;
        let path = folder.join(OsStr::from_bytes(&index[name_at..name_at + length]));
        let mode = number(&index, at + 24)?;
        if let Some(meta) = path.symlink_metadata().ok().filter(|meta| meta.mode() & 0o170_000 == mode & 0o170_000) {
            put(&mut index[at..at + STAT], &meta);
        }
        // One to eight zeros behind the name, so that each entry has a multiple of eight bytes.
        at += (name_at - at + length + 8) & !7;
    }
    let checksum = sha1(&index[..end]);
    index[end..].copy_from_slice(&checksum);
    Some(index)
}

fn number(index: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(index.get(at..at + 4)?.try_into().ok()?))
}

/// Puts the numbers of a file in their places; the mode stays. Git keeps the low 32 bits of each.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "git compares the low 32 bits")]
fn put(stat: &mut [u8], meta: &Metadata) {
    let before = [meta.ctime() as u32, meta.ctime_nsec() as u32, meta.mtime() as u32, meta.mtime_nsec() as u32];
    let places = [meta.dev() as u32, meta.ino() as u32];
    let after = [meta.uid(), meta.gid(), meta.size() as u32];
    let numbers = (0..).zip(before.into_iter().chain(places)).chain((7..).zip(after));
    for (place, number) in numbers {
        stat[place * 4..place * 4 + 4].copy_from_slice(&number.to_be_bytes());
    }
}

/// SHA-1 (FIPS 180-4): the checksum at the end of an index. It guards against damage, and against nobody.
fn sha1(bytes: &[u8]) -> [u8; ID] {
    let mut state: [u32; 5] = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476, 0xc3d2_e1f0];
    let (blocks, rest) = bytes.as_chunks::<64>();
    blocks.iter().for_each(|block| mix(&mut state, block));
    let mut last = rest.to_vec();
    last.push(0x80);
    last.resize(if last.len() > 56 { 120 } else { 56 }, 0);
    last.extend((bytes.len() as u64 * 8).to_be_bytes());
    last.as_chunks::<64>().0.iter().for_each(|block| mix(&mut state, block));
    let mut sum = [0; ID];
    sum.as_chunks_mut::<4>().0.iter_mut().zip(state).for_each(|(place, word)| *place = word.to_be_bytes());
    sum
}

fn mix(state: &mut [u32; 5], block: &[u8; 64]) {
    let mut words = [0; 80];
    words.iter_mut().zip(block.as_chunks::<4>().0).for_each(|(word, bytes)| *word = u32::from_be_bytes(*bytes));
    for at in 16..80 {
        words[at] = (words[at - 3] ^ words[at - 8] ^ words[at - 14] ^ words[at - 16]).rotate_left(1);
    }
    let [mut a, mut b, mut c, mut d, mut e] = *state;
    for (round, word) in words.into_iter().enumerate() {
        let (choice, constant) = match round {
            0..20 => (b & c | !b & d, 0x5a82_7999_u32),
            20..40 => (b ^ c ^ d, 0x6ed9_eba1),
            40..60 => (b & c | b & d | c & d, 0x8f1b_bcdc),
            _ => (b ^ c ^ d, 0xca62_c1d6),
        };
        let next = a.rotate_left(5).wrapping_add(choice).wrapping_add(e).wrapping_add(constant).wrapping_add(word);
        (e, d, c, b, a) = (d, c, b.rotate_left(30), a, next);
    }
    for (sum, word) in state.iter_mut().zip([a, b, c, d, e]) {
        *sum = sum.wrapping_add(word);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn the_checksum_is_sha1() {
        // The examples of FIPS 180-4, and lengths around a block.
        assert_eq!(hex(&sha1(b"abc")), "a9993e364706816aba3e25717850c26c9cd0d89d");
        assert_eq!(hex(&sha1(b"")), "da39a3ee5e6b4b0d3255bfef95601890afd80709");
        assert_eq!(hex(&sha1(&[b'a'; 55])), "c1c8bbdc22796e28c0e15163d20899b65621d65a");
        assert_eq!(hex(&sha1(&[b'a'; 56])), "c2db330f6083854c99d4b5bfb6e8f29f201be699");
        assert_eq!(hex(&sha1(&[b'a'; 64])), "0098ba824b5c16427bd7a1122a5a442a25ec644d");
    }

    #[test]
    fn what_is_no_index_of_a_known_form_is_left_alone() {
        let folder = Path::new("/nonexistent");
        for bytes in [
            &b""[..],
            b"DIRC",
            b"DIRC\0\0\0\x04\0\0\0\0aaaaaaaaaaaaaaaaaaaa",
            b"DIRC\0\0\0\x02\0\0\0\x01aaaaaaaaaaaaaaaaaaaa",
        ] {
            assert_eq!(with_stat(bytes.to_vec(), folder), None, "{bytes:?}");
        }
    }
}
