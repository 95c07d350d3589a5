//! Changes of protected paths that did not become part of the work, and the flags that allow them.
//! Pure.

use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// A change of a protected path that did not become part of the work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct HeldBack {
    /// The path, relative to the workspace, with `/` between its parts.
    pub path: String,
    /// The kind of change: `added`, `changed`, `removed`, or `refused` if a tool refused to make
    /// it.
    pub change: String,
    /// The rule that protects the path.
    pub rule: String,
    /// The flag that allows the change. Some changes have no flag, such as those of git's own files
    /// and links that lead outside.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flag: Option<String>,
}

/// The beginnings of rules that apply to every task, with all flags.
const WITHOUT_FLAG: [&str; 8] = [
    "a link that leads out of the workspace",
    "a repository inside the workspace",
    "a pipe, socket or device",
    "it may not be read",
    "it has ",
    "a name that some systems take for `.git`",
    "differs only in capitals from `",
    "it is in a cache of the gate",
];

/// The suffix of a rule if code run by the checks made the change. No task asks for this kind of
/// change, so it has no flag.
pub const IN_THE_ROOM: &str = "; written in the room";

/// The suffix of a path that means the tests inside the product file.
const TESTS: &str = "#tests";

/// Returns the name of the tests inside a product file, as `allow_edit` takes it: `src/a.rs#tests`.
pub fn tests_in(path: &str) -> String {
    format!("{path}{TESTS}")
}

/// Returns true if a path means the tests inside a product file. fledge reverts no change of them.
pub fn are_tests_in(path: &str) -> bool {
    path.ends_with(TESTS)
}

impl HeldBack {
    /// Creates a change, with the flag that allows it, if there is one.
    pub fn new(path: &str, change: &str, rule: &str) -> Self {
        let is_gits = path.split('/').any(|part| part == ".git");
        let has_flag =
            !is_gits && !rule.contains(IN_THE_ROOM) && !WITHOUT_FLAG.iter().any(|start| rule.starts_with(start));
        let flag = has_flag.then(|| format!("--allow-edit {}", shell_word(&globset::escape(path))));
        Self { path: path.into(), change: change.into(), rule: rule.into(), flag }
    }
}

/// The maximum number of paths with separate flags in one command line.
const MOST_FLAGS: usize = 20;

fn with_flags(held: &[HeldBack]) -> Vec<&HeldBack> {
    held.iter().filter(|held| held.flag.is_some()).collect()
}

/// Returns true if the joined flags of these changes open whole folders.
pub fn flags_open_folders(held: &[HeldBack]) -> bool {
    with_flags(held).len() > MOST_FLAGS
}

/// Joins the flags that allow all of these changes, as words of one command line. If there are many
/// paths, each flag opens a folder.
pub fn joined_flags(held: &[HeldBack]) -> Option<String> {
    let opened = with_flags(held);
    let folder = |path: &str| path.split_once('/').map(|(folder, _)| format!("{}/**", globset::escape(folder)));
    let flag = |held: &&HeldBack| match folder(&held.path).filter(|_| opened.len() > MOST_FLAGS) {
        Some(glob) => Some(format!("--allow-edit {}", shell_word(&glob))),
        None => held.flag.clone(),
    };
    let flags: BTreeSet<String> = opened.iter().filter_map(flag).collect();
    (!flags.is_empty()).then(|| flags.into_iter().collect::<Vec<_>>().join(" "))
}

/// Quotes a text as one word for a shell.
pub fn shell_word(text: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+@:,=~".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags(paths: &[&str]) -> Option<String> {
        let held: Vec<HeldBack> = paths.iter().map(|path| HeldBack::new(path, "changed", "a rule")).collect();
        joined_flags(&held)
    }

    #[test]
    fn flags_are_joined_so_that_a_shell_takes_them() {
        assert_eq!(flags(&["Makefile", "a [b].sh"]).unwrap(), "--allow-edit 'a [[]b[]].sh' --allow-edit Makefile");
        assert_eq!(flags(&[".git/hooks/pre-commit"]), None);
        assert_eq!(flags(&[]), None);
    }

    #[test]
    fn many_paths_have_a_flag_for_each_folder() {
        let many: Vec<String> = (0..=MOST_FLAGS).map(|number| format!("tests/{number}.rs")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).chain(["Makefile"]).collect();
        let held: Vec<HeldBack> = many.iter().map(|path| HeldBack::new(path, "changed", "a rule")).collect();
        assert!(flags_open_folders(&held) && !flags_open_folders(&held[..MOST_FLAGS]));
        assert_eq!(flags(&many).unwrap(), "--allow-edit 'tests/**' --allow-edit Makefile");
    }
}
