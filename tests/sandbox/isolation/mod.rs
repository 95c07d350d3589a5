//! Attacks on the sandbox from inside.
//!
//! Each probe prints `PWNED` if it gets through. Most probes first run without a sandbox, where
//! they must get through: this proves that they work. A probe does no harm when it gets through.

mod changes;
mod endings;
mod sockets;

use crate::sandbox::probes::{Bare::Through, HOLES_OF_LANDLOCK, HOLES_OF_SOME_MACHINES, PROBES, Probe};
use crate::support::{Need, PATIENCE, draw, record_time, until_async};
use fledge::process::sandbox::{PathRules, Sandbox, SandboxChoice, SandboxKind};
use fledge::process::{self, EndedProcess, Invocation, ProcessEnd, Variables};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

/// The user id of `nobody`.
const NOBODY: u32 = 65534;

/// A home, a workspace, and files and services that the sandbox must protect.
struct Scene {
    folder: TempDir,
    _socket: UnixListener,
    server: std::net::TcpListener,
    runner: std::process::Child,
    /// A folder below `/run`, and a link in the root, if this user can make them.
    run: Option<TempDir>,
    link: Option<PathBuf>,
}

impl Scene {
    fn new() -> Self {
        record_time();
        let folder = crate::support::temp_dir();
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
        let run = tempfile::Builder::new().prefix("fledge-probe-").tempdir_in("/run").ok();
        run.iter().for_each(|run| {
            fs::write(run.path().join("token"), "secret").unwrap();
            fs::set_permissions(run.path(), fs::Permissions::from_mode(0o755)).unwrap();
        });
        let link = Path::new("/").join(format!("fledge-probe-{}", crate::support::unique()));
        let link = std::os::unix::fs::symlink(folder.path().join("state"), &link).is_ok().then_some(link);
        Self { folder, _socket: socket, server, runner, run, link }
    }

    /// Gives all files to this user.
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

    fn rules(&self) -> PathRules {
        PathRules {
            hidden: vec![self.path("state")],
            home: Some(self.path("home")),
            ..PathRules::of_workspace(&self.path("workspace"))
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
            ("RUN", self.run.as_ref().map(|run| text(run.path().into())).unwrap_or_default()),
            ("LINK", self.link.clone().map(text).unwrap_or_default()),
        ];
        Invocation {
            program: "/bin/sh".into(),
            args: vec!["-c".into(), script.into()],
            dir: self.path("workspace"),
            env: Variables::new(env.map(|(name, value)| (name.to_owned(), value))),
            timeout: Some(PATIENCE),
            grace: Duration::ZERO,
            linger: Duration::ZERO,
            log: None,
            log_limit: 0,
        }
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        self.link.iter().for_each(|link| fs::remove_file(link).unwrap());
        self.runner.kill().unwrap();
        self.runner.wait().unwrap();
    }
}

fn program() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_fledge"))
}

/// Returns a sandbox of this kind. If the machine lacks it, prints a note and returns `None`.
pub(super) async fn sandbox(kind: SandboxKind) -> Option<Sandbox> {
    wall_by(kind, program()).await
}

/// Returns a sandbox of this kind for an ordinary user, with the copy of fledge that it starts. The
/// checkout may be below a folder that only root can enter.
async fn wall_for_others(kind: SandboxKind) -> Option<(Sandbox, TempDir)> {
    let folder = crate::support::temp_dir();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let copy = folder.path().join("fledge");
    fs::copy(program(), &copy).unwrap();
    fs::set_permissions(&copy, fs::Permissions::from_mode(0o755)).unwrap();
    Some((wall_by(kind, &copy).await?, folder))
}

async fn wall_by(kind: SandboxKind, program: &Path) -> Option<Sandbox> {
    let raised = match kind {
        SandboxKind::Landlock => Sandbox::landlock(program, "/usr/bin:/bin").await,
        SandboxKind::Bubblewrap | SandboxKind::Off => {
            Sandbox::find(SandboxChoice::Required, Some(program), "/usr/bin:/bin").await
        }
    };
    match raised {
        Ok(sandbox) => Some(sandbox),
        Err(fault) => {
            let need = if kind == SandboxKind::Landlock { Need::Landlock } else { Need::Sandbox };
            need.lacks(&format!("{} does not work here: {fault}", kind.name()));
            None
        }
    }
}

async fn run(invocation: Invocation) -> EndedProcess {
    process::run(invocation, &CancellationToken::new(), &|_| {}).await
}

