//! Dependencies that the work adds: the project's package manager installs them for the checks.

use crate::support::{Ended, Fledge, Model, say, shell};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use tempfile::TempDir;

/// Replaces npm: installs each dependency that the manifest names, and writes a lock file. Two
/// names fail.
const NPM: &str = r#"#!/bin/sh
case "$* $npm_config_ignore_scripts" in "install --ignore-scripts "*" true") ;; *) echo "npm error: $*"; exit 9 ;; esac
rm -rf node_modules/gone
for name in $(sed -n 's/.*"\([a-z-]*\)": "1".*/\1/p' package.json); do
    case $name in
    broken) echo "npm error 404 Not Found - GET https://registry.npmjs.org/broken" && exit 1 ;;
    far) echo "npm error code EAI_AGAIN" && exit 1 ;;
    esac
    mkdir -p "node_modules/$name" node_modules/.bin
    [ "$name" = thief ] && ln -sf ../thief/run node_modules/.bin/tool
    echo '{"version": "1.0.0"}' >"node_modules/$name/package.json"
    test -e src/new.js && touch "node_modules/$name/saw-the-work"
    echo "$name" >>package-lock.json
done
"#;
const OLD: &str = "{\"dependencies\": {\n\"old\": \"1\"\n}}\n";

/// Returns a project whose check requires the packages that `wanted` names.
fn project(model: &Model) -> (TempDir, Fledge) {
    let tools = crate::support::temp_dir();
    let npm = tools.path().join("npm");
    fs::write(&npm, NPM).unwrap();
    fs::set_permissions(&npm, fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", tools.path().display(), std::env::var("PATH").unwrap());
    let lane = "steps: [{ name: check, run: 'for name in $(cat want*); do test -e node_modules/$name || { echo Cannot find module $name; exit 1; }; done; ! ls node_modules/*/saw-the-work' }]";
    let place = Fledge::simple(model).lane("verify", lane).env("PATH", &path);
    let place = place.file("package.json", OLD).file(".gitignore", "node_modules\n").file("wanted", "old\n");
    (tools, place.file("node_modules/old/package.json", "{}").file("package-lock.json", "old\n"))
}

/// Adds a dependency without network, as an agent would, and code that needs it.
fn adds(name: &str) -> String {
    format!(
        "printf '{{\"dependencies\": {{\\n\"old\": \"1\",\\n\"{name}\": \"1\"\\n}}}}\\n' >package.json; echo {name} >>wanted; mkdir src; touch src/new.js"
    )
}

#[test]
fn a_new_dependency_is_installed_for_the_checks_and_in_the_workspace_after_a_pass() {
    long_test!();
    for sandbox in ["auto", "off"] {
        let model = Model::new([shell(&adds("new")), say("Done.")]);
        let (_tools, place) = project(&model);
        let ended = place.arg("--max-retries=0").arg(&format!("--sandbox={sandbox}")).run();
        let report = ended.must_be(0, "verified");
        let installed = &report["attempts"][0]["verdict"]["installed"];
        assert!(installed["packages"].to_string().contains("new 1.0.0"), "{installed}");
        assert!(ended.file("node_modules/new/package.json").is_some(), "{sandbox}: {}", ended.story());
        // The lock file belongs to the work, and the agent did not change it.
        assert_eq!(ended.file("package-lock.json").as_deref(), Some("old\n"), "{sandbox}");
        let warnings = report["warnings"].to_string();
        assert!(!ended.stderr.contains("new in folders of installed dependencies"), "{sandbox}: {}", ended.story());
        for said in [
            "the dependencies of the work were installed for the checks by `npm install",
            "fledge updated your installed dependencies with `npm",
        ] {
            assert!(warnings.contains(said), "{sandbox}: {warnings}");
        }
    }
}

#[test]
fn a_lane_in_the_workspace_finds_what_was_installed() {
    long_test!();
    let model = Model::new([shell(&adds("new")), say("Done.")]);
    let (_tools, place) = project(&model);
    let lane = "room: in-place\nsteps: [{ name: check, run: test -e node_modules/new }]";
    let ended = place.lane("verify", lane).run();
    ended.must_be(0, "verified");
}

#[test]
fn what_fledge_itself_has_installed_is_not_taken_for_the_agents() {
    long_test!();
    let model = Model::new([shell(&adds("new")), say("Done.")]);
    let (_tools, place) = project(&model);
    fs::remove_dir_all(place.workspace().join("node_modules")).unwrap();
    let ended = place.file("wanted", "").run();
    ended.must_be(0, "verified");
    assert!(ended.file("node_modules/new/package.json").is_some(), "{}", ended.story());
    assert!(!ended.stderr.contains("new in folders of installed dependencies"), "{}", ended.story());
}

#[test]
fn a_dependency_that_is_taken_out_is_gone_from_the_room() {
    long_test!();
    let model = Model::new([shell("echo '{}' >package.json"), say("Done.")]);
    let (_tools, place) = project(&model);
    let place = place.file("node_modules/gone/package.json", "{}").file("wanted", "gone\n");
    let ended = place.arg("--max-retries=0").run();
    ended.must_be(1, "gate_failed");
    assert!(ended.file("node_modules/gone/package.json").is_some(), "nothing was verified: {}", ended.story());
}

#[test]
fn what_cannot_be_installed_is_the_works_failure_and_told_with_the_output() {
    long_test!();
    let undo = "printf '{\"dependencies\": {\\n\"old\": \"1\"\\n}}\\n' >package.json; echo old >wanted";
    let model = Model::new([shell(&adds("broken")), say("Done."), shell(undo), say("Done.")]);
    let (_tools, place) = project(&model);
    let ended = place.arg("--max-retries=1").run();
    ended.must_be(0, "verified");
    let heard = model.asked()[2].newest();
    let said = "the work changed the dependencies, and with them `npm install --ignore-scripts";
    assert!(heard.contains(said) && heard.contains("404 Not Found"), "{heard}");
    assert_eq!(ended.file("node_modules/broken/package.json"), None);
}

#[test]
fn without_a_network_the_checks_run_on_what_is_there_and_say_what_they_miss() {
    long_test!();
    let model = Model::new([shell(&adds("far")), say("Done.")]);
    let (_tools, place) = project(&model);
    let ended = place.arg("--max-retries=0").run();
    let report = ended.must_be(1, "gate_failed");
    let verdict = report["attempts"][0]["verdict"].to_string();
    for said in ["new dependencies were not installed: `npm install", "`far` (new in package.json)"] {
        assert!(verdict.contains(said), "{said}: {verdict}");
    }
}

#[test]
fn a_setup_takes_the_place_of_the_command_that_would_be_derived() {
    long_test!();
    let model = Model::new([shell(&adds("broken")), say("Done.")]);
    let (_tools, place) = project(&model);
    let lane = "setup: [{ run: mkdir -p own && cp package.json own }]\ncache: [own]\nsteps: [{ name: check, run: grep -q broken own/package.json }]";
    let ended = place.lane("verify", lane).file(".gitignore", "node_modules\nown\n").run();
    let report = ended.must_be(0, "verified");
    assert!(report["attempts"][0]["verdict"]["installed"].is_null(), "{report}");
}

/// The lock file of a crate without dependencies.
const CARGO_LOCK: &str = "version = 3\n\n[[package]]\nname = \"sums\"\nversion = \"0.1.0\"\n";

/// Runs an agent that adds a dependency to the manifest of a crate. Uses the real cargo with
/// packages inside the project, so nothing is fetched.
fn after_a_new_crate(ignored: &str, step: &str) -> Ended {
    let tools = crate::attacks::tools::sysroot().join("bin");
    let path = format!("{}:{}", tools.display(), std::env::var("PATH").unwrap());
    let manifest = "[package]\nname = \"sums\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n[dependencies]\n";
    let add = "printf 'zz-pad = \"1\"\\n' >>Cargo.toml; mkdir -p tests; echo '#[test] fn is_there() { zz_pad::pad() }' >tests/pad.rs";
    let model = Model::new([shell(add), say("Done."), shell("sed -i s/zz-pad/zz-none/ Cargo.toml"), say("Done.")]);
    let lane = format!("steps: [{{ name: test, run: {step} }}]");
    let place = Fledge::simple(&model).env("PATH", &path).lane("verify", &lane).arg("--max-retries=0");
    let place = place.file("Cargo.toml", manifest).file("src/lib.rs", "#[test]\nfn works() {}\n");
    let place = place.file(
        ".cargo/config.toml",
        "[source.crates-io]\nreplace-with = \"here\"\n[source.here]\ndirectory = \"registry\"\n",
    );
    let place = place.file(".gitignore", ignored).file("Cargo.lock", CARGO_LOCK);
    let place = place
        .file("registry/zz-pad/Cargo.toml", "[package]\nname = \"zz-pad\"\nversion = \"1.0.0\"\nedition = \"2021\"\n");
    let place = place.file("registry/zz-pad/src/lib.rs", "pub fn pad() {}\n");
    place.file("registry/zz-pad/.cargo-checksum.json", "{\"files\": {}, \"package\": null}").run()
}

#[test]
fn an_ignored_lock_file_has_the_new_dependency_in_the_room() {
    long_test!();
    let ended = after_a_new_crate("target\nCargo.lock\n", "cargo test --quiet --locked --offline");
    let report = ended.must_be(0, "verified");
    assert_eq!(report["attempts"][0]["verdict"]["installed"]["commands"].to_string(), "[\"cargo fetch\"]");
    assert_eq!(ended.file("Cargo.lock").as_deref(), Some(CARGO_LOCK), "the user's own lock file is cargo's to change");
}

#[test]
fn a_tracked_lock_file_that_the_work_left_is_completed_in_the_room_with_a_note() {
    long_test!();
    let ended = after_a_new_crate("target\n", "cargo test --quiet --offline");
    let report = ended.must_be(0, "verified");
    let note =
        "Cargo.lock lacks the new dependencies; the checks completed a copy: run `cargo fetch` and commit the file";
    assert!(report["warnings"].to_string().contains(note), "{}", ended.story());
    assert_eq!(ended.file("Cargo.lock").as_deref(), Some(CARGO_LOCK));
    let locked = after_a_new_crate("target\n", "cargo test --quiet --locked --offline");
    locked.must_be(1, "gate_failed");
}

/// Replaces Go: adds the sums of manifests, and those of the modules in its arguments, as
/// `go mod download` does.
const GO: &str = r#"#!/bin/sh
case "$1 $2" in "mod download") ;; *) exit 1 ;; esac
shift 2
sed -n 's/^require \(.*\)/\1\/go.mod h1:YWJj=/p' go.mod >>go.sum
for module; do echo "$module h1:YWJj=" | tr @ ' ' >>go.sum; done
sort -u go.sum -o go.sum
"#;

