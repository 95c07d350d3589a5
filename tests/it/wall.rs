//! The wall, attacked from behind: each probe prints `PWNED` where it gets through. Those that say so are first run without a wall, where
//! they must get through, so that none passes for being wrong. None does harm where a wall lets it through.
//! Where no wall stands here it is said, and is a failure where
//! `FLEDGE_TEST_REQUIRE_SANDBOX=1`.

use fledge::process::wall::{Holes, Wall, WallChoice, WallKind};
use fledge::process::{self, End, Ended, Invocation, Variables};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

/// The user that is nobody.
const NOBODY: u32 = 65534;

/// Whether a probe gets through where there is no wall.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bare {
    /// It does: the probe is right.
    Through,
    /// It is not run there: it would do harm, or needs what is not everywhere.
    Unasked,
}
use Bare::{Through, Unasked};

/// `$OUT` is a folder beside the workspace, `$HOME` the user's, `$STATE` what fledge keeps, `$GIT` what git keeps elsewhere.
const PROBES: &[(&str, Bare, &str)] = &[
    // what is written outside
    ("a file beside the workspace", Through, "echo x >$OUT/new && echo PWNED"),
    ("a file that is there", Through, "echo x >>$OUT/old && echo PWNED"),
    ("by a relative path", Through, "echo x >../outside/new && echo PWNED"),
    ("through a link", Through, "ln -sfn $OUT link && echo x >link/new && echo PWNED"),
    ("by a hard link", Through, "ln -f $OUT/old hard && echo x >>hard && echo PWNED"),
    ("a removal", Through, "rm $OUT/gone && echo PWNED"),
    ("a rename", Through, "mv $OUT/moved $OUT/moved2 && echo PWNED"),
    ("a mode", Through, "chmod 600 $OUT/old && echo PWNED"),
    ("a time", Through, "touch -d 2001-01-01 $OUT/old && echo PWNED"),
    ("a truncation", Through, "truncate -s 0 $OUT/cut && echo PWNED"),
    ("a folder", Through, "mkdir $OUT/folder && echo PWNED"),
    ("a pipe", Through, "mkfifo $OUT/pipe && echo PWNED"),
    ("a file for everybody", Unasked, "echo x >/etc/fledge-probe && rm /etc/fledge-probe && echo PWNED"),
    ("a file in the root", Unasked, "echo x >/fledge-probe && rm /fledge-probe && echo PWNED"),
    ("a file of the system", Unasked, "(: >>/usr/bin/env) && echo PWNED"),
    ("a mount that is read-only made writable", Unasked, "mount -o remount,rw / && echo PWNED"),
    ("a mount", Unasked, "mkdir -p m; mount -t tmpfs none m && echo PWNED"),
    ("an end of a mount", Unasked, "umount -l $HOME && echo PWNED"),
    ("a device", Unasked, "mknod dev b 8 0 && echo PWNED"),
    (
        "a device of the machine",
        Unasked,
        "for d in /dev/sda /dev/vda /dev/nvme0n1 /dev/mem /dev/kmsg; do test -e $d && echo PWNED; done",
    ),
    // git
    ("a hook", Through, "echo x >.git/hooks/post-checkout && echo PWNED"),
    ("git's configuration", Through, "echo x >>.git/config && echo PWNED"),
    ("git's configuration replaced", Through, "echo x >c && mv c .git/config && echo PWNED"),
    ("git's folder moved away", Unasked, "mv .git away && echo PWNED"),
    ("git's folder removed", Unasked, "rm -rf .git; test -e .git/HEAD || echo PWNED"),
    ("git's folder covered", Unasked, "mount -t tmpfs none .git && echo PWNED"),
    ("a folder that fledge would read", Through, "mkdir -p .fledge/lanes && echo PWNED"),
    ("that folder as a link", Unasked, "ln -sfn $OUT .fledge && test -L .fledge && echo PWNED"),
    // what is read
    ("a key for other machines", Through, "grep -q secret $HOME/.ssh/id && echo PWNED"),
    ("a key for packages", Through, "grep -q secret $HOME/.cargo/credentials.toml && echo PWNED"),
    ("an older one", Through, "grep -q secret $HOME/.cargo/credentials && echo PWNED"),
    ("a password for the network", Through, "grep -q secret $HOME/.netrc && echo PWNED"),
    ("npm's", Through, "grep -q secret $HOME/.npmrc && echo PWNED"),
    ("pypi's", Through, "grep -q secret $HOME/.pypirc && echo PWNED"),
    ("amazon's", Through, "grep -q secret $HOME/.aws/credentials && echo PWNED"),
    ("github's", Through, "grep -q secret $HOME/.config/gh/hosts.yml && echo PWNED"),
    ("docker's", Through, "grep -q secret $HOME/.docker/config.json && echo PWNED"),
    ("kubernetes's", Through, "grep -q secret $HOME/.kube/config && echo PWNED"),
    ("git's", Through, "grep -q secret $HOME/.git-credentials && echo PWNED"),
    ("a document", Through, "grep -q secret $HOME/diary && echo PWNED"),
    ("what was typed", Through, "grep -q secret $HOME/.bash_history && echo PWNED"),
    ("what fledge keeps", Through, "grep -rq secret $STATE && echo PWNED"),
    ("fledge's journal written", Through, "echo x >>$STATE/journal && echo PWNED"),
    ("beside the workspace in a temporary folder", Through, "grep -q secret $OUT/secret && echo PWNED"),
    ("passwords of the system", Unasked, "head -c1 /etc/shadow | grep -q . && echo PWNED"),
    ("the home of root", Unasked, "ls -A /root/.ssh /root/.bash_history 2>/dev/null | grep -q . && echo PWNED"),
    ("homes of others", Unasked, "for home in /home/*/; do ls -A $home | grep -q . && echo PWNED; done"),
    ("the environment of the first process", Unasked, "tr '\\0' '\\n' </proc/1/environ | grep -q CANARY && echo PWNED"),
    (
        "the environment of any process",
        Through,
        "cat /proc/[0-9]*/environ | tr '\\0' '\\n' | grep -q CANARY && echo PWNED",
    ),
    ("the memory of another", Unasked, "head -c1 /proc/$RUNNER/mem && echo PWNED"),
    ("the root of another", Through, "ls /proc/$RUNNER/root/ | grep -q . && echo PWNED"),
    ("the folder of another", Through, "ls /proc/$RUNNER/cwd/ | grep -q . && echo PWNED"),
    ("the machine's memory", Unasked, "head -c1 /proc/kcore >/dev/null && echo PWNED"),
    ("the kernel's log", Unasked, "dmesg | grep -q . && echo PWNED"),
    // other processes
    ("a signal to another", Through, "kill -0 $RUNNER && echo PWNED"),
    ("a signal to all", Unasked, "kill -0 -1 2>/dev/null; kill -9 $RUNNER && echo PWNED"),
    ("a list of others", Through, "test -e /proc/$RUNNER/stat && echo PWNED"),
    ("a list of keys", Unasked, "keyctl show && echo PWNED"),
    ("namespaces of another", Unasked, "nsenter -t 1 -m -p true && echo PWNED"),
    ("a namespace of users", Unasked, "unshare -U true && echo PWNED"),
    ("a namespace of mounts", Unasked, "unshare -m true && echo PWNED"),
    ("a namespace of the network", Unasked, "unshare -n true && echo PWNED"),
    ("another root", Unasked, "chroot / true && echo PWNED"),
    ("another wall", Unasked, "bwrap --ro-bind / / true && echo PWNED"),
    ("more rights", Unasked, "grep -q '^CapEff:.*[1-9a-f]' /proc/self/status && echo PWNED"),
    ("rights of a program that has them", Unasked, "grep -q '^NoNewPrivs:.0' /proc/self/status && echo PWNED"),
    ("any call to the kernel", Unasked, "grep -q '^Seccomp:.0' /proc/self/status && echo PWNED"),
    ("another user", Unasked, "setpriv --reuid 1234 true && echo PWNED"),
    ("another address space", Unasked, "setarch -R true && echo PWNED"),
    ("a core file", Unasked, "test $(ulimit -c) != 0 && echo PWNED"),
    ("processes without end", Unasked, "test $(ulimit -u) = unlimited && echo PWNED"),
    // the network and sockets
    ("a server of this machine", Through, "bash -c \"exec 3<>/dev/tcp/127.0.0.1/$PORT\" && echo PWNED"),
    ("a server elsewhere", Unasked, "timeout 2 bash -c 'exec 3<>/dev/tcp/1.1.1.1/53' && echo PWNED"),
    ("words to nobody", Unasked, "bash -c 'echo x >/dev/udp/1.1.1.1/53' && echo PWNED"),
    ("a name", Unasked, "timeout 3 getent ahostsv4 example.com | grep -q . && echo PWNED"),
    ("other networks", Unasked, "tail -n +3 /proc/net/dev | grep -qv ' lo:' && echo PWNED"),
    ("a socket of this machine", Through, "test -S $SOCKET && echo PWNED"),
    (
        "a socket of the system",
        Unasked,
        "for s in /run/docker.sock /var/run/docker.sock /run/dbus/system_bus_socket /run/systemd/private; do test -S $s && echo PWNED; done",
    ),
    // the machine
    ("the clock", Unasked, "date -s @$(date +%s) && echo PWNED"),
    ("its name", Unasked, "hostname $(hostname) && echo PWNED"),
    ("its settings", Unasked, "now=$(cat /proc/sys/kernel/panic); (echo $now >/proc/sys/kernel/panic) && echo PWNED"),
    ("its keys", Unasked, "(echo h >/proc/sysrq-trigger) && echo PWNED"),
    (
        "its groups of processes",
        Unasked,
        "mkdir /sys/fs/cgroup/fledge-probe && rmdir /sys/fs/cgroup/fledge-probe && echo PWNED",
    ),
    ("the terminal", Unasked, "(echo x >/dev/tty) && echo PWNED"),
];

