//! Tests of the base that are made to fail at their end. They have the names and the places that
//! code under test may know, so they show whether chosen tests are silenced. Pure.

use super::{PlantedFile, PlantedTest, PlantedTests};
use crate::gate::inside::TestBody;
use std::collections::BTreeMap;

/// The tests of the base that are made to fail, by file.
pub(in crate::gate) type AlteredTests = BTreeMap<String, Vec<TestBody>>;

/// Returns the key of a test that is made to fail.
pub(in crate::gate) fn altered_key(path: &str, body: &TestBody) -> String {
    format!("{path}: {} made to fail", body.name.join("."))
}

impl PlantedTests {
    /// Adds a first level with these tests of the base, beside the tests of the former first level.
    /// `joined` is the expression that joins the two halves of a mark.
    pub(super) fn with_altered(
        mut self,
        tests: &AlteredTests,
        texts: &BTreeMap<String, String>,
        joined: &str,
        mut word: impl FnMut() -> String,
    ) -> Self {
        let Some(mut first) = self.levels.first().filter(|_| !tests.is_empty()).cloned() else { return self };
        for (path, bodies) in tests {
            let altered = bodies.iter().map(|body| (body.at, plant(path, body, joined, &mut word))).collect();
            match first.iter_mut().find(|file| file.path == *path) {
                Some(file) => file.altered = altered,
                None => first.push(PlantedFile {
                    path: path.clone(),
                    head: texts.get(path).cloned().unwrap_or_default(),
                    parts: Vec::new(),
                    tail: String::new(),
                    altered,
                }),
            }
        }
        self.levels.insert(0, first);
        self
    }
}

fn plant(path: &str, body: &TestBody, joined: &str, word: &mut impl FnMut() -> String) -> PlantedTest {
    let mark = word();
    let (half, rest) = mark.split_at(mark.len() / 2);
    let joined = joined.replace("{half}", half).replace("{rest}", rest);
    let text = body.statement.replace("\"{mark}\"", &joined).replace("{file}", &word());
    let (key, name) = (altered_key(path, body), body.name.last().cloned().unwrap_or_default());
    let altered = Some(reported_name(path, &body.name));
    PlantedTest { group: key.clone(), key, name, mark, step: None, text, altered }
}

/// Returns the name under which the runner reports a test: pytest with the path of the file, Rust
/// with the modules, Go alone.
fn reported_name(path: &str, name: &[String]) -> String {
    let name = name.join("::");
    if path.ends_with(".py") {
        return format!("{path}::{name}");
    }
    let Some(stem) = path.strip_suffix(".rs") else { return name };
    let inside = stem.strip_prefix("src/").or_else(|| stem.split_once("/src/").map(|(_, inside)| inside));
    let modules = inside.unwrap_or_default().split('/').filter(|part| !["", "lib", "main", "mod"].contains(part));
    modules.chain([name.as_str()]).collect::<Vec<_>>().join("::")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runners_report_tests_with_their_file_or_modules() {
        for (path, name, reported) in [
            ("tests/test_a.py", &["TestSum", "test_add"][..], "tests/test_a.py::TestSum::test_add"),
            ("src/lib.rs", &["tests", "adds"], "tests::adds"),
            ("crates/b/src/sum/mod.rs", &["tests", "adds"], "sum::tests::adds"),
            ("tests/sums.rs", &["adds"], "adds"),
            ("sum_test.go", &["TestAdd"], "TestAdd"),
        ] {
            let name: Vec<String> = name.iter().map(|part| (*part).to_owned()).collect();
            assert_eq!(reported_name(path, &name), reported);
        }
    }
}
