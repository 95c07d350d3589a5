//! Histories of a project: for each base, the part of the user's repository that its rooms get.
//! Each is made once and kept beside the judged bases.

use super::GateSite;
use super::clean::clear;
use super::forget::{MAKING, USED, forget_old};
use crate::error_chain::chain;
use crate::id::TreeId;
use crate::store;
use crate::workspace::replica::{KeptHistory, SourceRepository};
use crate::workspace::trees::TreesError;
use std::fs;
use std::path::{Path, PathBuf};
use tokio_util::sync::CancellationToken;

/// The folder of a project that contains the histories.
pub(super) const HISTORIES: &str = "histories";
/// The total size of packs, in bytes, up to which rooms get all files of the history. Beyond it,
/// they get its commits and tags, and the files of the base.
const WHOLE: u64 = 256 << 20;
/// The maximum number of earlier histories that a new one may start from.
const EARLIER: usize = 8;

/// Returns the history of a base. Returns `None` if it cannot be copied, because objects are
/// missing or damaged. Rooms then have the judged tree as their only commit.
///
/// # Errors
/// [`TreesError::Stopped`].
pub(super) async fn kept_or_made(
    site: &GateSite,
    source: &SourceRepository,
    base: &TreeId,
    stop: &CancellationToken,
) -> Result<Option<KeptHistory>, TreesError> {
    let all = site.project.join(HISTORIES);
    let key = store::sha256(format!("{} {base}", source.key()).as_bytes());
    let folder = all.join(key.get(..32).unwrap_or_default());
    if let Some(history) = KeptHistory::open(&folder) {
        let _it_is_only_kept_longer = fs::write(folder.join(USED), []);
        return Ok(Some(history));
    }
    match make(site, source, base, (&all, &folder), stop).await {
        Ok(history) => Ok(Some(history)),
        Err(TreesError::Stopped) => Err(TreesError::Stopped),
        Err(fault) => {
            tracing::warn!(why = %chain(&fault), "rooms have no git history: cannot copy the repository");
            Ok(None)
        }
    }
}

async fn make(
    site: &GateSite,
    source: &SourceRepository,
    base: &TreeId,
    (all, folder): (&Path, &Path),
    stop: &CancellationToken,
) -> Result<KeptHistory, TreesError> {
    let of_run = store::sha256(site.rooms.as_os_str().as_encoded_bytes());
    let making = all.join(format!("{MAKING}{}", of_run.get(..16).unwrap_or_default()));
    let io = |source| TreesError::Io { verb: "make", path: making.clone(), source };
    clear(&making).map_err(io)?;
    store::make_private(&making).map_err(|error| io(std::io::Error::other(error)))?;
    let history = KeptHistory::make(&site.trees, source, base, &making, (&newest(all), WHOLE), stop).await?;
    fs::write(making.join(USED), []).map_err(io)?;
    if KeptHistory::open(folder).is_none() {
        clear(folder).map_err(io)?;
    }
    if let Err(source) = fs::rename(&making, folder) {
        // Another run of the same base may have been faster.
        let Some(history) = KeptHistory::open(folder) else { return Err(io(source)) };
        let _left = clear(&making);
        return Ok(history);
    }
    forget_old(all);
    Ok(history.moved(folder))
}

/// Returns the folders of the histories that were used last.
fn newest(all: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(all).into_iter().flatten().flatten().map(|entry| entry.path());
    let used = |path: &Path| fs::metadata(path.join(USED)).and_then(|meta| meta.modified()).ok();
    let mut dated: Vec<_> = entries.filter_map(|path| Some((used(&path)?, path))).collect();
    dated.sort();
    dated.into_iter().rev().take(EARLIER).map(|(_, path)| path).collect()
}
