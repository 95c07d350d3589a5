//! A canary: a failing test that is planted in a room of its own. A lane that does not go red for it cannot see failures there, so its
//! pass proves nothing: what is judged has silenced the tests. Pure: says what is planted where; who runs it is elsewhere.

use crate::lane::Canary;
use crate::verdict::StepStatus;

/// What is planted.
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

/// What is planted for a canary among the files of the base. `mark` is a word that no code under test can know before, of letters and
/// digits; `read` gives the text of a file of the base.
///
/// # Errors
/// Why there is no place for it.
pub(super) fn plant(
    canary: &Canary,
    paths: &[String],
    mark: &str,
    read: impl Fn(&str) -> Option<String>,
) -> Result<Plant, String> {
    let mark = format!("fledge_canary_{mark}");
    let planted = |path: String, text: String| Plant { path, text, mark: mark.clone(), step: None };
    match canary {
        Canary::Pytest => {
            let is_test =
                |name: &str| name.ends_with(".py") && (name.starts_with("test_") || name.ends_with("_test.py"));
            let folder = beside(paths, is_test).unwrap_or_default();
            let text = format!("def test_{mark}():\n    raise AssertionError(\"planted: {mark}\")\n");
            Ok(planted(format!("{folder}test_{mark}.py"), text))
        }
        Canary::CargoTest => {
            let is_manifest = |path: &&String| path.rsplit('/').next() == Some("Cargo.toml");
            let is_package =
                |path: &&String| read(path).is_some_and(|text| text.lines().any(|line| line.trim() == "[package]"));
            let manifest = shallowest(paths.iter().filter(is_manifest).filter(is_package));
            let folder = folder_of(manifest.ok_or("there is no Cargo.toml of a package on the base")?);
            let text = format!("#[test]\nfn {mark}() {{\n    panic!(\"planted: {mark}\");\n}}\n");
            Ok(planted(format!("{folder}tests/{mark}.rs"), text))
        }
        Canary::GoTest => {
            let is_test = |path: &&String| path.ends_with("_test.go");
            let test = shallowest(paths.iter().filter(is_test));
            let beside = test.or_else(|| shallowest(paths.iter().filter(|path| path.ends_with(".go"))));
            let beside = beside.ok_or("there is no Go file on the base")?;
            let source = read(beside).unwrap_or_default();
            let package = source.lines().find_map(|line| line.strip_prefix("package ")).map(str::trim);
            let package = package.and_then(|line| line.split_whitespace().next());
            let package = package.ok_or_else(|| format!("{beside} has no package clause"))?;
            let text = format!(
                "package {package}\n\nimport \"testing\"\n\nfunc Test_{mark}(t *testing.T) {{\n\tt.Fatal(\"planted: {mark}\")\n}}\n"
            );
            Ok(planted(format!("{}{mark}_test.go", folder_of(beside)), text))
        }
        Canary::NodeTest => {
            let folder = beside(paths, is_script_test).unwrap_or_default();
            let text = format!(
                "import test from \"node:test\";\n\ntest(\"{mark}\", () => {{\n  throw new Error(\"planted: {mark}\");\n}});\n"
            );
            Ok(planted(format!("{folder}{mark}.test.mjs"), text))
        }
        Canary::Jest => {
            let folder = beside(paths, is_script_test).unwrap_or_default();
            let text = format!("test(\"{mark}\", () => {{\n  throw new Error(\"planted: {mark}\");\n}});\n");
            Ok(planted(format!("{folder}{mark}.test.js"), text))
        }
        Canary::File { file, text, run } => {
            let text = if text.ends_with('\n') { text.clone() } else { format!("{text}\n") };
            Ok(Plant { path: file.clone(), text, mark: String::new(), step: run.clone() })
        }
    }
}

/// Whether the text of a file is needed to find the place.
pub(super) fn may_read(canary: &Canary, path: &str) -> bool {
    match canary {
        Canary::CargoTest => path.rsplit('/').next() == Some("Cargo.toml"),
        Canary::GoTest => path.ends_with(".go"),
        Canary::Pytest | Canary::NodeTest | Canary::Jest | Canary::File { .. } => false,
    }
}

