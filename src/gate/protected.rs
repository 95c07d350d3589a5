//! What an agent may not change: the rules, and the seal that finds a change of what was there when the gate was frozen.

use crate::lane::{Item, Lane};
use crate::store;
use crate::verdict::Finding;
use crate::workspace::pattern::PatternError;
use crate::workspace::{ProtectedRule, Protection};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use walkdir::{DirEntry, WalkDir};

/// What defines the gate in every project. Patterns match paths that do not exist yet, too.
const BUILT_IN: [(&str, &str); 13] = [
    ("/lanes", "it defines the gate"),
    ("/specs", "it says what the code must do"),
    ("/fledge.yaml", "it configures the gate"),
    ("/fledge.local.yaml", "it configures the gate"),
    ("/fledge.toml", "it defines the gate"),
    ("/.fledge", "it configures the gate"),
    ("/.github", "it defines the continuous integration"),
    ("/.gitlab-ci.yml", "it defines the continuous integration"),
    ("/.gitlab", "it defines the continuous integration"),
    ("/.circleci", "it defines the continuous integration"),
    ("/.ci", "it defines the continuous integration"),
    ("/Jenkinsfile", "it defines the continuous integration"),
    ("/azure-pipelines.yml", "it defines the continuous integration"),
];

/// Folders that are never looked into: git's own data, and what builds leave behind.
const NEVER_LOOKED_INTO: [&str; 3] = [".git", "target", "node_modules"];
/// Protected files larger than this are compared by digest alone and cannot be put back.
const KEPT_WHOLE: u64 = 4 * 1024 * 1024;

/// The built-in rules, files that the lanes' commands name, and what the project and the task add; `allow_edit` opens paths
/// again.
///
/// # Errors
/// The first pattern that is none.
pub(super) fn protection(
    lanes: &[Lane],
    root: &Path,
    protect: &[String],
    allow_edit: &[String],
) -> Result<Protection, PatternError> {
    let rule = |pattern: String, why: &str| ProtectedRule { pattern, why: why.into() };
    let built_in = BUILT_IN.iter().map(|(pattern, why)| rule((*pattern).into(), why));
    let named = scripts(lanes, root).into_iter();
    let named = named.map(|path| rule(format!("/{}", globset::escape(&path)), "a step of the gate names it"));
    let added = protect.iter().map(|pattern| rule(pattern.clone(), "the task or the project says so"));
    Protection::new(built_in.chain(named).chain(added), allow_edit)
}

/// Words of the lanes' commands that name a file of the workspace.
fn scripts(lanes: &[Lane], root: &Path) -> Vec<String> {
    let steps = lanes.iter().flat_map(|lane| &lane.steps).flat_map(|item| match item {
        Item::Step(step) => std::slice::from_ref(step),
        Item::Parallel(steps) => steps.as_slice(),
    });
    let mut found = Vec::new();
    for step in steps {
        let splits = |c: char| c.is_whitespace() || ";|&()<>\"'`=".contains(c);
        for word in step.run.split(splits) {
            let word = word.trim_start_matches("./");
            let path = step
                .dir
                .as_deref()
                .map_or_else(|| word.to_owned(), |dir| format!("{}/{word}", dir.trim_end_matches('/')));
            let inside = !word.is_empty() && !word.starts_with('/') && !path.split('/').any(|part| part == "..");
            if inside && root.join(&path).is_file() && !found.contains(&path) {
                found.push(path);
            }
        }
    }
    found
}

/// Protected files as they were when the gate was frozen.
#[derive(Debug)]
pub struct Seal {
    root: PathBuf,
    protection: Protection,
    files: BTreeMap<String, Sealed>,
}

#[derive(Debug, PartialEq, Eq)]
struct Sealed {
    digest: String,
    bytes: Option<Vec<u8>>,
}

impl Seal {
    /// Reads every protected file of the workspace.
    ///
    /// # Errors
    /// When one cannot be read.
    pub fn take(root: &Path, protection: Protection) -> io::Result<Self> {
        let files = survey(root, &protection)?;
        Ok(Self { root: root.to_owned(), protection, files })
    }

    /// The rules.
    pub fn protection(&self) -> &Protection {
        &self.protection
    }

    /// What differs from the seal, sorted by path; put back where `restore` says so.
    ///
    /// # Errors
    /// When a file cannot be read or put back.
    pub fn inspect(&self, restore: bool) -> io::Result<Vec<Finding>> {
        let present = survey(&self.root, &self.protection)?;
        let mut findings = Vec::new();
        for (path, was) in &self.files {
            match present.get(path) {
                Some(is) if is.digest == was.digest => {}
                Some(_) => findings.push(self.finding(path, "changed")),
                None => findings.push(self.finding(path, "removed")),
            }
        }
        findings.extend(
            present.keys().filter(|path| !self.files.contains_key(*path)).map(|path| self.finding(path, "added")),
        );
        findings.sort();
        if restore {
            findings.iter().try_for_each(|finding| self.restore(&finding.path))?;
        }
        Ok(findings)
    }

    fn finding(&self, path: &str, change: &str) -> Finding {
        let rule = self.protection.rule(path).map_or("", |rule| rule.why.as_str());
        Finding { path: path.into(), change: change.into(), rule: rule.into() }
    }

