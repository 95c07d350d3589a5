//! Limits on what all processes of one program use together. The kernel limits each process on its
//! own, and hardly limits root. So fledge counts the processes while they run, and ends a program
//! that goes beyond its limits.

use super::census::{self, Process};
use super::tmpfs;
use serde::{Deserialize, Serialize};
use std::sync::LazyLock;
use std::time::Duration;

/// The shortest pause between two counts of a program's processes.
const LOOKING: Duration = Duration::from_millis(100);
/// The pause between two looks at how many threads the whole machine has, which cost next to
/// nothing.
const GLANCING: Duration = Duration::from_millis(20);
/// Counting takes at most 1/`SHARE` of the time.
const SHARE: u32 = 50;

static PAGE: LazyLock<u64> = LazyLock::new(|| rustix::param::page_size() as u64);

/// Limits on what all processes of a program use together. `None` means no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessBounds {
    /// Processes and threads.
    pub processes: Option<u64>,
    /// Bytes of memory.
    pub memory: Option<u64>,
}

impl ProcessBounds {
    /// Returns the pause before the next count, after a count that took `look`. `None` if there is
    /// no limit.
    pub(super) fn pause(self, look: Duration) -> Option<Duration> {
        (self != Self::default()).then(|| LOOKING.max(look * SHARE))
    }

    /// Returns the watch on the machine's threads between two counts.
    pub(super) fn crowd(self) -> MachineLoad {
        MachineLoad { step: self.processes.map(|most| (most / 4).max(16)), seen: census::threads_of_machine() }
    }

    /// Returns the reason if these processes have gone beyond a limit. `before` is the size of the
    /// files in memory that earlier programs left. If it is more than the limit, such files must
    /// not grow, and processes may use a quarter of the limit, so that they can remove the files.
    pub(super) fn exceeded(self, found: &[Process], before: u64) -> Option<String> {
        let alive = || found.iter().filter(|process| process.alive);
        let threads: u64 = alive().map(|process| process.threads).sum();
        if let Some(most) = self.processes.filter(|most| threads > *most) {
            return Some(format!("it had more than {most} processes and threads"));
        }
        let most = self.memory?;
        // Here shared memory counts once for each process that shares it. If the sum is too large,
        // each process's own share decides.
        let seen: u64 = alive().map(|process| process.pages.saturating_mul(*PAGE)).sum();
        let pids = || alive().map(|process| process.pid);
        let (files, unnamed) = (tmpfs::held_by(pids()), tmpfs::unnamed_held_by(pids()));
        let rest = most.saturating_sub(files).max(before.min(most / 4));
        let is_beyond = files > most.max(before)
            || (seen.saturating_add(unnamed) > rest
                && unnamed.saturating_add(alive().map(|process| own_memory(process.pid)).sum::<u64>()) > rest);
        let files = match files >> 20 {
            0 => String::new(),
            size => format!(", with {size} MiB of files in /tmp and /dev/shm"),
        };
        is_beyond.then(|| format!("it held more than {} MiB of memory{files}", most >> 20))
    }
}

/// A watch on the number of processes and threads of the whole machine. If it rises suddenly, a
/// program may be starting ever more of them.
#[derive(Debug)]
pub(super) struct MachineLoad {
    /// The rise that makes a count of the program's processes necessary.
    step: Option<u64>,
    seen: Option<u64>,
}

impl MachineLoad {
    /// Returns when the machine has so many more threads that fledge must count the program's own.
    pub(super) async fn grown(&mut self) {
        let (Some(step), Some(seen)) = (self.step, self.seen) else { return std::future::pending().await };
        loop {
            tokio::time::sleep(GLANCING).await;
            if let Some(now) = census::threads_of_machine().filter(|now| *now > seen.saturating_add(step)) {
                self.seen = Some(now);
                return;
            }
        }
    }
}

/// Returns the bytes that a process holds, with its share of the memory it has in common with
/// others. 0 if the system no longer says.
fn own_memory(pid: i32) -> u64 {
    let shares = || {
        let text = census::read(&format!("/proc/{pid}/smaps_rollup"))?;
        let kilobytes = text.lines().find_map(|line| line.strip_prefix("Pss:"))?;
        kilobytes.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()
    };
    let unshared = || {
        let text = census::read(&format!("/proc/{pid}/statm"))?;
        let mut pages = text.split_ascii_whitespace().skip(1).map_while(|number| number.parse::<u64>().ok());
        Some(pages.next()?.saturating_sub(pages.next()?).saturating_mul(*PAGE))
    };
    shares().map(|kilobytes| kilobytes.saturating_mul(1024)).or_else(unshared).unwrap_or(0)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn what_processes_use_is_counted_together_and_what_they_share_once() {
        let me = census::own().unwrap();
        let own = own_memory(me.pid);
        assert!(me.threads > 0 && me.pages > 0 && own > 0 && own <= me.pages * *PAGE * 2, "{me:?} {own}");
        let bounds = |processes, memory| ProcessBounds { processes, memory };
        assert_eq!(bounds(Some(me.threads + 50), Some(own * 50)).exceeded(&[me], 0), None);
        let many = vec![me; 3];
        let message = bounds(Some(me.threads), None).exceeded(&many, 0).unwrap();
        assert_eq!(message, format!("it had more than {} processes and threads", me.threads));
        assert!(bounds(None, Some(own)).exceeded(&many, 0).unwrap().starts_with("it held more than"));
        let dead = Process { alive: false, ..me };
        assert_eq!(bounds(Some(0), Some(0)).exceeded(&[dead], 0), None);
        assert_eq!(ProcessBounds::default().pause(Duration::ZERO), None);
        assert_eq!(bounds(Some(1), None).pause(Duration::from_millis(4)), Some(Duration::from_millis(200)));
    }
}
