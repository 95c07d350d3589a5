//! The state of a whole repository: its head, all references and its index. fledge compares the
//! state before and after each run without bubblewrap, because only bubblewrap keeps `.git`
//! read-only. A change may be the user's own, so fledge reports the change and does not revert it.

use super::{DeliveryError, UserRepository};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use tokio_util::sync::CancellationToken;

/// The maximum number of references that a report names.
const NAMED: usize = 10;
/// The number of characters of an id that a report shows.
const SHORT: usize = 12;

/// The head, references and index of a repository.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepositoryState {
    /// The full name of the branch, or the commit of a detached head.
    head: String,
    /// The object id of each reference.
    refs: BTreeMap<String, String>,
    /// A digest of the index, including flags such as `assume-unchanged`.
    staged: String,
}

impl UserRepository<'_> {
    /// Returns the current state of the repository.
    ///
    /// # Errors
    /// [`DeliveryError`] if git fails.
    pub async fn current_state(&self, stop: &CancellationToken) -> Result<RepositoryState, DeliveryError> {
        let branch = self.line(&["symbolic-ref", "--quiet", "HEAD"], stop).await?;
        let head = match branch {
            Some(branch) => branch,
            None => self.line(&["rev-parse", "--quiet", "--verify", "HEAD"], stop).await?.unwrap_or_default(),
        };
        let list = self.git.ask(&["for-each-ref", "--format=%(objectname) %(refname)"], stop).await?;
        let list = String::from_utf8_lossy(&list);
        let refs = list.lines().filter_map(|line| line.split_once(' '));
        let refs = refs.map(|(object, name)| (name.to_owned(), object.to_owned())).collect();
        let staged = self.git.ask(&["ls-files", "-s", "-v", "-z"], stop).await?;
        let digest = self.trees.own_git().tell(&["hash-object", "--stdin"], &staged, stop).await?;
        Ok(RepositoryState { head, refs, staged: String::from_utf8_lossy(&digest).trim().to_owned() })
    }
}

impl RepositoryState {
    /// Returns the differences to the state `now`, one sentence each. `delivered` is a commit that
    /// fledge made in between, with the full name of its branch or `None` for a detached head. If
    /// `delivered` is given, two things are left out: the move of that branch (or of the detached
    /// HEAD) to the commit, and all changes of the index.
    pub fn describe_changes(&self, now: &Self, delivered: Option<(&str, Option<&str>)>) -> Vec<String> {
        let mut changes = Vec::new();
        let is_delivered = |object: Option<&String>| {
            delivered.is_some_and(|(commit, _)| object.is_some_and(|object| object == commit))
        };
        let is_head = matches!(delivered, Some((_, None))) && is_delivered(Some(&now.head));
        if self.head != now.head && !is_head {
            let (was, is) = (short(&self.head), short(&now.head));
            changes.push(format!("HEAD moved from {was} to {is}"));
        }
        // Other runs make, move and remove their own branches at the same time.
        let is_of_runs = |name: &&String| name.starts_with("refs/heads/fledge/");
        let names: BTreeSet<&String> = self.refs.keys().chain(now.refs.keys()).filter(|it| !is_of_runs(it)).collect();
        let differs = |name: &&String| {
            let is_own = matches!(delivered, Some((_, Some(branch))) if branch == name.as_str());
            self.refs.get(*name) != now.refs.get(*name) && !(is_own && is_delivered(now.refs.get(*name)))
        };
        let moved: Vec<&String> = names.into_iter().filter(differs).collect();
        changes.extend(moved.iter().take(NAMED).map(|name| match (self.refs.get(*name), now.refs.get(*name)) {
            (Some(was), Some(is)) => {
                format!(
                    "{name} was moved from {} to {} (`git update-ref {name} {was}` moves it back)",
                    short(was),
                    short(is)
                )
            }
            (Some(was), None) => format!("{name} was removed (`git update-ref {name} {was}` restores it)"),
            (None, _) => format!("{name} was created (`git update-ref -d {name}` removes it)"),
        }));
        if moved.len() > NAMED {
            changes.push(format!("{} more references were moved, created or removed", moved.len() - NAMED));
        }
        if self.staged != now.staged && delivered.is_none() {
            changes.push(
                "the index was changed (`git diff --cached` lists all staged changes, `git reset` unstages them)"
                    .into(),
            );
        }
        changes
    }
}

/// Shortens a commit id; a branch name stays whole.
fn short(name: &str) -> &str {
    if name.starts_with("refs/") { name } else { &name[..name.floor_char_boundary(SHORT)] }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(head: &str, refs: &[(&str, &str)], staged: &str) -> RepositoryState {
        let refs = refs.iter().map(|(name, object)| ((*name).to_owned(), (*object).to_owned())).collect();
        RepositoryState { head: head.into(), refs, staged: staged.into() }
    }

    #[test]
    fn what_moved_is_told_but_not_what_was_delivered() {
        let (main, side, tag) = ("refs/heads/main", "refs/heads/side", "refs/tags/v1");
        let before = state(main, &[(main, "aaa"), (side, "bbb")], "1");
        assert_eq!(before.describe_changes(&before, None), [""; 0]);
        let after = state(main, &[(main, "ccc"), (side, "bbb")], "2");
        assert_eq!(before.describe_changes(&after, Some(("ccc", Some(main)))), [""; 0]);
        let moved = "refs/heads/main was moved from aaa to ccc (`git update-ref refs/heads/main aaa` moves it back)";
        let staged = "the index was changed (`git diff --cached` lists all staged changes, `git reset` unstages them)";
        assert_eq!(before.describe_changes(&after, None), [moved, staged]);
        assert_eq!(before.describe_changes(&after, Some(("ddd", Some(main)))), [moved]);
        let after = state(side, &[(main, "aaa"), (tag, "eee")], "1");
        assert_eq!(
            before.describe_changes(&after, None),
            [
                "HEAD moved from refs/heads/main to refs/heads/side",
                "refs/heads/side was removed (`git update-ref refs/heads/side bbb` restores it)",
                "refs/tags/v1 was created (`git update-ref -d refs/tags/v1` removes it)"
            ]
        );
        let detached = |at: &str| state(at, &[(main, "aaa")], "1");
        assert_eq!(detached("aaa").describe_changes(&detached("bbb"), Some(("bbb", None))), [""; 0]);
        let many: Vec<(String, &str)> = (0..13).map(|number| (format!("refs/tags/{number}"), "a")).collect();
        let many: Vec<(&str, &str)> = many.iter().map(|(name, object)| (name.as_str(), *object)).collect();
        let changes = state("a", &[], "1").describe_changes(&state("a", &many, "1"), None);
        assert_eq!((changes.len(), changes[10].as_str()), (11, "3 more references were moved, created or removed"));
    }
}
