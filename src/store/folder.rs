//! The folders of projects and runs.

use super::StoreError;
use super::files::{make_private, make_safely, sha256};
use crate::id::RunId;
use std::path::{Path, PathBuf};

/// The folder of one run: `<state>/<project>/runs/<id>/`, readable by its owner alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunDir {
    path: PathBuf,
}

impl RunDir {
    pub(super) fn new(project: &Path, run: &RunId) -> Self {
        Self { path: project.join("runs").join(run.as_str()) }
    }

    pub(super) fn make(&self) -> Result<(), StoreError> {
        make_safely(&self.path)?; // the folder contains the frozen gate
        [&self.logs(), &self.outputs()].into_iter().try_for_each(|folder| make_private(folder))
    }

    /// Returns the path of the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the run of this folder.
    pub fn run(&self) -> RunId {
        RunId::new(self.path.file_name().unwrap_or_default().to_string_lossy())
    }

    /// Returns the path of the report.
    pub fn report(&self) -> PathBuf {
        self.path.join("report.json")
    }

    /// Returns the folder of the frozen gate, for resuming the run.
    pub fn gate(&self) -> PathBuf {
        self.path.join("gate")
    }

    /// Returns the folder of the logs of lane steps.
    pub fn logs(&self) -> PathBuf {
        self.path.join("logs")
    }

    /// Returns the folder of the full texts of tool results that were cut.
    pub fn outputs(&self) -> PathBuf {
        self.path.join("outputs")
    }

    /// Returns the folder of the project, for [`super::Durations`].
    pub fn project(&self) -> &Path {
        self.path.ancestors().nth(2).unwrap_or(&self.path)
    }

    /// Returns the folder of data that is too large for the database, named by digest.
    pub(super) fn blobs(&self) -> PathBuf {
        self.path.join("blobs")
    }
}

/// Returns the folder of the project at `workspace`, which must be a canonical path. The folder's
/// name is that of the workspace, with the start of a digest of the whole path. So a project that
/// is moved counts as another one.
pub fn project_dir(state: &Path, workspace: &Path) -> PathBuf {
    let name = workspace.file_name().map_or_else(|| "root".into(), |name| name.to_string_lossy().into_owned());
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' || c == '_' { c } else { '-' };
    let stem: String = name.chars().take(40).map(plain).collect();
    state.join(format!("{stem}-{}", &sha256(workspace.as_os_str().as_encoded_bytes())[..12]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_projects_of_the_same_name_have_different_folders() {
        let folders = ["/a/app", "/b/app"].map(|path| project_dir(Path::new("/s"), Path::new(path)));
        assert!(folders.iter().all(|folder| folder.display().to_string().starts_with("/s/app-")));
        assert_ne!(folders[0], folders[1]);
    }
}
