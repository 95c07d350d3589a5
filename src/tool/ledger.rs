//! The host's record of files: their contents when the model last saw them, and their originals
//! before the run changed them.

use super::{ToolError, bound};
use crate::chat::{FileChange, FileChangeKind};
use crate::id::CallId;
use crate::workspace::jail::RelPath;
use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};
use similar::{ChangeTag, TextDiff};
use std::collections::HashMap;
use std::time::Duration;

/// The largest file whose original is kept, in bytes.
const MAX_ORIGINAL: usize = 2 * 1024 * 1024;
/// The maximum size of all originals together, in bytes.
const MAX_ORIGINALS: usize = 64 * 1024 * 1024;
/// The maximum size of all originals passed to the next host, in bytes.
const MAX_COPIED: usize = 8 * 1024 * 1024;
/// The largest diff in an outcome, in bytes.
const MAX_DIFF: usize = 16 * 1024;
/// The time after which one comparison stops looking for a shorter diff.
const DIFF_TIME: Duration = Duration::from_millis(300);

/// The record of one run.
#[derive(Debug, Default)]
pub(super) struct FileLedger {
    /// Hashes of files by agent: one agent of a run does not know what another agent has seen.
    seen: HashMap<(u64, RelPath), [u8; 32]>,
    originals: HashMap<RelPath, Original>,
    kept: usize,
}

/// A file before the run first changed it.
#[derive(Debug)]
enum Original {
    Absent,
    Bytes(Vec<u8>),
    /// The original is too large to keep. Each change is counted against the file just before that
    /// change.
    Unkept,
}

/// A [`FileLedger`] as plain data, for the next host.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LedgerCopy {
    seen: Vec<(u64, String, [u8; 32])>,
    originals: Vec<(String, OriginalCopy)>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum OriginalCopy {
    Absent,
    Text(String),
    Unkept,
}

impl FileLedger {
    /// Records that the agent of this call has now read or written these bytes of the file.
    pub(super) fn saw(&mut self, call: CallId, path: &RelPath, bytes: &[u8]) {
        self.seen.insert((call.agent(), path.clone()), hash(bytes));
    }

    /// Fails if the agent of this call has seen the file, but not with these bytes.
    pub(super) fn check(&self, call: CallId, path: &RelPath, bytes: &[u8]) -> Result<(), ToolError> {
        match self.seen.get(&(call.agent(), path.clone())) {
            Some(seen) if *seen != hash(bytes) => Err(ToolError::Changed { path: path.clone() }),
            Some(_) | None => Ok(()),
        }
    }

    /// Records a call's change of a file from `before` to `after`. Returns the whole change since
    /// the run began.
    pub(super) fn changed(
        &mut self,
        call: CallId,
        path: &RelPath,
        before: Option<&[u8]>,
        after: Option<&[u8]>,
    ) -> FileChange {
        match after {
            Some(bytes) => self.saw(call, path, bytes),
            None => drop(self.seen.remove(&(call.agent(), path.clone()))),
        }
        if !self.originals.contains_key(path) {
            let original = self.original(before);
            self.originals.insert(path.clone(), original);
        }
        let (existed, original) = match self.originals.get(path) {
            Some(Original::Absent) => (false, None),
            Some(Original::Bytes(bytes)) => (true, Some(bytes.as_slice())),
            Some(Original::Unkept) | None => (true, before),
        };
        let (added, removed) = lines_changed(original.unwrap_or_default(), after.unwrap_or_default());
        let kind = match (existed, after) {
            (_, None) => FileChangeKind::Deleted,
            (true, Some(_)) => FileChangeKind::Modified,
            (false, Some(_)) => FileChangeKind::Created,
        };
        FileChange { path: path.to_string(), kind, added, removed }
    }

    /// Records a change by an earlier process of this run. The original is known only for files
    /// that the run has created.
    pub(super) fn recall(&mut self, change: &FileChange) {
        let path = named(&change.path);
        match change.kind {
            FileChangeKind::Created => drop(self.originals.insert(path, Original::Absent)),
            FileChangeKind::Modified | FileChangeKind::Deleted => {
                self.originals.entry(path).or_insert(Original::Unkept);
            }
        }
    }

