//! Results of `fledge run` and `fledge fix` for continuous integration: the last verdict as JUnit,
//! Markdown, SARIF and GitLab's code quality. For a job of GitHub Actions also annotations, a
//! summary and outputs.

use super::failure::CliError;
use super::output_path::find_output;
use super::paint;
use crate::batch::{BatchSummary, forms};
use crate::config::EnvironmentLayer;
use crate::report::job;
use crate::report::lane::{LaneResult, code_quality, github, junit, sarif};
use crate::run::TaskResult;
use crate::verdict::Verification;
use crate::workspace::AtomicOutput;
use anyhow::{Context, anyhow};
use clap::Args;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

#[derive(Debug, Clone, Default, Args)]
pub(super) struct ResultArguments {
    /// Write the last verdict to FILE as a JUnit report, with a test for each step
    #[arg(help_heading = "Output", long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Write a summary to FILE, as Markdown
    #[arg(help_heading = "Output", long, value_name = "FILE")]
    summary: Option<PathBuf>,
    /// Write the problems of the last verdict to FILE as SARIF, for code scanning
    #[arg(help_heading = "Output", long, value_name = "FILE")]
    sarif: Option<PathBuf>,
    /// Write the problems of the last verdict to FILE as a GitLab code quality report
    #[arg(help_heading = "Output", long, value_name = "FILE")]
    code_quality: Option<PathBuf>,
}

/// The places of all results, found before any agent works.
#[derive(Debug, Clone)]
pub(super) struct ResultFiles {
    files: Vec<(ResultFormat, AtomicOutput)>,
    /// The files of a job of GitHub Actions, which belong to its runner.
    job: Option<Job>,
    /// The places of files that others write, for a run that cannot begin.
    beside: RunFiles,
    /// True once the end of a run is reported; later results do not replace it.
    was_told: Arc<AtomicBool>,
}

/// The files of a run that its driver writes.
#[derive(Debug, Clone, Default)]
pub(super) struct RunFiles {
    pub(super) report: Option<AtomicOutput>,
    pub(super) patch: Option<AtomicOutput>,
}

#[derive(Debug, Clone, Default)]
struct Job {
    /// The path of the workspace below the checkout.
    below: PathBuf,
    summary: Option<PathBuf>,
    outputs: Option<PathBuf>,
}

/// The results of several runs in each form.
#[derive(Debug)]
pub(super) struct ResultTexts {
    pub(super) junit: String,
    pub(super) page: String,
    pub(super) report: String,
    /// The outputs of a job of GitHub Actions.
    pub(super) outputs: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ResultFormat {
    Junit,
    Summary,
    /// The combined report of several tasks.
    Report,
    Sarif,
    CodeQuality,
}

impl ResultArguments {
    /// Returns the valid places, for a message that other places are not valid.
    pub(super) fn sound_places(&self, workspace: &Path, environment: &EnvironmentLayer) -> ResultFiles {
        let found: Vec<(ResultFormat, AtomicOutput)> = self
            .asked()
            .filter_map(|(flag, form, path)| Some((form, find_output(flag, path, workspace).ok()?)))
            .collect();
        let is_own = |place: &AtomicOutput| found.iter().filter(|(_, other)| other == place).count() == 1;
        let files = found.iter().filter(|(_, place)| is_own(place)).cloned().collect();
        ResultFiles { files, ..ResultFiles::of_job(workspace, environment) }
    }

    /// Finds the place of each file.
    ///
    /// # Errors
    /// When a file cannot be written, or two have the same place.
    pub(super) fn places(&self, workspace: &Path, environment: &EnvironmentLayer) -> Result<ResultFiles, CliError> {
        let mut files: Vec<(ResultFormat, AtomicOutput)> = Vec::new();
        for (flag, form, path) in self.asked() {
            let place = find_output(flag, path, workspace)?;
            if files.iter().any(|(_, taken)| *taken == place) {
                return Err(CliError::input(anyhow!("{flag} {}: the file is in use for other output", path.display())));
            }
            files.push((form, place));
        }
        Ok(ResultFiles { files, ..ResultFiles::of_job(workspace, environment) })
    }

