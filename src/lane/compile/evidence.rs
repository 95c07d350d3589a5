//! Test reports. Each report is evidence for one step only.

use super::{Compiler, Scope};
use crate::lane::Step;
use crate::lane::draft::StepItem;
use crate::yaml::{Problem, excerpt};
use std::path::{Component, Path, PathBuf};

impl Compiler<'_> {
    /// Refuses a test report that another step writes too, because it would count as evidence for
    /// both steps.
    pub(super) fn refuse_shared_report(&mut self, item: &StepItem, scope: &Scope<'_>) {
        let Some(Step { dir, junit: Some(junit), name, .. }) = self.steps.last().map(|last| &last.step) else { return };
        let path = Path::new(dir.as_deref().unwrap_or(".")).join(junit);
        let path: PathBuf = path.components().filter(|part| matches!(part, Component::Normal(_))).collect();
        let (report, name) = (excerpt(&path.display().to_string()), name.clone());
        if let Some(first) = self.reports.insert(path, name) {
            let message = format!("the test report `{report}` is that of the step `{}` too", excerpt(&first));
            self.complain(&scope.path, Problem::at(item.place, message).hint("let each step write its own"));
        }
    }
}
