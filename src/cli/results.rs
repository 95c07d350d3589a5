//! What `fledge run` and `fledge fix` leave for continuous integration: the last verdict as JUnit, Markdown, SARIF and GitLab's code quality,
//! and for a job of GitHub's annotations, its summary and its outputs.

use super::failure::Failure;
use super::lanes::below_checkout;
use super::outlet::outlet;
use super::paint;
use crate::batch::{Summary, forms};
use crate::config::Environment;
use crate::report::job;
use crate::report::lane::{LaneResult, code_quality, github, junit, sarif};
use crate::run::TaskResult;
use crate::verdict::Verification;
use crate::workspace::Outlet;
use anyhow::{Context, anyhow};
use clap::Args;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

#[derive(Debug, Clone, Default, Args)]
pub(super) struct ResultArguments {
    /// Write the last verdict as a JUnit report, with a test for each step
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Write a summary in Markdown
    #[arg(long, value_name = "FILE")]
    summary: Option<PathBuf>,
    /// Write what the last verdict complains of as SARIF, for code scanning
    #[arg(long, value_name = "FILE")]
    sarif: Option<PathBuf>,
    /// Write the same as a code quality report of GitLab's
    #[arg(long, value_name = "FILE")]
    code_quality: Option<PathBuf>,
}

/// Where all of it goes, found before anybody is at work.
#[derive(Debug, Clone)]
pub(super) struct Results {
    files: Vec<(Form, Outlet)>,
    /// The summary and the outputs of a job of GitHub's; both files are its runner's.
    job: Option<Job>,
    /// Where what is not written here goes, of a run that begins.
    beside: Beside,
    /// Whether a run's end was told here: nothing that comes later takes its place.
    was_told: Arc<AtomicBool>,
}

/// The files of a run that its driver writes.
#[derive(Debug, Clone, Default)]
pub(super) struct Beside {
    pub(super) report: Option<Outlet>,
    pub(super) patch: Option<Outlet>,
}

#[derive(Debug, Clone, Default)]
struct Job {
    /// Where the workspace stands below the checkout.
    below: PathBuf,
    summary: Option<PathBuf>,
    outputs: Option<PathBuf>,
}

/// What many runs came to, in each form.
#[derive(Debug)]
pub(super) struct Texts {
    pub(super) junit: String,
    pub(super) page: String,
    pub(super) report: String,
    /// The outputs of a job of GitHub's.
    pub(super) outputs: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Junit,
    Summary,
    /// The combined report of many tasks.
    Report,
    Sarif,
    CodeQuality,
}

impl ResultArguments {
    /// Those of the places that there are, for what is to be said although others are not.
    pub(super) fn sound_places(&self, workspace: &Path, environment: &Environment) -> Results {
        let found: Vec<(Form, Outlet)> =
            self.asked().filter_map(|(flag, form, path)| Some((form, outlet(flag, path, workspace).ok()?))).collect();
        let is_own = |place: &Outlet| found.iter().filter(|(_, other)| other == place).count() == 1;
        let files = found.iter().filter(|(_, place)| is_own(place)).cloned().collect();
        Results { files, ..Results::of_job(workspace, environment) }
    }

    /// Finds the place of each file.
    ///
    /// # Errors
    /// A file without a place, or two for one.
    pub(super) fn places(&self, workspace: &Path, environment: &Environment) -> Result<Results, Failure> {
        let mut files: Vec<(Form, Outlet)> = Vec::new();
        for (flag, form, path) in self.asked() {
            let place = outlet(flag, path, workspace)?;
            if files.iter().any(|(_, taken)| *taken == place) {
                return Err(Failure::input(anyhow!("{flag} {}: another result goes there already", path.display())));
            }
            files.push((form, place));
        }
        Ok(Results { files, ..Results::of_job(workspace, environment) })
    }

    fn asked(&self) -> impl Iterator<Item = (&'static str, Form, &PathBuf)> {
        let all = [
            ("--junit", Form::Junit, &self.junit),
            ("--summary", Form::Summary, &self.summary),
            ("--sarif", Form::Sarif, &self.sarif),
            ("--code-quality", Form::CodeQuality, &self.code_quality),
        ];
        all.into_iter().filter_map(|(flag, form, path)| Some((flag, form, path.as_ref()?)))
    }
}

