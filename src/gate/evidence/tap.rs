//! A reader for documents of the Test Anything Protocol, which Perl programs, bats, busted and
//! others print. Pure.

use super::counts::CountedTests;

/// The maximum number of open documents.
const MOST_OPEN: usize = 64;

/// The documents since the last summary.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct TapReader {
    /// Documents that have not ended, the newest last. Parallel programs mix the lines of their
    /// documents.
    open: Vec<Document>,
    /// The counts of the documents that have ended.
    ended: Option<CountedTests>,
    /// The number of plans that no test follows.
    empty: u64,
    /// At least one document had tests.
    has_tests: bool,
}

/// A document: a plan and the lines of tests, in any order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Document {
    planned: Option<u64>,
    seen: u64,
    failed: u64,
    skipped: u64,
    /// The document has no plan, and another summary followed its tests.
    is_doubtful: bool,
}

impl Document {
    fn is_whole(&self) -> bool {
        self.planned.is_some_and(|planned| self.seen >= planned)
    }
}

impl TapReader {
    /// Reads a line of output with its indentation. Subtests are indented and count as part of
    /// their parent.
    pub(super) fn read_line(&mut self, line: &str) {
        if let Some((planned, is_skipped)) = plan(line) {
            self.take_plan(planned, is_skipped);
        } else if let Some(test) = Test::read(line) {
            self.take_test(&test);
        } else if let Some(document) = self.open.last_mut().filter(|_| line.starts_with("Bail out!")) {
            document.seen += 1;
            document.failed += 1;
        }
    }

    fn take_plan(&mut self, planned: u64, is_skipped: bool) {
        if planned == 0 {
            return self.close(Document { planned: Some(0), skipped: u64::from(is_skipped), ..Document::default() });
        }
        // A plan after the tests ends the document.
        self.open.retain(|document| !document.is_doubtful || document.seen == planned);
        let unplanned = |document: &Document| document.planned.is_none();
        let fits = |document: &Document| unplanned(document) && document.seen == planned;
        let place = self.open.iter().rposition(fits).or_else(|| self.open.iter().rposition(unplanned));
        match place.map(|place| self.open.remove(place)) {
            Some(document) => self.close(Document { planned: Some(planned), ..document }),
            None => self.start_document(Document { planned: Some(planned), ..Document::default() }),
        }
    }

    fn take_test(&mut self, test: &Test) {
        let is_next = |document: &Document| document.seen + 1 == test.number;
        let is_planned = |document: &Document| document.planned.is_some();
        let place = match self.open.iter().rposition(is_next) {
            // In a document without a plan, a line with an unexpected number may only look like a
            // test.
            None if test.number != 1 => self.open.iter().rposition(is_planned),
            place => place,
        };
        let place = match place {
            Some(place) => place,
            None if test.number == 1 => {
                self.start_document(Document::default());
                self.open.len() - 1
            }
            None => return,
        };
        let document = &mut self.open[place];
        document.seen += 1;
        document.failed += u64::from(test.has_failed);
        document.skipped += u64::from(test.is_skipped);
        if document.is_whole() {
            let document = self.open.remove(place);
            self.close(document);
        }
    }

    fn start_document(&mut self, document: Document) {
        if self.open.len() >= MOST_OPEN {
            let oldest = self.open.remove(0);
            self.close(oldest);
        }
        self.open.push(document);
    }

    /// Returns the counts of the documents that have ended, when another summary follows. `is_own`:
    /// that summary covers the documents, including one whose plan comes last.
    pub(super) fn take_ended(&mut self, is_own: bool) -> Option<CountedTests> {
        for document in self.open.iter_mut().filter(|document| document.planned.is_none()) {
            document.is_doubtful = true;
            self.has_tests |= is_own;
        }
        self.open.retain(|document| !is_own || !document.is_doubtful);
        self.ended.take()
    }

    /// Closes all documents at the end of the output. Returns the counts of the documents since the
    /// last summary; `None` if none exist.
    pub(super) fn end(&mut self) -> Option<CountedTests> {
        std::mem::take(&mut self.open).into_iter().for_each(|document| self.close(document));
        self.ended.take()
    }

    /// Returns the number of plans that no test follows, such as that of a program that ended at
    /// its start.
    pub(super) fn empty(&self) -> u64 {
        self.empty
    }

    /// Returns whether a document had tests.
    pub(super) fn has_tests(&self) -> bool {
        self.has_tests
    }

    fn close(&mut self, document: Document) {
        let Document { planned, seen, failed, skipped, .. } = document;
        self.has_tests |= seen > 0;
        let counts = match planned {
            Some(0) => CountedTests::default().with_skipped(skipped),
            Some(_) if seen == 0 => {
                self.empty += 1;
                return;
            }
            Some(planned) => {
                // Planned tests that did not run count as failed.
                let missing = planned.saturating_sub(seen);
                CountedTests::new(seen.saturating_sub(skipped), failed.saturating_add(missing)).with_skipped(skipped)
            }
            // Lines without a plan may only look like tests.
            None => return,
        };
        self.ended = Some(self.ended.unwrap_or_default().plus(counts));
    }
}

