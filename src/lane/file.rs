//! The strict reader of a lane's YAML file. It finds all problems in one pass, each with its place
//! and a remedy.

use super::draft::{CommandOptions, LaneDraft, LaneForm, LaneTask, StepItem, StepKind};
use super::reading::{LATER, LONGEST_NAME, LaneReading};
use super::terms::TERMS;
use super::{Lane, LaneError, LaneFiles};
use crate::pattern::Patterns;
use crate::yaml::{self, FilePlace, Problem, Problems, TableReader, YamlNode, YamlValue};
use std::collections::BTreeMap;
use std::num::NonZeroUsize;

/// The settings of a command, and so of a step with a command.
pub(super) const OPTIONS: [&str; 10] =
    ["shell", "dir", "env", "timeout", "retries", "retry_delay", "when", "changed", "allow_failure", "junit"];
/// The kinds of step. Each step has exactly one.
const KINDS: [&str; 4] = ["run", "task", "lane", "parallel"];
/// The maximum number of retries of a step.
pub(super) const MOST_RETRIES: i64 = 100;
/// The maximum number of parallel steps.
pub(super) const MOST_JOBS: i64 = 1024;

/// Parses the lane `name` from the text of its file, which cannot refer to other files. `path`
/// names the file in messages.
///
/// # Errors
///
/// Every problem of the file.
pub fn parse(name: &str, path: &str, text: &str) -> Result<Lane, LaneError> {
    let mut lane_files = LaneFiles::default();
    lane_files.add_lane(name, path, text);
    lane_files.lane(name)
}

/// Reads the file of one lane as far as possible. Returns the lane, the problems and the warnings.
pub(super) fn draft(text: &str) -> (Option<LaneDraft>, Problems, Problems) {
    let mut reading = LaneReading::default();
    match yaml::parse(text, 1) {
        Ok(node) if node.value == YamlValue::Null => {
            let empty = yaml::nothing_in(&node, text, "a lane", "`steps: [{ name: test, run: make test }]`");
            (None, empty.map(Problems::from).unwrap_or_default(), Problems::default())
        }
        Ok(node) => (reading.lane(&node), reading.problems, reading.warnings),
        Err(problem) => (None, problem.into(), Problems::default()),
    }
}

/// Reads the `tasks:` of a file that has other content too. Warns about lanes and steps in it,
/// which have no effect.
pub(super) fn tasks(text: &str) -> Result<(BTreeMap<String, LaneTask>, Problems), Problems> {
    let mut reading = LaneReading::default();
    let YamlNode { value: YamlValue::Map(entries), .. } = yaml::parse(text, 1)? else { return Ok(Default::default()) };
    let tasks = entries.iter().find(|(key, _)| key.text == "tasks").map(|(_, node)| reading.tasks(node));
    for (key, _) in &entries {
        let hint = match key.text.as_str() {
            "lanes" | "steps" => "each lane is a file of its own: `lanes/<name>.yaml`",
            "task" => "did you mean `tasks`?",
            _ => continue,
        };
        reading.warnings.push(Problem::at(key.place, format!("`{}` is not read here", key.text)).hint(hint));
    }
    if reading.problems.is_empty() { Ok((tasks.unwrap_or_default(), reading.warnings)) } else { Err(reading.problems) }
}

impl LaneReading {
    fn lane(&mut self, node: &YamlNode) -> Option<LaneDraft> {
        let mut table = TableReader::open(node, "a lane", &mut self.problems)?;
        let jobs = table.int("jobs", 1..=MOST_JOBS, &mut self.problems);
        let draft = LaneDraft {
            form: LaneForm::Yaml,
            description: table.any_text("description", &mut self.problems).unwrap_or_default().to_owned(),
            fail_fast: table.flag("fail_fast", &mut self.problems),
            timeout: self.time(&mut table, "timeout"),
            env: self.env(&mut table),
            jobs: jobs.and_then(|jobs| NonZeroUsize::new(usize::try_from(jobs).ok()?)),
            terms: self.terms(&mut table),
            tasks: table.take("tasks").map(|node| self.tasks(node)).unwrap_or_default(),
            items: match table.take("steps") {
                Some(steps) => self.list(steps, "steps", |reading, node| reading.item(node, false)),
                None => {
                    let message = "a lane without steps checks nothing";
                    self.complain(node.place, message, "add `steps:` with one step at least");
                    Vec::new()
                }
            },
        };
        table.later(&LATER, &mut self.problems);
        self.finish(table);
        Some(draft)
    }

    pub(super) fn list<T>(
        &mut self,
        node: &YamlNode,
        key: &str,
        mut read: impl FnMut(&mut Self, &YamlNode) -> Option<T>,
    ) -> Vec<T> {
        match &node.value {
            YamlValue::List(items) if !items.is_empty() => items.iter().filter_map(|item| read(self, item)).collect(),
            YamlValue::List(_) | YamlValue::Null => {
                self.complain(node.place, format!("`{key}` is empty"), "add one step at least");
                Vec::new()
            }
            YamlValue::Bool(_)
            | YamlValue::Int(_)
            | YamlValue::Float(_)
            | YamlValue::Text(_)
            | YamlValue::Map(_)
            | YamlValue::Other(_) => {
                let message = format!("expected `{key}` to be a list of steps, found {}", node.describe());
                self.complain(node.place, message, "begin each step with `- `");
                Vec::new()
            }
        }
    }

