//! Facts about Python: the packages of interpreters, the virtual environments in a project, and the
//! paths of the project's own packages.

use super::{may_start, names_in};
use crate::lane::detect::ENVIRONMENTS;
use std::collections::BTreeSet;
use std::fs;
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// The maximum number of environments of tox, and of nox, that are searched.
const MOST_ENVIRONMENTS: usize = 20;
/// The maximum number of bytes that are read of a file that says where an editable install is.
const LONGEST_LINK: u64 = 4096;

/// Returns the folders of the environments that tox and nox made.
fn made(root: &Path) -> Vec<String> {
    let in_folder = |outer: &&'static str| {
        let mut names = names_in(&root.join(outer));
        names.sort();
        let paths = names.into_iter().filter(|name| !name.starts_with('.')).map(move |name| format!("{outer}/{name}"));
        paths.filter(|path| root.join(path).join("pyvenv.cfg").is_file()).take(MOST_ENVIRONMENTS).collect::<Vec<_>>()
    };
    ENVIRONMENTS.iter().flat_map(in_folder).collect()
}

/// Returns the programs of these environments, and each `__init__.py` of a package in `src`.
pub(super) fn paths(root: &Path) -> Vec<String> {
    let bins = made(root).into_iter().map(|folder| format!("{folder}/bin"));
    let programs = bins.flat_map(|bin| names_in(&root.join(&bin)).into_iter().map(move |name| format!("{bin}/{name}")));
    let packages = names_in(&root.join("src")).into_iter().map(|name| format!("src/{name}/__init__.py"));
    programs.chain(packages.filter(|path| root.join(path).is_file())).collect()
}

/// Returns the environments in which the project is an editable install, because a file among their
/// packages leads to the project.
pub(super) fn editable(root: &Path) -> BTreeSet<String> {
    let all = [".venv", "venv"].map(str::to_owned).into_iter().chain(made(root));
    all.filter(|folder| leads_to(&root.join(folder), root)).collect()
}

fn leads_to(environment: &Path, root: &Path) -> bool {
    let library = environment.join("lib");
    let packages = names_in(&library).into_iter().map(|version| library.join(version).join("site-packages"));
    let leads = |path: PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let is_link = name.ends_with(".pth") || name.ends_with(".egg-link");
        is_link && (name.starts_with("__editable__") || start_of(&path).is_some_and(|text| is_below(&text, root)))
    };
    packages.into_iter().any(|folder| names_in(&folder).into_iter().any(|name| leads(folder.join(name))))
}

fn is_below(text: &str, root: &Path) -> bool {
    let real = root.canonicalize();
    text.lines().any(|line| {
        Path::new(line).starts_with(root) || real.as_ref().is_ok_and(|real| Path::new(line).starts_with(real))
    })
}

fn start_of(path: &Path) -> Option<String> {
    let mut start = Vec::new();
    fs::File::open(path).ok()?.take(LONGEST_LINK).read_to_end(&mut start).ok()?;
    String::from_utf8(start).ok()
}

/// Returns the interpreters that have pytest: the one in the first line of the `pytest` on the
/// search path, and those that have pytest as a package.
pub(super) fn pytest_by(folders: &[PathBuf], programs: &BTreeSet<String>) -> BTreeSet<String> {
    let found = |name: &str| folders.iter().map(|folder| folder.join(name)).find(|path| may_start(path));
    let line = found("pytest").and_then(|pytest| first_line(&pytest)).unwrap_or_default();
    let words: Vec<&str> = line.strip_prefix("#!").unwrap_or_default().split_whitespace().collect();
    let interpreter = match words.as_slice() {
        ["/usr/bin/env" | "/bin/env", name] => found(name),
        [path, options @ ..] if options.iter().all(|option| option.starts_with('-')) => Some(PathBuf::from(path)),
        _ => None,
    };
    // Does not follow links: the interpreter of a virtual environment is a link to one that does
    // not have its packages.
    let place = |path: &Path| Some((path.parent()?.canonicalize().ok()?, fs::metadata(path).ok()?.ino()));
    let wanted = interpreter.as_deref().and_then(place);
    let is_named = |path: &Path| wanted.is_some() && place(path) == wanted;
    let has_it = |name: &&&str| {
        programs.contains(**name) && found(name).is_some_and(|path| is_named(&path) || has_package(&path, "pytest"))
    };
    ["python3", "python"].iter().filter(has_it).map(|name| (*name).to_owned()).collect()
}

