//! The promises about each run, and a check whether the files found after a crash keep them.

use crate::disk::states::Found;
use crate::disk::story::{WORKSPACE, append, is_what_was_written, outcome, reopen};
use fledge::id::RunId;
use fledge::store::{JournalRecord, Retention, Store, StoreError, StoredRunState};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// The kind of crash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Loss {
    /// The process dies: the effects of every call that returned are present.
    Process,
    /// The power fails: synced data is present.
    Power,
}

/// The acknowledgements for each run so far.
#[derive(Debug, Clone, Default)]
pub(crate) struct Promises(BTreeMap<String, Promise>);

#[derive(Debug, Clone, Default)]
struct Promise {
    appended: u64,
    /// The number of safe records; `None` while not even the start of the run is safe.
    safe: Option<u64>,
    has_ended: bool,
    /// Another process reopened the run, which may have undone its end.
    may_go_on: bool,
    /// The run is being removed, or is removed.
    may_be_gone: bool,
}

impl Promises {
    /// Reads a line of a writer.
    pub(crate) fn hear(&mut self, line: &str) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let seq: u64 = words[2].parse().unwrap();
        if words[0] == "failed" {
            return;
        }
        if words[0] == "pruning" {
            let ended = self.0.values_mut().filter(|promise| promise.has_ended);
            return ended.for_each(|promise| promise.may_be_gone = true);
        }
        let promise = self.0.entry(words[1].to_owned()).or_default();
        promise.appended = promise.appended.max(seq);
        match words[0] {
            "begun" | "appended" => {}
            "safe" => promise.safe = Some(seq),
            "ended" => (promise.safe, promise.has_ended, promise.may_go_on) = (Some(seq), true, false),
            "reopening" => promise.may_go_on = true,
            other => panic!("{other}"),
        }
    }

    /// Returns an error unless the folder holds everything that was promised and the runs can
    /// continue.
    pub(crate) fn are_kept_in(&self, folder: &Path, loss: Loss) -> Result<(), String> {
        let fail = |what: &str, error: StoreError| format!("{what}: {error}: {:?}", std::error::Error::source(&error));
        let store = Store::open(&folder.join("state"), Path::new(WORKSPACE)).map_err(|error| fail("open", error))?;
        for (run, promise) in self.0.iter().filter(|(_, promise)| !promise.may_be_gone) {
            let least = if loss == Loss::Process { Some(promise.appended) } else { promise.safe };
            let id = RunId::new(run.as_str());
            let state = match (store.run(&id), least) {
                (Ok(row), _) => row.state,
                (Err(StoreError::Unknown { .. }), None) => continue,
                (Err(error), _) => return Err(fail(&format!("run {run}, of which {least:?} is promised"), error)),
            };
            if promise.has_ended && !promise.may_go_on && state != StoredRunState::Ended(outcome()) {
                return Err(format!("run {run} has ended, and is {state:?}"));
            }
            let read = || store.events(&id, 0)?.collect::<Result<Vec<JournalRecord>, _>>();
            let records =
                read().map_err(|error| fail(&format!("read {run}, of which {least:?} is promised"), error))?;
            if let Some(wrong) = records.iter().find(|record| !is_what_was_written(run, record)) {
                return Err(format!("record {} of {run} was never written", wrong.seq));
            }
            let count = records.len() as u64;
            if count < least.unwrap_or(0) {
                return Err(format!("run {run} has {count} records, and {least:?} were promised"));
            }
            let go_on = || {
                let (mut journal, again) = reopen(&store, run)?;
                append(&mut journal, run, count + 1, 300)?;
                journal.sync()?;
                drop(journal);
                Ok((again, read()?.len() as u64))
            };
            if go_on().map_err(|error| fail(&format!("resume {run}"), error))? != (count, count + 1) {
                return Err(format!("run {run} of {count} records does not go on"));
            }
        }
        let everything = Retention { age_ms: Some(0), runs: Some(0), bytes: None };
        store.prune(&everything, 1 << 50).map_err(|error| fail("prune", error))?;
        Ok(())
    }
}

/// Replaces the contents of a folder with these files.
pub(crate) fn put(found: &Found, folder: &Path) {
    if folder.exists() {
        fs::remove_dir_all(folder).unwrap();
    }
    for (path, content) in found {
        let path = folder.join(path);
        match content {
            None => fs::create_dir(&path).unwrap(),
            Some(bytes) => fs::write(&path, bytes).unwrap(),
        }
    }
}
