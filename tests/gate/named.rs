//! Test names of C++, Go and Java, found without configuration: the report names each test of the
//! base that did not run.

use crate::support::{Ended, Fledge, Model, Need, go_cache, say, shell};
use serde_json::json;
use std::fs;
use std::path::Path;

/// Runs a script on a project with these files and this lane.
fn run(files: &[(&str, &str)], lane: &str, script: &str) -> Ended {
    let model = Model::new([shell(script), say("Done.")]);
    let fledge = Fledge::simple(&model).lane("verify", lane).arg("--max-retries=0");
    files.iter().fold(fledge, |fledge, (path, text)| fledge.file(path, text)).run()
}

/// Asserts that honest work is verified with this number of named tests.
#[track_caller]
fn must_be_named(ended: &Ended, tests: u64) {
    let report = ended.must_be(0, "verified");
    let proof = &report["attempts"][0]["verdict"]["proof"];
    assert_eq!((&proof["tests"], &proof["tests_by_name"]), (&json!(tests), &json!(tests)), "{}", ended.story());
    assert!(ended.stderr.contains(" by name"), "{}", ended.story());
}

/// Asserts that a run is refused because these tests did not run.
#[track_caller]
fn must_miss(ended: &Ended, tests: &str) {
    let report = ended.must_be(1, "gate_failed");
    let message = report["message"].as_str().unwrap();
    assert!(message.contains(&format!("tests of the base did not run: {tests}")), "{message}\n{}", ended.story());
}

#[test]
fn a_test_that_is_taken_out_of_the_list_of_cmake_is_named() {
    long_test!();
    if !Need::has_program("ctest") {
        return Need::Cmake.lacks("no cmake");
    }
    let list = "cmake_minimum_required(VERSION 3.10)\nproject(calc NONE)\nenable_testing()\n\
        add_test(NAME adds COMMAND sh ${CMAKE_SOURCE_DIR}/tests/adds.sh)\n\
        add_test(NAME present COMMAND test -f ${CMAKE_SOURCE_DIR}/calc.sh)\n";
    let test = "cd \"$(dirname \"$0\")/..\" && test \"$(sh calc.sh 2 3)\" = 5\n";
    let files = [("CMakeLists.txt", list), ("tests/adds.sh", test), ("calc.sh", "echo $(($1 - $2))\n")];
    let lane = "steps: [{ name: test, run: 'cmake -B /tmp/built . >/dev/null && cd /tmp/built && ctest' }]\n";
    must_be_named(&run(&files, lane, "sed -i 's/ - / + /' calc.sh"), 2);
    let taken_out = "sed -i 's/NAME adds COMMAND .*/NAME new COMMAND true)/' CMakeLists.txt";
    let ended = run(&files, lane, taken_out);
    let findings = ended.must_be(6, "gate_tampered")["attempts"][0]["verdict"]["findings"].to_string();
    assert!(findings.contains("[tests.add_test.adds] removed: it is a test of the base"), "{}", ended.story());
}

#[test]
fn a_program_of_googletest_that_ends_before_its_tests_is_no_pass() {
    long_test!();
    if !Need::has_program("g++") || !Path::new("/usr/include/gtest/gtest.h").is_file() {
        return Need::GoogleTest.lacks("no g++ with GoogleTest");
    }
    let test =
        "#include <gtest/gtest.h>\n#include \"../calc.h\"\n\nTEST(Calc, adds) {\n    EXPECT_EQ(add(2, 3), 5);\n}\n";
    let files = [("calc.h", "inline int add(int a, int b) { return a - b; }\n"), ("tests/calc.cpp", test)];
    let build = "g++ -o /tmp/checks tests/*.cpp -lgtest -lgtest_main -pthread && /tmp/checks";
    let lane = format!("steps: [{{ name: test, run: '{build}' }}]\n");
    must_be_named(&run(&files, &lane, "sed -i 's/a - b/a + b/' calc.h"), 1);
    let ends =
        "printf '#include <unistd.h>\\n__attribute__((constructor)) static void early() { _exit(0); }\\n' >>calc.h";
    must_miss(&run(&files, &lane, ends), "Calc.adds");
}

/// Writes the report of Surefire 3.2.5 for a JUnit 5 class, without properties and most times.
/// `suite.txt` lists the tests that the class ran.
const SUREFIRE: &str = r#"mkdir -p target/surefire-reports
{
  echo '<?xml version="1.0" encoding="UTF-8"?><testsuite name="p.CalcTest$Inner">'
  while read -r name; do
    case $name in
    adds) test "$(cat calc.txt)" = 5 && echo '<testcase name="adds" classname="p.CalcTest" time="0.006"/>' ||
      { red=1; echo '<testcase name="adds" classname="p.CalcTest"><failure message="expected: 5" type="E"/></testcase>'; } ;;
    off) echo '<testcase name="off" classname="p.CalcTest" time="0.0"><skipped message="@Disabled"/></testcase>' ;;
    *) echo "<testcase name=\"$name\" classname=\"p.CalcTest\$Inner\" time=\"0.003\"/>" ;;
    esac
  done <suite.txt
  echo '</testsuite>'
} >'target/surefire-reports/TEST-p.CalcTest$Inner.xml'
exit ${red:-0}
"#;

