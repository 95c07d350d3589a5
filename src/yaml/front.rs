//! The front matter of a Markdown file: YAML between two `---` lines at its top.

use super::problem::{FilePlace, Problem};
use super::{YamlNode, YamlValue};

/// A Markdown file, split into front matter and body.
#[derive(Debug, Clone, PartialEq)]
pub struct MarkdownDocument<'a> {
    /// The front matter, always a map; `None` if the file has none.
    pub front: Option<YamlNode>,
    /// The text after the front matter.
    pub body: &'a str,
    /// The line of the file on which the body begins, from 1.
    pub body_line: usize,
}

/// Splits a Markdown file into front matter and body. Blank lines may precede the front matter.
/// A text without a `---` line has no front matter.
///
/// # Errors
///
/// When the front matter has no end, is not YAML (see [`parse`](super::parse)), or is not a map,
/// and when the file is too large.
pub fn document(text: &str) -> Result<MarkdownDocument<'_>, Problem> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    super::refuse_large(text)?;
    super::refuse_binary(text)?;
    let mut opened: Option<(usize, usize)> = None; // byte and line where the YAML begins
    let mut at = 0;
    for (index, line) in text.split_inclusive('\n').enumerate() {
        let (start, fence) = (at, line.trim_end() == "---");
        at += line.len();
        match opened {
            None if fence => opened = Some((at, index + 2)),
            None if line.trim().is_empty() => {}
            None => break,
            Some((yaml_start, yaml_line)) if fence => {
                let front = Some(map(super::parse(&text[yaml_start..start], yaml_line)?)?);
                return Ok(MarkdownDocument { front, body: &text[at..], body_line: index + 2 });
            }
            Some(_) => {}
        }
    }
    match opened {
        None => Ok(MarkdownDocument { front: None, body: text, body_line: 1 }),
        Some((_, line)) => Err(Problem::at(FilePlace { line: line - 1, column: 1 }, "the front matter has no end")
            .hint("close it with a line `---`; text that is to begin with a rule can use `***`")),
    }
}

fn map(node: YamlNode) -> Result<YamlNode, Problem> {
    match node.value {
        YamlValue::Map(_) => Ok(node),
        YamlValue::Null => Ok(YamlNode { value: YamlValue::Map(Vec::new()), ..node }),
        YamlValue::Bool(_)
        | YamlValue::Int(_)
        | YamlValue::Float(_)
        | YamlValue::Text(_)
        | YamlValue::List(_)
        | YamlValue::Other(_) => {
            let message = format!("expected the front matter to be a map, found {}", node.describe());
            Err(Problem::at(node.place, message).hint("write `key: value` lines"))
        }
    }
}
