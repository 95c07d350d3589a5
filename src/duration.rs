//! Durations as people write them: `90s`, `15m`, `1h30m`, `500ms`.

use std::time::Duration;

/// The units with their milliseconds, largest first.
const UNITS: [(&str, u64); 5] = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

/// Other words for the units.
const WORDS: [(&str, &str); 15] = [
    ("day", "d"),
    ("days", "d"),
    ("hour", "h"),
    ("hours", "h"),
    ("hr", "h"),
    ("hrs", "h"),
    ("min", "m"),
    ("mins", "m"),
    ("minute", "m"),
    ("minutes", "m"),
    ("sec", "s"),
    ("secs", "s"),
    ("second", "s"),
    ("seconds", "s"),
    ("msec", "ms"),
];

/// Parses a duration: whole numbers, each with a unit (`d`, `h`, `m`, `s`, `ms`), larger units
/// first.
///
/// # Errors
/// A message that quotes the text and gives an example or the likely meaning.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let quoted = || text.chars().take(40).filter(|char| !char.is_control()).collect::<String>();
    let wrong = |why: &str| format!("`{}` {why}", quoted());
    let unlike = || match likely_meaning(text) {
        Some(meant) => wrong(&format!("is not a duration: write `{meant}`")),
        None => {
            wrong("is not a duration: write e.g. `90s`, `15m` or `1h30m`; the units are `d`, `h`, `m`, `s` and `ms`")
        }
    };
    let not_positive = || Err(wrong("must be longer than zero: write e.g. `90s`"));
    if text.strip_prefix('-').is_some_and(|rest| rest.starts_with(|char: char| char.is_ascii_digit())) {
        return not_positive();
    }
    let (mut rest, mut total, mut largest) = (text, 0u64, u64::MAX);
    while !rest.is_empty() {
        let (digits, after) = rest.split_at(rest.find(|char: char| !char.is_ascii_digit()).unwrap_or(rest.len()));
        let (unit, after) = after.split_at(after.find(|char: char| char.is_ascii_digit()).unwrap_or(after.len()));
        if digits.is_empty() {
            return Err(unlike());
        }
        if digits.len() == text.len() {
            return Err(format!("`{0}` has no unit: write `{0}s`, `{0}m` or `{0}h`", quoted()));
        }
        let Some((_, factor)) = UNITS.iter().find(|(name, _)| *name == unit) else { return Err(unlike()) };
        if *factor >= largest {
            return Err(wrong("has its units out of order: write the larger unit first, e.g. `1h30m`"));
        }
        let part = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(*factor));
        total = part
            .and_then(|part| total.checked_add(part))
            .ok_or_else(|| wrong("is too long: write e.g. `90s`, `15m` or `1h30m`"))?;
        (rest, largest) = (after, *factor);
    }
    match total {
        0 if text.is_empty() => Err("a duration cannot be empty: write e.g. `90s`, `15m` or `1h30m`".into()),
        0 => not_positive(),
        total => Ok(Duration::from_millis(total)),
    }
}

/// Returns the duration that a text such as `10 minutes`, `1h30` or `1.5h` means, as it is written.
fn likely_meaning(text: &str) -> Option<String> {
    const LONGEST: usize = 40;
    if text.len() > LONGEST || !text.is_ascii() {
        return None;
    }
    let (mut parts, mut rest) = (Vec::new(), text.trim().trim_start_matches("PT"));
    while !rest.is_empty() {
        let (number, after) = rest.split_at(rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len()));
        let (word, after) = after.split_at(after.find(|c: char| c.is_ascii_digit()).unwrap_or(after.len()));
        let word = word.trim().trim_end_matches([',', ' ']).trim_end_matches(" and").to_lowercase();
        parts.push((
            number,
            WORDS.iter().find(|(other, _)| *other == word).map_or(word, |(_, unit)| (*unit).to_owned()),
        ));
        rest = after;
    }
    // A last number without a unit has the next smaller one, as in `1h30`.
    let before = parts.len().checked_sub(2).and_then(|at| UNITS.iter().position(|(unit, _)| *unit == parts[at].1));
    if let (Some(before), Some((_, last))) = (before, parts.last_mut().filter(|(_, unit)| unit.is_empty())) {
        *last = UNITS.get(before + 1)?.0.to_owned();
    }
    let part = |(number, unit): &(&str, String)| {
        let (_, factor) = UNITS.iter().find(|(name, _)| name == unit)?;
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        let scale = 10u64.checked_pow(u32::try_from(fraction.len()).ok()?)?;
        let number = format!("{whole}{fraction}").parse::<u64>().ok()?.checked_mul(*factor)?;
        (number % scale == 0).then_some(number / scale)
    };
    let total = parts.iter().map(part).try_fold(0u64, |sum, part| sum.checked_add(part?))?;
    (total > 0).then(|| show_duration(Duration::from_millis(total)))
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
            ("90", "`90` has no unit: write `90s`, `90m` or `90h`"),
            ("", "a duration cannot be empty: write e.g. `90s`, `15m` or `1h30m`"),
            (
                "soon",
                "`soon` is not a duration: write e.g. `90s`, `15m` or `1h30m`; the units are `d`, `h`, `m`, `s` and `ms`",
            ),
            ("-5s", "`-5s` must be longer than zero: write e.g. `90s`"),
            (
                "--5s",
                "`--5s` is not a duration: write e.g. `90s`, `15m` or `1h30m`; the units are `d`, `h`, `m`, `s` and `ms`",
            ),
            (
                "5x",
                "`5x` is not a duration: write e.g. `90s`, `15m` or `1h30m`; the units are `d`, `h`, `m`, `s` and `ms`",
            ),
            ("10 minutes", "`10 minutes` is not a duration: write `10m`"),
            ("2 hours and 5 min", "`2 hours and 5 min` is not a duration: write `2h5m`"),
            ("1h30", "`1h30` is not a duration: write `1h30m`"),
            ("1.5h", "`1.5h` is not a duration: write `1h30m`"),
            ("5 m", "`5 m` is not a duration: write `5m`"),
            ("5M", "`5M` is not a duration: write `5m`"),
            ("30m1h", "`30m1h` has its units out of order: write the larger unit first, e.g. `1h30m`"),
            ("1m1m", "`1m1m` has its units out of order: write the larger unit first, e.g. `1h30m`"),
            ("0s", "`0s` must be longer than zero: write e.g. `90s`"),
            ("99999999999999d", "`99999999999999d` is too long: write e.g. `90s`, `15m` or `1h30m`"),
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
