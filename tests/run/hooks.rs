//! Tests of the steps after a turn that may have changed files: the operator's hooks, checkpoints,
//! and commits outside of all branches.

use crate::support::{Ended, Fledge, KEY, Model, git, must_be_gone, needs, say, shell, unique, write};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;

/// Returns a run with these hooks, in a project that the operator trusts.
fn hooked(model: &Model, hooks: &str) -> Fledge {
    Fledge::simple(model).file("fledge.yaml", format!("hooks:\n  post_tools:\n{hooks}")).arg("--trust-project")
}

/// Returns the numbers of the turns that have a checkpoint.
fn checkpoints(run: &Ended) -> Vec<u64> {
    let finished = run.journal().into_iter().filter(|record| record.kind == "HooksFinished");
    let has_one = |data: &str| serde_json::from_str::<serde_json::Value>(data).unwrap()["checkpoint"].is_string();
    finished.enumerate().filter(|(_, record)| has_one(&record.data)).map(|(number, _)| number as u64 + 1).collect()
}

#[test]
fn hooks_run_behind_the_agents_wall_after_each_turn_that_may_have_changed_something() {
    long_test!();
    let model = Model::new([write("a", "1"), shell("true"), write("done", ""), say("Done.")]);
    let hook = "    - { name: count, run: 'echo x >> counted; touch /etc/out 2>/dev/null; echo $ANTHROPIC_API_KEY >> counted' }\n";
    let run = hooked(&model, hook).run();
    run.must_be(0, "verified");
    assert_eq!(run.file("counted").as_deref(), Some("x\n\nx\n\nx\n\n"));
    assert!(!std::path::Path::new("/etc/out").exists());
}

#[test]
fn a_hook_leaves_the_wall_around_the_tools_as_it_was() {
    long_test!();
    let model = Model::new([
        write("a", "1"),
        shell("mkdir .git .fledge; touch .git/config .fledge/x"),
        write("done", ""),
        say("Done."),
    ]);
    let run = hooked(&model, "    - 'true'\n").run();
    let report = run.must_be(0, "verified");
    // Landlock cannot protect `.git`, and the report says so.
    let wanted = report["sandbox"] != "bubblewrap";
    assert_eq!([".git", ".fledge"].map(|name| run.path(name).exists()), [wanted; 2], "{}", run.story());
}

#[test]
fn a_project_that_is_not_trusted_has_no_hooks() {
    let model = Model::new([write("done", ""), say("Done.")]);
    let run = Fledge::simple(&model).file("fledge.yaml", "hooks: { post_tools: ['touch ran'] }\n").run();
    run.must_exit(2);
    assert!(
        run.stderr.contains("fledge.yaml:1:1: `hooks` in a project's file could run programs on your behalf"),
        "{}",
        run.story()
    );
    assert_eq!((run.file("ran"), model.count()), (None, 0));
}

#[test]
fn a_failing_hook_is_reported_and_told_where_it_says_so_and_never_ends_the_run() {
    long_test!();
    let number = unique();
    let hooks = format!(
        "    - {{ name: quiet, run: 'echo broken; exit 3' }}\n\
         \x20   - {{ name: loud, run: 'seq 100000; echo told you; exit 4', tell_model: true }}\n\
         \x20   - {{ name: slow, run: 'sleep {number} & sleep {number}', timeout: 1s, tell_model: true }}\n\
         \x20   - touch last\n"
    );
    let model = Model::new([write("done", ""), say("Done.")]);
    let run = hooked(&model, &hooks).run();
    let report = run.must_be(0, "verified");
    let warnings = report["warnings"].to_string();
    for said in [
        "the hook `quiet` failed with exit code 3: broken",
        "the hook `loud` failed with exit code 4",
        "the hook `slow` took longer than 1.0s and was killed",
    ] {
        assert!(warnings.contains(said), "{said}: {warnings}");
    }
    let told = model.asked()[1].body["messages"].to_string();
    assert!(
        !told.contains("quiet") && told.contains("told you") && told.contains("the hook `slow` took longer"),
        "{told}"
    );
    assert!(told.contains("bytes left out") && told.len() < 20_000, "{}", told.len());
    assert!(run.file("last").is_some());
    must_be_gone(&number);
}

