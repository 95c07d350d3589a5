//! `fledge doctor`: the needs of a run, the missing ones, and their fixes, without a run.

use crate::support::{Ended, Fledge, KEY, Model, git, hang, needs};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;

fn checks(ended: &Ended) -> Vec<Value> {
    let all: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(all["healthy"], ended.code == Some(0), "{}", ended.story());
    let checks = all["checks"].as_array().unwrap().clone();
    let ids: std::collections::BTreeSet<&str> = checks.iter().map(|check| check["id"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), checks.len(), "an id stands twice: {}", ended.story());
    for check in &checks {
        let is_mended = check["fix"].as_str().is_some_and(|fix| !fix.is_empty());
        assert_eq!(is_mended, check["status"] != "ok", "{check}");
    }
    checks
}

/// Returns the health of the first check of a kind, and its texts.
fn about(checks: &[Value], what: &str) -> (String, String, String) {
    let is_about = |check: &&Value| check["id"].as_str().unwrap().split('.').next() == Some(what);
    let found = checks.iter().find(is_about).unwrap_or_else(|| panic!("nothing of {what}"));
    ["status", "says", "fix"].map(|key| found[key].as_str().unwrap_or_default().to_owned()).into()
}

#[test]
fn where_all_is_there_a_run_can_begin() {
    let lane = "canary: pytest\nsteps: [{ name: test, run: 'true' }]\n";
    let place = Fledge::new().lane("verify", lane).env("ANTHROPIC_API_KEY", KEY);
    let ended = place.args(&["doctor", "--json"]).run();
    let checks = checks(&ended);
    ended.must_exit(0);
    let git = about(&checks, "git");
    assert!(git.0 == "ok" && git.1.starts_with("git version 2."), "{git:?}");
    let model = ("ok", "claude-sonnet-4-5 by default, its key is in ANTHROPIC_API_KEY", "");
    assert_eq!(about(&checks, "model"), (model.0.into(), model.1.into(), model.2.into()));
    let lane = about(&checks, "lane");
    assert_eq!(
        (lane.0.as_str(), lane.1.as_str()),
        ("ok", "verify: 1 step; a pass rests on exit codes, counts that runners print, and a canary (pytest)")
    );
    assert!(about(&checks, "state").1.contains(" MiB free on "), "{}", ended.story());
    assert!(["ok", "warn"].contains(&about(&checks, "sandbox").0.as_str()), "{}", ended.story());
    assert!(ended.runs().is_empty() && !ended.traces().contains(KEY), "{}", ended.story());
    let text = ended.again(&["doctor"]).env("ANTHROPIC_API_KEY", KEY).run();
    assert!(text.code == Some(0) && text.stdout.contains("✓ git      git version 2."), "{}", text.story());
}

#[test]
fn what_is_in_the_way_of_a_run_is_a_problem_with_the_line_that_mends_it() {
    let bare = Fledge::new().args(&["doctor", "--json"]).run();
    bare.must_exit(1);
    let checks_of_bare = checks(&bare);
    let model = about(&checks_of_bare, "model");
    assert!(model.0 == "fail" && model.2.starts_with("set ANTHROPIC_API_KEY or "), "{model:?}");
    assert_eq!(about(&checks_of_bare, "lanes").0, "fail");
    let wrong = Fledge::new().lane("verify", "steps: [{ name: a, run: no-such-program }]").lane("bad", "stesp: []");
    let wrong =
        wrong.file("fledge.yaml", "protct: []\n").env("FLEDGE_STATE_DIR", "state").env("ANTHROPIC_API_KEY", KEY);
    let ended = wrong.args(&["doctor", "--json"]).run();
    ended.must_exit(1);
    let checks = checks(&ended);
    for (what, says) in [
        ("state", "is inside the project"),
        ("config", "unknown key `protct`"),
        ("lanes", "unknown key `stesp`"),
        ("lane", "there is no program `no-such-program` in PATH"),
    ] {
        let (health, said, mend) = about(&checks, what);
        assert!(health == "fail" && said.contains(says) && !mend.is_empty(), "{what}: {said} ({mend})");
    }
    let git = about(&checks_of_missing_git(), "git");
    assert_eq!((git.0.as_str(), git.2.as_str()), ("fail", "install git 2.30 or newer and add it to PATH"));
}

