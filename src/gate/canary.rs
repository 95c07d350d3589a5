//! A canary: a failing test that is planted in a room of its own. A lane that does not go red for it cannot see failures there, so its
//! pass proves nothing: what is judged has silenced the tests. Pure: says what is planted where; who runs it is elsewhere.

use super::names::name_of;
use crate::lane::Canary;
use crate::verdict::StepStatus;
use std::collections::BTreeSet;

/// The most places in which one is planted: those nearest to the root.
const MOST_PLACES: usize = 16;
/// What a file of the project's own has where the word is to stand that its failure must name.
const MARK: &str = "{mark}";

/// What is planted in one place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Plant {
    /// The path of the new file.
    pub(super) path: String,
    /// Its content.
    pub(super) text: String,
    /// What the output of a step that has seen it has in it; empty: any failure will do.
    pub(super) mark: String,
    /// The step that must fail; any of them where absent.
    pub(super) step: Option<String>,
}

/// Which of the planted failures a lane has seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Seen {
    None,
    Some,
    All,
}

/// What is planted for a canary among the files of the base: in each folder that has tests, or package, one. `word` invents words of
/// small letters that no code can know before; `read` gives the text of a file of the base.
///
/// # Errors
/// Why there is no place for it.
pub(super) fn plant(
    canary: &Canary,
    paths: &[String],
    mut word: impl FnMut() -> String,
    read: impl Fn(&str) -> Option<String>,
) -> Result<Vec<Plant>, String> {
    let mut planted = |place: &dyn Fn(&str) -> String, text: &dyn Fn(&str) -> String| {
        let mark = word();
        Plant { path: place(&mark), text: text(&mark), mark, step: None }
    };
    match canary {
        Canary::Pytest => {
            let is_test =
                |name: &str| name.ends_with(".py") && (name.starts_with("test_") || name.ends_with("_test.py"));
            let text = |mark: &str| format!("def test_{mark}():\n    raise AssertionError(\"{mark}\")\n");
            let at = |folder| planted(&|mark| format!("{folder}test_{mark}.py"), &text);
            Ok(or_root(folders(paths, is_test)).into_iter().map(at).collect())
        }
        Canary::CargoTest => {
            let is_package =
                |path: &&String| read(path).is_some_and(|text| text.lines().any(|line| line.trim() == "[package]"));
            let manifests: Vec<String> = paths.iter().filter(is_package).cloned().collect();
            let text = |mark: &str| format!("#[test]\nfn {mark}() {{\n    panic!(\"{mark}\");\n}}\n");
            let at = |folder| planted(&|mark| format!("{folder}tests/{mark}.rs"), &text);
            let packages = folders(&manifests, |name| name == "Cargo.toml");
            let plants = (!packages.is_empty()).then(|| packages.into_iter().map(at).collect());
            plants.ok_or_else(|| "there is no Cargo.toml of a package on the base".into())
        }
        Canary::GoTest => {
            let is_built = |path: &&String| !path.split('/').any(|part| part == "testdata" || part == "vendor");
            let built: Vec<String> = paths.iter().filter(is_built).cloned().collect();
            let mut packages = folders(&built, |name| name.ends_with("_test.go"));
            if packages.is_empty() {
                packages = folders(&built, |name| name.ends_with(".go")).into_iter().take(1).collect();
            }
            let at = |folder: &str| {
                let mut sources = built.iter().filter(|path| path.ends_with(".go") && folder_of(path) == folder);
                let named = sources.find_map(|path| package_of(&read(path)?));
                let package = named.ok_or_else(|| format!("no file of `{folder}` has a package clause"))?;
                let text = |mark: &str| {
                    let name = [&mark[..1].to_uppercase(), &mark[1..]].concat();
                    format!(
                        "package {package}\n\nimport \"testing\"\n\nfunc Test{name}(t *testing.T) {{\n\tt.Fatal(\"{mark}\")\n}}\n"
                    )
                };
                Ok(planted(&|mark| format!("{folder}{mark}_test.go"), &text))
            };
            if packages.is_empty() {
                Err("there is no Go file on the base".into())
            } else {
                packages.into_iter().map(at).collect()
            }
        }
        Canary::NodeTest => {
            let text = |mark: &str| {
                format!(
                    "import test from \"node:test\";\n\ntest(\"{mark}\", () => {{\n  throw new Error(\"{mark}\");\n}});\n"
                )
            };
            let at = |folder| planted(&|mark| format!("{folder}{mark}.test.mjs"), &text);
            Ok(or_root(folders(paths, is_script_test)).into_iter().map(at).collect())
        }
        Canary::Jest => {
            let text = |mark: &str| format!("test(\"{mark}\", () => {{\n  throw new Error(\"{mark}\");\n}});\n");
            let at = |folder| planted(&|mark| format!("{folder}{mark}.test.js"), &text);
            Ok(or_root(folders(paths, is_script_test)).into_iter().map(at).collect())
        }
        Canary::File { file, text, run } => {
            let text = if text.ends_with('\n') { text.clone() } else { format!("{text}\n") };
            let plant = planted(&|_| file.clone(), &|mark| text.replace(MARK, mark));
            let mark = if text.contains(MARK) { plant.mark } else { String::new() };
            Ok(vec![Plant { mark, step: run.clone(), ..plant }])
        }
    }
}

