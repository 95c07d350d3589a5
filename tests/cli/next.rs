//! The commands that fledge prints, each typed in the place where it is printed.

use crate::support::{Ended, Fledge};
use regex::Regex;
use rustix::process::Signal;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A shell command that changes the project, and the command that the user types.
///
/// The project is committed. It has a lane `verify` and a Makefile that want the file `done`, a
/// task `task.md`, a folder `tasks` with a task that succeeds and one that fails, and recorded
/// answers: `answers.yaml` makes the file, `idle.yaml` does nothing.
const ROWS: &[(&str, &str)] = &[
    // Runs by their ends.
    ("", "fledge run task.md"),
    ("", "fledge run task.md --commit on-success"),
    ("", "fledge run task.md --isolation worktree"),
    ("", "fledge run task.md --isolation worktree --commit none"),
    ("", "fledge run task.md --no-verify"),
    ("", "fledge run task.md --dry-run"),
    ("", "fledge run task.md --json"),
    ("rm -rf .git", "fledge run task.md"),
    ("", "cd src && fledge run ../task.md"),
    ("cd ..", "fledge -C workspace run workspace/task.md"),
    ("cd ..", "fledge -C workspace run workspace/task.md --isolation worktree"),
    ("git checkout -q --detach", "fledge run task.md --commit on-success"),
    ("echo >> Makefile", "fledge run task.md"),
    ("echo >> Makefile; cd src", "fledge run ../task.md"),
    ("rm -rf .git; git init -q", "fledge run task.md"),
    ("", "fledge run task.md --model cassette/idle.yaml --max-retries 0"),
    ("", "fledge run task.md --model cassette/idle.yaml --max-retries 3 --stuck-after 2"),
    ("", "fledge run task.md --isolation worktree --model cassette/idle.yaml --max-retries 0"),
    ("", "fledge run task.md --model cassette/tamper.yaml --on-tamper fail"),
    ("", "fledge run task.md --model cassette/tamper.yaml --max-retries 0"),
    ("", "fledge run task.md --model cassette/busy.yaml"),
    ("", "fledge run task.md --model cassette/refused.yaml"),
    ("", "fledge run task.md --model cassette/short.yaml"),
    (r"printf -- '---\nbudget: { turns: 1 }\n---\nMake it.\n' > task.md", "fledge run task.md"),
    (r"printf -- '---\nbudget: { tokens: 20 }\n---\nMake it.\n' > task.md", "fledge run task.md"),
    (r"printf 'steps: [{ name: test, run: ./gone.sh }]\n' > lanes/verify.yaml", "fledge run task.md"),
    ("", "fledge run task.md --expect passing"),
    ("", "fledge fix"),
    (": > done", "fledge fix"),
    ("", "fledge fix --model cassette/idle.yaml --max-retries 0"),
    // After a run.
    ("fledge run task.md", "fledge"),
    ("fledge run task.md", "fledge doctor"),
    ("fledge run task.md", "fledge runs show last"),
    ("fledge run task.md", "fledge runs list"),
    ("fledge run task.md", "fledge runs undo last"),
    ("fledge run task.md", "fledge apply last --branch fix"),
    ("echo >> Makefile; cd src; fledge run ../task.md", "fledge apply last --branch fix"),
    ("fledge run task.md", "fledge runs resume last"),
    ("fledge run task.md", "fledge runs continue last 'Make it again'"),
    ("fledge run task.md; echo x > done", "fledge runs undo last --force"),
    ("fledge run task.md --isolation worktree --commit none", "fledge worktrees list"),
    ("fledge run task.md --isolation worktree --commit none", "fledge worktrees clean"),
    ("fledge run task.md --isolation worktree --commit none", "fledge doctor"),
    ("fledge run task.md --isolation worktree --commit none; : > new", "fledge apply last"),
    ("fledge run task.md --model cassette/idle.yaml --max-retries 0", "fledge apply last"),
    ("fledge run task.md --model cassette/idle.yaml --max-retries 0", "fledge runs show last"),
    ("fledge run task.md --model cassette/idle.yaml --max-retries 0", "fledge runs logs"),
    ("fledge run task.md --model cassette/idle.yaml --max-retries 0", "fledge runs resume last"),
    // Batches.
    ("", "fledge run tasks"),
    ("", "fledge run tasks --dry-run"),
    ("", "fledge run task.md tasks/good.md"),
    ("", "fledge run task.md --candidates 2"),
    ("", "fledge run tasks --fail-fast --jobs 1"),
    ("", "fledge eval task.md --model cassette/answers.yaml --model cassette/idle.yaml"),
    ("fledge run tasks", "fledge batch"),
    ("fledge run tasks", "fledge batch show last"),
    ("fledge run tasks", "fledge doctor"),
    ("fledge run tasks", "fledge worktrees list"),
    ("fledge run tasks --fail-fast --jobs 1", "fledge run tasks --resume"),
    ("cd ..", "fledge -C workspace run workspace/tasks"),
    ("echo >> lanes/verify.yaml", "fledge run tasks"),
    // Lanes by hand.
    ("", "fledge lanes"),
    ("", "fledge lanes run verify"),
    ("", "fledge lanes run verify --clean"),
    ("echo done >> .gitignore; : > done", "fledge lanes run verify --clean"),
    ("echo done >> .gitignore; : > done; fledge lanes run verify --clean", "fledge doctor"),
    ("rm -r lanes", "fledge lanes"),
    ("rm -r lanes", "fledge lanes run verify"),
    ("", "fledge lanes run verfy"),
    ("", "fledge lanes verify"),
    ("", "fledge lanes run"),
    ("", "fledge lanes init"),
    // The state of the project.
    ("", "fledge"),
    ("rm -r lanes task.md tasks", "fledge"),
    ("", "fledge doctor"),
    ("rm -r lanes", "fledge doctor"),
    ("rm -rf .git", "fledge doctor"),
    ("rm -rf .git; git init -q", "fledge doctor"),
    ("echo >> Makefile", "fledge doctor"),
    ("echo >> Makefile; cd src", "fledge doctor"),
    ("rm -rf .git; cd src", "fledge doctor"),
    ("git config --global --unset user.name", "fledge doctor"),
    (
        "git checkout -q -b a; echo a > a; git add a; git commit -qm a; git checkout -q main; echo b > a; git add a; git commit -qm b; git merge -q a",
        "fledge doctor",
    ),
    ("mv fledge.yaml x", "fledge doctor"),
    (r"printf 'default_model: anthropic/claude-sonet-4-5\n' > fledge.yaml", "fledge doctor"),
    (r"printf 'steps: [{ name: test, run: ./gone.sh }]\n' > lanes/verify.yaml", "fledge doctor"),
    (r"printf 'room: in-place\nsteps: [{ name: test, run: make test }]\n' > lanes/verify.yaml", "fledge doctor"),
    ("export FLEDGE_MODLE=x", "fledge doctor"),
    ("", "fledge docs"),
    ("", "fledge docs lanes"),
    ("", "fledge docs lnaes"),
    // Lists of nothing.
    ("", "fledge runs"),
    ("", "fledge runs show last"),
    ("", "fledge runs watch"),
    ("", "fledge runs logs"),
    ("", "fledge batch"),
    ("rm -r tasks", "fledge batch"),
    ("", "fledge batch show last"),
    ("", "fledge worktrees"),
    ("", "fledge worktrees clean"),
    ("", "fledge memory"),
    ("", "fledge memory forget 1"),
    ("", "fledge jobs"),
    ("", "fledge jobs history nightly"),
    (r"printf -- '---\nschedule: @daily\n---\nMake it.\n' > tasks/nightly.md", "fledge jobs run nightly"),
    ("", "fledge monitors"),
    ("", "fledge monitors show backup"),
    ("", "fledge specs"),
    ("", "fledge models"),
    ("", "fledge models check"),
    ("", "fledge config"),
    ("", "fledge apply last"),
    ("", "fledge sync"),
    // Refused inputs.
    ("", "fledge 'Make the file'"),
    ("", "fledge task.md"),
    ("", "fledge -p 'Make the file'"),
    ("", "fledge run"),
    ("", "fledge run 'Make the file'"),
    ("", "fledge run -p ''"),
    ("", "fledge run tsk.md"),
    ("", "fledge run src"),
    ("", "fledge run src/lib.rs"),
    ("", "fledge run lanes/verify.yaml"),
    ("", "fledge run task.md lanes/verify.yaml"),
    ("", "fledge fix the failing test"),
    ("", "fledge fix --candidates 2"),
    ("fledge run task.md", "fledge apply"),
    ("", "fledge runs show"),
    ("", "fledge run task.md --lane verfy"),
    (r"printf 'steps: [{ rn: x }]\n' > lanes/verify.yaml", "fledge run task.md"),
    (r"printf 'steps: [{ rn: x }]\n' > lanes/verify.yaml", "fledge"),
    ("rm -r lanes", "fledge run task.md"),
    ("rm -rf .git", "fledge run task.md --commit on-success"),
    ("rm -rf .git", "fledge run task.md --isolation worktree"),
    ("rm -rf .git; git init -q", "fledge run task.md --isolation worktree"),
    ("echo >> Makefile", "fledge run task.md --commit on-success"),
    ("echo >> lanes/verify.yaml", "fledge run task.md --isolation worktree"),
    ("rm fledge.yaml", "fledge run task.md"),
    ("fledge run task.md --run-key k", "fledge run task.md --run-key k"),
];

