//! Runs git. A call has only the arguments, environment, input and limits that are given here.

use super::TreesError;
use crate::process::{self, Invocation, ProcessEnd, ProcessFiles, Variables};
use std::fs::File;
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The time limit of one call: far more than any folder needs.
const PATIENCE: Duration = Duration::from_secs(60 * 60);
/// The oldest supported version of git.
const OLDEST: (u32, u32) = (2, 30);
/// The first version whose `update-index` writes one pack instead of one for each large file.
const PACKS_AT_ONCE: (u32, u32) = (2, 38);
/// The time that git gets to remove its lock files.
const GRACE: Duration = Duration::from_millis(200);
/// Makes git wait a minute for the reference locks of another git. Git's default of one second is
/// too short on a busy machine with many runs.
const PATIENT: [&str; 4] = ["-c", "core.packedRefsTimeout=60000", "-c", "core.filesRefLockTimeout=60000"];
/// The maximum number of bytes of an error message that are kept.
const SAID: usize = 1000;

/// Git in one folder, with one environment.
#[derive(Debug, Clone)]
pub(in crate::workspace) struct GitFolder {
    dir: PathBuf,
    env: Variables,
    /// The folder for input and error output during a call.
    scratch: PathBuf,
    switches: &'static [&'static str],
}

/// A version of git.
pub(super) struct GitVersion {
    /// The output of `git version`.
    pub(super) text: String,
    /// True if `update-index` can write all new objects into one pack.
    pub(super) packs_at_once: bool,
}

/// The result of a call.
pub(in crate::workspace) struct GitAnswer {
    pub(in crate::workspace) code: i32,
    pub(in crate::workspace) output: Vec<u8>,
    pub(in crate::workspace) stderr: String,
}

impl GitFolder {
    /// Git with fledge's private git directory, for the workspace at `root`.
    pub(super) fn own(git_dir: &Path, root: &Path, scratch: &Path, path: &str) -> Self {
        let shown = |path: &Path| path.to_string_lossy().into_owned();
        let env = [
            ("PATH", path.to_owned()),
            ("HOME", "/nonexistent".into()),
            ("XDG_CONFIG_HOME", "/nonexistent".into()),
            ("LC_ALL", "C".into()),
            ("GIT_ATTR_NOSYSTEM", "1".into()),
            ("GIT_CONFIG_GLOBAL", "/dev/null".into()),
            ("GIT_CONFIG_NOSYSTEM", "1".into()),
            ("GIT_DIR", shown(git_dir)),
            ("GIT_INDEX_FILE", shown(&scratch.join("index"))),
            ("GIT_NO_LAZY_FETCH", "1".into()),
            ("GIT_NO_REPLACE_OBJECTS", "1".into()),
            ("GIT_TERMINAL_PROMPT", "0".into()),
            ("GIT_WORK_TREE", ".".into()),
        ];
        let env = Variables::new(env.map(|(name, value)| (name.to_owned(), value)));
        Self { dir: root.to_owned(), env, scratch: scratch.to_owned(), switches: &PATIENT }
    }

    /// The user's git in the user's repository, with the user's identity and configuration.
    /// Settings that would start other programs are switched off.
    pub(in crate::workspace) fn of_user(root: &Path, scratch: &Path, env: &[(String, String)]) -> Self {
        const SWITCHES: [&str; 18] = [
            PATIENT[0],
            PATIENT[1],
            PATIENT[2],
            PATIENT[3],
            "-c",
            "core.fsmonitor=false",
            "-c",
            "core.hooksPath=/dev/null",
            "-c",
            "core.untrackedCache=keep",
            "-c",
            "gc.auto=0",
            "-c",
            "maintenance.auto=false",
            "-c",
            "safe.directory=*",
            "-c",
            "safe.bareRepository=explicit",
        ];
        let is_theirs = |name: &str| {
            ["PATH", "HOME", "XDG_CONFIG_HOME", "USER", "LOGNAME", "EMAIL", "GNUPGHOME", "SSH_AUTH_SOCK"]
                .contains(&name)
                || ["GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM"].contains(&name)
                || name.starts_with("GIT_AUTHOR_")
                || name.starts_with("GIT_COMMITTER_")
        };
        let ours = [
            ("LC_ALL", "C"),
            ("GIT_NO_LAZY_FETCH", "1"),
            ("GIT_NO_REPLACE_OBJECTS", "1"),
            ("GIT_OPTIONAL_LOCKS", "0"),
            ("GIT_TERMINAL_PROMPT", "0"),
        ];
        let theirs = process::with_path_outside(env, root).into_iter().filter(|(name, _)| is_theirs(name));
        let env = Variables::new(theirs.chain(ours.map(|(name, value)| (name.to_owned(), value.to_owned()))));
        Self { dir: root.to_owned(), env, scratch: scratch.to_owned(), switches: &SWITCHES }
    }

    /// Returns this git with another value for an environment variable.
    pub(in crate::workspace) fn with(&self, name: &str, value: &Path) -> Self {
        let env = self.env.with([(&name.to_owned(), &value.to_string_lossy().into_owned())]);
        Self { env, ..self.clone() }
    }

    /// Returns this git with every file treated as large, so that all new objects go into one pack.
    /// For many objects, most of the cost is one file for each.
    pub(super) fn packing(&self) -> Self {
        let one = [("COUNT", "1"), ("KEY_0", "core.bigFileThreshold"), ("VALUE_0", "1")];
        one.iter().fold(self.clone(), |git, (name, value)| git.with(&format!("GIT_CONFIG_{name}"), Path::new(value)))
    }

