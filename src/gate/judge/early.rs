//! The early ends of a gate run: a verdict of the lanes, or an error.

use crate::error_chain::chain;
use crate::verdict::Verdict;
use std::error::Error;

/// The early end of a gate run.
pub(super) enum EarlyEnd {
    /// The verdict that the lanes led to.
    Ruled(Box<Verdict>),
    /// The reason why the work cannot be judged.
    Broken(String),
}

impl<E: Error> From<E> for EarlyEnd {
    fn from(error: E) -> Self {
        Self::Broken(chain(&error))
    }
}
