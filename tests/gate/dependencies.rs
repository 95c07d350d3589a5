//! Dependencies installed beside the tree: a room has them as they were before the agent started,
//! and nothing changes them.

use crate::support::{BEHIND_LANDLOCK, Fledge, Model, Need, say, shell};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

/// A check that is a package of the project and writes a file into `node_modules`.
const CHECK: &str = "grep -q right answer && echo run >> node_modules/cache";
const LANE: &str = "steps: [{ name: check, run: sh node_modules/check/run }]";

fn project(model: &Model, lane: &str) -> Fledge {
    let files = Fledge::simple(model).lane("verify", lane).file(".gitignore", "node_modules\nCargo.lock\n");
    files.file("package.json", "{}").file("answer", "wrong").file("node_modules/check/run", CHECK)
}

#[test]
fn a_room_has_what_is_installed_and_leaves_nothing_there() {
    long_test!();
    for sandbox in ["auto", "off"] {
        let model = Model::new([shell("echo right > answer"), say("Done.")]);
        let ended = project(&model, LANE).arg(&format!("--sandbox={sandbox}")).run();
        ended.must_be(0, "verified");
        assert_eq!(ended.file("node_modules/cache"), None, "{sandbox}: {}", ended.story());
    }
}

#[test]
fn what_the_agent_does_to_a_package_reaches_neither_the_room_nor_the_folder() {
    long_test!();
    let attacks = [
        "echo true > node_modules/check/run",
        "rm -rf node_modules/* && mkdir node_modules/check && echo true > node_modules/check/run",
        "mv node_modules/check node_modules/old && ln -s /bin node_modules/check",
        "mkdir -p own/check && echo true > own/check/run && (rmdir node_modules; mv node_modules away; ln -s own node_modules) 2>&1 || true",
        "printf '!node_modules\\n' > .gitignore && echo true > node_modules/check/run",
    ];
    for attack in attacks {
        let model = Model::new([shell(attack), say("Done.")]);
        let ended = project(&model, LANE).arg("--max-retries=0").run();
        ended.must_be(1, "gate_failed");
        assert_eq!(ended.file("node_modules/check/run").as_deref(), Some(CHECK), "{attack}: {}", ended.story());
    }
    // Without a sandbox the agent can write to the folder. The room has a copy from before.
    let model = Model::new([shell(attacks[0]), say("Done.")]);
    let ended = project(&model, LANE).arg("--max-retries=0").arg("--sandbox=off").run();
    ended.must_be(1, "gate_failed");
    assert!(ended.stderr.contains("the agent works directly on your node_modules"), "{}", ended.story());
}

#[test]
fn the_agent_finds_its_own_changes_again_after_a_gate() {
    long_test!();
    let model = Model::new([
        shell("echo mine > node_modules/own"),
        say("Done."),
        shell("cat node_modules/own && echo right > answer"),
        say("Done."),
    ]);
    let ended = project(&model, LANE).run();
    ended.must_be(0, "verified");
    assert!(model.asked()[3].newest().contains("mine"), "{}", model.asked()[3].newest());
    assert_eq!(ended.file("node_modules/own"), None);
}

#[test]
fn a_lane_in_the_workspace_changes_no_package_either() {
    let model = Model::new([shell("echo right > answer; echo true > node_modules/check/run"), say("Done.")]);
    let ended = project(&model, &format!("room: in-place\n{LANE}")).run();
    ended.must_be(0, "verified");
    assert_eq!(ended.file("node_modules/cache"), None, "{}", ended.story());
    assert_eq!(ended.file("node_modules/check/run").as_deref(), Some(CHECK));
}

#[test]
fn a_lane_in_the_workspace_without_layers_has_the_packages_from_before() {
    for (work, code) in [("true", 1), ("echo right > answer", 0)] {
        let model = Model::new([shell(&format!("echo true > node_modules/check/run; {work}")), say("Done.")]);
        let place = project(&model, &format!("room: in-place\n{LANE}")).arg("--sandbox=off").arg("--max-retries=0");
        let ended = place.run();
        ended.must_exit(code);
        let said = "fledge put the dependencies back that were changed: node_modules";
        assert!(ended.report().to_string().contains(said), "{}", ended.story());
        assert_eq!(ended.file("node_modules/check/run").as_deref(), Some(CHECK), "{}", ended.story());
    }
}

