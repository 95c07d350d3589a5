//! Tests of gates that are frozen in real folders: their verdicts after changes.

mod attempts;
mod canaries;

use super::*;
use crate::lane_files::LaneFilesError;
use crate::verdict::{Proof, TamperFinding};
use crate::workspace::trees::GitPrograms;
use std::fs;
use tempfile::TempDir;

const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// A project, its surroundings and its gate.
struct GateFixture {
    home: TempDir,
    trees: Trees,
    gate: Result<Gate, GateError>,
}

/// Makes a project with these files, and the gate of these lanes, in this order.
async fn fixture(files: &[(&str, &str)], lanes: &[(&str, &str)], holdout: Option<&str>) -> GateFixture {
    let home = crate::test_support::temp_dir();
    let (root, stop) = (home.path().join("tree"), CancellationToken::new());
    fs::create_dir_all(root.join("lanes")).unwrap();
    fs::create_dir_all(home.path().join("held")).unwrap();
    let lane_files = lanes.iter().map(|(name, text)| (format!("tree/lanes/{name}.yaml"), *text));
    let files = files.iter().map(|(path, text)| (format!("tree/{path}"), *text)).chain(lane_files);
    for (path, text) in files.chain(holdout.map(|text| ("held/hidden.yaml".to_owned(), text))) {
        let path = home.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let trees = Trees::open(&home.path().join("trees.git"), &root, PATH, &stop).await.unwrap();
    let base = trees.take(&stop).await.unwrap().tree;
    let paths: Vec<String> = trees.entries(&base, &stop).await.unwrap().into_iter().map(|entry| entry.path).collect();
    let names: Vec<String> = lanes.iter().map(|(name, _)| (*name).to_owned()).collect();
    let held = home.path().join("held");
    let definition = GateDefinition {
        root: &root,
        origin: &root,
        lanes: &names,
        holdout: holdout.map(|_| held.as_path()),
        protect: &[],
        allow_edit: &[],
        path: PATH,
        base: &base,
        paths: &paths,
        git: &GitPrograms::default(),
        repository: None,
    };
    let gate = freeze(definition, None);
    GateFixture { home, trees, gate }
}

/// Makes a project with only these lanes.
async fn frozen(lanes: &[(&str, &str)]) -> GateFixture {
    fixture(&[], lanes, None).await
}

impl GateFixture {
    fn tree(&self, path: &str) -> PathBuf {
        self.home.path().join("tree").join(path)
    }

    fn write(&self, path: &str, text: &str) {
        fs::create_dir_all(self.tree(path).parent().unwrap()).unwrap();
        fs::write(self.tree(path), text).unwrap();
    }

    fn gate(&self) -> &Gate {
        self.gate.as_ref().unwrap()
    }

    fn site(&self, on_tamper: OnTamper) -> GateSite {
        let home = self.home.path();
        GateSite {
            root: home.join("tree"),
            origin: home.join("tree"),
            has_layers: false,
            trees: self.trees.clone(),
            sandbox: Sandbox::off(),
            hidden: Vec::new(),
            env: vec![("PATH".to_owned(), PATH.to_owned())],
            logs: home.join("logs"),
            failed_trees: None,
            mask: SecretMask::default(),
            rooms: home.join("rooms"),
            ignored: home.join("ignored"),
            project: home.join("project"),
            limits: SandboxLimits::default(),
            jobs: 1,
            on_tamper,
            agent_has_network: false,
            pages_logs: true,
            frozen_at: None,
            outlets: Vec::new(),
            may_judge_base: true,
        }
    }

    async fn judged(&self, on_tamper: OnTamper) -> Verdict {
        self.gate().judge(&self.site(on_tamper), 1, &CancellationToken::new(), &|_| {}).await
    }

    async fn ruling(&self) -> Ruling {
        self.judged(OnTamper::Restore).await.ruling
    }

    /// Restores the gate from its stored form, as another process does.
    fn taken_up_again(self) -> Self {
        let kept = self.gate().keep(crate::process::sandbox::SandboxKind::Off);
        let gate = Gate::thaw(&kept, &self.tree(""), &[]).unwrap();
        Self { gate: Ok(gate), ..self }
    }

    async fn base(&self) -> Result<(Ruling, String), BaseError> {
        self.gate().judge_base(&self.site(OnTamper::Restore), &CancellationToken::new(), &|_| {}).await
    }
}

#[tokio::test]
async fn an_edited_lane_is_put_back_and_the_frozen_one_judges() {
    let strict = "steps: [{ name: check, run: test -f done }]";
    let fixture = frozen(&[("verify", strict)]).await;
    fixture.write("lanes/verify.yaml", "steps: [{ run: 'true' }]");
    let verdict = fixture.judged(OnTamper::Restore).await;
    let finding = TamperFinding {
        path: "lanes/verify.yaml".into(),
        change: "changed".into(),
        rule: "it defines the gate".into(),
    };
    assert_eq!((verdict.ruling, verdict.findings), (Ruling::Tampered, vec![finding]));
    assert_eq!(fs::read_to_string(fixture.tree("lanes/verify.yaml")).unwrap(), strict);
    assert_eq!(fixture.ruling().await, Ruling::Failed);
    fixture.write("done", "");
    assert_eq!(fixture.ruling().await, Ruling::Passed);
}

#[tokio::test]
async fn a_source_may_move_the_definition_of_an_assertion_but_not_make_one() {
    let (lanes, own) = ([("verify", "steps: [{ run: 'true' }]")], "macro_rules! assert_ne { () => {}; }\n");
    let fixture = fixture(&[("src/a.rs", own), ("src/b.rs", "")], &lanes, None).await;
    fixture.write("src/a.rs", "");
    fixture.write("src/c.rs", own);
    assert_eq!(fixture.ruling().await, Ruling::Passed);
    fixture.write("src/b.rs", "macro_rules! assert_eq { () => {}; }\n");
    let verdict = fixture.judged(OnTamper::Restore).await;
    let finding = TamperFinding {
        path: "src/b.rs".into(),
        change: "changed".into(),
        rule: "it redefines `assert_eq`, which tests use".into(),
    };
    assert_eq!((verdict.ruling, verdict.findings), (Ruling::Tampered, vec![finding]));
}

#[tokio::test]
async fn a_tampered_gate_runs_nothing() {
    let fixture = frozen(&[("verify", "steps: [{ run: touch ran }]")]).await;
    fixture.write("lanes/extra.yaml", "steps: [{ run: 'true' }]");
    let verdict = fixture.judged(OnTamper::Fail).await;
    assert_eq!((verdict.ruling, verdict.steps), (Ruling::Tampered, Vec::new()));
    assert!(fixture.tree("lanes/extra.yaml").exists() && !fixture.home.path().join("logs").exists());
}

#[tokio::test]
async fn what_cannot_run_is_refused_when_it_is_frozen() {
    let refusal = async |lane| frozen(&[("verify", lane)]).await.gate.unwrap_err();
    for lane in [
        "steps: [{ run: no-such-program --now }]",
        "steps: [{ run: 'true', dir: nowhere }]",
        "steps: [{ run: ./gone.sh }]",
    ] {
        assert!(matches!(refusal(lane).await, GateError::Lanes(LaneFilesError::CannotRun { .. })), "{lane}");
    }
    assert!(matches!(refusal("steps: []").await, GateError::Lanes(LaneFilesError::Invalid(_))));
}

#[tokio::test]
async fn a_failed_lane_is_the_last_and_explains_itself() {
    let first = "steps: [{ name: no, run: echo because && exit 3 }]";
    let fixture = frozen(&[("one", first), ("two", "steps: [{ run: touch ran }]")]).await;
    let verdict = fixture.judged(OnTamper::Restore).await;
    assert_eq!((verdict.ruling, verdict.signature.as_str(), verdict.steps.len()), (Ruling::Failed, "one/no exit 3", 1));
    assert!(verdict.feedback.contains("```\nbecause\n```"), "{}", verdict.feedback);
    assert!(!fixture.home.path().join("logs/attempt-1/two").exists());
}

#[tokio::test]
async fn what_a_step_lacks_that_runs_only_under_a_condition_stops_no_lane() {
    let lane = "tasks: { gen: no-such-generator, docker: { cmd: no-such-program, deps: [gen] } }\n\
        steps: [{ run: 'true' }, { task: docker, when: DOCKER }]";
    assert!(frozen(&[("verify", lane)]).await.gate.is_ok());
}

#[tokio::test]
async fn what_git_ignores_is_not_in_the_room_and_a_pass_names_its_tree() {
    let fixture =
        fixture(&[(".gitignore", "out\n")], &[("verify", "steps: [{ run: test -f done && test ! -f out }]")], None)
            .await;
    fixture.write("out", "a build that the agent left");
    fixture.write("done", "");
    let verdict = fixture.judged(OnTamper::Restore).await;
    assert_eq!(verdict.ruling, Ruling::Passed, "{}", verdict.feedback);
    let tree = fixture.trees.take(&CancellationToken::new()).await.unwrap().tree;
    let proof = Proof {
        base: fixture.gate().base().clone(),
        tree,
        lanes: fixture.gate().digest.clone(),
        room: "clean".into(),
        sandbox: "off".into(),
        tests: None,
        tests_before: None,
        tests_by_name: 0,
        canaries: 0,
        without_canary: [("verify".to_owned(), "the base was not judged".to_owned())].into(),
        held_out: 0,
        hidden: 0,
    };
    assert_eq!(verdict.proof.as_deref(), Some(&proof));
    assert!(fixture.home.path().join("rooms").read_dir().unwrap().next().is_none(), "rooms are gone");
}

#[tokio::test]
async fn a_lane_that_changes_what_it_judges_fails_unless_it_may_and_then_it_must_settle() {
    let step = |writes: &str, run: &str| format!("{writes}\nsteps: [{{ name: fmt, run: '{run}' }}]");
    let silent = step("", "echo more | tee -a te*t");
    let fixture = fixture(&[("text", "a\n")], &[("verify", &silent)], None).await;
    let verdict = fixture.judged(OnTamper::Restore).await;
    assert_eq!(verdict.ruling, Ruling::Failed);
    assert!(verdict.feedback.contains("changed files that it judges (text)"), "{}", verdict.feedback);

    let settles = step("writes: true", "echo done | tee te*t");
    let fixture = self::fixture(&[("text", "a\n")], &[("verify", &settles)], None).await;
    let verdict = fixture.judged(OnTamper::Restore).await;
    assert_eq!(verdict.ruling, Ruling::Passed, "{}", verdict.feedback);
    let tree = &verdict.proof.unwrap().tree;
    let text = fixture.trees.read(tree, "text", 100, &CancellationToken::new()).await.unwrap();
    assert_eq!(text.as_deref(), Some(&b"done\n"[..]), "what passed is what the lane has written");

    let never = step("writes: true", "date +%N | tee -a te*t");
    let fixture = self::fixture(&[("text", "a\n")], &[("verify", &never)], None).await;
    let verdict = fixture.judged(OnTamper::Restore).await;
    assert_eq!(verdict.ruling, Ruling::Errored);
    assert!(verdict.feedback.contains("changes files on every run"), "{}", verdict.feedback);
}

#[tokio::test]
async fn caches_come_from_the_base_and_never_from_the_agent() {
    let lane = "setup: [{ run: mkdir -p deps && echo base > deps/lib }]\ncache: [deps]\nsteps: [{ run: grep -qx base deps/lib }]";
    let fixture = fixture(&[(".gitignore", "deps\n")], &[("verify", lane)], None).await;
    assert_eq!(fixture.base().await.unwrap(), (Ruling::Passed, String::new()));
    fixture.write("deps/lib", "poisoned");
    assert_eq!(fixture.ruling().await, Ruling::Passed);
    fixture.write(".gitignore", "");
    assert_eq!(
        fixture.ruling().await,
        Ruling::Passed,
        "paths that the base ignores stay out, even if a list changes later"
    );

    let fixture = self::fixture(&[("a", "")], &[("verify", lane)], None).await;
    fixture.write("deps/lib", "poisoned");
    let verdict = fixture.judged(OnTamper::Fail).await;
    let reported: Vec<_> =
        verdict.findings.iter().map(|finding| (finding.path.as_str(), finding.rule.as_str())).collect();
    assert_eq!(reported, [("deps/lib", "it is in a cache of the gate, which only the base fills")]);
}

#[tokio::test]
async fn a_setup_that_fails_and_a_base_that_cannot_run_end_it_before_anything_is_spent() {
    let setup = frozen(&[("verify", "setup: [{ name: get, run: echo no && false }]\nsteps: [{ run: 'true' }]")]).await;
    let fault = setup.base().await.unwrap_err();
    assert_eq!(fault.to_string(), "the setup of lane `verify` failed: step `get`: no");
    let skipped = frozen(&[("verify", "steps: [{ run: 'true', when: NEVER_SET }]")]).await;
    assert!(
        matches!(skipped.base().await.unwrap_err(), BaseError::NothingRan(why) if why.starts_with("no step ran in lane `verify`"))
    );
}

#[tokio::test]
async fn fewer_tests_than_on_the_base_are_no_pass() {
    let lane = "steps: [{ name: test, run: cat *.count }]";
    let fixture = fixture(&[("a.count", "Ran 3 tests in 0.1s\n")], &[("verify", lane)], None).await;
    assert_eq!(fixture.base().await.unwrap().0, Ruling::Passed);
    assert_eq!(fixture.ruling().await, Ruling::Passed);
    fixture.write("a.count", "Ran 2 tests in 0.1s\n");
    let verdict = fixture.judged(OnTamper::Restore).await;
    assert_eq!(verdict.ruling, Ruling::Failed);
    assert!(verdict.feedback.contains("fewer tests ran than on the base: 2 of 3"), "{}", verdict.feedback);
}

#[tokio::test]
async fn a_planted_failure_must_be_seen_on_the_base_and_on_the_work() {
    let lane =
        |run: &str| format!("canary: {{ file: checks/planted, text: fail }}\nsteps: [{{ name: test, run: '{run}' }}]");
    let sees = lane("! grep -rq fail checks || test -f silenced");
    let fixture = fixture(&[("checks/one", "ok")], &[("verify", &sees)], None).await;
    assert_eq!(fixture.base().await.unwrap().0, Ruling::Passed);
    let verdict = fixture.judged(OnTamper::Restore).await;
    assert_eq!((verdict.ruling, verdict.proof.map(|proof| proof.canaries)), (Ruling::Passed, Some(1)));
    fixture.write("silenced", "");
    let verdict = fixture.judged(OnTamper::Restore).await;
    assert_eq!(verdict.ruling, Ruling::Failed);
    assert!(verdict.feedback.contains("its tests are silenced"), "{}", verdict.feedback);

    let blind = lane("true");
    let fixture = self::fixture(&[("checks/one", "ok")], &[("verify", &blind)], None).await;
    assert!(matches!(fixture.base().await.unwrap_err(), BaseError::Unseen(lane) if lane == "verify"));
}

#[tokio::test]
async fn work_is_not_accused_where_a_lane_sees_no_planted_failure_on_a_base_that_fails() {
    let lane = "canary: { file: checks/planted, text: fail }\nsteps: [{ name: test, run: test -f done }]";
    let fixture = fixture(&[("checks/one", "ok")], &[("verify", lane)], None).await;
    assert_eq!(fixture.base().await.unwrap().0, Ruling::Failed);
    fixture.write("done", "");
    let verdict = fixture.judged(OnTamper::Restore).await;
    assert_eq!(verdict.ruling, Ruling::Failed);
    let both = "its tests are silenced, or its `canary` plants a kind of test that the lane does not run";
    assert!(verdict.feedback.contains(both), "{}", verdict.feedback);
    let untold = "the checks fail on the base, so fledge cannot tell whether the lane ever reports one";
    assert!(verdict.feedback.contains(untold), "{}", verdict.feedback);
}

#[tokio::test]
async fn of_a_hold_out_lane_nothing_is_told_but_that_it_failed() {
    let hidden =
        "steps: [{ name: secret, run: 'test -f right && test -d $FLEDGE_HOLDOUT && ! env | grep -q HOLDOUT' }]";
    let fixture = fixture(&[], &[("verify", "steps: [{ run: 'true' }]")], Some(hidden)).await;
    let verdict = fixture.judged(OnTamper::Restore).await;
    assert_eq!(verdict.ruling, Ruling::Failed);
    assert!(verdict.feedback.contains("a hold-out check failed") && !verdict.feedback.contains("secret"));
    assert!(verdict.steps.iter().all(|step| step.step != "secret"));
    fixture.write("right", "");
    assert_eq!(fixture.judged(OnTamper::Restore).await.proof.map(|proof| proof.held_out), Some(1));
}

#[tokio::test]
async fn a_hold_out_lane_that_passes_with_failed_tests_or_without_any_is_no_pass() {
    for (says, ruling) in [
        ("2 passed in 0.1s", Ruling::Passed),
        ("1 failed, 1 passed in 0.1s", Ruling::Failed),
        ("no tests ran in 0.01s", Ruling::Failed),
    ] {
        let hidden = format!("steps: [{{ name: secret, run: 'echo {says}' }}]");
        let held = fixture(&[], &[("verify", "steps: [{ run: 'true' }]")], Some(&hidden)).await;
        held.write("src/a", "");
        assert_eq!(held.judged(OnTamper::Restore).await.ruling, ruling, "{says}");
    }
}

#[tokio::test]
async fn what_failed_before_any_change_is_labelled_so() {
    let lane = "fail_fast: false\nsteps: [{ name: old, run: 'false' }, { name: new, run: test ! -f broken }]";
    let fixture = frozen(&[("verify", lane)]).await;
    fixture.write("broken", "");
    let verdict = fixture.judged(OnTamper::Restore).await;
    assert!(verdict.feedback.ends_with("failed before any change, too: verify/old\n"), "{}", verdict.feedback);
    assert_eq!(verdict.signature, "verify/new exit 1; verify/old exit 1");
}

#[tokio::test]
async fn a_lane_may_run_in_the_workspace_itself_and_the_proof_says_so() {
    let fixture =
        fixture(&[(".gitignore", "out\n")], &[("verify", "room: in-place\nsteps: [{ run: test -f out }]")], None).await;
    fixture.write("out", "");
    let verdict = fixture.judged(OnTamper::Restore).await;
    assert_eq!(verdict.proof.map(|proof| proof.room), Some("in-place".into()));
}

#[tokio::test]
async fn a_hold_out_lane_has_its_own_setup_and_canary_and_never_runs_in_the_workspace() {
    let easy = [("verify", "cache: [mine]\nsteps: [{ run: 'true' }]")];
    let hidden = "setup: [{ run: mkdir -p deps && touch deps/x }]\ncache: [deps]\nsteps: [{ run: test -f deps/x && test -f right }]";
    let held = fixture(&[], &easy, Some(hidden)).await;
    assert_eq!(held.base().await.unwrap(), (Ruling::Passed, String::new()));
    assert_eq!(held.ruling().await, Ruling::Failed);
    held.write("right", "");
    assert_eq!(held.ruling().await, Ruling::Passed);

    let blind = "canary: { file: planted, text: x }\nsteps: [{ run: test -f right || test ! -e planted }]";
    let held = fixture(&[], &easy, Some(blind)).await;
    assert_eq!(held.ruling().await, Ruling::Passed);
    held.write("right", "");
    let verdict = held.judged(OnTamper::Restore).await;
    assert_eq!((verdict.ruling, verdict.signature.as_str()), (Ruling::Failed, "hold-out"));

    for (lane, why) in [
        ("room: in-place\nsteps: [{ run: 'true' }]", "has `room: in-place`"),
        ("steps: [{ run: 'echo ${FLEDGE_HOLDOUT:-none}' }]", "must name its folder as `$FLEDGE_HOLDOUT`"),
    ] {
        let fault = fixture(&[], &easy, Some(lane)).await.gate.unwrap_err().to_string();
        assert!(fault.contains(why), "{fault}");
    }
}
