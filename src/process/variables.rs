//! The whole environment of a program, made once and shared by all programs with the same
//! environment.

use std::collections::BTreeMap;
use std::ffi::{CStr, CString};
use std::io;
use std::sync::Arc;

/// Environment variables with their values, cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variables {
    /// Each entry as `NAME=value`. `None` if an entry contains a NUL, which no program can receive.
    entries: Option<Arc<[CString]>>,
}

impl Variables {
    /// Makes an environment of these variables alone. If a name appears twice, its later value
    /// counts.
    pub fn new(pairs: impl IntoIterator<Item = (String, String)>) -> Self {
        let pairs: BTreeMap<String, String> = pairs.into_iter().collect();
        let entries = pairs.into_iter().map(|(name, value)| CString::new(format!("{name}={value}")));
        Self { entries: entries.collect::<Result<_, _>>().ok() }
    }

    /// Returns this environment with other variables added, which replace those with the same
    /// names.
    pub fn with<'a>(&self, others: impl IntoIterator<Item = (&'a String, &'a String)>) -> Self {
        let mut others = others.into_iter().peekable();
        if others.peek().is_none() || self.entries.is_none() {
            return self.clone();
        }
        let own = self.pairs().map(|(name, value)| (name.to_owned(), value.to_owned()));
        Self::new(own.chain(others.map(|(name, value)| (name.clone(), value.clone()))))
    }

    /// Returns the value of a variable.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.pairs().find(|(own, _)| *own == name).map(|(_, value)| value)
    }

    /// Iterates over the names and values.
    pub fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        let entries = self.entries.iter().flat_map(|entries| entries.iter());
        entries.filter_map(|entry| entry.to_str().ok()?.split_once('='))
    }

    /// Returns the entries in the form in which a program receives them.
    ///
    /// # Errors
    /// `InvalidInput` if an entry contains a NUL.
    pub(super) fn entries(&self) -> io::Result<impl Iterator<Item = &CStr>> {
        let entries = self.entries.as_ref().ok_or(io::Error::from(io::ErrorKind::InvalidInput))?;
        Ok(entries.iter().map(CString::as_c_str))
    }
}

impl From<Vec<(String, String)>> for Variables {
    fn from(pairs: Vec<(String, String)>) -> Self {
        Self::new(pairs)
    }
}

/// Returns whether a variable's name marks a secret: by a word anywhere, or by a part between
/// underscores.
pub fn is_secret(name: &str) -> bool {
    #[rustfmt::skip]
    const WORDS: [&str; 9] = ["KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL", "WEBHOOK", "CONNECTION_STRING"];
    const PARTS: [&str; 9] = ["PAT", "PASS", "PWD", "AUTH", "COOKIE", "COOKIES", "DSN", "CREDS", "JWT"];
    let name = name.to_ascii_uppercase();
    if matches!(name.as_str(), "PWD" | "OLDPWD") {
        return false;
    }
    WORDS.iter().any(|word| name.contains(word)) || name.split('_').any(|part| PARTS.contains(&part))
}

/// Returns whether a value contains `scheme://user:password@host` or `scheme://user@host`.
pub fn has_password(value: &str) -> bool {
    value
        .split("://")
        .skip(1)
        .any(|rest| rest.split(['/', '?', '#', ',', ' ']).next().is_some_and(|host| host.contains('@')))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(name: &str, value: &str) -> (String, String) {
        (name.into(), value.into())
    }

    #[test]
    fn of_two_values_the_later_one_counts_and_others_win() {
        let base = Variables::new([pair("B", "2"), pair("A", "1"), pair("A", "x=y"), pair("AB", "")]);
        let more = base.with([(&"B".to_owned(), &"3".to_owned())]);
        assert_eq!(more, Variables::new([pair("A", "x=y"), pair("AB", ""), pair("B", "3")]));
        assert_eq!((base.get("B"), more.get("B"), more.get("C")), (Some("2"), Some("3"), None));
        assert_eq!(base.with([]), base);
        let entries: Vec<&CStr> = more.entries().unwrap().collect();
        assert_eq!(entries, [c"A=x=y", c"AB=", c"B=3"]);
    }

    #[test]
    fn what_no_program_can_be_given_is_refused() {
        let unsound = Variables::new([pair("A", "a\0b")]);
        assert_eq!(unsound.entries().err().map(|error| error.kind()), Some(io::ErrorKind::InvalidInput));
        assert_eq!(unsound.with([(&"A".to_owned(), &"1".to_owned())]), unsound);
    }
}
