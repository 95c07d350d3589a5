//! Tests of programs that are links into a home: in rooms they run and find their files, as in the
//! user's own shell.

use crate::support::{Fledge, Model, Need, say};
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

/// Makes the installations of a home as pipx, npm's global prefix, fnm and asdf make them, a
/// wrapper, and a toolchain that is itself a link. Each program fails without the files that it
/// needs.
fn install(home: &Path) {
    let put = |path: &str, text: &str| {
        let at = home.join(path);
        fs::create_dir_all(at.parent().unwrap()).unwrap();
        fs::write(&at, text.replace('~', home.to_str().unwrap())).unwrap();
        fs::set_permissions(at, fs::Permissions::from_mode(0o755)).unwrap();
    };
    let link = |path: &str, target: &str| {
        let at = home.join(path);
        fs::create_dir_all(at.parent().unwrap()).unwrap();
        symlink(target.replace('~', home.to_str().unwrap()), at).unwrap();
    };
    // The interpreter of a virtual environment is a link to another installation.
    put("pythons/3.13/bin/python3.13", "#!/bin/sh\n. ~/pythons/3.13/lib/start\n. \"$1\"\n");
    put("pythons/3.13/lib/start", "");
    put("own/venvs/black/pyvenv.cfg", "");
    link("own/venvs/black/bin/python", "~/pythons/3.13/bin/python3.13");
    put("own/venvs/black/bin/black", "#!~/own/venvs/black/bin/python\n. ~/own/venvs/black/lib/black\n");
    put("own/venvs/black/lib/black", "");
    link(".local/bin/black", "../../own/venvs/black/bin/black");
    put("prefix/lib/node_modules/eslint/dist/cli/index.js", "#!/bin/sh\n. ~/prefix/lib/node_modules/parser/index.js\n");
    put("prefix/lib/node_modules/parser/index.js", "");
    put("prefix/.npmrc", "_authToken=secret");
    link("prefix/bin/eslint", "../lib/node_modules/eslint/dist/cli/index.js");
    put("versions/v20/installation/bin/node", "#!/bin/sh\n. ~/versions/v20/installation/lib/node\n");
    put("versions/v20/installation/lib/node", "");
    link("shells/1", "~/versions/v20/installation");
    put(".asdf/shims/ruby", "#!/bin/sh\ngrep -q ruby \"$HOME/.tool-versions\"\n");
    put(".tool-versions", "ruby 3.3\n");
    put("apps/deep/run", "#!/bin/sh\n. ~/apps/deep/data\n");
    put("apps/deep/data", "");
    put(".local/bin/wrapped", "#!/bin/sh\nexec \"~/apps/deep/run\" \"$@\"\n");
    put("apps/last/run", "#!/bin/sh\n. ~/apps/last/data\n");
    put("apps/last/data", "");
    put(".local/bin/last", "#!/bin/sh\n\"~/apps/last/run\" \"$@\"\n");
    put("big/volta/real", "#!/bin/sh\n. ~/.volta/data\n");
    put("big/volta/data", "");
    link("big/volta/bin/yarn", "../real");
    link(".volta", "big/volta");
    put("diary", "secret");
    install_named_by_scripts(&put, &link);
}

