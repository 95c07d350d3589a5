//! Dependencies that are installed in the workspace when a run begins: folders that package
//! managers fill, and small files that belong to them, such as an ignored lock file.
//!
//! Git ignores them, so no tree has them, but no check works without them. Rooms get them in the
//! state before the agent started.

mod made;
mod restored;
mod withheld;

use super::clean::copy_tree;
use super::install::is_lock;
use super::names::joined;
use crate::process::sandbox::{Mounts, PinnedPath, ViewLayer, holds_credentials};
use crate::store::sha256;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs::{self, Metadata};
use std::io;
use std::ops::Bound;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use tokio_util::sync::CancellationToken;
use walkdir::WalkDir;

/// Manifests of Python projects.
const PYTHON: &[&str] =
    &["pyproject.toml", "setup.py", "setup.cfg", "requirements.txt", "requirements-dev.txt", "tox.ini", "Pipfile"];

/// A row of the table: the manifests beside which a folder is searched, its names, a path that it
/// must contain, and the reason.
type InstalledRow = (&'static [&'static str], &'static [&'static str], &'static str, &'static str);

/// Folders that package managers fill.
#[rustfmt::skip]
pub(crate) const FOLDERS: &[InstalledRow] = &[
    (&["package.json"], &["node_modules"], "", "npm, pnpm, yarn and bun install packages there"),
    (&["package.json"], &[".yarn"], "", "yarn keeps packages and itself there"),
    (&["bower.json"], &["bower_components"], "", "bower installs packages there"),
    (PYTHON, &[".venv", "venv", "env", ".env", "virtualenv"], "pyvenv.cfg", "a virtual environment of Python"),
    (PYTHON, &[".tox"], "", "tox keeps virtual environments there"),
    (&["noxfile.py"], &[".nox"], "", "nox keeps virtual environments there"),
    (PYTHON, &["__pypackages__", ".eggs"], "", "pdm and setuptools install packages there"),
    (&["Gemfile"], &["vendor/bundle", ".bundle"], "", "bundler installs gems there"),
    (&["composer.json"], &["vendor"], "autoload.php", "composer installs packages there"),
    (&["go.mod"], &["vendor"], "modules.txt", "`go mod vendor` copies modules there"),
    (&["Podfile"], &["Pods"], "", "CocoaPods installs pods there"),
    (&["Cartfile"], &["Carthage"], "", "Carthage keeps frameworks there"),
    (&["mix.exs"], &["deps"], "", "mix installs packages there"),
    (&["pubspec.yaml"], &[".dart_tool"], "", "pub records the places of packages there"),
    (&["elm.json"], &["elm-stuff"], "", "elm keeps packages there"),
];

/// Files that package managers write beside a manifest: the manifest and the names of the files.
#[rustfmt::skip]
pub(crate) const FILES: &[(&str, &[&str])] = &[
    ("Cargo.toml", &["Cargo.lock"]),
    ("package.json", &["package-lock.json", "npm-shrinkwrap.json", "yarn.lock", "pnpm-lock.yaml", "bun.lock", "bun.lockb", ".pnp.cjs", ".pnp.loader.mjs"]),
    ("pyproject.toml", &["poetry.lock", "uv.lock", "pdm.lock"]),
    ("Pipfile", &["Pipfile.lock"]),
    ("go.mod", &["go.sum"]),
    ("go.work", &["go.work.sum"]),
    ("Gemfile", &["Gemfile.lock"]),
    ("composer.json", &["composer.lock"]),
    ("mix.exs", &["mix.lock"]),
    ("pubspec.yaml", &["pubspec.lock"]),
    // setuptools-scm and hatch-vcs write the version of a package beside its code when they install
    // it.
    ("__init__.py", &["_version.py"]),
];

/// Returns the tables above as a Markdown page for people.
pub fn installed_table() -> String {
    let names = |names: &[&str]| names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(" ");
    let mut text = String::from(
        "# Installed dependencies that a room has\n\nPrinted from `src/gate/installed.rs` by a test; to regenerate it, run `FLEDGE_BLESS=1 cargo test --test it architecture::`.\n\n\
         A room has a folder of this table if the folder is beside one of the manifests and contains no file of the base.\n\n| beside | folder | with | why |\n|---|---|---|---|\n",
    );
    for (manifests, folders, has, why) in FOLDERS {
        let has = if has.is_empty() { String::new() } else { format!("`{has}`") };
        text.push_str(&format!("| {} | {} | {has} | {why} |\n", names(manifests), names(folders)));
    }
    text.push_str(&format!(
        "| {} | `*{METADATA}`, also in `src` and `lib` | | an editable install reads its metadata there |\n",
        names(PYTHON)
    ));
    text.push_str("\nA room also has these files if the base does not have them.\n\n| beside | file |\n|---|---|\n");
    for (manifest, files) in FILES {
        text.push_str(&format!("| `{manifest}` | {} |\n", names(files)));
    }
    text
}

