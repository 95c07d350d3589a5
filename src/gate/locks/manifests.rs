//! The sources of packages in manifests that are not judged by section.

use super::json_locks::{list, table};
use super::{Ecosystem, LockFormat, compare, json_locks};
use crate::gate::names::name_of;
use serde_json::Value;
use std::collections::BTreeSet;

/// Words in a `Gemfile` that select the sources of gems.
const GEMFILE: [&str; 12] = [
    "source",
    "git:",
    "git =>",
    "github",
    "gist",
    "bitbucket",
    "gitlab",
    "git_source",
    "eval_gemfile",
    "plugin",
    "http:",
    "https:",
];

/// Hosts of Go modules that many projects use.
#[rustfmt::skip]
const GO: [&str; 24] = [
    "github.com", "gitlab.com", "bitbucket.org", "codeberg.org", "golang.org", "google.golang.org", "cloud.google.com", "gopkg.in", "go.uber.org", "go.yaml.in",
    "go.opentelemetry.io", "go.opencensus.io", "go.mongodb.org", "go.etcd.io", "k8s.io", "sigs.k8s.io", "istio.io", "helm.sh", "modernc.org", "rsc.io",
    "gonum.org", "gorm.io", "dario.cat", "filippo.io",
];

/// Manifests in which single lines name sources: the start and the end of the file name, and groups
/// of words. A line names a source if it has a word of each group.
#[rustfmt::skip]
const BY_LINE: &[(&str, &str, &[&[&str]])] = &[
    ("Pipfile", "Pipfile", &[&["git", "http:", "https:", "url", "source", "registr", "index", "link:", "exec:"]]),
    ("pnpm-workspace", ".yaml", &[&["git", "http:", "https:", "url", "source", "registr", "index", "link:", "exec:"]]),
    ("setup", ".py", &[&["@ ", "dependency_links"], &["://", "git+"]]),
    ("mix", ".exs", &[&["git:", "github:", "repo:"]]),
    ("build", ".gradle", GRADLE),
    ("build", ".gradle.kts", GRADLE),
];

const GRADLE: &[&[&str]] = &[&["maven", "ivy", "uri(", "url"], &["://"]];
/// Gradle blocks that describe the published project. Their addresses are not sources of packages.
const DESCRIBES: [&str; 8] =
    ["pom", "scm", "license", "licenses", "developer", "organization", "issueManagement", "ciManagement"];
/// Sections of a `pubspec.yaml` with packages.
const OF_PUB: [&str; 4] = ["dependencies", "dev_dependencies", "dependency_overrides", "<<"];

/// Returns whether a path names a manifest that [`new_sources`] compares.
pub(in crate::gate) fn is_manifest(path: &str) -> bool {
    let name = name_of(path);
    by_line(name).is_some()
        || is_of_conda(name)
        || matches!(
            name,
            "Gemfile" | "composer.json" | "go.mod" | "pom.xml" | "pubspec.yaml" | "pubspec_overrides.yaml"
        )
}

fn by_line(name: &str) -> Option<&'static [&'static [&'static str]]> {
    BY_LINE.iter().find(|(start, end, _)| name.starts_with(start) && name.ends_with(end)).map(|(_, _, words)| *words)
}

/// Returns whether a name is that of a conda package list.
fn is_of_conda(name: &str) -> bool {
    name.starts_with("environment") && (name.ends_with(".yml") || name.ends_with(".yaml"))
}

/// Returns whether a path names the manifest beside a lock file.
pub(super) fn is_beside(ecosystem: Ecosystem, lock: &str, path: &str) -> bool {
    let names: &[&str] = match ecosystem {
        Ecosystem::Node => &["package.json"],
        Ecosystem::Rust => &["Cargo.toml"],
        Ecosystem::Python => &["pyproject.toml", "setup.py", "setup.cfg"],
        Ecosystem::Go => &["go.mod", "go.work"],
        Ecosystem::Ruby => &["Gemfile"],
        Ecosystem::Php => &["composer.json"],
        Ecosystem::Dart => &["pubspec.yaml"],
    };
    let folder = |path: &str| path.rsplit_once('/').map_or(String::new(), |(folder, _)| folder.to_owned());
    names.contains(&name_of(path)) && folder(path) == folder(lock)
}

/// Returns a message for each source of packages that a manifest names and the base's does not.
pub(super) fn new_sources(path: &str, was: Option<&[u8]>, is: Option<&[u8]>) -> Vec<String> {
    let (Some(is), true) = (is, is_manifest(path)) else { return Vec::new() };
    if name_of(path) == "go.mod" && was.is_none() {
        return Vec::new();
    }
    let (was, is) = (places(path, was.unwrap_or_default()), places(path, is));
    is.difference(&was).map(|place| format!("`{place}` is new: it says where packages come from")).collect()
}

