//! Numbers in arguments of the command line.

use crate::limits::check_number;
use std::ops::RangeInclusive;

/// Returns a parser for a whole number in a range, which `u32` must include.
pub(super) fn whole_number(
    range: RangeInclusive<i64>,
) -> impl Fn(&str) -> Result<u32, String> + Clone + Send + Sync + 'static {
    move |text| check_number(text.parse().ok(), &range)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_outside_its_range_is_refused_with_the_range() {
        let parse = whole_number(1..=100);
        assert_eq!((parse("1"), parse("100")), (Ok(1), Ok(100)));
        for wrong in ["0", "101", "-1", "1.5", "ten", "", "99999999999999999999"] {
            assert_eq!(parse(wrong).unwrap_err(), "expected a whole number from 1 to 100", "{wrong}");
        }
        assert_eq!(whole_number(1..=i64::from(u32::MAX))("x").unwrap_err(), "expected a whole number of at least 1");
    }
}
