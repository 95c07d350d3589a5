//! MCP servers: working, misbehaving and third-party ones.

mod behaving;
mod misbehaving;
mod real;
mod runs;
mod scene;
