//! Checks of the modules of the command line: no module but the root imports a verb, and no imports
//! form a circle.

use super::source::{Source, read, sources};
use std::collections::{BTreeMap, BTreeSet};

/// The module that imports all others.
const ROOT: &str = "mod";

/// An import of a module of the command line by another one.
struct Import {
    source: &'static Source,
    line: usize,
    path: &'static str,
    from: &'static str,
    to: &'static str,
}

#[test]
fn only_the_root_of_the_command_line_imports_a_verb() {
    let root = read("src/cli/mod.rs");
    let verbs = root.lines().skip_while(|line| *line != "enum Verb {").take_while(|line| *line != "}");
    let verbs = verbs.filter(|line| !line.trim_start().starts_with(['#', '/']));
    let verbs: BTreeSet<&str> = verbs.filter_map(|line| Some(line.split_once('(')?.1.split_once("::")?.0)).collect();
    assert!(verbs.contains("run") && verbs.contains("lanes"), "src/cli/mod.rs has no `enum Verb`: {verbs:?}");
    let wrong: Vec<String> =
        imports().iter().filter(|import| verbs.contains(import.to)).map(|it| it.wrong("is a verb")).collect();
    assert!(wrong.is_empty(), "what two verbs share is in a module below them:\n{}", wrong.join("\n"));
}

#[test]
fn the_modules_of_the_command_line_import_each_other_in_no_circle() {
    let imports = imports();
    let mut below: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for import in &imports {
        below.entry(import.from).or_default().insert(import.to);
    }
    let reaches = |from: &str, to: &str| {
        let (mut open, mut seen) = (vec![from], BTreeSet::new());
        while let Some(module) = open.pop() {
            if seen.insert(module) {
                open.extend(below.get(module).into_iter().flatten());
            }
        }
        seen.contains(to)
    };
    let circular = imports.iter().filter(|import| import.to == ROOT || reaches(import.to, import.from));
    let wrong: Vec<String> = circular.map(|import| import.wrong(&format!("leads back to `{}`", import.from))).collect();
    assert!(wrong.is_empty(), "modules of the command line form no circle:\n{}", wrong.join("\n"));
}

/// Returns the imports between the modules directly below `cli`, and those of its root. A module
/// is a file or a folder.
fn imports() -> Vec<Import> {
    let modules = || sources("src").iter().filter_map(|source| Some((source, source.path.strip_prefix("cli/")?)));
    let name = |path: &'static str| path.split(['/', '.']).next().unwrap_or_default();
    let known: BTreeSet<&str> = modules().map(|(_, path)| name(path)).collect();
    let mut all = Vec::new();
    for (source, path) in modules().filter(|(_, path)| name(path) != ROOT) {
        let (from, climb) = (name(path), "super::".repeat(source.depth() - 1));
        for (line, path) in source.paths(true) {
            let rest = path.strip_prefix("crate::cli::").or_else(|| path.strip_prefix(climb.as_str()));
            let Some(to) = rest.and_then(|rest| rest.split("::").next()).filter(|to| !["", "super"].contains(to))
            else {
                continue;
            };
            let to = known.get(to).copied().unwrap_or(ROOT);
            if to != from {
                all.push(Import { source, line, path, from, to });
            }
        }
    }
    all
}

impl Import {
    fn wrong(&self, why: &str) -> String {
        format!("src/{}:{}: `{}` {why}", self.source.path, self.line, self.path)
    }
}
