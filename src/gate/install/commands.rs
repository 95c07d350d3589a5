//! Chooses the commands that install the packages named by manifests and lock files. No command
//! runs install scripts of packages. The module does no I/O: the caller passes the functions that
//! read and list installed files.

use super::differ::is_requirements;
use super::refused::is_plain;
use crate::gate::installed::InstalledPackages;
use crate::gate::names::{joined, name_of};
use std::collections::{BTreeMap, BTreeSet};

/// A command that installs dependencies.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct InstallCommand {
    /// The folder in which the command runs, relative to the root; empty for the root.
    pub(super) folder: String,
    /// The command, of one or more lines. Messages show its last line.
    pub(super) run: String,
    pub(super) target: InstallTarget,
    /// Only hold-out lanes need the command, so no agent may read it.
    pub(super) is_hidden: bool,
}

/// The place into which a command installs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum InstallTarget {
    /// Folders of the workspace.
    Folders,
    /// A cache in the home, from which tools take what they need.
    Cache,
    /// An environment in the home.
    Environment,
}

/// The text that messages show instead of a hidden command.
const HIDDEN: &str = "an installation for hold-out checks";

/// The facts about a project from which its commands are derived.
pub(super) struct InstallProject<'p> {
    /// The manifests and lock files that name other dependencies than on the base.
    pub(super) changed_manifests: &'p BTreeSet<String>,
    /// All files of the tree.
    pub(super) files: &'p BTreeSet<String>,
    /// The dependencies from before the agent.
    pub(super) installed: &'p InstalledPackages,
    /// The command lines of the lanes.
    pub(super) steps: &'p [String],
    /// New Python requirements, by manifest and by the table that lists them.
    pub(super) requirements: &'p BTreeMap<String, BTreeMap<String, Vec<String>>>,
    /// Reads an installed file.
    pub(super) read: &'p dyn Fn(&str) -> Option<String>,
    /// Lists the names in an installed folder.
    pub(super) list: &'p dyn Fn(&str) -> Vec<String>,
}

/// Lock files of Node and their package managers.
const NODE_LOCKS: [(&str, Node); 6] = [
    ("pnpm-lock.yaml", Node::Pnpm),
    ("yarn.lock", Node::Yarn),
    ("bun.lock", Node::Bun),
    ("bun.lockb", Node::Bun),
    ("package-lock.json", Node::Npm),
    ("npm-shrinkwrap.json", Node::Npm),
];
/// Files in `node_modules` in which package managers record their installations.
const NODE_RECORDS: [(&str, Node); 4] = [
    (".modules.yaml", Node::Pnpm),
    (".yarn-state.yml", Node::Berry),
    (".yarn-integrity", Node::Yarn),
    (".package-lock.json", Node::Npm),
];
/// Names of folders that may hold a Python environment.
const ENVIRONMENTS: [&str; 5] = [".venv", "venv", "env", ".env", "virtualenv"];

/// A package manager of Node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Node {
    Npm,
    Pnpm,
    /// Yarn 1.
    Yarn,
    /// Later versions of Yarn.
    Berry,
    Bun,
}

/// Shell text that writes a script for Gradle. Its task fetches the archives that each
/// configuration of each project resolves to. `gradle dependencies` does not fetch archives.
const GRADLE: &str = r#"cat >"${TMPDIR:-/tmp}/install.gradle" <<'END'
allprojects { p ->
  p.tasks.register('installDependencies') {
    doLast { p.configurations.findAll { it.canBeResolved }.each { c -> try { c.files } catch (Exception e) { println "${c}: ${e.message}" } } }
  }
}
END
"#;

/// The command that fetches the modules of Go.
const GO_DOWNLOAD: &str = "go mod download";
/// Shell text that also adds the sums of the modules in `go.mod` to `go.sum`. `go mod download`
/// does so only for modules in its arguments. The last line is what messages show.
const GO_SUMS: &str = r"sed -nE 's/^(require)?[[:space:]]*([^[:space:]]+)[[:space:]]+(v[^[:space:]]+).*/\2@\3/p' go.mod | xargs go mod download || true
go mod download";

