//! Files that changed in the workspace and are in no tree: git ignores them now, or ignored them at
//! the base.

use super::names::{spelled, with_folders};
use super::take::native;
use super::{Inner, Trees, TreesError, look};
use crate::id::TreeId;
use crate::pattern::Patterns;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::Metadata;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::sync::LazyLock;
use std::time::{Duration, SystemTime};
use tokio_util::sync::CancellationToken;
use walkdir::WalkDir;

/// The maximum number of files that are checked.
const MOST: usize = 500_000;
/// The maximum number of ignored files that are remembered at the base: of a folder, and of all. In
/// a larger folder, only the folder itself is remembered.
const MOST_OF_FOLDER: usize = 2_000;
const MOST_REMEMBERED: usize = 20_000;
/// The file by which tools mark the folders of their caches (<https://bford.info/cachedir/>).
const CACHE_TAG: &str = "CACHEDIR.TAG";

/// Files that later commands run, load or obey without an executable bit: patterns and
/// descriptions.
#[rustfmt::skip]
const RUNS: &[(&[&str], &str)] = &[
    (&["*.{pyc,pyo}"], "compiled Python, which runs instead of its source"),
    (&["*.pth"], "run by Python whenever it starts"),
    (&["*.{so,dylib,dll,pyd,node}", "*.so.*"], "a library that programs load"),
    (&["*.{a,o,obj,lib,rlib,rmeta}"], "compiled code, which a build may take instead of its source"),
    (&["*.{py,js,cjs,mjs,jsx,ts,cts,mts,tsx,rb,php,pl,lua,sh,bash,bat,cmd}"], "a script"),
    (&["*.{jar,war,class}"], "Java code"),
    (&["pyvenv.cfg"], "it says where Python finds its modules"),
    (&["GNUmakefile", "[mM]akefile", "*.mk", "{.,}[jJ]ustfile", "Taskfile.{yml,yaml}"], "it defines commands"),
    (&["{docker-,}compose{.*,}.{yml,yaml}"], "it says what containers run"),
    (&["**/.cargo/config{.toml,}", "local.properties", "gradle.properties"], "it steers how everything is built"),
    (&["**/.vscode/*.json", "**/.{claude,cursor}/*.json", ".mcp.json"], "editors or coding agents run what it says"),
    (&[".envrc", ".env", ".env.*", ".npmrc", ".yarnrc.yml"], "it steers what programs run"),
];

/// The description of other files that are ignored by their own names.
const ALONE: &str = "written during the run";

/// The changed files that are in no tree.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct OutsideFiles {
    /// Ignored files that can run: the path, the outermost ignored path, and the description.
    pub ignored: Vec<(String, String, &'static str)>,
    /// Files that git ignored at the base, but does not ignore now.
    pub hidden: Vec<String>,
    /// The written paths that git ignores.
    pub unseen: Vec<String>,
    /// Other changed files in ignored folders, without caches: the first path and the number of
    /// files, by the outermost ignored folder.
    pub plain: BTreeMap<String, (String, u64)>,
    /// Ignored files of the base that are gone: the number of files, by the outermost path that is
    /// gone. Folders end in `/`.
    pub gone: BTreeMap<String, u64>,
    /// New folders without files, which git does not keep. They end in `/`.
    pub empty: Vec<String>,
    /// Files and folders that git ignores because of lines that the work added.
    pub covered: Vec<String>,
    /// True if not all files were checked.
    pub is_cut: bool,
}

impl Trees {
    /// Finds the files that changed after `since` and are in no tree. Also returns the paths of
    /// `written` that are ignored. Ignored files at and below `except` are not checked.
    ///
    /// # Errors
    /// [`TreesError`] if git fails.
    pub async fn outside(
        &self,
        since: SystemTime,
        written: &[String],
        except: &[String],
        stop: &CancellationToken,
    ) -> Result<OutsideFiles, TreesError> {
        self.0.outside(since, written, except, stop).await
    }

