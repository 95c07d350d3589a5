//! Tests of the tests of the base in files of the work.

use super::*;
use crate::test_support::{drawn, step};
use std::path::{Path, PathBuf};

const BASE: &str = "/// Adds.\n///\n/// ```\n/// assert_eq!(a::add(1, 2), 3);\n/// ```\npub fn add(a: i32, b: i32) -> i32 {\n    a - b\n}\n\n\
    #[cfg(test)]\nmod tests {\n    use super::*;\n\n    #[test]\n    fn adds() {\n        assert_eq!(add(1, 2), 3);\n    }\n}\n";

fn grafts_of(base: &[(&str, &str)], work: &[(&str, &str)], opened: &str) -> Grafts {
    let before: Vec<(&str, String)> = base.iter().map(|(path, text)| (*path, (*text).to_owned())).collect();
    let is_new = |path: &str| !base.iter().any(|(own, _)| *own == path);
    let after = work.iter().map(|(path, text)| ChangedSource { path, text: (*text).to_owned(), is_new: is_new(path) });
    let finding = BTreeSet::from([String::new()]);
    let packages = CargoPackages { all: finding.clone(), finding };
    graft(&before, &after.collect::<Vec<_>>(), &packages, &BTreeSet::new(), |path| path == opened)
}

/// Returns the text of `src/a.rs` after the graft, or `None` if it does not change.
fn grafted(base: &str, work: &str) -> Option<String> {
    let files = grafts_of(&[("src/a.rs", base)], &[("src/a.rs", work)], "").files;
    files.into_iter().find(|(path, _)| path == "src/a.rs").map(|(_, text)| text)
}

#[test]
fn tests_of_the_base_take_the_place_of_changed_ones() {
    let fixed = BASE.replace("a - b", "a + b");
    for (from, to) in [
        ("assert_eq!(add(1, 2), 3);\n    }", "assert_eq!(add(1, 2), -1);\n    }"),
        ("#[test]", "#[test]\n    #[ignore]"),
        ("#[cfg(test)]", "#[cfg(all(test, any()))]"),
        ("    #[test]\n    fn adds() {\n        assert_eq!(add(1, 2), 3);\n    }\n", ""),
        ("    use super::*;\n", "    fn add(_: i32, _: i32) -> i32 { 3 }\n"),
    ] {
        let work = fixed.replace(from, to);
        assert_ne!(work, fixed, "{from}");
        assert_eq!(grafted(BASE, &work).as_ref(), Some(&fixed), "{from}");
    }
}

#[test]
fn tests_in_other_places_come_back_where_they_were() {
    for (base, work, wanted) in [
        // In an inner module, and in the block of a type.
        (
            "mod a { fn b() {} #[cfg(test)] mod tests { #[test] fn c() {} } }",
            "mod a { fn b() { d() } }",
            "mod a { fn b() { d() } \n#[cfg(test)] mod tests { #[test] fn c() {} }\n}",
        ),
        (
            "impl A { #[cfg(test)] fn b() -> u8 { 1 } } #[test] fn c() { assert_eq!(A::b(), 1) }",
            "impl A { #[cfg(test)] fn b() -> u8 { 2 } } #[test] fn c() { assert_eq!(A::b(), 1) }",
            "impl A { #[cfg(test)] fn b() -> u8 { 1 } } #[test] fn c() { assert_eq!(A::b(), 1) }",
        ),
        // Behind macros.
        (
            "macro_rules! t { ($n:ident) => { #[test] fn $n() { a(1) } } }\nt!(one);\nt!(two);\n",
            "macro_rules! t { ($n:ident) => { #[test] fn $n() {} } }\nt!(one);\n",
            "macro_rules! t { ($n:ident) => { #[test] fn $n() { a(1) } } }\nt!(one);\nt!(two);\n\n",
        ),
        (
            "quickcheck! { fn a() -> bool { b() } }\n",
            "quickcheck! { fn a() -> bool { true } }\n",
            "quickcheck! { fn a() -> bool { b() } }\n",
        ),
        // After an item whose braces do not end it.
        (
            "use a::{b};\n#[test] fn c() { d() }\n",
            "use a::{b, e};\n#[test] fn c() {}\n",
            "use a::{b, e};\n#[test] fn c() { d() }\n",
        ),
        (
            "const A: B = B { c: 1 };\n#[tokio::test] async fn c() { d() }\n",
            "const A: B = B { c: 2 };\n#[tokio::test] async fn c() {}\n",
            "const A: B = B { c: 2 };\n#[tokio::test] async fn c() { d() }\n",
        ),
    ] {
        assert_eq!(grafted(base, work).as_deref().map(str::trim_end), Some(wanted.trim_end()), "{base}");
    }
}

