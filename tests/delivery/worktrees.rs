//! Runs in separate worktrees: the user's checkout stays unchanged, uncommitted work is never lost,
//! and nothing else remains.

use crate::support::{Ended, Fledge, Model, Running, git, say, shell, write};
use fledge::store::StoredRunState;
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};

/// Returns a model that does the task and says so.
pub(crate) fn working() -> Model {
    Model::new([write("done", "yes\n"), say("Made the file.")])
}

/// Returns a run in a worktree.
pub(crate) fn isolated(model: &Model) -> Fledge {
    Fledge::simple(model).arg("--isolation=worktree")
}

/// Returns the entries beside the worktrees of the one project.
pub(crate) fn left(run: &Ended) -> Vec<String> {
    let all = worktrees(&run.path("../state"));
    let mut names: Vec<String> = all.map(|all| names(&all)).unwrap_or_default();
    names.sort();
    names
}

fn names(folder: &Path) -> Vec<String> {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// Returns the folder of the one project's worktrees.
fn worktrees(state: &Path) -> Option<PathBuf> {
    let projects = fs::read_dir(state).into_iter().flatten().map(|entry| entry.unwrap().path().join("worktrees"));
    projects.into_iter().find(|all| all.is_dir())
}

/// Returns the branches of runs.
pub(crate) fn branches(run: &Ended) -> String {
    run.git(&["for-each-ref", "--format=%(refname:short)", "refs/heads/fledge"])
}

/// Returns the number of worktrees that git knows, including the checkout itself.
pub(crate) fn known(run: &Ended) -> usize {
    run.git(&["worktree", "list", "--porcelain"]).lines().filter(|line| line.starts_with("worktree ")).count()
}

#[track_caller]
pub(crate) fn worktree(report: &Value) -> &Value {
    let worktree = &report["worktree"];
    assert!(worktree.is_object(), "{report:#}");
    worktree
}

#[test]
fn verified_work_is_a_commit_on_a_branch_of_its_own_and_the_checkout_stays_as_it_is() {
    long_test!();
    let model = working();
    let fledge = isolated(&model).file("kept", "1\n").committed().file("kept", "mine, not committed\n").file("new", "");
    let run = fledge.run();
    let report = run.must_be(0, "verified");
    let place = worktree(&report);
    assert_eq!((&place["state"], &place["has_branch"]), (&"removed".into(), &true.into()));
    let branch = place["branch"].as_str().unwrap();
    assert!(branch.starts_with("fledge/") && branches(&run) == branch, "{}", branches(&run));
    assert_eq!(report["branch"], format!("refs/heads/{branch}"));
    assert_eq!(run.git(&["rev-parse", branch]), report["commit"].as_str().unwrap());
    assert_eq!(run.git(&["diff", "--name-only", "main", branch]), "done");
    assert_eq!(run.git(&["status", "--porcelain"]), " M kept\n?? new");
    assert_eq!((run.file("kept").as_deref(), run.file("done")), (Some("mine, not committed\n"), None));
    assert_eq!((left(&run), known(&run)), (Vec::new(), 1));
    assert!(run.stderr.contains(&format!("removed, its branch {branch} stays")), "{}", run.story());
    let run = run.again(&["runs", "show"]).run();
    assert!(run.stdout.contains(branch), "{}", run.story());
    let run = run.again(&["runs", "diff", "last", "--stat"]).run();
    assert!(run.stdout.contains("done"), "{}", run.story());
    let run = run.again(&["apply", "last"]).run();
    run.must_exit(1); // the checkout contains other work
    let run = run.again(&["runs", "undo", "last"]).run();
    run.must_exit(2);
    assert!(run.stderr.contains("which is gone"), "{}", run.story());
}

#[test]
fn failed_work_stays_in_its_worktree_and_is_found_from_there() {
    long_test!();
    let model = Model::new([write("half", "1\n"), say("Done."), say("Done."), say("Done."), say("Done.")]);
    let run = isolated(&model).arg("--max-retries=0").committed().run();
    let report = run.must_be(1, "gate_failed");
    let place = worktree(&report);
    assert_eq!((&place["state"], &place["has_branch"]), (&"kept".into(), &true.into()));
    assert_eq!(place["why"], "it has uncommitted changes: half");
    let folder = PathBuf::from(place["path"].as_str().unwrap());
    assert_eq!(fs::read_to_string(folder.join("half")).unwrap(), "1\n");
    assert!(run.stderr.contains("stays: it has uncommitted changes: half"), "{}", run.story());
    assert_eq!((run.git(&["status", "--porcelain"]), known(&run)), (String::new(), 2));
    for verb in [["runs", "list"].as_slice(), &["runs", "show"], &["runs", "diff", "last", "base", "now"]] {
        let from = folder.to_str().unwrap().to_owned();
        let here = fledge_again(&run, verb, &from);
        assert!(here.0, "{verb:?}: {}", here.1);
        assert!(here.1.contains("half") || verb[1] != "diff", "{verb:?}: {}", here.1);
    }
    let run = run.again(&["runs", "undo", "last"]).run();
    run.must_exit(0);
    assert!(!folder.join("half").exists(), "{}", run.story());
}

/// Runs the program in another folder, with the same state. Returns its success and its output.
fn fledge_again(run: &Ended, args: &[&str], at: &str) -> (bool, String) {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_fledge"));
    command.args(args).current_dir(at).env_clear();
    for (name, value) in [("HOME", run.path("../home")), ("FLEDGE_STATE_DIR", run.path("../state"))] {
        command.env(name, value);
    }
    let output = command.env("PATH", std::env::var("PATH").unwrap()).output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&said).into_owned())
}

