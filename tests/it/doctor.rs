//! `fledge doctor`: what a run needs, whether it is here, and what mends it; without a run.

use crate::support::{Ended, Fledge, KEY, needs};
use serde_json::{Value, json};

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

/// How healthy the first thing of a kind is, and what is said of it.
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
        ("ok", "verify: 1 step; a pass rests on exit codes and a canary (pytest)")
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
        ("state", "is inside of the project"),
        ("config", "unknown key `protct`"),
        ("lanes", "unknown key `stesp`"),
        ("lane", "there is no program `no-such-program` in PATH"),
    ] {
        let (health, said, mend) = about(&checks, what);
        assert!(health == "fail" && said.contains(says) && !mend.is_empty(), "{what}: {said} ({mend})");
    }
    let git = about(&checks_of_missing_git(), "git");
    assert_eq!((git.0.as_str(), git.2.as_str()), ("fail", "install git 2.30 or newer, and have it in PATH"));
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
    let own = tempfile::tempdir().unwrap();
    let good = about(&look(own.path().to_str().unwrap()), "tmp");
    assert_eq!((good.0.as_str(), good.2.as_str()), ("ok", ""));
    let missing = about(&look("/nowhere/at/all"), "tmp");
    assert!(missing.0 == "fail" && missing.1.contains("there is no such folder"), "{missing:?}");
    assert!(missing.2.starts_with("set TMPDIR to a folder"), "{missing:?}");
    let place = Fledge::new().lane("verify", &needs("x")).file("sub/x", "").committed();
    let (inside, place) = (place.workspace().join("sub"), place.git(&["config", "commit.gpgSign", "true"]));
    let found = checks(&place.env("TMPDIR", inside.to_str().unwrap()).args(&["doctor", "--json"]).run());
    let tmp = about(&found, "tmp");
    assert!(tmp.0 == "warn" && tmp.1.contains("is inside of the project"), "{tmp:?}");
    let unsigned = found.iter().find(|check| check["says"].as_str().unwrap().contains("is not signed"));
    assert_eq!(unsigned.unwrap()["status"], "warn");
}
