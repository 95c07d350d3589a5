//! Tests of valid and invalid lane files.

use super::*;
use crate::lane::Condition;
use crate::lane::{CanaryTerms, EntryKind, FlakyPolicy, GroupMember, Joint, RoomKind, Step, StepEntry};
use proptest::prelude::*;
use std::time::Duration;

fn step(name: &str, run: &str) -> Step {
    Step {
        name: name.into(),
        run: run.into(),
        shell: vec!["/bin/sh".into(), "-c".into()],
        dir: None,
        env: BTreeMap::new(),
        timeout: None,
        retries: 0,
        retry_delay: Duration::ZERO,
        when: Vec::new(),
        changed: Vec::new(),
        allow_failure: false,
        junit: None,
        after: Vec::new(),
        joints: Vec::new(),
        needs: Vec::new(),
        deps: Vec::new(),
        on_demand: false,
    }
}

fn entry(name: &str, kind: EntryKind, steps: &[usize]) -> StepEntry {
    let (timeout, retries, retry_delay) = (None, None, None);
    let (items, steps, needed) = (Vec::new(), steps.to_vec(), Vec::new());
    StepEntry { name: name.into(), kind, items, steps, needed, when: None, timeout, retries, retry_delay }
}

fn map(entries: &[(&str, &str)]) -> BTreeMap<String, String> {
    entries.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

const FULL: &str = r#"
description: What every change must pass
fail_fast: false
timeout: 20m
env: { CI: "1" }
jobs: 4
steps:
  - { name: fmt, run: cargo fmt --check }
  - parallel:
      - { run: "cargo clippy --all-targets -- -D warnings", dir: crates/core }
      - { name: test, run: cargo test, timeout: 10m, env: { RUST_BACKTRACE: "0" }, retries: 1, retry_delay: 2s, shell: bash,
          when: "CI=1, !SKIP", changed: ["src/**"], allow_failure: true, junit: target/junit.xml }
  - run: |
      set -e
      ./check.sh
"#;

#[test]
fn a_lane_is_read_with_everything_in_it() {
    let lane = Lane {
        name: "verify".into(),
        description: "What every change must pass".into(),
        fail_fast: false,
        timeout: Duration::from_secs(1200),
        env: map(&[("CI", "1")]),
        jobs: NonZeroUsize::new(4),
        steps: vec![
            step("fmt", "cargo fmt --check"),
            Step {
                dir: Some("crates/core".into()),
                after: vec![0],
                ..step("cargo clippy", "cargo clippy --all-targets -- -D warnings")
            },
            Step {
                timeout: Some(Duration::from_secs(600)),
                env: map(&[("RUST_BACKTRACE", "0")]),
                retries: 1,
                retry_delay: Duration::from_secs(2),
                when: Condition::parse_all(["CI=1", "!SKIP"]).unwrap(),
                changed: vec!["src/**".into()],
                allow_failure: true,
                junit: Some("target/junit.xml".into()),
                shell: vec!["bash".into(), "-c".into()],
                after: vec![0],
                ..step("test", "cargo test")
            },
            Step { joints: vec![0], ..step("set", "set -e\n./check.sh") },
        ],
        joints: vec![Joint { steps: vec![1, 2], joints: Vec::new() }],
        entries: vec![
            entry("fmt", EntryKind::Inline, &[0]),
            StepEntry {
                items: [("cargo clippy --all-targets -- -D warnings", 1), ("test", 2)]
                    .map(|(name, step)| GroupMember { name: name.into(), kind: EntryKind::Inline, steps: vec![step] })
                    .into(),
                ..entry("parallel(cargo clippy --all-targets -- -D warnings, test)", EntryKind::Parallel, &[1, 2])
            },
            entry("set -e\n./check.sh", EntryKind::Inline, &[3]),
        ],
        gathers: Vec::new(),
        room: RoomKind::Clean,
        setup: Vec::new(),
        cache: Vec::new(),
        built: Vec::new(),
        network: false,
        writes: false,
        canary: CanaryTerms::Auto,
        flaky: FlakyPolicy::Pass,
        include_ignored: Vec::new(),
        hidden: Vec::new(),
        held_out: None,
    };
    assert_eq!(parse("verify", "lanes/verify.yaml", FULL), Ok(lane));
}

#[test]
fn steps_without_a_name_get_one_that_no_other_has() {
    let text =
        "steps: [{run: make test}, {name: make test 2, run: x}, {run: make test -k}, {run: '|| true'}, {run: a b c d}]";
    let lane = parse("verify", "verify.yaml", text).unwrap();
    let names: Vec<&str> = lane.steps.iter().map(|step| step.name.as_str()).collect();
    assert_eq!(names, ["make test", "make test 2", "make test 3", "step", "a b c"]);
}

#[test]
fn the_defaults_are_those_of_the_table() {
    let lane = parse("verify", "verify.yaml", "steps:\n- run: 'true'\n").unwrap();
    assert_eq!((lane.fail_fast, lane.timeout, lane.description.as_str()), (true, crate::limits::LANE_TIMEOUT, ""));
}

#[test]
fn everything_that_is_wrong_is_told_at_once_with_its_place() {
    let text = "\
fail_fast: yes
tiemout: 20m
timeout: 20
env: { 1X: a, CI: 1 }
jobs: 0
room: clean
steps:
  - { name: a, run: x, retries: -1, dir: ../up, when: 'A,,B', changed: ['../*'] }
  - { name: a, run: y, dir: /etc, timeout: 10 }
  - parallel:
      - { name: b }
      - parallel: [{ run: z }]
    run: beside
    name: group
  - cargo test
  - { run: 5, env: [A] }
  - { lane: spec-check, timeout: 5s, needs: [gone] }
  - { task: build, run: x }
  - { shell: zsh, run: '' }
";
    let fault = parse("verify", "lanes/verify.yaml", text).unwrap_err();
    insta::assert_snapshot!(fault.to_string());
}

#[test]
fn a_file_that_is_no_lane_is_refused() {
    let cases = [
        "",
        "steps:",
        "steps: []",
        "steps: [{parallel: []}]",
        "steps: run",
        "steps: 7",
        "[a, b]",
        "just text",
        "description: nothing else",
        "steps: [{run: a}]\nsteps: [{run: b}]",
        "steps: [{run: a, run: b}]",
        "steps:\n\t- run: a",
        "steps: [{run: \"a",
        "steps: [{run: \"a\\0b\"}]",
        "steps: [{name: \"two\\nlines\", run: a}]",
        "steps: [{run: ~}]",
        "timeout: 0s\nsteps: [{run: a}]",
        "timeout: 1h soon\nsteps: [{run: a}]",
        "fail_fast: 'true'\nsteps: [{run: a}]",
        "description: [a]\nsteps: [{run: a}]",
        "env: {A: \"x\\0\"}\nsteps: [{run: a}]",
        "steps: [{run: a, dir: a/../../b}]",
        "steps: [{run: a, Run: b}]",
        "step: [{run: a}]",
        "steps: [{cmd: a}]",
    ];
    let reported: Vec<String> =
        cases.iter().map(|text| format!("{text:?}\n{}", parse("verify", "v.yaml", text).unwrap_err())).collect();
    insta::assert_snapshot!(reported.join("\n\n"));
}

#[test]
fn a_value_of_several_lines_is_shown_in_one() {
    let text = "steps: [{run: a, when: \"#\\nCI\"}]";
    let fault = parse("verify", "v.yaml", text).unwrap_err().to_string();
    assert!(fault.lines().all(|line| line.starts_with("v.yaml:")), "{fault}");
}

proptest! {
    #[test]
    fn no_text_makes_it_panic_and_every_fault_names_the_file(cut in 0usize..500, put in "\\PC{0,6}") {
        let at = (0..=cut.min(FULL.len())).rev().find(|at| FULL.is_char_boundary(*at)).unwrap_or(0);
        for text in [format!("{}{put}{}", &FULL[..at], &FULL[at..]), format!("{}{put}", &FULL[..at]), put] {
            if let Err(fault) = parse("verify", "v.yaml", &text) {
                prop_assert!(!fault.to_string().is_empty() && fault.to_string().lines().all(|line| line.starts_with("v.yaml:")));
            }
        }
    }
}
