//! Tests of sockets that other programs of the user (tmux, a process manager) bind in a workspace:
//! access to one would be an escape from the sandbox.

use super::*;
use fledge::process::sandbox::Mount;
use std::process::{Child, Command};

const BOTH: [SandboxKind; 2] = [SandboxKind::Bubblewrap, SandboxKind::Landlock];
/// Connects to `$0`, and sends to `$1` from one end of a socket pair.
const ATTACK: &str = "perl -e 'use Socket; socket(S, AF_UNIX, SOCK_STREAM, 0) && connect(S, sockaddr_un(shift)) && print qq(PWNED stream\n); \
    socketpair(A, B, AF_UNIX, SOCK_DGRAM, PF_UNSPEC) && send(A, q(x), 0, sockaddr_un(shift)) && print qq(PWNED datagram\n)' \"$0\" \"$1\"";
/// Binds `stream` and `datagram` by these names, and waits.
const BINDER: &str = "use Socket; socket(S, AF_UNIX, SOCK_STREAM, 0) && bind(S, sockaddr_un(q(stream))) && listen(S, 9) or die; \
    socket(D, AF_UNIX, SOCK_DGRAM, 0) && bind(D, sockaddr_un(q(datagram))) or die; print qq(bound\n); close STDOUT; sleep 600";
/// A server and its client in one program.
const OWN: &str = "use Socket; my $at = sockaddr_un(shift); socket(S, AF_UNIX, SOCK_STREAM, 0) && bind(S, $at) && listen(S, 9) or die qq($!); \
    socket(C, AF_UNIX, SOCK_STREAM, 0) && connect(C, $at) or die qq($!); accept(A, S) && print qq(fine\n)";

/// A program that has bound sockets by names relative to its folder.
struct Binder(Child);

impl Binder {
    fn in_folder(folder: &Path) -> Self {
        use std::io::Read as _;
        let mut command = Command::new("perl");
        command.args(["-e", &format!("$| = 1; {BINDER}")]).current_dir(folder).stdout(std::process::Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut text = String::new();
        child.stdout.take().unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "bound\n");
        Self(child)
    }
}

impl Drop for Binder {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// Returns the attack on the sockets of a folder.
fn attack_on(scene: &Scene, folder: &Path, before: &str) -> Invocation {
    let mut inner = scene.shell(&format!("{before} {{ {ATTACK}; }} 2>/dev/null; echo over"));
    inner.args.extend(["stream", "datagram"].map(|name| folder.join(name).display().to_string()));
    inner
}

#[tokio::test]
async fn a_socket_that_another_program_has_bound_in_the_workspace_is_out_of_reach() {
    let scene = Scene::new();
    let workspace = scene.path("workspace");
    let _binder = Binder::in_folder(&workspace);
    let bare = run(attack_on(&scene, &workspace, "")).await;
    assert_eq!(bare.output.text(400), "PWNED stream\nPWNED datagram\nover\n", "the attack is wrong");
    for kind in BOTH {
        let Some(sandbox) = sandbox(kind).await else { continue };
        let ended = told(&sandbox, &scene.rules(), attack_on(&scene, &workspace, "")).await;
        assert_eq!(ended.output.text(400), "over\n", "{kind:?}");
    }
}

#[tokio::test]
async fn a_socket_that_is_bound_while_a_program_works_in_the_workspace_is_out_of_reach() {
    for kind in BOTH {
        let Some(sandbox) = sandbox(kind).await else { continue };
        let scene = Scene::new();
        let workspace = scene.path("workspace");
        let before = "echo begun >begun; until test -e go; do sleep 0.01; done;";
        let (rules, inner) = (scene.rules(), attack_on(&scene, &workspace, before));
        let bind = async {
            until_async("the script has begun", || workspace.join("begun").exists()).await;
            let binder = Binder::in_folder(&workspace);
            fs::write(workspace.join("go"), "").unwrap();
            binder
        };
        let (ended, _binder) = tokio::join!(told(&sandbox, &rules, inner), bind);
        assert_eq!(ended.output.text(400), "over\n", "{kind:?}");
    }
}

#[tokio::test]
async fn a_socket_with_a_relative_name_is_out_of_reach_of_a_room() {
    let Some(sandbox) = sandbox(SandboxKind::Bubblewrap).await else { return };
    let scene = Scene::new();
    // Rooms show this folder, unless the checkout is below a home.
    let beside = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let _binder = Binder::in_folder(beside.path());
    let ended = told(&sandbox, &room(&scene), attack_on(&scene, beside.path(), "")).await;
    assert_eq!(ended.output.text(400), "over\n");
}

#[tokio::test]
async fn programs_in_a_room_have_sockets_of_their_own() {
    let Some(sandbox) = sandbox(SandboxKind::Bubblewrap).await else { return };
    let scene = Scene::new();
    for place in ["own", "/tmp/own"] {
        let ended = told(&sandbox, &room(&scene), scene.shell(&format!("perl -e '{OWN}' {place}"))).await;
        assert_eq!(ended.output.text(400), "fine\n", "{place}");
    }
}

#[tokio::test]
async fn pairs_of_sockets_work_where_no_others_do() {
    let script = "perl -e 'use Socket; for $kind (SOCK_STREAM, SOCK_SEQPACKET) { socketpair(A, B, AF_UNIX, $kind, PF_UNSPEC) or die; \
        syswrite(A, q(x)); sysread(B, $got, 1); print $got }'";
    for kind in BOTH {
        let Some(sandbox) = sandbox(kind).await else { continue };
        let scene = Scene::new();
        let ended = told(&sandbox, &scene.rules(), scene.shell(script)).await;
        assert_eq!(ended.output.text(400), "xx", "{kind:?}: {ended:?}");
    }
}

/// Returns the path rules of a room: another folder replaces the workspace.
fn room(scene: &Scene) -> PathRules {
    let from = scene.path("room");
    fs::create_dir_all(&from).unwrap();
    let mounts = vec![Mount { from, at: scene.path("workspace"), writable: true }];
    PathRules { mounts, home: Some(scene.path("home")), ..PathRules::default() }
}
