//! Tests of the commands for sample projects of each ecosystem.

use super::*;

/// A sample project: its files, installed folders and files, and the steps of its lanes.
#[derive(Default)]
struct Sample<'s> {
    files: &'s [&'s str],
    ignored: &'s [&'s str],
    folders: &'s [&'s str],
    /// Installed files with their text.
    within: &'s [(&'s str, &'s str)],
    steps: &'s [&'s str],
    requirements: &'s [(&'s str, &'s str, &'s str)],
}

impl Sample<'_> {
    /// Returns the commands as `FOLDER: COMMAND`. Those that only fill caches are in parentheses,
    /// and those that fill environments in a home are in brackets.
    fn commands(&self, changed: &[&str]) -> Vec<String> {
        let owned = |paths: &[&str]| paths.iter().map(|path| (*path).to_owned()).collect::<Vec<_>>();
        let mut installed = InstalledPackages::default();
        (installed.folders, installed.files) = (owned(self.folders), owned(self.ignored));
        let mut requirements: BTreeMap<String, BTreeMap<String, Vec<String>>> = BTreeMap::new();
        for (path, table, text) in self.requirements {
            let tables = requirements.entry((*path).to_owned()).or_default();
            tables.entry((*table).to_owned()).or_default().push((*text).to_owned());
        }
        let read = |path: &str| self.within.iter().find(|(own, _)| *own == path).map(|(_, text)| (*text).to_owned());
        let list = |folder: &str| {
            let below = self.within.iter().filter_map(|(path, _)| path.strip_prefix(folder)?.strip_prefix('/'));
            let names: BTreeSet<&str> = below.filter_map(|rest| rest.split('/').next()).collect();
            names.into_iter().map(ToOwned::to_owned).collect::<Vec<_>>()
        };
        let project = InstallProject {
            changed_manifests: &owned(changed).into_iter().collect(),
            files: &owned(self.files).into_iter().collect(),
            installed: &installed,
            steps: &owned(self.steps),
            requirements: &requirements,
            read: &read,
            list: &list,
        };
        let reported = |command: InstallCommand| {
            let text = format!("{}: {}", command.folder, command.shown());
            match command.target {
                InstallTarget::Folders => text,
                InstallTarget::Cache => format!("({text})"),
                InstallTarget::Environment => format!("[{text}]"),
            }
        };
        install_commands(&project).into_iter().map(reported).collect()
    }
}

/// Files, installed folders, installed files, and the expected command.
type Case = (&'static [&'static str], &'static [&'static str], &'static [(&'static str, &'static str)], &'static str);

#[test]
fn the_package_manager_that_installed_installs_again_and_else_that_of_the_lock_file() {
    let npm = ": npm install --ignore-scripts --no-audit --no-fund --prefer-offline";
    let pnpm = ": pnpm install --ignore-scripts --no-frozen-lockfile --prefer-offline --config.confirmModulesPurge=false --ignore-pnpmfile";
    let yarn = ": yarn install --ignore-scripts --non-interactive --prefer-offline";
    let berry = ": yarn install --mode=skip-build";
    let cases: [Case; 9] = [
        (&["package.json"], &[], &[], npm),
        (&["package.json", "pnpm-lock.yaml"], &[], &[], pnpm),
        (&["package.json", "yarn.lock"], &[], &[], yarn),
        (&["package.json", "yarn.lock", ".yarnrc.yml"], &[], &[], berry),
        (&["package.json", "bun.lock"], &[], &[], ": bun install --ignore-scripts"),
        (&["package.json", "yarn.lock"], &["node_modules"], &[("node_modules/.yarn-integrity", "")], yarn),
        (&["package.json", "yarn.lock"], &["node_modules"], &[("node_modules/.yarn-state.yml", "")], berry),
        (&["package.json", "yarn.lock"], &["node_modules"], &[("node_modules/.package-lock.json", "")], npm),
        (&["package.json"], &["node_modules"], &[("node_modules/.modules.yaml", "")], pnpm),
    ];
    for (files, folders, within, wanted) in cases {
        let sample = Sample { files, folders, within, ..Sample::default() };
        assert_eq!(sample.commands(&["package.json"]), [wanted], "{files:?} {within:?}");
    }
}

