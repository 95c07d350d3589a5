//! Errors of a delivery into the user's repository.

use crate::workspace::trees::TreesError;

/// The reason why a tree could not be delivered.
#[derive(Debug, thiserror::Error)]
pub enum DeliveryError {
    /// The workspace is in no repository.
    #[error("the workspace is not in a git repository")]
    NoRepository,
    /// The head has moved since the run began: another commit or another branch.
    #[error("the repository was at {was} when the run began and is at {is} now: nothing was committed")]
    Moved {
        /// The head when the run began.
        was: String,
        /// The head now.
        is: String,
    },
    /// Git now finds a different repository for the workspace than at the start of the run.
    #[error(
        "git now finds the repository `{path}`, which is not the one from the start of the run; nothing was \
         committed; if you did not create `{path}`, remove that folder"
    )]
    Another {
        /// The git directory of the repository found now.
        path: String,
    },
    /// The user has begun an operation, such as a merge, that git ends with its own commit.
    #[error("a {what} is in progress in the repository: finish it, or undo it with `git {what} --abort`")]
    Unfinished {
        /// The operation, by the name of its git command.
        what: &'static str,
    },
    /// The commit does not exist, or lacks the workspace's folder.
    #[error("there is no commit `{rev}` that contains this folder")]
    NoCommit {
        /// The name.
        rev: String,
    },
    /// Git accepts no branch of this name.
    #[error("invalid branch name `{name}`")]
    NoBranch {
        /// The name.
        name: String,
    },
    /// The branch is at another commit than the one where the work began.
    #[error("the branch `{name}` is not at the commit where the work began")]
    OtherWork {
        /// The name of the branch.
        name: String,
    },
    /// The branch is checked out in a worktree.
    #[error("the branch `{name}` is checked out: its files would not be updated")]
    CheckedOut {
        /// The name of the branch.
        name: String,
    },
    /// The tree equals that of the last commit.
    #[error("there is nothing to commit: the files equal those of the last commit")]
    Nothing,
    /// Paths at which the user's git would store other bytes than those that were judged.
    #[error(
        "a filter, a line-ending rule or a submodule makes git store other content than was judged: {}",
        listed(paths)
    )]
    Foreign {
        /// The paths, sorted.
        paths: Vec<String>,
    },
    /// An object in the repository has content that does not match its id. Only a process with
    /// write access to the git directory can cause this.
    #[error(
        "corrupt git objects {}: content does not match the id; nothing was committed; run `git fsck` \
         (without bubblewrap, an agent can write in `.git`)",
        listed(objects)
    )]
    Forged {
        /// The ids of the objects.
        objects: Vec<String>,
    },
    /// The repository uses object ids of another hash function than fledge.
    #[error("the repository and the verified tree use different hash functions for object ids")]
    Hash,
    /// Git could not be run, or failed.
    #[error(transparent)]
    Trees(#[from] TreesError),
}

impl DeliveryError {
    /// Returns the next step for the user, as a clause for a message.
    pub fn next_step(&self, run: &str) -> String {
        let again = format!("try again with `fledge runs resume {run}`");
        match self {
            Self::Nothing => "no commit is needed".to_owned(),
            Self::Foreign { .. } | Self::Hash | Self::Forged { .. } => {
                "the work is in the workspace: commit it with git".to_owned()
            }
            Self::Another { .. } | Self::NoRepository | Self::Trees(_) | Self::Unfinished { .. } => again,
            Self::Moved { .. }
            | Self::NoCommit { .. }
            | Self::NoBranch { .. }
            | Self::OtherWork { .. }
            | Self::CheckedOut { .. } => {
                format!("{again}, or put the work on a branch with `fledge apply {run} --branch NAME`")
            }
        }
    }
}

/// Names the first few paths of a list and counts the others.
pub fn listed(paths: &[String]) -> String {
    const SHOWN: usize = 5;
    let shown: Vec<String> = paths.iter().take(SHOWN).map(|path| format!("`{path}`")).collect();
    let more = paths.len().saturating_sub(SHOWN);
    if more == 0 { shown.join(", ") } else { format!("{} and {more} more", shown.join(", ")) }
}
