//! Clean rooms: a tree in a fresh folder, caches that fledge itself filled on the base, and a
//! sandbox around the programs that run there.
//!
//! Ignored files enter a room only in the state before the agent started, so files that an agent
//! left beside the tree have no effect.

mod copy;
mod layers;
mod open;
mod overlay;
mod relocate;

pub(super) use copy::copy_tree;
pub(in crate::gate) use layers::LowerFolder;
use open::history_at;
pub(in crate::gate) use overlay::Overlay;

use super::base::LaneCaches;
use super::built;
use super::history;
use super::holdout;
use super::install::{INSTALLED, Installation, is_completed};
use super::installed::reached;
use super::refreshed::REFRESHED;
use super::{Gate, GateSite};
use crate::id::TreeId;
use crate::lane::Lane;
use crate::lane_runner::{LaneRoom, SandboxedSteps};
use crate::process::sandbox::{PathRules, SandboxKind, ViewLayer, at_home_in, trusted_in_copy};
use crate::process::{self, Variables};
pub(super) use crate::store::clear;
use crate::workspace::replica::{self, KeptHistory, RoomRepository};
use crate::workspace::trees::{Trees, TreesError};
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use tokio_util::sync::CancellationToken;

/// The variable that directs builds out of the tree, to a folder that no room may write.
const BUILDS: &str = "CARGO_TARGET_DIR";
/// The permissions that the owner of a room's folder needs.
const OWNER: u32 = 0o700;

/// An error of making a room.
#[derive(Debug, thiserror::Error)]
pub enum RoomError {
    /// The tree cannot be written to the room.
    #[error("cannot make a clean room")]
    Tree(#[from] TreesError),
    /// A file or folder of the room cannot be made.
    #[error("cannot make a clean room: `{}`", path.display())]
    Io {
        /// The path.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The layers over the room cannot be mounted.
    #[error("cannot make a clean room: {0}")]
    Layers(String),
    /// A cache cannot be copied.
    #[error("cannot make a clean room: cannot copy the cache `{path}`: {why}")]
    Cache {
        /// Its path in the tree.
        path: String,
        /// The error output of the copying program.
        why: String,
    },
}

/// The lane and the tree that a room is made for, and what the room contains.
#[derive(Debug, Clone, Copy)]
pub(super) struct RoomRequest<'a> {
    pub(super) lane: &'a Lane,
    pub(super) tree: &'a TreeId,
    pub(super) base: &'a TreeId,
    /// The caches that the room gets.
    pub(super) caches: Option<&'a LaneCaches>,
    pub(super) dependencies: RoomDependencies<'a>,
    /// The files and folders of the tree that the lane cannot change.
    pub(super) kept: &'a [String],
    pub(super) gate: &'a Gate,
}

impl RoomRequest<'_> {
    /// Returns whether all files get new times. A build that starts with the output of another base
    /// must treat all sources as new.
    fn has_new_times(&self) -> bool {
        self.caches.is_some_and(LaneCaches::have_start)
    }
}

/// The installed dependencies of a room.
#[derive(Debug, Clone, Copy)]
pub(super) enum RoomDependencies<'a> {
    /// The dependencies from before the agent started.
    AsBefore,
    /// Dependencies that were installed for the work.
    Installed(&'a Installation),
    /// Dependencies that programs install in this room. The folder keeps them.
    Awaited(&'a Path),
}

impl<'a> RoomDependencies<'a> {
    pub(super) fn from_installation(installation: Option<&'a Installation>) -> Self {
        installation.map_or(Self::AsBefore, Self::Installed)
    }

    fn installation(self) -> Option<&'a Installation> {
        match self {
            Self::Installed(installation) => Some(installation),
            Self::AsBefore | Self::Awaited(_) => None,
        }
    }
}

/// A clean room. Closing or dropping it removes its folder.
#[derive(Debug)]
pub(super) struct CleanRoom {
    folder: PathBuf,
    /// The folder of the tree. It has the name of the project's folder, because some builds derive
    /// a name from it.
    files: PathBuf,
    behind: SandboxedSteps,
    env: Variables,
    /// The path at which the room sees the folder of its hold-out lane.
    held_at: Option<PathBuf>,
    /// The layers over installed dependencies and caches of tools.
    layers: Vec<(LowerFolder, ViewLayer)>,
    /// The overlay that contains the files. `None` where the room has its own copy of all files.
    overlay: Option<Overlay>,
}

