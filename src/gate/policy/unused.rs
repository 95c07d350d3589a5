//! Tools that no command of the base names. The configuration of an unused tool steers no check, so
//! its change is a note. Pure.
//!
//! When in doubt, a tool counts as used: it is enough that a file that may hold commands contains
//! its name as a word.

use super::BaseFiles;
use super::ci;
use super::ecosystems::expanded;
use super::hook_managers;
use super::named::{LONGEST, is_script, is_source};
use super::reached::ReachedFiles;
use super::tests_named;
use crate::gate::names::name_of;
use crate::lane::Lane;
use crate::pattern::Patterns;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::LazyLock;

/// Reason why a change of the tool's configuration is not a finding.
pub(super) const WHY: &str = "which no command of the base runs";

/// A tool and its configuration.
struct Tool {
    name: &'static str,
    /// Words, one of which is in every command that runs the tool. A command is split at spaces and
    /// at signs.
    words: &'static [&'static str],
    /// Globs of the table of protected files.
    globs: &'static [&'static str],
    /// Keys of sections of manifests.
    sections: &'static [&'static str],
}

const fn tool(
    name: &'static str,
    words: &'static [&'static str],
    globs: &'static [&'static str],
    sections: &'static [&'static str],
) -> Tool {
    Tool { name, words, globs, sections }
}

/// Programs that run many tools without naming them.
const RUN_MANY: &[&str] = &["trunk", "megalinter", "linter", "qlty", "prospector", "pylama"];

/// The tools that run only if a command names them.
#[rustfmt::skip]
const TOOLS: &[Tool] = &[
    tool("task", &["task"], &["Taskfile.{yml,yaml}"], &[]),
    tool("just", &["just"], &["{.,}[jJ]ustfile", "*.just"], &[]),
    tool("make", &["make", "gmake", "MAKE"], &["Makefile", "GNUmakefile", "makefile", "Makefile.am", "*.mk"], &[]),
    tool("cargo make", &["make", "makers"], &["Makefile.toml"], &[]),
    tool("earthly", &["earthly"], &["Earthfile"], &[]),
    tool("cucumber", &["cucumber", "cucumber-js"], &["cucumber.{js,cjs,mjs,json,yml,yaml}"], &[]),
    tool("behave", &["behave"], &["behave.ini", ".behaverc"], &["tool.behave"]),
    tool("ruff", &["ruff", "uv", "hatch"], &["{.,}ruff.toml"], &["tool.ruff"]),
    tool("mypy", &["mypy", "dmypy", "stubtest"], &["{.,}mypy.ini"], &["tool.mypy", "mypy"]),
    tool("flake8", &["flake8", "pflake8"], &[".flake8"], &["tool.flake8", "flake8"]),
    tool("pylint", &["pylint"], &["{.,}pylintrc{.toml,}"], &["tool.pylint", "pylint"]),
    tool("pyright", &["pyright", "basedpyright"], &["pyrightconfig.json"], &["tool.pyright", "tool.basedpyright"]),
    tool("isort", &["isort"], &[".isort.cfg"], &["tool.isort", "isort"]),
    tool("black", &["black"], &[], &["tool.black"]),
    tool("bandit", &["bandit"], &[".bandit"], &["tool.bandit"]),
    tool("yapf", &["yapf"], &[".style.yapf"], &[]),
    tool("rustfmt", &["fmt", "rustfmt"], &["{.,}rustfmt.toml"], &[]),
    tool("clippy", &["clippy"], &["{.,}clippy.toml"], &[]),
    tool("cargo deny", &["deny"], &["{.,}deny.toml"], &[]),
    tool("nextest", &["nextest"], &["**/.config/nextest.toml"], &[]),
    tool("tarpaulin", &["tarpaulin"], &["{.,}tarpaulin.toml"], &[]),
    tool("a build with this profile", &["release", "profile", "bench", "-r"], &[], &["profile.release", "profile.bench"]),
    tool("eslint", &["eslint", "xo", "standard", "next", "ng", "react", "vue"],
        &["eslint.config.*", ".eslintrc{.*,}", ".eslintignore"], &["eslintConfig", "eslintIgnore"]),
    // Jest's configuration files stay protected: they are code.
    tool("jest", &["jest", "react", "craco", "expo", "vue", "ng", "nx", "turbo", "lerna", "tsdx", "razzle", "umi", "gatsby", "preact", "heft", "aegir", "kcd", "wp"],
        &[], &["jest"]),
    tool("prettier", &["prettier", "xo"], &["{.,}prettierrc{.*,}", "prettier.config.*", ".prettierignore"], &["prettier"]),
    tool("biome", &["biome", "ultracite"], &["biome.{json,jsonc}"], &[]),
    tool("stylelint", &["stylelint"], &[".stylelintrc{.*,}", "stylelint.config.*"], &["stylelint"]),
    tool("oxlint", &["oxlint"], &["{.,}oxlintrc.json"], &[]),
    tool("tslint", &["tslint"], &["tslint.json"], &[]),
    tool("rubocop", &["rubocop", "standardrb", "rake", "guard"], &[".rubocop{*,}.yml", ".standard.yml"], &[]),
    tool("golangci-lint", &["golangci"], &["{.,}golangci.*"], &[]),
    tool("clang-format and clang-tidy", &["clang"], &[".clang-{tidy,format}"], &[]),
    tool("shellcheck", &["shellcheck"], &[".shellcheckrc"], &[]),
];

