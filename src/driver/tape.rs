//! A run as a cassette: the answers of its models, from its journal. Secrets are hidden there
//! already.

use super::fold::FoldedJournal;
use super::lineage::whose;
use super::record::{self, is_event};
use super::resume::{ResumeError, fold_record, readable};
use super::summary::judged_so;
use crate::id::RunId;
use crate::provider::{CassetteBounds, Recording};
use crate::run::{Event, RunSpec, StateName};
use crate::store::Store;

/// Collects the answers of a run so far. Leaves out the failure that led to another model, because
/// a cassette replays as one model.
///
/// # Errors
/// [`ResumeError`] if the run does not exist, or its journal is damaged or cannot be understood.
pub fn cassette(store: &Store, run: &RunId) -> Result<Recording, ResumeError> {
    let row = store.run(run)?;
    readable(&row.head)?;
    let (mut folded, mut recording) = (FoldedJournal::default(), Recording::default());
    for record in store.events(run, 0)? {
        let record = record?;
        let (was_at_work, model) = (folded.run.state() == StateName::Executing, folded.run.model());
        fold_record(&mut folded, run, &record)?;
        let (of, _) = whose(&record.kind);
        let wrong = |source| ResumeError::Unclear { run: run.clone(), seq: record.seq, source };
        if !is_event(&record.kind) || of.is_none() && !was_at_work {
            continue; // a late answer is not requested again
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

/// Returns the bounds of the run's first model, because a cassette replays as one model.
fn bounds(charter: &RunSpec) -> CassetteBounds {
    let terms = charter.terms.first().cloned().unwrap_or_default();
    let window = terms.context_window.or(charter.context_window);
    let compact_at = window.map(|_| terms.compact_at_percent.unwrap_or(charter.limits.compact_at_percent));
    CassetteBounds { window, max_output: terms.max_output_tokens, compact_at }
}
