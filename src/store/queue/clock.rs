//! The clock of a queue, in milliseconds. It is the same for all processes of a machine, unaffected
//! by changes of the time of day, and never earlier than a time in the queue.
//!
//! It follows the kernel's monotonic clock, so a change of the time of day neither ends nor
//! prolongs a lease. It pauses while the machine sleeps, because the holders of leases sleep, too.
//! The monotonic clock restarts with the machine. The first process after a start stores the offset
//! to the time of day for all processes. So a lease from before a restart ends at most its whole
//! term after the restart.

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior};
use rustix::time::{ClockId, clock_gettime};
use std::fs;
use std::time::Duration;

/// Selects the latest time of any event in the queue.
const LATEST: &str = "SELECT coalesce(max(changed), 0) FROM jobs";

/// The offset of the queue's time from the kernel's clock, in milliseconds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Clock(i64);

impl Clock {
    /// Reads the offset that all processes share since the machine started. If this start has no
    /// known id, returns an offset as of now.
    pub(super) fn read(db: &Connection) -> rusqlite::Result<Self> {
        let place = place();
        let known = "SELECT ahead FROM clocks WHERE place = ?1";
        if let Some(ahead) = db.query_row(known, [&place], |row| row.get(0)).optional()? {
            return Ok(Self(ahead));
        }
        let transaction = Transaction::new_unchecked(db, TransactionBehavior::Immediate)?;
        let latest: i64 = transaction.query_row(LATEST, [], |row| row.get(0))?;
        let ahead = Timestamp::now().as_millisecond().max(latest) - ticks();
        let Some(place) = place else { return Ok(Self(ahead)) };
        transaction.execute("DELETE FROM clocks WHERE place NOT LIKE ?1 || '%'", [start_of(&place)])?;
        transaction.execute("INSERT INTO clocks VALUES (?1, ?2) ON CONFLICT DO NOTHING", (&place, ahead))?;
        let ahead = transaction.query_row(known, [&place], |row| row.get(0))?;
        transaction.commit()?;
        Ok(Self(ahead))
    }

    /// Returns the current time.
    pub(super) fn now(self) -> i64 {
        ticks().saturating_add(self.0)
    }

    /// Returns the time that is `time` later than `now`.
    pub(super) fn after(now: i64, time: Duration) -> i64 {
        now.saturating_add(i64::try_from(time.as_millis()).unwrap_or(i64::MAX))
    }

    /// Returns the duration between two times; zero if `to` is the earlier one.
    pub(super) fn between(from: i64, to: i64) -> Duration {
        Duration::from_millis(u64::try_from(to.saturating_sub(from)).unwrap_or(0))
    }
}

/// Returns an id of this start of the machine and of the time namespace, whose processes see the
/// same clock. Returns `None` if the start has no known id.
fn place() -> Option<String> {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let clocks = fs::read_link("/proc/self/ns/time").ok();
    Some(format!("{} {}", boot.trim(), clocks.unwrap_or_default().display()))
}

fn start_of(place: &str) -> &str {
    place.split(' ').next().unwrap_or_default()
}

fn ticks() -> i64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec.saturating_mul(1000).saturating_add(now.tv_nsec / 1_000_000)
}

#[cfg(test)]
mod tests {
    use super::super::super::schema;
    use super::super::tables::FORM;
    use super::*;

    #[test]
    fn everybody_reads_the_same_clock_and_after_a_restart_it_goes_on_and_never_back() {
        let home = crate::test_support::temp_dir();
        let db = schema::open_form(&home.path().join("queue.db"), &FORM).unwrap();
        let clock = Clock::read(&db).unwrap();
        assert_eq!(Clock::read(&db).unwrap().0, clock.0);
        let day = Duration::from_secs(24 * 60 * 60);
        let add = "INSERT INTO jobs (id, batch, pool, priority, payload, deliveries, not_before, changed) \
            VALUES ('a', 'b', 'p', 1, '', 1, 0, ?1)";
        let latest = Clock::after(clock.now(), day);
        db.execute(add, [latest]).unwrap();
        db.execute("UPDATE clocks SET place = 'another start'", []).unwrap();
        let after = Clock::read(&db).unwrap();
        assert!(after.now() >= latest, "the time of day was set back meanwhile");
        assert_eq!(db.query_row("SELECT count(*) FROM clocks", [], |row| row.get::<_, i64>(0)).unwrap(), 1);
    }
}
