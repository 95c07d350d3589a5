//! Canaries: failing tests that are planted in a second room. A lane that does not fail for them
//! cannot see failures there, so its pass proves nothing: the work has silenced the tests. Pure:
//! decides what is planted where; another module runs it.

mod texts;

use super::names::name_of;
use crate::lane::Canary;
use crate::verdict::StepStatus;
use std::collections::BTreeMap;
use texts::Form;

/// The most places in which one is planted: those nearest to the root.
const MOST_PLACES: usize = 16;
/// Stands in a file of the project's own for the word that its failure must name.
const MARK: &str = "{mark}";

/// A failing test, planted in one place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Plant {
    /// The path of the file, which is new or has one more test.
    pub(super) path: String,
    /// Its content.
    pub(super) text: String,
    /// The test's name; empty where it has none. A runner may also print the names of tests that
    /// pass.
    pub(super) name: String,
    /// A word that its failure prints; empty: any failure will do.
    pub(super) mark: String,
    /// The step that must fail; any of them where absent.
    pub(super) step: Option<String>,
}

/// The share of the planted failures that a lane has seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Seen {
    None,
    Some,
    All,
}

/// Places in which a test is planted, each with the file of the base that the test is made like.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Places(Vec<(String, Option<String>)>);

impl Places {
    /// Chooses from the paths of the base: each folder that has tests, or package.
    pub(super) fn choose(canary: &Canary, paths: &[String]) -> Self {
        let of = |is_test: &dyn Fn(&str) -> bool| Self(folders(paths, is_test));
        match canary {
            Canary::Pytest => of(&is_python_test).or_root(),
            Canary::NodeTest | Canary::Jest => of(&is_script_test).or_root(),
            Canary::CargoTest => of(&|path| name_of(path) == "Cargo.toml"),
            Canary::GoTest => {
                let is_built = |path: &str| !path.split('/').any(|part| part == "testdata" || part == "vendor");
                let mut places = of(&|path| path.ends_with("_test.go") && is_built(path));
                if places.0.is_empty() {
                    places = of(&|path| path.ends_with(".go") && is_built(path));
                    places.0.truncate(1);
                }
                places
            }
            Canary::Junit => of(&is_java_test),
            Canary::CppTest => {
                let mut files: Vec<&String> = paths.iter().filter(|path| is_cpp_test(path)).collect();
                files.sort_by_key(|path| (path.matches('/').count(), *path));
                files.truncate(MOST_PLACES);
                Self(files.into_iter().map(|path| (folder_of(path).to_owned(), Some(path.clone()))).collect())
            }
            Canary::File { .. } => Self::default(),
        }
    }

    /// The files of the base that [`plant`] reads.
    pub(super) fn read(&self) -> impl Iterator<Item = &String> {
        self.0.iter().filter_map(|(_, like)| like.as_ref())
    }

    fn or_root(self) -> Self {
        if self.0.is_empty() { Self(vec![(String::new(), None)]) } else { self }
    }
}

/// Returns what is planted for a canary in these places. `word` invents words of small letters that
/// no code can know before; `read` gives the text of a file of the base, `has` tells whether it
/// exists.
///
/// # Errors
/// The reason, where the base has no place for the canary.
pub(super) fn plant(
    canary: &Canary,
    places: &Places,
    mut word: impl FnMut() -> String,
    read: impl Fn(&str) -> Option<String>,
    has: impl Fn(&str) -> bool,
) -> Result<Vec<Plant>, String> {
    let mut plants = Vec::new();
    let mut planted = |form: &Form, path: &dyn Fn(&str) -> String| {
        let (name, mark) = (word(), word());
        plants.push(Plant { path: path(&name), text: form.text(&name, &mark), name, mark, step: None });
    };
    for (folder, like) in &places.0 {
        let path = like.as_deref().unwrap_or_default();
        let text = like.as_deref().and_then(&read).unwrap_or_default();
        match canary {
            Canary::Pytest => {
                texts::pytest(&text).iter().for_each(|form| planted(form, &|name| format!("{folder}test_{name}.py")));
            }
            Canary::NodeTest | Canary::Jest => {
                let is_node = *canary == Canary::NodeTest;
                let like = if !path.is_empty() {
                    path
                } else if is_node {
                    "test.mjs"
                } else {
                    "test.js"
                };
                let forms = if is_node { texts::node(like, &text) } else { texts::jest(&text) };
                let at = |name: &str| format!("{folder}{}", texts::script_name(like, name));
                forms.iter().for_each(|form| planted(form, &at));
            }
            Canary::CargoTest => {
                if text.lines().any(|line| line.trim() == "[package]") {
                    let library = texts::library(&text, has(&format!("{folder}src/lib.rs")));
                    planted(&texts::cargo(&library), &|name| format!("{folder}tests/{name}.rs"));
                }
            }
            Canary::GoTest => {
                let package = texts::package_of(&text);
                let package = package.ok_or_else(|| format!("no file of `{folder}` has a package clause"))?;
                planted(&texts::go(package), &|name| format!("{folder}{name}_test.go"));
            }
            Canary::Junit => {
                let at = |name: &str| format!("{folder}{}Test.java", texts::capital(name));
                planted(&texts::junit(&text), &at);
            }
            Canary::CppTest => {
                texts::cpp(&text).iter().for_each(|form| planted(form, &|_| path.to_owned()));
            }
            Canary::File { .. } => {}
        }
    }
    if let Canary::File { file, text, run } = canary {
        let text = if text.ends_with('\n') { text.clone() } else { format!("{text}\n") };
        let mark = word();
        let planted = text.replace(MARK, &mark);
        let mark = if text.contains(MARK) { mark } else { String::new() };
        plants.push(Plant { path: file.clone(), text: planted, name: String::new(), mark, step: run.clone() });
    }
    let lacks = match canary {
        _ if !plants.is_empty() => return Ok(plants),
        Canary::CargoTest => "a Cargo.toml of a package",
        Canary::GoTest => "a Go file",
        Canary::Junit => "a test class of JUnit or TestNG",
        _ => "a file of tests for GoogleTest, Catch2 or doctest",
    };
    Err(format!("the base does not have {lacks}"))
}

