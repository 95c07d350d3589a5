//! What ends a gate run before its last word: the lanes have spoken, or it cannot be judged.

use crate::causes::chain;
use crate::verdict::Verdict;
use std::error::Error;

/// What ends a gate run early.
pub(super) enum Early {
    /// The lanes have spoken.
    Said(Box<Verdict>),
    /// It cannot be judged, for this reason.
    Broken(String),
}

impl<E: Error> From<E> for Early {
    fn from(error: E) -> Self {
        Self::Broken(chain(&error))
    }
}
