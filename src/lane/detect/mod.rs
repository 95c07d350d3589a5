//! Guesses how a project is checked from the files that lie in it: facts in, the lane `verify` out, as YAML that may be kept. Pure.
//!
//! Commands come from tables here and never from the project, which only decides which of them are used: its own package
//! manager, the tools it has configured, the recipes it has. What is not installed is left out, and said.

mod choose;
mod ci;
mod covers;
mod environments;
mod facts;
mod native;
mod node;
mod page;
mod python;
mod recipes;
mod style;
mod toolchains;

pub use facts::{
    ACTIONS, ENVIRONMENTS, FOLDERS, Facts, GATHERING, MARKERS, is_looked_into, is_read, is_started, programs,
};

pub use style::Style;

use super::{Lane, LaneFault};
use crate::yaml::listed;
use std::collections::{BTreeMap, BTreeSet};

/// The name of the lane that is detected: the default gate.
pub const DETECTED_LANE: &str = "verify";

/// What a project's files say about how it is checked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Detected {
    /// The files that led to steps: `Cargo.toml`, `web/package.json`.
    pub markers: Vec<String>,
    /// What was left out and why, and what has to be done first; a line each.
    pub remarks: Vec<String>,
    checks: Vec<Check>,
    /// Ignored files that the room needs, each with the checks that read it.
    included: BTreeMap<String, BTreeSet<String>>,
    /// The form of the files that are written.
    pub style: Style,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Check {
    name: String,
    run: String,
    /// The folder that it runs in; the root when absent.
    dir: Option<String>,
    effect: Effect,
    /// The reason why its failure is only reported.
    may_fail: Option<String>,
    env: BTreeMap<String, String>,
    /// The file of the project's own CI that it comes from.
    from: Option<String>,
}

/// What a check does besides looking, which decides what it may run beside. In the order in which checks run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Effect {
    /// It reads the sources and writes to caches that know locks.
    Reads,
    /// It may write anywhere: it runs alone.
    Builds,
    /// The same, and it is a test.
    Tests,
}

/// What one stack or one recipe file gives.
#[derive(Debug)]
struct Findings {
    stack: &'static str,
    marker: String,
    checks: Vec<Check>,
    remarks: Vec<String>,
    /// A remark on what is left out, for which the steps of the project's CI may stand in.
    unless_by_ci: Option<String>,
}

/// The ecosystems, each with its own way to look.
const STACKS: [fn(&Facts) -> Option<Findings>; 8] = [
    toolchains::cargo,
    node::look,
    python::look,
    toolchains::go,
    toolchains::ruby,
    toolchains::swift,
    toolchains::gradle,
    toolchains::maven,
];

/// Looks for every stack. Where the root has none, the folders below are looked into; else those that have others are named.
pub fn detect(facts: &Facts) -> Detected {
    let mut detected = one_folder(facts);
    node::leave_out_unable(&mut detected, facts);
    detected.style = Style::of(facts);
    if detected.checks.iter().any(|check| check.run.contains("yamllint")) {
        detected.style = Style { is_for_yamllint: true, has_spaced_braces: false, ..detected.style };
    }
    let below = facts.below.iter().map(|(folder, facts)| (folder, one_folder(facts)));
    if detected.is_empty() {
        below.for_each(|(folder, found)| detected.add(folder, found));
        detected.checks.sort_by_key(|check| check.effect);
        return detected;
    }
    let is_checked =
        |folder: &str, marker: &String| detected.markers.contains(marker) && covers::covers(facts, folder, marker);
    let in_folder = |(folder, found): (&String, Detected)| -> Vec<String> {
        let others = found.markers.into_iter().filter(|marker| !is_checked(folder, marker));
        others.map(|marker| format!("{folder}/{marker}")).collect()
    };
    let others: Vec<String> = below.flat_map(in_folder).collect();
    if !others.is_empty() {
        let others = listed(others.iter().map(String::as_str));
        detected
            .remarks
            .push(format!("left out: {others}, because the root has checks of its own; add steps with `dir`"));
    }
    detected
}

