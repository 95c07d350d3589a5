//! Batches of many tasks as users see them: jobs, messages, leftover files and exit codes.

use crate::support::{Ended, Fledge, Model, SOON, git, hang, must_be_batch_report, say, status, write};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;

/// Returns a recorded model that writes this file and finishes.
fn writes(path: &str) -> String {
    format!(
        "turns:\n  - text: I write it.\n    tools: [{{ name: files-write, input: {{ path: {path}, content: \"1\\n\" }} }}]\n  - text: Done.\n"
    )
}

/// Adds a task with its recorded model. The gate of the task wants the file `done`.
fn with(batch: Fledge, name: &str, front: &str, cassette: &str) -> Fledge {
    let task = format!("---\nmodel: cassette/{name}.tape\nmax_retries: 0\n{front}\n---\n# Task {name}\n\nMake it.\n");
    batch.file(&format!("tasks/{name}.md"), task).file(&format!("tasks/{name}.tape"), cassette)
}

fn batch(args: &[&str]) -> Fledge {
    let lane = "steps:\n  - { name: there, run: test -f done }\n";
    Fledge::new().lane("verify", lane).args(&[&["run"], args].concat())
}

/// Removes times and hexadecimal names, which differ in every run.
fn plain(text: &str) -> String {
    let time = regex::Regex::new(r"\d+\.\d+s|\b\dm\d\ds").unwrap();
    let name = regex::Regex::new(
        r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|\b[0-9a-f]{24}-[0-9a-f]{12}\b|\b[0-9a-f]{12}\b|-[0-9a-f]{8}\b",
    )
    .unwrap();
    let room = regex::Regex::new(" {3,}").unwrap();
    let text = name.replace_all(&time.replace_all(text, "T"), "ID").into_owned();
    room.replace_all(&text, "  ").into_owned()
}

/// Returns the last line of `--json`.
#[track_caller]
fn summary(ended: &Ended) -> Value {
    let last = ended.events().pop().unwrap();
    assert_eq!(last["type"], "batch_finished", "{}", ended.story());
    last["data"].clone()
}

/// Returns each job with its end.
fn standings(summary: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    summary["jobs"].as_array().unwrap().iter().map(|job| (text(&job["job"]), text(&job["standing"]))).collect()
}

#[track_caller]
fn must_stand(ended: &Ended, expected: &[(&str, &str)]) -> Value {
    let summary = summary(ended);
    let expected: Vec<_> = expected.iter().map(|(job, how)| ((*job).to_owned(), (*how).to_owned())).collect();
    assert_eq!(standings(&summary), expected, "{}", ended.story());
    summary
}

