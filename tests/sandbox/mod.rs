//! Tests of the sandbox around tools and steps, of the processes in it, and of the protection of
//! secrets.

mod guard;
mod isolation;
mod layers;
mod orphans;
mod outside;
mod probes;
mod programs;
pub(crate) mod secrets;
mod summary;
mod tool_host;
