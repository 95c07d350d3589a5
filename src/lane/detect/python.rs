//! Python projects: the tools that the project configures, and its tests with pytest or unittest,
//! in the project's own environment.

use super::environments::{self, VirtualEnvironment};
use super::facts::{ProjectFacts, has_table, is_python_test, names};
use super::{CheckEffect, Findings};

#[rustfmt::skip]
const MARKERS: [&str; 7] = [
    "pyproject.toml", "setup.py", "setup.cfg", "requirements.txt", "requirements-dev.txt", "requirements_dev.txt", "Pipfile",
];

/// A checker: the name of its step, its command, and its configuration.
struct Tool {
    name: &'static str,
    program: &'static str,
    arguments: &'static str,
    tables: &'static [&'static str],
    files: &'static [&'static str],
}

#[rustfmt::skip]
const TOOLS: [Tool; 6] = [
    Tool { name: "fmt", program: "ruff", arguments: " format --check .", tables: &["tool.ruff.format"], files: &[] },
    Tool { name: "black", program: "black", arguments: " --check .", tables: &["tool.black"], files: &[] },
    Tool { name: "lint", program: "ruff", arguments: " check .", tables: &["tool.ruff"], files: &["ruff.toml", ".ruff.toml"] },
    Tool { name: "flake8", program: "flake8", arguments: "", tables: &["flake8"], files: &[".flake8"] },
    Tool { name: "types", program: "mypy", arguments: " .", tables: &["tool.mypy", "mypy"], files: &["mypy.ini", ".mypy.ini"] },
    Tool { name: "pyright", program: "pyright", arguments: "", tables: &["tool.pyright"], files: &["pyrightconfig.json"] },
];

/// Requirements files.
const REQUIREMENTS: [&str; 3] = ["requirements.txt", "requirements-dev.txt", "requirements_dev.txt"];
/// Packaging files, with the keys that list dependencies.
const NAMING: [(&str, &[&str]); 3] = [
    ("pyproject.toml", &["dependencies", "optional-dependencies"]),
    ("setup.py", &["install_requires", "extras_require", "tests_require"]),
    ("setup.cfg", &["install_requires", "tests_require"]),
];

/// Environment managers and their lock files.
const LOCKS: [(&str, &str); 4] =
    [("uv", "uv.lock"), ("poetry", "poetry.lock"), ("pdm", "pdm.lock"), ("pipenv", "Pipfile.lock")];

pub(super) fn look(facts: &ProjectFacts) -> Option<Findings> {
    facts.first(&MARKERS).map(|marker| found(facts, marker))
}

/// Detects the tests of a folder without a Python marker file.
pub(super) fn of_tests(facts: &ProjectFacts) -> Option<Findings> {
    let test = facts.paths.iter().find(|path| is_python_test(path)).filter(|_| facts.first(&MARKERS).is_none());
    test.map(|test| found(facts, test))
}

fn found(facts: &ProjectFacts, marker: &str) -> Findings {
    let mut found = Findings::new("python", marker);
    let locked = LOCKS.iter().find(|(_, lock)| facts.has(lock)).map(|(manager, _)| *manager);
    let project = Project::open(facts);
    match locked.filter(|_| project.manager.is_none()) {
        Some(locked) if facts.has_program(locked) => {
            found.remark(format!("without `{locked}`, because it has not made .venv"));
        }
        Some(locked) => {
            found.remark(format!("without `{locked}`, because it is not installed: tools are those that are found"));
        }
        None => {}
    }
    let missing = project.uninstalled();
    for tool in &TOOLS {
        if !project.configures(tool) {
            continue;
        }
        match project.program(tool.program) {
            Some(program) => {
                found.check(CheckEffect::Reads, tool.name, format!("{program}{}", project.arguments(tool)))
            }
            None => found.not_installed(tool.program),
        }
    }
    project.tests(&mut found);
    found.remarks.extend(missing);
    found
}

fn has_lines(text: &str) -> bool {
    text.lines().map(str::trim).any(|line| !line.is_empty() && !line.starts_with('#'))
}

impl<'f> Project<'f> {
    fn open(facts: &'f ProjectFacts) -> Self {
        let locked = LOCKS.iter().find(|(_, lock)| facts.has(lock)).map(|(manager, _)| *manager);
        let is_used =
            |manager: &&str| facts.has_program(manager) && !(*manager == "uv" && environments::is_foreign_to_uv(facts));
        let manager = locked.filter(is_used);
        let environment = environments::of_tests(facts).filter(|_| manager.is_none());
        Self { facts, manager, environment }
    }
}

/// Returns the interpreter of this project.
///
/// # Errors
///
/// The reason why none exists.
pub(super) fn interpreter(facts: &ProjectFacts) -> Result<String, String> {
    Project::open(facts).python().ok_or_else(no_python)
}