#[test]
fn a_hook_reads_what_the_turn_did_and_what_it_changed() {
    long_test!();
    let command = json!({ "command": "echo 2 > b.txt" });
    let three = write("a.txt", "1\n").also("shell-exec", command).also("files-read", json!({ "path": "nowhere" }));
    let model = Model::new([three, write("done", ""), say("Done.")]);
    let hook = r#"    - 'cat /dev/stdin > told.$FLEDGE_TURN; printf "%s|" "$FLEDGE_RUN" "$FLEDGE_TURN" "$FLEDGE_TOOLS" "$FLEDGE_CHANGED" "$FLEDGE_TREE_BEFORE" "$FLEDGE_TREE_AFTER" > vars.$FLEDGE_TURN'
"#;
    let run = hooked(&model, hook).run();
    let report = run.must_be(0, "verified");
    let told = |turn: u64| -> Value { serde_json::from_str(&run.file(&format!("told.{turn}")).unwrap()).unwrap() };
    let (first, second) = (told(1), told(2));
    let tools = json!([
        { "name": "files-write", "success": true, "changed": ["a.txt"] },
        { "name": "shell-exec", "success": true, "changed": [] },
        { "name": "files-read", "success": false, "changed": [] },
    ]);
    assert_eq!((&first["run"], &first["turn"], &first["tools"]), (&report["run"], &json!(1), &tools), "{first}");
    assert_eq!((&first["changed"], &first["tree"]["before"]), (&json!(["a.txt", "b.txt"]), &report["base"]), "{first}");
    let tree = |told: &Value, which: &str| told["tree"][which].as_str().unwrap().to_owned();
    assert_ne!(tree(&first, "before"), tree(&first, "after"));
    // Changes made by the hook itself belong to no turn.
    assert_eq!(second["changed"], json!(["done"]), "{second}");
    assert_ne!(tree(&second, "before"), tree(&first, "after"));
    let (run_id, before, after) = (report["run"].as_str().unwrap(), tree(&first, "before"), tree(&first, "after"));
    let wanted = format!("{run_id}|1|files-write shell-exec files-read|a.txt\nb.txt\n|{before}|{after}|");
    assert_eq!(run.file("vars.1").unwrap(), wanted);
}

#[test]
fn what_a_hook_tells_the_model_is_shown_to_people_too() {
    long_test!();
    let model = Model::new([write("done", ""), say("Done.")]);
    let hooks = "    - { name: loud, run: 'echo first; echo second; exit 4', tell_model: true }\n\
                 \x20   - { name: quiet, run: 'echo third; echo fourth; exit 5' }\n";
    let run = hooked(&model, hooks).arg("--json").run();
    let report = run.must_be(0, "verified");
    let told: Vec<Value> = run.events_of("hook").iter().map(|data| data["note"].clone()).collect();
    assert_eq!(report["hooks"], json!(told), "{report}");
    let [note] = &told[..] else { panic!("{told:?}") };
    let note = note.as_str().unwrap();
    assert!(
        note.starts_with("the hook `loud` failed with exit code 4\n") && note.contains("\nfirst\nsecond\n"),
        "{note}"
    );
    let model = Model::new([write("done", ""), say("Done.")]);
    let run = hooked(&model, hooks).run();
    run.must_exit(0);
    let lines = [
        "the hook `loud` failed with exit code 4",
        "first",
        "second",
        "the hook `quiet` failed with exit code 5: fourth",
    ];
    assert!(lines.iter().all(|line| run.stderr.contains(line)) && !run.stderr.contains("third"), "{}", run.story());
}

#[test]
fn a_secret_that_a_hook_prints_is_masked_in_progress_and_in_truncated_notes() {
    long_test!();
    let model = Model::new([write("done", ""), say("Done.")]);
    let hooks = "    - { name: quiet, run: 'cat key.txt; exit 3' }\n\
                 \x20   - { name: long, run: 'printf %0195d 0; cat key.txt; exit 4' }\n\
                 \x20   - { name: loud, run: 'cat key.txt; exit 5', tell_model: true }\n";
    let run = hooked(&model, hooks).file("key.txt", KEY).arg("--json").run();
    let report = run.must_be(0, "verified").to_string();
    let progress = fs::read_to_string(run.store().folder(&run.row().head.id).path().join("hooks")).unwrap();
    assert!(progress.contains("the hook `quiet` failed with exit code 3: ***"), "{progress}");
    for text in [&progress, &report, &run.stdout, &run.stderr] {
        assert!(!text.contains(&KEY[..5]), "{text}");
    }
}

#[test]
fn a_hook_that_changes_what_is_protected_is_nobodys_tampering_and_is_put_back() {
    long_test!();
    let model = Model::new([write("a.txt", "bad\n"), write("done", ""), say("Done.")]);
    let hooks =
        "    - { name: fmt, run: 'echo \"steps: []\" > lanes/verify.yaml; echo good > a.txt', tell_model: true }\n";
    let run = hooked(&model, hooks).run();
    let report = run.must_be(0, "verified");
    assert_eq!(
        (run.file("a.txt").as_deref(), run.file("lanes/verify.yaml").unwrap().contains("done")),
        (Some("good\n"), true)
    );
    assert!(
        report["warnings"]
            .to_string()
            .contains("hooks changed protected files, which fledge restored: lanes/verify.yaml"),
        "{report}"
    );
    assert!(model.asked()[1].body.to_string().contains("Hooks have changed files after your turn: a.txt"));
}

