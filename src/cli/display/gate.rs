//! The display of the gate: its steps, waiting steps, expected times, and failures that an earlier
//! attempt already had.

use super::counting::TestCounter;
use super::{REASONS, RunDisplay};
use crate::cli::paint::{self, Tone};
use crate::cli::steps::{self, ShownTail, StepHistory};
use crate::report::lane::{failing, how, test_name};
use crate::report::seconds;
use crate::store::{RunListFilter, Store, StoredRunState, read_text};
use crate::verdict::{StepProgress, StepReport, StepStatus, as_judged};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};

/// The state of the gate.
#[derive(Debug, Default)]
pub(super) struct GateView {
    /// The steps that have ended in the current gate run.
    story: StepHistory,
    /// True once a line says that the gate judges the base, before the agent starts.
    has_told_base: bool,
    /// Milliseconds that each step took when it last ran, by `lane/step`.
    expected: BTreeMap<String, u64>,
    /// The steps of the previous gate run, in their order. At first it is that of an earlier run of
    /// the project.
    before: Vec<String>,
    /// The steps that have begun in the current gate run.
    begun: BTreeSet<String>,
    /// The steps that have ended in the current gate run, in their order.
    ended: Vec<String>,
    /// Tests that running steps have reported so far.
    tests: BTreeMap<String, TestCounter>,
    /// The failures of each attempt, without parts that differ when the same failure returns.
    failures: Vec<(u32, String)>,
}

impl GateView {
    /// Returns the state with expected steps and their times, in milliseconds.
    pub(super) fn expecting(steps: Vec<(String, u64)>) -> Self {
        let before = steps.iter().map(|(name, _)| name.clone()).collect();
        Self { before, expected: steps.into_iter().collect(), ..Self::default() }
    }

    fn begin(&mut self, name: String) {
        // These are the steps of another lane, or of an older form of this one.
        if !self.before.contains(&name) {
            self.before.clear();
        }
        self.begun.insert(name);
    }

    /// Ends the gate run: returns its steps and resets the state for the next one.
    fn take_steps(&mut self) -> StepHistory {
        self.before = std::mem::take(&mut self.ended);
        self.begun.clear();
        self.tests.clear();
        std::mem::take(&mut self.story)
    }

    /// Returns the number of ended steps and of all steps. The number of all comes from the
    /// previous gate run.
    fn count(&self) -> (usize, usize) {
        (self.ended.len(), self.before.len().max(self.begun.len()).max(self.ended.len()))
    }

    fn queued(&self) -> Vec<String> {
        let waits = |step: &&String| !self.begun.contains(*step) && !self.ended.contains(step);
        self.before.iter().filter(waits).cloned().collect()
    }

    /// Returns the earlier attempt with the same failure, if there is one. Records the failure of
    /// this attempt.
    fn known(&mut self, attempt: u32, story: &StepHistory, feedback: &str) -> Option<u32> {
        let one = |report: &&StepReport| {
            let (tests, more) = failing(report);
            let tests: Vec<String> = tests.iter().map(test_name).collect();
            let excerpt = if tests.is_empty() { report.excerpt.as_str() } else { "" };
            format!("{} {} {tests:?} {more} {excerpt}", name(&report.lane, &report.step), how(report))
        };
        let causes: Vec<String> = story.causes().iter().map(one).collect();
        let failure = if causes.is_empty() { feedback.to_owned() } else { causes.join("\n") };
        let failure = failure.replace(|c: char| c.is_ascii_digit(), ""); // times and addresses differ each time
        let earlier = self.failures.iter().find(|(_, known)| *known == failure).map(|(attempt, _)| *attempt);
        self.failures.push((attempt, failure));
        earlier
    }
}

impl RunDisplay {
    pub(super) fn step(&mut self, progress: &StepProgress) {
        match progress {
            StepProgress::Started { lane, step, command } => {
                if self.status.attempt.0 == 0 && !std::mem::replace(&mut self.gate.has_told_base, true) {
                    self.line(&[(Tone::Faint, "  judging the base")]);
                }
                let name = name(lane, step);
                self.live.begin_expected(&name, command, self.gate.expected.get(&name).copied());
                self.gate.begin(name);
            }
            StepProgress::Output { lane, step, line } => {
                let name = name(lane, step);
                let tests = self.gate.tests.entry(name.clone()).or_default();
                tests.read_line(line);
                self.live.note(&name, tests.before(line));
            }
            StepProgress::Partial { lane, step, line } => {
                let name = name(lane, step);
                let counted = self.gate.tests.entry(name.clone()).or_default().before(line);
                self.live.note(&name, counted);
            }
            StepProgress::Retried(report) => {
                let name = name(&report.lane, &report.step);
                self.live.end(&name);
                self.gate.tests.remove(&name);
                self.gate.story.interrupted();
                paint::line(&steps::retried(report));
            }
            StepProgress::Ended(report) => {
                let name = name(&report.lane, &report.step);
                self.live.end(&name);
                paint::line(&steps::result(report));
                self.gate.story.ended(report.clone(), ShownTail::Result);
                if report.tries > 0 {
                    self.gate.expected.insert(name.clone(), report.duration_ms);
                }
                if report.status != StepStatus::Skipped {
                    self.gate.ended.push(name);
                }
            }
        }
        self.status.checks = Some(self.gate.count());
        self.live.queue(self.gate.queued());
    }