/// Looks into one folder. Recipes (just, make, scripts) are used only where no stack has tests: they mostly run the same ones. Where there is
/// nothing of all that, tests of Python are told by their names.
fn one_folder(facts: &Facts) -> Detected {
    let own = ci::look(facts);
    let mut found: Vec<Findings> = STACKS.iter().filter_map(|look| look(facts)).collect();
    found.extend(native::look(facts, &own.native));
    choose::one_of_two_builds(&mut found, &own, facts);
    found.iter_mut().for_each(|findings| choose::yield_to(findings, &own, facts));
    found.push(choose::findings(own));
    let mut has_tests = found.iter().any(Findings::has_tests);
    for mut recipes in recipes::look(facts) {
        recipes
            .checks
            .retain(|check| !found.iter().flat_map(|other| &other.checks).any(|other| other.run == check.run));
        if has_tests && !recipes.checks.is_empty() {
            let steps: Vec<String> = recipes.checks.drain(..).map(|check| format!("`{}`", check.run)).collect();
            recipes.remark(format!(
                "left out: {}, because other steps test already; add what does more",
                steps.join(", ")
            ));
        }
        has_tests |= recipes.has_tests();
        found.push(recipes);
    }
    if found.iter().all(|findings| findings.checks.is_empty()) {
        let tests = python::of_tests(facts);
        has_tests |= tests.as_ref().is_some_and(Findings::has_tests);
        found.extend(tests);
    }
    let mut detected = gather(found);
    detected.remarks.extend(facts.unreadable.iter().map(|(path, why)| format!("left out: {path}, because {why}")));
    if !has_tests && !detected.checks.is_empty() {
        detected.remarks.push("no tests were found: this lane says little".into());
    }
    detected
}

/// One list of checks, in the order of what they do; names of several stacks are told apart.
fn gather(found: Vec<Findings>) -> Detected {
    let is_mixed = found.iter().filter(|findings| !findings.checks.is_empty()).count() > 1;
    let mut detected = Detected::default();
    for findings in found {
        let is_own = findings.stack == choose::OWN;
        if is_own {
            let files: Vec<String> = findings.checks.iter().filter_map(|check| check.from.clone()).collect();
            files.into_iter().for_each(|file| {
                if !detected.markers.contains(&file) {
                    detected.markers.push(file)
                }
            });
        } else if !findings.checks.is_empty() {
            detected.markers.push(findings.marker);
        }
        for check in findings.checks {
            let name = if is_mixed && !is_own { format!("{}-{}", findings.stack, check.name) } else { check.name };
            detected.checks.push(Check { name, ..check });
        }
        detected.remarks.extend(findings.remarks);
    }
    detected.checks.sort_by_key(|check| check.effect);
    let mut seen = BTreeSet::new();
    detected.remarks.retain(|remark| seen.insert(remark.clone()));
    detected
}

impl Detected {
    /// Whether nothing was found that could check the project.
    pub fn is_empty(&self) -> bool {
        self.checks.is_empty()
    }

    /// Adds what was found in a folder below.
    fn add(&mut self, folder: &str, found: Self) {
        self.markers.extend(found.markers.into_iter().map(|marker| format!("{folder}/{marker}")));
        self.remarks.extend(found.remarks.into_iter().map(|remark| format!("{folder}: {remark}")));
        let dir = Some(folder.to_owned());
        let checks = found.checks.into_iter();
        self.checks.extend(checks.map(|check| Check {
            name: format!("{folder}/{}", check.name),
            dir: dir.clone(),
            ..check
        }));
    }

    /// Returns whether a check looks at how the sources are written, as a lint does.
    pub fn is_lint(&self, name: &str) -> bool {
        self.checks.iter().any(|check| check.name == name && check.is_lint())
    }

