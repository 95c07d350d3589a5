//! All that a project says about lanes: its files as they were read, and the lanes that are made of them.

use super::compile::compile;
use super::draft::{Draft, Form, Item, Kind, Named, Options, Task};
use super::texts::Texts;
use super::toml::{self, Page};
use super::{Lane, file, inclusion};
use crate::yaml::{Place, Problem, Problems};
use std::collections::BTreeMap;
use std::fmt;

/// Everything that is wrong with a lane; shown with one problem a line, each with its file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LaneFault {
    /// What is wrong, by the file as it was named by the caller.
    pub files: BTreeMap<String, Problems>,
}

impl fmt::Display for LaneFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let files: Vec<String> = self.files.iter().map(|(path, problems)| problems.within(path).to_string()).collect();
        f.write_str(&files.join("\n"))
    }
}

impl std::error::Error for LaneFault {}

impl LaneFault {
    pub(super) fn merge(&mut self, other: &Self) {
        other.files.iter().for_each(|(path, problems)| self.files.entry(path.clone()).or_default().merge(problems));
    }

    /// The same, of files that are called something else.
    #[must_use]
    pub fn renamed(self, name: impl Fn(&str) -> String) -> Self {
        Self { files: self.files.into_iter().map(|(path, problems)| (name(&path), problems)).collect() }
    }

    /// The first file, and the line in it of what is wrong first; the first line where that is about the whole file.
    pub fn place(&self) -> Option<(&str, u32)> {
        let (path, problems) = self.files.first_key_value()?;
        let line = problems.sorted().first().and_then(|problem| problem.place).map_or(1, |place| place.line);
        Some((path, u32::try_from(line).unwrap_or(u32::MAX)))
    }

    /// Each of them by itself.
    pub fn remarks(&self) -> Vec<Remark> {
        let remark = |path: &String, problem| Remark { path: path.clone(), lane: None, problem };
        let all =
            self.files.iter().map(|(path, problems)| problems.sorted().into_iter().map(move |one| remark(path, one)));
        all.flatten().collect()
    }
}

/// Something about a file of lanes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remark {
    /// The file as it was named by the caller.
    pub path: String,
    /// The lane that it is about; of several when absent.
    pub lane: Option<String>,
    /// What is wrong or strange, where, and what to do about it.
    pub problem: Problem,
}

impl fmt::Display for Remark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&Problems::from(self.problem.clone()).within(&self.path))
    }
}

/// A project's lanes and tasks. A file, lane or task that is wrong is only a problem for the lanes that need it. One that hides
/// which there are is a problem for what it may define: names that are not found, and those that only later files have.
#[derive(Debug, Clone, Default)]
pub struct Book {
    pub(super) lanes: BTreeMap<String, Chapter>,
    /// Tasks for all lanes.
    pub(super) tasks: BTreeMap<String, Shared>,
    /// Files that do not say which lanes and tasks there are, and why.
    broken: BTreeMap<String, Problems>,
    warnings: Vec<Remark>,
    /// The texts of its files, to show the lines in which something is wrong.
    texts: Texts,
}

/// A lane, and the file that it stands in.
#[derive(Debug, Clone)]
pub(super) struct Chapter {
    pub(super) path: String,
    /// Where its name stands, in a file with several.
    place: Option<Place>,
    /// Where that file was brought in from, as it says itself.
    source: Option<String>,
    /// What is written, as far as it could be read.
    pub(super) draft: Option<Draft>,
    /// What is wrong with it.
    pub(super) problems: Problems,
    /// Whether a broken file that counts before its own may define it.
    pub(super) is_doubtful: bool,
}

impl Chapter {
    /// Nothing yet, of this file.
    fn of(path: &str) -> Self {
        let (path, problems) = (path.to_owned(), Problems::default());
        Self { path, place: None, source: None, draft: None, problems, is_doubtful: false }
    }
}

/// A task for all lanes, and the file that it stands in.
#[derive(Debug, Clone)]
pub(super) struct Shared {
    pub(super) path: String,
    pub(super) task: Result<Task, Problems>,
    /// Whether a broken file that counts before its own may define it.
    pub(super) is_doubtful: bool,
}

