//! The parser of request headers. A value is a text, or a source as for keys.

use super::model::KeyPlace;
use super::model_keys::{command, file_of, is_header, is_variable};
use crate::provider::Secret;
use crate::yaml::{Problem, Problems, TableReader, YamlNode, YamlValue, excerpt};
use std::collections::BTreeMap;

/// The value of a header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SentHeader {
    /// A text in the file.
    Text(Secret),
    /// A source that is read when the value is needed.
    At(KeyPlace),
}

/// The values of headers, by name.
pub type Headers = BTreeMap<String, SentHeader>;

/// Parses `headers`.
pub(super) fn headers(table: &mut TableReader<'_>, problems: &mut Problems) -> Headers {
    let Some(node) = table.take("headers") else { return Headers::new() };
    let YamlValue::Map(entries) = &node.value else {
        let message = format!("expected `headers` to be a map from names to texts, found {}", node.describe());
        problems.push(Problem::at(node.place, message).hint("write `name: text` or `name: { env: VARIABLE }`"));
        return Headers::new();
    };
    let mut all = Headers::new();
    for (name, value) in entries {
        let sent = one(&name.text, value, problems);
        let text = match &sent {
            Some(SentHeader::Text(text)) => text.reveal(),
            Some(SentHeader::At(_)) | None => "",
        };
        if !is_header(&name.text, text) {
            let message = format!("invalid header `{}`", excerpt(&name.text));
            problems.push(Problem::at(name.place, message).hint("use letters, digits and `-`; values have one line"));
        }
        all.extend(sent.map(|sent| (name.text.clone(), sent)));
    }
    all
}

fn one(name: &str, node: &YamlNode, problems: &mut Problems) -> Option<SentHeader> {
    if let Some(text) = node.as_text() {
        return Some(SentHeader::Text(Secret::new(text)));
    }
    let YamlValue::Map(_) = &node.value else {
        let message = format!("expected `{}` to be a text, found {}", excerpt(name), node.describe());
        problems.push(Problem::at(node.place, message).hint("write it in quotes, or `{ env: VARIABLE }`"));
        return None;
    };
    let mut table = TableReader::open(node, &format!("`{}`", excerpt(name)), problems)?;
    let variable = variable(&mut table, problems).map(KeyPlace::Variable);
    let file = file_of(&mut table, "file", problems).map(KeyPlace::File);
    let command = command(&mut table, "command", "ttl", problems);
    let count = ["env", "file", "command"].into_iter().filter(|way| table.place_of(way).is_some()).count();
    if count != 1 {
        let message = format!("the header `{}` has {count} sources, expected exactly 1", excerpt(name));
        problems.push(Problem::at(node.place, message).hint("give one of `env`, `file` and `command`, or a text"));
    }
    table.finish(problems);
    command.or(file).or(variable).map(SentHeader::At)
}

fn variable(table: &mut TableReader<'_>, problems: &mut Problems) -> Option<String> {
    let name = table.text("env", problems)?.to_owned();
    if !is_variable(&name) {
        let place = table.take("env")?.place;
        let wrong = Problem::at(place, "expected `env` to name an environment variable");
        problems.push(wrong.hint("write the variable's name, e.g. `MY_TOKEN`, or the value as a plain text"));
    }
    Some(name)
}