    /// Has the failure of a check only reported, with the reason.
    pub fn let_fail(&mut self, name: &str, why: &str) {
        let named = self.checks.iter_mut().filter(|check| check.name == name);
        named.for_each(|check| check.may_fail = Some(why.to_owned()));
    }

    /// Leaves a check out, with the reason. A test stays, and so does the only check. Returns whether the check was left out.
    pub fn leave_out(&mut self, name: &str, why: &str) -> bool {
        let is_it = |check: &mut Check| check.name == name && check.effect != Effect::Tests;
        if self.checks.iter().all(|check| check.name == name) {
            return false;
        }
        let left_out: Vec<Check> = self.checks.extract_if(.., is_it).collect();
        self.remarks.extend(left_out.iter().map(|check| format!("left out: `{}`, because {why}", check.run)));
        !left_out.is_empty()
    }

    /// Has the room bring an ignored file that a check reads. Returns whether it did not before.
    pub fn include(&mut self, path: &str, name: &str) -> bool {
        self.included.entry(path.to_owned()).or_default().insert(name.to_owned())
    }

    /// Leaves out the ignored files that help none of the checks that read them.
    pub fn keep_included(&mut self, is_helped: impl Fn(&str) -> bool) {
        self.included.values_mut().for_each(|names| names.retain(|name| is_helped(name)));
        self.included.retain(|_, names| !names.is_empty());
    }

    /// The ignored files that the room brings.
    pub fn included(&self) -> impl Iterator<Item = &str> {
        self.included.keys().map(String::as_str)
    }

    /// The lane's file, with comments.
    pub fn yaml(&self) -> String {
        page::write(self)
    }

    /// The lane, as its file would be read.
    ///
    /// # Errors
    /// Where there are no steps, as for every lane without any.
    pub fn lane(&self) -> Result<Lane, LaneFault> {
        super::parse(DETECTED_LANE, "(detected)", &self.yaml())
    }
}

impl Check {
    /// Returns whether it looks at how the sources are written, and not at what they do.
    fn is_lint(&self) -> bool {
        let is_lint = |part: &str| ["fmt", "format", "lint", "types", "typecheck", "typing", "vet"].contains(&part);
        self.effect == Effect::Reads || (self.effect == Effect::Builds && self.name.split(['-', '/']).any(is_lint))
    }
}

impl Findings {
    fn new(stack: &'static str, marker: impl Into<String>) -> Self {
        Self { stack, marker: marker.into(), checks: Vec::new(), remarks: Vec::new(), unless_by_ci: None }
    }

    fn check(&mut self, effect: Effect, name: &str, run: impl Into<String>) {
        self.checks.push(Check {
            name: name.into(),
            run: run.into(),
            dir: None,
            effect,
            may_fail: None,
            env: BTreeMap::new(),
            from: None,
        });
    }

    /// A check that needs this program; without it the check is left out.
    fn check_by(&mut self, facts: &Facts, program: &str, effect: Effect, name: &str, run: impl Into<String>) {
        let run = run.into();
        if facts.has_program(program) {
            self.check(effect, name, run);
        } else {
            self.lacks(&format!("`{run}`"), program);
        }
    }

    fn remark(&mut self, remark: impl Into<String>) {
        self.remarks.push(remark.into());
    }

    /// Says that something is left out because there is no such program.
    fn lacks(&mut self, what: &str, program: &str) {
        self.remark(lacking(what, program));
    }

    fn has(&self, name: &str) -> bool {
        self.checks.iter().any(|check| check.name == name)
    }

    fn has_tests(&self) -> bool {
        self.checks.iter().any(|check| check.effect == Effect::Tests)
    }
}

/// Says that something is left out because there is no such program.
fn lacking(what: &str, program: &str) -> String {
    format!("left out: {what}, because `{program}` is not installed")
}

#[cfg(test)]
mod tests;
