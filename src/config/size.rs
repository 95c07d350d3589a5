//! Sizes in bytes as people write them.

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
