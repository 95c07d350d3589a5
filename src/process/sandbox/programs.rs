//! Programs of the search path whose files are in a home, which a sandbox hides. The result names
//! the links that lead to each program, and the folders that the program needs.

use super::homes::{TOOLCHAINS, holds_credentials};
use super::scripts::started;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Component, Path, PathBuf};

/// The maximum number of links that are followed for one path, as in the kernel.
const MOST_LINKS: usize = 40;
/// The maximum number of programs that are followed from one to the next: a link to a script, the
/// script's interpreter, the interpreter of a virtual environment.
const MOST_HOPS: usize = 6;
/// The maximum number of entries to look at in one folder.
const MOST_ENTRIES: usize = 2000;
/// Folders of the system that have no links into a home.
const SYSTEM: [&str; 4] = ["/bin", "/sbin", "/usr/bin", "/usr/sbin"];
/// Folders in a home that hold more than one installation, so none of them is shown as a whole.
const SHARED: [&str; 11] = [
    ".local",
    ".local/share",
    ".local/state",
    ".config",
    ".cache",
    ".var",
    "Documents",
    "Desktop",
    "Downloads",
    "Library",
    "snap",
];
/// Neighbours of a folder of programs that identify an installation.
const NEIGHBOURS: [&str; 12] = [
    "lib",
    "lib64",
    "libexec",
    "share",
    "include",
    "pkg",
    "jmods",
    "versions",
    "installs",
    "packages",
    "node_modules",
    "pyvenv.cfg",
];
/// Files with credentials in an installation.
pub(super) const SECRETS: [&str; 5] = [".env", ".npmrc", ".pypirc", ".netrc", ".git-credentials"];

/// Links to make and paths to show, so that a sandbox has the programs.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ProgramNeeds {
    /// Links in hidden places, with their targets.
    pub(super) links: BTreeMap<PathBuf, PathBuf>,
    /// Folders and files, without links.
    pub(super) shown: BTreeSet<PathBuf>,
}

/// A search for the paths that programs need.
pub(super) struct ProgramSearch<'a> {
    /// Folders that a sandbox hides, without links.
    hidden: Vec<PathBuf>,
    /// Homes, without links.
    homes: Vec<PathBuf>,
    /// Folders in which an agent can write, without links. Links in these folders are not followed.
    writable: &'a [PathBuf],
    needs: ProgramNeeds,
    /// Programs that the search has visited.
    seen: BTreeSet<PathBuf>,
}

