//! The names of jobs, batches, pools and workers: newtypes, so that one is never taken for another, of signs that every queue can keep.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The longest name, in bytes.
const LONGEST: usize = 64;

/// A text that cannot be a name in a queue.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no name for a queue: 1 to 64 of the letters A to Z and a to z, digits, `_` and `-` are")]
pub struct NameFault(String);

macro_rules! names {
    ($($(#[$says:meta])* $name:ident)*) => {$(
        $(#[$says])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// Reads a name.
            ///
            /// # Errors
            /// [`NameFault`] for one that is empty, too long, or has other signs than letters and digits of ASCII, `_` and `-`.
            pub fn parse(text: impl Into<String>) -> Result<Self, NameFault> {
                checked(text.into()).map(Self)
            }

            /// The name as text.
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
            type Error = NameFault;

            fn try_from(text: String) -> Result<Self, NameFault> {
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
    /// The name of a job, the same for the same work: a digest of all that it is made of. Nothing is done twice under one name.
    JobId
    /// The name of the jobs that were submitted together, and can be cancelled and listed so.
    BatchId
    /// What jobs of a kind are claimed from and limited by: a provider, or a kind of machine.
    PoolName
    /// Who claims jobs: one of its processes or threads, told apart from all others.
    WorkerId
}

fn checked(text: String) -> Result<String, NameFault> {
    let is_name = (1..=LONGEST).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    if is_name { Ok(text) } else { Err(NameFault(text.chars().take(LONGEST).collect())) }
}
