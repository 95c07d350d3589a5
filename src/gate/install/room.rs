//! Execution of install commands in a room, and collection of the result.

use super::commands::InstallCommand;
use super::replaced::replaced;
use super::{Installation, first, packages};
use crate::gate::base::BaseError;
use crate::gate::clean::{CleanRoom, LowerFolder, RoomDependencies, RoomError, RoomRequest, clear};
use crate::gate::installed::{InstalledPackages, reached};
use crate::gate::names::{joined, name_of};
use crate::gate::unable;
use crate::gate::{Gate, GateSite};
use crate::id::TreeId;
use crate::lane::{self, Lane};
use crate::lane_runner::{LaneRoom, LaneRuling};
use crate::verdict::{InstalledForChecks, StepReport};
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use tokio_util::sync::CancellationToken;

/// Variables that keep installers from running code of packages.
pub(in crate::gate) const NO_SCRIPTS: [(&str, &str); 4] = [
    ("npm_config_ignore_scripts", "true"),
    ("YARN_ENABLE_SCRIPTS", "false"),
    ("PIP_ONLY_BINARY", ":all:"),
    ("COMPOSER_NO_SCRIPTS", "1"),
];
/// Variables for derived commands. They prevent builds of packages, which are not needed, and
/// permit changes of lock files.
const DERIVED: [(&str, &str); 4] = [
    ("UV_NO_BUILD", "1"),
    ("POETRY_INSTALLER_ONLY_BINARY", ":all:"),
    ("YARN_ENABLE_IMMUTABLE_INSTALLS", "false"),
    ("PIP_BREAK_SYSTEM_PACKAGES", "1"),
];
/// The text that replaces the output of a hidden command without network. It has the words of a
/// resolver, so the failure still counts as offline.
const OFFLINE: &str = "Could not resolve host";
/// The name of the lane that installs.
const NAME: &str = "install";

/// Runs the commands on a tree, and moves the result into the folder of the installation.
pub(super) async fn install(
    gate: &Gate,
    site: &GateSite,
    ground: &TreeId,
    commands: &[InstallCommand],
    installation: &mut Installation,
    stop: &CancellationToken,
) -> Result<(), BaseError> {
    let folder = installation.folder.clone();
    let lane = installing(commands);
    let wanted = RoomRequest {
        lane: &lane,
        tree: ground,
        base: gate.base(),
        caches: None,
        dependencies: RoomDependencies::Awaited(&folder),
        kept: &[],
        gate,
    };
    let mut room = CleanRoom::make(site, wanted, stop).await?;
    let ran = run(&lane, site, room.room(site, site.logs.join(NAME).join(ground.as_str())), stop).await;
    ran.map_err(|fault| without_hidden(fault, commands))?;
    let files = site.trees.paths(ground, stop).await.map_err(RoomError::from)?;
    let taken = move_content(gate, site, &mut room, &files, installation);
    taken.map_err(|source| BaseError::Cache { path: folder.clone(), source })?;
    room.close().await;
    let replaced = replaced_by(gate, site, installation);
    if !replaced.is_empty() {
        clear(&folder).map_err(|source| BaseError::Cache { path: folder, source })?;
        let command = commands.iter().map(InstallCommand::shown).collect::<Vec<_>>().join("` and `");
        let why = format!("{}; choose packages that do not replace installed ones", first(&replaced));
        return Err(BaseError::Install { command, why, is_missing: false });
    }
    let lines: Vec<String> = commands.iter().map(|command| command.shown().to_owned()).collect();
    installation.report = InstalledForChecks { commands: lines, packages: packages::list(installation) };
    Ok(())
}

/// Returns a failure without the command line and the output of a hidden command.
fn without_hidden(fault: BaseError, commands: &[InstallCommand]) -> BaseError {
    match fault {
        BaseError::Install { command, why, is_missing } => {
            match commands.iter().find(|it| it.is_hidden && it.line() == command) {
                Some(hidden) => {
                    let is_offline = unable::says_offline(&why);
                    let why = if is_offline { OFFLINE } else { "its output is hidden" }.to_owned();
                    BaseError::Install { command: hidden.shown().to_owned(), why, is_missing }
                }
                None => BaseError::Install { command, why, is_missing },
            }
        }
        fault => fault,
    }
}

/// Returns a line for each program, package or module from before the agent that would now come
/// from another package.
fn replaced_by(gate: &Gate, site: &GateSite, installation: &Installation) -> Vec<String> {
    let before = |path: &str| if site.has_layers { site.origin.join(path) } else { site.ignored.join(path) };
    let installed = |path: &&String| gate.installed.folders.contains(path);
    let over = installation.over.iter().map(|(path, at)| (path, installation.folder.join(at)));
    let whole = installation.whole().filter(|(path, _)| installed(path) || name_of(path) == "node_modules");
    let changes = over.chain(whole).flat_map(|(path, at)| {
        let is_of_node = |path: &str| name_of(path) == "node_modules";
        let folders = path.rmatch_indices('/').map(|(end, _)| &path[..end]).chain([""]);
        let outer = folders.skip(1).map(|folder| joined(folder, "node_modules"));
        let outer = outer.filter(|outer| outer != path && is_of_node(path) && gate.installed.folders.contains(outer));
        let outer: Vec<PathBuf> = outer.map(|outer| before(&outer)).collect();
        let found = replaced(&before(path), &at, &outer);
        found.into_iter().map(move |line| format!("in `{path}`, {line}"))
    });
    changes.collect()
}

