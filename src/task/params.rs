//! Parameters: declarations, values, and `{{ name }}` in the text of a task. An undefined name is
//! an error with its place. Only expressions are allowed. Statements (`{% … %}`) are rejected, so
//! that a template always terminates and stays small.

use super::ParamValues;
use super::file::TaskError;
use crate::limits::MAX_SOURCE;
use crate::yaml::{FilePlace, Problem, Problems, TableReader, YamlNode, YamlValue};
use minijinja::{Environment, UndefinedBehavior, filters, tests as jinja_tests};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::Range;

/// The longest `{{ … }}`, in bytes. The cost of an expression grows with its length.
const MAX_EXPRESSION: usize = 256;
/// Words with a meaning in expressions.
const RESERVED: &[&str] =
    &["and", "else", "false", "if", "in", "is", "none", "not", "or", "true", "True", "False", "None"];

/// A parameter that a task declares.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParamSpec {
    /// The name: letters, digits and `_`.
    pub name: String,
    /// True if a value must be given. Default: true if no default value exists.
    pub required: bool,
    /// The default value.
    pub default: Option<String>,
    /// The allowed values. If empty, any value is allowed.
    pub choices: Vec<String>,
    /// The purpose.
    pub description: Option<String>,
}

/// Reads the `params:` of a front matter, each with its place. `None` if one is invalid.
pub(super) fn declared(node: &YamlNode, problems: &mut Problems) -> Option<Vec<(FilePlace, ParamSpec)>> {
    let YamlValue::Map(entries) = &node.value else {
        let message = format!("expected `params` to be a map, found {}", node.describe());
        problems.push(Problem::at(node.place, message).hint("write `params: { name: { required: true } }`"));
        return None;
    };
    let (mut specs, before) = (Vec::new(), problems.len());
    for (key, node) in entries {
        let name = key.text.clone();
        if !is_name(&name) {
            let message = format!("`{name}` is not a valid parameter name");
            problems
                .push(Problem::at(key.place, message).hint("use letters, digits and `_`, no reserved word like `if`"));
        }
        let Some(mut table) = TableReader::open(node, &format!("the parameter `{name}`"), problems) else { continue };
        let default = table.any_text("default", problems).map(str::to_owned);
        let required = table.flag("required", problems);
        let choices = table.texts("choices", problems).unwrap_or_default();
        let description = table.text("description", problems).map(str::to_owned);
        let fault = match &default {
            Some(_) if required == Some(true) => Some("required, so its default is never used".into()),
            Some(value) => not_a_choice(value, &choices),
            None => None,
        };
        if let Some(fault) = fault {
            let problem = Problem::at(key.place, format!("the parameter `{name}` is {fault}"));
            problems.push(problem.hint("change or remove the default"));
        }
        table.finish(problems);
        let required = required.unwrap_or(default.is_none());
        specs.push((key.place, ParamSpec { name, required, default, choices, description }));
    }
    (problems.len() == before).then_some(specs)
}

/// Parses a file of values: a YAML map from names to texts, numbers or booleans. `source` is the
/// name of the file in messages.
///
/// # Errors
/// [`TaskError`] with the syntax error, or with all invalid values.
pub fn parse_values(text: &str, source: &str) -> Result<ParamValues, TaskError> {
    let fault = |problems: Problems| TaskError { file: source.into(), problems: problems.seen_in(text) };
    let node = crate::yaml::parse(text, 1).map_err(|problem| fault(problem.into()))?;
    let mut problems = Problems::default();
    let mut values = ParamValues::new();
    let YamlValue::Map(entries) = &node.value else {
        let message = format!("expected a map from names to values, found {}", node.describe());
        problems.push(Problem::at(node.place, message).hint("write `name: value` lines"));
        return Err(fault(problems));
    };
    for (key, node) in entries {
        let value = match &node.value {
            YamlValue::Text(text) => text.clone(),
            YamlValue::Int(number) => number.to_string(),
            YamlValue::Float(number) => number.to_string(),
            YamlValue::Bool(flag) => flag.to_string(),
            YamlValue::Null | YamlValue::List(_) | YamlValue::Map(_) | YamlValue::Other(_) => {
                let message = format!("expected a text, a number or a boolean, found {}", node.describe());
                problems.push(Problem::at(node.place, message).hint("put the value in quotes"));
                continue;
            }
        };
        values.insert(key.text.clone(), value);
    }
    if problems.is_empty() { Ok(values) } else { Err(fault(problems)) }
}