fn checks_of_missing_git() -> Vec<Value> {
    let place = Fledge::new().lane("verify", &needs("x"));
    let empty = place.workspace().join("../empty");
    std::fs::create_dir(&empty).unwrap();
    checks(&place.env("PATH", empty.to_str().unwrap()).args(&["doctor", "--json"]).run())
}

#[test]
fn what_makes_a_pass_weaker_is_a_warning() {
    let place = Fledge::new().lane("verify", &format!("room: in-place\n{}", needs("x"))).env("OPENAI_API_KEY", KEY);
    let config = "sandbox: off\nmodels: { far: { provider: anthropic, model: m } }\n";
    let ended = place.file("../home/.config/fledge/config.yaml", config).args(&["doctor", "--json"]).run();
    ended.must_exit(0);
    let checks = checks(&ended);
    let health: Vec<(&str, &str)> = checks
        .iter()
        .map(|check| (check["id"].as_str().unwrap().split('.').next().unwrap(), check["status"].as_str().unwrap()))
        .collect();
    for what in ["sandbox", "lane"] {
        assert!(health.contains(&(what, "warn")), "{what}: {}", ended.story());
    }
    assert!(health.contains(&("model", "ok")) && health.contains(&("model", "warn")), "{}", ended.story());
    assert!(checks.iter().any(|check| check["fix"] == json!("set ANTHROPIC_API_KEY")), "{}", ended.story());
}

#[test]
fn where_temporary_files_go_and_that_nothing_is_signed_is_said() {
    let look = |tmp: &str| {
        let place = Fledge::new().lane("verify", &needs("x")).file("sub/x", "").env("TMPDIR", tmp);
        checks(&place.args(&["doctor", "--json"]).run())
    };
    let own = crate::support::temp_dir();
    let good = about(&look(own.path().to_str().unwrap()), "tmp");
    assert_eq!((good.0.as_str(), good.2.as_str()), ("ok", ""));
    let missing = about(&look("/nowhere/at/all"), "tmp");
    assert!(missing.0 == "fail" && missing.1.contains("which does not exist"), "{missing:?}");
    assert!(missing.2.starts_with("set TMPDIR to an existing"), "{missing:?}");
    let place = Fledge::new().lane("verify", &needs("x")).file("sub/x", "").committed();
    let (inside, place) = (place.workspace().join("sub"), place.git(&["config", "commit.gpgSign", "true"]));
    let found = checks(&place.env("TMPDIR", inside.to_str().unwrap()).args(&["doctor", "--json"]).run());
    let tmp = about(&found, "tmp");
    assert!(tmp.0 == "warn" && tmp.1.contains("is inside the project"), "{tmp:?}");
    let unsigned = found.iter().find(|check| check["says"].as_str().unwrap().contains("are not signed"));
    assert_eq!(unsigned.unwrap()["status"], "warn");
}

#[test]
fn programs_that_commands_scripts_and_recipes_name_are_warnings_with_their_file() {
    let lane = "steps:\n  - { name: check, run: ./check.sh }\n  - { name: lint, run: make -s lint }\n  - { name: two, run: true && no-such-two }\n";
    let check = "#!/bin/sh\nset -e\nno-such-lint *.sh\ncommand -v no-such-other && no-such-other\nown() { true; }\nown; sh deep.sh\n";
    let make = "GO ?= no-such-go\nall:\n\tno-such-all\nlint: vet\n\t@$(MAKE) -s more; $(UNKNOWN) x\nvet:\n\t$(GO) vet\nmore:\n\t-no-such-more\n";
    let place = Fledge::new().lane("verify", lane).file("check.sh", check).file("Makefile", make);
    let place = place.file("deep.sh", "no-such-deep\n").env("ANTHROPIC_API_KEY", KEY);
    std::fs::set_permissions(place.workspace().join("check.sh"), PermissionsExt::from_mode(0o755)).unwrap();
    if !crate::support::Need::has_program("bwrap") || !crate::support::Need::has_program("make") {
        return;
    }
    let ended = place.args(&["doctor", "--json"]).run();
    ended.must_exit(0);
    let says = "verify: its commands name programs that are not in PATH: `no-such-go` (Makefile), `no-such-lint` (check.sh), \
        `no-such-more` (Makefile), `no-such-two` (step `two`)";
    assert_eq!(part(&checks(&ended), "lane.verify.scripts"), warned(says, "install them, if the commands need them"));
}

