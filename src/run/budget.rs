//! What a run may still spend. Every call that costs something is reserved before it is made and settled by what it cost, so that a
//! limit is passed by no more than what one estimate was wrong.

use super::bill::Bill;
use super::context::Context;
use super::transcript::{bytes_of, tool_bytes};
use super::watch::AgentEvent;
use crate::chat::{ModelError, Reply, Spent, Usage, money};
use crate::id::CallId;
use crate::limits::{
    ANSWER, LEAST_ANSWER, Limits, OUTPUT_ESTIMATE, SUMMARY_ANSWER, SUMMARY_MOST, SUMMARY_ROOM, SUMMARY_TOKENS,
};
use crate::verdict::Reason;
use serde::{Deserialize, Serialize};

/// Bytes that count as one token where nobody has counted.
pub(super) const BYTES_PER_TOKEN: usize = 4;
/// Tokens beyond one for each byte that a provider may count for what is not seen here: reasoning, images, its own words.
const UNSEEN: u64 = 1_000_000;

/// What is set aside for a call in flight.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reserve {
    /// Model calls.
    pub turns: u64,
    /// Tokens that the model reads; of a sub-agent, all of its tokens.
    pub input_tokens: u64,
    /// Tokens that the model writes.
    pub output_tokens: u64,
    /// Money, in millionths of a US dollar.
    pub usd_micros: u64,
}

impl Reserve {
    /// Input and output together.
    pub fn tokens(&self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }

    /// Both together.
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

impl Context {
    /// The limit that forbids the next model call, with what to say of it, if one does.
    pub(super) fn exhausted(&self) -> Option<(Reason, String)> {
        self.overdrawn_by(self.next_call())
    }

    /// What the next model call may cost.
    pub(super) fn next_call(&self) -> Reserve {
        let expected = self.charter.terms_of(self.model).max_output_tokens.unwrap_or(OUTPUT_ESTIMATE);
        self.estimate(1, self.context_tokens(), self.most_of_answer().unwrap_or(expected))
    }

    /// The most tokens that the next answer may have, where that is not left to what is configured: a budget leaves no more, or the usual bound
    /// was too low for an earlier one.
    pub(super) fn most_of_answer(&self) -> Option<u64> {
        if self.is_before(2) {
            return None;
        }
        let terms = self.charter.terms_of(self.model);
        let longer = terms.largest_output.filter(|_| self.raised && terms.max_output_tokens.is_none());
        if !self.has_budget() {
            return longer;
        }
        let wanted = terms.max_output_tokens.or(longer).unwrap_or(ANSWER);
        Some(self.affordable(wanted, self.context_tokens(), LEAST_ANSWER))
    }

    fn has_budget(&self) -> bool {
        self.charter.limits.tokens.is_some() || self.charter.limits.usd_micros.is_some()
    }

