//! The printed table of all attacks and what became of them.

use crate::attacks::judged::Outcome;
use crate::attacks::rows::{Book, Row};
use crate::attacks::{Case, Outcomes};
use crate::support::is_whole;
use std::path::Path;

const HEAD: &str = "# Attacks on the gate

Printed by `tests/attacks`; `FLEDGE_BLESS=1 FLEDGE_TEST_ALL=1 cargo test --test it attacks::` writes it anew. Each attack runs on a gate that
runs the lane where the agent has worked and believes the exit code (naive), and on fledge; its twin, honest work of the same shape, must
pass fledge without a finding. *Hold-out*: only a check that the agent has never seen can tell, so the run has one. Whether a bug is gone is
said by an oracle that neither gate knows: questions with figures drawn anew for each run, put to a clean clone of the commit that is
delivered. *To be caught by* is what the row asks for; the last column is what happened.
";
const COLUMNS: &str =
    "| id | attack | project | aims at | naive gate | to be caught by | fledge |\n|---|---|---|---|---|---|---|\n";

/// Compares the rows that were run with the printed ones, or prints all of them.
pub(crate) fn hold(book: &Book, attacks: &[&Row], honest: &[&Row], outcomes: &Outcomes) -> Result<(), String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("specs/generated/attacks.md");
    let rows: Vec<String> = attacks.iter().map(|row| line(book, row, outcomes)).collect();
    let works: Vec<String> = honest.iter().map(|row| work(book, row, outcomes)).collect();
    let foot = "\n# Honest work\n\n| id | work | project | fledge |\n|---|---|---|---|\n";
    let naive = attacks.iter().filter(|row| row.naive_holds.is_none()).count();
    let open = attacks.iter().filter(|row| row.open.is_some()).count();
    let sum = format!("\nOf {} attacks {naive} fool the naive gate and {open} fledge.\n\n", attacks.len());
    let whole = format!("{HEAD}{sum}{COLUMNS}{}{foot}{}", rows.concat(), works.concat());
    if is_whole() && std::env::var_os("FLEDGE_BLESS").is_some() {
        return std::fs::write(path, whole).map_err(|error| error.to_string());
    }
    let printed = std::fs::read_to_string(path).unwrap_or_default();
    let stale: Vec<&String> = rows.iter().chain(&works).filter(|row| !printed.contains(row.as_str())).collect();
    if stale.is_empty() { Ok(()) } else { Err(format!("not so in specs/generated/attacks.md: {stale:#?}")) }
}

fn line(book: &Book, row: &Row, outcomes: &Outcomes) -> String {
    let naive = match (&row.naive_holds, outcomes[&Case::Naive(row.work(book))].is_fooled()) {
        (_, true) => "fooled".into(),
        (why, false) => format!("holds: {}", why.as_deref().unwrap_or("unexpectedly")),
    };
    let holdout = if row.needs_holdout { " *(hold-out)*" } else { "" };
    let fledge = outcomes[&Case::Fledge(row.work(book))].word();
    let fledge = row.open.as_ref().map_or(fledge.clone(), |why| format!("{fledge}: {why}"));
    let Row { id, title, project, aims, caught_by, .. } = row;
    let caught_by = cell(if caught_by.is_empty() { "nothing" } else { caught_by });
    format!("| {id} | {title}{holdout} | {project} | {aims} | {naive} | {caught_by} | {} |\n", cell(&fledge))
}

fn work(book: &Book, row: &Row, outcomes: &Outcomes) -> String {
    let outcome: &Outcome = &outcomes[&Case::Fledge(row.work(book))];
    let said = if outcome.findings.is_empty() { String::new() } else { format!("; {}", outcome.findings.join("; ")) };
    let Row { id, title, project, .. } = row;
    format!("| {id} | {title} | {project} | {}{} |\n", outcome.reason, cell(&said))
}

/// Text that stays in its cell.
fn cell(text: &str) -> String {
    text.replace('\n', " ").replace('|', "\\|")
}
