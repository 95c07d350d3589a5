//! The first steps in a project, the effective configuration, shell completions and the manual
//! page.

use crate::support::Fledge;
use serde_json::{Value, json};

fn a_project() -> Fledge {
    Fledge::new().file("Makefile", ".PHONY: test\ntest:\n\ttrue\n")
}

fn values(config: &Value) -> impl Fn(&str) -> (String, String, Value) {
    let all = config["values"].as_array().unwrap().clone();
    move |key| {
        let row = all.iter().find(|row| row["key"] == key).unwrap_or_else(|| panic!("no {key}"));
        let text = |name: &str| row[name].as_str().unwrap().to_owned();
        (text("value"), text("from"), row["line"].clone())
    }
}

#[test]
fn the_help_of_each_verb_opens_with_what_the_list_says_of_it() {
    let help = |args: &[&str]| {
        let run = Fledge::new().args(args).run();
        run.must_exit(0);
        run.stdout
    };
    let list = help(&["--help"]);
    let rows = list.lines().skip_while(|line| *line != "Everyday:").take_while(|line| *line != "Options:");
    for group in ["Everyday:", "Inspect:", "Server:", "Plumbing:"] {
        assert!(list.lines().any(|line| line == group), "{list}");
    }
    assert_eq!(list, help(&["-h"]));
    let rows: Vec<(&str, &str)> = rows.filter_map(|row| row.trim().split_once("  ")).collect();
    assert!(rows.len() > 20, "{list}");
    for (verb, says) in rows.into_iter().filter(|(verb, _)| *verb != "help") {
        let own = help(&[verb, "--help"]);
        assert!(own.starts_with(says.trim()), "{verb}: {own}");
    }
}

#[test]
fn the_help_of_a_verb_lists_each_option_once_and_arguments_before_options() {
    let help = |words: &[&str], variables: &[(&str, &str)]| {
        let fledge = Fledge::new().args(&[words, &["-h"]].concat());
        let run = variables.iter().fold(fledge, |fledge, (name, value)| fledge.env(name, value)).run();
        run.must_exit(0);
        run.stdout
    };
    let verbs =
        ["run", "fix", "runs", "runs list", "lanes", "lanes run", "memory", "config show", "batch list", "apply"];
    for verb in verbs.iter().chain(&["doctor", "init", "serve", "sync", "verify-report", "worktrees clean", "jobs"]) {
        let words: Vec<&str> = verb.split(' ').collect();
        let said = help(&words, &[]);
        assert_eq!(said.matches("-C, --workspace <DIR>").count(), 1, "{verb}: {said}");
    }
    let said = help(&["run"], &[]);
    let places = ["Arguments:\n  [TASK]...", "Options:\n", "Task:\n"].map(|part| said.find(part));
    assert!(places.is_sorted() && places[0].is_some(), "{said}");
    assert!(help(&["runs", "replay"], &[]).contains("[default: last]"));
    let is_coloured = |words: &[&str], variables: &[(&str, &str)]| help(words, variables).contains('\u{1b}');
    assert!(!is_coloured(&["run"], &[]));
    for name in ["FORCE_COLOR", "CLICOLOR_FORCE"] {
        assert!(is_coloured(&["run"], &[(name, "1")]), "{name}");
        assert!(!is_coloured(&["run"], &[(name, "1"), ("NO_COLOR", "1")]), "{name}");
        assert!(!is_coloured(&["--color", "never", "run"], &[(name, "1")]), "{name}");
    }
    assert!(is_coloured(&["run", "--color=always"], &[("NO_COLOR", "1")]));
}

