//! The shape of a document with the place of each value, from a parser that keeps places. Depth,
//! number of values and expanded aliases are limited before a value is built.

use super::FilePlace;
use super::problem::{Problem, excerpt};
use saphyr_parser::{Event, Parser, ScalarStyle, ScanError, Span, Tag};
use std::borrow::Cow;
use std::collections::HashMap;

/// The maximum depth of nested lists and maps.
const MAX_DEPTH: usize = 48;
/// The maximum number of values of a document, with aliases expanded.
pub(crate) const MAX_VALUES: usize = 100_000;

/// The place and shape of a value.
#[derive(Debug, Clone)]
pub(super) struct ValueMark {
    pub(super) place: FilePlace,
    pub(super) shape: ValueShape,
    /// The number of values in it, including itself.
    size: usize,
}

#[derive(Debug, Clone)]
pub(super) enum ValueShape {
    Scalar { text: String, plain: bool },
    List(Vec<ValueMark>),
    Map(Vec<(ValueMark, ValueMark)>),
}

/// Reads the shape of a document. `None` if the document is empty.
pub(super) fn read(text: &str, first_line: usize) -> Result<Option<ValueMark>, Problem> {
    if let Some(problem) = odd_break(text, first_line) {
        return Err(problem);
    }
    let mut walk = Walk { first_line, open: Vec::new(), anchors: HashMap::new(), values: 0, root: None, documents: 0 };
    let mut parser = Parser::new_from_str(text);
    while let Some(event) = parser.next_event() {
        let (event, span) = event.map_err(|error: ScanError| {
            let place = walk.place(error.marker().line(), error.marker().col());
            let unclosed = super::unclosed::opened_before(error.marker().line(), text, first_line);
            unclosed.unwrap_or_else(|| super::not_yaml(error.info(), place, text, first_line))
        })?;
        walk.event(event, span)?;
    }
    Ok(walk.root)
}

struct Walk {
    first_line: usize,
    open: Vec<Open>,
    anchors: HashMap<usize, ValueMark>,
    values: usize,
    root: Option<ValueMark>,
    documents: usize,
}

/// A list or map that has not ended yet.
struct Open {
    place: FilePlace,
    anchor: usize,
    items: Items,
}

enum Items {
    List(Vec<ValueMark>),
    Map { key: Option<ValueMark>, entries: Vec<(ValueMark, ValueMark)> },
}

impl Walk {
    fn event(&mut self, event: Event<'_>, span: Span) -> Result<(), Problem> {
        let place = self.place(span.start.line(), span.start.col());
        match event {
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => Ok(()),
            Event::DocumentStart(_) => {
                self.documents += 1;
                let again = Problem::at(place, "a second document begins here").hint("one file holds one document");
                if self.documents > 1 { Err(again) } else { Ok(()) }
            }
            Event::Alias(id) => self.alias(place, id),
            Event::Scalar(text, style, anchor, tag) => {
                refuse_tag(place, tag.as_deref())?;
                let place = self.beside_key(place, &text, style);
                refuse_huge(place, &text, style)?;
                let shape = ValueShape::Scalar { text: text.into_owned(), plain: style == ScalarStyle::Plain };
                self.add(ValueMark { place, shape, size: 1 }, anchor)
            }
            Event::SequenceStart(anchor, tag) => self.enter(place, anchor, tag, Items::List(Vec::new())),
            Event::MappingStart(anchor, tag) => {
                self.enter(place, anchor, tag, Items::Map { key: None, entries: Vec::new() })
            }
            Event::SequenceEnd | Event::MappingEnd => self.leave(),
        }
    }

    fn enter(
        &mut self,
        place: FilePlace,
        anchor: usize,
        tag: Option<Cow<'_, Tag>>,
        items: Items,
    ) -> Result<(), Problem> {
        refuse_tag(place, tag.as_deref())?;
        if self.open.len() == MAX_DEPTH {
            let deep = Problem::at(place, format!("nested deeper than {MAX_DEPTH} lists and maps"));
            return Err(deep.hint("nest them less deep"));
        }
        self.open.push(Open { place, anchor, items });
        Ok(())
    }

    fn leave(&mut self) -> Result<(), Problem> {
        let Some(Open { place, anchor, items }) = self.open.pop() else { return Ok(()) };
        let (size, shape) = match items {
            Items::List(items) => (items.iter().map(|i| i.size).sum::<usize>(), ValueShape::List(items)),
            Items::Map { entries, .. } => {
                refuse_twice(&entries)?;
                (entries.iter().map(|(k, v)| k.size + v.size).sum(), ValueShape::Map(entries))
            }
        };
        self.add(ValueMark { place, shape, size: size + 1 }, anchor)
    }

