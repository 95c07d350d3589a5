//! What becomes of verified work: a commit in the user's repository, a patch. What a commit needs is found out in Planning, before
//! anything is spent.

use super::briefing::PlanFault;
use super::ground::{Ground, trees_of};
use super::inbox::Inbox;
use super::perform::Hands;
use super::planning::Planner;
use super::report;
use super::stop::IN_PEACE;
use crate::causes::chain;
use crate::id::{CallId, TreeId};
use crate::report::patch::{Mail, body_of, subject_of};
use crate::run::{Delivery, Event, Run, TaskResult};
use crate::task::{self, GateChoice};
use crate::verdict::Reason;
use crate::workspace::Outlet;
use crate::workspace::delivery::{self, Commit, Committed, DeliveryFault, Head, Repository};
use std::path::Path;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Time that the last work of a run has to end by itself after the user asked for a stop.
const BY_ITSELF: Duration = Duration::from_secs(1);
/// Time that it has after that. Its programs are stopped by then, so it only writes small files, to a disk that may be slow.
const HEEDED_WITHIN: Duration = Duration::from_secs(10);

/// Said where the user's git is configured to sign.
const UNSIGNED: &str = "the commit is not signed, although `commit.gpgsign` is on: nothing that is configured runs on the way; \
    `git commit --amend --no-edit -S` signs it";

impl Planner {
    /// Where the repository stands, for a task that commits.
    pub(super) async fn head(&self, ground: &Ground, base: &TreeId) -> Result<Option<Head>, PlanFault> {
        if self.task.commits() == task::Commit::None {
            return Ok(None);
        }
        let refused = |why: &str| {
            let message = format!("`commit: {}` cannot be kept: {why}", self.task.commits().word());
            PlanFault::new(Reason::BadInput, message)
        };
        let failed = |fault: DeliveryFault| refused(&chain(&fault));
        if self.task.gate == GateChoice::Skip {
            return Err(refused("without a gate nothing is verified; name a lane, or take `commit: none`"));
        }
        let repository = Repository::around(&ground.trees, &self.settings.env, &self.stop).await.map_err(failed)?;
        let none = "the workspace is in no git repository; `git init && git add -A && git commit -m first` makes one, or take `commit: none`";
        let repository = repository.ok_or_else(|| refused(none))?;
        let head = repository.head(&self.stop).await.map_err(failed)?;
        if head.commit.is_none() {
            return Err(refused("the repository has no commit yet; `git add -A && git commit -m first` makes one"));
        }
        let head = repository.with_config(head, &self.stop).await.map_err(failed)?;
        match repository.check(&head, base, &self.stop).await {
            Ok(true) if !self.task.allow_dirty => {
                let files = repository.uncommitted(&self.stop).await.map_err(failed)?;
                let named = if files.is_empty() { String::new() } else { format!(": {}", delivery::listed(&files)) };
                Err(refused(&format!(
                    "the workspace has work that is not committed{named}; commit or stash it (`git add -A && git commit`), or let it go \
                     into the commit by --allow-dirty"
                )))
            }
            Ok(_) => Ok(Some(head)),
            Err(fault) => Err(failed(fault)),
        }
    }
}

impl Hands {
    /// Commits the verified tree. Where an earlier process has done so, that commit is it.
    pub(super) fn deliver(&self, call: CallId, tree: TreeId, base: TreeId, run: &Run, inbox: &mut Inbox) {
        let delivered = move |result| Event::Delivered { call, result, ways: None };
        let (Some(head), Some(result)) = (run.head().cloned(), run.result()) else {
            let unknown = "where the repository stood was not written down".to_owned();
            return inbox.outbox().send(delivered(Err(unknown)));
        };
        let (hands, stop) = (self.clone(), inbox.stop_token().child_token());
        let effect = async move {
            let made = hands.see_out(&stop, hands.commit(&head, &result, &tree, &base, &stop)).await;
            match made {
                Some(Ok(Committed { commit, tree, notes })) => {
                    delivered(Ok(Delivery { commit, branch: head.branch, tree, notes }))
                }
                Some(Err(fault)) => {
                    let ways = Some(fault.ways(result.run.as_str()));
                    Event::Delivered { call, result: Err(chain(&fault)), ways }
                }
                None => delivered(Err("it was stopped, and nobody knows how far it came".to_owned())),
            }
        };
        inbox.start("deliver", effect, delivered(Err("committing panicked".into())));
    }

