//! A strict YAML reader that keeps the place of every key and value. Pure: it turns text into nodes
//! or a [`Problem`].
//!
//! Values come from `serde_yaml`, places from a second parser. If the two parsers understand a text
//! differently, the text is refused. Also refused are tags, merge keys, keys that are not text, and
//! more than one document.

mod dollars;
mod front;
mod join;
mod marks;
mod problem;
#[cfg(feature = "cli")]
pub(crate) mod schema;
#[cfg(test)]
#[cfg(feature = "cli")]
pub(crate) mod schema_law;
mod seen;
mod table;
mod unclosed;

#[cfg(feature = "cli")]
pub(crate) use dollars::parse_dollars;
pub use front::{MarkdownDocument, document};
pub(crate) use marks::MAX_VALUES;
pub use problem::{FilePlace, Problem, Problems, meant, nearest};
pub(crate) use problem::{excerpt, listed};
pub use seen::ProblemLine;
pub use table::TableReader;

use crate::limits::MAX_SOURCE;

/// A value with its place.
#[derive(Debug, Clone, PartialEq)]
pub struct YamlNode {
    /// The place where the value begins; for an alias, the place of the alias.
    pub place: FilePlace,
    /// The value.
    pub value: YamlValue,
}

/// A value of a document.
#[derive(Debug, Clone, PartialEq)]
pub enum YamlValue {
    /// An empty value, `~` or `null`.
    Null,
    /// `true` or `false`; `yes` and `on` are text.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A finite number with a fraction or an exponent.
    Float(f64),
    /// Text, quoted or plain.
    Text(String),
    /// A list.
    List(Vec<YamlNode>),
    /// A map in the order of the file. Keys are unique.
    Map(Vec<(YamlKey, YamlNode)>),
    /// A value that no key takes, described for a message: a date, or a number outside the range.
    /// YAML documents never contain one.
    Other(String),
}

/// A key of a map.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct YamlKey {
    /// The text of the key.
    pub text: String,
    /// The place of the key.
    pub place: FilePlace,
}

impl YamlNode {
    /// Returns the text, if the value is a text.
    pub fn as_text(&self) -> Option<&str> {
        if let YamlValue::Text(text) = &self.value { Some(text) } else { None }
    }

    /// Describes the value for a message: "the number 5", "the text `soon`", "a list".
    pub fn describe(&self) -> String {
        match &self.value {
            YamlValue::Null => "nothing".into(),
            YamlValue::Bool(flag) => format!("`{flag}`"),
            YamlValue::Int(number) => format!("the number {number}"),
            YamlValue::Float(number) => format!("the number {number}"),
            YamlValue::Text(text) if text.is_empty() => "an empty text".into(),
            YamlValue::Text(text) => format!("the text `{}`", problem::excerpt(text)),
            YamlValue::List(items) if items.is_empty() => "an empty list".into(),
            YamlValue::List(_) => "a list".into(),
            YamlValue::Map(_) => "a map".into(),
            YamlValue::Other(what) => what.clone(),
        }
    }
}

/// Reads one document. `first_line` is the line number of its first line in the file (1 for a whole
/// file).
///
/// # Errors
///
/// A [`Problem`] with its place when the text is not YAML, is larger than [`MAX_SOURCE`], nests too
/// deep, or uses a refused feature.
pub fn parse(text: &str, first_line: usize) -> Result<YamlNode, Problem> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    refuse_large(text)?;
    refuse_binary(text)?;
    match marks::read(text, first_line)? {
        Some(mark) => join::join(&mark, text, first_line),
        None => Ok(YamlNode { place: FilePlace { line: first_line, column: 1 }, value: YamlValue::Null }),
    }
}

/// Refuses text with a NUL character, which only binary files have.
fn refuse_binary(text: &str) -> Result<(), Problem> {
    let binary = || Problem::of_file("this is a binary file, not text").hint("name a text file, saved as UTF-8");
    if text.contains('\0') { Err(binary()) } else { Ok(()) }
}

/// Returns the problem of a file without content, if the root of its document is empty. `what`
/// names the expected content, and `example` shows it.
pub(crate) fn nothing_in(root: &YamlNode, text: &str, what: &str, example: &str) -> Option<Problem> {
    let found = if text.trim().is_empty() { "the file is empty" } else { "the file has only comments" };
    let problem = || Problem::of_file(format!("{found}: expected {what}")).hint(format!("write e.g. {example}"));
    (root.value == YamlValue::Null).then(problem)
}

fn refuse_large(text: &str) -> Result<(), Problem> {
    if text.len() <= MAX_SOURCE {
        return Ok(());
    }
    let message = format!("{} bytes are too many: at most {MAX_SOURCE} are read", text.len());
    Err(Problem::of_file(message).hint("split it"))
}

/// Builds the problem from a parser's message, with the most likely remedy as a hint.
fn not_yaml(output: &str, place: FilePlace, text: &str, first_line: usize) -> Problem {
    let line = text.lines().nth(place.line - first_line);
    let tab = line.is_some_and(|line| line.chars().take_while(|c| c.is_whitespace()).any(|c| c == '\t'));
    let hint = match line {
        _ if tab => "indent with spaces, not tabs",
        Some(line) if line.contains('\t') && output.contains("whitespace") => "put a space there, not a tab",
        _ if output.contains("recursion limit") => "nest lists and maps less deep",
        _ if output.contains("unexpected end of stream") => "close the quote that begins here",
        _ if output.contains("quoted scalar") => "close the quote where it ends; in \"…\" a \\ is written \\\\",
        None => "close every quote, [ and {",
        Some(_) => "text with `: ` or ` #` in it, or one of [ ] { } & * ! | > % @ ` at its start, goes in quotes",
    };
    Problem::at(place, format!("not YAML: {output}")).hint(hint)
}

#[cfg(test)]
mod tests;
