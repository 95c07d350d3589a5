//! States that a gate must not verify although every step passed. Each of them was verified once.

use super::*;

/// A command that runs the product, with any content that the agent chose.
const CODE: &str = "for code in src/*.sh; do . ./$code; done";

pub(super) fn lane(keys: &str, runs: &[&str]) -> String {
    let steps: Vec<String> =
        runs.iter().enumerate().map(|(number, run)| format!("  - {{ name: s{number}, run: '{run}' }}\n")).collect();
    format!("{keys}\nsteps:\n{}", steps.concat())
}

fn paths_and_rules(verdict: &Verdict) -> Vec<(String, String)> {
    verdict.findings.iter().map(|finding| (finding.path.clone(), finding.rule.clone())).collect()
}

async fn text_of(fixture: &GateFixture, verdict: &Verdict, path: &str) -> String {
    let tree = &verdict.proof.as_ref().unwrap().tree;
    let bytes = fixture.trees.read(tree, path, 1000, &CancellationToken::new()).await.unwrap();
    String::from_utf8(bytes.unwrap_or_default()).unwrap()
}

#[tokio::test]
async fn what_a_lane_has_written_is_held_against_the_rules_too() {
    let run = CODE;
    let manifest = "[package]\nname = 'a'\nversion = '0.1.0'\n";
    let files = [("src/code.sh", "true\n"), ("Cargo.toml", manifest)];
    let fixture = fixture(&files, &[("verify", &lane("writes: true", &[run]))], None).await;
    fixture
        .write("src/code.sh", "printf \"[profile.test]\\nopt-level = 1\\n\" >> Cargo.toml; ln -sf /etc/passwd out\n");
    let verdict = fixture.judged(OnTamper::Restore).await;
    assert_eq!((verdict.ruling, &verdict.proof), (Ruling::Tampered, &None));
    let by = |rule: &str| format!("{rule}; written by lane `verify`");
    let expected = [
        ("Cargo.toml".to_owned(), by("[profile.test] added: it controls how the tests are built")),
        ("out".to_owned(), by("a link that leads out of the workspace")),
    ];
    assert_eq!(paths_and_rules(&verdict), expected);
}

#[tokio::test]
async fn every_lane_passes_on_the_tree_that_is_named_or_none_does() {
    let (needs_old, renames) = (lane("", &["grep -rq old src"]), lane("writes: true", &["sed -i s/old/new/ src/*"]));
    let files = [("src/text", "old\n"), ("other", "")];
    let fixture = fixture(&files, &[("verify", &needs_old), ("fmt", &renames)], None).await;
    let verdict = fixture.judged(OnTamper::Restore).await;
    assert_eq!((verdict.ruling, verdict.signature.as_str()), (Ruling::Failed, "verify/s0 exit 1"));
    assert_eq!(fs::read_to_string(fixture.tree("src/text")).unwrap(), "old\n");

    let (any, formats) = (lane("", &["ls src"]), lane("writes: true", &["sed -i s/old/new/ src/*"]));
    let fixture = self::fixture(&files, &[("verify", &any), ("fmt", &formats)], None).await;
    let verdict = fixture.judged(OnTamper::Restore).await;
    assert_eq!(verdict.ruling, Ruling::Passed, "{}", verdict.feedback);
    assert_eq!(text_of(&fixture, &verdict, "src/text").await, "new\n");
    assert_eq!(fs::read_to_string(fixture.tree("src/text")).unwrap(), "new\n", "the workspace has what is verified");
    assert_eq!(verdict.notes, ["lane `fmt` changed 1 file of the work: src/text"]);
    let steps: Vec<&str> = verdict.steps.iter().map(|step| step.lane.as_str()).collect();
    assert_eq!(steps, ["verify", "fmt"]);
}

#[tokio::test]
async fn a_failure_that_leaves_pipes_fails_and_a_pass_that_leaves_pipes_fails_too() {
    let pipe = "for f in src/*; do rm $f; mkfifo $f; done";
    for (end, why) in
        [("echo the real reason; exit 1", "the real reason"), ("true", "cannot read the files that lane `verify` left")]
    {
        let text = lane("", &[&format!("{pipe}; {end}")]);
        let fixture = fixture(&[("src/data", "x\n")], &[("verify", &text)], None).await;
        let verdict = fixture.judged(OnTamper::Restore).await;
        assert_eq!(verdict.ruling, Ruling::Failed, "{}", verdict.feedback);
        assert!(verdict.feedback.contains(why), "{}", verdict.feedback);
    }
}

