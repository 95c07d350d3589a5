//! The files that `fledge lanes run` leaves: a JUnit report, a summary in Markdown, and the summary of a job of GitHub's.

use super::super::failure::Failure;
use super::super::outlet::has_place;
use super::super::paint::{self, Tone};
use crate::report::lane::{LaneResult, junit, markdown};
use crate::store::write_shared;
use anyhow::anyhow;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Where the result goes when the lane is over.
#[derive(Debug, Clone)]
pub(super) struct Files {
    pub(super) junit: Option<PathBuf>,
    pub(super) summary: Option<PathBuf>,
    /// The summary of GitHub's job, which others write to as well.
    pub(super) job_summary: Option<PathBuf>,
}

impl Files {
    /// Checks that all can be written. `is_taken` says whether data goes to standard output.
    ///
    /// # Errors
    /// A file without a place, or two things for standard output.
    pub(super) fn check(&self, mut is_taken: bool) -> Result<(), Failure> {
        for (flag, path) in [("--junit", &self.junit), ("--summary", &self.summary)] {
            match path.as_deref() {
                Some(path) if is_stdout(path) && std::mem::replace(&mut is_taken, true) => {
                    let error = anyhow!("{flag} -: other data goes to standard output already");
                    return Err(Failure::input(error).hint("name a file instead of `-`"));
                }
                Some(path) if !is_stdout(path) => has_place(flag, path)?,
                Some(_) | None => {}
            }
        }
        Ok(())
    }

    /// Whether one of them is standard output.
    pub(super) fn need_stdout(&self) -> bool {
        [&self.junit, &self.summary].into_iter().flatten().any(|path| is_stdout(path))
    }

    /// Writes them, each whole or not at all; `print` takes what goes to standard output.
    ///
    /// # Errors
    /// When one cannot be written; the others are written all the same.
    pub(super) fn write(&self, result: &LaneResult<'_>, print: impl Fn(String)) -> Result<(), Failure> {
        let put = |path: &Path, text: String| match is_stdout(path) {
            true => {
                print(text.trim_end().to_owned());
                Ok(())
            }
            false => write_shared(path, text.as_bytes()).map_err(Failure::own),
        };
        let junit = self.junit.as_deref().map_or(Ok(()), |path| put(path, junit::document(result)));
        let summary = self.summary.as_deref().map_or(Ok(()), |path| put(path, markdown::page(result)));
        if let Some(path) = &self.job_summary {
            let file = OpenOptions::new().append(true).create(true).open(path);
            if let Err(error) = file.and_then(|mut file| file.write_all(markdown::page(result).as_bytes())) {
                let note = format!("the job's summary cannot be written to {}: {error}", path.display());
                paint::line(&[(Tone::Warn, "note: "), (Tone::Plain, &note)]);
            }
        }
        junit.and(summary)
    }
}

fn is_stdout(path: &Path) -> bool {
    path.as_os_str() == "-"
}
