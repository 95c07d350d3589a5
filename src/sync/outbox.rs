//! The unsent data of a project's runs. Each access opens the store again: sending may take long,
//! and it happens apart from the code that drives runs.

use super::SyncError;
use super::wire::{LARGEST_PARCEL, SyncBatch, SyncBegin, WIRE_VERSION, WireRecord};
use crate::id::RunId;
use crate::store::{Store, StoreError, StoredRunState, Unsent, WhichUnsent};
use std::path::PathBuf;

/// The runs of a project, as the sender reads them.
#[derive(Debug, Clone)]
pub struct SyncOutbox {
    /// The folder of fledge's state.
    pub state_dir: PathBuf,
    /// The project, as [`Store::open`] takes it.
    pub project: PathBuf,
    /// The name of this machine.
    pub machine: String,
}

impl SyncOutbox {
    /// Marks all new runs from now on for sending.
    ///
    /// # Errors
    /// When the store cannot be opened or written.
    pub fn begin(&self) -> Result<(), StoreError> {
        Store::open(&self.state_dir, &self.project)?.begin_sending()
    }

    /// Returns the runs with unsent data, oldest first.
    pub(super) async fn unsent(&self, which: WhichUnsent) -> Result<Vec<Unsent>, SyncError> {
        self.look(move |store, _| store.unsent(which)).await
    }

    /// Returns the runs that are driven here and known to a server.
    pub(super) async fn sent_and_driven(&self) -> Result<Vec<Unsent>, SyncError> {
        self.look(|store, _| store.sent_and_driven()).await
    }

    /// Returns the next parcel of a run after this record.
    pub(super) async fn parcel(&self, run: &RunId, after: u64) -> Result<SyncBatch, SyncError> {
        let run = run.clone();
        self.look(move |store, machine| packed(store, machine, &run, after)).await?
    }

    /// Notes that a server has all of a parcel.
    pub(super) async fn sent(&self, run: &RunId, upto: u64, with_end: bool) -> Result<(), SyncError> {
        let run = run.clone();
        self.look(move |store, _| store.mark_sent(&run, upto, with_end)).await
    }

    async fn look<T: Send + 'static>(
        &self,
        look: impl FnOnce(&Store, &str) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, SyncError> {
        let Self { state_dir, project, machine } = self.clone();
        let looking = move || look(&Store::open(&state_dir, &project)?, &machine);
        let looked = tokio::task::spawn_blocking(looking).await;
        Ok(looked.map_err(|_panicked| SyncError::Broken)??)
    }
}

/// Packs records until the parcel is full. The end of the run follows its last record in the same
/// parcel.
pub(super) fn packed(
    store: &Store,
    machine: &str,
    run: &RunId,
    after: u64,
) -> Result<Result<SyncBatch, SyncError>, StoreError> {
    let row = store.run(run)?;
    let mut events = store.events(run, after)?;
    let begin = match after {
        0 => Some(SyncBegin { head: row.head, task: store.task(run)? }),
        _ => None,
    };
    let (machine, link) = (machine.to_owned(), events.hash());
    let mut parcel = SyncBatch {
        schema_version: WIRE_VERSION,
        machine,
        run: run.clone(),
        begin,
        after,
        link,
        records: Vec::new(),
        end: None,
    };
    let mut bytes = length(&parcel);
    let mut is_full = false;
    while let Some(record) = events.next() {
        let record = record?;
        let link = events.hash();
        let record = WireRecord { seq: record.seq, at_ms: record.at_ms, kind: record.kind, data: record.data, link };
        bytes = bytes.saturating_add(length(&record)).saturating_add(1);
        if bytes > LARGEST_PARCEL {
            if parcel.records.is_empty() {
                return Ok(Err(SyncError::TooLarge { run: run.clone(), seq: record.seq, bytes }));
            }
            is_full = true;
            break;
        }
        parcel.records.push(record);
    }
    if let (StoredRunState::Ended(outcome), false) = (row.state, is_full) {
        parcel.end = Some(outcome.into());
    }
    Ok(Ok(parcel))
}

fn length(value: &impl serde::Serialize) -> usize {
    serde_json::to_vec(value).map_or(usize::MAX, |json| json.len())
}
