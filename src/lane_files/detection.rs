//! The facts for detecting how a project is checked: names in a few folders, texts of a few files,
//! and programs. Starts no program.
//!
//! Also writes the detected lane to the project's `lanes` folder.

mod python;

use crate::lane::detect::{
    self, ACTIONS, DETECTED_LANE, DetectedLane, FOLDERS, GATHERING, MARKERS, ProjectFacts, detect,
};
use crate::limits::MAX_SOURCE;
use crate::store::{self, StoreError};
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The maximum number of entries of one folder that are read. They are enough to recognize a
/// project.
const MOST_ENTRIES: usize = 5_000;
/// The maximum number of texts that are read.
const MOST_TEXTS: usize = 100;
/// The maximum number of subfolders that are searched.
const MOST_FOLDERS: usize = 50;

/// An error of writing a detected lane.
#[derive(Debug, thiserror::Error)]
pub enum WriteLaneError {
    /// There is a lane already, or a file that may define one.
    #[error("cannot write the lane: {0} already exists")]
    AlreadyThere(String),
    /// `lanes` is not a folder, or is a link.
    #[error("cannot write the lane: lanes exists and is not a folder")]
    NoFolder,
    /// The project's files do not say how it is checked.
    #[error("found nothing that can check this project{}", remarks(.0))]
    NothingFound(Vec<String>),
    /// A file cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Formats the remarks on what detection left out, each on its own line.
pub(super) fn remarks(remarks: &[String]) -> String {
    remarks.iter().map(|remark| format!("\n  {remark}")).collect()
}

/// Detects from the files of the project at `root` how it is checked. `path` is the search path of
/// steps.
pub fn detect_lane(root: &Path, path: &str) -> DetectedLane {
    detect(&facts(root, path))
}

/// Detects the lane of a project that defines no lanes. Returns `None` if `lanes/` or
/// `.fledge/lanes/` has files of lanes, or if there is a `fledge.toml`.
///
/// # Errors
/// When it is unknown whether the project defines lanes. Lanes that cannot be read count as lanes.
pub fn detect_if_no_lanes(root: &Path, path: &str) -> Result<Option<DetectedLane>, StoreError> {
    Ok((!defines_lanes(root)?).then(|| detect_lane(root, path)))
}

/// Returns whether a project has files that define lanes.
pub(super) fn defines_lanes(root: &Path) -> Result<bool, StoreError> {
    Ok(holds(&root.join("lanes"), &["yaml", "yml"])?
        || holds(&root.join(".fledge/lanes"), &["toml"])?
        || !is_absent(&root.join("fledge.toml"))?)
}

/// Returns whether a folder holds files of these kinds, or is a link that leads nowhere.
fn holds(folder: &Path, kinds: &[&str]) -> Result<bool, StoreError> {
    let unreadable = |error| StoreError::new("read", folder, error);
    match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(!is_absent(folder)?),
        Err(_) if is_absent(folder)? => Ok(false),
        Err(error) => Err(unreadable(error)),
        Ok(entries) => {
            let names = entries.collect::<io::Result<Vec<_>>>().map_err(unreadable)?;
            let kind = |entry: &fs::DirEntry| entry.path().extension().and_then(|e| e.to_str().map(str::to_owned));
            Ok(names.iter().filter_map(kind).any(|kind| kinds.contains(&kind.as_str())))
        }
    }
}

/// Returns the path in the project at which the detected lane can be written.
///
/// # Errors
/// When there is a lane already, or when nothing was detected.
pub fn file_to_write(root: &Path, detected: &DetectedLane) -> Result<String, WriteLaneError> {
    let file = format!("lanes/{DETECTED_LANE}.yaml");
    for taken in [&file, &format!("lanes/{DETECTED_LANE}.yml"), &"fledge.toml".to_owned()] {
        if !is_absent(&root.join(taken))? {
            return Err(WriteLaneError::AlreadyThere(taken.clone()));
        }
    }
    if detected.is_empty() {
        return Err(WriteLaneError::NothingFound(detected.remarks.clone()));
    }
    Ok(file)
}

/// Writes the detected lane, whole or not at all, and never over an existing file. Returns the
/// file's path in the project.
///
/// # Errors
/// When there is a lane already, when nothing was detected, or when the file cannot be written.
pub fn write_detected(root: &Path, detected: &DetectedLane) -> Result<String, WriteLaneError> {
    let file = file_to_write(root, detected)?;
    let folder = root.join("lanes");
    let is_new = is_absent(&folder)?;
    if is_new {
        fs::create_dir(&folder).map_err(|error| StoreError::new("make the folder", &folder, error))?;
    } else if !folder.symlink_metadata().is_ok_and(|meta| meta.is_dir()) {
        return Err(WriteLaneError::NoFolder);
    }
    let written = store::write_new(&root.join(&file), detected.yaml().as_bytes());
    if is_new && !matches!(written, Ok(true)) {
        let _others_use_it = fs::remove_dir(&folder);
    }
    if written? { Ok(file) } else { Err(WriteLaneError::AlreadyThere(file)) }
}

