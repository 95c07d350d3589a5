//! Caches of package managers and build tools in a user's home. The tools write locks, indexes and
//! downloads into them while they work. In a sandbox each cache has a writable layer over it, so
//! the tools work and the cache itself does not change.

use super::{Mount, Mounts, ViewLayer};
use crate::process::Variables;
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// For each cache: the variable that names it or a folder above it (`VARIABLE/REST`), its default
/// place below a home, and the beginnings of commands that use it.
#[rustfmt::skip]
const CACHES: &[(&str, &str, &[&str])] = &[
    ("GOCACHE", ".cache/go-build", &["go "]),
    ("GOMODCACHE", "go/pkg/mod", &["go "]),
    ("GOPATH/pkg/mod", "go/pkg/mod", &["go "]),
    ("GOPATH/pkg/sumdb", "go/pkg/sumdb", &["go "]),
    ("UV_CACHE_DIR", ".cache/uv", &["uv ", "uvx "]),
    ("PIP_CACHE_DIR", ".cache/pip", &["pip"]),
    ("HATCH_DATA_DIR", ".local/share/hatch", &["hatch "]),
    ("POETRY_CACHE_DIR", ".cache/pypoetry", &["poetry "]),
    ("npm_config_cache", ".npm", &["npm ", "npx "]),
    ("YARN_CACHE_FOLDER", ".cache/yarn", &["yarn "]),
    ("", ".local/share/pnpm", &["pnpm "]),
    ("", ".cache/pnpm", &["pnpm "]),
    ("CARGO_HOME/registry", ".cargo/registry", &["cargo "]),
    ("CARGO_HOME/git", ".cargo/git", &["cargo "]),
    ("GRADLE_USER_HOME", ".gradle", &["gradle"]),
    ("", ".m2/repository", &["mvn"]),
    ("GEM_HOME", ".local/share/gem", &["bundle ", "gem ", "rake", "rspec"]),
    ("HEX_HOME", ".hex", &["mix "]),
    ("PUB_CACHE", ".pub-cache", &["dart ", "flutter "]),
    ("ELM_HOME", ".elm", &["elm ", "elm-"]),
    ("WORKON_HOME", ".local/share/virtualenvs", &["pipenv "]),
];

/// The variables of those caches without which their tools do not start: Go and uv end with an
/// error if they cannot write the folder.
const NEEDED: [&str; 2] = ["GOCACHE", "UV_CACHE_DIR"];

/// Returns the variables of an environment that name a cache which its tool must write, each with
/// the named folder and the default place below a home.
pub(super) fn needed_caches(env: &Variables) -> impl Iterator<Item = (&'static str, &Path, &'static str)> {
    let needed = CACHES.iter().filter(|(name, ..)| NEEDED.contains(name));
    needed.filter_map(|(name, place, _)| Some((*name, Path::new(env.get(name)?), *place)))
}

/// A cache of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolCache {
    /// The folder, without links.
    pub folder: PathBuf,
    /// The beginnings of commands that use it.
    pub programs: &'static [&'static str],
    /// True if the folder exists. A tool that has fetched nothing yet has none.
    pub exists: bool,
    /// True if it contains results of builds and tests, and not downloads.
    pub is_build_cache: bool,
}

/// Finds the caches of a user by the variables of their environment.
///
/// A sandbox cannot create a folder in one that a variable names, for example `/usr/local/cargo`.
/// So a cache there that does not exist yet is created, if the named folder exists.
pub fn tool_caches<'e>(variable: impl Fn(&str) -> Option<&'e str>) -> Vec<ToolCache> {
    let home = variable("HOME").map(Path::new).filter(|home| home.is_absolute());
    let Some(home) = home.and_then(|home| home.canonicalize().ok()) else { return Vec::new() };
    let mut known = BTreeSet::new();
    let found = CACHES.iter().filter_map(|(name, place, programs)| {
        let (above, rest) = name.split_once('/').unwrap_or((name, ""));
        let led = std::env::split_paths(variable(above).unwrap_or_default()).next();
        let led = led.filter(|path| path.is_absolute());
        let named = led
            .as_ref()
            .map_or_else(|| home.join(place), |led| if rest.is_empty() { led.clone() } else { led.join(rest) });
        if led.is_some_and(|led| led.is_dir()) {
            let _stays_missing = fs::create_dir_all(&named); // for example on a read-only disk
        }
        let real = named.canonicalize().ok().filter(|real| real.is_dir());
        let is_free = named.starts_with(&home) && named.symlink_metadata().is_err();
        let folder = real.clone().or_else(|| is_free.then_some(named))?;
        (folder != Path::new("/") && known.insert(folder.clone())).then_some(ToolCache {
            folder,
            programs,
            exists: real.is_some(),
            is_build_cache: *name == "GOCACHE",
        })
    });
    found.collect()
}

