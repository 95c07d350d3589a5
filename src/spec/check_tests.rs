//! Tests of findings.

use super::*;

const RIGHT: &str = "---\nmodule: dates\nversion: 1\nfiles: [src/dates.rs]\ndepends_on: []\n---\n\n## Purpose\n\nDates.\n\n\
    ## Public API\n\n## Invariants\n\n1. A year has four digits. `dates::tests::a_year_has_four_digits`\n\n\
    ## Behavioral Examples\n\n## Error Cases\n\n## Dependencies\n\n## Change Log\n";
const SOURCE: &str = "fn a_year_has_four_digits() {}\n";

/// Returns a valid spec with this front matter.
fn spec(front: &str) -> String {
    RIGHT.replace("module: dates\nversion: 1\nfiles: [src/dates.rs]\ndepends_on: []", front)
}

/// Returns the findings for these specs, given by module, with these files in addition to
/// `src/main.rs` and `src/dates.rs`.
fn found(specs: &[(&str, &str)], files: &[(&str, &str)]) -> Vec<String> {
    let specs: Vec<_> = specs.iter().map(|(name, text)| (format!("specs/{name}/{name}.spec.md"), *text)).collect();
    let mut check = SpecCheck::new(specs.iter().map(|(path, text)| (path.as_str(), *text)));
    check.see("src/main.rs", "");
    check.see("src/dates.rs", SOURCE);
    files.iter().for_each(|(path, text)| check.see(path, text));
    let message = |finding: SpecFinding| format!("{:?}: {finding}", finding.severity);
    check.findings().into_iter().map(message).collect()
}

#[test]
fn specs_that_are_true_have_no_findings() {
    assert_eq!(found(&[("dates", RIGHT)], &[("docs/dates.md", "")]), [""; 0]);
}

#[test]
fn a_project_without_specs_is_one_warning() {
    assert_eq!(found(&[], &[]), ["Warning: specs: there are no specs (write specs/<module>/<module>.spec.md)"]);
}

#[test]
fn files_that_are_not_there_are_errors() {
    let text = spec("module: dates\nversion: 1\nfiles: [src/dates.rs, src/zones.rs, 'src/zones/**', src, 'src/*.rs']");
    assert_eq!(
        found(&[("dates", &text)], &[]),
        [
            "Error: specs/dates/dates.spec.md:4:23: there is no file `src/zones.rs` (correct or remove the path)",
            "Error: specs/dates/dates.spec.md:4:37: there is no file `src/zones/**` (correct or remove the path)",
        ]
    );
    assert_eq!(found(&[("dates", &text)], &[("src/zones.rs", ""), ("src/zones/utc.rs", "")]), [""; 0]);
    let named = spec("module: dates\nversion: 1\nfiles: ['app/[id].tsx', src/dates.rs]");
    assert_eq!(found(&[("dates", &named)], &[("app/[id].tsx", "")]), [""; 0]);
}

#[test]
fn what_cannot_be_read_is_an_error_and_hides_nothing_else() {
    let wrong = spec("module: zones\nversion: 1\nfiles: [src/zones.rs]\nowner: me");
    let text = spec("module: dates\nversion: 1\nfiles: [src/dates.rs]\ndepends_on: [zones]");
    assert_eq!(
        found(&[("dates", &text), ("zones", &wrong)], &[("src/zones.rs", "")]),
        ["Error: specs/zones/zones.spec.md:5:1: unknown key `owner` in the front matter \
          (known: module, version, status, files, depends_on, db_tables)"]
    );
}

#[test]
fn a_spec_stands_in_the_folder_of_its_module() {
    let text = spec("module: date\nversion: 1\nfiles: [src/dates.rs]");
    let expected = "Error: specs/dates/dates.spec.md:2:9: `date` does not match the names of its folder and file \
        (write `module: dates`, or move the spec to specs/date/date.spec.md)";
    assert_eq!(found(&[("dates", &text)], &[]), [expected]);
}

#[test]
fn sections_and_invariants_that_are_missing_are_warnings() {
    let text = RIGHT.replace("## Error Cases\n\n", "```\n## Error Cases\n```\n");
    let nothing = "Warning: specs/dates/dates.spec.md:25:1: missing section Error Cases (add `## Error Cases`)";
    assert_eq!(found(&[("dates", &text)], &[]), [nothing]);
    let text = RIGHT.replace("1. A", "A");
    let nothing = "Warning: specs/dates/dates.spec.md:14:1: no invariants are listed \
        (write a numbered item such as `1. Dates are in UTC.` that ends with the name of its test in backticks)";
    assert_eq!(found(&[("dates", &text)], &[]), [nothing]);
}

