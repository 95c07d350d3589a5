//! The spec of a run: the limits of its task and its models over the defaults.

use super::Agent;
use crate::id::RunId;
use crate::limits::Limits;
use crate::run::RunSpec;
use crate::task::{Commit, GateChoice, Task};

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
}
