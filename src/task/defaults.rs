//! Defaults for tasks from layers of the configuration, and the combination of layers.

use super::{Commit, GateChoice, Isolation, OnTamper, Task, TaskBudget, TaskSettings, Tier};

/// The defaults of one layer. A lower layer supplies what is missing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TaskDefaults {
    /// The lanes of the gate.
    pub lanes: Option<Vec<String>>,
    /// The number of further attempts after the gate fails the first one.
    pub max_retries: Option<u32>,
    /// The number of equal failures in a row that ends the run early.
    pub stuck_after: Option<u32>,
    /// The reaction to a change of a protected path.
    pub on_tamper: Option<OnTamper>,
    /// The tools that tasks have.
    pub tier: Option<Tier>,
    /// The results that are committed.
    pub commit: Option<Commit>,
    /// The place where agents work.
    pub isolation: Option<Isolation>,
    /// The budget of a run.
    pub budget: TaskBudget,
    /// Calls that need a person's approval, in addition to those of the task.
    pub approve: Vec<String>,
    /// Files of the base that agents do not see, in addition to those of the task.
    pub hidden: Vec<String>,
    /// True if adjacent read-only calls may run in parallel.
    pub parallel_reads: Option<bool>,
    /// The number of similar calls among recent ones that counts as a loop.
    pub loop_threshold: Option<u32>,
    /// The percentage of the model's window at which a conversation is shortened.
    pub compact_at_percent: Option<u32>,
    /// The time that a person has to approve a call, in milliseconds.
    pub confirm_within_ms: Option<u64>,
    /// The maximum number of tries of one model call.
    pub max_tries: Option<u32>,
    /// The longest pause that a provider may ask for, in milliseconds.
    pub max_wait_ms: Option<u64>,
}

impl TaskDefaults {
    /// Puts this layer over the one below it.
    #[must_use]
    pub fn over(self, below: Self) -> Self {
        Self {
            lanes: self.lanes.or(below.lanes),
            max_retries: self.max_retries.or(below.max_retries),
            stuck_after: self.stuck_after.or(below.stuck_after),
            on_tamper: self.on_tamper.or(below.on_tamper),
            tier: self.tier.or(below.tier),
            commit: self.commit.or(below.commit),
            isolation: self.isolation.or(below.isolation),
            budget: self.budget.over(&below.budget),
            approve: [below.approve, self.approve].concat(),
            hidden: [below.hidden, self.hidden].concat(),
            parallel_reads: self.parallel_reads.or(below.parallel_reads),
            loop_threshold: self.loop_threshold.or(below.loop_threshold),
            compact_at_percent: self.compact_at_percent.or(below.compact_at_percent),
            confirm_within_ms: self.confirm_within_ms.or(below.confirm_within_ms),
            max_tries: self.max_tries.or(below.max_tries),
            max_wait_ms: self.max_wait_ms.or(below.max_wait_ms),
        }
    }

    /// Combines the layers without widening the limits of the one below. The lower tier, the
    /// smaller budget, the stricter reaction to tampering, the shorter times and the fewer tries
    /// win.
    #[must_use]
    pub fn within(self, below: Self) -> Self {
        let (tier, budget) = (lower(self.tier, below.tier), self.budget.within(&below.budget));
        let strict = [self.on_tamper, below.on_tamper].contains(&Some(OnTamper::Fail)).then_some(OnTamper::Fail);
        let confirm_within_ms = lower(self.confirm_within_ms, below.confirm_within_ms);
        let (max_tries, max_wait_ms) =
            (lower(self.max_tries, below.max_tries), lower(self.max_wait_ms, below.max_wait_ms));
        let over = self.over(below);
        Self { tier, budget, confirm_within_ms, max_tries, max_wait_ms, on_tamper: strict.or(over.on_tamper), ..over }
    }

    /// Returns the task with these defaults.
    #[must_use]
    pub fn apply_to(&self, task: Task) -> Task {
        let mut approve = self.approve.clone();
        approve.extend(task.approve);
        let hidden = [self.hidden.clone(), task.hidden].concat();
        Task {
            gate: self.lanes.clone().map_or(task.gate, GateChoice::Lanes),
            max_retries: self.max_retries.unwrap_or(task.max_retries),
            stuck_after: self.stuck_after.or(task.stuck_after),
            on_tamper: self.on_tamper.unwrap_or(task.on_tamper),
            tier: self.tier.unwrap_or(task.tier),
            commit: self.commit.or(task.commit),
            isolation: self.isolation.unwrap_or(task.isolation),
            budget: self.budget.over(&task.budget),
            approve,
            hidden,
            conduct: TaskSettings {
                parallel_reads: self.parallel_reads.unwrap_or(task.conduct.parallel_reads),
                loop_threshold: self.loop_threshold.or(task.conduct.loop_threshold),
                compact_at_percent: self.compact_at_percent.or(task.conduct.compact_at_percent),
                confirm_within_ms: self.confirm_within_ms.or(task.conduct.confirm_within_ms),
                max_tries: self.max_tries.or(task.conduct.max_tries),
                max_wait_ms: self.max_wait_ms.or(task.conduct.max_wait_ms),
            },
            ..task
        }
    }
}

