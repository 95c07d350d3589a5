//! Candidates for one task, as users see them: the winner, the delivery, and the end of the others.

use crate::support::{
    Ended, Fledge, Model, SOON, hang, must_be_gone, needs, say, shell, sleepers, unique, until, write,
};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;

/// Returns a recorded model that writes this file and finishes.
fn writes(path: &str) -> String {
    format!(
        "turns:\n  - text: I write it.\n    tools: [{{ name: files-write, input: {{ path: {path}, content: \"1\\n\" }} }}]\n  - text: Done.\n"
    )
}

fn race(front: &str) -> Fledge {
    let task = format!("---\nmax_retries: 0\n{front}\n---\n# Make it\n\nMake the file `done`.\n");
    Fledge::new().lane("verify", &needs("done")).task(&task)
}

/// Returns the outcomes of the candidates, in their order.
fn outcomes(report: &Value) -> Vec<&str> {
    report["candidates"].as_array().unwrap().iter().map(|one| one["outcome"].as_str().unwrap()).collect()
}

#[track_caller]
fn must_be_alone(ended: &Ended) {
    assert_eq!(ended.git(&["worktree", "list"]).lines().count(), 1, "{}", ended.story());
}

fn branches(ended: &Ended) -> Vec<String> {
    let all = ended.git(&["for-each-ref", "--format=%(refname)", "refs/heads/fledge"]);
    all.lines().map(str::to_owned).collect()
}

#[test]
fn the_first_verified_one_is_delivered_and_another_ends_in_the_middle_of_its_call() {
    long_test!();
    let number = unique();
    let (slept, mut asked) = (number.clone(), 0);
    let model = Model::thinking(move |_, count| {
        asked += 1;
        let turn = match asked {
            1 => shell(&format!("echo half > half; sleep {slept}")),
            2 => {
                // The other candidate is in the middle of its call by now.
                until("the call of the other candidate", || !sleepers(&slept).is_empty());
                write("done", "1\n")
            }
            _ => say("Done."),
        };
        (Some(turn), count)
    });
    let run = race("candidates: 2").anthropic(&model).committed();
    let at = run.state().parent().unwrap().to_owned();
    let names = ["report.json", "work.patch", "junit.xml"].map(|name| at.join(name).display().to_string());
    let run = run.arg("--report").arg(&names[0]).arg("--patch").arg(&names[1]).arg("--junit").arg(&names[2]);
    let ended = run.arg("--json").run();
    ended.must_exit(0);
    must_be_gone(&format!("sleep {number}"));
    let report: Value = serde_json::from_str(&fs::read_to_string(&names[0]).unwrap()).unwrap();
    let mut how = outcomes(&report);
    how.sort_unstable();
    assert_eq!((how, &report["verified"]), (vec!["cancelled", "verified"], &json!(true)), "{}", ended.story());
    let all = report["candidates"].as_array().unwrap();
    let winner = all.iter().find(|one| one["outcome"] == "verified").unwrap();
    let loser = all.iter().find(|one| one["outcome"] == "cancelled").unwrap();
    assert_eq!((&winner["run"], &loser["says"]), (&report["run"], &json!("another candidate was verified first")));
    assert!(fs::read_to_string(&names[1]).unwrap().contains("b/done"));
    for next in ["  git merge fledge/", "  fledge batch show "] {
        assert!(ended.stderr.contains(next), "{next}: {}", ended.story());
    }
    assert!(fs::read_to_string(&names[2]).unwrap().contains("failures=\"0\""));
    assert_eq!(branches(&ended), [report["branch"].as_str().unwrap()]);
    assert_eq!(ended.git(&["status", "--porcelain"]), "");
    must_be_alone(&ended);
    assert!(!fs::read_dir(at.join("state/patches")).unwrap().any(|_| true), "patches of candidates are gone");
    // Between the end of the winner and the end of the whole run.
    let finished = ended.events_of("job_finished");
    assert_eq!(finished.len(), 2);
    assert_eq!(finished[0]["standing"], "verified");
    // fledge keeps the work of the loser.
    let diff = ended.again(&["runs", "diff", loser["run"].as_str().unwrap()]).run();
    diff.must_exit(0);
    assert!(diff.stdout.contains("half"), "{}", diff.story());
}

