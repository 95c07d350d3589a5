//! Access rules of a sandbox, one for each path. The rule for the deeper path wins. So a read-only
//! folder may be in a writable one, and a writable one in a hidden one.

use super::bounds::SandboxLimits;
use super::programs::{ProgramNeeds, ProgramSearch};
use super::view::MountView;
use super::{gits, homes, programs};
use crate::process::Variables;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// The access of a program in a sandbox. By default, a path can be read and not written. Devices,
/// other processes, temporary folders and `/run` are private and empty, and homes are hidden.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PathRules {
    /// Folders that it may write.
    pub writable: Vec<PathBuf>,
    /// Paths inside those that it cannot change. It cannot create one that is missing either.
    pub read_only: Vec<PathBuf>,
    /// Folders and files that it does not see.
    pub hidden: Vec<PathBuf>,
    /// Folders that it finds at other paths.
    pub mounts: Vec<Mount>,
    /// True if it reaches the network.
    pub network: bool,
    /// The user's home. In the sandbox it is empty and private, except for toolchains. These can be
    /// read without the credentials in them.
    pub home: Option<PathBuf>,
    /// Limits on what it uses.
    pub limits: SandboxLimits,
    /// The layers over folders that it sees, with bubblewrap.
    pub view: Option<MountView>,
}

/// A folder that appears at another path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// Its real path.
    pub from: PathBuf,
    /// Its path in the sandbox.
    pub at: PathBuf,
    /// True if the program may write it.
    pub writable: bool,
}

/// Access to a path in the sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum PathView {
    /// An empty folder that is private and can be written.
    Empty,
    /// An empty folder or file that cannot be written.
    Masked,
    ReadOnly,
    Writable,
    /// A link to the rule's `from`.
    Link,
}

/// A rule for a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PathRule {
    pub(super) at: PathBuf,
    pub(super) view: PathView,
    /// The content to show at the path, if it is not the real one.
    pub(super) from: Option<PathBuf>,
}

/// Paths that are private to each program in a sandbox.
const PRIVATE: [&str; 5] = ["/tmp", "/var/tmp", "/run", "/var/run", "/home"];
/// Paths that only the operator of the machine needs.
const SECRET: [&str; 18] = [
    "/root",
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/sudoers",
    "/etc/sudoers.d",
    "/etc/ssl/private",
    "/etc/ssh/ssh_host_rsa_key",
    "/etc/ssh/ssh_host_ecdsa_key",
    "/etc/ssh/ssh_host_ed25519_key",
    "/etc/kubernetes",
    "/etc/krb5.keytab",
    "/etc/docker",
    "/var/lib/docker",
    "/var/lib/containerd",
    "/var/lib/kubelet",
    "/var/lib/cloud",
];
/// Paths below `/run` that the lookup of names and programs needs.
const NEEDED: [&str; 5] = [
    "/run/current-system",
    "/run/opengl-driver",
    "/run/systemd/resolve/stub-resolv.conf",
    "/run/systemd/resolve/resolv.conf",
    "/run/resolvconf/resolv.conf",
];

impl PathRules {
    /// Returns the access of a program that works in a folder. It may write there, but not to
    /// `.fledge`, nor to git's data of the folder and of repositories inside.
    pub fn of_workspace(root: &Path) -> Self {
        let own = [root.join(".git"), root.join(".fledge")].into_iter();
        // A mount cannot protect a link, and its target may be anything. So a link gets no rule.
        let mut read_only: Vec<PathBuf> = own.filter(|path| !path.is_symlink()).collect();
        read_only.extend(git_elsewhere(root));
        let whole = whole(root);
        let is_inside = |folder: &PathBuf| folder != root && (folder.starts_with(root) || folder.starts_with(&whole));
        for git in gits::gits_below(root) {
            read_only.extend(gits::elsewhere(&git).filter(is_inside));
            read_only.extend(Some(git).filter(|git| gits::is_kept(git)));
        }
        Self { writable: vec![root.into()], read_only, ..Self::default() }
    }

