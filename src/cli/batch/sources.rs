//! The task files that a command line or a batch file names. Reads the files of folders and globs,
//! each file once.

use super::super::failure::CliError;
use super::super::tasks::must_be_task;
use crate::batch::plan::TaskText;
use crate::limits::MAX_SOURCE;
use crate::store;
use globset::{GlobBuilder, GlobMatcher};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The maximum number of task files of a batch.
const MOST_FILES: usize = 10_000;
/// The deepest level of folders that `**` searches.
const DEEPEST: usize = 32;
/// A file in a folder of tasks that is not a task.
const README: &str = "README.md";

/// Returns true if an argument is not a single task file: a folder, a batch file or a glob.
pub(super) fn is_many(argument: &str) -> bool {
    let path = Path::new(argument);
    path.is_dir() || is_batch_file(argument) || (has_wildcard(argument) && !path.exists())
}

/// Returns true if a name is that of a batch file.
pub(super) fn is_batch_file(argument: &str) -> bool {
    Path::new(argument)
        .extension()
        .is_some_and(|ending| ["yaml", "yml"].iter().any(|yaml| ending.eq_ignore_ascii_case(yaml)))
}

fn has_wildcard(text: &str) -> bool {
    text.contains(['*', '?', '[', '{'])
}

/// Returns the files that a pattern names, sorted: one file, the `*.md` of a folder, or the matches
/// of a glob. The pattern is relative to `below`.
///
/// # Errors
/// The fault, as a clause that follows the pattern's place.
pub(super) fn files(pattern: &str, below: &Path) -> Result<Vec<PathBuf>, String> {
    let path = below.join(pattern);
    if path.is_dir() {
        let found = listed(&path)?.into_iter().filter(|path| {
            path.extension().is_some_and(|ending| ending == "md")
                && path.file_name().is_some_and(|name| name != README && !name.to_string_lossy().starts_with('.'))
        });
        let found: Vec<PathBuf> = found.filter(|path| path.is_file()).collect();
        return if found.is_empty() { Err(format!("there is no `*.md` in the folder {pattern}")) } else { Ok(found) };
    }
    if path.exists() || !has_wildcard(pattern) {
        return if path.is_file() { Ok(vec![path]) } else { Err(format!("there is no task file {pattern}")) };
    }
    let glob = GlobBuilder::new(pattern).literal_separator(true).build();
    let glob = glob.map_err(|error| format!("invalid glob `{pattern}`: {}", error.kind()))?.compile_matcher();
    // The components before the first wildcard name a folder.
    let fixed: PathBuf =
        Path::new(pattern).components().take_while(|part| !has_wildcard(&part.as_os_str().to_string_lossy())).collect();
    let mut found = Vec::new();
    walk(&below.join(&fixed), &fixed, &glob, 0, &mut found)?;
    found.sort();
    if found.is_empty() { Err(format!("no file matches `{pattern}`")) } else { Ok(found) }
}

/// Collects the files below a folder that match the glob. Skips linked folders, and names that
/// begin with a dot.
fn walk(folder: &Path, name: &Path, glob: &GlobMatcher, depth: usize, found: &mut Vec<PathBuf>) -> Result<(), String> {
    if depth > DEEPEST || !folder.is_dir() {
        return Ok(());
    }
    for path in listed(folder)? {
        let Some(own) = path.file_name().filter(|own| !own.to_string_lossy().starts_with('.')) else { continue };
        let name = name.join(own);
        if path.is_dir() {
            if !path.is_symlink() {
                walk(&path, &name, glob, depth + 1, found)?;
            }
        } else if glob.is_match(&name) {
            found.push(path);
            if found.len() > MOST_FILES {
                return Err(format!("more than {MOST_FILES} files match"));
            }
        }
    }
    Ok(())
}

fn listed(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let unread = |error: std::io::Error| format!("cannot read the folder {}: {error}", folder.display());
    let entries = std::fs::read_dir(folder).map_err(unread)?;
    let mut paths =
        entries.map(|entry| entry.map(|entry| entry.path())).collect::<Result<Vec<_>, _>>().map_err(unread)?;
    paths.sort();
    Ok(paths)
}

/// Reads the texts of files, each file once.
///
/// # Errors
/// When a file is missing or cannot be read.
pub(super) fn texts(files: Vec<PathBuf>) -> Result<Vec<TaskText>, CliError> {
    let mut known = BTreeSet::new();
    let mut texts = Vec::new();
    for file in files {
        if !known.insert(file.canonicalize().unwrap_or_else(|_| file.clone())) {
            continue;
        }
        let source = file.strip_prefix(".").unwrap_or(&file).display().to_string();
        let text = store::read_text(&file, MAX_SOURCE).map_err(CliError::input)?;
        let text = text.ok_or_else(|| CliError::no_file("task file", Path::new(&source)))?;
        must_be_task(&file, &text)?;
        texts.push(TaskText { source, text: text.into() });
    }
    Ok(texts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_and_globs_mean_their_files_in_order() {
        let folder = crate::test_support::temp_dir();
        let below = folder.path();
        std::fs::create_dir_all(below.join("tasks/deep")).unwrap();
        for name in ["tasks/b.md", "tasks/a.md", "tasks/README.md", "tasks/note.txt", "tasks/deep/c.md", "tasks/.d.md"]
        {
            std::fs::write(below.join(name), "do it").unwrap();
        }
        let said = |pattern: &str| {
            let name = |path: &PathBuf| path.strip_prefix(below).unwrap_or(path).display().to_string();
            files(pattern, below).map(|all| all.iter().map(name).collect::<Vec<_>>().join(" "))
        };
        assert_eq!(said("tasks").unwrap(), "tasks/a.md tasks/b.md");
        assert_eq!(said("tasks/[ab].md").unwrap(), "tasks/a.md tasks/b.md");
        assert_eq!(said("tasks/**/*.md").unwrap(), "tasks/README.md tasks/a.md tasks/b.md tasks/deep/c.md");
        assert_eq!(said("tasks/a.md").unwrap(), "tasks/a.md");
        assert_eq!(said("tasks/x*.md").unwrap_err(), "no file matches `tasks/x*.md`");
        assert_eq!(said("none.md").unwrap_err(), "there is no task file none.md");
        assert_eq!(said("tasks/deep/..").unwrap(), "tasks/deep/../a.md tasks/deep/../b.md");
        assert!(said("tasks/{a").unwrap_err().starts_with("invalid glob `tasks/{a`"));
    }
}
