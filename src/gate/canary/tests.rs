//! Tests of planted tests: their places, texts and detection in output.

use super::*;

fn plant_files(canary: &CanaryTerms, paths: &[&str]) -> Result<Vec<PlantedFile>, String> {
    planted(canary, paths).map(|mut planted| planted.levels.remove(0))
}

fn planted(canary: &CanaryTerms, paths: &[&str]) -> Result<PlantedTests, String> {
    let paths: Vec<String> = paths.iter().map(|path| (*path).to_owned()).collect();
    let text = |path: &str| match path.rsplit('.').next() {
        Some("go") => "// about\npackage calc // why\n",
        Some("toml") if path != "Cargo.toml" => "[package]\nname = \"a\"\n",
        Some("cpp") if !path.starts_with("src/") => "#include <gtest/gtest.h>\n",
        Some("rs") if path.ends_with("inside.rs") => "#[cfg(test)]\nmod tests {\n}\n",
        _ => "",
    };
    let texts = paths.iter().map(|path| (path.clone(), text(path).to_owned())).collect();
    let mut number = 0;
    let word = || {
        number += 1;
        format!("word{number}.")
    };
    let mut places = PlantingPlaces::choose(canary, &paths);
    if *canary == CanaryTerms::CargoTest {
        places.look_inside(&paths, |path| path.contains("changed"));
    }
    plant(canary, &places, word, &texts, &AlteredTests::new(), |path| paths.iter().any(|own| own == path))
}

#[test]
fn it_is_planted_wherever_the_runner_looks_for_tests_under_a_name_like_any_other() {
    for (canary, paths, places) in [
        (
            CanaryTerms::Pytest,
            &["a.py", "tests/unit/test_b.py", "tests/test_a.py"][..],
            &["tests/test_W.py", "tests/unit/test_W.py"][..],
        ),
        (CanaryTerms::Pytest, &["a.py"], &["test_W.py"]),
        (
            CanaryTerms::CargoTest,
            &["Cargo.toml", "crates/b/Cargo.toml", "crates/a/Cargo.toml"],
            &["crates/a/tests/W.rs", "crates/b/tests/W.rs"],
        ),
        (CanaryTerms::CargoTest, &["a/Cargo.toml", "a/src/inside.rs", "a/src/b.rs"], &["a/src/inside.rs"]),
        (
            CanaryTerms::CargoTest,
            &["a/Cargo.toml", "a/src/inside.rs", "a/tests/b.rs"],
            &["a/tests/W.rs", "a/src/inside.rs"],
        ),
        (
            CanaryTerms::GoTest,
            &["main.go", "calc/calc_test.go", "sum/sum_test.go", "sum/testdata/x_test.go"],
            &["calc/W_test.go", "sum/W_test.go"],
        ),
        (CanaryTerms::NodeTest, &["js/sum.test.js", "js/sum.js", "js/b.spec.mjs"], &["js/W.spec.mjs", "js/W.test.js"]),
        (CanaryTerms::NodeTest, &["sum.js"], &["W.test.mjs"]),
        (CanaryTerms::Jest, &["src/__tests__/x.js", "src/a.spec.tsx"], &["src/W.spec.tsx", "src/__tests__/W.test.js"]),
        (CanaryTerms::NodeTest, &["test/sum.js", "test/data/a.js"], &["test/W.test.js"]),
        (
            CanaryTerms::Junit,
            &["src/main/java/a/Calc.java", "src/test/java/a/CalcTest.java"],
            &["src/test/java/a/WTest.java"],
        ),
        (CanaryTerms::CppTest, &["src/calc.cpp", "tests/calc.cpp"], &["tests/calc.cpp"]),
        (CanaryTerms::CppTest, &["src/calc.cpp", "qa/verify.cpp"], &["qa/verify.cpp"]),
        (CanaryTerms::CppTest, &["tests/calc.cpp", "third_party/googletest/test/a_test.cpp"], &["tests/calc.cpp"]),
    ] {
        let planted = plant_files(&canary, paths).unwrap();
        let without_word = |path: &str| {
            let path = path.replace("Word", "word");
            let Some((before, rest)) = path.split_once("word") else { return path };
            format!("{before}W{}", rest.trim_start_matches(|letter: char| letter.is_ascii_digit()).replacen('.', "", 1))
        };
        let mut at: Vec<String> = planted.iter().map(|bed| without_word(&bed.path)).collect();
        at.sort_by_key(|path| places.iter().position(|place| place == path));
        assert_eq!(at, places, "{paths:?}");
        let keys: std::collections::BTreeSet<&str> =
            planted.iter().flat_map(PlantedFile::plants).map(|plant| plant.key.as_str()).collect();
        assert_eq!(keys.len(), planted.iter().flat_map(PlantedFile::plants).count(), "each is known by its key");
    }
    for (canary, paths, message) in [
        (CanaryTerms::CargoTest, &["Cargo.toml"][..], "the base does not have a Cargo.toml with a package"),
        (CanaryTerms::GoTest, &["a.c"], "the base does not have a Go file"),
        (CanaryTerms::Junit, &["A.java"], "the base does not have a JUnit or TestNG test class"),
        (CanaryTerms::CppTest, &["tests/a.cc"], "the base does not have a test file for GoogleTest, Catch2 or doctest"),
    ] {
        assert_eq!(plant_files(&canary, paths).unwrap_err(), message);
    }
}

