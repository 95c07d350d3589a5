//! The compiler of lanes. It inserts tasks and included lanes, and sets names and dependencies.

mod finish;
mod tasks;
mod terms;

use super::draft::{CommandOptions, LaneDraft, LaneForm, LaneTask, NamedSpan, StepItem, StepKind};
use super::entry::{GroupMember, StepEntry, TaskGroup, called};
use super::lane_files::{LaneError, LaneFiles};
use super::{Lane, Step, order};
use crate::limits::LANE_TIMEOUT;
use crate::yaml::{FilePlace, Problem, excerpt, listed};
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;
use terms::lesser;

/// The maximum number of steps of a lane, with includes and tasks.
const MOST_STEPS: usize = 10_000;
/// The maximum number of inserted items and mentions of tasks, with or without steps.
const MOST_ITEMS: usize = 30_000;
/// The maximum number of dependencies that steps declare individually.
const MOST_WAITS: usize = 1_000_000;
/// The maximum depth of lanes that include each other.
const DEEPEST: usize = 32;

/// Compiles a lane of these files.
pub(super) fn compile(files: &LaneFiles, name: &str) -> Result<Lane, LaneError> {
    let mut compiler = Compiler::new(files);
    let Some(draft) = compiler.open(name, None) else { return Err(compiler.fault) };
    let scope = Scope::of(draft, compiler.path_of(name), String::new(), BTreeMap::new());
    compiler.including.push(name.to_owned());
    compiler.items(&draft.items, &scope, &[]);
    let (steps, joints) = compiler.finish();
    let (terms, built) = (draft.terms.clone(), Vec::new());
    let setup = compiler.setup(&terms.setup, &scope);
    compiler.refuse_unknown_canary(terms.canary_step.as_ref(), &steps, &scope.path);
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
        joints,
        entries: compiler.entries,
        gathers: compiler.gathers,
        room: terms.room.unwrap_or_default(),
        setup,
        cache: terms.cache,
        built,
        network: terms.network.unwrap_or(false),
        writes: terms.writes.unwrap_or(false),
        canary: terms.canary.unwrap_or_default(),
        flaky: terms.flaky.unwrap_or_default(),
        include_ignored: terms.include_ignored,
        hidden: terms.hidden,
        held_out: None,
    })
}

/// A dependency of a step, before every name is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum StepWait {
    /// A step that must have ended.
    Step(usize),
    /// A step that must have succeeded.
    Success(usize),
    /// A step that the step's task depends on.
    Dependency(usize),
    /// The names of one `needs`.
    Needs(usize),
    /// A joint, all of which must have ended.
    Joint(usize),
}

/// The file whose items are inserted, with its settings.
struct Scope<'b> {
    path: String,
    form: LaneForm,
    prefix: String,
    env: BTreeMap<String, String>,
    /// The time limit of each step, if an included lane sets one.
    timeout: Option<Duration>,
    tasks: &'b BTreeMap<String, LaneTask>,
}

impl<'b> Scope<'b> {
    fn of(draft: &'b LaneDraft, path: String, prefix: String, env: BTreeMap<String, String>) -> Self {
        Self { path, form: draft.form, prefix, env, timeout: None, tasks: &draft.tasks }
    }
}

/// A step without its final name and dependencies.
struct Pending {
    step: Step,
    /// True if the name was generated and yields to given names.
    is_made: bool,
    waits: Vec<StepWait>,
}

/// The name of a step.
enum Name {
    /// A given name.
    Given(String),
    /// A generated name, which may get a number.
    Made(String),
}

/// A target of `needs`.
struct Label {
    /// The last steps of the target.
    made: Vec<StepWait>,
    place: FilePlace,
    /// True for a dependency that gave its name to a step.
    is_dependency: bool,
}

