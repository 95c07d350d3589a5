//! A run as a cassette: what its models have said, as its journal has it. Secrets are hidden there already.

use super::fold::Folded;
use super::lineage::whose;
use super::record::{self, is_event};
use super::resume::{ResumeFault, readable, take};
use super::summary::judged_so;
use crate::id::RunId;
use crate::provider::{Bounds, Recording};
use crate::run::{Charter, Event, StateName};
use crate::store::Store;

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
        let wrong = |source| ResumeFault::Unclear { run: run.clone(), seq: record.seq, source };
        if !is_event(&record.kind) || of.is_none() && !was_at_work {
            continue; // what came too late is not asked for again
        }
        recording.hear(of);
        let (event, _) = record::from_json(&record.data).map_err(wrong)?;
        if let Event::ModelCompleted { reply, .. } = &event {
            recording.reply(reply);
        } else if let Event::ModelFailed { error, .. } = &event
            && (of.is_some() || folded.run.model() == model)
        {
            recording.fault(error);
        } else if let Event::CompactionFinished { result, usage, model, error, .. } = event {
            match error.map_or_else(|| judged_so(result, usage, model), Err) {
                Ok(reply) => recording.reply(&reply),
                Err(error) => recording.fault(&error),
            }
            recording.was_summary();
        }
    }
    recording.within(bounds(folded.run.charter()));
    Ok(recording)
}

/// What bounded the first of its models: a cassette is one model.
fn bounds(charter: &Charter) -> Bounds {
    let terms = charter.terms.first().cloned().unwrap_or_default();
    let window = terms.context_window.or(charter.context_window);
    let compact_at = window.map(|_| terms.compact_at_percent.unwrap_or(charter.limits.compact_at_percent));
    Bounds { window, max_output: terms.max_output_tokens, compact_at }
}
