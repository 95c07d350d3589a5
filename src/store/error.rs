//! Errors of the store.

use super::NotUtf8;
use crate::id::RunId;
use rusqlite::ErrorCode;
use std::io;
use std::path::Path;

/// An error of storing or reading.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the fields are named after what they hold; the variants say the rest")]
pub enum StoreError {
    /// An operation on a file or folder failed; `verb` follows "cannot".
    #[error("cannot {verb} {path}")]
    File { verb: &'static str, path: String, source: io::Error },
    /// An operation on the database failed; `verb` follows "cannot".
    #[error("cannot {verb} {path}")]
    Database { verb: &'static str, path: String, source: Box<dyn std::error::Error + Send + Sync> },
    /// The database was written by a newer fledge.
    #[error(
        "{path} has schema version {found}, but this fledge supports versions up to {known}: \
         use the newer fledge, or another FLEDGE_STATE_DIR"
    )]
    Newer { path: String, found: i64, known: i64 },
    /// The file is not a database, or belongs to another program.
    #[error("{path} is not a fledge database: move it away, or use another FLEDGE_STATE_DIR")]
    Foreign { path: String },
    /// The database itself is damaged.
    #[error("{path} is damaged: {what}")]
    Corrupt { path: String, what: String },
    /// A journal is damaged at the record `seq`; the records before it are intact.
    #[error("the journal of run {run} is damaged at record {seq}: {what}")]
    Damaged { run: RunId, seq: u64, what: String },
    /// Another process drives the run.
    #[error("run {run} is being driven by {holder}")]
    Held { run: RunId, holder: String },
    /// An earlier write of this journal failed.
    #[error("cannot write to the journal of run {run}: an earlier write failed")]
    Broken { run: RunId },
    /// No run has this name.
    #[error("there is no run `{name}`")]
    Unknown { name: String },
    /// The ids of several runs begin with this name.
    #[error("`{name}` matches more than one run: {}", .candidates.iter().map(RunId::as_str).collect::<Vec<_>>().join(", "))]
    Ambiguous { name: String, candidates: Vec<RunId> },
    /// The run belongs to another machine.
    #[error("run {run} belongs to machine `{machine}`: resume it there")]
    Elsewhere { run: RunId, machine: String },
    /// Another run has this key.
    #[error("the run key `{key}` belongs to run {run}")]
    KeyTaken { key: String, run: RunId },
}

impl StoreError {
    pub(crate) fn new(verb: &'static str, path: &Path, source: io::Error) -> Self {
        Self::File { verb, path: path.display().to_string(), source }
    }

    pub(super) fn database(verb: &'static str, path: &Path, error: rusqlite::Error) -> Self {
        let path = path.display().to_string();
        match error.sqlite_error_code() {
            Some(ErrorCode::NotADatabase) => Self::Foreign { path },
            Some(ErrorCode::DatabaseCorrupt) => Self::Corrupt { path, what: error.to_string() },
            _ => Self::Database { verb, path, source: Box::new(error) },
        }
    }

    /// Returns the place where a text is not UTF-8, if this is the cause.
    pub(crate) fn not_utf8(&self) -> Option<&NotUtf8> {
        let Self::File { source, .. } = self else { return None };
        source.get_ref()?.downcast_ref()
    }

    /// Returns the cause alone, for a message that names the file itself.
    pub(crate) fn cause(&self) -> String {
        std::error::Error::source(self).map_or_else(|| self.to_string(), ToString::to_string)
    }
}
