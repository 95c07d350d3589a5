//! The decision whether a command of a Node package manager can be a step. Pure.

use super::super::facts::ProjectFacts;
use super::super::{CheckEffect, node};
use super::resolve::{ResolvedCommand, of_table};
use super::tools::{self, ToolKind};
use super::{CiChecks, command, script};

pub(super) fn of_node(
    words: &[String],
    facts: &ProjectFacts,
    own: &mut CiChecks,
) -> Result<Vec<ResolvedCommand>, String> {
    let manager = tools::name(&words[0]).to_owned();
    if let Some(rest) = ["npx", "bunx", "pnpx"].contains(&manager.as_str()).then(|| script::unwrapped(words)) {
        return of_table(rest, facts).map(|step| vec![step]);
    }
    let manifest = node::manifest(facts);
    let has_script = |name: &str| manifest["scripts"][name].is_string();
    let Some(name) = script::called(words) else {
        return match words.get(1..) {
            Some([flag, ..]) if flag == "test" && manager == "bun" => {
                started(&manager, words, facts, ToolKind::Test, None, CheckEffect::Tests)
            }
            _ => Err("it installs".into()),
        };
    };
    let installs = [
        "install", "i", "ci", "add", "publish", "pack", "dedupe", "audit", "config", "set", "version", "link",
        "create", "global", "cache",
    ];
    if has_script(name) {
        if ["install", "publish", "prepare", "prepublishOnly"].contains(&name) {
            return Err("it installs or publishes".into());
        }
        let work = match script::work(&manifest, name) {
            Err(why) if script::hindrance(&manifest, name).is_some() => {
                return of_parts(&manager, name, why, facts, own);
            }
            work => work?,
        };
        let effect = match work.kind {
            ToolKind::Test => CheckEffect::Tests,
            ToolKind::Lint if script::only_reads(&manifest, name) => CheckEffect::Reads,
            _ => CheckEffect::Builds,
        };
        let slug: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
        let words: Vec<String> = words.iter().filter(|word| !word.starts_with("--coverage")).cloned().collect();
        return started(&manager, &words, facts, work.kind, Some(slug), effect);
    }
    if installs.contains(&name) {
        return Err("it installs".into());
    }
    let is_asked = words.get(1).is_some_and(|word| word.starts_with("run"));
    if is_asked || ["npm", "bun"].contains(&manager.as_str()) {
        return Err(format!("package.json has no script `{name}`"));
    }
    // `pnpm vitest` and `yarn vitest` start a tool.
    let inner: Vec<String> = words[1..].iter().skip_while(|word| word.starts_with('-')).cloned().collect();
    let mut step = of_table(&inner, facts)?;
    if facts.has_program(&manager) {
        step.run = command::quoted(&[vec![manager], step.words.clone()].concat());
    }
    Ok(vec![step])
}

/// Returns the checks among the commands of a script that changes files.
fn of_parts(
    manager: &str,
    name: &str,
    why: String,
    facts: &ProjectFacts,
    own: &mut CiChecks,
) -> Result<Vec<ResolvedCommand>, String> {
    let parts = script::parts(&node::manifest(facts), name);
    let mut steps = Vec::new();
    for mut words in parts.checks {
        if words[0] == "npm" {
            words[0] = manager.to_owned();
            steps.extend(of_node(&words, facts, own).unwrap_or_default());
        } else {
            steps.extend(of_table(&words, facts));
        }
    }
    if steps.is_empty() {
        return Err(why);
    }
    let others =
        parts.others.iter().map(|(other, why)| format!("left out: script `{other}` of script `{name}`, because {why}"));
    own.remarks.extend(others.filter(|remark| !own.remarks.contains(remark)).collect::<Vec<_>>());
    Ok(steps)
}

fn started(
    manager: &str,
    words: &[String],
    facts: &ProjectFacts,
    kind: ToolKind,
    name: Option<String>,
    effect: CheckEffect,
) -> Result<Vec<ResolvedCommand>, String> {
    if !facts.has_program(manager) {
        return Err(format!("`{manager}` is not installed"));
    }
    Ok(vec![ResolvedCommand { stack: "node", kind, run: command::quoted(words), words: words.to_vec(), name, effect }])
}
