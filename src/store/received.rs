//! Runs of other machines, received by sync. They are listed among the project's own runs, but no
//! process here drives them. A delivery must fit the hash chain. It is taken whole or not at all,
//! and a repeated delivery changes nothing.

use super::chain::{self, ChainLink};
use super::events::{number, place, unsigned};
use super::journal::{LARGEST_IN_ROW, write_blob};
use super::lock::RunLock;
use super::prune::in_rows;
use super::{JournalRecord, RunDir, RunHead, RunOutcome, Store, StoreError, TaskCopy};
use crate::id::RunId;
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};

/// A piece of the journal of a run that another machine drives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyncDelivery {
    /// The run.
    pub run: RunId,
    /// The machine that drives the run.
    pub machine: String,
    /// The head and the task of the run, for a store that does not know the run yet.
    pub begin: Option<(RunHead, TaskCopy)>,
    /// The number of the record before the first one in `records`; 0 for the head of the run.
    pub after: u64,
    /// The link of that record, in hexadecimal.
    pub link: String,
    /// The records, in order and without a gap, each with its link.
    pub records: Vec<(JournalRecord, String)>,
    /// The outcome of the run, if it ended with the last record.
    pub end: Option<RunOutcome>,
}

/// A delivery was refused.
#[derive(Debug, thiserror::Error)]
pub enum Untaken {
    /// Earlier records are missing here.
    #[error("records of run {run} are missing: the last one here is {have}, but the new ones follow {after}")]
    Gap {
        /// The run.
        run: RunId,
        /// The number of the last record here.
        have: u64,
        /// The number of the record that the delivery follows.
        after: u64,
    },
    /// The run has a different record here.
    #[error("run {run} has diverged: record {seq} is different here")]
    Forked {
        /// The run.
        run: RunId,
        /// The first record that differs; 0 for the head.
        seq: u64,
    },
    /// A record does not fit the one before it.
    #[error("record {seq} of run {run} breaks the hash chain: a record was changed, lost or swapped")]
    Torn {
        /// The run.
        run: RunId,
        /// The record; 0 for the head.
        seq: u64,
    },
    /// The run belongs to this machine.
    #[error("run {run} belongs to this machine: other machines cannot send it")]
    Own {
        /// The run.
        run: RunId,
    },
    /// The delivery cannot be stored.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The known state of a run.
struct Known {
    no: i64,
    have: u64,
    ended_at: Option<i64>,
    machine: Option<String>,
}

impl Store {
    /// Stores a delivery of another machine. It is safe from a crash of this machine when this
    /// returns.
    ///
    /// # Errors
    /// When the delivery does not follow the records here, breaks the chain, or cannot be stored.
    /// Then nothing of it is stored.
    pub fn receive(&self, delivery: &SyncDelivery, now_ms: i64) -> Result<(), Untaken> {
        let links = checked(delivery)?;
        if let Some(known) = self.known(&delivery.run)? {
            self.follows(delivery, &known, &links)?; // before a file is written that no record would name
        } else if delivery.after > 0 || delivery.begin.is_none() {
            return Err(Untaken::Gap { run: delivery.run.clone(), have: 0, after: delivery.after });
        }
        let folder = self.folder(&delivery.run);
        folder.create_folders()?;
        let _lock = RunLock::take(&folder, &delivery.run)?;
        write_large(&folder, delivery)?;
        let fail = self.fault("keep a run of another machine in");
        self.db.execute_batch("PRAGMA synchronous = FULL").map_err(&fail)?;
        let taken = self.take(delivery, &links, now_ms);
        self.db.execute_batch("PRAGMA synchronous = NORMAL").map_err(&fail)?;
        taken
    }