/// Steps that a user types one after another, each as it was printed. The first row prints them.
const IN_ORDER: &[(&str, &str)] = &[
    ("rm -rf lanes tasks .git; mkdir tasks; cp answers.yaml tasks", "fledge init"),
    ("rm -rf lanes tasks; mkdir tasks; cp answers.yaml tasks", "fledge init"),
    ("rm -rf lanes tasks .git; mkdir tasks; cp answers.yaml tasks", "fledge init --no-check"),
    ("rm -rf lanes tasks; mkdir tasks; cp answers.yaml tasks; : > done", "fledge init --config"),
    (
        "mkdir -p part/tasks; cp Makefile fledge.yaml answers.yaml part; cp answers.yaml part/tasks; cd part",
        "fledge init",
    ),
    ("rm -rf lanes tasks; mkdir tasks; cp answers.yaml tasks; cd src", "fledge init"),
    ("rm -rf lanes tasks; mkdir tasks; cp answers.yaml tasks; cd ..", "fledge init -C workspace"),
];

/// Commands whose purpose is to report what is wrong.
const REPORTS: [&str; 3] = ["fledge lanes validate", "fledge doctor", "fledge models check"];

/// Calls the program `fledge`, whose path is the first argument.
const SHELL: &str = "program=$1; fledge() { \"$program\" \"$@\"; }; exec 2>&1";

