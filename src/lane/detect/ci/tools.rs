//! The table of known programs and their work. A command of a project's CI becomes a step only if
//! the table has a row for it.

/// The kind of work of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ToolKind {
    Build,
    Test,
    /// Reads the sources and changes nothing, like linters and type checkers.
    Lint,
    /// A build that may stand for tests or lints. The name of its recipe decides.
    Recipe,
    /// Prepares a place that runs the checks, without a result about the project.
    Helper,
    /// Not a check, for this reason.
    No(&'static str),
}

use ToolKind::{Build, Helper, Lint, No, Recipe, Test};

const INSTALLS: ToolKind = No("it installs");
const PUBLISHES: ToolKind = No("it publishes");
const PACKAGES: ToolKind = No("it makes packages for a release");
const COVERAGE: ToolKind = No("it measures coverage");
pub(super) const CHANGES: ToolKind = No("it changes files");
const NETWORK: ToolKind = No("it needs the network");
const MACHINE: ToolKind = No("it changes the machine");

/// A program with its first word, its kind of work, and its stack. The word `""` matches every
/// word. The first matching row counts.
pub(super) struct ToolRow {
    pub(super) program: &'static str,
    word: &'static str,
    pub(super) kind: ToolKind,
    pub(super) stack: &'static str,
}

const fn row(program: &'static str, word: &'static str, kind: ToolKind, stack: &'static str) -> ToolRow {
    ToolRow { program, word, kind, stack }
}

