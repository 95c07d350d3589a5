//! Planted tests for pytest and unittest.

use super::{MOST_FORMS, PlainFailure, PlantDraft, PlantGroup, tokens, until, used};
use std::collections::{BTreeMap, BTreeSet};

/// Assertions of `unittest.TestCase`, each with arguments that fail.
#[rustfmt::skip]
const METHODS: [(&str, &str); 32] = [
    ("assertEqual", "(\"{mark}\", \"\")"), ("assertNotEqual", "(\"{mark}\", \"{mark}\")"),
    ("assertTrue", "(\"\", \"{mark}\")"), ("assertFalse", "(\"{mark}\")"),
    ("assertIs", "(\"{mark}\", None)"), ("assertIsNot", "(None, None, \"{mark}\")"),
    ("assertIsNone", "(\"{mark}\")"), ("assertIsNotNone", "(None, \"{mark}\")"),
    ("assertIn", "(\"{mark}\", [])"), ("assertNotIn", "(\"{mark}\", [\"{mark}\"])"),
    ("assertIsInstance", "(\"{mark}\", int)"), ("assertNotIsInstance", "(\"{mark}\", str)"),
    ("assertAlmostEqual", "(1, 2, msg=\"{mark}\")"), ("assertNotAlmostEqual", "(1, 1, msg=\"{mark}\")"),
    ("assertGreater", "(1, 2, \"{mark}\")"), ("assertGreaterEqual", "(1, 2, \"{mark}\")"),
    ("assertLess", "(2, 1, \"{mark}\")"), ("assertLessEqual", "(2, 1, \"{mark}\")"),
    ("assertRegex", "(\"{mark}\", \"^$\")"), ("assertNotRegex", "(\"{mark}\", \"{mark}\")"),
    ("assertCountEqual", "([\"{mark}\"], [])"), ("assertSequenceEqual", "([\"{mark}\"], [])"),
    ("assertListEqual", "([\"{mark}\"], [])"), ("assertTupleEqual", "((\"{mark}\",), ())"),
    ("assertSetEqual", "({\"{mark}\"}, set())"), ("assertDictEqual", "({\"{mark}\": 1}, {})"),
    ("assertMultiLineEqual", "(\"{mark}\", \"\")"), ("fail", "(\"{mark}\")"),
    ("assertRaises", "(ValueError, msg=\"{mark}\"): pass"), ("assertRaisesRegex", "(ValueError, \"{mark}\"): pass"),
    ("assertWarns", "(UserWarning, msg=\"{mark}\"): pass"), ("assertLogs", "(\"{mark}\"): pass"),
];
/// Functions that tests call by an imported name, each with arguments that fail.
#[rustfmt::skip]
const FUNCTIONS: [(&str, &str); 12] = [
    ("raises", "(ValueError, match=\"{mark}\"): pass"), ("warns", "(UserWarning, match=\"{mark}\"): pass"),
    ("fail", "(\"{mark}\")"), ("approx", "(2.0) == 1.0, \"{mark}\""),
    ("assert_equal", "(1, 2, \"{mark}\")"), ("assert_array_equal", "([1], [2], \"{mark}\")"),
    ("assert_allclose", "(1, 2, err_msg=\"{mark}\")"), ("assert_almost_equal", "(1, 2, err_msg=\"{mark}\")"),
    ("assert_approx_equal", "(1, 2, err_msg=\"{mark}\")"), ("assert_array_less", "([2], [1], \"{mark}\")"),
    ("assert_array_almost_equal", "([1], [2], err_msg=\"{mark}\")"), ("assert_raises", "(ValueError): pass"),
];
/// The modules of [`FUNCTIONS`].
const MODULES: [&str; 2] = ["pytest", "numpy"];
const PLAIN: &str = "unittest.TestCase";

/// Returns test functions, and test methods in classes with the base classes of the base's tests.
/// Each form is planted only for the first file that uses it, because one process runs the tests of
/// a folder.
pub(in crate::gate::canary) fn pytest(folder: &str, likes: &[(&str, &str)]) -> Vec<PlantDraft> {
    let plain = || vec![("assert".to_owned(), function("assert \"{mark}\" == \"\""))];
    let path = format!("{folder}test_{{file}}.py");
    let mut seen = BTreeSet::new();
    let alone = PlainFailure::new("", "assert", function("assert \"{mark}\" == \"\""));
    let bare = PlantDraft { like: folder.into(), path: path.clone(), plain: alone, ..PlantDraft::default() };
    let mut drafts = vec![PlantDraft { groups: vec![PlantGroup::new("function", plain())], ..bare }];
    for (at, (like, text)) in likes.iter().enumerate() {
        let head = head(text);
        let mut tests = if at == 0 && !head.trim().is_empty() { plain() } else { Vec::new() };
        tests.extend(calls(&head, text).into_iter().filter(|(form, _)| seen.insert(form.clone())));
        let mut groups = Vec::from([PlantGroup::new("function", tests)]);
        let (mut imports, names) = ("", tokens(text));
        for base in base_classes(&head, text) {
            let is_new = |name: &str| seen.insert(format!("{base}.{name}"));
            let tests = methods(&names, is_new);
            if base == PLAIN {
                imports = "\nimport unittest";
            }
            let open = format!("class {{File}}{}Test({base}):\n", groups.len());
            groups.push(PlantGroup { open, ..PlantGroup::new(format!("method of {base}"), tests) });
        }
        groups.retain(|group| !group.tests.is_empty());
        if !groups.is_empty() {
            let head = format!("{head}{imports}");
            drafts.push(PlantDraft { like: (*like).into(), path: path.clone(), head, groups, ..PlantDraft::default() });
        }
    }
    drafts
}

