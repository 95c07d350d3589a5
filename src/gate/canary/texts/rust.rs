//! Planted tests for `cargo test`.

use super::{PlainFailure, PlantDraft, PlantGroup, tokens, used};
use std::collections::BTreeSet;
use toml::Spanned;
use toml::de::DeTable;

/// Macros that make a test fail, each with arguments that fail.
const MACROS: [(&str, &str); 7] = [
    ("assert!", "(\"{mark}\".is_empty())"),
    ("assert_eq!", "(\"{mark}\", \"\")"),
    ("assert_ne!", "(\"{mark}\", \"{mark}\")"),
    ("panic!", "(\"{mark}\")"),
    ("unreachable!", "(\"{mark}\")"),
    ("todo!", "(\"{mark}\")"),
    ("unimplemented!", "(\"{mark}\")"),
];
/// A panic by its full path, which code cannot redefine.
const PANIC: &str = "::std::panic!(\"{mark}\")";

/// Returns integration tests that link the package's library, and tests that import its names like
/// tests of the base. `library` is empty for a package without a library.
pub(in crate::gate::canary) fn integration(folder: &str, library: &str, likes: &[(&str, &str)]) -> PlantDraft {
    let all: Vec<&str> = likes.iter().map(|(_, text)| *text).collect();
    let (all, glob) = (all.join("\n"), format!("use {library}::"));
    let takes_all = |line: &&str| line.starts_with(&glob) && line.contains('*') && line.ends_with(';');
    let globs: BTreeSet<&str> = all.lines().filter(|line| !library.is_empty() && takes_all(line)).collect();
    let globs: String = globs.iter().map(|line| format!("{line}\n")).collect();
    let has_macros = !library.is_empty() && all.contains("#[macro_use]");
    let head = match library {
        "" => String::new(),
        _ if has_macros => format!("#[macro_use]\nextern crate {library};"),
        _ => format!("extern crate {library} as _;"),
    };
    let mut groups = vec![PlantGroup::new("test", vec![("panic".into(), rust_test(PANIC))])];
    if has_macros || !globs.is_empty() {
        let globs: String = globs.lines().map(|line| format!("    {line}\n")).collect();
        let open = format!("mod {{file}} {{\n{globs}\n");
        let tests = inside(tests(&all));
        groups.push(PlantGroup { open, close: "}\n", ..PlantGroup::new("with names of the library", tests) });
    }
    let head = format!("#![allow(warnings, unused)]\n\n{head}");
    let like = format!("{folder}tests/");
    let plain = PlainFailure::new("", "panic", plain_test());
    PlantDraft { path: format!("{like}{{file}}.rs"), like, head, groups, plain, ..PlantDraft::default() }
}

/// Returns a source file of a package with tests added beside its own; `None` if it has none.
pub(in crate::gate::canary) fn unit(path: &str, text: &str) -> Option<PlantDraft> {
    let at = module_end(text);
    if at.is_none() && !text.contains("#[test]") {
        return None;
    }
    let (head, tail) = text.split_at(at.unwrap_or(text.len()));
    let mut tests = tests(text);
    tests.insert(0, ("panic".into(), rust_test(PANIC)));
    // If the file's test module is not at the end, the added tests get a separate module.
    let has_own = at.is_none() && text.contains("#[cfg(test)]");
    let within = |test: Vec<(String, String)>| if has_own || at.is_some() { inside(test) } else { test };
    let (open, plain, close) = if has_own {
        let open = "#[cfg(test)]\n#[allow(warnings, unused)]\nmod {file} {\n    use super::*;\n\n";
        (open, "#[cfg(test)]\nmod {file} {\n", "}\n")
    } else {
        ("", "", "")
    };
    let groups = vec![PlantGroup { open: open.into(), close, ..PlantGroup::new("unit", within(tests)) }];
    let (form, test) = within(vec![("panic".into(), plain_test())]).remove(0);
    let plain = PlainFailure::within(head, &form, test, plain, close);
    Some(PlantDraft { like: path.into(), path: path.into(), head: head.into(), groups, tail: tail.into(), plain })
}

/// Indents tests for use inside a module.
fn inside(tests: Vec<(String, String)>) -> Vec<(String, String)> {
    let indented = |text: String| text.lines().map(|line| format!("    {line}\n")).collect();
    tests.into_iter().map(|(form, text)| (form, indented(text))).collect()
}

/// Returns a test that does not change lint levels, because a crate may forbid that.
fn plain_test() -> String {
    format!("#[test]\nfn {{name}}() {{\n    {PANIC};\n}}\n")
}

/// Returns the end of the body of a test module; `None` if the module does not end the file.
fn module_end(text: &str) -> Option<usize> {
    let begin =
        text.rfind("\n#[cfg(test)]\n").map(|at| at + 1).or_else(|| text.starts_with("#[cfg(test)]\n").then_some(0))?;
    let module = &text[begin..];
    let opens = module.lines().find(|line| !line.starts_with("#["))?;
    if !opens.ends_with('{') || !opens.trim_start_matches("pub ").trim_start_matches("pub(crate) ").starts_with("mod ")
    {
        return None;
    }
    let end = begin + module.find("\n}")? + 1;
    text[end..].trim().eq("}").then_some(end)
}

fn tests(text: &str) -> Vec<(String, String)> {
    let names: BTreeSet<&str> = tokens(text).into_iter().map(|name| name.trim_start_matches('!')).collect();
    let form = |(name, args): (&str, &str)| (name.to_owned(), rust_test(&format!("{name}{args}")));
    let mut tests: Vec<(String, String)> = used(&MACROS, &names).into_iter().map(form).collect();
    if text.contains("#[should_panic") {
        tests.push(("should_panic".into(), "#[allow(warnings)]\n#[test]\n#[should_panic]\nfn {name}() {}\n".into()));
    }
    tests
}

fn rust_test(body: &str) -> String {
    format!("#[allow(warnings)]\n#[test]\nfn {{name}}() {{\n    {body};\n}}\n")
}

/// Returns the Rust name of the package's library, from its `Cargo.toml`; empty if it has none.
pub(in crate::gate::canary) fn library(manifest: &str, has_file: bool) -> String {
    let table = DeTable::parse(manifest).map(Spanned::into_inner).unwrap_or_default();
    let name_in = |key: &str| table.get(key)?.get_ref().get("name")?.get_ref().as_str().map(str::to_owned);
    if !has_file && !table.contains_key("lib") {
        return String::new();
    }
    name_in("lib").or_else(|| name_in("package")).unwrap_or_default().replace('-', "_")
}
