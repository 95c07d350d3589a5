//! Files that the gate's command lines name, and files that those scripts run.

use super::BaseFiles;
use super::calls::{MOST, module_files, run_by, with_plain_sources, without_places};
use super::checks::{
    is_asked_to_check, is_called_check, is_check, is_run_as_check, is_runner, lines_of_tests, tries_others,
};
use super::cmake;
use super::tests_named::BaseTests;
use crate::gate::names::name_of;
use crate::lane::{CanaryTerms, Lane};
use std::collections::{BTreeMap, BTreeSet};

/// Reason for protecting a file that a command names.
pub(super) const NAMED: &str = "a step of the gate names it";
/// Reason for protecting a file in the folder of a canary.
pub(super) const BESIDE: &str = "the gate plants its canary in this folder";
/// Reason for protecting a file that a script of the gate runs.
const RUN: &str = "a script of the gate runs it";
/// Mark of a file that a step runs and that is the work itself: `python3 app.py | grep -q hello`.
/// The file is not protected.
pub(super) const WORK: &str = "a step of the gate runs it, but it is not a check";
/// Mark of a shell library that a check reads and that is in no folder of scripts or tests. It is
/// not protected.
pub(super) const SOURCED: &str = "a check of the gate reads it, and it is in no folder of scripts or tests";
/// The maximum number of `CMakeLists.txt` that are read. The other half of [`MOST`] is left for
/// scripts.
const MOST_LISTS: usize = MOST / 2;
/// The longest script that is read, in bytes.
pub(super) const LONGEST: usize = 256 * 1024;

/// Programs that read the sources in their arguments and run none of them.
#[rustfmt::skip]
const LOOK_AT: &[&str] = &[
    "cc", "gcc", "g++", "c++", "clang", "clang++", "rustc", "javac", "kotlinc", "tsc", "shellcheck", "shfmt", "prettier", "eslint", "ruff", "black",
    "mypy", "flake8", "pylint", "isort", "pyright", "rustfmt", "gofmt", "clang-format", "clang-tidy", "cppcheck", "rubocop", "swiftc", "swiftlint",
    "yamllint", "jq", "yq", "xmllint", "json.tool", "jsonlint", "taplo", "check-jsonschema", "markdownlint", "markdownlint-cli2", "stylelint", "sass", "biome", "oxlint", "bandit", "pydocstyle", "pycodestyle", "goimports", "staticcheck",
    "node --check", "node -c", "go vet", "go fmt", "go build", "ruby -c", "php -l", "bash -n", "sh -n",
];
/// Words that may precede one of these programs and start it.
const STARTERS: &[&[&str]] = &[
    &["env"],
    &["time"],
    &["nice"],
    &["npx"],
    &["bunx"],
    &["command"],
    &["bundle", "exec"],
    &["uv", "run"],
    &["uvx"],
    &["poetry", "run"],
    &["pipenv", "run"],
    &["pdm", "run"],
    &["hatch", "run"],
    &["pnpm", "exec"],
    &["npm", "exec"],
    &["yarn", "exec"],
    &["python", "-m"],
    &["python3", "-m"],
];
/// Extensions of sources. A source in the arguments of one of these programs is the product.
const SOURCES: &[&str] = &[
    "c", "cc", "cpp", "cxx", "h", "hpp", "rs", "java", "kt", "ts", "tsx", "js", "jsx", "mjs", "py", "rb", "sh", "bash",
    "go", "swift", "md", "css", "scss", "sass", "html", "vue", "svelte", "php", "pl", "pm", "lua", "ex", "exs", "dart",
    "jl", "r", "R", "cs", "scala", "groovy", "tcl",
];
/// Extensions of data. A lone data file in the arguments of one of these programs is the product.
const DATA: &[&str] = &["json", "yaml", "yml", "toml", "xml", "svg", "csv"];
/// Programs that run the file in their arguments.
#[rustfmt::skip]
pub(super) const RUNNERS: &[&str] = &[
    "sh", "bash", "dash", "zsh", "ksh", "fish", "source", ".", "exec", "node", "deno", "bun", "tsx", "ts-node", "python", "python3", "ruby", "perl", "php",
    "lua", "luajit", "elixir", "dart", "julia", "Rscript", "groovy", "tclsh",
    "env", "command", "time", "sudo", "@", "-", "npx", "uv", "run", "poetry", "pipenv",
];
/// Extensions of scripts, and folders that contain scripts.
const SCRIPTS: &[&str] = &["sh", "bash", "zsh", "fish", "ksh", "bats", "ps1", "mk"];
const SCRIPT_FOLDERS: &[&str] = &["scripts", "script", "ci", ".ci", "tools", "hack", "bin", "build-tools", "dev"];
/// Programs that read a certain file without an argument. The file is searched for commands, too.
const IMPLIED: &[(&[&str], &[&str])] = &[
    (&["make", "gmake"], &["Makefile", "GNUmakefile", "makefile"]),
    (&["just"], &["justfile", "Justfile", ".justfile"]),
    (&["rake"], &["Rakefile"]),
    (&["npm", "yarn", "pnpm", "bun", "npx"], &["package.json"]),
    (&["tox"], &["tox.ini"]),
    (&["task"], &["Taskfile.yml", "Taskfile.yaml"]),
];
/// Files that container programs read. They are protected only if the gate uses one of these
/// programs.
const CONTAINERS: &[&str] =
    &["Dockerfile", "docker-compose.yml", "docker-compose.yaml", "compose.yml", "compose.yaml", ".dockerignore"];

