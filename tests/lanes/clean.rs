//! `fledge lanes run --clean`: a lane run by hand in the room that the gate would use.

use crate::support::{Ended, Fledge, running_with, unique};
use serde_json::Value;

fn clean(lane: &str) -> Fledge {
    Fledge::new().lane("verify", lane).args(&["lanes", "run", "verify", "--clean"])
}

/// Returns the rooms and caches that remain in the state folder.
fn rooms(ended: &Ended) -> Vec<String> {
    let traces = ended.traces();
    let names = traces.lines().filter_map(|line| line.strip_prefix("--- "));
    names.filter(|name| name.contains("/rooms/") || name.contains("/caches/")).map(str::to_owned).collect()
}

#[test]
fn only_the_tree_is_there_and_what_is_written_is_gone() {
    let lane = "steps:\n  - { name: tree, run: test -f new && test ! -e dropped }\n  - { name: write, run: 'mkdir build && touch build/x' }\n";
    let place = clean(lane).file("new", "").file(".gitignore", "dropped\nbuild\n").file("dropped", "");
    let ended = place.run();
    ended.must_exit(0);
    assert!(
        ended.stderr.contains("note: tree ") && ended.stderr.contains(" in a clean room, sandbox "),
        "{}",
        ended.story()
    );
    assert!(!ended.path("build").exists() && ended.runs().is_empty(), "{}", ended.story());
    assert_eq!(rooms(&ended), [""; 0]);
    let in_place = ended.again(&["lanes", "run", "verify"]).run();
    in_place.must_exit(1);
}

#[test]
fn the_mounts_of_control_groups_are_those_that_a_program_sees_by_hand() {
    let step = "cut -d ' ' -f 4 /proc/self/mountinfo >roots; ! grep -q '^/[.][.]' roots";
    clean(&format!("steps: [{{ run: \"{step}\" }}]")).run().must_exit(0);
}

#[test]
fn it_has_the_environment_and_the_hiding_places_of_a_gate() {
    let secret = unique();
    let lane = "steps:\n  - { name: env, run: 'test -z \"$MY_VALUE$MY_PASSWORD\"' }\n  - { name: home, run: 'test ! -e \"$HOME/diary\"' }\n";
    let place = clean(lane).env("MY_VALUE", &secret).file("../home/diary", "secret");
    place.run().must_exit(1);
    clean(lane).env("MY_PASSWORD", &secret).file("../home/diary", "secret").run().must_exit(0);
    let off = Fledge::new().lane("verify", lane).file("../home/diary", "secret").args(&["lanes", "run", "verify"]);
    let off = off.arg("--clean").arg("--sandbox=off").run();
    off.must_exit(0);
    off.again(&["lanes", "run", "verify"]).run().must_exit(1);
}

#[test]
fn a_dry_run_names_the_variables_that_steps_do_not_have() {
    let dry = |args: &[&str]| {
        let lane = Fledge::new().lane("verify", "steps: [run: 'true']\n").env("DEPLOY_TOKEN", "t-1").env("MINE", "m");
        let run = lane.args(&[&["lanes", "run", "verify", "--dry-run"], args].concat()).run();
        run.must_exit(0);
        run.stdout
    };
    let told = dry(&["--clean"]);
    let line = told.lines().find(|line| line.contains("variables hidden from its steps: ")).expect(&told);
    assert!(line.contains("DEPLOY_TOKEN") && !line.contains("MINE") && !told.contains("t-1"), "{told}");
    assert!(!dry(&[]).contains("DEPLOY_TOKEN"));
    assert!(dry(&["--clean", "--json"]).contains("\"DEPLOY_TOKEN\""));
}

