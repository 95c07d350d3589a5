//! Globs over workspace paths, in the one dialect of all tools and rules: `*` stays within a name, `**` crosses directories, a
//! pattern without `/` fits names at any depth, and one that names a directory fits everything in it.

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

/// A text that is no pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{pattern}` is not a pattern: {problem}")]
pub struct PatternError {
    /// The text.
    pub pattern: String,
    /// What is wrong with it.
    pub problem: String,
}

/// A set of globs.
#[derive(Debug, Clone)]
pub struct Patterns(GlobSet);

impl Patterns {
    /// Compiles patterns that mean a directory's content too when they name one.
    ///
    /// # Errors
    /// The first that is none.
    pub fn trees<'p>(patterns: impl IntoIterator<Item = &'p str>) -> Result<Self, PatternError> {
        let mut set = GlobSetBuilder::new();
        for pattern in patterns {
            let anchored = anchored(pattern)?;
            set.add(glob(&anchored)?);
            set.add(glob(&format!("{}/**", anchored.trim_end_matches('/')))?);
        }
        build(set)
    }

    /// Compiles one pattern that means exactly the files it names.
    ///
    /// # Errors
    /// When it is none.
    pub fn files(pattern: &str) -> Result<Self, PatternError> {
        let mut set = GlobSetBuilder::new();
        set.add(glob(&anchored(pattern)?)?);
        build(set)
    }

    /// The first of the trees that a path is in, by its number.
    pub fn first(&self, path: &str) -> Option<usize> {
        // Most paths are in none, which is found out in half the time.
        let fits = self.fit(path);
        fits.then(|| self.0.matches(path)).and_then(|globs| globs.first().map(|glob| glob / 2)) // each tree is two globs
    }

    /// Whether a path relative to where the patterns begin is meant.
    pub fn fit(&self, path: &str) -> bool {
        self.0.is_match(path)
    }
}

/// Whether a pattern asks for hidden files by name.
pub fn names_hidden(pattern: &str) -> bool {
    pattern.split('/').any(|name| name.starts_with('.') && name != ".")
}

fn anchored(pattern: &str) -> Result<String, PatternError> {
    let plain = pattern.strip_prefix("./").unwrap_or(pattern);
    if plain.is_empty() {
        return Err(PatternError { pattern: pattern.into(), problem: "it is empty".into() });
    }
    if plain.split('/').any(|name| name == "..") {
        return Err(PatternError { pattern: pattern.into(), problem: "`..` leads outside".into() });
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
        for (pattern, said) in [
            ("a{b", "`**/a{b` is not a pattern: unclosed alternate group; missing '}' (maybe escape '{' with '[{]'?)"),
            ("../*", "`../*` is not a pattern: `..` leads outside"),
            ("", "`` is not a pattern: it is empty"),
        ] {
            assert_eq!(Patterns::files(pattern).unwrap_err().to_string(), said);
        }
    }
}
