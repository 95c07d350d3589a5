//! The program in its own folder and environment. It inherits only `PATH` from the machine, and is
//! killed if it does not end.

use super::{Ended, Model, PATIENCE, becomes, needs, place, record_time};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The time limit on streams that stay open after the end of their program. After that, a process
/// that the program left behind must hold them.
const HELD_OPEN: Duration = Duration::from_secs(60);
/// The API key of the program, which must appear in no output.
pub(crate) const KEY: &str = "sk-canary-5f1d7c20b9";

/// A run of the program that has not started.
#[derive(Debug)]
pub(crate) struct Fledge {
    folder: TempDir,
    /// The command that starts the program, or empty. It gets the program and its arguments as
    /// further arguments.
    starter: Vec<String>,
    args: Vec<String>,
    env: Vec<(String, String)>,
    stdin: Input,
    output_reader: OutputReader,
}

/// The reader of the program's output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OutputReader {
    Listening,
    /// No reader: the other end of both pipes is closed.
    Gone,
    /// A reader that never reads: both pipes fill up.
    Stuck,
}

#[derive(Debug)]
enum Input {
    Closed,
    /// A pipe that stays open and silent.
    Silent,
    Text(Vec<u8>),
}

/// A run of the program in progress.
#[derive(Debug)]
pub(crate) struct Running {
    folder: TempDir,
    pid: Pid,
    begun: Instant,
    lines: Receiver<Line>,
    /// The number of streams that have not ended.
    open: usize,
    exit: Receiver<(ExitStatus, Instant)>,
    stdout: Vec<u8>,
    stderr: Vec<u8>,
}

/// A line, complete or cut off, of standard output (`true`) or standard error. It is empty at the
/// end of the stream.
type Line = (bool, Vec<u8>);

impl Fledge {
    /// Prepares `fledge run task.md` in an empty workspace, which has no task yet.
    pub(crate) fn new() -> Self {
        Self::new_in(place())
    }

    /// Prepares `fledge run task.md` in a new folder below `place`.
    pub(crate) fn new_in(place: &Path) -> Self {
        record_time();
        let folder = tempfile::tempdir_in(place).unwrap();
        fs::create_dir(folder.path().join("workspace")).unwrap();
        fs::create_dir(folder.path().join("home")).unwrap();
        let args = ["run", "task.md"].map(str::to_owned).into();
        Self {
            folder,
            starter: Vec::new(),
            args,
            env: Vec::new(),
            stdin: Input::Closed,
            output_reader: OutputReader::Listening,
        }
    }

    /// Prepares the program with only these arguments, in a folder that an earlier run left.
    pub(crate) fn in_folder(folder: TempDir, args: &[&str]) -> Self {
        let args = args.iter().map(|arg| (*arg).into()).collect();
        Self {
            folder,
            starter: Vec::new(),
            args,
            env: Vec::new(),
            stdin: Input::Closed,
            output_reader: OutputReader::Listening,
        }
    }

    /// Prepares a run with this model, whose task is done when the file `done` exists.
    pub(crate) fn simple(model: &Model) -> Self {
        Self::new().lane("verify", &needs("done")).task("Make the file `done`.").anthropic(model)
    }

    /// Writes a file of the workspace.
    pub(crate) fn file(self, path: &str, content: impl AsRef<[u8]>) -> Self {
        let path = self.workspace().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
        self
    }

    /// Writes a lane of the workspace.
    pub(crate) fn lane(self, name: &str, yaml: &str) -> Self {
        self.file(&format!("lanes/{name}.yaml"), yaml)
    }

    /// Writes the text of the task.
    pub(crate) fn task(self, text: &str) -> Self {
        self.file("task.md", text)
    }

    /// Adds an argument.
    pub(crate) fn arg(mut self, arg: &str) -> Self {
        self.args.push(arg.into());
        self
    }

    /// Replaces the arguments.
    pub(crate) fn args(self, args: &[&str]) -> Self {
        Self { args: args.iter().map(|arg| (*arg).into()).collect(), ..self }
    }

    /// Starts the program by this command, which gets the program and its arguments.
    pub(crate) fn under(self, starter: &[&str]) -> Self {
        Self { starter: starter.iter().map(|arg| (*arg).into()).collect(), ..self }
    }

