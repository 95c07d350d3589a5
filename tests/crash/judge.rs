//! What must be true of a run that something happened to, once it has come to its end: all that is of a run which nothing happened to.

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

/// A run that nothing happens to.
#[derive(Debug)]
pub(crate) struct Calm {
    tree: Vec<(String, String)>,
    report: Value,
    /// The last request to the model: the whole conversation.
    asked: Value,
}

/// What a process of the program printed, and how it ended.
#[derive(Debug)]
pub(crate) struct Heard {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// A run under way from process to process.
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

    /// What it printed; a line that it was killed in does not count.
    pub(crate) fn events(&self) -> Vec<Value> {
        let whole = self.stdout.rfind('\n').map_or("", |end| &self.stdout[..end]);
        whole.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

impl Course {
    /// After its first process.
    pub(crate) fn new(model: Model, ended: Ended) -> Self {
        let course = Self { model, heard: Vec::new(), in_flight: BTreeSet::new(), ended };
        course.noted()
    }

    /// Whether its run has ended.
    pub(crate) fn is_over(&self) -> bool {
        matches!(self.ended.rows().as_slice(), [row] if matches!(row.state, StoredRunState::Ended(_)))
    }

    /// How its newest process ended.
    pub(crate) fn code(&self) -> Option<i32> {
        self.ended.code
    }

    /// The next process, with more variables.
    #[track_caller]
    pub(crate) fn again(self, env: &[(&str, &str)]) -> Self {
        let Self { model, heard, in_flight, ended } = self;
        let fledge = env.iter().fold(scene::again(ended, &model), |fledge, (name, value)| fledge.env(name, value));
        let ended = fledge.run();
        Self { model, heard, in_flight, ended }.noted()
    }

    /// The next process, killed after this time.
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
        // A program that the process was starting when it was killed has its lock until it begins.
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

    /// Takes it up until it has ended well; judges that end. `differs`: it was told of a failure, so that the conversation is another one.
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
            // A run that was over is followed by another one, which has its own command.
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

/// Kills it after this time, whatever it is at; it may have ended.
#[track_caller]
pub(crate) fn killed_after(running: Running, time: Duration) -> Ended {
    std::thread::sleep(time);
    running.signal(Signal::KILL);
    running.end()
}

/// Insists that no process is left at work in the workspace, or that it is on its way out.
#[track_caller]
fn must_be_alone(ended: &Ended) {
    let workspace = ended.path("").canonicalize().unwrap();
    let is_there =
        |entry: &fs::DirEntry| fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd.starts_with(&workspace));
    let is_alone = || !fs::read_dir("/proc").unwrap().flatten().any(|entry| is_there(&entry));
    assert!(becomes(is_alone), "a process is still at work\n{}", ended.story());
}

/// Insists that exit code, report and row say the same, and that what was verified is said so by all of them.
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

/// Insists that two values are the same, and shows the first line of them that is not.
#[track_caller]
fn must_equal(ours: &Value, calm: &Value) {
    let (ours, calm) = (format!("{ours:#}"), format!("{calm:#}"));
    let differ = ours.lines().zip(calm.lines()).position(|(ours, calm)| ours != calm);
    let around =
        |text: &str| text.lines().skip(differ.unwrap_or(0).saturating_sub(8)).take(16).collect::<Vec<_>>().join("\n");
    assert!(ours == calm, "it is\n{}\nand was, when nothing happened,\n{}", around(&ours), around(&calm));
}

/// Insists that every tool use has exactly one result, in order.
#[track_caller]
fn must_be_answered(body: &Value) {
    let blocks = body["messages"].as_array().unwrap().iter().filter_map(|message| message["content"].as_array());
    let of = |kind: &str, key: &str| -> Vec<String> {
        let blocks = blocks.clone().flatten().filter(|block| block["type"] == kind);
        blocks.map(|block| block[key].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(of("tool_use", "id"), of("tool_result", "tool_use_id"));
}

/// The files of the workspace and what is in them; of what is beside it only that it is there.
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

/// Every file below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().flatten().map(|entry| entry.path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

/// How long a step took is not the same every time.
fn without_times(text: &str) -> String {
    let (mut parts, mut plain) = (text.split("after "), String::new());
    plain.push_str(parts.next().unwrap_or_default());
    for part in parts {
        plain.push_str("after ");
        plain.push_str(part.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.'));
    }
    plain
}

/// A report or a request without what is different every time: names, times, places.
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
