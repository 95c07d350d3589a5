//! The rows of runs: creation, lists with filters, and lookup by name.

use super::chain::ChainLink;
use super::events::{number, unsigned};
use super::{Store, StoreError, lock};
use crate::id::RunId;
use crate::run::{RunHead, RunOutcome, RunRow, StoredRunState};
use rusqlite::{Connection, OptionalExtension, Row, Transaction, TransactionBehavior, params};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The maximum number of candidates that are named if the start of an id is ambiguous.
const CANDIDATES: u32 = 5;
/// The least number of characters of an id that are shown.
const SHORT: usize = 8;
const COLUMNS: &str = "id, run_key, parent, title, source, task_digest, workspace, models, fledge, journal_version, started_at, ended_at, \
    reason, exit_code, verified, cancelled, attempts, turns, tokens_in, tokens_out, tokens_cached, cost_micros, summary, \
    (SELECT machine FROM received WHERE run = no), (SELECT heard_at FROM received WHERE run = no), \
    (SELECT settings ->> '$.worktree.branch' FROM tasks WHERE run = no AND json_valid(settings)) AS branch";

/// The task of a run, kept so that the run can be resumed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskCopy {
    /// The task's text.
    pub text: String,
    /// The checked task and other required settings, as JSON.
    pub settings: String,
}