    /// Remembers the ignored files of the base, so that [`Trees::outside`] can name those that are
    /// gone, also in a resumed run. Skips files at and below `except`, and caches. Does nothing
    /// before the base is taken.
    ///
    /// # Errors
    /// [`TreesError`] if the thread that reads the folders fails, or if the list cannot be stored.
    pub async fn remember_ignored(&self, except: &[String]) -> Result<(), TreesError> {
        let mut state = self.0.state.lock().await;
        let Some(base) = &state.base else { return Ok(()) };
        let (root, mut roots, base) = (self.0.root.clone(), base.ignored.clone(), base.tree.clone());
        let except: BTreeSet<String> = except.iter().cloned().collect();
        roots.retain(|path| !look::is_within(path, &except));
        let remember = move || {
            let mut files = BTreeSet::new();
            for place in &roots {
                let most = MOST_OF_FOLDER.min(MOST_REMEMBERED.saturating_sub(files.len()));
                let found = files_in(&root, place, &except).filter(|found| !found.is_cached).take(most + 1);
                let found: Vec<String> = found.map(|found| found.path).collect();
                let is_whole = !found.is_empty() && found.len() <= most;
                files.extend(if is_whole { found } else { vec![place.clone()] });
            }
            Ok(files)
        };
        state.ignored_files = self.0.run_blocking(remember).await?;
        self.0.keep_ignored(&base, &state.ignored_files)
    }
}

impl Inner {
    async fn outside(
        &self,
        since: SystemTime,
        written: &[String],
        except: &[String],
        stop: &CancellationToken,
    ) -> Result<OutsideFiles, TreesError> {
        let state = self.state.lock().await;
        let Some(base) = state.base.clone() else { return Ok(OutsideFiles::default()) };
        let (_, Some(seen)) = self.look_and_ask(base.ignored.clone(), stop).await? else {
            return Ok(OutsideFiles::default()); // the entry that blocks git is a separate finding
        };
        let known: BTreeSet<String> =
            self.entries(&base.tree, stop).await?.into_iter().map(|entry| entry.path).collect();
        let new: Vec<String> = seen.changed.into_iter().filter(|path| !known.contains(path)).collect();
        let listed = self.ignored(&base.tree, &new, stop).await?;
        let is_hidden = |path: &String| listed.contains(path) || look::is_within(path, &base.ignored);
        let hidden: Vec<String> = new.into_iter().filter(is_hidden).collect();
        let is_unseen = |path: &&String| look::is_within(path, &seen.ignored) && !known.contains(*path);
        let unseen = written.iter().filter(is_unseen).cloned().collect();
        let remembered = state.ignored_files.clone();
        let except: BTreeSet<String> = except.iter().cloned().collect();
        let mut roots = seen.ignored;
        roots.retain(|path| !look::is_within(path, &except));
        let covered = self.covered(&base.tree, &base.ignored, &roots, stop).await?;
        let (root, stop) = (self.root.clone(), stop.clone());
        self.run_blocking(move || {
            let changed = |path: &String| {
                root.join(native(path)).symlink_metadata().is_ok_and(|meta| is_since(&meta, since) && !meta.is_dir())
            };
            let hidden = hidden.into_iter().filter(changed).collect();
            let (gone, empty) = (gone(&root, &remembered), empty(&root, &roots, &except, since));
            let mut found = OutsideFiles { hidden, unseen, covered, gone, empty, ..OutsideFiles::default() };
            walk(&root, &roots, &except, since, &stop, &mut found);
            Ok(found)
        })
        .await
    }
}

impl Inner {
    /// Returns the ignored paths that the rules of the base do not ignore.
    async fn covered(
        &self,
        base: &TreeId,
        ignored: &BTreeSet<String>,
        roots: &BTreeSet<String>,
        stop: &CancellationToken,
    ) -> Result<Vec<String>, TreesError> {
        let new = roots.iter().filter(|path| !look::is_within(path, ignored));
        // Some rules apply to folders only.
        let is_folder = |path: &String| self.root.join(native(path)).symlink_metadata().is_ok_and(|meta| meta.is_dir());
        let asked = |path: &String| if is_folder(path) { format!("{path}/") } else { path.clone() };
        let new: Vec<String> = new.map(asked).collect();
        let listed = self.ignored(base, &new, stop).await?;
        Ok(new.into_iter().filter(|path| !listed.contains(path)).collect())
    }
}

