//! Names of tasks and jobs: short, unique, and of characters that are safe in branches and files.

use super::matrix::Combination;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Characters of a value in a name.
const LONGEST_VALUE: usize = 24;
/// Characters of a name without its number.
const LONGEST: usize = 80;

/// Returns the names of tasks: the name of each file, with parent folders where several names are
/// equal.
pub(super) fn of_tasks(sources: &[&str]) -> Vec<String> {
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
pub(super) fn of_job(
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
pub fn of_folders(paths: &[&Path]) -> Vec<String> {
    let mut taken = BTreeSet::new();
    let name = |path: &&Path| slug(&path.file_name().unwrap_or_default().to_string_lossy());
    paths.iter().map(|path| free(name(path), &mut taken)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_are_named_by_their_files_and_by_folders_where_these_are_the_same() {
        let names = of_tasks(&["tasks/Fix Bug.md", "a/x/todo.md", "b/x/todo.md", "other.md", "other.md", "./.md"]);
        assert_eq!(names, ["fix-bug", "a-x-todo", "b-x-todo", "other", "other-2", "md"]);
    }

    #[test]
    fn a_job_is_named_by_its_values_and_its_repository() {
        let values = vec![("v".to_owned(), "1.2 beta/3".to_owned()), ("empty".to_owned(), "…".to_owned())];
        let mut taken = BTreeSet::new();
        let mut name = || of_job("bump", &values, Some(&"service".to_owned()), &mut taken);
        assert_eq!([name(), name()], ["bump-1.2-beta-3@service", "bump-1.2-beta-3@service-2"]);
    }
}
