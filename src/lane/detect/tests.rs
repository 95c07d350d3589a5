//! Tests of detection in projects of every kind, and in mixed projects.

mod python;
mod read_back;

use super::*;
use crate::lane::Step;

/// Creates a project with these files and their folders, on a machine with these programs.
fn project(files: &[(&str, &str)], programs: &str) -> ProjectFacts {
    let mut facts = ProjectFacts::default();
    for (path, text) in files {
        let folder = path.split('/').next().unwrap_or_default();
        facts.paths.extend([(*path).to_owned(), folder.to_owned()]);
        if is_read(path) {
            facts.texts.insert((*path).to_owned(), (*text).to_owned());
        }
    }
    let (by, programs): (Vec<&str>, _) = programs.split_whitespace().partition(|word| word.starts_with("#!"));
    facts.programs = programs.into_iter().map(str::to_owned).collect();
    facts.pytest_by = by.into_iter().map(|word| word[2..].to_owned()).collect();
    facts
}

/// Formats the detected checks, one line each. Parallel steps start with `|`.
fn format_lane(detected: &DetectedLane) -> String {
    let Ok(lane) = detected.lane() else { return format!("nothing\n{}", lines("  # ", &detected.remarks)) };
    let is_beside = |step: &Step| {
        lane.steps.iter().filter(|other| (&other.after, &other.joints) == (&step.after, &step.joints)).count() > 1
    };
    let mark = |step: &Step| if is_beside(step) { "|" } else { "-" };
    let steps: String =
        lane.steps.iter().map(|step| format!("  {} {}: {}\n", mark(step), step.name, step.run)).collect();
    format!("from {}\n{steps}{}", detected.markers.join(", "), lines("  # ", &detected.remarks))
}

fn lines(start: &str, texts: &[String]) -> String {
    texts.iter().map(|text| format!("{start}{text}\n")).collect()
}

/// A title, files with their texts, and programs.
type Case<'c> = (&'c str, &'c [(&'c str, &'c str)], &'c str);

