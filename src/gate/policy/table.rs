//! The policy's table, printed for people.

use super::ecosystems::{self, HEADER, READS, REPORTED, SHADOWED, SHADOWS, TEST_FILES, TESTS};
use super::stand_ins::HEADERS;
use super::{later_runs, load_paths, loaded, manifest, shadows, unused, vendored};

/// The whole table, for people: what steers, which files are tests, and which sections of manifests may not change.
pub fn table() -> String {
    let mut text = String::from(
        "# What a run may not change\n\nPrinted from `src/gate/policy` by a test; to write it anew, run `FLEDGE_BLESS=1 cargo test --test it architecture::`.\n\n\
         Patterns with a `/` first begin at the root, others fit at any depth; a folder means everything in it.\n\n| of | pattern | why |\n|---|---|---|\n",
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
         | Python | `conftest.py` at the root and in every folder of the base; and in a new folder one that does more than give fixtures | {TESTS} |\n\
         | Node | `node_modules` in a folder that has files of the base, where git does not ignore it | {} |\n\
         | all | folders of the base that an installer fills, that have Go's list of what is vendored, or cargo's check sums | {} |\n\
         | Python | a module beside tests that has the name of one of the product; a package, or a compiled library, beside a module of its name | it would be found before the other |\n\
         | Node | a file without an ending beside one with it (not in `bin/`), or one whose ending is tried before that of another | it would be found before the other |\n\
         | all | files that only tests, `conftest.py`, the runners' configuration, `package.json` or the gate's scripts import, and that help tests by their names, or because they load a test \
         framework; and files that assert something and that what is loaded before the tests loads | {} |\n\
         | Make | files that a pattern of `include` fits | {READS} |\n\
         | Make | new files and folders with the name of a target that the gate makes, or of what that needs, unless it is phony or a source that a rule \
         generates; new files that fit a pattern of its rules | it would stand in for the target of make, whose commands would not run |\n\
         | all | new files with the name of a program of the gate, where it would be found | it would stand in for the program of the gate |\n\
         | shell | a new file that a script of the gate, or a step, reads by `.` or `source` where it is there | {READS} |\n\
         | C | new headers {headers} in folders that the compiler is given | {HEADER} |\n\
         | all | a link in the place of a folder of the base that has a manifest | {} |\n| all | a link in the place of a folder below which no module, program or header may be new | {} |\n\
         | Go | a new `vendor/modules.txt` | {} |\n\
         | fledge | a Markdown file whose front matter has one of {} | {} |\n\
         | fledge | a YAML file whose `tasks` name a Markdown file, a pattern or a folder of tasks, and that has no key but {} | {} |\n",
        loaded::LOADED, loaded::LOADS, vendored::NEARER, vendored::VENDORED, loaded::LOADED, vendored::LINKED, shadows::LINKED, vendored::REPLACES,
        globs(&later_runs::KEYS), later_runs::TASK, globs(&later_runs::BATCH_KEYS), later_runs::BATCH,
    ));
    for (language, columns, modules) in load_paths::rows() {
        let ([tests, folders, forms], modules) = (columns.map(|column| column.join(" ")), globs(modules));
        text.push_str(&format!(
            "| {language} | where the base has {tests}, new modules {modules}, with {forms}, in {folders} and in the folders that commands or sources put before those of the language | {SHADOWED} |\n"
        ));
    }
    text.push_str(
        "\nWhat configures one of these tools is only protected where a command of the base names the tool: in a lane, the CI, a script, a test, a manifest or a \
         file of a build tool. Else a change of it is a warning. So is a change of a target of a `Makefile`, or of an environment of `tox.ini`, that no command of the base uses.\n\n| tool | words | files | sections |\n|---|---|---|---|\n",
    );
    for (tool, words, files, sections) in unused::rows() {
        text.push_str(&format!("| {tool} | {} | {} | {} |\n", globs(words), globs(files), globs(sections)));
    }
    text.push_str("\nFiles of the base with these names are its tests, and stay as they are; new ones may be added.\n\n| of | names |\n|---|---|\n");
    for (of, names) in TEST_FILES {
        text.push_str(&format!("| {of} | {} |\n", globs(names)));
    }
    text.push_str(
        "| unittest | `**/test*.py`, where it has a test |\n| unittest, prove, pytest | what a lane or a Makefile names or finds by `-p`, `python_files` or `--doctest-glob`, where it has a test |\n| CMake | sources of targets that `add_test` or a discovery of tests names |\n\
         | all | everything in a folder whose sources are all tests or help tests; in a folder of tests, apart from the product, what only these tests load |\n\
         | Rust | modules behind `#[cfg(test)]`, and paths of `[[test]]` |\n\nChanged data outside of these that a test of the base names is reported.\n",
    );
    text.push_str("\nOf manifests, these sections stay as they are.\n\n| manifest | section | why |\n|---|---|---|\n");
    for (name, section, why) in manifest::rows() {
        text.push_str(&format!("| `{name}` | `{section}` | {why} |\n"));
    }
    text.push_str("\nWhat is also product is only reported.\n\n| file | why |\n|---|---|\n");
    for (glob, why) in REPORTED {
        text.push_str(&format!("| `{glob}` | {why} |\n"));
    }
    text
}
