//! The rows of runs: begun, ended, listed, and found by what people type.

use super::chain::Link;
use super::events::{number, unsigned};
use super::filter::{Filter, Only};
use super::{Store, StoreError, lock};
use crate::id::RunId;
use rusqlite::{Connection, OptionalExtension, Row, Transaction, TransactionBehavior, params};
use serde::{Deserialize, Serialize};

/// Candidates that are named when the start of an id is not enough.
const CANDIDATES: u32 = 5;
/// Characters of an id that are shown.
const SHORT: usize = 8;
const COLUMNS: &str = "id, run_key, parent, title, source, task_digest, workspace, models, fledge, journal_version, started_at, ended_at, \
    reason, exit_code, verified, cancelled, attempts, turns, tokens_in, tokens_out, tokens_cached, cost_micros, summary, \
    (SELECT machine FROM received WHERE run = no), (SELECT heard_at FROM received WHERE run = no), \
    (SELECT settings ->> '$.worktree.branch' FROM tasks WHERE run = no AND json_valid(settings)) AS branch";

/// What is known of a run when it begins. The first record of its journal is tied to this, so a field that is added later must be left
/// out of the JSON where it is empty.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunHead {
    /// The run.
    pub id: RunId,
    /// A name that was given to it from outside; no other run of the project has it.
    pub run_key: Option<String>,
    /// The run that it goes on from.
    pub parent: Option<RunId>,
    /// The task's title.
    pub title: String,
    /// Where the task's text came from: a path, or `-`.
    pub source: String,
    /// The SHA-256 digest of the task's text, in hexadecimal.
    pub task_digest: String,
    /// The workspace.
    pub workspace: String,
    /// The models, in order of preference.
    pub models: Vec<String>,
    /// The version of the program.
    pub fledge: String,
    /// The version of the form of the journal's records.
    pub journal_version: u32,
    /// Milliseconds since 1970.
    pub started_at_ms: i64,
}

/// What a run works on, so that it can be taken up again.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskCopy {
    /// The task's text.
    pub text: String,
    /// The checked task and what else is needed, as JSON.
    pub settings: String,
}

/// How a run ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Milliseconds since 1970.
    pub ended_at_ms: i64,
    /// The reason, by its name.
    pub reason: String,
    /// The exit code.
    pub exit_code: u8,
    /// Whether the work counts.
    pub verified: bool,
    /// Whether somebody asked for it to stop.
    pub cancelled: bool,
    /// How often the gate was reached.
    pub attempts: u64,
    /// Model calls that completed.
    pub turns: u64,
    /// Tokens read by models, cached ones included.
    pub tokens_in: u64,
    /// Tokens written by models.
    pub tokens_out: u64,
    /// Tokens that came from a provider's cache.
    pub tokens_cached: u64,
    /// The price in millionths of a US dollar, where it is known.
    pub cost_micros: Option<u64>,
    /// What was done, in one line.
    pub summary: String,
}

/// A run, as it is listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunRow {
    /// What it is.
    pub head: RunHead,
    /// How far it is.
    pub state: RunState,
    /// The machine that tells of it, where that is another one: nobody here drives it.
    pub machine: Option<String>,
    /// The branch of its worktree, where it has one.
    pub branch: Option<String>,
    /// When that machine was last heard of this run, in milliseconds since 1970.
    pub heard_at_ms: Option<i64>,
    /// Whether that machine has been silent for so long that the run may be over; only known of a row from [`RunRow::seen_at`].
    pub is_lost: bool,
}

/// How far a run is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunState {
    /// Somebody drives it.
    Running {
        /// Who, for people.
        holder: String,
    },
    /// It did not end, and nobody drives it.
    Interrupted,
    /// It is over.
    Ended(Outcome),
}