/// Programs in command lines, by the group of package managers that serves them.
const CARGO: &[&str] = &["cargo", "rustc", "maturin"];
const NODE: &[&str] = &["node", "npm", "npx", "pnpm", "yarn", "bun", "bunx", "deno", "tsc", "jest", "vitest", "eslint"];
const GO: &[&str] = &["go", "gofmt", "golangci-lint", "gotestsum"];
const JVM: &[&str] = &["mvn", "mvnw", "gradle", "gradlew", "java"];
const PYTHON: &[&str] = &[
    "python", "python3", "pytest", "tox", "nox", "uv", "uvx", "poetry", "pdm", "pipenv", "hatch", "ruff", "mypy",
    "maturin",
];
const OTHERS: &[&str] = &["bundle", "rake", "rspec", "composer", "phpunit", "php", "mix", "dart", "flutter"];

/// Returns the install commands for the changed manifests and lock files, sorted and without
/// duplicates. Uses a group of package managers only if the lanes have no step, or a step names a
/// program of this group or no known program at all (`make test`).
pub(super) fn install_commands(project: &InstallProject) -> Vec<InstallCommand> {
    let mut found = BTreeSet::new();
    for path in project.changed_manifests {
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        let (programs, command) = match name_of(path) {
            "Cargo.toml" | "Cargo.lock" => (CARGO, project.cargo(folder)),
            "package.json" | "pnpm-workspace.yaml" | "bunfig.toml" => (NODE, project.node_command(folder)),
            name if NODE_LOCKS.iter().any(|(lock, _)| *lock == name) => (NODE, project.node_command(folder)),
            "go.mod" | "go.sum" | "go.work" | "go.work.sum" => (GO, project.go_command(folder)),
            "pom.xml" => (JVM, Some(project.maven(folder))),
            name if name.contains("gradle") || name == "libs.versions.toml" => (JVM, Some(project.gradle(folder))),
            "Gemfile" | "Gemfile.lock" => (OTHERS, project.if_manifest_exists("Gemfile", folder, "bundle install")),
            "composer.json" | "composer.lock" => (OTHERS, project.composer(folder)),
            "mix.exs" | "mix.lock" => (OTHERS, project.if_manifest_exists("mix.exs", folder, "mix deps.get")),
            "pubspec.yaml" | "pubspec.lock" | "pubspec_overrides.yaml" => {
                (OTHERS, project.if_manifest_exists("pubspec.yaml", folder, "dart pub get"))
            }
            _ => continue,
        };
        found.extend(command.filter(|_| project.may_use(programs)));
    }
    if project.may_use(PYTHON) {
        found.extend(project.python());
    }
    found.into_iter().collect()
}

impl InstallCommand {
    /// Returns the last line for messages, or a fixed text for a hidden command.
    pub(super) fn shown(&self) -> &str {
        if self.is_hidden { HIDDEN } else { self.line() }
    }

    /// Returns the last line, for the user who may run the command.
    pub(super) fn line(&self) -> &str {
        self.run.lines().last().unwrap_or_default()
    }
}

fn command(folder: &str, run: String) -> InstallCommand {
    InstallCommand { folder: folder.into(), run, target: InstallTarget::Folders, is_hidden: false }
}

fn into_cache(folder: &str, run: &str) -> InstallCommand {
    InstallCommand { folder: folder.into(), run: run.into(), target: InstallTarget::Cache, is_hidden: false }
}

/// Returns a folder and its parents, up to the root.
fn upward(folder: &str) -> impl Iterator<Item = &str> {
    let outer = folder.rmatch_indices('/').map(|(end, _)| &folder[..end]);
    let root = (!folder.is_empty()).then_some("");
    [folder].into_iter().chain(outer).chain(root)
}

/// Quotes a word for a shell.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

