//! Installation of verified work's dependencies in the folders of the workspace.

use super::commands::{InstallCommand, InstallTarget};
use super::differ::names_dependencies;
use super::{DependencyDifference, room};
use crate::error_chain::chain;
use crate::gate::clean::clear;
use crate::gate::{Gate, GateSite};
use crate::id::TreeId;
use crate::process::sandbox::{MountView, Mounts, add_layers, tool_caches};
use crate::workspace::trees::TreesError;
use std::collections::BTreeSet;
use tokio_util::sync::CancellationToken;

impl Gate {
    /// Installs the dependencies of verified work into the folders of the workspace, with the
    /// commands that the rooms of its checks used. Calls `begins` before the first command. Returns
    /// a note for people, also on environments that only the user may change; `None` if everything
    /// already fits.
    ///
    /// # Errors
    /// The reason. If a command may have run, the reason names the commands for the user to run.
    pub async fn bring_in_line(
        &self,
        site: &GateSite,
        tree: &TreeId,
        begins: impl FnOnce() -> Result<(), String> + Send,
        stop: &CancellationToken,
    ) -> Result<Option<String>, String> {
        let commands = self.commands_in_line(site, tree, stop).await?;
        let (commands, outside): (Vec<_>, Vec<_>) =
            commands.into_iter().partition(|command| command.target == InstallTarget::Folders);
        let outside = outside.iter().map(typed).collect::<Vec<_>>().join(", ");
        let outside = (!outside.is_empty()).then(|| {
            format!("an environment outside of the project lacks the new dependencies; run {outside} yourself")
        });
        if commands.is_empty() {
            return Ok(outside);
        }
        begins()?;
        let reported: Vec<String> = commands.iter().map(typed).collect();
        let reported = reported.join(", ");
        let ran = self.run_in_line(site, &commands, stop).await;
        // This also runs after a stop, because the workspace must have the verified files.
        let kept = self.keep_manifests(site, tree, &CancellationToken::new()).await.map_err(|fault| chain(&fault));
        match ran.and(kept) {
            Ok(()) => {
                let updated = format!("fledge updated your installed dependencies with {reported}");
                Ok(Some([Some(updated), outside].into_iter().flatten().collect::<Vec<_>>().join("; ")))
            }
            Err(why) => {
                Err(format!("your installed dependencies may be partly updated; run {reported} yourself: {why}"))
            }
        }
    }

    async fn commands_in_line(
        &self,
        site: &GateSite,
        tree: &TreeId,
        stop: &CancellationToken,
    ) -> Result<Vec<InstallCommand>, String> {
        let difference = DependencyDifference::compare(self, site, tree, stop).await.map_err(|fault| chain(&fault))?;
        let Some(difference) = difference else { return Ok(Vec::new()) };
        let files: BTreeSet<String> =
            site.trees.paths(tree, stop).await.map_err(|fault| chain(&fault))?.into_iter().collect();
        let commands = difference.commands(self, site, &files).into_iter();
        Ok(commands.filter(|command| command.target != InstallTarget::Cache).collect())
    }

    async fn run_in_line(
        &self,
        site: &GateSite,
        commands: &[InstallCommand],
        stop: &CancellationToken,
    ) -> Result<(), String> {
        let lane = room::installing(commands);
        let mut place = site.in_place(&lane, (&self.installed, None), site.logs.join("in-line"));
        let own = site.rooms.join("in-line");
        if let (true, Some(helper), Some(behind)) = (site.has_layers, site.sandbox.helper(), place.behind.as_mut()) {
            clear(&own).map_err(|error| format!("{}: {error}", own.display()))?;
            let mut mounts = Mounts::default();
            let caches = tool_caches(|name| Some(site.variable(name)).filter(|value| !value.is_empty())).into_iter();
            let folders = caches.map(|cache| cache.folder).filter(|folder| !site.root.starts_with(folder));
            let layered = add_layers(folders.map(|folder| (folder, Vec::new())), &own, &mut mounts);
            behind.rules.mounts.extend(layered.map_err(|error| format!("{}: {error}", own.display()))?);
            behind.rules.view = Some(MountView::open(helper, &mounts).await?);
        }
        let ran = room::run(&lane, site, place, stop).await;
        let _left = clear(&own);
        ran.map_err(|fault| chain(&fault))
    }

    /// Restores the manifests and lock files of the work, because package managers may rewrite
    /// them. Other files stay, because the user may have changed them in the meantime.
    async fn keep_manifests(&self, site: &GateSite, tree: &TreeId, stop: &CancellationToken) -> Result<(), TreesError> {
        let now = site.trees.take(stop).await?.tree;
        let changed = site.trees.changes(tree, &now, stop).await?.into_iter().map(|change| change.path);
        let written: Vec<String> = changed.filter(|path| names_dependencies(path)).collect();
        if !written.is_empty() {
            site.trees.put_back(tree, Some(&written), stop).await?;
        }
        Ok(())
    }
}

/// Formats a command with its folder, for a message.
fn typed(command: &InstallCommand) -> String {
    let run = command.line();
    if command.folder.is_empty() { format!("`{run}`") } else { format!("`{run}` in `{}`", command.folder) }
}
