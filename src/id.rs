//! Ids of runs, calls and trees. They are newtypes, so that they cannot be mixed up.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The id of a run: a UUID version 7 as text, so ids sort by creation time.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct RunId(String);

impl RunId {
    /// Wraps a text as a run id. The driver passes a new UUID.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Returns the id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The number of one effect of a run, counted from 1.
///
/// Every action that expects an answer carries a number, and the answer repeats it. So the machine
/// recognizes answers for which it no longer waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct CallId(pub u64);

impl CallId {
    /// The size of each agent's range of call numbers. The ranges tell the calls of agents apart.
    pub const OF_ONE_AGENT: u64 = 100_000_000;

    /// Returns the number of the agent that made the call: 0 for the run itself.
    pub fn agent(self) -> u64 {
        self.0 / Self::OF_ONE_AGENT
    }
}

impl fmt::Display for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// The id of a state of files: a git tree id of 40 lower-case hexadecimal digits, or 64 if git uses
/// SHA-256.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
#[serde(try_from = "String", into = "String")]
pub struct TreeId(String);

/// A text that is not a git tree id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid git id `{0}`: expected 40 or 64 lower-case hex digits")]
pub struct NoTreeId(String);

impl TreeId {
    /// Parses a tree id.
    ///
    /// # Errors
    /// [`NoTreeId`] for any other text, including one with upper-case digits or blanks.
    pub fn parse(text: &str) -> Result<Self, NoTreeId> {
        let is_id =
            [40, 64].contains(&text.len()) && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        if is_id { Ok(Self(text.to_owned())) } else { Err(NoTreeId(text.chars().take(64).collect())) }
    }

    /// Returns the id of the tree without files.
    pub fn empty() -> Self {
        Self("4b825dc642cb6eb9a060e54bf8d69288fbee4904".into())
    }

    /// Returns the digits.
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
