//! Readers for the commands of tox and nox, and for the hooks of pre-commit. Pure: they turn texts
//! into lines of scripts.

use super::{get, list, text_of};
use crate::lane::parse_toml;
use crate::yaml::parse;
use serde_json::Value;

/// Returns the commands of the environments that `tox …` names. Without a name, these are `py` and
/// the listed environments that do not name an interpreter.
pub(super) fn tox(words: &[String], ini: &str, pyproject: &str) -> Vec<String> {
    let config = Tox::read(ini, pyproject);
    let mut named: Vec<String> = Vec::new();
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        let envs = match word.as_str() {
            "-e" => rest.next().map(String::as_str),
            word => word.strip_prefix("-e").map(|envs| envs.trim_start_matches('=')),
        };
        named.extend(envs.into_iter().flat_map(|envs| envs.split(',')).map(str::to_owned));
    }
    if named.is_empty() {
        named = config.listed();
    }
    let mut commands: Vec<String> = named.iter().flat_map(|env| config.commands(env)).collect();
    let mut seen = std::collections::BTreeSet::new();
    commands.retain(|command| seen.insert(command.clone()));
    commands
}

struct Tox {
    ini: String,
    table: Option<Value>,
}

impl Tox {
    fn read(ini: &str, pyproject: &str) -> Self {
        let table = parse_toml(pyproject).and_then(|root| root.get("tool")?.get("tox").cloned());
        let legacy = table.as_ref().and_then(|table| table.get("legacy_tox_ini")?.as_str().map(str::to_owned));
        Self { ini: if ini.is_empty() { legacy.unwrap_or_default() } else { ini.to_owned() }, table }
    }

    /// Returns `py`, and the listed environments that do not name an interpreter.
    fn listed(&self) -> Vec<String> {
        let text = match self.value("[tox]", &["envlist", "env_list"]) {
            Some(lines) => lines.join(","),
            None => {
                self.table.as_ref().and_then(|table| table.get("env_list")).map(words_of).unwrap_or_default().join(",")
            }
        };
        let others = text
            .split([',', '\n', ' '])
            .map(str::trim)
            .filter(|env| !env.is_empty() && !is_interpreter(env) && !env.contains('{'));
        std::iter::once("py".to_owned()).chain(others.map(str::to_owned)).collect()
    }

    /// Returns the commands of an environment. `tox.ini` comes before `pyproject.toml`, and the
    /// environment's own commands come before the shared ones.
    fn commands(&self, env: &str) -> Vec<String> {
        let own = self.value(&format!("[testenv:{env}]"), &["commands"]);
        if let Some(lines) = own.or_else(|| self.value("[testenv]", &["commands"])) {
            return lines
                .iter()
                .filter_map(|line| command_for_env(line, env))
                .flat_map(|line| self.expand_line(&line))
                .collect();
        }
        let Some(table) = &self.table else { return Vec::new() };
        let own = table.get("env").and_then(|all| all.get(env)?.get("commands"));
        let base = || table.get("env_run_base").and_then(|base| base.get("commands"));
        let commands = own.or_else(base).and_then(Value::as_array);
        commands.into_iter().flatten().map(|command| super::command::quoted(&words_of(command))).collect()
    }

    /// Returns the commands of a line. A reference (`{[section]commands}`) becomes the lines of
    /// that section, except for lines that begin with `{`. Other lines lose their substitutions.
    fn expand_line(&self, line: &str) -> Vec<String> {
        if let Some(section) = line.strip_prefix("{[").and_then(|rest| rest.strip_suffix("]commands}")) {
            return self
                .value(&format!("[{section}]"), &["commands"])
                .unwrap_or_default()
                .into_iter()
                .filter(|line| !line.starts_with('{'))
                .collect();
        }
        vec![without_substitutions(line)]
    }

    /// Returns the lines of the first of these keys in a section. `section` has its brackets.
    fn value(&self, section: &str, keys: &[&str]) -> Option<Vec<String>> {
        let mut lines = self
            .ini
            .lines()
            .skip_while(|line| line.trim() != section)
            .skip(1)
            .take_while(|line| !line.starts_with('['))
            .peekable();
        while let Some(line) = lines.next() {
            let Some((_, first)) = line.split_once('=').filter(|(key, _)| keys.contains(&key.trim())) else {
                continue;
            };
            let mut all = vec![first.trim().to_owned()];
            while let Some(line) = lines.next_if(|line| line.is_empty() || line.starts_with([' ', '\t', '#'])) {
                all.push(line.trim().to_owned());
            }
            let whole = all.join("\n").replace("\\\n", " ");
            return Some(
                whole.lines().map(str::to_owned).filter(|line| !line.is_empty() && !line.starts_with('#')).collect(),
            );
        }
        None
    }
}

