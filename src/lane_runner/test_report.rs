//! The file that a step's own test report is in. It counts only if this very run of the step has written it, so an old one is
//! removed before the step starts. What ran there may have made links of it and of its folders, by which this program would read, or
//! remove, what the step itself could not: no link is followed out of the project, and none in the place of the report.

use super::Room;
use super::junit::{JunitReport, Malformed};
use crate::workspace::jail::{Jail, JailError, Kind, Last, Place};
use std::io;
use std::path::{Path, PathBuf};

/// The most bytes of a report that are read.
const MAX_REPORT: u64 = 16 * 1024 * 1024;

/// Why there is no test report.
#[derive(Debug, thiserror::Error)]
pub enum TestReportFault {
    /// The file is not there.
    #[error("the step wrote no test report `{}`", path.display())]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// It is there, but a directory, a device or a pipe.
    #[error("the test report `{}` is no file", path.display())]
    NotAFile {
        /// The file.
        path: PathBuf,
    },
    /// It is there, but a link, which is not followed.
    #[error("the test report `{}` is a link, and links are not followed", path.display())]
    Link {
        /// The file.
        path: PathBuf,
    },
    /// Links lead to it out of the project.
    #[error("the test report `{path}` is to be in a folder that leads out of the project")]
    Outside {
        /// The file, as the lane names it.
        path: String,
    },
    /// It is too large.
    #[error("the test report `{}` is larger than 16 MiB", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
    /// It cannot be read, or the old one can't be removed.
    #[error("cannot read or replace the test report `{}`", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It is no JUnit report.
    #[error("the test report `{}` is malformed: {what}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// Where and why.
        what: Malformed,
    },
}

/// The folder that the paths of reports are below.
#[derive(Debug, Clone)]
pub(super) struct ReportRoot {
    /// Its name.
    pub(super) named: PathBuf,
    /// Where this process finds what steps see there: behind layers, that is another folder.
    pub(super) seen: PathBuf,
}

impl ReportRoot {
    pub(super) fn new(room: &Room) -> Self {
        let view = room.behind.as_ref().and_then(|behind| behind.holes.view.as_ref());
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

/// Removes a report that is already there, so that the next one is known to be new. `path` is below `root`.
///
/// # Errors
///
/// When it is there and cannot be removed.
pub(super) fn forget_junit(root: &ReportRoot, path: &str) -> Result<(), TestReportFault> {
    let place = at(root, path)?;
    let is_there = place.metadata().map_err(|fault| told(&root.named, path, fault))?.is_some();
    if is_there { place.delete().map_err(|fault| told(&root.named, path, fault)) } else { Ok(()) }
}

/// Reads the report that a step has written at `path` below `root`: at most 16 MiB, waiting for nothing.
///
/// # Errors
///
/// When it is missing, no file, too large, unreadable, or not a JUnit report; and when links lead out of `root`.
pub(super) fn read_junit(root: &ReportRoot, path: &str) -> Result<JunitReport, TestReportFault> {
    let bytes = at(root, path)?.read(MAX_REPORT).map_err(|fault| told(&root.named, path, fault))?;
    JunitReport::parse(&String::from_utf8_lossy(&bytes))
        .map_err(|what| TestReportFault::Malformed { path: root.named.join(path), what })
}

/// Where it is, found name by name and held by its folder.
fn at(root: &ReportRoot, path: &str) -> Result<Place, TestReportFault> {
    let jail = Jail::open_seen(&root.named, &root.seen);
    let place = jail.and_then(|jail| jail.locate(&jail.path(path)?, Last::Keep));
    place.map_err(|fault| told(&root.named, path, fault))
}

fn told(root: &Path, named: &str, fault: JailError) -> TestReportFault {
    let path = root.join(named);
    match fault {
        JailError::Outside { .. } | JailError::TooManyLinks { .. } => TestReportFault::Outside { path: named.into() },
        JailError::Missing { .. } => TestReportFault::Missing { path },
        JailError::WrongKind { found, .. } if found == Kind::Link.described() => TestReportFault::Link { path },
        JailError::WrongKind { .. } => TestReportFault::NotAFile { path },
        JailError::TooLarge { .. } => TestReportFault::TooLarge { path },
        JailError::Root { source, .. } | JailError::Io { source, .. } => TestReportFault::Unreadable { path, source },
        JailError::Empty | JailError::ControlCharacter { .. } | JailError::TooLong { .. } => {
            TestReportFault::Unreadable { path, source: io::Error::new(io::ErrorKind::InvalidInput, fault) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, File};
    use std::os::unix::fs::symlink;

    /// What is said of it, without the folder.
    fn said(root: &Path, path: &str) -> String {
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
        assert!(matches!(read_junit(&root.into(), path), Err(TestReportFault::Missing { .. })));
    }

    #[test]
    fn what_is_no_report_is_refused_with_its_name_and_place() {
        let folder = crate::test_support::temp_dir();
        let (root, path) = (folder.path(), folder.path().join("report.xml"));
        fs::write(&path, "<testsuite>\n<testcase name='a'></testsuite>").unwrap();
        insta::assert_snapshot!(said(root, "report.xml"), @"the test report `/report.xml` is malformed: line 2: ill-formed document: expected `</testcase>`, but `</testsuite>` was found");
        fs::create_dir(root.join("folder")).unwrap();
        insta::assert_snapshot!(said(root, "folder"), @"the test report `/folder` is no file");
        File::create(&path).unwrap().set_len(MAX_REPORT + 1).unwrap();
        insta::assert_snapshot!(said(root, "report.xml"), @"the test report `/report.xml` is larger than 16 MiB");
        fs::remove_file(&path).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, &path, rustix::fs::Mode::RUSR).unwrap();
        insta::assert_snapshot!(said(root, "report.xml"), @"the test report `/report.xml` is no file");
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
            assert!(matches!(read_junit(&root.as_path().into(), path), Err(TestReportFault::Outside { .. })), "{path}");
            assert!(
                matches!(forget_junit(&root.as_path().into(), path), Err(TestReportFault::Outside { .. })),
                "{path}"
            );
        }
        insta::assert_snapshot!(said(&root, "out/r.xml"), @"the test report `out/r.xml` is to be in a folder that leads out of the project");
        symlink(elsewhere.join("r.xml"), root.join("r.xml")).unwrap();
        insta::assert_snapshot!(said(&root, "r.xml"), @"the test report `/r.xml` is a link, and links are not followed");
        forget_junit(&root.as_path().into(), "r.xml").unwrap();
        assert!(!root.join("r.xml").is_symlink() && elsewhere.join("r.xml").exists());
        fs::create_dir(root.join("deep")).unwrap();
        symlink("deep", root.join("inner")).unwrap();
        fs::copy(elsewhere.join("r.xml"), root.join("deep/r.xml")).unwrap();
        assert_eq!(read_junit(&root.as_path().into(), "inner/r.xml").unwrap().counts.tests, 1);
    }
}
