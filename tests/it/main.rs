//! The program from outside, as its users meet it: the built binary with a scripted model on loopback, in folders of its own.
//! Nothing here knows how it is made; only `library`, `replay` and what reads or replays journals use the crate.
#![expect(clippy::disallowed_methods, reason = "tests start the program, read PATH and measure how long things take")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops")]

mod apply;
mod attest;
mod cancel;
mod clean_lanes;
mod continuing;
mod delivery;
mod diff_undo;
mod doctor;
mod events;
mod example;
mod exit_codes;
mod fail_closed;
mod fix;
mod gate;
mod gate_flags;
mod gate_rooms;
mod guard;
mod init;
mod input;
mod lanes;
mod lanes_doubt;
mod lanes_events;
mod lanes_files;
mod lanes_output;
mod lanes_places;
mod lanes_toml;
mod lanes_unknown;
mod lanes_unread;
mod library;
mod memory;
mod models;
mod orphans;
mod outlets;
mod output;
mod outside;
mod probes;
mod processes;
mod providers;
mod replay;
mod resume;
mod resumed;
mod runs;
mod sandbox;
mod secrets;
mod specs;
mod support;
mod syncs;
mod terminal;
mod tool_host;
mod wall;
mod watch;
