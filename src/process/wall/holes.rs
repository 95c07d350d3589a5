//! What a wall lets through, as rules for paths. Of two rules the one for the deeper path holds, so that a read-only folder may lie in a
//! writable one, and that in a hidden one.

use super::bounds::WallLimits;
use super::programs::{Needs, Search};
use super::view::View;
use super::{gits, homes, programs};
use crate::process::Variables;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// What a program behind a wall may see and do. What is not named can be read and not written, but for devices, other processes, temporary
/// folders and `/run`, which are its own and empty, and homes, which it does not see.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Holes {
    /// Folders that it may write.
    pub writable: Vec<PathBuf>,
    /// What stays as it is inside of those. A path that is missing cannot be made either.
    pub read_only: Vec<PathBuf>,
    /// Folders and files that it does not see.
    pub hidden: Vec<PathBuf>,
    /// Folders that it finds elsewhere than they are.
    pub mounts: Vec<Mount>,
    /// Whether it reaches the network.
    pub network: bool,
    /// The user's home: empty inside and private, but for toolchains, which can be read without the credentials in them.
    pub home: Option<PathBuf>,
    /// What it may use up.
    pub limits: WallLimits,
    /// The layers over folders that it sees, behind bubblewrap.
    pub view: Option<View>,
}

/// A folder that is found elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// Where it is.
    pub from: PathBuf,
    /// Where it is found.
    pub at: PathBuf,
    /// Whether it may be written.
    pub writable: bool,
}

/// How a path is found inside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Sight {
    /// An empty folder that is private and can be written.
    Empty,
    /// An empty folder or file that stays so.
    Masked,
    ReadOnly,
    Writable,
    /// A link, to what the rule calls `from`.
    Link,
}

/// A rule for a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Rule {
    pub(super) at: PathBuf,
    pub(super) sight: Sight,
    /// What stands there, where it is something else than is there anyway.
    pub(super) from: Option<PathBuf>,
}

/// What everybody has for themselves inside.
const PRIVATE: [&str; 5] = ["/tmp", "/var/tmp", "/run", "/var/run", "/home"];
/// What only the operator has business with.
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
/// What names and programs are looked up by, below `/run`.
const NEEDED: [&str; 5] = [
    "/run/current-system",
    "/run/opengl-driver",
    "/run/systemd/resolve/stub-resolv.conf",
    "/run/systemd/resolve/resolv.conf",
    "/run/resolvconf/resolv.conf",
];

