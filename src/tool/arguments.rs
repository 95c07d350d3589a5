//! Strict parsing of tool-call arguments. A failure quotes the schema, so the model can correct
//! itself.

use super::ToolError;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Parses the arguments of `tool`.
///
/// # Errors
/// [`ToolError::Arguments`], with the problem and the arguments that the tool takes.
pub(super) fn parse<T: DeserializeOwned>(tool: &'static str, schema: &Value, input: &Value) -> Result<T, ToolError> {
    T::deserialize(input).map_err(|error| ToolError::Arguments {
        tool,
        problem: misfit(schema, input).unwrap_or_else(|| error.to_string()),
        expected: expected(schema),
    })
}

/// Describes the first argument with a wrong type. The errors of serde do not name the argument.
fn misfit(schema: &Value, input: &Value) -> Option<String> {
    let Value::Object(given) = input else {
        return Some(format!("expected a JSON object, found {}", kind(input)));
    };
    let properties = schema["properties"].as_object()?;
    given.iter().find_map(|(name, value)| {
        let property = properties.get(name)?;
        let least = property["minimum"].as_u64().unwrap_or(0);
        let (fits, wanted) = match property["type"].as_str()? {
            "integer" => {
                (value.as_u64().is_some_and(|number| number >= least), format!("a whole number of at least {least}"))
            }
            wanted => (kind(value) == wanted, format!("a {wanted}")),
        };
        (!fits).then(|| format!("`{name}` must be {wanted}, found {}", super::bound::line(&value.to_string(), 40)))
    })
}

/// Formats the schema briefly: `{path: string, limit?: integer}`.
fn expected(schema: &Value) -> String {
    let required: Vec<&str> = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let (mut first, mut rest) = (Vec::new(), Vec::new());
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let kind = property["type"].as_str().unwrap_or("value");
        match required.contains(&name.as_str()) {
            true => first.push(format!("{name}: {kind}")),
            false => rest.push(format!("{name}?: {kind}")),
        }
    }
    first.append(&mut rest);
    format!("{{{}}}", first.join(", "))
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
