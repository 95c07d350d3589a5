//! Evaluation as table rows, and as a page in Markdown. Pure.

use super::{Evaluation, Tally};
use crate::report::lane::markdown::cell;
use crate::report::{money, seconds};

/// The column headings.
pub(crate) const HEADS: [&str; 9] =
    ["model", "verified", "rate", "95 %", "pass@1", "cost per run", "cost", "turns", "time"];
/// The maximum number of rows in the table of tasks, and the maximum number of runs listed as not
/// judged.
const ROWS: usize = 500;

/// Returns a row in the order of [`HEADS`]. Errors and stopped runs follow the count of verified
/// runs in parentheses, since they are not failures.
pub(crate) fn row(tally: &Tally) -> [String; 9] {
    let percent = |rate: f64| format!("{:.1} %", rate * 100.0);
    let or_none = |text: Option<String>| text.unwrap_or_else(|| "-".into());
    let mut of = format!("{} of {}", tally.verified, tally.judged);
    for (count, what) in [(tally.errored, "errored"), (tally.cut_off, "cut off")] {
        if count > 0 {
            of.push_str(&format!(" (+{count} {what})"));
        }
    }
    let known = |text: String| if tally.unpriced > 0 { format!("{text} + {} unpriced", tally.unpriced) } else { text };
    let total = match tally.mean_usd_micros {
        None if tally.unpriced > 0 => "unknown price".into(),
        None => "-".into(),
        Some(_) => known(money(tally.usd_micros)),
    };
    [
        tally.model.clone(),
        of,
        or_none(tally.rate.map(percent)),
        or_none(tally.interval.map(|[low, high]| format!("{} to {}", percent(low), percent(high)))),
        or_none(tally.pass_at_1.map(percent)),
        or_none(tally.mean_usd_micros.map(money)),
        total,
        or_none(tally.median_turns.map(|turns| format!("{turns}"))),
        or_none(tally.median_ms.map(|ms| seconds(ms.round() as u64))),
    ]
}

/// Describes the result in one line.
pub(crate) fn words(evaluation: &Evaluation) -> String {
    let runs = evaluation.jobs.len();
    let mut text = format!("{} of {runs} runs judged", runs - evaluation.unjudged.len());
    if let Some(least) = evaluation.min_rate {
        let below = &evaluation.below;
        text.push_str(&match below.as_slice() {
            [] => format!(", every rate is {:.1} % or more", least * 100.0),
            _ => format!(", below {:.1} %: {}", least * 100.0, below.join(", ")),
        });
    }
    text
}

/// Returns the page.
pub(crate) fn page(evaluation: &Evaluation) -> String {
    let mark = if evaluation.exit_code == 0 { "✓" } else { "✗" };
    let bound = evaluation.max_usd_micros.map(|limit| format!(" of {}", money(limit))).unwrap_or_default();
    let (time, cost) = (seconds(evaluation.duration_ms), money(evaluation.usd_micros));
    let mut text = format!("# {mark} {}\n\n{time}, {cost}{bound}\n\n{}", words(evaluation), head("", &HEADS));
    evaluation.models.iter().for_each(|tally| text.push_str(&line(None, tally)));
    if evaluation.tasks.len() > 1 {
        text.push_str(&format!("\n## By task\n\n{}", head("| task ", &HEADS)));
        let rows = evaluation.tasks.iter().flat_map(|task| task.models.iter().map(|tally| (task.task.as_str(), tally)));
        rows.take(ROWS).for_each(|(task, tally)| text.push_str(&line(Some(task), tally)));
    }
    if !evaluation.unjudged.is_empty() {
        text.push_str("\n## Not judged\n\n");
        for run in evaluation.unjudged.iter().take(ROWS) {
            text.push_str(&format!("- {}: {}: {}\n", cell(&run.job), run.standing.word(), cell(&run.says)));
        }
    }
    text.push_str("\nTurns and time are medians of the runs that were judged.\n");
    text
}

fn head(first: &str, heads: &[&str]) -> String {
    let rule = "|---".repeat(heads.len() + usize::from(!first.is_empty()));
    format!("{first}| {} |\n{rule}|\n", heads.join(" | "))
}

fn line(task: Option<&str>, tally: &Tally) -> String {
    let row = row(tally);
    let cells = task.into_iter().map(cell).chain(row.iter().map(|text| cell(text)));
    format!("| {} |\n", cells.collect::<Vec<_>>().join(" | "))
}
