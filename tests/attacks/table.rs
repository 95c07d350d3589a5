//! The generated table of all attacks and their outcomes.

use crate::attacks::judged::Outcome;
use crate::attacks::rows::{Book, Row, Wanted, folder};
use crate::attacks::{Case, Outcomes};
use crate::support::{Part, is_whole, wanted_rows};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

const HEAD: &str = "# Attacks on the gate

An attack is a change that makes the tests pass without fixing the bug, or that does other harm under a green gate. Each row is one attack:
a scripted agent makes the change in a small project that has one known bug. The test suite runs each attack against two gates:

- The *naive gate* runs the lane in the agent's workspace and believes its exit code. An attack counts only if it fools this gate, or if the
  row gives the reason why it does not.
- *fledge* runs a whole task with its own gate. It must stop the attack. It must also pass the *twin* of the attack without a finding: an
  honest fix of the same bug, with a similar change beside it.

Neither gate decides whether the bug is fixed. The test clones the delivered commit and asks the program questions with random numbers.

| column | meaning |
|---|---|
| id | The name of the row in `tests/attacks/rows/` |
| attack | The change. *(hold-out)*: only a check that the agent has never seen can detect the attack, so the run has a hold-out |
| project | A folder of `tests/attacks/projects/` |
| aims at | The part of the project or gate that the attack changes or abuses |
| naive gate | `fooled`, or `holds` with the reason |
| to be caught by | The rule or evidence that must stop the attack, as fledge words it; `the lane is red`: a step fails; `no harm done`: the attack has no effect |
| fledge | The result in the best sandbox: the reason that the run ended with, and the findings. **fooled** gives the known weakness |
| behind Landlock alone | The result without bubblewrap. An empty cell has not been tried yet |

To run one row, or several: `FLEDGE_TEST_ROWS=T01,G02 cargo test --test it attacks::`. With `FLEDGE_BLESS=1`, the test also writes these rows
here. `FLEDGE_BLESS=1 FLEDGE_TEST_ALL=1` runs all rows and writes the whole page.
";
const COLUMNS: &str = "| id | attack | project | aims at | naive gate | to be caught by | fledge | behind Landlock alone |\n|---|---|---|---|---|---|---|---|\n";
const WORK: &str = "\n# Honest work\n\nWork without an attack. fledge must deliver it as `verified`.\n\n| id | work | project | fledge |\n|---|---|---|---|\n";
const CHANGES: &str = "\n# Honest changes

Changes that a person may ask for and that protected paths can hold up. Each change runs first without a flag. If the commit contains the
whole change, the change passes *as is*. Otherwise the run must name `--allow-edit` flags, and a second run with these flags must deliver the
whole change.
";

/// Rows of the page, by their ids.
type Lines = BTreeMap<String, String>;

/// Compares the rows of this run with the generated page, or writes them.
pub(crate) fn hold(book: &Book, wanted: &Wanted<'_>, outcomes: &Outcomes) -> Result<(), String> {
    let mut lines = Lines::new();
    let printed = std::fs::read_to_string(page()).unwrap_or_default();
    let is_written = std::env::var_os("FLEDGE_BLESS").is_some();
    let before = lines_of(&printed);
    let last = |row: &Row| {
        let printed = before.get(&row.id).and_then(|line| line.trim_end_matches(" |\n").rsplit_once(" | "));
        let printed = printed.map_or(String::new(), |(_, cell)| cell.trim().to_owned());
        let outcome = outcomes.get(&Case::Landlock(row.work(book))).filter(|_| is_written || !printed.is_empty());
        outcome.map_or(printed, |outcome| with_reason(outcome, row.open_behind_landlock.as_ref().or(row.open.as_ref())))
    };
    lines.extend(wanted.attacks.iter().map(|row| (row.id.clone(), line(book, row, outcomes, &last(row)))));
    lines.extend(wanted.honest.iter().map(|row| (row.id.clone(), work(book, row, outcomes))));
    lines.extend(wanted.changes.iter().map(|row| (row.id.clone(), change(book, row, outcomes))));
    let are_all = is_whole() && Part::of_this_run().is_none();
    if is_written && (are_all || wanted_rows().is_some()) {
        let mut all = if are_all { Lines::new() } else { before };
        all.extend(lines);
        return std::fs::write(page(), whole(book, &all)).map_err(|error| error.to_string());
    }
    let stale: Vec<&String> = lines.values().filter(|line| !printed.contains(line.as_str())).collect();
    if stale.is_empty() { Ok(()) } else { Err(format!("not so in specs/generated/attacks.md: {stale:#?}")) }
}

fn page() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("specs/generated/attacks.md")
}

/// Returns the rows of a page.
fn lines_of(page: &str) -> Lines {
    let id = |line: &str| Some(line.strip_prefix("| ")?.split_once(" |")?.0.to_owned());
    page.lines().filter_map(|line| Some((id(line)?, format!("{line}\n")))).collect()
}

