//! Says what the scripts of a `package.json` do, by the programs in their texts. Pure.

use super::super::node::obstacle;
use super::command;
use super::tools::{self, Kind};
use serde_json::Value;
use std::collections::BTreeMap;

/// Scripts that call each other are followed this far.
const DEEPEST: usize = 5;

/// The work of a script, and whether every program in it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Work {
    pub(super) kind: Kind,
    pub(super) is_known: bool,
}

/// Returns whether a script, with those that run before and after it, is known to change nothing.
pub(in super::super) fn only_reads(manifest: &Value, script: &str) -> bool {
    let has_hooks = ["pre", "post"].iter().any(|hook| manifest["scripts"].get(format!("{hook}{script}")).is_some());
    work(manifest, script).is_ok_and(|work| work.is_known && work.kind == Kind::Lint) && !has_hooks
}

/// The work of a script.
///
/// # Errors
/// The reason why it is no check.
pub(super) fn work(manifest: &Value, script: &str) -> Result<Work, String> {
    let mut all = Vec::new();
    gather(manifest, script, DEEPEST, &mut all)?;
    let is_known = all.iter().all(Option::is_some);
    let has = |kind: Kind| all.contains(&Some(kind));
    let named = tools::by_name(script);
    if let Some(Kind::No(why)) = all.iter().flatten().find(|kind| matches!(kind, Kind::No(_))) {
        return Err((*why).to_owned());
    }
    let kind = match named {
        Kind::Test => Kind::Test,
        _ if has(Kind::Test) => Kind::Test,
        _ if has(Kind::Build) => Kind::Build,
        _ if has(Kind::Lint) && is_known => Kind::Lint,
        Kind::No(why) => return Err(why.to_owned()),
        named => named,
    };
    Ok(Work { kind, is_known })
}

/// The kinds of all programs that a script runs, and nothing for those that are not known.
fn gather(manifest: &Value, script: &str, depth: usize, all: &mut Vec<Option<Kind>>) -> Result<(), String> {
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
            Some(name) if depth > 0 => gather(manifest, name, depth - 1, all)?,
            Some(_) => all.push(None),
            None => {
                let kind = tools::find(words).map(|row| row.kind);
                let is_build =
                    tools::name(words.first().map_or("", String::as_str)) == "tsc" && !is_without_output(words);
                all.push(match kind {
                    _ if tools::writes(words) => Some(Kind::No("it changes files")),
                    Some(Kind::Lint) if is_build => Some(Kind::Build),
                    Some(Kind::Helper | Kind::Recipe | Kind::No(_)) => None,
                    kind => kind,
                });
            }
        }
    }
    Ok(())
}

/// Returns whether a TypeScript compiler is told to write nothing.
pub(super) fn is_without_output(words: &[String]) -> bool {
    words.iter().any(|word| word.eq_ignore_ascii_case("--noEmit"))
}

/// A command without programs that only start others.
pub(super) fn unwrapped(words: &[String]) -> &[String] {
    let mut words = words;
    while let [first, rest @ ..] = words {
        let skipped = match tools::name(first) {
            "npx" | "bunx" | "pnpx" | "c8" | "nyc" | "cross-env" | "time" | "exec" | "command" => {
                rest.iter().take_while(|word| word.starts_with('-') || word.contains('=')).count()
            }
            _ => break,
        };
        words = &rest[skipped..];
    }
    words
}

/// The script that a command runs: `npm run lint`, `yarn lint`, `npm test`.
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
        let said = |script: &str| work(&manifest, script).map(|work| (work.kind, only_reads(&manifest, script)));
        assert_eq!(said("test"), Ok((Kind::Test, false)));
        assert_eq!(said("lint"), Ok((Kind::Lint, true)));
        assert_eq!(said("check-types"), Ok((Kind::Lint, true)));
        assert_eq!(said("types"), Ok((Kind::Build, false)));
        assert_eq!(said("hooked"), Ok((Kind::Lint, false)));
        assert_eq!(said("lint:own"), Ok((Kind::Lint, false)));
        for (script, why) in [
            ("fix", "it changes files"),
            ("all", "it changes files"),
            ("none", "package.json has no script `none`"),
            ("empty", "there is nothing in it yet"),
            ("own", "fledge does not know what it does"),
            ("e2e", "it drives a browser"),
        ] {
            assert_eq!(said(script), Err(why.to_owned()), "{script}");
        }
        assert!(said("loop").is_err());
    }
}