#[test]
fn maven_reports_name_tests_without_configuration_and_without_output() {
    long_test!();
    let files = [("mvnw", SUREFIRE), ("calc.txt", "1\n"), ("suite.txt", "adds\noff\neach(int)[1]\neach(int)[2]\n")];
    let lane = "steps: [{ name: test, run: sh ./mvnw -q test }]\n";
    let ended = run(&files, lane, "echo 5 >calc.txt");
    must_be_named(&ended, 3);
    let report = ended.report();
    let counts = &report["attempts"][0]["verdict"]["steps"][0]["tests"]["counts"];
    assert_eq!((&counts["tests"], &counts["skipped"]), (&json!(4), &json!(1)));
    let taken_out = "sed -i 's/^adds/new/' suite.txt";
    must_miss(&run(&files, lane, taken_out), "p.CalcTest adds");
}

#[test]
fn a_report_in_a_folder_that_is_kept_between_rooms_is_found() {
    long_test!();
    let test = "mkdir -p target/surefire-reports; cat $1.xml >target/surefire-reports/TEST-$1.xml; test -f done";
    let report = "<testsuite><testcase classname='p.T' name='adds'/></testsuite>";
    for junit in ["", ", junit: target/surefire-reports/TEST-a.xml"] {
        let lane = format!("cache: [target]\nsteps: [{{ name: test, run: sh ./mvnw a{junit} }}]\n");
        let files = [("mvnw", test), ("a.xml", report), (".gitignore", "target\n")];
        must_be_named(&run(&files, &lane, "touch done"), 1);
    }
}

/// A Go module with two packages. A test fails in one of them.
const GO: [(&str, &str); 5] = [
    ("go.mod", "module example.com/calc\n\ngo 1.18\n"),
    ("calc.go", "package calc\n\nfunc Add(a, b int) int { return a - b }\n"),
    (
        "calc_test.go",
        "package calc\n\nimport \"testing\"\n\nfunc TestAdd(t *testing.T) {\n\tif Add(2, 3) != 5 {\n\t\tt.Fatal(\"no\")\n\t}\n}\n\n\
            func TestZero(t *testing.T) {\n\tt.Run(\"same\", func(t *testing.T) {})\n}\n",
    ),
    ("deep/deep.go", "package deep\n\nfunc One() int { return 1 }\n"),
    (
        "deep/deep_test.go",
        "package deep\n\nimport \"testing\"\n\nfunc TestOne(t *testing.T) {\n\tif One() != 1 {\n\t\tt.Fatal(\"no\")\n\t}\n}\n",
    ),
];
const GO_LANE: &str = "steps: [{ name: test, run: go test ./... }]\n";

/// Runs a script on these files with the Go lane.
fn run_go(files: &[(&str, &str)], script: &str) -> Ended {
    let model = Model::new([shell(script), say("Done.")]);
    let fledge = Fledge::simple(&model).lane("verify", GO_LANE).arg("--max-retries=0");
    let fledge = fledge.env("GOCACHE", go_cache().to_str().unwrap());
    files.iter().fold(fledge, |fledge, (path, text)| fledge.file(path, text)).run()
}

#[test]
fn tests_of_go_are_known_by_name_and_are_run_in_each_room() {
    long_test!();
    if !Need::has_program("go") {
        return Need::Go.lacks("no go");
    }
    let honest = run_go(&GO, "sed -i 's/a - b/a + b/' calc.go");
    must_be_named(&honest, 3);
    let step = &honest.report()["attempts"][0]["verdict"]["steps"][0];
    let log = fs::read_to_string(step["log"].as_str().unwrap()).unwrap();
    if Need::has_program("bwrap") {
        let kept = walkdir::WalkDir::new(honest.path("../state")).into_iter().flatten();
        let builds: Vec<_> = kept.filter(|entry| entry.path().ends_with("lanes/verify/builds")).collect();
        assert!(builds.iter().any(|folder| fs::read_dir(folder.path()).unwrap().count() > 1), "{builds:?}");
    }
    // Go sees no change in the inputs of this package, and yet it must not use its cache.
    assert!(log.contains("ok  \texample.com/calc/deep\t") && !log.contains("(cached)"), "{log}");
}

#[test]
fn a_test_program_of_go_that_ends_before_its_tests_is_no_pass() {
    long_test!();
    if !Need::has_program("go") {
        return Need::Go.lacks("no go");
    }
    let ends = "printf 'package calc\\n\\nimport \"os\"\\n\\nfunc init() { os.Exit(0) }\\n\\nfunc Add(a, b int) int { return a - b }\\n' > calc.go";
    // No test is known on a base that does not compile.
    let mut broken = GO;
    broken[1].1 = "package calc\n";
    for files in [&GO, &broken] {
        let ended = run_go(files, ends);
        let report = ended.must_be(1, "gate_failed");
        let told = "a test program ended before its tests did: example.com/calc";
        assert!(report["message"].as_str().unwrap().contains(told), "{}", ended.story());
    }
    run_go(&broken, "echo 'func Add(a, b int) int { return a + b }' >> calc.go").must_be(0, "verified");
}
