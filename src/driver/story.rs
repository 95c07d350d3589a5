//! Builds the story of a run from its journal.

use super::lineage::whose;
use super::record::{RESUMED, RestartedEffects, is_event};
use super::resume::{ResumeError, readable};
use crate::elapsed::Elapsed;
use crate::report::story::{RunStory, Takeover};
use crate::store::{RunRow, Store};

/// Returns the story of a run as far as its journal can be read, and the error that ended the
/// reading.
pub fn story(store: &Store, row: &RunRow) -> (RunStory, Option<ResumeError>) {
    let mut story = RunStory::default();
    let fault = read_story(&mut story, store, row).err();
    (story, fault)
}

fn read_story(story: &mut RunStory, store: &Store, row: &RunRow) -> Result<(), ResumeError> {
    readable(&row.head)?;
    let run = &row.head.id;
    for record in store.events(run, 0)? {
        let record = record?;
        let at = Elapsed(record.at_ms);
        if record.kind == RESUMED {
            story.resumed(at, taken_up(RestartedEffects::parse(&record.data)));
        }
        if !is_event(&record.kind) {
            continue;
        }
        let unclear = |source| ResumeError::Unclear { run: run.clone(), seq: record.seq, source };
        let event = serde_json::from_str(&record.data).map_err(unclear)?;
        match whose(&record.kind).0 {
            None => story.push(at, event),
            Some(path) => story.take_of(path, at, event),
        }
    }
    Ok(())
}

fn taken_up(again: RestartedEffects) -> Takeover {
    let RestartedEffects { gate, delivery, request, stop, usd_micros } = again;
    Takeover { gate_again: gate, delivery_again: delivery, request_again: request, stop_again: stop, usd_micros }
}