#[test]
fn a_dry_run_says_what_the_room_has() {
    let lane = "cache: [out]\ninclude_ignored: [.env.test]\nsteps: [run: 'sh t.sh && no-such-program']\n";
    let dry =
        Fledge::new().lane("verify", lane).file(".gitignore", ".env.test\nnode_modules\n").file("package.json", "{}");
    let dry = dry.file(".env.test", "").file("node_modules/a/x", "").committed();
    let dry = dry.args(&["lanes", "run", "verify", "--clean", "--dry-run"]).run();
    dry.must_exit(0);
    for line in [
        "installed dependencies in its room: node_modules",
        "ignored files in its room: .env.test",
        "caches in its room: out",
        "network: none",
        "no-such-program (not found), sh (/",
    ] {
        assert!(dry.stdout.contains(line), "{line}: {}", dry.story());
    }
    let data = dry.again(&["lanes", "run", "verify", "--clean", "--dry-run", "--json"]).run();
    let data: Value = serde_json::from_str(&data.stdout).unwrap();
    assert_eq!(data["room"]["dependencies"], serde_json::json!(["node_modules"]));
    let place = data["room"]["programs"]["sh"].as_str().unwrap();
    assert!(place.ends_with("/sh") && data["room"]["network"] == false, "{data}");
}

#[test]
fn its_setup_makes_it_ready_and_fills_its_caches() {
    let lane = "setup: [{ run: 'mkdir deps && echo 3 > deps/sum' }]\ncache: [deps]\nsteps: [{ name: sum, run: grep -q 3 deps/sum }]\n";
    let ended = clean(lane).file(".gitignore", "deps\n").run();
    ended.must_exit(0);
    assert!(ended.stderr.contains("note: first its setup, without output: 1 step"), "{}", ended.story());
    assert!(rooms(&ended).is_empty() && !ended.path("deps").exists(), "{:?}", rooms(&ended));
    let fails = clean("setup: [{ name: fetch, run: 'echo no such host; false' }]\nsteps: [run: 'true']\n").run();
    fails.must_exit(5);
    assert!(fails.stderr.contains("the setup of lane `verify` failed: step `fetch`"), "{}", fails.story());
    assert!(fails.stderr.contains("no such host"), "{}", fails.story());
}

#[test]
fn a_pass_that_the_gate_would_not_take_is_none() {
    long_test!();
    let canary = "canary: { file: checks/planted, text: fails }\n";
    let blind = format!("{canary}steps: [{{ name: test, run: 'true' }}]\n");
    let seeing = format!("{canary}steps: [{{ name: test, run: '! grep -rq fails checks' }}]\n");
    let writes = "steps: [{ name: format, run: 'for file in *.txt; do echo formatted > \"$file\"; done' }]\n";
    let covers = "steps: [{ name: prepare, run: 'for file in *.txt; do rm $file && mkdir $file && touch $file/x || exit 1; done' }]\n";
    let ended = clean(&seeing).file("checks/one", "").run();
    ended.must_exit(0);
    let empty = "steps: [{ name: test, run: 'echo \"test result: ok. 0 passed; 0 failed;\"' }]\n";
    let without =
        "steps: [{ name: test, run: 'printf \"?   \\tm\\t[no test files]\\n\"; echo no tests ran in 0.01s' }]\n";
    let contradicts = "steps: [{ name: test, run: 'echo \"test result: FAILED. 2 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out\"' }]\n";
    let half = "steps: [{ name: unit, run: echo 3 passed in 0.1s }, { name: e2e, run: echo no tests ran in 0.01s }]\n";
    for (lane, why) in [
        (half, "verify/e2e: its test runner found no test; add one, or remove the step"),
        (contradicts, "verify/test: the step passed although its test output reports failures"),
        (without, "no test ran: the test runners found none; add a test, or remove their steps from the lane"),
        (empty, "no test ran: the test runners found none; add a test, or remove their steps from the lane"),
        (
            blind.as_str(),
            "it did not report a planted failing test: its tests are silenced, or its `canary` plants a kind of test that the lane does not run",
        ),
        (writes, "it changed files that it judges, without `writes: true`: a.txt"),
        (covers, "it changed files that it judges, without `writes: true`: a.txt"),
    ] {
        let ended = clean(lane).file("checks/one", "").file("a.txt", "a\n").arg("--json").run();
        ended.must_exit(1);
        assert!(ended.stderr.contains(why) && ended.stderr.contains("would fail as a gate"), "{}", ended.story());
        let data: Value = serde_json::from_str(&ended.stdout).unwrap();
        assert_eq!(
            (&data["result"], &data["room"]["doubts"][0], &data["exit_code"]),
            (&"failed".into(), &why.into(), &1.into())
        );
        assert_eq!(ended.file("a.txt").as_deref(), Some("a\n"));
    }
    let part = clean(&blind).file("checks/one", "").arg("--only=test").run();
    part.must_exit(0);
    let part = clean(half).file("checks/one", "").arg("--only=e2e").run();
    part.must_exit(0);
}

