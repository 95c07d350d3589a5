//! Lanes that a person runs: the steps that run, their output, and their results.

mod against;
mod by_hand;
mod clean;
mod doubt;
mod events;
mod files;
mod from_commit;
mod named;
mod output;
mod places;
mod processes;
mod refused;
mod small_terminal;
mod terminal;
mod toml;
mod unknown;
mod unread;
mod watch;
