//! Tests with reports from real runners and from attackers.

use super::*;
use crate::verdict::TestCounts;
use proptest::prelude::*;

fn case(suite: &str, name: &str, status: TestStatus, message: &str) -> TestCase {
    let (suite, name, message) = (suite.into(), name.into(), message.into());
    TestCase { suite, name, file: None, line: None, duration_ms: None, status, message }
}

#[test]
fn suites_nested_or_not_and_every_way_to_end_are_read() {
    let text = r#"<?xml version="1.0" encoding="utf-8"?>
<testsuites name="all"><testsuite name="outer"><properties><property name="error" value="1"/></properties>
  <testcase name="plain"/>
  <testsuite name="inner">
    <testcase classname="cart.Total" name="adds &gt; 2" file="src/cart.py" line="12" time="1,000.0015">
      <failure message="expected 6 &#10;got 5" type="AssertionError"><![CDATA[expected 6 <5>
at cart.py:3]]> &amp; more</failure>
      <system-out><![CDATA[<failure>]]></system-out>
    </testcase>
    <testcase name="breaks"><error type="OSError"/></testcase>
    <testcase name="later"><skipped message="not on Linux"/></testcase>
  </testsuite>
  <testcase name="after" time="NaN"><system-err>error</system-err></testcase>
</testsuite></testsuites>"#;
    let adds = TestCase {
        file: Some("src/cart.py".into()),
        line: Some(12),
        duration_ms: Some(1_000_002),
        ..case("cart.Total", "adds > 2", TestStatus::Failed, "expected 6 \ngot 5\nexpected 6 <5>\nat cart.py:3 & more")
    };
    let breaks = case("inner", "breaks", TestStatus::Errored, "OSError");
    let report = JunitReport {
        counts: TestCounts { tests: 5, failures: 1, errors: 1, skipped: 1 },
        cases: vec![
            case("outer", "plain", TestStatus::Passed, ""),
            adds.clone(),
            breaks.clone(),
            case("inner", "later", TestStatus::Skipped, "not on Linux"),
            case("outer", "after", TestStatus::Passed, ""),
        ],
    };
    assert_eq!(JunitReport::parse(text).as_ref(), Ok(&report));
    assert_eq!(report.summary(), TestSummary { counts: report.counts, failing: vec![adds, breaks] });
}

#[test]
fn a_message_begins_with_its_headline_wherever_else_the_text_has_it() {
    let message = |text: &str| JunitReport::parse(text).unwrap().cases.remove(0).message;
    let pytest = "<testsuite name='pytest'><testcase name='a'><failure message='assert 3 == 4'>def test_a():\n&gt;  assert add(1, 2) == 4\nE  assert 3 == 4\n\ntest_a.py:4: AssertionError</failure></testcase></testsuite>";
    assert_eq!(message(pytest).lines().next(), Some("assert 3 == 4"));
    let again =
        "<testsuite><testcase><failure message='no such'>no such file: a\nat b.js:2</failure></testcase></testsuite>";
    assert_eq!(message(again), "no such file: a\nat b.js:2");
    let long = format!(
        "<testsuite><testcase><failure message='it broke'>it broke\n{}error: late</failure></testcase></testsuite>",
        "x\n".repeat(2000)
    );
    let message = message(&long);
    assert!(
        message.starts_with("it broke\n") && message.ends_with("error: late") && message.len() <= MESSAGE,
        "{message}"
    );
}

#[test]
fn a_test_that_its_report_names_without_having_run_it_is_skipped() {
    let text = r#"<testsuites><testsuite name="T">
<testcase name="a" status="notrun" result="suppressed"/><testcase name="b" status="disabled"/>
<testcase name="c" status="run" result="SKIPPED"/><testcase name="d" status="run" result="completed"/>
<testcase name="e" status="notrun"><failure message="no such program"/></testcase></testsuite></testsuites>"#;
    let counts = JunitReport::parse(text).unwrap().counts;
    assert_eq!(counts, TestCounts { tests: 5, failures: 1, errors: 0, skipped: 3 });
}

#[test]
fn a_test_stands_in_the_file_of_its_suite_and_lines_count_from_1() {
    let text = r#"<testsuites name="pytest"><testsuite name="pytest"><testcase name="a" file="a.py" line="0"/></testsuite>
<testsuite name="Root" file="/p/a.spec.js"><testsuite name="inner"><testcase name="b" line="0"/></testsuite></testsuite>
<testsuite name="other"><testcase name="c" file="c.rs" line="7"/><testcase name="d"/></testsuite></testsuites>"#;
    let cases = JunitReport::parse(text).unwrap().cases;
    let places: Vec<_> = cases.iter().map(|case| (case.file.as_deref(), case.line)).collect();
    let expected = [(Some("a.py"), Some(1)), (Some("/p/a.spec.js"), None), (Some("c.rs"), Some(7)), (None, None)];
    assert_eq!(places, expected);
}