/// What Landlock is known not to keep.
const HOLES_OF_LANDLOCK: &[&str] = &[
    "by a hard link",
    "a mode",
    "a time",
    "a hook",
    "git's configuration",
    "git's configuration replaced",
    "git's folder moved away",
    "git's folder removed",
    "a folder that fledge would read",
    "that folder as a link",
    "the folder of another",
    "a list of others",
    "a device",
    "a device of the machine",
    "more rights",
    "another user",
    "other networks",
    "a socket of this machine",
    "a socket of the system",
];

/// The user's home, a workspace and what is none of its business.
struct Scene {
    folder: TempDir,
    _socket: UnixListener,
    server: std::net::TcpListener,
    runner: std::process::Child,
}

impl Scene {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        for path in [
            ".ssh/id",
            ".cargo/credentials.toml",
            ".cargo/credentials",
            ".netrc",
            ".npmrc",
            ".pypirc",
            ".aws/credentials",
        ] {
            put(&format!("home/{path}"), "secret");
        }
        for path in [
            ".config/gh/hosts.yml",
            ".docker/config.json",
            ".kube/config",
            ".git-credentials",
            "diary",
            ".bash_history",
        ] {
            put(&format!("home/{path}"), "secret");
        }
        put("home/.cargo/config.toml", "[net]");
        put("state/journal", "secret");
        for path in ["old", "gone", "moved", "cut", "secret"] {
            put(&format!("outside/{path}"), "secret");
        }
        put("workspace/.git/HEAD", "ref: refs/heads/main");
        put("workspace/.git/config", "[core]");
        put("workspace/.git/hooks/sample", "");
        let socket = UnixListener::bind(folder.path().join("outside/socket")).unwrap();
        let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let runner = std::process::Command::new("sleep").arg("600").env("API_KEY", "CANARY").spawn().unwrap();
        Self { folder, _socket: socket, server, runner }
    }

    /// Everything belongs to this user.
    fn of(self, user: u32) -> Self {
        let owned =
            std::process::Command::new("chown").args(["-R", &user.to_string()]).arg(self.folder.path()).status();
        assert!(owned.unwrap().success());
        fs::set_permissions(self.folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        self
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn holes(&self) -> Holes {
        Holes {
            hidden: vec![self.path("state")],
            home: Some(self.path("home")),
            ..Holes::of_workspace(&self.path("workspace"))
        }
    }

    fn shell(&self, script: &str) -> Invocation {
        let text = |path: PathBuf| path.display().to_string();
        let env = [
            ("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin".to_owned()),
            ("HOME", text(self.path("home"))),
            ("OUT", text(self.path("outside"))),
            ("STATE", text(self.path("state"))),
            ("SOCKET", text(self.path("outside/socket"))),
            ("PORT", self.server.local_addr().unwrap().port().to_string()),
            ("RUNNER", self.runner.id().to_string()),
        ];
        Invocation {
            program: "/bin/sh".into(),
            args: vec!["-c".into(), script.into()],
            dir: self.path("workspace"),
            env: Variables::new(env.map(|(name, value)| (name.to_owned(), value))),
            timeout: Some(Duration::from_secs(30)),
            grace: Duration::ZERO,
            linger: Duration::ZERO,
            log: None,
            log_limit: 0,
        }
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        self.runner.kill().unwrap();
        self.runner.wait().unwrap();
    }
}

fn program() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_fledge"))
}

