//! Fills a git index with the times and numbers of the files of a room. Without them, git would
//! read every file of the room on first use. The format is that of gitformat-index(5), versions 2
//! and 3.

use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use std::ffi::OsStr;
use std::fs::Metadata;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// The number of bytes before the first entry.
const HEADER: usize = 12;
/// The number of bytes of an entry before the object id: ten numbers of four bytes.
const STAT: usize = 40;
/// The number of bytes of a SHA-1 object id and of the checksum at the end.
const ID: usize = 20;
/// The bit of an entry's flags that marks two more bytes of flags.
const EXTENDED: u16 = 0x4000;

/// Writes the stat data of each file in `folder` into an index that has only modes and ids. `None`
/// if the index has another format: git can use that index too, but then reads the files.
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
        // One to eight zeros follow the name, so that the length of an entry is a multiple of
        // eight.
        at += (name_at - at + length + 8) & !7;
    }
    // The checksum only protects against damage, and git writes SHA-1 here too.
    let checksum = digest(&SHA1_FOR_LEGACY_USE_ONLY, &index[..end]);
    index[end..].copy_from_slice(checksum.as_ref());
    Some(index)
}

fn number(index: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(index.get(at..at + 4)?.try_into().ok()?))
}

/// Writes the stat data of a file into an entry and keeps the mode. Git stores the low 32 bits of
/// each number.
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

#[cfg(test)]
mod tests {
    use super::*;

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