/// Returns the files that the commands of lanes name or run, each with the reason that protects it.
/// The marks [`WORK`] and [`SOURCED`] say that a file is not protected. `read` returns the content
/// of a file of the base.
pub(super) fn by_lanes(
    lanes: &[Lane],
    base: &BaseFiles,
    tests: &BaseTests,
    read: &mut dyn FnMut(&str) -> Option<Vec<u8>>,
) -> BTreeMap<String, &'static str> {
    let (mut found, mut scripts) = (BTreeMap::new(), BTreeSet::new());
    for lane in lanes {
        if let CanaryTerms::File { file, .. } = &lane.canary {
            found.insert(file.clone(), NAMED);
            let folder = file.rsplit_once('/').map(|(folder, _)| format!("{folder}/"));
            let beside = folder.iter().flat_map(|folder| base.0.iter().filter(move |path| path.starts_with(folder)));
            found.extend(beside.map(|path| (path.clone(), BESIDE)));
        }
        for step in lane.steps.iter().chain(&lane.setup) {
            let line = if step.has_plain_shell() { without_written(&step.run) } else { step.run.clone() };
            let mut words = words(&line);
            let above: Vec<&str> = words.iter().filter_map(|word| word.strip_prefix("../")).collect();
            words.extend(above.iter().map(|word| word.trim_start_matches("../"))); // from a folder that the base may not have
            let folders = folders(&words, step.dir.as_deref(), base);
            let run: BTreeSet<&str> = commands(&line).flat_map(|command| run_in(command)).collect();
            let is_meant = |word: &str| run.contains(word) || !(is_source(word) || is_data(word));
            for (number, word) in words.iter().enumerate().filter(|(_, word)| is_meant(word)) {
                let is_module = number > 0 && words[number - 1] == "-m";
                let names = if is_module { module_files(word).to_vec() } else { vec![(*word).to_owned()] };
                let files = folders.iter().flat_map(|folder| names.iter().filter_map(|name| inside(folder, name)));
                let there: Vec<String> = files.filter(|path| base.has(path) || read(path).is_some()).collect();
                scripts.extend(there.iter().cloned());
                for path in there {
                    // `python manage.py test` runs checks, although the name of the file does not
                    // show it.
                    let asks =
                        words.iter().skip_while(|other| *other != word).skip(1).any(|next| is_asked_to_check(next));
                    let is_code = is_module || is_source(word) || has_interpreter(&path, read);
                    let is_work = is_code && !asks && !is_check(&path, base, tests, read);
                    found.insert(path, if is_work { WORK } else { NAMED });
                }
            }
            let used = |programs: &[&str]| words.iter().any(|word| programs.contains(&name_of(word)));
            let of = |names: &'static [&str]| {
                folders.iter().flat_map(|folder| names.iter().filter_map(|name| inside(folder, name)))
            };
            for (_, names) in IMPLIED.iter().filter(|(programs, _)| used(programs)) {
                scripts.extend(of(names).filter(|path| base.has(path)));
            }
            if used(&["docker", "podman", "docker-compose", "podman-compose"]) {
                found.extend(of(CONTAINERS).map(|path| (path, NAMED)));
            }
        }
    }
    // The commands of CMake's `add_test` are tests, also if the step is only `make check`.
    scripts.extend(base.0.iter().filter(|path| name_of(path) == cmake::LISTS).take(MOST_LISTS).cloned());
    for (path, why) in run_in_turn(scripts, base, tests, read) {
        found.entry(path).or_insert(why);
    }
    found
}

