//! The sandbox around tools and steps, the processes behind it, and the secrets in front of it.

mod guard;
mod layers;
mod orphans;
mod outside;
mod probes;
mod programs;
pub(crate) mod secrets;
mod summary;
mod tool_host;
mod wall;
