//! A reader for hatch environments and scripts, which resolves `hatch run …`. Pure.

use super::super::environments;
use super::super::facts::ProjectFacts;
use super::resolve::{self, ResolvedCommand, each};
use super::tools::{self, ToolKind};
use super::{Candidate, CiChecks, command};
use crate::lane::parse_toml;
use serde_json::Value;
use std::collections::BTreeMap;

/// The maximum depth of scripts that call each other.
const DEEPEST: usize = 5;
/// Names of scripts that run the tests, the best first.
const TESTS: [&str; 4] = ["test", "tests", "run", "all"];
/// Names of environments for tests, the best first.
const ENVIRONMENTS: [&str; 3] = ["test", "tests", "default"];

/// The scripts of each environment, as lines.
#[derive(Default)]
struct Scripts(BTreeMap<String, BTreeMap<String, Vec<String>>>);

impl Scripts {
    fn read(facts: &ProjectFacts) -> Self {
        let project = parse_toml(facts.text("pyproject.toml"))
            .and_then(|root| root.get("tool")?.get("hatch")?.get("envs").cloned());
        let own = || parse_toml(facts.text("hatch.toml")).and_then(|root| root.get("envs").cloned());
        let Some(Value::Object(table)) = project.or_else(own) else { return Self::default() };
        let lines = |value: &Value| match value {
            Value::String(line) => vec![line.clone()],
            value => value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect(),
        };
        let scripts = |env: &Value| -> BTreeMap<String, Vec<String>> {
            let scripts = env.get("scripts").and_then(Value::as_object);
            scripts.into_iter().flatten().map(|(name, value)| (name.clone(), lines(value))).collect()
        };
        let mut all: BTreeMap<_, _> = table.iter().map(|(name, env)| (name.clone(), scripts(env))).collect();
        // Environments inherit from `default`, unless they are detached.
        let shared = all.get("default").cloned().unwrap_or_default();
        for (name, scripts) in &mut all {
            let is_detached = table[name].get("detached").is_some_and(|value| value == true);
            for (name, lines) in shared.iter().filter(|_| !is_detached) {
                scripts.entry(name.clone()).or_insert_with(|| lines.clone());
            }
        }
        Self(all)
    }

    /// Returns the commands of a call, with scripts replaced by their commands.
    fn commands(&self, env: &str, line: &str, depth: usize) -> Vec<String> {
        let (name, rest) = line.split_once(' ').unwrap_or((line, ""));
        match self.0.get(env).and_then(|scripts| scripts.get(name)).filter(|_| depth > 0) {
            None => vec![line.to_owned()],
            Some(lines) => {
                let filled = lines.iter().map(|line| with_arguments(line.trim_start_matches("- "), rest));
                filled.flat_map(|line| self.commands(env, &line, depth - 1)).collect()
            }
        }
    }
}

/// Replaces `{args}` or `{args:default}` in a script line by the arguments of its call.
fn with_arguments(line: &str, arguments: &str) -> String {
    let Some((before, rest)) = line.split_once("{args") else { return line.to_owned() };
    let (default, after) = rest.split_once('}').unwrap_or_default();
    let arguments = if arguments.is_empty() { default.trim_start_matches(':') } else { arguments };
    format!("{before}{arguments}{after}").trim().to_owned()
}

/// Returns a call of the tests, if the project's scripts have one. For projects without a readable
/// CI.
pub(super) fn tests(facts: &ProjectFacts) -> Option<Vec<String>> {
    let Scripts(all) = Scripts::read(facts);
    let rank = |env: &&String| ENVIRONMENTS.iter().position(|name| name == env).unwrap_or(ENVIRONMENTS.len());
    let mut envs: Vec<&String> = all.keys().collect();
    envs.sort_by_key(rank);
    let call = |name: &str, env: &&String| all[*env].contains_key(name).then(|| format!("{env}:{name}"));
    let call = TESTS.iter().find_map(|name| envs.iter().find_map(|env| call(name, env)))?;
    Some(vec!["hatch".into(), "run".into(), call])
}