fn no_python() -> String {
    "`python3` is not installed".to_owned()
}

/// Returns the command line that starts a Python tool in this project.
///
/// # Errors
///
/// The reason why the tool cannot be started.
pub(super) fn started(facts: &ProjectFacts, words: &[String]) -> Result<String, String> {
    let project = Project::open(facts);
    let python = project.python().ok_or_else(no_python)?;
    let (tool, arguments) = words.split_first().ok_or_else(String::new)?;
    let with = |start: String| {
        [vec![start], arguments.iter().map(|word| super::ci::quoted(std::slice::from_ref(word))).collect()]
            .concat()
            .join(" ")
    };
    let missing = || format!("`{tool}` is not installed");
    match tool.as_str() {
        "unittest" => Ok(with(format!("{}{python} -m unittest", project.sources()))),
        "pytest" | "py.test" => project.pytest(&python).map(with).ok_or_else(missing),
        tool => project.program(tool).map(with).ok_or_else(missing),
    }
}

/// Returns the lines of a table in a TOML file, without its subtables.
fn table<'t>(text: &'t str, name: &str) -> Vec<&'t str> {
    let lines = text.lines().map(str::trim).skip_while(|line| *line != name).skip(1);
    let is_header = |line: &&str| line.starts_with('[') && line.ends_with(']') && !line.contains(['"', '\'']);
    lines.take_while(|line| !is_header(line)).collect()
}

struct Project<'f> {
    facts: &'f ProjectFacts,
    /// The environment manager that the project uses, if installed.
    manager: Option<&'static str>,
    /// The environment for tests, if no manager provides it.
    environment: Option<VirtualEnvironment<'f>>,
}