impl<'a> ProgramSearch<'a> {
    /// Starts a search. `hidden` are the folders that a sandbox hides, in addition to the homes.
    pub(super) fn new(home: Option<&Path>, hidden: &[&str], writable: &'a [PathBuf]) -> Self {
        let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.into());
        let homes: Vec<PathBuf> = home.map(real).into_iter().chain([PathBuf::from("/root")]).collect();
        let hidden = hidden.iter().map(|path| real(Path::new(path))).chain(homes.iter().cloned()).collect();
        Self { hidden, homes, writable, needs: ProgramNeeds::default(), seen: BTreeSet::new() }
    }

    /// Returns the result.
    pub(super) fn into_needs(self) -> ProgramNeeds {
        self.needs
    }

    /// Adds a folder of the search path with the programs in it.
    pub(super) fn add_folder(&mut self, folder: &Path) {
        let Some(real) = self.follow(folder).filter(|real| real.is_dir()) else { return };
        if SYSTEM.iter().any(|system| real == Path::new(system)) || self.is_writable(&real) {
            return;
        }
        let is_hidden = self.is_hidden(&real);
        if is_hidden && self.depth(&real) == 0 {
            return; // a whole home
        }
        if is_hidden {
            self.needs.shown.insert(real.clone());
            if let Some(whole) = real.parent().filter(|whole| is_installation(whole, &real) && self.may_show(whole)) {
                self.show(whole.to_owned());
            }
        }
        let has_scripts = is_hidden && !self.is_in_toolchain(&real);
        for entry in fs::read_dir(&real).into_iter().flatten().flatten().take(MOST_ENTRIES) {
            if entry.file_type().is_ok_and(|kind| kind.is_symlink()) {
                self.add_program(&entry.path(), MOST_HOPS);
            } else if has_scripts {
                started(&entry.path(), &self.homes).iter().for_each(|next| self.add_program(next, MOST_HOPS));
            }
        }
    }

    /// Adds a folder that a variable names, such as `JAVA_HOME`.
    pub(super) fn add_installation(&mut self, folder: &Path) {
        if let Some(real) = self.follow(folder).filter(|real| real.is_dir() && self.may_show(real)) {
            self.show(real);
        }
    }

    /// Adds a file of the home that selects a version of a program.
    pub(super) fn add_file(&mut self, file: &Path) {
        if let Some(real) = self.follow(file)
            && self.is_hidden(&real)
            && self.depth(&real) > 0
            && !holds_credentials(&real)
        {
            self.needs.shown.insert(real);
        }
    }

    /// Adds the links on the way to a target, and shows nothing more of the target.
    pub(super) fn add_link(&mut self, link: &Path) {
        self.follow(link);
    }

    /// Adds a program, what its file needs, and the programs that it starts.
    fn add_program(&mut self, path: &Path, hops: usize) {
        let Some(real) = self.follow(path).filter(|real| !self.is_writable(real)) else { return };
        let runs = |real: &Path| real.metadata().is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0);
        if hops == 0 || !self.is_hidden(&real) || !runs(&real) || holds_credentials(&real) {
            return;
        }
        if !self.seen.insert(real.clone()) {
            return;
        }
        match self.whole(&real) {
            Some(whole) => self.show(whole),
            None => drop(self.needs.shown.insert(real.clone())),
        }
        for next in started(&real, &self.homes) {
            self.add_program(&next, hops - 1);
        }
    }

    fn show(&mut self, folder: PathBuf) {
        if self.needs.shown.insert(folder.clone()) && folder.join("pyvenv.cfg").is_file() {
            for python in ["python", "python3"] {
                self.add_program(&folder.join("bin").join(python), MOST_HOPS / 2);
            }
        }
    }

    /// Returns the folder with everything that a program needs, if one can be found.
    fn whole(&self, real: &Path) -> Option<PathBuf> {
        let above = || real.ancestors().skip(1).take_while(|folder| self.is_hidden(folder));
        let is_modules = |folder: &&Path| folder.file_name().is_some_and(|name| name == "node_modules");
        let modules = above().filter(is_modules).last();
        let package = || above().find(|folder| folder.join("package.json").is_file());
        let prefix = || {
            let bin = real.parent()?;
            let prefix = bin.parent()?;
            (is_installation(prefix, bin) || self.depth(prefix) > 1).then_some(prefix)
        };
        let beside = || real.parent().filter(|folder| self.depth(folder) > 1);
        let all = [modules, package(), prefix(), beside()];
        all.into_iter().flatten().find(|folder| self.may_show(folder)).map(Path::to_owned)
    }

    /// Returns whether a folder can be shown whole: it is hidden, is not a home, and contains no
    /// credentials.
    fn may_show(&self, folder: &Path) -> bool {
        let is_shared = SHARED.iter().any(|name| self.homes.iter().any(|home| folder == home.join(name)));
        self.is_hidden(folder)
            && self.depth(folder) > 0
            && !is_shared
            && !holds_credentials(folder)
            && !self.hidden.iter().any(|hidden| hidden.starts_with(folder))
            && !self.writable.iter().any(|own| own.starts_with(folder))
    }

    /// Returns the number of folders from the home, or another hidden folder, down to this one.
    fn depth(&self, folder: &Path) -> usize {
        let below = self.hidden.iter().filter_map(|hidden| folder.strip_prefix(hidden).ok());
        below.map(|below| below.components().count()).min().unwrap_or(0)
    }

    fn is_hidden(&self, path: &Path) -> bool {
        self.hidden.iter().any(|hidden| path.starts_with(hidden))
    }

    fn is_writable(&self, path: &Path) -> bool {
        self.writable.iter().any(|own| path.starts_with(own))
    }

    /// Returns whether a folder is in a toolchain, which is shown with all of its scripts.
    /// `.local/bin` does not count: it holds links and wrappers to anything.
    fn is_in_toolchain(&self, folder: &Path) -> bool {
        let toolchains = TOOLCHAINS.iter().filter(|name| **name != ".local/bin");
        toolchains.into_iter().any(|name| self.homes.iter().any(|home| folder.starts_with(home.join(name))))
    }

    /// Resolves a path, and records the links that a sandbox hides. `None` if the path leads
    /// nowhere, or if an agent could have made a link on the way.
    fn follow(&mut self, path: &Path) -> Option<PathBuf> {
        let mut rest: Vec<OsString> = Vec::new();
        let push = |rest: &mut Vec<OsString>, path: &Path| {
            rest.extend(path.components().rev().filter_map(|part| match part {
                Component::Normal(name) => Some(name.to_owned()),
                Component::ParentDir => Some("..".into()),
                Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
            }));
        };
        let (mut real, mut links) = (PathBuf::from("/"), 0);
        push(&mut rest, path.is_absolute().then_some(path)?);
        while let Some(part) = rest.pop() {
            if part == ".." {
                real.pop();
                continue;
            }
            let at = real.join(&part);
            let Ok(target) = fs::read_link(&at) else {
                real = at;
                continue;
            };
            links += 1;
            if links > MOST_LINKS || self.is_writable(&at) {
                return None;
            }
            if target.is_absolute() {
                real = PathBuf::from("/");
            }
            push(&mut rest, &target);
            if self.is_hidden(&at) {
                self.needs.links.insert(at, target);
            }
        }
        real.exists().then_some(real)
    }
}

