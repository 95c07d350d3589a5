//! Protected files in the state in which the gate was frozen. Finds changes and restores the files
//! where possible.

use super::gits;
use super::policy::defines_the_gate;
use crate::store;
use crate::verdict::TamperFinding;
use crate::workspace::Protection;
use crate::workspace::trees::{path_text, text_path};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::{OsStr, OsString};
use std::fs::{self, Metadata, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use walkdir::{DirEntry, WalkDir};

/// Folders that are not searched unless they are protected themselves: git's own data, and output
/// of builds.
pub(super) const NOT_LOOKED_INTO: [&str; 7] = [".git", "target", "node_modules", ".venv", "venv", ".tox", ".nox"];
/// The maximum number of bytes that are kept of one file, and of all files together. Larger files
/// are compared by their digest and cannot be put back.
const KEPT: u64 = 4 * 1024 * 1024;
const KEPT_IN_ALL: u64 = 64 * 1024 * 1024;
/// The largest file that is read, in bytes. In a larger file, any write is a change.
const READ: u64 = 256 * 1024 * 1024;
/// The largest file that is copied aside, in bytes.
const ASIDE: u64 = 64 * 1024 * 1024;
/// The rule against writing a manifest, even for a moment. A later command of the step reads the
/// manifest.
const MANIFEST: &str = "it defines what the checks run";

/// Returns the change with which a step may write the paths of these findings. A manifest without a
/// rule may be written by a lane that writes.
pub(super) fn remedy(written: &[TamperFinding]) -> &'static str {
    let is_manifest = |finding: &TamperFinding| finding.rule.starts_with(MANIFEST);
    match (written.iter().all(is_manifest), written.iter().any(is_manifest)) {
        (true, _) => "set `writes: true` in its lane",
        (false, true) => "open the path with `allow_edit`, or for a manifest set `writes: true` in its lane",
        (false, false) => "open the path with `allow_edit`",
    }
}

/// The seal on a workspace's protected files.
#[derive(Debug)]
pub struct Seal {
    pub(super) root: PathBuf,
    pub(super) protection: Protection,
    /// The paths of the base, each with whether it is protected, if the lanes see no other files.
    /// Then ignored files are sealed only if they define the gate. The answers are stored because
    /// matching the rules takes longer than listing the files.
    pub(super) scope: Option<HashMap<String, bool>>,
    pub(super) files: BTreeMap<PathBuf, Sealed>,
    /// The git directories, whose files that control git are sealed too.
    pub(super) gits: Vec<PathBuf>,
}

/// The device, inode and change time of each protected file. Any write changes them, even one that
/// restores the old content.
#[derive(Debug, PartialEq, Eq)]
pub struct SealStamps(BTreeMap<PathBuf, (u64, u64, i64, i64)>);

/// One protected entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Sealed {
    File {
        digest: String,
        mode: u32,
        bytes: Option<Vec<u8>>,
    },
    Link(OsString),
    /// A device, a socket, or a file that cannot be read.
    Other,
}

impl Seal {
    /// Reads every protected file of the workspace. With a `scope`, reads only files at these paths
    /// and files that define the gate. Also reads the files that control git in each repository.
    ///
    /// # Errors
    /// When a protected file cannot be read.
    pub fn capture(root: &Path, protection: Protection, scope: Option<&[String]>) -> io::Result<Self> {
        let scope = scope.map(|paths| Self::scope(&protection, paths.iter().cloned()));
        let mut seal = Self { scope, gits: gits::places(root), ..Self::of_nothing(root, protection) };
        let mut room = KEPT_IN_ALL;
        for (path, entry) in seal.survey() {
            let sealed = match seal.read(&path, &entry, &mut room) {
                Err(_) if seal.is_git(&path) => Sealed::Other, // not part of the gate
                sealed => sealed?,
            };
            seal.files.insert(path, sealed);
        }
        Ok(seal)
    }

    /// Returns these paths, each with whether it is protected.
    pub(super) fn scope(protection: &Protection, paths: impl Iterator<Item = String>) -> HashMap<String, bool> {
        let known = |path: String| {
            let is_protected = protection.rule(&path).is_some();
            (path, is_protected)
        };
        paths.map(known).collect()
    }

    /// Returns a seal without files, for callers that only ask which files are written.
    pub(super) fn of_nothing(root: &Path, protection: Protection) -> Self {
        Self { root: root.to_owned(), protection, scope: None, files: BTreeMap::new(), gits: Vec::new() }
    }

