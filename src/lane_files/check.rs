//! The check of lane files, of a whole project or one by one. Runs nothing.

use super::read::{IMPORTED, LANES, TASKS, TOML, astray, lane_files, read, unlike};
use super::runnable::missing;
use crate::lane::{Lane, LaneFiles, LaneRemark};
use crate::yaml::{Problem, listed};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The valid lanes, and the problems and warnings about their files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CheckedLanes {
    /// The valid lanes.
    pub lanes: Vec<Lane>,
    /// The errors, by file and place.
    pub problems: Vec<LaneRemark>,
    /// The problems, by file and place, followed by the programs that steps lack here.
    pub warnings: Vec<LaneRemark>,
}

/// Reads and compiles all lanes of the project at `root`. `path` is the search path of steps.
/// Reports unreadable files among the problems.
pub fn check(root: &Path, path: &str) -> CheckedLanes {
    let lane_files = lane_files(root);
    let (lanes, problems, mut warnings) = lane_files.check();
    warnings.extend(astray(root));
    warnings.extend(lanes.iter().flat_map(|lane| lacks(root, lane, &lane_files, path)));
    CheckedLanes { lanes, problems, warnings }
}

/// Checks one file at any path: a lane in YAML, the tasks of a `fledge.yaml`, or a file in the
/// format of `fledge.toml`. Resolves its references in the project that the file is part of. A YAML
/// lane that is part of no project may refer to the project at `root`.
pub fn check_file(root: &Path, file: &str, path: &str) -> CheckedLanes {
    let found = CheckFinding::at(root, file);
    match found.lane_files() {
        Ok(lane_files) => found.say(&lane_files, path),
        Err(problem) => {
            let problems = vec![LaneRemark { path: file.to_owned(), lane: None, problem }];
            CheckedLanes { problems, ..CheckedLanes::default() }
        }
    }
}

/// A file, and the project that it is part of.
struct CheckFinding {
    project: PathBuf,
    /// The path of the file in the project.
    name: String,
    /// The part of the given path before `name`.
    before: String,
    /// True if the project reads the file by itself.
    is_read: bool,
}

impl CheckFinding {
    fn at(root: &Path, file: &str) -> Self {
        let full = root.join(file);
        let name = full.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let folder = full.parent().and_then(|folder| folder.canonicalize().ok()).unwrap_or_default();
        let up = |levels: usize| folder.ancestors().nth(levels).map(Path::to_owned);
        let part = match ending(name) {
            "yaml" | "yml" if folder.ends_with(LANES) => up(1).map(|project| (project, format!("{LANES}/{name}"))),
            "toml" if folder.ends_with(IMPORTED) => up(2).map(|project| (project, format!("{IMPORTED}/{name}"))),
            _ if [TASKS, TOML].contains(&name) => up(0).map(|project| (project, name.to_owned())),
            _ => None,
        };
        let is_read = part.is_some();
        let (project, name) = part.unwrap_or_else(|| (root.to_owned(), file.to_owned()));
        let before = file.strip_suffix(&name).unwrap_or_default().to_owned();
        Self { project, name, before, is_read }
    }

    /// Returns the file itself and everything that it can refer to.
    fn lane_files(&self) -> Result<LaneFiles, Problem> {
        let text = read(&self.project, &self.name);
        if matches!(text, Ok(None)) {
            return Err(Problem::of_file("no such file or folder"));
        }
        let whole = lane_files(&self.project);
        let stem = Path::new(&self.name).file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        let is_there = self.is_read && (self.name == TASKS || ending(&self.name) == "toml");
        match (ending(&self.name), text) {
            _ if is_there || whole.path_of(stem) == Some(&self.name) => Ok(whole),
            ("toml", Ok(text)) => {
                let mut alone = LaneFiles::default();
                alone.add_toml(&self.name, &text.unwrap_or_default());
                Ok(alone)
            }
            ("yaml" | "yml", Ok(text)) => {
                let mut whole = whole;
                whole.add_lane(stem, &self.name, &text.unwrap_or_default());
                Ok(whole)
            }
            (_, Err(problem)) => Err(problem),
            (_, Ok(_)) => Err(unlike()),
        }
    }

    /// Returns the remarks on the file, and all other problems that make its lanes invalid.
    fn say(&self, lane_files: &LaneFiles, path: &str) -> CheckedLanes {
        let (_, mut problems, mut warnings) = lane_files.check();
        problems.retain(|problem| problem.path == self.name);
        warnings.retain(|warning| warning.path == self.name);
        let (mut lanes, own) =
            (Vec::new(), lane_files.names().filter(|lane| lane_files.path_of(lane) == Some(&self.name)));
        for lane in own {
            match lane_files.lane(lane) {
                Ok(lane) => lanes.push(lane),
                Err(fault) => problems.extend(fault.remarks()),
            }
        }
        let mut reported = Vec::new();
        problems.retain(|problem| {
            let is_new = !reported.contains(problem);
            reported.extend(is_new.then(|| problem.clone()));
            is_new
        });
        warnings.extend(lanes.iter().flat_map(|lane| lacks(&self.project, lane, lane_files, path)));
        for remark in problems.iter_mut().chain(&mut warnings) {
            remark.path.insert_str(0, &self.before);
        }
        CheckedLanes { lanes, problems, warnings }
    }
}

fn ending(name: &str) -> &str {
    name.rsplit_once('.').map_or("", |(_, ending)| ending)
}

/// Returns warnings about steps of a lane that lack something here, and about steps that lose a
/// failure.
fn lacks(root: &Path, lane: &Lane, lane_files: &LaneFiles, path: &str) -> Vec<LaneRemark> {
    let mut lacking: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for (_, step, why) in missing(root, lane, path, &lane.always_run()) {
        lacking.entry(format!("cannot run here: {why}")).or_default().push(&step.name);
    }
    for step in lane.steps.iter().filter(|step| step.is_deaf_to_failures()) {
        let why = "has several lines, but only a failure of the last line counts (begin with `set -e`)";
        lacking.entry(why.into()).or_default().push(&step.name);
    }
    let remark = |(why, steps): (String, Vec<&str>)| {
        let steps = match steps.as_slice() {
            [step] => format!("step `{step}`"),
            steps => format!("steps {}", listed(steps.iter().copied())),
        };
        let message = format!("{steps} of lane `{}` {why}", lane.name);
        let problem = Problem::of_file(message);
        let path = lane_files.path_of(&lane.name).unwrap_or_default().to_owned();
        LaneRemark { path, lane: Some(lane.name.clone()), problem }
    };
    lacking.into_iter().map(remark).collect()
}
