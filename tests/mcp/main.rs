//! MCP servers: good ones, bad ones, real ones.
#![expect(
    clippy::disallowed_methods,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "tests start programs, look at clocks and fail by panics"
)]

mod behaving;
mod misbehaving;
mod real;
mod runs;
mod scene;