/// Files that may hold commands, besides tests, scripts and files that lanes name.
const WITH_COMMANDS: &[&str] = &[
    "lanes/**",
    "**/package.json",
    "**/{pyproject.toml,setup.cfg,setup.py,tox.ini,tox.toml,noxfile.py,hatch.toml,conftest.py,tasks.py,dodo.py}",
    "**/{.,}pytest.{ini,toml}",
    "**/.cargo/config{.toml,}",
    "**/{Cargo.toml,build.rs}",
    "**/xtask/**",
    "**/{Makefile,GNUmakefile,makefile,Makefile.am,Makefile.toml,Earthfile,Rakefile,magefile.go,BUILD,BUILD.bazel,CMakeLists.txt}",
    "**/{magefiles,buildSrc}/**",
    "**/*.{mk,just,rake,gradle,kts,cmake,bzl}",
    "**/{.,}[jJ]ustfile",
    "**/Taskfile.{yml,yaml}",
    "**/{pom.xml,composer.json,Gemfile,mix.exs,deno.json,deno.jsonc,turbo.json,nx.json,lerna.json,meson.build,configure.ac}",
    "**/{Dockerfile,compose.yml,compose.yaml,docker-compose.yml,docker-compose.yaml}",
    "**/{.,}lintstagedrc{.*,}",
    "**/lint-staged.config.*",
    "**/*.config.{js,cjs,mjs,ts,mts,cts,json}",
    "**/{go.mod,requirements*.txt,Pipfile,gradle.properties,project.json,wireit.json}",
    "**/.{npmrc,yarnrc.yml,rspec,taprc,mocharc.*,nycrc,nycrc.json}",
    "**/{requirements,.mvn,.config,.trunk}/**",
    "**/.{mega-linter,megalinter,qlty}.{yml,yaml,toml}",
];
/// Lock files. The packages that a runner depends on appear only in these.
const LOCKS: &[&str] = &[
    "package-lock.json",
    "npm-shrinkwrap.json",
    "yarn.lock",
    "pnpm-lock.yaml",
    "bun.lock",
    "deno.lock",
    "uv.lock",
    "poetry.lock",
    "pdm.lock",
    "pylock.toml",
    "Pipfile.lock",
    "Gemfile.lock",
    "composer.lock",
];
/// The largest lock file that is searched, in bytes.
const LARGEST_LOCK: usize = 8 * 1024 * 1024;
/// The maximum number of files that are searched, and the maximum number of bytes. In a larger
/// base, every tool counts as used.
pub(super) const MOST: usize = 2000;
pub(super) const MOST_BYTES: usize = 16 * 1024 * 1024;