#[test]
fn an_environment_of_python_names_the_room_that_it_is_copied_to() {
    long_test!();
    if !Need::has_program("python3") {
        return Need::Python.lacks("no python3");
    }
    let check = |starter: &[&str], sandbox: &str| {
        let model = Model::new([shell("echo 'RIGHT = True' > src/own.py"), say("Done.")]);
        let place = Fledge::simple(&model).lane("verify", "steps: [{ name: check, run: .venv/bin/check }]");
        let place =
            place.file(".gitignore", ".venv\n").file("pyproject.toml", "").file("src/own.py", "RIGHT = False\n");
        let root = place.workspace().canonicalize().unwrap();
        let made = Command::new("python3").args(["-m", "venv", "--without-pip", ".venv"]).current_dir(&root).status();
        if !made.unwrap().success() {
            return Need::Python.lacks("no module venv");
        }
        let (root, environment) = (root.display().to_string(), root.join(".venv"));
        let library = fs::read_dir(environment.join("lib")).unwrap().next().unwrap().unwrap().path();
        fs::write(library.join("site-packages/own.pth"), format!("{root}/src\n")).unwrap();
        let own = "import os, own\nassert own.RIGHT and own.__file__.startswith(os.getcwd()), own.__file__\n";
        fs::write(environment.join("bin/check"), format!("#!{root}/.venv/bin/python\n{own}")).unwrap();
        fs::set_permissions(environment.join("bin/check"), Permissions::from_mode(0o755)).unwrap();
        place.arg(&format!("--sandbox={sandbox}")).under(starter).run().must_be(0, "verified");
    };
    check(&[], "auto");
    check(&[], "off");
    if Command::new("unshare").args(["-rm", "true"]).status().is_ok_and(|it| it.success()) {
        check(BEHIND_LANDLOCK, "auto");
    }
}

#[test]
fn a_room_of_a_worktree_has_the_packages_and_the_path_of_the_checkout() {
    long_test!();
    let model = Model::new([shell("echo right > answer"), say("Done.")]);
    let lane = "steps: [{ name: check, run: 'test $PWD = $WHERE && sh node_modules/check/run' }]";
    let place = project(&model, lane).committed();
    let path = place.workspace().canonicalize().unwrap();
    let ended = place.env("WHERE", path.to_str().unwrap()).arg("--isolation=worktree").run();
    ended.must_be(0, "verified");
    assert_eq!((ended.file("answer").as_deref(), ended.file("node_modules/cache")), (Some("wrong"), None));
}

#[test]
fn a_lock_file_that_git_ignores_comes_along_as_it_was() {
    let model = Model::new([shell("echo changed > Cargo.lock"), say("Done.")]);
    let lane = "steps: [{ name: lock, run: grep -q before Cargo.lock }]";
    let ended = project(&model, lane).file("Cargo.toml", "").file("Cargo.lock", "before").run();
    ended.must_be(0, "verified");
}

#[test]
fn an_included_folder_comes_along() {
    let model = Model::new([shell("echo changed > data/deep/x"), say("Done.")]);
    let lane = "include_ignored: [data, key]\nsteps: [{ name: data, run: grep -q before data/deep/x && test -f key }]";
    let place = project(&model, lane).file(".gitignore", "data\nkey\n").file("data/deep/x", "before");
    let ended = place.file("key", "").run();
    ended.must_be(0, "verified");
    assert_eq!(ended.file("data/deep/x").as_deref(), Some("before"));
}

#[test]
fn a_folder_with_packages_inside_cannot_be_moved_away_by_the_agent() {
    let attack = "mv web old; mkdir -p web/node_modules/check; echo true > web/node_modules/check/run; true";
    let model = Model::new([shell(attack), say("Done."), say("Done."), say("Done."), say("Done.")]);
    let lane = "steps: [{ name: check, run: sh web/node_modules/check/run }]";
    let place = project(&model, lane).file("web/package.json", "{}").file("web/node_modules/check/run", CHECK);
    let ended = place.arg("--max-retries=0").run();
    ended.must_be(1, "gate_failed");
    assert_eq!(ended.file("web/node_modules/check/run").as_deref(), Some(CHECK), "{}", ended.story());
}

#[test]
fn what_an_agent_makes_in_the_place_of_packages_is_in_no_later_room() {
    long_test!();
    let lane = "steps: [{ name: check, run: 'test -e node_modules/own || test ! -e other' }]";
    let poison = "mkdir node_modules && touch node_modules/own";
    let model = Model::new([shell(poison), say("Done."), shell("touch other"), say("Done.")]);
    let place = Fledge::simple(&model).lane("verify", lane).file("package.json", "{}");
    let ended = place.file(".gitignore", "node_modules\n").run();
    let report = ended.must_be(0, "verified");
    let said = "new in folders of installed dependencies, and not used by any check: node_modules;";
    assert!(report["warnings"].to_string().contains(said), "{report}");
    let ended = ended.again(&["run", "task.md", "--max-retries=0"]).anthropic(&model).run();
    ended.must_exit(1);
    assert!(ended.stderr.contains("`node_modules` is not in the room of the checks"), "{}", ended.story());
}
