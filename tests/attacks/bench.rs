//! Where the runs of one worker take place, one after the other and always at the same path: what fledge has kept of a project's base in
//! one run is there for the next, as it is for people who run it twice. It is kept out of the reach of every run, and given as it was.

use crate::attacks::rows::Work;
use crate::attacks::stage::Stage;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// The bench of one worker.
#[derive(Debug)]
pub(crate) struct Bench(TempDir);

impl Bench {
    /// A new one.
    pub(crate) fn new() -> Self {
        Self(tempfile::Builder::new().prefix("attack-").tempdir_in(crate::support::place()).unwrap())
    }

    /// A stage for this work, with what was kept of its base.
    pub(crate) fn stage(&self, work: &Work) -> Stage {
        let place = self.0.path().join("stage");
        if place.exists() {
            // What was closed to its owner is opened first.
            let clear = "chmod -R u+rwX \"$1\" 2>/dev/null; rm -rf \"$1\"";
            assert!(succeeds(Command::new("sh").args(["-c", clear, "clear"]).arg(&place)));
        }
        let stage = Stage::set(work, &place);
        let kept = self.kept(work);
        if kept.exists() {
            copy(&kept, &place.join("state"));
        }
        stage
    }

    /// Keeps what fledge knows of the base, unless that is kept: only after honest work, which has changed nothing there.
    pub(crate) fn keep(&self, work: &Work) {
        let (kept, state) = (self.kept(work), self.0.path().join("stage/state"));
        if kept.exists() {
            return;
        }
        for project in std::fs::read_dir(state).unwrap().flatten().filter(|entry| entry.path().join("bases").exists()) {
            let to = kept.join(project.file_name());
            std::fs::create_dir_all(&to).unwrap();
            copy(&project.path().join("bases"), &to.join("bases"));
        }
    }

    fn kept(&self, work: &Work) -> PathBuf {
        let task = if work.allow_edit.is_empty() { "plain" } else { "opened" };
        let mut hasher = DefaultHasher::new();
        work.base.hash(&mut hasher);
        self.0.path().join("kept").join(format!("{}-{task}-{}-{:x}", work.project, work.holdout, hasher.finish()))
    }
}

/// Copies what is in a folder into another, with times and links.
fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    assert!(succeeds(Command::new("cp").arg("-a").arg(from.join(".")).arg(to)));
}

fn succeeds(command: &mut Command) -> bool {
    command.status().is_ok_and(|status| status.success())
}
