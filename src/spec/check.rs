//! A check that a project's specs match its files. The check reads no files: it receives the specs
//! and then every file of the project. A false statement in a spec is an error. A missing part of a
//! spec, or a module without a spec, is a warning.

use super::Spec;
use super::body::{LAWS, SECTIONS, sections};
use super::coverage::Coverage;
use super::depends::{circles, meant};
use super::file::{SpecReading, read};
use super::law::{Citation, LawTests, cited, is_source};
use crate::yaml::{FilePlace, Problem, Problems, nearest};
use std::collections::BTreeMap;
use std::fmt;

/// The severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// A spec states something false or cannot be read.
    Error,
    /// Something is missing.
    Warning,
}

/// Something wrong or missing. Shown as ``specs/dates/dates.spec.md:5:9: there is no file
/// `src/dates.rs` (…)``.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpecFinding {
    /// The severity.
    pub severity: Severity,
    /// The spec's file. For a module without a spec, the file or folder of the module.
    pub file: String,
    /// The problem, its place in the file and a hint.
    pub problem: Problem,
}

impl fmt::Display for SpecFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&Problems::from(self.problem.clone()).within(&self.file))
    }
}

/// A check in progress.
#[derive(Debug, Default)]
pub struct SpecCheck {
    specs: Vec<Placed>,
    /// The folders of specs that cannot be read. The modules of these specs are unknown.
    broken: Vec<String>,
    cited: Vec<(String, FilePlace, Citation)>,
    coverage: Coverage,
    tests: LawTests,
    findings: Vec<SpecFinding>,
}

/// A spec, and the places of the items in its lists.
#[derive(Debug)]
struct Placed {
    spec: Spec,
    files: Vec<FilePlace>,
    depends_on: Vec<FilePlace>,
}