#[test]
fn code_that_is_new_in_builds_for_tests_is_left_out() {
    let extra = "#[cfg(test)]\nuse crate::fake::add as sum;\n";
    assert_eq!(grafted(BASE, &format!("{extra}{BASE}")).unwrap().trim_start(), BASE);
    let more = BASE.replace("    #[test]\n    fn adds", "    #[test]\n    fn more() {}\n\n    #[test]\n    fn adds");
    assert_eq!(grafted(BASE, &more), None, "new tests need no other run");
    let (with_tests, without) = ("#[cfg(test)]\nmod tests {\n    #[test]\n    fn a() {}\n}\n", "pub fn c() {}\n");
    let new = grafts_of(
        &[("src/a.rs", BASE)],
        &[("src/a.rs", &format!("{extra}{BASE}")), ("src/b.rs", &format!("{without}{with_tests}"))],
        "",
    );
    assert_eq!(new.files[1], ("src/b.rs".to_owned(), format!("{without}\n")), "what may need it goes too");
}

#[test]
fn a_test_that_moves_with_its_module_stays_where_it_is() {
    let base = [("src/lib.rs", "mod a;\n#[cfg(test)]\nmod tests { #[test] fn b() { c() } }\n"), ("src/a.rs", BASE)];
    let module = "#[cfg(test)]\nmod tests { #[test] fn b() { c() } }\n";
    let changed = BASE.replace("add(1, 2), 3", "add(1, 2), -1");
    let work = [("src/lib.rs", "mod a;\nmod d;\n"), ("src/d.rs", module), ("src/a.rs", &*changed)];
    let grafts = grafts_of(&base, &work, "");
    assert_eq!(grafts.differ, ["src/a.rs"]);
    assert_eq!(grafts.files.iter().map(|(path, _)| path.as_str()).collect::<Vec<_>>(), ["src/a.rs"]);
    assert_eq!(grafts_of(&base, &work, "src/a.rs").opened, ["src/a.rs"]);
    let gone = grafts_of(&[("src/a.rs", BASE)], &[], "");
    assert_eq!((gone.gone, gone.differ), (vec!["src/a.rs".to_owned()], Vec::new()));
}

#[test]
fn a_module_of_tests_in_another_file_stays_declared() {
    let declared = "#[cfg(test)]\nmod tests;\n";
    let base = format!("fn a() {{}}\n{declared}");
    let work = [("src/a.rs", "fn a() {}\n"), ("src/b.rs", declared)];
    let grafts = grafts_of(&[("src/a.rs", &base)], &work, "");
    assert_eq!(grafts.files[0], ("src/a.rs".to_owned(), format!("fn a() {{}}\n\n{}\n", declared.trim_end())));
    assert_eq!(grafts_of(&[("src/a.rs", &base)], &[("src/a.rs", &format!("fn b() {{}}\n{declared}"))], "").files, []);
}

#[test]
fn an_example_of_the_base_comes_back() {
    for (from, to) in [("a::add(1, 2), 3", "a::add(1, 2), -1"), ("/// ```\n/// assert", "/// ```no_run\n/// assert")] {
        let work = BASE.replace(from, to);
        let text = grafted(BASE, &work).unwrap();
        let (own, example) = text.split_once("\n\n/// ```\n").unwrap();
        assert_eq!(own.trim_end(), work.trim_end());
        assert!(example.starts_with("/// assert_eq!(a::add(1, 2), 3);\n/// ```\n#[cfg(doctest)]"), "{example}");
    }
}

#[test]
fn new_conditions_on_tests_in_product_code_are_found() {
    let of = |work: &str| grafts_of(&[("src/a.rs", "fn a() {}\n")], &[("src/a.rs", work)], "").switches;
    for (work, wanted) in [
        ("#[cfg(not(test))]\nfn a() {}\n", "cfg(not(test))"),
        ("fn a() { if cfg!(test) { b() } }\n", "test"),
        ("fn a() { #[cfg(test)] return 3; 4 }\n", "cfg(test)"),
        ("#[cfg_attr(test, derive(Debug))]\nstruct A;\n", "cfg_attr(test, derive(Debug))"),
        ("struct A { #[cfg(test)] b: u8 }\n", "cfg(test)"),
        ("mod b { #![cfg(any(unix, not(test)))] fn a() {} }\n", "cfg(any(unix, not(test)))"),
        ("fn a() { match b { #[cfg(doctest)] c => 1 } }\n", "cfg(doctest)"),
    ] {
        assert_eq!(of(work), [("src/a.rs".to_owned(), wanted.to_owned())], "{work}");
    }
    for work in [
        "#[cfg(unix)]\nfn a() {}\n",
        "fn a() { \"cfg!(test)\"; } // cfg!(test)\n",
        "#[cfg(feature = \"test\")]\nfn a() {}\n",
    ] {
        assert_eq!(of(work), [], "{work}");
    }
    let had = "#[cfg(not(test))]\nfn a() {}\n";
    let moved = grafts_of(&[("src/a.rs", had)], &[("src/a.rs", ""), ("src/b.rs", had)], "");
    assert_eq!(moved.switches, [], "a condition that moved");
}

