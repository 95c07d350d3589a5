//! The guard: a small shell that waits for this process to be gone, however that came about (SIGKILL, no memory left), and then
//! kills what it has left running. It hears of that end, which nobody can announce, by a pipe that only this process holds open, and
//! reads what to kill in a file that this process keeps up to date, so that it sleeps while steps come and go.

use super::{census, mark};
use rustix::process::Pid;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, PipeWriter};
use std::os::unix::fs::FileExt as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};

const SCRIPT: &str = include_str!("guard.sh");
/// Where it finds its programs. Not the search path of a step, in which a step may have put something.
const PATH: &str = "/usr/bin:/bin:/run/current-system/sw/bin";

/// Bytes of a line of the file: a number that may be any `i32`, or blanks, and the end of the line.
const LINE: usize = 12;

/// What is watched over, and who does it.
#[derive(Debug)]
pub(super) struct Guard {
    /// Process groups, with the number of their line in the file.
    groups: BTreeMap<i32, usize>,
    post: Post,
}

#[derive(Debug)]
enum Post {
    Vacant,
    Held(Sentry),
    /// Nobody could be found for it, which was said.
    GivenUp,
}

#[derive(Debug)]
struct Sentry {
    shell: Child,
    list: File,
    _line: PipeWriter,
}

impl Guard {
    pub(super) const fn new() -> Self {
        Self { groups: BTreeMap::new(), post: Post::Vacant }
    }

    /// Has somebody at the post, who is told of all groups. Where that fails, steps run all the same.
    pub(super) fn post(&mut self) {
        match &mut self.post {
            Post::Held(sentry) if census::runs(Pid::from_child(&sentry.shell)) => return,
            Post::Held(sentry) => sentry.end(), // somebody has killed it
            Post::Vacant => {}
            Post::GivenUp => return,
        }
        let sentry = Sentry::start().and_then(|sentry| {
            self.groups.iter().try_for_each(|(group, line)| sentry.write(*line, &group.to_string()))?;
            Ok(sentry)
        });
        self.post = sentry.map_or_else(
            |error| {
                tracing::warn!(%error, "cannot start a guard; if fledge is killed, its steps may go on");
                Post::GivenUp
            },
            Post::Held,
        );
    }

    /// Watches over a process group from now on.
    pub(super) fn add(&mut self, group: Pid) {
        let line = (0..).find(|line| !self.groups.values().any(|taken| taken == line)).unwrap_or_default();
        self.groups.insert(group.as_raw_pid(), line);
        self.write(line, &group.as_raw_pid().to_string());
    }

    /// Lets go of a process group, whose number may be somebody else's after this.
    pub(super) fn remove(&mut self, group: Pid) {
        if let Some(line) = self.groups.remove(&group.as_raw_pid()) {
            self.write(line, "");
        }
    }

    /// The number of the guard, which is a child of this process but no step's.
    pub(super) fn pid(&self) -> Option<i32> {
        match &self.post {
            Post::Held(sentry) => i32::try_from(sentry.shell.id()).ok(),
            Post::Vacant | Post::GivenUp => None,
        }
    }

    /// Sends it home when nothing is left to watch over.
    pub(super) fn dismiss(&mut self) {
        if self.groups.is_empty()
            && let Post::Held(sentry) = &mut self.post
        {
            sentry.end();
            self.post = Post::Vacant;
        }
    }

    fn write(&self, line: usize, text: &str) {
        if let Post::Held(sentry) = &self.post
            && let Err(error) = sentry.write(line, text)
        {
            tracing::warn!(%error, "cannot tell the guard what to watch over; if fledge is killed, a step may go on");
        }
    }
}

impl Sentry {
    fn start() -> io::Result<Self> {
        let (reader, line) = io::pipe()?;
        let list = list()?;
        let mut command = Command::new("/bin/sh");
        // Its name is not ours, so that who kills all that has ours in its command line spares it.
        command.args(["-c", SCRIPT, "step-guard", &mark::FAMILY.to_string()]);
        command.env_clear().env("PATH", PATH).current_dir("/");
        // A group of its own: neither a key of the terminal nor the end of ours reaches it.
        // It reads from what is its standard output: of all that it is given, only the three streams can be.
        command.process_group(0).stdin(reader).stdout(list.try_clone()?).stderr(Stdio::null());
        let shell = command.spawn()?;
        // Where fledge runs in a step of another fledge, the other's guard takes this one for none of its own.
        mark::rename(&shell);
        Ok(Self { shell, list, _line: line })
    }

    fn write(&self, line: usize, text: &str) -> io::Result<()> {
        // At a place of its own, and never by a position that the guard shares.
        self.list.write_all_at(format!("{text:width$}\n", width = LINE - 1).as_bytes(), (line * LINE) as u64)
    }

    /// Ends it without its doing anything.
    fn end(&mut self) {
        let _it_has_ended_already = self.shell.kill();
        let _it_was_reaped_by_others = self.shell.wait();
    }
}

/// An empty file without a name.
fn list() -> io::Result<File> {
    #[cfg(target_os = "linux")]
    if let Ok(file) = rustix::fs::memfd_create("step-guard", rustix::fs::MemfdFlags::CLOEXEC) {
        return Ok(file.into());
    }
    tempfile::tempfile()
}
