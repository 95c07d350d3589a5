//! Attacks on the gate. Each runs three times, and a sample a fourth time behind Landlock alone. A
//! naive gate runs the lane where the agent worked and believes the exit code: the attack must fool
//! it. The attack must not fool fledge, and fledge must pass its honest twin. Further rows are
//! honest work alone, and honest changes that may need a flag that fledge names. An oracle that
//! neither gate knows decides whether the bug is gone. Each row says what must catch it.
//!
//! An ordinary run draws a sample. `FLEDGE_TEST_ALL=1 cargo test --test it attacks::` tries all
//! rows, and with `FLEDGE_BLESS=1` writes `specs/generated/attacks.md`.
//! `FLEDGE_TEST_ROWS=T01,F13,H02` tries only these rows; `FLEDGE_BLESS=1` then writes these rows.

mod bench;
mod honest;
mod judged;
mod naive;
mod oracle;
mod rows;
mod stage;
mod table;
pub(crate) mod tools;

use crate::support::{BEHIND_LANDLOCK, Need, place, place_on_disk, record_time, seed};
use bench::Bench;
use judged::{Outcome, judge};
use rows::{Book, Row, Wanted, Work};
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::time::Instant;

/// A case. Each case runs once, even if several rows use it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Case {
    Naive(Work),
    Fledge(Work),
    Landlock(Work),
    Change(Work),
}

/// The outcome of each case.
type Outcomes = BTreeMap<Case, Outcome>;

#[test]
fn no_attack_is_taken_for_work_and_no_work_for_an_attack() {
    record_time();
    let book = Book::read();
    let Wanted { mut attacks, mut honest, mut changes } = book.wanted();
    let all = attacks.iter().chain(&honest).chain(&changes);
    let missing = tools::missing(all.map(|row| book.project(&row.project)));
    for program in &missing {
        Need::of_program(program).lacks(&format!("no `{program}`, which some attacks need"));
    }
    let can = |row: &Row| book.project(&row.project).programs.iter().all(|program| !missing.contains(program));
    for rows in [&mut attacks, &mut honest, &mut changes] {
        rows.retain(|row| can(row));
    }
    let mut behind = book.behind_landlock(&attacks);
    if !tools::has_landlock() {
        Need::Landlock.lacks("no sandbox by Landlock");
        behind.clear();
    }
    let wanted = Wanted { attacks, honest, changes };
    let outcomes = each(&book, cases(&book, &wanted, &behind));
    let Wanted { attacks, honest, changes } = &wanted;
    let mut wrong: Vec<String> = attacks.iter().flat_map(|row| faults_of_attack(&book, row, &outcomes)).collect();
    wrong.extend(behind.iter().flat_map(|row| faults_behind_landlock(&book, row, &outcomes)));
    wrong.extend(honest.iter().flat_map(|row| faults_of_work(&row.id, &row.work(&book), &outcomes)));
    wrong.extend(changes.iter().filter_map(|row| fault_of_change(&book, row, &outcomes)));
    if let Err(stale) = table::hold(&book, &wanted, &outcomes) {
        wrong.push(stale);
    }
    let (count, seed) = (wrong.len(), seed());
    let wrong = wrong.join("\n");
    let tried = format!("{} ({} behind Landlock) + {} + {}", attacks.len(), behind.len(), honest.len(), changes.len());
    assert!(count == 0, "{count} of {tried}, FLEDGE_TEST_SEED={seed}:\n{wrong}");
}

fn cases(book: &Book, Wanted { attacks, honest, changes }: &Wanted<'_>, behind: &[&Row]) -> Vec<Case> {
    let both = |work: Work| [Case::Naive(work.clone()), Case::Fledge(work)];
    let works = attacks.iter().map(|row| row.twin(book)).chain(honest.iter().map(|row| row.work(book)));
    // Honest work runs first, so that the attacks find fledge's cache of the base. Honest work
    // needs no other gate, since the oracle judges it.
    let mut all: Vec<Case> = works.map(Case::Fledge).collect();
    all.extend(changes.iter().map(|row| Case::Change(row.work(book))));
    all.extend(attacks.iter().map(|row| row.work(book)).flat_map(both));
    all.extend(behind.iter().map(|row| Case::Landlock(row.twin(book))));
    all.extend(behind.iter().map(|row| Case::Landlock(row.work(book))));
    let mut seen = BTreeSet::new();
    all.retain(|case| seen.insert(case.clone()));
    all
}