#[rustfmt::skip]
const ROWS: &[ToolRow] = &[
    row("cargo", "test", Test, "rust"), row("cargo", "t", Test, "rust"), row("cargo", "nextest", Test, "rust"),
    row("cargo", "build", Build, "rust"), row("cargo", "b", Build, "rust"), row("cargo", "check", Build, "rust"), row("cargo", "c", Build, "rust"),
    row("cargo", "doc", Build, "rust"), row("cargo", "rustdoc", Build, "rust"),
    row("cargo", "clippy", Lint, "rust"), row("cargo", "fmt", Lint, "rust"), row("rustfmt", "", Lint, "rust"),
    row("cargo", "metadata", Helper, "rust"), row("rustc", "", Helper, "rust"), row("go", "version", Helper, "go"), row("go", "env", Helper, "go"),
    row("cargo", "install", INSTALLS, "rust"), row("cargo", "binstall", INSTALLS, "rust"), row("cargo", "fetch", INSTALLS, "rust"), row("cargo", "update", INSTALLS, "rust"),
    row("cargo", "generate-lockfile", INSTALLS, "rust"), row("rustup", "", INSTALLS, "rust"),
    row("cargo", "publish", PUBLISHES, "rust"), row("cargo", "package", PACKAGES, "rust"),
    row("cargo", "llvm-cov", COVERAGE, "rust"), row("cargo", "tarpaulin", COVERAGE, "rust"),
    row("cargo", "deny", NETWORK, "rust"), row("cargo", "audit", NETWORK, "rust"), row("cargo", "outdated", NETWORK, "rust"),
    row("cargo", "semver-checks", NETWORK, "rust"), row("cargo", "fix", CHANGES, "rust"),
    row("cargo", "miri", No("it needs another toolchain"), "rust"), row("cargo", "fuzz", No("it needs another toolchain"), "rust"),
    row("cross", "", No("it builds for another platform"), "rust"),
    row("go", "test", Test, "go"), row("gotestsum", "", Test, "go"), row("go", "build", Build, "go"), row("go", "vet", Lint, "go"),
    row("golangci-lint", "run", Lint, "go"), row("staticcheck", "", Lint, "go"), row("golint", "", Lint, "go"), row("revive", "", Lint, "go"),
    row("go", "get", INSTALLS, "go"), row("go", "install", INSTALLS, "go"), row("go", "mod", INSTALLS, "go"),
    row("go", "fmt", CHANGES, "go"), row("go", "generate", CHANGES, "go"), row("gofmt", "", No("it never fails"), "go"), row("govulncheck", "", NETWORK, "go"),
    row("pytest", "", Test, "python"), row("py.test", "", Test, "python"), row("unittest", "", Test, "python"),
    row("ruff", "", Lint, "python"), row("black", "", Lint, "python"), row("isort", "", Lint, "python"), row("flake8", "", Lint, "python"),
    row("pylint", "", Lint, "python"), row("mypy", "", Lint, "python"), row("pyright", "", Lint, "python"), row("basedpyright", "", Lint, "python"),
    row("ty", "check", Lint, "python"), row("pydocstyle", "", Lint, "python"), row("pycodestyle", "", Lint, "python"), row("bandit", "", Lint, "python"),
    row("codespell", "", Lint, "python"), row("pyflakes", "", Lint, "python"), row("check-manifest", "", Lint, "python"),
    row("pip", "", INSTALLS, "python"), row("pip3", "", INSTALLS, "python"), row("pipx", "", INSTALLS, "python"), row("uv", "", INSTALLS, "python"), row("poetry", "", INSTALLS, "python"),
    row("pdm", "", INSTALLS, "python"), row("pipenv", "", INSTALLS, "python"), row("hatch", "", INSTALLS, "python"), row("conda", "", INSTALLS, "python"),
    row("build", "", PACKAGES, "python"), row("twine", "", PUBLISHES, "python"), row("coverage", "", COVERAGE, "python"), row("coveralls", "", COVERAGE, "python"),
    row("codecov", "", COVERAGE, "python"), row("pyupgrade", "", CHANGES, "python"),
    row("vitest", "", Test, "node"), row("jest", "", Test, "node"), row("mocha", "", Test, "node"), row("ava", "", Test, "node"), row("tap", "", Test, "node"),
    row("uvu", "", Test, "node"), row("node", "--test", Test, "node"), row("tape", "", Test, "node"), row("tsd", "", Test, "node"),
    row("eslint", "", Lint, "node"), row("prettier", "", Lint, "node"), row("biome", "", Lint, "node"), row("xo", "", Lint, "node"), row("standard", "", Lint, "node"),
    row("stylelint", "", Lint, "node"), row("oxlint", "", Lint, "node"), row("oxfmt", "", Lint, "node"), row("dprint", "check", Lint, "node"), row("svelte-check", "", Lint, "node"),
    row("vue-tsc", "", Lint, "node"), row("tsc", "", Lint, "node"), row("publint", "", Lint, "node"), row("knip", "", Lint, "node"), row("ts-standard", "", Lint, "node"),
    row("rollup", "", Build, "node"), row("vite", "build", Build, "node"), row("tsup", "", Build, "node"), row("tsdown", "", Build, "node"), row("unbuild", "", Build, "node"),
    row("webpack", "", Build, "node"), row("next", "build", Build, "node"), row("esbuild", "", Build, "node"), row("bunchee", "", Build, "node"), row("obuild", "", Build, "node"),
    row("npm", "", INSTALLS, "node"), row("pnpm", "", INSTALLS, "node"), row("yarn", "", INSTALLS, "node"), row("bun", "", INSTALLS, "node"), row("corepack", "", INSTALLS, "node"),
    row("playwright", "", No("it drives a browser"), "node"), row("cypress", "", No("it drives a browser"), "node"), row("karma", "", No("it drives a browser"), "node"),
    row("semantic-release", "", PUBLISHES, "node"), row("changeset", "", PUBLISHES, "node"), row("c8", "", COVERAGE, "node"), row("nyc", "", COVERAGE, "node"),
    row("cmake", "", Build, "cmake"), row("ctest", "", Test, "cmake"), row("meson", "test", Test, "meson"), row("meson", "", Build, "meson"), row("ninja", "test", Test, "meson"),
    row("make", "", Recipe, "make"), row("just", "", Recipe, "make"), row("task", "", Recipe, "make"),
    row("rspec", "", Test, "ruby"), row("rake", "", Recipe, "ruby"), row("rubocop", "", Lint, "ruby"), row("standardrb", "", Lint, "ruby"),
    row("bundle", "", INSTALLS, "ruby"), row("gem", "", INSTALLS, "ruby"),
    row("mvn", "deploy", PUBLISHES, "maven"), row("mvn", "", Recipe, "maven"), row("mvnw", "", Recipe, "maven"),
    row("gradle", "", Recipe, "gradle"), row("gradlew", "", Recipe, "gradle"),
    row("swift", "test", Test, "swift"), row("swift", "build", Build, "swift"), row("swiftlint", "", Lint, "swift"),
    row("shellcheck", "", Lint, "other"), row("shfmt", "", Lint, "other"), row("bats", "", Test, "other"), row("yamllint", "", Lint, "other"), row("typos", "", Lint, "other"),
    row("actionlint", "", Lint, "other"), row("hadolint", "", Lint, "other"), row("markdownlint", "", Lint, "other"),
    row("sudo", "", MACHINE, "other"), row("apt-get", "", MACHINE, "other"), row("apt", "", MACHINE, "other"), row("brew", "", MACHINE, "other"), row("apk", "", MACHINE, "other"),
    row("dnf", "", MACHINE, "other"), row("choco", "", MACHINE, "other"), row("pacman", "", MACHINE, "other"), row("yum", "", MACHINE, "other"),
    row("docker", "", No("it needs services"), "other"), row("docker-compose", "", No("it needs services"), "other"),
    row("curl", "", NETWORK, "other"), row("wget", "", NETWORK, "other"), row("gh", "", NETWORK, "other"),
    row("echo", "", Helper, "other"), row("printf", "", Helper, "other"), row("mkdir", "", Helper, "other"), row("ls", "", Helper, "other"), row("cat", "", Helper, "other"),
    row("git", "", Helper, "other"), row("cp", "", Helper, "other"), row("mv", "", Helper, "other"), row("rm", "", Helper, "other"), row("true", "", Helper, "other"),
    row("chmod", "", Helper, "other"), row("which", "", Helper, "other"), row("exit", "", Helper, "other"), row("test", "", Helper, "other"), row("source", "", Helper, "other"),
    row(".", "", Helper, "other"), row("sleep", "", Helper, "other"), row("touch", "", Helper, "other"), row("pwd", "", Helper, "other"), row("date", "", Helper, "other"),
];

