//! Budget of a run. Every call that costs something is reserved before it is made and settled by
//! its real cost. So a limit is exceeded by at most the error of one estimate.

use super::bill::RunBill;
use super::context::RunContext;
use super::transcript::{bytes_of, tool_bytes};
use super::watch::AgentEvent;
use crate::chat::{ModelError, Reply, Spent, Usage, money};
use crate::id::CallId;
use crate::limits::{ANSWER, LEAST_ANSWER, Limits, OUTPUT_ESTIMATE, SUMMARY_ANSWER, SUMMARY_MOST, SUMMARY_ROOM};
use crate::verdict::Reason;
use serde::{Deserialize, Serialize};

/// Bytes counted as one token where no provider has counted.
pub(super) const BYTES_PER_TOKEN: usize = 4;
/// Tokens that a provider may count beyond one per byte. They cover content that is not visible
/// here: reasoning, images, the provider's own prompts.
const UNSEEN: u64 = 1_000_000;

/// An amount reserved for a call in flight.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reserve {
    /// Model calls.
    pub turns: u64,
    /// Tokens that the model reads; for a sub-agent, all of its tokens.
    pub input_tokens: u64,
    /// Tokens that the model writes.
    pub output_tokens: u64,
    /// Money, in millionths of a US dollar.
    pub usd_micros: u64,
}

impl Reserve {
    /// Returns input and output tokens together.
    pub fn tokens(&self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }

    /// Returns the sum of two reserves.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            turns: self.turns.saturating_add(other.turns),
            input_tokens: self.input_tokens.saturating_add(other.input_tokens),
            output_tokens: self.output_tokens.saturating_add(other.output_tokens),
            usd_micros: self.usd_micros.saturating_add(other.usd_micros),
        }
    }
}

impl RunContext {
    /// Returns the limit that forbids the next model call, with a message, if there is one.
    pub(super) fn exhausted(&self) -> Option<(Reason, String)> {
        self.overdrawn_by(self.next_call())
    }

    /// Returns the estimated cost of the next model call.
    pub(super) fn next_call(&self) -> Reserve {
        let expected = self.spec.terms_of(self.model).max_output_tokens.unwrap_or(OUTPUT_ESTIMATE);
        self.estimate(1, self.context_tokens(), self.most_of_answer().unwrap_or(expected))
    }

    /// Returns the maximum number of tokens that the next answer may have; `None` leaves that to
    /// the configuration. A number is set where the run has a budget, or where an earlier answer
    /// met the usual limit.
    pub(super) fn most_of_answer(&self) -> Option<u64> {
        let terms = self.spec.terms_of(self.model);
        let longer = terms.largest_output.filter(|_| self.raised && terms.max_output_tokens.is_none());
        if !self.has_budget() {
            return longer;
        }
        let wanted = terms.max_output_tokens.or(longer).unwrap_or(ANSWER);
        Some(self.affordable(wanted, self.context_tokens(), LEAST_ANSWER))
    }

    fn has_budget(&self) -> bool {
        self.spec.limits.tokens.is_some() || self.spec.limits.usd_micros.is_some()
    }

    /// Returns `wanted` output tokens for a request of `input` tokens, or fewer if the budget
    /// leaves fewer. The result is never below `least` (or `wanted`, if that is smaller): with less
    /// left, the budget counts as exhausted.
    fn affordable(&self, wanted: u64, input: u64, least: u64) -> u64 {
        let terms = self.spec.terms_of(self.model);
        let Limits { tokens, usd_micros, .. } = self.spec.limits;
        let (used, input) = (self.spent().plus(self.reserved()), input);
        let by_tokens = tokens.map(|limit| limit.saturating_sub(used.tokens()).saturating_sub(input));
        let asked = self.estimate(0, input, 0).usd_micros;
        let by_money = usd_micros.zip(terms.price).and_then(|(limit, price)| {
            let left = u128::from(limit.saturating_sub(used.usd_micros).saturating_sub(asked));
            let fits = (left * 1_000_000).checked_div(price.output.into())?;
            Some(u64::try_from(fits).unwrap_or(u64::MAX))
        });
        [by_tokens, by_money].into_iter().flatten().fold(wanted, u64::min).max(wanted.min(least))
    }

