//! Which paths an agent may not change, and why. Asked by the tools before they write, and by the gate before it judges.

use super::pattern::{PatternError, Patterns};
use serde::{Deserialize, Serialize};

/// A protected path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProtectedRule {
    /// What is protected, as a glob; a directory means everything in it. It covers paths that do not exist yet, too.
    pub pattern: String,
    /// Why, as the model is told: "it defines the gate".
    pub why: String,
}

/// The rules of one run, compiled.
#[derive(Debug, Clone)]
pub struct Protection {
    rules: Vec<(Patterns, ProtectedRule)>,
    open: Patterns,
}

impl Protection {
    /// Compiles rules; `allow_edit` opens paths again.
    ///
    /// # Errors
    /// The first pattern that is none.
    pub fn new(rules: impl IntoIterator<Item = ProtectedRule>, allow_edit: &[String]) -> Result<Self, PatternError> {
        let compiled = |rule: ProtectedRule| Ok((Patterns::trees([rule.pattern.as_str()])?, rule));
        Ok(Self {
            rules: rules.into_iter().map(compiled).collect::<Result<_, PatternError>>()?,
            open: Patterns::trees(allow_edit.iter().map(String::as_str))?,
        })
    }

    /// The rules, as they were given.
    pub fn rules(&self) -> impl Iterator<Item = &ProtectedRule> {
        self.rules.iter().map(|(_, rule)| rule)
    }

    /// The rule that protects a path, if one does. The path is relative to the workspace, with `/` between its parts.
    pub fn rule(&self, path: &str) -> Option<&ProtectedRule> {
        if self.open.fit(path) {
            return None;
        }
        self.rules.iter().find(|(patterns, _)| patterns.fit(path)).map(|(_, rule)| rule)
    }
}
