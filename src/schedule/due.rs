//! All moments at which something was due within a time, however long that is: the newest by name, those before them as a number.

use super::Schedule;
use jiff::Timestamp;

/// Moments that are counted; of more it is only said that there were so many.
const COUNTED: u64 = 10_000;

/// The moments of a time, which were due.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Due {
    /// The newest ones, the oldest first.
    pub newest: Vec<Timestamp>,
    /// How many there were before these; 10 000 stands for that and more.
    pub earlier: u64,
}

impl Schedule {
    /// What was due after `from` and until `to`, this included: at most so many by name.
    pub fn due(&self, from: Timestamp, to: Timestamp, most: usize) -> Due {
        let mut due = Due::default();
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