/// Returns the files that these scripts run, each with the reason: shell scripts, libraries that
/// they only read, and sources that are checks. Follows shell scripts further. Among the scripts
/// that those run, and those behind a variable (`"$HERE/a.sh"`), only checks by name or folder are
/// meant: others may be the product.
pub(super) fn run_in_turn(
    scripts: BTreeSet<String>,
    base: &BaseFiles,
    tests: &BaseTests,
    read: &mut dyn FnMut(&str) -> Option<Vec<u8>>,
) -> BTreeMap<String, &'static str> {
    let (mut found, mut seen, mut open) = (BTreeMap::new(), BTreeSet::new(), scripts.clone());
    while let Some(script) = open.pop_first().filter(|_| seen.len() < MOST) {
        let Some(mut whole) = text(&script, read) else { continue };
        if name_of(&script) == cmake::LISTS {
            whole = cmake::commands_of_tests(&whole);
        }
        let text = with_plain_sources(&whole);
        seen.insert(script.clone());
        let plain = run_by(&script, &text, &mut |path| base.has(path), is_script);
        let placed = run_by(&script, &without_places(&whole), &mut |path| base.has(path), is_script);
        let placed = placed.into_iter().filter(|path| !plain.contains(path) && !is_program_of_package(path));
        let named = plain.iter().map(|path| (path, scripts.contains(&script)));
        for (path, may_be_any) in named.chain(placed.collect::<Vec<_>>().iter().map(|path| (path, false))) {
            let is_library = || is_only_read(path, &text) && !is_of_checks(path, tests);
            let why = if is_library() { SOURCED } else { RUN };
            if why == RUN && !may_be_any && !is_of_checks(path, tests) {
                continue;
            }
            open.extend(
                Some(path.clone()).filter(|path| why == RUN && has_script_extension(path) && !seen.contains(path)),
            );
            found.entry(path.clone()).or_insert(why);
        }
        for path in sources_run_as_checks(&script, &text, base, tests, read) {
            found.entry(path).or_insert(RUN);
        }
    }
    found
}

/// Returns the libraries of the work that shell scripts among the tests of a base read.
pub(super) fn sourced_by_tests(
    base: &BaseFiles,
    tests: &BaseTests,
    read: &mut dyn FnMut(&str) -> Option<Vec<u8>>,
) -> BTreeSet<String> {
    let is_shell = |path: &&String| has_script_extension(path) || path.ends_with(".t");
    let mut found = BTreeSet::new();
    for test in tests.of_base(base).filter(is_shell).take(MOST) {
        let Some(script) = text(test, read).map(|text| with_plain_sources(&text)) else { continue };
        let run = run_by(test, &script, &mut |path| base.has(path), is_script);
        found.extend(run.into_iter().filter(|path| is_only_read(path, &script) && !is_of_checks(path, tests)));
    }
    found
}

/// Returns the checks among the sources that a script, or a test script of `package.json`, runs.
fn sources_run_as_checks(
    script: &str,
    text: &str,
    base: &BaseFiles,
    tests: &BaseTests,
    read: &mut dyn FnMut(&str) -> Option<Vec<u8>>,
) -> Vec<String> {
    let is_manifest = name_of(script) == "package.json";
    let commands = if is_manifest { scripts_of_tests(text) } else { text.to_owned() };
    let is_meant = |path: &str| is_source(path) && !is_script(path);
    let asked = if is_manifest { String::new() } else { lines_of_tests(script, text) };
    let asked = run_by(script, &asked, &mut |path| base.has(path), is_meant);
    let mut run = run_by(script, &commands, &mut |path| base.has(path), is_meant);
    run.retain(|path| {
        is_run_as_check(path, base, tests, read)
            || (is_manifest && is_runner(path, text, base, tests, read))
            || (asked.contains(path) && tries_others(path, base, tests, read))
    });
    run
}

/// Returns the commands of the scripts in a `package.json` whose names ask for a check, and of the
/// `pre` and `post` scripts around these.
fn scripts_of_tests(text: &str) -> String {
    let manifest: serde_json::Value = serde_json::from_str(text).unwrap_or_default();
    let scripts = manifest.get("scripts").and_then(serde_json::Value::as_object).into_iter().flatten();
    let plain = |name: &str| name.trim_start_matches("pre").trim_start_matches("post").to_owned();
    let of_tests = scripts.filter(|(name, _)| is_asked_to_check(&plain(name)));
    of_tests.filter_map(|(_, command)| command.as_str()).collect::<Vec<_>>().join("\n")
}

/// Returns whether a script names a file only to read its functions, by `.` or `source`.
fn is_only_read(path: &str, script: &str) -> bool {
    let named = script.split(['\n', ';', '|', '&', '(', ')', '{', '}']).map(words);
    let mut named = named.filter(|command| command.iter().any(|word| name_of(word) == name_of(path))).peekable();
    let reads = |command: Vec<&str>| command.iter().any(|word| matches!(*word, "." | "source"));
    named.peek().is_some() && named.all(reads)
}

