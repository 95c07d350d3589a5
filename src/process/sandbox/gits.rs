//! Places inside a folder where git keeps its data: repositories below it, submodules, linked
//! worktrees. Git runs commands from their configuration for any user who works there, so programs
//! in a sandbox cannot write them.

use std::path::{Component, Path, PathBuf};

/// Returns every `.git` below a folder, of any kind and at any depth, except the folder's own. The
/// paths are sorted, and absolute if `root` is. Links are not followed.
pub fn gits_below(root: &Path) -> Vec<PathBuf> {
    let (mut found, mut ahead) = (Vec::new(), vec![root.to_owned()]);
    while let Some(folder) = ahead.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            if entry.file_name() == ".git" {
                found.extend((folder != root).then(|| entry.path()));
            } else if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                ahead.push(entry.path());
            }
        }
    }
    found.sort();
    found
}

/// Returns the folder that a `.git` leads to if it is not a folder itself. `says` is the text of
/// the file, or the target of the link. The folder may not exist.
pub fn git_led_to(git: &Path, says: &str) -> Option<PathBuf> {
    let mut place = git.parent()?.to_owned();
    for part in Path::new(says.trim_end_matches(['\n', '\r'])).components() {
        match part {
            Component::RootDir => place = PathBuf::from("/"),
            Component::ParentDir => drop(place.pop()),
            Component::Normal(name) => place.push(name),
            Component::CurDir | Component::Prefix(_) => {}
        }
    }
    Some(place)
}

/// Returns whether a mount can protect a `.git`, and needs to. A mount cannot protect a link, and
/// an empty folder is not a repository.
pub(super) fn is_kept(git: &Path) -> bool {
    let is_empty = || std::fs::read_dir(git).is_ok_and(|mut entries| entries.next().is_none());
    !git.is_symlink() && !is_empty()
}

/// Returns the folder that a `.git` file or link leads to now, if that is a repository.
pub(super) fn elsewhere(git: &Path) -> Option<PathBuf> {
    let kind = git.symlink_metadata().ok()?;
    if kind.is_symlink() {
        return git.canonicalize().ok().filter(|folder| folder.join("HEAD").is_file());
    }
    if !kind.is_file() || kind.len() > 64 * 1024 {
        return None;
    }
    let text = std::fs::read_to_string(git).ok()?;
    git_led_to(git, text.strip_prefix("gitdir: ")?).filter(|folder| folder.join("HEAD").is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_git_below_a_folder_is_found_and_where_it_leads_to() {
        let folder = crate::test_support::temp_dir();
        let root = folder.path();
        for name in [".git/modules/lib", "a/b/.git", "lib", "node_modules/x/.git/deeper/.git", "linked"] {
            std::fs::create_dir_all(root.join(name)).unwrap();
        }
        std::fs::write(root.join(".git/modules/lib/HEAD"), "ref: refs/heads/main\n").unwrap();
        std::fs::write(root.join("lib/.git"), "gitdir: ../.git/modules/lib\n").unwrap();
        std::os::unix::fs::symlink("../a", root.join("linked/.git")).unwrap();
        std::os::unix::fs::symlink(".", root.join("round")).unwrap();
        let expected = ["a/b/.git", "lib/.git", "linked/.git", "node_modules/x/.git"].map(|name| root.join(name));
        assert_eq!(gits_below(root), expected);
        assert_eq!(elsewhere(&root.join("lib/.git")), Some(root.join(".git/modules/lib")));
        assert_eq!(elsewhere(&root.join("linked/.git")), None);
        std::fs::write(root.join("a/HEAD"), "ref: refs/heads/main\n").unwrap();
        assert_eq!(elsewhere(&root.join("linked/.git")), Some(root.join("a").canonicalize().unwrap()));
        assert_eq!(git_led_to(&root.join("linked/.git"), "../a"), Some(root.join("a")));
        assert_eq!(git_led_to(&root.join("lib/.git"), "/x/./y\n"), Some("/x/y".into()));
    }
}
