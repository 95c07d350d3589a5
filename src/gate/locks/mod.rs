//! Comparison of lock files with the base's, entry by entry. A setup step has network and fetches
//! the packages that a lock file names. So an entry must not move to another host, lose its
//! checksum, or come from a source that the base does not use. Pure.

mod compare;
mod json_locks;
mod line_locks;
mod manifests;
mod pnpm;
mod pubspec;
mod registries;
mod toml_locks;
mod yarn;

use super::install;
use super::policy::{PathChange, PathChangeKind, TreeSide};
use crate::verdict::TamperFinding;
pub(super) use manifests::is_manifest;
pub(super) use registries::CONFIGURED;
use std::collections::BTreeSet;

/// The maximum size of a lock file that is compared, in bytes.
pub(super) const LARGEST: u64 = 32 * 1024 * 1024;
/// The maximum number of entries that a note or a list of findings names.
const NAMED: usize = 5;

/// The format of a lock file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LockFormat {
    Npm,
    Pnpm,
    Yarn,
    Cargo,
    Uv,
    Poetry,
    Requirements,
    GoSum,
    Bundler,
    Composer,
    Pub,
}

/// A group of package managers that share registries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ecosystem {
    Node,
    Rust,
    Python,
    Go,
    Ruby,
    Php,
    Dart,
}

/// The source of a package.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) enum PackageSource {
    /// A registry.
    #[default]
    Registry,
    /// A git repository with its revision, or the address of an archive.
    Address(String),
    /// A folder or file on this machine.
    Path(String),
}

/// An entry of a lock file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct LockEntry {
    pub(super) name: String,
    pub(super) version: String,
    pub(super) source: PackageSource,
    /// The hosts or indexes that serve the package.
    pub(super) places: BTreeSet<String>,
    /// The addresses of its files.
    pub(super) urls: BTreeSet<String>,
    pub(super) checksums: BTreeSet<String>,
    /// At least one file of the package has no checksum.
    pub(super) is_bare: bool,
    /// The package's install script and programs, as words for notes.
    pub(super) runs: BTreeSet<String>,
    /// The package that is installed under this name, if it has another name.
    pub(super) alias: Option<String>,
    /// The dependencies of the package, as the lock file writes them.
    pub(super) needs: BTreeSet<String>,
}

/// The content of a lock file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct LockFile {
    pub(super) entries: Vec<LockEntry>,
    /// Options that select the sources of packages.
    pub(super) options: BTreeSet<String>,
    /// Other options that may change what is installed.
    pub(super) remarks: BTreeSet<String>,
}

impl LockEntry {
    fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        Self { name: name.into(), version: version.into(), ..Self::default() }
    }

    /// Adds an address from which the package is fetched.
    fn fetch_from(&mut self, url: &str) {
        self.places.insert(registries::host(url));
        self.urls.insert(url.to_owned());
    }
}

impl LockFormat {
    /// Returns the format of the lock file at a path; `None` if the path names no lock file.
    pub(super) fn of_path(path: &str) -> Option<Self> {
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        let in_requirements = folder.rsplit('/').next() == Some("requirements");
        let has_ending = name.ends_with(".txt") || name.ends_with(".in");
        let is_list = in_requirements || ["requirements", "constraints", "reqs"].iter().any(|word| name.contains(word));
        Some(match name {
            "package-lock.json" | "npm-shrinkwrap.json" => Self::Npm,
            "pnpm-lock.yaml" => Self::Pnpm,
            "yarn.lock" => Self::Yarn,
            "Cargo.lock" => Self::Cargo,
            "uv.lock" => Self::Uv,
            "poetry.lock" => Self::Poetry,
            "go.sum" | "go.work.sum" => Self::GoSum,
            "Gemfile.lock" => Self::Bundler,
            "composer.lock" => Self::Composer,
            "pubspec.lock" => Self::Pub,
            _ if is_list && has_ending => Self::Requirements,
            _ => return None,
        })
    }

