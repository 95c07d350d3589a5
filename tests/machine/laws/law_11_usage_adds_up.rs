//! 11. Usage never falls. It includes the cost of sub-agents and summaries, even if that arrives
//!     after the end is decided. Calls with a price are charged by it. Calls whose usage is missing
//!     or wrong are charged by estimate.

use super::{AgentEvent, Checked, Event, Law, Step, law};
use fledge::chat::{Price, Usage};

#[derive(Default)]
pub(crate) struct Watch {
    prices: Vec<Option<Price>>,
    /// The index of the model that was in use before the event.
    model: usize,
    /// The usage that the answers reported so far.
    known: Usage,
    /// True if some answer did not report its usage.
    estimated: bool,
    told: Usage,
}

impl Law for Watch {
    fn see(&mut self, step: &Step<'_>) -> Checked {
        if let (Event::TaskSubmitted { spec }, "Idle") = (step.event, step.label) {
            *self = Self { prices: spec.terms.iter().map(|terms| terms.price).collect(), ..Self::default() };
        }
        if step.is_answer() {
            let price = self.prices.get(self.model).copied().flatten();
            let priced = |usage: &Usage| {
                let cost_micros = price.map(|price| price.cost_micros(usage)).or(usage.cost_micros);
                Usage { cost_micros, ..usage.clone() }
            };
            match (step.event, step.label) {
                (Event::ModelCompleted { reply, .. }, "CallingModel" | "Reporting") => match &reply.usage {
                    Some(usage) if (1..1_000_000).contains(&usage.total()) => self.known.add(&priced(usage)),
                    Some(_) | None => self.estimated = true,
                },
                (Event::Interrupted { .. }, "CallingModel" | "Compacting" | "Reporting")
                | (Event::CompactionFinished { error: Some(_), .. }, "Compacting" | "Reporting") => {
                    self.estimated = true;
                }
                (Event::ModelFailed { error, .. }, "CallingModel" | "Reporting") => {
                    self.estimated |= error.spent.is_some();
                    let said = error.spent.as_ref().and_then(|spent| spent.usage.as_ref());
                    if let Some(usage) = said.filter(|usage| (1..1_000_000).contains(&usage.total())) {
                        self.known.add(&priced(usage));
                    }
                }
                (Event::CompactionFinished { usage, .. }, "Compacting" | "Reporting") if usage.total() == 0 => {
                    self.estimated = true;
                }
                (Event::CompactionFinished { usage, .. }, "Compacting" | "Reporting") => self.known.add(&priced(usage)),
                (Event::ChildFinished { usage, .. }, "Dispatching" | "Reporting") => self.known.add(usage),
                _ => {}
            }
        }
        self.model = step.run.model();
        for told in step.told() {
            match told {
                AgentEvent::Usage(usage) => {
                    law(11, covers(usage, &self.told), || format!("fell from {:?} to {usage:?}", self.told))?;
                    self.told = usage.clone();
                    let adds_up = covers(usage, &self.known) && (self.estimated || *usage == self.known);
                    law(11, adds_up, || format!("answers said {:?}, told {usage:?}", self.known))?;
                }
                AgentEvent::Finished { usage, .. } => {
                    law(11, *usage == self.told, || format!("ended with {usage:?}, told {:?}", self.told))?;
                }
                _ => {}
            }
        }
        Ok(())
    }
}

fn covers(more: &Usage, less: &Usage) -> bool {
    more.input_tokens >= less.input_tokens
        && more.output_tokens >= less.output_tokens
        && more.cost_micros >= less.cost_micros
}