/// Returns whether a folder of programs is part of an installation: `~/jdk/bin` of `~/jdk`.
fn is_installation(whole: &Path, programs: &Path) -> bool {
    let is_bin =
        programs.file_name().is_some_and(|name| ["bin", "sbin", "shims", "libexec"].iter().any(|it| name == *it));
    is_bin && NEIGHBOURS.iter().any(|name| whole.join(name).exists())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    struct Home {
        _folder: tempfile::TempDir,
        root: PathBuf,
    }

    impl Home {
        fn new() -> Self {
            let folder = crate::test_support::temp_dir();
            let real = folder.path().canonicalize().unwrap();
            Self { _folder: folder, root: real }
        }

        fn program(&self, path: &str, text: &str) {
            let at = self.root.join(path);
            fs::create_dir_all(at.parent().unwrap()).unwrap();
            fs::write(&at, text).unwrap();
            fs::set_permissions(at, fs::Permissions::from_mode(0o755)).unwrap();
        }

        fn link(&self, path: &str, target: &str) {
            let at = self.root.join(path);
            fs::create_dir_all(at.parent().unwrap()).unwrap();
            let target = target.strip_prefix("~/").map_or_else(|| target.into(), |below| self.root.join(below));
            symlink(target, at).unwrap();
        }

        /// Returns the needs of a folder's programs: links, and shown paths except the folder
        /// itself.
        fn needs(&self, folder: &str) -> (Vec<String>, Vec<String>) {
            let own = [self.root.join("work")];
            let mut search = ProgramSearch::new(Some(&self.root), &[], &own);
            search.add_folder(&self.root.join(folder));
            let needs = search.into_needs();
            let text = |path: &Path| path.strip_prefix(&self.root).unwrap_or(path).to_str().unwrap().to_owned();
            let shown = needs.shown.iter().map(|path| text(path)).filter(|path| path != folder);
            (needs.links.keys().map(|path| text(path)).collect(), shown.collect())
        }
    }

    #[test]
    fn a_link_leads_to_what_its_program_needs_and_to_no_more() {
        let home = Home::new();
        for (link, to) in [("tool", "apps/tool/bin/tool"), ("lone", "lone/x"), ("own", "own"), ("key", ".aws/sso/x")] {
            home.program(to, "");
            home.link(&format!("bin/{link}"), &format!("~/{to}"));
        }
        fs::create_dir_all(home.root.join("apps/data/bin")).unwrap();
        fs::write(home.root.join("apps/data/bin/x"), "").unwrap();
        home.link("bin/data", "~/apps/data/bin/x");
        assert_eq!(home.needs("bin").1, ["apps/tool", "lone/x", "own"]);
    }

    #[test]
    fn each_link_on_the_way_to_a_program_is_noted() {
        let home = Home::new();
        home.program("apps/v2/bin/tool", "");
        home.link("apps/current", "v2");
        home.link("bin/tool", "../apps/current/bin/tool");
        home.link("node", "apps/v2");
        assert_eq!(home.needs("bin"), (vec!["apps/current".into(), "bin/tool".into()], vec!["apps/v2".into()]));
        let (links, shown) = home.needs("node/bin");
        assert_eq!((links, shown), (vec!["node".to_owned()], vec!["apps/v2/bin".to_owned()]));
    }

    #[test]
    fn an_interpreter_and_what_a_wrapper_becomes_are_followed() {
        let home = Home::new();
        let python = home.root.join("venvs/black/bin/python");
        home.program("venvs/black/bin/black", &format!("#!{}\nimport black\n", python.display()));
        home.program("pythons/3.13/bin/python3.13", "");
        home.link("venvs/black/bin/python", "~/pythons/3.13/bin/python3.13");
        fs::write(home.root.join("venvs/black/pyvenv.cfg"), "").unwrap();
        home.link("bin/black", "~/venvs/black/bin/black");
        home.program("apps/deep/run", "");
        home.program("bin/wrapped", "#!/bin/sh\nexec \"$HOME/apps/deep/run\" \"$@\"\n");
        home.program("apps/last/run", "");
        home.program("bin/last", "#!/usr/bin/env bash\n# starts it\nX=1 \"$HOME/apps/last/run\" \"$@\"\nexit $?\n");
        home.program("apps/early/run", "");
        home.program("bin/early", "#!/bin/sh\n$HOME/apps/early/run\necho done\n");
        let (links, shown) = home.needs("bin");
        assert_eq!(links, ["bin/black", "venvs/black/bin/python"]);
        assert_eq!(shown, ["apps/deep", "apps/last", "pythons/3.13", "venvs/black"]);
    }

    #[test]
    fn a_package_of_node_comes_with_its_neighbours() {
        let home = Home::new();
        home.program("prefix/lib/node_modules/tool/dist/cli/index.js", "#!/usr/bin/env node\n");
        home.link("prefix/bin/tool", "../lib/node_modules/tool/dist/cli/index.js");
        home.program("source/dist/cli/index.js", "#!/usr/bin/env node\n");
        fs::write(home.root.join("source/package.json"), "{}").unwrap();
        home.link("prefix/bin/linked", "~/source/dist/cli/index.js");
        let (_, shown) = home.needs("prefix/bin");
        assert_eq!(shown, ["prefix", "prefix/lib/node_modules", "source"]);
    }

    #[test]
    fn a_link_that_an_agent_can_make_shows_nothing() {
        let home = Home::new();
        home.program("private/bin/x", "");
        home.link("work/bin/x", "~/private/bin/x");
        assert_eq!(home.needs("work/bin"), (Vec::new(), Vec::new()));
        home.link("bin/x", "~/work/bin/x");
        assert_eq!(home.needs("bin").1, Vec::<String>::new());
    }
}
