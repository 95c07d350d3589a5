//! Names of monitors, which are used in URLs.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The longest name, in bytes.
const LONGEST: usize = 64;

/// The name of a monitor: 1 to 64 lower-case letters, digits, `-` and `_`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Slug(String);

/// A text that is not a valid name of a monitor.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid monitor name `{0}`: use 1 to 64 lower-case letters, digits, `-` and `_`")]
pub struct SlugError(String);

impl Slug {
    /// Parses a name.
    ///
    /// # Errors
    /// [`SlugError`] if the name is empty, too long, or has other characters.
    pub fn parse(text: &str) -> Result<Self, SlugError> {
        let is_slug = (1..=LONGEST).contains(&text.len())
            && text
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'_'));
        if is_slug { Ok(Self(text.to_owned())) } else { Err(SlugError(text.chars().take(LONGEST).collect())) }
    }

    /// Derives the name from a file's path below `tasks/`: without the ending, in lower case, with
    /// `-` for other characters.
    ///
    /// # Errors
    /// [`SlugError`] if the path has no letter or digit, or is too long.
    pub fn of_path(path: &str) -> Result<Self, SlugError> {
        let stem = path.strip_suffix(".md").unwrap_or(path);
        let signs =
            stem.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c.to_ascii_lowercase() } else { '-' });
        let slug: String = signs.collect();
        if slug.bytes().any(|byte| byte.is_ascii_alphanumeric()) {
            Self::parse(&slug)
        } else {
            Err(SlugError(path.to_owned()))
        }
    }

    /// Returns the name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Slug {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for Slug {
    type Error = SlugError;

    fn try_from(text: String) -> Result<Self, SlugError> {
        Self::parse(&text)
    }
}

impl From<Slug> for String {
    fn from(slug: Slug) -> Self {
        slug.0
    }
}
