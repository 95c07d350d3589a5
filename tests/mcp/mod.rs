//! MCP servers: good ones, bad ones, real ones.

mod behaving;
mod misbehaving;
mod real;
mod runs;
mod scene;
