//! Tests of which changes to tests inside of product files are reported.

use super::*;

const BASE: &str = "/// Adds.\n///\n/// ```\n/// assert_eq!(a::add(1, 2), 3);\n/// ```\npub fn add(a: i32, b: i32) -> i32 {\n    a - b\n}\n\n\
    #[cfg(test)]\nmod tests {\n    use super::*;\n\n    fn three() -> i32 { 3 }\n\n    #[test]\n    fn adds() {\n        assert_eq!(add(1, 2), three());\n    }\n}\n";

fn is_told(after: &[&str]) -> bool {
    let source = |(number, text): (usize, &&str)| ChangedSource {
        path: if number == 0 { "src/a.rs" } else { "src/a/tests.rs" },
        text: (*text).to_owned(),
        is_new: number > 0,
    };
    let after: Vec<ChangedSource<'_>> = after.iter().enumerate().map(source).collect();
    changed(&[("src/a.rs", BASE.to_owned())], &after, &CargoPackages::default()).contains_key("src/a.rs")
}

#[test]
fn what_leaves_the_tests_as_they_were_is_not_told() {
    let more =
        "    #[test]\n    fn adds_more() {\n        assert_eq!(add(2, 2), 4);\n    }\n\n    #[test]\n    fn adds()";
    let product = BASE.split("mod tests {").next().unwrap();
    let apart = format!("{product}mod tests;\n").replace("a - b", "a + b");
    let moved = "use super::*;\nfn three() -> i32 { 3 }\n#[test]\nfn adds() { assert_eq!(add(1, 2), three()); }\n";
    for after in [
        vec![BASE],
        vec![&*BASE.replace("a - b", "a + b")],
        vec![&*BASE.replace("    #[test]\n    fn adds()", more)],
        vec![&*BASE.replace("\n        assert_eq!", " // what it is for\n  assert_eq!  ")],
        vec![&*BASE.replace("/// Adds.", "/// Adds two numbers.\n///\n/// ```text\n/// 1 + 2\n/// ```")],
        vec![&*apart, moved],
    ] {
        assert!(!is_told(&after), "{after:#?}");
    }
    assert!(
        changed(
            &[("src/b.rs", "fn a() {}\nfn not(".into()), ("src/c.rs", "fn c() {}".into())],
            &[],
            &CargoPackages::default()
        )
        .is_empty()
    );
}

#[test]
fn a_test_that_is_kept_where_it_is_not_built_is_another_one() {
    let weaker = BASE.replace("assert_eq!(add(1, 2), three());", "");
    let kept = BASE.replace("#[cfg(test)]\nmod tests {", "mod tests {");
    for (declared, path, is_built) in [
        ("", "src/old.rs", false),
        ("mod other;\n", "src/old.rs", false),
        ("#[cfg(any())]\nmod old;\n", "src/old.rs", false),
        ("#[cfg_attr(all(), cfg(any()))]\nmod old;\n", "src/old.rs", false),
        ("// mod old;\n", "src/old.rs", false),
        ("mod old;\n", "src/deep/old.rs", false),
        ("", "examples/old.rs", false),
        ("", "src/tests/old.rs", false),
        ("", "src/a/bin/old.rs", false),
        ("", "tests/deep/old.rs", false),
        ("", "doc/tests/old.rs", false),
        ("", "crates/b/src/tests/old.rs", false),
        ("", "crates/b/tests/old.rs", false),
        ("", "tests/deep/main.rs", true),
        ("", "src/bin/old.rs", true),
        ("mod tests { mod old; }\n", "src/tests/old.rs", false),
        ("pub mod old;\n", "src/old.rs", true),
        ("#[cfg(test)]\nmod old;\n", "src/old/mod.rs", true),
        ("#[path = \"kept/old.rs\"]\nmod old;\n", "src/kept/old.rs", true),
        ("mod old;\n", "src/a/old.rs", true),
        ("", "tests/old.rs", true),
    ] {
        let source = |path, text, is_new| ChangedSource { path, text, is_new };
        for old in [BASE, &kept] {
            let after = [source("src/a.rs", format!("{declared}{weaker}"), false), source(path, old.to_owned(), true)];
            let finding = BTreeSet::from([String::new(), "crates/b".into()]);
            let packages = CargoPackages { all: finding.clone(), finding };
            let reported = changed(&[("src/a.rs", BASE.to_owned())], &after, &packages);
            assert_eq!(reported.is_empty(), is_built, "{declared}: {path}");
        }
    }
}

