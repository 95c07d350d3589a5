//! What is made of all that runs came to: a batch's table and reports, what the winner of a race delivers, or an evaluation.

use super::super::failure::Failure;
use super::super::paint::Tone;
use super::super::results::{Results, Texts};
use super::Request;
use super::eval::EvalTerms;
use super::page::{self, Line, padded};
use super::race::Race;
use crate::batch::evaluation::page as pages;
use crate::batch::evaluation::{Evaluation, Tally};
use crate::batch::plan::Job;
use crate::batch::{Summary, forms};
use crate::config::Environment;
use crate::run::TaskResult;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// What a model is called of which nobody has said which one it is.
const CONFIGURED: &str = "configured";

/// The end of a batch.
#[derive(Debug)]
pub(super) enum Ending {
    /// A row for each job.
    Many(Results),
    /// What the winner has done, as if it had run alone.
    Race(Race),
    /// Rates of models.
    Eval(Results, EvalTerms, BTreeMap<String, (String, String)>),
}

impl Ending {
    /// Finds the places of all that is to be written.
    ///
    /// # Errors
    /// A file without a place, two for one, or one of a form that there is not.
    pub(super) fn find(
        request: &Request<'_>,
        jobs: &[Job],
        workspace: &Path,
        state_dir: &Path,
        environment: &Environment,
    ) -> Result<Self, Failure> {
        if request.is_one_race(jobs) {
            return Race::find(request, workspace, state_dir, environment).map(Self::Race);
        }
        let report = request.options.reports().pop();
        let report = report.as_deref();
        let results = request.options.results.places_of_batch(report, workspace, environment)?;
        let model = |job: &Job| job.models.first().cloned().unwrap_or_else(|| CONFIGURED.into());
        let of = |job: &Job| (job.name.clone(), (job.of.clone(), model(job)));
        Ok(match request.eval {
            None => Self::Many(results),
            Some(terms) => Self::Eval(results, terms.clone(), jobs.iter().map(of).collect()),
        })
    }

    fn evaluation(&self, summary: &Summary) -> Option<Evaluation> {
        match self {
            Self::Many(_) | Self::Race(_) => None,
            Self::Eval(_, terms, of) => Some(Evaluation::new(summary, terms.min_rate, |job| of.get(job).cloned())),
        }
    }

    /// The exit code.
    pub(super) fn code(&self, summary: &Summary) -> u8 {
        self.evaluation(summary).map_or(summary.exit_code, |evaluation| evaluation.exit_code)
    }

    /// The last event, with its name.
    pub(super) fn data(&self, summary: &Summary) -> (&'static str, Value) {
        match self.evaluation(summary) {
            None => ("batch_finished", serde_json::to_value(summary).unwrap_or_default()),
            Some(evaluation) => ("eval_finished", serde_json::to_value(evaluation).unwrap_or_default()),
        }
    }

    /// The table.
    pub(super) fn lines(&self, summary: &Summary) -> Vec<Line> {
        self.evaluation(summary).map_or_else(|| page::table(summary), |evaluation| rates(&evaluation))
    }

    /// Tells a job of GitHub's what one of the runs came to; of an evaluation a failure is nothing to complain of.
    pub(super) fn annotate(&self, result: &TaskResult) {
        match self {
            Self::Many(results) => results.annotate(result),
            Self::Race(_) | Self::Eval(..) => {}
        }
    }

    /// Writes all files.
    ///
    /// # Errors
    /// The first that cannot be written.
    pub(super) fn write(&self, summary: &Summary) -> Result<(), Failure> {
        match self {
            Self::Many(results) => results.write_batch(summary),
            Self::Race(race) => race.deliver(summary),
            Self::Eval(results, ..) => {
                let Some(evaluation) = self.evaluation(summary) else { return Ok(()) };
                let report = serde_json::to_string_pretty(&evaluation).unwrap_or_default() + "\n";
                let (junit, page) = (forms::junit(summary), pages::page(&evaluation));
                let outputs = format!("exit-code={}\nbatch={}\n", evaluation.exit_code, evaluation.batch);
                results.write_texts(&Texts { junit, page, report, outputs })
            }
        }
    }
}

/// An evaluation as a table: models over all tasks, then by task, then what was not judged.
fn rates(evaluation: &Evaluation) -> Vec<Line> {
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
    for run in &evaluation.unjudged {
        let text = format!("- {}: {}: {}", run.job, run.standing.word(), super::super::paint::one_line(&run.says));
        lines.push(vec![(Tone::Warn, text)]);
    }
    let tone = if evaluation.exit_code == 0 { Tone::Good } else { Tone::Bad };
    lines.push(vec![(tone, pages::words(evaluation))]);
    lines
}