    pub(super) fn item(&mut self, node: &YamlNode, in_group: bool) -> Option<StepItem> {
        if !matches!(node.value, YamlValue::Map(_)) {
            let text = node.as_text().filter(|text| !text.trim().is_empty()).unwrap_or("a command");
            let hint = format!("write `- run: {}`", yaml::excerpt(text));
            self.complain(node.place, format!("expected a step, found {}", node.describe()), &hint);
            return None;
        }
        let mut table = TableReader::open(node, "a step", &mut self.problems)?;
        let name = self.name(&mut table);
        let needs = self.names(&mut table, "needs");
        let kind = self.kind(node, &mut table, in_group);
        let options = match &kind {
            Some(StepKind::Run(_) | StepKind::Task(_)) | None => self.options(&mut table),
            Some(StepKind::Lane(_)) => CommandOptions { env: self.env(&mut table), ..CommandOptions::default() },
            Some(StepKind::Group(_)) => CommandOptions::default(),
        };
        for key in OPTIONS {
            let is_read = matches!(kind, Some(StepKind::Run(_) | StepKind::Task(_)) | None)
                || key == "env" && matches!(kind, Some(StepKind::Lane(_)));
            if let (false, Some(place)) = (is_read, table.place_of(key)) {
                table.take(key);
                self.complain(place, format!("`{key}` goes with a command"), "give it to the steps inside");
            }
        }
        for key in TERMS {
            if let Some(place) = table.place_of(key) {
                table.take(key);
                self.complain(place, format!("`{key}` is said of a whole lane"), "write it beside `steps`");
            }
        }
        table.later(&LATER, &mut self.problems);
        self.finish(table);
        Some(StepItem { place: node.place, name, kind: kind.unwrap_or_else(StepKind::unknown), needs, options })
    }

    /// Reads the kind of a step. Exactly one must be given.
    fn kind(&mut self, node: &YamlNode, table: &mut TableReader<'_>, in_group: bool) -> Option<StepKind> {
        let present: Vec<(&str, FilePlace)> =
            KINDS.iter().filter_map(|kind| Some((*kind, table.place_of(kind)?))).collect();
        for kind in KINDS {
            table.take(kind);
        }
        match present.as_slice() {
            [] => {
                self.complain(node.place, "a step that runs nothing", "give it `run:` with a command");
                None
            }
            [(first, _), (second, place), ..] => {
                let hint = "make two steps of it";
                self.complain(*place, format!("`{second}` beside `{first}`: a step is one of them"), hint);
                None
            }
            [("run", _)] => self.command(table, "run").map(StepKind::Run),
            [("task", _)] => self.named(table, "task").map(StepKind::Task),
            [("lane", _)] => self.named(table, "lane").map(StepKind::Lane),
            [(_, place)] if in_group => {
                self.complain(*place, "`parallel` inside of `parallel`", "put its steps into the outer group");
                None
            }
            [(_, _)] => {
                let steps = table.take("parallel")?;
                Some(StepKind::Group(self.list(steps, "parallel", |reading, node| reading.item(node, true))))
            }
        }
    }

    fn options(&mut self, table: &mut TableReader<'_>) -> CommandOptions {
        let retries = table.int("retries", 0..=MOST_RETRIES, &mut self.problems);
        CommandOptions {
            shell: self.shell(table),
            dir: self.dir(table, "dir"),
            env: self.env(table),
            timeout: self.time(table, "timeout"),
            retries: retries.and_then(|retries| u32::try_from(retries).ok()),
            retry_delay: self.time(table, "retry_delay"),
            when: self.when(table),
            changed: table.texts_where("changed", is_glob, &mut self.problems).unwrap_or_default(),
            allow_failure: table.flag("allow_failure", &mut self.problems).unwrap_or(false),
            junit: self.dir(table, "junit"),
        }
    }

    /// Reads a shell with its arguments. A single word gets `-c` added.
    fn shell(&mut self, table: &mut TableReader<'_>) -> Option<Vec<String>> {
        let text = table.text("shell", &mut self.problems)?;
        let mut words: Vec<String> = text.split_whitespace().map(ToOwned::to_owned).collect();
        if words.len() == 1 {
            words.push("-c".into());
        }
        Some(words)
    }

    fn tasks(&mut self, node: &YamlNode) -> BTreeMap<String, LaneTask> {
        let YamlValue::Map(entries) = &node.value else {
            let message = format!("expected `tasks` to be a map from names to tasks, found {}", node.describe());
            self.complain(node.place, message, "write `tasks: { build: make all }`");
            return BTreeMap::new();
        };
        entries.iter().filter_map(|(key, node)| Some((key.text.clone(), self.task(&key.text, node)?))).collect()
    }

    fn name(&mut self, table: &mut TableReader<'_>) -> Option<String> {
        let place = table.take("name")?.place;
        let name = table.text("name", &mut self.problems)?;
        if name.chars().any(char::is_control) || name.chars().count() > LONGEST_NAME {
            let message = format!("the name of a step is one line of {LONGEST_NAME} characters at most");
            self.complain(place, message, "shorten it");
        }
        Some(name.to_owned())
    }
}

fn is_glob(text: &str) -> Result<(), (String, String)> {
    let hint = "write a path below the root, with `*` and `**`";
    Patterns::trees([text]).map(drop).map_err(|error| (error.problem, hint.into()))
}

#[cfg(test)]
#[path = "file_tests.rs"]
mod tests;
