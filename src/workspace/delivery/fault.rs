//! Why a tree could not be committed.

use crate::workspace::trees::TreesFault;

/// What could not be done in the user's repository.
#[derive(Debug, thiserror::Error)]
pub enum DeliveryFault {
    /// There is none around the workspace.
    #[error("the workspace is in no git repository")]
    NoRepository,
    /// Somebody committed or switched branches since.
    #[error("the repository was at {was} when the run began and is at {is} now: nothing was committed")]
    Moved {
        /// Then.
        was: String,
        /// Now.
        is: String,
    },
    /// What git finds from the workspace is not what it found when the run began.
    #[error(
        "git finds another repository here than when the run began, `{path}`: nothing was committed (remove it, if it is not yours)"
    )]
    Another {
        /// Its git directory.
        path: String,
    },
    /// The user is in the middle of something that git ends with a commit of its own kind.
    #[error(
        "a {what} is under way in the repository, which only git can end: end it, or take it back by `git {what} --abort`"
    )]
    Unfinished {
        /// What it is, as git's command is called.
        what: &'static str,
    },
    /// There is none of this name, or not with the workspace's folder.
    #[error("there is no commit `{rev}` with this folder in it")]
    NoCommit {
        /// The name.
        rev: String,
    },
    /// Git takes no branch of this name.
    #[error("`{name}` is no name for a branch")]
    NoBranch {
        /// The name.
        name: String,
    },
    /// It has commits that are not from here.
    #[error("the branch `{name}` is somewhere else than where the work began")]
    OtherWork {
        /// Its name.
        name: String,
    },
    /// Somebody works on it.
    #[error("the branch `{name}` is checked out: its files would not follow")]
    CheckedOut {
        /// Its name.
        name: String,
    },
    /// The tree is that of the last commit.
    #[error("there is nothing to commit: git would store what the last commit has")]
    Nothing,
    /// Paths that the user's git stores as something else than what was judged.
    #[error(
        "a filter, a rule on line ends or a submodule makes git store something else than what was judged: {}",
        listed(paths)
    )]
    Foreign {
        /// These, sorted.
        paths: Vec<String>,
    },
    /// What stands under the name of an object is something else: whoever could write in the git directory has put it there.
    #[error(
        "what git keeps as {} is not what has that name: nothing was committed (`git fsck` says more; without bubblewrap an agent can \
         write in `.git`)",
        listed(objects)
    )]
    Forged {
        /// Their ids.
        objects: Vec<String>,
    },
    /// Ids of one length cannot be written where the other is used.
    #[error("the repository names its objects by another hash than fledge does")]
    Hash,
    /// Git could not be asked, or said no.
    #[error(transparent)]
    Trees(#[from] TreesFault),
}

impl DeliveryFault {
    /// What leads on from here for the work of a run, a clause.
    pub fn ways(&self, run: &str) -> String {
        let again = format!("`fledge runs resume {run}` tries again");
        match self {
            Self::Foreign { .. } | Self::Hash | Self::Nothing | Self::Forged { .. } => {
                "the work is in the workspace: commit it with git itself".to_owned()
            }
            Self::Another { .. } | Self::NoRepository | Self::Trees(_) | Self::Unfinished { .. } => again,
            Self::Moved { .. }
            | Self::NoCommit { .. }
            | Self::NoBranch { .. }
            | Self::OtherWork { .. }
            | Self::CheckedOut { .. } => {
                format!("{again}, `fledge apply {run} --branch NAME` brings it onto a branch")
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
