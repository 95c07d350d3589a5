//! Planted tests for JUnit and TestNG. They are added to each test class of the base, with its base
//! class, rules and extensions, and to a new class.

use super::{PlainFailure, PlantDraft, PlantGroup, tokens, used};
use std::collections::BTreeSet;

/// Assertions of JUnit and TestNG, each with arguments that fail.
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
/// Assertions of AssertJ, each called on a value for which it fails.
#[rustfmt::skip]
const ASSERTJ: [(&str, &str); 11] = [
    ("isEqualTo", "(\"{mark}\").isEqualTo(\"\")"), ("isNotEqualTo", "(\"{mark}\").isNotEqualTo(\"{mark}\")"),
    ("isTrue", "(\"{mark}\".isEmpty()).isTrue()"), ("isFalse", "(!\"{mark}\".isEmpty()).isFalse()"),
    ("isNull", "(\"{mark}\").isNull()"), ("isNotNull", "((Object) null).isNotNull()"),
    ("isEmpty", "(\"{mark}\").isEmpty()"), ("isNotEmpty", "(\"\").isNotEmpty()"),
    ("contains", "(\"\").contains(\"{mark}\")"), ("hasSize", "(\"{mark}\").hasSize(0)"),
    ("isInstanceOf", "(\"{mark}\").isInstanceOf(Integer.class)"),
];

/// The test frameworks of Java. Each has a word that identifies its files, a test's annotation, the
/// class with the assertions, the base class, and the prefix of test names.
const FRAMEWORKS: [Framework; 4] = [
    Framework::of("org.junit.jupiter", "@org.junit.jupiter.api.Test", "org.junit.jupiter.api.Assertions."),
    Framework::of("org.testng", "@org.testng.annotations.Test", "org.testng.Assert."),
    Framework { base: " extends junit.framework.TestCase", test: "test", ..Framework::of("junit.framework", "", "") },
    Framework::of("org.junit", "@org.junit.Test", "org.junit.Assert."),
];

struct Framework {
    word: &'static str,
    annotation: &'static str,
    class: &'static str,
    base: &'static str,
    test: &'static str,
}

impl Framework {
    const fn of(word: &'static str, annotation: &'static str, class: &'static str) -> Self {
        Self { word, annotation, class, base: "", test: "" }
    }

    fn find(text: &str) -> Option<&'static Self> {
        FRAMEWORKS.iter().find(|it| text.contains(it.word))
    }

    /// Returns a test with this body.
    fn test(&self, body: &str) -> String {
        let Self { annotation, test, .. } = self;
        format!("    {annotation}\n    public void {test}{{name}}() throws Exception {{\n        {body};\n    }}\n")
    }
}

/// The body of a test that fails without an assertion.
const THROW: &str = "throw new RuntimeException(\"{mark}\")";

/// Returns a new test class in the package and framework of the base's tests, with a test for each
/// form of assertion that they use.
pub(in crate::gate::canary) fn junit(folder: &str, likes: &[(&str, &str)]) -> PlantDraft {
    let all: Vec<&str> = likes.iter().map(|(_, text)| *text).collect();
    let all = all.join("\n");
    let package = all.lines().find(|line| line.starts_with("package ")).unwrap_or_default();
    let framework = Framework::find(&all).unwrap_or(&FRAMEWORKS[FRAMEWORKS.len() - 1]);
    let (class, base) = (framework.class, framework.base);
    let names = tokens(&all).into_iter().filter_map(|name| name.rsplit('.').next()).collect();
    let mut forms: Vec<(String, String)> = used(&ASSERTIONS, &names)
        .into_iter()
        .map(|(name, args)| (name.into(), format!("{class}{name}{args}")))
        .collect();
    if forms.is_empty() {
        forms.push((ASSERTIONS[0].0.into(), format!("{class}{}{}", ASSERTIONS[0].0, ASSERTIONS[0].1)));
    }
    forms.extend(of_libraries(&all, &names));
    let tests = forms.into_iter().map(|(form, body)| (form, framework.test(&body))).collect();
    let open = format!("public class {{File}}Test{base} {{\n");
    PlantDraft {
        like: likes.first().map_or(folder, |(path, _)| path).into(),
        path: format!("{folder}{{File}}Test.java"),
        head: package.into(),
        plain: PlainFailure::within(package, "throw", framework.test(THROW), &open, "}\n"),
        groups: vec![PlantGroup { open, close: "}\n", ..PlantGroup::new("class", tests) }],
        ..PlantDraft::default()
    }
}

