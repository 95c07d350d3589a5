//! Checks on a run after crashes, once it has ended: its results must equal those of a run without
//! a crash.

use crate::crash::scene;
use crate::crash::telling::Fed;
use crate::support::{Ended, Model, Running, becomes, until};
use fledge::store::{RunRow, StoredRunState};
use rustix::process::Signal;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A run without a crash.
#[derive(Debug)]
pub(crate) struct Calm {
    tree: Vec<(String, String)>,
    report: Value,
    /// The last request to the model, which holds the whole conversation.
    asked: Value,
}

/// The output of a process of the program, and its end.
#[derive(Debug)]
pub(crate) struct Heard {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// A run over several processes.
#[derive(Debug)]
pub(crate) struct Course {
    model: Model,
    heard: Vec<Heard>,
    /// Calls that were under way when a process ended.
    in_flight: BTreeSet<u64>,
    ended: Ended,
}

impl Calm {
    pub(crate) fn new() -> Self {
        let model = scene::model();
        let ended = scene::beginning(&model).run();
        ended.must_exit(0);
        let asked = plain(model.asked().pop().unwrap().body);
        let report = plain(serde_json::from_str(&ended.file("../copy.json").unwrap()).unwrap());
        Self { tree: tree(&ended), report, asked }
    }
}

impl Heard {
    fn of(ended: &Ended) -> Self {
        Self { code: ended.code, stdout: ended.stdout.clone(), stderr: ended.stderr.clone() }
    }

