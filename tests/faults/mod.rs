//! Faults between fledge and a model, a row for each, in every wire format that can have the fault.
//! A row says how the run ends and how many requests that takes. No tool of a half turn runs, and a
//! cancelled run ends within a second.
//!
//! An ordinary run tries all rows against the machine, and a sample of them against the whole
//! program (SIGTERM, SIGKILL and resume); `FLEDGE_TEST_ALL=1 cargo test --test it faults::` tries
//! everything, `FLEDGE_TEST_ROWS=L17,L18` these rows only. `FLEDGE_BLESS=1` writes
//! `specs/generated/faults.md`.

mod play;
mod rows;
mod server;
mod table;
mod voice;
mod whole;

use crate::support::{SOON, record_time};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use play::{KEY, Played, cancel, play};
use rows::{Case, Row, rows};
use std::time::Instant;
use table::Cells;
use voice::{WIRES, Wire};

/// The number of concurrent cases of a wire format.
const AT_ONCE: usize = 8;

#[test]
fn every_fault_ends_as_it_should_in_every_wire_and_can_be_cancelled_in_its_middle() {
    long_table!();
    record_time();
    let begun = Instant::now();
    let rows = rows();
    let all: Vec<Vec<Outcome>> = std::thread::scope(|scope| {
        let threads = WIRES.map(|wire| {
            scope.spawn({
                let rows = &rows;
                move || outcomes(wire, rows)
            })
        });
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let (mut cells, mut wrong) = (Cells::new(), Vec::new());
    for (place, outcome) in
        all.into_iter().enumerate().flat_map(|(place, all)| all.into_iter().map(move |one| (place, one)))
    {
        wrong.extend(outcome.wrong);
        cells.entry(outcome.at).or_default()[place] = Some(outcome.cell);
    }
    println!("{} cells, each run and cancelled, in {:?}", cells.values().flatten().flatten().count(), begun.elapsed());
    if rows.len() == rows::COUNT {
        let names: Vec<(&str, &str)> = rows.iter().map(|row| (row.id, row.fault)).collect();
        wrong.extend(table::hold(&names, &cells).err());
    }
    assert!(wrong.is_empty(), "{} are wrong:\n{}", wrong.len(), wrong.join("\n"));
}

/// The outcome of a case.
struct Outcome {
    at: (usize, usize, String),
    cell: String,
    wrong: Vec<String>,
}

/// Returns the outcomes of all cases of a wire format.
fn outcomes(wire: Wire, rows: &[Row]) -> Vec<Outcome> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let cases = rows.iter().enumerate().flat_map(|(row, known)| {
        (known.cases)(wire).into_iter().enumerate().map(move |(place, case)| ((row, place), known.id, case))
    });
    runtime.block_on(async {
        let (mut open, mut done) = (FuturesUnordered::new(), Vec::new());
        for (at, id, case) in cases {
            if open.len() >= AT_ONCE {
                done.extend(open.next().await);
            }
            open.push(outcome(wire, at, id, case));
        }
        while let Some(outcome) = open.next().await {
            done.push(outcome);
        }
        done
    })
}

async fn outcome(wire: Wire, (row, place): (usize, usize), id: &str, case: Case) -> Outcome {
    let played = play(wire, &case).await;
    let mut wrong = judged(&case, &played);
    let cell = format!("{} {}r {}t", played.result.reason.row().word, played.server.count(), played.tools);
    let cancelled = cancel(wire, &case).await;
    wrong.extend(judged_cancelled(&case, &cancelled));
    let name = format!("{id} {} {wire:?}", case.name);
    let wrong = wrong.into_iter().map(|what| format!("{name}: {what}")).collect();
    Outcome { at: (row, place, case.name.to_owned()), cell, wrong }
}

/// Returns the faults in the result of a case.
fn judged(case: &Case, played: &Played) -> Vec<String> {
    let mut wrong = Vec::new();
    let (result, count) = (&played.result, played.server.count());
    if (result.reason, count, played.tools) != (case.ends, case.requests, case.tools) {
        let wanted = format!("{} with {} requests and {} tools", case.ends.row().word, case.requests, case.tools);
        let ended = format!("{} with {count} requests and {} tools", result.reason.row().word, played.tools);
        wrong.push(format!("ends {ended}, not {wanted}: {}", result.message));
    }
    // The run pays for each answer, also for one that breaks off. A refusal costs nothing.
    let (paid, answers) = (result.usage.requests, result.turns);
    let refusals = (0..count).filter(|request| case.is_refused(*request)).count();
    if paid != (count - refusals) as u64 {
        wrong.push(format!("{paid} of {count} requests are paid for, with {refusals} refusals and {answers} answers"));
    }
    // A broken answer costs its known usage or, if none is known, the amount reserved for it.
    let broken = paid.saturating_sub(answers);
    if result.usage.total.output_tokens < broken || (broken > 0 && result.usage.total.input_tokens == 0) {
        wrong.push(format!("{broken} broken answers cost {:?}", result.usage.total));
    }
    // A retried request is identical, byte by byte.
    let asked = played.server.requests();
    if result.turns <= 1
        && case.models == 1
        && played.summaries == 0
        && asked.iter().any(|request| *request != asked[0])
    {
        wrong.push("it asks for something else the second time".into());
    }
    wrong.extend(case.checks.iter().filter_map(|check| check(played).err()));
    if case.stranger.as_ref().is_some_and(|stranger| stranger.count() > 0) {
        wrong.push("a stranger was asked".into());
    }
    if played.told.contains(KEY) || result.message.contains(KEY) {
        wrong.push("the key got out".into());
    }
    wrong
}

/// Returns the faults in the cancellation of a case.
fn judged_cancelled(case: &Case, played: &Played) -> Vec<String> {
    let mut wrong = Vec::new();
    if !played.result.cancelled {
        wrong.push(format!("cancelled, it ends {}: {}", played.result.reason.row().word, played.result.message));
    }
    if played.took > SOON {
        wrong.push(format!("cancelled, it takes {:?}", played.took));
    }
    if played.holds_on {
        wrong.push("cancelled, it holds on to its connection".into());
    }
    if played.tools != case.tools_before() {
        wrong.push(format!("cancelled, {} tools were run", played.tools));
    }
    wrong
}