#[test]
fn jobs_are_told_in_lines_and_a_table_and_kept_in_reports() {
    long_test!();
    let run = with(batch(&["tasks", "--jobs", "1"]), "a", "", &writes("done"));
    let run = with(run, "b", "", &writes("other"));
    let run = with(run, "c", "needs: [b]", &writes("done")).committed();
    let at = run.state().parent().unwrap().to_owned();
    let file = |name: &str| at.join(name);
    let names = ["junit.xml", "page.md", "report.json"].map(|name| file(name).display().to_string());
    let ended = run.arg("--junit").arg(&names[0]).arg("--summary").arg(&names[1]).arg("--report").arg(&names[2]).run();
    ended.must_exit(1);
    assert_eq!(ended.stdout, "");
    insta::assert_snapshot!(plain(&ended.stderr.replace(&at.display().to_string(), "AT")));
    let read = |name: &String| fs::read_to_string(name).unwrap();
    let report: Value = serde_json::from_str(&read(&names[2])).unwrap();
    must_be_batch_report(&report);
    assert_eq!(
        report["counts"],
        json!({"jobs": 3, "verified": 1, "exit_codes_alone": 1, "failed": 1, "errored": 0, "cancelled": 0, "skipped": 1, "not_started": 0})
    );
    assert_eq!((&report["exit_code"], &report["verified"]), (&json!(1), &json!(false)));
    let own: Value = serde_json::from_str(&read(&report["jobs"][0]["report"].as_str().unwrap().to_owned())).unwrap();
    assert_eq!(own["run"], report["jobs"][0]["end"]["ran"]["run"]);
    let junit =
        regex::Regex::new(r#"time="[^"]*"|report: [^<]*"#).unwrap().replace_all(&read(&names[0]), "…").into_owned();
    insta::assert_snapshot!(format!("{junit}\n{}", plain(&read(&names[1]))));
    // `runs` can show the table again, also by a prefix of its name and as data.
    let name = report["batch"].as_str().unwrap();
    let stderr = ended.stderr.clone();
    let table: Vec<&str> = stderr.lines().rev().take_while(|line| !line.starts_with('[')).collect();
    let ended = ended.again(&["batch", "show", &name[..name.len() - 3]]).run();
    ended.must_exit(0);
    let again: Vec<&str> = ended.stderr.lines().rev().take(table.len()).collect();
    assert_eq!(again, table);
    let ended = ended.again(&["batch", "show", "--json"]).run();
    assert_eq!(serde_json::from_str::<Value>(&ended.stdout).unwrap(), report);
    let ended = ended.again(&["batch", "list", "--json"]).run();
    let listed: Value = serde_json::from_str(&ended.stdout).unwrap();
    let batch = &listed["batches"][0];
    assert_eq!((&listed["schema_version"], batch["ended_at"].is_string()), (&json!(1), true), "{listed}");
    for key in ["batch", "verified", "exit_code", "counts", "usd_micros", "duration_ms"] {
        assert_eq!(batch[key], report[key], "{key}");
    }
    let ended = ended.again(&["batch"]).run();
    assert!(ended.stderr.contains(name) && ended.stderr.contains("1 of 3 verified"), "{}", ended.story());
    let ended = ended.again(&["batch", "show", "nothing"]).run();
    ended.must_exit(2);
    assert!(ended.stderr.contains("there is no batch `nothing`"), "{}", ended.story());
    // The user's checkout is unchanged, and the verified work is on a branch.
    assert_eq!(ended.git(&["status", "--porcelain"]), "");
    assert_eq!(
        ended.git(&["for-each-ref", "--format=%(refname:short)", "refs/heads/fledge/task-a*"]).lines().count(),
        1
    );
}

#[test]
fn only_a_job_that_passed_without_a_test_count_is_marked() {
    long_test!();
    let counted = "steps:\n  - { name: test, run: 'test -f done && echo 3 passed in 0.1s' }\n";
    let run = batch(&["tasks", "--jobs", "1"]).lane("counted", counted);
    let run = with(with(run, "a", "lane: counted", &writes("done")), "b", "", &writes("done")).committed();
    let at = run.state().parent().unwrap().to_owned();
    let names = ["junit.xml", "page.md", "report.json"].map(|name| at.join(name).display().to_string());
    let ended = run.arg("--junit").arg(&names[0]).arg("--summary").arg(&names[1]).arg("--report").arg(&names[2]).run();
    ended.must_exit(0);
    let [junit, page, report] = names.map(|name| fs::read_to_string(name).unwrap());
    let marked = |text: &str| text.lines().filter(|line| line.contains("by exit codes alone")).count();
    for (text, count) in [(&ended.stderr, 3), (&page, 2), (&junit, 1)] {
        assert_eq!(marked(text), count, "{text}");
    }
    assert!(ended.stderr.contains("2 of 2 verified (1 by exit codes alone)"), "{}", ended.story());
    assert!(page.contains("| `b` | verified: `by exit codes alone` |"), "{page}");
    let report: Value = serde_json::from_str(&report).unwrap();
    must_be_batch_report(&report);
    let alone = |job: usize| report["jobs"][job]["end"]["ran"]["exit_codes_alone"].clone();
    assert_eq!((alone(0), alone(1), &report["counts"]["exit_codes_alone"]), (Value::Null, json!(true), &json!(1)));
}

#[test]
fn a_job_goes_on_from_the_work_of_the_one_that_it_needs() {
    long_test!();
    let both = "steps:\n  - { name: both, run: test -f done && test -f more }\n";
    let run = with(batch(&["tasks/*.md", "--jobs", "4", "--json"]), "z", "", &writes("done"));
    let run = with(run, "a", "needs: [z]\nlane: both", &writes("more")).lane("both", both).committed();
    let ended = run.run();
    ended.must_exit(0);
    let summary = must_stand(&ended, &[("a", "verified"), ("z", "verified")]);
    let branch = summary["jobs"][0]["end"]["ran"]["branch"].as_str().unwrap().to_owned();
    assert_eq!(ended.git(&["diff", "--name-only", "main", &branch]), "done\nmore");
}

#[test]
fn the_first_failure_ends_the_others_where_that_is_asked_for() {
    long_test!();
    let run = with(batch(&["tasks", "--jobs", "2", "--fail-fast", "--json"]), "a", "", "turns:\n  - hang: true\n");
    let run = with(run, "b", "", &writes("other"));
    let run = with(run, "c", "", &writes("done")).committed();
    let ended = run.run();
    ended.must_exit(1);
    must_stand(&ended, &[("a", "cancelled"), ("b", "failed"), ("c", "not_started")]);
}

#[test]
fn a_run_that_ended_in_an_error_is_tried_again_and_what_the_gate_said_is_not() {
    long_test!();
    let model = Model::new([status(401), write("done", "1\n"), say("Done."), say("Done.")]);
    let run = batch(&["tasks", "-j1", "--retries", "2", "--retry-delay", "1s", "--isolation", "in-place", "--json"]);
    let run = run
        .file("tasks/a.md", "Make the file `done`.")
        .file("tasks/b.md", "---\nlane: other\nmax_retries: 0\n---\nDo it.");
    let run = run.lane("other", "steps:\n  - { name: no, run: \"false\" }\n").anthropic(&model).committed();
    let ended = run.run();
    ended.must_exit(1);
    let summary = must_stand(&ended, &[("a", "verified"), ("b", "failed")]);
    assert_eq!((&summary["jobs"][0]["tries"], &summary["jobs"][1]["tries"]), (&json!(2), &json!(1)));
    let again = ended.events_of("job_retried");
    assert_eq!((again.len(), &again[0]["tries"], &again[0]["wait_ms"]), (1, &json!(2), &json!(1000)));
}

#[test]
fn all_runs_end_soon_after_a_signal_and_each_is_told_of() {
    long_test!();
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let mut run = batch(&["tasks", "--jobs", "3", "--json"]);
        for name in ["a", "b", "c", "d"] {
            run = with(
                run,
                name,
                "",
                "turns:\n  - text: I begin.\n    tools: [{ name: files-list, input: {} }]\n  - hang: true\n",
            );
        }
        let mut running = run.committed().start();
        (0..3).for_each(|_| running.wait_for("\"tool_result\""));
        let asked = running.signal(signal);
        let ended = running.end();
        ended.must_exit(code);
        assert!(ended.at - asked < SOON, "took {:?}", ended.at - asked);
        let how = [("a", "cancelled"), ("b", "cancelled"), ("c", "cancelled"), ("d", "not_started")];
        let summary = must_stand(&ended, &how);
        assert_eq!(summary["exit_code"], code);
    }
}