fn function(body: &str) -> String {
    format!("def test_{{name}}():\n    {body}\n")
}

fn methods(names: &BTreeSet<&str>, mut is_new: impl FnMut(&str) -> bool) -> Vec<(String, String)> {
    let names: BTreeSet<&str> = names.iter().filter_map(|name| name.strip_prefix("self.")).collect();
    let mut forms = used(&METHODS, &names);
    if forms.is_empty() {
        forms.push(METHODS[0]);
    }
    forms.retain(|(name, _)| is_new(name));
    let with = |args: &str| if args.ends_with(": pass") { "with " } else { "" };
    let test = |(name, args): (&str, &str)| {
        let text = format!("    def test_{{name}}(self):\n        {}self.{name}{args}\n", with(args));
        (name.to_owned(), text)
    };
    forms.into_iter().map(test).collect()
}

/// Returns tests for the functions of [`MODULES`] that a file calls by names from its head.
fn calls(head: &str, text: &str) -> Vec<(String, String)> {
    let imported = tokens(head);
    if !MODULES.iter().any(|module| imported.iter().any(|name| name.split('.').next() == Some(module))) {
        return Vec::new();
    }
    let is_bound =
        |name: &str| name != "self" && imported.iter().any(|token| token.split('.').any(|part| part == name));
    let mut calls = Vec::new();
    for token in tokens(text) {
        let (root, name) = (token.split('.').next().unwrap_or(token), token.rsplit('.').next().unwrap_or(token));
        let Some((_, args)) = FUNCTIONS.iter().find(|(known, _)| *known == name).filter(|_| is_bound(root)) else {
            continue;
        };
        let before = match *args {
            args if args.ends_with(": pass") => "with ",
            args if args.contains("==") => "assert ",
            _ => "",
        };
        calls.push((token.to_owned(), function(&format!("{before}{token}{args}"))));
    }
    calls.truncate(MOST_FORMS);
    calls
}

/// Returns the lines of a file before its first definition, mainly imports. If they end inside a
/// multi-line string, the head ends before that string.
fn head(text: &str) -> String {
    const ENDS: [&str; 5] = ["def ", "async def ", "class ", "@", "if __name__"];
    let mut head = until(text, &ENDS);
    for quotes in ["\"\"\"", "'''"] {
        if head.matches(quotes).count() % 2 == 1 {
            let open = head.rfind(quotes).unwrap_or(0);
            head.truncate(head[..open].rfind('\n').unwrap_or(0));
        }
    }
    head
}

/// Returns the base classes of a file's test classes that other files define. For a base class of a
/// project, `unittest.TestCase` is added, because the class may lack some of its assertions.
fn base_classes(head: &str, text: &str) -> Vec<String> {
    let classes: BTreeMap<&str, Vec<&str>> =
        text.split("\nclass ").skip(usize::from(!text.starts_with("class "))).filter_map(class).collect();
    let is_known = |base: &&str| {
        tokens(head).iter().any(|token| {
            token.split('.').next_back() == base.split('.').next() || token.split('.').next() == base.split('.').next()
        })
    };
    let asserts = tokens(text).iter().any(|name| name.starts_with("self.assert") || *name == "self.fail");
    let mut found = Vec::new();
    for name in classes.keys() {
        let mut bases = Vec::new();
        outer_bases(name, &classes, &mut bases, 0);
        if !bases.iter().any(|base| base.contains("TestCase")) && (!asserts || bases.is_empty()) {
            continue;
        }
        let is_plain = bases.iter().any(|base| !is_known(base));
        let base = if is_plain { PLAIN.to_owned() } else { bases.join(", ") };
        if !is_plain && !matches!(base.as_str(), PLAIN | "TestCase") {
            found.push(PLAIN.to_owned());
        }
        found.push(base);
    }
    found.sort();
    found.dedup();
    found.truncate(4);
    found
}

/// Parses the name and the bases of a class from the text after `class`.
fn class(text: &str) -> Option<(&str, Vec<&str>)> {
    let text = text.strip_prefix("class ").unwrap_or(text);
    let (name, rest) = text.split_once(['(', ':'])?;
    let bases = if text[name.len()..].starts_with('(') { rest.split_once(')')?.0 } else { "" };
    let bases =
        bases.split(',').map(str::trim).filter(|base| !base.is_empty() && *base != "object" && !base.contains('='));
    Some((name.trim(), bases.collect()))
}

fn outer_bases<'t>(name: &str, classes: &BTreeMap<&str, Vec<&'t str>>, found: &mut Vec<&'t str>, depth: usize) {
    for base in classes.get(name).into_iter().flatten().filter(|_| depth < 8) {
        if classes.contains_key(base) {
            outer_bases(base, classes, found, depth + 1);
        } else if !found.contains(base) {
            found.push(base);
        }
    }
}