/// Returns the forms of AssertJ and Hamcrest assertions that a text uses.
fn of_libraries(text: &str, names: &BTreeSet<&str>) -> Vec<(String, String)> {
    let mut forms = Vec::new();
    if text.contains("org.assertj.core.api") {
        let that = "org.assertj.core.api.Assertions.assertThat";
        forms.extend(used(&ASSERTJ, names).into_iter().map(|(name, body)| (name.into(), format!("{that}{body}"))));
    }
    if text.contains("org.hamcrest") {
        let body = "org.hamcrest.MatcherAssert.assertThat(\"{mark}\", org.hamcrest.CoreMatchers.is(\"\"))";
        forms.push(("assertThat".into(), body.into()));
    }
    forms
}

/// Returns a test class of the base with tests added after its own. They show how its base class,
/// rules, extensions and assertions treat a failure. `None` if the file has no class that can have
/// tests.
pub(in crate::gate::canary) fn in_class(path: &str, text: &str) -> Option<PlantDraft> {
    let framework = Framework::find(text)?;
    let name = path.rsplit('/').next()?.strip_suffix(".java")?;
    let (head, tail) = text.split_at(class_end(text, name)?);
    let mut forms = vec![("throw".to_owned(), THROW.to_owned())];
    let calls = tokens(text);
    forms.extend(ASSERTIONS.iter().filter_map(|(name, args)| {
        let call = calls.iter().find(|call| is_assertion(call, name) && !declares(text, name))?;
        Some(((*name).to_owned(), format!("{call}{args}")))
    }));
    let names = calls.iter().filter_map(|name| name.rsplit('.').next()).collect();
    forms.extend(of_libraries(text, &names));
    let tests = forms.into_iter().map(|(form, body)| (form, framework.test(&body))).collect();
    let groups = vec![PlantGroup::new("its class", tests)];
    Some(PlantDraft {
        like: path.into(),
        path: path.into(),
        head: head.into(),
        groups,
        tail: tail.into(),
        ..PlantDraft::default()
    })
}

/// Returns whether `call` is an assertion's name alone, or after the class `Assert` or
/// `Assertions`.
fn is_assertion(call: &str, name: &str) -> bool {
    let class = call.strip_suffix(name).and_then(|rest| rest.strip_suffix('.'));
    call == name
        || class.is_some_and(|class| ["Assert", "Assertions"].contains(&class.rsplit('.').next().unwrap_or(class)))
}

/// Returns whether a source declares a `void` method of this name, whose parameters are unknown.
fn declares(text: &str, name: &str) -> bool {
    text.lines().any(|line| {
        let before = line.split_once(name).filter(|(_, rest)| rest.starts_with('(')).map(|(before, _)| before);
        before.is_some_and(|before| before.trim_end().ends_with("void"))
    })
}

/// Returns the position of the last bracket of the class of this name; `None` if the class is
/// missing or abstract.
fn class_end(text: &str, name: &str) -> Option<usize> {
    let (mut depth, mut is_ours, mut declared) = (0_usize, false, String::new());
    for (at, letter) in code(text) {
        match letter {
            '{' if depth == 0 => {
                is_ours = is_class(&declared, name);
                depth = 1;
            }
            '{' | '(' | '[' => depth += 1,
            '}' | ')' | ']' => {
                depth = depth.checked_sub(1)?;
                if depth == 0 && letter == '}' {
                    if is_ours {
                        return Some(at);
                    }
                    declared.clear();
                }
            }
            ';' if depth == 0 => declared.clear(),
            _ if depth == 0 => declared.push(letter),
            _ => {}
        }
    }
    None
}

fn is_class(declared: &str, name: &str) -> bool {
    let words: Vec<&str> = declared.split(|c: char| !(c.is_alphanumeric() || "_$@".contains(c))).collect();
    let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
    let at = words.windows(2).position(|pair| pair == ["class", name]);
    at.is_some_and(|at| !words[..at].contains(&"abstract"))
}

/// Returns the characters of Java code with their positions, without comments and literals.
fn code(text: &str) -> impl Iterator<Item = (usize, char)> {
    let mut rest = text;
    std::iter::from_fn(move || {
        loop {
            let at = text.len() - rest.len();
            let skipped = ["//", "/*", "\"\"\"", "\"", "'"].into_iter().find(|begin| rest.starts_with(begin));
            let Some(begin) = skipped else {
                let letter = rest.chars().next()?;
                rest = &rest[letter.len_utf8()..];
                return Some((at, letter));
            };
            let end = match begin {
                "//" => "\n",
                "/*" => "*/",
                text => text,
            };
            rest = behind(&rest[begin.len()..], end, begin.starts_with(['"', '\'']));
        }
    })
}

/// Returns the text after the first `end`. In a literal (`is_text`), a backslash escapes the next
/// character.
fn behind<'t>(text: &'t str, end: &str, is_text: bool) -> &'t str {
    let mut rest = text;
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix(end) {
            return after;
        }
        let mut letters = rest.chars();
        if letters.next() == Some('\\') && is_text {
            letters.next();
        }
        rest = letters.as_str();
    }
    rest
}
