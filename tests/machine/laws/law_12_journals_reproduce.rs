//! 12. `handle` is total and deterministic: folding the journaled events into a fresh run gives the
//!     same actions and the same run. (Transient events are not journaled, so they must leave no
//!     trace.)

use super::{Action, Checked, Elapsed, Event, law};
use fledge::run::Run;

/// Folds a journal and compares each step and the final run.
pub(crate) fn check(journal: &[(Elapsed, Event, Vec<Action>)], live: &Run) -> Checked {
    let mut again = Run::new();
    for (at, (moment, event, actions)) in journal.iter().filter(|(_, event, _)| !event.is_transient()).enumerate() {
        let replayed = again.handle(*moment, event.clone());
        law(12, replayed == *actions, || {
            format!("entry {at}, {event:?}:\n  live     {actions:?}\n  replayed {replayed:?}")
        })?;
    }
    law(12, again == *live, || "the same journal came to another run".into())
}
