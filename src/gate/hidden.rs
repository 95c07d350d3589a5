//! Hidden tests: files of the base that the agent does not see and that the gate uses.
//!
//! The gate's base is the tree without these files, like everything that the agent sees. Once the
//! work has passed there, the lanes run on the work with the hidden files of the whole base.

use super::signs::has_tests;
use super::{Gate, Policy};
use crate::id::TreeId;
use crate::lane::{Lane, RoomKind, Step};
use crate::lane_files::load;
use crate::pattern::Patterns;
use crate::store::sha256;
use crate::task::HiddenRule;
use crate::workspace::trees::text_path;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs;
use std::io::Read as _;
use std::path::Path;

/// The largest file that is searched for tests, in bytes.
const LARGEST: u64 = 1024 * 1024;
/// The number of characters of a seed that fledge chooses.
const DIGITS: usize = 8;
/// Names of files in test folders that other tests need.
const HELPERS: [&str; 4] = ["conftest.py", "__init__.py", "mod.rs", "setup.js"];

/// The hidden tests of a gate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HiddenTests {
    /// The tree of the base with the hidden files.
    pub base: TreeId,
    /// The paths of the hidden files, sorted.
    pub paths: Vec<String>,
}

impl HiddenTests {
    /// Returns the paths of a tree that are in the place of hidden files: at, below or above them.
    pub fn taken_by(&self, paths: Vec<String>) -> Vec<String> {
        let is_in =
            |path: &str, of: &str| path.strip_prefix(of).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        let is_taken = |path: &String| self.paths.iter().any(|own| is_in(path, own) || is_in(own, path));
        paths.into_iter().filter(is_taken).collect()
    }
}

/// The files to hide.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HiddenFiles {
    /// The paths, sorted.
    pub paths: Vec<String>,
    /// The sizes and digests of their contents.
    pub contents: BTreeSet<(u64, String)>,
    /// Notes for people: the number of files, and the seed of a draw.
    pub notes: Vec<String>,
}

/// The reason why files cannot be hidden.
#[derive(Debug, thiserror::Error)]
pub enum HiddenError {
    /// An item of `hidden` is invalid, or matches no file.
    #[error("`hidden: {rule}`: {why}")]
    Rule {
        /// The item.
        rule: String,
        /// The reason.
        why: String,
    },
    /// No test file would be left.
    #[error("`hidden` hides all test files: leave some, so that the agent's own checks judge its work")]
    All,
    /// A lane runs in the workspace.
    #[error("lane `{lane}` has `room: in-place`, so its steps would leave traces of hidden tests: use `room: clean`")]
    InPlace {
        /// The lane.
        lane: String,
    },
    /// A command names a hidden file, and the agent knows the commands.
    #[error(
        "step `{step}` of lane `{lane}` names `{path}`, which is hidden: the step fails without it, and the agent reads the command"
    )]
    Named {
        /// The lane.
        lane: String,
        /// The step.
        step: String,
        /// The hidden file, or a folder with hidden files only.
        path: String,
    },
}

/// Returns the items of `hidden` of these lanes of the project at `root`. Lanes that cannot be read
/// have none. `path` is the search path of steps.
pub fn hidden_of_lanes(root: &Path, lanes: &[String], path: &str) -> Vec<String> {
    lanes.iter().filter_map(|lane| load(root, lane, path).ok()).flat_map(|loaded| loaded.lane.hidden).collect()
}