impl Store {
    /// Returns the runs of the project, newest first.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn runs(&self, filter: &RunListFilter) -> Result<Vec<RunRow>, StoreError> {
        let condition = filter.only.map_or("1", RunProperty::condition);
        let sql = format!(
            "SELECT {COLUMNS} FROM runs WHERE (?1 IS NULL OR no < (SELECT no FROM runs WHERE id = ?1)) \
             AND ({condition}) AND NOT EXISTS (SELECT 1 FROM json_each(?2) AS word WHERE NOT ({})) \
             AND (?3 IS NULL OR id IN (SELECT value FROM json_each(?3))) ORDER BY no DESC",
            RunListFilter::has_word()
        );
        let escape = |text: &str| text.replace('\\', r"\\").replace('%', r"\%").replace('_', r"\_");
        let words: Vec<_> = filter.text.iter().flat_map(|text| text.split_whitespace()).map(escape).collect();
        let words = serde_json::to_string(&words).unwrap_or_default();
        let before = filter.before.as_ref().map(RunId::as_str);
        let ids = filter.ids.as_ref().map(|ids| serde_json::to_string(ids).unwrap_or_default());
        let is_wanted = |row: &RunRow| filter.only.is_none_or(|only| only.is(row));
        let read = || -> rusqlite::Result<Vec<RunRow>> {
            let mut statement = self.db.prepare(&sql)?;
            let rows = statement.query_map((before, words, ids), |row| Ok(self.row(row)?.seen_at(filter.now_ms)))?;
            // No row records whether a run is being driven, so the limit is applied here. SQLite
            // reads no more rows than are requested.
            rows.filter(|row| row.as_ref().map_or(true, is_wanted)).take(filter.limit as usize).collect()
        };
        read().map_err(self.fault("read"))
    }

    /// Returns one run.
    ///
    /// # Errors
    /// When no such run exists, or the database cannot be read.
    pub fn run(&self, run: &RunId) -> Result<RunRow, StoreError> {
        let sql = format!("SELECT {COLUMNS} FROM runs WHERE id = ?1");
        let row = self.db.query_row(&sql, [run.as_str()], |row| self.row(row)).optional();
        row.map_err(self.fault("read"))?.ok_or_else(|| StoreError::Unknown { name: run.to_string() })
    }

    /// Returns the task of a run.
    ///
    /// # Errors
    /// When no such run exists, or the database cannot be read.
    pub fn task(&self, run: &RunId) -> Result<TaskCopy, StoreError> {
        let sql = "SELECT text, settings FROM tasks WHERE run = (SELECT no FROM runs WHERE id = ?1)";
        let copy = |row: &Row<'_>| Ok(TaskCopy { text: row.get(0)?, settings: row.get(1)? });
        let task = self.db.query_row(sql, [run.as_str()], copy).optional().map_err(self.fault("read"))?;
        task.ok_or_else(|| StoreError::Unknown { name: run.to_string() })
    }

    /// Finds a run by a name: `last`, `last-failed`, an id, a run key, or a unique start of an id.
    ///
    /// # Errors
    /// When no run or more than one has the name, or the database cannot be read.
    pub fn find(&self, name: &str) -> Result<RunId, StoreError> {
        let (sql, name) = match name {
            // Only runs of this machine.
            "last" => {
                let own = "no NOT IN (SELECT run FROM received)";
                (format!("SELECT id FROM runs WHERE ?1 = ?1 AND {own} ORDER BY no DESC LIMIT 1"), name)
            }
            "last-failed" => {
                let own = "exit_code <> 0 AND no NOT IN (SELECT run FROM received)";
                (format!("SELECT id FROM runs WHERE ?1 = ?1 AND {own} ORDER BY no DESC LIMIT 1"), name)
            }
            _ => (
                "SELECT id FROM runs WHERE id = ?1 UNION ALL SELECT id FROM runs WHERE run_key = ?1 LIMIT 1".into(),
                name,
            ),
        };
        let whole = self.db.query_row(&sql, [name], id).optional().map_err(self.fault("read"))?;
        if let Some(run) = whole {
            return Ok(run);
        }
        let starts = || -> rusqlite::Result<Vec<RunId>> {
            let sql = "SELECT id FROM runs WHERE ?1 <> '' AND id >= ?1 AND substr(id, 1, length(?1)) = ?1 ORDER BY id LIMIT ?2";
            self.db.prepare(sql)?.query_map(params![name, CANDIDATES], id)?.collect()
        };
        let mut candidates = starts().map_err(self.fault("read"))?;
        match (candidates.pop(), candidates.is_empty()) {
            (Some(run), true) => Ok(run),
            (Some(last), false) => {
                candidates.push(last);
                Err(StoreError::Ambiguous { name: name.into(), candidates })
            }
            (None, _) => Err(StoreError::Unknown { name: name.into() }),
        }
    }

    /// Returns the runs with a key, newest first, each with its number. The first run has the key
    /// itself; later ones have `#2`, `#3` appended to it.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn keyed(&self, key: &str) -> Result<Vec<(u64, RunRow)>, StoreError> {
        let sql = format!(
            "SELECT {COLUMNS} FROM runs WHERE run_key = ?1 OR substr(run_key, 1, length(?1) + 1) = ?1 || '#' ORDER BY no DESC"
        );
        let read = || -> rusqlite::Result<Vec<RunRow>> {
            let mut statement = self.db.prepare(&sql)?;
            statement.query_map([key], |row| self.row(row))?.collect()
        };
        let number = |row: &RunRow| match row.head.run_key.as_deref()?.strip_prefix(key)? {
            "" => Some(1),
            rest => rest.strip_prefix('#')?.parse().ok(),
        };
        let rows = read().map_err(self.fault("read"))?;
        Ok(rows.into_iter().filter_map(|row| Some((number(&row)?, row))).collect())
    }

    /// Returns the shortest unique start of a run's id, with at least 8 characters.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn short(&self, run: &RunId) -> Result<String, StoreError> {
        self.start_of("runs", run.as_str(), SHORT)
    }

    /// Returns the shortest start of an id that is unique in the table, with at least `least`
    /// characters.
    pub(super) fn start_of(&self, table: &str, id: &str, least: usize) -> Result<String, StoreError> {
        // The neighbours in sort order have the longest start in common with the id.
        let sql = format!(
            "SELECT (SELECT id FROM {table} WHERE id < ?1 ORDER BY id DESC LIMIT 1), \
             (SELECT id FROM {table} WHERE id > ?1 ORDER BY id LIMIT 1)"
        );
        let beside = |row: &Row<'_>| Ok([row.get::<_, Option<String>>(0)?, row.get(1)?]);
        let beside = self.db.query_row(&sql, [id], beside).map_err(self.fault("read"))?;
        let alike = |other: &String| id.chars().zip(other.chars()).take_while(|(a, b)| a == b).count();
        let most = beside.iter().flatten().map(alike).max().unwrap_or(0);
        Ok(id.chars().take(least.max(most + 1)).collect())
    }

    /// Writes the row of a new run, and returns its number.
    pub(super) fn insert_run(&self, head: &RunHead, task: &TaskCopy, link: &ChainLink) -> Result<i64, StoreError> {
        let fail = self.fault("begin a run in");
        let transaction = Transaction::new_unchecked(&self.db, TransactionBehavior::Immediate).map_err(&fail)?;
        if let Some(key) = &head.run_key {
            let taken = transaction.query_row("SELECT id FROM runs WHERE run_key = ?1", [key], id).optional();
            if let Some(run) = taken.map_err(&fail)? {
                return Err(StoreError::KeyTaken { key: key.clone(), run });
            }
        }
        let no = insert(&transaction, head, task, link).map_err(&fail)?;
        transaction.commit().map_err(&fail)?;
        Ok(no)
    }

    /// Marks an ended run as not ended. `bytes` is the size of its records. If its end was sent to
    /// a server, only the records count as sent from now on.
    pub(super) fn take_back_end(&self, no: i64, bytes: u64) -> Result<(), StoreError> {
        let sql = "UPDATE runs SET ended_at = NULL, exit_code = NULL, bytes = ?2, synced = min(synced, safe_seq) \
             WHERE no = ?1 AND ended_at IS NOT NULL";
        self.db.execute(sql, [no, number(bytes)]).map(drop).map_err(self.fault("reopen a run in"))
    }

    fn row(&self, row: &Row<'_>) -> rusqlite::Result<RunRow> {
        let head = RunHead {
            id: id(row)?,
            run_key: row.get(1)?,
            parent: row.get::<_, Option<String>>(2)?.map(RunId::new),
            title: row.get(3)?,
            source: row.get(4)?,
            task_digest: row.get(5)?,
            workspace: row.get(6)?,
            models: serde_json::from_str(&row.get::<_, String>(7)?).unwrap_or_default(),
            fledge: row.get(8)?,
            journal_version: row.get(9)?,
            started_at_ms: row.get(10)?,
        };
        let machine: Option<String> = row.get(23)?;
        let state = match (row.get::<_, Option<i64>>(11)?, &machine) {
            (Some(ended_at_ms), _) => StoredRunState::Ended(outcome(row, ended_at_ms)?),
            // Only that machine knows whether the run continues.
            (None, Some(machine)) => StoredRunState::Running { holder: format!("the machine {machine}") },
            (None, None) => match lock::holder(&self.folder(&head.id)) {
                Some(holder) => StoredRunState::Running { holder },
                None => StoredRunState::Interrupted,
            },
        };
        Ok(RunRow { head, state, machine, branch: row.get(25)?, heard_at_ms: row.get(24)?, is_lost: false })
    }
}

