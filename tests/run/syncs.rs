//! Tests of the disk cost of a run: fledge syncs the journal before each model call and each tool
//! call, and no more often.

use crate::support::{Fledge, Model, Need, say, write};
use std::fs;

#[test]
fn a_tool_call_costs_at_most_two_syncs_of_the_journal() {
    long_test!();
    let tried = std::process::Command::new("strace").args(["-f", "-qq", "-o", "/dev/null", "true"]).output();
    if !tried.is_ok_and(|tried| tried.status.success()) {
        return Need::Strace.lacks("no strace, or it may not trace");
    }
    let folder = crate::support::temp_dir();
    let syncs = |calls: usize| {
        let trace = folder.path().join(format!("{calls}"));
        let answers = (0..calls).map(|at| write(&format!("file{at}"), "1\n"));
        let model = Model::new(answers.chain([write("done", "1\n"), say("Done.")]));
        let starter = ["strace", "-f", "-y", "-e", "trace=fsync,fdatasync", "-o", trace.to_str().unwrap()];
        Fledge::simple(&model).under(&starter).run().must_be(0, "verified");
        fs::read_to_string(trace).unwrap().lines().filter(|line| line.contains("fledge.db-wal>")).count()
    };
    let (few, many) = (syncs(2), syncs(12));
    assert!(many - few <= 20, "{few} with 2 calls, {many} with 12");
}
