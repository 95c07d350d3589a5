//! Due moments within a period of any length: the newest ones as a list, the earlier ones as a
//! number. Also a deterministic delay after a due moment that looks random: it keeps machines from
//! sending requests all at once, while each machine repeats its own times.

use super::Schedule;
use jiff::Timestamp;
use std::time::Duration;

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

/// Returns the delay of a start after its due moment: less than `most`, in whole milliseconds.
/// Equal names and moments have equal delays.
pub fn jitter(most: Duration, name: &str, due: Timestamp) -> Duration {
    let most = u64::try_from(most.as_millis()).unwrap_or(u64::MAX);
    let moment = due.as_millisecond().to_le_bytes();
    let number = name.bytes().chain(moment).fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3) // FNV-1a
    });
    Duration::from_millis(spread(number).checked_rem(most).unwrap_or(0))
}

/// Mixes all bits of a number (the end of splitmix64).
fn spread(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delay_is_the_same_again_differs_from_others_and_stays_below_what_it_may_be() {
        let (most, at) = (Duration::from_secs(60), |second| Timestamp::from_second(second).unwrap());
        let of = |name: &str, second| jitter(most, name, at(second));
        assert_eq!(of("nightly", 0), of("nightly", 0));
        assert_ne!(of("nightly", 0), of("weekly", 0));
        let all: Vec<Duration> = (0..1000).map(|second| of("nightly", second)).collect();
        assert!(all.iter().all(|delay| *delay < most));
        let below_half = all.iter().filter(|delay| **delay < most / 2).count();
        assert!((400..600).contains(&below_half), "{below_half}");
        assert_eq!(jitter(Duration::ZERO, "nightly", at(0)), Duration::ZERO);
    }
}
