//! Paths that the base does not have and that the work must not add, because the gate would use the
//! file there: as a program, as a built target of `make`, as an optional file, or as a header.

use super::BaseFiles;
use super::ecosystems::{HEADER, READS, REMEDY};
use super::makefiles::{self, is_makefile};
use super::named::{inside, text, words};
use crate::gate::names::name_of;
use crate::lane::Lane;
use crate::pattern::Patterns;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Headers that every C or C++ compiler provides, or that test frameworks install.
#[rustfmt::skip]
pub(super) const HEADERS: &[&str] = &[
    "assert.h", "complex.h", "ctype.h", "dirent.h", "dlfcn.h", "errno.h", "fcntl.h", "fenv.h", "float.h", "getopt.h", "inttypes.h", "iso646.h", "limits.h",
    "locale.h", "malloc.h", "math.h", "memory.h", "netdb.h", "poll.h", "pthread.h", "regex.h", "sched.h", "semaphore.h", "setjmp.h", "signal.h", "stdalign.h",
    "stdarg.h", "stdatomic.h", "stdbit.h", "stdbool.h", "stdckdint.h", "stddef.h", "stdint.h", "stdio.h", "stdlib.h", "stdnoreturn.h", "string.h", "strings.h",
    "sys/mman.h", "sys/socket.h", "sys/stat.h", "sys/time.h", "sys/types.h", "sys/wait.h", "tgmath.h", "threads.h", "time.h", "uchar.h", "unistd.h", "wchar.h",
    "wctype.h",
    "algorithm", "any", "array", "atomic", "bit", "bitset", "cassert", "cctype", "cerrno", "cfloat", "charconv", "chrono", "cinttypes", "climits", "clocale",
    "cmath", "compare", "complex", "concepts", "condition_variable", "coroutine", "csetjmp", "csignal", "cstdarg", "cstddef", "cstdint", "cstdio", "cstdlib",
    "cstring", "ctime", "deque", "exception", "expected", "filesystem", "format", "forward_list", "fstream", "functional", "future", "initializer_list",
    "iomanip", "ios", "iosfwd", "iostream", "istream", "iterator", "latch", "limits", "list", "map", "memory", "mutex", "new", "numbers", "numeric", "optional",
    "ostream", "print", "queue", "random", "ranges", "ratio", "regex", "scoped_allocator", "semaphore", "set", "shared_mutex", "source_location", "span",
    "sstream", "stack", "stdexcept", "stop_token", "streambuf", "string", "string_view", "system_error", "thread", "tuple", "type_traits", "typeindex",
    "typeinfo", "unordered_map", "unordered_set", "utility", "valarray", "variant", "vector", "version",
    "gtest/gtest.h", "gmock/gmock.h", "catch2/catch_all.hpp", "catch2/catch_test_macros.hpp", "catch.hpp", "doctest.h", "doctest/doctest.h", "check.h",
    "cmocka.h", "criterion/criterion.h", "CUnit/CUnit.h", "unity.h", "boost/test/unit_test.hpp",
];
/// Options before a folder of headers.
const OPTIONS: &[&str] = &["-I", "-isystem", "-iquote"];
/// Commands before folders of headers.
const COMMANDS: &[&str] = &["include_directories", "target_include_directories", "include_directories:"];
/// The maximum number of folders of headers.
const MOST_FOLDERS: usize = 32;

/// Paths that must not be added.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct StandIns {
    /// Files and links that would be run, each with the name of the program.
    programs: BTreeMap<String, String>,
    /// Files and links that would be read.
    read: BTreeSet<String>,
    /// Files, links and folders with the name of a target, each with the target. `make` does not
    /// build a target whose file exists.
    targets: BTreeMap<String, String>,
    /// Headers of the system.
    headers: BTreeSet<String>,
    /// Patterns by which Makefiles include files.
    pub(super) included: BTreeSet<String>,
}