#[test]
fn a_verb_without_another_word_lists() {
    let mut place = Some(a_project().args(&["--version"]).run());
    let mut said = |args: &[&str]| {
        let run = place.take().unwrap().again(args).run();
        let said = (run.code, run.stdout.clone(), run.stderr.clone());
        place = Some(run);
        said
    };
    for verb in ["jobs", "lanes", "memory", "models", "monitors", "runs", "worktrees"] {
        let listed = said(&[verb, "list"]);
        assert_eq!((listed.0, &said(&[verb])), (Some(0), &listed), "{verb}");
        assert_eq!(said(&[verb, "--json"]), said(&[verb, "list", "--json"]), "{verb}");
    }
    assert_eq!(said(&["runs", "--limit", "3", "--failed"]).0, Some(0));
    assert_eq!(said(&["config"]), said(&["config", "show"]));
    let slip = said(&["runs", "lits"]);
    assert!(slip.0 == Some(2) && slip.2.contains("a similar subcommand exists: 'list'"), "{slip:?}");
    assert!(said(&["runs", "--limt", "3"]).2.contains("--limt"));
    assert!(said(&["runs", "--help"]).1.contains("Show what a run has changed"));
}

#[test]
fn a_project_gets_a_lane_and_a_task_that_can_be_run_at_once() {
    let init = a_project().args(&["init", "--config"]).run();
    init.must_exit(0);
    for (file, said) in
        [("lanes/verify.yaml", "make test"), ("tasks/first.md", "files:"), ("fledge.yaml", "lane: verify")]
    {
        assert!(init.file(file).is_some_and(|text| text.contains(said)), "{file}: {}", init.story());
        assert!(init.stderr.contains(&format!("wrote {file}")), "{}", init.story());
    }
    init.again(&["lanes", "validate", "--strict"]).run().must_exit(0);
}

#[test]
fn a_task_that_says_what_it_said_when_it_was_written_is_no_task_yet() {
    let ended = a_project().args(&["init"]).run();
    let mut ended = ended.again(&["run", "tasks/first.md", "--dry-run"]).run();
    ended.must_exit(2);
    insta::assert_snapshot!(ended.stderr);
    ended = ended.again(&["run", "tasks", "--jobs", "2"]).run();
    ended.must_exit(2);
    assert!(ended.stderr.contains("tasks/first.md:6:1: this line is still") && ended.runs().is_empty());
    let text = ended.file("tasks/first.md").unwrap();
    let said = text.replace("State the task in one line", "Mend the clock");
    ended = ended.again(&["run", "tasks/first.md", "--dry-run"]).file("tasks/first.md", &said).run();
    ended.must_exit(2);
    assert!(ended.stderr.contains("tasks/first.md:8:1") && !ended.stderr.contains("first.md:6"), "{}", ended.story());
    let said = format!("{}\nIt is late.\n", said.split("\nThen describe").next().unwrap());
    ended.again(&["run", "tasks/first.md", "--dry-run"]).file("tasks/first.md", &said).run().must_exit(0);
}

#[test]
fn what_is_there_already_is_left_as_it_is() {
    let before =
        a_project().file("tasks/first.md", "mine").file("lanes/verify.yaml", "steps: [{ name: a, run: \"true\" }]");
    let init = before.args(&["init"]).run();
    init.must_exit(0);
    assert_eq!(init.file("tasks/first.md").as_deref(), Some("mine"));
    assert!(
        init.file("lanes/verify.yaml").is_some_and(|text| text.contains("name: a"))
            && init.file("fledge.yaml").is_none()
    );
    assert_eq!(init.stderr.matches("- kept: ").count(), 2, "{}", init.story());
}

#[test]
fn a_project_that_nothing_can_check_is_told_what_to_write() {
    let init = Fledge::new().args(&["init"]).run();
    init.must_exit(2);
    assert!(
        init.stderr.contains("lanes/verify.yaml by hand") && init.file("tasks/first.md").is_none(),
        "{}",
        init.story()
    );
}

#[test]
fn what_would_be_written_is_printed_and_nothing_is_written() {
    let init = a_project().args(&["init", "--print"]).run();
    init.must_exit(0);
    assert!(
        init.stdout.contains("# lanes/verify.yaml\n") && init.stdout.contains("# tasks/first.md\n"),
        "{}",
        init.story()
    );
    assert!(init.file("lanes/verify.yaml").is_none() && init.file("tasks/first.md").is_none());
}

