//! Removing old runs: their rows, their folders, the space that they took. Never one that is being driven, nor a young one that can be
//! taken up again.

use super::events::{place, unsigned};
use super::lock::{self, Lock};
use super::{RunDir, Store, StoreError, clear, make_private, schema};
use crate::fail_point::reach;
use crate::id::RunId;
use rusqlite::{Row, Transaction, TransactionBehavior};
use std::fs;
use std::time::{Duration, SystemTime};
use walkdir::{DirEntry, WalkDir};

/// Bytes of a page of the database, and of a block of the disk.
const PAGE: u64 = 4096;
/// How long after its folder a run has its row at the latest.
const BEGINNING: Duration = Duration::from_secs(10 * 60);
/// The folder of a run with its rooms.
const ROOMS: &str = "rooms";
/// What a record has beside its data: its place, time, kind and hash.
const HEAD: u64 = 80;

/// How long and how much is kept. A run goes as soon as one of these says so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retention {
    /// Milliseconds since the end of a run, or since the start of one that did not end.
    pub age_ms: Option<i64>,
    /// So many of the newest runs.
    pub runs: Option<u64>,
    /// So many bytes of the newest runs on the disk: journals, logs, outputs.
    pub bytes: Option<u64>,
}

impl Default for Retention {
    /// 30 days, 1000 runs, 1 GiB.
    fn default() -> Self {
        Self { age_ms: Some(30 * 24 * 3_600_000), runs: Some(1000), bytes: Some(1 << 30) }
    }
}

/// What was removed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pruned {
    /// The runs, the newest first.
    pub runs: Vec<RunId>,
    /// Their bytes.
    pub bytes: u64,
}

impl Pruned {
    fn add(&mut self, run: Kept) {
        self.bytes = self.bytes.saturating_add(run.bytes);
        self.runs.push(run.id);
    }
}

/// What is to be known of a run to decide whether it goes.
struct Kept {
    no: i64,
    id: RunId,
    at_ms: i64,
    has_ended: bool,
    bytes: u64,
}

impl Store {
    /// Removes the runs that are not to be kept at this time, in milliseconds since 1970. Cheap when there are none.
    ///
    /// # Errors
    /// When the database or a folder cannot be read or removed; what was begun is finished the next time.
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

    /// Removes the folders of runs that never began: whoever made them died before there was a row, or before the folder was whole. One that is
    /// young may be about to have one.
    fn sweep(&self) -> Result<(), StoreError> {
        for entry in fs::read_dir(self.project.join("runs")).into_iter().flatten().flatten() {
            let is_old = entry.metadata().and_then(|meta| meta.modified()).is_ok_and(is_past);
            let run = RunId::new(entry.file_name().to_string_lossy());
            let folder = self.folder(&run);
            let is_known = || match self.run(&run) {
                Err(StoreError::Unknown { .. }) => Ok(false),
                known => known.map(|_| true),
            };
            if !is_old || is_known()? {
                continue;
            }
            if let Ok(_lock) = Lock::take_now(&folder, &run)
                && !is_known()?
            {
                remove_all(folder.path())?;
            }
        }
        Ok(())
    }

    /// Removes the rooms that a dead process has left of a run. Whoever takes it up makes them anew.
    fn clear_rooms(&self, run: &Kept) -> Result<(), StoreError> {
        let folder = self.folder(&run.id);
        let rooms = folder.path().join(ROOMS);
        match rooms.exists().then(|| Lock::take_now(&folder, &run.id)) {
            Some(Ok(_lock)) => remove_all(&rooms),
            Some(Err(_)) | None => Ok(()),
        }
    }

