//! Tests of the base that did not run. They are a failure, or a warning if files that the task
//! opens have lost them.

use super::{EarlyEnd, GateRun, JudgeRecord};
use crate::gate::base::BaseVerdict;
use crate::gate::evidence::{CUT_SHORT, Evidence, MissingTests, Shortfall};
use crate::gate::inside;
use crate::gate::policy::Policy;
use crate::gate::signs::{gained, gained_at_most, has_lost, has_test, has_tests, is_called_alike, lost, plain};
use crate::id::TreeId;
use crate::verdict::{HeldBack, Ruling, tests_in};
use crate::workspace::trees::TreesError;
use std::collections::BTreeSet;
use std::path::Path;

/// The maximum number of changed files that are read, and the largest size of one, in bytes.
const MOST: usize = 200;
const LARGEST: u64 = 1024 * 1024;
/// The reason against a pass on the tree of the base.
const SAME_AS_BASE: &str = "no file differs from the base, on which these checks failed: they are flaky";
/// The module of Node's test runner.
const OF_NODE: &str = "node:test";
/// The maximum number of flags that a message names.
const NAMED: usize = 5;

/// A file that the work has changed, removed or added.
#[derive(Debug, Default)]
struct Edited {
    path: String,
    /// The text on the base, and now.
    was: String,
    is: String,
    is_opened: bool,
    is_test: bool,
}

impl Edited {
    /// Returns whether a change of a test runner, as `NAME in FILE`, is from this file. The file is
    /// relative to the folder of the runner.
    fn has_changed(&self, change: &str) -> bool {
        let is_here = |file: &str| !file.is_empty() && Path::new(&self.path).ends_with(file);
        change.rsplit_once(" in ").is_some_and(|(_, file)| is_here(file))
    }
}

/// The edits of the work.
#[derive(Debug, Default)]
struct Edits {
    files: Vec<Edited>,
    /// The Go module at the root of the base.
    module: Option<String>,
}

