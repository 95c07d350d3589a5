//! Task files outside of the `tasks` folder, and batch files of any name. Pure.

use super::named::inside;
use crate::gate::names::{joined, name_of};
use crate::pattern::Patterns;
use crate::task::TASK_KEYS;
use crate::yaml::{self, YamlKey, YamlNode, YamlValue};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The maximum number of Markdown files of a base that are read, and of its YAML files.
const MOST: usize = 500;
/// A document that is never a task of the folder in which it is.
const README: &str = "README.md";

/// Other documents that are not tasks of their folder, unless a batch names them.
const DOCUMENTS: [&str; 12] = [
    "authors.md",
    "changelog.md",
    "changes.md",
    "code_of_conduct.md",
    "contributing.md",
    "history.md",
    "license.md",
    "maintainers.md",
    "news.md",
    "roadmap.md",
    "security.md",
    "support.md",
];

/// Reason for protecting a task.
pub(super) const TASK: &str = "it is a task, and defines work that runs later";
/// Keys of a task that the front matter of other documents has too.
const ORDINARY: [&str; 12] =
    ["base", "budget", "commit", "context", "files", "hidden", "model", "needs", "params", "specs", "title", "tools"];

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

/// Returns the keys in the front matter of a task that hardly any other document has.
pub(super) fn keys() -> impl Iterator<Item = &'static str> {
    TASK_KEYS.into_iter().filter(|key| !ORDINARY.contains(key))
}

/// The tasks of the base outside of the `tasks` folder.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct BaseTasks {
    /// Folders that contain tasks, at any depth. No new batch may name these.
    above: BTreeSet<String>,
    /// Folders in which at least half of the documents are tasks.
    folders: BTreeSet<String>,
    /// Paths and patterns, from the root, that batches name.
    named: BTreeSet<String>,
}

impl BaseTasks {
    /// Finds the tasks among these files. `read` returns the content of a file of the base.
    pub(super) fn find<'p>(
        paths: impl Iterator<Item = &'p String> + Clone,
        read: &mut dyn FnMut(&str) -> Option<Vec<u8>>,
    ) -> Self {
        let (mut found, mut counts) = (Self::default(), BTreeMap::<&str, (usize, usize)>::new());
        for path in paths.clone().filter(|path| path.ends_with(".md")).take(MOST) {
            let is = path.starts_with("tasks/") || read(path).is_some_and(|text| is_task(path, &text));
            let (tasks, others) = counts.entry(folder_of(path)).or_default();
            *tasks += usize::from(is);
            *others += usize::from(!is && name_of(path) != README);
            if is {
                found.above.extend(super::folders_of(path).map(str::to_owned));
            }
        }
        let mostly = counts.iter().filter(|(_, (tasks, others))| *tasks > 0 && tasks >= others);
        found.folders = mostly.map(|(folder, _)| (*folder).to_owned()).collect();
        for path in paths.filter(|path| may_be_batch(path)).take(MOST) {
            let names = read(path).map(|text| batch_tasks(path, &text, |folder| counts.contains_key(folder)));
            let folder = folder_of(path);
            for name in names.into_iter().flatten().filter_map(|name| inside(folder, &name)) {
                let is_folder = counts.contains_key(name.as_str());
                found.named.insert(if is_folder { format!("/{}", joined(&name, "*.md")) } else { format!("/{name}") });
            }
        }
        found
    }

    /// Returns whether a folder of the base contains tasks.
    pub(super) fn are_in(&self, folder: &str) -> bool {
        self.above.contains(folder)
    }

    /// Returns whether a document with this path would be a task without any front matter.
    fn include(&self, path: &str) -> bool {
        let is_named = || {
            let patterns = self.named.iter().filter_map(|pattern| Patterns::files(pattern).ok());
            patterns.into_iter().any(|pattern| pattern.fit(path))
        };
        let is_tasks = |folder: &str| folder.eq_ignore_ascii_case("tasks");
        let in_tasks = || folder_of(path).split('/').next().is_some_and(is_tasks);
        let is_beside_tasks = || {
            let is_document = DOCUMENTS.iter().any(|name| name.eq_ignore_ascii_case(name_of(path)));
            !is_document && self.folders.contains(folder_of(path))
        };
        path.ends_with(".md") && name_of(path) != README && (is_beside_tasks() || is_named() || in_tasks())
    }

    /// Returns the reason for rejecting a new or changed file that defines work that runs later.
    /// `was` is its content in the base. `has_documents` returns whether the work adds or changes
    /// documents in a folder.
    pub(super) fn forbid(
        &self,
        path: &str,
        (was, text): (Option<&[u8]>, &[u8]),
        has_documents: impl Fn(&str) -> bool,
    ) -> Option<&'static str> {
        let was_task = || was.is_some_and(|was| is_task(path, was));
        let has_tasks = |folder: &str| self.are_in(folder) || has_documents(folder);
        match () {
            () if is_task(path, text) || was_task() || self.include(path) => Some(TASK),
            () if is_batch(path, text, has_tasks) => Some(BATCH),
            () => None,
        }
    }
}

