//! Comparison of a lock file with the base's.

use super::registries::KnownRegistries;
use super::{LockEntry, LockFile, LockFormat, NAMED, PackageSource};
use std::collections::{BTreeMap, BTreeSet};

/// The result of a comparison.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct LockComparison {
    /// Changes that violate the rules.
    pub(super) wrong: Vec<String>,
    /// The change, in one line.
    pub(super) note: Option<String>,
}

/// Compares two versions of a lock file, either of which may be absent.
pub(super) fn lock_files(
    format: LockFormat,
    path: &str,
    was: Option<&[u8]>,
    is: Option<&[u8]>,
    known: &KnownRegistries,
) -> LockComparison {
    let parsed = |bytes: Option<&[u8]>| bytes.map_or_else(|| Ok(LockFile::default()), |bytes| format.parse(bytes));
    let before = parsed(was);
    let after = match parsed(is) {
        Ok(after) => after,
        Err(why) => {
            let note = format!("the lock file cannot be parsed ({why}), so every entry counts as changed");
            return LockComparison { wrong: vec![note.clone()], note: Some(note) };
        }
    };
    let unreadable =
        before.as_ref().err().map(|_| "the lock file of the base cannot be parsed, so every entry counts as added; ");
    let before = before.unwrap_or_default();
    let note = note(&before, &after).map(|note| format!("{}{note}", unreadable.unwrap_or_default()));
    // People edit requirements by hand and add remarks, so other changes are not noted.
    let is_other = was.is_some() && is.is_some() && was != is && format != LockFormat::Requirements;
    let note = note.or_else(|| is_other.then(|| "its entries are unchanged, but other parts changed".into()));
    if is.is_none() {
        let had = before.entries.iter().filter(|entry| !entry.checksums.is_empty()).count();
        let wrong = format!("the lock file was removed, and {had} checksums with it");
        return LockComparison { wrong: if had > 0 { vec![wrong] } else { Vec::new() }, note };
    }
    let comparison = Comparison::new(format, path, &before, known);
    let mut wrong: BTreeSet<String> = after.entries.iter().filter_map(|entry| comparison.wrong(entry)).collect();
    let options = after.options.difference(&before.options);
    wrong.extend(options.map(|option| format!("`{option}` is new: it says where packages come from")));
    let (count, mut wrong) = (wrong.len(), wrong.into_iter().take(NAMED).collect::<Vec<_>>());
    if count > NAMED {
        wrong.push(format!("and {} more entries", count - NAMED));
    }
    LockComparison { wrong, note }
}

struct Comparison<'c> {
    format: LockFormat,
    path: &'c str,
    by_name: BTreeMap<&'c str, Vec<&'c LockEntry>>,
    allowed: BTreeSet<String>,
}

impl<'c> Comparison<'c> {
    fn new(format: LockFormat, path: &'c str, before: &'c LockFile, known: &KnownRegistries) -> Self {
        let mut by_name: BTreeMap<&str, Vec<&LockEntry>> = BTreeMap::new();
        for entry in &before.entries {
            by_name.entry(&entry.name).or_default().push(entry);
        }
        let registry = before.entries.iter().filter(|entry| entry.source == PackageSource::Registry);
        let mut allowed: BTreeSet<String> = registry.flat_map(|entry| &entry.places).cloned().collect();
        let has_public = allowed.is_empty() || known.public.iter().any(|public| allowed.contains(*public));
        allowed.extend(known.configured.iter().cloned());
        if has_public && !known.has_default {
            allowed.extend(known.public.iter().map(|public| (*public).to_owned()));
        }
        Self { format, path, by_name, allowed }
    }

    /// Returns the reason why an entry may not be in the lock file; `None` if it may.
    fn wrong(&self, entry: &LockEntry) -> Option<String> {
        let named = self.by_name.get(entry.name.as_str()).map_or(&[][..], Vec::as_slice);
        let (name, version) = (&entry.name, &entry.version);
        let own: Vec<&LockEntry> = named.iter().copied().filter(|known| known.version == *version).collect();
        let reported = |what: String| Some(format!("`{}`: {what}", format!("{name} {version}").trim()));
        if entry.alias.is_some() && !named.is_empty() && !named.iter().any(|known| known.alias == entry.alias) {
            let alias = entry.alias.as_deref().unwrap_or_default();
            return reported(format!("it is now the package `{alias}`, but was not on the base"));
        }
        if let Some(first) = own.first() {
            if own.iter().any(|known| self.is_kept(known, entry)) {
                return None;
            }
            return reported(self.difference(first, entry));
        }
        let source_was = named.first().map(|known| &known.source);
        match &entry.source {
            source if named.iter().any(|known| known.source == *source) && *source != PackageSource::Registry => None,
            PackageSource::Address(address) => {
                reported(format!("it comes from {address}, which the base does not use"))
            }
            PackageSource::Path(path) if self.leaves(path) => {
                reported(format!("it comes from {path}, outside of the workspace"))
            }
            PackageSource::Path(path) => match source_was {
                None | Some(PackageSource::Path(_)) => None,
                Some(was) => reported(format!("it came from {} and now comes from the folder `{path}`", word(was))),
            },
            PackageSource::Registry => {
                if let Some(was @ PackageSource::Address(_)) = source_was.filter(|_| !has_registry(named)) {
                    return reported(format!("it came from {} and now comes from a registry", word(was)));
                }
                if let Some(place) = entry.places.iter().find(|place| !self.allowed.contains(*place)) {
                    let known = joined(&self.allowed);
                    return reported(format!("it comes from {place}, which the base does not use (it uses {known})"));
                }
                self.misnamed(named, entry).and_then(reported)
            }
        }
    }