impl TaskBudget {
    /// Returns this budget, with missing limits from the one below.
    #[must_use]
    pub fn over(&self, below: &Self) -> Self {
        Self {
            turns: self.turns.or(below.turns),
            tokens: self.tokens.or(below.tokens),
            usd_micros: self.usd_micros.or(below.usd_micros),
            time_ms: self.time_ms.or(below.time_ms),
        }
    }

    /// Returns the smaller of both for each limit.
    #[must_use]
    pub fn within(&self, below: &Self) -> Self {
        Self {
            turns: lower(self.turns, below.turns),
            tokens: lower(self.tokens, below.tokens),
            usd_micros: lower(self.usd_micros, below.usd_micros),
            time_ms: lower(self.time_ms, below.time_ms),
        }
    }
}

fn lower<T: Ord>(one: Option<T>, other: Option<T>) -> Option<T> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::{ParamValues, parse_with};

    fn defaults() -> TaskDefaults {
        TaskDefaults {
            lanes: Some(vec!["check".into()]),
            max_retries: Some(7),
            stuck_after: Some(3),
            on_tamper: Some(OnTamper::Fail),
            tier: Some(Tier::Tool),
            commit: Some(Commit::OnSuccess),
            isolation: Some(Isolation::Worktree),
            budget: TaskBudget { turns: Some(10), tokens: Some(1000), usd_micros: Some(5), time_ms: None },
            approve: vec!["shell-exec:git push*".into()],
            hidden: vec!["auto 25%".into()],
            parallel_reads: Some(true),
            loop_threshold: Some(12),
            compact_at_percent: Some(60),
            confirm_within_ms: Some(1000),
            max_tries: Some(3),
            max_wait_ms: Some(5000),
        }
    }

    #[test]
    fn a_task_has_what_the_configuration_says_and_its_own_words_win() {
        let silent = parse_with("do it", "t.md", &ParamValues::new(), &defaults()).unwrap();
        let expected = Task {
            source: "t.md".into(),
            title: "t".into(),
            gate: GateChoice::Lanes(vec!["check".into()]),
            max_retries: 7,
            stuck_after: Some(3),
            on_tamper: OnTamper::Fail,
            tier: Tier::Tool,
            commit: Some(Commit::OnSuccess),
            isolation: Isolation::Worktree,
            budget: defaults().budget,
            approve: defaults().approve,
            hidden: defaults().hidden,
            conduct: TaskSettings {
                parallel_reads: true,
                loop_threshold: Some(12),
                compact_at_percent: Some(60),
                confirm_within_ms: Some(1000),
                max_tries: Some(3),
                max_wait_ms: Some(5000),
            },
            ..Task::from_prompt("do it")
        };
        assert_eq!(silent, expected);
        let own = "---\nlane: false\nmax_retries: 0\nstuck_after: 2\non_tamper: restore\ntier: code\ncommit: none\nisolation: in-place\n\
            budget: { turns: 99, time: 1m }\napprove: { ask: [files-delete] }\nmcp: [docs]\n---\ndo it";
        let reported = parse_with(own, "t.md", &ParamValues::new(), &defaults()).unwrap();
        let own = Task {
            gate: GateChoice::Skip,
            max_retries: 0,
            stuck_after: Some(2),
            on_tamper: OnTamper::Restore,
            tier: Tier::Code,
            commit: Some(Commit::None),
            isolation: Isolation::InPlace,
            budget: TaskBudget { turns: Some(99), time_ms: Some(60_000), ..defaults().budget },
            approve: vec!["shell-exec:git push*".into(), "files-delete".into()],
            mcp: vec!["docs".into()],
            ..expected
        };
        assert_eq!(reported, own);
    }

    #[test]
    fn a_layer_that_is_not_trusted_narrows_and_never_widens() {
        let budget = TaskBudget { turns: Some(50), tokens: Some(10), usd_micros: None, time_ms: Some(9) };
        let wide = TaskDefaults { max_tries: Some(50), max_wait_ms: Some(600_000), ..TaskDefaults::default() };
        let project = TaskDefaults { tier: Some(Tier::Code), on_tamper: Some(OnTamper::Restore), budget, ..wide };
        let smaller = TaskBudget { turns: Some(10), tokens: Some(10), usd_micros: Some(5), time_ms: Some(9) };
        assert_eq!(project.clone().within(defaults()), TaskDefaults { budget: smaller, ..defaults() });
        let free = project.clone().within(TaskDefaults::default());
        assert_eq!((free.tier, free.on_tamper), (Some(Tier::Code), Some(OnTamper::Restore)));
        let trusted = project.clone().over(defaults());
        assert_eq!((trusted.tier, trusted.budget.turns), (Some(Tier::Code), Some(50)));
    }
}
