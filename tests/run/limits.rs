//! Tests of the resource limits in the sandbox: fledge ends a program that exceeds them, and the
//! run continues.

use crate::support::{Fledge, Model, Need, say, shell, write};

/// A command that starts up to about a thousand copies of itself, each for a minute.
const BOMB: &str = "b() { if test $1 -gt 0; then b $(($1 - 1)) & b $(($1 - 1)) & fi; sleep 60; }; b 9";
/// A command that holds 300 MiB for ten minutes.
const HOG: &str = "{ head -c 300M /dev/zero; sleep 600; } | tail -c 300M";
const LIMITS: &str = "limits: { processes: 200, memory: 128MiB, file_size: 32MiB }\n";

fn told(model: &Model, turn: usize) -> String {
    model.asked()[turn].newest()
}

#[test]
fn a_call_that_starts_ever_more_or_holds_ever_more_fails_and_the_run_goes_on() {
    long_test!();
    for sandbox in ["--sandbox=auto", "--sandbox=off"] {
        let fill = "head -c 64M /dev/zero >large; ls -l large; rm -f large; echo x >done";
        let model = Model::new([shell(BOMB), shell(HOG), shell(fill), say("Done.")]);
        let ended = Fledge::simple(&model).file("fledge.yaml", LIMITS).arg(sandbox).run();
        ended.must_be(0, "verified");
        let (bomb, hog, fill) = (told(&model, 1), told(&model, 2), told(&model, 3));
        let beyond = "the command and all that it started were ended: it ";
        // The kernel enforces the process limit for ordinary users, but not for root.
        let is_refused = !rustix::process::geteuid().is_root() && bomb.contains("Cannot fork");
        let is_ended = bomb.contains(&format!("{beyond}had more than 200 processes and threads"));
        assert!(is_ended || is_refused, "{sandbox}: {bomb}");
        assert!(hog.contains(&format!("{beyond}held more than 128 MiB of memory")), "{sandbox}: {hog}");
        if sandbox == "--sandbox=auto" {
            assert!(fill.contains(" 33554432 "), "{fill}");
        }
    }
}

#[test]
fn files_in_memory_count_as_memory() {
    long_test!();
    if !Need::has_program("bwrap") {
        return Need::Sandbox.lacks("only bubblewrap gives a program a private `/dev/shm`");
    }
    let fill = "for n in 1 2 3 4 5 6 7 8; do head -c 30M /dev/zero >/dev/shm/fill$n; done; sleep 600";
    let (more, tidy) = ("head -c 30M /dev/zero >/dev/shm/more; sleep 600", "rm /dev/shm/fill* && echo gone");
    let model = Model::new([shell(fill), shell(more), shell(tidy), write("done", ""), say("Done.")]);
    Fledge::simple(&model).file("fledge.yaml", LIMITS).run().must_be(0, "verified");
    let says = "it held more than 128 MiB of memory, with ";
    assert!(told(&model, 1).contains(says) && told(&model, 2).contains(says), "{}", told(&model, 2));
    assert!(told(&model, 3).contains("gone"), "{}", told(&model, 3));
}

#[test]
fn files_without_a_place_count_as_memory() {
    long_test!();
    if !Need::has_program("python3") {
        return Need::of_program("python3").lacks("no `python3`");
    }
    let fill = "python3 -c 'import os, time; held = [os.memfd_create(\"x\") for _ in range(8)]; [os.write(file, b\"x\" * (30 << 20)) for file in held]; time.sleep(600)'";
    let model = Model::new([shell(fill), write("done", ""), say("Done.")]);
    Fledge::simple(&model).file("fledge.yaml", LIMITS).run().must_be(0, "verified");
    assert!(told(&model, 1).contains("it held more than 128 MiB of memory"), "{}", told(&model, 1));
}

#[test]
fn a_step_that_goes_beyond_fails_and_says_why() {
    long_test!();
    let lane = "steps: [{ name: hog, run: 'if test -f hog; then sh hog; fi; test -f done' }]";
    let model =
        Model::new([shell(&format!("echo '{HOG}' >hog; echo x >done")), say("Done."), shell("rm hog"), say("Done.")]);
    let ended = Fledge::simple(&model).lane("verify", lane).file("fledge.yaml", LIMITS).run();
    let report = ended.must_be(0, "verified");
    let note = report["attempts"][0]["verdict"]["steps"][0]["note"].as_str().unwrap();
    assert_eq!(note, "ended by fledge: it held more than 128 MiB of memory (`limits`)");
    assert!(told(&model, 2).contains("it held more than 128 MiB of memory"), "{}", told(&model, 2));
}

#[test]
fn a_project_can_only_lower_limits_and_what_they_are_is_shown() {
    let own = "limits: { processes: 300, memory: 1GiB }\n";
    let place = Fledge::new().args(&["config", "show"]).file("../home/.config/fledge/config.yaml", own);
    let shown = place.file("fledge.yaml", "limits: { processes: 999, memory: 512MiB }\n").run();
    shown.must_exit(0);
    for (key, value) in [("limits.processes", "300"), ("limits.memory", "512MiB"), ("limits.file_size", "16384MiB")] {
        let is_row = |line: &str| line.contains(key) && line.contains(value);
        assert!(shown.stdout.lines().any(is_row), "{key}: {}", shown.story());
    }
    let doctor = shown.again(&["doctor"]).run();
    assert!(doctor.stdout.contains("300 processes and 512 MiB of memory in total"), "{}", doctor.story());
    let wrong = Fledge::new().args(&["config", "show"]).file("fledge.yaml", "limits: { memory: 1MiB }\n").run();
    wrong.must_exit(2);
    assert!(wrong.stderr.contains("`1MiB` is too small"), "{}", wrong.story());
}
