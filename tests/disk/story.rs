//! Small histories of journals. A separate process writes each act, prints what was acknowledged,
//! and exits at the end of the act.

use crate::disk::trace::{self, CALLS, Op};
use crate::support::Dice;
use fledge::id::RunId;
use fledge::store::{Journal, JournalRecord, Retention, RunHead, RunOutcome, Store, StoreError, TaskCopy};
use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::process::{Command, Output};

/// The file in which a writer records acknowledgements.
pub(crate) const SAID: &str = "said";
/// The workspace of these journals.
pub(crate) const WORKSPACE: &str = "/a/app";

/// A step of a writer.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Step {
    Begin(&'static str),
    Reopen(&'static str),
    /// Adds this number of records of this size in bytes.
    Append(&'static str, u64, usize),
    Sync(&'static str),
    Finish(&'static str),
    /// Removes every run that has ended.
    Prune,
    /// Closes everything, which moves the log into the database. An act without this step ends
    /// abruptly.
    Close,
}

use Step::{Append, Begin, Close, Finish, Prune, Reopen, Sync};

/// The name of each story, its share of a hundred states, and its acts.
pub(crate) const STORIES: &[(&str, u64, &[&[Step]])] = &[
    (
        "one run",
        29,
        &[&[
            Begin("a"),
            Append("a", 3, 300),
            Sync("a"),
            Append("a", 2, 3_000),
            Sync("a"),
            Append("a", 2, 9),
            Finish("a"),
        ]],
    ),
    (
        "two runs at once",
        20,
        &[&[
            Begin("a"),
            Begin("b"),
            Append("a", 2, 300),
            Append("b", 2, 300),
            Sync("a"),
            Append("b", 2, 5_000),
            Append("a", 1, 300),
            Sync("b"),
            Append("a", 1, 300),
            Finish("b"),
            Close,
        ]],
    ),
    (
        "taken up by others",
        25,
        &[
            &[Begin("a"), Append("a", 2, 300), Sync("a"), Append("a", 1, 2_000)],
            &[Reopen("a"), Append("a", 1, 300), Begin("b"), Append("b", 1, 300), Finish("b"), Sync("a"), Close],
            &[Reopen("a"), Append("a", 1, 300), Sync("a"), Append("a", 1, 300), Finish("a"), Close],
            &[Reopen("a"), Append("a", 2, 300), Sync("a")],
        ],
    ),
    (
        "large records",
        12,
        &[&[
            Begin("a"),
            Append("a", 1, 300),
            Append("a", 1, 70_000),
            Sync("a"),
            Append("a", 1, 80_000),
            Append("a", 1, 70_000),
            Finish("a"),
            Close,
        ]],
    ),
    (
        "removed runs",
        12,
        &[&[
            Begin("a"),
            Append("a", 12, 4_000),
            Append("a", 1, 70_000),
            Finish("a"),
            Begin("b"),
            Append("b", 2, 3_000),
            Sync("b"),
            Prune,
            Append("b", 3, 3_000),
            Sync("b"),
            Append("b", 2, 300),
            Finish("b"),
            Close,
        ]],
    ),
    // The log grows until a sync moves it into the database and restarts it.
    (
        "a full log",
        2,
        &[&[
            Begin("a"),
            Append("a", 70, 60_000),
            Sync("a"),
            Append("a", 2, 60_000),
            Sync("a"),
            Append("a", 2, 300),
            Sync("a"),
            Append("a", 1, 300),
        ]],
    ),
];

/// Returns true if the record is the one that the run wrote at this position. The record contains
/// its size.
pub(crate) fn is_what_was_written(run: &str, record: &JournalRecord) -> bool {
    let size = record.data.split(' ').nth(2).and_then(|size| size.parse().ok());
    record.at_ms == record.seq * 10
        && record.kind == "Kind"
        && size.is_some_and(|size| record.data == data(run, record.seq, size))
}

pub(crate) fn data(run: &str, seq: u64, size: usize) -> String {
    let mut data = format!("{run} {seq} {size} ");
    // Large records of the same size have the same text, so that they share a file.
    let mut dice = Dice::new(if size > 65_536 { 0 } else { seq });
    if size > 65_536 {
        data = format!("{run} 0 {size} ");
    }
    while data.len() < size {
        data.push_str(&format!("{:016x}", dice.throw()));
    }
    data
}

pub(crate) fn append(journal: &mut Journal, run: &str, seq: u64, size: usize) -> Result<(), StoreError> {
    journal.append(seq * 10, "Kind", &data(run, seq, size))
}

pub(crate) fn begin(store: &Store, run: &str) -> Result<Journal, StoreError> {
    let head = RunHead {
        id: RunId::new(run),
        run_key: None,
        parent: None,
        title: "Title".into(),
        source: "task.md".into(),
        task_digest: "d1".into(),
        workspace: WORKSPACE.into(),
        models: vec!["a/b".into()],
        fledge: "0.1.0".into(),
        journal_version: 1,
        started_at_ms: 1_000,
    };
    Journal::create(store, &head, &TaskCopy { text: "Do it.".into(), settings: "{}".into() })
}

/// Reopens a journal and returns its number of records. The records must be those that were
/// written.
pub(crate) fn reopen(store: &Store, run: &str) -> Result<(Journal, u64), StoreError> {
    let mut count = 0;
    let journal = Journal::reopen(store, &RunId::new(run), |record| {
        count += 1;
        assert!(is_what_was_written(run, &record), "{record:?}");
        Ok::<_, StoreError>(())
    })?;
    Ok((journal, count))
}

pub(crate) fn outcome() -> RunOutcome {
    RunOutcome { reason: "verified".into(), verified: true, ended_at_ms: 9_000, ..RunOutcome::default() }
}

/// Runs a story below a folder and returns its file operations, act by act; `None` without strace.
pub(crate) fn told(story: usize, root: &Path) -> Option<Vec<Op>> {
    if !can_trace() {
        return None;
    }
    let mut ops = Vec::new();
    for act in 0..STORIES[story].2.len() {
        let out = root.with_extension(format!("{act}.trace"));
        let args = ["strace", "-f", "-y", "-xx", "-s", "10000000", "-e", CALLS, "-o", out.to_str().unwrap()];
        let ended = writer(&args, story, act, root).unwrap();
        must_be_calm(&ended);
        ops.extend(trace::read(&fs::read_to_string(&out).unwrap(), root));
    }
    Some(ops)
}

/// Returns true if strace is installed and may trace.
pub(crate) fn can_trace() -> bool {
    let tried = Command::new("strace").args(["-f", "-qq", "-o", "/dev/null", "true"]).output();
    tried.is_ok_and(|tried| tried.status.success())
}

/// Runs an act in a separate process, which another command starts. The act may end with an error,
/// which it prints last.
pub(crate) fn writer(starter: &[&str], story: usize, act: usize, root: &Path) -> io::Result<Output> {
    let mut command = Command::new(starter[0]);
    command.args(&starter[1..]).arg(std::env::current_exe().unwrap()).args([
        "--exact",
        "disk::story::tells_an_act",
        "--nocapture",
    ]);
    command.env("FLEDGE_DISK_ACT", format!("{story} {act} {}", root.display())).output()
}

#[track_caller]
pub(crate) fn must_be_calm(ended: &Output) {
    assert!(ended.status.success(), "{:?}: {}", ended.status, String::from_utf8_lossy(&ended.stderr));
}

#[test]
fn tells_an_act() {
    let Ok(act) = std::env::var("FLEDGE_DISK_ACT") else { return };
    let mut words = act.splitn(3, ' ');
    let mut number = || words.next().unwrap().parse::<usize>().unwrap();
    let (story, act) = (number(), number());
    let root = Path::new(words.next().unwrap());
    let mut said = OpenOptions::new().create(true).append(true).open(root.join(SAID)).unwrap();
    let mut say = |word: String| {
        let heard = [io::stderr().write_all(word.as_bytes()), said.write_all(word.as_bytes())];
        drop(heard); // on a full disk, one of the two writes fails
    };
    if let Err(error) = tell(STORIES[story].2[act], root, &mut say) {
        say(format!("failed - 0 {error}: {:?}\n", std::error::Error::source(&error)));
    }
    end();
}

#[expect(clippy::exit, reason = "what is open stays open, as in a process that is killed")]
fn end() {
    std::process::exit(0);
}

pub(crate) fn tell(steps: &[Step], root: &Path, say: &mut impl FnMut(String)) -> Result<(), StoreError> {
    let store = Store::open(&root.join("state"), Path::new(WORKSPACE))?;
    let mut journals: BTreeMap<&str, (Journal, u64)> = BTreeMap::new();
    for step in steps {
        match step {
            Begin(run) => {
                journals.insert(run, (begin(&store, run)?, 0));
                say(format!("begun {run} 0\n"));
            }
            Reopen(run) => {
                say(format!("reopening {run} 0\n"));
                journals.insert(run, reopen(&store, run)?);
            }
            Append(run, times, size) => {
                let (journal, seq) = journals.get_mut(run).unwrap();
                for _ in 0..*times {
                    append(journal, run, *seq + 1, *size).inspect_err(|_| assert_broken(journal))?;
                    *seq += 1;
                    say(format!("appended {run} {seq}\n"));
                }
            }
            Sync(run) => {
                let (journal, seq) = journals.get_mut(run).unwrap();
                journal.sync().inspect_err(|_| assert_broken(journal))?;
                say(format!("safe {run} {seq}\n"));
            }
            Finish(run) => {
                let (mut journal, seq) = journals.remove(run).unwrap();
                journal.finish(&outcome())?;
                say(format!("ended {run} {seq}\n"));
            }
            Prune => {
                say("pruning - 0\n".into());
                store.prune(&Retention { age_ms: None, runs: Some(0), bytes: None }, 10_000)?;
            }
            Close => {}
        }
    }
    if !matches!(steps.last(), Some(Close)) {
        end();
    }
    Ok(())
}

/// Asserts that a journal accepts no further write after a failed one, even if the disk works
/// again.
fn assert_broken(journal: &mut Journal) {
    let again = [journal.append(1, "Kind", "{}"), journal.sync(), journal.finish(&outcome())];
    assert!(again.iter().all(|again| matches!(again, Err(StoreError::Broken { .. }))), "{again:?}");
}