impl Book {
    /// Adds the YAML file of a lane. A later one of the same name takes its place.
    pub fn add_lane(&mut self, name: &str, path: &str, text: &str) {
        self.texts.keep(path, text, false);
        let (draft, problems, warnings) = file::draft(text);
        self.warnings.retain(|warning| warning.lane.as_deref() != Some(name));
        self.warn(path, Some(name), &warnings);
        let chapter = Chapter { draft, problems, ..Chapter::of(path) };
        self.lanes.insert(name.to_owned(), chapter);
    }

    /// Adds a lane whose file cannot be read, and why: a problem for those that need it.
    pub fn add_unreadable(&mut self, name: &str, path: &str, why: Problem) {
        self.lanes.insert(name.to_owned(), Chapter { problems: why.into(), ..Chapter::of(path) });
    }

    /// Adds a file or folder of several lanes or tasks that cannot be read, and why. In its turn: what is added later, it may define.
    pub fn add_broken(&mut self, path: &str, why: Problem) {
        self.broken.insert(path.to_owned(), why.into());
    }

    /// Adds that something which looks like a file of lanes is not read as one.
    pub fn add_stray(&mut self, path: &str, why: &str, hint: &str) {
        let problem = Problem::of_file(why).hint(hint);
        self.warnings.push(Remark { path: path.to_owned(), lane: None, problem });
    }

    /// Adds the `tasks:` of a YAML file that has other things too.
    pub fn add_tasks(&mut self, path: &str, text: &str) {
        self.texts.keep(path, text, true);
        match file::tasks(text) {
            Ok((tasks, warnings)) => {
                self.warn(path, None, &warnings);
                let shared = |task| Shared { path: path.to_owned(), task: Ok(task), is_doubtful: false };
                self.tasks.extend(tasks.into_iter().map(|(name, task)| (name, shared(task))));
            }
            Err(problems) => drop(self.broken.insert(path.to_owned(), problems)),
        }
    }

    /// Adds a `fledge.toml`, after the YAML files: lanes and tasks that are there already stay, with a warning.
    pub fn add_toml(&mut self, path: &str, text: &str) {
        self.fill(path, text, true);
    }

    /// Adds a file of the same form that was brought in from elsewhere: what is there already stays.
    pub fn add_imported(&mut self, path: &str, text: &str) {
        self.fill(path, text, false);
    }

    fn fill(&mut self, path: &str, text: &str, says_so: bool) {
        self.texts.keep(path, text, false);
        let Page { tasks, lanes, warnings } = match toml::read(text) {
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
            self.tasks.insert(name, Shared { path: path.to_owned(), task, is_doubtful });
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
            self.lanes.insert(name, Chapter { place, source, draft, problems, is_doubtful, ..Chapter::of(path) });
        }
    }

    fn warn(&mut self, path: &str, lane: Option<&str>, problems: &Problems) {
        let warning = |problem| Remark { path: path.to_owned(), lane: lane.map(ToOwned::to_owned), problem };
        self.warnings.extend(problems.sorted().into_iter().map(warning));
    }

