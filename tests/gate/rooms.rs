//! What the wall and the gate make together of what is written in a room.

use crate::support::{Fledge, Model, Need, say, shell, write};
use serde_json::{Value, json};
use std::process::Command;

#[test]
fn what_one_step_makes_does_not_steer_the_next() {
    let code = "echo x > pytest.ini";
    let model = Model::new([write("src/code.sh", code), say("Done."), say("Done.")]);
    let lane = "steps:\n  - { name: build, run: 'for code in src/*.sh; do . ./$code; done' }\n  - { name: test, run: 'ls | grep -q pytest.ini' }\n";
    let run = Fledge::simple(&model).file("src/code.sh", "true\n").lane("verify", lane).run();
    let report = run.must_be(6, "gate_tampered");
    let rule = "it steers the tests; written in the room, seen after step `build` of lane `verify`";
    let finding = json!({"path": "pytest.ini", "change": "added", "rule": rule});
    assert_eq!(report["attempts"][0]["verdict"]["findings"], json!([finding]));
    assert_eq!(report["attempts"][0]["verdict"].get("proof"), None);
    let told = model.asked()[2].newest();
    assert!(told.contains("It was written while the checks ran, by code that they run"), "{told}");
    assert_eq!(run.file("pytest.ini"), None);
}

#[test]
fn tests_write_beside_themselves_whatever_the_agent_has_added() {
    for added in ["true", "echo new > tests/new.sh", "mkdir -p tests/more; echo new > tests/more/data"] {
        let model = Model::new([shell(&format!("touch done; {added}")), say("Done.")]);
        let lane = "steps: [{ name: test, run: sh tests/check.sh }]";
        let check = "echo out > tests/out && echo out > tests/data/out && test -f done";
        let run = Fledge::simple(&model).file("tests/check.sh", check).file("tests/data/in", "in");
        run.lane("verify", lane).run().must_be(0, "verified");
    }
}

#[test]
fn a_room_is_a_layer_with_just_the_tree_of_the_work() {
    let work = "rm -r gone dir/one swap turn; mkdir -p swap new/deep; echo s > swap/in; echo t > turn; chmod +x run; \
                echo n > new/deep/n; echo A > a";
    let model = Model::new([shell(work), say("Done.")]);
    let files = "./a ./dir/two ./lanes/verify.yaml ./new/deep/n ./run ./swap/in ./task.md ./turn";
    let list =
        "find . -name .git -prune -o -type f -print | grep -v '^./\\(tasks\\|[.]\\)' | LC_ALL=C sort | tr '\\n' ' '";
    let steps = [
        ("files", format!("{list} | grep -qx '{files} ' || {{ {list}; false; }}")),
        ("clean", "test -z \"$(git status --porcelain)\"".to_owned()),
        ("content", "test \"$(cat a turn run)\" = \"$(printf 'A\\nt\\nr')\" -a -x run -a ! -x a".to_owned()),
        ("times", "test run -nt dir/two -a dir -nt dir/two -a a -nt dir/two".to_owned()),
        ("layer", "test \"$(stat -f -c %T .)\" = overlayfs".to_owned()),
    ];
    let steps = &steps[..steps.len() - usize::from(!Need::has_program("bwrap"))];
    let steps: Vec<Value> = steps.iter().map(|(name, run)| json!({"name": name, "run": run})).collect();
    let lane = json!({"steps": steps}).to_string();
    let mut run = Fledge::simple(&model);
    for (path, text) in [
        ("a", "a"),
        ("dir/one", "1"),
        ("dir/two", "2"),
        ("gone/x", "x"),
        ("gone/y/z", "z"),
        ("swap", "s"),
        ("turn/t", "t"),
        ("run", "r"),
    ] {
        run = run.file(path, text);
    }
    run.lane("verify", &lane)
        .arg("--max-retries=0")
        .arg("--allow-edit=a")
        .arg("--allow-edit=run")
        .run()
        .must_be(0, "verified");
}

#[test]
fn tests_are_not_swapped_even_for_a_while() {
    let swaps = [
        "mv tests old && cp -R old tests && echo true > tests/check.sh",
        "mv tests/check.sh old; echo true > tests/check.sh",
        "rm -f tests/check.sh; echo true > tests/check.sh",
        "echo true > x; ln -sf ../x tests/check.sh",
        "cp tests/check.sh x; echo true > tests/check.sh",
    ];
    for swap in swaps {
        for added in ["true", "echo new > tests/new.sh"] {
            let code = write("src/code.sh", &format!("({swap}) 2>/dev/null; true"));
            let model = Model::new([code, shell(added), say("Done.")]);
            let lane = "steps: [{ name: test, run: 'for code in src/*.sh; do . ./$code; done; sh tests/check.sh' }]";
            let run = Fledge::simple(&model).file("tests/check.sh", "test -f done").file("src/code.sh", "true");
            run.lane("verify", lane).arg("--max-retries=0").run().must_be(1, "gate_failed");
        }
    }
}

#[test]
fn a_lane_that_writes_may_change_new_tests_beside_those_of_the_base() {
    let model = Model::new([write("tests/new.t", "bad\n"), say("Done.")]);
    let tidy = "for file in tests/*.t; do if grep -q bad $file; then sed -i s/bad/good/ $file || exit 1; fi; done";
    let lane = format!("writes: true\nsteps: [{{ name: tidy, run: '{tidy}' }}]");
    let run = Fledge::simple(&model).file("tests/old.t", "good\n").lane("verify", &lane).run();
    let report = run.must_be(0, "verified");
    assert_eq!(run.file("tests/new.t").as_deref(), Some("good\n"));
    assert_eq!(report["warnings"], json!(["lane `verify` has changed 1 file of the work: tests/new.t"]));
}