/// Whether the text of a file is needed to find the place.
pub(super) fn may_read(canary: &Canary, path: &str) -> bool {
    match canary {
        Canary::CargoTest => name_of(path) == "Cargo.toml",
        Canary::GoTest => path.ends_with(".go"),
        Canary::Pytest | Canary::NodeTest | Canary::Jest | Canary::File { .. } => false,
    }
}

/// Whether a step has seen what was planted. `says_mark` tells whether its output has the mark; it is asked of failed steps alone.
pub(super) fn is_seen(plant: &Plant, step: &str, status: StepStatus, says_mark: impl FnOnce() -> bool) -> bool {
    let is_asked = plant.step.as_deref().is_none_or(|asked| asked == step);
    is_asked && matches!(status, StepStatus::Failed | StepStatus::TimedOut) && (plant.mark.is_empty() || says_mark())
}

impl Seen {
    /// From which were seen, one by one.
    pub(super) fn of(seen: &[bool]) -> Self {
        match seen.iter().filter(|seen| **seen).count() {
            0 => Self::None,
            count if count == seen.len() => Self::All,
            _ => Self::Some,
        }
    }
}

fn is_script_test(name: &str) -> bool {
    let stem = ["js", "mjs", "cjs", "ts", "mts", "cts", "jsx", "tsx"];
    let stem = stem.iter().find_map(|ending| name.strip_suffix(ending)?.strip_suffix('.'));
    stem.is_some_and(|stem| {
        stem.ends_with(".test") || stem.ends_with(".spec") || stem.ends_with("_test") || stem == "test"
    })
}

/// The folders, each with a `/` at its end, in which there is such a file, those nearest to the root first.
fn folders(paths: &[String], is_one: impl Fn(&str) -> bool) -> Vec<&str> {
    let fits = |path: &&String| path.rsplit('/').next().is_some_and(&is_one);
    let folders: BTreeSet<(usize, &str)> =
        paths.iter().filter(fits).map(|path| (path.matches('/').count(), folder_of(path))).collect();
    folders.into_iter().map(|(_, folder)| folder).take(MOST_PLACES).collect()
}

fn or_root(folders: Vec<&str>) -> Vec<&str> {
    if folders.is_empty() { vec![""] } else { folders }
}

fn folder_of(path: &str) -> &str {
    path.rfind('/').map_or("", |end| &path[..=end])
}

/// The package of a Go file.
fn package_of(source: &str) -> Option<String> {
    let line = source.lines().find_map(|line| line.strip_prefix("package "))?;
    line.split_whitespace().next().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plants(canary: Canary, paths: &[&str]) -> Result<Vec<Plant>, String> {
        let paths: Vec<String> = paths.iter().map(|path| (*path).to_owned()).collect();
        let read = |path: &str| {
            let text =
                if path.ends_with(".go") { "// about\npackage calc // why\n" } else { "[package]\nname = \"a\"\n" };
            (path != "Cargo.toml").then(|| text.to_owned())
        };
        let mut words = ["fimo", "tula", "sape"].iter();
        plant(&canary, &paths, || (*words.next().unwrap()).to_owned(), read)
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
            (Canary::NodeTest, &["js/sum.test.js", "js/sum.js"], &["js/fimo.test.mjs"]),
            (Canary::Jest, &["src/__tests__/x.js", "src/a.spec.tsx"], &["src/fimo.test.js"]),
        ] {
            let paths: Vec<String> = plants(canary, paths).unwrap().into_iter().map(|plant| plant.path).collect();
            assert_eq!(paths, places);
        }
        let go = "package calc\n\nimport \"testing\"\n\nfunc TestFimo(t *testing.T) {\n\tt.Fatal(\"fimo\")\n}\n";
        assert_eq!(plants(Canary::GoTest, &["main.go"]).unwrap()[0].text, go);
        let none = plants(Canary::CargoTest, &["Cargo.toml"]).unwrap_err();
        assert_eq!(none, "there is no Cargo.toml of a package on the base");
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
