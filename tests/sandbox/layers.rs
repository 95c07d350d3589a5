//! Tests of layers over folders in bubblewrap: writes go into the layers, and the folders stay
//! unchanged.

use crate::sandbox::isolation::sandbox;
use crate::support::{Fledge, Model, Need, PATIENCE, say, shell as call_shell};
use fledge::process::sandbox::{Mount, MountView, Mounts, PathRules, PinnedPath, SandboxKind, ViewLayer};
use fledge::process::{Invocation, ProcessEnd, Variables};
use fledge::workspace::replica::{LayerEntry, LayerSides};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

fn shell(script: &str, dir: &Path) -> Invocation {
    Invocation {
        program: "/bin/sh".into(),
        args: vec!["-c".into(), script.into()],
        dir: dir.into(),
        env: Variables::new([("PATH".to_owned(), "/usr/bin:/bin".to_owned())]),
        timeout: Some(PATIENCE),
        grace: Duration::ZERO,
        linger: Duration::ZERO,
        log: None,
        log_limit: 0,
    }
}

#[tokio::test]
async fn what_is_written_goes_into_the_layer_and_the_folder_stays() {
    let Some(sandbox) = sandbox(SandboxKind::Bubblewrap).await else { return };
    // These characters are special in the mount options of a layer.
    let place = tempfile::Builder::new().prefix("a:b,c\\d ").tempdir_in(crate::support::place()).unwrap();
    let at = |path: &str| place.path().join(path);
    fs::create_dir_all(at("tree/deps/a")).unwrap();
    fs::write(at("tree/deps/a/old"), "old").unwrap();
    let layer = ViewLayer { lower: at("tree/deps"), between: Vec::new(), over: at("over"), at: at("tree/deps") };
    fs::create_dir_all(at("tree/tests")).unwrap();
    fs::write(at("tree/tests/kept"), "kept").unwrap();
    let pin = |path: &str, read_only| PinnedPath { at: at(path), read_only };
    let pins = vec![pin("tree/tests", false), pin("tree/tests/kept", true)];
    let helper = Path::new(env!("CARGO_BIN_EXE_fledge"));
    let view = match MountView::open(helper, &Mounts { pins, layers: vec![layer] }).await {
        Ok(view) => view,
        Err(why) => return Need::Sandbox.lacks(&format!("no layers over folders here: {why}")),
    };
    let mounts = vec![Mount { from: at("tree"), at: at("tree"), writable: true }];
    let rules = PathRules { mounts, view: Some(view), ..PathRules::default() };
    let run = async |script: &str| {
        let ended = sandbox.run_at(None, &rules, shell(script, &at("tree")), &CancellationToken::new(), &|_| {}).await;
        (ended.end, ended.output.text(4000))
    };
    let first = "echo new > deps/a/old; echo new > deps/b; cat deps/a/old; mknod deps/device c 1 3 || echo refused";
    let (end, said) = run(first).await;
    assert!(end == ProcessEnd::Exited(0) && said.contains("new\n") && said.contains("refused"), "{end:?}: {said}");
    // The next program sees the written files, and neither program can remove the folder.
    let (end, said) = run("cat deps/b && rm -rf deps/a && ! rmdir deps && ! mv deps away && ! umount deps").await;
    assert_eq!(end, ProcessEnd::Exited(0), "{said}");
    // Pinned files cannot be changed, but new files can be made beside them.
    let moves = "mv tests away; rm tests/kept; mv tests/kept x; ln -sf x tests/kept; echo x > x; mv x tests/kept; echo x > tests/kept; umount tests";
    let (end, said) = run(&format!("({moves}) 2>/dev/null; cat tests/kept && echo new > tests/new")).await;
    assert!(end == ProcessEnd::Exited(0) && said.ends_with("kept"), "{end:?}: {said}");
    assert!(at("tree/tests/new").exists());
    assert_eq!(fs::read_to_string(at("tree/deps/a/old")).unwrap(), "old");
    assert!(!at("tree/deps/b").exists() && at("over/upper/b").exists());
}

#[tokio::test]
async fn a_layer_that_cannot_be_mounted_says_why() {
    let Some(_wall) = sandbox(SandboxKind::Bubblewrap).await else { return };
    let place = crate::support::temp_dir();
    let at = |path: &str| place.path().join(path);
    let layer = ViewLayer { lower: at("nowhere"), between: Vec::new(), over: at("over"), at: at("nowhere") };
    let mounts = Mounts { pins: Vec::new(), layers: vec![layer] };
    let why = MountView::open(Path::new(env!("CARGO_BIN_EXE_fledge")), &mounts).await.unwrap_err();
    assert!(why.contains("nowhere"), "{why}");
}

