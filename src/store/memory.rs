//! Memories of agents, kept from run to run. An id is derived from the memory, so keeping a memory
//! twice has no further effect. Memories are found by their words. They belong to one project and
//! are in its database. Runs leave one note for each task and outcome.

use super::events::{number, unsigned};
use super::{Store, StoreError, sha256, words};
use crate::fail_point::reach;
use crate::id::RunId;
use rusqlite::{Connection, Row, Transaction, TransactionBehavior, params};

/// The number of characters of an id.
const ID: usize = 32;
/// The least number of characters of an id that are shown.
const SHORT: usize = 8;
/// The number of memories from which a word counts as common. A common word tells little: it is
/// searched only if no rarer word exists, and only among the newest of its memories.
const COMMON: u64 = 100;
/// The maximum number of words that are searched, and the maximum number of memories that are
/// ranked, counted once for each of these words. Together they limit the time of a recall.
const TELLING: usize = 12;
const WEIGHED: u64 = 200;
const EXPIRED: &str = "DELETE FROM memory WHERE expires_at <= ?1";
/// Conditions for the origin of memories. Memories of people come first, so that notes of runs
/// cannot crowd them out.
const ORIGINS: [&str; 2] = ["m.run IS NULL", "m.run IS NOT NULL"];
const COLUMNS: &str = "m.id, m.text, m.run, m.created_at, m.expires_at, m.task";

/// A memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredMemory {
    /// The id: 32 hexadecimal characters.
    pub id: String,
    /// The remembered text.
    pub text: String,
    /// The run that left the memory; `None` for a person's memory.
    pub run: Option<RunId>,
    /// The digest of the task whose outcome the memory reports; `None` if it is not a note of a
    /// run's end.
    pub task: Option<String>,
    /// The time at which the memory was kept, in milliseconds since 1970.
    pub created_at_ms: i64,
    /// The time from which the memory is forgotten, in milliseconds since 1970; `None` means never.
    pub expires_at_ms: Option<i64>,
}

impl StoredMemory {
    /// Creates a memory that does not expire. Equal texts are the same memory.
    pub fn fact(text: String, run: Option<RunId>, now_ms: i64) -> Self {
        let id = id_of("text", &text);
        Self { id, text, run, task: None, created_at_ms: now_ms, expires_at_ms: None }
    }

    /// Creates a note of how a run ended. A newer note of the same task and outcome replaces the
    /// older one, and a run has only one note.
    pub fn of_task(task: &str, outcome: &str, run: RunId, text: String, now_ms: i64) -> Self {
        let id = id_of("task", &format!("{outcome}\0{task}"));
        let task = Some(id_of("task", task));
        Self { id, text, run: Some(run), task, created_at_ms: now_ms, expires_at_ms: None }
    }

    /// Returns the memory with an expiry: `ttl_ms` milliseconds after it was kept.
    #[must_use]
    pub fn ephemeral(self, ttl_ms: u64) -> Self {
        let ttl_ms = i64::try_from(ttl_ms).unwrap_or(i64::MAX);
        Self { expires_at_ms: Some(self.created_at_ms.saturating_add(ttl_ms)), ..self }
    }

    /// Returns `fact` for a memory without an expiry, else `ephemeral`.
    pub fn kind(&self) -> &'static str {
        if self.expires_at_ms.is_none() { "fact" } else { "ephemeral" }
    }

    /// Returns true if the memory has expired at this time, in milliseconds since 1970.
    pub fn is_expired(&self, now_ms: i64) -> bool {
        self.expires_at_ms.is_some_and(|expiry| expiry <= now_ms)
    }
}

/// The memories to forget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ForgetSelector<'a> {
    /// The memory with this id.
    One(&'a str),
    /// All memories that have expired at this time, in milliseconds since 1970.
    Expired(i64),
    /// All memories.
    All,
}