    /// Returns the rules for protected paths.
    pub fn protection(&self) -> &Protection {
        &self.protection
    }

    /// Returns the differences from the seal, sorted by path.
    pub fn inspect(&self) -> Vec<TamperFinding> {
        self.compare(self.survey(), |_| true)
    }

    /// Returns the differences, and the stamps of all protected files and of these manifests from
    /// before they were read.
    pub(super) fn inspect_stamped(&self, manifests: &BTreeSet<String>) -> (Vec<TamperFinding>, SealStamps) {
        let entries = self.survey();
        let stamps = self.stamps_of(&entries, manifests);
        (self.compare(entries, |_| true), stamps)
    }

    /// Returns the differences in these files and folders, relative to the root, and in git
    /// directories.
    pub(super) fn inspect_in(&self, places: &[&str]) -> Vec<TamperFinding> {
        let entries = places.iter().flat_map(|place| self.walk(self.root.join(place))).chain(self.of_git());
        self.compare(entries.collect(), |path| self.is_git(path) || places.iter().any(|place| path.starts_with(place)))
    }

    fn compare(&self, entries: Vec<(PathBuf, DirEntry)>, is_looked_at: impl Fn(&Path) -> bool) -> Vec<TamperFinding> {
        let mut present = BTreeMap::new();
        for (path, entry) in entries {
            let sealed = self.read(&path, &entry, &mut 0).unwrap_or(Sealed::Other);
            present.insert(path, sealed);
        }
        let mut findings = Vec::new();
        for (path, was) in self.files.iter().filter(|(path, _)| is_looked_at(path)) {
            match present.get(path) {
                Some(is) if is.is_like(was) => {}
                Some(_) => findings.push(self.finding(path, "changed")),
                None => findings.push(self.finding(path, "removed")),
            }
        }
        let added = present.keys().filter(|path| !self.files.contains_key(*path));
        findings.extend(added.map(|path| self.finding(path, "added")));
        findings.sort();
        findings
    }

    /// Returns the current stamps of all protected files and of these manifests.
    pub(super) fn stamps_with(&self, manifests: &BTreeSet<String>) -> SealStamps {
        self.stamps_of(&self.survey(), manifests)
    }

    fn stamps_of(&self, entries: &[(PathBuf, DirEntry)], manifests: &BTreeSet<String>) -> SealStamps {
        let own = entries.iter().filter_map(|(path, entry)| Some((path.clone(), stamp(&entry.metadata().ok()?))));
        let paths = manifests.iter().map(|path| text_path(path));
        let others =
            paths.filter_map(|path| Some((path.clone(), stamp(&self.root.join(path).symlink_metadata().ok()?))));
        SealStamps(own.chain(others).collect())
    }

    /// Returns the paths that were written between two sets of stamps.
    pub fn touched(&self, before: &SealStamps, after: &SealStamps) -> Vec<TamperFinding> {
        let all: BTreeSet<&PathBuf> = before.0.keys().chain(after.0.keys()).collect();
        let written = all.into_iter().filter(|path| before.0.get(*path) != after.0.get(*path));
        let word = |path: &PathBuf| match (before.0.contains_key(path), after.0.contains_key(path)) {
            (true, false) => "removed",
            (false, _) => "added",
            (true, true) => "changed",
        };
        written.map(|path| self.finding(path, word(path))).collect()
    }

    pub(super) fn finding(&self, path: &Path, change: &str) -> TamperFinding {
        // A path without a rule is checked because it is a manifest.
        let why = if self.is_git(path) { gits::WHY } else { MANIFEST };
        let path = path_text(path);
        let rule = self.protection.rule(&path).map_or(why, |rule| rule.why.as_str());
        TamperFinding { change: change.into(), rule: rule.into(), path }
    }

    /// Returns every protected entry, except for folders, with its path. Skips entries that cannot
    /// be listed.
    fn survey(&self) -> Vec<(PathBuf, DirEntry)> {
        self.walk(self.root.clone()).chain(self.of_git()).collect()
    }

    /// Returns the files that control git.
    fn of_git(&self) -> impl Iterator<Item = (PathBuf, DirEntry)> {
        self.gits.iter().flat_map(|place| gits::entries(&self.root, place))
    }