fn folder_of(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

fn may_be_batch(path: &str) -> bool {
    let path = path.to_ascii_lowercase();
    path.ends_with(".yaml") || path.ends_with(".yml")
}

/// Returns whether a file is a batch: all its keys are keys of a batch, and one of its tasks is a
/// Markdown file, a pattern or a folder with tasks. Other programs, such as Hydra, also have lists
/// of names under `tasks`.
fn is_batch(path: &str, text: &[u8], has_tasks: impl Fn(&str) -> bool) -> bool {
    may_be_batch(path) && !batch_tasks(path, text, has_tasks).is_empty()
}

/// Returns the names of tasks in a batch. Returns none if the file is not a batch.
fn batch_tasks(path: &str, text: &[u8], has_tasks: impl Fn(&str) -> bool) -> Vec<String> {
    let Ok(node) = yaml::parse(&String::from_utf8_lossy(text), 1) else { return Vec::new() };
    let YamlValue::Map(entries) = &node.value else { return Vec::new() };
    let folder = folder_of(path);
    let is_folder = |name: &str| ["", folder].iter().filter_map(|from| inside(from, name)).any(|path| has_tasks(&path));
    let is_name = |name: &str| name.ends_with(".md") || name.contains('*') || is_folder(name);
    let is_known = |(key, node): &(YamlKey, YamlNode)| match (key.text.as_str(), &node.value) {
        ("defaults", value) => matches!(value, YamlValue::Map(_)),
        (key, _) => BATCH_KEYS.contains(&key),
    };
    let items = |node: &YamlNode| match &node.value {
        YamlValue::List(items) => items.iter().filter_map(YamlNode::as_text).map(str::to_owned).collect(),
        _ => node.as_text().map(str::to_owned).into_iter().collect::<Vec<_>>(),
    };
    let tasks = entries.iter().filter(|(key, _)| key.text == "tasks").flat_map(|(_, node)| items(node));
    let tasks: Vec<String> = tasks.collect();
    if entries.iter().all(is_known) && tasks.iter().any(|name| is_name(name)) { tasks } else { Vec::new() }
}

/// Returns whether a file is a task: its front matter has a key that only tasks have. Front matter
/// that is not YAML counts if one of its lines has such a key.
fn is_task(path: &str, text: &[u8]) -> bool {
    let text = String::from_utf8_lossy(text);
    let is_key = |own: &str| keys().any(|key| key == own);
    if !path.ends_with(".md") {
        return false;
    }
    match yaml::document(&text).map(|document| document.front.map(|front| front.value)) {
        Ok(Some(YamlValue::Map(entries))) => entries.iter().any(|(key, _)| is_key(&key.text)),
        Ok(_) => false,
        Err(_) => {
            let mut lines = text.trim_start_matches('\u{feff}').lines().skip_while(|line| line.trim().is_empty());
            let is_open = lines.next().is_some_and(|first| first.trim_end() == "---");
            let front = lines.take_while(|line| line.trim_end() != "---");
            let before = |start: &str| {
                let start = start.trim_end_matches(['"', '\'', ' ']);
                start.rsplit(|c: char| !(c.is_alphanumeric() || c == '_')).next().is_some_and(is_key)
            };
            is_open && front.flat_map(|line| line.match_indices(':').map(|(at, _)| &line[..at])).any(before)
        }
    }
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
            ("chores/a.md", "---\n{ title: x, \"lane\": false }\n---\nDo it.\n", true),
            ("chores/a.md", "---\ntitle: x\n\"l\\u0061ne\": false\n---\nDo it.\n", true),
            ("chores/a.md", "---\ntitle: x\n? lane\n: false\n---\nDo it.\n", true),
            ("chores/a.md", "\n\n---\nlane: false\n---\nDo it.\n", true),
            ("chores/a.md", "---\ntitle: [x\nlane: false\n---\nDo it.\n", true),
            ("chores/a.md", "---\ntitle: x\nschedule: '@daily'\n---\nDo it.\n", true),
            ("chores/a.md", "---\ntitle: x\nmcp: [x]\n---\nDo it.\n", true),
            ("chores/a.md", "---\ntier: code\n---\nDo it.\n", true),
            ("docs/a.md", "---\ntitle: x\ndate: 2024-01-01\ntags: [lane]\nparams: { lane: 1 }\n---\nRead.\n", false),
            ("docs/a.md", "---\ntools: [Read]\nmodel: x\n---\nReview.\n", false),
            ("docs/a.md", "---\ntitle: [x\n---\nRead.\n", false),
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
            assert_eq!(is_batch(path, text.as_bytes(), has_tasks), is, "{path}: {text}");
        }
    }

    /// Returns the tasks of a base with these documents.
    fn tasks(files: &[(&str, &str)]) -> BaseTasks {
        let paths: Vec<String> = files.iter().map(|(path, _)| (*path).to_owned()).collect();
        let find = |path: &str| files.iter().find(|(own, _)| *own == path);
        BaseTasks::find(paths.iter(), &mut |path| find(path).map(|(_, text)| text.as_bytes().to_vec()))
    }

    #[test]
    fn folders_with_tasks_are_told_from_those_with_documents() {
        let task = "---\nlane: false\n---\n";
        let tasks = tasks(&[("a/b/c.md", task), ("docs/a.md", ""), ("tasks/a.md", ""), ("x/a.txt", "")]);
        assert_eq!(tasks.above.into_iter().collect::<Vec<_>>(), ["a", "a/b", "tasks"]);
        assert_eq!(tasks.folders.into_iter().collect::<Vec<_>>(), ["a/b", "tasks"]);
    }

    #[test]
    fn a_plain_prompt_is_a_task_where_the_base_has_tasks_or_a_batch_names_it() {
        let task = "---\nlane: false\n---\nTidy.\n";
        let base = [
            ("chores/tidy.md", task),
            ("chores/README.md", "# Chores"),
            ("docs/a.md", ""),
            ("docs/b.md", ""),
            ("docs/fix.md", task),
            ("more/a.md", "Do it.\n"),
            ("ops/all.yaml", "tasks: [../more, new/*.md, one.md]\n"),
        ];
        let tasks = tasks(&base);
        for (path, is) in [
            ("chores/new.md", true),
            ("chores/README.md", false),
            ("chores/CHANGELOG.md", false),
            ("ops/new/CHANGELOG.md", true),
            ("chores/deep/new.md", false),
            ("chores/new.txt", false),
            ("docs/new.md", false),
            ("docs/fix.md", true),
            ("more/new.md", true),
            ("ops/new/a.md", true),
            ("ops/one.md", true),
            ("ops/two.md", false),
            ("Tasks/a.md", true),
            ("TASKS/deep/a.md", true),
            ("docs/tasks/a.md", false),
            ("CHANGELOG.md", false),
        ] {
            let was = base.iter().find(|(own, _)| *own == path).map(|(_, text)| text.as_bytes());
            assert_eq!(tasks.forbid(path, (was, b"Do it.\n"), |_| false) == Some(TASK), is, "{path}");
        }
    }
}
