//! The lane files of a project, as read, and the lanes compiled from them.

use super::compile::compile;
use super::draft::{CommandOptions, LaneDraft, LaneForm, LaneTask, NamedSpan, StepItem, StepKind};
use super::texts::NamedTexts;
use super::toml::{self, TomlPage};
use super::{Lane, file, inclusion};
use crate::yaml::{FilePlace, Problem, Problems};
use std::collections::BTreeMap;
use std::fmt;

/// All problems of a lane. Displayed as one line for each problem, with its file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LaneError {
    /// The problems, by file as the caller named it.
    pub files: BTreeMap<String, Problems>,
}

impl fmt::Display for LaneError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let files: Vec<String> = self.files.iter().map(|(path, problems)| problems.within(path).to_string()).collect();
        f.write_str(&files.join("\n"))
    }
}

impl std::error::Error for LaneError {}

impl LaneError {
    pub(super) fn merge(&mut self, other: &Self) {
        other.files.iter().for_each(|(path, problems)| self.files.entry(path.clone()).or_default().merge(problems));
    }

    /// Renames the files.
    #[must_use]
    pub fn renamed(self, name: impl Fn(&str) -> String) -> Self {
        Self { files: self.files.into_iter().map(|(path, problems)| (name(&path), problems)).collect() }
    }

    /// Returns the first file and the line of its first problem, or line 1 if the problem concerns
    /// the whole file.
    pub fn place(&self) -> Option<(&str, u32)> {
        let (path, problems) = self.files.first_key_value()?;
        let line = problems.sorted().first().and_then(|problem| problem.place).map_or(1, |place| place.line);
        Some((path, u32::try_from(line).unwrap_or(u32::MAX)))
    }

    /// Returns each problem as a remark.
    pub fn remarks(&self) -> Vec<LaneRemark> {
        let remark = |path: &String, problem| LaneRemark { path: path.clone(), lane: None, problem };
        let all =
            self.files.iter().map(|(path, problems)| problems.sorted().into_iter().map(move |one| remark(path, one)));
        all.flatten().collect()
    }
}

/// A remark about a file of lanes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaneRemark {
    /// The file, as the caller named it.
    pub path: String,
    /// The lane that the remark concerns; `None` if it concerns several lanes.
    pub lane: Option<String>,
    /// The problem or the warning, with its place and a remedy.
    pub problem: Problem,
}

impl fmt::Display for LaneRemark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&Problems::from(self.problem.clone()).within(&self.path))
    }
}

/// The lanes and tasks of a project. An error in a file, lane or task is a problem only for the
/// lanes that need it.
///
/// An unreadable file may define any name. Therefore it is a problem for names that are not found,
/// and for names that only later files define.
#[derive(Debug, Clone, Default)]
pub struct LaneFiles {
    pub(super) lanes: BTreeMap<String, LaneDefinition>,
    /// Tasks for all lanes.
    pub(super) tasks: BTreeMap<String, SharedTask>,
    /// Files whose lanes and tasks are unknown, with the reason.
    broken: BTreeMap<String, Problems>,
    warnings: Vec<LaneRemark>,
    /// The texts of the files, for messages that show the line of a problem.
    texts: NamedTexts,
}

/// A lane with its file.
#[derive(Debug, Clone)]
pub(super) struct LaneDefinition {
    pub(super) path: String,
    /// The place of the lane's name, in a file with several lanes.
    place: Option<FilePlace>,
    /// The source from which the file was imported, as noted in the file.
    source: Option<String>,
    /// The lane as written, as far as it could be read.
    pub(super) draft: Option<LaneDraft>,
    /// The problems of the lane.
    pub(super) problems: Problems,
    /// True if an unreadable file, which takes precedence over this file, may define the lane.
    pub(super) is_doubtful: bool,
}

impl LaneDefinition {
    /// Creates an empty chapter of this file.
    fn empty(path: &str) -> Self {
        let (path, problems) = (path.to_owned(), Problems::default());
        Self { path, place: None, source: None, draft: None, problems, is_doubtful: false }
    }
}

/// A task for all lanes, with its file.
#[derive(Debug, Clone)]
pub(super) struct SharedTask {
    pub(super) path: String,
    pub(super) task: Result<LaneTask, Problems>,
    /// True if an unreadable file, which takes precedence over this file, may define the task.
    pub(super) is_doubtful: bool,
}

impl LaneFiles {
    /// Adds the YAML file of a lane. It replaces an earlier lane of the same name.
    pub fn add_lane(&mut self, name: &str, path: &str, text: &str) {
        self.texts.keep(path, text, false);
        let (draft, problems, warnings) = file::draft(text);
        self.warnings.retain(|warning| warning.lane.as_deref() != Some(name));
        self.warn(path, Some(name), &warnings);
        let chapter = LaneDefinition { draft, problems, ..LaneDefinition::empty(path) };
        self.lanes.insert(name.to_owned(), chapter);
    }

