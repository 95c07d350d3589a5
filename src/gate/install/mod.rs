//! Installation of dependencies in which the work differs from the base. fledge derives the
//! commands from the project's package managers. They run with network and without package scripts,
//! on the base with the manifests and lock files of the work. The result is laid over the
//! dependencies from before the agent, only in rooms of this tree.

mod commands;
mod differ;
mod in_line;
mod packages;
mod refused;
mod replaced;
mod room;
mod vendored;

pub(super) use differ::is_lock;
pub(super) use room::{NO_SCRIPTS, is_completed};
pub(super) use vendored::allow_vendored_folders;

use super::base::BaseError;
use super::clean::{RoomError, clear};
use super::{Gate, GateSite, Policy, unable};
use crate::id::TreeId;
use crate::lane::Lane;
use crate::store::write_whole;
use crate::verdict::InstalledForChecks;
use crate::workspace::trees::TreesError;
use commands::{InstallCommand, InstallProject, install_commands};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use tokio_util::sync::CancellationToken;

/// The maximum size of a manifest or lock file that is compared, in bytes. Every change of a larger
/// file counts.
const LARGEST: u64 = 32 * 1024 * 1024;
/// The name of a run's folder with its installations.
pub(super) const INSTALLED: &str = "installed";
/// The file that fledge writes when an installation is complete.
const READY: &str = "ready.json";

/// The maximum number of lines in one message.
const MOST_LINES: usize = 5;

/// Joins the first [`MOST_LINES`] lines, with the number of further lines.
fn first(lines: &[String]) -> String {
    let more = lines.len().saturating_sub(MOST_LINES);
    let more = if more == 0 { String::new() } else { format!("; and {more} more") };
    format!("{}{more}", lines[..lines.len().min(MOST_LINES)].join("; "))
}

/// The result of an installation for a tree.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Installation {
    #[serde(skip)]
    folder: PathBuf,
    /// Layers over folders of the workspace: each folder with the one that holds its layer.
    over: BTreeMap<String, PathBuf>,
    /// Layers over tool caches in the user's home: each cache with the folder that holds its layer.
    caches: BTreeMap<PathBuf, PathBuf>,
    /// Folders of the workspace that the installation holds as a whole, below `whole`.
    whole: BTreeSet<String>,
    /// Git-ignored files and completed lock files of the workspace, which the installation holds
    /// below `files`.
    files: BTreeSet<String>,
    /// The commands and packages, for the report.
    pub(super) report: InstalledForChecks,
    /// Lines about manifests that no installer may run.
    #[serde(skip)]
    pub(super) withheld: Vec<String>,
}

impl Installation {
    /// Returns the layers over a folder of the workspace, newest first.
    pub(super) fn layers_over(&self, path: &str) -> Vec<PathBuf> {
        self.over.get(path).map(|at| self.folder.join(at)).into_iter().collect()
    }

    /// Returns the tool caches, each with its layer.
    pub(super) fn caches(&self) -> impl Iterator<Item = (&PathBuf, PathBuf)> {
        self.caches.iter().map(|(cache, at)| (cache, self.folder.join(at)))
    }

    /// Returns the folders of the workspace that are new or replace those from before the agent,
    /// each with its place on disk.
    pub(super) fn whole(&self) -> impl Iterator<Item = (&String, PathBuf)> {
        self.whole.iter().map(|path| (path, self.folder.join("whole").join(path)))
    }

    /// Returns the place on disk of one of [`Installation::files`], or `None`.
    pub(super) fn file(&self, path: &str) -> Option<PathBuf> {
        self.files.contains(path).then(|| self.folder.join("files").join(path))
    }

    /// Returns the paths of the git-ignored files and of the completed lock files.
    pub(super) fn files(&self) -> &BTreeSet<String> {
        &self.files
    }

    /// Returns the folder of a toolchain's downloads, for a room without layers.
    pub(super) fn fetched(&self, name: &str) -> PathBuf {
        fetched(&self.folder, name)
    }

    fn read(folder: &Path) -> Option<Self> {
        let text = fs::read(folder.join(READY)).ok()?;
        let kept: Self = serde_json::from_slice(&text).ok()?;
        Some(Self { folder: folder.to_owned(), ..kept })
    }
}

/// Returns the folder of a toolchain's downloads for an installation in `folder`.
pub(super) fn fetched(folder: &Path, name: &str) -> PathBuf {
    folder.join("fetched").join(name)
}

/// The difference between the dependencies of a tree and the base's.
#[derive(Debug)]
pub(super) struct DependencyDifference {
    /// The manifests and lock files with other dependencies than on the base.
    pub(super) paths: BTreeSet<String>,
    /// Changed manifests that an installer would run with network. They are left out, because the
    /// agent has no network and the task does not open them.
    withheld: BTreeSet<String>,
    /// New Python requirements, by manifest and by the table that lists them.
    requirements: BTreeMap<String, BTreeMap<String, Vec<String>>>,
    /// Entries that no installer may read, one line each.
    refused: Vec<String>,
    /// Changed paths that an installer may see.
    seen: Vec<String>,
}

