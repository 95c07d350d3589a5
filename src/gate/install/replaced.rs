//! Finds what an installation puts in the place of something that was installed before the agent:
//! a program or module that the checks may use, from another package than before.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use walkdir::WalkDir;

/// The largest text that is read to tell a package, in bytes.
const LARGEST: u64 = 16 * 1024 * 1024;

/// Returns a line for each replaced thing. `lower` is an installed folder as it was, `upper` holds
/// the changes.
pub(super) fn replaced(lower: &Path, upper: &Path) -> Vec<String> {
    let entries = WalkDir::new(upper).into_iter().flatten();
    let paths: Vec<PathBuf> =
        entries.filter_map(|entry| entry.path().strip_prefix(upper).ok().map(Path::to_owned)).collect();
    let mut told: Vec<String> = paths.iter().filter_map(|path| in_node(lower, upper, path)).collect();
    told.extend(in_python(lower, upper, &paths));
    told.sort();
    told.dedup();
    told
}

/// A program of Node that belongs to another package than before, or a package that became another.
fn in_node(lower: &Path, upper: &Path, path: &Path) -> Option<String> {
    let (was, is) = (lower.join(path), upper.join(path));
    let folder = path.parent()?;
    was.symlink_metadata().ok()?;
    if folder.file_name().is_some_and(|name| name == ".bin") {
        let (before, after) = (owner(&was)?, owner(&is)?);
        return (before != after).then(|| stands_in(path, &before, &after));
    }
    // A package is a folder in `node_modules`, or in a folder `@scope` there.
    let is_link = |path: &Path| path.symlink_metadata().is_ok_and(|meta| meta.is_symlink());
    if is_link(&is) && !is_link(&was) {
        let to = fs::read_link(&is).ok()?;
        return Some(stands_in(path, &path.to_string_lossy(), &to.to_string_lossy()));
    }
    if path.file_name().is_some_and(|name| name == "package.json") {
        let name = |path: &Path| {
            let manifest: serde_json::Value = serde_json::from_slice(&fs::read(path).ok()?).ok()?;
            manifest.get("name")?.as_str().map(ToOwned::to_owned)
        };
        let (before, after) = (name(&was)?, name(&is)?);
        return (before != after).then(|| stands_in(folder, &before, &after));
    }
    None
}

fn stands_in(path: &Path, before: &str, after: &str) -> String {
    format!("`{}` would be of `{after}`, and was of `{before}`", path.display())
}

/// The package that a program of Node belongs to: by the target of its link, or by the last path
/// that its text gives relative to `$basedir`.
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

/// Files of an environment of Python that another distribution brings than before.
fn in_python(lower: &Path, upper: &Path, paths: &[PathBuf]) -> Vec<String> {
    let records: Vec<&PathBuf> =
        paths.iter().filter(|path| path.file_name().is_some_and(|it| it == "RECORD")).collect();
    if records.is_empty() {
        return Vec::new();
    }
    let mut owners: BTreeMap<PathBuf, String> = BTreeMap::new();
    for entry in WalkDir::new(lower).into_iter().flatten().filter(|entry| entry.file_name() == "RECORD") {
        let Ok(path) = entry.path().strip_prefix(lower) else { continue };
        let Some(name) = distribution(path) else { continue };
        owners.extend(files(lower, path).into_iter().map(|file| (file, name.clone())));
    }
    let told = records.into_iter().filter_map(|record| {
        let name = distribution(record)?;
        let other = |file: &PathBuf| owners.get(file).filter(|owner| **owner != name && is_code(file));
        let (file, owner) =
            files(upper, record).into_iter().find_map(|file| Some((file.clone(), other(&file)?.clone())))?;
        Some(stands_in(&file, &owner, &name))
    });
    told.collect()
}

/// Texts that several distributions bring, such as a licence, are no code.
fn is_code(file: &Path) -> bool {
    let is_program = file.parent().and_then(Path::file_name).is_some_and(|name| name == "bin");
    let endings = ["py", "pyc", "so", "pth", "pyd"];
    is_program || file.extension().is_some_and(|ending| endings.iter().any(|it| *it == ending))
}

