//! Due moments within a period of any length: the newest ones as a list, the earlier ones as a
//! number.

use super::Schedule;
use jiff::Timestamp;

/// The maximum number of earlier moments that are counted.
const COUNTED: u64 = 10_000;

/// The due moments of a period.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DueMoments {
    /// The newest moments, oldest first.
    pub newest: Vec<Timestamp>,
    /// The number of moments before these; 10 000 means that many or more.
    pub earlier: u64,
}

impl Schedule {
    /// Returns the moments that were due after `from` and up to and including `to`. Lists at most
    /// `most` of them.
    pub fn due(&self, from: Timestamp, to: Timestamp, most: usize) -> DueMoments {
        let mut due = DueMoments::default();
        let mut at = self.latest(to).filter(|at| *at > from);
        while let Some(moment) = at {
            if due.newest.len() < most {
                due.newest.push(moment);
            } else {
                due.earlier += 1;
            }
            if due.earlier == COUNTED {
                break;
            }
            at = self.previous(moment).filter(|at| *at > from);
        }
        due.newest.reverse();
        due
    }
}
