//! Compiles lane tasks: named commands under `tasks` of a lane file, `fledge.yaml` or `fledge.toml`
//! (not the Markdown tasks of an agent). A step that names a lane task runs its command. The
//! dependencies (`deps`) of a lane task run before its command, each once per lane.

use super::{Compiler, Label, Name, Scope, StepWait};
use crate::lane::draft::{CommandOptions, LaneForm, LaneTask, NamedSpan, StepItem};
use crate::lane::entry::TaskGroup;
use crate::lane::lane_files::SharedTask;
use crate::yaml::{Problem, excerpt, listed};
use std::collections::BTreeSet;

/// The maximum number of tasks in a chain of dependencies.
const LONGEST_CHAIN: usize = 500;

/// A task with its file.
#[derive(Clone, Copy)]
struct TaskWithFile<'b> {
    name: &'b str,
    task: &'b LaneTask,
    path: Option<&'b str>,
}

impl<'b> Compiler<'b> {
    /// Inserts a step that is a task: the task's dependencies, then its command. A task without a
    /// command is represented by its dependencies. A task that exists already as a dependency is
    /// reused, if the item has no further settings.
    pub(super) fn task_step(
        &mut self,
        item: &StepItem,
        named: &NamedSpan,
        scope: &Scope<'b>,
        waits: &[StepWait],
    ) -> Vec<StepWait> {
        let Some(found) = self.find_task(named, &scope.path, scope, true) else { return Vec::new() };
        let task = found.task;
        if let Some(there) = self.made_for_others(item, named, scope) {
            return self.gather(item, there.into_iter().chain(waits.iter().copied()).collect(), scope);
        }
        let shared = match (scope.form, &task.cmd) {
            (LaneForm::Yaml, Some(_)) => CommandOptions::default(),
            (LaneForm::Toml, _) | (LaneForm::Yaml, None) => item.options.of_each_command(),
        };
        let before = self.insert_dependencies(found, &shared, scope, waits);
        if self.count_and_check_limits(0, before.len(), &scope.path, item.place) {
            return Vec::new();
        }
        let Some(cmd) = &task.cmd else { return self.gather(item, before, scope) };
        let mut options = item.options.clone();
        options.dir = options.dir.or_else(|| task.dir.clone());
        let own = std::mem::take(&mut options.env);
        options.env = task.env.clone().into_iter().chain(own).collect();
        let name = format!("{}{}", scope.prefix, item.name.as_ref().unwrap_or(&named.name));
        let name = match scope.form {
            LaneForm::Yaml => Name::Given(name),
            LaneForm::Toml => Name::Made(name), // a task may occur twice, and nothing distinguishes the two
        };
        let made = self.step(name, cmd, &options, scope, &before);
        self.tasks.insert(format!("{}\0{}", scope.prefix, named.name), vec![made]);
        vec![StepWait::Step(made)]
    }

    /// Returns the existing step of a task that an earlier task depends on, if the item has no
    /// further settings.
    fn made_for_others(&self, item: &StepItem, named: &NamedSpan, scope: &Scope<'b>) -> Option<Vec<StepWait>> {
        let is_bare = item.name.is_none() && item.needs.is_none() && item.options == CommandOptions::default();
        let made = self.tasks.get(&format!("{}\0{}", scope.prefix, named.name))?;
        let is_dependency = !made.is_empty() && made.iter().all(|step| self.steps[*step].step.on_demand);
        let is_reused = scope.form == LaneForm::Yaml && is_bare && is_dependency;
        is_reused.then(|| made.iter().map(|step| StepWait::Dependency(*step)).collect())
    }

    /// Records the steps that a step without a command represents. Returns the dependencies for the
    /// steps after it.
    fn gather(&mut self, item: &StepItem, before: Vec<StepWait>, scope: &Scope<'b>) -> Vec<StepWait> {
        if let Some(key) = item.options.of_one_command() {
            let problem =
                Problem::at(item.place, format!("`{key}` goes with a command, and this task only gathers others"));
            self.report_problem(&scope.path, problem.hint("give it to the tasks that it depends on"));
        }
        let steps = before.iter().filter_map(StepWait::dependency);
        self.gathers.push(TaskGroup {
            entry: self.entries.len(),
            member: self.member,
            steps: steps.collect(),
            when: item.options.when.as_ref().map(|when| when.all.clone()).unwrap_or_default(),
            changed: item.options.changed.clone(),
            env: scope.env.clone(),
        });
        let ended = |wait| if let StepWait::Dependency(step) = wait { StepWait::Step(step) } else { wait };
        before.into_iter().map(ended).collect()
    }

