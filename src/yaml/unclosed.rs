//! The bracket or quote that is not closed, for an error that a parser finds on a later line.

use super::FilePlace;
use super::problem::Problem;
use saphyr_parser::{Event, Parser, ScanError};

/// The maximum number of lines before an error to look at.
const MOST_LINES: usize = 50;

/// Returns the problem of a bracket or quote that an earlier line opens, if that is the likely
/// cause of an error on this line of the text, from 1.
///
/// The line that opens it is the first one from which on no beginning of the text is YAML.
pub(super) fn opened_before(line: usize, text: &str, first_line: usize) -> Option<Problem> {
    let ends: Vec<usize> = std::iter::once(0).chain(text.split_inclusive('\n').scan(0, end_of)).collect();
    let latest = line.checked_sub(1)?.min(ends.len() - 1);
    let before =
        (latest.saturating_sub(MOST_LINES)..=latest).rev().find(|lines| scan(&text[..ends[*lines]]).is_ok())?;
    let next = ends.get(before + 1).filter(|_| before + 1 < line)?;
    let (error, open) = scan(&text[..*next]).err()?;
    let place = |line: usize, column: usize| FilePlace { line: line + first_line - 1, column: column + 1 };
    let begins = &text[ends[before]..*next];
    if error.info().contains("quoted scalar") && error.marker().line() == before + 1 {
        let place = place(before + 1, error.marker().col());
        return Some(Problem::at(place, "not YAML: this quote is not closed").hint("close it where the text ends"));
    }
    let column = open.iter().rev().find(|(line, _)| *line == before + 1).map(|(_, column)| *column)?;
    let (at, bracket) = begins.char_indices().nth(column).filter(|(_, c)| matches!(c, '[' | '{'))?;
    let key = begins.chars().take_while(|c| matches!(c, ' ' | '-')).count();
    let close = if bracket == '[' { ']' } else { '}' };
    let problem = Problem::at(place(before + 1, column), format!("not YAML: `{bracket}` is not closed"));
    (!is_closed(&text[ends[before] + at..], key)).then(|| problem.hint(format!("close it with `{close}`")))
}

fn end_of(end: &mut usize, line: &str) -> Option<usize> {
    *end += line.len();
    Some(*end)
}

/// Reads a text. Returns the error with the places of the lists and maps that are open there.
fn scan(text: &str) -> Result<(), (ScanError, Vec<(usize, usize)>)> {
    let mut open = Vec::new();
    let mut parser = Parser::new_from_str(text);
    while let Some(event) = parser.next_event() {
        match event {
            Ok((Event::SequenceStart(..) | Event::MappingStart(..), span)) => {
                open.push((span.start.line(), span.start.col()));
            }
            Ok((Event::SequenceEnd | Event::MappingEnd, _)) => drop(open.pop()),
            Ok(_) => {}
            Err(error) => return Err((error, open)),
        }
    }
    Ok(())
}

/// Returns true if the bracket at the start of the text is closed before a line with another key of
/// its map. `key` is the column of the key itself.
fn is_closed(text: &str, key: usize) -> bool {
    let (mut depth, mut quote, mut before) = (0_usize, None, ':');
    for (nth, line) in text.lines().enumerate() {
        if nth > 0 && quote.is_none() && is_key(line, key) {
            return false;
        }
        let mut chars = line.chars();
        while let Some(c) = chars.next() {
            match (quote, c) {
                (Some('"'), '\\') => drop(chars.next()),
                (Some(open), c) if open == c => quote = None,
                (Some(_), _) => {}
                (None, '"' | '\'') if matches!(before, '[' | '{' | ',' | ':') => quote = Some(c),
                (None, '[' | '{') => depth += 1,
                (None, ']' | '}') if depth <= 1 => return true,
                (None, ']' | '}') => depth -= 1,
                (None, _) => {}
            }
            before = if c.is_whitespace() { before } else { c };
        }
    }
    false
}

/// Returns true if a line has a key that is no deeper than this column.
fn is_key(line: &str, column: usize) -> bool {
    let rest = line.trim_start_matches([' ', '-']);
    let word = rest.split(':').next().unwrap_or_default();
    let is_word = !word.is_empty() && word.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-'));
    let ends =
        rest[word.len()..].strip_prefix(':').is_some_and(|after| after.is_empty() || after.starts_with([' ', '\r']));
    line.chars().count() - rest.chars().count() <= column && is_word && ends
}
