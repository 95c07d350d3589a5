//! Tests of the tool host in the sandbox, as the driver uses it: calls, memory between calls, its
//! end, and races against its file tools.

use super::isolation::sandbox;
use crate::support::{PATIENCE, SOON, amount};
use fledge::chat::{OutcomeDetail, ToolOutcome};
use fledge::id::CallId;
use fledge::process::sandbox::{Mount, PathRules, SandboxKind};
use fledge::tool::{HostError, HostSettings, ToolHost, ToolRequest};
use serde_json::{Value, json};
use std::fs;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

/// A host with its workspace, and a folder beside it that the sandbox permits. Only the tools
/// themselves can refuse that folder.
struct Scene {
    folder: TempDir,
    host: ToolHost,
    count: AtomicU64,
}

impl Scene {
    async fn new() -> Option<Self> {
        Self::with(|_| {}).await
    }

    /// Starts a host in bubblewrap with changed path rules.
    async fn with(change: impl FnOnce(&mut PathRules)) -> Option<Self> {
        Self::behind(SandboxKind::Bubblewrap, change).await
    }

    /// Starts a host with changed path rules in a sandbox of this kind.
    async fn behind(kind: SandboxKind, change: impl FnOnce(&mut PathRules)) -> Option<Self> {
        let sandbox = sandbox(kind).await?;
        let folder = crate::support::temp_dir();
        for name in ["workspace", "outside", "home"] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        fs::write(folder.path().join("outside/file"), "outer secret").unwrap();
        let root = folder.path().join("workspace");
        let settings = HostSettings {
            root: root.clone(),
            outputs_dir: folder.path().join("outputs"),
            protected: Vec::new(),
            allow_edit: Vec::new(),
            files: Vec::new(),
            env: [("HOME", "home"), ("TMPDIR", "temporary")]
                .map(|(name, at)| (name.to_owned(), folder.path().join(at).display().to_string()))
                .into_iter()
                .chain([("PATH".to_owned(), "/usr/bin:/bin".to_owned())])
                .collect(),
            max_result: 30_000,
            shell_timeout: PATIENCE,
            bounds: fledge::process::ProcessBounds::default(),
        };
        let mut rules = PathRules::of_workspace(&root);
        rules.writable.extend([settings.outputs_dir.clone(), folder.path().join("outside")]);
        rules.home = Some(folder.path().join("home"));
        change(&mut rules);
        let host = ToolHost::behind(settings, None, sandbox, rules).unwrap();
        Some(Self { folder, host, count: AtomicU64::new(1) })
    }

    async fn call(&self, name: &str, input: Value) -> ToolOutcome {
        self.call_until(name, input, &CancellationToken::new()).await
    }

    async fn call_until(&self, name: &str, input: Value, stop: &CancellationToken) -> ToolOutcome {
        let call = CallId(self.count.fetch_add(1, Ordering::Relaxed));
        self.host.call(ToolRequest { call, name: name.into(), input }, stop, &|_| {}).await
    }

    async fn shell(&self, command: &str) -> ToolOutcome {
        self.call("shell-exec", json!({ "command": command })).await
    }
}

#[tokio::test]
async fn commands_have_a_private_home_and_temporary_folder() {
    for kind in [SandboxKind::Bubblewrap, SandboxKind::Landlock] {
        let Some(scene) = Scene::behind(kind, |_| {}).await else { continue };
        fs::write(scene.folder.path().join("home/.gitconfig"), "[user]\nname = somebody\n").unwrap();
        let script = "set -e; mktemp >/dev/null; test -z \"$(git config user.name)\"; git config --global user.name me; git init -q r; \
            cd r; echo \"fine for $(git config user.name)\"";
        let outcome = scene.shell(script).await;
        assert!(!outcome.is_error && outcome.content.contains("fine for me"), "{kind:?}: {}", outcome.content);
        let left = fs::read_to_string(scene.folder.path().join("home/.gitconfig")).unwrap();
        assert_eq!(left, "[user]\nname = somebody\n", "{kind:?}");
        assert!(!scene.folder.path().join("temporary").exists(), "{kind:?}");
        scene.host.close().await;
    }
}

#[tokio::test]
async fn the_environment_that_is_told_is_the_one_that_commands_have() {
    for kind in [SandboxKind::Bubblewrap, SandboxKind::Landlock] {
        let Some(scene) = Scene::behind(kind, |_| {}).await else { continue };
        assert_eq!(scene.host.environment(), None, "{kind:?}");
        let outcome = scene.shell("echo \"<$HOME|$TMPDIR>\"").await;
        let env = scene.host.environment().unwrap();
        let value = |name: &str| env.iter().find(|(own, _)| own == name).map_or("", |(_, value)| value.as_str());
        let told = format!("<{}|{}>", value("HOME"), value("TMPDIR"));
        assert!(outcome.content.contains(&told) && told.len() > 3, "{kind:?}: {told} {}", outcome.content);
        assert_ne!(value("TMPDIR"), scene.folder.path().join("temporary").display().to_string(), "{kind:?}");
        scene.host.close().await;
    }
}

