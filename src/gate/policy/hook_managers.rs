//! Managers of git hooks: their configuration, and the folders and commands that it names. Pure.

use super::BaseFiles;
use super::named::{inside, text};
use crate::gate::names::name_of;
use crate::pattern::Patterns;
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::LazyLock;

/// Files whose lines are commands of git hooks.
pub(super) const OF_HOOKS: &[&str] = &[
    ".pre-commit-config.{yaml,yml}",
    ".pre-commit-hooks.{yaml,yml}",
    "**/prek.toml",
    "{.,.config/,}lefthook{-local,}.{yml,yaml,toml,json,jsonc}",
    ".lefthook{-local,}/**",
    ".overcommit.yml",
    "captainhook{.config,}.json",
    "{.,}rusty-hook.toml",
    ".huskyrc{.*,}",
    "husky.config.*",
    "**/.husky/*",
    ".cargo-husky/hooks/*",
    ".githooks/*",
];
/// Keys of a `package.json` with commands of git hooks, from husky, yorkie, ghooks and others.
const OF_NODE: [&str; 9] = [
    "/husky",
    "/simple-git-hooks",
    "/gitHooks",
    "/git-hooks",
    "/config/ghooks",
    "/pre-commit",
    "/pre-push",
    "/lint-staged",
    "/nano-staged",
];
/// Configurations that name folders or files of hooks.
const NAMING: &str = "{{.,.config/,}lefthook{-local,}.{yml,yaml,toml,json,jsonc},.overcommit.yml}";
/// Keys of these configurations whose values are such paths.
const KEYS: [&str; 5] = ["source_dir", "source_dir_local", "extends", "rc", "plugin_directory"];

/// Returns the paths and patterns, relative to the root, that the configurations of a base name as
/// hooks or as further configuration.
pub(super) fn named(base: &BaseFiles, read: &mut dyn FnMut(&str) -> Option<Vec<u8>>) -> BTreeSet<String> {
    static NAMING_FILES: LazyLock<Option<Patterns>> = LazyLock::new(|| Patterns::files(&format!("/{NAMING}")).ok());
    let is_naming = |path: &&String| NAMING_FILES.as_ref().is_some_and(|patterns| patterns.fit(path));
    let texts: Vec<String> = base.0.iter().filter(is_naming).filter_map(|path| text(path, read)).collect();
    let values = texts.iter().flat_map(|text| values(text));
    values.filter_map(|value| inside("", value)).filter(|path| !path.is_empty()).collect()
}

/// Returns the commands of hooks in a manifest of Node, one on a line.
pub(super) fn commands_of_node(path: &str, read: &mut dyn FnMut(&str) -> Option<Vec<u8>>) -> Option<String> {
    if name_of(path) != "package.json" || path.contains("node_modules/") {
        return None;
    }
    let manifest: Value = serde_json::from_str(&text(path, read)?).ok()?;
    let mut found = Vec::new();
    OF_NODE.iter().filter_map(|at| manifest.pointer(at)).for_each(|value| add_texts(value, &mut found));
    (!found.is_empty()).then(|| found.join("\n"))
}

fn add_texts<'v>(value: &'v Value, found: &mut Vec<&'v str>) {
    match value {
        Value::String(text) => found.push(text),
        Value::Array(items) => items.iter().for_each(|item| add_texts(item, found)),
        Value::Object(entries) => entries.values().for_each(|item| add_texts(item, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Returns the values of [`KEYS`] in YAML, TOML or JSON: the rest of the line, or the items below.
fn values(text: &str) -> Vec<&str> {
    let (mut found, mut is_open) = (Vec::new(), false);
    for line in text.lines().map(str::trim) {
        let key = line.split_once([':', '=']).map(|(key, rest)| (key.trim_matches(['"', '\'', ' ', '{']), rest));
        let rest = match key {
            Some((key, rest)) => {
                is_open = KEYS.contains(&key);
                if is_open { rest } else { "" }
            }
            None if is_open => line.trim_start_matches("- "),
            None => "",
        };
        let plain = rest.split([',', '[', ']', '}']).map(|item| item.trim().trim_matches(['"', '\'']));
        found.extend(plain.filter(|item| !item.is_empty()));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_values_of_keys_are_found_in_each_form_of_a_configuration() {
        for (text, expected) in [
            ("source_dir: tools/hooks\npre-push:\n  scripts:\n    a.sh:\n", &["tools/hooks"][..]),
            ("extends:\n  - a.yml\n  - 'b/*.yml'\npre-push:\n  - c.yml\n", &["a.yml", "b/*.yml"]),
            ("extends: [a.yml, \"b.yml\"]\n", &["a.yml", "b.yml"]),
            ("source_dir = \"tools\"\nrc = './rc.sh'\n", &["tools", "./rc.sh"]),
            ("{\n  \"source_dir_local\": \"mine\",\n  \"extends\": [\n    \"a.json\"\n  ]\n}", &["mine", "a.json"]),
            ("plugin_directory: 'ov'\n", &["ov"]),
            ("other: a\n- b\n", &[]),
        ] {
            assert_eq!(values(text), expected, "{text}");
        }
    }
}
