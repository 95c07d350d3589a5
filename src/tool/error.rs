//! Why a tool could not do what was asked: sentences for the model, which say what to do instead where that is known.

use crate::limits::MAX_NOTE;
use crate::store::StoreError;
use crate::workspace::jail::{JailError, RelPath};
use crate::workspace::pattern::PatternError;

/// A refusal or failure of one tool call.
#[derive(Debug, thiserror::Error)]
pub enum ToolError {
    /// No such tool.
    #[error("there is no tool `{name}`; there are {known}")]
    Unknown {
        /// The name asked for.
        name: String,
        /// Those there are.
        known: String,
    },
    /// The arguments don't fit.
    #[error("{tool}: {problem}; it takes {expected}")]
    Arguments {
        /// The tool.
        tool: &'static str,
        /// What is wrong.
        problem: String,
        /// What would be right.
        expected: String,
    },
    /// The path or the file.
    #[error(transparent)]
    Jail(#[from] JailError),
    /// Git's own files.
    #[error("`{path}` belongs to git's own files, which tools do not change")]
    Git {
        /// The path.
        path: RelPath,
    },
    /// A protected path.
    #[error("`{path}` is protected ({why}); leave it as it is and solve the task in other files")]
    Protected {
        /// The path.
        path: RelPath,
        /// The rule's reason.
        why: String,
    },
    /// The task names the files that may change, and this is none of them.
    #[error("`{path}` is not among the files that this task may change ({allowed})")]
    NotListed {
        /// The path.
        path: RelPath,
        /// The task's globs.
        allowed: String,
    },
    /// Somebody else wrote the file.
    #[error("`{path}` changed since you last read it: read it again, then repeat your change")]
    Changed {
        /// The path.
        path: RelPath,
    },
    /// Bytes that are not text.
    #[error("`{path}` is {kind} of {bytes} bytes, which can't be shown as text")]
    NotText {
        /// The path.
        path: String,
        /// What it is, with its article.
        kind: &'static str,
        /// Its size.
        bytes: usize,
    },
    /// Text of another encoding.
    #[error("`{path}` is not UTF-8 text, so it can't be edited by text")]
    NotUtf8 {
        /// The path.
        path: RelPath,
    },
    /// A page behind the end.
    #[error("`{path}` has {lines} lines; line {offset} is past its end")]
    PastEnd {
        /// The path.
        path: String,
        /// How many lines it has.
        lines: usize,
        /// The line asked for.
        offset: usize,
    },
    /// No stored result of that number.
    #[error("there is no stored output `{path}`")]
    NoOutput {
        /// What was asked for.
        path: String,
    },
    /// An edit that changes nothing.
    #[error("`old` and `new` are the same: nothing to change")]
    SameText,
    /// An edit of an empty text.
    #[error("`old` is empty: give the text to replace, or use files-write")]
    EmptyOld,
    /// An edit whose text is not there.
    #[error("`old` is not in `{path}`{nearest}")]
    NoMatch {
        /// The path.
        path: RelPath,
        /// The most similar text there, as the rest of the sentence.
        nearest: String,
    },
    /// An edit whose text is there more than once.
    #[error(
        "`old` is in `{path}` {count} times (lines {lines}): give more of the text around it, or set `replace_all`"
    )]
    ManyMatches {
        /// The path.
        path: RelPath,
        /// How often.
        count: usize,
        /// Where the first ones begin.
        lines: String,
    },
    /// A glob that is none.
    #[error(transparent)]
    Pattern(#[from] PatternError),
    /// No log of the gate.
    #[error("{problem}")]
    NoLog {
        /// Which one there is not, and which there are.
        problem: String,
    },
    /// A run without memory.
    #[error("this run has no memory")]
    NoMemory,
    /// A note in which nothing is said.
    #[error("`text` is empty: say what is to be remembered")]
    EmptyNote,
    /// A note that is too long.
    #[error("`text` has {bytes} bytes, and a note has at most {MAX_NOTE}: say it shorter")]
    LongNote {
        /// Its bytes, as it would be kept.
        bytes: usize,
    },
    /// The memory.
    #[error("the memory cannot be used: {0}")]
    Memory(#[from] StoreError),
    /// The run is being cancelled.
    #[error("stopped: the run was cancelled")]
    Stopped,
    /// A fault of ours.
    #[error("{tool} failed inside: {problem}")]
    Panicked {
        /// The tool.
        tool: String,
        /// What the panic said.
        problem: String,
    },
}

impl ToolError {
    /// Whether the same call may well succeed a moment later.
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
