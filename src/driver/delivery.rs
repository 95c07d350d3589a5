//! Delivery of verified work: a commit in the user's repository, or a patch. After a run in place,
//! also the installed dependencies of the workspace.
//!
//! Planning checks what a commit needs before the run spends anything.

use super::DriverSettings;
use super::effects::EffectRunner;
use super::enclosure::variable;
use super::error::PlanError;
use super::inbox::Inbox;
use super::planning::Planner;
use super::prepared_workspace::{PreparedWorkspace, no_trees, trees_of};
use super::report;
use super::stop::IN_PEACE;
use crate::error_chain::chain;
use crate::id::{CallId, TreeId};
use crate::report::patch::{MailPatch, body_of, subject_of};
use crate::run::{Delivery, Event, RepositoryHead, Run, TaskResult};
use crate::store::write_whole;
use crate::task::{self, GateChoice, Isolation, Task};
use crate::workspace::delivery::{CommitRequest, DeliveryError, MadeCommit, UserRepository};
use crate::workspace::trees::Trees;
use crate::workspace::{AtomicOutput, delivery};
use std::path::Path;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The time that the last work of a run has to end by itself after the user asked for a stop.
const BY_ITSELF: Duration = Duration::from_secs(1);
/// The time that the last work has after that. Its programs are stopped by then, so it only writes
/// small files, perhaps to a slow disk.
const HEEDED_WITHIN: Duration = Duration::from_secs(10);

/// Marks that fledge has begun to install the dependencies of verified work. No agent is alive
/// then, so new files are fledge's.
pub(super) const IN_LINE: &str = "in-line";
/// The note on a commit if the user's git is configured to sign.
const UNSIGNED: &str = "the commit is not signed, although `commit.gpgsign` is on: \
    fledge runs no configured programs for a commit; sign it with `git commit --amend --no-edit -S`";

impl Planner {
    /// Returns the head of the repository, for a task that commits.
    ///
    /// # Errors
    /// [`PlanError`] if the work could not be committed: no gate, no repository, no commit yet, or
    /// uncommitted files.
    pub(super) async fn head(
        &self,
        workspace: &PreparedWorkspace,
        base: &TreeId,
    ) -> Result<Option<RepositoryHead>, PlanError> {
        if self.task.commits() == task::Commit::None {
            return Ok(None);
        }
        head_of(&self.task, &self.settings, (&workspace.trees, base), &self.stop).await.map(Some)
    }
}

/// Checks that the work of a task that commits in place could be committed now. Creates all files
/// in `scratch`.
///
/// # Errors
/// Those of [`Planner::head`].
pub(super) async fn must_be_committable(
    task: &Task,
    settings: &DriverSettings,
    scratch: &Path,
) -> Result<(), PlanError> {
    if task.commits() == task::Commit::None || task.isolation == Isolation::Worktree {
        return Ok(()); // a new worktree has no uncommitted files
    }
    let (stop, path) = (CancellationToken::new(), variable(settings, "PATH"));
    let trees = Trees::open(&scratch.join("trees"), &settings.workspace, path, &stop).await.map_err(no_trees)?;
    let repository = UserRepository::around(&trees, &settings.env, &stop).await;
    let base = match repository {
        Ok(Some(repository)) => base_of(&repository, task.allow_dirty, &stop).await,
        Ok(None) | Err(_) => Some(TreeId::empty()), // refused below
    };
    let base = match base {
        Some(base) => base,
        None => {
            trees.freeze_ignores(&settings.env, &stop).await.map_err(no_trees)?;
            trees.take(&stop).await.map_err(no_trees)?.tree
        }
    };
    head_of(task, settings, (&trees, &base), &stop).await.map(drop)
}

/// Returns the tree of the head if it is also the base of a run, or may stand for it. Git finds
/// that out faster than fledge takes a tree.
async fn base_of(repository: &UserRepository<'_>, is_dirty: bool, stop: &CancellationToken) -> Option<TreeId> {
    let is_clean = is_dirty || repository.uncommitted(stop).await.is_ok_and(|files| files.is_empty());
    repository.head(stop).await.ok().filter(|_| is_clean)?.tree
}

