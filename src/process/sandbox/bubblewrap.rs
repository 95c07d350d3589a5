//! The bubblewrap sandbox: its own namespaces, the machine read-only, and a mount for every rule.

use super::homes;
use super::path_rules::{PathRule, PathRules, PathView, rule_for};
use super::restrictions::Restrictions;
use super::{INSIDE, LAYERS};
use crate::process::Invocation;
use std::collections::{BTreeSet, HashMap};
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};
use walkdir::WalkDir;

/// The maximum number of sockets that are covered one by one. If there are more, the sandbox
/// forbids creating sockets that could reach them.
const MOST_SOCKETS: usize = 256;
/// Folders where daemons put sockets that are not hidden anyway, the depth of the search there, and
/// the maximum number of files that it looks at.
const DAEMONS: [&str; 3] = ["/var", "/opt", "/srv"];
const DEPTH: usize = 5;
const MOST_FILES: usize = 200_000;

/// Options that unshare users, from the best to the least. fledge tries which one works, and does
/// not infer it from a version.
pub(super) const USERS: [&[&str]; 3] = [
    &["--unshare-user", "--disable-userns"],
    &["--unshare-user"],
    &["--unshare-user-try"], // root, without user namespaces
];
// Without a new cgroup namespace: it would show mounts of cgroups outside of their root, and Java
// fails at these.
const ALWAYS: [&str; 14] = [
    "--unshare-pid",
    "--unshare-ipc",
    "--unshare-uts",
    "--die-with-parent",
    "--new-session", // programs cannot type into a terminal
    "--cap-drop",
    "ALL",
    "--ro-bind",
    "/",
    "/",
    "--dev",
    "/dev",
    "--proc",
    "/proc",
];

/// Writable paths below `/proc` that belong to the whole machine and not to a process.
const MACHINE: [&str; 9] = [
    "/proc/sys",
    "/proc/sysrq-trigger",
    "/proc/irq",
    "/proc/bus",
    "/proc/fs",
    "/proc/acpi",
    "/proc/scsi",
    "/proc/driver",
    "/proc/mtrr",
];

/// Bubblewrap with the options that work here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Bubblewrap {
    pub(super) program: PathBuf,
    /// One of [`USERS`].
    pub(super) users: &'static [&'static str],
}

/// Treatment of the machine's sockets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SocketRules {
    /// Covers the sockets that exist when the sandbox is built, unless more may appear: see
    /// [`may_come`].
    OneByOne,
    /// Forbids creating sockets that could reach them. Needs no search for sockets.
    None,
}

/// The arguments of bubblewrap.
struct Arguments {
    all: Vec<String>,
    /// Folders that become read-only when everything below them is mounted.
    closed: Vec<String>,
}

impl Bubblewrap {
    /// Returns the invocation that runs `inner` in the sandbox.
    pub(super) fn around(
        &self,
        helper: &Path,
        path_rules: &PathRules,
        inner: Invocation,
        how: SocketRules,
    ) -> Invocation {
        let mut arguments = Arguments { all: Vec::new(), closed: Vec::new() };
        arguments.add(self.users);
        arguments.add(&ALWAYS);
        // A fresh /proc has parts that belong to the whole machine. Root could write some of them
        // even without capabilities.
        MACHINE.iter().for_each(|at| arguments.add(&["--ro-bind-try", at, at]));
        if !path_rules.network {
            arguments.add(&["--unshare-net"]);
        }
        let mut rules = path_rules.rules(&inner.env, helper);
        path_rules.home.iter().for_each(|home| make_private_homes(&mut rules, home));
        let by_path = by_path(&rules);
        let needs_mount = |rule: &&PathRule| !is_absent(rule, &by_path) && !is_seen_anyway(rule, &by_path);
        rules.iter().filter(needs_mount).for_each(|rule| arguments.place(rule, path_rules));
        let sockets = if how == SocketRules::OneByOne && !may_come(path_rules) { sockets(&rules) } else { None };
        for socket in sockets.iter().flatten() {
            arguments.add(&["--ro-bind", "/dev/null", &text(socket)]);
        }
        for closed in std::mem::take(&mut arguments.closed) {
            arguments.add(&["--remount-ro", &closed]);
        }
        let restrictions = Restrictions::of_namespaces(path_rules, sockets.is_none()).to_json();
        arguments.add(&["--chdir", &text(&inner.dir), "--", &text(helper), INSIDE, &restrictions, &inner.program]);
        arguments.all.extend(inner.args);
        let temp = [("TMPDIR".to_owned(), "/tmp".to_owned())];
        let env = inner.env.with(temp.iter().map(|(name, value)| (name, value)));
        let (mut program, mut args) = (text(&self.program), arguments.all);
        if let Some(view) = &path_rules.view {
            args.splice(0..0, [LAYERS.into(), "join".into(), view.process().to_string(), program]);
            program = text(helper);
        }
        Invocation { program, args, dir: "/".into(), env, ..inner }
    }
}

