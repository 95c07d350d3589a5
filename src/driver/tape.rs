//! A run as a cassette: what its models have said, as its journal has it. Secrets are hidden there already.

use super::fold::Folded;
use super::lineage::whose;
use super::record::{self, RESUMED};
use super::resume::{ResumeFault, readable, take};
use crate::chat::{Block, ModelError, ModelFault, Reply, StopReason, Usage};
use crate::id::RunId;
use crate::provider::Recording;
use crate::run::{Event, StateName};
use crate::store::Store;

/// What the failure of a summary begins with.
const NO_SUMMARY: &str = "no summary: ";

/// Gathers what was said to a run, as far as it went. Where another model took over, the failure that led to it is left out: a cassette is
/// one model.
///
/// # Errors
/// When there is no such run, or its journal is damaged or cannot be understood.
pub fn cassette(store: &Store, run: &RunId) -> Result<Recording, ResumeFault> {
    let row = store.run(run)?;
    readable(&row.head)?;
    let (mut folded, mut recording) = (Folded::default(), Recording::default());
    for record in store.events(run, 0)? {
        let record = record?;
        let (was_at_work, model) = (folded.run.state() == StateName::Executing, folded.run.model());
        take(&mut folded, run, &record)?;
        let (of, _) = whose(&record.kind);
        if record.kind == RESUMED || of.is_none() && !was_at_work {
            continue; // what came too late is not asked for again
        }
        recording.hear(of);
        let wrong = |source| ResumeFault::Unclear { run: run.clone(), seq: record.seq, source };
        let (event, _) = record::from_json(&record.data).map_err(wrong)?;
        if let Event::ModelCompleted { reply, .. } = &event {
            recording.reply(reply);
        } else if let Event::ModelFailed { error, .. } = &event
            && (of.is_some() || folded.run.model() == model)
        {
            recording.fault(error);
        } else if let Event::CompactionFinished { result, usage, model, .. } = event {
            summary(result, usage, model, &mut recording);
        }
    }
    Ok(recording)
}

/// A summary, as the answer or the failure that it was.
fn summary(result: Result<String, String>, usage: Usage, model: String, recording: &mut Recording) {
    match result {
        Ok(text) => {
            let content = vec![Block::Text { text }];
            recording.reply(&Reply { content, stop: StopReason::EndTurn, usage: Some(usage), model });
        }
        Err(why) => {
            let why = why.strip_prefix(NO_SUMMARY).unwrap_or(&why);
            recording.fault(&ModelError::new(ModelFault::BadRequest, why));
        }
    }
}
