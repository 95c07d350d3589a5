//! Files of the checkout that decide what a run does, and that differ from the commit on which a run in a worktree works.

use super::Settings;
use super::briefing::{INSTRUCTION_FILES, PlanFault, StartingPoint, patterns_of, prepare};
use crate::gate::{CONFIGURATION, Gate, LANES, Policy};
use crate::task::{GateChoice, Isolation, Task};
use crate::workspace::changed_paths;
use std::collections::BTreeMap;
use tokio_util::sync::CancellationToken;

/// Files that a refusal names.
const NAMED: usize = 10;

/// Insists that the checkout has no file that is not committed and decides what a run of this task does.
///
/// # Errors
/// As those of [`Uncommitted::must_not_decide`].
pub async fn must_be_committed(task: &Task, settings: &Settings) -> Result<(), PlanFault> {
    if !is_meant(task) {
        return Ok(());
    }
    Uncommitted::of(settings).await.must_not_decide(task, settings)
}

/// Returns whether a run of the task works on the newest commit of the checkout without having asked for just that one, and is judged.
fn is_meant(task: &Task) -> bool {
    task.isolation == Isolation::Worktree && task.base.is_none() && task.gate != GateChoice::Skip
}

/// The files of a checkout that differ from its newest commit, without those that git ignores.
#[derive(Debug, Clone, Default)]
pub struct Uncommitted(BTreeMap<String, bool>);

impl Uncommitted {
    /// Finds these files. Finds none where there is no repository or no commit.
    pub async fn of(settings: &Settings) -> Self {
        Self(changed_paths(&settings.workspace, &settings.env, &CancellationToken::new()).await.unwrap_or_default())
    }

    /// Insists that none of the files decides what a run of this task does: its lanes, the configuration, tests and whatever else the
    /// gate protects, the task itself, and the files that the task names. A run in place works on these files, and a run that names
    /// its commit or has no gate asked for what it gets. A task that git does not know yet is in no commit, so none differs from it.
    ///
    /// # Errors
    /// [`PlanFault`] of bad input, which names the files.
    pub fn must_not_decide(&self, task: &Task, settings: &Settings) -> Result<(), PlanFault> {
        if !is_meant(task) || self.0.is_empty() {
            return Ok(());
        }
        let bare = Task { prompt: String::new(), models: Vec::new(), ..task.clone() };
        let gate =
            prepare(&bare, settings, &StartingPoint::unread(&settings.workspace), None).map(|planned| planned.gate);
        let own: Vec<String> = patterns_of(task, &settings.workspace).collect();
        let is_task = |gate: &Gate, path: &str| {
            gate.policy.defines_later_runs(path) || own.contains(&format!("/{}", globset::escape(path)))
        };
        let decides = |path: &str, is_new: bool| {
            let is_of_lanes = path.starts_with(LANES) && path[LANES.len()..].starts_with('/');
            match (is_of_lanes, &gate) {
                (true, _) => settings.lanes_from.is_none(),
                (false, _) if CONFIGURATION.contains(&path) || INSTRUCTION_FILES.contains(&path) => true,
                (false, _) if task.context.iter().any(|file| file == path) => true,
                (false, Ok(gate)) => gate.policy.decides(path) && !(is_new && is_task(gate, path)),
                (false, Err(_)) => Policy::is_manifest(path) || Policy::looks_like_a_test(path),
            }
        };
        let paths: Vec<String> = self
            .0
            .iter()
            .filter(|(path, is_new)| decides(path, **is_new))
            .map(|(path, _)| format!("`{path}`"))
            .collect();
        if paths.is_empty() {
            return Ok(());
        }
        let more = paths.len().saturating_sub(NAMED);
        let more = if more == 0 { String::new() } else { format!(" and {more} more") };
        let (named, verb) =
            (paths[..paths.len().min(NAMED)].join(", "), if paths.len() == 1 { "differs" } else { "differ" });
        Err(PlanFault::bad(format!(
            "the run would work on the newest commit and be judged by its files, and {named}{more} {verb} from it: commit first, \
             or use --from-commit (`base: HEAD` in a task) to work on the commit as it is"
        )))
    }
}
