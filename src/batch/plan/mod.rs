//! Plan of a batch, made before anything runs: every job with its name and its needs. It reports
//! all problems of all tasks at once. Pure.

mod file;
mod jobs;
mod matrix;
mod needs;
#[cfg(feature = "cli")]
mod schema;

pub use file::{BatchFile, MOST_AT_ONCE, MOST_RETRIES, RepositoryEntry, parse, place_of_model};
pub use jobs::{name_folders, repeat_jobs, slots};
pub use matrix::Matrix;
#[cfg(feature = "cli")]
pub(crate) use schema::schema;

use crate::task::{Candidates, Isolation, ParamValues, Task, TaskError};
use crate::yaml::{Problem, Problems, listed};
use matrix::{Dimension, REPOSITORY, TASK, combinations, value_of};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

/// The maximum number of jobs of one batch.
const MOST_JOBS: usize = 10_000;

/// The text of a task, shared by its jobs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskText {
    /// The name of its source, for messages.
    pub source: String,
    /// The text.
    pub text: Arc<str>,
}

/// The input of a plan.
#[derive(Debug, Clone, Default)]
pub struct PlanRequest {
    /// The tasks.
    pub tasks: Vec<TaskText>,
    /// Values for the parameters of the tasks.
    pub matrix: Matrix,
    /// The file that contains the matrix.
    pub file: String,
    /// The text of that file.
    pub text: Arc<str>,
    /// The names of the repositories; empty if there is only one, without a name.
    pub repositories: Vec<String>,
    /// Parameter values for all tasks. They override the matrix.
    pub params: ParamValues,
}

/// A job of the plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BatchJob {
    /// The unique name of the job.
    pub name: String,
    /// The title of its task.
    pub title: String,
    /// The index of its task.
    pub task: usize,
    /// The index of its repository.
    pub repository: usize,
    /// The values of its task's parameters.
    pub params: ParamValues,
    /// The indices of the jobs that must be verified first.
    pub needs: Vec<usize>,
    /// The money limit of the job, in millionths of a US dollar.
    pub usd_micros: Option<u64>,
    /// The place where its agent works.
    pub isolation: Isolation,
    /// The racing candidates that its task asks for.
    pub candidates: Option<Candidates>,
    /// For a candidate or repetition, the name of the original job; else its own name.
    pub of: String,
    /// For a candidate, the index of the first candidate of its race.
    pub race: Option<usize>,
    /// The models of this candidate or repetition; if empty, those of the task.
    pub models: Vec<String>,
}

/// All problems of a plan. They are shown one per line, each with its file and place.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PlanErrors {
    /// The problems of each file.
    pub files: Vec<TaskError>,
    /// Problems of the plan as a whole.
    pub whole: Vec<String>,
}

impl PlanErrors {
    /// Adds a problem of a file with this text.
    fn say(&mut self, file: &str, text: &str, problem: Problem) {
        self.merge(&TaskError { file: file.to_owned(), problems: Problems::from(problem).seen_in(text) });
    }

    /// Merges the problems of a file. The same problem in several jobs is listed once.
    fn merge(&mut self, fault: &TaskError) {
        match self.files.iter_mut().find(|known| known.file == fault.file) {
            Some(known) => known.problems.merge(&fault.problems),
            None => self.files.push(fault.clone()),
        }
    }

    fn is_empty(&self) -> bool {
        self.files.is_empty() && self.whole.is_empty()
    }
}

impl fmt::Display for PlanErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let files = self.files.iter().map(TaskError::to_string);
        f.write_str(&files.chain(self.whole.iter().cloned()).collect::<Vec<_>>().join("\n"))
    }
}

impl std::error::Error for PlanErrors {}

