//! Work after a turn in which something may have changed: hooks, a checkpoint, a commit.
//!
//! Each of the operator's hooks runs in the agent's sandbox, with a timeout. Then fledge keeps the
//! files as a checkpoint and, if the task wants it, as a commit apart from every branch. No failure
//! here ends a run.

use super::effects::{EffectRunner, RunReady};
use super::enclosure;
use super::hook_input::{HookInput, Trees};
use super::inbox::Inbox;
use super::prepared_workspace::kept_as;
use crate::chat::ToolOutcome;
use crate::error_chain::chain;
use crate::gate::HiddenTests;
use crate::id::{CallId, TreeId};
use crate::limits::{GRACE, LINGER};
use crate::process::{EndedProcess, Invocation, ProcessEnd, Variables};
use crate::report::seconds;
use crate::run::{DoneTool, Event, RepositoryHead, Run};
use crate::store::{read_text, write_whole};
use crate::task;
use crate::tool::{Tool, ToolEffect};
use crate::workspace::delivery::{CommitRequest, DeliveryError, UserRepository};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// A command that runs after every turn in which something may have changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunHook {
    /// The name of the hook.
    pub name: String,
    /// The command, for `/bin/sh`.
    pub run: String,
    /// The timeout of the hook.
    pub timeout: Duration,
    /// True if the model gets the hook's failures and the files that it changed.
    pub tell_model: bool,
}

/// Bytes of a failed hook's output that the model gets.
const MODEL_OUTPUT: usize = 4 * 1024;
/// Characters of that output that people get.
const PEOPLE_OUTPUT: usize = 200;
/// The maximum number of paths to name.
const NAMED: usize = 20;
/// The largest progress file that is read, in bytes.
const LONGEST: usize = 1024 * 1024;

/// The progress of the hooks of one turn, kept for a resume.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct HookProgress {
    call: CallId,
    /// The files before the first hook.
    before: Option<TreeId>,
    begun: usize,
    ended: usize,
    notes: Vec<String>,
    reported: Vec<String>,
}

/// The work after one turn.
struct HookMoment {
    effects: EffectRunner,
    ready: Arc<RunReady>,
    call: CallId,
    turn: u64,
    /// The calls of the turn.
    tools: Vec<DoneTool>,
    /// The newest kept state. It has the hidden files of the base.
    last: Option<TreeId>,
    hidden: Option<HiddenTests>,
    base: Option<TreeId>,
    head: Option<RepositoryHead>,
    title: String,
    stop: CancellationToken,
}

impl EffectRunner {
    pub(super) fn run_hooks(&self, call: CallId, run: &Run, inbox: &mut Inbox) {
        let finished = move |notes, reported, checkpoint| Event::HooksFinished { call, notes, reported, checkpoint };
        // Hooks follow the turn of the run itself, which the sub-agent is part of.
        let Some(ready) = self.ready.get().filter(|_| !self.lineage.is_child()) else {
            return inbox.outbox().send(finished(Vec::new(), Vec::new(), None));
        };
        let after = HookMoment {
            effects: self.clone(),
            ready: ready.clone(),
            call,
            turn: run.turn(),
            tools: run.done_tools().to_vec(),
            last: run.checkpoint().cloned(),
            hidden: ready.gate.as_ref().and_then(|gate| gate.hidden.clone()),
            base: run.base().cloned(),
            head: run.head().cloned(),
            title: self.task.title.clone(),
            stop: inbox.stop_token(),
        };
        let effect = async move {
            let (notes, mut reported) = after.hooks().await;
            let checkpoint = after.keep(&mut reported).await;
            finished(notes, reported, checkpoint)
        };
        inbox.start("hooks", effect, finished(Vec::new(), vec!["the work after the turn panicked".into()], None));
    }
}

