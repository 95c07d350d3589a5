//! The wall by bubblewrap: namespaces of its own, the machine read-only, and a mount for every rule.

use super::holes::{Holes, Rule, Sight, over};
use super::homes;
use super::inside::Fence;
use super::{INSIDE, LAYERS};
use crate::process::Invocation;
use std::collections::{BTreeSet, HashMap};
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};
use walkdir::WalkDir;

/// Sockets that are covered one by one. Where there are more, none can be made inside that reaches any.
const MOST_SOCKETS: usize = 256;
/// Where daemons put their sockets that are not hidden anyway, how deep they are looked for there, and among how many files.
const DAEMONS: [&str; 3] = ["/var", "/opt", "/srv"];
const DEPTH: usize = 5;
const MOST_FILES: usize = 200_000;

/// What unshares users, from the best to the least: which one works is tried, not told from a version.
pub(super) const USERS: [&[&str]; 3] = [
    &["--unshare-user", "--disable-userns"],
    &["--unshare-user"],
    &["--unshare-user-try"], // root, where there are no namespaces of users
];
const ALWAYS: [&str; 15] = [
    "--unshare-pid",
    "--unshare-ipc",
    "--unshare-uts",
    "--unshare-cgroup-try",
    "--die-with-parent",
    "--new-session", // nothing can be typed into a terminal
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

/// What is not a process's own below `/proc` and can be written.
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

/// Bubblewrap as it works here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Bubblewrap {
    pub(super) program: PathBuf,
    /// One of [`USERS`].
    pub(super) users: &'static [&'static str],
}

/// What is done about the sockets of this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sockets {
    /// Those that there are when the wall is built are covered, unless more may come: see [`may_come`].
    OneByOne,
    /// None can be made inside that reaches any: needs no look at what there is.
    None,
}

/// What it is told.
struct Arguments {
    all: Vec<String>,
    /// Folders that are closed when everything below them is in place.
    closed: Vec<String>,
}

