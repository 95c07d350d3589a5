//! Tests of pruning: removed runs, kept runs, and the space that is left in use.

use super::tests::{begin, end, ids, records, store};
use super::*;
use crate::process::Stopwatch;
use std::fs;

#[test]
fn old_runs_go_with_everything_that_they_took() {
    let (_home, store) = store();
    for (id, at) in [("a", 10), ("b", 20), ("c", 30)] {
        let mut journal = begin(&store, id);
        (0..50).for_each(|at| journal.append(at, "A", &"x".repeat(4_000)).unwrap());
        journal.finish(&RunOutcome { ended_at_ms: at, ..RunOutcome::default() }).unwrap();
    }
    store.db.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
    let before = fs::metadata(store.path()).unwrap().len();
    let keep = Retention { age_ms: Some(15), runs: None, bytes: None };
    let pruned = store.prune(&keep, 40).unwrap();
    assert_eq!(pruned.runs, [RunId::new("b"), RunId::new("a")]);
    assert!((400_000..420_000).contains(&pruned.bytes), "{}", pruned.bytes);
    store.db.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
    assert!(fs::metadata(store.path()).unwrap().len() < before / 2);
    assert_eq!(ids(&store.runs(&RunListFilter::default()).unwrap()), ["c"]);
    let left: Vec<_> =
        fs::read_dir(store.project.join("runs")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["c"]);
    assert_eq!(records(&store, "c").unwrap().len(), 50);
    assert_eq!(store.prune(&keep, 40).unwrap(), Pruned::default());
}

#[test]
fn beyond_the_number_or_the_size_only_ended_runs_go() {
    let everything = Retention { age_ms: Some(1 << 40), runs: Some(0), bytes: Some(0) };
    let (_home, store) = store();
    end(&store, "a", 0, 1);
    drop(begin(&store, "interrupted"));
    let running = begin(&store, "running");
    end(&store, "b", 1, 1);
    let one = Retention { runs: Some(1), ..everything.clone() };
    let would = store.would_prune(&Retention { age_ms: Some(0), ..everything.clone() }, 5_000).unwrap();
    assert_eq!(would.runs, ["b", "interrupted", "a"].map(RunId::new));
    assert_eq!(store.prune(&Retention { bytes: None, ..one }, 5_000).unwrap().runs, [RunId::new("a")]);
    assert_eq!(store.prune(&everything, 5_000).unwrap().runs, [RunId::new("b")]);
    let old = Retention { age_ms: Some(0), ..everything };
    assert_eq!(store.prune(&old, 5_000).unwrap().runs, [RunId::new("interrupted")]);
    assert_eq!(ids(&store.runs(&RunListFilter::default()).unwrap()), ["running"]);
    drop(running);
}

#[test]
fn a_large_room_makes_no_other_run_go_and_that_of_a_dead_process_is_cleared() {
    let (_home, store) = store();
    end(&store, "a", 0, 1);
    let running = begin(&store, "running");
    drop(begin(&store, "dead"));
    let room = |id: &str| store.folder(&RunId::new(id)).path().join("rooms/target");
    for id in ["running", "dead"] {
        fs::create_dir_all(room(id)).unwrap();
        fs::File::create(room(id).join("large")).unwrap().set_len(2 << 30).unwrap();
    }
    assert_eq!(store.prune(&Retention::default(), 5_000).unwrap(), Pruned::default());
    assert_eq!((room("running").exists(), room("dead").exists()), (true, false));
    drop(running);
}

#[test]
fn nobody_waits_for_runs_that_are_driven_however_many_there_are() {
    let (_home, store) = store();
    let names: Vec<String> = (0..40).map(|number| format!("r{number:02}")).collect();
    let driven: Vec<_> = names.iter().map(|name| begin(&store, name)).collect();
    for name in &names[..20] {
        fs::create_dir_all(store.folder(&RunId::new(name)).path().join("rooms")).unwrap();
    }
    // The store asks sixty times whether a run is driven: to clear rooms and to remove runs.
    let everything = Retention { age_ms: Some(0), runs: Some(0), bytes: Some(0) };
    let clock = Stopwatch::start();
    assert_eq!(store.prune(&everything, 5_000).unwrap(), Pruned::default());
    let took = clock.read();
    // If the store waited for a driven run, it would wait a second: 20 s for the rooms alone.
    assert!(took < std::time::Duration::from_secs(20), "{took:?}");
    assert!(names[..20].iter().all(|name| store.folder(&RunId::new(name)).path().join("rooms").exists()));
    drop(driven);
    assert_eq!(store.prune(&everything, 5_000).unwrap().runs.len(), 40);
}

#[test]
fn a_removal_that_was_interrupted_is_finished() {
    let (_home, store) = store();
    end(&store, "a", 0, 1);
    let gone = store.project.join("removed");
    make_private(&gone).unwrap();
    fs::rename(store.folder(&RunId::new("a")).path(), gone.join("a")).unwrap();
    let pruned = store.prune(&Retention { runs: Some(0), ..Retention::default() }, 5_000).unwrap();
    assert_eq!((pruned.runs, gone.exists()), (vec![RunId::new("a")], false));
    assert!(store.runs(&RunListFilter::default()).unwrap().is_empty());
}

#[test]
fn the_folder_of_a_run_that_never_began_is_swept_once_it_is_old() {
    let (_home, store) = store();
    end(&store, "a", 0, 1);
    let folder = |id: &str| store.folder(&RunId::new(id));
    for id in ["young", "dead"] {
        folder(id).create_folders().unwrap();
    }
    let now = fs::metadata(folder("dead").path()).unwrap().modified().unwrap();
    let yesterday = now - std::time::Duration::from_secs(24 * 60 * 60);
    for id in ["a", "dead"] {
        fs::File::open(folder(id).path()).unwrap().set_modified(yesterday).unwrap();
    }
    assert_eq!(store.prune(&Retention::default(), 5_000).unwrap(), Pruned::default());
    assert_eq!(["a", "young", "dead"].map(|id| folder(id).path().exists()), [true, true, false]);
}

#[test]
fn what_many_runs_leave_stays_within_what_is_kept_of_them() {
    let (_home, store) = store();
    let keep = Retention { age_ms: None, runs: None, bytes: Some(2 << 20) };
    for at in 0..30 {
        let mut journal = begin(&store, &format!("r{at:02}"));
        // Half a megabyte each: as rows of several sizes, in a separate file, and as a log.
        (0..100).for_each(|at| journal.append(at, "A", &"x".repeat(usize::try_from(at).unwrap() * 40)).unwrap());
        journal.append(100, "A", &format!("{at}{}", "x".repeat(200_000))).unwrap();
        fs::write(journal.folder().logs().join("log"), "x".repeat(100_000)).unwrap();
        journal.finish(&RunOutcome { ended_at_ms: at, ..RunOutcome::default() }).unwrap();
        drop(journal);
        store.prune(&keep, at).unwrap();
        // The rest is unused space in pages, and the write-ahead log, which has its own limit.
        let taken = size_of(&store.project);
        assert!(taken < 8 << 20, "{taken} after {at}");
    }
    assert_eq!(store.runs(&RunListFilter::default()).unwrap().len(), 3);
}

fn size_of(path: &Path) -> u64 {
    let files = walkdir::WalkDir::new(path).into_iter().flatten().map(|entry| entry.metadata().unwrap());
    files.filter(|meta| meta.is_file()).map(|meta| meta.len()).sum()
}
