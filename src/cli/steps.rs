//! The output of the steps of a lane: a line per step, the explanation of a failure, and a closing
//! block with the steps that failed by themselves.

use super::paint::{self, Tone};
use crate::lane_runner::excerpt;
use crate::report::lane::{StepCounts, failing, how, test_name, test_place};
use crate::report::seconds;
use crate::verdict::{StepReport, StepStatus};

/// Bytes to show of a failed step's output: its explanation. The log has the rest.
const SHOWN: usize = 1536;
/// The maximum number of lines of this output.
const LINES: usize = 50;
/// Characters to show of a failing test's message.
const MESSAGE: usize = 160;
/// The maximum number of failed steps to explain at the end of a lane.
const EXPLAINED: usize = 20;
/// The maximum number of failed steps to name in a line.
const NAMED: usize = 10;

/// The pieces of a line.
pub(super) type StyledLine = Vec<(Tone, String)>;

/// The part of a step's end that is on the screen, in growing order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ShownTail {
    /// Nothing in sight.
    Folded,
    /// Its line.
    Result,
    /// Its line and its explanation.
    Explained,
}

/// The steps that have ended, and the part of them at the end of the screen.
#[derive(Debug, Default)]
pub(super) struct StepHistory {
    ended: Vec<StepReport>,
    /// For each failed step with no other output after it, the part of its end that is on the
    /// screen.
    on_screen: Vec<ShownTail>,
}

impl StepHistory {
    /// Adds a step that has ended, with the part of its end that was just printed.
    pub(super) fn ended(&mut self, report: StepReport, told: ShownTail) {
        match told {
            ShownTail::Result | ShownTail::Explained if report.status.is_failure() => self.on_screen.push(told),
            ShownTail::Result | ShownTail::Explained | ShownTail::Folded => self.on_screen.clear(),
        }
        self.ended.push(report);
    }

    /// Adds a step that has ended and was not printed.
    pub(super) fn counted(&mut self, report: StepReport) {
        self.ended.push(report);
    }

    /// Notes that something else was printed.
    pub(super) fn interrupted(&mut self) {
        self.on_screen.clear();
    }

    /// Returns the closing block of a lane: the first steps that failed by themselves, in the order
    /// of their ends, with explanations, and the number of the others. Empty if the screen already
    /// ends with exactly this.
    pub(super) fn closing(&self, with_excerpt: bool) -> Vec<StyledLine> {
        let causes = self.causes();
        let (explained, others) = causes.split_at(causes.len().min(EXPLAINED));
        // More failures than are explained do not fit a screen either.
        let is_in_sight = others.is_empty() && self.on_screen.len() == causes.len();
        let stands = |told| is_in_sight && self.on_screen.iter().all(|shown| *shown >= told);
        if stands(ShownTail::Explained) {
            return Vec::new();
        }
        let is_known = causes.len() == 1 && stands(ShownTail::Result);
        let block = |report: &&StepReport| {
            let first = if is_known { None } else { Some(result(report)) };
            first.into_iter().chain(explanation(report, with_excerpt)).collect::<Vec<_>>()
        };
        let more = || vec![(Tone::Bad, format!("  and {} more failed: {}", others.len(), named(others)))];
        explained.iter().flat_map(block).chain((!others.is_empty()).then(more)).collect()
    }

    /// Returns the counts of steps by outcome. `ended_itself` is true if the lane ended at its
    /// first failure and no person stopped it. The steps that this failure cancelled are then
    /// counted apart.
    pub(super) fn counts(&self, ended_itself: bool) -> String {
        let counts = StepCounts::count(&self.ended);
        let because = match counts.cancelled() {
            0 => return counts.words(),
            _ if !ended_itself || self.causes().is_empty() => return counts.words(),
            1 => "1 step was cancelled as a result".to_owned(),
            number => format!("{number} steps were cancelled as a result"),
        };
        format!("{}; {because}", counts.without_cancelled().words())
    }

    /// Returns true if no step has ended.
    pub(super) fn is_empty(&self) -> bool {
        self.ended.is_empty()
    }

    /// Returns true if only failed steps have ended.
    pub(super) fn is_all_causes(&self) -> bool {
        self.ended.iter().all(|report| report.status.is_failure())
    }

    /// Returns the steps that failed by themselves, in the order of their ends.
    pub(super) fn causes(&self) -> Vec<&StepReport> {
        self.ended.iter().filter(|report| report.status.is_failure()).collect()
    }
}

/// Returns the names of the first steps, and the number of the others.
pub(super) fn named(steps: &[&StepReport]) -> String {
    let name = |report: &&StepReport| format!("{}/{}", report.lane, report.step);
    let names: Vec<String> = steps.iter().take(NAMED).map(name).collect();
    let more = if steps.len() > NAMED { format!(" and {} more", steps.len() - NAMED) } else { String::new() };
    paint::one_line(&(names.join(", ") + &more))
}

