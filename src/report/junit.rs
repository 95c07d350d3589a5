//! The writer of JUnit documents: one suite with test cases. The document is well-formed for any
//! text. Tries before the last one have the form of Maven's Surefire
//! (<https://maven.apache.org/surefire/maven-surefire-plugin/examples/rerun-failing-tests.html>).

use quick_xml::Writer;
use quick_xml::events::{BytesDecl, BytesText, Event};
use std::io;

/// A test case of a document.
#[derive(Debug, Clone, Default)]
pub(crate) struct JunitCase {
    /// The class name.
    pub(crate) class: String,
    /// The name.
    pub(crate) name: String,
    /// The duration in milliseconds.
    pub(crate) duration_ms: u64,
    /// The child elements: none if the test passed at its first try.
    pub(crate) elements: Vec<JunitElement>,
}

/// A child element of a test case.
#[derive(Debug, Clone, Default)]
pub(crate) struct JunitElement {
    /// The name of the element, such as `failure`, `skipped` or `system-out`.
    pub(crate) element: &'static str,
    /// The attributes `message` and `type`, if the element has them.
    pub(crate) message: Option<String>,
    pub(crate) kind: Option<&'static str>,
    /// The content, which may be empty.
    pub(crate) text: String,
}

/// Builds the document of a suite with these cases.
pub(crate) fn document(suite: &str, duration_ms: u64, cases: &[JunitCase]) -> String {
    let mut xml = Writer::new_with_indent(Vec::new(), b' ', 2);
    let _memory_takes_all = write(&mut xml, suite, duration_ms, cases);
    let mut bytes = xml.into_inner();
    bytes.push(b'\n');
    String::from_utf8(bytes).unwrap_or_default() // the bytes were written from text
}

fn write(xml: &mut Writer<Vec<u8>>, suite: &str, duration_ms: u64, cases: &[JunitCase]) -> io::Result<()> {
    let has = |case: &&JunitCase, wanted: &str| case.elements.iter().any(|child| child.element == wanted);
    let count = |wanted: &str| cases.iter().filter(|case| has(case, wanted)).count().to_string();
    let all = [
        ("name", one_line(suite)),
        ("tests", cases.len().to_string()),
        ("failures", count("failure")),
        ("errors", count("error")),
        ("skipped", count("skipped")),
        ("time", time(duration_ms)),
    ];
    let all = || all.iter().map(|(name, value)| (*name, value.as_str()));
    xml.write_event(Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None)))?;
    xml.create_element("testsuites").with_attributes(all()).write_inner_content(|xml| {
        let suite = xml.create_element("testsuite").with_attributes(all());
        suite.write_inner_content(|xml| cases.iter().try_for_each(|case| write_case(xml, case))).map(drop)
    })?;
    Ok(())
}

fn write_case(xml: &mut Writer<Vec<u8>>, case: &JunitCase) -> io::Result<()> {
    let (class, name, time) = (one_line(&case.class), one_line(&case.name), time(case.duration_ms));
    let about = [("classname", class.as_str()), ("name", &name), ("time", &time)];
    let test = xml.create_element("testcase").with_attributes(about);
    if case.elements.is_empty() {
        return test.write_empty().map(drop);
    }
    test.write_inner_content(|xml| case.elements.iter().try_for_each(|child| write_element(xml, child))).map(drop)
}

fn write_element(xml: &mut Writer<Vec<u8>>, child: &JunitElement) -> io::Result<()> {
    let message = child.message.as_deref().map(one_line);
    let about = [("message", message.as_deref()), ("type", child.kind)];
    let about = about.into_iter().filter_map(|(name, value)| Some((name, value?)));
    let element = xml.create_element(child.element).with_attributes(about);
    let text = valid(&child.text);
    let written =
        if text.is_empty() { element.write_empty() } else { element.write_text_content(BytesText::new(&text)) };
    written.map(drop)
}

/// Converts text to one line for an attribute.
fn one_line(text: &str) -> String {
    valid(text).replace(['\n', '\t'], " ")
}

/// Removes the characters that XML cannot represent (<https://www.w3.org/TR/xml/#charsets>), and
/// DEL.
pub(crate) fn valid(text: &str) -> String {
    text.chars().filter(|c| matches!(c, '\t' | '\n' | ' '..='\u{fffd}' | '\u{10000}'..) && *c != '\u{7f}').collect()
}

/// Formats milliseconds as seconds.
fn time(ms: u64) -> String {
    format!("{}.{:03}", ms / 1000, ms % 1000)
}
