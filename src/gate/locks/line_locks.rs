//! Lock files of plain lines: `go.sum`, `Gemfile.lock`, and `requirements.txt` with or without
//! hashes.

use super::{LockEntry, LockFile, LockFormat, PackageSource, registries};
use std::collections::BTreeSet;

/// Options that select the sources of packages.
const PLACES: [&str; 8] =
    ["-i", "--index-url", "--extra-index-url", "-f", "--find-links", "--trusted-host", "--no-index", "--pypi-url"];

/// Options that include other lists.
const LISTS: [&str; 4] = ["-r", "--requirement", "-c", "--constraint"];

/// Parses a `go.sum`. Each line has a module, its version, and the hash of the module or of its
/// `go.mod`.
pub(super) fn go_sum(content: &str) -> Result<Vec<LockEntry>, String> {
    let read = |line: &str| {
        let mut words = line.split_whitespace();
        let (Some(module), Some(version), Some(hash), None) = (words.next(), words.next(), words.next(), words.next())
        else {
            return Err(format!("`{line}` is not a module with a version and a hash"));
        };
        let mut entry = LockEntry::new(module, version);
        entry.checksums.insert(hash.to_owned());
        Ok(entry)
    };
    content.lines().filter(|line| !line.trim().is_empty()).map(read).collect()
}

/// Parses a `Gemfile.lock`: gems below `GEM`, `GIT` and `PATH`, with the checksums of `CHECKSUMS`.
pub(super) fn bundler(content: &str) -> Result<Vec<LockEntry>, String> {
    let (mut entries, mut section): (Vec<LockEntry>, &str) = (Vec::new(), "");
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
            let mut entry = LockEntry::new(name, version);
            let remote = remotes.first().copied().unwrap_or_default();
            match section {
                "GEM" => entry.places.extend(remotes.iter().map(|remote| registries::host(remote))),
                "GIT" => entry.source = PackageSource::Address(format!("{remote}#{revision}")),
                "PATH" => entry.source = PackageSource::Path(remote.to_owned()),
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

/// Parses a list of requirements with its options.
pub(super) fn requirements(content: &str) -> Result<LockFile, String> {
    if content.contains('\0') {
        return Err("the list is not text".into());
    }
    if let Some(encoding) = content.lines().take(2).find_map(other_encoding) {
        return Err(format!("it is written in {encoding}, not in UTF-8"));
    }
    let mut lock = LockFile::default();
    for line in &joined(content) {
        let comment = [" #", "\t#"].iter().filter_map(|sign| line.find(sign)).min();
        let line = line[..comment.unwrap_or(line.len())].trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if line.starts_with('-') && !is_editable(line) {
            lock.add_options(line);
        } else {
            lock.entries.push(requirement(line));
        }
    }
    Ok(lock)
}

/// Returns the encoding that a comment declares, as pip reads it, if it is not UTF-8 or part of it.
fn other_encoding(line: &str) -> Option<&str> {
    let (_, rest) = line.strip_prefix('#')?.split_once("coding")?;
    let name = rest.strip_prefix([':', '='])?.trim_start();
    let name = name.split(|c: char| !(c.is_alphanumeric() || "-_.".contains(c))).next()?;
    (!["utf-8", "utf8", "utf_8", "ascii", "us-ascii"].contains(&name.to_ascii_lowercase().as_str())).then_some(name)
}

/// Joins the lines of a list as pip does. A backslash at the end of a line joins the next line
/// directly, except in a comment.
fn joined(content: &str) -> Vec<String> {
    let (mut lines, mut open) = (Vec::new(), String::new());
    for line in content.lines() {
        match line.strip_suffix('\\').filter(|_| !line.trim_start().starts_with('#')) {
            Some(start) => open.push_str(start),
            None => lines.push(std::mem::take(&mut open) + line),
        }
    }
    lines.push(open);
    lines
}

fn is_editable(line: &str) -> bool {
    ["-e ", "-e=", "--editable ", "--editable="].iter().any(|start| line.starts_with(start))
}

impl LockFile {
    /// Adds the options of a line: those that select the sources of packages, and others. Included
    /// lists do not count if they are compared as lock files.
    fn add_options(&mut self, line: &str) {
        let mut words = line.split_whitespace().peekable();
        while let Some(word) = words.next() {
            let (name, value) = word.split_once('=').unwrap_or((word, ""));
            let value = words.next_if(|next| value.is_empty() && !next.starts_with('-')).unwrap_or(value);
            // pip accepts the start of a long option for the whole, and a value directly after a
            // short option.
            let is_like = |option: &&str| match option.len() {
                2 => name.starts_with(option),
                _ => name.len() > 3 && option.starts_with(name),
            };
            let is_list = LISTS.iter().any(is_like);
            let reported = format!("{name} {value}").trim().to_owned();
            match PLACES.iter().any(is_like) || is_list {
                true if is_list && LockFormat::of_path(value).is_some() => {}
                true => drop(self.options.insert(reported)),
                false => drop(self.remarks.insert(reported)),
            }
        }
    }
}

fn requirement(line: &str) -> LockEntry {
    let mut words = line.split_whitespace().filter(|word| !word.starts_with("--hash"));
    let hashes: BTreeSet<String> = line
        .split_whitespace()
        .filter_map(|word| word.strip_prefix("--hash=").or_else(|| word.starts_with("sha").then_some(word)))
        .filter(|hash| hash.contains(':'))
        .map(ToOwned::to_owned)
        .collect();
    let place = if is_editable(line) {
        Some(line.split_once([' ', '=']).map_or("", |(_, place)| place.trim()))
    } else {
        let first = words.next().unwrap_or_default();
        let is_path = first.starts_with(['.', '/', '~']) || first.ends_with(".whl") || first.ends_with(".tar.gz");
        (is_path || first.contains("://") || first.starts_with("git+")).then_some(first)
    };
    let direct = direct_reference(line);
    let mut entry = match direct.map(|(_, place)| place).or(place) {
        Some(place) => {
            let name = direct.map_or_else(|| place.to_owned(), |(name, _)| normal(name));
            let mut entry = LockEntry::new(name, "");
            entry.source = if place.contains("://") || place.starts_with("git+") || place.starts_with("file:") {
                PackageSource::Address(place.split_whitespace().next().unwrap_or(place).to_owned())
            } else {
                PackageSource::Path(place.to_owned())
            };
            entry
        }
        None => {
            let wanted = line.split(" --").next().unwrap_or(line).split(';').next().unwrap_or(line).trim();
            let end = wanted.find(|c: char| !(c.is_alphanumeric() || "._-".contains(c))).unwrap_or(wanted.len());
            let version = &wanted[end..];
            let version =
                version.strip_prefix('[').and_then(|rest| rest.split_once(']')).map_or(version, |rest| rest.1);
            LockEntry::new(normal(&wanted[..end]), version.trim().trim_start_matches("==").to_owned())
        }
    };
    entry.checksums = hashes;
    entry
}

/// Splits `name[extras] @ place` into the name and the place. Spaces around the `@` are optional.
fn direct_reference(line: &str) -> Option<(&str, &str)> {
    let end = line.find(|c: char| !(c.is_alphanumeric() || "._-".contains(c)))?;
    let rest = line[end..].trim_start();
    let rest = rest.strip_prefix('[').and_then(|rest| rest.split_once(']')).map_or(rest, |(_, rest)| rest);
    let place = rest.trim_start().strip_prefix('@')?.trim();
    (end > 0).then_some((&line[..end], place))
}

/// Returns the normalized name of a Python package.
fn normal(name: &str) -> String {
    name.to_lowercase().replace(['_', '.'], "-")
}
