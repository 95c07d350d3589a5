//! The rules for files that tools may write. Tools never write git's own files or protected paths.
//! If the task lists files, tools write only those.

use super::ToolError;
use crate::pattern::Patterns;
use crate::workspace::jail::RelPath;
use crate::workspace::{ProtectedRule, Protection};

/// The compiled rules of one run.
#[derive(Debug)]
pub(super) struct ToolRules {
    protection: Protection,
    /// The task's globs, compiled and as text.
    files: Option<(Patterns, String)>,
}

impl ToolRules {
    pub(super) fn new(protected: &[ProtectedRule], allow_edit: &[String], files: &[String]) -> Result<Self, ToolError> {
        Ok(Self {
            protection: Protection::new(protected.iter().cloned(), allow_edit)?,
            files: match files {
                [] => None,
                files => Some((Patterns::trees(files.iter().map(String::as_str))?, files.join(", "))),
            },
        })
    }

    /// Fails if `path` must not be written. For a path through links, check both the given path and
    /// the real path.
    pub(super) fn check(&self, path: &RelPath) -> Result<(), ToolError> {
        // Ignore case: on some file systems, `.GIT` is the same directory.
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