    /// Adds a lane whose file cannot be read, with the reason. This is a problem for lanes that
    /// need it.
    pub fn add_unreadable(&mut self, name: &str, path: &str, why: Problem) {
        self.lanes.insert(name.to_owned(), LaneDefinition { problems: why.into(), ..LaneDefinition::empty(path) });
    }

    /// Adds an unreadable file or folder that may define lanes or tasks. The order of calls
    /// matters: the file may define any name added later.
    pub fn add_broken(&mut self, path: &str, why: Problem) {
        self.broken.insert(path.to_owned(), why.into());
    }

    /// Adds a warning about a file that looks like a lane file but is not read as one.
    pub fn add_stray(&mut self, path: &str, why: &str, hint: &str) {
        let problem = Problem::of_file(why).hint(hint);
        self.warnings.push(LaneRemark { path: path.to_owned(), lane: None, problem });
    }

    /// Adds the `tasks:` of a YAML file that has other content too.
    pub fn add_tasks(&mut self, path: &str, text: &str) {
        self.texts.keep(path, text, true);
        match file::tasks(text) {
            Ok((tasks, warnings)) => {
                self.warn(path, None, &warnings);
                let shared = |task| SharedTask { path: path.to_owned(), task: Ok(task), is_doubtful: false };
                self.tasks.extend(tasks.into_iter().map(|(name, task)| (name, shared(task))));
            }
            Err(problems) => drop(self.broken.insert(path.to_owned(), problems)),
        }
    }

    /// Adds a `fledge.toml`, after the YAML files. Existing lanes and tasks are kept, with a
    /// warning.
    pub fn add_toml(&mut self, path: &str, text: &str) {
        self.fill(path, text, true);
    }

    /// Adds an imported file of the same form. Existing lanes and tasks are kept, without a
    /// warning.
    pub fn add_imported(&mut self, path: &str, text: &str) {
        self.fill(path, text, false);
    }

    fn fill(&mut self, path: &str, text: &str, says_so: bool) {
        self.texts.keep(path, text, false);
        let TomlPage { tasks, lanes, warnings } = match toml::read(text) {
            Ok(page) => page,
            Err(problems) => return drop(self.broken.insert(path.to_owned(), problems)),
        };
        let (mut about, is_doubtful) = (warnings, !self.broken.is_empty());
        let source = if says_so { None } else { source_in(text) };
        for (name, read) in tasks {
            if let Some(first) = self.tasks.get(&name) {
                about.merge(&overlap(says_so, "task", &name, read.place, &first.path));
                continue;
            }
            about.merge(&read.warnings);
            let task = read.what.filter(|_| read.problems.is_empty()).ok_or(read.problems);
            self.tasks.insert(name, SharedTask { path: path.to_owned(), task, is_doubtful });
        }
        self.warn(path, None, &about);
        for (name, read) in lanes {
            if let Some(first) = self.lanes.get(&name) {
                let overlap = overlap(says_so, "lane", &name, read.place, &first.path);
                self.warn(path, Some(&name), &overlap);
                continue;
            }
            self.warn(path, Some(&name), &read.warnings);
            let (draft, problems, place, source) = (read.what, read.problems, Some(read.place), source.clone());
            self.lanes.insert(
                name,
                LaneDefinition { place, source, draft, problems, is_doubtful, ..LaneDefinition::empty(path) },
            );
        }
    }

    fn warn(&mut self, path: &str, lane: Option<&str>, problems: &Problems) {
        let warning = |problem| LaneRemark { path: path.to_owned(), lane: lane.map(ToOwned::to_owned), problem };
        self.warnings.extend(problems.sorted().into_iter().map(warning));
    }