#[tokio::test]
async fn in_the_workspace_too_the_tree_that_is_named_is_the_one_that_was_judged() {
    let runs = [CODE, "grep -rq fix src"];
    let files = [("src/code.sh", "true\n"), ("src/a", "bug\n")];
    let code = "x=f; echo ${x}ix > src/a; echo made > log\n";
    let fixture = fixture(&files, &[("verify", &lane("room: in-place", &runs))], None).await;
    fixture.write("src/code.sh", code);
    let verdict = fixture.judged(OnTamper::Restore).await;
    assert_eq!((verdict.ruling, &verdict.proof), (Ruling::Failed, &None));
    assert!(verdict.feedback.contains("changed files that it judges (src/a)"), "{}", verdict.feedback);

    let fixture = self::fixture(&files, &[("verify", &lane("room: in-place\nwrites: true", &runs))], None).await;
    fixture.write("src/code.sh", code);
    let verdict = fixture.judged(OnTamper::Restore).await;
    assert_eq!(verdict.ruling, Ruling::Passed, "{}", verdict.feedback);
    assert_eq!(text_of(&fixture, &verdict, "src/a").await, "fix\n");
}

#[tokio::test]
async fn a_lane_in_the_workspace_finds_there_what_one_in_a_room_has_written() {
    let (formats, needs) =
        (lane("writes: true", &["sed -i s/old/new/ src/*"]), lane("room: in-place", &["grep -rq new src"]));
    let fixture = fixture(&[("src/text", "old\n")], &[("fmt", &formats), ("verify", &needs)], None).await;
    let verdict = fixture.judged(OnTamper::Restore).await;
    assert_eq!(verdict.ruling, Ruling::Passed, "{}", verdict.feedback);
    assert_eq!(text_of(&fixture, &verdict, "src/text").await, "new\n");
}

#[tokio::test]
async fn what_is_protected_is_written_by_no_step_in_a_room_not_even_for_a_while() {
    let check = "for check in tests/*.sh; do sh ./$check; done";
    let runs = lane("", &[CODE, check, "for code in src/*.end; do . ./$code; done"]);
    let files = [("src/code.sh", "true\n"), ("src/code.end", "true\n"), ("tests/check.sh", "false\n")];
    let fixture = fixture(&files, &[("verify", &runs)], None).await;
    fixture.write("src/code.sh", "cp tests/check.sh kept; echo true > tests/check.sh; echo x > pytest.ini\n");
    fixture.write("src/code.end", "cp kept tests/check.sh; rm pytest.ini\n");
    let verdict = fixture.judged(OnTamper::Restore).await;
    assert_eq!((verdict.ruling, &verdict.proof), (Ruling::Tampered, &None));
    let seen = |rule: &str| format!("{rule}; written in the room, seen after step `s0` of lane `verify`");
    let expected = [
        ("pytest.ini".to_owned(), seen("it controls how tests run")),
        ("tests/check.sh".to_owned(), seen("it is a test of the base (new tests may be added)")),
    ];
    assert_eq!(paths_and_rules(&verdict), expected);
    assert_eq!(fs::read_to_string(fixture.tree("tests/check.sh")).unwrap(), "false\n");
}

#[tokio::test]
async fn no_step_writes_a_manifest_for_a_while_unless_it_does_so_on_the_base() {
    let lints = "sh -c \"$(sed -n \"s/.*lint: //p\" package.json)\"";
    let runs = lane("", &[CODE, lints, "for code in src/*.end; do . ./$code; done"]);
    let manifest = ("package.json", "{} // lint: false\n");
    let files = [("src/code.sh", "true\n"), ("src/code.end", "true\n"), manifest];
    let fixture = fixture(&files, &[("verify", &runs)], None).await;
    fixture.write("src/code.sh", "cp package.json kept; echo 'lint: true' > package.json\n");
    fixture.write("src/code.end", "cp kept package.json\n");
    let verdict = fixture.judged(OnTamper::Restore).await;
    let rule = "it defines what the checks run; written in the room, seen after step `s0` of lane `verify`";
    assert_eq!(
        (verdict.ruling, paths_and_rules(&verdict)),
        (Ruling::Tampered, vec![("package.json".to_owned(), rule.to_owned())])
    );

    let rewrites = lane("", &["cp package.json kept && cp kept package.json && rm kept"]);
    let fixture = self::fixture(&[manifest], &[("verify", &rewrites)], None).await;
    assert_eq!(fixture.base().await.unwrap().0, Ruling::Passed);
    fixture.write("new", "1\n");
    assert_eq!(fixture.ruling().await, Ruling::Passed);
}