/// Returns the files of the base that may hold commands, without files that the lanes' commands
/// reach. Returns `None` if the reached files are not all known.
pub(super) fn with_commands<'b>(base: &'b BaseFiles, reached: &ReachedFiles) -> Option<BTreeSet<&'b String>> {
    static PATTERNS: LazyLock<Option<Patterns>> = LazyLock::new(|| {
        let with_commands = WITH_COMMANDS.iter().chain(ci::WITH_COMMANDS).chain(hook_managers::OF_HOOKS);
        Patterns::trees(with_commands.copied()).ok()
    });
    let with_commands = PATTERNS.as_ref().filter(|_| !reached.is_cut)?;
    let is_test = |path: &String| tests_named::is_named(path) && (is_source(path) || !is_data(path));
    let may_run = |path: &&String| is_script(path) || with_commands.fit(path) || is_test(path);
    Some(base.0.iter().filter(may_run).filter(|path| !reached.texts.contains_key(*path)).collect())
}

/// Returns the names of the tools that no command of the base or its lanes names. `reached` are the
/// files that the lanes' commands reach.
pub(super) fn tools(
    lanes: &[Lane],
    base: &BaseFiles,
    reached: &ReachedFiles,
    read: &mut dyn FnMut(&str) -> Option<Vec<u8>>,
) -> BTreeSet<String> {
    let Some(files) = with_commands(base, reached) else { return BTreeSet::new() };
    let reached = &reached.texts;
    let mut found: Vec<&str> = reached.iter().flat_map(|(path, text)| used(text, path)).collect();
    for step in lanes.iter().flat_map(|lane| lane.steps.iter().chain(&lane.setup)) {
        found.extend(used(&step.run, ""));
    }
    let mut left = MOST_BYTES;
    for path in &files {
        let Some(bytes) = read(path) else { continue };
        left = left.saturating_sub(bytes.len());
        if files.len() > MOST || bytes.len() > LONGEST || left == 0 {
            return BTreeSet::new();
        }
        found.extend(used(&String::from_utf8_lossy(&bytes), path));
    }
    for path in base.0.iter().filter(|path| LOCKS.contains(&name_of(path))) {
        let Some(bytes) = read(path) else { continue };
        if bytes.len() > LARGEST_LOCK {
            return BTreeSet::new();
        }
        found.extend(locked(&String::from_utf8_lossy(&bytes)));
    }
    let is_unused = |tool: &&Tool| !found.contains(&tool.name);
    TOOLS.iter().filter(is_unused).map(|tool| tool.name.to_owned()).collect()
}

/// Returns whether a file in a test folder is data, by its extension.
fn is_data(path: &str) -> bool {
    [".json", ".txt", ".csv", ".xml", ".snap", ".out", ".in", ".svg", ".lock"].iter().any(|end| path.ends_with(end))
}

/// Returns the tools that a text names. A file or section that configures a tool does not count as
/// a use of this tool, since only the tool reads it.
fn used(text: &str, path: &str) -> Vec<&'static str> {
    static WORDS: LazyLock<HashSet<&str>> =
        LazyLock::new(|| TOOLS.iter().flat_map(|tool| tool.words).chain(RUN_MANY).copied().collect());
    let words_of = |text| {
        let parts = str::split(text, |c: char| !c.is_ascii_alphanumeric()).chain(text.split_whitespace());
        parts.filter(|word| WORDS.contains(word)).collect::<HashSet<&str>>()
    };
    let words = words_of(text);
    let is_named =
        |tool: &Tool, words: &HashSet<&str>| tool.words.iter().chain(RUN_MANY).any(|word| words.contains(word));
    let is_named_beside_its_sections = |tool: &Tool| {
        let lines = text.lines().filter(|line| !begins_section(tool, line));
        is_named(tool, &lines.flat_map(words_of).collect())
    };
    let runs = |tool: &&Tool| {
        is_named(tool, &words) && (path.is_empty() || (!configures(tool, path) && is_named_beside_its_sections(tool)))
    };
    TOOLS.iter().filter(runs).map(|tool| tool.name).collect()
}

/// Returns whether a line is the head of a section of the tool, such as `[tool.ruff.lint]` or
/// `"jest": {`.
fn begins_section(tool: &Tool, line: &str) -> bool {
    let line = line.trim();
    let is_head = |section: &&str| {
        let rest = line.trim_start_matches('[').strip_prefix(*section).filter(|_| line.starts_with('['));
        let key = line.strip_prefix('"').and_then(|line| line.strip_prefix(*section)?.strip_prefix('"'));
        rest.is_some_and(|rest| rest.starts_with([']', '.', '-']) && rest.ends_with(']'))
            || key.is_some_and(|rest| rest.trim_start_matches([':', ' ']) == "{")
    };
    tool.sections.iter().any(is_head)
}