    fn take(&self, delivery: &SyncDelivery, links: &[ChainLink], now_ms: i64) -> Result<(), Untaken> {
        let fail = self.fault("keep a run of another machine in");
        let transaction = Transaction::new_unchecked(&self.db, TransactionBehavior::Immediate).map_err(&fail)?;
        let known = match (self.known(&delivery.run)?, &delivery.begin) {
            (Some(known), _) => known,
            (None, Some((head, task))) => {
                self.begin_received(head, task, &links[0], &delivery.machine, now_ms).map_err(&fail)?
            }
            (None, None) => {
                return Err(Untaken::Gap { run: delivery.run.clone(), have: 0, after: delivery.after });
            }
        };
        self.follows(delivery, &known, links)?;
        let mut bytes = 0;
        for ((record, _), link) in delivery.records.iter().zip(&links[1..]).filter(|((one, _), _)| one.seq > known.have)
        {
            bytes += append(&transaction, known.no, record, link).map_err(&fail)?;
        }
        let last = delivery.after + delivery.records.len() as u64;
        if last > known.have
            && let Some(link) = links.last()
        {
            let sql = "UPDATE runs SET safe_seq = ?2, safe_hash = ?3, bytes = bytes + ?4, ended_at = NULL, exit_code = NULL WHERE no = ?1";
            transaction.execute(sql, params![known.no, number(last), link, number(bytes)]).map_err(&fail)?;
        }
        // A late delivery takes nothing back: neither newer records of the run nor a later end.
        let is_new = |end: &&RunOutcome| last > known.have || known.ended_at.is_none_or(|at| end.ended_at_ms >= at);
        if let Some(end) = delivery.end.as_ref().filter(is_new).filter(|_| last >= known.have) {
            write_end(&transaction, known.no, end).map_err(&fail)?;
        }
        let update = "UPDATE received SET heard_at = max(heard_at, ?2) WHERE run = ?1";
        transaction.execute(update, [known.no, now_ms]).map_err(&fail)?;
        transaction.commit().map_err(&fail)?;
        Ok(())
    }

    fn known(&self, run: &RunId) -> Result<Option<Known>, StoreError> {
        let sql = "SELECT no, safe_seq, ended_at, machine FROM runs LEFT JOIN received ON run = no WHERE id = ?1";
        let known = self.db.query_row(sql, [run.as_str()], |row| {
            Ok(Known { no: row.get(0)?, have: unsigned(row, 1)?, ended_at: row.get(2)?, machine: row.get(3)? })
        });
        known.optional().map_err(self.fault("read"))
    }

    /// Checks that a delivery belongs to another machine's run, begins no later than the journal
    /// here ends, and agrees with the records here, including the one that it follows. The link of
    /// the head is that before the first record.
    fn follows(&self, delivery: &SyncDelivery, known: &Known, links: &[ChainLink]) -> Result<(), Untaken> {
        if known.machine.is_none() {
            return Err(Untaken::Own { run: delivery.run.clone() });
        }
        if delivery.after > known.have {
            return Err(Untaken::Gap { run: delivery.run.clone(), have: known.have, after: delivery.after });
        }
        let here = (delivery.after..=known.have).zip(links);
        here.into_iter().try_for_each(|(seq, link)| self.must_be(&delivery.run, known, seq, link))
    }

    /// Checks that a record here has this link.
    fn must_be(&self, run: &RunId, known: &Known, seq: u64, link: &ChainLink) -> Result<(), Untaken> {
        let ours: Option<ChainLink> = match seq {
            0 => Some(chain::initial_link(&self.head_of(run)?, &self.task(run)?)),
            _ => {
                let sql = "SELECT hash FROM events WHERE place = ?1";
                let found = self.db.query_row(sql, [place(known.no, seq)], |row| row.get(0)).optional();
                found.map_err(self.fault("read"))?
            }
        };
        if ours.as_ref() == Some(link) { Ok(()) } else { Err(Untaken::Forked { run: run.clone(), seq }) }
    }

    /// Returns the head with which the chain of a run begins. The key of another machine's run does
    /// not count as a key here, so it is not in the run's row.
    pub(super) fn head_of(&self, run: &RunId) -> Result<RunHead, StoreError> {
        let sql = "SELECT received.run_key FROM received JOIN runs ON no = run WHERE id = ?1";
        let key = self.db.query_row(sql, [run.as_str()], |row| row.get::<_, Option<String>>(0)).optional();
        let head = self.run(run)?.head;
        Ok(match key.map_err(self.fault("read"))? {
            Some(run_key) => RunHead { run_key, ..head },
            None => head,
        })
    }