fn places(path: &str, bytes: &[u8]) -> BTreeSet<String> {
    let content = String::from_utf8_lossy(bytes);
    match name_of(path) {
        "Gemfile" => {
            let lines = content.lines().map(str::trim).filter(|line| !line.starts_with('#'));
            lines.filter(|line| names_place_of_gems(path, line)).map(ToOwned::to_owned).collect()
        }
        "go.mod" => {
            let lines = content.lines().map(|line| line.split("//").next().unwrap_or_default().trim());
            let modules = lines.filter(|line| line.starts_with("module ") || line.split_whitespace().any(is_version));
            let named =
                modules.filter_map(|line| line.split_whitespace().find(|word| !["module", "require"].contains(word)));
            let hosts = named.map(|module| module.trim_matches('"').split('/').next().unwrap_or_default());
            hosts.filter(|host| host.contains('.') && !GO.contains(host)).map(ToOwned::to_owned).collect()
        }
        "composer.json" => {
            let manifest: Value = serde_json::from_str(&content).unwrap_or_default();
            let named = table(&manifest, "repositories").map(|(_, value)| value).chain(list(&manifest, "repositories"));
            let is_inside = |value: &Value| {
                json_locks::text(value, "type") == Some("path")
                    && json_locks::text(value, "url").is_some_and(|url| !compare::leaves(path, url))
            };
            named.filter(|value| !is_inside(value)).map(Value::to_string).collect()
        }
        "pom.xml" => {
            let content = without_distribution(&content);
            let blocks = ["repository", "pluginRepository"].into_iter().flat_map(|tag| elements(&content, tag));
            let urls = blocks.filter_map(|block| elements(block, "url").next()?.split('<').next());
            urls.map(|url| url.trim().to_owned()).collect()
        }
        "pubspec.yaml" | "pubspec_overrides.yaml" => pub_places(&content),
        name if is_of_conda(name) => conda_places(path, &content),
        name => {
            let words = by_line(name).unwrap_or_default();
            let described = if words == GRADLE { described(&content) } else { BTreeSet::new() };
            let lines = content.lines().enumerate().filter(|(number, _)| !described.contains(number));
            let lines = lines.map(|(_, line)| line.trim()).filter(|line| !line.starts_with(['#', '/']));
            let names = |line: &&str| words.iter().all(|group| group.iter().any(|word| has_word(line, word)));
            lines.filter(names).map(ToOwned::to_owned).collect()
        }
    }
}

/// Returns whether a line has a word. A word that ends with a colon must be a whole key.
fn has_word(line: &str, word: &str) -> bool {
    let is_whole = |at: usize| !line[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
    line.match_indices(word).any(|(at, _)| !word.ends_with(':') || is_whole(at))
}

/// Returns the text after each start tag of an element.
fn elements<'a>(content: &'a str, tag: &str) -> impl Iterator<Item = &'a str> {
    let starts = content.split(&format!("<{tag}")).skip(1).collect::<Vec<_>>().into_iter();
    let is_whole = |rest: &&str| rest.starts_with(|c: char| c == '>' || c.is_whitespace());
    starts.filter(is_whole).filter_map(|rest| Some(rest.split_once('>')?.1))
}

/// Removes comments and the places of publication from a `pom.xml`. The file stays whole if a text
/// in it may look like an element.
fn without_distribution(content: &str) -> String {
    let cut = |text: &str, start: &str, end: &str| {
        let (mut kept, mut rest) = (String::new(), text);
        while let Some((before, (_, after))) =
            rest.split_once(start).and_then(|(before, inner)| Some((before, inner.split_once(end)?)))
        {
            kept.push_str(before);
            rest = after;
        }
        kept + rest
    };
    let is_plain = !content.contains("<!D") && !content.contains("<![") && !content.contains("<!E");
    if !is_plain || content.matches("<?").count() > 1 {
        return content.to_owned();
    }
    cut(&cut(content, "<!--", "-->"), "<distributionManagement>", "</distributionManagement>")
}

