//! Hidden tests: the agent sees neither the files nor their failures, and the gate uses them.

use crate::support::{Asked, BEHIND_LANDLOCK, Ended, Fledge, Model, Need, Turn, call, git, say, shell, write};
use fledge::process::sandbox::{Sandbox, SandboxChoice, SandboxKind};
use rustix::process::Signal;
use serde_json::json;
use std::path::Path;

/// A runner that counts like pytest. No lane names the hidden files.
const RUNNER: &str = "good=0; bad=0\nfor it in tests/*.sh tests/*/*.sh; do\n  test -e $it || continue\n  \
    if sh $it; then good=$((good + 1)); else bad=$((bad + 1)); echo \"FAILED $it\"; fi\ndone\n\
    echo \"$bad failed, $good passed in 0.01s\"\ntest $bad = 0\n";
const LANE: &str = "steps:\n  - { name: test, run: sh runner.sh }\n";
const WRONG: &str = "echo $(($1 - $2))\n";
const RIGHT: &str = "echo $(($1 + $2))\n";
/// Right for the visible test alone.
const SPECIAL: &str = "if test $1 = 1; then echo 3; else echo $(($1 - $2)); fi\n";
/// A word in the hidden test, and the name of its file.
const MARK: &str = "kumquat-4711";
const NAME: &str = "secret_sum";
const HIDDEN: &str = "--hidden=tests/acc*/**";
/// Searches the machine for files by their names.
const FIND: &str = "find / -xdev '(' -path /usr -o -path /proc -o -path /sys ')' -prune -o -name";
/// Looks for hidden tests in the worktree and its repository.
const LOOK: &str = "ls -R tests; cat tests/acc*/* ../*/tests/acc*/*; git status --short; git ls-files; git log -p";

/// Returns false where hidden tests are refused.
fn is_possible() -> bool {
    let helper = Path::new(env!("CARGO_BIN_EXE_fledge"));
    let path = std::env::var("PATH").unwrap_or_default();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let found = runtime.block_on(async {
        let sandbox = Sandbox::find(SandboxChoice::Auto, Some(helper), &path).await.ok()?;
        (sandbox.kind() == SandboxKind::Bubblewrap && sandbox.has_layers(&std::env::temp_dir()).await).then_some(())
    });
    if found.is_none() {
        crate::support::Need::Sandbox.lacks("only bubblewrap with layers hides tests");
    }
    found.is_some()
}

/// The text of the hidden test.
fn hidden_test() -> String {
    format!("# {MARK}\ntest \"$(sh sum.sh 20 22)\" = 42 || {{ echo {MARK} is not right; false; }}\n")
}

/// A project with one visible and one hidden test, both committed.
fn place(model: &Model) -> Fledge {
    let place = Fledge::new().anthropic(model).task("Repair the sum.").lane("verify", LANE);
    let place = place.file("runner.sh", RUNNER).file("sum.sh", WRONG);
    let place = place
        .file("tests/small.sh", "test \"$(sh sum.sh 1 2)\" = 3\n")
        .file(&format!("tests/acceptance/{NAME}.sh"), hidden_test());
    place.committed().args(&["run", "task.md", "--isolation=worktree", "--report=../report.json"]).arg(HIDDEN)
}

/// Checks that nothing of the hidden test has reached the model. The script of the model must spell
/// neither word.
#[track_caller]
fn must_not_be_told(model: &Model, ended: &Ended) {
    for asked in model.asked() {
        for word in [MARK, NAME, "acceptance"] {
            let at =
                asked.text.find(word).map(|at| &asked.text[at.saturating_sub(300)..(at + 100).min(asked.text.len())]);
            assert_eq!(at, None, "{word}: {}", ended.story());
        }
    }
}

