//! The work of scripts in a `package.json`, derived from the programs in their texts. Pure.

use super::super::node::obstacle;
use super::command;
use super::tools::{self, CHANGES, ToolKind};
use serde_json::Value;
use std::collections::BTreeMap;

/// The maximum depth of scripts that call each other.
const DEEPEST: usize = 5;

/// The kind of work of a script, with a flag that is true if every program in it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ScriptWork {
    pub(super) kind: ToolKind,
    pub(super) is_known: bool,
}

/// Returns true if a script, with those that run before and after it, is known to change nothing.
pub(in super::super) fn only_reads(manifest: &Value, script: &str) -> bool {
    let has_hooks = ["pre", "post"].iter().any(|hook| manifest["scripts"].get(format!("{hook}{script}")).is_some());
    work(manifest, script).is_ok_and(|work| work.is_known && work.kind == ToolKind::Lint) && !has_hooks
}

/// Returns the work of a script.
///
/// # Errors
///
/// The reason why the script is not a check.
pub(super) fn work(manifest: &Value, script: &str) -> Result<ScriptWork, String> {
    let mut all = Vec::new();
    gather(manifest, script, DEEPEST, &mut all)?;
    let is_known = all.iter().all(Option::is_some);
    let has = |kind: ToolKind| all.contains(&Some(kind));
    let named = tools::by_name(script);
    if let Some(ToolKind::No(why)) = all.iter().flatten().find(|kind| matches!(kind, ToolKind::No(_))) {
        return Err((*why).to_owned());
    }
    let kind = match named {
        ToolKind::Test => ToolKind::Test,
        _ if has(ToolKind::Test) => ToolKind::Test,
        _ if has(ToolKind::Build) => ToolKind::Build,
        _ if has(ToolKind::Lint) && is_known => ToolKind::Lint,
        ToolKind::No(why) => return Err(why.to_owned()),
        named => named,
    };
    Ok(ScriptWork { kind, is_known })
}

/// Returns the reason why a script, with all scripts that it runs, is not a check: it changes files
/// or never ends.
pub(in super::super) fn hindrance(manifest: &Value, script: &str) -> Option<String> {
    let mut all = Vec::new();
    match gather(manifest, script, DEEPEST, &mut all) {
        Err(why) => Some(why),
        Ok(()) => all.contains(&Some(CHANGES)).then(|| "it changes files".to_owned()),
    }
}

/// The parts of a script that is not a check as a whole.
#[derive(Debug, Default, PartialEq, Eq)]
pub(in super::super) struct ScriptParts {
    /// Commands that are checks: `npm run NAME`, or a tool with its arguments.
    pub(in super::super) checks: Vec<Vec<String>>,
    /// Scripts that are not checks, with the reasons.
    pub(in super::super) others: Vec<(String, String)>,
}

/// Returns the checks among the commands that a script runs in sequence.
pub(in super::super) fn parts(manifest: &Value, script: &str) -> ScriptParts {
    let mut parts = ScriptParts::default();
    take_apart(manifest, script, DEEPEST, &mut parts);
    parts
}

/// Adds the checks that a script runs, and the scripts that it runs and that are not checks.
fn take_apart(manifest: &Value, script: &str, depth: usize, parts: &mut ScriptParts) {
    let text = manifest["scripts"][script].as_str().unwrap_or_default();
    for command in command::read(text, &BTreeMap::new()).into_iter().filter_map(|(_, line)| line.ok()) {
        let words = unwrapped(&command.words);
        let name = called(words).filter(|name| manifest["scripts"][*name].is_string());
        let is_check = |kind: ToolKind| matches!(kind, ToolKind::Test | ToolKind::Lint | ToolKind::Build);
        match name {
            Some(name) if tools::writes(words) => parts.others.push((name.to_owned(), "it changes files".to_owned())),
            Some(name) => {
                let before = parts.checks.len();
                match work(manifest, name) {
                    Ok(_) => parts.checks.push(["npm", "run", name].map(str::to_owned).to_vec()),
                    Err(_) if depth > 0 => take_apart(manifest, name, depth - 1, parts),
                    Err(_) => {}
                }
                if parts.checks.len() == before {
                    let why = work(manifest, name).err().unwrap_or_default();
                    parts.others.push((name.to_owned(), why));
                }
            }
            None if tools::writes(words) => {}
            None if tools::find(words).is_some_and(|row| is_check(row.kind)) => parts.checks.push(words.to_vec()),
            None => {}
        }
    }
}

/// Collects the kinds of all programs that a script runs; `None` for unknown programs.
fn gather(manifest: &Value, script: &str, depth: usize, all: &mut Vec<Option<ToolKind>>) -> Result<(), String> {
    let text = manifest["scripts"][script].as_str().ok_or_else(|| format!("package.json has no script `{script}`"))?;
    if let Some(why) = obstacle(text) {
        return Err(why.to_owned());
    }
    for (_, line) in command::read(text, &BTreeMap::new()) {
        let Ok(command) = line else {
            all.push(None);
            continue;
        };
        let words = unwrapped(&command.words);
        match called(words).filter(|name| manifest["scripts"][*name].is_string()) {
            Some(_) if tools::writes(words) => all.push(Some(CHANGES)),
            Some(name) if depth > 0 => gather(manifest, name, depth - 1, all)?,
            Some(_) => all.push(None),
            None => {
                let kind = tools::find(words).map(|row| row.kind);
                let is_build =
                    tools::name(words.first().map_or("", String::as_str)) == "tsc" && !is_without_output(words);
                all.push(match kind {
                    _ if tools::writes(words) => Some(CHANGES),
                    Some(ToolKind::Lint) if is_build => Some(ToolKind::Build),
                    Some(ToolKind::Helper | ToolKind::Recipe | ToolKind::No(_)) => None,
                    kind => kind,
                });
            }
        }
    }
    Ok(())
}

