//! The counts of a test summary, and functions that parse them. Pure.

/// The tests that one line of a summary counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct CountedTests {
    /// Tests that ran.
    pub(super) ran: u64,
    /// Tests that failed.
    pub(super) failed: u64,
    /// Tests that were skipped, in addition to `ran`.
    pub(super) skipped: u64,
    pub(super) place: SummaryPlace,
}

/// The position of a line in a summary.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum SummaryPlace {
    /// The first line, unless it counts no tests that ran.
    #[default]
    Usual,
    /// The first line, even if it counts no tests.
    First,
    /// A further line.
    Next,
    /// The whole summary of one of several programs, printed by a build tool. The next summary does
    /// not replace it.
    Program,
}

impl CountedTests {
    /// Creates counts without skipped tests.
    pub(super) fn new(ran: u64, failed: u64) -> Self {
        Self { ran, failed, ..Self::default() }
    }

    pub(super) fn with_skipped(self, skipped: u64) -> Self {
        Self { skipped, ..self }
    }

    pub(super) fn at(self, place: SummaryPlace) -> Self {
        Self { place, ..self }
    }

    /// Adds the counts of another line or document.
    pub(super) fn plus(self, other: Self) -> Self {
        Self {
            ran: self.ran.saturating_add(other.ran),
            failed: self.failed.saturating_add(other.failed),
            skipped: self.skipped.saturating_add(other.skipped),
            place: self.place,
        }
    }
}

/// The words that follow the number of failures.
pub(super) const FAILING: &[&str] = &["failed", "error", "errors", "failing", "failure", "failures", "timed"];

/// Returns the sum of the counts before `words`, and the sum of failures. The first sum is 0 if
/// only tests that did not run (`not_run`) are counted.
pub(super) fn with_failed(counts: &str, separator: char, words: &[&str], not_run: &[&str]) -> Option<(u64, u64)> {
    let ran = sum(counts, separator, words).or_else(|| sum(counts, separator, not_run).map(|_| 0))?;
    Some((ran, sum(counts, separator, FAILING).unwrap_or(0)))
}

/// Returns the sum of the counts before these words; `None` if none exist.
pub(super) fn sum(counts: &str, separator: char, words: &[&str]) -> Option<u64> {
    let count = |part: &str| {
        let mut parts = part.split_whitespace();
        let (count, word) = (parts.next()?.parse::<u64>().ok()?, parts.next()?);
        words.contains(&word).then_some(count)
    };
    counts.split(separator).filter_map(count).reduce(u64::saturating_add)
}

/// Returns the count after a label, as in `Failed: 1` or `Failed 1`.
pub(super) fn after(counts: &str, label: &str) -> Option<u64> {
    counts.split([',', '|', '.']).find_map(|part| {
        let rest = part.trim().strip_prefix(label)?;
        rest.strip_prefix(':').unwrap_or(rest).strip_prefix(' ')?.trim().parse().ok()
    })
}

/// Splits a text into the number at its start and the rest after one blank.
pub(super) fn number(text: &str) -> Option<(u64, &str)> {
    let (count, rest) = text.split_once(' ')?;
    Some((count.parse().ok()?, rest))
}
