//! The sources of dependencies. A dependency that came from a registry, or is known to come from
//! one, may not come from a place that a run can write.

use super::forms::ManifestForm;
use super::select;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Packages that tests and builds use, with names that no project gives to its own packages.
#[rustfmt::skip]
const KNOWN: &[&str] = &[
    "anyhow", "assert_cmd", "assert_fs", "criterion", "fake", "httpmock", "insta", "mockall", "mockito", "nextest", "predicates", "pretty_assertions",
    "proptest", "quickcheck", "rand", "rstest", "serde", "serde_json", "serial_test", "tempfile", "test-case", "test-log", "thiserror", "tokio", "trybuild",
    "wiremock",
    "@jest/globals", "@playwright/test", "@testing-library/react", "@vitest/coverage-v8", "ava", "babel-jest", "c8", "chai", "cypress", "eslint",
    "expect", "jasmine", "jest", "jsdom", "karma", "mocha", "nyc", "prettier", "sinon", "supertest", "tap", "ts-jest", "ts-node", "tsx", "typescript",
    "vitest",
    "black", "coverage", "faker", "flake8", "hypothesis", "mypy", "nose", "nox", "pylint", "pyright", "pytest", "pytest-asyncio", "pytest-cov",
    "pytest-mock", "pytest-xdist", "ruff", "setuptools", "tox", "wheel",
];
const REGISTRY: &str = "the registry";

/// Returns a line for each dependency that now comes from another place and may not.
pub(super) fn findings(form: ManifestForm, was: &Value, is: &Value) -> Vec<String> {
    let (before, after) = (sources(form, was), sources(form, is));
    let names: BTreeMap<&str, &Option<String>> =
        before.iter().map(|((_, name), source)| (name.as_str(), source)).collect();
    let mut reported = BTreeSet::new();
    for ((table, name), source) in &after {
        let Some(place) = source.as_deref().filter(|place| *place != REGISTRY) else { continue };
        let own = before.get(&(table.clone(), name.clone())).or_else(|| names.get(name.as_str()).copied());
        let came_from = match own {
            Some(Some(place)) => Some(place.as_str()),
            Some(None) | None => KNOWN.contains(&name.as_str()).then_some(REGISTRY),
        };
        // A package of the project may move, but a package that tests use must stay the same one.
        let may_move = |came_from: &str| came_from.starts_with("path ") && !table.contains("dev");
        if came_from.is_some_and(|came_from| came_from != place && !may_move(came_from)) {
            reported.insert(format!("[{table}] `{name}` comes from {place} now: it would replace what the tests use"));
        }
    }
    reported.into_iter().collect()
}

/// Returns a line for each workspace package that the tests of a crate use and that now has other
/// features.
pub(super) fn other_features(was: &Value, is: &Value) -> impl Iterator<Item = String> {
    let keys = ["features", "default-features", "default_features"];
    let tables = listed(ManifestForm::Cargo).iter().filter(|at| at.contains("dev")).flat_map(|at| select(was, at));
    let reported = tables.flat_map(|(table, value)| {
        let now = select(is, &table.replace('.', "/")).into_values().next();
        let names = value.as_object().into_iter().flatten();
        let of_the_project = names.filter(|(_, value)| value.get("path").is_some());
        let others = of_the_project.filter(|(name, value)| {
            let now = now.and_then(|now| now.get(name.as_str()));
            now.is_some_and(|now| keys.iter().any(|key| now.get(key) != value.get(key)))
        });
        let say = |(name, _): (&String, &Value)| {
            format!("[{table}] `{name}` has other features now: it would replace what the tests use")
        };
        others.map(say).collect::<Vec<_>>()
    });
    reported.collect::<Vec<_>>().into_iter()
}

/// Returns the dependencies that come from a repository, an address or a folder outside of the
/// workspace, and did not on the base. Each result is the start and the rest of the finding.
pub(super) fn foreign(
    form: ManifestForm,
    was: &Value,
    is: &Value,
    leaves: &dyn Fn(&str) -> bool,
) -> Vec<(String, String)> {
    let known: BTreeSet<(String, Option<String>)> =
        sources(form, was).into_iter().map(|((_, name), place)| (name, place)).collect();
    let is_new = |((_, name), place): &((String, String), Option<String>)| {
        !known.contains(&(name.clone(), place.clone()))
            && place.as_deref().is_some_and(|place| is_foreign(place, leaves))
    };
    let reported = |((table, name), place): ((String, String), Option<String>)| {
        let place = place.unwrap_or_default();
        (format!("[{table}] `{name}` comes from {place}"), ", a source that the base does not use".to_owned())
    };
    sources(form, is).into_iter().filter(is_new).map(reported).collect()
}

