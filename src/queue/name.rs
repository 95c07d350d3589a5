//! Names of jobs, batches, pools and workers. They are separate types, so that they cannot be
//! confused. Their characters are those that every kind of queue can store.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The longest name, in bytes.
const LONGEST: usize = 64;

/// A text that is not a valid name in a queue.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid name `{0}`: use 1 to 64 ASCII letters, digits, `_` or `-`")]
pub struct NameError(String);

macro_rules! names {
    ($($(#[$says:meta])* $name:ident)*) => {$(
        $(#[$says])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// Parses a name.
            ///
            /// # Errors
            /// [`NameError`] if the name is empty, too long, or has characters other than ASCII
            /// letters, digits, `_` and `-`.
            pub fn parse(text: impl Into<String>) -> Result<Self, NameError> {
                checked(text.into()).map(Self)
            }

            /// Returns the name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl TryFrom<String> for $name {
            type Error = NameError;

            fn try_from(text: String) -> Result<Self, NameError> {
                Self::parse(text)
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> Self {
                name.0
            }
        }
    )*};
}

names! {
    /// The id of a job: a digest of everything that defines its work, so that equal work has equal
    /// ids. No work is done twice under one id.
    JobId
    /// The id of jobs that were submitted together, and that can be cancelled and listed together.
    BatchId
    /// The name of a pool: jobs of a kind that are claimed together and share a limit, such as
    /// those of a provider or for a kind of machine.
    PoolName
    /// The id of a worker: a process or thread that claims jobs, distinct from all others.
    WorkerId
}

fn checked(text: String) -> Result<String, NameError> {
    let is_name = (1..=LONGEST).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    if is_name { Ok(text) } else { Err(NameError(text.chars().take(LONGEST).collect())) }
}
