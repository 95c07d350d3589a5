//! The choice of a sandbox. fledge tries each one by starting a program in it, once for this
//! process.

use super::bubblewrap::{Bubblewrap, USERS};
use super::{PathRules, Sandbox, SandboxBuild, SandboxChoice, Scratch};
use crate::limits::HELPER_TIMEOUT;
use crate::process::{self, EndedProcess, Invocation, ProcessEnd, Variables, is_in_memory};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

/// A folder for temporary files on a disk.
const ON_DISK: &str = "/var/tmp";
/// Folders in which fledge looks for bubblewrap before the search path.
const PLACES: [&str; 4] = ["/usr/bin", "/bin", "/usr/local/bin", "/run/current-system/sw/bin"];

/// A shell script that proves three things: devices work, the system cannot be written, and system
/// calls are filtered. It needs no other program, because the search path may lack any.
const TRIAL: &str = "echo >/dev/null && ! (: >>/etc/passwd) 2>/dev/null && \
    while read -r name value; do [ \"$name$value\" = Seccomp:2 ] && exit 42; done </proc/self/status";

/// The results so far, each with the request that it answers.
static KNOWN: Mutex<Vec<(Wanted, Result<Stands, NoSandbox>)>> = Mutex::new(Vec::new());
type Wanted = (SandboxChoice, PathBuf, String);

/// The mechanism that worked when it was tried. It is not the sandbox itself, whose folders would
/// then stay as long as this process.
#[derive(Debug, Clone)]
enum Stands {
    Bubblewrap(Bubblewrap),
    Landlock,
}

/// The alternative that is always possible, appended to a remedy.
pub const WITHOUT: &str = ", or run without a sandbox: `--sandbox off`";

/// The reason why no sandbox works: what was tried, why each attempt failed, and the remedy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", .tried.join("; "))]
pub struct NoSandbox {
    /// Each sandbox with the reason why it does not work.
    pub tried: Vec<String>,
    /// The remedy in one line.
    pub hint: String,
}

/// Returns the best sandbox that works.
pub(super) async fn find_sandbox(
    choice: SandboxChoice,
    helper: Option<&Path>,
    path: &str,
) -> Result<Sandbox, NoSandbox> {
    let Some(helper) = helper.and_then(|helper| helper.canonicalize().ok()) else {
        let hint = "set the fledge program as the helper in the settings, or turn the sandbox off".into();
        return Err(NoSandbox { tried: vec!["cannot build a sandbox without the fledge program".into()], hint });
    };
    let wanted = (choice, helper, path.to_owned());
    let known = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let before = known().iter().find(|(asked, _)| *asked == wanted).map(|(_, found)| found.clone());
    let found = match before {
        Some(found) => found,
        None => {
            let found = find(choice, &wanted.1, path).await;
            known().push((wanted.clone(), found.clone()));
            found
        }
    };
    match found? {
        Stands::Bubblewrap(bwrap) => Ok(Sandbox(SandboxBuild::Bubblewrap { bwrap, helper: wanted.1 })),
        Stands::Landlock => untried(&wanted.1).map_err(|why| NoSandbox {
            tried: vec![format!("cannot create a temporary folder for landlock ({why})")],
            hint: "free space in the folder for temporary files (TMPDIR)".into(),
        }),
    }
}

async fn find(choice: SandboxChoice, helper: &Path, path: &str) -> Result<Stands, NoSandbox> {
    if !cfg!(target_os = "linux") {
        let hint = "run fledge in a Linux container or machine, or use `--sandbox off`".into();
        return Err(NoSandbox { tried: vec!["fledge has no sandbox for this system yet".into()], hint });
    }
    let mut tried = Vec::new();
    match bubblewrap(path) {
        None => tried.push("bubblewrap (`bwrap`) is not installed".into()),
        Some(program) => {
            let mut why = String::new();
            for users in USERS {
                let bwrap = Bubblewrap { program: program.clone(), users };
                let sandbox = Sandbox(SandboxBuild::Bubblewrap { bwrap: bwrap.clone(), helper: helper.into() });
                match check_sandbox(&sandbox, path).await {
                    Ok(()) => return Ok(Stands::Bubblewrap(bwrap)),
                    Err(fault) => why = fault,
                }
            }
            tried.push(format!("bubblewrap does not work here ({why})"));
        }
    }
    if choice == SandboxChoice::Auto {
        match landlock(helper, path).await {
            Ok(_) => return Ok(Stands::Landlock),
            Err(why) => tried.push(format!("landlock does not work here ({why})")),
        }
    }
    Err(NoSandbox { tried, hint: hint(path) })
}