impl Holes {
    /// Those of a program that works in a folder: it writes there, but not what git keeps of it and of repositories inside, nor what this
    /// program looks for there.
    pub fn of_workspace(root: &Path) -> Self {
        let own = [root.join(".git"), root.join(".fledge")].into_iter();
        // A mount cannot keep a link, and what it leads to may be anything: it opens nothing.
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

    /// All rules, those for outer paths first. The folders of the search path can be read, those of toolchains, and `helper`.
    pub(super) fn rules(&self, env: &Variables, helper: &Path) -> Vec<Rule> {
        let mut rules: Vec<Rule> = Vec::new();
        let mut add = |at: &Path, sight| rules.push(Rule { at: at.into(), sight, from: None });
        PRIVATE.iter().for_each(|at| add(Path::new(at), Sight::Empty));
        SECRET.iter().for_each(|at| add(Path::new(at), Sight::Masked));
        NEEDED.iter().for_each(|at| add(Path::new(at), Sight::ReadOnly));
        for folder in std::env::split_paths(env.get("PATH").unwrap_or_default()) {
            // A program of a toolchain needs what lies beside its folder.
            for (home, toolchain) in homes::of_program(&folder) {
                add(&home.join(toolchain), Sight::ReadOnly);
                let secret = homes::CREDENTIALS.iter().filter(|at| Path::new(at).starts_with(toolchain));
                secret.for_each(|at| add(&home.join(at), Sight::Masked));
            }
            add(&folder, Sight::ReadOnly);
        }
        for (variable, place) in homes::LED_TO {
            for folder in env.get(variable).into_iter().flat_map(std::env::split_paths) {
                add(&folder, Sight::ReadOnly);
                let secret = homes::CREDENTIALS.iter().filter_map(|at| Path::new(at).strip_prefix(place).ok());
                secret.for_each(|at| add(&folder.join(at), Sight::Masked));
            }
        }
        if let Some(home) = &self.home {
            add(home, Sight::Empty);
            homes::TOOLCHAINS.iter().for_each(|at| add(&home.join(at), Sight::ReadOnly));
            homes::CREDENTIALS.iter().for_each(|at| add(&home.join(at), Sight::Masked));
        }
        let needs = self.needs(env);
        for at in &needs.shown {
            add(at, Sight::ReadOnly);
            programs::SECRETS.iter().map(|name| at.join(name)).for_each(|secret| add(&secret, Sight::Masked));
        }
        self.hidden.iter().for_each(|at| add(at, Sight::Masked));
        add(helper, Sight::ReadOnly);
        self.writable.iter().for_each(|at| add(at, Sight::Writable));
        self.read_only.iter().for_each(|at| add(at, Sight::ReadOnly));
        for Mount { from, at, writable } in &self.mounts {
            let sight = if *writable { Sight::Writable } else { Sight::ReadOnly };
            rules.push(Rule { at: at.clone(), sight, from: Some(from.clone()) });
        }
        rules.retain(|rule| rule.at.is_absolute() && rule.at != Path::new("/"));
        rules.iter_mut().for_each(|rule| rule.at = whole(&rule.at));
        // What is granted to toolchains takes nothing away from what may be written.
        let own: Vec<&Path> =
            self.writable.iter().chain(self.mounts.iter().map(|mount| &mount.at)).map(PathBuf::as_path).collect();
        let is_granted =
            |rule: &Rule| rule.sight == Sight::ReadOnly && !self.read_only.contains(&rule.at) && rule.from.is_none();
        rules.retain(|rule| !is_granted(rule) || !own.iter().any(|own| rule.at.starts_with(own)));
        // Where two speak of one path the later one holds: what the caller says comes last.
        let mut spoken = HashSet::new();
        let mut rules: Vec<Rule> = rules.into_iter().rev().filter(|rule| spoken.insert(rule.at.clone())).collect();
        rules.reverse();
        rules.sort_by_key(|rule| rule.at.components().count());
        let links =
            needs.links.into_iter().filter(|(at, _)| over(&rules, at).is_some_and(|it| it.sight == Sight::Empty));
        let links: Vec<Rule> = links.map(|(at, target)| Rule { at, sight: Sight::Link, from: Some(target) }).collect();
        rules.extend(links);
        rules.sort_by_key(|rule| rule.at.components().count());
        rules
    }

    /// The hidden paths that the programs of the search path need.
    fn needs(&self, env: &Variables) -> Needs {
        let own = self.writable.iter().chain(self.mounts.iter().map(|mount| &mount.at));
        let own: Vec<PathBuf> = own.map(|path| whole(path)).collect();
        let mut search = Search::new(self.home.as_deref(), &PRIVATE, &own);
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

/// What git keeps of a folder that is a linked worktree, and the repository around one that is not its top.
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
    found.retain(|path| path.join("HEAD").is_file()); // else it is none of git's
    // One that is empty is no repository to git either: it looks further up.
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

/// The path without links on the way to it, and itself none where it exists.
fn whole(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => parent.canonicalize().map_or_else(|_| path.into(), |parent| parent.join(name)),
        _ => path.into(),
    })
}

/// The rule that holds for a path.
pub(super) fn over<'r>(rules: &'r [Rule], path: &Path) -> Option<&'r Rule> {
    rules.iter().rfind(|rule| path.starts_with(&rule.at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_of_a_toolchain_in_somebody_elses_home_finds_the_rest_of_it_and_no_credentials() {
        let env =
            Variables::new([("PATH".to_owned(), "/home/b/.rustup/toolchains/x/bin:/home/b/.cargo/bin".to_owned())]);
        let rules = Holes::default().rules(&env, Path::new("/usr/bin/fledge"));
        let sight = |path: &str| over(&rules, Path::new(path)).map(|rule| rule.sight);
        assert_eq!(sight("/home/b/.rustup/toolchains/x/lib/a.so"), Some(Sight::ReadOnly));
        assert_eq!(sight("/home/b/.cargo/credentials.toml"), Some(Sight::Masked));
        assert_eq!(sight("/home/b/.ssh/id"), Some(Sight::Empty));
    }

    #[test]
    fn a_toolchain_that_a_variable_leads_to_is_seen_without_its_credentials() {
        let env = [("CARGO_HOME", "/opt/cargo"), ("GOPATH", "/home/u/one:/home/u/two")];
        let env = Variables::new(env.map(|(name, value)| (name.to_owned(), value.to_owned())));
        let rules = Holes::default().rules(&env, Path::new("/usr/bin/fledge"));
        let sight = |path: &str| over(&rules, Path::new(path)).map(|rule| rule.sight);
        for (path, expected) in [
            ("/opt/cargo/registry", Some(Sight::ReadOnly)),
            ("/opt/cargo/credentials.toml", Some(Sight::Masked)),
            ("/opt/cargo/credentials", Some(Sight::Masked)),
            ("/home/u/one/pkg", Some(Sight::ReadOnly)),
            ("/home/u/two/pkg", Some(Sight::ReadOnly)),
        ] {
            assert_eq!(sight(path), expected, "{path}");
        }
    }

    #[test]
    fn the_deeper_rule_holds_and_of_two_for_one_path_what_the_caller_says() {
        let holes = Holes {
            writable: vec!["/home/u/w".into(), "/root".into()],
            read_only: vec!["/home/u/w/.git".into()],
            home: Some("/home/u".into()),
            ..Holes::default()
        };
        let env = Variables::new([("PATH".to_owned(), "/home/u/w/bin:/home/u/bin:bin".to_owned())]);
        let rules = holes.rules(&env, Path::new("/home/u/.cargo/bin/fledge"));
        let sight = |path: &str| over(&rules, Path::new(path)).map(|rule| rule.sight);
        for (path, expected) in [
            ("/usr/bin", None),
            ("/home/other", Some(Sight::Empty)),
            ("/home/u/diary", Some(Sight::Empty)),
            ("/home/u/.cargo/registry", Some(Sight::ReadOnly)),
            ("/home/u/.cargo/credentials.toml", Some(Sight::Masked)),
            ("/home/u/bin/tool", Some(Sight::ReadOnly)),
            ("/home/u/w/a", Some(Sight::Writable)),
            ("/home/u/w/bin/tool", Some(Sight::Writable)),
            ("/home/u/w/.git/config", Some(Sight::ReadOnly)),
            ("/root/x", Some(Sight::Writable)),
        ] {
            assert_eq!(sight(path), expected, "{path}");
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
        let holes = Holes::of_workspace(&own);
        let expected = vec![own.join(".git"), own.join(".fledge"), kept.join("../.."), kept];
        assert_eq!((holes.read_only, holes.writable), (expected, vec![own]));
    }

    #[test]
    fn the_repository_around_a_workspace_stays_as_it_is_also_where_an_empty_folder_has_its_name() {
        let folder = crate::test_support::temp_dir();
        let [above, own] = ["a", "a/b"].map(|name| folder.path().join(name));
        [above.join(".git"), own.join(".git")].iter().for_each(|git| std::fs::create_dir_all(git).unwrap());
        std::fs::write(above.join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
        assert_eq!(Holes::of_workspace(&own).read_only, [own.join(".git"), own.join(".fledge"), above]);
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
        assert_eq!(Holes::of_workspace(root).read_only, expected);
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
            Holes::of_workspace(&own).read_only
        };
        assert_eq!(read_only(&state), [own.join(".fledge")]);
        assert_eq!(read_only(&kept), [own.join(".fledge"), kept.canonicalize().unwrap()]);
        std::os::unix::fs::symlink(&state, own.join(".fledge")).unwrap();
        assert_eq!(read_only(&state), [""; 0].map(PathBuf::from));
    }
}