#[tokio::test]
async fn what_git_ignores_and_what_is_in_caches_may_be_made_in_a_room() {
    let makes = lane("cache: [out]", &["mkdir -p build out && echo all: | tee build/Makefile out/Makefile"]);
    let fixture = fixture(&[(".gitignore", "build/\nout/\n")], &[("verify", &makes)], None).await;
    assert_eq!(fixture.base().await.unwrap().0, Ruling::Passed);
    assert_eq!(fixture.ruling().await, Ruling::Passed);
    let fixture = self::fixture(&[], &[("verify", &lane("", &["echo > pytest.ini"]))], None).await;
    let fault = fixture.base().await.unwrap_err().to_string();
    assert!(fault.starts_with("lane `verify` writes the protected path `pytest.ini` on the base ("), "{fault}");
}

#[tokio::test]
async fn a_tree_that_failed_once_is_never_verified_later() {
    let outside = crate::test_support::temp_dir();
    let passes = outside.path().join("passes");
    let (here, held) = (format!("test -f {}", passes.display()), "steps: [{ run: 'test -f $FLEDGE_HOLDOUT/passes' }]");
    let (clean, in_place) = (lane("", &[&here]), lane("room: in-place", &[&here]));
    for (lane, held, is_repeated) in
        [(clean.as_str(), None, true), (&in_place, None, false), ("steps: [{ run: 'true' }]", Some(held), true)]
    {
        let fixture = fixture(&[("src/a", "a\n")], &[("verify", lane)], held).await;
        let files = [passes.clone(), fixture.home.path().join("held/passes")];
        let set = |passing: bool| {
            for file in &files {
                if passing { fs::write(file, "").unwrap() } else { drop(fs::remove_file(file)) }
            }
        };
        set(false);
        fixture.write("src/a", "b\n");
        assert_eq!(fixture.ruling().await, Ruling::Failed, "{lane}");
        set(true);
        let again = fixture.judged(OnTamper::Restore).await;
        assert_eq!((again.ruling, again.unchanged_since.is_some()), (Ruling::Failed, is_repeated), "{lane}");
        fixture.write("src/a", "c\n");
        assert_eq!(fixture.ruling().await, Ruling::Passed, "{lane}");
        fixture.write("src/a", "b\n");
        // Another process judges the tree again, because it does not have the verdict.
        let fixture = fixture.taken_up_again();
        let later = fixture.judged(OnTamper::Restore).await;
        assert_eq!((later.ruling, &later.proof), (Ruling::Failed, &None), "{lane}");
        assert!(later.feedback.contains("failed on the same files before"), "{}", later.feedback);
        let mut site = fixture.site(OnTamper::Restore);
        let before = std::mem::replace(&mut site.logs, fixture.home.path().join("new/logs"));
        fs::create_dir_all(fixture.home.path().join("new")).unwrap();
        inherit_failed_trees(&before, &site.logs).unwrap();
        let fixture = fixture.taken_up_again();
        let continued = fixture.gate().judge(&site, 1, &CancellationToken::new(), &|_| {}).await;
        assert_eq!(continued.ruling, Ruling::Failed, "{lane}");
        site.logs = fixture.home.path().join("another/logs");
        let fixture = fixture.taken_up_again();
        let another = fixture.gate().judge(&site, 1, &CancellationToken::new(), &|_| {}).await;
        assert_eq!(another.ruling, Ruling::Passed, "{}", another.feedback);
        // Two candidates of a race share a list.
        site.failed_trees = Some(fixture.home.path().join("race/failed"));
        fixture.write("src/a", "d\n");
        set(false);
        let fixture = fixture.taken_up_again();
        let first = fixture.gate().judge(&site, 1, &CancellationToken::new(), &|_| {}).await;
        set(true);
        site.logs = fixture.home.path().join("rival/logs");
        let fixture = fixture.taken_up_again();
        let rival = fixture.gate().judge(&site, 1, &CancellationToken::new(), &|_| {}).await;
        assert_eq!((first.ruling, rival.ruling), (Ruling::Failed, Ruling::Failed), "{lane}");
    }
}

