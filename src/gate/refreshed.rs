//! Caches for a tree whose lock files are others than the base's: what makes a room ready runs again, with network, on the base with the
//! candidate's manifests and lock files alone, with install scripts off. They are this run's own, and no later base has them.

use super::base::{self, BaseFault, Caches};
use super::clean::{CleanRoom, RoomFault, Wanted, clear, copy_tree};
use super::{Gate, Policy, Site};
use crate::id::TreeId;
use crate::lane::{Lane, RoomKind};
use crate::workspace::trees::TreesFault;
use std::fs;
use std::path::PathBuf;
use tokio_util::sync::CancellationToken;

/// Files that say which versions of what are used, by their names.
const LOCKS: [&str; 23] = [
    "Cargo.lock",
    "package-lock.json",
    "npm-shrinkwrap.json",
    "yarn.lock",
    "pnpm-lock.yaml",
    "bun.lock",
    "bun.lockb",
    "deno.lock",
    "go.sum",
    "go.work.sum",
    "poetry.lock",
    "uv.lock",
    "pdm.lock",
    "Pipfile.lock",
    "pylock.toml",
    "requirements.txt",
    "Gemfile.lock",
    "composer.lock",
    "gradle.lockfile",
    "packages.lock.json",
    "mix.lock",
    "pubspec.lock",
    "Package.resolved",
];
/// Variables that keep installers from running what a package brings.
const NO_SCRIPTS: [(&str, &str); 4] = [
    ("npm_config_ignore_scripts", "true"),
    ("YARN_ENABLE_SCRIPTS", "false"),
    ("PIP_ONLY_BINARY", ":all:"),
    ("COMPOSER_NO_SCRIPTS", "1"),
];
/// Says that caches are filled.
const READY: &str = "ready";

/// Whether a path is that of a lock file.
pub(super) fn is_lock(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    LOCKS.contains(&name) || (name.starts_with("requirements") && name.ends_with(".txt"))
}

/// The caches of a lane for this tree, filled anew where its lock files differ from the base's.
///
/// # Errors
/// [`BaseFault::Setup`] when what makes the room ready fails with these lock files, and the others.
pub(super) async fn caches(
    gate: &Gate,
    site: &Site,
    lane: &Lane,
    tree: &TreeId,
    caches: Caches,
    stop: &CancellationToken,
) -> Result<Caches, BaseFault> {
    if lane.setup.is_empty() || lane.room == RoomKind::InPlace {
        return Ok(caches);
    }
    let Some(ground) = ground(gate, site, tree, stop).await.map_err(RoomFault::from)? else { return Ok(caches) };
    let folder = folder(site, lane, &ground);
    let io = |source| BaseFault::Cache { path: folder.clone(), source };
    let ready = folder.join(READY);
    let mut own = Caches::to_fill(folder.clone());
    if !ready.exists() {
        clear(&folder).map_err(io)?;
        folder.parent().map_or(Ok(()), fs::create_dir_all).map_err(io)?;
        if caches.path().is_dir() {
            let copied = copy_tree(caches.path(), &folder, &site.env, stop).await;
            copied.map_err(|why| RoomFault::Cache { path: lane.name.clone(), why })?;
        }
        fill(gate, site, lane, &ground, &own, stop).await?;
        fs::create_dir_all(&folder).and_then(|()| fs::write(&ready, [])).map_err(io)?;
    }
    own.close();
    Ok(own)
}

/// The base with the manifests and lock files of a tree; `None` where the lock files are the same.
async fn ground(
    gate: &Gate,
    site: &Site,
    tree: &TreeId,
    stop: &CancellationToken,
) -> Result<Option<TreeId>, TreesFault> {
    let changes = site.trees.changes(gate.base(), tree, stop).await?;
    let says = |path: &&String| is_lock(path) || Policy::reads(path);
    let paths: Vec<String> = changes.iter().map(|change| &change.path).filter(says).cloned().collect();
    if !paths.iter().any(|path| is_lock(path)) {
        return Ok(None);
    }
    site.trees.with_paths_of(gate.base(), tree, &paths, stop).await.map(Some)
}

/// Where they are kept, beside the rooms of the run: by the tree that they are made for.
fn folder(site: &Site, lane: &Lane, ground: &TreeId) -> PathBuf {
    let kind = if lane.held_out.is_some() { "held-out" } else { "lanes" };
    site.rooms.with_file_name("refreshed").join(ground.as_str()).join(kind).join(&lane.name)
}

async fn fill(
    gate: &Gate,
    site: &Site,
    lane: &Lane,
    ground: &TreeId,
    caches: &Caches,
    stop: &CancellationToken,
) -> Result<(), BaseFault> {
    let kept = gate.kept(site, lane, ground, stop).await.map_err(RoomFault::from)?;
    let wanted = Wanted { lane, tree: ground, base: gate.base(), caches: Some(caches), kept: &kept, gate };
    let room = CleanRoom::make(site, wanted, stop).await?;
    let mut place = room.room(site, site.logs.join("refreshed").join(&lane.name));
    let off = NO_SCRIPTS.map(|(name, value)| (name.to_owned(), value.to_owned()));
    place.env = place.env.with(off.iter().map(|(name, value)| (name, value)));
    base::set_up(&room.lane(lane), site, place, stop, &|_| {}).await?;
    for path in lane.kept_folders() {
        let old = caches.folder(path);
        clear(&old).map_err(|source| BaseFault::Cache { path: old.clone(), source })?;
    }
    caches.fill(&room, lane)?;
    room.close().await;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lock_files_are_known_by_their_names_at_any_depth() {
        for path in ["Cargo.lock", "web/package-lock.json", "go.sum", "requirements-dev.txt"] {
            assert!(is_lock(path), "{path}");
        }
        for path in ["Cargo.toml", "src/lock.rs", "requirements.md", "Cargo.lock.bak"] {
            assert!(!is_lock(path), "{path}");
        }
    }
}