/// Whether the output of a lane tells a planted failure from others.
pub(super) fn has_name(canary: &Canary) -> bool {
    !matches!(canary, Canary::File { text, .. } if !text.contains(MARK))
}

/// Returns whether a step has seen what was planted. `names_it` tells whether the step's output
/// shows that this test failed; it is called for failed steps alone.
pub(super) fn is_seen(plant: &Plant, step: &str, status: StepStatus, names_it: impl FnOnce() -> bool) -> bool {
    let is_asked = plant.step.as_deref().is_none_or(|asked| asked == step);
    is_asked && matches!(status, StepStatus::Failed | StepStatus::TimedOut) && (plant.mark.is_empty() || names_it())
}

/// Returns whether a line of output says that the test of this name failed. Some runners print the
/// names of failed tests without their messages.
pub(super) fn says_failed(line: &str, name: &str) -> bool {
    const SIGNS: [&str; 7] = ["FAIL", "ERROR", "error", "not ok", "✖", "✗", "-->"];
    !name.is_empty() && line.to_lowercase().contains(name) && SIGNS.iter().any(|sign| line.contains(sign))
}

impl Seen {
    /// Counts which of the planted failures were seen.
    pub(super) fn of(seen: &[bool]) -> Self {
        match seen.iter().filter(|seen| **seen).count() {
            0 => Self::None,
            count if count == seen.len() => Self::All,
            _ => Self::Some,
        }
    }
}

fn is_python_test(path: &str) -> bool {
    let name = name_of(path);
    name.ends_with(".py") && (name.starts_with("test_") || name.ends_with("_test.py"))
}

fn is_script_test(path: &str) -> bool {
    let stem = ["js", "mjs", "cjs", "ts", "mts", "cts", "jsx", "tsx"];
    let stem = stem.iter().find_map(|ending| name_of(path).strip_suffix(ending)?.strip_suffix('.'));
    stem.is_some_and(|stem| {
        stem.ends_with(".test") || stem.ends_with(".spec") || stem.ends_with("_test") || stem == "test"
    })
}

fn is_java_test(path: &str) -> bool {
    let stem = name_of(path).strip_suffix(".java");
    stem.is_some_and(|stem| {
        stem.starts_with("Test") || ["Test", "Tests", "TestCase"].iter().any(|end| stem.ends_with(end))
    })
}

fn is_cpp_test(path: &str) -> bool {
    let Some((stem, "cpp" | "cc" | "cxx")) = path.rsplit_once('.') else { return false };
    let is_named = |part: &str| part.to_ascii_lowercase().contains("test");
    let is_below = |part: &str| ["test", "tests", "unittest", "unittests"].contains(&part);
    is_named(name_of(stem)) || folder_of(path).split('/').any(is_below)
}

/// The folders, each with a `/` at its end and the first such file in it, those nearest to the root
/// first.
fn folders(paths: &[String], is_one: &dyn Fn(&str) -> bool) -> Vec<(String, Option<String>)> {
    let mut found: BTreeMap<(usize, &str), &String> = BTreeMap::new();
    for path in paths.iter().filter(|path| is_one(path)) {
        found.entry((path.matches('/').count(), folder_of(path))).or_insert(path);
    }
    let places = found.into_iter().map(|((_, folder), like)| (folder.to_owned(), Some(like.clone())));
    places.take(MOST_PLACES).collect()
}

