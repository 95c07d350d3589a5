//! Where things of one project and of one run are.

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
        make_safely(&self.path)?; // the frozen gate is in it
        [&self.logs(), &self.outputs()].into_iter().try_for_each(|folder| make_private(folder))
    }

    /// The folder itself.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The run whose folder it is.
    pub fn run(&self) -> RunId {
        RunId::new(self.path.file_name().unwrap_or_default().to_string_lossy())
    }

    /// The report.
    pub fn report(&self) -> PathBuf {
        self.path.join("report.json")
    }

    /// The frozen gate, for whoever takes the run up again.
    pub fn gate(&self) -> PathBuf {
        self.path.join("gate")
    }

    /// The logs of lane steps.
    pub fn logs(&self) -> PathBuf {
        self.path.join("logs")
    }

    /// The full texts of tool results that were cut.
    pub fn outputs(&self) -> PathBuf {
        self.path.join("outputs")
    }

    /// The folder of the project, for [`super::Durations`].
    pub fn project(&self) -> &Path {
        self.path.ancestors().nth(2).unwrap_or(&self.path)
    }

    /// What is too large for the database, by digest.
    pub(super) fn blobs(&self) -> PathBuf {
        self.path.join("blobs")
    }
}

/// The folder of the project at `workspace`, which must be a canonical path: named after it, with the start of a digest of the
/// whole path. A project that is moved is another one.
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