/// The distribution of a `RECORD`, in the one spelling of its name.
fn distribution(record: &Path) -> Option<String> {
    let folder = record.parent()?.file_name()?.to_str()?.strip_suffix(".dist-info")?;
    let name = folder.split_once('-').map_or(folder, |(name, _)| name);
    Some(name.to_lowercase().replace(['_', '.'], "-"))
}

/// The files that a `RECORD` lists, relative to the environment.
fn files(root: &Path, record: &Path) -> Vec<PathBuf> {
    let at = root.join(record);
    let is_small = at.metadata().is_ok_and(|meta| meta.len() < LARGEST);
    let text = if is_small { fs::read_to_string(&at).unwrap_or_default() } else { String::new() };
    let Some(site) = record.parent().and_then(Path::parent) else { return Vec::new() };
    let listed = text.lines().filter_map(|line| line.rsplitn(3, ',').nth(2)).map(|path| path.trim_matches('"'));
    listed.map(|path| plain(&site.join(path))).collect()
}

/// A path without `..`.
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

    fn file(root: &Path, path: &str, text: &str) {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn link(root: &Path, path: &str, target: &str) {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        symlink(target, path).unwrap();
    }

    #[test]
    fn a_program_of_node_stays_that_of_its_package_and_a_package_stays_itself() {
        let dir = tempfile::tempdir().unwrap();
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
        assert_eq!(replaced(lower, upper), Vec::<String>::new());
        fs::remove_dir_all(upper).unwrap();
        link(upper, ".bin/uvu", "../own/uvu.js");
        link(upper, ".bin/ava", "../@ava/fake/entry.js");
        file(upper, ".bin/tap", "exec node \"$basedir/../.pnpm/own@1.0.0/node_modules/own/tap.js\" \"$@\"");
        file(upper, "expect/package.json", r#"{"name": "evil", "version": "1.0.0"}"#);
        link(upper, "tsup", "../own");
        let wanted = [
            "`.bin/ava` would be of `@ava/fake`, and was of `@ava/cli`",
            "`.bin/tap` would be of `own`, and was of `tap`",
            "`.bin/uvu` would be of `own`, and was of `uvu`",
            "`expect` would be of `evil`, and was of `expect`",
            "`tsup` would be of `../own`, and was of `tsup`",
        ];
        assert_eq!(replaced(lower, upper), wanted);
    }

    #[test]
    fn a_file_of_python_stays_that_of_its_distribution() {
        let dir = tempfile::tempdir().unwrap();
        let (lower, upper) = (&dir.path().join("lower"), &dir.path().join("upper"));
        let record = |root: &Path, name: &str, lines: &str| {
            file(root, &format!("lib/python3.12/site-packages/{name}.dist-info/RECORD"), lines);
        };
        record(lower, "pytest-8.0.0", "pytest/__init__.py,sha256=a,1\n../../../bin/pytest,sha256=b,2\nLICENSE,,\n");
        record(upper, "rich-13.0.0", "rich/__init__.py,sha256=a,1\nLICENSE,,\n\"rich/a,b.py\",,\n");
        record(upper, "pytest-8.1.0", "pytest/__init__.py,sha256=c,1\n../../../bin/pytest,sha256=d,2\n");
        assert_eq!(replaced(lower, upper), Vec::<String>::new());
        record(upper, "evil-1.0", "evil.py,,\n../../../bin/pytest,,\n");
        assert_eq!(replaced(lower, upper), ["`bin/pytest` would be of `evil`, and was of `pytest`"]);
        record(upper, "evil-1.0", "pytest/__init__.py,,\n");
        let module = "`lib/python3.12/site-packages/pytest/__init__.py` would be of `evil`, and was of `pytest`";
        assert_eq!(replaced(lower, upper), [module]);
    }
}
