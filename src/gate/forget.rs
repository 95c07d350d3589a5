//! Judged bases of a project that are forgotten: they are as large as what is built of it.

use super::base::BUILDS;
use super::checkouts::{self, CHECKOUTS};
use super::clean::clear;
use super::history::HISTORIES;
use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// Judged bases of a project that are kept, beside those that were used within a day.
const KEPT: usize = 4;
/// How long an unused one is kept at least.
const FRESH: Duration = Duration::from_secs(24 * 60 * 60);
/// How long after its last use a base may still be in use.
const IN_USE: Duration = Duration::from_secs(60 * 60);
/// The file that is written anew when a base is used.
pub(super) const USED: &str = "used";
/// What the folder of one begins with that is being judged.
pub(super) const MAKING: &str = "making-";

/// Removes judged bases that nobody has used for long, but for the newest; and what is left of those that were never judged to the end.
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

/// Removes the caches of all judged bases but the newest two and those in use: build output is as large as all the rest together. Of the base in
/// `newest`, which was just made, they stay.
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

/// Removes judged bases and histories of bases that were unused for this long, and for at least a
/// day; and checkouts, for at least an hour.
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
    checkouts::forget_old(&project.join(CHECKOUTS), age);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_that_nobody_has_used_for_long_goes_and_one_of_today_stays_whatever_is_asked() {
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
        forget_bases(dir.path(), Duration::ZERO);
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
