//! The choice of checks to keep besides those that the project's own CI runs. Pure.

use super::ci::{self, CiChecks};
use super::facts::ProjectFacts;
use super::{CheckEffect, DetectedCheck, Findings};
use serde_json::Value;
use std::collections::BTreeMap;

/// The stack of the steps that come from the project's CI.
pub(super) const OWN: &str = "own";

/// Lints that no file of the project requests.
const UNASKED: [&str; 4] = ["cargo fmt", "cargo clippy", "gofmt", "go vet"];

/// The reason why a lint is only reported if the project has no readable CI.
const NOT_ASKED: &str = "the project does not ask for it; delete `allow_failure` to require it";

/// Removes checks of a stack that the project's CI replaces, and lints that the CI does not run.
pub(super) fn yield_to(findings: &mut Findings, own: &CiChecks, facts: &ProjectFacts) {
    let stack = findings.stack;
    let (is_tested, is_known) = (own.tests(stack), own.knows(stack));
    let is_built = own.has(stack, CheckEffect::Builds);
    let lost = findings.unless_by_ci.take().filter(|_| !is_known);
    findings.remarks.extend(lost);
    let mut unused = Vec::new();
    let scripts = reached_scripts(own, facts);
    findings.checks.retain_mut(|check| {
        let is_lint = check.is_lint();
        let tool = tool_of(check, facts);
        if own.runs(check) || is_run_by(&scripts, check) {
            return false;
        }
        match check.effect {
            CheckEffect::Tests => !is_tested,
            CheckEffect::Builds if !is_lint => !(is_tested || is_built),
            _ if own.tools.contains(&tool) => !own.has_tool(&tool),
            _ if is_known => {
                unused.push(format!("`{}`", check.run));
                false
            }
            _ => {
                if UNASKED.contains(&tool.as_str()) {
                    check.may_fail = Some(NOT_ASKED.into());
                }
                true
            }
        }
    });
    if !unused.is_empty() {
        findings.remark(format!("left out: {}, because the project's own CI does not run it", unused.join(", ")));
    }
}

/// Returns the scripts of `package.json` that steps of the CI run, also through other scripts, each
/// with its command.
fn reached_scripts(own: &CiChecks, facts: &ProjectFacts) -> BTreeMap<String, String> {
    let manifest: Value = serde_json::from_str(facts.text("package.json")).unwrap_or_default();
    let Some(scripts) = manifest["scripts"].as_object() else { return BTreeMap::new() };
    let of_root = own.checks.iter().filter(|own| own.check.dir.is_none());
    let mut open: Vec<String> = of_root.map(|own| own.check.run.clone()).collect();
    let mut found = BTreeMap::new();
    while let Some(command) = open.pop() {
        let named = scripts_in(&command);
        let is_named = |script: &str| named.iter().any(|name| is_run_for(script, name));
        for (script, text) in scripts.iter().filter(|(script, _)| is_named(script)) {
            let text = text.as_str().unwrap_or_default().to_owned();
            if found.insert(script.clone(), text.clone()).is_none() {
                open.push(text);
            }
        }
    }
    found
}

/// Returns whether a package manager runs a script if it runs the one of this name, which may end
/// with `*`: `pretest` and `posttest` belong to `test`.
fn is_run_for(script: &str, name: &str) -> bool {
    let around = ["pre", "post"].iter().filter_map(|word| script.strip_prefix(word));
    let fits = |script: &str| name.strip_suffix('*').map_or(script == name, |start| script.starts_with(start));
    [script].into_iter().chain(around).any(fits)
}

/// Returns the words of a command that may name scripts of `package.json`: `lint` and `test` in
/// `npm run lint && yarn test`, and the arguments of `run-s` and `npm-run-all`.
fn scripts_in(command: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for part in command.split(['&', '|', ';']) {
        let mut words = part.split_whitespace().skip_while(|word| word.contains('='));
        match words.next() {
            Some("npm" | "pnpm" | "yarn") => {
                found.extend(words.find(|word| *word != "run" && !word.starts_with('-')));
            }
            Some("bun") => found.extend(words.skip_while(|word| *word != "run").nth(1)),
            Some("run-s" | "run-p" | "npm-run-all") => found.extend(words),
            _ => {}
        }
    }
    found
}

/// Returns whether one of these scripts is the check, or uses its tool.
fn is_run_by(scripts: &BTreeMap<String, String>, check: &DetectedCheck) -> bool {
    let has = |text: &String, tool: &str| text.split([' ', '&', ';', '|']).any(|word| name_of(word) == tool);
    let tool = check.run.split_whitespace().find(|word| *word != "npx").map_or("", name_of);
    let uses_tool = check.run.contains("node_modules/.bin/") && scripts.values().any(|text| has(text, tool));
    uses_tool || scripts_in(&check.run).iter().any(|name| scripts.contains_key(*name))
}

fn name_of(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Pairs of build systems that build the same if a project has both, each with its stack, name and
/// programs. The second one is used only if the first one is not installed.
const TWINS: [[(&str, &str, [&str; 2]); 2]; 2] = [
    [("gradle", "Gradle", ["gradle", "gradlew"]), ("maven", "Maven", ["mvn", "mvnw"])],
    [("cmake", "CMake", ["cmake", "ctest"]), ("meson", "Meson", ["meson", "ninja"])],
];

/// Keeps one of two build systems: the one that the project's CI runs, otherwise the installed one.
pub(super) fn one_of_two_builds(found: &mut [Findings], own: &CiChecks, facts: &ProjectFacts) {
    for twins in &TWINS {
        let has_checks =
            |stack: &str| found.iter().any(|findings| findings.stack == stack && !findings.checks.is_empty());
        if !twins.iter().all(|(stack, ..)| has_checks(stack)) {
            continue;
        }
        let [is_first, is_second] = twins.each_ref().map(|(stack, _, programs)| {
            own.native.contains_key(stack) || programs.iter().any(|program| own.tools.contains(*program))
        });
        let [has_first, has_second] = twins.each_ref().map(|(.., programs)| facts.has_program(programs[0]));
        let is_second = if is_first == is_second { has_second && !has_first } else { is_second };
        let [first, second] = twins;
        let ((_, name, _), (other, ..)) = if is_second { (second, first) } else { (first, second) };
        for findings in found.iter_mut().filter(|findings| findings.stack == *other) {
            let left_out: Vec<String> = findings.checks.drain(..).map(|check| format!("`{}`", check.run)).collect();
            findings.remark(format!("left out: {}, because {name} builds and tests the same", left_out.join(", ")));
        }
    }
}

/// Returns the tool of a check. For a script of `package.json`, this is the script.
fn tool_of(check: &DetectedCheck, facts: &ProjectFacts) -> String {
    if check.run.contains("gofmt") {
        return "gofmt".into();
    }
    let words = check.run.split_whitespace().filter(|word| !word.starts_with("PYTHONPATH="));
    let words: Vec<String> = words.map(str::to_owned).collect();
    match words.iter().position(|word| word == "run") {
        Some(run) if facts.has("package.json") && run == 1 => format!("script {}", words[run + 1..].join(" ")),
        Some(run) => ci::tool(&words[run + 1..]),
        None => ci::tool(&words),
    }
}

/// Turns the steps of the project's CI into findings like those of a stack.
pub(super) fn findings(own: CiChecks) -> Findings {
    let mut findings = Findings::new(OWN, "");
    findings.remarks = own.remarks;
    findings.checks = own.checks.into_iter().map(|own| own.check).collect();
    findings
}