#[test]
fn where_none_is_verified_the_best_of_them_is_the_outcome_and_all_are_told_of() {
    long_test!();
    let run = race("candidates: [cassette/none.tape, cassette/other.tape]")
        .file("none.tape", "turns: []\n")
        .file("other.tape", writes("other"))
        .committed();
    let file = run.state().parent().unwrap().join("report.json").display().to_string();
    let ended = run.arg("--report").arg(&file).run();
    ended.must_exit(1);
    let report: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    assert_eq!(outcomes(&report), ["errored", "failed"], "{}", ended.story());
    assert_eq!(
        (&report["reason"], &report["candidates"][1]["models"]),
        (&json!("gate_failed"), &json!(["cassette/other.tape"]))
    );
    assert_eq!(report["run"], report["candidates"][1]["run"]);
}

#[test]
fn all_of_them_have_the_money_of_one_task() {
    long_test!();
    // A million input tokens cost three dollars.
    let model = Model::new([say("Done.").using(1_000_000, 0)]);
    let run = race("model: priced\ncandidates: 3\nbudget: { usd: 3 }").anthropic(&model).committed();
    let own = run.state().parent().unwrap().join("home/.config/fledge");
    fs::create_dir_all(&own).unwrap();
    let models = "models: { priced: { provider: anthropic, model: m, price: { input: 3, output: 15 } } }\n";
    fs::write(own.join("config.yaml"), models).unwrap();
    let ended = run.arg("--json").arg("-j1").run();
    let summary = ended.events().pop().unwrap()["data"].clone();
    let how: Vec<&Value> = summary["jobs"].as_array().unwrap().iter().map(|job| &job["standing"]).collect();
    assert_eq!(how, ["failed", "not_started", "not_started"], "{}", ended.story());
    assert_eq!((model.count(), &summary["usd_micros"]), (1, &json!(3_000_000)));
}

#[test]
fn a_killed_race_goes_on_and_one_that_is_won_is_not_run_again() {
    long_test!();
    let model = Model::new([hang(), hang(), write("done", "1\n"), write("done", "1\n"), say("Done.").always()]);
    let args = ["run", "task.md", "--run-key", "k", "--resume-or-start", "--json"];
    let running = race("candidates: 2").args(&args).anthropic(&model).committed().start();
    model.wait_for(2);
    running.signal(Signal::KILL);
    let again = running.end().again(&args).anthropic(&model).run();
    again.must_exit(0);
    assert_eq!(again.events_of("resumed").len(), 2, "{}", again.story());
    let (count, rows) = (model.count(), again.rows().len());
    assert_eq!(rows, 2);
    let over = again.again(&args).anthropic(&model).run();
    over.must_exit(0);
    assert_eq!((model.count(), over.rows().len()), (count, rows));
}

#[test]
fn a_signal_ends_all_of_them() {
    long_test!();
    let model = Model::new([hang(), hang(), hang()]);
    let running = race("").arg("--candidates").arg("3").anthropic(&model).committed().start();
    model.wait_for(3);
    let asked = running.signal(Signal::INT);
    let ended = running.end();
    ended.must_exit(130);
    assert!(ended.at - asked < SOON, "took {:?}", ended.at - asked);
    assert_eq!(ended.rows().len(), 3);
}

