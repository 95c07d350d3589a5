//! The gate: frozen before the first model call, out of the agent's reach, with its verdict
//! returned to the model.

use crate::support::{Fledge, KEY, Model, call, needs, say, shell, words, write};
use serde_json::{Value, json};

#[test]
fn a_tool_that_would_change_the_gate_is_refused_and_the_run_goes_on() {
    let edit = call("files-edit", json!({"path": "lanes/verify.yaml", "old": "test -f done", "new": "true"}));
    let model = Model::new([
        write("lanes/verify.yaml", "steps: [{ name: a, run: 'true' }]"),
        edit.also("files-delete", json!({"path": "lanes/verify.yaml"})),
        write("done", ""),
        say("Done."),
    ]);
    let run = Fledge::simple(&model).run();
    let report = run.must_be(0, "verified");
    assert_eq!(run.file("lanes/verify.yaml"), Some(needs("done")));
    assert_eq!(report["files_changed"].as_array().unwrap().len(), 1);
    assert_eq!(report["attempts"].as_array().unwrap().len(), 1);
    let told = model.asked()[1].newest();
    assert!(told.contains("is protected (it defines the gate)"), "{told}");
    assert!(model.asked()[2].newest().matches("is protected").count() == 2);
}

#[test]
fn what_a_lane_says_later_does_not_change_the_run() {
    let model = Model::new([say("Done.")]);
    let swap = "room: in-place\nsteps:\n  - name: swap\n    run: |\n      printf 'steps: [{ name: a, run: \"true\" }]' > lanes/second.yaml\n";
    let fledge = Fledge::simple(&model).lane("first", swap).lane("second", &needs("done")).arg("--max-retries=0");
    let run = fledge.arg("--lane=first").arg("--lane=second").run();
    let report = run.must_be(1, "gate_failed");
    assert_eq!(report["attempts"][0]["verdict"]["steps"][1]["command"], "test -f done");
    assert_eq!(report["warnings"], json!(["protected paths were written while the gate ran: lanes/second.yaml"]));
    assert_eq!(run.file("lanes/second.yaml"), Some(needs("done")), "it was put back");
}

#[test]
fn a_pass_counts_for_nothing_when_the_gate_was_written_while_it_ran() {
    long_test!();
    // A step may run code that the agent wrote. Here this code changes a script that a later step
    // needs, once for good, and once with a script that restores itself.
    let back = "cp check.sh kept; printf 'mv -f kept check.sh; exit 0' > check.sh";
    for code in ["echo exit 0 > check.sh", back] {
        let model = Model::new([write("code.sh", code), say("Done.")]);
        let lane =
            "room: in-place\nsteps: [{ name: run, run: '. ./code.sh; true' }, { name: check, run: sh check.sh }]";
        let run = Fledge::simple(&model).file("check.sh", "test -f done\n").lane("verify", lane).run();
        let report = run.must_be(5, "gate_errored");
        assert!(report["message"].as_str().unwrap().contains("check.sh"), "{}", report["message"]);
        assert_eq!(report["attempts"][0]["verdict"]["findings"][0]["path"], "check.sh");
        assert_eq!(run.file("check.sh").as_deref(), Some("test -f done\n"));
    }
}

#[test]
fn a_failure_reaches_the_model_as_a_message_with_step_command_and_output() {
    long_test!();
    let model = Model::new([say("It is done."), write("done", ""), say("Now it is.")]);
    let lane = "steps:\n  - { name: fmt, run: 'true' }\n  - { name: check, run: 'echo the file is missing >&2; test -f done' }\n";
    let run = Fledge::simple(&model).lane("verify", lane).run();
    run.must_be(0, "verified");
    let second = &model.asked()[1].body["messages"];
    let roles = words(second.as_array().unwrap().iter().map(|message| &message["role"]));
    assert_eq!(roles, ["user", "assistant", "user"]);
    let feedback = second[2]["content"][0]["text"].as_str().unwrap();
    for part in
        ["step `check` of lane `verify` failed (exit 1", "the file is missing", "passed: fmt", "2 more attempts"]
    {
        assert!(feedback.contains(part), "{part:?} is not in {feedback}");
    }
    assert!(!model.asked()[2].newest().contains("failed"), "told once");
}

#[test]
fn every_step_of_every_attempt_has_its_log() {
    long_test!();
    let model = Model::new([say("Done."), write("other", ""), say("Done.")]);
    let lane = "steps:\n  - { name: talk, run: 'echo attempt; echo on stderr >&2' }\n  - { name: no, run: 'false' }\n";
    let run = Fledge::simple(&model).lane("verify", lane).arg("--max-retries").arg("1").run();
    let report = run.must_be(1, "gate_failed");
    for attempt in report["attempts"].as_array().unwrap() {
        let steps = attempt["verdict"]["steps"].as_array().unwrap();
        let logs: Vec<String> =
            steps.iter().map(|step| std::fs::read_to_string(step["log"].as_str().unwrap()).unwrap()).collect();
        assert_eq!(logs, ["attempt\non stderr\n", ""]);
    }
    let folder = |attempt: usize| report["attempts"][attempt]["verdict"]["steps"][0]["log"].clone();
    assert_ne!(folder(0), folder(1));
}

