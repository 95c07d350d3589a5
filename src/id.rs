//! Names for runs, calls and trees: newtypes, so that one is never taken for another.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The name of one run: a UUID version 7 in its usual text form, so names sort by the time they were made.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
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

impl CallId {
    /// Calls of one agent of a run, of which those of a run with sub-agents are told apart by their numbers.
    pub const OF_ONE_AGENT: u64 = 100_000_000;

    /// The agent whose call it is: 0 for the run itself.
    pub fn agent(self) -> u64 {
        self.0 / Self::OF_ONE_AGENT
    }
}

impl fmt::Display for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// The name of a state of files: git's id of a tree, 40 lower-case hexadecimal digits, or 64 where git has SHA-256.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
#[serde(try_from = "String", into = "String")]
pub struct TreeId(String);

/// A text that is no git id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no git id: 40 or 64 lower-case hexadecimal digits are")]
pub struct NoTreeId(String);

impl TreeId {
    /// Reads the digits.
    ///
    /// # Errors
    /// [`NoTreeId`] for anything else, upper case and blanks included.
    pub fn parse(text: &str) -> Result<Self, NoTreeId> {
        let is_id =
            [40, 64].contains(&text.len()) && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        if is_id { Ok(Self(text.to_owned())) } else { Err(NoTreeId(text.chars().take(64).collect())) }
    }

    /// The tree without any file.
    pub fn empty() -> Self {
        Self("4b825dc642cb6eb9a060e54bf8d69288fbee4904".into())
    }

    /// The digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for TreeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for TreeId {
    type Error = NoTreeId;

    fn try_from(text: String) -> Result<Self, NoTreeId> {
        Self::parse(&text)
    }
}

impl From<TreeId> for String {
    fn from(tree: TreeId) -> Self {
        tree.0
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

    #[test]
    fn a_tree_is_named_by_its_digits_and_by_nothing_else() {
        let id = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";
        let tree = TreeId::parse(id).unwrap();
        assert_eq!(serde_json::to_string(&tree).unwrap(), format!("\"{id}\""));
        assert_eq!(serde_json::from_str::<TreeId>(&format!("\"{id}\"")).unwrap(), tree);
        assert_eq!(TreeId::parse(&"0a".repeat(32)).map(String::from), Ok("0a".repeat(32)));
        for wrong in ["", "HEAD", "--all", &id[1..], &id.to_uppercase(), &format!("{id} "), &format!("{id}\n")] {
            assert!(TreeId::parse(wrong).is_err(), "{wrong}");
            assert!(serde_json::from_value::<TreeId>(wrong.into()).is_err(), "{wrong}");
        }
    }
}
