//! Reads documents of the Test Anything Protocol, as programs of Perl, bats, busted and others print them. Pure.

use super::counts::Counts;

/// The documents since the last summary.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Tap {
    open: Document,
    /// The counts of the documents that have ended.
    ended: Option<Counts>,
    /// Plans without a test after them.
    empty: u64,
    /// A document had tests.
    has_tests: bool,
}

/// A document: a plan and the lines of tests, in any order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Document {
    planned: Option<u64>,
    seen: u64,
    failed: u64,
    skipped: u64,
}

impl Tap {
    /// Takes a line of output with its indentation: subtests are indented and count in their parent.
    pub(super) fn take(&mut self, line: &str) {
        if let Some((planned, is_skipped)) = plan(line) {
            if self.open.planned.is_some() {
                self.end_document();
            }
            self.open.planned = Some(planned);
            self.open.skipped += u64::from(is_skipped);
            // A plan after the tests is the end.
            if self.open.seen > 0 || planned == 0 {
                self.end_document();
            }
        } else if let Some(test) = Test::read(line) {
            let is_whole = self.open.planned.is_some_and(|planned| self.open.seen >= planned);
            if is_whole || (test.number == 1 && self.open.seen > 0) {
                self.end_document();
            }
            // Without a plan, a line that only looks like a test has any number.
            if self.open.planned.is_some() || test.number == self.open.seen + 1 {
                self.open.seen += 1;
                self.open.failed += u64::from(test.has_failed);
                self.open.skipped += u64::from(test.is_skipped);
            }
        } else if line.starts_with("Bail out!") && (self.open.seen > 0 || self.open.planned.is_some()) {
            self.open.seen += 1;
            self.open.failed += 1;
        }
    }

    /// Returns the counts of the documents that have ended, where another summary follows. `is_own`: it sums up documents, also one whose
    /// plan comes last.
    pub(super) fn take_ended(&mut self, is_own: bool) -> Option<Counts> {
        match self.open.planned {
            Some(planned) if self.open.seen >= planned => self.end_document(),
            None if is_own => {
                self.has_tests |= self.open.seen > 0;
                self.open = Document::default();
            }
            _ => {}
        }
        self.ended.take()
    }

    /// Takes the end of the output. Returns the counts of the documents since the last summary; `None` if there was none.
    pub(super) fn end(&mut self) -> Option<Counts> {
        self.end_document();
        self.ended.take()
    }

    /// The number of plans without a test after them, as of a program that ended at its start.
    pub(super) fn empty(&self) -> u64 {
        self.empty
    }

    /// Whether a document had tests.
    pub(super) fn has_tests(&self) -> bool {
        self.has_tests
    }

    fn end_document(&mut self) {
        let Document { planned, seen, failed, skipped } = std::mem::take(&mut self.open);
        self.has_tests |= seen > 0;
        let counts = match planned {
            Some(0) => Counts::default().with_skipped(skipped),
            Some(_) if seen == 0 => {
                self.empty += 1;
                return;
            }
            Some(planned) => {
                // What was planned and did not run has failed.
                let missing = planned.saturating_sub(seen);
                Counts::new(seen.saturating_sub(skipped), failed.saturating_add(missing)).with_skipped(skipped)
            }
            None if failed == 0 => return,
            None => Counts::new(0, failed),
        };
        self.ended = Some(self.ended.unwrap_or_default().plus(counts));
    }
}

/// A line of a test.
struct Test {
    number: u64,
    has_failed: bool,
    is_skipped: bool,
}

impl Test {
    /// `ok 1 - adds`, `not ok 2 halves`, `ok 3 # skip no net`, `not ok 4 - later # TODO`. An expected failure counts as skipped.
    fn read(line: &str) -> Option<Self> {
        let (rest, is_ok) = line.strip_prefix("not ").map_or((line, true), |rest| (rest, false));
        let rest = rest.strip_prefix("ok ")?;
        let (number, text) = rest.split_once(' ').unwrap_or((rest, ""));
        let directive = text.rsplit_once('#').map_or("", |(_, directive)| directive.trim_start());
        let is = |word: &str| directive.get(..4).is_some_and(|start| start.eq_ignore_ascii_case(word));
        let is_skipped = is("skip") || (is("todo") && !is_ok);
        Some(Self { number: number.parse().ok()?, has_failed: !is_ok && !is_skipped, is_skipped })
    }
}