    /// Returns the estimated cost of a summary of the first `upto` messages.
    pub(super) fn next_summary(&self, upto: usize) -> Reserve {
        let input = tokens_in(self.transcript.bytes_upto(upto));
        self.estimate(0, input, self.most_of_summary(upto))
    }

    /// Returns the maximum number of tokens that a summary of the first `upto` messages may have.
    /// Reasoning counts as output for many models, so the limit is much higher than the length of a
    /// summary. After a failed summary the limit is higher still.
    pub(super) fn most_of_summary(&self, upto: usize) -> u64 {
        let within = |most: u64, part: u64| self.window().map_or(most, |window| most.min(window / part));
        let terms = self.spec.terms_of(self.model);
        let usual = terms.max_output_tokens.unwrap_or(SUMMARY_ROOM).min(SUMMARY_ROOM);
        let wanted = match self.streaks.compactions {
            0 => within(usual, 4),
            _ => within(terms.max_output_tokens.or(terms.largest_output).unwrap_or(usual).min(SUMMARY_MOST), 2),
        };
        let input = tokens_in(self.transcript.bytes_upto(upto));
        if self.has_budget() { self.affordable(wanted, input, SUMMARY_ANSWER) } else { wanted }
    }

    fn estimate(&self, turns: u64, input_tokens: u64, output_tokens: u64) -> Reserve {
        let usage = Usage { input_tokens, output_tokens, ..Usage::default() };
        // The provider may write the input to its cache, which can cost more.
        let cached = Usage { cache_write_tokens: input_tokens, ..usage.clone() };
        let usd_micros = self.price(&usage).max(self.price(&cached)).unwrap_or(0);
        Reserve { turns, input_tokens, output_tokens, usd_micros }
    }

    /// Returns the limit that a call with this estimate would exceed, with a message.
    pub(super) fn overdrawn_by(&self, next: Reserve) -> Option<(Reason, String)> {
        let Limits { turns, tokens, usd_micros, .. } = self.spec.limits;
        let spent = self.spent();
        let aside = self.reserved();
        let full = |limit: Option<u64>, spent: u64, aside: u64, next: u64| {
            let needed = u128::from(spent) + u128::from(aside) + u128::from(next);
            limit.filter(|limit| spent >= *limit || needed > u128::from(*limit))
        };
        let over = |reason: Reason, spent: u64, limit: u64, next: u64, say: fn(u64) -> String| {
            let of = format!("{} of {} are spent", say(spent), say(limit));
            let more = if next == 0 { String::new() } else { format!(", and the next call may take {}", say(next)) };
            (reason, format!("{}: {of}{more}", reason.row().meaning))
        };
        if full(Some(turns), spent.turns, aside.turns, next.turns).is_some() {
            Some((Reason::MaxTurns, Reason::MaxTurns.row().meaning.into()))
        } else if let Some(limit) = full(tokens, spent.tokens(), aside.tokens(), next.tokens()) {
            Some(over(Reason::BudgetTokens, spent.tokens(), limit, next.tokens(), |tokens| tokens.to_string()))
        } else if let Some(limit) = full(usd_micros, spent.usd_micros, aside.usd_micros, next.usd_micros) {
            Some(over(Reason::BudgetMoney, spent.usd_micros, limit, next.usd_micros, money))
        } else if self.now >= self.time_limit() {
            Some((Reason::BudgetTime, Reason::BudgetTime.row().meaning.into()))
        } else {
            None
        }
    }

    /// Returns the usage charged so far.
    fn spent(&self) -> Reserve {
        let total = &self.ledger.usage.total;
        Reserve {
            turns: self.ledger.turns.saturating_add(self.ledger.child_turns),
            input_tokens: total.input_tokens,
            output_tokens: total.output_tokens,
            usd_micros: total.cost_micros.unwrap_or(0),
        }
    }

    /// Returns the sum reserved for calls in flight.
    pub(super) fn reserved(&self) -> Reserve {
        self.ledger.reserved.iter().fold(Reserve::default(), |sum, (_, reserve)| sum.plus(*reserve))
    }