fn project() -> Fledge {
    let write = |path: &str| {
        format!(
            "turns:\n  - tools: [{{ name: files-write, input: {{ path: {path}, content: \"1\\n\" }} }}]\n  - text: Done.\n"
        )
    };
    let fault = |kind: &str| format!("turns: [{{ fault: {{ kind: {kind}, message: no answer, times: 99 }} }}]\n");
    let task = |model: &str| {
        format!("---\nmodel: cassette/../{model}.yaml\nmax_retries: 0\n---\n# Make it\n\nMake the file `done`.\n")
    };
    let place = Fledge::new()
        .lane("verify", "steps: [{ name: test, run: test -f done }]\n")
        .file("Makefile", ".PHONY: test\ntest:\n\ttest -f done\n")
        .file("fledge.yaml", "default_model: cassette/answers.yaml\n")
        .task("# Make it\n\nMake the file `done`.\n")
        .file("tasks/good.md", task("answers"))
        .file("tasks/a-idle.md", task("idle"))
        .file("src/lib.rs", "// code\n")
        .file(".gitignore", "ignored\n")
        .file("answers.yaml", write("done"))
        .file("tamper.yaml", write("lanes/verify.yaml"))
        .file("idle.yaml", "turns: [{ text: Done. }, { text: Done. }, { text: Done. }]\n")
        .file("busy.yaml", "turns: [{ fault: { kind: busy, message: overloaded, retry_after: 90000s, times: 99 } }]\n")
        .file("refused.yaml", fault("auth"))
        .file("short.yaml", "turns: [{ tools: [{ name: files-read, input: { path: Makefile } }] }]\n")
        .file("../home/editor", "printf 'Make the file.\\n' > \"$1\"\n")
        .file("../home/.gitconfig", "[user]\n\tname = u\n\temail = u@h\n[init]\n\tdefaultBranch = main\n");
    place.committed()
}

/// Types commands in the project.
fn typed(place: Fledge, script: &str) -> Ended {
    let editor = format!("sh {}", place.workspace().join("../home/editor").display());
    place
        .under(&["/bin/sh", "-c", &format!("{SHELL}\n{script}"), "sh"])
        .args(&[])
        .env("EDITOR", &editor)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .run()
}

/// Returns the commands that a text shows: in backticks, or at the beginning of a line.
fn shown(text: &str) -> Vec<String> {
    let quoted = Regex::new(r"`((?:fledge|git|cd|export|chmod|\$EDITOR) [^`]*)`").unwrap();
    let listed = Regex::new(r"(?m)^  (?:next +|hint: +)? *((?:fledge|git|cd|export|\$EDITOR) .*?)(?:  .*)?$").unwrap();
    let mut all: Vec<(usize, String)> = [quoted, listed]
        .iter()
        .flat_map(|form| form.captures_iter(text).map(|found| found.get(1).unwrap()))
        .map(|found| (found.start(), found.as_str().to_owned()))
        .filter(|(_, command)| !command.starts_with("fledge serve"))
        .collect();
    all.sort();
    let mut commands: Vec<String> = Vec::new();
    for (_, command) in all {
        if !commands.contains(&command) {
            commands.push(command);
        }
    }
    commands
}

