//! Loop detection: a model that repeats the same calls, or that changes files back and forth.
//!
//! Some repetition is progress: calls that differ only in paging arguments, and calls whose results
//! differ in more than times and numbers. Calls with a change of the workspace between them are
//! progress too.

use crate::id::TreeId;
use regex::{Captures, Regex};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::LazyLock;

/// Arguments for paging. Two calls that differ only in these read different parts of the same
/// thing.
const PAGING: [&str; 12] = [
    "offset",
    "limit",
    "page",
    "cursor",
    "start_line",
    "end_line",
    "start",
    "end",
    "skip",
    "max",
    "page_size",
    "after",
];

/// The assessment of the newest call or file state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LoopOpinion {
    /// No loop, and no need for a warning.
    Fine,
    /// Half of the threshold is reached: warn the model.
    Repetitive,
    /// The threshold is reached.
    Loop,
}

/// The recent calls and file states.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LoopWatch {
    recent: VecDeque<Seen>,
    /// Recent calls that belong to the current turn.
    fresh: usize,
    /// True if a call of the current turn is unlike all recent calls.
    has_new_call: bool,
    /// Counts of each transition of the files from one state to another.
    steps: BTreeMap<u64, usize>,
    tree: Option<u64>,
    /// Pairs of file states of which the model was warned that the files go back and forth.
    told_pairs: BTreeSet<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Seen {
    tool: u64,
    result: u64,
    /// The result without the parts that vary between two runs of one command.
    steady: u64,
    paging: u64,
    arguments: BTreeMap<String, u64>,
}

impl LoopWatch {
    /// Marks the beginning of a turn. The model could not yet be warned of repetitions within the
    /// new turn.
    pub(super) fn begin_turn(&mut self) {
        self.fresh = 0;
        self.has_new_call = false;
    }

    /// Returns true if the newest call was repeated so often before this turn that the model was
    /// already warned.
    pub(super) fn went_on(&self, threshold: usize) -> bool {
        let Some(newest) = self.recent.back() else { return false };
        let earlier = self.recent.len().saturating_sub(self.fresh);
        let alike = self.recent.iter().take(earlier).filter(|other| other.is_like(newest)).count();
        alike >= half(threshold)
    }

    /// Records a call that ended, with its result.
    pub(super) fn note(
        &mut self,
        tool: &str,
        input: &Value,
        result: &str,
        changed: bool,
        threshold: usize,
    ) -> LoopOpinion {
        if changed {
            self.recent.clear();
            self.fresh = 0;
            return LoopOpinion::Fine;
        }
        let seen = Seen::new(tool, input, result);
        let alike = 1 + self.recent.iter().filter(|other| other.is_like(&seen)).count();
        self.has_new_call |= alike == 1;
        self.recent.push_back(seen);
        self.fresh += 1;
        if self.recent.len() > threshold.saturating_mul(2) {
            self.recent.pop_front();
        }
        if alike >= threshold {
            LoopOpinion::Loop
        } else if alike == half(threshold) {
            LoopOpinion::Repetitive
        } else {
            LoopOpinion::Fine
        }
    }

    /// Records the state of the files after a turn.
    ///
    /// Repeated transitions between the same two states are a loop. Detours from a state to
    /// different other states are work. Reports a loop only after the warning at half of the
    /// threshold.
    ///
    /// If a new call of the turn changed files, such as an edit by a shell command, earlier calls
    /// no longer count. A repeated call may change files each time, such as a test that writes a
    /// log.
    pub(super) fn arrive(&mut self, tree: &TreeId, threshold: usize) -> LoopOpinion {
        let print = fingerprint(tree.as_str().as_bytes());
        let before = self.tree.replace(print);
        if before == Some(print) {
            return LoopOpinion::Fine;
        }
        if self.has_new_call {
            self.recent.drain(..self.recent.len().saturating_sub(self.fresh));
        }
        let Some(before) = before else { return LoopOpinion::Fine };
        let times = self.steps.entry(before.rotate_left(1) ^ print).or_default();
        *times += 1;
        if *times < half(threshold) {
            return LoopOpinion::Fine;
        }
        match self.told_pairs.insert(before ^ print) {
            true => LoopOpinion::Repetitive,
            false if *times >= threshold => LoopOpinion::Loop,
            false => LoopOpinion::Fine,
        }
    }

    /// Forgets everything, for a new attempt.
    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }
}

impl Seen {
    fn new(tool: &str, input: &Value, result: &str) -> Self {
        let mut arguments = BTreeMap::new();
        let mut paging = fingerprint(&[]);
        for (key, value) in input.as_object().into_iter().flatten() {
            let print = fingerprint(value.to_string().as_bytes());
            if PAGING.contains(&key.as_str()) {
                paging = paging.rotate_left(5) ^ print;
            } else {
                arguments.insert(key.clone(), print);
            }
        }
        let result = without_stored_output(result);
        let steady = fingerprint(steady(&result).as_bytes());
        Self { tool: fingerprint(tool.as_bytes()), result: fingerprint(result.as_bytes()), steady, paging, arguments }
    }

