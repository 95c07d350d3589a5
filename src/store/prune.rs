//! Removes old runs: their rows, their folders and their disk space. A run that a process is
//! executing is never removed. An unfinished run is removed only if it is older than the age limit.

use super::events::{place, unsigned};
use super::lock::{self, RunLock};
use super::{RunDir, Store, StoreError, clear, make_private, schema};
use crate::fail_point::reach;
use crate::id::RunId;
use rusqlite::{Row, Transaction, TransactionBehavior};
use std::fs;
use std::time::{Duration, SystemTime};
use walkdir::{DirEntry, WalkDir};

/// The bytes of a page of the database, and of a block of the disk.
const PAGE: u64 = 4096;
/// The longest time from the creation of a run's folder to that of its row.
const BEGINNING: Duration = Duration::from_secs(10 * 60);
/// The subfolder of a run with its rooms.
const ROOMS: &str = "rooms";
/// The bytes of a record besides its data: its place, time, kind and hash.
const HEAD: u64 = 80;

/// Limits on the runs that are kept. A run beyond any limit is removed; a run that did not end is
/// removed only because of its age.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retention {
    /// The maximum number of milliseconds since the end of a run, or since the start of a run that
    /// did not end.
    pub age_ms: Option<i64>,
    /// The number of newest runs to keep.
    pub runs: Option<u64>,
    /// The bytes of the newest runs to keep on the disk: journals, logs, outputs.
    pub bytes: Option<u64>,
}

impl Default for Retention {
    /// 30 days, 1000 runs, 1 GiB.
    fn default() -> Self {
        Self { age_ms: Some(30 * 24 * 3_600_000), runs: Some(1000), bytes: Some(1 << 30) }
    }
}

/// The removed runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pruned {
    /// The runs, newest first.
    pub runs: Vec<RunId>,
    /// The bytes that the runs took.
    pub bytes: u64,
}

impl Pruned {
    fn add(&mut self, run: Kept) {
        self.bytes = self.bytes.saturating_add(run.bytes);
        self.runs.push(run.id);
    }
}

/// The properties of a run that determine its removal.
struct Kept {
    no: i64,
    id: RunId,
    at_ms: i64,
    has_ended: bool,
    bytes: u64,
}

impl Store {
    /// Removes the runs beyond the limits at this time, in milliseconds since 1970. This is cheap
    /// if none exist.
    ///
    /// # Errors
    /// When the database or a folder cannot be read or removed. The next call completes what was
    /// begun.
    pub fn prune(&self, keep: &Retention, now_ms: i64) -> Result<Pruned, StoreError> {
        let gone = self.project.join("removed");
        remove_all(&gone)?;
        self.sweep()?;
        let kept = self.kept()?;
        kept.iter().filter(|run| !run.has_ended).try_for_each(|run| self.clear_rooms(run))?;
        let mut pruned = Pruned::default();
        for run in beyond(kept, keep, now_ms) {
            if self.remove(&run)? {
                pruned.add(run);
            }
        }
        if !pruned.runs.is_empty() {
            remove_all(&gone)?;
            schema::shrink(&self.db).map_err(self.fault("shrink"))?;
        }
        Ok(pruned)
    }

    /// Removes run folders without a row in the database. They remain if a process dies after it
    /// creates the folder and before it writes the row. A folder younger than ten minutes is kept,
    /// because its process may still write the row.
    fn sweep(&self) -> Result<(), StoreError> {
        for entry in fs::read_dir(self.project.join("runs")).into_iter().flatten().flatten() {
            let is_old = entry.metadata().and_then(|meta| meta.modified()).is_ok_and(is_older_than_longest_start);
            let run = RunId::new(entry.file_name().to_string_lossy());
            let folder = self.folder(&run);
            let is_known = || match self.run(&run) {
                Err(StoreError::Unknown { .. }) => Ok(false),
                known => known.map(|_| true),
            };
            if !is_old || is_known()? {
                continue;
            }
            if let Ok(_lock) = RunLock::take_now(&folder, &run)
                && !is_known()?
            {
                remove_all(folder.path())?;
            }
        }
        Ok(())
    }

    /// Removes the rooms that a dead process left in a run's folder. A resumed run creates new
    /// rooms.
    fn clear_rooms(&self, run: &Kept) -> Result<(), StoreError> {
        let folder = self.folder(&run.id);
        let rooms = folder.path().join(ROOMS);
        match rooms.exists().then(|| RunLock::take_now(&folder, &run.id)) {
            Some(Ok(_lock)) => remove_all(&rooms),
            Some(Err(_)) | None => Ok(()),
        }
    }

