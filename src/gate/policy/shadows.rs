//! Python modules that would be found before the intended ones. Python searches the folder of a
//! program, test folders and a lane's `PYTHONPATH` before the standard library and installed
//! packages. No module of these names may be added there.

use super::BaseFiles;
use super::ecosystems::SHADOWS;
use super::manifest;
use super::named::inside;
use crate::lane::Lane;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The folders that are always guarded.
pub(super) const FOLDERS: &[&str] = &["", "src/", "tests/", "test/"];
/// The endings of a module's file, and of the first file of a package.
const FORMS: &[&str] = &[".py", "/__init__.py"];
/// Extensions of files that Python loads as modules. The name of a compiled module may contain the
/// interpreter's tag before it: `x.abi3.so`.
const ENDINGS: &[&str] = &["py", "pyc", "so", "pyd"];
/// The maximum number of manifests that are read for dependencies, and the maximum number of
/// folders that are guarded.
const MOST: usize = 64;

/// Modules of the standard library, without built-in modules and modules of one system.
#[rustfmt::skip]
pub(super) const STANDARD: &[&str] = &[
    "__future__", "_collections_abc", "_compat_pickle", "_compression", "_markupbase", "_py_abc", "_pydecimal", "_pyio", "_sitebuiltins", "_strptime",
    "_threading_local", "_weakrefset", "abc", "argparse", "ast", "asynchat", "asyncio", "asyncore", "base64", "bdb", "bisect", "bz2", "cProfile",
    "calendar", "cgi", "cmd", "code", "codecs", "codeop", "collections", "colorsys", "compileall", "concurrent", "configparser", "contextlib",
    "contextvars", "copy", "copyreg", "csv", "ctypes", "curses", "dataclasses", "datetime", "dbm", "decimal", "difflib", "dis", "distutils", "email",
    "encodings", "ensurepip", "enum", "filecmp", "fileinput", "fnmatch", "fractions", "ftplib", "functools", "genericpath", "getopt", "getpass",
    "gettext", "glob", "graphlib", "gzip", "hashlib", "heapq", "hmac", "html", "http", "imaplib", "imp", "io", "ipaddress", "json", "keyword",
    "linecache", "locale", "logging", "lzma", "mailbox", "mimetypes", "multiprocessing", "netrc", "ntpath", "nturl2path", "numbers", "opcode",
    "operator", "optparse", "os", "pathlib", "pdb", "pickle", "pickletools", "pkgutil", "platform", "plistlib", "poplib", "posixpath", "pprint",
    "profile", "pstats", "pty", "py_compile", "pyclbr", "pydoc", "queue", "quopri", "random", "re", "reprlib", "runpy", "sched", "secrets",
    "selectors", "shelve", "shlex", "shutil", "signal", "smtplib", "socket", "socketserver", "sqlite3", "sre_compile", "sre_constants", "sre_parse",
    "ssl", "stat", "statistics", "string", "stringprep", "struct", "subprocess", "symtable", "sysconfig", "tarfile", "tempfile", "textwrap",
    "threading", "timeit", "token", "tokenize", "tomllib", "trace", "tracemalloc", "tty", "types", "typing", "urllib", "uuid", "venv", "wave",
    "weakref", "webbrowser", "wsgiref", "xml", "xmlrpc", "zipapp", "zipfile", "zipimport", "zoneinfo",
];
/// Modules that the standard library and the common runners try to import beside the standard
/// library: compiled modules, modules of other systems, and optional packages. A test compares this
/// list with the import statements of the installed versions.
#[rustfmt::skip]
pub(super) const TRIED: &[&str] = &[
    "_aix_support", "_asyncio", "_bisect", "_blake2", "_bootsubprocess", "_bz2", "_colorize", "_contextvars", "_csv", "_ctypes", "_curses",
    "_curses_panel", "_datetime", "_decimal", "_elementtree", "_hashlib", "_heapq", "_ios_support", "_json", "_lzma", "_manylinux", "_md5",
    "_multibytecodec", "_multiprocessing", "_opcode", "_opcode_metadata", "_osx_support", "_overlapped", "_pickle", "_posixshmem",
    "_posixsubprocess", "_pydatetime", "_pyrepl", "_queue", "_random", "_scproxy", "_sha1", "_sha2", "_sha256", "_sha3", "_sha512", "_socket",
    "_ssl", "_statistics", "_struct", "_typing", "_uuid", "_winapi", "_winreg", "_wmi", "annotationlib", "apport_python_hook", "argcomplete", "array", "binascii",
    "colorama", "fcntl", "grp", "importlib_metadata", "java", "math", "mmap", "msvcrt", "nt", "numpy", "org", "pep517", "pexpect", "pkg_resources",
    "pydoc_data", "pyexpat", "pygments", "readline", "rlcompleter", "select", "termios", "twisted", "typing_extensions", "unicodedata", "vms_lib",
    "win32evtlog", "win32evtlogutil", "winreg", "zlib", "zope",
];
/// Packages whose module has another name than the package.
#[rustfmt::skip]
const IMPORTED_AS: &[(&str, &str)] = &[
    ("attrs", "attr"), ("beautifulsoup4", "bs4"), ("opencv-python", "cv2"), ("pillow", "PIL"), ("protobuf", "google"), ("pyjwt", "jwt"),
    ("python-dateutil", "dateutil"), ("python-dotenv", "dotenv"), ("pyyaml", "yaml"), ("scikit-learn", "sklearn"), ("setuptools", "pkg_resources"),
];