    fn alias(&mut self, place: FilePlace, id: usize) -> Result<(), Problem> {
        let Some(size) = self.anchors.get(&id).map(|mark| mark.size) else {
            return Err(Problem::at(place, "an alias inside its own anchor").hint("write the value out"));
        };
        self.count(place, size - 1)?; // before the copy is made
        let Some(mark) = self.anchors.get(&id).cloned() else { return Ok(()) };
        self.add(ValueMark { place, ..mark }, 0)
    }

    fn add(&mut self, mark: ValueMark, anchor: usize) -> Result<(), Problem> {
        self.count(mark.place, 1)?;
        if anchor > 0 {
            self.count(mark.place, mark.size)?;
            self.anchors.insert(anchor, mark.clone());
        }
        match self.open.last_mut().map(|open| &mut open.items) {
            None => self.root = Some(mark),
            Some(Items::List(items)) => items.push(mark),
            Some(Items::Map { key, entries }) => match key.take() {
                Some(key) => entries.push((key, mark)),
                None => *key = Some(checked_key(mark)?),
            },
        }
        Ok(())
    }

    fn count(&mut self, place: FilePlace, more: usize) -> Result<(), Problem> {
        self.values = self.values.saturating_add(more);
        if self.values <= MAX_VALUES {
            return Ok(());
        }
        Err(Problem::at(place, format!("more than {MAX_VALUES} values, aliases expanded")).hint("split the file"))
    }

    /// Returns the place of the key for a missing value. The parser gives a missing value the place
    /// of the next token.
    fn beside_key(&self, place: FilePlace, text: &str, style: ScalarStyle) -> FilePlace {
        match self.open.last().map(|open| &open.items) {
            Some(Items::Map { key: Some(key), .. }) if text.is_empty() && style == ScalarStyle::Plain => key.place,
            _ => place,
        }
    }

    fn place(&self, line: usize, column: usize) -> FilePlace {
        FilePlace { line: line.max(1) + self.first_line - 1, column: column + 1 }
    }
}

/// Finds a character that ends a line only for one of the parsers, or not in an editor. Places
/// after this character would be wrong.
fn odd_break(text: &str, first_line: usize) -> Option<Problem> {
    let lone = |at: usize| !text[at + 1..].starts_with('\n');
    let odd = |(at, c): &(usize, char)| matches!(c, '\u{85}' | '\u{2028}' | '\u{2029}') || (*c == '\r' && lone(*at));
    let (at, found) = text.char_indices().find(odd)?;
    let line_start = text[..at].rfind('\n').map_or(0, |end| end + 1);
    let line = first_line + text[..at].matches('\n').count();
    let place = FilePlace { line, column: text[line_start..at].chars().count() + 1 };
    let message = format!("the character U+{:04X} ends a line for some programs only", u32::from(found));
    Some(Problem::at(place, message).hint("remove it; in a text, write it as an escape in double quotes"))
}

/// Refuses a whole number that the value parser would refuse without a place.
fn refuse_huge(place: FilePlace, text: &str, style: ScalarStyle) -> Result<(), Problem> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let whole = style == ScalarStyle::Plain && !digits.starts_with('0') && digits.bytes().all(|b| b.is_ascii_digit());
    if !whole || digits.is_empty() || text.parse::<i64>().is_ok() {
        return Ok(());
    }
    Err(Problem::at(place, format!("the number {} is too large", excerpt(text)))
        .hint("if it is text, write it in quotes"))
}

fn refuse_tag(place: FilePlace, tag: Option<&Tag>) -> Result<(), Problem> {
    let Some(tag) = tag else { return Ok(()) };
    let name = if tag.is_yaml_core_schema() { format!("!!{}", tag.suffix) } else { tag.to_string() };
    Err(Problem::at(place, format!("the tag `{}` is not supported", excerpt(&name)))
        .hint("remove it; to make a value text, write it in quotes"))
}

fn checked_key(key: ValueMark) -> Result<ValueMark, Problem> {
    match &key.shape {
        ValueShape::Scalar { text, plain: true } if text == "<<" => {
            Err(Problem::at(key.place, "merge keys (`<<`) are not supported").hint("write the keys out"))
        }
        ValueShape::Scalar { .. } => Ok(key),
        ValueShape::List(_) | ValueShape::Map(_) => {
            Err(Problem::at(key.place, "expected a key, found a list or a map")
                .hint("a value that begins with { or [ goes in quotes"))
        }
    }
}

fn refuse_twice(entries: &[(ValueMark, ValueMark)]) -> Result<(), Problem> {
    let mut seen = HashMap::new();
    for (key, _) in entries {
        if let ValueShape::Scalar { text, .. } = &key.shape
            && let Some(first) = seen.insert(text, key.place.line)
        {
            let message = match key.place.line {
                line if line == first => format!("line {line} has the key `{}` twice", excerpt(text)),
                line => format!("lines {first} and {line} both have the key `{}`", excerpt(text)),
            };
            return Err(Problem::at(key.place, message).hint("remove one of the two"));
        }
    }
    Ok(())
}
