//! Changes of protected paths: the result of a run names each path with its rule and the flag that
//! allows it.

use crate::support::{Fledge, Model, say, shell, words, write};
use serde_json::json;

#[test]
fn what_was_put_back_is_named_with_its_flag_also_where_the_run_is_verified() {
    long_test!();
    let model = Model::new([shell("touch done; echo more >> tests/a_test.sh"), say("Done."), say("As it was, then.")]);
    let ended = Fledge::simple(&model).file("tests/a_test.sh", "true\n").run();
    let report = ended.must_be(0, "verified");
    let rule = "it is a test of the base (new tests may be added)";
    let held =
        json!({ "path": "tests/a_test.sh", "change": "changed", "rule": rule, "flag": "--allow-edit tests/a_test.sh" });
    assert_eq!(report["protected"], json!([held]));
    let line = format!("findings tests/a_test.sh changed: {rule} (--allow-edit tests/a_test.sh allows it)");
    assert!(ended.stderr.contains(&line), "{}", ended.story());
    assert!(ended.stderr.contains("✓ Verified, without the restored changes, in "), "{}", ended.story());
    let hint = "to allow these findings, run the task again with --allow-edit tests/a_test.sh";
    assert!(ended.stderr.trim_end().ends_with(hint), "{}", ended.story());
    // The suggested flag allows the change.
    let model = Model::new([shell("touch done; echo more >> tests/a_test.sh"), say("Done.")]);
    let ended = Fledge::simple(&model).file("tests/a_test.sh", "true\n").arg("--allow-edit=tests/a_test.sh").run();
    assert_eq!(ended.must_be(0, "verified").get("protected"), None);
    assert_eq!(ended.file("tests/a_test.sh").as_deref(), Some("true\nmore\n"));
}

#[test]
fn hooks_of_git_are_put_back_wherever_the_configuration_leads_to_them() {
    long_test!();
    let hook = "#!/bin/sh\ntrue\n";
    let run = |included: bool| {
        let model = Model::new([shell("touch done; echo evil >> tools/git/pre-commit"), say("Done."), say("Well.")]);
        let fledge = Fledge::simple(&model).file("tools/git/pre-commit", hook).committed();
        let fledge = match included {
            true => fledge.file(".git/more", "[core]\n\thooksPath = ./tools/../tools/git\n").git(&[
                "config",
                "include.path",
                "more",
            ]),
            false => fledge.git(&["config", "core.hooksPath", "tools/git"]),
        };
        fledge.run()
    };
    for included in [false, true] {
        let ended = run(included);
        let report = ended.must_be(0, "verified");
        assert_eq!(report["protected"][0]["path"], "tools/git/pre-commit", "{}", ended.story());
        assert_eq!(report["protected"][0]["rule"], GIT_READS);
        assert_eq!(ended.file("tools/git/pre-commit").as_deref(), Some(hook));
    }
}

const GIT_READS: &str = "the git configuration refers to it, and git obeys it outside of any sandbox";
const GIT_RUNS: &str = "a git hook or the git configuration runs it";

#[test]
fn files_that_git_includes_or_runs_are_put_back() {
    long_test!();
    let include: &[&str] = &["config", "include.path", "../gitconf"];
    let hooks: &[&str] = &["config", "core.hooksPath", "hk"];
    let monitor: &[&str] = &["config", "core.fsmonitor", "./dev/fs.sh"];
    for (files, config, script, path, rule) in [
        (&[][..], include, "printf '[core]\\n\\thooksPath = evil\\n' > gitconf", "gitconf", GIT_READS),
        (
            &[(".git/hooks/pre-commit", "exec ./dev/lint.sh\n"), ("dev/lint.sh", "")],
            include,
            "echo evil > dev/lint.sh",
            "dev/lint.sh",
            GIT_RUNS,
        ),
        (
            &[(".gitignore", "hk/\n"), ("hk/pre-commit", "#!/bin/sh\n")],
            hooks,
            "echo evil > hk/pre-commit",
            "hk/pre-commit",
            GIT_READS,
        ),
        (&[("dev/fs.sh", "")], monitor, "echo evil > dev/fs.sh", "dev/fs.sh", GIT_RUNS),
    ] {
        let model = Model::new([shell(&format!("touch done; {script}")), say("Done."), say("Well.")]);
        let fledge = files.iter().fold(Fledge::simple(&model), |fledge, (path, text)| fledge.file(path, text));
        let ended = fledge.committed().git(config).run();
        let report = ended.must_be(0, "verified");
        assert_eq!(report["protected"][0]["path"], path, "{}", ended.story());
        assert_eq!(report["protected"][0]["rule"], rule, "{}", ended.story());
        let was = files.iter().find(|(own, _)| *own == path).map(|(_, text)| *text);
        assert_eq!(ended.file(path).as_deref(), was, "{}", ended.story());
    }
}