struct Compiler<'b> {
    files: &'b LaneFiles,
    steps: Vec<Pending>,
    entries: Vec<StepEntry>,
    gathers: Vec<TaskGroup>,
    /// The steps of each member of the last group.
    members: Vec<Range<usize>>,
    /// The number of the current member, in a group of the lane itself.
    member: Option<usize>,
    /// Targets by full name.
    labels: BTreeMap<String, Label>,
    needs: Vec<(Vec<NamedSpan>, String, String)>,
    /// Sets of steps that several steps wait for together.
    joints: Vec<Vec<StepWait>>,
    /// Tasks in the lane, by file and name.
    tasks: BTreeMap<String, Vec<usize>>,
    including: Vec<String>,
    resolving: Vec<String>,
    /// The test reports of steps, with the name of the step.
    reports: BTreeMap<PathBuf, String>,
    /// The numbers of items and task mentions, and of dependencies.
    items: usize,
    waits: usize,
    /// True if the lane is too large. The compiler reports this once and stops.
    is_full: bool,
    fault: LaneError,
}

impl<'b> Compiler<'b> {
    fn new(files: &'b LaneFiles) -> Self {
        Self {
            files,
            steps: Vec::new(),
            entries: Vec::new(),
            gathers: Vec::new(),
            members: Vec::new(),
            member: None,
            labels: BTreeMap::new(),
            needs: Vec::new(),
            joints: Vec::new(),
            tasks: BTreeMap::new(),
            including: Vec::new(),
            resolving: Vec::new(),
            reports: BTreeMap::new(),
            items: 0,
            waits: 0,
            is_full: false,
            fault: LaneError::default(),
        }
    }

    fn path_of(&self, lane: &str) -> String {
        self.files.lanes.get(lane).map(|file| file.path.clone()).unwrap_or_default()
    }