/// Returns the line of a step that has ended.
pub(super) fn result(report: &StepReport) -> StyledLine {
    let (tone, mark) = match report.status {
        StepStatus::Passed => (Tone::Good, "  ✓ "),
        StepStatus::Flaky | StepStatus::AllowedFailure => (Tone::Warn, "  ! "),
        StepStatus::Failed | StepStatus::TimedOut | StepStatus::Errored => (Tone::Bad, "  ✗ "),
        StepStatus::Cancelled | StepStatus::Skipped | StepStatus::NotRun => (Tone::Faint, "  - "),
    };
    let is_plain = report.status == StepStatus::Passed && report.note.is_empty();
    let how = if is_plain { String::new() } else { format!(" {}", paint::one_line(&how(report))) };
    let time = if report.tries == 0 { String::new() } else { format!(" {}", seconds(report.duration_ms)) };
    let name = paint::one_line(&format!("{}/{}", report.lane, report.step));
    vec![(tone, mark.into()), (Tone::Plain, name), (tone, how), (Tone::Faint, time)]
}

/// Returns the line of a step that failed and is tried again.
pub(super) fn retried(report: &StepReport) -> StyledLine {
    let name = paint::one_line(&format!("{}/{}", report.lane, report.step));
    let note = format!(" {}, try {}; trying again", paint::one_line(&how(report)), report.tries);
    let time = format!(" {}", seconds(report.duration_ms));
    vec![(Tone::Warn, "  ! ".into()), (Tone::Plain, name), (Tone::Warn, note), (Tone::Faint, time)]
}

/// Returns the explanation of a failure: failing tests, an excerpt of the output, and the path of
/// the log.
pub(super) fn explanation(report: &StepReport, with_excerpt: bool) -> Vec<StyledLine> {
    let (tests, more) = failing(report);
    let mut lines = Vec::new();
    for test in tests {
        let place = test_place(test).map(|place| format!(" ({place})")).unwrap_or_default();
        let name = paint::one_line(&format!("{}{place}", test_name(test)));
        let first = test.message.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
        let message: String = first.trim().chars().take(MESSAGE).collect();
        let message = if message.is_empty() { message } else { format!(": {message}") };
        lines.push(vec![(Tone::Bad, "    ✗ ".into()), (Tone::Strong, name), (Tone::Plain, message)]);
    }
    if more > 0 {
        lines
            .push(vec![(Tone::Faint, format!("    and {more} more failing test{}", if more == 1 { "" } else { "s" }))]);
    }
    if with_excerpt {
        let within = |bytes: &usize| excerpt(&report.excerpt, *bytes);
        let shown =
            [SHOWN, SHOWN / 2, SHOWN / 4, SHOWN / 8].iter().map(within).find(|text| text.lines().count() <= LINES);
        lines.extend(shown.unwrap_or_else(|| within(&(SHOWN / 8))).lines().map(output));
    }
    lines.extend(
        report.log.iter().map(|log| vec![(Tone::Faint, "    log: ".into()), (Tone::Path, paint::one_line(log))]),
    );
    lines
}