/// Returns what is wrong with the end of a command that fledge has printed.
fn wrong(command: &str, ended: &Ended) -> Option<String> {
    let text = format!("{}{}", ended.stdout, ended.stderr);
    let is_refused =
        text.lines().any(|line| ["error: ", "fatal: ", "Usage: "].iter().any(|sign| line.starts_with(sign)));
    let is_report = REPORTS.iter().any(|report| command.starts_with(report));
    let may_fail = ["fledge run", "fledge fix", "fledge lanes run"].iter().any(|verb| command.starts_with(verb));
    let is_bad = is_refused || ended.code == Some(2) || (!may_fail && ended.code != Some(0));
    (is_bad && !is_report).then(|| format!("`{command}` ended with {:?}:\n{text}", ended.code))
}

fn copy(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg("-a").arg(from.join(".")).arg(to).status().unwrap();
    assert!(copied.success());
}

/// Types each command that a text shows in its place. Returns those that do not work.
fn type_all(mut ended: Ended, (told, enter): (&str, &str), is_in_order: bool) -> Vec<String> {
    let folder = ended.path("..").canonicalize().unwrap();
    let kept = tempfile::tempdir_in(crate::support::place()).unwrap();
    copy(&folder, kept.path());
    let text = format!("{}{}", ended.stdout, ended.stderr);
    let (mut found, mut enter) = (Vec::new(), enter.to_owned());
    for command in shown(&text) {
        if command.starts_with("cd ") && !command.contains("&&") {
            enter.push_str(&command);
            enter.push('\n');
        }
        // Without a terminal, nobody can answer.
        let confirmed = command.replace("worktrees clean --failed", "worktrees clean --yes --failed");
        ended = typed(ended.again(&[]), &format!("{enter}{confirmed}"));
        found.extend(wrong(&command, &ended).map(|wrong| format!("{told}\n{wrong}--- printed by\n{text}")));
        if !is_in_order {
            restore(kept.path(), &folder);
        }
    }
    found
}

/// Plays a row. Returns the commands that do not work.
fn play((change, line): &(&str, &str), is_in_order: bool) -> Vec<String> {
    let change = if change.is_empty() { ":" } else { change };
    let ended = typed(project(), &format!("{{ {change}; }} >/dev/null 2>&1\n{line}"));
    // The commands are typed in the folder and the environment of the row.
    let parts = change.split(';').flat_map(|part| part.split("&&")).chain(line.split("&&")).map(str::trim);
    let enter: String = parts.filter(|part| part.starts_with("cd ")).map(|part| format!("{part}\n")).collect();
    type_all(ended, (&format!("$ {change}\n$ {line}"), &enter), is_in_order)
}

fn restore(from: &Path, to: &Path) {
    for entry in std::fs::read_dir(to).unwrap() {
        let path: PathBuf = entry.unwrap().path();
        let _a_room_may_be_read_only = Command::new("chmod").args(["-R", "u+rwX"]).arg(&path).status();
        std::fs::remove_dir_all(path).unwrap();
    }
    copy(from, to);
}

#[track_caller]
fn must_work(rows: &[(&str, &str)], is_in_order: bool) {
    let wrong: Vec<String> = std::thread::scope(|scope| {
        let parts = rows.chunks(rows.len().div_ceil(4));
        let play = |rows: &[(&str, &str)]| rows.iter().flat_map(|row| play(row, is_in_order)).collect::<Vec<_>>();
        let parts: Vec<_> = parts.map(|rows| scope.spawn(move || play(rows))).collect();
        parts.into_iter().flat_map(|part| part.join().unwrap()).collect()
    });
    assert!(wrong.is_empty(), "{} commands do not work:\n{}", wrong.len(), wrong.join("\n========\n"));
}

#[test]
fn each_printed_command_works_where_it_is_printed() {
    long_test!();
    must_work(ROWS, false);
}

#[test]
fn each_command_that_a_stopped_run_prints_works() {
    long_test!();
    let mut wrong = Vec::new();
    for (signal, then) in [
        (Signal::INT, ":"),
        (Signal::TERM, ":"),
        (Signal::KILL, "fledge"),
        (Signal::KILL, "fledge doctor"),
        (Signal::KILL, "fledge runs"),
    ] {
        let place = project().file("hang.yaml", "turns: [{ hang: true }, { text: Done. }]\n");
        let mut running = place.args(&["run", "task.md", "--model", "cassette/hang.yaml", "--max-retries=0"]).start();
        running.wait_for("attempt 1 of 1");
        running.signal(signal);
        let stopped = running.end();
        let ended = if then == ":" { stopped } else { typed(stopped.again(&[]), then) };
        // From now on, the model answers.
        wrong.extend(type_all(ended, (&format!("{signal:?}, then {then}"), "cp idle.yaml hang.yaml\n"), false));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n========\n"));
}

#[test]
fn the_next_steps_of_init_work_in_their_order() {
    must_work(IN_ORDER, true);
}