/// An ignored file.
struct IgnoredEntry {
    path: String,
    meta: Metadata,
    /// True if git ignores the file by its own path, and no folder around it.
    is_alone: bool,
    /// True if the file is in a folder that a tool marks as its cache.
    is_cached: bool,
}

/// Returns the files at and below an ignored path, except those at and below `except`.
fn files_in<'p>(
    root: &'p Path,
    place: &'p str,
    except: &'p BTreeSet<String>,
) -> impl Iterator<Item = IgnoredEntry> + 'p {
    let relative = move |path: &Path| spelled(path.strip_prefix(root).unwrap_or(path).as_os_str().as_bytes());
    let walk = WalkDir::new(root.join(native(place))).follow_links(false).into_iter();
    let walk =
        walk.filter_entry(move |entry| !(entry.file_type().is_dir() && except.contains(&relative(entry.path()))));
    let mut cache = None;
    walk.flatten().filter_map(move |entry| {
        if entry.file_type().is_dir() {
            if cache.as_ref().is_none_or(|cache| !entry.path().starts_with(cache)) {
                cache = entry.path().join(CACHE_TAG).exists().then(|| entry.path().to_owned());
            }
            return None;
        }
        let is_cached = cache.as_ref().is_some_and(|cache| entry.path().starts_with(cache));
        let meta = entry.metadata().ok()?;
        Some(IgnoredEntry { path: relative(entry.path()), meta, is_alone: entry.depth() == 0, is_cached })
    })
}

fn walk(
    root: &Path,
    roots: &BTreeSet<String>,
    except: &BTreeSet<String>,
    since: SystemTime,
    stop: &CancellationToken,
    found: &mut OutsideFiles,
) {
    let mut count = 0;
    for place in roots {
        for entry in files_in(root, place, except) {
            count += 1;
            if count > MOST || stop.is_cancelled() {
                found.is_cut = true;
                return;
            }
            if !is_since(&entry.meta, since) {
                continue;
            }
            // A file that is ignored by its own name may be work.
            let what = runs(&entry.meta, &entry.path).or(entry.is_alone.then_some(ALONE));
            match what {
                Some(what) => found.ignored.push((entry.path, place.clone(), what)),
                None if entry.is_cached || found.unseen.contains(&entry.path) => {}
                None => found.plain.entry(place.clone()).or_insert((entry.path, 0)).1 += 1,
            }
        }
    }
}

/// Returns those of the files that are gone, by the outermost path that is gone.
fn gone(root: &Path, remembered: &BTreeSet<String>) -> BTreeMap<String, u64> {
    let is_there = |path: &str| root.join(native(path)).symlink_metadata().is_ok();
    let mut gone = BTreeMap::new();
    for path in remembered.iter().filter(|path| !is_there(path)) {
        let above = with_folders(path).skip(1).take_while(|folder| !is_there(folder)).last();
        *gone.entry(above.map_or_else(|| path.clone(), |folder| format!("{folder}/"))).or_insert(0) += 1;
    }
    gone
}

/// Returns the folders that are empty and changed after `since`, except those at and below ignored
/// paths.
fn empty(root: &Path, roots: &BTreeSet<String>, except: &BTreeSet<String>, since: SystemTime) -> Vec<String> {
    let relative = |path: &Path| spelled(path.strip_prefix(root).unwrap_or(path).as_os_str().as_bytes());
    let is_looked_at = |entry: &walkdir::DirEntry| {
        let is_skipped = |path: String| roots.contains(&path) || except.contains(&path);
        entry.depth() == 0
            || !entry.file_type().is_dir()
            || !(entry.file_name() == ".git" || is_skipped(relative(entry.path())))
    };
    let walk = WalkDir::new(root).follow_links(false).into_iter().filter_entry(is_looked_at).flatten();
    let folders = walk.filter(|entry| entry.depth() > 0 && entry.file_type().is_dir());
    let changed = folders.filter(|entry| entry.metadata().is_ok_and(|meta| is_since(&meta, since)));
    let is_empty = |path: &Path| std::fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none());
    changed.filter(|entry| is_empty(entry.path())).map(|entry| format!("{}/", relative(entry.path()))).collect()
}

