//! Difference between the tree before the agent and the tree that was judged or that the run left.
//! It includes changes from every source.

use crate::verdict::shown_path;
use serde::{Deserialize, Serialize};

/// The maximum number of files of a difference that are listed.
const NAMED: usize = 500;
/// Git's file modes, each with the word shown to users.
const MODES: [(&str, &str); 3] = [("100755", "executable"), ("120000", "link"), (SUBMODULE, "submodule")];
/// Git's mode of a submodule. A submodule has no lines.
const SUBMODULE: &str = "160000";

/// The difference between two trees.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct TreeDifference {
    /// The number of files that differ.
    pub files: u64,
    /// Lines added in text files.
    pub added: u64,
    /// Lines removed in text files.
    pub removed: u64,
    /// The files by path: the first 500.
    pub changes: Vec<ChangedFile>,
}

/// A file that differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct ChangedFile {
    /// The path, relative to the workspace, with `/` between its parts.
    pub path: String,
    /// The earlier path of a renamed file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// Git's earlier mode (`100644`, `100755`, `120000` for a link, `160000` for a submodule);
    /// absent for a new file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode_before: Option<String>,
    /// Git's new mode; absent for a deleted file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// Lines added and removed; absent for a binary file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lines: Option<ChangedLines>,
}

/// Counts of changed lines in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct ChangedLines {
    /// Lines added.
    pub added: u64,
    /// Lines removed.
    pub removed: u64,
}

impl TreeDifference {
    /// Builds a difference from its files.
    pub fn new(files: impl IntoIterator<Item = ChangedFile>) -> Self {
        let mut difference = Self::default();
        for file in files {
            difference.files += 1;
            if let Some(ChangedLines { added, removed }) = file.lines.filter(|_| !file.is_submodule()) {
                difference.added = difference.added.saturating_add(added);
                difference.removed = difference.removed.saturating_add(removed);
            }
            if difference.changes.len() < NAMED {
                difference.changes.push(file);
            }
        }
        difference
    }
}

impl ChangedFile {
    /// Describes the file in one line: `src/a.rs +3 -1`, `run.sh (executable)`, `old.rs → new.rs +1
    /// -0`, `logo.png (new, binary)`.
    pub fn line(&self) -> String {
        let from = self.from.as_ref().map(|from| format!("{} → ", shown_path(from))).unwrap_or_default();
        let has_new_mode = self.mode_before.is_some() && self.mode.is_some() && self.mode_before != self.mode;
        let lines = match self.lines.filter(|_| !self.is_submodule()) {
            // Only the mode or the name changed, so the line counts say nothing.
            Some(ChangedLines { added: 0, removed: 0 }) if has_new_mode || self.from.is_some() => String::new(),
            Some(ChangedLines { added, removed }) => format!(" +{added} -{removed}"),
            None => String::new(),
        };
        let is_now = |mode: &Option<String>, known: &str| mode.as_deref() == Some(known);
        let mode = |(known, word): (&'static str, &'static str)| match () {
            () if is_now(&self.mode, known) && (known != MODES[0].0 || !is_now(&self.mode_before, known)) => {
                Some(word.to_owned())
            }
            () if is_now(&self.mode_before, known) && has_new_mode => Some(format!("no {word} any more")),
            () => None,
        };
        let notes = [
            self.mode_before.is_none().then(|| "new".to_owned()),
            self.mode.is_none().then(|| "deleted".to_owned()),
            (self.lines.is_none() && !self.is_submodule()).then(|| "binary".to_owned()),
        ];
        let notes: Vec<String> = notes.into_iter().chain(MODES.map(mode)).flatten().collect();
        let notes = if notes.is_empty() { String::new() } else { format!(" ({})", notes.join(", ")) };
        format!("{from}{}{lines}{notes}", shown_path(&self.path))
    }

    fn is_submodule(&self) -> bool {
        [&self.mode, &self.mode_before].into_iter().any(|mode| mode.as_deref() == Some(SUBMODULE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(from: Option<&str>, before: &str, now: &str, lines: Option<(u64, u64)>) -> ChangedFile {
        let mode = |mode: &str| Some(mode.to_owned()).filter(|mode| !mode.is_empty());
        ChangedFile {
            path: "a".into(),
            from: from.map(str::to_owned),
            mode_before: mode(before),
            mode: mode(now),
            lines: lines.map(|(added, removed)| ChangedLines { added, removed }),
        }
    }

    #[test]
    fn each_kind_of_change_has_its_words() {
        for (file, reported) in [
            (file(None, "100644", "100644", Some((3, 1))), "a +3 -1"),
            (file(None, "", "100644", Some((3, 0))), "a +3 -0 (new)"),
            (file(None, "100644", "", Some((0, 3))), "a +0 -3 (deleted)"),
            (file(None, "", "100644", Some((0, 0))), "a +0 -0 (new)"),
            (file(None, "", "100755", Some((3, 0))), "a +3 -0 (new, executable)"),
            (file(None, "100644", "100755", Some((0, 0))), "a (executable)"),
            (file(None, "100755", "100644", Some((2, 0))), "a +2 -0 (no executable any more)"),
            (file(None, "100755", "100755", Some((2, 0))), "a +2 -0"),
            (file(Some("b"), "100644", "100644", Some((0, 0))), "b → a"),
            (file(Some("b"), "100644", "100644", Some((1, 0))), "b → a +1 -0"),
            (file(None, "100644", "100644", None), "a (binary)"),
            (file(None, "", "100644", None), "a (new, binary)"),
            (file(None, "", "120000", Some((1, 0))), "a +1 -0 (new, link)"),
            (file(None, "120000", "100644", Some((1, 1))), "a +1 -1 (no link any more)"),
            (file(None, "160000", "160000", Some((1, 1))), "a (submodule)"),
            (file(None, "160000", "", Some((0, 1))), "a (deleted)"),
        ] {
            assert_eq!(file.line(), reported);
        }
    }

    #[test]
    fn all_files_are_counted_and_the_first_are_kept() {
        let one = || file(None, "100644", "100644", Some((2, 1)));
        let binary = file(None, "100644", "100644", None);
        let difference = TreeDifference::new((0..600).map(|_| one()).chain([binary]));
        assert_eq!((difference.files, difference.added, difference.removed), (601, 1200, 600));
        assert_eq!(difference.changes.len(), NAMED);
    }
}
