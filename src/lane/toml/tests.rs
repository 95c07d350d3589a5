//! Tests of valid and invalid TOML files, and comparisons with equivalent YAML files.

use crate::lane::{EntryKind, Lane, LaneFiles, StartFacts, Step, StepSelection};
use proptest::prelude::*;
use std::time::Duration;

fn lane_files(text: &str) -> LaneFiles {
    let mut lane_files = LaneFiles::default();
    lane_files.add_toml("fledge.toml", text);
    lane_files
}

fn lane(text: &str) -> Lane {
    lane_files(text).lane("ci").unwrap_or_else(|fault| panic!("{fault}"))
}

/// Formats a lane, one line for each step: name, command, the steps it waits for, and the
/// dependencies of its task.
fn drawn(lane: &Lane) -> String {
    let line = |(number, step): (usize, &Step)| {
        format!("{number} {} [{}] after {:?} deps {:?}\n", step.name, step.run, lane.before(number), step.deps)
    };
    lane.steps.iter().enumerate().map(line).collect()
}

const FULL: &str = r#"
[project]
name = "x"

[tasks]
fmt = "cargo fmt --check"

[tasks.gen]
description = "Writes what is generated"
cmd = "make gen"
dir = "tools"
env = { A = "1" }

[tasks.test]
cmd = "cargo test"
deps = ["gen", "fmt"]

[lanes.ci]
description = "All"
fail_fast = false
steps = [
    "fmt",
    { run = "make docs --quiet", when = "CI,,!FAST", timeout = 90 },
    { task = "test", retries = 2, timeout = 60 },
    { parallel = ["test", { run = "a" }, "lint"], retries = 1, retry_delay = 3, when = "X=1", timeout = 5 },
    "test",
]

[tasks.lint]
cmd = "lint"
deps = ["more"]

[tasks.more]
cmd = "more"
"#;