#[test]
fn lanes_run_in_the_order_given_and_stop_at_the_first_that_fails() {
    let model = Model::new([say("Done.")]);
    let fledge =
        Fledge::simple(&model).lane("first", "room: in-place\nsteps: [{ name: a, run: 'touch first && false' }]");
    let run = fledge
        .lane("second", "room: in-place\nsteps: [{ name: b, run: touch second }]")
        .arg("--lane=first")
        .arg("--lane=second");
    let run = run.arg("--max-retries=0").run();
    run.must_be(1, "gate_failed");
    assert_eq!((run.file("first").is_some(), run.file("second")), (true, None));
}

#[test]
fn scripts_that_a_step_names_are_part_of_the_gate() {
    long_test!();
    let model = Model::new([shell("echo exit 0 > check.sh"), say("Done."), write("done", ""), say("Now.")]);
    let fledge = Fledge::simple(&model).file("check.sh", "test -f done\n");
    let run = fledge.lane("verify", "steps: [{ name: check, run: sh check.sh }]").run();
    let report = run.must_be(0, "verified");
    let finding = json!({"path": "check.sh", "change": "changed", "rule": "a step of the gate names it"});
    assert_eq!(report["attempts"][0]["verdict"]["findings"], json!([finding]));
    assert_eq!(run.file("check.sh").as_deref(), Some("test -f done\n"));
}

#[test]
fn what_a_step_leaves_behind_is_killed_and_said() {
    let number = crate::support::unique();
    let model = Model::new([say("Done.")]);
    let lane = format!("room: in-place\nsteps: [{{ name: daemon, run: setsid sleep {number} & }}]");
    let run = Fledge::simple(&model).lane("verify", &lane).arg("--sandbox=off").run();
    let report = run.must_be(0, "verified");
    let note = report["attempts"][0]["verdict"]["steps"][0]["note"].as_str().unwrap();
    assert_eq!(note, "left processes behind, which were killed");
    assert_eq!(crate::support::running_with(&number), Vec::<String>::new());
}

#[test]
fn a_lane_in_the_workspace_itself_runs_behind_the_wall_that_the_report_names() {
    let spy = "cat $HOME/.ssh/id; ls $STATE; (echo x > ../outside); (echo x > .git/config); (mkdir -p .fledge/lanes)";
    let model = Model::new([write("lib.sh", spy), say("Done.")]);
    let lane = "room: in-place\nsteps: [{ name: use, run: 'STATE=../state; . ./lib.sh; echo used > got; true' }]";
    let fledge = Fledge::simple(&model).file("../home/.ssh/id", "CANARY").lane("verify", lane);
    let run = fledge.run();
    let report = run.must_be(0, "verified");
    let verdict = &report["attempts"][0]["verdict"];
    assert_eq!((&verdict["proof"]["sandbox"], run.file("got").as_deref()), (&report["sandbox"], Some("used\n")));
    let said = std::fs::read_to_string(verdict["steps"][0]["log"].as_str().unwrap()).unwrap();
    assert_ne!(report["sandbox"], "off", "{}", run.story());
    assert!(!said.contains("CANARY") && !said.contains("projects") && run.file("../outside").is_none(), "{said}");
    if report["sandbox"] == "bubblewrap" {
        assert_eq!((run.file(".git/config"), run.file(".fledge/lanes")), (None, None), "{said}");
    }
}

#[test]
fn the_steps_of_a_gate_see_no_keys_and_nothing_that_was_not_meant_for_them() {
    let model = Model::new([say("Done.")]);
    let fledge = Fledge::simple(&model).lane("verify", "room: in-place\nsteps: [{ name: env, run: env > seen }]");
    let run = fledge.env("OTHER", "other").env("LC_ALL", "C").run();
    run.must_be(0, "verified");
    let seen = run.file("seen").unwrap();
    assert!(!seen.contains(KEY) && seen.contains("OTHER=other") && seen.contains("LC_ALL=C"), "{seen}");
}

#[test]
fn an_agent_cannot_have_a_step_left_out_by_what_git_takes_for_changed() {
    let commit = "git init -q . && git add -A && git -c user.name=a -c user.email=a@localhost commit -qm x";
    let model = Model::new([write("src/a", "bad\n"), shell(commit), say("Nothing has changed.")]);
    let lane = "steps: [{ name: check, run: '! grep bad src/a', changed: ['src/**'] }, { name: other, run: 'true' }]";
    let run = Fledge::simple(&model).task("---\nmax_retries: 0\n---\nDo it.").lane("verify", lane).run();
    let report = run.must_be(1, "gate_failed");
    assert_eq!(report["attempts"][0]["verdict"]["steps"][0]["status"], "failed");
}

#[test]
fn only_the_paths_that_a_task_names_can_be_written() {
    let model =
        Model::new([write("src/a", "1\n").also("files-write", json!({"path": "b", "content": ""})), say("Done.")]);
    let task = "---\nfiles: ['src/**']\nlane: false\n---\nDo it.";
    let run = Fledge::simple(&model).task(task).run();
    let report = run.must_be(0, "skipped");
    let changed: Vec<&Value> = report["files_changed"].as_array().unwrap().iter().map(|file| &file["path"]).collect();
    assert_eq!((words(changed), run.file("b")), (vec!["src/a"], None));
}