#[test]
fn an_agent_fetches_into_a_layer_over_the_caches_of_tools_and_the_caches_stay() {
    if !Need::has_program("bwrap") {
        return Need::Sandbox.lacks("only behind bubblewrap are there layers over caches");
    }
    let caches = ["go/pkg/mod", ".npm", ".cargo/registry"];
    let fetch = caches.map(|cache| format!("echo new > ~/{cache}/deep/new && echo x > ~/{cache}/deep/old"));
    let found = caches.map(|cache| format!("cat ~/{cache}/deep/new"));
    let model = Model::new([
        call_shell(&fetch.join(" && ")),
        call_shell(&format!("{} && touch done", found.join(" && "))),
        say("Done."),
    ]);
    let mut fledge = Fledge::simple(&model);
    for cache in caches {
        fledge = fledge.file(&format!("../home/{cache}/deep/old"), "old");
    }
    let ended = fledge.run();
    ended.must_be(0, "verified");
    for cache in caches {
        assert_eq!(ended.file(&format!("../home/{cache}/deep/old")).as_deref(), Some("old"), "{cache}");
        assert_eq!(ended.file(&format!("../home/{cache}/deep/new")), None, "{cache}");
    }
}

#[tokio::test]
async fn all_that_a_layer_changes_is_found_without_a_look_at_what_is_below() {
    let Some(_wall) = sandbox(SandboxKind::Bubblewrap).await else { return };
    let place = crate::support::temp_dir();
    let at = |path: &str| place.path().join(path);
    let below =
        ["same", "written", "gone", "dir/a", "dir/b", "cleared/a", "cleared/b", "file", "folder/in/a", "undone"];
    for path in below {
        let path = at("lower").join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "old").unwrap();
    }
    fs::create_dir_all(at("room")).unwrap();
    let layer = ViewLayer { lower: at("lower"), between: Vec::new(), over: at("over"), at: at("room") };
    let mounts = Mounts { pins: Vec::new(), layers: vec![layer] };
    let view = match MountView::open(Path::new(env!("CARGO_BIN_EXE_fledge")), &mounts).await {
        Ok(view) => view,
        Err(why) => return Need::Sandbox.lacks(&format!("no layers over folders here: {why}")),
    };
    let sides = LayerSides { lower: at("lower"), upper: at("over/upper") };
    assert_eq!(sides.differences(|_| true).unwrap(), BTreeMap::new());
    let room = |path: &str| view.seen(&at("room")).join(path);
    fs::write(room("written"), "new").unwrap();
    fs::remove_file(room("gone")).unwrap();
    fs::remove_dir_all(room("dir")).unwrap();
    fs::remove_dir_all(room("cleared")).unwrap();
    fs::create_dir(room("cleared")).unwrap();
    fs::write(room("cleared/b"), "new").unwrap();
    fs::remove_file(room("file")).unwrap();
    fs::create_dir(room("file")).unwrap();
    fs::write(room("file/in"), "new").unwrap();
    fs::remove_dir_all(room("folder")).unwrap();
    fs::write(room("folder"), "new").unwrap();
    fs::create_dir(room("skipped")).unwrap();
    fs::write(room("skipped/new"), "new").unwrap();
    // A file that was written is reported even after its old content is back.
    fs::write(room("undone"), "new").unwrap();
    fs::write(room("undone"), "old").unwrap();
    let found = sides.differences(|path| path != Path::new("skipped")).unwrap();
    let word = |differs: &LayerEntry| if *differs == LayerEntry::Gone { "gone" } else { "written" };
    let found: Vec<String> =
        found.iter().map(|(path, differs)| format!("{} {}", path.display(), word(differs))).collect();
    let expected = [
        "cleared/a gone",
        "cleared/b written",
        "dir/a gone",
        "dir/b gone",
        "file gone",
        "file/in written",
        "folder written",
        "folder/in/a gone",
        "gone gone",
        "undone written",
        "written written",
    ];
    assert_eq!(found, expected);
    assert_eq!(fs::read_to_string(at("lower/written")).unwrap(), "old");
}
