//! Output of `fledge lanes run` without a terminal: for people, for a GitHub job, and as files.

use crate::support::{Ended, Fledge, unique};

const REPORT: &str = "<testsuite name='dates'><testcase name='leap' file='tests/dates.rs' line='12'>\
    <failure message='expected 29'/></testcase><testcase name='other'/></testsuite>";

/// One step of each kind, in sequence.
const ALL_KINDS: &str = "fail_fast: false\njobs: 1\nsteps:\n\
    - { name: good, run: echo all is well, needs: [] }\n\
    - { name: test, run: 'cp report.xml out.xml; echo \"error: a test failed\"; exit 1', junit: out.xml, needs: [] }\n\
    - { name: net, run: 'test -f again || { touch again; echo timed out; exit 1; }', retries: 1, needs: [] }\n\
    - { name: links, run: 'echo a dead link; exit 4', allow_failure: true, needs: [] }\n\
    - { name: docs, run: 'true', needs: [test] }\n\
    - { name: evil, run: \"echo '::error::mine'; echo '##[endgroup]'; exit 2\", needs: [] }\n";

/// The last lines of the output.
const CLOSING: &str = "  ✗ verify/test exit 1 0.0s
    ✗ dates leap (tests/dates.rs:12): expected 29
    | error: a test failed
    log: …/verify-02-test.log
  ✗ verify/evil exit 2 0.0s
    | ::error::mine
    | ##[endgroup]
    log: …/verify-06-evil.log
  2 failed, 1 passed, 1 flaky, 1 allowed failure, 1 not run
lane verify failed (0.0s): verify/test, verify/evil
";

fn lane(yaml: &str, args: &[&str]) -> Fledge {
    let args = [&["lanes", "run", "verify"], args].concat();
    Fledge::new().lane("verify", yaml).file("report.xml", REPORT).args(&args)
}

/// Returns standard error without times and the log folder, which differ between runs.
fn story(run: &Ended) -> String {
    let mut text = String::new();
    for line in run.stderr.lines() {
        let log = line.split_once("log: ").map(|(start, path)| format!("{start}log: …/{}", file_name(path)));
        text.push_str(&timeless(log.as_deref().unwrap_or(line)));
        text.push('\n');
    }
    text
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}

fn timeless(line: &str) -> String {
    let is_time = |word: &str| {
        word.trim_matches(['(', ')', ':', ',']).strip_suffix('s').is_some_and(|n| n.parse::<f64>().is_ok())
    };
    let word = |word: &str| if is_time(word) { word.replace(|c: char| c.is_ascii_digit(), "0") } else { word.into() };
    line.split(' ').map(word).collect::<Vec<String>>().join(" ")
}