    /// What [`Store::prune`] would remove now.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn would_prune(&self, keep: &Retention, now_ms: i64) -> Result<Pruned, StoreError> {
        let mut pruned = Pruned::default();
        let beyond = beyond(self.kept()?, keep, now_ms).into_iter();
        beyond.filter(|run| lock::holder(&self.folder(&run.id)).is_none()).for_each(|run| pruned.add(run));
        Ok(pruned)
    }

    /// All runs, the newest first.
    fn kept(&self) -> Result<Vec<Kept>, StoreError> {
        let sql = "SELECT no, id, coalesce(ended_at, started_at), ended_at IS NOT NULL, coalesce(bytes, 0) FROM runs ORDER BY no DESC";
        let kept = |row: &Row<'_>| {
            let id = RunId::new(row.get::<_, String>(1)?);
            let (has_ended, rows) = (row.get(3)?, unsigned(row, 4)?);
            let files = if has_ended { 0 } else { in_files(&self.folder(&id)) }; // they are counted at the end
            Ok(Kept { no: row.get(0)?, id, at_ms: row.get(2)?, has_ended, bytes: rows.saturating_add(files) })
        };
        let read = || -> rusqlite::Result<Vec<Kept>> { self.db.prepare(sql)?.query_map([], kept)?.collect() };
        read().map_err(self.fault("read"))
    }

    /// Removes a run unless it is being driven. The folder is put aside first: if this is interrupted, the row is still there to say
    /// that the run must go, and the rest of the folder is found.
    fn remove(&self, run: &Kept) -> Result<bool, StoreError> {
        let folder = self.folder(&run.id);
        let _lock = match Lock::take_now(&folder, &run.id) {
            Ok(lock) => Some(lock),
            Err(StoreError::Held { .. }) => return Ok(false),
            Err(_) if !folder.path().exists() => None,
            Err(error) => return Err(error),
        };
        let gone = self.project.join("removed");
        let place_in = |how_far| reach("removal", how_far).map_err(|e| StoreError::new("remove", folder.path(), e));
        place_in("begun")?;
        make_private(&gone)?;
        let aside = fs::rename(folder.path(), gone.join(run.id.as_str()));
        if let (Err(error), true) = (aside, folder.path().exists()) {
            return Err(StoreError::new("remove", folder.path(), error));
        }
        place_in("aside")?;
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
        place_in("done").map(|()| true)
    }
}

/// Those of the runs that are not to be kept, driven ones among them.
fn beyond(kept: Vec<Kept>, keep: &Retention, now_ms: i64) -> Vec<Kept> {
    let (mut beyond, mut bytes) = (Vec::new(), 0_u64);
    for (place, run) in (0_u64..).zip(kept) {
        // What a run has that did not end is no reason to forget another one.
        bytes = bytes.saturating_add(if run.has_ended { run.bytes } else { 0 });
        let is_old = keep.age_ms.is_some_and(|age| now_ms.saturating_sub(run.at_ms) > age);
        let is_beyond = keep.runs.is_some_and(|most| place >= most) || keep.bytes.is_some_and(|most| bytes > most);
        if is_old || (is_beyond && run.has_ended) {
            beyond.push(run);
        }
    }
    beyond
}

/// What a record with so many bytes of data takes in the database. Two that are larger than half a page are not on one.
pub(super) fn in_rows(data: usize) -> u64 {
    let row = if data > super::journal::LARGEST_IN_ROW { HEAD } else { HEAD.saturating_add(data as u64) };
    if row > PAGE / 2 { row.next_multiple_of(PAGE) } else { row }
}

/// What the files of a run take on the disk, but for its rooms, which pass.
pub(super) fn in_files(folder: &RunDir) -> u64 {
    let is_kept = |entry: &DirEntry| entry.depth() != 1 || entry.file_name() != ROOMS;
    let files = WalkDir::new(folder.path()).into_iter().filter_entry(is_kept);
    let files = files.flatten().filter_map(|entry| entry.metadata().ok());
    files.filter(|meta| meta.is_file()).map(|meta| meta.len().next_multiple_of(PAGE)).fold(0, u64::saturating_add)
}

/// Whether this is longer ago than any run takes to begin.
fn is_past(then: SystemTime) -> bool {
    then.elapsed().is_ok_and(|age| age > BEGINNING)
}

fn remove_all(folder: &std::path::Path) -> Result<(), StoreError> {
    clear(folder).map_err(|error| StoreError::new("remove", folder, error))
}
