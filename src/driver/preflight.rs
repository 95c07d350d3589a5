//! Before a run begins: its spec, and checks for a caller that records no run that is refused.
//!
//! Planning repeats the checks: the files may change meanwhile. A run in a worktree works on a
//! commit, so uncommitted files of the checkout that decide what a run does are refused.

use super::briefing::{INSTRUCTION_FILES, StartingPoint, check_input, patterns_of, prepare};
use super::error::PlanError;
use super::planning::lanes_at;
use super::worktree::{commit_at, imagined, unplanned};
use super::{Agent, DriverSettings, delivery, enclosure, hidden, servers};
use crate::gate::{Gate, Policy};
use crate::id::RunId;
use crate::lane_files::{CONFIGURATION, LANES};
use crate::limits::Limits;
use crate::run::RunSpec;
use crate::task::{Commit, GateChoice, Isolation, Task};
use crate::verdict::Reason;
use crate::workspace::worktree::CheckoutChanges;
use std::path::Path;
use tokio_util::sync::CancellationToken;

/// The maximum number of files that a refusal names.
const NAMED: usize = 10;
/// The configuration file of one person. It is read from the checkout alone.
const PERSONAL: &str = "fledge.local.yaml";

impl Agent {
    /// Builds the run spec of a task.
    pub(super) fn spec(&self, task: &Task, run: RunId) -> RunSpec {
        let defaults = Limits::default();
        let limits = Limits {
            turns: task.budget.turns.unwrap_or(defaults.turns),
            tokens: task.budget.tokens.or(defaults.tokens),
            usd_micros: task.budget.usd_micros.or(defaults.usd_micros),
            time_ms: task.budget.time_ms.unwrap_or(defaults.time_ms),
            loop_threshold: task.conduct.loop_threshold.map_or(defaults.loop_threshold, |count| count as usize),
            tries: task.conduct.max_tries.unwrap_or(defaults.tries),
            max_wait_ms: task.conduct.max_wait_ms.unwrap_or(defaults.max_wait_ms),
            compact_at_percent: task.conduct.compact_at_percent.map_or(defaults.compact_at_percent, u64::from),
            ..defaults
        };
        let seed = run.as_str().bytes().fold(0_u64, |seed, byte| seed.rotate_left(7) ^ u64::from(byte));
        RunSpec {
            verify: task.gate != GateChoice::Skip,
            is_fix: task.is_fix,
            commits: task.commits() != Commit::None,
            max_retries: task.max_retries,
            on_tamper: task.on_tamper,
            stuck_after: task.stuck_after,
            parallel_reads: task.conduct.parallel_reads,
            confirm_within_ms: None, // the asker counts from when it shows the question
            models: self.settings.models.iter().map(|model| model.provider.name()).collect(),
            terms: self.settings.models.iter().map(|model| model.terms).collect(),
            limits,
            seed,
            ..RunSpec::new(run, task.title.clone(), task.prompt.clone())
        }
    }

    /// Checks a run of this task before it begins, as far as that costs little. Starts no program
    /// but git and changes nothing. `scratch` is an empty folder.
    ///
    /// Does not look into a commit that the task works on: only the run reads its files.
    ///
    /// # Errors
    /// [`PlanError`] for bad input. Other faults are left to the run, which records them.
    pub async fn must_be_plannable(&self, task: &Task, scratch: &Path) -> Result<(), PlanError> {
        match self.plan_beforehand(task, scratch).await {
            Err(fault) if fault.reason == Reason::BadInput => Err(fault),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    async fn plan_beforehand(&self, task: &Task, scratch: &Path) -> Result<(), PlanError> {
        if let Some(why) = self.spec(task, RunId::new("dry")).refusal() {
            return Err(PlanError::bad(why));
        }
        let settings = &*self.settings;
        enclosure::must_be_hideable(settings)?;
        servers::named_servers(task, settings)?;
        must_be_committed(task, settings, scratch).await?;
        if task.isolation == Isolation::Worktree {
            commit_at(&settings.workspace, task.base.as_deref().unwrap_or("HEAD"), &settings.env, scratch).await?;
        }
        if task.isolation == Isolation::InPlace || task.base.is_none() {
            let at = lanes_at(settings, scratch).await?;
            check_input(task, settings, at.as_deref())?;
            if !hidden::rules_of(task, settings, at.as_deref()).is_empty() {
                hidden::must_be_possible(task, settings)?;
            }
        }
        delivery::must_be_committable(task, settings, scratch).await
    }
}

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
pub struct UncommittedFiles(CheckoutChanges);

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
        let CheckoutChanges { files, ignored } = &self.0;
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
