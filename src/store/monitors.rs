//! Monitors, their check-ins, and pending notifications. The caller decides what they mean, inside
//! the transaction that writes them.

use super::events::unsigned;
use super::jobs::{KEPT, one};
use super::{Store, StoreError};
use rusqlite::{Connection, Row, params};

const COLUMNS: &str = "slug, name, schedule, zone, margin, max_runtime, owner, on_change, base, health, since, weighed";
/// An SQL condition: the job that owns the monitor no longer exists.
const IS_ORPHAN: &str = "owner IS NOT NULL AND NOT EXISTS (SELECT 1 FROM jobs WHERE jobs.name = owner)";
const CHECK_IN: &str = "no, id, status, source, at, due, duration, count";
/// The maximum number of check-ins in progress for each monitor. Older ones are removed, since they
/// will hardly end.
const OPEN: i64 = 100;
const NEWS: &str = "no, delivery, monitor, data, made, tries";

/// A monitor and its state. Times are milliseconds since 1970, durations milliseconds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields are named after what they hold")]
pub struct MonitorRow {
    pub slug: String,
    pub name: String,
    pub schedule: String,
    pub zone: String,
    pub margin_ms: i64,
    pub max_runtime_ms: Option<i64>,
    /// The scheduled task that owns the monitor.
    pub owner: Option<String>,
    /// The actions on a change of health, as JSON; empty for none.
    pub on_change: String,
    pub base: String,
    pub health: String,
    pub since_ms: i64,
    pub weighed_ms: i64,
    /// True if the task that owns the monitor no longer exists. Nothing is expected until the task
    /// is back. This field is never written.
    pub is_orphan: bool,
}

/// The result of writing or removing a monitor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MonitorWrite {
    /// The monitor was created.
    New,
    /// The monitor was changed or removed.
    Done,
    /// The monitor does not exist.
    Unknown,
    /// The monitor has another owner.
    Foreign,
}

/// A check-in. Its beginning, `in_progress`, and its end are one row.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields are named after what they hold")]
pub struct CheckInRow {
    pub no: i64,
    pub id: String,
    pub status: String,
    pub source: String,
    pub at_ms: i64,
    /// The due moment that was met or missed.
    pub due_ms: Option<i64>,
    pub duration_ms: Option<i64>,
    /// The number of moments that this check-in covers, if several were missed.
    pub count: u64,
}

/// The check-ins of a monitor that a decision needs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MonitorView {
    /// The moments that are met or missed, back to the requested time.
    pub known: Vec<i64>,
    /// The check-ins in progress, oldest first.
    pub open: Vec<CheckInRow>,
    /// The newest check-in with the requested id.
    pub called: Option<CheckInRow>,
}

/// A change of a monitor to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MonitorChange {
    /// A new check-in. Without an id, its number becomes its id. A check-in for a moment that is
    /// already met or missed is not added.
    Add(CheckInRow),
    /// The end of a check-in, or a change of one that has ended; `no` tells which one.
    Close(CheckInRow),
    /// The new standing: `base`, `health`, `since`, `weighed`.
    Stand(String, String, i64, i64),
    /// A new notification: the id of the delivery, its data, and the time.
    Tell(String, String, i64),
}

/// A pending notification.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields are named after what they hold")]
pub struct NewsRow {
    pub no: i64,
    pub delivery: String,
    pub monitor: String,
    pub data: String,
    pub made_ms: i64,
    pub tries: u64,
}

