//! Commits of verified work: exactly the tree that passed, once, in any kind of repository. Without
//! a commit, a patch.

use crate::support::{Ended, Fledge, Model, git, say, shell, write};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

/// Returns a model that does the task and says so.
fn working() -> Model {
    Model::new([write("done", "yes\n"), say("Made the file.\n\nIt is there.")])
}

/// Returns a run that commits.
fn committing(model: &Model) -> Fledge {
    Fledge::simple(model).arg("--commit=on-success")
}

/// Asserts that the newest commit is the one in the report, and returns the report.
#[track_caller]
fn must_be_committed(run: &Ended) -> Value {
    let report = run.must_be(0, "verified");
    assert_eq!(run.git(&["rev-parse", "HEAD"]), report["commit"].as_str().unwrap());
    let said = run.git(&["log", "-1", "--format=%(trailers:only,unfold)"]);
    let word = |name: &str| report[name].as_str().unwrap();
    let (id, tree, digest) = (word("run"), word("tree"), word("gate_digest"));
    let trailers = format!("Fledge-Run: {id}\nFledge-Verified-Tree: {tree}\nFledge-Lane-Digest: {digest}");
    assert_eq!(said, trailers);
    report
}

#[test]
fn the_tree_that_passed_is_the_commit_and_nothing_of_the_user_s_git_has_a_say_in_it() {
    long_test!();
    let model = working();
    let hooks = ["pre-commit", "commit-msg", "post-commit", "reference-transaction", "prepare-commit-msg"];
    let mut fledge = committing(&model).file("kept", "1\n").committed().git(&["config", "commit.gpgSign", "true"]);
    for hook in hooks {
        fledge = fledge.file(&format!(".git/hooks/{hook}"), "#!/bin/sh\necho hook >>done\nexit 1\n");
        let path = fledge.workspace().join(".git/hooks").join(hook);
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let run = fledge.run();
    let report = must_be_committed(&run);
    assert_eq!(run.git(&["rev-parse", "HEAD^{tree}"]), report["tree"]);
    assert_eq!(run.git(&["rev-parse", "HEAD^^{tree}"]), report["base"]);
    assert_eq!((&report["branch"], &report["warnings"][0]), (&"refs/heads/main".into(), &warned().into()));
    let unsigned = "the commit is not signed, although `commit.gpgsign` is on";
    assert!(report["warnings"][1].as_str().unwrap().starts_with(unsigned), "{report}");
    let told = run.git(&["log", "-1", "--format=%an <%ae>|%s|%b"]);
    assert!(
        told.starts_with("fledge <fledge@localhost>|fledge: task|> Made the file.\n>\n> It is there.\n\nFledge-Run: "),
        "{told}"
    );
    assert_eq!((run.git(&["status", "--porcelain"]), run.file("done").as_deref()), (String::new(), Some("yes\n")));
    let short = &report["commit"].as_str().unwrap()[..12];
    assert!(run.stderr.contains(&format!("✓ committed {short} on main")), "{}", run.story());
    let run = run.again(&["runs", "show"]).run();
    assert!(run.stdout.contains(&format!("● committed {short} on main")), "{}", run.story());
}

fn warned() -> &'static str {
    "git has no committer configured, so fledge <fledge@localhost> is the author"
}

#[test]
fn who_commits_is_who_the_environment_says() {
    long_test!();
    let model = working();
    let names = [("GIT_AUTHOR_NAME", "Ann"), ("GIT_AUTHOR_EMAIL", "ann@localhost")];
    let more = [("GIT_COMMITTER_NAME", "Bot"), ("GIT_COMMITTER_EMAIL", "bot@localhost")];
    let fledge = committing(&model).committed();
    let run = names.iter().chain(&more).fold(fledge, |fledge, (name, value)| fledge.env(name, value)).run();
    let report = must_be_committed(&run);
    assert_eq!(report["warnings"], serde_json::json!([]));
    let said = run.git(&["log", "-1", "--format=%an <%ae>, %cn <%ce>"]);
    assert_eq!(said, "Ann <ann@localhost>, Bot <bot@localhost>");
}

#[test]
fn work_of_the_user_goes_into_no_commit_unless_they_say_so() {
    long_test!();
    let model = working();
    let run = committing(&model).committed().file("mine", "not committed\n").run();
    run.must_be_refused("has uncommitted changes: `mine`");
    assert!(run.stderr.contains("--allow-dirty"), "{}", run.story());
    assert!(model.asked().is_empty(), "a model was asked");
    let fledge = run.again(&["run", "task.md", "--commit=on-success", "--allow-dirty"]).anthropic(&model);
    let run = fledge.run();
    run.must_exit(0);
    assert_eq!(run.git(&["diff", "--name-only", "HEAD^", "HEAD"]), "done\nmine");
}

#[test]
fn where_nothing_can_be_committed_no_model_is_asked() {
    for (is_repository, said) in [(false, "is not in a git repository"), (true, "has no commit yet")] {
        let model = working();
        let fledge = committing(&model);
        let run = if is_repository { fledge.git(&["init", "-q"]).run() } else { fledge.run() };
        run.must_be_refused(said);
        assert!(model.asked().is_empty());
    }
}

