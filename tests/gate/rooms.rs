//! Writes inside a room: how the sandbox and the gate treat them.

use crate::support::{BEHIND_LANDLOCK, Fledge, Model, Need, WITHOUT_LAYERS, say, shell, write};
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

/// Calls a function with the starters of programs for each kind of room: layers behind bubblewrap,
/// copies behind it, and copies behind Landlock.
fn in_each_kind_of_room(check: impl Fn(&[&str])) {
    check(&[]);
    if Command::new("unshare").args(["-rm", "true"]).status().is_ok_and(|it| it.success()) {
        [WITHOUT_LAYERS, BEHIND_LANDLOCK].into_iter().for_each(check);
    } else {
        Need::Landlock.lacks("no `unshare`");
    }
}

#[test]
fn what_one_step_makes_does_not_steer_the_next() {
    long_test!();
    let code = "echo x > pytest.ini";
    let model = Model::new([write("src/code.sh", code), say("Done."), say("Done.")]);
    let lane = "steps:\n  - { name: build, run: 'for code in src/*.sh; do . ./$code; done' }\n  - { name: test, run: 'ls | grep -q pytest.ini' }\n";
    let run = Fledge::simple(&model).file("src/code.sh", "true\n").lane("verify", lane).run();
    let report = run.must_be(6, "gate_tampered");
    let rule = "it controls how tests run; written in the room, seen after step `build` of lane `verify`";
    let finding = json!({"path": "pytest.ini", "change": "added", "rule": rule});
    assert_eq!(report["attempts"][0]["verdict"]["findings"], json!([finding]));
    assert_eq!(report["attempts"][0]["verdict"].get("proof"), None);
    let told = model.asked()[2].newest();
    assert!(told.contains("Code that the checks ran wrote these paths"), "{told}");
    assert_eq!(run.file("pytest.ini"), None);
}

#[test]
fn no_step_writes_a_manifest_even_where_a_later_one_puts_it_back() {
    let swap = "cp package.json kept; echo 'lint: cp kept package.json' > package.json";
    let model = Model::new([write("src/code.sh", swap), say("Done.")]);
    let lint = "sh -c \"$(sed -n 's/.*lint: //p' package.json)\"";
    let steps =
        json!([{"name": "build", "run": "for code in src/*.sh; do . ./$code; done"}, {"name": "lint", "run": lint}]);
    let run = Fledge::simple(&model).file("src/code.sh", "true\n").file("package.json", "{} // lint: false\n");
    let run = run.lane("verify", &json!({ "steps": steps }).to_string()).arg("--max-retries=0").run();
    let report = run.must_be(6, "gate_tampered");
    let rule = "it defines what the checks run; written in the room, seen after step `build` of lane `verify`";
    let finding = json!({"path": "package.json", "change": "changed", "rule": rule});
    assert_eq!(report["attempts"][0]["verdict"]["findings"], json!([finding]));
}

#[test]
fn tests_write_beside_themselves_whatever_the_agent_has_added() {
    long_test!();
    in_each_kind_of_room(|starter| {
        for added in ["true", "echo new > tests/new.sh", "mkdir -p tests/more; echo new > tests/more/data"] {
            let model = Model::new([shell(&format!("touch done; {added}")), say("Done.")]);
            let lane = "steps: [{ name: test, run: sh tests/check.sh }]";
            let check = "echo out > tests/out && echo out > tests/data/out && test -f done";
            let run = Fledge::simple(&model).file("tests/check.sh", check).file("tests/data/in", "in");
            run.lane("verify", lane).under(starter).run().must_be(0, "verified");
        }
    });
}

#[test]
fn a_room_is_a_layer_with_just_the_tree_of_the_work() {
    long_test!();
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
        ("mode", "test \"$(stat -c %a .)\" = 751".to_owned()),
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
    std::fs::set_permissions(run.workspace(), PermissionsExt::from_mode(0o751)).unwrap();
    run.lane("verify", &lane)
        .arg("--max-retries=0")
        .arg("--allow-edit=a")
        .arg("--allow-edit=run")
        .run()
        .must_be(0, "verified");
}

