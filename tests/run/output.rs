//! Tests of the output for people: quiet mode, plain text where no terminal draws colors, and
//! reports in the requested places.

use crate::support::{Fledge, Model, call, say, shell, write};
use serde_json::json;

#[test]
fn a_quiet_verified_run_prints_nothing() {
    long_test!();
    let model = Model::new([write("done", ""), say("Done.")]);
    let run = Fledge::simple(&model).arg("--quiet").run();
    run.must_be(0, "verified");
    assert_eq!((run.stdout.as_str(), run.stderr.as_str()), ("", ""));
}

#[test]
fn a_quiet_failed_run_prints_why_in_one_line() {
    let model = Model::new([say("Done.").always()]);
    let run = Fledge::simple(&model).arg("-q").arg("--max-retries=0").run();
    run.must_be(1, "gate_failed");
    assert_eq!(
        (run.stdout.as_str(), run.stderr.as_str()),
        ("", "✗ Failed after 1 attempt: verify/there; failed before any change, too: verify/there\n")
    );
}

#[test]
fn what_is_wrong_with_a_lane_is_drawn_when_a_run_cannot_be_planned() {
    let run = Fledge::new().lane("verify", "steps:\n  - { name: x, rn: y }\n").task("Do it.");
    let run = run.file("c.tape", "turns: []\n").args(&["run", "task.md", "--model", "cassette/c.tape", "-q"]).run();
    run.must_be_refused("lanes/verify.yaml:2:16");
    insta::assert_snapshot!(run.stderr);
    let said = run.stderr.clone();
    let plan = run.again(&["run", "task.md", "--model", "cassette/c.tape", "--dry-run"]).run();
    plan.must_exit(2);
    assert_eq!(plan.stderr, said);
    let wrong =
        plan.again(&["run", "task.md", "--model", "cassette/c.tape"]).file("c.tape", "turns:\n  - txt: a\n").run();
    wrong.must_exit(2);
    insta::assert_snapshot!(wrong.stderr);
}

#[test]
fn a_run_tells_its_story_on_standard_error_alone() {
    long_test!();
    let model = Model::new([write("done", "1\n").saying("Making it."), say("Done.")]);
    let run = Fledge::simple(&model).run();
    run.must_be(0, "verified");
    assert_eq!(run.stdout, "");
    for part in [
        "● attempt 1 of 4",
        "Making it.",
        "  write done +1 -0 (new)\n    + 1\n",
        "verify/there",
        "✓ Verified in ",
        "run      ",
        "next     fledge runs diff ",
    ] {
        assert!(run.stderr.contains(part), "{part:?} is not in {}", run.stderr);
    }
}

#[test]
fn a_commit_to_a_branch_is_offered_only_where_there_is_a_repository() {
    long_test!();
    let offers = |prepare: fn(Fledge) -> Fledge| {
        let model = Model::new([write("done", "1\n"), say("Done.")]);
        let run = prepare(Fledge::simple(&model)).run();
        run.must_be(0, "verified");
        assert!(run.stderr.contains("fledge runs diff last"), "{}", run.story());
        run.stderr.contains("fledge apply last --branch NAME")
    };
    assert_eq!((offers(|fledge| fledge), offers(Fledge::committed)), (false, true));
}

#[test]
fn tokens_that_no_provider_counted_are_shown_as_an_estimate() {
    let shown = |usage: &str| {
        let turns = format!("turns:\n  - text: I am done with all of it now.\n{usage}  - text: Done.\n");
        let args = ["run", "task.md", "--model", "cassette/c.tape", "--no-verify"];
        let run = Fledge::new().task("Do it.").file("c.tape", turns).args(&args).run();
        run.must_be(0, "skipped");
        run.stderr.lines().find(|line| line.contains("tokens")).unwrap().trim().to_owned()
    };
    let (counted, estimate) = (shown("    usage: { input: 1200, output: 80 }\n"), shown(""));
    assert!(counted.starts_with("tokens   1,200 in, 80 out") && !counted.contains("estimate"), "{counted}");
    assert!(estimate.contains(" in, 7 out (an estimate)"), "{estimate}");
}

#[test]
fn a_line_of_the_log_never_stands_behind_what_the_model_says() {
    let model = Model::new([write("done", "").saying("Making it."), say("Done.")]);
    let run = Fledge::simple(&model).arg("-v").run();
    run.must_be(0, "verified");
    let logged: Vec<&str> = run.stderr.lines().filter(|line| line.contains(" INFO ")).collect();
    assert!(!logged.is_empty() && logged.iter().all(|line| line.starts_with("20")), "{}", run.stderr);
    let said: String = run.stderr.lines().filter_map(|line| line.strip_prefix("│ ")).collect();
    assert_eq!(said, "Making it.Done.", "{}", run.stderr);
}