#[test]
fn nothing_is_planted_where_the_work_has_no_tests_any_more() {
    let paths = ["a/test_a.py".to_owned(), "b/test_b.py".into()];
    let places = PlantingPlaces::choose(&CanaryTerms::Pytest, &paths);
    let texts = BTreeMap::from([("b/test_b.py".to_owned(), String::new())]);
    let planted =
        plant(&CanaryTerms::Pytest, &places, || "word".into(), &texts, &AlteredTests::new(), |_| false).unwrap();
    let at: Vec<&str> = planted.levels[0].iter().map(|bed| bed.path.as_str()).collect();
    assert_eq!(at, ["b/test_word.py"]);
}

#[test]
fn source_files_that_the_work_has_changed_are_the_first_to_be_looked_into() {
    let paths: Vec<String> = (0..40).map(|number| format!("src/a{number}.rs")).collect();
    let all = [&["Cargo.toml".to_owned(), "src/deep/er/changed.rs".into(), "build.rs".into()], &paths[..]].concat();
    let mut places = PlantingPlaces::choose(&CanaryTerms::CargoTest, &all);
    places.look_inside(&all, |path| path.contains("changed"));
    let units: Vec<&String> = places.units().collect();
    assert_eq!((units.len(), units[0].as_str()), (32, "src/deep/er/changed.rs"));
    assert!(!units.iter().any(|unit| *unit == "build.rs"));
}

#[test]
fn it_is_seen_by_a_step_that_fails_and_names_it() {
    let own = |text: &str| {
        let canary = CanaryTerms::File { file: "cases/own.in".into(), text: text.into(), run: Some("test".into()) };
        plant_files(&canary, &[]).unwrap().remove(0)
    };
    let any = own("x");
    assert_eq!((any.path.as_str(), any.text(|_| true).unwrap().as_str()), ("cases/own.in", "x\n"));
    assert_eq!(any.text(|_| false), None);
    let any = any.plants().next().unwrap();
    for (step, status, says, seen) in [
        ("test", StepStatus::Failed, false, true),
        ("lint", StepStatus::Failed, true, false),
        ("test", StepStatus::Passed, true, false),
        ("test", StepStatus::Errored, true, false),
    ] {
        assert_eq!(is_seen(any, step, status, || says), seen, "{step} {status:?}");
    }
    let named = own("echo {mark}");
    assert_eq!(named.text(|_| true).unwrap(), "echo word1.\n");
    let named = named.plants().next().unwrap();
    assert_eq!(named.mark, "word1.");
    assert!(is_seen(named, "test", StepStatus::Failed, || true));
    assert!(!is_seen(named, "test", StepStatus::Failed, || false), "it failed for something else");
}

#[test]
fn what_the_base_sees_and_what_runs_beside_a_seen_failure_must_be_seen() {
    let bed = plant_files(&CanaryTerms::GoTest, &["a/a_test.go", "b/b_test.go"]).unwrap();
    let mut plants: Vec<PlantedTest> = bed.iter().flat_map(PlantedFile::plants).cloned().collect();
    plants.push(PlantedTest { key: "more".into(), ..plants[0].clone() });
    let [a, b, more] = [0, 1, 2].map(|at| plants[at].key.clone());
    let sightings = |seen: &[&String]| {
        let mut sightings = CanarySightings::new(plants.clone());
        let again = sightings.add(seen.iter().map(|key| (*key).clone()).collect());
        (sightings, again)
    };
    let base = |seen: bool| BTreeMap::from([(a.clone(), true), (b.clone(), seen)]);
    let nothing: &[&String] = &[];
    let cases = [
        (nothing, None, SeenShare::None),
        (&[&a, &b, &more], None, SeenShare::All),
        (&[&a, &more], None, SeenShare::All),
        (&[&a, &more], Some(base(false)), SeenShare::All),
        (&[&a, &more], Some(base(true)), SeenShare::Some),
        (&[&a, &b], None, SeenShare::Some),
    ];
    for (seen, base, share) in cases {
        assert_eq!(sightings(seen).0.share(base.as_ref()), share, "{seen:?} {base:?}");
    }
    assert!(sightings(&[&a]).1, "what was not seen may have been hidden by what was");
    assert!(!sightings(&[]).1 && !sightings(&[&a, &b, &more]).1);
    let (mut cut, _) = sightings(&[&a, &b]);
    cut.cut();
    for base in [None, Some(BTreeMap::from([(more.clone(), true)]))] {
        assert_eq!(cut.share(base.as_ref()), SeenShare::All, "it was not asked often enough");
    }
    assert_eq!(CanarySightings::default().share(None), SeenShare::All);
}