    /// Returns the names of the lanes, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.lanes.keys().map(String::as_str)
    }

    /// Returns true if a lane of this name exists, or may exist because a file could not be read.
    pub fn has(&self, name: &str) -> bool {
        self.lanes.contains_key(name) || !self.broken.is_empty()
    }

    /// Returns the file of a lane.
    pub fn path_of(&self, lane: &str) -> Option<&str> {
        self.lanes.get(lane).map(|chapter| chapter.path.as_str())
    }

    /// Returns the source from which a lane was imported, if its file names one.
    pub fn source_of(&self, lane: &str) -> Option<&str> {
        self.lanes.get(lane).and_then(|chapter| chapter.source.as_deref())
    }

    /// Compiles a lane, with its tasks and included lanes inserted. The name must exist.
    ///
    /// # Errors
    ///
    /// Every problem of every file that the lane needs.
    pub fn lane(&self, name: &str) -> Result<Lane, LaneError> {
        compile(self, name).map_err(|fault| self.texts.in_fault(fault))
    }

    /// Returns true if every file could be read far enough to know its lanes and tasks.
    pub fn is_whole(&self) -> bool {
        self.broken.is_empty()
    }

    /// Returns the problems of the other files.
    pub(super) fn doubts(&self) -> LaneError {
        self.texts.in_fault(LaneError { files: self.broken.clone() })
    }

    /// Returns all valid lanes, and the problems of the other lanes and of unreadable files.
    pub fn all(&self) -> (Vec<Lane>, LaneError) {
        let (mut lanes, mut fault) = (Vec::new(), self.doubts());
        for name in self.lanes.keys() {
            self.lane(name).map_or_else(|other| fault.merge(&other), |lane| lanes.push(lane));
        }
        (lanes, fault)
    }

    /// Returns warnings about the files as a whole: content without effect, and files that look
    /// like lanes but are not.
    pub fn general_warnings(&self) -> impl Iterator<Item = &LaneRemark> {
        self.warnings.iter().filter(|warning| warning.lane.is_none())
    }

    /// Returns warnings about a lane, its file and its included lanes, and problems of unreadable
    /// files.
    pub fn warnings_of(&self, lane: &str) -> Vec<LaneRemark> {
        let path = self.path_of(lane);
        let is_about = |warning: &&LaneRemark| match &warning.lane {
            Some(name) => name == lane,
            None => Some(warning.path.as_str()) == path,
        };
        let own = self.warnings.iter().filter(is_about).cloned();
        let broken = self.doubts().remarks();
        let all = broken.into_iter().chain(own).chain(inclusion::without_effect(self, lane));
        all.map(|remark| self.texts.in_remark(remark)).collect()
    }

    /// Returns all valid lanes, all problems, including those of tasks that no lane uses, and all
    /// warnings.
    pub fn check(&self) -> (Vec<Lane>, Vec<LaneRemark>, Vec<LaneRemark>) {
        let ((lanes, mut fault), mut warnings) = (self.all(), self.warnings.clone());
        if let Err(other) = self.all_tasks() {
            fault.merge(&self.texts.in_fault(other));
        }
        for (name, chapter) in &self.lanes {
            if let (Some(place), Some(LaneDraft { description, .. })) = (chapter.place, &chapter.draft)
                && description.is_empty()
            {
                let problem = Problem::at(place, format!("lane `{name}` has no description"));
                let problem = problem.hint("say with `description` what it is for");
                warnings.push(LaneRemark { path: chapter.path.clone(), lane: Some(name.clone()), problem });
            }
        }
        warnings.extend(self.lanes.keys().flat_map(|lane| inclusion::in_one(self, lane)));
        warnings.sort_by(|a, b| (&a.path, a.problem.place).cmp(&(&b.path, b.problem.place)));
        let warnings = warnings.into_iter().map(|remark| self.texts.in_remark(remark)).collect();
        (lanes, fault.remarks(), warnings)
    }

    /// Compiles a lane of all tasks, to check that they can run.
    fn all_tasks(&self) -> Result<(), LaneError> {
        if self.tasks.is_empty() {
            return Ok(());
        }
        let place = FilePlace { line: 1, column: 1 };
        let item = |name: &String| StepItem {
            place,
            name: None,
            kind: StepKind::Task(NamedSpan { name: name.clone(), place }),
            needs: None,
            options: CommandOptions::default(),
        };
        let draft =
            LaneDraft { form: LaneForm::Toml, items: self.tasks.keys().map(item).collect(), ..LaneDraft::default() };
        let mut lane_files = self.clone();
        lane_files.lanes.insert(String::new(), LaneDefinition { draft: Some(draft), ..LaneDefinition::empty("") });
        compile(&lane_files, "").map(drop)
    }
}

/// Returns the source of an imported file. The import writes it on a separate line.
fn source_in(text: &str) -> Option<String> {
    let source = text.lines().find_map(|line| line.strip_prefix("# Imported from "))?.trim();
    (!source.is_empty()).then(|| source.to_owned())
}

/// Warns that two files define the same name, and states which definition applies.
fn overlap(says_so: bool, what: &str, name: &str, place: FilePlace, first: &str) -> Problems {
    if !says_so {
        return Problems::default();
    }
    let message = format!("{what} `{name}` is also in {first}, and that one is used");
    Problem::at(place, message).hint("remove one of them").into()
}