/// Returns the value of each name that the text may use. The value is `None` for an optional
/// parameter without a value. A task that declares no parameters accepts any name.
pub(super) fn resolve(
    declared: Option<&[(FilePlace, ParamSpec)]>,
    given: &ParamValues,
    problems: &mut Problems,
) -> BTreeMap<String, Option<String>> {
    let Some(specs) = declared else {
        return given.iter().map(|(name, value)| (name.clone(), Some(value.clone()))).collect();
    };
    for name in given.keys().filter(|name| specs.iter().all(|(_, spec)| spec.name != **name)) {
        let problem = Problem::of_file(format!("the task has no parameter `{name}`"));
        let all: Vec<&str> = specs.iter().map(|(_, spec)| spec.name.as_str()).collect();
        problems.push(problem.hint(format!("known: {}", all.join(", "))).near(name, all));
    }
    let mut values = BTreeMap::new();
    for (place, spec) in specs {
        let value = given.get(&spec.name);
        let fault = match value {
            None if spec.required => Some("required, and no value was given".into()),
            Some(value) => not_a_choice(value, &spec.choices),
            None => None,
        };
        if let Some(fault) = fault {
            let problem = Problem::at(*place, format!("the parameter `{}` is {fault}", spec.name));
            problems.push(problem.about(&spec.name).hint(format!("give `--param {}=…`", spec.name)));
        }
        values.insert(spec.name.clone(), value.or(spec.default.as_ref()).cloned());
    }
    values
}

/// Rejects values that a task without `params` does not use.
pub(super) fn refuse_unused(body: &str, given: &ParamValues, problems: &mut Problems) {
    let used: String = body.split("{{").skip(1).filter_map(|rest| Some(rest.split_once("}}")?.0)).collect();
    for name in given.keys().filter(|name| !used.contains(name.as_str())) {
        let problem = Problem::of_file(format!("the task has no parameter `{name}`"));
        let hint = format!(
            "write `{{{{ {name} }}}}` where the value belongs, and `params: {{ {name}: {{}} }}` in the front matter"
        );
        problems.push(problem.hint(hint));
    }
}

fn not_a_choice(value: &str, choices: &[String]) -> Option<String> {
    if choices.is_empty() || choices.iter().any(|choice| choice == value) {
        return None;
    }
    Some(format!("`{}`, expected one of: {}", crate::yaml::excerpt(value), choices.join(", ")))
}

/// Replaces every `{{ … }}` in the text.
pub(super) fn fill(
    body: &str,
    body_line: usize,
    values: &BTreeMap<String, Option<String>>,
    problems: &mut Problems,
) -> String {
    let given = values.iter().filter_map(|(name, value)| Some((name.clone(), value.clone()?)));
    let given = minijinja::Value::from(given.collect::<BTreeMap<String, String>>());
    let (environment, mut filled, mut at) = (expressions(), String::new(), 0);
    while let Some(found) = body[at..].find("{{").map(|found| at + found) {
        refuse_statement(body, at..found, body_line, problems);
        filled.push_str(&body[at..found]);
        let place = place(body, found, body_line);
        let Some(length) = expression_length(&body[found + 2..]) else {
            let open = Problem::at(place, format!("`{{{{` without `}}}}` within {MAX_EXPRESSION} bytes"));
            problems.push(open.hint("add `}}`; for literal braces write `{{ '{{' }}`"));
            return filled;
        };
        match evaluate(&environment, &body[found + 2..found + 2 + length], values, &given) {
            Ok(value) => filled.push_str(&value),
            Err((message, hint)) => problems.push(Problem::at(place, message).hint(hint)),
        }
        if filled.len() > MAX_SOURCE {
            problems.push(
                Problem::at(place, format!("the text is larger than {MAX_SOURCE} bytes here")).hint("shorten it"),
            );
            return filled;
        }
        at = found + length + 4;
    }
    refuse_statement(body, at..body.len(), body_line, problems);
    filled + &body[at..]
}

