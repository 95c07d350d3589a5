//! Checks of the program's output in the tests against the printed schemas, which must name every
//! field.

use jsonschema::Validator;
use serde_json::{Value, json};
use std::sync::LazyLock;

static REPORT: LazyLock<Validator> = LazyLock::new(|| closed("report"));
static EVENT: LazyLock<Validator> = LazyLock::new(|| closed("event"));
static BATCH_REPORT: LazyLock<Validator> = LazyLock::new(|| closed("batch-report"));
static BATCH_EVENT: LazyLock<Validator> = LazyLock::new(|| closed("batch-event"));
static EVAL_REPORT: LazyLock<Validator> = LazyLock::new(|| closed("eval-report"));

/// Insists that a report matches its schema.
#[track_caller]
pub(crate) fn must_be_report(report: &Value) {
    must_fit(&REPORT, report);
}

/// Insists that the report of a batch matches its schema.
#[track_caller]
pub(crate) fn must_be_batch_report(report: &Value) {
    must_fit(&BATCH_REPORT, report);
}

/// Insists that the report of an evaluation matches its schema.
#[track_caller]
pub(crate) fn must_be_eval_report(report: &Value) {
    must_fit(&EVAL_REPORT, report);
}

/// Insists that a line of `--json` matches its schema, if it is an event of a run or of a batch.
#[track_caller]
pub(crate) fn must_be_event(event: &Value) {
    if event["seq"].is_u64() {
        must_fit(&EVENT, event);
    } else if event["batch"].is_string() && event["type"].is_string() {
        must_fit(&BATCH_EVENT, event);
    }
}

/// Insists that a value matches a schema, which must name every field.
#[track_caller]
pub(crate) fn must_fit_closed(mut schema: Value, value: &Value) {
    close(&mut schema);
    must_fit(&jsonschema::draft202012::new(&schema).unwrap(), value);
}

#[track_caller]
fn must_fit(schema: &Validator, value: &Value) {
    let wrong: Vec<String> =
        schema.iter_errors(value).map(|error| format!("{}: {error}", error.instance_path())).collect();
    assert!(wrong.is_empty(), "not as the printed schema says: {wrong:#?}\n{value:#}");
}

/// Returns a printed schema, changed to reject fields that it does not name.
fn closed(name: &str) -> Validator {
    let path = format!("{}/specs/generated/schemas/{name}.json", env!("CARGO_MANIFEST_DIR"));
    let mut schema: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    close(&mut schema);
    jsonschema::draft202012::new(&schema).unwrap()
}

fn close(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            fields.values_mut().for_each(close);
            if fields.contains_key("properties")
                && fields.get("type") == Some(&json!("object"))
                && !fields.contains_key("additionalProperties")
            {
                // The fields of a schema with `oneOf` are shared by its variants, which do not know
                // each other's fields.
                let is_whole = fields.contains_key("oneOf");
                let key = if is_whole { "unevaluatedProperties" } else { "additionalProperties" };
                let is_variant = fields
                    .get("properties")
                    .is_some_and(|own| own.get("type").is_some_and(|kind| kind.get("const").is_some()));
                if !is_variant {
                    fields.insert(key.into(), json!(false));
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(close),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
