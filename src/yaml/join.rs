//! Values joined with their places. The code walks both trees side by side; a difference is an
//! error.

use super::marks::{Mark, Shape};
use super::problem::{Place, Problem, excerpt};
use super::{Key, Node, Value};
use serde_yaml::Value as Yaml;

/// Builds the nodes of the document; `mark` is the shape of `text`.
pub(super) fn join(mark: &Mark, text: &str, first_line: usize) -> Result<Node, Problem> {
    let yaml: Yaml = serde_yaml::from_str(text).map_err(|error| {
        let (line, column) = error.location().map_or((1, 1), |found| (found.line().max(1), found.column().max(1)));
        let message = error.to_string(); // ends in a place that counts from the wrong line
        let message = message.split(" at line ").next().unwrap_or("");
        super::not_yaml(message, Place { line: line + first_line - 1, column }, text, first_line)
    })?;
    node(mark, yaml)
}

fn node(mark: &Mark, yaml: Yaml) -> Result<Node, Problem> {
    let value = match (&mark.shape, yaml) {
        (Shape::Scalar { text, .. }, Yaml::String(string)) if *text == string => Value::Text(string),
        (Shape::Scalar { text, plain: true }, yaml @ (Yaml::Null | Yaml::Bool(_) | Yaml::Number(_))) => {
            scalar(mark.place, text, &yaml)?
        }
        (Shape::List(marks), Yaml::Sequence(items)) if marks.len() == items.len() => {
            Value::List(marks.iter().zip(items).map(|(mark, item)| node(mark, item)).collect::<Result<_, _>>()?)
        }
        (Shape::Map(marks), Yaml::Mapping(entries)) if marks.len() == entries.len() => {
            let entry =
                |((mark, value), (key, item)): (&(Mark, Mark), _)| Ok((self::key(mark, key)?, node(value, item)?));
            Value::Map(marks.iter().zip(entries).map(entry).collect::<Result<_, _>>()?)
        }
        _ => return Err(ambiguous(mark.place)),
    };
    Ok(Node { place: mark.place, value })
}

fn key(mark: &Mark, yaml: Yaml) -> Result<Key, Problem> {
    let node = node(mark, yaml)?;
    if let Some(text) = node.as_text() {
        return Ok(Key { text: text.into(), place: mark.place });
    }
    let message = format!("expected a key that is text, found {}", node.describe());
    Err(Problem::at(mark.place, message).hint("write the key in quotes"))
}

/// Reads a scalar that is not a text. `text`, from the other parser, must mean the same value.
fn scalar(place: Place, text: &str, yaml: &Yaml) -> Result<Value, Problem> {
    let out_of_range = || {
        Problem::at(place, format!("the number {} cannot be held exactly", excerpt(text)))
            .hint("write it in quotes if it is text")
    };
    let value = match yaml {
        Yaml::Null => Value::Null,
        Yaml::Bool(flag) => Value::Bool(*flag),
        Yaml::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(int), _) => Value::Int(int),
            (None, Some(float)) if number.is_f64() && float.is_finite() => Value::Float(float),
            (None, _) => return Err(out_of_range()),
        },
        Yaml::String(_) | Yaml::Sequence(_) | Yaml::Mapping(_) | Yaml::Tagged(_) => return Err(ambiguous(place)),
    };
    match serde_yaml::from_str::<Yaml>(text) {
        Ok(again) if again == *yaml => Ok(value),
        Ok(_) | Err(_) => Err(ambiguous(place)),
    }
}

fn ambiguous(place: Place) -> Problem {
    Problem::at(place, "YAML parsers read this value in different ways").hint("write this value in quotes")
}
