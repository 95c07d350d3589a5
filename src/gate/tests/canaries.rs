//! Tests of planted failures for lanes that choose no canary.

use super::attempts::lane;
use super::*;

/// A command that runs the product, then checks each test like a runner that names what fails.
const RUNNER: &str = "for code in src/*.sh; do . ./$code; done; for t in ${only:-*}/test_*.py; do grep -q assert $t && echo FAILED $t && bad=1; done; test -z \"$bad\"";
const FILES: [(&str, &str); 3] = [("src/code.sh", "true\n"), ("a/test_a.py", "ok\n"), ("b/test_b.py", "ok\n")];

async fn judged(keys: &str, runs: &[&str], work: &str) -> (GateFixture, Verdict) {
    let fixture = fixture(&FILES, &[("verify", &lane(keys, runs))], None).await;
    assert_eq!(fixture.base().await.unwrap().0, Ruling::Passed);
    fixture.write("src/code.sh", work);
    let verdict = fixture.judged(OnTamper::Restore).await;
    (fixture, verdict)
}

fn without_canary(verdict: &Verdict) -> Vec<&str> {
    verdict.proof.iter().flat_map(|proof| proof.without_canary.values().map(String::as_str)).collect()
}

#[tokio::test]
async fn a_runner_named_by_a_command_must_report_planted_failures() {
    let run = format!("{RUNNER} # pytest");
    let (fixture, verdict) = judged("", &[&run], "true # work\n").await;
    assert_eq!(verdict.ruling, Ruling::Passed, "{}", verdict.feedback);
    assert_eq!((verdict.proof.as_ref().unwrap().canaries, without_canary(&verdict)), (1, vec![]));
    for (work, missed) in [("exit 0\n", "a planted failing test"), ("only=a\n", "all planted failing tests")] {
        fixture.write("src/code.sh", work);
        let verdict = fixture.judged(OnTamper::Restore).await;
        assert_eq!(verdict.ruling, Ruling::Failed, "{work}");
        let expected = format!("lane `verify` did not report {missed}: its tests are silenced");
        assert!(verdict.feedback.contains(&expected), "{}", verdict.feedback);
    }
}

#[tokio::test]
async fn a_runner_known_by_its_output_on_the_base_must_report_planted_failures() {
    let run = format!("echo Ran 2 tests in 0.1s; {RUNNER}");
    let (_fixture, verdict) = judged("", &[&run], "echo Ran 2 tests in 0.1s; exit 0\n").await;
    assert_eq!(verdict.ruling, Ruling::Failed);
    assert!(verdict.feedback.contains("its tests are silenced"), "{}", verdict.feedback);
}

#[tokio::test]
async fn nothing_is_planted_for_a_lane_that_turns_it_off_or_reports_nothing_on_the_base() {
    let (_fixture, verdict) = judged("canary: none", &[&format!("{RUNNER} # pytest")], "exit 0\n").await;
    assert_eq!(verdict.ruling, Ruling::Passed);
    assert_eq!(verdict.proof.unwrap().canaries, 0);

    let blind = "it reports no failing test of the kind `pytest` that is planted in the base";
    for (run, why) in [("true # pytest", blind), ("true", "its test runner is not recognized")] {
        let (_fixture, verdict) = judged("", &[run], "exit 0\n").await;
        assert_eq!(verdict.ruling, Ruling::Passed, "{}", verdict.feedback);
        assert_eq!((verdict.proof.as_ref().unwrap().canaries, without_canary(&verdict)), (0, vec![why]));
    }
}

#[tokio::test]
async fn linters_do_not_run_with_planted_failures() {
    let (fixture, verdict) = judged("", &["true # ruff", &format!("{RUNNER} # pytest")], "true # work\n").await;
    assert_eq!(verdict.ruling, Ruling::Passed, "{}", verdict.feedback);
    let logs = fixture.home.path().join("logs/attempt-1/verify-canary-pytest");
    let logs: Vec<String> =
        fs::read_dir(logs).unwrap().map(|it| it.unwrap().file_name().into_string().unwrap()).collect();
    assert!(!logs.is_empty() && logs.iter().all(|log| !log.contains("s0")), "{logs:?}");
}

#[tokio::test]
async fn results_of_planted_failures_in_the_base_are_kept_with_the_base() {
    let run = format!("{RUNNER} # pytest");
    let (fixture, verdict) = judged("", &[&run], "true # work\n").await;
    assert_eq!(verdict.ruling, Ruling::Passed, "{}", verdict.feedback);
    let base_logs = fixture.home.path().join("logs/base");
    fs::remove_dir_all(&base_logs).unwrap();
    let fixture = fixture.taken_up_again();
    fixture.base().await.unwrap();
    fixture.write("src/code.sh", "exit 0\n");
    assert_eq!(fixture.judged(OnTamper::Restore).await.ruling, Ruling::Failed);
    assert!(!base_logs.join("verify-canary-pytest").exists(), "they are not planted again");
}

