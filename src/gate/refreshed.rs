//! Caches for a tree whose dependencies differ from the base's.
//!
//! The lane's setup runs again with network access, on the base with only the manifests and lock
//! files of the candidate, and with install scripts off. The caches belong to this run, and no
//! later base gets them.

use super::base::{self, BaseError, LaneCaches};
use super::clean::{CleanRoom, RoomDependencies, RoomError, RoomRequest, clear, copy_tree};
use super::install::{DependencyDifference, NO_SCRIPTS};
use super::{Gate, GateSite};
use crate::id::TreeId;
use crate::lane::{Lane, RoomKind};
use std::fs;
use std::path::PathBuf;
use tokio_util::sync::CancellationToken;

/// The file that marks filled caches.
const READY: &str = "ready";
/// The folder of a run that contains these caches.
pub(super) const REFRESHED: &str = "refreshed";

/// Returns the caches of a lane for this tree. Fills new caches if the tree's dependencies differ
/// from the base's.
///
/// # Errors
/// [`BaseError::Setup`] when the setup fails with these dependencies, or another [`BaseError`].
pub(super) async fn caches(
    gate: &Gate,
    site: &GateSite,
    lane: &Lane,
    tree: &TreeId,
    caches: LaneCaches,
    stop: &CancellationToken,
) -> Result<LaneCaches, BaseError> {
    if lane.setup.is_empty() || lane.room == RoomKind::InPlace {
        return Ok(caches);
    }
    let difference = DependencyDifference::compare(gate, site, tree, stop).await.map_err(RoomError::from)?;
    let Some(difference) = difference else { return Ok(caches) };
    if let Some(entry) = difference.refused_entry(gate) {
        let step = lane.setup.first().map(|step| step.name.clone()).unwrap_or_default();
        let why = format!(
            "{entry}: with network, fledge gives a setup only packages from the registry, without options, folders or hooks"
        );
        return Err(BaseError::Setup { lane: lane.name.clone(), step, why });
    }
    let ground = difference.ground(gate, site, tree, stop).await.map_err(RoomError::from)?;
    let folder = folder(site, lane, &ground);
    let io = |source| BaseError::Cache { path: folder.clone(), source };
    let ready = folder.join(READY);
    let mut own = LaneCaches::to_fill(folder.clone());
    if !ready.exists() {
        clear(&folder).map_err(io)?;
        folder.parent().map_or(Ok(()), fs::create_dir_all).map_err(io)?;
        if caches.path().is_dir() {
            let copied = copy_tree(caches.path(), &folder, &site.env, stop).await;
            copied.map_err(|why| RoomError::Cache { path: lane.name.clone(), why })?;
        }
        fill(gate, site, lane, &ground, &own, stop).await?;
        fs::create_dir_all(&folder).and_then(|()| fs::write(&ready, [])).map_err(io)?;
    }
    own.close();
    Ok(own)
}

/// Returns the folder of the caches, beside the rooms of the run, for the tree with which they are
/// made.
fn folder(site: &GateSite, lane: &Lane, ground: &TreeId) -> PathBuf {
    let kind = if lane.held_out.is_some() { "held-out" } else { "lanes" };
    site.rooms.with_file_name(REFRESHED).join(ground.as_str()).join(kind).join(&lane.name)
}

async fn fill(
    gate: &Gate,
    site: &GateSite,
    lane: &Lane,
    ground: &TreeId,
    caches: &LaneCaches,
    stop: &CancellationToken,
) -> Result<(), BaseError> {
    let kept = gate.kept(site, lane, ground, stop).await.map_err(RoomError::from)?;
    let (caches_of, dependencies) = (Some(caches), RoomDependencies::AsBefore);
    let wanted =
        RoomRequest { lane, tree: ground, base: gate.base(), caches: caches_of, dependencies, kept: &kept, gate };
    let room = CleanRoom::make(site, wanted, stop).await?;
    let mut place = room.room(site, site.logs.join("refreshed").join(&lane.name));
    let off = NO_SCRIPTS.map(|(name, value)| (name.to_owned(), value.to_owned()));
    place.env = place.env.with(off.iter().map(|(name, value)| (name, value)));
    base::set_up(&room.lane(lane), site, place, stop, &|_| {}).await?;
    for path in lane.kept_folders() {
        let old = caches.folder(path);
        clear(&old).map_err(|source| BaseError::Cache { path: old.clone(), source })?;
    }
    caches.fill(&room, lane, site, stop).await?;
    room.close().await;
    Ok(())
}
