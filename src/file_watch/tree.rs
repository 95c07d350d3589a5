//! The watched files, each with a stamp, and their differences between two checks. fledge watches a
//! folder before it reads the folder. So it reads earlier changes, and gets a notification of later
//! ones.

use super::fs_events::{FsEvents, FsHints, FsNotice};
use super::rules::{self, WatchRules};
use super::{FileEvent, FileEvents, WatchError};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::OsString;
use std::fs::{Metadata, OpenOptions};
use std::hash::{DefaultHasher, Hasher};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Only the content of files up to this size is compared, in bytes.
const COMPARED: u64 = 4 * 1024 * 1024;

/// The state at the latest check. Paths are relative to the root; the path of the root is empty.
#[derive(Debug)]
pub(super) struct WatchedTree {
    root: PathBuf,
    apart: Vec<PathBuf>,
    hints: Arc<FsHints>,
    ears: FsEvents,
    rules: WatchRules,
    folders: Folders,
    /// Digests of the content of files that have changed.
    digests: HashMap<PathBuf, u64>,
    stale: Stale,
    changes: FileEvents,
}

type Folders = BTreeMap<PathBuf, Folder>;

/// The content of a folder.
#[derive(Debug, Default)]
struct Folder {
    files: BTreeMap<OsString, Stamp>,
    folders: BTreeSet<OsString>,
}

/// The metadata that shows a change without reading the file. It contains neither owner nor access
/// time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    inode: u64,
    /// File type and permissions.
    mode: u32,
    size: u64,
    /// Seconds and nanoseconds of the modification time.
    modified: (i64, i64),
}

/// The paths that the next check covers.
#[derive(Debug, Default)]
struct Stale {
    everything: bool,
    folders: BTreeSet<PathBuf>,
    /// Folders that may have been replaced by another folder of the same name.
    anew: BTreeSet<PathBuf>,
}

impl WatchedTree {
    /// Creates a tree before its first check.
    pub(super) fn new(root: PathBuf, apart: Vec<PathBuf>, hints: Arc<FsHints>) -> Self {
        Self {
            ears: FsEvents::open(&root, Arc::clone(&hints)),
            rules: WatchRules::read(&root, &apart),
            root,
            apart,
            hints,
            folders: Folders::new(),
            digests: HashMap::new(),
            stale: Stale::default(),
            changes: FileEvents::new(),
        }
    }

    /// Returns the reason why the kernel sends no notifications. In this case, each check covers
    /// the whole tree.
    pub(super) fn deaf_because(&self) -> Option<&str> {
        self.ears.deaf_because.as_deref()
    }

    /// Returns true if there are changes, or notifications, that have not been returned yet.
    pub(super) fn is_behind(&self) -> bool {
        let Stale { everything, folders, anew } = &self.stale;
        *everything || !folders.is_empty() || !anew.is_empty() || !self.changes.is_empty()
    }

    /// Returns the changes of all checks since the last call.
    pub(super) fn take_changes(&mut self) -> FileEvents {
        std::mem::take(&mut self.changes)
    }

    /// Records notifications. Returns true if any of them concerns a watched path.
    pub(super) fn add_notice(&mut self, notice: FsNotice) -> bool {
        self.stale.everything |= notice.anywhere;
        let paths: Vec<_> = notice.paths.iter().filter_map(|path| path.strip_prefix(&self.root).ok()).collect();
        let counts = paths.into_iter().fold(notice.anywhere, |counts, path| self.hear_of(path) || counts);
        counts || self.stale.everything
    }

    fn hear_of(&mut self, path: &Path) -> bool {
        if path.as_os_str().is_empty() || rules::are_made_of(path) {
            self.stale.everything = true;
            return true;
        }
        let is_known = self.folders.contains_key(path);
        if self.rules.leave_out(path, is_known) {
            return false;
        }
        if is_known {
            self.stale.anew.insert(path.to_owned());
        }
        let known = path.ancestors().skip(1).find(|folder| self.folders.contains_key(*folder));
        self.stale.folders.extend(known.map(Path::to_path_buf));
        true
    }

    /// Checks the paths that notifications named. The first check covers the whole tree, and so
    /// does each check without notifications.
    pub(super) fn look(&mut self) -> Result<(), WatchError> {
        let stale = std::mem::take(&mut self.stale);
        let is_first = self.folders.is_empty();
        let mut old = Folders::new();
        let entered = if stale.everything || is_first || self.deaf_because().is_some() {
            old = std::mem::take(&mut self.folders);
            self.begin(is_first);
            self.enter([PathBuf::new()].into())
        } else {
            let new = self.refresh(stale, &mut old);
            self.enter(new)
        };
        if !self.folders.contains_key(Path::new("")) {
            self.folders = old; // these files are known if the root returns
            self.stale.everything = true;
            return Err(WatchError::Gone(self.root.clone()));
        }
        if !is_first {
            let new: BTreeSet<PathBuf> = entered.into_iter().filter(|place| !old.contains_key(place)).collect();
            for place in old.keys().chain(&new) {
                self.compare(place, old.get(place));
            }
        }
        Ok(())
    }

    /// Reads the rules and creates a new receiver. The check covers the whole tree, so it also
    /// covers changes that the receiver missed.
    fn begin(&mut self, is_first: bool) {
        if !is_first {
            self.rules = WatchRules::read(&self.root, &self.apart);
            if self.deaf_because().is_none() {
                self.ears = FsEvents::open(&self.root, Arc::clone(&self.hints));
            }
        }
        if let Some(folder) = self.root.join(rules::EXCLUDE).parent() {
            self.ears.listen(folder);
        }
    }

