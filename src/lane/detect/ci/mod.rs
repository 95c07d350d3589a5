//! The checks that a project's own CI runs. Contains readers for each kind of file, a table of
//! tools, and the selection of commands that become steps. Pure.

mod command;
mod envs;
mod expression;
mod github;
mod gitlab;
mod hatch;
mod packages;
mod resolve;
mod script;
mod tools;

use super::facts::{ProjectFacts, has_table};
use super::{CheckEffect, DetectedCheck};
use crate::yaml::{YamlNode, YamlValue};
use std::collections::{BTreeMap, BTreeSet};
use tools::ToolKind;

pub(super) use command::quoted;
pub(super) use script::{hindrance as script_hindrance, only_reads as script_only_reads, parts as script_parts};
pub(super) use tools::{is_node_tool, programs, tool};

/// A command of the project's CI that may become a step.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Candidate {
    file: String,
    line: usize,
    words: Vec<String>,
    vars: BTreeMap<String, String>,
    dir: String,
    may_fail: bool,
}

/// A line of the project's CI that cannot be a step.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Refusal {
    file: String,
    line: usize,
    text: String,
    why: String,
    /// True if a part of the CI was not read.
    is_unread: bool,
}

type CheckOffer = Result<Candidate, Refusal>;

/// The checks that a project's CI runs.
#[derive(Debug, Default)]
pub(super) struct CiChecks {
    pub(super) checks: Vec<CiCheck>,
    pub(super) remarks: Vec<String>,
    /// The linters that the CI runs.
    pub(super) tools: BTreeSet<String>,
    /// The options for CMake and Meson, each with the file that sets them.
    pub(super) native: BTreeMap<&'static str, (Vec<String>, String)>,
}

/// A step from the project's CI.
#[derive(Debug)]
pub(super) struct CiCheck {
    pub(super) stack: &'static str,
    pub(super) check: DetectedCheck,
    words: Vec<String>,
}

/// The configuration files of pre-commit.
const HOOKS: [&str; 2] = [".pre-commit-config.yaml", ".pre-commit-config.yml"];
/// The maximum number of steps from a project's CI.
const MOST: usize = 16;
/// Variables that only affect the output or the storage of tools, or that belong to the machine.
#[rustfmt::skip]
const NOISE: [&str; 30] = [
    "CARGO_", "RUST_BACKTRACE", "RUSTFLAGS", "RUSTDOCFLAGS", "RUSTUP_", "MIRI", "FORCE_COLOR", "CLICOLOR", "NO_COLOR", "CI", "GITHUB_", "PATH", "LD_", "DYLD_", "HOME",
    "BASH_ENV", "ENV", "GIT_", "PIP_", "UV_", "NPM_", "npm_", "PYTHONUNBUFFERED", "TERM", "COVERAGE", "CODECOV", "SCCACHE", "CCACHE", "TURBO_", "GOPROXY",
];

impl CiChecks {
    /// Returns true if the CI has a test of this stack, or a test of the whole project.
    pub(super) fn tests(&self, stack: &str) -> bool {
        self.has(stack, CheckEffect::Tests) || ["make", "other"].iter().any(|all| self.has(all, CheckEffect::Tests))
    }

    pub(super) fn has(&self, stack: &str, effect: CheckEffect) -> bool {
        self.checks.iter().any(|own| own.stack == stack && own.check.effect == effect && own.check.dir.is_none())
    }

    /// Returns true if a step of the CI does the same as this check.
    pub(super) fn runs(&self, check: &DetectedCheck) -> bool {
        let without = |run: &str| run.replace(" run ", " ");
        self.checks.iter().any(|own| own.check.dir == check.dir && without(&own.check.run) == without(&check.run))
    }

    /// Returns true if a step of the CI uses this tool.
    pub(super) fn has_tool(&self, tool: &str) -> bool {
        self.checks.iter().any(|own| own.check.dir.is_none() && tools::tool(&own.words) == tool)
    }

