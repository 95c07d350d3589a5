//! The files with the gate's commands: files that the lanes' commands run, files that those run in
//! turn, and files that the programs among them read. Pure.

use super::BaseFiles;
use super::named::{RUNNERS, inside, text, words};
use crate::gate::names::name_of;
use crate::lane::Lane;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// Programs, with the names of the files from which they take commands, in any folder.
const READ_BY: &[(&[&str], &[&str])] = &[
    (&["make", "gmake", "MAKE"], &["Makefile", "GNUmakefile", "makefile"]),
    (&["just"], &["justfile", "Justfile", ".justfile"]),
    (&["task"], &["Taskfile.yml", "Taskfile.yaml"]),
    (&["rake"], &["Rakefile"]),
    (
        &["npm", "yarn", "pnpm", "bun", "npx", "turbo", "nx", "lerna", "wireit"],
        &["package.json", "turbo.json", "nx.json", "project.json"],
    ),
    (&["deno"], &["deno.json", "deno.jsonc"]),
    (&["composer"], &["composer.json"]),
    (&["tox"], &["tox.ini", "tox.toml", "pyproject.toml", "setup.cfg"]),
    (&["nox"], &["noxfile.py"]),
    (&["invoke", "inv"], &["tasks.py"]),
    (&["doit"], &["dodo.py"]),
    (&["poe", "hatch", "pdm", "poetry", "rye", "uv"], &["pyproject.toml", "hatch.toml"]),
    (&["mage"], &["magefile.go"]),
    (&["pre-commit"], &[".pre-commit-config.yaml"]),
];
/// Endings that a command may leave out.
const ENDINGS: &[&str] = &["", ".py", "/__main__.py", "/__init__.py", ".js", ".cjs", ".mjs", ".ts", "/index.js", ".sh"];
/// The maximum number of files that are read, and the maximum number of bytes. The search stops at
/// these limits.
const MOST: usize = 500;
const MOST_BYTES: usize = 8 * 1024 * 1024;

/// The files of a base to which commands may lead.
struct Places<'b> {
    base: &'b BaseFiles,
    /// Files from which programs take commands, by name.
    read: HashMap<&'b str, Vec<&'b String>>,
}

impl<'b> Places<'b> {
    fn from_base(base: &'b BaseFiles) -> Self {
        let names: HashSet<&str> = READ_BY.iter().flat_map(|(_, files)| *files).copied().collect();
        let mut read: HashMap<&str, Vec<&String>> = HashMap::new();
        for path in base.0.iter().filter(|path| names.contains(name_of(path)) && !is_installed(path)) {
            read.entry(name_of(path)).or_default().push(path);
        }
        Self { base, read }
    }

    /// Returns the files that a command may mean by a path.
    fn at(&self, path: &str) -> impl Iterator<Item = String> {
        let files = ENDINGS.iter().map(move |ending| format!("{path}{ending}"));
        files.filter(|path| self.base.has(path) && !is_installed(path))
    }
}

fn is_installed(path: &str) -> bool {
    path.contains("node_modules/")
}

/// The files that commands reach.
pub(super) struct ReachedFiles {
    /// The texts of the files, by path.
    pub(super) texts: BTreeMap<String, String>,
    /// True if the search stopped at a limit.
    pub(super) is_cut: bool,
}

/// Finds the files that the lanes' commands reach. `named` are the files that the lanes name;
/// `read` returns the content of a file of the base.
pub(super) fn find<'n>(
    lanes: &[Lane],
    base: &BaseFiles,
    named: impl Iterator<Item = &'n String>,
    read: &mut dyn FnMut(&str) -> Option<Vec<u8>>,
) -> ReachedFiles {
    let places = Places::from_base(base);
    let (mut texts, mut left) = (BTreeMap::new(), MOST_BYTES);
    let mut open: BTreeSet<String> = named.cloned().collect();
    for step in lanes.iter().flat_map(|lane| lane.steps.iter().chain(&lane.setup)) {
        open.extend(run_by(&step.run, step.dir.as_deref().unwrap_or_default(), &places));
    }
    while let Some(path) = open.pop_first() {
        let Some(text) = text(&path, read) else { continue };
        let Some(rest) = left.checked_sub(text.len()).filter(|_| texts.len() < MOST) else {
            return ReachedFiles { texts, is_cut: true };
        };
        left = rest;
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        let commands = if path.ends_with(".json") { scripts(&text) } else { text.clone() };
        texts.insert(path.clone(), text);
        open.extend(run_by(&commands, folder, &places).into_iter().filter(|path| !texts.contains_key(path)));
    }
    ReachedFiles { texts, is_cut: false }
}

/// Returns the commands in a JSON file: the values below `scripts` and `tasks`, or the whole text
/// if none exist.
fn scripts(text: &str) -> String {
    let whole: serde_json::Value = serde_json::from_str(text).unwrap_or_default();
    let tables = ["scripts", "tasks"].iter().filter_map(|key| whole.get(key)?.as_object());
    let commands: Vec<String> = tables.flat_map(|table| table.values()).map(ToString::to_string).collect();
    if commands.is_empty() { text.to_owned() } else { commands.join("\n") }
}

/// Returns the files that commands run, relative to a folder and the root, and the files from which
/// programs among them take commands.
fn run_by(text: &str, folder: &str, places: &Places<'_>) -> BTreeSet<String> {
    let (mut found, folders) = (BTreeSet::new(), [folder, ""]);
    for command in text.split(['\n', ';', '|', '&']) {
        let words: Vec<&str> =
            words(command).into_iter().map(|word| word.trim_start_matches(['@', '-', '+'])).collect();
        let programs: Vec<&str> = words.iter().map(|word| name_of(word)).collect();
        let read = READ_BY.iter().filter(|(names, _)| names.iter().any(|name| programs.contains(name)));
        let files = read.flat_map(|(_, files)| *files).filter_map(|file| places.read.get(file));
        found.extend(files.flatten().map(|path| (*path).clone()));
        for (number, word) in words.iter().enumerate().filter(|(_, word)| !word.is_empty()) {
            let is_run = number == 0 || programs[..number].iter().any(|name| RUNNERS.contains(name));
            for place in folders.iter().filter(|_| is_run).filter_map(|folder| inside(folder, word)) {
                let module = place.replace('.', "/");
                found.extend([&place, &module].into_iter().flat_map(|place| places.at(place)));
                found.extend(programs_in(&programs, &place, places.base));
            }
        }
    }
    found
}

/// Returns the sources of a program that a command names by its folder or package:
/// `go run ./tools/lint`, `cargo run -p lint`.
fn programs_in(programs: &[&str], place: &str, base: &BaseFiles) -> Vec<String> {
    let in_folder = |folder: &str| {
        let below = format!("{folder}/");
        let files = base.0.range(below.clone()..).take_while(move |path| path.starts_with(&below)).cloned();
        files.take(MOST).collect::<Vec<_>>()
    };
    match programs.iter().find(|name| matches!(**name, "go" | "cargo")) {
        Some(&"go") => in_folder(place).into_iter().filter(|path| path.ends_with(".go")).collect(),
        Some(_) if !place.contains('/') => {
            let is_of = |path: &&String| {
                path.ends_with(&format!("/bin/{place}.rs"))
                    || path.ends_with(&format!("/examples/{place}.rs"))
                    || path.starts_with(&format!("{place}/src/"))
                    || path.contains(&format!("/{place}/src/"))
            };
            base.0.iter().filter(|path| path.ends_with(".rs")).filter(is_of).take(MOST).cloned().collect()
        }
        _ => Vec::new(),
    }
}