    /// Returns true if the tool and the result are equal and at least half of the arguments agree.
    /// Calls that differ only in paging are not alike. With equal arguments, times and numbers in
    /// the results may differ.
    fn is_like(&self, other: &Self) -> bool {
        let same_call = self.arguments == other.arguments;
        let same_result = if same_call { self.steady == other.steady } else { self.result == other.result };
        if self.tool != other.tool || !same_result || (same_call && self.paging != other.paging) {
            return false;
        }
        let agreeing = self.arguments.iter().filter(|(key, print)| other.arguments.get(*key) == Some(print)).count();
        same_call || (agreeing > 0 && agreeing * 2 >= self.arguments.len().max(other.arguments.len()))
    }
}

/// Returns the number of repetitions after which the model is warned.
fn half(threshold: usize) -> usize {
    threshold.div_ceil(2).max(2)
}

/// Returns a result without the number under which fledge stores its full text.
fn without_stored_output(result: &str) -> Cow<'_, str> {
    static STORED: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"@output/\d+").expect("a pattern that is tested"));
    STORED.replace_all(result, "@output")
}

/// Returns a result without the parts that vary between two runs of one command: temporary paths,
/// addresses, hashes, times, and numbers of runs or processes. Keeps other numbers, since a
/// changing number can be the progress of a job. The gate ignores less in the names of tests.
fn steady(result: &str) -> Cow<'_, str> {
    static VOLATILE: LazyLock<Regex> = LazyLock::new(|| {
        let place = r#"/(?:tmp|var/tmp|var/folders|dev/shm)/[^\s"'`:,;()\[\]]+|\btmp\.[a-z0-9]{6,}"#;
        // An all-digit hash counts only after a branch name, `[main 1234567]`, or with 40 or 64
        // digits.
        let hex = [
            r"0x[0-9a-f]+|\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b",
            r"\[[\w./-]+ [0-9a-f]{7,40}\]|\b(?:[0-9a-f]{64}|[0-9a-f]{40})\b",
            r"(?P<hash>\b[0-9a-f]{7,64}\b)",
        ]
        .join("|");
        let port = r"(?:\blocalhost|\b\d{1,3}(?:\.\d{1,3}){3}|\[[0-9a-f:]+\]):\d{2,5}\b";
        // `2026-11-29T20_01_02_123Z` in the names of npm's logs
        let moment = r"\b\d{4}-\d{2}-\d{2}(?:t\d{2}[\d_:.-]*z?)?\b|\b\d{1,2}:\d{2}(?::\d{2})?(?:\.\d+)?";
        let time = r"\b(?:\d+h)?\d+m\d+(?:\.\d+)?s\b|(?:\b\d+(?:\.\d+)?\s?(?:ns|µs|us|ms|s|secs?|seconds?|m|mins?|minutes?|h|hours?)\b\s?)+";
        // `duration_ms 101.1` of node, `0.02 usr` of prove, `274.3 runs/s` of minitest
        let timed = r"\b[a-z_]*(?:duration|elapsed|time)[a-z_]*\W{1,3}\d+(?:\.\d+)?|\b\d+\.\d+ (?:c?usr|c?sys|cpu|real|user|wallclock)\b|\b\d[\d,]*(?:\.\d+)? [a-z]+/s(?:ec)?\b";
        // `1,234 ns/iter (+/- 56)` of `cargo bench`, `1000000  1234 ns/op` of Go,
        // `123 ns  120 ns  5812` of Google Benchmark, `±1.2% (85 runs sampled)` of benchmark.js,
        // `[-1.2% +0.3% +2%] (p = 0.57 > 0.05)`, `(812k iterations)` and `4 (4.00%) high mild` of
        // criterion, and the rows of pytest-benchmark with a rank behind each figure
        let bench = [
            r"\b(?:\d+\s+)?[\d,.]+ [nµum]?s/(?:iter|op)(?: \(\+/- [\d,.]+\))?",
            r"\b[\d.]+ [num]?s\s+[\d.]+ [num]?s\s+\d+\b",
            r"(?:\b\d[\d,.]*\s)?±\s?[\d,.]+%?|\[(?:[-+−][\d.]+% ?){3}\]|\bp = \d\.\d+ [<>]",
            r"\([\d,.]+[km]? iterations\)|\(\d+ runs? sampled\)|\b\d+ outliers among \d+ measurements \([\d.]+%\)",
            r"\b\d+ \([\d.]+%\) (?:low|high) (?:mild|severe)|(?:\b[\d,.]+ \([\d.]+\)\s+){3,}\d+;\d+\s+[\d,.]+(?: \([\d.]+\))?(?:\s+\d+){0,2}",
        ]
        .join("|");
        let named = r"\b(?:pid|process|thread|port|seed|run|attempt|try|iteration|request|call|session)\W{0,3}\d+|[(\[]\d{3,}[)\]]|\b(?:sh|bash|dash|make|python3?|node|perl)\[\d+\]|thread '[^'\n]*' \(\d+\)";
        Regex::new(&format!("(?i){place}|{port}|{moment}|{bench}|{timed}|{time}|{named}|{hex}"))
            .expect("a pattern that is tested")
    });
    VOLATILE.replace_all(result, |found: &Captures<'_>| match found.name("hash") {
        Some(number) if number.as_str().bytes().all(|byte| byte.is_ascii_digit()) => number.as_str().to_owned(),
        _ => "#".to_owned(),
    })
}

/// Hashes with FNV-1a. Replays need the same result on every machine and in every version.
fn fingerprint(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests;