/// Writes the rows of a new run, and returns its number.
pub(super) fn insert(db: &Connection, head: &RunHead, task: &TaskCopy, link: &ChainLink) -> rusqlite::Result<i64> {
    let sql = "INSERT INTO runs (id, run_key, parent, title, source, task_digest, workspace, models, fledge, journal_version, \
         started_at, bytes, safe_seq, safe_hash) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, 0, 0, ?12)";
    let RunHead { title, source, task_digest, workspace, fledge, journal_version, started_at_ms, .. } = head;
    let (parent, models) = (head.parent.as_ref().map(RunId::as_str), serde_json::json!(head.models).to_string());
    let key = &head.run_key;
    let row = params![
        head.id.as_str(),
        key,
        parent,
        title,
        source,
        task_digest,
        workspace,
        models,
        fledge,
        journal_version,
        started_at_ms,
        link
    ];
    db.execute(sql, row)?;
    let no = db.last_insert_rowid();
    let sql = "INSERT INTO tasks (run, text, settings) VALUES (?1, ?2, ?3)";
    db.execute(sql, params![no, task.text, task.settings])?;
    Ok(no)
}

fn outcome(row: &Row<'_>, ended_at_ms: i64) -> rusqlite::Result<RunOutcome> {
    Ok(RunOutcome {
        ended_at_ms,
        reason: row.get(12)?,
        exit_code: row.get(13)?,
        verified: row.get(14)?,
        cancelled: row.get(15)?,
        attempts: unsigned(row, 16)?,
        turns: unsigned(row, 17)?,
        tokens_in: unsigned(row, 18)?,
        tokens_out: unsigned(row, 19)?,
        tokens_cached: unsigned(row, 20)?,
        cost_micros: row.get::<_, Option<i64>>(21)?.and_then(|cost| u64::try_from(cost).ok()),
        summary: row.get(22)?,
    })
}

