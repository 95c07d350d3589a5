//! Task files outside of the `tasks` folder, and batch files of any name. Pure.

use super::named::inside;
use crate::yaml::{self, YamlKey, YamlNode, YamlValue};
use std::collections::BTreeSet;

/// The maximum number of Markdown files of a base that are read.
const MOST: usize = 500;

/// Reason for protecting a task.
pub(super) const TASK: &str = "it is a task, and defines work that runs later";
/// Keys in the front matter of a task that hardly any other document has.
pub(super) const KEYS: [&str; 5] = ["allow_edit", "baseline", "lane", "max_retries", "on_tamper"];

/// Reason for protecting a batch file.
pub(super) const BATCH: &str = "it is a batch of tasks, and defines work that runs later";
/// The keys of a batch file.
pub(super) const BATCH_KEYS: [&str; 9] =
    ["defaults", "fail_fast", "jobs", "matrix", "max_usd", "repositories", "retries", "retry_delay", "tasks"];

/// Returns whether a file with this path may define a task or a batch, so that its content must be
/// read.
pub(super) fn reads(path: &str) -> bool {
    path.ends_with(".md") || may_be_batch(path)
}

/// Returns the reason for rejecting a file that defines work that runs later. `has_tasks` returns
/// whether a folder contains tasks.
pub(super) fn forbids(path: &str, text: &[u8], has_tasks: impl Fn(&str) -> bool) -> Option<&'static str> {
    match () {
        () if is_task(path, text) => Some(TASK),
        () if is_batch(path, text, has_tasks) => Some(BATCH),
        () => None,
    }
}

/// Returns the folders that contain tasks among these files, at any depth.
pub(super) fn folders<'p>(
    paths: impl Iterator<Item = &'p String>,
    read: &mut dyn FnMut(&str) -> Option<Vec<u8>>,
) -> BTreeSet<String> {
    let documents = paths.filter(|path| path.ends_with(".md")).take(MOST);
    let tasks =
        documents.filter(|path| path.starts_with("tasks/") || read(path).is_some_and(|text| is_task(path, &text)));
    tasks.flat_map(|path| super::folders_of(path)).map(str::to_owned).collect()
}

fn may_be_batch(path: &str) -> bool {
    let path = path.to_ascii_lowercase();
    path.ends_with(".yaml") || path.ends_with(".yml")
}

/// Returns whether a file is a batch: all its keys are keys of a batch, and one of its tasks is a
/// Markdown file, a pattern or a folder with tasks. Other programs, such as Hydra, also have lists
/// of names under `tasks`.
fn is_batch(path: &str, text: &[u8], has_tasks: impl Fn(&str) -> bool) -> bool {
    if !may_be_batch(path) {
        return false;
    }
    let Ok(node) = yaml::parse(&String::from_utf8_lossy(text), 1) else { return false };
    let YamlValue::Map(entries) = &node.value else { return false };
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let is_folder = |name: &str| ["", folder].iter().filter_map(|from| inside(from, name)).any(|path| has_tasks(&path));
    let is_name = |node: &YamlNode| {
        node.as_text().is_some_and(|name| name.ends_with(".md") || name.contains('*') || is_folder(name))
    };
    let fits = |(key, node): &(YamlKey, YamlNode)| match (key.text.as_str(), &node.value) {
        ("defaults", value) => matches!(value, YamlValue::Map(_)),
        ("tasks", YamlValue::List(items)) => items.iter().any(is_name),
        ("tasks", _) => is_name(node),
        (key, _) => BATCH_KEYS.contains(&key),
    };
    entries.iter().any(|(key, _)| key.text == "tasks") && entries.iter().all(fits)
}

/// Returns whether a file is a task: its front matter has a key that only tasks have.
fn is_task(path: &str, text: &[u8]) -> bool {
    let text = String::from_utf8_lossy(text);
    let mut lines = text.trim_start_matches('\u{feff}').lines();
    if !path.ends_with(".md") || lines.next().is_none_or(|first| first.trim_end() != "---") {
        return false;
    }
    let mut front = lines.take_while(|line| line.trim_end() != "---");
    front.any(|line| line.split_once(':').is_some_and(|(key, _)| KEYS.contains(&key.trim_matches(['"', '\'', ' ']))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_known_by_a_key_of_its_front_matter() {
        for (path, text, is) in [
            ("chores/a.md", "---\ntitle: Tidy\nallow_edit: [\"**\"]\n---\nTidy up.\n", true),
            ("chores/a.md", "---\r\n\"lane\": false\r\n---\r\n", true),
            ("docs/a.md", "---\ntitle: The lane\nlayout: page\n---\nlane: false\n", false),
            ("docs/a.md", "# Keys\n\n---\nlane: false\n---\n", false),
            ("chores/a.txt", "---\nlane: false\n---\n", false),
        ] {
            assert_eq!(is_task(path, text.as_bytes()), is, "{path}: {text}");
        }
    }

    #[test]
    fn a_batch_is_known_by_its_tasks_in_a_file_of_any_name() {
        for (path, text, is) in [
            ("chores/all.yaml", "tasks: [chores/other.md]\n", true),
            ("chores/nightly.yml", "defaults:\n  allow_edit: ['**']\ntasks:\n  - chores\njobs: 2\n", true),
            ("chores/all.yaml", "tasks: other.md\n", true),
            ("chores/all.YAML", "tasks: other.md\n", true),
            ("chores/all.Yml", "tasks: other.md\n", true),
            ("chores/all.yaml", "\"t\\u0061sks\": [other.md]\n", true),
            ("chores/all.yaml", "tasks: ['**/fix']\n", true),
            ("all.yaml", "tasks: ./chores/\n", true),
            ("a/all.yaml", "tasks: [../chores]\n", true),
            ("conf/config.yaml", "defaults:\n  - _self_\ntasks: [mnist, cifar]\n", false),
            ("conf/config.yaml", "defaults:\n  - _self_\ntasks: [a.md]\n", false),
            ("eval/suite.yaml", "tasks: [hellaswag, arc_easy]\n", false),
            ("todo.yml", "tasks:\n  - buy milk\n", false),
            ("chores/all.yaml", "tasks: [chores/other.md]\nhosts: all\n", false),
            ("play.yml", "- hosts: all\n  tasks: [a.md]\n", false),
            ("Taskfile.yml", "version: '3'\ntasks: { build: { cmds: [make] } }\n", false),
            ("roles/main.yml", "tasks: [{ name: a }]\n", false),
            ("a.yaml", "tasks: []\n", false),
            ("a.txt", "tasks: [a.md]\n", false),
        ] {
            let has_tasks = |folder: &str| folder == "chores";
            assert_eq!(forbids(path, text.as_bytes(), has_tasks) == Some(BATCH), is, "{path}: {text}");
        }
    }

    #[test]
    fn folders_with_tasks_are_told_from_those_with_documents() {
        let paths = ["a/b/c.md", "docs/a.md", "tasks/a.md", "x/a.txt"].map(str::to_owned);
        let mut read =
            |path: &str| Some(if path == "a/b/c.md" { b"---\nlane: false\n---\n".to_vec() } else { Vec::new() });
        assert_eq!(folders(paths.iter(), &mut read).into_iter().collect::<Vec<_>>(), ["a", "a/b", "tasks"]);
    }
}