    /// Reads stale folders again. Moves folders that are gone, or may have been replaced, into
    /// `old`. Returns the folders to enter.
    fn refresh(&mut self, stale: Stale, old: &mut Folders) -> BTreeSet<PathBuf> {
        let mut new = BTreeSet::new();
        for place in stale.folders {
            let Some(before) = self.folders.get(&place) else { continue }; // removed with a parent folder
            let known: Vec<PathBuf> = before.folders.iter().map(|name| place.join(name)).collect();
            let Some(now) = self.read(&place) else {
                old.append(&mut self.take_out(&place));
                continue;
            };
            let there: BTreeSet<PathBuf> = now.folders.iter().map(|name| place.join(name)).collect();
            for folder in known.iter().filter(|folder| !there.contains(*folder) || stale.anew.contains(*folder)) {
                old.append(&mut self.take_out(folder));
            }
            new.extend(there.into_iter().filter(|folder| !self.folders.contains_key(folder)));
            old.extend(self.folders.insert(place.clone(), now).map(|before| (place, before)));
        }
        new
    }

    /// Removes a folder with everything below it. Its watches end before new ones begin, because a
    /// new watch may be for the same folder under another name.
    fn take_out(&mut self, folder: &Path) -> Folders {
        let below = self.folders.range(folder.to_owned()..).map(|(path, _)| path.clone());
        let below: Vec<PathBuf> = below.take_while(|path| path.starts_with(folder)).collect();
        let mut out = Folders::new();
        for path in below {
            self.ears.forget(&self.root.join(&path));
            out.extend(self.folders.remove_entry(&path));
        }
        out
    }

    /// Watches these folders and all folders below them, and reads them. Returns all folders that
    /// it read.
    fn enter(&mut self, places: BTreeSet<PathBuf>) -> Vec<PathBuf> {
        let (mut waiting, mut entered) = (Vec::from_iter(places), Vec::new());
        while let Some(place) = waiting.pop() {
            self.ears.listen(&self.root.join(&place));
            if let Some(folder) = self.read(&place) {
                waiting.extend(folder.folders.iter().map(|name| place.join(name)));
                self.folders.insert(place.clone(), folder);
                entered.push(place);
            }
        }
        entered
    }

    /// Reads the watched files and folders in a folder. Returns `None` when the folder cannot be
    /// read or is gone.
    fn read(&mut self, place: &Path) -> Option<Folder> {
        let mut folder = Folder::default();
        for entry in self.root.join(place).read_dir().ok()?.flatten() {
            let (name, Ok(kind)) = (entry.file_name(), entry.file_type()) else { continue };
            let is_file = kind.is_file() || kind.is_symlink();
            if !(is_file || kind.is_dir()) || self.rules.leave_out(&place.join(&name), kind.is_dir()) {
                continue;
            }
            if kind.is_dir() {
                folder.folders.insert(name);
            } else if let Ok(metadata) = entry.metadata() {
                folder.files.insert(name, Stamp::of(&metadata));
            }
        }
        Some(folder)
    }

    /// Records the changed files of a folder.
    fn compare(&mut self, place: &Path, before: Option<&Folder>) {
        let none = Folder::default();
        let (before, now) = (before.unwrap_or(&none), self.folders.get(place).unwrap_or(&none));
        let names: BTreeSet<&OsString> = before.files.keys().chain(now.files.keys()).collect();
        for name in names {
            let (was, is) = (before.files.get(name), now.files.get(name));
            if was == is {
                continue;
            }
            let path = place.join(name);
            let place = self.root.join(&path);
            let digest = match is {
                Some(stamp) => stamp.digest(&place),
                None if was.copied() == place.symlink_metadata().ok().as_ref().map(Stamp::of) => continue, // it is ignored now
                None => None,
            };
            let known = match digest {
                Some(digest) => self.digests.insert(path.clone(), digest),
                None => self.digests.remove(&path),
            };
            let has_same_mode = was.map(|stamp| stamp.mode) == is.map(|stamp| stamp.mode);
            let is_same = has_same_mode && digest.is_some() && digest == known;
            let change = if is_same { FileEvent::Rewritten } else { FileEvent::Altered };
            let known = self.changes.entry(path).or_insert(change);
            if !is_same {
                *known = FileEvent::Altered;
            }
        }
    }
}

impl Stamp {
    fn of(metadata: &Metadata) -> Self {
        Self {
            inode: metadata.ino(),
            mode: metadata.mode(),
            size: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
        }
    }

    /// Returns a digest of the content, or of the target of a link. `None` when the file is too
    /// large or cannot be read.
    fn digest(&self, path: &Path) -> Option<u64> {
        let mut hasher = DefaultHasher::new();
        match path.read_link() {
            Ok(target) => hasher.write(target.as_os_str().as_bytes()),
            Err(_) if self.size > COMPARED => return None,
            Err(_) => {
                // If a pipe has replaced the file, the open call must not wait for a writer.
                let flags = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
                let file = OpenOptions::new().read(true).custom_flags(flags).open(path).ok()?;
                let mut content = Vec::new();
                file.take(COMPARED).read_to_end(&mut content).ok()?;
                hasher.write(&content);
            }
        }
        Some(hasher.finish())
    }
}

#[cfg(test)]
impl WatchedTree {
    /// Ends all watches, as when the kernel loses notifications.
    pub(super) fn ears_forget_everything(&mut self) {
        for folder in self.folders.keys() {
            self.ears.forget(&self.root.join(folder));
        }
    }

    /// Turns off notifications, as when the kernel has no more watches.
    pub(super) fn deafen(&mut self, why: &str) {
        self.ears = FsEvents::deaf(why.into());
    }
}
