//! Checks of git and of the project's repository, in which verified work can be committed.

use super::super::project::{adding, typed_at};
use super::{HealthCheck, room};
use crate::error_chain::chain;
use crate::store::is_inside;
use crate::workspace::delivery::{
    DeliveryError, RepositoryCondition, UserRepository, fallback_identity, listed, refusal,
};
use crate::workspace::trees::{Trees, TreesError};
use std::path::Path;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

/// The command that makes the first commit.
const FIRST_COMMIT: &str = "git add -A && git commit -m first";

/// The features that need a repository with a commit.
const NEEDING: &str = "`commit: on-success`, `isolation: worktree` and the verb `apply` need";

/// Opens a private git directory for the workspace, as a run does, and checks the user's repository
/// for obstacles to a commit.
pub(super) async fn look(root: &Path, path: &str, env: &[(String, String)]) -> Vec<HealthCheck> {
    let stop = CancellationToken::new();
    match opened(root, path, &stop).await {
        Ok((_folder, trees, version)) => {
            let around = around(&trees, root, env, &stop).await;
            [HealthCheck::good("git", version)].into_iter().chain(around).collect()
        }
        Err((why, hint)) => vec![HealthCheck::problem("git", why, hint)],
    }
}

/// A failure, and its fix.
type Unopened = (String, &'static str);

async fn opened(root: &Path, path: &str, stop: &CancellationToken) -> Result<(TempDir, Trees, String), Unopened> {
    const NO_ROOM: &str = "free some space in the folder for temporary files, or set TMPDIR to another folder";
    // Another check reports problems of the folder for temporary files.
    let is_usable = |folder: &TempDir| !is_inside(folder.path(), root) && room::refusal(folder.path()).is_none();
    let folder = tempfile::tempdir().ok().filter(is_usable);
    let folder =
        folder.map_or_else(|| tempfile::tempdir_in("/tmp"), Ok).map_err(|error| (error.to_string(), NO_ROOM))?;
    let told = |fault: TreesError| {
        let hint = match fault {
            TreesError::NoGit { .. } | TreesError::OldGit { .. } => "install git 2.30 or newer and add it to PATH",
            TreesError::Git { .. } => "run `git init` in an empty folder and fix what it reports",
            _ => NO_ROOM,
        };
        (chain(&fault), hint)
    };
    let trees = Trees::open(&folder.path().join("trees.git"), root, path, stop).await.map_err(told)?;
    let version = trees.version(stop).await.map_err(told)?;
    Ok((folder, trees, version))
}

async fn around(trees: &Trees, root: &Path, env: &[(String, String)], stop: &CancellationToken) -> Vec<HealthCheck> {
    let looked = async {
        let Some(repository) = UserRepository::around(trees, env, stop).await? else {
            return refusal(trees, env, stop).await.map(|said| vec![none(root, &said)]);
        };
        let signs = repository.wants_signatures(stop).await.unwrap_or(false);
        let found = checks(&repository.condition(stop).await?, root);
        Ok::<_, DeliveryError>(found.into_iter().chain(signs.then(unsigned)).collect())
    };
    looked.await.unwrap_or_else(|fault| {
        let hint = "run `git status` and `git fsck` for details; until then fledge cannot commit here";
        vec![HealthCheck::warning("git", fault.to_string(), hint).part("repository")]
    })
}

fn none(root: &Path, said: &str) -> HealthCheck {
    let marked = root.ancestors().map(|folder| folder.join(".git")).find(|git| git.symlink_metadata().is_ok());
    let found = match marked {
        Some(place) => {
            let says = format!("git cannot use {}: {said}; {NEEDING} a repository", place.display());
            HealthCheck::warning("git", says, "fix or remove it, then run `git init`")
        }
        None => HealthCheck::warning(
            "git",
            format!("the project is not in a repository; {NEEDING} one"),
            format!("`{}`", typed_at(root, &format!("git init && {FIRST_COMMIT}"))),
        ),
    };
    found.part("repository")
}

fn checks(it: &RepositoryCondition, root: &Path) -> Vec<HealthCheck> {
    let warning = |part: &str, says: String, hint: String| HealthCheck::warning("git", says, hint).part(part);
    let owner = it.refused_owner.map(|owner| {
        let says = format!("{} belongs to user {owner}, so git refuses to work there, also in lane steps", it.top);
        warning("owner", says, format!("`git config --global --add safe.directory {}`", it.top))
    });
    let first = (!it.has_commit).then(|| {
        let says = format!("the repository has no commit yet; {NEEDING} one");
        warning("repository", says, format!("`{}`", typed_at(root, FIRST_COMMIT)))
    });
    let identity = (!it.knows_committer).then(|| {
        let says = format!("git has no user name or email: commits get {} as their author", fallback_identity());
        warning("identity", says, "`git config --global user.name NAME && git config --global user.email MAIL`".into())
    });
    let unfinished = it.unfinished.map(|what| {
        let says = format!("a {what} is in progress: until it ends, fledge cannot commit here");
        warning("unfinished", says, format!("finish the {what}, or run `git {what} --abort`"))
    });
    let changed = (!it.changed.is_empty() && it.has_commit && it.unfinished.is_none()).then(|| {
        let files = if it.changed.len() == 1 { "1 file is".into() } else { format!("{} files are", it.changed.len()) };
        let named = listed(&it.changed);
        let says = format!("{files} not committed ({named}): fledge refuses runs with `commit: on-success`");
        warning(
            "changes",
            says,
            format!("{}, or `git stash`, or a run with `--allow-dirty`", adding(root, &it.changed)),
        )
    });
    let shallow = it.is_shallow.then(|| {
        let says = "the clone is shallow: `--base` cannot name older commits";
        warning("shallow", says.into(), "`git fetch --unshallow`".into())
    });
    [owner, first, identity, unfinished, changed, shallow].into_iter().flatten().collect()
}

fn unsigned() -> HealthCheck {
    let says = "`commit.gpgsign` is on, but commits of fledge (`commit: on-success`) are not signed";
    let hint = "sign them yourself: `git commit --amend --no-edit -S`, or use `--patch` and `git am -S`";
    HealthCheck::warning("git", says, hint).part("signing")
}