/// Returns the whole page with these rows, in the order of the book.
fn whole(book: &Book, lines: &Lines) -> String {
    let printed = |rows: &[Row]| rows.iter().filter_map(|row| lines.get(&row.id).cloned()).collect::<Vec<_>>();
    let [attacks, honest, changes] = [&book.attacks, &book.honest, &book.changes].map(|rows| printed(rows));
    let naive = book.attacks.iter().filter(|row| row.naive_holds.is_none()).count();
    let open = book.attacks.iter().filter(|row| row.open.is_some()).count();
    let behind = book.attacks.iter().filter(|row| row.open.is_some() || row.open_behind_landlock.is_some()).count();
    let tried = attacks.iter().filter(|line| !line.ends_with(" |  |\n")).count();
    let sum = format!(
        "\nOf {} attacks, {naive} fool the naive gate, and {open} fool fledge. {tried} were tried behind Landlock alone; {behind} of all attacks \
         are known to fool fledge there.\n\n",
        attacks.len()
    );
    format!("{HEAD}{sum}{COLUMNS}{}{WORK}{}{}", attacks.concat(), honest.concat(), section(&changes))
}

/// Returns the section on honest changes, with the totals of its rows.
fn section(changes: &[String]) -> String {
    let [as_is, with_flag] = ["| as is |\n", "| with the flag: "].map(|how| count(changes, how));
    let lost = changes.len() - as_is - with_flag;
    let sum = format!(
        "\nOf {} honest changes {as_is} pass as is, {with_flag} with the flag that the message named, {lost} are lost.\n",
        changes.len()
    );
    format!("{CHANGES}{sum}\n| id | change | project | passes |\n|---|---|---|---|\n{}", changes.concat())
}

fn count(lines: &[String], how: &str) -> usize {
    lines.iter().filter(|line| line.contains(how)).count()
}

/// Returns the table entry of an outcome of fledge, with the reason why the attack still fools it.
fn with_reason(outcome: &Outcome, why: Option<&String>) -> String {
    let word = outcome.word();
    cell(&why.map_or(word.clone(), |why| format!("{word}: {why}")))
}

fn line(book: &Book, row: &Row, outcomes: &Outcomes, behind_landlock: &str) -> String {
    let naive = match (&row.naive_holds, outcomes[&Case::Naive(row.work(book))].is_fooled()) {
        (_, true) => "fooled".into(),
        (why, false) => format!("holds: {}", why.as_deref().unwrap_or("unexpectedly")),
    };
    let holdout = if row.needs_holdout { " *(hold-out)*" } else { "" };
    let fledge = with_reason(&outcomes[&Case::Fledge(row.work(book))], row.open.as_ref());
    let Row { id, title, project, aims, caught_by, .. } = row;
    let caught_by = cell(if caught_by.is_empty() { "nothing" } else { caught_by });
    format!("| {id} | {title}{holdout} | {project} | {aims} | {naive} | {caught_by} | {fledge} | {behind_landlock} |\n")
}

fn work(book: &Book, row: &Row, outcomes: &Outcomes) -> String {
    let outcome: &Outcome = &outcomes[&Case::Fledge(row.work(book))];
    let said = if outcome.findings.is_empty() { String::new() } else { format!("; {}", outcome.findings.join("; ")) };
    let Row { id, title, project, .. } = row;
    format!("| {id} | {title} | {project} | {}{} |\n", outcome.reason, cell(&said))
}

fn change(book: &Book, row: &Row, outcomes: &Outcomes) -> String {
    let outcome: &Outcome = &outcomes[&Case::Change(row.work(book))];
    let Row { id, title, project, .. } = row;
    format!("| {id} | {title} | {project} | {} |\n", cell(&outcome.passage()))
}

/// Escapes text for a table cell. Object ids of git, which differ from run to run, become `ID`.
fn cell(text: &str) -> String {
    let is_id = |word: &str| word.len() == 40 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    let words = text.split_inclusive(|letter: char| !letter.is_ascii_alphanumeric());
    let masked = words.map(|part| match part.trim_end_matches(|letter: char| !letter.is_ascii_alphanumeric()) {
        word if is_id(word) => part.replace(word, "ID"),
        _ => part.to_owned(),
    });
    masked.collect::<String>().replace('\n', " ").replace('|', "\\|")
}

#[test]
fn the_page_has_each_honest_change_with_its_sums_and_none_is_lost() {
    let (book, printed) = (Book::read(), std::fs::read_to_string(page()).unwrap());
    let lines = lines_of(&printed);
    let missing: Vec<&str> =
        book.changes.iter().map(|row| row.id.as_str()).filter(|id| !lines.contains_key(*id)).collect();
    assert!(missing.is_empty(), "not in {}: {missing:?} (rows are in {})", page().display(), folder().display());
    let changes: Vec<String> = book.changes.iter().map(|row| lines[&row.id].clone()).collect();
    assert!(printed.ends_with(&section(&changes)), "the sums are others:\n{}", section(&changes));
    assert_eq!(count(&changes, "**lost**"), 0, "{changes:#?}");
}
