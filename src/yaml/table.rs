//! Strict reading of a map: the reader asks for each key by name, and every other key is an error.

use super::problem::{FilePlace, Problem, Problems, excerpt};
use super::{YamlKey, YamlNode, YamlValue};
use crate::duration::parse_duration;
use std::ops::RangeInclusive;
use std::time::Duration;

/// A map while it is read. Its typed methods return `None` if the key is missing, and also if its
/// value is wrong; then they add a problem. Call [`finish`](Self::finish) last.
#[must_use = "`finish` finds the unknown keys"]
#[derive(Debug)]
pub struct TableReader<'a> {
    /// The place of the map.
    pub place: FilePlace,
    what: String,
    entries: &'a [(YamlKey, YamlNode)],
    known: Vec<String>,
    /// Keys of the map that a later version will support.
    later: Vec<String>,
}

impl<'a> TableReader<'a> {
    /// Opens a map; `what` names it in messages ("the front matter", "`budget`", "a step").
    pub fn open(node: &'a YamlNode, what: &str, problems: &mut Problems) -> Option<Self> {
        if let YamlValue::Map(entries) = &node.value {
            return Some(Self { place: node.place, what: what.into(), entries, known: Vec::new(), later: Vec::new() });
        }
        let message = format!("expected {what} to be a map, found {}", node.describe());
        problems.push(Problem::at(node.place, message).hint("write `key: value` lines"));
        None
    }

