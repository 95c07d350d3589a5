//! Hidden tests of a run: fledge removes them from the worktree before the agent starts, and puts
//! them back at the end. The agent's sandbox shows neither the user's repository nor the checkouts
//! of it. In their place it has a repository with one commit, the base without these files.

use super::briefing::StartingPoint;
use super::effects::EffectRunner;
use super::enclosure::variable;
use super::error::PlanError;
use super::planning::Planner;
use super::prepared_workspace::{PreparedWorkspace, no_trees};
use super::{DriverSettings, servers};
use crate::error_chain::chain;
use crate::gate::{Gate, HiddenFiles, HiddenTests, choose_hidden, hidden_of_lanes};
use crate::id::TreeId;
use crate::mcp::ServerTransport;
use crate::process::sandbox::{Mount, PathRules, SandboxKind};
use crate::store::{RunDir, write_whole};
use crate::task::{GateChoice, Isolation, Task};
use crate::verdict::Reason;
use crate::workspace::replica::write_alone;
use crate::workspace::trees::TreesError;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use tokio_util::sync::CancellationToken;

/// The file of a run that names the hidden files. It exists before they are removed.
const RECORD: &str = "hidden.json";
/// The folder of a run with the repository that the agent sees.
const REPOSITORY: &str = "seen-repository";
/// The path at which the agent's sandbox has that repository.
const SEEN_AT: &str = "/tmp/.fledge-repository";
/// Variables that name folders in which builds of the user may have left tests in compiled form.
const BUILDS: [&str; 5] = ["CARGO_TARGET_DIR", "PYTHONPYCACHEPREFIX", "CCACHE_DIR", "SCCACHE_DIR", "GOTMPDIR"];
/// The maximum number of paths that notes name.
const NAMED: usize = 10;

/// The files that a run hides, with the tree of its base that has them.
pub(super) struct HiddenBase {
    pub(super) base: TreeId,
    pub(super) files: HiddenFiles,
}

/// The changes of the agent's sandbox that keep hidden tests from it. Empty without hidden tests.
#[derive(Debug, Clone, Default)]
pub(super) struct AgentView {
    /// Folders that would show the files.
    pub(super) hidden: Vec<PathBuf>,
    mounts: Vec<Mount>,
}

impl AgentView {
    /// Restricts the rules of programs that the agent starts.
    pub(super) fn restrict(&self, rules: &mut PathRules) {
        let real = |path: &PathBuf| path.canonicalize().unwrap_or_else(|_| path.clone());
        rules.read_only.retain(|path| !self.hidden.iter().any(|hidden| real(path).starts_with(hidden)));
        rules.hidden.extend(self.hidden.iter().cloned());
        rules.mounts.extend(self.mounts.iter().cloned());
    }
}

/// Returns the items of `hidden` of a task and its lanes.
pub(super) fn rules_of(task: &Task, settings: &DriverSettings, lanes_at: Option<&Path>) -> Vec<String> {
    let GateChoice::Lanes(lanes) = &task.gate else { return task.hidden.clone() };
    let root = lanes_at.unwrap_or(&settings.workspace);
    let mut rules = hidden_of_lanes(root, lanes, variable(settings, "PATH"));
    rules.extend(task.hidden.iter().cloned());
    let mut known = BTreeSet::new();
    rules.retain(|rule| known.insert(rule.clone()));
    rules
}

/// Checks that a run of this task could keep files hidden.
///
/// # Errors
/// [`PlanError`] with a way to fix it.
pub(super) fn must_be_possible(task: &Task, settings: &DriverSettings) -> Result<(), PlanError> {
    let refused = |why: &str, hint: &str| Err(PlanError::bad(format!("cannot keep tests hidden: {why}\n  {hint}")));
    if task.gate == GateChoice::Skip {
        return refused("without a gate nothing uses them", "name a lane, or omit `hidden`");
    }
    if task.isolation == Isolation::InPlace {
        let hint = "add `isolation: worktree` to the task, or --isolation worktree";
        return refused("the agent works in your checkout, which has them", hint);
    }
    if settings.earlier.is_some() {
        return refused("the earlier run that this run continues may have read them", "start a new run");
    }
    for server in servers::named_servers(task, settings)? {
        if matches!(server.reach, ServerTransport::Program { .. }) && !server.is_walled {
            let why = format!("the MCP server `{}` runs outside the sandbox, where it could read them", server.name);
            return refused(&why, "remove `sandbox: off` from the server, or the server from the task");
        }
    }
    Ok(())
}