/// Returns the tools that a lock file lists as packages, by their whole names.
fn locked(text: &str) -> Vec<&'static str> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let names: HashSet<&str> = text.split(|c: char| !is_part(c)).collect();
    let is_locked = |word: &&str| names.contains(*word) || names.contains(format!("{word}-format").as_str());
    TOOLS.iter().filter(|tool| tool.words.iter().chain(RUN_MANY).any(&is_locked)).map(|tool| tool.name).collect()
}

/// Returns whether a file configures a tool.
fn configures(tool: &Tool, path: &str) -> bool {
    static PATTERNS: LazyLock<Vec<(&str, Patterns)>> = LazyLock::new(|| {
        let of = |tool: &Tool| Some((tool.name, Patterns::trees(tool.globs.iter().copied()).ok()?));
        TOOLS.iter().filter_map(of).collect()
    });
    PATTERNS.iter().any(|(name, patterns)| *name == tool.name && patterns.fit(path))
}

/// Returns the tools for the printed table: name, words, files and sections.
pub(super) fn rows()
-> impl Iterator<Item = (&'static str, &'static [&'static str], &'static [&'static str], &'static [&'static str])> {
    TOOLS.iter().map(|tool| (tool.name, tool.words, tool.globs, tool.sections))
}

/// Returns the tool among these that a file configures.
pub(super) fn of_file<'t>(tools: &'t BTreeSet<String>, path: &str) -> Option<&'t str> {
    let fits = |tool: &&Tool| configures(tool, path);
    TOOLS.iter().filter(fits).find_map(|tool| tools.get(tool.name)).map(String::as_str)
}

/// Returns the tool among these that a section configures. `finding` begins with the section:
/// `[tool.ruff] added: …`.
pub(super) fn of_section<'t>(tools: &'t BTreeSet<String>, finding: &str) -> Option<&'t str> {
    let key = finding.strip_prefix('[')?.split_once(']')?.0;
    let has = |tool: &&Tool| {
        let is_in =
            |section: &&str| key.strip_prefix(section).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'));
        tool.sections.iter().any(is_in)
    };
    TOOLS.iter().filter(has).find_map(|tool| tools.get(tool.name)).map(String::as_str)
}

/// Returns whether a pattern of the table only protects the configuration of one of these tools.
pub(super) fn is_of(tools: &BTreeSet<String>, pattern: &str) -> bool {
    static OWNERS: LazyLock<HashMap<String, &str>> = LazyLock::new(|| {
        let globs = TOOLS.iter().rev().flat_map(|tool| tool.globs.iter().map(move |glob| (tool.name, glob)));
        globs.flat_map(|(name, glob)| expanded(glob).into_iter().map(move |pattern| (pattern, name))).collect()
    });
    OWNERS.get(pattern).is_some_and(|tool| tools.contains(*tool))
}

#[cfg(test)]
mod tests {
    use super::super::ecosystems::STEERS;
    use super::super::{PathChange, PathChangeKind, Policy, TreeSide, manifest};
    use super::*;
    use std::collections::BTreeMap;

    /// Returns the policy of a base with these files and one step.
    fn policy(step: &str, files: &[(&str, &str)]) -> Policy {
        let lane = serde_json::json!({ "steps": [{ "run": step }] }).to_string();
        let lanes = [crate::lane::parse("verify", "lanes/verify.yaml", &lane).unwrap()];
        let files: BTreeMap<String, Vec<u8>> =
            files.iter().map(|(path, text)| ((*path).to_owned(), text.as_bytes().to_vec())).collect();
        Policy::freeze(files.keys().cloned(), &lanes, &[], &[], &mut |path| files.get(path).cloned()).unwrap()
    }