    /// Puts one path back. What stands in its place, or in the place of a folder on the way, is removed and never followed.
    fn restore(&self, path: &str) -> io::Result<()> {
        let mut place = self.root.clone();
        let parts: Vec<&str> = path.split('/').collect();
        for (depth, part) in parts.iter().enumerate() {
            place.push(part);
            let is_last = depth + 1 == parts.len();
            match std::fs::symlink_metadata(&place) {
                Ok(meta) if meta.is_dir() && !is_last => {}
                Ok(meta) if meta.is_dir() => std::fs::remove_dir_all(&place)?,
                Ok(_) => std::fs::remove_file(&place)?,
                Err(error) if error.kind() == io::ErrorKind::NotFound => break,
                Err(error) => return Err(error),
            }
        }
        let place = self.root.join(path);
        let Some(was) = self.files.get(path) else { return Ok(()) };
        let too_large = || io::Error::other(format!("{path} is too large to be kept, so it cannot be put back"));
        let bytes = was.bytes.as_ref().ok_or_else(too_large)?;
        if let Some(folder) = place.parent() {
            std::fs::create_dir_all(folder)?;
        }
        let (mode, content) = (bytes[0], &bytes[1..]);
        std::fs::write(&place, content)?;
        set_executable(&place, mode == 1)
    }
}

/// Every protected file or link, by path.
fn survey(root: &Path, protection: &Protection) -> io::Result<BTreeMap<String, Sealed>> {
    let enter = |entry: &DirEntry| {
        !(entry.depth() > 0
            && entry.file_type().is_dir()
            && NEVER_LOOKED_INTO.iter().any(|name| entry.file_name() == *name))
    };
    let mut files = BTreeMap::new();
    for entry in WalkDir::new(root).follow_links(false).into_iter().filter_entry(enter) {
        let entry = entry.map_err(io::Error::other)?;
        let Some(path) = entry.path().strip_prefix(root).ok().and_then(Path::to_str) else { continue };
        if !entry.file_type().is_dir() && protection.rule(path).is_some() {
            files.insert(path.to_owned(), read(&entry)?);
        }
    }
    Ok(files)
}

/// One file's digest, and its bytes after a first one that says whether it is executable. A link counts by where it leads.
fn read(entry: &DirEntry) -> io::Result<Sealed> {
    if entry.file_type().is_symlink() {
        let leads_to = std::fs::read_link(entry.path())?;
        return Ok(Sealed { digest: format!("link {}", leads_to.display()), bytes: None });
    }
    if !entry.file_type().is_file() {
        return Ok(Sealed { digest: "special file".into(), bytes: None });
    }
    let mut bytes = vec![u8::from(is_executable(entry))];
    bytes.extend(std::fs::read(entry.path())?);
    let digest = store::sha256(&bytes);
    let keep = bytes.len() as u64 <= KEPT_WHOLE;
    Ok(Sealed { digest, bytes: keep.then_some(bytes) })
}

fn is_executable(entry: &DirEntry) -> bool {
    use std::os::unix::fs::PermissionsExt;
    entry.metadata().is_ok_and(|meta| meta.permissions().mode() & 0o100 != 0)
}

fn set_executable(path: &Path, executable: bool) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(if executable { 0o755 } else { 0o644 }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn sealed(allow_edit: &[String]) -> (tempfile::TempDir, Seal) {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("lanes")).unwrap();
        fs::create_dir_all(dir.path().join("src")).unwrap();
        fs::write(dir.path().join("lanes/verify.yaml"), "steps: []").unwrap();
        fs::write(dir.path().join("src/lib.rs"), "code").unwrap();
        let protection = protection(&[], dir.path(), &["fixtures/**".into()], allow_edit).unwrap();
        let seal = Seal::take(dir.path(), protection).unwrap();
        (dir, seal)
    }

    fn changes(seal: &Seal, restore: bool) -> Vec<(String, String)> {
        seal.inspect(restore).unwrap().into_iter().map(|finding| (finding.path, finding.change)).collect()
    }

    #[test]
    fn changed_removed_and_added_protected_files_are_found_and_put_back() {
        let (dir, seal) = sealed(&[]);
        fs::write(dir.path().join("src/lib.rs"), "other code").unwrap();
        assert_eq!(changes(&seal, true), []);
        fs::write(dir.path().join("lanes/verify.yaml"), "steps: [true]").unwrap();
        fs::write(dir.path().join("lanes/extra.yaml"), "x").unwrap();
        fs::create_dir(dir.path().join("fixtures")).unwrap();
        fs::write(dir.path().join("fixtures/a"), "x").unwrap();
        let expected = [("fixtures/a", "added"), ("lanes/extra.yaml", "added"), ("lanes/verify.yaml", "changed")];
        assert_eq!(changes(&seal, true), expected.map(|(path, change)| (path.to_owned(), change.to_owned())));
        assert_eq!(changes(&seal, true), []);
        fs::remove_file(dir.path().join("lanes/verify.yaml")).unwrap();
        assert_eq!(changes(&seal, true), [("lanes/verify.yaml".to_owned(), "removed".to_owned())]);
        assert_eq!(fs::read_to_string(dir.path().join("lanes/verify.yaml")).unwrap(), "steps: []");
    }

    #[test]
    fn a_link_in_the_place_of_a_protected_folder_is_found_and_never_written_through() {
        let (dir, seal) = sealed(&[]);
        let outside = tempfile::tempdir().unwrap();
        fs::remove_dir_all(dir.path().join("lanes")).unwrap();
        std::os::unix::fs::symlink(outside.path(), dir.path().join("lanes")).unwrap();
        let found = changes(&seal, true);
        assert!(found.contains(&("lanes".to_owned(), "added".to_owned())), "{found:?}");
        assert_eq!(changes(&seal, true), []);
        assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
        assert!(dir.path().join("lanes").symlink_metadata().unwrap().is_dir());
    }

    #[test]
    fn allow_edit_opens_a_path() {
        let (dir, seal) = sealed(&["lanes/verify.yaml".into()]);
        fs::write(dir.path().join("lanes/verify.yaml"), "x").unwrap();
        assert_eq!(changes(&seal, true), []);
    }
}
