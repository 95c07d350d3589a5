//! The virtual environments of a Python project, and the folders of its modules. Pure.

use super::facts::{ProjectFacts, has_table};

/// The project's own environments, which users activate.
const OWN: [&str; 2] = [".venv", "venv"];

/// A virtual environment below the project's root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct VirtualEnvironment<'f> {
    /// The folder: `.venv`, `.tox/py`.
    folder: &'f str,
}

impl<'f> VirtualEnvironment<'f> {
    pub(super) fn program(&self, tool: &str) -> String {
        format!("{}/bin/{tool}", self.folder)
    }

    fn has(&self, facts: &ProjectFacts, tool: &str) -> bool {
        facts.has(&self.program(tool))
    }
}

/// Lists the environments, the best first: the project's own, then those of tox and nox. Among the
/// latter, environments with pytest come first. Environments named after tests precede others, and
/// those that also measure coverage come last.
pub(super) fn list(facts: &ProjectFacts) -> Vec<VirtualEnvironment<'_>> {
    let own = OWN
        .iter()
        .filter(|folder| facts.has(&format!("{folder}/bin/python")))
        .map(|folder| VirtualEnvironment { folder });
    let made = facts.paths.iter().filter_map(|path| path.strip_suffix("/bin/python"));
    let mut made: Vec<VirtualEnvironment<'_>> =
        made.filter(|folder| !OWN.contains(folder)).map(|folder| VirtualEnvironment { folder }).collect();
    made.sort_by_key(|environment| {
        let name = environment.folder.rsplit('/').next().unwrap_or_default();
        let parts = || name.split(|c: char| !c.is_ascii_alphanumeric());
        let is_test = parts().any(|part| part.starts_with("py") || part.starts_with("test"));
        let is_odd = parts().any(|part| ["cov", "coverage", "min", "lowest", "dev", "pre"].contains(&part));
        (!environment.has(facts, "pytest"), !is_test, is_odd)
    });
    own.chain(made).collect()
}

/// Returns the environment for tests, if one exists: the project's own, otherwise one with pytest.
pub(super) fn of_tests(facts: &ProjectFacts) -> Option<VirtualEnvironment<'_>> {
    list(facts).into_iter().find(|environment| OWN.contains(&environment.folder) || environment.has(facts, "pytest"))
}

/// Returns the path of a tool in the first environment that has it.
pub(super) fn program(facts: &ProjectFacts, tool: &str) -> Option<String> {
    let all = OWN.into_iter().map(|folder| VirtualEnvironment { folder }).chain(list(facts));
    all.into_iter().find(|environment| environment.has(facts, tool)).map(|environment| environment.program(tool))
}

/// Returns true if another tool than uv, such as `python3 -m venv`, created the project's own
/// environment. uv would replace the packages in it.
pub(super) fn is_foreign_to_uv(facts: &ProjectFacts) -> bool {
    let text = facts.text(".venv/pyvenv.cfg");
    let is_of_uv = |line: &str| line.split_once('=').is_some_and(|(key, _)| key.trim() == "uv");
    !text.is_empty() && !text.lines().any(is_of_uv)
}

/// Returns true if Python needs `src` in its path: modules are there, and neither an editable
/// install nor the configuration of pytest names the folder.
pub(super) fn hides_sources(facts: &ProjectFacts, environment: Option<VirtualEnvironment<'_>>) -> bool {
    let is_package = |path: &String| path.strip_prefix("src/").is_some_and(|rest| rest.ends_with("/__init__.py"));
    let has_sources =
        facts.paths.range("src/".to_owned()..).take_while(|path| path.starts_with("src/")).any(is_package);
    let is_editable = environment.is_some_and(|environment| facts.editable.contains(environment.folder));
    has_sources && !is_editable && !says_pythonpath(facts)
}

fn says_pythonpath(facts: &ProjectFacts) -> bool {
    let is_key = |line: &str| line.split_once('=').is_some_and(|(key, _)| key.trim() == "pythonpath");
    let files = [
        ("pyproject.toml", "tool.pytest"),
        ("pytest.ini", "pytest"),
        ("tox.ini", "pytest"),
        ("setup.cfg", "tool:pytest"),
    ];
    files.iter().any(|(file, table)| has_table(facts.text(file), table) && facts.text(file).lines().any(is_key))
}
