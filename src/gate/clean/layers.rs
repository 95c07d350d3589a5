//! Layers over the folders of a room: installed dependencies, build output and caches of tools.
//! Also pins for protected files.

use super::relocate::relocate;
use super::{CleanRoom, RoomDependencies, RoomError, RoomRequest, clear, is_real};
use crate::gate::installed::reached;
use crate::gate::{GateSite, built};
use crate::process::sandbox::{MountView, Mounts, PinnedPath, ToolCache, ViewLayer};
use crate::process::sandbox::{add_empty_layers, add_layers, tool_caches};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;
use tokio_util::sync::CancellationToken;

/// A folder over which a room has a layer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::gate) enum LowerFolder {
    /// A folder of the workspace, by its path there.
    Workspace(String),
    /// A cache of a tool.
    Cache(PathBuf),
}

impl CleanRoom {
    /// Gives the room the installed dependencies. With layers, nothing is copied and nothing that
    /// is written stays. Without layers, the room gets copies.
    pub(super) async fn install_dependencies(
        &mut self,
        site: &GateSite,
        wanted: RoomRequest<'_>,
        stop: &CancellationToken,
    ) -> Result<(), RoomError> {
        let is_wanted = |path: &str| !wanted.lane.kept_folders().any(|cache| Path::new(path).starts_with(cache));
        let mut mounts = Mounts::default();
        let installation = wanted.dependencies.installation();
        if site.has_layers {
            let (files, over) = (self.files(), self.folder.join("layers"));
            let io = |source| RoomError::Io { path: over.clone(), source };
            mounts = wanted.gate.installed.mounts(&site.origin, &files, &over, is_wanted).map_err(io)?;
            for layer in &mut mounts.layers {
                let path =
                    layer.at.strip_prefix(&files).map_or_else(|_| String::new(), |path| path.to_string_lossy().into());
                layer.between = installation.map_or(Vec::new(), |it| it.layers_over(&path));
                self.layers.push((LowerFolder::Workspace(path), layer.clone()));
            }
            let kept = self.cached(site, wanted).into_iter().filter(|_| wanted.caches.is_some_and(|it| !it.is_open()));
            let new = installation.iter().flat_map(|it| it.whole()).filter(|(path, _)| is_wanted(path));
            for (path, lower) in kept.chain(new.map(|(path, lower)| (path.clone(), lower))) {
                let at = files.join(&path);
                clear(&at).and_then(|()| fs::create_dir_all(&at)).map_err(io)?;
                let over = over.join(format!("cache-{}", mounts.layers.len()));
                mounts.layers.push(ViewLayer { lower, between: Vec::new(), over, at });
            }
            self.lay_over_caches(site, wanted, &mut mounts).map_err(io)?;
            mounts.pins.extend(pins(&files, wanted.kept));
            mounts.pins.extend(compiled(&files, wanted.kept).map_err(io)?);
            // Outer pins first. Of two pins for one path, the read-only one stays.
            mounts.pins.sort_by(|one, other| one.at.cmp(&other.at).then(other.read_only.cmp(&one.read_only)));
            mounts.pins.dedup_by(|one, other| one.at == other.at);
        } else {
            let folders = wanted.gate.installed.copies(&site.ignored, installation);
            for (path, from) in folders.into_iter().filter(|(path, _)| is_wanted(path)) {
                if let Some(copy) = reached(&self.files(), path).filter(|_| from.is_dir()) {
                    self.copy(site, &from, path, stop).await?;
                    relocate(&copy, &site.origin, &self.behind.at)
                        .map_err(|source| RoomError::Io { path: copy, source })?;
                }
            }
        }
        self.behind.rules.read_only.extend(wanted.gate.installed.interpreters.iter().cloned());
        mounts.relocate(&self.files(), &self.files);
        match (&self.behind.rules.view, site.sandbox.helper()) {
            (Some(view), _) => view.add(&mounts).await.map_err(RoomError::Layers)?,
            (None, Some(helper)) if !mounts.is_empty() => {
                self.behind.rules.view = Some(MountView::open(helper, &mounts).await.map_err(RoomError::Layers)?);
            }
            (None, _) => {}
        }
        Ok(())
    }

