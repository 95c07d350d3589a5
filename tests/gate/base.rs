//! The verdict on the base, judged during the agent's first turns: a lane that cannot run ends the
//! run early, and earlier failures are known.

use crate::support::{Fledge, Model, Need, hang, say, shell, write};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

#[test]
fn a_program_that_is_missing_ends_the_run_while_the_model_still_thinks() {
    for (step, said) in [
        ("no-such-linter .", "there is no program `no-such-linter`"),
        ("'true && no-such-linter .'", "there is no program `no-such-linter`; install it"),
    ] {
        let model = Model::new([hang().always()]);
        let lane = format!("steps: [{{ name: lint, run: {step} }}]");
        let ended = Fledge::simple(&model).lane("verify", &lane).run();
        let report = ended.must_be(5, "gate_errored");
        assert!(report["message"].as_str().unwrap().contains(said), "{}", report["message"]);
        let attempts = report["attempts"].as_array().unwrap().len();
        assert!((attempts, report["turns"].as_u64()) == (0, Some(0)) && model.count() <= 1, "{}", ended.story());
    }
}

#[test]
fn an_ignored_file_that_a_step_needs_ends_the_run_with_the_line_to_add() {
    long_test!();
    let run = |step: &str, model: &Model| {
        let lane = format!("steps: [{{ name: test, run: '{step}' }}]");
        let run = Fledge::simple(model).lane("verify", &lane).file(".gitignore", "local.json\n");
        run.file("local.json", "\"what it holds\"\n").committed()
    };
    let model = Model::new([hang().always()]);
    let ended = run("cat local.json", &model).run();
    let said = "step `test` of lane `verify` fails before any change because its room lacks files \
                that git ignores (local.json), and passes with them: add `include_ignored: [local.json]` to the lane";
    let report = ended.must_be(5, "gate_errored");
    assert!(report["message"].as_str().unwrap().contains(said), "{}", report["message"]);
    assert_eq!((&report["attempts"], &report["turns"]), (&json!([]), &json!(0)));
    // The verdict on the base is kept for other runs.
    let ended = ended.again(&["run", "task.md"]).anthropic(&Model::new([hang().always()])).run();
    ended.must_exit(5);
    assert!(ended.stderr.contains(said), "{}", ended.story());
    let always = ended.again(&["run", "task.md", "--baseline=always"]).anthropic(&Model::new([])).run();
    always.must_exit(5);
    assert!(always.stderr.contains(said), "{}", always.story());
    // A step that fails for another reason may also print that the file is missing.
    let model = Model::new([write("done", ""), say("Done.")]);
    let other = run("test -f done || { cat local.json; false; }", &model).run();
    other.must_be(0, "verified");
    let copies = other.traces().matches("what it holds").count();
    assert_eq!(copies, 1, "the file of the workspace is the only one: {}", other.story());
}

#[test]
fn a_step_that_passes_by_chance_beside_an_ignored_file_does_not_end_the_run() {
    long_test!();
    let counted = crate::support::temp_dir();
    let runs = counted.path().join("runs");
    let runs = runs.display();
    let step = format!("echo x >>{runs}; test $(wc -l <{runs}) -gt 1 || {{ cat local.json; exit 1; }}");
    let model = Model::new([write("done", ""), say("Done.")]);
    let run = Fledge::simple(&model).lane("verify", &format!("steps: [{{ name: test, run: '{step}' }}]"));
    let run = run.file(".gitignore", "local.json\n").file("local.json", "1").committed().arg("--sandbox=off");
    run.run().must_be(0, "verified");
}

#[test]
fn failures_of_the_base_are_told_before_the_first_attempt_ends() {
    long_test!();
    let model = Model::new([write("done", ""), say("Done.")]);
    let ended = Fledge::simple(&model).arg("--json").run();
    let report = ended.must_be(0, "verified");
    let told = json!("failed before any change: verify/there");
    let events = ended.events();
    let place = |wanted: &dyn Fn(&Value) -> bool| events.iter().position(wanted).expect("the event");
    let warned = place(&|event| event["data"] == told);
    assert!(warned < place(&|event| event["type"] == "verify_result"), "{}", ended.story());
    assert_eq!(report["warnings"], json!([]), "the work has mended what failed");
    assert!(ended.has_judged_base());
}

