//! A finished run of the program: its exit code, its output, and its files on disk.

use super::Fledge;
use super::schemas::{must_be_event, must_be_report};
use fledge::driver::replay;
use fledge::id::RunId;
use fledge::store::{JournalRecord, RunListFilter, RunRow, Store};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A finished run of the program.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(super) folder: TempDir,
    /// The exit code; `None` if a signal ended the run.
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) took: Duration,
    pub(crate) at: Instant,
}

impl Ended {
    /// Prepares the next run of the program in the same workspace, with only these arguments.
    pub(crate) fn again(self, args: &[&str]) -> Fledge {
        Fledge::in_folder(self.folder, args)
    }

    /// Returns the path of a file of the workspace.
    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join("workspace").join(path)
    }

    /// Insists on an exit code and on the reason in the report. Returns the report.
    #[track_caller]
    pub(crate) fn must_be(&self, code: i32, reason: &str) -> Value {
        assert_eq!(self.code, Some(code), "{}", self.story());
        let report = self.report();
        assert_eq!(report["reason"], reason, "{}", self.story());
        assert_eq!(report["exit_code"], code, "the report says another exit code than the process");
        report
    }

    /// Insists that no run began: exit code 2, one error on standard error, and nothing in the
    /// store.
    #[track_caller]
    pub(crate) fn must_be_refused(&self, says: &str) {
        self.must_exit(2);
        assert!(self.stderr.starts_with("error: ") && self.stderr.contains(says), "{says}\n{}", self.story());
        assert_eq!((self.stdout.as_str(), self.runs().len()), ("", 0), "{}", self.story());
    }

    /// Insists on an exit code.
    #[track_caller]
    pub(crate) fn must_exit(&self, code: i32) {
        assert_eq!(self.code, Some(code), "{}", self.story());
    }

    /// Returns the exit code and all output, for a failed assertion.
    pub(crate) fn story(&self) -> String {
        format!("--- stdout\n{}\n--- stderr\n{}", self.stdout, self.stderr)
    }

    /// Returns the report of the only run.
    #[track_caller]
    pub(crate) fn report(&self) -> Value {
        let text = fs::read_to_string(self.run_folder().join("report.json")).unwrap();
        let report = serde_json::from_str(&text).unwrap();
        must_be_report(&report);
        report
    }

    /// Returns the records in the journal of the only run.
    #[track_caller]
    pub(crate) fn journal(&self) -> Vec<JournalRecord> {
        let run = self.row().head.id;
        self.store().events(&run, 0).unwrap().map(Result::unwrap).collect()
    }

    /// Returns the kinds of event in that journal, in order, without the verdict on the base, whose
    /// position varies, and without the records that are no events.
    #[track_caller]
    pub(crate) fn kinds(&self) -> Vec<String> {
        let is_other = |kind: &String| !["BaseJudged", "Sent", "Shown"].iter().any(|end| kind.ends_with(end));
        self.journal().into_iter().map(|record| record.kind).filter(is_other).collect()
    }

    /// Returns whether the journal has the verdict on the base.
    #[track_caller]
    pub(crate) fn has_judged_base(&self) -> bool {
        self.journal().iter().any(|record| record.kind == "BaseJudged")
    }

    /// Returns the row of the only run.
    #[track_caller]
    pub(crate) fn row(&self) -> RunRow {
        let mut rows = self.rows();
        assert_eq!(rows.len(), 1, "{}", self.story());
        rows.remove(0)
    }

    /// Returns the rows of all runs, the newest first.
    pub(crate) fn rows(&self) -> Vec<RunRow> {
        self.store().runs(&RunListFilter::default()).unwrap()
    }

    /// Insists that a replay of every run in the state folder decides as the run did.
    #[track_caller]
    pub(super) fn must_replay(&self) {
        for run in self.runs() {
            let run = RunId::new(run.file_name().unwrap().to_str().unwrap());
            if let Ok(replayed) = replay(&self.store(), &run) {
                assert_eq!(replayed.difference, None, "a replay differs\n{}", self.story());
            }
        }
    }

    /// Returns the store of the workspace.
    pub(crate) fn store(&self) -> Store {
        let workspace = self.folder.path().join("workspace").canonicalize().unwrap();
        Store::open(&self.folder.path().join("state"), &workspace).unwrap()
    }

    /// Returns the lines of standard output, each parsed as JSON.
    #[track_caller]
    pub(crate) fn events(&self) -> Vec<Value> {
        let events = json_lines(&self.stdout);
        events.iter().for_each(must_be_event);
        events
    }

    /// Returns the data of all events of one type.
    #[track_caller]
    pub(crate) fn events_of(&self, kind: &str) -> Vec<Value> {
        self.events().into_iter().filter(|event| event["type"] == kind).map(|event| event["data"].clone()).collect()
    }

    /// Returns the folder of the only run.
    #[track_caller]
    pub(crate) fn run_folder(&self) -> PathBuf {
        let runs = self.runs();
        let [run] = runs.as_slice() else { panic!("there are {} runs:\n{}", runs.len(), self.story()) };
        run.clone()
    }

    /// Returns the folders of all runs.
    pub(crate) fn runs(&self) -> Vec<PathBuf> {
        let below = |folder: &Path| fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
        below(&self.folder.path().join("state"))
            .flat_map(|project| below(&project.join("runs")).collect::<Vec<_>>())
            .collect()
    }

    /// Returns the content of a file of the workspace, if it exists.
    pub(crate) fn file(&self, path: &str) -> Option<String> {
        fs::read_to_string(self.folder.path().join("workspace").join(path)).ok()
    }

    /// Returns all text that the run left in its state, its output and the workspace: names and
    /// contents.
    pub(crate) fn traces(&self) -> String {
        let mut all = self.story();
        let mut folders = vec![self.folder.path().to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                let path = entry.path();
                match entry.file_type().unwrap().is_dir() {
                    true => folders.push(path),
                    false => {
                        let content = fs::read(&path).unwrap_or_default();
                        all.push_str(&format!("\n--- {}\n{}", path.display(), String::from_utf8_lossy(&content)));
                    }
                }
            }
        }
        all
    }
}

#[track_caller]
fn json_lines(text: &str) -> Vec<Value> {
    let parse = |line: &str| serde_json::from_str(line).unwrap_or_else(|error| panic!("not JSON ({error}): {line}"));
    text.lines().map(parse).collect()
}