/// Returns a project whose check needs the sum of a module that the agent adds.
fn of_go(model: &Model, sandbox: &str) -> (TempDir, Fledge) {
    let tools = crate::support::temp_dir();
    let go = tools.path().join("go");
    fs::write(&go, GO).unwrap();
    fs::set_permissions(&go, fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", tools.path().display(), std::env::var("PATH").unwrap());
    let lane = "steps: [{ name: test, run: 'test ! -e new || cat *.sum | grep ^github.com/new/new.v1.0.0.h1' }]";
    let place = Fledge::simple(model).env("PATH", &path).lane("verify", lane).arg("--max-retries=0");
    let place = place.file("go.mod", "module sums\n\ngo 1.22\n\n").file("go.sum", "");
    (tools, place.arg(&format!("--sandbox={sandbox}")))
}

/// Returns an agent without a network that requires a module, and so leaves `go.sum` as it is.
fn requiring() -> Model {
    Model::new([shell("echo require github.com/new/new v1.0.0 >>go.mod; touch new"), say("Done.")])
}

#[test]
fn sums_of_go_are_complete_in_the_room_since_go_does_not_complete_them_there() {
    long_test!();
    for sandbox in ["auto", "off"] {
        let model = requiring();
        let (_tools, place) = of_go(&model, sandbox);
        let ended = place.run();
        let report = ended.must_be(0, "verified");
        let note = "go.sum lacks the new dependencies; the checks completed a copy: run `go mod tidy` and commit";
        assert!(report["warnings"].to_string().contains(note), "{sandbox}: {}", ended.story());
        assert_eq!(ended.file("go.sum").as_deref(), Some(""), "{sandbox}");
    }
    let model = requiring();
    let (_tools, place) = of_go(&model, "auto");
    fs::remove_file(place.workspace().join("go.sum")).unwrap();
    let ended = place.run();
    let warnings = ended.must_be(0, "verified")["warnings"].to_string();
    assert!(warnings.contains("go.sum is not in the work; the checks made one: run `go mod tidy`"), "{warnings}");
}

#[test]
fn a_package_that_takes_the_place_of_an_installed_program_is_refused() {
    long_test!();
    for sandbox in ["auto", "off"] {
        let model = Model::new([shell(&adds("thief")), say("Done.")]);
        let (_tools, place) = project(&model);
        let tool = place.workspace().join("node_modules/.bin/tool");
        fs::create_dir_all(tool.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink("../old/run", &tool).unwrap();
        let ended = place.arg("--max-retries=0").arg(&format!("--sandbox={sandbox}")).run();
        let report = ended.must_be(1, "gate_failed");
        let verdict = report["attempts"][0]["verdict"]["feedback"].to_string();
        assert!(verdict.contains("`.bin/tool` would come from `thief` instead of `old`"), "{sandbox}: {verdict}");
        assert_eq!(fs::read_link(&tool).unwrap().to_str(), Some("../old/run"));
    }
}

#[test]
fn a_manifest_that_is_a_program_runs_only_where_the_agent_has_a_network() {
    long_test!();
    let wrapper =
        "#!/bin/sh\ncat pom.xml >seen\ntouch ../ran 2>/dev/null\necho \"BUILD FAILURE of $(cat pom.xml)\"\nexit 1\n";
    let lane = "steps: [{ name: check, run: 'cat *.xml' }]";
    let tried = |flag: &str| {
        let model = Model::new([shell("echo new >pom.xml"), say("Done.")]);
        let place = Fledge::simple(&model).lane("verify", lane).file("pom.xml", "old").file("mvnw", wrapper);
        let mvnw = place.workspace().join("mvnw");
        fs::set_permissions(mvnw, fs::Permissions::from_mode(0o755)).unwrap();
        place.args(&["run", "task.md", "--max-retries=0", flag]).run()
    };
    let refused = tried("--network=deny");
    let warnings = refused.must_be(0, "verified")["warnings"].to_string();
    assert!(warnings.contains("pom.xml changed and is a program, so fledge does not run it with"), "{warnings}");
    for flag in ["--network=allow", "--allow-edit=pom.xml"] {
        let ran = tried(flag);
        let feedback = ran.must_be(1, "gate_failed")["attempts"][0]["verdict"]["feedback"].to_string();
        assert!(feedback.contains("BUILD FAILURE of new"), "{flag}: {feedback}");
    }
}

#[test]
fn a_requirement_that_is_a_folder_or_an_option_is_refused_before_the_install() {
    long_test!();
    let python = "#!/bin/sh\ntouch ran; echo installed\n";
    for line in ["./pkg", "-e ./pkg", "--no-binary=six"] {
        let model =
            Model::new([shell(&format!("echo six >requirements.txt; echo '{line}' >>requirements.txt")), say("Done.")]);
        let lane = "steps: [{ name: check, run: python3 --version }]";
        let place = Fledge::simple(&model).lane("verify", lane).arg("--max-retries=0").file(".gitignore", ".venv\n");
        let place = place.file("requirements.txt", "six\n").file(".venv/pyvenv.cfg", "home = /usr/bin\n");
        let place = place.file(".venv/bin/python", python).file(".venv/bin/pip", python);
        let ended = place.run();
        ended.must_be(1, "gate_failed");
        let said =
            format!("requirements.txt: `{line}`: fledge installs only packages from the registry for the checks");
        assert!(ended.stderr.contains(&said), "{}", ended.story());
        assert_eq!(ended.file("ran"), None, "{line}");
    }
}

#[test]
fn an_installation_without_layers_leaves_the_caches_of_other_programs_as_they_are() {
    let model = Model::new([shell(&adds("new")), say("Done.")]);
    let (_tools, place) = project(&model);
    let lane = "steps: [{ name: check, run: 'ls node_modules/new; case \"$CARGO_HOME$GOPATH\" in *fetched*) exit 1 ;; esac; case \"$npm_config_cache\" in *fetched*) ;; *) exit 1 ;; esac' }]";
    place.lane("verify", lane).arg("--sandbox=off").arg("--max-retries=0").run().must_be(0, "verified");
}

#[test]
fn a_manifest_that_no_installer_runs_is_named_beside_the_command_that_ran() {
    long_test!();
    let script = format!("{}; echo 'gem \"b\"' >>Gemfile", adds("new"));
    let model = Model::new([shell(&script), say("Done.")]);
    let (_tools, place) = project(&model);
    let ended = place.file("Gemfile", "source 'https://rubygems.org'\n").arg("--max-retries=0").run();
    let warnings = ended.must_be(0, "verified")["warnings"].to_string();
    for said in
        ["were installed for the checks by `npm install", "Gemfile changed and is a program, so fledge does not run it"]
    {
        assert!(warnings.contains(said), "{warnings}");
    }
    let left = ["installed", "refreshed"].map(|name| ended.run_folder().join(name));
    assert!(left.iter().all(|folder| !folder.exists()), "the run is over: {left:?}");
}

#[test]
fn an_installation_for_hold_out_checks_alone_is_not_told_to_the_model() {
    long_test!();
    for (code, fails) in [(0, false), (1, true)] {
        let model = Model::new([
            shell("touch done; sed -i 's/= .*/= [\"rich\"]/' pyproject.toml"),
            say("Done."),
            say("I do not know."),
        ]);
        let tools = crate::support::temp_dir();
        let hatch = tools.path().join("hatch");
        fs::write(&hatch, format!("#!/bin/sh\necho \"hatch: $*\"; exit {}\n", u8::from(fails))).unwrap();
        fs::set_permissions(&hatch, fs::Permissions::from_mode(0o755)).unwrap();
        let path = format!("{}:{}", tools.path().display(), std::env::var("PATH").unwrap());
        let place = Fledge::simple(&model).env("PATH", &path).arg("--max-retries=1");
        let place = place.file("pyproject.toml", "[project]\nname = \"a\"\ndependencies = []\n");
        let held = "steps: [{ name: held, run: 'hatch run secret-env:check || true' }]";
        let ended = place.file("../held/hidden.yaml", held).arg("--holdout=../held").run();
        ended.must_exit(code);
        let asked: String = model.asked().iter().map(|asked| asked.body.to_string()).collect();
        let report = ended.report();
        let verdicts = report["attempts"].to_string();
        let said = "an installation for hold-out checks";
        assert!(verdicts.contains(said) && !verdicts.contains("secret-env"), "{verdicts}\n{}", ended.story());
        assert!(!asked.contains("secret-env") && asked.contains(said) == fails, "{asked}");
    }
}