    /// Copies the ledger for the next host. Originals that are not UTF-8 or exceed the limit are
    /// marked as unkept.
    pub(super) fn copy(&self) -> LedgerCopy {
        let mut room = MAX_COPIED;
        let mut original = |original: &Original| match original {
            Original::Absent => OriginalCopy::Absent,
            Original::Bytes(bytes) if bytes.len() <= room => match String::from_utf8(bytes.clone()) {
                Ok(text) => {
                    room -= text.len();
                    OriginalCopy::Text(text)
                }
                Err(_) => OriginalCopy::Unkept,
            },
            Original::Bytes(_) | Original::Unkept => OriginalCopy::Unkept,
        };
        LedgerCopy {
            seen: self.seen.iter().map(|((agent, path), hash)| (*agent, path.to_string(), *hash)).collect(),
            originals: self.originals.iter().map(|(path, before)| (path.to_string(), original(before))).collect(),
        }
    }

    /// Restores the ledger of an earlier host.
    pub(super) fn restore(&mut self, copy: LedgerCopy) {
        self.seen.extend(copy.seen.into_iter().map(|(agent, path, hash)| ((agent, named(&path)), hash)));
        for (path, original) in copy.originals {
            let original = match original {
                OriginalCopy::Absent => Original::Absent,
                OriginalCopy::Text(text) => self.original(Some(text.as_bytes())),
                OriginalCopy::Unkept => Original::Unkept,
            };
            self.originals.insert(named(&path), original);
        }
    }

    fn original(&mut self, before: Option<&[u8]>) -> Original {
        match before {
            None => Original::Absent,
            Some(bytes) if bytes.len() <= MAX_ORIGINAL && self.kept + bytes.len() <= MAX_ORIGINALS => {
                self.kept += bytes.len();
                Original::Bytes(bytes.to_vec())
            }
            Some(_) => Original::Unkept,
        }
    }
}

/// Parses a path from its text.
fn named(path: &str) -> RelPath {
    path.split('/').fold(RelPath::default(), |path, name| path.join(name))
}

/// Returns a unified diff of at most 16 KiB. The diff is empty if a file is too large for a
/// readable diff.
pub(super) fn diff(path: &RelPath, before: &[u8], after: &[u8]) -> String {
    if before.len().max(after.len()) > MAX_ORIGINAL {
        return String::new();
    }
    let (before, after) = (String::from_utf8_lossy(before), String::from_utf8_lossy(after));
    let compared = compare(&before, &after);
    let text = compared.unified_diff().header(&format!("a/{path}"), &format!("b/{path}")).to_string();
    if text.len() <= MAX_DIFF {
        return text;
    }
    let head = bound::head(&text, MAX_DIFF - bound::NOTE);
    let whole = head.rfind('\n').map_or(head, |end| &head[..=end]);
    format!("{whole}[… {} bytes of the diff left out]\n", text.len() - whole.len())
}

/// Counts the lines added and removed.
fn lines_changed(before: &[u8], after: &[u8]) -> (u64, u64) {
    let (before, after) = (String::from_utf8_lossy(before), String::from_utf8_lossy(after));
    compare(&before, &after).iter_all_changes().fold((0, 0), |(added, removed), change| match change.tag() {
        ChangeTag::Insert => (added + 1, removed),
        ChangeTag::Delete => (added, removed + 1),
        ChangeTag::Equal => (added, removed),
    })
}

fn compare<'t>(before: &'t str, after: &'t str) -> TextDiff<'t, 't, str> {
    TextDiff::configure().timeout(DIFF_TIME).diff_lines(before, after)
}