impl DependencyDifference {
    /// Returns the first refused entry, as a line, of the manifests that the task does not open.
    pub(super) fn refused_entry(&self, gate: &Gate) -> Option<&String> {
        let is_opened = |line: &str| line.split_once(": `").is_some_and(|(path, _)| gate.policy.is_opened(path));
        self.refused.iter().find(|line| !is_opened(line))
    }

    /// Compares a tree with the base. Returns `None` if the dependencies are equal.
    pub(super) async fn compare(
        gate: &Gate,
        site: &GateSite,
        tree: &TreeId,
        stop: &CancellationToken,
    ) -> Result<Option<Self>, TreesError> {
        let changes = site.trees.changes(gate.base(), tree, stop).await?;
        let named = changes.iter().map(|change| &change.path).filter(|path| differ::names_dependencies(path));
        let (mut paths, mut requirements, mut refused) = (BTreeSet::new(), BTreeMap::new(), Vec::new());
        for path in named {
            let (was, is) = (read(site, gate.base(), path, stop).await?, read(site, tree, path, stop).await?);
            if !differ::differs(path, was.as_deref(), is.as_deref()) {
                continue;
            }
            paths.insert(path.clone());
            let listed =
                |bytes: Option<&[u8]>| bytes.map(|bytes| Policy::requirements(path, bytes)).unwrap_or_default();
            let (had, mut has) = (listed(was.as_deref()), listed(is.as_deref()));
            for (table, texts) in &mut has {
                texts.retain(|text| !had.get(table).is_some_and(|had| had.contains(text)));
            }
            has.retain(|_, texts| !texts.is_empty());
            refused.extend(refused::refused(path, was.as_deref(), is.as_deref(), &has));
            requirements.insert(path.clone(), has);
        }
        if paths.is_empty() {
            return Ok(None);
        }
        let is_granted = |path: &str| site.agent_has_network || gate.policy.is_opened(path);
        let withheld = |path: &str| why_withheld(path).is_some() && !is_granted(path);
        let is_seen = |path: &&String| differ::names_dependencies(path) || Policy::is_manifest(path);
        let seen = changes.iter().map(|change| &change.path).filter(|path| is_seen(path) && !withheld(path));
        let seen = seen.cloned().collect();
        let (withheld, paths) = paths.into_iter().partition(|path| withheld(path));
        Ok(Some(Self { paths, withheld, requirements, refused, seen }))
    }

    /// Returns the base with the manifests and lock files of a tree.
    pub(super) async fn ground(
        &self,
        gate: &Gate,
        site: &GateSite,
        tree: &TreeId,
        stop: &CancellationToken,
    ) -> Result<TreeId, TreesError> {
        site.trees.with_paths_of(gate.base(), tree, &self.seen, stop).await
    }

    /// Returns the ground with the sources that package managers look for.
    async fn ground_with_sources(
        &self,
        gate: &Gate,
        site: &GateSite,
        tree: &TreeId,
        stop: &CancellationToken,
    ) -> Result<TreeId, TreesError> {
        let changes = site.trees.changes(gate.base(), tree, stop).await?;
        let sources = changes.into_iter().map(|change| change.path);
        let sources = sources.filter(|path| differ::is_source(path, &self.paths));
        let paths: Vec<String> = sources.chain(self.seen.iter().cloned()).collect();
        site.trees.with_paths_of(gate.base(), tree, &paths, stop).await
    }

    /// Returns the commands that install the dependencies of the tree. Commands that only hold-out
    /// lanes need are hidden.
    fn commands(&self, gate: &Gate, site: &GateSite, files: &BTreeSet<String>) -> Vec<InstallCommand> {
        let runs = |lanes: &[Lane]| lanes.iter().flat_map(|lane| &lane.steps).map(|step| step.run.clone()).collect();
        let steps: Vec<String> = runs(&gate.lanes);
        let open = self.commands_for(gate, site, files, &steps);
        if gate.held_out.is_empty() {
            return open;
        }
        let all = [steps, runs(&gate.held_out)].concat();
        let all = self.commands_for(gate, site, files, &all).into_iter();
        all.map(|command| InstallCommand { is_hidden: !open.contains(&command), ..command }).collect()
    }

    fn commands_for(
        &self,
        gate: &Gate,
        site: &GateSite,
        files: &BTreeSet<String>,
        steps: &[String],
    ) -> Vec<InstallCommand> {
        let origin = if site.has_layers { &site.origin } else { &site.ignored };
        let read = |path: &str| fs::read_to_string(super::installed::reached(origin, path)?).ok();
        let list = |path: &str| {
            let entries = super::installed::reached(origin, path).and_then(|path| fs::read_dir(path).ok());
            let names =
                entries.into_iter().flatten().flatten().filter_map(|entry| entry.file_name().into_string().ok());
            names.collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>()
        };
        install_commands(&InstallProject {
            changed_manifests: &self.paths,
            files,
            installed: &gate.installed,
            steps,
            requirements: &self.requirements,
            read: &read,
            list: &list,
        })
    }

