//! Tests of the store on real files: storing, finding, locking and removing.

use super::*;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use tempfile::TempDir;

/// Creates a store in a separate folder.
pub(super) fn store() -> (TempDir, Store) {
    let home = crate::test_support::temp_dir();
    let store = Store::open(home.path(), Path::new("/a/app")).unwrap();
    (home, store)
}

pub(super) fn head(id: &str) -> RunHead {
    RunHead {
        id: RunId::new(id),
        run_key: None,
        parent: None,
        title: "Title".into(),
        source: "task.md".into(),
        task_digest: "d1".into(),
        workspace: "/a/app".into(),
        models: vec!["a/b".into(), "c/d".into()],
        fledge: "0.1.0".into(),
        journal_version: 1,
        started_at_ms: 1_000,
    }
}

pub(super) fn copy() -> TaskCopy {
    TaskCopy { text: "Do it.".into(), settings: "{}".into() }
}

pub(super) fn begin(store: &Store, id: &str) -> Journal {
    Journal::create(store, &head(id), &copy()).unwrap()
}

pub(super) fn end(store: &Store, id: &str, exit_code: u8, ended_at_ms: i64) {
    begin(store, id).finish(&RunOutcome { exit_code, ended_at_ms, ..RunOutcome::default() }).unwrap();
}

/// Reopens a journal, and returns its records.
pub(super) fn reopen(store: &Store, id: &str) -> Result<(Journal, Vec<JournalRecord>), StoreError> {
    let mut records = Vec::new();
    let journal = Journal::reopen(store, &RunId::new(id), |record| {
        records.push(record);
        Ok::<_, StoreError>(())
    })?;
    Ok((journal, records))
}

/// Returns every record of a run, or the first error.
pub(super) fn records(store: &Store, id: &str) -> Result<Vec<JournalRecord>, StoreError> {
    store.events(&RunId::new(id), 0)?.collect()
}

fn data(store: &Store, id: &str) -> Vec<String> {
    records(store, id).unwrap().into_iter().map(|record| record.data).collect()
}

pub(super) fn ids(rows: &[RunRow]) -> Vec<&str> {
    rows.iter().map(|row| row.head.id.as_str()).collect()
}

#[test]
fn records_come_back_in_order_and_as_they_were() {
    let (_home, store) = store();
    let mut journal = begin(&store, "r");
    let wanted: Vec<JournalRecord> = (1..=200_u64)
        .map(|seq| JournalRecord {
            seq,
            at_ms: seq * 3,
            kind: format!("K{}", seq % 7),
            data: format!("\n\u{2028}\0{seq}"),
        })
        .collect();
    for record in &wanted {
        journal.append(record.at_ms, &record.kind, &record.data).unwrap();
    }
    assert_eq!(records(&store, "r").unwrap(), wanted);
    let rest: Vec<JournalRecord> = store.events(&RunId::new("r"), 150).unwrap().map(Result::unwrap).collect();
    assert_eq!(rest, wanted[150..]);
    assert!(store.events(&RunId::new("r"), 200).unwrap().next().is_none());
    assert!(matches!(store.events(&RunId::new("r"), 201), Err(StoreError::Damaged { seq: 201, .. })));
}

#[test]
fn a_journal_is_taken_up_where_it_ended() {
    let (_home, store) = store();
    let mut journal = begin(&store, "r");
    journal.append(1, "A", "1").unwrap();
    journal.finish(&RunOutcome::default()).unwrap();
    drop(journal);
    let (mut journal, found) = reopen(&store, "r").unwrap();
    assert_eq!(found, [JournalRecord { seq: 1, at_ms: 1, kind: "A".into(), data: "1".into() }]);
    assert!(matches!(store.run(&RunId::new("r")).unwrap().state, StoredRunState::Running { .. }));
    journal.append(2, "B", "2").unwrap();
    drop(journal);
    assert_eq!(store.run(&RunId::new("r")).unwrap().state, StoredRunState::Interrupted);
    assert_eq!(data(&store, "r"), ["1", "2"]);
}

#[test]
fn who_takes_a_journal_up_may_stop_at_a_record_and_then_nothing_is_taken_up() {
    let (_home, store) = store();
    let mut journal = begin(&store, "r");
    (1..=3).for_each(|at| journal.append(at, "A", &at.to_string()).unwrap());
    journal.finish(&RunOutcome::default()).unwrap();
    drop(journal);
    let unclear = |record: JournalRecord| {
        let is_clear = record.seq < 2;
        is_clear.then_some(()).ok_or_else(|| StoreError::Unknown { name: record.data })
    };
    let error = Journal::reopen(&store, &RunId::new("r"), unclear).unwrap_err();
    assert!(matches!(&error, StoreError::Unknown { name } if name == "2"), "{error:?}");
    assert!(matches!(store.run(&RunId::new("r")).unwrap().state, StoredRunState::Ended(_)));
}

