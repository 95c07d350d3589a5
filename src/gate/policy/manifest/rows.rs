//! The sections of manifests that steer tests and builds.

use super::forms::ManifestForm;

/// A manifest that is judged by section.
#[derive(Debug)]
pub(super) struct Manifest {
    pub(super) name: &'static str,
    pub(super) form: ManifestForm,
    /// True if a new manifest steers existing files even if the base has no manifest of its name.
    pub(super) steers_alone: bool,
    /// True if a new manifest in a new folder steers files outside of that folder.
    pub(super) steers_afar: bool,
    pub(super) rows: &'static [SectionRow],
}

/// A section, and the changes that are allowed in it.
#[derive(Debug)]
pub(super) struct SectionRow {
    /// The place of the section: names with `/` between them. `*` means any name, and `x*` any name
    /// that begins with `x`.
    pub(super) at: &'static str,
    pub(super) how: SectionRule,
    pub(super) why: &'static str,
    /// True if the row also applies to a new manifest.
    pub(super) in_new: bool,
}

/// The changes that are allowed in a section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SectionRule {
    /// No change.
    Same,
    /// New values, but no change of existing ones.
    Kept,
    /// New items of a list, unless one excludes something. Existing items stay.
    MayGrow,
    /// As [`SectionRule::MayGrow`], for an existing list. Without a list everything is included, so
    /// a first list excludes something.
    MayGrowListed,
    /// New scripts, unless they run automatically. Existing scripts stay.
    Scripts,
    /// Stricter lints.
    NotWeaker,
    /// New test targets, unless one replaces a test of the base. Existing targets stay.
    OwnTests,
    /// Any program, unless it has the name of a test or build tool.
    Programs,
    /// Another name, unless the project has or depends on it, or it is that of a test or build
    /// tool.
    OwnName,
    /// Any change, unless an entry that leads to a protected file leads elsewhere.
    Targets,
    /// Any change, but a new manifest may not have the section.
    NotInNew,
    /// Any change, but the section may not be added where the entry of the package is a protected
    /// file: its `main`, or else its index file.
    NotBesideIndex,
    /// New features, but none that the base defines. Existing items stay.
    NewFeatures,
    /// A later edition.
    Later,
}

impl SectionRule {
    /// Returns the note on allowed changes for the printed table.
    pub(super) fn description(self) -> &'static str {
        match self {
            Self::Same => "",
            Self::Kept | Self::MayGrow | Self::MayGrowListed => " (may get more)",
            Self::Scripts => " (may get more, except hooks)",
            Self::NotWeaker => " (may get stricter)",
            Self::OwnTests => " (new tests may be added)",
            Self::Programs => " (except names of tools)",
            Self::OwnName => " (except names of dependencies and tools)",
            Self::Targets => " (entries that lead to files of the checks)",
            Self::NotInNew => " (in a new manifest)",
            Self::NotBesideIndex => " (new, where the entry is a file of the checks)",
            Self::NewFeatures => " (may get new ones)",
            Self::Later => " (may be a later one)",
        }
    }
}

const fn row(at: &'static str, how: SectionRule, why: &'static str) -> SectionRow {
    SectionRow { at, how, why, in_new: true }
}

/// Returns a row that does not apply to a new manifest.
const fn old(at: &'static str, how: SectionRule, why: &'static str) -> SectionRow {
    SectionRow { at, how, why, in_new: false }
}

const TESTS: &str = "it controls how tests run";
const CHECKS: &str = "it controls how checks run";
const BUILDS: &str = "it controls the build";
const COMMANDS: &str = "it defines commands of the gate";
const REPLACES: &str = "it replaces dependencies with other code";
const PLACES: &str = "it says where packages come from";
const FINDS: &str = "it says which tests are found";
const STANDS_IN: &str = "it would replace what the tests use";
const NEARER: &str = "it would be used instead of a dependency";
const TOOLCHAIN: &str = "it chooses the toolchain";

