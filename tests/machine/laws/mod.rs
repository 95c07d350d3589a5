//! The fourteen laws of a run, one file each. Twelve laws check each step. Law 12 checks whole
//! journals, and law 13 checks single snapshots. All laws use only the public interface.

pub(crate) mod law_01_idle_is_first_and_last;
pub(crate) mod law_02_verified_means_judged;
pub(crate) mod law_03_calls_keep_their_order;
pub(crate) mod law_04_everything_is_told;
pub(crate) mod law_05_a_task_starts_empty;
pub(crate) mod law_06_attempts_are_bounded;
pub(crate) mod law_07_files_changed_is_earned;
pub(crate) mod law_08_nothing_starts_on_the_way_out;
pub(crate) mod law_09_conversations_are_whole;
pub(crate) mod law_10_models_are_called_only_while_executing;
pub(crate) mod law_11_usage_adds_up;
pub(crate) mod law_12_journals_reproduce;
pub(crate) mod law_13_snapshots_go_on;
pub(crate) mod law_14_nothing_is_overdrawn;

use fledge::elapsed::Elapsed;
use fledge::id::CallId;
use fledge::run::{Action, AgentEvent, Event, Run, StateName};

/// The result of a law: nothing, or the violation.
pub(crate) type Checked = Result<(), String>;

/// One event, the state before it and its effects.
pub(crate) struct Step<'a> {
    pub(crate) state: StateName,
    pub(crate) label: &'static str,
    pub(crate) awaited: &'a [CallId],
    pub(crate) event: &'a Event,
    pub(crate) actions: &'a [Action],
    /// The run after the event.
    pub(crate) run: &'a Run,
}

impl Step<'_> {
    /// Returns true if the event answers a call that the run was waiting for.
    pub(crate) fn is_answer(&self) -> bool {
        self.event.call().is_some_and(|call| self.awaited.contains(&call))
    }

    /// Returns the events for watchers.
    pub(crate) fn told(&self) -> impl Iterator<Item = &AgentEvent> {
        self.actions.iter().filter_map(|action| if let Action::Emit { event } = action { Some(event) } else { None })
    }

    /// Returns the other actions.
    pub(crate) fn asked(&self) -> impl Iterator<Item = &Action> {
        self.actions.iter().filter(|action| !matches!(action, Action::Emit { .. }))
    }
}

/// A law that checks each step of a run.
pub(crate) trait Law {
    fn see(&mut self, step: &Step<'_>) -> Checked;
}

/// All laws that check steps, and the journal for law 12.
pub(crate) struct Court {
    laws: [Box<dyn Law>; 12],
    pub(crate) journal: Vec<(Elapsed, Event, Vec<Action>)>,
}

impl Court {
    pub(crate) fn new() -> Self {
        let laws: [Box<dyn Law>; 12] = [
            Box::<law_01_idle_is_first_and_last::Watch>::default(),
            Box::<law_02_verified_means_judged::Watch>::default(),
            Box::<law_03_calls_keep_their_order::Watch>::default(),
            Box::<law_04_everything_is_told::Watch>::default(),
            Box::<law_05_a_task_starts_empty::Watch>::default(),
            Box::<law_06_attempts_are_bounded::Watch>::default(),
            Box::<law_07_files_changed_is_earned::Watch>::default(),
            Box::<law_08_nothing_starts_on_the_way_out::Watch>::default(),
            Box::<law_09_conversations_are_whole::Watch>::default(),
            Box::<law_10_models_are_called_only_while_executing::Watch>::default(),
            Box::<law_11_usage_adds_up::Watch>::default(),
            Box::<law_14_nothing_is_overdrawn::Watch>::default(),
        ];
        Self { laws, journal: Vec::new() }
    }

    /// Passes an event to a run and checks all laws. Returns the actions, which are the newest
    /// entry of the journal.
    pub(crate) fn handle(&mut self, run: &mut Run, moment: Elapsed, event: Event) -> Result<&[Action], String> {
        let (state, label, awaited) = (run.state(), run.label(), run.awaited());
        let actions = run.handle(moment, event.clone());
        let step = Step { state, label, awaited: &awaited, event: &event, actions: &actions, run };
        for law in &mut self.laws {
            law.see(&step)
                .map_err(|broken| format!("{broken}\n  in {label} at {moment:?}: {event:?}\n  gave {actions:?}"))?;
        }
        self.journal.push((moment, event, actions));
        Ok(self.journal.last().map_or(&[], |(_, _, actions)| actions))
    }
}

/// Fails with the law's number unless the condition holds.
pub(crate) fn law(number: u8, holds: bool, otherwise: impl FnOnce() -> String) -> Checked {
    if holds { Ok(()) } else { Err(format!("law {number}: {}", otherwise())) }
}
