//! The story of a run, and the cassette with the answers of its models, from its journal. Secrets
//! are hidden there already.

use super::fold::FoldedJournal;
use super::lineage::whose;
use super::record;
use super::record::{RESUMED, RestartedEffects, is_event};
use super::resume::{ResumeError, fold_record, readable};
use super::summary::judged_so;
use crate::elapsed::Elapsed;
use crate::id::RunId;
use crate::provider::{CassetteBounds, Recording};
use crate::report::story::{RunStory, Takeover};
use crate::run::{Event, RunSpec, StateName};
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
    let RestartedEffects { gate, delivery, request, stop, limit, limits } = again;
    Takeover {
        gate_again: gate,
        delivery_again: delivery,
        request_again: request,
        stop_again: stop,
        limit_again: limit,
        limits,
    }
}

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
        recording.set_agent(of);
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
    recording.within(bounds(folded.run.spec()));
    Ok(recording)
}

/// Returns the bounds of the run's first model, because a cassette replays as one model.
fn bounds(spec: &RunSpec) -> CassetteBounds {
    let terms = spec.terms.first().cloned().unwrap_or_default();
    let window = terms.context_window.or(spec.context_window);
    let compact_at = window.map(|_| terms.compact_at_percent.unwrap_or(spec.limits.compact_at_percent));
    CassetteBounds { window, max_output: terms.max_output_tokens, compact_at }
}