/// A line that reports a test.
struct Test {
    number: u64,
    has_failed: bool,
    is_skipped: bool,
}

impl Test {
    /// Parses `ok 1 - adds`, `not ok 2 halves`, `ok 3 # skip no net` or `not ok 4 - later # TODO`.
    /// An expected failure counts as skipped.
    fn read(line: &str) -> Option<Self> {
        let (rest, is_ok) = line.strip_prefix("not ").map_or((line, true), |rest| (rest, false));
        let rest = rest.strip_prefix("ok ")?;
        let (number, text) = rest.split_once(' ').unwrap_or((rest, ""));
        let mut directives = text.split('#').skip(1).filter_map(|part| part.trim_start().get(..4));
        // Another `#` may occur before the directive and in its reason.
        let directive = directives.find(|word| ["skip", "todo"].iter().any(|known| word.eq_ignore_ascii_case(known)));
        let is_skipped = directive.is_some_and(|word| word.eq_ignore_ascii_case("skip") || !is_ok);
        Some(Self { number: number.parse().ok()?, has_failed: !is_ok && !is_skipped, is_skipped })
    }
}

/// Parses `1..3` or `1..0 # SKIP no net`. Returns the number of planned tests, and whether the
/// document is skipped.
fn plan(line: &str) -> Option<(u64, bool)> {
    let rest = line.strip_prefix("1..")?;
    let (count, comment) = rest.split_once('#').unwrap_or((rest, ""));
    let is_skipped = comment.trim_start().get(..4).is_some_and(|start| start.eq_ignore_ascii_case("skip"));
    let count = count.trim_end().parse().ok()?;
    (comment.is_empty() || is_skipped).then_some((count, is_skipped && count == 0))
}

/// Returns the name of a test that ran, as in `ok 1 adds`, from runners that print it directly
/// after the number (bats, Mocha). Other descriptions, and those with digits, may differ from run
/// to run.
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

    fn read(text: &str) -> (Option<CountedTests>, u64) {
        let mut tap = TapReader::default();
        text.lines().for_each(|line| tap.read_line(line));
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
            // Two programs with plans at the start, and two with plans at the end.
            ("1..1\nok 1\n1..2\nok 1\nnot ok 2", 3, 1, 0),
            ("ok 1 a\n1..1\nok 1 b\nok 2 c\n1..2", 3, 0, 0),
            ("1..1\nok 1 - a\nok 1 - b\nok 2 - c\n1..2", 3, 0, 0),
            // bats and busted.
            ("1..3\nok 1 adds\nnot ok 2 halves\n# (in test file a.bats, line 2)\nok 3 net # skip no net", 2, 1, 1),
            ("ok 1 - s adds\nnot ok 2 - s halves\nok 3 - # SKIP s later\n1..3", 2, 1, 1),
            // Parallel programs.
            ("1..3\nok 1\n1..2\nok 1\nok 2\nok 2\nok 3", 5, 0, 0),
            ("1..2\n1..2\nok 1\nok 1\nok 2\nnot ok 2", 4, 1, 0),
            ("ok 1 a\nok 1 b\nok 2 c\nok 2 d\n1..2\n1..2", 4, 0, 0),
            // A program that ended early, and another program.
            ("1..3\nok 1\n1..2\nok 1\nok 2", 3, 2, 0),
            ("1..2\nok 1 - a\nnot ok 2 - later # TODO see issue #12", 1, 0, 1),
            ("1..1\nnot ok 1 - issue #12", 1, 1, 0),
        ] {
            assert_eq!(read(text).0, Some(CountedTests::new(ran, failed).with_skipped(skipped)), "{text}");
        }
    }

    #[test]
    fn a_summary_within_a_document_does_not_end_it() {
        let mut tap = TapReader::default();
        ["1..2", "ok 1 - a"].iter().for_each(|line| tap.read_line(line));
        assert_eq!(tap.take_ended(false), None);
        tap.read_line("ok 2 - b");
        assert_eq!(tap.take_ended(false), Some(CountedTests::new(2, 0)));
        assert_eq!(tap.end(), None);
        // Tests without a plan before the summary form a document only if a later plan has their
        // number.
        for (planned, counts) in [(2, Some(CountedTests::new(2, 0))), (1, Some(CountedTests::new(1, 1)))] {
            let mut tap = TapReader::default();
            tap.read_line("not ok 1 - x");
            tap.take_ended(false);
            [format!("1..{planned}"), "ok 1".to_owned(), "ok 2".to_owned()].iter().for_each(|line| tap.read_line(line));
            assert_eq!(tap.end(), counts);
        }
    }

    #[test]
    fn other_text_is_no_document() {
        for text in [
            "ok 1 file changed",
            "not ok",
            "ok then",
            "1..x",
            "not ok 7 - of ten",
            "ok 1 - a\nnot ok 2 - b\nok 3 - c",
            "  not ok 1 - in a log",
            "Bail out! now",
        ] {
            assert_eq!(read(text), (None, 0), "{text}");
        }
        assert_eq!(read("1..3"), (None, 1));
    }
}