/// Returns the row of a command.
pub(super) fn find(words: &[String]) -> Option<&'static ToolRow> {
    let program = name(words.first()?);
    let word =
        words[1..].iter().find(|word| !word.starts_with(['-', '+']) || *word == "--test").map_or("", String::as_str);
    ROWS.iter().find(|row| row.program == program && (row.word.is_empty() || row.word == word))
}

/// Returns a program name without its folder.
pub(super) fn name(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
}

/// Programs that change files unless one of these words is present.
#[rustfmt::skip]
const ONLY_WITH: [(&str, &[&str]); 10] = [
    ("cargo fmt", &["--check"]), ("rustfmt", &["--check"]), ("black", &["--check", "--diff"]), ("isort", &["--check", "--check-only", "-c", "--diff"]),
    ("ruff format", &["--check", "--diff"]), ("prettier", &["--check", "-c", "-l", "--list-different"]), ("shfmt", &["-d", "-l", "--diff", "--list"]),
    ("biome format", &["format"]), ("oxfmt", &["--check"]), ("vue-tsc", &["--noEmit", "--noemit", "--build", "-b"]),
];

/// Words that make a check write to the sources.
#[rustfmt::skip]
const WRITING: [&str; 22] = [
    "--fix", "--write", "-w", "--apply", "--apply-unsafe", "--in-place", "--write-changes", "--updateSnapshot", "--update-snapshots", "--update-snapshot",
    "--snapshot-update", "--inline-snapshot=fix", "--inline-snapshot=create", "--autocorrect", "--auto-correct", "--autocorrect-all", "--auto-correct-all",
    "--update", "--accept", "--unsafe-fixes", "--install-types", "--fix-only",
];

/// Returns true if a command changes the sources.
pub(super) fn writes(words: &[String]) -> bool {
    let has = |word: &str| words.iter().any(|other| other == word);
    let tool = tool(words);
    let is_unasked = ONLY_WITH.iter().any(|(name, flags)| *name == tool && !flags.iter().any(|flag| has(flag)));
    // `-u` updates snapshots for these programs. For other tools, `-w` sets the number of workers.
    let program = name(words.first().map_or("", String::as_str));
    let updates = ["jest", "vitest", "ava"].contains(&program) && has("-u");
    is_unasked
        || updates
        || WRITING.iter().any(|word| has(word) && (*word != "-w" || ["prettier", "gofmt", "shfmt"].contains(&program)))
}

/// Returns the program of a check, such as `mypy`. If the program has several checks, its first
/// word is added: `cargo fmt`.
pub(in super::super) fn tool(words: &[String]) -> String {
    let Some(program) = words.first().map(|word| name(word)) else { return String::new() };
    let first = words[1..].iter().find(|word| !word.starts_with(['-', '+']));
    match (program, first) {
        ("cargo" | "go" | "ruff" | "biome", Some(word)) => format!("{program} {word}"),
        ("ruff", None) => "ruff check".into(),
        _ => program.to_owned(),
    }
}

