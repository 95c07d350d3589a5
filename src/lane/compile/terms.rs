//! Compilation of a lane's gate settings: the steps that prepare the room, and the step that a
//! canary names.

use super::{Compiler, Scope};
use crate::lane::Step;
use crate::lane::draft::{NamedSpan, StepItem};
use crate::yaml::{Problem, excerpt};
use std::time::Duration;

impl<'b> Compiler<'b> {
    /// Compiles the commands of `setup`. Each one waits for the success of the previous one.
    pub(super) fn setup(&mut self, items: &[StepItem], scope: &Scope<'b>) -> Vec<Step> {
        let mut own = Compiler::new(self.book);
        own.including.clone_from(&self.including);
        own.items(items, scope, &[]);
        let (steps, _) = own.finish();
        self.fault.merge(&own.fault);
        let chained = |(number, step): (usize, Step)| {
            let before: Vec<usize> = number.checked_sub(1).into_iter().collect();
            Step { after: before.clone(), needs: before, deps: vec![], joints: vec![], on_demand: false, ..step }
        };
        steps.into_iter().enumerate().map(chained).collect()
    }

    pub(super) fn refuse_unknown_canary(&mut self, named: Option<&NamedSpan>, steps: &[Step], path: &str) {
        let names = || steps.iter().map(|step| step.name.as_str());
        let Some(named) = named.filter(|named| !names().any(|name| name == named.name)) else { return };
        let problem = Problem::at(named.place, format!("there is no step `{}`", excerpt(&named.name)));
        self.complain(path, problem.near(&named.name, names()));
    }
}

/// Returns the smaller of two time limits: of an included lane and of its step.
pub(super) fn lesser(one: Option<Duration>, other: Option<Duration>) -> Option<Duration> {
    one.into_iter().chain(other).min()
}
