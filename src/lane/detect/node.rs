//! JavaScript and TypeScript projects: the scripts of `package.json`, run by the project's package
//! manager, otherwise installed tools.

use super::facts::ProjectFacts;
use super::{CheckEffect, DetectedCheck, DetectedLane, Findings, lacking};
use serde_json::Value;

/// The steps, each with its name and suitable scripts, the best first.
#[rustfmt::skip]
const SCRIPTS: [(&str, CheckEffect, &[&str]); 6] = [
    ("fmt", CheckEffect::Reads, &["format:check", "fmt:check", "check:format", "check-format", "format-check", "prettier:check"]),
    ("lint", CheckEffect::Reads, &["lint:check", "lint:ci", "lint"]),
    ("types", CheckEffect::Reads, &["typecheck", "type-check", "check-types", "check:types"]),
    ("check", CheckEffect::Builds, &["check"]),
    ("build", CheckEffect::Builds, &["build"]),
    ("test", CheckEffect::Tests, &["test", "test:ci", "test:unit"]),
];

/// The tools for steps without a script, each with its arguments and the prefixes of its
/// configuration files.
const TOOLS: [(&str, CheckEffect, &str, &str, &[&str]); 6] = [
    ("fmt", CheckEffect::Reads, "prettier", " --check .", &[".prettierrc", "prettier.config."]),
    ("lint", CheckEffect::Reads, "eslint", " .", &["eslint.config.", ".eslintrc"]),
    ("lint", CheckEffect::Reads, "biome", " ci .", &["biome.json"]),
    ("types", CheckEffect::Reads, "tsc", " --noEmit", &["tsconfig.json"]),
    ("test", CheckEffect::Tests, "vitest", " run", &["vitest.config."]),
    ("test", CheckEffect::Tests, "jest", "", &["jest.config."]),
];

/// Package managers and their lock files.
const LOCKS: [(&str, &[&str]); 4] = [
    ("pnpm", &["pnpm-lock.yaml"]),
    ("yarn", &["yarn.lock"]),
    ("bun", &["bun.lock", "bun.lockb"]),
    ("npm", &["package-lock.json", "npm-shrinkwrap.json"]),
];

pub(super) fn look(facts: &ProjectFacts) -> Option<Findings> {
    facts.first(&["package.json"])?;
    let mut found = Findings::new("node", "package.json");
    let text = facts.texts.get("package.json")?;
    let Ok(manifest) = serde_json::from_str::<Value>(text.trim_start_matches('\u{feff}')) else {
        found.remark("left out: package.json, because it is no JSON");
        return Some(found);
    };
    match manager(&manifest, facts) {
        Some(manager) => {
            scripts(&mut found, &manifest, manager, facts);
            let uses = |key: &str| manifest[key].as_object().is_some_and(|packages| !packages.is_empty());
            let is_bare = !facts.has("node_modules") && !facts.has(".pnp.cjs");
            if is_bare && (uses("dependencies") || uses("devDependencies")) {
                found.remark(format!("before the first run: `{manager} install`, because node_modules is not there"));
            }
        }
        None => {
            found.remark("left out: its scripts, because fledge does not know the `packageManager` of package.json")
        }
    }
    tools(&mut found, &manifest, facts);
    Some(found)
}

/// Returns the package manager of the manifest, otherwise that of the lock file, otherwise npm.
fn manager(manifest: &Value, facts: &ProjectFacts) -> Option<&'static str> {
    if let Some(named) = manifest["packageManager"].as_str() {
        let name = named.split('@').next().unwrap_or_default();
        return LOCKS.iter().map(|(manager, _)| *manager).find(|manager| *manager == name);
    }
    let locked = LOCKS.iter().find(|(_, locks)| facts.first(locks).is_some());
    Some(locked.map_or("npm", |(manager, _)| manager))
}

fn scripts(found: &mut Findings, manifest: &Value, manager: &str, facts: &ProjectFacts) {
    let is_there = facts.has_program(manager);
    let mut lost = Vec::new();
    for (name, effect, candidates) in SCRIPTS {
        let text = |script: &&'static str| Some((*script, manifest["scripts"][*script].as_str()?));
        let mut present = candidates.iter().filter_map(text).peekable();
        let hindrance = |script: &str| super::ci::script_hindrance(manifest, script);
        let Some((first, why)) = present.peek().map(|(script, _)| (*script, hindrance(script))) else { continue };
        match present.find(|(script, _)| hindrance(script).is_none()) {
            None if name == "test" && is_there && parts(found, manifest, first, manager, facts) => {}
            None => found.remark(format!("left out: script `{first}`, because {}", why.unwrap_or_default())),
            Some((_, text)) if name == "check" && text.contains("run ") => {} // its parts are steps already
            Some((script, _)) if is_there => {
                // A script that may write runs alone.
                let is_safe = effect != CheckEffect::Reads || super::ci::script_only_reads(manifest, script);
                let effect = if is_safe { effect } else { CheckEffect::Builds };
                found.check(effect, name, format!("{manager} run {script}"));
            }
            Some((script, _)) => lost.push(format!("`{script}`")),
        }
    }
    if !lost.is_empty() {
        found.unless_by_ci = Some(lacking(&format!("scripts of package.json ({})", lost.join(", ")), manager));
    }
}

