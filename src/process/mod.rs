//! Process management: only this module starts and ends programs. When [`run`] returns, nothing
//! that the program started is alive.
//!
//! On Linux this makes the whole process a subreaper for good (prctl(2), `PR_SET_CHILD_SUBREAPER`).
//! Orphans of a step then come to this process and not to init, so fledge finds daemons. Elsewhere
//! only the process group is killed.
#![expect(clippy::disallowed_methods, reason = "the room that starts programs measures how long they take")]

mod bounds;
mod capture;
mod census;
mod dialogue;
mod group;
mod guard;
mod log;
mod mark;
mod open_files;
mod pace;
mod private;
mod rights;
pub mod sandbox;
mod search_path;
mod signals;
mod start;
mod text;
mod tmpfs;
mod variables;

pub use bounds::ProcessBounds;
pub use capture::CapturedOutput;
pub use dialogue::{Dialogue, DialogueLines, StderrTail};
pub use group::{close, kill_everything};
pub use log::each_line;
pub use mark::unforeseen;
pub use open_files::{TooFewOpenFiles, ensure_open_files, room_for};
pub use pace::Backpressure;
pub use private::keep_private;
pub use rights::{Unwritable, unwritable};
pub use search_path::{find_program, outside, with_path_outside};
pub use signals::unblock_signals;
pub use text::{clean, is_invisible, shorten, visible};
pub use tmpfs::is_in_memory;
pub use variables::{Variables, has_password, is_secret};

use crate::limits::CANCEL_GRACE;
use capture::StepOutput;
use group::ProcessGroup;
use log::StepLogFile;
use rustix::process::{Pid, WaitStatus};
use start::ProgramStart;
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tokio::net::unix::pipe::Receiver;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// The number of the signal for a process that writes a file beyond its limit (setrlimit(2),
/// `SIGXFSZ`).
pub const FILE_TOO_LARGE: i32 = rustix::process::Signal::XFSZ.as_raw();
/// The interval at which the processes of a running step are recorded and its dead orphans reaped.
const TENDING: Duration = Duration::from_secs(1);
/// The longest wait for killed processes to be gone.
const CLEARING: Duration = Duration::from_secs(2);
/// The longest wait for output that is already in the pipe.
const DRAINING: Duration = Duration::from_millis(200);

/// A program to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invocation {
    /// Its path, or a name to look up in the `PATH` of `env`.
    pub program: String,
    /// Its arguments, without its name.
    pub args: Vec<String>,
    /// Its working directory.
    pub dir: PathBuf,
    /// Its whole environment. It inherits nothing.
    pub env: Variables,
    /// The time after which fledge ends it. `None` means never.
    pub timeout: Option<Duration>,
    /// The time between SIGTERM and SIGKILL.
    pub grace: Duration,
    /// The time that processes have to finish when they outlive the program.
    pub linger: Duration,
    /// The file for its whole output, replaced if it exists; see [`EndedProcess::has_log`].
    pub log: Option<PathBuf>,
    /// The maximum number of bytes of that file. Above this its middle is dropped.
    pub log_limit: u64,
}

/// Files for a program in place of its closed standard input and of the pipe for its standard
/// error.
#[derive(Debug, Default)]
pub struct ProcessFiles {
    /// Its standard input, read from the file's current position.
    pub input: Option<File>,
    /// Its standard error.
    pub errors: Option<File>,
}

impl ProcessFiles {
    /// Returns standard input with these bytes, in an unnamed file that disappears with its last
    /// reader.
    ///
    /// # Errors
    /// If the file cannot be made or written.
    pub fn reading(bytes: &[u8]) -> io::Result<Self> {
        use std::io::{Seek as _, Write as _};
        // A program can reopen a file in memory as `/dev/stdin`, even if it cannot reach our
        // folders.
        #[cfg(target_os = "linux")]
        let mut file = File::from(rustix::fs::memfd_create("input", rustix::fs::MemfdFlags::CLOEXEC)?);
        #[cfg(not(target_os = "linux"))]
        let mut file = tempfile::tempfile()?;
        file.write_all(bytes)?;
        file.rewind()?;
        Ok(Self { input: Some(file), errors: None })
    }
}

/// A program that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndedProcess {
    /// The way in which it ended.
    pub end: ProcessEnd,
    /// The time from its start until nothing was left of it.
    pub duration: Duration,
    /// Its standard output and standard error, in the order in which they arrived.
    pub output: CapturedOutput,
    /// True if something outlived it and was killed, or held its output open.
    pub leaked: bool,
    /// True if its log is complete.
    pub is_logged: bool,
}

/// The way in which a program ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProcessEnd {
    /// It exited by itself with this code.
    Exited(i32),
    /// This signal ended it, and fledge did not send it. 0 if the system does not say how it ended.
    Signalled(i32),
    /// It ran out of time.
    TimedOut,
    /// It was stopped on request.
    Stopped,
    /// It went beyond a limit, which the text names.
    Exceeded(String),
    /// It could not be started, for this reason.
    NotStarted(String),
}