/// Whether a step has seen what was planted. `says_mark` tells whether its output has the mark.
pub(super) fn is_seen(plant: &Plant, step: &str, status: StepStatus, says_mark: bool) -> bool {
    let is_asked = plant.step.as_deref().is_none_or(|asked| asked == step);
    is_asked && matches!(status, StepStatus::Failed | StepStatus::TimedOut) && (plant.mark.is_empty() || says_mark)
}

fn is_script_test(name: &str) -> bool {
    let stem = ["js", "mjs", "cjs", "ts", "mts", "cts", "jsx", "tsx"];
    let stem = stem.iter().find_map(|ending| name.strip_suffix(ending)?.strip_suffix('.'));
    stem.is_some_and(|stem| {
        stem.ends_with(".test") || stem.ends_with(".spec") || stem.ends_with("_test") || stem == "test"
    })
}

/// The folder, with a `/` at its end, of the test that lies nearest to the root.
fn beside(paths: &[String], is_test: impl Fn(&str) -> bool) -> Option<String> {
    let is_test = |path: &&String| path.rsplit('/').next().is_some_and(&is_test);
    shallowest(paths.iter().filter(is_test)).map(|path| folder_of(path).to_owned())
}

fn folder_of(path: &str) -> &str {
    path.rfind('/').map_or("", |end| &path[..=end])
}

fn shallowest<'p>(paths: impl Iterator<Item = &'p String>) -> Option<&'p String> {
    paths.min_by_key(|path| (path.matches('/').count(), path.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn planted(canary: Canary, paths: &[&str]) -> Result<(String, String), String> {
        let paths: Vec<String> = paths.iter().map(|path| (*path).to_owned()).collect();
        let read = |path: &str| {
            let text =
                if path.ends_with(".go") { "// about\npackage calc // why\n" } else { "[package]\nname = \"a\"\n" };
            (path != "Cargo.toml").then(|| text.to_owned())
        };
        plant(&canary, &paths, "a1", read).map(|plant| (plant.path, plant.text))
    }

    #[test]
    fn it_is_planted_where_the_runner_looks_for_tests() {
        for (canary, paths, place) in [
            (
                Canary::Pytest,
                &["a.py", "tests/unit/test_b.py", "tests/test_a.py"][..],
                "tests/test_fledge_canary_a1.py",
            ),
            (Canary::Pytest, &["a.py"], "test_fledge_canary_a1.py"),
            (
                Canary::CargoTest,
                &["Cargo.toml", "crates/b/Cargo.toml", "crates/a/Cargo.toml"],
                "crates/a/tests/fledge_canary_a1.rs",
            ),
            (Canary::GoTest, &["main.go", "calc/calc_test.go"], "calc/fledge_canary_a1_test.go"),
            (Canary::NodeTest, &["js/sum.test.js", "js/sum.js"], "js/fledge_canary_a1.test.mjs"),
            (Canary::Jest, &["src/__tests__/x.js", "src/a.spec.tsx"], "src/fledge_canary_a1.test.js"),
        ] {
            assert_eq!(planted(canary, paths).unwrap().0, place);
        }
        assert!(planted(Canary::GoTest, &["main.go"]).unwrap().1.starts_with("package calc\n"));
        assert_eq!(
            planted(Canary::CargoTest, &["Cargo.toml"]).unwrap_err(),
            "there is no Cargo.toml of a package on the base"
        );
    }

    #[test]
    fn it_is_seen_by_a_step_that_fails_and_names_it() {
        let canary = Canary::File { file: "c".into(), text: "x".into(), run: Some("test".into()) };
        let own = plant(&canary, &[], "a1", |_| None).unwrap();
        assert_eq!(own.text, "x\n");
        for (step, status, says, seen) in [
            ("test", StepStatus::Failed, false, true),
            ("lint", StepStatus::Failed, true, false),
            ("test", StepStatus::Passed, true, false),
            ("test", StepStatus::Errored, true, false),
        ] {
            assert_eq!(is_seen(&own, step, status, says), seen, "{step} {status:?}");
        }
        let built_in = plant(&Canary::Pytest, &[], "a1", |_| None).unwrap();
        assert!(is_seen(&built_in, "any", StepStatus::Failed, true));
        assert!(!is_seen(&built_in, "any", StepStatus::Failed, false), "it failed for something else");
    }
}
