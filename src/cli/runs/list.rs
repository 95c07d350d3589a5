//! `fledge runs list`: the newest runs of this project or of all projects.

use super::super::failure::CliError;
use super::super::live::{cells, fit};
use super::super::numbers::whole_number;
use super::super::output::{no_output, print_data, print_json};
use super::super::paint::{self, Tone};
use super::{RunsContext, data, failed, show::width};
use crate::report::{count, money, seconds};
use crate::store::{RunListFilter, RunProperty, RunRow, Store, StoredRunState};
use clap::{ArgGroup, Args};
use serde_json::json;
use std::path::Path;

/// The least width of a title. If there is less room, other columns are left out.
const TITLE: usize = 16;
/// The columns to leave out on a narrow terminal, in this order.
const LESS_WANTED: [usize; 5] = [5, 4, 7, 3, 6];
/// The widest project name, in columns.
const PROJECT: usize = 12;

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  fledge runs list\n  fledge runs list --failed --limit 5\n  fledge runs list --all-projects --json"
)]
#[command(group(ArgGroup::new("only").args(["failed", "verified", "interrupted", "lost", "running"])))]
pub(in crate::cli) struct ListRunsArguments {
    /// Print JSON to standard output
    #[arg(long)]
    json: bool,
    /// List at most N runs
    #[arg(long, value_name = "N", default_value_t = 20, allow_negative_numbers = true, value_parser = whole_number(1..=999_999))]
    limit: u32,
    /// List only runs that ended with an exit code other than 0
    #[arg(long)]
    failed: bool,
    /// List only runs whose work was verified
    #[arg(long)]
    verified: bool,
    /// List only interrupted runs, which no process drives
    #[arg(long)]
    interrupted: bool,
    /// List only runs of machines that went silent
    #[arg(long)]
    lost: bool,
    /// List only runs under way
    #[arg(long)]
    running: bool,
    /// List runs of all projects
    #[arg(long)]
    all_projects: bool,
}

impl ListRunsArguments {
    fn filter(&self, now_ms: i64) -> RunListFilter {
        let only = [
            (self.failed, RunProperty::Failed),
            (self.verified, RunProperty::Verified),
            (self.interrupted, RunProperty::Interrupted),
            (self.lost, RunProperty::Lost),
            (self.running, RunProperty::Running),
        ];
        let only = only.into_iter().find_map(|(is_wanted, only)| is_wanted.then_some(only));
        RunListFilter { limit: self.limit + 1, only, now_ms, ..RunListFilter::default() } // one more, to detect that there are more
    }
}

/// Lists runs; returns the exit code.
pub(super) fn list(shelf: &RunsContext, arguments: &ListRunsArguments) -> Result<u8, CliError> {
    let (mut stores, mut code): (Vec<Store>, u8) = (Vec::new(), 0);
    if arguments.all_projects {
        for store in Store::all(&shelf.state).map_err(failed)? {
            match store {
                Ok(store) => stores.push(store),
                Err(error) => code = code.max(failed(error).show()), // readable stores are listed anyway
            }
        }
    } else {
        stores.extend(shelf.store()?);
    }
    let mut runs: Vec<(&Store, RunRow)> = Vec::new();
    for store in &stores {
        match store.runs(&arguments.filter(shelf.now_ms)) {
            Ok(rows) => runs.extend(rows.into_iter().map(|row| (store, row))),
            Err(error) if arguments.all_projects => code = code.max(failed(error).show()),
            Err(error) => return Err(failed(error)),
        }
    }
    if arguments.all_projects {
        runs.sort_by_key(|(_, row)| std::cmp::Reverse((row.head.started_at_ms, row.head.id.clone())));
    }
    let has_more = runs.len() > arguments.limit as usize;
    runs.truncate(arguments.limit as usize);
    let runs: Vec<ListedRun> =
        runs.into_iter().map(|(store, row)| ListedRun::from_row(store, row, shelf.now_ms)).collect();
    if arguments.json {
        let rows: Vec<_> = runs.iter().map(|run| data::row(&run.row, &run.short)).collect();
        let all = json!({ "schema_version": data::RUNS_SCHEMA_VERSION, "runs": rows, "has_more": has_more });
        print_json(&all.to_string()).map_err(no_output)?;
        return Ok(code);
    }
    if runs.is_empty() {
        let whose = if arguments.all_projects { String::new() } else { format!(" of {}", shelf.project.display()) };
        let such = if arguments.filter(shelf.now_ms).only.is_some() { "such " } else { "" };
        paint::line(&[(Tone::Plain, format!("no {such}runs{whose}"))]);
        return Ok(code);
    }
    print_data(&paint::page(&table(&runs, shelf.now_ms, arguments.all_projects, width()))).map_err(no_output)?;
    if has_more {
        paint::line(&[(
            Tone::Faint,
            format!("more runs exist: --limit {} shows them", arguments.limit.saturating_mul(5)),
        )]);
    }
    Ok(code)
}

/// A run with the values that its row does not have.
#[derive(Debug)]
struct ListedRun {
    row: RunRow,
    short: String,
    /// The time of work, in milliseconds.
    worked_ms: Option<u64>,
    /// True if the cost is an estimate.
    is_estimate: bool,
}