    /// Returns the value of a key, of any type.
    pub fn take(&mut self, key: &str) -> Option<&'a YamlNode> {
        self.know(key);
        self.entries.iter().find(|(k, _)| k.text == key).map(|(_, node)| node)
    }

    fn know(&mut self, key: &str) {
        if !self.known.iter().any(|known| known == key) {
            self.known.push(key.into());
        }
    }

    /// Returns the place of a key, if the key is present. Does not mark the key as known.
    pub fn place_of(&self, key: &str) -> Option<FilePlace> {
        self.entries.iter().find(|(k, _)| k.text == key).map(|(k, _)| k.place)
    }

    /// Reads a text that is not empty.
    pub fn text(&mut self, key: &str, problems: &mut Problems) -> Option<&'a str> {
        let node = self.take(key)?;
        text(node, &quoted(key), problems)
    }

    /// Reads a text that may be empty.
    pub fn any_text(&mut self, key: &str, problems: &mut Problems) -> Option<&'a str> {
        let node = self.take(key)?;
        node.as_text().or_else(|| expected(node, &quoted(key), &Wanted::Text, problems))
    }

    /// Reads `true` or `false`.
    pub fn flag(&mut self, key: &str, problems: &mut Problems) -> Option<bool> {
        match self.take(key)? {
            YamlNode { value: YamlValue::Bool(flag), .. } => Some(*flag),
            node => expected(node, &quoted(key), &Wanted::Flag, problems),
        }
    }

    /// Reads a whole number in a range.
    pub fn int(&mut self, key: &str, range: RangeInclusive<i64>, problems: &mut Problems) -> Option<i64> {
        let node = self.take(key)?;
        if let YamlValue::Int(int) = node.value
            && range.contains(&int)
        {
            return Some(int);
        }
        expected(node, &quoted(key), &Wanted::Number(range), problems)
    }

    /// Reads a duration such as `90s` or `1h30m`.
    pub fn duration(&mut self, key: &str, problems: &mut Problems) -> Option<Duration> {
        let node = self.take(key)?;
        if let YamlValue::Int(number @ 1..) = node.value {
            let message = format!("`{key}`: {} has no unit", node.describe());
            problems
                .push(Problem::at(node.place, message).hint(format!("write `{number}s`, `{number}m` or `{number}h`")));
            return None;
        }
        let Some(text) = node.as_text() else {
            return expected(node, &quoted(key), &Wanted::Duration, problems);
        };
        parse_duration(text)
            .map_err(|why| {
                let (why, hint) = why.rsplit_once(": ").unwrap_or((&why, "write e.g. `90s`, `15m` or `1h30m`"));
                problems.push(Problem::at(node.place, format!("`{key}`: {why}")).hint(hint));
            })
            .ok()
    }

    /// Reads one of some words, and returns its meaning.
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

    /// Reads a list of texts. None of them may be empty.
    pub fn texts(&mut self, key: &str, problems: &mut Problems) -> Option<Vec<String>> {
        self.texts_where(key, |_| Ok(()), problems)
    }

    /// Reads a list of texts. `check` returns the error and the hint for a wrong text.
    pub fn texts_where(
        &mut self,
        key: &str,
        check: impl Fn(&str) -> Result<(), (String, String)>,
        problems: &mut Problems,
    ) -> Option<Vec<String>> {
        let node = self.take(key)?;
        let YamlValue::List(items) = &node.value else {
            return expected(node, &quoted(key), &Wanted::Texts, problems);
        };
        let subject = format!("an item of `{key}`");
        let read = |item: &YamlNode, problems: &mut Problems| {
            let text = text(item, &subject, problems)?;
            if let Err((why, hint)) = check(text) {
                let message = format!("`{}` in `{key}`: {why}", excerpt(text));
                problems.push(Problem::at(item.place, message).hint(hint));
            }
            Some(text.to_owned())
        };
        let texts: Vec<Option<String>> = items.iter().map(|item| read(item, problems)).collect();
        texts.into_iter().collect() // collected last, so that each wrong text is reported
    }

    /// Reads a text, or a list of texts that is not empty.
    pub fn text_or_texts(&mut self, key: &str, problems: &mut Problems) -> Option<Vec<String>> {
        self.text_or_texts_where(key, |_| Ok(()), problems)
    }

    /// Reads a text, or a list of texts that is not empty. `check` returns the error and the hint
    /// for a wrong text.
    pub fn text_or_texts_where(
        &mut self,
        key: &str,
        check: impl Fn(&str) -> Result<(), (String, String)>,
        problems: &mut Problems,
    ) -> Option<Vec<String>> {
        match self.take(key)? {
            node @ YamlNode { value: YamlValue::Text(_), .. } => {
                let text = text(node, &quoted(key), problems)?;
                if let Err((why, hint)) = check(text) {
                    let message = format!("`{}` in `{key}`: {why}", excerpt(text));
                    problems.push(Problem::at(node.place, message).hint(hint));
                }
                Some(vec![text.to_owned()])
            }
            YamlNode { value: YamlValue::List(items), .. } if !items.is_empty() => {
                self.texts_where(key, check, problems)
            }
            node => expected(node, &quoted(key), &Wanted::TextOrTexts, problems),
        }
    }

    /// Reads a map from names to texts, which may be empty.
    pub fn map_of_text(&mut self, key: &str, problems: &mut Problems) -> Option<Vec<(String, String)>> {
        let node = self.take(key)?;
        let YamlValue::Map(entries) = &node.value else {
            return expected(node, &quoted(key), &Wanted::Names, problems);
        };
        let entry = |(name, value): &(YamlKey, YamlNode)| match value.as_text() {
            Some(text) => Some((name.text.clone(), text.to_owned())),
            None => expected(value, &quoted(&name.text), &Wanted::Text, problems),
        };
        let entries: Vec<Option<(String, String)>> = entries.iter().map(entry).collect();
        entries.into_iter().collect() // collected last, so that each wrong text is reported
    }

    /// Refuses keys that a later version will support, instead of ignoring them.
    pub fn later(&mut self, keys: &[&str], problems: &mut Problems) {
        self.refuse(keys, ("is not supported yet", "remove it"), problems);
    }

    /// Refuses known keys, with the reason and a hint.
    pub fn refuse(&mut self, keys: &[&str], (why, hint): (&str, &str), problems: &mut Problems) {
        for key in keys {
            if let Some(place) = self.place_of(key) {
                self.later.push((*key).to_owned());
                problems.push(Problem::at(place, format!("`{key}` {why}")).hint(hint));
            }
        }
    }

    /// Reports every key that was not read as unknown.
    pub fn finish(self, problems: &mut Problems) {
        self.finish_with(&[], problems);
    }

    /// Finishes with hints for keys of other tools: each pair holds a foreign key and ours with the
    /// same meaning.
    pub fn finish_with(self, others: &[(&str, &str)], problems: &mut Problems) {
        let is_known = |key: &YamlKey| self.known.contains(&key.text) || self.later.contains(&key.text);
        for (key, _) in self.entries.iter().filter(|(key, _)| !is_known(key)) {
            let problem = Problem::at(key.place, format!("unknown key `{}` in {}", excerpt(&key.text), self.what));
            let known = self.known.join(", ");
            let hint = if known.is_empty() { "remove it".into() } else { format!("known: {known}") };
            let problem = problem.hint(hint).near(&key.text, self.known.iter().map(String::as_str));
            let ours = others.iter().find(|(other, ours)| *other == key.text && self.known.iter().any(|k| k == ours));
            problems.push(match ours {
                Some((_, ours)) => problem.hint(format!("did you mean `{ours}`?")),
                None => problem,
            });
        }
    }
}

