//! The test runners and linters that fledge recognizes by the command or the output of a step.
//! Pure.

use super::names::has_name;
use crate::lane::{CanaryTerms, Lane};
use std::collections::BTreeSet;

/// Words of commands that lint, format or check types, and run no tests.
const LINTERS: [&str; 21] = [
    "biome",
    "black",
    "clippy",
    "eslint",
    "flake8",
    "fmt",
    "format",
    "gofmt",
    "golangci-lint",
    "isort",
    "lint",
    "mypy",
    "prettier",
    "pylint",
    "pyright",
    "ruff",
    "rustfmt",
    "staticcheck",
    "tsc",
    "vet",
    "xo",
];
/// Commands of test runners, each with the kind of failing test that it runs.
const RUNNERS: [(&str, CanaryTerms); 16] = [
    ("pytest", CanaryTerms::Pytest),
    ("py.test", CanaryTerms::Pytest),
    ("-m unittest", CanaryTerms::Pytest),
    ("cargo test", CanaryTerms::CargoTest),
    ("nextest run", CanaryTerms::CargoTest),
    ("go test", CanaryTerms::GoTest),
    ("gotestsum", CanaryTerms::GoTest),
    ("node --test", CanaryTerms::NodeTest),
    ("jest", CanaryTerms::Jest),
    ("vitest", CanaryTerms::Jest),
    ("mvn", CanaryTerms::Junit),
    ("mvnw", CanaryTerms::Junit),
    ("mvnd", CanaryTerms::Junit),
    ("gradle", CanaryTerms::Junit),
    ("gradlew", CanaryTerms::Junit),
    ("ctest", CanaryTerms::CppTest),
];

/// Returns the kinds of failing tests that the runners in a command run.
pub(super) fn kinds_in_command(command: &str) -> BTreeSet<CanaryTerms> {
    let command = command.split_whitespace().collect::<Vec<_>>().join(" ");
    RUNNERS.iter().filter(|(runner, _)| has_name(&command, runner)).map(|(_, kind)| kind.clone()).collect()
}

/// Returns the kinds of failing tests that the commands of a lane run, as far as they show it.
pub fn kinds_in_commands(lane: &Lane) -> BTreeSet<CanaryTerms> {
    lane.steps.iter().flat_map(|step| kinds_in_command(&step.run)).collect()
}

/// Returns whether a text of commands may build or run compiled tests of a kind, by the tools and
/// sources that it names.
pub(super) fn may_run(text: &str, kind: &CanaryTerms) -> bool {
    let (tools, endings): (&[&str], &[&str]) = match kind {
        CanaryTerms::CargoTest => (&["cargo", "bazel"], &[]),
        CanaryTerms::GoTest => (&["go", "gotestsum", "bazel"], &[]),
        CanaryTerms::Junit => {
            (&["bazel", "java", "javac", "mvn", "mvnw", "mvnd", "gradle", "gradlew", "ant"], &[".java"])
        }
        CanaryTerms::CppTest => {
            (&["cmake", "ctest", "meson", "ninja", "scons", "waf", "bazel"], &[".cpp", ".cc", ".cxx"])
        }
        _ => (&[], &[]),
    };
    tools.iter().any(|tool| has_name(text, tool)) || endings.iter().any(|ending| text.contains(ending))
}

/// Returns a command whose test runner does not stop after the first program with a failure, if
/// the runner has a flag for that.
pub(super) fn without_early_end(command: &str) -> String {
    const FLAG: &str = "--no-fail-fast";
    let runner = ["cargo test", "nextest run"].iter().find(|runner| has_name(command, runner));
    match runner {
        Some(runner) if !command.contains(FLAG) => command.replace(runner, &format!("{runner} {FLAG}")),
        _ => command.to_owned(),
    }
}

/// Returns whether tests of a kind need nothing of a step without tests: the step lints or formats,
/// or it calls the tool that builds the tests itself.
pub(super) fn is_needless(command: &str, kind: &CanaryTerms) -> bool {
    let tool = match kind {
        CanaryTerms::CargoTest => "cargo",
        CanaryTerms::GoTest => "go",
        _ => "",
    };
    is_linter(command) || has_name(command, tool)
}

/// Returns whether a command has the word of a linter.
pub(super) fn is_linter(command: &str) -> bool {
    LINTERS.iter().any(|word| has_name(command, word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runners_are_recognized_by_whole_words_of_a_command() {
        for (command, kinds) in [
            ("python3 -m pytest -q", vec![CanaryTerms::Pytest]),
            ("uv run pytest", vec![CanaryTerms::Pytest]),
            (".venv/bin/pytest tests", vec![CanaryTerms::Pytest]),
            ("python -m unittest discover", vec![CanaryTerms::Pytest]),
            ("cargo  test --all", vec![CanaryTerms::CargoTest]),
            ("cargo nextest run", vec![CanaryTerms::CargoTest]),
            ("npx vitest run && go test ./...", vec![CanaryTerms::GoTest, CanaryTerms::Jest]),
            ("./mvnw -q test", vec![CanaryTerms::Junit]),
            ("cargo build", vec![]),
            ("pip install pytest-cov", vec![]),
            ("make test", vec![]),
        ] {
            assert_eq!(kinds_in_command(command), kinds.into_iter().collect(), "{command}");
        }
    }

    #[test]
    fn cargo_does_not_stop_after_the_first_failing_program() {
        for (command, changed) in [
            ("cargo test -q -- --nocapture", "cargo test --no-fail-fast -q -- --nocapture"),
            ("cargo test", "cargo test --no-fail-fast"),
            ("cargo nextest run -E all", "cargo nextest run --no-fail-fast -E all"),
            ("cargo test --no-fail-fast", "cargo test --no-fail-fast"),
            ("cargo tests", "cargo tests"),
            ("pytest -x", "pytest -x"),
        ] {
            assert_eq!(without_early_end(command), changed);
        }
    }

    #[test]
    fn linters_are_recognized_by_whole_words_of_a_command() {
        assert!(["cargo fmt --check", "npm run lint", "ruff check"].iter().all(|command| is_linter(command)));
        assert!(!["python3 app.py", "npm run linting"].iter().any(|command| is_linter(command)));
        for (command, kind, is) in [
            ("cargo build --locked", CanaryTerms::CargoTest, true),
            ("cargo build --locked", CanaryTerms::Pytest, false),
            ("go generate ./...", CanaryTerms::GoTest, true),
            ("make", CanaryTerms::CargoTest, false),
            ("ruff check", CanaryTerms::Pytest, true),
        ] {
            assert_eq!(is_needless(command, &kind), is, "{command}");
        }
    }
}
