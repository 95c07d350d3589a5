//! Task files outside of the folder for tasks, and batch files of any name. Pure.

use crate::yaml::{self, Value};

/// The reason that protects a task.
pub(super) const TASK: &str = "it is a task, and defines work that runs later";
/// Keys of a task's front matter that hardly any other document has.
pub(super) const KEYS: [&str; 6] = ["allow_edit", "baseline", "holdout", "lane", "max_retries", "on_tamper"];

/// The reason that protects a batch file.
pub(super) const BATCH: &str = "it is a batch of tasks, and defines work that runs later";
/// The keys of a batch file.
pub(super) const BATCH_KEYS: [&str; 9] =
    ["defaults", "fail_fast", "jobs", "matrix", "max_usd", "repositories", "retries", "retry_delay", "tasks"];

/// Returns whether a path may be that of a task or a batch.
pub(super) fn reads(path: &str) -> bool {
    path.ends_with(".md") || may_be_batch(path)
}

/// Why a file may not be there, if it defines work that runs later.
pub(super) fn forbids(path: &str, text: &[u8]) -> Option<&'static str> {
    match () {
        () if is_task(path, text) => Some(TASK),
        () if is_batch(path, text) => Some(BATCH),
        () => None,
    }
}

fn may_be_batch(path: &str) -> bool {
    path.ends_with(".yaml") || path.ends_with(".yml")
}

/// Returns whether a file is a batch: a list of names as its tasks, and no key that a batch has not.
fn is_batch(path: &str, text: &[u8]) -> bool {
    let text = String::from_utf8_lossy(text);
    if !may_be_batch(path) || !text.contains("tasks") {
        return false;
    }
    let Ok(node) = yaml::parse(&text, 1) else { return false };
    let Value::Map(entries) = &node.value else { return false };
    let is_name = |item: &yaml::Node| matches!(item.value, Value::Text(_));
    let has_tasks = entries.iter().any(|(key, node)| {
        key.text == "tasks"
            && matches!(&node.value, Value::List(items) if !items.is_empty() && items.iter().all(is_name))
    });
    has_tasks && entries.iter().all(|(key, _)| BATCH_KEYS.contains(&key.text.as_str()))
}

/// Returns whether a file is a task: its front matter has a key of tasks alone.
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
            ("chores/all.yaml", "tasks: [chores/other.md]\nhosts: all\n", false),
            ("play.yml", "- hosts: all\n  tasks: [a.md]\n", false),
            ("Taskfile.yml", "version: '3'\ntasks: { build: { cmds: [make] } }\n", false),
            ("roles/main.yml", "tasks: [{ name: a }]\n", false),
            ("a.yaml", "tasks: []\n", false),
            ("a.txt", "tasks: [a.md]\n", false),
        ] {
            assert_eq!(forbids(path, text.as_bytes()) == Some(BATCH), is, "{path}: {text}");
        }
    }
}
