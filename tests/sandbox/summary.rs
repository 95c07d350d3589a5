//! Tests of the sandbox in reports and summaries: its kind, and the effects of a run without it.

use crate::support::{Fledge, Model, Need, say, shell};
use serde_json::json;

fn model() -> Model {
    Model::new([shell("test -e $HOME/diary && echo it was seen; echo x > done"), say("Done.")])
}

/// Returns the last message to the model.
fn told(model: &Model) -> String {
    model.asked().last().unwrap().newest()
}

fn scene(model: &Model) -> Fledge {
    Fledge::simple(model).file("../home/diary", "secret")
}

#[test]
fn the_sandbox_that_stood_is_in_the_report_and_in_the_summary() {
    let model = model();
    let ended = scene(&model).run();
    let report = ended.must_be(0, "verified");
    assert!([json!("bubblewrap"), json!("landlock")].contains(&report["sandbox"]), "{}", ended.story());
    assert!(report["network"].is_null() && ended.stderr.contains("  sandbox  "), "{}", ended.story());
    assert!(!told(&model).contains("was seen\\n"), "{}", told(&model));
}

#[test]
fn without_a_sandbox_and_with_the_network_it_is_said() {
    let (bare, open) = (model(), model());
    let ended = scene(&bare).arg("--sandbox=off").run();
    assert_eq!(ended.must_be(0, "verified")["sandbox"], "off");
    assert!(told(&bare).contains("was seen\\n"), "{}", told(&bare));
    let ended = scene(&open).arg("--network=allow").run();
    assert_eq!(ended.must_be(0, "verified")["network"], true);
    assert!(ended.stderr.contains(", with the network"), "{}", ended.story());
}

#[test]
fn gate_steps_have_a_private_home_and_temporary_folder_without_a_sandbox_too() {
    let steps = "steps: [{ name: own, run: 'test -f done && test ! -e $HOME/diary && test -e $HOME/.cargo/config.toml && echo x >$HOME/x && echo x >$TMPDIR/x' }]\n";
    for room in ["clean", "in-place"] {
        let model = Model::new([shell("echo x > done"), say("Done.")]);
        let scene =
            scene(&model).lane("verify", &format!("room: {room}\n{steps}")).file("../home/.cargo/config.toml", "");
        let ended = scene.arg("--sandbox=off").env("TMPDIR", "/nowhere").run();
        ended.must_be(0, "verified");
        assert_eq!(ended.file("../home/x"), None, "{room}");
    }
}

#[test]
fn a_checkout_of_somebody_else_is_refused_before_anything_is_spent() {
    let model = Model::new([]);
    let scene = scene(&model);
    let chown = std::process::Command::new("chown").args(["-R", "65534"]).arg(scene.workspace()).output().unwrap();
    if !chown.status.success() {
        Need::Root.lacks("only root can give a folder to another user");
        return;
    }
    let ended = scene.run();
    ended.must_exit(5);
    for said in ["belongs to user 65534, but fledge runs as user 0", "setpriv --reuid 65534", "chown -R 0"] {
        assert!(ended.stderr.contains(said), "{said}: {}", ended.story());
    }
    let doctor = ended.again(&["doctor"]).run();
    assert!(doctor.code != Some(0) && doctor.stdout.contains("belongs to user 65534"), "{}", doctor.story());
}

/// Runs a lane in a mount namespace that hides bubblewrap. Returns `None` if the namespace or
/// Landlock is not available.
fn behind_landlock(script: &str, lane: &str) -> Option<(tempfile::TempDir, String)> {
    let folder = crate::support::temp_dir_on_disk();
    let at = |path: &str| folder.path().join(path);
    ["workspace/lanes", "home", "tmp"].iter().for_each(|path| std::fs::create_dir_all(at(path)).unwrap());
    std::fs::write(at("workspace/lanes/verify.yaml"), lane).unwrap();
    let covered =
        "for b in /usr/bin/bwrap /usr/local/bin/bwrap; do test ! -e $b || mount --bind /dev/null $b || exit 99; done";
    let script = format!("{covered}; {script}\nexec {} lanes run verify --clean -v", env!("CARGO_BIN_EXE_fledge"));
    let mut command = std::process::Command::new("unshare");
    command.args(["-rm", "sh", "-c", &script]).current_dir(at("workspace")).env_clear();
    command.env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").env("HOME", at("home")).env("TMPDIR", at("tmp"));
    let ended = command.env("FLEDGE_STATE_DIR", at("state")).output().ok()?;
    let said = String::from_utf8_lossy(&[ended.stdout, ended.stderr].concat()).into_owned();
    if !said.contains("sandbox landlock") {
        Need::Landlock.lacks(&format!("no sandbox by Landlock: {}", said.lines().next_back().unwrap_or_default()));
        return None;
    }
    assert!(ended.status.success(), "{said}");
    Some((folder, said))
}