#[tokio::test]
async fn a_gate_that_is_taken_up_again_knows_what_the_base_has_shown() {
    let fixture =
        fixture(&[("a.count", "Ran 3 tests in 0.1s\n")], &[("verify", &lane("", &["cat *.count"]))], None).await;
    assert_eq!(fixture.base().await.unwrap().0, Ruling::Passed);
    fixture.write("a.count", "Ran 2 tests in 0.1s\n");
    let fixture = fixture.taken_up_again();
    let verdict = fixture.judged(OnTamper::Restore).await;
    assert_eq!(verdict.ruling, Ruling::Failed);
    assert!(verdict.feedback.contains("fewer tests ran than on the base: 2 of 3"), "{}", verdict.feedback);

    let counts = "steps: [{ name: test, run: cp *.xml report, junit: report }]";
    let tests = |names: &[&str]| {
        let cases: Vec<String> = names.iter().map(|name| format!("<testcase name=\"{name}\"/>")).collect();
        format!("<testsuite>{}</testsuite>", cases.concat())
    };
    let fixture = self::fixture(&[("t.xml", &tests(&["a", "b", "c"]))], &[("verify", counts)], None).await;
    fixture.write("t.xml", &tests(&["a"]));
    let verdict = fixture.taken_up_again().judged(OnTamper::Restore).await;
    assert!(verdict.feedback.contains("tests of the base did not run: b, c"), "{}", verdict.feedback);
}

#[tokio::test]
async fn what_git_ignores_is_nobodys_tampering_and_stays_where_it_is() {
    let ignored = [("build/Makefile", "all:"), ("env/lib/site-packages/a.pth", "x"), ("runs/model.pth", "weights")];
    let files = [(".gitignore", "build/\nenv/\nruns/\n")];
    let fixture = fixture(&files, &[("verify", &lane("", &["true"]))], None).await;
    ignored.iter().for_each(|(path, text)| fixture.write(path, text));
    assert_eq!(fixture.ruling().await, Ruling::Passed);
    for (path, text) in ignored {
        assert_eq!(fs::read_to_string(fixture.tree(path)).unwrap(), text);
    }
    fixture.write("lanes/verify.yaml", "steps: []");
    let verdict = fixture.judged(OnTamper::Restore).await;
    assert_eq!(verdict.findings.len(), 1, "{:?}", verdict.findings);
}

#[tokio::test]
async fn all_that_was_tampered_with_is_told_at_once_and_what_became_of_it() {
    let manifest = "[package]\nname = 'a'\nversion = '0.1.0'\n";
    let fixture = fixture(&[("Cargo.toml", manifest)], &[("verify", &lane("", &["true"]))], None).await;
    fixture.write("conftest.py", "x");
    fixture.write("Cargo.toml", &format!("{manifest}[profile.test]\nopt-level = 1\n[dependencies]\nserde = '1'\n"));
    fixture.write(".GIT/config", "x");
    let verdict = fixture.judged(OnTamper::Restore).await;
    let paths: Vec<&str> = verdict.findings.iter().map(|finding| finding.path.as_str()).collect();
    assert_eq!((verdict.ruling, paths), (Ruling::Tampered, vec![".GIT", "Cargo.toml", "conftest.py"]));
    let expected = "Put back: conftest.py\n\
        Put back completely; make your allowed changes again: Cargo.toml\n\
        Still changed; remove or fix it yourself: .GIT\n";
    assert_eq!(verdict.feedback, expected);
    let aside = fixture.home.path().join("set-aside/attempt-1");
    assert_eq!(verdict.notes, [format!("the changes to protected files are kept in {}", aside.display())]);
    assert_eq!(fs::read_to_string(aside.join("conftest.py")).unwrap(), "x");
    assert!(fs::read_to_string(aside.join("Cargo.toml")).unwrap().contains("serde"));
    assert_eq!(fs::read_to_string(fixture.tree("Cargo.toml")).unwrap(), manifest);
    fs::remove_dir_all(fixture.tree(".GIT")).unwrap();
    assert_eq!(fixture.ruling().await, Ruling::Passed);
}

/// A command that runs the product, then checks each test like a runner that names what fails.
const TESTS: &str = "for code in src/*.sh; do . ./$code; done; for t in ${only:-*}/test_*.py; do grep -q assert $t && echo FAILED $t && bad=1; done; test -z \"$bad\"";

