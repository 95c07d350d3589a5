//! Reasons to refuse a batch before any job begins, with and without a dry run, and what a refused
//! batch leaves behind.

use crate::support::{Ended, Fledge, Model, git, needs, say, write};
use serde_json::Value;
use std::fs;

const TASK: &str = "---\nmodel: cassette/any.tape\n---\nDo it.\n";
const TAPE: &str = "turns:\n  - text: Done.\n";

fn batch(args: &[&str]) -> Fledge {
    Fledge::new().lane("verify", &needs("done")).args(args).file("tasks/a.md", TASK).file("tasks/any.tape", TAPE)
}

/// Creates a repository beside the workspace, with these lanes.
fn beside(run: &Fledge, name: &str, lanes: &[&str]) {
    let folder = run.workspace().with_file_name(name);
    fs::create_dir_all(folder.join("lanes")).unwrap();
    fs::write(folder.join("own"), "").unwrap();
    for lane in lanes {
        fs::write(folder.join(format!("lanes/{lane}.yaml")), needs("done")).unwrap();
    }
    git(&folder, &["init", "-q", "-b", "main"]);
    git(&folder, &["add", "-A"]);
    git(&folder, &["commit", "-qm", "first"]);
}

/// Removes the folders of the test.
fn plain(ended: &Ended) -> String {
    let top = ended.path("..").canonicalize().unwrap().display().to_string();
    ended.stderr.replace(&top, "TOP")
}

#[test]
fn every_folder_and_base_that_is_not_there_is_said_before_anything_runs() {
    let file = "tasks: [tasks/*.md, more.md]\nrepositories:\n  - ../left\n  - { path: ../right, base: nope }\n  - ../gone\n  \
        - { path: ../plain, base: main }\n";
    let run = batch(&["run", "batch.yaml"]).file("batch.yaml", file);
    beside(&run, "left", &["verify"]);
    beside(&run, "right", &["verify"]);
    fs::create_dir(run.workspace().with_file_name("plain")).unwrap();
    let ended = run.run();
    ended.must_exit(2);
    insta::assert_snapshot!(plain(&ended));
    assert!(ended.runs().is_empty());
    let eval = ended.again(&["eval", "tasks", "--base", "nope"]).run();
    eval.must_exit(2);
    assert!(eval.stderr.contains("is not in a git repository"), "{}", eval.story());
}

#[test]
fn a_batch_and_its_dry_run_report_every_refusal_before_anything_runs() {
    let file = "tasks: [tasks/*.md]\nrepositories: [../left, ../right]\n";
    let run = batch(&["run", "batch.yaml"]).file("batch.yaml", file);
    let run = run
        .file("tasks/b.md", "---\nmodel: cassette/gone.tape\n---\nDo it.\n")
        .file("tasks/c.md", "---\nmodel: cassette/any.tape\ncontext: [docs/gone.md]\n---\nDo it.\n")
        .file("tasks/d.md", "---\nmodel: cassette/any.tape\nneeds: [a]\nlane: made-by-a\n---\nDo it.\n");
    beside(&run, "left", &["verify"]);
    beside(&run, "right", &["other"]);
    let ended = run.run();
    ended.must_exit(2);
    insta::assert_snapshot!(plain(&ended));
    assert!(ended.runs().is_empty());
    let said = ended.stderr.clone();
    let dry = ended.again(&["run", "batch.yaml", "--dry-run"]).run();
    dry.must_exit(2);
    assert_eq!(dry.stderr, said);
    let based = dry.again(&["eval", "tasks/a.md", "--base", "nope", "-C", "../left", "--dry-run"]).run();
    based.must_exit(2);
    assert!(based.stderr.contains("there is no commit `nope` in the repository"), "{}", based.story());
    let none = based.again(&["run", "tasks/a.md", "-j1", "-C", "../left", "--resume", "--dry-run"]).run();
    none.must_exit(2);
    assert!(none.stderr.contains("no unfinished batch of these tasks to resume"), "{}", none.story());
}

#[test]
fn a_wrong_lane_of_one_of_several_repositories_is_shown_once_with_its_line() {
    let run = batch(&["run", "batch.yaml"]).file("tasks/b.md", TASK);
    let run = run.file("batch.yaml", "tasks: [tasks/*.md]\nrepositories: [../left, ../right]\n");
    beside(&run, "left", &["verify"]);
    beside(&run, "right", &[]);
    let right = run.workspace().with_file_name("right");
    fs::write(right.join("lanes/verify.yaml"), "steps:\n  - { rnu: make }\n").unwrap();
    git(&right, &["add", "-A"]);
    git(&right, &["commit", "-qm", "a slip"]);
    let ended = run.run();
    ended.must_exit(2);
    insta::assert_snapshot!(plain(&ended));
    let from = ended.again(&["run", "batch.yaml", "--lanes-from=main"]).run();
    from.must_exit(2);
    insta::assert_snapshot!(plain(&from));
}

