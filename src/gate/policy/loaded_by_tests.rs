//! Files of the base that only its checks load: what tests, `conftest.py` and the scripts of a gate import, as far as the product does not
//! import it and its name or place says that it helps checks. And data of the base that its tests name, whose change is noted.

use super::Base;
use super::named::{inside, is_script, is_source, text};
use super::tests_named::Tests;
use crate::gate::names::name_of;
use std::collections::{BTreeMap, BTreeSet};

/// Why a change of data is noted.
pub(super) const DATA: &str = "tests of the base name it";
/// Words in the name or the folders of a file that helps checks.
#[rustfmt::skip]
const HELPS: &[&str] = &[
    "helper", "helpers", "fixture", "fixtures", "factory", "factories", "mock", "mocks", "fake", "fakes", "stub", "stubs", "support", "testing",
    "testutil", "testutils", "testhelper", "testhelpers", "conftest", "test", "tests", "e2e",
];
/// The endings that an import may leave out.
const ENDINGS: &[&str] =
    &["", ".js", ".cjs", ".mjs", ".ts", ".mts", ".tsx", ".jsx", ".json", ".rb", ".pl", "/index.js", "/index.ts"];
/// The most files that are read.
const MOST: usize = 2000;
/// The longest text between quotes that is taken for a path.
const LONGEST_NAME: usize = 200;

/// What checks load.
#[derive(Debug, Default)]
pub(super) struct Helpers {
    /// Files that only checks load.
    pub(super) loaded: BTreeSet<String>,
    /// Data that tests name.
    pub(super) data: BTreeSet<String>,
}

impl Helpers {
    /// Of the base's tests and these files.
    pub(super) fn of(
        seeds: impl Iterator<Item = String>,
        base: &Base,
        tests: &Tests,
        read: &mut dyn FnMut(&str) -> Option<Vec<u8>>,
    ) -> Self {
        let mut found = Self::default();
        let is_test = |path: &str| tests.fit(path) || name_of(path) == "conftest.py";
        let mut open: Vec<String> = seeds.collect();
        let scripts: BTreeSet<String> = open.iter().cloned().collect();
        open.extend(base.0.iter().filter(|path| is_source(path) && is_test(path)).take(MOST).cloned());
        let mut seen: BTreeSet<String> = open.iter().cloned().collect();
        let names = data_by_name(base, tests);
        let mut product = None;
        while let Some(path) = open.pop() {
            let Some(text) = text(&path, read) else { continue };
            if is_test(&path) {
                found.data.extend(named_data(&path, &text, base, &names));
            }
            for loaded in imported(&path, &text, base) {
                if seen.contains(&loaded) || is_test(&loaded) || !(helps(&loaded) || is_beside(&path, &loaded)) {
                    continue;
                }
                let product = product
                    .get_or_insert_with(|| by_product(base, &|path| is_test(path) || scripts.contains(path), read));
                if !product.contains(&loaded) {
                    seen.insert(loaded.clone());
                    found.loaded.insert(loaded.clone());
                    open.push(loaded);
                }
            }
        }
        found
    }
}

/// Whether a file helps checks, by its name or its folders.
pub(super) fn helps(path: &str) -> bool {
    path.split(['/', '_', '-', '.']).any(|word| HELPS.contains(&word.to_lowercase().as_str()))
}

/// Whether a file is beside a script that loads it, in a folder of scripts.
fn is_beside(script: &str, path: &str) -> bool {
    let folder = |path: &str| path.rsplit_once('/').map(|(folder, _)| folder.to_owned());
    is_script(path) && folder(script) == folder(path)
}

/// What sources import that are neither tests nor helpers.
fn by_product(
    base: &Base,
    is_of_checks: &dyn Fn(&str) -> bool,
    read: &mut dyn FnMut(&str) -> Option<Vec<u8>>,
) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for path in base.0.iter().filter(|path| is_source(path) && !is_of_checks(path)).take(MOST) {
        if !helps(path) {
            found.extend(text(path, read).iter().flat_map(|text| imported(path, text, base)));
        }
    }
    found
}

