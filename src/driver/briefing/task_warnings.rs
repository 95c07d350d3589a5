//! Likely mistakes in a valid task. The run begins with a warning for each.

use crate::pattern::Patterns;
use crate::task::Task;
use crate::yaml::nearest;
use std::collections::BTreeSet;

/// The longest name in braces that counts as a parameter, in bytes.
const LONGEST: usize = 64;

/// Returns a warning for each pattern of `files` that fits none of these paths of the base. Also
/// warns of the first name in double braces that nothing fills in.
pub(super) fn task_warnings(task: &Task, paths: &[String]) -> Vec<String> {
    let unfilled = unfilled(&task.prompt).map(|name| {
        let shown = format!("{{{{ {name} }}}}");
        format!("{}`{shown}` is sent unchanged: the task has no `params` to replace it", place(task))
    });
    unmatched(task, paths).into_iter().chain(unfilled).collect()
}

/// Returns the start of a message about a task.
fn place(task: &Task) -> String {
    if task.source == "-" { String::new() } else { format!("{}: ", task.source) }
}

/// Returns a warning for each pattern of `files` that fits none of these paths of the project. An
/// empty list of paths is an unknown one.
pub fn unmatched(task: &Task, paths: &[String]) -> Vec<String> {
    let folders: BTreeSet<&str> = paths.iter().filter_map(|path| Some(path.split_once('/')?.0)).collect();
    let fits = |pattern: &str| Patterns::trees([pattern]).is_ok_and(|trees| paths.iter().any(|path| trees.fit(path)));
    let unfit = task.files.iter().filter(|pattern| !paths.is_empty() && !fits(pattern)).filter_map(|pattern| {
        let (folder, rest) = pattern.split_once('/').unwrap_or((pattern, ""));
        let near = nearest(folder, folders.iter().copied()).filter(|near| *near != folder);
        // A plain path may be that of a file which the task creates.
        if near.is_none() && !pattern.contains(['*', '?', '[', '{']) {
            return None;
        }
        let near = near.map(|near| format!("; did you mean `{near}/{rest}`?")).unwrap_or_default();
        Some(format!("{}`{pattern}` in `files` matches no file of the project{near}", place(task)))
    });
    unfit.collect()
}

/// Returns the first name in double braces, apart from GitHub's expressions (`${{ … }}`).
fn unfilled(text: &str) -> Option<&str> {
    text.match_indices("{{").filter(|(at, _)| !text[..*at].ends_with('$')).find_map(|(at, open)| {
        let rest = &text[at + open.len()..];
        let name = rest[..rest.find("}}")?].trim();
        let is_name = name.starts_with(|char: char| char.is_ascii_alphabetic())
            && name.chars().all(|char| char.is_ascii_alphanumeric() || char == '_');
        (is_name && name.len() <= LONGEST).then_some(name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn warned(text: &str, files: &[&str]) -> String {
        let files = files.iter().map(|pattern| (*pattern).to_owned()).collect();
        let task = Task { source: "t.md".into(), files, ..Task::from_prompt(text) };
        task_warnings(&task, &["src/a.rs".to_owned(), "src/b/c.rs".to_owned(), "README.md".to_owned()]).join("\n")
    }

    #[test]
    fn patterns_that_fit_nothing_and_names_that_nothing_fills_in_are_told() {
        let unfit =
            |pattern: &str, near: &str| format!("t.md: `{pattern}` in `files` matches no file of the project{near}");
        for (files, message) in [
            (&["src/**"][..], String::new()),
            (&["src"], String::new()),
            (&["*.md", "**/c.rs"], String::new()),
            (&["scr/**"], unfit("scr/**", "; did you mean `src/**`?")),
            (&["src/**", "docs/**"], unfit("docs/**", "")),
            (&["src/new.rs", "docs/new.md"], String::new()),
            (&["scr/new.rs"], unfit("scr/new.rs", "; did you mean `src/new.rs`?")),
        ] {
            assert_eq!(warned("Mend it.", files), message, "{files:?}");
        }
        let sent = "t.md: `{{ isue }}` is sent unchanged: the task has no `params` to replace it";
        for (text, message) in [
            ("Mend {{ isue }}.", sent),
            ("Mend {{isue}}.", sent),
            ("Use ${{ github.ref }} and ${{ ref }}.", ""),
            ("Keep `{{ a.b | c }}` and {{ and {{}}.", ""),
        ] {
            assert_eq!(warned(text, &[]), message, "{text}");
        }
    }
}