    /// Returns true if the CI has any step for this stack.
    pub(super) fn knows(&self, stack: &str) -> bool {
        self.tests(stack) || self.checks.iter().any(|own| own.stack == stack && own.check.dir.is_none())
    }
}

/// Reads all files that define the project's CI.
pub(super) fn look(facts: &ProjectFacts) -> CiChecks {
    let mut own = CiChecks::default();
    let mut left_out = LeftOut::default();
    own.tools.extend(HOOKS.iter().flat_map(|file| envs::hooks(facts.text(file))));
    for (file, text) in &facts.texts {
        let offers = match file.as_str() {
            ".gitlab-ci.yml" => gitlab::read(file, text),
            file if file.starts_with(".github/workflows/") && !is_aside(file) => {
                github::read(file, text, &|path| facts.texts.get(path).map(String::as_str))
            }
            _ => continue,
        };
        match offers {
            Ok(offers) => offers.into_iter().for_each(|offer| own.add_offer(offer, facts, &mut left_out)),
            Err(why) => own.remarks.push(format!("left out: {file}, because it cannot be read: {why}")),
        }
    }
    if let Some(file) = facts.first(&HOOKS) {
        own.remarks.push(format!(
            "left out: the hooks of {file}, because pre-commit fetches them and may change files; tools among them that the project configures are steps"
        ));
    }
    if own.checks.is_empty() {
        // Without a readable CI, a tool that runs several checks replaces it.
        let has_tox = facts.has("tox.ini") || has_table(facts.text("pyproject.toml"), "tool.tox");
        let gathering = [("tox.ini", "tox", has_tox), ("noxfile.py", "nox", facts.has("noxfile.py"))];
        if let Some((file, program, _)) = gathering.into_iter().find(|(_, _, is_there)| *is_there) {
            let file = if facts.has(file) { file } else { "pyproject.toml" };
            let candidate =
                Candidate { file: file.into(), line: 1, words: vec![program.into()], ..Candidate::default() };
            own.add_offer(Ok(candidate), facts, &mut left_out);
        } else if let Some(words) = hatch::tests(facts) {
            let candidate = Candidate { file: "pyproject.toml".into(), line: 1, words, ..Candidate::default() };
            own.add_offer(Ok(candidate), facts, &mut left_out);
        }
    }
    own.drop_implied();
    own.remarks.extend(left_out.remarks());
    own
}

impl CiChecks {
    fn add_offer(&mut self, offer: CheckOffer, facts: &ProjectFacts, left_out: &mut LeftOut) {
        match offer {
            Err(refusal) => {
                let parts = refusal.text.split(['|', '(', ';', '&']);
                let words = |part: &str| part.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
                self.tools.extend(parts.map(|part| tools::tool(&words(part))));
                let is_check =
                    refusal.is_unread || refusal.text.split(|c: char| " \t()`;&|".contains(c)).any(is_known_program);
                left_out.add(&refusal.why, &refusal.text, (&refusal.file, refusal.line), is_check);
            }
            Ok(candidate) if candidate.words.iter().any(|word| ["--version", "--help"].contains(&word.as_str())) => {}
            Ok(candidate) => {
                let place = (candidate.file.as_str(), candidate.line);
                match resolve::resolve(&candidate, facts, self) {
                    Ok(resolved) => resolved.into_iter().for_each(|step| self.add(step, &candidate, left_out)),
                    Err(why) => {
                        let is_check =
                            candidate.words.first().is_some_and(|word| is_known_program(word)) || !why.is_empty();
                        left_out.add(&why, &command::quoted(&candidate.words), place, is_check && !why.is_empty());
                    }
                }
            }
        }
    }

