//! Why a call of a queue could not be done.

use super::JobId;
use std::error::Error;

/// A call could not be done, or it is not known whether it was.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the fields are named after what they hold; the variants say the rest")]
pub enum QueueFault {
    /// What the queue is kept in says no; `verb` follows "cannot".
    #[error("cannot {verb}")]
    Failed { verb: &'static str, source: Box<dyn Error + Send + Sync> },
    /// A payload or a manifest is larger than [`super::MOST_BYTES`].
    #[error(
        "the {what} of job {job} has {bytes} bytes, and a queue takes {most}: keep large data elsewhere and name it by its digest"
    )]
    TooLarge { what: &'static str, job: JobId, bytes: usize, most: usize },
}