/// Returns whether nothing exists at this path, not even a link that leads nowhere.
fn is_absent(path: &Path) -> Result<bool, StoreError> {
    match path.symlink_metadata() {
        Ok(_) => Ok(false),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(true),
        Err(error) => Err(StoreError::new("read", path, error)),
    }
}

fn facts(root: &Path, path: &str) -> ProjectFacts {
    let folders: Vec<PathBuf> = std::env::split_paths(path).filter(|folder| folder.is_absolute()).collect();
    let is_there = |program: &&str| folders.iter().any(|folder| may_start(&folder.join(program)));
    let programs: BTreeSet<String> = detect::programs().into_iter().filter(is_there).map(str::to_owned).collect();
    let pytest_by = python::pytest_by(&folders, &programs);
    let mut facts = facts_of(root, &programs, &pytest_by);
    for folder in below(root) {
        let own = facts_of(&root.join(&folder), &programs, &pytest_by);
        facts.below.insert(folder, own);
    }
    facts
}

fn facts_of(root: &Path, programs: &BTreeSet<String>, pytest_by: &BTreeSet<String>) -> ProjectFacts {
    let mut facts =
        ProjectFacts { programs: programs.clone(), pytest_by: pytest_by.clone(), ..ProjectFacts::default() };
    for folder in FOLDERS {
        let names = names_in(&root.join(folder)).into_iter();
        facts.paths.extend(names.map(|name| if folder.is_empty() { name } else { format!("{folder}/{name}") }));
    }
    facts.paths.extend(python::paths(root));
    let (folder, files) = ACTIONS;
    let actions = names_in(&root.join(folder)).into_iter();
    let actions = actions.flat_map(|name| files.map(|file| format!("{folder}/{name}/{file}")));
    facts.paths.extend(actions.filter(|path| root.join(path).is_file()));
    facts.editable = python::editable(root);
    let mut read: Vec<&String> = facts.paths.iter().filter(|path| detect::is_read(path)).collect();
    read.sort_by_key(|path| path.contains('/')); // files at the root first
    for path in read.into_iter().take(MOST_TEXTS) {
        match store::read_text(&root.join(path), MAX_SOURCE) {
            Ok(Some(text)) => drop(facts.texts.insert(path.clone(), text)),
            Ok(None) => {}
            Err(error) => drop(facts.unreadable.insert(path.clone(), error.cause())),
        }
    }
    let own = facts.paths.iter().filter(|path| detect::is_started(path) && may_start(&root.join(path)));
    facts.programs.extend(own.map(|path| format!("./{path}")));
    facts
}

/// Returns the subfolders with a file that marks a project, the first ones by name. Does not follow
/// links.
fn below(root: &Path) -> Vec<String> {
    let folders_in = |outer: &str| {
        let path = |name: String| if outer.is_empty() { name } else { format!("{outer}/{name}") };
        let is_folder = |path: &String| root.join(path).symlink_metadata().is_ok_and(|meta| meta.is_dir());
        let names = names_in(&root.join(outer)).into_iter().filter(|name| detect::is_looked_into(name));
        names.map(path).filter(is_folder).collect::<BTreeSet<String>>()
    };
    let top = folders_in("");
    let inner = GATHERING.into_iter().filter(|name| top.contains(*name)).flat_map(folders_in);
    let says_what_it_is = |folder: &String| MARKERS.iter().any(|marker| root.join(folder).join(marker).is_file());
    let all: BTreeSet<String> = top.iter().cloned().chain(inner).collect();
    all.into_iter().filter(says_what_it_is).take(MOST_FOLDERS).collect()
}

