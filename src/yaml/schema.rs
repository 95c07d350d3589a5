//! JSON Schemas for editors that describe the values of a [`TableReader`](super::Table): one
//! function for each method of `TableReader`, and maps made of rows.
//!
//! A schema may accept more than its reader, which can check more. A schema never refuses what the
//! reader accepts.

use serde_json::{Map, Value, json};
use std::ops::RangeInclusive;

/// The JSON Schema dialect of all schemas.
pub(crate) const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";

/// A key, the schema of its value, and its description.
pub(crate) type KeyRow = (&'static str, Value, &'static str);

/// Builds a whole document from its name, title, description, and the schema of its root.
pub(crate) fn document(name: &str, title: &str, description: &str, root: Value) -> Value {
    let mut all = json!({ "$schema": DIALECT, "$id": format!("urn:fledge:schema:{name}"), "title": title, "description": description });
    if let (Some(all), Value::Object(root)) = (all.as_object_mut(), root) {
        all.extend(root);
    }
    all
}

/// Describes a map with exactly these keys.
pub(crate) fn map(rows: impl IntoIterator<Item = KeyRow>) -> Value {
    let properties: Map<String, Value> =
        rows.into_iter().map(|(key, takes, what)| (key.into(), with_description(takes, what))).collect();
    json!({ "type": "object", "additionalProperties": false, "properties": properties })
}

/// Describes a map with exactly these keys, some of them required.
pub(crate) fn map_with(required: &[&str], rows: impl IntoIterator<Item = KeyRow>) -> Value {
    with(map(rows), json!({ "required": required }))
}

/// Describes a map from any name to `value`.
pub(crate) fn names_to(value: Value) -> Value {
    json!({ "type": "object", "additionalProperties": value })
}

/// Adds fields to a schema.
pub(crate) fn with(mut schema: Value, more: Value) -> Value {
    if let (Some(schema), Value::Object(more)) = (schema.as_object_mut(), more) {
        schema.extend(more);
    }
    schema
}

/// Adds an example value for editors.
pub(crate) fn like(schema: Value, example: impl Into<Value>) -> Value {
    with(schema, json!({ "examples": [example.into()] }))
}

fn with_description(schema: Value, what: &str) -> Value {
    with(schema, json!({ "description": what }))
}

/// Schema of [`TableReader::text`](super::Table::text).
pub(crate) fn text() -> Value {
    json!({ "type": "string", "pattern": "\\S" })
}

/// Schema of [`TableReader::any_text`](super::Table::any_text).
pub(crate) fn any_text() -> Value {
    json!({ "type": "string" })
}

/// Schema of [`TableReader::flag`](super::Table::flag).
pub(crate) fn flag() -> Value {
    json!({ "type": "boolean" })
}

/// Schema of [`TableReader::int`](super::Table::int).
pub(crate) fn int(range: RangeInclusive<i64>) -> Value {
    let schema = json!({ "type": "integer", "minimum": range.start() });
    if *range.end() == i64::MAX { schema } else { with(schema, json!({ "maximum": range.end() })) }
}

/// Schema of [`TableReader::duration`](super::Table::duration).
pub(crate) fn duration() -> Value {
    let pattern = "^([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?([0-9]+ms)?$";
    like(json!({ "type": "string", "minLength": 2, "pattern": pattern }), "15m")
}

/// Schema of [`TableReader::dollars`](super::Table::dollars).
pub(crate) fn dollars() -> Value {
    like(json!({ "type": "number", "minimum": 0 }), 2.5)
}

/// Schema of [`TableReader::one_of`](super::Table::one_of).
pub(crate) fn one_of<T>(words: &[(&str, T)]) -> Value {
    word_of(words.iter().map(|(word, _)| *word))
}

/// Describes a choice of words.
pub(crate) fn word_of<'a>(words: impl IntoIterator<Item = &'a str>) -> Value {
    json!({ "enum": words.into_iter().collect::<Vec<_>>() })
}

/// Schema of [`TableReader::texts`](super::Table::texts), with an example item.
pub(crate) fn texts(example: &str) -> Value {
    json!({ "type": "array", "items": like(text(), example) })
}

/// Schema of a list of at least one text, with an example item.
pub(crate) fn some_texts(example: &str) -> Value {
    with(texts(example), json!({ "minItems": 1 }))
}

/// Schema of [`TableReader::text_or_texts`](super::Table::text_or_texts), with an example text.
pub(crate) fn text_or_texts(example: &str) -> Value {
    any_of([like(text(), example), some_texts(example)])
}

/// Schema of [`TableReader::map_of_text`](super::Table::map_of_text).
pub(crate) fn map_of_text() -> Value {
    names_to(any_text())
}

/// Describes a choice of schemas.
pub(crate) fn any_of(schemas: impl IntoIterator<Item = Value>) -> Value {
    json!({ "anyOf": schemas.into_iter().collect::<Vec<_>>() })
}

/// Refers to a definition of this name in `$defs` of the root.
pub(crate) fn defined(name: &str) -> Value {
    json!({ "$ref": format!("#/$defs/{name}") })
}