impl Store {
    /// Returns all monitors, sorted by name.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn monitors(&self) -> Result<Vec<MonitorRow>, StoreError> {
        let read = || -> rusqlite::Result<Vec<MonitorRow>> {
            let sql = format!("SELECT {COLUMNS}, {IS_ORPHAN} FROM monitors ORDER BY slug");
            self.db.prepare(&sql)?.query_map([], monitor)?.collect()
        };
        read().map_err(self.fault("read"))
    }

    /// Returns one monitor, or `None` if none exists with this name.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn monitor(&self, slug: &str) -> Result<Option<MonitorRow>, StoreError> {
        named(&self.db, slug).map_err(self.fault("read"))
    }

    /// Creates a monitor, or changes one of the same owner. An existing monitor keeps its health.
    /// With a changed schedule, moments of the old schedule are no longer expected. An empty
    /// `on_change` keeps the old value.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub fn put_monitor(&self, row: &MonitorRow) -> Result<MonitorWrite, StoreError> {
        self.alter("monitor", |db| {
            let was = named(db, &row.slug)?;
            if was.as_ref().is_some_and(|was| was.owner != row.owner) {
                return Ok(MonitorWrite::Foreign);
            }
            let sql = format!(
                "INSERT INTO monitors ({COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12) ON CONFLICT (slug) DO UPDATE SET \
                 name = excluded.name, schedule = excluded.schedule, zone = excluded.zone, margin = excluded.margin, \
                 max_runtime = excluded.max_runtime, on_change = iif(excluded.on_change = '', on_change, excluded.on_change), \
                 weighed = iif(schedule = excluded.schedule AND zone = excluded.zone, weighed, excluded.weighed)"
            );
            let MonitorRow { slug, name, schedule, zone, margin_ms, max_runtime_ms, owner, .. } = row;
            let MonitorRow { on_change, base, health, since_ms, weighed_ms, .. } = row;
            let all = params![slug, name, schedule, zone, margin_ms, max_runtime_ms, owner, on_change, base, health, since_ms, weighed_ms];
            db.execute(&sql, all)?;
            Ok(if was.is_none() { MonitorWrite::New } else { MonitorWrite::Done })
        })
    }

    /// Sets the actions on a change of a monitor's health. Returns `false` if no such monitor
    /// exists.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub fn tell_monitor(&self, slug: &str, on_change: &str) -> Result<bool, StoreError> {
        let sql = "UPDATE monitors SET on_change = ?2 WHERE slug = ?1";
        self.alter("monitor", |db| Ok(db.execute(sql, [slug, on_change])? > 0))
    }

    /// Removes a monitor of this owner, or one whose task no longer exists, with its check-ins and
    /// notifications.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub fn remove_monitor(&self, slug: &str, owner: Option<&str>) -> Result<MonitorWrite, StoreError> {
        self.alter("monitor", |db| {
            match named(db, slug)? {
                None => return Ok(MonitorWrite::Unknown),
                Some(was) if !was.is_orphan && was.owner.as_deref() != owner => return Ok(MonitorWrite::Foreign),
                Some(_) => {}
            }
            db.execute("DELETE FROM checkins WHERE monitor = ?1", [slug])?;
            db.execute("DELETE FROM monitor_news WHERE monitor = ?1", [slug])?;
            db.execute("DELETE FROM monitors WHERE slug = ?1", [slug])?;
            Ok(MonitorWrite::Done)
        })
    }

    /// Passes the known check-ins of a monitor to `decide`, and writes the decision in the same
    /// transaction. The known moments go back to `since_ms` at least. Returns `None` if there is no
    /// such monitor.
    ///
    /// # Errors
    /// When the database cannot be read or written.
    pub fn weigh_monitor<T>(
        &self,
        slug: &str,
        since_ms: i64,
        id: Option<&str>,
        decide: impl FnOnce(&MonitorRow, &MonitorView) -> (T, Vec<MonitorChange>),
    ) -> Result<Option<T>, StoreError> {
        self.alter("monitor", |db| {
            let Some(row) = named(db, slug)? else { return Ok(None) };
            let (decided, changes) = decide(&row, &view(db, &row, since_ms, id)?);
            changes.iter().try_for_each(|change| write(db, slug, change))?;
            let sql = "DELETE FROM checkins WHERE monitor = ?1 AND status <> 'in_progress' \
                 AND no <= (SELECT no FROM checkins WHERE monitor = ?1 ORDER BY no DESC LIMIT 1 OFFSET ?2)";
            db.execute(sql, params![slug, KEPT])?;
            let sql = "DELETE FROM checkins WHERE monitor = ?1 AND status = 'in_progress' AND no <= (SELECT no FROM checkins \
                 WHERE monitor = ?1 AND status = 'in_progress' ORDER BY no DESC LIMIT 1 OFFSET ?2)";
            db.execute(sql, params![slug, OPEN])?;
            Ok(Some(decided))
        })
    }

    /// Returns the check-ins of a monitor, newest first.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn check_ins(&self, slug: &str, limit: u32) -> Result<Vec<CheckInRow>, StoreError> {
        let read = || -> rusqlite::Result<Vec<CheckInRow>> {
            let sql = format!("SELECT {CHECK_IN} FROM checkins WHERE monitor = ?1 ORDER BY no DESC LIMIT ?2");
            self.db.prepare(&sql)?.query_map(params![slug, limit], check_in)?.collect()
        };
        read().map_err(self.fault("read"))
    }

    /// Returns the notifications that are due by now, oldest first.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn monitor_news(&self, now_ms: i64, limit: u32) -> Result<Vec<NewsRow>, StoreError> {
        let read = || -> rusqlite::Result<Vec<NewsRow>> {
            let sql =
                format!("SELECT {NEWS} FROM monitor_news WHERE ended IS NULL AND next <= ?1 ORDER BY no LIMIT ?2");
            self.db.prepare(&sql)?.query_map(params![now_ms, limit], news)?.collect()
        };
        read().map_err(self.fault("read"))
    }

    /// Records the result of a delivery: it is over, or is tried again at `again_ms`.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub fn told_monitor_news(
        &self,
        (no, delivery): (i64, &str),
        now_ms: i64,
        again_ms: Option<i64>,
        message: Option<&str>,
    ) -> Result<(), StoreError> {
        // A row's number may be reused after a monitor is removed; a delivery's id is not.
        let sql = "UPDATE monitor_news SET tries = tries + 1, said = ?4, next = coalesce(?3, next), ended = iif(?3 IS NULL, ?2, NULL)
             WHERE no = ?1 AND delivery = ?5";
        self.alter("monitor", |db| {
            db.execute(sql, params![no, now_ms, again_ms, message, delivery])?;
            db.execute("DELETE FROM monitor_news WHERE ended IS NOT NULL AND no <= ?1 - ?2", params![no, KEPT])
                .map(drop)
        })
    }
}