    fn add(&mut self, step: resolve::ResolvedCommand, candidate: &Candidate, left_out: &mut LeftOut) {
        let resolve::ResolvedCommand { stack, kind, run, words, name, effect } = step;
        self.tools.insert(tools::tool(&words));
        let dir = Some(candidate.dir.clone()).filter(|dir| !dir.is_empty());
        if self.checks.iter().any(|other| same_paths(&other.check.run) == same_paths(&run) && other.check.dir == dir) {
            return;
        }
        let place = (candidate.file.as_str(), candidate.line);
        if self.checks.len() == MOST {
            return left_out.add(&format!("the CI has more than {MOST} checks"), &run, place, true);
        }
        let is_noise =
            |name: &str| NOISE.iter().any(|start| name == *start || (start.len() > 2 && name.starts_with(start)));
        let is_plain = |text: &str| text.chars().all(|c| !c.is_control()) && text.len() < 200;
        let vars = candidate
            .vars
            .iter()
            .filter(|(name, value)| !is_noise(name) && is_plain(value) && !name.contains("TOKEN") && !value.is_empty());
        let env: BTreeMap<String, String> = vars.map(|(name, value)| (name.clone(), value.clone())).collect();
        let name = self.unique(name.unwrap_or_else(|| step_name(kind, &words)), &words, dir.as_deref());
        let may_fail = candidate.may_fail.then(|| "the project's own CI lets it fail".to_owned());
        let check = DetectedCheck { name, run, dir, effect, may_fail, env, from: Some(candidate.file.clone()) };
        self.checks.push(CiCheck { stack, check, words });
    }

    /// Makes a name unique. It adds the first word that no other step of this name has, otherwise a
    /// number.
    fn unique(&self, name: String, words: &[String], dir: Option<&str>) -> String {
        let name = dir.map_or_else(|| name.clone(), |dir| format!("{dir}/{name}"));
        let is_free = |name: &str| !self.checks.iter().any(|own| own.check.name == name);
        if is_free(&name) {
            return name;
        }
        let others: BTreeSet<&String> =
            self.checks.iter().filter(|own| own.check.name == name).flat_map(|own| &own.words).collect();
        let slug = |word: &String| {
            let parts = word.split(|c: char| !c.is_ascii_alphanumeric()).filter(|part| !part.is_empty());
            parts.collect::<Vec<_>>().join("-").to_ascii_lowercase()
        };
        let mut different = words
            .iter()
            .filter(|word| !others.contains(word))
            .map(slug)
            .filter(|slug| !slug.is_empty() && slug.len() < 30);
        let by_word = different.next().map(|slug| format!("{name}-{slug}")).filter(|name| is_free(name));
        by_word.unwrap_or_else(|| {
            (2..).map(|number| format!("{name}-{number}")).find(|name| is_free(name)).unwrap_or(name)
        })
    }

    /// Drops builds that a test with the same words includes.
    fn drop_implied(&mut self) {
        let rest = |words: &[String]| {
            words.iter().skip(2).filter(|word| *word != "--verbose" && *word != "-v").cloned().collect::<Vec<_>>()
        };
        let tests: Vec<(Option<String>, Vec<String>)> = self
            .checks
            .iter()
            .filter(|own| own.stack == "rust" && own.check.effect == CheckEffect::Tests)
            .map(|own| (own.check.dir.clone(), rest(&own.words)))
            .collect();
        let tests_by_maven: BTreeSet<Option<String>> = self
            .checks
            .iter()
            .filter(|own| own.stack == "maven" && own.check.effect == CheckEffect::Tests)
            .map(|own| own.check.dir.clone())
            .collect();
        self.checks.retain(|own| {
            if own.stack == "maven"
                && own.check.effect == CheckEffect::Builds
                && tests_by_maven.contains(&own.check.dir)
            {
                return false;
            }
            let is_build = ["cargo build", "cargo check"].contains(&tools::tool(&own.words).as_str());
            !(is_build && tests.contains(&(own.check.dir.clone(), rest(&own.words))))
        });
    }
}

/// Returns a command in which a folder has one form: `tests/` and `./tests` become `tests`.
fn same_paths(run: &str) -> String {
    let word = |word: &'_ str| {
        let bare = word.strip_prefix("./").unwrap_or(word).trim_end_matches('/');
        if bare.is_empty() { word.to_owned() } else { bare.to_owned() }
    };
    run.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

fn is_known_program(word: &str) -> bool {
    !word.is_empty()
        && tools::find(&[word.to_owned(), "test".to_owned()])
            .is_some_and(|row| !matches!(row.kind, ToolKind::Helper | ToolKind::No(_)))
}