#[test]
fn a_checkout_that_is_ahead_of_its_base_is_not_taken_for_it() {
    let run = batch(&["run", "tasks", "--from-commit", "--dry-run"]).committed();
    fs::write(run.workspace().join("lanes/new.yaml"), needs("done")).unwrap();
    let ended = run.run();
    ended.must_exit(0);
    let named = ended.again(&["run", "tasks", "--from-commit", "--lane", "new", "--dry-run"]).run();
    named.must_exit(2);
    assert!(named.stderr.contains("there is no lane `new`"), "{}", named.story());
}

#[test]
fn uncommitted_gate_files_are_refused_where_a_run_works_on_the_commit() {
    long_test!();
    let lane = needs("done").replace("done", "other");
    let changes: [(&str, &str, bool); 11] = [
        ("AGENTS.md", "Be brief.\n", true),
        ("lanes/verify.yaml", &lane, true),
        ("lanes/new.yaml", &lane, true),
        ("fledge.yaml", "max_retries: 1\n", true),
        ("tests/test_new.py", "def test(): pass\n", true),
        ("pyproject.toml", "[project]\nname = 'x'\n", true),
        ("tasks/a.md", "---\nmodel: cassette/any.tape\n---\nDo it, please.\n", true),
        ("notes.md", "Read this, please.\n", true), // the task names it
        ("tasks/b.md", TASK, false),
        ("src/app.py", "x = 1\n", false),
        ("README.md", "# x\n", false),
    ];
    let task = TASK.replace("---\nDo", "context: [notes.md]\n---\nDo");
    let run = batch(&["run", "tasks", "--dry-run"]).file("tasks/a.md", task).file("notes.md", "Read this.\n");
    let mut ended = run.file("README.md", "#\n").committed().run();
    ended.must_exit(0);
    for (path, text, decides) in changes {
        fs::create_dir_all(ended.path(path).parent().unwrap()).unwrap();
        fs::write(ended.path(path), text).unwrap();
        for args in [&["run", "tasks", "--dry-run"][..], &["run", "tasks/a.md", "--isolation=worktree", "--dry-run"]] {
            ended = ended.again(args).run();
            ended.must_exit(if decides { 2 } else { 0 });
            let named = format!("`{path}` differs from it: commit first, or use --from-commit");
            assert_eq!(ended.stderr.contains(&named), decides, "{}", ended.story());
            ended = ended.again(&[args, &["--from-commit"]].concat()).run();
            ended.must_exit(0);
        }
        ended = ended.again(&["run", "tasks/a.md", "--dry-run"]).run();
        ended.must_exit(0);
        ended.git(&["stash", "--include-untracked", "--quiet"]);
    }
}

#[test]
fn lanes_are_known_to_be_uncommitted_among_many_files_and_where_git_ignores_them() {
    long_test!();
    let mut ended = batch(&["run", "tasks", "--dry-run"]).committed().run();
    ended.must_exit(0);
    fs::create_dir(ended.path("out")).unwrap();
    for number in 0..2500 {
        fs::write(ended.path(&format!("out/an_artifact_with_a_rather_long_name_that_is_not_committed_{number}")), "")
            .unwrap();
    }
    fs::write(ended.path("lanes/verify.yaml"), needs("other")).unwrap();
    ended = ended.again(&["run", "tasks", "--dry-run"]).run();
    ended.must_exit(2);
    assert!(ended.stderr.contains("`lanes/verify.yaml` differs from it"), "{}", ended.story());
    let named = TASK.replace("---\nDo", "base: HEAD\n---\nDo");
    fs::write(ended.path("tasks/a.md"), named).unwrap();
    ended = ended.again(&["run", "tasks", "--dry-run"]).run();
    ended.must_exit(0);
    ended.git(&["rm", "-rqf", "--cached", "lanes"]);
    fs::write(ended.path(".gitignore"), "/lanes\n/out\n").unwrap();
    fs::write(ended.path("tasks/a.md"), TASK).unwrap();
    ended.git(&["add", ".gitignore", "tasks"]);
    ended.git(&["commit", "-qm", "ignored"]);
    ended = ended.again(&["run", "tasks", "--dry-run"]).run();
    ended.must_exit(2);
    assert!(ended.stderr.contains("`lanes/verify.yaml` (git ignores it) differs from it"), "{}", ended.story());
}

