//! TOML as a tree of `serde_json` values, for readers of other tools' files.

use ::toml::Spanned;
use ::toml::de::{DeTable, DeValue};
use serde_json::{Map, Value};

/// Parses a TOML document into a tree. `None` if the text is not TOML. Numbers and dates are texts.
pub fn parse_toml(text: &str) -> Option<Value> {
    let table = DeTable::parse(text.strip_prefix('\u{feff}').unwrap_or(text)).ok()?;
    Some(table_of(table.get_ref()))
}

fn table_of(table: &DeTable<'_>) -> Value {
    let entry = |(key, value): (_, &Spanned<DeValue<'_>>)| (key, value_of(value.get_ref()));
    table.iter().map(|(key, value)| entry((key.get_ref().to_string(), value))).collect::<Map<_, _>>().into()
}

fn value_of(value: &DeValue<'_>) -> Value {
    match value {
        DeValue::String(text) => text.to_string().into(),
        DeValue::Boolean(flag) => (*flag).into(),
        DeValue::Integer(number) => number.as_str().into(),
        DeValue::Float(number) => number.as_str().into(),
        DeValue::Datetime(date) => date.to_string().into(),
        DeValue::Array(items) => items.iter().map(|item| value_of(item.get_ref())).collect(),
        DeValue::Table(table) => table_of(table),
    }
}
