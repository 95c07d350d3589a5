//! The journal of a run as JSON lines that can be read back and verified.

use crate::driver::ResumeError;
use crate::report::runs::{RUNS_SCHEMA_VERSION, row as row_as_json};
use crate::store::{JournalRecord, RunRow, Store, StoreError};
use serde_json::Value;
use std::io;
use std::path::Path;

/// Passes the journal of a run to `put` line by line: first the head of the run, then each record
/// with its hash in the chain.
///
/// # Errors
/// If the journal cannot be read, or the first error of `put`, which ends the export.
pub fn export<E: From<ResumeError>>(
    store: &Store,
    row: &RunRow,
    mut put: impl FnMut(&str) -> Result<(), E>,
) -> Result<(), E> {
    let fault = |error: StoreError| E::from(ResumeError::from(error));
    let mut events = store.events(&row.head.id, 0).map_err(fault)?;
    let task = store.task(&row.head.id).map_err(fault)?;
    // Format by hand, to keep head and task as they were digested: a map would sort their keys.
    let text = |value: Result<String, serde_json::Error>| {
        value.map_err(|error| fault(StoreError::new("serialize", Path::new("the head"), io::Error::from(error))))
    };
    let (head, task) = (text(serde_json::to_string(&row.head))?, text(serde_json::to_string(&task))?);
    let end = &row_as_json(row, row.head.id.as_str())["outcome"];
    let (version, hash) = (RUNS_SCHEMA_VERSION, events.hash());
    put(&format!(r#"{{"schema_version":{version},"head":{head},"task":{task},"outcome":{end},"hash":"{hash}"}}"#))?;
    while let Some(record) = events.next() {
        let JournalRecord { seq, at_ms, kind, data } = record.map_err(fault)?;
        let (kind, hash) = (Value::from(kind), events.hash());
        put(&format!(r#"{{"seq":{seq},"at_ms":{at_ms},"kind":{kind},"data":{data},"hash":"{hash}"}}"#))?;
    }
    Ok(())
}