impl Arguments {
    fn add(&mut self, all: &[&str]) {
        self.all.extend(all.iter().map(|arg| (*arg).to_owned()));
    }

    /// Adds the mount of a rule. A missing path needs no mount, unless its creation is forbidden.
    fn place(&mut self, rule: &PathRule, path_rules: &PathRules) {
        let at = text(&rule.at);
        let (exists, is_folder) = (rule.at.exists(), rule.at.is_dir());
        match (rule.view, &rule.from) {
            (PathView::Link, target) => self.add(&["--symlink", &target.as_deref().map(text).unwrap_or_default(), &at]),
            (PathView::Writable, Some(from)) => self.add(&["--bind", &text(from), &at]),
            (PathView::ReadOnly, Some(from)) => self.add(&["--ro-bind", &text(from), &at]),
            (PathView::ReadOnly, None) if !exists && path_rules.read_only.contains(&rule.at) => self.close(at),
            _ if !exists => {}
            (PathView::Writable, None) => self.add(&["--bind", &at, &at]),
            (PathView::ReadOnly, None) => self.add(&["--ro-bind", &at, &at]),
            (PathView::Empty, _) if is_folder => self.add(&["--perms", "0755", "--tmpfs", &at]),
            (PathView::Masked, _) if is_folder => self.close(at),
            (PathView::Empty | PathView::Masked, _) => self.add(&["--ro-bind", "/dev/null", &at]),
        }
    }

    /// Adds an empty folder that cannot be written.
    fn close(&mut self, at: String) {
        self.add(&["--perms", "0555", "--tmpfs", &at]);
        self.closed.push(at);
    }
}

