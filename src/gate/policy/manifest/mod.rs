//! Manifests judged by section. Ordinary work may change most sections, but not those that steer
//! tests and builds.

mod cmake;
mod forms;
mod rows;
mod sources;

use forms::ManifestForm;
use rows::{MANIFESTS, Manifest, SectionRow, SectionRule};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The endings of the files `index` that Node and bundlers load for a folder.
const INDEX_ENDINGS: [&str; 10] = ["js", "json", "node", "mjs", "cjs", "jsx", "ts", "mts", "cts", "tsx"];

/// The surroundings of a manifest in the base.
pub(super) struct ManifestSurroundings<'p> {
    /// True if the base has manifests of the same name in any folder.
    pub(super) has_others: bool,
    /// True if the base has files in the folder of the manifest or below.
    pub(super) was_there: bool,
    /// Returns whether a path, relative to the folder of the manifest, is a test of the base.
    pub(super) is_test: &'p dyn Fn(&str) -> bool,
    /// Returns whether a path, relative to the folder of the manifest, is protected.
    pub(super) is_kept: &'p dyn Fn(&str) -> bool,
    /// Returns whether a package of the base has this name or depends on a package of this name.
    pub(super) is_taken: &'p dyn Fn(&str) -> bool,
}

/// Returns whether a path is that of a manifest that is judged by section.
pub(super) fn is_one(path: &str) -> bool {
    find_manifest(path).is_some()
}

/// Returns the normalized names of the dependencies of a Python manifest. In a file that is not
/// judged by section, each line is one dependency.
pub(super) fn python_dependencies(path: &str, bytes: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(bytes);
    match find_manifest(path).and_then(|manifest| Some((manifest.form, forms::read(manifest.form, bytes)?))) {
        Some((form, manifest)) => sources::names(form, &manifest),
        None if find_manifest(path).is_none() => text.lines().filter_map(sources::required).collect(),
        None => Vec::new(),
    }
}

/// Returns the names of the dependencies that are fetched from outside of the workspace.
pub(super) fn fetched(path: &str, bytes: &[u8]) -> Vec<String> {
    let read = find_manifest(path).and_then(|manifest| Some((manifest.form, forms::read(manifest.form, bytes)?)));
    read.map_or(Vec::new(), |(form, manifest)| sources::fetched(form, &manifest))
}

/// Returns the tables that name dependencies, by path, without empty tables.
pub(super) fn dependencies(path: &str, bytes: &[u8]) -> BTreeMap<String, Value> {
    let read = find_manifest(path).and_then(|manifest| Some((manifest.form, forms::read(manifest.form, bytes)?)));
    read.map_or(BTreeMap::new(), |(form, manifest)| sources::tables(form, &manifest))
}

/// Returns the name of a Node package and the names of its dependencies.
pub(super) fn taken(path: &str, bytes: &[u8]) -> Vec<String> {
    let read = find_manifest(path).filter(|manifest| manifest.form == ManifestForm::Node);
    let Some(manifest) = read.and_then(|manifest| forms::read(manifest.form, bytes)) else { return Vec::new() };
    let own = manifest.get("name").and_then(Value::as_str).map(ToOwned::to_owned);
    sources::names(ManifestForm::Node, &manifest).into_iter().chain(own).collect()
}

/// Returns the files that a Rust manifest names as tests.
pub(super) fn test_targets(path: &str, bytes: &[u8]) -> Vec<String> {
    let read = find_manifest(path).filter(|manifest| manifest.form == ManifestForm::Cargo);
    let manifest = read.and_then(|manifest| forms::read(manifest.form, bytes)).unwrap_or_default();
    select(&manifest, "test/*/path").into_values().filter_map(Value::as_str).map(ToOwned::to_owned).collect()
}

/// Returns the requirements of a Python manifest, by the table that lists them.
pub(super) fn requirements(path: &str, bytes: &[u8]) -> BTreeMap<String, Vec<String>> {
    let read = find_manifest(path).and_then(|manifest| Some((manifest.form, forms::read(manifest.form, bytes)?)));
    read.map_or(BTreeMap::new(), |(form, manifest)| sources::requirements(form, &manifest))
}

/// Returns the dependencies whose source is a repository, an address or a folder outside of the
/// workspace, and was not on the base. Each result is the start of the finding, with table, name
/// and source, and the rest of the finding.
pub(super) fn new_sources(
    path: &str,
    was: Option<&[u8]>,
    is: Option<&[u8]>,
    leaves: &dyn Fn(&str) -> bool,
) -> Vec<(String, String)> {
    let Some(manifest) = find_manifest(path) else { return Vec::new() };
    let read = |bytes: Option<&[u8]>| bytes.and_then(|bytes| forms::read(manifest.form, bytes)).unwrap_or_default();
    sources::foreign(manifest.form, &read(was), &read(is), leaves)
}

