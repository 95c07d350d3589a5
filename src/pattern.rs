//! Globs over workspace paths, in the dialect that all tools and rules use. `*` stays within a name
//! and `**` crosses directories. A pattern without `/` matches names at any depth. A tree pattern
//! that names a directory also matches everything in it.

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

/// An invalid pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid pattern `{pattern}`: {problem}")]
pub struct PatternError {
    /// The pattern.
    pub pattern: String,
    /// The problem with the pattern.
    pub problem: String,
}

/// A set of globs.
#[derive(Debug, Clone)]
pub struct Patterns(GlobSet);

impl Patterns {
    /// Compiles patterns. A pattern that matches a directory also matches everything in it.
    ///
    /// # Errors
    /// The first invalid pattern.
    pub fn trees<'p>(patterns: impl IntoIterator<Item = &'p str>) -> Result<Self, PatternError> {
        let mut set = GlobSetBuilder::new();
        for pattern in patterns {
            let anchored = anchored(pattern)?;
            set.add(glob(&anchored)?);
            set.add(glob(&format!("{}/**", anchored.trim_end_matches('/')))?);
        }
        build(set)
    }

    /// Compiles one pattern that matches only the files it names.
    ///
    /// # Errors
    /// If the pattern is invalid.
    pub fn files(pattern: &str) -> Result<Self, PatternError> {
        let mut set = GlobSetBuilder::new();
        set.add(glob(&anchored(pattern)?)?);
        build(set)
    }

    /// Returns the index of the first tree pattern that matches a path.
    pub fn first(&self, path: &str) -> Option<usize> {
        // Most paths match no pattern, and `is_match` takes half the time of `matches`.
        let fits = self.fit(path);
        fits.then(|| self.0.matches(path)).and_then(|globs| globs.first().map(|glob| glob / 2)) // each tree is two globs
    }

    /// Returns whether a pattern matches a path. The path is relative to the root of the patterns.
    pub fn fit(&self, path: &str) -> bool {
        self.0.is_match(path)
    }
}

/// Returns whether a pattern asks for hidden files by name.
pub fn names_hidden(pattern: &str) -> bool {
    pattern.split('/').any(|name| name.starts_with('.') && name != ".")
}

fn anchored(pattern: &str) -> Result<String, PatternError> {
    let plain = pattern.strip_prefix("./").unwrap_or(pattern);
    if plain.is_empty() {
        return Err(PatternError { pattern: pattern.into(), problem: "the pattern is empty".into() });
    }
    if plain.split('/').any(|name| name == "..") {
        return Err(PatternError { pattern: pattern.into(), problem: "`..` leads outside the workspace".into() });
    }
    Ok(match plain.strip_prefix('/') {
        Some(from_root) => from_root.into(),
        None if plain.trim_end_matches('/').contains('/') => plain.into(),
        None => format!("**/{plain}"),
    })
}

fn glob(pattern: &str) -> Result<globset::Glob, PatternError> {
    let glob = GlobBuilder::new(pattern).literal_separator(true).backslash_escape(true).empty_alternates(true).build();
    glob.map_err(|error| PatternError { pattern: pattern.into(), problem: error.kind().to_string() })
}

fn build(set: GlobSetBuilder) -> Result<Patterns, PatternError> {
    let set = set.build().map_err(|error| PatternError {
        pattern: error.glob().unwrap_or_default().into(),
        problem: error.kind().to_string(),
    })?;
    Ok(Patterns(set))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_fit_what_they_say() {
        for (pattern, path, fits) in [
            ("*.rs", "src/a/lib.rs", true),
            ("/*.rs", "src/lib.rs", false),
            ("src/*.rs", "src/lib.rs", true),
            ("src/*.rs", "src/a/lib.rs", false),
            ("src/**/*.rs", "src/lib.rs", true),
            ("**/*.{rs,toml}", "Cargo.toml", true),
            ("./src/**", "src/a/b", true),
        ] {
            assert_eq!(Patterns::files(pattern).unwrap().fit(path), fits, "{pattern} {path}");
        }
    }

    #[test]
    fn a_tree_pattern_means_what_is_in_the_directory_too() {
        let trees = Patterns::trees(["lanes", "scripts/ci/"]).unwrap();
        for (path, fits) in [("lanes/verify.yaml", true), ("lanes", true), ("scripts/ci/a/b", true), ("src/a", false)] {
            assert_eq!(trees.fit(path), fits, "{path}");
        }
    }

    #[test]
    fn a_bad_pattern_says_why() {
        for (pattern, output) in [
            ("a{b", "invalid pattern `**/a{b`: unclosed alternate group; missing '}' (maybe escape '{' with '[{]'?)"),
            ("../*", "invalid pattern `../*`: `..` leads outside the workspace"),
            ("", "invalid pattern ``: the pattern is empty"),
        ] {
            assert_eq!(Patterns::files(pattern).unwrap_err().to_string(), output);
        }
    }
}
