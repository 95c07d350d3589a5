//! The start of one program, with closed input, its output in a pipe, and as the leader of its own
//! process group. Most steps start in this process's own directory, and for these posix_spawn(3)
//! suffices. The way through [`std::process`] does more, and costs more for each variable than the
//! start itself.

use super::variables::Variables;
use process_wrap::std::{CommandWrap, ProcessSession};
use rustix::process::Pid;
use std::fs::File;
use std::io::{self, PipeWriter};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Stdio;
use std::sync::OnceLock;

/// A program to start.
pub(super) struct ProgramStart<'a> {
    pub(super) path: &'a str,
    pub(super) args: &'a [String],
    pub(super) dir: &'a Path,
    pub(super) variables: &'a Variables,
    /// Its standard input, if any.
    pub(super) input: Option<OwnedFd>,
    /// Its standard output.
    pub(super) output: PipeWriter,
    /// Its standard error, if that is not its output.
    pub(super) errors: Option<OwnedFd>,
}

impl ProgramStart<'_> {
    /// Starts the program with `mark`, the variable of its step, in its environment. A program that
    /// leads a session has no terminal.
    pub(super) fn start(self, mark: &str, in_session: bool) -> io::Result<Pid> {
        #[cfg(target_os = "linux")]
        if !in_session && self.path.contains('/') && self.starts_here() {
            return self.start_here(mark);
        }
        self.start_anywhere(mark, in_session)
    }

    /// Returns whether the program's directory is that of this process.
    #[cfg(target_os = "linux")]
    fn starts_here(&self) -> bool {
        use std::os::unix::ffi::OsStrExt as _;
        let here = rustix::process::getcwd(Vec::new());
        here.is_ok_and(|here| Path::new(std::ffi::OsStr::from_bytes(here.as_bytes())) == self.dir)
    }

    #[cfg(target_os = "linux")]
    fn start_here(self, mark: &str) -> io::Result<Pid> {
        use nix::spawn::{PosixSpawnAttr, PosixSpawnFileActions, PosixSpawnFlags, posix_spawn};
        use nix::sys::signal::{SigSet, Signal};
        use std::ffi::CString;
        use std::os::fd::AsRawFd;

        let path = CString::new(self.path)?;
        let args = self.args.iter().map(|arg| CString::new(arg.as_str()));
        let args = [Ok(path.clone())].into_iter().chain(args).collect::<Result<Vec<_>, _>>()?;
        let mark = CString::new(mark)?;
        let variables: Vec<_> = self.variables.entries()?.chain([mark.as_c_str()]).collect();

        let mut files = PosixSpawnFileActions::init()?;
        let input = self.input.as_ref().map_or_else(|| nothing().map(AsRawFd::as_raw_fd), |own| Ok(own.as_raw_fd()))?;
        files.add_dup2(input, 0)?;
        files.add_dup2(self.output.as_raw_fd(), 1)?;
        files.add_dup2(self.errors.as_ref().map_or(self.output.as_raw_fd(), AsRawFd::as_raw_fd), 2)?;

        let mut attributes = PosixSpawnAttr::init()?;
        let flags = PosixSpawnFlags::POSIX_SPAWN_SETPGROUP
            | PosixSpawnFlags::POSIX_SPAWN_SETSIGMASK
            | PosixSpawnFlags::POSIX_SPAWN_SETSIGDEF;
        attributes.set_flags(flags)?;
        attributes.set_pgroup(nix::unistd::Pid::from_raw(0))?;
        attributes.set_sigmask(&SigSet::empty())?;
        // A program inherits ignored signals, but no handlers. fledge itself ignores only SIGPIPE.
        attributes.set_sigdefault(&SigSet::from_iter([Signal::SIGPIPE]))?;

        let started = posix_spawn(path.as_c_str(), &files, &attributes, &args, &variables)?;
        Pid::from_raw(started.as_raw()).ok_or_else(numberless)
    }

    fn start_anywhere(self, mark: &str, in_session: bool) -> io::Result<Pid> {
        let _all_can_be_given = self.variables.entries()?;
        let stderr = self.errors.map_or_else(|| self.output.try_clone().map(OwnedFd::from), Ok)?;
        let stdout = self.output;
        let mut command = CommandWrap::with_new(self.path, |command| {
            command.args(self.args).current_dir(self.dir).env_clear().envs(self.variables.pairs());
            command.envs(mark.split_once('='));
            command.stdin(self.input.map_or_else(Stdio::null, Stdio::from)).stdout(stdout).stderr(stderr);
        });
        if in_session {
            command.wrap(ProcessSession);
        } else {
            command.command_mut().process_group(0);
        }
        let child = command.spawn()?;
        i32::try_from(child.id()).ok().and_then(Pid::from_raw).ok_or_else(numberless)
    }
}

/// Returns the standard input of programs without input. It is opened once, since it has no
/// position that programs could share.
#[cfg(target_os = "linux")]
fn nothing() -> io::Result<&'static File> {
    static NOTHING: OnceLock<File> = OnceLock::new();
    match NOTHING.get() {
        Some(file) => Ok(file),
        None => File::open("/dev/null").map(|file| NOTHING.get_or_init(|| file)),
    }
}

fn numberless() -> io::Error {
    io::Error::other("the program has no process id")
}
