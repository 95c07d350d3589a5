//! Tests that every lane written by detection is read back unchanged.

use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

/// Texts that have a meaning in some detection, and texts without a meaning.
const TEXTS: [&str; 8] = [
    "",
    SCRIPTED,
    "[workspace]\n[tool.ruff]\n[tool.mypy]\n[tool.black]\npytest\nunittest\nrspec\n",
    "check: lint\nlint test:\n\trun\n.PHONY: test\n",
    "{\"packageManager\": \"yarn@'\\n\", \"scripts\": {\"test\": \": # '\"}}",
    "#!/bin/bash\n",
    "\u{feff}: [[\u{0}",
    "test: 'x' # y\n\u{2028}",
];

proptest! {
    /// With any files in a project, its lane is read back unchanged, or no lane is detected.
    #[test]
    fn every_lane_that_is_written_is_read_back(
        files in proptest::collection::btree_map(0usize..200, 0usize..TEXTS.len(), 0..12),
        programs in proptest::collection::btree_set(0usize..programs().len(), 0..programs().len()),
    ) {
        let (names, all_programs) = (all_names(), crate::lane::detect::programs().into_iter().collect::<Vec<_>>());
        let files: BTreeMap<&str, &str> = files.iter().map(|(name, text)| (names[name % names.len()], TEXTS[*text])).collect();
        let programs: Vec<&str> = programs.iter().map(|number| all_programs[*number]).collect();
        let own = project(&files.into_iter().collect::<Vec<_>>(), &programs.join(" "));
        let below = ["apps", "apps/web", "web"].map(|folder| (folder.to_owned(), own.clone()));
        for detected in [detect(&own), detect(&ProjectFacts { below: below.into(), ..ProjectFacts::default() })] {
            let meant: Vec<_> = detected.checks.iter().map(|check| (&check.name, &check.run, &check.dir)).collect();
            match detected.lane() {
                Ok(lane) => {
                    let read: Vec<_> = lane.steps.iter().map(|step| (&step.name, &step.run, &step.dir)).collect();
                    prop_assert_eq!(read, meant);
                }
                Err(fault) => prop_assert!(meant.is_empty(), "{}", fault),
            }
        }
    }
}

fn all_names() -> Vec<&'static str> {
    let scripts = recipes::SCRIPTS.iter().flat_map(|(_, paths)| paths.iter().copied());
    let others = [
        "Cargo.toml",
        "package.json",
        "package-lock.json",
        "yarn.lock",
        "pnpm-lock.yaml",
        "bun.lock",
        "go.mod",
        "pyproject.toml",
        "setup.py",
        "requirements.txt",
        "uv.lock",
        "poetry.lock",
        "tests/test_a.py",
        "Gemfile",
        ".rspec",
        "Rakefile",
        "Package.swift",
        "Tests/A.swift",
        "build.gradle",
        "gradlew",
        "pom.xml",
        "mvnw",
        "Makefile",
        "justfile",
        "tests/a.bats",
        "eslint.config.js",
        "tsconfig.json",
        "node_modules/.bin/eslint",
        "node_modules/.bin/tsc",
        ".golangci.toml",
        ".venv/bin/python",
        ".venv/bin/pytest",
        ".venv/bin/ruff",
        "mypy.ini",
        "biome.json",
    ];
    others.into_iter().chain(scripts).collect()
}
