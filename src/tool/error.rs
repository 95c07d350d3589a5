//! Errors of tool calls. The messages are for the model and say what to do instead, where that is
//! known.

use crate::limits::MAX_NOTE;
use crate::pattern::PatternError;
use crate::store::StoreError;
use crate::workspace::jail::{JailError, RelPath};

/// A refusal or failure of one tool call.
#[derive(Debug, thiserror::Error)]
pub enum ToolError {
    /// No tool has this name.
    #[error("there is no tool `{name}`; there are {known}")]
    Unknown {
        /// The name in the call.
        name: String,
        /// The names of all tools.
        known: String,
    },
    /// The arguments do not match the schema.
    #[error("{tool}: {problem}; expected {expected}")]
    Arguments {
        /// The tool.
        tool: &'static str,
        /// The mismatch.
        problem: String,
        /// The arguments that the tool takes.
        expected: String,
    },
    /// The path or the file cannot be used.
    #[error(transparent)]
    Jail(#[from] JailError),
    /// The path belongs to git's own files.
    #[error("`{path}` belongs to git's own files, which tools do not change")]
    Git {
        /// The path.
        path: RelPath,
    },
    /// The path is protected.
    #[error("`{path}` is protected ({why}); do not change it, and solve the task in other files")]
    Protected {
        /// The path.
        path: RelPath,
        /// The reason that the rule gives.
        why: String,
    },
    /// The task lists the files that may change, and this path is not among them.
    #[error("`{path}` is not among the files that this task may change ({allowed})")]
    NotListed {
        /// The path.
        path: RelPath,
        /// The task's globs.
        allowed: String,
    },
    /// The file has changed since the model last read it.
    #[error("`{path}` changed since you last read it: read it again, then repeat your change")]
    Changed {
        /// The path.
        path: RelPath,
    },
    /// The file is not text.
    #[error("`{path}` is {kind} of {bytes} bytes, which can't be shown as text")]
    NotText {
        /// The path.
        path: String,
        /// The kind of file, with its article.
        kind: &'static str,
        /// The size.
        bytes: usize,
    },
    /// The text is not UTF-8.
    #[error("`{path}` is not UTF-8 text, so it can't be edited by text")]
    NotUtf8 {
        /// The path.
        path: RelPath,
    },
    /// The page starts after the last line.
    #[error("`{path}` has {lines} lines; line {offset} is past its end")]
    PastEnd {
        /// The path.
        path: String,
        /// The number of lines.
        lines: usize,
        /// The requested first line.
        offset: usize,
    },
    /// No result is stored under this number.
    #[error("there is no stored output `{path}`")]
    NoOutput {
        /// The requested path.
        path: String,
    },
    /// The edit would change nothing.
    #[error("`old` and `new` are the same: nothing to change")]
    SameText,
    /// The text to replace is empty.
    #[error("`old` is empty: give the text to replace, or use files-write")]
    EmptyOld,
    /// The text to replace is not in the file.
    #[error("`old` is not in `{path}`{nearest}")]
    NoMatch {
        /// The path.
        path: RelPath,
        /// The most similar text in the file, as the end of the message; empty if none is similar.
        nearest: String,
    },
    /// The text to replace occurs more than once.
    #[error(
        "`old` is in `{path}` {count} times (lines {lines}): give more of the text around it, or set `replace_all`"
    )]
    ManyMatches {
        /// The path.
        path: RelPath,
        /// The number of occurrences.
        count: usize,
        /// The line numbers of the first occurrences.
        lines: String,
    },
    /// A glob or regular expression is invalid.
    #[error(transparent)]
    Pattern(#[from] PatternError),
    /// No log of the gate matches the call, or the log cannot be read.
    #[error("{problem}")]
    NoLog {
        /// The whole message. If no log matches, it lists the logs that exist.
        problem: String,
    },
    /// The run has no memory.
    #[error("this run has no memory")]
    NoMemory,
    /// The note is empty.
    #[error("`text` is empty: write what to remember")]
    EmptyNote,
    /// The note is too long.
    #[error("`text` has {bytes} bytes, and a note has at most {MAX_NOTE}: shorten the note")]
    LongNote {
        /// The size of the note after cleaning and masking, in bytes.
        bytes: usize,
    },
    /// The memory cannot be used.
    #[error("the memory cannot be used: {0}")]
    Memory(#[from] StoreError),
    /// The run is being cancelled.
    #[error("stopped: the run was cancelled")]
    Stopped,
    /// The tool panicked: a bug in fledge.
    #[error("internal error in {tool}: {problem}")]
    Panicked {
        /// The tool.
        tool: String,
        /// The message of the panic.
        problem: String,
    },
}

impl ToolError {
    /// Returns whether the call may succeed if it is repeated unchanged.
    pub(super) fn is_transient(&self) -> bool {
        match self {
            Self::Jail(error) => error.is_transient(),
            Self::Unknown { .. }
            | Self::Arguments { .. }
            | Self::Git { .. }
            | Self::Protected { .. }
            | Self::NotListed { .. }
            | Self::Changed { .. }
            | Self::NotText { .. }
            | Self::NotUtf8 { .. }
            | Self::PastEnd { .. }
            | Self::NoOutput { .. }
            | Self::SameText
            | Self::EmptyOld
            | Self::NoMatch { .. }
            | Self::ManyMatches { .. }
            | Self::Pattern { .. }
            | Self::NoLog { .. }
            | Self::NoMemory
            | Self::EmptyNote
            | Self::LongNote { .. }
            | Self::Memory(_)
            | Self::Stopped
            | Self::Panicked { .. } => false,
        }
    }
}
