//! Checks of the project and its configuration: models, lanes with the evidence of their passes,
//! interrupted runs and worktrees.

use super::super::left_worktrees::left_over;
use super::{Health, HealthCheck, every};
use crate::config::{
    self, ConfigError, EnvironmentLayer, KeyPlace, ModelChoice, auto_model, near_published, resolve_model,
};
use crate::driver::project_of;
use crate::error_chain::chain;
use crate::gate::{self, last_clean};
use crate::lane::detect::DETECTED_LANE;
use crate::lane::{CanaryTerms, Lane, LaneError, RoomKind};
use crate::lane_files::{self, ListedLanes};
use crate::process::{self, sandbox::Sandbox};
use crate::store::{RunListFilter, RunProperty, Store, StoreError, project_dir};
use crate::task::Tier;
use crate::workspace::ignored_paths;
use std::collections::BTreeMap;
use std::path::Path;
use tokio_util::sync::CancellationToken;

/// The maximum number of programs that a warning names.
const NAMED: usize = 8;
/// The space of bases that is reported, in MiB.
const LARGE: u64 = 100;

/// Checks the default model of a task, then the other configured ones. Calls none.
pub(super) fn models(set: &config::ProjectConfig, environment: &EnvironmentLayer) -> Vec<HealthCheck> {
    let default = match auto_model(set, Tier::Code, environment) {
        Ok(choice) => known(format!("{} by default, {}", choice.entry.model, key(&choice)), &choice),
        Err(fault) => lacking(&fault, true, environment),
    };
    let is_default = |name: &str| set.default_model.as_ref().is_some_and(|own| own.value == name);
    let others = set.models.keys().filter(|name| !is_default(name));
    let other = |name: &String| match resolve_model(name, set, environment) {
        Ok(choice) => known(format!("{name}: {}, {}", choice.entry.model, key(&choice)), &choice).part(name),
        Err(fault) => lacking(&fault, false, environment).part(name),
    };
    let (good, other): (Vec<HealthCheck>, Vec<HealthCheck>) =
        others.map(other).partition(|found| found.health == Health::Good);
    let name = |found: &HealthCheck| found.part.clone().unwrap_or_default();
    let names = good.iter().map(name).collect::<Vec<_>>().join(", ");
    let good =
        (!good.is_empty()).then(|| HealthCheck::good("model", format!("also configured: {names}")).part("others"));
    let all: Vec<String> = other.iter().map(|found| format!("{} ({})", name(found), found.says)).collect();
    let other = match other.as_slice() {
        [] | [_] => other.into_iter().next(),
        _ => Some(
            HealthCheck::warning("model", all.join("; "), "`fledge models check` shows what each needs")
                .part("unready"),
        ),
    };
    [default].into_iter().chain(good).chain(other).collect()
}

fn key(choice: &ModelChoice) -> String {
    match &choice.entry.key {
        Some(KeyPlace::Variable(variable)) => format!("its key is in {variable}"),
        Some(KeyPlace::Command { .. }) => "its key comes from a command".into(),
        Some(KeyPlace::File(path)) => format!("its key is in {}", path.display()),
        None => "no key needed".into(),
    }
}

/// Reports a usable model. A name similar to a published model may be a misspelling or a new model.
fn known(says: String, choice: &ModelChoice) -> HealthCheck {
    let entry = &choice.entry;
    let near = near_published(entry.provider, &entry.model).filter(|_| entry.base_url.is_none());
    let Some(near) = near else { return HealthCheck::good("model", says) };
    let hint = format!("did you mean `{near}`? run `fledge models check` to test the model");
    HealthCheck::warning("model", format!("{says}; fledge does not know this model"), hint)
}

