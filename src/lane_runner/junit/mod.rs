//! A parser for JUnit reports: XML text to tests. Pure.
//!
//! No standard exists, so the parser accepts the common subset of the usual writers
//! (<https://github.com/testmoapp/junitxml>). Reports contain suites, possibly nested, with
//! `testcase` elements that contain the outcome.
//!
//! The text comes from a program that may be hostile. The parser refuses document types, and with
//! them all entities beyond the five of XML. Time is linear, and memory is bounded by the size of
//! the text.

use super::excerpt::excerpt;
use crate::lane::JunitReport;
use crate::process::clean;
use crate::verdict::{TestCase, TestStatus, TestSummary};
use quick_xml::Reader;
use quick_xml::escape::{resolve_predefined_entity, unescape};
use quick_xml::events::{BytesStart, Event};

/// The maximum number of tests in a report.
const MAX_TESTS: usize = 100_000;
/// The maximum nesting depth of elements.
const DEEPEST: usize = 64;
/// The maximum number of failing tests that a summary names.
const NAMED: usize = 100;
/// The maximum size of a test's message, in bytes.
const MESSAGE: usize = 1024;
/// The number of bytes of text that are searched for a message.
const LOOKED_AT: usize = 64 * 1024;
/// The maximum size of a name, in bytes.
const NAME: usize = 400;

/// An error in the text of a JUnit report.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {why}")]
pub struct JunitError {
    /// The line, from 1.
    pub line: usize,
    /// The reason.
    pub why: String,
}

impl JunitReport {
    /// Parses the text of a report.
    ///
    /// # Errors
    ///
    /// When the text is not well-formed, declares a document type, or is not a test report. Also
    /// when it has more than 100,000 tests or more than 64 nested elements.
    pub fn parse(text: &str) -> Result<Self, JunitError> {
        let text = text.trim_start_matches('\u{feff}');
        let mut reader = Reader::from_str(text);
        let mut tree = Tree::default();
        loop {
            let event = reader.read_event();
            let at = if event.is_ok() { reader.buffer_position() } else { reader.error_position() };
            let taken = event.map_err(|error| error.to_string()).and_then(|event| tree.push(event));
            match taken {
                Ok(true) => {}
                Ok(false) => return Ok(tree.report),
                Err(why) => return Err(JunitError { line: line_at(text, at), why }),
            }
        }
    }

    /// Returns the counts and the first failing tests.
    pub fn summary(&self) -> TestSummary {
        let failing = |case: &&TestCase| matches!(case.status, TestStatus::Failed | TestStatus::Errored);
        TestSummary { counts: self.counts, failing: self.cases.iter().filter(failing).take(NAMED).cloned().collect() }
    }
}

/// The state of the parser.
#[derive(Default)]
struct Tree {
    report: JunitReport,
    open: Vec<Element>,
    /// True if the text contains a suite.
    has_suite: bool,
    /// The largest number of failures plus errors that a suite claims.
    claimed: u64,
    /// The open test, and the text of its outcome.
    case: Option<(TestCase, String)>,
}

enum Element {
    /// A suite with its name and file, or the element around all suites.
    Suite(String, Option<String>),
    Case,
    /// The outcome of a test.
    Outcome,
    /// The outcome of a whole suite, which counts like a test.
    Alone,
    Other,
}

impl Element {
    fn suite(&self) -> Option<(&str, Option<&str>)> {
        if let Self::Suite(name, file) = self { Some((name, file.as_deref())) } else { None }
    }
}

