//! Ownership of everything a step has started, however far it has strayed. fledge finds a step's
//! processes by process group, session, parent, and the mark that they inherit. It is also the
//! subreaper of what it starts, so it adopts their orphans. It never touches processes of another
//! step, nor children that this process has for other reasons.

use super::bounds::ProcessBounds;
use super::census::{self, Process};
use super::guard::ProcessGuard;
use super::mark;
use super::open_files;
use super::start::ProgramStart;
use super::tmpfs;
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, waitpid};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The maximum number of rounds of finding and killing in one call. Each round finds only what was
/// started before the previous round took effect.
const ROUNDS: usize = 100;

static FOREST: Mutex<ProcessTrees> = Mutex::new(ProcessTrees { trees: Vec::new(), guard: ProcessGuard::new() });

/// The session of this process as the kernel lists it. 0 means a session that began outside this
/// container, which `getsid` cannot report.
static OWN_SESSION: LazyLock<Option<i32>> = LazyLock::new(|| census::own().map(|own| own.session));

static HAS_TERMINAL: LazyLock<bool> = LazyLock::new(|| File::open("/dev/tty").is_ok());

/// Ownership of a running step's processes. Dropping it kills them.
#[derive(Debug)]
pub(super) struct ProcessGroup {
    leader: Pid,
    number: u64,
    /// The size of the files in memory that earlier programs left, in bytes.
    files_before: u64,
}

/// Every step whose processes are not all known to be gone, and the guard that watches over them.
struct ProcessTrees {
    trees: Vec<Tree>,
    guard: ProcessGuard,
}

struct Tree {
    number: u64,
    variable: String,
    leader: Pid,
    leading: Leading,
    /// The processes found last: number and start time.
    known: BTreeMap<i32, u64>,
    /// True if the step is over, so that its remaining processes only have to be reaped.
    is_over: bool,
    /// True if two looks found nothing but the leader. Then nothing more can appear.
    bare: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Leading {
    Runs,
    /// The leader has ended and has no children any more. Its number is not reused until it is
    /// reaped.
    Ended,
    Reaped,
}

/// Facts about other steps that a search for processes needs.
struct Around {
    /// Children of this process that cannot be strays of the step: leaders, and the guard.
    taken: Vec<i32>,
    /// True if no other step runs.
    alone: bool,
}

impl ProcessGroup {
    /// Starts the leader of a new process group, and everything needed to find its descendants. If
    /// there is a terminal, the leader also leads a session, so that none of its processes can
    /// prompt there and wait. A session costs a fork of this process; a plain start shares its
    /// memory until the program begins (posix_spawn(3)).
    pub(super) fn start(program: ProgramStart<'_>) -> io::Result<Self> {
        census::adopt_orphans();
        let files_before = tmpfs::held_before();
        let number = mark::next();
        let variable = mark::variable(number);
        // The lock is held until the new step is registered. Until then its process belongs to no
        // step, so no other thread may look for processes.
        let mut process_trees = process_trees();
        process_trees.clear();
        process_trees.guard.post();
        let start = || program.start(&variable, *HAS_TERMINAL);
        let leader = mark::start(number, start, |started| started.as_ref().ok().copied())?;
        open_files::give_back(leader);
        process_trees.guard.add(leader);
        let known = BTreeMap::new();
        process_trees.trees.push(Tree {
            number,
            variable,
            leader,
            leading: Leading::Runs,
            known,
            is_over: false,
            bare: false,
        });
        Ok(Self { leader, number, files_before })
    }

    /// Returns the process number of the leader.
    pub(super) fn leader(&self) -> Pid {
        self.leader
    }

    /// Sends SIGTERM to all processes.
    pub(super) fn terminate(&self) {
        let found = self.find();
        let _ = rustix::process::kill_process_group(self.leader, Signal::TERM);
        let strays = found.iter().filter(|process| process.group != self.leader.as_raw_pid());
        strays.for_each(|process| census::signal(process, Signal::TERM));
    }

    /// Records the current processes, so that later strays are recognized, and reaps orphans that
    /// have ended.
    pub(super) fn tend(&self) {
        process_trees().guard.post(); // a step may have killed it
        for orphan in self.find().iter().filter(|process| !process.alive && process.pid != self.leader.as_raw_pid()) {
            census::reap(orphan);
        }
    }