/// Plans a batch. `read` parses a task's text with parameter values, for the repository with the
/// given index.
///
/// # Errors
/// [`PlanErrors`] with all problems.
pub fn plan(
    order: &PlanRequest,
    read: impl Fn(&TaskText, &ParamValues, usize) -> Result<Task, TaskError>,
) -> Result<Vec<BatchJob>, PlanErrors> {
    let mut faults = PlanErrors::default();
    let sources: Vec<&str> = order.tasks.iter().map(|task| task.source.as_str()).collect();
    let names = jobs::name_tasks(&sources);
    names_known(order, &names, &mut faults);
    let needs = needs::resolved(&order.tasks, &names, &mut faults);
    let mut outer: Vec<Dimension> = vec![(TASK.to_owned(), names.clone())];
    if !order.repositories.is_empty() {
        outer.push((REPOSITORY.to_owned(), order.repositories.clone()));
    }
    let combinations = combinations(&outer, &order.matrix);
    few_enough(combinations.len())?;
    let (mut jobs, mut taken) = (Vec::new(), BTreeSet::new());
    for mut combination in combinations {
        let place_of = |all: &[String], value: Option<&str>| all.iter().position(|own| Some(own.as_str()) == value);
        let Some(task) = place_of(&names, value_of(&combination, TASK)) else { continue };
        let repository = place_of(&order.repositories, value_of(&combination, REPOSITORY)).unwrap_or(0);
        combination.retain(|(name, _)| ![TASK, REPOSITORY].contains(&name.as_str()));
        let name = jobs::name_job(&names[task], &combination, order.repositories.get(repository), &mut taken);
        let mut params: ParamValues = combination.into_iter().collect();
        params.extend(order.params.clone());
        match read(&order.tasks[task], &params, repository) {
            Err(fault) => faults.merge(&fault),
            Ok(Task { title, budget, isolation, candidates, .. }) => {
                let (usd_micros, needs) = (budget.usd_micros, Vec::new());
                let (of, race, models) = (name.clone(), None, Vec::new());
                let job = BatchJob {
                    name,
                    title,
                    task,
                    repository,
                    params,
                    needs,
                    usd_micros,
                    isolation,
                    candidates,
                    of,
                    race,
                    models,
                };
                jobs.push(job);
            }
        }
    }
    if jobs.is_empty() && faults.is_empty() {
        faults.whole.push("nothing to run: every combination is excluded".to_owned());
    }
    if !faults.is_empty() {
        return Err(faults);
    }
    // A job needs the jobs of its needed tasks in its own repository.
    let needed = |job: &BatchJob| {
        let is_meant = |other: &BatchJob| needs[job.task].contains(&other.task) && other.repository == job.repository;
        (0..jobs.len()).filter(|other| is_meant(&jobs[*other])).collect::<Vec<_>>()
    };
    let needs: Vec<Vec<usize>> = jobs.iter().map(needed).collect();
    jobs.iter_mut().zip(needs).for_each(|(job, needs)| job.needs = needs);
    let jobs = jobs::expand_races(jobs);
    few_enough(jobs.len())?;
    Ok(jobs)
}

/// Checks the number of jobs against the limit of a batch.
///
/// # Errors
/// When there are too many jobs.
pub fn few_enough(jobs: usize) -> Result<(), PlanErrors> {
    let message = format!("too many jobs: {jobs}; a batch has at most {MOST_JOBS}");
    if jobs > MOST_JOBS { Err(PlanErrors { whole: vec![message], ..PlanErrors::default() }) } else { Ok(()) }
}

/// Returns the first two jobs that would change one checkout at the same time if `at_once` runs are
/// in parallel.
pub fn crowded(jobs: &[BatchJob], at_once: usize) -> Option<(&BatchJob, &BatchJob)> {
    let mut all = jobs.iter().filter(|job| job.isolation == Isolation::InPlace && at_once > 1);
    let mut known: BTreeMap<usize, &BatchJob> = BTreeMap::new();
    all.find_map(|job| Some((known.insert(job.repository, job)?, job)))
}

