//! Checks of the machine: the sandbox, the limits, and the folders for state and temporary files.

use super::{HealthCheck, repository, room};
use crate::config::{self, EnvironmentLayer};
use crate::process;
use crate::process::sandbox::{NoSandbox, Sandbox, SandboxChoice, SandboxKind, SandboxLimits, WITHOUT};
use crate::store::is_inside;
use rustix::fs::{StatVfsMountFlags, statfs, statvfs};
use std::fs::File;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// Free bytes for state below which `fledge doctor` warns.
const NARROW: u64 = 1024 * 1024 * 1024;
/// Free bytes below which runs are likely to fail.
const FULL: u64 = 64 * 1024 * 1024;
/// File systems by magic number, and true if their locks are reliable: the database depends on
/// them.
const FILE_SYSTEMS: [(u64, &str, bool); 10] = [
    (0xEF53, "ext4", true),
    (0x9123_683E, "btrfs", true),
    (0x5846_5342, "xfs", true),
    (0x0102_1994, "tmpfs", true),
    (0x794C_7630, "overlayfs", true),
    (0x2FC1_2FC1, "zfs", true),
    (0xF2F5_2010, "f2fs", true),
    (0x6969, "nfs", false),
    (0xFF53_4D42, "cifs", false),
    (0x0102_1997, "9p", false),
];

pub(super) async fn look(root: &Path, set: &config::ProjectConfig, environment: &EnvironmentLayer) -> Vec<HealthCheck> {
    let child = environment.child_env();
    let path = child.get("PATH").map_or("", String::as_str);
    let hand: Vec<(String, String)> = environment.hand_env().into_iter().collect();
    let mut found = repository::look(root, path, &hand).await;
    let state_dir = environment.state_dir().unwrap_or_default();
    found.push(sandbox((root, &state_dir), set.sandbox, environment.program(), &process::outside(path, root)).await);
    found.push(limits(set.limits, set.sandbox, &[root, &state_dir]));
    found.push(temporary(environment.get("TMPDIR"), root));
    found.extend(project(root));
    found.extend(match environment.state_dir() {
        Ok(folder) => state(&folder, root),
        Err(fault) => {
            let text = fault.to_string();
            let says = text.split_once(" (").map_or(text.as_str(), |(says, _)| says);
            let hint = "set HOME, or set FLEDGE_STATE_DIR to a folder outside the project: `export FLEDGE_STATE_DIR=/var/tmp/fledge`";
            vec![HealthCheck::problem("state", format!("{says}: neither FLEDGE_STATE_DIR nor XDG_STATE_HOME nor HOME is set"), hint)]
        }
    });
    found
}

/// Checks the folder for temporary files, which sandboxes and rooms use.
fn temporary(set: Option<&str>, root: &Path) -> HealthCheck {
    let folder = PathBuf::from(set.unwrap_or("/tmp"));
    let shown = folder.display();
    let elsewhere = "set TMPDIR to an existing, writable folder outside the project";
    let problem = |why: &str| HealthCheck::problem("tmp", format!("TMPDIR is {shown}, {why}"), elsewhere);
    if !folder.is_dir() {
        return problem("which does not exist");
    }
    match room::refusal(&folder) {
        None => {}
        Some(why) if room::is_for_room(&why) => {
            let says = format!("temporary files go to {shown}, which is not writable: {why}");
            return HealthCheck::problem(
                "tmp",
                says,
                "make room there, or set TMPDIR to a folder on another file system",
            );
        }
        Some(why) => return problem(&format!("which is not writable: {why}")),
    }
    if is_inside(&folder, root) {
        let says = format!("TMPDIR is {shown}, which is inside the project, where an agent can write");
        return HealthCheck::warning("tmp", says, elsewhere);
    }
    if statvfs(&folder).is_ok_and(|about| about.f_flag.contains(StatVfsMountFlags::NOEXEC)) {
        let says = format!("{shown} is mounted `noexec`: programs that tools unpack there cannot start");
        return HealthCheck::warning("tmp", says, "set TMPDIR to a folder on another file system");
    }
    let free = room::free(&folder);
    if free < FULL {
        let says = format!("temporary files go to {shown}, where {} MiB are free", free / 1024 / 1024);
        return HealthCheck::warning("tmp", says, "make room there, or set TMPDIR to a folder on another file system");
    }
    HealthCheck::good("tmp", format!("temporary files of fledge go to {shown}"))
}

/// Checks the file system of the project for room and write access.
fn project(root: &Path) -> Option<HealthCheck> {
    let (shown, free, hint) = (root.display(), room::free(root), "free some space: agents and checks write there");
    if let Some(process::Unwritable { why, hint }) = process::unwritable(root) {
        return Some(HealthCheck::problem("project", why, hint));
    }
    if let Some(why) = room::refusal(root).filter(|why| !room::is_for_room(why)) {
        let hint = format!("see `ls -ld {shown}` and `mount`: fledge, agents and checks write there");
        return Some(HealthCheck::problem("project", format!("{shown} is not writable: {why}"), hint));
    }
    if room::is_full(root) {
        return Some(HealthCheck::problem("project", format!("the file system of {shown} is full"), hint));
    }
    let says = || format!("{} MiB are free where the project is, {shown}", free / 1024 / 1024);
    (free < FULL).then(|| HealthCheck::warning("project", says(), hint))
}