    /// Sets a variable. A later value replaces an earlier one.
    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }

    /// Uses this model as Anthropic's, with a key.
    pub(crate) fn anthropic(self, model: &Model) -> Self {
        self.env("ANTHROPIC_BASE_URL", &model.url()).env("ANTHROPIC_API_KEY", KEY)
    }

    /// Uses this model as OpenAI's, with a key.
    pub(crate) fn openai(self, model: &Model) -> Self {
        self.env("OPENAI_BASE_URL", &format!("{}/v1", model.url())).env("OPENAI_API_KEY", KEY)
    }

    /// Sets the text for standard input.
    pub(crate) fn stdin(self, text: impl Into<Vec<u8>>) -> Self {
        Self { stdin: Input::Text(text.into()), ..self }
    }

    /// Keeps standard input open and silent.
    pub(crate) fn silent_stdin(self) -> Self {
        Self { stdin: Input::Silent, ..self }
    }

    /// Closes the other end of both output pipes.
    pub(crate) fn without_output_reader(self) -> Self {
        Self { output_reader: OutputReader::Gone, ..self }
    }

    /// Never reads from the output pipes.
    pub(crate) fn unread(self) -> Self {
        Self { output_reader: OutputReader::Stuck, ..self }
    }

    /// Returns the workspace.
    pub(crate) fn workspace(&self) -> PathBuf {
        self.folder.path().join("workspace")
    }

    /// Returns the state folder of the program.
    pub(crate) fn state(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    /// Runs to the end.
    #[track_caller]
    pub(crate) fn run(self) -> Ended {
        self.start().end()
    }

    /// Starts the run.
    pub(crate) fn start(self) -> Running {
        let program = env!("CARGO_BIN_EXE_fledge").to_owned();
        let heard = if ignores_hangup() {
            vec!["/usr/bin/env".to_owned(), "--default-signal=HUP".to_owned()]
        } else {
            Vec::new()
        };
        let line: Vec<String> = [heard, self.starter.clone(), vec![program], self.args.clone()].concat();
        let mut command = Command::new(&line[0]);
        command.args(&line[1..]).current_dir(self.workspace()).env_clear();
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("HOME", self.folder.path().join("home")).env("FLEDGE_STATE_DIR", self.state());
        command.envs(self.env).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.stdin(if matches!(self.stdin, Input::Closed) { Stdio::null() } else { Stdio::piped() });
        let begun = Instant::now();
        let mut child = command.spawn().unwrap();
        let pid = Pid::from_child(&child);
        let (said, lines) = channel();
        let (stdout, stderr) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
        let (mut open, mut unread) = (0, None);
        match self.output_reader {
            OutputReader::Listening => {
                listen(stdout, true, said.clone());
                listen(stderr, false, said);
                open = 2;
            }
            OutputReader::Gone => drop((stdout, stderr)),
            OutputReader::Stuck => unread = Some((stdout, stderr)),
        }
        let mut stdin = child.stdin.take();
        if let (Input::Text(text), Some(mut pipe)) = (&self.stdin, stdin.as_ref()) {
            let _it_may_not_read = pipe.write_all(text);
            stdin = None;
        }
        let (tell, exit) = channel();
        std::thread::spawn(move || {
            let status = child.wait().unwrap();
            drop((stdin, unread)); // held open until then
            let _nobody_waits = tell.send((status, Instant::now()));
        });
        Running { folder: self.folder, pid, begun, lines, open, exit, stdout: Vec::new(), stderr: Vec::new() }
    }
}

/// Returns whether the tests were started with SIGHUP ignored, as by `nohup`. The programs that
/// they start would inherit that.
fn ignores_hangup() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 1 == 1)
}

/// Sends the lines of a stream, and an empty line at its end.
fn listen(stream: impl Read + Send + 'static, is_stdout: bool, said: Sender<Line>) {
    std::thread::spawn(move || {
        let mut stream = BufReader::new(stream);
        loop {
            let mut line = Vec::new();
            let _unreadable_is_ended = stream.read_until(b'\n', &mut line);
            let is_over = line.is_empty();
            if said.send((is_stdout, line)).is_err() || is_over {
                return;
            }
        }
    });
}

impl Running {
    /// Returns the folder with the workspace, home and state.
    pub(crate) fn place(&self) -> PathBuf {
        self.folder.path().to_owned()
    }

    /// Waits for a line with this text in either stream.
    #[track_caller]
    pub(crate) fn wait_for(&mut self, text: &str) {
        let late = Instant::now() + PATIENCE;
        while let Ok((is_stdout, line)) = self.lines.recv_timeout(late.saturating_duration_since(Instant::now())) {
            let found = String::from_utf8_lossy(&line).contains(text);
            self.keep(is_stdout, line);
            if found {
                return;
            }
        }
        let _it_may_have_ended = kill_process(self.pid, Signal::KILL);
        panic!("never said {text:?}:\n{}", self.story());
    }

    /// Waits until this holds; ends the run if it never does.
    #[track_caller]
    pub(crate) fn until(&self, holds: impl FnMut() -> bool) {
        if !becomes(holds) {
            self.signal(Signal::TERM);
            panic!("waited in vain");
        }
    }

    /// Sends a signal. Returns the time of sending.
    pub(crate) fn signal(&self, signal: Signal) -> Instant {
        let at = Instant::now();
        let _it_may_have_ended = kill_process(self.pid, signal);
        at
    }

    /// Returns the pid and command line of each child whose command line has this text.
    pub(crate) fn children_with(&self, text: &str) -> Vec<(i32, String)> {
        super::children_with(self.pid, text)
    }

    /// Waits for the end of the run.
    #[track_caller]
    pub(crate) fn end(mut self) -> Ended {
        let Ok((status, at)) = self.exit.recv_timeout(PATIENCE) else {
            let _it_may_have_ended = kill_process(self.pid, Signal::KILL);
            self.rest();
            panic!("did not end within {PATIENCE:?}:\n{}", self.story());
        };
        self.rest();
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let (stdout, stderr) = (text(&self.stdout), text(&self.stderr));
        let ended = Ended { folder: self.folder, code: status.code(), stdout, stderr, took: at - self.begun, at };
        ended.must_replay();
        ended
    }

    /// Collects the remaining output. Both streams must have ended: if one is open, the program
    /// left a process behind.
    #[track_caller]
    fn rest(&mut self) {
        while self.open > 0 {
            let Ok((is_stdout, line)) = self.lines.recv_timeout(HELD_OPEN) else {
                panic!("another process holds the output open:\n{}", self.story());
            };
            self.keep(is_stdout, line);
        }
    }

    fn keep(&mut self, is_stdout: bool, line: Vec<u8>) {
        self.open -= usize::from(line.is_empty());
        if is_stdout { &mut self.stdout } else { &mut self.stderr }.extend(line);
    }

    fn story(&self) -> String {
        let text = String::from_utf8_lossy;
        format!("--- stdout\n{}\n--- stderr\n{}", text(&self.stdout), text(&self.stderr))
    }
}