/// Folders of a Python project in which an editable install may leave its metadata.
const SOURCES: [&str; 3] = ["", "src", "lib"];
/// Folders that tools change whenever they run.
const CACHES: [&str; 3] = [".cache", "__pycache__", ".vite"];
/// The ending of a folder with metadata of an editable install.
const METADATA: &str = ".egg-info";

/// The dependencies that are installed in a workspace, by paths relative to it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstalledPackages {
    /// Folders, with everything in them.
    pub folders: Vec<String>,
    /// Files that belong to installed dependencies.
    pub files: Vec<String>,
    /// Folders outside the workspace that virtual environments lead to.
    pub interpreters: Vec<PathBuf>,
    /// A digest of the names, sizes and times of everything in the folders.
    pub(super) digest: String,
    /// Paths at which such folders and files were searched but did not exist. If one exists later,
    /// the agent made it.
    absent: Vec<String>,
    /// Paths in the folders that a run with hidden tests leaves out for agents and rooms.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    withheld: Vec<String>,
}

impl InstalledPackages {
    /// Returns whether an ignored path is one of the installed paths or below one, so that rooms
    /// have it.
    pub fn has(&self, path: &str) -> bool {
        let path = Path::new(path.trim_end_matches('/'));
        self.folders.iter().chain(&self.files).any(|own| path.starts_with(own))
    }

