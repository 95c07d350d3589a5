//! Final answers that must fit a JSON Schema: extraction from the model's text, and validation.

use crate::chat::is_shallow;
use jsonschema::{PatternOptions, Validator};
use serde_json::Value;

/// The maximum number of faults that a message lists; the rest are only counted.
const NAMED: usize = 10;

/// Returns the error in a JSON Schema, or `None` if it is valid. fledge fetches no references: the
/// schema must contain every schema that it refers to.
pub fn schema_fault(schema: &Value) -> Option<String> {
    compiled(schema).err()
}

/// Returns the JSON value in the text, or a message with all of its faults.
pub(super) fn judge(schema: &Value, text: &str) -> Result<Value, String> {
    let value = value_in(text)?;
    let validator = compiled(schema)?;
    let mut faults: Vec<String> = validator
        .iter_errors(&value)
        .map(|fault| match fault.instance_path().as_str() {
            "" => format!("- {fault}"),
            place => format!("- at {place}: {fault}"),
        })
        .collect();
    faults.sort();
    if faults.is_empty() {
        return Ok(value);
    }
    let more = faults.len().saturating_sub(NAMED);
    faults.truncate(NAMED);
    if more > 0 {
        faults.push(format!("- and {more} more"));
    }
    Err(format!("it does not match the schema:\n{}", faults.join("\n")))
}

/// Compiles a schema. The `regex` engine takes time linear in the text, for any pattern.
fn compiled(schema: &Value) -> Result<Validator, String> {
    let options = jsonschema::options().with_pattern_options(PatternOptions::regex());
    options.build(schema).map_err(|fault| fault.to_string())
}

/// Returns the JSON in an answer: its last fenced block if the answer ends with one, or the whole
/// text.
fn value_in(text: &str) -> Result<Value, String> {
    let json = fenced(text).unwrap_or_else(|| text.trim());
    let value: Value = serde_json::from_str(json).map_err(|error| format!("it is not JSON: {error}"))?;
    if is_shallow(&value) { Ok(value) } else { Err("it is nested too deeply".into()) }
}

fn fenced(text: &str) -> Option<&str> {
    let (before, last) = text.trim().strip_suffix("```")?.rsplit_once("```")?;
    let begins_a_line = before.is_empty() || before.ends_with('\n');
    let (language, json) = last.split_once('\n')?;
    (begins_a_line && matches!(language.trim(), "" | "json" | "JSON")).then(|| json.trim())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn schema() -> Value {
        json!({
            "type": "object",
            "required": ["verdict", "files"],
            "properties": {
                "verdict": { "enum": ["good", "bad"] },
                "files": { "type": "array", "items": { "type": "string", "pattern": "^src/" } },
            },
        })
    }

    #[test]
    fn an_answer_is_taken_bare_or_from_its_last_fenced_block() {
        let json = r#"{"verdict": "good", "files": []}"#;
        for text in [
            json.to_owned(),
            format!("  {json}\n"),
            format!("```json\n{json}\n```"),
            format!("First:\n```\nls\n```\nThat is it:\n\n```\n{json}\n```\n"),
        ] {
            assert_eq!(judge(&schema(), &text), Ok(json!({"verdict": "good", "files": []})), "{text}");
        }
        for text in
            ["Done.", "", "```rust\n{}\n```", "{\"verdict\":", "{} {}", "Here: {}", "```json\n{}\n``` that is it"]
        {
            assert!(judge(&schema(), text).is_err_and(|why| why.starts_with("it is not JSON: ")), "{text}");
        }
        let deep = format!("{}{}", "[".repeat(100), "]".repeat(100));
        assert_eq!(judge(&json!(true), &deep), Err("it is nested too deeply".into()));
    }

    #[test]
    fn what_does_not_fit_is_said_with_its_place() {
        let wrong = judge(&schema(), r#"{"verdict": "fine", "files": ["src/a.rs", 5, "b.rs"]}"#).unwrap_err();
        assert_eq!(
            wrong,
            "it does not match the schema:\n\
             - at /files/1: 5 is not of type \"string\"\n\
             - at /files/2: \"b.rs\" does not match \"^src/\"\n\
             - at /verdict: \"fine\" is not one of \"good\" or \"bad\""
        );
        let many: Vec<u8> = vec![1; 30];
        let wrong = judge(&json!({"items": {"type": "string"}}), &json!(many).to_string()).unwrap_err();
        assert!(wrong.ends_with("\n- and 20 more"), "{wrong}");
    }

    #[test]
    fn a_schema_that_is_none_or_not_whole_is_found_out_before_it_is_used() {
        assert_eq!(schema_fault(&schema()), None);
        for wrong in [
            json!({"type": "objekt"}),
            json!({"required": "verdict"}),
            json!({"$ref": "https://example.com/other.json"}),
            json!({"$ref": "other.json"}),
            json!({"$ref": "#/$defs/none"}),
            json!({"pattern": "(a)\\1"}),
            json!(5),
        ] {
            assert!(schema_fault(&wrong).is_some(), "{wrong}");
        }
    }

    #[test]
    fn a_pattern_takes_no_time_on_a_text_that_is_made_for_it() {
        let schema = json!({"pattern": "^(a+)+$"});
        assert!(judge(&schema, &json!(format!("{}!", "a".repeat(50_000))).to_string()).is_err());
    }
}
