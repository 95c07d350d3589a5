//! Tests of truncated, overwritten, older and foreign databases: reads return what was written, or
//! fail.

use super::tests::{begin, records, reopen, store};
use super::*;
use std::fs;
use std::os::unix::fs::FileExt;

/// A copy of a project's database and its write-ahead log, for a separate store.
struct Picture {
    db: Vec<u8>,
    log: Vec<u8>,
}

impl Picture {
    fn of(store: &Store) -> Self {
        let log = fs::read(store.project.join("fledge.db-wal")).unwrap_or_default();
        Self { db: fs::read(store.path()).unwrap(), log }
    }

    /// Reads the records of the run `r` from this copy.
    fn records(&self, home: &Path) -> Result<Vec<JournalRecord>, StoreError> {
        let project = project_dir(home, Path::new("/a/app"));
        make_private(&project).unwrap();
        let _there_may_be_none = fs::remove_file(project.join("fledge.db-shm"));
        fs::write(project.join("fledge.db"), &self.db).unwrap();
        fs::write(project.join("fledge.db-wal"), &self.log).unwrap();
        let store = Store::open(home, Path::new("/a/app"))?;
        store.db.execute_batch("PRAGMA synchronous = OFF").unwrap(); // nothing here has to survive a crash
        records(&store, "r")
    }
}

#[test]
fn a_log_that_is_cut_anywhere_in_its_last_commit_gives_all_commits_before() {
    let (_home, store) = store();
    let mut journal = begin(&store, "r");
    journal.append(1, "A", "1").unwrap();
    journal.sync().unwrap();
    journal.append(2, "B", "2").unwrap();
    let begun = Picture::of(&store).log.len();
    journal.append(3, "C", "3").unwrap();
    let Picture { db, log } = Picture::of(&store);
    let all = records(&store, "r").unwrap();
    let elsewhere = crate::test_support::temp_dir();
    assert!(begun < log.len());
    // Cuts at every byte near the head of a frame and at the end, and at many in between. Those in
    // between are all alike, and each costs a recovery.
    let is_near_a_head = |cut: usize| (cut - 32) % 4120 < 32 || cut + 8 > log.len();
    for cut in (begun..=log.len()).filter(|cut| is_near_a_head(*cut) || cut % 127 == 0) {
        let cut_log = Picture { db: db.clone(), log: log[..cut].to_vec() };
        let whole = if cut == log.len() { 3 } else { 2 };
        assert_eq!(cut_log.records(elsewhere.path()).unwrap(), all[..whole], "cut at {cut} of {}", log.len());
    }
}

#[test]
fn a_block_of_zeros_anywhere_is_refused_or_was_of_no_account() {
    let (_home, store) = store();
    let mut journal = begin(&store, "r");
    for at in 0..40 {
        journal.append(at, "A", &format!("{at} {}", "x".repeat(100 * usize::try_from(at).unwrap()))).unwrap();
    }
    journal.finish(&RunOutcome::default()).unwrap();
    store.db.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
    let all = records(&store, "r").unwrap();
    let Picture { db, .. } = Picture::of(&store);
    let elsewhere = crate::test_support::temp_dir();
    let mut refused = 0;
    for block in 0..db.len() / 512 {
        let mut db = db.clone();
        db[block * 512..(block + 1) * 512].fill(0);
        match (Picture { db, log: Vec::new() }).records(elsewhere.path()) {
            Ok(found) => assert_eq!(found, all, "block {block}"),
            Err(_) => refused += 1,
        }
    }
    assert!(refused > 100, "{refused}");
}

#[test]
fn a_record_that_was_changed_swapped_or_removed_is_refused_with_its_number() {
    for (sql, wanted) in [
        ("UPDATE events SET data = '0' WHERE place & 4294967295 = 2", 2),
        ("UPDATE events SET at = 9 WHERE place & 4294967295 = 3", 3),
        ("UPDATE events SET kind = 'B' WHERE place & 4294967295 = 1", 1),
        ("DELETE FROM events WHERE place & 4294967295 = 2", 2),
        ("DELETE FROM events WHERE place & 4294967295 = 4", 4),
        ("DELETE FROM events", 1),
        ("UPDATE events SET place = (1 << 32) + 9 - (place & 4294967295); UPDATE events SET place = place - 4", 1),
        ("UPDATE runs SET title = 'Another'", 1),
        ("UPDATE tasks SET text = 'Another'", 1),
    ] {
        let (_home, store) = store();
        let mut journal = begin(&store, "r");
        (1..=4).for_each(|at| journal.append(at, "A", &at.to_string()).unwrap());
        journal.sync().unwrap();
        store.db.execute_batch(sql).unwrap();
        let mut events = store.events(&RunId::new("r"), 0).unwrap();
        let error = events.by_ref().find_map(Result::err);
        assert!(matches!(&error, Some(StoreError::Damaged { seq, .. }) if *seq == wanted), "{sql}: {error:?}");
        assert!(events.next().is_none(), "{sql}");
        drop(journal);
        assert!(reopen(&store, "r").is_err(), "{sql}");
    }
}

#[test]
fn a_newer_schema_and_what_is_not_ours_are_refused() {
    let (home, store) = store();
    let path = store.path();
    store.db.execute_batch("PRAGMA user_version = 99").unwrap();
    drop(store);
    let open = || Store::open(home.path(), Path::new("/a/app")).unwrap_err().to_string();
    let name = path.display();
    let newer =
        format!("{name} has schema version 99, but this fledge supports versions up to 1: use the newer fledge, ");
    assert!(open().starts_with(&newer), "{}", open());
    let foreign = format!("{name} is not a fledge database: move it away, or use another FLEDGE_STATE_DIR");
    let db = rusqlite::Connection::open(&path).unwrap();
    db.execute_batch("PRAGMA application_id = 7").unwrap();
    drop(db);
    assert_eq!(open(), foreign);
    fs::write(&path, "a text that somebody left here, longer than the head of a database is, which has a hundred bytes and is looked at")
        .unwrap();
    assert_eq!(open(), foreign);
}

#[test]
fn a_page_that_cannot_be_made_sense_of_is_said_to_be_damage() {
    let (home, store) = store();
    let mut journal = begin(&store, "r");
    journal.append(1, "A", "1").unwrap();
    drop(journal);
    store.db.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
    let path = store.path();
    let file = fs::File::options().write(true).open(&path).unwrap();
    drop(store);
    let pages = file.metadata().unwrap().len() / 4096;
    (1..pages).for_each(|page| file.write_all_at(&[7; 4096], page * 4096).unwrap());
    let error = Store::open(home.path(), Path::new("/a/app")).and_then(|store| records(&store, "r")).unwrap_err();
    assert!(matches!(&error, StoreError::Corrupt { .. }), "{error:?}");
}
