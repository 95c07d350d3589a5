//! Detection of programs and modules from before the agent that an installation replaces with those
//! of another package. The checks may use them.

mod others;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use walkdir::WalkDir;

/// The maximum size of a file that is read to identify a package, in bytes.
const LARGEST: u64 = 16 * 1024 * 1024;

/// Reads a file smaller than [`LARGEST`].
fn read_small_file(path: &Path) -> Option<Vec<u8>> {
    path.metadata().ok().filter(|meta| meta.is_file() && meta.len() < LARGEST)?;
    fs::read(path).ok()
}

/// Returns a line for each replaced program, package or module. `lower` is an installed folder
/// before the changes, and `upper` holds the changes. `outer` holds the `node_modules` in the
/// folders around it, before the changes.
pub(super) fn replaced(lower: &Path, upper: &Path, outer: &[PathBuf]) -> Vec<String> {
    let entries = WalkDir::new(upper).into_iter().flatten();
    let paths: Vec<PathBuf> =
        entries.filter_map(|entry| entry.path().strip_prefix(upper).ok().map(Path::to_owned)).collect();
    if lower.join("autoload.php").exists() {
        return others::in_composer(lower, upper, &paths);
    }
    let mut reported: Vec<String> = paths.iter().filter_map(|path| in_node(lower, upper, path)).collect();
    reported.extend(paths.iter().filter_map(|path| nearer(upper, path, outer)));
    reported.extend(in_python(lower, upper, &paths));
    reported.extend(others::in_dart(lower, upper));
    reported.sort();
    reported.dedup();
    reported
}

/// Returns a line if a Node program belongs to another package than before, or if a package became
/// another one.
fn in_node(lower: &Path, upper: &Path, path: &Path) -> Option<String> {
    let (was, is) = (lower.join(path), upper.join(path));
    let folder = path.parent()?;
    let name = path.file_name()?.to_str()?;
    if folder.file_name().is_some_and(|name| name == ".bin") {
        if let Some(target) = strange_program(lower, upper, path) {
            return Some(format!("`{}` leads to `{target}`, which its package does not declare", path.display()));
        }
        let after = owner(&is)?;
        return match was.symlink_metadata() {
            Ok(_) => owner(&was).filter(|before| *before != after).map(|before| stands_in(path, &before, &after)),
            // In scripts, the program precedes a program of the system.
            Err(_) => (is_of_system(name) && after != name).then(|| stands_in(path, "the system", &after)),
        };
    }
    was.symlink_metadata().ok()?;
    // A package is a folder in `node_modules`, or in a folder `@scope` there.
    if is_link(&is) {
        let package = |path: &Path| {
            let to = fs::read_link(path).ok()?.to_string_lossy().into_owned();
            Some(to.rsplit_once("node_modules/").map_or(to.clone(), |(_, package)| package.to_owned()))
        };
        let before = if is_link(&was) { package(&was)? } else { path.to_string_lossy().into_owned() };
        let after = package(&is)?;
        return (before != after).then(|| stands_in(path, &before, &after));
    }
    let is_package = folder
        .components()
        .rev()
        .nth(1)
        .is_none_or(|at| at.as_os_str() == "node_modules" || at.as_os_str().to_string_lossy().starts_with('@'));
    if name == "package.json" && is_package {
        let (before, after) = (package_name(&was)?, package_name(&is)?);
        return (before != after).then(|| stands_in(folder, &before, &after));
    }
    None
}

/// Returns a line if a package in a `node_modules` hides a different package of its name farther
/// out.
fn nearer(upper: &Path, path: &Path, outer: &[PathBuf]) -> Option<String> {
    let is_package = match path.components().count() {
        1 => !path.to_string_lossy().starts_with(['.', '@']),
        2 => path.to_string_lossy().starts_with('@'),
        _ => false,
    };
    let was = outer.iter().map(|outer| outer.join(path)).find(|was| is_package && was.exists())?;
    let name = |at: &Path| package_name(&at.join("package.json"));
    let is = upper.join(path);
    let (before, after) = (name(&was).unwrap_or_default(), name(&is).unwrap_or_default());
    let leaves = is_link(&is) && fs::read_link(&is).is_ok_and(|to| !to.to_string_lossy().contains("node_modules/"));
    (before != after || (leaves && !is_link(&was))).then(|| {
        let after = if leaves { "the work" } else { after.as_str() };
        stands_in(path, &before, after)
    })
}