/// A command that runs each Python test of a file as a shell function of the product decides.
const NAMES: &str = "for code in src/*.sh; do . ./$code; done; for t in tests/test_*.py; do for n in $(sed -n \"s/def \\(test_[a-z]*\\).*/\\1/p\" $t); do case $skip in *$n*) continue;; esac; sed -n \"/def $n/,/^$/p\" $t | grep -qi assert && echo FAILED $t::$n && bad=1; done; done; test -z \"$bad\" # pytest";

#[tokio::test]
async fn chosen_tests_that_are_silenced_are_missed() {
    let tests = "def test_one():\n    ok\n\ndef test_two():\n    ok\n\n";
    let files = [("src/code.sh", "true\n"), ("tests/test_a.py", tests)];
    let fixture = fixture(&files, &[("verify", &lane("", &[NAMES]))], None).await;
    assert_eq!(fixture.base().await.unwrap().0, Ruling::Passed);
    fixture.write("src/code.sh", "true # work\n");
    let verdict = fixture.judged(OnTamper::Restore).await;
    assert_eq!(verdict.ruling, Ruling::Passed, "{}", verdict.feedback);
    fixture.write("src/code.sh", "skip=test_two\n");
    let verdict = fixture.judged(OnTamper::Restore).await;
    assert_eq!(verdict.ruling, Ruling::Failed);
    let missed = "all planted failing tests: its tests are silenced (missed: tests/test_a.py: test_two made to fail)";
    assert!(verdict.feedback.contains(missed), "{}", verdict.feedback);
}

/// A command that runs the product, then each GoogleTest of the files with tests.
const CPP: &str = "for code in src/*.sh; do . ./$code; done; for t in tests/*.cpp; do for n in $(sed -n \"s/^TEST(.*, \\([a-z]*\\)).*/\\1/p\" $t); do sed -n \"/^TEST(.*, $n)/,/^}/p\" $t | grep -q FAILURE && echo \"[  FAILED  ] $n\" && bad=1; done; done; test -z \"$bad\" # ctest";

#[tokio::test]
async fn work_on_a_base_that_does_not_compile_must_report_planted_failures_too() {
    let tests = "#include <gtest/gtest.h>\n\nTEST(Sum, adds) {\n    ok();\n}\n";
    let files = [("src/code.sh", "echo error; exit 2\n"), ("tests/test_a.cpp", tests)];
    let fixture = fixture(&files, &[("verify", &lane("", &[CPP]))], None).await;
    assert_eq!(fixture.base().await.unwrap().0, Ruling::Failed);
    fixture.write("src/code.sh", "true\n");
    let verdict = fixture.judged(OnTamper::Restore).await;
    assert_eq!(verdict.ruling, Ruling::Passed, "{}", verdict.feedback);
    assert_eq!((verdict.proof.as_ref().unwrap().canaries, without_canary(&verdict)), (1, vec![]));
    fixture.write("src/code.sh", "exit 0\n");
    let verdict = fixture.judged(OnTamper::Restore).await;
    assert_eq!(verdict.ruling, Ruling::Failed);
    let missed = "lane `verify` did not report a planted failing test: its tests are silenced, or it runs none";
    assert!(verdict.feedback.contains(missed), "{}", verdict.feedback);
}

#[tokio::test]
async fn a_lane_that_claims_to_run_tests_must_report_them_although_it_prints_nothing() {
    let tests = "#include <gtest/gtest.h>\n\nTEST(Sum, adds) {\n    ok();\n}\n";
    let files = [("src/code.sh", "exit 2\n"), ("tests/test_a.cpp", tests)];
    let hidden = CPP.replace("echo", ":");
    for (run, work, ruling, why) in [
        (CPP.replace("ctest", "make check"), "exit 0\n", Ruling::Failed, None),
        (CPP.replace("ctest", "make build"), "exit 0\n", Ruling::Passed, Some("its test runner is not recognized")),
        (hidden.replace("ctest", "make check"), "true\n", Ruling::Passed, Some("it fails with planted tests")),
        (hidden, "true\n", Ruling::Passed, Some("it fails with planted tests")),
    ] {
        let fixture = fixture(&files, &[("verify", &lane("", &[&run]))], None).await;
        assert_eq!(fixture.base().await.unwrap().0, Ruling::Failed);
        fixture.write("src/code.sh", work);
        let verdict = fixture.judged(OnTamper::Restore).await;
        assert_eq!(verdict.ruling, ruling, "{run}: {}", verdict.feedback);
        let told = without_canary(&verdict);
        assert!(why.map_or(told.is_empty(), |why| told.len() == 1 && told[0].contains(why)), "{run}: {told:?}");
    }
}
