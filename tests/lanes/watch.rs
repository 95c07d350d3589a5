//! `fledge lanes run --watch`: changes that start another run, changes that do not, and the end of
//! the watch. To show that a change starts no run, the tests make a later change that does, and
//! count the runs.

use crate::support::{Ended, Fledge, Running, must_be_gone, running_with, unique};
use rustix::process::Signal;
use std::fs::{self, File, FileTimes, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::SystemTime;

const WAITS: &str = "waiting for changes (Ctrl-C to end)";
/// Counts the runs of the lane in an ignored file.
const COUNTS: &str = "steps: [{ name: count, run: echo run >> count }]";

/// A watched lane that is running.
struct Watched {
    root: PathBuf,
    run: Running,
}

impl Watched {
    fn start(fledge: Fledge) -> Self {
        Self { root: fledge.workspace(), run: fledge.start() }
    }

    /// Starts the counting lane and returns once it waits for changes.
    #[track_caller]
    fn counting() -> Self {
        Self::start(counting()).waits()
    }

    #[track_caller]
    fn waits(mut self) -> Self {
        self.run.wait_for(WAITS);
        self
    }

    /// Writes a file and creates its folder.
    fn put(&self, path: &str, content: &str) {
        let path = self.root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    /// Waits until fledge names these changes and the next run ends.
    #[track_caller]
    fn runs_for(mut self, what: &str) -> Self {
        self.run.wait_for(&format!("── {what} changed ──"));
        self.waits()
    }

    /// Stops the watch while it waits. Returns its output and the number of counted runs.
    #[track_caller]
    fn end(self) -> (Ended, usize) {
        self.run.signal(Signal::INT);
        let ended = self.run.end();
        ended.must_exit(130);
        let runs = ended.file("count").unwrap_or_default().lines().count();
        (ended, runs)
    }

    #[track_caller]
    fn must_have_run(self, times: usize) {
        let (ended, runs) = self.end();
        assert_eq!(runs, times, "{}", ended.story());
    }
}

fn watching(lane: &str) -> Fledge {
    let args = ["lanes", "run", "verify", "--watch"];
    Fledge::new().lane("verify", lane).file(".gitignore", "count\nout/\n").file("src/a", "1").args(&args)
}

fn counting() -> Fledge {
    watching(COUNTS)
}

#[test]
fn a_change_starts_another_run() {
    let watched = Watched::counting();
    watched.put("src/a", "22");
    watched.runs_for("src/a").must_have_run(2);
}

#[test]
fn what_is_ignored_or_only_read_starts_none() {
    let watched = Watched::counting();
    watched.put("out/x", "1");
    watched.put(".git/index", "1");
    fs::read(watched.root.join("src/a")).unwrap();
    watched.put("src/b", "1");
    watched.runs_for("src/b").must_have_run(2);
}

#[test]
fn the_files_that_it_leaves_itself_start_none() {
    let fledge = watching(COUNTS).arg("--junit=src/junit.xml").arg("--summary=./summary.md");
    let watched = Watched::start(fledge).waits();
    watched.put("src/b", "1");
    let watched = watched.runs_for("src/b");
    assert!(watched.root.join("src/junit.xml").exists() && watched.root.join("summary.md").exists());
    watched.put("src/b", "22");
    watched.runs_for("src/b").must_have_run(3);
}

#[test]
fn many_changes_at_once_start_one_run() {
    let watched = Watched::counting();
    for number in 10..60 {
        watched.put(&format!("src/{number}"), "1");
    }
    watched.runs_for("src/10 and 49 more").must_have_run(2);
}

#[test]
fn new_folders_renames_modes_and_touches_count() {
    long_test!();
    let watched = Watched::counting();
    watched.put("new/deep/file", "1");
    let watched = watched.runs_for("new/deep/file");
    watched.put("new/deep/file", "22");
    let watched = watched.runs_for("new/deep/file");
    watched.put("src/.a.swp", "22");
    fs::rename(watched.root.join("src/.a.swp"), watched.root.join("src/a")).unwrap();
    let watched = watched.runs_for("src/a");
    fs::set_permissions(watched.root.join("src/a"), Permissions::from_mode(0o755)).unwrap();
    let watched = watched.runs_for("src/a");
    let times = FileTimes::new().set_modified(SystemTime::UNIX_EPOCH);
    File::options().write(true).open(watched.root.join("src/a")).unwrap().set_times(times).unwrap();
    let watched = watched.runs_for("src/a");
    fs::remove_file(watched.root.join("src/a")).unwrap();
    watched.runs_for("src/a").must_have_run(7);
}

#[test]
fn changes_during_a_run_start_one_more_at_its_end() {
    let lane = "steps: [{ name: slow, run: 'cp src/a out/seen; echo > out/begun; \
                until test -e out/go; do sleep 0.01; done; echo run >> count; ! grep bad out/seen' }]";
    let mut watched = Watched::start(watching(lane).file("out/x", ""));
    watched.run.until(|| watched.root.join("out/begun").exists());
    for content in ["good", "better", "bad"] {
        watched.put("src/a", content);
    }
    watched.put("src/b", "1");
    watched.put("out/go", "");
    watched.run.wait_for("lane verify passed");
    watched.run.wait_for("── src/a and 1 more changed ──");
    watched.run.wait_for("lane verify failed");
    watched.waits().must_have_run(2);
}

#[test]
fn a_lane_that_formats_its_sources_runs_once_more_and_is_quiet() {
    let lane = "steps: [{ name: format, run: 'echo run >> count; grep -q formatted src/a || echo formatted > src/a' }]";
    let mut watched = Watched::start(watching(lane)).runs_for("src/a");
    watched.put("src/a", "ugly");
    watched.run.wait_for("── src/a changed ──");
    watched.runs_for("src/a").must_have_run(4);
}

#[test]
fn a_lane_that_writes_something_else_each_time_is_found_out() {
    let lane = "steps: [{ name: report, run: 'echo run >> count; wc -l < count > report' }]";
    let mut watched = Watched::start(watching(lane));
    watched.run.wait_for("report changed in every run");
    let mut watched = watched.waits();
    watched.put("src/a", "22");
    watched.run.wait_for("── src/a changed ──");
    watched.run.wait_for("report changed in every run");
    watched.waits().must_have_run(5);
}

#[test]
fn a_lane_that_writes_files_with_new_names_comes_to_a_rest() {
    let lane = "steps: [{ name: dump, run: 'echo run >> count; echo > dump-$(wc -l < count)' }]";
    let mut watched = Watched::start(watching(lane));
    watched.run.wait_for("dump-4 changed in every run");
    watched.waits().must_have_run(4);
}

#[test]
fn its_state_may_be_in_the_project() {
    let watched = Watched::start(counting().env("FLEDGE_STATE_DIR", "src/../st")).waits();
    watched.put("src/a", "22");
    watched.runs_for("src/a").must_have_run(2);
}

#[test]
fn a_lane_that_is_broken_meanwhile_is_shown_and_waited_for() {
    let watched = Watched::counting();
    watched.put("lanes/verify.yaml", "steps: [");
    let mut watched = watched;
    watched.run.wait_for("error: ");
    let watched = watched.waits();
    watched.put("lanes/verify.yaml", &format!("{COUNTS} # mended"));
    watched.runs_for("lanes/verify.yaml").must_have_run(2);
}

#[test]
fn a_lane_that_is_wrong_from_the_start_is_refused() {
    watching("steps: [").run().must_exit(2);
    watching(COUNTS).args(&["lanes", "run", "other", "--watch"]).run().must_exit(2);
}

#[test]
fn a_failed_lane_is_run_again_and_each_run_prints_its_object() {
    let fledge = watching("steps: [{ name: there, run: test -f done }]").arg("--json");
    let watched = Watched::start(fledge).waits();
    watched.put("done", "");
    let (ended, _) = watched.runs_for("done").end();
    let results: Vec<_> = ended.events().into_iter().map(|event| event["result"].clone()).collect();
    assert_eq!(results, ["failed", "passed"]);
}

#[test]
fn a_signal_ends_it_while_it_waits_and_while_it_runs() {
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let waiting = Watched::start(counting().silent_stdin()).waits();
        waiting.run.signal(signal);
        waiting.run.end().must_exit(code);
        let number = unique();
        let running =
            Watched::start(watching(&format!("steps: [{{ name: slow, run: sleep {number} }}]")).arg("--json"));
        running.run.until(|| !running_with(&number).is_empty());
        running.run.signal(signal);
        let ended = running.run.end();
        ended.must_exit(code);
        assert_eq!(ended.events()[0]["exit_code"], code);
        must_be_gone(&number);
    }
}

#[test]
fn a_project_that_is_removed_is_an_error_that_says_so() {
    let watched = Watched::counting();
    fs::remove_dir_all(&watched.root).unwrap();
    let ended = watched.run.end();
    ended.must_exit(2);
    assert!(ended.stderr.contains("is gone or cannot be read"), "{}", ended.story());
}
