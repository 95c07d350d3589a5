//! A run's journal as JSON lines that can be read back and verified.

use super::resume::ResumeFault;
use crate::report::runs::{RUNS_SCHEMA_VERSION, row as row_as_json};
use crate::store::{Record, RunRow, Store, StoreError};
use serde_json::Value;
use std::io;
use std::path::Path;

/// Gives the journal of a run line by line: the head of the run first, then each record, with the link of the chain behind it.
///
/// # Errors
/// When it cannot be read; and the first one that `put` has, which ends it.
pub fn export<E: From<ResumeFault>>(
    store: &Store,
    row: &RunRow,
    mut put: impl FnMut(&str) -> Result<(), E>,
) -> Result<(), E> {
    let fault = |error: StoreError| E::from(ResumeFault::from(error));
    let mut events = store.events(&row.head.id, 0).map_err(fault)?;
    let task = store.task(&row.head.id).map_err(fault)?;
    // By hand, so that head and task stand there as they were digested: a map would sort them.
    let text = |value: Result<String, serde_json::Error>| {
        value.map_err(|error| fault(StoreError::new("write down", Path::new("the head"), io::Error::from(error))))
    };
    let (head, task) = (text(serde_json::to_string(&row.head))?, text(serde_json::to_string(&task))?);
    let end = &row_as_json(row, row.head.id.as_str())["outcome"];
    let (version, hash) = (RUNS_SCHEMA_VERSION, events.hash());
    put(&format!(r#"{{"schema_version":{version},"head":{head},"task":{task},"outcome":{end},"hash":"{hash}"}}"#))?;
    while let Some(record) = events.next() {
        let Record { seq, at_ms, kind, data } = record.map_err(fault)?;
        let (kind, hash) = (Value::from(kind), events.hash());
        put(&format!(r#"{{"seq":{seq},"at_ms":{at_ms},"kind":{kind},"data":{data},"hash":"{hash}"}}"#))?;
    }
    Ok(())
}