    /// Returns the reason if the processes have gone beyond their common limits. Also records the
    /// current processes.
    pub(super) fn exceeded(&self, bounds: ProcessBounds) -> Option<String> {
        let most = bounds.processes.map_or(usize::MAX, |most| usize::try_from(most).unwrap_or(usize::MAX));
        let found =
            process_trees().visit(self.number, |tree, around| tree.find_beyond(around, most)).unwrap_or_default();
        bounds.exceeded(&found, self.files_before)
    }

    /// Kills the whole process group at once, without looking for other processes. Meanwhile the
    /// group cannot start more of itself.
    pub(super) fn kill_group(&self) {
        let _it_is_empty = rustix::process::kill_process_group(self.leader, Signal::KILL);
    }

    /// Returns the number of processes that are alive.
    pub(super) fn alive(&self) -> usize {
        self.find().iter().filter(|process| process.alive).count()
    }

    /// Waits until no process is alive.
    pub(super) async fn empty(&self) {
        while self.alive() > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Kills all processes, and waits until nothing is left but the leader. After the first poll
    /// nothing of the step runs any more, though the kernel may still be clearing it away.
    pub(super) async fn gone(&self) {
        let (mut pause, mut empty) = (Duration::from_millis(1), 0);
        // A list of children can miss one while another ends, hence the second look.
        while empty < 2 {
            let found = process_trees().visit(self.number, Tree::kill).unwrap_or_default();
            let left = found.iter().filter(|process| process.pid != self.leader.as_raw_pid());
            if left.filter(|process| process.alive || !census::reap(process)).count() == 0 {
                empty += 1;
                continue;
            }
            empty = 0;
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(Duration::from_millis(20));
        }
        process_trees().visit(self.number, |tree, _| tree.bare = true);
    }

    /// Reaps the leader if it has ended.
    pub(super) fn reap(&self) -> Option<WaitStatus> {
        let mut process_trees = process_trees();
        let ProcessTrees { trees, guard } = &mut *process_trees;
        trees.iter_mut().find(|tree| tree.number == self.number).and_then(|tree| tree.reap(guard))
    }

    fn find(&self) -> Vec<Process> {
        process_trees().visit(self.number, Tree::find).unwrap_or_default()
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        let mut process_trees = process_trees();
        process_trees.visit(self.number, |tree, around| {
            if !tree.bare {
                tree.kill(around);
            }
            tree.is_over = true;
        });
        process_trees.clear();
    }
}

impl ProcessTrees {
    fn visit<T>(&mut self, number: u64, work: impl FnOnce(&mut Tree, &Around) -> T) -> Option<T> {
        let at = self.trees.iter().position(|tree| tree.number == number)?;
        let around = self.around(number);
        Some(work(&mut self.trees[at], &around))
    }

    fn around(&self, number: u64) -> Around {
        let leaders = self.trees.iter().filter(|tree| tree.leading != Leading::Reaped);
        let taken = leaders.map(|tree| tree.leader.as_raw_pid()).chain(self.guard.pid()).collect();
        let alone = self.trees.iter().all(|tree| tree.number == number || tree.is_over);
        Around { taken, alone }
    }

    /// Reaps what is left of steps that are over, and forgets steps without processes.
    fn clear(&mut self) {
        self.trees.retain(|tree| !(tree.is_over && tree.bare && tree.leading == Leading::Reaped));
        let over: Vec<u64> = self.trees.iter().filter(|tree| tree.is_over).map(|tree| tree.number).collect();
        for number in over {
            let left = self.visit(number, |tree, around| {
                tree.kill(around);
                tree.find(around)
                    .iter()
                    .any(|process| process.pid != tree.leader.as_raw_pid() && (process.alive || !census::reap(process)))
            });
            let ProcessTrees { trees, guard } = self;
            trees.retain_mut(|tree| {
                tree.number != number || {
                    tree.reap(guard);
                    left == Some(true) || tree.leading != Leading::Reaped
                }
            });
        }
    }
}

impl Tree {
    /// Kills all processes, and returns what the last round found. The rounds end when nothing new
    /// is left to kill, or after [`ROUNDS`].
    fn kill(&mut self, around: &Around) -> Vec<Process> {
        let (mut killed, mut found) = (BTreeMap::new(), Vec::new());
        for _ in 0..ROUNDS {
            // Find the processes first, since the death of a parent hides whose child one was. Then
            // kill the group, all at once.
            found = self.find(around);
            if self.leading != Leading::Reaped && !(found.is_empty() && census::adopt_orphans()) {
                let _it_is_empty = rustix::process::kill_process_group(self.leader, Signal::KILL);
            }
            let fresh = |process: &&Process| process.alive && killed.get(&process.pid) != Some(&process.started);
            let fresh: Vec<Process> = found.iter().filter(fresh).copied().collect();
            if fresh.is_empty() {
                break;
            }
            for process in fresh {
                census::signal(&process, Signal::KILL);
                killed.insert(process.pid, process.started);
            }
        }
        found
    }