/// Returns whether an interpreter has a package. Looks below the prefix that contains the
/// interpreter, as in a virtual environment, and below the prefix that its link leads to.
fn has_package(interpreter: &Path, package: &str) -> bool {
    let Ok(real) = interpreter.canonicalize() else { return false };
    let own = interpreter.parent().and_then(Path::parent);
    let is_venv = own.is_some_and(|own| own.join("pyvenv.cfg").is_file());
    let prefixes = [own, real.parent().and_then(Path::parent).filter(|_| !is_venv)];
    // `python3.11` does not have the packages of 3.12. Distributions share some packages between
    // all versions.
    let version = real.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let versions = [format!("lib/{version}"), format!("local/lib/{version}"), "lib/python3".to_owned()];
    prefixes.into_iter().flatten().any(|prefix| {
        let libraries =
            versions.iter().flat_map(|library| ["site-packages", "dist-packages"].map(|end| (library, end)));
        libraries.into_iter().any(|(library, end)| prefix.join(library).join(end).join(package).is_dir())
    })
}

/// Returns the first line of a file, cut at 512 bytes.
fn first_line(path: &Path) -> Option<String> {
    let mut start = Vec::new();
    fs::File::open(path).ok()?.take(512).read_to_end(&mut start).ok()?;
    let line = start.split(|byte| *byte == b'\n').next()?;
    String::from_utf8(line.to_vec()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(files: &[(&str, String)]) -> tempfile::TempDir {
        let dir = crate::test_support::temp_dir();
        for (path, text) in files {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, text).unwrap();
        }
        dir
    }

    #[test]
    fn environments_of_tox_and_nox_are_found_with_their_programs() {
        let none = String::new;
        let project = folder(&[
            (".tox/py/pyvenv.cfg", none()),
            (".tox/py/bin/pytest", none()),
            (".tox/.pkg/pyvenv.cfg", none()),
            (".tox/.pkg/bin/python", none()),
            (".tox/log/bin/python", none()),
            (".nox/tests-3-12/pyvenv.cfg", none()),
            (".nox/tests-3-12/bin/python", none()),
            ("src/a/__init__.py", none()),
            ("src/b/c.py", none()),
        ]);
        assert_eq!(paths(project.path()), [".tox/py/bin/pytest", ".nox/tests-3-12/bin/python", "src/a/__init__.py"]);
    }

    #[test]
    fn an_environment_is_editable_where_a_file_of_its_packages_leads_to_the_project() {
        let project =
            folder(&[(".venv/lib/python3.12/site-packages/_virtualenv.pth", "import _virtualenv".to_owned())]);
        let root = project.path();
        let write = |path: &str, text: String| {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        assert_eq!(editable(root), BTreeSet::new());
        write("venv/lib/python3.12/site-packages/other.pth", "/elsewhere/src\n".into());
        assert_eq!(editable(root), BTreeSet::new());
        write("venv/lib/python3.12/site-packages/_app.pth", format!("{}\n", root.join("src").display()));
        write(".tox/py/pyvenv.cfg", String::new());
        write(".tox/py/lib/python3.12/site-packages/__editable__.app-1.pth", "import finder".into());
        assert_eq!(editable(root), BTreeSet::from(["venv".to_owned(), ".tox/py".to_owned()]));
    }
}
