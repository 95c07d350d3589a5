//! Normalized paths inside the workspace: relative, with `/` between names, without `.` and `..`.

use super::JailError;
use std::fmt;
use std::path::Path;

/// The longest path, in bytes (Linux's `PATH_MAX`).
const MAX_PATH: usize = 4096;
/// The longest name, in bytes (Linux's `NAME_MAX`).
const MAX_NAME: usize = 255;
/// The maximum number of names in a path. Each one is an open directory while the jail follows the
/// path.
pub(super) const MAX_DEPTH: usize = 128;

/// A checked path below the root. It says nothing about the file system: only
/// [`super::Jail::locate`] looks there.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RelPath(String);

impl RelPath {
    /// Checks a path that a model wrote. `..` is resolved by name, so `a/../b` is `b` even if `a`
    /// is a link. An absolute path must start with one of the `roots`.
    ///
    /// # Errors
    /// [`JailError`] if the path is empty, too long, has a control character, or leads outside.
    pub(super) fn parse(text: &str, roots: &[&Path]) -> Result<Self, JailError> {
        if text.is_empty() {
            return Err(JailError::Empty);
        }
        if text.chars().any(char::is_control) {
            return Err(JailError::ControlCharacter { path: text.into() });
        }
        if text.len() > MAX_PATH {
            return Err(JailError::TooLong { start: text.chars().take(40).collect() });
        }
        let outside = || JailError::Outside { path: text.into() };
        let mut path = Self::default();
        for name in relative(text, roots).ok_or_else(outside)?.split('/') {
            match name {
                "" | "." => {}
                ".." => path = path.parent().ok_or_else(outside)?,
                name if name.len() > MAX_NAME => {
                    return Err(JailError::TooLong { start: name.chars().take(40).collect() });
                }
                name => path = path.join(name),
            }
        }
        match path.names().count() {
            0..=MAX_DEPTH => Ok(path),
            _ => Err(JailError::TooLong { start: text.chars().take(40).collect() }),
        }
    }

    /// Returns this path with `name` appended.
    #[must_use]
    pub fn join(&self, name: &str) -> Self {
        if self.0.is_empty() { Self(name.into()) } else { Self(format!("{}/{name}", self.0)) }
    }

    /// Returns the directory of the path; `None` for the root.
    pub fn parent(&self) -> Option<Self> {
        match self.0.rsplit_once('/') {
            Some((parent, _)) => Some(Self(parent.into())),
            None if self.0.is_empty() => None,
            None => Some(Self::default()),
        }
    }

    /// Returns the names of the path, from the root on; none for the root itself.
    pub fn names(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.0.split('/').filter(|name| !name.is_empty())
    }

    /// Returns the path as text; empty for the root.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RelPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_empty() { "." } else { &self.0 })
    }
}

/// Returns `text` relative to the root; `None` if it starts elsewhere. `~` counts as elsewhere,
/// because a shell would expand it.
pub(super) fn relative<'t>(text: &'t str, roots: &[&Path]) -> Option<&'t str> {
    if text == "~" || text.starts_with("~/") {
        return None;
    }
    if !text.starts_with('/') {
        return Some(text);
    }
    roots.iter().find_map(|root| Path::new(text).strip_prefix(root).ok()).and_then(Path::to_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<String, String> {
        let path = RelPath::parse(text, &[Path::new("/srv/tree")]);
        path.map(|path| path.to_string()).map_err(|error| error.to_string())
    }

    #[test]
    fn a_path_has_one_spelling() {
        for (text, spelled) in [
            ("src/lib.rs", "src/lib.rs"),
            ("./src//lib.rs/", "src/lib.rs"),
            ("a/../src/./lib.rs", "src/lib.rs"),
            (".", "."),
            ("a/..", "."),
            ("/srv/tree", "."),
            ("/srv//tree/./src/lib.rs", "src/lib.rs"),
            ("...", "..."),
            ("a b/ü", "a b/ü"),
        ] {
            assert_eq!(parse(text), Ok(spelled.into()), "{text}");
        }
    }

    #[test]
    fn what_leads_outside_is_named_in_a_sentence() {
        for text in ["..", "../x", "a/../../x", "/etc/passwd", "/srv/treehouse", "/srv/tree/../x", "~/x", "/"] {
            assert_eq!(parse(text), Err(format!("`{text}` leads outside the workspace")));
        }
    }

    #[test]
    fn empty_overlong_and_unprintable_paths_are_refused() {
        assert_eq!(parse(""), Err("the path is empty (the workspace itself is `.`)".into()));
        assert_eq!(parse("a\0b"), Err(r#""a\0b" contains a control character"#.into()));
        assert_eq!(parse(&"x".repeat(256)), Err(format!("the path `{}…` is too long or too deep", "x".repeat(40))));
        assert!(parse(&"a/".repeat(200)).is_err());
        assert!(parse(&"abc/".repeat(2000)).is_err());
    }
}
