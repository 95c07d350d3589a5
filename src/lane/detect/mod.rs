//! Detection of a project's checks from its files. Pure: it turns facts into the lane `verify`,
//! written as a YAML file that users may keep.
//!
//! All commands come from tables in this module. The project only selects among them: by its
//! package manager, its configured tools and its recipes. Checks with missing programs are left
//! out, with a remark.

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
    ACTIONS, ENVIRONMENTS, FOLDERS, GATHERING, MARKERS, ProjectFacts, is_looked_into, is_read, is_started, programs,
};

pub use style::YamlStyle;

use super::{Lane, LaneError};
use crate::yaml::listed;
use std::collections::{BTreeMap, BTreeSet};

/// The name of the detected lane, the default gate.
pub const DETECTED_LANE: &str = "verify";

/// The checks detected in a project.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DetectedLane {
    /// The files that led to steps: `Cargo.toml`, `web/package.json`.
    pub markers: Vec<String>,
    /// Omitted checks with the reasons, and necessary preparations, one line each.
    pub remarks: Vec<String>,
    checks: Vec<DetectedCheck>,
    /// Ignored files that the room needs, each with the checks that read it.
    included: BTreeMap<String, BTreeSet<String>>,
    /// The form of the written file.
    pub style: YamlStyle,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct DetectedCheck {
    name: String,
    run: String,
    /// The folder of the check; `None` for the root.
    dir: Option<String>,
    effect: CheckEffect,
    /// The reason why a failure is only reported.
    may_fail: Option<String>,
    env: BTreeMap<String, String>,
    /// The file of the project's CI that the check comes from.
    from: Option<String>,
}

/// The end of a remark about a tool of the project.
const NOT_INSTALLED: &str = ", because it is configured but not installed";

/// The effect of a check on files, which decides about parallel checks. Checks run in the order of
/// the variants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum CheckEffect {
    /// Reads the sources, and writes only to caches with locks.
    Reads,
    /// May write anywhere, so it runs alone.
    Builds,
    /// A test. It may write anywhere, so it runs alone.
    Tests,
}

/// The findings for one stack or one recipe file.
#[derive(Debug)]
struct Findings {
    stack: &'static str,
    marker: String,
    checks: Vec<DetectedCheck>,
    remarks: Vec<String>,
    /// A remark on an omission that steps of the project's CI may compensate.
    unless_by_ci: Option<String>,
}

/// The stacks, each with its detection function.
const STACKS: [fn(&ProjectFacts) -> Option<Findings>; 8] = [
    toolchains::cargo,
    node::look,
    python::look,
    toolchains::go,
    toolchains::ruby,
    toolchains::swift,
    toolchains::gradle,
    toolchains::maven,
];