#[test]
fn a_run_has_one_writer_and_a_second_one_is_told_who() {
    let (_home, store) = store();
    let journal = begin(&store, "r");
    let error = reopen(&store, "r").unwrap_err().to_string();
    assert!(error.starts_with(&format!("run r is being driven by process {} on ", std::process::id())), "{error}");
    assert!(error.contains(" since 20"), "{error}");
    drop(journal);
    assert!(reopen(&store, "r").is_ok());
}

#[test]
fn large_data_is_in_a_file_of_its_own_and_is_verified() {
    let (_home, store) = store();
    let large = "x".repeat(70_000);
    let mut journal = begin(&store, "r");
    journal.append(1, "A", &large).unwrap();
    journal.append(2, "B", &large).unwrap();
    let blob = store.folder(&RunId::new("r")).blobs().join(sha256(large.as_bytes()));
    assert_eq!(fs::read_to_string(&blob).unwrap(), large);
    assert_eq!(data(&store, "r"), [large.clone(), large.clone()]);
    fs::write(&blob, large.replace('x', "y")).unwrap();
    assert!(matches!(records(&store, "r"), Err(StoreError::Damaged { seq: 1, .. })));
    fs::remove_file(&blob).unwrap();
    assert!(matches!(records(&store, "r"), Err(StoreError::Damaged { seq: 1, .. })));
}

#[test]
fn after_a_failed_write_nothing_is_written_again() {
    let (_home, store) = store();
    let mut journal = begin(&store, "r");
    journal.append(1, "A", "1").unwrap();
    store.db.execute_batch("ALTER TABLE events RENAME TO elsewhere").unwrap();
    assert!(matches!(journal.append(2, "B", "2"), Err(StoreError::Database { .. })));
    store.db.execute_batch("ALTER TABLE elsewhere RENAME TO events").unwrap();
    assert!(matches!(journal.append(3, "C", "3"), Err(StoreError::Broken { .. })));
    assert!(matches!(journal.sync(), Err(StoreError::Broken { .. })));
    assert!(matches!(journal.finish(&RunOutcome::default()), Err(StoreError::Broken { .. })));
    assert_eq!(data(&store, "r"), ["1"]);
}

#[test]
fn several_runs_write_to_one_database_at_once() {
    let (home, store) = store();
    std::thread::scope(|scope| {
        for number in 0..4 {
            let home = home.path();
            scope.spawn(move || {
                let store = Store::open(home, Path::new("/a/app")).unwrap();
                let mut journal = begin(&store, &format!("r{number}"));
                for at in 0..100 {
                    journal.append(at, "A", &format!("{number} {at}")).unwrap();
                    if at % 20 == 0 {
                        journal.sync().unwrap();
                    }
                }
                journal.finish(&RunOutcome::default()).unwrap();
            });
        }
    });
    for number in 0..4 {
        let wanted: Vec<String> = (0..100).map(|at| format!("{number} {at}")).collect();
        assert_eq!(data(&store, &format!("r{number}")), wanted);
    }
}

#[test]
fn a_database_is_made_once_by_many_that_open_it_at_once() {
    let home = crate::test_support::temp_dir();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| Store::open(home.path(), Path::new("/a/app")).unwrap());
        }
    });
}

#[test]
fn what_a_run_leaves_is_readable_by_its_owner_alone() {
    let (_home, store) = store();
    let mut journal = begin(&store, "r");
    journal.append(1, "A", &"x".repeat(70_000)).unwrap();
    write_whole(&journal.folder().report(), b"{}").unwrap();
    let open = walkdir::WalkDir::new(&store.project).into_iter().flatten();
    let open = open.filter(|entry| entry.metadata().unwrap().permissions().mode() & 0o077 != 0);
    assert_eq!(open.map(|entry| entry.path().to_owned()).collect::<Vec<_>>(), Vec::<PathBuf>::new());
    assert!(store.project.join("fledge.db-wal").exists() && store.project.join("fledge.db-shm").exists());
}