/// Returns whether a place is neither a configured registry nor a folder of the workspace.
fn is_foreign(place: &str, leaves: &dyn Fn(&str) -> bool) -> bool {
    let inner = ["path ", "file ", "file:", "link:", "portal:"].iter().find_map(|start| place.strip_prefix(start));
    if let Some(path) = inner {
        return leaves(path);
    }
    let by_name = ["npm:", "patch:", "index ", "source ", "registry ", "package "];
    place != REGISTRY && !by_name.iter().any(|start| place.starts_with(start))
}

/// Returns whether tests and builds use a program or package of this name.
pub(super) fn is_known(name: &str) -> bool {
    KNOWN.contains(&name)
        || ["cargo", "go", "make", "node", "npm", "npx", "pip", "python", "python3", "py.test", "sh", "bash"]
            .contains(&name)
}

/// Returns the names of all dependencies of a manifest.
pub(super) fn names(form: ManifestForm, manifest: &Value) -> Vec<String> {
    sources(form, manifest).into_keys().map(|(_, name)| name).collect()
}

/// Returns the names of the dependencies that are fetched. Leaves out those in folders and files.
pub(super) fn fetched(form: ManifestForm, manifest: &Value) -> Vec<String> {
    let lies_here =
        |place: &str| ["path ", "file ", "file:", "link:", "portal:"].iter().any(|start| place.starts_with(start));
    let in_tables = sources(form, manifest).into_iter();
    let in_tables = in_tables.filter(|(_, place)| place.as_deref().is_some_and(|place| !lies_here(place)));
    let of_go = manifest.get("require").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    let of_go =
        of_go.filter_map(|line| line.split(' ').next()).map(ToOwned::to_owned).filter(|_| form == ManifestForm::Go);
    let of_ini = if form == ManifestForm::Ini { names(form, manifest) } else { Vec::new() };
    in_tables.map(|((_, name), _)| name).chain(of_go).chain(of_ini).collect()
}

/// Returns the normalized name of a requirement that has its own line.
pub(super) fn required(line: &str) -> Option<String> {
    let line = line.trim();
    let end = line.find(|c: char| !(c.is_alphanumeric() || "._-".contains(c))).unwrap_or(line.len());
    line.starts_with(char::is_alphanumeric).then(|| normal(&line[..end]))
}

/// Returns the tables of a manifest that list dependencies.
fn listed(form: ManifestForm) -> &'static [&'static str] {
    match form {
        ManifestForm::Cargo => &[
            "dependencies",
            "dev-dependencies",
            "build-dependencies",
            "dev_dependencies",
            "build_dependencies",
            "workspace/dependencies",
            "target/*/dependencies",
            "target/*/dev-dependencies",
            "target/*/build-dependencies",
            "target/*/dev_dependencies",
            "target/*/build_dependencies",
        ],
        ManifestForm::Node => &["dependencies", "devDependencies", "optionalDependencies", "peerDependencies"],
        ManifestForm::Python => &[
            "project/dependencies",
            "project/optional-dependencies/*",
            "dependency-groups/*",
            "tool/poetry/dependencies",
            "tool/poetry/dev-dependencies",
            "tool/poetry/group/*/dependencies",
            "tool/uv/dev-dependencies",
            "tool/uv/sources",
        ],
        ManifestForm::Yaml | ManifestForm::Ini | ManifestForm::Go | ManifestForm::Cmake => &[],
    }
}

/// The keys of `setup.cfg` whose lines are requirements.
const INI: &[&str] =
    &["options/install_requires", "options/setup_requires", "options/tests_require", "options.extras_require/*"];

/// Returns the place of each dependency, by table and name. The place is `None` if another manifest
/// defines it.
fn sources(form: ManifestForm, manifest: &Value) -> BTreeMap<(String, String), Option<String>> {
    let mut found = BTreeMap::new();
    let tables = if form == ManifestForm::Ini { INI } else { listed(form) };
    for (table, value) in tables.iter().flat_map(|at| select(manifest, at)) {
        for (name, value) in value.as_object().into_iter().flatten() {
            let name = if form == ManifestForm::Python { normal(name) } else { name.clone() };
            found.insert((table.clone(), name), place(form, value));
        }
        let in_text = value.as_str().filter(|_| form == ManifestForm::Ini).into_iter().flat_map(str::lines);
        let in_text = in_text.filter(|line| !line.trim().is_empty());
        for requirement in value.as_array().into_iter().flatten().filter_map(Value::as_str).chain(in_text) {
            let requirement = requirement.trim();
            let end = requirement.find(|c: char| !(c.is_alphanumeric() || "._-".contains(c)));
            let (name, rest) = requirement.split_at(end.unwrap_or(requirement.len()));
            let url = rest.split_once(';').map_or(rest, |(rest, _)| rest).split_once('@').map(|(_, url)| url.trim());
            // A requirement without a name is an address or a path.
            let url = url.or_else(|| rest.starts_with(['/', ':', '\\']).then_some(requirement));
            found.insert((table.clone(), normal(name)), Some(url.unwrap_or(REGISTRY).to_owned()));
        }
    }
    found
}