/// Returns the head of the repository around a workspace, whose tree is `base`.
async fn head_of(
    task: &Task,
    settings: &DriverSettings,
    (trees, base): (&Trees, &TreeId),
    stop: &CancellationToken,
) -> Result<RepositoryHead, PlanError> {
    let refused = |why: &str| PlanError::bad(format!("cannot use `commit: {}`: {why}", task.commits().word()));
    let failed = |fault: DeliveryError| refused(&chain(&fault));
    if task.gate == GateChoice::Skip {
        return Err(refused("without a gate nothing is verified; name a lane, or set `commit: none`"));
    }
    let repository = UserRepository::around(trees, &settings.env, stop).await.map_err(failed)?;
    let none = "the workspace is not in a git repository; \
        create one with `git init && git add -A && git commit -m first`, or set `commit: none`";
    let repository = repository.ok_or_else(|| refused(none))?;
    let head = repository.head(stop).await.map_err(failed)?;
    if head.commit.is_none() {
        return Err(refused("the repository has no commit yet; make one with `git add -A && git commit -m first`"));
    }
    let head = repository.with_config(head, stop).await.map_err(failed)?;
    match repository.check(&head, base, stop).await {
        Ok(true) if !task.allow_dirty => {
            let files = repository.uncommitted(stop).await.map_err(failed)?;
            let named = if files.is_empty() { String::new() } else { format!(": {}", delivery::listed(&files)) };
            Err(refused(&format!(
                "the workspace has uncommitted changes{named}; commit or stash them, or include them in the commit \
                 with --allow-dirty"
            )))
        }
        Ok(_) => Ok(head),
        Err(fault) => Err(failed(fault)),
    }
}

impl EffectRunner {
    /// Commits the verified tree. If an earlier process has made the commit, returns that commit.
    pub(super) fn deliver(&self, call: CallId, tree: TreeId, base: TreeId, run: &Run, inbox: &mut Inbox) {
        let delivered = move |result| Event::Delivered { call, result, ways: None };
        let (Some(head), Some(result)) = (run.head().cloned(), run.result()) else {
            let unknown = "the head of the repository was not recorded".to_owned();
            return inbox.outbox().send(delivered(Err(unknown)));
        };
        let (effects, stop) = (self.clone(), inbox.stop_token().child_token());
        let effect = async move {
            let made = effects.see_out(&stop, effects.commit(&head, &result, &tree, &base, &stop)).await;
            match made {
                Some(Ok(MadeCommit { commit, tree, notes })) => {
                    delivered(Ok(Delivery { commit, branch: head.branch, tree, notes }))
                }
                Some(Err(fault)) => {
                    let ways = Some(fault.next_step(result.run.as_str()));
                    Event::Delivered { call, result: Err(chain(&fault)), ways }
                }
                None => delivered(Err("the commit was stopped, and its outcome is unknown".to_owned())),
            }
        };
        inbox.start("deliver", effect, delivered(Err("committing panicked".into())));
    }

    async fn commit(
        &self,
        head: &RepositoryHead,
        result: &TaskResult,
        tree: &TreeId,
        base: &TreeId,
        stop: &CancellationToken,
    ) -> Result<MadeCommit, DeliveryError> {
        let settings = &self.settings;
        let trees = trees_of(settings, stop).await?;
        let repository = UserRepository::around(&trees, &settings.env, stop).await?;
        let repository = repository.ok_or(DeliveryError::NoRepository)?.as_configured(head);
        let (message, trailers) = (commit_message(result), commit_trailers(result, tree));
        let what = CommitRequest { head, tree, base, message: &message, trailers: &trailers };
        let mut made = match repository.made(&what, stop).await? {
            Some(made) => made,
            None => repository.commit(&what, stop).await?,
        };
        if repository.wants_signatures(stop).await.unwrap_or(false) {
            made.notes.push(UNSIGNED.to_owned());
        }
        Ok(made)
    }

    /// Does the last work of a run. After the user asked for a stop, the work has a second to end
    /// by itself, then `stop` is cancelled. Returns `None` if the work does not end then either.
    pub(super) async fn see_out<T>(&self, stop: &CancellationToken, work: impl Future<Output = T>) -> Option<T> {
        let late = async {
            self.stop.token().cancelled().await;
            tokio::time::sleep(BY_ITSELF).await;
            stop.cancel();
            tokio::time::sleep(HEEDED_WITHIN).await;
        };
        tokio::select! {
            biased;
            done = work => Some(done),
            () = late => None,
        }
    }

    /// Writes a patch of the work if it is verified. Otherwise removes the patch of an earlier run,
    /// which would be mistaken for this one's.
    pub(super) async fn write_patch(&self, path: &Path, run: &Run, stop: &CancellationToken) -> Result<(), String> {
        let output = AtomicOutput::found(path, &self.settings.workspace);
        let none = || {
            let removed = output.remove();
            removed.map_err(|error| format!("cannot remove an old patch: {}: {error}", path.display()))
        };
        let Some(result) = run.result().filter(|result| result.verified) else { return none() };
        let (Some(base), Some(tree)) = (&result.base, &result.tree) else { return none() };
        if result.turns == 0 && base == tree {
            return none(); // a fix whose base already passed: there is no work
        }
        let made = async {
            let settings = &self.settings;
            let trees = trees_of(settings, stop).await?;
            patch(&trees, &settings.env, &result, base, tree, stop).await
        };
        let patch: Result<Vec<u8>, DeliveryError> = made.await;
        let patch = patch.map_err(|fault| format!("cannot create the patch: {}", chain(&fault)))?;
        report::write_out(vec![output], patch, stop).await
    }