#[tokio::test]
async fn a_canary_is_known_neither_by_a_word_nor_by_the_place_of_its_room() {
    let files = [("src/code.sh", "true\n"), ("tests/test_a.py", "ok\n")];
    let fixture = fixture(&files, &[("verify", &lane("canary: pytest", &[TESTS]))], None).await;
    assert_eq!(fixture.base().await.unwrap().0, Ruling::Passed);
    let verdict = fixture.judged(OnTamper::Restore).await;
    assert_eq!(verdict.ruling, Ruling::Passed, "{}", verdict.feedback);
    fixture.write("src/code.sh", "case $(pwd)$(ls tests) in *canary*) ;; *) exit 0 ;; esac\n");
    let verdict = fixture.judged(OnTamper::Restore).await;
    assert_eq!(verdict.ruling, Ruling::Failed);
    assert!(verdict.feedback.contains("did not report a planted failing test"), "{}", verdict.feedback);
}

#[tokio::test]
async fn tests_that_are_silenced_in_one_folder_are_missed_if_the_base_ran_them() {
    let files = [("src/code.sh", "true\n"), ("a/test_a.py", "ok\n"), ("b/test_b.py", "ok\n")];
    let fixture = fixture(&files, &[("verify", &lane("canary: pytest", &[TESTS]))], None).await;
    assert_eq!(fixture.base().await.unwrap().0, Ruling::Passed);
    fixture.write("src/code.sh", "only=a\n");
    let verdict = fixture.judged(OnTamper::Restore).await;
    assert_eq!(verdict.ruling, Ruling::Failed);
    assert!(verdict.feedback.contains("did not report all planted failing tests"), "{}", verdict.feedback);
}

#[tokio::test]
async fn where_lock_files_differ_what_makes_the_room_ready_runs_again_on_them_alone() {
    let setup = "mkdir -p deps && cat *.lock >deps/lock && cat *.src >deps/src && echo ${npm_config_ignore_scripts:-on} >deps/scripts && ! grep -q broken *.lock";
    let lane = format!(
        "setup: [{{ name: get, run: '{setup}' }}]\ncache: [deps]\nsteps: [{{ run: cmp *.lock deps/lock && grep -qx old deps/src && test \"$(cat *.want)\" = \"$(cat deps/scripts)\" }}]"
    );
    let files = [(".gitignore", "deps\n"), ("Cargo.lock", "version = 3\n"), ("a.src", "old\n"), ("a.want", "on\n")];
    let fixture = fixture(&files, &[("verify", &lane)], None).await;
    assert_eq!(fixture.base().await.unwrap(), (Ruling::Passed, String::new()));
    fixture.write("a.src", "new\n");
    assert_eq!(fixture.ruling().await, Ruling::Passed, "as long as they are the same nothing is done again");
    fixture.write("Cargo.lock", "version = 4\n");
    fixture.write("a.want", "true\n");
    for _ in 0..2 {
        let verdict = fixture.judged(OnTamper::Restore).await;
        assert_eq!(verdict.ruling, Ruling::Passed, "{}", verdict.feedback);
    }
    fixture.write("Cargo.lock", "version = 4 # broken\n");
    let verdict = fixture.judged(OnTamper::Restore).await;
    assert_eq!(verdict.ruling, Ruling::Failed);
    let message = "the work changed the dependencies, and with them the setup of lane `verify` failed: step `get`";
    assert!(verdict.feedback.starts_with(message), "{}", verdict.feedback);
}

#[tokio::test]
async fn an_ignored_socket_is_not_part_of_the_work_unless_it_replaces_an_output() {
    let files = [(".gitignore", "*.sock\nrun/\n*.json\nreport.xml\n")];
    let lane = "steps: [{ name: test, run: 'true', junit: report.xml }]";
    let fixture = fixture(&files, &[("verify", lane)], None).await;
    let bind = |path: &str| {
        fs::create_dir_all(fixture.tree(path).parent().unwrap()).unwrap();
        std::os::unix::net::UnixListener::bind(fixture.tree(path)).unwrap()
    };
    let site = GateSite { outlets: vec![fixture.tree("report.json")], ..fixture.site(OnTamper::Fail) };
    let judged = || async { fixture.gate().judge(&site, 1, &CancellationToken::new(), &|_| {}).await };
    let _users = [bind("app.sock"), bind("run/new/pid")];
    assert_ne!(judged().await.ruling, Ruling::Tampered);
    for path in ["report.json", "report.xml", "seen"] {
        let _planted = bind(path);
        let verdict = judged().await;
        let found: Vec<&str> = verdict.findings.iter().map(|finding| finding.path.as_str()).collect();
        assert_eq!((verdict.ruling, found), (Ruling::Tampered, vec![path]));
        fs::remove_file(fixture.tree(path)).unwrap();
    }
}

