//! Rooms whose files are a layer over the checkout of their base.

use super::{RoomError, RoomRequest};
use crate::gate::GateSite;
use crate::id::TreeId;
use crate::lane::Lane;
use crate::process::sandbox::{MountView, Mounts, ViewLayer};
use crate::workspace::replica::{Checkout, LayerEntry, LayerSides};
use crate::workspace::trees::{TreeChange, Trees, TreesError, path_text, text_path};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// The files of a room as a layer over a checkout.
#[derive(Debug)]
pub(in crate::gate) struct Overlay {
    sides: LayerSides,
    over: PathBuf,
    tree: TreeId,
    /// The changes from the base to the tree.
    changes: Vec<TreeChange>,
    /// The differences from the checkout before anything ran in the room.
    before: BTreeMap<PathBuf, LayerEntry>,
    /// Keeps the checkout in use.
    _checkout: Arc<Checkout>,
}

impl Overlay {
    /// Prepares the layer of a room below `over` and writes the index of its tree to `index`.
    /// Returns `None` if the room needs its own files: all of them get new times, or there is no
    /// checkout.
    pub(super) async fn prepare(
        site: &GateSite,
        wanted: RoomRequest<'_>,
        over: PathBuf,
        index: &Path,
        stop: &CancellationToken,
    ) -> Result<Option<Self>, RoomError> {
        if wanted.has_new_times() {
            return Ok(None);
        }
        let (base, tree) = (wanted.base, wanted.tree);
        let changes = site.trees.changes(base, tree, stop).await?;
        if !Checkout::is_enough_for(&changes) {
            return Ok(None);
        }
        let Some(checkout) = wanted.gate.checkout(site, stop).await? else { return Ok(None) };
        let sides = LayerSides { lower: checkout.files(), upper: over.join("upper") };
        checkout.lay_over(&site.trees, (tree, &changes), &sides.upper, index, stop).await?;
        let (tree, before) = (tree.clone(), BTreeMap::new());
        Ok(Some(Self { sides, over, tree, changes, before, _checkout: checkout }))
    }

    /// Returns the upper folder, which holds the room's own files.
    pub(super) fn upper(&self) -> &Path {
        &self.sides.upper
    }

    /// Mounts the two folders of the layer together at `at`.
    pub(super) async fn mount(&mut self, helper: &Path, at: &Path) -> Result<MountView, RoomError> {
        self.before = self.sides.differences(|path| path != Path::new(".git")).map_err(|source| self.unread(source))?;
        let (lower, over) = (self.sides.lower.clone(), self.over.clone());
        let layer = ViewLayer { lower, between: Vec::new(), over, at: at.to_owned() };
        let mounts = Mounts { pins: Vec::new(), layers: vec![layer] };
        MountView::open(helper, &mounts).await.map_err(RoomError::Layers)
    }

    /// Returns whether the checkout has something at a path.
    pub(super) fn has_below(&self, path: &str) -> bool {
        self.sides.lower.join(path).symlink_metadata().is_ok()
    }

    /// Returns the lower and the upper folder.
    pub(in crate::gate) fn sides(&self) -> &LayerSides {
        &self.sides
    }

    fn unread(&self, source: std::io::Error) -> RoomError {
        RoomError::Io { path: self.sides.upper.clone(), source }
    }

    /// Returns the tree that a lane left here. See [`Trees::retake`].
    pub(super) async fn left(
        &self,
        trees: &Trees,
        lane: &Lane,
        stop: &CancellationToken,
    ) -> Result<TreeId, TreesError> {
        let kept: BTreeSet<&Path> = lane.kept_folders().map(Path::new).collect();
        let changed: BTreeMap<PathBuf, bool> =
            self.changes.iter().map(|change| (text_path(&change.path), change.to_mode != 0)).collect();
        let folders: BTreeSet<&Path> = changed.keys().flat_map(|path| path.ancestors().skip(1)).collect();
        let has_tracked = |path: &Path| {
            folders.contains(path) || self.sides.lower.join(path).symlink_metadata().is_ok_and(|meta| meta.is_dir())
        };
        let enters =
            |path: &Path| path != Path::new(".git") && !kept.contains(path) && (lane.writes || has_tracked(path));
        let failed = |source| TreesError::Io { verb: "read", path: self.sides.upper.clone(), source };
        let now = self.sides.differences(enters).map_err(failed)?;
        let is_tracked = |path: &Path| {
            let is_below = || self.sides.lower.join(path).symlink_metadata().is_ok_and(|meta| !meta.is_dir());
            changed.get(path).copied().unwrap_or_else(is_below)
        };
        let is_kept = |path: &Path| path.ancestors().any(|it| kept.contains(it));
        let (mut written, mut gone, mut new) = (Vec::new(), Vec::new(), Vec::new());
        for (path, differs) in now.iter().filter(|(path, differs)| self.before.get(*path) != Some(*differs)) {
            match differs {
                _ if is_kept(path) => {}
                LayerEntry::Gone if is_tracked(path) => gone.push(path_text(path)),
                LayerEntry::Gone => {}
                LayerEntry::Written(..) if is_tracked(path) => written.push(path_text(path)),
                LayerEntry::Written(..) if lane.writes && !path.iter().any(|name| name == ".git") => {
                    new.push(path_text(path));
                }
                LayerEntry::Written(..) => {}
            }
        }
        let is_lost = |path: &&PathBuf| !now.contains_key(*path) && is_tracked(path) && !is_kept(path);
        gone.extend(self.before.keys().filter(is_lost).map(|path| path_text(path)));
        if !new.is_empty() {
            // `.gitignore` files count in the state in which the lane left them.
            let is_list = |path: &&String| path.rsplit('/').next() == Some(".gitignore");
            let lists: Vec<String> = written.iter().chain(&new).filter(is_list).cloned().collect();
            let listed = self.with(trees, (&lists, &gone), stop).await?;
            let ignored = trees.ignored(&listed, &new, stop).await?;
            written.extend(new.into_iter().filter(|path| !ignored.contains(path)));
        }
        self.with(trees, (&written, &gone), stop).await
    }

    /// Returns the room's tree with the written files added and the removed files left out.
    async fn with(
        &self,
        trees: &Trees,
        (written, gone): (&[String], &[String]),
        stop: &CancellationToken,
    ) -> Result<TreeId, TreesError> {
        if written.is_empty() && gone.is_empty() {
            return Ok(self.tree.clone());
        }
        trees.with_written(&self.tree, &self.sides.upper, (written, gone), stop).await
    }
}