    /// Returns all rules, those for outer paths first. Folders of the search path, toolchains and
    /// `helper` can be read.
    pub(super) fn rules(&self, env: &Variables, helper: &Path) -> Vec<PathRule> {
        let mut rules: Vec<PathRule> = Vec::new();
        let mut add = |at: &Path, view| rules.push(PathRule { at: at.into(), view, from: None });
        PRIVATE.iter().for_each(|at| add(Path::new(at), PathView::Empty));
        SECRET.iter().for_each(|at| add(Path::new(at), PathView::Masked));
        NEEDED.iter().for_each(|at| add(Path::new(at), PathView::ReadOnly));
        for folder in std::env::split_paths(env.get("PATH").unwrap_or_default()) {
            // A program of a toolchain also needs what is next to its folder.
            for (home, toolchain) in homes::of_program(&folder) {
                add(&home.join(toolchain), PathView::ReadOnly);
                let secret = homes::CREDENTIALS.iter().filter(|at| Path::new(at).starts_with(toolchain));
                secret.for_each(|at| add(&home.join(at), PathView::Masked));
            }
            add(&folder, PathView::ReadOnly);
        }
        for (variable, place) in homes::LED_TO {
            for folder in env.get(variable).into_iter().flat_map(std::env::split_paths) {
                add(&folder, PathView::ReadOnly);
                let secret = homes::CREDENTIALS.iter().filter_map(|at| Path::new(at).strip_prefix(place).ok());
                secret.for_each(|at| add(&folder.join(at), PathView::Masked));
            }
        }
        if let Some(home) = &self.home {
            add(home, PathView::Empty);
            homes::TOOLCHAINS.iter().for_each(|at| add(&home.join(at), PathView::ReadOnly));
            homes::CREDENTIALS.iter().for_each(|at| add(&home.join(at), PathView::Masked));
        }
        let needs = self.needs(env);
        for at in &needs.shown {
            add(at, PathView::ReadOnly);
            programs::SECRETS.iter().map(|name| at.join(name)).for_each(|secret| add(&secret, PathView::Masked));
        }
        self.hidden.iter().for_each(|at| add(at, PathView::Masked));
        add(helper, PathView::ReadOnly);
        self.writable.iter().for_each(|at| add(at, PathView::Writable));
        self.read_only.iter().for_each(|at| add(at, PathView::ReadOnly));
        for Mount { from, at, writable } in &self.mounts {
            let view = if *writable { PathView::Writable } else { PathView::ReadOnly };
            rules.push(PathRule { at: at.clone(), view, from: Some(from.clone()) });
        }
        rules.retain(|rule| rule.at.is_absolute() && rule.at != Path::new("/"));
        rules.iter_mut().for_each(|rule| rule.at = whole(&rule.at));
        // Read access for toolchains must not restrict what may be written.
        let own: Vec<&Path> =
            self.writable.iter().chain(self.mounts.iter().map(|mount| &mount.at)).map(PathBuf::as_path).collect();
        let is_granted = |rule: &PathRule| {
            rule.view == PathView::ReadOnly && !self.read_only.contains(&rule.at) && rule.from.is_none()
        };
        rules.retain(|rule| !is_granted(rule) || !own.iter().any(|own| rule.at.starts_with(own)));
        // Of two rules for one path the later one wins, and those of the caller are the last.
        let mut spoken = HashSet::new();
        let mut rules: Vec<PathRule> = rules.into_iter().rev().filter(|rule| spoken.insert(rule.at.clone())).collect();
        rules.reverse();
        rules.sort_by_key(|rule| rule.at.components().count());
        let links =
            needs.links.into_iter().filter(|(at, _)| rule_for(&rules, at).is_some_and(|it| it.view == PathView::Empty));
        let links: Vec<PathRule> =
            links.map(|(at, target)| PathRule { at, view: PathView::Link, from: Some(target) }).collect();
        rules.extend(links);
        rules.sort_by_key(|rule| rule.at.components().count());
        rules
    }

    /// Returns the hidden paths that the programs of the search path need.
    fn needs(&self, env: &Variables) -> ProgramNeeds {
        let own = self.writable.iter().chain(self.mounts.iter().map(|mount| &mount.at));
        let own: Vec<PathBuf> = own.map(|path| whole(path)).collect();
        let mut search = ProgramSearch::new(self.home.as_deref(), &PRIVATE, &own);
        for folder in std::env::split_paths(env.get("PATH").unwrap_or_default()) {
            search.add_folder(&folder);
        }
        for folder in homes::INSTALLATIONS.iter().filter_map(|name| env.get(name)) {
            search.add_installation(Path::new(folder));
        }
        for home in self.home.iter() {
            homes::version_files(home).for_each(|file| search.add_file(&file));
            homes::trust_links(home).for_each(|link| search.add_link(&link));
            let toolchains = homes::TOOLCHAINS.iter().map(|at| home.join(at)).filter(|at| at.is_symlink());
            toolchains.for_each(|at| search.add_installation(&at));
        }
        search.into_needs()
    }
}