/// Returns the tables besides those of [`listed`] that decide which dependencies exist.
fn steering(form: ManifestForm) -> &'static [&'static str] {
    match form {
        ManifestForm::Cargo => &["patch/*", "replace"],
        ManifestForm::Node => &["overrides", "resolutions", "workspaces", "pnpm/overrides"],
        ManifestForm::Yaml => {
            &["overrides", "catalog", "catalogs", "packages", "packageExtensions", "patchedDependencies"]
        }
        ManifestForm::Python => {
            &["tool/hatch/envs/*/dependencies", "tool/hatch/envs/*/extra-dependencies", "tool/pdm/dev-dependencies"]
        }
        ManifestForm::Ini => &["options/install_requires", "options.extras_require"],
        ManifestForm::Go => &["require", "replace", "exclude"],
        ManifestForm::Cmake => &[],
    }
}

/// Returns the tables that name dependencies, by path, without empty tables.
pub(super) fn tables(form: ManifestForm, manifest: &Value) -> BTreeMap<String, Value> {
    let is_empty = |value: &Value| match value {
        Value::Object(table) => table.is_empty(),
        Value::Array(list) => list.is_empty(),
        _ => false,
    };
    let tables = listed(form).iter().chain(steering(form)).flat_map(|at| select(manifest, at));
    tables.filter(|(_, value)| !is_empty(value)).map(|(at, value)| (at, value.clone())).collect()
}

/// Returns the requirements that are written as text (PEP 508), by the table that lists them.
pub(super) fn requirements(form: ManifestForm, manifest: &Value) -> BTreeMap<String, Vec<String>> {
    let lines = |value: &Value| match value {
        Value::Array(list) => list.iter().filter_map(Value::as_str).map(ToOwned::to_owned).collect(),
        Value::String(text) => {
            text.lines().map(|line| line.trim().to_owned()).filter(|line| !line.is_empty()).collect()
        }
        Value::Object(table) => {
            let texts = table.values().filter_map(Value::as_str).flat_map(str::lines);
            texts.map(|line| line.trim().to_owned()).filter(|line| !line.is_empty()).collect()
        }
        _ => Vec::new(),
    };
    let is_poetry = |at: &String| at.starts_with("tool.poetry") || at.starts_with("tool.uv");
    let tables = tables(form, manifest).into_iter().filter(|(at, _)| !is_poetry(at));
    tables
        .filter(|_| matches!(form, ManifestForm::Python | ManifestForm::Ini))
        .map(|(at, value)| (at, lines(&value)))
        .collect()
}

/// Returns the place of a dependency, by its entry.
fn place(form: ManifestForm, value: &Value) -> Option<String> {
    if let Some(text) = value.as_str() {
        let schemes = ["file:", "link:", "portal:", "npm:", "git", "http:", "https:", "patch:", "exec:", "bitbucket:"];
        return match form {
            ManifestForm::Node if ["workspace:", "catalog:"].iter().any(|start| text.starts_with(start)) => None,
            ManifestForm::Node if schemes.iter().any(|start| text.starts_with(start)) || text.contains('/') => {
                Some(text.into())
            }
            ManifestForm::Cargo
            | ManifestForm::Node
            | ManifestForm::Yaml
            | ManifestForm::Python
            | ManifestForm::Ini
            | ManifestForm::Go
            | ManifestForm::Cmake => Some(REGISTRY.into()),
        };
    }
    if let Some(items) = value.as_array() {
        // The list has one item for each platform.
        let places = || items.iter().filter_map(|item| place(form, item));
        let is_apart = |place: &String| ["git ", "url ", "path ", "file "].iter().any(|start| place.starts_with(start));
        return places().find(is_apart).or_else(|| places().next());
    }
    if value.get("workspace").and_then(Value::as_bool) == Some(true) {
        return None;
    }
    let keys = ["path", "git", "url", "file", "registry", "registry-index", "index", "source", "package"];
    let message = keys.iter().find_map(|key| Some(format!("{key} {}", value.get(key)?.as_str()?)));
    Some(message.unwrap_or_else(|| REGISTRY.into()))
}

/// Returns the normalized name of a Python package.
fn normal(name: &str) -> String {
    name.to_lowercase().replace(['_', '.'], "-")
}
