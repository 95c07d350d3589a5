//! Files of the checkout that decide what a run does, and that differ from the commit on which a run in a worktree works.

use super::Settings;
use super::briefing::{INSTRUCTION_FILES, PlanFault, StartingPoint, patterns_of, prepare};
use super::worktree::{imagined, unplanned};
use crate::gate::{CONFIGURATION, Gate, LANES, Policy};
use crate::task::{GateChoice, Isolation, Task};
use crate::workspace::worktree::Uncommitted as Found;
use std::path::Path;
use tokio_util::sync::CancellationToken;

/// Files that a refusal names.
const NAMED: usize = 10;
/// A configuration of one person, which is read from the checkout alone.
const PERSONAL: &str = "fledge.local.yaml";

/// Insists that the checkout has no file that is not committed and decides what a run of this task does.
///
/// # Errors
/// As those of [`Uncommitted::of`] and [`Uncommitted::must_not_decide`].
pub async fn must_be_committed(task: &Task, settings: &Settings, scratch: &Path) -> Result<(), PlanFault> {
    if !is_meant(task) {
        return Ok(());
    }
    Uncommitted::of(settings, scratch).await?.must_not_decide(task, settings)
}

/// Returns true if a run of the task is judged and works on the newest commit of the checkout, although nobody named that commit.
fn is_meant(task: &Task) -> bool {
    task.isolation == Isolation::Worktree && task.base.is_none() && task.gate != GateChoice::Skip
}

/// The files of a checkout that differ from its newest commit, and its lanes that git ignores.
#[derive(Debug, Clone, Default)]
pub struct Uncommitted(Found);

impl Uncommitted {
    /// Finds these files. Finds none where there is no repository or no commit. `scratch` is an empty folder.
    ///
    /// # Errors
    /// [`PlanFault`] when git cannot say.
    pub async fn of(settings: &Settings, scratch: &Path) -> Result<Self, PlanFault> {
        let (worktree, stop) = (imagined(None, settings, scratch), CancellationToken::new());
        worktree.uncommitted(&[LANES], &settings.env, scratch, &stop).await.map(Self).map_err(unplanned)
    }

    /// Insists that none of the files decides what a run of this task does: its lanes, the configuration, tests and whatever else the
    /// gate protects, the task itself, and the files that the task names. A run in place works on these files, and a run that names
    /// its commit or has no gate asked for what it gets. A task that git does not know yet is in no commit, so none differs from it.
    ///
    /// # Errors
    /// [`PlanFault`] of bad input, which names the files.
    pub fn must_not_decide(&self, task: &Task, settings: &Settings) -> Result<(), PlanFault> {
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
        Err(PlanFault::bad(format!(
            "the run would work on the newest commit and be judged by its files, and {named}{more} {verb} from it: commit first, \
             or use --from-commit (`base: HEAD` in a task) to work on the commit as it is"
        )))
    }
}
