//! The files that `fledge lanes run` leaves: a JUnit report, a summary in Markdown, SARIF, GitLab's code quality, and the summary of a job
//! of GitHub's.

use super::super::failure::Failure;
use super::super::outlet::has_place;
use crate::report::lane::{LaneResult, code_quality, junit, markdown, sarif};
use anyhow::anyhow;
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Where a text is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Place {
    Stdout,
    Stderr,
    /// A file that is written whole or not at all.
    File(PathBuf),
    /// The end of a file that others write to as well.
    EndOf(PathBuf),
}

/// A form of a lane's result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Junit,
    Summary,
    Sarif,
    CodeQuality,
}

impl Form {
    fn flag(self) -> &'static str {
        match self {
            Self::Junit => "--junit",
            Self::Summary => "--summary",
            Self::Sarif => "--sarif",
            Self::CodeQuality => "--code-quality",
        }
    }

    fn text(self, result: &LaneResult<'_>) -> String {
        match self {
            Self::Junit => junit::document(result),
            Self::Summary => markdown::page(result),
            Self::Sarif => sarif::document(result),
            Self::CodeQuality => code_quality::document(result),
        }
    }
}

/// Where the result goes when the lane is over.
#[derive(Debug, Clone, Default)]
pub(super) struct Files {
    pub(super) wanted: Vec<(Form, PathBuf)>,
    /// The summary of GitHub's job, which others write to as well.
    pub(super) job_summary: Option<PathBuf>,
}

impl Files {
    /// Checks that all can be written. `is_taken` says whether data goes to standard output.
    ///
    /// # Errors
    /// A file without a place, two of one place, or two things for standard output.
    pub(super) fn check(&self, mut is_taken: bool) -> Result<(), Failure> {
        for (number, (form, path)) in self.wanted.iter().enumerate() {
            let flag = form.flag();
            if is_stdout(path) {
                if std::mem::replace(&mut is_taken, true) {
                    let error = anyhow!("{flag} -: other data goes to standard output already");
                    return Err(Failure::input(error).hint("name a file instead of `-`"));
                }
                continue;
            }
            has_place(flag, path)?;
            if let Some((other, _)) = self.wanted[..number].iter().find(|(_, other)| is_same_file(other, path)) {
                let other = other.flag();
                return Err(Failure::input(anyhow!("{other} and {flag} name the same file, {}", path.display())));
            }
        }
        Ok(())
    }

    /// Those of them that can be written, each for itself. `is_taken` says whether data goes to standard output.
    pub(super) fn sound(&self, is_taken: bool) -> Self {
        let is_shared = |one: usize, path: &Path| {
            let others = self.wanted.iter().enumerate().filter(|(number, _)| *number != one);
            others.into_iter().any(
                |(_, (_, other))| {
                    if is_stdout(path) { is_stdout(other) } else { is_same_file(path, other) }
                },
            )
        };
        let is_sound = |(number, (form, path)): (usize, &(Form, PathBuf))| {
            let is_free = if is_stdout(path) { !is_taken } else { has_place(form.flag(), path).is_ok() };
            (is_free && !is_shared(number, path)).then(|| (*form, path.clone()))
        };
        let wanted = self.wanted.iter().enumerate().filter_map(is_sound).collect();
        Self { wanted, job_summary: self.job_summary.clone() }
    }

    /// Whether there are any.
    pub(super) fn are_wanted(&self) -> bool {
        !self.wanted.is_empty() || self.job_summary.is_some()
    }

    /// What is to be written, and where.
    pub(super) fn texts(&self, result: &LaneResult<'_>) -> Vec<(Place, String)> {
        let is_job_summary = |path: &Path| self.job_summary.as_deref().is_some_and(|job| is_same_file(job, path));
        let place = |path: &PathBuf| match path.as_path() {
            path if is_stdout(path) => Some(Place::Stdout),
            path if is_stderr(path) => Some(Place::Stderr),
            path if is_job_summary(path) => None, // once is enough
            path => Some(Place::File(path.to_owned())),
        };
        let files = self.wanted.iter().filter_map(|(form, path)| Some((place(path)?, form.text(result))));
        let job = self.job_summary.clone().map(|path| (Place::EndOf(path), markdown::page(result)));
        files.chain(job).collect()
    }
}

/// Whether what is written to this path is to go to standard output: by its names, or because it is redirected to this file.
fn is_stdout(path: &Path) -> bool {
    const NAMES: [&str; 4] = ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"];
    let is_redirected = || match (fs::metadata("/dev/fd/1"), fs::metadata(path)) {
        (Ok(out), Ok(file)) => file.is_file() && is_same(&out, &file),
        (Ok(_) | Err(_), _) => false,
    };
    NAMES.iter().any(|name| path.as_os_str() == *name) || is_redirected()
}

/// Whether this is standard error by its name: opened anew it would be written over, where it is a file.
fn is_stderr(path: &Path) -> bool {
    ["/dev/stderr", "/dev/fd/2", "/proc/self/fd/2"].iter().any(|name| path.as_os_str() == *name)
}

/// Whether two paths name one regular file, or one place where there is nothing yet.
fn is_same_file(one: &Path, other: &Path) -> bool {
    match (fs::metadata(one), fs::metadata(other)) {
        (Ok(one), Ok(other)) => one.is_file() && is_same(&one, &other),
        (Err(_), Err(_)) => in_place(one) == in_place(other),
        (Ok(_), Err(_)) | (Err(_), Ok(_)) => false,
    }
}

fn is_same(one: &Metadata, other: &Metadata) -> bool {
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

/// The path with its folder as it really is.
pub(super) fn in_place(path: &Path) -> PathBuf {
    let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match (folder.canonicalize(), path.file_name()) {
        (Ok(folder), Some(name)) => folder.join(name),
        (Ok(_) | Err(_), _) => path.to_owned(),
    }
}