    /// Returns whether an entry is the base's, without a change that matters.
    fn is_kept(&self, was: &LockEntry, is: &LockEntry) -> bool {
        let has_place = match (&was.source, &is.source) {
            (PackageSource::Path(_), PackageSource::Path(path)) => was.source == is.source || !self.leaves(path),
            (was, is) => was == is,
        };
        // A lock file may omit the place if the configuration names it.
        let is_from = is.places.is_subset(&was.places) || (was.places.is_empty() && is.places.is_subset(&self.allowed));
        let has_urls = is.urls.is_subset(&was.urls);
        let has_sums = was.checksums.is_empty()
            || (!is.checksums.is_empty() && is.checksums.is_subset(&was.checksums) && (was.is_bare || !is.is_bare));
        // Only the address identifies the package if no checksum exists, or if the manager may
        // take the source instead.
        let needs_urls = was.checksums.is_empty() || self.format == LockFormat::Composer;
        let is_same = has_sums && (!needs_urls || has_urls || (was.urls.is_empty() && is.checksums.is_empty()));
        has_place && is_from && is_same
    }

    fn difference(&self, was: &LockEntry, is: &LockEntry) -> String {
        if was.source != is.source {
            return format!("it came from {} and now comes from {}", word(&was.source), word(&is.source));
        }
        if !is.places.is_subset(&was.places) && !is.places.is_subset(&self.allowed) {
            return moved(&was.places, &is.places);
        }
        if was.checksums.is_empty() || (self.format == LockFormat::Composer && is.urls != was.urls) {
            return moved(&was.urls, &is.urls);
        }
        if is.checksums.is_empty() || (is.is_bare && !was.is_bare) {
            return format!("its checksum was {} and is now missing", joined(&was.checksums));
        }
        if is.checksums.is_subset(&was.checksums) {
            return moved(&was.places, &is.places);
        }
        format!("its checksum was {} and is now {}", joined(&was.checksums), joined(&is.checksums))
    }

    /// Returns a message if the address of an update is that of another package.
    fn misnamed(&self, named: &[&LockEntry], entry: &LockEntry) -> Option<String> {
        if named.is_empty() || entry.alias.is_some() {
            return None;
        }
        let normal = |text: &str| text.to_lowercase().replace("%2f", "/").replace(['_', '.'], "-");
        let name = normal(&entry.name);
        let path_of = |url: &str| url.split(['?', '#']).next().unwrap_or_default().to_owned();
        let is_own = |url: &&String| match self.format {
            LockFormat::Npm | LockFormat::Pnpm | LockFormat::Yarn => {
                normal(&path_of(url)).contains(&format!("/{name}/"))
            }
            LockFormat::Uv => {
                normal(&path_of(url)).rsplit('/').next().is_some_and(|file| file.starts_with(&format!("{name}-")))
            }
            LockFormat::Composer => {
                named.iter().any(|known| known.urls.iter().any(|known| repository(known) == repository(url)))
            }
            LockFormat::Cargo
            | LockFormat::Poetry
            | LockFormat::Requirements
            | LockFormat::GoSum
            | LockFormat::Bundler
            | LockFormat::Pub => true,
        };
        let had_own = named.iter().any(|known| known.urls.iter().all(|url| is_own(&url)));
        let other = entry.urls.iter().find(|url| !is_own(url)).filter(|_| had_own)?;
        Some(format!("it comes from {other}, which is the address of another package"))
    }

    /// Returns whether a path of an entry leads out of the workspace.
    fn leaves(&self, path: &str) -> bool {
        let path = path.split(['#', '?']).next().unwrap_or(path);
        leaves(self.path, path)
    }
}

/// Returns whether a path, relative to the folder of a file, leads out of the workspace.
pub(super) fn leaves(file: &str, path: &str) -> bool {
    let folder = file.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut depth = folder.split('/').filter(|part| !part.is_empty()).count();
    if path.starts_with(['/', '~']) || path.contains("://") || path.contains(['\\', '$', '%']) {
        return true;
    }
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if depth == 0 => return true,
            ".." => depth -= 1,
            _ => depth += 1,
        }
    }
    false
}

fn has_registry(named: &[&LockEntry]) -> bool {
    named.iter().any(|known| known.source == PackageSource::Registry)
}

/// Returns an address without its last part, which is a revision.
fn repository(url: &str) -> &str {
    url.rsplit_once(['#', '/']).map_or(url, |(repository, _)| repository)
}