fn lacking(fault: &ConfigError, is_default: bool, environment: &EnvironmentLayer) -> HealthCheck {
    // The message ends with the fix in brackets.
    let text = fault.to_string();
    let (says, hint) =
        text.rsplit_once(" (").map_or((text.as_str(), ""), |(says, hint)| (says, hint.trim_end_matches(')')));
    let is_empty =
        |name: &&str| hint.contains(*name) && environment.all().contains_key(*name) && environment.get(name).is_none();
    let named = hint.split(|char: char| !char.is_ascii_uppercase() && char != '_').filter(|word| word.contains("KEY"));
    let empty = named.filter(is_empty).map(|name| format!("; {name} is set but empty"));
    let says = &format!("{says}{}", empty.collect::<String>());
    if is_default { HealthCheck::problem("model", says, hint) } else { HealthCheck::warning("model", says, hint) }
}

/// Checks the lanes: whether they can run here, and the evidence that they give the gate.
pub(super) fn lanes(root: &Path, environment: &EnvironmentLayer) -> Vec<HealthCheck> {
    let child = environment.child_env();
    let path = child.get("PATH").map_or("", String::as_str);
    let ListedLanes { lanes, is_detected, fault, .. } = match lane_files::list(root, path) {
        Ok(listed) => listed,
        Err(fault) => {
            return vec![HealthCheck::problem(
                "lanes",
                every(&fault),
                "run `fledge lanes validate` to see all problems",
            )];
        }
    };
    if lanes.is_empty() && fault.files.is_empty() {
        let hint = "write lanes/verify.yaml; one step that runs the tests is enough";
        return vec![HealthCheck::problem("lanes", "no lanes found, and fledge cannot detect any", hint)];
    }
    let mut found = Vec::new();
    if !fault.files.is_empty() {
        let found_wrong =
            HealthCheck::problem("lanes", every(&fault), "run `fledge lanes validate` to see each with its line");
        found.push(found_wrong.part("files"));
    }
    if is_detected {
        let says = "no lane files; fledge detected `verify` from the project";
        found.push(HealthCheck::warning("lanes", says, "run `fledge init` to test the lane and save it"));
    } else if !lanes.iter().any(|lane| lane.name == DETECTED_LANE) && !is_broken_gate(&fault) {
        let says = "no lane is named `verify`, the gate of tasks that name no lane";
        found.push(HealthCheck::warning(
            "lanes",
            says,
            "write lanes/verify.yaml, or name the lane in tasks: `lane: …`",
        ));
    }
    found.extend(lanes.iter().map(|lane| about(root, lane, path).part(&lane.name)));
    found.extend(lanes.iter().filter_map(|lane| failed_clean(root, lane, environment)));
    found
}

/// Returns the reasons why a lane failed in its last run by hand in a clean room.
fn failed_clean(root: &Path, lane: &Lane, environment: &EnvironmentLayer) -> Option<HealthCheck> {
    let project = project_dir(&environment.state_dir().ok()?, root);
    let reasons = last_clean::recall(&project, lane);
    let name = &lane.name;
    let says = format!("{name}: the last run in a clean room failed: {}", reasons.join("; "));
    let found = || HealthCheck::warning("lane", says, format!("run `fledge lanes run {name} --clean` to try again"));
    (!reasons.is_empty()).then(|| found().part(format!("{name}.clean")))
}

