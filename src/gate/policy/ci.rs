//! Files that the CI or a git hook runs.

use super::BaseFiles;
use super::calls::{run_by, with_called, without_places};
use super::makefiles::{self, starts_make};
use super::named::{inside, is_script, is_source, text, words};
use crate::workspace::pattern::Patterns;
use std::collections::BTreeSet;
use std::sync::LazyLock;

/// Reason for protecting a script that the CI or a git hook runs.
pub(super) const RUNS: &str = "the continuous integration or a git hook runs it";
/// Reason for noting the change of a file that only the CI names.
pub(super) const NAMED: &str = "the continuous integration runs it";
/// Keys of CI and hook files before a command.
const COMMAND_KEYS: [&str; 8] = ["run", "script", "sh", "command", "entry", "bash", "inlineScript", "before_script"];
/// Keys whose values only name files or are prose.
const OTHER_KEYS: [&str; 6] = ["files", "exclude", "glob", "if", "name", "description"];
/// Extensions of documents. Nothing runs these.
const DOCUMENTS: [&str; 2] = [".md", ".rst"];
/// The names of a Makefile, in the order in which `make` looks for them.
const MAKEFILES: [&str; 3] = ["GNUmakefile", "makefile", "Makefile"];
/// The most `make` commands of a CI file that are followed, and the most files of a Makefile that
/// are read.
const MOST_MADE: usize = 100;
/// Options with which `make` builds nothing.
const SAYS_OF_ITSELF: [&str; 4] = ["--version", "-v", "--help", "-h"];
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
/// Files whose lines are commands of git hooks.
pub(super) const OF_HOOKS: &[&str] = &[
    ".pre-commit-config.{yaml,yml}",
    "{.,.config/,}lefthook{-local,}.{yml,yaml}",
    ".lefthook{-local,}/**",
    "**/.husky/*",
    ".githooks/*",
];

/// The files of the base that its CI and its hooks run.
#[derive(Debug, Default)]
pub(super) struct CiRunFiles {
    /// Scripts, files that hooks run, and sources that are checks.
    pub(super) scripts: BTreeSet<String>,
    /// Other files that only the CI names. They may be the product, so their change is a note.
    pub(super) others: BTreeSet<String>,
}

/// Reads a file of the base.
type Read<'r> = &'r mut dyn FnMut(&str) -> Option<Vec<u8>>;