fn named(db: &Connection, slug: &str) -> rusqlite::Result<Option<MonitorRow>> {
    one(db.query_row(&format!("SELECT {COLUMNS}, {IS_ORPHAN} FROM monitors WHERE slug = ?1"), [slug], monitor))
}

fn view(db: &Connection, row: &MonitorRow, since_ms: i64, id: Option<&str>) -> rusqlite::Result<MonitorView> {
    let sql = "SELECT due FROM checkins WHERE monitor = ?1 AND due > ?2";
    let known = db
        .prepare(sql)?
        .query_map(params![row.slug, since_ms.min(row.weighed_ms)], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    let sql = format!("SELECT {CHECK_IN} FROM checkins WHERE monitor = ?1 AND status = 'in_progress' ORDER BY no");
    let open = db.prepare(&sql)?.query_map([&row.slug], check_in)?.collect::<rusqlite::Result<_>>()?;
    let sql = format!("SELECT {CHECK_IN} FROM checkins WHERE monitor = ?1 AND id = ?2 ORDER BY no DESC LIMIT 1");
    let called = id.map(|id| one(db.query_row(&sql, [&row.slug, id], check_in))).transpose()?.flatten();
    Ok(MonitorView { known, open, called })
}

fn write(db: &Connection, slug: &str, change: &MonitorChange) -> rusqlite::Result<()> {
    match change {
        MonitorChange::Add(CheckInRow { id, status, source, at_ms, due_ms, duration_ms, count, .. }) => {
            let count = i64::try_from(*count).unwrap_or(i64::MAX);
            let sql = "INSERT INTO checkins (monitor, id, status, source, at, due, duration, count) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) \
                 ON CONFLICT DO NOTHING";
            db.execute(sql, params![slug, id, status, source, at_ms, due_ms, duration_ms, count])?;
            db.execute("UPDATE checkins SET id = no WHERE no = last_insert_rowid() AND id = ''", []).map(drop)
        }
        MonitorChange::Close(CheckInRow { no, status, source, duration_ms, .. }) => {
            let sql = "UPDATE checkins SET status = ?3, source = ?4, duration = ?5 WHERE monitor = ?1 AND no = ?2";
            db.execute(sql, params![slug, no, status, source, duration_ms]).map(drop)
        }
        MonitorChange::Stand(base, health, since, weighed) => {
            let sql = "UPDATE monitors SET base = ?2, health = ?3, since = ?4, weighed = ?5 WHERE slug = ?1";
            db.execute(sql, params![slug, base, health, since, weighed]).map(drop)
        }
        MonitorChange::Tell(delivery, data, at_ms) => {
            let sql = "INSERT INTO monitor_news (delivery, monitor, data, made, next) VALUES (?2, ?1, ?3, ?4, ?4)";
            db.execute(sql, params![slug, delivery, data, at_ms]).map(drop)
        }
    }
}

fn monitor(row: &Row<'_>) -> rusqlite::Result<MonitorRow> {
    Ok(MonitorRow {
        slug: row.get(0)?,
        name: row.get(1)?,
        schedule: row.get(2)?,
        zone: row.get(3)?,
        margin_ms: row.get(4)?,
        max_runtime_ms: row.get(5)?,
        owner: row.get(6)?,
        on_change: row.get(7)?,
        base: row.get(8)?,
        health: row.get(9)?,
        since_ms: row.get(10)?,
        weighed_ms: row.get(11)?,
        is_orphan: row.get(12)?,
    })
}

fn check_in(row: &Row<'_>) -> rusqlite::Result<CheckInRow> {
    Ok(CheckInRow {
        no: row.get(0)?,
        id: row.get(1)?,
        status: row.get(2)?,
        source: row.get(3)?,
        at_ms: row.get(4)?,
        due_ms: row.get(5)?,
        duration_ms: row.get(6)?,
        count: unsigned(row, 7)?,
    })
}

fn news(row: &Row<'_>) -> rusqlite::Result<NewsRow> {
    Ok(NewsRow {
        no: row.get(0)?,
        delivery: row.get(1)?,
        monitor: row.get(2)?,
        data: row.get(3)?,
        made_ms: row.get(4)?,
        tries: unsigned(row, 5)?,
    })
}