#[test]
fn a_test_that_goes_to_another_package_is_told() {
    let all = BTreeSet::from(["crates/a".to_owned(), "crates/b".into()]);
    let packages = CargoPackages { finding: all.clone(), all };
    let moved = BASE.split("mod tests {").next().unwrap();
    for (path, is_new, is_told) in [
        ("crates/a/src/more.rs", false, false),
        ("crates/a/tests/more.rs", true, false),
        ("crates/b/src/more.rs", false, true),
        ("crates/b/tests/more.rs", true, true),
        ("crates/new/tests/more.rs", true, true),
    ] {
        let source = |path, text: &str, is_new| ChangedSource { path, text: text.to_owned(), is_new };
        let after = [source("crates/a/src/a.rs", moved, false), source(path, BASE, is_new)];
        let reported = changed(&[("crates/a/src/a.rs", BASE.to_owned())], &after, &packages);
        assert_eq!(!reported.is_empty(), is_told, "{path}");
    }
}

#[test]
fn tests_that_are_other_ones_are_told_however_they_were_changed() {
    for (from, to) in [
        ("assert_eq!(add(1, 2), three());", ""),
        ("assert_eq!(add(1, 2), three());", "return; assert_eq!(add(1, 2), three());"),
        ("assert_eq!(add(1, 2), three());", "/* assert_eq!(add(1, 2), three()); */"),
        ("{ 3 }", "{ -1 }"),
        ("use super::*;", "use super::*; use crate::fake::add;"),
        ("use super::*;", "use super::*; fn add(a: i32, b: i32) -> i32 { a + b }"),
        ("    use super::*;\n", "    use crate::fake::*;\n"),
        ("#[test]", "#[test]\n    #[ignore]"),
        ("#[test]", ""),
        ("#[cfg(test)]", "#[cfg(all(test, any()))]"),
        ("#[cfg(test)]\nmod tests {", "#[cfg(any())]\nmod old {"),
        ("(a::add(1, 2), 3)", "(a::add(1, 2), -1)"),
        ("/// ```\n/// assert", "/// ```ignore\n/// assert"),
    ] {
        assert!(BASE.contains(from), "{from}");
        assert!(is_told(&[&BASE.replace(from, to)]), "{from} -> {to}");
    }
    assert!(is_told(&[]) && is_told(&["fn not("]), "what is gone, or cannot be read");
    let deep = format!("fn a() {{ {}{} }}", "(".repeat(200_000), ")".repeat(200_000));
    assert!(is_told(&[&deep]), "and nothing is overrun by it");
}

#[test]
fn a_file_that_only_tests_load_is_found() {
    for (parent, text, is_found) in [
        ("src/lib.rs", "#[cfg(test)]\nmod sizes;\n", true),
        ("src/main.rs", "#[cfg(all(test, unix))]\npub(crate) mod sizes;\n", true),
        ("src/lib.rs", "#[cfg(test)]\nmod tests { include!(\"sizes.rs\"); }\n", true),
        ("src/lib.rs", "mod sizes;\n", false),
        ("src/lib.rs", "#[cfg(any(test, unix))]\nmod sizes;\n", false),
        ("src/lib.rs", "#[cfg(test)]\nmod sizes { }\n", false),
        ("src/lib.rs", "#[cfg(test)]\nmod other;\n", false),
    ] {
        assert!(parents("src/sizes.rs").iter().any(|own| own == parent), "{parent}");
        assert_eq!(is_for_tests("src/sizes.rs", [(parent, text)].into_iter()), is_found, "{text}");
    }
    assert!(is_for_tests("src/a/b.rs", [("src/a.rs", "#[cfg(test)] mod b;")].into_iter()));
    assert!(is_for_tests("src/a/mod.rs", [("src/lib.rs", "#[cfg(test)] mod a;")].into_iter()));
    assert!(parents("src/a/b.rs").contains(&"src/a.rs".to_owned()));
    assert!(parents("src/a/mod.rs").contains(&"src/lib.rs".to_owned()));
}

#[test]
fn code_that_is_only_added_beside_tests_is_told_from_changes() {
    let is_more = |work: String| {
        let after = [ChangedSource { path: "src/a.rs", text: work, is_new: false }];
        changed(&[("src/a.rs", BASE.to_owned())], &after, &CargoPackages::default()).get("src/a.rs").copied()
    };
    assert_eq!(is_more(BASE.replace("{ 3 }", "{ 3 }\n    fn four() -> i32 { 4 }")), Some(true));
    assert_eq!(is_more(BASE.replace("{ 3 }", "{ 4 }")), Some(false));
    assert_eq!(is_more(BASE.replace("(1, 2), three()", "(1, 2), -1")), Some(false));
    assert_eq!(is_more(BASE.replace("(a::add(1, 2), 3)", "(a::add(1, 2), -1)")), Some(false));
    assert_eq!(is_more(BASE.replace("a - b", "a + b")), None);
}