/// Checks that the steps of lanes can run in a room, as seen from inside the sandbox: programs,
/// ignored files and the network.
pub(super) async fn rooms(
    root: &Path,
    set: &config::ProjectConfig,
    environment: &EnvironmentLayer,
) -> Vec<HealthCheck> {
    let env: Vec<(String, String)> = environment.step_env().into_iter().collect();
    let path = env.iter().find(|(name, _)| name == "PATH").map_or("", |(_, path)| path.as_str());
    let Ok(ListedLanes { lanes, .. }) = lane_files::list(root, path) else { return Vec::new() };
    let raised = Sandbox::find(set.sandbox, environment.program(), &process::outside(path, root)).await;
    let Ok(sandbox) = raised else { return Vec::new() }; // the check of the sandbox reports this
    let hidden: Vec<_> = environment.state_dir().into_iter().collect();
    let mut found: Vec<HealthCheck> = Vec::new();
    let hand: Vec<(String, String)> = environment.hand_env().into_iter().collect();
    let ignored = ignored_paths(root, &hand, &CancellationToken::new()).await;
    for lane in lanes.iter().filter(|lane| lane.room == RoomKind::Clean) {
        if let Some((step, path)) = gate::ignored_in_commands(lane, &ignored).into_iter().next() {
            let says = format!("{}: step `{step}` names `{path}`, which git ignores, so rooms lack it", lane.name);
            let hint = format!("add `include_ignored: [{path}]` to the lane");
            found.push(HealthCheck::warning("lane", says, hint).part(format!("{}.ignored", lane.name)));
        }
        if let Some((step, words)) = gate::fetching(lane).into_iter().next() {
            let says = format!("{}: step `{step}` runs `{words}`, but rooms have no network", lane.name);
            let hint = "move the step to `setup`, which has a network, or add `network: true` to the lane";
            found.push(HealthCheck::warning("lane", says, hint).part(format!("{}.network", lane.name)));
        }
    }
    let unreached = gate::unreached(&lanes, root, (&sandbox, &hidden), &env, &CancellationToken::new()).await;
    for gate::UnreachedProgram { lane, step, what, cure } in unreached {
        let says = format!("{lane}: step `{step}` cannot run in a room: {what}");
        let part = format!("{lane}.room");
        if !found.iter().any(|found| found.part.as_ref() == Some(&part)) {
            found.push(HealthCheck::problem("lane", says, cure).part(part));
        }
    }
    for programs in gate::lacking_in_scripts(&lanes, root, (&sandbox, &hidden), &env, &CancellationToken::new()).await {
        found.extend(named_by_scripts(&programs));
    }
    found
}

/// Warns of missing programs that the commands and scripts of a lane name.
fn named_by_scripts(programs: &gate::ScriptPrograms) -> Vec<HealthCheck> {
    let gate::ScriptPrograms { lane, absent, hidden } = programs;
    let warning = |part: &str, why: &str, hint: &str, programs: &BTreeMap<String, String>| {
        let named: Vec<String> =
            programs.iter().take(NAMED).map(|(program, file)| format!("`{program}` ({file})")).collect();
        let more = programs.len().checked_sub(NAMED).filter(|more| *more > 0);
        let more = more.map(|more| format!(" and {more} more")).unwrap_or_default();
        let says = format!("{lane}: its commands name programs that {why}: {}{more}", named.join(", "));
        let warning = HealthCheck::warning("lane", says, hint).part(format!("{lane}.{part}"));
        (!programs.is_empty()).then_some(warning)
    };
    let shown =
        "put them into a folder that a room shows (see `fledge docs explanation/sandbox`), if the commands need them";
    let installed = "install them, if the commands need them";
    let absent = warning("scripts", "are not in PATH", installed, absent);
    absent.into_iter().chain(warning("scripts-room", "a room does not show", shown, hidden)).collect()
}

/// Returns true if the gate may be in an invalid file.
fn is_broken_gate(fault: &LaneError) -> bool {
    let stems = fault.files.keys().filter_map(|file| Path::new(file).file_stem());
    stems.into_iter().any(|stem| stem == DETECTED_LANE || stem == "fledge")
}

/// Returns misspelt variables, which nothing reads.
pub(super) fn variables(environment: &EnvironmentLayer) -> impl Iterator<Item = HealthCheck> {
    environment.misspelt().into_iter().map(|(name, meant)| {
        let hint = format!("did you mean `{meant}`? if not, `unset {name}`");
        HealthCheck::warning("config", format!("{name} is set, but fledge does not read it"), hint).part(name)
    })
}