#[test]
fn an_escape_code_or_a_long_message_does_no_harm() {
    let text = format!(
        "<testsuite><testcase name='\x1b[1mbold\n2'><failure message='{}the end'/></testcase></testsuite>",
        "x\n".repeat(5000)
    );
    let case = &JunitReport::parse(&text).unwrap().cases[0];
    assert_eq!(case.name, "bold 2");
    assert!(case.message.len() <= MESSAGE && case.message.ends_with("\nthe end"), "{}", case.message);
}

#[test]
fn what_is_no_report_is_refused_with_its_place() {
    let laughs = "<!DOCTYPE lolz [<!ENTITY lol \"lol\"><!ENTITY a \"&lol;&lol;\">]>\n<testsuite name=\"&a;\"/>";
    let outside = "<!DOCTYPE x [<!ENTITY file SYSTEM \"file:///etc/passwd\">]><testsuite>&file;</testsuite>";
    let refused = |text: &str| JunitReport::parse(text).unwrap_err().to_string();
    let texts = [
        "",
        "no tests here",
        "<html>\n</html>",
        "<testsuite>\n<testcase name='a'></testsuite>",
        "<testsuite>\n\n<testcase",
        "<testsuite><testcase name='a'>",
        "<testsuite>\n<testcase name=a/></testsuite>",
        "<testsuite>\n<testcase name='&lol;'/></testsuite>",
        "<testsuite><testcase><failure>\n&lol;</failure></testcase></testsuite>",
        "<testsuite><testcase><failure>&#0;</failure></testcase></testsuite>",
        laughs,
        outside,
    ];
    insta::assert_snapshot!(texts.map(refused).join("\n"), @r#"
    line 1: there is no test suite in it
    line 1: there is no test suite in it
    line 1: `html` is no test suite
    line 2: ill-formed document: expected `</testcase>`, but `</testsuite>` was found
    line 3: syntax error: tag not closed: `>` not found before end of input
    line 1: the report ends before its elements do
    line 2: position 14: attribute value must be enclosed in `"` or `'`
    line 2: at 1..4: unrecognized entity `lol`
    line 2: the entity `lol` is not one of XML's own
    line 1: invalid character reference: 0x0 character is not permitted in XML
    line 1: a document type is declared, which no test report needs
    line 1: a document type is declared, which no test report needs
    "#);
}

#[test]
fn hostile_shapes_take_linear_time() {
    let deep = "<testsuite>".repeat(100_000);
    assert_eq!(JunitReport::parse(&deep).unwrap_err().why, "elements are nested deeper than 64");
    let attributes: String = (0..50_000).map(|n| format!(" a{n}='&lt;'")).collect();
    let wide = format!("<testsuite><testcase{attributes} name='last'/></testsuite>");
    assert_eq!(JunitReport::parse(&wide).unwrap().cases[0].name, "last");
    let many = format!("<testsuite>{}", "<testcase/>".repeat(MAX_TESTS + 1));
    assert_eq!(JunitReport::parse(&many).unwrap_err().why, "there are more than 100000 tests");
}

#[test]
fn a_report_that_claims_more_failures_than_can_be_counted_is_read() {
    let text =
        "<testsuite failures='18446744073709551615' errors='7'><testcase name='a'/><testcase name='b'/></testsuite>";
    let counts = JunitReport::parse(text).unwrap().counts;
    assert_eq!((counts.tests, counts.errors), (u64::MAX, u64::MAX));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let _ = JunitReport::parse(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn no_mixture_of_its_own_words_makes_it_panic(
        pieces in proptest::collection::vec(
            "<testsuites?( name='\\PC{0,4}')?/?>|</testsuites?>|<testcase( (name|classname|time|line)=\"\\PC{0,4}\"){0,2}/?>|</testcase>|<(failure|error|skipped)( message='\\PC{0,5}')?/?>|</(failure|error|skipped)>|<!\\[CDATA\\[|\\]\\]>|<!--|-->|&(lt|#[0-9]{1,9}|x);|\\PC{0,5}",
            0..20,
        ),
    ) {
        if let Ok(report) = JunitReport::parse(&pieces.concat()) {
            prop_assert_eq!(report.counts.tests, report.cases.len() as u64);
        }
    }
}
