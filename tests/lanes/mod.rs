//! Lanes that a person runs: which steps run, what they print, and how they end.

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
mod terminal;
mod toml;
mod unknown;
mod unread;
mod watch;