    fn asked(&self) -> impl Iterator<Item = (&'static str, ResultFormat, &PathBuf)> {
        let all = [
            ("--junit", ResultFormat::Junit, &self.junit),
            ("--summary", ResultFormat::Summary, &self.summary),
            ("--sarif", ResultFormat::Sarif, &self.sarif),
            ("--code-quality", ResultFormat::CodeQuality, &self.code_quality),
        ];
        all.into_iter().filter_map(|(flag, form, path)| Some((flag, form, path.as_ref()?)))
    }
}

impl ResultArguments {
    /// Finds the places for several tasks, with the combined report.
    ///
    /// # Errors
    /// When a file cannot be written, two have the same place, or a form is for a single task only.
    pub(super) fn places_of_batch(
        &self,
        report: Option<&Path>,
        workspace: &Path,
        environment: &EnvironmentLayer,
    ) -> Result<ResultFiles, CliError> {
        for (flag, path) in [("--sarif", &self.sarif), ("--code-quality", &self.code_quality)] {
            if path.is_some() {
                let error = anyhow!("{flag} reports one gate, but there may be several tasks");
                return Err(CliError::input(error).hint("run that task alone, or omit the flag"));
            }
        }
        let mut results = self.places(workspace, environment)?;
        if let Some(path) = report {
            let place = find_output("--report", path, workspace)?;
            if results.files.iter().any(|(_, taken)| *taken == place) {
                return Err(CliError::input(anyhow!(
                    "--report {}: the file is in use for other output",
                    path.display()
                )));
            }
            results.files.push((ResultFormat::Report, place));
        }
        Ok(results)
    }
}

impl ResultFiles {
    /// Returns the results of a job of GitHub Actions, if this process runs in one, without other
    /// files.
    pub(super) fn of_job(workspace: &Path, environment: &EnvironmentLayer) -> Self {
        let variable = |name| environment.get(name).map(PathBuf::from);
        let job = paint::is_runner(environment).then(|| Job {
            below: below_checkout(environment, workspace),
            summary: variable("GITHUB_STEP_SUMMARY"),
            outputs: variable("GITHUB_OUTPUT"),
        });
        Self { files: Vec::new(), job, beside: RunFiles::default(), was_told: Arc::default() }
    }

    /// Adds the files that others write.
    pub(super) fn with(self, beside: RunFiles) -> Self {
        Self { beside, ..self }
    }

    /// Writes all results of a run.
    ///
    /// # Errors
    /// The first failure; the other files are still written.
    pub(super) fn write(&self, result: &TaskResult) -> Result<(), CliError> {
        let lanes = job::lanes(result);
        let before = job::before(result);
        let lane = job::judged(result, &lanes, &before);
        // A run that skips its gate gets no annotation that the gate was skipped.
        let told = if result.verification == Verification::Skipped { &[][..] } else { &[&lane] };
        self.put(&lane, told, &job::page(result, &lane), &job::outputs(result))
    }

    /// Writes that a run could not begin or has no result. Otherwise an earlier result would be
    /// taken for its own. Does nothing if a result was reported.
    ///
    /// # Errors
    /// Those of [`Self::write`].
    pub(super) fn write_unbegun(&self, failure: &CliError) -> Result<(), CliError> {
        if self.was_told.load(Ordering::Relaxed) {
            return Ok(());
        }
        let why = failure.message();
        let lane = job::unbegun(&why);
        let outputs = job::unbegun_outputs(failure.code(), failure.reason());
        let put = self.put(&lane, &[&lane], &job::unbegun_page(&lane), &outputs);
        put.and(self.put_beside(failure))
    }

    /// Writes that a batch, with its name, could not begin or has no result.
    ///
    /// # Errors
    /// Those of [`Self::write`].
    pub(super) fn write_unbegun_batch(&self, batch: &str, failure: &CliError) -> Result<(), CliError> {
        let why = failure.message();
        if self.job.is_some() {
            paint::command(&github::error(batch, &why));
        }
        let (junit, page) = (forms::unbegun_junit(batch, &why), forms::unbegun_page(batch, &why));
        let (report, outputs) = (String::new(), forms::unbegun_outputs(failure.code()));
        let written = self.write_texts(&ResultTexts { junit, page, report, outputs });
        // A batch refuses these forms. Replace older files, which say nothing of the batch.
        let lane = LaneResult { lane: batch, ..job::unbegun(&why) };
        let mut others = self.files.iter().filter_map(|(form, place)| match form {
            ResultFormat::Sarif => Some((place, sarif::document(&lane))),
            ResultFormat::CodeQuality => Some((place, code_quality::document(&lane))),
            ResultFormat::Junit | ResultFormat::Summary | ResultFormat::Report => None,
        });
        let refused = others.try_for_each(|(place, text)| place.write(text.as_bytes(), &|| false));
        written.and(refused.map_err(CliError::own)).and(self.put_beside(failure))
    }

