//! JSON lock files: all versions of `package-lock.json` and `npm-shrinkwrap.json`, and
//! `composer.lock`. Also functions that read parsed values.

use super::{LockEntry, PackageSource, registries};
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// Returns the text at a key.
pub(super) fn text<'v>(value: &'v Value, key: &str) -> Option<&'v str> {
    value.get(key).and_then(Value::as_str)
}

/// Returns the entries of the table at a key; none if no table exists.
pub(super) fn table<'v>(value: &'v Value, key: &str) -> impl Iterator<Item = (&'v String, &'v Value)> {
    value.get(key).and_then(Value::as_object).into_iter().flat_map(Map::iter)
}

/// Returns the items of the list at a key; none if no list exists.
pub(super) fn list<'v>(value: &'v Value, key: &str) -> impl Iterator<Item = &'v Value> {
    value.get(key).and_then(Value::as_array).into_iter().flatten()
}

/// Returns the dependencies of a package at these keys: the items of lists, and the names in tables
/// with their values.
pub(super) fn needs(package: &Value, keys: &[&str]) -> BTreeSet<String> {
    let written = |value: &Value| value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned);
    let in_lists = keys.iter().flat_map(|key| list(package, key)).map(written);
    let in_tables = keys.iter().flat_map(|key| table(package, key));
    in_lists.chain(in_tables.map(|(name, value)| format!("{name} {}", written(value)))).collect()
}

/// Parses the entries of the lock file. Newer npm reads `packages` and older npm reads
/// `dependencies`, so both count.
pub(super) fn npm(content: &str) -> Result<Vec<LockEntry>, String> {
    let lock: Value = serde_json::from_str(content).map_err(|error| error.to_string())?;
    if !lock.is_object() {
        return Err("the lock file is not a JSON object".into());
    }
    let packages = table(&lock, "packages").filter(|(path, _)| !path.is_empty());
    let mut entries: Vec<LockEntry> = packages.map(|(path, value)| npm_package(path, value)).collect();
    add_dependencies(&lock, &mut entries, 0)?;
    Ok(entries)
}

fn npm_package(path: &str, value: &Value) -> LockEntry {
    let Some((_, name)) = path.rsplit_once("node_modules/") else {
        // A folder of the workspace.
        let mut entry = LockEntry::new(text(value, "name").unwrap_or(path), text(value, "version").unwrap_or_default());
        entry.source = PackageSource::Path(path.to_owned());
        return entry;
    };
    let mut entry = LockEntry::new(name, text(value, "version").unwrap_or_default());
    entry.needs = needs(value, &["dependencies", "optionalDependencies", "peerDependencies"]);
    entry.alias = text(value, "name").filter(|own| *own != name).map(ToOwned::to_owned);
    if value.get("hasInstallScript").and_then(Value::as_bool) == Some(true) {
        entry.runs.insert("an install script".into());
    }
    entry.runs.extend(table(value, "bin").map(|(program, _)| format!("the program `{program}`")));
    if value.get("link").and_then(Value::as_bool) == Some(true) {
        entry.source = PackageSource::Path(text(value, "resolved").unwrap_or_default().to_owned());
    } else {
        describe(&mut entry, text(value, "resolved"), text(value, "integrity"));
    }
    entry
}

fn add_dependencies(value: &Value, entries: &mut Vec<LockEntry>, depth: usize) -> Result<(), String> {
    if depth > 100 {
        return Err("dependencies are nested too deeply".into());
    }
    for (name, value) in table(value, "dependencies").filter(|(_, value)| value.is_object()) {
        let version = text(value, "version").unwrap_or_default();
        let mut entry = LockEntry::new(name, version);
        entry.needs = needs(value, &["requires"]);
        let resolved = text(value, "resolved");
        if let Some(alias) = version.strip_prefix("npm:") {
            let (target, version) = alias.rsplit_once('@').unwrap_or((alias, ""));
            (entry.alias, entry.version) = (Some(target.to_owned()), version.to_owned());
            describe(&mut entry, resolved, text(value, "integrity"));
        } else {
            // A version may name a place instead of `resolved`.
            let place = version.contains([':', '/']).then_some(version);
            describe(&mut entry, resolved.or(place), text(value, "integrity"));
            if let Some(place) = place.filter(|place| !registries::is_web(place)) {
                describe(&mut entry, Some(place), None);
            }
        }
        entries.push(entry);
        add_dependencies(value, entries, depth + 1)?;
    }
    Ok(())
}

/// Adds the place and the checksums of an entry.
pub(super) fn describe(entry: &mut LockEntry, resolved: Option<&str>, integrity: Option<&str>) {
    if let Some(place) = resolved {
        if let Some(path) = place.strip_prefix("file:") {
            entry.source = PackageSource::Path(path.to_owned());
        } else if registries::is_web(place) {
            entry.fetch_from(place);
        } else {
            entry.source = PackageSource::Address(place.to_owned());
        }
    }
    entry.checksums.extend(integrity.into_iter().flat_map(str::split_whitespace).map(ToOwned::to_owned));
}

/// Parses the entries of both lists of packages.
pub(super) fn composer(content: &str) -> Result<Vec<LockEntry>, String> {
    let lock: Value = serde_json::from_str(content).map_err(|error| error.to_string())?;
    if !lock.is_object() {
        return Err("the lock file is not a JSON object".into());
    }
    Ok(["packages", "packages-dev"].into_iter().flat_map(|key| list(&lock, key)).map(composer_package).collect())
}

fn composer_package(package: &Value) -> LockEntry {
    let mut entry =
        LockEntry::new(text(package, "name").unwrap_or_default(), text(package, "version").unwrap_or_default());
    entry.needs = needs(package, &["require"]);
    for place in ["dist", "source"].into_iter().filter_map(|key| package.get(key)) {
        let url = text(place, "url").unwrap_or_default();
        match text(place, "type") {
            Some("path") => entry.source = PackageSource::Path(url.to_owned()),
            // The revision is part of the version, not of the repository.
            Some(_) | None => entry.fetch_from(&match text(place, "reference").filter(|own| !own.is_empty()) {
                Some(reference) if url.ends_with(reference) => url.to_owned(),
                Some(reference) => format!("{url}#{reference}"),
                None => url.to_owned(),
            }),
        }
        entry.checksums.extend(text(place, "shasum").filter(|sum| !sum.is_empty()).map(ToOwned::to_owned));
    }
    entry
}
