//! Owns everything a step has started, however far it has strayed: found again by its process group, its session, its parents,
//! and the number that it inherits; and by being adopted, since this process is made the subreaper of what it starts. Never
//! touches another step's processes, nor children that this process has for other reasons.

use super::bounds::Bounds;
use super::census::{self, Process};
use super::guard::Guard;
use super::mark;
use super::open_files;
use super::start::Program;
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, waitpid};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Rounds of looking and killing at once. Each one finds only what was started before the round before it took effect.
const ROUNDS: usize = 100;

static FOREST: Mutex<Forest> = Mutex::new(Forest { trees: Vec::new(), guard: Guard::new() });

/// As the kernel's list has it, where 0 stands for a session that was begun outside of this container. `getsid` cannot say that.
static OWN_SESSION: LazyLock<Option<i32>> = LazyLock::new(|| census::own().map(|own| own.session));

static HAS_TERMINAL: LazyLock<bool> = LazyLock::new(|| File::open("/dev/tty").is_ok());

/// The hold on a running step's processes. When it is let go, they are killed.
#[derive(Debug)]
pub(super) struct Group {
    leader: Pid,
    number: u64,
}

/// All that was started and has not been seen to be empty, and who watches over it.
struct Forest {
    trees: Vec<Tree>,
    guard: Guard,
}

struct Tree {
    number: u64,
    variable: String,
    leader: Pid,
    leading: Leading,
    /// What was found last: number and start.
    known: BTreeMap<i32, u64>,
    /// Its step is over; what is left of it only has to be reaped.
    felled: bool,
    /// Nothing was left but the leader when it was looked at twice: nothing can come any more.
    bare: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Leading {
    Runs,
    /// It has no children any more, and its number is still its own.
    Ended,
    Reaped,
}

/// What a tree has to know of the others.
struct Around {
    /// Children of this process that are none of its strays.
    taken: Vec<i32>,
    /// No other step runs.
    alone: bool,
}

impl Group {
    /// Starts the leader of a new process group, with everything in place to find its descendants. Where there is a terminal it
    /// leads a session, too, so that nothing of it can ask there and wait. That costs a fork of this process, where the plain
    /// start shares its memory until the program begins (posix_spawn(3)).
    pub(super) fn start(program: Program<'_>) -> io::Result<Self> {
        census::adopt_orphans();
        let number = mark::next();
        let variable = mark::variable(number);
        // Held until the new tree stands in it: nobody may look around while there is a process that belongs to no tree.
        let mut forest = forest();
        forest.clear();
        forest.guard.post();
        let start = || program.start(&variable, *HAS_TERMINAL);
        let leader = mark::start(number, start, |started| started.as_ref().ok().copied())?;
        open_files::give_back(leader);
        forest.guard.add(leader);
        let known = BTreeMap::new();
        forest.trees.push(Tree { number, variable, leader, leading: Leading::Runs, known, felled: false, bare: false });
        Ok(Self { leader, number })
    }

    /// The number of the leader.
    pub(super) fn leader(&self) -> Pid {
        self.leader
    }

    /// Asks everything to end.
    pub(super) fn terminate(&self) {
        let found = self.find();
        let _ = rustix::process::kill_process_group(self.leader, Signal::TERM);
        let strays = found.iter().filter(|process| process.group != self.leader.as_raw_pid());
        strays.for_each(|process| census::signal(process, Signal::TERM));
    }

    /// Remembers who is there, so that who strays later is known, and reaps orphans that have ended.
    pub(super) fn tend(&self) {
        forest().guard.post(); // a step may have killed it
        for orphan in self.find().iter().filter(|process| !process.alive && process.pid != self.leader.as_raw_pid()) {
            census::reap(orphan);
        }
    }

    /// How its processes have gone beyond what they may use up together. Remembers who is there, too.
    pub(super) fn exceeded(&self, bounds: Bounds) -> Option<String> {
        let most = bounds.processes.map_or(usize::MAX, |most| usize::try_from(most).unwrap_or(usize::MAX));
        let found = forest().visit(self.number, |tree, around| tree.find_beyond(around, most)).unwrap_or_default();
        bounds.exceeded(&found)
    }

    /// Kills the process group, at one moment, without looking who else there is: nothing can start more of itself in it while it is ended.
    pub(super) fn fell(&self) {
        let _it_is_empty = rustix::process::kill_process_group(self.leader, Signal::KILL);
    }

    /// How many processes are alive.
    pub(super) fn alive(&self) -> usize {
        self.find().iter().filter(|process| process.alive).count()
    }