#[test]
fn a_step_may_write_again_what_is_not_protected_and_stays_the_same() {
    long_test!();
    // The pattern keeps the script from naming the files: files that a step names are protected.
    let again = |files: &str, more: &str| {
        let run =
            format!("for file in {files}; do cp $file kept && (cat kept; printf \"{more}\") > $file && rm kept; done");
        let lane = format!("steps: [{{ name: again, run: '{run}' }}]\n");
        let place = clean(&lane).file("a.txt", "a\n").file("package.json", "{}\n").file("tests/data.json", "{}\n");
        place.arg("--sandbox=off").run()
    };
    for files in ["*.txt", "p*.json"] {
        again(files, "").must_exit(0);
        again(files, "b").must_exit(1);
    }
    let ended = again("tests/*", "");
    ended.must_exit(1);
    assert!(ended.stderr.contains("`tests/data.json` is protected (it is a test of the base"), "{}", ended.story());
}

#[test]
fn all_that_a_lane_by_hand_gives_out_it_gives_out_too() {
    let lane = "steps:\n  - { name: fine, run: 'true' }\n  - { name: broken, run: 'echo it is broken; exit 3' }\n";
    let ended =
        clean(lane).args(&["lanes", "run", "verify", "--clean", "--json", "--junit=j.xml", "--summary=s.md"]).run();
    ended.must_exit(1);
    let data: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!((&data["result"], &data["room"]["kind"]), (&"failed".into(), &"clean".into()));
    assert_eq!(data["room"]["tree"].as_str().map(str::len), Some(40));
    assert!(ended.stderr.contains("it is broken"), "{}", ended.story());
    assert!(ended.file("j.xml").unwrap().contains("broken") && ended.file("s.md").unwrap().contains("broken"));
    let nowhere = ended.again(&["lanes", "run", "verify", "--clean", "--junit=no/such/folder/j.xml"]).run();
    nowhere.must_exit(2);
    let missing = clean("steps: [{ name: a, run: no-such-program }]\n").run();
    missing.must_exit(5);
    let flag = clean(lane).args(&["lanes", "run", "verify", "--sandbox=off"]).run();
    assert!(flag.code == Some(2) && flag.stderr.contains("--clean"), "{}", flag.story());
}

#[test]
fn a_stop_leaves_neither_processes_nor_rooms() {
    let number = unique();
    let mut running = clean(&format!("steps: [{{ name: wait, run: 'echo begun; sleep {number}' }}]\n"))
        .args(&["lanes", "run", "verify", "--clean", "--json=events"])
        .start();
    running.wait_for("begun");
    running.signal(rustix::process::Signal::TERM);
    let ended = running.end();
    ended.must_exit(143);
    assert_eq!((running_with(&number), rooms(&ended)), (Vec::<String>::new(), Vec::new()));
}