/// The files of the base that a source imports.
fn imported(path: &str, text: &str, base: &Base) -> BTreeSet<String> {
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let found: Vec<String> = match path.rsplit_once('.').map(|(_, ending)| ending) {
        Some("py") => text.lines().flat_map(modules).flat_map(|module| python_files(folder, &module)).collect(),
        Some("json") => {
            quoted(text).filter(|name| name.starts_with("./")).flat_map(|name| near(folder, name)).collect()
        }
        _ => text.lines().filter(|line| loads(line)).flat_map(quoted).flat_map(|name| near(folder, name)).collect(),
    };
    found.into_iter().filter(|found| found != path && base.has(found)).collect()
}

/// Whether a line imports, in a language that names files.
fn loads(line: &str) -> bool {
    let line = line.trim_start();
    ["import ", "export ", "} from ", "require_relative ", "load "].iter().any(|word| line.starts_with(word))
        || ["require(", "import(", " from "].iter().any(|word| line.contains(word))
}

/// The files that a quoted name may mean, seen from a folder.
fn near(folder: &str, name: &str) -> Vec<String> {
    ENDINGS.iter().filter_map(|ending| inside(folder, &format!("{name}{ending}"))).collect()
}

/// The modules that a line of Python imports, each with the names that are taken from it; dots first where they are relative.
fn modules(line: &str) -> Vec<String> {
    let line = line.trim_start();
    let plain = |name: &str| name.trim().split([' ', '#']).next().unwrap_or_default().to_owned();
    if let Some((module, names)) = line.strip_prefix("from ").and_then(|rest| rest.split_once(" import ")) {
        let module = plain(module);
        let dot = if module.ends_with('.') { "" } else { "." };
        let each = names.split(['(', ')', ',']).map(plain).filter(|name| !name.is_empty());
        return each.map(|name| format!("{module}{dot}{name}")).chain([module.clone()]).collect();
    }
    line.strip_prefix("import ").map_or(Vec::new(), |names| names.split(',').map(plain).collect())
}

/// The files that a module of Python may be in.
fn python_files(folder: &str, module: &str) -> Vec<String> {
    let dots = module.chars().take_while(|c| *c == '.').count();
    let path = module[dots..].replace('.', "/");
    let starts: Vec<String> = match dots {
        0 => vec![String::new(), "src".into(), folder.to_owned()],
        _ => inside(folder, &"../".repeat(dots - 1)).into_iter().collect(),
    };
    let forms = [".py", "/__init__.py"];
    starts.iter().flat_map(|start| forms.iter().filter_map(|form| inside(start, &format!("{path}{form}")))).collect()
}

/// Data of the base outside of its tests, by name.
fn data_by_name<'b>(base: &'b Base, tests: &Tests) -> BTreeMap<&'b str, Vec<&'b str>> {
    let mut names: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let is_data = |path: &&String| !is_source(path) && !tests.fit(path) && name_of(path).contains('.');
    for path in base.0.iter().filter(is_data) {
        names.entry(name_of(path)).or_default().push(path);
    }
    names
}

/// The data that a test names, by its path or by a name that is there once.
fn named_data(path: &str, text: &str, base: &Base, names: &BTreeMap<&str, Vec<&str>>) -> Vec<String> {
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut found = Vec::new();
    for name in text.lines().flat_map(quoted).filter(|name| name.len() <= LONGEST_NAME && name.contains('.')) {
        let Some(there) = names.get(name_of(name)) else { continue };
        let mut paths = [inside("", name), inside(folder, name)].into_iter().flatten();
        let by_path = paths.find(|path| base.has(path) && there.contains(&path.as_str()));
        let alone = || (there.len() == 1 && !name.contains('/')).then(|| there[0].to_owned());
        found.extend(by_path.or_else(alone));
    }
    found
}

fn quoted(line: &str) -> impl Iterator<Item = &str> {
    line.split(['"', '\'', '`']).skip(1).step_by(2)
}