    /// Returns the printed events. An incomplete last line, cut by a kill, does not count.
    pub(crate) fn events(&self) -> Vec<Value> {
        let whole = self.stdout.rfind('\n').map_or("", |end| &self.stdout[..end]);
        whole.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

impl Course {
    /// Returns the run after its first process.
    pub(crate) fn new(model: Model, ended: Ended) -> Self {
        let course = Self { model, heard: Vec::new(), in_flight: BTreeSet::new(), ended };
        course.noted()
    }

    /// Returns true if the run has ended.
    pub(crate) fn is_over(&self) -> bool {
        matches!(self.ended.rows().as_slice(), [row] if matches!(row.state, StoredRunState::Ended(_)))
    }

    /// Returns the exit code of the newest process.
    pub(crate) fn code(&self) -> Option<i32> {
        self.ended.code
    }

    /// Runs the next process, with extra variables.
    #[track_caller]
    pub(crate) fn again(self, env: &[(&str, &str)]) -> Self {
        let Self { model, heard, in_flight, ended } = self;
        let fledge = env.iter().fold(scene::again(ended, &model), |fledge, (name, value)| fledge.env(name, value));
        let ended = fledge.run();
        Self { model, heard, in_flight, ended }.noted()
    }

    /// Runs the next process and kills it after this time.
    #[track_caller]
    pub(crate) fn again_until(self, time: Duration) -> Self {
        let Self { model, heard, in_flight, ended } = self;
        let ended = killed_after(scene::again(ended, &model).start(), time);
        Self { model, heard, in_flight, ended }.noted()
    }

    fn noted(mut self) -> Self {
        self.heard.push(Heard::of(&self.ended));
        assert!(!self.ended.stderr.contains("panicked at"), "{}", self.ended.story());
        must_be_alone(&self.ended);
        let mut rows = Vec::new();
        // A child that the killed process had just started holds its lock until the child's program
        // begins.
        until("a run that no process works on", || {
            rows = self.ended.rows();
            !matches!(rows.as_slice(), [RunRow { state: StoredRunState::Running { .. }, .. }])
        });
        if let [row] = rows.as_slice() {
            let records = self.ended.journal();
            self.in_flight.extend(Fed::with(&records).open.iter().map(|(call, _)| *call));
            must_agree(&self.ended, row);
        }
        self
    }

    /// Resumes the run until it ends well, then judges the end. With `differs`, the model learned
    /// of a failure, so the conversation differs.
    #[track_caller]
    pub(crate) fn must_end_like(mut self, calm: &Calm, differs: bool) {
        for _ in 0..3 {
            if self.ended.code != Some(0) {
                self = self.again(&[]);
            }
        }
        self.judge(calm, differs);
        let (asked, report, told) = (self.model.count(), self.ended.file("../copy.json"), tree(&self.ended));
        self = self.again(&[]);
        self.ended.must_exit(0);
        let once_more = (self.model.count(), self.ended.file("../copy.json"), tree(&self.ended));
        assert_eq!(once_more, (asked, report, told), "a verified run was done again\n{}", self.ended.story());
    }

    #[track_caller]
    fn judge(&self, calm: &Calm, differs: bool) {
        self.ended.must_exit(0);
        let report: Value = serde_json::from_str(&self.ended.file("../copy.json").unwrap()).unwrap();
        assert_eq!((&report["reason"], &report["exit_code"]), (&"verified".into(), &0.into()));
        let runs = self.ended.rows().len();
        let mut now = tree(&self.ended);
        if runs > 1 {
            // If a run had ended, another one follows it, with its own command.
            let log = now.iter_mut().find(|(path, _)| path == "log.txt").unwrap();
            assert!(log.1.lines().count() <= runs, "{log:?}");
            log.1 = "ran\n".into();
        }
        assert_eq!(now, calm.tree, "{}", self.ended.story());
        let half = files(&self.ended.path("../state"))
            .into_iter()
            .find(|path| path.extension().is_some_and(|end| end == "tmp"));
        assert_eq!(half, None, "left half written");
        let asked = self.model.asked().pop().unwrap().body;
        must_be_answered(&asked);
        if runs > 1 {
            return;
        }
        let fed = Fed::with(&self.ended.journal());
        for (place, heard) in self.heard.iter().enumerate() {
            fed.must_have_told(heard, place == 0);
        }
        let unknown = asked.to_string().matches("may have done all, some or none of its work").count();
        assert_eq!(unknown, self.in_flight.len(), "calls with an unknown outcome\n{asked:#}\n{}", self.ended.story());
        let cut = self.ended.journal().iter().filter(|record| record.kind == "Interrupted").count() as u64;
        if unknown == 0 && !differs {
            let requests = |report: &Value| report["usage"]["requests"].as_u64().unwrap();
            let paid = requests(&report);
            assert_eq!(paid, requests(&calm.report) + cut, "each answer is paid for, and each that was cut off");
            let (mut report, mut calm_report) = (plain(report), calm.report.clone());
            if cut > 0 {
                for report in [&mut report, &mut calm_report] {
                    report.as_object_mut().unwrap().remove("usage");
                }
            }
            must_equal(&report, &calm_report);
            must_equal(&plain(asked), &calm.asked);
        }
    }
}

/// Kills a process after this time, unless it has ended.
#[track_caller]
pub(crate) fn killed_after(running: Running, time: Duration) -> Ended {
    std::thread::sleep(time);
    running.signal(Signal::KILL);
    running.end()
}

/// Asserts that no process works in the workspace, apart from processes that are about to exit.
#[track_caller]
fn must_be_alone(ended: &Ended) {
    let workspace = ended.path("").canonicalize().unwrap();
    let is_there =
        |entry: &fs::DirEntry| fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd.starts_with(&workspace));
    let is_alone = || !fs::read_dir("/proc").unwrap().flatten().any(|entry| is_there(&entry));
    assert!(becomes(is_alone), "a process is still at work\n{}", ended.story());
}

/// Asserts that exit code, report and row agree, also on a verified end.
#[track_caller]
fn must_agree(ended: &Ended, row: &RunRow) {
    let report = fs::read_to_string(ended.store().folder(&row.head.id).report()).ok();
    let report: Option<Value> = report.map(|text| serde_json::from_str(&text).unwrap());
    let verified = |report: &Value| report["verified"] == true;
    match (ended.code, &row.state) {
        (Some(code), StoredRunState::Ended(outcome)) => {
            let said = report.map(|report| (report["exit_code"].clone(), report["verified"].clone()));
            let ours =
                (code == 8 || code == i32::from(outcome.exit_code), outcome.verified == (outcome.exit_code == 0));
            assert_eq!(ours, (true, true), "{outcome:?}\n{}", ended.story());
            assert_eq!(said, Some((code.into(), (code == 0).into())), "{outcome:?}\n{}", ended.story());
        }
        (Some(code), StoredRunState::Interrupted) => {
            assert_ne!(code, 0, "{}", ended.story());
            assert!(!report.is_some_and(|report| verified(&report)), "a false report\n{}", ended.story());
        }
        (None, StoredRunState::Ended(_) | StoredRunState::Interrupted) => {}
        (_, StoredRunState::Running { .. }) => panic!("still driven\n{}", ended.story()),
    }
}

/// Asserts that two values are equal, and shows the first line that differs.
#[track_caller]
fn must_equal(ours: &Value, calm: &Value) {
    let (ours, calm) = (format!("{ours:#}"), format!("{calm:#}"));
    let differ = ours.lines().zip(calm.lines()).position(|(ours, calm)| ours != calm);
    let around =
        |text: &str| text.lines().skip(differ.unwrap_or(0).saturating_sub(8)).take(16).collect::<Vec<_>>().join("\n");
    assert!(ours == calm, "it is\n{}\nand was, when nothing happened,\n{}", around(&ours), around(&calm));
}

/// Asserts that every tool use has exactly one result, in order.
#[track_caller]
fn must_be_answered(body: &Value) {
    let blocks = body["messages"].as_array().unwrap().iter().filter_map(|message| message["content"].as_array());
    let of = |kind: &str, key: &str| -> Vec<String> {
        let blocks = blocks.clone().flatten().filter(|block| block["type"] == kind);
        blocks.map(|block| block[key].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(of("tool_use", "id"), of("tool_result", "tool_use_id"));
}

/// Returns the files of the workspace and their contents. For files beside the workspace, returns
/// only the paths.
fn tree(ended: &Ended) -> Vec<(String, String)> {
    let root = ended.path("");
    let beside = fs::read_dir(root.join("..")).unwrap().flatten();
    let beside = beside.map(|entry| (format!("../{}", entry.file_name().display()), String::new()));
    let name = |path: &Path| path.strip_prefix(&root).unwrap().display().to_string();
    let within = files(&root).into_iter().map(|path| (name(&path), fs::read_to_string(&path).unwrap()));
    let mut all: Vec<(String, String)> = beside.chain(within).collect();
    all.sort();
    all
}

/// Returns every file below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().flatten().map(|entry| entry.path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

/// Removes the durations of steps, which vary.
fn without_times(text: &str) -> String {
    let (mut parts, mut plain) = (text.split("after "), String::new());
    plain.push_str(parts.next().unwrap_or_default());
    for part in parts {
        plain.push_str("after ");
        plain.push_str(part.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.'));
    }
    plain
}

/// Removes names, times and paths, which vary, from a report or a request.
fn plain(mut value: Value) -> Value {
    match &mut value {
        Value::Object(fields) => {
            for own in ["run", "folder", "workspace", "duration_ms", "log", "logs"] {
                fields.remove(own);
            }
            fields.values_mut().for_each(|field| *field = plain(field.take()));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| *item = plain(item.take())),
        Value::String(text) => *text = without_times(text),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
    value
}