#[test]
fn the_source_of_a_planted_test_has_no_word_that_its_failure_prints() {
    for (canary, path) in [
        (CanaryTerms::Pytest, "test_a.py"),
        (CanaryTerms::NodeTest, "a.test.js"),
        (CanaryTerms::Jest, "a.test.js"),
        (CanaryTerms::CargoTest, "a/Cargo.toml"),
        (CanaryTerms::GoTest, "a_test.go"),
        (CanaryTerms::Junit, "ATest.java"),
        (CanaryTerms::CppTest, "tests/a.cpp"),
    ] {
        let texts = "expect(a).toMatch(/a/); expect(a).toMatchObject(a); expect(a).toHaveProperty(b); assert.match(a, /b/); t.Fatal(); assertEquals(a)";
        let texts = format!(
            "package a\n#include <gtest/gtest.h>\n[package]\nimport assert from 'assert';\ntest(a)\nEXPECT_STREQ(a)\n{texts}"
        );
        let texts = BTreeMap::from([(path.to_owned(), texts)]);
        let mut number = 0;
        let word = || {
            number += 1;
            format!("word{number}.")
        };
        let places = PlantingPlaces::choose(&canary, &[path.to_owned()]);
        let PlantedTests { levels } = plant(&canary, &places, word, &texts, &AlteredTests::new(), |_| false).unwrap();
        assert!(levels.len() > 1, "{canary:?}");
        for bed in levels.iter().flatten() {
            let text = bed.text(|_| true).unwrap();
            assert!(bed.plants().all(|plant| !text.contains(&plant.mark)), "{text}");
        }
    }
}

#[test]
fn a_plain_test_needs_nothing_of_the_project() {
    let texts = BTreeMap::from([(
        "a.test.ts".to_owned(),
        "import { test } from 'node:test';\nimport { one } from './one';\n".to_owned(),
    )]);
    let places = PlantingPlaces::choose(&CanaryTerms::NodeTest, &["a.test.ts".into()]);
    let PlantedTests { levels } =
        plant(&CanaryTerms::NodeTest, &places, || "kadu".into(), &texts, &AlteredTests::new(), |_| false).unwrap();
    let [plant_files, plain] = levels.as_slice() else { panic!("{levels:?}") };
    let text = |bed: &PlantedFile| bed.text(|_| true).unwrap();
    assert!(text(&plant_files[0]).contains("./one") && !text(&plain[0]).contains("./one"));
    assert!(text(&plain[0]).starts_with("import { test as test_kadu } from"), "{}", text(&plain[0]));
    assert!(plain.iter().flat_map(PlantedFile::plants).all(|plant| plant.key.starts_with("a.test.ts: plain: ")));
}

#[test]
fn what_is_said_of_the_text_of_a_file_is_no_failure_of_its_test() {
    let bed = plant_files(&CanaryTerms::Pytest, &["test_a.py"]).unwrap().remove(0);
    let plant = PlantedTest { name: "kadu".into(), ..bed.plants().next().unwrap().clone() };
    for (line, is_failure) in [
        ("FAILED test_kadu.py::test_kadu - AssertionError", true),
        ("ERROR test_kadu.py", true),
        ("thread 'tests::kadu' panicked at src/lib.rs:3:5:", true),
        ("test_kadu.py:1: error: Function is missing a type annotation", false),
        ("  --> test_kadu.py:1:5", false),
        ("kadu.test.ts(1,10): error TS6133: 'one' is declared but its value is never read.", false),
        ("+    fn kadu() {", false),
    ] {
        assert_eq!(says_failed(line, &plant, false), is_failure, "{line}");
    }
}

