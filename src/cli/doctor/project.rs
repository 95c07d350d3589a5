//! What the project and its operator have set: models, and lanes with what a pass of them can prove.

use super::super::lanes::recall_clean;
use super::super::worktrees::left_over;
use super::{Found, Health, every};
use crate::config::{self, ConfigFault, Environment, KeyPlace, ModelChoice, auto_model, near_published, resolve_model};
use crate::driver::project_of;
use crate::gate::{self, Listed};
use crate::lane::detect::DETECTED_LANE;
use crate::lane::{Lane, LaneFault, RoomKind};
use crate::process::{self, wall::Wall};
use crate::store::{Filter, Only, Store, project_dir};
use crate::task::Tier;
use crate::workspace::ignored_paths;
use std::path::Path;
use tokio_util::sync::CancellationToken;

/// The model that a task without one would have, then the other ones that are configured. None is called.
pub(super) fn models(set: &config::Settings, environment: &Environment) -> Vec<Found> {
    let default = match auto_model(set, Tier::Code, environment) {
        Ok(choice) => known(format!("{} by default, {}", choice.entry.model, key(&choice)), &choice),
        Err(fault) => lacking(&fault, true, environment),
    };
    let is_default = |name: &str| set.default_model.as_ref().is_some_and(|own| own.value == name);
    let others = set.models.keys().filter(|name| !is_default(name));
    let other = |name: &String| match resolve_model(name, set, environment) {
        Ok(choice) => known(format!("{name}: {}, {}", choice.entry.model, key(&choice)), &choice).of(name),
        Err(fault) => lacking(&fault, false, environment).of(name),
    };
    let (good, other): (Vec<Found>, Vec<Found>) = others.map(other).partition(|found| found.health == Health::Good);
    let name = |found: &Found| found.part.clone().unwrap_or_default();
    let names = good.iter().map(name).collect::<Vec<_>>().join(", ");
    let good = (!good.is_empty()).then(|| Found::good("model", format!("also configured: {names}")).of("others"));
    let all: Vec<String> = other.iter().map(|found| format!("{} ({})", name(found), found.says)).collect();
    let other = match other.as_slice() {
        [] | [_] => other.into_iter().next(),
        _ => Some(Found::warning("model", all.join("; "), "`fledge models check` says what each needs").of("unready")),
    };
    [default].into_iter().chain(good).chain(other).collect()
}

fn key(choice: &ModelChoice) -> String {
    match &choice.entry.key {
        Some(KeyPlace::Variable(variable)) => format!("its key is in {variable}"),
        Some(KeyPlace::Command { .. }) => "its key comes from a command".into(),
        Some(KeyPlace::File(path)) => format!("its key is in {}", path.display()),
        None => "it needs no key".into(),
    }
}

/// A model that can be asked: one with a name near a common one may be that one misspelt, or a new one.
fn known(says: String, choice: &ModelChoice) -> Found {
    let entry = &choice.entry;
    let near = near_published(entry.provider, &entry.model).filter(|_| entry.base_url.is_none());
    let Some(near) = near else { return Found::good("model", says) };
    let mend = format!("`fledge models check` asks whether there is one; did you mean `{near}`?");
    Found::warning("model", format!("{says}; no model of this name is known here"), mend)
}

fn lacking(fault: &ConfigFault, is_default: bool, environment: &Environment) -> Found {
    // What to do stands in its message, in brackets at the end.
    let text = fault.to_string();
    let (says, mend) =
        text.rsplit_once(" (").map_or((text.as_str(), ""), |(says, hint)| (says, hint.trim_end_matches(')')));
    let is_empty =
        |name: &&str| mend.contains(*name) && environment.all().contains_key(*name) && environment.get(name).is_none();
    let named = mend.split(|char: char| !char.is_ascii_uppercase() && char != '_').filter(|word| word.contains("KEY"));
    let empty = named.filter(is_empty).map(|name| format!("; {name} is set, and empty"));
    let says = &format!("{says}{}", empty.collect::<String>());
    if is_default { Found::problem("model", says, mend) } else { Found::warning("model", says, mend) }
}

/// The lanes, whether they can run here, and what the gate can prove by them.
pub(super) fn lanes(root: &Path, environment: &Environment) -> Vec<Found> {
    let child = environment.child_env();
    let path = child.get("PATH").map_or("", String::as_str);
    let Listed { lanes, is_detected, fault, .. } = match gate::list(root, path) {
        Ok(listed) => listed,
        Err(fault) => {
            return vec![Found::problem("lanes", every(&fault), "`fledge lanes validate` says all of it")];
        }
    };
    if lanes.is_empty() && fault.files.is_empty() {
        let mend = "write lanes/verify.yaml: one step that runs the tests is enough";
        return vec![Found::problem("lanes", "there are none, and none could be detected", mend)];
    }
    let mut found = Vec::new();
    if !fault.files.is_empty() {
        let found_wrong = Found::problem("lanes", every(&fault), "`fledge lanes validate` draws each with its line");
        found.push(found_wrong.of("files"));
    }
    if is_detected {
        let says = "the project has none; `verify` was detected from its files";
        found.push(Found::warning("lanes", says, "`fledge init` tries it and writes it down"));
    } else if !lanes.iter().any(|lane| lane.name == DETECTED_LANE) && !is_broken_gate(&fault) {
        let says = "none is called `verify`, which is the gate of a task that names none";
        found.push(Found::warning("lanes", says, "write lanes/verify.yaml, or name the lane in tasks: `lane: …`"));
    }
    found.extend(lanes.iter().map(|lane| about(root, lane, path).of(&lane.name)));
    found.extend(lanes.iter().filter_map(|lane| failed_clean(root, lane, environment)));
    found
}