/// Detects the checks of every stack. Without checks in the root, it searches the subfolders.
/// Otherwise it names the subfolders with separate projects.
pub fn detect(facts: &ProjectFacts) -> DetectedLane {
    let mut detected = one_folder(facts);
    node::leave_out_unable(&mut detected, facts);
    detected.style = YamlStyle::detect(facts);
    if detected.checks.iter().any(|check| check.run.contains("yamllint")) {
        detected.style = YamlStyle { is_for_yamllint: true, has_spaced_braces: false, ..detected.style };
    }
    let below = facts.below.iter().map(|(folder, facts)| (folder, one_folder(facts)));
    if detected.is_empty() {
        below.for_each(|(folder, found)| detected.add(folder, found));
        detected.checks.sort_by_key(|check| check.effect);
        return detected;
    }
    let is_checked =
        |folder: &str, marker: &String| detected.markers.contains(marker) && covers::covers(facts, folder, marker);
    let in_folder = |(folder, found): (&String, DetectedLane)| -> Vec<String> {
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

/// Detects the checks of one folder. Recipes (just, make, scripts) are used only if no stack has
/// tests, because they usually run the same tests. Without any other check, Python tests are
/// detected by their names.
fn one_folder(facts: &ProjectFacts) -> DetectedLane {
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

/// Gathers all checks into one list, in the order of their effects. Checks of several stacks get
/// distinct names.
fn gather(found: Vec<Findings>) -> DetectedLane {
    let is_mixed = found.iter().filter(|findings| !findings.checks.is_empty()).count() > 1;
    let mut detected = DetectedLane::default();
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
            detected.checks.push(DetectedCheck { name, ..check });
        }
        detected.remarks.extend(findings.remarks);
    }
    detected.checks.sort_by_key(|check| check.effect);
    let programs: BTreeSet<&str> = detected.checks.iter().flat_map(|check| programs_of(&check.run)).collect();
    let mut seen = BTreeSet::new();
    detected.remarks.retain(|remark| {
        let tool = remark.strip_suffix(NOT_INSTALLED).and_then(|start| start.split('`').nth(1));
        tool.is_none_or(|tool| !programs.contains(tool)) && seen.insert(remark.clone())
    });
    detected
}

/// Returns the words of a command, each without the folder before it.
fn programs_of(command: &str) -> impl Iterator<Item = &str> {
    command.split_whitespace().filter_map(|word| word.rsplit('/').next())
}

impl DetectedLane {
    /// Returns true if no check was found.
    pub fn is_empty(&self) -> bool {
        self.checks.is_empty()
    }

    /// Adds the checks of a subfolder.
    fn add(&mut self, folder: &str, found: Self) {
        self.markers.extend(found.markers.into_iter().map(|marker| format!("{folder}/{marker}")));
        self.remarks.extend(found.remarks.into_iter().map(|remark| format!("{folder}: {remark}")));
        let dir = Some(folder.to_owned());
        let checks = found.checks.into_iter();
        self.checks.extend(checks.map(|check| DetectedCheck {
            name: format!("{folder}/{}", check.name),
            dir: dir.clone(),
            ..check
        }));
    }

    /// Returns true if a check judges the form of the sources, as a lint does.
    pub fn is_lint(&self, name: &str) -> bool {
        self.checks.iter().any(|check| check.name == name && check.is_lint())
    }

    /// Makes the failure of a check only reported, with the reason.
    pub fn let_fail(&mut self, name: &str, why: &str) {
        let named = self.checks.iter_mut().filter(|check| check.name == name);
        named.for_each(|check| check.may_fail = Some(why.to_owned()));
    }

    /// Leaves a check out, with the reason. A test is kept, and so is the only check. Returns true
    /// if the check was left out.
    pub fn leave_out(&mut self, name: &str, why: &str) -> bool {
        let is_it = |check: &mut DetectedCheck| check.name == name && check.effect != CheckEffect::Tests;
        if self.checks.iter().all(|check| check.name == name) {
            return false;
        }
        let left_out: Vec<DetectedCheck> = self.checks.extract_if(.., is_it).collect();
        self.remarks.extend(left_out.iter().map(|check| format!("left out: `{}`, because {why}", check.run)));
        !left_out.is_empty()
    }

    /// Adds an ignored file that a check reads to the room. Returns true if the pair is new.
    pub fn include(&mut self, path: &str, name: &str) -> bool {
        self.included.entry(path.to_owned()).or_default().insert(name.to_owned())
    }

    /// Drops the ignored files that help none of the checks that read them.
    pub fn keep_included(&mut self, is_helped: impl Fn(&str) -> bool) {
        self.included.values_mut().for_each(|names| names.retain(|name| is_helped(name)));
        self.included.retain(|_, names| !names.is_empty());
    }

    /// Returns the ignored files for the room.
    pub fn included(&self) -> impl Iterator<Item = &str> {
        self.included.keys().map(String::as_str)
    }

    /// Writes the file of the lane, with comments.
    pub fn yaml(&self) -> String {
        page::write(self)
    }

    /// Parses the detected lane from its file.
    ///
    /// # Errors
    ///
    /// When the lane has no steps, as for every lane without steps.
    pub fn lane(&self) -> Result<Lane, LaneError> {
        super::parse(DETECTED_LANE, "(detected)", &self.yaml())
    }
}

impl DetectedCheck {
    /// Returns true if the check judges the form of the sources, not their behavior.
    fn is_lint(&self) -> bool {
        let is_lint = |part: &str| ["fmt", "format", "lint", "types", "typecheck", "typing", "vet"].contains(&part);
        self.effect == CheckEffect::Reads
            || (self.effect == CheckEffect::Builds && self.name.split(['-', '/']).any(is_lint))
    }
}

impl Findings {
    fn new(stack: &'static str, marker: impl Into<String>) -> Self {
        Self { stack, marker: marker.into(), checks: Vec::new(), remarks: Vec::new(), unless_by_ci: None }
    }

    fn check(&mut self, effect: CheckEffect, name: &str, run: impl Into<String>) {
        self.checks.push(DetectedCheck {
            name: name.into(),
            run: run.into(),
            dir: None,
            effect,
            may_fail: None,
            env: BTreeMap::new(),
            from: None,
        });
    }

    /// Adds a check that needs this program. Without the program, the check is left out.
    fn check_by(
        &mut self,
        facts: &ProjectFacts,
        program: &str,
        effect: CheckEffect,
        name: &str,
        run: impl Into<String>,
    ) {
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

    /// Remarks that a check is left out because its program is missing.
    fn lacks(&mut self, what: &str, program: &str) {
        self.remark(lacking(what, program));
    }

    /// Remarks that a tool is left out. The remark goes if another check runs the tool.
    fn not_installed(&mut self, tool: &str) {
        self.remark(format!("left out: `{tool}`{NOT_INSTALLED}"));
    }

    fn has(&self, name: &str) -> bool {
        self.checks.iter().any(|check| check.name == name)
    }

    fn has_tests(&self) -> bool {
        self.checks.iter().any(|check| check.effect == CheckEffect::Tests)
    }
}

/// Formats the remark about a missing program.
fn lacking(what: &str, program: &str) -> String {
    format!("left out: {what}, because `{program}` is not installed")
}

#[cfg(test)]
mod tests;