/// Returns files of public crates: one in sixteen of those in the lock file that Cargo downloaded
/// to build this program. Empty if Cargo keeps its downloads elsewhere.
fn public_files() -> Vec<PathBuf> {
    let own = option_env!("CARGO_HOME").map(PathBuf::from);
    let home = own.or_else(|| Some(Path::new(option_env!("HOME")?).join(".cargo"))).unwrap_or_default();
    let crates: BTreeSet<String> = include_str!("../../../../Cargo.lock")
        .split("[[package]]")
        .filter_map(|package| {
            let value = |key: &str| Some(package.split_once(key)?.1.split('"').next()?.to_owned());
            Some(format!("{}-{}", value("name = \"")?, value("version = \"")?))
        })
        .collect();
    let source = home.join("registry/src");
    let is_of_crate = |file: &walkdir::DirEntry| {
        let below = file.path().strip_prefix(&source).ok().and_then(|below| below.components().nth(1));
        below.is_some_and(|name| crates.contains(name.as_os_str().to_string_lossy().as_ref()))
    };
    let files = walkdir::WalkDir::new(&source).sort_by_file_name().into_iter().flatten().filter(is_of_crate);
    let sources = files.filter(|file| file.path().extension().is_some_and(|end| end == "rs"));
    let small = sources.filter(|file| file.metadata().is_ok_and(|data| data.len() < 100_000));
    drawn(small.map(walkdir::DirEntry::into_path).step_by(16)).collect()
}

#[test]
fn unchanged_tests_of_public_files_change_nothing() {
    let files = public_files();
    let texts = files.iter().filter_map(|file| std::fs::read_to_string(file).ok());
    let mut parts = 0;
    for text in texts {
        let outline = Outline::parse(&text);
        assert_eq!(rewritten((&text, &outline), (&text, &outline), &BTreeSet::new()), text);
        // Cut all tests out, and put them back.
        let nothing = Outline::default();
        let without = rewritten(("", &nothing), (&text, &outline), &BTreeSet::new());
        let product = Outline::parse(&without);
        assert!(product.parts.is_empty() && product.switches == outline.switches, "{without}");
        let again = Outline::parse(&rewritten((&text, &outline), (&without, &product), &BTreeSet::new()));
        let words = |outline: &Outline| {
            outline.parts.iter().map(|part| (part.around.clone(), part.words.clone())).collect::<BTreeSet<_>>()
        };
        assert_eq!(words(&again), words(&outline), "{without}");
        parts += outline.parts.len();
    }
    println!("{} files with {parts} parts for tests", files.len());
    assert!(files.is_empty() || parts * step() > 100, "{parts} parts for tests in {} files", files.len());
}

/// Returns the text of one file of the work after the graft, or `None` if it does not change.
fn grafted_at(path: &str, base: &str, work: &str) -> Option<String> {
    let grafts = grafts_of(&[(path, base)], &[(path, work)], "");
    assert_eq!(grafts.files.is_empty(), grafts.differ.is_empty());
    grafts.files.into_iter().next().map(|(_, text)| text)
}

const MODULE: &str = r#"import unittest


def add(a, b):
    """Add.

    >>> add(1, 2)
    3
    """
    return a - b


class AddTest(unittest.TestCase):
    # Of small numbers.
    def test_add(self):
        self.assertEqual(add(1, 2), 3)


if __name__ == "__main__":
    unittest.main()
"#;

