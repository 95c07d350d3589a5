//! Models measured on tasks, as users see it: rates, leftover files of the runs, and the exit code.

use crate::support::{Ended, Fledge, Model, hang, must_be_eval_report, needs, say, write};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;

/// Returns a recorded model that writes this file and finishes.
fn writes(path: &str) -> String {
    format!(
        "turns:\n  - text: I write it.\n    tools: [{{ name: files-write, input: {{ path: {path}, content: \"1\\n\" }} }}]\n  - text: Done.\n"
    )
}

fn eval(args: &[&str]) -> Fledge {
    let task = |name: &str| format!("---\nmax_retries: 0\n---\n# Task {name}\n\nMake the file `done`.\n");
    Fledge::new()
        .lane("verify", &needs("done"))
        .file("tasks/a.md", task("a"))
        .file("tasks/b.md", task("b"))
        .file("tasks/good.tape", writes("done"))
        .file("tasks/bad.tape", writes("other"))
        .file("tasks/none.tape", "turns: []\n")
        .args(&[&["eval", "tasks"], args].concat())
}

/// Removes times.
fn plain(text: &str) -> String {
    let text = regex::Regex::new(r"\d+\.\ds|\d+m\d+s").unwrap().replace_all(text, "T").into_owned();
    regex::Regex::new(" {3,}").unwrap().replace_all(&text, "  ").into_owned()
}

#[track_caller]
fn must_have_left_nothing(ended: &Ended) {
    assert_eq!(ended.git(&["worktree", "list"]).lines().count(), 1, "{}", ended.story());
    assert_eq!(ended.git(&["for-each-ref", "refs/heads/fledge"]), "");
    assert_eq!(ended.git(&["status", "--porcelain"]), "");
}

#[test]
fn models_have_rates_with_intervals_and_nothing_is_left_of_their_runs() {
    long_test!();
    let args =
        ["--model", "cassette/good.tape", "--model", "cassette/bad.tape", "--repeat", "2", "--jobs", "2", "--json"];
    let run = eval(&args).committed();
    let at = run.state().parent().unwrap().to_owned();
    let file = at.join("rates.md").display().to_string();
    let report = at.join("rates.json").display().to_string();
    let ended = run.arg("--summary").arg(&file).arg("--report").arg(&report).run();
    ended.must_exit(0);
    must_be_eval_report(&serde_json::from_str(&fs::read_to_string(&report).unwrap()).unwrap());
    let last = ended.events().pop().unwrap();
    assert_eq!(
        (&last["type"], &last["data"]["schema_version"]),
        (&json!("eval_finished"), &json!(1)),
        "{}",
        ended.story()
    );
    let rates: Vec<(&Value, &Value, &Value)> = last["data"]["models"]
        .as_array()
        .unwrap()
        .iter()
        .map(|model| (&model["model"], &model["judged"], &model["rate"]))
        .collect();
    assert_eq!(
        rates,
        [(&json!("cassette/good.tape"), &json!(4), &json!(1.0)), (&json!("cassette/bad.tape"), &json!(4), &json!(0.0))]
    );
    assert_eq!(ended.rows().len(), 8);
    must_have_left_nothing(&ended);
    let table: Vec<&str> = ended.stderr.lines().skip_while(|line| !line.starts_with("model ")).collect();
    insta::assert_snapshot!(plain(&format!("{}\n\n{}", table.join("\n"), fs::read_to_string(&file).unwrap())));
    // Runs do not share what they learn.
    let memory = ended.again(&["memory", "list"]).run();
    assert!(!memory.stdout.contains("Task a"), "{}", memory.story());
}

#[test]
fn a_rate_that_is_too_low_fails_and_an_error_is_no_rate() {
    long_test!();
    let low = eval(&["--model", "cassette/bad.tape", "--min-rate", "0.5"]).committed().run();
    low.must_exit(1);
    assert!(low.stderr.contains("2 of 2 runs judged, below 50.0 %: cassette/bad.tape"), "{}", low.story());
    let high = low.again(&["eval", "tasks", "--model", "cassette/good.tape", "--min-rate", "1"]).run();
    high.must_exit(0);
    let mut none = high.again(&["eval", "tasks/a.md", "--model", "cassette/none.tape", "--json"]).run();
    none.must_exit(3);
    let data = &none.events().pop().unwrap()["data"];
    let model = &data["models"][0];
    assert_eq!((&model["rate"], &model["errored"], &model["judged"]), (&Value::Null, &json!(1), &json!(0)));
    assert_eq!(data["unjudged"][0]["job"], "a.cassette-none.tape.1");
    must_have_left_nothing(&none);
    // fledge reports each error once: when it occurs, or with `-q` at the end.
    for quiet in [&[][..], &["-q"]] {
        let args = [&["eval", "tasks/a.md", "--model", "cassette/none.tape"], quiet].concat();
        let told = none.again(&args).run();
        told.must_exit(3);
        assert_eq!(told.stderr.matches("the cassette has 0").count(), 1, "{}", told.story());
        none = told;
    }
}

#[test]
fn a_killed_evaluation_goes_on_and_repeats_nothing_that_is_judged() {
    long_test!();
    let model = Model::new([write("done", "1\n"), say("Done."), hang(), write("done", "1\n"), say("Done.")]);
    let args = ["eval", "tasks/a.md", "--repeat", "2", "-j1", "--json"];
    let running = eval(&[]).args(&args).anthropic(&model).committed().start();
    model.wait_for(3);
    running.signal(Signal::KILL);
    let again = running.end().again(&[&args[..], &["--resume"]].concat()).anthropic(&model).run();
    again.must_exit(0);
    let data = &again.events().pop().unwrap()["data"];
    assert_eq!((&data["models"][0]["verified"], model.count()), (&json!(2), 5), "{}", again.story());
    must_have_left_nothing(&again);
}

#[test]
fn what_measures_nothing_is_refused_before_anything_runs() {
    let said = |front: &str, args: &[&str]| {
        let run = eval(args).file("tasks/c.md", format!("---\n{front}\n---\nDo it.\n")).committed().run();
        run.must_exit(2);
        assert!(run.runs().is_empty());
        run.stderr
    };
    let all = [
        said("needs: [a]", &[]),
        said("lane: false", &[]),
        said("", &["--candidates", "2"]),
        said("", &["--isolation", "in-place"]),
        said("", &["--patch", "x.patch"]),
        said("", &["--min-rate", "80"]),
    ];
    insta::assert_snapshot!(all.join("\n"));
}