    /// Replaces an earlier run's report, and removes its patch.
    fn put_beside(&self, failure: &CliError) -> Result<(), CliError> {
        let RunFiles { report, patch } = &self.beside;
        if let Some(place) = report {
            let text = format!("{:#}\n", job::unbegun_report(failure.code(), failure.reason(), &failure.message()));
            place.write(text.as_bytes(), &|| false).map_err(CliError::own)?;
        }
        patch
            .as_ref()
            .map_or(Ok(()), AtomicOutput::remove)
            .context("cannot remove the old patch")
            .map_err(CliError::own)
    }

    /// Writes the results; `told` are the lanes to annotate.
    fn put(&self, lane: &LaneResult<'_>, told: &[&LaneResult<'_>], page: &str, outputs: &str) -> Result<(), CliError> {
        self.was_told.store(true, Ordering::Relaxed);
        let mut failed = None;
        let mut keep = |done: Result<(), CliError>| {
            if let Err(failure) = done {
                failed.get_or_insert(failure);
            }
        };
        for (form, place) in &self.files {
            let text = match form {
                ResultFormat::Junit => junit::document(lane),
                ResultFormat::Summary => page.to_owned(),
                ResultFormat::Sarif => sarif::document(lane),
                ResultFormat::CodeQuality => code_quality::document(lane),
                ResultFormat::Report => continue, // the driver writes the report of a run
            };
            keep(place.write(text.as_bytes(), &|| true).map_err(CliError::own));
        }
        if let Some(job) = &self.job {
            told.iter().flat_map(|lane| github::annotations(lane, &job.below)).for_each(|line| paint::command(&line));
            keep(append(job.summary.as_deref(), page));
            keep(append(job.outputs.as_deref(), outputs));
        }
        failed.map_or(Ok(()), Err)
    }

    /// Writes annotations of one of several runs for a job of GitHub Actions.
    pub(super) fn annotate(&self, result: &TaskResult) {
        let lanes = job::lanes(result);
        if let Some(job) = &self.job {
            github::annotations(&job::judged(result, &lanes, &job::before(result)), &job.below)
                .iter()
                .for_each(|line| paint::command(line));
        }
    }

    /// Writes the results of several tasks.
    ///
    /// # Errors
    /// The first failure; the other files are still written.
    pub(super) fn write_batch(&self, summary: &BatchSummary) -> Result<(), CliError> {
        let (junit, page) = (forms::junit(summary), forms::page(summary));
        self.write_texts(&ResultTexts { junit, page, report: summary.to_json(), outputs: forms::outputs(summary) })
    }

    /// Writes the given results of several runs.
    ///
    /// # Errors
    /// The first failure; the other files are still written.
    pub(super) fn write_texts(&self, texts: &ResultTexts) -> Result<(), CliError> {
        let mut failed = None;
        let mut keep = |done: Result<(), CliError>| {
            if let Err(failure) = done {
                failed.get_or_insert(failure);
            }
        };
        for (form, place) in &self.files {
            let text = match form {
                ResultFormat::Junit => &texts.junit,
                ResultFormat::Summary => &texts.page,
                ResultFormat::Report => &texts.report,
                ResultFormat::Sarif | ResultFormat::CodeQuality => continue, // refused earlier
            };
            keep(place.write(text.as_bytes(), &|| true).map_err(CliError::own));
        }
        if let Some(job) = &self.job {
            keep(append(job.summary.as_deref(), &texts.page));
            keep(append(job.outputs.as_deref(), &texts.outputs));
        }
        failed.map_or(Ok(()), Err)
    }
}

/// Appends to a file that others append to as well.
fn append(path: Option<&Path>, text: &str) -> Result<(), CliError> {
    let Some(path) = path else { return Ok(()) };
    let written =
        OpenOptions::new().append(true).create(true).open(path).and_then(|mut file| file.write_all(text.as_bytes()));
    written
        .map_err(|error| CliError::own(anyhow::Error::new(error).context(format!("cannot write {}", path.display()))))
}

/// Returns the path of the project's root below the checkout of GitHub Actions. Returns an empty
/// path if none exists.
pub(super) fn below_checkout(environment: &EnvironmentLayer, root: &Path) -> PathBuf {
    let below = || {
        let checkout = PathBuf::from(environment.get("GITHUB_WORKSPACE")?).canonicalize().ok()?;
        Some(root.canonicalize().ok()?.strip_prefix(checkout).ok()?.to_owned())
    };
    below().unwrap_or_default()
}