fn word(source: &PackageSource) -> String {
    match source {
        PackageSource::Registry => "a registry".into(),
        PackageSource::Address(address) => address.clone(),
        PackageSource::Path(path) if path.is_empty() => "a folder".into(),
        PackageSource::Path(path) => format!("the folder `{path}`"),
    }
}

/// Describes a change of the places that serve a package.
fn moved(was: &BTreeSet<String>, is: &BTreeSet<String>) -> String {
    match (was.is_empty(), is.is_empty()) {
        (true, _) => format!("it comes from {}, but the base names no source for it", joined(is)),
        (false, true) => format!("it came from {} and now names no source", joined(was)),
        (false, false) => format!("it came from {} and now comes from {}", joined(was), joined(is)),
    }
}

fn joined(values: &BTreeSet<String>) -> String {
    let shown: Vec<&str> = values.iter().map(String::as_str).take(3).collect();
    let more = if values.len() > shown.len() { ", …" } else { "" };
    if shown.is_empty() { "nothing".into() } else { format!("{}{more}", shown.join(", ")) }
}

/// Describes the install scripts and programs that entries of the base have gained.
fn gains(before: &[LockEntry], after: &[LockEntry]) -> Vec<String> {
    let mut had: BTreeMap<&str, BTreeSet<&String>> = BTreeMap::new();
    for entry in before {
        had.entry(&entry.name).or_default().extend(&entry.runs);
    }
    let gained = |entry: &LockEntry| {
        let had = had.get(entry.name.as_str())?;
        let new: Vec<&str> = entry.runs.iter().filter(|run| !had.contains(run)).map(String::as_str).collect();
        (!new.is_empty()).then(|| format!("{} {} gains {}", entry.name, entry.version, new.join(" and ")))
    };
    after.iter().filter_map(gained).take(NAMED).collect()
}

/// Describes the first [`NAMED`] entries that kept name and version, and whose dependencies
/// changed.
fn changed_dependencies(before: &[LockEntry], after: &[LockEntry]) -> Vec<String> {
    let all = |entries: &[LockEntry]| -> BTreeMap<String, BTreeSet<String>> {
        let mut all: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for entry in entries {
            all.entry(format!("{} {}", entry.name, entry.version)).or_default().extend(entry.needs.iter().cloned());
        }
        all
    };
    let (was, is) = (all(before), all(after));
    let changed = is.iter().filter_map(|(name, needs)| Some((name, was.get(name)?, needs)));
    let reported = changed.filter(|(_, was, is)| was != is).map(|(name, was, is)| {
        let list = |one: &BTreeSet<String>, other: &BTreeSet<String>| {
            one.difference(other).map(String::as_str).collect::<Vec<_>>().join(", ")
        };
        let (more, less) = (list(is, was), list(was, is));
        match (more.is_empty(), less.is_empty()) {
            (false, true) => format!("{name} depends on {more} as well"),
            (true, _) => format!("{name} does not depend on {less} any more"),
            (false, false) => format!("{name} depends on {more} instead of {less}"),
        }
    });
    reported.take(NAMED).collect()
}

/// Describes the change of a lock file: added, updated and removed entries, gained scripts and
/// programs, changed dependencies, and new options. Entries are given by their number and first
/// names. Returns `None` if the entries and options are the same.
fn note(before: &LockFile, after: &LockFile) -> Option<String> {
    let (options, LockFile { entries: before, .. }) = (after.remarks.difference(&before.remarks), before);
    let after = &after.entries;
    let versions = |entries: &[LockEntry]| {
        let mut versions: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for entry in entries {
            versions.entry(entry.name.clone()).or_default().insert(entry.version.clone());
        }
        versions
    };
    let (was, is) = (versions(before), versions(after));
    let list = |versions: &BTreeSet<String>| versions.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
    let whole = |(name, versions): (&String, &BTreeSet<String>)| format!("{name} {}", list(versions)).trim().to_owned();
    let added: Vec<String> = is.iter().filter(|(name, _)| !was.contains_key(*name)).map(whole).collect();
    let removed: Vec<String> = was.iter().filter(|(name, _)| !is.contains_key(*name)).map(whole).collect();
    let updated = is.iter().filter_map(|(name, versions)| {
        let old = was.get(name).filter(|old| *old != versions)?;
        Some(format!("{name} {} → {}", list(old), list(versions)))
    });
    let updated: Vec<String> = updated.collect();
    let reported =
        [("added", added), ("updated", updated), ("removed", removed)].into_iter().filter(|(_, all)| !all.is_empty());
    let mut reported: Vec<String> = reported
        .map(|(what, all)| {
            let more = if all.len() > NAMED { ", …" } else { "" };
            let names = all.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
            format!("{} {what} ({names}{more})", all.len())
        })
        .collect();
    reported.extend(gains(before, after));
    reported.extend(changed_dependencies(before, after));
    reported.extend(options.map(|option| format!("`{option}` is new")));
    if !reported.is_empty() {
        return Some(reported.join(", "));
    }
    (before != after).then(|| "entries changed, but their versions did not".into())
}