/// Derives the name of a step from its program.
fn step_name(kind: ToolKind, words: &[String]) -> String {
    let tool = tools::tool(words);
    let name = match (kind, tool.as_str()) {
        (ToolKind::Test, _) => "test",
        (
            ToolKind::Lint,
            "cargo fmt" | "rustfmt" | "black" | "prettier" | "ruff format" | "isort" | "shfmt" | "oxfmt"
            | "biome format",
        ) => "fmt",
        (ToolKind::Lint, "mypy" | "pyright" | "basedpyright" | "tsc" | "vue-tsc" | "svelte-check" | "ty") => "types",
        (ToolKind::Lint, "go vet") => "vet",
        (ToolKind::Lint, _) => "lint",
        (_, "cargo doc" | "cargo rustdoc") => "doc",
        _ => "build",
    };
    name.into()
}

/// Omitted commands, by reason.
#[derive(Default)]
struct LeftOut(Vec<(String, Vec<(String, String)>)>);

impl LeftOut {
    /// Adds a command. A command that is not a check, or has an empty reason, is ignored.
    fn add(&mut self, why: &str, text: &str, (file, line): (&str, usize), is_check: bool) {
        if !is_check || why.is_empty() {
            return;
        }
        let text = text.replace("${?secret}", "…").replace("${?}", "…");
        let short: String = text.chars().take(80).map(|c| if c.is_control() { ' ' } else { c }).collect();
        let short = if short.len() < text.len() { format!("{short}…") } else { short };
        let place = format!("{file}:{line}");
        match self.0.iter_mut().find(|(reason, _)| reason == why) {
            Some((_, commands)) if commands.iter().any(|(other, _)| *other == short) => {}
            Some((_, commands)) => commands.push((short, place)),
            None => self.0.push((why.to_owned(), vec![(short, place)])),
        }
    }

    /// Formats one line for each reason, with its first commands.
    fn remarks(self) -> Vec<String> {
        let line = |(why, commands): (String, Vec<(String, String)>)| {
            let first: Vec<String> =
                commands.iter().take(3).map(|(text, place)| format!("`{text}` ({place})")).collect();
            let more = if commands.len() > 3 { format!(" and {} more", commands.len() - 3) } else { String::new() };
            format!("left out: {}{more}, because {why}", first.join(", "))
        };
        self.0.into_iter().map(line).collect()
    }
}

/// Returns the value of a key in a map.
fn get<'n>(node: &'n YamlNode, key: &str) -> Option<&'n YamlNode> {
    let YamlValue::Map(entries) = &node.value else { return None };
    entries.iter().find(|(name, _)| name.text == key).map(|(_, value)| value)
}

fn list(node: &YamlNode) -> &[YamlNode] {
    if let YamlValue::List(items) = &node.value { items } else { &[] }
}

fn text_of(node: &YamlNode) -> &str {
    node.as_text().unwrap_or_default()
}

/// Words in names of workflows that do not check changes. Builds of these workflows use other
/// options.
const ASIDE: [&str; 10] =
    ["codeql", "fuzz", "doc", "docs", "release", "publish", "deploy", "scorecard", "benchmark", "wheels"];

/// Returns true if a workflow has another purpose than to check changes, judged by its name.
fn is_aside(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default().to_ascii_lowercase();
    name.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| ASIDE.contains(&word))
}

#[cfg(test)]
mod tests {
    use super::is_aside;

    #[test]
    fn workflows_that_judge_no_change_are_not_read() {
        let aside = ["codeql.yml", "codeql-analysis.yaml", "fuzz.yml", "build-docs.yml", "release.yml"];
        let read = ["ci.yml", "linux.yml", "tests.yml", "documented.yml", "main.yaml"];
        assert!(aside.iter().all(|name| is_aside(&format!(".github/workflows/{name}"))));
        assert!(!read.iter().any(|name| is_aside(&format!(".github/workflows/{name}"))));
    }
}