#[test]
fn where_nothing_was_changed_nothing_is_left() {
    long_test!();
    let model = Model::new([say("There is nothing to do.")]);
    let run = isolated(&model).file("done", "").committed().run();
    let report = run.must_be(0, "verified");
    assert_eq!((&report["commit"], &worktree(&report)["state"]), (&Value::Null, &"removed".into()));
    assert_eq!((left(&run), known(&run), branches(&run)), (Vec::new(), 1, String::new()));
}

#[test]
fn a_worktree_is_made_from_any_commit_in_any_kind_of_checkout() {
    long_test!();
    // A detached head at an older commit.
    let model = working();
    let run = isolated(&model).file("one", "").committed().file("two", "").git(&["add", "-A"]);
    let run = run.git(&["commit", "-qm", "second"]).git(&["checkout", "-q", "--detach"]).arg("--base=HEAD^").run();
    let report = run.must_be(0, "verified");
    let branch = worktree(&report)["branch"].as_str().unwrap();
    assert_eq!(run.git(&["ls-tree", "--name-only", branch]), "done\nlanes\none\ntask.md");
    // A shallow clone.
    let model = working();
    let far = crate::support::temp_dir();
    git(far.path(), &["init", "-q", "-b", "main"]);
    for (path, text) in [("done.txt", "1"), ("lanes/verify.yaml", "steps:\n  - { name: there, run: test -f done }\n")] {
        fs::create_dir_all(far.path().join("lanes")).unwrap();
        fs::write(far.path().join(path), text).unwrap();
        git(far.path(), &["add", "-A"]);
        git(far.path(), &["commit", "-qm", path]);
    }
    let fledge = isolated(&model);
    let workspace = fledge.workspace();
    fs::remove_dir_all(&workspace).unwrap();
    let url = format!("file://{}", far.path().display());
    git(workspace.parent().unwrap(), &["clone", "-q", "--depth=1", &url, "workspace"]);
    let run = fledge.task("Make the file `done`.").run();
    run.must_be(0, "verified");
    assert_eq!((left(&run), known(&run)), (Vec::new(), 1));
}

#[test]
fn a_project_that_is_a_folder_of_its_repository_is_one_in_the_worktree() {
    long_test!();
    let model = Model::new([shell("git rev-parse --show-prefix > where"), write("done", ""), say("Done.")]);
    let fledge = isolated(&model);
    let workspace = fledge.workspace();
    let top = workspace.parent().unwrap();
    fs::write(top.join(".gitignore"), "state\nhome\n").unwrap();
    git(top, &["init", "-q", "-b", "main"]);
    git(top, &["add", "-A"]);
    git(top, &["commit", "-qm", "first"]);
    let run = fledge.run();
    let report = run.must_be(0, "verified");
    let branch = worktree(&report)["branch"].as_str().unwrap();
    let changed = run.git(&["diff", "--name-only", "main", branch]);
    assert_eq!(changed, "workspace/done\nworkspace/where");
    assert_eq!(run.git(&["show", &format!("{branch}:workspace/where")]), "workspace/");
    assert_eq!(left(&run), Vec::<String>::new());
}