    pub(super) fn ecosystem(self) -> Ecosystem {
        match self {
            Self::Npm | Self::Pnpm | Self::Yarn => Ecosystem::Node,
            Self::Cargo => Ecosystem::Rust,
            Self::Uv | Self::Poetry | Self::Requirements => Ecosystem::Python,
            Self::GoSum => Ecosystem::Go,
            Self::Bundler => Ecosystem::Ruby,
            Self::Composer => Ecosystem::Php,
            Self::Pub => Ecosystem::Dart,
        }
    }

    /// Parses a lock file.
    ///
    /// # Errors
    /// The reason, if the text does not have this format.
    pub(super) fn parse(self, bytes: &[u8]) -> Result<LockFile, String> {
        let text = std::str::from_utf8(bytes).map_err(|error| error.to_string())?;
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let entries = match self {
            Self::Npm => json_locks::npm(text)?,
            Self::Pnpm => pnpm::entries(text)?,
            Self::Yarn => yarn::entries(text)?,
            Self::Cargo => toml_locks::cargo(text)?,
            Self::Uv => toml_locks::uv(text)?,
            Self::Poetry => toml_locks::poetry(text)?,
            Self::Requirements => return line_locks::requirements(text),
            Self::GoSum => line_locks::go_sum(text)?,
            Self::Bundler => line_locks::bundler(text)?,
            Self::Composer => json_locks::composer(text)?,
            Self::Pub => pubspec::entries(text)?,
        };
        Ok(LockFile { entries, ..LockFile::default() })
    }
}

/// Returns whether fledge compares the entries of a lock file with those of the base.
pub(super) fn compares(path: &str) -> bool {
    LockFormat::of_path(path).is_some()
}

/// Returns whether [`findings_and_notes`] needs the content of this path.
pub(super) fn reads(path: &str) -> bool {
    LockFormat::of_path(path).is_some() || is_manifest(path)
}

/// Compares the lock files and manifests among these changes with the base's. Returns findings, and
/// a note for each lock file that changed. `contents` returns a file of either tree, including
/// unchanged files. `is_opened` returns whether the task opens a path; an opened path has no
/// findings.
pub(super) fn findings_and_notes(
    changes: &[PathChange],
    contents: impl Fn(&str, TreeSide) -> Option<Vec<u8>>,
    is_opened: impl Fn(&str) -> bool,
) -> (Vec<TamperFinding>, Vec<String>) {
    let (mut findings, mut notes) = (Vec::new(), Vec::new());
    for PathChange { path, kind } in changes.iter().filter(|change| change.kind != PathChangeKind::ModeChanged) {
        let (was, is) = (contents(path, TreeSide::Base), contents(path, TreeSide::Candidate));
        // npm prefers `npm-shrinkwrap.json` to the lock file beside it.
        let replaced = || path.strip_suffix("npm-shrinkwrap.json").map(|folder| format!("{folder}package-lock.json"));
        let was = was.or_else(|| contents(&replaced()?, TreeSide::Base));
        let mut wrong = Vec::new();
        let format = LockFormat::of_path(path);
        if format.is_none() && install::is_lock(path) {
            notes.push(format!("{path}: changed, and fledge does not compare this format"));
        }
        if let Some(format) = format {
            let manifest_is_gone = |other: &PathChange| {
                other.kind == PathChangeKind::Removed && manifests::is_beside(format.ecosystem(), path, &other.path)
            };
            let is_moved_away = is.is_none() && changes.iter().any(manifest_is_gone);
            let known = registries::known(format, path, |path| contents(path, TreeSide::Base));
            let compared = compare::lock_files(format, path, was.as_deref(), is.as_deref(), &known);
            notes.extend(compared.note.map(|note| format!("{path}: {note}")));
            wrong.extend(compared.wrong.into_iter().filter(|_| !is_moved_away));
        }
        wrong.extend(manifests::new_sources(path, was.as_deref(), is.as_deref()));
        if is_opened(path) {
            continue;
        }
        let change = match kind {
            PathChangeKind::Added => "added",
            PathChangeKind::Removed => "removed",
            PathChangeKind::Modified | PathChangeKind::ModeChanged => "changed",
        };
        findings.extend(wrong.into_iter().map(|rule| TamperFinding {
            path: path.clone(),
            change: change.into(),
            rule,
        }));
    }
    (findings, notes)
}

#[cfg(test)]
mod tests;