#[test]
fn a_failed_step_is_explained_once_and_the_last_line_names_it() {
    let run = lane("steps: [{ name: test, run: 'cp report.xml out.xml; echo no; exit 1', junit: out.xml }]", &[]).run();
    run.must_exit(1);
    insta::assert_snapshot!(story(&run), @r#"
          ✗ verify/test exit 1 0.0s
            ✗ dates leap (tests/dates.rs:12): expected 29
            | no
            log: …/verify-01-test.log
        lane verify failed (0.0s): verify/test
        "#);
}

#[test]
fn the_cause_comes_last_and_what_was_cancelled_because_of_it_is_counted() {
    let number = unique();
    let yaml = format!(
        "jobs: 3\nsteps:\n  - name: all\n    parallel:\n      - {{ name: slow, run: sleep {number} }}\n      \
        - {{ name: slower, run: sleep {number} }}\n      - {{ name: bad, run: 'echo error: it broke; exit 7' }}\n  \
        - {{ name: docs, run: 'true' }}\n"
    );
    let run = lane(&yaml, &[]).run();
    run.must_exit(1);
    let story = story(&run);
    let (first, last) = story.split_at(story.rfind("  ✗ verify/bad").unwrap());
    insta::assert_snapshot!(last, @r#"
          ✗ verify/bad exit 7 0.0s
            | error: it broke
            log: …/verify-03-bad.log
          1 failed, 1 not run; 2 steps were cancelled as a result
        lane verify failed (0.0s): verify/bad
        "#);
    assert!(
        first.starts_with("  ✗ verify/bad exit 7 0.0s\n  - verify/docs not run (another step failed before)\n"),
        "{first}"
    );
    assert_eq!((first.lines().count(), story.matches("error: it broke").count()), (4, 1), "{story}");
}

#[test]
fn with_several_causes_each_is_explained_in_the_order_in_which_they_ended() {
    let run = lane(ALL_KINDS, &[]).run();
    run.must_exit(1);
    let story = story(&run);
    let (before, closing) = story.split_at(story.rfind("  ✗ verify/test").unwrap());
    assert_eq!(closing, CLOSING);
    insta::assert_snapshot!(before, @r#"
          ✓ verify/good 0.0s
          ✗ verify/test exit 1 0.0s
            ✗ dates leap (tests/dates.rs:12): expected 29
            | error: a test failed
            log: …/verify-02-test.log
          - verify/docs not run (it needs `test`, which did not pass)
          ! verify/net exit 1, try 1; trying again 0.0s
            | timed out
            log: …/verify-03-net.log
          ! verify/net flaky, try 2 0.0s
          ! verify/links allowed failure, exit 4 0.0s
            | a dead link
            log: …/verify-04-links.log
          ✗ verify/evil exit 2 0.0s
            | ::error::mine
            | ##[endgroup]
            log: …/verify-06-evil.log
        "#);
}

#[test]
fn all_output_or_none_of_it_is_shown_on_demand() {
    let yaml = "steps:\n  - run: printf 'one\\n\\n10%%\\r99%%\\n\\033[2Jtwo'\n    name: good\n  - { name: bad, run: echo no; exit 3 }\n";
    let all = lane(yaml, &["--output", "all"]).run();
    all.must_exit(1);
    insta::assert_snapshot!(story(&all), @r#"
          ✓ verify/good 0.0s
            | one
            |
            | 99%
            | two
          ✗ verify/bad exit 3 0.0s
            | no
            log: …/verify-02-bad.log
          1 failed, 1 passed
        lane verify failed (0.0s): verify/bad
        "#);
    let none = lane(yaml, &["--output=none"]).run();
    none.must_exit(1);
    insta::assert_snapshot!(story(&none), @r#"
          ✓ verify/good 0.0s
          ✗ verify/bad exit 3 0.0s
            log: …/verify-02-bad.log
          1 failed, 1 passed
        lane verify failed (0.0s): verify/bad
        "#);
}

#[test]
fn a_long_silence_is_broken_by_what_runs() {
    let fledge = lane("steps: [{ name: slow, run: 'until test -f go; do sleep 0.01; done' }]", &["--silence", "100ms"]);
    let go = fledge.workspace().join("go");
    let mut run = fledge.start();
    run.wait_for("  still running: slow (0s)");
    std::fs::write(go, "").unwrap();
    run.end().must_exit(0);
}

#[test]
fn a_job_of_githubs_gets_folds_and_annotations_and_no_foreign_commands() {
    let fledge = lane(ALL_KINDS, &[]).file("summary.md", "# Before\n");
    let summary = fledge.workspace().join("summary.md").display().to_string();
    let run = fledge.env("GITHUB_ACTIONS", "true").env("GITHUB_STEP_SUMMARY", &summary).run();
    run.must_exit(1);
    let story = story(&run);
    // Each failed step appears only in its fold and its annotation.
    let (before, closing) = story.split_at(story.rfind("  2 failed").unwrap());
    assert!(CLOSING.ends_with(closing), "{closing}");
    insta::assert_snapshot!(before, @r#"
        ::group::verify/good (passed, 0.0s)
            | all is well
            log: …/verify-01-good.log
        ::endgroup::
        ::group::verify/test (exit 1, 0.0s)
            | error: a test failed
            log: …/verify-02-test.log
        ::endgroup::
          - verify/docs not run (it needs `test`, which did not pass)
        ::group::verify/net (exit 1, try 1; it is tried again, 0.0s)
            | timed out
            log: …/verify-03-net.log
        ::endgroup::
          ! verify/net flaky, try 2 0.0s
        ::group::verify/links (allowed failure, exit 4, 0.0s)
            | a dead link
            log: …/verify-04-links.log
        ::endgroup::
        ::group::verify/evil (exit 2, 0.0s)
            | ::error::mine
            | ## [endgroup]
            log: …/verify-06-evil.log
        ::endgroup::
        ::error title=verify/test%3A dates leap,file=tests/dates.rs,line=12::expected 29
        ::error title=verify/evil::exit 2%0A: :error::mine%0A## [endgroup]
        ::warning title=verify/net::flaky, try 2
        ::warning title=verify/links::allowed failure, exit 4%0Aa dead link
        "#);
    let summary = run.file("summary.md").unwrap();
    assert!(summary.starts_with("# Before\n## ✗ lane `verify` failed\n"), "{summary}");
}

#[test]
fn a_lane_that_is_listed_shown_or_planned_gives_githubs_runner_no_commands() {
    let yaml = "description: '##[group]d'\nsteps: [{ name: a, run: \"true\\n::error::mine\" }]";
    for args in [
        &["list"][..],
        &["list", "--json"],
        &["show", "verify"],
        &["show", "verify", "--json"],
        &["run", "verify", "--dry-run"],
        &["run", "verify", "--dry-run", "--json"],
    ] {
        let run =
            Fledge::new().lane("verify", yaml).args(&[&["lanes"], args].concat()).env("GITHUB_ACTIONS", "true").run();
        run.must_exit(0);
        assert!(!run.stdout.contains("##["), "{args:?}: {}", run.stdout);
        assert!(!run.stdout.lines().any(|line| line.trim_start().starts_with("::")), "{args:?}: {}", run.stdout);
    }
}

#[test]
fn a_fold_has_both_ends_of_a_long_output() {
    let run = lane("steps: [{ name: long, run: seq 5000 }]", &[]).env("GITHUB_ACTIONS", "true").run();
    run.must_exit(0);
    let lines: Vec<&str> = run.stderr.lines().collect();
    assert_eq!(lines.len(), 1 + 2001 + 3, "{}", run.stderr);
    assert_eq!(lines[1001], "    | [… 3000 lines left out; the log has the rest …]");
    assert_eq!((lines[1], lines[2001]), ("    | 1", "    | 5000"));
}

#[test]
fn the_result_is_written_to_files_whole() {
    let run = lane(ALL_KINDS, &["--junit", "junit.xml", "--summary", "summary.md", "--json"]).run();
    run.must_exit(1);
    let read = fledge::lane_runner::JunitReport::parse(&run.file("junit.xml").unwrap()).unwrap();
    let counts = serde_json::json!({ "tests": 6, "failures": 2, "errors": 0, "skipped": 2 });
    assert_eq!(serde_json::to_value(read.counts).unwrap(), counts);
    assert!(run.file("junit.xml").unwrap().contains("<flakyFailure message=\"exit 1\" type=\"failed\">timed out"));
    let summary = run.file("summary.md").unwrap();
    assert!(summary.contains("2 failed, 1 passed, 1 flaky, 1 allowed failure, 1 not run in "), "{summary}");
    assert!(summary.contains("- `dates leap` at `tests/dates.rs:12`: `expected 29`\n"), "{summary}");
    assert_eq!(run.events().len(), 1);
}

#[test]
fn flags_that_have_no_use_for_a_plan_are_refused_and_no_verb_minds_not_to_be_asked() {
    for flag in ["--junit=a.xml", "--summary=a.md", "--output=all"] {
        lane("steps: [{ name: a, run: 'true' }]", &["--dry-run", flag]).run().must_exit(2);
    }
    for args in [
        &["list", "--ni"][..],
        &["show", "verify", "--non-interactive"],
        &["validate", "--ni"],
        &["init", "--print", "--ni"],
    ] {
        let fledge = Fledge::new().file("Cargo.toml", "[package]\nname = \"a\"\n");
        let run = fledge.args(&[&["lanes"], args].concat()).run();
        assert!(!run.stderr.contains("unexpected argument"), "{args:?}: {}", run.stderr);
    }
}

#[test]
fn a_lane_in_which_nothing_ran_says_so_in_every_form() {
    let none = "steps: [{ name: a, run: 'true', when: NEVER }]";
    let allowed = "steps: [{ name: a, run: exit 3, allow_failure: true }]";
    for (yaml, says) in [(none, "ran nothing"), (allowed, "ran no step that must pass")] {
        let run = lane(yaml, &["--json", "--junit=a.xml", "--summary=a.md"]).run();
        run.must_exit(1);
        assert!(run.stderr.contains(&format!("lane verify {says} (")), "{}", run.stderr);
        assert_eq!((&run.events()[0]["result"], &run.events()[0]["success"]), (&"nothing_ran".into(), &false.into()));
        assert!(run.file("a.xml").unwrap().contains(&format!("<error message=\"the lane {says}")));
        assert!(run.file("a.md").unwrap().starts_with(&format!("## ✗ lane `verify` {says}\n")));
    }
}

#[test]
fn how_many_steps_at_once_is_a_number_from_one_on() {
    let run = lane("steps: [{ name: a, run: 'true' }]", &["--jobs=0"]).run();
    run.must_exit(2);
    let says = "expected a whole number of at least 1; omit the flag for one step per core";
    assert!(run.stderr.contains(says), "{}", run.stderr);
}

#[test]
fn two_large_groups_in_sequence_are_shown_in_short() {
    long_test!();
    let group =
        |name: &str| (0..1000).map(|n| format!("{{ name: {name}{n}, run: 'true' }}")).collect::<Vec<_>>().join(", ");
    let yaml = format!("steps: [{{ parallel: [{}] }}, {{ parallel: [{}] }}]", group("a"), group("b"));
    let show = |args: &[&str]| {
        let run = Fledge::new().lane("verify", &yaml).args(&[&["lanes", "show", "verify"], args].concat()).run();
        run.must_exit(0);
        run
    };
    let data = show(&["--json"]);
    assert!(data.stdout.len() < 1 << 20, "{}", data.stdout.len());
    let shown = &data.events()[0];
    let last = &shown["commands"][1999];
    assert_eq!((&last["after"], &last["joints"]), (&serde_json::Value::Null, &serde_json::json!([0])));
    assert_eq!(shown["joints"][0]["after"].as_array().map(Vec::len), Some(1000));
    let text = show(&[]).stdout;
    assert!(text.ends_with(", a19 and 980 more]\n") && text.len() < 1 << 20, "{}", text.len());
}

#[test]
fn a_detected_lane_is_shown_as_data_too() {
    let fledge = Fledge::new().file("Makefile", "test:\n\ttrue\n").args(&["lanes", "show", "verify", "--json"]);
    let run = fledge.run();
    run.must_exit(0);
    let shown = &run.events()[0];
    assert_eq!((&shown["name"], &shown["detected"]), (&"verify".into(), &true.into()));
    assert_eq!(shown["commands"][0]["run"], "make test");
}