#[test]
fn a_workspace_is_installed_at_its_root_and_once() {
    let files = ["package.json", "pnpm-lock.yaml", "packages/a/package.json", "packages/b/package.json"];
    let sample = Sample { files: &files, ..Sample::default() };
    let commands = sample.commands(&["packages/a/package.json", "packages/b/package.json", "pnpm-lock.yaml"]);
    assert_eq!(commands.len(), 1, "{commands:?}");
    assert!(commands[0].starts_with(": pnpm install"), "{commands:?}");
    let files = ["package.json", "yarn.lock", "packages/a/package.json"];
    let linked = Sample { files: &files, folders: &["packages/a/node_modules"], ..Sample::default() };
    let commands = linked.commands(&["packages/a/package.json"]);
    assert!(commands[0].starts_with(": yarn install"), "{commands:?}");
    let files = ["a/Cargo.toml", "a/Cargo.lock", "a/b/Cargo.toml", "c/Cargo.toml", "c/d/Cargo.toml"];
    let sample = Sample { files: &files, ..Sample::default() };
    assert_eq!(sample.commands(&["a/b/Cargo.toml", "c/d/Cargo.toml"]), ["(a: cargo fetch)", "(c: cargo fetch)"]);
    let own = Sample { files: &["web/package.json", "Cargo.toml"], ..Sample::default() };
    assert!(own.commands(&["web/package.json"])[0].starts_with("web: npm install"));
    let ignored = Sample { files: &["Cargo.toml", "x/Cargo.toml"], ignored: &["Cargo.lock"], ..Sample::default() };
    assert_eq!(ignored.commands(&["x/Cargo.toml"]), ["(: cargo fetch)"]);
}

#[test]
fn an_environment_of_python_gets_the_new_requirements_by_what_made_it() {
    let new: &[(&str, &str, &str)] = &[("pyproject.toml", "project.dependencies", "rich>=13; python_version > '3'")];
    let sample = |folders, within, requirements| Sample {
        files: &["pyproject.toml", "requirements-dev.txt"],
        folders,
        within,
        requirements,
        ..Sample::default()
    };
    let pip = sample(&[".venv"], &[(".venv/pyvenv.cfg", "home = /usr/bin\n"), (".venv/bin/pip3", "")], new);
    let wanted = r": .venv/bin/python -m pip install --disable-pip-version-check --no-input 'rich>=13; python_version > '\''3'\'''";
    assert_eq!(pip.commands(&["pyproject.toml"]), [wanted]);
    let listed = ": .venv/bin/python -m pip install --disable-pip-version-check --no-input -r 'requirements-dev.txt'";
    assert_eq!(pip.commands(&["requirements-dev.txt"]), [listed]);
    let uvs = sample(&["venv"], &[("venv/pyvenv.cfg", "uv = 0.5\n"), ("venv/bin/python", "")], new);
    assert!(uvs.commands(&["pyproject.toml"])[0].starts_with(": uv pip install --python venv/bin/python 'rich"));
    assert!(sample(&[], &[], new).commands(&["pyproject.toml"]).is_empty(), "there is no environment");
    let none = sample(&[".venv"], &[(".venv/pyvenv.cfg", "")], &[]);
    assert!(none.commands(&["pyproject.toml"]).is_empty(), "nothing is new");
}

#[test]
fn an_environment_with_a_lock_file_is_filled_by_its_manager() {
    let uv_made: &[(&str, &str)] = &[(".venv/pyvenv.cfg", "home = /x\nuv = 0.9\n")];
    let pip_made: &[(&str, &str)] = &[(".venv/pyvenv.cfg", "home = /x\n"), (".venv/bin/pip", "")];
    let new: &[(&str, &str, &str)] = &[("pyproject.toml", "dependency-groups.test", "a")];
    let files = ["pyproject.toml", "uv.lock"];
    let sample = |within| Sample { files: &files, folders: &[".venv"], within, requirements: new, ..Sample::default() };
    let sync = ": uv sync --inexact --no-install-project --no-install-workspace --group 'test'";
    assert_eq!(sample(uv_made).commands(&["pyproject.toml", "uv.lock"]), [sync]);
    let pip = sample(pip_made).commands(&["pyproject.toml", "uv.lock"]);
    assert_eq!(pip, [": .venv/bin/python -m pip install --disable-pip-version-check --no-input 'a'"]);
    let none = Sample { files: &files, steps: &["uv run pytest"], requirements: new, ..Sample::default() };
    assert_eq!(none.commands(&["uv.lock"]), [sync], "`uv run` makes the environment");
    let poetry = Sample { files: &["a/pyproject.toml", "a/poetry.lock"], ..Sample::default() };
    let install = "[a: poetry install --no-root --no-interaction]";
    assert_eq!(poetry.commands(&["a/pyproject.toml", "a/poetry.lock"]), [install]);
    let here = Sample { folders: &["a/.venv"], ..poetry };
    let stale = here.commands(&["a/pyproject.toml"]);
    assert_eq!(stale, ["a: poetry lock --no-interaction && poetry install --no-root --no-interaction"]);
}