/// Returns the rows for the printed table: manifest, section and reason.
pub(super) fn rows() -> impl Iterator<Item = (&'static str, String, &'static str)> {
    MANIFESTS.iter().flat_map(|manifest| {
        manifest
            .rows
            .iter()
            .map(|row| (manifest.name, format!("{}{}", row.at.replace('/', "."), row.how.description()), row.why))
    })
}

/// Returns a line for each forbidden change in a manifest. A new manifest has no findings if its
/// folder is new or if the base has no manifest of its name. Manifests with `steers_afar` or
/// `steers_alone` are the exceptions.
pub(super) fn findings(
    path: &str,
    was: Option<&[u8]>,
    is: Option<&[u8]>,
    place: &ManifestSurroundings<'_>,
) -> Vec<String> {
    let Some(manifest) = find_manifest(path) else { return Vec::new() };
    let is_new = was.is_none();
    let is_in_sight = place.was_there || manifest.steers_afar;
    if is_new && !(is_in_sight && (place.has_others || manifest.steers_alone)) {
        return Vec::new();
    }
    let empty = Value::Object(Map::new());
    let was = was.and_then(|bytes| forms::read(manifest.form, bytes));
    let Some(is) = is.map_or(Some(empty.clone()), |bytes| forms::read(manifest.form, bytes)) else {
        return vec!["cannot parse the manifest, so its changes cannot be judged".into()];
    };
    let is_known = was.is_some();
    let was = was.unwrap_or(empty);
    let mut told = Vec::new();
    for row in manifest.rows.iter().filter(|row| is_known || row.in_new) {
        let (before, after) = (select(&was, row.at), select(&is, row.at));
        let mut keys: Vec<&String> = before.keys().chain(after.keys()).collect();
        keys.sort();
        keys.dedup();
        for key in keys {
            if let Some(change) = change(row, key, before.get(key).copied(), after.get(key).copied(), &was, place) {
                told.push(format!("[{key}] {change}: {}", row.why));
            }
        }
    }
    told.extend(sources::findings(manifest.form, &was, &is));
    told.extend(sources::other_features(&was, &is).filter(|_| manifest.form == ManifestForm::Cargo));
    if is_new && manifest.form == ManifestForm::Go {
        told.push("it removes the packages of this folder from the module and its tests".into());
    }
    told
}

fn find_manifest(path: &str) -> Option<&'static Manifest> {
    let name = super::name_of(path);
    MANIFESTS.iter().find(|manifest| manifest.name == name)
}

/// Returns the word for the change of a value, if the change is not allowed.
fn change(
    row: &SectionRow,
    key: &str,
    was: Option<&Value>,
    is: Option<&Value>,
    whole: &Value,
    place: &ManifestSurroundings<'_>,
) -> Option<&'static str> {
    if was == is {
        return None;
    }
    let word = match (was, is) {
        (None, _) => "added",
        (Some(_), None) => "removed",
        (Some(_), Some(_)) => "changed",
    };
    let name = key.rsplit('.').next().unwrap_or(key);
    let is_wrong = match row.how {
        SectionRule::Same => true,
        SectionRule::Kept => was.is_some(),
        SectionRule::MayGrow => !has_grown(was, is),
        SectionRule::MayGrowListed => was.is_none() || !has_grown(was, is),
        SectionRule::Scripts => was.is_some() || is_hook(name, whole),
        SectionRule::NotWeaker => is_weaker(was, is),
        SectionRule::Programs => sources::is_known(name),
        SectionRule::OwnName => {
            is.and_then(Value::as_str).is_some_and(|name| (place.is_taken)(name) || sources::is_known(name))
        }
        SectionRule::Targets => was.is_some_and(|was| is_moved(was, is, place)),
        SectionRule::NotInNew => whole.as_object().is_some_and(Map::is_empty),
        SectionRule::NotBesideIndex => was.is_none() && has_kept_entry(whole, place),
        SectionRule::NewFeatures => are_other_features(was, is, whole),
        SectionRule::Later => is.is_none_or(Value::is_string) && year(is) < year(was),
        SectionRule::OwnTests => was.is_some() || is.is_some_and(|is| is_for_a_test_of_the_base(name, is, place)),
    };
    is_wrong.then_some(word)
}

fn items(list: Option<&Value>) -> impl Iterator<Item = &Value> {
    list.and_then(Value::as_array).into_iter().flatten()
}

/// Returns whether a list keeps all its items and no new item excludes something. The order counts
/// if the old list excludes something.
fn has_grown(was: Option<&Value>, is: Option<&Value>) -> bool {
    let takes_away = |item: &Value| item.as_str().is_some_and(|item| item.starts_with('!'));
    let is_new = |item: &Value| !items(was).any(|other| other == item);
    if items(is).any(|item| takes_away(item) && is_new(item)) {
        return false;
    }
    let mut rest = items(is);
    match items(was).any(takes_away) {
        true => items(was).all(|item| rest.any(|other| other == item)),
        false => items(was).all(|item| items(is).any(|other| other == item)),
    }
}