impl CleanRoom {
    /// Makes a room. Rooms exist one at a time and have the same path, so programs cannot recognize
    /// a room by its path.
    pub(super) async fn make(
        site: &GateSite,
        wanted: RoomRequest<'_>,
        stop: &CancellationToken,
    ) -> Result<Self, RoomError> {
        let folder = site.rooms.join("room");
        let io = |path: &Path| {
            let path = path.to_owned();
            |source| RoomError::Io { path, source }
        };
        clear(&folder).map_err(io(&folder))?;
        fs::create_dir_all(&folder).map_err(io(&folder))?;
        let files = folder.join("tree").join(site.origin.file_name().unwrap_or_default());
        let at = match site.sandbox.kind() {
            SandboxKind::Bubblewrap => site.origin.clone(),
            SandboxKind::Landlock | SandboxKind::Off => files.clone(),
        };
        let rules = PathRules { limits: site.limits, ..PathRules::default() };
        let behind = SandboxedSteps { sandbox: site.sandbox.clone(), rules, at: at.clone() };
        let own = Variables::new(site.env.iter().filter(|(name, _)| name != BUILDS).cloned());
        let env = if at == site.origin { own } else { trusted_in_copy(&own, &site.origin, &at) };
        let layers = Vec::new();
        let mut room = Self { folder, files, behind, env, held_at: None, layers, overlay: None };
        let history = room.write_files(site, wanted, stop).await?;
        // `install_dependencies` puts layers over caches that are complete.
        let has_layered_caches = site.has_layers && wanted.caches.is_some_and(|caches| !caches.is_open());
        for (path, from) in room.cached(site, wanted) {
            if !has_layered_caches {
                room.copy(site, &from, &path, stop).await?;
            }
        }
        let installation = wanted.dependencies.installation();
        let new = installation.iter().flat_map(|it| it.files());
        for path in new.chain(&wanted.lane.include_ignored).chain(&wanted.gate.installed.files) {
            let installed = installation.and_then(|it| it.file(path));
            let is_over = installed.is_some() && is_completed(path);
            let from = installed.unwrap_or_else(|| site.ignored.join(path));
            if let Some(to) = reached(&room.files(), path).filter(|to| from.is_file() && (is_over || !to.exists())) {
                to.parent().map_or(Ok(()), fs::create_dir_all).map_err(io(&to))?;
                fs::copy(&from, &to).map_err(io(&to))?;
            }
        }
        room.open(site, wanted)?;
        room.show(site, wanted, history);
        room.install_dependencies(site, wanted, stop).await?;
        let same_mode = || {
            let mode = fs::metadata(&site.origin)?.permissions().mode();
            fs::set_permissions(room.files(), Permissions::from_mode(mode | OWNER))
        };
        same_mode().map_err(io(&room.files))?;
        if site.sandbox.kind() == SandboxKind::Off {
            room.env = at_home_in(&room.folder, &room.env).map_err(io(&room.folder))?;
        }
        Ok(room)
    }

    /// Returns the path of the folder with the tree, for this process.
    pub(super) fn files(&self) -> PathBuf {
        match (&self.overlay, &self.behind.rules.view) {
            (Some(_), Some(view)) => view.seen(&self.files),
            (_, _) => self.files.clone(),
        }
    }

    /// Returns the overlay that contains the files, if there is one.
    pub(super) fn overlay(&self) -> Option<&Overlay> {
        self.overlay.as_ref()
    }

    /// Returns the path of a file or folder that programs of this room made and that no tree has.
    pub(super) fn made(&self, path: &str) -> PathBuf {
        self.overlay.as_ref().map_or(self.files.as_path(), Overlay::upper).join(path)
    }

    /// Returns whether the path of [`CleanRoom::made`] is complete: no part of it is in a checkout
    /// below the room.
    pub(super) fn has_made(&self, path: &str) -> bool {
        self.overlay.as_ref().is_none_or(|overlay| !overlay.has_below(path))
    }

    /// Returns the tree that a lane left here. It contains new files only where the lane may write.
    pub(super) async fn left(
        &self,
        trees: &Trees,
        tree: &TreeId,
        lane: &Lane,
        stop: &CancellationToken,
    ) -> Result<TreeId, TreesError> {
        match &self.overlay {
            Some(overlay) => overlay.left(trees, lane, stop).await,
            None => {
                let kept: Vec<String> = lane.kept_folders().cloned().collect();
                trees.retake(tree, &self.files, lane.writes, &kept, stop).await
            }
        }
    }

