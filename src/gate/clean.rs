//! The clean room: a tree in a fresh folder, with caches that fledge itself has filled on the base, and the wall around what runs there.
//! What git ignores gets in only as it was before the agent, so nothing that an agent has left beside the tree counts.

mod layers;

pub(in crate::gate) use layers::Below;

use super::base::Caches;
use super::history;
use super::holdout;
use super::install::{self, Installation};
use super::installed::reached;
use super::names::has_name;
use super::planted::word;
use super::{Gate, Site};
use crate::id::TreeId;
use crate::lane::Lane;
use crate::lane_runner::{Behind, Room};
use crate::process::wall::{Holes, Layer, Mount, WallKind, at_home_in};
use crate::process::{self, End, Invocation, Variables};
pub(super) use crate::store::clear;
use crate::workspace::replica::{self, History, RoomRepository};
use crate::workspace::trees::TreesFault;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Variables that lead to the downloads of a toolchain, with the toolchain's program, which names its
/// folder among the caches of a lane that has a `setup`.
const FETCHED: [(&str, &str); 5] = [
    ("CARGO_HOME", "cargo"),
    ("GOPATH", "go"),
    ("npm_config_cache", "npm"),
    ("PIP_CACHE_DIR", "pip"),
    ("UV_CACHE_DIR", "uv"),
];
/// The variable that leads builds out of the tree, where no room may write.
const BUILDS: &str = "CARGO_TARGET_DIR";
/// Where these are found behind the wall, below the home.
const FETCHED_AT: &str = ".fledge-fetched";