use super::super::ecosystems::{HOOKS, SHADOWED};
use SectionRule::{
    Kept, Later, MayGrow, MayGrowListed, NewFeatures, NotBesideIndex, NotInNew, NotWeaker, OwnName, OwnTests, Programs,
    Same, Scripts, Targets,
};

/// All manifests that are judged by section.
pub(super) const MANIFESTS: &[Manifest] = &[
    Manifest { name: "Cargo.toml", form: ManifestForm::Cargo, steers_alone: false, steers_afar: false, rows: CARGO },
    Manifest { name: "package.json", form: ManifestForm::Node, steers_alone: false, steers_afar: false, rows: NODE },
    Manifest {
        name: "pnpm-workspace.yaml",
        form: ManifestForm::Yaml,
        steers_alone: true,
        steers_afar: false,
        rows: PNPM,
    },
    Manifest { name: "lerna.json", form: ManifestForm::Node, steers_alone: false, steers_afar: false, rows: LERNA },
    Manifest {
        name: "pyproject.toml",
        form: ManifestForm::Python,
        steers_alone: true,
        steers_afar: false,
        rows: PYTHON,
    },
    Manifest { name: "setup.cfg", form: ManifestForm::Ini, steers_alone: true, steers_afar: false, rows: SETUP_CFG },
    Manifest {
        name: "entry_points.txt",
        form: ManifestForm::Ini,
        steers_alone: true,
        steers_afar: true,
        rows: ENTRY_POINTS,
    },
    Manifest { name: "go.mod", form: ManifestForm::Go, steers_alone: false, steers_afar: false, rows: GO },
    Manifest {
        name: "CMakeLists.txt",
        form: ManifestForm::Cmake,
        steers_alone: false,
        steers_afar: false,
        rows: CMAKE,
    },
];

const CARGO: &[SectionRow] = &[
    row("profile/*", Same, "it controls how the tests are built"),
    row("patch/*", Same, REPLACES),
    row("replace", Same, REPLACES),
    row("cargo-features", Same, BUILDS),
    row("lib/test", Same, FINDS),
    row("lib/doctest", Same, FINDS),
    row("lib/harness", Same, FINDS),
    row("lib/path", Same, FINDS),
    old("lib/name", Same, STANDS_IN),
    old("package/name", Same, STANDS_IN),
    old("package/edition", Later, BUILDS),
    old("workspace/package/edition", Later, BUILDS),
    old("features/default", NewFeatures, FINDS),
    row("bin/*/test", Same, FINDS),
    row("bin/*/harness", Same, FINDS),
    row("bin/*/doctest", Same, FINDS),
    row("test/*", OwnTests, FINDS),
    row("bench/*", Kept, FINDS),
    row("package/autotests", Same, FINDS),
    row("package/autobins", Same, FINDS),
    row("package/autoexamples", Same, FINDS),
    row("package/autobenches", Same, FINDS),
    row("package/autolib", Same, FINDS),
    old("package/build", Same, BUILDS),
    old("package/links", Same, BUILDS),
    old("package/workspace", Same, FINDS),
    row("package/forced-target", Same, BUILDS),
    row("package/default-target", Same, BUILDS),
    row("package/metadata/nextest", Same, TESTS),
    row("workspace/metadata/nextest", Same, TESTS),
    old("workspace/members", MayGrow, FINDS),
    row("workspace/exclude", Same, FINDS),
    row("workspace/default-members", Same, FINDS),
    old("lints/workspace", Kept, CHECKS),
    old("lints/*/*", NotWeaker, CHECKS),
    old("workspace/lints/*/*", NotWeaker, CHECKS),
];