impl StandIns {
    /// Collects the paths for the lanes' commands and the files that these commands reach.
    pub(super) fn from_commands(
        lanes: &[Lane],
        base: &BaseFiles,
        reached: &BTreeMap<String, String>,
        read: &mut dyn FnMut(&str) -> Option<Vec<u8>>,
    ) -> Self {
        let texts = texts(lanes, base, reached, read);
        let is_new = |path: &str| !path.is_empty() && !base.has(path) && !base.has_folder(path);
        let mut programs = programs(lanes, &texts);
        let read =
            texts.iter().flat_map(|(path, text)| [makefiles::included(path, text), sourced(path, text)]).flatten();
        let mut targets = makefiles::targets(&texts);
        let folders = header_folders(&texts);
        let headers = folders
            .iter()
            .filter(|folder| base.has_folder(folder))
            .take(MOST_FOLDERS)
            .flat_map(|folder| HEADERS.iter().filter_map(|header| inside(folder, header)))
            .filter(|path| is_new(path))
            .collect();
        programs.retain(|path, _| is_new(path));
        targets.retain(|path, _| is_new(path));
        let read = read.filter(|path| is_new(path)).collect();
        let included = texts.iter().flat_map(|(path, text)| makefiles::patterns(path, text));
        let included = included.filter(|pattern| Patterns::files(pattern).is_ok()).collect();
        Self { programs, read, targets, headers, included }
    }

    /// Returns whether a path below a folder must not be added.
    pub(super) fn is_above(&self, folder: &str) -> bool {
        let Self { programs, read, targets, headers, included } = self;
        let places = programs.keys().chain(read).chain(targets.keys()).chain(headers).chain(included);
        places.filter_map(|place| place.strip_prefix(folder)).any(|rest| rest.starts_with('/'))
    }

    /// Returns the reason to reject a changed path, or `None`. `is_added` says that the base does
    /// not have the path. Only targets of `make` with a pattern (`%.o`) need `is_added`, because
    /// the base has none of the exact paths.
    pub(super) fn rejection_reason(&self, path: &str, is_added: bool) -> Option<String> {
        if let Some(program) = self.programs.get(path) {
            return Some(format!("the gate would run this file instead of the program `{program}`: {REMEDY}"));
        }
        let by_pattern = || self.targets.iter().find(|(target, _)| makefiles::fits(target, path)).filter(|_| is_added);
        let exact = super::folders_of(path).chain([path]).find_map(|path| self.targets.get(path));
        if let Some(target) = exact.or_else(|| by_pattern().map(|(_, target)| target)) {
            return Some(format!(
                "make would treat this path as the built target `{target}` and skip the commands of the target: \
                 add the target to .PHONY, {REMEDY}"
            ));
        }
        match () {
            () if self.read.contains(path) => Some(READS.to_owned()),
            () if self.headers.contains(path) => Some(HEADER.to_owned()),
            () => None,
        }
    }
}

/// Returns the commands of the steps, and the scripts and Makefiles that they use, each with its
/// path. The path of a command is empty.
fn texts(
    lanes: &[Lane],
    base: &BaseFiles,
    reached: &BTreeMap<String, String>,
    read: &mut dyn FnMut(&str) -> Option<Vec<u8>>,
) -> Vec<(String, String)> {
    let steps = || lanes.iter().flat_map(|lane| lane.steps.iter().chain(&lane.setup));
    let builds = base.0.iter().filter(|path| is_makefile(path) || name_of(path) == "CMakeLists.txt").cloned();
    let mut texts: Vec<(String, String)> = steps().map(|step| (String::new(), step.run.clone())).collect();
    let envs = lanes.iter().flat_map(|lane| lane.steps.iter().map(|step| &step.env).chain([&lane.env]));
    for name in ["PATH", "CFLAGS", "CPPFLAGS", "CXXFLAGS"] {
        texts.extend(envs.clone().filter_map(|env| env.get(name)).map(|it| (String::new(), format!("{name}={it}"))));
    }
    for path in builds.filter(|path| !reached.contains_key(path)) {
        texts.extend(text(&path, read).map(|text| (path, text)));
    }
    texts.extend(reached.clone());
    texts
}