    fn begin_received(
        &self,
        head: &RunHead,
        task: &TaskCopy,
        link: &ChainLink,
        machine: &str,
        now_ms: i64,
    ) -> rusqlite::Result<Known> {
        let keyless = RunHead { run_key: None, ..head.clone() };
        let no = super::runs::insert(&self.db, &keyless, task, link)?;
        // Received runs are not sent on.
        self.db.execute("UPDATE runs SET synced = ?2 WHERE no = ?1", [no, i64::MAX])?;
        let sql = "INSERT INTO received (run, machine, run_key, heard_at) VALUES (?1, ?2, ?3, ?4)";
        self.db.execute(sql, params![no, machine, head.run_key, now_ms])?;
        Ok(Known { no, have: 0, ended_at: None, machine: Some(machine.to_owned()) })
    }

    /// Returns the machine that drives a run, if it is another one.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn machine_of(&self, run: &RunId) -> Result<Option<String>, StoreError> {
        Ok(self.known(run)?.and_then(|known| known.machine))
    }
}

/// Checks that each record of a delivery fits the one before it. Returns the link that the delivery
/// follows, and the links of its records.
fn checked(delivery: &SyncDelivery) -> Result<Vec<ChainLink>, Untaken> {
    let torn = |seq| Untaken::Torn { run: delivery.run.clone(), seq };
    let mut link = chain::from_hex(&delivery.link).ok_or_else(|| torn(delivery.after))?;
    if let Some((head, task)) = &delivery.begin
        && (head.id != delivery.run || (delivery.after == 0 && chain::initial_link(head, task) != link))
    {
        return Err(torn(0));
    }
    let mut links = vec![link];
    for ((record, message), seq) in delivery.records.iter().zip(delivery.after + 1..) {
        let next = chain::next(&link, seq, record.at_ms, &record.kind, &chain::of(&record.data));
        // Numbers that are too large for the table cannot be those of a record.
        if record.seq != seq
            || u32::try_from(seq).is_err()
            || i64::try_from(record.at_ms).is_err()
            || chain::from_hex(message) != Some(next)
        {
            return Err(torn(seq));
        }
        link = next;
        links.push(link);
    }
    Ok(links)
}

/// Writes the files of large data, before the records that name them.
fn write_large(folder: &RunDir, delivery: &SyncDelivery) -> Result<(), StoreError> {
    let large = delivery.records.iter().map(|(record, _)| &record.data).filter(|data| data.len() > LARGEST_IN_ROW);
    large.into_iter().try_for_each(|data| write_blob(folder, &chain::hex(&chain::of(data)), data))
}

/// Adds a record, and returns the bytes that it takes.
fn append(db: &Connection, no: i64, record: &JournalRecord, link: &ChainLink) -> rusqlite::Result<u64> {
    let is_large = record.data.len() > LARGEST_IN_ROW;
    let (data, blob) = if is_large { (None, Some(chain::of(&record.data))) } else { (Some(&record.data), None) };
    let sql = "INSERT INTO events (place, at, kind, data, blob, hash) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    let row = (place(no, record.seq), number(record.at_ms), &record.kind, data, blob, link);
    db.prepare_cached(sql)?.execute(row)?;
    let file = if is_large { record.data.len() as u64 } else { 0 };
    Ok(in_rows(record.data.len()).saturating_add(file))
}

fn write_end(db: &Connection, no: i64, outcome: &RunOutcome) -> rusqlite::Result<()> {
    let RunOutcome { ended_at_ms, reason, exit_code, verified, cancelled, summary, cost_micros, .. } = outcome;
    let counts = [outcome.attempts, outcome.turns, outcome.tokens_in, outcome.tokens_out, outcome.tokens_cached];
    let [attempts, turns, tokens_in, tokens_out, cached] = counts.map(number);
    let sql = "UPDATE runs SET ended_at = ?2, reason = ?3, exit_code = ?4, verified = ?5, cancelled = ?6, attempts = ?7, turns = ?8, \
         tokens_in = ?9, tokens_out = ?10, tokens_cached = ?11, cost_micros = ?12, summary = ?13 WHERE no = ?1";
    let row = params![
        no,
        ended_at_ms,
        reason,
        exit_code,
        verified,
        cancelled,
        attempts,
        turns,
        tokens_in,
        tokens_out,
        cached,
        cost_micros.map(number),
        summary
    ];
    db.execute(sql, row).map(drop)
}
