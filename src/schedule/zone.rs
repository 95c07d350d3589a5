//! Lookup of time zones by name.

use super::ScheduleError;
use jiff::tz::{TimeZone, db};

/// The largest edit distance of a suggested name.
const NEAR: usize = 3;
/// The maximum number of names that are suggested.
const TOLD: usize = 2;

/// Returns the time zone with this name, in any case.
pub(super) fn named(name: &str) -> Result<TimeZone, ScheduleError> {
    match db().get(name) {
        Ok(zone) if zone.iana_name().is_some() => Ok(zone),
        Ok(_) | Err(_) => Err(ScheduleError::Zone { name: name.chars().take(40).collect(), near: near(name) }),
    }
}

/// Returns known names that resemble this name as a whole or by their city, since `Berlin` means a
/// city.
fn near(name: &str) -> Vec<String> {
    let asked = name.to_ascii_lowercase().replace([' ', '-'], "_");
    let distance = |known: &str| {
        let known = known.to_ascii_lowercase();
        let city = known.rsplit('/').next().unwrap_or(&known);
        let of = |known: &str| strsim::damerau_levenshtein(known, &asked);
        of(&known).min(of(city)).min(if asked.contains('/') { usize::MAX } else { of(city) })
    };
    let mut known: Vec<(usize, String)> =
        db().available().map(|zone| (distance(zone.as_str()), zone.as_str().to_owned())).collect();
    known.retain(|(distance, _)| *distance <= NEAR.min(asked.len() / 2));
    known.sort();
    known.into_iter().take(TOLD).map(|(_, name)| name).collect()
}