fn table(cases: &[Case<'_>]) -> String {
    let case =
        |(title, files, programs): &Case<'_>| format!("{title}: {}", format_lane(&detect(&project(files, programs))));
    cases.iter().map(case).collect::<Vec<_>>().join("\n")
}

const RUST: &str = "cargo cargo-fmt cargo-clippy";
const SCRIPTED: &str =
    r#"{"scripts": {"lint": "eslint .", "format:check": "prettier --check .", "build": "tsc", "test": "jest"}}"#;

#[test]
fn toolchains_are_asked_in_their_own_words() {
    insta::assert_snapshot!(table(&[
        ("rust", &[("Cargo.toml", "[package]\nname = \"a\"")], RUST),
        ("rust workspace", &[("Cargo.toml", "[workspace]\nmembers = [\"a\"]")], RUST),
        ("rust with the least toolchain", &[("Cargo.toml", "")], "cargo"),
        ("rust without cargo", &[("Cargo.toml", "")], "make"),
        ("go", &[("go.mod", "module a")], "go gofmt"),
        ("go with linters", &[("go.mod", ""), (".golangci.yml", "")], "go gofmt golangci-lint"),
        ("go with linters that are not there", &[("go.mod", ""), (".golangci.yml", "")], "go"),
        ("ruby with rspec", &[("Gemfile", "gem 'rspec'\ngem 'rubocop'"), (".rubocop.yml", "")], "bundle"),
        ("ruby with rake", &[("Gemfile", "gem 'rake'"), ("Rakefile", "Rake::TestTask.new(:test)")], "bundle"),
        ("rails", &[("Gemfile", "gem 'rails'"), ("test/a_test.rb", ""), ("bin/rails", "")], "bundle ./bin/rails"),
        ("ruby without bundler", &[("Gemfile", "")], ""),
        ("swift", &[("Package.swift", ""), ("Tests/A.swift", ""), (".swiftlint.yml", "")], "swift"),
        ("gradle by its wrapper", &[("build.gradle.kts", ""), ("gradlew", "")], "./gradlew gradle"),
        ("gradle by a wrapper that may not be started", &[("build.gradle", ""), ("gradlew", "")], "gradle"),
        ("gradle", &[("settings.gradle", "")], "gradle"),
        ("gradle that is not there", &[("build.gradle", "")], ""),
        ("maven", &[("pom.xml", "")], "mvn"),
        ("maven that signs", &[("pom.xml", "<profile>x</profile><artifactId>maven-gpg-plugin</artifactId>")], "mvn"),
        (
            "maven that signs a release",
            &[("pom.xml", "<profile><artifactId>maven-gpg-plugin</artifactId></profile>")],
            "mvn"
        ),
        ("gradle and maven", &[("build.gradle", ""), ("gradlew", ""), ("pom.xml", "")], "./gradlew mvn"),
        ("gradle and maven, both installed", &[("build.gradle", ""), ("pom.xml", "")], "gradle mvn"),
        (
            "gradle and maven with a CI",
            &[
                ("build.gradle", ""),
                ("pom.xml", ""),
                (".github/workflows/ci.yml", &workflow("      - run: mvn -B test\n"))
            ],
            "gradle mvn"
        ),
        ("maven by its wrapper", &[("pom.xml", ""), ("mvnw", "")], "./mvnw"),
    ]));
}

#[test]
fn node_projects_are_checked_by_their_own_manager_scripts_and_tools() {
    let scripts = |scripts: &str| format!("{{\"scripts\": {{{scripts}}}}}");
    let fixing = scripts(r#""lint": "eslint --fix .", "format": "prettier --write .", "test": "vitest --watch""#);
    let writing = scripts(
        r#""test": "npm run build && npm run format && npm run test-api", "build": "tsc -b", "format": "prettier -w .", "test-api": "node test.js""#,
    );
    let fresh = scripts(r#""test": "echo \"Error: no test specified\" && exit 1""#);
    let umbrella = scripts(r#""check": "npm run lint && npm run test", "lint": "x", "test": "y""#);
    let svelte = scripts(r#""check": "svelte-check", "test": "y""#);
    let named =
        r#"{"packageManager": "pnpm@9.1.0+sha512.abc", "scripts": {"test": "x"}, "devDependencies": {"x": "1"}}"#;
    let tools = [
        ("package.json", r#"{"devDependencies": {"vitest": "1"}, "eslintConfig": {}}"#),
        ("eslint.config.mjs", ""),
        ("tsconfig.json", ""),
        (".prettierrc.json", ""),
        ("node_modules/.bin/vitest", ""),
        ("node_modules/.bin/tsc", ""),
        ("node_modules/.bin/eslint", ""),
    ];
    insta::assert_snapshot!(table(&[
        ("npm", &[("package.json", SCRIPTED), ("package-lock.json", "")], "npm node"),
        ("npm without a lock file", &[("package.json", SCRIPTED)], "npm node"),
        ("pnpm", &[("package.json", SCRIPTED), ("pnpm-lock.yaml", "")], "npm pnpm node"),
        ("yarn", &[("package.json", SCRIPTED), ("yarn.lock", "")], "npm yarn"),
        ("bun", &[("package.json", SCRIPTED), ("bun.lockb", "")], "npm bun"),
        ("the manager is not there", &[("package.json", SCRIPTED), ("yarn.lock", "")], "npm"),
        ("the manifest names the manager", &[("package.json", named), ("yarn.lock", "")], "npm pnpm yarn"),
        ("an unknown manager", &[("package.json", r#"{"packageManager": "x\n- run: y@1"}"#)], "npm"),
        ("scripts that change or never end", &[("package.json", &fixing)], "npm"),
        ("tests that also write", &[("package.json", &writing)], "npm"),
        ("nothing written yet", &[("package.json", &fresh)], "npm"),
        ("a script of scripts", &[("package.json", &umbrella)], "npm"),
        ("a separate check", &[("package.json", &svelte)], "npm"),
        ("tools without scripts", &tools, "npm node"),
        (
            "scripts of tools that are not there",
            &[("package.json", SCRIPTED), ("node_modules/.bin/tsc", "")],
            "npm prettier"
        ),
        ("no JSON", &[("package.json", "{")], "npm"),
        ("no object", &[("package.json", "[1]")], "npm"),
    ]));
}

#[test]
fn recipes_are_used_where_nothing_else_has_tests() {
    let make = ".PHONY: test lint\nCC := gcc\ntest: CFLAGS += -g\nall: a.o\nlint test: all ; true\n\techo test\n";
    let just = "set shell := ['sh']\nalias t := test\n[private]\n@lint:\n  x\ntest filter='' *rest: lint (build 'a')\n  y\ncheck target:\n  z\n";
    insta::assert_snapshot!(table(&[
        ("make", &[("Makefile", make)], "make"),
        ("make that is not there", &[("Makefile", make)], ""),
        ("a target that runs the others", &[("Makefile", "check: lint unit\nunit: test\ntest:\nlint:\n")], "make"),
        ("targets in a circle", &[("Makefile", "check: test\ntest: check\n")], "make"),
        ("make would do nothing", &[("Makefile", "test:\n\trun"), ("test/a", "")], "make"),
        (
            "a Makefile that configure makes",
            &[
                ("Makefile", "all test:\n\t-@echo Please use ./configure first.\n"),
                ("configure", ""),
                ("Makefile.in", "")
            ],
            "make"
        ),
        ("nothing to check", &[("Makefile", "all:\n\tcc\ntest=1\n")], "make"),
        ("a Makefile that only builds", &[("Makefile", "app: app.o\n\t$(CC) -o app app.o\n")], "make"),
        ("just", &[("justfile", just)], "just make"),
        ("just before make", &[("justfile", "test:\n"), ("Makefile", make)], "just make"),
        ("make where there is no just", &[("justfile", "test:\n"), ("Makefile", make)], "make"),
        (
            "scripts",
            &[("test.sh", "#!/usr/bin/env bash\n"), ("scripts/lint", "#!/bin/sh"), ("check.sh", "")],
            "./scripts/lint"
        ),
        ("bats", &[("tests/a.bats", "")], "bats"),
    ]));
}

/// Creates a workflow of one job with these lines under `steps`.
fn workflow(steps: &str) -> String {
    format!("on: [push]\njobs:\n  test:\n    runs-on: ubuntu-latest\n    steps:\n{steps}")
}

#[test]
fn the_checks_are_those_that_the_projects_own_ci_runs() {
    let ci = ".github/workflows/ci.yml";
    let cargo = workflow(
        "      - run: rustup update\n      - run: cargo fmt --all -- --check\n      - run: cargo test --locked --no-default-features\n      \
         - run: cargo build --locked\n      - run: cargo test --locked\n      - run: cargo publish\n",
    );
    let go = workflow("      - run: go test -race -coverprofile=c.out ./...\n");
    let node = workflow(
        "      - run: pnpm install\n      - run: pnpm lint\n      - run: pnpm vitest run --coverage\n      - run: pnpm run gone\n",
    );
    let npm = workflow("      - run: npm run lint\n      - run: npx vitest run\n");
    let check = workflow("      - run: npm test\n      - run: npm run check\n");
    let nested = r#"{"scripts": {"check": "npm run check:type && npm run check:lint", "check:type": "tsc", "check:lint": "eslint .", "lint": "x", "test": "y"},
        "devDependencies": {"eslint": "1", "typescript": "1"}}"#;
    let package =
        r#"{"scripts": {"lint": "eslint .", "build": "tsc", "test": "vitest"}, "devDependencies": {"vitest": "1"}}"#;
    let python = workflow(
        "      - run: pip install .\n      - run: python -m pytest -x tests/unit --cov=a --cov-report xml\n      - run: black .\n      \
         - run: pytest -x tests/unit/\n      - run: pytest -x ./tests/unit\n",
    );
    let strange = workflow(
        "      - run: ./own-thing\n      - run: cargo test ${{ github.sha }}\n      - run: sudo make install\n",
    );
    let maven = workflow(
        "      - run: mvn clean compile -D maven.compiler.source=8 -D maven.test.skip=true\n      - run: mvn test -D maven.compiler.source=8\n      - run: mvn test -D maven.compiler.source=11\n      \
         - run: mvn surefire-report:report-only\n      - run: mvn site -D generateReports=false\n      - run: mvn spotless:check\n",
    );
    let make = workflow("      - run: make lint test\n      - run: make deploy\n");
    let python_files = [("setup.py", ""), ("pytest.ini", ""), (ci, python.as_str())];
    insta::assert_snapshot!(table(&[
        ("rust", &[("Cargo.toml", ""), (ci, &cargo)], RUST),
        ("go", &[("go.mod", ""), (ci, &go)], "go gofmt cc"),
        ("go without a C compiler", &[("go.mod", ""), (ci, &go)], "go"),
        ("node", &[("package.json", package), ("pnpm-lock.yaml", ""), (ci, &node)], "pnpm node"),
        ("node by another manager", &[("package.json", package), ("pnpm-lock.yaml", ""), (ci, &npm)], "npm node"),
        (
            "node by a script of scripts",
            &[
                ("package.json", nested),
                ("eslint.config.js", ""),
                ("tsconfig.json", "{}"),
                ("node_modules/.bin/eslint", ""),
                ("node_modules/.bin/tsc", ""),
                (ci, &check)
            ],
            "npm node eslint tsc",
        ),
        ("python", &python_files, "python3 #!python3"),
        ("nothing that can be used", &[("Cargo.toml", ""), (ci, &strange)], "cargo make"),
        ("recipes", &[("Makefile", "lint:\n\tx\ntest:\n\ty\n"), ("go.mod", ""), (ci, &make)], "make go"),
        ("maven", &[("pom.xml", ""), (ci, &maven)], "mvn"),
        ("no YAML", &[("Cargo.toml", ""), (ci, "a: [")], "cargo"),
    ]));
}

#[test]
fn c_is_built_and_tested_by_cmake_and_meson_with_the_options_of_the_ci() {
    let ci = ".github/workflows/ci.yml";
    let cmake = workflow(
        "      - run: cmake -B out -DCMAKE_BUILD_TYPE=Debug -DCMAKE_INSTALL_PREFIX=/usr -D WERROR=ON\n      - run: cmake --build out\n      - run: ctest\n        working-directory: out\n",
    );
    let meson = workflow(
        "      - run: meson setup b -Dtests=true --buildtype=debug --prefix=/usr\n      - run: ninja -C b test\n",
    );
    let lists = "project(a)\nenable_testing()\n";
    insta::assert_snapshot!(table(&[
        ("cmake", &[("CMakeLists.txt", lists), (".gitignore", "/build/\n")], "cmake ctest"),
        ("cmake with a separate folder", &[("CMakeLists.txt", lists), ("build/x", "")], "cmake ctest"),
        ("cmake without tests", &[("CMakeLists.txt", "project(a)")], "cmake ctest"),
        (
            "cmake and meson",
            &[("CMakeLists.txt", lists), ("meson.build", "project('a', 'c')"), (".git/info/exclude", "/build/\n")],
            "cmake ctest meson"
        ),
        ("cmake that is not there", &[("CMakeLists.txt", lists)], ""),
        ("cmake with a CI", &[("CMakeLists.txt", lists), (".gitignore", "build\n"), (ci, &cmake)], "cmake ctest"),
        ("meson", &[("meson.build", "project('a', 'c')"), (".gitignore", "build\n")], "meson"),
        ("meson with a CI", &[("meson.build", "project('a', 'c')"), (".gitignore", "build\n"), (ci, &meson)], "meson"),
    ]));
}

#[test]
fn several_stacks_give_steps_each_and_their_names_say_whose() {
    let both = [("Cargo.toml", "[package]"), ("package.json", SCRIPTED), ("pnpm-lock.yaml", "")];
    let tooling = [("Cargo.toml", ""), ("package.json", r#"{"private": true}"#), ("Makefile", "test:\n\tcargo test\n")];
    let docs = [("pyproject.toml", "[tool.ruff]"), ("Makefile", ".PHONY: test\ntest:\n")];
    insta::assert_snapshot!(table(&[
        ("rust and node", &both, "cargo cargo-fmt cargo-clippy pnpm"),
        ("rust, and node that is not there", &both, RUST),
        ("rust with a Makefile and tooling", &tooling, "cargo cargo-fmt cargo-clippy make npm"),
        ("a linter and a Makefile", &docs, "ruff make python3"),
        ("nothing", &[("README.md", "")], "make cargo npm"),
    ]));
}

#[test]
fn folders_below_are_checked_where_the_root_is_not_and_else_named() {
    let web: &[(&str, &str)] = &[("package.json", SCRIPTED), ("package-lock.json", "")];
    let mut facts = project(&[("README.md", "")], RUST);
    facts.below.insert("services/api".into(), project(&[("Cargo.toml", "")], RUST));
    facts.below.insert("web".into(), project(web, "npm"));
    facts.below.insert("true".into(), project(&[("Makefile", "test:\n")], "make"));
    facts.below.insert("ops".into(), project(&[("Makefile", "test:\n")], ""));
    let below = detect(&facts);
    let mut facts = ProjectFacts { below: facts.below, ..project(&[("Cargo.toml", "[workspace]")], RUST) };
    facts.below.remove("ops");
    insta::assert_snapshot!(format!("{}\n{}", below.yaml(), format_lane(&detect(&facts))));
    assert_eq!(below.lane().unwrap().steps.len(), below.checks.len());
}

#[test]
fn a_module_of_the_roots_own_kind_that_the_root_does_not_check_is_named() {
    let message = |root: &[(&str, &str)], below: &[(&str, &str)]| {
        let mut facts = project(root, "cargo go npm");
        facts.below.insert("svc".into(), project(below, "cargo go npm"));
        detect(&facts).remarks.into_iter().find(|remark| remark.contains("svc/")).unwrap_or_default()
    };
    let named =
        |file: &str| format!("left out: svc/{file}, because the root has checks of its own; add steps with `dir`");
    let go = [("go.mod", "module a")];
    assert_eq!(message(&go, &go), named("go.mod"));
    let package = [("Cargo.toml", "[package]\nname = \"a\"")];
    assert_eq!(message(&package, &package), named("Cargo.toml"));
    assert_eq!(message(&[("Cargo.toml", "[workspace]\nmembers = [\"svc\"]")], &package), "");
    let scripted = [("package.json", SCRIPTED)];
    assert_eq!(message(&scripted, &scripted), named("package.json"));
    assert_eq!(message(&[("package.json", SCRIPTED), ("pnpm-workspace.yaml", "")], &scripted), "");
}

#[test]
fn the_page_says_what_it_is_made_of_and_what_it_lacks() {
    let mut facts = project(&[("Cargo.toml", ""), ("go.mod", "")], "cargo cargo-fmt go gofmt");
    facts.unreadable.insert("package.json".into(), "not\na regular file".into());
    insta::assert_snapshot!(detect(&facts).yaml());
}