/// Finds the files that the CI and the hooks of a base run. `is_check` returns whether a source is
/// a check; `read` returns the content of a file of the base.
pub(super) fn run(base: &BaseFiles, is_check: &dyn Fn(&str, Read<'_>) -> bool, read: Read<'_>) -> CiRunFiles {
    static PATTERNS: LazyLock<Option<[Patterns; 2]>> = LazyLock::new(|| {
        let patterns = |globs: &[&'static str]| Patterns::trees(globs.iter().copied()).ok();
        Some([patterns(WITH_COMMANDS)?, patterns(OF_HOOKS)?])
    });
    let (mut found, mut of_hooks, mut made) = (CiRunFiles::default(), BTreeSet::new(), BTreeSet::new());
    let Some([is_of_ci, is_of_hooks]) = PATTERNS.as_ref() else { return found };
    let mut open: BTreeSet<String> =
        base.0.iter().filter(|path| is_of_ci.fit(path) || is_of_hooks.fit(path)).cloned().collect();
    let mut seen = open.clone();
    while let Some(file) = open.pop_first() {
        let Some(text) = text(&file, read) else { continue };
        let splits: &[char] = if is_yaml(&file) { &['{', ',', '['] } else { &[] };
        let parts: Vec<&str> = text.lines().flat_map(|line| line.split(splits)).collect();
        let texts = |meant: &dyn Fn(&str) -> bool| {
            let commands = parts.iter().filter(|part| meant(part)).map(|part| command_of(part));
            without_places(&commands.collect::<Vec<_>>().join("\n"))
        };
        let (all, commands) = (texts(&|_| true), texts(&|part| !is_yaml(&file) || is_command(part)));
        let mut has = |path: &str| base.has(path);
        let folders = folders(&parts, base);
        for (makefile, recipes) in recipes(&commands, &folders, base, read) {
            found.scripts.extend(run_by(&makefile, &recipes, &mut has, is_script));
            made.extend(run_by(&makefile, &recipes, &mut has, is_source));
        }
        for folder in folders {
            let script = format!("{folder}/-");
            found.scripts.extend(run_by(&script, &all, &mut has, is_script));
            let run = run_by(&script, &commands, &mut has, |path| !DOCUMENTS.iter().any(|it| path.ends_with(it)));
            if is_of_hooks.fit(&file) { of_hooks.extend(run) } else { found.others.extend(run) }
        }
        if !is_of_hooks.fit(&file) {
            let named = named(&file, &parts, &commands, base);
            open.extend(named.iter().filter(|path| is_yaml(path) && seen.insert((*path).clone())).cloned());
            found.others.extend(named);
        }
    }
    found.scripts.extend(with_called(of_hooks, read));
    found.others.retain(|path| !found.scripts.contains(path) && !is_of_ci.fit(path));
    let checks: Vec<String> =
        made.iter().chain(&found.others).filter(|path| is_source(path) && is_check(path, read)).cloned().collect();
    found.others.retain(|path| !checks.contains(path));
    found.scripts.extend(checks);
    found
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

/// Returns the words of a command, without quotes and brackets around them.
fn plain_words(command: &str) -> Vec<&str> {
    let words = command.split_whitespace().map(|word| word.trim_matches(['"', '\'', '(', ')', '`']));
    words.filter(|word| !word.is_empty()).collect()
}

/// Returns whether a word may precede the program of a command.
fn is_before_a_command(word: &str) -> bool {
    const STARTERS: [&str; 15] =
        ["sudo", "env", "time", "exec", "nice", "nohup", "then", "do", "else", "!", "(", "{", "sh", "bash", "-"];
    STARTERS.contains(&word) || matches!(word, "-c" | "-e" | "-ec" | "-lc" | "-E") || word.contains('=')
}

/// Returns the recipes of the targets that commands build in these folders, each with the path of
/// its Makefile.
fn recipes(commands: &str, folders: &BTreeSet<String>, base: &BaseFiles, read: Read<'_>) -> Vec<(String, String)> {
    let commands = commands.split(['\n', ';', '|', '&']).map(plain_words);
    let made = commands.filter_map(|words| words.iter().position(|word| starts_make(word)).map(|at| (words, at)));
    let made = made.filter(|(words, at)| words[..*at].iter().all(|word| is_before_a_command(word)));
    let made = made.map(|(words, at)| words[at + 1..].to_vec());
    let mut found = Vec::new();
    for command in made.take(MOST_MADE).filter(|words| !words.iter().any(|word| SAYS_OF_ITSELF.contains(word))) {
        let entered = command.windows(2).find(|pair| matches!(pair[0], "-C" | "--directory")).map(|pair| pair[1]);
        let below = folders.iter().filter_map(|folder| inside(folder, entered.unwrap_or(".")));
        let there = below
            .filter_map(|folder| MAKEFILES.iter().filter_map(|name| inside(&folder, name)).find(|path| base.has(path)));
        let texts: Vec<(String, String)> = there.map(|path| (path.clone(), with_included(&path, base, read))).collect();
        let of = |asked: &BTreeSet<&str>| -> Vec<(String, String)> {
            let all = texts.iter().map(|(path, text)| (path.clone(), without_places(&makefiles::recipes(text, asked))));
            all.filter(|(_, recipes)| !recipes.is_empty()).collect()
        };
        let is_target = |(at, word): (usize, &&str)| {
            let is_value = at > 0 && matches!(command[at - 1], "-C" | "--directory" | "-f" | "--file" | "--makefile");
            !is_value && !word.starts_with('-') && !word.contains(['=', '$']) && word.parse::<u32>().is_err()
        };
        // Without a target, `make` builds the first one. A target in a variable is unknown and
        // counts as none.
        let has_target = command.iter().enumerate().any(is_target);
        found.extend(of(&if has_target { command.iter().copied().collect() } else { BTreeSet::new() }));
    }
    found
}

/// Returns a Makefile joined with the files of the base that it includes by a plain name.
fn with_included(makefile: &str, base: &BaseFiles, read: Read<'_>) -> String {
    let (mut whole, mut open, mut seen) = (String::new(), vec![makefile.to_owned()], BTreeSet::new());
    while let Some(path) = open.pop().filter(|_| seen.len() < MOST_MADE) {
        let Some(text) = text(&path, read).filter(|_| seen.insert(path.clone())) else { continue };
        open.extend(makefiles::included(&path, &text).into_iter().filter(|path| base.has(path)));
        whole.push_str(&text);
        whole.push('\n');
    }
    whole
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

/// Returns the command in a part of a line of a CI file, without the key before it.
fn command_of(part: &str) -> &str {
    let part = part.trim_start().trim_start_matches("- ");
    let keyed = part.split_once(':').filter(|(key, _)| COMMAND_KEYS.contains(key));
    keyed.map_or(part, |(_, command)| command.trim_start())
}
