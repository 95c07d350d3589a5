//! Start and stop of the server.

use super::super::failure::CliError;
use super::super::output::{no_output, print_data};
use super::super::paint::{self, Tone};
use super::super::runtime::block_on;
use super::super::sync_target::SyncTarget;
use super::super::{configured, signals};
use super::jobs::{self, JobResources};
use super::source::{ModelConnections, ProjectTasks};
use super::{ServeArguments, ServedProject, failed, link_at};
use crate::config::{self, EnvironmentLayer};
use crate::driver::StopToken;
use crate::duration::show_duration;
use crate::process::Stopwatch;
use crate::serve::engine::{Engine, EngineSettings};
use crate::serve::{
    AccessToken, AppParts, AppState, Broadcaster, LoginGuard, LoginLink, ServeError, ServeLease, ServerListener, serve,
};
use crate::store::{Store, is_inside};
use anyhow::Context;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

/// Serves until a signal arrives; returns the exit code.
pub(super) fn start(arguments: &ServeArguments, environment: &EnvironmentLayer) -> Result<u8, CliError> {
    let site = arguments.place.site(environment)?;
    configured::restore_configuration(environment, &site.workspace);
    block_on(served(arguments, site, environment))?
}

async fn served(
    arguments: &ServeArguments,
    site: ServedProject,
    environment: &EnvironmentLayer,
) -> Result<u8, CliError> {
    let stop = StopToken::default();
    let listening = signals::listen(stop.clone()).context("cannot listen for signals").map_err(CliError::own)?;
    let plan = told_server(&site, environment)?;
    let mut lease = ServeLease::acquire(&site.folder).map_err(failed)?;
    let token = token(arguments, &site, environment).map_err(failed)?;
    drop(Store::open(&site.state_dir, &site.project).map_err(|error| failed(error.into()))?);
    let now = jiff::Timestamp::now();
    let entrance = LoginGuard::open(&site.folder, token, now).map_err(failed)?;
    let opened = ServerListener::open(arguments.listen, arguments.allow_public, arguments.host.clone());
    let door = opened.map_err(failed)?;
    let url = door.url();
    lease.is_at(&url).map_err(failed)?;
    let project = site.workspace.display().to_string();
    let ServedProject { state_dir, workspace, project: own, folder } = site.clone();
    let (broadcaster, most) = (Broadcaster::default(), arguments.max_runs);
    let source = Arc::new(ProjectTasks {
        state_dir: state_dir.clone(),
        workspace: workspace.clone(),
        project: own.clone(),
        environment: environment.clone(),
        most,
        models: ModelConnections::default(),
    });
    let tasks = Arc::clone(&source);
    let terms = EngineSettings {
        state_dir: state_dir.clone(),
        project: own.clone(),
        most,
        source,
        broadcaster: broadcaster.clone(),
    };
    let engine = Engine::start(terms)
        .map_err(|fault| CliError::own(fault).hint("fledge keeps its queue in FLEDGE_STATE_DIR"))?;
    let request_within = arguments.request_timeout;
    let parts =
        AppParts { state_dir, workspace, project: own, entrance, request_within, broadcaster, engine: engine.clone() };
    let app_state = AppState::new(parts);
    let resources = JobResources { submit: Arc::new(engine.clone()), tasks, plan: plan.clone() };
    let scheduler = jobs::scheduler(&app_state, &site, environment, resources)?;
    scheduler.look().await;
    app_state.employ(scheduler.clone());
    print_data(&paint::one_line(&format!("fledge serves {project} at {url}"))).map_err(no_output)?;
    if !arguments.no_link {
        let code = LoginLink::make(&folder, now).map_err(failed)?;
        let lasts = show_duration(LoginLink::lasts());
        print_data(&format!("once, within {lasts}: {}", link_at(&url, &code))).map_err(no_output)?;
    }
    let hint = async {
        stop.token().cancelled().await;
        let grace = show_duration(arguments.grace);
        let says = format!("stopping within {grace}; a second signal ends at once");
        paint::line(&[(Tone::Faint, says.as_str())]);
    };
    let rest = async {
        stop.token().cancelled().await;
        let since = Stopwatch::start();
        engine.stop(arguments.grace).await;
        if let Some(plan) = &plan {
            let left = arguments.grace.saturating_sub(since.read());
            let _what_was_not_sent_waits = tokio::time::timeout(left, plan.close()).await;
        }
    };
    let jobs = scheduler.run(stop.token(), arguments.grace);
    tokio::join!(serve(door, &app_state, stop.token(), arguments.grace), hint, rest, jobs);
    drop((lease, listening));
    Ok(0)
}

/// Prepares the messages about runs to another server, if one is configured.
fn told_server(site: &ServedProject, environment: &EnvironmentLayer) -> Result<Option<Arc<SyncTarget>>, CliError> {
    let set = config::load(environment, &site.workspace).map_err(CliError::input)?;
    let Some(sync) = set.sync else { return Ok(None) };
    let plan = SyncTarget::new(sync, environment, &site.state_dir, &site.project)?;
    plan.mark_runs_for_sync()?;
    Ok(Some(Arc::new(plan)))
}

fn token(
    arguments: &ServeArguments,
    site: &ServedProject,
    environment: &EnvironmentLayer,
) -> Result<AccessToken, ServeError> {
    const VARIABLE: &str = "FLEDGE_SERVE_TOKEN";
    match (&arguments.token_file, environment.get(VARIABLE)) {
        // A file that agents can read is not secret.
        (Some(file), _) if is_inside(file, &site.workspace) => {
            let why = "the file is in the served folder, where agents can read it".to_owned();
            Err(ServeError::Token { place: format!("of {}", file.display()), why })
        }
        (Some(file), _) => {
            let token = AccessToken::of_file(file)?;
            // Only a warning: the mode of a mounted file, as in a container, often cannot be
            // changed.
            if let Some(mode) = open_mode(file) {
                let says = format!("others can read the token in {} (mode {mode:03o}): run chmod 600", file.display());
                paint::line(&[(Tone::Warn, "! "), (Tone::Plain, &paint::one_line(&says))]);
            }
            Ok(token)
        }
        (None, Some(text)) => AccessToken::given(text, &format!("of {VARIABLE}")),
        (None, None) => AccessToken::kept(&site.folder),
    }
}

/// Returns the mode of a file if others than its owner may read it.
fn open_mode(file: &Path) -> Option<u32> {
    let mode = file.metadata().ok()?.permissions().mode() & 0o777;
    (mode & 0o044 != 0).then_some(mode)
}
