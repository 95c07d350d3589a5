//! Manifests that are not judged by section, and name places from which packages come.

use super::json_locks::{list, table};
use super::{Ecosystem, compare, json_locks};
use crate::gate::names::name_of;
use serde_json::Value;
use std::collections::BTreeSet;

/// Words of a `Gemfile` that say where gems come from.
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

/// Hosts of modules of Go that many projects use.
#[rustfmt::skip]
const GO: [&str; 24] = [
    "github.com", "gitlab.com", "bitbucket.org", "codeberg.org", "golang.org", "google.golang.org", "cloud.google.com", "gopkg.in", "go.uber.org", "go.yaml.in",
    "go.opentelemetry.io", "go.opencensus.io", "go.mongodb.org", "go.etcd.io", "k8s.io", "sigs.k8s.io", "istio.io", "helm.sh", "modernc.org", "rsc.io",
    "gonum.org", "gorm.io", "dario.cat", "filippo.io",
];

/// Manifests whose lines name places: how a name begins and ends, and the words of which such a line has one of each group.
#[rustfmt::skip]
const BY_LINE: &[(&str, &str, &[&[&str]])] = &[
    ("Pipfile", "Pipfile", &[&["git", "http:", "https:", "url", "source", "registr", "index", "link:", "exec:"]]),
    ("pnpm-workspace", ".yaml", &[&["git", "http:", "https:", "url", "source", "registr", "index", "link:", "exec:"]]),
    ("setup", ".py", &[&["@ ", "dependency_links"], &["://", "git+"]]),
    ("mix", ".exs", &[&["git:", "github:", "repo:"]]),
    ("build", ".gradle", &[&["maven", "ivy", "uri(", "url"], &["://"]]),
    ("build", ".gradle.kts", &[&["maven", "ivy", "uri(", "url"], &["://"]]),
];

/// Returns whether a path is that of a manifest which [`new_sources`] compares.
pub(in crate::gate) fn is_manifest(path: &str) -> bool {
    let name = name_of(path);
    by_line(name).is_some()
        || is_of_conda(name)
        || matches!(
            name,
            "Gemfile"
                | "composer.json"
                | "go.mod"
                | "pom.xml"
                | "pubspec.yaml"
                | "pubspec.lock"
                | "pubspec_overrides.yaml"
        )
}

fn by_line(name: &str) -> Option<&'static [&'static [&'static str]]> {
    BY_LINE.iter().find(|(start, end, _)| name.starts_with(start) && name.ends_with(end)).map(|(_, _, words)| *words)
}

/// Whether a name is that of a list of packages for conda.
fn is_of_conda(name: &str) -> bool {
    name.starts_with("environment") && (name.ends_with(".yml") || name.ends_with(".yaml"))
}

/// Returns whether a path is that of the manifest beside a lock file.
pub(super) fn is_beside(ecosystem: Ecosystem, lock: &str, path: &str) -> bool {
    let names: &[&str] = match ecosystem {
        Ecosystem::Node => &["package.json"],
        Ecosystem::Rust => &["Cargo.toml"],
        Ecosystem::Python => &["pyproject.toml", "setup.py", "setup.cfg"],
        Ecosystem::Go => &["go.mod", "go.work"],
        Ecosystem::Ruby => &["Gemfile"],
        Ecosystem::Php => &["composer.json"],
    };
    let folder = |path: &str| path.rsplit_once('/').map_or(String::new(), |(folder, _)| folder.to_owned());
    names.contains(&name_of(path)) && folder(path) == folder(lock)
}

/// The places that a manifest names and that of the base did not.
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
            let blocks = ["<repository>", "<pluginRepository>"].into_iter().flat_map(|tag| content.split(tag).skip(1));
            let urls = blocks.filter_map(|block| block.split_once("<url>")?.1.split('<').next());
            urls.map(|url| url.trim().to_owned()).collect()
        }
        "pubspec.yaml" | "pubspec.lock" | "pubspec_overrides.yaml" => {
            // What is not indented describes the package itself.
            let words =
                ["git:", "url:", "hosted:", "path: \"/", "path: /", "path: ..", "path: \"..", "https://", "http://"];
            let lines = content.lines().filter(|line| line.starts_with([' ', '\t']));
            lines
                .filter(|line| words.iter().any(|word| line.contains(word)))
                .map(|line| line.trim().to_owned())
                .collect()
        }
        name if is_of_conda(name) => conda_places(&content),
        name => {
            let words = by_line(name).unwrap_or_default();
            let lines = content.lines().map(str::trim).filter(|line| !line.starts_with(['#', '/']));
            let names = |line: &&str| words.iter().all(|group| group.iter().any(|word| line.contains(word)));
            lines.filter(names).map(ToOwned::to_owned).collect()
        }
    }
}

/// The channels of a list of packages for conda, and what its lines name by address or by an option of pip.
fn conda_places(content: &str) -> BTreeSet<String> {
    let (mut found, mut section) = (BTreeSet::new(), "");
    let lines = content.lines().filter(|line| !line.trim_start().starts_with('#'));
    for line in lines.map(|line| line.split(" #").next().unwrap_or_default()) {
        if let Some((key, rest)) = line.split_once(':').filter(|_| !line.starts_with([' ', '\t', '-'])) {
            section = key;
            let listed =
                rest.trim().trim_start_matches('[').trim_end_matches(']').split(',').filter(|_| key == "channels");
            found.extend(listed.map(str::trim).filter(|name| !name.is_empty()).map(ToOwned::to_owned));
            continue;
        }
        let item = line.trim().trim_start_matches("- ").trim_matches(['"', '\'']);
        let names = ["://", "git+", "--", " @ ", "::"].iter().any(|word| item.contains(word)) || item.starts_with("-");
        if !item.is_empty() && (section == "channels" || names) {
            found.insert(item.to_owned());
        }
    }
    found
}

/// Whether a word of a `go.mod` is the version of a module.
fn is_version(word: &str) -> bool {
    word.strip_prefix('v').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

fn names_place_of_gems(path: &str, line: &str) -> bool {
    let outer = ["path:", ":path =>"].iter().find_map(|key| line.split_once(key));
    let outer = outer.and_then(|(_, rest)| rest.trim().trim_start_matches(['"', '\'']).split(['"', '\'']).next());
    GEMFILE.iter().any(|word| line.contains(word)) || outer.is_some_and(|outer| compare::leaves(path, outer))
}
