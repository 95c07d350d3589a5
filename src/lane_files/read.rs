//! The files that define lanes, read into a [`LaneFiles`]. A file that cannot be read is reported
//! as a problem and does not affect the others. A file that only looks like a definition is
//! reported too.

use super::detection::defines_lanes;
use crate::lane::{LaneFiles, LaneRemark};
use crate::limits::MAX_SOURCE;
use crate::store::{self, NotUtf8};
use crate::yaml::{FilePlace, Problem};
use std::fs;
use std::io;
use std::path::Path;

/// The folder with one file for each lane.
pub const LANES: &str = "lanes";
/// The file of a project that has all its tasks and lanes in one file.
pub(super) const TOML: &str = "fledge.toml";
/// The file with the tasks of a project that has its lanes in separate files.
pub(super) const TASKS: &str = "fledge.yaml";
/// The folder of imported files in the format of `fledge.toml`.
pub(super) const IMPORTED: &str = ".fledge/lanes";
/// The files that configure runs, relative to the root of a workspace.
pub const CONFIGURATION: [&str; 3] = ["fledge.yaml", "fledge.local.yaml", TOML];
/// The folders that configure runs.
pub const CONFIGURATION_FOLDERS: [&str; 2] = [LANES, ".fledge"];
/// The maximum number of entries of a folder that are searched for nearly correct names.
const MOST_ENTRIES: usize = 5_000;

/// Returns whether a folder has lanes or a configuration, so that it is the root of a project.
pub fn has_configuration(folder: &Path) -> bool {
    CONFIGURATION.iter().any(|name| folder.join(name).is_file()) || defines_lanes(folder).unwrap_or(false)
}

/// Reads all definitions of lanes in the project: the tasks of `fledge.yaml`, `lanes/*.yaml`,
/// `fledge.toml`, and the imports in `.fledge/lanes`. They count in this order.
pub(super) fn lane_files(root: &Path) -> LaneFiles {
    let mut lane_files = LaneFiles::default();
    if let Some(text) = text(root, TASKS, &mut lane_files) {
        lane_files.add_tasks(TASKS, &text);
    }
    add_lanes(root, &mut lane_files);
    if let Some(text) = text(root, TOML, &mut lane_files) {
        lane_files.add_toml(TOML, &text);
    }
    for file in names_in(root, IMPORTED, &mut lane_files) {
        let path = format!("{IMPORTED}/{file}");
        if file.ends_with(".toml")
            && !file.starts_with('.')
            && let Some(text) = text(root, &path, &mut lane_files)
        {
            lane_files.add_imported(&path, &text);
        }
    }
    lane_files
}

/// Adds the lanes of the folder `lanes`. Reports a file that cannot be read as a problem of its
/// lane, and mentions files that only look like lanes.
fn add_lanes(root: &Path, lane_files: &mut LaneFiles) {
    let files = names_in(root, LANES, lane_files);
    // In reverse order, so that of two files with one name, `.yaml` comes later and counts.
    for file in files.iter().rev() {
        let path = format!("{LANES}/{file}");
        let name = file.strip_suffix(".yml").or_else(|| file.strip_suffix(".yaml"));
        let Some(name) = name.filter(|name| is_plain(name)) else {
            if let Some((why, hint)) = stray(&root.join(&path)) {
                lane_files.add_stray(&path, why, hint);
            }
            continue;
        };
        if file.ends_with(".yml") && files.contains(&format!("{name}.yaml")) {
            let why = format!("lane `{name}` is also in {LANES}/{name}.yaml, which is used instead");
            lane_files.add_stray(&path, &why, "remove one of them");
            continue;
        }
        match read(root, &path) {
            Ok(Some(text)) => lane_files.add_lane(name, &path, &text),
            Ok(None) => {} // removed after the folder was listed
            Err(why) => lane_files.add_unreadable(name, &path, why),
        }
    }
}

/// Returns the text of a file with several lanes or tasks, if it exists and can be read.
fn text(root: &Path, path: &str, lane_files: &mut LaneFiles) -> Option<String> {
    read(root, path).unwrap_or_else(|why| {
        lane_files.add_broken(path, why);
        None
    })
}

/// Returns the text of a file, or `None` if it does not exist.
pub(super) fn read(root: &Path, path: &str) -> Result<Option<String>, Problem> {
    let path = root.join(path);
    match store::read_text(&path, MAX_SOURCE) {
        Ok(None) if path.is_symlink() => Err(unreadable("the link is broken")),
        Ok(text) => Ok(text),
        Err(error) => Err(match error.not_utf8() {
            Some(NotUtf8 { found: None, .. }) => {
                Problem::of_file("this is a binary file, not text").hint("save it as text, or remove it")
            }
            Some(NotUtf8 { line, column, found: Some(found) }) => {
                let place = FilePlace { line: *line, column: *column };
                Problem::at(place, format!("not UTF-8: {found}")).hint("save the file as UTF-8")
            }
            None => unreadable(&error.cause()),
        }),
    }
}

