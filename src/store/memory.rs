//! What agents remember from run to run: kept by ids that are made of it, so that keeping it twice is keeping it once, and found again by
//! its words. One project's only: it is in that project's database. Runs leave one note for each task and outcome.

use super::events::{number, unsigned};
use super::{Store, StoreError, sha256, words};
use crate::fail_point::reach;
use crate::id::RunId;
use rusqlite::{Connection, Row, Transaction, TransactionBehavior, params};

/// Characters of an id.
const ID: usize = 32;
/// Characters of an id that are shown.
const SHORT: usize = 8;
/// Memories that have a word which is still looked for in all of them. Of a word that more have, the newest so many are looked at, and
/// only if no rarer word is there: it tells little.
const COMMON: u64 = 100;
/// Words that are looked for, and memories that are weighed, counted once for each of these words that they have. Together they bound the
/// time that recalling takes.
const TELLING: usize = 12;
const WEIGHED: u64 = 200;
const EXPIRED: &str = "DELETE FROM memory WHERE expires_at <= ?1";
/// Memories of people come first: no number of notes from runs crowds them out.
const ORIGINS: [&str; 2] = ["m.run IS NULL", "m.run IS NOT NULL"];
const COLUMNS: &str = "m.id, m.text, m.run, m.created_at, m.expires_at, m.task";

/// One thing remembered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Memory {
    /// Its name: 32 hexadecimal characters.
    pub id: String,
    /// What is remembered.
    pub text: String,
    /// The run that it comes from; `None`: a person.
    pub run: Option<RunId>,
    /// The digest of the task whose outcome it tells; `None`: it is no note of a run's end.
    pub task: Option<String>,
    /// When it was kept, in milliseconds since 1970.
    pub created_at_ms: i64,
    /// From when on it is forgotten; `None`: it stays.
    pub expires_at_ms: Option<i64>,
}

impl Memory {
    /// A text that stays; the same text is the same memory.
    pub fn fact(text: String, run: Option<RunId>, now_ms: i64) -> Self {
        let id = id_of("text", &text);
        Self { id, text, run, task: None, created_at_ms: now_ms, expires_at_ms: None }
    }

    /// A note of how a run ended. The newest note of a task with an outcome replaces the older one, and a run has only one note.
    pub fn of_task(task: &str, outcome: &str, run: RunId, text: String, now_ms: i64) -> Self {
        let id = id_of("task", &format!("{outcome}\0{task}"));
        let task = Some(id_of("task", task));
        Self { id, text, run: Some(run), task, created_at_ms: now_ms, expires_at_ms: None }
    }

    /// The same, but forgotten after so many milliseconds.
    #[must_use]
    pub fn ephemeral(self, ttl_ms: u64) -> Self {
        let ttl_ms = i64::try_from(ttl_ms).unwrap_or(i64::MAX);
        Self { expires_at_ms: Some(self.created_at_ms.saturating_add(ttl_ms)), ..self }
    }

    /// `fact` for what stays, else `ephemeral`.
    pub fn kind(&self) -> &'static str {
        if self.expires_at_ms.is_none() { "fact" } else { "ephemeral" }
    }

    /// Whether it is forgotten at this time, in milliseconds since 1970.
    pub fn is_expired(&self, now_ms: i64) -> bool {
        self.expires_at_ms.is_some_and(|expiry| expiry <= now_ms)
    }
}

/// What is to be forgotten.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Forget<'a> {
    /// The one of this id.
    One(&'a str),
    /// All that are expired at this time, in milliseconds since 1970.
    Expired(i64),
    /// All.
    All,
}

