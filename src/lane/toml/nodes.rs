//! TOML as nodes with places, in the form that the YAML readers use.

use crate::yaml::{FilePlace, MAX_VALUES, Problem, Problems, YamlKey, YamlNode, YamlValue, excerpt};
use ::toml::Spanned;
use ::toml::de::{DeString, DeTable, DeValue, Error};

/// The number of bytes in a piece of text. Characters are counted once for each piece.
const PIECE: usize = 256;

/// The top level of a file.
#[derive(Debug, Default)]
pub(super) struct TomlTop {
    /// The tables requested by name.
    pub(super) wanted: Vec<(YamlKey, YamlNode)>,
    /// The other tables.
    pub(super) others: Vec<YamlKey>,
}

/// Reads a file, and the content of the tables with these names.
pub(super) fn top(text: &str, wanted: &[&str]) -> Result<TomlTop, Problems> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let lines = std::iter::once(0).chain(text.match_indices('\n').map(|(end, _)| end + 1)).collect();
    let mut reader = Reader { text, lines, chars: chars(text), values: 0, problems: Problems::default() };
    let (document, errors) = DeTable::parse_recoverable(text);
    errors.iter().for_each(|error| reader.not_toml(error));
    if !reader.problems.is_empty() {
        return Err(reader.problems);
    }
    let mut top = TomlTop::default();
    for (key, value) in document.get_ref() {
        let place = reader.place(key.span().start);
        let key = YamlKey { text: key.get_ref().to_string(), place };
        if wanted.contains(&key.text.as_str()) {
            let node = reader.node(value);
            top.wanted.push((key, node));
        } else if matches!(value.get_ref(), DeValue::Table(_)) {
            top.others.push(key);
        }
    }
    if reader.problems.is_empty() { Ok(top) } else { Err(reader.problems) }
}

struct Reader<'t> {
    text: &'t str,
    /// The start of each line.
    lines: Vec<usize>,
    /// The number of characters before each piece of the text.
    chars: Vec<usize>,
    values: usize,
    problems: Problems,
}

impl Reader<'_> {
    fn node(&mut self, value: &Spanned<DeValue<'_>>) -> YamlNode {
        let place = self.place(value.span().start);
        self.values += 1;
        if self.values == MAX_VALUES + 1 {
            self.problems.push(Problem::at(place, format!("more than {MAX_VALUES} values")).hint("split the file"));
        }
        let value = match value.get_ref() {
            _ if self.values > MAX_VALUES => YamlValue::Null,
            DeValue::String(text) => YamlValue::Text(text.to_string()),
            DeValue::Boolean(flag) => YamlValue::Bool(*flag),
            DeValue::Integer(number) => match i64::from_str_radix(number.as_str(), number.radix()) {
                Ok(number) => YamlValue::Int(number),
                Err(_) => other("number", number.as_str()),
            },
            DeValue::Float(number) => match number.as_str().parse() {
                Ok(number) => YamlValue::Float(number),
                Err(_) => other("number", number.as_str()),
            },
            DeValue::Datetime(date) => other("date", &date.to_string()),
            DeValue::Array(items) => YamlValue::List(items.iter().map(|item| self.node(item)).collect()),
            DeValue::Table(table) => {
                let mut entries: Vec<(YamlKey, YamlNode)> =
                    table.iter().map(|(key, value)| self.entry(key, value)).collect();
                entries.sort_by_key(|(key, _)| key.place); // in the order of the file
                YamlValue::Map(entries)
            }
        };
        YamlNode { place, value }
    }

    fn entry(&mut self, key: &Spanned<DeString<'_>>, value: &Spanned<DeValue<'_>>) -> (YamlKey, YamlNode) {
        let place = self.place(key.span().start);
        (YamlKey { text: key.get_ref().to_string(), place }, self.node(value))
    }

    fn not_toml(&mut self, error: &Error) {
        let place = self.place(error.span().map_or(0, |span| span.start));
        let problem = Problem::at(place, format!("not TOML: {}", excerpt(error.message())));
        self.problems.push(problem.hint("text goes in quotes, a list in [ ], and every quote and bracket is closed"));
    }

    fn place(&self, offset: usize) -> FilePlace {
        let line = self.lines.partition_point(|start| *start <= offset).max(1);
        FilePlace { line, column: self.chars_before(offset) - self.chars_before(self.lines[line - 1]) + 1 }
    }

    fn chars_before(&self, offset: usize) -> usize {
        let offset = offset.min(self.text.len());
        let piece = offset / PIECE;
        self.chars[piece] + begun(&self.text.as_bytes()[piece * PIECE..offset])
    }
}

/// Creates a value of a type that no lane key takes. It is an error only where a reader expects a
/// value.
fn other(what: &str, text: &str) -> YamlValue {
    YamlValue::Other(format!("the {what} {}", excerpt(text)))
}

/// Counts the characters before each piece of a text. A column in a long line is then not counted
/// from the start.
fn chars(text: &str) -> Vec<usize> {
    let sum = |sum: &mut usize, piece: &[u8]| Some(std::mem::replace(sum, *sum + begun(piece)));
    let pieces = text.as_bytes().chunks(PIECE).chain([&[][..]]);
    pieces.scan(0, sum).collect()
}

/// Counts the characters that begin in these bytes of UTF-8.
fn begun(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| **byte & 0xC0 != 0x80).count()
}