/// Returns the numbers of the lines in a Gradle build file that only have an address in a block
/// that describes the project. The search ends at the first sign that may begin a multi-line text
/// or a pattern.
fn described(content: &str) -> BTreeSet<usize> {
    let (mut found, mut blocks) = (BTreeSet::new(), Vec::<String>::new());
    for (number, line) in content.lines().enumerate() {
        let (mut quote, mut word, mut chars) = (None, String::new(), line.chars().peekable());
        let mut is_only_there = !line.contains("maven") && !line.contains("ivy") && !line.contains(';');
        if line.contains("\"\"\"") || line.contains("'''") || line.contains("/*") || line.contains("$/") {
            return found;
        }
        while let Some(c) = chars.next() {
            match (quote, c) {
                (Some(_), '\\') => drop(chars.next()),
                (Some(open), c) if c == open => quote = None,
                (Some(_), _) => {}
                (None, '"' | '\'') => {
                    quote = Some(c);
                    is_only_there &= describes(&blocks);
                }
                (None, '/') if chars.peek() == Some(&'/') => break,
                (None, '/') => return found,
                (None, '{') => blocks.push(std::mem::take(&mut word)),
                (None, '}') => drop(blocks.pop()),
                (None, c) if c.is_alphanumeric() || c == '_' => word.push(c),
                (None, ' ') if chars.peek() == Some(&'{') => {}
                (None, _) => word.clear(),
            }
        }
        if quote.is_some() {
            return found;
        }
        if is_only_there {
            found.insert(number);
        }
    }
    found
}

/// Returns whether the innermost of these nested Gradle blocks describes the project, and none of
/// them names sources.
fn describes(blocks: &[String]) -> bool {
    let is_of_places = |block: &String| matches!(block.as_str(), "repositories" | "maven" | "ivy");
    blocks.last().is_some_and(|block| DESCRIBES.contains(&block.as_str())) && !blocks.iter().any(is_of_places)
}

/// Collects the texts in a value, each with its key.
fn texts<'v>(key: &'v str, value: &'v Value, found: &mut Vec<(&'v str, &'v str)>) {
    match value {
        Value::String(text) => found.push((key, text)),
        Value::Array(items) => items.iter().for_each(|item| texts(key, item, found)),
        Value::Object(entries) => entries.iter().for_each(|(key, value)| texts(key, value, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Returns the sources of Dart packages. If the file cannot be parsed, every line counts as a
/// source.
fn pub_places(content: &str) -> BTreeSet<String> {
    let mut found = Vec::new();
    let manifest: Value = match serde_yaml::from_str(content) {
        Ok(manifest) => manifest,
        Err(_) => return content.lines().map(|line| line.trim().to_owned()).collect(),
    };
    OF_PUB.iter().filter_map(|name| manifest.get(name)).for_each(|section| texts("", section, &mut found));
    let is_place = |(key, text): &(&str, &str)| {
        let is_outer = *key == "path" && (text.starts_with('/') || text.starts_with(".."));
        matches!(*key, "git" | "url" | "hosted") || is_outer || text.contains("://")
    };
    found.into_iter().filter(is_place).map(|(key, text)| format!("{key}: {text}")).collect()
}

/// Returns the channels of a conda package list, and the items that name an address, a channel or
/// an option of pip. If the list cannot be parsed, every line counts as a source.
fn conda_places(path: &str, content: &str) -> BTreeSet<String> {
    let (mut channels, mut items) = (Vec::new(), Vec::new());
    let list: Value = match serde_yaml::from_str(content) {
        Ok(list) => list,
        Err(_) => return content.lines().map(|line| line.trim().to_owned()).collect(),
    };
    for (key, value) in list.as_object().into_iter().flatten() {
        match key.as_str() {
            "channels" | "<<" => texts(key, value, &mut channels),
            _ => texts(key, value, &mut items),
        }
    }
    let is_other_list = |item: &str| match item.split_whitespace().collect::<Vec<_>>()[..] {
        ["-r" | "-c" | "--requirement" | "--constraint", file] => {
            LockFormat::of_path(file) == Some(LockFormat::Requirements) && !compare::leaves(path, file)
        }
        _ => false,
    };
    let place = |item: &str| {
        let is_address = ["://", "git+", " @ ", " --", "channel=", "url="].iter().any(|word| item.contains(word));
        match item.split_once("::") {
            _ if is_address || (item.starts_with('-') && !is_other_list(item)) => Some(item.to_owned()),
            Some((channel, _)) => Some(channel.trim().to_owned()),
            None => None,
        }
    };
    let named = items.into_iter().filter_map(|(_, item)| place(item.trim()));
    channels.into_iter().map(|(_, channel)| channel.to_owned()).chain(named).collect()
}

/// Returns whether a word of a `go.mod` is the version of a module.
fn is_version(word: &str) -> bool {
    word.strip_prefix('v').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

fn names_place_of_gems(path: &str, line: &str) -> bool {
    let outer = ["path:", ":path =>"].iter().find_map(|key| line.split_once(key));
    let outer = outer.and_then(|(_, rest)| rest.trim().trim_start_matches(['"', '\'']).split(['"', '\'']).next());
    GEMFILE.iter().any(|word| line.contains(word)) || outer.is_some_and(|outer| compare::leaves(path, outer))
}
