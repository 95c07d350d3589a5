//! What all processes of one program may use up together. The kernel bounds each of them by itself, and hardly any of root; so they are
//! looked at while they run, and who has gone beyond is ended.

use super::census::{self, Process};
use super::tmpfs;
use serde::{Deserialize, Serialize};
use std::sync::LazyLock;
use std::time::Duration;

/// How often they are looked at.
const LOOKING: Duration = Duration::from_millis(100);
/// How often it is looked whether there are many more on the whole machine, which costs next to nothing.
const GLANCING: Duration = Duration::from_millis(20);
/// Of the time, looking takes at most one part in so many.
const SHARE: u32 = 50;

static PAGE: LazyLock<u64> = LazyLock::new(|| rustix::param::page_size() as u64);

/// What all processes of a program may use up together; `None` is without a bound.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bounds {
    /// Processes and threads.
    pub processes: Option<u64>,
    /// Bytes of memory.
    pub memory: Option<u64>,
}

impl Bounds {
    /// When to look again, after a look that took so long; `None` where there is nothing to look for.
    pub(super) fn pause(self, look: Duration) -> Option<Duration> {
        (self != Self::default()).then(|| LOOKING.max(look * SHARE))
    }

    /// What is looked at in between.
    pub(super) fn crowd(self) -> Crowd {
        Crowd { step: self.processes.map(|most| (most / 4).max(16)), seen: census::threads_of_machine() }
    }

    /// How these processes have gone beyond.
    pub(super) fn exceeded(self, found: &[Process]) -> Option<String> {
        let alive = || found.iter().filter(|process| process.alive);
        let threads: u64 = alive().map(|process| process.threads).sum();
        if let Some(most) = self.processes.filter(|most| threads > *most) {
            return Some(format!("it had more than {most} processes and threads"));
        }
        let most = self.memory?;
        // What several have in common counts for each here, so where it is too much it is asked about again.
        let seen: u64 = alive().map(|process| process.pages.saturating_mul(*PAGE)).sum();
        let files = tmpfs::held_by(alive().map(|process| process.pid));
        let is_beyond = seen.saturating_add(files) > most
            && files.saturating_add(alive().map(|process| own_memory(process.pid)).sum::<u64>()) > most;
        is_beyond.then(|| format!("it held more than {} MiB of memory", most >> 20))
    }
}

/// All processes and threads of the machine: when there are many more of a sudden, somebody may be starting ever more.
#[derive(Debug)]
pub(super) struct Crowd {
    /// How many more are many.
    step: Option<u64>,
    seen: Option<u64>,
}

impl Crowd {
    /// Comes when the machine has so many more that it is time to look whose they are.
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

/// The bytes that a process holds, its share of what it has in common with others; nothing, where that cannot be told any more.
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
        let bounds = |processes, memory| Bounds { processes, memory };
        assert_eq!(bounds(Some(me.threads + 50), Some(own * 50)).exceeded(&[me]), None);
        let many = vec![me; 3];
        let said = bounds(Some(me.threads), None).exceeded(&many).unwrap();
        assert_eq!(said, format!("it had more than {} processes and threads", me.threads));
        assert!(bounds(None, Some(own)).exceeded(&many).unwrap().starts_with("it held more than"));
        let dead = Process { alive: false, ..me };
        assert_eq!(bounds(Some(0), Some(0)).exceeded(&[dead]), None);
        assert_eq!(Bounds::default().pause(Duration::ZERO), None);
        assert_eq!(bounds(Some(1), None).pause(Duration::from_millis(4)), Some(Duration::from_millis(200)));
    }
}
