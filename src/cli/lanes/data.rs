//! JSON and files of `fledge lanes run`. The JSON is one object at the end, or events as lines
//! while the lane runs.
//!
//! The output has its own thread, so a stuck or absent reader delays no lane. A slow reader delays
//! the output of steps for at most a second until it catches up. After that, it loses lines.

use super::super::failure::CliError;
use super::super::output::{no_output, print_data, print_json};
use super::super::paint::{self, Tone};
use super::files::OutputPlace;
use crate::driver::EventWatcher;
use crate::duration::milliseconds;
use crate::process::{Backpressure, Stopwatch};
use crate::report::lane::StepCounts;
use crate::store::write_shared;
use crate::verdict::{StepProgress, StepReport};
use clap::ValueEnum;
use serde_json::{Value, json};
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// The forms of `--json`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum JsonForm {
    /// One object with the result, at the end
    Object,
    /// Events as JSON lines, while the lane runs
    Events,
}

/// Standard output and the files of one run of a lane.
#[derive(Debug)]
pub(super) struct LaneData {
    form: Option<JsonForm>,
    /// `None` if nothing is printed.
    printer: Option<EventWatcher<LaneMessage>>,
    begun: Stopwatch,
    /// The first error while writing.
    failed: Arc<Mutex<Option<CliError>>>,
}

/// Something to print. Steps and events have the milliseconds since the start.
#[derive(Debug)]
enum LaneMessage {
    Step(u64, StepProgress),
    Event(u64, Value),
    Object(String),
    Text(OutputPlace, String),
}

impl LaneData {
    /// Creates the output. `is_wanted` says whether there are files or texts to write beside the
    /// JSON.
    pub(super) fn new(form: Option<JsonForm>, is_wanted: bool) -> Self {
        let failed = Arc::<Mutex<Option<CliError>>>::default();
        let keep = failed.clone();
        let print = move |told, lost| {
            let print_all = |lines: Vec<String>| lines.iter().try_for_each(|line| print_json(line)).map_err(no_output);
            let written = match told {
                LaneMessage::Text(place, text) => write(&place, &text),
                LaneMessage::Object(object) => print_json(&object).map_err(no_output),
                LaneMessage::Event(at, event) => print_all(lines(at, event, lost)),
                LaneMessage::Step(at, progress) => print_all(lines(at, event_of(progress), lost)),
            };
            if let Err(failure) = written {
                keep.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(failure);
            }
        };
        let printer = (form.is_some() || is_wanted).then(|| EventWatcher::new(bytes, print));
        Self { form, printer, begun: Stopwatch::start(), failed }
    }

    /// Returns true if lines of output are printed.
    pub(super) fn tells_lines(&self) -> bool {
        self.form == Some(JsonForm::Events)
    }

    /// Returns the pace, which is shut while the reader is behind. `None` if no lines are printed.
    pub(super) fn pace(&self) -> Option<Backpressure> {
        self.printer.as_ref().filter(|_| self.tells_lines()).map(EventWatcher::pace)
    }

    /// Prints that the lane starts with the given steps.
    pub(super) fn started(&self, lane: &str, steps: &[&str]) {
        self.event(|| json!({ "event": "lane_started", "lane": lane, "steps": steps }));
    }

    /// Prints the progress of a step.
    pub(super) fn step(&self, progress: &StepProgress) {
        if let (Some(JsonForm::Events), Some(printer)) = (self.form, &self.printer) {
            let is_piece = progress.printed().is_some();
            printer.send(LaneMessage::Step(self.now(), progress.clone()), is_piece);
        }
    }

    /// Prints the end of the lane. `object` builds the complete result, if it is wanted.
    pub(super) fn ended(&self, steps: &[StepReport], object: impl FnOnce() -> Value) {
        if self.form == Some(JsonForm::Object) {
            if let Some(printer) = &self.printer {
                printer.send(LaneMessage::Object(object().to_string()), false);
            }
            return;
        }
        self.event(|| {
            let object = object();
            let mut event = json!({ "event": "lane_ended", "counts": StepCounts::count(steps) });
            for key in ["lane", "result", "success", "exit_code", "duration_ms"] {
                event[key] = object[key].clone();
            }
            if let Some(error) = object.get("error") {
                event["error"] = error.clone();
            }
            event
        });
    }

