//! The kernel kills the process, or says no, at every write: what strace (1) can inject. Where it is not there, or may not look into
//! processes, that is said and nothing is tried.

use crate::crash::judge::{Calm, Course};
use crate::crash::{each, scene};
use crate::support::{Need, draw, is_whole};
use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

/// What goes to the database and makes it safe.
const DATABASE: &str = "pwrite64,fsync,fdatasync,ftruncate";
/// What else is written: files, their names, folders, and what is printed.
const FILES: &str = "write,rename,renameat,renameat2,unlink,unlinkat,mkdir,mkdirat";
/// What may fail for good: everything but what is printed, and what threads wake each other by.
const KEPT: &str = "pwrite64,fsync,fdatasync,ftruncate,rename,renameat,renameat2,mkdir,mkdirat";

#[test]
fn a_run_that_dies_at_any_write_ends_as_if_it_had_not() {
    let Some(calm) = calm() else { return };
    for calls in [DATABASE, FILES] {
        let cases: Vec<String> =
            chosen(count(calls), 1).map(|number| format!("{calls}:signal=KILL:when={number}")).collect();
        each(&cases, |case| {
            let course = first(&["-e", &format!("inject={case}")]);
            // How often something is printed is not the same every time: the last places may not be reached.
            assert!(matches!(course.code(), None | Some(0)), "it ended with {:?}", course.code());
            course.must_end_like(&calm, false);
        });
    }
}

#[test]
fn a_run_whose_disk_fails_at_any_write_never_claims_too_much_and_ends_well_when_there_is_a_disk_again() {
    let Some(calm) = calm() else { return };
    let faults = ["ENOSPC", "EIO", "EROFS", "EDQUOT"];
    let fault = |number: u64| faults[usize::try_from(number).unwrap() % faults.len()];
    let mut cases: Vec<String> =
        chosen(count(KEPT), 2).map(|number| format!("{KEPT}:error={}:when={number}+", fault(number))).collect();
    // Of a write that takes nothing the database says that the disk is full.
    let short = chosen(count("pwrite64"), 1).filter(|number| !is_whole() || number % 3 == 0);
    cases.extend(short.map(|number| format!("pwrite64:retval=0:when={number}+")));
    each(&cases, |case| {
        // It may end well: the last writes only tidy up the database, and may fail.
        let course = first(&["-e", &format!("inject={case}")]);
        assert!(course.code().is_some(), "a signal ended it");
        course.must_end_like(&calm, true);
    });
}

#[test]
fn after_a_failed_sync_no_byte_of_the_database_is_written_again() {
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
        // Other files than the database may fail without that the run ends; and while it is made, it is taken back.
        let is_it = |line: &&str| line.contains("(INJECTED)") && line.contains("fledge.db");
        let made = trace.lines().skip_while(|line| !line.contains("fledge.db-wal"));
        let after = made.skip_while(|line| !is_it(line)).skip(1);
        let written: Vec<&str> = after.filter(|line| line.contains("fledge.db")).collect();
        assert!(written.is_empty(), "written after a failed sync:\n{}", written.join("\n"));
        course.must_end_like(&calm, true);
    });
}

/// What is to be come up to; `None` where strace is of no use.
fn calm() -> Option<Calm> {
    let tried = Command::new("strace").args(["-f", "-qq", "-o", "/dev/null", "true"]).output();
    if tried.is_ok_and(|tried| tried.status.success()) {
        return Some(Calm::new());
    }
    Need::Strace.lacks("strace is not installed, or may not trace");
    None
}

/// The first process of a run, traced with these options more.
fn first(options: &[&str]) -> Course {
    let model = scene::model();
    let starter = [&["strace", "-f", "--seccomp-bpf", "-qq", "-o", "/dev/null"], options].concat();
    let ended = scene::beginning(&model).under(&starter).run();
    Course::new(model, ended)
}

/// How many of these calls the busiest thread makes: each one counts for itself.
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

/// The numbers of the calls that are made to fail; in an ordinary run a sample of them.
fn chosen(count: u64, sample: usize) -> impl Iterator<Item = u64> {
    draw("writes", sample, (1..=count).collect()).into_iter()
}
