//! Jobs of a plan: their names, and their expansion into racing candidates, or into repetitions
//! with several models. Names are short, unique, and of characters that are safe in branches and
//! files. Pure.

use super::BatchJob;
use super::matrix::Combination;
use crate::batch::job_scheduler::JobSlot;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Characters of a value in a name.
const LONGEST_VALUE: usize = 24;
/// Characters of a name without its number.
const LONGEST: usize = 80;

/// Returns the names of tasks: the name of each file, with parent folders where several names are
/// equal.
pub(super) fn name_tasks(sources: &[&str]) -> Vec<String> {
    let parts = |source: &str| -> Vec<String> {
        let path = Path::new(source).with_extension("");
        let parts = path.components().map(|part| slug(&part.as_os_str().to_string_lossy()));
        parts.filter(|part| !part.is_empty()).collect()
    };
    let all: Vec<Vec<String>> = sources.iter().map(|source| parts(source)).collect();
    let tail = |parts: &[String], length: usize| parts[parts.len().saturating_sub(length)..].join("-");
    let mut names: Vec<String> = all.iter().map(|parts| tail(parts, 1)).collect();
    let deepest = all.iter().map(Vec::len).max().unwrap_or(1);
    for length in 2..=deepest {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        names.iter().for_each(|name| *counts.entry(name.clone()).or_default() += 1);
        for (name, parts) in names.iter_mut().zip(&all) {
            if counts.get(name).is_some_and(|count| *count > 1) {
                *name = tail(parts, length);
            }
        }
    }
    let mut taken = BTreeSet::new();
    names.into_iter().map(|name| free(name, &mut taken)).collect()
}

/// Returns the name of a job: its task, values and repository.
pub(super) fn name_job(
    task: &str,
    values: &Combination,
    repository: Option<&String>,
    taken: &mut BTreeSet<String>,
) -> String {
    let values = values.iter().map(|(_, value)| slug(&value.chars().take(LONGEST_VALUE).collect::<String>()));
    let mut name =
        [task.to_owned()].into_iter().chain(values.filter(|value| !value.is_empty())).collect::<Vec<_>>().join("-");
    if let Some(repository) = repository {
        name = format!("{name}@{repository}");
    }
    free(name, taken)
}

/// Returns an unused name, with a number appended if the name is taken.
pub(super) fn free(name: String, taken: &mut BTreeSet<String>) -> String {
    let name = if name.is_empty() { "task".to_owned() } else { name.chars().take(LONGEST).collect() };
    let numbered = (2_u64..).map(|number| format!("{name}-{number}"));
    let first = [name.clone()].into_iter().chain(numbered).find(|name| !taken.contains(name)).unwrap_or_default();
    taken.insert(first.clone());
    first
}

/// Reduces a text to lower-case letters, digits, `.`, `_` and `-`.
pub(super) fn slug(text: &str) -> String {
    let mut slug = String::new();
    for c in text.chars().flat_map(char::to_lowercase) {
        match c {
            c if c.is_alphanumeric() || matches!(c, '.' | '_') => slug.push(c),
            _ if slug.ends_with('-') => {}
            _ => slug.push('-'),
        }
    }
    slug.trim_matches(['-', '.']).to_owned()
}

/// Returns the names of repositories by their folders.
pub fn name_folders(paths: &[&Path]) -> Vec<String> {
    let mut taken = BTreeSet::new();
    let name = |path: &&Path| slug(&path.file_name().unwrap_or_default().to_string_lossy());
    paths.iter().map(|path| free(name(path), &mut taken)).collect()
}

/// Replaces each job that has candidates with one job per candidate. A job that needs a replaced
/// job needs one of its candidates.
pub(super) fn expand_races(jobs: Vec<BatchJob>) -> Vec<BatchJob> {
    let mut taken: BTreeSet<String> = jobs.iter().map(|job| job.name.clone()).collect();
    let (mut all, mut places) = (Vec::new(), Vec::new());
    for job in jobs {
        let first = all.len();
        match &job.candidates {
            None => all.push(job),
            Some(candidates) => {
                for (place, models) in candidates.each().into_iter().enumerate() {
                    let name = free(format!("{}.{}", job.name, place + 1), &mut taken);
                    all.push(BatchJob { name, models, race: Some(first), ..job.clone() });
                }
            }
        }
        places.push(first..all.len());
    }
    for job in &mut all {
        job.needs = job.needs.iter().filter_map(|need| places.get(*need)).flat_map(Clone::clone).collect();
    }
    all
}