    /// Writes a text unchanged.
    pub(super) fn text(&self, place: OutputPlace, text: String) {
        if let Some(printer) = &self.printer {
            printer.send(LaneMessage::Text(place, text), false);
        }
    }

    /// Waits until everything is written.
    pub(super) async fn wait_until_written(&self) {
        if let Some(printer) = &self.printer {
            printer.wait_until_idle().await;
        }
    }

    /// Takes the first error while writing, if any.
    pub(super) fn failure(&self) -> Option<CliError> {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn event(&self, event: impl FnOnce() -> Value) {
        if let (Some(JsonForm::Events), Some(printer)) = (self.form, &self.printer) {
            printer.send(LaneMessage::Event(self.now(), event()), false);
        }
    }

    fn now(&self) -> u64 {
        milliseconds(self.begun.read())
    }
}

/// Estimates the memory of a waiting item, in bytes. Only the text of output lines counts, because
/// other items are few.
fn bytes(told: &LaneMessage) -> usize {
    let text = match told {
        LaneMessage::Step(
            _,
            StepProgress::Output { lane, step, line } | StepProgress::Partial { lane, step, line },
        ) => lane.len() + step.len() + line.len(),
        LaneMessage::Step(..) | LaneMessage::Event(..) | LaneMessage::Object(_) | LaneMessage::Text(..) => 0,
    };
    size_of::<LaneMessage>() + text
}

fn write(place: &OutputPlace, text: &str) -> Result<(), CliError> {
    match place {
        OutputPlace::Stdout => return print_data(text.trim_end()).map_err(no_output),
        OutputPlace::Stderr => paint::log(text),
        OutputPlace::File(path) => return write_shared(path, text.as_bytes()).map_err(CliError::own),
        OutputPlace::EndOf(path) => {
            if let Err(error) = append(path, text) {
                let note = format!("cannot write the job summary to {}: {error}", path.display());
                paint::line(&[(Tone::Warn, "note: "), (Tone::Plain, &note)]);
            }
        }
    }
    Ok(())
}

fn append(path: &Path, text: &str) -> io::Result<()> {
    OpenOptions::new().append(true).create(true).open(path)?.write_all(text.as_bytes())
}

/// Formats an event. If lines were dropped before it, an event with their number precedes it.
fn lines(at: u64, event: Value, lost: u64) -> Vec<String> {
    let dropped = (lost > 0).then(|| json!({ "event": "output_dropped", "lines": lost }));
    let in_envelope = |mut event: Value| {
        event["schema_version"] = 1.into();
        event["at_ms"] = at.into();
        event.to_string()
    };
    dropped.into_iter().chain([event]).map(in_envelope).collect()
}

fn event_of(progress: StepProgress) -> Value {
    match progress {
        StepProgress::Started { lane, step, command } => {
            json!({ "event": "step_started", "lane": lane, "step": step, "command": command })
        }
        StepProgress::Output { lane, step, line } => {
            json!({ "event": "output", "lane": lane, "step": step, "line": line })
        }
        StepProgress::Partial { lane, step, line } => {
            json!({ "event": "partial", "lane": lane, "step": step, "line": line })
        }
        StepProgress::Retried(report) => json!({ "event": "step_retried", "report": report }),
        StepProgress::Ended(report) => json!({ "event": "step_ended", "report": report }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_left_out_for_a_slow_reader_is_said_before_what_comes_next() {
        let line = StepProgress::Output { lane: "verify".into(), step: "a".into(), line: "x".into() };
        let said: Vec<Value> =
            lines(5, event_of(line), 7).iter().map(|line| serde_json::from_str(line).unwrap()).collect();
        let dropped = json!({ "schema_version": 1, "event": "output_dropped", "at_ms": 5, "lines": 7 });
        let output =
            json!({ "schema_version": 1, "event": "output", "at_ms": 5, "lane": "verify", "step": "a", "line": "x" });
        assert_eq!(said, [dropped, output]);
    }
}
