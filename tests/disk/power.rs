//! Crashes after every system call of every story, and in the middle of a call: the process dies,
//! or the power fails.

use crate::disk::judge::{Loss, Promises, put};
use crate::disk::states::{Disk, Found};
use crate::disk::story::{SAID, STORIES, told};
use crate::disk::trace::Op;
use crate::support::{Dice, Need, amount, dice, is_whole, record_time, seed, temp_dir};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use tempfile::TempDir;

/// The number of states that an ordinary run checks.
const STATES: u64 = 200;

#[test]
fn what_is_found_after_a_crash_begins_with_all_that_was_acknowledged() {
    long_table!();
    let mut dice = dice("states of the disk");
    record_time();
    let mut looked = 0;
    // The last story takes long to read.
    let stories = STORIES.len() - usize::from(!is_whole());
    for (story, (name, share, _)) in STORIES.iter().enumerate().take(stories) {
        let Some(stage) = Stage::of(story) else {
            return Need::Strace.lacks("no strace, or it may not trace");
        };
        for _ in 0..(amount(STATES, 10_000) * share).div_ceil(100) {
            if let Err(broken) = stage.look(dice.throw()) {
                panic!("{name}: {broken}\n  again: FLEDGE_TEST_SEED={} cargo test --test it disk::", seed());
            }
            looked += 1;
        }
    }
    eprintln!("{looked} states");
}

#[test]
fn a_log_that_is_cut_at_any_byte_of_its_last_commit_has_every_commit_before() {
    let Some(stage) = Stage::of(0) else { return Need::Strace.lacks("no strace, or it may not trace") };
    let said: Vec<usize> = (0..stage.ops.len()).filter(|at| is_said(&stage.ops[*at])).collect();
    // The calls between the acknowledgements of the last two records.
    let [.., before, after, _] = said[..] else { panic!("{said:?}") };
    let (step, first) = amount((131, dice("cuts of a log").index(131)), (1, 0));
    let mut step = (first..).step_by(step).peekable();
    let mut at = 0;
    for end in before + 1..after {
        let Op::Write { bytes, .. } = &stage.ops[end] else { continue };
        while let Some(cut) = step.next_if(|cut| cut - at <= bytes.len()) {
            let (disk, promises) = stage.until(end, cut - at);
            stage
                .must_keep(&promises, &disk.as_done(), Loss::Process)
                .unwrap_or_else(|broken| panic!("{end}, {cut}: {broken}"));
        }
        at += bytes.len();
    }
    assert!(at > 4096, "{at}");
}

#[test]
fn a_disk_that_lies_about_syncs_is_found_out() {
    let Some(mut stage) = Stage::of(0) else { return Need::Strace.lacks("no strace, or it may not trace") };
    stage.ops.retain(|op| !matches!(op, Op::Sync { .. }));
    let found_out = (0..60).filter(|seed| stage.look(*seed).is_err()).count();
    assert!(found_out > 5, "{found_out} of 60");
}

/// A recorded story, and a folder for the files found after a crash.
struct Stage {
    root: PathBuf,
    ops: Vec<Op>,
    place: TempDir,
}

impl Stage {
    fn of(story: usize) -> Option<Self> {
        let place = temp_dir();
        let root = place.path().canonicalize().unwrap().join("disk");
        std::fs::create_dir(&root).unwrap();
        let ops = told(story, &root)?;
        Some(Self { root, ops, place })
    }

    /// Checks one state: a crash at some point, of some kind.
    fn look(&self, seed: u64) -> Result<(), String> {
        let mut dice = Dice::new(seed);
        let loss = if dice.percent(25) { Loss::Process } else { Loss::Power };
        let end = dice.index(self.ops.len() + 1);
        let cut = self
            .ops
            .get(end)
            .map_or(0, |op| if let Op::Write { bytes, .. } = op { dice.index(bytes.len() + 1) } else { 0 });
        let (disk, promises) = self.until(end, cut);
        let mut found = if loss == Loss::Process { disk.as_done() } else { disk.after_power_loss(&mut dice) };
        self.leave_garbage(&mut found, &mut dice);
        let kept = self.must_keep(&promises, &found, loss);
        kept.map_err(|broken| {
            format!("after {end} of {} calls, {loss:?} lost: {broken}; promised: {promises:?}", self.ops.len())
        })
    }

    /// Returns the disk after `end` calls, and after `cut` bytes of the next call if that is a
    /// write.
    fn until(&self, end: usize, cut: usize) -> (Disk, Promises) {
        let (mut disk, mut promises) = (Disk::new(&self.root), Promises::default());
        for op in &self.ops[..end] {
            take(op, &mut disk, &mut promises);
        }
        if let Some(Op::Write { path, at, bytes }) = self.ops.get(end).filter(|op| !is_said(op)) {
            disk.take(&Op::Write { path: path.clone(), at: *at, bytes: bytes[..cut].to_vec() });
        }
        (disk, promises)
    }

    fn must_keep(&self, promises: &Promises, found: &Found, loss: Loss) -> Result<(), String> {
        let place = self.place.path().join("found");
        put(found, &place);
        let kept = catch_unwind(AssertUnwindSafe(|| promises.are_kept_in(&place, loss)));
        kept.unwrap_or_else(|_| Err("it panicked".into()))
    }

    /// The index of the log is mapped memory, which may contain anything after a crash.
    fn leave_garbage(&self, found: &mut Found, dice: &mut Dice) {
        let logs: Vec<PathBuf> = found.keys().filter(|path| path.ends_with("fledge.db-wal")).cloned().collect();
        for log in logs {
            if dice.percent(30) {
                let garbage = (0..4096).flat_map(|_| dice.throw().to_ne_bytes()).collect();
                found.insert(log.with_file_name("fledge.db-shm"), Some(garbage));
            }
        }
    }
}

fn take(op: &Op, disk: &mut Disk, promises: &mut Promises) {
    match op {
        Op::Write { path, bytes, .. } if path.ends_with(SAID) => promises.hear(std::str::from_utf8(bytes).unwrap()),
        op => disk.take(op),
    }
}

fn is_said(op: &Op) -> bool {
    matches!(op, Op::Write { path, .. } if path.ends_with(SAID))
}
