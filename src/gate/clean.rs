//! The clean room: a tree in a fresh folder, with caches that fledge itself has filled on the base, and the wall around what runs there.
//! What git ignores gets in only as it was before the agent, so nothing that an agent has left beside the tree counts.

mod copy;
mod layers;
mod open;
mod overlay;

pub(super) use copy::copy_tree;
pub(in crate::gate) use layers::Below;
use open::history_at;
pub(in crate::gate) use overlay::Overlay;

use super::base::Caches;
use super::history;
use super::holdout;
use super::install::{INSTALLED, Installation};
use super::installed::reached;
use super::refreshed::REFRESHED;
use super::{Gate, Site};
use crate::id::TreeId;
use crate::lane::Lane;
use crate::lane_runner::{Behind, Room};
use crate::process::wall::{Holes, Layer, WallKind, at_home_in, trusted_in_copy};
use crate::process::{self, Variables};
pub(super) use crate::store::clear;
use crate::workspace::replica::{self, History, RoomRepository};
use crate::workspace::trees::{Trees, TreesFault};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use tokio_util::sync::CancellationToken;

/// The variable that leads builds out of the tree, where no room may write.
const BUILDS: &str = "CARGO_TARGET_DIR";

/// Why there is no room.
#[derive(Debug, thiserror::Error)]
pub enum RoomFault {
    /// The tree cannot be written there.
    #[error("cannot make a clean room")]
    Tree(#[from] TreesFault),
    /// Something in it cannot be made.
    #[error("cannot make a clean room: `{}`", path.display())]
    Io {
        /// What.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// What is installed in the workspace cannot be laid over it.
    #[error("cannot make a clean room: {0}")]
    Layers(String),
    /// A cache cannot be copied.
    #[error("cannot make a clean room: the cache `{path}` cannot be copied: {why}")]
    Cache {
        /// Its path in the tree.
        path: String,
        /// What the copying program said.
        why: String,
    },
}

/// What a room is made for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted<'a> {
    pub(super) lane: &'a Lane,
    pub(super) tree: &'a TreeId,
    pub(super) base: &'a TreeId,
    /// What is copied into it.
    pub(super) caches: Option<&'a Caches>,
    pub(super) dependencies: Dependencies<'a>,
    /// Paths that stay as they are in the tree, folders or files.
    pub(super) kept: &'a [String],
    pub(super) gate: &'a Gate,
}

impl Wanted<'_> {
    /// Returns whether all files get new times: a build that begins with the output of another base
    /// must take all sources for new.
    fn has_new_times(&self) -> bool {
        self.caches.is_some_and(Caches::have_start)
    }
}

/// The installed dependencies of a room.
#[derive(Debug, Clone, Copy)]
pub(super) enum Dependencies<'a> {
    /// Those from before the agent.
    AsBefore,
    /// These.
    Installed(&'a Installation),
    /// Those that are to be installed in the room, which are kept in this folder.
    Awaited(&'a Path),
}

impl<'a> Dependencies<'a> {
    pub(super) fn of(installation: Option<&'a Installation>) -> Self {
        installation.map_or(Self::AsBefore, Self::Installed)
    }

    fn installation(self) -> Option<&'a Installation> {
        match self {
            Self::Installed(installation) => Some(installation),
            Self::AsBefore | Self::Awaited(_) => None,
        }
    }
}

/// A room. Its folder is gone when it is closed, or dropped.
#[derive(Debug)]
pub(super) struct CleanRoom {
    folder: PathBuf,
    /// The folder that the tree is in. It has the name of the project's folder, because some builds
    /// take a name from it.
    files: PathBuf,
    behind: Behind,
    env: Variables,
    /// Where it finds the folder of a lane that only the gate knows.
    held_at: Option<PathBuf>,
    /// The layers over installed dependencies and caches of tools.
    layers: Vec<(Below, Layer)>,
    /// The layer that its files are; `None` where it has all of them itself.
    overlay: Option<Overlay>,
}

