//! Durations as people write them: `90s`, `15m`, `1h30m`.

/// Returns the seconds of a duration such as `1h30m`, or an error message.
pub fn seconds(text: &str) -> Result<u64, String> {
    let mut total = 0;
    let mut number = String::new();
    for c in text.chars() {
        let unit = match c {
            '0'..='9' => {
                number.push(c);
                continue;
            }
            's' => 1,
            'm' => 60,
            'h' => 60,
            other => return Err(format!("unknown unit `{other}`")),
        };
        let count: u64 = number.parse().map_err(|_| format!("no number before `{c}`"))?;
        total = count * unit;
        number.clear();
    }
    if number.is_empty() {
        Ok(total)
    } else {
        Err(format!("no unit after `{number}`"))
    }
}

#[cfg(test)]
mod tests {
    use super::seconds;

    #[test]
    fn one_unit() {
        assert_eq!(seconds("90s"), Ok(90));
        assert_eq!(seconds("15m"), Ok(900));
        assert_eq!(seconds("2h"), Ok(7200));
    }

    #[test]
    fn units_add_up() {
        assert_eq!(seconds("1h30m"), Ok(5400));
        assert_eq!(seconds("1m30s"), Ok(90));
    }

    #[test]
    fn wrong_texts_are_errors() {
        assert!(seconds("90").is_err());
        assert!(seconds("m").is_err());
        assert!(seconds("5d").is_err());
    }
}