    /// Returns the last steps of a task that others depend on. The first mention inserts the task.
    fn dependency(
        &mut self,
        named: &NamedSpan,
        path: &str,
        shared: &CommandOptions,
        scope: &Scope<'b>,
        waits: &[StepWait],
    ) -> Vec<usize> {
        let key = format!("{}\0{}", scope.prefix, named.name);
        if let Some(made) = self.tasks.get(&key) {
            return made.clone();
        }
        let Some(found) = self.find_task(named, path, scope, false) else { return Vec::new() };
        let before = self.insert_dependencies(found, shared, scope, waits);
        if self.count_and_check_limits(0, before.len(), path, named.place) {
            return Vec::new();
        }
        let made = match &found.task.cmd {
            None => before.iter().filter_map(StepWait::dependency).collect(),
            Some(cmd) => {
                let options =
                    CommandOptions { dir: found.task.dir.clone(), env: found.task.env.clone(), ..shared.clone() };
                let name = format!("{}{}", scope.prefix, named.name);
                let number = self.step(Name::Made(name.clone()), cmd, &options, scope, &before);
                self.steps[number].step.on_demand = true;
                let made = vec![StepWait::Step(number)];
                self.labels.entry(name).or_insert(Label { made, place: named.place, is_dependency: true });
                vec![number]
            }
        };
        self.tasks.insert(key, made.clone());
        made
    }

    /// Inserts the dependencies of a task. Each inserted command gets the options `shared`. Returns
    /// what the task's own command must wait for: the dependencies, and `waits`.
    fn insert_dependencies(
        &mut self,
        task: TaskWithFile<'b>,
        shared: &CommandOptions,
        scope: &Scope<'b>,
        waits: &[StepWait],
    ) -> Vec<StepWait> {
        let path = task.path.unwrap_or(&scope.path);
        self.resolving.push(task.name.to_owned());
        let (mut before, mut tail) = (BTreeSet::new(), Vec::new());
        for dep in &task.task.deps {
            if self.count_and_check_limits(1, 0, path, dep.place) {
                break;
            }
            if let Some(start) = self.resolving.iter().position(|open| *open == dep.name) {
                let circle = format!("{} → {}", self.resolving[start..].join(" → "), dep.name);
                let problem = Problem::at(dep.place, format!("a task depends on itself: {circle}"));
                self.report_problem(path, problem.hint("remove one of these dependencies"));
                continue;
            }
            if self.resolving.len() >= LONGEST_CHAIN {
                let message = format!("a chain of dependencies has more than {LONGEST_CHAIN} tasks");
                self.report_problem(path, Problem::at(dep.place, message).hint("remove some of these dependencies"));
                continue;
            }
            let waits: Vec<StepWait> =
                waits.iter().copied().chain(tail.iter().map(|step| StepWait::Success(*step))).collect();
            let start = self.steps.len();
            let made = self.dependency(dep, path, shared, scope, &waits);
            if task.task.in_order {
                // Steps that this call inserted wait for everything in `tail`, so they replace it.
                // Steps that existed before do not wait, so they are added to `tail`.
                if self.steps.len() > start {
                    tail.clear();
                }
                tail.extend(&made);
            }
            before.extend(made.into_iter().map(StepWait::Dependency));
        }
        self.resolving.pop();
        // The task's own command also waits for `waits`, because dependencies that existed before
        // do not wait for these steps.
        before.extend(waits);
        before.into_iter().collect()
    }

    /// Finds a task by name, for the file at `path`. `is_step` is true for a step, and false for a
    /// dependency of a task.
    fn find_task(
        &mut self,
        named: &NamedSpan,
        path: &str,
        scope: &Scope<'b>,
        is_step: bool,
    ) -> Option<TaskWithFile<'b>> {
        let files = self.files;
        if let Some((name, task)) = scope.tasks.get_key_value(&named.name) {
            return Some(TaskWithFile { name, task, path: None });
        }
        if let Some((name, SharedTask { path, task, is_doubtful })) = files.tasks.get_key_value(&named.name) {
            if *is_doubtful {
                self.fault.merge(&self.files.doubts());
            }
            return match task {
                Ok(task) => Some(TaskWithFile { name, task, path: Some(path) }),
                Err(problems) => {
                    self.fault.files.entry(path.clone()).or_default().merge(problems);
                    None
                }
            };
        }
        if !files.is_whole() {
            self.fault.merge(&self.files.doubts());
            return None;
        }
        if files.lanes.contains_key(&named.name) {
            let name = excerpt(&named.name);
            let problem = Problem::at(named.place, format!("`{name}` is a lane, and here stands a task"));
            self.report_problem(path, problem.hint(lane_hint(&name, scope.form, is_step)));
            return None;
        }
        let names: Vec<&str> = scope.tasks.keys().chain(files.tasks.keys()).map(String::as_str).collect();
        let hint = if names.is_empty() {
            "there are no tasks".into()
        } else {
            format!("there are: {}", listed(names.iter().copied()))
        };
        let problem = Problem::at(named.place, format!("there is no task `{}`", excerpt(&named.name)));
        self.report_problem(path, problem.hint(hint).near(&named.name, names.iter().copied()));
        None
    }
}

/// Returns the hint for a lane that is named in the place of a task.
fn lane_hint(name: &str, form: LaneForm, is_step: bool) -> String {
    match (form, is_step) {
        (_, false) => "a task depends on tasks alone".into(),
        (LaneForm::Yaml, true) => format!("write `{{ lane: {name} }}`"),
        (LaneForm::Toml, true) => {
            format!(
                "a lane inside of another one is written in `lanes/<name>.yaml`, with the step `{{ lane: {name} }}`"
            )
        }
    }
}

impl StepWait {
    fn dependency(&self) -> Option<usize> {
        match self {
            Self::Dependency(number) => Some(*number),
            Self::Step(_) | Self::Success(_) | Self::Needs(_) | Self::Joint(_) => None,
        }
    }
}