impl Store {
    /// Keeps a memory. In the place of one of the same id, which does not live shorter for it, and stays a person's; what has expired by then goes. A note of how
    /// a run ended replaces those of the same run, and becomes the newest memory.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub fn remember(&self, memory: &Memory) -> Result<(), StoreError> {
        let sql = "INSERT INTO memory (id, text, run, created_at, expires_at, task) VALUES (?1, ?2, ?3, ?4, ?5, ?6) \
             ON CONFLICT (id) DO UPDATE SET text = excluded.text, run = iif(memory.run IS NULL, NULL, excluded.run), created_at = excluded.created_at, \
             expires_at = max(expires_at, excluded.expires_at)"; // null, which is never, is the largest
        let older = "DELETE FROM memory WHERE task IS NOT NULL AND (id = ?1 OR run = ?2)";
        let Memory { id, text, run, task, created_at_ms, expires_at_ms } = memory;
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

    /// The memories that have words of a text, whatever is in it, and are not expired: those of people first, then those of runs. Of each
    /// the best come first, of equal ones the newest.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn recall(&self, text: &str, now_ms: i64) -> Result<Vec<Memory>, StoreError> {
        let words = words::queries(text);
        let read = || -> rusqlite::Result<Vec<Memory>> {
            let mut all = Vec::new();
            for origin in ORIGINS {
                all.extend(self.recall_of(origin, words.clone(), now_ms)?);
            }
            Ok(all)
        };
        read().map_err(self.fault("read"))
    }

    fn recall_of(&self, origin: &str, words: Vec<String>, now_ms: i64) -> rusqlite::Result<Vec<Memory>> {
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

    /// The rarest of some words, and the number of the oldest memory that is looked at.
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

    /// All memories, the newest first, those that are expired among them.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn memories(&self) -> Result<Vec<Memory>, StoreError> {
        self.memories_called("")
    }

    /// The memories whose id begins like this, the newest first.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn memories_called(&self, start: &str) -> Result<Vec<Memory>, StoreError> {
        let read = || -> rusqlite::Result<Vec<Memory>> {
            let sql = format!(
                "SELECT {COLUMNS} FROM memory m WHERE substr(id, 1, length(?1)) = ?1 ORDER BY created_at DESC, no DESC"
            );
            self.db.prepare(&sql)?.query_map([start], memory)?.collect()
        };
        read().map_err(self.fault("read"))
    }

    /// The start of a memory's id that no other one has: 8 characters, or as many more as it takes.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn short_memory(&self, id: &str) -> Result<String, StoreError> {
        self.start_of("memory", id, SHORT)
    }

    /// Forgets, and says how many that were.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub fn forget(&self, what: Forget<'_>) -> Result<u64, StoreError> {
        self.change("forget in", |db| {
            let forgotten = match what {
                Forget::One(id) => db.execute("DELETE FROM memory WHERE id = ?1", [id]),
                Forget::Expired(now_ms) => db.execute(EXPIRED, [now_ms]),
                Forget::All => db.execute("DELETE FROM memory", []),
            };
            forgotten.map(|count| count as u64)
        })
    }

    /// Changes what is remembered, whole or not at all.
    fn change<T>(
        &self,
        verb: &'static str,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        let place = |how_far| reach("memory", how_far).map_err(|error| StoreError::new(verb, &self.path(), error));
        place("begun")?;
        let changed = || {
            let transaction = Transaction::new_unchecked(&self.db, TransactionBehavior::Immediate)?;
            let changed = work(&transaction)?;
            transaction.commit().map(|()| changed)
        };
        let changed = changed().map_err(self.fault(verb))?;
        place("done").map(|()| changed)
    }
}

fn id_of(of_what: &str, text: &str) -> String {
    let mut id = sha256(format!("{of_what}\0{text}").as_bytes());
    id.truncate(ID);
    id
}

fn memory(row: &Row<'_>) -> rusqlite::Result<Memory> {
    let run = row.get::<_, Option<String>>(2)?.map(RunId::new);
    let (created_at_ms, expires_at_ms) = (row.get(3)?, row.get(4)?);
    Ok(Memory { id: row.get(0)?, text: row.get(1)?, run, task: row.get(5)?, created_at_ms, expires_at_ms })
}
