//! The files of a project, as `fledge specs` sees them: none of a version control system, none that ignore files name, no links.

use super::super::failure::Failure;
use crate::limits::MAX_SOURCE;
use crate::store;
use anyhow::Context;
use ignore::WalkBuilder;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// How much of a source file is looked at, in bytes.
const MAX_TEXT: u64 = 8 * 1024 * 1024;
/// Folders that are entered in no project.
const APART: [&str; 5] = [".git", ".hg", ".jj", ".svn", "node_modules"];

/// What there is. Paths are relative to the root, with `/` between their parts.
#[derive(Debug)]
pub(super) struct Survey {
    root: PathBuf,
    /// Path and text of each `specs/**/*.spec.md`, by path.
    pub(super) specs: Vec<(String, String)>,
}

impl Survey {
    /// Reads the specs.
    ///
    /// # Errors
    /// A folder or a file of `specs/` that cannot be read.
    pub(super) fn of(root: &Path) -> Result<Self, Failure> {
        let mut survey = Self { root: root.to_owned(), specs: Vec::new() };
        let top = root.join("specs");
        if !top.is_dir() {
            return Ok(survey);
        }
        for entry in survey.walk(&top) {
            let entry = entry.context("specs/ cannot be read").map_err(Failure::input)?;
            let path = survey.relative(entry.path());
            let is_spec = path.ends_with(".spec.md") && entry.file_type().is_some_and(|kind| kind.is_file());
            if is_spec && let Some(text) = store::read_text(entry.path(), MAX_SOURCE).map_err(Failure::input)? {
                survey.specs.push((path, text));
            }
        }
        Ok(survey)
    }

    /// The files of the project. What cannot be read is left out.
    pub(super) fn files(&self) -> impl Iterator<Item = String> {
        let files =
            self.walk(&self.root).flatten().filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file()));
        files.map(|entry| self.relative(entry.path()))
    }

    /// The text of a file, or the first [`MAX_TEXT`] bytes of it; empty where it cannot be read.
    pub(super) fn text(&self, path: &str) -> String {
        let mut bytes = Vec::new();
        let read = File::open(self.root.join(path)).and_then(|file| file.take(MAX_TEXT).read_to_end(&mut bytes));
        read.map_or_else(|_| String::new(), |_| String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Whether something of this name is there, ignored or not.
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