    async fn commit(
        &self,
        head: &Head,
        result: &TaskResult,
        tree: &TreeId,
        base: &TreeId,
        stop: &CancellationToken,
    ) -> Result<Committed, DeliveryFault> {
        let settings = &self.settings;
        let trees = trees_of(settings, stop).await?;
        let repository = Repository::around(&trees, &settings.env, stop).await?;
        let repository = repository.ok_or(DeliveryFault::NoRepository)?.as_configured(head);
        let (message, trailers) = (commit_message(result), commit_trailers(result, tree));
        let what = Commit { head, tree, base, message: &message, trailers: &trailers };
        let mut made = match repository.made(&what, stop).await? {
            Some(made) => made,
            None => repository.commit(&what, stop).await?,
        };
        if repository.wants_signatures(stop).await.unwrap_or(false) {
            made.notes.push(UNSIGNED.to_owned());
        }
        Ok(made)
    }

    /// Does the last work of a run: when the user wants it to stop, the work has a second to end by itself, then `stop` is cancelled. `None`
    /// when it did not heed that either.
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

    /// Writes a patch of the work, when it is verified. Where there is none, that of an earlier run does not stay: it would be taken for it.
    pub(super) async fn write_patch(&self, path: &Path, run: &Run, stop: &CancellationToken) -> Result<(), String> {
        let outlet = Outlet::found(path, &self.settings.workspace);
        let none = || {
            let removed = outlet.remove();
            removed.map_err(|error| format!("an old patch cannot be removed: {}: {error}", path.display()))
        };
        let Some(result) = run.result().filter(|result| result.verified) else { return none() };
        let (Some(base), Some(tree)) = (&result.base, &result.tree) else { return none() };
        if result.turns == 0 && base == tree {
            return none(); // a fix of what was good as it was: nobody has worked
        }
        let made = async {
            let settings = &self.settings;
            let trees = trees_of(settings, stop).await?;
            patch(&trees, &settings.env, &result, base, tree, stop).await
        };
        let patch: Result<Vec<u8>, DeliveryFault> = made.await;
        let patch = patch.map_err(|fault| format!("the patch cannot be made: {}", chain(&fault)))?;
        report::write_out(vec![outlet], patch, stop).await
    }

    /// Says what of git a run has changed that no gate has seen, and puts that back as the gate would.
    pub(super) async fn close_git(&self) {
        let Some(ready) = self.ready.get() else { return };
        let aside = self.run_dir.path().join("set-aside/git");
        let aside = (self.task.on_tamper == task::OnTamper::Restore).then_some(aside);
        for told in ready.seal.clone().close_git(ready.ground.wall.kind(), aside).await {
            tracing::warn!("{told}");
        }
    }

    /// Keeps what the agent has left of a run that ended unverified, once, if that can be had in time. Returns the tree.
    pub(super) async fn keep_state(&self) -> Option<TreeId> {
        let ready = self.ready.get()?;
        if let Some(tree) = ready.left.get() {
            return Some(tree.clone());
        }
        let (stop, run) = (CancellationToken::new(), self.run_dir.run());
        let late = async {
            let _in_peace = tokio::time::timeout(IN_PEACE, self.stop.haste()).await;
            stop.cancel();
            std::future::pending::<()>().await;
        };
        tokio::select! {
            biased;
            kept = ready.ground.keep_candidate(&run, None, &stop) => match kept {
                Ok(tree) => Some(ready.left.get_or_init(|| tree).clone()),
                Err(fault) => {
                    if !self.stop.token().is_cancelled() {
                        tracing::warn!(why = %chain(&fault), "what the agent has left is not kept");
                    }
                    None
                }
            },
            () = late => None,
        }
    }
}

/// The work of a run as a mail that `git am` takes.
async fn patch(
    trees: &crate::workspace::trees::Trees,
    env: &[(String, String)],
    result: &TaskResult,
    base: &TreeId,
    tree: &TreeId,
    stop: &CancellationToken,
) -> Result<Vec<u8>, DeliveryFault> {
    let repository = Repository::around(trees, env, stop).await?;
    let (author, difference) = match &repository {
        Some(repository) => (repository.author(stop).await?, repository.patch(base, tree, stop).await?),
        None => (delivery::nobody(), delivery::patch(trees, "", base, tree, stop).await?),
    };
    let mail = Mail {
        author: &author,
        date: &super::mail_date(),
        subject: &subject_of(&result.title),
        body: &body_of(&result.summary),
        trailers: &commit_trailers(result, tree),
    };
    Ok(mail.with(&difference))
}

/// The message of a commit of verified work.
pub fn commit_message(result: &TaskResult) -> String {
    format!("{}\n\n{}", subject_of(&result.title), body_of(&result.summary)).trim_end().to_owned()
}

/// What ties a commit to its run.
pub fn commit_trailers(result: &TaskResult, tree: &TreeId) -> Vec<(String, String)> {
    [
        ("Fledge-Run", result.run.as_str()),
        ("Fledge-Verified-Tree", tree.as_str()),
        ("Fledge-Lane-Digest", result.gate_digest.as_str()),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .into()
}
