//! The faults, in the order of their numbers: the cases for each wire format, and the expected
//! result of each.

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

/// A kind of fault.
pub(crate) struct Row {
    pub(crate) id: &'static str,
    pub(crate) fault: &'static str,
    /// Returns the cases in a wire format; empty if the fault cannot occur there.
    pub(crate) cases: fn(Wire) -> Vec<Case>,
}

/// A further check on a case, beside its end.
type Check = fn(&Played) -> Result<(), String>;

/// A fault in one wire format, and its expected result.
pub(crate) struct Case {
    /// The name of the case within its row; empty if it is the only case.
    pub(crate) name: &'static str,
    /// A script for each request. The last script also answers all further requests.
    pub(crate) scripts: Vec<Script>,
    /// The index of the request that meets the fault.
    pub(crate) fault_at: usize,
    /// The server does not wait for a request.
    pub(crate) is_raw: bool,
    /// An address that differs from the server's, with `PORT` for its port.
    pub(crate) address: Option<String>,
    pub(crate) clocks: TurnTimeouts,
    pub(crate) max_response: usize,
    /// The number of models in the fallback chain, including the first.
    pub(crate) models: usize,
    /// The token limit of the run.
    pub(crate) tokens: Option<u64>,
    /// The conversation is long enough to summarise.
    pub(crate) is_long: bool,
    /// A server that must receive no request.
    pub(crate) stranger: Option<Server>,
    pub(crate) ends: Reason,
    pub(crate) requests: usize,
    pub(crate) tools: usize,
    pub(crate) checks: Vec<Check>,
}

impl Case {
    /// Returns a case with these responses and then a good one. The run ends well after one request
    /// for each.
    pub(crate) fn mends(wire: Wire, name: &'static str, mut scripts: Vec<Script>) -> Self {
        scripts.push(wire.whole(&say("Done.")));
        let requests = scripts.len();
        Self { requests, ..Self::stays(name, scripts, Reason::Verified, requests) }
    }

    /// Returns a case with these responses, the last repeated for ever. The run ends for this
    /// reason after this number of requests.
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

    /// Sets the number of tools that run.
    pub(crate) fn runs(self, tools: usize) -> Self {
        Self { tools, ..self }
    }

    /// Adds a further check.
    pub(crate) fn check(mut self, check: Check) -> Self {
        self.checks.push(check);
        self
    }

    /// Returns true if the server answers the request at this index with an error status.
    pub(crate) fn is_refused(&self, request: usize) -> bool {
        let script = &self.scripts[request.min(self.scripts.len() - 1)];
        let Some(Act::Send(bytes)) = script.first() else { return false };
        bytes.starts_with(b"HTTP/1.1 ") && !bytes.starts_with(b"HTTP/1.1 200 ")
    }

    /// Returns the number of tools that run before the request that meets the fault.
    pub(crate) fn tools_before(&self) -> usize {
        self.fault_at // one in each turn
    }

    /// Changes one timeout.
    pub(crate) fn clocked(mut self, set: fn(&mut TurnTimeouts, Duration)) -> Self {
        set(&mut self.clocks, Duration::from_secs(2)); // longer than a busy machine takes to answer
        self
    }
}

/// Returns an error unless `holds` is true.
pub(crate) fn holds(holds: bool, otherwise: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(otherwise()) }
}

/// Asserts that the newest request contains this text in the last message to the model.
pub(crate) fn told_model(played: &Played, text: &str) -> Result<(), String> {
    let last = played.server.requests().pop().unwrap_or_default();
    holds(last.contains(text), || format!("the model was not told {text:?}: {last}"))
}

/// Returns a script with the events of a stream, and then the actions of the connection.
pub(crate) fn stream(wire: Wire, body: impl AsRef<[u8]>, then: impl IntoIterator<Item = Act>) -> Script {
    [wire.streams(body)].into_iter().chain(then).collect()
}

/// The number of rows: 45 without the three that test the whole program.
pub(crate) const COUNT: usize = 42;

/// Returns all rows, or the selected rows, sorted.
pub(crate) fn rows() -> Vec<Row> {
    let wanted = wanted_rows();
    let is_wanted = |row: &Row| wanted.as_ref().is_none_or(|wanted| wanted.contains(row.id));
    let all = [http::ROWS, streams::ROWS, answers::ROWS, ends::ROWS].concat();
    let mut rows: Vec<Row> =
        all.into_iter().map(|(id, fault, cases)| Row { id, fault, cases }).filter(is_wanted).collect();
    rows.sort_by_key(|row| row.id);
    rows
}

/// A row in a table of rows.
type Entry = (&'static str, &'static str, fn(Wire) -> Vec<Case>);
