//! Result of a batch in formats for other programs: JUnit with a test for each job, a page in
//! Markdown, and step outputs. Pure.

use super::outcome::JobStatus;
use super::summary::{BatchSummary, JobSummary};
use crate::report::junit::{self, JunitCase, JunitElement};
use crate::report::lane::markdown::{cell, code};
use crate::report::{money, seconds};

/// The maximum number of rows in the table of the page. A job summary on GitHub is limited to 1
/// MiB.
const ROWS: usize = 500;
/// The title for a batch in which no job began.
const UNBEGUN: &str = "the batch did not begin";

/// The name of the suite in a JUnit document.
const SUITE: &str = "fledge";

/// Returns a JUnit document.
pub(crate) fn junit(summary: &BatchSummary) -> String {
    let cases: Vec<JunitCase> = summary.jobs.iter().map(case).collect();
    junit::document(SUITE, summary.duration_ms, &cases)
}

/// Returns a JUnit document for a batch that could not begin. It contains one test with the reason,
/// since an empty document would look like a success.
pub(crate) fn unbegun_junit(batch: &str, why: &str) -> String {
    let message = Some(format!("{UNBEGUN}: {why}"));
    let error = JunitElement { element: "error", message, kind: Some("errored"), text: String::new() };
    let case = JunitCase { class: batch.into(), name: batch.into(), duration_ms: 0, elements: vec![error] };
    junit::document(SUITE, 0, &[case])
}

/// Returns the page for a batch that could not begin.
pub(crate) fn unbegun_page(batch: &str, why: &str) -> String {
    let lines: Vec<String> = why.lines().map(code).collect();
    format!("# ✗ {UNBEGUN}\n\n{}\n\n{}\n", code(batch), lines.join("\\\n"))
}

/// Returns the step outputs for a batch that could not begin.
pub(crate) fn unbegun_outputs(exit_code: u8) -> String {
    format!("verified=false\nexit-code={exit_code}\nbatch=\njobs=0\nverified-jobs=0\nunverified-jobs=0\n")
}

fn case(job: &JobSummary) -> JunitCase {
    let said = match element(job) {
        Some(element) => Some(JunitElement {
            element,
            message: Some(job.says.clone()),
            kind: Some(job.standing.word()),
            text: job.report.as_ref().map(|report| format!("report: {report}")).unwrap_or_default(),
        }),
        None => job.doubt().map(|doubt| JunitElement {
            element: "system-out",
            text: format!("verified {doubt}"),
            ..JunitElement::default()
        }),
    };
    JunitCase {
        class: job.task.clone(),
        name: job.outcome.job.clone(),
        duration_ms: job.effort().map_or(0, |(_, _, duration_ms)| duration_ms),
        elements: said.into_iter().collect(),
    }
}

/// Returns the JUnit element for the outcome of a job; `None` for a verified job.
fn element(job: &JobSummary) -> Option<&'static str> {
    match job.standing {
        JobStatus::Verified => None,
        _ if job.outcome.beaten => Some("skipped"),
        JobStatus::Failed => Some("failure"),
        JobStatus::Errored => Some("error"),
        JobStatus::Cancelled | JobStatus::Skipped | JobStatus::NotStarted => Some("skipped"),
    }
}

/// Returns a page with the overall result and a row for each job. A very large batch lists only the
/// jobs with a remark.
pub(crate) fn page(summary: &BatchSummary) -> String {
    let mark = if summary.verified { "✓" } else { "✗" };
    let mut text = format!("# {mark} {}\n\n", summary.counts.words());
    let bound = summary.max_usd_micros.map(|limit| format!(" of {}", money(limit))).unwrap_or_default();
    text.push_str(&format!("{}, {}{bound}\n\n", seconds(summary.duration_ms), money(summary.usd_micros)));
    text.push_str("| | job | result | attempts | turns | cost | time |\n|---|---|---|---:|---:|---:|---:|\n");
    let is_wanted = |job: &&JobSummary| summary.jobs.len() <= ROWS || !job.remark().is_empty();
    let rows: Vec<&JobSummary> = summary.jobs.iter().filter(is_wanted).take(ROWS).collect();
    for job in &rows {
        let (attempts, turns, time) = job.effort().map_or_else(Default::default, |(attempts, turns, ms)| {
            (attempts.to_string(), turns.to_string(), seconds(ms))
        });
        let how = if job.remark().is_empty() { String::new() } else { format!(": {}", cell(job.remark())) };
        let how = format!("{}{how}", job.word());
        let cost = if job.outcome.usd_micros == 0 { String::new() } else { money(job.outcome.usd_micros) };
        let name = cell(&job.outcome.job);
        text.push_str(&format!("| {} | {name} | {how} | {attempts} | {turns} | {cost} | {time} |\n", mark_of(job)));
    }
    if rows.len() < summary.jobs.len() {
        text.push_str(&format!("\nand {} more\n", summary.jobs.len() - rows.len()));
    }
    let committed = summary.jobs.iter().filter_map(|job| match &job.outcome.end {
        super::JobEnding::Ran(ran) => Some((job, ran.branch.as_ref()?)),
        super::JobEnding::NotRun(_) => None,
    });
    let branches: Vec<String> = committed
        .take(ROWS)
        .map(|(job, branch)| {
            format!("- {}: {}\n", code(&job.outcome.job), code(branch.trim_start_matches("refs/heads/")))
        })
        .collect();
    if !branches.is_empty() {
        text.push_str(&format!("\n## Branches\n\n{}", branches.concat()));
    }
    text
}

/// Returns the step outputs for a workflow, one `name=value` a line.
pub(crate) fn outputs(summary: &BatchSummary) -> String {
    let BatchSummary { batch, verified, exit_code, counts, .. } = summary;
    let failed = counts.jobs - counts.verified;
    format!(
        "verified={verified}\nexit-code={exit_code}\nbatch={batch}\njobs={}\nverified-jobs={}\nunverified-jobs={failed}\n",
        counts.jobs, counts.verified
    )
}

fn mark_of(job: &JobSummary) -> &'static str {
    match job.standing {
        _ if job.outcome.beaten => "-",
        JobStatus::Verified => "✓",
        JobStatus::Failed | JobStatus::Errored => "✗",
        JobStatus::Cancelled | JobStatus::Skipped | JobStatus::NotStarted => "-",
    }
}