    /// Returns what [`Store::prune`] would remove now.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn would_prune(&self, keep: &Retention, now_ms: i64) -> Result<Pruned, StoreError> {
        let mut pruned = Pruned::default();
        let beyond = beyond(self.kept()?, keep, now_ms).into_iter();
        beyond.filter(|run| lock::holder(&self.folder(&run.id)).is_none()).for_each(|run| pruned.add(run));
        Ok(pruned)
    }

    /// Returns all runs, newest first.
    fn kept(&self) -> Result<Vec<Kept>, StoreError> {
        let sql = "SELECT no, id, coalesce(ended_at, started_at), ended_at IS NOT NULL, coalesce(bytes, 0) FROM runs ORDER BY no DESC";
        let kept = |row: &Row<'_>| {
            let id = RunId::new(row.get::<_, String>(1)?);
            let (has_ended, rows) = (row.get(3)?, unsigned(row, 4)?);
            let files = if has_ended { 0 } else { in_files(&self.folder(&id)) }; // the `bytes` of an ended run include them
            Ok(Kept { no: row.get(0)?, id, at_ms: row.get(2)?, has_ended, bytes: rows.saturating_add(files) })
        };
        let read = || -> rusqlite::Result<Vec<Kept>> { self.db.prepare(sql)?.query_map([], kept)?.collect() };
        read().map_err(self.fault("read"))
    }

    /// Removes a run unless a process is executing it. The folder is moved aside first. After an
    /// interruption, the row still marks the run for removal, and the rest of the folder is found.
    fn remove(&self, run: &Kept) -> Result<bool, StoreError> {
        let folder = self.folder(&run.id);
        let _lock = match RunLock::take_now(&folder, &run.id) {
            Ok(lock) => Some(lock),
            Err(StoreError::Held { .. }) => return Ok(false),
            Err(_) if !folder.path().exists() => None,
            Err(error) => return Err(error),
        };
        let gone = self.project.join("removed");
        let fail_point = |stage| reach("removal", stage).map_err(|e| StoreError::new("remove", folder.path(), e));
        fail_point("begun")?;
        make_private(&gone)?;
        let aside = fs::rename(folder.path(), gone.join(run.id.as_str()));
        if let (Err(error), true) = (aside, folder.path().exists()) {
            return Err(StoreError::new("remove", folder.path(), error));
        }
        fail_point("aside")?;
        let work = || -> rusqlite::Result<()> {
            let transaction = Transaction::new_unchecked(&self.db, TransactionBehavior::Immediate)?;
            let records = "DELETE FROM events WHERE place BETWEEN ?1 AND ?2";
            transaction.execute(records, [place(run.no, 0), place(run.no, u64::MAX)])?;
            let rows = [
                "DELETE FROM tasks WHERE run = ?1",
                "DELETE FROM received WHERE run = ?1",
                "DELETE FROM runs WHERE no = ?1",
            ];
            for sql in rows {
                transaction.execute(sql, [run.no])?;
            }
            transaction.commit()
        };
        work().map_err(self.fault("remove a run from"))?;
        fail_point("done").map(|()| true)
    }
}

/// Returns the runs beyond the limits, including runs that a process is executing.
fn beyond(kept: Vec<Kept>, keep: &Retention, now_ms: i64) -> Vec<Kept> {
    let (mut beyond, mut bytes) = (Vec::new(), 0_u64);
    for (place, run) in (0_u64..).zip(kept) {
        // The size of a run that did not end must not lead to the removal of another run.
        bytes = bytes.saturating_add(if run.has_ended { run.bytes } else { 0 });
        let is_old = keep.age_ms.is_some_and(|age| now_ms.saturating_sub(run.at_ms) > age);
        let is_beyond = keep.runs.is_some_and(|most| place >= most) || keep.bytes.is_some_and(|most| bytes > most);
        if is_old || (is_beyond && run.has_ended) {
            beyond.push(run);
        }
    }
    beyond
}

/// Returns the bytes that a record with so many bytes of data takes in the database. A page holds
/// only one record larger than half a page.
pub(super) fn in_rows(data: usize) -> u64 {
    let row = if data > super::journal::LARGEST_IN_ROW { HEAD } else { HEAD.saturating_add(data as u64) };
    if row > PAGE / 2 { row.next_multiple_of(PAGE) } else { row }
}

/// Returns the bytes of a run's files on the disk, without its rooms, which are temporary.
pub(super) fn in_files(folder: &RunDir) -> u64 {
    let is_kept = |entry: &DirEntry| entry.depth() != 1 || entry.file_name() != ROOMS;
    let files = WalkDir::new(folder.path()).into_iter().filter_entry(is_kept);
    let files = files.flatten().filter_map(|entry| entry.metadata().ok());
    files.filter(|meta| meta.is_file()).map(|meta| meta.len().next_multiple_of(PAGE)).fold(0, u64::saturating_add)
}

/// Returns true if this is longer ago than any run takes to begin.
fn is_older_than_longest_start(then: SystemTime) -> bool {
    then.elapsed().is_ok_and(|age| age > BEGINNING)
}

fn remove_all(folder: &std::path::Path) -> Result<(), StoreError> {
    clear(folder).map_err(|error| StoreError::new("remove", folder, error))
}