    /// Waits until none is alive.
    pub(super) async fn empty(&self) {
        while self.alive() > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Kills everything, and waits until nothing is left but the leader. From the first moment nothing of it runs any more, though
    /// the kernel may still be clearing it away.
    pub(super) async fn gone(&self) {
        let (mut pause, mut empty) = (Duration::from_millis(1), 0);
        // A list of children can miss one while another ends, hence the second look.
        while empty < 2 {
            let found = forest().visit(self.number, Tree::kill).unwrap_or_default();
            let left = found.iter().filter(|process| process.pid != self.leader.as_raw_pid());
            if left.filter(|process| process.alive || !census::reap(process)).count() == 0 {
                empty += 1;
                continue;
            }
            empty = 0;
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(Duration::from_millis(20));
        }
        forest().visit(self.number, |tree, _| tree.bare = true);
    }

    /// Takes the leader off the kernel's list, when it has ended.
    pub(super) fn reap(&self) -> Option<WaitStatus> {
        let mut forest = forest();
        let Forest { trees, guard } = &mut *forest;
        trees.iter_mut().find(|tree| tree.number == self.number).and_then(|tree| tree.reap(guard))
    }

    fn find(&self) -> Vec<Process> {
        forest().visit(self.number, Tree::find).unwrap_or_default()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let mut forest = forest();
        forest.visit(self.number, |tree, around| {
            if !tree.bare {
                tree.kill(around);
            }
            tree.felled = true;
        });
        forest.clear();
    }
}

impl Forest {
    fn visit<T>(&mut self, number: u64, work: impl FnOnce(&mut Tree, &Around) -> T) -> Option<T> {
        let at = self.trees.iter().position(|tree| tree.number == number)?;
        let around = self.around(number);
        Some(work(&mut self.trees[at], &around))
    }

    fn around(&self, number: u64) -> Around {
        let leaders = self.trees.iter().filter(|tree| tree.leading != Leading::Reaped);
        let taken = leaders.map(|tree| tree.leader.as_raw_pid()).chain(self.guard.pid()).collect();
        let alone = self.trees.iter().all(|tree| tree.number == number || tree.felled);
        Around { taken, alone }
    }

    /// Reaps what is left of steps that are over, and forgets the empty ones.
    fn clear(&mut self) {
        self.trees.retain(|tree| !(tree.felled && tree.bare && tree.leading == Leading::Reaped));
        let over: Vec<u64> = self.trees.iter().filter(|tree| tree.felled).map(|tree| tree.number).collect();
        for number in over {
            let left = self.visit(number, |tree, around| {
                tree.kill(around);
                tree.find(around)
                    .iter()
                    .any(|process| process.pid != tree.leader.as_raw_pid() && (process.alive || !census::reap(process)))
            });
            let Forest { trees, guard } = self;
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
    /// Kills everything; gives what was found when there was nobody to kill any more, or too many came after.
    fn kill(&mut self, around: &Around) -> Vec<Process> {
        let (mut killed, mut found) = (BTreeMap::new(), Vec::new());
        for _ in 0..ROUNDS {
            // First who is there, since the death of a parent hides whose child one was; then the group, all at one moment.
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

    /// Everything of this step that is still on the kernel's list, but for a leader that has ended: those of our children that
    /// are its own, and their descendants. When no other step runs, that includes adopted ones that have changed their mark.
    fn find(&mut self, around: &Around) -> Vec<Process> {
        self.find_beyond(around, usize::MAX)
    }

    /// The same, but not many more than `most`: whoever is looked for there is too many, and grows.
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
        let is_marked = mark::of(process.pid).is_some_and(|mark| {
            // In our own session there may be what another thread has started while we bore this step's number.
            match *OWN_SESSION == Some(process.session) {
                true => mark.is(self.number),
                false => mark.may_be(self.number) || alone && mark.is_foreign(),
            }
        });
        is_marked || mark::has_variable(process.pid, &self.variable)
    }

    fn reap(&mut self, guard: &mut Guard) -> Option<WaitStatus> {
        if self.leading == Leading::Reaped || self.is_led() {
            return None;
        }
        // The guard first: once it is reaped, its number can be somebody else's.
        guard.remove(self.leader);
        self.leading = Leading::Reaped;
        waitpid(Some(self.leader), WaitOptions::NOHANG).ok().flatten().map(|(_, status)| status)
    }
}

/// Kills everything that any step has started and that still runs, without waiting: for a second Ctrl-C, or a panic.
pub fn kill_everything() {
    let mut forest = forest();
    let taken = forest.around(0).taken;
    for tree in &mut forest.trees {
        tree.kill(&Around { taken: taken.clone(), alone: true });
    }
}

/// Ends what this module keeps for itself, when nothing that it has started is left. Steps can be run again after it.
pub fn close() {
    let mut forest = forest();
    forest.clear();
    forest.guard.dismiss();
}

fn forest() -> MutexGuard<'static, Forest> {
    FOREST.lock().unwrap_or_else(PoisonError::into_inner)
}
