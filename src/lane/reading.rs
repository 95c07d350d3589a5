//! Common parts of the lane file readers: tasks, commands, folders, variables and conditions, read
//! from nodes together with their problems.

use super::Condition;
use super::condition::is_variable;
use super::draft::{LaneForm, LaneTask, NamedSpan, StepConditions};
use super::verbs;
use crate::duration::show_duration;
use crate::yaml::{FilePlace, Problem, Problems, TableReader, YamlNode, YamlValue, excerpt};
use std::collections::BTreeMap;
use std::path::{Component, Path};
use std::time::Duration;

/// The maximum length of a step's name, in characters.
pub(super) const LONGEST_NAME: usize = 80;

/// The maximum duration that a file can set.
pub(super) const LONGEST_TIME: Duration = Duration::from_secs(365 * 24 * 60 * 60);
/// Keys of lanes and steps for the gate that are not supported yet.
pub(super) const LATER: [&str; 4] = ["holdout", "baseline", "expect", "sandbox"];
/// Keys of other tools, with the key that fledge uses for them.
#[rustfmt::skip]
const OTHERS: [(&str, &str); 20] = [
    ("cmd", "run"), ("command", "run"), ("script", "run"), ("shell_command", "run"), ("cmds", "deps"), ("uses", "lane"),
    ("run", "cmd"), ("command", "cmd"), ("script", "cmd"), ("desc", "description"), ("depends", "deps"),
    ("depends_on", "needs"), ("depends_on", "deps"), ("if", "when"), ("cwd", "dir"), ("working-directory", "dir"),
    ("continue-on-error", "allow_failure"), ("environment", "env"), ("timeout-minutes", "timeout"), ("needs", "deps"),
];

/// The state of a reader, with its problems and warnings.
#[derive(Debug, Default)]
pub(super) struct LaneReading {
    pub(super) form: LaneForm,
    pub(super) problems: Problems,
    /// Remarks on unusual content that does no harm.
    pub(super) warnings: Problems,
}

impl LaneReading {
    pub(super) fn task(&mut self, name: &str, node: &YamlNode) -> Option<LaneTask> {
        if let Some(cmd) = node.as_text().filter(|cmd| !cmd.trim().is_empty()) {
            return Some(LaneTask { cmd: self.one_command("a task", cmd, node.place), ..LaneTask::default() });
        }
        if !matches!(node.value, YamlValue::Map(_)) {
            let message = format!("expected the task `{}` to be a command, found {}", excerpt(name), node.describe());
            let hint = match self.form {
                LaneForm::Yaml => "write `name: command`, or a map with `cmd`",
                LaneForm::Toml => "write `name = \"command\"`, or `[tasks.name]` with `cmd`",
            };
            self.complain(node.place, message, hint);
            return None;
        }
        let mut table = TableReader::open(node, &format!("the task `{}`", excerpt(name)), &mut self.problems)?;
        table.any_text("description", &mut self.problems);
        let task = LaneTask {
            cmd: self.command(&mut table, "cmd"),
            deps: self.names(&mut table, "deps").unwrap_or_default(),
            in_order: self.form == LaneForm::Toml,
            env: self.env(&mut table),
            dir: self.dir(&mut table, "dir"),
        };
        if table.place_of("cmd").is_none() && task.deps.is_empty() {
            self.complain(node.place, "a task that runs nothing", "give it `cmd` or `deps`");
        }
        self.finish(table);
        Some(task)
    }

    /// Reads a command line for the shell.
    pub(super) fn command(&mut self, table: &mut TableReader<'_>, key: &str) -> Option<String> {
        let place = table.take(key).and_then(|_| table.place_of(key))?;
        let command = table.text(key, &mut self.problems)?;
        self.one_command(&format!("`{key}`"), command, place)
    }

    fn one_command(&mut self, what: &str, command: &str, place: FilePlace) -> Option<String> {
        if command.contains('\0') {
            let message = format!("{what} holds a character that no command line can hold");
            self.complain(place, message, "remove the `\\0`");
        }
        if let Some((message, hint)) = verbs::strange(command, self.form) {
            self.warnings.push(Problem::at(place, message).hint(hint));
        }
        Some(command.trim().to_owned())
    }

    pub(super) fn when(&mut self, table: &mut TableReader<'_>) -> Option<StepConditions> {
        let place = table.take("when").and_then(|_| table.place_of("when"))?;
        let (text, all) = match self.form {
            LaneForm::Yaml => {
                let text = table.text("when", &mut self.problems)?;
                (text, Condition::parse_all(text.split(',')))
            }
            LaneForm::Toml => {
                let text = table.any_text("when", &mut self.problems)?;
                (text, Condition::parse_all(text.split(',').filter(|part| !part.trim().is_empty())))
            }
        };
        match all {
            Ok(all) => Some(StepConditions { text: text.to_owned(), all }),
            Err(why) => {
                self.complain(place, format!("`when`: {why}"), "write `VAR`, `VAR=value`, `!VAR` or `!VAR=value`");
                None
            }
        }
    }

    /// Reads a duration and checks its maximum.
    pub(super) fn time(&mut self, table: &mut TableReader<'_>, key: &str) -> Option<Duration> {
        let place = table.take(key)?.place;
        let time = table.duration(key, &mut self.problems)?;
        if time > LONGEST_TIME {
            let message = format!("`{key}`: {} is longer than a year", show_duration(time));
            self.complain(place, message, "at most `365d`");
        }
        Some(time)
    }

    pub(super) fn named(&mut self, table: &mut TableReader<'_>, key: &str) -> Option<NamedSpan> {
        let place = table.take(key)?.place;
        let name = table.text(key, &mut self.problems)?;
        Some(NamedSpan { name: name.to_owned(), place })
    }

    pub(super) fn names(&mut self, table: &mut TableReader<'_>, key: &str) -> Option<Vec<NamedSpan>> {
        let names = table.texts(key, &mut self.problems)?;
        let Some(YamlNode { value: YamlValue::List(items), .. }) = table.take(key) else { return None };
        Some(names.into_iter().zip(items).map(|(name, node)| NamedSpan { name, place: node.place }).collect())
    }

    /// Reads a path below the root.
    pub(super) fn dir(&mut self, table: &mut TableReader<'_>, key: &str) -> Option<String> {
        let place = table.take(key)?.place;
        let dir = table.text(key, &mut self.problems)?;
        let inside = |part| matches!(part, Component::Normal(_) | Component::CurDir);
        if dir.contains('\0') || !Path::new(dir).components().all(inside) {
            let message = format!("`{key}` leads out of the project: `{}`", excerpt(dir));
            self.complain(place, message, "write a path below the project's root, without `..`");
        }
        Some(dir.to_owned())
    }

    pub(super) fn env(&mut self, table: &mut TableReader<'_>) -> BTreeMap<String, String> {
        let entries = table.map_of_text("env", &mut self.problems).unwrap_or_default();
        if let Some(YamlNode { value: YamlValue::Map(entries), .. }) = table.take("env") {
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

    /// Reports unknown keys: as problems in YAML, which only fledge reads, and otherwise as
    /// warnings.
    pub(super) fn finish(&mut self, table: TableReader<'_>) {
        match self.form {
            LaneForm::Yaml => table.finish_with(&OTHERS, &mut self.problems),
            LaneForm::Toml => table.finish_with(&OTHERS, &mut self.warnings),
        }
    }

    pub(super) fn complain(&mut self, place: FilePlace, message: impl Into<String>, hint: &str) {
        self.problems.push(Problem::at(place, message).hint(hint));
    }
}
