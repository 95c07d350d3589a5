//! Work that fledge cannot deliver unchanged, or not with git alone: early refusals, hints, and
//! reports on commits that git stores differently.

use crate::support::{Ended, Fledge, Model, git, say, shell, write};
use std::fs;

fn working() -> Model {
    Model::new([write("done", "yes\n"), say("Made the file.")])
}

fn committing(model: &Model) -> Fledge {
    Fledge::simple(model).arg("--commit=on-success")
}

/// Asserts that the commit of a run confirms its report.
#[track_caller]
fn must_hold(run: Ended) -> Ended {
    let run = run.again(&["verify-report", "../report.json"]).run();
    run.must_exit(0);
    run
}

#[test]
fn a_patch_needs_no_repository() {
    let model = working();
    let run = Fledge::simple(&model).file("kept", "1\n").arg("--patch=../out.patch").run();
    run.must_be(0, "verified");
    let patch = run.file("../out.patch").unwrap();
    assert!(patch.contains("From: fledge <fledge@localhost>") && patch.contains("b/done"), "{patch}");
    fs::remove_file(run.path("done")).unwrap();
    git(&run.path(""), &["apply", run.path("../out.patch").to_str().unwrap()]);
    assert_eq!(run.file("done").as_deref(), Some("yes\n"));
}

#[test]
fn a_patch_that_cannot_be_is_refused_for_nothing() {
    let model = working();
    let same = Fledge::simple(&model).args(&["run", "task.md", "--patch=../one", "--report=../one"]).run();
    same.must_exit(2);
    assert!(same.stderr.contains("--report and --patch name the same file"), "{}", same.story());
    let ungated = same.again(&["run", "task.md", "--no-verify", "--patch=../one"]).anthropic(&model).run();
    ungated.must_exit(2);
    assert!(ungated.stderr.contains("a patch holds verified work"), "{}", ungated.story());
    assert!(model.asked().is_empty());
}