impl HookMoment {
    /// Runs the hooks that have not begun yet. Returns notes for the model, and notes for people
    /// alone.
    async fn hooks(&self) -> (Vec<String>, Vec<String>) {
        let hooks = &self.effects.settings.hooks;
        if hooks.is_empty() {
            return (Vec::new(), Vec::new());
        }
        let mut progress = match self.earlier() {
            Some(earlier) => earlier,
            None => self.first().await,
        };
        if progress.begun > progress.ended {
            progress.ended = progress.begun;
            let hook = hooks.get(progress.begun - 1);
            let name = hook.map_or("?", |hook| hook.name.as_str());
            let note = format!("the hook `{name}` was interrupted and does not run again for this turn");
            let is_told = hook.is_some_and(|hook| hook.tell_model);
            if is_told { &mut progress.notes } else { &mut progress.reported }.push(note);
        }
        let input = self.input(&progress).await;
        for hook in hooks.iter().skip(progress.ended) {
            if self.stop.is_cancelled() {
                break;
            }
            progress.begun += 1;
            if let Err(why) = self.write_down(&progress) {
                progress.reported.push(format!("the hook `{}` was not run: {why}", hook.name));
                break;
            }
            let ended = self.run(hook, &input).await;
            self.judge(hook, &ended, &mut progress);
            progress.ended = progress.begun;
            let _the_next_one_will_say_so = self.write_down(&progress);
        }
        self.look_at_changes(&mut progress).await;
        (progress.notes, progress.reported)
    }

    /// Returns the progress that an earlier process made with the hooks of this call.
    fn earlier(&self) -> Option<HookProgress> {
        let text = read_text(&self.path(), LONGEST).ok()??;
        serde_json::from_str(&text).ok().filter(|progress: &HookProgress| progress.call == self.call)
    }

    async fn first(&self) -> HookProgress {
        let (mut before, mut reported) = (None, Vec::new());
        match self.ready.workspace.trees.take(&self.stop).await {
            Ok(taken) => before = Some(taken.tree),
            Err(_) if self.stop.is_cancelled() => {}
            Err(fault) => reported.push(format!("cannot find out what hooks change: {}", chain(&fault))),
        }
        HookProgress { call: self.call, before, begun: 0, ended: 0, notes: Vec::new(), reported }
    }

    /// Returns the input of the hooks of this turn.
    async fn input(&self, progress: &HookProgress) -> HookInput {
        let tree = Trees { before: self.last_seen().await, after: progress.before.clone() };
        let changed = match (&tree.before, &tree.after) {
            (Some(before), Some(after)) => self.ready.workspace.trees.changes(before, after, &self.stop).await.ok(),
            _ => None,
        };
        let changed = changed.map(|all| all.into_iter().map(|change| change.path).collect());
        HookInput::new(self.effects.run_dir.run(), self.turn, self.tools.clone(), changed, tree)
    }

    /// Returns the newest kept state without the hidden files, which hooks must not learn.
    async fn last_seen(&self) -> Option<TreeId> {
        let (last, trees) = (self.last.as_ref()?, &self.ready.workspace.trees);
        match &self.hidden {
            Some(hidden) => trees.with_paths_of(last, &TreeId::empty(), &hidden.paths, &self.stop).await.ok(),
            None => Some(last.clone()),
        }
    }

    fn path(&self) -> PathBuf {
        self.effects.run_dir.path().join("hooks")
    }

    fn write_down(&self, progress: &HookProgress) -> Result<(), String> {
        let hide = |notes: &[String]| notes.iter().map(|note| self.hide(note.clone())).collect();
        let (notes, reported) = (hide(&progress.notes), hide(&progress.reported));
        let progress = HookProgress { notes, reported, ..progress.clone() };
        let text = serde_json::to_vec(&progress).map_err(|error| error.to_string())?;
        write_whole(&self.path(), &text).map_err(|error| chain(&error))
    }