#[test]
fn fewer_tests_than_on_the_base_are_no_pass() {
    long_test!();
    let tests = "steps: [{ name: test, run: 'n=3; test ! -e done || n=2; echo \"test result: ok. $n passed; 0 failed; 0 ignored\"' }]";
    let model = Model::new([write("done", ""), say("Done.")]);
    let ended = Fledge::simple(&model).lane("verify", tests).arg("--max-retries=0").run();
    let report = ended.must_be(1, "gate_failed");
    assert!(report["message"].as_str().unwrap().contains("fewer tests ran than on the base: 2 of 3"), "{report}");
}

#[test]
fn a_runner_that_finds_no_test_is_no_pass_whatever_the_base_has() {
    long_test!();
    for baseline in ["auto", "never"] {
        let tests = "steps: [{ name: test, run: 'echo \"test result: ok. 0 passed; 0 failed; 0 ignored\"' }]";
        let model = Model::new([write("done", ""), say("Done.")]);
        let run = Fledge::simple(&model).lane("verify", tests).arg("--max-retries=0");
        let report = run.arg(&format!("--baseline={baseline}")).run().must_be(1, "gate_failed");
        assert!(report["message"].as_str().unwrap().contains("no test ran: "), "{report}");
    }
}

#[test]
fn a_base_is_judged_once_by_all_runs_that_begin_with_it() {
    long_test!();
    let counted = crate::support::temp_dir();
    let file = counted.path().join("runs");
    let lane = format!("steps:\n  - {{ name: count, run: 'echo x >>{}; test -f done' }}\n", file.display());
    let model = Model::thinking(|request, count| match request.to_string().contains("tool_result") {
        true => (Some(say("Done.")), count),
        false => (Some(write("done", "")), count),
    });
    let fledge = Fledge::new().lane("verify", &lane).anthropic(&model);
    let fledge = fledge.file("tasks/a.md", "Make the file `done`.").file("tasks/b.md", "Make the file `done`, too.");
    let ended = fledge.committed().args(&["run", "tasks", "-j2", "--sandbox=off"]).run();
    ended.must_exit(0);
    // Once for the base and once for each task.
    assert_eq!(std::fs::read_to_string(&file).unwrap().lines().count(), 3, "{}", ended.story());
}

#[test]
fn the_base_of_a_run_that_was_killed_is_judged_when_the_run_goes_on() {
    long_test!();
    let counted = crate::support::temp_dir();
    let file = counted.path().join("hang");
    std::fs::write(&file, "").unwrap();
    let lane = format!("steps: [{{ name: there, run: 'test -e {} && exec sleep 60; test -f done' }}]", file.display());
    let model = Model::new([shell("echo begun; sleep 60"), write("done", ""), say("Done.")]);
    let mut run = Fledge::simple(&model).lane("verify", &lane).arg("--json").arg("--sandbox=off").start();
    run.wait_for("{\"text\":\"begun");
    run.signal(Signal::KILL);
    let ended = run.end();
    assert!(!ended.has_judged_base(), "{}", ended.story());
    std::fs::remove_file(&file).unwrap();
    let ended = ended.again(&["runs", "resume", "last", "--json"]).anthropic(&model).run();
    ended.must_be(0, "verified");
    assert!(ended.has_judged_base(), "{}", ended.story());
}

#[test]
fn build_output_of_the_base_is_in_later_rooms_and_is_where_the_next_base_begins() {
    long_test!();
    let counted = crate::support::temp_dir();
    let file = counted.path().join("starts");
    // Imitates cargo: output stays in `target` and is not built again.
    let step = "if test -e target/made; then echo warm; else echo cold; fi >>STARTS; mkdir -p target/x; \
                touch target/made target/.rustc_info.json; test -f done # cargo";
    let lane = format!("steps: [{{ name: there, run: '{}' }}]", step.replace("STARTS", file.to_str().unwrap()));
    let starts = || std::fs::read_to_string(&file).unwrap().split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let model = || Model::new([write("done", "1\n"), say("Done.")]);
    let first = model();
    let ended = Fledge::simple(&first).lane("verify", &lane).file("Cargo.toml", "").arg("--sandbox=off").run();
    ended.must_be(0, "verified");
    assert_eq!(starts(), ["cold", "warm"]);
    std::fs::remove_file(ended.path("done")).unwrap();
    std::fs::write(ended.path("new.txt"), "another base").unwrap();
    let ended = ended.again(&["run", "task.md", "--sandbox=off"]).anthropic(&model()).run();
    ended.must_exit(0);
    assert_eq!(starts(), ["cold", "warm", "warm", "warm"]);
    // With bubblewrap the cache is a layer, and writes of a room to it are discarded.
    let step = "if test -e done; then test -e target/made && test ! -e target/mine && touch target/mine; \
                else mkdir -p target && touch target/made target/.rustc_info.json; fi # cargo";
    let lane = format!("steps: [{{ name: there, run: '{step}' }}]");
    let model = Model::new([write("done", "1\n"), say("Done.")]);
    Fledge::simple(&model).lane("verify", &lane).file("Cargo.toml", "").run().must_be(0, "verified");
}