impl GateRun<'_> {
    /// Accepts missing tests that files opened by the task have lost, with a note for each. Fails
    /// for the others, and names the flags that would open their files.
    pub(super) async fn excuse(
        &self,
        shortfalls: Vec<Shortfall>,
        tree: &TreeId,
        record: &mut JudgeRecord,
    ) -> Result<(), EarlyEnd> {
        let edits = self.edits(tree).await?;
        let (mut left, mut flags) = (Vec::new(), Vec::new());
        for mut short in shortfalls {
            let shown = short.to_string();
            self.forget_opened(&mut short.gone);
            if edits.explain(&short.gone) {
                record.notes.push(format!("allow_edit: {shown}"));
                continue;
            }
            let flag = |path: &str| HeldBack::new(&self.opening(path), "changed", "").flag;
            flags.extend(edits.closed(&short.gone).filter_map(|file| flag(&file.path)));
            flags.extend(self.with_values(&short.gone).await?.iter().filter_map(|path| flag(path)));
            left.push(shown);
        }
        if left.is_empty() {
            return Ok(());
        }
        flags.sort();
        flags.dedup();
        flags.truncate(NAMED);
        if !flags.is_empty() {
            left.push(format!("if the task moves, renames or removes these tests, use {}", flags.join(" ")));
        }
        Err(self.fell_short(record, &left.join("\n")))
    }

    /// Removes the tests in opened files whose names may have values of the product. These files
    /// need not have changed.
    fn forget_opened(&self, gone: &mut MissingTests) {
        if let MissingTests::Tests(names) = gone {
            names.retain(|name| !file_of_values(name).is_some_and(|path| self.gate.policy.opens_tests_in(path)));
        }
    }

    /// Returns the files of the base with those of the tests whose names may have values of the
    /// product.
    async fn with_values(&self, gone: &MissingTests) -> Result<BTreeSet<String>, TreesError> {
        let MissingTests::Tests(names) = gone else { return Ok(BTreeSet::new()) };
        let named: BTreeSet<&str> = names.iter().filter_map(|name| file_of_values(name)).collect();
        let mut found = BTreeSet::new();
        for path in named.into_iter().take(NAMED) {
            if !self.text(self.gate.base(), path).await?.is_empty() {
                found.insert(path.to_owned());
            }
        }
        Ok(found)
    }

    /// Returns what `allow_edit` must name so that the tests in a file may change.
    fn opening(&self, path: &str) -> String {
        let is_product = inside::may_have(path) && self.gate.policy.rule(path).is_none();
        if is_product { tests_in(path) } else { path.to_owned() }
    }

    /// Returns whether the work has the same tree as a base whose checks failed. Returns false
    /// where a lane runs in the workspace, because such lanes also depend on ignored files.
    pub(super) fn is_red_base(&self, base: &BaseVerdict, tree: &TreeId) -> bool {
        !self.is_base && tree == self.gate.base() && base.ruling == Ruling::Failed && self.gate.is_clean()
    }

    /// Fails the gate run if the checks pass on a tree on which they failed before. Either a lane
    /// that writes has reverted all of the work, or the base was judged only now.
    pub(super) fn must_differ(&self, base: &BaseVerdict, tree: &TreeId, record: &JudgeRecord) -> Result<(), EarlyEnd> {
        if self.is_red_base(base, tree) { Err(self.fell_short(record, SAME_AS_BASE)) } else { Ok(()) }
    }

    /// Fails the gate run if a step passed while its tests failed, or without a test. Used where
    /// the result of the base is unknown.
    pub(super) fn must_agree(&self, record: &JudgeRecord) -> Result<Option<u64>, EarlyEnd> {
        let empty = self.gate.lanes.iter().flat_map(|lane| record.evidence.empty_steps(lane)).next();
        record.evidence.contradiction().or(empty).map_or(Ok(None), |why| Err(self.fell_short(record, &why)))
    }

    /// Fails the gate run if a file with tests of Node ended without a report of a test: code that
    /// it loads has ended the process.
    pub(super) async fn must_report_tests(&self, tree: &TreeId, record: &JudgeRecord) -> Result<(), EarlyEnd> {
        let base = self.gate.judged.get().map(|base| &base.evidence);
        let files: Vec<&str> = record.evidence.bare_files(base).into_iter().take(MOST).collect();
        let mut ended = Vec::new();
        for file in files {
            // A new file can be a helper without tests.
            let is_new = self.text(self.gate.base(), file).await?.is_empty();
            if !is_new && self.text(tree, file).await?.contains(OF_NODE) {
                ended.push(file);
            }
        }
        if ended.is_empty() {
            return Ok(());
        }
        Err(self.fell_short(record, &format!("{CUT_SHORT}: {}", ended.join(", "))))
    }

    /// Adds notes where more tests were skipped than on the base, where tests passed only when they
    /// were tried again, and where the number of tests differs without a reason.
    pub(super) async fn compare_counts(
        &self,
        base: &Evidence,
        tree: &TreeId,
        record: &mut JudgeRecord,
    ) -> Result<(), EarlyEnd> {
        record.notes.extend(record.evidence.more_skipped(base));
        record.notes.extend(record.evidence.tried_again(base));
        if base.ran() != record.evidence.ran() {
            let files = self.edits(tree).await?.files;
            let added = files.iter().map(|file| gained_at_most(&file.was, &file.is)).sum();
            record.notes.extend(record.evidence.strange_count(base, added));
        }
        Ok(())
    }

    async fn edits(&self, tree: &TreeId) -> Result<Edits, TreesError> {
        let (policy, base) = (&self.gate.policy, self.gate.base());
        let mut edits = Edits::default();
        let manifest = self.text(base, "go.mod").await?;
        let named = manifest.lines().find_map(|line| line.strip_prefix("module "));
        edits.module = named.map(|module| module.trim().to_owned());
        for change in self.site.trees.changes(base, tree, self.stop).await?.into_iter().take(MOST) {
            let (was, is) = (self.text(base, &change.path).await?, self.text(tree, &change.path).await?);
            let may_test = inside::may_have(&change.path) || Policy::looks_like_a_test(&change.path);
            let is_test = policy.is_test(&change.path) || (may_test && (has_tests(&was) || has_tests(&is)));
            edits.files.push(Edited {
                is_opened: policy.opens_tests_in(&change.path),
                path: change.path,
                was,
                is,
                is_test,
            });
        }
        Ok(edits)
    }

    /// Returns the text of a file. The text is empty if the file does not exist or is too large.
    async fn text(&self, tree: &TreeId, path: &str) -> Result<String, TreesError> {
        match self.site.trees.read(tree, path, LARGEST, self.stop).await {
            Ok(bytes) => Ok(String::from_utf8_lossy(&bytes.unwrap_or_default()).into_owned()),
            Err(TreesError::TooLarge { .. }) => Ok(String::new()),
            Err(fault) => Err(fault),
        }
    }
}

