//! Checks that a project defines itself: recipes of a justfile, targets of a Makefile, and scripts.

use super::facts::ProjectFacts;
use super::{CheckEffect, Findings};
use std::collections::{BTreeMap, BTreeSet};

/// The recipes that are checks, in the order in which they run.
const WANTED: [(&str, CheckEffect); 5] = [
    ("fmt-check", CheckEffect::Builds),
    ("format-check", CheckEffect::Builds),
    ("lint", CheckEffect::Builds),
    ("check", CheckEffect::Tests),
    ("test", CheckEffect::Tests),
];

/// Other names of checks. The first that exists is used if none of `WANTED` does.
const OTHERS: [&str; 5] = ["tests", "unit-test", "unit-tests", "unittest", "ci"];
/// Targets that build, best first. The first target of a Makefile may do something else.
const BUILDING: [&str; 2] = ["all", "build"];
/// Endings of sources that make compiles by its built-in rules.
const COMPILED: [&str; 4] = [".c", ".cc", ".cpp", ".cxx"];

/// Scripts that are checks, by the name of their step.
#[rustfmt::skip]
pub(super) const SCRIPTS: [(&str, &[&str]); 3] = [
    ("lint", &["lint.sh", "scripts/lint.sh", "scripts/lint", "script/lint"]),
    ("check", &["check.sh", "scripts/check.sh", "scripts/check", "script/check"]),
    ("test", &[
        "test.sh", "run-tests.sh", "run_tests.sh", "tests/run.sh", "tests/run-tests.sh", "test/run.sh", "scripts/test.sh",
        "scripts/test", "script/test",
    ]),
];

const JUSTFILES: [&str; 3] = ["justfile", "Justfile", ".justfile"];
/// In the order of GNU make.
const MAKEFILES: [&str; 3] = ["GNUmakefile", "makefile", "Makefile"];
const TASKFILES: [&str; 4] = ["Taskfile.yml", "Taskfile.yaml", "taskfile.yml", "taskfile.yaml"];

/// The names of recipes, each with its prerequisites.
type Recipes<'t> = BTreeMap<&'t str, Vec<&'t str>>;

/// Returns the findings of the first kind of recipes that has any.
pub(super) fn look(facts: &ProjectFacts) -> Vec<Findings> {
    let just = facts.first(&JUSTFILES).map(|file| find_recipes(facts, "just", file, &just_recipes(facts.text(file))));
    let task = facts.first(&TASKFILES).map(|file| find_recipes(facts, "task", file, &task_names(facts.text(file))));
    let make = facts.first(&MAKEFILES).map(|file| find_recipes(facts, "make", file, &make_targets(facts.text(file))));
    let make = make.or_else(|| {
        let why = obstacle(facts, "make").filter(|_| facts.first(&["configure", "configure.ac"]).is_some())?;
        let mut found = Findings::new("make", "configure");
        found.remark(format!("left out: `make check`, because {why}"));
        Some(found)
    });
    just.into_iter().chain(task).chain(make).chain(scripts(facts)).collect()
}

/// Returns the names of a program's recipes, if its file exists.
pub(super) fn names<'f>(facts: &'f ProjectFacts, program: &str) -> Option<BTreeSet<&'f str>> {
    let recipes = match program {
        "make" => make_targets(facts.text(facts.first(&MAKEFILES)?)),
        "just" => just_recipes(facts.text(facts.first(&JUSTFILES)?)),
        _ => task_names(facts.text(facts.first(&TASKFILES)?)),
    };
    Some(recipes.into_keys().collect())
}

/// Returns the reason why no recipe of a program can run.
pub(super) fn obstacle(facts: &ProjectFacts, program: &str) -> Option<&'static str> {
    let made = ["configure", "configure.ac", "configure.in", "Makefile.in", "Makefile.am"];
    (program == "make" && facts.first(&made).is_some())
        .then_some("`./configure` makes the Makefile, and a clean room has none that is made")
}

fn find_recipes(facts: &ProjectFacts, program: &'static str, file: &'static str, recipes: &Recipes<'_>) -> Findings {
    let mut found = Findings::new(program, file);
    let mut chosen: Vec<(&str, CheckEffect)> = Vec::new();
    for (name, effect) in WANTED.into_iter().rev().filter(|(name, _)| recipes.contains_key(name)) {
        chosen.retain(|(other, _)| !runs(recipes, name, other));
        if !chosen.iter().any(|(other, _)| runs(recipes, other, name)) {
            chosen.insert(0, (name, effect));
        }
    }
    if chosen.is_empty() {
        chosen
            .extend(OTHERS.into_iter().find(|name| recipes.contains_key(name)).map(|name| (name, CheckEffect::Tests)));
    }
    if let (Some(why), false) = (obstacle(facts, program), chosen.is_empty()) {
        let names: Vec<String> = chosen.iter().map(|(name, _)| format!("`{program} {name}`")).collect();
        found.remark(format!("left out: {}, because {why}", names.join(", ")));
        return found;
    }
    for (name, effect) in chosen {
        if program == "make" && facts.has(name) && !runs(recipes, ".PHONY", name) {
            found.remark(format!(
                "left out: `make {name}`, because `{name}` is there and not .PHONY: make would do nothing"
            ));
            continue;
        }
        found.check_by(facts, program, effect, name, format!("{program} {name}"));
    }
    let compiles = ["$(CC)", "${CC}", "$(CXX)", "${CXX}", "gcc", "g++", "clang", "cc "];
    let is_c = compiles.iter().any(|word| facts.text(file).contains(word)) || facts.has_ending(&COMPILED);
    let has_goal = recipes.keys().any(|name| !name.starts_with('.'));
    if program == "make" && found.checks.is_empty() && has_goal && is_c && obstacle(facts, program).is_none() {
        let goal = BUILDING.into_iter().find(|name| recipes.contains_key(name));
        let command = goal.map_or_else(|| program.to_owned(), |goal| format!("{program} {goal}"));
        found.check_by(facts, program, CheckEffect::Builds, "build", command);
        found.remark(format!("{file} has no target that tests: this lane only builds"));
    }
    found
}

