//! The first hour with fledge: the files of `init` work at once, and each command names the next
//! one.

use crate::support::{Ended, Fledge, Model, say, write};
use serde_json::Value;
use std::fs::{Permissions, set_permissions};
use std::os::unix::fs::PermissionsExt as _;

const MAKE: &str = ".PHONY: test\ntest:\n\ttest -f done\n";
const COMMIT: &str = "git add lanes/verify.yaml tasks/first.md && git commit -m 'Add fledge'";

/// Returns a committed project after `fledge init`, whose task has a description.
fn begun() -> Ended {
    let init = Fledge::new().file("Makefile", MAKE).committed().args(&["init", "--no-check"]).run();
    init.must_exit(0);
    assert!(init.stderr.contains(&format!("  {COMMIT}  ")), "{}", init.story());
    let doctor = init.again(&["doctor"]).env("ANTHROPIC_API_KEY", "k").run();
    let next = format!(
        "Ready. Next: describe the task in tasks/first.md, commit with `{COMMIT}`, then `fledge run tasks/first.md`\n"
    );
    assert!(doctor.code == Some(0) && doctor.stdout.ends_with(&next), "{}", doctor.story());
    assert!(doctor.stdout.contains(&format!("→ `{COMMIT}`")), "{}", doctor.story());
    doctor.again(&[]).file("tasks/first.md", "Make the file `done`.\n").run()
}

fn working() -> Model {
    Model::new([write("done", ""), say("Made.")])
}

#[test]
fn what_init_leaves_is_committed_by_the_line_that_it_prints() {
    long_test!();
    let model = working();
    let refused = begun().again(&["run", "tasks/first.md", "--commit=on-success"]).anthropic(&model).run();
    let files = "the workspace has uncommitted changes: `lanes/verify.yaml`, `tasks/first.md`; commit or stash them";
    assert!(refused.code == Some(2) && refused.stderr.contains(files), "{}", refused.story());
    let run = refused.again(&["run", "tasks/first.md"]).anthropic(&model).run();
    run.must_exit(0);
    let refused = run.again(&["apply", "last", "--branch", "fix"]).run();
    refused.must_exit(1);
    assert!(refused.stderr.contains("not committed: `lanes/verify.yaml`, `tasks/first.md`\n"), "{}", refused.story());
    assert!(refused.stderr.contains(&format!("then try again: `{COMMIT}`")), "{}", refused.story());
    refused.git(&["add", "lanes/verify.yaml", "tasks/first.md"]);
    refused.git(&["-c", "user.name=t", "-c", "user.email=t@localhost", "commit", "-qm", "Add fledge"]);
    let applied = refused.again(&["apply", "last", "--branch", "fix"]).run();
    applied.must_exit(0);
    assert_eq!(applied.git(&["diff", "--name-only", "main", "fix"]), "done");
}

#[test]
fn fledge_alone_says_where_one_is_and_what_comes_next() {
    long_test!();
    let none = Fledge::new().args(&[]).run();
    none.must_exit(0);
    assert!(none.stdout.lines().count() == 3 && none.stdout.contains("`fledge init`"), "{}", none.story());
    let begun = begun();
    let all = "Lanes:    verify\nLast run: none yet\nNext:     `fledge run tasks/first.md`\n";
    assert_eq!((begun.code, begun.stdout.as_str()), (Some(0), all));
    let run = begun.again(&["run", "tasks/first.md"]).anthropic(&working()).run();
    let after = run.again(&[]).run();
    assert!(after.stdout.contains("Last run: verified, first (`fledge runs show last`)\n"), "{}", after.story());
    let broken = after.again(&["-C", "lanes"]).file("lanes/verify.yaml", "steps: [{ rn: x }]").run();
    assert!(broken.stdout.contains("broken: lanes/verify.yaml\n"), "{}", broken.story());
    assert!(broken.stdout.ends_with("Next:     `fledge lanes validate` shows what to correct\n"), "{}", broken.story());
}

#[test]
fn doctor_says_that_a_project_cannot_be_written() {
    long_test!();
    let place = begun();
    set_permissions(place.path(""), Permissions::from_mode(0o555)).unwrap();
    let ended = place.again(&["doctor", "--json"]).env("ANTHROPIC_API_KEY", "k").run();
    let text = ended.stdout.clone();
    let ended = ended.again(&["doctor"]).env("ANTHROPIC_API_KEY", "k").run();
    set_permissions(ended.path(""), Permissions::from_mode(0o755)).unwrap();
    let data: Value = serde_json::from_str(&text).unwrap();
    let wrong: Vec<&Value> = data["checks"].as_array().unwrap().iter().filter(|it| it["status"] == "fail").collect();
    let [project] = wrong.as_slice() else { panic!("{text}") };
    assert!(project["id"] == "project" && project["fix"].as_str().unwrap().starts_with("`chmod u+rwx "), "{text}");
    assert!(ended.stdout.ends_with("Not ready: 1 problem is preventing a run (✗)\n"), "{}", ended.story());
}

#[test]
fn configured_models_are_one_line() {
    let models = "models:\n  a: { provider: anthropic, model: claude-sonnet-4-5 }\n  b: { provider: anthropic, model: claude-sonnet-4-5 }\n  \
        c: { provider: openai, model: gpt-5 }\n  d: { provider: openai, model: gpt-5 }\n";
    let place = Fledge::new().file("Makefile", MAKE).file("fledge.yaml", models).env("ANTHROPIC_API_KEY", "k");
    let ended = place.args(&["doctor"]).run();
    let lines: Vec<&str> = ended.stdout.lines().filter(|line| line.contains(" model ")).collect();
    let [_, ready, lacking] = lines.as_slice() else { panic!("{}", ended.story()) };
    assert!(
        ready.ends_with("also configured: a, b") && lacking.contains("c (") && lacking.contains("d ("),
        "{lines:?}"
    );
}

#[test]
fn what_can_be_known_of_a_task_is_refused_before_a_model_is_asked() {
    let mut place = Fledge::new().file("Makefile", MAKE).args(&["--version"]).run();
    for (args, said) in [
        (&["--model", "antropic/x", "--dry-run"][..], "no model `antropic/x` (did you mean `anthropic/x`?"),
        (&["--param", "foo=3", "--dry-run"], "the task has no parameter `foo` (write `{{ foo }}`"),
        (&["--max-retries", "-1"], "invalid value '-1' for '--max-retries <N>': expected a whole number from 0 to 100"),
        (&["--max-usd", "-1"], "invalid value '-1' for '--max-usd <USD>'"),
    ] {
        let ended = place.again(&[&["run", "-p", "Mend it."], args].concat()).run();
        ended.must_exit(2);
        assert!(ended.stderr.contains(said), "{args:?}: {}", ended.story());
        place = ended;
    }
}

#[test]
fn a_dry_run_warns_of_a_pattern_that_fits_no_file() {
    let place =
        Fledge::new().file("Makefile", MAKE).file("src/a.rs", "").file("answers.yaml", "turns: [{ text: Done. }]\n");
    let place = place.task("---\nfiles: [\"scr/**\"]\n---\nMend it.\n").committed();
    let ended = place.args(&["run", "task.md", "--model", "cassette/answers.yaml", "--dry-run"]).run();
    ended.must_exit(0);
    let warning = "warning: task.md: `scr/**` in `files` matches no file of the project; did you mean `src/**`?\n";
    assert!(ended.stdout.contains(warning), "{}", ended.story());
}
