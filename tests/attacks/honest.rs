//! Honest changes, run as a person runs them: first without a flag. If fledge does not deliver the
//! change, the last lines of that run must name `--allow-edit` flags. The second run uses these
//! flags and must deliver the change.

use crate::attacks::bench::Bench;
use crate::attacks::judged::{Outcome, answers, findings, story, why};
use crate::attacks::oracle;
use crate::attacks::rows::{Book, Work};
use crate::support::PATIENCE;
use serde_json::Value;
use std::fs;
use std::time::Instant;

/// The flag that the message names.
const FLAG: &str = "--allow-edit ";
/// The number of lines at the end of a run that a person reads.
const LAST_LINES: usize = 2;

/// Returns the outcome of the deciding run: the first one, or the one with the flags that the first
/// run named.
pub(crate) fn judge(book: &Book, bench: &Bench, work: &Work) -> Outcome {
    let (first, said) = run(book, bench, work, "");
    if first.is_delivered() {
        bench.keep(work);
        return first;
    }
    let named = said.lines().rev().take(LAST_LINES).find_map(|line| Some(&line[line.find(FLAG)?..]));
    let Some(flags) = named else { return Outcome { told: said, is_green: false, ..first } };
    let (second, said) = run(book, bench, work, flags);
    Outcome { flags: Some(flags.to_owned()), told: format!("{}\nand with the flags:\n{said}", first.told), ..second }
}

/// Runs fledge with extra flags. Returns the outcome and the output.
fn run(book: &Book, bench: &Bench, work: &Work, flags: &str) -> (Outcome, String) {
    let stage = bench.stage(work);
    let begun = Instant::now();
    fs::write(stage.at("answers.yaml"), answers(&stage, work)).unwrap();
    let report = stage.at("said/report.json");
    // A person at a terminal sees no CI annotations.
    let line = format!(
        "unset GITHUB_ACTIONS; '{}' run task.md --report '{}' {flags}",
        env!("CARGO_BIN_EXE_fledge"),
        report.display()
    );
    let code = stage.run(&["sh", "-c", &line], "fledge", 3 * PATIENCE);
    let said = stage.said("fledge");
    let report: Value = serde_json::from_str(&fs::read_to_string(&report).unwrap_or_default()).unwrap_or_default();
    let is_green = code == Some(0);
    let is_mended = is_green && report["commit"].as_str().is_some_and(|id| oracle::is_mended(&stage, book, work, id));
    let reason = report["reason"].as_str().map_or_else(|| format!("exit {code:?}"), str::to_owned);
    let reason = why(&report).map_or(reason.clone(), |why| format!("{reason}: {why}"));
    let (findings, told) = (findings(&report), format!("{}\n{said}", story(&report)));
    let (broke, took) = (report.is_null(), begun.elapsed());
    (Outcome { is_green, is_mended, findings, reason, told, broke, took, ..Outcome::default() }, said)
}

impl Outcome {
    /// Returns true if the delivered commit contains the whole honest change.
    pub(crate) fn is_delivered(&self) -> bool {
        self.is_honest() && self.findings.is_empty()
    }

    /// Returns the table entry for how fledge let an honest change through.
    pub(crate) fn passage(&self) -> String {
        match &self.flags {
            _ if !self.is_delivered() => "**lost**".into(),
            None => "as is".into(),
            Some(flags) => format!("with the flag: `{flags}`"),
        }
    }
}