#[test]
fn nothing_of_what_homes_and_temporary_folders_held_is_left_behind_landlock() {
    let lane = "steps: [{ name: leave, run: 'echo x > $HOME/left; echo x > $TMPDIR/left' }]";
    let Some((folder, said)) = behind_landlock("", lane) else { return };
    let left: Vec<_> = std::fs::read_dir(folder.path().join("tmp")).unwrap().flatten().collect();
    assert!(left.is_empty(), "{left:?}: {said}");
}

/// Leaves a file open for the programs started next.
const LEFT_OPEN: &str = "exec 9>../left";
/// A lane with a step that fails if it can write to that file.
const CLOSED: &str =
    "steps: [{ name: closed, run: 'test ! -e /proc/self/fd/9 && if (echo x >&9) 2>/dev/null; then exit 1; fi' }]";

#[test]
fn what_was_left_open_for_fledge_is_closed_behind_the_sandbox() {
    let leaves = format!("{LEFT_OPEN}; exec \"$@\"");
    let place = Fledge::new().lane("verify", CLOSED).args(&["lanes", "run", "verify", "--clean"]);
    place.under(&["sh", "-c", &leaves, "sh"]).run().must_exit(0);
    let Some((folder, said)) = behind_landlock(LEFT_OPEN, CLOSED) else { return };
    assert_eq!(std::fs::read(folder.path().join("left")).unwrap(), b"", "{said}");
}

#[test]
fn temporary_files_behind_landlock_are_on_a_disk_where_there_is_one() {
    let kind = std::process::Command::new("stat").args(["-f", "-c", "%T", "/var/tmp"]).output();
    if kind.is_ok_and(|said| String::from_utf8_lossy(&said.stdout).trim() == "tmpfs") {
        return Need::Landlock.lacks("`/var/tmp` is in memory");
    }
    let lane = "steps: [{ name: kind, run: 'if stat -f -c %T $TMPDIR $HOME | grep tmpfs; then exit 1; fi; echo x > $TMPDIR/x' }]";
    behind_landlock("mount -t tmpfs none ../tmp || exit 99", lane);
}

#[test]
fn a_room_behind_landlock_has_copies_of_what_is_installed() {
    let files = "mkdir -p node_modules/a; echo {} >package.json; echo node_modules >.gitignore; echo 'echo x >node_modules/b' >node_modules/a/run";
    let lane = "steps: [{ name: check, run: sh node_modules/a/run }]";
    let Some((folder, said)) = behind_landlock(files, lane) else { return };
    assert!(!folder.path().join("workspace/node_modules/b").exists(), "{said}");
}

#[test]
fn go_and_uv_can_write_their_caches_behind_landlock() {
    let caches = "mkdir ../go ../uv; export GOCACHE=\"$PWD/../go\" UV_CACHE_DIR=\"$PWD/../uv\"";
    let lane = "steps: [{ name: check, run: 'mkdir -p \"$GOCACHE/00\" \"$UV_CACHE_DIR/00\"' }]";
    let Some((folder, said)) = behind_landlock(caches, lane) else { return };
    for cache in ["go/00", "uv/00"] {
        assert!(!folder.path().join(cache).exists(), "{cache}: {said}");
    }
}

#[test]
fn git_works_in_a_room_behind_landlock_and_finds_nothing_of_other_branches() {
    let make = "git init -q -b main; git config user.name a; git config user.email a@localhost; git add -A; git commit -qm one; git tag v1; \
        git checkout -q -b other; echo s3cret >hidden; git add -A; git commit -qm two; git checkout -q main";
    // The object is that of the file `hidden`.
    let check = "test \"$(git describe --tags)\" = v1 && git diff --exit-code && test -z \"$(git status --porcelain)\" && \
        git commit --allow-empty -qm x && ! git cat-file -e 7a55f9196cb7798b4974bd4f0a9d3f5c4329c734";
    behind_landlock(make, &format!("steps: [{{ name: check, run: '{check}' }}]"));
}
