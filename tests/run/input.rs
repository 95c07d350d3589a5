//! Tests of the input of a run: a task from a file or standard input, its parameters, and dry runs.

use crate::support::{Fledge, Model, needs, say, words, write};
use serde_json::{Value, json};

/// Returns the first message of a model's first request.
fn first_message(model: &Model) -> String {
    model.asked()[0].body["messages"][0]["content"][0]["text"].as_str().unwrap().to_owned()
}

#[test]
fn a_standard_input_that_says_nothing_and_stays_open_is_left_alone() {
    let model = Model::new([write("done", ""), say("Done.")]);
    Fledge::simple(&model).silent_stdin().run().must_be(0, "verified");
}

#[test]
fn a_dash_reads_the_task_from_standard_input() {
    let model = Model::new([say("Done.")]);
    let fledge = Fledge::new().args(&["run", "-"]).anthropic(&model);
    let task = "---\ntitle: From a pipe\nlane: false\n---\nDo what the pipe says: žluť.\n";
    let report = fledge.stdin(task).run().must_be(0, "skipped");
    assert_eq!((&report["title"], &report["task"]["source"]), (&json!("From a pipe"), &json!("-")));
    assert_eq!(first_message(&model), "Do what the pipe says: žluť.");
}

#[test]
fn a_prompt_on_the_command_line_is_the_task() {
    long_test!();
    let model = Model::new([say("Done.").always()]);
    let run = |args: &[&str]| Fledge::new().args(args).anthropic(&model).run();
    let report = run(&["run", "-p", "Fix the failing test", "--no-verify"]).must_be(0, "skipped");
    assert_eq!((&report["title"], &report["task"]["source"]), (&json!("Fix the failing test"), &json!("-")));
    assert_eq!(first_message(&model), "Fix the failing test");
    let secret = "a-key-of-sixty-letters-0123456789";
    let text = format!("- Fix the failing test of the server of ours, which has {secret} as its key");
    let run_with = Fledge::new().args(&["run", "-p", &text, "--no-verify"]).env("MY_API_KEY", secret).anthropic(&model);
    let title = run_with.run().must_be(0, "skipped")["title"].clone();
    assert_eq!(title, "- Fix the failing test of the server of ours, which has *** as its key");
    let hint = "to pass the task as text: `fledge run -p '";
    for words in ["Fix the failing test", "Fix src/out.txt, please.", "Fix the README of ours, 1.5 times."] {
        for words in [vec![words], words.split(' ').collect()] {
            let run = run(&[&["run"], &words[..]].concat());
            run.must_exit(2);
            let says = format!("there is no task file `{}`\n", words.join(" "));
            assert!(run.stderr.contains(&says) && run.stderr.contains(hint), "{}", run.stderr);
        }
    }
    for words in [&["my tasks/*.md"][..], &["tasks/fix it.md"], &["a.md", "gone"], &["t/{b c}.md"]] {
        let run = run(&[&["run"], words].concat());
        assert!(run.code == Some(2) && !run.stderr.contains(hint), "{words:?}: {}", run.stderr);
    }
    for (args, says) in [
        (&["run", "-p", "Fix it", "task.md"][..], "cannot be used with"),
        (&["run", "-p", "Fix it", "--candidates", "3"], "--prompt starts a single run"),
        (&["run", "-p", " "], "--prompt: the text is empty"),
        (&["fix", "-p", ""], "--prompt: the text is empty"),
        (&["run"], "required"),
    ] {
        let run = run(args);
        run.must_exit(2);
        assert!(run.stderr.contains(says), "{args:?}: {}", run.stderr);
    }
    assert_eq!(model.count(), 2);
}

#[test]
fn a_prompt_of_fix_is_told_beside_what_fails() {
    let model = Model::new([write("done", ""), say("Done.")]);
    let run = Fledge::simple(&model).args(&["fix", "-p", "Write no other file."]).run();
    run.must_be(0, "verified");
    assert!(first_message(&model).contains("Write no other file."), "{}", first_message(&model));
}

#[test]
fn tools_and_steps_have_no_standard_input() {
    long_test!();
    let model = Model::new([crate::support::shell("cat > got"), say("Done.")]);
    let fledge = Fledge::simple(&model).lane("verify", "room: in-place\nsteps: [{ name: read, run: 'cat > got2' }]");
    let run = fledge.silent_stdin().run();
    run.must_be(0, "verified");
    assert_eq!((run.file("got").as_deref(), run.file("got2").as_deref()), (Some(""), Some("")));
}