fn folder_of(path: &str) -> &str {
    path.rfind('/').map_or("", |end| &path[..=end])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plants(canary: Canary, paths: &[&str]) -> Result<Vec<Plant>, String> {
        let paths: Vec<String> = paths.iter().map(|path| (*path).to_owned()).collect();
        let read = |path: &str| {
            let text = match path.rsplit('.').next() {
                Some("go") => "// about\npackage calc // why\n",
                Some("toml") => "[package]\nname = \"a\"\n",
                Some("cpp") => "#include <gtest/gtest.h>\n",
                _ => "",
            };
            (path != "Cargo.toml").then(|| text.to_owned())
        };
        let mut words = ["fimo", "x", "tula", "x", "sape", "x", "kadu", "x"].iter();
        let places = Places::choose(&canary, &paths);
        plant(
            &canary,
            &places,
            || (*words.next().unwrap()).to_owned(),
            read,
            |path| paths.iter().any(|own| own == path),
        )
    }

    #[test]
    fn it_is_planted_wherever_the_runner_looks_for_tests_under_a_name_like_any_other() {
        for (canary, paths, places) in [
            (
                Canary::Pytest,
                &["a.py", "tests/unit/test_b.py", "tests/test_a.py"][..],
                &["tests/test_fimo.py", "tests/unit/test_tula.py"][..],
            ),
            (Canary::Pytest, &["a.py"], &["test_fimo.py"]),
            (
                Canary::CargoTest,
                &["Cargo.toml", "crates/b/Cargo.toml", "crates/a/Cargo.toml"],
                &["crates/a/tests/fimo.rs", "crates/b/tests/tula.rs"],
            ),
            (
                Canary::GoTest,
                &["main.go", "calc/calc_test.go", "sum/sum_test.go", "sum/testdata/x_test.go"],
                &["calc/fimo_test.go", "sum/tula_test.go"],
            ),
            (Canary::NodeTest, &["js/sum.test.js", "js/sum.js"], &["js/fimo.test.js", "js/tula.test.js"]),
            (Canary::NodeTest, &["sum.js"], &["fimo.test.mjs", "tula.test.mjs"]),
            (Canary::Jest, &["src/__tests__/x.js", "src/a.spec.tsx"], &["src/fimo.spec.tsx"]),
            (
                Canary::Junit,
                &["src/main/java/a/Calc.java", "src/test/java/a/CalcTest.java"],
                &["src/test/java/a/FimoTest.java"],
            ),
            (Canary::CppTest, &["src/calc.cpp", "tests/calc.cpp"], &["tests/calc.cpp"]),
        ] {
            let paths: Vec<String> = plants(canary, paths).unwrap().into_iter().map(|plant| plant.path).collect();
            assert_eq!(paths, places);
        }
        let go = "package calc\n\nimport \"testing\"\n\nfunc TestFimo(t *testing.T) {\n\tt.Fatal(\"x\")\n}\n";
        assert_eq!(plants(Canary::GoTest, &["main.go"]).unwrap()[0].text, go);
        let with_library = plants(Canary::CargoTest, &["a/Cargo.toml", "a/src/lib.rs"]).unwrap();
        assert!(with_library[0].text.starts_with("extern crate a as _;"), "{}", with_library[0].text);
        for (canary, paths, said) in [
            (Canary::CargoTest, &["Cargo.toml"][..], "the base does not have a Cargo.toml of a package"),
            (Canary::GoTest, &["a.c"], "the base does not have a Go file"),
            (Canary::Junit, &["A.java"], "the base does not have a test class of JUnit or TestNG"),
            (
                Canary::CppTest,
                &["tests/a.cc"],
                "the base does not have a file of tests for GoogleTest, Catch2 or doctest",
            ),
        ] {
            assert_eq!(plants(canary, paths).unwrap_err(), said);
        }
    }

    #[test]
    fn it_is_seen_by_a_step_that_fails_and_names_it() {
        let own = |text: &str| {
            let canary = Canary::File { file: "cases/own.in".into(), text: text.into(), run: Some("test".into()) };
            plants(canary, &[]).unwrap().remove(0)
        };
        let any = own("x");
        assert_eq!((any.path.as_str(), any.text.as_str()), ("cases/own.in", "x\n"));
        for (step, status, says, seen) in [
            ("test", StepStatus::Failed, false, true),
            ("lint", StepStatus::Failed, true, false),
            ("test", StepStatus::Passed, true, false),
            ("test", StepStatus::Errored, true, false),
        ] {
            assert_eq!(is_seen(&any, step, status, || says), seen, "{step} {status:?}");
        }
        let named = own("echo {mark}");
        assert_eq!((named.text.as_str(), named.mark.as_str()), ("echo fimo\n", "fimo"));
        assert!(is_seen(&named, "test", StepStatus::Failed, || true));
        assert!(!is_seen(&named, "test", StepStatus::Failed, || false), "it failed for something else");
    }
}
