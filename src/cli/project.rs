//! The project of a command: the nearest folder with lanes or a configuration, from the folder of
//! `-C` upwards.

use super::failure::CliError;
use super::paint::{self, Tone};
use crate::config::EnvironmentLayer;
use crate::lane_files;
use crate::verdict::shell_word;
use anyhow::{Context, anyhow};
use clap::{ArgMatches, Args, Command, FromArgMatches};
use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// The name of the option in the program's arguments.
const OPTION: &str = "workspace";
/// The mode bits of a folder such as `/tmp`: everyone may write, and remove only their own files.
const SHARED: u32 = 0o1002;

/// The option `-C` of the program. Each verb inherits the option, so none defines it again.
#[derive(Debug, Clone)]
pub(super) struct ProjectArguments {
    workspace: PathBuf,
}

impl FromArgMatches for ProjectArguments {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        Ok(Self::new(matches.get_one(OPTION).cloned().unwrap_or_else(|| PathBuf::from("."))))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for ProjectArguments {
    fn augment_args(command: Command) -> Command {
        command
    }

    fn augment_args_for_update(command: Command) -> Command {
        command
    }
}

impl ProjectArguments {
    pub(super) fn new(workspace: PathBuf) -> Self {
        Self { workspace }
    }

    /// Returns the folder of `-C`.
    ///
    /// # Errors
    /// When the folder does not exist.
    pub(super) fn folder(&self) -> Result<PathBuf, CliError> {
        let shown = self.workspace.display();
        match self.workspace.canonicalize() {
            Ok(folder) if folder.is_dir() => Ok(folder),
            Ok(_) => {
                let error = anyhow!("{shown} is a file, not a folder");
                Err(CliError::input(error).hint("-C names the folder of the project, or a folder in it"))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err(CliError::no_file("folder", &self.workspace).or_hint("-C names the folder of the project"))
            }
            Err(error) => Err(error).with_context(|| format!("cannot use the folder {shown}")).map_err(CliError::input),
        }
    }

    /// Returns the project's root. Prints it on standard error if it is neither the folder of `-C`
    /// nor the current folder.
    ///
    /// # Errors
    /// When the folder of `-C` does not exist.
    pub(super) fn root(&self, environment: &EnvironmentLayer) -> Result<PathBuf, CliError> {
        let folder = self.folder()?;
        let root = root_of(&folder, environment.get("HOME").map(Path::new));
        if root != folder && Path::new(".").canonicalize().is_ok_and(|current| current != root) {
            paint::line(&[(Tone::Faint, "project: "), (Tone::Plain, &paint::one_line(&root.display().to_string()))]);
        }
        Ok(root)
    }