/// Checks that tasks and repositories named in the matrix exist.
fn names_known(order: &PlanRequest, names: &[String], faults: &mut PlanErrors) {
    let Matrix { include, exclude, .. } = &order.matrix;
    for entry in include.iter().chain(exclude) {
        for (dimension, all) in [(TASK, names), (REPOSITORY, order.repositories.as_slice())] {
            let Some(value) = value_of(&entry.values, dimension).filter(|value| !all.iter().any(|own| own == value))
            else {
                continue;
            };
            let all = || all.iter().map(String::as_str);
            let hint = if all().next().is_none() {
                format!("the batch has no {dimension}")
            } else {
                format!("known: {}", listed(all()))
            };
            let unknown = Problem::at(entry.place, format!("unknown {dimension} `{value}`"));
            faults.say(&order.file, &order.text, unknown.hint(hint).near(value, all()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::parse_with;

    fn order(batch: &str, tasks: &[(&str, &str)], repositories: &[&str]) -> PlanRequest {
        let file = parse(batch, "batch.yaml").unwrap();
        let text = |(source, text): &(&str, &str)| TaskText { source: (*source).to_owned(), text: (*text).into() };
        PlanRequest {
            tasks: tasks.iter().map(text).collect(),
            matrix: file.matrix,
            file: "batch.yaml".into(),
            text: batch.into(),
            repositories: repositories.iter().map(|name| (*name).to_owned()).collect(),
            params: ParamValues::new(),
        }
    }

    fn planned(order: &PlanRequest) -> Result<Vec<BatchJob>, String> {
        let read = |text: &TaskText, params: &ParamValues, _: usize| {
            parse_with(&text.text, &text.source, params, &crate::task::TaskDefaults::default())
        };
        plan(order, read).map_err(|faults| faults.to_string())
    }

    fn format_jobs(jobs: &[BatchJob]) -> Vec<String> {
        let one = |job: &BatchJob| {
            let params: Vec<String> = job.params.iter().map(|(name, value)| format!("{name}={value}")).collect();
            let needs: Vec<&str> = job.needs.iter().map(|need| jobs[*need].name.as_str()).collect();
            format!("{} {} [{}]", job.name, params.join(" "), needs.join(" "))
        };
        jobs.iter().map(one).collect()
    }

    const BUMP: &str = "---\nparams: { version: { required: true } }\n---\n# Bump to {{ version }}\n";

    #[test]
    fn tasks_values_and_repositories_make_jobs_whose_needs_stay_in_one_repository() {
        let batch = "tasks: x\nmatrix: { version: [1.2, '2'], exclude: [{ repository: lib, version: 1.2 }] }\n";
        let docs = "---\nneeds: [bump]\nparams: { version: {} }\n---\nWrite docs\n";
        let jobs =
            planned(&order(batch, &[("tasks/docs.md", docs), ("tasks/bump.md", BUMP)], &["svc", "lib"])).unwrap();
        assert_eq!(
            format_jobs(&jobs),
            [
                "docs-1.2@svc version=1.2 [bump-1.2@svc bump-2@svc]",
                "docs-2@svc version=2 [bump-1.2@svc bump-2@svc]",
                "docs-2@lib version=2 [bump-2@lib]",
                "bump-1.2@svc version=1.2 []",
                "bump-2@svc version=2 []",
                "bump-2@lib version=2 []",
            ]
        );
        assert_eq!(jobs[3].title, "Bump to 1.2");
    }

    #[test]
    fn everything_that_is_wrong_with_any_task_is_said_at_once() {
        let a = "---\nneeds: [bumb, a]\n---\nDo a\n";
        let b = "---\nneeds: [c]\nmax_retires: 1\n---\nDo b\n";
        let c = "---\nneeds:\n  - d\n---\nDo c\n";
        let d = "---\nneeds: [b]\n---\nDo d\n";
        let batch = "tasks: x\nmatrix: { include: [{ task: bmup, version: 1 }] }\n";
        let tasks = [("a.md", a), ("b.md", b), ("c.md", c), ("d.md", d), ("bump.md", BUMP)];
        let mut wrong = order(batch, &tasks, &[]);
        insta::assert_snapshot!(planned(&wrong).unwrap_err());
        wrong.matrix = Matrix::default();
        insta::assert_snapshot!(planned(&wrong).unwrap_err());
    }

    #[test]
    fn nothing_to_run_is_an_error() {
        let batch = "tasks: x\nmatrix: { exclude: [{ task: a }] }\n";
        assert_eq!(
            planned(&order(batch, &[("a.md", "Do a")], &[])).unwrap_err(),
            "nothing to run: every combination is excluded"
        );
    }

    #[test]
    fn two_jobs_in_one_checkout_at_once_are_found() {
        let tasks = [("a.md", "Do a"), ("b.md", "---\nisolation: worktree\n---\nDo b"), ("c.md", "Do c")];
        let jobs = planned(&order("tasks: x", &tasks, &[])).unwrap();
        let names =
            |found: Option<(&BatchJob, &BatchJob)>| found.map(|(one, other)| (one.name.clone(), other.name.clone()));
        assert_eq!(names(crowded(&jobs, 2)), Some(("a".into(), "c".into())));
        assert_eq!(names(crowded(&jobs, 1)), None);
        let apart = planned(&order("tasks: x", &tasks[..2], &["r", "s"])).unwrap();
        assert_eq!(names(crowded(&apart, 2)), None);
    }
}