fn id(row: &Row<'_>) -> rusqlite::Result<RunId> {
    row.get::<_, String>(0).map(RunId::new)
}

/// The columns and expressions in which text is searched. The last one is the run's starter.
/// `json_each`, which gives the words, has columns `id` and `parent`, too.
const TEXTS: [&str; 9] = [
    "title",
    "source",
    "models",
    "runs.id",
    "run_key",
    "reason",
    "branch",
    "runs.parent",
    "CASE WHEN runs.parent IS NOT NULL THEN 'run' WHEN run_key IS NULL THEN 'command line' WHEN run_key LIKE 'page-%' \
     THEN 'this page' WHEN run_key LIKE '________________________-%/%' THEN 'batch' ELSE 'key' END",
];

/// A filter for a list of runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunListFilter {
    /// The maximum number of runs to return.
    pub limit: u32,
    /// Only runs that began before this one, to get the next page.
    pub before: Option<RunId>,
    /// Only runs with this property.
    pub only: Option<RunProperty>,
    /// Only runs with these ids.
    pub ids: Option<BTreeSet<RunId>>,
    /// Only runs with each word of this text in their title, task, model, id, key, reason, branch
    /// or starter, in either case of ASCII letters.
    pub text: Option<String>,
    /// The current time in milliseconds since 1970; 0 means that no run counts as lost.
    pub now_ms: i64,
}

/// A property by which runs are filtered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunProperty {
    /// The run ended with an exit code other than 0.
    Failed,
    /// The run ended, with any outcome.
    Ended,
    /// The run ended and its work counts as verified. Skipped runs are excluded.
    Verified,
    /// The run did not end, and no process drives it.
    Interrupted,
    /// The run is being driven.
    Running,
    /// Another machine drives the run and has been silent for a long time.
    Lost,
}

impl RunProperty {
    /// Returns the part of the condition that SQL can check.
    fn condition(self) -> &'static str {
        match self {
            Self::Ended => "ended_at IS NOT NULL",
            Self::Failed => "ended_at IS NOT NULL AND exit_code <> 0",
            Self::Verified => "ended_at IS NOT NULL AND verified AND reason <> 'skipped'",
            Self::Interrupted | Self::Running | Self::Lost => "ended_at IS NULL",
        }
    }

    fn is(self, row: &RunRow) -> bool {
        match self {
            Self::Ended | Self::Failed | Self::Verified => matches!(row.state, StoredRunState::Ended(_)),
            Self::Interrupted => row.state == StoredRunState::Interrupted,
            Self::Running => matches!(row.state, StoredRunState::Running { .. }) && !row.is_lost,
            Self::Lost => row.is_lost,
        }
    }
}

impl Default for RunListFilter {
    fn default() -> Self {
        Self { limit: 50, before: None, only: None, ids: None, text: None, now_ms: 0 }
    }
}

impl RunListFilter {
    /// Returns the SQL condition that a row contains the word in `word.value`.
    fn has_word() -> String {
        TEXTS.map(|text| format!("coalesce({text}, '') LIKE '%' || word.value || '%' ESCAPE '\\'")).join(" OR ")
    }
}
