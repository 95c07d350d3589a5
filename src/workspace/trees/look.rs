//! Searches the folders of a workspace for entries that git skips silently. It reads folders but
//! opens no files, and follows no links.

use super::AnomalyKind;
use super::names::{spelled, with_folders};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// The entries by which git recognizes a repository without `.git`.
const PARTS: [&str; 3] = ["HEAD", "objects", "refs"];

/// Returns all odd entries, except those at and below the `hidden` paths.
pub(super) fn look(root: &Path, hidden: &BTreeSet<String>) -> BTreeMap<String, AnomalyKind> {
    let mut found = BTreeMap::new();
    let mut ahead = vec![(root.to_owned(), String::new())];
    while let Some((folder, place)) = ahead.pop() {
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) if [ErrorKind::NotFound, ErrorKind::NotADirectory].contains(&error.kind()) => continue,
            Err(_) => {
                found.insert(place, AnomalyKind::Unreadable);
                continue;
            }
        };
        let mut parts: BTreeSet<&str> = BTreeSet::new();
        for entry in entries.flatten() {
            let name = entry.file_name();
            parts.extend(PARTS.into_iter().find(|part| name == *part));
            if name == ".git" {
                if !place.is_empty() {
                    found.insert(place.clone(), AnomalyKind::Repository);
                }
                continue;
            }
            let Ok(kind) = entry.file_type() else { continue };
            let is_plain = kind.is_file() || kind.is_symlink();
            if is_plain && !may_be_like_git(name.as_bytes()) {
                continue;
            }
            let name = spelled(name.as_bytes());
            if is_plain && !is_like_git(&name) {
                continue;
            }
            let path = if place.is_empty() { name.clone() } else { format!("{place}/{name}") };
            if hidden.contains(&path) {
                continue;
            }
            if is_like_git(&name) {
                found.insert(path, AnomalyKind::LikeGit);
            } else if kind.is_dir() {
                ahead.push((entry.path(), path));
            } else {
                found.insert(path, AnomalyKind::Special);
            }
        }
        if parts.len() == PARTS.len() {
            found.insert(if place.is_empty() { PARTS[0].to_owned() } else { place }, AnomalyKind::Repository);
        }
    }
    found
}

/// Returns whether a path or one of its parents is in the set.
pub(super) fn is_within(path: &str, set: &BTreeSet<String>) -> bool {
    !set.is_empty() && with_folders(path).any(|path| set.contains(path))
}

/// A fast first check that most names fail.
fn may_be_like_git(name: &[u8]) -> bool {
    matches!(name.first(), Some(b'.' | b'g' | b'G')) || !name.is_ascii()
}

/// Returns whether Windows or macOS take a name for `.git`. They ignore capitals, short names,
/// streams, spaces and dots at the end, and invisible characters. Git has the same rules and takes
/// no such name into a tree.
fn is_like_git(name: &str) -> bool {
    let is_seen = |c: &char| !matches!(c, '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}');
    if !may_be_like_git(name.as_bytes()) {
        return false;
    }
    let seen: String = name.chars().filter(is_seen).collect();
    let start = seen.split([':', '\\']).next().unwrap_or_default().trim_end_matches([' ', '.']).to_ascii_lowercase();
    start == ".git" || start == "git~1"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_git_takes_for_a_repository_without_its_name_is_odd() {
        let folder = crate::test_support::temp_dir();
        for name in ["a/objects", "a/refs", "b/objects", "objects", "refs"] {
            fs::create_dir_all(folder.path().join(name)).unwrap();
        }
        assert_eq!(look(folder.path(), &BTreeSet::new()), BTreeMap::new());
        ["a/HEAD", "HEAD"].iter().for_each(|name| fs::write(folder.path().join(name), "ref: refs/heads/x\n").unwrap());
        let expected = ["HEAD", "a"].map(|place| (place.to_owned(), AnomalyKind::Repository));
        assert_eq!(look(folder.path(), &BTreeSet::new()), BTreeMap::from(expected));
    }

    #[test]
    fn names_that_some_system_takes_for_git_are_known() {
        for name in [".GIT", ".Git", "git~1", "GIT~1", ".git ", ".git. .", ".git::$INDEX_ALLOCATION", ".g\u{200c}it"] {
            assert!(is_like_git(name), "{name}");
        }
        for name in [".gitignore", ".github", "git", "git~2", ".gita", "x.git", "Gemfile"] {
            assert!(!is_like_git(name), "{name}");
        }
    }
}