/// Makes folders of toolchains in a home private if their tools write into them, with their entries
/// read-only. A folder with too many entries, or with links, stays read-only as a whole.
fn make_private_homes(rules: &mut Vec<PathRule>, home: &Path) {
    let Ok(home) = home.canonicalize() else { return };
    for folder in homes::WRITTEN.iter().map(|at| home.join(at)).filter(|folder| folder.is_dir() && !folder.is_symlink())
    {
        let Some(own) =
            rules.iter().position(|rule| rule.at == folder && rule.view == PathView::ReadOnly && rule.from.is_none())
        else {
            continue;
        };
        let entries: Vec<PathBuf> =
            std::fs::read_dir(&folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
        // A mount cannot replace a link, so a folder with links stays unchanged.
        if entries.len() > homes::MOST_ENTRIES || entries.iter().any(|entry| entry.is_symlink()) {
            continue;
        }
        rules[own].view = PathView::Empty;
        let is_new = |path: &PathBuf| !rules.iter().any(|rule| rule.at == *path);
        let seeded: Vec<PathBuf> = entries.into_iter().filter(is_new).collect();
        rules.extend(seeded.into_iter().map(|at| PathRule { at, view: PathView::ReadOnly, from: None }));
    }
    rules.sort_by_key(|rule| rule.at.components().count());
}

/// Returns whether a rule hides a file in a folder that is empty in the sandbox. The file is absent
/// there without a cover. Some tools (yarn 1, with `~/.npmrc`) fail on a cover, which is a device
/// that they cannot read.
fn is_absent(rule: &PathRule, rules: &HashMap<&Path, &PathRule>) -> bool {
    let above = || rule.at.ancestors().skip(1).find_map(|folder| rules.get(folder));
    rule.view == PathView::Masked && !rule.at.is_dir() && above().is_some_and(|above| above.view == PathView::Empty)
}

/// Returns whether a path that exists is already read-only by the mount above it. Each mount costs
/// about 0.2 ms at every start.
fn is_seen_anyway(rule: &PathRule, rules: &HashMap<&Path, &PathRule>) -> bool {
    let is_plain = |rule: &PathRule| rule.view == PathView::ReadOnly && rule.from.is_none();
    let above = rule.at.ancestors().skip(1).find_map(|folder| rules.get(folder));
    let is_fresh = || ["/dev", "/proc"].iter().any(|fresh| rule.at.starts_with(fresh));
    is_plain(rule) && above.map_or_else(|| !is_fresh(), |above| is_plain(above)) && rule.at.exists()
}

fn by_path(rules: &[PathRule]) -> HashMap<&Path, &PathRule> {
    rules.iter().map(|rule| (rule.at.as_path(), rule)).collect()
}

/// Returns whether a program of the user may bind a socket in a folder that programs in the sandbox
/// can write, while one of them runs. A clean room is elsewhere, and the user starts nothing in it.
fn may_come(path_rules: &PathRules) -> bool {
    !path_rules.writable.is_empty()
}

/// Returns the sockets of this machine with a path that the sandbox shows. No namespace blocks
/// access to them. `None` if they are too many to cover, or cannot be listed. The kernel does not
/// list the sockets of other network namespaces.
fn sockets(rules: &[PathRule]) -> Option<Vec<PathBuf>> {
    let (mut paths, relative) = listed(&std::fs::read_to_string("/proc/net/unix").ok()?);
    if !relative.is_empty() {
        paths.extend(bound_from(&working_folders(), &relative));
        for place in DAEMONS {
            paths.extend(below(Path::new(place), rules)?);
        }
    }
    covered(paths, rules)
}

/// Returns the working folders of processes, as far as this user may see them.
fn working_folders() -> BTreeSet<PathBuf> {
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    processes.filter_map(|process| std::fs::read_link(process.path().join("cwd")).ok()).collect()
}

/// Returns possible paths of sockets with relative names. A program that binds a relative name
/// seldom leaves its working folder.
fn bound_from(folders: &BTreeSet<PathBuf>, names: &[PathBuf]) -> Vec<PathBuf> {
    folders.iter().flat_map(|folder| names.iter().map(|name| folder.join(name))).collect()
}

/// Keeps the paths that are sockets in sight. `None` if they are more than [`MOST_SOCKETS`].
fn covered(paths: Vec<PathBuf>, rules: &[PathRule]) -> Option<Vec<PathBuf>> {
    let is_socket = |path: &PathBuf| path.symlink_metadata().is_ok_and(|found| found.file_type().is_socket());
    let real = paths.into_iter().filter(is_socket).filter_map(|path| path.canonicalize().ok());
    let mut sockets: Vec<PathBuf> = real.filter(|path| is_in_sight(path, rules)).collect();
    sockets.sort();
    sockets.dedup();
    (sockets.len() <= MOST_SOCKETS).then_some(sockets)
}

/// Returns the absolute paths that the kernel lists (proc(5), `/proc/net/unix`), and the relative
/// ones, whose folders it does not list.
fn listed(list: &str) -> (Vec<PathBuf>, Vec<PathBuf>) {
    let names = list.lines().skip(1).filter_map(|line| {
        let mut rest = line;
        for _ in 0..7 {
            rest = rest.trim_start();
            rest = &rest[rest.find(' ')?..];
        }
        rest.get(1..).filter(|name| !name.is_empty() && !name.starts_with('@'))
    });
    names.map(PathBuf::from).partition(|name| name.is_absolute())
}

/// Returns the sockets in a folder. `None` if the folder contains too many files.
fn below(place: &Path, rules: &[PathRule]) -> Option<Vec<PathBuf>> {
    let walk = WalkDir::new(place).max_depth(DEPTH).follow_links(false).into_iter();
    let mut found = Vec::new();
    for (count, entry) in walk.filter_entry(|entry| is_in_sight(entry.path(), rules)).flatten().enumerate() {
        if count == MOST_FILES {
            return None;
        }
        found.extend(entry.file_type().is_socket().then(|| entry.into_path()));
    }
    Some(found)
}

/// Returns whether the sandbox shows the same file at a path as the machine.
fn is_in_sight(path: &Path, rules: &[PathRule]) -> bool {
    rule_for(rules, path).is_none_or(|rule| match rule.view {
        PathView::ReadOnly | PathView::Writable => rule.from.is_none() && rule.at.exists(),
        PathView::Empty | PathView::Masked | PathView::Link => false,
    })
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hidden_file_of_an_empty_home_is_not_placed() {
        let rule = |at: &str, view| PathRule { at: at.into(), view, from: None };
        let rules = [rule("/nowhere", PathView::Empty), rule("/nowhere/.npmrc", PathView::Masked)];
        assert!(is_absent(&rules[1], &by_path(&rules)));
        assert!(!is_absent(&rules[1], &by_path(&rules[1..])));
    }

    #[test]
    fn what_is_read_only_by_the_mount_above_it_has_no_mount_of_its_own() {
        let folder = crate::test_support::temp_dir();
        let [outer, inner] = ["a", "a/b"].map(|name| folder.path().join(name));
        std::fs::create_dir_all(&inner).unwrap();
        let rule = |at: &Path, view| PathRule { at: at.into(), view, from: None };
        let seen = |above, at: &Path| {
            let rules = [rule(&outer, above), rule(at, PathView::ReadOnly)];
            is_seen_anyway(&rules[1], &by_path(&rules))
        };
        assert!(seen(PathView::ReadOnly, &inner));
        assert!(seen(PathView::Writable, Path::new("/usr")), "by the mount of the whole machine");
        for above in [PathView::Writable, PathView::Empty, PathView::Masked, PathView::Link] {
            assert!(!seen(above, &inner), "{above:?}");
        }
        assert!(!seen(PathView::ReadOnly, &outer.join("missing")), "a cover keeps it from being made");
        assert!(!seen(PathView::ReadOnly, Path::new("/proc/sys")), "the mount above it is a new one");
        let moved = PathRule { from: Some(inner.clone()), ..rule(&outer, PathView::ReadOnly) };
        let rules = [moved, rule(&inner, PathView::ReadOnly)];
        assert!(!is_seen_anyway(&rules[1], &by_path(&rules)), "something else stands above it");
    }

    #[test]
    fn sockets_are_known_by_their_paths_and_those_without_one_are_looked_for() {
        let list = "Num       RefCount Protocol Flags    Type St Inode Path\n\
            0000000000000000: 00000002 00000000 00010000 0001 01 12345 /var/lib/a b.sock\n\
            0000000000000000: 00000003 00000000 00000000 0001 03   678\n\
            0000000000000000: 00000002 00000000 00010000 0005 01 91011 @/abstract\n";
        let absolute = vec![PathBuf::from("/var/lib/a b.sock")];
        assert_eq!(listed(list), (absolute.clone(), Vec::new()));
        let relative = "0000000000000000: 00000002 00000000 00010000 0001 01  1213 mysql.sock\n";
        assert_eq!(listed(&format!("{list}{relative}")), (absolute, vec![PathBuf::from("mysql.sock")]));

        let folder = crate::test_support::temp_dir();
        let [socket, hidden] = ["a/b/socket", "hidden/socket"].map(|name| folder.path().join(name));
        let bound = [&socket, &hidden].map(|path| {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::os::unix::net::UnixListener::bind(path).unwrap()
        });
        let rule = PathRule { at: folder.path().join("hidden"), view: PathView::Masked, from: None };
        assert_eq!(below(folder.path(), &[rule]), Some(vec![socket]));
        drop(bound);
    }

    #[test]
    fn only_sockets_in_sight_count_and_too_many_are_not_told_apart() {
        let folder = crate::test_support::temp_dir();
        let root = folder.path().canonicalize().unwrap();
        let hidden = root.join("a");
        std::fs::create_dir(&hidden).unwrap();
        let mut paths: Vec<PathBuf> = (0..=MOST_SOCKETS).map(|number| hidden.join(number.to_string())).collect();
        paths.push(root.join("z"));
        let bound: Vec<_> = paths.iter().map(|path| std::os::unix::net::UnixListener::bind(path).unwrap()).collect();
        let rule = PathRule { at: hidden, view: PathView::Masked, from: None };
        assert_eq!(covered(paths.clone(), &[rule]), Some(vec![root.join("z")]));
        assert_eq!(covered(paths, &[]), None);
        drop(bound);
    }
}