impl Store {
    /// Keeps a memory, and removes expired ones. The memory replaces one with the same id, but
    /// never shortens its life, and a person's memory stays a person's. A note of how a run ended
    /// replaces the notes of the same run, and becomes the newest memory.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub fn remember(&self, memory: &StoredMemory) -> Result<(), StoreError> {
        let sql = "INSERT INTO memory (id, text, run, created_at, expires_at, task) VALUES (?1, ?2, ?3, ?4, ?5, ?6) \
             ON CONFLICT (id) DO UPDATE SET text = excluded.text, run = iif(memory.run IS NULL, NULL, excluded.run), created_at = excluded.created_at, \
             expires_at = max(expires_at, excluded.expires_at)"; // null if either is null: never
        let older = "DELETE FROM memory WHERE task IS NOT NULL AND (id = ?1 OR run = ?2)";
        let StoredMemory { id, text, run, task, created_at_ms, expires_at_ms } = memory;
        let run = run.as_ref().map(RunId::as_str);
        let row = params![id, text, run, created_at_ms, expires_at_ms, task];
        self.change("remember in", |db| {
            db.execute(EXPIRED, [memory.created_at_ms])?;
            if task.is_some() {
                db.execute(older, params![id, run])?;
            }
            db.execute(sql, row).map(drop)
        })
    }

    /// Returns the memories that share words with a text, which may be any text, and that have not
    /// expired. Memories of people come first, then those of runs. In each group the best ones come
    /// first, and among equal ones the newest.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn recall(&self, text: &str, now_ms: i64) -> Result<Vec<StoredMemory>, StoreError> {
        let words = words::queries(text);
        let read = || -> rusqlite::Result<Vec<StoredMemory>> {
            let mut all = Vec::new();
            for origin in ORIGINS {
                all.extend(self.recall_of(origin, words.clone(), now_ms)?);
            }
            Ok(all)
        };
        read().map_err(self.fault("read"))
    }

    fn recall_of(&self, origin: &str, words: Vec<String>, now_ms: i64) -> rusqlite::Result<Vec<StoredMemory>> {
        let (words, oldest) = self.telling(origin, words)?;
        if words.is_empty() {
            return Ok(Vec::new());
        }
        let sql = format!(
            "SELECT {COLUMNS} FROM memory_words JOIN memory m ON m.no = memory_words.rowid \
             WHERE memory_words MATCH ?1 AND memory_words.rowid >= ?2 AND {origin} \
             AND (m.expires_at IS NULL OR m.expires_at > ?3) ORDER BY bm25(memory_words), m.created_at DESC, m.no DESC"
        );
        self.db.prepare(&sql)?.query_map(params![words.join(" OR "), oldest, now_ms], memory)?.collect()
    }

    /// Returns the rarest of some words, and the number of the oldest memory to search.
    fn telling(&self, origin: &str, words: Vec<String>) -> rusqlite::Result<(Vec<String>, i64)> {
        let sql = format!(
            "SELECT count(*), coalesce(min(no), 0) FROM (SELECT m.no FROM memory_words JOIN memory m ON m.no = memory_words.rowid \
             WHERE memory_words MATCH ?1 AND {origin} ORDER BY memory_words.rowid DESC LIMIT ?2)"
        );
        let mut newest = self.db.prepare(&sql)?;
        let (mut rare, mut common) = (Vec::new(), None);
        for word in words {
            match newest.query_row(params![word, number(COMMON)], |row| Ok((unsigned(row, 0)?, row.get(1)?)))? {
                (0, _) => {}
                (COMMON.., oldest) => drop(common.get_or_insert((vec![word], oldest))),
                (hits, _) => rare.push((hits, word)),
            }
        }
        rare.sort_by_key(|(hits, _)| *hits);
        let mut weighed = 0;
        let telling = rare.into_iter().take(TELLING).take_while(|(hits, _)| {
            weighed += hits;
            weighed <= WEIGHED
        });
        let telling: Vec<String> = telling.map(|(_, word)| word).collect();
        Ok(if telling.is_empty() { common.unwrap_or_default() } else { (telling, i64::MIN) })
    }

    /// Returns all memories, newest first, including expired ones.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn memories(&self) -> Result<Vec<StoredMemory>, StoreError> {
        self.memories_called("")
    }

    /// Returns the memories whose id begins with this text, newest first.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn memories_called(&self, start: &str) -> Result<Vec<StoredMemory>, StoreError> {
        let read = || -> rusqlite::Result<Vec<StoredMemory>> {
            let sql = format!(
                "SELECT {COLUMNS} FROM memory m WHERE substr(id, 1, length(?1)) = ?1 ORDER BY created_at DESC, no DESC"
            );
            self.db.prepare(&sql)?.query_map([start], memory)?.collect()
        };
        read().map_err(self.fault("read"))
    }

    /// Returns the shortest unique start of a memory's id, with at least 8 characters.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn short_memory(&self, id: &str) -> Result<String, StoreError> {
        self.start_of("memory", id, SHORT)
    }

    /// Forgets memories, and returns their number.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub fn forget(&self, what: ForgetSelector<'_>) -> Result<u64, StoreError> {
        self.change("forget in", |db| {
            let forgotten = match what {
                ForgetSelector::One(id) => db.execute("DELETE FROM memory WHERE id = ?1", [id]),
                ForgetSelector::Expired(now_ms) => db.execute(EXPIRED, [now_ms]),
                ForgetSelector::All => db.execute("DELETE FROM memory", []),
            };
            forgotten.map(|count| count as u64)
        })
    }

    /// Changes the memories in one transaction.
    fn change<T>(
        &self,
        verb: &'static str,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        let fail_point = |stage| reach("memory", stage).map_err(|error| StoreError::new(verb, &self.path(), error));
        fail_point("begun")?;
        let changed = || {
            let transaction = Transaction::new_unchecked(&self.db, TransactionBehavior::Immediate)?;
            let changed = work(&transaction)?;
            transaction.commit().map(|()| changed)
        };
        let changed = changed().map_err(self.fault(verb))?;
        fail_point("done").map(|()| changed)
    }
}

fn id_of(of_what: &str, text: &str) -> String {
    let mut id = sha256(format!("{of_what}\0{text}").as_bytes());
    id.truncate(ID);
    id
}

fn memory(row: &Row<'_>) -> rusqlite::Result<StoredMemory> {
    let run = row.get::<_, Option<String>>(2)?.map(RunId::new);
    let (created_at_ms, expires_at_ms) = (row.get(3)?, row.get(4)?);
    Ok(StoredMemory { id: row.get(0)?, text: row.get(1)?, run, task: row.get(5)?, created_at_ms, expires_at_ms })
}