    /// Returns this git for another folder.
    pub(in crate::workspace) fn within(&self, dir: &Path) -> Self {
        Self { dir: dir.to_owned(), ..self.clone() }
    }

    /// Returns the version; fails if it is too old.
    pub(super) async fn version(&self, stop: &CancellationToken) -> Result<GitVersion, TreesError> {
        let text = String::from_utf8_lossy(&self.ask(&["version"], stop).await?).trim().to_owned();
        let mut numbers = text.trim_start_matches(|c: char| !c.is_ascii_digit()).split('.');
        let mut number = || numbers.next().and_then(|text| text.parse::<u32>().ok()).unwrap_or(0);
        let number = (number(), number());
        if number < OLDEST {
            return Err(TreesError::OldGit { version: text });
        }
        Ok(GitVersion { text, packs_at_once: number >= PACKS_AT_ONCE })
    }

    /// Runs git and returns its output. An exit code other than 0 is an error.
    pub(in crate::workspace) async fn ask(
        &self,
        args: &[&str],
        stop: &CancellationToken,
    ) -> Result<Vec<u8>, TreesError> {
        self.tell(args, b"", stop).await
    }

    /// Runs git with `input` and returns its output. An exit code other than 0 is an error.
    pub(in crate::workspace) async fn tell(
        &self,
        args: &[&str],
        input: &[u8],
        stop: &CancellationToken,
    ) -> Result<Vec<u8>, TreesError> {
        let answer = self.run(args, input, usize::MAX, stop).await?;
        if answer.code == 0 { Ok(answer.output) } else { Err(answer.fault(args)) }
    }

    /// Runs git with `input` and returns the exit code and at most `limit` bytes of output. An exit
    /// code other than 0 is not an error.
    pub(in crate::workspace) async fn run(
        &self,
        args: &[&str],
        input: &[u8],
        limit: usize,
        stop: &CancellationToken,
    ) -> Result<GitAnswer, TreesError> {
        let files = || -> io::Result<(ProcessFiles, File)> {
            let says = tempfile::tempfile_in(&self.scratch)?;
            let mut reads = if input.is_empty() { None } else { Some(tempfile::tempfile_in(&self.scratch)?) };
            if let Some(reads) = &mut reads {
                reads.write_all(input)?;
                reads.rewind()?;
            }
            Ok((ProcessFiles { input: reads, errors: Some(says.try_clone()?) }, says))
        };
        let (files, mut says) = files().map_err(TreesError::io("write in", &self.scratch))?;
        let kept = Mutex::new(Vec::new());
        let keep = |bytes: &[u8]| {
            let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
            let room = limit.saturating_sub(kept.len()).min(bytes.len());
            kept.extend_from_slice(&bytes[..room]);
        };
        let ended = process::run_with(files, self.invocation(args), stop, &keep).await;
        let mut stderr = Vec::new();
        let _as_far_as_it_can_be_read = says.rewind().and_then(|()| says.read_to_end(&mut stderr));
        let stderr = process::shorten(&process::clean(&stderr), SAID).trim().to_owned();
        let output = kept.into_inner().unwrap_or_else(PoisonError::into_inner);
        let verb = args.first().copied().unwrap_or_default().to_owned();
        match ended.end {
            ProcessEnd::Exited(code) => Ok(GitAnswer { code, output, stderr }),
            ProcessEnd::NotStarted(why) => Err(TreesError::NoGit { why }),
            ProcessEnd::Stopped => Err(TreesError::Stopped),
            ProcessEnd::TimedOut => Err(TreesError::Git { verb, stderr: "it took longer than an hour".into() }),
            ProcessEnd::Exceeded(stderr) => Err(TreesError::Git { verb, stderr }),
            ProcessEnd::Signalled(signal) => {
                Err(TreesError::Git { verb, stderr: format!("ended by signal {signal}; {stderr}") })
            }
        }
    }

    fn invocation(&self, args: &[&str]) -> Invocation {
        // A program with an absolute path is started without a copy of this process
        // (posix_spawn(3)).
        let found = process::find_program("git", self.env.get("PATH").unwrap_or_default());
        Invocation {
            program: found.map_or_else(|| "git".into(), |found| found.to_string_lossy().into_owned()),
            args: self.switches.iter().chain(args).map(|arg| (*arg).to_owned()).collect(),
            dir: self.dir.clone(),
            env: self.env.clone(),
            timeout: Some(PATIENCE),
            grace: GRACE,
            linger: Duration::ZERO,
            log: None,
            log_limit: 0,
        }
    }
}

impl GitAnswer {
    /// Converts an unexpected exit code into an error.
    pub(in crate::workspace) fn fault(self, args: &[&str]) -> TreesError {
        let stderr = if self.stderr.is_empty() { format!("exit code {}", self.code) } else { self.stderr };
        TreesError::Git { verb: verb_of(args).to_owned(), stderr }
    }
}

/// Returns the command of git in its arguments, after the settings before it (`-c NAME=VALUE`).
fn verb_of<'a>(args: &[&'a str]) -> &'a str {
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match *arg {
            "-c" | "-C" => {
                let _value = args.next();
            }
            option if option.starts_with('-') => {}
            verb => return verb,
        }
    }
    ""
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_command_of_git_comes_after_its_settings() {
        for (args, verb) in [(&["-c", "a=b", "--bare", "add", "-A"][..], "add"), (&["status"], "status"), (&["-c"], "")]
        {
            assert_eq!(super::verb_of(args), verb);
        }
    }
}
