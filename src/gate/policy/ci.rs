//! Scripts that the continuous integration or a hook of git runs.

use super::Base;
use super::named::{LONGEST, run_by};
use crate::workspace::pattern::Patterns;
use std::collections::BTreeSet;
use std::sync::LazyLock;

/// Why a script that the continuous integration or a hook of git runs is.
pub(super) const RUNS: &str = "the continuous integration or a git hook runs it";
/// Keys of CI and hook files before a command.
const COMMAND_KEYS: [&str; 8] = ["run", "script", "sh", "command", "entry", "bash", "inlineScript", "before_script"];
/// Files whose lines are commands of the continuous integration or of git hooks.
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
    ".pre-commit-config.{yaml,yml}",
    "{.,}lefthook.{yml,yaml}",
    ".husky/*",
    ".githooks/*",
];

/// The scripts of the base that its CI and hook files run. `read` gives a file of the base.
pub(super) fn scripts(base: &Base, read: &mut dyn FnMut(&str) -> Option<Vec<u8>>) -> BTreeSet<String> {
    static PATTERNS: LazyLock<Option<Patterns>> = LazyLock::new(|| Patterns::trees(WITH_COMMANDS.iter().copied()).ok());
    let runs_commands = |path: &&String| PATTERNS.as_ref().is_some_and(|patterns| patterns.fit(path));
    let mut scripts = BTreeSet::new();
    for file in base.0.iter().filter(runs_commands) {
        let Some(text) = read(file).filter(|bytes| bytes.len() <= LONGEST) else { continue };
        let text = String::from_utf8_lossy(&text);
        let commands: Vec<&str> = text.lines().map(command_of).collect();
        scripts.extend(run_by("", &commands.join("\n"), base));
    }
    scripts
}

/// The command in a line of a CI file, without the key before it.
fn command_of(line: &str) -> &str {
    let line = line.trim_start().trim_start_matches("- ");
    let keyed = line.split_once(':').filter(|(key, _)| COMMAND_KEYS.contains(key));
    keyed.map_or(line, |(_, command)| command.trim_start())
}