#[test]
fn a_killed_batch_goes_on_and_repeats_nothing_that_is_finished() {
    long_test!();
    let model = Model::new([
        write("done", "1\n"),
        say("Done."),
        write("half", "1\n"),
        hang(),
        write("done", "1\n"),
        say("Done."),
    ]);
    let args = ["run", "tasks", "-j1", "--json"];
    let run =
        batch(&args[1..]).file("tasks/a.md", "Make the file `done`, a.").file("tasks/b.md", "Make the file `done`, b.");
    let running = run.anthropic(&model).committed().start();
    model.wait_for(4);
    running.signal(Signal::KILL);
    let killed = running.end();
    assert_eq!(killed.code, None);
    let again = killed.again(&[&args[..], &["--resume"]].concat()).anthropic(&model).run();
    again.must_exit(0);
    let summary = must_stand(&again, &[("a", "verified"), ("b", "verified")]);
    assert_eq!((again.rows().len(), model.count()), (2, 6), "{}", again.story());
    assert_eq!(again.events()[0]["data"]["over"], 1);
    // The interrupted run continued: its earlier work is in the result.
    assert_eq!(again.events_of("resumed").len(), 1);
    let branch = summary["jobs"][1]["end"]["ran"]["branch"].as_str().unwrap().to_owned();
    assert_eq!(again.git(&["diff", "--name-only", "main", &branch]), "done\nhalf");
    // A second `--resume` has nothing to do and ends in the same way.
    let over = again.again(&[&args[..], &["--resume"]].concat()).anthropic(&model).run();
    over.must_exit(0);
    assert_eq!((over.rows().len(), model.count()), (2, 6));
    // A different list of tasks is a different batch.
    let anew = over.again(&["run", "tasks/a.md", "--resume"]).anthropic(&model).run();
    anew.must_exit(2);
    assert!(anew.stderr.contains("no unfinished batch of these tasks to resume"), "{}", anew.story());
}