#[test]
fn of_what_a_lane_writes_its_own_lists_and_caches_are_left_out() {
    let model = Model::new([shell("touch done"), say("Done.")]);
    let lane = "writes: true\ncache: [deps]\nsteps: [{ name: tidy, run: 'echo \"*.log\" > .gitignore; mkdir -p tmp; echo \"*\" > tmp/.gitignore; touch x.log y.txt tmp/z; rm -rf deps' }]";
    let run = Fledge::simple(&model).file("deps/kept", "1\n").lane("verify", lane).run();
    run.must_be(0, "verified");
    let files = ["x.log", "tmp", "y.txt", ".gitignore", "deps/kept"].map(|path| run.path(path).exists());
    assert_eq!(files, [false, false, true, true, true], "{}", run.story());
}

#[test]
fn what_was_tampered_with_is_told_once_with_what_became_of_it() {
    let change =
        "mkdir -p .GIT && touch .GIT/config conftest.py && printf '[profile.test]\\nopt-level = 1\\n' >> Cargo.toml";
    let model = Model::new([shell(change), say("Done."), shell("rm -r .GIT; touch done"), say("Done.")]);
    let run = Fledge::simple(&model).file("Cargo.toml", "[package]\nname = 'a'\nversion = '0.1.0'\n").run();
    let report = run.must_be(0, "verified");
    let told = model.asked()[2].newest();
    for part in ["Put back: conftest.py", "Put back whole", "Still there; remove or mend it yourself: .GIT"] {
        assert!(told.contains(part), "{part:?} is not in {told}");
    }
    let kept = run.run_folder().join("set-aside/attempt-1/Cargo.toml");
    assert!(std::fs::read_to_string(kept).unwrap().contains("profile.test"));
    let attempts: Vec<&Value> = report["attempts"].as_array().unwrap().iter().collect();
    assert_eq!(attempts.len(), 2);
}

#[test]
fn a_tree_that_failed_is_not_judged_until_it_passes() {
    let lane = "steps: [{ name: test, run: test -f never }]";
    let model = Model::new([shell("touch done"), say("Done."), say("Done, I say."), shell("touch more"), say("Done.")]);
    let run = Fledge::simple(&model).lane("verify", lane).arg("--max-retries=2").run();
    let report = run.must_be(1, "gate_failed");
    let feedback = |attempt: usize| report["attempts"][attempt]["verdict"]["feedback"].as_str().unwrap().to_owned();
    assert!(feedback(1).starts_with("no file has changed since attempt 1"), "{}", feedback(1));
    assert!(!feedback(2).starts_with("no file"), "{}", feedback(2));
    assert!(model.asked()[3].newest().contains("no file has changed since attempt 1"));
    let said = "attempt 2 has changed no file, so the checks were not run again";
    assert!(report["warnings"].as_array().unwrap().iter().any(|warning| warning == said), "{report}");
}

#[test]
fn people_are_told_what_failed_before_any_change_too() {
    let model = Model::new([shell("touch done"), say("Done.")]);
    let lane = "steps: [{ name: lint, run: test -f never }, { name: test, run: test -f done }]";
    let run = Fledge::simple(&model).lane("verify", lane).arg("--max-retries=0").run();
    let report = run.must_be(1, "gate_failed");
    assert_eq!(report["warnings"], json!(["failed before any change, too: verify/lint"]));
    assert!(run.stderr.contains("failed before any change, too: verify/lint"), "{}", run.story());
    assert_eq!(report["message"], json!("failed: verify/lint; failed before any change, too: verify/lint"));
    assert_eq!(report["attempts"][0]["verdict"]["failed_before"], json!(["verify/lint"]));
    assert!(
        run.stderr.lines().any(|line| line.starts_with("  before ") && line.ends_with("verify/lint")),
        "{}",
        run.story()
    );
}

#[test]
fn a_checkout_that_was_changed_is_made_anew() {
    if !Need::has_program("bwrap") {
        return Need::Sandbox.lacks("only behind bubblewrap are rooms layers over a checkout");
    }
    let clean = ["lanes", "run", "verify", "--clean"];
    let lane = r#"{"steps": [{"name": "test", "run": "test ! -e planted -a \"$(cat a)\" = a"}]}"#;
    let mut run = Fledge::new().file("a", "a\n").lane("verify", lane).args(&clean).run();
    run.must_exit(0);
    for change in ["echo b > a", "echo x > planted", "rm a", "mkdir -p .git/hooks", "rm ../whole"] {
        let script = format!("cd */checkouts/*/files && {change}");
        let state = run.path("../state");
        assert!(Command::new("sh").args(["-c", &script]).current_dir(state).status().unwrap().success());
        run = run.again(&clean).run();
        run.must_exit(0);
    }
    // The one that was not whole is gone, so that it is made anew.
    let run = run.again(&clean).run();
    run.must_exit(0);
    let kept = |path: &str| {
        let script = format!("test -e */checkouts/*/{path}");
        Command::new("sh").args(["-c", &script]).current_dir(run.path("../state")).status().unwrap().success()
    };
    assert_eq!(["files/a", "whole", "files/.git"].map(kept), [true, true, false]);
}
