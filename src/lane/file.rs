//! Reads a lane's file, strictly: everything that is wrong is found at once, each with its place and what to do about it.

use super::{Item, Lane, Step};
use crate::limits::LANE_TIMEOUT;
use crate::yaml::{self, Node, Place, Problem, Problems, Table, Value};
use std::collections::{BTreeMap, HashMap};
use std::path::{Component, Path};

/// Keys of a lane that are part of the format and not done yet.
const LATER: [&str; 9] = ["room", "setup", "cache", "network", "canary", "jobs", "tasks", "writes", "include_ignored"];
/// The same for a step.
const LATER_IN_STEP: [&str; 10] =
    ["task", "lane", "needs", "shell", "retries", "retry_delay", "when", "changed", "allow_failure", "junit"];
/// The longest name of a step, in characters.
const LONGEST_NAME: usize = 80;

/// Everything that is wrong with a lane's file; shown with one problem a line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", problems.within(path))]
pub struct LaneFault {
    /// The file as it was named by the caller.
    pub path: String,
    /// What is wrong with it.
    pub problems: Problems,
}

/// Reads the lane `name` from the text of its file. `path` is what messages call the file.
///
/// # Errors
/// Every problem of the file.
pub fn parse(name: &str, path: &str, text: &str) -> Result<Lane, LaneFault> {
    let mut reading = Reading::default();
    let lane = match yaml::parse(text, 1) {
        Ok(node) => reading.lane(name, &node),
        Err(problem) => {
            reading.problems.push(problem);
            None
        }
    };
    match lane {
        Some(lane) if reading.problems.is_empty() => Ok(lane),
        Some(_) | None => Err(LaneFault { path: path.to_owned(), problems: reading.problems }),
    }
}

#[derive(Default)]
struct Reading {
    problems: Problems,
    /// The names that were given, and where.
    names: HashMap<String, Place>,
}

impl Reading {
    fn lane(&mut self, name: &str, node: &Node) -> Option<Lane> {
        let mut table = Table::open(node, "a lane", &mut self.problems)?;
        let description = table.any_text("description", &mut self.problems).unwrap_or_default().to_owned();
        let fail_fast = table.flag("fail_fast", &mut self.problems).unwrap_or(true);
        let timeout = table.duration("timeout", &mut self.problems).unwrap_or(LANE_TIMEOUT);
        let env = self.env(&mut table);
        let mut steps = match table.take("steps") {
            Some(steps) => self.list(steps, "steps", Self::item),
            None => {
                self.complain(node.place, "a lane without steps checks nothing", "add `steps:` with one step at least");
                Vec::new()
            }
        };
        table.later(&LATER, &mut self.problems);
        table.finish(&mut self.problems);
        self.name_the_nameless(&mut steps);
        Some(Lane { name: name.to_owned(), description, fail_fast, timeout, env, steps })
    }

    fn list<T>(&mut self, node: &Node, key: &str, read: fn(&mut Self, &Node) -> Option<T>) -> Vec<T> {
        match &node.value {
            Value::List(items) if !items.is_empty() => items.iter().filter_map(|item| read(self, item)).collect(),
            Value::List(_) | Value::Null => {
                self.complain(node.place, format!("`{key}` is empty"), "add one step at least");
                Vec::new()
            }
            Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Text(_) | Value::Map(_) => {
                let message = format!("expected `{key}` to be a list of steps, found {}", node.describe());
                self.complain(node.place, message, "begin each step with `- `");
                Vec::new()
            }
        }
    }

    fn item(&mut self, node: &Node) -> Option<Item> {
        let is_group =
            matches!(&node.value, Value::Map(entries) if entries.iter().any(|(key, _)| key.text == "parallel"));
        if !is_group {
            return self.step(node).map(Item::Step);
        }
        let mut table = Table::open(node, "a parallel group", &mut self.problems)?;
        let steps = table.take("parallel").map(|steps| self.list(steps, "parallel", Self::step));
        if let Some(place) = table.place_of("run") {
            self.complain(place, "`run` beside `parallel`", "make it a step of the group, or one before or after it");
            table.take("run");
        }
        table.finish(&mut self.problems);
        steps.map(Item::Parallel)
    }

