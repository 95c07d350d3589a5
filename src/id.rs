//! Names for runs and calls: newtypes, so that one is never taken for another.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The name of one run: a UUID version 7 in its usual text form, so names sort by the time they were made.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RunId(String);

impl RunId {
    /// Takes a text as a run's name; the driver makes it from a fresh UUID.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The number of one effect of a run, counted from 1. Every action that will be answered carries one, and the answer brings
/// it back, so an answer that nobody waits for any more is recognised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct CallId(pub u64);

impl fmt::Display for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_json_a_name_is_a_text_and_a_call_a_number() {
        let both = (RunId::new("0198-a"), CallId(7));
        let json = serde_json::to_string(&both).unwrap();
        assert_eq!(json, r#"["0198-a",7]"#);
        assert_eq!(serde_json::from_str::<(RunId, CallId)>(&json).unwrap(), both);
    }

    #[test]
    fn names_sort_as_their_texts_do() {
        let early = "01a2009a-05a0-7290-8888-e8352d0a0fd0";
        let late = "01a2009a-05a1-7000-8000-000000000000";
        assert!(RunId::new(early) < RunId::new(late));
    }
}