impl ResultArguments {
    /// The same for many tasks, whose combined report is one of the files.
    ///
    /// # Errors
    /// A file without a place, two for one, or one of a form that only a single task has.
    pub(super) fn places_of_batch(
        &self,
        report: Option<&Path>,
        workspace: &Path,
        environment: &Environment,
    ) -> Result<Results, Failure> {
        for (flag, path) in [("--sarif", &self.sarif), ("--code-quality", &self.code_quality)] {
            if path.is_some() {
                let error = anyhow!("{flag} tells of one gate, and there may be many tasks");
                return Err(Failure::input(error).hint("run that task alone, or leave the flag out"));
            }
        }
        let mut results = self.places(workspace, environment)?;
        if let Some(path) = report {
            let place = outlet("--report", path, workspace)?;
            if results.files.iter().any(|(_, taken)| *taken == place) {
                return Err(Failure::input(anyhow!("--report {}: another result goes there already", path.display())));
            }
            results.files.push((Form::Report, place));
        }
        Ok(results)
    }
}

impl Results {
    /// What a job of GitHub's is told, where this is one, and no files.
    pub(super) fn of_job(workspace: &Path, environment: &Environment) -> Self {
        let variable = |name| environment.get(name).map(PathBuf::from);
        let job = paint::is_runner(environment).then(|| Job {
            below: below_checkout(environment, workspace),
            summary: variable("GITHUB_STEP_SUMMARY"),
            outputs: variable("GITHUB_OUTPUT"),
        });
        Self { files: Vec::new(), job, beside: Beside::default(), was_told: Arc::default() }
    }

    /// The same, with the files that are written elsewhere.
    pub(super) fn with(self, beside: Beside) -> Self {
        Self { beside, ..self }
    }

    /// Writes all of it.
    ///
    /// # Errors
    /// The first that cannot be written; the others are.
    pub(super) fn write(&self, result: &TaskResult) -> Result<(), Failure> {
        let lanes = job::lanes(result);
        let before = job::before(result);
        let lane = job::judged(result, &lanes, &before);
        // Who wants no gate is not told that it was not run.
        let told = if result.verification == Verification::Skipped { &[][..] } else { &[&lane] };
        self.put(&lane, told, &job::page(result, &lane), &job::outputs(result))
    }

    /// Writes that a run could not begin, or came to no result: what an earlier one has left would else be taken for its result. Does nothing
    /// where a result was told.
    ///
    /// # Errors
    /// As those of [`Self::write`].
    pub(super) fn write_unbegun(&self, failure: &Failure) -> Result<(), Failure> {
        if self.was_told.load(Ordering::Relaxed) {
            return Ok(());
        }
        let why = failure.message();
        let lane = job::unbegun(&why);
        let outputs = job::unbegun_outputs(failure.code(), failure.reason());
        let put = self.put(&lane, &[&lane], &job::unbegun_page(&lane), &outputs);
        put.and(self.put_beside(failure))
    }

    /// The same of a batch, by what it goes by.
    ///
    /// # Errors
    /// As those of [`Self::write`].
    pub(super) fn write_unbegun_batch(&self, batch: &str, failure: &Failure) -> Result<(), Failure> {
        let why = failure.message();
        if self.job.is_some() {
            paint::command(&github::error(batch, &why));
        }
        let (junit, page) = (forms::unbegun_junit(batch, &why), forms::unbegun_page(batch, &why));
        let (report, outputs) = (String::new(), forms::unbegun_outputs(failure.code()));
        let written = self.write_texts(&Texts { junit, page, report, outputs });
        // A batch has none of these; one that was asked for it was refused, and an older one tells nothing of that.
        let lane = LaneResult { lane: batch, ..job::unbegun(&why) };
        let mut others = self.files.iter().filter_map(|(form, place)| match form {
            Form::Sarif => Some((place, sarif::document(&lane))),
            Form::CodeQuality => Some((place, code_quality::document(&lane))),
            Form::Junit | Form::Summary | Form::Report => None,
        });
        let refused = others.try_for_each(|(place, text)| place.write(text.as_bytes(), &|| false));
        written.and(refused.map_err(Failure::own)).and(self.put_beside(failure))
    }