#[test]
fn what_the_user_has_under_way_is_not_committed_with_one_parent() {
    long_test!();
    let me = ["-c", "user.name=t", "-c", "user.email=t@localhost"];
    let with = |args: &[&'static str]| [me.as_slice(), args].concat();
    for (begin, what) in [
        (vec!["merge", "--no-ff", "--no-commit", "-q", "other"], "merge"),
        (vec!["cherry-pick", "other"], "cherry-pick"),
        (vec!["revert", "-n", "HEAD"], "revert"),
        (vec!["rebase", "-q", "other"], "rebase"),
    ] {
        let model = working();
        let fledge = committing(&model).arg("--allow-dirty").file("a", "1\n").committed();
        let root = fledge.workspace();
        let run_git = |args: &[&'static str]| git(&root, &with(args));
        run_git(&["checkout", "-q", "-b", "other"]);
        fs::write(root.join("a"), "theirs\n").unwrap();
        run_git(&["commit", "-qam", "theirs"]);
        run_git(&["checkout", "-q", "main"]);
        // Git reports a conflict by its exit code.
        let file = if what == "merge" { "b" } else { "a" };
        fs::write(root.join(file), "ours\n").unwrap();
        run_git(&["add", "-A"]);
        run_git(&["commit", "-qm", "ours"]);
        let begun = [vec!["-c", "core.editor=true"], begin].concat();
        let _there_may_be_a_conflict = std::panic::catch_unwind(|| git(&root, &with(&begun)));
        let run = fledge.run();
        run.must_be_refused(&format!("a {what} is in progress"));
        assert!(model.asked().is_empty(), "{what}");
    }
}

#[test]
fn a_commit_beside_a_submodule_is_what_its_report_says() {
    long_test!();
    let library = Fledge::new().file("lib", "1\n").committed();
    let url = format!("file://{}", library.workspace().display());
    let model = working();
    let fledge = committing(&model).arg("--report=../report.json").file("a", "1\n").committed();
    let fledge = fledge.git(&["submodule", "--quiet", "add", &url, "lib"]).git(&["commit", "-qam", "lib"]);
    let run = fledge.run();
    let report = run.must_be(0, "verified");
    assert_eq!(run.git(&["rev-parse", "HEAD^{tree}"]), report["commit_tree"]);
    assert_ne!(report["commit_tree"], report["tree"]);
    let run = must_hold(run);
    let run = run.again(&["runs", "attest", "last"]).run();
    assert!(run.stdout.contains(report["commit_tree"].as_str().unwrap()), "{}", run.story());
    git(&run.path(""), &["-c", "user.name=t", "-c", "user.email=t@localhost", "commit", "-q", "--amend", "-m", "same"]);
    let run = must_hold(run);
    run.git(&["rm", "-q", "a"]);
    git(&run.path(""), &["-c", "user.name=t", "-c", "user.email=t@localhost", "commit", "-qm", "other"]);
    run.again(&["verify-report", "../report.json"]).run().must_exit(1);
}

#[test]
fn a_sparse_partial_clone_is_committed_in() {
    long_test!();
    let model = working();
    let upstream = Fledge::simple(&model).file("in/a", "1\n").file("out/b", "2\n").committed();
    let upstream = upstream.git(&["config", "uploadpack.allowFilter", "true"]);
    let url = format!("file://{}", upstream.workspace().display());
    let fledge = Fledge::new().anthropic(&model);
    let root = fledge.workspace();
    git(&root, &["clone", "-q", "--filter=blob:none", "--sparse", &url, "."]);
    git(&root, &["sparse-checkout", "set", "in", "lanes"]);
    let run = fledge.args(&["run", "task.md", "--commit=on-success", "--report=../report.json"]).run();
    run.must_be(0, "verified");
    assert_eq!(run.git(&["diff", "--name-status", "HEAD^", "HEAD"]), "A\tdone");
    assert_eq!(run.git(&["status", "--porcelain"]), "");
    must_hold(run);
}

#[test]
fn what_leads_on_from_a_delivery_that_failed_is_what_can() {
    long_test!();
    // Git's filter for large files is not set up here, and the work has changed a large file.
    let model = Model::new([shell("echo whole > big.bin; touch done"), say("Done.")]);
    let pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n";
    let fledge = committing(&model).file(".gitattributes", "*.bin filter=lfs -text\n").file("big.bin", pointer);
    let run = fledge.committed().run();
    let report = run.must_be(5, "not_delivered");
    let message = report["message"].as_str().unwrap();
    assert!(message.ends_with("`big.bin`; the work is in the workspace: commit it with git"), "{message}");
    assert_eq!(run.git(&["rev-list", "--count", "HEAD"]), "1");
}

#[test]
fn work_that_somebody_has_committed_too_still_comes_onto_a_branch() {
    long_test!();
    let commit = "echo yes > done; git add done; git -c user.name=x -c user.email=x@localhost commit -q -m same";
    let model = Model::new([shell(commit), say("Done.")]);
    let run = committing(&model).arg("--sandbox=off").committed().run();
    let report = run.must_be(5, "not_delivered");
    let message = report["message"].as_str().unwrap();
    assert!(message.contains("put the work on a branch with `fledge apply "), "{message}");
    let run = run.again(&["apply", "last", "--branch", "mine"]).run();
    run.must_exit(0);
    assert_eq!(run.git(&["rev-parse", "mine^{tree}"]), report["tree"]);
}

#[test]
fn one_file_is_one_file() {
    long_test!();
    let model = working();
    let run = Fledge::simple(&model).run();
    run.must_be(0, "verified");
    fs::remove_file(run.path("done")).unwrap();
    let run = run.again(&["apply", "last", "--check"]).run();
    assert!(run.stderr.contains("✓ 1 file would be as in "), "{}", run.story());
    let run = run.again(&["apply", "last"]).run();
    assert!(run.stderr.contains("✓ 1 file is as in "), "{}", run.story());
}

#[test]
fn the_report_of_a_run_without_a_gate_is_said_to_be_none_of_verified_work() {
    let model = working();
    let fledge = Fledge::simple(&model).args(&["run", "task.md", "--no-verify", "--report=../report.json"]);
    let run = fledge.run().again(&["verify-report", "../report.json"]).run();
    run.must_exit(1);
    assert!(run.stderr.contains("the run had no gate, so nothing was verified"), "{}", run.story());
}

#[test]
fn many_findings_are_told_in_a_bounded_number_of_lines() {
    long_test!();
    let model = Model::new([shell("for n in $(seq 100); do echo x > lanes/$n.yaml; done"), say("Done.")]);
    let run = Fledge::simple(&model).arg("--on-tamper=fail").run();
    let report = run.must_be(6, "gate_tampered");
    assert_eq!(report["attempts"][0]["verdict"]["findings"].as_array().unwrap().len(), 100);
    assert_eq!(run.stderr.matches("! protected: lanes/").count(), 20, "{}", run.story());
    assert!(run.stderr.contains("! protected: and 80 more; the report lists all"), "{}", run.story());
}
