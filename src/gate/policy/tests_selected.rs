//! Tests of the base that a command or a configuration selects by an unusual name: arguments of
//! unittest and prove, and patterns of pytest. Pure.

use super::BaseFiles;
use super::calls::module_files;
use super::checks::is_check;
use super::makefiles::is_makefile;
use super::named::{inside, text, words};
use super::tests_named::BaseTests;
use crate::gate::names::name_of;
use crate::gate::signs;
use crate::lane::Lane;
use crate::pattern::Patterns;
use std::collections::BTreeSet;

/// The maximum number of files of the base that are searched for commands.
const MOST: usize = 200;
/// Files, besides Makefiles, that contain commands or options of test runners.
const WITH_COMMANDS: &[&str] =
    &["pytest.ini", ".pytest.ini", "tox.ini", "setup.cfg", "pyproject.toml", "package.json", "justfile", "noxfile.py"];
/// The key of pytest for the names of test files.
const PYTHON_FILES: &str = "python_files";
/// The option of pytest for documents with examples.
const DOCTEST_GLOB: &str = "--doctest-glob";

/// A command, and the folder in which it runs.
struct Command<'t> {
    folder: String,
    words: Vec<&'t str>,
}

/// Finds the tests that commands and configurations select. `by_name` are the tests of the base by
/// their names; `read` returns the content of a file of the base.
pub(super) fn find(
    lanes: &[Lane],
    base: &BaseFiles,
    by_name: &BaseTests,
    read: &mut dyn FnMut(&str) -> Option<Vec<u8>>,
) -> BTreeSet<String> {
    let steps = lanes.iter().flat_map(|lane| lane.steps.iter().chain(&lane.setup));
    let mut texts: Vec<(String, String)> =
        steps.map(|step| (step.dir.clone().unwrap_or_default(), step.run.clone())).collect();
    let may_say = |path: &&String| is_makefile(path) || WITH_COMMANDS.contains(&name_of(path));
    for path in base.0.iter().filter(may_say).filter(|path| !path.contains("node_modules/")).take(MOST) {
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        texts.extend(text(path, read).map(|text| (folder.to_owned(), text)));
    }
    let (mut found, mut checks) = (BTreeSet::new(), BTreeSet::new());
    for (folder, text) in &texts {
        let has_tests = |path: &String, sign: &[&str], read: &mut dyn FnMut(&str) -> Option<Vec<u8>>| {
            read(path).is_some_and(|bytes| signs::has(&String::from_utf8_lossy(&bytes), sign))
        };
        for glob in python_files(text) {
            let files = below(base, folder, &glob).into_iter().filter(|path| path.ends_with(".py"));
            found.extend(files.filter(|path| has_tests(path, signs::OF_PYTHON, read)));
        }
        for command in text.lines().flat_map(|line| commands(folder, line)) {
            checks.extend(command.of_unittest(base));
            found.extend(command.of_prove(base));
            found.extend(command.examples(base).into_iter().filter(|path| has_tests(path, &[">>>"], read)));
        }
    }
    found.extend(checks.into_iter().filter(|path| is_check(path, base, by_name, read)));
    found
}

/// Returns the commands of a line that starts in a folder.
fn commands<'t>(folder: &str, line: &'t str) -> Vec<Command<'t>> {
    let mut folder = inside("", folder).unwrap_or_default();
    let mut found = Vec::new();
    for command in line.split([';', '|', '&']) {
        let words = words(command);
        if let Some(inner) = words.first().filter(|word| **word == "cd").and_then(|_| inside(&folder, words.get(1)?)) {
            folder = inner;
        }
        found.push(Command { folder: folder.clone(), words });
    }
    found
}

impl<'t> Command<'t> {
    /// Returns the words after a program.
    fn behind(&self, is_program: impl Fn(&str) -> bool) -> Option<&[&'t str]> {
        let at = self.words.iter().position(|word| is_program(name_of(word)))?;
        Some(&self.words[at + 1..])
    }