impl Store {
    /// The runs of the project, the newest first.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn runs(&self, filter: &Filter) -> Result<Vec<RunRow>, StoreError> {
        let condition = filter.only.map_or("1", Only::condition);
        let sql = format!(
            "SELECT {COLUMNS} FROM runs WHERE (?1 IS NULL OR no < (SELECT no FROM runs WHERE id = ?1)) \
             AND ({condition}) AND (?2 IS NULL OR {}) ORDER BY no DESC",
            Filter::has_text()
        );
        let escape = |text: &str| text.replace('\\', r"\\").replace('%', r"\%").replace('_', r"\_");
        let text = filter.text.as_deref().map(escape);
        let before = filter.before.as_ref().map(RunId::as_str);
        let is_wanted = |row: &RunRow| filter.only.is_none_or(|only| only.is(row));
        let read = || -> rusqlite::Result<Vec<RunRow>> {
            let mut statement = self.db.prepare(&sql)?;
            let rows = statement.query_map((before, text), |row| Ok(self.row(row)?.seen_at(filter.now_ms)))?;
            // Who drives a run is in no row, so they are counted here; SQLite goes no further than it is asked to.
            rows.filter(|row| row.as_ref().map_or(true, is_wanted)).take(filter.limit as usize).collect()
        };
        read().map_err(self.fault("read"))
    }

    /// One run.
    ///
    /// # Errors
    /// When there is no such run, or the database cannot be read.
    pub fn run(&self, run: &RunId) -> Result<RunRow, StoreError> {
        let sql = format!("SELECT {COLUMNS} FROM runs WHERE id = ?1");
        let row = self.db.query_row(&sql, [run.as_str()], |row| self.row(row)).optional();
        row.map_err(self.fault("read"))?.ok_or_else(|| StoreError::Unknown { name: run.to_string() })
    }

    /// What a run works on.
    ///
    /// # Errors
    /// When there is no such run, or the database cannot be read.
    pub fn task(&self, run: &RunId) -> Result<TaskCopy, StoreError> {
        let sql = "SELECT text, settings FROM tasks WHERE run = (SELECT no FROM runs WHERE id = ?1)";
        let copy = |row: &Row<'_>| Ok(TaskCopy { text: row.get(0)?, settings: row.get(1)? });
        let task = self.db.query_row(sql, [run.as_str()], copy).optional().map_err(self.fault("read"))?;
        task.ok_or_else(|| StoreError::Unknown { name: run.to_string() })
    }

    /// The run that goes by a name: `last`, `last-failed`, an id, a run key, or the start of an id that only one has.
    ///
    /// # Errors
    /// When there is none or more than one, or the database cannot be read.
    pub fn find(&self, name: &str) -> Result<RunId, StoreError> {
        let (sql, name) = match name {
            // Of this machine's own.
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

    /// The runs that were given a key, the newest first, each with its number: the first one has the key itself, the next ones `#2`, `#3`
    /// behind it.
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

    /// The start of a run's id that no other one has: 8 characters, or as many more as it takes.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn short(&self, run: &RunId) -> Result<String, StoreError> {
        self.start_of("runs", run.as_str(), SHORT)
    }

    /// The start of an id that no other one in the table has, of so many characters at least.
    pub(super) fn start_of(&self, table: &str, id: &str, least: usize) -> Result<String, StoreError> {
        // Those beside it in their order have the longest start in common with it.
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

    /// Writes the row of a new run, and gives its number.
    pub(super) fn begin(&self, head: &RunHead, task: &TaskCopy, link: &Link) -> Result<i64, StoreError> {
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

    /// Makes a run that had ended one that did not, whose records take so many bytes. Where a server was sent its end, only the records
    /// count as sent.
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
            (Some(ended_at_ms), _) => RunState::Ended(outcome(row, ended_at_ms)?),
            // Whether it still goes on is known there alone.
            (None, Some(machine)) => RunState::Running { holder: format!("the machine {machine}") },
            (None, None) => match lock::holder(&self.folder(&head.id)) {
                Some(holder) => RunState::Running { holder },
                None => RunState::Interrupted,
            },
        };
        Ok(RunRow { head, state, machine, branch: row.get(25)?, heard_at_ms: row.get(24)?, is_lost: false })
    }
}

/// Writes the rows of a new run, and gives its number.
pub(super) fn insert(db: &Connection, head: &RunHead, task: &TaskCopy, link: &Link) -> rusqlite::Result<i64> {
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

fn outcome(row: &Row<'_>, ended_at_ms: i64) -> rusqlite::Result<Outcome> {
    Ok(Outcome {
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
