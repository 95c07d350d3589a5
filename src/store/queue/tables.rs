//! The tables of a queue.

use super::super::schema::Form;

/// The form of a queue's database. The application id is "fldq".
pub(super) const FORM: Form<'static> = Form { application: 0x666c_6471, tables: &[TABLES] };

/// `no` is the order of submission. `token` is the number of the job's latest lease, and `fence`
/// has the highest number of all. No number is used twice, even if jobs are forgotten and submitted
/// again. `changed` is the time at which the job entered its state. Times are those of `Clock`.
const TABLES: &str = "
    CREATE TABLE jobs (
        no INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, batch TEXT NOT NULL, pool TEXT NOT NULL, priority INTEGER NOT NULL,
        payload TEXT NOT NULL, deliveries INTEGER NOT NULL, changed INTEGER NOT NULL, not_before INTEGER NOT NULL,
        state TEXT NOT NULL DEFAULT 'queued' CHECK (state IN ('queued', 'running', 'done', 'dead', 'cancelled')),
        attempt INTEGER NOT NULL DEFAULT 0, token INTEGER NOT NULL DEFAULT 0, worker TEXT, lease_until INTEGER,
        is_cancelling INTEGER NOT NULL DEFAULT 0,
        reason TEXT CHECK (reason IN ('vanished', 'failed', 'refused')), why TEXT,
        CHECK ((state = 'running') = (lease_until IS NOT NULL))
    ) STRICT;
    CREATE INDEX jobs_waiting ON jobs (pool, priority, no) WHERE state = 'queued';
    CREATE INDEX jobs_running ON jobs (pool, lease_until) WHERE state = 'running';
    CREATE INDEX jobs_of_batch ON jobs (batch, no);
    CREATE TABLE results (
        job INTEGER PRIMARY KEY, token INTEGER NOT NULL, attempt INTEGER NOT NULL, worker TEXT NOT NULL, manifest TEXT NOT NULL
    ) STRICT;
    CREATE TABLE pools (name TEXT PRIMARY KEY, most INTEGER, paused_until INTEGER NOT NULL DEFAULT 0) STRICT, WITHOUT ROWID;
    CREATE TABLE fence (last INTEGER NOT NULL) STRICT;
    INSERT INTO fence VALUES (0);
    CREATE TABLE clocks (place TEXT PRIMARY KEY, ahead INTEGER NOT NULL) STRICT, WITHOUT ROWID;";