#[test]
fn a_task_of_a_batch_goes_on_from_the_work_of_the_winner() {
    long_test!();
    let both = "steps:\n  - { name: both, run: test -f done && test -f more }\n";
    let front = |rest: &str| format!("---\nmax_retries: 0\n{rest}\n---\nMake it.\n");
    let run = Fledge::new().args(&["run", "tasks", "--json", "-j2"]).lane("verify", &needs("done")).lane("both", both);
    let run = run
        .file("tasks/a.md", front("candidates: [cassette/bad.tape, cassette/good.tape]"))
        .file("tasks/b.md", front("needs: [a]\nlane: both\nmodel: cassette/more.tape"))
        .file("tasks/bad.tape", writes("other"))
        .file("tasks/good.tape", writes("done"))
        .file("tasks/more.tape", writes("more"))
        .committed();
    let ended = run.run();
    ended.must_exit(0);
    let summary = ended.events().pop().unwrap()["data"].clone();
    let jobs: Vec<(&str, &str)> = summary["jobs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|job| (job["job"].as_str().unwrap(), job["standing"].as_str().unwrap()))
        .collect();
    assert_eq!((jobs[1], jobs[2]), (("a.2", "verified"), ("b", "verified")), "{}", ended.story());
    assert_eq!((&summary["verified"], &summary["jobs"][0]["candidate_of"]), (&json!(true), &json!("a")));
    must_be_alone(&ended);
}

#[test]
fn what_cannot_be_raced_is_refused_before_anything_runs() {
    let said = |front: &str, args: &[&str]| {
        let run =
            race(front).file("a.tape", writes("done")).args(&[&["run"], args].concat()).stdin("Do it.").committed();
        let ended = run.run();
        ended.must_exit(2);
        assert!(ended.runs().is_empty());
        ended.stderr
    };
    let all = [
        said("candidates: 2\nisolation: in-place\nmodel: cassette/a.tape", &["task.md"]),
        said("candidates: [cassette/a.tape]", &["task.md", "--model", "cassette/a.tape"]),
        said("candidates: 2\nmodel: cassette/a.tape", &["task.md", "--record", "r.tape"]),
        said("", &["-", "--candidates", "2"]),
    ];
    insta::assert_snapshot!(all.join("\n"));
}

#[test]
fn a_dry_run_says_that_all_of_them_are_paid_for() {
    let run = race("candidates: [cassette/a.tape, cassette/b.tape]").file("a.tape", writes("done"));
    let ended = run.file("b.tape", writes("done")).committed().arg("--dry-run").run();
    ended.must_exit(0);
    insta::assert_snapshot!(ended.stdout);
}

/// Returns a gate step that waits for the other candidate's gate, so that both are judged before
/// one wins.
fn both_at(meet: &std::path::Path) -> String {
    let meet = meet.display();
    let wait = format!("until [ $(ls {meet} | wc -l) -ge 2 ]; do sleep 0.02; done");
    format!("room: in-place\nsteps: [{{ name: both, run: 'test -f done && touch {meet}/$$ && {wait}' }}]")
}

#[test]
fn of_beaten_ones_no_branch_stays_and_the_table_names_the_winner() {
    long_test!();
    let run = race("candidates: 2\ncommit: each-turn");
    let meet = run.state().with_file_name("meet");
    fs::create_dir_all(&meet).unwrap();
    let run = run.lane("verify", &both_at(&meet)).file("good.tape", writes("done")).committed();
    let file = run.state().with_file_name("report.json").display().to_string();
    let ended =
        run.args(&["run", "task.md", "--model", "cassette/good.tape", "--sandbox=off", "--report", &file]).run();
    ended.must_exit(0);
    let report: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    assert_eq!(branches(&ended), [report["branch"].as_str().unwrap()], "{}", ended.story());
    let turns = ended.git(&["for-each-ref", "--format=%(refname)", "refs/fledge"]);
    assert!(turns.lines().all(|name| name.contains(report["run"].as_str().unwrap())), "{turns}");
    let rows: Vec<&str> =
        ended.stderr.lines().filter(|line| line.contains("task.") && !line.starts_with('[')).collect();
    assert_eq!(rows.iter().filter(|row| row.contains("  won  ")).count(), 1, "{}", ended.story());
    assert_eq!(rows.iter().filter(|row| row.contains("another candidate was verified first")).count(), 1, "{rows:?}");
    let beaten = report["candidates"].as_array().unwrap().iter().find(|one| one["beaten"] == true).unwrap();
    assert_eq!(beaten["branch"], Value::Null);
    must_be_alone(&ended);
}

#[test]
fn without_a_commit_the_winner_s_worktree_has_the_work_and_no_other_one_is_there() {
    long_test!();
    for is_close in [false, true] {
        let run = race("candidates: [cassette/one.tape, cassette/two.tape]\ncommit: none");
        let meet = run.state().with_file_name("meet");
        fs::create_dir_all(&meet).unwrap();
        let run = if is_close { run.lane("verify", &both_at(&meet)) } else { run };
        let first = writes(if is_close { "done" } else { "other" });
        let run = run.file("one.tape", first).file("two.tape", writes("done")).committed();
        let ended = run.args(&["run", "task.md", "--sandbox=off"]).run();
        ended.must_exit(0);
        let trees = ended.git(&["worktree", "list", "--porcelain"]);
        let folders: Vec<&str> = trees.lines().filter_map(|line| line.strip_prefix("worktree ")).collect();
        assert_eq!(folders.len(), 2, "{trees}{}", ended.story());
        assert!(std::path::Path::new(folders[1]).join("done").exists(), "{trees}");
    }
}

#[test]
fn a_fix_is_not_raced_and_says_what_is() {
    let ended = race("").args(&["fix", "--candidates", "3"]).run();
    ended.must_exit(2);
    assert!(ended.stderr.contains("fledge run task.md --candidates 3"), "{}", ended.story());
}