#[test]
fn no_tool_of_the_agent_shows_hidden_tests_and_the_commit_has_them_unchanged() {
    long_test!();
    if !is_possible() {
        return;
    }
    let looks = [
        "ls -R . ; ls -la tests; cat tests/acc*/*; git status --short; git ls-files",
        "git log --all -p --stat; git show HEAD --stat; git show HEAD:tests/acc*/se*; git rev-list --objects --all",
        "git cat-file --batch-all-objects --batch | strings",
        "cat .git; git config --list; git worktree list; git grep -e kumq $(git rev-list --all)",
        "d=$(git rev-parse --git-common-dir); find $d -type f | head -50; grep -ra kumq $d",
        "grep -rsa kumq /proc/self/cwd/ . ..",
        "cat /proc/*/cwd/tests/acc*/* /proc/*/root/$PWD/tests/acc*/* /proc/*/environ",
        "git stash list -p; git fsck --lost-found; git reflog --all; git blame sum.sh; git diff HEAD; git grep -c echo",
    ];
    let origin = "for it in $(cat /proc/self/mountinfo | cut -d' ' -f5); do ls $it/tests $it/../workspace/tests; done";
    let find = format!("{FIND} 'secret[_]sum*' -print");
    let turns = looks.into_iter().chain([origin, &find]).map(shell);
    let files = [
        call("files-list", json!({ "path": "tests" })),
        call("files-glob", json!({ "pattern": "**/*sum*" })),
        call("search-grep", json!({ "pattern": "kumq" })),
    ];
    let model = Model::new(turns.chain(files).chain([write("sum.sh", RIGHT), say("Done.")]).collect::<Vec<Turn>>());
    let ended = place(&model).run();
    let report = ended.must_be(0, "verified");
    must_not_be_told(&model, &ended);
    let proof = &report["attempts"][0]["verdict"]["proof"];
    assert_eq!((&proof["hidden"], &proof["tests"]), (&1.into(), &1.into()), "{report}");
    let commit = report["commit"].as_str().unwrap();
    let path = format!("tests/acceptance/{NAME}.sh");
    assert_eq!(ended.git(&["show", &format!("{commit}:{path}")]), ended.git(&["show", &format!("main:{path}")]));
    assert_eq!(ended.git(&["diff", "--name-only", "main", commit]).trim(), "sum.sh");
    assert!(report["warnings"].to_string().contains("hidden from the agent: 1 file"), "{report}");
    assert_eq!(report["worktree"]["state"], "removed", "{report}");
    assert_eq!(ended.git(&["status", "--porcelain"]), "", "the checkout of the user has not changed");
    let can_use_git = |asked: &Asked| !asked.text.contains("not a git repository");
    assert!(model.asked().iter().all(can_use_git), "{}", ended.story());
}

#[test]
fn hooks_servers_and_sub_agents_see_no_hidden_tests() {
    long_test!();
    if !is_possible() || !Need::has_program("python3") {
        return;
    }
    let server = "import json, subprocess, sys\nfor line in sys.stdin:\n    asked = json.loads(line)\n    \
        if 'id' not in asked:\n        continue\n    answer = {'content': []}\n    \
        if asked['method'] == 'initialize':\n        answer = {'protocolVersion': '2025-06-18', 'capabilities': {'tools': {}}, \
        'serverInfo': {'name': 't', 'version': '1'}}\n    \
        if asked['method'] == 'tools/list':\n        \
        answer = {'tools': [{'name': 'look', 'description': 'Looks.', 'inputSchema': {'type': 'object'}}]}\n    \
        if asked['method'] == 'tools/call':\n        \
        told = subprocess.run(['sh', '-c', sys.argv[1]], capture_output=True, text=True, errors='replace')\n        \
        answer = {'content': [{'type': 'text', 'text': 'LOOKED ' + told.stdout + told.stderr}]}\n    \
        print(json.dumps({'jsonrpc': '2.0', 'id': asked['id'], 'result': answer}), flush=True)\n";
    let model = Model::new([
        call("mcp-t-look", json!({})),
        call("subagent-spawn", json!({ "task": "Look around.", "title": "Look" })),
        shell(&format!("echo LOOKED; {LOOK}")),
        say("I looked."),
        write("sum.sh", RIGHT),
        say("Done."),
    ]);
    let place = place(&model).file("../server.py", server);
    let script = place.workspace().join("../server.py").canonicalize().unwrap();
    let configuration = json!({
        "hooks": { "post_tools": [
            { "name": "loud", "run": format!("echo LOOKED; cat; env; {LOOK}; exit 3"), "tell_model": true },
        ] },
        "mcp": { "t": { "command": ["/usr/bin/python3", script, LOOK] } },
    });
    let place = place.file("fledge.yaml", configuration.to_string());
    let place = place.task("---\nmcp: [t]\n---\nRepair the sum.\n").arg("--trust-project");
    let ended = place.git(&["add", "-A"]).git(&["commit", "-qm", "hooks"]).run();
    ended.must_be(0, "verified");
    must_not_be_told(&model, &ended);
    let looked = model.asked().last().unwrap().text.matches("LOOKED").count();
    assert!(looked >= 3, "{looked}: {}", ended.story());
}

