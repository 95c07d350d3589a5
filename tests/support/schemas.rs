//! The schemas of what the program gives out, held against all that it gives out in these tests: nothing is missing in them.

use jsonschema::Validator;
use serde_json::{Value, json};
use std::sync::LazyLock;

static REPORT: LazyLock<Validator> = LazyLock::new(|| closed("report"));
static EVENT: LazyLock<Validator> = LazyLock::new(|| closed("event"));
static BATCH_REPORT: LazyLock<Validator> = LazyLock::new(|| closed("batch-report"));
static BATCH_EVENT: LazyLock<Validator> = LazyLock::new(|| closed("batch-event"));
static EVAL_REPORT: LazyLock<Validator> = LazyLock::new(|| closed("eval-report"));

/// Insists that a report is as its schema says.
#[track_caller]
pub(crate) fn must_be_report(report: &Value) {
    must_fit(&REPORT, report);
}

/// The same of what many runs came to.
#[track_caller]
pub(crate) fn must_be_batch_report(report: &Value) {
    must_fit(&BATCH_REPORT, report);
}

/// The same of an evaluation.
#[track_caller]
pub(crate) fn must_be_eval_report(report: &Value) {
    must_fit(&EVAL_REPORT, report);
}

/// Insists that a line of `--json` is as its schema says, where it is the event of a run or of a batch.
#[track_caller]
pub(crate) fn must_be_event(event: &Value) {
    if event["seq"].is_u64() {
        must_fit(&EVENT, event);
    } else if event["batch"].is_string() && event["type"].is_string() {
        must_fit(&BATCH_EVENT, event);
    }
}

#[track_caller]
fn must_fit(schema: &Validator, value: &Value) {
    let wrong: Vec<String> =
        schema.iter_errors(value).map(|error| format!("{}: {error}", error.instance_path())).collect();
    assert!(wrong.is_empty(), "not as the printed schema says: {wrong:#?}\n{value:#}");
}

/// A printed schema in which nothing is allowed that it does not name.
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
                // What is said of a whole is said of its variants too, and these would not know each other's parts.
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
