//! Installed dependencies without layers: copies from before the agent, and their return into the
//! workspace for lanes that run there.

use super::{InstalledPackages, digest, reached};
use crate::gate::GateSite;
use crate::gate::clean::{RoomError, clear, copy_tree};
use crate::gate::install::Installation;
use crate::lane::Lane;
use crate::process;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use tokio_util::sync::CancellationToken;

/// The ending of a folder that is being copied.
const NEW: &str = ".fledge-new";

impl InstalledPackages {
    /// Returns the folders, each with its copy below `kept` or in the installation for the work.
    pub(in crate::gate) fn copies<'i>(
        &'i self,
        kept: &Path,
        installation: Option<&'i Installation>,
    ) -> BTreeMap<&'i String, PathBuf> {
        let before = self.folders.iter().map(|path| (path, kept.join(path)));
        before.chain(installation.into_iter().flat_map(Installation::whole)).collect()
    }

    /// Makes the folders in the workspace equal to their copies for a lane that runs there without
    /// layers. Returns the folders if they differed. A lane with a setup fills them itself.
    ///
    /// # Errors
    /// [`RoomError`] if a folder cannot be copied or replaced.
    pub(in crate::gate) async fn restore(
        &self,
        lane: &Lane,
        (site, installation): (&GateSite, Option<&Installation>),
        stop: &CancellationToken,
    ) -> Result<Vec<String>, RoomError> {
        // A worktree has none of these folders.
        if site.has_layers || site.root != site.origin || !lane.setup.is_empty() || self.folders.is_empty() {
            return Ok(Vec::new());
        }
        let is_installed = installation.is_some_and(|it| it.whole().next().is_some());
        if !is_installed && digest(&site.root, &self.folders) == self.digest {
            return Ok(Vec::new());
        }
        let mut restored = Vec::new();
        for (path, from) in self.copies(&site.ignored, installation) {
            let Some(at) = reached(&site.root, path).filter(|_| from.is_dir()) else { continue };
            let new = at.with_file_name(format!("{}{NEW}", at.file_name().unwrap_or_default().to_string_lossy()));
            let io = |source| RoomError::Io { path: at.clone(), source };
            clear(&new).map_err(io)?;
            at.parent().map_or(Ok(()), fs::create_dir_all).map_err(io)?;
            let copied = copy_tree(&from, &new, &process::with_path_outside(&site.env, &site.root), stop).await;
            let copied = copied.map_err(|why| RoomError::Cache { path: path.clone(), why });
            if copied.is_err() {
                let _left = clear(&new);
            }
            copied?;
            clear(&at).and_then(|()| fs::rename(&new, &at)).map_err(io)?;
            restored.push(path.clone());
        }
        Ok(restored)
    }
}
