//! Strict reading of a map: every key is asked for by name, and what was not asked for is an error.

use super::problem::{Place, Problem, Problems, excerpt};
use super::{Key, Node, Value};
use crate::duration::parse_duration;
use std::ops::RangeInclusive;
use std::time::Duration;

/// A map being read. Typed takers give `None` where the key is absent, and also where its value is wrong, which is then
/// among the problems. [`finish`](Self::finish) must come last.
#[must_use = "`finish` finds the unknown keys"]
#[derive(Debug)]
pub struct Table<'a> {
    /// Where the map stands.
    pub place: Place,
    what: String,
    entries: &'a [(Key, Node)],
    known: Vec<String>,
}

impl<'a> Table<'a> {
    /// Opens a map; `what` names it in messages ("the front matter", "`budget`", "a step").
    pub fn open(node: &'a Node, what: &str, problems: &mut Problems) -> Option<Self> {
        if let Value::Map(entries) = &node.value {
            return Some(Self { place: node.place, what: what.into(), entries, known: Vec::new() });
        }
        let message = format!("expected {what} to be a map, found {}", node.describe());
        problems.push(Problem::at(node.place, message).hint("write `key: value` lines"));
        None
    }

    /// The value of a key, whatever it is.
    pub fn take(&mut self, key: &str) -> Option<&'a Node> {
        self.know(key);
        self.entries.iter().find(|(k, _)| k.text == key).map(|(_, node)| node)
    }

    fn know(&mut self, key: &str) {
        if !self.known.iter().any(|known| known == key) {
            self.known.push(key.into());
        }
    }

    /// Whether a key is there, and where; says nothing about whether it is known.
    pub fn place_of(&self, key: &str) -> Option<Place> {
        self.entries.iter().find(|(k, _)| k.text == key).map(|(k, _)| k.place)
    }

    /// A text that is not empty.
    pub fn text(&mut self, key: &str, problems: &mut Problems) -> Option<&'a str> {
        let node = self.take(key)?;
        text(node, &quoted(key), problems)
    }

    /// A text that may be empty.
    pub fn any_text(&mut self, key: &str, problems: &mut Problems) -> Option<&'a str> {
        let node = self.take(key)?;
        node.as_text().or_else(|| expected(node, &quoted(key), "a text", problems))
    }

    /// `true` or `false`.
    pub fn flag(&mut self, key: &str, problems: &mut Problems) -> Option<bool> {
        match self.take(key)? {
            Node { value: Value::Bool(flag), .. } => Some(*flag),
            node => expected(node, &quoted(key), "`true` or `false`", problems),
        }
    }

    /// A whole number in a range.
    pub fn int(&mut self, key: &str, range: RangeInclusive<i64>, problems: &mut Problems) -> Option<i64> {
        let node = self.take(key)?;
        if let Value::Int(int) = node.value
            && range.contains(&int)
        {
            return Some(int);
        }
        let bounds = match (range.start(), *range.end()) {
            (start, i64::MAX) => format!("a whole number, at least {start}"),
            (start, end) => format!("a whole number from {start} to {end}"),
        };
        expected(node, &quoted(key), &bounds, problems)
    }

    /// A duration like `90s` or `1h30m`.
    pub fn duration(&mut self, key: &str, problems: &mut Problems) -> Option<Duration> {
        let node = self.take(key)?;
        if let Value::Int(number) = node.value {
            let message = format!("`{key}`: {} has no unit", node.describe());
            problems
                .push(Problem::at(node.place, message).hint(format!("write `{number}s`, `{number}m` or `{number}h`")));
            return None;
        }
        let Some(text) = node.as_text() else {
            return expected(node, &quoted(key), "a duration like `90s`, `15m` or `1h30m`", problems);
        };
        parse_duration(text)
            .map_err(|why| {
                let message = format!("`{key}`: {why}");
                problems.push(Problem::at(node.place, message).hint("durations read `90s`, `15m`, `1h30m`"));
            })
            .ok()
    }

    /// One of some words, each with what it means.
    pub fn one_of<T: Clone>(&mut self, key: &str, words: &[(&str, T)], problems: &mut Problems) -> Option<T> {
        let node = self.take(key)?;
        if let Some((_, meaning)) = node.as_text().and_then(|text| words.iter().find(|(word, _)| *word == text)) {
            return Some(meaning.clone());
        }
        let all: Vec<String> = words.iter().map(|(word, _)| format!("`{word}`")).collect();
        let message = format!("expected `{key}` to be {}, found {}", all.join(" or "), node.describe());
        let word = node.as_text().unwrap_or_default();
        problems.push(Problem::at(node.place, message).near(word, words.iter().map(|(word, _)| *word)));
        None
    }

    /// A list of texts, none of them empty.
    pub fn texts(&mut self, key: &str, problems: &mut Problems) -> Option<Vec<String>> {
        self.texts_where(key, |_| Ok(()), problems)
    }

    /// The same, with a check that says what is wrong with a text, and what to do about it.
    pub fn texts_where(
        &mut self,
        key: &str,
        check: impl Fn(&str) -> Result<(), (String, String)>,
        problems: &mut Problems,
    ) -> Option<Vec<String>> {
        let node = self.take(key)?;
        let Value::List(items) = &node.value else {
            return expected(node, &quoted(key), "a list of texts like `[a, b]`", problems);
        };
        let mut texts = Vec::new();
        for item in items {
            let text = text(item, &format!("an item of `{key}`"), problems)?;
            if let Err((why, hint)) = check(text) {
                let message = format!("`{}` in `{key}`: {why}", excerpt(text));
                problems.push(Problem::at(item.place, message).hint(hint));
            }
            texts.push(text.to_owned());
        }
        Some(texts)
    }

    /// A text, or a list of them that is not empty.
    pub fn text_or_texts(&mut self, key: &str, problems: &mut Problems) -> Option<Vec<String>> {
        match self.take(key)? {
            node @ Node { value: Value::Text(_), .. } => {
                text(node, &quoted(key), problems).map(|text| vec![text.to_owned()])
            }
            Node { value: Value::List(items), .. } if !items.is_empty() => self.texts(key, problems),
            node => expected(node, &quoted(key), "a text, or a list of them", problems),
        }
    }

    /// A map from names to texts; these may be empty.
    pub fn map_of_text(&mut self, key: &str, problems: &mut Problems) -> Option<Vec<(String, String)>> {
        let node = self.take(key)?;
        let Value::Map(entries) = &node.value else {
            return expected(node, &quoted(key), "a map from names to texts", problems);
        };
        let entry = |(name, value): &(Key, Node)| match value.as_text() {
            Some(text) => Some((name.text.clone(), text.to_owned())),
            None => expected(value, &quoted(&name.text), "a text", problems),
        };
        entries.iter().map(entry).collect()
    }

    /// Keys that will mean something one day: known, and refused rather than ignored.
    pub fn later(&mut self, keys: &[&str], problems: &mut Problems) {
        for key in keys {
            self.know(key);
            if let Some(place) = self.place_of(key) {
                problems.push(Problem::at(place, format!("`{key}` is not supported yet")).hint("remove it"));
            }
        }
    }

    /// Every key that was not asked for is unknown.
    pub fn finish(self, problems: &mut Problems) {
        for (key, _) in self.entries.iter().filter(|(key, _)| !self.known.contains(&key.text)) {
            let problem = Problem::at(key.place, format!("unknown key `{}` in {}", excerpt(&key.text), self.what));
            let known = self.known.join(", ");
            problems.push(
                problem
                    .hint(if known.is_empty() { "remove it".into() } else { format!("known: {known}") })
                    .near(&key.text, self.known.iter().map(String::as_str)),
            );
        }
    }
}

fn text<'a>(node: &'a Node, subject: &str, problems: &mut Problems) -> Option<&'a str> {
    match node.as_text() {
        Some(text) if !text.trim().is_empty() => Some(text),
        _ => expected(node, subject, "a text", problems),
    }
}

fn quoted(key: &str) -> String {
    format!("`{}`", excerpt(key))
}

fn expected<T>(node: &Node, subject: &str, what: &str, problems: &mut Problems) -> Option<T> {
    let message = format!("expected {subject} to be {what}, found {}", node.describe());
    let hint = match &node.value {
        Value::Null => Some("give it a value or remove the key".into()),
        Value::Bool(_) | Value::Int(_) | Value::Float(_) if what.contains("text") => Some("write it in quotes".into()),
        Value::Text(text) if what.contains("list of") && !text.is_empty() => {
            Some(format!("write `[\"{}\"]`", excerpt(text)))
        }
        Value::Text(text) if what.contains("number") && text.trim().parse::<f64>().is_ok() => {
            Some("remove the quotes".into())
        }
        Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Text(_) | Value::List(_) | Value::Map(_) => None,
    };
    problems.push(Problem { place: Some(node.place), message, hint });
    None
}
