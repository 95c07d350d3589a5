//! Gates frozen in real folders, and what they say after somebody has been there.

use super::*;
use std::fs;
use std::path::Path;

const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// A project with these lanes, and the gate of all of them, in this order.
fn frozen(lanes: &[(&str, &str)]) -> (tempfile::TempDir, Result<Gate, GateFault>) {
    let home = tempfile::tempdir().unwrap();
    fs::create_dir_all(home.path().join("tree/lanes")).unwrap();
    for (name, text) in lanes {
        fs::write(home.path().join(format!("tree/lanes/{name}.yaml")), text).unwrap();
    }
    let names: Vec<String> = lanes.iter().map(|(name, _)| (*name).to_owned()).collect();
    let gate = freeze(&home.path().join("tree"), &names, &[], &[], PATH);
    (home, gate)
}

async fn judged(home: &Path, gate: &Gate, on_tamper: OnTamper) -> Verdict {
    let env = vec![("PATH".to_owned(), PATH.to_owned())];
    let site = Site {
        root: home.join("tree"),
        env,
        logs: home.join("logs"),
        project: home.join("project"),
        jobs: 1,
        on_tamper,
    };
    gate.judge(&site, 1, &CancellationToken::new(), &|_| {}).await
}

#[tokio::test]
async fn an_edited_lane_is_put_back_and_the_frozen_one_judges() {
    let strict = "steps: [{ name: check, run: test -f done }]";
    let (home, gate) = frozen(&[("verify", strict)]);
    let (gate, lane) = (gate.unwrap(), home.path().join("tree/lanes/verify.yaml"));
    fs::write(&lane, "steps: [{ run: 'true' }]").unwrap();
    let verdict = judged(home.path(), &gate, OnTamper::Restore).await;
    let finding =
        Finding { path: "lanes/verify.yaml".into(), change: "changed".into(), rule: "it defines the gate".into() };
    assert_eq!((verdict.ruling, verdict.findings), (Ruling::Tampered, vec![finding]));
    assert_eq!(fs::read_to_string(&lane).unwrap(), strict);
    assert_eq!(judged(home.path(), &gate, OnTamper::Restore).await.ruling, Ruling::Failed);
    fs::write(home.path().join("tree/done"), "").unwrap();
    assert_eq!(judged(home.path(), &gate, OnTamper::Restore).await.ruling, Ruling::Passed);
}

#[tokio::test]
async fn a_tampered_gate_runs_nothing() {
    let (home, gate) = frozen(&[("verify", "steps: [{ run: touch ran }]")]);
    let extra = home.path().join("tree/lanes/extra.yaml");
    fs::write(&extra, "steps: [{ run: 'true' }]").unwrap();
    let verdict = judged(home.path(), &gate.unwrap(), OnTamper::Fail).await;
    assert_eq!((verdict.ruling, verdict.steps), (Ruling::Tampered, Vec::new()));
    assert!(extra.exists() && !home.path().join("tree/ran").exists());
}

#[test]
fn what_cannot_run_is_refused_when_it_is_frozen() {
    let refusal = |lane| frozen(&[("verify", lane)]).1.unwrap_err();
    for lane in [
        "steps: [{ run: no-such-program --now }]",
        "steps: [{ run: 'true', dir: nowhere }]",
        "steps: [{ run: ./gone.sh }]",
    ] {
        assert!(matches!(refusal(lane), GateFault::CannotRun { .. }), "{lane}");
    }
    assert!(matches!(refusal("steps: []"), GateFault::Lane(_)));
    let (home, _) = frozen(&[("verify", "steps: [{ run: 'true' }]")]);
    let unknown = freeze(&home.path().join("tree"), &["verfy".into()], &[], &[], PATH).unwrap_err();
    assert!(unknown.to_string().ends_with("it has verify"), "{unknown}");
}

#[tokio::test]
async fn a_failed_lane_is_the_last_and_explains_itself() {
    let first = "steps: [{ name: no, run: echo because && exit 3 }]";
    let (home, gate) = frozen(&[("one", first), ("two", "steps: [{ run: touch ran }]")]);
    let verdict = judged(home.path(), &gate.unwrap(), OnTamper::Restore).await;
    assert_eq!((verdict.ruling, verdict.signature.as_str(), verdict.steps.len()), (Ruling::Failed, "one/no exit 3", 1));
    assert!(verdict.feedback.contains("```\nbecause\n```"), "{}", verdict.feedback);
    assert!(!home.path().join("tree/ran").exists());
}

#[test]
fn checking_tells_all_problems_of_all_files_and_what_steps_lack_here() {
    let (home, _) =
        frozen(&[("verify", "steps: [{ rnu: x }]"), ("good", "steps: [{ name: go, run: no-such-program }]")]);
    let toml = "tasks.a = { cmd = 'true', deps = ['b'] }\nlanes.ci.steps = ['a', { run = 'no-such-program', when = 'X' }]\nlanes.ok = { steps = [{ run = 'true' }], x = 1 }";
    fs::write(home.path().join("tree/fledge.toml"), toml).unwrap();
    let Checked { lanes, problems, warnings } = check(&home.path().join("tree"), PATH);
    assert_eq!(lanes.iter().map(|lane| lane.name.as_str()).collect::<Vec<_>>(), ["good", "ok"]);
    let told = |remarks: &[crate::lane::Remark]| remarks.iter().map(ToString::to_string).collect::<Vec<_>>();
    let expected = [
        "fledge.toml:1:35: there is no task `b` (did you mean `a`?)",
        "lanes/verify.yaml:1:9: a step that runs nothing (give it `run:` with a command)",
        "lanes/verify.yaml:1:11: unknown key `rnu` in a step (did you mean `run`?)",
    ];
    assert_eq!(told(&problems), expected);
    let expected = [
        "fledge.toml:2:7: lane `ci` has no description (say with `description` what it is for)".to_owned(),
        "fledge.toml:3:7: lane `ok` has no description (say with `description` what it is for)".to_owned(),
        "fledge.toml:3:42: unknown key `x` in a lane (known: description, fail_fast, steps)".to_owned(),
        format!(
            "lanes/good.yaml: step `go` of lane `good` cannot run here: there is no program `no-such-program` in PATH ({PATH})"
        ),
    ];
    assert_eq!(told(&warnings), expected);
}

#[test]
fn what_a_step_lacks_that_runs_only_under_a_condition_stops_no_lane() {
    let lane = "tasks: { gen: no-such-generator, docker: { cmd: no-such-program, deps: [gen] } }\n\
        steps: [{ run: 'true' }, { task: docker, when: DOCKER }]";
    assert!(frozen(&[("verify", lane)]).1.is_ok());
}

#[test]
fn a_lane_is_run_with_a_few_remarks_on_its_file_and_not_with_all() {
    let (home, _) = frozen(&[]);
    let keys: Vec<String> = (0..9).map(|number| format!("k{number} = 1\n")).collect();
    let toml = format!(
        "lanes.a.steps = [{{ run = 'true' }}]\nlanes.b.steps = [{{ run = 'true' }}]\n[tasks.t]\ncmd = 'true'\n{}",
        keys.concat()
    );
    fs::write(home.path().join("tree/fledge.toml"), toml).unwrap();
    let gate = freeze(&home.path().join("tree"), &["a".into(), "b".into()], &[], &[], PATH).unwrap();
    assert_eq!(gate.notes.len(), 6, "once for both lanes");
    assert_eq!(gate.notes[5], "and 4 more: `fledge lanes validate` has them all");
}