    /// Runs one hook to its end, with all processes that it started.
    async fn run(&self, hook: &RunHook, input: &HookInput) -> EndedProcess {
        let (settings, workspace) = (&self.effects.settings, &self.ready.workspace);
        let sandbox = &workspace.sandbox;
        let mut path_rules =
            enclosure::rules(settings, &self.effects.task, &self.effects.run_dir, &workspace.dependencies);
        path_rules.writable.retain(|path| *path != self.effects.run_dir.outputs()); // hooks need no results of tools
        let inner = Invocation {
            program: "/bin/sh".into(),
            args: vec!["-c".into(), hook.run.clone()],
            dir: settings.workspace.clone(),
            env: Variables::new(settings.env.iter().cloned().chain(input.variables())),
            timeout: Some(hook.timeout),
            grace: GRACE,
            linger: LINGER,
            log: None,
            log_limit: 0,
        };
        // Placeholders in the workspace belong to the sandbox of the tools and are removed with it.
        sandbox.run_fed(&input.to_json(), &path_rules, inner, &self.stop).await
    }

    fn hide(&self, text: String) -> String {
        self.effects.settings.secrets.hidden(&text).unwrap_or(text)
    }

    /// Adds a note if the hook failed. Secrets are hidden before the last line is cut, because a
    /// part of a secret is not recognized.
    fn judge(&self, hook: &RunHook, ended: &EndedProcess, progress: &mut HookProgress) {
        let how = match &ended.end {
            ProcessEnd::Exited(0) | ProcessEnd::Stopped => return,
            ProcessEnd::Exited(code) => format!("failed with exit code {code}"),
            ProcessEnd::Signalled(signal) => format!("was killed by signal {signal}"),
            ProcessEnd::TimedOut => {
                format!("took longer than {} and was killed", seconds(crate::duration::milliseconds(hook.timeout)))
            }
            ProcessEnd::Exceeded(how) => format!("was ended: {how} (`limits`)"),
            ProcessEnd::NotStarted(why) => format!("did not start: {why}"),
        };
        let (note, output) = (format!("the hook `{}` {how}", hook.name), self.hide(ended.output.text(MODEL_OUTPUT)));
        let last = output.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default().trim();
        let last: String = last.chars().take(PEOPLE_OUTPUT).collect();
        if hook.tell_model {
            let whose = format!("the hook `{}`", hook.name);
            let received = self.ready.host.receive(self.call, &whose, &output, true).content;
            progress.notes.push(if output.trim().is_empty() { note } else { format!("{note}\n\n{received}") });
        } else {
            progress.reported.push(if last.is_empty() { note } else { format!("{note}: {last}") });
        }
    }

    /// Restores protected files that hooks changed. It does not count as tampering, and the agent
    /// is not judged by it. The model gets the other changes if a hook has `tell_model`.
    async fn look_at_changes(&self, progress: &mut HookProgress) {
        let (Some(before), false) = (&progress.before, self.stop.is_cancelled()) else { return };
        let trees = &self.ready.workspace.trees;
        let changed = async {
            let now = trees.take(&self.stop).await?.tree;
            trees.changes(before, &now, &self.stop).await
        };
        let mut changed: Vec<String> = match changed.await {
            Ok(changes) => changes.into_iter().map(|change| change.path).collect(),
            Err(fault) => {
                return progress.reported.push(format!("cannot find out what hooks changed: {}", chain(&fault)));
            }
        };
        let protection = self.ready.gate.as_ref().map(|gate| gate.seal.protection());
        let is_protected = |path: &String| protection.is_some_and(|rules| rules.rule(path).is_some());
        let protected: Vec<String> = changed.extract_if(.., |path| is_protected(path)).collect();
        if !protected.is_empty() {
            let what = named(&protected);
            progress.reported.push(match trees.put_back(before, Some(&protected), &self.stop).await {
                Ok(_) => format!("hooks changed protected files, which fledge restored: {what}"),
                Err(fault) => {
                    format!("hooks changed protected files ({what}), which fledge cannot restore: {}", chain(&fault))
                }
            });
        }
        if !changed.is_empty() && self.effects.settings.hooks.iter().any(|hook| hook.tell_model) {
            progress.notes.push(format!(
                "Hooks have changed files after your turn: {}. Read them again before you edit them.",
                named(&changed)
            ));
        }
    }