/// Adds a layer over each of these folders, with what earlier layers over the folder have kept. The
/// layers write into `own`. A folder that does not exist counts as empty. Returns the mounts that
/// put the layers in the folders' places in a sandbox.
///
/// # Errors
/// [`io::Error`] if a folder cannot be made.
pub fn add_layers(
    folders: impl Iterator<Item = (PathBuf, Vec<PathBuf>)>,
    own: &Path,
    mounts: &mut Mounts,
) -> io::Result<Vec<Mount>> {
    let add = |(number, (folder, between)): (usize, (PathBuf, Vec<PathBuf>))| {
        let [over, at, empty] = ["over", "at", "empty"].map(|name| own.join(number.to_string()).join(name));
        fs::create_dir_all(&at)?;
        let lower = if folder.is_dir() {
            folder.clone()
        } else {
            fs::create_dir_all(&empty)?;
            empty
        };
        mounts.layers.push(ViewLayer { lower, between, over, at: at.clone() });
        Ok(Mount { from: at, at: folder, writable: true })
    };
    folders.enumerate().map(add).collect()
}

/// Adds layers like [`add_layers`], over empty folders in place of the real ones.
///
/// # Errors
/// [`io::Error`] if a folder cannot be made.
pub fn add_empty_layers(
    folders: impl Iterator<Item = (PathBuf, Vec<PathBuf>)>,
    own: &Path,
    mounts: &mut Mounts,
) -> io::Result<Vec<Mount>> {
    let (own, folders) = (own.join("empty"), folders.collect::<Vec<_>>());
    let none = own.join("none");
    let empty = folders.iter().map(|(_, between)| (none.clone(), between.clone()));
    let added = add_layers(empty, &own, mounts)?;
    Ok(added.into_iter().zip(folders).map(|(mount, (folder, _))| Mount { at: folder, ..mount }).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caches_are_found_in_the_home_or_where_a_variable_leads() {
        let dir = crate::test_support::temp_dir();
        let root = dir.path().canonicalize().unwrap();
        for name in ["home/.cache/uv", "home/.npm", "elsewhere", "cargo/registry", "go"] {
            fs::create_dir_all(root.join(name)).unwrap();
        }
        let [home, elsewhere, cargo, go, absent] =
            ["home", "elsewhere", "cargo", "go", "absent"].map(|name| root.join(name).to_str().unwrap().to_owned());
        let variable = |name: &str| match name {
            "HOME" => Some(home.as_str()),
            "CARGO_HOME" => Some(cargo.as_str()),
            "GOCACHE" => Some(elsewhere.as_str()),
            "GOPATH" => Some(go.as_str()),
            "UV_CACHE_DIR" => Some(absent.as_str()),
            _ => None,
        };
        let caches = tool_caches(variable).into_iter().filter(|cache| cache.exists);
        let found: Vec<PathBuf> = caches.map(|cache| cache.folder).collect();
        let there = ["elsewhere", "go/pkg/mod", "go/pkg/sumdb", "home/.npm", "cargo/registry", "cargo/git"];
        assert_eq!(found, there.map(|name| root.join(name)));
        let free: Vec<PathBuf> =
            tool_caches(variable).into_iter().filter(|it| !it.exists).map(|it| it.folder).collect();
        assert!(free.contains(&root.join("home/go/pkg/mod")), "{free:?}");
        assert!(!root.join("absent").exists());
        assert_eq!(tool_caches(|_| None), []);
    }
}