    /// So many tokens of an answer to so many tokens, or what the budget leaves of them; below the least, the budget is at its end.
    fn affordable(&self, wanted: u64, input: u64, least: u64) -> u64 {
        let terms = self.charter.terms_of(self.model);
        let Limits { tokens, usd_micros, .. } = self.charter.limits;
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

    /// What a summary of the first messages may cost.
    pub(super) fn next_summary(&self, upto: usize) -> Reserve {
        let input = tokens_in(self.transcript.bytes_upto(upto));
        self.estimate(0, input, self.most_of_summary(upto).unwrap_or(SUMMARY_TOKENS))
    }

    /// The most tokens that a summary of the first messages may have. Many models think before they write, and that counts too, so it may be
    /// much longer than a summary is; after one that was cut off it may be longer still.
    pub(super) fn most_of_summary(&self, upto: usize) -> Option<u64> {
        let within = |most: u64, part: u64| self.window().map_or(most, |window| most.min(window / part));
        if self.is_before(3) {
            return (!self.is_before(2)).then(|| within(SUMMARY_ANSWER, 4));
        }
        let terms = self.charter.terms_of(self.model);
        let usual = terms.max_output_tokens.unwrap_or(SUMMARY_ROOM).min(SUMMARY_ROOM);
        let wanted = match self.streaks.compactions {
            0 => within(usual, 4),
            _ => within(terms.max_output_tokens.or(terms.largest_output).unwrap_or(usual).min(SUMMARY_MOST), 2),
        };
        let input = tokens_in(self.transcript.bytes_upto(upto));
        Some(if self.has_budget() { self.affordable(wanted, input, SUMMARY_ANSWER) } else { wanted })
    }

    fn estimate(&self, turns: u64, input_tokens: u64, output_tokens: u64) -> Reserve {
        if self.is_of_old() {
            return Reserve::default();
        }
        let usage = Usage { input_tokens, output_tokens, ..Usage::default() };
        // What is read may be written to the provider's cache, which can cost more.
        let cached = Usage { cache_write_tokens: if self.is_before(2) { 0 } else { input_tokens }, ..usage.clone() };
        let usd_micros = self.price(&usage).max(self.price(&cached)).unwrap_or(0);
        Reserve { turns, input_tokens, output_tokens, usd_micros }
    }

    /// The limit that a call with such an estimate would pass, with what to say of it.
    pub(super) fn overdrawn_by(&self, next: Reserve) -> Option<(Reason, String)> {
        let Limits { turns, tokens, usd_micros, .. } = self.charter.limits;
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

    /// What was booked so far.
    fn spent(&self) -> Reserve {
        let total = &self.ledger.usage.total;
        Reserve {
            turns: self.ledger.turns.saturating_add(self.ledger.child_turns),
            input_tokens: total.input_tokens,
            output_tokens: total.output_tokens,
            usd_micros: total.cost_micros.unwrap_or(0),
        }
    }

    /// What is set aside for calls in flight.
    pub(super) fn reserved(&self) -> Reserve {
        self.ledger.reserved.iter().fold(Reserve::default(), |sum, (_, reserve)| sum.plus(*reserve))
    }

    /// Sets something aside for a call.
    pub(super) fn reserve(&mut self, call: CallId, reserve: Reserve) {
        if reserve != Reserve::default() {
            self.ledger.reserved.push((call, reserve));
        }
    }

    /// Gives back what was set aside for a call that is over.
    pub(super) fn settle(&mut self, call: CallId) -> Reserve {
        let place = self.ledger.reserved.iter().position(|(reserved, _)| *reserved == call);
        place.map(|place| self.ledger.reserved.remove(place).1).unwrap_or_default()
    }

    /// The share of one sub-agent, when so many are still to be started: they and what comes after them have as much each. `None`: there is
    /// too little left for that.
    pub(super) fn share(&self, children: u64) -> Option<(Limits, Reserve)> {
        let limits = &self.charter.limits;
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

    /// Books a completed model call, and tells of it. Where its provider gave no count, or one that cannot be true, the tokens are estimated by
    /// the bytes that were sent and said.
    pub(super) fn book_reply(&mut self, call: CallId, reply: &Reply) {
        self.settle(call);
        let (request, answer) = (self.request_bytes(), bytes_of(&reply.content));
        let said = reply.usage.clone().filter(|usage| self.is_of_old() || is_plausible(usage, request, answer));
        if reply.usage.is_some() && said.is_none() {
            self.warn(format!("{} cannot have counted its tokens right: an estimate is charged", reply.model));
        }
        let is_counted = said.is_some() || self.is_of_old();
        let usage = said.unwrap_or_else(|| estimated(tokens_in(request), tokens_in(answer)));
        self.ledger.context_tokens = if is_counted { usage.total() } else { 0 };
        self.ledger.context_bytes = self.transcript.bytes() + answer;
        let usage = self.priced(usage);
        self.ledger.turns += 1;
        self.ledger.usage.book(&reply.model, &usage);
        self.tell_usage();
    }

    /// Books what a sub-agent used and changed.
    pub(super) fn book_child(&mut self, call: CallId, bill: &Bill) {
        self.settle(call);
        let requests = if self.is_before(3) { bill.turns } else { bill.requests };
        let books = &mut self.ledger.usage;
        books.requests = books.requests.saturating_add(requests);
        books.total.add(&bill.usage);
        for (model, usage) in &bill.by_model {
            books.by_model.entry(model.clone()).or_default().add(usage);
        }
        self.ledger.child_turns = self.ledger.child_turns.saturating_add(bill.turns);
        bill.changes.iter().for_each(|change| self.ledger.changed(change));
        self.tell_usage();
    }

    /// Books what a call used that gave no answer, and tells of it: what its provider had counted and what was heard of it, or else what was
    /// set aside for it. One that was refused, or came to nobody, has used nothing.
    pub(super) fn book_failure(&mut self, call: CallId, spent: Option<&Spent>) {
        let aside = self.settle(call);
        let Some(Spent { model, usage, bytes, said: _ }) = spent else { return };
        let heard = bytes.div_ceil(BYTES_PER_TOKEN as u64);
        let length = usize::try_from(*bytes).unwrap_or(usize::MAX);
        let usage = match usage.clone().filter(|usage| is_plausible(usage, self.request_bytes(), length)) {
            Some(said) => self.priced(Usage { output_tokens: said.output_tokens.max(heard), ..said }),
            None => self.set_aside(Reserve { output_tokens: aside.output_tokens.max(heard), ..aside }),
        };
        let name = self.charter.models.get(self.model).map_or("", String::as_str);
        let own = name.split_once('/').map_or(name, |(_, model)| model).to_owned();
        self.ledger.usage.book(if model.is_empty() { &own } else { model }, &usage);
        self.tell_usage();
    }

    /// Books what a summary used: what was set aside for it, where it came without a count.
    pub(super) fn book_summary(
        &mut self,
        call: CallId,
        (usage, model): (Usage, &str),
        came: bool,
        error: Option<&ModelError>,
    ) {
        if let Some(error) = error {
            return self.book_failure(call, error.spent.as_deref());
        }
        let aside = self.settle(call);
        // An answer that is no summary has been paid for too; older journals do not tell it from none.
        let came = came || !(self.is_before(2) || model.is_empty());
        let usage = match usage {
            usage if usage.total() > 0 || !came => self.priced(usage),
            _ => self.set_aside(aside),
        };
        if model.is_empty() {
            self.ledger.usage.total.add(&usage);
        } else {
            self.ledger.usage.book(model, &usage);
        }
        self.tell_usage();
    }

    /// What was set aside, as it is charged.
    fn set_aside(&self, aside: Reserve) -> Usage {
        let usage = self.priced(estimated(aside.input_tokens, aside.output_tokens));
        Usage { cost_micros: usage.cost_micros.map(|cost| cost.max(aside.usd_micros)), ..usage }
    }

    /// Tells whoever watches what the run has used so far.
    fn tell_usage(&mut self) {
        self.tell(AgentEvent::Usage(self.ledger.usage.total.clone()));
    }

    /// The tokens that the conversation has, by the newest count and what came since, or else by its bytes.
    pub(super) fn context_tokens(&self) -> u64 {
        match self.ledger.context_tokens {
            0 => tokens_in(self.request_bytes()),
            known => known.saturating_add(tokens_in(self.transcript.bytes().saturating_sub(self.ledger.context_bytes))),
        }
    }

    /// The bytes of all that a model call sends.
    fn request_bytes(&self) -> usize {
        let tools: usize = self.plan.tools.iter().map(tool_bytes).sum();
        self.plan.system.len() + tools + self.transcript.bytes()
    }

    /// With its cost by the price of the model in use, else as its provider says.
    fn priced(&self, usage: Usage) -> Usage {
        Usage { cost_micros: self.price(&usage).or(usage.cost_micros), ..usage }
    }

    fn price(&self, usage: &Usage) -> Option<u64> {
        self.charter.terms_of(self.model).price.map(|price| price.cost_micros(usage))
    }

    /// Whether the run was begun by a program that set nothing aside: its journal is folded as it was written.
    pub(super) fn is_of_old(&self) -> bool {
        self.is_before(1)
    }

    /// Whether the run was begun by a program that did not know this edition of the rules yet.
    pub(super) fn is_before(&self, edition: u32) -> bool {
        self.charter.edition < edition
    }
}

/// Tokens that no provider counted.
pub(super) fn estimated(input_tokens: u64, output_tokens: u64) -> Usage {
    Usage {
        input_tokens,
        output_tokens,
        estimated_tokens: input_tokens.saturating_add(output_tokens),
        ..Usage::default()
    }
}

/// Whether a count of tokens can be true of a call: something was read, and not much more than was sent and said.
fn is_plausible(usage: &Usage, request: usize, answer: usize) -> bool {
    let most = |bytes: usize| (bytes as u64).saturating_add(UNSEEN);
    usage.total() > 0 && usage.input_tokens <= most(request) && usage.output_tokens <= most(answer)
}

/// Estimates the tokens of so many bytes.
fn tokens_in(bytes: usize) -> u64 {
    (bytes / BYTES_PER_TOKEN) as u64
}
