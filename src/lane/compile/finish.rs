//! The end of the compilation, when every name is known: final names of steps, their dependencies,
//! and a check for cycles.

use super::{Compiler, StepWait};
use crate::lane::draft::NamedSpan;
use crate::lane::order::StepNames;
use crate::lane::{Joint, Step, order};
use crate::yaml::{FilePlace, Problem, excerpt, listed};
use std::collections::{BTreeMap, BTreeSet};

/// The resolved waits of a step or joint, as numbers of steps and joints.
#[derive(Default)]
struct ResolvedWaits {
    after: BTreeSet<usize>,
    needs: BTreeSet<usize>,
    deps: BTreeSet<usize>,
    joints: BTreeSet<usize>,
}

impl Compiler<'_> {
    /// Resolves names and dependencies.
    pub(super) fn finish(&mut self) -> (Vec<Step>, Vec<Joint>) {
        if self.is_full {
            return (Vec::new(), Vec::new());
        }
        let needs = self.resolve_needs();
        let given = self.steps.iter().filter(|pending| !pending.is_made);
        let mut names = StepNames::new(given.map(|pending| pending.step.name.clone()).collect());
        let mut steps = Vec::new();
        for mut pending in std::mem::take(&mut self.steps) {
            if pending.is_made {
                pending.step.name = names.claim(&pending.step.name);
            }
            let ResolvedWaits { after, needs, deps, joints } = self.resolve_waits(pending.waits, &needs);
            let [after, needs, deps, joints] =
                [after, needs, deps, joints].map(|numbers| numbers.into_iter().collect());
            steps.push(Step { after, needs, deps, joints, ..pending.step });
        }
        let mut joints_of_lane = Vec::new();
        for waits in std::mem::take(&mut self.joints) {
            let ResolvedWaits { after, joints, .. } = self.resolve_waits(waits, &needs);
            joints_of_lane.push(Joint { steps: after.into_iter().collect(), joints: joints.into_iter().collect() });
        }
        self.report_cycles(&steps, &joints_of_lane);
        self.resolve_entries(&steps);
        (steps, joints_of_lane)
    }

    /// Converts the waits of one step or joint into the numbers of steps and joints. `needs[n]`
    /// holds the steps that the n-th `needs` list names. In the result, `needs` contains `deps`,
    /// and `after` contains `needs`.
    fn resolve_waits(&mut self, waits: Vec<StepWait>, needs: &[Vec<usize>]) -> ResolvedWaits {
        let mut resolved = ResolvedWaits::default();
        for wait in waits {
            match wait {
                StepWait::Step(number) => drop(resolved.after.insert(number)),
                StepWait::Success(number) => drop(resolved.needs.insert(number)),
                StepWait::Dependency(number) => drop(resolved.deps.insert(number)),
                StepWait::Joint(number) => drop(resolved.joints.insert(number)),
                StepWait::Needs(number) => {
                    if !self.count_and_check_waits(needs[number].len()) {
                        resolved.needs.extend(&needs[number]);
                    }
                }
            }
        }
        resolved.needs.extend(&resolved.deps);
        resolved.after.extend(&resolved.needs);
        resolved
    }

    /// Counts further waits. Returns true if the lane exceeds a limit; the excess is reported once,
    /// at the start of the lane's file.
    fn count_and_check_waits(&mut self, waits: usize) -> bool {
        let path = self.path_of(&self.including[0]);
        self.count_and_check_limits(0, waits, &path, FilePlace { line: 1, column: 1 })
    }

    /// Returns the numbers of the steps that each `needs` names, and reports unknown names. A label
    /// may stand for a joint or another `needs`, which are replaced by their steps. A list over the
    /// limit of waits becomes empty.
    fn resolve_needs(&mut self) -> Vec<Vec<usize>> {
        let all = std::mem::take(&mut self.needs);
        for (names, path, prefix) in &all {
            for named in names {
                if self.labels.contains_key(&format!("{prefix}{}", named.name)) {
                    continue;
                }
                let inside = |label: &&String| label.strip_prefix(prefix).is_some_and(|rest| !rest.contains('/'));
                let known: Vec<String> =
                    self.labels.keys().filter(inside).map(|l| l[prefix.len()..].to_owned()).collect();
                let problem = Problem::at(named.place, format!("there is no step `{}`", excerpt(&named.name)));
                let names = listed(known.iter().map(String::as_str));
                let hint =
                    if known.is_empty() { "no step has a name".into() } else { format!("steps with a name: {names}") };
                self.report_problem(path, problem.hint(hint).near(&named.name, known.iter().map(String::as_str)));
            }
        }
        let mut resolved = Vec::new();
        for (names, _, prefix) in &all {
            let mut open: Vec<StepWait> = Vec::new();
            let (mut steps, mut seen) = (BTreeSet::new(), BTreeSet::new());
            let made = |named: &NamedSpan, prefix: &str| self.labels.get(&format!("{prefix}{}", named.name));
            open.extend(names.iter().filter_map(|named| made(named, prefix)).flat_map(|label| &label.made));
            while let Some(wait) = open.pop() {
                match wait {
                    StepWait::Step(number) | StepWait::Success(number) | StepWait::Dependency(number) => {
                        steps.insert(number);
                    }
                    StepWait::Joint(number) if seen.insert(wait) => open.extend(&self.joints[number]),
                    StepWait::Needs(number) if seen.insert(wait) => {
                        let (names, _, prefix) = &all[number];
                        open.extend(names.iter().filter_map(|named| made(named, prefix)).flat_map(|label| &label.made));
                    }
                    StepWait::Joint(_) | StepWait::Needs(_) => {}
                }
            }
            if self.count_and_check_waits(steps.len()) {
                steps.clear();
            }
            resolved.push(steps.into_iter().collect());
        }
        resolved
    }

    /// Reports each cycle of steps that wait for each other.
    fn report_cycles(&mut self, steps: &[Step], joints: &[Joint]) {
        for cycle in order::circles(steps, joints) {
            let names: Vec<&str> = cycle.iter().map(|number| steps[*number].name.as_str()).collect();
            let place = names.iter().find_map(|name| self.labels.get(*name));
            let place = place.map_or(FilePlace { line: 1, column: 1 }, |label| label.place);
            let problem = Problem::at(place, format!("steps wait for each other: {}", names.join(" → ")));
            let hint = "a step without `needs` waits for all earlier steps; add `needs: []` to start the step at once";
            self.report_problem(&self.path_of(&self.including[0]), problem.hint(hint));
        }
    }

    /// Finds the steps that an entry depends on and that an earlier entry inserted.
    fn resolve_entries(&mut self, steps: &[Step]) {
        let mut gathered: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for gather in &self.gathers {
            gathered.entry(gather.entry).or_default().extend(&gather.steps);
        }
        let mut entries = std::mem::take(&mut self.entries);
        for (number, entry) in entries.iter_mut().enumerate() {
            let mut needed: BTreeSet<usize> = gathered.remove(&number).into_iter().flatten().collect();
            let mut open: Vec<usize> = entry.steps.iter().chain(&needed).copied().collect();
            while let Some(step) = open.pop() {
                open.extend(steps[step].deps.iter().filter(|dep| needed.insert(**dep)));
            }
            if self.count_and_check_waits(needed.len()) {
                break;
            }
            let is_own = |step: &usize| entry.steps.first().is_some_and(|first| step >= first);
            entry.needed = needed.into_iter().filter(|step| !is_own(step)).collect();
        }
        self.entries = entries;
    }
}