#[test]
fn a_refused_call_of_a_tool_is_named_where_the_gate_fails() {
    let model = Model::new([write("tests/new [a].sh", "x"), write("lanes/verify.yaml", "steps: []"), say("I cannot.")]);
    let ended = Fledge::simple(&model).arg("--max-retries=0").run();
    let report = ended.must_be(1, "gate_failed");
    let held = json!({ "path": "lanes/verify.yaml", "change": "refused", "rule": "it defines the gate", "flag": "--allow-edit lanes/verify.yaml" });
    assert_eq!(report["protected"], json!([held]));
    assert!(ended.stderr.contains("findings lanes/verify.yaml refused: it defines the gate"), "{}", ended.story());
}

#[test]
fn the_product_that_a_step_runs_can_be_mended() {
    long_test!();
    let lane = "steps: [{ name: run, run: 'python3 app.py | grep -q hello' }]";
    let model = Model::new([write("app.py", "print('hello')\n"), say("Done.")]);
    let ended = Fledge::simple(&model).file("app.py", "print('hallo')\n").lane("verify", lane).run();
    ended.must_be(0, "verified");
}

#[test]
fn a_socket_of_the_users_that_git_ignores_ends_no_run() {
    let model = Model::new([shell("touch begun; until test -e go; do sleep 0.01; done; touch done"), say("Done.")]);
    let run = Fledge::simple(&model).file(".gitignore", "run/\n").start();
    let workspace = run.place().join("workspace");
    run.until(|| workspace.join("begun").exists());
    std::fs::create_dir(workspace.join("run")).unwrap();
    let _of_the_user = std::os::unix::net::UnixListener::bind(workspace.join("run/app.sock")).unwrap();
    std::fs::write(workspace.join("go"), "").unwrap();
    let ended = run.end();
    let report = ended.must_be(0, "verified");
    assert_eq!(report["outside_tree"]["ignored"][0]["path"], "run/app.sock", "{}", ended.story());
}

#[test]
fn a_run_that_ends_for_a_new_file_names_the_flag_that_lets_it_through() {
    long_test!();
    let model = Model::new([shell("touch done; echo x > conftest.py"), say("Done.")]);
    let files = |model: &Model| Fledge::simple(model).file("tests/test_a.py", "").file("a.py", "");
    let ended = files(&model).arg("--on-tamper=fail").run();
    let report = ended.must_be(6, "gate_tampered");
    assert_eq!(report["message"], "protected paths were changed: conftest.py", "{}", ended.story());
    assert!(ended.stderr.contains("run the task again with --allow-edit conftest.py\n"), "{}", ended.story());
    let model = Model::new([shell("touch done; echo x > conftest.py"), say("Done.")]);
    files(&model).arg("--on-tamper=fail").arg("--allow-edit=conftest.py").run().must_be(0, "verified");
}

#[test]
fn a_change_to_a_src_layout_passes_with_the_flag_that_the_message_names() {
    long_test!();
    let manifest = "[project]\nname = \"calc\"\nversion = \"0.1.0\"\n";
    let change = "mkdir src; mv calc.py src/; printf '[tool.pytest.ini_options]\\npythonpath = [\"src\"]\\n' >>pyproject.toml; touch done";
    let files = |model: &Model| {
        Fledge::simple(model).file("pyproject.toml", manifest).file("calc.py", "x = 1\n").file("tests/test_calc.py", "")
    };
    let model = Model::new([shell(change), say("Done."), say("As it was, then.")]);
    let ended = files(&model).run();
    let report = ended.must_be(0, "verified");
    assert_eq!(report["protected"][0]["flag"], "--allow-edit pyproject.toml", "{}", ended.story());
    let model = Model::new([shell(change), say("Done.")]);
    let ended = files(&model).arg("--allow-edit=pyproject.toml").run();
    ended.must_be(0, "verified");
    assert!(ended.file("pyproject.toml").unwrap().contains("pythonpath"), "{}", ended.story());
}