/// Returns the target of a link in `.bin`, if the package around the target does not declare it as
/// this program.
fn strange_program(lower: &Path, upper: &Path, path: &Path) -> Option<String> {
    let target = fs::read_link(upper.join(path)).ok()?;
    let target = plain(&path.parent()?.join(target));
    let owner = owner(&upper.join(path))?;
    let modules = path.parent()?.parent()?;
    let package = modules.join(&owner);
    let own = target.strip_prefix(&package).ok()?;
    let manifest = [upper, lower].iter().find_map(|root| fs::read(root.join(&package).join("package.json")).ok())?;
    let manifest: serde_json::Value = serde_json::from_slice(&manifest).ok()?;
    let program = path.file_name()?.to_str()?;
    let named: Vec<PathBuf> = match manifest.get("bin")? {
        serde_json::Value::String(file) if owner.rsplit('/').next() == Some(program) => vec![plain(Path::new(file))],
        bin => bin
            .get(program)
            .and_then(serde_json::Value::as_str)
            .map(|file| plain(Path::new(file)))
            .into_iter()
            .collect(),
    };
    (!named.iter().any(|file| file == own)).then(|| target.to_string_lossy().into_owned())
}

/// Returns whether the system has a program of this name that npm did not install.
fn is_of_system(name: &str) -> bool {
    ["/bin", "/usr/bin", "/sbin", "/usr/sbin"].iter().any(|folder| {
        let real = Path::new(folder).join(name).canonicalize();
        real.is_ok_and(|real| !real.to_string_lossy().contains("node"))
    })
}

fn is_link(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|meta| meta.is_symlink())
}

fn package_name(manifest: &Path) -> Option<String> {
    let manifest: serde_json::Value = serde_json::from_slice(&fs::read(manifest).ok()?).ok()?;
    manifest.get("name")?.as_str().map(ToOwned::to_owned)
}

fn stands_in(path: &Path, before: &str, after: &str) -> String {
    format!("`{}` would come from `{after}` instead of `{before}`", path.display())
}

/// Returns the package of a Node program, by the target of its link or by the last `$basedir` path
/// in its text.
fn owner(program: &Path) -> Option<String> {
    let meta = program.symlink_metadata().ok()?;
    let target = if meta.is_symlink() {
        fs::read_link(program).ok()?.to_string_lossy().into_owned()
    } else {
        let text = String::from_utf8(fs::read(program).ok().filter(|_| meta.len() < LARGEST)?).ok()?;
        text.rsplit_once("$basedir/").map(|(_, rest)| rest.to_owned())?
    };
    let target = target.rsplit_once("node_modules/").map_or(target.as_str(), |(_, rest)| rest);
    let mut parts = target.split('/').skip_while(|part| matches!(*part, ".." | "."));
    let first = parts.next()?;
    Some(if first.starts_with('@') { format!("{first}/{}", parts.next()?) } else { first.to_owned() })
}

/// Returns a line for each changed code file of a Python environment, unless the same distribution
/// provides it before and after.
fn in_python(lower: &Path, upper: &Path, paths: &[PathBuf]) -> Vec<String> {
    let is_environment = |entry: walkdir::DirEntry| entry.file_name() == "pyvenv.cfg";
    if !WalkDir::new(lower).max_depth(2).into_iter().flatten().any(is_environment) {
        return Vec::new();
    }
    let before = owners(lower);
    let after = owners(upper);
    let reported = paths.iter().filter(|path| is_code(path)).filter_map(|path| {
        let (was, is) = (lower.join(path), upper.join(path));
        was.symlink_metadata().ok().filter(|meta| !meta.is_dir())?;
        let (owner, brings) = (before.get(path), after.get(path));
        if (owner.is_some() && owner == brings) || is_same(&was, &is) {
            return None;
        }
        let what = path.display();
        Some(match (owner, brings) {
            (Some(owner), Some(brings)) => stands_in(path, owner, brings),
            (None, Some(brings)) => format!("`{what}` would be changed by `{brings}`"),
            (_, None) => format!("`{what}` would be changed by a package that does not list it"),
        })
    });
    reported.collect()
}

/// Returns the distribution that provides each file, by the records in an environment.
fn owners(root: &Path) -> BTreeMap<PathBuf, String> {
    let mut owners = BTreeMap::new();
    for entry in WalkDir::new(root).into_iter().flatten().filter(|entry| entry.file_name() == "RECORD") {
        let Ok(path) = entry.path().strip_prefix(root) else { continue };
        let Some(name) = distribution(path) else { continue };
        owners.extend(files(root, path).into_iter().map(|file| (file, name.clone())));
    }
    owners
}

