//! The registries that the base uses: those in its lock file and configuration, else the public
//! registry of the ecosystem.

use super::json_locks::{list, table, text};
use super::{Ecosystem, LockFormat};
use crate::lane::parse_toml;
use serde_json::Value;
use std::collections::BTreeSet;

/// Files that configure registries. fledge reads them beside the lock file and at the root.
pub(in crate::gate) const CONFIGURED: [&str; 11] = [
    ".npmrc",
    ".yarnrc",
    ".yarnrc.yml",
    "pip.conf",
    "uv.toml",
    "pyproject.toml",
    "Pipfile",
    ".cargo/config.toml",
    ".cargo/config",
    "Gemfile",
    "composer.json",
];

/// The registries from which new entries may come.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct KnownRegistries {
    /// The registries that the configuration names.
    pub(super) configured: BTreeSet<String>,
    /// The configuration replaces the public registry with another one.
    pub(super) has_default: bool,
    /// The public registries of the ecosystem.
    pub(super) public: &'static [&'static str],
}

/// Reads the registries that the configuration of the base names for a lock file.
pub(super) fn known(format: LockFormat, path: &str, read: impl Fn(&str) -> Option<Vec<u8>>) -> KnownRegistries {
    let ecosystem = format.ecosystem();
    let mut known = KnownRegistries { public: public(ecosystem), ..KnownRegistries::default() };
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let places: BTreeSet<&str> = BTreeSet::from(["", folder]);
    for name in CONFIGURED.iter().filter(|name| ecosystem_of(name) == ecosystem) {
        for place in &places {
            let path = if place.is_empty() { (*name).to_owned() } else { format!("{place}/{name}") };
            let text = read(&path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
            for (url, is_default) in text.iter().flat_map(|text| named(name, text)) {
                let place = if ecosystem == Ecosystem::Rust { index(&url) } else { host(&url) };
                known.configured.insert(place);
                known.has_default |= is_default;
            }
        }
    }
    known
}

fn ecosystem_of(name: &str) -> Ecosystem {
    match name {
        ".npmrc" | ".yarnrc" | ".yarnrc.yml" => Ecosystem::Node,
        ".cargo/config.toml" | ".cargo/config" => Ecosystem::Rust,
        "Gemfile" => Ecosystem::Ruby,
        "composer.json" => Ecosystem::Php,
        _ => Ecosystem::Python,
    }
}

fn public(ecosystem: Ecosystem) -> &'static [&'static str] {
    match ecosystem {
        Ecosystem::Node => &["registry.npmjs.org"],
        Ecosystem::Python => &["pypi.org"],
        Ecosystem::Rust => &["crates.io"],
        Ecosystem::Go => &[],
        Ecosystem::Dart => &["pub.dev"],
        Ecosystem::Ruby => &["rubygems.org"],
        Ecosystem::Php => &[
            "api.github.com",
            "github.com",
            "codeload.github.com",
            "gitlab.com",
            "packagist.org",
            "repo.packagist.org",
        ],
    }
}

/// The registries that a configuration file names, and whether each is the default.
fn named(name: &str, content: &str) -> Vec<(String, bool)> {
    match name {
        ".npmrc" | ".yarnrc" | ".yarnrc.yml" | "pip.conf" | "Gemfile" => content.lines().filter_map(in_line).collect(),
        "composer.json" => {
            let manifest: Value = serde_json::from_str(content).unwrap_or_default();
            let named = table(&manifest, "repositories").map(|(_, value)| value).chain(list(&manifest, "repositories"));
            named.filter_map(|value| Some((text(value, "url")?.to_owned(), false))).collect()
        }
        _ => parse_toml(content).map_or(Vec::new(), |value| in_toml(&value)),
    }
}

/// Parses a registry in a line: `registry=https://…`, `npmRegistryServer: "https://…"` or
/// `source "https://…"`. Returns its address, and whether it is the default.
fn in_line(line: &str) -> Option<(String, bool)> {
    let line = line.trim();
    let keys = ["registry", "npmRegistryServer", "index-url", "extra-index-url", "source"];
    let key = keys.iter().find(|key| line.contains(*key)).filter(|_| !line.starts_with(['#', ';']))?;
    let start = line.find("http://").or_else(|| line.find("https://"))?;
    let url = line[start..].split(['"', '\'', ' ', ',']).next()?;
    let is_default = line.starts_with(key) && *key != "extra-index-url";
    Some((url.to_owned(), is_default))
}

fn in_toml(config: &Value) -> Vec<(String, bool)> {
    let mut found = Vec::new();
    let tool = |name: &str| config.get("tool").and_then(|tool| tool.get(name));
    for uv in [Some(config), tool("uv")].into_iter().flatten() {
        let default = text(uv, "index-url").map(|url| (url.to_owned(), true));
        let extra = list(uv, "extra-index-url").filter_map(Value::as_str).map(|url| (url.to_owned(), false));
        let is_default = |index: &Value| index.get("default").and_then(Value::as_bool) == Some(true);
        let indexes = list(uv, "index").filter_map(|index| Some((text(index, "url")?.to_owned(), is_default(index))));
        found.extend(default.into_iter().chain(extra).chain(indexes));
    }
    let sources = ["poetry", "pdm"].into_iter().filter_map(tool).flat_map(|tool| list(tool, "source"));
    let sources = sources.chain(list(config, "source"));
    found.extend(sources.filter_map(|source| Some((text(source, "url")?.to_owned(), false))));
    found.extend(table(config, "registries").filter_map(|(_, it)| Some((text(it, "index")?.to_owned(), false))));
    found.extend(table(config, "source").filter_map(|(_, it)| Some((text(it, "registry")?.to_owned(), false))));
    found
}

/// Returns whether an address starts with `https://` or `http://`.
pub(super) fn is_web(url: &str) -> bool {
    url.starts_with("https://") || url.starts_with("http://")
}

/// Returns the host of an address in lower case, with `http://` if the transfer is unprotected.
/// Hosts of one public registry have one name. Any other text is returned whole, so it equals no
/// host.
pub(super) fn host(url: &str) -> String {
    let (plain, rest) = match (url.strip_prefix("https://"), url.strip_prefix("http://")) {
        (Some(rest), _) => ("", rest),
        (None, Some(rest)) => ("http://", rest),
        (None, None) => return url.to_owned(),
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or(rest);
    let host = authority.rsplit('@').next().unwrap_or(authority).to_lowercase();
    let host = host.strip_suffix(":443").filter(|_| plain.is_empty()).unwrap_or(&host);
    let one = match host {
        "registry.yarnpkg.com" => "registry.npmjs.org",
        "files.pythonhosted.org" | "pypi.python.org" => "pypi.org",
        "index.rubygems.org" => "rubygems.org",
        "pub.dartlang.org" => "pub.dev",
        other => other,
    };
    format!("{plain}{one}")
}

/// Returns an index of cargo without its protocol. The indexes of crates.io have one name.
pub(super) fn index(url: &str) -> String {
    let url = ["registry+", "sparse+"].iter().find_map(|start| url.strip_prefix(start)).unwrap_or(url);
    let plain = url.strip_prefix("https://").unwrap_or(url).trim_end_matches('/');
    match plain {
        "github.com/rust-lang/crates.io-index" | "index.crates.io" => "crates.io".to_owned(),
        other => other.to_owned(),
    }
}
