//! Paths that an agent may not change, with the reasons. Tools ask before they write, and the gate
//! asks before it judges.

use crate::pattern::{PatternError, Patterns};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

/// A protected path.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ProtectedRule {
    /// The protected paths, as a glob. A directory includes everything in it. Paths that do not
    /// exist yet are protected too.
    pub pattern: String,
    /// The reason that the model sees, for example "it defines the gate".
    pub why: String,
}

/// The compiled rules of one run. A lookup among tens of thousands of plain paths (`/tests/a.rs`)
/// costs no more than among one. Concurrent runs with equal rules share the compiled rules.
#[derive(Debug, Clone)]
pub struct Protection {
    parts: Arc<ProtectionParts>,
    compiled: Arc<Compiled>,
}

/// The input of a protection. Protections with equal input share one instance while it exists.
#[derive(Debug)]
struct ProtectionParts {
    rules: Vec<ProtectedRule>,
    allow_edit: Vec<String>,
    compiled: OnceLock<Result<Arc<Compiled>, PatternError>>,
}

#[derive(Debug)]
struct Compiled {
    /// The number of the rule for each plain path.
    plain: HashMap<String, usize>,
    /// The number of the rule for each plain name, which matches at any depth.
    names: HashMap<String, usize>,
    globs: Patterns,
    /// The numbers of the rules that are globs, in the order of `globs`.
    of_globs: Vec<usize>,
    open: Patterns,
}

/// The existing inputs, by their hash.
static PRESENT: Mutex<BTreeMap<u64, Weak<ProtectionParts>>> = Mutex::new(BTreeMap::new());

impl Protection {
    /// Compiles rules; `allow_edit` exempts paths from them.
    ///
    /// # Errors
    /// The first invalid pattern.
    pub fn new(rules: impl IntoIterator<Item = ProtectedRule>, allow_edit: &[String]) -> Result<Self, PatternError> {
        let parts = ProtectionParts::once(rules.into_iter().collect(), allow_edit);
        let compiled =
            parts.compiled.get_or_init(|| Compiled::new(&parts.rules, &parts.allow_edit).map(Arc::new)).clone()?;
        Ok(Self { parts, compiled })
    }

    /// The rules in their original form.
    pub fn rules(&self) -> impl Iterator<Item = &ProtectedRule> {
        self.parts.rules.iter()
    }

    /// Returns the rule that protects a path. The path is relative to the workspace, with `/`
    /// between its parts.
    pub fn rule(&self, path: &str) -> Option<&ProtectedRule> {
        if self.compiled.open.fit(path) { None } else { self.closed_rule(path) }
    }

    /// Returns the first rule that matches a path, even if `allow_edit` exempts the path.
    pub fn closed_rule(&self, path: &str) -> Option<&ProtectedRule> {
        let Compiled { plain, names, globs, of_globs, .. } = &*self.compiled;
        let above = path.match_indices('/').map(|(end, _)| &path[..end]).chain([path]);
        let plain = above.filter_map(|path| plain.get(path)).min().copied();
        let name = path.split('/').filter_map(|name| names.get(name)).min().copied();
        let glob = globs.first(path).map(|tree| of_globs[tree]);
        plain.into_iter().chain(name).chain(glob).min().map(|number| &self.parts.rules[number])
    }
}

impl ProtectionParts {
    /// Returns the shared instance with this input, or makes it.
    fn once(rules: Vec<ProtectedRule>, allow_edit: &[String]) -> Arc<Self> {
        let mut number = DefaultHasher::new();
        (&rules, allow_edit).hash(&mut number);
        let number = number.finish();
        let mut present = PRESENT.lock().unwrap_or_else(PoisonError::into_inner);
        let known = present.get(&number).and_then(Weak::upgrade);
        if let Some(known) = known.filter(|known| known.rules == rules && known.allow_edit == allow_edit) {
            return known;
        }
        present.retain(|_, parts| parts.strong_count() > 0);
        let parts = Arc::new(Self { rules, allow_edit: allow_edit.to_vec(), compiled: OnceLock::new() });
        present.insert(number, Arc::downgrade(&parts));
        parts
    }
}

impl Compiled {
    fn new(rules: &[ProtectedRule], allow_edit: &[String]) -> Result<Self, PatternError> {
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
        Ok(Self { plain, names, globs, of_globs, open })
    }
}

/// Returns the path of a pattern that is a plain path from the root.
fn plain_path(pattern: &str) -> Option<&str> {
    let path = pattern.strip_prefix('/')?.trim_end_matches('/');
    path.split('/').all(is_name).then_some(path)
}

/// Returns whether a text is a single name without glob characters.
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
        for (path, reported) in [
            ("a/b", Some("/a/b")),
            ("a/b/c.ini", Some("/a/b")),
            ("a/x.ini", Some("*.ini")),
            ("a/x", Some("/a")),
            ("c1/x", Some("/c[12]")),
            ("x/conf/y", Some("conf")),
            ("a/b/open", None),
            ("ab", None),
        ] {
            assert_eq!(protection.rule(path).map(|rule| rule.why.as_str()), reported, "{path}");
        }
        assert_eq!(protection.closed_rule("a/b/open").map(|rule| rule.why.as_str()), Some("/a/b"));
    }
    #[test]
    fn the_same_rules_are_compiled_once_as_long_as_somebody_has_them() {
        let new = |pattern: &str, open: &str| Protection::new([rule(pattern)], &[open.into()]).unwrap();
        let first = new("only-here/*.lock", "a");
        assert!(Arc::ptr_eq(&first.compiled, &new("only-here/*.lock", "a").compiled));
        for (pattern, open) in [("only-here/*.lock", "b"), ("only-here/*.lack", "a")] {
            assert!(!Arc::ptr_eq(&first.compiled, &new(pattern, open).compiled), "{pattern} {open}");
        }
        let parts = Arc::downgrade(&first.parts);
        drop(first);
        assert!(parts.upgrade().is_none(), "no owner is left");
        let wrong = || Protection::new([rule("only-here/{")], &[]).unwrap_err();
        assert_eq!(wrong(), wrong());
    }
}
