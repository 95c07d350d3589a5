//! Data that was not sent to a server yet. The journal serves as the queue, so no separate one is
//! kept.

use super::events::unsigned;
use super::{Store, StoreError, lock};
use crate::id::RunId;
use rusqlite::params;

/// The unsent data of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unsent {
    /// The run.
    pub run: RunId,
    /// The number of the first unsent record; 1 if nothing was sent, so that the run's head must be
    /// sent first.
    pub from: u64,
    /// The number of the newest record. If it is before `from`, only the end of the run is unsent.
    pub upto: u64,
    /// True if the run has ended, so that its outcome must be sent after the records.
    pub has_ended: bool,
}

/// The runs to search for unsent data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhichUnsent {
    /// Runs that began after the first call of [`Store::begin_sending`].
    Begun,
    /// All runs, including earlier ones.
    All,
}

impl Store {
    /// Marks all new runs from now on for sending. The mark is permanent, and further calls change
    /// nothing.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub fn begin_sending(&self) -> Result<(), StoreError> {
        let sql = "INSERT OR IGNORE INTO sending (one, beyond) SELECT 1, coalesce(max(no), 0) FROM runs";
        self.db.execute(sql, []).map(drop).map_err(self.fault("write"))
    }

    /// Returns the runs with unsent data, oldest first. Runs of other machines are not among them.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn unsent(&self, which: WhichUnsent) -> Result<Vec<Unsent>, StoreError> {
        let beyond = match which {
            WhichUnsent::Begun => "coalesce((SELECT beyond FROM sending), 9223372036854775807)",
            WhichUnsent::All => "-1",
        };
        // The outcome counts as one more record. Most runs are sent completely, which their rows
        // show.
        let sql = format!(
            "SELECT id, synced, newest, ended FROM (SELECT no, id, synced, ended_at IS NOT NULL AS ended, \
             (SELECT coalesce(max(place) & 4294967295, 0) FROM events WHERE place BETWEEN no << 32 AND (no << 32) + 4294967295) \
             AS newest FROM runs WHERE no > {beyond} AND NOT (ended_at IS NOT NULL AND synced > safe_seq)) \
             WHERE synced < newest + ended ORDER BY no"
        );
        let read = || -> rusqlite::Result<Vec<Unsent>> {
            let mut statement = self.db.prepare(&sql)?;
            let rows = statement.query_map([], |row| {
                let (run, from) = (RunId::new(row.get::<_, String>(0)?), unsigned(row, 1)? + 1);
                Ok(Unsent { run, from, upto: unsigned(row, 2)?, has_ended: row.get(3)? })
            })?;
            rows.collect()
        };
        read().map_err(self.fault("read"))
    }

    /// Returns the runs that are driven here and known to a server, oldest first, so that the
    /// server can learn that they continue. They may have no unsent data.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn sent_and_driven(&self) -> Result<Vec<Unsent>, StoreError> {
        // Runs of other machines count as sent beyond every record.
        let sql = "SELECT id, synced FROM runs WHERE no > coalesce((SELECT beyond FROM sending), 9223372036854775807) \
             AND ended_at IS NULL AND synced BETWEEN 1 AND 4294967295 ORDER BY no";
        let read = || -> rusqlite::Result<Vec<Unsent>> {
            let mut statement = self.db.prepare(sql)?;
            let rows = statement.query_map([], |row| {
                let (run, upto) = (RunId::new(row.get::<_, String>(0)?), unsigned(row, 1)?);
                Ok(Unsent { run, from: upto + 1, upto, has_ended: false })
            })?;
            rows.collect()
        };
        let known = read().map_err(self.fault("read"))?;
        Ok(known.into_iter().filter(|one| lock::holder(&self.folder(&one.run)).is_some()).collect())
    }

    /// Notes that a server has acknowledged the records of a run up to this one, and its outcome if
    /// `with_end`. A late call does not take back what was acknowledged before.
    ///
    /// # Errors
    /// When no such run exists, or the database cannot be written.
    pub fn mark_sent(&self, run: &RunId, upto: u64, with_end: bool) -> Result<(), StoreError> {
        let sent = i64::try_from(upto.saturating_add(u64::from(with_end))).unwrap_or(i64::MAX);
        let sql = "UPDATE runs SET synced = max(synced, ?2) WHERE id = ?1";
        let changed = self.db.execute(sql, params![run.as_str(), sent]).map_err(self.fault("write"))?;
        if changed == 0 { Err(StoreError::Unknown { name: run.to_string() }) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{begin, reopen, store};
    use super::*;
    use crate::store::RunOutcome;

    fn queue(store: &Store) -> Vec<(String, u64, u64, bool)> {
        let unsent = store.unsent(WhichUnsent::All).unwrap().into_iter();
        unsent.map(|unsent| (unsent.run.to_string(), unsent.from, unsent.upto, unsent.has_ended)).collect()
    }

    #[test]
    fn what_was_written_and_not_acknowledged_waits_in_its_order_the_end_of_a_run_too() {
        let (_home, store) = store();
        let (one, two) = (RunId::new("one"), RunId::new("two"));
        let mut journal = begin(&store, "one");
        assert_eq!(queue(&store), []);
        (1..=3).for_each(|at| journal.append(at, "A", "{}").unwrap());
        begin(&store, "two").append(1, "A", "{}").unwrap();
        assert_eq!(queue(&store), [("one".into(), 1, 3, false), ("two".into(), 1, 1, false)]);
        store.mark_sent(&two, 1, false).unwrap();
        store.mark_sent(&one, 2, false).unwrap();
        store.mark_sent(&one, 1, false).unwrap(); // a late call
        assert_eq!(queue(&store), [("one".into(), 3, 3, false)]);
        store.mark_sent(&one, 3, false).unwrap();
        assert_eq!(queue(&store), []);
        journal.finish(&RunOutcome::default()).unwrap();
        assert_eq!(queue(&store), [("one".into(), 4, 3, true)]);
        store.mark_sent(&one, 3, true).unwrap();
        assert_eq!(queue(&store), []);
        assert!(matches!(store.mark_sent(&RunId::new("no"), 1, true), Err(StoreError::Unknown { .. })));
    }

    #[test]
    fn an_end_that_is_taken_back_was_not_sent_and_the_records_were() {
        let (_home, store) = store();
        let mut journal = begin(&store, "r");
        journal.append(1, "A", "{}").unwrap();
        journal.finish(&RunOutcome::default()).unwrap();
        drop(journal);
        store.mark_sent(&RunId::new("r"), 1, true).unwrap();
        assert_eq!(queue(&store), []);
        let (mut journal, _) = reopen(&store, "r").unwrap();
        assert_eq!(queue(&store), []);
        journal.append(2, "A", "{}").unwrap();
        assert_eq!(queue(&store), [("r".into(), 2, 2, false)]);
    }

    #[test]
    fn what_began_before_anything_was_sent_is_sent_only_when_all_is_asked_for() {
        let (_home, store) = store();
        begin(&store, "old").append(1, "A", "{}").unwrap();
        let begun =
            |store: &Store| store.unsent(WhichUnsent::Begun).unwrap().into_iter().map(|one| one.run.to_string());
        assert_eq!(begun(&store).count(), 0);
        store.begin_sending().unwrap();
        begin(&store, "new").append(1, "A", "{}").unwrap();
        store.begin_sending().unwrap();
        assert_eq!(begun(&store).collect::<Vec<_>>(), ["new"]);
        assert_eq!(store.unsent(WhichUnsent::All).unwrap().len(), 2);
    }
}