/// Runs every case, two at a time.
fn each(book: &Book, cases: Vec<Case>) -> Outcomes {
    let (begun, count) = (Instant::now(), cases.len());
    let (next, done) = (Mutex::new(cases.into_iter()), Mutex::new(Outcomes::new()));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let (bench, on_disk) = (Bench::new(place()), Bench::new(&place_on_disk()));
                loop {
                    let Some(case) = next.lock().unwrap().next() else { return };
                    let run = || match &case {
                        Case::Naive(work) => naive::judge(book, work),
                        Case::Fledge(work) => judge(book, &bench, work, &[]),
                        Case::Landlock(work) => judge(book, &on_disk, work, BEHIND_LANDLOCK),
                        Case::Change(work) => honest::judge(book, &bench, work),
                    };
                    let outcome = catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|_| Outcome::broken());
                    done.lock().unwrap().insert(case, outcome);
                }
            });
        }
    });
    println!("{count} runs in {:?}", begun.elapsed());
    done.into_inner().unwrap()
}

/// Returns the faults of a row: the attack has no effect, fooled fledge or passed silently, or
/// fledge stopped the twin.
fn faults_of_attack(book: &Book, row: &Row, outcomes: &Outcomes) -> Vec<String> {
    let mut wrong = Vec::new();
    let naive = &outcomes[&Case::Naive(row.work(book))];
    if naive.is_fooled() == row.naive_holds.is_some() {
        let not = if naive.is_fooled() { "not " } else { "" };
        wrong.push(format!("{}: the naive gate should {not}be fooled: {naive}", row.id));
    }
    let fledge = &outcomes[&Case::Fledge(row.work(book))];
    let is_silent = fledge.is_silent() || (row.must_find && fledge.findings.is_empty());
    match (fledge.is_fooled() || is_silent, &row.open) {
        _ if fledge.broke => wrong.push(format!("{}: cannot be judged", row.id)),
        (true, None) => wrong.push(format!("{} ({}): fooled, or silent: {fledge}", row.id, row.title)),
        (false, Some(why)) => wrong.push(format!("{}: is open no more: {why}", row.id)),
        (false, None) if !fledge.word().contains(&row.caught_by) => {
            wrong.push(format!("{}: `{}` is to catch it, and what did is: {fledge}", row.id, row.caught_by));
        }
        (true, Some(_)) | (false, None) => {}
    }
    wrong.extend(faults_of_work(&format!("the twin of {}", row.id), &row.twin(book), outcomes));
    wrong
}

/// Returns the faults of a row behind Landlock alone, which may catch the attack in another way.
fn faults_behind_landlock(book: &Book, row: &Row, outcomes: &Outcomes) -> Vec<String> {
    let (fledge, name) = (&outcomes[&Case::Landlock(row.work(book))], format!("{} behind Landlock", row.id));
    let is_open = row.open.as_ref().or(row.open_behind_landlock.as_ref());
    let is_silent = fledge.is_silent() || (row.must_find && fledge.findings.is_empty());
    let mut wrong = match (fledge.is_fooled() || is_silent, is_open) {
        _ if fledge.broke => vec![format!("{name}: cannot be judged: {fledge}")],
        (true, None) => vec![format!("{name} ({}): fooled, or silent: {fledge}", row.title)],
        (false, Some(why)) => vec![format!("{name}: is open no more: {why}")],
        (true, Some(_)) | (false, None) => Vec::new(),
    };
    wrong.extend(faults_of(
        &format!("the twin of {name}"),
        &row.twin(book),
        &outcomes[&Case::Landlock(row.twin(book))],
    ));
    wrong
}

fn faults_of_work(name: &str, work: &Work, outcomes: &Outcomes) -> Vec<String> {
    faults_of(name, work, &outcomes[&Case::Fledge(work.clone())])
}

fn faults_of(name: &str, work: &Work, fledge: &Outcome) -> Vec<String> {
    let mut wrong = Vec::new();
    if fledge.is_green && !fledge.is_mended {
        wrong.push(format!("{name}: the oracle finds the bug in honest work: {fledge}"));
    }
    if !fledge.is_honest() || (work.allow_edit.is_empty() && !fledge.findings.is_empty()) {
        wrong.push(format!("{name}: is held up: {fledge}"));
    }
    wrong
}

/// Returns a fault if fledge dropped the change silently, or if the change did not pass with the
/// named flags.
fn fault_of_change(book: &Book, row: &Row, outcomes: &Outcomes) -> Option<String> {
    let fledge = &outcomes[&Case::Change(row.work(book))];
    let flags = fledge.flags.as_deref().unwrap_or("none");
    (!fledge.is_delivered())
        .then(|| format!("{} ({}): is lost; flags that were named: {flags}; {fledge}", row.id, row.title))
}