    #[test]
    fn each_glob_and_section_of_a_tool_is_one_of_the_tables() {
        let globs: Vec<&str> = STEERS.iter().flat_map(|steers| steers.globs).copied().collect();
        let sections: Vec<String> = manifest::rows().map(|(_, section, _)| section).collect();
        for tool in TOOLS {
            for glob in tool.globs {
                assert!(globs.contains(glob), "{glob}");
            }
            for section in tool.sections {
                let has =
                    |row: &String| row == section || row.strip_suffix('*').is_some_and(|row| section.starts_with(row));
                assert!(sections.iter().any(has), "{section}");
            }
        }
    }

    #[test]
    fn a_file_is_protected_where_a_command_of_the_base_names_its_tool() {
        let plain = "python3 -m pytest tests";
        for (path, uses) in [
            ("Makefile", ("tests/test_make.py", "subprocess.run(['make', 'all'])")),
            ("Taskfile.yml", (".github/workflows/ci.yml", "on: push\njobs: { a: { steps: [{ run: task lint }] } }")),
            ("justfile", ("scripts/all.sh", "just check")),
            (".ruff.toml", ("pyproject.toml", "[dependency-groups]\ndev = ['ruff>=0.5']")),
            (".prettierrc", ("web/package.json", r#"{"scripts": {"test": "prettier"}}"#)),
            (".eslintrc.json", ("package-lock.json", r#"{"packages": {"node_modules/eslint": {"version": "9.0.0"}}}"#)),
            ("ruff.toml", ("uv.lock", "[[package]]\nname = 'ruff'\n")),
            ("mypy.ini", ("requirements-dev.txt", "mypy==1.8\n")),
            ("Makefile", ("turbo.json", r#"{"tasks": {"lint": "make lint"}}"#)),
            ("cucumber.js", ("package.json", r#"{"scripts": {"test": "cucumber-js"}}"#)),
            (".flake8", ("pytest.ini", "[pytest]\naddopts = --flake8\n")),
            (".eslintrc.json", ("xtask/src/main.rs", "Command::new(\"eslint\")")),
            (".config/nextest.toml", (".cargo/config.toml", "[alias]\nt = 'nextest run'")),
            ("mypy.ini", (".pre-commit-config.yaml", "repos: [{ repo: x/mirrors-mypy }]")),
            (".flake8", (".github/workflows/a.yml", "uses: oxsecurity/megalinter@v8")),
        ] {
            let change = [PathChange { path: path.into(), kind: PathChangeKind::Added }];
            let free = policy(plain, &[("app.py", "make task just ruff jest eslint nextest mypy trunk cucumber")]);
            assert_eq!(free.rule(path), None, "{path}");
            let notes = free.unused_notes(&change, |_, _| None);
            assert!(notes[0].starts_with(&format!("{path} added: it configures ")), "{notes:?}");
            let kept = policy(plain, &[uses]);
            assert!(kept.rule(path).is_some(), "{path}");
            assert_eq!(kept.unused_notes(&change, |_, _| None), [""; 0]);
        }
        assert!(policy("make check", &[]).rule("GNUmakefile").is_some());
        assert!(policy(plain, &[]).rule("jest.config.js").is_some(), "many wrappers start Jest");
        let free = policy(plain, &[("package-lock.json", r#"{"packages": {"node_modules/make-dir": {}}}"#)]);
        assert!(free.rule("Makefile").is_none(), "a package of a longer name");
        assert!(policy(plain, &[("Makefile", "x:\n\tmake y\n")]).rule("Makefile").is_none(), "only make reads it");
    }

    #[test]
    fn a_file_is_protected_where_what_a_command_reaches_names_its_tool() {
        let runs = "import subprocess\nsubprocess.run(['ruff', 'check'])\n";
        let script = r#"{"scripts": {"verify": "node lib/verify.mjs"}, "main": "lib/server.js"}"#;
        let verify = "import { execSync } from 'node:child_process';\nexecSync('eslint lib');\n";
        for (step, files, path) in [
            ("python3 -m quality.all", &[("quality/all.py", runs)][..], "ruff.toml"),
            ("python3 quality", &[("quality/__main__.py", runs)], "ruff.toml"),
            ("npm run verify", &[("package.json", script), ("lib/verify.mjs", verify)], ".eslintrc.json"),
            ("go run ./internal/all", &[("internal/all/main.go", "exec.Command(\"golangci-lint\")")], ".golangci.yml"),
            ("cargo run -q -p all", &[("crates/all/src/main.rs", "Command::new(\"shellcheck\")")], ".shellcheckrc"),
            (
                "./verify all",
                &[("verify", "exec python3 quality/all.py \"$@\"\n"), ("quality/all.py", runs)],
                "ruff.toml",
            ),
        ] {
            assert!(policy(step, files).rule(path).is_some(), "{step}");
            assert!(
                policy("python3 -m pytest", &files[files.len() - 1..]).rule(path).is_none(),
                "{step}: nothing runs it"
            );
        }
        let product =
            [("package.json", script), ("lib/verify.mjs", ""), ("lib/server.js", "run(function (req, res, next) {})")];
        assert!(policy("npm run verify", &product).rule(".eslintrc.json").is_none(), "no command runs the product");
    }

    #[test]
    fn a_file_is_protected_where_commands_reach_more_than_is_searched() {
        let names: Vec<String> = (100..610).map(|number| format!("quality/all_{number}.py")).collect();
        let all: String = names.iter().map(|name| format!("python3 {name}\n")).collect();
        let mut files: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "print()\n")).collect();
        files.push(("all.sh", &all));
        assert!(policy("sh all.sh", &files).rule("ruff.toml").is_some(), "the last one may run it");
        files.truncate(20);
        files.push(("all.sh", &all));
        assert!(policy("sh all.sh", &files).rule("ruff.toml").is_none(), "no file names it");
    }

    const JEST: &str = r#""jest": { "testEnvironment": "node" },"#;

    #[test]
    fn a_section_is_protected_where_a_command_of_the_base_names_its_tool() {
        let tried = |step: &str, path: &str, was: &str, more: &str| {
            let policy = policy(step, &[(path, was)]);
            let change = [PathChange { path: path.into(), kind: PathChangeKind::Modified }];
            let is = if more == JEST { was.replacen('{', &format!("{{{JEST}"), 1) } else { format!("{was}{more}") };
            let contents =
                |_: &str, side| Some(if side == TreeSide::Base { was.to_owned() } else { is.clone() }.into_bytes());
            (policy.findings(&change, contents).len(), policy.unused_notes(&change, contents).len())
        };
        let (cargo, python) = ("[package]\nname = 'a'\nversion = '1.0.0'\n", "[project]\nname = 'a'\n");
        for (step, path, was, more, wanted) in [
            ("cargo test", "Cargo.toml", cargo, "[profile.release]\nlto = true\n", (0, 1)),
            ("cargo test --release", "Cargo.toml", cargo, "[profile.release]\nlto = true\n", (1, 0)),
            ("cargo test -r", "Cargo.toml", cargo, "[profile.release]\nlto = true\n", (1, 0)),
            ("cargo test", "Cargo.toml", cargo, "[profile.test]\nopt-level = 3\n", (1, 0)),
            ("pytest", "pyproject.toml", python, "[tool.ruff]\nline-length = 100\n", (0, 1)),
            ("ruff check", "pyproject.toml", python, "[tool.ruff]\nline-length = 100\n", (1, 0)),
            ("pytest", "pyproject.toml", "[tool.ruff]\na = 1\n", "b = 2\n", (0, 1)),
            (
                "pytest",
                "pyproject.toml",
                "[dependency-groups]\ndev = ['ruff']\n[tool.ruff]\na = 1\n",
                "b = 2\n",
                (1, 0),
            ),
            ("pytest", "pyproject.toml", "[tool.poe.tasks.ruff]\ncmd = 'x'\n[tool.ruff]\na = 1\n", "b = 2\n", (1, 0)),
            ("node --test", "package.json", r#"{"name": "w"}"#, JEST, (0, 1)),
            ("npx jest", "package.json", r#"{"name": "w"}"#, JEST, (1, 0)),
            ("npm test", "package.json", r#"{"scripts": {"test": "react-scripts test"}}"#, JEST, (1, 0)),
            ("pytest", "pyproject.toml", python, "[tool.pytest.ini_options]\na = 1\n", (1, 0)),
        ] {
            assert_eq!(tried(step, path, was, more), wanted, "{step}: {more}");
        }
    }
}
