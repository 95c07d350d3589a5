//! Memory used by file systems in memory (tmpfs) that only the processes of one program see: `/tmp`
//! and `/dev/shm` of a sandbox, and files without a place.

use super::census;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// The type numbers of file systems that keep their files in memory: tmpfs and ramfs (statfs(2)).
const IN_MEMORY: [u64; 2] = [0x0102_1994, 0x8584_58f6];

/// The size of a block in stat(2), in bytes.
const BLOCK: u64 = 512;

/// Returns whether a folder is on a file system that keeps its files in memory.
pub fn is_in_memory(folder: &Path) -> bool {
    let number = rustix::fs::statfs(folder).map_or(0, |about| u64::try_from(about.f_type).unwrap_or(0));
    IN_MEMORY.contains(&(number & 0xffff_ffff))
}

/// True if fledge itself runs in bubblewrap, as the host of tools does. Then its programs see the
/// same file systems as fledge.
static IS_SANDBOXED: LazyLock<bool> =
    LazyLock::new(|| census::read("/proc/1/comm").is_some_and(|name| name.trim_end() == "bwrap"));

/// Devices of the file systems in memory that fledge also sees, so they do not belong to a program.
static SHARED: LazyLock<BTreeSet<String>> = LazyLock::new(|| {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let devices = mounts.lines().filter_map(in_memory).map(|(device, _)| device.to_owned());
    devices.filter(|_| !*IS_SANDBOXED).collect()
});

/// Returns the bytes of files that these processes hold in memory, with each file system counted
/// once. Returns 0 without `/proc`.
pub(super) fn held_by(pids: impl Iterator<Item = i32>) -> u64 {
    let namespace = |pid: &str| fs::read_link(format!("/proc/{pid}/ns/mnt")).ok();
    let own = namespace("self").filter(|_| !*IS_SANDBOXED);
    let (mut namespaces, mut devices) = (BTreeSet::new(), BTreeSet::new());
    let mut bytes: u64 = 0;
    for pid in pids {
        let Some(other) = namespace(&pid.to_string()).filter(|other| Some(other) != own.as_ref()) else { continue };
        if !namespaces.insert(other) {
            continue;
        }
        let mounts = fs::read_to_string(format!("/proc/{pid}/mountinfo")).unwrap_or_default();
        for (device, place) in mounts.lines().filter_map(in_memory).filter(|(device, _)| !SHARED.contains(*device)) {
            if !devices.contains(device)
                && let Some(held) = held(&format!("/proc/{pid}/root{place}"), device)
            {
                devices.insert(device.to_owned());
                bytes = bytes.saturating_add(held);
            }
        }
    }
    bytes
}

/// Returns the bytes that file systems in memory hold which a program will share with earlier
/// programs: those of the sandbox in which fledge itself runs.
pub(super) fn held_before() -> u64 {
    if *IS_SANDBOXED { held_by(std::iter::once(census::own_pid())) } else { 0 }
}

/// Returns the bytes of files without a place (memfd_create(2)) that these processes have open.
/// Each file counts once.
pub(super) fn unnamed_held_by(pids: impl Iterator<Item = i32>) -> u64 {
    let mut files = BTreeMap::new();
    for pid in pids {
        let open = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten().map(|entry| entry.path());
        let is_unnamed = |path: &PathBuf| {
            fs::read_link(path).is_ok_and(|leads_to| leads_to.as_os_str().as_bytes().starts_with(b"/memfd:"))
        };
        let sizes = open.filter(is_unnamed).filter_map(|path| fs::metadata(path).ok());
        files.extend(sizes.map(|meta| ((meta.dev(), meta.ino()), meta.blocks().saturating_mul(BLOCK))));
    }
    files.into_values().fold(0, u64::saturating_add)
}

/// Returns the bytes that the file system with this device holds. `None` if `place` is on another
/// device: a sandbox is being built, or something is mounted over it.
fn held(place: &str, device: &str) -> Option<u64> {
    let folder = fs::File::open(place).ok()?;
    let found = folder.metadata().ok()?.dev();
    let used = rustix::fs::fstatvfs(&folder).ok().filter(|_| device == numbers(found))?;
    Some(used.f_blocks.saturating_sub(used.f_bfree).saturating_mul(used.f_frsize))
}

/// Returns the device as `mountinfo` writes it, `major:minor` (makedev(3)).
fn numbers(device: u64) -> String {
    let major = (device >> 8 & 0xfff) | (device >> 32 & !0xfff);
    let minor = (device & 0xff) | (device >> 12 & !0xff);
    format!("{major}:{}", minor & 0xffff_ffff)
}

/// Returns the device and the place of a file system in memory, from its line in `mountinfo`
/// (proc_pid_mountinfo(5)).
fn in_memory(line: &str) -> Option<(&str, &str)> {
    let (mount, kind) = line.split_once(" - ")?;
    let mut fields = mount.split(' ').skip(2);
    let (device, root, place) = (fields.next()?, fields.next()?, fields.next()?);
    (kind.starts_with("tmpfs ") && root == "/" && !place.contains('\\')).then_some((device, place))
}

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
    fn files_without_a_place_count_once_by_what_they_hold() {
        use std::io::Write as _;
        let made = rustix::fs::memfd_create("held", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
        let mut file = fs::File::from(made);
        let own = census::own_pid();
        file.write_all(&vec![1; 1 << 20]).unwrap();
        let held = unnamed_held_by([own].into_iter());
        assert!(held >= 1 << 20, "{held}");
        let copy = file.try_clone().unwrap();
        file.write_all(&vec![1; 64 << 20]).unwrap();
        let twice = unnamed_held_by([own, own].into_iter());
        assert!((held + (64 << 20)..held + (120 << 20)).contains(&twice), "{held} {twice}");
        drop((copy, file));
    }

    #[test]
    fn only_the_file_system_that_is_meant_is_counted() {
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        let at_proc = mounts.lines().rfind(|line| line.split(' ').nth(4) == Some("/proc")).unwrap();
        let device = at_proc.split(' ').nth(2).unwrap();
        assert!(held("/proc", device).is_some());
        assert_eq!((held("/proc", "0:999999"), held("/nowhere/at/all", device)), (None, None));
        assert_eq!(
            (numbers(0x2a), numbers(0xfe00), numbers(0x1012_34ab)),
            ("0:42".into(), "254:0".into(), "564:65963".into())
        );
    }
}