/// Why a lane failed when it was last run in a clean room by hand.
fn failed_clean(root: &Path, lane: &Lane, environment: &Environment) -> Option<Found> {
    let project = project_dir(&environment.state_dir().ok()?, root);
    let reasons = recall_clean(&project, lane);
    let name = &lane.name;
    let says = format!("{name}: when it was last run in a clean room, it failed: {}", reasons.join("; "));
    let found = || Found::warning("lane", says, format!("`fledge lanes run {name} --clean` tries it again"));
    (!reasons.is_empty()).then(|| found().of(format!("{name}.clean")))
}

/// Programs that steps find by hand and not in a room, as seen from inside of a sandbox.
pub(super) async fn rooms(root: &Path, set: &config::Settings, environment: &Environment) -> Vec<Found> {
    let env: Vec<(String, String)> = environment.step_env().into_iter().collect();
    let path = env.iter().find(|(name, _)| name == "PATH").map_or("", |(_, path)| path.as_str());
    let Ok(Listed { lanes, .. }) = gate::list(root, path) else { return Vec::new() };
    let raised = Wall::raise(set.sandbox, environment.program(), &process::outside(path, root)).await;
    let Ok(wall) = raised else { return Vec::new() }; // told of the sandbox
    let hidden: Vec<_> = environment.state_dir().into_iter().collect();
    let mut found: Vec<Found> = Vec::new();
    let hand: Vec<(String, String)> = environment.hand_env().into_iter().collect();
    let ignored = ignored_paths(root, &hand, &CancellationToken::new()).await;
    for lane in lanes.iter().filter(|lane| lane.room == RoomKind::Clean) {
        if let Some((step, path)) = gate::ignored_in_commands(lane, &ignored).into_iter().next() {
            let says = format!("{}: step `{step}` names `{path}`, which git ignores, so no room has it", lane.name);
            let mend = format!("write `include_ignored: [{path}]` into the lane");
            found.push(Found::warning("lane", says, mend).of(format!("{}.ignored", lane.name)));
        }
        if let Some((step, words)) = gate::fetching(lane).into_iter().next() {
            let says = format!("{}: step `{step}` runs `{words}`, and a room has no network", lane.name);
            let mend = "put it into `setup`, which has one, or write `network: true` into the lane";
            found.push(Found::warning("lane", says, mend).of(format!("{}.network", lane.name)));
        }
    }
    let unreached = gate::unreached(&lanes, root, (&wall, &hidden), &env, &CancellationToken::new()).await;
    for gate::Unreached { lane, step, what, cure } in unreached {
        let says = format!("{lane}: step `{step}` cannot run in a room: {what}");
        let part = format!("{lane}.room");
        if !found.iter().any(|found| found.part.as_ref() == Some(&part)) {
            found.push(Found::problem("lane", says, cure).of(part));
        }
    }
    found
}

/// Whether the gate could be in a file that is wrong.
fn is_broken_gate(fault: &LaneFault) -> bool {
    let stems = fault.files.keys().filter_map(|file| Path::new(file).file_stem());
    stems.into_iter().any(|stem| stem == DETECTED_LANE || stem == "fledge")
}

/// Variables that are misspelt: nobody reads them.
pub(super) fn variables(environment: &Environment) -> impl Iterator<Item = Found> {
    environment.misspelt().into_iter().map(|(name, meant)| {
        let mend = format!("did you mean `{meant}`? `unset {name}` if not");
        Found::warning("config", format!("{name} is set, and nothing reads it"), mend).of(name)
    })
}

/// Runs that did not end and that nobody drives.
pub(super) fn interrupted(root: &Path, environment: &Environment) -> Option<Found> {
    let state = environment.state_dir().ok()?;
    let store = Store::existing(&state, &project_of(&state, root)).ok().flatten()?;
    let rows = store.runs(&Filter { limit: 100, only: Some(Only::Interrupted), ..Filter::default() }).ok()?;
    let newest = &rows.first()?.head.id;
    let says = match rows.len() {
        1 => "1 run did not end, and can be gone on with".to_owned(),
        many => format!("{many} runs did not end, and can be gone on with; the newest is {newest}"),
    };
    let mend = format!("`fledge runs resume {newest}` goes on; `fledge runs list` shows all");
    Some(Found::warning("runs", says, mend))
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