#[test]
fn a_dry_run_asks_nobody_runs_nothing_and_needs_no_key() {
    let fledge = || {
        let lane = "steps: [{ name: touch, run: touch ran }]";
        Fledge::new()
            .lane("verify", lane)
            .task("# Mend it\n\nMend `src/a.txt`.")
            .file("src/a.txt", "x\n")
            .arg("--dry-run")
    };
    let run = fledge().run();
    run.must_exit(0);
    for part in [
        "Mend `src/a.txt`.",
        "files-edit:",
        "verify/touch: touch ran",
        "- retries: 3\n",
        "- turns: 100\n",
        "- tokens: unlimited\n",
        "- time: 1h00m\n",
    ] {
        assert!(run.stdout.contains(part), "{part:?} is not in {}", run.stdout);
    }
    assert_eq!((run.runs().len(), run.file("ran"), run.stderr.as_str()), (0, None, ""));

    let run = fledge().arg("--json").run();
    let [plan] = run.events().try_into().unwrap();
    assert_eq!((&plan["title"], &plan["max_retries"]), (&json!("Mend it"), &json!(3)));
    assert_eq!(words(plan["lanes"].as_array().unwrap().iter().map(|lane| &lane["name"])), ["verify"]);
    assert!(plan["tools"].as_array().is_some_and(|tools| tools.len() >= 8));
}

#[test]
fn a_dry_run_shows_exactly_what_is_sent() {
    let model = Model::new([say("Done.")]);
    let fledge = || Fledge::simple(&model).file("AGENTS.md", "Be brief.").arg("--json").arg("--max-retries=0");
    let [plan] = fledge().arg("--dry-run").run().events().try_into().unwrap();
    assert_eq!(model.count(), 0);
    fledge().run().must_be(1, "gate_failed");
    let sent = &model.asked()[0].body;
    assert_eq!(plan["system"], sent["system"][0]["text"]);
    assert_eq!(plan["messages"][0]["content"][0]["text"], first_message(&model));
    let names = |tools: &Value| words(tools.as_array().unwrap().iter().map(|tool| &tool["name"])).join(" ");
    assert_eq!(names(&plan["tools"]), names(&sent["tools"]));
}

#[test]
fn a_dry_run_finds_what_is_wrong() {
    let dry = |fledge: Fledge| fledge.task("Do it.").arg("--dry-run").run();
    dry(Fledge::new()).must_exit(2);
    dry(Fledge::new().lane("verify", "steps: [{ name: a, run: no-such-program }]")).must_exit(5);
}

#[test]
fn parameters_come_from_the_file_and_flags_win() {
    let model = Model::new([say("Done.").always()]);
    let task =
        "---\nlane: false\nparams:\n  who: {}\n  what: { default: nothing }\n---\nTell {{ who }} about {{ what }}.";
    let fledge = || Fledge::new().task(task).anthropic(&model).file("values.yaml", "who: them\nwhat: tests\n");
    fledge().arg("--params=values.yaml").arg("--param").arg("who=all of us=you").run().must_be(0, "skipped");
    assert_eq!(first_message(&model), "Tell all of us=you about tests.");
    for (args, says) in
        [(vec![], "`who` is required"), (vec!["--param=who=x", "--param=whta=y"], "no parameter `whta`")]
    {
        let run = args.into_iter().fold(fledge(), Fledge::arg).run();
        run.must_exit(2);
        assert!(run.stderr.contains(says), "{}", run.stderr);
    }
    assert_eq!(model.count(), 1);
}

#[test]
fn a_task_that_cannot_be_read_ends_with_2_and_names_the_file() {
    let large = "x".repeat(1024 * 1024 + 1);
    let cases = [
        (Fledge::new().file("task.md", &large), "the limit is 1048576"),
        (Fledge::new().file("task.md", b"caf\xe9"), "UTF-8"),
        (Fledge::new().file("task.md/x", ""), "there is no `*.md` in the folder"),
        (Fledge::new().file("task.md", ""), "the task has no text"),
    ];
    for (fledge, says) in cases {
        let run = fledge.arg("--no-verify").run();
        run.must_exit(2);
        assert!(run.stderr.contains("task.md") && run.stderr.contains(says), "expected {says:?} in {}", run.stderr);
    }
    let stdin = |bytes: Vec<u8>| Fledge::new().args(&["run", "-", "--no-verify"]).stdin(bytes).run();
    for (bytes, says) in [(large.into_bytes(), "larger than"), (b"caf\xe9".to_vec(), "UTF-8"), (Vec::new(), "no text")]
    {
        let run = stdin(bytes);
        run.must_exit(2);
        assert!(run.stderr.contains(says), "expected {says:?} in {}", run.stderr);
    }
}