/// Runs a program with closed standard input in its own process group, and if there is a terminal,
/// in its own session. Passes its output to `on_output` as it arrives. Needs a tokio runtime with
/// I/O and time. When this returns or is dropped, no descendant of the program is left.
pub async fn run(
    invocation: Invocation,
    stop: &CancellationToken,
    on_output: &(dyn Fn(&[u8]) + Send + Sync),
) -> EndedProcess {
    run_at(None, invocation, stop, on_output).await
}

/// Runs a program as [`run`] does. Ends it with everything it has started as soon as it goes beyond
/// `bounds`.
pub async fn run_within(
    bounds: ProcessBounds,
    invocation: Invocation,
    stop: &CancellationToken,
    on_output: &(dyn Fn(&[u8]) + Send + Sync),
) -> EndedProcess {
    run_paced(None, bounds, ProcessFiles::default(), invocation, stop, on_output).await
}

/// Runs a program as [`run`] does, with `files` in place of standard input and standard error.
pub async fn run_with(
    files: ProcessFiles,
    invocation: Invocation,
    stop: &CancellationToken,
    on_output: &(dyn Fn(&[u8]) + Send + Sync),
) -> EndedProcess {
    run_paced(None, ProcessBounds::default(), files, invocation, stop, on_output).await
}

/// Runs a program as [`run`] does, for a listener that may fall behind. With a pace, output arrives
/// in pieces of at most 4 KiB. While the pace is shut no output arrives, for at most one second in
/// all.
pub async fn run_at(
    pace: Option<&Backpressure>,
    invocation: Invocation,
    stop: &CancellationToken,
    on_output: &(dyn Fn(&[u8]) + Send + Sync),
) -> EndedProcess {
    run_paced(pace, ProcessBounds::default(), ProcessFiles::default(), invocation, stop, on_output).await
}

async fn run_paced(
    pace: Option<&Backpressure>,
    bounds: ProcessBounds,
    files: ProcessFiles,
    invocation: Invocation,
    stop: &CancellationToken,
    on_output: &(dyn Fn(&[u8]) + Send + Sync),
) -> EndedProcess {
    let begun = Instant::now();
    if stop.is_cancelled() {
        return EndedProcess::at_once(ProcessEnd::Stopped, Duration::ZERO);
    }
    let (mut leader, group, mut output) = match start(&invocation, files, pace, on_output) {
        Ok(started) => started,
        Err(why) => return EndedProcess::at_once(ProcessEnd::NotStarted(why), begun.elapsed()),
    };

    let cause = output.pump(wait(&mut leader, &group, bounds, invocation.timeout, stop)).await;
    let mut leaked = false;
    match cause {
        Cause::Ended => {
            let lingering = output.pump(tokio::time::timeout(invocation.linger, group.empty()));
            leaked = tokio::select! { over = lingering => over.is_err(), () = stop.cancelled() => group.alive() > 0 };
        }
        Cause::Stopped => output.pump(part(&mut leader, &group, invocation.grace.min(CANCEL_GRACE))).await,
        Cause::TimedOut => {
            let parting = output.pump(part(&mut leader, &group, invocation.grace));
            tokio::select! { () = parting => {}, () = stop.cancelled() => {} }
        }
        Cause::Exceeded(_) => group.kill_group(),
    }

    let cleared = output.pump(tokio::time::timeout(CLEARING, group.gone())).await.is_ok();
    leaked |= !output.drain(DRAINING).await || !cleared;
    let _it_cannot_be_killed = tokio::time::timeout(CLEARING, leader.ended()).await;
    let status = group.reap();
    drop(group);
    let end = match cause {
        Cause::Stopped => ProcessEnd::Stopped,
        Cause::TimedOut => ProcessEnd::TimedOut,
        Cause::Exceeded(how) => ProcessEnd::Exceeded(how),
        Cause::Ended => how(status),
    };
    let (output, is_logged) = output.finish(end != ProcessEnd::Exited(0));
    EndedProcess { end, duration: begun.elapsed(), output, leaked, is_logged }
}

impl EndedProcess {
    /// Returns whether it leaves a log if [`Invocation::log`] is set. A program without output that
    /// exits with 0 leaves none.
    pub fn has_log(&self) -> bool {
        !matches!(self.end, ProcessEnd::NotStarted(_)) && (self.output.total > 0 || self.end != ProcessEnd::Exited(0))
    }

    /// Returns the result of a program that never started.
    pub(crate) fn at_once(end: ProcessEnd, duration: Duration) -> Self {
        Self { end, duration, output: CapturedOutput::default(), leaked: false, is_logged: false }
    }
}

