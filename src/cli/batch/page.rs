//! A batch as text: its plan before it runs, and its table at the end.

use super::super::live::{cells, fit};
use super::super::paint::Tone;
use crate::batch::plan::{BatchJob, TaskText};
use crate::batch::{BatchLimits, BatchSummary, JobEnding, JobStatus, JobSummary};
use crate::report::{count, money, seconds};
use crate::run::WorkplaceState;
use crate::verdict::{HeldBack, joined_flags, shell_word};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;

/// The longest job name shown in full, in cells.
const LONGEST_NAME: usize = 40;
/// The longest remark about a job, in cells.
const LONGEST_WORDS: usize = 100;
/// The maximum number of protected paths named for a job.
const MOST_HELD_BACK: usize = 3;
/// The longest title shown in full, in cells.
const LONGEST_TITLE: usize = 32;
/// The maximum number of columns of a command in the list of next steps. A longer one moves its
/// purpose to the right.
const WIDEST_COMMAND: usize = 60;
/// The number of columns before the remark.
const COLUMNS: usize = 8;
/// The maximum number of rows of a table. If there are more jobs, rows without a remark are left
/// out first.
const ROWS: usize = 200;

/// A line of text in styled pieces.
pub(super) type Line = Vec<(Tone, String)>;

/// Formats the plan for people.
pub(super) fn plan(jobs: &[BatchJob], texts: &[TaskText], bounds: &BatchLimits) -> String {
    let jobs_word = if jobs.len() == 1 { "job" } else { "jobs" };
    let money_word = bounds.usd_micros.map(|limit| format!(", {} at most", money(limit))).unwrap_or_default();
    let retries = if bounds.retries == 0 { String::new() } else { format!(", {} retries", bounds.retries) };
    let fail_fast = if bounds.fail_fast { ", stops at the first unverified job" } else { "" };
    let mut text = format!("{} {jobs_word}, {} at once{money_word}{retries}{fail_fast}\n", jobs.len(), bounds.jobs);
    let racing = jobs.iter().filter(|job| job.race.is_some()).count();
    if racing > 0 {
        text.push_str(&format!("{racing} of them are candidates: you pay for each candidate that starts\n"));
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

/// Returns the plan as JSON data.
pub(super) fn plan_data(
    jobs: &[BatchJob],
    texts: &[TaskText],
    bounds: &BatchLimits,
    folder: impl Fn(&BatchJob) -> String,
) -> Value {
    let job = |job: &BatchJob| {
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

/// Formats the table: a row for each job, then the totals.
pub(in crate::cli) fn table(summary: &BatchSummary) -> Vec<Line> {
    let is_wanted = |job: &&JobSummary| summary.jobs.len() <= ROWS || !job.remark().is_empty();
    let rows: Vec<&JobSummary> = summary.jobs.iter().filter(is_wanted).take(ROWS).collect();
    let columns: Vec<[String; COLUMNS]> = rows.iter().map(|job| row(job)).collect();
    let width = |column: usize| columns.iter().map(|row| cells(&row[column])).max().unwrap_or(0);
    let widths: Vec<usize> = (0..COLUMNS).map(width).collect();
    let mut lines: Vec<Line> = Vec::new();
    for (job, columns) in rows.iter().zip(&columns) {
        let (mark, tone) = mark_of(job);
        let mut line = vec![(tone, format!("{mark} ")), (Tone::Plain, padded(&columns[0], widths[0]))];
        line.push((Tone::Plain, format!("  {}", padded(&columns[1], widths[1]))));
        line.push((tone, format!("  {}", padded(&columns[2], widths[2]))));
        let numbers: Vec<String> = (3..COLUMNS).map(|column| padded(&columns[column], widths[column])).collect();
        line.push((Tone::Faint, format!("  {}", numbers.join("  "))));
        if !job.remark().is_empty() {
            line.push((Tone::Plain, format!("  {}", fit(&super::super::paint::one_line(job.remark()), LONGEST_WORDS))));
        }
        if let Some(branch) = branch_of(job) {
            line.push((Tone::Faint, format!("  {branch}")));
        }
        trim(&mut line);
        lines.push(line);
        lines.extend(held_back(job).into_iter().map(|text| vec![(Tone::Faint, format!("    {text}"))]));
    }
    if rows.len() < summary.jobs.len() {
        lines.push(vec![(Tone::Faint, format!("  and {} more", summary.jobs.len() - rows.len()))]);
    }
    let here = Path::new(".").canonicalize().unwrap_or_default();
    lines.extend(left(summary, &here.display().to_string()).into_iter().map(|text| vec![(Tone::Faint, text)]));
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

/// Returns the changes of protected paths that kept a job from success, and the flags that would
/// allow them.
fn held_back(job: &JobSummary) -> Vec<String> {
    let JobEnding::Ran(ran) = &job.outcome.end else { return Vec::new() };
    if job.standing == JobStatus::Verified || job.outcome.beaten {
        return Vec::new();
    }
    let told = |held: &HeldBack| format!("{} is protected: {}", held.path, held.rule);
    let mut lines: Vec<String> = ran.protected.iter().take(MOST_HELD_BACK).map(told).collect();
    let more = ran.protected.len().saturating_sub(MOST_HELD_BACK);
    lines.extend((more > 0).then(|| format!("and {more} more")));
    lines.extend(joined_flags(&ran.protected).map(|flags| format!("to allow these changes: {flags}")));
    lines.iter().map(|line| super::super::paint::one_line(line)).collect()
}

/// Returns a line for each repository with remaining worktrees. Commands for the folder `here` omit
/// `-C`.
fn left(summary: &BatchSummary, here: &str) -> Vec<String> {
    let mut all: BTreeMap<&str, [u64; 2]> = BTreeMap::new();
    for job in &summary.jobs {
        if let JobEnding::Ran(ran) = &job.outcome.end
            && let Some(worktree) = ran.left()
        {
            all.entry(&job.repository).or_default()[usize::from(worktree.state != WorkplaceState::Kept)] += 1;
        }
    }
    let line = |(repository, [uncommitted, unclear]): (&str, [u64; 2])| {
        let counts = [(uncommitted, "with work that is not committed"), (unclear, "that fledge could not inspect")];
        let counts = counts.into_iter().filter(|(count, _)| *count > 0);
        let said: Vec<String> = counts.map(|(count, what)| format!("{} {what}", counted(count, "worktree"))).collect();
        let of = if repository == here { String::new() } else { format!(" -C {}", shell_word(repository)) };
        format!("  {}: `fledge worktrees list{of}`, `fledge worktrees clean --failed{of}`", said.join(", "))
    };
    all.into_iter().map(line).collect()
}

/// Returns a line for each failure. With `--quiet`, these are the only output.
pub(super) fn failures(summary: &BatchSummary) -> Vec<Line> {
    let (mut lines, mut unbegun): (Vec<Line>, BTreeMap<&str, Vec<&JobSummary>>) = (Vec::new(), BTreeMap::new());
    for job in summary.jobs.iter().filter(|job| job.standing != JobStatus::Verified && !job.outcome.beaten) {
        if job.standing == JobStatus::NotStarted {
            unbegun.entry(&job.says).or_default().push(job);
        } else {
            lines.push(failure(job));
            lines.extend(held_back(job).into_iter().map(|text| vec![(Tone::Plain, format!("  {text}"))]));
        }
    }
    for (says, jobs) in unbegun {
        lines.push(match jobs.as_slice() {
            [job] => failure(job),
            jobs => vec![
                (Tone::Warn, format!("- {} jobs {}", jobs.len(), JobStatus::NotStarted.word())),
                (Tone::Plain, format!(": {says}")),
            ],
        });
    }
    lines
}

fn failure(job: &JobSummary) -> Line {
    let (mark, tone) = mark_of(job);
    let says = super::super::paint::one_line(&job.says);
    // A cancelled run often has no message beyond its state.
    let says = if says == job.standing.word() { String::new() } else { format!(": {says}") };
    vec![(tone, format!("{mark} {} {}", job.outcome.job, job.standing.word())), (Tone::Plain, says)]
}

/// Returns the branch with the verified work of a job, unless the job was beaten.
fn branch_of(job: &JobSummary) -> Option<&str> {
    match &job.outcome.end {
        JobEnding::Ran(ran) if job.standing == JobStatus::Verified && !job.outcome.beaten => {
            ran.branch.as_deref().map(|name| name.strip_prefix("refs/heads/").unwrap_or(name))
        }
        JobEnding::Ran(_) | JobEnding::NotRun(_) => None,
    }
}

/// Returns the next commands after a batch, one in each line.
pub(in crate::cli) fn next_steps(summary: &BatchSummary) -> Vec<Line> {
    let here = Path::new(".").canonicalize().unwrap_or_default();
    let mut steps = Vec::new();
    let failed = summary.jobs.iter().filter(|job| matches!(job.standing, JobStatus::Failed | JobStatus::Errored));
    let run = |job: &JobSummary| match &job.outcome.end {
        JobEnding::Ran(ran) => Some((ran.run.to_string(), job.outcome.job.clone(), job.repository.clone())),
        JobEnding::NotRun(_) => None,
    };
    let folder = |repository: &str| {
        if Path::new(repository) == here { String::new() } else { format!(" -C {}", shell_word(repository)) }
    };
    if let Some((run, name, repository)) = failed.filter(|job| !job.outcome.beaten).find_map(run) {
        steps.push((format!("fledge runs show {run}{}", folder(&repository)), format!("what happened in {name}")));
    }
    if summary.is_unfinished() {
        let again = summary.resume.clone().unwrap_or_else(|| "the same command with --resume".into());
        steps.push((again, "continues the unfinished jobs".into()));
    }
    let mut branches = summary.jobs.iter().filter_map(|job| Some((branch_of(job)?, &job.repository)));
    if let Some((branch, repository)) = branches.next() {
        let more = match branches.count() {
            0 => String::new(),
            1 => " (1 more branch to merge)".to_owned(),
            more => format!(" ({more} more branches to merge)"),
        };
        steps.push((format!("git{} merge {branch}", folder(repository)), format!("merges the work here{more}")));
    }
    let of_project = summary.jobs.first().map(|job| folder(&job.repository)).unwrap_or_default();
    steps.push((format!("fledge batch show {}{of_project}", summary.batch), "show this table again".into()));
    let widths = steps.iter().map(|(command, _)| cells(command));
    let width = widths.filter(|width| *width <= WIDEST_COMMAND).max().unwrap_or(0);
    let line = |(command, what): (String, String)| {
        let command = super::super::paint::one_line(&command);
        vec![(Tone::Plain, format!("  {command:<width$}")), (Tone::Faint, format!("  {what}"))]
    };
    steps.into_iter().map(line).collect()
}

/// Returns the cells of a job: name, title, status, attempts, turns, tokens, cost, time. The cost
/// covers all tries of the job; the other numbers are those of its last run.
fn row(job: &JobSummary) -> [String; COLUMNS] {
    let (attempts, turns, time) = job.effort().map_or_else(Default::default, |(attempts, turns, ms)| {
        (counted(attempts, "attempt"), counted(turns, "turn"), seconds(ms))
    });
    let cost = if job.outcome.usd_micros == 0 { String::new() } else { money(job.outcome.usd_micros) };
    let tokens = match &job.outcome.end {
        JobEnding::Ran(ran) if ran.tokens_in + ran.tokens_out > 0 => {
            let about = if ran.estimated_tokens > 0 { "~" } else { "" };
            format!("{about}{} tokens", count(ran.tokens_in + ran.tokens_out))
        }
        JobEnding::Ran(_) | JobEnding::NotRun(_) => String::new(),
    };
    let title = fit(&super::super::paint::one_line(&job.outcome.title), LONGEST_TITLE);
    [fit(&job.outcome.job, LONGEST_NAME), title, job.word().to_owned(), attempts, turns, tokens, cost, time]
}

/// Formats a count with its noun.
pub(super) fn counted(number: u64, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}

pub(super) fn mark_of(job: &JobSummary) -> (&'static str, Tone) {
    match job.standing {
        _ if job.outcome.beaten => ("-", Tone::Faint),
        JobStatus::Verified if job.doubt().is_some() => ("✓", Tone::Warn),
        JobStatus::Verified => ("✓", Tone::Good),
        JobStatus::Failed | JobStatus::Errored => ("✗", Tone::Bad),
        JobStatus::Cancelled | JobStatus::Skipped | JobStatus::NotStarted => ("-", Tone::Warn),
    }
}

pub(super) fn padded(text: &str, width: usize) -> String {
    let text = fit(text, width.max(1));
    let room = width.saturating_sub(cells(&text));
    text + &" ".repeat(room)
}

/// Removes spaces at the end of a line.
fn trim(line: &mut Line) {
    while let Some((_, last)) = line.last_mut() {
        last.truncate(last.trim_end().len());
        if !last.is_empty() {
            return;
        }
        line.pop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cancelled(name: &str, repository: &str, worktree: Option<&str>) -> JobSummary {
        let place =
            |state| json!({ "path": "/w", "branch": "b", "base": "c", "state": state, "why": "x", "has_branch": true });
        let ran = json!({
            "run": name, "reason": "cancelled", "exit_code": 130, "verified": false, "verification": "not_reached",
            "cancelled": true, "message": "cancelled", "summary": "", "attempts": 0, "turns": 1, "tokens_in": 0,
            "tokens_out": 0, "usd_micros": null, "duration_ms": 5, "files_changed": [], "tree": null, "commit": null,
            "branch": null, "worktree": worktree.map(place),
        });
        let outcome = json!({ "job": name, "title": name, "tries": 1, "usd_micros": 0, "end": { "ran": ran } });
        let outcome = serde_json::from_value(outcome).unwrap();
        JobSummary::new(outcome, "t.md".into(), repository.into(), None)
    }

    #[test]
    fn tokens_that_no_provider_counted_are_marked() {
        let mut job = cancelled("a", "/here", None);
        let tokens = |job: &JobSummary| row(job)[5].clone();
        assert_eq!(tokens(&job), "");
        if let JobEnding::Ran(ran) = &mut job.outcome.end {
            (ran.tokens_in, ran.tokens_out) = (1200, 34);
        }
        assert_eq!(tokens(&job), "1,234 tokens");
        if let JobEnding::Ran(ran) = &mut job.outcome.end {
            ran.estimated_tokens = 34;
        }
        assert_eq!(tokens(&job), "~1,234 tokens");
    }

    #[test]
    fn only_a_worktree_that_was_looked_into_has_work_that_is_not_committed() {
        let jobs = [
            cancelled("a", "/here", Some("kept")),
            cancelled("b", "/here", Some("unclear")),
            cancelled("c", "/here", Some("unclear")),
            cancelled("d", "/here", Some("removed")),
            cancelled("e", "/it's there", Some("unclear")),
            cancelled("f", "/else", None),
        ];
        let summary = BatchSummary::new("b-1".into(), jobs.into(), None, 9);
        let expected = [
            "  1 worktree with work that is not committed, 2 worktrees that fledge could not inspect: `fledge worktrees list`, `fledge worktrees clean --failed`",
            "  1 worktree that fledge could not inspect: `fledge worktrees list -C '/it'\\''s there'`, `fledge worktrees clean --failed -C '/it'\\''s there'`",
        ];
        assert_eq!(left(&summary, "/here"), expected);
        assert_eq!(failures(&summary).len(), 6);
    }
}