/// Leaves out steps that run a script of the root whose program is neither an installed package nor
/// in the search path.
pub(super) fn leave_out_unable(detected: &mut DetectedLane, facts: &ProjectFacts) {
    if !facts.has("node_modules") {
        return; // another remark covers packages that are not installed
    }
    let manifest = manifest(facts);
    let lacked = |check: &DetectedCheck| {
        let [manager, "run", script] = check.run.split_whitespace().collect::<Vec<_>>()[..] else { return None };
        LOCKS.iter().find(|(name, _)| *name == manager)?;
        let commands = manifest["scripts"][script].as_str()?.split("&&");
        let programs = commands.filter_map(|command| command.split_whitespace().next());
        let is_tool = |program: &&str| super::ci::is_node_tool(program);
        let mut lacked = programs
            .filter(is_tool)
            .filter(|tool| !facts.has(&format!("node_modules/.bin/{tool}")) && !facts.has_program(tool));
        Some((check.name.clone(), lacked.next()?.to_owned()))
    };
    let unable: Vec<(String, String)> =
        detected.checks.iter().filter(|check| check.dir.is_none()).filter_map(lacked).collect();
    for (name, program) in unable {
        detected.leave_out(&name, &format!("there is no program `{program}`"));
    }
}

/// Adds the checks among the commands of a test script that also changes files. Returns true if
/// there are any.
fn parts(found: &mut Findings, manifest: &Value, script: &str, manager: &str, facts: &ProjectFacts) -> bool {
    let parts = super::ci::script_parts(manifest, script);
    let before = found.checks.len();
    for words in parts.checks {
        let (name, run) = match words.as_slice() {
            [npm, _, name] if npm == "npm" => (name.clone(), format!("{manager} run {name}")),
            words => match started(facts, words) {
                Ok(run) => (words[0].clone(), run),
                Err(_) => continue,
            },
        };
        let name: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
        if !found.has(&name) && !found.checks.iter().any(|check| check.run == run) {
            found.check(CheckEffect::Tests, &name, run);
        }
    }
    for (other, why) in parts.others {
        found.remark(format!("left out: script `{other}` of script `{script}`, because {why}"));
    }
    found.checks.len() > before
}

/// Returns the reason why a script is not a check.
pub(super) fn obstacle(text: &str) -> Option<&'static str> {
    let has = |words: &[&str]| text.split_whitespace().any(|word| words.contains(&word));
    if text.trim().is_empty() || text.contains("no test specified") {
        Some("there is nothing in it yet")
    } else if has(&["--fix", "--write"]) {
        Some("it changes files")
    } else if has(&["--watch", "--watchAll", "watch"]) {
        Some("it never ends")
    } else {
        None
    }
}

fn tools(found: &mut Findings, manifest: &Value, facts: &ProjectFacts) {
    for (name, effect, tool, arguments, configs) in TOOLS {
        let builds_with_it =
            tool == "tsc" && manifest["scripts"]["build"].as_str().is_some_and(|text| text.contains(tool));
        let is_used = configs.iter().any(|start| facts.has_prefix(start))
            || manifest.get(format!("{tool}Config")).is_some()
            || (effect == CheckEffect::Tests && is_package(manifest, tool));
        if !is_used || found.has(name) || builds_with_it {
            continue;
        }
        let program = format!("node_modules/.bin/{tool}");
        match facts.has(&program) && facts.has_program("node") {
            true => found.check(effect, name, format!("{program}{arguments}")),
            false if facts.has(&program) => found.lacks(&format!("`{tool}`"), "node"),
            false => found.not_installed(tool),
        }
    }
}

/// Returns the manifest of a project, or `null` if it cannot be read.
pub(super) fn manifest(facts: &ProjectFacts) -> Value {
    serde_json::from_str(facts.text("package.json").trim_start_matches('\u{feff}')).unwrap_or_default()
}

/// Returns the command line that starts a Node tool in this project.
///
/// # Errors
///
/// The reason why the tool cannot be started.
pub(super) fn started(facts: &ProjectFacts, words: &[String]) -> Result<String, String> {
    let tool = words.first().map(|word| word.rsplit('/').next().unwrap_or(word)).unwrap_or_default();
    let program = format!("node_modules/.bin/{tool}");
    let package = if tool == "tsc" { "typescript" } else { tool };
    let manifest = manifest(facts);
    if !facts.has_program("node") {
        return Err("`node` is not installed".into());
    }
    if !facts.has(&program) && !is_package(&manifest, package) {
        return Err(format!("`{tool}` is no package of the project"));
    }
    Ok(super::ci::quoted(&[vec![program], words[1..].to_vec()].concat()))
}

fn is_package(manifest: &Value, name: &str) -> bool {
    ["dependencies", "devDependencies"].iter().any(|key| manifest[*key].get(name).is_some())
}