/// Repeats each job `times` times with each model, or with its task's models. All jobs run once
/// before any is repeated, so an early end affects all of them equally.
pub fn repeat_jobs(jobs: &[BatchJob], models: &[String], times: u32) -> Vec<BatchJob> {
    let mut taken = BTreeSet::new();
    let models: Vec<Vec<String>> =
        if models.is_empty() { vec![Vec::new()] } else { models.iter().map(|model| vec![model.clone()]).collect() };
    let mut all = Vec::new();
    for time in 1..=times {
        for job in jobs {
            for models in &models {
                let parts = [job.name.clone()].into_iter().chain(models.iter().map(|model| slug(model)));
                let name = parts.chain([time.to_string()]).collect::<Vec<_>>().join(".");
                all.push(BatchJob { name: free(name, &mut taken), models: models.clone(), ..job.clone() });
            }
        }
    }
    all
}

/// Returns the slots of jobs for the scheduler. Of the candidates that a job needs, one is enough.
pub fn slots(jobs: &[BatchJob]) -> Vec<JobSlot> {
    let slot = |job: &BatchJob| {
        let mut groups: Vec<(usize, Vec<usize>)> = Vec::new();
        for need in &job.needs {
            let race = jobs.get(*need).and_then(|job| job.race).unwrap_or(*need);
            match groups.iter_mut().find(|(known, _)| *known == race) {
                Some((_, group)) => group.push(*need),
                None => groups.push((race, vec![*need])),
            }
        }
        let needs = groups.into_iter().map(|(_, group)| group).collect();
        let (name, title, usd_micros) = (job.name.clone(), job.title.clone(), job.usd_micros);
        JobSlot { name, title, needs, race: job.race, usd_micros }
    };
    jobs.iter().map(slot).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::{Candidates, Isolation, ParamValues};

    fn job(name: &str, needs: &[usize], candidates: Option<Candidates>) -> BatchJob {
        BatchJob {
            name: name.into(),
            title: name.into(),
            task: 0,
            repository: 0,
            params: ParamValues::new(),
            needs: needs.to_vec(),
            usd_micros: None,
            isolation: Isolation::Worktree,
            candidates,
            of: name.into(),
            race: None,
            models: Vec::new(),
        }
    }

    #[test]
    fn who_needs_a_task_with_candidates_needs_one_of_them() {
        let models = Candidates::Models(vec!["claude".into(), "gpt".into()]);
        let jobs = expand_races(vec![
            job("z", &[1, 2], None),
            job("a", &[], Some(models)),
            job("b", &[], Some(Candidates::Count(3))),
        ]);
        let names: Vec<&str> = jobs.iter().map(|job| job.name.as_str()).collect();
        assert_eq!(names, ["z", "a.1", "a.2", "b.1", "b.2", "b.3"]);
        assert_eq!(jobs[2].models, ["gpt"]);
        let slots = slots(&jobs);
        assert_eq!(slots[0].needs, [vec![1, 2], vec![3, 4, 5]]);
        let races: Vec<Option<usize>> = slots.iter().map(|slot| slot.race).collect();
        assert_eq!(races, [None, Some(1), Some(1), Some(3), Some(3), Some(3)]);
    }

    #[test]
    fn everything_is_done_once_before_anything_is_done_twice() {
        let jobs = repeat_jobs(&[job("a", &[], None), job("b", &[], None)], &["x/one".into(), "two".into()], 2);
        let names: Vec<&str> = jobs.iter().map(|job| job.name.as_str()).collect();
        assert_eq!(
            names,
            ["a.x-one.1", "a.two.1", "b.x-one.1", "b.two.1", "a.x-one.2", "a.two.2", "b.x-one.2", "b.two.2"]
        );
        assert!(jobs.iter().all(|job| job.of == "a" || job.of == "b"));
    }

    #[test]
    fn tasks_are_named_by_their_files_and_by_folders_where_these_are_the_same() {
        let names = name_tasks(&["tasks/Fix Bug.md", "a/x/todo.md", "b/x/todo.md", "other.md", "other.md", "./.md"]);
        assert_eq!(names, ["fix-bug", "a-x-todo", "b-x-todo", "other", "other-2", "md"]);
    }

    #[test]
    fn a_job_is_named_by_its_values_and_its_repository() {
        let values = vec![("v".to_owned(), "1.2 beta/3".to_owned()), ("empty".to_owned(), "…".to_owned())];
        let mut taken = BTreeSet::new();
        let mut name = || name_job("bump", &values, Some(&"service".to_owned()), &mut taken);
        assert_eq!([name(), name()], ["bump-1.2-beta-3@service", "bump-1.2-beta-3@service-2"]);
    }
}
