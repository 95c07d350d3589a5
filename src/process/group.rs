//! Owns everything a step has started, however far it has strayed: found again by its process group, its session, its parents,
//! a variable of its environment and a mark that it inherits; and by being adopted, since this process is made the subreaper of
//! what it starts. Never touches another step's processes, nor children that this process has for other reasons.

use super::census::{self, Process};
use process_wrap::tokio::{ChildWrapper, CommandWrap};
use rustix::process::{Pid, Signal};
use std::collections::BTreeMap;
use std::io;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use uuid::Uuid;

/// The variable that every process of a step inherits.
const VARIABLE: &str = "FLEDGE_STEP";
/// Rounds of looking and killing at once. Each one finds only what was started before the round before it took effect.
const ROUNDS: usize = 100;

/// The trees that have not been seen to be empty.
static FOREST: Mutex<Vec<Tree>> = Mutex::new(Vec::new());
/// The mark of this process itself: none, unless it runs inside a step.
static OWN_MARK: LazyLock<Option<u64>> = LazyLock::new(|| census::mark_of(own_pid()));
static OWN_SESSION: LazyLock<i32> = LazyLock::new(|| census::look(own_pid()).map_or(0, |process| process.session));

/// The hold on a running step's processes. When it is let go, they are killed.
pub(super) struct Group {
    leader: Pid,
    name: Uuid,
}

struct Tree {
    name: Uuid,
    leader: Process,
    variable: String,
    mark: u64,
    /// What was found last: number and start.
    known: BTreeMap<i32, u64>,
    /// Its step is over; what is left of it only has to be reaped.
    felled: bool,
}

impl Group {
    /// Starts the leader of a new session, with everything in place to find its descendants.
    pub(super) fn start(mut command: CommandWrap) -> io::Result<(Self, Box<dyn ChildWrapper>)> {
        census::adopt_orphans();
        clear();
        let name = Uuid::now_v7();
        command.command_mut().env(VARIABLE, name.to_string());
        command.wrap(process_wrap::tokio::ProcessSession);
        let mark = new_mark(name);
        // Held until the new tree stands in it: nobody may look around while there is a process that belongs to no tree.
        let mut forest = forest();
        let child = census::start_marked(mark, *OWN_MARK, || command.spawn(), |child| pid_of(child.as_deref().ok()?));
        let child = child?.into_inner();
        let leader = pid_of(&*child).ok_or_else(|| io::Error::other("the program has no number"))?;
        let pid = leader.as_raw_pid();
        let missing = Process { pid, started: 0, parent: 0, session: pid, alive: false };
        let process = census::look(pid).unwrap_or(missing);
        let known = BTreeMap::from([(pid, process.started)]);
        let variable = format!("{VARIABLE}={name}");
        forest.push(Tree { name, leader: process, variable, mark, known, felled: false });
        Ok((Self { leader, name }, child))
    }

    /// The number of the leader.
    pub(super) fn leader(&self) -> Pid {
        self.leader
    }

    /// Asks everything to end.
    pub(super) fn terminate(&self) {
        let found = self.find();
        let _ = rustix::process::kill_process_group(self.leader, Signal::TERM);
        let strays = found.iter().filter(|process| process.session != self.leader.as_raw_pid());
        strays.for_each(|process| census::signal(process, Signal::TERM));
    }