#[test]
fn code_that_runs_beside_hidden_tests_leaves_nothing_that_the_agent_finds() {
    long_test!();
    if !is_possible() {
        return;
    }
    let spread = "if test -d tests/acc*; then for it in /tmp /var/tmp /dev/shm $HOME $TMPDIR . .. tests; do \
        cp -r tests/acc* $it/found-it; done; fi 2> /dev/null\n";
    let cat = "cat /tmp/found*/* /var/tmp/found*/* /dev/shm/found*/* ~/found*/* found*/* ../found*/* tests/found*/*";
    let find = format!("{FIND} 'found[-]it*' -print");
    let model = Model::new([
        write("sum.sh", &format!("{spread}{SPECIAL}")),
        say("Done."),
        call("lane-log", json!({})),
        call("lane-log", json!({ "lane": "verify-hidden" })),
        call("lane-log", json!({ "lane": "verify-hidden", "step": "test", "attempt": 1 })),
        shell(cat),
        shell(&format!("{find} | xargs -r echo WHERE")),
        write("sum.sh", RIGHT),
        say("Done."),
    ]);
    let ended = place(&model).run();
    let report = ended.must_be(0, "verified");
    must_not_be_told(&model, &ended);
    let feedback = report["attempts"][0]["verdict"]["feedback"].as_str().unwrap();
    assert!(feedback.starts_with("every check that you can run passed, but hidden tests failed"), "{feedback}");
    let is_found = model.asked().iter().any(|asked| asked.text.contains("WHERE /"));
    assert!(!is_found, "{}", ended.story());
}

#[test]
fn other_repositories_of_the_machine_show_no_hidden_tests() {
    long_test!();
    if !is_possible() {
        return;
    }
    let look = format!(
        "for it in $({FIND} upstream-4711.git -print) $({FIND} store-4711 -print); do git -C $it log --all -p; \
         git -C $it cat-file --batch-all-objects --batch; done; cat $({FIND} 'secret[_]sum*' -print)"
    );
    let model = Model::new([shell(&look), write("sum.sh", RIGHT), say("Done.")]);
    let place = place(&model).git(&["clone", "-q", "--bare", ".", "../upstream-4711.git"]);
    let place =
        place.git(&["remote", "add", "upstream", "../upstream-4711.git"]).git(&["clone", "-q", ".", "../store-4711"]);
    let place = place.git(&["worktree", "add", "-q", "-b", "other", "../other"]);
    let ended = place.file(".git/objects/info/alternates", "../../../store-4711/.git/objects\n").run();
    ended.must_be(0, "verified");
    must_not_be_told(&model, &ended);
}

#[test]
fn installed_dependencies_are_there_without_copies_of_hidden_tests() {
    long_test!();
    if !is_possible() {
        return;
    }
    let model = Model::new([shell("cat node_modules/dep/*; cat */*/*/*"), write("sum.sh", RIGHT), say("Done.")]);
    let place = place(&model).file("package.json", "{}\n").file(".gitignore", "node_modules/\n");
    let place = place.git(&["add", "-A"]).git(&["commit", "-qm", "dependencies"]);
    let place = place.file("node_modules/dep/index.js", "// persimmon\n");
    let ended = place.file("node_modules/dep/copy.sh", hidden_test()).run();
    ended.must_be(0, "verified");
    must_not_be_told(&model, &ended);
    assert!(model.asked().iter().any(|asked| asked.text.contains("persimmon")), "{}", ended.story());
}

#[test]
fn a_killed_run_loses_no_hidden_file() {
    long_test!();
    if !is_possible() {
        return;
    }
    let model = Model::new([write("sum.sh", RIGHT), say("Going on").hanging(), shell(LOOK), say("Done.")]);
    let mut running = place(&model).arg("--json").start();
    running.wait_for("Going o");
    running.signal(Signal::KILL);
    let killed = running.end();
    assert_eq!(killed.git(&["status", "--porcelain"]), "");
    let branches = killed.git(&["for-each-ref", "--format=%(refname)", "refs/heads"]);
    let path = format!("tests/acceptance/{NAME}.sh");
    for branch in branches.lines() {
        assert_ne!(killed.git(&["show", &format!("{branch}:{path}")]), "", "{branch}");
    }
    let ended = killed.again(&["runs", "resume", "last"]).anthropic(&model).run();
    let report = ended.must_be(0, "verified");
    must_not_be_told(&model, &ended);
    let commit = report["commit"].as_str().unwrap();
    assert_eq!(ended.git(&["diff", "--name-only", "main", commit]).trim(), "sum.sh");
    assert_eq!(ended.git(&["status", "--porcelain"]), "");
}