/// Returns true if the TypeScript compiler call writes no files.
pub(super) fn is_without_output(words: &[String]) -> bool {
    words.iter().any(|word| word.eq_ignore_ascii_case("--noEmit"))
}

/// Removes programs from a command that only start another one.
pub(super) fn unwrapped(words: &[String]) -> &[String] {
    let mut words = words;
    while let [first, rest @ ..] = words {
        let skipped = match tools::name(first) {
            // Words before `--` are options of the first program.
            "c8" | "nyc" | "npx" if rest.iter().any(|word| word == "--") => {
                rest.iter().take_while(|word| *word != "--").count() + 1
            }
            "npx" | "bunx" | "pnpx" | "c8" | "nyc" | "cross-env" | "time" | "exec" | "command" => {
                rest.iter().take_while(|word| word.starts_with('-') || word.contains('=')).count()
            }
            _ => break,
        };
        words = &rest[skipped..];
    }
    words
}

/// Returns the script that a command runs: `npm run lint`, `yarn lint`, `npm test`.
pub(super) fn called(words: &[String]) -> Option<&str> {
    let [manager, rest @ ..] = words else { return None };
    let rest: Vec<&str> = rest.iter().map(String::as_str).filter(|word| !["-s", "--silent"].contains(word)).collect();
    match (tools::name(manager), rest.as_slice()) {
        ("npm" | "pnpm" | "yarn" | "bun", ["run" | "run-script", name, ..]) => Some(name),
        ("npm" | "pnpm" | "yarn", ["test" | "t", ..]) => Some("test"),
        ("pnpm" | "yarn", [name, ..]) => Some(name),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_does_what_the_programs_in_it_do() {
        let manifest = serde_json::json!({ "scripts": {
            "test": "npm run lint && c8 ava", "lint": "eslint . && npx prettier --check .", "fix": "eslint --fix .", "all": "npm run fix && ava",
            "types": "tsc", "check-types": "tsc --noEmit", "own": "node own.js", "prehooked": "true", "hooked": "eslint .", "loop": "npm run loop",
            "e2e": "playwright test", "lint:own": "node lint.js", "empty": "",
        }});
        let message = |script: &str| work(&manifest, script).map(|work| (work.kind, only_reads(&manifest, script)));
        assert_eq!(message("test"), Ok((ToolKind::Test, false)));
        assert_eq!(message("lint"), Ok((ToolKind::Lint, true)));
        assert_eq!(message("check-types"), Ok((ToolKind::Lint, true)));
        assert_eq!(message("types"), Ok((ToolKind::Build, false)));
        assert_eq!(message("hooked"), Ok((ToolKind::Lint, false)));
        assert_eq!(message("lint:own"), Ok((ToolKind::Lint, false)));
        for (script, why) in [
            ("fix", "it changes files"),
            ("all", "it changes files"),
            ("none", "package.json has no script `none`"),
            ("empty", "there is nothing in it yet"),
            ("own", "fledge does not know what it does"),
            ("e2e", "it drives a browser"),
        ] {
            assert_eq!(message(script), Err(why.to_owned()), "{script}");
        }
        assert!(message("loop").is_err());
    }

    #[test]
    fn of_a_script_that_changes_files_those_parts_are_taken_that_only_check() {
        let manifest = serde_json::json!({ "scripts": {
            "test": "npm run build && npm run format && npm run test-coverage && npm run lint -- --fix && xo", "build": "tsc --build && type-coverage",
            "format": "prettier -w . && xo --fix", "test-coverage": "c8 --100 --reporter lcov -- npm run test-api", "test-api": "node test.js", "lint": "eslint .",
            "deep": "npm run format", "loop": "npm run loop && prettier -w .",
        }});
        assert_eq!(hindrance(&manifest, "test"), Some("it changes files".to_owned()));
        assert_eq!(hindrance(&manifest, "deep"), Some("it changes files".to_owned()));
        assert_eq!(hindrance(&manifest, "test-coverage"), None);
        let ScriptParts { checks, others } = parts(&manifest, "test");
        assert_eq!(
            checks.iter().map(|words| words.join(" ")).collect::<Vec<_>>(),
            ["npm run build", "npm run test-api", "xo"]
        );
        let other = |name: &str| (name.to_owned(), "it changes files".to_owned());
        assert_eq!(others, [other("format"), other("lint")]);
        assert_eq!(parts(&manifest, "deep").checks, Vec::<Vec<String>>::new());
        assert_eq!(parts(&manifest, "loop").checks, Vec::<Vec<String>>::new());
    }
}
