//! A deterministic delay that looks random. It keeps machines from sending requests all at once,
//! while each machine repeats its own times.

use jiff::Timestamp;
use std::time::Duration;

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