#[test]
fn lanes_that_are_not_committed_begin_no_run_in_a_worktree() {
    for args in [&["run", "tasks"][..], &["run", "tasks/a.md", "--isolation=worktree"]] {
        let run = batch(args).committed();
        fs::write(run.workspace().join("lanes/verify.yaml"), "steps: [{ name: never, run: 'false' }]\n").unwrap();
        let ended = run.run();
        ended.must_exit(2);
        assert!(ended.stderr.contains("`lanes/verify.yaml` differs from it"), "{}", ended.story());
        assert!(ended.runs().is_empty());
    }
}

#[test]
fn a_dry_run_says_that_submodules_are_empty() {
    let run = batch(&["run", "tasks", "--dry-run", "--json"]);
    beside(&run, "lib", &[]);
    let lib = run.workspace().with_file_name("lib").display().to_string();
    git(&run.workspace(), &["init", "-q", "-b", "main"]);
    git(&run.workspace(), &["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", &lib, "vendor"]);
    let ended = run.committed().run();
    ended.must_exit(0);
    let plan: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert!(plan["warnings"][0].as_str().unwrap().contains("the worktree does not contain the submodules `vendor`"));
    let one = ended.again(&["run", "tasks/a.md", "--isolation=worktree", "--dry-run"]).run();
    one.must_exit(0);
    assert!(one.stdout.contains("does not contain the submodules `vendor`"), "{}", one.story());
}

#[test]
fn where_nothing_could_begin_no_file_of_an_earlier_one_is_left() {
    let files = ["--report=r.json", "--junit=j.xml", "--summary=s.md"];
    let cases: [(&[&str], &str, &str); 4] = [
        (&["run", "gone.yaml"], "gone.yaml", "there is no batch file gone.yaml"),
        (&["run", "tasks", "--model", "cassette/gone.tape"], "tasks", "gone.tape"),
        (&["eval", "tasks", "--base", "nope"], "tasks", "there is no commit `nope`"),
        (&["run", "tasks", "--patch=p.patch"], "tasks", "--patch writes one file"),
    ];
    for (args, name, why) in cases {
        let run = batch(&[args, &files[..]].concat()).file("p.patch", "old\n");
        let run = ["r.json", "j.xml", "s.md"].into_iter().fold(run, |run, file| run.file(file, "old\n")).committed();
        let ended = run.run();
        ended.must_exit(2);
        let report: Value = serde_json::from_str(&ended.file("r.json").unwrap()).unwrap();
        assert_eq!((&report["verified"], &report["exit_code"]), (&false.into(), &2.into()), "{}", ended.story());
        assert!(report["message"].as_str().unwrap().contains(why), "{report}");
        let (junit, page) = (ended.file("j.xml").unwrap(), ended.file("s.md").unwrap());
        assert!(
            junit.contains(&format!("classname=\"{name}\"")) && junit.contains("the batch did not begin"),
            "{junit}"
        );
        assert!(junit.contains("errors=\"1\"") && !junit.contains("lane"), "{junit}");
        assert!(page.starts_with("# ✗ the batch did not begin\n") && page.contains(why), "{page}");
        assert_eq!(ended.file("p.patch").is_none(), args.contains(&"--patch=p.patch"));
        assert!(ended.runs().is_empty());
    }
}

#[test]
fn a_run_that_could_not_begin_or_was_not_verified_leaves_no_earlier_report_or_patch() {
    long_test!();
    let model = Model::new([say("Done.").always()]);
    let asked = ["--report=r.json", "--patch=p.patch", "--max-retries=0"];
    let run = Fledge::simple(&model).args(&[&["run", "gone.md"], &asked[..]].concat());
    let ended = run.file("r.json", "old\n").file("p.patch", "old\n").run();
    ended.must_exit(2);
    let report: Value = serde_json::from_str(&ended.file("r.json").unwrap()).unwrap();
    assert_eq!((&report["reason"], &report["run"]), (&"bad_input".into(), &Value::Null));
    assert_eq!(ended.file("p.patch"), None);
    fs::write(ended.path("p.patch"), "old\n").unwrap();
    let ended = ended.again(&[&["run", "task.md"], &asked[..]].concat()).anthropic(&model).run();
    ended.must_be(1, "gate_failed");
    assert_eq!(ended.file("p.patch"), None, "it is of another run");
    // A dry run writes and removes nothing.
    fs::write(ended.path("p.patch"), "old\n").unwrap();
    let ended = ended.again(&["run", "gone.md", "--patch=p.patch", "--dry-run"]).run();
    ended.must_exit(2);
    assert!(ended.file("p.patch").is_some());
    let model = Model::new([write("done", ""), say("Done.")]);
    let ended = ended.again(&["run", "task.md", "--patch=p.patch"]).anthropic(&model).run();
    ended.must_exit(0);
    assert!(ended.file("p.patch").unwrap().contains("b/done"));
}
