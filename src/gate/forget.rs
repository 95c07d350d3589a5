//! The removal of old judged bases of a project, because they are as large as its build output.

use super::base::BUILDS;
use super::checkouts::{self, CHECKOUTS};
use super::clean::clear;
use super::history::HISTORIES;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::{Duration, SystemTime};
use walkdir::WalkDir;

/// The number of judged bases of a project that are kept in addition to those used within a day.
const KEPT: usize = 4;
/// The shortest time for which an unused base is kept.
const FRESH: Duration = Duration::from_secs(24 * 60 * 60);
/// The time after its last use in which a base may still be in use.
const IN_USE: Duration = Duration::from_secs(60 * 60);
/// The file that is rewritten whenever a base is used.
pub(super) const USED: &str = "used";
/// The prefix of a folder whose base is still being judged.
pub(super) const MAKING: &str = "making-";

/// Removes judged bases that have been unused for a day, except for the newest ones. Also removes
/// the remains of bases that were never judged to the end.
pub(super) fn forget_old(caches: &Path) {
    let is_left = |path: &Path| {
        let changed = fs::metadata(path).and_then(|meta| meta.modified());
        let is_old = changed.is_ok_and(|changed| changed.elapsed().is_ok_and(|age| age > FRESH));
        is_old && path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(MAKING))
    };
    let paths = || fs::read_dir(caches).into_iter().flatten().flatten().map(|entry| entry.path());
    for path in paths().filter(|path| is_left(path)) {
        let _left = clear(&path);
    }
    let entries = fs::read_dir(caches).into_iter().flatten().flatten();
    let dated =
        entries.filter_map(|entry| Some((fs::metadata(entry.path().join(USED)).ok()?.modified().ok()?, entry.path())));
    let mut dated: Vec<_> = dated.collect();
    dated.sort();
    dated.reverse();
    for (_, path) in dated.into_iter().skip(KEPT).filter(|(used, _)| used.elapsed().is_ok_and(|age| age > FRESH)) {
        let _left = clear(&path);
    }
}

/// Removes the caches of all judged bases except for the newest two and those in use, because build
/// output is as large as everything else together. The newest base is the one in `newest`, which
/// was just made.
pub(super) fn forget_output(bases: &Path, newest: &Path) {
    let entries = fs::read_dir(bases).into_iter().flatten().flatten().map(|entry| entry.path());
    let used = |path: &Path| fs::metadata(path.join(USED)).and_then(|meta| meta.modified()).ok();
    let mut dated: Vec<_> =
        entries.filter(|path| path != newest).filter_map(|path| Some((used(&path)?, path))).collect();
    dated.sort();
    let is_idle = |time: &SystemTime| time.elapsed().is_ok_and(|age| age > IN_USE);
    for (_, path) in dated.into_iter().rev().skip(1).filter(|(used, _)| is_idle(used)) {
        for kind in ["lanes", "held-out"] {
            for lane in fs::read_dir(path.join(kind)).into_iter().flatten().flatten() {
                for output in ["tree", BUILDS] {
                    let _left = clear(&lane.path().join(output));
                }
            }
        }
    }
}

/// Returns the space that judged bases, histories and checkouts of a project take, in bytes.
pub fn bytes_of_bases(project: &Path) -> u64 {
    let all = ["bases", HISTORIES, CHECKOUTS].map(|name| WalkDir::new(project.join(name)));
    let entries = all.into_iter().flatten().flatten().filter_map(|entry| entry.metadata().ok());
    entries.map(|meta| meta.blocks() * 512).sum()
}

/// Removes judged bases, histories and checkouts that have been unused for `age`, or for a day if
/// that is longer.
pub fn forget_bases(project: &Path, age: Duration) {
    let age = age.max(FRESH);
    let used = |path: &Path| fs::metadata(path.join(USED)).and_then(|meta| meta.modified());
    for all in ["bases", HISTORIES].map(|name| project.join(name)) {
        let entries = fs::read_dir(&all).into_iter().flatten().flatten().map(|entry| entry.path());
        for path in entries.filter(|path| used(path).is_ok_and(|used| used.elapsed().is_ok_and(|now| now > age))) {
            let _left = clear(&path);
        }
        forget_old(&all);
    }
    checkouts::forget_old(&project.join(CHECKOUTS), age, 0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_unused_base_is_removed_and_one_of_today_always_stays() {
        let dir = crate::test_support::temp_dir();
        let at = |name: &str| dir.path().join(name);
        for name in ["bases/old", "bases/new", "histories/old", "histories/new"] {
            fs::create_dir_all(at(name)).unwrap();
            fs::write(at(name).join(USED), "").unwrap();
        }
        let long_ago = SystemTime::UNIX_EPOCH + FRESH;
        for old in ["bases/old", "histories/old"] {
            fs::File::options().write(true).open(at(old).join(USED)).unwrap().set_modified(long_ago).unwrap();
        }
        fs::write(at("bases/old").join("built"), [1; 100_000]).unwrap();
        let before = bytes_of_bases(dir.path());
        forget_bases(dir.path(), Duration::ZERO);
        assert!(before >= bytes_of_bases(dir.path()) + 100_000);
        assert!(!at("bases/old").exists() && at("bases/new").exists());
        assert!(!at("histories/old").exists() && at("histories/new").exists());
    }

    #[test]
    fn what_is_left_of_a_base_that_was_never_judged_goes_after_a_day() {
        let dir = crate::test_support::temp_dir();
        let (old, new) = (dir.path().join("making-old"), dir.path().join("making-new"));
        for folder in [&old, &new] {
            fs::create_dir_all(folder.join("lanes")).unwrap();
        }
        let long_ago = SystemTime::UNIX_EPOCH + FRESH;
        fs::File::open(&old).unwrap().set_modified(long_ago).unwrap();
        forget_old(dir.path());
        assert!(!old.exists() && new.exists());
    }
}