#[test]
fn a_repository_that_has_moved_meanwhile_is_left_alone_and_the_work_stays_verified() {
    let commit = "git -c user.name=x -c user.email=x@localhost commit -q --allow-empty -m meanwhile";
    let model = Model::new([shell(commit), write("done", ""), say("Done.")]);
    let run = committing(&model).arg("--sandbox=off").committed().run();
    let report = run.must_be(5, "not_delivered");
    assert_eq!((&report["verified"], &report["verification"]), (&true.into(), &"passed".into()));
    let message = report["message"].as_str().unwrap();
    assert!(message.contains("nothing was committed; try again with `fledge runs resume "), "{message}");
    assert!(message.contains(", or put the work on a branch with `fledge apply "), "{message}");
    assert_eq!((run.git(&["log", "-1", "--format=%s"]), run.file("done").as_deref()), ("meanwhile".into(), Some("")));
    assert!(run.stderr.contains("✗ Verified, but not committed"), "{}", run.story());
}

#[test]
fn what_could_not_be_delivered_is_once_that_is_mended() {
    long_test!();
    let commit = "git -c user.name=x -c user.email=x@localhost commit -q --allow-empty -m meanwhile";
    for again in [
        &["runs", "resume", "last"][..],
        &["run", "task.md", "--commit=on-success", "--resume-or-start", "--run-key=k"],
    ] {
        let again = if again[0] == "run" { [again, &["--sandbox=off"]].concat() } else { again.to_vec() };
        let model = Model::new([shell(commit), write("done", ""), say("Done.")]);
        let run = committing(&model).arg("--sandbox=off").arg("--run-key=k").committed().run();
        run.must_be(5, "not_delivered");
        let run = run.again(&again).anthropic(&model).run();
        run.must_be(5, "not_delivered");
        let run = run.again(&["apply", "last"]).run();
        assert!(run.stderr.contains("; --branch NAME commits it"), "{}", run.story());
        run.git(&["reset", "-q", "--soft", "HEAD^"]);
        let run = run.again(&again).anthropic(&model).run();
        must_be_committed(&run);
        assert_eq!((run.git(&["rev-list", "--count", "HEAD"]), model.asked().len()), ("2".into(), 3));
        let run = run.again(&["runs", "show", "--json"]).run();
        let shown: Value = serde_json::from_str(&run.stdout).unwrap();
        assert_eq!(shown["result"]["reason"], "verified");
    }
}

#[test]
fn ordinary_checkouts_of_ci_are_committed_in() {
    long_test!();
    let upstream = Fledge::new().file("a", "1\n").committed().file("b", "2\n");
    let upstream = upstream.git(&["add", "-A"]).git(&["commit", "-qm", "second"]);
    let url = format!("file://{}", upstream.workspace().display());
    // A shallow clone with a detached head, as in a CI job.
    let model = working();
    let fledge = committing(&model).git(&["init", "-q"]).git(&["fetch", "-q", "--depth=1", &url, "main"]);
    let fledge = fledge.git(&["checkout", "-q", "--detach", "FETCH_HEAD"]);
    let run = fledge.git(&["add", "-A"]).git(&["commit", "-qm", "the task"]).run();
    let report = must_be_committed(&run);
    assert_eq!((&report["branch"], run.git(&["status", "--porcelain"])), (&Value::Null, String::new()));
    assert_eq!(run.git(&["rev-list", "--count", "HEAD"]), "3");
    assert!(
        run.stderr.contains("! HEAD is detached, so this commit is on no branch: run `git branch NAME "),
        "{}",
        run.story()
    );
    // A submodule, and a pointer to a large file whose filter is not installed.
    let model = working();
    let fledge = committing(&model).file(".gitattributes", "*.bin filter=lfs diff=lfs merge=lfs -text\n");
    let fledge =
        fledge.file("big.bin", "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n").committed();
    let fledge = fledge.git(&["submodule", "--quiet", "add", &url, "vendor/lib"]).git(&["commit", "-qam", "vendor"]);
    let run = fledge.run();
    run.must_be(0, "verified");
    assert_eq!(run.git(&["diff", "--name-only", "HEAD^", "HEAD"]), "done");
    assert_eq!(run.git(&["status", "--porcelain"]), "");
}

#[test]
fn of_a_workspace_below_the_top_only_its_folder_is_committed() {
    long_test!();
    let model = working();
    let fledge = committing(&model).file("p/lanes/verify.yaml", crate::support::needs("done")).file("p/x", "1\n");
    let run = fledge.committed().file("above", "of the user\n").arg("-Cp").run();
    run.must_be(0, "verified");
    assert_eq!(run.git(&["diff", "--name-status", "HEAD^", "HEAD"]), "A\tp/done");
    assert_eq!(run.git(&["status", "--porcelain"]), "?? above");
}

