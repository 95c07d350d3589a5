//! Output at the end of a batch: its table and reports, the delivery of a race's winner, or an
//! evaluation.

use super::super::failure::CliError;
use super::super::paint::Tone;
use super::super::results::{ResultFiles, ResultTexts};
use super::page::{self, Line, padded};
use super::race::RaceOutput;
use super::{BatchRequest, EvalTerms};
use crate::batch::evaluation::page as pages;
use crate::batch::evaluation::{Evaluation, Tally, Unjudged};
use crate::batch::plan::BatchJob;
use crate::batch::{BatchEvent, BatchSummary, forms};
use crate::config::EnvironmentLayer;
use crate::run::TaskResult;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The name of the model in a job that names none.
const CONFIGURED: &str = "configured";

/// The output at the end of a batch.
#[derive(Debug)]
pub(super) enum BatchEnding {
    /// A row for each job.
    Many(ResultFiles),
    /// The result of the winner, as if it had run alone.
    Race(RaceOutput),
    /// Success rates of models. The map gives the task and the model of each job.
    Eval(ResultFiles, EvalTerms, BTreeMap<String, (String, String)>),
}

impl BatchEnding {
    /// Finds the places of all files to write.
    ///
    /// # Errors
    /// When a file cannot be written, two have the same place, or a form is for a single task only.
    pub(super) fn find(
        request: &BatchRequest<'_>,
        jobs: &[BatchJob],
        workspace: &Path,
        state_dir: &Path,
        environment: &EnvironmentLayer,
    ) -> Result<Self, CliError> {
        if request.is_one_race(jobs) {
            return RaceOutput::find(request, workspace, state_dir, environment).map(Self::Race);
        }
        let report = request.options.reports().pop();
        let report = report.as_deref();
        let results = request.options.results.places_of_batch(report, workspace, environment)?;
        let model = |job: &BatchJob| job.models.first().cloned().unwrap_or_else(|| CONFIGURED.into());
        let of = |job: &BatchJob| (job.name.clone(), (job.of.clone(), model(job)));
        Ok(match request.eval {
            None => Self::Many(results),
            Some(terms) => Self::Eval(results, terms.clone(), jobs.iter().map(of).collect()),
        })
    }

    /// Creates the ending of a batch that writes no files.
    #[cfg(test)]
    pub(super) fn of_nothing(environment: &EnvironmentLayer) -> Self {
        Self::Many(ResultFiles::of_job(Path::new("."), environment))
    }

    fn evaluation(&self, summary: &BatchSummary) -> Option<Evaluation> {
        match self {
            Self::Many(_) | Self::Race(_) => None,
            Self::Eval(_, terms, of) => Some(Evaluation::new(summary, terms.min_rate, |job| of.get(job).cloned())),
        }
    }

    /// Returns the exit code.
    pub(super) fn code(&self, summary: &BatchSummary) -> u8 {
        self.evaluation(summary).map_or(summary.exit_code, |evaluation| evaluation.exit_code)
    }

    /// Returns the last event of the batch.
    pub(super) fn event<'s>(&self, summary: &'s BatchSummary) -> BatchEvent<'s> {
        match self.evaluation(summary) {
            None => BatchEvent::BatchFinished(Cow::Borrowed(summary)),
            Some(evaluation) => BatchEvent::EvalFinished(Cow::Owned(evaluation)),
        }
    }

    /// Returns the table. For an evaluation, the table also names runs without a verdict, except
    /// the jobs in `told`.
    pub(super) fn lines(&self, summary: &BatchSummary, told: &BTreeSet<String>) -> Vec<Line> {
        match self.evaluation(summary) {
            None => page::table(summary).into_iter().chain(page::next_steps(summary)).collect(),
            Some(evaluation) => rates(&evaluation, told),
        }
    }

    /// Returns the failures, one line each.
    pub(super) fn failures(&self, summary: &BatchSummary) -> Vec<Line> {
        match self.evaluation(summary) {
            None => page::failures(summary),
            Some(evaluation) => {
                let below = vec![(Tone::Bad, pages::words(&evaluation))];
                let is_below = !evaluation.below.is_empty();
                unjudged(&evaluation, &BTreeSet::new()).into_iter().chain(is_below.then_some(below)).collect()
            }
        }
    }

    /// Annotates the result of a run for GitHub Actions. In an evaluation, a failed run is a normal
    /// result and gets no annotation.
    pub(super) fn annotate(&self, result: &TaskResult) {
        match self {
            Self::Many(results) => results.annotate(result),
            Self::Race(_) | Self::Eval(..) => {}
        }
    }

    /// Writes all files.
    ///
    /// # Errors
    /// The first file that cannot be written.
    pub(super) fn write(&self, summary: &BatchSummary) -> Result<(), CliError> {
        match self {
            Self::Many(results) => results.write_batch(summary),
            Self::Race(race) => race.deliver(summary),
            Self::Eval(results, ..) => {
                let Some(evaluation) = self.evaluation(summary) else { return Ok(()) };
                let report = serde_json::to_string_pretty(&evaluation).unwrap_or_default() + "\n";
                let (junit, page) = (forms::junit(summary), pages::page(&evaluation));
                let outputs = format!("exit-code={}\nbatch={}\n", evaluation.exit_code, evaluation.batch);
                results.write_texts(&ResultTexts { junit, page, report, outputs })
            }
        }
    }
}

/// Returns a line for each run without a verdict, except the `known` ones.
fn unjudged(evaluation: &Evaluation, known: &BTreeSet<String>) -> Vec<Line> {
    let line = |run: &Unjudged| {
        let text = format!("- {}: {}: {}", run.job, run.standing.word(), super::super::paint::one_line(&run.says));
        vec![(Tone::Warn, text)]
    };
    evaluation.unjudged.iter().filter(|run| !known.contains(&run.job)).map(line).collect()
}

/// Formats an evaluation as a table: the models over all tasks, then by task. Runs without a
/// verdict that are not in `told` follow.
fn rates(evaluation: &Evaluation, told: &BTreeSet<String>) -> Vec<Line> {
    let mut rows: Vec<Vec<String>> = vec![pages::HEADS.map(str::to_owned).to_vec()];
    let add = |rows: &mut Vec<Vec<String>>, tally: &Tally| rows.push(pages::row(tally).to_vec());
    evaluation.models.iter().for_each(|tally| add(&mut rows, tally));
    if evaluation.tasks.len() > 1 {
        for task in &evaluation.tasks {
            rows.push(vec![format!("{}:", task.task)]);
            task.models.iter().for_each(|tally| add(&mut rows, tally));
        }
    }
    let width = |column: usize| {
        rows.iter().filter(|row| row.len() > 1).filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max()
    };
    let widths: Vec<usize> = (0..pages::HEADS.len()).map(|column| width(column).unwrap_or(0)).collect();
    let line = |(place, row): (usize, &Vec<String>)| {
        let cells: Vec<String> = row.iter().zip(&widths).map(|(cell, width)| padded(cell, *width)).collect();
        let text = if row.len() == 1 { row[0].clone() } else { cells.join("  ").trim_end().to_owned() };
        vec![(if place == 0 || row.len() == 1 { Tone::Faint } else { Tone::Plain }, text)]
    };
    let mut lines: Vec<Line> = rows.iter().enumerate().map(line).collect();
    lines.extend(unjudged(evaluation, told));
    let tone = if evaluation.exit_code == 0 { Tone::Good } else { Tone::Bad };
    lines.push(vec![(tone, pages::words(evaluation))]);
    lines
}
