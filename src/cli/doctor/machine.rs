//! What the machine has: git, a sandbox, and a place for what is kept.

use super::Found;
use crate::config::{self, Environment};
use crate::process;
use crate::process::wall::{NoWall, Wall, WallChoice, WallKind, WallLimits};
use crate::store::is_inside;
use crate::workspace::delivery::Repository;
use crate::workspace::trees::{Trees, TreesFault};
use rustix::fs::{Access, StatVfsMountFlags, access, statfs, statvfs};
use std::error::Error;
use std::fs::File;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use tokio_util::sync::CancellationToken;

/// Below this much room for state, in bytes, runs are warned of.
const NARROW: u64 = 1024 * 1024 * 1024;
/// Below this much, they are likely to fail.
const FULL: u64 = 64 * 1024 * 1024;
/// File systems by their magic numbers, and whether their locks may be trusted: the database rests on them.
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

pub(super) async fn look(root: &Path, set: &config::Settings, environment: &Environment) -> Vec<Found> {
    let child = environment.child_env();
    let path = child.get("PATH").map_or("", String::as_str);
    let hand: Vec<(String, String)> = environment.hand_env().into_iter().collect();
    let mut found = git(root, path, &hand).await;
    found.push(sandbox(root, set.sandbox, environment.program(), &process::outside(path, root)).await);
    found.push(limits(set.limits, set.sandbox));
    found.push(temporary(environment.get("TMPDIR"), root));
    found.extend(match environment.state_dir() {
        Ok(folder) => state(&folder, root),
        Err(fault) => {
            vec![Found::problem("state", fault.to_string(), "set FLEDGE_STATE_DIR to a folder outside of the project")]
        }
    });
    found
}

/// Opens a private git directory for the workspace, as a run does, and asks the user's repository what a commit could not keep to.
async fn git(root: &Path, path: &str, env: &[(String, String)]) -> Vec<Found> {
    let stop = CancellationToken::new();
    let opened = async {
        // What is wrong with the folder for temporary files is said elsewhere.
        let folder = tempfile::tempdir().ok().filter(|folder| !is_inside(folder.path(), root));
        let folder = folder.map_or_else(|| tempfile::tempdir_in("/tmp"), Ok).map_err(|error| error.to_string())?;
        let told = |fault: TreesFault| match fault.source() {
            Some(cause) => format!("{fault}: {cause}"),
            None => fault.to_string(),
        };
        let trees = Trees::open(&folder.path().join("trees.git"), root, path, &stop).await.map_err(told)?;
        let version = trees.version(&stop).await.map_err(told)?;
        let signs = match Repository::around(&trees, env, &stop).await {
            Ok(Some(repository)) => repository.wants_signatures(&stop).await.unwrap_or(false),
            Ok(None) | Err(_) => false,
        };
        Ok::<_, String>((version, signs))
    };
    let (version, signs) = match opened.await {
        Ok(found) => found,
        Err(why) => return vec![Found::problem("git", why, "install git 2.30 or newer, and have it in PATH")],
    };
    let unsigned = || {
        let says = "`commit.gpgsign` is on, and what fledge commits (`commit: on-success`) is not signed";
        Found::warning(
            "git",
            says,
            "sign it yourself: `git commit --amend --no-edit -S`, or take `--patch` and `git am -S`",
        )
        .of("signing")
    };
    [Found::good("git", version)].into_iter().chain(signs.then(unsigned)).collect()
}

/// The folder for temporary files, where walls and rooms have theirs.
fn temporary(set: Option<&str>, root: &Path) -> Found {
    let folder = PathBuf::from(set.unwrap_or("/tmp"));
    let shown = folder.display();
    let elsewhere = "set TMPDIR to a folder that is there, that you may write to, and that is not in the project";
    let problem = |why: &str| Found::problem("tmp", format!("TMPDIR is {shown}, {why}"), elsewhere);
    if !folder.is_dir() {
        return problem("and there is no such folder");
    }
    if access(&folder, Access::WRITE_OK | Access::EXEC_OK).is_err() || tempfile::tempfile_in(&folder).is_err() {
        return problem("which cannot be written to");
    }
    if is_inside(&folder, root) {
        let says = format!("TMPDIR is {shown}, which is inside of the project, where an agent could write");
        return Found::warning("tmp", says, elsewhere);
    }
    if statvfs(&folder).is_ok_and(|about| about.f_flag.contains(StatVfsMountFlags::NOEXEC)) {
        let says = format!("{shown} is mounted `noexec`: what tools unpack and run there does not start");
        return Found::warning("tmp", says, "set TMPDIR to a folder on another file system");
    }
    Found::good("tmp", format!("temporary files go to {shown}"))
}

