//! Differences at the end of a run, for the report and the summary: between the base and the final
//! files, of files that are in no tree, and of the user's repository.
//!
//! Files in no tree are reported because no gate has judged them and they are not delivered. In a
//! sandbox that does not protect `.git`, fledge records the head, the references and the staged
//! files before the agent starts. The user may have changed them, so fledge undoes nothing.

use super::effects::EffectRunner;
use super::planning::Planner;
use super::prepared_workspace::PreparedWorkspace;
use crate::error_chain::chain;
use crate::id::TreeId;
use crate::process::sandbox::SandboxKind;
use crate::run::{ChangedFile, ChangedLines, Run, TaskResult, TreeDifference};
use crate::store::write_whole;
use crate::verdict::{IgnoredFile, OutsidePath, OutsideTree};
use crate::workspace::delivery::{DeliveryError, RepositoryState, UserRepository};
use crate::workspace::trees::{FileDifference, OutsideFiles};
use std::fs;
use tokio_util::sync::CancellationToken;

/// The reason for a file that was ignored at the base and is not any more.
const HIDDEN: &str = "git ignored this path when the run began; add the file yourself";
/// The reason for an ignored file that the run wrote.
const UNSEEN: &str = "git ignores this path";
/// The reason for several such files in a folder.
const UNSEEN_MANY: &str = "files that the run wrote in a folder that git ignores";
/// The reason for an ignored file that is gone, and for several in a folder.
const GONE: &str = "deleted; git ignored it, so fledge has no copy";
const GONE_MANY: &str = "deleted files; git ignored them, so fledge has no copy";
/// The reason for a new folder without files.
const EMPTY: &str = "git keeps no empty folder";
/// The reason for a path that a new line of the work ignores.
const COVERED: &str = "git ignores this path because of a new ignore rule";
/// The file of a run with the state of the repository before the agent.
const REPOSITORY: &str = "repository";

impl EffectRunner {
    /// Returns the difference between the base and this tree, which is the one that passed or the
    /// final files. Returns `None` without a base or a tree, or if git fails or is too slow.
    pub(super) async fn difference(
        &self,
        run: &Run,
        tree: Option<TreeId>,
        stop: &CancellationToken,
    ) -> Option<Box<TreeDifference>> {
        let (ready, base, tree) = (self.ready.get()?, run.base()?, tree?);
        let compared = tokio::select! {
            biased;
            compared = ready.workspace.trees.difference(base, &tree, stop) => compared,
            () = self.stop.haste() => return None,
        };
        match compared {
            Ok(files) => Some(Box::new(TreeDifference::new(files.into_iter().map(|file| self.changed(file))))),
            Err(fault) => {
                tracing::warn!(why = %chain(&fault), "cannot compare the work with the base");
                None
            }
        }
    }

    fn changed(&self, file: FileDifference) -> ChangedFile {
        let masked = |path: String| self.settings.secrets.hidden(&path).unwrap_or(path);
        let mode = |mode: u32| (mode != 0).then(|| format!("{mode:06o}"));
        ChangedFile {
            path: masked(file.path),
            from: file.from.map(masked),
            mode_before: mode(file.from_mode),
            mode: mode(file.to_mode),
            lines: file.lines.map(|(added, removed)| ChangedLines { added, removed }),
        }
    }
}

impl EffectRunner {
    /// Finds changes since the gate was frozen that are in no tree. Returns a note if the list is
    /// not complete. No process of the agent may be alive.
    pub(super) async fn outside_tree(&self, run: &Run, stop: &CancellationToken) -> (OutsideTree, Option<String>) {
        let nothing = |note| (OutsideTree::default(), note);
        let since = self.run_dir.gate().metadata().and_then(|meta| meta.modified());
        let (Some(ready), Ok(since)) = (self.ready.get().filter(|_| !self.has_left()), since) else {
            return nothing(None); // no agent has begun, or its worktree is gone
        };
        let written: Vec<String> =
            run.result().map_or(Vec::new(), |it| it.files_changed.into_iter().map(|file| file.path).collect());
        let stop = stop.child_token();
        let looked = tokio::select! {
            biased;
            looked = ready.workspace.outside(since, &written, &stop) => looked,
            () = self.stop.haste() => {
                stop.cancel();
                return nothing(Some("changed ignored files are not listed: the run had to stop".into()));
            }
        };
        match looked {
            Ok(outside) => {
                let note = outside.is_cut.then(|| "too many ignored files: not all changed ones are listed".to_owned());
                (to_tree(outside), note)
            }
            Err(fault) => nothing(Some(format!("cannot list changed ignored files: {}", chain(&fault)))),
        }
    }
}