    /// Reserves an amount for a call.
    pub(super) fn reserve(&mut self, call: CallId, reserve: Reserve) {
        if reserve != Reserve::default() {
            self.ledger.reserved.push((call, reserve));
        }
    }

    /// Releases the reserve of a call that has ended, and returns it.
    pub(super) fn settle(&mut self, call: CallId) -> Reserve {
        let place = self.ledger.reserved.iter().position(|(reserved, _)| *reserved == call);
        place.map(|place| self.ledger.reserved.remove(place).1).unwrap_or_default()
    }

    /// Returns the share of one of `children` sub-agents that are still to start. Each of them, and
    /// the rest of the run, gets an equal part of what is left. `None` if too little is left.
    pub(super) fn share(&self, children: u64) -> Option<(Limits, Reserve)> {
        let limits = &self.spec.limits;
        let used = self.spent().plus(self.reserved());
        let share = |limit: u64, used: u64| {
            Some(limit.saturating_sub(used) / children.saturating_add(1)).filter(|share| *share > 0)
        };
        let turns = share(limits.turns, used.turns)?;
        let tokens = limits.tokens.map(|limit| share(limit, used.tokens()));
        let usd_micros = limits.usd_micros.map(|limit| share(limit, used.usd_micros));
        if tokens == Some(None) || usd_micros == Some(None) {
            return None;
        }
        let (tokens, usd_micros) = (tokens.flatten(), usd_micros.flatten());
        let time_ms = u64::try_from(self.time_limit().since(self.now).as_millis()).unwrap_or(u64::MAX);
        let reserve =
            Reserve { turns, input_tokens: tokens.unwrap_or(0), output_tokens: 0, usd_micros: usd_micros.unwrap_or(0) };
        Some((Limits { turns, tokens, usd_micros, time_ms, ..limits.clone() }, reserve))
    }

    /// Charges a completed model call, and reports the new usage. If the provider gives no token
    /// count, or an implausible one, the tokens are estimated from the bytes sent and received.
    pub(super) fn charge_reply(&mut self, call: CallId, reply: &Reply) {
        self.settle(call);
        let (request, answer) = (self.request_bytes(), bytes_of(&reply.content));
        let counted = reply.usage.clone().filter(|usage| is_plausible(usage, request, answer));
        if reply.usage.is_some() && counted.is_none() {
            self.warn(format!("{} reported an impossible number of tokens: fledge charges an estimate", reply.model));
        }
        let is_counted = counted.is_some();
        let usage = counted.unwrap_or_else(|| estimated(tokens_in(request), tokens_in(answer)));
        self.ledger.context_tokens = if is_counted { usage.total() } else { 0 };
        self.ledger.context_bytes = self.transcript.bytes() + answer;
        let usage = self.priced(usage);
        self.ledger.turns += 1;
        self.ledger.usage.add(&reply.model, &usage);
        self.tell_usage();
    }

    /// Charges the usage and the file changes of a sub-agent.
    pub(super) fn charge_child(&mut self, call: CallId, bill: &RunBill) {
        self.settle(call);
        let of_run = &mut self.ledger.usage;
        of_run.requests = of_run.requests.saturating_add(bill.requests);
        of_run.total.add(&bill.usage);
        for (model, usage) in &bill.by_model {
            of_run.by_model.entry(model.clone()).or_default().add(usage);
        }
        self.ledger.child_turns = self.ledger.child_turns.saturating_add(bill.turns);
        bill.changes.iter().for_each(|change| self.ledger.changed(change));
        self.tell_usage();
    }