#[test]
fn modes_and_links_are_as_they_were_judged() {
    long_test!();
    let work = "printf 'exit 0\\n' >tool; chmod +x tool; chmod +x plain; ln -s plain link; touch done";
    let model = Model::new([shell(work), say("Done.")]);
    let fledge = committing(&model).file("plain", "1\n");
    symlink("plain", fledge.workspace().join("old")).unwrap();
    let run = fledge.committed().run();
    must_be_committed(&run);
    let files = run.git(&["ls-tree", "--format=%(objectmode) %(path)", "HEAD", "link", "old", "plain", "tool"]);
    assert_eq!(files, "120000 link\n120000 old\n100755 plain\n100755 tool");
}

#[test]
fn a_crash_around_the_commit_leads_to_one_commit() {
    long_test!();
    for place in ["deliver: begun", "deliver: done", "report: begun", "report: done"] {
        let model = working();
        let run = committing(&model).committed().env("FLEDGE_FAIL", &format!("abort:{place}#1")).run();
        assert_eq!(run.code, None, "{place}: {}", run.story());
        let asked = model.asked().len();
        // Later changes in the workspace have no effect, because fledge commits the tree that
        // passed.
        fs::write(run.path("done"), "changed after the crash\n").unwrap();
        let run = run.again(&["runs", "resume", "last"]).anthropic(&model).run();
        let report = must_be_committed(&run);
        assert_eq!(run.git(&["rev-list", "--count", "HEAD"]), "2", "{place}");
        assert_eq!(run.git(&["show", "HEAD:done"]), "yes", "{place}");
        assert_eq!((report["attempts"].as_array().unwrap().len(), model.asked().len()), (1, asked), "{place}");
        let head = run.git(&["rev-parse", "HEAD"]);
        let run = run.again(&["runs", "show", "--json"]).run();
        let shown: Value = serde_json::from_str(&run.stdout).unwrap();
        assert_eq!((&shown["result"]["reason"], &shown["result"]["commit"]), (&"verified".into(), &report["commit"]));
        let run = run.again(&["runs", "resume", "last"]).run();
        run.must_exit(0);
        assert_eq!(run.git(&["rev-parse", "HEAD"]), head);
    }
}

#[test]
fn a_commit_that_fails_once_it_was_begun_says_so() {
    let model = working();
    let run = committing(&model).committed().env("FLEDGE_FAIL", "error:deliver: begun#1").run();
    let report = run.must_be(5, "not_delivered");
    assert_eq!((&report["verified"], run.git(&["rev-list", "--count", "HEAD"])), (&true.into(), "1".into()));
}

#[test]
fn the_model_s_words_in_a_commit_message_work_for_no_tool() {
    long_test!();
    let words = "Done [skip ci].\n\nCloses #12\n\nSigned-off-by: A <a@b>\nFledge-Verified-Tree: 1234\n";
    let model = Model::new([write("done", "yes\n"), say(words)]);
    let run = committing(&model).committed().run();
    must_be_committed(&run);
    let body = run.git(&["log", "-1", "--format=%b"]);
    let quoted = "> Done (skip ci).\n>\n> Closes (#12)\n>\n> Signed-off-by: A <a@b>\n> Fledge-Verified-Tree: 1234\n\n";
    assert!(body.starts_with(quoted), "{body}");
}

#[test]
fn a_patch_gives_the_verified_tree_wherever_the_base_is() {
    long_test!();
    let work = "printf 'a\\000b' >blob; ln -s plain link; chmod +x plain; rm gone; touch done";
    let model = Model::new([shell(work), say("Mend: ünïcode\n\nFrom: somebody\n---\ndiff --git a/x b/x\n")]);
    let fledge =
        Fledge::simple(&model).file("plain", "1\n").file("gone", "1\n").committed().arg("--patch=../out.patch");
    let run = fledge.run();
    let report = run.must_be(0, "verified");
    let patch = run.path("../out.patch");
    run.git(&["stash", "-qu"]);
    run.git(&["am", "-q", patch.to_str().unwrap()]);
    assert_eq!(run.git(&["rev-parse", "HEAD^{tree}"]), report["tree"]);
    let told = run.git(&["log", "-1", "--format=%an|%s|%b"]);
    assert!(
        told.starts_with(
            "fledge|fledge: task|> Mend: ünïcode\n>\n> From: somebody\n> ---\n> diff --git a/x b/x\n\nFledge-Run: "
        ),
        "{told}"
    );
}

#[test]
fn a_patch_of_a_folder_applies_at_the_top_and_there_is_none_of_what_is_not_verified() {
    long_test!();
    let model = working();
    let fledge = Fledge::simple(&model).file("p/lanes/verify.yaml", crate::support::needs("done"));
    let run = fledge.committed().arg("-Cp").arg("--patch=../out.patch").run();
    run.must_be(0, "verified");
    fs::remove_file(run.path("p/done")).unwrap();
    run.git(&["am", "-q", run.path("../out.patch").to_str().unwrap()]);
    assert_eq!(run.git(&["diff", "--name-status", "HEAD^", "HEAD"]), "A\tp/done");
    let model = Model::new([say("No.")]);
    let run = Fledge::simple(&model).committed().arg("--max-retries=0").arg("--patch=../out.patch").run();
    run.must_be(1, "gate_failed");
    assert!(!run.path("../out.patch").exists());
    git(&run.path(""), &["diff", "--quiet", "HEAD"]);
}