impl Planner {
    /// Chooses the hidden tests of the run and removes them from the worktree. Returns the starting
    /// point without them.
    pub(super) async fn hide(
        &self,
        workspace: &PreparedWorkspace,
        start: StartingPoint,
        lanes_at: Option<&Path>,
    ) -> Result<(StartingPoint, Option<HiddenBase>), PlanError> {
        let rules = rules_of(&self.task, &self.settings, lanes_at);
        if rules.is_empty() {
            return Ok((start, None));
        }
        must_be_possible(&self.task, &self.settings)?;
        must_be_hideable(workspace, &self.run_dir).await?;
        let StartingPoint { tree: base, paths, git, origin, repository } = start;
        let source = repository.filter(|source| source.is_sha1());
        let source = source.ok_or_else(|| {
            PlanError::bad("cannot keep tests hidden: the repository has other object ids than SHA-1")
        })?;
        let files = choose_hidden(&rules, &self.settings.workspace, &paths, self.run_dir.run().as_str());
        let files = files.map_err(|fault| PlanError::bad(fault.to_string()))?;
        let hidden = HiddenTests { base: base.clone(), paths: files.paths.clone() };
        let record = serde_json::to_vec(&hidden).unwrap_or_default();
        let failed = |fault: &dyn std::error::Error| PlanError::new(Reason::PlanFailed, chain(fault));
        write_whole(&self.run_dir.path().join(RECORD), &record).map_err(|fault| failed(&fault))?;
        let tree = workspace.take_away(&hidden, &self.stop).await.map_err(no_trees)?;
        workspace.trees.replace_base(&tree).await.map_err(no_trees)?;
        let folder = self.run_dir.path().join(REPOSITORY);
        write_alone(&workspace.trees, &source, &tree, &folder, &self.stop).await.map_err(no_trees)?;
        let gitfile = write_whole(&folder.join("gitfile"), format!("gitdir: {SEEN_AT}\n").as_bytes());
        gitfile.map_err(|fault| failed(&fault))?;
        let paths = paths.into_iter().filter(|path| !hidden.paths.contains(path)).collect();
        let start = StartingPoint { tree, paths, git, origin, repository: Some(source.without_history()) };
        Ok((start, Some(HiddenBase { base, files })))
    }

    /// Puts back the files that an earlier part of the run has removed. Does nothing otherwise.
    pub(super) async fn unhide(&self, workspace: &PreparedWorkspace) -> Result<(), TreesError> {
        let Ok(record) = fs::read(self.run_dir.path().join(RECORD)) else { return Ok(()) };
        let Ok(hidden) = serde_json::from_slice::<HiddenTests>(&record) else { return Ok(()) };
        workspace.put_back_hidden(&hidden, &CancellationToken::new()).await.map(drop)
    }
}

/// Checks that the sandbox can hide files.
async fn must_be_hideable(workspace: &PreparedWorkspace, run: &RunDir) -> Result<(), PlanError> {
    let kind = workspace.sandbox.kind();
    let refused = |why: String| {
        let message = format!("cannot keep tests hidden: {why}\n  install bubblewrap, and use `sandbox: required`");
        Err(PlanError::new(Reason::NoSandbox, message))
    };
    match kind {
        SandboxKind::Bubblewrap if workspace.sandbox.has_layers(run.path()).await => Ok(()),
        SandboxKind::Bubblewrap => refused("this system has no layers over folders (overlayfs) for users".into()),
        SandboxKind::Landlock | SandboxKind::Off => {
            refused(format!("the sandbox is {}, and programs could read them there", kind.name()))
        }
    }
}

impl PreparedWorkspace {
    /// Removes hidden files from the worktree, except those that the agent has replaced. Returns
    /// the tree of the worktree afterwards.
    pub(super) async fn take_away(&self, hidden: &HiddenTests, stop: &CancellationToken) -> Result<TreeId, TreesError> {
        let now = self.trees.take_all(stop).await?;
        let (here, base) = (self.trees.entries(&now, stop).await?, self.trees.entries(&hidden.base, stop).await?);
        let own = here.into_iter().filter(|entry| hidden.paths.contains(&entry.path) && base.contains(entry));
        let own: Vec<String> = own.map(|entry| entry.path).collect();
        let without = self.trees.with_paths_of(&now, &TreeId::empty(), &own, stop).await?;
        self.trees.put_back(&without, Some(&own), stop).await?;
        Ok(without)
    }

    /// Puts hidden files back into the worktree. Returns the paths that the agent has used in their
    /// place; those files are replaced.
    pub(super) async fn put_back_hidden(
        &self,
        hidden: &HiddenTests,
        stop: &CancellationToken,
    ) -> Result<Vec<String>, TreesError> {
        let now = self.trees.take_all(stop).await?;
        let whole = self.trees.with_paths_of(&now, &hidden.base, &hidden.paths, stop).await?;
        let base = self.trees.entries(&hidden.base, stop).await?;
        let others = self.trees.entries(&now, stop).await?.into_iter().filter(|entry| !base.contains(entry));
        let taken = hidden.taken_by(others.map(|entry| entry.path).collect());
        self.trees.put_back(&whole, None, stop).await?;
        Ok(taken)
    }