#[test]
fn what_the_money_is_no_longer_enough_for_is_not_begun_and_says_so() {
    let model = Model::new([say("Done.").using(1_000_000, 0)]);
    let task = "---\nmodel: priced\nlane: false\n---\nSay something.";
    let run = batch(&["tasks", "-j1", "--max-usd", "3", "--json"]).file("tasks/a.md", task).file("tasks/b.md", task);
    let own = run.state().parent().unwrap().join("home/.config/fledge");
    fs::create_dir_all(&own).unwrap();
    let models = "models: { priced: { provider: anthropic, model: m, price: { input: 3, output: 15 } } }\n";
    fs::write(own.join("config.yaml"), models).unwrap();
    let ended = run.anthropic(&model).committed().run();
    ended.must_exit(4);
    let summary = must_stand(&ended, &[("a", "verified"), ("b", "not_started")]);
    assert_eq!((&summary["usd_micros"], &summary["max_usd_micros"]), (&json!(3_000_000), &json!(3_000_000)));
    assert_eq!(summary["jobs"][1]["says"], "the batch has reached its money limit");
    assert_eq!(ended.rows().len(), 1);
}

#[test]
fn whatever_is_wrong_with_any_task_is_said_before_anything_runs() {
    let run = with(batch(&["tasks"]), "a", "needs: [bb]", &writes("done"));
    let run = with(run, "b", "max_retires: 1", &writes("done"));
    let run = run.file("tasks/c.md", "---\nmodel: cassette/none.tape\n---\nDo it.").committed();
    let ended = run.run();
    ended.must_exit(2);
    insta::assert_snapshot!(ended.stderr);
    assert!(ended.runs().is_empty());
    let run = with(batch(&["tasks/a.md", "tasks/none.md", "-"]), "a", "", &writes("done"));
    let ended = run.file("tasks/c.md", "---\nmodel: cassette/none.tape\n---\nDo it.").committed().run();
    ended.must_exit(2);
    insta::assert_snapshot!(ended.stderr);
    let ended = ended.again(&["run", "tasks"]).run();
    ended.must_exit(2);
    insta::assert_snapshot!(ended.stderr);
}

#[test]
fn a_batch_file_has_tasks_values_and_repositories() {
    long_test!();
    let file = "tasks: [tasks/*.md]\nmatrix:\n  file: [one, two]\n  exclude: [{ file: two, repository: right }]\n\
        repositories: [../left, { path: ../right, base: old }]\ndefaults: { max_retries: 0 }\njobs: 3\n";
    let task = "---\nmodel: cassette/any.tape\nparams: { file: { required: true } }\n---\n# Make {{ file }}\n";
    let run = batch(&["batch.yaml", "--json"])
        .file("batch.yaml", file)
        .file("tasks/make.md", task)
        .file("tasks/any.tape", writes("done"));
    let top = run.workspace().parent().unwrap().to_owned();
    for (name, content) in [("left", "left\n"), ("right", "right\n")] {
        let folder = top.join(name);
        fs::create_dir_all(folder.join("lanes")).unwrap();
        fs::write(folder.join("lanes/verify.yaml"), "steps:\n  - { name: there, run: test -f done }\n").unwrap();
        fs::write(folder.join("own"), content).unwrap();
        git(&folder, &["init", "-q", "-b", "main"]);
        git(&folder, &["add", "-A"]);
        git(&folder, &["commit", "-qm", "first"]);
        git(&folder, &["branch", "old"]);
        fs::write(folder.join("newer"), "").unwrap();
        git(&folder, &["add", "-A"]);
        git(&folder, &["commit", "-qm", "second"]);
    }
    let ended = run.run();
    ended.must_exit(0);
    let how = [("make-one@left", "verified"), ("make-two@left", "verified"), ("make-one@right", "verified")];
    let summary = must_stand(&ended, &how);
    let ran = &summary["jobs"][2]["end"]["ran"];
    assert_eq!(summary["jobs"][1]["title"], "Make two");
    let tree = git(&top.join("right"), &["ls-tree", "--name-only", ran["branch"].as_str().unwrap()]);
    assert_eq!(tree, "done\nlanes\nown", "work began from `old`");
    let plan = ended.again(&["run", "batch.yaml", "--dry-run"]).run();
    plan.must_exit(0);
    insta::assert_snapshot!(plan.stdout);
}