/// Returns the runs that did not end and that no process drives, or why the database of runs cannot
/// be used.
pub(super) fn runs(root: &Path, environment: &EnvironmentLayer) -> Option<HealthCheck> {
    let state = environment.state_dir().ok()?;
    let only = RunListFilter { limit: 100, only: Some(RunProperty::Interrupted), ..RunListFilter::default() };
    let listed = |store: Option<Store>| store.map_or_else(|| Ok(Vec::new()), |store| store.runs(&only));
    let rows = match Store::existing(&state, &project_of(&state, root)).and_then(listed) {
        Ok(rows) => rows,
        Err(fault) => {
            let hint = match fault {
                StoreError::Foreign { .. } | StoreError::Corrupt { .. } => {
                    "move the file away: fledge then makes a new one, without the runs until now"
                }
                _ => "fledge must be able to read and write the file, or needs another FLEDGE_STATE_DIR",
            };
            return Some(HealthCheck::problem("runs", chain(&fault), hint));
        }
    };
    let newest = &rows.first()?.head.id;
    let says = match rows.len() {
        1 => "1 run was interrupted and can be resumed".to_owned(),
        many => format!("{many} runs were interrupted and can be resumed; the newest is {newest}"),
    };
    let hint = format!("`fledge runs resume {newest}` continues; `fledge runs list` shows all");
    Some(HealthCheck::warning("runs", says, hint))
}

/// Returns the space that results and caches of bases take, if it is much.
pub(super) fn bases(root: &Path, environment: &EnvironmentLayer) -> Option<HealthCheck> {
    let state = environment.state_dir().ok()?;
    let mebibytes = gate::bytes_of_bases(&project_dir(&state, &project_of(&state, root))) / 1024 / 1024;
    let says = format!(
        "{mebibytes} MiB are kept for later runs: results of the checks, their caches and checkouts; `fledge runs prune` removes unused ones"
    );
    (mebibytes >= LARGE).then(|| HealthCheck::good("bases", says))
}

/// Returns the worktrees that runs have left.
pub(super) fn worktrees(root: &Path, environment: &EnvironmentLayer) -> Option<HealthCheck> {
    let left = left_over(&environment.state_dir().ok()?, root);
    let says = match left {
        0 => return None,
        1 => "1 run left a worktree".to_owned(),
        left => format!("{left} runs left worktrees"),
    };
    let hint = "`fledge worktrees list` shows their contents; `fledge worktrees clean` removes the safe ones";
    Some(HealthCheck::warning("worktree", says, hint))
}

fn about(root: &Path, lane: &Lane, path: &str) -> HealthCheck {
    let name = &lane.name;
    if let Err(fault) = lane_files::can_run(root, lane, path, &lane.always_run()) {
        let (says, hint) = (format!("{name}: {fault}"), "install it, or change the step");
        let is_gate = name == DETECTED_LANE;
        return if is_gate {
            HealthCheck::problem("lane", says, hint)
        } else {
            HealthCheck::warning("lane", says, hint)
        };
    }
    let reports = lane.steps.iter().filter(|step| step.junit.is_some()).count();
    let kinds = gate::kinds_in_commands(lane);
    let kinds: Vec<&str> = kinds.iter().map(CanaryTerms::word).collect();
    let canary = match &lane.canary {
        CanaryTerms::None => "no canary (`canary: none`)".into(),
        CanaryTerms::Auto if kinds.is_empty() => "no canary, unless a run shows its test runner".into(),
        CanaryTerms::Auto => format!("a canary ({})", kinds.join(", ")),
        canary => format!("a canary ({})", canary.word()),
    };
    let proves = match reports {
        0 => format!("exit codes, counts that runners print, and {canary}"),
        _ => format!("tests by name and {canary}"),
    };
    let steps = if lane.steps.len() == 1 { "1 step".into() } else { format!("{} steps", lane.steps.len()) };
    let says = format!("{name}: {steps}; a pass rests on {proves}");
    if lane.room == RoomKind::InPlace {
        let try_it = format!("try `fledge lanes run {name} --clean`");
        let hint = format!("remove `room: in-place` if the lane can run in a fresh copy: {try_it}");
        return HealthCheck::warning(
            "lane",
            format!("{says}, and on nothing that the agent left beside the tree"),
            hint,
        );
    }
    let is_blind = lane.canary == CanaryTerms::None || (lane.canary.is_auto() && kinds.is_empty());
    if name == DETECTED_LANE && reports == 0 && is_blind {
        let hint = "add a test report (`junit:`) or a `canary:` to detect silenced tests: see `fledge docs reference/canaries`";
        return HealthCheck::warning("lane", says, hint);
    }
    HealthCheck::good("lane", says)
}
