//! What a [`Table`](super::Table) takes, as a JSON Schema says it to editors: one function a taker, and maps made of rows. A schema may be
//! wider than its reader, which says more of a value than a schema can; it never refuses what the reader takes.

use serde_json::{Map, Value, json};
use std::ops::RangeInclusive;

/// The dialect that all schemas are written in.
pub(crate) const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";

/// A key, what it takes, and what it is for.
pub(crate) type Row = (&'static str, Value, &'static str);

/// A whole document: its name, its title, what it is, and the schema of its root.
pub(crate) fn document(name: &str, title: &str, description: &str, root: Value) -> Value {
    let mut all = json!({ "$schema": DIALECT, "$id": format!("urn:fledge:schema:{name}"), "title": title, "description": description });
    if let (Some(all), Value::Object(root)) = (all.as_object_mut(), root) {
        all.extend(root);
    }
    all
}

/// A map with these keys and no others.
pub(crate) fn map(rows: impl IntoIterator<Item = Row>) -> Value {
    let properties: Map<String, Value> =
        rows.into_iter().map(|(key, takes, what)| (key.into(), said(takes, what))).collect();
    json!({ "type": "object", "additionalProperties": false, "properties": properties })
}

/// A map with these keys and no others, of which some must be there.
pub(crate) fn map_with(required: &[&str], rows: impl IntoIterator<Item = Row>) -> Value {
    with(map(rows), json!({ "required": required }))
}

/// A map from names to such values.
pub(crate) fn names_to(value: Value) -> Value {
    json!({ "type": "object", "additionalProperties": value })
}

/// The same with more of what a schema says.
pub(crate) fn with(mut schema: Value, more: Value) -> Value {
    if let (Some(schema), Value::Object(more)) = (schema.as_object_mut(), more) {
        schema.extend(more);
    }
    schema
}

/// The same, with a text that stands for it in an editor.
pub(crate) fn like(schema: Value, example: impl Into<Value>) -> Value {
    with(schema, json!({ "examples": [example.into()] }))
}

fn said(schema: Value, what: &str) -> Value {
    with(schema, json!({ "description": what }))
}

/// [`Table::text`](super::Table::text).
pub(crate) fn text() -> Value {
    json!({ "type": "string", "pattern": "\\S" })
}

/// [`Table::any_text`](super::Table::any_text).
pub(crate) fn any_text() -> Value {
    json!({ "type": "string" })
}

/// [`Table::flag`](super::Table::flag).
pub(crate) fn flag() -> Value {
    json!({ "type": "boolean" })
}

/// [`Table::int`](super::Table::int).
pub(crate) fn int(range: RangeInclusive<i64>) -> Value {
    let schema = json!({ "type": "integer", "minimum": range.start() });
    if *range.end() == i64::MAX { schema } else { with(schema, json!({ "maximum": range.end() })) }
}

/// [`Table::duration`](super::Table::duration).
pub(crate) fn duration() -> Value {
    let pattern = "^([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?([0-9]+ms)?$";
    like(json!({ "type": "string", "minLength": 2, "pattern": pattern }), "15m")
}

/// [`Table::dollars`](super::Table::dollars).
pub(crate) fn dollars() -> Value {
    like(json!({ "type": "number", "minimum": 0 }), 2.5)
}

/// [`Table::one_of`](super::Table::one_of).
pub(crate) fn one_of<T>(words: &[(&str, T)]) -> Value {
    word_of(words.iter().map(|(word, _)| *word))
}

/// One of some words.
pub(crate) fn word_of<'a>(words: impl IntoIterator<Item = &'a str>) -> Value {
    json!({ "enum": words.into_iter().collect::<Vec<_>>() })
}

/// [`Table::texts`](super::Table::texts), with such an item for an example.
pub(crate) fn texts(example: &str) -> Value {
    json!({ "type": "array", "items": like(text(), example) })
}

/// The same, with one at least.
pub(crate) fn some_texts(example: &str) -> Value {
    with(texts(example), json!({ "minItems": 1 }))
}

/// [`Table::text_or_texts`](super::Table::text_or_texts), with such a text for an example.
pub(crate) fn text_or_texts(example: &str) -> Value {
    any_of([like(text(), example), some_texts(example)])
}

/// [`Table::map_of_text`](super::Table::map_of_text).
pub(crate) fn map_of_text() -> Value {
    names_to(any_text())
}

/// One of several.
pub(crate) fn any_of(schemas: impl IntoIterator<Item = Value>) -> Value {
    json!({ "anyOf": schemas.into_iter().collect::<Vec<_>>() })
}

/// What is defined under this name, beside the root.
pub(crate) fn defined(name: &str) -> Value {
    json!({ "$ref": format!("#/$defs/{name}") })
}