#[test]
fn a_run_whose_whole_work_was_put_back_is_not_verified_and_names_all_flags() {
    long_test!();
    let model =
        Model::new([shell("echo 'x: ; true' >>Makefile; echo '[pytest]' >pytest.ini"), say("Done."), say("Well.")]);
    let place = Fledge::simple(&model).lane("verify", "steps: [{ name: all, run: make all }]");
    let ended = place.file("Makefile", "all: ; true\n").run();
    let report = ended.must_be(6, "gate_tampered");
    let why = "all of the work was reverted, because its paths are protected: Makefile, pytest.ini";
    assert_eq!(report["message"], why, "{}", ended.story());
    let hint = "run the task again with --allow-edit Makefile --allow-edit pytest.ini";
    assert!(ended.stderr.trim_end().ends_with(hint), "{}", ended.story());
}

#[test]
fn work_that_would_run_later_is_put_back_also_where_git_ignores_it() {
    long_test!();
    let later = "mkdir -p tasks/own; for f in task.md tasks/up.md tasks/own/x.md; do printf -- '---\\nlane: false\\n---\\nx\\n' >$f; done";
    let model =
        Model::new([shell(&format!("echo up.md >>.gitignore; {later}; touch done")), say("Done."), say("Well.")]);
    let place = Fledge::simple(&model).file(".gitignore", "/tasks/own/\n").task("Make the file `done`.");
    let ended = place.run();
    let report = ended.must_be(0, "verified");
    let mut paths = words(report["protected"].as_array().unwrap().iter().map(|held| &held["path"]));
    paths.sort_unstable();
    assert_eq!(paths, ["task.md", "tasks/own/x.md", "tasks/up.md"], "{report}");
    assert!(!ended.path("tasks/up.md").exists() && !ended.path("tasks/own/x.md").exists(), "{}", ended.story());
    assert_eq!(ended.file("task.md").as_deref(), Some("Make the file `done`."));
}

#[test]
fn a_run_without_what_the_task_asks_for_is_not_verified() {
    long_test!();
    let change = "printf 'fmt: ; true\\n' >>Makefile; touch done notes";
    let runs = |task: &str| {
        let model = Model::new([shell(change), say("Done."), say("Well.")]);
        let lane = "steps: [{ name: all, run: make all }]";
        Fledge::simple(&model).lane("verify", lane).file("Makefile", "all: ; true\n").task(task).run()
    };
    let asked = runs("Add a target `fmt` to the Makefile.");
    let report = asked.must_be(6, "gate_tampered");
    let why = "what the task asks for was reverted, because its paths are protected: Makefile";
    assert_eq!(report["message"], why, "{}", asked.story());
    assert!(asked.stderr.trim_end().ends_with("run the task again with --allow-edit Makefile"), "{}", asked.story());
    runs("Make the file `done`; `make all` of the Makefile must pass.").must_be(0, "verified");
}

#[test]
fn a_run_whose_whole_work_was_refused_is_not_verified() {
    long_test!();
    let model = Model::new([write("lanes/verify.yaml", "steps: [{ run: 'true' }]\n"), say("Done.")]);
    let ended = Fledge::simple(&model).lane("verify", "steps: [{ name: all, run: 'true' }]").run();
    let report = ended.must_be(6, "gate_tampered");
    let why = "all of the work was refused, because its paths are protected: lanes/verify.yaml";
    assert_eq!(report["message"], why, "{}", ended.story());
    assert!(ended.stderr.contains("run the task again with --allow-edit lanes/verify.yaml"), "{}", ended.story());
    let lanes = "steps: [{ name: all, run: 'true' }]";
    let model = Model::new([write("lanes/verify.yaml", "x"), write("done", ""), say("Done.")]);
    Fledge::simple(&model).lane("verify", lanes).run().must_be(0, "verified");
}

#[test]
fn what_configures_a_tool_that_no_command_names_is_the_work_with_a_warning() {
    let model = Model::new([shell("touch done; echo 'line-length = 100' >ruff.toml"), say("Done.")]);
    let ended = Fledge::simple(&model).run();
    let report = ended.must_be(0, "verified");
    let warnings = report["warnings"].to_string();
    assert!(warnings.contains("ruff.toml added: it configures ruff, which no command of the base runs"), "{warnings}");
    assert!(ended.file("ruff.toml").is_some(), "{}", ended.story());
}