    /// Hides everything from the agent that would show hidden tests. Call it after the layers are
    /// in place.
    pub(super) fn hide_from_agent(&mut self, gate: &Gate, settings: &DriverSettings, run: &RunDir, top: &Path) {
        if gate.hidden.is_none() {
            return;
        }
        let common = gate.repository.as_ref().map(|source| source.common().to_owned());
        let mut hidden = vec![self.origin.clone()];
        hidden.extend(common.iter().flat_map(|common| checkouts(common)));
        hidden.extend(common.iter().flat_map(|common| other_repositories(common)));
        hidden.extend(common);
        // Reports of earlier runs name failed hidden tests.
        hidden.extend(settings.reports.iter().chain(&settings.patch).cloned());
        hidden.extend(BUILDS.iter().map(|name| PathBuf::from(variable(settings, name))));
        let real = hidden.into_iter().filter_map(|path| path.canonicalize().ok());
        let is_apart = |path: &PathBuf| !settings.workspace.starts_with(path) && !path.starts_with(top);
        let mut hidden: BTreeSet<PathBuf> = real.filter(is_apart).collect();
        let (seen, git) = (run.path().join(REPOSITORY), top.join(".git"));
        let mount = |from: PathBuf, at: PathBuf| Mount { from, at, writable: false };
        let mut mounts = Vec::new();
        if *top == settings.workspace {
            mounts.extend([mount(seen.join(".git"), SEEN_AT.into()), mount(seen.join("gitfile"), git)]);
        } else {
            hidden.insert(git); // the repository that the agent sees begins at the workspace
        }
        let layered = self.dependencies.layered.iter();
        mounts.extend(layered.map(|path| mount(settings.workspace.join(path), self.origin.join(path))));
        self.dependencies.agent_view = AgentView { hidden: hidden.into_iter().collect(), mounts };
    }
}

/// Returns the main checkout of a repository and its linked worktrees.
fn checkouts(common: &Path) -> Vec<PathBuf> {
    let linked = fs::read_dir(common.join("worktrees")).into_iter().flatten().flatten();
    let linked = linked.filter_map(|entry| fs::read_to_string(entry.path().join("gitdir")).ok());
    let linked = linked.filter_map(|text| Some(Path::new(text.trim_end()).parent()?.to_owned()));
    let main = common.file_name().filter(|name| *name == ".git").and_then(|_| common.parent());
    linked.chain(main.map(Path::to_owned)).collect()
}

/// Returns the folders of this machine from which a repository gets objects: its remotes, and the
/// object folders that it borrows from.
fn other_repositories(common: &Path) -> Vec<PathBuf> {
    let text = |name: &str| fs::read_to_string(common.join(name)).unwrap_or_default();
    let (config, borrowed) = (text("config"), text("objects/info/alternates"));
    let value = |line: &str| {
        let (key, value) = line.split_once('=')?;
        let value = value.trim().trim_matches('"');
        matches!(key.trim(), "url" | "pushurl").then(|| value.strip_prefix("file://").unwrap_or(value).to_owned())
    };
    let remotes = config.lines().filter_map(value).map(|remote| common.join("..").join(remote));
    let borrowed = borrowed.lines().filter(|line| !line.is_empty()).map(|line| common.join("objects").join(line));
    // Beside borrowed objects there may be a checkout.
    let owner = |objects: PathBuf| match objects.canonicalize().ok().and_then(|it| Some(it.parent()?.to_owned())) {
        Some(git) if git.ends_with(".git") => git.parent().map_or(objects, Path::to_owned),
        Some(git) => git,
        None => objects,
    };
    remotes.chain(borrowed.map(owner)).collect()
}

impl EffectRunner {
    /// Puts the hidden files back into the worktree. No process of the agent may be alive. Returns
    /// notes for people.
    pub(super) async fn put_back_hidden(&self, stop: &CancellationToken) -> Vec<String> {
        let ready = self.ready.get().filter(|_| !self.has_left());
        let Some((ready, hidden)) = ready.and_then(|ready| Some((ready, ready.gate.as_ref()?.hidden.as_ref()?))) else {
            return Vec::new();
        };
        match ready.workspace.put_back_hidden(hidden, stop).await {
            Ok(taken) => {
                let note = |path: &String| format!("{path} of the agent was replaced by the base's own hidden file");
                taken.iter().take(NAMED).map(note).collect()
            }
            Err(fault) => vec![format!("cannot put hidden files back into the worktree: {}", chain(&fault))],
        }
    }
}
