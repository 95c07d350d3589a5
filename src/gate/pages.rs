//! The files that say something about lanes, read into a [`Book`]. What cannot be read is a problem of what it may say, and stops
//! nothing else; what only looks like such a file is said.

use crate::lane::{Book, Remark};
use crate::limits::MAX_SOURCE;
use crate::store::{self, NotUtf8};
use crate::yaml::{Place, Problem};
use std::fs;
use std::io;
use std::path::Path;

/// The folder of lanes that have a file each.
pub const LANES: &str = "lanes";
/// Tasks and lanes of a project that has them all in one file.
pub(super) const TOML: &str = "fledge.toml";
/// Tasks of a project that has its lanes in files of their own.
pub(super) const TASKS: &str = "fledge.yaml";
/// Where files of that form lie that were brought in from elsewhere.
pub(super) const IMPORTED: &str = ".fledge/lanes";
/// Entries of a folder that are looked at for names that are nearly right.
const MOST_ENTRIES: usize = 5_000;

/// Reads all that the project says about lanes: the tasks of `fledge.yaml`, `lanes/*.yaml`, `fledge.toml`, and what was imported
/// into `.fledge/lanes`. In this order, in which they count.
pub(super) fn book(root: &Path) -> Book {
    let mut book = Book::default();
    if let Some(text) = text(root, TASKS, &mut book) {
        book.add_tasks(TASKS, &text);
    }
    add_lanes(root, &mut book);
    if let Some(text) = text(root, TOML, &mut book) {
        book.add_toml(TOML, &text);
    }
    for file in names_in(root, IMPORTED, &mut book) {
        let path = format!("{IMPORTED}/{file}");
        if file.ends_with(".toml")
            && !file.starts_with('.')
            && let Some(text) = text(root, &path, &mut book)
        {
            book.add_imported(&path, &text);
        }
    }
    book
}

/// Adds the lanes of the folder `lanes`. A file that cannot be read is a problem of its lane; what only looks like one is said.
fn add_lanes(root: &Path, book: &mut Book) {
    let files = names_in(root, LANES, book);
    // In this order, so that of two files of one name `.yaml` is the later one and counts.
    for file in files.iter().rev() {
        let path = format!("{LANES}/{file}");
        let name = file.strip_suffix(".yml").or_else(|| file.strip_suffix(".yaml"));
        let Some(name) = name.filter(|name| is_plain(name)) else {
            if let Some((why, hint)) = stray(&root.join(&path)) {
                book.add_stray(&path, why, hint);
            }
            continue;
        };
        if file.ends_with(".yml") && files.contains(&format!("{name}.yaml")) {
            let why = format!("lane `{name}` is also in {LANES}/{name}.yaml, and that one is used");
            book.add_stray(&path, &why, "remove one of them");
            continue;
        }
        match read(root, &path) {
            Ok(Some(text)) => book.add_lane(name, &path, &text),
            Ok(None) => {} // it was there a moment ago
            Err(why) => book.add_unreadable(name, &path, why),
        }
    }
}

/// The text of a file with several lanes or tasks, where there is one that can be read.
fn text(root: &Path, path: &str, book: &mut Book) -> Option<String> {
    read(root, path).unwrap_or_else(|why| {
        book.add_broken(path, why);
        None
    })
}

/// The text of a file, where there is one.
pub(super) fn read(root: &Path, path: &str) -> Result<Option<String>, Problem> {
    let path = root.join(path);
    match store::read_text(&path, MAX_SOURCE) {
        Ok(None) if path.is_symlink() => Err(unreadable("it is a link that leads nowhere")),
        Ok(text) => Ok(text),
        Err(error) => Err(match error.not_utf8() {
            Some(NotUtf8 { line, column, found }) => {
                let place = Place { line: *line, column: *column };
                Problem::at(place, format!("not UTF-8: {found}")).hint("save the file as UTF-8")
            }
            None => unreadable(&error.cause()),
        }),
    }
}

/// That a file is none of those that can define lanes or tasks.
pub(super) fn unlike() -> Problem {
    let hint =
        format!("a lane is `<name>.yaml`; tasks are in `{TASKS}`, lanes and tasks in `{TOML}` and what has its form");
    Problem::of_file("this is no file of lanes").hint(hint)
}

fn unreadable(why: &str) -> Problem {
    Problem::of_file(format!("cannot be read: {why}")).hint("mend or remove it")
}

/// The names in a folder, sorted; none where there is no folder.
fn names_in(root: &Path, folder: &str, book: &mut Book) -> Vec<String> {
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
                io::ErrorKind::NotFound => book.add_broken(folder, unreadable("it is a link that leads nowhere")),
                _ => book.add_broken(folder, unreadable(&error.to_string())),
            }
            Vec::new()
        }
    }
}

/// Whether a text can name a lane: the name of a file without its ending, neither hidden nor leading elsewhere.
fn is_plain(name: &str) -> bool {
    !name.is_empty() && !name.starts_with('.') && name.chars().all(|c| c.is_alphanumeric() || "-_.".contains(c))
}

/// Why something in the folder of lanes is no lane although it looks like one, and what to do.
fn stray(path: &Path) -> Option<(&'static str, &'static str)> {
    if looks_like_a_lane(path) {
        let hint = "a lane is `<name>.yaml`, its name made of letters, digits, `-`, `_` and `.`";
        return Some(("this file is not read", hint));
    }
    has_lanes_inside(path).then_some(("files in this folder are not read", "put lanes into `lanes` itself"))
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

/// Finds what is at the root under a name that is nearly right.
pub(super) fn astray(root: &Path) -> Vec<Remark> {
    let entries = fs::read_dir(root).into_iter().flatten().flatten().take(MOST_ENTRIES);
    let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    let misnamed = |name: String| {
        let (message, hint) = misnamed(root, &name)?;
        let problem = Problem::of_file(message).hint(hint);
        Some(Remark { path: name, lane: None, problem })
    };
    names.into_iter().filter_map(misnamed).collect()
}

/// Why this at the root is not read, and what to do.
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
    // Where capitals make no difference, it is read.
    let is_it = name == right || (name.eq_ignore_ascii_case(right) && root.join(right).exists());
    let what = if right == LANES { "files in this folder are not read" } else { "this file is not read" };
    (!is_it).then(|| (what, format!("call it `{right}`")))
}
