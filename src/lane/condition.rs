//! Conditions of steps: `VAR`, `VAR=value`, and both with a `!` before them.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use std::collections::BTreeMap;
use std::fmt;

/// A condition on a variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    /// True if the condition is negated.
    negated: bool,
    variable: String,
    /// The required value, which may be empty. `None` requires any value that is not empty.
    value: Option<String>,
}

impl Condition {
    /// Parses conditions.
    ///
    /// # Errors
    ///
    /// The first invalid condition, with the reason.
    pub(super) fn parse_all<'t>(parts: impl IntoIterator<Item = &'t str>) -> Result<Vec<Self>, String> {
        parts.into_iter().map(|part| Self::parse(part.trim())).collect()
    }

    fn parse(text: &str) -> Result<Self, String> {
        let (negated, rest) = text.strip_prefix('!').map_or((false, text), |rest| (true, rest.trim_start()));
        let (variable, value) = match rest.split_once('=') {
            Some((variable, value)) => (variable.trim(), Some(value.trim().to_owned())),
            None => (rest, None),
        };
        if !is_variable(variable) {
            return Err(format!("`{text}` is no condition"));
        }
        Ok(Self { negated, variable: variable.to_owned(), value })
    }

    /// Returns true if the condition holds. `VAR` requires a variable that is set and not empty,
    /// `VAR=value` a variable with exactly this value. The first source that has the variable
    /// counts.
    pub fn holds(&self, sources: &[&BTreeMap<String, String>]) -> bool {
        let is = sources.iter().find_map(|source| source.get(&self.variable));
        let holds = self.value.as_ref().map_or(is.is_some_and(|is| !is.is_empty()), |value| is == Some(value));
        holds != self.negated
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.negated { "!" } else { "" };
        write!(f, "{sign}{}", self.variable)?;
        self.value.as_ref().map_or(Ok(()), |value| write!(f, "={value}"))
    }
}

impl Serialize for Condition {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Condition {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::parse(&String::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

/// Returns true if a text can name an environment variable.
pub(super) fn is_variable(name: &str) -> bool {
    let plain = name.chars().all(|char| char.is_ascii_alphanumeric() || char == '_');
    plain && name.starts_with(|char: char| !char.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_hold_as_their_forms_say_and_all_must() {
        let variables = [("CI", "1"), ("EMPTY", "")].map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        for (text, holds) in [
            ("CI", true),
            ("!CI", false),
            ("CI=1", true),
            ("CI=2", false),
            ("!CI=2", true),
            ("! CI = 1", false),
            ("EMPTY", false),
            ("!EMPTY", true),
            ("NONE", false),
            ("NONE=", false),
            ("!NONE=", true),
            ("!NONE=1", true),
            ("EMPTY=", true),
            ("!EMPTY=", false),
            ("CI=", false),
            ("CI, !NONE", true),
            ("CI,NONE", false),
        ] {
            let conditions = Condition::parse_all(text.split(',')).unwrap();
            assert_eq!(conditions.iter().all(|condition| condition.holds(&[&variables])), holds, "{text}");
        }
    }

    #[test]
    fn what_is_no_condition_is_refused() {
        for text in ["", "!", "=x", "1A", "A,,B", "A B", "$CI"] {
            assert!(Condition::parse_all(text.split(',')).is_err(), "{text}");
        }
    }
}