    fn step(&mut self, node: &Node) -> Option<Step> {
        if let Some(text) = node.as_text() {
            let hint = format!("write `- run: {}`", yaml::excerpt(text));
            self.complain(node.place, format!("expected a step, found {}", node.describe()), &hint);
            return None;
        }
        let mut table = Table::open(node, "a step", &mut self.problems)?;
        let name = self.name(&mut table);
        let run = table.text("run", &mut self.problems);
        let dir = self.dir(&mut table);
        let env = self.env(&mut table);
        let timeout = table.duration("timeout", &mut self.problems);
        table.later(&LATER_IN_STEP, &mut self.problems);
        if let Some(place) = table.place_of("parallel") {
            self.complain(place, "`parallel` inside of `parallel`", "put its steps into the outer group");
            table.take("parallel");
        } else if ["run", "task", "lane"].iter().all(|key| table.place_of(key).is_none()) {
            self.complain(node.place, "a step that runs nothing", "give it `run:` with a command");
        }
        if run.is_some_and(|run| run.contains('\0')) {
            self.complain(node.place, "`run` holds a character that no command line can hold", "remove the `\\0`");
        }
        table.finish(&mut self.problems);
        let (name, run) = (name.unwrap_or_default(), run.unwrap_or_default().trim().to_owned());
        Some(Step { name, run, dir, env, timeout })
    }

    fn name(&mut self, table: &mut Table<'_>) -> Option<String> {
        let place = table.take("name")?.place;
        let name = table.text("name", &mut self.problems)?;
        if name.chars().any(char::is_control) || name.chars().count() > LONGEST_NAME {
            let message = format!("the name of a step is one line of {LONGEST_NAME} characters at most");
            self.complain(place, message, "shorten it");
        }
        if let Some(first) = self.names.insert(name.to_owned(), place) {
            let message =
                format!("a second step is named `{}`; the first is in line {}", yaml::excerpt(name), first.line);
            self.complain(place, message, "give one of them another name");
        }
        Some(name.to_owned())
    }

    fn dir(&mut self, table: &mut Table<'_>) -> Option<String> {
        let place = table.take("dir")?.place;
        let dir = table.text("dir", &mut self.problems)?;
        let inside = |part| matches!(part, Component::Normal(_) | Component::CurDir);
        if dir.contains('\0') || !Path::new(dir).components().all(inside) {
            let message = format!("`dir` leads out of the project: `{}`", yaml::excerpt(dir));
            self.complain(place, message, "write a path below the project's root, without `..`");
        }
        Some(dir.to_owned())
    }

    fn env(&mut self, table: &mut Table<'_>) -> BTreeMap<String, String> {
        let entries = table.map_of_text("env", &mut self.problems).unwrap_or_default();
        if let Some(Node { value: Value::Map(entries), .. }) = table.take("env") {
            for (key, value) in entries {
                if !is_variable(&key.text) {
                    let message = format!("`{}` cannot name a variable", yaml::excerpt(&key.text));
                    self.complain(key.place, message, "letters, digits and `_`, and no digit first");
                }
                if value.as_text().is_some_and(|text| text.contains('\0')) {
                    self.complain(value.place, "a variable cannot hold this text", "remove the `\\0`");
                }
            }
        }
        entries.into_iter().collect()
    }

    /// Names steps after their commands, once all given names are known.
    fn name_the_nameless(&mut self, items: &mut [Item]) {
        let steps = items.iter_mut().flat_map(|item| match item {
            Item::Step(step) => std::slice::from_mut(step),
            Item::Parallel(steps) => steps,
        });
        for step in steps.filter(|step| step.name.is_empty()) {
            let base = first_words(&step.run);
            let mut name = base.clone();
            let mut number = 1;
            while self.names.contains_key(&name) {
                number += 1;
                name = format!("{base} {number}");
            }
            self.names.insert(name.clone(), Place { line: 0, column: 0 });
            step.name = name;
        }
    }

    fn complain(&mut self, place: Place, message: impl Into<String>, hint: &str) {
        self.problems.push(Problem::at(place, message).hint(hint));
    }
}

/// What a command is called: its words up to the first option or shell sign, three at most.
fn first_words(run: &str) -> String {
    let plain = |char: char| char.is_alphanumeric() || "._-/:@+=".contains(char);
    let words = run.split_whitespace().take_while(|word| !word.starts_with('-') && word.chars().all(plain));
    let name = words.take(3).collect::<Vec<_>>().join(" ");
    if name.is_empty() { "step".into() } else { name.chars().take(LONGEST_NAME - 10).collect() }
}

fn is_variable(name: &str) -> bool {
    let plain = name.chars().all(|char| char.is_ascii_alphanumeric() || char == '_');
    plain && name.starts_with(|char: char| !char.is_ascii_digit())
}

#[cfg(test)]
#[path = "file_tests.rs"]
mod tests;