/// Chooses the files to hide among `paths`, the files of the base in `root`. `seed` is for draws
/// without one.
///
/// # Errors
/// [`HiddenError`].
pub fn choose_hidden(rules: &[String], root: &Path, paths: &[String], seed: &str) -> Result<HiddenFiles, HiddenError> {
    let (mut hidden, mut notes) = (BTreeSet::new(), Vec::new());
    for rule in rules {
        let wrong = |why: String| HiddenError::Rule { rule: rule.clone(), why };
        match HiddenRule::parse(rule).map_err(|(why, hint)| wrong(format!("{why} ({hint})")))? {
            HiddenRule::Glob(glob) => {
                let patterns = Patterns::trees([glob.as_str()]).map_err(|error| wrong(error.to_string()))?;
                let found: Vec<&String> = paths.iter().filter(|path| patterns.fit(path)).collect();
                if found.is_empty() {
                    return Err(wrong("no file of the base matches".into()));
                }
                notes.push(format!("hidden from the agent: {} (`{rule}`)", files(found.len())));
                hidden.extend(found.into_iter().cloned());
            }
            HiddenRule::Share { percent, seed: own } => {
                let tests: Vec<&String> = paths.iter().filter(|path| is_drawn_from(root, path)).collect();
                if tests.len() < 2 {
                    return Err(wrong(format!("the base has {}", test_files(tests.len()))));
                }
                let seed = own.unwrap_or_else(|| sha256(seed.as_bytes()).chars().take(DIGITS).collect());
                let drawn = draw(&tests, percent, &seed);
                let (count, all) = (drawn.len(), test_files(tests.len()));
                notes.push(format!("hidden from the agent: {count} of {all} (`auto {percent}% seed {seed}`)"));
                hidden.extend(drawn.into_iter().cloned());
            }
        }
    }
    let is_left = |path: &&String| Policy::looks_like_a_test(path) && !hidden.contains(*path);
    if hidden.iter().any(|path| Policy::looks_like_a_test(path)) && !paths.iter().any(|path| is_left(&path)) {
        return Err(HiddenError::All);
    }
    let contents = hidden.iter().filter_map(|path| content(&root.join(text_path(path)))).collect();
    Ok(HiddenFiles { paths: hidden.into_iter().collect(), contents, notes })
}

fn files(count: usize) -> String {
    if count == 1 { "1 file".into() } else { format!("{count} files") }
}

fn test_files(count: usize) -> String {
    if count == 1 { "1 test file".into() } else { format!("{count} test files") }
}

/// Returns whether a draw may hide a file: it has tests, and other tests do not need it.
fn is_drawn_from(root: &Path, path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let text = || {
        let mut text = Vec::new();
        let file = fs::File::open(root.join(text_path(path))).ok()?;
        file.take(LARGEST).read_to_end(&mut text).ok()?;
        Some(String::from_utf8_lossy(&text).into_owned())
    };
    Policy::looks_like_a_test(path) && !HELPERS.contains(&name) && text().is_some_and(|text| has_tests(&text))
}

/// Draws a share of the files, at least one and never all. Equal seeds draw equal files.
fn draw<'p>(files: &[&'p String], percent: u32, seed: &str) -> Vec<&'p String> {
    let mut drawn: Vec<(String, &String)> =
        files.iter().map(|path| (sha256(format!("{seed} {path}").as_bytes()), *path)).collect();
    drawn.sort();
    let count = (files.len() * percent as usize).div_ceil(100).clamp(1, files.len() - 1);
    drawn.into_iter().take(count).map(|(_, path)| path).collect()
}

/// Returns the size and the digest of a plain file that is not empty.
pub(super) fn content(path: &Path) -> Option<(u64, String)> {
    let meta = path.symlink_metadata().ok().filter(|meta| meta.is_file() && meta.len() > 0)?;
    Some((meta.len(), sha256(&fs::read(path).ok()?)))
}

/// Checks that these lanes keep files hidden. `paths` are the files of the base that stay visible.
fn check_lanes(lanes: &[Lane], hidden: &[String], paths: &[String]) -> Result<(), HiddenError> {
    for lane in lanes {
        if lane.room == RoomKind::InPlace {
            return Err(HiddenError::InPlace { lane: lane.name.clone() });
        }
        let named = |step: &Step| only_hidden(hidden, paths).into_iter().find(|path| names_path(&step.run, path));
        if let Some((step, path)) = lane.steps.iter().chain(&lane.setup).find_map(|step| Some((step, named(step)?))) {
            return Err(HiddenError::Named { lane: lane.name.clone(), step: step.name.clone(), path });
        }
    }
    Ok(())
}

/// Returns the hidden files, and the folders that contain hidden files only.
fn only_hidden(hidden: &[String], paths: &[String]) -> BTreeSet<String> {
    let folders = hidden.iter().flat_map(|path| path.match_indices('/').map(|(end, _)| &path[..end]));
    let is_seen = |folder: &str| {
        let below = format!("{folder}/");
        paths.iter().any(|path| path.starts_with(&below))
    };
    let folders: BTreeSet<&str> = folders.collect();
    let folders = folders.into_iter().filter(|folder| !is_seen(folder)).map(str::to_owned);
    hidden.iter().cloned().chain(folders).collect()
}

/// Returns whether a command contains a path, and not only as part of a longer name.
fn names_path(command: &str, path: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    let is_whole = |start: usize| {
        let (before, after) = (&command[..start], &command[start + path.len()..]);
        !before.ends_with(is_part) && !after.starts_with(is_part)
    };
    command.match_indices(path).any(|(start, _)| is_whole(start))
}

