//! What the project and its operator have set: models, and lanes with what a pass of them can prove.

use super::super::worktrees::left_over;
use super::Found;
use crate::config::{self, ConfigFault, Environment, KeyPlace, ModelChoice, auto_model, resolve_model};
use crate::gate::{self, Listed};
use crate::lane::detect::DETECTED_LANE;
use crate::lane::{Lane, RoomKind};
use crate::task::Tier;
use std::path::Path;

/// The model that a task without one would have, then the other ones that are configured. None is called.
pub(super) fn models(set: &config::Settings, environment: &Environment) -> Vec<Found> {
    let default = match auto_model(set, Tier::Code, environment) {
        Ok(choice) => Found::good("model", format!("{} by default, {}", choice.entry.model, key(&choice))),
        Err(fault) => lacking(&fault, true),
    };
    let is_default = |name: &str| set.default_model.as_ref().is_some_and(|own| own.value == name);
    let others = set.models.keys().filter(|name| !is_default(name));
    let other = |name: &String| match resolve_model(name, set, environment) {
        Ok(choice) => Found::good("model", format!("{name}: {}, {}", choice.entry.model, key(&choice))).of(name),
        Err(fault) => lacking(&fault, false).of(name),
    };
    [default].into_iter().chain(others.map(other)).collect()
}

fn key(choice: &ModelChoice) -> String {
    match &choice.entry.key {
        Some(KeyPlace::Variable(variable)) => format!("its key is in {variable}"),
        Some(KeyPlace::Command { .. }) => "its key comes from a command".into(),
        Some(KeyPlace::File(path)) => format!("its key is in {}", path.display()),
        None => "it needs no key".into(),
    }
}

fn lacking(fault: &ConfigFault, is_default: bool) -> Found {
    // What to do stands in its message, in brackets at the end.
    let text = fault.to_string();
    let (says, mend) =
        text.rsplit_once(" (").map_or((text.as_str(), ""), |(says, hint)| (says, hint.trim_end_matches(')')));
    if is_default { Found::problem("model", says, mend) } else { Found::warning("model", says, mend) }
}

/// The lanes, whether they can run here, and what the gate can prove by them.
pub(super) fn lanes(root: &Path, environment: &Environment) -> Vec<Found> {
    let child = environment.child_env();
    let path = child.get("PATH").map_or("", String::as_str);
    let Listed { lanes, is_detected, fault, .. } = match gate::list(root, path) {
        Ok(listed) => listed,
        Err(fault) => {
            return vec![Found::problem("lanes", fault.to_string(), "`fledge lanes validate` says all of it")];
        }
    };
    if lanes.is_empty() && fault.files.is_empty() {
        let mend = "write lanes/verify.yaml: one step that runs the tests is enough";
        return vec![Found::problem("lanes", "there are none, and none could be detected", mend)];
    }
    let mut found = Vec::new();
    if !fault.files.is_empty() {
        let found_wrong = Found::problem("lanes", fault.to_string(), "`fledge lanes validate` says all of it");
        found.push(found_wrong.of("files"));
    }
    if is_detected {
        let says = "the project has none; `verify` was detected from its files";
        found.push(Found::warning("lanes", says, "`fledge lanes init` writes it down, for you to complete"));
    } else if !lanes.iter().any(|lane| lane.name == DETECTED_LANE) {
        let says = "none is called `verify`, which is the gate of a task that names none";
        found.push(Found::warning("lanes", says, "write lanes/verify.yaml, or name the lane in tasks: `lane: …`"));
    }
    found.extend(lanes.iter().map(|lane| about(root, lane, path).of(&lane.name)));
    found
}

/// What runs have left of the worktrees that they had for themselves.
pub(super) fn worktrees(root: &Path, environment: &Environment) -> Option<Found> {
    let left = left_over(&environment.state_dir().ok()?, root);
    let says = match left {
        0 => return None,
        1 => "1 run has left one".to_owned(),
        left => format!("{left} runs have left one"),
    };
    let mend = "`fledge worktrees list` says what is in it; `fledge worktrees clean` removes what is safe";
    Some(Found::warning("worktree", says, mend))
}

fn about(root: &Path, lane: &Lane, path: &str) -> Found {
    let name = &lane.name;
    if let Err(fault) = gate::can_run(root, lane, path, &lane.always_run()) {
        let (says, mend) = (format!("{name}: {fault}"), "install it, or change the step");
        let is_gate = name == DETECTED_LANE;
        return if is_gate { Found::problem("lane", says, mend) } else { Found::warning("lane", says, mend) };
    }
    let reports = lane.steps.iter().filter(|step| step.junit.is_some()).count();
    let proves = match (reports, &lane.canary) {
        (0, None) => "exit codes, and counts that runners print".into(),
        (0, Some(canary)) => format!("exit codes and a canary ({})", canary.word()),
        (_, None) => "tests by name".into(),
        (_, Some(canary)) => format!("tests by name and a canary ({})", canary.word()),
    };
    let steps = if lane.steps.len() == 1 { "1 step".into() } else { format!("{} steps", lane.steps.len()) };
    let says = format!("{name}: {steps}; a pass rests on {proves}");
    if lane.room == RoomKind::InPlace {
        let mend =
            "leave `room: in-place` out where the lane can run in a fresh copy: try `fledge lanes run NAME --clean`";
        return Found::warning("lane", format!("{says}, and on nothing that the agent left beside the tree"), mend);
    }
    if name == DETECTED_LANE && reports == 0 && lane.canary.is_none() {
        let mend = "name a test report (`junit:`) or a `canary:`, so that silenced tests are seen: docs/gate.md";
        return Found::warning("lane", says, mend);
    }
    Found::good("lane", says)
}
