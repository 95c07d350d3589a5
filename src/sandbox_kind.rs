//! The kinds of sandboxes, and the choice between them. Pure: [`crate::process::sandbox`] builds
//! them.

use serde::{Deserialize, Serialize};

/// The mechanism of a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum SandboxKind {
    /// Its own namespaces and mounts, by bubblewrap.
    Bubblewrap,
    /// Landlock and seccomp: `.git` can be written, and attributes of files can be changed.
    Landlock,
    /// No sandbox.
    Off,
}

/// The requested sandbox.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SandboxChoice {
    /// The best sandbox that works. If none does, fledge refuses to run.
    #[default]
    Auto,
    /// Bubblewrap.
    Required,
    /// No sandbox.
    Off,
}

impl SandboxChoice {
    /// The names of all choices.
    pub const NAMES: [&str; 3] = ["auto", "required", "off"];

    /// Returns the choice with this name.
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "auto" => Some(Self::Auto),
            "required" => Some(Self::Required),
            "off" => Some(Self::Off),
            _ => None,
        }
    }
}

impl SandboxKind {
    /// Returns the name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bubblewrap => "bubblewrap",
            Self::Landlock => "landlock",
            Self::Off => "off",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_choice_is_parsed_from_its_name_and_from_no_other_text() {
        for name in SandboxChoice::NAMES {
            let choice = SandboxChoice::parse(name).unwrap();
            assert_eq!(serde_json::to_value(choice).unwrap(), name);
        }
        assert_eq!(["", "Auto", "on"].map(SandboxChoice::parse), [None; 3]);
    }
}
