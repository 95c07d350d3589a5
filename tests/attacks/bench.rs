//! The place where one worker does its runs, one after the other and always at the same path.
//! fledge's cache of a project's base from one run is available in the next, as for users who run
//! fledge twice. The cache is out of reach of every run and is restored unchanged.

use crate::attacks::rows::Work;
use crate::attacks::stage::Stage;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// The folder of one worker.
#[derive(Debug)]
pub(crate) struct Bench(TempDir);

impl Bench {
    /// Creates an empty folder for a worker.
    pub(crate) fn new(place: &Path) -> Self {
        Self(tempfile::Builder::new().prefix("attack-").tempdir_in(place).unwrap())
    }

    /// Returns a stage for this work, with the kept cache of its base.
    pub(crate) fn stage(&self, work: &Work) -> Stage {
        let place = self.0.path().join("stage");
        if place.exists() {
            // First restores the owner's access to closed folders.
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

    /// Keeps fledge's cache of the base unless a cache is already kept. Runs only after honest
    /// work, which does not change the cache.
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

/// Copies the contents of a folder into another, with times and links.
fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    assert!(succeeds(Command::new("cp").arg("-a").arg(from.join(".")).arg(to)));
}

fn succeeds(command: &mut Command) -> bool {
    command.status().is_ok_and(|status| status.success())
}