/// Makes programs that only scripts of the project name, and mise.
///
/// The shims of mise are links to one program: the name of the link is the tool, and the nearest
/// configuration has its version. mise refuses untrusted configuration with variables, and writes
/// caches and its trust records.
fn install_named_by_scripts(put: &dyn Fn(&str, &str), link: &dyn Fn(&str, &str)) {
    put("apps/shellcheck/bin/shellcheck", "#!/bin/sh\n. ~/apps/shellcheck/lib/rules\n");
    put("apps/shellcheck/lib/rules", "");
    link(".local/bin/shellcheck", "../../apps/shellcheck/bin/shellcheck");
    put("apps/hadolint/bin/hadolint", "#!/bin/sh\n. ~/apps/hadolint/lib/rules\n");
    put("apps/hadolint/lib/rules", "");
    link(".local/bin/hadolint", "../../apps/hadolint/bin/hadolint");
    put("apps/mise/bin/mise", MISE);
    link(".local/bin/mise", "../../apps/mise/bin/mise");
    for tool in ["shfmt", "jql", "dprint"] {
        link(&format!(".local/share/mise/shims/{tool}"), "~/.local/bin/mise");
        let folder = format!(".local/share/mise/installs/{tool}/1.2.3");
        put(&format!("{folder}/bin/{tool}"), &format!("#!/bin/sh\n. ~/{folder}/data\n"));
        put(&format!("{folder}/data"), "");
        link(&format!(".local/share/mise/installs/{tool}/1"), "1.2.3");
    }
    put(".config/mise/conf.d/tools.toml", "[tools]\njql = \"1\"\n");
    put(".config/mise/config.toml", "[tools]\ndprint = \"1\"\n[env]\nLEVEL_OF_ALL = \"1\"\n");
    put(".config/mise/conf.d/own.toml", "[env]\nA = \"secret\"\n");
    link(".local/state/mise/trusted-configs/workspace-1", "~/../workspace");
}