#[test]
fn another_workspace_is_worked_in_and_must_be_there() {
    long_test!();
    let model = Model::new([write("done", ""), say("Done.")]);
    let fledge = || Fledge::new().task("Do it.").file("sub/lanes/verify.yaml", needs("done")).anthropic(&model);
    let run = fledge().arg("-C").arg("sub").run();
    run.must_be(0, "verified");
    assert_eq!((run.file("sub/done").is_some(), run.file("done")), (true, None));
    for (folder, says) in [("gone", "there is no folder gone"), ("task.md", "task.md")] {
        let run = fledge().arg("--workspace").arg(folder).run();
        run.must_exit(2);
        assert!(run.stderr.contains(says), "{}", run.stderr);
    }
}

#[test]
fn a_state_folder_inside_the_workspace_is_refused() {
    let model = Model::new([say("Done.").always()]);
    let fledge = Fledge::simple(&model);
    let inside = fledge.workspace().join(".state");
    let run = fledge.env("FLEDGE_STATE_DIR", inside.to_str().unwrap()).run();
    run.must_exit(2);
    assert!(run.stderr.contains("inside the workspace"), "{}", run.stderr);
    assert_eq!(model.count(), 0);
}

#[test]
fn help_and_version_are_data_and_end_with_0() {
    for (args, says) in [
        (["--help", "run"], "Exit codes: 0 verified"),
        (["run", "--help"], "--max-retries"),
        (["--version", "run"], "fledge "),
    ] {
        let run = Fledge::new().args(&args).run();
        run.must_exit(0);
        assert!(run.stdout.contains(says) && run.stderr.is_empty(), "{}", run.story());
    }
}

#[test]
fn a_report_that_has_no_folder_is_refused_before_anything_is_run() {
    let model = Model::new([]);
    let run = Fledge::simple(&model).arg("--report=nowhere/report.json").run();
    assert_eq!((run.code, model.count()), (Some(2), 0), "{}", run.stderr);
    assert!(run.stderr.contains("nowhere/report.json: its folder does not exist"), "{}", run.stderr);
}

#[test]
fn what_is_wrong_with_a_file_is_drawn_with_its_line_and_without_a_secret() {
    let task = Fledge::new().file("task.md", "---\nmax_retires: 3\n---\nDo it.").args(&["run", "task.md"]).run();
    task.must_exit(2);
    let said = "error: task.md:2:1: unknown key `max_retires` in the front matter (did you mean `max_retries`?)\n  \
        2 | max_retires: 3\n    | ^^^^^^^^^^^\n";
    assert_eq!(task.stderr, said);
    let config = "models:\n  m: { provider: openai, model: x, api_key: sk-live-Abc123 }\nprotct: []\n";
    let config = Fledge::new().file("fledge.yaml", config).args(&["config", "show"]).run();
    config.must_exit(2);
    let shown = "\n  2 |   m: { provider: openai, model: x, api_key: •••••••••••••• }\n    |                                    ^^^^^^^\n";
    assert!(config.stderr.contains(shown) && !config.story().contains("Abc123"), "{}", config.story());
    assert!(config.stderr.ends_with("\n  3 | protct: []\n    | ^^^^^^\n"), "{}", config.story());
    let params = Fledge::new()
        .task("Do {{ it }}.")
        .file("p.yaml", "it: [1]\n")
        .args(&["run", "task.md", "--params", "p.yaml"])
        .run();
    params.must_exit(2);
    assert!(
        params.stderr.contains("p.yaml:1:5: ") && params.stderr.ends_with("\n  1 | it: [1]\n    |     ^^\n"),
        "{}",
        params.story()
    );
}

#[test]
fn a_file_that_is_not_there_has_the_one_beside_it_that_was_meant() {
    for (args, meant) in [
        (&["run", "tsak.md"][..], "`task.md`"),
        (&["run", "task"], "`task.md`"),
        (&["run", "task.md", "--params", "parms.yaml"], "`params.yaml`"),
        (&["run", "task.md", "--model", "cassette/answer.yaml"], "answers.yaml`"),
    ] {
        let place = Fledge::new().task("Do it.").file("params.yaml", "{}").file("answers.yaml", "turns: []");
        let ended = place.lane("verify", "steps: [run: 'true']").args(args).run();
        ended.must_exit(2);
        assert!(ended.stderr.contains("did you mean `") && ended.stderr.contains(meant), "{args:?}: {}", ended.story());
    }
}
