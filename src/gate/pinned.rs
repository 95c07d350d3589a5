//! The files that must stay unchanged while lanes run: the protected files of a room, and
//! manifests.

use super::{Gate, GateSite};
use crate::id::TreeId;
use crate::lane::Lane;
use crate::workspace::trees::TreesError;
use std::collections::BTreeSet;
use tokio_util::sync::CancellationToken;

/// The maximum number of files that a room pins. Pinning a thousand files takes a fifth of a
/// second.
const MOST: usize = 2000;

impl Gate {
    /// Returns the protected paths of a tree that stay unchanged in the room of a lane: those of
    /// [`Gate::watched`]. Returns none for a hold-out lane, because it may put its own tests among
    /// the others.
    pub(super) async fn kept(
        &self,
        site: &GateSite,
        lane: &Lane,
        tree: &TreeId,
        stop: &CancellationToken,
    ) -> Result<Vec<String>, TreesError> {
        if lane.held_out.is_some() { Ok(Vec::new()) } else { self.watched(site, tree, stop).await }
    }

    /// Returns the protected paths of a tree, except for files that the base's own steps write.
    ///
    /// These are at most [`MOST`] files, and new files may be made beside them. Changes of the
    /// other files are found after each step.
    pub(super) async fn watched(
        &self,
        site: &GateSite,
        tree: &TreeId,
        stop: &CancellationToken,
    ) -> Result<Vec<String>, TreesError> {
        let mut protected = self.protected_of_base(site, stop).await?.clone();
        for change in site.trees.changes(&self.base, tree, stop).await? {
            if change.to_mode == 0 {
                protected.remove(&change.path);
            } else if self.policy.rule(&change.path).is_some() {
                protected.insert(change.path);
            }
        }
        if let Some(base) = self.judged.get() {
            protected.retain(|path| !base.restless.contains(path));
        }
        Ok(self.policy.most_important(protected, MOST))
    }

    /// Returns the manifests that no step may write while these lanes run, because a later command
    /// reads them. Returns none if a lane writes.
    pub(super) fn watched_manifests<'l>(&self, lanes: impl IntoIterator<Item = &'l Lane>) -> BTreeSet<String> {
        let writes = lanes.into_iter().any(|lane| lane.writes);
        if writes { BTreeSet::new() } else { self.policy.closed_manifests() }
    }

    pub(super) async fn protected_of_base(
        &self,
        site: &GateSite,
        stop: &CancellationToken,
    ) -> Result<&BTreeSet<String>, TreesError> {
        let is_protected = |path: &String| self.policy.rule(path).is_some();
        let find = || async {
            let paths = site.trees.paths(&self.base, stop).await?;
            Ok::<_, TreesError>(paths.into_iter().filter(is_protected).collect::<BTreeSet<String>>())
        };
        self.protected_files.get_or_try_init(find).await
    }
}