#[tokio::test]
async fn code_that_a_hold_out_lane_runs_writes_nothing_protected_and_the_lane_itself_may() {
    let replaces = "cp tests/check.sh kept; echo true > tests/check.sh; . ./src/code.sh; sh tests/other.sh";
    let files = [("src/code.sh", "false\n"), ("tests/check.sh", "true\n"), ("tests/other.sh", "true\n")];
    let hidden = lane("", &[replaces]);
    let fixture = fixture(&files, &[("verify", &lane("", &["true"]))], Some(&hidden)).await;
    fixture.write("src/code.sh", "cp tests/other.sh kept; cat kept > tests/other.sh; rm kept\n");
    let verdict = fixture.judged(OnTamper::Restore).await;
    assert_eq!((verdict.ruling, verdict.signature.as_str(), &verdict.findings), (Ruling::Failed, "hold-out", &vec![]));
    assert!(!verdict.feedback.contains("tests/"), "{}", verdict.feedback);
    let note = "a hold-out lane passed, but code that it runs wrote protected paths: tests/other.sh";
    assert_eq!(verdict.notes, [note]);
    fixture.write("src/code.sh", "true\n");
    assert_eq!(fixture.ruling().await, Ruling::Passed);
}

#[tokio::test]
async fn a_hold_out_lane_brings_its_files_behind_a_check_that_fails_on_the_base() {
    let brings = "sh tests/red.sh && cp \"$FLEDGE_HOLDOUT\"/other.sh tests/other.sh && sh tests/other.sh";
    let files = [("src/code.sh", "false\n"), ("tests/red.sh", ". ./src/code.sh\n"), ("tests/other.sh", "true\n")];
    let fixture = fixture(&files, &[("verify", &lane("", &["true"]))], Some(&lane("", &[brings]))).await;
    std::fs::write(fixture.home.path().join("held/other.sh"), "echo mine\n").unwrap();
    fixture.write("src/code.sh", "true\n");
    assert_eq!(fixture.ruling().await, Ruling::Passed);
    fixture.write("src/code.sh", "cp tests/red.sh kept; cat kept > tests/red.sh; rm kept\n");
    assert_eq!(fixture.ruling().await, Ruling::Failed, "a file that it does not bring");
}

#[tokio::test]
async fn a_temporary_write_to_gate_files_is_found_in_a_room_and_in_the_workspace() {
    for (path, text) in [
        ("Makefile", "check:\n\t. ./src/code.sh\n"),
        ("package.json", "{}\n"),
        ("pyproject.toml", "\n"),
        ("conftest.py", "\n"),
        ("sub/Cargo.toml", "\n"),
    ] {
        for (room, ruling) in [("clean", Ruling::Tampered), ("in-place", Ruling::Errored)] {
            let lanes = [("verify", &*lane(&format!("room: {room}"), &[CODE, "echo make"]))];
            let fixture = fixture(&[("src/code.sh", "true\n"), (path, text)], &lanes, None).await;
            let code =
                format!("cp -p {path} kept; echo x > {path}; cat kept > {path}; touch -r kept {path}; rm kept\n");
            fixture.write("src/code.sh", &code);
            let verdict = fixture.judged(OnTamper::Restore).await;
            let found: Vec<&str> = verdict.findings.iter().map(|finding| finding.path.as_str()).collect();
            assert_eq!((verdict.ruling, found), (ruling, vec![path]), "{room} {path}");
            let remedy = match (room, path) {
                ("in-place", "Makefile" | "conftest.py") => {
                    "if a step must write there, open the path with `allow_edit`"
                }
                ("in-place", _) => "if a step must write there, set `writes: true` in its lane",
                _ => "",
            };
            assert!(verdict.feedback.ends_with(remedy), "{room} {path}: {}", verdict.feedback);
            fixture.write("src/code.sh", "true # other\n");
            assert_eq!(fixture.ruling().await, Ruling::Passed, "{room} {path}");
        }
    }
    let writes = [("verify", &*lane("room: in-place\nwrites: true", &[CODE]))];
    let fixture = fixture(&[("src/code.sh", "true\n"), ("package.json", "{}\n")], &writes, None).await;
    fixture.write("src/code.sh", "cp package.json kept; cat kept > package.json; rm kept\n");
    assert_eq!(fixture.ruling().await, Ruling::Passed, "a lane that writes");
}