/// Reason for rejecting a link in the place of a folder in which Python, a shell or a compiler
/// would find stand-ins.
pub(super) const LINKED: &str = "a link replaces a folder in which the tests look for modules, programs or headers";

/// Modules that must not be added.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Shadows {
    /// The modules, each as its folder and name, without an extension.
    modules: BTreeSet<String>,
}

impl Shadows {
    /// Collects the guarded modules of a base. In [`FOLDERS`], these are the test tools. If the
    /// base has Python sources, the standard library and the base's dependencies are guarded as
    /// well, in all folders in which Python finds modules. `named` are files that the lanes run;
    /// `read` returns the content of a file of the base.
    pub(super) fn from_base<'n>(
        base: &BaseFiles,
        lanes: &[Lane],
        named: impl Iterator<Item = &'n String>,
        read: &mut dyn FnMut(&str) -> Option<Vec<u8>>,
    ) -> Self {
        let mut modules = BTreeSet::new();
        let mut guard = |folder: &str, names: &mut dyn Iterator<Item = String>| {
            let new = names.map(|name| format!("{folder}{name}"));
            modules.extend(new.filter(|module| !has(base, module)));
        };
        for folder in FOLDERS {
            guard(folder, &mut SHADOWS.iter().map(|name| (*name).to_owned()));
        }
        if base.0.iter().any(|path| path.ends_with(".py")) {
            let depends_on = dependencies(base, read);
            for folder in folders(base, lanes, named) {
                let names = SHADOWS.iter().chain(STANDARD).chain(TRIED).map(|name| (*name).to_owned());
                guard(&folder, &mut names.chain(depends_on.iter().cloned()));
            }
        }
        Self { modules }
    }

    /// Returns the source files that would be guarded modules.
    pub(super) fn files(&self) -> impl Iterator<Item = String> {
        self.modules.iter().flat_map(|module| FORMS.iter().map(move |form| format!("{module}{form}")))
    }

    /// Returns whether a file would be a guarded module, in any form that Python loads: source,
    /// bytecode, or a compiled library.
    pub(super) fn has_form(&self, path: &str) -> bool {
        module_of(path).is_some_and(|module| self.modules.contains(module))
    }

    /// Returns whether modules of the standard library are guarded in a folder or below it.
    pub(super) fn is_above(&self, folder: &str) -> bool {
        let below = format!("{folder}/");
        let mut inside = self.modules.range(below.clone()..).take_while(|module| module.starts_with(&below));
        inside.any(|module| STANDARD.contains(&super::name_of(module)))
    }

    /// Returns the guarded modules. A link to a folder under the name of a module counts as this
    /// module.
    pub(super) fn modules(&self) -> &BTreeSet<String> {
        &self.modules
    }
}

