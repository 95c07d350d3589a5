//! The run machine, tested from outside: each row of its table, its fourteen laws over random
//! events, and whole simulated runs.

mod answers;
mod budgets;
mod corners;
mod laws;
mod money;
mod random;
mod rows;
mod shorter;
mod simulator;
mod table;
mod walk;
mod world;
