//! Tests of `fledge run` and `fledge runs`: a run from its task to its report, stopped, resumed and
//! inspected.

mod asking;
mod cancelling;
mod continuing;
mod difference;
mod endings;
mod events;
mod example;
mod exit_codes;
mod fail_closed;
mod hooks;
mod input;
mod library;
mod limits;
mod listing;
mod logs;
mod outlets;
mod output;
mod raising;
mod replay;
mod resume;
mod resumed;
mod stopped;
mod subagents;
mod syncs;
mod watching;
