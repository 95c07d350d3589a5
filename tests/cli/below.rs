//! Each command finds the project from a folder below it. Each also finds it with `-C`, before or
//! after the command.

use crate::support::{Ended, Fledge, Model, needs, say, write};

/// Rows of a command and a part of its output in the project.
const VERBS: [(&[&str], &str); 26] = [
    (&["lanes"], "only here"),
    (&["lanes", "list"], "only here"),
    (&["lanes", "show", "verify"], "verify"),
    (&["lanes", "validate"], "valid: 1 lane"),
    (&["lanes", "run", "verify", "--dry-run"], "verify"),
    (&["lanes", "run", "verify"], "verify passed"),
    (&["lanes", "init"], "already exists"),
    (&["run", "-p", "Mend it", "--dry-run"], "test -f done"),
    (&["fix", "--dry-run"], "test -f done"),
    (&["runs"], "verified"),
    (&["runs", "list"], "verified"),
    (&["runs", "show", "last"], "Make the file"),
    (&["apply", "last", "--check"], "verified tree"),
    (&["worktrees", "list"], "workspace"),
    (&["memory"], "only remembered here"),
    (&["memory", "list"], "only remembered here"),
    (&["models", "list"], "only-named-here"),
    (&["doctor"], "only-named-here"),
    (&["config"], "only-named-here"),
    (&["config", "show"], "only-named-here"),
    (&["jobs", "list"], "nightly"),
    (&["monitors", "list"], "only-watched-here"),
    (&["serve", "link"], "/workspace"),
    (&["sync"], "no sync server"),
    (&["specs"], "only-specified"),
    (&["specs", "list"], "only-specified"),
];

fn project() -> Ended {
    let model = Model::new([write("done", "yes"), say("Done.")]);
    let spec = "---\nmodule: only-specified\nversion: 1\nstatus: draft\nfiles: [src/**]\ndepends_on: []\n---\n\n\
        # only-specified\n\n## Purpose\n\nNone.\n";
    let named = "lane: verify\nmodels:\n  only-named-here: { provider: anthropic, model: claude-sonnet-4-5 }\n";
    let ended = Fledge::simple(&model)
        .lane("verify", &format!("description: only here\n{}", needs("done")))
        .file("fledge.yaml", named)
        .file("tasks/nightly.md", "---\nschedule: \"0 3 * * *\"\n---\n# Nightly\n\nMake the file `done`.\n")
        .file("specs/only-specified/only-specified.spec.md", spec)
        .file("src/deep/x", "")
        .run();
    ended.must_exit(0);
    let ended = ended.again(&["memory", "add", "only remembered here"]).run();
    ended.again(&["monitors", "add", "only-watched-here", "--schedule", "0 3 * * *"]).run()
}

/// Returns the output of a command without numbers and without the line that names the project.
fn output(ended: &Ended) -> (Option<i32>, String) {
    // Elsewhere, a printed command first enters the project.
    let enter = format!("cd {} && ", ended.path("").canonicalize().unwrap().display());
    let lines = ended.stdout.lines().chain(ended.stderr.lines()).filter(|line| !line.starts_with("project: "));
    let lines: Vec<String> = lines.map(|line| line.replace(&enter, "")).collect();
    let words = lines
        .iter()
        .flat_map(|line| line.split_whitespace())
        .filter(|word| !word.contains(|c: char| c.is_ascii_digit()));
    (ended.code, words.collect::<Vec<_>>().join(" "))
}

#[test]
fn each_verb_finds_the_project_from_below() {
    long_test!();
    let mut place = Some(project());
    let mut run = |starter: &[&str], args: &[&str]| {
        let ended = place.take().unwrap().again(args).under(starter).run();
        let told = (output(&ended), ended.stderr.contains("project: "), ended.story());
        place = Some(ended);
        told
    };
    for (verb, known) in VERBS {
        let (there, is_named, story) = run(&[], verb);
        assert!(story.contains(known) && !is_named, "{verb:?}: {story}");
        let (below, is_named, story) = run(&["/bin/sh", "-c", "cd src/deep && exec \"$@\"", "sh"], verb);
        assert!(below == there && is_named, "{verb:?} from below: {story}\ninstead of {there:?}");
        let named = [&["-C", "src/deep"], verb].concat();
        let (named, is_named, story) = run(&[], &named);
        assert!(named == there && !is_named, "-C before {verb:?}: {story}\ninstead of {there:?}");
        let named = [verb, &["-C", "workspace/src"]].concat();
        let (named, is_named, story) = run(&["/bin/sh", "-c", "cd .. && exec \"$@\"", "sh"], &named);
        assert!(named == there && is_named, "-C behind {verb:?}: {story}\ninstead of {there:?}");
    }
}

#[test]
fn paths_are_those_of_the_folder_in_which_they_were_written() {
    long_test!();
    let ended = project();
    let below = &["/bin/sh", "-c", "cd src/deep && exec \"$@\"", "sh"];
    let task = "# From below\n\nMend it.\n";
    let args = ["run", "own.md", "--dry-run"];
    let ended = ended.again(&args).file("src/deep/own.md", task).under(below).run();
    ended.must_exit(0);
    assert!(ended.stdout.contains("# From below") && ended.stdout.contains("test -f done"), "{}", ended.story());
    let ended = ended.again(&["run", "tasks/nightly.md", "--dry-run"]).under(below).run();
    ended.must_exit(2);
    let ended = ended.again(&["run", "own.md", "../deep/own.md", "--jobs", "1", "--dry-run"]).under(below).run();
    assert!(ended.stderr.contains("own.md: no model is configured"), "{}", ended.story());
    let ended = ended.again(&["lanes", "validate", "../../lanes/verify.yaml"]).under(below).run();
    ended.must_exit(0);
    let ended = ended.again(&["lanes", "run", "verify", "--junit", "results.xml"]).under(below).run();
    ended.must_exit(0);
    assert!(ended.file("src/deep/results.xml").is_some() && ended.file("results.xml").is_none());
}

#[test]
fn a_nested_project_is_its_own_and_a_new_one_can_begin_below() {
    long_test!();
    let ended = project();
    let below = &["/bin/sh", "-c", "cd part && exec \"$@\"", "sh"];
    let own = "steps: [{ name: nested, run: \"true\" }]";
    let ended = ended.again(&["lanes", "list"]).file("part/lanes/own.yaml", own).under(below).run();
    assert!(ended.stdout.contains("nested") && !ended.stdout.contains("only here"), "{}", ended.story());
    let ended = ended
        .again(&["lanes", "list"])
        .file("repository/.git", "")
        .under(&["/bin/sh", "-c", "cd repository && exec \"$@\"", "sh"])
        .run();
    assert!(!ended.stdout.contains("only here"), "a repository ends the search: {}", ended.story());
    let ended = ended.again(&["init", "--no-check", "-C", "new"]).file("new/Makefile", "test:\n\ttrue\n").run();
    ended.must_exit(0);
    assert!(ended.file("new/lanes/verify.yaml").is_some(), "{}", ended.story());
    let ended = ended.again(&["-C", "no/such", "runs"]).run();
    ended.must_exit(2);
    assert!(ended.stderr.contains("there is no folder no/such"), "{}", ended.story());
}
