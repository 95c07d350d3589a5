//! Durations as people write them: `90s`, `15m`, `1h30m`, `500ms`.

use std::time::Duration;

/// The units with their milliseconds, largest first.
const UNITS: [(&str, u64); 5] = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

/// Parses a duration: whole numbers, each with a unit (`d`, `h`, `m`, `s`, `ms`), larger units
/// first.
///
/// # Errors
/// A message that quotes the text: no unit, an unknown unit, units out of order, zero, or too long.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let quoted = || text.chars().take(40).filter(|char| !char.is_control()).collect::<String>();
    let wrong = |why: &str| format!("`{}` {why}", quoted());
    let (mut rest, mut total, mut largest) = (text, 0u64, u64::MAX);
    while !rest.is_empty() {
        let (digits, after) = rest.split_at(rest.find(|char: char| !char.is_ascii_digit()).unwrap_or(rest.len()));
        let (unit, after) = after.split_at(after.find(|char: char| char.is_ascii_digit()).unwrap_or(after.len()));
        if digits.is_empty() {
            return Err(wrong("is not a duration: write e.g. `90s`"));
        }
        if unit.is_empty() {
            return Err(format!("`{}` has no unit: write `{}s`", quoted(), quoted()));
        }
        let Some((_, factor)) = UNITS.iter().find(|(name, _)| *name == unit) else {
            return Err(wrong("has an unknown unit: expected `d`, `h`, `m`, `s` or `ms`"));
        };
        if *factor >= largest {
            return Err(wrong("has its units out of order: write the larger unit first"));
        }
        let part = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(*factor));
        total = part.and_then(|part| total.checked_add(part)).ok_or_else(|| wrong("is too long"))?;
        (rest, largest) = (after, *factor);
    }
    match total {
        0 if text.is_empty() => Err("a duration cannot be empty: write e.g. `90s`".into()),
        0 => Err(wrong("must be longer than zero")),
        total => Ok(Duration::from_millis(total)),
    }
}

/// Formats a duration as [`parse_duration`] reads it. Drops fractions of a millisecond.
pub fn show_duration(duration: Duration) -> String {
    let mut left = milliseconds(duration);
    let mut text = String::new();
    for (unit, factor) in UNITS {
        if left >= factor {
            text += &format!("{}{unit}", left / factor);
            left %= factor;
        }
    }
    if text.is_empty() { "0s".into() } else { text }
}

/// Converts a duration to whole milliseconds, at most `u64::MAX`.
pub fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn units_add_up() {
        let cases = [("90s", 90_000), ("15m", 900_000), ("1h30m", 5_400_000), ("500ms", 500), ("1d1ms", 86_400_001)];
        for (text, millis) in cases {
            assert_eq!(parse_duration(text), Ok(Duration::from_millis(millis)), "{text}");
        }
    }

    #[test]
    fn what_is_wrong_is_said() {
        let cases = [
            ("90", "`90` has no unit: write `90s`"),
            ("", "a duration cannot be empty: write e.g. `90s`"),
            ("soon", "`soon` is not a duration: write e.g. `90s`"),
            ("-5s", "`-5s` is not a duration: write e.g. `90s`"),
            ("1.5h", "`1.5h` has an unknown unit: expected `d`, `h`, `m`, `s` or `ms`"),
            ("5 m", "`5 m` has an unknown unit: expected `d`, `h`, `m`, `s` or `ms`"),
            ("30m1h", "`30m1h` has its units out of order: write the larger unit first"),
            ("1m1m", "`1m1m` has its units out of order: write the larger unit first"),
            ("0s", "`0s` must be longer than zero"),
            ("99999999999999d", "`99999999999999d` is too long"),
        ];
        for (text, why) in cases {
            assert_eq!(parse_duration(text), Err(why.to_owned()), "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_shown_can_be_read(millis in 1u64..) {
            let duration = Duration::from_millis(millis);
            prop_assert_eq!(parse_duration(&show_duration(duration)), Ok(duration));
        }

        #[test]
        fn no_text_makes_it_panic(text in "\\PC{0,12}") {
            let _ = parse_duration(&text);
        }
    }
}
