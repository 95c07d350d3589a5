//! What both forms of lane files have in common: tasks, commands, folders, variables and conditions, read from nodes with all
//! that is wrong with them.

use super::Condition;
use super::condition::is_variable;
use super::draft::{Form, Named, Task, When};
use crate::yaml::{Node, Place, Problem, Problems, Table, Value, excerpt};
use std::collections::BTreeMap;
use std::path::{Component, Path};

/// The longest name of a step, in characters.
pub(super) const LONGEST_NAME: usize = 80;

/// Something being read, and what there is to say about it.
#[derive(Debug, Default)]
pub(super) struct Reading {
    pub(super) form: Form,
    pub(super) problems: Problems,
    /// What is strange and does no harm.
    pub(super) warnings: Problems,
}

impl Reading {
    pub(super) fn task(&mut self, name: &str, node: &Node) -> Option<Task> {
        if let Some(cmd) = node.as_text().filter(|cmd| !cmd.trim().is_empty()) {
            return Some(Task { cmd: self.one_command("a task", cmd, node.place), ..Task::default() });
        }
        if self.form == Form::Toml && !matches!(node.value, Value::Map(_)) {
            let message = format!("expected the task `{}` to be a command, found {}", excerpt(name), node.describe());
            self.complain(node.place, message, "write `a = \"command\"`, or `[tasks.a]` with `cmd`");
            return None;
        }
        let mut table = Table::open(node, &format!("the task `{}`", excerpt(name)), &mut self.problems)?;
        table.any_text("description", &mut self.problems);
        let task = Task {
            cmd: self.command(&mut table, "cmd"),
            deps: self.names(&mut table, "deps").unwrap_or_default(),
            in_order: self.form == Form::Toml,
            env: self.env(&mut table),
            dir: self.dir(&mut table, "dir"),
        };
        if table.place_of("cmd").is_none() && task.deps.is_empty() {
            self.complain(node.place, "a task that runs nothing", "give it `cmd` or `deps`");
        }
        self.finish(table);
        Some(task)
    }

    /// A command line for the shell.
    pub(super) fn command(&mut self, table: &mut Table<'_>, key: &str) -> Option<String> {
        let place = table.take(key).and_then(|_| table.place_of(key))?;
        let command = table.text(key, &mut self.problems)?;
        self.one_command(&format!("`{key}`"), command, place)
    }

    fn one_command(&mut self, what: &str, command: &str, place: Place) -> Option<String> {
        if command.contains('\0') {
            let message = format!("{what} holds a character that no command line can hold");
            self.complain(place, message, "remove the `\\0`");
        }
        Some(command.trim().to_owned())
    }

    pub(super) fn when(&mut self, table: &mut Table<'_>) -> Option<When> {
        let place = table.take("when").and_then(|_| table.place_of("when"))?;
        let (text, all) = match self.form {
            Form::Yaml => {
                let text = table.text("when", &mut self.problems)?;
                (text, Condition::parse_all(text.split(',')))
            }
            Form::Toml => {
                let text = table.any_text("when", &mut self.problems)?;
                (text, Condition::parse_all(text.split(',').filter(|part| !part.trim().is_empty())))
            }
        };
        match all {
            Ok(all) => Some(When { text: text.to_owned(), all }),
            Err(why) => {
                self.complain(place, format!("`when`: {why}"), "write `VAR`, `VAR=value`, `!VAR` or `!VAR=value`");
                None
            }
        }
    }

    pub(super) fn named(&mut self, table: &mut Table<'_>, key: &str) -> Option<Named> {
        let place = table.take(key)?.place;
        let name = table.text(key, &mut self.problems)?;
        Some(Named { name: name.to_owned(), place })
    }

    pub(super) fn names(&mut self, table: &mut Table<'_>, key: &str) -> Option<Vec<Named>> {
        let names = table.texts(key, &mut self.problems)?;
        let Some(Node { value: Value::List(items), .. }) = table.take(key) else { return None };
        Some(names.into_iter().zip(items).map(|(name, node)| Named { name, place: node.place }).collect())
    }

    /// A path below the root.
    pub(super) fn dir(&mut self, table: &mut Table<'_>, key: &str) -> Option<String> {
        let place = table.take(key)?.place;
        let dir = table.text(key, &mut self.problems)?;
        let inside = |part| matches!(part, Component::Normal(_) | Component::CurDir);
        if dir.contains('\0') || !Path::new(dir).components().all(inside) {
            let message = format!("`{key}` leads out of the project: `{}`", excerpt(dir));
            self.complain(place, message, "write a path below the project's root, without `..`");
        }
        Some(dir.to_owned())
    }

    pub(super) fn env(&mut self, table: &mut Table<'_>) -> BTreeMap<String, String> {
        let entries = table.map_of_text("env", &mut self.problems).unwrap_or_default();
        if let Some(Node { value: Value::Map(entries), .. }) = table.take("env") {
            for (key, value) in entries {
                if !is_variable(&key.text) {
                    let message = format!("`{}` cannot name a variable", excerpt(&key.text));
                    self.complain(key.place, message, "letters, digits and `_`, and no digit first");
                }
                if value.as_text().is_some_and(|text| text.contains('\0')) {
                    self.complain(value.place, "a variable cannot hold this text", "remove the `\\0`");
                }
            }
        }
        entries.into_iter().collect()
    }

    /// Says which keys are unknown: a fault in YAML, where nothing else ever read them.
    pub(super) fn finish(&mut self, table: Table<'_>) {
        match self.form {
            Form::Yaml => table.finish(&mut self.problems),
            Form::Toml => table.finish(&mut self.warnings),
        }
    }

    pub(super) fn complain(&mut self, place: Place, message: impl Into<String>, hint: &str) {
        self.problems.push(Problem::at(place, message).hint(hint));
    }
}
