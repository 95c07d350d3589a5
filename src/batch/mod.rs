//! Batches: a set of jobs with dependencies, run in parallel within bounds, and their outcomes.
//!
//! ```text
//! plan    tasks × values × repositories → jobs with names and needs    decides
//! course  which job has its turn, and with how much money              decides
//! fleet   drives their runs, stops them, tells what happens            does
//! evaluation  what models came to on the same tasks                   decides
//! ```

mod course;
pub mod evaluation;
mod fleet;
#[cfg(feature = "cli")]
pub(crate) mod forms;
mod ledger;
mod outcome;
pub mod plan;
mod purse;
mod record;
mod summary;

pub use course::{Before, Bounds, Course, Seat, Step};
pub use fleet::{As, Errand, News, Refusal, Source, Tell, run};
pub use ledger::{Ledger, LedgerFault, Wanted};
pub use outcome::{End, NotRun, Outcome, Ran, Standing};
pub use record::{BatchEvent, BatchRecord};
#[cfg(feature = "cli")]
pub(crate) use summary::EXIT_CODES_ALONE;
pub use summary::{BATCH_SCHEMA_VERSION, Counts, JobSummary, Summary};
