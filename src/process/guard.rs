//! The guard: a small shell that waits for this process to be gone, however that came about (SIGKILL, no memory left), and then
//! kills what it has left running. It hears of that end, which nobody can announce, by a pipe that only this process holds open.

use super::mark;
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::process::Pid;
use std::collections::BTreeSet;
use std::io::{self, PipeWriter, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};

const SCRIPT: &str = include_str!("guard.sh");
/// Where it finds its programs. Not the search path of a step, in which a step may have put something.
const PATH: &str = "/usr/bin:/bin:/run/current-system/sw/bin";

/// What is watched over, and who does it.
#[derive(Debug)]
pub(super) struct Guard {
    groups: BTreeSet<i32>,
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
    line: PipeWriter,
}

impl Guard {
    pub(super) const fn new() -> Self {
        Self { groups: BTreeSet::new(), post: Post::Vacant }
    }

    /// Has somebody at the post. Where that fails, steps run all the same.
    pub(super) fn post(&mut self) {
        if !matches!(self.post, Post::Vacant) {
            return;
        }
        let sentry = Sentry::start().and_then(|mut sentry| {
            self.groups.iter().try_for_each(|group| sentry.tell('+', *group))?;
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
        self.groups.insert(group.as_raw_pid());
        self.tell('+', group);
    }

    /// Lets go of a process group, whose number may be somebody else's after this.
    pub(super) fn remove(&mut self, group: Pid) {
        if self.groups.remove(&group.as_raw_pid()) {
            self.tell('-', group);
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

    fn tell(&mut self, sign: char, group: Pid) {
        if let Post::Held(sentry) = &mut self.post
            && sentry.tell(sign, group.as_raw_pid()).is_err()
        {
            // Somebody has killed or stopped it. The next one is told of all groups.
            sentry.end();
            self.post = Post::Vacant;
            self.post();
        }
    }
}

impl Sentry {
    fn start() -> io::Result<Self> {
        let (reader, line) = io::pipe()?;
        // One that has been stopped must not stop us, too.
        fcntl_setfl(&line, OFlags::NONBLOCK)?;
        let mut command = Command::new("/bin/sh");
        command.args(["-c", SCRIPT, "fledge-guard", &mark::FAMILY.to_string()]);
        command.env_clear().env("PATH", PATH).current_dir("/");
        // A group of its own: neither a key of the terminal nor the end of ours reaches it.
        command.process_group(0).stdin(reader).stdout(Stdio::null()).stderr(Stdio::null());
        let shell = command.spawn()?;
        // Where fledge runs in a step of another fledge, the other's guard takes this one for none of its own.
        mark::rename(&shell);
        Ok(Self { shell, line })
    }

    fn tell(&mut self, sign: char, group: i32) -> io::Result<()> {
        self.line.write_all(format!("{sign} {group}\n").as_bytes())
    }

    /// Ends it without its doing anything.
    fn end(&mut self) {
        let _it_has_ended_already = self.shell.kill();
        let _it_was_reaped_by_others = self.shell.wait();
    }
}
