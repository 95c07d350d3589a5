//! The `pnpm-lock.yaml` of versions 5 to 9.

use super::json_locks::{table, text};
use super::{LockEntry, PackageSource, json_locks};
use serde_json::Value;

/// Parses the entries of the lock file: its packages, and the aliases under which others use
/// packages.
pub(super) fn entries(content: &str) -> Result<Vec<LockEntry>, String> {
    let lock: Value = serde_yaml::from_str(content).map_err(|error| error.to_string())?;
    if !lock.is_object() {
        return Err("the lock file is not a YAML mapping".into());
    }
    let mut entries: Vec<LockEntry> = table(&lock, "packages").map(|(key, value)| package(key, value)).collect();
    let importers = table(&lock, "importers").map(|(_, value)| value).chain([&lock]);
    let snapshots = ["packages", "snapshots"].into_iter().flat_map(|key| table(&lock, key)).map(|(_, value)| value);
    for user in importers.chain(snapshots) {
        for kind in ["dependencies", "devDependencies", "optionalDependencies"] {
            entries.extend(table(user, kind).filter_map(|(name, value)| alias(name, value)));
        }
    }
    entries.dedup();
    Ok(entries)
}

fn package(key: &str, value: &Value) -> LockEntry {
    let (name, version) = name_and_version(key);
    let mut entry = LockEntry::new(text(value, "name").unwrap_or(name), text(value, "version").unwrap_or(version));
    let Some(resolution) = value.get("resolution") else { return entry };
    json_locks::describe(&mut entry, text(resolution, "tarball"), text(resolution, "integrity"));
    if let Some(directory) = text(resolution, "directory") {
        entry.source = PackageSource::Path(directory.to_owned());
    }
    if let Some(repository) = text(resolution, "repo") {
        entry.source =
            PackageSource::Address(format!("{repository}#{}", text(resolution, "commit").unwrap_or_default()));
    }
    entry
}

/// Splits `/left-pad/1.3.0`, `/left-pad@1.3.0(react@18.0.0)` or `left-pad@1.3.0`.
fn name_and_version(key: &str) -> (&str, &str) {
    let key = key.strip_prefix('/').unwrap_or(key);
    let key = key.split_once('(').map_or(key, |(key, _)| key);
    let scope = if key.starts_with('@') { key.find('/').map_or(0, |end| end + 1) } else { 0 };
    let end = key[scope..].find(['@', '/']).map_or(key.len(), |end| scope + end);
    (&key[..end], key.get(end + 1..).unwrap_or_default())
}

/// Returns an entry for a dependency whose name is an alias of another package.
fn alias(name: &str, value: &Value) -> Option<LockEntry> {
    let version = value.as_str().or_else(|| text(value, "version"))?;
    let is_place = ["link:", "file:", "workspace:"].iter().any(|start| version.starts_with(start));
    let version = version.split_once('(').map_or(version, |(version, _)| version);
    if is_place || version.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let (target, version) = name_and_version(version);
    let mut entry = LockEntry::new(name, version);
    entry.alias = Some(target.to_owned()).filter(|target| target != name);
    entry.alias.is_some().then_some(entry)
}
