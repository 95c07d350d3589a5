//! The `yarn.lock` of Yarn 1 and of later versions.

use super::json_locks::text;
use super::{LockEntry, PackageSource, json_locks};
use serde_json::{Map, Value};

/// Parses the entries of the lock file.
pub(super) fn entries(content: &str) -> Result<Vec<LockEntry>, String> {
    if content.lines().any(|line| line.starts_with("__metadata:")) {
        let lock: Value = serde_yaml::from_str(content).map_err(|error| error.to_string())?;
        let lock = lock.as_object().ok_or("the lock file is not a YAML mapping")?;
        return Ok(lock.iter().filter(|(key, _)| *key != "__metadata").map(|(key, value)| berry(key, value)).collect());
    }
    classic(content)
}

/// Parses the format of Yarn 1. A block has a line with descriptors, and indented lines with a key
/// and a value.
fn classic(content: &str) -> Result<Vec<LockEntry>, String> {
    let mut blocks: Vec<(String, Map<String, Value>)> = Vec::new();
    for line in content.lines().filter(|line| !line.trim().is_empty() && !line.trim_start().starts_with('#')) {
        if !line.starts_with([' ', '\t']) {
            let key = line.trim_end().strip_suffix(':').ok_or_else(|| format!("`{line}` does not begin an entry"))?;
            blocks.push((key.to_owned(), Map::new()));
        } else if let Some(rest) = line.strip_prefix("  ").filter(|rest| !rest.starts_with(' ')) {
            let (_, block) = blocks.last_mut().ok_or_else(|| format!("`{line}` belongs to no entry"))?;
            if let Some((key, value)) = rest.trim_end().split_once(' ') {
                block.insert(unquoted(key).to_owned(), unquoted(value).into());
            }
        } else if !line.starts_with("    ") {
            return Err(format!("`{line}` has an unknown indentation"));
        }
    }
    Ok(blocks.into_iter().map(|(key, value)| classic_entry(&key, &Value::Object(value))).collect())
}

fn classic_entry(key: &str, value: &Value) -> LockEntry {
    let descriptor = unquoted(key.split(',').next().unwrap_or(key).trim());
    let (name, range) = name_and_range(descriptor);
    let mut entry = LockEntry::new(name, text(value, "version").unwrap_or_default());
    let alias = range.strip_prefix("npm:").map(|target| name_and_range(target).0);
    entry.alias = alias.filter(|target| *target != name).map(ToOwned::to_owned);
    json_locks::describe(
        &mut entry,
        text(value, "resolved").or(Some(range).filter(|_| is_place(range))),
        text(value, "integrity"),
    );
    if let Some(path) = range.strip_prefix("file:").or_else(|| range.strip_prefix("link:")) {
        entry.source = PackageSource::Path(path.to_owned());
    }
    // The fragment of an address is the SHA-1 of the archive.
    let fragments: Vec<String> = entry.urls.iter().filter_map(|url| Some(url.split_once('#')?.1.to_owned())).collect();
    if entry.checksums.is_empty() {
        entry.checksums.extend(fragments);
    }
    entry
}

fn berry(key: &str, value: &Value) -> LockEntry {
    let (name, _) = name_and_range(unquoted(key.split(',').next().unwrap_or(key).trim()));
    let (target, reference) = name_and_range(text(value, "resolution").unwrap_or_default());
    let mut entry =
        LockEntry::new(name, text(value, "version").or(value.get("version").map(|_| "")).unwrap_or_default());
    entry.alias = Some(target.to_owned()).filter(|target| target != name);
    entry.checksums.extend(text(value, "checksum").map(ToOwned::to_owned));
    if let Some(version) = reference.strip_prefix("npm:") {
        if let Some((_, archive)) = version.split_once("__archiveUrl=") {
            entry.fetch_from(&decoded(archive));
        }
        return entry;
    }
    let paths = ["workspace:", "link:", "portal:", "file:", "patch:"];
    entry.source = match paths.iter().find_map(|start| reference.strip_prefix(start)) {
        Some(path) => PackageSource::Path(path.split("::").next().unwrap_or(path).to_owned()),
        None => PackageSource::Address(reference.to_owned()),
    };
    entry
}

/// Splits `@scope/name@range`.
fn name_and_range(descriptor: &str) -> (&str, &str) {
    let end = descriptor.char_indices().skip(1).find(|(_, c)| *c == '@').map_or(descriptor.len(), |(end, _)| end);
    (&descriptor[..end], descriptor.get(end + 1..).unwrap_or_default())
}

fn is_place(range: &str) -> bool {
    range.contains("://") || range.starts_with("git") || (range.contains('/') && !range.starts_with("npm:"))
}

fn unquoted(text: &str) -> &str {
    text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text)
}

/// Decodes a percent-encoded text, up to the first `&`.
fn decoded(text: &str) -> String {
    let text = text.split('&').next().unwrap_or(text);
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let Some((&byte, after)) = rest.split_first() {
        let code = after.get(..2).filter(|_| byte == b'%').and_then(|code| std::str::from_utf8(code).ok());
        match code.and_then(|code| u8::from_str_radix(code, 16).ok()) {
            Some(code) => (bytes.push(code), rest = &after[2..]),
            None => (bytes.push(byte), rest = after),
        };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
