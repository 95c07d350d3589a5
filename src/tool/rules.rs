//! Which files tools may write: never git's own, no protected ones, and only those that the task names, if it names any.

use super::ToolError;
use super::host::ProtectedRule;
use super::pattern::Patterns;
use crate::workspace::jail::RelPath;

/// The rules of one run, compiled.
#[derive(Debug)]
pub(super) struct Rules {
    protected: Vec<(Patterns, String)>,
    allow_edit: Patterns,
    /// The task's globs, and the same as it wrote them.
    files: Option<(Patterns, String)>,
}

impl Rules {
    pub(super) fn new(protected: &[ProtectedRule], allow_edit: &[String], files: &[String]) -> Result<Self, ToolError> {
        let compiled = |rule: &ProtectedRule| Ok((Patterns::trees([rule.pattern.as_str()])?, rule.why.clone()));
        Ok(Self {
            protected: protected.iter().map(compiled).collect::<Result<_, ToolError>>()?,
            allow_edit: Patterns::trees(allow_edit.iter().map(String::as_str))?,
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
        let allowed = self.allow_edit.fit(path.as_str());
        if let Some((_, why)) = self.protected.iter().find(|(rule, _)| !allowed && rule.fit(path.as_str())) {
            return Err(ToolError::Protected { path: path.clone(), why: why.clone() });
        }
        match &self.files {
            Some((files, listed)) if !files.fit(path.as_str()) => {
                Err(ToolError::NotListed { path: path.clone(), allowed: listed.clone() })
            }
            Some(_) | None => Ok(()),
        }
    }
}