impl SpecCheck {
    /// Begins a check with the path and the text of each spec.
    pub fn new<'t>(specs: impl IntoIterator<Item = (&'t str, &'t str)>) -> Self {
        let mut check = Self::default();
        for (path, text) in specs {
            match read(text, path) {
                Ok(reading) => check.take(reading),
                Err(problems) => {
                    check.broken.push(folder(path).to_owned());
                    problems.sorted().into_iter().for_each(|problem| check.say(Severity::Error, path, problem));
                }
            }
        }
        let items = check.specs.iter().flat_map(|placed| placed.spec.files.iter().cloned());
        check.coverage = Coverage::of(items.collect());
        check
    }

    /// Returns whether [`see`](Self::see) reads the text of a file with this name.
    pub fn reads(path: &str) -> bool {
        is_source(path) && !path.starts_with("specs/")
    }

    /// Records a file of the project. The text may be empty unless [`reads`](Self::reads) returns
    /// true for the path.
    pub fn see(&mut self, path: &str, text: &str) {
        self.coverage.see(path);
        if Self::reads(path) {
            self.tests.see(path, text);
        }
    }

    /// Returns the items of `files` without a matching file so far. Such a file may exist but be
    /// ignored by the project.
    pub fn unseen(&self) -> Vec<String> {
        self.coverage.missing().map(str::to_owned).collect()
    }

    /// Returns the findings, sorted by file and place. Call it after every file was recorded.
    pub fn findings(mut self) -> Vec<SpecFinding> {
        if self.specs.is_empty() && self.broken.is_empty() {
            let none = Problem::of_file("there are no specs");
            self.say(Severity::Warning, "specs", none.hint("write specs/<module>/<module>.spec.md"));
            return self.findings;
        }
        self.files();
        self.laws();
        self.dependencies();
        self.modules();
        self.findings.sort_by(|a, b| (&a.file, a.problem.place).cmp(&(&b.file, b.problem.place)));
        self.findings
    }

    /// Checks the text of a spec by itself and adds the spec.
    fn take(&mut self, reading: SpecReading<'_>) {
        let SpecReading { spec, module, files, depends_on, body: (body, line) } = reading;
        let (path, name) = (spec.path.clone(), spec.module.as_str());
        if !path.ends_with(&format!("/{name}/{name}.spec.md")) {
            let problem = Problem::at(module, format!("`{name}` does not match the names of its folder and file"));
            let move_it = format!("move the spec to specs/{name}/{name}.spec.md");
            let hint = match folder(&path) {
                own if own == name => move_it,
                own => format!("write `module: {own}`, or {move_it}"),
            };
            self.say(Severity::Error, &path, problem.hint(hint));
        } else if let Some(twin) = self.specs.iter().find(|placed| placed.spec.module == name) {
            let problem = Problem::at(module, format!("`{name}` is also the module of {}", twin.spec.path));
            self.say(Severity::Error, &path, problem.hint("give each module one spec"));
        }
        let there = sections(body, line);
        let end = FilePlace { line: line + body.lines().count().saturating_sub(1), column: 1 };
        for title in SECTIONS.iter().filter(|title| !there.iter().any(|section| section.is(title))) {
            let problem = Problem::at(end, format!("missing section {title}"));
            self.say(Severity::Warning, &path, problem.hint(format!("add `## {title}`")));
        }
        for section in there.iter().filter(|section| section.is(LAWS)) {
            let laws = section.laws();
            if laws.is_empty() {
                let problem = Problem::at(FilePlace { line: section.line, column: 1 }, "no invariants are listed");
                self.say(
                    Severity::Warning,
                    &path,
                    problem.hint("write a numbered item such as `1. Dates are in UTC.` that ends with the name of its test in backticks"),
                );
            }
            for law in laws {
                match cited(&law.text).and_then(Citation::parse) {
                    Some(citation) => {
                        self.tests.want(citation.clone());
                        self.cited.push((path.clone(), law.place, citation));
                    }
                    None => {
                        let problem = Problem::at(law.place, "this invariant names no test");
                        let hint = "end the invariant with the test's name in backticks";
                        self.say(Severity::Warning, &path, problem.hint(hint));
                    }
                }
            }
        }
        self.specs.push(Placed { spec, files, depends_on });
    }

    fn files(&mut self) {
        let missing = self.unseen();
        for Placed { spec, files, .. } in &self.specs {
            for (item, place) in spec.files.iter().zip(files).filter(|(item, _)| missing.contains(item)) {
                let problem = Problem::at(*place, format!("there is no file `{item}`"));
                let problem = problem.hint("correct or remove the path");
                self.findings.push(SpecFinding { severity: Severity::Error, file: spec.path.clone(), problem });
            }
        }
    }

    fn laws(&mut self) {
        for (path, place, citation) in std::mem::take(&mut self.cited) {
            if !self.tests.has(&citation) {
                let problem = Problem::at(place, format!("no source file has the test `{citation}`"));
                self.say(Severity::Error, &path, problem.hint("write the test, or correct its name"));
            }
        }
    }

    fn dependencies(&mut self) {
        let mut edges = Vec::new();
        let mut found = Vec::new();
        let specs = || self.specs.iter().map(|placed| &placed.spec);
        for Placed { spec, depends_on, .. } in &self.specs {
            let mut leads_to = BTreeMap::new();
            for (item, place) in spec.depends_on.iter().zip(depends_on) {
                let is_elsewhere =
                    item.contains('@') || self.broken.iter().any(|name| folder(item) == name || item == name);
                match meant(specs(), item) {
                    Some(at) => drop(leads_to.insert(at, *place)),
                    None if is_elsewhere => {}
                    None => {
                        let problem = Problem::at(*place, format!("no spec has the module `{item}`"));
                        let near = nearest(item, specs().map(|spec| spec.module.as_str()));
                        let hint = near.map_or("write a spec for the module, or remove the entry".into(), |near| {
                            format!("did you mean `{near}`?")
                        });
                        found.push((spec.path.clone(), problem.hint(hint)));
                    }
                }
            }
            edges.push(leads_to);
        }
        let ways: Vec<Vec<usize>> = edges.iter().map(|leads_to| leads_to.keys().copied().collect()).collect();
        for circle in circles(&ways) {
            let names: Vec<&str> =
                circle.iter().chain(circle.first()).map(|at| self.specs[*at].spec.module.as_str()).collect();
            let message = format!("modules depend on each other in a circle: {}", names.join(" → "));
            let problem = Problem {
                place: edges[circle[0]].get(circle.get(1).unwrap_or(&circle[0])).copied(),
                ..Problem::of_file(message).hint("move the shared part into a separate module")
            };
            found.push((self.specs[circle[0]].spec.path.clone(), problem));
        }
        found.into_iter().for_each(|(path, problem)| self.say(Severity::Error, &path, problem));
    }

    fn modules(&mut self) {
        for (path, name) in self.coverage.bare() {
            if !self.broken.contains(&name) {
                let problem = Problem::of_file(format!("no spec covers the module `{name}`"));
                let hint = format!("write specs/{name}/{name}.spec.md with it in `files`");
                self.say(Severity::Warning, &path, problem.hint(hint));
            }
        }
    }

    fn say(&mut self, severity: Severity, file: &str, problem: Problem) {
        self.findings.push(SpecFinding { severity, file: file.into(), problem });
    }
}

/// Returns the name of the folder that contains a file.
fn folder(path: &str) -> &str {
    path.rsplit('/').nth(1).unwrap_or_default()
}

#[cfg(test)]
#[path = "check_tests.rs"]
mod tests;
