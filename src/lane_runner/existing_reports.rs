//! The test reports that Maven and Gradle write by default. They name the tests of a step whose
//! lane names no report. A report counts only if the step wrote it. Gradle's reports always count,
//! because Gradle keeps the reports of tests that are up to date and removes those of deleted
//! tests.

use super::JunitReport;
use super::test_report::{ReportRoot, read_junit};
use super::{LaneRoom, place};
use crate::lane::Step;
use std::collections::BTreeMap;
use std::fs::{self, DirEntry};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// The programs whose builds write reports.
const BUILDERS: [&str; 5] = ["gradle", "gradlew", "mvn", "mvnd", "mvnw"];
/// The folder of a module's build output, the folder with reports in it, and whether each kind of
/// test has its own folder below that.
const PLACES: [(&str, &str, bool); 3] =
    [("target", "surefire-reports", false), ("target", "failsafe-reports", false), ("build", GRADLE, true)];
/// The folder with Gradle's reports.
const GRADLE: &str = "test-results";
/// Folders that contain no modules.
const LEFT_OUT: [&str; 2] = ["node_modules", "src"];
/// The maximum depth of modules.
const DEEPEST: usize = 8;
/// The maximum number of folders to search, and of reports to read.
const MOST: usize = 20_000;
/// The maximum number of tests in all reports.
const MOST_TESTS: usize = 100_000;

/// The state of a report: inode, size and times.
type Stamp = (u64, u64, i64, i64);

/// The reports that existed before a step.
#[derive(Debug)]
pub(super) struct ExistingReports {
    root: ReportRoot,
    /// The step's folder, relative to the root.
    dir: PathBuf,
    before: BTreeMap<PathBuf, Stamp>,
}

impl ExistingReports {
    /// Looks for reports before a step. `None` for a step that runs no builder or names its own
    /// report.
    pub(super) async fn look(room: &LaneRoom, root: &ReportRoot, step: &Step) -> Option<Self> {
        let is_builder = |word: &str| BUILDERS.contains(&word.rsplit('/').next().unwrap_or(word));
        let runs_builder = step.run.split([' ', '\t', '\n', ';', '&', '|', '(', ')', '"', '\'']).any(is_builder);
        if step.junit.is_some() || !runs_builder || place::unfit(room, step).is_some() {
            return None;
        }
        let (root, dir) = (root.clone(), PathBuf::from(step.dir.as_deref().unwrap_or_default()));
        let work = move || {
            let before = reports(&root.seen, &dir);
            Self { root, dir, before }
        };
        tokio::task::spawn_blocking(work).await.ok()
    }

    /// Reads the tests from the step's reports. `None` if no tests exist, or too many.
    pub(super) async fn read(self) -> Option<JunitReport> {
        tokio::task::spawn_blocking(move || self.read_now()).await.ok()?
    }

    fn read_now(&self) -> Option<JunitReport> {
        let mut all = JunitReport::default();
        for (path, stamp) in reports(&self.root.seen, &self.dir) {
            let is_new = self.before.get(&path) != Some(&stamp);
            let stays = path.components().any(|part| part.as_os_str() == GRADLE);
            let Some(report) = read_junit(&self.root, &path.to_string_lossy()).ok().filter(|_| is_new || stays) else {
                continue;
            };
            if all.cases.len() + report.cases.len() > MOST_TESTS {
                return None;
            }
            all.counts.tests = all.counts.tests.saturating_add(report.counts.tests);
            all.counts.failures = all.counts.failures.saturating_add(report.counts.failures);
            all.counts.errors = all.counts.errors.saturating_add(report.counts.errors);
            all.counts.skipped = all.counts.skipped.saturating_add(report.counts.skipped);
            all.cases.extend(report.cases);
        }
        (!all.cases.is_empty()).then_some(all)
    }
}

/// Finds all reports below a folder, by their paths relative to the root. Symbolic links are not
/// followed.
fn reports(root: &Path, dir: &Path) -> BTreeMap<PathBuf, Stamp> {
    let (mut found, mut looked) = (BTreeMap::new(), 0);
    let mut folders = vec![(dir.to_owned(), 0)];
    while let Some((folder, depth)) = folders.pop() {
        looked += 1;
        if looked > MOST || found.len() > MOST {
            break;
        }
        for name in names(root, &folder, is_folder) {
            let path = folder.join(&name);
            let places = PLACES.iter().filter(|(output, ..)| *output == name);
            for (_, inner, has_kinds) in places.clone() {
                let inner = path.join(inner);
                let kinds = if *has_kinds { names(root, &inner, is_folder) } else { vec![String::new()] };
                kinds.iter().for_each(|kind| add(&mut found, root, &inner.join(kind)));
            }
            let may_have_modules = !name.starts_with('.') && !LEFT_OUT.contains(&name.as_str());
            if places.count() == 0 && may_have_modules && depth < DEEPEST {
                folders.push((path, depth + 1));
            }
        }
    }
    found
}

fn is_folder(entry: &DirEntry) -> bool {
    entry.file_type().is_ok_and(|kind| kind.is_dir())
}

