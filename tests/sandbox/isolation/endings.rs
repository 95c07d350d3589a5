//! Tests of the end of programs in the sandbox: the reported result, and no process left behind.

use super::{Scene, behind, is_there, sandbox, told};
use fledge::process::sandbox::{Mount, SandboxKind};
use fledge::process::{Invocation, ProcessEnd};
use std::time::Duration;

#[tokio::test]
async fn how_a_program_ends_or_does_not_start_is_told_apart() {
    long_test!();
    for kind in [SandboxKind::Bubblewrap, SandboxKind::Landlock] {
        let Some(sandbox) = sandbox(kind).await else { continue };
        let scene = Scene::new();
        let ended = async |script: &str| told(&sandbox, &scene.rules(), scene.shell(script)).await.end;
        for (script, code) in [
            ("exit 7", 7),
            ("nosuch 2>/dev/null", 127),
            ("echo 'bwrap: out of luck'; exit 1", 1),
            ("echo 'fledge inside: there is no program `nosuch`'; exit 127", 127),
            ("echo 'fledge inside: cannot limit files'; exit 126", 126),
        ] {
            assert_eq!(ended(script).await, ProcessEnd::Exited(code), "{kind:?}: {script}");
        }
        let missing = Invocation { program: "nosuch".into(), args: Vec::new(), ..scene.shell("") };
        let ended = told(&sandbox, &scene.rules(), missing).await;
        assert_eq!(ended.end, ProcessEnd::NotStarted("there is no program `nosuch`".into()), "{kind:?}");
        let late = Invocation { timeout: Some(Duration::from_millis(300)), ..scene.shell("sleep 60") };
        assert_eq!(told(&sandbox, &scene.rules(), late).await.end, ProcessEnd::TimedOut, "{kind:?}");
    }
}

#[tokio::test]
async fn a_wall_that_cannot_be_built_is_no_failure_of_the_program() {
    long_test!();
    let Some(sandbox) = sandbox(SandboxKind::Bubblewrap).await else { return };
    let scene = Scene::new();
    let mut rules = scene.rules();
    rules.mounts.push(Mount { from: scene.path("nowhere"), at: scene.path("workspace"), writable: true });
    let ended = told(&sandbox, &rules, scene.shell("echo ran")).await;
    assert!(matches!(&ended.end, ProcessEnd::NotStarted(why) if why.contains("nowhere")), "{ended:?}");
}

#[tokio::test]
async fn whatever_a_program_does_to_stay_is_gone_with_the_wall() {
    let Some(sandbox) = sandbox(SandboxKind::Bubblewrap).await else { return };
    let scene = Scene::new();
    let mark = format!("86{}", std::process::id());
    for escape in ["setsid sh -c", "setsid setsid sh -c", "env -i /usr/bin/setsid sh -c", "nohup sh -c"] {
        let script = format!(
            "({escape} \"trap '' TERM HUP; sleep {mark}; sleep {mark}\" </dev/null >/dev/null 2>&1 &); echo begun; sleep 0.1"
        );
        let ended = behind(&sandbox, &scene.rules(), scene.shell(&script), |outer| outer).await;
        assert_eq!(ended.output.text(100).trim(), "begun", "{escape}");
        assert!(!is_there(&mark), "{escape}: something is left");
    }
}