#[test]
fn a_program_that_only_a_script_names_and_that_a_room_hides_is_a_warning() {
    let place = Fledge::new().lane("verify", "steps: [{ name: lint, run: sh check.sh }]").file("check.sh", "tool\n");
    let home = place.workspace().join("../home").canonicalize().unwrap();
    [".ssh", ".local/bin"].iter().for_each(|folder| std::fs::create_dir_all(home.join(folder)).unwrap());
    std::fs::write(home.join(".ssh/tool"), "#!/bin/sh\n").unwrap();
    std::fs::set_permissions(home.join(".ssh/tool"), PermissionsExt::from_mode(0o755)).unwrap();
    std::os::unix::fs::symlink("../../.ssh/tool", home.join(".local/bin/tool")).unwrap();
    let path = format!("{}:/usr/bin:/bin", home.join(".local/bin").display());
    let ended = place.env("ANTHROPIC_API_KEY", KEY).env("PATH", &path).args(&["doctor", "--json"]).run();
    if !crate::support::Need::has_program("bwrap") {
        return;
    }
    ended.must_exit(0);
    let found = part(&checks(&ended), "lane.verify.scripts-room");
    assert_eq!(found.1, "verify: its commands name programs that a room does not show: `tool` (check.sh)");
    assert_eq!(found.0, "warn");
}

/// Returns the texts of one check, with its fix.
#[track_caller]
fn part(checks: &[Value], id: &str) -> (String, String, String) {
    let found = checks.iter().find(|check| check["id"] == id);
    let found = found.unwrap_or_else(|| panic!("nothing of {id} in {checks:#?}"));
    ["status", "says", "fix"].map(|key| found[key].as_str().unwrap_or_default().to_owned()).into()
}

/// Returns the checks of `fledge doctor` about git in a folder, except the check of git itself.
fn of_git(place: Fledge) -> Vec<Value> {
    let all = checks(&place.env("ANTHROPIC_API_KEY", KEY).args(&["doctor", "--json"]).run());
    let is_of_git = |check: &Value| check["id"].as_str().unwrap().starts_with("git.");
    all.into_iter().filter(is_of_git).collect()
}

fn warned(says: &str, mend: &str) -> (String, String, String) {
    ("warn".into(), says.into(), mend.into())
}

