//! TOML lock files: `Cargo.lock`, `uv.lock` and `poetry.lock`.

use super::json_locks::{list, needs, table, text};
use super::{LockEntry, PackageSource, registries};
use crate::lane::parse_toml;
use serde_json::Value;

fn packages(content: &str) -> Result<(Value, Vec<Value>), String> {
    let lock = parse_toml(content).ok_or("the lock file is not TOML")?;
    let packages = list(&lock, "package").cloned().collect();
    Ok((lock, packages))
}

fn entry(package: &Value) -> LockEntry {
    let entry = LockEntry::new(text(package, "name").unwrap_or_default(), text(package, "version").unwrap_or_default());
    LockEntry { needs: needs(package, &["dependencies", "optional-dependencies", "extras"]), ..entry }
}

/// Parses the entries of `Cargo.lock`. Old versions keep checksums in a table `metadata`.
pub(super) fn cargo(content: &str) -> Result<Vec<LockEntry>, String> {
    let (lock, packages) = packages(content)?;
    let read = |package: &Value| {
        let mut entry = entry(package);
        match text(package, "source") {
            None => entry.source = PackageSource::Path(String::new()),
            Some(source) if source.starts_with("registry+") || source.starts_with("sparse+") => {
                entry.places.insert(registries::index(source));
            }
            Some(source) => entry.source = PackageSource::Address(source.to_owned()),
        }
        let key =
            format!("checksum {} {} ({})", entry.name, entry.version, text(package, "source").unwrap_or_default());
        let old = lock.get("metadata").and_then(|metadata| text(metadata, &key));
        entry.checksums.extend(text(package, "checksum").or(old).map(ToOwned::to_owned));
        entry
    };
    Ok(packages.iter().map(read).collect())
}

/// Parses the entries of `uv.lock`.
pub(super) fn uv(content: &str) -> Result<Vec<LockEntry>, String> {
    let (_, packages) = packages(content)?;
    let read = |package: &Value| {
        let mut entry = entry(package);
        let source = package.get("source").unwrap_or(&Value::Null);
        if let Some(registry) = text(source, "registry") {
            entry.places.insert(registries::host(registry));
        }
        if let Some(address) = ["git", "url"].iter().find_map(|key| text(source, key)) {
            entry.source = PackageSource::Address(address.to_owned());
        }
        if let Some(path) = ["path", "directory", "editable", "virtual"].iter().find_map(|key| text(source, key)) {
            entry.source = PackageSource::Path(path.to_owned());
        }
        for file in package.get("sdist").into_iter().chain(list(package, "wheels")) {
            if let Some(url) = text(file, "url") {
                entry.fetch_from(url);
            }
            let hash = text(file, "hash");
            entry.is_bare |= hash.is_none();
            entry.checksums.extend(hash.map(ToOwned::to_owned));
        }
        entry
    };
    Ok(packages.iter().map(read).collect())
}

/// Parses the entries of `poetry.lock`. Old versions keep the files in a table `metadata`.
pub(super) fn poetry(content: &str) -> Result<Vec<LockEntry>, String> {
    let (lock, packages) = packages(content)?;
    let read = |package: &Value| {
        let mut entry = entry(package);
        let source = package.get("source").unwrap_or(&Value::Null);
        let address = text(source, "url").unwrap_or_default();
        match text(source, "type") {
            None => {}
            Some("legacy") => drop(entry.places.insert(registries::host(address))),
            Some("directory" | "file") => entry.source = PackageSource::Path(address.to_owned()),
            Some(_) => {
                let revision = text(source, "resolved_reference").unwrap_or_default();
                entry.source = PackageSource::Address(format!("{address}#{revision}"));
            }
        }
        let metadata = lock.get("metadata").unwrap_or(&Value::Null);
        let old = table(metadata, "files").filter(|(name, _)| **name == entry.name).map(|(_, files)| files);
        let old = old.filter_map(Value::as_array).flatten();
        let files: Vec<&Value> = list(package, "files").chain(old).collect();
        for file in files {
            let hash = text(file, "hash");
            entry.is_bare |= hash.is_none();
            entry.checksums.extend(hash.map(ToOwned::to_owned));
        }
        entry
    };
    Ok(packages.iter().map(read).collect())
}