/// `1..3`, `1..0 # SKIP no net`: how many tests are planned, and whether the document is skipped.
fn plan(line: &str) -> Option<(u64, bool)> {
    let rest = line.strip_prefix("1..")?;
    let (count, comment) = rest.split_once('#').unwrap_or((rest, ""));
    let is_skipped = comment.trim_start().get(..4).is_some_and(|start| start.eq_ignore_ascii_case("skip"));
    let count = count.trim_end().parse().ok()?;
    (comment.is_empty() || is_skipped).then_some((count, is_skipped && count == 0))
}

/// The name of a test that ran, of runners that put it right after the number (bats, Mocha): `ok 1 adds`. Descriptions of other programs, and
/// those with digits, may differ from run to run.
pub(super) fn name(line: &str) -> Option<&str> {
    Test::read(line).filter(|test| !test.is_skipped)?;
    let (_, name) = line.strip_prefix("not ").unwrap_or(line).strip_prefix("ok ")?.split_once(' ')?;
    let is_stable = !name.starts_with("- ") && !name.contains(|char: char| char.is_ascii_digit());
    is_stable.then(|| name.trim())
}

/// Returns whether a line is a plan of tests.
pub(super) fn is_plan(line: &str) -> bool {
    plan(line).is_some_and(|(planned, _)| planned > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (Option<Counts>, u64) {
        let mut tap = Tap::default();
        text.lines().for_each(|line| tap.take(line));
        (tap.end(), tap.empty())
    }

    #[test]
    fn documents_are_counted_with_their_directives_and_without_subtests() {
        for (text, ran, failed, skipped) in [
            // Perl's Test::More.
            (
                "1..4\nok 1 - adds\nnot ok 2 - halves\n#   Failed test 'halves'\nnot ok 3 - todo # TODO later\nok 4 # skip no net",
                2,
                1,
                2,
            ),
            ("# Subtest: inner\n    not ok 1 - x\n    1..1\nok 1 - inner # TODO later\n1..1", 1, 0, 0),
            ("    1..2\n    ok 1 - x\n    not ok 2 - y\nnot ok 1 - inner\n1..1", 1, 1, 0),
            ("1..0 # SKIP no net", 0, 0, 1),
            ("1..3\nok 1 - a", 1, 2, 0),
            ("1..3\nok 1 - a\nBail out!  no db", 2, 2, 0),
            // Two programs, and two that plan at their end.
            ("1..1\nok 1\n1..2\nok 1\nnot ok 2", 3, 1, 0),
            ("ok 1 a\n1..1\nok 1 b\nok 2 c\n1..2", 3, 0, 0),
            ("1..1\nok 1 - a\nok 1 - b\nok 2 - c\n1..2", 3, 0, 0),
            // bats, and busted.
            ("1..3\nok 1 adds\nnot ok 2 halves\n# (in test file a.bats, line 2)\nok 3 net # skip no net", 2, 1, 1),
            ("ok 1 - s adds\nnot ok 2 - s halves\nok 3 - # SKIP s later\n1..3", 2, 1, 1),
            // The program ended before its plan.
            ("ok 1 - a\nnot ok 2 - b", 0, 1, 0),
        ] {
            assert_eq!(read(text).0, Some(Counts::new(ran, failed).with_skipped(skipped)), "{text}");
        }
    }

    #[test]
    fn a_summary_within_a_document_does_not_end_it() {
        let mut tap = Tap::default();
        ["1..2", "ok 1 - a"].iter().for_each(|line| tap.take(line));
        assert_eq!(tap.take_ended(false), None);
        tap.take("ok 2 - b");
        assert_eq!(tap.take_ended(false), Some(Counts::new(2, 0)));
        assert_eq!(tap.end(), None);
    }

    #[test]
    fn other_text_is_no_document() {
        for text in [
            "ok 1 file changed",
            "not ok",
            "ok then",
            "1..x",
            "not ok 7 - of ten",
            "  not ok 1 - in a log",
            "Bail out! now",
        ] {
            assert_eq!(read(text), (None, 0), "{text}");
        }
        assert_eq!(read("1..3"), (None, 1));
    }
}
