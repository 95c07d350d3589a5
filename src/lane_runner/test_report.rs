//! The file that a step's own test report is in. It counts only if this very run of the step has written it, so an old one is
//! removed before the step starts.

use super::junit::{JunitReport, Malformed};
use rustix::fs::OFlags;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
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

/// Removes a report that is already there, so that the next one is known to be new.
///
/// # Errors
///
/// When it is there and cannot be removed.
pub fn forget_junit(path: &Path) -> Result<(), TestReportFault> {
    match fs::remove_file(path) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => {
            Err(TestReportFault::Unreadable { path: path.into(), source })
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Reads the report that a step has written: at most 16 MiB, waiting for nothing.
///
/// # Errors
///
/// When it is missing, no file, too large, unreadable, or not a JUnit report.
pub fn read_junit(path: &Path) -> Result<JunitReport, TestReportFault> {
    let unreadable = |source: io::Error| match source.kind() {
        io::ErrorKind::NotFound => TestReportFault::Missing { path: path.into() },
        _ => TestReportFault::Unreadable { path: path.into(), source },
    };
    // A named pipe must not keep us waiting for its writer.
    let nonblocking = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or_default();
    let file = File::options().read(true).custom_flags(nonblocking).open(path).map_err(unreadable)?;
    if !file.metadata().map_err(unreadable)?.is_file() {
        return Err(TestReportFault::NotAFile { path: path.into() });
    }
    let mut bytes = Vec::new();
    file.take(MAX_REPORT + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > MAX_REPORT {
        return Err(TestReportFault::TooLarge { path: path.into() });
    }
    JunitReport::parse(&String::from_utf8_lossy(&bytes))
        .map_err(|what| TestReportFault::Malformed { path: path.into(), what })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_read_from_its_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("report.xml");
        fs::write(&path, "<testsuite><testcase name='a'/><testcase name='\u{fffd}'/></testsuite>").unwrap();
        assert_eq!(read_junit(&path).unwrap().counts.tests, 2);
        forget_junit(&path).unwrap();
        forget_junit(&path).unwrap();
        assert!(matches!(read_junit(&path), Err(TestReportFault::Missing { .. })));
    }

    #[test]
    fn what_is_no_report_is_refused_with_its_name_and_place() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("report.xml");
        let said =
            |path: &Path| read_junit(path).unwrap_err().to_string().replace(&folder.path().display().to_string(), "");
        fs::write(&path, "<testsuite>\n<testcase name='a'></testsuite>").unwrap();
        insta::assert_snapshot!(said(&path), @"the test report `/report.xml` is malformed: line 2: ill-formed document: expected `</testcase>`, but `</testsuite>` was found");
        insta::assert_snapshot!(said(folder.path()), @"the test report `` is no file");
        File::create(&path).unwrap().set_len(MAX_REPORT + 1).unwrap();
        insta::assert_snapshot!(said(&path), @"the test report `/report.xml` is larger than 16 MiB");
        fs::remove_file(&path).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, &path, rustix::fs::Mode::RUSR).unwrap();
        insta::assert_snapshot!(said(&path), @"the test report `/report.xml` is no file");
    }
}