    /// Shows the verdict of the gate on the base.
    pub(super) fn base(&mut self) {
        if self.gate.story.is_empty() {
            return;
        }
        let story = self.gate.take_steps();
        self.status.checks = None;
        self.clear();
        let causes = story.causes();
        if causes.is_empty() {
            return self.line(&[(Tone::Good, "✓ the gate passes on the base")]);
        }
        story.closing(true).iter().for_each(|line| paint::line(line));
        let names = format!(": {}", steps::named(&causes));
        self.line(&[(Tone::Warn, "✗ the gate fails on the base"), (Tone::Plain, &names)]);
    }

    pub(super) fn unjudged(&mut self, attempt: u32) {
        self.line(&[(Tone::Bad, &format!("✗ not judged again: {}", as_judged(attempt)))]);
    }

    /// Shows the failed steps and the verdict. Explains the failures unless an earlier attempt
    /// failed in the same way.
    pub(super) fn verdict(&mut self, success: bool, failed: &[String], feedback: &str, duration_ms: u64) {
        if self.status.attempt.0 == 0 {
            return self.base(); // judges the base, before any agent
        }
        let (story, time) = (self.gate.take_steps(), format!(" ({})", seconds(duration_ms)));
        self.status.checks = None;
        self.clear();
        if success {
            return self.line(&[(Tone::Good, "✓ the gate passed"), (Tone::Faint, &time)]);
        }
        let earlier = self.gate.known(self.status.attempt.0, &story, feedback);
        if earlier.is_none() {
            story.closing(true).iter().for_each(|line| paint::line(line));
            if failed.is_empty() {
                feedback.lines().take(REASONS).for_each(|line| paint::line(&steps::output(line)));
            }
        }
        let names = if failed.is_empty() { String::new() } else { format!(": {}", failed.join(", ")) };
        let same = earlier.map(|attempt| format!("; same failure as attempt {attempt}")).unwrap_or_default();
        let counts = format!("; {}", story.counts(true));
        self.line(&[
            (Tone::Bad, "✗ the gate did not pass"),
            (Tone::Faint, &time),
            (Tone::Plain, &names),
            (Tone::Warn, &same),
            (Tone::Faint, &counts),
        ]);
    }
}

/// Returns the name of a step for all output.
fn name(lane: &str, step: &str) -> String {
    format!("{lane}/{step}")
}

/// The largest report to read, in bytes.
const LARGEST: usize = 4 * 1024 * 1024;
/// Runs to look at.
const RUNS: u32 = 5;

/// The part of a report with the times.
#[derive(Deserialize)]
struct Report {
    attempts: Vec<Attempt>,
}

#[derive(Deserialize)]
struct Attempt {
    verdict: Verdict,
}

#[derive(Deserialize)]
struct Verdict {
    steps: Vec<Step>,
}

#[derive(Deserialize)]
struct Step {
    lane: String,
    step: String,
    tries: u32,
    duration_ms: u64,
}

/// Returns the steps of the last gate run of the project, by `lane/step` in their order, each with
/// the milliseconds that it took. Empty on any error: the times are optional.
pub(in crate::cli) fn expected(store: &Store) -> Vec<(String, u64)> {
    let rows = store.runs(&RunListFilter { limit: RUNS, ..RunListFilter::default() }).unwrap_or_default();
    let ended = rows.iter().filter(|row| matches!(row.state, StoredRunState::Ended(_)));
    let times = |text: String| {
        let report: Report = serde_json::from_str(&text).ok()?;
        let ran = |attempt: Attempt| {
            let steps = attempt.verdict.steps.into_iter().filter(|step| step.tries > 0);
            let steps: Vec<_> = steps.map(|step| (name(&step.lane, &step.step), step.duration_ms)).collect();
            (!steps.is_empty()).then_some(steps)
        };
        report.attempts.into_iter().rev().find_map(ran)
    };
    let read = |row| read_text(&store.folder(row).report(), LARGEST).ok()?;
    ended.filter_map(|row| read(&row.head.id)).find_map(times).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::lane::tests::step;

    fn failed(excerpt: &str) -> StepHistory {
        let mut story = StepHistory::default();
        story.ended(StepReport { excerpt: excerpt.into(), ..step("test", StepStatus::Failed) }, ShownTail::Result);
        story
    }

    #[test]
    fn a_failure_is_known_again_although_its_numbers_differ() {
        let mut gate = GateView::default();
        assert_eq!(gate.known(1, &failed("took 12 ms"), ""), None);
        assert_eq!(gate.known(2, &failed("another one"), ""), None);
        assert_eq!(gate.known(3, &failed("took 37 ms"), ""), Some(1));
    }

    #[test]
    fn steps_that_wait_are_those_of_the_gate_run_before() {
        let mut gate =
            GateView { ended: ["verify/a", "verify/b", "verify/c"].map(str::to_owned).into(), ..GateView::default() };
        gate.take_steps();
        gate.begun.insert("verify/b".into());
        gate.ended.push("verify/a".into());
        assert_eq!((gate.count(), gate.queued()), ((1, 3), vec!["verify/c".to_owned()]));
    }

    #[test]
    fn a_first_gate_run_expects_the_steps_of_the_last_run_unless_it_has_another() {
        let mut gate = GateView::expecting(["verify/a", "verify/b"].map(|step| (step.to_owned(), 9)).into());
        gate.begin("verify/a".into());
        assert_eq!((gate.count(), gate.queued()), ((0, 2), vec!["verify/b".to_owned()]));
        gate.begin("verify/new".into());
        assert_eq!((gate.count(), gate.queued()), ((0, 2), vec![]));
    }
}