/// Returns git's data outside of a folder that is a linked worktree, and the repository around a
/// folder that is not its top.
fn git_elsewhere(root: &Path) -> Vec<PathBuf> {
    let own = root.join(".git");
    let mut found: Vec<PathBuf> = own.canonicalize().ok().filter(|_| own.is_symlink()).into_iter().collect();
    let line = |path: &Path| std::fs::read_to_string(path).ok().map(|text| text.trim_end().to_owned());
    if own.is_file()
        && let Some(text) = line(&own)
        && let Some(folder) = text.strip_prefix("gitdir: ")
    {
        let folder = root.join(folder);
        found.extend(line(&folder.join("commondir")).map(|common| folder.join(common)));
        found.push(folder);
    }
    found.retain(|path| path.join("HEAD").is_file()); // otherwise it is not a folder of git
    // To git an empty `.git` is not a repository either: git searches further up.
    let is_git = |folder: &&Path| folder.join(".git").is_file() || folder.join(".git/HEAD").symlink_metadata().is_ok();
    if !is_git(&root)
        && let Some(top) = root.ancestors().skip(1).find(is_git)
    {
        found.push(top.to_owned());
        if top.join(".git").is_file() {
            found.extend(git_elsewhere(top));
        }
    }
    found.retain(|path| path.parent().is_some() && path.exists());
    found
}

/// Returns the path without links, if it exists. Otherwise only its folder is resolved.
fn whole(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => parent.canonicalize().map_or_else(|_| path.into(), |parent| parent.join(name)),
        _ => path.into(),
    })
}

