//! Which files tools may write: never git's own, no protected ones, and only those that the task names, if it names any.

use super::ToolError;
use crate::workspace::jail::RelPath;
use crate::workspace::pattern::Patterns;
use crate::workspace::{ProtectedRule, Protection};

/// The rules of one run, compiled.
#[derive(Debug)]
pub(super) struct Rules {
    protection: Protection,
    /// The task's globs, and the same as it wrote them.
    files: Option<(Patterns, String)>,
}

impl Rules {
    pub(super) fn new(protected: &[ProtectedRule], allow_edit: &[String], files: &[String]) -> Result<Self, ToolError> {
        Ok(Self {
            protection: Protection::new(protected.iter().cloned(), allow_edit)?,
            files: match files {
                [] => None,
                files => Some((Patterns::trees(files.iter().map(String::as_str))?, files.join(", "))),
            },
        })
    }

    /// Says no when `path` may not be written. A path through links is to be asked about twice: as named, and as it really is.
    pub(super) fn check(&self, path: &RelPath) -> Result<(), ToolError> {
        // Not by case: on file systems that don't distinguish it, `.GIT` is the same directory.
        if path.names().any(|name| name.eq_ignore_ascii_case(".git")) {
            return Err(ToolError::Git { path: path.clone() });
        }
        if let Some(rule) = self.protection.rule(path.as_str()) {
            return Err(ToolError::Protected { path: path.clone(), why: rule.why.clone() });
        }
        match &self.files {
            Some((files, listed)) if !files.fit(path.as_str()) => {
                Err(ToolError::NotListed { path: path.clone(), allowed: listed.clone() })
            }
            Some(_) | None => Ok(()),
        }
    }
}