/// Returns the lane that runs these commands one after the other.
pub(super) fn installing(commands: &[InstallCommand]) -> Lane {
    let step = |(number, command): (usize, &InstallCommand)| {
        let text = |text: &str| serde_json::Value::from(text).to_string();
        let folder =
            if command.folder.is_empty() { String::new() } else { format!(", dir: {}", text(&command.folder)) };
        format!("{{ name: {NAME}-{number}, run: {}, timeout: 15m{folder} }}", text(&command.run))
    };
    let steps: Vec<String> = commands.iter().enumerate().map(step).collect();
    let text = format!("timeout: 30m\nsteps:\n  - {}\n", steps.join("\n  - "));
    let parsed = lane::parse(NAME, "the commands that install dependencies", &text);
    #[expect(clippy::expect_used, reason = "the text is made above")]
    let lane = parsed.expect("a lane of commands can be read");
    Lane { network: true, writes: true, ..lane }
}

/// Runs the lane that installs, with network.
pub(super) async fn run(
    lane: &Lane,
    site: &GateSite,
    mut place: LaneRoom,
    stop: &CancellationToken,
) -> Result<(), BaseError> {
    let variables = NO_SCRIPTS.iter().chain(&DERIVED).map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let variables: Vec<(String, String)> = variables.collect();
    place.env = place.env.with(variables.iter().map(|(name, value)| (name, value)));
    place.behind.iter_mut().for_each(|behind| behind.rules.network = true);
    let outcome = site.run(lane, place, stop, &|_| {}).await;
    match outcome.ruling {
        LaneRuling::Passed => Ok(()),
        LaneRuling::Cancelled => Err(BaseError::Stopped),
        LaneRuling::Failed | LaneRuling::Errored | LaneRuling::NothingRan => {
            let step = outcome.steps.iter().find(|step| step.status.is_failure());
            let last = |step: &StepReport| step.command.lines().last().unwrap_or_default().to_owned();
            Err(BaseError::Install {
                is_missing: step.is_some_and(|step| matches!(step.exit_code, Some(126 | 127))),
                command: step.map(last).unwrap_or_default(),
                why: step
                    .map(|it| [it.note.trim(), it.excerpt.trim()].join("\n").trim().to_owned())
                    .unwrap_or_default(),
            })
        }
    }
}

/// Returns whether a path is that of a lock file which its tool completes only while it installs. A
/// room then gets the file of the installation.
pub(in crate::gate) fn is_completed(path: &str) -> bool {
    matches!(name_of(path), "go.sum" | "go.work.sum")
}

/// Moves the new content of a room into the folder of an installation: layers over installed
/// folders and tool caches, new folders, and git-ignored files.
fn move_content(
    gate: &Gate,
    site: &GateSite,
    room: &mut CleanRoom,
    files: &[String],
    installation: &mut Installation,
) -> io::Result<()> {
    let folder = installation.folder.clone();
    let found = InstalledPackages::find(&room.files(), files, [].iter());
    let found_files: Vec<&String> = found.files.iter().filter(|path| reached(&room.files(), path).is_some()).collect();
    let moved = |from: &Path, to: &Path| {
        to.parent().map_or(Ok(()), fs::create_dir_all)?;
        fs::rename(from, to)
    };
    for (number, (below, upper)) in room.written().into_iter().enumerate() {
        let at = Path::new("over").join(number.to_string());
        moved(&upper, &folder.join(&at))?;
        match below {
            LowerFolder::Workspace(path) => drop(installation.over.insert(path, at)),
            LowerFolder::Cache(cache) => drop(installation.caches.insert(cache, at)),
        }
    }
    let before: BTreeSet<&String> = gate.installed.folders.iter().filter(|_| site.has_layers).collect();
    // Files of the tree itself are not part of an installation.
    let is_made = |path: &String| room.made(path).symlink_metadata().is_ok();
    for path in found.folders.iter().filter(|path| !before.contains(path) && is_made(path)) {
        moved(&room.made(path), &folder.join("whole").join(path))?;
        installation.whole.insert(path.clone());
    }
    let completed = files.iter().filter(|path| is_completed(path));
    for path in found_files.into_iter().chain(completed).filter(|path| is_made(path)) {
        moved(&room.made(path), &folder.join("files").join(path))?;
        installation.files.insert(path.clone());
    }
    Ok(())
}
