//! The end of compiling, when every name is known: what steps are called, what they wait for, and whether that goes in circles.

use super::{Compiler, Wait};
use crate::lane::{Step, order};
use crate::yaml::{Place, Problem, excerpt};
use std::collections::BTreeSet;

impl Compiler<'_> {
    /// Settles names and what is waited for.
    pub(super) fn finish(&mut self) -> Vec<Step> {
        let needs = self.resolve_needs();
        let given = self.steps.iter().filter(|pending| !pending.is_made);
        let mut taken: BTreeSet<String> = given.map(|pending| pending.step.name.clone()).collect();
        let mut steps = Vec::new();
        for mut pending in std::mem::take(&mut self.steps) {
            if pending.is_made {
                pending.step.name = order::free_name(&pending.step.name, &taken);
                taken.insert(pending.step.name.clone());
            }
            let (mut after, mut needed, mut deps) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
            for wait in pending.waits {
                match wait {
                    Wait::Step(number) => drop(after.insert(number)),
                    Wait::Dependency(number) => drop(deps.insert(number)),
                    Wait::Needs(number) => needed.extend(needs[number].iter().copied()),
                }
            }
            needed.extend(&deps);
            after.extend(&needed);
            let [after, needs, deps] = [after, needed, deps].map(|numbers| numbers.into_iter().collect());
            steps.push(Step { after, needs, deps, ..pending.step });
        }
        self.refuse_circles(&steps);
        self.settle_entries(&steps);
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

    /// Finds what each entry depends on and an earlier one has put in.
    fn settle_entries(&mut self, steps: &[Step]) {
        for (number, entry) in self.entries.iter_mut().enumerate() {
            let gathered = self.gathers.iter().filter(|gather| gather.entry == number).flat_map(|gather| &gather.steps);
            let mut needed: BTreeSet<usize> = gathered.copied().collect();
            let mut open: Vec<usize> = entry.steps.iter().chain(&needed).copied().collect();
            while let Some(step) = open.pop() {
                open.extend(steps[step].deps.iter().filter(|dep| needed.insert(**dep)));
            }
            let is_own = |step: &usize| entry.steps.first().is_some_and(|first| step >= first);
            entry.needed = needed.into_iter().filter(|step| !is_own(step)).collect();
        }
    }
}