/// Returns whether a new script runs automatically: before or after an existing script, or when
/// packages are installed.
fn is_hook(name: &str, whole: &Value) -> bool {
    let around = ["pre", "post"].iter().filter_map(|start| name.strip_prefix(start));
    let scripts = whole.get("scripts");
    let is_around = around.into_iter().any(|of| scripts.is_some_and(|scripts| scripts.get(of).is_some()));
    is_around || ["preinstall", "install", "postinstall", "prepare", "dependencies"].contains(&name)
}

/// Returns whether a lint became weaker. Its level is a word, or an entry of a table whose other
/// entries must not change.
fn is_weaker(was: Option<&Value>, is: Option<&Value>) -> bool {
    const LEVELS: [&str; 4] = ["allow", "warn", "deny", "forbid"];
    let level = |value: &Value| {
        let word = value.as_str().or_else(|| value.get("level")?.as_str())?;
        LEVELS.iter().position(|level| *level == word)
    };
    let rest = |value: &Value| {
        let mut rest = value.as_object().cloned().unwrap_or_default();
        rest.remove("level");
        rest
    };
    match (was, is) {
        (None, Some(is)) => level(is).is_none_or(|level| level == 0),
        (Some(was), None) => level(was).is_none_or(|level| level > 0),
        (Some(was), Some(is)) => level(is) < level(was) || rest(is) != rest(was),
        (None, None) => false,
    }
}

/// Returns whether the entry of a Node package is a protected file: that of `main`, or the index of
/// the folder.
fn has_kept_entry(package: &Value, place: &ManifestSurroundings<'_>) -> bool {
    let main = package.get("main").and_then(Value::as_str).unwrap_or("index");
    leads_to_kept(main, place)
}

/// Returns whether a path of a Node manifest, also without its ending, leads to a protected file.
fn leads_to_kept(path: &str, place: &ManifestSurroundings<'_>) -> bool {
    let mut forms =
        INDEX_ENDINGS.iter().flat_map(|ending| [format!("{path}.{ending}"), format!("{path}/index.{ending}")]);
    (place.is_kept)(path) || forms.any(|form| (place.is_kept)(&form))
}

/// Returns whether an entry that leads to a protected file now leads to another one.
fn is_moved(was: &Value, is: Option<&Value>, place: &ManifestSurroundings<'_>) -> bool {
    match was {
        Value::String(path) => leads_to_kept(path, place) && is != Some(was),
        Value::Object(each) => each.iter().any(|(key, was)| is_moved(was, is.and_then(|is| is.get(key)), place)),
        _ => false,
    }
}

/// Returns whether a list of features lost an item, or gained a feature that the base defines.
fn are_other_features(was: Option<&Value>, is: Option<&Value>, whole: &Value) -> bool {
    let is_known =
        |item: &Value| whole.get("features").zip(item.as_str()).is_some_and(|(all, name)| all.get(name).is_some());
    let is_in = |list: Option<&Value>, item: &Value| items(list).any(|other| other == item);
    items(was).any(|item| !is_in(is, item)) || items(is).any(|item| !is_in(was, item) && is_known(item))
}

/// Returns the year of an edition. A missing edition is 2015.
fn year(edition: Option<&Value>) -> u64 {
    let text = edition.filter(|edition| edition.is_string());
    text.map_or(2015, |edition| edition.as_str().and_then(|year| year.parse().ok()).unwrap_or(0))
}

/// Returns whether a new `[[test]]` takes the name or the path of a test of the base.
fn is_for_a_test_of_the_base(name: &str, target: &Value, place: &ManifestSurroundings<'_>) -> bool {
    let path = target.get("path").and_then(Value::as_str);
    let found = [format!("tests/{name}.rs"), format!("tests/{name}/main.rs")];
    found.iter().map(String::as_str).chain(path).any(|path| (place.is_test)(path))
}

/// Returns the values at a place in a manifest, by their whole keys. In a place, `*` means any
/// name, and `x*` any name that begins with `x`.
fn select<'v>(value: &'v Value, at: &str) -> BTreeMap<String, &'v Value> {
    let mut found = BTreeMap::from([(String::new(), value)]);
    for name in at.split('/') {
        let mut next = BTreeMap::new();
        for (whole, value) in found {
            let fits = |key: &str| name.strip_suffix('*').map_or(name == key, |start| key.starts_with(start));
            for (key, value) in value.as_object().into_iter().flatten().filter(|(key, _)| fits(key)) {
                let whole = if whole.is_empty() { key.clone() } else { format!("{whole}.{key}") };
                next.insert(whole, value);
            }
        }
        found = next;
    }
    found
}