    /// Returns a line for each changed manifest that no installer runs, with the flag that permits
    /// it.
    fn withheld_lines(&self) -> Vec<String> {
        let line = |path: &String| {
            let cure = format!("allow it with `--network allow` or `--allow-edit {path}`");
            format!("{path} changed and {}; {cure}", why_withheld(path).unwrap_or_default())
        };
        self.withheld.iter().map(line).collect()
    }
}

/// Returns why an installer with network access does not get a changed file of the work.
fn why_withheld(path: &str) -> Option<&'static str> {
    if differ::is_program(path) {
        return Some("is a program, so fledge does not run it with network access");
    }
    let is_unknown = differ::is_lock(path) && !super::locks::compares(path);
    is_unknown.then_some("its format is not compared, so fledge does not install from it with network access")
}

/// Reads a file of a tree. For a file that is too large, returns the id of the tree, so that the
/// file counts as changed.
async fn read(
    site: &GateSite,
    tree: &TreeId,
    path: &str,
    stop: &CancellationToken,
) -> Result<Option<Vec<u8>>, TreesError> {
    match site.trees.read(tree, path, LARGEST, stop).await {
        Err(TreesError::TooLarge { .. }) => Ok(Some(tree.as_str().into())),
        read => read,
    }
}

/// The outcome of an installation.
#[derive(Debug)]
pub(super) enum InstallOutcome {
    /// All dependencies are installed.
    Done(Box<Installation>),
    /// This machine has no network or package manager, or no installer may run. The lines give the
    /// reasons.
    Impossible(Vec<String>),
}

/// Installs the dependencies of a tree. Returns `None` if they equal the base's or need no command.
/// An installation of this run for the same manifests and lock files is reused.
///
/// # Errors
/// [`BaseError::Install`] if a command fails or a manifest has refused entries; other faults if
/// trees, rooms or folders fail.
pub(super) async fn for_tree(
    gate: &Gate,
    site: &GateSite,
    tree: &TreeId,
    stop: &CancellationToken,
) -> Result<Option<InstallOutcome>, BaseError> {
    let Some(difference) = DependencyDifference::compare(gate, site, tree, stop).await.map_err(RoomError::from)? else {
        return Ok(None);
    };
    let ground = difference.ground_with_sources(gate, site, tree, stop).await.map_err(RoomError::from)?;
    let files: BTreeSet<String> = site.trees.paths(&ground, stop).await.map_err(RoomError::from)?.into_iter().collect();
    let commands = difference.commands(gate, site, &files);
    if commands.is_empty() {
        let withheld = difference.withheld_lines();
        return Ok((!withheld.is_empty()).then_some(InstallOutcome::Impossible(withheld)));
    }
    if !difference.refused.is_empty() {
        let command = commands.iter().map(InstallCommand::shown).collect::<Vec<_>>().join("` and `");
        let why = format!(
            "{}: fledge installs only packages from the registry for the checks, without options, folders or hooks",
            first(&difference.refused)
        );
        return Err(BaseError::Install { command, why, is_missing: false });
    }
    let withheld = difference.withheld_lines();
    let folder = site.rooms.with_file_name(INSTALLED).join(ground.as_str());
    if let Some(kept) = Installation::read(&folder) {
        return Ok(Some(InstallOutcome::Done(Box::new(Installation { withheld, ..kept }))));
    }
    let io = |source| BaseError::Cache { path: folder.clone(), source };
    clear(&folder).and_then(|()| fs::create_dir_all(&folder)).map_err(io)?;
    let mut installation = Installation { folder: folder.clone(), withheld, ..Installation::default() };
    match room::install(gate, site, &ground, &commands, &mut installation, stop).await {
        Ok(()) => {}
        Err(BaseError::Install { command, why, is_missing }) if is_missing || unable::says_offline(&why) => {
            let lacks = if is_missing { "cannot start here" } else { "cannot reach a registry" };
            let line = format!("new dependencies were not installed: `{command}` {lacks}");
            return Ok(Some(InstallOutcome::Impossible([vec![line], installation.withheld].concat())));
        }
        Err(fault) => return Err(fault),
    }
    // A lock file that the work changed is judged as it is.
    installation.files.retain(|path| !is_completed(path) || !difference.seen.contains(path));
    let text = serde_json::to_vec(&installation).map_err(|error| io(error.into()))?;
    write_whole(&folder.join(READY), &text)?;
    Ok(Some(InstallOutcome::Done(Box::new(installation))))
}
