//! Values joined with their places. The code walks both trees side by side; a difference is an
//! error.

use super::marks::{ValueMark, ValueShape};
use super::problem::{FilePlace, Problem, excerpt};
use super::{YamlKey, YamlNode, YamlValue};
use serde_yaml::Value as Yaml;

/// Builds the nodes of the document; `mark` is the shape of `text`.
pub(super) fn join(mark: &ValueMark, text: &str, first_line: usize) -> Result<YamlNode, Problem> {
    let yaml: Yaml = serde_yaml::from_str(text).map_err(|error| {
        let (line, column) = error.location().map_or((1, 1), |found| (found.line().max(1), found.column().max(1)));
        let message = error.to_string(); // ends in a place that counts from the wrong line
        let message = message.split(" at line ").next().unwrap_or("");
        super::not_yaml(message, FilePlace { line: line + first_line - 1, column }, text, first_line)
    })?;
    node(mark, yaml)
}

fn node(mark: &ValueMark, yaml: Yaml) -> Result<YamlNode, Problem> {
    let value = match (&mark.shape, yaml) {
        (ValueShape::Scalar { text, .. }, Yaml::String(string)) if *text == string => YamlValue::Text(string),
        (ValueShape::Scalar { text, plain: true }, yaml @ (Yaml::Null | Yaml::Bool(_) | Yaml::Number(_))) => {
            scalar(mark.place, text, &yaml)?
        }
        (ValueShape::List(marks), Yaml::Sequence(items)) if marks.len() == items.len() => {
            YamlValue::List(marks.iter().zip(items).map(|(mark, item)| node(mark, item)).collect::<Result<_, _>>()?)
        }
        (ValueShape::Map(marks), Yaml::Mapping(entries)) if marks.len() == entries.len() => {
            let entry = |((mark, value), (key, item)): (&(ValueMark, ValueMark), _)| {
                Ok((self::key(mark, key)?, node(value, item)?))
            };
            YamlValue::Map(marks.iter().zip(entries).map(entry).collect::<Result<_, _>>()?)
        }
        _ => return Err(ambiguous(mark.place)),
    };
    Ok(YamlNode { place: mark.place, value })
}

fn key(mark: &ValueMark, yaml: Yaml) -> Result<YamlKey, Problem> {
    let node = node(mark, yaml)?;
    if let Some(text) = node.as_text() {
        return Ok(YamlKey { text: text.into(), place: mark.place });
    }
    let message = format!("expected a key that is text, found {}", node.describe());
    Err(Problem::at(mark.place, message).hint("write the key in quotes"))
}

/// Reads a scalar that is not a text. `text`, from the other parser, must mean the same value.
fn scalar(place: FilePlace, text: &str, yaml: &Yaml) -> Result<YamlValue, Problem> {
    let out_of_range = || {
        Problem::at(place, format!("the number {} cannot be held exactly", excerpt(text)))
            .hint("write it in quotes if it is text")
    };
    let value = match yaml {
        Yaml::Null => YamlValue::Null,
        Yaml::Bool(flag) => YamlValue::Bool(*flag),
        Yaml::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(int), _) => YamlValue::Int(int),
            (None, Some(float)) if number.is_f64() && float.is_finite() => YamlValue::Float(float),
            (None, _) => return Err(out_of_range()),
        },
        Yaml::String(_) | Yaml::Sequence(_) | Yaml::Mapping(_) | Yaml::Tagged(_) => return Err(ambiguous(place)),
    };
    match serde_yaml::from_str::<Yaml>(text) {
        Ok(again) if again == *yaml => Ok(value),
        Ok(_) | Err(_) => Err(ambiguous(place)),
    }
}

fn ambiguous(place: FilePlace) -> Problem {
    Problem::at(place, "YAML parsers read this value in different ways").hint("write this value in quotes")
}