#[test]
fn what_a_commit_would_meet_in_the_repository_is_said() {
    long_test!();
    let place = || Fledge::new().lane("verify", &needs("x"));
    let needing = "`commit: on-success`, `isolation: worktree` and the verb `apply` need one";
    let none = part(&of_git(place()), "git.repository");
    let first = "`git init && git add -A && git commit -m first`";
    assert_eq!(none, warned(&format!("the project is not in a repository; {needing}"), first));
    let broken = part(&of_git(place().file(".git", "gitdir: /nowhere\n")), "git.repository");
    assert!(broken.1.starts_with("git cannot use ") && broken.1.contains("/nowhere"), "{broken:?}");
    let empty = part(&of_git(place().git(&["init", "-q"])), "git.repository");
    assert_eq!(empty.1, format!("the repository has no commit yet; {needing}"));
    let me = [("GIT_COMMITTER_NAME", "a"), ("GIT_COMMITTER_EMAIL", "a@localhost")];
    let known = |place: Fledge| me.iter().fold(place, |place, (name, value)| place.env(name, value));
    assert_eq!(of_git(known(place().committed())), Vec::<Value>::new());
    let dirty = of_git(place().committed().file("a", "1").file("b", "2"));
    let identity = "`git config --global user.name NAME && git config --global user.email MAIL`";
    let identity_warning = "git has no user name or email: commits get fledge <fledge@localhost> as their author";
    assert_eq!(part(&dirty, "git.identity"), warned(identity_warning, identity));
    let changes = part(&dirty, "git.changes");
    assert_eq!(changes.1, "2 files are not committed (`a`, `b`): fledge refuses runs with `commit: on-success`");
    assert!(changes.2.contains("--allow-dirty"), "{changes:?}");
    let merging = place().committed();
    let head = git(&merging.workspace(), &["rev-parse", "HEAD"]);
    let unfinished = part(&of_git(known(merging.file(".git/MERGE_HEAD", head))), "git.unfinished");
    assert_eq!(unfinished.2, "finish the merge, or run `git merge --abort`");
    let shallow = place().committed().file("second", "").git(&["add", "-A"]).git(&["commit", "-qm", "second"]);
    let head = git(&shallow.workspace(), &["rev-parse", "HEAD"]);
    let shallow = of_git(known(shallow.file(".git/shallow", format!("{head}\n"))));
    assert_eq!(part(&shallow, "git.shallow").2, "`git fetch --unshallow`");
}