/// Runs a program in the sandbox, and returns its end.
async fn told(sandbox: &Sandbox, rules: &PathRules, inner: Invocation) -> EndedProcess {
    sandbox.run_at(None, rules, inner, &CancellationToken::new(), &|_| {}).await
}

/// Runs a program in the sandbox, changed by `as_it`. Tries again if a socket of the machine
/// disappears while the sandbox is built.
async fn behind(
    sandbox: &Sandbox,
    rules: &PathRules,
    inner: Invocation,
    as_it: impl Fn(Invocation) -> Invocation,
) -> EndedProcess {
    let placeholders = sandbox.placeholders(rules);
    for outer in sandbox.builds(rules, &inner, &placeholders) {
        let ended = run(as_it(outer)).await;
        if !sandbox.found_something_gone(&ended.output.text(4000)) {
            return ended;
        }
    }
    panic!("the wall was never built");
}

/// Changes a program to run as another user.
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

/// Returns the probes of this test run.
fn probes() -> Vec<Probe> {
    draw("probes", 20, PROBES.to_vec())
}

/// Runs the probes of this test run as this user, each in its own scene. Returns the names of those
/// that got through.
async fn attack(sandbox: &Sandbox, user: Option<u32>) -> Vec<&'static str> {
    let mut through = Vec::new();
    let mut scene = Scene::new();
    for (name, _, script) in probes() {
        if scene.runner.try_wait().unwrap().is_some() || !scene.path("workspace/.git/HEAD").exists() {
            scene = Scene::new();
        }
        if let Some(user) = user {
            scene = scene.of(user);
        }
        let inner = scene.shell(&format!("echo RAN; {{ {script}; }} 2>/dev/null"));
        let ended =
            behind(sandbox, &scene.rules(), inner, |outer| user.map_or(outer.clone(), |user| as_user(user, outer)))
                .await;
        let has_run = matches!(ended.end, ProcessEnd::Exited(_)) && ended.output.text(4000).starts_with("RAN");
        assert!(has_run, "{name}: {ended:?} {}", ended.output.text(400));
        if ended.output.text(4000).contains("PWNED") {
            through.push(name);
        }
        let is_killed = scene.runner.try_wait().unwrap().is_some();
        assert!(!is_killed || through.contains(&name), "{name} has killed what it may not");
    }
    through
}

#[tokio::test]
async fn probes_get_through_where_there_is_no_wall() {
    long_test!();
    for (name, bare, script) in probes().into_iter().filter(|(_, bare, _)| *bare == Through) {
        let scene = Scene::new();
        let ended = run(scene.shell(script)).await;
        assert!(ended.output.text(4000).contains("PWNED"), "{name} ({bare:?}) is wrong: {}", ended.output.text(4000));
    }
    assert!(PROBES.len() >= 70, "{}", PROBES.len());
}

#[tokio::test]
async fn nothing_gets_through_bubblewrap_as_the_user_who_runs_it() {
    long_test!();
    let Some(sandbox) = sandbox(SandboxKind::Bubblewrap).await else { return };
    assert_eq!(attack(&sandbox, None).await, [""; 0]);
}

#[tokio::test]
async fn nothing_gets_through_bubblewrap_as_an_ordinary_user() {
    long_test!();
    if !is_root() || !has_other_users() {
        Need::Root.lacks("no ordinary user to change to");
        return;
    }
    let Some((sandbox, _copy)) = wall_for_others(SandboxKind::Bubblewrap).await else { return };
    assert_eq!(attack(&sandbox, Some(NOBODY)).await, [""; 0]);
}

/// Returns whether this user namespace maps the id of `nobody`. The container of a single user does
/// not.
fn has_other_users() -> bool {
    let map = std::fs::read_to_string("/proc/self/uid_map").unwrap();
    let numbers = |line: &str| line.split_whitespace().map(|word| word.parse::<u64>().unwrap()).collect::<Vec<_>>();
    map.lines().map(numbers).any(|part| (part[0]..part[0] + part[2]).contains(&u64::from(NOBODY)))
}

/// Returns the probes that get through Landlock, without those that depend on the machine.
async fn through_landlock(sandbox: &Sandbox, user: Option<u32>) -> Vec<&'static str> {
    let mut through = attack(sandbox, user).await;
    through.retain(|name| !HOLES_OF_SOME_MACHINES.contains(name));
    through
}

