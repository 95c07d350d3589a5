//! The files that `fledge lanes run` writes, and obstacles at their paths.

use crate::support::{Fledge, unique};
use rustix::process::Signal;

fn lane(yaml: &str, args: &[&str]) -> Fledge {
    Fledge::new().lane("verify", yaml).args(&[&["lanes", "run", "verify"], args].concat())
}

#[test]
fn a_summary_that_is_the_jobs_own_is_added_once_and_one_file_is_not_written_twice() {
    let fledge =
        lane("steps: [{ name: a, run: 'true' }]", &["--summary", "summary.md"]).file("summary.md", "# Before\n");
    let run = fledge.env("GITHUB_ACTIONS", "true").env("GITHUB_STEP_SUMMARY", "./summary.md").run();
    run.must_exit(0);
    let summary = run.file("summary.md").unwrap();
    assert_eq!((summary.starts_with("# Before\n"), summary.matches("## ").count()), (true, 1), "{summary}");
    let run = lane("steps: [{ name: a, run: touch ran }]", &["--junit=out", "--summary=./out"]).run();
    run.must_exit(2);
    assert!(run.stderr.contains("--junit and --summary name the same file, ./out"), "{}", run.stderr);
    assert_eq!(run.file("ran"), None);
}

#[test]
fn standard_output_by_another_name_is_standard_output() {
    for name in ["/dev/stdout", "/proc/self/fd/1"] {
        let run = lane("steps: [{ name: a, run: 'true' }]", &["--summary", name]).run();
        run.must_exit(0);
        assert!(run.stdout.starts_with("## "), "{}", run.stdout);
        lane("steps: [{ name: a, run: 'true' }]", &["--json", "--summary", name]).run().must_exit(2);
    }
}

#[test]
fn what_is_no_plain_file_is_written_to_as_it_is() {
    for place in ["/dev/null", "/dev/stderr", "pipe"] {
        let fledge = lane("steps: [{ name: a, run: 'true' }]", &["--junit", place]);
        let pipe = fledge.workspace().join("pipe");
        std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
        let reader = (place == "pipe").then(|| std::thread::spawn(|| std::fs::read_to_string(pipe).unwrap()));
        let run = fledge.run();
        run.must_exit(0);
        assert!(run.stderr.starts_with("  ✓ verify/a "), "{}", run.stderr);
        let (_, after) = run.stderr.split_once(": 1 passed\n").unwrap();
        assert_eq!(after.contains("<testsuites name=\"verify\""), place == "/dev/stderr", "{after}");
        assert!(reader.is_none_or(|reader| reader.join().unwrap().contains("<testsuites name=\"verify\"")));
    }
}

#[test]
fn a_pipe_that_nobody_reads_is_waited_for_until_the_process_is_asked_to_stop() {
    let fledge = lane("steps: [{ name: a, run: 'true' }]", &["--junit=pipe"]);
    std::process::Command::new("mkfifo").arg(fledge.workspace().join("pipe")).status().unwrap();
    let mut run = fledge.start();
    run.wait_for("lane verify passed");
    run.signal(Signal::INT);
    run.end().must_exit(130);
}

#[test]
fn a_file_that_may_not_grow_is_an_error_and_kills_nothing() {
    for (args, says) in [
        (&["lanes", "init"][..], "lanes/verify.yaml"),
        (
            &["lanes", "run", "verify", "--junit=out.xml"],
            "cannot write out.xml\n  because: File too large (os error 27)\n",
        ),
    ] {
        let fledge = Fledge::new().file("Makefile", "test:\n\ttrue\n").args(args);
        let run = fledge.under(&["sh", "-c", "ulimit -f 0; exec \"$@\"", "sh"]).run();
        run.must_exit(8);
        assert!(run.stderr.contains(says), "{}", run.stderr);
    }
}

#[test]
fn a_lane_that_was_cancelled_leaves_its_files_too() {
    let number = unique();
    let yaml = format!("steps: [{{ name: slow, run: echo begun; sleep {number} }}]");
    let mut run = lane(&yaml, &["--junit=junit.xml", "--summary=-", "--silence=50ms"]).start();
    run.wait_for("still running");
    run.signal(Signal::TERM);
    let ended = run.end();
    ended.must_exit(143);
    assert!(ended.file("junit.xml").unwrap().contains("<skipped message=\"cancelled\""));
    assert!(ended.stdout.starts_with("## ✗ lane `verify` cancelled\n"), "{}", ended.stdout);
}

#[test]
fn a_file_without_a_place_is_known_before_anything_runs() {
    let cases: [(&[&str], &str); 5] = [
        (&["--junit", "gone/junit.xml"], "--junit gone/junit.xml: its folder does not exist"),
        (&["--summary", "lanes"], "--summary lanes: the path is a folder"),
        (&["--summary", "/proc/summary.md"], "--summary /proc/summary.md: its folder is not writable"),
        (&["--junit", "-", "--json"], "--junit -: standard output is in use for other data"),
        (&["--junit", "-", "--summary", "-"], "--summary -: standard output is in use for other data"),
    ];
    for (args, says) in cases {
        let run = lane("steps: [{ name: a, run: touch ran }]", args).run();
        if args.contains(&"/proc/summary.md") && run.code == Some(8) {
            continue; // root passes the permission check and fails only when writing
        }
        run.must_exit(2);
        assert!(run.stderr.contains(says), "{}", run.stderr);
        let is_object = run.stdout.starts_with('{');
        assert_eq!((run.file("ran"), is_object), (None, args.contains(&"--json")), "{}", run.stdout);
        assert!(is_object || run.stdout.is_empty(), "{}", run.stdout);
    }
}