const NODE: &[SectionRow] = &[
    old("scripts/*", Scripts, COMMANDS),
    row("jest", Same, TESTS),
    row("vitest", Same, TESTS),
    row("mocha", Same, TESTS),
    row("ava", Same, TESTS),
    row("tap", Same, TESTS),
    row("jasmine", Same, TESTS),
    row("c8", Same, TESTS),
    row("nyc", Same, TESTS),
    row("cypress", Same, TESTS),
    row("bin/*", Programs, SHADOWED),
    row("name", OwnName, NEARER),
    old("exports/*", Targets, REPLACES),
    old("main", Targets, REPLACES),
    old("module", Targets, REPLACES),
    old("browser", Targets, REPLACES),
    row("exports", NotBesideIndex, REPLACES),
    row("main", NotBesideIndex, REPLACES),
    row("module", NotBesideIndex, REPLACES),
    row("browser", NotBesideIndex, REPLACES),
    old("imports/*", Kept, REPLACES),
    row("imports", NotInNew, REPLACES),
    row("wireit", Same, COMMANDS),
    row("husky", Same, HOOKS),
    row("simple-git-hooks", Same, HOOKS),
    row("gitHooks", Same, HOOKS),
    row("git-hooks", Same, HOOKS),
    row("config/ghooks", Same, HOOKS),
    row("pre-commit", Same, HOOKS),
    row("pre-push", Same, HOOKS),
    row("nano-staged", Same, HOOKS),
    row("lint-staged", Same, HOOKS),
    row("pre-commit", Same, HOOKS),
    row("config", Same, COMMANDS),
    row("babel", Same, BUILDS),
    row("type", Same, BUILDS),
    row("eslintConfig", Same, CHECKS),
    row("eslintIgnore", Same, CHECKS),
    row("prettier", Same, CHECKS),
    row("stylelint", Same, CHECKS),
    row("xo", Same, CHECKS),
    row("standard", Same, CHECKS),
    row("overrides", Same, REPLACES),
    row("resolutions", Same, REPLACES),
    row("pnpm", Same, REPLACES),
    old("workspaces", MayGrow, FINDS),
    old("workspaces/packages", MayGrow, FINDS),
    old("packageManager", Same, TOOLCHAIN),
    old("devEngines", Same, TOOLCHAIN),
    old("volta", Same, TOOLCHAIN),
];

const PNPM: &[SectionRow] = &[
    row("packages", MayGrowListed, FINDS),
    row("filter", Same, FINDS),
    row("filterProd", Same, FINDS),
    row("resumeFrom", Same, FINDS),
    row("workspaceRoot", Same, FINDS),
    row("includeWorkspaceRoot", Same, FINDS),
    row("testPattern", Same, FINDS),
    row("changedFilesIgnorePattern", Same, FINDS),
    row("ifPresent", Same, COMMANDS),
    row("enablePrePostScripts", Same, COMMANDS),
    row("useNodeVersion", Same, TOOLCHAIN),
    row("nodeVersion", Same, TOOLCHAIN),
    row("executionEnv", Same, TOOLCHAIN),
    row("overrides", Same, REPLACES),
    row("packageExtensions", Same, REPLACES),
    row("patchedDependencies", Same, REPLACES),
    row("configDependencies", Same, REPLACES),
    row("pnpmfile", Same, REPLACES),
    row("registry", Same, PLACES),
    row("registries", Same, PLACES),
    row("namedRegistries", Same, PLACES),
    row("nodeOptions", Same, COMMANDS),
    row("scriptShell", Same, COMMANDS),
    row("shellEmulator", Same, COMMANDS),
];

const LERNA: &[SectionRow] = &[
    row("packages", MayGrowListed, FINDS),
    row("useWorkspaces", Same, FINDS),
    row("command", Same, COMMANDS),
    row("npmClient", Same, COMMANDS),
];

