//! Readers that turn each form of manifest into a tree of names and values.

use crate::lane::parse_toml;
use serde_json::{Map, Value};

/// The form of a manifest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ManifestForm {
    Cargo,
    Node,
    /// `pnpm-workspace.yaml`.
    Yaml,
    Python,
    /// `setup.cfg`.
    Ini,
    Go,
    /// `CMakeLists.txt`.
    Cmake,
}

/// Reads a manifest as a tree. Returns `None` if the text does not have this form.
pub(super) fn read(form: ManifestForm, bytes: &[u8]) -> Option<Value> {
    let text = std::str::from_utf8(bytes).ok()?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    match form {
        ManifestForm::Cargo => parse_toml(text).map(by_name),
        ManifestForm::Python => parse_toml(text),
        ManifestForm::Node => serde_json::from_str(text).ok().filter(Value::is_object),
        ManifestForm::Yaml => serde_yaml::from_str(text).ok().filter(Value::is_object),
        ManifestForm::Ini => ini(text),
        ManifestForm::Go => Some(go(text)),
        ManifestForm::Cmake => Some(super::cmake::parse(text)),
    }
}

/// Turns the target lists of a crate into tables by name.
fn by_name(mut manifest: Value) -> Value {
    for list in ["bin", "test", "bench", "example"] {
        let Some(targets) = manifest.get_mut(list).filter(|targets| targets.is_array()) else { continue };
        let named = targets.as_array().into_iter().flatten().map(|target| {
            let name = target.get("name").and_then(Value::as_str).unwrap_or_default();
            (name.to_owned(), target.clone())
        });
        *targets = named.collect::<Map<_, _>>().into();
    }
    manifest
}

/// Reads sections of keys. An indented line continues the line before it.
fn ini(text: &str) -> Option<Value> {
    let mut sections: Map<String, Value> = Map::new();
    let (mut section, mut key) = (String::new(), String::new());
    for line in text.lines().filter(|line| !line.trim_start().starts_with(['#', ';']) && !line.trim().is_empty()) {
        let trimmed = line.trim();
        if line.starts_with([' ', '\t']) && !key.is_empty() {
            let value = sections.get_mut(&section)?.as_object_mut()?.get_mut(&key)?;
            *value = format!("{}\n{trimmed}", value.as_str()?).into();
        } else if let Some(name) = trimmed.strip_prefix('[') {
            section = name.split_once(']')?.0.to_owned();
            key.clear();
            sections.entry(section.clone()).or_insert_with(|| Map::new().into());
        } else {
            let (name, value) = trimmed.split_once(['=', ':']).unwrap_or((trimmed, ""));
            key = name.trim().to_lowercase();
            sections.get_mut(&section)?.as_object_mut()?.insert(key.clone(), value.trim().into());
        }
    }
    Some(sections.into())
}

/// Reads the directives of `go.mod`, each with its lines in sorted order.
fn go(text: &str) -> Value {
    let (mut directives, mut open): (Map<String, Value>, Option<String>) = (Map::new(), None);
    for line in text.lines() {
        let line = line.split("//").next().unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ");
        let (directive, rest) = match (&open, line.split_once(' ')) {
            (Some(_), _) if line == ")" => {
                open = None;
                continue;
            }
            (Some(directive), _) => (directive.clone(), line),
            (None, Some((directive, "("))) => {
                open = Some(directive.to_owned());
                continue;
            }
            (None, Some((directive, rest))) => (directive.to_owned(), rest.to_owned()),
            (None, None) => match line.strip_suffix('(') {
                Some(directive) => {
                    open = Some(directive.to_owned());
                    continue;
                }
                None => (line, String::new()),
            },
        };
        let lines = directives.entry(directive).or_insert_with(|| Value::Array(Vec::new()));
        if let Some(lines) = lines.as_array_mut().filter(|_| !rest.is_empty()) {
            lines.push(rest.into());
            lines.sort_by_key(|line| line.as_str().map(ToOwned::to_owned));
        }
    }
    directives.into()
}