/// Derives the purpose of a recipe or script from its name.
pub(super) fn by_name(name: &str) -> ToolKind {
    let name = name.to_ascii_lowercase();
    let parts: Vec<&str> = name.split(|c: char| !c.is_ascii_alphanumeric()).collect();
    let has = |words: &[&str]| parts.iter().any(|part| words.contains(part));
    let is_check = has(&["check", "lint", "ci", "verify"]);
    if has(&["fix", "write"]) || (has(&["update", "generate", "gen", "format", "fmt"]) && !is_check) {
        CHANGES
    } else if has(&["install", "deps", "setup", "bootstrap", "tools", "requirements", "prepare"]) {
        INSTALLS
    } else if has(&["publish", "release", "deploy", "upload", "dist", "package", "docker", "image"]) {
        PUBLISHES
    } else if has(&["coverage", "cov", "codecov", "coveralls"]) {
        COVERAGE
    } else if has(&["e2e", "browser", "browsers", "playwright", "cypress"]) {
        No("it drives a browser")
    } else if has(&["arch", "arches", "cross", "darwin", "macos", "windows"]) {
        No("it builds for another platform")
    } else if has(&["watch", "dev", "serve", "start"]) {
        No("it never ends")
    } else if has(&[
        "lint",
        "format",
        "fmt",
        "types",
        "typecheck",
        "typing",
        "mypy",
        "eslint",
        "prettier",
        "vet",
        "clippy",
        "style",
        "type",
    ]) {
        Lint
    } else if has(&[
        "test", "tests", "check", "ci", "unit", "spec", "verify", "unittest", "checks", "runtest", "jest", "vitest",
    ]) {
        Test
    } else if has(&["build", "all", "compile", "docs", "doc"]) || name.is_empty() {
        Build
    } else {
        No("fledge does not know what it does")
    }
}

/// Returns true if a program in the table is a Node package, but not a package manager.
pub(in super::super) fn is_node_tool(program: &str) -> bool {
    ROWS.iter().any(|row| row.program == program && row.stack == "node" && row.kind != INSTALLS && program != "node")
}

/// Returns the programs of the table, which fledge looks up in the search path.
pub(in super::super) fn programs() -> impl Iterator<Item = &'static str> {
    ROWS.iter().filter(|row| !matches!(row.kind, Helper)).map(|row| row.program)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn commands_are_of_the_kind_that_the_table_says() {
        let kind = |text: &str| find(&words(text)).map(|row| row.kind);
        assert_eq!(kind("cargo --locked test --all"), Some(Test));
        assert_eq!(kind("cargo clippy"), Some(Lint));
        assert_eq!(kind("cargo install x"), Some(INSTALLS));
        assert_eq!(kind("node_modules/.bin/vitest run"), Some(Test));
        assert_eq!(kind("node --test"), Some(Test));
        assert_eq!(kind("node build.js"), None);
        assert_eq!(kind("rm-everything now"), None);
    }

    #[test]
    fn what_writes_is_known_by_its_words() {
        for text in [
            "cargo fmt",
            "black .",
            "prettier --write .",
            "ruff check --fix",
            "eslint --fix .",
            "jest -u",
            "ruff format",
            "isort .",
        ] {
            assert!(writes(&words(text)), "{text}");
        }
        for text in [
            "cargo fmt --all -- --check",
            "black --check .",
            "prettier -c .",
            "ruff check .",
            "eslint .",
            "jest",
            "pytest -w 3",
        ] {
            assert!(!writes(&words(text)), "{text}");
        }
    }

    #[test]
    fn a_recipe_is_for_what_its_name_says() {
        for (name, kind) in [
            ("test", Test),
            ("test-unit", Test),
            ("lint:js", Lint),
            ("format:check", Lint),
            ("format", CHANGES),
            ("lint:fix", CHANGES),
            ("build", Build),
            ("install-deps", INSTALLS),
            ("test:coverage", COVERAGE),
            ("test:watch", No("it never ends")),
            ("build.arches", No("it builds for another platform")),
            ("frobnicate", No("fledge does not know what it does")),
        ] {
            assert_eq!(by_name(name), kind, "{name}");
        }
    }
}
