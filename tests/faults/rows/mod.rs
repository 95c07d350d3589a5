//! The faults, in the order of their numbers: for each wire format the cases that it has of them, and what each must come to.

mod answers;
mod ends;
mod http;
mod streams;

use crate::faults::play::Played;
use crate::faults::server::{Act, Script, Server};
use crate::faults::voice::{Wire, say};
use crate::support::wanted_rows;
use fledge::provider::TurnTimeouts;
use fledge::verdict::Reason;
use std::time::Duration;

/// One kind of fault.
pub(crate) struct Row {
    pub(crate) id: &'static str,
    pub(crate) fault: &'static str,
    /// What there is of it in a wire format; nothing where it cannot be.
    pub(crate) cases: fn(Wire) -> Vec<Case>,
}

/// What a case must hold beside its end.
type Check = fn(&Played) -> Result<(), String>;

/// One fault in one wire format, and what it must come to.
pub(crate) struct Case {
    /// What tells it from the others of its row; empty where it is the only one.
    pub(crate) name: &'static str,
    /// One for each request; the last one is for all that follow.
    pub(crate) scripts: Vec<Script>,
    /// The request that meets the fault, from 0.
    pub(crate) fault_at: usize,
    /// Whether the server does not wait for a request.
    pub(crate) is_raw: bool,
    /// Another address than the server's, with `PORT` for its port.
    pub(crate) address: Option<String>,
    pub(crate) clocks: TurnTimeouts,
    pub(crate) max_response: usize,
    /// How many models there are to fall back to, the first one included.
    pub(crate) models: usize,
    /// What the run may use.
    pub(crate) tokens: Option<u64>,
    /// Whether the conversation could be summarised.
    pub(crate) is_long: bool,
    /// Somebody whom nobody may ask for anything.
    pub(crate) stranger: Option<Server>,
    pub(crate) ends: Reason,
    pub(crate) requests: usize,
    pub(crate) tools: usize,
    pub(crate) checks: Vec<Check>,
}

impl Case {
    /// These responses and then a good one, which the run ends well with, having asked once for each.
    pub(crate) fn mends(wire: Wire, name: &'static str, mut scripts: Vec<Script>) -> Self {
        scripts.push(wire.whole(&say("Done.")));
        let requests = scripts.len();
        Self { requests, ..Self::stays(name, scripts, Reason::Verified, requests) }
    }

    /// These responses, the last of them for ever, which the run ends with like this after so many requests.
    pub(crate) fn stays(name: &'static str, scripts: Vec<Script>, ends: Reason, requests: usize) -> Self {
        Self {
            name,
            scripts,
            fault_at: 0,
            is_raw: false,
            address: None,
            clocks: TurnTimeouts::default(),
            max_response: 64 * 1024 * 1024,
            models: 1,
            tokens: None,
            is_long: false,
            stranger: None,
            ends,
            requests,
            tools: 0,
            checks: Vec::new(),
        }
    }

    /// So many of the tools are run.
    pub(crate) fn runs(self, tools: usize) -> Self {
        Self { tools, ..self }
    }

    /// What else must hold.
    pub(crate) fn check(mut self, check: Check) -> Self {
        self.checks.push(check);
        self
    }

    /// Whether a request, counted from 0, is answered by a status that is no answer.
    pub(crate) fn is_refused(&self, request: usize) -> bool {
        let script = &self.scripts[request.min(self.scripts.len() - 1)];
        let Some(Act::Send(bytes)) = script.first() else { return false };
        bytes.starts_with(b"HTTP/1.1 ") && !bytes.starts_with(b"HTTP/1.1 200 ")
    }

    /// The tools that are run before the request that meets the fault.
    pub(crate) fn tools_before(&self) -> usize {
        self.fault_at // one in each turn
    }

    /// With this clock, and the others as they are.
    pub(crate) fn clocked(mut self, set: fn(&mut TurnTimeouts, Duration)) -> Self {
        set(&mut self.clocks, Duration::from_secs(2)); // more than a busy machine takes to answer
        self
    }
}

/// A holding check, or what does not hold.
pub(crate) fn holds(holds: bool, otherwise: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(otherwise()) }
}

/// What was said to the model last before the newest request contains this.
pub(crate) fn told_model(played: &Played, text: &str) -> Result<(), String> {
    let last = played.server.requests().pop().unwrap_or_default();
    holds(last.contains(text), || format!("the model was not told {text:?}: {last}"))
}

/// The events of a stream and what the connection does after them.
pub(crate) fn stream(wire: Wire, body: impl AsRef<[u8]>, then: impl IntoIterator<Item = Act>) -> Script {
    [wire.streams(body)].into_iter().chain(then).collect()
}

/// How many rows there are: 45 without the three that are about the whole program.
pub(crate) const COUNT: usize = 42;

/// All rows, or those that are wanted, sorted.
pub(crate) fn rows() -> Vec<Row> {
    let wanted = wanted_rows();
    let is_wanted = |row: &Row| wanted.as_ref().is_none_or(|wanted| wanted.contains(row.id));
    let all = [http::ROWS, streams::ROWS, answers::ROWS, ends::ROWS].concat();
    let mut rows: Vec<Row> =
        all.into_iter().map(|(id, fault, cases)| Row { id, fault, cases }).filter(is_wanted).collect();
    rows.sort_by_key(|row| row.id);
    rows
}

/// A row as it is written down.
type Entry = (&'static str, &'static str, fn(Wire) -> Vec<Case>);