/// Returns the steps of a hatch call. These are the commands of its scripts if hatch is not
/// installed, or if the project has another environment.
pub(super) fn steps(
    words: &[String],
    candidate: &Candidate,
    facts: &ProjectFacts,
    root: &ProjectFacts,
    own: &mut CiChecks,
) -> Result<Vec<ResolvedCommand>, String> {
    let is_used = facts.has_program("hatch") && environments::of_tests(facts).is_none();
    let has = |verb: &&&str| words[1..].iter().any(|word| word == **verb);
    match ["run", "test", "fmt"].iter().find(has).copied() {
        Some("run") => {}
        Some("test") if is_used => return Ok(vec![step("hatch test".into(), ToolKind::Test, words)]),
        Some("fmt") if is_used && words.iter().any(|word| word == "--check" || word == "-f") => {
            return Ok(vec![step("hatch fmt --check".into(), ToolKind::Lint, words)]);
        }
        Some("fmt") => return Err("it changes files".into()),
        Some(_) => return Err("`hatch` is not installed".into()),
        None => return Err("it installs".into()),
    }
    let (env, line) = called(words).ok_or("fledge does not know what it does")?;
    let scripts = Scripts::read(facts);
    let lines = scripts.commands(&env, &line, DEEPEST);
    if !is_used {
        return each(&lines, candidate, root, own);
    }
    let kind = kind_of(&lines)?;
    let env = without_coverage(&scripts, &env, &line, facts).unwrap_or(env);
    let run = if env == "default" { format!("hatch run {line}") } else { format!("hatch run {env}:{line}") };
    let words = lines.first().map(|line| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>());
    Ok(vec![step(run, kind, &words.unwrap_or_default())])
}

fn step(run: String, kind: ToolKind, words: &[String]) -> ResolvedCommand {
    let effect = if kind == ToolKind::Test { super::CheckEffect::Tests } else { super::CheckEffect::Builds };
    ResolvedCommand { stack: "python", kind, run, words: words.to_vec(), name: None, effect }
}

/// Returns the environment and the line of `hatch run env:line` and of `hatch -e env run line`.
fn called(words: &[String]) -> Option<(String, String)> {
    let run = words.iter().position(|word| word == "run")?;
    let flag = words.iter().position(|word| ["-e", "--env"].contains(&word.as_str()));
    let named = flag.and_then(|flag| words.get(flag + 1)).cloned();
    let rest: Vec<String> = words[run + 1..].iter().skip_while(|word| word.starts_with('-')).cloned().collect();
    let rest = if flag.is_some_and(|flag| flag > run) { rest.into_iter().skip(1).collect() } else { rest };
    let first = rest.first()?;
    let (env, first) = first.split_once(':').map_or((None, first.as_str()), |(env, name)| (Some(env.to_owned()), name));
    let line = [vec![first.to_owned()], rest[1..].to_vec()].concat();
    Some((env.or(named).unwrap_or_else(|| "default".into()), command::quoted(&line)))
}

/// Returns the common kind of all lines of a script.
///
/// # Errors
///
/// The reason why one of the lines is not a check.
fn kind_of(lines: &[String]) -> Result<ToolKind, String> {
    let mut kind = None;
    for (_, read) in lines.iter().flat_map(|line| command::read(line, &BTreeMap::new())) {
        let words = resolve::unstarted(&read.map_err(|(_, why)| why)?.words)?;
        let row = tools::find(&words)
            .ok_or_else(|| format!("of `{}`: fledge knows no check by that program", command::quoted(&words)))?;
        match row.kind {
            ToolKind::No(why) => return Err(why.into()),
            _ if tools::writes(&words) => return Err("it changes files".into()),
            ToolKind::Recipe => return Err("fledge does not know what it does".into()),
            ToolKind::Helper => {}
            ToolKind::Test => kind = Some(ToolKind::Test),
            other if kind != Some(ToolKind::Test) => kind = Some(other),
            _ => {}
        }
    }
    kind.ok_or_else(String::new)
}