#[tokio::test]
async fn what_the_model_has_seen_is_known_to_the_next_host() {
    let Some(scene) = Scene::new().await else { return };
    let written = scene.call("files-write", json!({ "path": "a", "content": "1\n" })).await;
    assert!(!written.is_error, "{}", written.content);
    scene.host.close().await;
    fs::write(scene.folder.path().join("workspace/a"), "other\n").unwrap();
    let refused = scene.call("files-write", json!({ "path": "a", "content": "2\n" })).await;
    assert!(refused.is_error && refused.content.contains("changed since"), "{}", refused.content);
    scene.call("files-read", json!({ "path": "a" })).await;
    let again = scene.call("files-write", json!({ "path": "a", "content": "1\n2\n" })).await;
    let change = again.change.unwrap();
    assert_eq!((change.added, change.kind), (2, fledge::chat::FileChangeKind::Created));
    scene.host.close().await;
}

#[tokio::test]
async fn a_host_that_is_killed_is_an_error_of_its_call_and_the_next_one_starts_another() {
    let Some(scene) = Scene::new().await else { return };
    for command in ["kill -9 $PPID; sleep 5", "(sleep 0.1; kill -9 $PPID) & sleep 0.01; kill -9 $PPID; wait"] {
        let killed = scene.shell(command).await;
        assert!(killed.is_error && killed.content.contains("ended during this call"), "{command}: {}", killed.content);
        let next = scene.shell("echo well").await;
        assert!(!next.is_error && next.content.contains("well"), "{command}: {}", next.content);
    }
    scene.host.close().await;
}

#[tokio::test]
async fn a_host_that_its_own_shell_has_stopped_is_waited_for_no_longer_than_its_command() {
    long_test!();
    let Some(scene) = Scene::new().await else { return };
    scene.shell("true").await;
    let begun = Instant::now();
    let stopped = scene.call("shell-exec", json!({ "command": "kill -STOP $PPID; sleep 60", "timeout": 1 })).await;
    assert!(stopped.is_error && stopped.content.contains("the tool host does not answer"), "{}", stopped.content);
    assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
    let next = scene.shell("echo well").await;
    assert!(!next.is_error && next.content.contains("well"), "{}", next.content);
    scene.host.close().await;
}

#[tokio::test]
async fn a_wall_that_cannot_be_built_around_the_tools_is_known_before_the_first_call() {
    let mount = |at: &str| Mount { from: "/nowhere".into(), at: at.into(), writable: true };
    let Some(scene) = Scene::with(|rules| rules.mounts.push(mount("/opt"))).await else { return };
    let refused = scene.host.ready(&CancellationToken::new()).await;
    assert!(matches!(&refused, Err(HostError::Wall(why)) if why.contains("/nowhere")), "{refused:?}");
    let Some(scene) = Scene::new().await else { return };
    scene.host.ready(&CancellationToken::new()).await.unwrap();
    scene.host.close().await;
}

#[tokio::test]
async fn calls_run_at_the_same_time_and_one_is_stopped_within_a_second() {
    let Some(scene) = Scene::new().await else { return };
    scene.shell("true").await;
    let (stop, begun) = (CancellationToken::new(), Instant::now());
    let stopping = async {
        let other = scene.shell("echo other").await;
        stop.cancel();
        other
    };
    let input = json!({ "command": "trap '' TERM; sleep 60" });
    let (stopped, other) = tokio::join!(scene.call_until("shell-exec", input, &stop), stopping);
    assert!(other.content.contains("other") && stopped.content.starts_with("stopped"), "{}", stopped.content);
    assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
    scene.host.close().await;
}

#[tokio::test]
async fn output_is_told_as_it_comes_and_a_long_result_can_be_paged_through() {
    let Some(scene) = Scene::new().await else { return };
    let told = std::sync::Mutex::new(String::new());
    let request = ToolRequest { call: CallId(7), name: "shell-exec".into(), input: json!({ "command": "seq 100000" }) };
    let outcome =
        scene.host.call(request, &CancellationToken::new(), &|text| told.lock().unwrap().push_str(&text)).await;
    assert!(matches!(outcome.detail, OutcomeDetail::Output { exit_code: Some(0), .. }), "{}", outcome.content);
    assert!(outcome.content.contains("@output/7") && told.lock().unwrap().starts_with("1\n2\n"));
    let page = scene.call("files-read", json!({ "path": "@output/7", "offset": 99_999, "limit": 2 })).await;
    assert!(page.content.contains("100000"), "{}", page.content);
    scene.host.close().await;
}

