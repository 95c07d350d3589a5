//! File names as text. Names are bytes, but patterns, journals and reports are text. Each name has
//! one spelling, from which its bytes can be restored.

use super::TreesError;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

/// The base of the characters for bytes that are not UTF-8: this number plus the byte. These are
/// the last 128 code points, which are for private use. If a name has one of these characters, its
/// bytes are written in this way too.
const STAND_IN: u32 = 0x0010_FF00;

/// Returns a name or path as text.
pub(in crate::workspace) fn spelled(bytes: &[u8]) -> String {
    // The private-use characters start with the byte 0xf4.
    if let Some(text) = std::str::from_utf8(bytes).ok().filter(|_| !bytes.contains(&0xf4)) {
        return text.to_owned();
    }
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            if byte_of(character).is_some() {
                text.extend(character.encode_utf8(&mut [0; 4]).bytes().filter_map(stand_in));
            } else {
                text.push(character);
            }
        }
        text.extend(chunk.invalid().iter().copied().filter_map(stand_in));
    }
    text
}

/// Returns the bytes of a text from [`spelled`].
pub(in crate::workspace) fn bytes(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    for character in text.chars() {
        match byte_of(character) {
            Some(byte) => bytes.push(byte),
            None => bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    bytes
}

/// Returns a path as text, from which [`text_path`] restores it.
pub fn path_text(path: &Path) -> String {
    spelled(path.as_os_str().as_bytes())
}

/// Returns the path of a text from [`path_text`].
pub fn text_path(text: &str) -> PathBuf {
    PathBuf::from(OsString::from_vec(bytes(text)))
}

/// Formats paths as input for git: a NUL follows each.
pub(in crate::workspace) fn listed<'a>(paths: impl IntoIterator<Item = &'a str>) -> Vec<u8> {
    let mut list = Vec::new();
    for path in paths {
        list.append(&mut bytes(path));
        list.push(0);
    }
    list
}

/// Splits a list from git, in which a NUL follows each item.
pub(in crate::workspace) fn each(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    list.split(|byte| *byte == 0).filter(|item| !item.is_empty())
}

/// Returns a path and its parent folders, from the longest to the shortest.
pub(in crate::workspace) fn with_folders(path: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(path), |path| Some(path.rsplit_once('/')?.0))
}

fn stand_in(byte: u8) -> Option<char> {
    char::from_u32(STAND_IN + u32::from(byte))
}

fn byte_of(character: char) -> Option<u8> {
    u8::try_from(u32::from(character).checked_sub(STAND_IN)?).ok().filter(|byte| *byte >= 0x80)
}

/// Returns the reference that keeps a tree under a name.
pub(super) fn kept(name: &str) -> Result<String, TreesError> {
    let is_plain =
        |part: &str| !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
    let is_name = name.split('/').all(is_plain);
    if is_name { Ok(format!("refs/kept/{name}")) } else { Err(TreesError::Name { name: name.to_owned() }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_has_one_spelling_and_comes_back_from_it() {
        assert_eq!(spelled("lanes/ü\n\"-rf".as_bytes()), "lanes/ü\n\"-rf");
        assert_eq!(spelled(b"lanes/\xff.yaml"), "lanes/\u{10FFFF}.yaml");
        let names: [&[u8]; 6] =
            [b"a", b"\xff", "\u{10FFFF}".as_bytes(), "\u{10FF80}x\u{10FF7F}".as_bytes(), b"\xf4\x8f\xbf", b"\xe9t\xe9"];
        let spellings: std::collections::BTreeSet<String> = names.iter().map(|name| spelled(name)).collect();
        assert_eq!(spellings.len(), names.len());
        for name in names {
            assert_eq!(bytes(&spelled(name)), name);
        }
    }
}
