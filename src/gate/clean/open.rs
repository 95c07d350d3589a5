//! The paths that the sandbox of a room lets through: its files, the downloads of its toolchains
//! and the history of its base.

use super::layers::pins;
use super::{CleanRoom, RoomDependencies, RoomError, RoomRequest};
use crate::gate::GateSite;
use crate::gate::install;
use crate::gate::names::has_name;
use crate::gate::planted::word;
use crate::process::sandbox::{Mount, PinnedPath, SandboxKind};
use crate::workspace::replica::KeptHistory;
use std::fs;
use std::path::{Path, PathBuf};

/// Variables that name the download folder of a toolchain, each with the toolchain's program. The
/// program names the folder among the caches of a lane that has a `setup`.
const FETCHED: [(&str, &str); 5] = [
    ("CARGO_HOME", "cargo"),
    ("GOPATH", "go"),
    ("npm_config_cache", "npm"),
    ("PIP_CACHE_DIR", "pip"),
    ("UV_CACHE_DIR", "uv"),
];
/// The folder, below the home, in which a room behind bubblewrap sees these downloads.
const FETCHED_AT: &str = ".fledge-fetched";

/// The maximum number of files that a room without layers protects by mounts. bubblewrap reads all
/// mounts again for each one.
const MOST_MOUNTED: usize = 200;
/// The path at which a room behind bubblewrap sees the history of its base.
const HISTORY_AT: &str = "/tmp/.fledge-history";

impl CleanRoom {
    /// Opens the sandbox for the paths that this room needs.
    pub(super) fn open(&mut self, site: &GateSite, wanted: RoomRequest<'_>) -> Result<(), RoomError> {
        let (files, at) = (self.files(), self.behind.at.clone());
        let home = self.env.get("HOME").map(PathBuf::from);
        let rules = &mut self.behind.rules;
        rules.network = wanted.lane.network;
        rules.hidden.clone_from(&site.hidden);
        if site.sandbox.kind() == SandboxKind::Landlock {
            // Behind bubblewrap, the room covers this path. Landlock must hide the files that the
            // agent left there.
            rules.hidden.push(site.root.clone());
        }
        if let Some(held_out) = &wanted.lane.held_out {
            self.held_at = Some(match site.sandbox.kind() {
                SandboxKind::Bubblewrap => {
                    let at = Path::new("/tmp").join(word());
                    rules.mounts.push(Mount { from: held_out.clone(), at: at.clone(), writable: false });
                    at
                }
                SandboxKind::Landlock | SandboxKind::Off => {
                    rules.hidden.retain(|path| path != held_out);
                    rules.read_only.push(held_out.clone());
                    held_out.clone()
                }
            });
        }
        rules.home = home.clone();
        if site.sandbox.kind() == SandboxKind::Bubblewrap {
            rules.mounts.push(Mount { from: self.files.clone(), at: at.clone(), writable: true });
            if !site.has_layers {
                rules.mounts.extend(protecting(&files, &at, wanted));
            }
        } else {
            rules.writable.push(files);
        }
        let caches = wanted.caches.filter(|_| !wanted.lane.setup.is_empty());
        // Every later room sees the downloads of the base's own setup, and cannot change them.
        let (fetched, writable): (&dyn Fn(&str) -> PathBuf, bool) = match (caches, wanted.dependencies) {
            (Some(caches), _) => (&|name| caches.fetched(name), caches.is_open()),
            (None, RoomDependencies::Installed(installation)) if !site.has_layers => {
                (&|name| installation.fetched(name), false)
            }
            (None, RoomDependencies::Awaited(folder)) if !site.has_layers => {
                (&|name| install::fetched(folder, name), true)
            }
            (None, _) => return Ok(()),
        };
        let Some(home) = home else { return Ok(()) };
        // An installation fills only its programs' caches. Other caches stay unchanged.
        let commands: Option<Vec<&str>> = match (caches, wanted.dependencies) {
            (None, RoomDependencies::Installed(it)) => Some(it.report.commands.iter().map(String::as_str).collect()),
            (None, RoomDependencies::Awaited(_)) => {
                Some(wanted.lane.steps.iter().map(|step| step.run.as_str()).collect())
            }
            (_, _) => None,
        };
        let is_filled = |name: &str| commands.as_ref().is_none_or(|all| all.iter().any(|run| has_name(run, name)));
        for (variable, name) in FETCHED.into_iter().filter(|(_, name)| is_filled(name)) {
            let from = fetched(name);
            fs::create_dir_all(&from).map_err(|source| RoomError::Io { path: from.clone(), source })?;
            let at = match site.sandbox.kind() {
                SandboxKind::Bubblewrap => home.join(FETCHED_AT).join(name),
                SandboxKind::Landlock | SandboxKind::Off => from.clone(),
            };
            self.env = self.env.with([(&variable.to_owned(), &at.to_string_lossy().into_owned())]);
            match site.sandbox.kind() {
                SandboxKind::Bubblewrap => self.behind.rules.mounts.push(Mount { from, at, writable }),
                SandboxKind::Landlock | SandboxKind::Off if writable => self.behind.rules.writable.push(from),
                SandboxKind::Landlock | SandboxKind::Off => {}
            }
        }
        Ok(())
    }

    /// Shows the room the history of its base, and hides the user's repository.
    pub(super) fn show(&mut self, site: &GateSite, wanted: RoomRequest<'_>, history: Option<KeptHistory>) {
        let Some(source) = &wanted.gate.repository else { return };
        let rules = &mut self.behind.rules;
        match (history, history_at(site)) {
            (Some(history), Some(at)) => {
                rules.mounts.push(Mount { from: history.folder().to_owned(), at: at.to_owned(), writable: false });
            }
            (Some(history), None) => rules.read_only.push(history.folder().to_owned()),
            (None, _) => {}
        }
        // A room at the path of the user's checkout already covers the user's `.git`.
        rules.hidden.extend(Some(source.common().to_owned()).filter(|common| !common.starts_with(&self.behind.at)));
    }
}

/// Returns mounts that protect the most important of the room's protected files, for a room without
/// layers. Each folder above them is a mount too, so nothing can move it.
fn protecting(files: &Path, at: &Path, wanted: RoomRequest<'_>) -> Vec<Mount> {
    let kept = wanted.gate.policy.most_important(wanted.kept.iter().cloned().collect(), MOST_MOUNTED);
    let mount = |PinnedPath { at: from, read_only }| {
        let at = at.join(from.strip_prefix(files).ok()?);
        Some(Mount { from, at, writable: !read_only })
    };
    pins(files, &kept).into_iter().filter_map(mount).collect()
}

/// Returns the path at which a room sees the history of its base. Returns `None` where that is the
/// path of the history itself.
pub(super) fn history_at(site: &GateSite) -> Option<&'static Path> {
    (site.sandbox.kind() == SandboxKind::Bubblewrap).then_some(Path::new(HISTORY_AT))
}