#[tokio::test]
async fn when_it_is_closed_nothing_is_left_of_it_neither_processes_nor_folders() {
    let Some(scene) = Scene::new().await else { return };
    let mark = format!("85{}", std::process::id());
    scene.shell("mkdir .git/x .fledge/x").await;
    let begun = scene.shell(&format!("(setsid setsid sleep {mark} >/dev/null 2>&1 &); ls -A")).await;
    assert!(begun.content.contains(".git"), "{}", begun.content);
    let pending = scene.call("shell-exec", json!({ "command": format!("sleep {mark}") }));
    let _given_up = tokio::time::timeout(Duration::from_millis(300), pending).await;
    scene.host.close().await;
    assert!(!super::isolation::is_there(&mark), "a process is left");
    assert_eq!(fs::read_dir(scene.folder.path().join("workspace")).unwrap().count(), 0, "a folder is left");
}

#[tokio::test]
async fn the_empty_folders_that_a_killed_process_has_left_are_gone_with_the_next_host() {
    let Some(scene) = Scene::new().await else { return };
    let at = |path: &str| scene.folder.path().join("workspace").join(path);
    [".git", ".fledge"].iter().for_each(|name| fs::create_dir(at(name)).unwrap());
    scene.shell("true").await;
    scene.host.close().await;
    assert_eq!((at(".git").exists(), at(".fledge").exists()), (false, false));
    fs::create_dir_all(at(".git/objects")).unwrap();
    scene.shell("true").await;
    scene.host.close().await;
    assert!(at(".git/objects").exists());
}

#[tokio::test]
async fn a_program_that_the_agent_could_change_is_no_helper() {
    let Some(sandbox) = sandbox(SandboxKind::Bubblewrap).await else { return };
    let folder = crate::support::temp_dir();
    let settings = HostSettings {
        root: folder.path().into(),
        outputs_dir: folder.path().with_extension("outputs"),
        protected: Vec::new(),
        allow_edit: Vec::new(),
        files: Vec::new(),
        env: Vec::new(),
        max_result: 0,
        shell_timeout: Duration::ZERO,
        bounds: fledge::process::ProcessBounds::default(),
    };
    let rules =
        PathRules { writable: vec![sandbox.helper().unwrap().parent().unwrap().into()], ..PathRules::default() };
    let outputs = settings.outputs_dir.clone();
    let refused = ToolHost::behind(settings, None, sandbox, rules);
    fs::remove_dir(outputs).unwrap();
    assert!(matches!(refused, Err(HostError::HelperInside(_))), "{refused:?}");
}

#[tokio::test]
async fn a_folder_that_turns_into_a_link_and_back_leads_no_file_tool_outside() {
    let Some(scene) = Scene::new().await else { return };
    let seconds: f64 = amount(0.2, 5.0);
    let (stop, limit) = (CancellationToken::new(), Duration::from_secs_f64(seconds));
    let outside = scene.folder.path().join("outside");
    let swap = format!(
        "mkdir -p inner; echo own >inner/file; ln -sfn {} link; while :; do mv -T inner d; mv -T d inner; mv -T link d; mv -T d link; done",
        outside.display()
    );
    let attacks = async {
        let begun = Instant::now();
        while begun.elapsed() < limit {
            for (name, input) in [
                ("files-read", json!({ "path": "d/file" })),
                ("files-write", json!({ "path": "d/file", "content": "own\n" })),
                ("files-write", json!({ "path": "d/new/file", "content": "own\n" })),
                ("files-edit", json!({ "path": "d/file", "old": "outer", "new": "inner" })),
                ("files-delete", json!({ "path": "d/file" })),
                ("files-list", json!({ "path": "d" })),
                ("files-glob", json!({ "pattern": "d/**" })),
                ("search-grep", json!({ "pattern": "secret", "path": "d" })),
            ] {
                let outcome = scene.call(name, input).await;
                assert!(!outcome.content.contains("outer secret"), "{name}: {}", outcome.content);
            }
        }
        stop.cancel();
    };
    tokio::join!(scene.call_until("shell-exec", json!({ "command": swap }), &stop), attacks);
    scene.host.close().await;
    assert_eq!(fs::read_to_string(outside.join("file")).unwrap(), "outer secret");
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 1, "something was made outside");
}

/// Prints the cost of the sandbox, with `--nocapture`.
#[tokio::test]
async fn a_call_through_the_wall_costs_little_beside_its_start() {
    let Some(scene) = Scene::new().await else { return };
    fs::write(scene.folder.path().join("workspace/a"), "text\n").unwrap();
    let begun = Instant::now();
    scene.call("files-read", json!({ "path": "a" })).await;
    let start = begun.elapsed();
    let begun = Instant::now();
    for _ in 0..200 {
        scene.call("files-read", json!({ "path": "a" })).await;
    }
    let calls = begun.elapsed();
    let begun = Instant::now();
    scene.host.close().await;
    eprintln!("the host starts in {start:?}, 200 calls take {calls:?}, it closes in {:?}", begun.elapsed());
    assert!(calls < SOON, "{calls:?}");
}
