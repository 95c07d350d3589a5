//! Freezing: the lanes are read, parsed and kept, so that later edits change nothing in this run. What cannot run is refused
//! here, before a cent is spent.

use super::Gate;
use super::detection::{look_if_no_lanes, remarks};
use super::protected::protection;
use super::seal::Seal;
use crate::lane::detect::DETECTED_LANE;
use crate::lane::{Book, Lane, LaneFault, Remark, Step};
use crate::limits::MAX_SOURCE;
use crate::store::{self, StoreError};
use crate::verdict::Reason;
use crate::workspace::pattern::PatternError;
use crate::yaml::Problem;
use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// Tasks and lanes of a project that has them all in one file.
const TOML: &str = "fledge.toml";
/// Where files of that form lie that were brought in from elsewhere.
const IMPORTED: &str = ".fledge/lanes";
/// The most remarks on its file that a lane is run with.
const MOST_NOTES: usize = 5;

/// The gate cannot be frozen.
#[derive(Debug, thiserror::Error)]
pub enum GateFault {
    /// A lane that is not there.
    #[error("there is no lane `{lane}` in {folder}{}{}", hint(.known), remarks(.left_out))]
    UnknownLane {
        /// Its name.
        lane: String,
        /// Where it was looked for.
        folder: String,
        /// The lanes that are there.
        known: Vec<String>,
        /// What detection could not use, where there are no lanes at all.
        left_out: Vec<String>,
    },
    /// A lane that is wrong.
    #[error(transparent)]
    Lane(#[from] LaneFault),
    /// A pattern that is no glob.
    #[error(transparent)]
    Pattern(#[from] PatternError),
    /// A file that cannot be read.
    #[error(transparent)]
    Unreadable(#[from] StoreError),
    /// Protected files that cannot be read.
    #[error("cannot read protected files")]
    Seal(#[source] std::io::Error),
    /// A step that could not run.
    #[error("step `{step}` of lane `{lane}` cannot run: {why}")]
    CannotRun {
        /// The lane.
        lane: String,
        /// The step.
        step: String,
        /// What is missing.
        why: String,
    },
}

impl GateFault {
    /// The reason that a run ends with when its gate cannot be frozen for this.
    pub fn reason(&self) -> Reason {
        match self {
            Self::CannotRun { .. } => Reason::GateErrored,
            Self::UnknownLane { .. } | Self::Lane(_) | Self::Pattern(_) => Reason::BadInput,
            Self::Unreadable(_) | Self::Seal(_) => Reason::PlanFailed,
        }
    }
}

fn hint(known: &[String]) -> String {
    if known.is_empty() {
        ": there are no lanes at all; write one, or skip verification with `lane: false` or --no-verify".into()
    } else {
        format!(": it has {}", known.join(", "))
    }
}

/// Freezes the gate of these lanes in the workspace at `root`. `path` is the search path that steps will have.
///
/// # Errors
/// Unknown or wrong lanes, patterns that are no globs, steps that cannot run.
pub fn freeze(
    root: &Path,
    lanes: &[String],
    protect: &[String],
    allow_edit: &[String],
    path: &str,
) -> Result<Gate, GateFault> {
    let loaded = lanes.iter().map(|name| load(root, name, path)).collect::<Result<Vec<_>, _>>()?;
    let (lanes, notes): (Vec<Lane>, Vec<_>) = loaded.into_iter().map(|loaded| (loaded.lane, loaded.notes)).unzip();
    for lane in &lanes {
        can_run(root, lane, path)?;
    }
    let digest = store::sha256(serde_json::to_string(&lanes).unwrap_or_default().as_bytes());
    let protection = protection(&lanes, root, protect, allow_edit)?;
    let seal = Seal::take(root, protection).map_err(GateFault::Seal)?;
    let mut notes = notes.concat();
    let mut told = BTreeSet::new();
    notes.retain(|note| told.insert(note.clone())); // lanes of one file share what is said of it
    Ok(Gate { lanes, digest, notes, seal: Arc::new(seal) })
}

/// A lane, and what is to be known about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loaded {
    /// The lane.
    pub lane: Lane,
    /// For people: what is strange about its file; that it was detected and is not the project's own word, and what was left out.
    pub notes: Vec<String>,
}

/// Reads and parses one lane of the project at `root`, or detects it where the project defines no lanes. `path` is the search
/// path that steps will have.
///
/// # Errors
/// When it is not there or is wrong.
pub fn load(root: &Path, name: &str, path: &str) -> Result<Loaded, GateFault> {
    let book = book(root)?;
    if book.has(name) {
        let mut notes: Vec<String> = book.warnings_of(name).iter().map(ToString::to_string).collect();
        let more = notes.len().saturating_sub(MOST_NOTES);
        notes.truncate(MOST_NOTES);
        notes.extend((more > 0).then(|| format!("and {more} more: `fledge lanes validate` has them all")));
        return Ok(Loaded { lane: book.lane(name)?, notes });
    }
    let (mut known, mut left_out) = (book.names().map(ToOwned::to_owned).collect::<Vec<_>>(), Vec::new());
    if let Some(mut detected) = look_if_no_lanes(root, path)? {
        if name == DETECTED_LANE && !detected.is_empty() {
            let note = "there are no lanes: this one was detected; keep it with `fledge lanes init`";
            detected.remarks.insert(0, note.into());
            return Ok(Loaded { lane: detected.lane()?, notes: detected.remarks });
        }
        known.extend((!detected.is_empty()).then(|| format!("{DETECTED_LANE} (detected)")));
        left_out = detected.remarks;
    }
    let folder = if root.join(TOML).exists() { root.to_owned() } else { root.join("lanes") };
    Err(GateFault::UnknownLane { lane: name.into(), folder: folder.display().to_string(), known, left_out })
}

/// The names of the project's lanes, sorted.
///
/// # Errors
/// When a file of theirs cannot be read, or does not say which there are.
pub fn names(root: &Path) -> Result<Vec<String>, GateFault> {
    let book = book(root)?;
    book.is_whole()?;
    Ok(book.names().map(ToOwned::to_owned).collect())
}

/// All lanes of a project, and all that there is to say about their files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checked {
    /// The lanes that are right.
    pub lanes: Vec<Lane>,
    /// What is wrong, by file and place.
    pub problems: Vec<Remark>,
    /// What is strange, by file and place, and then what steps lack here.
    pub warnings: Vec<Remark>,
}

/// Reads and compiles all lanes of the project at `root`. `path` is the search path that steps will have.
///
/// # Errors
/// When a file of theirs cannot be read.
pub fn check(root: &Path, path: &str) -> Result<Checked, GateFault> {
    let book = book(root)?;
    let (lanes, problems, mut warnings) = book.check();
    for lane in &lanes {
        for (step, why) in missing(root, lane, path) {
            let message = format!("step `{}` of lane `{}` cannot run here: {why}", step.name, lane.name);
            let problem = Problem { place: None, message, hint: None };
            let path = book.path_of(&lane.name).unwrap_or_default().to_owned();
            warnings.push(Remark { path, lane: Some(lane.name.clone()), problem });
        }
    }
    Ok(Checked { lanes, problems, warnings })
}

/// Reads all that the project says about lanes: `lanes/*.yaml`, the tasks of `fledge.yaml`, `fledge.toml`, and what was imported
/// into `.fledge/lanes`.
fn book(root: &Path) -> Result<Book, GateFault> {
    let mut book = Book::default();
    let read = |path: &str| store::read_text(&root.join(path), MAX_SOURCE);
    if let Some(text) = read("fledge.yaml")? {
        book.add_tasks("fledge.yaml", &text);
    }
    add_lanes(root, &mut book)?;
    if let Some(text) = read(TOML)? {
        book.add_toml(TOML, &text);
    }
    for file in files(&root.join(IMPORTED))?.iter().filter(|file| file.ends_with(".toml") && !file.starts_with('.')) {
        let path = format!("{IMPORTED}/{file}");
        if let Some(text) = read(&path)? {
            book.add_imported(&path, &text);
        }
    }
    Ok(book)
}

/// Adds the lanes of the folder `lanes`. A file that cannot be read is a problem of its lane; what only looks like one is said.
fn add_lanes(root: &Path, book: &mut Book) -> Result<(), GateFault> {
    let files = files(&root.join("lanes"))?;
    // In this order, so that of two files of one name `.yaml` is the later one and counts.
    for file in files.iter().rev() {
        let path = format!("lanes/{file}");
        let name = file.strip_suffix(".yml").or_else(|| file.strip_suffix(".yaml"));
        let Some(name) = name.filter(|name| is_plain(name)) else {
            if let Some((why, hint)) = stray(&root.join(&path)) {
                book.add_stray(&path, why, hint);
            }
            continue;
        };
        if file.ends_with(".yml") && files.contains(&format!("{name}.yaml")) {
            book.add_stray(
                &path,
                &format!("lane `{name}` is also in lanes/{name}.yaml, and that one is used"),
                "remove one of them",
            );
            continue;
        }
        match store::read_text(&root.join(&path), MAX_SOURCE) {
            Ok(Some(text)) => book.add_lane(name, &path, &text),
            Ok(None) => book.add_unreadable(name, &path, "it is a link that leads nowhere"),
            Err(error) => book.add_unreadable(name, &path, &error.cause()),
        }
    }
    Ok(())
}

/// Why something in the folder of lanes is no lane although it looks like one, and what to do.
fn stray(path: &Path) -> Option<(&'static str, &'static str)> {
    let is_yaml = |path: &Path| {
        let ending = path.extension().unwrap_or_default();
        let is_hidden = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        !is_hidden && (ending.eq_ignore_ascii_case("yaml") || ending.eq_ignore_ascii_case("yml"))
    };
    if is_yaml(path) {
        let hint = "a lane is `<name>.yaml`, its name made of letters, digits, `-`, `_` and `.`";
        return Some(("this file is not read", hint));
    }
    let inside = || std::fs::read_dir(path).into_iter().flatten().flatten().any(|entry| is_yaml(&entry.path()));
    (path.is_dir() && inside()).then_some(("files in this folder are not read", "put lanes into `lanes` itself"))
}

/// The names in a folder, sorted; none where there is no folder.
fn files(folder: &Path) -> Result<Vec<String>, StoreError> {
    let fail = |error| StoreError::new("read", folder, error);
    let is_none = |error: &io::Error| match error.kind() {
        io::ErrorKind::NotFound => folder.symlink_metadata().is_err(), // else a link that leads nowhere
        kind => kind == io::ErrorKind::NotADirectory,
    };
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries.collect::<io::Result<Vec<_>>>().map_err(fail)?,
        Err(error) if is_none(&error) => Vec::new(),
        Err(error) => return Err(fail(error)),
    };
    let mut files: Vec<String> = entries.iter().filter_map(|entry| entry.file_name().into_string().ok()).collect();
    files.sort();
    Ok(files)
}

/// Whether a text can name a lane: the name of a file without its ending, neither hidden nor leading elsewhere.
fn is_plain(name: &str) -> bool {
    !name.is_empty() && !name.starts_with('.') && name.chars().all(|c| c.is_alphanumeric() || "-_.".contains(c))
}

/// Whether a lane's steps have what is plain to see that they need: the program that a command begins with. Steps that only run
/// under a condition are not asked.
///
/// # Errors
/// The first step that cannot run.
pub fn can_run(root: &Path, lane: &Lane, path: &str) -> Result<(), GateFault> {
    let lacking = missing(root, lane, path).into_iter().next();
    lacking.map_or(Ok(()), |(step, why)| {
        Err(GateFault::CannotRun { lane: lane.name.clone(), step: step.name.clone(), why })
    })
}

/// The steps that always run and cannot, each with what it lacks. Of a later step only a program that no earlier one can make is
/// asked for: one that is looked up in the search path.
fn missing<'l>(root: &Path, lane: &'l Lane, path: &str) -> Vec<(&'l Step, String)> {
    let lacks = |(number, step): (usize, &'l Step)| {
        let path = step.env.get("PATH").or_else(|| lane.env.get("PATH")).map_or(path, String::as_str);
        let made_before = if number == 0 { made_by_nobody(root, step) } else { None };
        made_before.or_else(|| not_in_path(step, path)).map(|why| (step, why))
    };
    let always = lane.steps.iter().enumerate().zip(lane.always_run()).filter(|(_, always)| *always);
    always.filter_map(|(step, _)| lacks(step)).collect()
}

/// The folder or the program by path that the first step of a lane lacks.
fn made_by_nobody(root: &Path, step: &Step) -> Option<String> {
    let dir = root.join(step.dir.as_deref().unwrap_or("."));
    if !dir.is_dir() {
        return Some(format!("there is no folder `{}`", step.dir.as_deref().unwrap_or(".")));
    }
    let program = step.program().filter(|program| program.contains('/') && !dir.join(program).exists())?;
    Some(format!("there is no program `{program}`"))
}

fn not_in_path(step: &Step, path: &str) -> Option<String> {
    let shell = if step.has_plain_shell() { None } else { step.shell.first().map(String::as_str) };
    let program = shell.or_else(|| step.program()).filter(|program| !program.contains('/'))?;
    let is_there = std::env::split_paths(path).any(|folder| folder.join(program).is_file());
    (!is_there).then(|| format!("there is no program `{program}` in PATH ({path})"))
}
