//! The journal of a run: it is written, folded into a run, replayed, and read for other modules.

mod events;
#[cfg(feature = "cli")]
mod export;
mod fold;
mod lineage;
mod pieces;
mod read;
mod record;
mod replay;
mod writer;

pub use events::{RunEvents, events_after};
#[cfg(feature = "cli")]
pub use export::export;
pub use fold::ReplayDifference;
pub use lineage::whose;
pub use read::{cassette, earlier, spent, story, terms};
pub use record::{EarlierRun, RESUMED, RestartedEffects, RunTerms, forget_beside};
pub use replay::{ReplayResult, replay};

pub(super) use fold::{FoldedJournal, asks_model, resumed_event, whole_events};
pub(super) use lineage::AgentLineage;
pub(super) use pieces::ShownPieces;
pub(super) use read::{and_then, fold_record, folded, readable};
#[cfg(test)]
pub(super) use record::is_event;
pub(super) use record::{RequestedActions, ResumedRecord, begin_journal, outcome, to_json};
pub(super) use writer::{JournalWriter, WeakJournalWriter};
