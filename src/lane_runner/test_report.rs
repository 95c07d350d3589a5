//! The file with a step's test report. The report counts only if this run of the step wrote it, so
//! fledge removes an old report before the step starts.
//!
//! A step may have replaced the report or its folders by symbolic links, so that fledge reads or
//! removes files that the step cannot reach. fledge follows no link out of the project, and no link
//! at the path of the report.

use super::LaneRoom;
use super::{JunitError, JunitReport};
use crate::workspace::jail::{FinalLink, Jail, JailEntryKind, JailError, JailPlace};
use std::io;
use std::path::{Path, PathBuf};

/// The maximum size of a report, in bytes.
const MAX_REPORT: u64 = 16 * 1024 * 1024;

/// An error with the file of a test report.
#[derive(Debug, thiserror::Error)]
pub enum TestReportError {
    /// The file does not exist.
    #[error("the step wrote no test report `{}`", path.display())]
    Missing {
        /// The path of the file.
        path: PathBuf,
    },
    /// The path is a directory, a device or a pipe.
    #[error("the test report `{}` is no file", path.display())]
    NotAFile {
        /// The path of the file.
        path: PathBuf,
    },
    /// The path is a symbolic link, which fledge does not follow.
    #[error("the test report `{}` is a link, and links are not followed", path.display())]
    Link {
        /// The path of the file.
        path: PathBuf,
    },
    /// Symbolic links lead the path out of the project.
    #[error("the test report `{path}` is to be in a folder that leads out of the project")]
    Outside {
        /// The path of the file, as in the lane.
        path: String,
    },
    /// The file is too large.
    #[error("the test report `{}` is larger than 16 MiB", path.display())]
    TooLarge {
        /// The path of the file.
        path: PathBuf,
    },
    /// The file cannot be read, or an old one cannot be removed.
    #[error("cannot read or replace the test report `{}`", path.display())]
    Unreadable {
        /// The path of the file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The file is not a JUnit report.
    #[error("the test report `{}` is malformed: {what}", path.display())]
    Malformed {
        /// The path of the file.
        path: PathBuf,
        /// The place and the reason.
        what: JunitError,
    },
}

/// The folder that contains the paths of reports.
#[derive(Debug, Clone)]
pub(super) struct ReportRoot {
    /// The name of the folder.
    pub(super) named: PathBuf,
    /// The folder where this process finds the files that steps see. With layers, it is a different
    /// folder.
    pub(super) seen: PathBuf,
}

impl ReportRoot {
    pub(super) fn new(room: &LaneRoom) -> Self {
        let view = room.behind.as_ref().and_then(|behind| behind.rules.view.as_ref());
        let named = room.root.clone();
        let seen = view.map_or_else(|| named.clone(), |view| view.seen(&named.canonicalize().unwrap_or(named.clone())));
        Self { named, seen }
    }
}

impl From<&Path> for ReportRoot {
    fn from(root: &Path) -> Self {
        Self { named: root.to_owned(), seen: root.to_owned() }
    }
}

/// Removes an old report, so that a report found later must be new. `path` is relative to `root`.
///
/// # Errors
///
/// When the report exists and cannot be removed.
pub(super) fn forget_junit(root: &ReportRoot, path: &str) -> Result<(), TestReportError> {
    let place = at(root, path)?;
    let is_there = place.metadata().map_err(|fault| report_error(&root.named, path, fault))?.is_some();
    if is_there { place.delete().map_err(|fault| report_error(&root.named, path, fault)) } else { Ok(()) }
}

/// Reads the report that a step wrote at `path`, relative to `root`: at most 16 MiB, without
/// waiting for a writer.
///
/// # Errors
///
/// When the report is missing, not a file, too large, unreadable or not a JUnit report, and when
/// links lead out of `root`.
pub(super) fn read_junit(root: &ReportRoot, path: &str) -> Result<JunitReport, TestReportError> {
    let bytes = at(root, path)?.read(MAX_REPORT).map_err(|fault| report_error(&root.named, path, fault))?;
    JunitReport::parse(&String::from_utf8_lossy(&bytes))
        .map_err(|what| TestReportError::Malformed { path: root.named.join(path), what })
}

/// Locates the file name by name, held by its folder.
fn at(root: &ReportRoot, path: &str) -> Result<JailPlace, TestReportError> {
    let jail = Jail::open_seen(&root.named, &root.seen);
    let place = jail.and_then(|jail| jail.locate(&jail.path(path)?, FinalLink::Keep));
    place.map_err(|fault| report_error(&root.named, path, fault))
}

fn report_error(root: &Path, named: &str, fault: JailError) -> TestReportError {
    let path = root.join(named);
    match fault {
        JailError::Outside { .. } | JailError::TooManyLinks { .. } => TestReportError::Outside { path: named.into() },
        JailError::Missing { .. } => TestReportError::Missing { path },
        JailError::WrongKind { found, .. } if found == JailEntryKind::Link.described() => {
            TestReportError::Link { path }
        }
        JailError::WrongKind { .. } => TestReportError::NotAFile { path },
        JailError::TooLarge { .. } => TestReportError::TooLarge { path },
        JailError::Root { source, .. } | JailError::Io { source, .. } => TestReportError::Unreadable { path, source },
        JailError::Empty | JailError::ControlCharacter { .. } | JailError::TooLong { .. } => {
            TestReportError::Unreadable { path, source: io::Error::new(io::ErrorKind::InvalidInput, fault) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, File};
    use std::os::unix::fs::symlink;

    /// Returns the error message without the folder.
    fn shown_path(root: &Path, path: &str) -> String {
        read_junit(&root.into(), path).unwrap_err().to_string().replace(&root.display().to_string(), "")
    }

    #[test]
    fn a_report_is_read_from_its_file() {
        let folder = crate::test_support::temp_dir();
        let (root, path) = (folder.path(), "sub/../report.xml");
        let text = "<testsuite><testcase name='a'/><testcase name='\u{fffd}'/></testsuite>";
        fs::write(root.join("report.xml"), text).unwrap();
        assert_eq!(read_junit(&root.into(), path).unwrap().counts.tests, 2);
        forget_junit(&root.into(), path).unwrap();
        forget_junit(&root.into(), path).unwrap();
        forget_junit(&root.into(), "no/folder/report.xml").unwrap();
        assert!(matches!(read_junit(&root.into(), path), Err(TestReportError::Missing { .. })));
    }

    #[test]
    fn what_is_no_report_is_refused_with_its_name_and_place() {
        let folder = crate::test_support::temp_dir();
        let (root, path) = (folder.path(), folder.path().join("report.xml"));
        fs::write(&path, "<testsuite>\n<testcase name='a'></testsuite>").unwrap();
        insta::assert_snapshot!(shown_path(root, "report.xml"), @"the test report `/report.xml` is malformed: line 2: ill-formed document: expected `</testcase>`, but `</testsuite>` was found");
        fs::create_dir(root.join("folder")).unwrap();
        insta::assert_snapshot!(shown_path(root, "folder"), @"the test report `/folder` is no file");
        File::create(&path).unwrap().set_len(MAX_REPORT + 1).unwrap();
        insta::assert_snapshot!(shown_path(root, "report.xml"), @"the test report `/report.xml` is larger than 16 MiB");
        fs::remove_file(&path).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, &path, rustix::fs::Mode::RUSR).unwrap();
        insta::assert_snapshot!(shown_path(root, "report.xml"), @"the test report `/report.xml` is no file");
    }

    #[test]
    fn no_link_leads_to_a_report_that_is_elsewhere_nor_is_that_removed() {
        let folder = crate::test_support::temp_dir();
        let [root, elsewhere] = ["root", "elsewhere"].map(|name| folder.path().join(name));
        [&root, &elsewhere].iter().for_each(|folder| fs::create_dir(folder).unwrap());
        fs::write(elsewhere.join("r.xml"), "<testsuite><testcase name='secret'/></testsuite>").unwrap();
        symlink(&elsewhere, root.join("out")).unwrap();
        symlink("../elsewhere", root.join("up")).unwrap();
        for path in ["out/r.xml", "up/r.xml"] {
            assert!(matches!(read_junit(&root.as_path().into(), path), Err(TestReportError::Outside { .. })), "{path}");
            assert!(
                matches!(forget_junit(&root.as_path().into(), path), Err(TestReportError::Outside { .. })),
                "{path}"
            );
        }
        insta::assert_snapshot!(shown_path(&root, "out/r.xml"), @"the test report `out/r.xml` is to be in a folder that leads out of the project");
        symlink(elsewhere.join("r.xml"), root.join("r.xml")).unwrap();
        insta::assert_snapshot!(shown_path(&root, "r.xml"), @"the test report `/r.xml` is a link, and links are not followed");
        forget_junit(&root.as_path().into(), "r.xml").unwrap();
        assert!(!root.join("r.xml").is_symlink() && elsewhere.join("r.xml").exists());
        fs::create_dir(root.join("deep")).unwrap();
        symlink("deep", root.join("inner")).unwrap();
        fs::copy(elsewhere.join("r.xml"), root.join("deep/r.xml")).unwrap();
        assert_eq!(read_junit(&root.as_path().into(), "inner/r.xml").unwrap().counts.tests, 1);
    }
}
