//! Tests of lanes with several files, tasks and `needs`.

use crate::lane::{EntryKind, GroupMember, Lane, LaneError, LaneFiles, StepEntry};
use std::time::Duration;

fn lane(files: &[(&str, &str)]) -> Result<Lane, LaneError> {
    let mut lane_files = LaneFiles::default();
    for (name, text) in files {
        match *name {
            "fledge.yaml" => lane_files.add_tasks(name, text),
            name => lane_files.add_lane(name, &format!("lanes/{name}.yaml"), text),
        }
    }
    lane_files.lane(files[0].0)
}

/// Formats a lane, one line for each step: number, name, command, the steps it waits for, and those
/// whose success it needs.
fn drawn(files: &[(&str, &str)]) -> String {
    let lane = lane(files).unwrap_or_else(|fault| panic!("{fault}"));
    let line = |(number, step): (usize, &crate::lane::Step)| {
        format!("{number} {} [{}] after {:?} needs {:?}\n", step.name, step.run, lane.before(number), step.needs)
    };
    lane.steps.iter().enumerate().map(line).collect()
}

#[test]
fn steps_wait_for_all_before_them_unless_they_say_what_they_need() {
    let text = "
steps:
  - { name: fmt, run: a }
  - name: checks
    parallel: [{ name: lint, run: b }, { name: test, run: c, needs: [fmt] }]
  - { name: docs, run: d, needs: [test] }
  - { name: early, run: e, needs: [] }
  - { name: both, run: f, needs: [checks, docs] }
  - { name: last, run: g }
";
    insta::assert_snapshot!(drawn(&[("verify", text)]), @r"
    0 fmt [a] after [] needs []
    1 lint [b] after [0] needs []
    2 test [c] after [0] needs [0]
    3 docs [d] after [2] needs [2]
    4 early [e] after [] needs []
    5 both [f] after [1, 2, 3] needs [1, 2, 3]
    6 last [g] after [1, 2, 3, 4, 5] needs []
    ");
}

#[test]
fn a_task_brings_what_it_depends_on_each_once_in_a_lane() {
    let text = "
tasks:
  build: { cmd: make, env: { A: task, B: task }, dir: sub }
  unit: { cmd: make unit, deps: [build] }
  all: { deps: [unit, lint] }
steps:
  - task: unit
  - { name: everything, task: all }
  - { task: build, name: again, env: { B: step } }
";
    let files = [("verify", text), ("fledge.yaml", "protect: [x]\ntasks: { lint: make lint }\n")];
    insta::assert_snapshot!(drawn(&files), @r"
    0 build [make] after [] needs []
    1 unit [make unit] after [0] needs [0]
    2 lint [make lint] after [1] needs []
    3 again [make] after [1, 2] needs []
    ");
    let lane = lane(&files).unwrap();
    let step = &lane.steps[3];
    assert_eq!(step.env.iter().map(|(k, v)| format!("{k}={v}")).collect::<Vec<_>>(), ["A=task", "B=step"]);
    assert_eq!((step.dir.as_deref(), lane.steps[1].dir.as_deref()), (Some("sub"), None));
}

#[test]
fn another_lane_is_put_in_with_its_own_variables_tasks_and_names() {
    let inner = "env: { A: inner, B: inner }\ntasks: { t: echo inner }\nsteps: [{ name: one, run: x }, { task: t, needs: [one] }]";
    let outer = "
tasks: { t: echo outer }
steps:
  - { name: first, run: x }
  - { lane: inner, env: { B: outer } }
  - { task: t, needs: [inner] }
";
    let files = [("outer", outer), ("inner", inner)];
    insta::assert_snapshot!(drawn(&files), @r"
    0 first [x] after [] needs []
    1 inner/one [x] after [0] needs []
    2 inner/t [echo inner] after [1] needs [1]
    3 t [echo outer] after [1, 2] needs [1, 2]
    ");
    let lane = lane(&files).unwrap();
    assert_eq!(lane.steps[1].env.iter().map(|(k, v)| format!("{k}={v}")).collect::<Vec<_>>(), ["A=inner", "B=outer"]);
}

#[test]
fn an_entry_is_an_item_as_it_is_written_and_knows_its_commands() {
    let text = "
tasks: { gen: make gen, lint: { cmd: make lint, deps: [gen] }, unit: { cmd: make unit, deps: [gen] }, all: { deps: [unit] } }
steps:
  - { task: lint, when: 'CI, !FAST', timeout: 10s, retries: 2, retry_delay: 1s }
  - parallel: [{ run: make docs --quiet }, { task: unit }]
  - { task: all, name: everything }
  - lane: inner
  - run: make pack --quiet
";
    let lane = lane(&[("verify", text), ("inner", "steps: [{ run: x }, { run: y }]")]).unwrap();
    let entry = |name: &str, kind, steps: &[usize], needed: &[usize]| {
        let (steps, needed, items) = (steps.to_vec(), needed.to_vec(), Vec::new());
        let (when, timeout, retries, retry_delay) = (None, None, None, None);
        StepEntry { name: name.into(), kind, items, steps, needed, when, timeout, retries, retry_delay }
    };
    let member = |name: &str, kind, step| GroupMember { name: name.into(), kind, steps: vec![step] };
    let entries = [
        StepEntry {
            when: Some("CI, !FAST".into()),
            timeout: Some(Duration::from_secs(10)),
            retries: Some(2),
            retry_delay: Some(Duration::from_secs(1)),
            ..entry("lint", EntryKind::Task, &[0, 1], &[])
        },
        StepEntry {
            items: vec![member("make docs --quiet", EntryKind::Inline, 2), member("unit", EntryKind::Task, 3)],
            ..entry("parallel(make docs --quiet, unit)", EntryKind::Parallel, &[2, 3], &[0])
        },
        entry("everything", EntryKind::Task, &[], &[0, 3]),
        entry("inner", EntryKind::Lane, &[4, 5], &[]),
        entry("make pack --quiet", EntryKind::Inline, &[6], &[]),
    ];
    assert_eq!(lane.entries, entries);
    let json = serde_json::to_value(&lane).unwrap();
    assert_eq!(
        (&json["entries"][3]["kind"], &json["entries"][1]["items"][0]["kind"]),
        (&"lane".into(), &"inline".into())
    );
}

#[test]
fn a_dependency_gives_way_to_a_step_that_has_its_name() {
    let text =
        "tasks: { build: make, test: { cmd: x, deps: [build] } }\nsteps: [{ name: build, run: y }, { task: test }]";
    let names: Vec<String> = lane(&[("v", text)]).unwrap().steps.into_iter().map(|step| step.name).collect();
    assert_eq!(names, ["build", "build 2", "test"]);
}

#[test]
fn what_is_unknown_twice_or_in_a_circle_is_told_with_its_place_and_file() {
    let cases: &[&[(&str, &str)]] = &[
        &[("a", "steps: [{ lane: b }]"), ("b", "steps: [{ name: x, run: x }, { lane: a }]")],
        &[("a", "steps: [{ lane: bb }]"), ("b", "steps: [{ run: x }]")],
        &[("a", "steps: [{ lane: b }]"), ("b", "steps: [{ rnu: x }]")],
        &[("a", "tasks: { x: { deps: [y] }, y: { cmd: y, deps: [x] } }\nsteps: [{ task: x }]")],
        &[("a", "tasks: { build: make }\nsteps: [{ task: biuld }]")],
        &[("a", "steps:\n  - { name: one, run: x, needs: [two] }\n  - { name: two, run: x }")],
        &[("a", "steps:\n  - { name: one, run: x, needs: [thre] }\n  - { name: three, run: x, needs: [] }")],
        &[("a", "steps:\n  - { name: one, run: x }\n  - { name: one, run: y }")],
        &[("a", "steps: [{ task: t }]"), ("fledge.yaml", "tasks: { t: 5 }")],
    ];
    let reported: Vec<String> = cases.iter().map(|files| lane(files).unwrap_err().to_string()).collect();
    insta::assert_snapshot!(reported.join("\n"));
}

#[test]
fn of_all_steps_that_wait_for_each_other_there_is_one_circle_and_of_others_another() {
    let need = |name: &str, needs: &str| format!("  - {{ name: {name}, run: x, needs: [{needs}] }}\n");
    let text = [("a", "b, c"), ("b", "a"), ("c", "a"), ("d", "a, e"), ("e", "d"), ("f", "e"), ("g", "g")];
    let text: String = text.iter().map(|(name, needs)| need(name, needs)).collect();
    let reported = lane(&[("v", &format!("steps:\n{text}"))]).unwrap_err().to_string();
    let circles: Vec<&str> =
        reported.lines().filter_map(|line| line.split_once("each other: ")?.1.split(" (").next()).collect();
    assert_eq!(circles, ["a → b → a", "d → e → d", "g → g"], "{reported}");
}

#[test]
fn lanes_that_double_at_each_include_are_refused_before_they_fill_the_memory() {
    let names: Vec<String> = (0..30).map(|depth| format!("l{depth}")).collect();
    let texts: Vec<String> =
        (1..30).map(|next| format!("steps: [{{ name: a, lane: l{next} }}, {{ name: b, lane: l{next} }}]")).collect();
    let mut files: Vec<(&str, &str)> =
        names.iter().zip(&texts).map(|(name, text)| (name.as_str(), text.as_str())).collect();
    files.push(("l29", "steps: [{ run: x }]"));
    assert!(lane(&files).unwrap_err().to_string().contains("a lane has at most"));
}

#[test]
fn a_graph_of_a_thousand_steps_is_made_in_no_time() {
    let mut text = String::from("steps:\n");
    for number in 0..1000 {
        let needs: Vec<String> =
            [number - 50, number - 49].iter().filter(|n| **n >= 0).map(|n| format!("s{n}")).collect();
        text.push_str(&format!("  - {{ name: s{number}, run: x, needs: [{}] }}\n", needs.join(", ")));
    }
    let lane = lane(&[("verify", &text)]).unwrap();
    assert_eq!((lane.steps.len(), lane.steps[999].needs.as_slice()), (1000, [949, 950].as_slice()));
}

/// Creates lanes `l0` to `l23`. Each has `steps`, with `NEXT` replaced by the name of the next
/// lane; the last one has `last`.
fn tower(steps: &str, last: &str) -> Result<Lane, LaneError> {
    let name = |depth: usize| format!("l{depth}");
    let text = |depth| if depth == 23 { last.to_owned() } else { steps.replace("NEXT", &name(depth + 1)) };
    let files: Vec<(String, String)> = (0..24).map(|depth| (name(depth), text(depth))).collect();
    lane(&files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect::<Vec<_>>())
}

#[test]
fn what_doubles_without_making_steps_is_refused_as_well() {
    let twice = "steps: [{ name: a, lane: NEXT }, { name: b, lane: NEXT }]";
    for last in ["steps: [{ name: x }]", "tasks: { a: { deps: [b] }, b: { deps: [c] }, c: x }\nsteps: [{ task: a }]"] {
        let reported = tower(twice, last).unwrap_err().to_string();
        assert_eq!(reported.matches("a lane has at most").count(), 1, "{reported}");
    }
}

#[test]
fn a_full_lane_is_said_once_however_its_tasks_depend_on_each_other() {
    let mut text = String::from("tasks:\n");
    for layer in 0..40 {
        let deps = if layer == 39 { String::new() } else { format!(", deps: [a{0}, b{0}]", layer + 1) };
        text.push_str(&format!("  a{layer}: {{ cmd: x{deps} }}\n  b{layer}: {{ cmd: x{deps} }}\n"));
    }
    text.push_str("steps:\n");
    text.push_str(&"  - run: x\n".repeat(9_999));
    text.push_str("  - task: a0\n");
    let reported = lane(&[("verify", &text)]).unwrap_err().to_string();
    assert_eq!(
        (reported.matches("a lane has at most 10000 steps").count(), reported.lines().count()),
        (1, 1),
        "{reported}"
    );
}

#[test]
fn group_after_group_costs_what_the_groups_cost() {
    let group = |name: &str| format!("  - name: {name}\n    parallel:\n{}", "    - run: x\n".repeat(4_999));
    let lane = lane(&[("verify", &format!("steps:\n{}{}", group("one"), group("two")))]).unwrap();
    assert_eq!((lane.steps.len(), lane.before(9_997), lane.joints.len()), (9_998, (0..4_999).collect(), 1));
    assert_eq!((&lane.steps[9_997].after, &lane.steps[9_997].joints), (&vec![], &vec![0]));
}

#[test]
fn a_task_that_is_there_for_others_is_the_step_that_names_it_later() {
    let tasks = "tasks: { build: make, test: { cmd: x, deps: [build] } }\n";
    let both = format!("{tasks}steps: [{{ task: test }}, {{ task: build }}, {{ run: y }}]");
    insta::assert_snapshot!(drawn(&[("v", &both)]), @r"
    0 build [make] after [] needs []
    1 test [x] after [0] needs [0]
    2 y [y] after [0, 1] needs []
    ");
    let lane = lane(&[("v", &both)]).unwrap();
    assert_eq!((&lane.entries[1].steps, &lane.entries[1].needed), (&vec![], &vec![0]));
    let again = format!(
        "{tasks}steps: [{{ task: test }}, {{ task: build, retries: 1 }}, {{ run: y, name: z, needs: [build] }}]"
    );
    insta::assert_snapshot!(drawn(&[("v", &again)]), @r"
    0 build 2 [make] after [] needs []
    1 test [x] after [0] needs [0]
    2 build [make] after [1] needs []
    3 z [y] after [2] needs [2]
    ");
}

#[test]
fn what_a_gathering_task_needs_is_kept_for_what_comes_after_it() {
    let text = "
tasks: { a: x, all: { deps: [a] } }
steps:
  - { name: first, run: x, needs: [] }
  - { name: early, task: a, needs: [] }
  - { task: all, needs: [first] }
  - { name: last, run: y }
  - { name: named, run: y, needs: [all] }
";
    insta::assert_snapshot!(drawn(&[("v", text)]), @r"
    0 first [x] after [] needs []
    1 early [x] after [] needs []
    2 last [y] after [0, 1] needs []
    3 named [y] after [0, 1] needs [0, 1]
    ");
}

#[test]
fn a_step_has_no_more_time_than_the_included_lane_that_it_stands_in() {
    let files = [
        ("a", "timeout: 1m\nsteps: [{ run: x }, { lane: b }]"),
        ("b", "timeout: 10s\nsteps: [{ run: x }, { run: x, timeout: 5s }, { run: x, timeout: 20s }, { lane: c }]"),
        ("c", "timeout: 1h\nsteps: [{ run: x }]"),
    ];
    let lane = lane(&files).unwrap();
    let times: Vec<Option<u64>> = lane.steps.iter().map(|step| step.timeout.map(|time| time.as_secs())).collect();
    assert_eq!((lane.timeout.as_secs(), times), (60, vec![None, Some(10), Some(5), Some(10), Some(10)]));
}

#[test]
fn a_test_report_belongs_to_one_step() {
    let text = "tasks: { t: { cmd: x, dir: sub } }
steps:
  - { name: one, run: x, dir: ./sub, junit: out/j.xml }
  - { name: two, run: x, junit: out/j.xml }
  - { name: three, task: t, junit: ./out//j.xml }
";
    let reported = lane(&[("v", text)]).unwrap_err().to_string();
    let why = "the test report `sub/out/j.xml` is that of the step `one` too (let each step write its own)";
    assert_eq!(reported, format!("lanes/v.yaml:5:5: {why}"));
}

#[test]
fn ignored_settings_of_an_included_lane_are_reported_at_the_include() {
    let mut lane_files = LaneFiles::default();
    lane_files.add_lane("a", "lanes/a.yaml", "jobs: 2\nsteps: [{ lane: b }, { parallel: [{ run: x }, { lane: c }] }]");
    lane_files.add_lane("b", "lanes/b.yaml", "jobs: 3\nfail_fast: false\nsteps: [{ lane: c }]");
    lane_files.add_lane("c", "lanes/c.yaml", "jobs: 2\nfail_fast: true\nsteps: [{ run: x }]");
    let of_a: Vec<String> = lane_files.warnings_of("a").iter().map(ToString::to_string).collect();
    let expected = [
        "lanes/a.yaml:2:17: `fail_fast: false` of lane `b` means nothing here: that of lane `a` counts (write it there, or run `b` by itself)",
        "lanes/a.yaml:2:17: `jobs: 3` of lane `b` means nothing here: that of lane `a` counts (write it there, or run `b` by itself)",
        "lanes/b.yaml:3:17: `fail_fast: true` of lane `c` means nothing here: that of lane `b` counts (write it there, or run `c` by itself)",
        "lanes/b.yaml:3:17: `jobs: 2` of lane `c` means nothing here: that of lane `b` counts (write it there, or run `c` by itself)",
    ];
    assert_eq!(of_a, expected);
    let all: Vec<String> = lane_files.check().2.iter().map(ToString::to_string).collect();
    assert_eq!(all, expected);
}
