//! Builds the story of a run from its journal.

use super::lineage::whose;
use super::record::{Again, RESUMED, is_event};
use super::resume::{ResumeFault, readable};
use crate::moment::Moment;
use crate::report::story::{Story, TakenUp};
use crate::store::{RunRow, Store};

/// Returns the story of a run as far as its journal can be read, and the error that ended the
/// reading.
pub fn story(store: &Store, row: &RunRow) -> (Story, Option<ResumeFault>) {
    let mut story = Story::default();
    let fault = tell(&mut story, store, row).err();
    (story, fault)
}

fn tell(story: &mut Story, store: &Store, row: &RunRow) -> Result<(), ResumeFault> {
    readable(&row.head)?;
    let run = &row.head.id;
    for record in store.events(run, 0)? {
        let record = record?;
        let at = Moment(record.at_ms);
        if record.kind == RESUMED {
            story.resumed(at, taken_up(Again::said(&record.data)));
        }
        if !is_event(&record.kind) {
            continue;
        }
        let unclear = |source| ResumeFault::Unclear { run: run.clone(), seq: record.seq, source };
        let event = serde_json::from_str(&record.data).map_err(unclear)?;
        match whose(&record.kind).0 {
            None => story.take(at, event),
            Some(path) => story.take_of(path, at, event),
        }
    }
    Ok(())
}

fn taken_up(again: Again) -> TakenUp {
    let Again { gate, delivery, request, stop, usd_micros } = again;
    TakenUp { gate_again: gate, delivery_again: delivery, request_again: request, stop_again: stop, usd_micros }
}