impl Bubblewrap {
    /// The program behind it.
    pub(super) fn around(&self, helper: &Path, holes: &Holes, inner: Invocation, how: Sockets) -> Invocation {
        let mut arguments = Arguments { all: Vec::new(), closed: Vec::new() };
        arguments.add(self.users);
        arguments.add(&ALWAYS);
        // Of a fresh /proc, what is the whole machine's: root could write some of it also without rights.
        MACHINE.iter().for_each(|at| arguments.add(&["--ro-bind-try", at, at]));
        if !holes.network {
            arguments.add(&["--unshare-net"]);
        }
        let mut rules = holes.rules(&inner.env, helper);
        holes.home.iter().for_each(|home| seed(&mut rules, home));
        let by_path = by_path(&rules);
        let needs_mount = |rule: &&Rule| !is_absent(rule, &by_path) && !is_seen_anyway(rule, &by_path);
        rules.iter().filter(needs_mount).for_each(|rule| arguments.place(rule, holes));
        let sockets = if how == Sockets::OneByOne && !may_come(holes) { sockets(&rules) } else { None };
        for socket in sockets.iter().flatten() {
            arguments.add(&["--ro-bind", "/dev/null", &text(socket)]);
        }
        for closed in std::mem::take(&mut arguments.closed) {
            arguments.add(&["--remount-ro", &closed]);
        }
        let fence = Fence::of_namespaces(holes, sockets.is_none()).to_json();
        arguments.add(&["--chdir", &text(&inner.dir), "--", &text(helper), INSIDE, &fence, &inner.program]);
        arguments.all.extend(inner.args);
        let temp = [("TMPDIR".to_owned(), "/tmp".to_owned())];
        let env = inner.env.with(temp.iter().map(|(name, value)| (name, value)));
        let (mut program, mut args) = (text(&self.program), arguments.all);
        if let Some(view) = &holes.view {
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

    /// The mount of a rule. What does not exist needs none, unless it may not come to be.
    fn place(&mut self, rule: &Rule, holes: &Holes) {
        let at = text(&rule.at);
        let (exists, is_folder) = (rule.at.exists(), rule.at.is_dir());
        match (rule.sight, &rule.from) {
            (Sight::Link, target) => self.add(&["--symlink", &target.as_deref().map(text).unwrap_or_default(), &at]),
            (Sight::Writable, Some(from)) => self.add(&["--bind", &text(from), &at]),
            (Sight::ReadOnly, Some(from)) => self.add(&["--ro-bind", &text(from), &at]),
            (Sight::ReadOnly, None) if !exists && holes.read_only.contains(&rule.at) => self.close(at),
            _ if !exists => {}
            (Sight::Writable, None) => self.add(&["--bind", &at, &at]),
            (Sight::ReadOnly, None) => self.add(&["--ro-bind", &at, &at]),
            (Sight::Empty, _) if is_folder => self.add(&["--perms", "0755", "--tmpfs", &at]),
            (Sight::Masked, _) if is_folder => self.close(at),
            (Sight::Empty | Sight::Masked, _) => self.add(&["--ro-bind", "/dev/null", &at]),
        }
    }

    /// An empty folder that stays so.
    fn close(&mut self, at: String) {
        self.add(&["--perms", "0555", "--tmpfs", &at]);
        self.closed.push(at);
    }
}

/// Gives the folders of toolchains in a home that their tools write into as private ones, with what is in them read-only. One with too much in it, or with links,
/// stays read-only as a whole.
fn seed(rules: &mut Vec<Rule>, home: &Path) {
    let Ok(home) = home.canonicalize() else { return };
    for folder in homes::WRITTEN.iter().map(|at| home.join(at)).filter(|folder| folder.is_dir() && !folder.is_symlink())
    {
        let Some(own) =
            rules.iter().position(|rule| rule.at == folder && rule.sight == Sight::ReadOnly && rule.from.is_none())
        else {
            continue;
        };
        let entries: Vec<PathBuf> =
            std::fs::read_dir(&folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
        // A link is no mount: where there are some, all stays as it is.
        if entries.len() > homes::MOST_ENTRIES || entries.iter().any(|entry| entry.is_symlink()) {
            continue;
        }
        rules[own].sight = Sight::Empty;
        let is_new = |path: &PathBuf| !rules.iter().any(|rule| rule.at == *path);
        let seeded: Vec<PathBuf> = entries.into_iter().filter(is_new).collect();
        rules.extend(seeded.into_iter().map(|at| Rule { at, sight: Sight::ReadOnly, from: None }));
    }
    rules.sort_by_key(|rule| rule.at.components().count());
}

/// Returns whether a rule hides a file in a folder that is empty inside of the sandbox. The file is
/// absent there without a cover, and some tools (yarn 1, with `~/.npmrc`) fail at a cover, which is
/// a device that they cannot read.
fn is_absent(rule: &Rule, rules: &HashMap<&Path, &Rule>) -> bool {
    let above = || rule.at.ancestors().skip(1).find_map(|folder| rules.get(folder));
    rule.sight == Sight::Masked && !rule.at.is_dir() && above().is_some_and(|above| above.sight == Sight::Empty)
}

/// Returns whether a path that exists is read-only by the mount above it. Each mount costs about
/// 0.2 ms at every start.
fn is_seen_anyway(rule: &Rule, rules: &HashMap<&Path, &Rule>) -> bool {
    let is_plain = |rule: &Rule| rule.sight == Sight::ReadOnly && rule.from.is_none();
    let above = rule.at.ancestors().skip(1).find_map(|folder| rules.get(folder));
    let is_fresh = || ["/dev", "/proc"].iter().any(|fresh| rule.at.starts_with(fresh));
    is_plain(rule) && above.map_or_else(|| !is_fresh(), |above| is_plain(above)) && rule.at.exists()
}

fn by_path(rules: &[Rule]) -> HashMap<&Path, &Rule> {
    rules.iter().map(|rule| (rule.at.as_path(), rule)).collect()
}

/// Whether a program of the user may bind a socket in a folder that is written inside while a program
/// works there. A room lies elsewhere, where the user starts nothing.
fn may_come(holes: &Holes) -> bool {
    !holes.writable.is_empty()
}

/// The sockets of this machine that have a place in the file system, as far as they are in sight: no namespace keeps anybody from them. `None`
/// where they are too many to be covered, or cannot be found out. Those that other networks of this machine have are not listed anywhere.
fn sockets(rules: &[Rule]) -> Option<Vec<PathBuf>> {
    let (mut paths, relative) = listed(&std::fs::read_to_string("/proc/net/unix").ok()?);
    if !relative.is_empty() {
        paths.extend(bound_from(&working_folders(), &relative));
        for place in DAEMONS {
            paths.extend(below(Path::new(place), rules)?);
        }
    }
    covered(paths, rules)
}

/// The folders that processes work in, as far as this user may see them.
fn working_folders() -> BTreeSet<PathBuf> {
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    processes.filter_map(|process| std::fs::read_link(process.path().join("cwd")).ok()).collect()
}

/// The paths of sockets with relative names: a program that binds one seldom leaves its folder.
fn bound_from(folders: &BTreeSet<PathBuf>, names: &[PathBuf]) -> Vec<PathBuf> {
    folders.iter().flat_map(|folder| names.iter().map(|name| folder.join(name))).collect()
}

/// Those of them that are sockets in sight, unless they are too many.
fn covered(paths: Vec<PathBuf>, rules: &[Rule]) -> Option<Vec<PathBuf>> {
    let is_socket = |path: &PathBuf| path.symlink_metadata().is_ok_and(|found| found.file_type().is_socket());
    let real = paths.into_iter().filter(is_socket).filter_map(|path| path.canonicalize().ok());
    let mut sockets: Vec<PathBuf> = real.filter(|path| is_in_sight(path, rules)).collect();
    sockets.sort();
    sockets.dedup();
    (sockets.len() <= MOST_SOCKETS).then_some(sockets)
}

/// The absolute paths that the kernel lists (proc(5), `/proc/net/unix`), and those that are relative to a folder of which it says nothing.
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

/// The sockets in a folder; `None` where there is too much in it.
fn below(place: &Path, rules: &[Rule]) -> Option<Vec<PathBuf>> {
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

/// Whether a path is found inside as it is outside.
fn is_in_sight(path: &Path, rules: &[Rule]) -> bool {
    over(rules, path).is_none_or(|rule| match rule.sight {
        Sight::ReadOnly | Sight::Writable => rule.from.is_none() && rule.at.exists(),
        Sight::Empty | Sight::Masked | Sight::Link => false,
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
        let rule = |at: &str, sight| Rule { at: at.into(), sight, from: None };
        let rules = [rule("/nowhere", Sight::Empty), rule("/nowhere/.npmrc", Sight::Masked)];
        assert!(is_absent(&rules[1], &by_path(&rules)));
        assert!(!is_absent(&rules[1], &by_path(&rules[1..])));
    }

    #[test]
    fn what_is_read_only_by_the_mount_above_it_has_no_mount_of_its_own() {
        let folder = crate::test_support::temp_dir();
        let [outer, inner] = ["a", "a/b"].map(|name| folder.path().join(name));
        std::fs::create_dir_all(&inner).unwrap();
        let rule = |at: &Path, sight| Rule { at: at.into(), sight, from: None };
        let seen = |above, at: &Path| {
            let rules = [rule(&outer, above), rule(at, Sight::ReadOnly)];
            is_seen_anyway(&rules[1], &by_path(&rules))
        };
        assert!(seen(Sight::ReadOnly, &inner));
        assert!(seen(Sight::Writable, Path::new("/usr")), "by the mount of the whole machine");
        for above in [Sight::Writable, Sight::Empty, Sight::Masked, Sight::Link] {
            assert!(!seen(above, &inner), "{above:?}");
        }
        assert!(!seen(Sight::ReadOnly, &outer.join("missing")), "a cover keeps it from being made");
        assert!(!seen(Sight::ReadOnly, Path::new("/proc/sys")), "the mount above it is a new one");
        let moved = Rule { from: Some(inner.clone()), ..rule(&outer, Sight::ReadOnly) };
        let rules = [moved, rule(&inner, Sight::ReadOnly)];
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
        let rule = Rule { at: folder.path().join("hidden"), sight: Sight::Masked, from: None };
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
        let rule = Rule { at: hidden, sight: Sight::Masked, from: None };
        assert_eq!(covered(paths.clone(), &[rule]), Some(vec![root.join("z")]));
        assert_eq!(covered(paths, &[]), None);
        drop(bound);
    }
}
