//! The files that `fledge lanes run` writes: a JUnit report, a summary in Markdown, SARIF, GitLab
//! code quality, and the job summary of GitHub Actions.

use super::super::failure::CliError;
use super::super::output_path::check_writable;
use crate::report::lane::{LaneResult, code_quality, junit, markdown, sarif};
use anyhow::anyhow;
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The place of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum OutputPlace {
    Stdout,
    Stderr,
    /// A file, written completely or not at all.
    File(PathBuf),
    /// The end of a file to which others write too.
    EndOf(PathBuf),
}

/// A form of a lane's result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LaneResultFormat {
    Junit,
    Summary,
    Sarif,
    CodeQuality,
}

impl LaneResultFormat {
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

/// The files to write at the end of the lane.
#[derive(Debug, Clone, Default)]
pub(super) struct LaneResultFiles {
    pub(super) wanted: Vec<(LaneResultFormat, PathBuf)>,
    /// The job summary of GitHub Actions, to which others write too.
    pub(super) job_summary: Option<PathBuf>,
}

impl LaneResultFiles {
    /// Checks that all files can be written. `is_taken` says that standard output already has data.
    ///
    /// # Errors
    /// When a file cannot be written, two flags name the same file, or two texts go to standard
    /// output.
    pub(super) fn check(&self, mut is_taken: bool) -> Result<(), CliError> {
        for (number, (form, path)) in self.wanted.iter().enumerate() {
            let flag = form.flag();
            if is_stdout(path) {
                if std::mem::replace(&mut is_taken, true) {
                    let error = anyhow!("{flag} -: standard output is in use for other data");
                    return Err(CliError::input(error).hint("name a file instead of `-`"));
                }
                continue;
            }
            check_writable(flag, path)?;
            if let Some((other, _)) = self.wanted[..number].iter().find(|(_, other)| is_same_file(other, path)) {
                let other = other.flag();
                return Err(CliError::input(anyhow!("{other} and {flag} name the same file, {}", path.display())));
            }
        }
        Ok(())
    }

    /// Returns the files that can be written. `is_taken` says that standard output already has
    /// data.
    pub(super) fn sound(&self, is_taken: bool) -> Self {
        let is_shared = |one: usize, path: &Path| {
            let others = self.wanted.iter().enumerate().filter(|(number, _)| *number != one);
            others.into_iter().any(
                |(_, (_, other))| {
                    if is_stdout(path) { is_stdout(other) } else { is_same_file(path, other) }
                },
            )
        };
        let is_sound = |(number, (form, path)): (usize, &(LaneResultFormat, PathBuf))| {
            let is_free = if is_stdout(path) { !is_taken } else { check_writable(form.flag(), path).is_ok() };
            (is_free && !is_shared(number, path)).then(|| (*form, path.clone()))
        };
        let wanted = self.wanted.iter().enumerate().filter_map(is_sound).collect();
        Self { wanted, job_summary: self.job_summary.clone() }
    }

    /// Returns true if there is a file to write.
    pub(super) fn are_wanted(&self) -> bool {
        !self.wanted.is_empty() || self.job_summary.is_some()
    }

    /// Returns the texts to write with their places.
    pub(super) fn texts(&self, result: &LaneResult<'_>) -> Vec<(OutputPlace, String)> {
        let is_job_summary = |path: &Path| self.job_summary.as_deref().is_some_and(|job| is_same_file(job, path));
        let place = |path: &PathBuf| match path.as_path() {
            path if is_stdout(path) => Some(OutputPlace::Stdout),
            path if is_stderr(path) => Some(OutputPlace::Stderr),
            path if is_job_summary(path) => None, // the job summary gets it already
            path => Some(OutputPlace::File(path.to_owned())),
        };
        let files = self.wanted.iter().filter_map(|(form, path)| Some((place(path)?, form.text(result))));
        let job = self.job_summary.clone().map(|path| (OutputPlace::EndOf(path), markdown::page(result)));
        files.chain(job).collect()
    }
}

/// Returns true if the path means standard output: by its name, or because standard output is
/// redirected to this file.
fn is_stdout(path: &Path) -> bool {
    const NAMES: [&str; 4] = ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"];
    let is_redirected = || match (fs::metadata("/dev/fd/1"), fs::metadata(path)) {
        (Ok(out), Ok(file)) => file.is_file() && is_same(&out, &file),
        (Ok(_) | Err(_), _) => false,
    };
    NAMES.iter().any(|name| path.as_os_str() == *name) || is_redirected()
}

/// Returns true if the path names standard error. Opening a redirected file again would overwrite
/// it.
fn is_stderr(path: &Path) -> bool {
    ["/dev/stderr", "/dev/fd/2", "/proc/self/fd/2"].iter().any(|name| path.as_os_str() == *name)
}

/// Returns true if two paths name the same regular file, or the same missing file.
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

/// Returns the path with its folder resolved.
pub(super) fn in_place(path: &Path) -> PathBuf {
    let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match (folder.canonicalize(), path.file_name()) {
        (Ok(folder), Some(name)) => folder.join(name),
        (Ok(_) | Err(_), _) => path.to_owned(),
    }
}