    /// Lays layers over the caches of tools that the lane may use. In a room that installs
    /// dependencies every cache gets a layer, even one that does not exist yet. The layers contain
    /// what the lane's builds made on the base.
    fn lay_over_caches(&mut self, site: &GateSite, wanted: RoomRequest<'_>, mounts: &mut Mounts) -> io::Result<()> {
        let installs = matches!(wanted.dependencies, RoomDependencies::Awaited(_));
        let installed: BTreeMap<&PathBuf, PathBuf> =
            wanted.dependencies.installation().iter().flat_map(|it| it.caches()).collect();
        let is_used = |cache: &ToolCache| {
            let may_be = cache.exists && built::may_start(wanted.lane, cache.programs);
            (installs || may_be || installed.contains_key(&cache.folder)) && !site.root.starts_with(&cache.folder)
        };
        let caches = tool_caches(|name| self.env.get(name)).into_iter();
        let used = caches.filter(|cache| is_used(cache) && !self.behind.at.starts_with(&cache.folder));
        let made = wanted.gate.judged.get().map(|base| base.builds(wanted.lane)).filter(|made| made.is_dir());
        let between = |it: &ToolCache| {
            let made = made.iter().filter(|_| it.is_build_cache);
            made.chain(installed.get(&it.folder)).cloned().collect()
        };
        let used: Vec<(ToolCache, Vec<PathBuf>)> = used.map(|it| (it.clone(), between(&it))).collect();
        // Builds of the user may have left hidden tests in a cache, in compiled form.
        let (fresh, plain): (Vec<_>, Vec<_>) =
            used.into_iter().partition(|(it, _)| it.is_build_cache && wanted.gate.hidden.is_some());
        let first = mounts.layers.len();
        let own = self.folder.join("tool-caches");
        let folders = |all: &[(ToolCache, Vec<PathBuf>)]| -> Vec<(PathBuf, Vec<PathBuf>)> {
            all.iter().map(|(it, between)| (it.folder.clone(), between.clone())).collect()
        };
        let mut layered = add_layers(folders(&plain).into_iter(), &own, mounts)?;
        layered.extend(add_empty_layers(folders(&fresh).into_iter(), &own, mounts)?);
        let used: Vec<(ToolCache, Vec<PathBuf>)> = plain.into_iter().chain(fresh).collect();
        let layers = used.iter().map(|(it, _)| it).zip(&mounts.layers[first..]);
        layers.filter(|(it, _)| it.is_build_cache).try_for_each(|(_, layer)| forget_results(&layer.over))?;
        let below = used.into_iter().map(|(it, _)| LowerFolder::Cache(it.folder));
        self.layers.extend(below.zip(mounts.layers[first..].iter().cloned()));
        self.behind.rules.mounts.extend(layered);
        Ok(())
    }

    /// Moves the files that the builds of a lane put into caches of tools to the folder `to`. The
    /// room cannot be used afterwards.
    pub(in crate::gate) fn keep_builds(&mut self, to: &Path) -> io::Result<()> {
        let caches: Vec<ToolCache> = tool_caches(|name| self.env.get(name));
        let is_of_builds = |below: &LowerFolder| {
            let has = |folder: &PathBuf| caches.iter().any(|it| it.is_build_cache && it.folder == *folder);
            matches!(below, LowerFolder::Cache(folder) if has(folder))
        };
        let Some((_, upper)) = self.written().into_iter().find(|(below, _)| is_of_builds(below)) else { return Ok(()) };
        to.parent().map_or(Ok(()), fs::create_dir_all)?;
        fs::rename(upper, to)
    }

    /// Returns the layers over dependencies and caches that were written to, each with the folder
    /// that holds the changes. Afterwards the room has no layers, and its own files are at
    /// [`CleanRoom::made`].
    pub(in crate::gate) fn written(&mut self) -> Vec<(LowerFolder, PathBuf)> {
        self.behind.rules.view = None;
        let written =
            std::mem::take(&mut self.layers).into_iter().map(|(below, layer)| (below, layer.over.join("upper")));
        let is_empty = |path: &Path| fs::read_dir(path).map_or(true, |mut entries| entries.next().is_none());
        written.filter(|(_, upper)| !is_empty(upper)).collect()
    }
}

/// Makes Go run all tests again, because a cached result does not depend on files that were read by
/// programs that a test started. `over` is the layer over Go's cache.
fn forget_results(over: &Path) -> io::Result<()> {
    let expire = over.join("upper/testexpire.txt");
    expire.parent().map_or(Ok(()), fs::create_dir_all)?;
    fs::write(&expire, "")?;
    let now = fs::metadata(&expire)?.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
    fs::write(&expire, format!("{}\n", now.as_nanos()))
}

/// Returns pins for the folders in which Python keeps compiled code of protected files. They stay
/// empty, because Python accepts a compiled file by the time and the size of its source. Code that
/// is imported early could put other tests there.
fn compiled(files: &Path, kept: &[String]) -> io::Result<Vec<PinnedPath>> {
    let sources = kept.iter().map(Path::new).filter(|path| path.extension().is_some_and(|it| it == "py"));
    let folders: BTreeSet<&Path> = sources.filter_map(Path::parent).collect();
    let all = folders.into_iter().map(|folder| files.join(folder).join("__pycache__"));
    let new = all.filter(|at| at.symlink_metadata().is_err());
    new.map(|at| fs::create_dir(&at).map(|()| PinnedPath { at, read_only: true })).collect()
}

/// Returns pins for protected files of a room and for each folder above them. Nothing can move or
/// cover a pinned path, not even for a moment. New files can be made beside it.
pub(super) fn pins(files: &Path, kept: &[String]) -> Vec<PinnedPath> {
    let kept: Vec<&String> = kept.iter().filter(|path| is_real(&files.join(path))).collect();
    let folders = kept.iter().flat_map(|path| Path::new(path.as_str()).ancestors().skip(1));
    let folders: BTreeSet<&Path> = folders.filter(|folder| !folder.as_os_str().is_empty()).collect();
    let folders = folders.into_iter().map(|folder| PinnedPath { at: files.join(folder), read_only: false });
    folders.chain(kept.into_iter().map(|path| PinnedPath { at: files.join(path), read_only: true })).collect()
}
