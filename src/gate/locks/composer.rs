//! `composer.lock`.

use super::json::{list, text};
use super::{Entry, Source};
use serde_json::Value;

/// The entries of both lists of packages.
pub(super) fn entries(content: &str) -> Result<Vec<Entry>, String> {
    let lock: Value = serde_json::from_str(content).map_err(|error| error.to_string())?;
    if !lock.is_object() {
        return Err("the lock file is not a JSON object".into());
    }
    Ok(["packages", "packages-dev"].into_iter().flat_map(|key| list(&lock, key)).map(package).collect())
}

fn package(package: &Value) -> Entry {
    let mut entry = Entry::new(text(package, "name").unwrap_or_default(), text(package, "version").unwrap_or_default());
    for place in ["dist", "source"].into_iter().filter_map(|key| package.get(key)) {
        let url = text(place, "url").unwrap_or_default();
        match text(place, "type") {
            Some("path") => entry.source = Source::Path(url.to_owned()),
            // The revision is a part of the version, not of the repository.
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