#[test]
fn an_invariant_names_a_test_that_is_there() {
    let laws = "- One.\n   `dates::tests::a_year_has_four_digits`.\n- Nothing is `None`\n- Two `dates::tests::gone`\n\n   and \
        more.\n- Three (`a_year_has_no_digits`)\n- Four `zones::a_year_has_four_digits`\n";
    let text = RIGHT.replace("1. A year has four digits. `dates::tests::a_year_has_four_digits`\n", laws);
    let (unnamed, hint) = ("this invariant names no test", "(end the invariant with the test's name in backticks)");
    let (gone, write) = ("no source file has the test", "(write the test, or correct its name)");
    assert_eq!(
        found(&[("dates", &text)], &[("src/main.rs", "// a_year_has_no_digits\n")]),
        [
            format!("Warning: specs/dates/dates.spec.md:18:1: {unnamed} {hint}"),
            format!("Warning: specs/dates/dates.spec.md:19:1: {unnamed} {hint}"),
            format!("Error: specs/dates/dates.spec.md:22:1: {gone} `a_year_has_no_digits` {write}"),
            format!("Error: specs/dates/dates.spec.md:23:1: {gone} `a_year_has_four_digits` in `zones` {write}"),
        ]
    );
}

#[test]
fn tests_are_named_as_their_languages_do() {
    let laws = [
        (
            "tests/test_dates.py::TestDates::test_years[utc]",
            "tests/test_dates.py",
            "class TestDates:\n    def test_years(self): ...",
        ),
        ("TestYears", "dates_test.go", "func TestYears(t *testing.T) {}"),
        ("dates > reads years", "src/dates.test.ts", "describe('dates', () => { it('reads years', () => {}) })"),
        ("DatesTest#readsYears", "src/test/java/DatesTest.java", "@Test void readsYears() {}"),
        ("testLeapYears()", "Tests/DatesTests.swift", "func testLeapYears() {}"),
        ("DateTest::Years", "dates_test.cc", "TEST(DateTest, Years) {}"),
    ];
    for (name, path, source) in laws {
        let text = RIGHT.replace("dates::tests::a_year_has_four_digits", name);
        assert_eq!(found(&[("dates", &text)], &[(path, source)]), [""; 0], "{name}");
        assert_eq!(found(&[("dates", &text)], &[("docs/all.md", source)]).len(), 1, "{name}");
    }
}

#[test]
fn what_modules_depend_on_is_there_and_makes_no_circle() {
    let all = |name: &str, needs: &str| {
        spec(&format!("module: {name}\nversion: 1\nfiles: [src/dates.rs]\ndepends_on: [{needs}]"))
    };
    let texts = [
        ("a", all("a", "specs/b/b.spec.md, someone/else@zones, bb")),
        ("b", all("b", "specs/c")),
        ("c", all("c", "d, a, b")),
        ("d", all("d", "d")),
        ("e", all("e", "a, zebra")),
    ];
    let specs: Vec<_> = texts.iter().map(|(name, text)| (*name, text.as_str())).collect();
    let share = "(move the shared part into a separate module)";
    assert_eq!(
        found(&specs, &[]),
        [
            format!("Error: specs/a/a.spec.md:5:14: modules depend on each other in a circle: a → b → c → a {share}"),
            "Error: specs/a/a.spec.md:5:53: no spec has the module `bb` (did you mean `b`?)".into(),
            format!("Error: specs/d/d.spec.md:5:14: modules depend on each other in a circle: d → d {share}"),
            "Error: specs/e/e.spec.md:5:17: no spec has the module `zebra` (write a spec for the module, or remove the entry)".into(),
        ]
    );
}

#[test]
fn modules_that_no_spec_covers_are_warnings() {
    let bare = |files: &[&str]| {
        let files: Vec<_> = files.iter().map(|path| (*path, "")).collect();
        let names = |line: String| line.split(": ").nth(1).unwrap_or_default().to_owned();
        found(&[("dates", RIGHT)], &files).into_iter().map(names).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(bare(&["src/zones/mod.rs", "src/zones/utc.rs", "src/text.rs", "src/lib.rs"]), "src/text.rs src/zones");
    assert_eq!(bare(&["src/spec/latest.rs"]), "src/spec");
    assert_eq!(bare(&["src/zones/notes.txt", "src/tests/all.rs", "src/dates_test.go", "tests/it.rs"]), "");
    assert_eq!(bare(&["app/__init__.py", "app/zones.py", "other/zones.py"]), "app/zones.py");
    assert_eq!(
        bare(&["lib/main/java/org/acme/zones/Utc.java", "lib/main/java/org/acme/Text.java"]),
        "lib/main/java/org/acme/Text.java lib/main/java/org/acme/zones"
    );
}