const PYTHON: &[SectionRow] = &[
    row("tool/pytest", Same, TESTS),
    row("tool/pytest-*", Same, TESTS),
    row("tool/coverage", Same, TESTS),
    row("tool/tox", Same, TESTS),
    row("tool/nox", Same, TESTS),
    row("tool/nose*", Same, TESTS),
    row("tool/behave", Same, TESTS),
    row("project/entry-points/pytest11", Same, TESTS),
    row("tool/poetry/plugins/pytest11", Same, TESTS),
    old("tool/hatch/envs", Same, COMMANDS),
    old("tool/pdm/scripts", Same, COMMANDS),
    old("tool/poe", Same, COMMANDS),
    old("tool/taskipy", Same, COMMANDS),
    old("tool/rye/scripts", Same, COMMANDS),
    old("tool/pixi/tasks", Same, COMMANDS),
    row("project/scripts/*", Programs, SHADOWED),
    row("project/gui-scripts/*", Programs, SHADOWED),
    row("tool/poetry/scripts/*", Programs, SHADOWED),
    old("build-system", Same, BUILDS),
    old("tool/setuptools/package-dir", Same, REPLACES),
    old("tool/hatch/build/targets/*/sources", Same, REPLACES),
    old("tool/hatch/build/targets/*/force-include", Same, REPLACES),
    old("tool/flit/module", Same, REPLACES),
    old("tool/poetry/packages", MayGrow, REPLACES),
    old("tool/uv/workspace/members", MayGrow, FINDS),
    row("tool/uv/workspace/exclude", Same, FINDS),
    row("tool/uv/index", Same, PLACES),
    row("tool/uv/index-url", Same, PLACES),
    row("tool/uv/extra-index-url", Same, PLACES),
    row("tool/uv/find-links", Same, PLACES),
    row("tool/uv/pip/index-url", Same, PLACES),
    row("tool/uv/pip/extra-index-url", Same, PLACES),
    row("tool/uv/pip/find-links", Same, PLACES),
    row("tool/uv/override-dependencies", Same, REPLACES),
    row("tool/rye/sources", Same, PLACES),
    row("tool/poetry/source", Same, PLACES),
    row("tool/poetry/requires-plugins", Same, PLACES),
    row("tool/pdm/source", Same, PLACES),
    old("tool/mypy", Same, CHECKS),
    old("tool/ruff", Same, CHECKS),
    old("tool/pylint", Same, CHECKS),
    old("tool/pyright", Same, CHECKS),
    old("tool/basedpyright", Same, CHECKS),
    old("tool/black", Same, CHECKS),
    old("tool/isort", Same, CHECKS),
    old("tool/flake8", Same, CHECKS),
    old("tool/bandit", Same, CHECKS),
];

/// Rows for the metadata of an installed package. Python's tools load plugins by this file wherever
/// they find it.
const ENTRY_POINTS: &[SectionRow] = &[
    row("pytest11", Same, TESTS),
    row("hypothesis", Same, TESTS),
    row("nose*", Same, TESTS),
    row("tox", Same, TESTS),
    row("setuptools*", Same, BUILDS),
    row("distutils*", Same, BUILDS),
    row("flake8*", Same, CHECKS),
    row("pylint*", Same, CHECKS),
];

const SETUP_CFG: &[SectionRow] = &[
    row("DEFAULT", Same, TESTS),
    row("tool:pytest", Same, TESTS),
    row("pytest", Same, TESTS),
    row("coverage:*", Same, TESTS),
    row("nosetests", Same, TESTS),
    row("tox*", Same, TESTS),
    row("testenv*", Same, TESTS),
    row("unittest", Same, TESTS),
    row("options.entry_points/pytest11", Same, TESTS),
    row("aliases", Same, COMMANDS),
    row("easy_install", Same, PLACES),
    row("options/dependency_links", Same, PLACES),
    old("options/package_dir", Same, REPLACES),
    row("mypy*", Same, CHECKS),
    row("flake8*", Same, CHECKS),
    row("isort", Same, CHECKS),
    row("pylint*", Same, CHECKS),
    row("pycodestyle", Same, CHECKS),
    row("pydocstyle", Same, CHECKS),
];

const GO: &[SectionRow] = &[
    row("replace", Same, REPLACES),
    row("exclude", Same, REPLACES),
    old("toolchain", Same, TOOLCHAIN),
    row("godebug", Same, BUILDS),
    row("ignore", Same, FINDS),
];

const CMAKE: &[SectionRow] = &[
    old("tests/*/*", Kept, "it is a test of the base"),
    old("properties/*/*", Same, "it decides when a test counts as passed"),
    old("silencing/*/*", Same, "it switches assertions off"),
    old("blocks/*/*", Same, "it replaces a command that names tests"),
    old("returns/*/*", Same, "it ends the list of tests early"),
];