#[test]
fn a_makefile_target_that_no_command_uses_may_change_and_others_are_restored() {
    long_test!();
    let lane = "steps: [{ name: check, run: sh scripts/check.sh }]";
    let base = "check:\n\ttest -f done\n";
    let run = |makefile: &str| {
        let model =
            Model::new([write("Makefile", makefile), shell("touch done"), say("Done."), say("As it was, then.")]);
        let fledge = Fledge::simple(&model).lane("verify", lane).file("Makefile", base);
        fledge.file("scripts/check.sh", "test -f done || make check\n").run()
    };
    let more = format!("{base}\nshow:\n\tcat done\n");
    let ended = run(&more);
    let report = ended.must_be(0, "verified");
    let warnings = report["warnings"].to_string();
    assert!(warnings.contains("Makefile changed: show, which no command of the base uses"), "{warnings}");
    assert_eq!((report.get("protected"), ended.file("Makefile")), (None, Some(more)), "{}", ended.story());
    let ended = run("check:\n\ttrue\n");
    assert_eq!(ended.must_be(0, "verified")["protected"][0]["path"], "Makefile", "{}", ended.story());
    assert_eq!(ended.file("Makefile").as_deref(), Some(base));
}

#[test]
fn a_large_document_is_work_like_any_other() {
    long_test!();
    let model = Model::new([shell("touch done; yes more | head -c 2000000 >>NOTES.md"), say("Done.")]);
    let ended = Fledge::simple(&model).file("NOTES.md", "# Notes\n").run();
    ended.must_be(0, "verified");
    assert!(ended.file("NOTES.md").is_some_and(|text| text.len() > 2_000_000), "{}", ended.story());
}

/// Copies the project's test report, as a runner would write it.
const REPORTS: &str = "steps: [{ name: test, run: 'cat results/*.xml > report.xml', junit: report.xml }]";

fn tests(names: &[&str]) -> String {
    let cases: Vec<String> = names.iter().map(|name| format!("<testcase name=\"{name}\"/>")).collect();
    format!("<testsuite>{}</testsuite>\n", cases.concat())
}

#[test]
fn tests_that_an_opened_file_has_no_more_are_a_warning_and_others_are_missed() {
    long_test!();
    let run = |flag: Option<&str>| {
        let less = tests(&["adds", "halves"]);
        let model = Model::new([shell(&format!("printf '{less}' > results/t.xml")), say("Done."), say("Well.")]);
        let fledge = Fledge::simple(&model).lane("verify", REPORTS).file("results/t.xml", tests(&["adds", "doubles"]));
        flag.into_iter().fold(fledge.arg("--max-retries=0"), Fledge::arg).run()
    };
    let told = "verify/test: tests of the base did not run: doubles";
    let ended = run(Some("--allow-edit=results/t.xml"));
    ended.must_be(0, "verified");
    assert!(ended.stderr.contains(&format!("allow_edit: {told}")), "{}", ended.story());
    for flag in [None, Some("--allow-edit=other/**")] {
        let ended = run(flag);
        let report = ended.must_be(1, "gate_failed");
        let feedback = report["attempts"][0]["verdict"]["feedback"].as_str().unwrap();
        let remedy = "if the task moves, renames or removes these tests, use --allow-edit results/t.xml";
        assert!(feedback.contains(told) && feedback.contains(remedy), "{feedback}");
    }
}

#[test]
fn a_library_that_a_check_reads_can_be_mended_and_a_warning_says_so() {
    let lane = "steps: [{ name: check, run: sh scripts/check.sh }]";
    let model = Model::new([write("lib/total.sh", "total() { echo $(($1 + $2)); }\n"), say("Done.")]);
    let fledge = Fledge::simple(&model).file("lib/total.sh", "total() { echo $(($1 - $2)); }\n").lane("verify", lane);
    let ended = fledge.file("scripts/check.sh", ". lib/total.sh\ntest \"$(total 2 3)\" = 5\n").run();
    ended.must_be(0, "verified");
    assert!(ended.stderr.contains("lib/total.sh changed: a check of the gate reads it"), "{}", ended.story());
}
