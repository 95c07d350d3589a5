//! `go.sum`.

use super::Entry;

/// The entries: a module, its version and the hash, or the hash of the module's `go.mod`.
pub(super) fn entries(content: &str) -> Result<Vec<Entry>, String> {
    let read = |line: &str| {
        let mut words = line.split_whitespace();
        let (Some(module), Some(version), Some(hash), None) = (words.next(), words.next(), words.next(), words.next())
        else {
            return Err(format!("`{line}` is not a module with a version and a hash"));
        };
        let mut entry = Entry::new(module, version);
        entry.checksums.insert(hash.to_owned());
        Ok(entry)
    };
    content.lines().filter(|line| !line.trim().is_empty()).map(read).collect()
}