#[test]
fn a_file_of_an_existing_project_is_read_as_it_is() {
    let lane = lane(FULL);
    insta::assert_snapshot!(drawn(&lane), @r"
    0 fmt [cargo fmt --check] after [] deps []
    1 make docs [make docs --quiet] after [0] deps []
    2 gen [make gen] after [1] deps []
    3 test [cargo test] after [0, 1, 2] deps [0, 2]
    4 test 2 [cargo test] after [0, 2, 3] deps [0, 2]
    5 a [a] after [3] deps []
    6 more [more] after [3] deps []
    7 lint [lint] after [3, 6] deps [6]
    8 test 3 [cargo test] after [0, 2, 4, 5, 7] deps [0, 2]
    ");
    assert_eq!((lane.description.as_str(), lane.fail_fast), ("All", false));
    let seconds = |step: &Step| (step.timeout.map(|time| time.as_secs()), step.retries, step.retry_delay.as_secs());
    let limits: Vec<_> = lane.steps.iter().map(seconds).collect();
    let (alone, in_group) = ((Some(60), 2, 1), (Some(5), 1, 3));
    let expected = [(None, 0, 0), (Some(90), 0, 0), alone, alone, in_group, in_group, in_group, in_group, (None, 0, 0)];
    assert_eq!(limits, expected, "settings of a step apply to its dependencies and to each step of a group");
    let when: Vec<usize> = lane.steps.iter().map(|step| step.when.len()).collect();
    assert_eq!(when, [0, 2, 0, 0, 1, 1, 0, 1, 0]);
    assert_eq!((lane.steps[2].dir.as_deref(), lane.steps[2].env["A"].as_str()), (Some("tools"), "1"));
    let entries: Vec<_> = lane.entries.iter().map(|e| (e.name.as_str(), e.kind, e.steps.len())).collect();
    let expected = [
        ("fmt", EntryKind::Task, 1),
        ("make docs --quiet", EntryKind::Inline, 1),
        ("test", EntryKind::Task, 2),
        ("parallel(test, a, lint)", EntryKind::Parallel, 4),
        ("test", EntryKind::Task, 1),
    ];
    assert_eq!(entries, expected);
    let group = &lane.entries[3];
    let message = (group.when.as_deref(), group.timeout, group.retries, group.retry_delay, group.needed.as_slice());
    let three = Some(Duration::from_secs(3));
    assert_eq!(message, (Some("X=1"), Some(Duration::from_secs(5)), Some(1), three, [0, 2].as_slice()));
    assert_eq!(lane_files(FULL).warnings_of("ci").len(), 0);
}

#[test]
fn dependencies_run_in_their_order_as_long_as_none_fails() {
    let lane = lane(
        "tasks = { a = 'a', b = 'b', c = { cmd = 'c', deps = ['a'] }, d = { cmd = 'd', deps = ['b', 'c'] } }\nlanes.ci.steps = ['d']",
    );
    let drawn = |step: &Step| (step.name.clone(), step.needs.clone(), step.deps.clone());
    let expected =
        [("b", vec![], vec![]), ("a", vec![0], vec![]), ("c", vec![0, 1], vec![1]), ("d", vec![0, 2], vec![0, 2])];
    let expected: Vec<_> = expected.into_iter().map(|(name, needs, deps)| (name.to_owned(), needs, deps)).collect();
    assert_eq!(lane.steps.iter().map(drawn).collect::<Vec<_>>(), expected);
}

#[test]
fn a_step_that_may_stand_there_twice_is_selected_by_its_number() {
    let lane = lane(
        "tasks = { build = 'b', test = { cmd = 't', deps = ['build'] } }\nlanes.ci.steps = ['test', 'build', 'test']",
    );
    let only = |wanted: &str| {
        let reasons = lane.left_out(&StepSelection::Only(wanted.into()), &StartFacts::default()).unwrap();
        (0..reasons.len()).filter(|step| reasons[*step].is_none()).collect::<Vec<_>>()
    };
    let names: Vec<&str> = lane.steps.iter().map(|step| step.name.as_str()).collect();
    assert_eq!(names, ["build", "test", "build 2", "test 2"]);
    assert_eq!([only("test"), only("3"), only("build"), only("test 2")], [vec![0, 1], vec![2, 3], vec![2], vec![2, 3]]);
}

#[test]
fn what_is_wrong_or_strange_is_told_at_once_with_its_place() {
    let cases = [
        // not TOML, or invalid form
        "[tasks\na = 1\n[lanes.ci]\nsteps = [\"a]\n",
        "tasks = 5\nlanes = []",
        "[lanes]\nci = [\"a\"]\nb = { description = 1979-05-27 }",
        "[[lanes.ci]]\nsteps = [\"a\"]",
        // tasks
        "[tasks]\na = 5\nb = \"\"\nc = { cmd = \"\" }\nd = { env = { A = 1, \"1X\" = \"\" }, dir = \"../up\", deps = \"a\" }\ne = {}\nf = \"a\\u0000\"",
        "[tasks.a]\ncmd = \"a\"\ndepends = []\ndesc = \"\"\nDIR = \".\"",
        "[tasks]\na = { cmd = \"a\", deps = [\"b\", \"gone\"] }\nb = { cmd = \"b\", deps = [\"a\"] }",
        // lanes
        "[lanes.ci]\ndescription = \"x\"",
        "[lanes.ci]\nsteps = []\n[lanes.\"../up\"]\nsteps = [{ run = \"a\" }]",
        "[lanes.ci]\nsteps = \"a\"\nfail_fast = \"no\"\nfailfast = true\ntimeout = 5",
        // steps
        "[lanes.ci]\nsteps = [5, \"\", [\"a\"], {}, { when = \"A\" }, { run = \"\" }, { run = \"a\", task = \"b\" }]",
        "[lanes.ci]\nsteps = [{ run = \"a\", timeout = 0, retries = -1, retry_delay = \"5s\", when = \"A B\" }]",
        "[lanes.ci]\nsteps = [{ run = \"a\", tiemout = 5, dir = \"x\" }, { parallel = [{ run = \"a\", when = \"CI\" }, { parallel = [] }] }, { parallel = [] }]",
        "[tasks]\nbuild = \"make\"\n[lanes.ci]\nsteps = [\"biuld\", { task = \"gone\" }, { parallel = [\"buidl\"] }]",
        "[lanes.ci]\nsteps = [{ lane = \"x\", wehn = \"CI\" }]",
        // tables with similar names
        "[task]\na = \"a\"\n[lane.ci]\n[Lanes.ci]\n[plugins]\n[release]\nlane = \"ci\"\n[lanes.ci]\nsteps = [{ run = \"a\" }]",
    ];
    let mut reported = String::new();
    for text in cases {
        let (lanes, problems, warnings) = lane_files(text).check();
        let lines = problems.iter().map(ToString::to_string);
        let lines: Vec<String> = lines.chain(warnings.iter().map(|warning| format!("warning: {warning}"))).collect();
        let names: Vec<&str> = lanes.iter().map(|lane| lane.name.as_str()).collect();
        reported += &format!("{text}\n--\n{}\nright: {names:?}\n\n", lines.join("\n"));
    }
    insta::assert_snapshot!(reported);
}

#[test]
fn what_is_wrong_with_one_lane_or_task_stops_no_other() {
    let text = "tasks = { good = 'g', bad = 5, worse = { cmd = 'w', deps = ['bad'] } }\n\
        [lanes]\nci.steps = ['good']\nodd.steps = []\nuses.steps = ['worse']\n";
    assert_eq!(lane(text).steps.len(), 1);
    let fault = |name: &str| lane_files(text).lane(name).unwrap_err().to_string();
    assert_eq!(fault("odd"), "fledge.toml:4:13: `steps` is empty (name one task at least)");
    assert!(fault("uses").starts_with("fledge.toml:1:29: expected the task `bad` to be a command, found the number 5"));
}

#[test]
fn the_yaml_lane_and_task_count_and_imported_ones_fill_what_is_free() {
    let mut lane_files = LaneFiles::default();
    lane_files.add_tasks("fledge.yaml", "tasks: { fmt: yaml }");
    lane_files.add_lane("ci", "lanes/ci.yaml", "steps: [{ task: fmt }, { task: test }, { lane: more }]");
    lane_files.add_toml(
        "fledge.toml",
        "tasks = { fmt = 'toml', test = 'toml' }\nlanes.ci.steps = ['fmt']\nlanes.own = { steps = ['fmt'], step = [] }\n",
    );
    lane_files.add_imported(
        ".fledge/lanes/a.toml",
        "tasks = { test = 'imported', x = { cmd = 'first', deps = ['gone'] }, y = 'y' }\nlanes = { own.steps = [], more.steps = ['fmt', 'y'] }",
    );
    lane_files.add_imported(".fledge/lanes/b.toml", "tasks.y = 'second'\nlanes.odd.steps = ['x']");
    let commands = |name: &str| -> Vec<String> {
        lane_files.lane(name).unwrap().steps.into_iter().map(|step| format!("{}: {}", step.name, step.run)).collect()
    };
    assert_eq!(commands("ci"), ["fmt: yaml", "test: toml", "more/fmt: yaml", "more/y: y"]);
    assert_eq!(commands("own"), ["fmt: yaml"]);
    assert_eq!(
        lane_files.lane("odd").unwrap_err().to_string(),
        ".fledge/lanes/a.toml:1:59: there is no task `gone` (there are: fmt, test, x, y)"
    );
    let warnings = |name: &str| lane_files.warnings_of(name).iter().map(ToString::to_string).collect::<Vec<_>>();
    let task = "fledge.toml:1:11: task `fmt` is also in fledge.yaml, and that one is used (remove one of them)";
    assert_eq!(
        warnings("ci"),
        ["fledge.toml:2:7: lane `ci` is also in lanes/ci.yaml, and that one is used (remove one of them)"]
    );
    let step = "fledge.toml:3:32: unknown key `step` in a lane (did you mean `steps`?)";
    assert_eq!(warnings("own"), [task, step]);
    assert_eq!(warnings("more"), [""; 0]);
}

#[test]
fn a_file_that_cannot_be_read_at_all_stops_what_it_may_define_and_nothing_else() {
    let mut lane_files = LaneFiles::default();
    lane_files.add_tasks("fledge.yaml", "tasks: { fmt: f }");
    lane_files.add_lane("verify", "lanes/verify.yaml", "steps: [{ run: a }, { task: fmt }]");
    lane_files.add_lane("more", "lanes/more.yaml", "steps: [{ task: test }]");
    lane_files.add_lane("most", "lanes/most.yaml", "steps: [{ lane: own }]");
    lane_files.add_toml("fledge.toml", "[lanes");
    lane_files.add_imported(".fledge/lanes/a.toml", "tasks.test = 't'\nlanes.own.steps = [{ run = 'a' }]");
    assert_eq!(lane_files.lane("verify").unwrap().steps.len(), 2);
    let note = lane_files.warnings_of("verify")[0].to_string();
    assert!(note.starts_with("fledge.toml:1:7: not TOML: "), "{note}");
    assert!(lane_files.has("anything"));
    for name in ["more", "most", "own", "anything"] {
        let reported = lane_files.lane(name).unwrap_err().to_string();
        assert!(
            reported.starts_with("fledge.toml:1:7: not TOML: ") && reported.lines().count() == 1,
            "{name}: {reported}"
        );
    }
    let (lanes, fault) = lane_files.all();
    assert_eq!((lanes.len(), fault.files.len()), (1, 1));
}

#[test]
fn a_date_or_a_huge_number_is_refused_where_it_is_read_and_nowhere_else() {
    let text = "[tasks.a]\ncmd = 'a'\nsince = 1979-05-27\n[lanes]\nci.steps = ['a']\nci.size = 99999999999999999999\n\
        odd.steps = [{ run = 'a', timeout = 07:32:00, retries = 99999999999999999999 }]\nodd.description = 1979-05-27\n";
    assert_eq!(lane(text).steps.len(), 1);
    assert_eq!(lane_files(text).warnings_of("ci").len(), 2);
    let expected = [
        "fledge.toml:7:37: expected `timeout` to be a whole number from 1 to 31536000, found the date 07:32:00 (write a number in that range)",
        "fledge.toml:7:57: expected `retries` to be a whole number from 0 to 4294967295, found the number 99999999999999999999 (write a number in that range)",
        "fledge.toml:8:19: expected `description` to be a text, found the date 1979-05-27 (write it in quotes)",
    ];
    assert_eq!(lane_files(text).lane("odd").unwrap_err().to_string().lines().collect::<Vec<_>>(), expected);
}

#[test]
fn a_chain_of_tasks_without_end_is_refused() {
    let mut text = String::from("[lanes.ci]\nsteps = [\"t0\"]\n[tasks]\n");
    for number in 0..5000 {
        text += &format!("t{number} = {{ cmd = 'x', deps = ['t{}'] }}\n", number + 1);
    }
    assert!(
        lane_files(&text)
            .lane("ci")
            .unwrap_err()
            .to_string()
            .contains("a chain of dependencies has more than 500 tasks")
    );
}

#[test]
fn a_lane_as_large_as_one_may_be_is_made_in_no_time() {
    let many = |item: &str| vec![item; 4000].join(",");
    let deps: Vec<String> = (0..4000).map(|number| format!("'t{number}'")).collect();
    let mut text = format!("lanes.ci.steps = ['all', {}]\ntasks.a = 'a'\n", many("'a'"));
    text += &format!("tasks.all = {{ cmd = 'all', deps = [{}] }}\n", deps.join(","));
    deps.iter().for_each(|name| text += &format!("tasks.{} = 't'\n", name.trim_matches('\'')));
    let lane = lane(&text);
    assert_eq!((lane.steps.len(), lane.steps[8000].name.as_str()), (8001, "a 4000"));
    assert_eq!((lane.steps[3999].needs.as_slice(), lane.steps[4000].deps.len()), ([3998].as_slice(), 4000));
}

/// An item of `steps`: its kind, timeout, retries with their pause, and condition.
type Written = (u8, Option<u64>, Option<(u32, u64)>, Option<&'static str>);

/// Writes a project in both forms.
fn twins(tasks: &[(Option<usize>, bool)], steps: &[Written], fail_fast: bool) -> (String, String) {
    let mut toml = format!("lanes.ci.fail_fast = {fail_fast}\nlanes.ci.description = \"d\"\nlanes.ci.steps = [\n");
    let mut yaml = format!("fail_fast: {fail_fast}\ndescription: d\nsteps:\n");
    let mut next = 0..tasks.len();
    for (number, (kind, timeout, tries, when)) in steps.iter().enumerate() {
        let (mut message, mut toml_options, mut yaml_options) = (Vec::new(), String::new(), String::new());
        message.extend(timeout.map(|time| ("timeout", format!("{time}"), format!("{time}s"))));
        message.extend(tries.map(|(tries, _)| ("retries", format!("{tries}"), format!("{tries}"))));
        message.extend(tries.map(|(_, pause)| ("retry_delay", format!("{pause}"), format!("{pause}s"))));
        message.extend(when.map(|when| ("when", format!("'{when}'"), format!("'{when}'"))));
        for (key, toml, yaml) in message {
            toml_options += &format!(", {key} = {toml}");
            yaml_options += &format!(", {key}: {yaml}");
        }
        let task = if *kind == 0 { None } else { next.next() };
        let run = format!("make {number} --all");
        match (kind, task) {
            (1, Some(task)) if tasks[task].0.is_none() => {
                toml += &format!("  {{ task = 't{task}'{toml_options} }},\n");
                yaml += &format!("  - {{ task: t{task}{yaml_options} }}\n");
            }
            (1, Some(task)) => {
                toml += &format!("  't{task}',\n");
                yaml += &format!("  - task: t{task}\n");
            }
            (2, Some(task)) => {
                toml += &format!("  {{ parallel = ['t{task}', {{ run = '{run}' }}] }},\n");
                yaml += &format!("  - parallel: [{{ task: t{task} }}, {{ run: {run} }}]\n");
            }
            _ => {
                toml += &format!("  {{ run = '{run}'{toml_options} }},\n");
                yaml += &format!("  - {{ run: {run}{yaml_options} }}\n");
            }
        }
    }
    toml += "]\n[tasks]\n";
    yaml += "tasks:\n";
    for (number, (dep, is_full)) in tasks.iter().enumerate() {
        let dep = dep.filter(|_| number > 0).map(|dep| dep % number);
        let more = if *is_full { (", dir = 'sub', env = { A = 'b' }", ", dir: sub, env: { A: b }") } else { ("", "") };
        let deps = dep.map(|dep| (format!(", deps = ['t{dep}']"), format!(", deps: [t{dep}]"))).unwrap_or_default();
        toml += &format!("t{number} = {{ cmd = 'run {number}'{}{} }}\n", deps.0, more.0);
        yaml += &format!("  t{number}: {{ cmd: run {number}{}{} }}\n", deps.1, more.1);
    }
    (toml, yaml)
}

proptest! {
    #[test]
    fn a_lane_and_its_twin_in_yaml_are_the_same(
        tasks in proptest::collection::vec((proptest::option::of(0..8usize), any::<bool>()), 1..6),
        steps in proptest::collection::vec((
            0..3u8,
            proptest::option::of(1..100u64),
            proptest::option::of((0..5u32, 1..9u64)),
            proptest::option::of(prop_oneof![Just("CI"), Just("!CI, A=b"), Just("!X=1")]),
        ), 1..8),
        fail_fast in any::<bool>(),
    ) {
        let (toml, yaml) = twins(&tasks, &steps, fail_fast);
        let mut other = LaneFiles::default();
        other.add_lane("ci", "lanes/ci.yaml", &yaml);
        prop_assert_eq!(lane(&toml), other.lane("ci").unwrap_or_else(|fault| panic!("{fault}\n{yaml}")));
    }

    #[test]
    fn no_text_makes_it_panic_and_every_fault_names_the_file(cut in 0usize..700, put in "\\PC{0,6}") {
        let at = (0..=cut.min(FULL.len())).rev().find(|at| FULL.is_char_boundary(*at)).unwrap_or(0);
        for text in [format!("{}{put}{}", &FULL[..at], &FULL[at..]), format!("{}{put}", &FULL[..at]), put] {
            let (_, problems, warnings) = lane_files(&text).check();
            for remark in problems.iter().chain(&warnings) {
                prop_assert!(remark.to_string().lines().all(|line| line.starts_with("fledge.toml:")), "{}", remark);
            }
        }
    }
}

#[test]
fn one_long_line_is_read_as_fast_as_many_short_ones_and_no_further_than_others() {
    let text = |count: usize| format!("lanes.ci.steps = [{}5]", "'é',".repeat(count));
    let reported = |count: usize| lane_files(&text(count)).lane("ci").unwrap_err().to_string();
    assert!(reported(150_000).contains(": more than 100000 values (split the file)"), "{}", reported(150_000));
    assert!(
        reported(90_000).contains("fledge.toml:1:360019: expected a step, found the number 5"),
        "{}",
        &reported(90_000)[..500]
    );
}