fn to_tree(outside: OutsideFiles) -> OutsideTree {
    let left_out = outside.hidden.iter().map(|path| OutsidePath::file(path, HIDDEN));
    let unseen = outside.unseen.iter().map(|path| OutsidePath::file(path, UNSEEN));
    let is_unseen = |path: &&String| outside.unseen.contains(path);
    let covered = outside.covered.iter().filter(|path| !is_unseen(path)).map(|path| OutsidePath::file(path, COVERED));
    let entry = |path: &str, files, one: &str, many: &str| match files {
        1 => OutsidePath::file(path, one),
        files => OutsidePath { files, ..OutsidePath::file(path, many) },
    };
    let plain = outside.plain.iter().map(|(folder, (first, files))| {
        let path = if *files == 1 { first.clone() } else { format!("{folder}/") };
        entry(&path, *files, UNSEEN, UNSEEN_MANY)
    });
    let is_uncovered = |entry: &OutsidePath| !outside.covered.iter().any(|path| entry.path.starts_with(path.as_str()));
    let gone = outside.gone.iter().map(|(path, files)| entry(path, *files, GONE, GONE_MANY));
    let empty = outside.empty.iter().map(|path| OutsidePath::file(path, EMPTY));
    let left_out = left_out.chain(unseen).chain(covered).chain(plain.filter(is_uncovered)).chain(gone).chain(empty);
    let left_out: Vec<OutsidePath> = left_out.collect();
    let is_named = |path: &String| outside.unseen.contains(path) || outside.covered.contains(path);
    let ignored = outside.ignored.into_iter().filter(|(path, ..)| !is_named(path));
    OutsideTree::new(ignored.map(|(path, root, what)| IgnoredFile { path, root, what }).collect(), left_out)
}

impl Planner {
    /// Records the state of the repository. A failure only loses the later report.
    pub(super) async fn record_repository(&self, workspace: &PreparedWorkspace) {
        if workspace.sandbox.kind() == SandboxKind::Bubblewrap {
            return;
        }
        let noted = async {
            let repository = UserRepository::around(&workspace.trees, &self.settings.env, &self.stop).await?;
            match repository {
                Some(repository) => repository.current_state(&self.stop).await.map(Some),
                None => Ok::<_, DeliveryError>(None),
            }
        };
        let kept = match noted.await {
            Ok(Some(state)) => serde_json::to_vec(&state).unwrap_or_default(),
            Ok(None) => return,
            Err(fault) => return tracing::debug!(%fault, "cannot read the state of the repository"),
        };
        if let Err(error) = write_whole(&self.run_dir.path().join(REPOSITORY), &kept) {
            tracing::debug!(%error, "cannot keep the state of the repository");
        }
    }
}

impl EffectRunner {
    /// Returns the changes of the repository since then, one line each. The files that configure
    /// git must be restored before.
    pub(super) async fn moved(&self, result: Option<&TaskResult>, stop: &CancellationToken) -> Vec<String> {
        let kept = fs::read(self.run_dir.path().join(REPOSITORY)).ok();
        let before: Option<RepositoryState> = kept.and_then(|kept| serde_json::from_slice(&kept).ok());
        let (Some(before), Some(ready)) = (before, self.ready.get()) else { return Vec::new() };
        let now = async {
            let repository = UserRepository::around(&ready.workspace.trees, &self.settings.env, stop).await?;
            repository.ok_or(DeliveryError::NoRepository)?.current_state(stop).await
        };
        let delivered = result.and_then(|result| Some((result.commit.as_deref()?, result.branch.as_deref())));
        let reported = match now.await {
            Ok(now) => before.describe_changes(&now, delivered),
            Err(_) if stop.is_cancelled() => Vec::new(),
            Err(fault) => vec![format!("cannot check the repository for changes: {fault}")],
        };
        reported.into_iter().map(|reported| format!("the repository changed during the run: {reported}")).collect()
    }
}