#[test]
fn canary_places_of_a_test_class_come_in_order_of_what_they_need() {
    let path = "test/a/ATest.java";
    let text =
        "package a;\nimport org.junit.Test;\npublic class ATest extends Base {\n    @Test\n    public void a() {}\n}\n";
    let texts = BTreeMap::from([(path.to_owned(), text.to_owned())]);
    let places = PlantingPlaces::choose(&CanaryTerms::Junit, &[path.to_owned()]);
    let PlantedTests { levels } =
        plant(&CanaryTerms::Junit, &places, || "kadu".into(), &texts, &AlteredTests::new(), |_| false).unwrap();
    let paths = |level: &Vec<PlantedFile>| level.iter().map(|bed| bed.path.clone()).collect::<Vec<_>>();
    let at: Vec<Vec<String>> = levels.iter().map(paths).collect();
    assert_eq!(at, [vec!["test/a/KaduTest.java", path], vec!["test/a/KaduTest.java"], vec!["test/a/KaduTest.java"]]);
    let keys = levels.iter().flatten().flat_map(PlantedFile::plants).map(|plant| plant.key.clone());
    let keys: Vec<String> = keys.collect();
    let each: std::collections::BTreeSet<&String> = keys.iter().collect();
    assert_eq!(each.len(), keys.len(), "each level is known by its keys: {keys:?}");
}

#[test]
fn tests_of_the_base_are_made_to_fail_beside_the_tests_that_are_added() {
    let path = "src/a.rs";
    let text = "#[cfg(test)]\nmod tests {\n    #[test]\n    fn adds() {}\n    #[test]\n    fn halves() {}\n}\n";
    let texts = BTreeMap::from([
        ("Cargo.toml".to_owned(), "[package]\nname = 'a'\n".to_owned()),
        (path.to_owned(), text.to_owned()),
    ]);
    let paths: Vec<String> = texts.keys().cloned().collect();
    let mut places = PlantingPlaces::choose(&CanaryTerms::CargoTest, &paths);
    places.look_inside(&paths, |_| false);
    let altered = AlteredTests::from([(path.to_owned(), crate::gate::inside::test_bodies(path, text))]);
    let mut number = 0;
    let word = || {
        number += 1;
        format!("word{number}.")
    };
    let PlantedTests { levels } = plant(&CanaryTerms::CargoTest, &places, word, &texts, &altered, |_| false).unwrap();
    let [first, second, plain] = levels.as_slice() else { panic!("{levels:?}") };
    let keys = |level: &[PlantedFile]| -> Vec<String> {
        level.iter().flat_map(PlantedFile::plants).map(|plant| plant.key.clone()).collect()
    };
    let own = ["src/a.rs: tests.adds made to fail", "src/a.rs: tests.halves made to fail"];
    assert_eq!(keys(first), [keys(second), own.map(Into::into).to_vec()].concat());
    assert!(!keys(plain).iter().any(|key| key.ends_with("made to fail")));
    let file = first.iter().find(|file| file.path == path).unwrap();
    let whole = file.text(|_| true).unwrap();
    assert_eq!(whole.matches("::std::panic!").count(), 3, "two tests of the base and an added one: {whole}");
    assert!(file.plants().all(|plant| !whole.contains(&plant.mark)), "{whole}");
    let one = file.text(|plant| plant.key == own[1]).unwrap();
    assert!(one.contains("fn adds() {}") && one.contains("fn halves() { let _"), "{one}");
    assert_eq!(file.text(|_| false), None);
}

#[test]
fn a_test_of_the_base_has_failed_only_where_a_line_names_its_file_too() {
    let bodies = crate::gate::inside::test_bodies("test_a.py", "def test_one():\n    pass\n");
    let altered = AlteredTests::from([("test_a.py".to_owned(), bodies)]);
    let texts = BTreeMap::from([("test_a.py".to_owned(), "def test_one():\n    pass\n".to_owned())]);
    let places = PlantingPlaces::choose(&CanaryTerms::Pytest, &["test_a.py".into()]);
    let planted = plant(&CanaryTerms::Pytest, &places, || "kadu".into(), &texts, &altered, |_| false).unwrap();
    let plant = planted.levels[0].iter().flat_map(PlantedFile::plants).find(|plant| plant.altered.is_some()).unwrap();
    for (line, is_base, is_failure) in [
        ("FAILED test_a.py::test_one - AssertionError", false, true),
        ("FAILED test_b.py::test_one - AssertionError", false, false),
        ("FAILED test_b.py::test_one - AssertionError", true, true),
        ("FAILED test_a.py::test_one_more", false, false),
        ("PASSED test_a.py::test_one", false, false),
    ] {
        assert_eq!(says_failed(line, plant, is_base), is_failure, "{line}");
    }
}
