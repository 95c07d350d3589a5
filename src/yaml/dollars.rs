//! Amounts of US dollars with decimals, read as millionths without rounding.

use super::{Problem, Problems, TableReader, YamlValue};

/// The number of decimals of a millionth.
const DECIMALS: usize = 6;

impl TableReader<'_> {
    /// Reads an amount of US dollars such as `2.50`, in millionths of a dollar.
    pub fn dollars(&mut self, key: &str, problems: &mut Problems) -> Option<u64> {
        let node = self.take(key)?;
        let written = match &node.value {
            YamlValue::Int(number) => number.to_string(),
            YamlValue::Float(number) => number.to_string(), // the shortest text of this number: the decimals as written
            YamlValue::Text(text) if micros(text).is_some() => {
                let message = format!("expected `{key}` to be an amount of US dollars, found {}", node.describe());
                problems.push(Problem::at(node.place, message).hint("write it without quotes"));
                return None;
            }
            _ => String::new(),
        };
        let amount = micros(&written);
        if amount.is_none() {
            let message =
                format!("expected `{key}` to be an amount of US dollars like `2.50`, found {}", node.describe());
            problems.push(Problem::at(node.place, message).hint("at least 0, with at most six decimals"));
        }
        amount
    }
}

/// Parses an amount of US dollars such as `2.50`, in millionths of a dollar. `None` if it is not an
/// amount.
#[cfg_attr(not(feature = "cli"), expect(dead_code, reason = "only the binary reads it"))]
pub(crate) fn parse_dollars(text: &str) -> Option<u64> {
    micros(text)
}

/// Parses a decimal number, in millionths. `None` if it is negative, too large, or has more than
/// six decimals.
fn micros(text: &str) -> Option<u64> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let is_number = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || part.len() > DECIMALS || !is_number(whole) || !is_number(part) {
        return None;
    }
    let part: u64 = format!("{part:0<DECIMALS$}").parse().ok()?;
    whole.parse::<u64>().ok()?.checked_mul(1_000_000)?.checked_add(part)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::yaml::parse;

    fn read(text: &str) -> Result<u64, String> {
        let (node, mut problems) = (parse(&format!("usd: {text}"), 1).unwrap(), Problems::default());
        let mut table = TableReader::open(&node, "the budget", &mut problems).unwrap();
        let amount = table.dollars("usd", &mut problems);
        table.finish(&mut problems);
        amount.filter(|_| problems.is_empty()).ok_or_else(|| problems.within("f"))
    }

    #[test]
    fn dollars_become_millionths_exactly() {
        let cases = [
            ("2.50", 2_500_000),
            ("0", 0),
            ("3", 3_000_000),
            ("0.1", 100_000),
            ("0.000001", 1),
            ("1e-6", 1),
            ("0.29", 290_000),
            ("1234567.654321", 1_234_567_654_321),
            (".5", 500_000),
        ];
        assert_eq!(cases.map(|(text, _)| read(text)), cases.map(|(_, wanted)| Ok(wanted)));
    }

    #[test]
    fn what_is_no_amount_of_dollars_is_refused_with_its_place() {
        for wrong in ["-1", "0.0000001", "many", "[1]", "1e300", "99999999999999", "true"] {
            let message = read(wrong).unwrap_err();
            assert!(message.starts_with("f:1:6: expected `usd` to be an amount of US dollars"), "{wrong}: {message}");
        }
        assert!(read("'2.50'").unwrap_err().ends_with("(write it without quotes)"));
    }
}
