//! The check of the work by the hidden tests of the base. The model learns only that some failed,
//! and how many.

use super::inside::judging;
use super::settle::{LaneRan, named};
use super::{EarlyEnd, GateRun, JudgeRecord};
use crate::gate::HiddenTests;
use crate::gate::base;
use crate::gate::evidence::{Evidence, MissingTests, Shortfall};
use crate::gate::feedback;
use crate::id::TreeId;
use crate::lane_runner::LaneRuling;
use crate::verdict::{Ruling, StepProgress, StepReport, Verdict};
use std::collections::BTreeSet;

/// The maximum number of failures that notes for people name.
const NAMED: usize = 10;

impl GateRun<'_> {
    /// Runs the lanes on the work with the hidden files of the base. Returns the tree with them.
    pub(super) async fn hidden_tests(&self, tree: &TreeId, record: &mut JudgeRecord) -> Result<TreeId, EarlyEnd> {
        let Some(hidden) = &self.gate.hidden else { return Ok(tree.clone()) };
        record.notes.extend(self.taken_places(hidden, tree).await?);
        let whole = self.site.trees.with_paths_of(tree, &hidden.base, &hidden.paths, self.stop).await?;
        let (evidence, failed) = self.run_hidden(&whole, "hidden", record).await?;
        let visible = record.evidence.ran().unwrap_or(0);
        if !failed.is_empty() {
            let of = evidence.ran().map(|ran| ran.saturating_sub(visible));
            return Err(self.hidden_failed(record, &failed, evidence.failed(&failed), of));
        }
        if self.is_base {
            return Ok(whole);
        }
        let scratch = JudgeRecord { evidence: record.evidence.clone(), ..JudgeRecord::default() };
        let before = self.gate.hidden_evidence.get_or_try_init(move || async move {
            let mut scratch = scratch;
            self.run_hidden(&hidden.base, "hidden-base", &mut scratch).await.map(|(evidence, _)| evidence)
        });
        let short = evidence.shortfalls(before.await?);
        let known = match self.gate.judged.get() {
            Some(base) => record.evidence.shortfalls(&base.evidence),
            None => Vec::new(),
        };
        if is_known(&short, &known) {
            return Ok(whole);
        }
        record.notes.extend(short.iter().take(NAMED).map(|short| format!("hidden tests did not run: {short}")));
        let feedback = "every check that you can run passed, but some hidden tests did not run\n".to_owned();
        let verdict = self.verdict(Ruling::Failed, record);
        Err(EarlyEnd::Ruled(Box::new(Verdict { feedback, signature: "hidden: not run".into(), ..verdict })))
    }

    /// Runs the lanes on a tree with hidden files. Returns the evidence, and the steps that failed.
    async fn run_hidden(
        &self,
        tree: &TreeId,
        suffix: &str,
        record: &mut JudgeRecord,
    ) -> Result<(Evidence, Vec<StepReport>), EarlyEnd> {
        let (mut evidence, mut failed) = (Evidence::default(), Vec::new());
        let is_shown = suffix == "hidden";
        for lane in &self.gate.lanes {
            let Some(mut lane) = judging(lane, &record.evidence) else { continue };
            lane.fail_fast = false;
            let (name, installed, kept) =
                (format!("{}-{suffix}", lane.name), record.installed.clone(), record.kept.clone());
            let on_step = |progress: StepProgress| {
                let judges = lane.steps.iter().any(|own| own.name == progress.step() && !own.allow_failure);
                if is_shown && judges {
                    (self.on_step)(progress.in_lane(&name));
                }
            };
            let LaneRan { outcome, room, written, .. } = self.run(&lane, &name, tree, record, &on_step).await?;
            (record.installed, record.kept) = (installed, kept);
            if let Some(room) = room {
                room.close().await;
            }
            base::show(&outcome, self.site.names_tests(&lane), &mut evidence).await;
            match outcome.ruling {
                LaneRuling::Passed | LaneRuling::Failed => {}
                LaneRuling::Errored => {
                    return Err(EarlyEnd::Broken(format!("hidden: {}", feedback::could_not_run(&outcome.steps))));
                }
                LaneRuling::Cancelled => return Err(EarlyEnd::Broken("the gate was stopped".into())),
                LaneRuling::NothingRan => {
                    return Err(EarlyEnd::Broken(format!("hidden: {}", feedback::nothing_ran(&lane))));
                }
            }
            if is_shown && !written.is_empty() {
                let paths: Vec<String> = written.into_iter().map(|finding| finding.path).collect();
                record
                    .notes
                    .push(format!("code that ran beside hidden tests wrote protected paths: {}", named(&paths)));
                return Err(self.hidden_failed(record, &[], 0, None));
            }
            failed.extend(outcome.steps.into_iter().filter(|step| step.status.is_failure()));
        }
        Ok((evidence, failed))
    }

    /// Returns the verdict for work that fails hidden tests. Only its notes name the failures.
    fn hidden_failed(&self, record: &mut JudgeRecord, steps: &[StepReport], failed: u64, of: Option<u64>) -> EarlyEnd {
        let count = match of {
            Some(of) if failed > 0 && of >= failed => format!(": {failed} of {of}"),
            Some(_) | None => String::new(),
        };
        let names: Vec<String> = base::failing(steps).into_iter().take(NAMED).collect();
        record.notes.extend(names.into_iter().map(|name| format!("a hidden test failed: {name}")));
        let logs = steps.iter().filter_map(|step| step.log.as_ref());
        record.notes.extend(logs.map(|log| format!("the output of the hidden tests: {log}")));
        let feedback = format!("every check that you can run passed, but hidden tests failed{count}\n");
        let verdict = self.verdict(Ruling::Failed, record);
        EarlyEnd::Ruled(Box::new(Verdict { feedback, signature: format!("hidden{count}"), ..verdict }))
    }

    /// Returns a note for each entry of the work in the place of a hidden file.
    async fn taken_places(&self, hidden: &HiddenTests, tree: &TreeId) -> Result<Vec<String>, EarlyEnd> {
        let taken = hidden.taken_by(self.site.trees.paths(tree, self.stop).await?);
        let note = |path: &String| {
            format!(
                "{path} is in the place of a hidden file, which the agent did not see: the gate used the base's own file"
            )
        };
        Ok(taken.iter().take(NAMED).map(note).collect())
    }
}

/// Returns whether the tests that did not run are also missing without the hidden files, where the
/// gate has accepted that.
fn is_known(short: &[Shortfall], known: &[Shortfall]) -> bool {
    let names = |all: &[Shortfall]| -> BTreeSet<String> {
        let names = all.iter().flat_map(|short| match &short.gone {
            MissingTests::Tests(names) | MissingTests::Packages(names) => names.iter().cloned().collect::<Vec<_>>(),
            MissingTests::Count(_) | MissingTests::Changed(_) | MissingTests::Nothing => Vec::new(),
        });
        names.collect()
    };
    let count = |all: &[Shortfall]| -> u64 {
        let counts = all.iter().map(|short| if let MissingTests::Count(count) = short.gone { count } else { 0 });
        counts.sum()
    };
    let is_clear = !short.iter().any(|short| matches!(short.gone, MissingTests::Changed(_) | MissingTests::Nothing));
    is_clear && names(short).is_subset(&names(known)) && count(short) <= count(known)
}
