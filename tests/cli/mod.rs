//! The commands around runs: `init`, `doctor`, `schema`, `specs`, `config`, `memory`.

mod below;
mod doctor;
mod first;
mod front;
mod init;
mod memory;
mod next;
mod own_checks;
mod pipelines;
mod schema;
mod specs;
mod trust;
mod wrong;