    /// Remembers who is there, so that who strays later is known, and reaps orphans that have ended.
    pub(super) fn tend(&self) {
        self.find().iter().filter(|process| !process.alive && process.pid != self.leader.as_raw_pid()).for_each(
            |orphan| {
                census::reap(orphan);
            },
        );
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

    /// Kills everything. After this nothing of it runs any more, though the kernel may still be clearing it away.
    pub(super) fn kill(&self) {
        let mut forest = forest();
        let alone = is_alone(&forest, self.name);
        if let Some(tree) = forest.iter_mut().find(|tree| tree.name == self.name) {
            tree.kill(alone);
        }
    }

    /// Waits until nothing is left but the leader, which is its keeper's to reap.
    pub(super) async fn gone(&self) {
        let (mut pause, mut empty) = (Duration::from_millis(1), 0);
        // A list of children can miss one while another ends, hence the second look.
        while empty < 2 {
            self.kill();
            let found = self.find();
            let left = found.iter().filter(|process| process.pid != self.leader.as_raw_pid());
            if left.filter(|process| process.alive || !census::reap(process)).count() == 0 {
                empty += 1;
                continue;
            }
            empty = 0;
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(Duration::from_millis(20));
        }
    }

    fn find(&self) -> Vec<Process> {
        let mut forest = forest();
        let alone = is_alone(&forest, self.name);
        let tree = forest.iter_mut().find(|tree| tree.name == self.name);
        tree.map(|tree| tree.find(alone)).unwrap_or_default()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
        if let Some(tree) = forest().iter_mut().find(|tree| tree.name == self.name) {
            tree.felled = true;
        }
        clear();
    }
}

impl Tree {
    fn kill(&mut self, alone: bool) {
        let mut killed = BTreeMap::new();
        for _ in 0..ROUNDS {
            // First who is there, since the death of a parent hides whose child one was; then the group, all at one moment.
            let found = self.find(alone);
            if !self.felled && (self.leader.started == 0 || census::is_same(&self.leader)) {
                Pid::from_raw(self.leader.pid).map(|leader| rustix::process::kill_process_group(leader, Signal::KILL));
            }
            let fresh = |process: &&Process| process.alive && killed.get(&process.pid) != Some(&process.started);
            let fresh: Vec<Process> = found.iter().filter(fresh).copied().collect();
            if fresh.is_empty() {
                return;
            }
            for process in fresh {
                census::signal(&process, Signal::KILL);
                killed.insert(process.pid, process.started);
            }
        }
    }

    /// Everything of this step that is still on the kernel's list: those of our children that are its own, and their
    /// descendants. When no other step runs, that includes adopted ones that have changed their mark.
    fn find(&mut self, alone: bool) -> Vec<Process> {
        let leader = census::look(self.leader.pid).filter(|now| now.started == self.leader.started);
        let mut found = if census::adopt_orphans() { census::adopted(own_pid()) } else { census::everyone() };
        found.retain(|process| process.pid != self.leader.pid && self.owns(process, leader.is_some(), alone));
        found.extend(leader);
        let mut next = 0;
        while let Some(parent) = found.get(next) {
            for child in census::children(parent.pid) {
                if !found.iter().any(|other| other.pid == child.pid) {
                    found.push(child);
                }
            }
            next += 1;
        }
        self.known = found.iter().map(|process| (process.pid, process.started)).collect();
        found
    }

    fn owns(&self, process: &Process, has_leader: bool, alone: bool) -> bool {
        let is_of_session = has_leader && process.session == self.leader.pid;
        if is_of_session || self.known.get(&process.pid) == Some(&process.started) {
            return true;
        }
        // Nothing of a step is in our own session, but what another thread starts while we bear a step's mark may be.
        if process.session == *OWN_SESSION {
            return false;
        }
        let mark = census::mark_of(process.pid);
        mark == Some(self.mark)
            || alone && mark.is_some() && mark != *OWN_MARK
            || census::has_variable(process.pid, &self.variable)
    }
}

/// Kills everything that any step has started and that still runs, without waiting: for a second Ctrl-C, or a panic.
pub fn kill_everything() {
    for tree in forest().iter_mut() {
        tree.kill(true);
    }
}

/// Reaps what is left of steps that are over, and forgets the empty ones.
fn clear() {
    let mut forest = forest();
    let running: Vec<Uuid> = forest.iter().filter(|tree| !tree.felled).map(|tree| tree.name).collect();
    forest.retain_mut(|tree| {
        if !tree.felled {
            return true;
        }
        tree.kill(running.is_empty());
        let left = tree.find(running.is_empty());
        left.iter().any(|process| process.pid != tree.leader.pid && (process.alive || !census::reap(process)))
    });
}

fn is_alone(forest: &[Tree], name: Uuid) -> bool {
    forest.iter().all(|tree| tree.name == name || tree.felled)
}

/// A mark of its own for each step, below that of this process, since a limit can only be lowered.
fn new_mark(name: Uuid) -> u64 {
    let below = OWN_MARK.unwrap_or(1 << 62).max(2);
    let chance = name.as_u128() as u64; // the random half of a version 7 UUID
    below - 1 - chance % (below / 2)
}

fn pid_of(child: &dyn ChildWrapper) -> Option<Pid> {
    Pid::from_raw(i32::try_from(child.id()?).ok()?)
}

fn forest() -> MutexGuard<'static, Vec<Tree>> {
    FOREST.lock().unwrap_or_else(PoisonError::into_inner)
}

fn own_pid() -> i32 {
    rustix::process::getpid().as_raw_pid()
}