/// The wall of this kind. Where it does not stand, that is said.
#[expect(clippy::print_stderr, reason = "what is not tried is said")]
pub(super) async fn wall(kind: WallKind) -> Option<Wall> {
    // Bubblewrap is not found where there is nothing on the search path, so that the other one is tried.
    let raised = match kind {
        WallKind::Landlock => Wall::landlock(program(), "/usr/bin:/bin").await,
        WallKind::Bubblewrap | WallKind::Off => {
            Wall::raise(WallChoice::Required, Some(program()), "/usr/bin:/bin").await
        }
    };
    match raised {
        Ok(wall) => Some(wall),
        Err(fault) if std::env::var("FLEDGE_TEST_REQUIRE_SANDBOX").is_ok_and(|must| must == "1") => {
            panic!("{}: {fault}: {}", kind.name(), fault.mend)
        }
        Err(fault) => {
            eprintln!("not tried: {} does not stand here: {fault}", kind.name());
            None
        }
    }
}

async fn run(invocation: Invocation) -> Ended {
    process::run(invocation, &CancellationToken::new(), &|_| {}).await
}

/// The same as another user.
fn as_user(user: u32, inner: Invocation) -> Invocation {
    let mut args: Vec<String> =
        ["--reuid", &user.to_string(), "--regid", &user.to_string(), "--clear-groups", &inner.program]
            .map(str::to_owned)
            .into();
    args.extend(inner.args);
    Invocation { program: "/usr/bin/setpriv".into(), args, ..inner }
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Runs every probe in a scene of its own, as this user; gives the names of those that got through.
async fn attack(wall: &Wall, user: Option<u32>) -> Vec<&'static str> {
    let mut through = Vec::new();
    let mut scene = Scene::new();
    for (name, _, script) in PROBES {
        if scene.runner.try_wait().unwrap().is_some() || !scene.path("workspace/.git/HEAD").exists() {
            scene = Scene::new();
        }
        if let Some(user) = user {
            scene = scene.of(user);
        }
        let invocation = wall.around(&scene.holes(), scene.shell(&format!("{{ {script}; }} 2>/dev/null")));
        let ended = wall.told(run(user.map_or(invocation.clone(), |user| as_user(user, invocation))).await);
        assert!(matches!(ended.end, End::Exited(_)), "{name}: {ended:?} {}", ended.output.text(400));
        if ended.output.text(4000).contains("PWNED") {
            through.push(*name);
        }
        let is_killed = scene.runner.try_wait().unwrap().is_some();
        assert!(!is_killed || through.contains(name), "{name} has killed what it may not");
    }
    through
}