    /// Finds the installed dependencies in `root` by the manifests among `paths`, the files of the
    /// base. Adds the folders of `included`. Blocks.
    pub(super) fn find<'i>(root: &Path, paths: &[String], included: impl Iterator<Item = &'i String>) -> Self {
        let tracked: BTreeSet<&str> = paths.iter().map(String::as_str).collect();
        let (mut folders, mut files, mut absent) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        let manifests = paths.iter().map(|path| path.rsplit_once('/').unwrap_or(("", path)));
        for (dir, name) in manifests {
            let rows = FOLDERS.iter().filter(|(manifests, ..)| manifests.contains(&name));
            for (_, names, has, _) in rows {
                let found: Vec<String> = names.iter().map(|name| joined(dir, name)).collect();
                absent.extend(found.iter().filter(|path| !root.join(path).exists()).cloned());
                folders.extend(found.into_iter().filter(|path| root.join(path).join(has).exists()));
            }
            let beside = FILES.iter().filter(|(manifest, _)| *manifest == name).flat_map(|(_, names)| *names);
            files.extend(beside.map(|name| joined(dir, name)));
            if PYTHON.contains(&name) {
                folders.extend(SOURCES.iter().flat_map(|source| metadata(root, &joined(dir, source))));
            }
        }
        let environments = FOLDERS.iter().filter(|(.., has, _)| *has == "pyvenv.cfg").flat_map(|(_, names, ..)| *names);
        folders
            .extend(environments.filter(|name| root.join(name).join("pyvenv.cfg").is_file()).map(|&name| name.into()));
        folders.extend(included.map(|path| path.trim_matches('/').to_owned()));
        let looked_for: BTreeSet<String> = folders.union(&files).cloned().collect();
        let meta = |path: &String| reached(root, path).and_then(|path| path.symlink_metadata().ok());
        let has_tracked = |path: &String| {
            let below = format!("{path}/");
            let next = tracked.range::<str, _>((Bound::Included(below.as_str()), Bound::Unbounded)).next();
            next.is_some_and(|next| next.starts_with(&below))
        };
        folders.retain(|path| meta(path).is_some_and(|meta| meta.is_dir()) && !has_tracked(path));
        let is_below = |path: &String| path.match_indices('/').any(|(end, _)| folders.contains(&path[..end]));
        let folders: Vec<String> = folders.iter().filter(|path| !is_below(path)).cloned().collect();
        let is_new = |path: &String| !tracked.contains(path.as_str()) && meta(path).is_some_and(|meta| meta.is_file());
        let files = files.into_iter().filter(is_new).collect();
        let interpreters = folders.iter().filter_map(|path| interpreter(&root.join(path))).collect();
        let digest = if folders.is_empty() { String::new() } else { digest(root, &folders) };
        // Lock files do not matter here, because nothing executes them.
        absent.extend(looked_for.into_iter().filter(|path| !is_lock(path) && !root.join(path).exists()));
        Self { folders, files, interpreters, digest, absent: absent.into_iter().collect(), withheld: Vec::new() }
    }

    /// Returns layers over the folders of `origin` at their paths in `root`. Files that are written
    /// go to `over`. Also returns pins for the folders above, because a program that moved one of
    /// these away would get its path without a layer.
    ///
    /// Makes folders that `root` lacks. Leaves out folders behind links, folders that `is_wanted`
    /// rejects, and folders in whose place there is a file.
    ///
    /// # Errors
    /// [`io::Error`] where a folder cannot be made.
    pub fn mounts(
        &self,
        origin: &Path,
        root: &Path,
        over: &Path,
        is_wanted: impl Fn(&str) -> bool,
    ) -> io::Result<Mounts> {
        let mut mounts = Mounts::default();
        for path in self.folders.iter().filter(|path| is_wanted(path)) {
            let Some(at) = reached(root, path) else { continue };
            match fs::create_dir_all(&at) {
                Ok(()) => {}
                Err(error) if matches!(error.kind(), io::ErrorKind::AlreadyExists | io::ErrorKind::NotADirectory) => {
                    continue;
                }
                Err(error) => return Err(error),
            }
            let above = at.ancestors().skip(1).take_while(|above| *above != root);
            mounts.pins.extend(above.map(|above| PinnedPath { at: above.to_owned(), read_only: false }));
            let over = over.join(mounts.layers.len().to_string());
            self.hide_withheld(path, &over)?;
            mounts.layers.push(ViewLayer { lower: origin.join(path), between: Vec::new(), over, at });
        }
        mounts.pins.sort_by(|one, other| one.at.cmp(&other.at));
        mounts.pins.dedup();
        Ok(mounts)
    }

    /// Copies the folders of `origin` to the folder `to`, sharing blocks where the file system can.
    ///
    /// # Errors
    /// The reason, where a folder cannot be copied.
    pub async fn copy(
        &self,
        origin: &Path,
        to: &Path,
        env: &[(String, String)],
        stop: &CancellationToken,
    ) -> Result<(), String> {
        for path in &self.folders {
            let to = to.join(path);
            to.parent().map_or(Ok(()), fs::create_dir_all).map_err(|error| format!("{}: {error}", to.display()))?;
            copy_tree(&origin.join(path), &to, env, stop).await.map_err(|why| format!("`{path}`: {why}"))?;
        }
        Ok(())
    }
}

/// Returns the path below a folder. Returns `None` if the path or a folder on the way is a link, or
/// if a part of it is empty, `.` or `..`. Parts that do not exist are allowed.
pub(super) fn reached(root: &Path, path: &str) -> Option<PathBuf> {
    let mut whole = root.to_owned();
    for part in path.split('/') {
        if matches!(part, "" | "." | "..") {
            return None;
        }
        whole.push(part);
        if whole.symlink_metadata().is_ok_and(|meta| meta.is_symlink()) {
            return None;
        }
    }
    Some(whole)
}

/// Returns the folders in `dir` with metadata of editable installs.
fn metadata(root: &Path, dir: &str) -> Vec<String> {
    let entries = fs::read_dir(root.join(dir)).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|name| name.ends_with(METADATA)).map(|name| joined(dir, &name)).collect()
}

/// Returns the folder of the interpreter that a virtual environment was made from, if it is in a
/// home. Rooms see nothing else of that home.
fn interpreter(environment: &Path) -> Option<PathBuf> {
    let text = fs::read_to_string(environment.join("pyvenv.cfg")).ok()?;
    let home = text.lines().filter_map(|line| line.split_once('=')).find(|(key, _)| key.trim() == "home")?.1;
    let programs = Path::new(home.trim()).canonicalize().ok()?;
    let is_in_home = |path: &Path| match path.strip_prefix("/root").or_else(|_| path.strip_prefix("/home")) {
        // `/home/USER/.../bin`: at least one folder is between the home and this one.
        Ok(below) => below.components().count() > usize::from(path.starts_with("/home")),
        Err(_) => false,
    };
    // An agent may have written the file. So only the folder of a real interpreter, without
    // credentials in it, is shown.
    let has_python = ["python3", "python"].iter().any(|name| programs.join(name).is_file());
    let whole = programs.parent().filter(|whole| is_in_home(whole));
    let shown = whole.map(Path::to_owned).or_else(|| is_in_home(&programs).then_some(programs.clone()));
    shown.filter(|shown| has_python && !holds_credentials(shown))
}