    /// Returns the readable part of a lane and reports its problems. `from` is the include.
    fn open(&mut self, lane: &str, from: Option<(&str, FilePlace)>) -> Option<&'b LaneDraft> {
        let Some(file) = self.files.lanes.get(lane) else {
            match from {
                Some((path, place)) if self.files.is_whole() => {
                    let problem = Problem::at(place, format!("there is no lane `{}`", excerpt(lane)));
                    let hint = format!("there are: {}", listed(self.files.names()));
                    self.report_problem(path, problem.hint(hint).near(lane, self.files.names()));
                }
                Some(_) | None => self.fault.merge(&self.files.doubts()),
            }
            return None;
        };
        if file.is_doubtful {
            self.fault.merge(&self.files.doubts());
        }
        if !file.problems.is_empty() {
            self.fault.files.entry(file.path.clone()).or_default().merge(&file.problems);
        }
        file.draft.as_ref()
    }

    /// Inserts entries. Without `needs`, an entry waits for all before. Returns the last steps.
    fn items(&mut self, items: &[StepItem], scope: &Scope<'b>, first: &[StepWait]) -> Vec<StepWait> {
        let mut last: Vec<StepWait> = Vec::new();
        for item in items {
            let waits = match &item.needs {
                Some(names) => self.named_waits(names, scope),
                None => self.all_of(std::mem::take(&mut last), first),
            };
            let start = self.steps.len();
            let made = self.item(item, scope, &waits);
            if self.is_full {
                break;
            }
            if self.including.len() == 1 {
                self.entry(item, start);
            }
            last.extend(made);
            if last.is_empty() && item.needs.is_none() {
                last = waits;
            }
        }
        last
    }

    /// Returns a dependency on all of `last`, or `otherwise` if `last` is empty.
    fn all_of(&mut self, last: Vec<StepWait>, otherwise: &[StepWait]) -> Vec<StepWait> {
        match last.as_slice() {
            [] => otherwise.to_vec(),
            [StepWait::Step(_) | StepWait::Joint(_)] => last,
            [_, ..] => {
                self.joints.push(last);
                vec![StepWait::Joint(self.joints.len() - 1)]
            }
        }
    }

    fn named_waits(&mut self, names: &[NamedSpan], scope: &Scope<'b>) -> Vec<StepWait> {
        self.needs.push((names.to_vec(), scope.path.clone(), scope.prefix.clone()));
        vec![StepWait::Needs(self.needs.len() - 1)]
    }

    fn item(&mut self, item: &StepItem, scope: &Scope<'b>, waits: &[StepWait]) -> Vec<StepWait> {
        if self.count_and_check_limits(1, 0, &scope.path, item.place) {
            return Vec::new();
        }
        let made = match &item.kind {
            StepKind::Run(run) => {
                let given = item.name.as_ref().map(|name| Name::Given(format!("{}{name}", scope.prefix)));
                let made = || Name::Made(format!("{}{}", scope.prefix, order::first_words(run)));
                vec![StepWait::Step(self.step(given.unwrap_or_else(made), run, &item.options, scope, waits))]
            }
            StepKind::Task(named) => self.task_step(item, named, scope, waits),
            StepKind::Lane(named) => self.include(item, named, scope, waits),
            StepKind::Group(members) => {
                let (mut made, mut ranges) = (Vec::new(), Vec::new());
                let is_own = self.including.len() == 1;
                for (number, member) in members.iter().enumerate() {
                    self.member = if is_own { Some(number) } else { self.member };
                    let own = member.needs.as_ref().map(|names| self.named_waits(names, scope));
                    let start = self.steps.len();
                    made.extend(self.item(member, scope, own.as_deref().unwrap_or(waits)));
                    if self.is_full {
                        break;
                    }
                    ranges.push(start..self.steps.len());
                }
                self.member = if is_own { None } else { self.member };
                self.members = ranges;
                made
            }
        };
        let label = item.name.clone().or_else(|| match &item.kind {
            StepKind::Task(named) | StepKind::Lane(named) => Some(named.name.clone()),
            StepKind::Run(_) | StepKind::Group(_) => None,
        });
        if let Some(label) = label {
            self.label(&label, &made, item, scope);
        }
        if item.options.junit.is_some() && !self.is_full {
            self.refuse_shared_report(item, scope);
        }
        made
    }

    fn label(&mut self, label: &str, made: &[StepWait], item: &StepItem, scope: &Scope<'b>) {
        let whole = format!("{}{label}", scope.prefix);
        let new = Label { made: made.to_vec(), place: item.place, is_dependency: false };
        if scope.form == LaneForm::Toml {
            self.labels.entry(whole).or_insert(new);
            return; // TOML has no names and no `needs`, so labels may repeat
        }
        if let Some(Label { place, is_dependency: false, .. }) = self.labels.insert(whole, new) {
            let message = format!("a second step is named `{}`; the first is in line {}", excerpt(label), place.line);
            self.report_problem(&scope.path, Problem::at(item.place, message).hint("give one of them another name"));
        }
    }

    /// Records the steps that an item of the lane itself has inserted since `start`.
    fn entry(&mut self, item: &StepItem, start: usize) {
        let (name, kind) = called(item);
        let items = match &item.kind {
            StepKind::Group(items) => {
                let member = |(item, steps): (&StepItem, Range<usize>)| {
                    let (name, kind) = called(item);
                    GroupMember { name, kind, steps: steps.collect() }
                };
                items.iter().zip(std::mem::take(&mut self.members)).map(member).collect()
            }
            StepKind::Run(_) | StepKind::Task(_) | StepKind::Lane(_) => Vec::new(),
        };
        let CommandOptions { when, timeout, retries, retry_delay, .. } = &item.options;
        self.entries.push(StepEntry {
            name,
            kind,
            items,
            steps: (start..self.steps.len()).collect(),
            needed: Vec::new(), // filled in at the end
            when: when.as_ref().map(|when| when.text.clone()),
            timeout: *timeout,
            retries: *retries,
            retry_delay: *retry_delay,
        });
    }

    /// Inserts another lane. The names of its steps get the item's label as a prefix.
    fn include(&mut self, item: &StepItem, named: &NamedSpan, scope: &Scope<'b>, waits: &[StepWait]) -> Vec<StepWait> {
        if self.including.contains(&named.name) || self.including.len() >= DEEPEST {
            let circle = format!("{} → {}", self.including.join(" → "), named.name);
            let problem = Problem::at(named.place, format!("a lane includes itself: {circle}"));
            self.report_problem(&scope.path, problem.hint("remove one of these steps"));
            return Vec::new();
        }
        let Some(draft) = self.open(&named.name, Some((&scope.path, named.place))) else { return Vec::new() };
        let label = item.name.as_ref().unwrap_or(&named.name);
        let outer = scope.env.iter().chain(&item.options.env);
        let env = draft.env.iter().chain(outer).map(|(name, value)| (name.clone(), value.clone())).collect();
        let inner = Scope::of(draft, self.path_of(&named.name), format!("{}{label}/", scope.prefix), env);
        let inner = Scope { timeout: lesser(draft.timeout, scope.timeout), ..inner };
        self.including.push(named.name.clone());
        let made = self.items(&draft.items, &inner, waits);
        self.including.pop();
        made
    }

    fn step(
        &mut self,
        name: Name,
        run: &str,
        options: &CommandOptions,
        scope: &Scope<'b>,
        waits: &[StepWait],
    ) -> usize {
        let env = scope.env.iter().chain(&options.env).map(|(name, value)| (name.clone(), value.clone())).collect();
        let (name, is_made) = match name {
            Name::Given(name) => (name, false),
            Name::Made(name) => (name, true),
        };
        let pause = if options.retries.is_some() { scope.form.retry_delay() } else { Duration::ZERO };
        let step = Step {
            name,
            run: run.to_owned(),
            shell: options.shell.clone().unwrap_or_else(
                || vec!["/bin/sh".into(), "-c".into()], /* absolute: PATH may lead to a file of the agent */
            ),
            dir: options.dir.clone(),
            env,
            timeout: lesser(options.timeout, scope.timeout),
            retries: options.retries.unwrap_or(0),
            retry_delay: options.retry_delay.unwrap_or(pause),
            when: options.when.as_ref().map(|when| when.all.clone()).unwrap_or_default(),
            changed: options.changed.clone(),
            allow_failure: options.allow_failure,
            junit: options.junit.clone(),
            after: Vec::new(),
            joints: Vec::new(),
            needs: Vec::new(),
            deps: Vec::new(),
            on_demand: false,
        };
        self.steps.push(Pending { step, is_made, waits: waits.to_vec() });
        self.steps.len() - 1
    }

    /// Counts items and dependencies before they are inserted. Returns true if the lane exceeds a
    /// limit, and reports the excess once.
    fn count_and_check_limits(&mut self, items: usize, waits: usize, path: &str, place: FilePlace) -> bool {
        (self.items, self.waits) = (self.items + items, self.waits + waits);
        let most = match self {
            Self { is_full: true, .. } => None,
            Self { steps, .. } if steps.len() >= MOST_STEPS => Some(format!("at most {MOST_STEPS} steps")),
            Self { items: MOST_ITEMS.., .. } => Some(format!("at most {MOST_ITEMS} items in all that it includes")),
            Self { waits: MOST_WAITS.., .. } => Some(format!("at most {MOST_WAITS} pairs of steps of which one waits")),
            Self { .. } => None,
        };
        if let Some(most) = most {
            self.is_full = true;
            self.report_problem(
                path,
                Problem::at(place, format!("a lane has {most}")).hint("make several lanes of it"),
            );
        }
        self.is_full
    }

    fn report_problem(&mut self, path: &str, problem: Problem) {
        self.fault.files.entry(path.to_owned()).or_default().push(problem);
    }
}

#[cfg(test)]
mod tests;