#[test]
fn every_value_has_the_layer_and_the_line_that_it_comes_from() {
    let project = "max_retries: 5\nbudget:\n  turns: 7\nlane: verify\n";
    let local = "max_retries: 6\nmodels:\n  own: { provider: ollama, model: q, base_url: \"http://127.0.0.1:1\" }\n";
    let shown = Fledge::new()
        .file("fledge.yaml", project)
        .file("fledge.local.yaml", local)
        .env("FLEDGE_MODEL", "own")
        .args(&["config", "show", "--json"])
        .run();
    shown.must_exit(0);
    let events = shown.events();
    let of = values(&events[0]);
    let said = |value: &str, from: &str, line: Value| (value.to_owned(), from.to_owned(), line);
    assert_eq!(of("max_retries"), said("6", "fledge.local.yaml", json!(1)));
    assert_eq!(of("budget.turns"), said("7", "fledge.yaml", json!(3)));
    assert_eq!(of("lane"), said("verify", "fledge.yaml", json!(4)));
    assert_eq!(of("default_model"), said("own", "FLEDGE_MODEL", Value::Null));
    assert_eq!(of("models.own"), said("ollama/q, no key", "fledge.local.yaml", json!(3)));
    assert_eq!(of("sandbox"), said("auto", "default", Value::Null));
    let text = shown.again(&["config", "show"]).run();
    assert!(text.stdout.lines().any(|line| line.split_whitespace().eq(["max_retries", "6", "fledge.local.yaml:1"])));
}

#[test]
fn a_key_is_shown_as_set_or_not_set_and_never_itself() {
    let models = "models:\n  a: { provider: anthropic, model: m }\n  b: { provider: openai, model: m, api_key_env: OTHER_KEY }\n";
    let shown = Fledge::new().file("fledge.yaml", models).env("ANTHROPIC_API_KEY", "sk-very-secret-1");
    let shown = shown.args(&["--trust-project", "config", "show"]).run();
    shown.must_exit(0);
    assert!(shown.stdout.contains("key ANTHROPIC_API_KEY (set)"), "{}", shown.story());
    assert!(shown.stdout.contains("key OTHER_KEY (not set)"), "{}", shown.story());
    assert!(!shown.story().contains("very-secret"));
}

#[test]
fn the_places_of_all_layers_are_named_also_where_there_is_nothing() {
    let path = Fledge::new().file("fledge.yaml", "lane: verify\n").args(&["config", "path", "--json"]).run();
    path.must_exit(0);
    let files = path.events()[0]["files"].as_array().unwrap().clone();
    let there: Vec<(bool, bool)> = files
        .iter()
        .map(|file| (file["path"].as_str().unwrap().ends_with("fledge.yaml"), file["exists"].as_bool().unwrap()))
        .collect();
    assert_eq!(there, [(false, false), (true, true), (false, false)], "{}", path.story());
}

#[test]
fn a_wrong_layer_is_an_error_with_its_place() {
    let shown = Fledge::new().file("fledge.yaml", "max_retry: 3\n").args(&["config", "show"]).run();
    shown.must_exit(2);
    assert!(shown.stderr.contains("fledge.yaml:1:1") && shown.stderr.contains("max_retries"), "{}", shown.story());
}

#[test]
fn shells_and_the_manual_know_every_verb() {
    for shell in ["bash", "zsh", "fish"] {
        let script = Fledge::new().args(&["completions", shell]).run();
        script.must_exit(0);
        assert!(script.stdout.contains("doctor") && script.stdout.contains("lanes"), "{shell}: {}", script.story());
    }
    let page = Fledge::new().args(&["man", "lanes", "run"]).run();
    page.must_exit(0);
    assert!(page.stdout.contains(".TH") && page.stdout.contains("keep\\-going"), "{}", page.story());
    let pages = page.again(&["man", "--out", "man1"]).run();
    pages.must_exit(0);
    assert!(pages.file("man1/fledge.1").is_some() && pages.file("man1/fledge-runs-show.1").is_some());
    assert!(pages.file("man1/fledge-inside.1").is_none());
    let wrong = pages.again(&["man", "lane"]).run();
    wrong.must_exit(2);
    assert!(wrong.stderr.contains("did you mean `lanes`?"), "{}", wrong.story());
}