pub(super) async fn landlock(helper: &Path, path: &str) -> Result<Sandbox, String> {
    let sandbox = untried(helper)?;
    check_sandbox(&sandbox, path).await.map(|()| sandbox)
}

/// Returns a Landlock sandbox with new folders, without trying it.
fn untried(helper: &Path) -> Result<Sandbox, String> {
    let folder = scratch().map_err(|error| error.to_string())?;
    let scratch = Arc::new(Scratch { folder, count: AtomicU64::new(0) });
    Ok(Sandbox(SandboxBuild::Landlock { helper: helper.into(), scratch }))
}

/// Makes a folder for homes and temporary files, on a disk if possible. All programs of the machine
/// share a file system in memory, so it does not show what one of them holds.
fn scratch() -> io::Result<TempDir> {
    let (mut builder, prefix) = (tempfile::Builder::new(), "fledge-");
    let folder = builder.prefix(prefix).tempdir()?;
    if !is_in_memory(folder.path()) {
        return Ok(folder);
    }
    let on_disk = builder.prefix(prefix).tempdir_in(ON_DISK).ok().filter(|folder| !is_in_memory(folder.path()));
    Ok(on_disk.unwrap_or(folder))
}

/// Checks a sandbox by starting a program in it. Returns the reason if that fails.
async fn check_sandbox(sandbox: &Sandbox, path: &str) -> Result<(), String> {
    let trial = Invocation {
        program: "/bin/sh".into(),
        args: vec!["-c".into(), TRIAL.into()],
        dir: "/".into(),
        env: Variables::new([("PATH".to_owned(), path.to_owned())]),
        timeout: Some(HELPER_TIMEOUT),
        grace: Duration::ZERO,
        linger: Duration::ZERO,
        log: None,
        log_limit: 0,
    };
    let ended = sandbox.run_at(None, &PathRules::default(), trial, &CancellationToken::new(), &|_| {}).await;
    let EndedProcess { end, output, .. } = ended;
    let message = output.text(400).trim().lines().next().unwrap_or_default().to_owned();
    match end {
        ProcessEnd::Exited(42) => Ok(()),
        ProcessEnd::NotStarted(why) => Err(why),
        ProcessEnd::TimedOut => Err("a test program did not end".into()),
        ProcessEnd::Exceeded(how) => Err(format!("a test program exceeded a limit: {how}")),
        ProcessEnd::Exited(_) | ProcessEnd::Signalled(_) | ProcessEnd::Stopped if message.is_empty() => {
            Err("a test program failed".into())
        }
        ProcessEnd::Exited(_) | ProcessEnd::Signalled(_) | ProcessEnd::Stopped => Err(message),
    }
}

fn bubblewrap(path: &str) -> Option<PathBuf> {
    let folders =
        PLACES.iter().map(PathBuf::from).chain(std::env::split_paths(path).filter(|folder| folder.is_absolute()));
    folders.map(|folder| folder.join("bwrap")).find(|program| program.is_file())
}

/// Returns the remedy in one line, from the system's settings of namespaces.
fn hint(path: &str) -> String {
    let says = |name: &str, value: &str| {
        process::census::read(&format!("/proc/sys/{name}")).is_some_and(|text| text.trim() == value)
    };
    let way = if bubblewrap(path).is_none() {
        "install bubblewrap (`apt install bubblewrap`, `dnf install bubblewrap`)"
    } else if says("kernel/apparmor_restrict_unprivileged_userns", "1") {
        "allow namespaces (`sysctl kernel.apparmor_restrict_unprivileged_userns=0`)"
    } else if says("kernel/unprivileged_userns_clone", "0") {
        "allow namespaces (`sysctl kernel.unprivileged_userns_clone=1`)"
    } else if says("user/max_user_namespaces", "0") {
        "allow namespaces (`sysctl user.max_user_namespaces=10000`)"
    } else {
        "allow the container namespaces and a fresh /proc \
         (`--security-opt seccomp=unconfined --security-opt systempaths=unconfined`)"
    };
    format!("{way}{WITHOUT}")
}