    /// Returns the value of an option among words.
    fn option(words: &[&'t str], names: [&str; 2]) -> Option<&'t str> {
        words.windows(2).find(|pair| names.contains(&pair[0])).map(|pair| pair[1])
    }

    /// Returns the files that `python -m unittest` names or finds by a pattern.
    fn of_unittest(&self, base: &BaseFiles) -> BTreeSet<String> {
        let Some(words) = self.behind(|program| program == "unittest") else { return BTreeSet::new() };
        let plain: Vec<&str> = words.iter().filter(|word| !word.starts_with('-')).copied().collect();
        let pattern = Self::option(words, ["-p", "--pattern"]);
        if plain.first() == Some(&"discover") || pattern.is_some() {
            let start = Self::option(words, ["-s", "--start-directory"]);
            let first = words.get(1).copied().filter(|word| !word.starts_with('-'));
            let folder = inside(&self.folder, start.or(first).unwrap_or("."));
            return folder.map_or(BTreeSet::new(), |folder| below(base, &folder, pattern.unwrap_or("test*.py")));
        }
        let of_module = |name: &str| {
            // The last parts may be a class and a test.
            let parts: Vec<&str> = name.split('.').collect();
            let ends = (1..=parts.len()).rev().map(|end| module_files(&parts[..end].join(".")));
            let files = ends.flatten().filter_map(|file| inside(&self.folder, &file));
            files.into_iter().find(|file| base.has(file))
        };
        plain.into_iter().filter_map(of_module).collect()
    }

    /// Returns the test files in the folders that are arguments of `prove`.
    fn of_prove(&self, base: &BaseFiles) -> BTreeSet<String> {
        let words = self.behind(|program| program == "prove").unwrap_or_default();
        let folders = words.iter().filter_map(|word| inside(&self.folder, word));
        folders.filter(|folder| base.has_folder(folder)).flat_map(|folder| below(base, &folder, "*.t")).collect()
    }

    /// Returns the documents that pytest searches for examples: among the paths that the command
    /// names, or in its folder if it names none.
    fn examples(&self, base: &BaseFiles) -> BTreeSet<String> {
        let Some(words) = self.behind(|word| word == DOCTEST_GLOB) else { return BTreeSet::new() };
        let places = self.words.iter().filter_map(|word| inside(&self.folder, word));
        let mut places: Vec<String> =
            places.filter(|place| !place.is_empty() && (base.has(place) || base.has_folder(place))).collect();
        if places.is_empty() {
            places.push(self.folder.clone());
        }
        let in_place = |path: &String| {
            places.iter().any(|place| place.is_empty() || path == place || path.starts_with(&format!("{place}/")))
        };
        words
            .first()
            .map_or(BTreeSet::new(), |glob| below(base, &self.folder, glob))
            .into_iter()
            .filter(in_place)
            .collect()
    }
}

/// Returns the patterns of pytest's `python_files` in a configuration.
fn python_files(text: &str) -> Vec<String> {
    let key =
        |line: &str| line.trim_start().strip_prefix(PYTHON_FILES)?.trim_start().strip_prefix('=').map(str::to_owned);
    let mut lines = text.lines();
    let Some(mut value) = lines.by_ref().find_map(key) else { return Vec::new() };
    let is_more = |line: &&str| line.starts_with([' ', '\t', ']', '"', '\'']);
    value.extend(lines.take_while(is_more).map(|line| format!(" {line}")));
    let value = value.split(']').next().unwrap_or_default();
    let splits = |c: char| c.is_whitespace() || "[\"',".contains(c);
    value.split(splits).filter(|glob| !glob.is_empty()).map(ToOwned::to_owned).collect()
}

/// Returns the files of the base in a folder that match a pattern.
fn below(base: &BaseFiles, folder: &str, glob: &str) -> BTreeSet<String> {
    let Ok(pattern) = Patterns::files(glob) else { return BTreeSet::new() };
    let start = if folder.is_empty() { String::new() } else { format!("{folder}/") };
    let fits = |path: &&String| path.strip_prefix(&start).is_some_and(|path| pattern.fit(path));
    base.0.iter().filter(fits).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn tests_are_those_that_commands_and_configurations_select() {
        let test = "import unittest\ndef test_a(): pass\n";
        let files = BTreeMap::from([
            ("checks/check_a.py", test),
            ("checks/deep/check_b.py", "def fails(): pass\n"),
            ("checks/data.py", ""),
            ("qa/sums.py", test),
            ("qa/more.py", test),
            ("qa/it/sums_it.py", test),
            ("qa/a.t", ""),
            ("qa/deep/b.t", ""),
            ("other/c.t", ""),
            ("doc/use.rst", ">>> 1\n"),
            ("doc/plain.rst", ""),
            ("more.rst", ">>> 1\n"),
            ("app.py", "print()\n"),
        ]);
        let tried = |step: &str, path: &str, text: &str| {
            let lane = serde_json::json!({ "steps": [{ "run": step }] }).to_string();
            let lanes = [crate::lane::parse("verify", "lanes/verify.yaml", &lane).unwrap()];
            let mut files = files.clone();
            files.insert(path, text);
            let base = BaseFiles::new(files.keys().map(|path| (*path).to_owned()));
            let mut read = |path: &str| files.get(path).map(|text| text.as_bytes().to_vec());
            find(&lanes, &base, &BaseTests::default(), &mut read).into_iter().collect::<Vec<_>>().join(" ")
        };
        let plain = "python3 -m pytest";
        for (step, path, text, wanted) in [
            (
                "python3 -m unittest discover -s checks -p 'check_*.py' -t .",
                "a",
                "",
                "checks/check_a.py checks/deep/check_b.py",
            ),
            (
                "python3 -m unittest discover -p '*.py'",
                "a",
                "",
                "checks/check_a.py checks/deep/check_b.py qa/it/sums_it.py qa/more.py qa/sums.py",
            ),
            ("make check", "Makefile", "check:\n\tcd qa && python3 -m unittest sums.Sums.test_a\n", "qa/sums.py"),
            ("python3 -m unittest -v qa.sums app", "a", "", "qa/sums.py"),
            (
                plain,
                "pytest.ini",
                "[pytest]\npython_files = *_it.py\n  more.py\naddopts = -q\n",
                "qa/it/sums_it.py qa/more.py",
            ),
            (
                plain,
                "qa/pyproject.toml",
                "[tool.pytest.ini_options]\npython_files = [\n  'sum*.py',\n]\n",
                "qa/it/sums_it.py qa/sums.py",
            ),
            ("pytest --doctest-glob='*.rst'", "a", "", "doc/use.rst more.rst"),
            ("pytest --doctest-glob '*.rst' doc", "a", "", "doc/use.rst"),
            (
                "cd doc; pytest",
                "setup.cfg",
                "[tool:pytest]\naddopts = -q --doctest-glob=*.rst\n",
                "doc/use.rst more.rst",
            ),
            ("prove -l qa/", "a", "", "qa/a.t qa/deep/b.t"),
            (plain, "a", "", ""),
        ] {
            assert_eq!(tried(step, path, text), wanted, "{step} {path}");
        }
    }
}
