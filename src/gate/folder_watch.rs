//! A watch, by inotify(7), on the folders of protected files while a lane runs.
//!
//! Product code could rename a folder, or make it unreadable, and undo that at its end. Meanwhile
//! the tests would find other files, or none.

use crate::verdict::TamperFinding;
use std::collections::BTreeSet;
use std::path::Path;

/// The rule of this watch's findings.
const WHY: &str = "it contains protected files, and it was moved, or its permissions or times were set";

/// The watch, or the reason why none exists.
#[derive(Debug)]
pub(super) struct FolderWatch(#[cfg(target_os = "linux")] Result<linux::Watches, rustix::io::Errno>);

impl FolderWatch {
    /// Starts to watch the folders above these paths below `root`, and those of the paths that are
    /// folders.
    #[cfg(target_os = "linux")]
    pub(super) fn start(root: &Path, kept: &[String]) -> Self {
        let all = kept.iter().flat_map(|path| Path::new(path).ancestors());
        let folders: BTreeSet<&Path> = all.filter(|path| root.join(path).is_dir()).collect();
        Self(linux::Watches::begin(root, &folders))
    }

    /// Returns a watch on nothing, because this system has no inotify.
    #[cfg(not(target_os = "linux"))]
    pub(super) fn start(_: &Path, _: &[String]) -> Self {
        Self()
    }

    /// Returns a note for people if nothing is watched: the user has no inotify, or has used all
    /// watches that the system allows.
    pub(super) fn missing(&self) -> Option<String> {
        #[cfg(target_os = "linux")]
        let why = self.0.as_ref().err()?.to_string();
        #[cfg(not(target_os = "linux"))]
        let why = "this system has no inotify";
        Some(format!("cannot watch the folders of protected files while the checks run: {why}"))
    }

    /// Returns the folders that were moved, removed or closed since the last call, relative to the
    /// root.
    pub(super) fn seen(&self) -> BTreeSet<String> {
        #[cfg(target_os = "linux")]
        return self.0.as_ref().map_or_else(|_| BTreeSet::new(), linux::Watches::seen);
        #[cfg(not(target_os = "linux"))]
        BTreeSet::new()
    }

    /// Returns the finding for a folder.
    pub(super) fn finding(folder: String) -> TamperFinding {
        TamperFinding { path: folder, change: "changed".into(), rule: WHY.into() }
    }

    /// Returns whether a finding is from a watch.
    pub(super) fn has_found(finding: &TamperFinding) -> bool {
        finding.rule.starts_with(WHY)
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use crate::workspace::trees::path_text;
    use rustix::fs::inotify::{CreateFlags, ReadFlags, Reader, WatchFlags, add_watch, init};
    use rustix::io::Errno;
    use std::collections::{BTreeMap, BTreeSet};
    use std::mem::MaybeUninit;
    use std::os::fd::OwnedFd;
    use std::path::Path;

    /// The size of the buffer for events, in bytes.
    const READ: usize = 16 * 1024;

    fn name(folder: &Path) -> String {
        if folder.as_os_str().is_empty() { ".".into() } else { path_text(folder) }
    }

    #[derive(Debug)]
    pub(super) struct Watches {
        events: OwnedFd,
        /// The folders by their watch descriptors.
        folders: BTreeMap<i32, String>,
    }

    impl Watches {
        pub(super) fn begin(root: &Path, folders: &BTreeSet<&Path>) -> Result<Self, Errno> {
            let events = init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
            let what = WatchFlags::ATTRIB | WatchFlags::MOVE_SELF | WatchFlags::DELETE_SELF | WatchFlags::ONLYDIR;
            let watch = |folder: &&Path| Ok((add_watch(&events, root.join(folder), what)?, name(folder)));
            let folders = folders.iter().map(watch).collect::<Result<_, Errno>>()?;
            Ok(Self { events, folders })
        }

        pub(super) fn seen(&self) -> BTreeSet<String> {
            let mut seen = BTreeSet::new();
            let mut room = [MaybeUninit::uninit(); READ];
            let mut reader = Reader::new(&self.events, &mut room);
            while let Ok(event) = reader.next() {
                if event.events().contains(ReadFlags::QUEUE_OVERFLOW) {
                    // Events were lost, so each folder counts as changed.
                    return self.folders.values().cloned().collect();
                }
                // An event with a name is about an entry of the folder.
                let is_its_own = event.file_name().is_none_or(|name| name.is_empty());
                let own = [ReadFlags::ATTRIB, ReadFlags::MOVE_SELF, ReadFlags::DELETE_SELF];
                if is_its_own && own.iter().any(|kind| event.events().contains(*kind)) {
                    seen.extend(self.folders.get(&event.wd()).cloned());
                }
            }
            seen
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn a_folder_that_is_moved_or_closed_for_a_while_is_seen_and_new_files_are_not() {
        let dir = crate::test_support::temp_dir();
        let at = |path: &str| dir.path().join(path);
        ["tests/unit", "checks"].iter().for_each(|path| fs::create_dir_all(at(path)).unwrap());
        fs::write(at("tests/unit/a.py"), "").unwrap();
        let watch = FolderWatch::start(dir.path(), &["tests/unit/a.py".into(), "checks".into()]);
        fs::write(at("tests/unit/b.py"), "").unwrap();
        fs::create_dir(at("tests/more")).unwrap();
        fs::set_permissions(at("tests/unit/a.py"), Permissions::from_mode(0o755)).unwrap();
        fs::remove_dir(at("tests/more")).unwrap();
        assert_eq!(watch.seen(), BTreeSet::new());
        fs::rename(at("tests"), at("t")).unwrap();
        fs::rename(at("t"), at("tests")).unwrap();
        assert_eq!(watch.seen(), BTreeSet::from(["tests".to_owned()]));
        for mode in [0, 0o755] {
            fs::set_permissions(at("checks"), Permissions::from_mode(mode)).unwrap();
        }
        assert_eq!(watch.seen(), BTreeSet::from(["checks".to_owned()]));
        assert_eq!(watch.seen(), BTreeSet::new());
    }
}
