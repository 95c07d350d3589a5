//! Git for the repositories of tests, with a separate identity that fledge never sees.

use super::{Ended, Fledge, record_time};
use std::path::Path;
use std::process::{Command, Stdio};

/// Runs git in a folder. Returns its output without the last line end.
#[track_caller]
pub(crate) fn git(folder: &Path, args: &[&str]) -> String {
    record_time();
    let mut command = Command::new("git");
    let me = ["-c", "user.name=Tester", "-c", "user.email=tester@localhost", "-c", "protocol.file.allow=always"];
    command.args(me).args(args).current_dir(folder).stdin(Stdio::null());
    command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1").env("LC_ALL", "C");
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "git {args:?} in {}: {said}", folder.display());
    String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
}

impl Fledge {
    /// Runs git in the workspace.
    #[track_caller]
    pub(crate) fn git(self, args: &[&str]) -> Self {
        git(&self.workspace(), args);
        self
    }

    /// Makes the workspace a repository and commits all its files.
    #[track_caller]
    pub(crate) fn committed(self) -> Self {
        self.git(&["init", "-q", "-b", "main"]).git(&["add", "-A"]).git(&["commit", "-qm", "first"])
    }
}

impl Ended {
    /// Runs git in the workspace. Returns its output.
    #[track_caller]
    pub(crate) fn git(&self, args: &[&str]) -> String {
        git(&self.path(""), args)
    }
}
