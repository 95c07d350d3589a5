//! The sandbox for programs that an agent starts. They see the machine read-only, and write only in
//! the folders granted to them. They reach neither the network, nor other processes, nor the
//! operator's secrets. Bubblewrap provides the sandbox if it works. Otherwise fledge itself uses
//! Landlock and seccomp, which is weaker and is reported as such. If neither works, no program
//! runs, unless the user turns the sandbox off.

mod bounds;
mod bubblewrap;
mod caches;
mod gits;
mod homes;
#[cfg(target_os = "linux")]
mod landlock;
mod path_rules;
mod placeholders;
mod probe;
mod programs;
mod restrictions;
mod scripts;
#[cfg(target_os = "linux")]
mod seccomp;
mod starts;
mod trust;
mod view;

pub use crate::sandbox_kind::{SandboxChoice, SandboxKind};
pub use bounds::SandboxLimits;
pub use caches::{ToolCache, add_empty_layers, add_layers, tool_caches};
pub use gits::{git_led_to, gits_below};
pub use homes::{at_home_in, hides_versions, holds_credentials};
pub use path_rules::{Mount, PathRules};
pub use placeholders::Placeholders;
pub use probe::{NoSandbox, WITHOUT};
pub use restrictions::{Restrictions, enter};
pub use scripts::{interpreter, last_program};
pub use trust::trusted_in_copy;
pub use view::{LAYERS, MountView, Mounts, PinnedPath, ViewError, ViewLayer, hide, hold, join};

use super::{EndedProcess, Invocation, ProcessEnd};
use crate::limits::HELPER_TIMEOUT;
use crate::process;
use bubblewrap::{Bubblewrap, SocketRules};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

/// The first argument of the program in the sandbox: `fledge inside FENCE PROGRAM ARGUMENTS`.
pub const INSIDE: &str = "inside";

/// A shell script that looks for the program `$0` as a start would find it.
const LOOK: &str = "case $0 in */*) test -x \"$0\";; *) command -v -- \"$0\";; esac >/dev/null || exit 86";
/// The exit code of that script if the program is missing.
const NOWHERE: i32 = 86;

/// A sandbox that works. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Sandbox(SandboxBuild);

#[derive(Debug, Clone)]
enum SandboxBuild {
    Bubblewrap { bwrap: Bubblewrap, helper: PathBuf },
    Landlock { helper: PathBuf, scratch: Arc<Scratch> },
    Off,
}

/// Private folders for homes and temporary files, for sandboxes without mounts. They are removed
/// with the last sandbox that uses them.
#[derive(Debug)]
struct Scratch {
    folder: TempDir,
    count: AtomicU64,
}

impl Sandbox {
    /// Returns no sandbox: programs run without restrictions.
    pub fn off() -> Self {
        Self(SandboxBuild::Off)
    }

    /// Finds the sandbox that works here by starting a program in it, once for this process.
    /// `helper` is the fledge program itself, which applies restrictions from inside. `path` is the
    /// search path for bubblewrap.
    ///
    /// # Errors
    /// [`NoSandbox`] with everything that was tried, and the remedy in one line.
    pub async fn find(choice: SandboxChoice, helper: Option<&Path>, path: &str) -> Result<Self, NoSandbox> {
        match choice {
            SandboxChoice::Off => Ok(Self::off()),
            SandboxChoice::Auto | SandboxChoice::Required => probe::find_sandbox(choice, helper, path).await,
        }
    }

    /// Returns the Landlock sandbox, even if bubblewrap works.
    ///
    /// # Errors
    /// [`NoSandbox`] if the kernel does not support Landlock.
    pub async fn landlock(helper: &Path, path: &str) -> Result<Self, NoSandbox> {
        probe::landlock(helper, path)
            .await
            .map_err(|why| NoSandbox { tried: vec![why], hint: "use a newer kernel".into() })
    }

    /// Returns the mechanism.
    pub fn kind(&self) -> SandboxKind {
        match &self.0 {
            SandboxBuild::Bubblewrap { .. } => SandboxKind::Bubblewrap,
            SandboxBuild::Landlock { .. } => SandboxKind::Landlock,
            SandboxBuild::Off => SandboxKind::Off,
        }
    }

    /// Returns whether programs in the sandbox can see layers over folders, which keep what they
    /// write in `folder`. This process must also be able to read and hide files there.
    pub async fn has_layers(&self, folder: &Path) -> bool {
        let SandboxBuild::Bubblewrap { helper, .. } = &self.0 else { return false };
        let Ok(trial) = tempfile::Builder::new().prefix("layers-").tempdir_in(folder) else { return false };
        let (lower, over) = (trial.path().join("lower"), trial.path().join("over"));
        let made = || -> std::io::Result<()> {
            std::fs::create_dir_all(over.join("upper"))?;
            std::fs::create_dir(&lower)?;
            std::fs::write(lower.join("hidden"), [])?;
            view::hide(&over.join("upper/hidden"))
        };
        if made().is_err() {
            return false;
        }
        let layer = ViewLayer { lower: lower.clone(), between: Vec::new(), over, at: lower.clone() };
        let mounts = Mounts { pins: Vec::new(), layers: vec![layer] };
        let Ok(view) = MountView::open(helper, &mounts).await else { return false };
        let seen = view.seen(&lower);
        !seen.join("hidden").exists() && std::fs::write(seen.join("new"), []).is_ok() && !lower.join("new").exists()
    }

