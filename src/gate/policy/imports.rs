//! The files of the base that a source imports, for languages whose imports name files or modules.
//! Pure.

use super::BaseFiles;
use super::named::inside;
use std::collections::BTreeSet;

/// Endings that an import may leave out.
const ENDINGS: &[&str] =
    &["", ".js", ".cjs", ".mjs", ".ts", ".mts", ".tsx", ".jsx", ".json", ".rb", ".pl", "/index.js", "/index.ts"];

/// Returns the files of the base that a source imports.
pub(super) fn imported(path: &str, text: &str, base: &BaseFiles) -> BTreeSet<String> {
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let found: Vec<String> = match path.rsplit_once('.').map(|(_, ending)| ending) {
        Some("py") => text.lines().flat_map(modules).flat_map(|module| python_files(folder, &module)).collect(),
        Some("rs") => rust_modules(text).flat_map(|(module, _)| rust_files(path, &module)).collect(),
        Some("c" | "cc" | "cpp" | "cxx" | "h" | "hpp") => included(text).flat_map(|name| near(folder, name)).collect(),
        Some("json") => {
            quoted(text).filter(|name| name.starts_with("./")).flat_map(|name| near(folder, name)).collect()
        }
        _ => text.lines().filter(|line| loads(line)).flat_map(quoted).flat_map(|name| near(folder, name)).collect(),
    };
    found.into_iter().filter(|found| found != path && base.has(found)).collect()
}

/// Returns the files of the modules that a Rust source declares only for its tests.
pub(super) fn modules_for_tests(path: &str, text: &str, base: &BaseFiles) -> Vec<String> {
    let of_tests = rust_modules(text).filter(|(_, is_for_tests)| *is_for_tests);
    let file = |module: String| rust_files(path, &module).into_iter().find(|file| base.has(file));
    of_tests.filter_map(|(module, _)| file(module)).collect()
}

/// Returns the modules that a Rust source declares in other files. Each has its name, or its path
/// if a `path` attribute sets one, and whether it is only for tests.
fn rust_modules(text: &str) -> impl Iterator<Item = (String, bool)> {
    let (mut is_for_tests, mut path) = (false, None);
    text.lines().map(str::trim).filter_map(move |line| {
        let inline = line.strip_prefix("#[cfg(test)]").map(str::trim).filter(|rest| !rest.is_empty());
        is_for_tests |= inline.is_some();
        let line = inline.unwrap_or(line);
        let attribute = line.strip_prefix("#[").filter(|rest| rest.ends_with(']'));
        match (attribute, module_name(line)) {
            (Some(attribute), _) => {
                is_for_tests |= attribute == "cfg(test)]";
                path = attribute
                    .strip_prefix("path")
                    .and_then(|rest| quoted(rest).next())
                    .map(str::to_owned)
                    .or(path.take());
                None
            }
            (None, Some(name)) => {
                Some((path.take().unwrap_or_else(|| name.to_owned()), std::mem::take(&mut is_for_tests)))
            }
            (None, None) => {
                (is_for_tests, path) = (false, None);
                None
            }
        }
    })
}

/// Returns the name of the module that a line of Rust declares in another file.
fn module_name(line: &str) -> Option<&str> {
    let public = line.strip_prefix("pub").map_or(line, |rest| rest.split_once(')').map_or(rest, |(_, rest)| rest));
    let name = public.trim_start().strip_prefix("mod ")?.strip_suffix(';')?.trim();
    name.chars().all(|c| c.is_alphanumeric() || c == '_').then_some(name)
}

/// Returns the files that may hold a Rust module, relative to the file that declares it. The most
/// likely files come first.
fn rust_files(path: &str, module: &str) -> Vec<String> {
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    if module.ends_with(".rs") {
        return inside(folder, module).into_iter().collect();
    }
    let stem = name.strip_suffix(".rs").unwrap_or(name);
    let own = inside(folder, stem).unwrap_or_default();
    let forms = [format!("{module}.rs"), format!("{module}/mod.rs")];
    let folders = if matches!(stem, "lib" | "main" | "mod") { [folder, &own] } else { [&own, folder] };
    folders.iter().flat_map(|folder| forms.iter().filter_map(|form| inside(folder, form))).collect()
}

/// Returns the headers that a C or C++ source includes in quotes.
fn included(text: &str) -> impl Iterator<Item = &str> {
    text.lines()
        .filter_map(|line| line.trim_start().strip_prefix('#')?.trim_start().strip_prefix("include"))
        .flat_map(quoted)
}

/// Returns whether a line is an import, in languages whose imports name files.
fn loads(line: &str) -> bool {
    let line = line.trim_start();
    ["import ", "export ", "} from ", "require_relative ", "load "].iter().any(|word| line.starts_with(word))
        || ["require(", "import(", " from "].iter().any(|word| line.contains(word))
}

/// Returns the files that a quoted name may mean, relative to a folder.
fn near(folder: &str, name: &str) -> Vec<String> {
    ENDINGS.iter().filter_map(|ending| inside(folder, &format!("{name}{ending}"))).collect()
}

/// Returns the modules that a line of Python imports, with and without the names that it takes from
/// each. Relative modules begin with dots.
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

/// Returns the files that may hold a Python module.
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

/// Returns the quoted texts in a line.
pub(super) fn quoted(line: &str) -> impl Iterator<Item = &str> {
    line.split(['"', '\'', '`']).skip(1).step_by(2)
}