impl Gate {
    /// Sets the hidden tests of a gate that was frozen without their files. `paths` are the files
    /// of its base. Copies of the files in installed dependencies are hidden too.
    ///
    /// # Errors
    /// [`HiddenError`] if a lane does not keep the files hidden.
    pub fn hide(
        &mut self,
        base: TreeId,
        files: &HiddenFiles,
        (origin, paths): (&Path, &[String]),
    ) -> Result<(), HiddenError> {
        check_lanes(&self.lanes, &files.paths, paths)?;
        self.installed.withhold(origin, &files.contents);
        self.hidden = Some(HiddenTests { base, paths: files.paths.clone() });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lane::parse;

    fn owned(paths: &[&str]) -> Vec<String> {
        paths.iter().map(|path| (*path).to_owned()).collect()
    }

    fn project(paths: &[&str]) -> (tempfile::TempDir, Vec<String>) {
        let dir = crate::test_support::temp_dir();
        for path in paths {
            fs::create_dir_all(dir.path().join(path).parent().unwrap()).unwrap();
            fs::write(dir.path().join(path), format!("def test_{}():\n    pass\n", path.len())).unwrap();
        }
        (dir, owned(paths))
    }

    #[test]
    fn globs_hide_what_they_match_and_a_glob_without_a_match_is_refused() {
        let (dir, paths) = project(&["a.py", "tests/acceptance/test_a.py", "tests/test_b.py"]);
        let choose = |rules: &[&str]| choose_hidden(&owned(rules), dir.path(), &paths, "run");
        let hidden = choose(&["tests/acceptance/**"]).unwrap();
        assert_eq!(hidden.paths, ["tests/acceptance/test_a.py"]);
        assert_eq!(hidden.notes, ["hidden from the agent: 1 file (`tests/acceptance/**`)"]);
        assert_eq!(hidden.contents.len(), 1);
        let wrong = |rules: &[&str]| choose(rules).unwrap_err().to_string();
        assert_eq!(wrong(&["tests/acceptanc/**"]), "`hidden: tests/acceptanc/**`: no file of the base matches");
        assert!(wrong(&["tests/**"]).starts_with("`hidden` hides all test files"));
    }

    #[test]
    fn a_draw_depends_on_its_seed_alone_and_leaves_helpers() {
        let names: Vec<String> = (0..20).map(|number| format!("tests/test_{number}.py")).collect();
        let mut all: Vec<&str> = names.iter().map(String::as_str).collect();
        all.push("tests/conftest.py");
        let (dir, paths) = project(&all);
        let draw = |rule: &str, run: &str| choose_hidden(&owned(&[rule]), dir.path(), &paths, run).unwrap();
        let first = draw("auto 25% seed x", "one");
        assert_eq!((first.paths.len(), &first.paths), (5, &draw("auto 25% seed x", "two").paths));
        assert_ne!(first.paths, draw("auto 25% seed y", "one").paths);
        assert_ne!(draw("auto 25%", "one").paths, draw("auto 25%", "two").paths);
        assert_eq!(first.notes, ["hidden from the agent: 5 of 20 test files (`auto 25% seed x`)"]);
        assert!(!draw("auto 99%", "one").paths.contains(&"tests/conftest.py".to_owned()));
        assert_eq!(draw("auto 99%", "one").paths.len(), 19);
    }

    #[test]
    fn a_command_that_names_what_is_hidden_is_refused_except_for_the_folder_above() {
        let lane = |run: &str| [parse("verify", "v.yaml", &format!("steps: [{{ run: '{run}' }}]")).unwrap()];
        let (hidden, paths) = (owned(&["tests/acceptance/test_a.py"]), owned(&["tests/test_b.py"]));
        let check = |run: &str| check_lanes(&lane(run), &hidden, &paths).map_err(|error| error.to_string());
        for run in ["pytest", "pytest tests", "pytest tests/", "pytest tests/acceptance2", "x-tests/acceptance"] {
            assert_eq!(check(run), Ok(()), "{run}");
        }
        for run in ["pytest tests/acceptance", "pytest ./tests/acceptance/", "cat tests/acceptance/test_a.py"] {
            assert!(check(run).unwrap_err().contains("which is hidden"), "{run}");
        }
        let in_place = [parse("v", "v.yaml", "room: in-place\nsteps: [{ run: x }]").unwrap()];
        assert!(check_lanes(&in_place, &hidden, &paths).unwrap_err().to_string().contains("room: in-place"));
    }
}