#[tokio::test]
async fn probes_get_through_where_there_is_no_wall() {
    for (name, bare, script) in PROBES.iter().filter(|(_, bare, _)| *bare == Through) {
        let scene = Scene::new();
        let ended = run(scene.shell(script)).await;
        assert!(ended.output.text(4000).contains("PWNED"), "{name} ({bare:?}) is wrong: {}", ended.output.text(4000));
    }
    assert!(PROBES.len() >= 70, "{}", PROBES.len());
}

#[tokio::test]
async fn nothing_gets_through_bubblewrap_as_the_user_who_runs_it() {
    let Some(wall) = wall(WallKind::Bubblewrap).await else { return };
    assert_eq!(attack(&wall, None).await, [""; 0]);
}

#[tokio::test]
async fn nothing_gets_through_bubblewrap_as_an_ordinary_user() {
    let Some(wall) = wall(WallKind::Bubblewrap).await.filter(|_| is_root()) else { return };
    assert_eq!(attack(&wall, Some(NOBODY)).await, [""; 0]);
}

#[tokio::test]
async fn only_what_is_known_gets_through_landlock() {
    let Some(wall) = wall(WallKind::Landlock).await else { return };
    let through = attack(&wall, None).await;
    let unknown: Vec<_> = through.iter().filter(|name| !HOLES_OF_LANDLOCK.contains(name)).collect();
    assert!(unknown.is_empty(), "got through: {unknown:?}");
}