#[test]
fn others_are_kept_out_of_a_database_that_was_open_to_them() {
    let (home, store) = store();
    let path = store.path();
    drop(store);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    Store::open(home.path(), Path::new("/a/app")).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn runs_are_listed_newest_first_and_page_by_page() {
    let (_home, store) = store();
    for (id, exit_code) in [("a", 0), ("b", 1), ("c", 0), ("d", 4)] {
        end(&store, id, exit_code, 2_000);
    }
    let running = begin(&store, "e");
    let page = store.runs(&RunListFilter { limit: 3, ..RunListFilter::default() }).unwrap();
    assert_eq!(ids(&page), ["e", "d", "c"]);
    assert!(matches!(page[0].state, StoredRunState::Running { .. }));
    assert_eq!(
        (&page[0].head, &page[2].state),
        (&head("e"), &StoredRunState::Ended(RunOutcome { ended_at_ms: 2_000, ..RunOutcome::default() }))
    );
    let before = Some(page[2].head.id.clone());
    assert_eq!(ids(&store.runs(&RunListFilter { before, ..RunListFilter::default() }).unwrap()), ["b", "a"]);
    drop(running);
    assert_eq!(store.run(&RunId::new("e")).unwrap().state, StoredRunState::Interrupted);
}

#[test]
fn runs_are_found_by_the_texts_of_their_rows() {
    let (_home, store) = store();
    let settings = r#"{ "worktree": { "branch": "fledge/fix-dates-a1" } }"#;
    let one = RunHead { title: "Fix 100% of it".into(), source: "tasks/dates.md".into(), ..head("0198-aa") };
    let copy = |settings: &str| TaskCopy { settings: settings.into(), ..copy() };
    drop(Journal::create(&store, &one, &copy(settings)).unwrap());
    let other = RunHead { models: vec!["ollama/small".into()], run_key: Some("nightly".into()), ..head("0198-bb") };
    drop(Journal::create(&store, &other, &copy("no JSON")).unwrap());
    let found = |text: &str| {
        ids(&store.runs(&RunListFilter { text: Some(text.into()), ..RunListFilter::default() }).unwrap()).join(" ")
    };
    for text in ["100%", "DATES.md", "fix-dates-a1", "0198-a"] {
        assert_eq!(found(text), "0198-aa", "{text}");
    }
    for text in ["fix dates 100%", "command line"] {
        assert_eq!(found(text), "0198-aa", "{text}");
    }
    for text in ["ollama", "nightly", "key small", "key nightly"] {
        assert_eq!(found(text), "0198-bb", "{text}");
    }
    assert_eq!((found("0198"), found("1_8")), ("0198-bb 0198-aa".into(), String::new()));
    assert_eq!((found(" "), found("dates nightly")), ("0198-bb 0198-aa".into(), String::new()));
    let branches: Vec<_> = store.runs(&RunListFilter::default()).unwrap().into_iter().map(|row| row.branch).collect();
    assert_eq!(branches, [None, Some("fledge/fix-dates-a1".to_owned())]);
}

#[test]
fn runs_are_listed_by_how_they_ended_or_did_not() {
    let (_home, store) = store();
    for id in ["a", "b"] {
        begin(&store, id).finish(&RunOutcome { verified: true, ..RunOutcome::default() }).unwrap();
        end(&store, &format!("{id}-failed"), 1, 1);
        drop(begin(&store, &format!("{id}-interrupted")));
    }
    let running = begin(&store, "r");
    let only = |only, limit| {
        ids(&store.runs(&RunListFilter { limit, only: Some(only), ..RunListFilter::default() }).unwrap()).join(" ")
    };
    assert_eq!(only(RunProperty::Failed, 9), "b-failed a-failed");
    assert_eq!(only(RunProperty::Verified, 9), "b a");
    assert_eq!(only(RunProperty::Interrupted, 9), "b-interrupted a-interrupted");
    assert_eq!(only(RunProperty::Interrupted, 1), "b-interrupted");
    assert_eq!(only(RunProperty::Running, 1), "r");
    drop(running);
}

#[test]
fn the_short_form_of_an_id_is_that_of_no_other_run() {
    let (_home, store) = store();
    for id in ["0198a2b3-c4d5-7001", "0198a2b3-c4d5-7002", "0198a2b3-c4", "0199a2b3-c4d5-7001", "x"] {
        end(&store, id, 0, 1);
    }
    let shorts: Vec<(String, String)> = store
        .runs(&RunListFilter::default())
        .unwrap()
        .into_iter()
        .map(|row| (store.short(&row.head.id).unwrap(), row.head.id.to_string()))
        .collect();
    let wanted = ["x", "0199a2b3", "0198a2b3-c4", "0198a2b3-c4d5-7002", "0198a2b3-c4d5-7001"];
    assert_eq!(shorts.iter().map(|(short, _)| short.as_str()).collect::<Vec<_>>(), wanted);
    for (short, id) in shorts {
        assert_eq!(store.find(&short).unwrap().as_str(), id);
    }
}

#[test]
fn who_only_looks_makes_nothing_and_finds_every_project() {
    let home = crate::test_support::temp_dir();
    let state = home.path().join("state");
    assert!(Store::existing(&state, Path::new("/a/app")).unwrap().is_none());
    assert!(Store::all(&state).unwrap().is_empty() && !state.exists());
    for (project, run) in [("/a/app", "0198-aa"), ("/b/app", "0198-ab")] {
        end(&Store::open(&state, Path::new(project)).unwrap(), run, 0, 1);
    }
    fs::create_dir(state.join("else")).unwrap();
    let stores: Vec<Store> = Store::all(&state).unwrap().into_iter().map(Result::unwrap).collect();
    let mut found: Vec<String> =
        stores.iter().map(|store| ids(&store.runs(&RunListFilter::default()).unwrap()).join(" ")).collect();
    found.sort();
    assert_eq!(found, ["0198-aa", "0198-ab"]);
    assert!(Store::existing(&state, Path::new("/a/app")).unwrap().is_some());
}

#[test]
fn a_run_is_found_by_what_people_type() {
    let (_home, store) = store();
    end(&store, "0198-aa", 1, 1);
    Journal::create(&store, &RunHead { run_key: Some("nightly".into()), ..head("0198-ab") }, &copy()).unwrap();
    end(&store, "0199", 0, 1);
    for (name, run) in [
        ("last", "0199"),
        ("last-failed", "0198-aa"),
        ("0198-ab", "0198-ab"),
        ("nightly", "0198-ab"),
        ("0199", "0199"),
        ("0198-aa", "0198-aa"),
    ] {
        assert_eq!(store.find(name).unwrap(), RunId::new(run), "{name}");
    }
    let errors = ["0198", "0198-b", "", "%"].map(|name| store.find(name).unwrap_err().to_string());
    let wanted = [
        "`0198` matches more than one run: 0198-aa, 0198-ab",
        "there is no run `0198-b`",
        "there is no run ``",
        "there is no run `%`",
    ];
    assert_eq!(errors, wanted);
}

#[test]
fn a_run_key_belongs_to_one_run() {
    let (_home, store) = store();
    let keyed = |id| RunHead { run_key: Some("nightly".into()), ..head(id) };
    Journal::create(&store, &keyed("a"), &copy()).unwrap();
    let error = Journal::create(&store, &keyed("b"), &copy()).unwrap_err();
    assert_eq!(error.to_string(), "the run key `nightly` belongs to run a");
    assert!(!store.folder(&RunId::new("b")).path().exists());
    assert!(Journal::create(&store, &head("a"), &copy()).is_err());
    assert!(store.folder(&RunId::new("a")).path().exists());
}

#[test]
fn a_state_folder_that_cannot_be_written_is_named() {
    let error = Store::open(Path::new("/proc/fledge"), Path::new("/a/app")).unwrap_err().to_string();
    assert!(error.starts_with("cannot make the folder /proc/fledge/app-"), "{error}");
    let (home, store) = store();
    let path = store.path();
    drop(store);
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    let error = Store::open(home.path(), Path::new("/a/app")).unwrap_err();
    assert_eq!(error.to_string(), format!("cannot open {}", path.display()));
}

#[test]
#[expect(clippy::disallowed_methods, reason = "programs are started that have copies of all handles")]
fn a_run_that_is_let_go_is_not_held_by_programs_that_are_being_started() {
    let (_home, store) = store();
    let over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let start = || {
            while !over.load(std::sync::atomic::Ordering::Relaxed) {
                drop(std::process::Command::new("/nonexistent").status());
            }
        };
        scope.spawn(start);
        scope.spawn(start);
        let held = (0..300).filter(|number| {
            let id = format!("run-{number}");
            drop(begin(&store, &id));
            store.run(&RunId::new(&id)).unwrap().state != StoredRunState::Interrupted
        });
        let held = held.count();
        over.store(true, std::sync::atomic::Ordering::Relaxed);
        assert_eq!(held, 0);
    });
}
