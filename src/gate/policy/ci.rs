//! Files that the CI or a git hook runs.

use super::BaseFiles;
use super::calls::{entered, run_below, run_by, with_called, without_places};
use super::checks::is_run_as_check;
use super::hook_managers::{self, OF_HOOKS};
use super::made::recipes;
use super::makefiles::starts_make;
use super::named::{
    SOURCED, has_script_extension, inside, is_of_checks, is_script, is_source, run_in_turn, text, words,
};
use super::tests_named::BaseTests;
use crate::pattern::Patterns;
use std::collections::BTreeSet;
use std::sync::LazyLock;

/// Reason for protecting a script that the CI or a git hook runs.
pub(super) const RUNS: &str = "the continuous integration or a git hook runs it";
/// Reason for noting the change of a file that only the CI names.
pub(super) const NAMED: &str = "the continuous integration runs it";
/// Keys of CI and hook files before a command.
const COMMAND_KEYS: [&str; 8] = ["run", "script", "sh", "command", "entry", "bash", "inlineScript", "before_script"];
/// Keys of lists of commands.
const LISTS_OF_COMMANDS: [&str; 4] = ["script", "before_script", "after_script", "commands"];
/// Keys whose values only name files or are prose.
const OTHER_KEYS: [&str; 6] = ["files", "exclude", "glob", "if", "name", "description"];
/// Extensions of documents. Nothing runs these.
const DOCUMENTS: [&str; 2] = [".md", ".rst"];
/// Files whose lines are commands of the CI.
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
/// The files of the base that its CI and its hooks run.
#[derive(Debug, Default)]
pub(super) struct CiRunFiles {
    /// Scripts, files that hooks run, and sources that are checks.
    pub(super) scripts: BTreeSet<String>,
    /// Other files that only the CI names. They may be the product, so their change is a note.
    pub(super) others: BTreeSet<String>,
    /// Paths and patterns that the managers of git hooks read.
    pub(super) of_managers: BTreeSet<String>,
}

/// Reads a file of the base.
type Read<'r> = &'r mut dyn FnMut(&str) -> Option<Vec<u8>>;