#[test]
fn one_by_one_jobs_may_work_in_the_checkout_itself() {
    long_test!();
    let run = with(batch(&["tasks", "--isolation", "in-place", "--json"]), "a", "", &writes("done"));
    let run = with(run, "b", "lane: both", &writes("more"));
    let run = run.lane("both", "steps:\n  - { name: both, run: test -f done && test -f more }\n").committed();
    let refused = run.arg("--jobs").arg("2").run();
    refused.must_exit(2);
    assert!(refused.stderr.contains("a and b would work in one checkout at the same time"), "{}", refused.story());
    let ended = refused.again(&["run", "tasks", "--isolation", "in-place", "-j1", "--json"]).run();
    ended.must_exit(0);
    must_stand(&ended, &[("a", "verified"), ("b", "verified")]);
    assert_eq!((ended.file("done"), ended.file("more")), (Some("1\n".into()), Some("1\n".into())));
}

#[test]
fn where_only_errors_are_wanted_there_is_a_line_for_each_job_that_failed() {
    long_test!();
    let run = with(batch(&["tasks", "-j1", "-q"]), "a", "", &writes("done"));
    let run = with(with(run, "b", "", &writes("other")), "c", "needs: [b]", &writes("done"));
    let ended = run.committed().run();
    ended.must_exit(1);
    insta::assert_snapshot!(ended.story());
    let good = ended.again(&["run", "tasks/a.md", "--jobs", "1", "-q"]).run();
    good.must_exit(0);
    assert_eq!((good.stdout.as_str(), good.stderr.as_str()), ("", ""));
}

#[test]
fn a_warning_that_several_jobs_have_is_told_once_with_their_number() {
    long_test!();
    let run = with(batch(&["tasks", "-j1", "--lanes-from", "main"]), "a", "", &writes("done"));
    let run = with(with(run, "b", "", &writes("done")), "c", "", &writes("done")).committed();
    let ended = run.run();
    ended.must_exit(0);
    let told: Vec<&str> = ended.stderr.lines().filter(|line| line.contains("the lanes come from")).collect();
    assert_eq!(told, ["[a] the lanes come from `main`", "[3 jobs] the lanes come from `main`"]);
}

#[test]
fn leftover_worktrees_are_counted_per_repository_with_the_command_to_list_them() {
    long_test!();
    let file = "tasks: [tasks/a.md]\nrepositories: [., ../other folder]\ndefaults: { max_retries: 0 }\njobs: 1\n";
    let run = with(batch(&["batch.yaml"]), "a", "", &writes("other")).file("batch.yaml", file).committed();
    let other = run.workspace().parent().unwrap().join("other folder");
    fs::create_dir_all(other.join("lanes")).unwrap();
    fs::write(other.join("lanes/verify.yaml"), "steps:\n  - { name: there, run: test -f done }\n").unwrap();
    git(&other, &["init", "-q", "-b", "main"]);
    git(&other, &["add", "-A"]);
    git(&other, &["commit", "-qm", "first"]);
    let ended = run.run();
    ended.must_exit(1);
    let told: Vec<&str> = ended.stderr.lines().filter(|line| line.contains("fledge worktrees list")).collect();
    let other = other.canonicalize().unwrap().display().to_string();
    let elsewhere = format!(
        "  1 worktree with work that is not committed: `fledge worktrees list -C '{other}'`, `fledge worktrees clean --failed -C '{other}'`"
    );
    let here =
        "  1 worktree with work that is not committed: `fledge worktrees list`, `fledge worktrees clean --failed`";
    assert_eq!(told, [elsewhere.as_str(), here], "{}", ended.story());
    let listed = ended.again(&["worktrees", "list", "-C", &other]).run();
    assert_eq!(listed.stdout.matches("  uncommitted  ").count(), 1, "{}", listed.story());
}

#[test]
fn protected_paths_that_stopped_a_job_are_named_below_it_with_the_flag() {
    long_test!();
    let task = with(batch(&["tasks"]).file("check.sh", "test -f done\n"), "a", "", &writes("done"));
    let other = "turns:\n  - text: I mend the check.\n    tools: [{ name: shell-exec, input: { command: 'echo true > check.sh' } }]\n  - text: Done.\n";
    let batch = with(task, "b", "", other).lane("verify", "steps: [{ name: check, run: sh check.sh }]");
    let ended = batch.committed().run();
    ended.must_exit(6);
    let said = plain(&format!("{}{}", ended.stdout, ended.stderr));
    for line in ["check.sh is protected: ", "to allow these changes: --allow-edit check.sh"] {
        assert_eq!(said.matches(line).count(), 1, "{line}: {}", ended.story());
    }
}
