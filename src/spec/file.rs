//! The parser of spec files: `specs/<module>/<module>.spec.md` in spec-sync's layout.

use super::{Spec, SpecError};
use crate::yaml::{FilePlace, MarkdownDocument, Problem, Problems, TableReader, YamlNode, YamlValue, document};

/// Parses a spec. Messages name it by `path`.
///
/// # Errors
/// [`SpecError::Invalid`] with all problems.
pub fn parse(text: &str, path: &str) -> Result<Spec, SpecError> {
    read(text, path).map(|reading| reading.spec).map_err(|problems| SpecError::Invalid { file: path.into(), problems })
}

/// A spec with the places of its values in the file.
#[derive(Debug)]
pub(super) struct SpecReading<'t> {
    pub(super) spec: Spec,
    pub(super) module: FilePlace,
    /// The place of each item of `files`.
    pub(super) files: Vec<FilePlace>,
    pub(super) depends_on: Vec<FilePlace>,
    /// The text below the front matter, and the number of its first line.
    pub(super) body: (&'t str, usize),
}

/// Parses a spec with its places, or returns all its problems.
pub(super) fn read<'t>(text: &'t str, path: &str) -> Result<SpecReading<'t>, Problems> {
    front(text, path).map_err(|problems| problems.seen_in(text))
}

fn front<'t>(text: &'t str, path: &str) -> Result<SpecReading<'t>, Problems> {
    let MarkdownDocument { front, body, body_line } = document(text)?;
    let mut problems = Problems::default();
    let Some(front) = front else {
        let none = Problem::at(FilePlace { line: 1, column: 1 }, "the spec has no front matter");
        return Err(none.hint("write `---`, `module: name`, `version: 1`, `files: [src/name.rs]`, `---`").into());
    };
    let Some(mut table) = TableReader::open(&front, "the front matter", &mut problems) else { return Err(problems) };
    for key in ["module", "version", "files"] {
        if table.place_of(key).is_none() {
            problems.push(Problem::at(table.place, format!("`{key}` is missing")).hint(format!("add `{key}: …`")));
        }
    }
    let spec = Spec {
        module: table.text("module", &mut problems).unwrap_or_default().into(),
        version: table.take("version").and_then(|node| version(node, &mut problems)).unwrap_or_default(),
        status: table.text("status", &mut problems).unwrap_or_default().into(),
        files: table.texts_where("files", crate::task::check_glob, &mut problems).unwrap_or_default(),
        depends_on: table.texts("depends_on", &mut problems).unwrap_or_default(),
        path: path.into(),
        body: body.trim().into(),
        purpose: purpose(body),
    };
    let places = |node: Option<&YamlNode>| {
        let Some(YamlNode { value: YamlValue::List(items), .. }) = node else { return Vec::new() };
        items.iter().map(|item| item.place).collect()
    };
    let module = table.take("module").map_or(table.place, |node| node.place);
    let (files, depends_on) = (places(table.take("files")), places(table.take("depends_on")));
    table.take("db_tables"); // a key of spec-sync without meaning here
    table.finish(&mut problems);
    if problems.is_empty() {
        Ok(SpecReading { spec, module, files, depends_on, body: (body, body_line) })
    } else {
        Err(problems)
    }
}

/// Accepts `1`, `1.0` and `1.0.2`, all written without quotes.
fn version(node: &YamlNode, problems: &mut Problems) -> Option<String> {
    match &node.value {
        YamlValue::Int(number) => Some(number.to_string()),
        YamlValue::Float(number) => Some(format!("{number:?}")),
        YamlValue::Text(text) => Some(text.clone()),
        YamlValue::Null | YamlValue::Bool(_) | YamlValue::List(_) | YamlValue::Map(_) | YamlValue::Other(_) => {
            let message = format!("expected `version` to be a number or a text, found {}", node.describe());
            problems.push(Problem::at(node.place, message).hint("write `version: 1`"));
            None
        }
    }
}

fn purpose(body: &str) -> String {
    let heading = |line: &str| line.starts_with('#');
    let name = |line: &str| line.trim_matches(|c: char| c == '#' || c.is_whitespace()).eq_ignore_ascii_case("purpose");
    let section = body.lines().map(str::trim).skip_while(|line| !(heading(line) && name(line))).skip(1);
    let paragraph = section.skip_while(|line| line.is_empty()).take_while(|line| !line.is_empty() && !heading(line));
    paragraph.collect::<Vec<_>>().join(" ")
}