async fn sandbox(root: &Path, choice: WallChoice, helper: Option<&Path>, path: &str) -> Found {
    let unwritable = if choice == WallChoice::Off { None } else { process::unwritable(root) };
    if let Some(process::Unwritable { why, mend }) = unwritable {
        return Found::problem("sandbox", why, mend);
    }
    if choice == WallChoice::Off {
        let says = "off, by your configuration: an agent has your rights, and so has the code that the gate runs";
        return Found::warning("sandbox", says, "take `sandbox: off` out of your configuration");
    }
    let who = if is_root() { ", as root" } else { "" };
    let best = Wall::raise(WallChoice::Required, helper, path).await;
    if let Some(none) = best.as_ref().ok().and_then(|wall| wall.stands_outside(root).err()) {
        return Found::problem("sandbox", format!("none{who}: {none}"), none.mend);
    }
    let NoWall { tried, mend } = match best {
        Ok(wall) => return Found::good("sandbox", format!("{}{who}", wall.kind().name())),
        Err(none) => none,
    };
    let tried = tried.join("; ");
    if choice == WallChoice::Required {
        return Found::problem("sandbox", format!("none{who}: {tried}"), mend);
    }
    let second = Wall::raise(WallChoice::Auto, helper, path).await;
    match second.and_then(|wall| wall.stands_outside(root).map(|()| wall.kind())) {
        Ok(WallKind::Landlock) => {
            Found::warning("sandbox", format!("landlock{who}, which is weaker than bubblewrap: {tried}"), mend)
        }
        Ok(kind @ (WallKind::Bubblewrap | WallKind::Off)) => Found::good("sandbox", format!("{}{who}", kind.name())),
        Err(none) => Found::problem("sandbox", format!("none{who}: {none}"), none.mend),
    }
}

/// What a call or a step may use up, and who sees to that.
fn limits(limits: WallLimits, choice: WallChoice) -> Found {
    let count = limits.processes.map_or("any number of".into(), |count| count.to_string());
    let memory = limits.memory.map_or("any".into(), |bytes| format!("{} MiB of", bytes >> 20));
    let kernel = match choice {
        WallChoice::Off => "",
        WallChoice::Auto | WallChoice::Required if is_root() => {
            ", the kernel bounds files, and counts no processes of root"
        }
        WallChoice::Auto | WallChoice::Required => ", the kernel bounds processes and files too",
    };
    let says = format!(
        "a call or step may have {count} processes and {memory} memory together: looked at ten times a second{kernel}; cgroups are not used"
    );
    Found::good("limits", says)
}

/// Whose files this process writes says who it is.
fn is_root() -> bool {
    tempfile::tempfile().and_then(|file| file.metadata()).is_ok_and(|meta| meta.uid() == 0)
}

/// Whether runs can be kept there. Of a folder that is not there yet, the one is looked at in which it would be made.
fn state(folder: &Path, root: &Path) -> Vec<Found> {
    let elsewhere = "set FLEDGE_STATE_DIR to another folder";
    let shown = folder.display();
    if is_inside(folder, root) {
        let says = format!("{shown} is inside of the project, where an agent could write");
        return vec![Found::problem("state", says, elsewhere)];
    }
    let there: PathBuf = folder.ancestors().find(|folder| folder.exists()).unwrap_or(Path::new("/")).into();
    if !there.is_dir() || access(&there, Access::WRITE_OK | Access::EXEC_OK).is_err() {
        return vec![Found::problem("state", format!("{} cannot be written to", there.display()), elsewhere)];
    }
    let room = statvfs(&there).map_or(0, |about| about.f_bavail.saturating_mul(about.f_frsize));
    let (kind, has_locks) = file_system(&there);
    let sharing =
        if shares_blocks(&there) { "caches are copied without cost" } else { "caches are copied byte by byte" };
    let says = format!("{shown}, {} MiB free on {kind}, {sharing}", room / 1024 / 1024);
    let first = match room {
        ..FULL => Found::problem("state", says, "make room there, or set FLEDGE_STATE_DIR to another folder"),
        FULL..NARROW => Found::warning("state", says, "make room there: `fledge runs prune` removes old runs"),
        NARROW.. => Found::good("state", says),
    };
    let locks = || {
        Found::warning("state", format!("locks on {kind} may not hold, and the database rests on them"), elsewhere)
            .of("locks")
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

/// Whether a file can be copied there by sharing its blocks.
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
