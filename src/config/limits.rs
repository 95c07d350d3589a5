//! The parser of `limits`, the resource limits of programs in a sandbox, and of sizes in bytes as
//! people write them.

use crate::process::sandbox::SandboxLimits;
use crate::yaml::{Problem, Problems, TableReader};

/// The minimum number of processes with which tools work, and the maximum that fledge relies on.
pub(super) const PROCESSES: std::ops::RangeInclusive<i64> = 16..=1_000_000;
/// The smallest limit on memory and on the size of a file, in bytes.
const LEAST: u64 = 16 << 20;

/// The limits of one file; `None` if the file does not set one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct LimitSettings {
    processes: Option<u64>,
    memory: Option<u64>,
    file_size: Option<u64>,
}

impl LimitSettings {
    /// Returns the limits, with those of `before` where this file sets none.
    pub(super) fn or_else(self, before: SandboxLimits) -> SandboxLimits {
        SandboxLimits {
            processes: self.processes.or(before.processes),
            memory: self.memory.or(before.memory),
            file_size: self.file_size.or(before.file_size),
        }
    }
}

pub(super) fn limits(table: &mut TableReader<'_>, problems: &mut Problems) -> LimitSettings {
    let Some(mut table) = table.take("limits").and_then(|node| TableReader::open(node, "`limits`", problems)) else {
        return LimitSettings::default();
    };
    let processes = table.int("processes", PROCESSES, problems).and_then(|count| u64::try_from(count).ok());
    let memory = size(&mut table, "memory", problems);
    let file_size = size(&mut table, "file_size", problems);
    table.finish(problems);
    LimitSettings { processes, memory, file_size }
}

fn size(table: &mut TableReader<'_>, key: &'static str, problems: &mut Problems) -> Option<u64> {
    let place = table.place_of(key);
    let text = table.text(key, problems)?;
    let size =
        parse_size(text).and_then(|size| if size < LEAST { Err(format!("`{text}` is too small")) } else { Ok(size) });
    match (size, place) {
        (Ok(size), _) => Some(size),
        (Err(why), Some(place)) => {
            problems.push(Problem::at(place, format!("`{key}`: {why}")).hint("write at least `16MiB`, e.g. `4GiB`"));
            None
        }
        (Err(_), None) => None,
    }
}

/// Units of a size, and their bytes.
const UNITS: [(&str, u64); 7] = [
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("KB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("B", 1),
];

/// Parses a size in bytes, such as `200MB`, `1GiB` or `4096`.
pub(crate) fn parse_size(text: &str) -> Result<u64, String> {
    let unit = UNITS.iter().find_map(|(unit, factor)| Some((text.strip_suffix(unit)?, *factor)));
    let (number, factor) = unit.unwrap_or((text, 1));
    let number = number.parse::<u64>().map_err(|_| format!("invalid size `{text}`: write e.g. `200MB` or `1GiB`"));
    number?.checked_mul(factor).ok_or_else(|| format!("`{text}` is too large"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        let sizes = ["0", "12B", "200MB", "1GiB", "3KB"].map(parse_size);
        assert_eq!(sizes, [0, 12, 200_000_000, 1 << 30, 3_000].map(Ok));
        for text in ["", "MB", "1.5GB", "-1", "1 GB", "1gb", "1TB"] {
            assert_eq!(parse_size(text), Err(format!("invalid size `{text}`: write e.g. `200MB` or `1GiB`")));
        }
        assert_eq!(parse_size("99999999999GiB"), Err("`99999999999GiB` is too large".into()));
    }
}