    /// Charges the usage of a failed call, and reports it. The charge is the provider's count and
    /// the bytes received; without a plausible count, the reserve. A call with `spent` of `None`
    /// was refused or never arrived, and costs nothing.
    pub(super) fn charge_failure(&mut self, call: CallId, spent: Option<&Spent>) {
        let aside = self.settle(call);
        let Some(Spent { model, usage, bytes, partial: _ }) = spent else { return };
        let heard = bytes.div_ceil(BYTES_PER_TOKEN as u64);
        let length = usize::try_from(*bytes).unwrap_or(usize::MAX);
        let usage = match usage.clone().filter(|usage| is_plausible(usage, self.request_bytes(), length)) {
            Some(counted) => self.priced(Usage { output_tokens: counted.output_tokens.max(heard), ..counted }),
            None => self.set_aside(Reserve { output_tokens: aside.output_tokens.max(heard), ..aside }),
        };
        let name = self.spec.models.get(self.model).map_or("", String::as_str);
        let own = name.split_once('/').map_or(name, |(_, model)| model).to_owned();
        self.ledger.usage.add(if model.is_empty() { &own } else { model }, &usage);
        self.tell_usage();
    }

    /// Charges the usage of a summary; with `error`, that of a failed call. Charges the provider's
    /// count. Without one, estimates the output from the text, and charges the whole reserve for a
    /// rejected summary (`text` is `None`). A call that brought neither text nor the name of a
    /// model costs nothing.
    pub(super) fn charge_summary(
        &mut self,
        call: CallId,
        (usage, model): (Usage, &str),
        text: Option<&str>,
        error: Option<&ModelError>,
    ) {
        if let Some(error) = error {
            return self.charge_failure(call, error.spent.as_deref());
        }
        let aside = self.settle(call);
        // A rejected answer has no text, but the provider named its model.
        let has_answer = text.is_some() || !model.is_empty();
        let usage = match text {
            _ if usage.total() > 0 || !has_answer => self.priced(usage),
            Some(text) => self.priced(estimated(aside.input_tokens, tokens_in(text.len()))),
            None => self.set_aside(aside),
        };
        if model.is_empty() {
            self.ledger.usage.total.add(&usage);
        } else {
            self.ledger.usage.add(model, &usage);
        }
        self.tell_usage();
    }

    /// Returns the charge for a reserve whose real cost is unknown.
    fn set_aside(&self, aside: Reserve) -> Usage {
        let usage = self.priced(estimated(aside.input_tokens, aside.output_tokens));
        Usage { cost_micros: usage.cost_micros.map(|cost| cost.max(aside.usd_micros)), ..usage }
    }

    /// Sends the usage so far to the watchers.
    fn tell_usage(&mut self) {
        self.emit(AgentEvent::Usage(self.ledger.usage.total.clone()));
    }

    /// Returns the tokens of the conversation: the newest count plus an estimate of later messages,
    /// or an estimate of the whole.
    pub(super) fn context_tokens(&self) -> u64 {
        match self.ledger.context_tokens {
            0 => tokens_in(self.request_bytes()),
            known => known.saturating_add(tokens_in(self.transcript.bytes().saturating_sub(self.ledger.context_bytes))),
        }
    }

    /// Returns the bytes of everything that a model call sends.
    fn request_bytes(&self) -> usize {
        let tools: usize = self.plan.tools.iter().map(tool_bytes).sum();
        self.plan.system.len() + tools + self.transcript.bytes()
    }

    /// Sets the cost by the price of the current model. Without a price, keeps the provider's cost.
    fn priced(&self, usage: Usage) -> Usage {
        Usage { cost_micros: self.price(&usage).or(usage.cost_micros), ..usage }
    }

    fn price(&self, usage: &Usage) -> Option<u64> {
        self.spec.terms_of(self.model).price.map(|price| price.cost_micros(usage))
    }
}

/// Returns the usage for tokens that no provider counted.
pub(super) fn estimated(input_tokens: u64, output_tokens: u64) -> Usage {
    Usage {
        input_tokens,
        output_tokens,
        estimated_tokens: input_tokens.saturating_add(output_tokens),
        ..Usage::default()
    }
}

/// Returns true if a token count is plausible: more than zero, and not much more than the bytes
/// sent and received.
fn is_plausible(usage: &Usage, request: usize, answer: usize) -> bool {
    let most = |bytes: usize| (bytes as u64).saturating_add(UNSEEN);
    usage.total() > 0 && usage.input_tokens <= most(request) && usage.output_tokens <= most(answer)
}

/// Estimates the number of tokens in `bytes` bytes.
fn tokens_in(bytes: usize) -> u64 {
    (bytes / BYTES_PER_TOKEN) as u64
}
