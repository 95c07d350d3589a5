//! Scripts that the continuous integration or a hook of git runs.

use super::Base;
use super::calls::{run_by, with_called};
use super::named::{is_script, text};
use crate::workspace::pattern::Patterns;
use std::collections::BTreeSet;
use std::sync::LazyLock;

/// Why a script that the continuous integration or a hook of git runs is.
pub(super) const RUNS: &str = "the continuous integration or a git hook runs it";
/// Keys of CI and hook files before a command.
const COMMAND_KEYS: [&str; 8] = ["run", "script", "sh", "command", "entry", "bash", "inlineScript", "before_script"];
/// Files whose lines are commands of the continuous integration.
pub(super) const WITH_COMMANDS: &[&str] = &[
    ".github/workflows/*.{yml,yaml}",
    ".github/actions/**/*.{yml,yaml}",
    ".gitlab-ci.yml",
    ".gitlab/**/*.{yml,yaml}",
    ".circleci/*.{yml,yaml}",
    "azure-pipelines.{yml,yaml}",
    ".azure-pipelines/**/*.{yml,yaml}",
    ".travis.yml",
    "bitbucket-pipelines.yml",
    ".drone.{yml,yaml}",
    ".woodpecker.{yml,yaml}",
    ".woodpecker/**/*.{yml,yaml}",
    "{.,}appveyor.{yml,yaml}",
    ".buildkite/*.{yml,yaml}",
    ".cirrus.yml",
    "buildspec.{yml,yaml}",
    "Jenkinsfile",
];
/// Files whose lines are commands of git hooks.
pub(super) const OF_HOOKS: &[&str] = &[
    ".pre-commit-config.{yaml,yml}",
    "{.,.config/,}lefthook{-local,}.{yml,yaml}",
    ".lefthook{-local,}/**",
    "**/.husky/*",
    ".githooks/*",
];

/// The scripts of the base that its CI and hook files run. `read` gives a file of the base.
pub(super) fn scripts(base: &Base, read: &mut dyn FnMut(&str) -> Option<Vec<u8>>) -> BTreeSet<String> {
    static PATTERNS: LazyLock<Option<[Patterns; 2]>> = LazyLock::new(|| {
        let patterns = |globs: &[&'static str]| Patterns::trees(globs.iter().copied()).ok();
        Some([patterns(WITH_COMMANDS)?, patterns(OF_HOOKS)?])
    });
    let Some([of_ci, of_hooks]) = PATTERNS.as_ref() else { return BTreeSet::new() };
    let (mut scripts, mut run) = (BTreeSet::new(), BTreeSet::new());
    for file in base.0.iter().filter(|path| of_ci.fit(path) || of_hooks.fit(path)) {
        let Some(text) = text(file, read) else { continue };
        let commands: Vec<&str> = text.lines().flat_map(|line| line.split(['{', ','])).map(command_of).collect();
        let (commands, mut has) = (commands.join("\n"), |path: &str| base.has(path));
        scripts.extend(run_by("", &commands, &mut has, is_script));
        if of_hooks.fit(file) {
            run.extend(run_by("", &commands, &mut has, |_| true));
        }
    }
    scripts.extend(with_called(run, read));
    scripts
}

/// The command in a line of a CI file, without the key before it.
fn command_of(line: &str) -> &str {
    let line = line.trim_start().trim_start_matches("- ");
    let keyed = line.split_once(':').filter(|(key, _)| COMMAND_KEYS.contains(key));
    keyed.map_or(line, |(_, command)| command.trim_start())
}