impl CleanRoom {
    /// Makes a room. All of them lie at one place, one after the other: what runs there cannot tell by it which one it is in.
    pub(super) async fn make(site: &Site, wanted: Wanted<'_>, stop: &CancellationToken) -> Result<Self, RoomFault> {
        let folder = site.rooms.join("room");
        let io = |path: &Path| {
            let path = path.to_owned();
            |source| RoomFault::Io { path, source }
        };
        clear(&folder).map_err(io(&folder))?;
        fs::create_dir_all(&folder).map_err(io(&folder))?;
        let files = folder.join("tree").join(site.origin.file_name().unwrap_or_default());
        let at = match site.wall.kind() {
            WallKind::Bubblewrap => site.origin.clone(),
            WallKind::Landlock | WallKind::Off => files.clone(),
        };
        let holes = Holes { limits: site.limits, ..Holes::default() };
        let behind = Behind { wall: site.wall.clone(), holes, at: at.clone() };
        let own = Variables::new(site.env.iter().filter(|(name, _)| name != BUILDS).cloned());
        let env = if at == site.origin { own } else { trusted_in_copy(&own, &site.origin, &at) };
        let layers = Vec::new();
        let mut room = Self { folder, files, behind, env, held_at: None, layers, overlay: None };
        let history = room.write_files(site, wanted, stop).await?;
        for (path, from) in room.cached(wanted) {
            if !(site.has_layers && wanted.caches.is_some_and(|caches| !caches.is_open())) {
                room.copy(site, &from, &path, stop).await?;
            }
        }
        let installation = wanted.dependencies.installation();
        let new = installation.iter().flat_map(|it| it.files());
        for path in new.chain(&wanted.lane.include_ignored).chain(&wanted.gate.installed.files) {
            let from = installation.and_then(|it| it.file(path)).unwrap_or_else(|| site.ignored.join(path));
            if let Some(to) = reached(&room.files(), path).filter(|to| from.is_file() && !to.exists()) {
                to.parent().map_or(Ok(()), fs::create_dir_all).map_err(io(&to))?;
                fs::copy(&from, &to).map_err(io(&to))?;
            }
        }
        room.open(site, wanted)?;
        room.show(site, wanted, history);
        room.bring(site, wanted, stop).await?;
        if site.wall.kind() == WallKind::Off {
            room.env = at_home_in(&room.folder, &room.env).map_err(io(&room.folder))?;
        }
        Ok(room)
    }

    /// The path of the folder with the tree for this process.
    pub(super) fn files(&self) -> PathBuf {
        match (&self.overlay, &self.behind.holes.view) {
            (Some(_), Some(view)) => view.seen(&self.files),
            (_, _) => self.files.clone(),
        }
    }

    /// The layer that the files are.
    pub(super) fn overlay(&self) -> Option<&Overlay> {
        self.overlay.as_ref()
    }

    /// The folder in which programs of this room have made a file or folder that is in no tree.
    pub(super) fn made(&self, path: &str) -> PathBuf {
        self.overlay.as_ref().map_or(self.files.as_path(), Overlay::upper).join(path)
    }

    /// Returns whether nothing of a path is in the tree.
    pub(super) fn has_made(&self, path: &str) -> bool {
        self.overlay.as_ref().is_none_or(|overlay| !overlay.has_below(path))
    }

    /// The tree that a lane has left here, with new files where it may write.
    pub(super) async fn left(
        &self,
        trees: &Trees,
        tree: &TreeId,
        lane: &Lane,
        stop: &CancellationToken,
    ) -> Result<TreeId, TreesFault> {
        match &self.overlay {
            Some(overlay) => overlay.left(trees, lane, stop).await,
            None => {
                let kept: Vec<String> = lane.kept_folders().cloned().collect();
                trees.retake(tree, &self.files, lane.writes, &kept, stop).await
            }
        }
    }