#[test]
fn a_fledge_inside_of_the_workspace_is_told_instead_of_a_lane_that_could_not_run() {
    long_test!();
    let inner = ["sh", "-c", "cp \"$0\" inner && exec ./inner \"$@\""];
    let place = clean("steps: [run: 'true']\n").under(&inner).run();
    place.must_exit(5);
    assert!(place.stderr.contains("is inside the workspace, where an agent could change it"), "{}", place.story());
    assert!(place.stderr.contains("run a copy outside the workspace"), "{}", place.story());
    let told = place.again(&["doctor"]).under(&inner).run();
    assert!(told.stdout.contains("is inside the workspace"), "{}", told.story());
}

#[test]
fn the_closing_lines_say_what_the_room_lacks_and_so_does_doctor() {
    long_test!();
    let lane = "fail_fast: false\nsteps:\n  - { name: file, run: cat .env.test }\n  - { name: key, run: 'test -n \"$DEPLOY_TOKEN\"' }\n  - { name: other, run: 'test -f dropped.bin || { echo dropped.bin: not found; exit 1; }' }\n";
    let place =
        clean(lane).file(".gitignore", ".env.test\ndropped.bin\n").file(".env.test", "A=1\n").file("dropped.bin", "");
    let place = place.committed().env("DEPLOY_TOKEN", "t-1");
    let ended = place.arg("--json").run();
    ended.must_exit(1);
    let said = [
        "step `file` reads files that git ignores and the room lacks: .env.test; add `include_ignored: [.env.test]`",
        "step `key` names variables that gate steps do not get, because they may be secrets: DEPLOY_TOKEN",
        "step `other` reads files that git ignores and the room lacks: dropped.bin",
    ];
    for said in said {
        assert!(ended.stderr.contains(said), "{said}: {}", ended.story());
    }
    let closing: Vec<&str> = ended.stderr.trim_end().lines().rev().take(3).collect();
    assert!(closing.iter().all(|line| line.starts_with("note: step `")), "{}", ended.story());
    assert!(ended.stdout.contains("include_ignored: [.env.test]"), "{}", ended.story());
    let doctor = ended.again(&["doctor"]).run();
    assert!(doctor.stdout.contains("verify: step `file` names `.env.test`, which git ignores"), "{}", doctor.story());
    let last = "verify: the last run in a clean room failed: ";
    let told = |doctor: &Ended| doctor.stdout.lines().find(|line| line.contains(last)).map(str::to_owned);
    let line = told(&doctor).unwrap_or_else(|| panic!("{}", doctor.story()));
    assert!(said.iter().all(|said| line.contains(said)), "{line}");
    let by_hand = doctor.again(&["lanes", "run", "verify"]).env("DEPLOY_TOKEN", "t-1").run();
    by_hand.must_exit(0);
    let note = "note: the last run in a clean room (--clean) failed: step `file` reads files that git ignores";
    assert!(by_hand.stderr.contains(note), "{}", by_hand.story());
    // Nothing is known of another lane, and a pass prints no note.
    let lane = "include_ignored: [.env.test]\nsteps: [{ name: file, run: cat .env.test }]\n";
    std::fs::write(by_hand.path("lanes/verify.yaml"), lane).unwrap();
    let other = by_hand.again(&["doctor"]).run();
    assert_eq!(told(&other), None, "{}", other.story());
    std::fs::rename(other.path(".env.test"), other.path("away")).unwrap();
    let fails = other.again(&["lanes", "run", "verify", "--clean"]).run();
    fails.must_exit(1);
    let doctor = fails.again(&["doctor"]).run();
    assert!(told(&doctor).is_some_and(|line| line.contains("step `file` failed")), "{}", doctor.story());
    std::fs::rename(doctor.path("away"), doctor.path(".env.test")).unwrap();
    let passes = doctor.again(&["lanes", "run", "verify", "--clean"]).run();
    passes.must_exit(0);
    let doctor = passes.again(&["doctor"]).run();
    assert_eq!(told(&doctor), None, "{}", doctor.story());
}
