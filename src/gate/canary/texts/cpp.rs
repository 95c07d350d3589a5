//! Planted tests for GoogleTest, Catch2 and doctest.

use super::{PlainFailure, PlantDraft, PlantGroup, tokens, used};
use std::collections::BTreeSet;

/// The endings of GoogleTest's `EXPECT_` and `ASSERT_` macros, each with arguments that fail.
#[rustfmt::skip]
const GOOGLE: [(&str, &str); 16] = [
    ("EQ", "(1, 2)"), ("NE", "(1, 1)"), ("LT", "(2, 1)"), ("LE", "(2, 1)"), ("GT", "(1, 2)"), ("GE", "(1, 2)"),
    ("TRUE", "(false)"), ("FALSE", "(true)"), ("STREQ", "(\"{mark}\", \"\")"), ("STRNE", "(\"{mark}\", \"{mark}\")"),
    ("STRCASEEQ", "(\"{mark}\", \"\")"), ("DOUBLE_EQ", "(1.0, 2.0)"), ("FLOAT_EQ", "(1.0f, 2.0f)"),
    ("NEAR", "(1.0, 2.0, 0.1)"), ("NO_THROW", "(throw 1)"), ("ANY_THROW", "((void)0)"),
];
/// The endings of the `REQUIRE` and `CHECK` macros of Catch2 and doctest, each with arguments that
/// fail.
#[rustfmt::skip]
const CATCH: [(&str, &str); 10] = [
    ("", "(\"{mark}\"[0] == 0)"), ("_FALSE", "(\"{mark}\"[0] != 0)"), ("_EQ", "(\"{mark}\"[0], 0)"),
    ("_NE", "(\"{mark}\"[0], \"{mark}\"[0])"), ("_LT", "(2, 1)"), ("_GT", "(1, 2)"), ("_LE", "(2, 1)"), ("_GE", "(1, 2)"),
    ("_THROWS", "((void)\"{mark}\")"), ("_NOTHROW", "(throw 1)"),
];

/// Returns the base's file with added tests that use the macros of its framework. A build lists the
/// files that it compiles, so it would ignore a new file. The added tests follow the last test
/// outside of each `#if`, because the names that they use may be known only there. `None` if the
/// framework is unknown or the place is inside an `#if`.
pub(in crate::gate::canary) fn cpp(path: &str, like: &str) -> Option<PlantDraft> {
    let includes =
        |name: &str| like.lines().any(|line| line.trim_start().starts_with("#include") && line.contains(name));
    let (last, end) = last_test(like);
    let (head, tail) = like.split_at(end);
    let (groups, failure) = if includes("gtest") || includes("gmock") {
        (google(last, &tokens(like)), google_test("TEST({File}, {name})", "ADD_FAILURE() << \"{mark}\""))
    } else if includes("catch") || includes("doctest") {
        let tests = catch(&tokens(like));
        (vec![PlantGroup::new("TEST_CASE", tests)], "TEST_CASE(\"{name}\") {\n    FAIL(\"{mark}\");\n}\n".to_owned())
    } else {
        return None;
    };
    let is_closed = head.matches("#if").count() == head.matches("#endif").count();
    let plain = PlainFailure::new(head, "failure", failure);
    is_closed.then(|| PlantDraft {
        like: path.into(),
        path: path.into(),
        head: head.into(),
        groups,
        tail: tail.into(),
        plain,
    })
}

/// Returns the first line of the last test outside of each `#if`, and the position where the test
/// ends; without such a test, the end of the text.
fn last_test(text: &str) -> (&str, usize) {
    let (mut at, mut last, mut end, mut depth) = (0, "", None, 0_u32);
    for line in text.split_inclusive('\n') {
        at += line.len();
        match line.trim_start().strip_prefix('#').map(str::trim_start) {
            Some(directive) if directive.starts_with("if") => depth += 1,
            Some(directive) if directive.starts_with("endif") => depth = depth.saturating_sub(1),
            _ => {}
        }
        let begins = ["TEST", "SCENARIO", "TYPED_TEST"].iter().any(|begin| line.starts_with(begin));
        if begins && depth == 0 {
            (last, end) = (line, line.trim_end().ends_with('}').then_some(at));
        } else if line.starts_with('}') && end.is_none() && !last.is_empty() && depth == 0 {
            end = Some(at);
        }
    }
    (last, end.unwrap_or(text.len()))
}

/// Returns tests that use the fixture of the last test, if it has one, and a test without a
/// fixture.
fn google(last: &str, names: &BTreeSet<&str>) -> Vec<PlantGroup> {
    let fixture = last.strip_prefix("TEST_F(").and_then(|last| last.split_once(',')).map(|(fixture, _)| fixture.trim());
    let opening = |fixture: Option<&str>| match fixture {
        Some(fixture) => format!("TEST_F({fixture}, {{name}})"),
        None => "TEST({File}, {name})".to_owned(),
    };
    let test = |open: &str, form: String, body: String| (form, google_test(open, &body));
    let failure = |open: &str| test(open, "ADD_FAILURE".into(), "ADD_FAILURE() << \"{mark}\"".into());
    let plain = opening(None);
    let open = opening(fixture);
    let mut tests = vec![failure(&open)];
    for kind in ["EXPECT_", "ASSERT_"] {
        let own: BTreeSet<&str> = names.iter().filter_map(|name| name.strip_prefix(kind)).collect();
        let forms = used(&GOOGLE, &own).into_iter();
        tests.extend(
            forms.map(|(name, args)| {
                test(&open, format!("{kind}{name}"), format!("{kind}{name}{args} << \"{{mark}}\""))
            }),
        );
    }
    if names.contains("FAIL") {
        tests.push(test(&open, "FAIL".into(), "FAIL() << \"{mark}\"".into()));
    }
    let mut groups = vec![PlantGroup::new(fixture.unwrap_or("TEST"), tests)];
    groups.extend(fixture.map(|_| PlantGroup::new("TEST", vec![failure(&plain)])));
    groups
}

fn google_test(open: &str, body: &str) -> String {
    format!("{open} {{\n    {body};\n}}\n")
}

/// Returns tests for Catch2 and doctest. Catch2 prints a comparison as the source has it, so each
/// test prints its mark separately.
fn catch(names: &BTreeSet<&str>) -> Vec<(String, String)> {
    let test = |form: String, body: String| {
        (form, format!("TEST_CASE(\"{{name}}\") {{\n    INFO(\"{{mark}}\");\n    {body};\n}}\n"))
    };
    let mut tests = vec![test("FAIL".into(), "FAIL(\"{mark}\")".into())];
    for kind in ["REQUIRE", "CHECK"] {
        let own: BTreeSet<&str> = names.iter().filter_map(|name| name.strip_prefix(kind)).collect();
        let forms = used(&CATCH, &own).into_iter();
        tests.extend(forms.map(|(name, args)| test(format!("{kind}{name}"), format!("{kind}{name}{args}"))));
    }
    tests
}