    /// Writes the tree and, if the user's workspace is in a repository, the room's repository.
    /// Returns the history of the base.
    async fn write_files(
        &mut self,
        site: &GateSite,
        wanted: RoomRequest<'_>,
        stop: &CancellationToken,
    ) -> Result<Option<KeptHistory>, RoomError> {
        let (index, over) = (self.folder.join("index"), self.folder.join("overlay"));
        let mut overlay = Overlay::prepare(site, wanted, over, &index, stop).await?;
        if overlay.is_none() {
            let nothing = TreeId::empty();
            let as_before = if wanted.has_new_times() { &nothing } else { wanted.base };
            site.trees.export_with_index(wanted.tree, as_before, &self.files, &index, stop).await?;
        }
        let files = overlay.as_ref().map_or(self.files.as_path(), Overlay::upper);
        let history = add_repository(site, wanted, (files, &index), overlay.is_some(), stop).await?;
        if let (Some(overlay), Some(helper)) = (&mut overlay, site.sandbox.helper()) {
            fs::create_dir_all(&self.files).map_err(|source| RoomError::Io { path: self.files.clone(), source })?;
            self.behind.rules.view = Some(overlay.mount(helper, &self.files).await?);
        }
        self.overlay = overlay;
        Ok(history)
    }

    /// Returns the lane as it runs in this room.
    pub(super) fn lane(&self, lane: &Lane) -> Lane {
        self.held_at.as_ref().map_or_else(|| lane.clone(), |at| holdout::led_to(lane, at))
    }

    /// Returns the place and the settings with which a lane runs here.
    pub(super) fn room(&self, site: &GateSite, log_dir: PathBuf) -> LaneRoom {
        let mut room = LaneRoom::new(self.files(), Vec::new(), log_dir, site.jobs);
        room.env = self.env.clone();
        room.behind = Some(self.behind.clone());
        room
    }

    /// Returns the kept folders of the lane, each with its path in the tree. Leaves out build
    /// output where the tree itself has files at that path: then these files are judged. Also
    /// leaves out build output that was made at another path.
    fn cached(&self, site: &GateSite, wanted: RoomRequest<'_>) -> Vec<(String, PathBuf)> {
        let is_free = |path: &&String| wanted.lane.cache.contains(path) || !self.files().join(path.as_str()).exists();
        let found = |path: &String| Some((path.clone(), wanted.caches?.found(path)?));
        let at = &self.behind.at;
        let fits = |(path, from): &(String, PathBuf)| {
            *at == site.origin || wanted.lane.cache.contains(path) || built::fits(from, at)
        };
        wanted.lane.kept_folders().filter(is_free).filter_map(found).filter(fits).collect()
    }

    /// Copies a cache into the room, sharing blocks where the file system can.
    async fn copy(&self, site: &GateSite, from: &Path, path: &str, stop: &CancellationToken) -> Result<(), RoomError> {
        let to = self.files().join(path);
        let io = |source| RoomError::Io { path: to.clone(), source };
        clear(&to).map_err(io)?;
        to.parent().map_or(Ok(()), fs::create_dir_all).map_err(io)?;
        copy_tree(from, &to, &process::with_path_outside(&site.env, &site.root), stop)
            .await
            .map_err(|why| RoomError::Cache { path: path.into(), why })
    }

    /// Removes the folder. A part that cannot be removed stays until the run is removed.
    pub(super) async fn close(mut self) {
        let folder = std::mem::take(&mut self.folder);
        self.behind.rules.view = None;
        let _left = tokio::task::spawn_blocking(move || clear(&folder)).await;
    }
}

/// Gives the room a repository, if the user's workspace is in one. Returns the history of the base.
async fn add_repository(
    site: &GateSite,
    wanted: RoomRequest<'_>,
    (files, index): (&Path, &Path),
    has_stat: bool,
    stop: &CancellationToken,
) -> Result<Option<KeptHistory>, RoomError> {
    let Some(source) = &wanted.gate.repository else { return Ok(None) };
    let history = history::kept_or_made(site, source, wanted.base, stop).await?;
    let seen_at = history_at(site).or(history.as_ref().map(KeptHistory::folder)).unwrap_or(Path::new(""));
    let (base, tree) = (wanted.base, wanted.tree);
    let repository = RoomRepository { source, history: history.as_ref(), seen_at, base, tree, has_stat };
    replica::write(&site.trees, repository, files, index, stop).await?;
    Ok(history)
}

/// Removes the dependencies that were installed for the trees of a run, and the caches that were
/// filled for them. A part that cannot be removed stays until the run is removed.
pub async fn forget_installations(run: &Path) {
    let folders = [INSTALLED, REFRESHED].map(|name| run.join(name));
    let work = move || folders.iter().for_each(|folder| drop(clear(folder)));
    let _left = tokio::task::spawn_blocking(work).await;
}

/// Returns whether the path exists and is not a link.
fn is_real(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|meta| !meta.is_symlink())
}

impl Drop for CleanRoom {
    fn drop(&mut self) {
        if !self.folder.as_os_str().is_empty() {
            let _left = clear(&self.folder);
        }
    }
}