/// Returns the problem with a file that cannot define lanes or tasks.
pub(super) fn unlike() -> Problem {
    let hint =
        format!("use `<name>.yaml` for a lane, `{TASKS}` for tasks, and `{TOML}` or a file of its format for both");
    Problem::of_file("this file cannot define lanes").hint(hint)
}

fn unreadable(why: &str) -> Problem {
    Problem::of_file(format!("cannot be read: {why}")).hint("fix or remove it")
}

/// Returns the names in a folder, sorted. Returns none where no folder exists.
fn names_in(root: &Path, folder: &str, lane_files: &mut LaneFiles) -> Vec<String> {
    let path = root.join(folder);
    match fs::read_dir(&path).and_then(Iterator::collect::<io::Result<Vec<_>>>) {
        Ok(entries) => {
            let mut names: Vec<String> =
                entries.iter().filter_map(|entry| entry.file_name().into_string().ok()).collect();
            names.sort();
            names
        }
        Err(error) => {
            match error.kind() {
                io::ErrorKind::NotADirectory => {}
                io::ErrorKind::NotFound if !path.is_symlink() => {}
                io::ErrorKind::NotFound => lane_files.add_broken(folder, unreadable("the link is broken")),
                _ => lane_files.add_broken(folder, unreadable(&error.to_string())),
            }
            Vec::new()
        }
    }
}

/// Returns whether a text can name a lane: it is the name of a file without its ending, is not
/// hidden and has no path.
fn is_plain(name: &str) -> bool {
    !name.is_empty() && !name.starts_with('.') && name.chars().all(|c| c.is_alphanumeric() || "-_.".contains(c))
}

/// Returns why an entry of the folder of lanes is not read although it looks like a lane, and a
/// hint.
fn stray(path: &Path) -> Option<(&'static str, &'static str)> {
    if looks_like_a_lane(path) {
        let hint = "call a lane file `<name>.yaml`, with letters, digits, `-`, `_` and `.` in the name";
        return Some(("this file is not read", hint));
    }
    has_lanes_inside(path).then_some(("files in this folder are not read", "put lane files directly into `lanes`"))
}

fn looks_like_a_lane(path: &Path) -> bool {
    let ending = path.extension().unwrap_or_default();
    let is_hidden = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
    !is_hidden && ["yaml", "yml", "json", "toml"].iter().any(|kind| ending.eq_ignore_ascii_case(kind))
}

fn has_lanes_inside(folder: &Path) -> bool {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().take(MOST_ENTRIES);
    entries.into_iter().any(|entry| looks_like_a_lane(&entry.path()))
}

/// Finds entries of the root whose names are nearly correct.
pub(super) fn astray(root: &Path) -> Vec<LaneRemark> {
    let entries = fs::read_dir(root).into_iter().flatten().flatten().take(MOST_ENTRIES);
    let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    let misnamed = |name: String| {
        let (message, hint) = misnamed(root, &name)?;
        let problem = Problem::of_file(message).hint(hint);
        Some(LaneRemark { path: name, lane: None, problem })
    };
    names.into_iter().filter_map(misnamed).collect()
}

/// Returns why an entry of the root is not read, and a hint.
fn misnamed(root: &Path, name: &str) -> Option<(&'static str, String)> {
    let lower = name.to_lowercase();
    let bare = lower.trim_start_matches('.');
    let (stem, ending) = bare.rsplit_once('.').unwrap_or((bare, ""));
    let right = match (stem, ending) {
        ("fledge", "yaml" | "yml") => "fledge.yaml",
        ("fledge.local", "yaml" | "yml") => "fledge.local.yaml",
        ("fledge", "toml") => TOML,
        ("lane" | "lanes", "yaml" | "yml" | "json" | "toml") => {
            return Some(("this file is not read", format!("each lane is a file of its own: `{LANES}/<name>.yaml`")));
        }
        ("lane" | "lanes", "") if has_lanes_inside(&root.join(name)) => LANES,
        _ => return None,
    };
    // On a file system that ignores case, the file is read under this name.
    let is_it = name == right || (name.eq_ignore_ascii_case(right) && root.join(right).exists());
    let what = if right == LANES { "files in this folder are not read" } else { "this file is not read" };
    (!is_it).then(|| (what, format!("rename it to `{right}`")))
}