/// Returns the rule for a path.
pub(super) fn rule_for<'r>(rules: &'r [PathRule], path: &Path) -> Option<&'r PathRule> {
    rules.iter().rfind(|rule| path.starts_with(&rule.at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_toolchain_in_another_users_home_is_readable_without_its_credentials() {
        let env =
            Variables::new([("PATH".to_owned(), "/home/b/.rustup/toolchains/x/bin:/home/b/.cargo/bin".to_owned())]);
        let rules = PathRules::default().rules(&env, Path::new("/usr/bin/fledge"));
        let view = |path: &str| rule_for(&rules, Path::new(path)).map(|rule| rule.view);
        assert_eq!(view("/home/b/.rustup/toolchains/x/lib/a.so"), Some(PathView::ReadOnly));
        assert_eq!(view("/home/b/.cargo/credentials.toml"), Some(PathView::Masked));
        assert_eq!(view("/home/b/.ssh/id"), Some(PathView::Empty));
    }

    #[test]
    fn a_toolchain_that_a_variable_leads_to_is_seen_without_its_credentials() {
        let env = [("CARGO_HOME", "/opt/cargo"), ("GOPATH", "/home/u/one:/home/u/two")];
        let env = Variables::new(env.map(|(name, value)| (name.to_owned(), value.to_owned())));
        let rules = PathRules::default().rules(&env, Path::new("/usr/bin/fledge"));
        let view = |path: &str| rule_for(&rules, Path::new(path)).map(|rule| rule.view);
        for (path, expected) in [
            ("/opt/cargo/registry", Some(PathView::ReadOnly)),
            ("/opt/cargo/credentials.toml", Some(PathView::Masked)),
            ("/opt/cargo/credentials", Some(PathView::Masked)),
            ("/home/u/one/pkg", Some(PathView::ReadOnly)),
            ("/home/u/two/pkg", Some(PathView::ReadOnly)),
        ] {
            assert_eq!(view(path), expected, "{path}");
        }
    }

    #[test]
    fn the_deeper_rule_holds_and_of_two_for_one_path_what_the_caller_says() {
        let path_rules = PathRules {
            writable: vec!["/home/u/w".into(), "/root".into()],
            read_only: vec!["/home/u/w/.git".into()],
            home: Some("/home/u".into()),
            ..PathRules::default()
        };
        let env = Variables::new([("PATH".to_owned(), "/home/u/w/bin:/home/u/bin:bin".to_owned())]);
        let rules = path_rules.rules(&env, Path::new("/home/u/.cargo/bin/fledge"));
        let view = |path: &str| rule_for(&rules, Path::new(path)).map(|rule| rule.view);
        for (path, expected) in [
            ("/usr/bin", None),
            ("/home/other", Some(PathView::Empty)),
            ("/home/u/diary", Some(PathView::Empty)),
            ("/home/u/.cargo/registry", Some(PathView::ReadOnly)),
            ("/home/u/.cargo/credentials.toml", Some(PathView::Masked)),
            ("/home/u/bin/tool", Some(PathView::ReadOnly)),
            ("/home/u/w/a", Some(PathView::Writable)),
            ("/home/u/w/bin/tool", Some(PathView::Writable)),
            ("/home/u/w/.git/config", Some(PathView::ReadOnly)),
            ("/root/x", Some(PathView::Writable)),
        ] {
            assert_eq!(view(path), expected, "{path}");
        }
    }

    #[test]
    fn of_a_linked_worktree_what_git_keeps_elsewhere_stays_as_it_is() {
        let folder = crate::test_support::temp_dir();
        let [own, kept] = ["tree", "main/.git/worktrees/tree"].map(|name| folder.path().join(name));
        std::fs::create_dir(&own).unwrap();
        std::fs::create_dir_all(&kept).unwrap();
        std::fs::write(own.join(".git"), format!("gitdir: {}\n", kept.display())).unwrap();
        std::fs::write(kept.join("commondir"), "../..\n").unwrap();
        for folder in [&kept, &kept.join("../..")] {
            std::fs::write(folder.join("HEAD"), "ref: refs/heads/main\n").unwrap();
        }
        let path_rules = PathRules::of_workspace(&own);
        let expected = vec![own.join(".git"), own.join(".fledge"), kept.join("../.."), kept];
        assert_eq!((path_rules.read_only, path_rules.writable), (expected, vec![own]));
    }

    #[test]
    fn a_repository_around_the_workspace_is_read_only_despite_an_empty_git_folder() {
        let folder = crate::test_support::temp_dir();
        let [above, own] = ["a", "a/b"].map(|name| folder.path().join(name));
        [above.join(".git"), own.join(".git")].iter().for_each(|git| std::fs::create_dir_all(git).unwrap());
        std::fs::write(above.join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
        assert_eq!(PathRules::of_workspace(&own).read_only, [own.join(".git"), own.join(".fledge"), above]);
    }

    #[test]
    fn what_git_keeps_of_repositories_inside_stays_as_it_is() {
        let folder = crate::test_support::temp_dir();
        let root = folder.path();
        ["lib", "kept.git", "a/b/.git", "empty/.git"]
            .iter()
            .for_each(|name| std::fs::create_dir_all(root.join(name)).unwrap());
        ["kept.git", "a/b/.git"]
            .iter()
            .for_each(|name| std::fs::write(root.join(name).join("HEAD"), "ref: refs/heads/main\n").unwrap());
        std::fs::write(root.join("lib/.git"), "gitdir: ../kept.git\n").unwrap();
        let expected = [".git", ".fledge", "a/b/.git", "kept.git", "lib/.git"].map(|name| root.join(name));
        assert_eq!(PathRules::of_workspace(root).read_only, expected);
    }

    #[test]
    fn a_link_in_the_place_of_what_is_kept_opens_nothing_but_a_repository() {
        let folder = crate::test_support::temp_dir();
        let [own, state, kept] = ["tree", "state", "kept.git"].map(|name| folder.path().join(name));
        [&own, &state, &kept].iter().for_each(|folder| std::fs::create_dir(folder).unwrap());
        std::fs::write(kept.join("HEAD"), "ref: refs/heads/main\n").unwrap();
        let read_only = |git: &Path| {
            let _not_yet = std::fs::remove_file(own.join(".git"));
            std::os::unix::fs::symlink(git, own.join(".git")).unwrap();
            PathRules::of_workspace(&own).read_only
        };
        assert_eq!(read_only(&state), [own.join(".fledge")]);
        assert_eq!(read_only(&kept), [own.join(".fledge"), kept.canonicalize().unwrap()]);
        std::os::unix::fs::symlink(&state, own.join(".fledge")).unwrap();
        assert_eq!(read_only(&state), [""; 0].map(PathBuf::from));
    }
}
