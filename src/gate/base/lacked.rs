//! Ignored files without which a step of the base fails. The step names them and passes in a room
//! that has them.

use super::{BaseError, BaseVerdict};
use crate::gate::clean::{CleanRoom, RoomDependencies, RoomError, RoomRequest};
use crate::gate::differences::lacked_files;
use crate::gate::installed::reached;
use crate::gate::names::name_of;
use crate::gate::{Gate, GateSite};
use crate::lane::{Lane, RoomKind};
use crate::verdict::{StepReport, StepStatus};
use crate::workspace::ignored_paths;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio_util::sync::CancellationToken;

/// The maximum number of tries of a lane, each with more files.
const MOST_TRIES: usize = 3;

/// A step, and the ignored files that its room lacked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::gate) struct LackedFiles {
    lane: String,
    step: String,
    files: BTreeSet<String>,
}

impl LackedFiles {
    /// Returns the error that ends a run, if the files still exist.
    pub(in crate::gate) fn fault(&self, site: &GateSite) -> Option<BaseError> {
        let files = self.files.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
        let are_there = self.files.iter().all(|path| site.origin.join(path).is_file());
        are_there.then(|| BaseError::Lacked { lane: self.lane.clone(), step: self.step.clone(), files })
    }
}

/// Finds a step that failed on the base and passes with ignored files that it names. Runs the lane
/// again in a separate room, because a step may print the name of an absent file without a need for
/// the file.
///
/// # Errors
/// [`BaseError`] where no room can be made.
pub(super) async fn look(
    gate: &Gate,
    site: &GateSite,
    base: &BaseVerdict,
    steps: &[StepReport],
    stop: &CancellationToken,
) -> Result<Option<LackedFiles>, BaseError> {
    let Some(since) = site.frozen_at else { return Ok(None) };
    let mut ignored = ignored_paths(&site.origin, &site.env, stop).await;
    ignored.retain(|path| !gate.installed.has(path) && is_file_from_before(&site.origin, path, since));
    for lane in gate.lanes.iter().filter(|lane| lane.room == RoomKind::Clean && !ignored.is_empty()) {
        let own: Vec<StepReport> = steps.iter().filter(|step| step.lane == lane.name).cloned().collect();
        let trial = LackTrial { gate, site, base, lane, ignored: &ignored, stop };
        if let Some(lacked) = trial.run(own).await? {
            return Ok(Some(lacked));
        }
    }
    Ok(None)
}

/// Returns whether an ignored path is a file that has not changed since `since`. The agent may have
/// made newer ones.
fn is_file_from_before(root: &Path, path: &str, since: SystemTime) -> bool {
    let is_older = |meta: fs::Metadata| {
        let changed = Duration::new(meta.ctime().try_into().unwrap_or(0), meta.ctime_nsec().try_into().unwrap_or(0));
        meta.is_file() && since.duration_since(UNIX_EPOCH).is_ok_and(|since| changed < since)
    };
    reached(root, path).and_then(|path| path.symlink_metadata().ok()).is_some_and(is_older)
}

struct LackTrial<'t> {
    gate: &'t Gate,
    site: &'t GateSite,
    base: &'t BaseVerdict,
    lane: &'t Lane,
    ignored: &'t [String],
    stop: &'t CancellationToken,
}

