//! The settings of Go in a room: those of the user, and a flag that makes Go name each test.
//!
//! They are in the file of `go env -w`, because a variable would win over `GOFLAGS ?= …` of a
//! Makefile. They are used only behind bubblewrap, because otherwise no file can be put into the
//! home of a room.

use super::GateSite;
use super::built::may_start;
use crate::lane::Lane;
use crate::lane_runner::LaneRoom;
use crate::process::sandbox::{Mount, SandboxKind};
use std::fs;
use std::path::{Path, PathBuf};

/// The settings of the user that a room gets. Other settings may contain credentials.
const SHOWN: [&str; 8] =
    ["CGO_ENABLED", "GO111MODULE", "GOEXPERIMENT", "GOFLAGS", "GOMODCACHE", "GOPATH", "GOTOOLCHAIN", "GOWORK"];
/// The flag that makes Go name each test. Of the commands of Go, only `test` uses it.
const NAMED: &str = "-test.v";

impl GateSite {
    /// Returns whether Go names single tests in the rooms of a lane.
    pub(super) fn names_tests(&self, lane: &Lane) -> bool {
        let is_set = |name: &str| {
            let by_lane = lane.env.contains_key(name) || lane.steps.iter().any(|step| step.env.contains_key(name));
            by_lane || !self.variable(name).is_empty()
        };
        let is_wanted = self.sandbox.kind() == SandboxKind::Bubblewrap && may_start(lane, &["go "]);
        is_wanted && !["GOFLAGS", "GOENV"].into_iter().any(is_set) && self.go_settings_path().is_some()
    }

    /// Puts the settings into a room, if its lane's tests can be named.
    pub(super) fn bring_go_settings(&self, lane: &Lane, room: &mut LaneRoom) {
        let (Some(at), Some(behind)) = (self.go_settings_path(), room.behind.as_mut()) else { return };
        if !self.names_tests(lane) {
            return;
        }
        let from = self.rooms.join("go-env");
        let theirs = fs::read_to_string(&at).unwrap_or_default();
        match fs::create_dir_all(&self.rooms).and_then(|()| fs::write(&from, settings(&theirs))) {
            Ok(()) => behind.rules.mounts.push(Mount { from, at, writable: false }),
            Err(error) => tracing::warn!(%error, "cannot identify Go tests by name"),
        }
    }

    /// Returns the path of the user's `go env -w` file, if it is below an absolute `HOME`.
    fn go_settings_path(&self) -> Option<PathBuf> {
        let home = Path::new(self.variable("HOME"));
        let folder = Some(self.variable("XDG_CONFIG_HOME")).filter(|folder| !folder.is_empty());
        let folder = folder.map_or_else(|| home.join(".config"), PathBuf::from);
        (home.is_absolute() && folder.starts_with(home)).then(|| folder.join("go/env"))
    }
}

/// Returns the text of the settings file in a room. As in Go itself, the last line for a name
/// counts.
fn settings(theirs: &str) -> String {
    let (mut text, mut flags) = (String::new(), "");
    for (name, value) in theirs.lines().filter_map(|line| line.split_once('=')) {
        if name == "GOFLAGS" {
            flags = value;
        } else if SHOWN.contains(&name) {
            text.push_str(&format!("{name}={value}\n"));
        }
    }
    text + &format!("GOFLAGS={}\n", format!("{flags} {NAMED}").trim_start())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_of_the_user_stay_but_for_those_that_may_be_secret() {
        assert_eq!(settings(""), "GOFLAGS=-test.v\n");
        let theirs = "GOFLAGS=-race\nGOPROXY=https://user:secret@proxy\n# a comment\nCGO_ENABLED=0\nGOFLAGS=-mod=mod\n";
        assert_eq!(settings(theirs), "CGO_ENABLED=0\nGOFLAGS=-mod=mod -test.v\n");
    }
}