#[test]
fn each_package_manager_installs_by_its_manifest_without_scripts() {
    let composer = "--no-scripts --no-plugins --no-interaction";
    for (files, folder, changed, command) in [
        (&["Gemfile"][..], "", "Gemfile", ": bundle install".to_owned()),
        (&["composer.json"], "", "composer.json", format!(": composer update --minimal-changes {composer}")),
        (&["composer.json", "composer.lock"], "", "composer.lock", format!(": composer install {composer}")),
        (&["mix.exs"], "", "mix.exs", ": mix deps.get".to_owned()),
        (&["pubspec.yaml"], "", "pubspec.yaml", ": dart pub get".to_owned()),
        (&["pyproject.toml", "pdm.lock"], "", "pdm.lock", "[: pdm install --no-self]".to_owned()),
        (&["pyproject.toml", "pdm.lock"], ".venv", "pdm.lock", ": pdm install --no-self".to_owned()),
        (&["Pipfile"], "", "Pipfile", "[: pipenv install --dev]".to_owned()),
        (&["noxfile.py"], ".nox", "noxfile.py", ": nox --install-only --reuse-existing-virtualenvs".to_owned()),
    ] {
        let sample = Sample { files, folders: &[folder], ..Sample::default() };
        assert_eq!(sample.commands(&[changed]), [command], "{changed}");
    }
}

#[test]
fn test_runners_bring_their_own_environments_in_line() {
    let within = [(".tox/py/pyvenv.cfg", ""), (".tox/.pkg/pyvenv.cfg", ""), (".tox/log/1.log", "")];
    let tox = Sample { files: &["pyproject.toml"], folders: &[".tox"], within: &within, ..Sample::default() };
    assert_eq!(tox.commands(&["pyproject.toml"]), [": tox run --notest -e 'py'"]);
    let steps = ["hatch run test:test -q && hatch run lint"];
    let hatch = Sample { files: &["pyproject.toml"], steps: &steps, ..Sample::default() };
    let wanted = ["(: hatch run 'default':python --version)", "(: hatch run 'test':python --version)"];
    assert_eq!(hatch.commands(&["pyproject.toml"]), wanted);
}

#[test]
fn nothing_is_installed_for_programs_that_no_step_runs() {
    let files = ["Cargo.toml", "web/package.json"];
    let sample = |steps| {
        Sample { files: &files, steps, ..Sample::default() }.commands(&["Cargo.toml", "web/package.json"]).len()
    };
    assert_eq!(sample(&["cargo test"]), 1);
    assert_eq!(sample(&["cargo test", "cd web && npm test"]), 2);
    assert_eq!(sample(&["make test"]), 2);
    assert_eq!(sample(&[".venv/bin/python -m pytest"]), 0);
    assert!(
        Sample::default().commands(&["Cargo.lock", "package-lock.json", "go.sum"]).is_empty(),
        "no manifest is there"
    );
}

#[test]
fn compiled_languages_fill_their_caches() {
    let go = Sample { files: &["go.mod"], ..Sample::default() };
    assert_eq!(go.commands(&["go.mod", "go.sum"]), ["(: go mod download)"]);
    let vendored = Sample { files: &["go.mod"], folders: &["vendor"], ..Sample::default() };
    assert_eq!(vendored.commands(&["go.mod"]), [": go mod vendor"]);
    let tracked = Sample { files: &["go.mod", "vendor/modules.txt"], ..Sample::default() };
    assert!(tracked.commands(&["go.mod"]).is_empty());
    let maven = Sample { files: &["pom.xml", "a/pom.xml", "mvnw"], ..Sample::default() };
    let resolve = "(: ./mvnw --batch-mode -Dmaven.main.skip=true -Dmaven.test.skip=true test-compile)";
    assert_eq!(maven.commands(&["a/pom.xml"]), [resolve]);
    let gradle = Sample { files: &["settings.gradle", "app/build.gradle.kts", "gradlew"], ..Sample::default() };
    let install =
        r#"(: ./gradlew --no-daemon --console=plain -I "${TMPDIR:-/tmp}/install.gradle" installDependencies)"#;
    assert_eq!(gradle.commands(&["app/build.gradle.kts"]), [install]);
}
