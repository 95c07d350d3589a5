//! C and C++ projects that are built by CMake or Meson.

use super::facts::{ProjectFacts, names};
use super::{CheckEffect, Findings, ci};
use std::collections::BTreeMap;

/// The options with which the project's CI configures a build, and the file that sets them.
type Options = BTreeMap<&'static str, (Vec<String>, String)>;

pub(super) fn look(facts: &ProjectFacts, options: &Options) -> Vec<Findings> {
    [cmake(facts, options), meson(facts, options)].into_iter().flatten().collect()
}

fn cmake(facts: &ProjectFacts, options: &Options) -> Option<Findings> {
    let text = facts.text(facts.first(&["CMakeLists.txt"])?);
    if !text.to_ascii_lowercase().contains("project") || has_better(facts) {
        return None;
    }
    let mut found = Findings::new("cmake", "CMakeLists.txt");
    let (build, is_ignored) = folder(facts);
    let option = joined(options, "cmake");
    // Otherwise git would treat build output as files of the project. Meson writes this file
    // itself.
    let hide = if is_ignored { String::new() } else { format!("echo '*' >{build}/.gitignore && ") };
    found.check_by(
        facts,
        "cmake",
        CheckEffect::Builds,
        "build",
        format!("cmake -B {build} -S .{option} && {hide}cmake --build {build}"),
    );
    let tests = ["enable_testing", "add_test", "CTest"].iter().any(|word| names(text, word));
    if tests && found.has("build") {
        found.check_by(
            facts,
            "ctest",
            CheckEffect::Tests,
            "test",
            format!("ctest --test-dir {build} --output-on-failure"),
        );
    }
    note_source(&mut found, options, "cmake");
    Some(found)
}

fn meson(facts: &ProjectFacts, options: &Options) -> Option<Findings> {
    let text = facts.text(facts.first(&["meson.build"])?);
    if !names(text, "project") || has_better(facts) {
        return None;
    }
    let mut found = Findings::new("meson", "meson.build");
    let ((build, _), option) = (folder(facts), joined(options, "meson"));
    found.check_by(
        facts,
        "meson",
        CheckEffect::Builds,
        "build",
        format!("meson setup {build}{option} && meson compile -C {build}"),
    );
    if found.has("build") {
        found.check(CheckEffect::Tests, "test", format!("meson test -C {build}"));
    }
    note_source(&mut found, options, "meson");
    Some(found)
}

/// Returns true if another build system of the project calls this one.
fn has_better(facts: &ProjectFacts) -> bool {
    facts.first(&["Cargo.toml", "package.json", "pyproject.toml", "setup.py", "go.mod"]).is_some()
}

/// Returns the build folder, and whether git ignores it. The folder is one that git ignores, or one
/// that does not exist yet.
fn folder(facts: &ProjectFacts) -> (&'static str, bool) {
    let ignored = [".gitignore", ".git/info/exclude"].iter().flat_map(|file| facts.text(file).lines());
    let mut ignored = ignored.map(|line| line.trim().trim_matches('/').trim_end_matches('*').trim_end_matches('/'));
    match ignored.any(|line| line == "build") {
        true => ("build", true),
        false if facts.has("build") => ("build-verify", false),
        false => ("build", false),
    }
}

fn joined(options: &Options, stack: &str) -> String {
    let words = options.get(stack).map_or(&[][..], |(words, _)| words);
    if words.is_empty() { String::new() } else { format!(" {}", ci::quoted(words)) }
}

fn note_source(found: &mut Findings, options: &Options, stack: &str) {
    if let Some((_, file)) = options.get(stack) {
        found.checks.iter_mut().for_each(|check| check.from = Some(file.clone()));
    }
}
