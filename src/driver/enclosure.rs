//! The sandbox around the agent of a run: its kind, its rules, and the notes about it.

use super::DriverSettings;
use super::error::PlanError;
use super::hidden::AgentView;
use crate::lane_files::CONFIGURATION;
use crate::pattern::Patterns;
use crate::process;
use crate::process::sandbox::{Mount, MountView, PathRules, Sandbox, SandboxKind};
use crate::run::RunPlan;
use crate::store::RunDir;
use crate::task::Task;
use crate::verdict::Reason;
use std::path::PathBuf;

/// The installed dependencies as the agent and the programs beside it see them.
#[derive(Debug, Clone, Default)]
pub(super) struct DependencyFolders {
    /// Layers over the folders of dependencies. They take what is written, so that the folders do
    /// not change.
    pub(super) view: Option<MountView>,
    /// Folders that virtual environments point to.
    pub(super) interpreters: Vec<PathBuf>,
    /// Layers over the caches of tools in the user's home.
    pub(super) caches: Vec<Mount>,
    /// Folders of the workspace that have a layer.
    pub(super) layered: Vec<String>,
    /// The changes of the agent's sandbox that keep hidden tests from it.
    pub(super) agent_view: AgentView,
    /// True if rooms have layers and pins.
    pub(super) has_layers: bool,
}

/// Builds the sandbox that the settings ask for.
///
/// # Errors
/// [`PlanError`] with a way to fix it, if the sandbox is not available.
pub(super) async fn find_sandbox(settings: &DriverSettings) -> Result<Sandbox, PlanError> {
    let path = process::outside(variable(settings, "PATH"), &settings.workspace);
    let raised = Sandbox::find(settings.sandbox, settings.helper.as_deref(), &path).await;
    raised.map_err(|fault| PlanError::new(Reason::NoSandbox, format!("{fault}: {}", fault.hint)))
}

/// Returns the rules for tools. They reach the workspace without git's own files, its dependencies,
/// and the folder for their results.
pub(super) fn rules(
    settings: &DriverSettings,
    task: &Task,
    run: &RunDir,
    dependencies: &DependencyFolders,
) -> PathRules {
    let mut rules = PathRules::of_workspace(&settings.workspace);
    rules.read_only.extend(configuration(settings, task));
    rules.writable.push(run.outputs());
    rules.hidden.extend(hidden(settings));
    rules.home = Some(PathBuf::from(variable(settings, "HOME"))).filter(|home| home.is_absolute());
    rules.network = settings.network;
    rules.limits = settings.limits;
    rules.read_only.extend(dependencies.interpreters.iter().cloned());
    rules.view.clone_from(&dependencies.view);
    rules.mounts.extend(dependencies.caches.iter().cloned());
    dependencies.agent_view.restrict(&mut rules);
    rules
}

/// Returns the files that configure later runs, if they exist and the task does not open them.
fn configuration<'s>(settings: &'s DriverSettings, task: &Task) -> impl Iterator<Item = PathBuf> + 's {
    let open = Patterns::trees(task.allow_edit.iter().map(String::as_str)).ok(); // freezing the gate refuses an invalid glob
    let is_closed = move |name: &&str| open.as_ref().is_some_and(|open| !open.fit(name));
    let is_file = |path: &PathBuf| path.symlink_metadata().is_ok_and(|meta| meta.is_file());
    let paths = CONFIGURATION.iter().copied().filter(is_closed).map(|name| settings.workspace.join(name));
    paths.filter(is_file)
}

/// Returns what neither the agent nor a lane that it knows can see: fledge's state and the hold-out
/// lanes.
pub(super) fn hidden(settings: &DriverSettings) -> Vec<PathBuf> {
    let holdout = settings.holdout.iter().map(|folder| folder.canonicalize().unwrap_or_else(|_| folder.clone()));
    [settings.state_dir.clone()].into_iter().chain(holdout).collect()
}

/// Checks that the hold-out folder exists: a missing folder cannot be hidden.
///
/// # Errors
/// [`PlanError`] if it is missing or is not a folder.
pub(super) fn must_be_hideable(settings: &DriverSettings) -> Result<(), PlanError> {
    let Some(folder) = &settings.holdout else { return Ok(()) };
    let fault = |why: &dyn std::fmt::Display| {
        let message = format!("the hold-out folder {} cannot be hidden: {why}", folder.display());
        Err(PlanError::new(Reason::BadInput, message))
    };
    match folder.canonicalize() {
        Ok(found) if found.is_dir() => Ok(()),
        Ok(_) => fault(&"not a folder"),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Err(PlanError::bad(format!("there is no hold-out folder {}", folder.display())))
        }
        Err(error) => fault(&error),
    }
}

/// Checks that tools in the sandbox can write in the workspace.
///
/// # Errors
/// [`PlanError`] with a way to fix it, if they cannot.
pub(super) fn must_be_writable(settings: &DriverSettings, sandbox: &Sandbox) -> Result<(), PlanError> {
    let is_asked = sandbox.kind() != SandboxKind::Off;
    match process::unwritable(&settings.workspace).filter(|_| is_asked) {
        None => Ok(()),
        Some(process::Unwritable { why, hint }) => Err(PlanError::new(Reason::NoSandbox, format!("{why}: {hint}"))),
    }
}

/// Adds the kind of the sandbox to the plan, with a note if the sandbox is weak.
pub(super) fn note(settings: &DriverSettings, kind: SandboxKind, plan: &mut RunPlan) {
    plan.sandbox = Some(kind);
    plan.network = settings.network && kind != SandboxKind::Off;
    match kind {
        SandboxKind::Bubblewrap | SandboxKind::Off => {}
        SandboxKind::Landlock => plan.notes.push(
            "the sandbox is landlock, which is weaker: programs can write `.git`, and change modes and times of \
             your files elsewhere; bubblewrap is stronger"
                .to_owned(),
        ),
    }
}

/// Returns a variable from the environment of programs that runs start. Empty if it is not set.
pub(super) fn variable<'s>(settings: &'s DriverSettings, name: &str) -> &'s str {
    settings.env.iter().find(|(own, _)| own == name).map_or("", |(_, value)| value)
}