fn hash(bytes: &[u8]) -> [u8; 32] {
    let mut hash = [0; 32];
    hash.copy_from_slice(digest(&SHA256, bytes).as_ref());
    hash
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path() -> RelPath {
        RelPath::default().join("a")
    }

    fn change(kind: FileChangeKind, added: u64, removed: u64) -> FileChange {
        FileChange { path: "a".into(), kind, added, removed }
    }

    #[test]
    fn counts_are_net_against_the_file_as_the_run_found_it() {
        let mut ledger = FileLedger::default();
        let steps = [
            (Some("1\n2\n"), Some("1\n2\n3\n"), change(FileChangeKind::Modified, 1, 0)),
            (Some("1\n2\n3\n"), Some("1\n"), change(FileChangeKind::Modified, 0, 1)),
            (Some("1\n"), None, change(FileChangeKind::Deleted, 0, 2)),
            (None, Some("1\n2\n"), change(FileChangeKind::Modified, 0, 0)),
        ];
        for (before, after, expected) in steps {
            assert_eq!(
                ledger.changed(CallId(1), &path(), before.map(str::as_bytes), after.map(str::as_bytes)),
                expected
            );
        }
    }

    #[test]
    fn a_file_that_was_not_there_is_created_however_often_it_is_written() {
        let mut ledger = FileLedger::default();
        assert_eq!(ledger.changed(CallId(1), &path(), None, Some(b"1\n")), change(FileChangeKind::Created, 1, 0));
        assert_eq!(
            ledger.changed(CallId(1), &path(), Some(b"1\n"), Some(b"2\n3\n")),
            change(FileChangeKind::Created, 2, 0)
        );
    }

    #[test]
    fn a_file_that_an_earlier_process_of_the_run_has_made_is_still_created() {
        let mut ledger = FileLedger::default();
        ledger.recall(&change(FileChangeKind::Created, 1, 0));
        ledger.recall(&change(FileChangeKind::Deleted, 0, 0));
        assert_eq!(
            ledger.changed(CallId(1), &path(), Some(b"1\n"), Some(b"2\n3\n")),
            change(FileChangeKind::Created, 2, 0)
        );
    }

    #[test]
    fn what_was_seen_and_how_files_were_is_handed_on() {
        let mut ledger = FileLedger::default();
        ledger.changed(CallId(1), &path(), Some(b"1\n"), Some(b"1\n2\n"));
        let mut next = FileLedger::default();
        next.restore(ledger.copy());
        assert!(next.check(CallId(1), &path(), b"1\n").is_err() && next.check(CallId(1), &path(), b"1\n2\n").is_ok());
        assert_eq!(
            next.changed(CallId(1), &path(), Some(b"1\n2\n"), Some(b"")),
            change(FileChangeKind::Modified, 0, 1)
        );
        assert_eq!(next.copy().originals, ledger.copy().originals);
    }

    #[test]
    fn what_another_agent_has_written_since_is_not_written_over_unseen() {
        let (run, child) = (CallId(7), CallId(CallId::OF_ONE_AGENT * 10_000 + 7));
        let mut ledger = FileLedger::default();
        ledger.saw(run, &path(), b"1\n");
        assert!(ledger.check(child, &path(), b"1\n").is_ok());
        ledger.changed(child, &path(), Some(b"1\n"), Some(b"2\n"));
        assert!(ledger.check(run, &path(), b"2\n").is_err() && ledger.check(child, &path(), b"2\n").is_ok());
        ledger.saw(run, &path(), b"2\n");
        assert!(ledger.check(run, &path(), b"2\n").is_ok());
    }

    #[test]
    fn a_file_too_large_to_keep_is_counted_change_by_change() {
        let mut ledger = FileLedger::default();
        let large = "x".repeat(MAX_ORIGINAL) + "\n";
        let more = large.clone() + "y\n";
        let most = more.clone() + "z\n";
        ledger.changed(CallId(1), &path(), Some(large.as_bytes()), Some(more.as_bytes()));
        let second = ledger.changed(CallId(1), &path(), Some(more.as_bytes()), Some(most.as_bytes()));
        assert_eq!(second, change(FileChangeKind::Modified, 1, 0));
    }

    #[test]
    fn a_long_diff_is_cut_at_a_line() {
        let diff = diff(&path(), b"", "é\n".repeat(20_000).as_bytes());
        assert!(diff.len() <= MAX_DIFF);
        assert!(diff.starts_with("--- a/a\n+++ b/a\n@@ -0,0 +1,20000 @@\n+é\n"));
        assert!(diff.ends_with("bytes of the diff left out]\n"));
    }
}