fn refuse_statement(body: &str, part: Range<usize>, body_line: usize, problems: &mut Problems) {
    if let Some(found) = body[part.clone()].find("{%") {
        let place = place(body, part.start + found, body_line);
        problems.push(
            Problem::at(place, "statements (`{% … %}`) are not supported in a task with parameters")
                .hint("use `{{ name }}` only; for the literal characters write `{{ '{%' }}`"),
        );
    }
}

fn evaluate(
    environment: &Environment<'_>,
    source: &str,
    values: &BTreeMap<String, Option<String>>,
    given: &minijinja::Value,
) -> Result<String, (String, String)> {
    let shown = source.trim();
    let failed = |error: minijinja::Error| {
        let why = error.detail().map_or_else(|| error.kind().to_string(), str::to_owned);
        (format!("in `{{{{ {shown} }}}}`: {why}"), "write `{{ name }}`; for literal braces write `{{ '{{' }}`".into())
    };
    let expression = environment.compile_expression(source).map_err(failed)?;
    let mut names: Vec<String> = expression.undeclared_variables(false).into_iter().collect();
    names.sort();
    if let Some(name) = names.iter().find(|name| !values.contains_key(*name)) {
        let known: Vec<&str> = values.keys().map(String::as_str).collect();
        let hint = match crate::yaml::nearest(name, known.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None if known.is_empty() => "declare it under `params:`".into(),
            None => format!("known: {}", known.join(", ")),
        };
        return Err((format!("undefined name `{name}`"), hint));
    }
    let value = expression.eval(given.clone()).map_err(failed)?;
    if value.is_undefined() {
        let hint = format!("give `--param`, or write `{{{{ {shown} | default('') }}}}`");
        return Err((format!("`{{{{ {shown} }}}}` has no value"), hint));
    }
    Ok(value.to_string())
}

/// Creates the environment of expressions. It cannot read files or loop, and cannot create a large
/// text from a small one.
fn expressions() -> Environment<'static> {
    let mut environment = Environment::empty();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.add_filter("default", filters::default);
    environment.add_filter("lower", filters::lower);
    environment.add_filter("trim", filters::trim);
    environment.add_filter("upper", filters::upper);
    environment.add_test("defined", jinja_tests::is_defined);
    environment
}

/// Returns the position of the `}}` that ends an expression. A `}}` in quotes does not count.
fn expression_length(text: &str) -> Option<usize> {
    let mut quote = None;
    let mut escaped = false;
    for (at, c) in text.char_indices().take_while(|(at, _)| *at <= MAX_EXPRESSION) {
        match quote {
            Some(_) if escaped => escaped = false,
            Some(_) if c == '\\' => escaped = true,
            Some(open) if c == open => quote = None,
            Some(_) => {}
            None if matches!(c, '"' | '\'') => quote = Some(c),
            None if text[at..].starts_with("}}") => return Some(at),
            None => {}
        }
    }
    None
}

fn place(body: &str, at: usize, body_line: usize) -> FilePlace {
    let start = body[..at].rfind('\n').map_or(0, |end| end + 1);
    FilePlace { line: body_line + body[..at].matches('\n').count(), column: body[start..at].chars().count() + 1 }
}

fn is_name(name: &str) -> bool {
    let start = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    start && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') && !RESERVED.contains(&name)
}