/// Returns whether a file was written, renamed or given another mode after `since`. Programs cannot
/// set this time.
fn is_since(meta: &Metadata, since: SystemTime) -> bool {
    let (Ok(seconds), Ok(part)) = (u64::try_from(meta.ctime()), u32::try_from(meta.ctime_nsec())) else { return true };
    SystemTime::UNIX_EPOCH + Duration::new(seconds, part) > since
}

/// Returns the reason why a file can run; `None` if it cannot.
fn runs(meta: &Metadata, path: &str) -> Option<&'static str> {
    static PATTERNS: LazyLock<Vec<(Patterns, &str)>> = LazyLock::new(|| {
        let each = RUNS.iter().flat_map(|(globs, what)| globs.iter().map(move |glob| (*glob, *what)));
        each.filter_map(|(glob, what)| Some((Patterns::files(glob).ok()?, what))).collect()
    });
    if meta.is_symlink() {
        return Some("a link");
    }
    if !meta.is_file() {
        return Some("a pipe, socket or device");
    }
    let by_name = PATTERNS.iter().find(|(glob, _)| glob.fit(path)).map(|(_, what)| *what);
    by_name.or((meta.permissions().mode() & 0o111 != 0).then_some("an executable"))
}

#[cfg(test)]
mod tests {
    use super::super::tests::Project;
    use super::*;
    use std::fs;

    /// Returns the findings after `change` has run in the workspace.
    async fn found(place: &Project, written: &[&str], change: impl FnOnce(&Path)) -> OutsideFiles {
        let (trees, base) = place.begin().await;
        let stop = CancellationToken::new();
        let mark = tempfile::NamedTempFile::new().unwrap();
        trees.remember_ignored(&["kept".to_owned()]).await.unwrap();
        let since = mark.as_file().metadata().unwrap().modified().unwrap();
        std::thread::sleep(Duration::from_millis(20));
        change(&place.root());
        trees.resume(&base, &stop).await.unwrap(); // as another process does
        let written: Vec<String> = written.iter().map(|path| (*path).to_owned()).collect();
        trees.outside(since, &written, &["kept".to_owned()], &stop).await.unwrap()
    }

    fn put(root: &Path, path: &str, mode: u32) {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "x").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[tokio::test]
    async fn ignored_files_that_can_run_are_found_where_they_changed() {
        let place = Project::new(&[("a", "1"), (".gitignore", "env\nkept\n*.so\n")]);
        put(&place.root(), "env/old", 0o755);
        put(&place.root(), "env/mended", 0o755);
        let found = found(&place, &["env/notes", "a"], |root| {
            put(root, "env/bin/python", 0o755);
            put(root, "env/notes", 0o644);
            put(root, "env/mended", 0o755);
            put(root, "env/site/a.pth", 0o644);
            put(root, "kept/tool", 0o755);
            put(root, "lib/x.so", 0o644);
            put(root, "lib/x.sol", 0o755);
            std::os::unix::fs::symlink("/bin/sh", root.join("env/sh")).unwrap();
        })
        .await;
        let mut paths: Vec<&str> = found.ignored.iter().map(|(path, ..)| path.as_str()).collect();
        paths.sort_unstable();
        assert_eq!(paths, ["env/bin/python", "env/mended", "env/sh", "env/site/a.pth", "lib/x.so"]);
        assert_eq!((found.hidden, found.unseen, found.is_cut), (Vec::new(), vec!["env/notes".to_owned()], false));
        assert_eq!(found.plain, BTreeMap::new());
    }

