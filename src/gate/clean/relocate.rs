//! Absolute paths in copies of Python environments. Programs, path files and editable installs name
//! the folder of the project, so a copy for a room at another path must name that path.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The largest file that is rewritten, in bytes.
const LARGEST: u64 = 1024 * 1024;
/// The file by which an environment is recognized.
const SIGN: &str = "pyvenv.cfg";

/// Replaces the folder `from` by `to` in a copied folder of dependencies: in the programs, path
/// files and editable installs of the folder itself, or of the environments directly in it (`.tox`,
/// `.nox`). Other folders stay as they are.
///
/// # Errors
/// [`io::Error`] if a file cannot be read or written.
pub(super) fn relocate(folder: &Path, from: &Path, to: &Path) -> io::Result<()> {
    let (Some(from), Some(to)) = (from.to_str(), to.to_str()) else { return Ok(()) };
    let environments = if folder.join(SIGN).is_file() { vec![folder.to_owned()] } else { entries(folder) };
    for environment in environments.into_iter().filter(|path| path.join(SIGN).is_file()) {
        for file in naming(&environment) {
            let meta = fs::metadata(&file)?;
            if !meta.is_file() || meta.len() > LARGEST {
                continue;
            }
            // Programs that are not text stay as they are.
            let Ok(text) = String::from_utf8(fs::read(&file)?) else { continue };
            if let Some(text) = replaced(&text, from, to) {
                fs::write(&file, text)?;
            }
        }
    }
    Ok(())
}

/// Returns the files of an environment that may name the folder of the project.
fn naming(environment: &Path) -> impl Iterator<Item = PathBuf> {
    let name = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let libraries = entries(&environment.join("lib")).into_iter().map(|python| python.join("site-packages"));
    let names_paths = move |path: &PathBuf| {
        let name = name(path);
        let is_finder = name.starts_with("__editable__") && name.ends_with(".py");
        is_finder || [".pth", ".egg-link"].iter().any(|ending| name.ends_with(ending))
    };
    let listed = libraries.flat_map(|library| entries(&library)).filter(names_paths);
    entries(&environment.join("bin")).into_iter().chain(listed)
}

/// Returns the entries of a folder without links, because a link could lead out of the copy. A link
/// in the place of the folder has none.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let is_link = |path: &Path| path.symlink_metadata().is_ok_and(|meta| meta.is_symlink());
    let listed = (!is_link(folder)).then(|| fs::read_dir(folder).ok()).flatten();
    let entries = listed.into_iter().flatten().flatten().map(|entry| entry.path());
    entries.filter(|path| !is_link(path)).collect()
}

/// Replaces a path wherever it ends at the end of a name. Returns `None` if the text does not have
/// it.
fn replaced(text: &str, from: &str, to: &str) -> Option<String> {
    let is_whole = |end: usize| !text[end..].starts_with(|c: char| c.is_alphanumeric() || "._-".contains(c));
    let (mut new, mut done) = (String::new(), 0);
    for (start, _) in text.match_indices(from).filter(|(start, _)| is_whole(start + from.len())) {
        new.push_str(&text[done..start]);
        new.push_str(to);
        done = start + from.len();
    }
    (done > 0).then(|| new + &text[done..])
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    #[test]
    fn what_names_the_project_names_the_room_in_a_copied_environment() {
        let dir = crate::test_support::temp_dir();
        let write = |path: &str, text: &[u8]| {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let program = b"#!/p/x/.venv/bin/python\nprint('/p/x', '/p/x2', '/p/x.old')\n";
        for environment in ["one", "many/py311"] {
            write(&format!("{environment}/pyvenv.cfg"), b"home = /usr/bin\n");
            write(&format!("{environment}/bin/check"), program);
            write(&format!("{environment}/bin/compiled"), b"\xff/p/x");
            write(&format!("{environment}/lib/python3.11/site-packages/own.pth"), b"/p/x/src\n");
            write(&format!("{environment}/lib/python3.11/site-packages/other.py"), b"'/p/x'\n");
        }
        write("plain/bin/check", program);
        symlink("../../plain/bin/check", dir.path().join("one/bin/led")).unwrap();
        fs::set_permissions(dir.path().join("one/bin/check"), fs::Permissions::from_mode(0o755)).unwrap();
        for folder in ["one", "many", "plain"] {
            relocate(&dir.path().join(folder), Path::new("/p/x"), Path::new("/room/x")).unwrap();
        }
        let read = |path: &str| fs::read(dir.path().join(path)).unwrap();
        for environment in ["one", "many/py311"] {
            let moved = "#!/room/x/.venv/bin/python\nprint('/room/x', '/p/x2', '/p/x.old')\n";
            assert_eq!(String::from_utf8(read(&format!("{environment}/bin/check"))).unwrap(), moved);
            assert_eq!(read(&format!("{environment}/bin/compiled")), b"\xff/p/x");
            assert_eq!(read(&format!("{environment}/lib/python3.11/site-packages/own.pth")), b"/room/x/src\n");
            assert_eq!(read(&format!("{environment}/lib/python3.11/site-packages/other.py")), b"'/p/x'\n");
        }
        assert_eq!(read("plain/bin/check"), program);
        let mode = fs::metadata(dir.path().join("one/bin/check")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o755);
    }
}
