//! Reports of test runners by name, without a change to the lane. fledge adds a reporter to each
//! runner of [`MEANS`] by an environment variable. Reporters are files of fledge in a folder that
//! the sandbox makes read-only. They write to a named pipe there, which no process of the step can
//! read or empty.

mod records;

use super::{Invocation, LaneRoom, Step};
use crate::lane::RunnerReport;
use crate::process::sandbox::{Mount, PathRules, SandboxKind};
use crate::process::{self, Variables};
use std::convert::Infallible;
use std::fs::{self, Permissions};
use std::future::pending;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use tokio::net::unix::pipe::Receiver;

/// The means by which runners report to fledge.
struct Means {
    /// The programs and modules of steps to which the variable is given. Other steps run nothing of
    /// fledge.
    programs: &'static [&'static str],
    /// The variable that adds the reporter.
    variable: &'static str,
    /// Adds the reporter to the variable's value. The arguments are the folder of the reporters and
    /// the value so far.
    added: fn(&str, &str) -> String,
}

impl Means {
    fn is_for(&self, step: &Step) -> bool {
        runs_one(&step.run, self.programs)
    }
}

/// The table of runners: pytest and unittest in processes of Python, and `node --test`, Jest,
/// Vitest and Mocha in processes of Node.
const MEANS: [Means; 2] = [
    Means { programs: &OF_PYTHON, variable: PYTHON, added: |folder, before| joined(folder, ':', before) },
    Means {
        programs: &OF_NODE,
        variable: "NODE_OPTIONS",
        added: |folder, before| joined(&required(folder), ' ', before),
    },
];
/// Words of commands that may run pytest or unittest.
const OF_PYTHON: [&str; 17] = [
    "coverage",
    "hatch",
    "invoke",
    "just",
    "make",
    "manage.py",
    "nox",
    "pdm",
    "pipenv",
    "poe",
    "poetry",
    "py.test",
    "pytest",
    "task",
    "tox",
    "unittest",
    "uv",
];
/// Words of commands that may run a test runner of Node.
const OF_NODE: [&str; 9] = ["jest", "mocha", "node", "npm", "npx", "pnpm", "tsx", "vitest", "yarn"];
/// The variable with the search path of Python's modules.
const PYTHON: &str = "PYTHONPATH";
/// The name of the pipe.
const CHANNEL: &str = "channel";
/// The files of the reporters.
const FILES: [(&str, &str); 10] = [
    ("sitecustomize.py", include_str!("sitecustomize.py")),
    ("run.py", include_str!("run.py")),
    ("pytest_reporter.py", include_str!("pytest_reporter.py")),
    ("unittest_reporter.py", include_str!("unittest_reporter.py")),
    ("hook.cjs", include_str!("hook.cjs")),
    ("run.cjs", include_str!("run.cjs")),
    ("node_reporter.mjs", include_str!("node_reporter.mjs")),
    ("mocha.cjs", include_str!("mocha.cjs")),
    ("jest.cjs", include_str!("jest.cjs")),
    ("vitest.mjs", include_str!("vitest.mjs")),
];
/// The maximum size of the records of a step, in bytes.
const MOST: usize = 64 * 1024 * 1024;

/// The reporters of one try of a step. Dropping them removes their folder.
#[derive(Debug)]
pub(super) struct Reporters {
    folder: PathBuf,
    /// The path of the folder for the programs of the step.
    at: PathBuf,
    channel: Receiver,
    records: Vec<u8>,
}

impl Reporters {
    /// Prepares the reporters for a step. `None` if the room wants no reports, the command names no
    /// runner, or the folder cannot be made.
    pub(super) fn open(room: &LaneRoom, step: &Step) -> Option<Self> {
        MEANS.iter().find(|means| means.is_for(step))?;
        let word = process::unforeseen();
        let folder = room.reporters.as_ref()?.join(&word);
        // A colon separates folders in the search path of Python.
        if folder.to_string_lossy().contains(':') {
            return None;
        }
        let kind = room.behind.as_ref().map_or(SandboxKind::Off, |behind| behind.sandbox.kind());
        let at = match kind {
            SandboxKind::Bubblewrap => private_folder().join(word),
            SandboxKind::Landlock | SandboxKind::Off => folder.clone(),
        };
        match write(&folder) {
            Ok(channel) => Some(Self { folder, at, channel, records: Vec::new() }),
            Err(error) => {
                tracing::warn!(%error, "test runners cannot report tests by name");
                let _it_is_removed_with_the_run = fs::remove_dir_all(&folder);
                None
            }
        }
    }

    /// Adds the folder to what the programs of the step see.
    pub(super) fn show(&self, rules: &mut PathRules) {
        rules.mounts.push(Mount { from: self.folder.clone(), at: self.at.clone(), writable: false });
        if self.at == self.folder {
            // Landlock forbids writing to a pipe in a read-only folder. Mounts do not.
            let channel = self.folder.join(CHANNEL);
            rules.mounts.push(Mount { from: channel.clone(), at: channel, writable: true });
        }
    }

