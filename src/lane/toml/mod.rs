//! The reader of `fledge.toml` and imported files of the same form: tasks and lanes. A problem of a
//! task or lane affects only that task or lane. Unknown keys are warnings, because other tools also
//! read these files and accept them.
//!
//! Also parses any TOML into a tree of `serde_json` values, for readers of other tools' files.

mod nodes;

use super::draft::{CommandOptions, LaneDraft, LaneForm, LaneTask, NamedSpan, StepItem, StepKind};
use super::reading::{LATER, LONGEST_NAME, LONGEST_TIME, LaneReading};
use super::terms::TERMS;
use crate::yaml::{FilePlace, Problem, Problems, TableReader, YamlKey, YamlNode, YamlValue, excerpt, nearest};
use ::toml::Spanned;
use ::toml::de::{DeTable, DeValue};
use nodes::TomlTop;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::time::Duration;

/// The tables that fledge reads; others belong to other tools.
const TABLES: [&str; 2] = ["tasks", "lanes"];
/// The kinds of step. Each step has exactly one.
const KINDS: [&str; 3] = ["run", "task", "parallel"];
/// The settings of a step.
const OPTIONS: [&str; 4] = ["when", "timeout", "retries", "retry_delay"];

/// The tasks and lanes of a file.
#[derive(Debug, Default)]
pub(super) struct TomlPage {
    pub(super) tasks: BTreeMap<String, TomlItem<LaneTask>>,
    pub(super) lanes: BTreeMap<String, TomlItem<LaneDraft>>,
    pub(super) warnings: Problems,
}

/// A task or lane from a file.
#[derive(Debug)]
pub(super) struct TomlItem<T> {
    /// The place of its name.
    pub(super) place: FilePlace,
    /// The value, as far as it could be read.
    pub(super) what: Option<T>,
    /// The problems of this task or lane.
    pub(super) problems: Problems,
    pub(super) warnings: Problems,
}

/// Reads a file. An error concerns the whole file.
pub(super) fn read(text: &str) -> Result<TomlPage, Problems> {
    let TomlTop { wanted, others } = nodes::top(text, &TABLES)?;
    let (mut page, mut problems) = (TomlPage::default(), Problems::default());
    for YamlKey { text, place } in others {
        if let Some(near) = nearest(&text, TABLES) {
            let problem = Problem::at(place, format!("the table `{}` is not read", excerpt(&text)));
            page.warnings.push(problem.hint(format!("did you mean `{near}`?")));
        }
    }
    for (key, node) in &wanted {
        let YamlValue::Map(entries) = &node.value else {
            let message = format!("expected `{}` to be a table, found {}", key.text, node.describe());
            problems.push(Problem::at(node.place, message).hint(format!("write `[{}]`", key.text)));
            continue;
        };
        for (name, node) in entries {
            if key.text == "tasks" {
                page.tasks.insert(name.text.clone(), one(name, |reading| reading.task(&name.text, node)));
            } else {
                page.lanes.insert(name.text.clone(), one(name, |reading| reading.lane_table(name, node)));
            }
        }
    }
    if problems.is_empty() { Ok(page) } else { Err(problems) }
}

fn one<T>(name: &YamlKey, read: impl FnOnce(&mut LaneReading) -> Option<T>) -> TomlItem<T> {
    let mut reading = LaneReading { form: LaneForm::Toml, ..LaneReading::default() };
    let what = read(&mut reading);
    TomlItem { place: name.place, what, problems: reading.problems, warnings: reading.warnings }
}

impl LaneReading {
    fn lane_table(&mut self, name: &YamlKey, node: &YamlNode) -> Option<LaneDraft> {
        if !is_lane_name(&name.text) {
            let message = format!("`{}` cannot name a lane", excerpt(&name.text));
            let hint = format!("one line of {LONGEST_NAME} characters at most, without `/`, and no dot first");
            self.complain(name.place, message, &hint);
        }
        if !matches!(node.value, YamlValue::Map(_)) {
            let name = excerpt(&name.text);
            let message = format!("expected the lane `{name}` to be a table, found {}", node.describe());
            self.complain(node.place, message, &format!("write `[lanes.{name}]`, and below it `steps = [\"…\"]`"));
            return None;
        }
        let mut table = TableReader::open(node, "a lane", &mut self.problems)?;
        let description = table.any_text("description", &mut self.problems).unwrap_or_default().to_owned();
        let fail_fast = table.flag("fail_fast", &mut self.problems);
        let items = match table.take("steps") {
            Some(steps) => self.steps(steps, "steps", false),
            None => {
                self.complain(name.place, "a lane without steps checks nothing", "give it `steps = [\"a task\"]`");
                Vec::new()
            }
        };
        for key in TERMS {
            if let Some(place) = table.place_of(key) {
                table.take(key);
                let problem = Problem::at(place, format!("`{key}` is not read here"));
                self.warnings.push(problem.hint("write the lane as `lanes/<name>.yaml` to use it"));
            }
        }
        table.later(&LATER, &mut self.warnings);
        self.finish(table);
        Some(LaneDraft { form: LaneForm::Toml, description, fail_fast, items, ..LaneDraft::default() })
    }

    fn steps(&mut self, node: &YamlNode, key: &str, in_group: bool) -> Vec<StepItem> {
        let YamlValue::List(items) = &node.value else {
            let message = format!("expected `{key}` to be a list of steps, found {}", node.describe());
            self.complain(node.place, message, &format!("write `{key} = [\"a task\", {{ run = \"a command\" }}]`"));
            return Vec::new();
        };
        if items.is_empty() {
            self.complain(node.place, format!("`{key}` is empty"), "name one task at least");
        }
        items.iter().filter_map(|item| self.step(item, in_group)).collect()
    }