#[test]
fn a_run_that_was_killed_in_a_hook_repeats_none_and_goes_on_with_the_next() {
    long_test!();
    let model = Model::new([write("done", ""), say("Done.")]);
    let hooks = "    - echo one >> ran\n    - { name: slow, run: 'echo two >> ran; until test -f go; do sleep 0.01; done' }\n    - echo three >> ran\n";
    let fledge = hooked(&model, hooks);
    let folder = fledge.workspace();
    let running = fledge.start();
    let ran = |folder: &std::path::Path| fs::read_to_string(folder.join("ran")).unwrap_or_default();
    running.until(|| ran(&folder) == "one\ntwo\n");
    running.signal(Signal::KILL);
    let ended = running.end();
    let run = ended.again(&["runs", "resume", "last", "--json", "--trust-project"]).anthropic(&model).run();
    let report = run.must_be(0, "verified");
    assert_eq!(run.file("ran").as_deref(), Some("one\ntwo\nthree\n"));
    assert!(
        report["warnings"].to_string().contains("the hook `slow` was interrupted and does not run again"),
        "{report}"
    );
}

#[test]
fn each_turn_that_changes_something_leaves_a_checkpoint_and_any_two_can_be_compared() {
    long_test!();
    let model = Model::new([write("a", "1\n"), shell("true"), write("a", "2\n"), write("done", ""), say("Done.")]);
    let run = Fledge::simple(&model).file("kept", "").run();
    run.must_be(0, "verified");
    assert_eq!(checkpoints(&run), [1, 3, 4]);
    let run = run.again(&["runs", "diff", "last", "turn-1", "turn-3"]).run();
    assert!(run.stdout.contains("-1\n+2\n") && !run.stdout.contains("done"), "{}", run.story());
    let run = run.again(&["runs", "show"]).run();
    assert!(
        ["turn-1 (", "turn-3 (", "turn-4 ("].iter().all(|it| run.stdout.contains(&format!("checkpoint {it}"))),
        "{}",
        run.story()
    );
    let run = run.again(&["runs", "diff", "last", "base", "turn-2"]).run();
    run.must_exit(2);
    assert!(run.stderr.contains("has no checkpoint turn-2 (known: turn-1, turn-3, turn-4)"), "{}", run.story());
}

#[test]
fn commits_of_turns_stand_apart_from_every_branch_until_their_run_is_pruned() {
    long_test!();
    let model = Model::new([write("a", "1\n"), shell("true"), write("done", ""), say("Made it.")]);
    let fledge = Fledge::simple(&model).arg("--commit=each-turn").file("kept", "1\n").committed();
    let workspace = fledge.workspace();
    let run = fledge.run();
    let report = run.must_be(0, "verified");
    let refs = git(&workspace, &["for-each-ref", "--format=%(refname)"]);
    let name = format!("refs/fledge/{}/turns", report["run"].as_str().unwrap());
    assert_eq!(refs.lines().collect::<Vec<_>>(), [name.as_str(), "refs/heads/main"]);
    assert_eq!(git(&workspace, &["rev-list", "--count", "main"]), "2");
    let told = git(
        &workspace,
        &["log", "--format=%s|%(trailers:key=Fledge-Turn,valueonly,separator=)", &format!("main~1..{name}")],
    );
    assert_eq!(told, "Turn 3 of: task|3\nTurn 1 of: task|1");
    assert_eq!(git(&workspace, &["rev-parse", &format!("{name}^{{tree}}")]), report["tree"]);
    assert_eq!(git(&workspace, &["status", "--porcelain"]), "");
    let run = run.again(&["runs", "prune", "--keep", "0"]).run();
    run.must_exit(0);
    assert_eq!(git(&workspace, &["for-each-ref", "--format=%(refname)"]), "refs/heads/main");
}

#[test]
fn a_turn_of_an_unverified_run_is_committed_apart_and_the_branch_stays() {
    long_test!();
    let model = Model::new([write("a", "1\n"), say("Gave up.")]);
    let fledge = Fledge::simple(&model)
        .arg("--commit=each-turn")
        .arg("--max-retries=0")
        .lane("verify", &needs("never"))
        .committed();
    let workspace = fledge.workspace();
    let run = fledge.run();
    run.must_exit(1);
    assert_eq!(git(&workspace, &["rev-list", "--count", "main"]), "1");
    let turns = git(&workspace, &["for-each-ref", "--format=%(refname)", "refs/fledge"]);
    assert_eq!(git(&workspace, &["show", &format!("{turns}:a")]), "1");
}