impl Project<'_> {
    /// Describes how to install the dependencies, if the project names some and has no environment
    /// for them.
    fn uninstalled(&self) -> Option<String> {
        let facts = self.facts;
        if self.manager.is_some() || !environments::list(facts).is_empty() {
            return None;
        }
        let requirements = REQUIREMENTS.iter().filter(|file| has_lines(facts.text(file)));
        let mut parts: Vec<String> = requirements.map(|file| format!("-r {file}")).collect();
        let is_named = |line: &str, keys: &[&str]| {
            let pair = line.split_once('=').map(|(key, value)| (key.trim(), value.trim().trim_end_matches(',')));
            pair.is_some_and(|(key, value)| keys.contains(&key) && value != "[]")
        };
        let has_key = |(file, keys): &(&str, &[&str])| {
            let text = facts.text(file);
            let lines = if *file == "pyproject.toml" { table(text, "[project]") } else { text.lines().collect() };
            lines.iter().any(|line| is_named(line, keys))
        };
        if NAMING.iter().any(has_key) && facts.first(&["pyproject.toml", "setup.py"]).is_some() {
            parts.insert(0, "-e .".to_owned());
        }
        (!parts.is_empty()).then(|| {
            format!(
                "no virtual environment has the project's dependencies: if they are not installed otherwise, run `python3 -m venv .venv` and \
                 `.venv/bin/python -m pip install {}`, add .venv to .gitignore, delete lanes/verify.yaml, and run `fledge init`",
                parts.join(" ")
            )
        })
    }

    fn tests(&self, found: &mut Findings) {
        let files: Vec<&String> = self.facts.paths.iter().filter(|path| is_python_test(path)).collect();
        let is_unittest = |path: &&String| names(self.facts.text(path), "unittest");
        let is_function = |line: &str| line.starts_with("def test") || line.starts_with("async def test");
        let has_functions = |path: &&String| self.facts.text(path).lines().any(is_function);
        let wants_pytest = self.names("pytest")
            || self.has_table(&["tool.pytest", "tool:pytest", "pytest"])
            || self.facts.first(&["pytest.ini", "conftest.py", "tests/conftest.py", "test/conftest.py"]).is_some()
            || files.iter().any(has_functions) // unittest would ignore them
            || (!files.is_empty() && !files.iter().any(is_unittest));
        let in_venv = environments::program(self.facts, "pytest").is_some();
        match (self.python(), wants_pytest || in_venv) {
            (None, _) => found.lacks("Python's tests", "python3"),
            (Some(python), true) => match self.pytest(&python) {
                Some(pytest) => found.check(CheckEffect::Tests, "test", pytest),
                None => found.lacks("its tests", "pytest"),
            },
            (Some(python), false) if !files.is_empty() => {
                let place = self.place_of(&files);
                found.check(
                    CheckEffect::Tests,
                    "test",
                    format!("{}{python} -m unittest discover{place}", self.sources()),
                );
            }
            (Some(_), false) => {}
        }
    }

    /// Returns the call of pytest that finds the modules of the project. The interpreter with
    /// pytest also finds packages beside the tests; the program alone may not.
    fn pytest(&self, python: &str) -> Option<String> {
        let by_interpreter = || format!("{}{python} -m pytest", self.sources());
        match self.program("pytest") {
            Some(pytest) if self.is_of(python, &pytest) => Some(by_interpreter()),
            Some(pytest) if self.sources().is_empty() => Some(format!("PYTHONPATH=. {pytest}")),
            Some(pytest) => Some(format!("PYTHONPATH=src:. {pytest}")),
            None => self.facts.pytest_by.contains(python).then(by_interpreter),
        }
    }

    /// Returns the assignment with which Python finds the project's modules, if it is necessary.
    fn sources(&self) -> &'static str {
        let is_hidden = self.manager.is_none() && environments::hides_sources(self.facts, self.environment);
        if is_hidden { "PYTHONPATH=src " } else { "" }
    }

    /// Returns the start folder for unittest: the root if tests are there, otherwise their folder,
    /// as a package if it is one.
    fn place_of(&self, files: &[&String]) -> String {
        let folders: Option<Vec<&str>> = files.iter().map(|path| Some(path.split_once('/')?.0)).collect();
        match folders.as_deref().and_then(<[&str]>::first) {
            Some(folder) if self.facts.has(&format!("{folder}/__init__.py")) => format!(" -s {folder} -t ."),
            Some(folder) => format!(" -s {folder}"),
            None => String::new(),
        }
    }

    fn configures(&self, tool: &Tool) -> bool {
        self.facts.first(tool.files).is_some() || self.has_table(tool.tables)
    }

    fn has_table(&self, tables: &[&str]) -> bool {
        let files = ["pyproject.toml", "setup.cfg", "tox.ini"].map(|file| self.facts.text(file));
        files.into_iter().any(|text| tables.iter().any(|table| has_table(text, table)))
    }

    /// Returns the arguments of a tool. mypy gets paths only if its configuration does not name
    /// any.
    fn arguments(&self, tool: &Tool) -> &'static str {
        let says = |file: &&str| {
            let keys = self.facts.text(file).lines().filter_map(|line| line.split_once('='));
            keys.into_iter().any(|(key, _)| ["files", "packages", "modules"].contains(&key.trim()))
        };
        let is_told =
            tool.program == "mypy" && ["mypy.ini", ".mypy.ini", "pyproject.toml", "setup.cfg"].iter().any(says);
        // With `fix = true`, ruff writes files unless a flag prevents it.
        let is_fix = |line: &str| {
            line.split_once('=').is_some_and(|(key, value)| key.trim() == "fix" && value.trim().starts_with("true"))
        };
        let fixes =
            ["pyproject.toml", "ruff.toml", ".ruff.toml"].iter().any(|file| self.facts.text(file).lines().any(is_fix));
        match tool.arguments {
            " check ." if fixes => " check --no-fix .",
            _ if is_told => "",
            arguments => arguments,
        }
    }

    fn names(&self, package: &str) -> bool {
        MARKERS.iter().chain(&["tox.ini"]).any(|file| names(self.facts.text(file), package))
    }

    /// Returns the start of a tool: by the manager if the project names the tool, from a virtual
    /// environment, or from the search path.
    fn program(&self, tool: &str) -> Option<String> {
        let managed = self.manager.filter(|_| self.names(tool)).map(|manager| format!("{manager} run {tool}"));
        let in_environment = || environments::program(self.facts, tool);
        managed.or_else(in_environment).or_else(|| self.facts.has_program(tool).then(|| tool.into()))
    }

    /// Returns true if this interpreter has the package of this program. That is so if one manager
    /// starts both, if both are in one virtual environment, or if the program's first line names
    /// the interpreter.
    fn is_of(&self, python: &str, program: &str) -> bool {
        let place = |command: &str| command.rfind(['/', ' ']).map(|end| command[..=end].to_owned());
        match (place(python), place(program)) {
            (Some(one), Some(other)) => one == other,
            (None, None) => self.facts.pytest_by.contains(python),
            (Some(_), None) | (None, Some(_)) => false,
        }
    }

    fn python(&self) -> Option<String> {
        let managed = self.manager.map(|manager| format!("{manager} run python"));
        managed
            .or_else(|| self.environment.map(|environment| environment.program("python")))
            .or_else(|| ["python3", "python"].into_iter().find(|name| self.facts.has_program(name)).map(Into::into))
    }
}

#[cfg(test)]
mod tests {
    use super::table;

    #[test]
    fn a_table_ends_where_another_one_begins() {
        let text = "[tool.hatch.envs.x]\ndependencies = [\"a\"]\n[project]\nname = \"b\"\ndependencies = [\n]\n\n[tool.x]\nc = 1\n";
        assert_eq!(table(text, "[project]"), ["name = \"b\"", "dependencies = [", "]", ""]);
        assert!(table("[tool.x]\ndependencies = 1\n", "[project]").is_empty());
    }
}
