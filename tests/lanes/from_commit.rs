//! `--lanes-from`: the lanes of another commit judge the run, not those of the workspace.

use crate::support::{Fledge, Model, needs, say, write};

/// A repository whose branch `target` requires a different file than the checkout and has one more
/// lane.
fn place(model: &Model) -> Fledge {
    let target = Fledge::new().task("Make the file `done`.").anthropic(model);
    let target = target.lane("verify", &needs("other")).lane("more", &needs("other")).committed();
    let checkout = target.git(&["checkout", "-q", "-b", "work"]).git(&["branch", "target", "main"]);
    let checkout = checkout.lane("verify", &needs("done")).git(&["rm", "-q", "lanes/more.yaml"]);
    checkout.git(&["commit", "-qam", "another gate"])
}

#[test]
fn the_lanes_of_another_commit_judge_and_not_those_of_the_workspace() {
    long_test!();
    let model = Model::new([write("done", "x\n"), say("Done.").always()]);
    let ended = place(&model).arg("--lanes-from=target").arg("--max-retries=0").run();
    let report = ended.must_be(1, "gate_failed");
    assert!(ended.stderr.contains("the lanes come from `target`"), "{}", ended.story());
    assert_eq!(report["attempts"][0]["verdict"]["steps"][0]["command"], "test -f other");
    let model = Model::new([write("other", "x\n"), say("Done.")]);
    let args =
        ["--lanes-from=target", "--lane=verify", "--lane=more", "--commit=on-success", "--report=../report.json"];
    let ended = args.iter().fold(place(&model), |place, arg| place.arg(arg)).run();
    ended.must_be(0, "verified");
    let args = ["verify-report", "../report.json", "--lanes-from=target", "--lane=verify", "--lane=more"];
    ended.again(&args).run().must_exit(0);
}

#[test]
fn a_fix_is_judged_by_them_too_and_the_plan_shows_them() {
    long_test!();
    let model = Model::new([write("other", "x\n"), say("Done.")]);
    let ended = place(&model).args(&["fix", "--lanes-from=target"]).run();
    ended.must_be(0, "verified");
    let plan = place(&model).args(&["run", "task.md", "--lanes-from=target", "--dry-run"]).run();
    plan.must_exit(0);
    assert!(plan.stdout.contains("test -f other") && !plan.stdout.contains("test -f done"), "{}", plan.story());
}

#[test]
fn a_commit_or_lane_that_is_not_there_is_refused_before_any_model_is_asked() {
    long_test!();
    let model = Model::new([say("Done.").always()]);
    for (args, said) in [
        (&["--lanes-from=nowhere"][..], "cannot read the lanes of `nowhere` (--lanes-from): "),
        (&["--lanes-from=work", "--lane=more"], "there is no lane `more` in lanes/ of `work`"),
        (&["--lanes-from=--all"], "cannot read the lanes of `--all` (--lanes-from): "),
        (&["--lanes-from=nowhere", "--dry-run"], "cannot read the lanes of `nowhere` (--lanes-from): "),
    ] {
        let ended = args.iter().fold(place(&model), |place, arg| place.arg(arg)).run();
        ended.must_exit(2);
        assert!(ended.stderr.contains(said), "{args:?}: {}", ended.story());
    }
    let bare = Fledge::simple(&model).arg("--lanes-from=main").run();
    bare.must_exit(2);
    assert!(bare.stderr.contains("cannot read the lanes of `main` (--lanes-from): "), "{}", bare.story());
    assert_eq!(model.count(), 0);
}

#[test]
fn what_is_wrong_with_a_lane_of_another_commit_is_drawn_with_its_line() {
    let model = Model::new([say("Done.").always()]);
    let wrong = "steps:\n  - { run: \"true\", tiemout: 3m }\n";
    let place = Fledge::new().task("Make it.").anthropic(&model).lane("verify", wrong).committed();
    let ended = place.lane("verify", &needs("done")).arg("--lanes-from=main").run();
    ended.must_exit(2);
    let drawn = "main:lanes/verify.yaml:2:20: unknown key `tiemout` in a step (did you mean `timeout`?)\n  \
        2 |   - { run: \"true\", tiemout: 3m }\n    |                    ^^^^^^^\n";
    assert!(ended.stderr.contains(drawn), "{}", ended.story());
    let batch = ended.again(&["run", "task.md", "-j1", "--lanes-from=main"]).anthropic(&model).run();
    batch.must_exit(2);
    assert!(batch.stderr.contains(drawn), "{}", batch.story());
    assert_eq!(model.count(), 0);
}