/// Finds the files that the CI and the hooks of a base run. `read` returns the content of a file of
/// the base.
pub(super) fn run(base: &BaseFiles, tests: &BaseTests, read: Read<'_>) -> CiRunFiles {
    static PATTERNS: LazyLock<Option<[Patterns; 2]>> = LazyLock::new(|| {
        let patterns = |globs: &[&'static str]| Patterns::trees(globs.iter().copied()).ok();
        Some([patterns(WITH_COMMANDS)?, patterns(OF_HOOKS)?])
    });
    let (mut found, mut of_hooks, mut made) = (CiRunFiles::default(), BTreeSet::new(), BTreeSet::new());
    let Some([is_of_ci, is_of_hooks]) = PATTERNS.as_ref() else { return found };
    found.of_managers = hook_managers::named(base, read);
    let managed = Patterns::trees(found.of_managers.iter().map(String::as_str)).ok();
    let is_of_hooks = |path: &str| is_of_hooks.fit(path) || managed.as_ref().is_some_and(|managed| managed.fit(path));
    for manifest in &base.0 {
        let commands = hook_managers::commands_of_node(manifest, read);
        of_hooks.extend(commands.into_iter().flat_map(|text| run_by_hook(manifest, &text, base)));
    }
    let mut open: BTreeSet<String> =
        base.0.iter().filter(|path| is_of_ci.fit(path) || is_of_hooks(path)).cloned().collect();
    let mut seen = open.clone();
    while let Some(file) = open.pop_first() {
        let Some(text) = text(&file, read) else { continue };
        let is_marked = is_yaml(&file) || file.ends_with(".toml") || file.ends_with(".json");
        let splits: &[char] = if is_marked { &['{', ',', '['] } else { &[] };
        let parts: Vec<&str> = text.lines().flat_map(|line| line.split(splits)).collect();
        let texts = |meant: &dyn Fn(&str) -> bool| {
            let commands = parts.iter().filter(|part| meant(part)).map(|part| command_of(part));
            without_places(&commands.collect::<Vec<_>>().join("\n"))
        };
        let is_any = |part: &str| is_yaml(&file) || !is_other(part);
        let (all, commands) = (texts(&is_any), texts(&|part| is_any(part) && (!is_yaml(&file) || is_command(part))));
        let commands = commands + &lone_commands(&parts);
        let mut has = |path: &str| base.has(path);
        let folders = folders(&parts, base);
        for (makefile, recipes) in recipes(&commands, &folders, "", read) {
            found.scripts.extend(run_by(&makefile, &recipes, &mut has, is_script));
            made.extend(run_by(&makefile, &recipes, &mut has, is_source));
        }
        for folder in folders {
            let script = format!("{folder}/-");
            found.scripts.extend(run_by(&script, &all, &mut has, is_script));
            if is_of_hooks(&file) {
                of_hooks.extend(run_by_hook(&script, &commands, base));
            } else {
                found.others.extend(run_by(&script, &commands, &mut has, is_no_document));
            }
        }
        if !is_of_hooks(&file) {
            let named = named(&file, &parts, &commands, base);
            open.extend(named.iter().filter(|path| is_yaml(path) && seen.insert((*path).clone())).cloned());
            found.others.extend(named);
        }
    }
    for (path, why) in run_in_turn(found.scripts.clone(), base, tests, read) {
        // Another shell script may be the product: `sh install.sh`.
        let is_check = why != SOURCED && (!has_script_extension(&path) || is_of_checks(&path, tests));
        if is_check {
            found.scripts.insert(path)
        } else {
            found.others.insert(path)
        };
    }
    found.scripts.extend(with_called(of_hooks, read));
    found.others.retain(|path| !found.scripts.contains(path) && !is_of_ci.fit(path));
    let is_check = |path: &&String| is_source(path) && is_run_as_check(path, base, tests, read);
    let checks: Vec<String> = made.iter().chain(&found.others).filter(is_check).cloned().collect();
    found.others.retain(|path| !checks.contains(path));
    found.scripts.extend(checks);
    found
}

/// Returns the files that commands of a git hook run, also those below folders that they enter.
fn run_by_hook(script: &str, commands: &str, base: &BaseFiles) -> Vec<String> {
    let commands = without_places(commands);
    run_below(script, &commands, &entered(&commands), &mut |path| base.has(path), is_no_document)
}

fn is_no_document(path: &str) -> bool {
    !DOCUMENTS.iter().any(|ending| path.ends_with(ending))
}

/// Returns the folders in which the commands of a CI file run: the root, and the folders that the
/// file names.
fn folders(parts: &[&str], base: &BaseFiles) -> BTreeSet<String> {
    let entered = parts
        .iter()
        .filter_map(|part| words(command_of(part)).get(1).copied().filter(|_| command_of(part).starts_with("cd ")));
    let named = parts.iter().filter_map(|part| value(part, "working-directory")).chain(entered);
    let folders = named.filter_map(|folder| inside("", folder)).filter(|folder| base.has_folder(folder));
    folders.chain([String::new()]).collect()
}

/// Returns the files of the base that a CI file includes or that its commands pass to a program:
/// files of local actions, of GitLab's `include`, and of `docker build -f`.
fn named(file: &str, parts: &[&str], commands: &str, base: &BaseFiles) -> BTreeSet<String> {
    let folder = file.rsplit_once('/').map_or("", |(folder, _)| folder);
    let values = |key: &'static str| parts.iter().filter_map(move |part| value(part, key));
    let actions = values("uses").filter(|action| action.starts_with("./")).flat_map(|action| {
        ["action.yml", "action.yaml", "Dockerfile"].map(|name| inside("", &format!("{action}/{name}")))
    });
    let of_action = ["main", "pre", "post", "image"].into_iter().flat_map(values).map(|path| inside(folder, path));
    let included = ["local", "include", "-"].into_iter().flat_map(values).filter(|path| is_yaml(path));
    let included = included.map(|path| inside("", path.trim_start_matches('/')));
    let containers = commands.lines().flat_map(|line| line.split(['&', ';', '|'])).map(words).filter(|words| {
        words.iter().any(|word| matches!(*word, "docker" | "podman" | "docker-compose" | "podman-compose"))
    });
    let files = containers.flat_map(|words| {
        let pairs = words.windows(2).filter(|pair| matches!(pair[0], "-f" | "--file"));
        pairs.map(|pair| inside("", pair[1])).collect::<Vec<_>>()
    });
    let all = actions.chain(of_action).chain(included).chain(files).flatten();
    all.filter(|path| base.has(path)).collect()
}

fn is_yaml(path: &str) -> bool {
    path.ends_with(".yml") || path.ends_with(".yaml")
}

/// Returns the value of a key in a part of a line. The key `-` means an item of a list.
fn value<'p>(part: &'p str, key: &str) -> Option<&'p str> {
    let part = part.trim();
    let value = match part.strip_prefix("- ") {
        Some(item) if key == "-" => item,
        item => item.unwrap_or(part).strip_prefix(key)?.trim_start().strip_prefix(':')?,
    };
    let value = value.trim().trim_end_matches(['}', ']', ' ']).trim_matches(['"', '\'']);
    (!value.is_empty()).then_some(value)
}

/// Returns whether a part of a line of TOML or JSON is a pattern or prose.
fn is_other(part: &str) -> bool {
    let key = part.split_once([':', '=']).map(|(key, _)| key.trim().trim_matches('"'));
    key.is_some_and(|key| OTHER_KEYS.contains(&key))
}

/// Returns whether a part of a line is a command, and not a pattern or a file name in a list.
fn is_command(part: &str) -> bool {
    let command = command_of(part);
    if OTHER_KEYS.iter().any(|key| value(part, key).is_some()) {
        return false;
    }
    command.len() < part.trim_start().trim_start_matches("- ").len()
        || command.starts_with("./")
        || words(command).len() > 1
        || (starts_make(command.trim()) && !part.trim_start().starts_with("- "))
}

/// Returns the `make` without a word beside it in lists of commands: `- make` below `script:`. In
/// other lists it is the name of a package.
fn lone_commands(parts: &[&str]) -> String {
    let (mut is_of_commands, mut found) = (false, String::new());
    for part in parts.iter().map(|part| part.trim()) {
        let key = part.trim_start_matches("- ").strip_suffix(':').filter(|key| !key.contains(' '));
        is_of_commands = key.map_or(is_of_commands, |key| LISTS_OF_COMMANDS.contains(&key));
        if is_of_commands && part.strip_prefix("- ").is_some_and(|word| starts_make(word.trim())) {
            found.push_str("\nmake");
        }
    }
    found
}

/// Returns the command in a part of a line of a CI file, without the key before it.
fn command_of(part: &str) -> &str {
    let part = part.trim_start().trim_start_matches("- ");
    let keyed = part.split_once(':').filter(|(key, _)| COMMAND_KEYS.contains(key));
    keyed.map_or(part, |(_, command)| command.trim_start())
}
