//! `Gemfile.lock`.

use super::{Entry, Source, registries};

/// The entries: gems below `GEM`, `GIT` and `PATH`, with the checksums of `CHECKSUMS`.
pub(super) fn entries(content: &str) -> Result<Vec<Entry>, String> {
    let (mut entries, mut section): (Vec<Entry>, &str) = (Vec::new(), "");
    let (mut remotes, mut revision): (Vec<&str>, &str) = (Vec::new(), "");
    for line in content.lines().filter(|line| !line.trim().is_empty()) {
        if !line.starts_with(' ') {
            (section, remotes, revision) = (line.trim(), Vec::new(), "");
        } else if let Some(remote) = line.strip_prefix("  remote: ") {
            remotes.push(remote.trim());
        } else if let Some(own) = line.strip_prefix("  revision: ") {
            revision = own.trim();
        } else if let Some(gem) = line.strip_prefix("    ").filter(|gem| !gem.starts_with(' ')) {
            let (name, version) = name_and_version(gem);
            let mut entry = Entry::new(name, version);
            let remote = remotes.first().copied().unwrap_or_default();
            match section {
                "GEM" => entry.places.extend(remotes.iter().map(|remote| registries::host(remote))),
                "GIT" => entry.source = Source::Address(format!("{remote}#{revision}")),
                "PATH" => entry.source = Source::Path(remote.to_owned()),
                _ => continue,
            }
            entries.push(entry);
        } else if let (Some(line), "CHECKSUMS") = (line.strip_prefix("  "), section) {
            let (gem, checksum) = line.split_once(") ").unwrap_or((line, ""));
            let (name, version) = name_and_version(gem);
            let own = entries.iter_mut().filter(|entry| entry.name == name && entry.version == version);
            own.for_each(|entry| entry.checksums.extend(checksum.split(',').map(|sum| sum.trim().to_owned())));
        }
    }
    entries.iter_mut().for_each(|entry| entry.checksums.retain(|sum| !sum.is_empty()));
    if entries.is_empty() && !content.trim().is_empty() && !content.contains("DEPENDENCIES") {
        return Err("the lock file has no section that Bundler writes".into());
    }
    Ok(entries)
}

/// Splits `rake (13.0.6)`.
fn name_and_version(gem: &str) -> (&str, &str) {
    let (name, version) = gem.trim().split_once(" (").unwrap_or((gem.trim(), ""));
    (name, version.trim_end_matches(')'))
}