#[tokio::test]
async fn only_what_is_known_gets_through_landlock() {
    long_test!();
    let Some(sandbox) = sandbox(SandboxKind::Landlock).await else { return };
    let known: Vec<&str> =
        probes().into_iter().map(|(name, _, _)| name).filter(|name| HOLES_OF_LANDLOCK.contains(name)).collect();
    assert_eq!(through_landlock(&sandbox, None).await, known);
    if is_root()
        && has_other_users()
        && let Some((sandbox, _copy)) = wall_for_others(SandboxKind::Landlock).await
    {
        assert_eq!(through_landlock(&sandbox, Some(NOBODY)).await, known);
    }
}

#[tokio::test]
async fn what_the_user_has_running_elsewhere_leaves_room_for_processes_behind_landlock() {
    let Some(sandbox) = sandbox(SandboxKind::Landlock).await else { return };
    let user = if is_root() { Some(NOBODY).filter(|_| has_other_users()) } else { None };
    let (scene, mut rules) = (Scene::new(), PathRules::default());
    let as_it = |inner: Invocation| user.map_or(inner.clone(), |user| as_user(user, inner));
    let others = as_it(Invocation { program: "/bin/sleep".into(), args: vec!["600".into()], ..scene.shell("") });
    let mut others: Vec<_> =
        (0..30).map(|_| std::process::Command::new(&others.program).args(&others.args).spawn().unwrap()).collect();
    rules.limits.processes = Some(20);
    let inner = Invocation { dir: "/".into(), ..scene.shell("echo a | cat | cat") };
    let ended = behind(&sandbox, &rules, inner, as_it).await;
    others.iter_mut().for_each(|other| other.kill().and_then(|()| other.wait()).map(drop).unwrap());
    assert_eq!((ended.end.clone(), ended.output.text(400).trim()), (ProcessEnd::Exited(0), "a"), "{ended:?}");
}

#[tokio::test]
async fn what_is_at_work_behind_the_wall_has_what_it_needs() {
    for kind in [SandboxKind::Bubblewrap, SandboxKind::Landlock] {
        let Some(sandbox) = sandbox(kind).await else { continue };
        let scene = Scene::new();
        let script = "set -e; echo x >new; mkdir -p a/b; mv new a/b/; ln -s a l; chmod 700 a; rm -r a l; echo t >${TMPDIR:-/tmp}/t; \
            echo h >$HOME/h; test -e $HOME/.cargo/config.toml || test -e $CARGO_HOME/config.toml; : >/dev/null; \
            head -c1 /dev/urandom >/dev/null; sh -c 'true | cat'; test \"$(pwd)\" = \"$0\"; echo fine";
        let mut inner = scene.shell(script);
        inner.args.push(scene.path("workspace").display().to_string());
        let ended = behind(&sandbox, &scene.rules(), inner, |outer| outer).await;
        assert_eq!(
            (ended.end.clone(), ended.output.text(400).trim()),
            (ProcessEnd::Exited(0), "fine"),
            "{kind:?}: {ended:?}"
        );
        assert!(!scene.path("home/h").exists(), "{kind:?}: the home is not its own");
    }
}

#[tokio::test]
async fn git_tar_and_copies_keep_the_modes_that_are_harmless() {
    for kind in [SandboxKind::Bubblewrap, SandboxKind::Landlock] {
        let Some(sandbox) = sandbox(kind).await else { continue };
        let scene = Scene::new();
        let script = "set -e; export GIT_CONFIG_NOSYSTEM=1; mkdir r t; cd r; git init -q; echo x >a; chmod 755 a; git add a; \
            git -c user.name=a -c user.email=a@b commit -qm a; git gc -q; rm a; git checkout -q a; test -x a; chmod 1777 .; \
            tar cf ../a.tar a; tar xpf ../a.tar -C ../t; cp -a a ../t/b; install -m 700 a ../t/c; test -x ../t/a; test -x ../t/b; \
            perl -e '$s = qq(a); $how = pack(q(Q3), 0, 0, 0); syscall(437, -100, $s, $how, 24) == -1 && $! == 38 or die'; echo fine";
        let ended = told(&sandbox, &scene.rules(), scene.shell(script)).await;
        assert_eq!(
            (ended.end.clone(), ended.output.text(900).trim()),
            (ProcessEnd::Exited(0), "fine"),
            "{kind:?}: {ended:?}"
        );
    }
}

/// Returns whether a process has this among its arguments.
pub(super) fn is_there(argument: &str) -> bool {
    let lines = fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .map(|entry| fs::read(entry.path().join("cmdline")).unwrap_or_default());
    lines.into_iter().any(|line| line.split(|byte| *byte == 0).any(|own| own == argument.as_bytes()))
}