    #[tokio::test]
    async fn ignored_files_that_are_gone_and_plain_ones_that_changed_are_found() {
        let place = Project::new(&[("a", "1"), (".gitignore", "logs\ncache\nown\nold\nkept\n")]);
        for path in ["logs/a", "logs/deep/b", "logs/deep/c", "own", "old/x", "kept/x", "cache/CACHEDIR.TAG", "cache/x"]
        {
            put(&place.root(), path, 0o644);
        }
        let found = found(&place, &[], |root| {
            ["logs/deep", "old", "kept"].iter().for_each(|path| fs::remove_dir_all(root.join(path)).unwrap());
            ["own", "cache/x"].iter().for_each(|path| fs::remove_file(root.join(path)).unwrap());
            ["logs/a", "logs/new", "cache/new"].iter().for_each(|path| put(root, path, 0o644));
            fs::create_dir_all(root.join("empty/inner")).unwrap();
        })
        .await;
        let gone = [("logs/deep/", 2), ("old/", 1), ("own", 1)].map(|(path, files)| (path.to_owned(), files));
        assert_eq!(found.gone, BTreeMap::from(gone));
        let plain: Vec<_> = found.plain.iter().map(|(folder, (_, files))| (folder.as_str(), *files)).collect();
        assert_eq!(plain, [("logs", 2)]);
        assert_eq!(found.empty, ["empty/inner/"]);
    }

    #[tokio::test]
    async fn ignored_files_that_tools_obey_are_found_without_an_executable_bit() {
        let obeyed = [
            ".cargo/config.toml",
            ".claude/settings.local.json",
            ".env.local",
            ".env.production.local",
            ".mcp.json",
            ".vscode/tasks.json",
            "Makefile",
            "docker-compose.override.yml",
            "local.properties",
            "more/rules.mk",
            "obj/a.o",
            "obj/lib.rlib",
            "obj/libb.a",
            "page/app.tsx",
            "page/load.cts",
            "page/load.mts",
        ];
        let place = Project::new(&[("a", "1"), (".gitignore", "*\n!a\n")]);
        let found = found(&place, &[], |root| {
            for path in obeyed.iter().chain(&["notes.txt", "obj/a.d", ".vscode/words.txt", "env.local", "cmake"]) {
                put(root, path, 0o644);
            }
        })
        .await;
        let of = |is_alone: bool| {
            let which = found.ignored.iter().filter(|(.., what)| (*what == ALONE) == is_alone);
            let mut paths: Vec<&str> = which.map(|(path, ..)| path.as_str()).collect();
            paths.sort_unstable();
            paths
        };
        assert_eq!(of(false), obeyed);
        assert_eq!(of(true), ["cmake", "env.local", "notes.txt"]);
    }

    #[tokio::test]
    async fn what_new_lines_ignore_is_found() {
        let place = Project::new(&[("a", "1"), (".gitignore", "build/\n")]);
        let found = found(&place, &[], |root| {
            fs::write(root.join(".gitignore"), "build/\nup.md\ngen/\n").unwrap();
            for path in ["build/x", "up.md", "gen/model.txt", "new/.gitignore", "new/x.json"] {
                put(root, path, 0o644);
            }
            fs::write(root.join("new/.gitignore"), "*.json\n").unwrap();
        })
        .await;
        assert_eq!(found.covered, ["gen/", "new/x.json", "up.md"]);
    }

    #[tokio::test]
    async fn files_that_git_ignored_at_the_base_alone_are_found_where_they_changed() {
        for is_there in [false, true] {
            let place = Project::new(&[("a", "1"), (".gitignore", "build/\n")]);
            if is_there {
                put(&place.root(), "build/old", 0o644);
            }
            let found = found(&place, &[], |root| {
                fs::write(root.join(".gitignore"), "").unwrap();
                put(root, "build/new", 0o644);
                put(root, "b", 0o644);
            })
            .await;
            assert_eq!((found.hidden, found.ignored), (vec!["build/new".to_owned()], Vec::new()), "{is_there}");
        }
    }
}
