//! What all processes of one program may use up together. The kernel bounds each of them by itself, and hardly any of root; so they are
//! looked at while they run, and who has gone beyond is ended.

use super::census::{self, Process};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
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
        let files = files_in_memory(alive().map(|process| process.pid));
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

/// The bytes of files in the file systems in memory (tmpfs) that only these processes have, each counted once. Files in `/tmp` and `/dev/shm`
/// of a sandbox are there.
fn files_in_memory(pids: impl Iterator<Item = i32>) -> u64 {
    let namespace = |pid: &str| std::fs::read_link(format!("/proc/{pid}/ns/mnt")).ok();
    let own = namespace("self").filter(|_| !*IS_SANDBOXED);
    let (mut namespaces, mut devices) = (BTreeSet::new(), BTreeSet::new());
    let mut bytes: u64 = 0;
    for pid in pids {
        let Some(other) = namespace(&pid.to_string()).filter(|other| Some(other) != own.as_ref()) else { continue };
        if !namespaces.insert(other) {
            continue;
        }
        let mounts = std::fs::read_to_string(format!("/proc/{pid}/mountinfo")).unwrap_or_default();
        for (device, place) in mounts.lines().filter_map(in_memory) {
            if OWN_DEVICES.contains(device) || !devices.insert(device.to_owned()) {
                continue;
            }
            bytes = bytes.saturating_add(held(&format!("/proc/{pid}/root{place}"), device).unwrap_or(0));
        }
    }
    bytes
}

/// The bytes that the file system with this device holds. `None` where another one is at this place: a sandbox that is being built, or a mount over it.
fn held(place: &str, device: &str) -> Option<u64> {
    use rustix::fs::{Mode, OFlags, fstat, fstatvfs, major, minor, open};
    let folder = open(place, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let found = fstat(&folder).ok()?.st_dev;
    let used = fstatvfs(&folder).ok().filter(|_| device == format!("{}:{}", major(found), minor(found)))?;
    Some(used.f_blocks.saturating_sub(used.f_bfree).saturating_mul(used.f_frsize))
}

/// The device and the place of a mount that is a file system in memory, by its line in `mountinfo` (proc_pid_mountinfo(5)).
fn in_memory(line: &str) -> Option<(&str, &str)> {
    let (mount, kind) = line.split_once(" - ")?;
    let mut fields = mount.split(' ').skip(2);
    let (device, root, place) = (fields.next()?, fields.next()?, fields.next()?);
    (kind.starts_with("tmpfs ") && root == "/" && !place.contains('\\')).then_some((device, place))
}

/// Whether this process itself runs behind bubblewrap, as the host of tools does: then the file systems that it sees are those of its programs.
static IS_SANDBOXED: LazyLock<bool> =
    LazyLock::new(|| census::read("/proc/1/comm").is_some_and(|name| name.trim_end() == "bwrap"));
/// The file systems in memory that this process sees: what they hold is not a program's own.
static OWN_DEVICES: LazyLock<BTreeSet<String>> = LazyLock::new(|| {
    if *IS_SANDBOXED {
        return BTreeSet::new();
    }
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    mounts.lines().filter_map(in_memory).map(|(device, _)| device.to_owned()).collect()
});

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_file_system_in_memory_is_known_by_its_line() {
        let line = "158 117 0:45 / /tmp rw,nosuid shared:1 - tmpfs tmpfs rw,mode=755";
        assert_eq!(in_memory(line), Some(("0:45", "/tmp")));
        for other in ["1 2 254:0 / / rw - ext4 /dev/vda rw", "1 2 0:45 /below /x rw - tmpfs tmpfs rw", "x"] {
            assert_eq!(in_memory(other), None);
        }
    }

    #[test]
    fn only_the_file_system_that_is_meant_is_counted() {
        let root = rustix::fs::stat("/").unwrap().st_dev;
        let device = format!("{}:{}", rustix::fs::major(root), rustix::fs::minor(root));
        assert!(held("/", &device).is_some());
        assert_eq!((held("/", "0:999999"), held("/nowhere/at/all", &device)), (None, None));
    }

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
