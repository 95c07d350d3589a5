//! Errors of queue calls.

use super::JobId;
use std::error::Error;

/// A queue call failed. The call may have taken effect nevertheless.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the fields are named after what they hold; the variants say the rest")]
pub enum QueueError {
    /// The queue's storage returned an error; `verb` follows "cannot".
    #[error("cannot {verb}")]
    Failed { verb: &'static str, source: Box<dyn Error + Send + Sync> },
    /// A payload or a manifest is larger than [`super::MOST_BYTES`].
    #[error(
        "the {what} of job {job} has {bytes} bytes, more than the limit of {most}: \
         store large data elsewhere and refer to it by its digest"
    )]
    TooLarge { what: &'static str, job: JobId, bytes: usize, most: usize },
}
