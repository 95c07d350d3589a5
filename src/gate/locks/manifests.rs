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

/// Returns whether a path is that of a manifest which [`new_sources`] compares.
pub(in crate::gate) fn is_manifest(path: &str) -> bool {
    matches!(name_of(path), "Gemfile" | "composer.json" | "Pipfile" | "pnpm-workspace.yaml" | "go.mod")
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
        _ => {
            let words = ["git", "http:", "https:", "url", "source", "registr", "index", "link:", "exec:"];
            let lines = content.lines().map(str::trim).filter(|line| !line.starts_with('#'));
            lines.filter(|line| words.iter().any(|word| line.contains(word))).map(ToOwned::to_owned).collect()
        }
    }
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