fn names_in(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().take(MOST_ENTRIES);
    entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

/// Returns whether the path is an executable file.
fn may_start(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use std::os::unix::fs::symlink;

    fn folder(files: &[(&str, &str, u32)]) -> tempfile::TempDir {
        let dir = crate::test_support::temp_dir();
        for (path, text, mode) in files {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(*mode)).unwrap();
        }
        dir
    }

    fn set(words: &[&str]) -> BTreeSet<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn facts_are_names_some_texts_and_what_may_be_started() {
        let project =
            folder(&[("Makefile", "test:", 0o644), ("gradlew", "", 0o755), ("mvnw", "", 0o644), ("a/b", "", 0o644)]);
        fs::create_dir(project.path().join("package.json")).unwrap();
        let programs = folder(&[("make", "", 0o755), ("cargo", "", 0o644), ("strange", "", 0o755)]);
        let facts = facts(project.path(), &format!(".::{}", programs.path().display()));
        let expected = ProjectFacts {
            paths: set(&["Makefile", "a", "gradlew", "mvnw", "package.json"]),
            texts: BTreeMap::from([("Makefile".into(), "test:".into())]),
            unreadable: BTreeMap::from([("package.json".into(), "it is a folder, not a regular file".into())]),
            programs: set(&["make", "./gradlew"]),
            pytest_by: BTreeSet::new(),
            editable: BTreeSet::new(),
            below: BTreeMap::new(),
        };
        assert_eq!(facts, expected);
    }

    #[test]
    fn an_interpreter_has_pytest_where_the_first_line_of_pytest_names_it() {
        let bin = folder(&[("python3", "", 0o755), ("pytest", "", 0o755)]);
        symlink("python3", bin.path().join("python")).unwrap();
        let other = folder(&[("python3", "", 0o755)]);
        symlink(bin.path().join("python3"), other.path().join("python")).unwrap();
        let by = |line: &str| {
            fs::write(bin.path().join("pytest"), format!("{line}\nimport pytest\n")).unwrap();
            facts(other.path(), &bin.path().display().to_string()).pytest_by
        };
        let at = |dir: &tempfile::TempDir, name: &str| format!("#!{}", dir.path().join(name).display());
        assert_eq!(by(&at(&bin, "python3")), set(&["python3", "python"]));
        assert_eq!(by("#!/usr/bin/env python3"), set(&["python3", "python"]));
        assert_eq!(by(&at(&other, "python3")), set(&[]));
        assert_eq!(by(&at(&other, "python")), set(&[]), "a virtual environment's link");
        assert_eq!(by(&format!("{} -sP", at(&bin, "python3"))), set(&["python3", "python"]));
        assert_eq!(by("#!/bin/sh -e"), set(&[]));
        assert_eq!(by("no script"), set(&[]));
    }

    #[test]
    fn an_interpreter_has_pytest_where_it_is_among_its_packages() {
        let python = folder(&[("bin/python3.11", "", 0o755), ("lib/python3.12/site-packages/pytest/x", "", 0o644)]);
        let of = |dir: &Path| facts(dir, &dir.join("bin").display().to_string()).pytest_by;
        symlink("python3.11", python.path().join("bin/python3")).unwrap();
        assert_eq!(of(python.path()), set(&[]), "of another version");
        let venv = folder(&[("pyvenv.cfg", "", 0o644), ("bin/x", "", 0o644)]);
        symlink(python.path().join("bin/python3"), venv.path().join("bin/python")).unwrap();
        fs::create_dir_all(python.path().join("lib/python3.11/site-packages/pytest")).unwrap();
        assert_eq!(of(python.path()), set(&["python3"]));
        assert_eq!(of(venv.path()), set(&[]), "a virtual environment has its own packages");
        fs::create_dir_all(venv.path().join("lib/python3.11/site-packages/pytest")).unwrap();
        assert_eq!(of(venv.path()), set(&["python"]));
    }

    #[test]
    fn folders_below_are_looked_into_where_they_say_what_they_are() {
        let project = folder(&[
            ("web/package.json", "{}", 0o644),
            ("services/api/go.mod", "", 0o644),
            ("services/api/deep/go.mod", "", 0o644),
            ("examples/a/Cargo.toml", "", 0o644),
            ("vendor/Cargo.toml", "", 0o644),
            (".hidden/Cargo.toml", "", 0o644),
            ("a b/Cargo.toml", "", 0o644),
            ("notes/x", "", 0o644),
        ]);
        symlink("web", project.path().join("link")).unwrap();
        assert_eq!(below(project.path()), ["services/api", "web"]);
        let facts = facts(project.path(), "");
        assert_eq!(facts.below["web"].texts, BTreeMap::from([("package.json".into(), "{}".into())]));
    }

    #[test]
    fn only_a_project_without_any_lanes_is_looked_at() {
        let is_bare = |dir: &tempfile::TempDir| detect_if_no_lanes(dir.path(), "").map(|found| found.is_some()).ok();
        assert_eq!(is_bare(&folder(&[])), Some(true));
        assert_eq!(is_bare(&folder(&[("lanes/README.md", "", 0o644)])), Some(true));
        assert_eq!(is_bare(&folder(&[("lanes/deploy.yml", "", 0o644)])), Some(false));
        assert_eq!(is_bare(&folder(&[("fledge.toml", "", 0o644)])), Some(false));
        assert_eq!(is_bare(&folder(&[(".fledge/lanes/ci.toml", "", 0o644)])), Some(false));
        assert_eq!(is_bare(&folder(&[(".fledge", "no folder", 0o644)])), Some(true));
        assert_eq!(is_bare(&folder(&[("lanes", "no folder", 0o644)])), None);
        let linked = folder(&[]);
        symlink("nowhere", linked.path().join("lanes")).unwrap();
        assert_eq!(is_bare(&linked), Some(false));
    }
}