/// Returns whether a file is in `bin` without the extension of a script. The programs of a package
/// are there, too.
pub(super) fn is_program_of_package(path: &str) -> bool {
    path.split('/').rev().nth(1) == Some("bin") && !has_script_extension(path)
}

/// Returns whether a shell script is a check by its name or its folder.
pub(super) fn is_of_checks(path: &str, tests: &BaseTests) -> bool {
    let in_folder = path.split('/').rev().skip(1).any(|folder| SCRIPT_FOLDERS.contains(&folder));
    in_folder || tests.fit(path) || is_called_check(path)
}

/// Returns the line without the names of files that its commands only write: the words after a
/// shell's `>`, outside of quotes. Returns a line with a here-document unchanged.
fn without_written(line: &str) -> String {
    if line.contains("<<") {
        return line.to_owned();
    }
    let (mut kept, mut rest, mut quote) = (String::new(), line, None);
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        match (quote, c) {
            (_, '\\') if quote != Some('\'') => {
                let next = rest.chars().next();
                kept.extend([c].into_iter().chain(next));
                rest = &rest[next.map_or(0, char::len_utf8)..];
                continue;
            }
            (Some(open), _) if open == c => quote = None,
            (None, '\'' | '"') => quote = Some(c),
            (None, '>') if !kept.ends_with('<') => {
                let target = rest.trim_start_matches(['>', '|', '&']).trim_start_matches([' ', '\t']);
                let end = target.find(|c: char| c.is_whitespace() || ";|&()<>".contains(c)).unwrap_or(target.len());
                rest = &target[end..];
                kept.push(' ');
                continue;
            }
            (Some(_) | None, _) => {}
        }
        kept.push(c);
    }
    kept
}

/// Splits a line into its commands, as far as that is possible without a shell.
fn commands(line: &str) -> impl Iterator<Item = &str> {
    line.split(['\n', ';', '|', '&']).filter(|command| !command.trim().is_empty())
}

/// Returns whether a file without an extension is a script of an interpreter that is not a shell.
fn has_interpreter(path: &str, read: &mut dyn FnMut(&str) -> Option<Vec<u8>>) -> bool {
    let first = |text: String| text.lines().next().map(str::to_owned).unwrap_or_default();
    let is_plain = !name_of(path).contains('.');
    is_plain
        && text(path, read).map(first).is_some_and(|line| line.starts_with("#!") && !line.trim_end().ends_with("sh"))
}

/// Returns the words of a command, without the sources and the one data file that it only reads.
fn run_in(command: &str) -> Vec<&str> {
    let (looks, all) = (looks(command), words(command));
    // A file after an option configures the program.
    let is_given = |number: usize| is_data(all[number]) && (number == 0 || !all[number - 1].starts_with('-'));
    let given: Vec<usize> = (0..all.len()).filter(|number| is_given(*number)).collect();
    let is_looked_at = |number: usize, word: &str| looks && (is_source(word) || given == [number]);
    let mut run: Vec<&str> =
        all.iter().enumerate().filter(|(number, word)| !is_looked_at(*number, word)).map(|(_, word)| *word).collect();
    let above: Vec<&str> = run.iter().filter_map(|word| word.strip_prefix("../")).collect();
    run.extend(above.iter().map(|word| word.trim_start_matches("../")));
    run
}