async fn sandbox(
    (root, state): (&Path, &Path),
    choice: SandboxChoice,
    helper: Option<&Path>,
    path: &str,
) -> HealthCheck {
    if choice == SandboxChoice::Off {
        let says = "off in your configuration: agents and the code that the gate runs have your rights";
        return HealthCheck::warning("sandbox", says, "remove `sandbox: off` from your configuration");
    }
    let who = if is_root() { ", as root" } else { "" };
    let best = Sandbox::find(SandboxChoice::Required, helper, path).await;
    if let Some(none) = best.as_ref().ok().and_then(|sandbox| sandbox.check_is_outside(root).err()) {
        return HealthCheck::problem("sandbox", format!("none{who}: {none}"), none.hint);
    }
    let NoSandbox { tried, hint } = match best {
        Ok(sandbox) => {
            let scratch = tempfile::tempdir_in(state).or_else(|_| tempfile::tempdir());
            let has_layers = match &scratch {
                Ok(scratch) => sandbox.has_layers(scratch.path()).await,
                Err(_) => false,
            };
            let layers = if has_layers {
                "rooms are layers over one checkout of the base and over installed dependencies"
            } else {
                "rooms are full copies, with installed dependencies: the kernel gives users no overlay file system"
            };
            return HealthCheck::good("sandbox", format!("{}{who}; {layers}", sandbox.kind().name()));
        }
        Err(none) => none,
    };
    let tried = tried.join("; ");
    if choice == SandboxChoice::Required {
        return HealthCheck::problem("sandbox", format!("none{who}: {tried}"), hint);
    }
    let second = Sandbox::find(SandboxChoice::Auto, helper, path).await;
    match second.and_then(|sandbox| sandbox.check_is_outside(root).map(|()| sandbox)) {
        Ok(sandbox) if sandbox.kind() == SandboxKind::Landlock => {
            // A sandbox works, so do not advise to run without one.
            let hint = hint.trim_end_matches(WITHOUT);
            let files = temporary_files(sandbox.temporary_folder(), process::is_in_memory);
            HealthCheck::warning(
                "sandbox",
                format!(
                    "landlock{who}, which is weaker than bubblewrap: {tried}{files}; rooms are full copies, at another path"
                ),
                hint,
            )
        }
        Ok(sandbox) => HealthCheck::good("sandbox", format!("{}{who}", sandbox.kind().name())),
        Err(none) => HealthCheck::problem("sandbox", format!("none{who}: {none}"), none.hint),
    }
}

/// Names the place of steps' temporary files behind Landlock. Files in memory have no limit there.
fn temporary_files(folder: Option<&Path>, is_in_memory: impl Fn(&Path) -> bool) -> String {
    match folder {
        None => String::new(),
        Some(folder) if is_in_memory(folder) => {
            ", and temporary files are in memory (tmpfs), without a bound".to_owned()
        }
        Some(folder) => format!("; temporary files of steps go to {}", folder.display()),
    }
}

/// Returns a note if files at these paths are kept in memory but not counted as memory. The paths
/// need not exist yet.
fn uncounted(written: &[&Path], is_in_memory: impl Fn(&Path) -> bool) -> &'static str {
    let in_memory = |path: &&Path| path.ancestors().find(|folder| folder.exists()).is_some_and(&is_in_memory);
    if written.iter().any(in_memory) {
        "; files of the project or of rooms are in memory (tmpfs), and not counted"
    } else {
        ""
    }
}

/// Reports the limits of a call or a step, and what enforces them.
fn limits(limits: SandboxLimits, choice: SandboxChoice, written: &[&Path]) -> HealthCheck {
    let count = limits.processes.map_or("any number of".into(), |count| count.to_string());
    let memory = limits.memory.map_or("any".into(), |bytes| format!("{} MiB of", bytes >> 20));
    let kernel = match choice {
        SandboxChoice::Off => "",
        SandboxChoice::Auto | SandboxChoice::Required if is_root() => {
            ", the kernel bounds files, and counts no processes of root"
        }
        SandboxChoice::Auto | SandboxChoice::Required => ", the kernel bounds processes and files too",
    };
    let files = uncounted(written, process::is_in_memory);
    let says = format!(
        "a call or step may use {count} processes and {memory} memory in total, checked ten times a second{kernel}; \
        no cgroups{files}"
    );
    HealthCheck::good("limits", says)
}

