//! Which paths an agent may not change, and why. Asked by the tools before they write, and by the gate before it judges.

use super::pattern::{PatternError, Patterns};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// A protected path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProtectedRule {
    /// What is protected, as a glob; a directory means everything in it. It covers paths that do not exist yet, too.
    pub pattern: String,
    /// Why, as the model is told: "it defines the gate".
    pub why: String,
}

/// The rules of one run, compiled. Tens of thousands of plain paths from the root (`/tests/a.rs`) cost no more than one.
#[derive(Debug, Clone)]
pub struct Protection {
    rules: Vec<ProtectedRule>,
    /// The rules that are plain paths, by these.
    plain: HashMap<String, usize>,
    /// The rules that are plain names, at any depth.
    names: HashMap<String, usize>,
    globs: Patterns,
    /// The rules that are globs, in the order of these.
    of_globs: Vec<usize>,
    open: Patterns,
}

impl Protection {
    /// Compiles rules; `allow_edit` opens paths again.
    ///
    /// # Errors
    /// The first pattern that is none.
    pub fn new(rules: impl IntoIterator<Item = ProtectedRule>, allow_edit: &[String]) -> Result<Self, PatternError> {
        let rules: Vec<ProtectedRule> = rules.into_iter().collect();
        let (mut plain, mut names, mut of_globs) = (HashMap::new(), HashMap::new(), Vec::new());
        for (number, rule) in rules.iter().enumerate() {
            if let Some(path) = plain_path(&rule.pattern) {
                plain.entry(path.to_owned()).or_insert(number);
            } else if is_name(&rule.pattern) {
                names.entry(rule.pattern.clone()).or_insert(number);
            } else {
                of_globs.push(number);
            }
        }
        let globs = Patterns::trees(of_globs.iter().map(|number| rules[*number].pattern.as_str()))?;
        let open = Patterns::trees(allow_edit.iter().map(String::as_str))?;
        Ok(Self { rules, plain, names, globs, of_globs, open })
    }

    /// The rules, as they were given.
    pub fn rules(&self) -> impl Iterator<Item = &ProtectedRule> {
        self.rules.iter()
    }

    /// The rule that protects a path, if one does. The path is relative to the workspace, with `/` between its parts.
    pub fn rule(&self, path: &str) -> Option<&ProtectedRule> {
        if self.open.fit(path) { None } else { self.closed_rule(path) }
    }

    /// The first rule that would protect a path if nothing was opened.
    pub fn closed_rule(&self, path: &str) -> Option<&ProtectedRule> {
        let above = path.match_indices('/').map(|(end, _)| &path[..end]).chain([path]);
        let plain = above.filter_map(|path| self.plain.get(path)).min().copied();
        let name = path.split('/').filter_map(|name| self.names.get(name)).min().copied();
        let glob = self.globs.first(path).map(|tree| self.of_globs[tree]);
        plain.into_iter().chain(name).chain(glob).min().map(|number| &self.rules[number])
    }
}

/// The path that a pattern means, when it is a plain one from the root.
fn plain_path(pattern: &str) -> Option<&str> {
    let path = pattern.strip_prefix('/')?.trim_end_matches('/');
    path.split('/').all(is_name).then_some(path)
}

/// Whether a text means itself and is one name.
fn is_name(text: &str) -> bool {
    !matches!(text, "" | "." | "..") && !text.contains(['/', '*', '?', '[', ']', '{', '}', '\\'])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(pattern: &str) -> ProtectedRule {
        ProtectedRule { pattern: pattern.into(), why: pattern.into() }
    }

    #[test]
    fn the_first_rule_that_fits_is_told_plain_or_not() {
        let rules = ["/a/b", "*.ini", "/a", "/c[12]", "conf"].map(rule);
        let protection = Protection::new(rules, &["/a/b/open".into()]).unwrap();
        for (path, told) in [
            ("a/b", Some("/a/b")),
            ("a/b/c.ini", Some("/a/b")),
            ("a/x.ini", Some("*.ini")),
            ("a/x", Some("/a")),
            ("c1/x", Some("/c[12]")),
            ("x/conf/y", Some("conf")),
            ("a/b/open", None),
            ("ab", None),
        ] {
            assert_eq!(protection.rule(path).map(|rule| rule.why.as_str()), told, "{path}");
        }
        assert_eq!(protection.closed_rule("a/b/open").map(|rule| rule.why.as_str()), Some("/a/b"));
    }
}