/// Returns the words of an array, without substitutions: tables, and words with `{`.
fn words_of(value: &Value) -> Vec<String> {
    let words = value.as_array().into_iter().flatten().filter_map(Value::as_str);
    words.filter(|word| !word.contains('{')).map(str::to_owned).collect()
}

fn is_interpreter(env: &str) -> bool {
    let rest = env.strip_prefix("pypy").or_else(|| env.strip_prefix("py"));
    rest.is_some_and(|rest| rest.chars().all(|c| c.is_ascii_digit() || c == '.' || c == 't'))
}

/// Returns the command of a line. A line `a,b: command` counts only if the environment has one of
/// the factors.
fn command_for_env(line: &str, env: &str) -> Option<String> {
    let Some((factors, command)) = line.split_once(": ") else { return Some(line.to_owned()) };
    if factors.contains(' ') || factors.contains('{') {
        return Some(line.to_owned());
    }
    let has = |factor: &str| env.split('-').any(|own| own == factor);
    factors
        .split([',', '-'])
        .any(|factor| factor.strip_prefix('!').map_or_else(|| has(factor), |not| !has(not)))
        .then(|| command.to_owned())
}

/// Returns a line of tox without substitutions. The default of `{posargs:…}` is kept, and words
/// with other substitutions are dropped.
fn without_substitutions(line: &str) -> String {
    let mut text = line.trim_start_matches(['-', '!']).trim().replace("{toxinidir}/", "").replace("{toxinidir}", ".");
    text = text.replace("{envpython}", "python").replace("{envbindir}/", "");
    while let Some((before, rest)) = text.split_once("{posargs") {
        let Some((inner, after)) = rest.split_once('}') else { break };
        text = format!("{before}{}{after}", inner.trim_start_matches(':'));
    }
    text.split(' ').filter(|word| !word.is_empty() && !word.contains(['{', '}'])).collect::<Vec<_>>().join(" ")
}

/// Returns the commands of the sessions that `nox …` names. Without a name, these are the sessions
/// in `nox.options.sessions`, or all sessions.
pub(super) fn nox(words: &[String], text: &str) -> Vec<String> {
    let mut named: Vec<&str> = Vec::new();
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        if ["-s", "--session", "-e", "--sessions"].contains(&word.as_str()) {
            named.extend(rest.clone().take_while(|word| !word.starts_with('-')).map(String::as_str));
        }
    }
    if named.is_empty() {
        let listed = text.lines().find(|line| line.starts_with("nox.options.sessions"));
        named = listed.map(|line| literals(line)).unwrap_or_default();
    }
    let is_meant = |session: &str| {
        named.is_empty() || named.iter().any(|name| name.split('-').next() == Some(session) || *name == session)
    };
    let mut commands = Vec::new();
    for part in text.split("\ndef ").skip(1) {
        let (name, body) = part.split_once('(').unwrap_or_default();
        if !body.starts_with("session") || !is_meant(name) {
            continue;
        }
        for call in body.split("session.run(").skip(1) {
            let end = call.find("\n    session.").or_else(|| call.find("\n\n")).unwrap_or(call.len());
            let call = call[..end].split(['*', '=']).next().unwrap_or_default();
            if call.trim_start().starts_with(['"', '\'']) {
                commands
                    .push(super::command::quoted(&literals(call).into_iter().map(str::to_owned).collect::<Vec<_>>()));
            }
        }
    }
    commands
}

/// Returns the quoted texts.
fn literals(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find(['"', '\'']) {
        let quote = &rest[start..=start];
        let Some(length) = rest[start + 1..].find(quote) else { break };
        found.push(&rest[start + 1..start + 1 + length]);
        rest = &rest[start + length + 2..];
    }
    found
}

