//! The guard: a small shell that waits for the end of this process, for example by SIGKILL. Then it
//! kills what this process has left running. The guard notices the end by a pipe that only this
//! process holds open. It reads what to kill from a file that this process keeps up to date, so it
//! sleeps while steps come and go.

use super::{census, mark};
use rustix::process::Pid;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, PipeWriter};
use std::os::unix::fs::FileExt as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};

const SCRIPT: &str = include_str!("guard.sh");
/// The search path of the guard. Not that of a step, since a step may have put programs there.
const PATH: &str = "/usr/bin:/bin:/run/current-system/sw/bin";

/// Bytes of a line of the file: any `i32` or blanks, and the line end.
const LINE: usize = 12;

/// The process groups to watch over, and the guard process.
#[derive(Debug)]
pub(super) struct ProcessGuard {
    /// Process groups, each with its line number in the file.
    groups: BTreeMap<i32, usize>,
    post: GuardPost,
}

#[derive(Debug)]
enum GuardPost {
    Vacant,
    Held(GuardProcess),
    /// The guard could not be started; fledge has logged a warning.
    GivenUp,
}

#[derive(Debug)]
struct GuardProcess {
    shell: Child,
    list: File,
    _line: PipeWriter,
}

impl ProcessGuard {
    pub(super) const fn new() -> Self {
        Self { groups: BTreeMap::new(), post: GuardPost::Vacant }
    }

    /// Starts the guard unless it runs, and lists all groups for it. If that fails, steps run
    /// without a guard.
    pub(super) fn post(&mut self) {
        match &mut self.post {
            GuardPost::Held(sentry) if census::runs(Pid::from_child(&sentry.shell)) => return,
            GuardPost::Held(sentry) => sentry.end(), // it was killed
            GuardPost::Vacant => {}
            GuardPost::GivenUp => return,
        }
        let sentry = GuardProcess::start().and_then(|sentry| {
            self.groups.iter().try_for_each(|(group, line)| sentry.write(*line, &group.to_string()))?;
            Ok(sentry)
        });
        self.post = sentry.map_or_else(
            |error| {
                tracing::warn!(%error, "cannot start a guard; if fledge is killed, its steps may keep running");
                GuardPost::GivenUp
            },
            GuardPost::Held,
        );
    }

    /// Starts watching over a process group.
    pub(super) fn add(&mut self, group: Pid) {
        let line = (0..).find(|line| !self.groups.values().any(|taken| taken == line)).unwrap_or_default();
        self.groups.insert(group.as_raw_pid(), line);
        self.write(line, &group.as_raw_pid().to_string());
    }

    /// Stops watching over a process group, whose number another one may get after this.
    pub(super) fn remove(&mut self, group: Pid) {
        if let Some(line) = self.groups.remove(&group.as_raw_pid()) {
            self.write(line, "");
        }
    }

    /// Returns the process number of the guard. The guard is a child of this process, but belongs
    /// to no step.
    pub(super) fn pid(&self) -> Option<i32> {
        match &self.post {
            GuardPost::Held(sentry) => i32::try_from(sentry.shell.id()).ok(),
            GuardPost::Vacant | GuardPost::GivenUp => None,
        }
    }

    /// Ends the guard if it has nothing left to watch over.
    pub(super) fn dismiss(&mut self) {
        if self.groups.is_empty()
            && let GuardPost::Held(sentry) = &mut self.post
        {
            sentry.end();
            self.post = GuardPost::Vacant;
        }
    }

    fn write(&self, line: usize, text: &str) {
        if let GuardPost::Held(sentry) = &self.post
            && let Err(error) = sentry.write(line, text)
        {
            tracing::warn!(%error, "cannot register a step with the guard; if fledge is killed, it may keep running");
        }
    }
}

impl GuardProcess {
    fn start() -> io::Result<Self> {
        let (reader, line) = io::pipe()?;
        let list = list()?;
        let mut command = Command::new("/bin/sh");
        // The command line does not contain the name `fledge`, so `pkill -f fledge` spares the
        // guard.
        command.args(["-c", SCRIPT, "step-guard", &mark::FAMILY.to_string()]);
        command.env_clear().env("PATH", PATH).current_dir("/");
        // In its own group, the guard gets no signals from the terminal or to our group. Only the
        // three standard streams are passed on, so it reads the list from its standard output.
        command.process_group(0).stdin(reader).stdout(list.try_clone()?).stderr(Stdio::null());
        let shell = command.spawn()?;
        // If fledge runs in a step of another fledge, the other's guard must not take this guard
        // for one of its steps' processes.
        mark::rename(&shell);
        Ok(Self { shell, list, _line: line })
    }

    fn write(&self, line: usize, text: &str) -> io::Result<()> {
        // Write at an explicit offset: the guard shares the file's position.
        self.list.write_all_at(format!("{text:width$}\n", width = LINE - 1).as_bytes(), (line * LINE) as u64)
    }

    /// Ends the guard before it kills anything.
    fn end(&mut self) {
        let _it_has_ended_already = self.shell.kill();
        let _it_was_reaped_by_others = self.shell.wait();
    }
}

/// Returns an empty file without a name.
fn list() -> io::Result<File> {
    #[cfg(target_os = "linux")]
    if let Ok(file) = rustix::fs::memfd_create("step-guard", rustix::fs::MemfdFlags::CLOEXEC) {
        return Ok(file.into());
    }
    tempfile::tempfile()
}
