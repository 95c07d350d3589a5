//! Ecosystems with one tool that can check a project: cargo, go, bundler, swift, gradle, maven.

use super::facts::{ProjectFacts, has_table, names};
use super::{CheckEffect, Findings};

pub(super) fn cargo(facts: &ProjectFacts) -> Option<Findings> {
    let mut found = find_stack(facts, "rust", &["Cargo.toml"])?;
    if !facts.has_program("cargo") {
        found.lacks("Rust", "cargo");
        return Some(found);
    }
    let (all, workspace) =
        if has_table(facts.text("Cargo.toml"), "workspace") { (" --all", " --workspace") } else { ("", "") };
    found.check_by(facts, "cargo-fmt", CheckEffect::Reads, "fmt", format!("cargo fmt{all} --check"));
    let clippy = format!("cargo clippy{workspace} --all-targets -- -D warnings");
    found.check_by(facts, "cargo-clippy", CheckEffect::Reads, "lint", clippy);
    found.check(CheckEffect::Tests, "test", format!("cargo test{workspace}"));
    Some(found)
}

pub(super) fn go(facts: &ProjectFacts) -> Option<Findings> {
    let mut found = find_stack(facts, "go", &["go.mod"])?;
    if !facts.has_program("go") {
        found.lacks("Go", "go");
        return Some(found);
    }
    // gofmt exits with 0 for unformatted files, and fails only for files that it cannot read.
    let fmt = "out=$(gofmt -l .) && ! printf '%s\\n' \"$out\" | grep -v -e '^vendor/' -e '^$'";
    found.check_by(facts, "gofmt", CheckEffect::Reads, "fmt", fmt);
    if facts.has_prefix(".golangci.") {
        found.check_by(facts, "golangci-lint", CheckEffect::Reads, "lint", "golangci-lint run");
    }
    found.check(CheckEffect::Reads, "vet", "go vet ./...");
    found.check(CheckEffect::Tests, "test", "go test ./...");
    Some(found)
}

pub(super) fn ruby(facts: &ProjectFacts) -> Option<Findings> {
    let mut found = find_stack(facts, "ruby", &["Gemfile"])?;
    if !facts.has_program("bundle") {
        found.lacks("Ruby", "bundle");
        return Some(found);
    }
    let gems = facts.text("Gemfile");
    if facts.has(".rubocop.yml") && names(gems, "rubocop") {
        found.check(CheckEffect::Reads, "lint", "bundle exec rubocop");
    } else if facts.has(".rubocop.yml") {
        found.remark("left out: rubocop, because it is configured but not in the Gemfile");
    }
    if facts.has(".rspec") || names(gems, "rspec") || names(gems, "rspec-rails") {
        found.check(CheckEffect::Tests, "test", "bundle exec rspec");
    } else if facts.has_program("./bin/rails") && facts.has("test") {
        found.check(CheckEffect::Tests, "test", "./bin/rails test");
    } else if names(facts.text("Rakefile"), "TestTask") || names(facts.text("Rakefile"), "test") {
        found.check(CheckEffect::Tests, "test", "bundle exec rake test");
    }
    Some(found)
}

pub(super) fn swift(facts: &ProjectFacts) -> Option<Findings> {
    let mut found = find_stack(facts, "swift", &["Package.swift"])?;
    if !facts.has_program("swift") {
        found.lacks("Swift", "swift");
        return Some(found);
    }
    if facts.has(".swiftlint.yml") {
        found.check_by(facts, "swiftlint", CheckEffect::Reads, "lint", "swiftlint lint --strict");
    }
    found.check(CheckEffect::Builds, "build", "swift build");
    if facts.has("Tests") {
        found.check(CheckEffect::Tests, "test", "swift test");
    }
    Some(found)
}

pub(super) fn gradle(facts: &ProjectFacts) -> Option<Findings> {
    let markers = ["build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts"];
    let mut found = find_stack(facts, "gradle", &markers)?;
    match wrapped(facts, "gradlew", "gradle") {
        Some(gradle) => found.check(CheckEffect::Tests, "test", format!("{gradle} --console=plain check")),
        None => found.lacks("Gradle", "gradle"),
    }
    Some(found)
}

pub(super) fn maven(facts: &ProjectFacts) -> Option<Findings> {
    let mut found = find_stack(facts, "maven", &["pom.xml"])?;
    match wrapped(facts, "mvnw", "mvn") {
        Some(maven) => {
            let skipped = if signs(facts.text("pom.xml")) { " -Dgpg.skip" } else { "" };
            found.check(CheckEffect::Tests, "test", format!("{maven} --batch-mode verify{skipped}"));
        }
        None => found.lacks("Maven", "mvn"),
    }
    Some(found)
}

/// Returns true if every build of a pom signs its artifacts, which needs a key. A signature in a
/// profile affects only builds that select the profile.
fn signs(pom: &str) -> bool {
    let mut rest = pom;
    let mut outside = String::new();
    while let Some((before, after)) = rest.split_once("<profile>") {
        outside.push_str(before);
        rest = after.split_once("</profile>").map_or("", |(_, after)| after);
    }
    outside.push_str(rest);
    outside.contains("maven-gpg-plugin")
}

fn find_stack(facts: &ProjectFacts, stack: &'static str, markers: &[&'static str]) -> Option<Findings> {
    facts.first(markers).map(|marker| Findings::new(stack, marker))
}

/// Returns the project's own wrapper script, otherwise the program.
fn wrapped(facts: &ProjectFacts, wrapper: &str, program: &str) -> Option<String> {
    if facts.has_program(&format!("./{wrapper}")) {
        Some(format!("./{wrapper}"))
    } else if facts.has(wrapper) {
        Some(format!("sh ./{wrapper}"))
    } else {
        facts.has_program(program).then(|| program.into())
    }
}
