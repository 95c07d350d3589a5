//! The receiving side of sync: checks each parcel against the chain, and stores it whole or not at
//! all.

use super::wire::{SyncBatch, SyncReceipt, WIRE_VERSION};
use crate::store::{Store, StoreError, Untaken};

/// The longest name of a machine, in bytes.
const LONGEST_NAME: usize = 64;

/// A parcel was refused.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    /// The parcel is invalid and can never be taken.
    #[error("{0}")]
    Wrong(String),
    /// Earlier records are missing here.
    #[error("{why}: send from record {send_from}")]
    Gap {
        /// A message that says which records are here.
        why: String,
        /// The first missing record; 1 if nothing is here, so that the run's head must be sent
        /// first.
        send_from: u64,
    },
    /// The parcel contradicts what is stored here.
    #[error("{0}")]
    Conflict(String),
    /// The parcel cannot be stored.
    #[error(transparent)]
    Store(StoreError),
}

/// Stores a parcel. Its content is safe here when this returns.
///
/// # Errors
/// When the parcel is invalid, contradicts what is stored, or cannot be stored. Then nothing of it
/// is stored.
pub fn take(store: &Store, parcel: SyncBatch, now_ms: i64) -> Result<SyncReceipt, Refused> {
    sound(&parcel).map_err(Refused::Wrong)?;
    let receipt = parcel.receipt();
    let newer = parcel.begin.as_ref().map(|begin| begin.head.fledge.clone());
    store.receive(&parcel.delivery(), now_ms).map(|()| receipt).map_err(|untaken| {
        let why = untaken.to_string();
        match untaken {
            Untaken::Gap { have, .. } => Refused::Gap { why, send_from: have.saturating_add(1) },
            Untaken::Forked { .. } | Untaken::Own { .. } => Refused::Conflict(why),
            Untaken::Torn { seq: 0, .. } => {
                let theirs = newer.unwrap_or_default();
                Refused::Wrong(format!(
                    "{why}; fledge {theirs} started the run, but this is fledge {}: the newer version may record more",
                    env!("CARGO_PKG_VERSION")
                ))
            }
            Untaken::Torn { .. } => Refused::Wrong(why),
            Untaken::Store(error) => Refused::Store(error),
        }
    })
}

/// Checks a parcel by itself. The run's id is checked strictly, since it becomes the name of a
/// folder.
fn sound(parcel: &SyncBatch) -> Result<(), String> {
    let SyncBatch { schema_version, machine, run, records, after, .. } = parcel;
    if *schema_version != WIRE_VERSION {
        return Err(format!("unsupported parcel version {schema_version}: this server expects version {WIRE_VERSION}"));
    }
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    if machine.is_empty() || machine.len() > LONGEST_NAME || !machine.chars().all(is_plain) {
        return Err(format!("the machine's name must be 1 to {LONGEST_NAME} letters, digits, `.`, `_` or `-`"));
    }
    if uuid::Uuid::try_parse(run.as_str()).ok().map(|id| id.hyphenated().to_string()).as_deref() != Some(run.as_str()) {
        return Err("the run id must be a hyphenated UUID in lower case".into());
    }
    if let Some(bad) =
        records.iter().find(|record| serde_json::from_str::<serde::de::IgnoredAny>(&record.data).is_err())
    {
        return Err(format!("the data of record {} is not JSON", bad.seq));
    }
    if after.saturating_add(records.len() as u64) > u64::from(u32::MAX) {
        return Err("too many records for a journal".into());
    }
    Ok(())
}