/// Returns true if this process is root: by the owner of its folder in /proc, else of a file that
/// it creates.
fn is_root() -> bool {
    let about = std::fs::metadata("/proc/self").or_else(|_| tempfile::tempfile().and_then(|file| file.metadata()));
    about.is_ok_and(|meta| meta.uid() == 0)
}

/// Checks that runs can be stored in the folder, or in the nearest existing folder above it.
fn state(folder: &Path, root: &Path) -> Vec<HealthCheck> {
    let elsewhere = "set FLEDGE_STATE_DIR to another folder: `export FLEDGE_STATE_DIR=/var/tmp/fledge`";
    let shown = folder.display();
    if is_inside(folder, root) {
        let says = format!("{shown} is inside the project, where an agent can write");
        return vec![HealthCheck::problem("state", says, elsewhere)];
    }
    let there: PathBuf = folder.ancestors().find(|folder| folder.exists()).unwrap_or(Path::new("/")).into();
    let unmade = if there == folder { String::new() } else { format!(", so fledge cannot create {shown}") };
    let problem =
        |why: &str| vec![HealthCheck::problem("state", format!("{} {why}{unmade}", there.display()), elsewhere)];
    if !there.is_dir() {
        return problem("is not a folder");
    }
    let refusal = room::refusal(&there);
    if let Some(why) = refusal.as_ref().filter(|why| !room::is_for_room(why)) {
        return problem(&format!("is not writable: {why}"));
    }
    let room = room::free(&there);
    let (kind, has_locks) = file_system(&there);
    let sharing =
        if shares_blocks(&there) { "fledge clones caches without cost" } else { "fledge copies caches byte by byte" };
    let full = refusal.as_ref().map(|why| format!("; the folder is not writable: {why}")).unwrap_or_default();
    let says = format!("{shown}, {} MiB free on {kind}, {sharing}{full}", room / 1024 / 1024);
    let more = "free some space (`fledge runs prune` removes old runs), or set FLEDGE_STATE_DIR to another folder";
    let first = match room {
        _ if refusal.is_some() => HealthCheck::problem("state", says, more),
        ..FULL => HealthCheck::problem("state", says, more),
        FULL..NARROW => HealthCheck::warning("state", says, "free some space: `fledge runs prune` removes old runs"),
        NARROW.. => HealthCheck::good("state", says),
    };
    let locks = || {
        HealthCheck::warning(
            "state",
            format!("locks on {kind} are not reliable, but the database needs them"),
            elsewhere,
        )
        .part("locks")
    };
    [first].into_iter().chain((!has_locks).then(locks)).collect()
}

#[cfg(target_os = "linux")]
fn file_system(folder: &Path) -> (String, bool) {
    let Ok(about) = statfs(folder) else { return ("an unknown file system".into(), true) };
    let magic = u64::try_from(about.f_type).unwrap_or(0) & 0xFFFF_FFFF;
    let known = FILE_SYSTEMS.iter().find(|(own, ..)| *own == magic);
    known.map_or((format!("a file system of type {magic:#x}"), true), |(_, name, has_locks)| {
        ((*name).into(), *has_locks)
    })
}

#[cfg(not(target_os = "linux"))]
fn file_system(_: &Path) -> (String, bool) {
    ("this system's file system".into(), true)
}

/// Returns true if a copy of a file can share its blocks there.
#[cfg(target_os = "linux")]
fn shares_blocks(folder: &Path) -> bool {
    let files = || -> std::io::Result<(File, File)> {
        let (mut from, to) = (tempfile::tempfile_in(folder)?, tempfile::tempfile_in(folder)?);
        std::io::Write::write_all(&mut from, &[1; 4096])?;
        Ok((from, to))
    };
    files().is_ok_and(|(from, to)| rustix::fs::ioctl_ficlone(&to, &from).is_ok())
}

#[cfg(not(target_os = "linux"))]
fn shares_blocks(_: &Path) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn temporary_files_in_memory_are_told_to_have_no_bound_behind_landlock() {
        let shared = Path::new("/dev/shm/steps");
        assert_eq!(temporary_files(None, |_| true), "");
        assert_eq!(
            temporary_files(Some(shared), |folder| folder == shared),
            ", and temporary files are in memory (tmpfs), without a bound"
        );
        assert_eq!(temporary_files(Some(shared), |_| false), "; temporary files of steps go to /dev/shm/steps");
    }

    #[test]
    fn files_in_memory_are_told_where_the_folder_above_them_is_there() {
        let dir = tempfile::tempdir().unwrap();
        let (there, new) = (dir.path().to_owned(), dir.path().join("state/rooms"));
        let told = |written: &[&Path]| uncounted(written, |folder| folder == there);
        let uncounted = "; files of the project or of rooms are in memory (tmpfs), and not counted";
        assert_eq!(told(&[Path::new("/"), &new]), uncounted);
        assert_eq!(told(&[&there]), uncounted);
        assert_eq!(told(&[Path::new("/")]), "");
    }
}