/// The place of the history of its base in a room behind bubblewrap.
const HISTORY_AT: &str = "/tmp/.fledge-history";

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
        let behind = Behind { wall: site.wall.clone(), holes, at };
        let own = site.env.iter().filter(|(name, _)| name != BUILDS).cloned();
        let mut room = Self { folder, files, behind, env: Variables::new(own), held_at: None, layers: Vec::new() };
        let nothing = TreeId::empty();
        let as_before = if wanted.caches.is_some_and(Caches::have_start) { &nothing } else { wanted.base };
        let index = room.folder.join("index");
        site.trees.export_with_index(wanted.tree, as_before, &room.files(), &index, stop).await?;
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
        room.add_repository(site, wanted, &index, stop).await?;
        room.bring(site, wanted, stop).await?;
        if site.wall.kind() == WallKind::Off {
            room.env = at_home_in(&room.folder, &room.env).map_err(io(&room.folder))?;
        }
        Ok(room)
    }

    /// The folder that the tree is in.
    pub(super) fn files(&self) -> PathBuf {
        self.files.clone()
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

    /// Lets through the wall what this room needs.
    fn open(&mut self, site: &Site, wanted: Wanted<'_>) -> Result<(), RoomFault> {
        let (files, at) = (self.files(), self.behind.at.clone());
        let home = self.env.get("HOME").map(PathBuf::from);
        let holes = &mut self.behind.holes;
        holes.network = wanted.lane.network;
        holes.hidden.clone_from(&site.hidden);
        if site.wall.kind() == WallKind::Landlock {
            // Elsewhere the room lies in its place, and what the agent has left there is not to be seen.
            holes.hidden.push(site.root.clone());
        }
        if let Some(held_out) = &wanted.lane.held_out {
            self.held_at = Some(match site.wall.kind() {
                WallKind::Bubblewrap => {
                    let at = Path::new("/tmp").join(word());
                    holes.mounts.push(Mount { from: held_out.clone(), at: at.clone(), writable: false });
                    at
                }
                WallKind::Landlock | WallKind::Off => {
                    holes.hidden.retain(|path| path != held_out);
                    holes.read_only.push(held_out.clone());
                    held_out.clone()
                }
            });
        }
        holes.home = home.clone();
        if site.wall.kind() == WallKind::Bubblewrap {
            holes.mounts.push(Mount { from: files.clone(), at: at.clone(), writable: true });
            let kept = wanted.kept.iter().filter(|path| !site.has_layers && is_real(&files.join(path)));
            let kept = kept.map(|path| Mount { from: files.join(path), at: at.join(path), writable: false });
            holes.mounts.extend(kept);
        } else {
            holes.writable.push(files);
        }
        let caches = wanted.caches.filter(|_| !wanted.lane.setup.is_empty());
        // What the base's own setup fetches is what every later room finds, and cannot change.
        let (fetched, writable): (&dyn Fn(&str) -> PathBuf, bool) = match (caches, wanted.dependencies) {
            (Some(caches), _) => (&|name| caches.fetched(name), caches.is_open()),
            (None, Dependencies::Installed(installation)) if !site.has_layers => {
                (&|name| installation.fetched(name), false)
            }
            (None, Dependencies::Awaited(folder)) if !site.has_layers => (&|name| install::fetched(folder, name), true),
            (None, _) => return Ok(()),
        };
        let Some(home) = home else { return Ok(()) };
        // An installation fills the caches of its own programs; others stay as they are.
        let commands: Option<Vec<&str>> = match (caches, wanted.dependencies) {
            (None, Dependencies::Installed(it)) => Some(it.told.commands.iter().map(String::as_str).collect()),
            (None, Dependencies::Awaited(_)) => Some(wanted.lane.steps.iter().map(|step| step.run.as_str()).collect()),
            (_, _) => None,
        };
        let is_filled = |name: &str| commands.as_ref().is_none_or(|all| all.iter().any(|run| has_name(run, name)));
        for (variable, name) in FETCHED.into_iter().filter(|(_, name)| is_filled(name)) {
            let from = fetched(name);
            fs::create_dir_all(&from).map_err(|source| RoomFault::Io { path: from.clone(), source })?;
            let at = match site.wall.kind() {
                WallKind::Bubblewrap => home.join(FETCHED_AT).join(name),
                WallKind::Landlock | WallKind::Off => from.clone(),
            };
            self.env = self.env.with([(&variable.to_owned(), &at.to_string_lossy().into_owned())]);
            match site.wall.kind() {
                WallKind::Bubblewrap => self.behind.holes.mounts.push(Mount { from, at, writable }),
                WallKind::Landlock | WallKind::Off if writable => self.behind.holes.writable.push(from),
                WallKind::Landlock | WallKind::Off => {}
            }
        }
        Ok(())
    }

    /// Gives the room a repository, where the user's workspace is in one, and shows the room the
    /// history of its base.
    async fn add_repository(
        &mut self,
        site: &Site,
        wanted: Wanted<'_>,
        index: &Path,
        stop: &CancellationToken,
    ) -> Result<(), RoomFault> {
        let Some(source) = &wanted.gate.repository else { return Ok(()) };
        let history = history::kept_or_made(site, source, wanted.base, stop).await?;
        let from = history.as_ref().map_or(Path::new(""), History::folder).to_owned();
        let is_mounted = site.wall.kind() == WallKind::Bubblewrap;
        let seen_at = if is_mounted { PathBuf::from(HISTORY_AT) } else { from.clone() };
        let (base, tree) = (wanted.base, wanted.tree);
        let repository = RoomRepository { source, history: history.as_ref(), seen_at: &seen_at, base, tree };
        replica::write(&site.trees, repository, &self.files(), index, stop).await?;
        let holes = &mut self.behind.holes;
        match (history, is_mounted) {
            (Some(_), true) => holes.mounts.push(Mount { from, at: seen_at, writable: false }),
            (Some(_), false) => holes.read_only.push(from),
            (None, _) => {}
        }
        // A room at the place of the user's checkout covers the user's `.git` already.
        holes.hidden.extend(Some(source.common().to_owned()).filter(|common| !common.starts_with(&self.behind.at)));
        Ok(())
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
        let _left = tokio::task::spawn_blocking(move || clear(&folder)).await;
    }
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

/// Copies a folder with all times, modes and links.
pub(super) async fn copy_tree(
    from: &Path,
    to: &Path,
    env: &[(String, String)],
    stop: &CancellationToken,
) -> Result<(), String> {
    let reflink = if cfg!(target_os = "linux") { &["-a", "--reflink=auto"][..] } else { &["-a"][..] };
    let mut args: Vec<String> = reflink.iter().map(|arg| (*arg).to_owned()).collect();
    args.extend([from, to].map(|path| path.to_string_lossy().into_owned()));
    let ended = process::run(
        Invocation {
            program: "cp".into(),
            args,
            dir: "/".into(),
            env: env.to_vec().into(),
            timeout: None,
            grace: Duration::ZERO,
            linger: Duration::ZERO,
            log: None,
            log_limit: 0,
        },
        stop,
        &|_| {},
    )
    .await;
    match ended.end {
        End::Exited(0) => Ok(()),
        End::Stopped => Err("it was stopped".into()),
        End::NotStarted(why) | End::Exceeded(why) => Err(why),
        End::Exited(_) | End::Signalled(_) | End::TimedOut => Err(ended.output.text(500).trim_end().to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt as _;

    #[tokio::test]
    async fn a_cache_is_copied_with_its_times_modes_and_links() {
        let dir = tempfile::tempdir().unwrap();
        let (from, to) = (dir.path().join("from"), dir.path().join("to"));
        fs::create_dir_all(from.join("bin")).unwrap();
        fs::write(from.join("bin/tool"), "x").unwrap();
        fs::set_permissions(from.join("bin/tool"), Permissions::from_mode(0o755)).unwrap();
        std::os::unix::fs::symlink("tool", from.join("bin/link")).unwrap();
        let old = std::time::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
        fs::File::options().write(true).open(from.join("bin/tool")).unwrap().set_modified(old).unwrap();
        let env = vec![("PATH".to_owned(), "/usr/bin:/bin".to_owned())];
        copy_tree(&from, &to, &env, &CancellationToken::new()).await.unwrap();
        let meta = fs::metadata(to.join("bin/tool")).unwrap();
        assert_eq!((meta.permissions().mode() & 0o777, meta.modified().unwrap()), (0o755, old));
        assert_eq!(fs::read_link(to.join("bin/link")).unwrap(), Path::new("tool"));
    }
}