#[test]
fn of_a_failure_the_model_learns_the_number_and_people_learn_all() {
    long_test!();
    if !is_possible() {
        return;
    }
    // A visible test of the agent tries to print the hidden one in the gate's room.
    let probe = "cat tests/acc*/* ../*/tests/acc*/*; git show HEAD:tests/acc*/se*; git log --all -p; true\n";
    let model = Model::new([
        write("tests/probe.sh", probe),
        write("sum.sh", WRONG),
        say("Done."),
        write("sum.sh", SPECIAL),
        say("Done."),
        call("lane-log", json!({})),
        write("sum.sh", RIGHT),
        say("Done."),
    ]);
    let ended = place(&model).run();
    let report = ended.must_be(0, "verified");
    must_not_be_told(&model, &ended);
    let feedback = |attempt: usize| report["attempts"][attempt]["verdict"]["feedback"].as_str().unwrap().to_owned();
    assert!(feedback(0).contains("FAILED tests/small.sh"), "{}", feedback(0));
    assert_eq!(feedback(1), "every check that you can run passed, but hidden tests failed: 1 of 1\n");
    let told = model.asked().iter().any(|asked| asked.text.contains("hidden tests failed: 1 of 1"));
    assert!(told, "{}", ended.story());
    let warnings = report["warnings"].to_string();
    assert!(warnings.contains("the output of the hidden tests: "), "{warnings}");
    assert!(ended.stderr.contains("verify-hidden/test"), "{}", ended.story());
}

#[test]
fn a_file_of_the_agent_in_the_place_of_a_hidden_one_is_replaced_by_that_of_the_base() {
    long_test!();
    if !is_possible() {
        return;
    }
    let path = format!("tests/acceptance/{NAME}.sh");
    let model = Model::new([write(&path, "true\n"), write("sum.sh", SPECIAL), say("Done.").always()]);
    let ended = place(&model).arg("--max-retries=0").run();
    let report = ended.must_be(1, "gate_failed");
    let warnings = report["warnings"].to_string();
    assert!(warnings.contains(&format!("{path} is in the place of a hidden file")), "{warnings}");
    // The agent's own file fails where the hidden one is not there.
    let model = Model::new([write(&path, "false\n"), write("sum.sh", RIGHT), say("Done.").always()]);
    place(&model).arg("--max-retries=0").run().must_exit(1);
    let model = Model::new([write(&path, "true\n"), write("sum.sh", RIGHT), say("Done.")]);
    let ended = place(&model).run();
    let report = ended.must_be(0, "verified");
    let commit = report["commit"].as_str().unwrap();
    assert_eq!(ended.git(&["diff", "--name-only", "main", commit]).trim(), "sum.sh");
    // The same for entries in the place of its folder.
    for command in ["echo x > tests/acceptance", "ln -s . tests/acceptance"] {
        let model = Model::new([shell(command), write("sum.sh", RIGHT), say("Done.")]);
        let ended = place(&model).run();
        let report = ended.must_be(0, "verified");
        let commit = report["commit"].as_str().unwrap();
        assert_eq!(ended.git(&["diff", "--name-only", "main", commit]).trim(), "sum.sh", "{command}");
    }
}

#[test]
fn a_draw_is_told_with_its_seed_and_a_fix_is_judged_by_it() {
    long_test!();
    if !is_possible() {
        return;
    }
    let model = Model::new([write("sum.sh", RIGHT), say("Done.")]);
    let unit = "import unittest\n\n\nclass One(unittest.TestCase):\n    def test_one(self):\n        pass\n";
    let place = place(&model).file("tests/test_one.py", unit).file("tests/test_two.py", unit);
    let place = place.git(&["add", "-A"]).git(&["commit", "-qm", "more tests"]);
    let ended =
        place.args(&["fix", "--isolation=worktree", "--hidden=auto 50% seed x", "--report=../report.json"]).run();
    let report = ended.must_be(0, "verified");
    let warnings = report["warnings"].to_string();
    assert!(warnings.contains("hidden from the agent: 1 of 2 test files (`auto 50% seed x`)"), "{warnings}");
}