    /// Returns the protected entries at and below a path, except for folders and git directories.
    fn walk(&self, from: PathBuf) -> impl Iterator<Item = (PathBuf, DirEntry)> {
        let enters = |entry: &DirEntry| {
            let is_skipped = NOT_LOOKED_INTO.iter().any(|name| entry.file_name() == *name);
            let is_protected = || self.protection.rule(&self.relative(entry)).is_some();
            !(entry.depth() > 0 && entry.file_type().is_dir() && is_skipped && !is_protected())
        };
        let is_root = from == self.root;
        let walk = WalkDir::new(from).follow_links(false).follow_root_links(is_root).into_iter();
        let sealed = |entry: DirEntry| {
            let text = self.relative(&entry);
            let known = self.scope.as_ref().map(|scope| scope.get(&text).copied());
            let rule = || self.protection.rule(&text);
            let is_sealed = match known {
                None => rule().is_some(),
                Some(None) => rule().is_some_and(defines_the_gate),
                Some(Some(is_protected)) => is_protected,
            };
            is_sealed.then(|| (text_path(&text), entry))
        };
        walk.filter_entry(enters).flatten().filter(|entry| !entry.file_type().is_dir()).filter_map(sealed)
    }

    /// Returns the path of an entry, relative to the root. Works on bytes, because comparing parts
    /// takes ten times as long.
    fn relative(&self, entry: &DirEntry) -> String {
        let below = entry.path().as_os_str().as_bytes().strip_prefix(self.root.as_os_str().as_bytes());
        let below = below.unwrap_or_default();
        path_text(Path::new(OsStr::from_bytes(below.strip_prefix(b"/").unwrap_or(below))))
    }

    /// Reads the entry at a path. `room` is the number of bytes that may still be kept.
    fn read(&self, path: &Path, entry: &DirEntry, room: &mut u64) -> io::Result<Sealed> {
        if entry.file_type().is_symlink() {
            return Ok(Sealed::Link(fs::read_link(entry.path())?.into_os_string()));
        }
        if !entry.file_type().is_file() {
            return Ok(Sealed::Other);
        }
        let named = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
        let meta = entry.path().symlink_metadata().map_err(named)?;
        let mode = meta.permissions().mode() & 0o7777;
        if meta.len() > READ {
            let digest = format!("{} bytes {} {} {}", meta.len(), meta.ino(), meta.ctime(), meta.ctime_nsec());
            return Ok(Sealed::File { digest, mode, bytes: None });
        }
        let bytes = fs::read(entry.path()).map_err(named)?;
        let (digest, length) = (store::sha256(&bytes), bytes.len() as u64);
        let is_kept = length <= KEPT && length <= *room;
        *room -= if is_kept { length } else { 0 };
        Ok(Sealed::File { digest, mode, bytes: is_kept.then_some(bytes) })
    }

    /// Copies the current files at these paths below `backup`. Skips folders and pipes, and copies
    /// links as links. Returns a line for each path that could not be copied.
    pub(super) fn set_aside(&self, findings: &[TamperFinding], backup: &Path) -> Vec<String> {
        let failed = |finding: &TamperFinding| {
            let path = text_path(&finding.path);
            let (from, to) = (self.root.join(&path), backup.join(&path));
            match keep(&from, &to) {
                Ok(Kept::TooLarge(bytes)) => Some(format!("{} is too large to copy: {bytes} bytes", finding.path)),
                Ok(Kept::Done) => None,
                Err(error) => Some(format!("cannot keep a copy of {}: {error}", finding.path)),
            }
        };
        findings.iter().filter_map(failed).collect()
    }

    /// Puts sealed paths back. First removes added files, the deepest first, then makes the old
    /// files again. Leaves a file that it cannot replace. Keeps a copy of each replaced file below
    /// `backup`. Returns a line for each path that could not be put back.
    pub(super) fn restore(&self, findings: &[TamperFinding], backup: &Path) -> Vec<String> {
        let mut left = Vec::new();
        let is_sealed = |path: &String| self.protection.rule(path).is_some() || self.is_git(Path::new(path));
        let changed = findings.iter().filter(|finding| is_sealed(&finding.path));
        let (added, lost): (Vec<_>, Vec<_>) = changed
            .map(|finding| (text_path(&finding.path), finding))
            .partition(|(_, finding)| finding.change == "added");
        for (path, _) in added.iter().rev().map(|(path, finding)| (path.as_path(), finding)) {
            self.open_folders(path);
            let place = self.root.join(path);
            if let Err(error) = keep(&place, &backup.join(path)).and_then(|_| fs::remove_file(place)) {
                left.push(format!("cannot remove {}: {error}", path.display()));
            }
        }
        left.extend(self.take_away_new(findings, backup));
        for (path, _) in lost.iter().map(|(path, finding)| (path.as_path(), finding)) {
            let made = match self.files.get(path) {
                Some(Sealed::File { bytes: Some(bytes), mode, .. }) => self.make(path, backup, |place| {
                    fs::write(place, bytes)?;
                    fs::set_permissions(place, Permissions::from_mode(*mode))
                }),
                Some(Sealed::Link(leads_to)) => self.make(path, backup, |place| symlink(leads_to, place)),
                Some(Sealed::File { bytes: None, .. }) => Err(io::Error::other("too large, so fledge kept no copy")),
                Some(Sealed::Other) => Err(io::Error::other("neither a file nor a link")),
                None => continue, // restored later from the tree of the base
            };
            if let Err(error) = made {
                left.push(format!("cannot put {} back: {error}", path.display()));
            }
        }
        left
    }