#[test]
fn a_c_project_is_not_compiled_again_in_later_rooms_but_what_changed_is() {
    long_test!();
    if !Need::has_program("cmake") {
        return Need::Cmake.lacks("no cmake");
    }
    let counted = crate::support::temp_dir();
    let file = counted.path().join("compiled");
    let build = "cmake -B build -S . >/dev/null && cmake --build build >log; made=$?; grep -c Building log >>COMPILED; \
                 rm log; test $made = 0 && build/calc";
    let lane = format!("canary: none\nsteps: [{{ name: test, run: '{build}' }}]");
    let lane = lane.replace("COMPILED", file.to_str().unwrap());
    let list = "cmake_minimum_required(VERSION 3.10)\nproject(calc C)\nadd_executable(calc main.c add.c)\n";
    let main = "int add(int, int);\nint main(void) { return add(2, 3) != 5; }\n";
    let wrong = "int add(int a, int b) { return a - b; }\n";
    let model = Model::new([write("add.c", &wrong.replace('-', "+")), say("Done.")]);
    let fledge = Fledge::simple(&model).lane("verify", &lane).file("CMakeLists.txt", list).file("main.c", main);
    let ended = fledge.file("add.c", wrong).arg("--sandbox=off").run();
    ended.must_be(0, "verified");
    let compiled = fs::read_to_string(&file).unwrap();
    assert_eq!(compiled.split_whitespace().collect::<Vec<_>>(), ["2", "1"], "{}", ended.story());
}

#[test]
fn caches_of_tools_are_in_the_room_and_nothing_is_written_into_them() {
    long_test!();
    if !Need::has_program("bwrap") {
        return Need::Sandbox.lacks("only behind bubblewrap are there layers over caches");
    }
    for (cache, tool) in [(".cache/go-build", "go test"), (".cache/uv", "uv run"), (".gradle", "./gradlew")] {
        let step = format!(
            "test -e ~/{cache}/deep/there && touch ~/{cache}/deep/.lock && echo x > ~/{cache}/deep/there && test -f done # {tool}"
        );
        let model = Model::new([write("done", ""), say("Done.")]);
        let fledge = Fledge::simple(&model).lane("verify", &format!("steps: [{{ name: test, run: '{step}' }}]"));
        let ended = fledge.file(&format!("../home/{cache}/deep/there"), "").run();
        ended.must_be(0, "verified");
        assert!(!ended.path(&format!("../home/{cache}/deep/.lock")).exists(), "{cache}");
        assert_eq!(ended.file(&format!("../home/{cache}/deep/there")).as_deref(), Some(""), "{cache}");
    }
}

#[test]
fn a_pass_of_the_tree_on_which_the_checks_failed_is_none() {
    long_test!();
    let flag = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("passes-now-{}", std::process::id()));
    let path = flag.clone();
    let model = Model::thinking(move |_, count| {
        fs::write(&path, "").unwrap();
        (Some(if count == 1 { write("sum", "4 \n") } else { say("Done.") }), count)
    });
    // The formatter reverts everything that the agent wrote.
    let lane = format!(
        "writes: true\nsteps: [{{ name: format, run: echo 4 > sum }}, {{ name: now and then, run: 'test -e {}' }}]",
        flag.display()
    );
    // A sandbox could hide the folder of the flag.
    let args = ["run", "task.md", "--baseline=always", "--max-retries=0", "--sandbox=off"];
    let ended = Fledge::simple(&model).file("sum", "4\n").lane("verify", &lane).args(&args).run();
    fs::remove_file(flag).unwrap();
    let message = ended.must_be(1, "gate_failed")["message"].as_str().unwrap().to_owned();
    assert!(message.contains("no file differs from the base, on which these checks failed"), "{}", ended.story());
}