/// Returns a digest of folders by the names, kinds, sizes and times of their contents.
fn digest(root: &Path, folders: &[String]) -> String {
    let mut listing = Vec::new();
    let mut add = |path: &Path, meta: &Metadata| {
        listing.extend_from_slice(path.as_os_str().as_bytes());
        let link = if meta.is_symlink() { fs::read_link(path).unwrap_or_default() } else { PathBuf::new() };
        let (size, time) =
            if meta.is_dir() { (0, 0) } else { (meta.size(), meta.mtime_nsec() + meta.mtime() * 1_000_000_000) };
        listing.extend_from_slice(format!("\0{:o} {size} {time} ", meta.mode()).as_bytes());
        listing.extend_from_slice(link.as_os_str().as_bytes());
        listing.push(0);
    };
    for folder in folders {
        let walk = WalkDir::new(root.join(folder)).follow_links(false).sort_by_file_name().into_iter();
        let is_cache =
            |entry: &walkdir::DirEntry| entry.file_name().to_str().is_some_and(|name| CACHES.contains(&name));
        for entry in walk.filter_entry(|entry| !is_cache(entry)).flatten() {
            if let Ok(meta) = entry.metadata() {
                add(entry.path(), &meta);
            }
        }
    }
    sha256(&listing)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn file(root: &Path, path: &str, text: &str) {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn found(root: &Path, tracked: &[&str]) -> InstalledPackages {
        let tracked: Vec<String> = tracked.iter().map(|path| (*path).to_owned()).collect();
        InstalledPackages::find(root, &tracked, [].iter())
    }

    #[test]
    fn folders_are_found_beside_their_manifests_in_every_package() {
        let dir = crate::test_support::temp_dir();
        let root = dir.path();
        let inside = [
            "node_modules/a/index.js",
            "node_modules/a/node_modules/b/index.js",
            "web/node_modules/c/index.js",
            "docs/node_modules/d/index.js", // no manifest beside it
            ".venv/pyvenv.cfg",
            "env/main.tf", // an environment of another kind
            "api/vendor/autoload.php",
            "src/app.egg-info/PKG-INFO",
            "Cargo.lock",
            "package-lock.json",
            "src/app/_version.py",
            "target/debug/app",
        ];
        inside.iter().for_each(|path| file(root, path, ""));
        let tracked = [
            "package.json",
            "web/package.json",
            "pyproject.toml",
            "api/composer.json",
            "Cargo.toml",
            "src/app/__init__.py",
            "yarn.lock",
        ];
        let installed = found(root, &tracked);
        let folders = [".venv", "api/vendor", "node_modules", "src/app.egg-info", "web/node_modules"];
        assert_eq!(installed.folders, folders);
        assert_eq!(installed.files, ["Cargo.lock", "package-lock.json", "src/app/_version.py"]);
        file(root, "node_modules/a/index.js", "changed");
        assert_ne!(found(root, &tracked).digest, installed.digest);
    }

    #[test]
    fn a_folder_with_tracked_files_or_behind_a_link_is_not_brought() {
        let dir = crate::test_support::temp_dir();
        let root = dir.path();
        file(root, "vendor/modules.txt", "");
        file(root, "vendor/own.go", "");
        file(root, "elsewhere/a.js", "");
        symlink("elsewhere", root.join("node_modules")).unwrap();
        symlink("elsewhere", root.join("web")).unwrap();
        let installed = found(root, &["go.mod", "package.json", "vendor/own.go", "web/package.json"]);
        assert_eq!((installed.folders, installed.files), (Vec::<String>::new(), Vec::<String>::new()));
        assert_eq!(reached(root, "web/node_modules"), None);
        assert_eq!(reached(root, "a/../../b"), None);
        assert_eq!(reached(root, "a/b"), Some(root.join("a/b")));
    }

    #[test]
    fn an_interpreter_in_a_home_is_shown_without_the_home() {
        let dir = crate::test_support::temp_dir();
        file(dir.path(), ".venv/pyvenv.cfg", "home = /usr/bin\nversion = 3.12\n");
        assert!(found(dir.path(), &["setup.py"]).interpreters.is_empty());
    }
}