    /// Makes a path again. Removes an entry in its place, or in the place of a folder above, and
    /// never follows a link.
    fn make(&self, path: &Path, backup: &Path, make: impl Fn(&Path) -> io::Result<()>) -> io::Result<()> {
        self.open_folders(path);
        let mut place = self.root.clone();
        let mut parts = path.components().peekable();
        while let Some(part) = parts.next() {
            place.push(part);
            let is_last = parts.peek().is_none();
            let kept = || backup.join(place.strip_prefix(&self.root).unwrap_or(path));
            match fs::symlink_metadata(&place) {
                Ok(meta) if meta.is_dir() && !is_last => {}
                Ok(meta) if meta.is_dir() => {
                    let all = WalkDir::new(&place).into_iter().flatten();
                    for entry in all.filter(|entry| !entry.file_type().is_dir()) {
                        let inner = entry.path().strip_prefix(&place).unwrap_or(Path::new(""));
                        keep(entry.path(), &kept().join(inner))?;
                    }
                    fs::remove_dir_all(&place)?;
                }
                Ok(_) => keep(&place, &kept()).and_then(|_| fs::remove_file(&place))?,
                Err(error) if error.kind() == ErrorKind::NotFound => break,
                Err(error) => return Err(error),
            }
        }
        let place = self.root.join(path);
        place.parent().map_or(Ok(()), fs::create_dir_all)?;
        make(&place)
    }

    /// Gives the owner access to the folders above a path, in case it was taken away.
    fn open_folders(&self, path: &Path) {
        let mut place = self.root.clone();
        for part in path.parent().into_iter().flat_map(Path::components) {
            place.push(part);
            let Ok(meta) = fs::symlink_metadata(&place) else { return };
            let mode = meta.permissions().mode();
            if meta.is_dir() && mode & 0o700 != 0o700 {
                let _making_it_will_say = fs::set_permissions(&place, Permissions::from_mode(mode | 0o700));
            }
        }
    }
}

fn stamp(meta: &Metadata) -> (u64, u64, i64, i64) {
    (meta.dev(), meta.ino(), meta.ctime(), meta.ctime_nsec())
}

impl Sealed {
    /// Returns whether both entries are equal. Files are compared by content and by the owner's
    /// execute permission.
    fn is_like(&self, was: &Self) -> bool {
        match (self, was) {
            (Self::File { digest, mode, .. }, Self::File { digest: was, mode: mode_was, .. }) => {
                digest == was && mode & 0o100 == mode_was & 0o100
            }
            (Self::Link(leads_to), Self::Link(was)) => leads_to.as_bytes() == was.as_bytes(),
            (Self::Other, Self::Other) => true,
            (Self::File { .. } | Self::Link(_) | Self::Other, _) => false,
        }
    }
}

/// The result of a copy.
enum Kept {
    Done,
    /// Nothing was copied, because the file is too large. Contains its size in bytes.
    TooLarge(u64),
}

/// Copies a file or a link. Does nothing if it does not exist, is already copied or is too large.
fn keep(from: &Path, to: &Path) -> io::Result<Kept> {
    let Ok(meta) = from.symlink_metadata() else { return Ok(Kept::Done) };
    if !(meta.is_file() || meta.is_symlink()) || to.symlink_metadata().is_ok() {
        return Ok(Kept::Done);
    }
    if meta.is_file() && meta.len() > ASIDE {
        return Ok(Kept::TooLarge(meta.len()));
    }
    to.parent().map_or(Ok(()), fs::create_dir_all)?;
    let copied = if meta.is_symlink() { symlink(fs::read_link(from)?, to) } else { fs::copy(from, to).map(drop) };
    copied.map(|()| Kept::Done)
}

#[cfg(test)]
#[path = "seal_tests.rs"]
mod tests;