fn text<'a>(node: &'a YamlNode, subject: &str, problems: &mut Problems) -> Option<&'a str> {
    match node.as_text() {
        Some(text) if !text.trim().is_empty() => Some(text),
        _ => expected(node, subject, &Wanted::Text, problems),
    }
}

fn quoted(key: &str) -> String {
    format!("`{}`", excerpt(key))
}

/// The type of value that a key takes.
enum Wanted {
    Text,
    Texts,
    TextOrTexts,
    Names,
    Flag,
    Number(RangeInclusive<i64>),
    Duration,
}

fn expected<T>(node: &YamlNode, subject: &str, wanted: &Wanted, problems: &mut Problems) -> Option<T> {
    let what = match wanted {
        Wanted::Text => "a text".into(),
        Wanted::Texts => "a list of texts like `[a, b]`".into(),
        Wanted::TextOrTexts => "a text, or a list of them".into(),
        Wanted::Names => "a map from names to texts".into(),
        Wanted::Flag => "`true` or `false`".into(),
        Wanted::Number(range) if *range.end() == i64::MAX => format!("a whole number, at least {}", range.start()),
        Wanted::Number(range) => format!("a whole number from {} to {}", range.start(), range.end()),
        Wanted::Duration => "a duration like `90s`, `15m` or `1h30m`".into(),
    };
    let message = format!("expected {subject} to be {what}, found {}", node.describe());
    problems.push(Problem::at(node.place, message).hint(wanted.instead_of(&node.value)));
    None
}

impl Wanted {
    /// Returns the hint for this wrong value.
    fn instead_of(&self, value: &YamlValue) -> String {
        let plain = match value {
            YamlValue::Null => return "give it a value or remove the key".into(),
            YamlValue::Bool(flag) => Some(flag.to_string()),
            YamlValue::Int(number) => Some(number.to_string()),
            YamlValue::Float(number) => Some(number.to_string()),
            YamlValue::Text(text) if text.trim().is_empty() => return "give it a value or remove the key".into(),
            YamlValue::Text(text) => Some(excerpt(text)),
            YamlValue::Other(_) if matches!(self, Self::Text) => return "write it in quotes".into(),
            YamlValue::List(_) | YamlValue::Map(_) | YamlValue::Other(_) => None,
        };
        let word = |words: &[&str]| plain.as_ref().is_some_and(|plain| words.contains(&plain.to_lowercase().as_str()));
        match (self, plain.as_deref()) {
            (Self::Text | Self::TextOrTexts, Some(_)) => "write it in quotes".into(),
            (Self::Text | Self::TextOrTexts, None) => "write one text, in quotes if it begins with [ or {".into(),
            (Self::Texts, Some(plain)) => format!("write `[\"{plain}\"]`"),
            (Self::Texts, None) => "write each in quotes, with commas between them, in [ ]".into(),
            (Self::Names, _) => "write names, each with its text".into(),
            (Self::Flag, _) if word(&["true", "yes", "on", "y", "1"]) => "write `true`, without quotes".into(),
            (Self::Flag, _) if word(&["false", "no", "off", "n", "0"]) => "write `false`, without quotes".into(),
            (Self::Flag, _) => "write one of the two".into(),
            (Self::Number(_), Some(plain)) if matches!(value, YamlValue::Text(_)) && plain.parse::<i64>().is_ok() => {
                "write it without quotes and without zeros before it".into()
            }
            (Self::Number(_), Some(_)) if matches!(value, YamlValue::Text(_)) => {
                "write it in digits, without quotes".into()
            }
            (Self::Number(_), _) if matches!(value, YamlValue::Float(_)) => "write it without a fraction".into(),
            (Self::Number(_), _) => "write a number in that range".into(),
            (Self::Duration, _) => "write a number with its unit".into(),
        }
    }
}
