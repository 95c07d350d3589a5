//! The run machine, from outside: every row of its table, its fourteen laws over random events, and whole simulated runs.

mod corners;
mod laws;
mod random;
mod rows;
mod simulator;
mod table;
mod walk;
mod world;
