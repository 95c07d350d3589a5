//! The choices of a form for a new run: configured models, lanes, and task files with their
//! parameters.

use super::source::{ProjectTasks, one_line};
use crate::config::{ProjectConfig, auto_name};
use crate::lane_files;
use crate::limits::MAX_SOURCE;
use crate::scheduler::FOLDER;
use crate::serve::engine::{ParamChoice, RunChoices, TaskChoice};
use crate::store::read_text;
use crate::task::{GateChoice, ParamSpec, ParamValues, Tier, declared_params};
use std::path::Path;
use walkdir::WalkDir;

/// The depth to which the folder of tasks is searched, and the maximum number of files to offer.
const DEEP: usize = 8;
const MOST: usize = 500;
/// The number of characters of a task's text that are shown.
const LONGEST_TEXT: usize = 4000;

impl ProjectTasks {
    /// Returns all choices. Unreadable files are left out, and an invalid task has its fault.
    pub(super) fn offered(&self) -> RunChoices {
        let set = self.set().unwrap_or_default();
        let default_model = auto_name(&set, Tier::Code, &self.environment).ok().map(str::to_owned);
        let mut models: Vec<String> = set.models.keys().cloned().collect();
        models.extend(default_model.clone().filter(|name| !set.models.contains_key(name)));
        RunChoices { models, default_model, lanes: self.lanes(), tasks: self.files(&set) }
    }

    /// Returns the names of the valid lanes.
    pub(super) fn lanes(&self) -> Vec<String> {
        let path = self.environment.get("PATH").unwrap_or_default();
        let listed = lane_files::list(&self.workspace, path);
        listed.map(|listed| listed.lanes.into_iter().map(|lane| lane.name).collect()).unwrap_or_default()
    }

    fn files(&self, set: &ProjectConfig) -> Vec<TaskChoice> {
        let folder = self.workspace.join(FOLDER);
        let files = WalkDir::new(&folder).max_depth(DEEP).sort_by_file_name().into_iter().flatten();
        let files = files
            .filter(|entry| entry.file_type().is_file() && entry.path().extension().is_some_and(|end| end == "md"));
        files.take(MOST).filter_map(|entry| self.file(entry.path(), &folder, set)).collect()
    }

    fn file(&self, file: &Path, folder: &Path, set: &ProjectConfig) -> Option<TaskChoice> {
        let path = format!("{FOLDER}/{}", file.strip_prefix(folder).ok()?.to_str()?);
        let text = read_text(file, MAX_SOURCE).ok().flatten()?;
        let (params, fault) = match declared_params(&text, &path) {
            Ok(params) => (params, None),
            Err(fault) => (Vec::new(), Some(fault.to_string())),
        };
        let values: ParamValues = params.iter().map(|spec| (spec.name.clone(), sample(spec))).collect();
        let start = text.chars().take(LONGEST_TEXT).collect();
        let params = params.into_iter().map(choice).collect();
        let empty =
            TaskChoice { path: path.clone(), title: path.clone(), text: start, params, ..TaskChoice::default() };
        Some(match self.parsed(&text, &path, &values, set) {
            Ok(task) => {
                let lanes = match task.gate {
                    GateChoice::Lanes(lanes) => lanes,
                    GateChoice::Skip => Vec::new(),
                };
                let (title, models, usd_micros) = (task.title, task.models, task.budget.usd_micros);
                TaskChoice { title, models, lanes, usd_micros, fault, ..empty }
            }
            Err(unfit) => TaskChoice { fault: fault.or_else(|| Some(one_line(&unfit))), ..empty },
        })
    }
}

/// Returns a valid value for a parameter. Without a default or choices, the value is the name in
/// braces, for use in a title.
fn sample(spec: &ParamSpec) -> String {
    spec.default.clone().or_else(|| spec.choices.first().cloned()).unwrap_or_else(|| format!("{{{}}}", spec.name))
}

fn choice(spec: ParamSpec) -> ParamChoice {
    let ParamSpec { name, required, default, choices, description } = spec;
    ParamChoice { name, required, default, choices, description }
}
