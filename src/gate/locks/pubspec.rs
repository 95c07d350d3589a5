//! The `pubspec.lock` of Dart.

use super::json_locks::{table, text};
use super::registries::host;
use super::{LockEntry, PackageSource};
use serde_json::Value;

/// Parses the entries of the lock file.
pub(super) fn entries(content: &str) -> Result<Vec<LockEntry>, String> {
    let lock: Value = serde_yaml::from_str(content).map_err(|error| error.to_string())?;
    if !lock.is_object() {
        return Err("the lock file is not a YAML mapping".into());
    }
    Ok(table(&lock, "packages").map(|(name, value)| package(name, value)).collect())
}

fn package(name: &str, value: &Value) -> LockEntry {
    let mut entry = LockEntry::new(name, text(value, "version").unwrap_or_default());
    let Some(description) = value.get("description") else { return entry };
    let (url, path) = (text(description, "url"), text(description, "path").unwrap_or_default());
    match text(value, "source") {
        Some("git") => {
            let revision = text(description, "resolved-ref").unwrap_or_default();
            entry.source =
                PackageSource::Address(format!("{}#{revision} {path}", url.unwrap_or_default()).trim().to_owned());
        }
        Some("path") => entry.source = PackageSource::Path(path.to_owned()),
        _ => {
            entry.alias = text(description, "name").filter(|own| *own != name).map(ToOwned::to_owned);
            if let Some(url) = url {
                entry.places.insert(host(url));
                entry.urls.insert(with_one_name(url));
            }
            entry.checksums.extend(text(description, "sha256").filter(|sum| !sum.is_empty()).map(ToOwned::to_owned));
        }
    }
    entry
}

/// Returns the address of a registry. The public registry has two names, and older lock files use
/// the other entry.
fn with_one_name(url: &str) -> String {
    match host(url).as_str() {
        "pub.dev" => "https://pub.dev".to_owned(),
        _ => url.to_owned(),
    }
}
