//! Makes a lane of what is written: tasks and included lanes are put in their place, every step gets a name and the steps that
//! it waits for. Nothing is left that could be unknown, ambiguous, or wait for itself.

use super::book::{Book, LaneFault};
use super::draft::{Draft, Item, Kind, Named, Options, Task};
use super::{Lane, Step, order};
use crate::limits::LANE_TIMEOUT;
use crate::yaml::{Place, Problem, excerpt};
use std::collections::{BTreeMap, BTreeSet};

/// The most steps of a lane: what includes and tasks can grow to.
const MOST_STEPS: usize = 10_000;
/// The deepest that lanes include each other.
const DEEPEST: usize = 32;

/// Makes the lane `name` of the book.
pub(super) fn compile(book: &Book, name: &str) -> Result<Lane, LaneFault> {
    let mut compiler = Compiler { book, ..Compiler::new(book) };
    let Some(draft) = compiler.open(name, None) else { return Err(compiler.fault) };
    let scope =
        Scope { path: compiler.path_of(name), prefix: String::new(), env: BTreeMap::new(), tasks: &draft.tasks };
    compiler.including.push(name.to_owned());
    compiler.items(&draft.items, &scope, &[]);
    let steps = compiler.finish();
    if !compiler.fault.files.is_empty() {
        return Err(compiler.fault);
    }
    Ok(Lane {
        name: name.to_owned(),
        description: draft.description.clone(),
        fail_fast: draft.fail_fast.unwrap_or(true),
        timeout: draft.timeout.unwrap_or(LANE_TIMEOUT),
        env: draft.env.clone(),
        jobs: draft.jobs,
        steps,
    })
}

/// What a step waits for while not every name is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Wait {
    /// A step that must have ended.
    Step(usize),
    /// A step that must have succeeded.
    Success(usize),
    /// The names of one `needs`.
    Needs(usize),
}

/// The file that is being put in, and what holds in it.
struct Scope<'b> {
    path: String,
    prefix: String,
    env: BTreeMap<String, String>,
    tasks: &'b BTreeMap<String, Task>,
}

struct Compiler<'b> {
    book: &'b Book,
    steps: Vec<(Step, Vec<Wait>)>,
    /// By whole name: the last steps of what is called so, and the line where it stands.
    labels: BTreeMap<String, (Vec<usize>, Place)>,
    needs: Vec<(Vec<Named>, String, String)>,
    /// Tasks that are in the lane, by file and name.
    tasks: BTreeMap<String, Vec<usize>>,
    including: Vec<String>,
    resolving: Vec<String>,
    fault: LaneFault,
}

impl<'b> Compiler<'b> {
    fn new(book: &'b Book) -> Self {
        Self {
            book,
            steps: Vec::new(),
            labels: BTreeMap::new(),
            needs: Vec::new(),
            tasks: BTreeMap::new(),
            including: Vec::new(),
            resolving: Vec::new(),
            fault: LaneFault::default(),
        }
    }

    fn path_of(&self, lane: &str) -> String {
        self.book.lanes.get(lane).map(|chapter| chapter.path.clone()).unwrap_or_default()
    }

