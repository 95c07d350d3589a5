//! Who takes what other machines tell: held against the chain, kept whole or not at all.

use super::wire::{Parcel, Receipt, WIRE_VERSION};
use crate::store::{Store, StoreError, Untaken};

/// The longest name of a machine.
const LONGEST_NAME: usize = 64;

/// A parcel is not taken.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    /// It can never be taken as it is.
    #[error("{0}")]
    Wrong(String),
    /// What comes before it is not here.
    #[error("{why}: send from record {send_from}")]
    Gap {
        /// What is here.
        why: String,
        /// The first record that is not here; 1 where nothing is, so that the run's head is to be sent first.
        send_from: u64,
    },
    /// It contradicts what is here.
    #[error("{0}")]
    Conflict(String),
    /// It cannot be kept.
    #[error(transparent)]
    Store(StoreError),
}

/// Takes a parcel; what it says is safe here when this returns.
///
/// # Errors
/// When it is wrong, contradicts what is here, or cannot be kept: then nothing of it is.
pub fn take(store: &Store, parcel: Parcel, now_ms: i64) -> Result<Receipt, Refused> {
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
                    "{why}; it was begun by fledge {theirs}, and this is {}: the newer one may know more of a run",
                    env!("CARGO_PKG_VERSION")
                ))
            }
            Untaken::Torn { .. } => Refused::Wrong(why),
            Untaken::Store(error) => Refused::Store(error),
        }
    })
}

/// What can be seen of a parcel alone. A run's name becomes one of a folder.
fn sound(parcel: &Parcel) -> Result<(), String> {
    let Parcel { schema_version, machine, run, records, after, .. } = parcel;
    if *schema_version != WIRE_VERSION {
        return Err(format!("the parcel has version {schema_version}, and this server knows version {WIRE_VERSION}"));
    }
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    if machine.is_empty() || machine.len() > LONGEST_NAME || !machine.chars().all(is_plain) {
        return Err(format!("the machine's name must be 1 to {LONGEST_NAME} letters, digits, `.`, `_` or `-`"));
    }
    if uuid::Uuid::try_parse(run.as_str()).ok().map(|id| id.hyphenated().to_string()).as_deref() != Some(run.as_str()) {
        return Err("the run's id must be a UUID in its usual form, in small letters".into());
    }
    if let Some(bad) =
        records.iter().find(|record| serde_json::from_str::<serde::de::IgnoredAny>(&record.data).is_err())
    {
        return Err(format!("the data of record {} is no JSON", bad.seq));
    }
    if after.saturating_add(records.len() as u64) > u64::from(u32::MAX) {
        return Err("a journal cannot be so long".into());
    }
    Ok(())
}