/// Hooks of pre-commit, each with its tool.
#[rustfmt::skip]
const HOOKS: [(&str, &str); 18] = [
    ("ruff", "ruff check"), ("ruff-check", "ruff check"), ("ruff-format", "ruff format"), ("black", "black"), ("flake8", "flake8"), ("isort", "isort"),
    ("mypy", "mypy"), ("pyright", "pyright"), ("prettier", "prettier"), ("eslint", "eslint"), ("biome-check", "biome ci"), ("fmt", "cargo fmt"),
    ("cargo-fmt", "cargo fmt"), ("clippy", "cargo clippy"), ("cargo-clippy", "cargo clippy"), ("go-fmt", "gofmt"), ("golangci-lint", "golangci-lint"),
    ("rubocop", "rubocop"),
];

/// Returns the tools of the hooks in a `.pre-commit-config.yaml`.
pub(super) fn hooks(text: &str) -> Vec<String> {
    let Ok(root) = parse(text, 1) else { return Vec::new() };
    let hooks = get(&root, "repos")
        .map(list)
        .unwrap_or_default()
        .iter()
        .flat_map(|repo| get(repo, "hooks").map(list).unwrap_or_default());
    let ids = hooks.filter_map(|hook| get(hook, "id")).map(text_of);
    ids.filter_map(|id| HOOKS.iter().find(|(name, _)| *name == id)).map(|(_, tool)| (*tool).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn the_environments_of_tox_are_their_commands() {
        let ini = "[tox]\nenvlist = py38,py39,lint\n\n[testenv]\ndeps = pytest\ncommands =\n    pytest {posargs:tests -x} \\\n        --basetemp={envtmpdir}\n    \
                   cov: coverage report\n\n[testenv:lint]\ncommands = flake8 {toxinidir}/src\n[testenv:all]\ncommands = {[testenv:lint]commands}\n";
        let message = |call: &str| tox(&words(call), ini, "");
        assert_eq!(message("tox -e py39"), ["pytest tests -x"]);
        assert_eq!(message("tox"), ["pytest tests -x", "flake8 src"]);
        assert_eq!(message("tox run -e lint,py"), ["flake8 src", "pytest tests -x"]);
        assert_eq!(message("tox -e py-cov"), ["pytest tests -x", "coverage report"]);
        assert_eq!(message("tox -eall"), ["flake8 {toxinidir}/src"]);
        assert_eq!(tox(&words("tox"), "", ""), [""; 0]);
    }

    #[test]
    fn tox_is_read_in_a_pyproject_as_well() {
        let text = "[tool.tox]\nenv_list = ['py3.13', 'typing']\n[tool.tox.env_run_base]\ncommands = [['pytest', '-v', '--basetemp={env_tmp_dir}', { replace = 'posargs' }]]\n\
                    [tool.tox.env.typing]\ncommands = [['mypy'], ['pyright']]\n";
        assert_eq!(tox(&words("tox run"), "", text), ["pytest -v", "mypy", "pyright"]);
        assert_eq!(tox(&words("tox run -e typing"), "", text), ["mypy", "pyright"]);
        assert_eq!(
            tox(&words("tox -e py"), "", "[tool.tox]\nlegacy_tox_ini = '''\n[testenv]\ncommands = pytest\n'''\n"),
            ["pytest"]
        );
    }

    #[test]
    fn the_sessions_of_nox_are_what_they_run() {
        let text = "import nox\nnox.options.sessions = [\"lint\", \"tests\"]\n\n@nox.session(python=[\"3.8\"])\ndef tests(session):\n    session.install(\".\")\n    \
                    session.run(\"pytest\", \"-x\", *session.posargs)\n\n@nox.session\ndef lint(session: nox.Session) -> None:\n    session.run(\n        \"ruff\",\n        \"check\",\n        external=True,\n    )\n\n\
                    @nox.session\ndef docs(session):\n    session.run(BUILD, \"x\")\n";
        assert_eq!(nox(&words("nox"), text), ["pytest -x", "ruff check"]);
        assert_eq!(nox(&words("nox -s tests-3.8"), text), ["pytest -x"]);
        assert_eq!(nox(&words("nox -s docs"), text), [""; 0]);
    }

    #[test]
    fn hooks_are_the_tools_that_they_run() {
        let text = "repos:\n  - repo: https://x\n    rev: v1\n    hooks: [{ id: ruff, args: [--fix] }, { id: trailing-whitespace }]\n  - repo: y\n    hooks:\n      - id: black\n";
        assert_eq!(hooks(text), ["ruff check", "black"]);
        assert_eq!(hooks("repos: ["), [""; 0]);
    }
}