/// Returns a line of a step's output, marked to distinguish it from lines of fledge.
pub(super) fn output(line: &str) -> StyledLine {
    let mark = if line.is_empty() { "    |" } else { "    | " };
    vec![(Tone::Faint, mark.into()), (Tone::Plain, line.into())]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::lane::tests::{all_kinds, step, test, with_tests};

    fn text(lines: &[StyledLine]) -> String {
        lines.iter().map(|line| line.iter().map(|(_, text)| text.as_str()).collect::<String>() + "\n").collect()
    }

    fn story(told: impl IntoIterator<Item = (StepReport, ShownTail)>) -> StepHistory {
        let mut story = StepHistory::default();
        told.into_iter().for_each(|(report, told)| story.ended(report, told));
        story
    }

    #[test]
    fn each_way_to_end_has_its_line() {
        let lines: Vec<StyledLine> = all_kinds().iter().map(result).collect();
        insta::assert_snapshot!(text(&lines), @r#"
        ✓ verify/fmt 1.2s
        ! verify/net flaky, try 2 1.2s
        ! verify/links allowed failure, exit 1 1.2s
        ✗ verify/t|e`st <b> exit 1 1.2s
        ✗ verify/slow timed out (ran out of its time of 1s) 1.2s
        ✗ verify/tool could not run (no such program) 1.2s
        - verify/lint cancelled 1.2s
        - verify/docs not run (another step failed before)
        "#);
    }

    #[test]
    fn what_failed_by_itself_closes_the_lane_in_the_order_in_which_it_ended() {
        let tests = (0..12).map(|n| test(&format!("t{n}"), Some(("tests/a.rs", n)))).collect();
        let story = story([
            (with_tests("unit", tests, 27), ShownTail::Explained),
            (step("lint", StepStatus::Cancelled), ShownTail::Result),
            (step("fmt", StepStatus::Failed), ShownTail::Explained),
            (step("docs", StepStatus::Cancelled), ShownTail::Result),
        ]);
        insta::assert_snapshot!(format!("{}{}", text(&story.closing(true)), story.counts(true)), @r#"
          ✗ verify/unit exit 1 1.2s
            ✗ dates t0 (tests/a.rs:0): t0: expected 1,
            ✗ dates t1 (tests/a.rs:1): t1: expected 1,
            ✗ dates t2 (tests/a.rs:2): t2: expected 1,
            ✗ dates t3 (tests/a.rs:3): t3: expected 1,
            ✗ dates t4 (tests/a.rs:4): t4: expected 1,
            ✗ dates t5 (tests/a.rs:5): t5: expected 1,
            ✗ dates t6 (tests/a.rs:6): t6: expected 1,
            ✗ dates t7 (tests/a.rs:7): t7: expected 1,
            ✗ dates t8 (tests/a.rs:8): t8: expected 1,
            ✗ dates t9 (tests/a.rs:9): t9: expected 1,
            and 17 more failing tests
            | error: it is broken
            | assertion failed
            log: /state/unit.log
          ✗ verify/fmt exit 1 1.2s
            | error: it is broken
            | assertion failed
            log: /state/fmt.log
        2 failed; 2 steps were cancelled as a result
        "#);
        assert_eq!(named(&story.causes()), "verify/unit, verify/fmt");
    }

    #[test]
    fn what_explains_a_failure_is_short_also_where_its_lines_are() {
        let chatter: String = (0..600).map(|n| format!("{n}\n")).collect();
        let report = StepReport { excerpt: format!("{chatter}error: bad\n{chatter}"), ..step("a", StepStatus::Failed) };
        let shown = text(&explanation(&report, true));
        assert!(shown.lines().count() <= LINES + 1 && shown.contains("    | error: bad\n"), "{shown}");
    }

    #[test]
    fn of_many_failures_twenty_are_explained_and_ten_more_named() {
        let failed =
            |count| story((0..count).map(|n| (step(&format!("s{n}"), StepStatus::Failed), ShownTail::Explained)));
        assert_eq!(failed(20).closing(true), Vec::<StyledLine>::new());
        let shown = text(&failed(1000).closing(true));
        assert_eq!(shown.matches("error: it is broken").count(), 20);
        assert!(shown.starts_with("  ✗ verify/s0 exit 1") && shown.contains("  ✗ verify/s19 exit 1"), "{shown}");
        assert_eq!(
            shown.lines().last().unwrap(),
            "  and 980 more failed: verify/s20, verify/s21, verify/s22, verify/s23, verify/s24, verify/s25, verify/s26, \
             verify/s27, verify/s28, verify/s29 and 970 more"
        );
    }

    #[test]
    fn what_stands_on_the_screen_is_not_said_twice() {
        let bad = || step("fmt", StepStatus::Failed);
        let ok = || (step("a", StepStatus::Passed), ShownTail::Result);
        assert_eq!(story([ok(), (bad(), ShownTail::Explained)]).closing(true), Vec::<StyledLine>::new());
        assert_eq!(
            story([(bad(), ShownTail::Explained), (bad(), ShownTail::Explained)]).closing(true),
            Vec::<StyledLine>::new()
        );
        assert_eq!(story([ok(), (bad(), ShownTail::Result)]).closing(true), explanation(&bad(), true));
        let whole: Vec<StyledLine> = [vec![result(&bad())], explanation(&bad(), true)].concat();
        assert_eq!(story([(bad(), ShownTail::Explained), ok()]).closing(true), whole);
        assert_eq!(story([(bad(), ShownTail::Folded)]).closing(true), whole);
        assert_eq!(
            story([(bad(), ShownTail::Result), (bad(), ShownTail::Result)]).closing(true),
            [whole.clone(), whole.clone()].concat()
        );
        let mut interrupted = story([(bad(), ShownTail::Explained)]);
        interrupted.interrupted();
        assert_eq!(interrupted.closing(true), whole);
    }

    #[test]
    fn a_lane_that_somebody_stopped_has_cancelled_steps_of_its_own() {
        let cancelled = || (step("a", StepStatus::Cancelled), ShownTail::Result);
        let failed = (step("b", StepStatus::Failed), ShownTail::Result);
        assert_eq!(story([cancelled()]).counts(true), "1 cancelled");
        assert_eq!(story([failed, cancelled()]).counts(false), "1 failed, 1 cancelled");
    }
}