/// Returns true if running `one` also runs `other`.
fn runs(recipes: &Recipes<'_>, one: &str, other: &str) -> bool {
    let (mut seen, mut next) = (BTreeSet::new(), vec![one]);
    while let Some(name) = next.pop() {
        let first = recipes.get(name).map(Vec::as_slice).unwrap_or_default();
        if first.contains(&other) {
            return true;
        }
        next.extend(first.iter().copied().filter(|name| seen.insert(*name)));
    }
    false
}

/// Reads rules in the syntax of GNU make: `targets: prerequisites`. Included and computed rules are
/// ignored.
fn make_targets(text: &str) -> Recipes<'_> {
    let mut targets = Recipes::new();
    for line in text.lines().filter(|line| !line.starts_with(['\t', '#', ' '])) {
        let line = line.split('#').next().unwrap_or_default();
        let Some((names, rest)) = line.split_once(':') else { continue };
        let rest = rest.trim_start_matches(':');
        if names.contains('=') || rest.contains('=') {
            continue; // a variable, of the whole file or of one target
        }
        let first = rest.split(';').next().unwrap_or_default().split_whitespace();
        for name in names.split_whitespace() {
            targets.entry(name).or_default().extend(first.clone());
        }
    }
    targets
}

/// Reads recipes in the syntax of just: `name parameters: dependencies`. Recipes that need an
/// argument are ignored.
fn just_recipes(text: &str) -> Recipes<'_> {
    let mut recipes = Recipes::new();
    for line in text.lines().filter(|line| !line.starts_with(['\t', '#', ' ', '['])) {
        let line = line.split(" #").next().unwrap_or_default();
        let Some((head, first)) = line.split_once(':') else { continue };
        let mut words = head.split_whitespace();
        let Some(name) = words.next().map(|name| name.trim_start_matches('@')) else { continue };
        let is_optional = |word: &str| word.contains('=') || word.starts_with('*');
        if !first.starts_with('=') && words.all(is_optional) {
            let split = |c: char| c.is_whitespace() || "()&".contains(c);
            recipes.insert(name, first.split(split).filter(|name| !name.is_empty()).collect());
        }
    }
    recipes
}

/// Reads the tasks of a Taskfile: the keys one level below `tasks:`.
fn task_names(text: &str) -> Recipes<'_> {
    let lines = text.lines().skip_while(|line| line.trim_end() != "tasks:").skip(1);
    let mut lines = lines.filter(|line| !line.trim().is_empty() && !line.trim_start().starts_with('#')).peekable();
    let indent = lines.peek().map_or(0, |line| line.len() - line.trim_start().len());
    let below =
        lines.take_while(|line| line.starts_with(' ')).filter(|line| line.len() - line.trim_start().len() == indent);
    below.filter_map(|line| Some((line.trim().split_once(':')?.0, Vec::new()))).collect()
}

fn scripts(facts: &ProjectFacts) -> Option<Findings> {
    let mut found: Option<Findings> = None;
    for (name, paths) in SCRIPTS {
        if let Some(path) = facts.first(paths) {
            let effect = if name == "lint" { CheckEffect::Builds } else { CheckEffect::Tests };
            found.get_or_insert_with(|| Findings::new("script", path)).check(effect, name, shell(facts, path));
        }
    }
    if found.as_ref().is_none_or(|found| !found.has("test")) {
        let folders = [("tests/", "bats tests"), ("test/", "bats test")];
        let has_bats =
            |folder: &str| facts.paths.iter().any(|path| path.starts_with(folder) && path.ends_with(".bats"));
        if let Some((folder, run)) = folders.into_iter().find(|(folder, _)| has_bats(folder)) {
            let found = found.get_or_insert_with(|| Findings::new("script", folder));
            found.check_by(facts, "bats", CheckEffect::Tests, "bats", run);
        }
    }
    found
}

/// Returns the start of a script: directly if it is executable, otherwise by the shell for which it
/// was written.
fn shell(facts: &ProjectFacts, path: &str) -> String {
    let first = facts.text(path).lines().next().unwrap_or_default();
    match first.starts_with("#!") {
        true if facts.has_program(&format!("./{path}")) => format!("./{path}"),
        true if first.contains("bash") => format!("bash {path}"),
        true | false => format!("sh {path}"),
    }
}