    /// Writes the tree and its repository, where the user's workspace is in one. Returns the history
    /// of the base.
    async fn write_files(
        &mut self,
        site: &Site,
        wanted: Wanted<'_>,
        stop: &CancellationToken,
    ) -> Result<Option<History>, RoomFault> {
        let (index, over) = (self.folder.join("index"), self.folder.join("overlay"));
        let mut overlay = Overlay::lay(site, wanted, over, &index, stop).await?;
        if overlay.is_none() {
            let nothing = TreeId::empty();
            let as_before = if wanted.has_new_times() { &nothing } else { wanted.base };
            site.trees.export_with_index(wanted.tree, as_before, &self.files, &index, stop).await?;
        }
        let files = overlay.as_ref().map_or(self.files.as_path(), Overlay::upper);
        let history = add_repository(site, wanted, (files, &index), overlay.is_some(), stop).await?;
        if let (Some(overlay), Some(helper)) = (&mut overlay, site.wall.helper()) {
            fs::create_dir_all(&self.files).map_err(|source| RoomFault::Io { path: self.files.clone(), source })?;
            self.behind.holes.view = Some(overlay.mount(helper, &self.files).await?);
        }
        self.overlay = overlay;
        Ok(history)
    }

    /// The lane as it runs here.
    pub(super) fn lane(&self, lane: &Lane) -> Lane {
        self.held_at.as_ref().map_or_else(|| lane.clone(), |at| holdout::led_to(lane, at))
    }

    /// Where and how a lane runs here.
    pub(super) fn room(&self, site: &Site, log_dir: PathBuf) -> Room {
        let mut room = Room::new(self.files(), Vec::new(), log_dir, site.jobs);
        room.env = self.env.clone();
        room.behind = Some(self.behind.clone());
        room
    }

    /// The folders that are kept for the lane, by their paths in the tree. Where the tree has files in the place of build output, they are what is
    /// judged.
    fn cached(&self, wanted: Wanted<'_>) -> Vec<(String, PathBuf)> {
        let is_free = |path: &&String| wanted.lane.cache.contains(path) || !self.files().join(path.as_str()).exists();
        let found = |path: &String| Some((path.clone(), wanted.caches?.found(path)?));
        wanted.lane.kept_folders().filter(is_free).filter_map(found).collect()
    }

    /// Copies a cache in, sharing blocks where the file system can.
    async fn copy(&self, site: &Site, from: &Path, path: &str, stop: &CancellationToken) -> Result<(), RoomFault> {
        let to = self.files().join(path);
        let io = |source| RoomFault::Io { path: to.clone(), source };
        clear(&to).map_err(io)?;
        to.parent().map_or(Ok(()), fs::create_dir_all).map_err(io)?;
        copy_tree(from, &to, &process::with_path_outside(&site.env, &site.root), stop)
            .await
            .map_err(|why| RoomFault::Cache { path: path.into(), why })
    }

    /// Removes the folder; what cannot be removed is left to whoever removes the run.
    pub(super) async fn close(mut self) {
        let folder = std::mem::take(&mut self.folder);
        self.behind.holes.view = None;
        let _left = tokio::task::spawn_blocking(move || clear(&folder)).await;
    }
}

/// Gives the room with these files a repository, where the user's workspace is in one. Returns the
/// history of the base.
async fn add_repository(
    site: &Site,
    wanted: Wanted<'_>,
    (files, index): (&Path, &Path),
    has_stat: bool,
    stop: &CancellationToken,
) -> Result<Option<History>, RoomFault> {
    let Some(source) = &wanted.gate.repository else { return Ok(None) };
    let history = history::kept_or_made(site, source, wanted.base, stop).await?;
    let seen_at = history_at(site).or(history.as_ref().map(History::folder)).unwrap_or(Path::new(""));
    let (base, tree) = (wanted.base, wanted.tree);
    let repository = RoomRepository { source, history: history.as_ref(), seen_at, base, tree, has_stat };
    replica::write(&site.trees, repository, files, index, stop).await?;
    Ok(history)
}

/// Removes what was installed for the trees of a run, and the caches that were filled for them. What cannot be removed is left to
/// whoever removes the run.
pub async fn forget_installations(run: &Path) {
    let folders = [INSTALLED, REFRESHED].map(|name| run.join(name));
    let work = move || folders.iter().for_each(|folder| drop(clear(folder)));
    let _left = tokio::task::spawn_blocking(work).await;
}

/// Whether something that is no link is there.
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