/// Finds another environment in which the call does the same without measuring coverage.
fn without_coverage(scripts: &Scripts, env: &str, line: &str, facts: &ProjectFacts) -> Option<String> {
    let words = |env: &str| -> Vec<Vec<String>> {
        let lines = scripts.commands(env, line, DEEPEST);
        lines.iter().map(|line| line.split_whitespace().map(str::to_owned).collect()).collect()
    };
    let stripped = |env: &str| -> Option<Vec<Vec<String>>> {
        let mut all = words(env);
        all.iter_mut().filter(|words| !words.is_empty()).try_for_each(|words| resolve::strip(words, facts)).ok()?;
        Some(all)
    };
    let plain = stripped(env)?;
    let is_it = |other: &&String| other.as_str() != env && plain != words(env) && words(other) == plain;
    scripts.0.keys().find(is_it).cloned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROJECT: &str = "[tool.hatch.envs.default.scripts]\nall = ['lint', 'test -x']\n[tool.hatch.envs.test.scripts]\ntest = 'python -m pytest -v {args:tests}'\nlint = 'ruff check .'\n\
        [tool.hatch.envs.cov.scripts]\ntest = 'python -m pytest -v --cov --cov-report xml {args:tests}'\n[tool.hatch.envs.style]\ndetached = true\nscripts.fmt = ['black .']\n\
        scripts.check = 'black --check .'\n[tool.hatch.envs.docs.scripts]\nbuild = 'make -C docs html'\n";

    fn facts(programs: &str) -> ProjectFacts {
        let programs = programs.split_whitespace().map(str::to_owned).collect();
        ProjectFacts {
            texts: [("pyproject.toml".to_owned(), PROJECT.to_owned())].into(),
            programs,
            ..ProjectFacts::default()
        }
    }

    fn expand(call: &str, facts: &ProjectFacts) -> Result<Vec<String>, String> {
        let words: Vec<String> = call.split(' ').map(str::to_owned).collect();
        let candidate = Candidate { words: words.clone(), ..Candidate::default() };
        let found = steps(&words, &candidate, facts, facts, &mut CiChecks::default())?;
        Ok(found.into_iter().map(|step| format!("{:?} {}", step.kind, step.run)).collect())
    }

    #[test]
    fn a_call_of_hatch_is_a_check_by_what_its_scripts_run() {
        let facts = facts("hatch");
        let one = |text: &str| Ok(vec![text.to_owned()]);
        assert_eq!(expand("hatch run test:test", &facts), one("Test hatch run test:test"));
        assert_eq!(expand("hatch run cov:test", &facts), one("Test hatch run test:test"), "without coverage");
        assert_eq!(expand("hatch -e test run lint", &facts), one("Lint hatch run test:lint"));
        assert_eq!(expand("hatch env run -e style check", &facts), one("Lint hatch run style:check"));
        assert_eq!(expand("hatch run test:all", &facts), one("Test hatch run test:all"));
        assert_eq!(expand("hatch run pytest", &facts), one("Test hatch run pytest"));
        assert_eq!(expand("hatch test --cover", &facts), one("Test hatch test"));
        assert_eq!(expand("hatch run style:fmt", &facts), Err("it changes files".into()));
        assert_eq!(expand("hatch run docs:build", &facts), Err("fledge does not know what it does".into()));
        assert!(expand("hatch run style:all", &facts).is_err(), "a detached environment has only its own scripts");
        assert_eq!(expand("hatch build", &facts), Err("it installs".into()));
        assert_eq!(tests(&facts).unwrap().join(" "), "hatch run test:test");
        assert_eq!(tests(&ProjectFacts::default()), None);
    }

    #[test]
    fn without_hatch_its_scripts_are_run_in_the_environment_that_is_there() {
        let mut facts = facts("python3");
        facts.pytest_by = ["python3".to_owned()].into();
        assert_eq!(expand("hatch run test:test", &facts), Ok(vec!["Test python3 -m pytest -v tests".to_owned()]));
        facts.programs.insert("hatch".into());
        facts.paths = [".venv/bin/python", ".venv/bin/pytest"].map(str::to_owned).into();
        assert_eq!(
            expand("hatch run test:test", &facts),
            Ok(vec!["Test .venv/bin/python -m pytest -v tests".to_owned()])
        );
        assert_eq!(expand("hatch test", &facts), Err("`hatch` is not installed".into()));
    }
}