impl LackTrial<'_> {
    /// Runs the lane with the ignored files that its failed steps name. Repeats that while failed
    /// steps name further files, at most [`MOST_TRIES`] times. Returns the first step that passes
    /// with the files and fails without them.
    async fn run(&self, mut steps: Vec<StepReport>) -> Result<Option<LackedFiles>, BaseError> {
        let mut lane = self.lane.clone();
        let mut named: Vec<(String, BTreeSet<String>)> = Vec::new();
        for _ in 0..MOST_TRIES {
            let failed = steps.iter().filter(|step| step.status == StepStatus::Failed);
            let files = |step| lacked_files(step, &lane, &self.site.origin, self.ignored);
            let lacking = failed.map(|step| (step, missed(step, files(step))));
            let lacking: Vec<_> = lacking.filter(|(_, files)| !files.is_empty()).collect();
            if lacking.is_empty() {
                return Ok(None);
            }
            for (step, files) in lacking {
                lane.include_ignored.extend(files.iter().cloned());
                match named.iter_mut().find(|(name, _)| *name == step.step) {
                    Some((_, known)) => known.extend(files),
                    None => named.push((step.step.clone(), files.into_iter().collect())),
                }
            }
            steps = self.run_in_room(&lane).await?;
            let passes = |name: &str| steps.iter().any(|it| it.step == name && it.status == StepStatus::Passed);
            if let Some((step, files)) = named.iter().find(|(name, _)| passes(name)) {
                // The step may be flaky: it needs the files only if it fails again without them.
                let without = self.run_in_room(self.lane).await?;
                if !without.iter().any(|it| it.step == *step && it.status == StepStatus::Failed) {
                    return Ok(None);
                }
                return Ok(Some(LackedFiles { lane: lane.name, step: step.clone(), files: files.clone() }));
            }
        }
        Ok(None)
    }

    /// Runs the lane in a room with the ignored files that it includes. The files may contain
    /// secrets, so neither they nor the logs are kept.
    async fn run_in_room(&self, lane: &Lane) -> Result<Vec<StepReport>, BaseError> {
        let Self { gate, site, base, stop, .. } = *self;
        let brought: Vec<&String> =
            lane.include_ignored.iter().filter(|path| !self.lane.include_ignored.contains(path)).collect();
        let copy = |path: &&String| {
            let (from, to) = (site.origin.join(path), site.ignored.join(path));
            to.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::copy(from, to))
        };
        // A file that cannot be copied stays absent, and the step fails again.
        let _copied: Vec<_> = brought.iter().map(copy).collect();
        let logs = site.logs.join("base").join(format!("{}-ignored", lane.name));
        let steps = async {
            let (tree, caches) = (gate.base(), base.caches(self.lane));
            let kept = gate.kept(site, lane, tree, stop).await.map_err(RoomError::from)?;
            let (caches, dependencies) = (caches.as_ref(), RoomDependencies::AsBefore);
            let wanted = RoomRequest { lane, tree, base: tree, caches, dependencies, kept: &kept, gate };
            let room = CleanRoom::make(site, wanted, stop).await?;
            let all = Lane { fail_fast: false, ..lane.clone() };
            let outcome = site.run(&all, room.room(site, logs.clone()), stop, &|_| {}).await;
            room.close().await;
            Ok(outcome.steps)
        };
        let steps = steps.await;
        let _left = brought.iter().map(|path| fs::remove_file(site.ignored.join(path))).collect::<Vec<_>>();
        let _left = fs::remove_dir_all(&logs);
        steps
    }
}

/// Returns those of the files that the step's output names. A file that only the command names may
/// be its own output. Returns all of them if the step printed nothing.
fn missed(step: &StepReport, files: Vec<String>) -> Vec<String> {
    let is_silent = step.excerpt.trim().is_empty();
    files.into_iter().filter(|path| is_silent || step.excerpt.contains(name_of(path))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::{step_report, temp_dir};

    #[test]
    fn a_file_that_only_the_command_names_is_not_missed() {
        for (printed, is_missed) in [
            ("cat: conf/local.json: No such file or directory", true),
            ("cannot read local.json", true),
            ("  \n", true),
            ("1 failed in 0.01s", false),
        ] {
            let step = step_report("x", StepStatus::Failed, printed);
            assert_eq!(!missed(&step, vec!["conf/local.json".to_owned()]).is_empty(), is_missed, "{printed}");
        }
    }

    #[test]
    fn a_file_that_came_after_the_gate_was_frozen_is_none_from_before() {
        let root = temp_dir();
        fs::create_dir(root.path().join("folder")).unwrap();
        fs::write(root.path().join("file"), "").unwrap();
        std::os::unix::fs::symlink("file", root.path().join("link")).unwrap();
        let made = root.path().join("file").metadata().unwrap().modified().unwrap();
        let is_from_before = |path: &str, since| is_file_from_before(root.path(), path, since);
        let later = made + Duration::from_secs(1);
        assert!(is_from_before("file", later));
        assert!(!is_from_before("file", made - Duration::from_secs(1)));
        assert!(!["folder", "link", "none"].iter().any(|path| is_from_before(path, later)));
    }
}
