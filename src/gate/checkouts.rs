//! The checkouts of a project: for each base, the files below the layers of its rooms. Each is made
//! once and kept beside the judged bases.

use super::GateSite;
use super::clean::clear;
use super::forget::{MAKING, USED};
use crate::id::TreeId;
use crate::store;
use crate::workspace::replica::Checkout;
use crate::workspace::trees::TreesError;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use tokio_util::sync::CancellationToken;

/// The folder of a project that contains the checkouts.
pub(super) const CHECKOUTS: &str = "checkouts";
/// The number of checkouts of a project that are kept in addition to those used within the last
/// hour. Each is as large as the files of its base.
const KEPT: usize = 2;
const FRESH: Duration = Duration::from_secs(60 * 60);

/// Opens the checkout of a base. Makes the checkout if it is missing or was changed. Returns `None`
/// if another run uses a changed checkout, or if an incomplete one cannot be replaced.
///
/// # Errors
/// [`TreesError`].
pub(super) async fn kept_or_made(
    site: &GateSite,
    base: &TreeId,
    stop: &CancellationToken,
) -> Result<Option<Checkout>, TreesError> {
    let all = site.project.join(CHECKOUTS);
    let folder = all.join(base.as_str());
    let making = making(&all, &site.rooms);
    let io = |source| TreesError::Io { verb: "make", path: making.clone(), source };
    clear(&making).map_err(io)?;
    if let Some(checkout) = Checkout::open(&folder) {
        if checkout.is_intact(&site.trees, stop).await? {
            let _it_is_only_kept_longer = fs::write(folder.join(USED), []);
            return Ok(Some(checkout));
        }
        tracing::warn!("the checkout of a base was changed, so fledge makes it again: {}", folder.display());
        drop(checkout);
        if !Checkout::take_away(&folder, &making).map_err(io)? {
            return Ok(None);
        }
        clear(&making).map_err(io)?;
    }
    store::make_private(&making).map_err(|error| io(std::io::Error::other(error)))?;
    Checkout::make(&site.trees, base, &making, stop).await?;
    fs::write(making.join(USED), []).map_err(io)?;
    let is_first = fs::rename(&making, &folder).is_ok();
    // Another run of the same base may have been faster, or may have moved the folder away.
    let checkout = Checkout::open(&folder);
    if !is_first {
        let _left = clear(&making);
    }
    if checkout.is_none() && fs::rename(&folder, &making).is_ok() {
        tracing::warn!("the checkout of a base was incomplete, so fledge removes it: {}", folder.display());
        let _left = clear(&making);
    }
    forget_old(&all, FRESH, KEPT);
    Ok(checkout)
}

/// Returns the folder in which the run with these rooms makes or removes a checkout.
fn making(all: &Path, rooms: &Path) -> PathBuf {
    let of_run = store::sha256(rooms.as_os_str().as_encoded_bytes());
    all.join(format!("{MAKING}{}", of_run.get(..16).unwrap_or_default()))
}

/// Removes checkouts that no room uses and that were not used for `age`, except for the newest
/// `kept` ones. Also removes unfinished checkouts.
pub(super) fn forget_old(all: &Path, age: Duration, kept: usize) {
    let is_old = |time: &SystemTime| time.elapsed().is_ok_and(|now| now > age.max(FRESH));
    let changed = |path: &Path| fs::metadata(path).and_then(|meta| meta.modified()).ok();
    let entries = fs::read_dir(all).into_iter().flatten().flatten().map(|entry| entry.path());
    let (begun, made): (Vec<_>, Vec<_>) =
        entries.partition(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(MAKING)));
    for path in begun.into_iter().filter(|path| changed(path).is_some_and(|time| is_old(&time))) {
        let _left = clear(&path);
    }
    let mut dated: Vec<_> = made.into_iter().filter_map(|path| Some((changed(&path.join(USED))?, path))).collect();
    dated.sort();
    for (_, path) in dated.into_iter().rev().skip(kept).filter(|(used, _)| is_old(used)) {
        let away = making(all, &path);
        if clear(&away).is_ok() && Checkout::take_away(&path, &away).is_ok_and(|away| away) {
            let _left = clear(&away);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checkout_that_a_room_uses_stays_and_others_go_after_an_hour() {
        let dir = crate::test_support::temp_dir();
        let long_ago = SystemTime::UNIX_EPOCH + FRESH;
        for name in ["a", "b", "c", "d", "fresh"] {
            let folder = dir.path().join(name);
            fs::create_dir(&folder).unwrap();
            fs::write(folder.join("whole"), []).unwrap();
            fs::write(folder.join(USED), []).unwrap();
            if name != "fresh" {
                fs::File::options().write(true).open(folder.join(USED)).unwrap().set_modified(long_ago).unwrap();
            }
        }
        let in_use = Checkout::open(&dir.path().join("a")).unwrap();
        forget_old(dir.path(), Duration::ZERO, KEPT);
        let left = |name: &str| dir.path().join(name).exists();
        // The newest two are the fresh one and, among equally old ones, the last by name.
        assert_eq!(["a", "b", "c", "d", "fresh"].map(left), [true, false, false, true, true]);
        drop(in_use);
        // Another test may be starting a process, which holds the lock until it executes its
        // program.
        let gone = (0..3000).any(|_| {
            forget_old(dir.path(), Duration::ZERO, KEPT);
            std::thread::sleep(Duration::from_millis(10));
            !left("a")
        });
        assert!(gone, "a checkout that no room uses stays");
        forget_old(dir.path(), Duration::ZERO, 0);
        assert_eq!(["d", "fresh"].map(left), [false, true]);
    }
}
