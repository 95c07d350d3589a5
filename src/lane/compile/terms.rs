//! Compilation of a lane's gate settings: the steps that prepare the room, the step that a canary
//! names, and test reports. Each report is evidence for one step only.

use super::{Compiler, Scope};
use crate::lane::Step;
use crate::lane::draft::{NamedSpan, StepItem};
use crate::yaml::{Problem, excerpt};
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

impl<'b> Compiler<'b> {
    /// Compiles the commands of `setup`. Each one waits for the success of the previous one.
    pub(super) fn setup(&mut self, items: &[StepItem], scope: &Scope<'b>) -> Vec<Step> {
        let mut own = Compiler::new(self.files);
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
        self.report_problem(path, problem.near(&named.name, names()));
    }

    /// Refuses a test report that another step writes too, because it would count as evidence for
    /// both steps.
    pub(super) fn refuse_shared_report(&mut self, item: &StepItem, scope: &Scope<'_>) {
        let Some(Step { dir, junit: Some(junit), name, .. }) = self.steps.last().map(|last| &last.step) else { return };
        let path = Path::new(dir.as_deref().unwrap_or(".")).join(junit);
        let path: PathBuf = path.components().filter(|part| matches!(part, Component::Normal(_))).collect();
        let (report, name) = (excerpt(&path.display().to_string()), name.clone());
        if let Some(first) = self.reports.insert(path, name) {
            let message = format!("the test report `{report}` is that of the step `{}` too", excerpt(&first));
            self.report_problem(&scope.path, Problem::at(item.place, message).hint("let each step write its own"));
        }
    }
}

/// Returns the smaller of two time limits: of an included lane and of its step.
pub(super) fn lesser(one: Option<Duration>, other: Option<Duration>) -> Option<Duration> {
    one.into_iter().chain(other).min()
}
