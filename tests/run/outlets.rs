//! Tests of the files that a run writes outside of its workspace: an agent cannot redirect them,
//! and a pipe does not block the run.

use crate::support::{Fledge, Model, say, shell, write};
use rustix::process::Signal;
use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

/// Returns a model that runs this command and then makes the file `done`.
fn agent(work: &str) -> Model {
    Model::new([shell(&format!("{work}; touch done")), say("Done $(touch pwned).")])
}

/// Returns a run without a sandbox, next to files that the agent could damage.
fn run(agent: &Model) -> Fledge {
    let fledge = Fledge::simple(agent).file(".gitignore", "*.json\n*.patch\nout\n").file("out/kept", "");
    fs::write(fledge.workspace().join("../mine"), "mine\n").unwrap();
    fs::create_dir(fledge.workspace().join("../theirs")).unwrap();
    fledge.committed().arg("--sandbox=off")
}

#[test]
fn a_link_or_a_pipe_that_an_agent_plants_is_replaced_and_followed_nowhere() {
    long_test!();
    for plant in ["ln -s ../mine", "mkfifo", "ln ../mine"] {
        let work = format!("{plant} report.json; {plant} out.patch");
        let agent = agent(&work);
        let run = run(&agent).arg("--report=report.json").arg("--patch=out.patch").run();
        let report = run.report();
        assert_eq!(fs::read_to_string(run.path("../mine")).unwrap(), "mine\n", "{plant}");
        assert_eq!(run.file("report.json"), fs::read_to_string(run.run_folder().join("report.json")).ok(), "{plant}");
        if plant == "mkfifo" {
            assert_eq!(report["verified"], false, "the gate takes no pipe");
        } else {
            assert_eq!(report["verified"], true, "{}", run.story());
            assert!(run.file("out.patch").unwrap().starts_with("From "), "{plant}");
        }
    }
}

#[test]
fn a_link_in_place_of_a_folder_is_an_error_and_its_target_is_untouched() {
    let agent = agent("rm -r out; ln -s ../theirs out");
    let run = run(&agent).arg("--report=out/report.json").run();
    let report = run.must_be(8, "io_error");
    assert!(report["message"].as_str().unwrap().contains("a folder of the path was replaced by a link"), "{report}");
    assert_eq!(fs::read_dir(run.path("../theirs")).unwrap().count(), 0);
}

#[test]
fn an_output_that_is_a_link_or_a_pipe_is_refused_before_anything_is_spent() {
    for (flag, is_pipe) in [("--report", false), ("--patch", false), ("--report", true)] {
        let model = Model::new([say("Done.")]);
        let fledge = Fledge::simple(&model).args(&["run", "task.md", flag, "../workspace/x"]);
        let place = fledge.workspace().join("x");
        if is_pipe {
            assert!(Command::new("mkfifo").arg(&place).status().unwrap().success());
        } else {
            symlink("../mine", &place).unwrap();
        }
        let run = fledge.run();
        run.must_exit(2);
        assert!(run.stderr.contains(", and an agent may have made it; "), "{}", run.story());
        assert_eq!((model.count(), run.path("../mine").exists()), (0, false));
    }
    // Outside of the workspace, links belong to the user.
    let model = Model::new([write("done", ""), say("Done.")]);
    let fledge = Fledge::simple(&model).arg("--report=../link");
    symlink("mine", fledge.workspace().join("../link")).unwrap();
    let run = fledge.run();
    run.must_exit(0);
    assert!(fs::read_to_string(run.path("../mine")).unwrap().contains("\"verified\": true"));
}

#[test]
fn a_pipe_of_the_user_is_waited_for_until_the_run_is_asked_to_stop() {
    long_test!();
    for is_read in [true, false] {
        let model = Model::new([write("done", ""), say("Done.")]);
        let fledge = Fledge::simple(&model).arg("--report=../pipe");
        let pipe = fledge.workspace().join("../pipe");
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let mut run = fledge.arg("-v").start();
        run.wait_for("Reporting");
        if is_read {
            let text = fs::read_to_string(pipe).unwrap();
            run.end().must_be(0, "verified");
            assert!(text.contains("\"verified\": true"), "{text}");
        } else {
            run.signal(Signal::INT);
            let run = run.end();
            let report = run.must_be(8, "io_error");
            assert!(report["message"].as_str().unwrap().contains("no process reads it"), "{report}");
        }
    }
}