/// Returns whether a command only reads the sources in its arguments. The program decides, after
/// variables and starters.
fn looks(command: &str) -> bool {
    let mut rest: Vec<&str> = command.split_whitespace().collect();
    loop {
        let is_variable = |word: &&str| word.split_once('=').is_some_and(|(name, _)| is_name(name));
        let variables = rest.iter().take_while(|word| is_variable(word)).count();
        rest.drain(..variables);
        let starts = |starter: &&&[&str]| {
            rest.len() > starter.len() && starter.iter().zip(&rest).all(|(own, word)| *own == name_of(word))
        };
        let Some(starter) = STARTERS.iter().find(starts) else { break };
        rest.drain(..starter.len());
        let flags = rest.iter().take_while(|word| word.starts_with('-')).count();
        rest.drain(..flags);
    }
    let Some(program) = rest.first().map(|program| name_of(program)) else { return false };
    let with_next = rest.get(1).map(|next| format!("{program} {next}"));
    LOOK_AT.contains(&program) || with_next.is_some_and(|both| LOOK_AT.contains(&both.as_str()))
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Returns the text of a file of the base, unless it is longer than [`LONGEST`].
pub(super) fn text(path: &str, read: &mut dyn FnMut(&str) -> Option<Vec<u8>>) -> Option<String> {
    let bytes = read(path).filter(|bytes| bytes.len() <= LONGEST)?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

pub(super) fn is_source(word: &str) -> bool {
    word.rsplit_once('.').is_some_and(|(_, ending)| SOURCES.contains(&ending))
}

fn is_data(word: &str) -> bool {
    word.rsplit_once('.').is_some_and(|(_, ending)| DATA.contains(&ending))
}

/// Returns whether the extension of a path is one of [`SCRIPTS`].
pub(super) fn has_script_extension(path: &str) -> bool {
    path.rsplit_once('.').is_some_and(|(_, ending)| SCRIPTS.contains(&ending))
}

pub(super) fn is_script(path: &str) -> bool {
    has_script_extension(path) || path.split('/').rev().skip(1).any(|folder| SCRIPT_FOLDERS.contains(&folder))
}

pub(super) fn words(line: &str) -> Vec<&str> {
    let splits = |c: char| c.is_whitespace() || ";|&()<>\"'`=,".contains(c);
    line.split(splits).filter(|word| !word.is_empty()).collect()
}

/// Returns the root, the step's folder, and each folder that the command names, relative to these.
fn folders(words: &[&str], dir: Option<&str>, base: &BaseFiles) -> Vec<String> {
    let mut folders = vec![String::new()];
    folders.extend(dir.and_then(|dir| inside("", dir)).filter(|dir| !dir.is_empty()));
    for word in words {
        for start in folders.clone() {
            let folder = inside(&start, word).filter(|folder| base.has_folder(folder));
            folders.extend(folder.filter(|folder| !folders.contains(folder)));
        }
    }
    folders
}

/// Resolves a path relative to a folder, without `.` and `..`. Returns `None` if the path is
/// absolute or leads outside.
pub(super) fn inside(folder: &str, path: &str) -> Option<String> {
    if path.starts_with('/') {
        return None;
    }
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_command_only_looks_at_is_not_run_by_it_whatever_starts_it() {
        let looked = [
            "gcc -c src/a.c",
            "CC=gcc MODE=x gcc -c src/a.c",
            "npx --yes eslint src/a.js",
            "poetry run ruff check src/a.py",
            "uv run mypy src/a.py",
            "time -p python3 -m mypy src/a.py",
            "env A=1 bundle exec rubocop a.rb",
            "node --check src/a.js",
            "go vet ./a.go",
        ];
        for (command, is_looked_at) in [
            ("jq -e '.a == 1' data/rules.json", true),
            ("python3 -m json.tool data/rules.json", true),
            ("yamllint data/rules.json", true),
            ("ruff --config=data/rules.json src/a.py", false),
            ("jq -s '.[0] == .[1]' data/rules.json want.json", false),
            ("node src/a.js data/rules.json", false),
        ] {
            assert_eq!(!run_in(command).contains(&"data/rules.json"), is_looked_at, "{command}");
        }
        for command in looked {
            assert!(!run_in(command).iter().any(|word| is_source(word)), "{command}: {:?}", run_in(command));
        }
        for command in
            ["python3 src/a.py", "node src/a.js", "sh a.sh", "python3 -m a.py", "npx tsx a.ts", "env sh a.sh"]
        {
            assert!(run_in(command).iter().any(|word| is_source(word)), "{command}");
        }
        let line = "mkdir -p b && gcc -c src/a.c; python3 src/a.py";
        let run: Vec<&str> = commands(line).flat_map(run_in).collect();
        assert!(run.contains(&"src/a.py") && !run.contains(&"src/a.c"), "{run:?}");
    }

    #[test]
    fn what_a_line_only_writes_is_not_what_it_is_judged_by() {
        for (line, left) in [
            ("sum a b > sum.txt", "sum a b  "),
            ("sum >>sum.txt 2>&1 && cat sum.txt", "sum   2  && cat sum.txt"),
            ("a 2> err.log | b >| x <in.txt", "a 2  | b   <in.txt"),
            ("grep 'a > b.txt' in.txt", "grep 'a > b.txt' in.txt"),
            ("grep \"\\\" > b.txt\" in.txt", "grep \"\\\" > b.txt\" in.txt"),
            ("cat <> both.txt", "cat <> both.txt"),
            ("tee >(sort) ", "tee  (sort) "),
            ("cat <<END > x\nEND", "cat <<END > x\nEND"),
            ("echo \\> b.txt", "echo \\> b.txt"),
        ] {
            assert_eq!(without_written(line), left, "{line}");
        }
    }
}