/// Returns whether two files, or links, have the same content. An unreadable file was removed and
/// replaces nothing, so it counts as the same.
fn is_same(was: &Path, is: &Path) -> bool {
    match (fs::read_link(was), fs::read_link(is)) {
        (Ok(was), Ok(is)) => was == is,
        (Err(_), Err(_)) => is.is_dir() || fs::read(is).map_or(true, |is| fs::read(was).is_ok_and(|was| was == is)),
        _ => false,
    }
}

/// Returns whether Python may run a file. Other files do not matter, because several distributions
/// may provide the same text, such as a licence.
fn is_code(file: &Path) -> bool {
    let is_program = file.parent().and_then(Path::file_name).is_some_and(|name| name == "bin");
    let endings = ["py", "so", "pth", "pyd", "cfg"];
    is_program || file.extension().is_some_and(|ending| endings.iter().any(|it| *it == ending))
}

/// Returns the distribution of a `RECORD`, in the normalized spelling of its name.
fn distribution(record: &Path) -> Option<String> {
    let folder = record.parent()?.file_name()?.to_str()?.strip_suffix(".dist-info")?;
    let name = folder.split_once('-').map_or(folder, |(name, _)| name);
    Some(name.to_lowercase().replace(['_', '.'], "-"))
}

/// Returns the files that a `RECORD` lists, relative to the environment.
fn files(root: &Path, record: &Path) -> Vec<PathBuf> {
    let at = root.join(record);
    let is_small = at.metadata().is_ok_and(|meta| meta.len() < LARGEST);
    let text = if is_small { fs::read_to_string(&at).unwrap_or_default() } else { String::new() };
    let Some(site) = record.parent().and_then(Path::parent) else { return Vec::new() };
    let listed = text.lines().filter_map(|line| line.rsplitn(3, ',').nth(2)).map(|path| path.trim_matches('"'));
    listed.map(|path| plain(&site.join(path))).collect()
}

