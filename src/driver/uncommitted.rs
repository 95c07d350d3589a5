//! Uncommitted files of a checkout that decide what a run does. A run in a worktree works on a
//! commit, without them.

use super::DriverSettings;
use super::briefing::{INSTRUCTION_FILES, PlanError, StartingPoint, patterns_of, prepare};
use super::worktree::{imagined, unplanned};
use crate::gate::{Gate, Policy};
use crate::lane_files::{CONFIGURATION, LANES};
use crate::task::{GateChoice, Isolation, Task};
use crate::workspace::worktree::CheckoutChanges as Found;
use std::path::Path;
use tokio_util::sync::CancellationToken;

/// The maximum number of files that a refusal names.
const NAMED: usize = 10;
/// The configuration file of one person. It is read from the checkout alone.
const PERSONAL: &str = "fledge.local.yaml";

/// Checks that no uncommitted file of the checkout decides what a run of this task does.
///
/// # Errors
/// As for [`UncommittedFiles::find`] and [`UncommittedFiles::must_not_decide`].
pub async fn must_be_committed(task: &Task, settings: &DriverSettings, scratch: &Path) -> Result<(), PlanError> {
    if !is_meant(task) {
        return Ok(());
    }
    UncommittedFiles::find(settings, scratch).await?.must_not_decide(task, settings)
}

/// Returns true if a run of the task uses the newest commit of the checkout, although the task does
/// not name that commit.
fn is_meant(task: &Task) -> bool {
    task.isolation == Isolation::Worktree && task.base.is_none() && task.gate != GateChoice::Skip
}

/// The files of a checkout that differ from its newest commit, and the lanes that git ignores.
#[derive(Debug, Clone, Default)]
pub struct UncommittedFiles(Found);

impl UncommittedFiles {
    /// Finds these files. Finds none without a repository or a commit. `scratch` is an empty
    /// folder.
    ///
    /// # Errors
    /// [`PlanError`] if git fails.
    pub async fn find(settings: &DriverSettings, scratch: &Path) -> Result<Self, PlanError> {
        let (worktree, stop) = (imagined(None, settings, scratch), CancellationToken::new());
        worktree.uncommitted(&[LANES], &settings.env, scratch, &stop).await.map(Self).map_err(unplanned)
    }

    /// Checks that none of the files decides what a run of this task does.
    ///
    /// Such files are lanes, the configuration, tests and other protected files, the task itself,
    /// and the files that it names. A new file of the task is in no commit, so it differs from
    /// none.
    ///
    /// Passes if the run works in place, names its commit or has no gate. The first works on these
    /// files, and the others ask for what they get.
    ///
    /// # Errors
    /// [`PlanError`] for bad input, which names the files.
    pub fn must_not_decide(&self, task: &Task, settings: &DriverSettings) -> Result<(), PlanError> {
        let Found { files, ignored } = &self.0;
        if !is_meant(task) || files.is_empty() && ignored.is_empty() {
            return Ok(());
        }
        let bare = Task { prompt: String::new(), models: Vec::new(), ..task.clone() };
        let start = StartingPoint::unread(&settings.workspace);
        let gate = prepare(&bare, settings, &start, None).map(|planned| planned.gate);
        let own: Vec<String> = patterns_of(task, &settings.workspace).collect();
        let is_task = |gate: &Gate, path: &str| {
            gate.policy.defines_later_runs(path) || own.contains(&format!("/{}", globset::escape(path)))
        };
        let is_lane = |path: &str| path.strip_prefix(LANES).is_some_and(|rest| rest.starts_with('/'));
        let decides = |path: &str, is_new: bool| match &gate {
            _ if is_lane(path) => settings.lanes_from.is_none(),
            _ if path == PERSONAL => false,
            _ if CONFIGURATION.contains(&path) || INSTRUCTION_FILES.contains(&path) => true,
            _ if task.context.iter().any(|file| file == path) => true,
            Ok(gate) => gate.policy.decides(path) && !(is_new && is_task(gate, path)),
            Err(_) => Policy::is_manifest(path) || Policy::looks_like_a_test(path),
        };
        let changed =
            files.iter().filter(|(path, is_new)| decides(path, **is_new)).map(|(path, _)| format!("`{path}`"));
        let unknown =
            ignored.iter().filter(|path| decides(path, true)).map(|path| format!("`{path}` (git ignores it)"));
        let paths: Vec<String> = changed.chain(unknown).collect();
        if paths.is_empty() {
            return Ok(());
        }
        let more = paths.len().saturating_sub(NAMED);
        let more = if more == 0 { String::new() } else { format!(" and {more} more") };
        let verb = if paths.len() == 1 { "differs" } else { "differ" };
        let named = paths[..paths.len().min(NAMED)].join(", ");
        Err(PlanError::bad(format!(
            "the run would start from the newest commit and be judged by its files, but {named}{more} {verb} \
             from it: commit first, or use --from-commit (`base: HEAD` in a task) to work without these changes"
        )))
    }
}