    /// Reports changes to git directories that no gate has seen. If the task restores after
    /// tampering, undoes them as the gate would.
    pub(super) async fn close_git(&self) {
        let Some(ready) = self.ready.get() else { return };
        let aside = self.run_dir.path().join("set-aside/git");
        let aside = (self.task.on_tamper == task::OnTamper::Restore).then_some(aside);
        for reported in ready.seal.clone().close_git(ready.workspace.sandbox.kind(), aside).await {
            tracing::warn!("{reported}");
        }
    }

    /// Keeps the agent's final files of an unverified run, once, if time allows. Returns the tree.
    pub(super) async fn keep_state(&self) -> Option<TreeId> {
        let ready = self.ready.get()?;
        if let Some(tree) = ready.left.get() {
            return Some(tree.clone());
        }
        let (stop, run) = (CancellationToken::new(), self.run_dir.run());
        let hidden = ready.gate.as_ref().and_then(|gate| gate.hidden.as_ref());
        let late = async {
            let _in_peace = tokio::time::timeout(IN_PEACE, self.stop.haste()).await;
            stop.cancel();
            std::future::pending::<()>().await;
        };
        tokio::select! {
            biased;
            kept = ready.workspace.keep_candidate(&run, None, hidden, &stop) => match kept {
                Ok(tree) => Some(ready.left.get_or_init(|| tree).clone()),
                Err(fault) => {
                    if !self.stop.token().is_cancelled() {
                        tracing::warn!(why = %chain(&fault), "cannot keep the last state of the files");
                    }
                    None
                }
            },
            () = late => None,
        }
    }
}

/// Formats the work of a run as a mail for `git am`.
async fn patch(
    trees: &crate::workspace::trees::Trees,
    env: &[(String, String)],
    result: &TaskResult,
    base: &TreeId,
    tree: &TreeId,
    stop: &CancellationToken,
) -> Result<Vec<u8>, DeliveryError> {
    let repository = UserRepository::around(trees, env, stop).await?;
    let (author, difference) = match &repository {
        Some(repository) => (repository.author(stop).await?, repository.patch(base, tree, stop).await?),
        None => (delivery::fallback_identity(), delivery::patch(trees, "", base, tree, stop).await?),
    };
    let mail = MailPatch {
        author: &author,
        date: &super::mail_date(),
        subject: &subject_of(&result.title),
        body: &body_of(&result.summary),
        trailers: &commit_trailers(result, tree),
    };
    Ok(mail.with(&difference))
}

/// Returns the message of a commit of verified work.
pub fn commit_message(result: &TaskResult) -> String {
    format!("{}\n\n{}", subject_of(&result.title), body_of(&result.summary)).trim_end().to_owned()
}

/// Returns the trailers that link a commit to its run.
pub fn commit_trailers(result: &TaskResult, tree: &TreeId) -> Vec<(String, String)> {
    [
        ("Fledge-Run", result.run.as_str()),
        ("Fledge-Verified-Tree", tree.as_str()),
        ("Fledge-Lane-Digest", result.gate_digest.as_str()),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .into()
}

impl EffectRunner {
    /// Installs the dependencies of verified work into the workspace. Returns a note for people.
    /// Does nothing after any other end, or if the run worked in another folder.
    pub(super) async fn bring_in_line(&self, run: &Run, stop: &CancellationToken) -> Option<String> {
        let ready = self.ready.get()?;
        let (gate, result) = (ready.gate.as_ref()?, run.result().filter(|result| result.verified)?);
        let tree = result.tree.clone()?;
        if ready.workspace.origin != self.settings.workspace || self.has_left() {
            return None;
        }
        let marker = self.run_dir.path().join(IN_LINE);
        let begins = || {
            let made = write_whole(&marker, &[]);
            made.map_err(|fault| format!("your installed dependencies were not updated: {}", chain(&fault)))
        };
        let site = ready.workspace.site(&self.settings, &self.task, &self.run_dir, run.tools());
        match self.see_out(stop, gate.bring_in_line(&site, &tree, begins, stop)).await {
            Some(Ok(note)) => note,
            Some(Err(why)) => Some(why),
            None => Some("your installed dependencies were not updated: the run had to stop".to_owned()),
        }
    }
}