impl ListedRun {
    fn from_row(store: &Store, row: RunRow, now_ms: i64) -> Self {
        // For a resumed run, the row has only the times of its start and end.
        let reported = data::reported(store, &row);
        let is_estimate = reported.as_ref().is_some_and(data::ReportSummary::is_estimate);
        let worked_ms = reported.map(|report| report.duration_ms).or_else(|| data::duration_ms(&row, now_ms));
        let short = store.short(&row.head.id).unwrap_or_else(|_| row.head.id.to_string());
        Self { row, short, worked_ms, is_estimate }
    }
}

/// Formats one line for each run, below a line of column names. `width` is that of the terminal, if
/// there is one.
fn table(runs: &[ListedRun], now_ms: i64, with_project: bool, width: Option<usize>) -> Vec<Vec<(Tone, String)>> {
    let names = ["id", "when", "outcome", "att", "turns", "tokens", "cost", "time", "project", "title"];
    let mut rows = vec![names.map(|name| (Tone::Faint, name.to_owned()))];
    rows.extend(runs.iter().map(|run| cells_of(run, now_ms, width.is_some())));
    let has_cost =
        runs.iter().any(|run| matches!(&run.row.state, StoredRunState::Ended(end) if end.cost_micros.is_some()));
    let widest = |column: usize| rows.iter().map(|row| cells(&row[column].1)).max().unwrap_or(0);
    let widths: Vec<usize> = (0..names.len()).map(widest).collect();
    let mut shown: Vec<usize> =
        (0..9).filter(|column| (*column != 6 || has_cost) && (*column != 8 || with_project)).collect();
    let taken = |shown: &[usize]| shown.iter().map(|column| widths[*column] + 2).sum::<usize>();
    for column in LESS_WANTED {
        if width.is_some_and(|width| taken(&shown) + TITLE > width) {
            shown.retain(|shown| *shown != column);
        }
    }
    let before = taken(&shown);
    let is_shown = |column: usize| column == 9 || shown.contains(&column);
    let line = |row: [(Tone, String); 10]| {
        let mut line = Vec::new();
        for (column, (tone, text)) in row.into_iter().enumerate().filter(|(column, _)| is_shown(*column)) {
            let pad = " ".repeat(widths[column].saturating_sub(cells(&text)));
            match column {
                9 => {
                    let room = width.map_or(usize::MAX, |width| width.saturating_sub(before).max(2));
                    line.push((tone, fit(&text, room)));
                }
                3..=7 => line.extend([(Tone::Plain, pad), (tone, text), (Tone::Plain, "  ".into())]),
                _ => line.extend([(tone, text), (Tone::Plain, pad + "  ")]),
            }
        }
        line
    };
    rows.into_iter().map(line).collect()
}

fn cells_of(run: &ListedRun, now_ms: i64, on_terminal: bool) -> [(Tone, String); 10] {
    let ListedRun { row, short, worked_ms, is_estimate } = run;
    let (head, state) = (&row.head, &row.state);
    let when = if on_terminal { data::ago(now_ms, head.started_at_ms) } else { data::local_time(head.started_at_ms) };
    let end = match state {
        StoredRunState::Ended(end) => Some(end),
        StoredRunState::Running { .. } | StoredRunState::Interrupted => None,
    };
    let about = if *is_estimate { "~" } else { "" };
    let known = |text: Option<String>| (Tone::Plain, text.unwrap_or_else(|| "-".into()));
    let project = Path::new(&head.workspace).file_name().map(|name| name.to_string_lossy().into_owned());
    [
        (Tone::Strong, short.clone()),
        (Tone::Plain, when),
        (data::tone(row), data::outcome(row).to_owned()),
        known(end.map(|end| end.attempts.to_string())),
        known(end.map(|end| end.turns.to_string())),
        known(end.map(|end| format!("{about}{}", count(end.tokens_in.saturating_add(end.tokens_out))))),
        known(end.and_then(|end| end.cost_micros).map(|micros| format!("{about}{}", money(micros)))),
        known(worked_ms.map(seconds)),
        known(project.map(|name| fit(&paint::one_line(&name), PROJECT))),
        (Tone::Plain, paint::one_line(&head.title)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::RunId;
    use crate::store::{RunHead, RunOutcome};

    fn listed() -> ListedRun {
        let head = RunHead {
            id: RunId::new("0198f2aa"),
            run_key: None,
            parent: None,
            title: "Repair the date parser".into(),
            source: "task.md".into(),
            task_digest: String::new(),
            workspace: "/w".into(),
            models: Vec::new(),
            fledge: String::new(),
            journal_version: 2,
            started_at_ms: 0,
        };
        let end = RunOutcome { reason: "gate_failed".into(), cost_micros: Some(40_000), ..RunOutcome::default() };
        let row = RunRow {
            head,
            state: StoredRunState::Ended(end),
            machine: None,
            heard_at_ms: None,
            is_lost: false,
            branch: None,
        };
        ListedRun { row, short: "0198f2aa".into(), worked_ms: Some(4_000), is_estimate: true }
    }

    #[test]
    fn a_line_never_is_wider_than_the_terminal_and_estimates_are_marked() {
        let text = |width| {
            let lines = table(&[listed()], 5_000, false, width);
            lines.iter().map(|line| line.iter().map(|(_, text)| text.as_str()).collect::<String>()).collect::<Vec<_>>()
        };
        for width in 40..120 {
            assert!(text(Some(width)).iter().all(|line| cells(line) <= width), "{width}: {:?}", text(Some(width)));
        }
        assert!(text(None)[1].contains("  failed  ") && text(None)[1].contains("  ~$0.0400  "), "{:?}", text(None));
        assert!(text(Some(60))[1].contains("Repair the"), "{:?}", text(Some(60)));
    }
}