impl Tree {
    /// Reads the next XML event. Returns false at the end of the text.
    fn push(&mut self, event: Event<'_>) -> Result<bool, String> {
        match event {
            Event::Start(start) => self.open_element(&start)?,
            Event::Empty(start) => {
                self.open_element(&start)?;
                self.end();
            }
            Event::End(_) => self.end(),
            Event::Text(text) => self.add(&text.xml10_content()),
            Event::CData(text) => self.add(&text.xml10_content()),
            Event::GeneralRef(reference) => {
                let name = reference.xml10_content();
                let char = reference.resolve_char_ref().map_err(|error| error.to_string())?.map(String::from);
                let text = char.or_else(|| resolve_predefined_entity(&name).map(str::to_owned));
                self.add(&text.ok_or_else(|| format!("the entity `{}` is not one of XML's own", name_of(&name)))?);
            }
            Event::DocType(_) => return Err("a document type is declared, which no test report needs".into()),
            Event::Comment(_) | Event::Decl(_) | Event::PI(_) => {}
            Event::Eof if !self.open.is_empty() => return Err("the report ends before its elements do".into()),
            Event::Eof if !self.has_suite => return Err("there is no test suite in it".into()),
            Event::Eof => {
                let counts = &mut self.report.counts;
                let unnamed = self.claimed.saturating_sub(counts.failures.saturating_add(counts.errors));
                counts.errors = counts.errors.saturating_add(unnamed);
                counts.tests = counts.tests.saturating_add(unnamed);
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn open_element(&mut self, start: &BytesStart<'_>) -> Result<(), String> {
        if self.open.len() == DEEPEST {
            return Err(format!("elements are nested deeper than {DEEPEST}"));
        }
        let element = match (start.local_name().into_inner(), self.case.is_some()) {
            ("testsuites" | "testsuite", false) => {
                self.has_suite = true;
                // Some writers separate thousands with commas.
                let claim = |name| -> Result<u64, String> {
                    match attribute(start, name)?.replace(',', "").as_str() {
                        "" => Ok(0),
                        number => number.parse().map_err(|_| format!("`{name}` is no number: `{number}`")),
                    }
                };
                self.claimed = self.claimed.max(claim("failures")?.saturating_add(claim("errors")?));
                Element::Suite(attribute(start, "name")?, some(attribute(start, "file")?))
            }
            ("testcase", false) if self.has_suite => {
                self.case = Some((self.case_of(start)?, String::new()));
                Element::Case
            }
            (name @ ("failure" | "error"), false) if self.has_suite => {
                self.case = Some((TestCase { name: "the suite itself".into(), ..self.case_of(start)? }, String::new()));
                self.befall(name, start)?;
                Element::Alone
            }
            (name @ ("failure" | "error" | "skipped"), true) => {
                self.befall(name, start)?;
                Element::Outcome
            }
            (name, _) if self.open.is_empty() => return Err(format!("`{}` is no test suite", name_of(name))),
            _ => Element::Other,
        };
        self.open.push(element);
        Ok(())
    }

    fn end(&mut self) {
        if !matches!(self.open.pop(), Some(Element::Case | Element::Alone)) {
            return;
        }
        let Some((mut case, text)) = self.case.take() else { return };
        case.message = message(&case.message, text.trim());
        let counts = &mut self.report.counts;
        counts.tests += 1;
        match case.status {
            TestStatus::Passed => {}
            TestStatus::Failed => counts.failures += 1,
            TestStatus::Errored => counts.errors += 1,
            TestStatus::Skipped => counts.skipped += 1,
        }
        self.report.cases.push(case);
    }

    fn add(&mut self, piece: &str) {
        if let (Some(Element::Outcome | Element::Alone), Some((_, text))) = (self.open.last(), &mut self.case) {
            let room = LOOKED_AT.saturating_sub(text.len());
            text.push_str(&piece[..piece.floor_char_boundary(room)]);
        }
    }

    fn case_of(&self, start: &BytesStart<'_>) -> Result<TestCase, String> {
        if self.report.cases.len() == MAX_TESTS {
            return Err(format!("there are more than {MAX_TESTS} tests"));
        }
        let suites = || self.open.iter().rev().filter_map(Element::suite);
        let suite_here = || suites().next().map_or("", |(name, _)| name).to_owned();
        // pytest counts lines from 0, all others from 1.
        let first = u32::from(suites().next().is_some_and(|(name, _)| name == "pytest"));
        let line = attribute(start, "line")?.parse().ok().and_then(|line: u32| line.checked_add(first));
        // In seconds; some writers separate thousands with commas.
        let seconds = attribute(start, "time")?.replace(',', "").parse::<f64>().ok();
        let millis = seconds.filter(|time| (0.0..1e9).contains(time)).map(|time| (time * 1000.0).round() as u64);
        Ok(TestCase {
            suite: some(attribute(start, "classname")?).unwrap_or_else(suite_here),
            name: attribute(start, "name")?,
            file: some(attribute(start, "file")?).or_else(|| suites().find_map(|(_, file)| file).map(str::to_owned)),
            line: line.filter(|line| *line > 0),
            duration_ms: millis,
            status: if was_left_out(start)? { TestStatus::Skipped } else { TestStatus::Passed },
            message: String::new(),
        })
    }

    /// Records an outcome of the open test. The first one counts, but a failure replaces a skip.
    fn befall(&mut self, name: &str, start: &BytesStart<'_>) -> Result<(), String> {
        let Some((case, text)) = &mut self.case else { return Ok(()) };
        let status = match name {
            "failure" => TestStatus::Failed,
            "error" => TestStatus::Errored,
            _ => TestStatus::Skipped,
        };
        if matches!(case.status, TestStatus::Passed | TestStatus::Skipped) {
            text.clear();
            case.status = status;
            case.message = raw_attribute(start, "message")?;
            if case.message.is_empty() {
                case.message = raw_attribute(start, "type")?;
            }
        }
        Ok(())
    }
}

/// Returns true if the report lists a test that did not run. GoogleTest and CTest mark these by an
/// attribute, not by an element.
fn was_left_out(start: &BytesStart<'_>) -> Result<bool, String> {
    let says = |name, words: &[&str]| -> Result<bool, String> {
        let word = attribute(start, name)?;
        Ok(words.iter().any(|known| word.eq_ignore_ascii_case(known)))
    };
    Ok(says("status", &["notrun", "disabled", "skipped"])? || says("result", &["suppressed", "skipped"])?)
}

/// Joins the message attribute, which readers look for first, and the text below it. The text often
/// begins with a copy of the message.
fn message(output: &str, text: &str) -> String {
    let (output, text) = (clean(output.trim().as_bytes()), clean(text.as_bytes()));
    if output.is_empty() {
        return excerpt(&text, MESSAGE);
    }
    let (output, text) = match text.strip_prefix(output.as_str()) {
        Some(rest) => {
            let (end, rest) = rest.split_once('\n').unwrap_or((rest, ""));
            (format!("{output}{end}"), rest)
        }
        None => (output, text.as_str()),
    };
    let output = excerpt(&output, MESSAGE / 2);
    if text.is_empty() { output } else { format!("{output}\n{}", excerpt(text, MESSAGE - output.len() - 1)) }
}

/// Returns the value of an attribute as a name: clean, short, on one line. Empty if the attribute
/// is missing.
fn attribute(start: &BytesStart<'_>, name: &str) -> Result<String, String> {
    Ok(name_of(&raw_attribute(start, name)?))
}

fn some(text: String) -> Option<String> {
    if text.is_empty() { None } else { Some(text) }
}

fn raw_attribute(start: &BytesStart<'_>, name: &str) -> Result<String, String> {
    // Duplicate attributes are not detected, because the check takes quadratic time.
    for attribute in start.attributes().with_checks(false) {
        let attribute = attribute.map_err(|error| error.to_string())?;
        if attribute.key.into_inner() == name {
            return Ok(unescape(&attribute.value).map_err(|error| error.to_string())?.into_owned());
        }
    }
    Ok(String::new())
}

fn name_of(text: &str) -> String {
    let text = clean(text.as_bytes()).replace('\n', " ");
    text[..text.floor_char_boundary(NAME)].trim().to_owned()
}

fn line_at(text: &str, at: u64) -> usize {
    let at = usize::try_from(at).unwrap_or(usize::MAX).min(text.len());
    1 + text.as_bytes()[..at].iter().filter(|byte| **byte == b'\n').count()
}

#[cfg(test)]
mod tests;