    /// Adds the reporters to the variables of a step. A command that sets the search path of Python
    /// itself gets the folder, too.
    pub(super) fn add_to(&self, step: &Step, invocation: &mut Invocation) {
        let at = self.at.to_string_lossy();
        let changed = MEANS.iter().filter(|means| means.is_for(step)).map(|means| {
            let before = invocation.env.get(means.variable).unwrap_or_default();
            (means.variable.to_owned(), (means.added)(&at, before))
        });
        let changed: Vec<(String, String)> = changed.collect();
        let is_of_python = changed.iter().any(|(variable, _)| variable == PYTHON);
        invocation.env = with(&invocation.env, &changed);
        if let Some(command) = invocation.args.last_mut().filter(|_| is_of_python) {
            *command = with_search_path(command, &at);
        }
    }

    /// Reads records until it is dropped.
    pub(super) async fn read(&mut self) -> Infallible {
        loop {
            match self.channel.readable().await {
                Ok(()) if self.records.len() <= MOST => self.take(),
                Ok(()) | Err(_) => return pending().await,
            }
        }
    }

    /// Takes the records that are in the pipe.
    fn take(&mut self) {
        let mut piece = [0; 1 << 16];
        while let Ok(length) = self.channel.try_read(&mut piece) {
            self.records.extend_from_slice(&piece[..length]);
            if length == 0 || self.records.len() > MOST {
                break;
            }
        }
    }

    /// Returns the report of a step that has ended.
    pub(super) fn finish(mut self) -> RunnerReport {
        self.take();
        let is_whole = self.records.len() <= MOST;
        let mut report = records::report(&self.records);
        report.broken += u64::from(!is_whole);
        report
    }
}

impl Drop for Reporters {
    fn drop(&mut self) {
        let _it_is_removed_with_the_run = fs::remove_dir_all(&self.folder);
    }
}

/// Reads records until it is dropped, if there are reporters.
pub(super) async fn read(reporters: &mut Option<Reporters>) -> Infallible {
    match reporters {
        Some(reporters) => reporters.read().await,
        None => pending().await,
    }
}

/// Writes the files of the reporters, and opens the pipe.
fn write(folder: &Path) -> io::Result<Receiver> {
    fs::create_dir_all(folder)?;
    for (name, text) in FILES {
        fs::write(folder.join(name), text)?;
    }
    let path = folder.join(CHANNEL);
    let channel = open_channel(&path)?;
    // From now on, its owner can only write.
    fs::set_permissions(&path, Permissions::from_mode(0o200))?;
    Ok(channel)
}

/// Makes the pipe. It is also open for writing here, so that reporters never wait for a reader, and
/// the reading never ends.
#[cfg(target_os = "linux")]
fn open_channel(path: &Path) -> io::Result<Receiver> {
    rustix::fs::mkfifoat(rustix::fs::CWD, path, rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR)?;
    tokio::net::unix::pipe::OpenOptions::new().read_write(true).open_receiver(path)
}

#[cfg(not(target_os = "linux"))]
fn open_channel(_: &Path) -> io::Result<Receiver> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Returns a folder that is private and empty in the sandbox.
fn private_folder() -> &'static Path {
    let [run, other] = ["/run", "/tmp"].map(Path::new);
    if run.is_dir() { run } else { other }
}

/// Joins a value to the value of a variable.
fn joined(own: &str, separator: char, before: &str) -> String {
    if before.is_empty() { own.to_owned() } else { format!("{own}{separator}{before}") }
}

/// Returns the option of Node that loads the hook.
fn required(folder: &str) -> String {
    let quote = if folder.contains(' ') { "\"" } else { "" };
    format!("--require {quote}{folder}/hook.cjs{quote}")
}

fn with(env: &Variables, changed: &[(String, String)]) -> Variables {
    env.with(changed.iter().map(|(name, value)| (name, value)))
}

/// Returns whether a command names one of these programs.
fn runs_one(command: &str, programs: &[&str]) -> bool {
    let words = command.split(|letter: char| letter.is_whitespace() || ";&|()\"'".contains(letter));
    words.map(|word| word.rsplit('/').next().unwrap_or(word)).any(|word| programs.contains(&word))
}

/// Adds the folder to each search path of Python that a command sets.
fn with_search_path(command: &str, folder: &str) -> String {
    let set = format!("{PYTHON}=");
    let (mut text, mut rest) = (String::new(), command);
    while let Some(at) = rest.find(&set) {
        let (before, after) = rest.split_at(at + set.len());
        let is_word =
            before[..at].chars().next_back().is_none_or(|letter| letter.is_whitespace() || ";&|(".contains(letter));
        text.push_str(before);
        if is_word {
            text.push_str(&format!("{folder}:"));
        }
        rest = after;
    }
    text + rest
}

#[cfg(test)]
mod tests;
