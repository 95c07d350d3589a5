//! Unreadable lane files of every kind: none blocks fledge, and none hinders the other lanes.

use crate::support::{Fledge, SOON, needs};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;

const GOOD: &str = "steps: [{ name: a, run: 'true' }]";
const LIMIT: usize = 1024 * 1024;

/// Puts an obstacle at the path of a file; the second field is the expected message.
type Obstacle = (fn(&Path), &'static str);

fn obstacles() -> Vec<Obstacle> {
    vec![
        (
            |path| symlink(path.file_name().unwrap(), path).unwrap(),
            "cannot be read: Too many levels of symbolic links (os error 40) (fix or remove it)",
        ),
        (|path| symlink("nowhere", path).unwrap(), "cannot be read: the link is broken (fix or remove it)"),
        (
            |path| symlink("/dev/zero", path).unwrap(),
            "cannot be read: it is a device, not a regular file (fix or remove it)",
        ),
        (|path| fs::create_dir(path).unwrap(), "cannot be read: it is a folder, not a regular file (fix or remove it)"),
        (
            |path| drop(UnixListener::bind(path).unwrap()),
            "cannot be read: it is a socket, not a regular file (fix or remove it)",
        ),
        (pipe, "cannot be read: it is a pipe, not a regular file (fix or remove it)"),
        (
            |path| fs::write(path, " ".repeat(LIMIT + 1)).unwrap(),
            "cannot be read: it has 1048577 bytes, and the limit is 1048576 (fix or remove it)",
        ),
        (
            |path| fs::write(path, b"# \xc3\xa9\n# \xc3\xa9\xe9\n").unwrap(),
            "2:4: not UTF-8: the byte 0xE9 (save the file as UTF-8)",
        ),
        (|path| fs::write(path, b"\xff\xfea\0").unwrap(), "1:1: not UTF-8: this is UTF-16 (save the file as UTF-8)"),
    ]
}

fn pipe(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

/// Formats `file: message` or `file:line:column: message`.
fn line(file: &str, said: &str) -> String {
    let space = if said.starts_with(|c: char| c.is_ascii_digit()) { "" } else { " " };
    format!("{file}:{space}{said}")
}

#[test]
fn lanes_that_cannot_be_read_are_told_each_and_stop_no_other() {
    let fledge = Fledge::new().lane("good", GOOD);
    let mut lines = Vec::new();
    for (number, (put, said)) in obstacles().into_iter().enumerate() {
        let file = format!("lanes/l{number}.yaml");
        put(&fledge.workspace().join(&file));
        lines.push(line(&file, said));
    }
    let list = fledge.args(&["lanes", "list"]).run();
    list.must_exit(2);
    assert_eq!(list.stdout, "good\n  a: true\n");
    assert_eq!(list.stderr, format!("error: {}\n", lines.join("\n")));
    let validate = list.again(&["lanes", "validate"]).run();
    validate.must_exit(2);
    let errors: String = lines.iter().map(|line| format!("error: {line}\n")).collect();
    assert_eq!(validate.stderr, format!("{errors}invalid: 1 lane, {} errors and 0 warnings\n", lines.len()));
    let run = validate.again(&["lanes", "run", "l5"]).run();
    run.must_exit(2);
    assert_eq!(run.stderr, format!("error: {}\n", lines[5]));
    run.again(&["lanes", "run", "good"]).run().must_exit(0);
}

#[test]
fn a_file_of_several_lanes_that_cannot_be_read_stops_only_what_it_may_define() {
    long_test!();
    let both = || Fledge::new().lane("good", GOOD).file(".fledge/x", "");
    let goes_on = |fledge: Fledge, line: &str| {
        let list = fledge.args(&["lanes", "list"]).run();
        list.must_exit(2);
        assert_eq!((list.stdout.as_str(), list.stderr.as_str()), ("good\n  a: true\n", &*format!("error: {line}\n")));
        let run = list.again(&["lanes", "run", "good"]).run();
        run.must_exit(0);
        assert!(run.stderr.starts_with(&format!("note: {line}\n")), "{}", run.stderr);
    };
    for file in ["fledge.toml", "fledge.yaml", ".fledge/lanes/x.toml"] {
        for (put, said) in obstacles() {
            let fledge = both();
            let path = fledge.workspace().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            put(&path);
            goes_on(fledge, &line(file, said));
        }
    }
    for (put, said) in obstacles().into_iter().take(2) {
        let fledge = both();
        put(&fledge.workspace().join(".fledge/lanes"));
        goes_on(fledge, &line(".fledge/lanes", said));
    }
}

#[test]
fn what_a_folder_that_leads_nowhere_may_hold_is_not_taken_from_elsewhere() {
    for verb in ["run", "show"] {
        let fledge = Fledge::new().file("fledge.toml", "lanes.ci.steps = [{ run = 'true' }]");
        symlink("nowhere", fledge.workspace().join("lanes")).unwrap();
        let run = fledge.args(&["lanes", verb, "ci"]).run();
        run.must_exit(2);
        assert_eq!(run.stderr, "error: lanes: cannot be read: the link is broken (fix or remove it)\n");
    }
}

#[test]
fn a_file_that_may_not_be_read_is_told_so() {
    let fledge = Fledge::new().lane("good", GOOD).lane("closed", GOOD);
    fs::set_permissions(fledge.workspace().join("lanes/closed.yaml"), fs::Permissions::from_mode(0o0)).unwrap();
    // Root reads the file unless it dropped that capability.
    let rootless = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"];
    let is_root = rustix::process::geteuid().is_root();
    let can_drop =
        || Command::new(rootless[0]).args([rootless[1], "true"]).status().is_ok_and(|status| status.success());
    if is_root && !can_drop() {
        return;
    }
    let fledge = if is_root { fledge.under(&rootless) } else { fledge };
    let list = fledge.args(&["lanes", "list"]).run();
    list.must_exit(2);
    let said = "error: lanes/closed.yaml: cannot be read: Permission denied (os error 13) (fix or remove it)\n";
    assert_eq!((list.stdout.as_str(), list.stderr.as_str()), ("good\n  a: true\n", said));
}

#[test]
fn files_with_a_byte_order_mark_or_other_line_ends_are_read() {
    for text in [
        format!("\u{feff}{GOOD}"),
        "steps:\r\n  - { name: a, run: 'true' }\r\n".into(),
        "---\nsteps: [{ name: a, run: 'true' }]\n...".into(),
    ] {
        let list = Fledge::new().lane("good", &text).args(&["lanes", "list"]).run();
        list.must_exit(0);
        assert_eq!(list.stdout, "good\n  a: true\n", "{text:?}");
    }
}

#[test]
fn a_gate_that_cannot_be_read_ends_a_run_before_it_begins() {
    let fledge = Fledge::new().task("Nothing.").lane("other", &needs("done"));
    pipe(&fledge.workspace().join("lanes/verify.yaml"));
    let run = fledge.args(&["run", "task.md", "--dry-run"]).run();
    run.must_exit(2);
    assert_eq!(
        run.stderr,
        "error: lanes/verify.yaml: cannot be read: it is a pipe, not a regular file (fix or remove it)\n"
    );
}

#[test]
fn the_largest_file_that_is_read_is_refused_in_no_time_when_it_holds_too_much() {
    let steps = "- run: a\n".repeat(100_000);
    let list =
        Fledge::new().lane("good", GOOD).lane("large", &format!("steps:\n{steps}")).args(&["lanes", "list"]).run();
    list.must_exit(2);
    let said = "error: lanes/large.yaml:33335:3: more than 100000 values, aliases expanded (split the file)\n  \
        33335 | - run: a\n        |   ^^^\n";
    assert_eq!((list.stdout.as_str(), list.stderr.as_str()), ("good\n  a: true\n", said));
    assert!(list.took < SOON, "{:?}", list.took);
}

#[test]
fn of_very_many_steps_that_lack_a_program_a_few_are_named() {
    let steps: String = (0..100).map(|number| format!("  - {{ name: s{number}, run: no-such-program }}\n")).collect();
    let run = Fledge::new().lane("verify", &format!("steps:\n{steps}")).args(&["lanes", "validate"]).run();
    run.must_exit(0);
    assert!(
        run.stderr.contains("s19 and 80 more of lane `verify` cannot run here: there is no program `no-such-program`"),
        "{}",
        run.stderr
    );
    assert!(run.stderr.ends_with("valid: 1 lane, 0 errors and 1 warning\n"), "{}", run.stderr);
}