    fn step(&mut self, node: &YamlNode, in_group: bool) -> Option<StepItem> {
        let item = |kind, options| StepItem { place: node.place, name: None, kind, needs: None, options };
        if let Some(name) = node.as_text().filter(|name| !name.trim().is_empty()) {
            let named = NamedSpan { name: name.to_owned(), place: node.place };
            return Some(item(StepKind::Task(named), CommandOptions::default()));
        }
        if !matches!(node.value, YamlValue::Map(_)) {
            let hint = if matches!(node.value, YamlValue::List(_)) && !in_group {
                "steps that run at the same time are written `{ parallel = [\"a\", \"b\"] }`"
            } else {
                "write the name of a task in quotes, or `{ run = \"a command\" }`"
            };
            self.complain(node.place, format!("expected a step, found {}", node.describe()), hint);
            return None;
        }
        let mut table =
            TableReader::open(node, if in_group { "a step of a group" } else { "a step" }, &mut self.problems)?;
        let options = if in_group { self.no_options(&mut table) } else { self.step_options(&mut table) };
        let kind = self.step_kind(node, &mut table, &options, in_group);
        self.finish(table);
        Some(item(kind.unwrap_or_else(StepKind::unknown), options))
    }

    /// Warns about settings of a step in a group; they have no effect.
    fn no_options(&mut self, table: &mut TableReader<'_>) -> CommandOptions {
        for key in OPTIONS {
            table.take(key);
            if let Some(place) = table.place_of(key) {
                let problem = Problem::at(place, format!("`{key}` in a step of a group means nothing"));
                self.warnings.push(problem.hint("give it to the group"));
            }
        }
        CommandOptions::default()
    }

    fn step_options(&mut self, table: &mut TableReader<'_>) -> CommandOptions {
        let most = i64::try_from(LONGEST_TIME.as_secs()).unwrap_or(i64::MAX);
        let mut seconds = |key, least| {
            let seconds = table.int(key, least..=most, &mut self.problems)?;
            u64::try_from(seconds).ok().map(Duration::from_secs)
        };
        let (timeout, retry_delay) = (seconds("timeout", 1), seconds("retry_delay", 0));
        let retries = table.int("retries", 0..=u32::MAX.into(), &mut self.problems);
        let retries = retries.and_then(|retries| u32::try_from(retries).ok());
        CommandOptions { timeout, retries, retry_delay, when: self.when(table), ..CommandOptions::default() }
    }

    /// Reads the kind of a step. Exactly one must be given. Settings of a group apply to each of
    /// its members.
    fn step_kind(
        &mut self,
        node: &YamlNode,
        table: &mut TableReader<'_>,
        options: &CommandOptions,
        in_group: bool,
    ) -> Option<StepKind> {
        let kinds = KINDS.iter().filter_map(|kind| Some((*kind, table.place_of(kind)?)));
        let present: Vec<(&str, FilePlace)> = kinds.collect();
        for kind in KINDS {
            table.take(kind);
        }
        match present.as_slice() {
            [] if let Some(place) = table.place_of("lane") => {
                table.take("lane");
                let hint = "write the lane as `lanes/<name>.yaml`: there a step can be `{ lane: … }`";
                self.complain(place, "a lane inside of another one cannot be written here", hint);
                None
            }
            [] => {
                self.complain(
                    node.place,
                    "a step that runs nothing",
                    "give it `run` with a command, or `task` with a name",
                );
                None
            }
            [(first, _), (second, place), ..] => {
                self.complain(
                    *place,
                    format!("`{second}` beside `{first}`: a step is one of them"),
                    "make two steps of it",
                );
                None
            }
            [("run", _)] => self.command(table, "run").map(StepKind::Run),
            [("task", _)] => self.named(table, "task").map(StepKind::Task),
            [(_, place)] if in_group => {
                self.complain(*place, "`parallel` inside of `parallel`", "put its steps into the outer group");
                None
            }
            [_] => {
                let members = self.steps(table.take("parallel")?, "parallel", true);
                Some(StepKind::Group(
                    members.into_iter().map(|item| StepItem { options: options.clone(), ..item }).collect(),
                ))
            }
        }
    }
}

/// Returns true if a text can name a lane. The name is also the name of a folder of logs.
fn is_lane_name(name: &str) -> bool {
    let is_plain = !name.starts_with('.') && !name.chars().any(|char| char == '/' || char.is_control());
    is_plain && !name.trim().is_empty() && name.chars().count() <= LONGEST_NAME
}

/// Parses a TOML document into a tree. `None` if the text is not TOML. Numbers and dates are texts.
pub fn parse_toml(text: &str) -> Option<Value> {
    let table = DeTable::parse(text.strip_prefix('\u{feff}').unwrap_or(text)).ok()?;
    Some(table_of(table.get_ref()))
}

fn table_of(table: &DeTable<'_>) -> Value {
    let entry = |(key, value): (_, &Spanned<DeValue<'_>>)| (key, value_of(value.get_ref()));
    table.iter().map(|(key, value)| entry((key.get_ref().to_string(), value))).collect::<Map<_, _>>().into()
}

fn value_of(value: &DeValue<'_>) -> Value {
    match value {
        DeValue::String(text) => text.to_string().into(),
        DeValue::Boolean(flag) => (*flag).into(),
        DeValue::Integer(number) => number.as_str().into(),
        DeValue::Float(number) => number.as_str().into(),
        DeValue::Datetime(date) => date.to_string().into(),
        DeValue::Array(items) => items.iter().map(|item| value_of(item.get_ref())).collect(),
        DeValue::Table(table) => table_of(table),
    }
}

#[cfg(test)]
mod tests;