/// Returns the names of the wanted entries of a folder.
fn names(root: &Path, folder: &Path, is_wanted: impl Fn(&DirEntry) -> bool) -> Vec<String> {
    let entries = fs::read_dir(root.join(folder)).into_iter().flatten().flatten();
    entries.filter(is_wanted).filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

/// Adds the reports of a folder.
fn add(found: &mut BTreeMap<PathBuf, Stamp>, root: &Path, folder: &Path) {
    let is_report = |entry: &DirEntry| {
        let name = entry.file_name();
        let is_named = name.to_str().is_some_and(|name| name.starts_with("TEST-") && name.ends_with(".xml"));
        is_named && entry.file_type().is_ok_and(|kind| kind.is_file())
    };
    for name in names(root, folder, is_report).into_iter().take(MOST) {
        let path = folder.join(name);
        if let Ok(meta) = root.join(&path).symlink_metadata() {
            found.insert(path, (meta.ino(), meta.size(), meta.ctime(), meta.ctime_nsec()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lane::parse;

    fn write(root: &Path, path: &str, tests: &[&str]) {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let cases: String = tests.iter().map(|name| format!("<testcase classname='p.T' name='{name}'/>")).collect();
        fs::write(path, format!("<testsuite name='p.T'>{cases}</testsuite>")).unwrap();
    }

    fn room(root: &Path) -> LaneRoom {
        LaneRoom::new(root.to_owned(), Vec::new(), root.to_owned(), 1)
    }

    fn step(keys: &str) -> Step {
        parse("v", "v.yaml", &format!("steps: [{{ {keys} }}]")).unwrap().steps.remove(0)
    }

    async fn found(root: &Path, keys: &str, runs: impl FnOnce()) -> Option<Vec<String>> {
        let found = ExistingReports::look(&room(root), &root.into(), &step(keys)).await?;
        runs();
        let mut names: Vec<String> = found.read().await?.cases.into_iter().map(|case| case.name).collect();
        names.sort();
        Some(names)
    }

    #[tokio::test]
    async fn reports_are_found_in_every_module_where_the_step_wrote_them() {
        let folder = crate::test_support::temp_dir();
        let root = folder.path();
        write(root, "target/surefire-reports/TEST-p.Old.xml", &["old"]);
        write(root, "app/build/test-results/test/TEST-p.Kept.xml", &["kept"]);
        let runs = || {
            write(root, "target/surefire-reports/TEST-p.T.xml", &["root"]);
            write(root, "core/impl/target/failsafe-reports/TEST-p.T.xml", &["deep"]);
            write(root, "app/build/test-results/testDebug/TEST-p.T.xml", &["debug"]);
            write(root, "core/target/surefire-reports/p.T.txt", &["text"]);
            write(root, "node_modules/m/target/surefire-reports/TEST-p.T.xml", &["foreign"]);
            fs::write(root.join("target/surefire-reports/TEST-bad.xml"), "<testsuite>").unwrap();
        };
        let names = found(root, "run: './mvnw -B test && gradle check'", runs).await;
        assert_eq!(names.unwrap(), ["debug", "deep", "kept", "root"]);
    }

    #[tokio::test]
    async fn a_report_that_is_written_again_is_new() {
        let folder = crate::test_support::temp_dir();
        let root = folder.path();
        write(root, "sub/target/surefire-reports/TEST-p.T.xml", &["a"]);
        let again = || write(root, "sub/target/surefire-reports/TEST-p.T.xml", &["a"]);
        assert_eq!(found(root, "run: mvn test, dir: sub", again).await.unwrap(), ["a"]);
        assert_eq!(found(root, "run: mvn test, dir: sub", || {}).await, None);
    }

    #[tokio::test]
    async fn steps_of_other_programs_and_those_with_a_report_of_their_own_have_none() {
        let folder = crate::test_support::temp_dir();
        let root = folder.path();
        let runs = || write(root, "target/surefire-reports/TEST-p.T.xml", &["a"]);
        for keys in ["run: make test", "run: mvn test, junit: r.xml", "run: mvn test, dir: gone"] {
            assert_eq!(found(root, keys, runs).await, None, "{keys}");
        }
    }

    #[tokio::test]
    async fn no_link_leads_to_a_report() {
        let folder = crate::test_support::temp_dir();
        let [root, elsewhere] = ["root", "elsewhere"].map(|name| folder.path().join(name));
        fs::create_dir(&root).unwrap();
        let runs = || {
            write(&elsewhere, "target/surefire-reports/TEST-p.T.xml", &["secret"]);
            let secret = elsewhere.join("target/surefire-reports/TEST-p.T.xml");
            for (to, at) in [(&elsewhere, "module"), (&elsewhere.join("target"), "target")] {
                std::os::unix::fs::symlink(to, root.join(at)).unwrap();
            }
            fs::create_dir_all(root.join("m/target/surefire-reports")).unwrap();
            std::os::unix::fs::symlink(secret, root.join("m/target/surefire-reports/TEST-p.T.xml")).unwrap();
        };
        assert_eq!(found(&root, "run: mvn test", runs).await, None);
    }
}