impl Edits {
    fn opened(&self) -> impl Iterator<Item = &Edited> {
        self.files.iter().filter(|file| file.is_opened)
    }

    /// Returns whether the files that the task opens have lost all of these tests.
    fn explain(&self, gone: &MissingTests) -> bool {
        match gone {
            MissingTests::Tests(names) => names.iter().all(|name| self.explain_name(name, names)),
            MissingTests::Packages(names) => {
                let has_lost = |file: &&Edited| file.is_test && lost(&file.was, &file.is) > 0;
                names.iter().all(|name| self.opened().filter(has_lost).any(|file| self.is_of_package(file, name)))
            }
            MissingTests::Count(number) => {
                let lost: u64 = self.opened().filter(|file| file.is_test).map(|file| lost(&file.was, &file.is)).sum();
                let gained: u64 =
                    self.files.iter().filter(|file| file.is_test).map(|file| gained(&file.was, &file.is)).sum();
                *number <= lost.saturating_sub(gained)
            }
            MissingTests::Changed(names) => names.iter().all(|name| self.opened().any(|file| file.has_changed(name))),
            MissingTests::Nothing => false,
        }
    }

    /// Returns whether opened files have lost a test, and at least as many tests as are missing
    /// under its name. A test counts once, regardless of its parameters.
    fn explain_name(&self, name: &str, all: &BTreeSet<String>) -> bool {
        let has_lost = |file: &&Edited| has_lost(&file.was, &file.is, name);
        let number: u64 = self.opened().filter(has_lost).map(|file| lost(&file.was, &file.is).max(1)).sum();
        let alike: BTreeSet<&str> =
            all.iter().filter(|other| is_called_alike(other, name)).map(|other| plain(other)).collect();
        number >= alike.len() as u64
    }

    /// Returns the changed files that the task does not open and that may have held some of these
    /// tests.
    fn closed<'e>(&'e self, gone: &'e MissingTests) -> impl Iterator<Item = &'e Edited> {
        let may_have = move |file: &&Edited| match gone {
            MissingTests::Tests(names) => {
                let may_test = file.is_test || has_tests(&file.was) || file.was.contains(">>>");
                may_test && names.iter().any(|name| has_test(&file.was, name))
            }
            MissingTests::Packages(names) => names.iter().any(|name| file.is_test && self.is_of_package(file, name)),
            MissingTests::Count(_) => has_tests(&file.was) || (file.is_test && !file.was.is_empty()),
            MissingTests::Changed(names) => names.iter().any(|name| file.has_changed(name)),
            MissingTests::Nothing => false,
        };
        self.files.iter().filter(|file| !file.is_opened).filter(may_have)
    }

    /// Returns whether a file is in the folder of a Go package.
    fn is_of_package(&self, file: &Edited, package: &str) -> bool {
        match file.path.rsplit_once('/') {
            Some((folder, _)) => package == folder || package.ends_with(&format!("/{folder}")),
            None => self.module.as_deref().is_none_or(|module| module == package),
        }
    }
}