#[test]
fn pipes_and_no_color_have_no_escape_characters() {
    long_test!();
    for env in [("NO_COLOR", "1"), ("TERM", "xterm-256color"), ("TERM", "dumb"), ("CI", "true")] {
        let model = Model::new([call("files-read", json!({"path": "none"})), write("done", ""), say("Done.")]);
        let run = Fledge::simple(&model).env(env.0, env.1).arg("-vv").run();
        run.must_be(0, "verified");
        assert!(!run.story().contains('\u{1b}'), "{env:?}: {}", run.story());
    }
    let run = Fledge::new().env("NO_COLOR", "1").args(&["run", "--nonsense"]).run();
    assert!(!run.story().contains('\u{1b}'), "{}", run.story());
}

#[test]
fn colours_are_forced_or_forbidden_by_the_flag_and_else_by_the_environment() {
    for (flag, env, is_coloured) in [
        ("auto", ("CI", "true"), false),
        ("auto", ("FORCE_COLOR", "1"), true),
        ("auto", ("CLICOLOR_FORCE", "1"), true),
        ("auto", ("FORCE_COLOR", "0"), false),
        ("always", ("NO_COLOR", "1"), true),
        ("never", ("FORCE_COLOR", "1"), false),
    ] {
        let lane = Fledge::new().lane("verify", "steps: [{ name: a, run: 'true' }]");
        let run = lane.env(env.0, env.1).args(&["lanes", "run", "verify", "--color", flag]).run();
        run.must_exit(0);
        assert_eq!(run.stderr.contains('\u{1b}'), is_coloured, "{flag} {env:?}: {:?}", run.stderr);
    }
}

#[test]
fn what_others_say_moves_no_cursor_and_changes_no_title() {
    let evil = "\u{1b}]0;title\u{7}\u{1b}[2J\u{9b}31mred\u{202e}\r\u{8}";
    let model = Model::new([
        shell("printf '\\033[31mred\\033]0;x\\007\\n'").saying(evil),
        write(&format!("a{evil}"), evil),
        write("done", ""),
        say(evil),
    ]);
    let lane = "steps:\n  - run: \"printf '\\\\033[2Jbad\\\\007\\\\n'; test -f done\"\n";
    let fledge = |title: &str| {
        let task = format!("---\ntitle: \"{title}\"\n---\nDo it.");
        Fledge::simple(&model).lane("verify", lane).task(&task)
    };
    let run = fledge("a\\e[2Jb").run();
    run.must_be(0, "verified");
    let harmful = |c: char| c.is_control() && c != '\n' || c == '\u{202e}';
    assert!(!run.stderr.contains(harmful), "{:?}", run.stderr);
}

#[test]
fn errors_repeat_no_escape_characters_either() {
    let cases = [
        Fledge::new().task("---\n\"a\\e[2Jb\": 1\n---\nDo it."),
        Fledge::new().task("Do it.").arg("--model").arg("a\u{1b}[2Jb"),
        Fledge::new().task("Do it.").arg("--lane").arg("a\u{1b}[2Jb").arg("--dry-run"),
        Fledge::new().args(&["run", "a\u{1b}[2Jb.md"]),
        Fledge::new().args(&["lanes", "run", "a\u{1b}[2Jb"]),
        Fledge::new().args(&["a\u{1b}[2Jb"]),
    ];
    for fledge in cases {
        let run = fledge.run();
        run.must_exit(2);
        assert!(!run.story().contains('\u{1b}'), "{:?}", run.story());
    }
}

#[test]
fn the_report_is_written_where_it_is_wanted_too() {
    let model = Model::new([write("done", ""), say("Done.")]);
    let run = Fledge::simple(&model).file("report.json", "old").arg("--report").arg("report.json").run();
    let report = run.must_be(0, "verified");
    let copy: serde_json::Value = serde_json::from_str(&run.file("report.json").unwrap()).unwrap();
    assert_eq!(copy, report);
    assert_eq!((&report["schema_version"], &report["folder"]), (&json!(1), &json!(run.run_folder())));
}

#[test]
fn a_reader_that_goes_away_harms_no_run() {
    long_test!();
    let model = Model::new([write("done", ""), say("Done.")]);
    let run = Fledge::simple(&model).arg("--json").without_output_reader().run();
    run.must_be(0, "verified");
}