    /// Returns all processes of this step that the kernel still lists, except a leader that has
    /// ended. They are the children of this process that belong to the step, and their descendants.
    /// If no other step runs, that includes adopted children that have changed their mark.
    fn find(&mut self, around: &Around) -> Vec<Process> {
        self.find_beyond(around, usize::MAX)
    }

    /// Works like [`Tree::find`], but stops soon after `most` processes: there are already too
    /// many, and more may be starting.
    fn find_beyond(&mut self, around: &Around, most: usize) -> Vec<Process> {
        let mut strays = census::candidates();
        strays.retain(|pid| !around.taken.contains(pid));
        let mut found: Vec<Process> = strays.into_iter().filter_map(census::look).collect();
        found.retain(|process| self.owns(process, around.alone));
        found.extend(if self.is_led() { census::look(self.leader.as_raw_pid()) } else { None });
        let mut pids: BTreeSet<i32> = found.iter().map(|process| process.pid).collect();
        let mut next = 0;
        while let Some(parent) = found.get(next).filter(|_| found.len() <= most) {
            for child in census::children(parent.pid) {
                if pids.insert(child.pid) {
                    found.push(child);
                }
            }
            next += 1;
        }
        if found.len() > most {
            self.known.extend(found.iter().map(|process| (process.pid, process.started)));
            return found;
        }
        self.known = found.iter().map(|process| (process.pid, process.started)).collect();
        found
    }

    fn is_led(&mut self) -> bool {
        if self.leading == Leading::Runs && !census::runs(self.leader) {
            self.leading = Leading::Ended;
        }
        self.leading == Leading::Runs
    }

    fn owns(&self, process: &Process, alone: bool) -> bool {
        let leader = self.leader.as_raw_pid();
        let is_led = self.leading != Leading::Reaped && [process.group, process.session].contains(&leader);
        if is_led || self.known.get(&process.pid) == Some(&process.started) {
            return true;
        }
        let is_marked = mark::of_process(process.pid).is_some_and(|mark| {
            // A process in our own session may be one that another thread started while this
            // process bore the step's number.
            match *OWN_SESSION == Some(process.session) {
                true => mark.is(self.number),
                false => mark.may_be(self.number) || alone && mark.is_foreign(),
            }
        });
        is_marked || mark::has_variable(process.pid, &self.variable)
    }

    fn reap(&mut self, guard: &mut ProcessGuard) -> Option<WaitStatus> {
        if self.leading == Leading::Reaped || self.is_led() {
            return None;
        }
        // Tell the guard first: once the leader is reaped, its number can belong to another
        // process.
        guard.remove(self.leader);
        self.leading = Leading::Reaped;
        waitpid(Some(self.leader), WaitOptions::NOHANG).ok().flatten().map(|(_, status)| status)
    }
}

/// Kills everything that any step has started and that still runs, without waiting. For a second
/// Ctrl-C, or a panic.
pub fn kill_everything() {
    let mut process_trees = process_trees();
    let taken = process_trees.around(0).taken;
    for tree in &mut process_trees.trees {
        tree.kill(&Around { taken: taken.clone(), alone: true });
    }
}

/// Ends this module's own guard process if nothing that the module has started is left. Steps can
/// run again afterwards.
pub fn close() {
    let mut process_trees = process_trees();
    process_trees.clear();
    process_trees.guard.dismiss();
}

fn process_trees() -> MutexGuard<'static, ProcessTrees> {
    FOREST.lock().unwrap_or_else(PoisonError::into_inner)
}