#[tokio::test]
async fn what_is_at_work_behind_the_wall_has_what_it_needs() {
    for kind in [WallKind::Bubblewrap, WallKind::Landlock] {
        let Some(wall) = wall(kind).await else { continue };
        let scene = Scene::new();
        let script = "set -e; echo x >new; mkdir -p a/b; mv new a/b/; ln -s a l; chmod 700 a; rm -r a l; echo t >${TMPDIR:-/tmp}/t; \
            echo h >$HOME/h; test -e $HOME/.cargo/config.toml || test -e $CARGO_HOME/config.toml; : >/dev/null; \
            head -c1 /dev/urandom >/dev/null; sh -c 'true | cat'; test \"$(pwd)\" = \"$0\"; echo fine";
        let mut inner = scene.shell(script);
        inner.args.push(scene.path("workspace").display().to_string());
        let ended = run(wall.around(&scene.holes(), inner)).await;
        assert_eq!((ended.end.clone(), ended.output.text(400).trim()), (End::Exited(0), "fine"), "{kind:?}: {ended:?}");
        assert!(!scene.path("home/h").exists(), "{kind:?}: the home is not its own");
    }
}

#[tokio::test]
async fn how_a_program_ends_or_does_not_start_is_told_apart() {
    for kind in [WallKind::Bubblewrap, WallKind::Landlock] {
        let Some(wall) = wall(kind).await else { continue };
        let scene = Scene::new();
        let told = async |script: &str| wall.told(run(wall.around(&scene.holes(), scene.shell(script))).await).end;
        assert_eq!(
            [told("exit 7").await, told("nosuch 2>/dev/null").await],
            [End::Exited(7), End::Exited(127)],
            "{kind:?}"
        );
        let missing = Invocation { program: "nosuch".into(), args: Vec::new(), ..scene.shell("") };
        let ended = wall.told(run(wall.around(&scene.holes(), missing)).await);
        assert_eq!(ended.end, End::NotStarted("there is no program `nosuch`".into()), "{kind:?}");
        let late = Invocation { timeout: Some(Duration::from_millis(300)), ..scene.shell("sleep 60") };
        assert_eq!(wall.told(run(wall.around(&scene.holes(), late)).await).end, End::TimedOut, "{kind:?}");
    }
}

#[tokio::test]
async fn a_wall_that_cannot_be_built_is_no_failure_of_the_program() {
    let Some(wall) = wall(WallKind::Bubblewrap).await else { return };
    let scene = Scene::new();
    let mut holes = scene.holes();
    holes.mounts.push(fledge::process::wall::Mount {
        from: scene.path("nowhere"),
        at: scene.path("workspace"),
        writable: true,
    });
    let ended = wall.told(run(wall.around(&holes, scene.shell("echo ran"))).await);
    assert!(matches!(&ended.end, End::NotStarted(why) if why.contains("nowhere")), "{ended:?}");
}

#[tokio::test]
async fn whatever_a_program_does_to_stay_is_gone_with_the_wall() {
    let Some(wall) = wall(WallKind::Bubblewrap).await else { return };
    let scene = Scene::new();
    let mark = format!("86{}", std::process::id());
    for escape in ["setsid sh -c", "setsid setsid sh -c", "env -i /usr/bin/setsid sh -c", "nohup sh -c"] {
        let script = format!(
            "({escape} \"trap '' TERM HUP; sleep {mark}; sleep {mark}\" </dev/null >/dev/null 2>&1 &); echo begun; sleep 0.1"
        );
        let ended = run(wall.around(&scene.holes(), scene.shell(&script))).await;
        assert_eq!(ended.output.text(100).trim(), "begun", "{escape}");
        assert!(!is_there(&mark), "{escape}: something is left");
    }
}

/// Whether a process has this among its arguments.
pub(super) fn is_there(argument: &str) -> bool {
    let lines = fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .map(|entry| fs::read(entry.path().join("cmdline")).unwrap_or_default());
    lines.into_iter().any(|line| line.split(|byte| *byte == 0).any(|own| own == argument.as_bytes()))
}
