//! Tests of the sandbox under change: on a busy machine, in a shared workspace, and around a home
//! that tools write into.

use super::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A thread that binds a socket and removes it, as fast as it can, until the value is dropped.
struct Flicker(Arc<AtomicBool>, Option<std::thread::JoinHandle<usize>>);

impl Flicker {
    fn at(path: PathBuf) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let seen = is_over.clone();
        let flicker = move || {
            let mut count = 0;
            while !seen.load(Ordering::Relaxed) {
                let Ok(bound) = UnixListener::bind(&path) else { continue };
                count += 1;
                std::thread::yield_now();
                drop(bound);
                let is_socket = path
                    .symlink_metadata()
                    .is_ok_and(|found| std::os::unix::fs::FileTypeExt::is_socket(&found.file_type()));
                let _it_may_be_covered = is_socket.then(|| fs::remove_file(&path));
            }
            count
        };
        Self(is_over, Some(std::thread::spawn(flicker)))
    }

    fn stop(mut self) -> usize {
        self.0.store(true, Ordering::Relaxed);
        self.1.take().unwrap().join().unwrap()
    }
}

impl Drop for Flicker {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[tokio::test]
async fn a_socket_that_vanishes_during_the_sandbox_setup_is_ignored() {
    long_test!();
    let Some(sandbox) = sandbox(SandboxKind::Bubblewrap).await else { return };
    let scene = Scene::new();
    // The sandbox blocks new files in these folders. The first is used only if this user can write
    // there; the second is in the workspace.
    let elsewhere =
        ["/opt", "/srv", "/var/lib"].map(|place| tempfile::Builder::new().prefix("fledge-probe-").tempdir_in(place));
    let elsewhere: Vec<TempDir> = elsewhere.into_iter().flatten().take(1).collect();
    let mut places: Vec<PathBuf> = elsewhere.iter().map(|place| place.path().join("socket")).collect();
    places
        .iter()
        .for_each(|place| fs::set_permissions(place.parent().unwrap(), fs::Permissions::from_mode(0o755)).unwrap());
    places.push(scene.path("workspace/socket"));
    // A program that writes in a workspace gets no cover over its sockets, so the workspace is
    // read-only here.
    let (writable, read_only) = (Vec::new(), vec![scene.path("workspace")]);
    let rules = PathRules { writable, read_only, ..scene.rules() };
    for place in places {
        let flicker = Flicker::at(place.clone());
        let heard = std::sync::Mutex::new(Vec::new());
        for number in 0..40 {
            let (inner, stop) = (scene.shell("echo ran"), CancellationToken::new());
            let hear = |bytes: &[u8]| heard.lock().unwrap().extend_from_slice(bytes);
            let ended = sandbox.run_at(None, &rules, inner, &stop, &hear).await;
            assert_eq!(
                (&ended.end, ended.output.text(400).trim()),
                (&ProcessEnd::Exited(0), "ran"),
                "{number}: {ended:?}"
            );
        }
        assert!(flicker.stop() > 40, "it has not come and gone");
        assert_eq!(String::from_utf8(heard.into_inner().unwrap()).unwrap(), "ran\n".repeat(40));
        assert!(!place.exists(), "{} is left", place.display());
    }
}

#[tokio::test]
async fn what_two_walls_in_one_workspace_need_stays_until_the_last_of_them_is_gone() {
    let Some(sandbox) = sandbox(SandboxKind::Bubblewrap).await else { return };
    let scene = Scene::new();
    fs::remove_dir_all(scene.path("workspace/.git")).unwrap();
    fs::create_dir(scene.path("workspace/.fledge")).unwrap(); // left by a run that was killed
    let script = "echo begun >begun; until test -e go; do sleep 0.01; done; mkdir .git/x 2>/dev/null || mkdir .fledge/x 2>/dev/null || echo closed";
    let (stop, rules) = (CancellationToken::new(), scene.rules());
    let long = sandbox.run_at(None, &rules, scene.shell(script), &stop, &|_| {});
    let short = async {
        until_async("the script has begun", || scene.path("workspace/begun").exists()).await;
        told(&sandbox, &rules, scene.shell("true")).await;
        let is_held = [".git", ".fledge"].map(|name| scene.path("workspace").join(name).is_dir());
        fs::write(scene.path("workspace/go"), "").unwrap();
        is_held
    };
    let (ended, is_held) = tokio::join!(long, short);
    assert_eq!(is_held, [true, true], "the shorter one has removed what the longer one needs");
    assert_eq!(ended.output.text(400).trim(), "closed", "{ended:?}");
    let left = [".git", ".fledge"].map(|name| scene.path("workspace").join(name).exists());
    assert_eq!(left, [false, false]);
}

#[tokio::test]
async fn tools_that_write_into_their_home_get_a_private_copy_with_the_fetched_files() {
    let Some(sandbox) = sandbox(SandboxKind::Bubblewrap).await else { return };
    let scene = Scene::new();
    for (path, text) in [
        (".gradle/caches/modules-2/a.jar", "fetched"),
        (".gradle/gradle.properties", "secret"),
        (".m2/repository/a/a.pom", "fetched"),
        (".m2/settings.xml", "secret"),
        (".npm/_cacache/index", "fetched"),
    ] {
        let path = scene.path("home").join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    // Gradle, Maven, npm and cargo do this: they write locks, daemon logs and journals, and read
    // fetched files.
    let script = "set -e; cd $HOME; grep -q fetched .gradle/caches/modules-2/a.jar; mkdir -p .gradle/daemon/8.5 .gradle/caches/journal-1; \
        echo x >.gradle/daemon/8.5/log; echo x >.gradle/caches/journal-1/lock; grep -q fetched .m2/repository/a/a.pom; mkdir .m2/wrapper; \
        mkdir -p .npm/_logs; echo x >.npm/_logs/1; echo x >.npm/_cacache/tmp; : >.cargo/.package-cache; test -e .cargo/config.toml; \
        for kept in .gradle/caches/modules-2/a.jar .m2/repository/a/a.pom .cargo/config.toml; do ! (echo y >$kept) 2>/dev/null; done; \
        for secret in .gradle/gradle.properties .m2/settings.xml .cargo/credentials.toml; do ! grep -q secret $secret 2>/dev/null; done; echo fine";
    let ended = told(&sandbox, &scene.rules(), scene.shell(script)).await;
    assert_eq!((ended.end.clone(), ended.output.text(400).trim()), (ProcessEnd::Exited(0), "fine"), "{ended:?}");
    let left = [".gradle/daemon", ".gradle/caches/journal-1", ".m2/wrapper", ".npm/_logs", ".cargo/.package-cache"];
    assert!(left.iter().all(|path| !scene.path("home").join(path).exists()), "the real home was written");
}