    /// The names of the lanes, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.lanes.keys().map(String::as_str)
    }

    /// Whether there is a lane of this name, or may be: a file could not be read at all.
    pub fn has(&self, name: &str) -> bool {
        self.lanes.contains_key(name) || !self.broken.is_empty()
    }

    /// The file that a lane stands in.
    pub fn path_of(&self, lane: &str) -> Option<&str> {
        self.lanes.get(lane).map(|chapter| chapter.path.as_str())
    }

    /// Where a lane was brought in from, if its file says so.
    pub fn source_of(&self, lane: &str) -> Option<&str> {
        self.lanes.get(lane).and_then(|chapter| chapter.source.as_deref())
    }

    /// Makes a lane of what is written, with tasks and included lanes in their place. Not for a name that is not there.
    ///
    /// # Errors
    /// Every problem of every file that the lane needs.
    pub fn lane(&self, name: &str) -> Result<Lane, LaneFault> {
        compile(self, name).map_err(|fault| self.texts.in_fault(fault))
    }

    /// Whether every file says which lanes and tasks there are.
    pub fn is_whole(&self) -> bool {
        self.broken.is_empty()
    }

    /// What is wrong with those that do not.
    pub(super) fn doubts(&self) -> LaneFault {
        self.texts.in_fault(LaneFault { files: self.broken.clone() })
    }

    /// All lanes that are right; what is wrong with the others, and with files that do not say which there are.
    pub fn all(&self) -> (Vec<Lane>, LaneFault) {
        let (mut lanes, mut fault) = (Vec::new(), self.doubts());
        for name in self.lanes.keys() {
            self.lane(name).map_or_else(|other| fault.merge(&other), |lane| lanes.push(lane));
        }
        (lanes, fault)
    }

    /// What is strange about the files as a whole: of what is written there in vain, and of what is no lane although it looks like one.
    pub fn general_warnings(&self) -> impl Iterator<Item = &Remark> {
        self.warnings.iter().filter(|warning| warning.lane.is_none())
    }

    /// What is strange about a lane, about the file that it stands in, and about how it includes others; and which files do not say
    /// what there is.
    pub fn warnings_of(&self, lane: &str) -> Vec<Remark> {
        let path = self.path_of(lane);
        let is_about = |warning: &&Remark| match &warning.lane {
            Some(name) => name == lane,
            None => Some(warning.path.as_str()) == path,
        };
        let own = self.warnings.iter().filter(is_about).cloned();
        let broken = self.doubts().remarks();
        let all = broken.into_iter().chain(own).chain(inclusion::without_effect(self, lane));
        all.map(|remark| self.texts.in_remark(remark)).collect()
    }

    /// All lanes that are right; everything that is wrong, also with tasks that no lane has; everything that is strange.
    pub fn check(&self) -> (Vec<Lane>, Vec<Remark>, Vec<Remark>) {
        let ((lanes, mut fault), mut warnings) = (self.all(), self.warnings.clone());
        if let Err(other) = self.all_tasks() {
            fault.merge(&self.texts.in_fault(other));
        }
        for (name, chapter) in &self.lanes {
            if let (Some(place), Some(Draft { description, .. })) = (chapter.place, &chapter.draft)
                && description.is_empty()
            {
                let problem = Problem::at(place, format!("lane `{name}` has no description"));
                let problem = problem.hint("say with `description` what it is for");
                warnings.push(Remark { path: chapter.path.clone(), lane: Some(name.clone()), problem });
            }
        }
        warnings.extend(self.lanes.keys().flat_map(|lane| inclusion::in_one(self, lane)));
        warnings.sort_by(|a, b| (&a.path, a.problem.place).cmp(&(&b.path, b.problem.place)));
        let warnings = warnings.into_iter().map(|remark| self.texts.in_remark(remark)).collect();
        (lanes, fault.remarks(), warnings)
    }

    /// A lane of every task, to see whether they can be run.
    fn all_tasks(&self) -> Result<(), LaneFault> {
        if self.tasks.is_empty() {
            return Ok(());
        }
        let place = Place { line: 1, column: 1 };
        let item = |name: &String| Item {
            place,
            name: None,
            kind: Kind::Task(Named { name: name.clone(), place }),
            needs: None,
            options: Options::default(),
        };
        let draft = Draft { form: Form::Toml, items: self.tasks.keys().map(item).collect(), ..Draft::default() };
        let mut book = self.clone();
        book.lanes.insert(String::new(), Chapter { draft: Some(draft), ..Chapter::of("") });
        compile(&book, "").map(drop)
    }
}

/// What a file says of where it was brought in from: who brings one in writes it on a line of its own.
fn source_in(text: &str) -> Option<String> {
    let source = text.lines().find_map(|line| line.strip_prefix("# Imported from "))?.trim();
    (!source.is_empty()).then(|| source.to_owned())
}

/// That something is in two files, and which of them counts.
fn overlap(says_so: bool, what: &str, name: &str, place: Place, first: &str) -> Problems {
    if !says_so {
        return Problems::default();
    }
    let message = format!("{what} `{name}` is also in {first}, and that one is used");
    Problem::at(place, message).hint("remove one of them").into()
}