    /// Returns the project's root for messages about a failure; without one, the path as written.
    pub(super) fn root_or_name(&self, environment: &EnvironmentLayer) -> PathBuf {
        let home = environment.get("HOME").map(Path::new);
        self.folder().map_or_else(|_| self.workspace.clone(), |folder| root_of(&folder, home))
    }
}

/// Returns the root of the project that a folder belongs to. It is the nearest folder with lanes, a
/// configuration or a repository, else the folder itself. The search ends below the user's home
/// folder. `folder` is a canonical path.
pub(super) fn root_of(folder: &Path, home: Option<&Path>) -> PathBuf {
    let owner = folder.metadata().map(|about| about.uid()).ok();
    let home = home.and_then(|home| home.canonicalize().ok());
    // Other users must not be able to put their lanes above a project.
    let is_own = |above: &&Path| {
        let is_safe = |about: Metadata| Some(about.uid()) == owner && about.mode() & SHARED != SHARED;
        *above == folder || (home.as_deref() != Some(*above) && above.metadata().is_ok_and(is_safe))
    };
    for above in folder.ancestors().take_while(is_own) {
        if lane_files::has_configuration(above) || above.join(".git").symlink_metadata().is_ok() {
            return above.to_owned();
        }
    }
    folder.to_owned()
}

/// Returns the command that commits these files of a project, for the current folder.
pub(super) fn adding(root: &Path, files: &[impl AsRef<str>]) -> String {
    format!("`{}`", typed_at(root, &commit_command(files)))
}

/// Returns the command that commits these files, for their own folder. Names the files if there are
/// few with plain names.
pub(super) fn commit_command(files: &[impl AsRef<str>]) -> String {
    const NAMED: usize = 8;
    let is_plain = |file: &str| file.chars().all(|char| char.is_ascii_alphanumeric() || "-_./".contains(char));
    let files: Vec<&str> = files.iter().map(AsRef::as_ref).collect();
    let are_named = !files.is_empty() && files.len() <= NAMED && files.iter().all(|file| is_plain(file));
    let what = if are_named { files.join(" ") } else { "-A".to_owned() };
    let is_own = |file: &&str| ["lanes/", "tasks/", "fledge."].iter().any(|start| file.starts_with(start));
    let message = if !files.is_empty() && files.iter().all(is_own) { "Add fledge" } else { "Save work" };
    format!("git add {what} && git commit -m '{message}'")
}

/// Returns a command for the root of a project as one types it in the current folder.
pub(super) fn typed_at(root: &Path, command: &str) -> String {
    if is_here(root) {
        command.to_owned()
    } else {
        format!("cd {} && {command}", shell_word(&root.display().to_string()))
    }
}

/// Returns true if a folder is the current one.
pub(super) fn is_here(folder: &Path) -> bool {
    Path::new(".").canonicalize().ok() == folder.canonicalize().ok()
}

/// Returns true if a folder is in a git repository.
pub(super) fn has_repository(folder: &Path) -> bool {
    folder.ancestors().any(|above| above.join(".git").symlink_metadata().is_ok())
}

/// Returns git's name in a command for the current folder that works on the repository at `root`.
pub(super) fn git_at(root: &Path) -> String {
    if is_here(root) { "git".to_owned() } else { format!("git -C {}", shell_word(&root.display().to_string())) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    /// Each row: the existing files, the folder where the search begins, and the root.
    const ROOTS: [(&[&str], &str, &str); 12] = [
        (&["lanes/verify.yaml", "src/x"], "src", ""),
        (&["lanes/verify.yml", "a/b/c/x"], "a/b/c", ""),
        (&["fledge.yaml", "src/x"], "src", ""),
        (&["fledge.local.yaml", "src/x"], "src", ""),
        (&["fledge.toml", "src/x"], "src", ""),
        (&[".fledge/lanes/it.toml", "src/x"], "src", ""),
        (&[".git/HEAD", "src/x"], "src", ""),
        (&["lanes/verify.yaml", "part/lanes/verify.yaml", "part/src/x"], "part/src", "part"),
        (&["lanes/verify.yaml", "part/.git", "part/src/x"], "part/src", "part"),
        (&["lanes/verify.yaml"], "lanes", ""),
        (&[".git/HEAD", "src/lanes/bowling.rs", "src/x"], "src", ""),
        (&["src/x"], "src", "src"),
    ];

    #[test]
    fn the_root_is_the_nearest_folder_with_lanes_a_configuration_or_a_repository() {
        for (files, from, root) in ROOTS {
            let place = crate::test_support::temp_dir();
            let top = place.path().canonicalize().unwrap();
            for file in files {
                fs::create_dir_all(top.join(file).parent().unwrap()).unwrap();
                fs::write(top.join(file), "").unwrap();
            }
            assert_eq!(root_of(&top.join(from), None), top.join(root), "{files:?} from {from}");
        }
    }

    #[test]
    fn a_shared_folder_and_the_home_folder_are_above_no_project() {
        let place = crate::test_support::temp_dir();
        let top = place.path().canonicalize().unwrap();
        fs::create_dir(top.join("src")).unwrap();
        fs::write(top.join("fledge.yaml"), "").unwrap();
        assert_eq!(root_of(&top.join("src"), None), top);
        assert_eq!(root_of(&top.join("src"), Some(&top)), top.join("src"));
        assert_eq!(root_of(&top, Some(&top)), top);
        fs::set_permissions(&top, fs::Permissions::from_mode(0o1777)).unwrap();
        assert_eq!(root_of(&top.join("src"), None), top.join("src"));
        assert_eq!(root_of(&top, None), top);
    }
}
