//! Comparison of the events that each process printed with the events that follow from the journal.

use crate::crash::judge::Heard;
use fledge::elapsed::Elapsed;
use fledge::run::{Action, Event, Run};
use fledge::store::JournalRecord;
use serde_json::Value;

/// A machine that replayed a journal.
#[derive(Debug, Default)]
pub(crate) struct Fed {
    /// The events that the machine sent to watchers, a line each.
    told: Vec<String>,
    /// Calls of tools with side effects and without an answer, each with its name.
    pub(crate) open: Vec<(u64, String)>,
}

impl Fed {
    /// Feeds these records to a machine.
    pub(crate) fn with(records: &[JournalRecord]) -> Self {
        let (mut machine, mut fed, mut before) = (Run::new(), Self::default(), None);
        let mut unproven = None;
        for record in records {
            if record.kind == "Resumed" {
                if let Some((earlier, told)) = before.take() {
                    machine = earlier; // its report was not written, so the run writes it again
                    fed.told.truncate(told);
                }
                if serde_json::from_str::<Value>(&record.data).unwrap()["gate_again"] == true {
                    machine = unproven.take().unwrap(); // events of both verdicts may appear
                }
                continue;
            }
            if ["Sent", "NotSent", "Shown"].contains(&record.kind.as_str()) {
                continue; // no event
            }
            before = (record.kind == "ReportFailed").then(|| (machine.clone(), fed.told.len()));
            let event: Event = serde_json::from_str(&record.data).unwrap();
            if matches!(&event, Event::GateFinished { verdict, .. } if verdict.passed()) {
                unproven = Some(machine.clone());
            }
            if let Some(call) = event.call() {
                fed.open.retain(|(open, _)| *open != call.0);
            }
            for action in machine.handle(Elapsed(record.at_ms), event) {
                match action {
                    Action::Emit { event } => fed.told.push(plain(&serde_json::to_value(event).unwrap())),
                    Action::RunTool { call, tool, .. } if tool != "files-read" && tool != "files-list" => {
                        fed.open.push((call.0, tool));
                    }
                    _ => {}
                }
            }
        }
        fed
    }

    /// Asserts that a process printed the events that follow from the journal, without a gap. If
    /// the process began the run, the events start at the beginning.
    #[track_caller]
    pub(crate) fn must_have_told(&self, heard: &Heard, is_first: bool) {
        let mut said: Vec<String> = heard.events().iter().filter(|event| !passes(event)).map(plain).collect();
        for about in ["started ", "resumed "] {
            if !is_first && said.first().is_some_and(|line| line.starts_with(about)) {
                said.remove(0); // the first line of a process that resumes the run
            }
        }
        let all = said.clone();
        if heard.code == Some(8) {
            // A process that could not continue ends with events that are not in the journal.
            while !self.has(&said, is_first) && said.pop().is_some_and(|line| is_ending(&line)) {}
        }
        assert!(
            self.has(&said, is_first),
            "told and not in the journal\n{}\n--- in the journal\n{}\n--- {}",
            all.join("\n"),
            self.told.join("\n"),
            heard.stderr
        );
    }

    fn has(&self, said: &[String], is_first: bool) -> bool {
        let mut places = self.told.windows(said.len().max(1));
        said.is_empty() || if is_first { self.told.starts_with(said) } else { places.any(|window| window == said) }
    }
}

/// Returns true if a process that cannot write its journal prints this line: its end, or that the
/// effect of an open call is unknown.
fn is_ending(line: &str) -> bool {
    let is_end = ["state_changed", "limit", "finished", "turn_discarded"].iter().any(|end| line.starts_with(end));
    let is_unknown = line.starts_with("tool_result ") && line.ends_with(r#""success":false}"#);
    is_end || is_unknown || (line.starts_with("tool_detail ") && line.contains("the run ended"))
}

fn plain(event: &Value) -> String {
    format!("{} {}", event["type"].as_str().unwrap(), event["data"])
}

/// Returns true if an event is transient and not in the journal.
fn passes(event: &Value) -> bool {
    ["text", "thinking", "tool_call", "tool_output", "lane_step"].iter().any(|kind| event["type"] == *kind)
}
