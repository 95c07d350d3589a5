//! Tasks: the command of a step that names one, with what it depends on before it, each once in a lane.

use super::{Compiler, Name, Scope, Wait};
use crate::lane::book::Shared;
use crate::lane::draft::{Form, Item, Named, Options, Task};
use crate::lane::entry::Gather;
use crate::yaml::{Problem, excerpt};
use std::collections::BTreeSet;

/// The longest chain of tasks that depend on each other.
const LONGEST_CHAIN: usize = 500;

/// A task, and the file that it stands in.
#[derive(Clone, Copy)]
struct Found<'b> {
    name: &'b str,
    task: &'b Task,
    path: Option<&'b str>,
}

impl<'b> Compiler<'b> {
    /// A step that is a task: the task's dependencies, then its command. Of a task that only gathers others, these are the step.
    pub(super) fn task_step(&mut self, item: &Item, named: &Named, scope: &Scope<'b>, waits: &[Wait]) -> Vec<usize> {
        let Some(found) = self.find_task(named, &scope.path, scope) else { return Vec::new() };
        let task = found.task;
        let shared = match (scope.form, &task.cmd) {
            (Form::Yaml, Some(_)) => Options::default(),
            (Form::Toml, _) | (Form::Yaml, None) => item.options.of_each_command(),
        };
        let before = self.dependencies(found, &shared, scope, waits);
        let Some(cmd) = &task.cmd else {
            self.gather(item, &before, scope);
            return before.iter().filter_map(Wait::step).collect();
        };
        let mut options = item.options.clone();
        options.dir = options.dir.or_else(|| task.dir.clone());
        let own = std::mem::take(&mut options.env);
        options.env = task.env.clone().into_iter().chain(own).collect();
        let name = format!("{}{}", scope.prefix, item.name.as_ref().unwrap_or(&named.name));
        let name = match scope.form {
            Form::Yaml => Name::Given(name),
            Form::Toml => Name::Made(name), // a task may stand there twice, and nothing can tell the two apart
        };
        let made = vec![self.step(name, cmd, &options, scope, &before)];
        self.tasks.insert(format!("{}\0{}", scope.prefix, named.name), made.clone());
        made
    }

    fn gather(&mut self, item: &Item, before: &[Wait], scope: &Scope<'b>) {
        if let Some(key) = item.options.of_one_command() {
            let problem =
                Problem::at(item.place, format!("`{key}` goes with a command, and this task only gathers others"));
            self.complain(&scope.path, problem.hint("give it to the tasks that it depends on"));
        }
        let steps = before.iter().filter_map(|wait| if let Wait::Dependency(step) = wait { Some(*step) } else { None });
        self.gathers.push(Gather {
            entry: self.entries.len(),
            member: self.member,
            steps: steps.collect(),
            when: item.options.when.as_ref().map(|when| when.all.clone()).unwrap_or_default(),
            changed: item.options.changed.clone(),
        });
    }

    /// The last steps of a task that others depend on; put in at its first mention.
    fn dependency(
        &mut self,
        named: &Named,
        path: &str,
        shared: &Options,
        scope: &Scope<'b>,
        waits: &[Wait],
    ) -> Vec<usize> {
        let key = format!("{}\0{}", scope.prefix, named.name);
        if let Some(made) = self.tasks.get(&key) {
            return made.clone();
        }
        let Some(found) = self.find_task(named, path, scope) else { return Vec::new() };
        let before = self.dependencies(found, shared, scope, waits);
        if self.is_full(path, named.place) {
            return Vec::new();
        }
        let made = match &found.task.cmd {
            None => before.iter().filter_map(Wait::step).collect(),
            Some(cmd) => {
                let options = Options { dir: found.task.dir.clone(), env: found.task.env.clone(), ..shared.clone() };
                let name = format!("{}{}", scope.prefix, named.name);
                let number = self.step(Name::Made(name.clone()), cmd, &options, scope, &before);
                self.steps[number].step.on_demand = true;
                self.labels.entry(name).or_insert_with(|| (vec![number], named.place));
                vec![number]
            }
        };
        self.tasks.insert(key, made.clone());
        made
    }

    fn dependencies(&mut self, of: Found<'b>, shared: &Options, scope: &Scope<'b>, waits: &[Wait]) -> Vec<Wait> {
        let path = of.path.unwrap_or(&scope.path);
        self.resolving.push(of.name.to_owned());
        let mut before: BTreeSet<Wait> = BTreeSet::new();
        for dep in &of.task.deps {
            if let Some(start) = self.resolving.iter().position(|open| *open == dep.name) {
                let circle = format!("{} → {}", self.resolving[start..].join(" → "), dep.name);
                let problem = Problem::at(dep.place, format!("a task depends on itself: {circle}"));
                self.complain(path, problem.hint("remove one of these dependencies"));
                continue;
            }
            if self.resolving.len() >= LONGEST_CHAIN {
                let message = format!("a chain of more than {LONGEST_CHAIN} tasks that depend on each other");
                self.complain(path, Problem::at(dep.place, message).hint("shorten it"));
                continue;
            }
            let mut waits = waits.to_vec();
            if of.task.in_order {
                waits.extend(before.iter().filter_map(Wait::step).map(Wait::Step));
            }
            let made = self.dependency(dep, path, shared, scope, &waits);
            before.extend(made.into_iter().map(Wait::Dependency));
        }
        self.resolving.pop();
        // Also when every dependency is there already, it has its place in the order.
        before.extend(waits);
        before.into_iter().collect()
    }

    /// The task of this name, for the file at `path` that asks for it.
    fn find_task(&mut self, named: &Named, path: &str, scope: &Scope<'b>) -> Option<Found<'b>> {
        let book = self.book;
        if let Some((name, task)) = scope.tasks.get_key_value(&named.name) {
            return Some(Found { name, task, path: None });
        }
        if let Some((name, Shared { path, task })) = book.tasks.get_key_value(&named.name) {
            return match task {
                Ok(task) => Some(Found { name, task, path: Some(path) }),
                Err(problems) => {
                    self.fault.files.entry(path.clone()).or_default().merge(problems);
                    None
                }
            };
        }
        let names: Vec<&str> = scope.tasks.keys().chain(book.tasks.keys()).map(String::as_str).collect();
        let hint =
            if names.is_empty() { "there are no tasks".into() } else { format!("there are: {}", names.join(", ")) };
        let problem = Problem::at(named.place, format!("there is no task `{}`", excerpt(&named.name)));
        self.complain(path, problem.hint(hint).near(&named.name, names.iter().copied()));
        None
    }
}

impl Wait {
    fn step(&self) -> Option<usize> {
        match self {
            Self::Step(number) | Self::Dependency(number) => Some(*number),
            Self::Needs(_) => None,
        }
    }
}
