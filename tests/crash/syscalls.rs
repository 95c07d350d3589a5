//! System calls that strace (1) makes fail or turn into a kill, at every write. If strace is
//! missing or may not trace processes, the tests report it and try nothing.

use crate::crash::judge::{Calm, Course};
use crate::crash::{each, scene};
use crate::support::{Need, draw, is_whole};
use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

/// Calls that write to the database and make it durable.
const DATABASE: &str = "pwrite64,fsync,fdatasync,ftruncate";
/// Other calls that write: files, their names, folders, and output.
const FILES: &str = "write,rename,renameat,renameat2,unlink,unlinkat,mkdir,mkdirat";
/// Calls that may fail permanently: all except output, and except the calls by which threads wake
/// each other.
const KEPT: &str = "pwrite64,fsync,fdatasync,ftruncate,rename,renameat,renameat2,mkdir,mkdirat";

#[test]
fn a_run_that_dies_at_any_write_ends_as_if_it_had_not() {
    long_table!();
    let Some(calm) = calm() else { return };
    for calls in [DATABASE, FILES] {
        let cases: Vec<String> =
            chosen(count(calls), 1).map(|number| format!("{calls}:signal=KILL:when={number}")).collect();
        each(&cases, |case| {
            let course = first(&["-e", &format!("inject={case}")]);
            // The number of output calls varies between runs, so a run may not reach the last ones.
            assert!(matches!(course.code(), None | Some(0)), "it ended with {:?}", course.code());
            course.must_end_like(&calm, false);
        });
    }
}

#[test]
fn a_run_whose_disk_fails_at_any_write_claims_no_false_success_and_resumes() {
    long_table!();
    let Some(calm) = calm() else { return };
    let faults = ["ENOSPC", "EIO", "EROFS", "EDQUOT"];
    let fault = |number: u64| faults[usize::try_from(number).unwrap() % faults.len()];
    let mut cases: Vec<String> =
        chosen(count(KEPT), 2).map(|number| format!("{KEPT}:error={}:when={number}+", fault(number))).collect();
    // If a write stores nothing, the database reports a full disk.
    let short = chosen(count("pwrite64"), 1).filter(|number| !is_whole() || number % 3 == 0);
    cases.extend(short.map(|number| format!("pwrite64:retval=0:when={number}+")));
    each(&cases, |case| {
        // The run may end well: the last writes only tidy up the database, and may fail.
        let course = first(&["-e", &format!("inject={case}")]);
        assert!(course.code().is_some(), "a signal ended it");
        course.must_end_like(&calm, true);
    });
}

#[test]
fn after_a_failed_sync_no_byte_of_the_database_is_written_again() {
    long_table!();
    let Some(calm) = calm() else { return };
    let cases: Vec<String> = chosen(count("fsync"), 1).map(|number| number.to_string()).collect();
    each(&cases, |number| {
        let folder = crate::support::temp_dir();
        let trace = folder.path().join("trace");
        let fault = format!("inject=fsync:error=EIO:when={number}");
        let calls = format!("trace={DATABASE}");
        let course = first(&["-y", "-o", trace.to_str().unwrap(), "-e", &calls, "-e", &fault]);
        let trace = fs::read_to_string(trace).unwrap();
        assert!(course.code() == Some(8) || trace.contains("fledge.db-wal"), "the database has no log");
        // A failure outside the database may leave the run alive. A failure while the database is
        // created is rolled back.
        let is_it = |line: &&str| line.contains("(INJECTED)") && line.contains("fledge.db");
        let made = trace.lines().skip_while(|line| !line.contains("fledge.db-wal"));
        let after = made.skip_while(|line| !is_it(line)).skip(1);
        let written: Vec<&str> = after.filter(|line| line.contains("fledge.db")).collect();
        assert!(written.is_empty(), "written after a failed sync:\n{}", written.join("\n"));
        course.must_end_like(&calm, true);
    });
}

/// Returns the reference run; `None` if strace cannot be used.
fn calm() -> Option<Calm> {
    let tried = Command::new("strace").args(["-f", "-qq", "-o", "/dev/null", "true"]).output();
    if tried.is_ok_and(|tried| tried.status.success()) {
        return Some(Calm::new());
    }
    Need::Strace.lacks("strace is not installed, or may not trace");
    None
}

/// Runs the first process of a run, traced with these extra options.
fn first(options: &[&str]) -> Course {
    let model = scene::model();
    let starter = [&["strace", "-f", "--seccomp-bpf", "-qq", "-o", "/dev/null"], options].concat();
    let ended = scene::beginning(&model).under(&starter).run();
    Course::new(model, ended)
}

/// Returns the number of these calls in the busiest thread, since strace counts each thread
/// separately.
fn count(calls: &str) -> u64 {
    let folder = crate::support::temp_dir();
    let trace = folder.path().join("trace");
    let course = first(&["-o", trace.to_str().unwrap(), "-e", &format!("trace={calls}")]);
    assert_eq!(course.code(), Some(0));
    let mut counts = BTreeMap::<String, u64>::new();
    for line in fs::read_to_string(trace).unwrap().lines().filter(|line| line.contains('(')) {
        *counts.entry(line.split(' ').next().unwrap_or_default().to_owned()).or_default() += 1;
    }
    counts.into_values().max().unwrap()
}

/// Returns the numbers of the calls to fail. An ordinary run gets a sample.
fn chosen(count: u64, sample: usize) -> impl Iterator<Item = u64> {
    draw("writes", sample, (1..=count).collect()).into_iter()
}