impl InstallProject<'_> {
    /// Returns whether a file is in the tree, or is git-ignored and existed before the agent.
    fn has(&self, path: &str) -> bool {
        self.files.contains(path) || self.installed.files.iter().any(|file| file == path)
    }

    fn is_installed(&self, path: &str) -> bool {
        self.installed.folders.iter().any(|folder| folder == path)
    }

    /// Returns whether a command line of the lanes contains a text.
    fn runs(&self, word: &str) -> bool {
        self.steps.iter().any(|step| step.contains(word))
    }

    /// Returns whether a step may use one of these programs: it names one of them or, like
    /// `make test`, no known program at all.
    fn may_use(&self, programs: &[&str]) -> bool {
        let is_in = |step: &String, programs: &[&str]| {
            let is_part = |c: char| !(c.is_alphanumeric() || c == '-' || c == '_');
            step.split(is_part).any(|word| programs.contains(&word))
        };
        let all = [CARGO, NODE, GO, JVM, PYTHON, OTHERS];
        let may = |step: &String| is_in(step, programs) || !all.iter().any(|other| is_in(step, other));
        self.steps.is_empty() || self.steps.iter().any(may)
    }

    /// Returns a command that runs in the folder of its manifest; `None` without the manifest.
    fn if_manifest_exists(&self, manifest: &str, folder: &str, run: &str) -> Option<InstallCommand> {
        self.has(&joined(folder, manifest)).then(|| command(folder, run.into()))
    }

    /// Returns the nearest folder upward that has one of `locks`, else the outermost folder that
    /// has the manifest.
    fn root<'f>(&self, folder: &'f str, locks: &[&str], manifest: &str) -> &'f str {
        let locked = upward(folder).find(|at| locks.iter().any(|lock| self.has(&joined(at, lock))));
        let outermost = || upward(folder).filter(|at| self.has(&joined(at, manifest))).last();
        locked.or_else(outermost).unwrap_or(folder)
    }

    fn cargo(&self, folder: &str) -> Option<InstallCommand> {
        let root = self.root(folder, &["Cargo.lock"], "Cargo.toml");
        self.has(&joined(root, "Cargo.toml")).then(|| into_cache(root, "cargo fetch"))
    }

    /// Returns the command of the package manager that filled `node_modules`, else of the one that
    /// the lock file belongs to, else of npm.
    fn node_command(&self, folder: &str) -> Option<InstallCommand> {
        // In a workspace of npm, pnpm or yarn only the root has a lock file, while each package may
        // have its own `node_modules` with links. So look upward for a lock file first.
        let has_lock = |at: &&str| NODE_LOCKS.iter().any(|(lock, _)| self.has(&joined(at, lock)));
        let has_node_modules = |at: &&str| self.is_installed(&joined(at, "node_modules"));
        let root = upward(folder).find(has_lock).or_else(|| upward(folder).find(has_node_modules)).unwrap_or(folder);
        let modules = joined(root, "node_modules");
        let has_record = |(name, _): &&(&str, Node)| (self.read)(&joined(&modules, name)).is_some();
        let installer = NODE_RECORDS.iter().find(has_record).map(|(_, node)| *node);
        let locked = NODE_LOCKS.iter().find(|(lock, _)| self.has(&joined(root, lock))).map(|(_, node)| *node);
        let is_yarn_2_or_later = || [".yarnrc.yml", ".pnp.cjs"].iter().any(|name| self.has(&joined(root, name)));
        let run = match installer.or(locked).unwrap_or(Node::Npm) {
            Node::Yarn if installer.is_none() && is_yarn_2_or_later() => "yarn install --mode=skip-build",
            Node::Npm => "npm install --ignore-scripts --no-audit --no-fund --prefer-offline",
            Node::Pnpm => {
                "pnpm install --ignore-scripts --no-frozen-lockfile --prefer-offline --config.confirmModulesPurge=false"
            }
            Node::Yarn => "yarn install --ignore-scripts --non-interactive --prefer-offline",
            Node::Berry => "yarn install --mode=skip-build",
            Node::Bun => "bun install --ignore-scripts",
        };
        // `.pnpmfile` contains hooks of pnpm. This tree has only the manifests and lock files of
        // the work, so a `.pnpmfile` in it is from before the agent and may run. Without one, no
        // hook of pnpm may run.
        let has_pnpmfile = [".pnpmfile.cjs", ".pnpmfile.mjs"].iter().any(|name| self.has(&joined(root, name)));
        let flag = if run.starts_with("pnpm") && !has_pnpmfile { " --ignore-pnpmfile" } else { "" };
        self.if_manifest_exists("package.json", root, &format!("{run}{flag}"))
    }

    /// Returns the command for Go. A tracked `vendor` is part of the work and needs no command.
    fn go_command(&self, folder: &str) -> Option<InstallCommand> {
        let root = upward(folder).find(|at| self.has(&joined(at, "go.work"))).unwrap_or(folder);
        let (vendor, is_work) = (joined(root, "vendor"), self.has(&joined(root, "go.work")));
        let is_there = is_work || self.has(&joined(root, "go.mod"));
        if !is_there || self.files.contains(&joined(&vendor, "modules.txt")) {
            return None;
        }
        if self.is_installed(&vendor) {
            return Some(command(root, if is_work { "go work vendor" } else { "go mod vendor" }.into()));
        }
        Some(into_cache(root, if is_work { GO_DOWNLOAD } else { GO_SUMS }))
    }

    /// Returns the command for Maven, which resolves the dependencies of each goal before it runs
    /// the goal. The flags leave the goals without work.
    fn maven(&self, folder: &str) -> InstallCommand {
        let root = self.root(folder, &[], "pom.xml");
        let program = if self.has(&joined(root, "mvnw")) { "./mvnw" } else { "mvn" };
        into_cache(root, &format!("{program} --batch-mode -Dmaven.main.skip=true -Dmaven.test.skip=true test-compile"))
    }

    fn gradle(&self, folder: &str) -> InstallCommand {
        let is_root = |at: &&str| {
            let names = ["settings.gradle", "settings.gradle.kts", "build.gradle", "build.gradle.kts"];
            names.iter().any(|name| self.has(&joined(at, name)))
        };
        let root = upward(folder).filter(is_root).last().unwrap_or(folder);
        let program = if self.has(&joined(root, "gradlew")) { "./gradlew" } else { "gradle" };
        let script = r#"-I "${TMPDIR:-/tmp}/install.gradle""#;
        into_cache(root, &format!("{GRADLE}{program} --no-daemon --console=plain {script} installDependencies"))
    }

    fn composer(&self, folder: &str) -> Option<InstallCommand> {
        let flags = "--no-scripts --no-plugins --no-interaction";
        let is_locked = self.changed_manifests.contains(&joined(folder, "composer.lock"));
        let verb = if is_locked { "install" } else { "update --minimal-changes" };
        self.if_manifest_exists("composer.json", folder, &format!("composer {verb} {flags}"))
    }

    /// Returns the commands that update Python environments.
    fn python(&self) -> Vec<InstallCommand> {
        let is_one = |path: &&String| {
            let name = name_of(path);
            let names = [
                "pyproject.toml",
                "setup.cfg",
                "tox.ini",
                "noxfile.py",
                "Pipfile",
                "Pipfile.lock",
                "poetry.lock",
                "uv.lock",
                "pdm.lock",
            ];
            names.contains(&name) || is_requirements(path)
        };
        let mut found = Vec::new();
        let mut by_environment: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        let folders = |path: &String| path.rsplit_once('/').map_or(String::new(), |(folder, _)| folder.to_owned());
        for path in self.changed_manifests.iter().filter(is_one) {
            let folder = folders(path);
            found.extend(self.runners_of_python(&folder));
            match self.manager_of_python(&folder) {
                Some(command) => found.push(command),
                None => {
                    let at = |name: &str| upward(&folder).find(|at| self.is_installed(&joined(at, name)));
                    if let Some((at, name)) = ENVIRONMENTS.iter().find_map(|name| Some((at(name)?, name))) {
                        by_environment.entry(joined(at, name)).or_default().extend(self.required(path));
                    }
                }
            }
        }
        found.extend(by_environment.into_iter().filter(|(_, what)| !what.is_empty()).map(|(at, what)| {
            let what = what.into_iter().collect::<Vec<_>>().join(" ");
            let python = joined(&at, "bin/python");
            let python = if python.contains(char::is_whitespace) { quoted(&python) } else { python };
            let has_pip = (self.list)(&joined(&at, "bin")).iter().any(|name| name.starts_with("pip"));
            let pip = if has_pip {
                format!("{python} -m pip install --disable-pip-version-check --no-input")
            } else {
                format!("uv pip install --python {python}")
            };
            command("", format!("{pip} {what}"))
        }));
        found
    }

    /// Returns the arguments of pip for a manifest, quoted for a shell.
    fn required(&self, path: &String) -> Vec<String> {
        if is_requirements(path) {
            return vec![format!("-r {}", quoted(path))];
        }
        let tables = self.requirements.get(path).into_iter().flatten();
        let all = tables.flat_map(|(_, texts)| texts);
        all.filter(|text| is_plain(text)).map(|text| quoted(text)).collect()
    }

    /// Returns a command that fills the environment of a folder. Without one in the folder, the
    /// environment is in the home.
    fn for_environment(&self, folder: &str, run: String) -> InstallCommand {
        let names = ENVIRONMENTS.iter().chain(&["__pypackages__"]);
        let is_here = names.into_iter().any(|name| self.is_installed(&joined(folder, name)));
        let target = if is_here { InstallTarget::Folders } else { InstallTarget::Environment };
        InstallCommand { target, ..command(folder, run) }
    }

    /// Returns the command of a package manager that fills an environment by its own files.
    fn manager_of_python(&self, folder: &str) -> Option<InstallCommand> {
        let root = |lock: &str| upward(folder).find(|at| self.has(&joined(at, lock)));
        if let Some(root) = root("poetry.lock") {
            let lock = if self.changed_manifests.contains(&joined(root, "poetry.lock")) {
                ""
            } else {
                "poetry lock --no-interaction && "
            };
            return Some(self.for_environment(root, format!("{lock}poetry install --no-root --no-interaction")));
        }
        if let Some(root) = root("pdm.lock") {
            return Some(self.for_environment(root, "pdm install --no-self".into()));
        }
        if let Some(root) = root("Pipfile") {
            return Some(self.for_environment(root, "pipenv install --dev".into()));
        }
        if let Some(root) = root("uv.lock") {
            let made_by = (self.read)(&joined(root, ".venv/pyvenv.cfg"));
            let is_uvs =
                made_by.map_or_else(|| self.runs("uv "), |text| text.lines().any(|line| line.starts_with("uv = ")));
            if is_uvs {
                let mut run = "uv sync --inexact --no-install-project --no-install-workspace".to_owned();
                let manifests = self.requirements.values().flat_map(BTreeMap::keys);
                for table in manifests {
                    for (start, flag) in
                        [("dependency-groups.", "--group"), ("project.optional-dependencies.", "--extra")]
                    {
                        if let Some(name) = table.strip_prefix(start) {
                            run.push_str(&format!(" {flag} {}", quoted(name)));
                        }
                    }
                }
                return Some(command(root, run));
            }
        }
        None
    }

    /// Returns the commands of test runners that have separate environments.
    fn runners_of_python(&self, folder: &str) -> Vec<InstallCommand> {
        let mut found = Vec::new();
        let root = |name: &str| upward(folder).find(|at| self.is_installed(&joined(at, name))).map(ToOwned::to_owned);
        if let Some(root) = root(".tox") {
            let tox = joined(&root, ".tox");
            let is_environment = |name: &String| (self.read)(&joined(&tox, &format!("{name}/pyvenv.cfg"))).is_some();
            let names: Vec<String> = (self.list)(&tox).into_iter().filter(|name| !name.starts_with('.')).collect();
            let names: Vec<String> = names.into_iter().filter(is_environment).collect();
            if !names.is_empty() {
                found.push(command(&root, format!("tox run --notest -e {}", quoted(&names.join(",")))));
            }
        }
        if let Some(root) = root(".nox") {
            found.push(command(&root, "nox --install-only --reuse-existing-virtualenvs".into()));
        }
        let named = self.steps.iter().flat_map(|step| step.split("hatch run ").skip(1));
        let named = named.filter_map(|rest| rest.split_whitespace().next());
        let hatch: BTreeSet<&str> =
            named.map(|word| word.split_once(':').map_or("default", |(name, _)| name)).collect();
        // Hatch updates an environment before it runs a program there.
        found.extend(
            hatch.into_iter().map(|name| into_cache("", &format!("hatch run {}:python --version", quoted(name)))),
        );
        found
    }
}

#[cfg(test)]
mod tests;