/// Returns the paths at which a file or link would stand in for a program, with the name of the
/// program. These are programs that the lanes start, at the root and in the folder of the step. In
/// workspace folders that the gate's scripts put on `PATH`, every word of the scripts counts as a
/// program.
fn programs(lanes: &[Lane], texts: &[(String, String)]) -> BTreeMap<String, String> {
    let places = lanes.iter().flat_map(|lane| lane.steps.iter().chain(&lane.setup)).flat_map(|step| {
        let program = step.program().filter(|program| !program.contains('/'));
        let folders = [Some(""), step.dir.as_deref()].into_iter().flatten();
        program.into_iter().flat_map(move |program| {
            folders.clone().filter_map(move |folder| Some((inside(folder, program)?, program.to_owned())))
        })
    });
    let mut places: BTreeMap<String, String> = places.collect();
    let on_path: BTreeSet<String> = texts.iter().flat_map(|(_, text)| on_path(text)).collect();
    let known =
        || texts.iter().flat_map(|(_, text)| words(text)).filter(|word| is_plain(word)).collect::<BTreeSet<_>>();
    let known = if on_path.is_empty() { BTreeSet::new() } else { known() };
    let known_in = |folder: &String| {
        known.iter().filter_map(|word| Some((inside(folder, word)?, (*word).to_owned()))).collect::<Vec<_>>()
    };
    places.extend(on_path.iter().flat_map(known_in));
    places
}

/// Returns the files that a shell script reads only if they exist: the script also tests for the
/// file, or ignores a failure. A file that the script always reads and the base does not have may
/// be part of the work.
fn sourced(path: &str, text: &str) -> Vec<String> {
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut found = Vec::new();
    for line in text.lines() {
        for command in line.split([';', '|', '&', '{', '}']) {
            let starts = |word: &&str| matches!(*word, "then" | "else" | "do" | "!");
            let mut words = words(command).into_iter().skip_while(starts);
            let reads = words.next().is_some_and(|word| matches!(word, "." | "source"));
            let name = words.next().filter(|name| reads && !name.contains(['$', '*', '~']));
            let is_optional = |name: &&str| line.contains("||") || text.matches(name_of(name)).count() > 1;
            let name = name.filter(|name| name.contains(['/', '.'])).filter(is_optional);
            found.extend(name.into_iter().flat_map(|name| [inside("", name), inside(folder, name)]).flatten());
        }
    }
    found
}

/// Returns the folders in which a compiler looks for headers.
fn header_folders(texts: &[(String, String)]) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (path, text) in texts {
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        let here = [
            "$(CURDIR)/",
            "$(srcdir)/",
            "${CMAKE_CURRENT_SOURCE_DIR}/",
            "${CMAKE_SOURCE_DIR}/",
            "${PROJECT_SOURCE_DIR}/",
            "$PWD/",
        ];
        let plain = |word: &str| here.iter().find_map(|here| word.strip_prefix(here)).unwrap_or(word).to_owned();
        for line in text.lines() {
            let split = |c: char| c.is_whitespace() || "()\"'=,[]".contains(c);
            let words: Vec<&str> = line.split(split).filter(|word| !word.is_empty()).collect();
            let joined = words.iter().filter_map(|word| word.strip_prefix("-I").or(word.strip_prefix("-isystem")));
            let is_after = |number: &usize| {
                let before = &words[..*number];
                before.last().is_some_and(|word| OPTIONS.contains(word))
                    || before.iter().any(|word| COMMANDS.contains(word))
            };
            let after = (0..words.len()).filter(is_after).map(|number| words[number]);
            let names = joined.chain(after).filter(|name| !name.is_empty()).map(plain);
            let names = names.filter(|name| !name.contains(['$', '*', '~']) && !name.starts_with('-'));
            found.extend(names.flat_map(|name| [inside("", &name), inside(folder, &name)]).flatten());
        }
    }
    found
}

/// Returns the folders of the workspace that a text puts on `PATH`.
fn on_path(text: &str) -> impl Iterator<Item = String> {
    let values = text.split("PATH=").skip(1).map(|rest| rest.split(['\n', ';', ' ', ')']).next().unwrap_or_default());
    let folders = values.flat_map(|value| value.split([':', '"', '\'']));
    let here = ["$PWD", "${PWD}", "$(pwd", "`pwd`", "$(CURDIR)", "$$PWD", "."];
    let plain = |folder: &str| {
        let below = here.iter().find_map(|here| folder.strip_prefix(here));
        let below = below.map_or(folder, |below| below.trim_start_matches('/'));
        (!below.is_empty() && !below.contains(['$', '*', '~'])).then(|| inside("", below)).flatten()
    };
    folders.filter_map(plain).collect::<Vec<_>>().into_iter()
}

fn is_plain(word: &str) -> bool {
    !word.is_empty()
        && word.chars().all(|c| c.is_ascii_alphanumeric() || "-_+.".contains(c))
        && !word.starts_with(['-', '.'])
}