    /// No report and no patch of an earlier run stays.
    fn put_beside(&self, failure: &Failure) -> Result<(), Failure> {
        let Beside { report, patch } = &self.beside;
        if let Some(place) = report {
            let text = format!("{:#}\n", job::unbegun_report(failure.code(), failure.reason(), &failure.message()));
            place.write(text.as_bytes(), &|| false).map_err(Failure::own)?;
        }
        patch.as_ref().map_or(Ok(()), Outlet::remove).context("an old patch cannot be removed").map_err(Failure::own)
    }

    /// `told` is what there are annotations of.
    fn put(&self, lane: &LaneResult<'_>, told: &[&LaneResult<'_>], page: &str, outputs: &str) -> Result<(), Failure> {
        self.was_told.store(true, Ordering::Relaxed);
        let mut failed = None;
        let mut keep = |done: Result<(), Failure>| {
            if let Err(failure) = done {
                failed.get_or_insert(failure);
            }
        };
        for (form, place) in &self.files {
            let text = match form {
                Form::Junit => junit::document(lane),
                Form::Summary => page.to_owned(),
                Form::Sarif => sarif::document(lane),
                Form::CodeQuality => code_quality::document(lane),
                Form::Report => continue, // that of a run is written by its driver
            };
            keep(place.write(text.as_bytes(), &|| true).map_err(Failure::own));
        }
        if let Some(job) = &self.job {
            told.iter().flat_map(|lane| github::annotations(lane, &job.below)).for_each(|line| paint::command(&line));
            keep(append(job.summary.as_deref(), page));
            keep(append(job.outputs.as_deref(), outputs));
        }
        failed.map_or(Ok(()), Err)
    }

    /// Tells a job of GitHub's what one of many runs came to.
    pub(super) fn annotate(&self, result: &TaskResult) {
        let lanes = job::lanes(result);
        if let Some(job) = &self.job {
            github::annotations(&job::judged(result, &lanes, &job::before(result)), &job.below)
                .iter()
                .for_each(|line| paint::command(line));
        }
    }

    /// Writes what many tasks came to.
    ///
    /// # Errors
    /// The first that cannot be written; the others are.
    pub(super) fn write_batch(&self, summary: &Summary) -> Result<(), Failure> {
        let (junit, page) = (forms::junit(summary), forms::page(summary));
        self.write_texts(&Texts { junit, page, report: summary.to_json(), outputs: forms::outputs(summary) })
    }

    /// Writes what many runs came to, in its forms.
    ///
    /// # Errors
    /// The first that cannot be written; the others are.
    pub(super) fn write_texts(&self, texts: &Texts) -> Result<(), Failure> {
        let mut failed = None;
        let mut keep = |done: Result<(), Failure>| {
            if let Err(failure) = done {
                failed.get_or_insert(failure);
            }
        };
        for (form, place) in &self.files {
            let text = match form {
                Form::Junit => &texts.junit,
                Form::Summary => &texts.page,
                Form::Report => &texts.report,
                Form::Sarif | Form::CodeQuality => continue, // refused before
            };
            keep(place.write(text.as_bytes(), &|| true).map_err(Failure::own));
        }
        if let Some(job) = &self.job {
            keep(append(job.summary.as_deref(), &texts.page));
            keep(append(job.outputs.as_deref(), &texts.outputs));
        }
        failed.map_or(Ok(()), Err)
    }
}

/// Adds to a file that others add to as well.
fn append(path: Option<&Path>, text: &str) -> Result<(), Failure> {
    let Some(path) = path else { return Ok(()) };
    let written =
        OpenOptions::new().append(true).create(true).open(path).and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|error| Failure::own(anyhow::Error::new(error).context(format!("cannot write {}", path.display()))))
}
