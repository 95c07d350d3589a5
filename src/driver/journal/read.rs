//! Reads journals for other modules: the run with its terms, its story, its conversation, and a
//! cassette with the answers of its models. Secrets are hidden there already.

use super::fold::FoldedJournal;
use super::lineage::whose;
use super::record::{self, EarlierRun, RESUMED, RestartedEffects, RunTerms, is_event};
use crate::chat::{Block, Message, Role, ToolResult};
use crate::driver::summary::judged_so;
use crate::driver::{JOURNAL_SCHEMA_VERSION, ResumeError};
use crate::elapsed::Elapsed;
use crate::id::RunId;
use crate::provider::{CassetteBounds, Recording};
use crate::report::story::{RunStory, Takeover};
use crate::run::{Event, Run, RunSpec, StateName};
use crate::store::{JournalEvents, JournalRecord, RunHead, RunRow, Store, StoredRunState};

/// Folds the records of a run.
pub(in crate::driver) fn folded(run: &RunId, records: JournalEvents<'_>) -> Result<FoldedJournal, ResumeError> {
    let mut folded = FoldedJournal::default();
    for record in records {
        fold_record(&mut folded, run, &record?)?;
    }
    Ok(folded)
}

pub(in crate::driver) fn fold_record(
    folded: &mut FoldedJournal,
    run: &RunId,
    record: &JournalRecord,
) -> Result<(), ResumeError> {
    let wrong = |source| ResumeError::Unclear { run: run.clone(), seq: record.seq, source };
    folded.push(record).map(drop).map_err(wrong)
}

/// Returns the row and the terms of a run.
///
/// # Errors
/// [`ResumeError`] if the run does not exist, was started by a newer fledge, or has unreadable
/// terms.
pub fn terms(store: &Store, run: &RunId) -> Result<(RunRow, RunTerms), ResumeError> {
    let row = store.run(run)?;
    readable(&row.head)?;
    let terms = serde_json::from_str(&store.task(run)?.settings);
    Ok((row, terms.map_err(|source| ResumeError::Unclear { run: run.clone(), seq: 0, source })?))
}

/// Returns the known cost of a run, in millionths of a US dollar. If the run has not ended, calls
/// in flight count with what is reserved for them.
///
/// # Errors
/// [`ResumeError`] if its journal cannot be read.
pub fn spent(store: &Store, row: &RunRow) -> Result<u64, ResumeError> {
    if let StoredRunState::Ended(outcome) = &row.state {
        return Ok(outcome.cost_micros.unwrap_or(0));
    }
    readable(&row.head)?;
    let run = &row.head.id;
    Ok(folded(run, store.events(run, 0)?)?.cost())
}

/// Checks that this program understands the records of a run.
pub(in crate::driver) fn readable(head: &RunHead) -> Result<(), ResumeError> {
    if head.journal_version > JOURNAL_SCHEMA_VERSION {
        return Err(ResumeError::Newer { run: head.id.clone(), found: head.journal_version });
    }
    Ok(())
}

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
            story.resumed(at, takeover(RestartedEffects::parse(&record.data)));
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

fn takeover(again: RestartedEffects) -> Takeover {
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

/// Returns the conversation of an ended run, with its row and its terms.
///
/// # Errors
/// [`ResumeError`] if the run does not exist, has not ended, or cannot be read.
pub fn earlier(store: &Store, run: &RunId) -> Result<(RunRow, RunTerms, EarlierRun), ResumeError> {
    let (row, terms) = terms(store, run)?;
    if !matches!(row.state, StoredRunState::Ended(_)) {
        return Err(ResumeError::NotOver { run: run.clone() });
    }
    let folded = folded(run, store.events(run, 0)?)?;
    Ok((row, terms, EarlierRun { run: run.clone(), messages: answered(&folded.run) }))
}

/// Returns the conversation with a result for each tool use. A run can end while its last calls are
/// under way.
fn answered(run: &Run) -> Vec<Message> {
    let mut messages = run.conversation().to_vec();
    let unanswered = |block: &Block| match block {
        Block::ToolUse(call) => Some(Block::ToolResult(ToolResult::text(
            &call.id,
            "the run ended before this call finished; whether the call had an effect is unknown",
            true,
        ))),
        Block::Text { .. } | Block::Thinking { .. } | Block::Image(_) | Block::ToolResult(_) | Block::Opaque { .. } => {
            None
        }
    };
    let last = messages.last().filter(|last| last.role == Role::Assistant);
    let results: Vec<Block> = last.into_iter().flat_map(|last| &last.content).filter_map(unanswered).collect();
    if !results.is_empty() {
        messages.push(Message { role: Role::User, content: results });
    }
    messages
}

/// Adds text for the model to the conversation: to the newest message if that is a user's, else as
/// a new message.
pub(in crate::driver) fn and_then(earlier: &EarlierRun, text: String) -> Vec<Message> {
    let mut messages = earlier.messages.clone();
    match messages.last_mut() {
        Some(last) if last.role == Role::User => last.content.push(Block::Text { text }),
        Some(_) | None => messages.push(Message::user(text)),
    }
    messages
}
