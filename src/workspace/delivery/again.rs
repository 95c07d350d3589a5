//! Questions to the user's repository that make no commit: is a commit possible, was it already
//! made, and what is the patch.

use super::compose::is_repository;
use super::{CommitRequest, DeliveryError, MadeCommit, NOBODY, RepositoryHead, UserRepository};
use crate::id::TreeId;
use crate::workspace::trees::{Trees, TreesError, entries_of};
use std::path::Path;
use tokio_util::sync::CancellationToken;

/// The files of a commit, written into a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportedBase {
    /// The id of the commit.
    pub commit: String,
    /// The tree of the folder, in fledge's own trees.
    pub tree: TreeId,
    /// The paths of submodules, which are empty in the folder.
    pub submodules: Vec<String>,
}

impl UserRepository<'_> {
    /// Returns whether a commit of `base` would differ from the head: whether there were
    /// uncommitted changes when `base` was taken.
    ///
    /// # Errors
    /// [`DeliveryError::Foreign`] if these changes cannot be committed,
    /// [`DeliveryError::Unfinished`], and others.
    pub async fn check(
        &self,
        head: &RepositoryHead,
        base: &TreeId,
        stop: &CancellationToken,
    ) -> Result<bool, DeliveryError> {
        self.must_be_finished(stop).await?;
        if head.tree.as_ref() == Some(base) {
            return Ok(false);
        }
        self.compose(head, base, base, stop).await.map(|(_, is_new)| is_new)
    }

    /// Returns the commit if an earlier process has already made it. That commit is on the same
    /// branch and has the same parent, tree and first trailer. If the user has committed on top of
    /// it, the index stays as it is.
    ///
    /// # Errors
    /// [`DeliveryError`] if git fails.
    pub async fn made(
        &self,
        what: &CommitRequest<'_>,
        stop: &CancellationToken,
    ) -> Result<Option<MadeCommit>, DeliveryError> {
        let now = self.head(stop).await?;
        let Some(newest) = now.commit.filter(|_| now.branch == what.head.branch) else { return Ok(None) };
        let but = what.head.commit.as_ref().map(|commit| format!("^{commit}"));
        let mut args = vec!["rev-list", "--first-parent", &newest];
        args.extend(but.as_deref());
        let since = self.git.ask(&args, stop).await?;
        let since = String::from_utf8_lossy(&since);
        let Some(commit) = since.lines().next_back() else { return Ok(None) };
        let Some(tree) = self.is_made(commit, what, stop).await? else { return Ok(None) };
        let notes = match commit == newest {
            true => self.bring_index(tree.as_str(), stop).await.into_iter().collect(),
            false => Vec::new(),
        };
        Ok(Some(MadeCommit { commit: commit.to_owned(), tree: self.stored(&tree, what.tree, stop).await, notes }))
    }

    /// Returns the tree of `commit` if `commit` is the one described by `what`.
    pub(super) async fn is_made(
        &self,
        commit: &str,
        what: &CommitRequest<'_>,
        stop: &CancellationToken,
    ) -> Result<Option<TreeId>, DeliveryError> {
        let Some((name, value)) = what.trailers.first() else { return Ok(None) };
        let form = format!("--format=%T %P%n%(trailers:key={name},valueonly)");
        let output = self.git.ask(&["log", "-1", "--no-show-signature", &form, commit], stop).await?;
        let output = String::from_utf8_lossy(&output);
        let mut lines = output.lines();
        let (tree, parents) = lines.next().and_then(|line| line.split_once(' ')).unwrap_or_default();
        if parents != what.head.commit.as_deref().unwrap_or_default() || !lines.any(|line| line == value) {
            return Ok(None);
        }
        let (composed, _) = self.compose(what.head, what.tree, what.base, stop).await?;
        Ok((composed.as_str() == tree).then_some(composed))
    }

    /// Brings the index to a tree. Returns a note for the user if that fails.
    pub(super) async fn bring_index(&self, tree: &str, stop: &CancellationToken) -> Option<String> {
        let why = match self.git.run(&["read-tree", "--reset", tree], b"", 0, stop).await {
            Ok(index) if index.code == 0 => return None,
            Ok(index) => index.stderr,
            Err(fault) => fault.to_string(),
        };
        Some(format!("the index was not updated ({why}): `git reset` updates it to the new commit"))
    }

    /// Returns the author of commits in this repository, as git writes it: `Name <mail>`.
    ///
    /// # Errors
    /// [`DeliveryError`] if git fails.
    pub async fn author(&self, stop: &CancellationToken) -> Result<String, DeliveryError> {
        let known = self.line(&["-c", "user.useConfigOnly=true", "var", "GIT_AUTHOR_IDENT"], stop).await?;
        let name = known.as_deref().and_then(|line| Some(&line[..=line.rfind('>')?])).map(str::to_owned);
        Ok(name.unwrap_or_else(fallback_identity))
    }

    /// Returns a binary patch for `git apply` between two trees of the workspace. Its paths start
    /// at the top of the repository.
    ///
    /// # Errors
    /// [`DeliveryError`] if git fails.
    pub async fn patch(&self, from: &TreeId, to: &TreeId, stop: &CancellationToken) -> Result<Vec<u8>, DeliveryError> {
        patch(self.trees, &self.prefix, from, to, stop).await
    }

    /// Returns the tree of the workspace's folder within the repository's tree `whole`, if it
    /// differs from the judged tree.
    pub(super) async fn stored(&self, whole: &TreeId, judged: &TreeId, stop: &CancellationToken) -> Option<TreeId> {
        let folder = format!("{whole}:{}", self.prefix.trim_end_matches('/'));
        let tree = self.line(&["rev-parse", "--quiet", "--verify", &folder], stop).await.ok()??;
        TreeId::parse(&tree).ok().filter(|tree| tree != judged)
    }

    /// Writes the workspace's folder at the commit `rev` into an empty folder. fledge's own git
    /// does it, so nothing that the user's git configures runs.
    ///
    /// # Errors
    /// [`DeliveryError::NoCommit`] if `rev` is not a commit with this folder, and others.
    pub async fn export(&self, rev: &str, into: &Path, stop: &CancellationToken) -> Result<(), DeliveryError> {
        let (_, tree) = self.folder_at(rev, stop).await?;
        self.export_tree(&tree, into, stop).await
    }

    /// Writes the files of a commit as [`Self::export`] does, and takes them into fledge's own
    /// trees. `into` must be in no repository.
    ///
    /// # Errors
    /// Those of [`Self::export`].
    pub async fn export_base(
        &self,
        rev: &str,
        into: &Path,
        stop: &CancellationToken,
    ) -> Result<ExportedBase, DeliveryError> {
        let (commit, folder) = self.folder_at(rev, stop).await?;
        std::fs::create_dir_all(into).map_err(TreesError::io("make", into))?;
        self.export_tree(&folder, into, stop).await?;
        let tree = self.trees.tree_of_folder(into, stop).await?;
        let list = self.git.ask(&["ls-tree", "-r", "-z", "--full-tree", &folder], stop).await?;
        let submodules = entries_of(&list)?.into_iter().filter(is_repository).map(|entry| entry.path).collect();
        Ok(ExportedBase { commit, tree, submodules })
    }

    /// Returns the ids of a commit and of the workspace's folder in it.
    async fn folder_at(&self, rev: &str, stop: &CancellationToken) -> Result<(String, String), DeliveryError> {
        let none = || DeliveryError::NoCommit { rev: rev.to_owned() };
        let asked = ["rev-parse", "--quiet", "--verify", "--end-of-options", &format!("{rev}^{{commit}}")];
        let commit = self.line(&asked, stop).await?.ok_or_else(none)?;
        let folder = format!("{commit}:{}", self.prefix.trim_end_matches('/'));
        let tree = self.line(&["rev-parse", "--quiet", "--verify", &folder], stop).await?.ok_or_else(none)?;
        Ok((commit, tree))
    }

    async fn export_tree(&self, tree: &str, into: &Path, stop: &CancellationToken) -> Result<(), DeliveryError> {
        let objects = self.line(&["rev-parse", "--git-path", "objects"], stop).await?.unwrap_or_default();
        let index = self.trees.scratch().join("exported");
        let git = self.trees.own_git().with("GIT_INDEX_FILE", &index);
        let git = git.with("GIT_ALTERNATE_OBJECT_DIRECTORIES", &self.trees.root().join(objects));
        git.ask(&["read-tree", tree], stop).await?;
        let prefix = format!("--prefix={}/", into.display());
        Ok(git.ask(&["checkout-index", "--all", "--quiet", &prefix], stop).await.map(drop)?)
    }
}

/// Returns a binary patch for `git apply` between two trees of a workspace, with `prefix` before
/// each path. It uses fledge's own git, so no repository is needed.
///
/// # Errors
/// [`DeliveryError`] if git fails.
pub async fn patch(
    trees: &Trees,
    prefix: &str,
    from: &TreeId,
    to: &TreeId,
    stop: &CancellationToken,
) -> Result<Vec<u8>, DeliveryError> {
    let (source, target) = (format!("--src-prefix=a/{prefix}"), format!("--dst-prefix=b/{prefix}"));
    let fixed = ["diff-tree", "-r", "-p", "--binary", "--full-index", "--no-renames", "--no-color"];
    let given = ["--no-ext-diff", "--no-textconv", &source, &target, from.as_str(), to.as_str()];
    Ok(trees.own_git().ask(&[fixed.as_slice(), &given].concat(), stop).await?)
}

/// Returns the author for commits where the user's git configures none.
pub fn fallback_identity() -> String {
    format!("{} <{}>", NOBODY.0, NOBODY.1)
}