const MISE: &str = r#"#!/bin/sh
tool=${0##*/} at=$PWD
while [ "$at" != / ] && [ ! -f "$at/mise.toml" ]; do at=$(dirname "$at"); done
state=${MISE_STATE_DIR:-$HOME/.local/state/mise}
if grep -qs '^.env' "$at/mise.toml"; then
    trusted=
    for link in "$state"/trusted-configs/*; do [ "$(readlink -f "$link")" != "$at" ] || trusted=1; done
    case ":$MISE_TRUSTED_CONFIG_PATHS:" in *":$at:"*) trusted=1 ;; esac
    [ "$trusted" ] || { echo "mise ERROR Config files in $at/mise.toml are not trusted." >&2; exit 1; }
fi
mkdir -p "$HOME/.cache/mise" "$state/tracked-configs" || exit 1
ln -sfn "$at" "$state/trusted-configs/own" || exit 1
own=$HOME/.config/mise
version=$(cat "$at/mise.toml" "$own/config.toml" "$own"/conf.d/*.toml 2>/dev/null | sed -n "s/^$tool = \"\(.*\)\"/\1/p" | head -n 1)
[ "$version" ] || { echo "mise ERROR No version is set for shim: $tool" >&2; exit 1; }
exec "${MISE_DATA_DIR:-$HOME/.local/share/mise}/installs/$tool/$version/bin/$tool" "$@"
"#;

/// The files of a project whose scripts name programs.
const FILES: [(&str, &str); 3] = [
    ("check.sh", "shellcheck check.sh\n"),
    ("Makefile", "lint:\n\t@hadolint Dockerfile\n"),
    ("mise.toml", "[tools]\nshfmt = \"1\"\n[env]\nLEVEL = \"1\"\n"),
];

const FOLDERS: [&str; 6] =
    [".local/share/mise/shims", ".local/bin", "prefix/bin", "shells/1/bin", ".asdf/shims", ".volta/bin"];
const STEPS: &str = "steps:
  - name: tools
    run: 'set -e; black; eslint; node; ruby; wrapped; last; yarn; shfmt; jql; dprint; sh check.sh; make -s lint'
";
const PRIVATE: &str = "  - name: private
    run: '! grep -q secret $OWN/diary $OWN/prefix/.npmrc $OWN/.config/mise/conf.d/own.toml 2>/dev/null'
";

fn search_path(home: &Path) -> String {
    FOLDERS.map(|folder| home.join(folder).to_str().unwrap().to_owned()).join(":") + ":/usr/bin:/bin"
}

#[test]
fn programs_behind_links_are_found_in_a_room_with_what_they_need() {
    let place = Fledge::new().lane("verify", &format!("{STEPS}{PRIVATE}"));
    let place = FILES.iter().fold(place, |place, (path, text)| place.file(path, text));
    let home = place.workspace().join("../home").canonicalize().unwrap();
    install(&home);
    let (path, own) = (search_path(&home), home.to_str().unwrap().to_owned());
    let place = place.env("PATH", &path).env("OWN", &own).args(&["lanes", "run", "verify", "--only", "tools"]);
    let by_hand = place.run();
    by_hand.must_exit(0);
    let clean = by_hand.again(&["lanes", "run", "verify", "--clean"]).env("PATH", &path).env("OWN", &own).run();
    clean.must_exit(0);
}

#[test]
fn programs_behind_links_are_found_behind_landlock() {
    let folder = crate::support::temp_dir_on_disk();
    let root = folder.path().canonicalize().unwrap();
    ["workspace/lanes", "home", "tmp"].iter().for_each(|path| fs::create_dir_all(root.join(path)).unwrap());
    install(&root.join("home"));
    fs::write(root.join("workspace/lanes/verify.yaml"), format!("{STEPS}{PRIVATE}")).unwrap();
    FILES.iter().for_each(|(path, text)| fs::write(root.join("workspace").join(path), text).unwrap());
    let covered = "test ! -e /usr/bin/bwrap || mount --bind /dev/null /usr/bin/bwrap || exit 99";
    let script = format!("{covered}; exec {} lanes run verify --clean -v", env!("CARGO_BIN_EXE_fledge"));
    let mut command = std::process::Command::new("unshare");
    command.args(["-rm", "sh", "-c", &script]).current_dir(root.join("workspace")).env_clear();
    let path = search_path(&root.join("home")) + ":/usr/sbin:/sbin";
    command.env("PATH", path).env("HOME", root.join("home")).env("OWN", root.join("home"));
    command.env("TMPDIR", root.join("tmp")).env("FLEDGE_STATE_DIR", root.join("state"));
    let Ok(ended) = command.output() else { return Need::Landlock.lacks("no `unshare`") };
    let said = String::from_utf8_lossy(&[ended.stdout, ended.stderr].concat()).into_owned();
    if !said.contains("sandbox landlock") {
        return Need::Landlock.lacks("no sandbox by Landlock");
    }
    assert!(ended.status.success(), "{said}");
}

#[test]
fn a_program_that_a_room_cannot_show_ends_the_run_before_a_model_is_asked() {
    let model = Model::new([say("Done.").always()]);
    let place = Fledge::simple(&model).lane("verify", "steps: [{ name: lint, run: 'true; tool --check' }]");
    let home = place.workspace().join("../home").canonicalize().unwrap();
    fs::create_dir_all(home.join(".ssh/bin")).unwrap();
    fs::create_dir_all(home.join(".local/bin")).unwrap();
    fs::write(home.join(".ssh/bin/tool"), "#!/bin/sh\n").unwrap();
    fs::set_permissions(home.join(".ssh/bin/tool"), fs::Permissions::from_mode(0o755)).unwrap();
    symlink("../../.ssh/bin/tool", home.join(".local/bin/tool")).unwrap();
    let path = format!("{}:/usr/bin:/bin", home.join(".local/bin").display());
    let ended = place.env("PATH", &path).run();
    let report = ended.must_be(5, "gate_errored");
    let message = report["message"].as_str().unwrap();
    let said =
        format!("a room does not show the program `tool` at {}/.local/bin/tool, which leads to ", home.display());
    assert!(message.contains("step `lint` of lane `verify`") && message.contains(&said), "{message}");
    assert_eq!(model.count(), 0, "{}", ended.story());
    let doctor = ended.again(&["doctor"]).env("PATH", &path).run();
    assert!(doctor.stdout.contains("✗ lane     verify: step `lint` cannot run in a room: "), "{}", doctor.story());
}

#[test]
fn a_wrapper_of_what_a_room_cannot_show_ends_the_run_before_a_model_is_asked() {
    let model = Model::new([say("Done.").always()]);
    let place = Fledge::simple(&model).lane("verify", "steps: [{ name: lint, run: tool --check }]");
    let home = place.workspace().join("../home").canonicalize().unwrap();
    for (path, text) in [(".ssh/tool", "#!/bin/sh\n"), (".local/bin/tool", "#!/bin/sh\n\"$HOME/.ssh/tool\" \"$@\"\n")] {
        let at = home.join(path);
        fs::create_dir_all(at.parent().unwrap()).unwrap();
        fs::write(&at, text).unwrap();
        fs::set_permissions(at, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let path = format!("{}:/usr/bin:/bin", home.join(".local/bin").display());
    let ended = place.env("PATH", &path).run();
    let report = ended.must_be(5, "gate_errored");
    let said = format!("a room does not show the program `tool` at {}/.ssh/tool", home.display());
    assert!(report["message"].as_str().unwrap().contains(&said), "{report}");
    assert_eq!(model.count(), 0, "{}", ended.story());
}

/// Makes a home with a program that leads to a path hidden in the sandbox.
fn with_hidden_tool(place: &Fledge) -> String {
    let home = place.workspace().join("../home").canonicalize().unwrap();
    for folder in [".ssh/bin", ".local/bin"] {
        fs::create_dir_all(home.join(folder)).unwrap();
    }
    fs::write(home.join(".ssh/bin/tool"), "#!/bin/sh\n").unwrap();
    fs::set_permissions(home.join(".ssh/bin/tool"), fs::Permissions::from_mode(0o755)).unwrap();
    symlink("../../.ssh/bin/tool", home.join(".local/bin/tool")).unwrap();
    format!("{}:/usr/bin:/bin", home.join(".local/bin").display())
}

#[test]
fn a_program_that_a_script_lacks_in_a_room_ends_the_run_before_a_model_is_asked() {
    long_test!();
    for (step, file, text) in [
        ("sh check.sh", "check.sh", "set -e\ntool --check\n"),
        ("make -s lint", "Makefile", "lint:\n\t@tool --check\n"),
        ("sh a.sh", "a.sh", "sh scripts/b.sh\n"),
        ("sh c.sh", "c.sh", "echo c && \"$HOME/.ssh/bin/tool\" --check\n"),
    ] {
        let model = Model::new([say("Done.").always()]);
        let place = Fledge::simple(&model).lane("verify", &format!("steps: [{{ name: lint, run: '{step}' }}]"));
        let place = place.file(file, text).file("scripts/b.sh", "tool --check\n");
        let path = with_hidden_tool(&place);
        let ended = place.env("PATH", &path).run();
        let report = ended.must_be(5, "gate_errored");
        let message = report["message"].as_str().unwrap();
        assert!(message.contains("a room does not show the program `tool` at "), "{step}: {message}");
        assert_eq!(model.count(), 0, "{step}: {}", ended.story());
    }
}

#[test]
fn a_script_that_does_without_a_program_which_a_room_does_not_show_is_judged() {
    let model = Model::new([say("Done.").always()]);
    let place = Fledge::simple(&model).lane("verify", "steps: [{ name: lint, run: sh check.sh }]");
    let place = place.file("check.sh", "if command -v tool; then tool --check; fi\n");
    let path = with_hidden_tool(&place);
    place.env("PATH", &path).run().must_exit(0);
    assert!(model.count() > 0);
}

#[test]
fn versions_that_a_room_does_not_show_end_the_run_before_a_model_is_asked() {
    let model = Model::new([say("Done.").always()]);
    let place = Fledge::simple(&model).lane("verify", "steps: [{ name: lint, run: jql }]");
    let home = place.workspace().join("../home").canonicalize().unwrap();
    install(&home);
    let tools = "[tools]\njql = \"1\"\n[env]\nTOKEN = \"secret\"\n";
    fs::write(home.join(".config/mise/conf.d/tools.toml"), tools).unwrap();
    let path = search_path(&home);
    let ended = place.env("PATH", &path).run();
    let report = ended.must_be(5, "gate_errored");
    let message = report["message"].as_str().unwrap();
    assert!(message.contains("a version manager finds no program"), "{message}");
    assert_eq!(model.count(), 0, "{}", ended.story());
    ended.again(&["lanes", "run", "verify"]).env("PATH", &path).run().must_exit(0);
}
