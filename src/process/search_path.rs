//! The search path of programs that fledge starts for itself while an agent writes in a folder.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// Returns the folders of a search path in which an agent that writes below `root` cannot put a
/// program. These are existing folders with an absolute path that are not in `root`, links
/// followed. All others are left out, including folders that do not exist yet.
pub fn outside(search_path: &str, root: &Path) -> String {
    let root = root.canonicalize().unwrap_or_else(|_| root.to_owned());
    let is_safe = |folder: &&str| {
        let folder = Path::new(folder);
        folder.is_absolute() && folder.canonicalize().is_ok_and(|folder| !folder.starts_with(&root))
    };
    search_path.split(':').filter(is_safe).collect::<Vec<_>>().join(":")
}

/// Returns the file of a program: the first one that can be run under this name in the search path,
/// or the program at this absolute path. Ignores folders with a relative path.
pub fn find_program(name: &str, search_path: &str) -> Option<PathBuf> {
    let runs = |file: &PathBuf| {
        let found = if file.is_absolute() { file.metadata().ok() } else { None };
        found.is_some_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0)
    };
    if name.contains('/') {
        return Some(PathBuf::from(name)).filter(runs);
    }
    std::env::split_paths(search_path).map(|folder| folder.join(name)).find(runs)
}

/// Returns the environment with the search path that [`outside`] returns.
pub fn with_path_outside(env: &[(String, String)], root: &Path) -> Vec<(String, String)> {
    let safe = |(name, value): &(String, String)| {
        let value = if name == "PATH" { outside(value, root) } else { value.clone() };
        (name.clone(), value)
    };
    env.iter().map(safe).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn folders_that_somebody_else_writes_in_are_no_part_of_the_search_path() {
        let home = crate::test_support::temp_dir();
        let at = |name: &str| home.path().join(name).to_string_lossy().into_owned();
        ["w/bin", "bin", "w2"].iter().for_each(|name| fs::create_dir_all(at(name)).unwrap());
        symlink(at("w/bin"), at("link")).unwrap();
        symlink(at("w"), at("root")).unwrap();
        let path = [&at("w/bin"), "", ".", "bin", &at("link"), &at("none"), &at("w2"), &at("bin"), &at("bin/../w/bin")];
        let path = path.join(":");
        let expected = [at("w2"), at("bin")].join(":");
        assert_eq!(outside(&path, &home.path().join("w")), expected);
        assert_eq!(outside(&path, &home.path().join("root")), expected, "a root by another name");
    }
}