#[test]
fn tests_in_a_python_module_come_back() {
    let fixed = MODULE.replace("a - b", "a + b");
    assert_eq!(grafted_at("a.py", MODULE, &fixed), None);
    for (from, to) in [
        ("self.assertEqual(add(1, 2), 3)", "self.assertEqual(add(1, 2), -1)"),
        ("    def test_add", "    @unittest.skip('')\n    def test_add"),
        ("    unittest.main()\n", "    print('OK')\n    # unittest\n"),
    ] {
        let work = fixed.replace(from, to);
        assert_ne!(work, fixed, "{from}");
        assert_eq!(grafted_at("a.py", MODULE, &work).as_ref(), Some(&fixed), "{from}");
    }
    let without = fixed.split("class AddTest").next().unwrap();
    let main = "if __name__ == \"__main__\":\n    unittest.main()\n";
    let text = grafted_at("a.py", MODULE, &format!("{without}{main}")).unwrap();
    assert!(text.find("class AddTest").unwrap() < text.find("__main__").unwrap(), "{text}");
    for wanted in ["3", "-1"] {
        let work = MODULE.replace("    3\n", &format!("    {wanted}\n"));
        let text = grafted_at("a.py", MODULE, &work);
        assert_eq!(text.is_some(), wanted != "3");
        let added = "def _doctest_of_the_base_0():\n    \"\"\"Add.\n\n    >>> add(1, 2)\n    3\n    \"\"\"\n";
        assert!(text.is_none_or(|text| text == format!("{work}\n\n{added}")));
    }
    let more = MODULE.replace("\n\nif __name__", "\n    def test_zero(self):\n        pass\n\n\nif __name__");
    let grafts = grafts_of(&[("a.py", MODULE)], &[("a.py", &more)], "");
    assert_eq!((grafts.differ.len(), grafts.lacking.len()), (1, 0), "a new test only adds");
}

#[test]
fn what_only_looks_like_a_test_in_a_python_module_is_the_product() {
    for (base, work) in [
        ("TEXT = '''\nclass A(unittest.TestCase):\n    pass\n'''\n", "TEXT = ''\n"),
        ("def attest():\n    pass\n", "def attest():\n    return 1\n"),
        ("if __name__ == '__main__':\n    main(1)\n", "if __name__ == '__main__':\n    main(2)\n"),
        ("class Testimony:\n    pass\n", "class Testimony:\n    a = 1\n"),
        ("x = (\n'''>>> a\n1''')\n", "x = 1\n"),
        ("def f():\n    return \"it's\" # def test_a():\n", "def f():\n    return 2\n"),
    ] {
        assert_eq!(grafted_at("a.py", base, work), None, "{base}");
    }
}

#[test]
fn tests_in_a_module_for_vitest_come_back() {
    let base = "export const add = (a, b) => a - b;\n\nif (import.meta.vitest) {\n  const { expect, it } = import.meta.vitest;\n  it(\"adds\", () => {\n    expect(add(1, 2)).toBe(3);\n  });\n}\n";
    let fixed = base.replace("a - b", "a + b");
    assert_eq!(grafted_at("src/a.ts", base, &fixed), None);
    for (from, to) in [("toBe(3)", "toBe(-1)"), ("it(\"adds\"", "it.skip(\"adds\"")] {
        assert_eq!(grafted_at("src/a.ts", base, &fixed.replace(from, to)), Some(fixed.clone()), "{from}");
    }
    let gone = grafted_at("src/a.ts", base, fixed.split("\nif (").next().unwrap()).unwrap();
    assert_eq!(gone.matches("toBe(3)").count(), 1, "{gone}");
}

#[test]
fn code_that_asks_whether_tests_run_is_found_in_other_languages() {
    for (path, base, work, wanted) in [
        ("a.py", "", "import os\nif os.environ.get(\"PYTEST_CURRENT_TEST\"):\n    a = 1\n", "PYTEST_CURRENT_TEST"),
        ("a.py", "", "import sys\na = 'pytest' in sys.modules\n", "'pytest' in sys.modules"),
        ("a.js", "", "const a = process.env.JEST_WORKER_ID ? 1 : 2;\n", "JEST_WORKER_ID"),
        ("a.ts", "", "export const a = import.meta.vitest ? 1 : 2;\n", "import.meta.vitest"),
        ("a.go", "", "package a\n\nvar a = testing.Testing()\n", "testing.Testing()"),
        ("a.py", "", "# PYTEST_CURRENT_TEST\n", ""),
        ("a.js", "", "// JEST_WORKER_ID\nconst a = 1; // NODE_TEST_CONTEXT\n", ""),
        ("a.go", "var a = testing.Testing()\n", "// A.\nvar a = testing.Testing()\n", ""),
    ] {
        let found = grafts_of(&[(path, base)], &[(path, work)], "").switches;
        let found: Vec<&str> = found.iter().map(|(_, switch)| switch.as_str()).collect();
        assert_eq!(found, [wanted].into_iter().filter(|wanted| !wanted.is_empty()).collect::<Vec<_>>(), "{work}");
    }
}