#[test]
fn where_no_worktree_can_be_made_it_is_said_and_no_model_is_asked() {
    let bare = |fledge: Fledge| fledge.git(&["init", "-q", "--bare", "."]);
    type Prepare = fn(Fledge) -> Fledge;
    let cases: [(&str, Prepare, &str); 4] = [
        ("no repository", |fledge| fledge, "is not in a git repository"),
        ("no commit", |fledge| fledge.git(&["init", "-q"]), "has no commit yet"),
        ("no such base", |fledge| fledge.committed().arg("--base=nowhere"), "there is no commit `nowhere`"),
        ("bare", bare, "is a bare repository"),
    ];
    for (case, prepare, said) in cases {
        let model = working();
        let run = prepare(isolated(&model)).run();
        run.must_be_refused(said);
        assert!(model.asked().is_empty(), "{case}: a model was asked");
        assert_eq!(left(&run), Vec::<String>::new(), "{case}");
    }
    let model = working();
    let run = Fledge::simple(&model).committed().arg("--base=HEAD").run();
    run.must_exit(2);
    assert!(run.stderr.contains("--base: only a worktree starts from a commit"), "{}", run.story());
}

/// Kills the process once it prints this text.
#[track_caller]
fn killed(mut running: Running, said: &str) -> Ended {
    running.wait_for(said);
    running.signal(Signal::KILL);
    let ended = running.end();
    assert_eq!((ended.code, ended.row().state), (None, StoredRunState::Interrupted), "{}", ended.story());
    ended
}

#[test]
fn a_killed_run_goes_on_in_its_worktree() {
    long_test!();
    let model = Model::new([write("half", "1\n"), say("Going on").hanging(), write("done", ""), say("Done.")]);
    let ended = killed(isolated(&model).committed().arg("--json").start(), "Going o");
    assert_eq!(known(&ended), 2);
    let run = ended.again(&["runs", "resume", "last"]).anthropic(&model).run();
    let report = run.must_be(0, "verified");
    let branch = worktree(&report)["branch"].as_str().unwrap();
    assert_eq!(run.git(&["diff", "--name-only", "main", branch]), "done\nhalf");
    assert_eq!((left(&run), known(&run), run.git(&["status", "--porcelain"])), (Vec::new(), 1, String::new()));
}

#[test]
fn an_agent_in_a_worktree_reaches_neither_the_checkout_nor_another_worktree() {
    long_test!();
    let attack = |folder: &str| {
        format!(
            "for d in {folder}/workspace {folder}/workspace/.git {folder}/workspace/.git/hooks {folder}/state/*/worktrees/* \
             {folder}/state/*/worktrees/*/* {folder}/workspace/.git/worktrees/*; do echo x > $d/PWNED; echo x >> $d/HEAD; done 2>/dev/null; \
             git config core.fsmonitor touched; git update-ref refs/heads/main HEAD~1; rm -f .git; true"
        )
    };
    // Another run's worktree, which remains.
    let model = Model::new([write("half", "1\n"), say("Done.")]);
    let run = isolated(&model).arg("--max-retries=0").committed().run();
    let other = PathBuf::from(worktree(&run.must_be(1, "gate_failed"))["path"].as_str().unwrap());
    let folder = run.path("..").canonicalize().unwrap();
    let model = Model::new([shell(&attack(folder.to_str().unwrap())), write("done", ""), say("Done.")]);
    let again = ["run", "task.md", "--isolation=worktree", "--report=../report.json"];
    let run = run.again(&again).anthropic(&model).run();
    run.must_exit(0);
    let report: Value = serde_json::from_str(&fs::read_to_string(run.path("../report.json")).unwrap()).unwrap();
    let branch = worktree(&report)["branch"].as_str().unwrap();
    let changed = run.git(&["diff", "--name-only", "main", branch]);
    assert!(changed.contains("done"), "{changed}");
    for place in [run.path(""), run.path(".git"), run.path(".git/hooks"), other.clone(), run.path(".git/worktrees")] {
        assert!(!place.join("PWNED").exists(), "{}", place.display());
    }
    assert!(!names(&other).contains(&"HEAD".to_owned()));
    assert!(!fs::read_to_string(run.path(".git/config")).unwrap().contains("fsmonitor"));
    assert_eq!(run.git(&["status", "--porcelain"]), "");
}

#[test]
fn worktrees_and_rooms_have_the_name_of_the_projects_folder() {
    long_test!();
    let named = "test \"$(basename \"$PWD\")\" = workspace";
    let lane = format!("steps: [{{ name: name, run: '{named}' }}]");
    for args in [
        ["--isolation=worktree", "--sandbox=auto"],
        ["--isolation=worktree", "--sandbox=off"],
        ["--isolation=in-place", "--sandbox=off"],
    ] {
        let model = Model::new([shell(&format!("{named} && touch done")), say("Done.")]);
        let run = Fledge::simple(&model).lane("verify", &lane).arg(args[0]).arg(args[1]).committed().run();
        let report = run.must_be(0, "verified");
        assert_ne!(report["changes"]["files"], json!([]), "{args:?}: the agent has seen another name");
    }
}