    /// The draft of a lane, or what is wrong with it; `from` is who asks.
    fn open(&mut self, lane: &str, from: Option<(&str, Place)>) -> Option<&'b Draft> {
        let Some(chapter) = self.book.lanes.get(lane) else {
            if let Some((path, place)) = from {
                let problem = Problem::at(place, format!("there is no lane `{}`", excerpt(lane)));
                let known: Vec<&str> = self.book.names().collect();
                let hint = format!("there are: {}", known.join(", "));
                self.complain(path, problem.hint(hint).near(lane, known.iter().copied()));
            }
            return None;
        };
        match &chapter.draft {
            Ok(draft) => Some(draft),
            Err(problems) => {
                self.fault.files.insert(chapter.path.clone(), problems.clone());
                None
            }
        }
    }

    /// Puts entries in one after the other. What has no `needs` waits for everything before it; gives the last steps.
    fn items(&mut self, items: &[Item], scope: &Scope<'b>, first: &[Wait]) -> Vec<usize> {
        let mut before: Vec<Wait> = first.to_vec();
        let mut last: Vec<usize> = Vec::new();
        for item in items {
            let waits = self.waits(item, scope, &before);
            let made = self.item(item, scope, &waits);
            if item.needs.is_none() {
                last.clear();
            }
            last.extend(made);
            before = last.iter().map(|step| Wait::Step(*step)).collect();
            if before.is_empty() {
                before = first.to_vec();
            }
        }
        last
    }

    fn waits(&mut self, item: &Item, scope: &Scope<'b>, otherwise: &[Wait]) -> Vec<Wait> {
        match &item.needs {
            None => otherwise.to_vec(),
            Some(names) => {
                self.needs.push((names.clone(), scope.path.clone(), scope.prefix.clone()));
                vec![Wait::Needs(self.needs.len() - 1)]
            }
        }
    }

    fn item(&mut self, item: &Item, scope: &Scope<'b>, waits: &[Wait]) -> Vec<usize> {
        if self.steps.len() >= MOST_STEPS {
            self.complain(&scope.path, Problem::at(item.place, format!("a lane has at most {MOST_STEPS} steps")));
            return Vec::new();
        }
        let made = match &item.kind {
            Kind::Run(run) => {
                let name = item.name.as_ref().map(|name| format!("{}{name}", scope.prefix));
                vec![self.step(name, &scope.prefix, run, &item.options, scope, waits)]
            }
            Kind::Task(named) => self.task_step(item, named, scope, waits),
            Kind::Lane(named) => self.include(item, named, scope, waits),
            Kind::Group(members) => {
                let mut made = Vec::new();
                for member in members {
                    let waits = self.waits(member, scope, waits);
                    made.extend(self.item(member, scope, &waits));
                }
                made
            }
        };
        let label = item.name.clone().or_else(|| match &item.kind {
            Kind::Task(named) | Kind::Lane(named) => Some(named.name.clone()),
            Kind::Run(_) | Kind::Group(_) => None,
        });
        if let Some(label) = label {
            self.label(&label, &made, item, scope);
        }
        made
    }

    fn label(&mut self, label: &str, made: &[usize], item: &Item, scope: &Scope<'b>) {
        let whole = format!("{}{label}", scope.prefix);
        if let Some((_, first)) = self.labels.insert(whole, (made.to_vec(), item.place)) {
            let message = format!("a second step is named `{}`; the first is in line {}", excerpt(label), first.line);
            self.complain(&scope.path, Problem::at(item.place, message).hint("give one of them another name"));
        }
    }

    /// A step that is a task: the task's dependencies, each once in a lane, then its command.
    fn task_step(&mut self, item: &Item, named: &Named, scope: &Scope<'b>, waits: &[Wait]) -> Vec<usize> {
        let Some(task) = self.find_task(named, scope) else { return Vec::new() };
        let before = self.dependencies(&named.name, task, scope, waits);
        let Some(cmd) = &task.cmd else { return before.iter().filter_map(Wait::step).collect() };
        let mut options = item.options.clone();
        options.dir = options.dir.or_else(|| task.dir.clone());
        let own = std::mem::take(&mut options.env);
        options.env = task.env.clone().into_iter().chain(own).collect();
        let name = format!("{}{}", scope.prefix, item.name.as_ref().unwrap_or(&named.name));
        let made = vec![self.step(Some(name), &scope.prefix, cmd, &options, scope, &before)];
        self.tasks.insert(format!("{}\0{}", scope.prefix, named.name), made.clone());
        made
    }

    /// The last steps of a task that others depend on; put in at its first mention.
    fn dependency(&mut self, named: &Named, scope: &Scope<'b>, waits: &[Wait]) -> Vec<usize> {
        let key = format!("{}\0{}", scope.prefix, named.name);
        if let Some(made) = self.tasks.get(&key) {
            return made.clone();
        }
        let Some(task) = self.find_task(named, scope) else { return Vec::new() };
        let before = self.dependencies(&named.name, task, scope, waits);
        let made = match &task.cmd {
            None => before.iter().filter_map(Wait::step).collect(),
            Some(cmd) => {
                let options = Options { dir: task.dir.clone(), env: task.env.clone(), ..Options::default() };
                let name = format!("{}{}", scope.prefix, named.name);
                let made = vec![self.step(Some(name.clone()), &scope.prefix, cmd, &options, scope, &before)];
                self.labels.entry(name).or_insert_with(|| (made.clone(), named.place));
                made
            }
        };
        self.tasks.insert(key, made.clone());
        made
    }

    fn dependencies(&mut self, name: &str, task: &Task, scope: &Scope<'b>, waits: &[Wait]) -> Vec<Wait> {
        self.resolving.push(name.to_owned());
        let mut before: BTreeSet<Wait> = BTreeSet::new();
        for dep in &task.deps {
            if let Some(start) = self.resolving.iter().position(|open| *open == dep.name) {
                let circle = format!("{} → {}", self.resolving[start..].join(" → "), dep.name);
                let problem = Problem::at(dep.place, format!("a task depends on itself: {circle}"));
                self.complain(&scope.path, problem.hint("remove one of these dependencies"));
                continue;
            }
            before.extend(self.dependency(dep, scope, waits).into_iter().map(Wait::Success));
        }
        self.resolving.pop();
        // Also when every dependency is there already, it has its place in the order.
        before.extend(waits);
        before.into_iter().collect()
    }

    fn find_task(&mut self, named: &Named, scope: &Scope<'b>) -> Option<&'b Task> {
        let found = scope.tasks.get(&named.name).or_else(|| self.book.tasks.get(&named.name));
        if found.is_none() {
            let known: Vec<&String> = scope.tasks.keys().chain(self.book.tasks.keys()).collect();
            let names: Vec<&str> = known.iter().map(|name| name.as_str()).collect();
            let hint =
                if names.is_empty() { "there are no tasks".into() } else { format!("there are: {}", names.join(", ")) };
            let problem = Problem::at(named.place, format!("there is no task `{}`", excerpt(&named.name)));
            self.complain(&scope.path, problem.hint(hint).near(&named.name, names.iter().copied()));
        }
        found
    }

    /// Puts another lane in: its steps get its label before their names.
    fn include(&mut self, item: &Item, named: &Named, scope: &Scope<'b>, waits: &[Wait]) -> Vec<usize> {
        if self.including.contains(&named.name) || self.including.len() >= DEEPEST {
            let circle = format!("{} → {}", self.including.join(" → "), named.name);
            let problem = Problem::at(named.place, format!("a lane includes itself: {circle}"));
            self.complain(&scope.path, problem.hint("remove one of these steps"));
            return Vec::new();
        }
        let Some(draft) = self.open(&named.name, Some((&scope.path, named.place))) else { return Vec::new() };
        let label = item.name.as_ref().unwrap_or(&named.name);
        let outer = scope.env.iter().chain(&item.options.env);
        let env = draft.env.iter().chain(outer).map(|(name, value)| (name.clone(), value.clone())).collect();
        let prefix = format!("{}{label}/", scope.prefix);
        let inner = Scope { path: self.path_of(&named.name), prefix, env, tasks: &draft.tasks };
        self.including.push(named.name.clone());
        let made = self.items(&draft.items, &inner, waits);
        self.including.pop();
        made
    }

    fn step(
        &mut self,
        name: Option<String>,
        prefix: &str,
        run: &str,
        options: &Options,
        scope: &Scope<'b>,
        waits: &[Wait],
    ) -> usize {
        let env = scope.env.iter().chain(&options.env).map(|(name, value)| (name.clone(), value.clone())).collect();
        // A name that is made comes later, when all given ones are known; until then the prefix marks its place.
        let name = name.unwrap_or_else(|| format!("{prefix}\0"));
        let step = Step {
            name,
            run: run.to_owned(),
            shell: options.shell.clone().unwrap_or_else(
                || vec!["/bin/sh".into(), "-c".into()], /* by path: PATH may lead to what an agent wrote */
            ),
            dir: options.dir.clone(),
            env,
            timeout: options.timeout,
            retries: options.retries,
            retry_delay: options.retry_delay,
            when: options.when.clone(),
            changed: options.changed.clone(),
            allow_failure: options.allow_failure,
            junit: options.junit.clone(),
            after: Vec::new(),
            needs: Vec::new(),
        };
        self.steps.push((step, waits.to_vec()));
        self.steps.len() - 1
    }

    /// Settles names and what is waited for.
    fn finish(&mut self) -> Vec<Step> {
        let needs = self.resolve_needs();
        let mut taken: BTreeSet<String> =
            self.steps.iter().map(|(step, _)| step.name.clone()).filter(|name| !name.ends_with('\0')).collect();
        let mut steps = Vec::new();
        for (mut step, waits) in std::mem::take(&mut self.steps) {
            if let Some(prefix) = step.name.strip_suffix('\0') {
                step.name = order::free_name(&format!("{prefix}{}", order::first_words(&step.run)), &taken);
                taken.insert(step.name.clone());
            }
            let (mut after, mut needed) = (BTreeSet::new(), BTreeSet::new());
            for wait in waits {
                match wait {
                    Wait::Step(number) => drop(after.insert(number)),
                    Wait::Success(number) => drop(needed.insert(number)),
                    Wait::Needs(number) => needed.extend(needs[number].iter().copied()),
                }
            }
            after.extend(needed.iter().copied());
            step.after = after.into_iter().collect();
            step.needs = needed.into_iter().collect();
            steps.push(step);
        }
        self.refuse_circles(&steps);
        steps
    }

    fn resolve_needs(&mut self) -> Vec<Vec<usize>> {
        let mut resolved = Vec::new();
        for (names, path, prefix) in std::mem::take(&mut self.needs) {
            let mut steps = Vec::new();
            for named in names {
                if let Some((made, _)) = self.labels.get(&format!("{prefix}{}", named.name)) {
                    steps.extend(made.iter().copied());
                    continue;
                }
                let inside = |label: &&String| label.strip_prefix(&prefix).is_some_and(|rest| !rest.contains('/'));
                let known: Vec<String> =
                    self.labels.keys().filter(inside).map(|l| l[prefix.len()..].to_owned()).collect();
                let problem = Problem::at(named.place, format!("there is no step `{}`", excerpt(&named.name)));
                let hint = format!("steps with a name: {}", known.join(", "));
                self.complain(&path, problem.hint(hint).near(&named.name, known.iter().map(String::as_str)));
            }
            resolved.push(steps);
        }
        resolved
    }

    fn refuse_circles(&mut self, steps: &[Step]) {
        let Some(circle) = order::circle(steps) else { return };
        let names: Vec<&str> = circle.iter().map(|number| steps[*number].name.as_str()).collect();
        let place = names.iter().find_map(|name| self.labels.get(*name));
        let place = place.map_or(Place { line: 1, column: 1 }, |label| label.1);
        let problem = Problem::at(place, format!("steps wait for each other: {}", names.join(" → ")));
        let hint = "a step without `needs` waits for all before it; give it `needs: []` if it should not";
        self.complain(&self.path_of(&self.including[0]), problem.hint(hint));
    }

    fn complain(&mut self, path: &str, problem: Problem) {
        self.fault.files.entry(path.to_owned()).or_default().push(problem);
    }
}

impl Wait {
    fn step(&self) -> Option<usize> {
        match self {
            Self::Step(number) | Self::Success(number) => Some(*number),
            Self::Needs(_) => None,
        }
    }
}

#[cfg(test)]
#[path = "compile_tests.rs"]
mod tests;