#[test]
fn hints_name_the_only_task_of_the_project_and_a_misspelled_variable() {
    let place = Fledge::new().file("tasks/first.md", "Do it.").run();
    assert_eq!(place.stderr, "error: there is no task file task.md\n  hint: did you mean `tasks/first.md`?\n");
    let several = place.again(&["run", "task.md"]).file("tasks/second.md", "Do it.").run();
    assert_eq!(several.stderr, "error: there is no task file task.md\n");
    let shown = several.again(&["config", "show"]).env("FLEDGE_MODLE", "x").run();
    let slip = "! FLEDGE_MODLE is set, but fledge does not read it (did you mean `FLEDGE_MODEL`?)\n";
    assert_eq!((shown.stderr.as_str(), shown.code), (slip, Some(0)));
}

#[test]
fn a_slip_in_a_verb_or_a_flag_has_what_was_meant_and_a_file_the_verb_that_takes_it() {
    let mut place = Fledge::new().file("todo.md", "Do it.").args(&["rnu", "todo.md"]).run();
    for (args, says) in [
        (&["rnu", "todo.md"][..], "a similar subcommand exists: 'run'"),
        (&["runs", "shwo", "last"], "a similar subcommand exists: 'show'"),
        (&["lanes", "run", "--kepe-going"], "a similar argument exists: '--keep-going'"),
        (&["todo.md"], "`fledge run todo.md`"),
    ] {
        place = place.again(args).run();
        place.must_exit(2);
        assert!(place.stderr.contains(says), "{args:?}: {}", place.story());
    }
    let nothing = place.again(&["zebra"]).run();
    nothing.must_exit(2);
    assert!(!nothing.stderr.contains("tip:"), "{}", nothing.story());
}

/// Returns a project of package scripts, which may pass, fail, or be unable to run.
fn a_project_of_scripts(scripts: &str) -> Fledge {
    Fledge::new().file("package.json", format!("{{\"scripts\": {{{scripts}}}}}")).file("package-lock.json", "{}")
}

#[test]
fn init_tries_the_checks_by_hand_and_in_a_clean_room_and_amends_what_it_wrote() {
    long_test!();
    let scripts = "\"lint\": \"exit 3\", \"build\": \"no-such-tool\", \"test\": \"test -f here\"";
    let init = a_project_of_scripts(scripts).file(".gitignore", "here\n").file("here", "").args(&["init"]).run();
    init.must_exit(0);
    let table: Vec<String> =
        init.stderr.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    let row = |name: &str| table.iter().find(|line| line.starts_with(&format!("{name} "))).cloned().unwrap_or_default();
    assert!(row("lint").contains("failed") && row("test").starts_with("test passed "), "{}", init.story());
    assert!(row("test").contains(" failed "), "{}", init.story());
    let page = init.file("lanes/verify.yaml").unwrap();
    assert!(page.contains("allow_failure: true # it failed when this was written"), "{page}");
    let said = "# left out: `npm run build`, because it cannot run here";
    assert!(page.contains(said) && !page.contains("name: build"), "{page}");
    assert!(init.stderr.contains("`fledge lanes run verify --clean` shows"), "{}", init.story());
    init.again(&["lanes", "run", "verify"]).run().must_exit(0);
}

#[test]
fn init_tries_nothing_where_it_is_told_so_or_a_lane_is_there() {
    let init = a_project_of_scripts("\"test\": \"echo > ran\"").args(&["init", "--no-check"]).run();
    init.must_exit(0);
    assert_eq!((init.file("ran"), init.stderr.contains("clean room")), (None, false), "{}", init.story());
    let again = init.again(&["init"]).run();
    again.must_exit(0);
    assert_eq!(again.file("ran"), None, "{}", again.story());
}
