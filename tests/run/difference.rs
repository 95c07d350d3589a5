//! Tests of the closing summary: it lists the differences between the base and the work, however
//! they were made.

use crate::support::{Ended, Fledge, Model, say, shell};
use serde_json::{Value, json};

/// Returns the lines of the summary about files.
fn files(ended: &Ended) -> Vec<&str> {
    let lines = ended.stderr.lines().skip_while(|line| !line.starts_with("  files "));
    let lines = lines.enumerate().take_while(|(place, line)| *place == 0 || line.starts_with("           "));
    lines.map(|(_, line)| line.trim_start().trim_start_matches("files ").trim()).collect()
}

fn counts(report: &Value) -> [&Value; 3] {
    ["files", "added", "removed"].map(|key| &report["difference"][key])
}

#[test]
fn changes_of_programs_are_in_the_summary_and_what_was_put_back_is_not() {
    long_test!();
    let script = "touch done; echo more >>tests/a_test.sh; printf 'one\\ntwo\\n' >new.txt; sed -i s/4/3/ sum.txt; chmod +x run.sh; \
        mv old.txt moved.txt; rm gone.txt; printf '\\0\\1' >logo.bin; ln -s new.txt link";
    for isolation in ["in-place", "worktree"] {
        let model = Model::new([shell(script), say("Done."), say("As it was, then.")]);
        let fledge = Fledge::simple(&model).arg(&format!("--isolation={isolation}"));
        let files_before = [
            ("tests/a_test.sh", "true\n"),
            ("sum.txt", "4\n"),
            ("run.sh", "true\n"),
            ("old.txt", "1\n2\n3\n4\n"),
            ("gone.txt", "1\n"),
        ];
        let fledge = files_before.iter().fold(fledge, |fledge, (path, text)| fledge.file(path, text));
        let ended = fledge.committed().run();
        let report = ended.must_be(0, "verified");
        let expected = [
            "8 differ, +4 -2",
            "done +0 -0 (new)",
            "gone.txt +0 -1 (deleted)",
            "link +1 -0 (new, link)",
            "logo.bin (new, binary)",
            "old.txt → moved.txt",
            "new.txt +2 -0 (new)",
            "run.sh (executable)",
            "sum.txt +1 -1",
        ];
        assert_eq!(files(&ended), expected, "{}", ended.story());
        assert_eq!(counts(&report), [&json!(8), &json!(4), &json!(2)]);
        assert_eq!(report["files_changed"], json!([]));
    }
}

#[test]
fn what_is_left_is_in_the_summary_also_where_the_gate_fails_or_is_skipped() {
    long_test!();
    for (arg, code, reason) in [("--max-retries=0", 1, "gate_failed"), ("--no-verify", 0, "skipped")] {
        let model = Model::new([shell("echo 1 >other"), say("Done.")]);
        let ended = Fledge::simple(&model).arg(arg).run();
        let report = ended.must_be(code, reason);
        assert_eq!(files(&ended), ["other +1 -0 (new)"], "{}", ended.story());
        assert_eq!(counts(&report), [&json!(1), &json!(1), &json!(0)]);
    }
    let model = Model::new([say("Done.")]);
    let ended = Fledge::simple(&model).arg("--max-retries=0").run();
    ended.must_be(1, "gate_failed");
    assert_eq!(files(&ended), ["none differs from the base"], "{}", ended.story());
}

#[test]
fn what_a_lane_of_fix_has_written_is_in_the_summary() {
    let lane = "writes: true\nsteps: [{ name: fmt, run: echo 3 | tee s?m }]";
    let ended = Fledge::new().args(&["fix"]).lane("verify", lane).file("sum", "4\n").committed().run();
    ended.must_be(0, "verified");
    assert_eq!(files(&ended), ["sum +1 -1"], "{}", ended.story());
}