#[test]
fn hidden_tests_that_cannot_be_kept_are_refused_before_any_model_is_asked() {
    long_test!();
    let model = Model::new([say("Done.").always()]);
    let run = |args: &[&str]| {
        let args = [&["run", "task.md", "--report=../report.json"], args].concat();
        place(&model).args(&args).run()
    };
    let worktree = "--isolation=worktree";
    for (args, code, says) in [
        (&[HIDDEN][..], 2, "cannot keep tests hidden: the agent works in your checkout"),
        (&[HIDDEN, worktree, "--no-verify"], 2, "cannot keep tests hidden: without a gate"),
        (&[HIDDEN, worktree, "--sandbox=off"], 5, "cannot keep tests hidden: the sandbox is off"),
        (&["--hidden=auto 0%", worktree], 2, "expected a share of the test files from 1% to 99%"),
    ] {
        let ended = run(args);
        ended.must_exit(code);
        assert!(ended.stderr.contains(says), "{}", ended.story());
    }
    let landlock = place(&model).under(BEHIND_LANDLOCK).run();
    assert_ne!(landlock.code, Some(0), "{}", landlock.story());
    if is_possible() {
        for (args, says) in [
            (&["--hidden=tests/acceptanc/**", worktree][..], "no file of the base matches"),
            (&["--hidden=tests/**", worktree], "`hidden` hides all test files"),
            (&["--hidden=runner.sh", worktree], "step `test` of lane `verify` names `runner.sh`, which is hidden"),
        ] {
            let ended = run(args);
            ended.must_exit(2);
            assert!(ended.stderr.contains(says), "{}", ended.story());
        }
    }
    assert_eq!(model.count(), 0);
}

#[test]
fn a_lane_and_a_configuration_can_hide_tests_too() {
    long_test!();
    if !is_possible() {
        return;
    }
    let model = Model::new([write("sum.sh", SPECIAL), say("Done.").always()]);
    let lane = format!("hidden: tests/acc*/**\n{LANE}");
    let by_lane = place(&model).lane("verify", &lane).git(&["commit", "-qam", "hide"]);
    let ended =
        by_lane.args(&["run", "task.md", "--isolation=worktree", "--max-retries=0", "--report=../report.json"]).run();
    let report = ended.must_be(1, "gate_failed");
    assert!(report["attempts"][0]["verdict"]["feedback"].to_string().contains("hidden tests failed"), "{report}");
    let model = Model::new([write("sum.sh", SPECIAL), say("Done.").always()]);
    let configured = place(&model).file("fledge.yaml", "isolation: worktree\nhidden: tests/acc*/**\n");
    let configured = configured.git(&["add", "-A"]).git(&["commit", "-qm", "hide"]);
    let ended = configured.args(&["run", "task.md", "--max-retries=0", "--report=../report.json"]).run();
    let report = ended.must_be(1, "gate_failed");
    assert!(report["attempts"][0]["verdict"]["feedback"].to_string().contains("hidden tests failed"), "{report}");
}

#[test]
fn a_worktree_that_stays_has_the_hidden_files_again() {
    long_test!();
    if !is_possible() {
        return;
    }
    let model = Model::new([write("sum.sh", SPECIAL), say("Done.").always()]);
    let ended = place(&model).arg("--max-retries=0").run();
    let report = ended.must_be(1, "gate_failed");
    let folder = report["worktree"]["path"].as_str().unwrap();
    let status = git(Path::new(folder), &["status", "--porcelain"]);
    assert_eq!(status.trim(), "M sum.sh", "{report}");
    let changed = json!([{ "path": "sum.sh", "kind": "modified", "added": 1, "removed": 1 }]);
    assert_eq!(report["files_changed"], changed, "{report}");
    let mut ended = ended;
    for sides in [&[][..], &["base", "turn-1"], &["base", "now"]] {
        ended = ended.again(&[&["runs", "diff", "last"], sides].concat()).run();
        ended.must_exit(0);
        assert!(ended.stdout.contains("sum.sh") && !ended.stdout.contains(NAME), "{}", ended.story());
    }
}
