//! The policy as a table for people.

use super::ecosystems::{self, HEADER, READS, REPORTED, SHADOWED, SHADOWS, TEST_FILES, TESTS};
use super::stand_ins::HEADERS;
use super::{later_runs, load_paths, loaded, manifest, shadows, unused, vendored};

/// Returns the whole table: the paths that steer, the files that are tests, and the sections of
/// manifests that may not change.
pub fn table() -> String {
    let mut text = String::from(
        "# What a run may not change\n\nPrinted from `src/gate/policy` by a test; to regenerate it, run `FLEDGE_BLESS=1 cargo test --test it architecture::`.\n\n\
         A pattern that begins with `/` matches at the root, any other pattern at any depth. A folder stands for everything in it.\n\n| of | pattern | why |\n|---|---|---|\n",
    );
    let globs = |globs: &[&str]| globs.iter().map(|glob| format!("`{glob}`")).collect::<Vec<_>>().join(" ");
    for steers in ecosystems::STEERS {
        text.push_str(&format!("| {} | {} | {} |\n", steers.ecosystem, globs(steers.globs), steers.why));
    }
    let (folders, standard) = (globs(&shadows::FOLDERS[1..]), globs(shadows::STANDARD));
    let (tools, tried, headers) = (globs(SHADOWS), globs(shadows::TRIED), globs(HEADERS));
    text.push_str(&format!(
        "| Python | modules {tools} at the root and in {folders}, unless the base has them; and where the base has Python, there, beside its tests, beside \
         what steps run and where `PYTHONPATH` leads, those of the standard library {standard}, those that it and the runners try to import {tried}, and what its manifests depend on; \
         as source, bytes or a compiled library | {SHADOWED} |\n\
         | Python, Node | files of the base that a command or a configuration of runners names to be loaded | {} |\n\
         | Python | `pytest_plugins` in a new test | {} |\n\
         | Python | `conftest.py` at the root and in every folder of the base; and in a new folder, if it does more than provide fixtures | {TESTS} |\n\
         | Node | `node_modules` in a folder that has files of the base, where git does not ignore it | {} |\n\
         | all | folders of the base that an installer fills, or that have Go's list of vendored modules or cargo's checksums | {} |\n\
         | Python | a module beside tests with the name of a module of the product; a package, or a compiled library, beside a module of its name | it would be found before the other |\n\
         | Node | a file without an extension beside one with an extension (not in `bin/`), or one whose extension is tried before that of another | it would be found before the other |\n\
         | all | files that only tests, `conftest.py`, the runners' configuration, `package.json` or the gate's scripts import, and that help tests, by their names or because they load a test \
         framework; and files that assert something and are loaded by what is loaded before the tests | {} |\n\
         | Make | files that a pattern of `include` matches | {READS} |\n\
         | Make | new files and folders with the name of a target that the gate makes, or of a prerequisite, unless it is phony or a source that a rule \
         generates; new files that match a pattern of its rules | make would treat the path as the built target and skip the commands of the target |\n\
         | all | new files with the name of a program of the gate, where the shell would find them | the gate would run this file instead of the program |\n\
         | shell | a new file that a script of the gate, or a step, reads by `.` or `source` if the file exists | {READS} |\n\
         | C | new headers {headers} in folders that the compiler is given | {HEADER} |\n\
         | all | a link that replaces a folder of the base with a manifest | {} |\n| all | a link that replaces a folder below which no module, program or header may be new | {} |\n\
         | Go | a new `vendor/modules.txt` | {} |\n\
         | fledge | a Markdown file whose front matter has one of {} | {} |\n\
         | fledge | a Markdown file, except `README.md`, that a batch of the base names, in a folder of which half of the documents are tasks (except `CHANGELOG.md`, `CONTRIBUTING.md` and similar names), or in `tasks` in another case | {} |\n\
         | fledge | a YAML file whose `tasks` name a Markdown file, a pattern or a folder of tasks, and that has no key but {} | {} |\n",
        loaded::LOADED, loaded::LOADS, vendored::NEARER, vendored::VENDORED, loaded::LOADED, vendored::LINKED, shadows::LINKED, vendored::REPLACES,
        globs(&later_runs::keys().collect::<Vec<_>>()), later_runs::TASK, later_runs::TASK, globs(&later_runs::BATCH_KEYS), later_runs::BATCH,
    ));
    for (language, columns, modules) in load_paths::rows() {
        let ([tests, folders, forms], modules) = (columns.map(|column| column.join(" ")), globs(modules));
        text.push_str(&format!(
            "| {language} | where the base has {tests}, new modules {modules}, with {forms}, in {folders} and in the folders that commands or sources put before the language's own | {SHADOWED} |\n"
        ));
    }
    text.push_str(
        "\nThe configuration of one of these tools is protected only if a command of the base names the tool: in a lane, the CI, a script, a test, a manifest or a \
         file of a build tool. Otherwise its change is a warning. So is a change of a `Makefile` target, or of a `tox.ini` environment, that no command of the base uses.\n\n| tool | words | files | sections |\n|---|---|---|---|\n",
    );
    for (tool, words, files, sections) in unused::rows() {
        text.push_str(&format!("| {tool} | {} | {} | {} |\n", globs(words), globs(files), globs(sections)));
    }
    text.push_str("\nFiles of the base with these names are its tests and must not change. New ones may be added.\n\n| of | names |\n|---|---|\n");
    for (of, names) in TEST_FILES {
        text.push_str(&format!("| {of} | {} |\n", globs(names)));
    }
    text.push_str(
        "| unittest | `**/test*.py`, where it has a test |\n| unittest, prove, pytest | files that a lane or a Makefile names or finds by `-p`, `python_files` or `--doctest-glob`, where they have a test |\n| CMake | sources of targets that `add_test` or a test discovery names |\n\
         | all | everything in a folder whose sources are all tests or help tests; in a folder of tests apart from the product, the files that only these tests load |\n\
         | Rust | modules behind `#[cfg(test)]`, and paths of `[[test]]` |\n\nOther data is reported if it changes and a test of the base names it.\n",
    );
    text.push_str("\nThese sections of manifests must not change.\n\n| manifest | section | why |\n|---|---|---|\n");
    for (name, section, why) in manifest::rows() {
        text.push_str(&format!("| `{name}` | `{section}` | {why} |\n"));
    }
    text.push_str("\nChanges of these files are only reported, because the files may also be product.\n\n| file | why |\n|---|---|\n");
    for (glob, why) in REPORTED {
        text.push_str(&format!("| `{glob}` | {why} |\n"));
    }
    text
}