    /// Returns the program that applies restrictions from inside. A program that can change it can
    /// break the sandbox.
    pub fn helper(&self) -> Option<&Path> {
        match &self.0 {
            SandboxBuild::Bubblewrap { helper, .. } | SandboxBuild::Landlock { helper, .. } => Some(helper),
            SandboxBuild::Off => None,
        }
    }

    /// Checks that the helper is not in a folder that programs in the sandbox can write or do not
    /// see.
    ///
    /// # Errors
    /// [`NoSandbox`] if the helper is there.
    pub fn check_is_outside(&self, folder: &Path) -> Result<(), NoSandbox> {
        let folder = folder.canonicalize().unwrap_or_else(|_| folder.into());
        match self.helper().filter(|helper| helper.starts_with(folder)) {
            None => Ok(()),
            Some(helper) => Err(NoSandbox {
                tried: vec![format!(
                    "the fledge program, `{}`, is inside the workspace, where an agent could change it",
                    helper.display()
                )],
                hint: "run a copy outside the workspace".into(),
            }),
        }
    }

    /// Returns the invocation that runs `inner` in the sandbox. Programs in the sandbox can read
    /// its variables and no others, except those that name its home and temporary folder.
    fn built(&self, rules: &PathRules, inner: Invocation, sockets: SocketRules) -> Invocation {
        match &self.0 {
            SandboxBuild::Bubblewrap { bwrap, helper } => bwrap.around(helper, rules, inner, sockets),
            SandboxBuild::Landlock { helper, scratch } => {
                let number = scratch.count.fetch_add(1, Ordering::Relaxed);
                landlocked(helper, &scratch.folder.path().join(number.to_string()), rules, inner)
            }
            SandboxBuild::Off => inner,
        }
    }

    /// Returns the folder below which the programs have their homes and temporary files. With
    /// bubblewrap these are in a separate file system.
    pub fn temporary_folder(&self) -> Option<&Path> {
        match &self.0 {
            SandboxBuild::Landlock { scratch, .. } => scratch.folder.path().parent(),
            SandboxBuild::Bubblewrap { .. } | SandboxBuild::Off => None,
        }
    }

    /// Makes the folders that must exist in the workspace for a sandbox with this access. Call it
    /// before the first program starts, and drop the result after the last one. Another run in the
    /// same workspace keeps the folders that it needs.
    pub fn placeholders(&self, rules: &PathRules) -> Placeholders {
        match self.kind() {
            SandboxKind::Bubblewrap => Placeholders::hold(rules),
            SandboxKind::Landlock | SandboxKind::Off => Placeholders::default(),
        }
    }

    /// Returns [`ProcessEnd::NotStarted`] if the sandbox failed before the program started, else
    /// `ended` unchanged. A program can print the same line as a sandbox that fails. So fledge
    /// believes the line only if it is the whole output and a second start confirms it. The second
    /// start has the same `rules`, and only looks for the program of `inner`.
    pub async fn explain_end(
        &self,
        ended: EndedProcess,
        rules: &PathRules,
        inner: Invocation,
        stop: &CancellationToken,
    ) -> EndedProcess {
        let Some(why) = self.claimed(&ended) else { return ended };
        let args = ["-c", LOOK, &inner.program].map(str::to_owned).into();
        let look = Invocation { program: "/bin/sh".into(), args, timeout: Some(HELPER_TIMEOUT), log: None, ..inner };
        let second = process::run(self.built(rules, look, SocketRules::None), stop, &|_| {}).await;
        let is_nowhere = ended.end != ProcessEnd::Exited(1) && second.end == ProcessEnd::Exited(NOWHERE);
        if is_nowhere || self.claimed(&second).as_ref() == Some(&why) {
            return EndedProcess { end: ProcessEnd::NotStarted(why), ..ended };
        }
        ended
    }

    /// Returns why a program was not started, if one line that says so is its whole output.
    fn claimed(&self, ended: &EndedProcess) -> Option<String> {
        let message: &[&[u8]] = match (self.kind(), &ended.end) {
            (SandboxKind::Bubblewrap, ProcessEnd::Exited(1)) => &[b"bwrap: "],
            (SandboxKind::Bubblewrap | SandboxKind::Landlock, ProcessEnd::Exited(126 | 127)) => {
                &[restrictions::SAYS, view::SAYS]
            }
            _ => return None,
        };
        let line = message.iter().find_map(|message| ended.output.head.strip_prefix(*message))?.strip_suffix(b"\n")?;
        let is_all = ended.output.total == ended.output.head.len() as u64 && !line.contains(&b'\n');
        is_all.then(|| String::from_utf8_lossy(line).into_owned())
    }
}

#[cfg(target_os = "linux")]
fn landlocked(helper: &Path, scratch: &Path, rules: &PathRules, inner: Invocation) -> Invocation {
    landlock::around(helper, scratch, rules, inner)
}

#[cfg(not(target_os = "linux"))]
fn landlocked(_: &Path, _: &Path, _: &PathRules, inner: Invocation) -> Invocation {
    inner // this system has no sandbox
}
