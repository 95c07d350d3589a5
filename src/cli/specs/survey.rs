//! The files of a project for `fledge specs`, without those of version control systems, ignored
//! files and links.

use super::super::failure::CliError;
use crate::limits::MAX_SOURCE;
use crate::store;
use anyhow::Context;
use ignore::WalkBuilder;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The part of a source file that is read, in bytes.
const MAX_TEXT: u64 = 8 * 1024 * 1024;
/// Folders that are never searched.
const APART: [&str; 5] = [".git", ".hg", ".jj", ".svn", "node_modules"];

/// The files of a project. Paths are relative to the root, with `/` between their parts.
#[derive(Debug)]
pub(super) struct Survey {
    root: PathBuf,
    /// The path and text of each `specs/**/*.spec.md`, sorted by path.
    pub(super) specs: Vec<(String, String)>,
}

impl Survey {
    /// Reads the specs.
    ///
    /// # Errors
    /// When a folder or a file of `specs/` cannot be read.
    pub(super) fn read(root: &Path) -> Result<Self, CliError> {
        let mut survey = Self { root: root.to_owned(), specs: Vec::new() };
        let top = root.join("specs");
        if !top.is_dir() {
            return Ok(survey);
        }
        for entry in survey.walk(&top) {
            let entry = entry.context("cannot read specs/").map_err(CliError::input)?;
            let path = survey.relative(entry.path());
            let is_spec = path.ends_with(".spec.md") && entry.file_type().is_some_and(|kind| kind.is_file());
            if is_spec && let Some(text) = store::read_text(entry.path(), MAX_SOURCE).map_err(CliError::input)? {
                survey.specs.push((path, text));
            }
        }
        Ok(survey)
    }

    /// Returns the files of the project, without unreadable ones.
    pub(super) fn files(&self) -> impl Iterator<Item = String> {
        let files =
            self.walk(&self.root).flatten().filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file()));
        files.map(|entry| self.relative(entry.path()))
    }

    /// Returns the text of a file, at most its first [`MAX_TEXT`] bytes. Returns an empty text if
    /// the file cannot be read.
    pub(super) fn text(&self, path: &str) -> String {
        let mut bytes = Vec::new();
        let read = File::open(self.root.join(path)).and_then(|file| file.take(MAX_TEXT).read_to_end(&mut bytes));
        read.map_or_else(|_| String::new(), |_| String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Returns true if a file or folder of this name exists, ignored or not.
    pub(super) fn has(&self, path: &str) -> bool {
        self.root.join(path).exists()
    }

    fn walk(&self, top: &Path) -> ignore::Walk {
        let mut builder = WalkBuilder::new(top);
        let is_in = |entry: &ignore::DirEntry| !APART.iter().any(|name| entry.file_name() == *name);
        builder.hidden(false).require_git(false).sort_by_file_name(Ord::cmp).filter_entry(is_in).build()
    }

    fn relative(&self, path: &Path) -> String {
        path.strip_prefix(&self.root).unwrap_or(path).display().to_string()
    }
}