/// Returns the module that Python would load from a file, as its folder and name.
pub(super) fn module_of(path: &str) -> Option<&str> {
    let ending = path.rsplit_once('.').map(|(_, ending)| ending)?;
    let name = super::name_of(path);
    let stem = &path[..path.len() - name.len() + name.find('.')?];
    let is_module = ENDINGS.contains(&ending) && !(ending.starts_with("py") && name.matches('.').count() > 1);
    is_module.then(|| stem.strip_suffix("/__init__").unwrap_or(stem))
}

fn has(base: &BaseFiles, module: &str) -> bool {
    base.has(&format!("{module}.py")) || base.has_folder(module)
}

/// Returns the folders in which modules are found, each with a `/` at its end except the root.
/// Leaves out folders that are packages.
fn folders<'n>(base: &BaseFiles, lanes: &[Lane], named: impl Iterator<Item = &'n String>) -> BTreeSet<String> {
    let tests = test_folders(base);
    let run = named.filter(|path| path.ends_with(".py")).map(|path| folder_of(path));
    let mut folders: BTreeSet<String> = FOLDERS.iter().map(|folder| (*folder).to_owned()).chain(run).collect();
    let steps = lanes.iter().flat_map(|lane| lane.steps.iter().chain(&lane.setup).map(move |step| (lane, step)));
    for (lane, step) in steps {
        let dir = step.dir.as_deref().and_then(|dir| inside("", dir)).unwrap_or_default();
        let paths = [lane.env.get("PYTHONPATH"), step.env.get("PYTHONPATH")];
        let set = paths.into_iter().flatten().flat_map(|paths| paths.split(':'));
        let found = set.chain([""]).filter_map(|path| inside(&dir, path.trim_start_matches("$PWD/")));
        folders.extend(found.map(|folder| if folder.is_empty() { folder } else { folder + "/" }));
    }
    folders.extend(tests);
    folders.retain(|folder| !base.has(&format!("{folder}__init__.py")));
    folders.into_iter().take(MOST).collect()
}

/// Returns the folders of the base with Python tests, each with a `/` at its end except the root.
pub(super) fn test_folders(base: &BaseFiles) -> BTreeSet<String> {
    let is_test = |path: &&String| path.ends_with(".py") && is_pytest_file(super::name_of(path));
    base.0.iter().filter(is_test).take(MOST * MOST).map(|path| folder_of(path)).collect()
}

/// Returns the test folders that Python searches before the product's folders. Leaves out packages,
/// since Python does not search them.
pub(super) fn first_folders(base: &BaseFiles) -> BTreeSet<String> {
    let mut folders = test_folders(base);
    folders.extend(["tests/", "test/"].map(str::to_owned));
    folders.retain(|folder| !folder.is_empty() && folder != "src/" && !base.has(&format!("{folder}__init__.py")));
    folders
}

fn folder_of(path: &str) -> String {
    path.rfind('/').map_or(String::new(), |end| path[..=end].to_owned())
}

/// Returns whether pytest takes a file for tests, by its name.
pub(super) fn is_pytest_file(name: &str) -> bool {
    name.strip_suffix(".py").is_some_and(|stem| stem.starts_with("test") || stem.ends_with("_test") || stem == "tests")
}

/// Returns the modules of the dependencies in the manifests of the base, without modules of the
/// base.
fn dependencies(base: &BaseFiles, read: &mut dyn FnMut(&str) -> Option<Vec<u8>>) -> BTreeSet<String> {
    let is_asked = |path: &&String| {
        let name = super::name_of(path);
        matches!(name, "pyproject.toml" | "setup.cfg") || (name.starts_with("requirements") && name.ends_with(".txt"))
    };
    let mut found = BTreeSet::new();
    for path in base.0.iter().filter(is_asked).take(MOST) {
        found.extend(read(path).map(|bytes| manifest::python_dependencies(path, &bytes)).unwrap_or_default());
    }
    let module = |name: &String| {
        let known = IMPORTED_AS.iter().find(|(installed, _)| installed == name);
        known.map_or_else(|| name.replace('-', "_"), |(_, imported)| (*imported).to_owned())
    };
    let is_own = |module: &String| ["", "src/", "lib/"].iter().any(|folder| has(base, &format!("{folder}{module}")));
    let named = found.iter().map(module);
    named.filter(|module| !module.is_empty() && module != "python" && !is_own(module)).collect()
}