/// Returns a path with each `..` resolved.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            std::path::Component::ParentDir => drop(plain.pop()),
            part => plain.push(part),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    pub(super) fn file(root: &Path, path: &str, text: &str) {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(super) fn link(root: &Path, path: &str, target: &str) {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let _was_there = fs::remove_file(&path);
        symlink(target, path).unwrap();
    }

    #[test]
    fn a_program_of_node_stays_that_of_its_package_and_a_package_stays_itself() {
        let dir = crate::test_support::temp_dir();
        let (lower, upper) = (&dir.path().join("lower"), &dir.path().join("upper"));
        link(lower, ".bin/uvu", "../uvu/bin.js");
        link(lower, ".bin/ava", "../@ava/cli/entry.js");
        file(lower, ".bin/tap", "exec node \"$basedir/../.pnpm/tap@1.0.0/node_modules/tap/bin/run.js\" \"$@\"");
        file(lower, "expect/package.json", r#"{"name": "expect", "version": "1.0.0"}"#);
        file(lower, "tsup/package.json", r#"{"name": "tsup"}"#);
        // Updates, and new programs and packages.
        link(upper, ".bin/uvu", "../uvu/dist/bin.js");
        file(upper, ".bin/tap", "exec node \"$basedir/../.pnpm/tap@2.0.0/node_modules/tap/bin/main.js\" \"$@\"");
        file(upper, "expect/package.json", r#"{"name": "expect", "version": "2.0.0"}"#);
        link(upper, ".bin/new", "../new/bin.js");
        let starts = "exec node \"$basedir/../@s/fmt/bin/fmt\" \"$@\"";
        file(
            lower,
            ".bin/fmt",
            &format!("export NODE_PATH=\"/p/node_modules/.pnpm/node_modules:$NODE_PATH\"\n{starts}"),
        );
        file(upper, ".bin/fmt", starts);
        link(upper, "own", "../own");
        link(lower, "deep", ".pnpm/deep@1.0.0/node_modules/deep");
        link(upper, "deep", ".pnpm/deep@2.0.0/node_modules/deep");
        file(lower, "expect/test/package.json", r#"{"name": "a"}"#);
        file(upper, "expect/test/package.json", r#"{"name": "b"}"#);
        assert_eq!(replaced(lower, upper, &[]), Vec::<String>::new());
        fs::remove_dir_all(upper).unwrap();
        link(upper, ".bin/uvu", "../own/uvu.js");
        link(upper, ".bin/ava", "../@ava/fake/entry.js");
        file(upper, ".bin/tap", "exec node \"$basedir/../.pnpm/own@1.0.0/node_modules/own/tap.js\" \"$@\"");
        file(upper, "expect/package.json", r#"{"name": "evil", "version": "1.0.0"}"#);
        link(upper, "tsup", "../own");
        link(upper, "deep", ".pnpm/other@1.0.0/node_modules/other");
        link(upper, ".bin/sh", "../own/sh.js");
        file(upper, "uvu/package.json", r#"{"name": "uvu", "bin": {"uvu": "./bin.js"}}"#);
        link(upper, ".bin/uvu-more", "../uvu/lib/x.js");
        let wanted = [
            "`.bin/ava` would come from `@ava/fake` instead of `@ava/cli`",
            "`.bin/sh` would come from `own` instead of `the system`",
            "`.bin/tap` would come from `own` instead of `tap`",
            "`.bin/uvu-more` leads to `uvu/lib/x.js`, which its package does not declare",
            "`.bin/uvu` would come from `own` instead of `uvu`",
            "`deep` would come from `other` instead of `deep`",
            "`expect` would come from `evil` instead of `expect`",
            "`tsup` would come from `../own` instead of `tsup`",
        ];
        assert_eq!(replaced(lower, upper, &[]), wanted);
    }

    #[test]
    fn a_package_does_not_cover_one_of_its_name_farther_out() {
        let dir = crate::test_support::temp_dir();
        let (outer, upper) = (&dir.path().join("outer"), &dir.path().join("upper"));
        for name in ["tape", "@s/fmt"] {
            file(outer, &format!("{name}/package.json"), &format!(r#"{{"name": "{name}", "version": "1.0.0"}}"#));
            file(upper, &format!("{name}/package.json"), &format!(r#"{{"name": "{name}", "version": "2.0.0"}}"#));
        }
        let reported = || replaced(&dir.path().join("none"), upper, std::slice::from_ref(outer));
        assert_eq!(reported(), Vec::<String>::new(), "another version of the same package");
        file(upper, "tape/package.json", r#"{"name": "own"}"#);
        fs::remove_dir_all(upper.join("@s/fmt")).unwrap();
        link(upper, "@s/fmt", "../../fmt");
        assert_eq!(
            reported(),
            [
                "`@s/fmt` would come from `the work` instead of `@s/fmt`",
                "`tape` would come from `own` instead of `tape`"
            ]
        );
    }

    #[test]
    fn a_file_of_python_stays_that_of_its_distribution() {
        let dir = crate::test_support::temp_dir();
        let (lower, upper) = (&dir.path().join("lower"), &dir.path().join("upper"));
        let site = "lib/python3.12/site-packages";
        let record =
            |root: &Path, name: &str, lines: &str| file(root, &format!("{site}/{name}.dist-info/RECORD"), lines);
        file(lower, "pyvenv.cfg", "home = /usr");
        file(lower, "bin/python3", "a program");
        for (root, text) in [(lower, "8.0"), (upper, "8.1")] {
            file(root, &format!("{site}/pytest/__init__.py"), text);
            file(root, "bin/pytest", text);
            file(root, &format!("{site}/google/__init__.py"), "the same in all that bring it");
        }
        record(lower, "pytest-8.0.0", "pytest/__init__.py,sha256=a,1\n../../../bin/pytest,sha256=b,2\nLICENSE,,\n");
        record(lower, "google_a-1.0", "google/__init__.py,,\n");
        record(upper, "google_b-1.0", "google/__init__.py,,\n");
        record(upper, "rich-13.0.0", "rich/__init__.py,sha256=a,1\nLICENSE,,\n\"rich/a,b.py\",,\n");
        record(upper, "pytest-8.1.0", "pytest/__init__.py,sha256=c,1\n../../../bin/pytest,sha256=d,2\n");
        assert_eq!(replaced(lower, upper, &[]), Vec::<String>::new());
        file(upper, "bin/python3", "another program");
        record(upper, "pytest-8.1.0", "pytest/__init__.py,sha256=c,1\n");
        record(upper, "evil-1.0", "evil.py,,\n../../../bin/pytest,,\n");
        let python = "`bin/python3` would be changed by a package that does not list it";
        assert_eq!(replaced(lower, upper, &[]), ["`bin/pytest` would come from `evil` instead of `pytest`", python]);
        record(upper, "evil-1.0", "../../../bin/python3,,\n../../../bin/pytest,,\n");
        record(upper, "pytest-8.1.0", "");
        let module = format!("`{site}/pytest/__init__.py` would be changed by a package that does not list it");
        assert!(replaced(lower, upper, &[]).contains(&module), "{:?}", replaced(lower, upper, &[]));
    }
}