#[test]
fn a_git_that_is_too_old_is_told_from_none() {
    let place = Fledge::new().lane("verify", &needs("x")).file("../bin/git", "#!/bin/sh\necho git version 2.20.1\n");
    let bin = place.workspace().join("../bin");
    std::fs::set_permissions(bin.join("git"), PermissionsExt::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", bin.canonicalize().unwrap().display(), std::env::var("PATH").unwrap());
    let old = about(&checks(&place.env("PATH", &path).args(&["doctor", "--json"]).run()), "git");
    assert_eq!(old.1, "`git version 2.20.1` is too old: git 2.30 or newer is needed");
    let none = about(&checks_of_missing_git(), "git");
    assert!(none.1.starts_with("cannot run git: "), "{none:?}");
}

#[test]
fn a_place_for_state_that_cannot_be_made_is_said_as_it_is() {
    let look = |state: &str| {
        let place = Fledge::new().lane("verify", &needs("x")).file("../home/a-file", "");
        let home = place.workspace().join("../home").canonicalize().unwrap();
        let state = if state.is_empty() { String::new() } else { home.join(state).to_string_lossy().into_owned() };
        let place = place.env("FLEDGE_STATE_DIR", &state).args(&["doctor", "--json"]);
        about(&checks(&if state.is_empty() { place.env("HOME", "") } else { place }.run()), "state")
    };
    let below_a_file = look("a-file/state");
    assert!(below_a_file.1.contains("/a-file is not a folder, so ") && below_a_file.0 == "fail", "{below_a_file:?}");
    let unwritable = look("/proc/nope");
    let (start, end) = ("/proc is not writable: ", ", so fledge cannot create /proc/nope");
    assert!(unwritable.1.starts_with(start) && unwritable.1.ends_with(end), "{unwritable:?}");
    let homeless = look("");
    assert!(homeless.0 == "fail" && homeless.1.contains("nor HOME is set"), "{homeless:?}");
    for found in [below_a_file, unwritable, homeless] {
        assert!(found.2.contains("`export FLEDGE_STATE_DIR=/var/tmp/fledge`"), "{found:?}");
    }
}

#[test]
fn names_that_are_slips_have_the_near_one() {
    let place = Fledge::new().lane("verify", &needs("x")).env("FLEDGE_STAT_DIR", "/x").env("FLEDGE_MODLE", "y");
    let place = place.env("ANTHROPIC_API_KEY", " ").env("FLEDGE_TEST_X", "1").env("FLEDGE_SINCE", "now");
    let found = checks(&place.args(&["doctor", "--json"]).run());
    let slip = part(&found, "config.FLEDGE_STAT_DIR");
    let mend = "did you mean `FLEDGE_STATE_DIR`? if not, `unset FLEDGE_STAT_DIR`";
    assert_eq!(slip, warned("FLEDGE_STAT_DIR is set, but fledge does not read it", mend));
    assert!(part(&found, "config.FLEDGE_MODLE").2.starts_with("did you mean `FLEDGE_MODEL`?"));
    let others = found.iter().filter(|check| check["id"].as_str().unwrap().starts_with("config.")).count();
    assert_eq!(others, 2, "{found:#?}");
    let model = about(&found, "model");
    assert_eq!(model.1, "no model is configured; ANTHROPIC_API_KEY is set but empty");
    let near = Fledge::new().lane("verify", &needs("x")).env("FLEDGE_MODEL", "anthropic/claude-sonet-4-5");
    let near = checks(&near.env("ANTHROPIC_API_KEY", KEY).args(&["doctor", "--json"]).run());
    let model = about(&near, "model");
    assert!(model.0 == "warn" && model.2.starts_with("did you mean `claude-sonnet-4-5`? "), "{model:?}");
}

#[test]
fn a_lane_that_is_broken_is_not_said_to_be_missing() {
    let place = Fledge::new().lane("verify", "steps: [{ name: a, rn: 'true' }]").env("ANTHROPIC_API_KEY", KEY);
    let ended = place.args(&["doctor", "--json"]).run();
    let found = checks(&ended);
    let broken = part(&found, "lanes.files");
    assert!(broken.1.contains("; ") && broken.1.contains("did you mean `run`?"), "{broken:?}");
    assert!(found.iter().all(|check| check["id"] != "lanes"), "{}", ended.story());
}

#[test]
fn a_run_that_did_not_end_is_named_with_what_goes_on_with_it() {
    let model = Model::new([hang()]);
    let running = Fledge::simple(&model).start();
    running.until(|| !model.asked().is_empty());
    running.signal(Signal::KILL);
    let ended = running.end();
    let run = ended.row().head.id.to_string();
    let found = checks(&ended.again(&["doctor", "--json"]).anthropic(&model).run());
    let mend = format!("`fledge runs resume {run}` continues; `fledge runs list` shows all");
    assert_eq!(part(&found, "runs"), warned("1 run was interrupted and can be resumed", &mend));
}

#[test]
fn a_damaged_database_of_runs_is_a_problem_with_its_path() {
    let place = Fledge::new().lane("verify", &needs("x")).env("ANTHROPIC_API_KEY", KEY);
    let state = place.workspace().join("../state");
    let project = fledge::store::project_dir(&state, &place.workspace().canonicalize().unwrap());
    std::fs::create_dir_all(&project).unwrap();
    std::fs::write(project.join("fledge.db"), [7; 5000]).unwrap();
    let doctor = place.args(&["doctor", "--json"]).run();
    doctor.must_exit(1);
    let (health, says, mend) = part(&checks(&doctor), "runs");
    assert!(health == "fail" && says.contains("fledge.db is not a fledge database"), "{says}");
    assert!(mend.starts_with("move the file away"), "{mend}");
}

#[test]
fn where_nothing_can_be_written_it_is_said_of_what_and_git_is_not_blamed() {
    let place = Fledge::new().lane("verify", &needs("x")).env("ANTHROPIC_API_KEY", KEY).args(&["doctor", "--json"]);
    // This process and its children cannot write a byte to any file.
    let ended = place.under(&["sh", "-c", "ulimit -f 0; exec \"$0\" \"$@\""]).run();
    ended.must_exit(1);
    let checks = checks(&ended);
    for what in ["tmp", "state"] {
        let (health, said, mend) = about(&checks, what);
        assert!(health == "fail" && said.contains("is not writable: File too large"), "{what}: {said} ({mend})");
    }
    let git = about(&checks, "git");
    assert!(!git.2.contains("install git"), "{git:?}");
}
