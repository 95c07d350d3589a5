//! What was told is in the journal: the events that each process printed, held against those that the journal leads to.

use crate::crash::judge::Heard;
use fledge::elapsed::Elapsed;
use fledge::run::{Action, Event, Run};
use fledge::store::JournalRecord;
use serde_json::Value;

/// A machine that was fed a journal.
#[derive(Debug, Default)]
pub(crate) struct Fed {
    /// What it had watchers told, a line each.
    told: Vec<String>,
    /// Calls of tools that change something and have no answer, each with its name.
    pub(crate) open: Vec<(u64, String)>,
}

impl Fed {
    /// Feeds it these records.
    pub(crate) fn with(records: &[JournalRecord]) -> Self {
        let (mut machine, mut fed, mut before) = (Run::new(), Self::default(), None);
        let mut unproven = None;
        for record in records {
            if record.kind == "Resumed" {
                if let Some((earlier, told)) = before.take() {
                    machine = earlier; // its report could not be written, and is to be written again
                    fed.told.truncate(told);
                }
                if serde_json::from_str::<Value>(&record.data).unwrap()["gate_again"] == true {
                    machine = unproven.take().unwrap(); // it may have told of the verdict, and tells of the next one too
                }
                continue;
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

    /// Insists that what a process printed is what the journal leads to, in one piece and from the beginning on where it began the run.
    #[track_caller]
    pub(crate) fn must_have_told(&self, heard: &Heard, is_first: bool) {
        let mut said: Vec<String> = heard.events().iter().filter(|event| !passes(event)).map(plain).collect();
        for about in ["started ", "resumed "] {
            if !is_first && said.first().is_some_and(|line| line.starts_with(about)) {
                said.remove(0); // what whoever takes it up says first
            }
        }
        let all = said.clone();
        if heard.code == Some(8) {
            // It could not go on, and said so at last.
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

/// Whether this is said by a process that cannot write its journal: that it ends, and of calls under way that it is not known what they did.
fn is_ending(line: &str) -> bool {
    let is_end = ["state_changed", "limit", "finished", "turn_discarded"].iter().any(|end| line.starts_with(end));
    let is_unknown = line.starts_with("tool_result ") && line.ends_with(r#""success":false}"#);
    is_end || is_unknown || (line.starts_with("tool_detail ") && line.contains("the run ended"))
}

fn plain(event: &Value) -> String {
    format!("{} {}", event["type"].as_str().unwrap(), event["data"])
}

/// Whether an event only passes through.
fn passes(event: &Value) -> bool {
    ["text", "thinking", "tool_call", "tool_output", "lane_step"].iter().any(|kind| event["type"] == *kind)
}
