//! The closing lines of a run: the outcome, the summary, and the next commands.

use crate::cli::paint::{self, Tone};
use crate::cli::steps::StyledLine;
use crate::report::{self, EndingTone, Headline, NamedRun, NextStep, SummaryFact};
use crate::run::TaskResult;
use crate::verdict::Reason;

/// Returns the closing lines of a run. With `only_errors`, returns only the outcome. `run` is the
/// run in the next commands; without it, no commands follow.
pub(in crate::cli) fn closing(result: &TaskResult, only_errors: bool, run: Option<NamedRun<'_>>) -> Vec<StyledLine> {
    if is_refused(result) {
        return vec![vec![(Tone::Bad, "error: ".to_owned()), (Tone::Plain, result.message.replace('\n', "\n  "))]];
    }
    let Headline { mood, lead, rest } = report::headline(result);
    let tone = match mood {
        EndingTone::Good => Tone::Good,
        EndingTone::Mixed => Tone::Warn,
        EndingTone::Bad => Tone::Bad,
    };
    let mut lines = vec![vec![(tone, lead), (Tone::Plain, rest.replace('\n', "\n  "))]];
    if !only_errors {
        lines.extend(report::closing(result).iter().map(fact));
        lines.extend(run.map(|run| next_steps(result, run)).unwrap_or_default());
        lines.extend(report::hint(result).iter().map(fact));
    }
    lines
}

/// Returns true if a run was refused before its first turn. Its end then looks like any other
/// error.
fn is_refused(result: &TaskResult) -> bool {
    let has_begun = result.turns > 0 || !result.attempts.is_empty();
    !has_begun && matches!(result.reason, Reason::BadInput | Reason::PlanFailed)
}

/// Returns the next commands after a run.
fn next_steps(result: &TaskResult, run: NamedRun<'_>) -> Vec<StyledLine> {
    let steps = report::next_steps(result, run);
    let width = steps.iter().map(|step| step.command.len()).max().unwrap_or(0);
    let line = |(place, NextStep { command, does }): (usize, &NextStep)| {
        let about = if place == 0 { "next" } else { "" };
        let command = format!("{command:width$}");
        vec![
            (Tone::Faint, format!("  {about:<9}")),
            (Tone::Strong, paint::one_line(&command)),
            (Tone::Faint, format!("  {does}")),
        ]
    };
    steps.iter().enumerate().map(line).collect()
}

/// Returns a line of a summary.
pub(in crate::cli) fn fact(fact: &SummaryFact) -> StyledLine {
    vec![(Tone::Faint, format!("  {:<9}", fact.about)), (Tone::Plain, paint::one_line(&fact.says))]
}
