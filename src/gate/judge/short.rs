//! Tests of the base that did not run: a failure, unless they were in files that the task opens. Then it is a warning.

use super::{Early, Record, Sitting};
use crate::gate::evidence::{Gone, Shortfall};
use crate::gate::inside;
use crate::gate::names::has_name;
use crate::id::TreeId;
use crate::verdict::HeldBack;
use crate::workspace::trees::{ChangeKind, TreesFault};
use std::collections::BTreeSet;

/// The most changed files that are read, and the largest, in bytes.
const MOST: usize = 200;
const LARGEST: u64 = 1024 * 1024;
/// The most flags that are named.
const NAMED: usize = 5;
/// Signs of a test in a source, for the common runners.
const SIGNS: &[&str] =
    &["#[test]", "#[tokio::test]", "def test", "func Test", "test(", "it(", "@Test", "TEST(", "TEST_CASE("];

/// A file of the base that the work has changed or removed.
struct Edited {
    path: String,
    /// Its text on the base.
    text: String,
    is_opened: bool,
    is_test: bool,
}

impl Sitting<'_> {
    /// Passes over what tests fell short by that were in files which the task opens, with a note each; names the flag of what is left.
    pub(super) async fn excuse(
        &self,
        shortfalls: Vec<Shortfall>,
        tree: &TreeId,
        record: &mut Record,
    ) -> Result<(), Early> {
        let edited = self.edited(tree).await?;
        let (mut left, mut flags) = (Vec::new(), BTreeSet::new());
        for short in shortfalls {
            if short.gone.is_within(edited.iter().filter(|file| file.is_opened)) {
                record.notes.push(format!("allow_edit: {short}"));
                continue;
            }
            let closed = edited.iter().filter(|file| !file.is_opened && short.gone.may_be_in(file));
            flags.extend(closed.filter_map(|file| HeldBack::new(&file.path, "changed", "").flag));
            left.push(short.to_string());
        }
        if left.is_empty() {
            return Ok(());
        }
        let flags: Vec<String> = flags.into_iter().take(NAMED).collect();
        if !flags.is_empty() {
            left.push(format!("where the task moves, renames or removes these tests: {}", flags.join(" ")));
        }
        Err(self.fell_short(record, &left.join("\n")))
    }

    async fn edited(&self, tree: &TreeId) -> Result<Vec<Edited>, TreesFault> {
        let (trees, policy, base) = (&self.site.trees, &self.gate.policy, self.gate.base());
        let mut edited = Vec::new();
        let changes = trees.changes(base, tree, self.stop).await?;
        let of_the_base = |kind: &ChangeKind| matches!(kind, ChangeKind::Modified | ChangeKind::Removed);
        for change in changes.into_iter().filter(|change| of_the_base(&change.kind)).take(MOST) {
            let text = match trees.read(base, &change.path, LARGEST, self.stop).await {
                Ok(bytes) => String::from_utf8_lossy(&bytes.unwrap_or_default()).into_owned(),
                Err(TreesFault::TooLarge { .. }) => String::new(),
                Err(fault) => return Err(fault),
            };
            let is_opened = policy.is_opened(&change.path);
            let is_test = policy.is_test(&change.path) || (inside::may_have(&change.path) && has_tests(&text));
            edited.push(Edited { path: change.path, text, is_opened, is_test });
        }
        Ok(edited)
    }
}

impl Gone {
    /// Whether all of it was in these files.
    fn is_within<'e>(&self, files: impl Iterator<Item = &'e Edited> + Clone) -> bool {
        match self {
            Self::Tests(names) => names.iter().all(|name| files.clone().any(|file| has_test(&file.text, name))),
            Self::Packages(names) => names.iter().all(|name| files.clone().any(|file| is_of_package(file, name))),
            Self::Count => files.clone().any(|file| file.is_test),
            Self::Nothing => false,
        }
    }

    /// Whether some of it was in a file.
    fn may_be_in(&self, file: &Edited) -> bool {
        match self {
            Self::Tests(names) => names.iter().any(|name| has_test(&file.text, name)),
            Self::Packages(names) => names.iter().any(|name| is_of_package(file, name)),
            Self::Count => file.is_test || has_tests(&file.text),
            Self::Nothing => false,
        }
    }
}

fn has_tests(text: &str) -> bool {
    SIGNS.iter().any(|sign| text.contains(sign))
}

/// Whether a text has a test of this name, behind the suite that reports put before it and without the parameters behind it.
fn has_test(text: &str, name: &str) -> bool {
    let plain = name.split(['[', '(']).next().unwrap_or(name).trim_end();
    let last = plain.rsplit([' ', ':', '.', '/']).next().unwrap_or(plain);
    text.contains(plain) || has_name(text, last)
}

/// Whether a file has tests of a package of Go.
fn is_of_package(file: &Edited, package: &str) -> bool {
    let folder = file.path.rsplit_once('/').map_or("", |(folder, _)| folder);
    file.is_test && (folder.is_empty() || package == folder || package.ends_with(&format!("/{folder}")))
}