    /// Keeps the files after the turn if they differ from the newest kept state. Returns their
    /// tree.
    async fn keep(&self, reported: &mut Vec<String>) -> Option<TreeId> {
        let kept = async {
            let trees = &self.ready.workspace.trees;
            let tree = match self.ready.unkept.take_paths().filter(|_| self.effects.settings.hooks.is_empty()) {
                Some(written) => trees.take_written(&written, &self.stop).await?,
                None => trees.take_all(&self.stop).await?,
            };
            self.ready.unkept.kept();
            let tree = match &self.hidden {
                Some(hidden) => trees.with_paths_of(&tree, &hidden.base, &hidden.paths, &self.stop).await?,
                None => tree,
            };
            if self.last.as_ref() == Some(&tree) {
                return Ok(None);
            }
            let name = kept_as(&self.effects.run_dir.run(), &format!("turn-{}", self.turn));
            trees.keep(&name, &tree, &self.stop).await.map(|()| Some(tree))
        };
        let tree = match kept.await {
            Ok(tree) => tree?,
            Err(_) if self.stop.is_cancelled() => return None,
            Err(fault) => {
                reported.push(format!("cannot keep the files of this turn: {}", chain(&fault)));
                return None;
            }
        };
        if self.effects.task.commits() == task::Commit::EachTurn
            && let (Some(head), Some(base)) = (&self.head, &self.base)
            && let Err(fault) = self.commit(&tree, head, base).await
            && !self.stop.is_cancelled()
        {
            reported.push(format!("cannot commit this turn: {}", chain(&fault)));
        }
        Some(tree)
    }

    async fn commit(&self, tree: &TreeId, head: &RepositoryHead, base: &TreeId) -> Result<(), DeliveryError> {
        self.ready.host.close().await; // no tool may run while git works in the repository
        let trees = &self.ready.workspace.trees;
        let repository = UserRepository::around(trees, &self.effects.settings.env, &self.stop).await?;
        let repository = repository.ok_or(DeliveryError::NoRepository)?;
        let run = self.effects.run_dir.run();
        let message = format!("Turn {} of: {}", self.turn, self.title.lines().next().unwrap_or_default());
        let trailers = [("Fledge-Run", run.to_string()), ("Fledge-Turn", self.turn.to_string())]
            .map(|(name, value)| (name.to_owned(), value));
        let what = CommitRequest { head, tree, base, message: &message, trailers: &trailers };
        repository.commit_turn(&run, &what, &self.stop).await
    }
}

/// Names the first paths and counts the rest.
fn named(paths: &[String]) -> String {
    let named: Vec<&str> = paths.iter().take(NAMED).map(String::as_str).collect();
    match paths.len() - named.len() {
        0 => named.join(", "),
        more => format!("{} and {more} more", named.join(", ")),
    }
}

/// The paths that file tools have written. `None` if anything may have changed.
#[derive(Debug, Default)]
pub(super) struct UnsavedPaths(Mutex<Option<BTreeSet<String>>>);

impl UnsavedPaths {
    /// Records that a tool with this name starts.
    pub(super) fn begins(&self, tool: &str) {
        if !Tool::find(tool).is_some_and(|tool| tool.names_its_changes()) {
            self.anything();
        }
    }

    /// Records the change of a call that has ended.
    pub(super) fn ended(&self, outcome: &ToolOutcome) {
        if let (Some(paths), Some(change)) = (self.paths().as_mut(), &outcome.change) {
            paths.insert(change.path.clone());
        }
    }

    /// Records that anything may have changed.
    pub(super) fn anything(&self) {
        *self.paths() = None;
    }

    /// Takes the changes, just before they are kept. Until [`UnsavedPaths::kept`], anything may
    /// have changed.
    pub(super) fn take_paths(&self) -> Option<BTreeSet<String>> {
        self.paths().take()
    }

    /// Records that all changes are kept.
    pub(super) fn kept(&self) {
        *self.paths() = Some(BTreeSet::new());
    }

    fn paths(&self) -> MutexGuard<'_, Option<BTreeSet<String>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns true if a tool changes nothing, so that it may run again. An unknown tool may change
/// something.
pub(super) fn only_looks(tool: &str) -> bool {
    Tool::find(tool).is_some_and(|tool| tool.flags.effect == ToolEffect::ReadOnly)
}