/// Returns the file of a test whose name may have values of the product: `FILE::test_a[1]` of
/// pytest, and `FILE > value 1` of runners of JavaScript.
fn file_of_values(name: &str) -> Option<&str> {
    let of_pytest = || name.split_once("::").filter(|(_, test)| test.ends_with(']'));
    name.split_once(" > ").or_else(of_pytest).map(|(file, _)| file).filter(|file| file.contains('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edited(path: &str, was: &str, is: &str, is_opened: bool) -> Edited {
        Edited { path: path.into(), was: was.into(), is: is.into(), is_opened, is_test: path.contains("test") }
    }

    fn named(names: &[&str]) -> MissingTests {
        MissingTests::Tests(names.iter().map(|name| (*name).to_owned()).collect())
    }

    #[test]
    fn opened_files_excuse_only_what_they_have_lost() {
        let two = "def test_a():\n    pass\n\ndef test_b():\n    pass\n";
        let one = "def test_a():\n    pass\n";
        let edits = |is_opened, more: Option<Edited>| {
            let files = [edited("tests/test_sums.py", two, one, is_opened)].into_iter().chain(more).collect();
            Edits { files, module: Some("example.com/a".into()) }
        };
        let opened = edits(true, None);
        assert!(opened.explain(&MissingTests::Count(1)) && !opened.explain(&MissingTests::Count(2)));
        assert!(!edits(false, None).explain(&MissingTests::Count(1)));
        let moved = edited("tests/test_more.py", "", "def test_b():\n    pass\n", false);
        assert!(!edits(true, Some(moved)).explain(&MissingTests::Count(1)), "a test that was moved is not lost");
        assert!(opened.explain(&named(&["tests.test_sums test_b"])));
        assert!(opened.explain(&named(&["tests/test_sums.py::test_b[1]", "tests/test_sums.py::test_b[2]"])));
        assert!(!opened.explain(&named(&["tests/test_sums.py::test_b[1]", "tests/test_more.py::test_b[1]"])));
        assert!(!opened.explain(&named(&["tests.test_sums test_a"])), "it is there");
        assert!(!opened.explain(&named(&["tests.test_sums test_b", "tests.test_other test_b"])), "one of the two");
        assert_eq!(opened.closed(&MissingTests::Count(1)).count(), 0);
        assert_eq!(edits(false, None).closed(&MissingTests::Count(1)).count(), 1);

        let package = |name: &str| MissingTests::Packages([name.to_owned()].into());
        let files = vec![edited("calc.js", "exports.VALUES = [1, 3];\n", "exports.VALUES = [1];\n", false)];
        let product = Edits { files, module: None };
        assert_eq!(product.closed(&named(&["test/v.test.js > value 3"])).count(), 0, "it has no tests");
        let files = vec![edited("src/main/java/Calc.java", "int add() {}\n", "int add() { exit(0); }\n", false)];
        let java = Edits { files, module: None };
        assert_eq!(java.closed(&named(&["calc.CalcTest add"])).count(), 0, "it has a method of this name, no test");
        assert_eq!(file_of_values("test/v.test.js > values > 3"), Some("test/v.test.js"));
        assert_eq!(file_of_values("tests/test_v.py::test_v[3]"), Some("tests/test_v.py"));
        assert_eq!(file_of_values("tests/test_v.py::test_v"), None);

        let go = "func TestA(t *testing.T) {}\n";
        let files = vec![edited("a_test.go", go, "", true), edited("deep/b_test.go", go, go, true)];
        let edits = Edits { files, module: Some("example.com/a".into()) };
        assert!(edits.explain(&package("example.com/a")));
        assert!(!edits.explain(&package("example.com/a/other")), "the file is of the module's root");
        assert!(!edits.explain(&package("example.com/a/deep")), "its tests are there");

        let change = MissingTests::Changed(["pytest_runtest_call in tests/conftest.py".to_owned()].into());
        let of = |path: &str, is_opened| Edits { files: vec![edited(path, "", "x", is_opened)], module: None };
        assert!(of("sub/tests/conftest.py", true).explain(&change) && !of("tests/other.py", true).explain(&change));
        assert!(!of("tests/conftest.py", false).explain(&change));
        assert_eq!(of("tests/conftest.py", false).closed(&change).count(), 1);
    }
}
