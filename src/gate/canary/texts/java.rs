//! Planted tests for JUnit and TestNG.

use super::{Draft, Group, Plain, tokens, used};

/// The assertions of JUnit and TestNG, each with a use that fails.
#[rustfmt::skip]
const ASSERTIONS: [(&str, &str); 13] = [
    ("assertEquals", "(\"{mark}\", \"\")"), ("assertNotEquals", "(\"{mark}\", \"{mark}\")"),
    ("assertTrue", "(\"{mark}\".isEmpty())"), ("assertFalse", "(!\"{mark}\".isEmpty())"),
    ("assertNull", "(\"{mark}\")"), ("assertNotNull", "((Object) null)"),
    ("assertSame", "(\"{mark}\", \"\")"), ("assertNotSame", "(\"{mark}\", \"{mark}\")"),
    ("assertArrayEquals", "(new int[] {1}, new int[] {2})"), ("fail", "(\"{mark}\")"),
    ("assertThrows", "(RuntimeException.class, () -> {})"),
    ("assertDoesNotThrow", "((org.junit.jupiter.api.function.Executable) () -> { throw new RuntimeException(\"{mark}\"); })"),
    ("assertIterableEquals", "(java.util.Collections.singletonList(\"{mark}\"), java.util.Collections.emptyList())"),
];
/// AssertJ's assertions, each behind a value for which it fails.
#[rustfmt::skip]
const ASSERTJ: [(&str, &str); 11] = [
    ("isEqualTo", "(\"{mark}\").isEqualTo(\"\")"), ("isNotEqualTo", "(\"{mark}\").isNotEqualTo(\"{mark}\")"),
    ("isTrue", "(\"{mark}\".isEmpty()).isTrue()"), ("isFalse", "(!\"{mark}\".isEmpty()).isFalse()"),
    ("isNull", "(\"{mark}\").isNull()"), ("isNotNull", "((Object) null).isNotNull()"),
    ("isEmpty", "(\"{mark}\").isEmpty()"), ("isNotEmpty", "(\"\").isNotEmpty()"),
    ("contains", "(\"\").contains(\"{mark}\")"), ("hasSize", "(\"{mark}\").hasSize(0)"),
    ("isInstanceOf", "(\"{mark}\").isInstanceOf(Integer.class)"),
];

/// A test class in the package of the base's tests, for the same version of JUnit or for TestNG, with
/// a test for each form of assertion that they use.
pub(in crate::gate::canary) fn junit(folder: &str, likes: &[(&str, &str)]) -> Draft {
    let all: Vec<&str> = likes.iter().map(|(_, text)| *text).collect();
    let all = all.join("\n");
    let package = all.lines().find(|line| line.starts_with("package ")).unwrap_or_default();
    let (annotation, class) = if all.contains("org.junit.jupiter") {
        ("@org.junit.jupiter.api.Test", "org.junit.jupiter.api.Assertions.")
    } else if all.contains("org.testng") {
        ("@org.testng.annotations.Test", "org.testng.Assert.")
    } else if all.contains("junit.framework") {
        ("", "")
    } else {
        ("@org.junit.Test", "org.junit.Assert.")
    };
    let (base, name) = if annotation.is_empty() { (" extends junit.framework.TestCase", "test") } else { ("", "") };
    let names = tokens(&all).into_iter().filter_map(|name| name.rsplit('.').next()).collect();
    let mut forms: Vec<(String, String)> = used(&ASSERTIONS, &names)
        .into_iter()
        .map(|(name, args)| (name.into(), format!("{class}{name}{args}")))
        .collect();
    if forms.is_empty() {
        forms.push((ASSERTIONS[0].0.into(), format!("{class}{}{}", ASSERTIONS[0].0, ASSERTIONS[0].1)));
    }
    if all.contains("org.assertj.core.api") {
        let that = "org.assertj.core.api.Assertions.assertThat";
        forms.extend(used(&ASSERTJ, &names).into_iter().map(|(name, body)| (name.into(), format!("{that}{body}"))));
    }
    if all.contains("org.hamcrest") {
        let body = "org.hamcrest.MatcherAssert.assertThat(\"{mark}\", org.hamcrest.CoreMatchers.is(\"\"))";
        forms.push(("assertThat".into(), body.into()));
    }
    let text = |body: &str| {
        format!("    {annotation}\n    public void {name}{{name}}() throws Exception {{\n        {body};\n    }}\n")
    };
    let tests = forms.into_iter().map(|(form, body)| (form, text(&body))).collect();
    let throw = text("throw new RuntimeException(\"{mark}\")");
    let open = format!("public class {{File}}Test{base} {{\n");
    Draft {
        like: likes.first().map_or(folder, |(path, _)| path).into(),
        path: format!("{folder}{{File}}Test.java"),
        head: package.into(),
        plain: Plain::within(package, "throw", throw, &open, "}\n"),
        groups: vec![Group { open, close: "}\n", ..Group::new("class", tests) }],
        ..Draft::default()
    }
}