#[test]
fn tests_are_not_swapped_even_for_a_while() {
    long_test!();
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
fn folders_of_tests_are_neither_moved_nor_closed_even_for_a_while() {
    long_test!();
    in_each_kind_of_room(changes_of_folders_are_seen);
}

fn changes_of_folders_are_seen(starter: &[&str]) {
    let lane = "steps:\n  - { name: build, run: . src/code.sh }\n  - { name: test, run: 'for t in tests/*.sh; do test ! -f $t || sh $t || exit 1; done' }\n  \
                - { name: tidy, run: . src/end.sh }\n";
    let swap = "mv tests old && cp -R old tests && echo true > tests/check.sh";
    for (change, end) in
        [(swap, "rm -r tests; mv old tests"), ("chmod 0 tests", "true"), ("chmod 0 tests", "chmod 755 tests")]
    {
        let model = Model::new([
            write("src/code.sh", &format!("({change}) 2>/dev/null; true")),
            write("src/end.sh", &format!("test ! -e old || ({end}); true")),
            say("Done."),
        ]);
        let run = Fledge::simple(&model).file("tests/check.sh", "test -f done").file("src/code.sh", "true");
        let run = run.file("src/end.sh", "true").lane("verify", lane).arg("--max-retries=0").under(starter).run();
        // If a sandbox refuses the change, the test stays as it was and fails.
        assert!(matches!(run.code, Some(1 | 6)), "{change}: {}", run.story());
    }
}

#[test]
fn a_folder_whose_times_are_set_by_the_base_too_is_no_finding() {
    let lane = "steps: [{ name: test, run: 'touch tests; sh tests/check.sh' }]";
    let model = Model::new([shell("touch done"), say("Done.")]);
    let run = Fledge::simple(&model).file("tests/check.sh", "test -f done").lane("verify", lane).run();
    run.must_be(0, "verified");
}

#[test]
fn tests_write_their_own_data_where_they_do_so_on_the_base_and_leave_it_as_it_was() {
    long_test!();
    let lane = "steps: [{ name: test, run: sh tests/check.sh }]";
    let check = "cp tests/data/in copy && cat copy > tests/data/in && . ./code.sh && test -f done";
    let runs = |code: &str| {
        let model = Model::new([shell(&format!("touch done; {code}")), say("Done.")]);
        let run =
            Fledge::simple(&model).file("tests/check.sh", check).file("tests/data/in", "in").file("code.sh", "true");
        run.lane("verify", lane).arg("--max-retries=0").run()
    };
    runs("true").must_be(0, "verified");
    runs("echo 'echo other > tests/data/in' > code.sh").must_be(1, "gate_failed");
    runs("echo 'echo true > tests/check.sh' > code.sh").must_be(1, "gate_failed");
}

#[test]
fn a_check_is_not_swapped_also_where_the_base_writes_it() {
    let put_back = "(cat copy > tests/check.sh) 2>/dev/null";
    let lane = format!(
        "steps: [{{ name: test, run: 'cp tests/check.sh copy; {put_back}; . ./code.sh; sh tests/check.sh; code=$?; {put_back}; exit $code' }}]"
    );
    let model = Model::new([write("code.sh", "(echo true > tests/check.sh) 2>/dev/null; true"), say("Done.")]);
    let run = Fledge::simple(&model).file("tests/check.sh", "test -f done").file("code.sh", "true");
    run.lane("verify", &lane).arg("--max-retries=0").run().must_be(1, "gate_failed");
}

#[test]
fn rustup_installs_nothing_in_a_room_and_an_agent_has_what_its_user_has_set() {
    long_test!();
    let lane = "steps: [{ name: test, run: 'test \"$RUSTUP_AUTO_INSTALL\" = \"$(cat wanted)\" && grep -qx 1 done' }]";
    for (set, wanted) in [(None, "0"), (Some("1"), "1")] {
        let model = Model::new([shell("echo ${RUSTUP_AUTO_INSTALL:-1} > done"), say("Done.")]);
        let run = Fledge::simple(&model).file("wanted", wanted).lane("verify", lane).arg("--max-retries=0");
        let run = if let Some(value) = set { run.env("RUSTUP_AUTO_INSTALL", value) } else { run };
        run.run().must_be(0, "verified");
    }
}

#[test]
fn python_finds_no_compiled_tests_that_its_own_code_has_made() {
    long_test!();
    if !Need::has_program("pytest") {
        return;
    }
    let poison = "import os, sys\n\n\ndef half(n):\n    return n\n\n\nif 'pytest' in sys.modules:\n    import importlib.util, marshal, struct\n    \
        from _pytest.assertion.rewrite import PYC_TAIL\n    source = os.path.abspath('tests/test_half.py')\n    \
        at, told = os.path.dirname(source) + '/__pycache__', os.stat(source)\n    code = compile('def test_half():\\n    pass\\n', source, 'exec')\n    \
        head = importlib.util.MAGIC_NUMBER + struct.pack('<LLL', 0, int(told.st_mtime), told.st_size)\n    try:\n        \
        os.makedirs(at, exist_ok=True)\n        open(f'{at}/test_half' + PYC_TAIL, 'wb').write(head + marshal.dumps(code))\n    \
        except OSError:\n        pass\n";
    let first = "import half\n\n\ndef test_zero():\n    assert half.half(0) == 0\n";
    let test = "import half\n\n\ndef test_half():\n    assert half.half(4) == 2\n";
    let lane = "env: { PYTHONPATH: . }\nsteps: [{ name: test, run: pytest -q tests }]";
    let model = Model::new([write("half.py", poison), say("Done.")]);
    let run = Fledge::simple(&model).file("half.py", "def half(n):\n    return n\n").file("tests/test_a.py", first);
    let run = run.file("tests/test_half.py", test).lane("verify", lane).arg("--max-retries=0").run();
    run.must_be(1, "gate_failed");
}

#[test]
fn a_lane_that_writes_may_change_new_tests_beside_those_of_the_base() {
    long_test!();
    let model = Model::new([write("tests/new.t", "bad\n"), say("Done.")]);
    let tidy = "for file in tests/*.t; do if grep -q bad $file; then sed -i s/bad/good/ $file || exit 1; fi; done";
    let lane = format!("writes: true\nsteps: [{{ name: tidy, run: '{tidy}' }}]");
    let run = Fledge::simple(&model).file("tests/old.t", "good\n").lane("verify", &lane).run();
    let report = run.must_be(0, "verified");
    assert_eq!(run.file("tests/new.t").as_deref(), Some("good\n"));
    assert_eq!(report["warnings"], json!(["lane `verify` changed 1 file of the work: tests/new.t"]));
}

#[test]
fn of_what_a_lane_writes_its_own_lists_and_caches_are_left_out() {
    long_test!();
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
    for part in ["Put back: conftest.py", "Put back completely", "Still changed; remove or fix it yourself: .GIT"] {
        assert!(told.contains(part), "{part:?} is not in {told}");
    }
    let kept = run.run_folder().join("set-aside/attempt-1/Cargo.toml");
    assert!(std::fs::read_to_string(kept).unwrap().contains("profile.test"));
    let attempts: Vec<&Value> = report["attempts"].as_array().unwrap().iter().collect();
    assert_eq!(attempts.len(), 2);
}

#[test]
fn a_tree_that_failed_is_not_judged_until_it_passes() {
    long_test!();
    let lane = "steps: [{ name: test, run: test -f never }]";
    let words = [
        shell("touch done"),
        say("Done."),
        say("Done, I say."),
        shell("touch more"),
        say("Done."),
        shell("rm more"),
        say("Done."),
    ];
    let model = Model::new(words);
    let run = Fledge::simple(&model)
        .lane("verify", lane)
        .args(&["run", "task.md", "--max-retries=3", "--stuck-after=9"])
        .run();
    let report = run.must_be(1, "gate_failed");
    let feedback = |attempt: usize| report["attempts"][attempt]["verdict"]["feedback"].as_str().unwrap().to_owned();
    let is_as_before = |attempt: usize| feedback(attempt).starts_with("all files are as in attempt 1");
    assert_eq!([0, 1, 2, 3].map(is_as_before), [false, true, false, true], "{report}");
    let told = model.asked()[3].newest();
    assert!(told.contains("all files are as in attempt 1"), "{told}");
    assert!(told.contains("You finished with the same files on which the project's checks already failed."), "{told}");
    let line = "✗ not judged again: all files are as in attempt 1";
    assert!(run.stderr.lines().any(|printed| printed == line), "{}", run.story());
    assert_eq!(report["attempts"][1]["verdict"]["unchanged_since"], json!(1));
    let said = "attempt 4: all files are as in attempt 1, so the checks were not run again";
    assert!(report["warnings"].as_array().unwrap().iter().any(|warning| warning == said), "{report}");
}

#[test]
fn work_that_changes_nothing_is_not_judged_where_the_base_failed() {
    let lane = "steps: [{ name: test, run: cat /proc/sys/kernel/random/uuid; test -f done }]";
    let model = Model::new([say("Done."), shell("touch done"), say("Done.")]);
    let run = Fledge::simple(&model).lane("verify", lane).run();
    let report = run.must_be(0, "verified");
    let first = &report["attempts"][0]["verdict"];
    assert_eq!((&first["unchanged_since"], &first["steps"][0]["status"]), (&json!(0), &json!("failed")), "{report}");
    assert_eq!(first["failed_before"], json!(["verify/test"]));
    let told = model.asked()[1].newest();
    assert!(told.contains("no file differs from the base"), "{told}");
    let line = "✗ not judged again: no file differs from the base";
    assert!(run.stderr.lines().any(|printed| printed == line), "{}", run.story());
    let log = |of: &str| {
        let folder = run.run_folder().join("logs").join(of).join("verify");
        std::fs::read_to_string(folder.join("verify-01-test.log")).unwrap()
    };
    assert_eq!(log("base"), log("attempt-1"), "the checks ran for nothing");
    assert_ne!(log("base"), log("attempt-2"));
}

#[test]
fn a_wait_for_the_base_is_a_line_and_a_page_has_the_time_of_the_checks_that_ran() {
    long_test!();
    let model = Model::new([shell("touch done"), say("Done."), say("Done, I say.")]);
    let lane = "steps: [{ name: test, run: sleep 3; test -f never }]";
    let run = Fledge::simple(&model).lane("verify", lane).arg("--max-retries=1").arg("--summary=page.md").run();
    run.must_be(1, "gate_failed");
    let waits = run.stderr.lines().filter(|line| *line == "  waiting for the checks on the base").count();
    assert_eq!(waits, 1, "{}", run.story());
    let page = run.file("page.md").unwrap();
    assert!(page.contains("1 failed in ") && !page.contains("1 failed in 0."), "{page}");
}

#[test]
fn people_are_told_what_failed_before_any_change_too() {
    let model = Model::new([shell("touch done"), say("Done.")]);
    let lane = "steps: [{ name: lint, run: test -f never }, { name: test, run: test -f done }]";
    let run = Fledge::simple(&model).lane("verify", lane).arg("--max-retries=0").run();
    let report = run.must_be(1, "gate_failed");
    assert_eq!(report["warnings"], json!(["failed before any change, too: verify/lint"]));
    // Once during the run, and once at its end.
    assert_eq!(run.stderr.matches("failed before any change, too: verify/lint").count(), 2, "{}", run.story());
    assert_eq!(report["message"], json!("failed: verify/lint; failed before any change, too: verify/lint"));
    assert_eq!(report["attempts"][0]["verdict"]["failed_before"], json!(["verify/lint"]));
}

#[test]
fn a_checkout_that_was_changed_is_made_anew() {
    long_test!();
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
    // The incomplete copy was removed, so this run makes it again.
    let run = run.again(&clean).run();
    run.must_exit(0);
    let kept = |path: &str| {
        let script = format!("test -e */checkouts/*/{path}");
        Command::new("sh").args(["-c", &script]).current_dir(run.path("../state")).status().unwrap().success()
    };
    assert_eq!(["files/a", "whole", "files/.git"].map(kept), [true, true, false]);
}
