//! A batch as text: its plan before it runs, and its table when it is over.

use super::super::live::{cells, fit};
use super::super::paint::Tone;
use crate::batch::plan::{Job, TaskText};
use crate::batch::{Bounds, End, JobSummary, Standing, Summary};
use crate::report::{money, seconds};
use serde_json::{Value, json};

/// Cells of the longest name of a job that is shown whole.
const LONGEST_NAME: usize = 40;
/// Cells of what is said of a job that did not succeed.
const LONGEST_WORDS: usize = 100;
/// The most rows of a table; of many jobs those that are verified are left out first.
const ROWS: usize = 200;

/// A line in pieces.
pub(super) type Line = Vec<(Tone, String)>;

/// The plan, for people.
pub(super) fn plan(jobs: &[Job], texts: &[TaskText], bounds: &Bounds) -> String {
    let jobs_word = if jobs.len() == 1 { "job" } else { "jobs" };
    let money_word = bounds.usd_micros.map(|limit| format!(", {} at most", money(limit))).unwrap_or_default();
    let retries = if bounds.retries == 0 { String::new() } else { format!(", {} retries", bounds.retries) };
    let fail_fast = if bounds.fail_fast { ", until one fails" } else { "" };
    let mut text = format!("{} {jobs_word}, {} at once{money_word}{retries}{fail_fast}\n", jobs.len(), bounds.jobs);
    let racing = jobs.iter().filter(|job| job.race.is_some()).count();
    if racing > 0 {
        text.push_str(&format!("{racing} of them are candidates that race: all that begin are paid for\n"));
    }
    let width = jobs.iter().map(|job| cells(&job.name)).max().unwrap_or(0).min(LONGEST_NAME);
    for job in jobs {
        let params: Vec<String> = job.params.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let mut parts = vec![padded(&job.name, width), texts[job.task].source.clone()];
        if !params.is_empty() {
            parts.push(params.join(" "));
        }
        parts.extend((!job.models.is_empty()).then(|| job.models.join(", ")));
        if !job.needs.is_empty() {
            let needs: Vec<&str> = job.needs.iter().map(|need| jobs[*need].name.as_str()).collect();
            parts.push(format!("needs {}", needs.join(", ")));
        }
        text.push_str(&format!("  {}\n", parts.join("  ")));
    }
    text
}

/// The plan, for programs.
pub(super) fn plan_data(jobs: &[Job], texts: &[TaskText], bounds: &Bounds, folder: impl Fn(&Job) -> String) -> Value {
    let job = |job: &Job| {
        let needs: Vec<&str> = job.needs.iter().map(|need| jobs[*need].name.as_str()).collect();
        json!({
            "job": job.name,
            "title": job.title,
            "task": texts[job.task].source,
            "repository": folder(job),
            "params": job.params,
            "needs": needs,
            "candidate_of": job.race.map(|_| &job.of),
            "models": job.models,
        })
    };
    json!({
        "schema_version": 1,
        "at_once": bounds.jobs,
        "fail_fast": bounds.fail_fast,
        "retries": bounds.retries,
        "max_usd_micros": bounds.usd_micros,
        "jobs": jobs.iter().map(job).collect::<Vec<_>>(),
    })
}

/// The table: a row for each job, then what all of them came to.
pub(super) fn table(summary: &Summary) -> Vec<Line> {
    let is_wanted = |job: &&JobSummary| summary.jobs.len() <= ROWS || job.standing != Standing::Verified;
    let rows: Vec<&JobSummary> = summary.jobs.iter().filter(is_wanted).take(ROWS).collect();
    let columns: Vec<[String; 6]> = rows.iter().map(|job| row(job)).collect();
    let width = |column: usize| columns.iter().map(|row| cells(&row[column])).max().unwrap_or(0);
    let widths: Vec<usize> = (0..6).map(width).collect();
    let mut lines: Vec<Line> = Vec::new();
    for (job, columns) in rows.iter().zip(&columns) {
        let (mark, tone) = mark_of(job);
        let mut line = vec![(tone, format!("{mark} ")), (Tone::Plain, padded(&columns[0], widths[0]))];
        line.push((tone, format!("  {}", padded(&columns[1], widths[1]))));
        let numbers: Vec<String> = (2..6).map(|column| padded(&columns[column], widths[column])).collect();
        line.push((Tone::Faint, format!("  {}", numbers.join("  "))));
        if !job.why().is_empty() {
            line.push((Tone::Plain, format!("  {}", fit(&super::super::paint::one_line(job.why()), LONGEST_WORDS))));
        }
        trim(&mut line);
        lines.push(line);
    }
    if rows.len() < summary.jobs.len() {
        lines.push(vec![(Tone::Faint, format!("  and {} more", summary.jobs.len() - rows.len()))]);
    }
    let left =
        summary.jobs.iter().filter(|job| matches!(&job.outcome.end, End::Ran(ran) if ran.has_left_work())).count();
    if left > 0 {
        let text =
            format!("  {} with work that is not committed: `fledge worktrees list`", counted(left as u64, "worktree"));
        lines.push(vec![(Tone::Faint, text)]);
    }
    let tone = if summary.verified { Tone::Good } else { Tone::Bad };
    let bound = summary.max_usd_micros.map(|limit| format!(" of {}", money(limit))).unwrap_or_default();
    let cost = if summary.usd_micros == 0 && bound.is_empty() {
        String::new()
    } else {
        format!(", {}{bound}", money(summary.usd_micros))
    };
    let rest = format!(" ({}{cost})", seconds(summary.duration_ms));
    lines.push(vec![(tone, summary.counts.words()), (Tone::Faint, rest)]);
    lines
}

fn row(job: &JobSummary) -> [String; 6] {
    let (attempts, turns, time) = job.effort().map_or_else(Default::default, |(attempts, turns, ms)| {
        (counted(attempts, "attempt"), counted(turns, "turn"), seconds(ms))
    });
    let cost = if job.outcome.usd_micros == 0 { String::new() } else { money(job.outcome.usd_micros) };
    [fit(&job.outcome.job, LONGEST_NAME), job.word().to_owned(), attempts, turns, cost, time]
}

/// A number with what it counts.
pub(super) fn counted(number: u64, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}

pub(super) fn mark_of(job: &JobSummary) -> (&'static str, Tone) {
    match job.standing {
        _ if job.outcome.beaten => ("-", Tone::Faint),
        Standing::Verified => ("✓", Tone::Good),
        Standing::Failed | Standing::Errored => ("✗", Tone::Bad),
        Standing::Cancelled | Standing::Skipped | Standing::NotStarted => ("-", Tone::Warn),
    }
}

pub(super) fn padded(text: &str, width: usize) -> String {
    let text = fit(text, width.max(1));
    let room = width.saturating_sub(cells(&text));
    text + &" ".repeat(room)
}

/// No line ends with spaces.
fn trim(line: &mut Line) {
    while let Some((_, last)) = line.last_mut() {
        last.truncate(last.trim_end().len());
        if !last.is_empty() {
            return;
        }
        line.pop();
    }
}