/// The program's own process, and the signals that announce its end.
#[derive(Debug)]
struct Leader {
    pid: Pid,
    /// Receives SIGCHLD, for any child of this process.
    news: Signal,
}

enum Cause {
    Ended,
    Stopped,
    TimedOut,
    Exceeded(String),
}

impl Leader {
    /// Waits for the end of the process without reaping it. Until it is reaped, its number and that
    /// of its group cannot belong to another process.
    async fn ended(&mut self) {
        while census::runs(self.pid) {
            self.news.recv().await;
        }
    }
}

/// Waits for the first reason to end.
async fn wait(
    leader: &mut Leader,
    group: &ProcessGroup,
    bounds: ProcessBounds,
    timeout: Option<Duration>,
    stop: &CancellationToken,
) -> Cause {
    let deadline = async {
        match timeout {
            Some(timeout) => tokio::time::sleep(timeout).await,
            None => std::future::pending().await,
        }
    };
    tokio::pin!(deadline);
    let (mut pause, mut untended) = (bounds.pause(Duration::ZERO).unwrap_or(TENDING), Duration::ZERO);
    let mut crowd = bounds.crowd();
    loop {
        tokio::select! {
            biased;
            () = leader.ended() => return Cause::Ended,
            () = stop.cancelled() => return Cause::Stopped,
            () = &mut deadline => return Cause::TimedOut,
            () = crowd.grown() => {}
            () = tokio::time::sleep(pause) => {}
        }
        untended += pause;
        if untended >= TENDING {
            group.tend();
            untended = Duration::ZERO;
        }
        let begun = Instant::now();
        match bounds.pause(Duration::ZERO).and_then(|_| group.exceeded(bounds)) {
            Some(how) => return Cause::Exceeded(how),
            None => pause = bounds.pause(begun.elapsed()).unwrap_or(TENDING),
        }
    }
}

/// Sends SIGTERM to all processes, and waits until all have ended or `grace` is over.
async fn part(leader: &mut Leader, group: &ProcessGroup, grace: Duration) {
    group.terminate();
    let over = async {
        leader.ended().await;
        group.empty().await;
    };
    let _ = tokio::time::timeout(grace, over).await;
}

/// A stopwatch, for modules that must not read the clock themselves.
#[derive(Debug, Clone, Copy)]
pub struct Stopwatch(Instant);

impl Stopwatch {
    /// Starts a stopwatch.
    pub fn start() -> Self {
        Self(Instant::now())
    }

    /// Returns the time since the start.
    pub fn read(self) -> Duration {
        self.0.elapsed()
    }
}

fn how(status: Option<WaitStatus>) -> ProcessEnd {
    match status.map(|status| (status.exit_status(), status.terminating_signal())) {
        Some((Some(code), _)) => ProcessEnd::Exited(code),
        Some((None, signal)) => ProcessEnd::Signalled(signal.unwrap_or(0)),
        None => ProcessEnd::Signalled(0),
    }
}

type Started<'a> = (Leader, ProcessGroup, StepOutput<'a>);

fn start<'a>(
    invocation: &Invocation,
    files: ProcessFiles,
    pace: Option<&'a Backpressure>,
    on_output: &'a (dyn Fn(&[u8]) + Send + Sync),
) -> Result<Started<'a>, String> {
    let Invocation { program, args, dir, env, log, log_limit, .. } = invocation;
    if !dir.is_dir() {
        return Err(format!("the directory `{}` does not exist", dir.display()));
    }
    let log = log.as_ref().map(|path| {
        StepLogFile::prepare(path.clone(), *log_limit)
            .map_err(|error| format!("cannot write the log `{}`: {error}", path.display()))
    });
    let log = log.transpose()?;
    let pipe = || -> io::Result<_> {
        let (reader, writer) = io::pipe()?;
        Ok((Receiver::from_owned_fd(reader.into())?, writer))
    };
    let (reader, output) = pipe().map_err(|error| format!("cannot make a pipe: {error}"))?;
    let news = signal(SignalKind::child()).map_err(|error| format!("cannot listen for ended programs: {error}"))?;
    let (input, errors) = (files.input.map(Into::into), files.errors.map(Into::into));
    let group = ProcessGroup::start(ProgramStart { path: program, args, dir, variables: env, input, output, errors })
        .map_err(|error| why_not(program, &error))?;
    let leader = Leader { pid: group.leader(), news };
    Ok((leader, group, StepOutput::new(reader, log, pace, on_output)))
}

fn why_not(program: &str, error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => format!("there is no program `{program}`"),
        io::ErrorKind::PermissionDenied => format!("cannot run `{program}`: permission denied"),
        io::ErrorKind::ArgumentListTooLong => {
            format!("the arguments and environment of `{program}` exceed the limit of the system")
        }
        _ => format!("cannot start `{program}`: {error}"),
    }
}

/// Returns the number of usable processors, at least 1.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

// Only Linux lists processes in `/proc`.
#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests;
