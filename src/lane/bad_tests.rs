//! Tests of every key of a lane file with wrong values. Each message must give the place, the
//! expected and the found value, and a remedy.

use super::terms::TERMS;
use super::{LaneFiles, LaneRemark};

/// Values that almost no key takes, in YAML and in TOML.
const WRONG: [&str; 9] = ["5", "-1", "1.5", "true", "''", "'x y'", "[]", "{}", "[5, '', {}]"];

/// Returns all messages about a lane with this text, without the name of the file.
fn messages(lane_files: &LaneFiles) -> Vec<String> {
    let (_, problems, warnings) = lane_files.check();
    let said = |remark: &LaneRemark| remark.to_string().split_once(':').map(|(_, said)| said.to_owned()).unwrap();
    problems.iter().map(said).chain(warnings.iter().map(said).map(|said| format!("warning: {said}"))).collect()
}

fn yaml(text: &str) -> Vec<String> {
    let mut lane_files = LaneFiles::default();
    lane_files.add_lane("v", "v.yaml", text);
    messages(&lane_files)
}

fn toml(text: &str) -> Vec<String> {
    let mut lane_files = LaneFiles::default();
    lane_files.add_toml("fledge.toml", text);
    messages(&lane_files)
}

/// Formats a row of the table: a key with a value, and the messages about them, or `right`.
fn row(shown: &str, said: &[String]) -> String {
    let said = if said.is_empty() { "right".to_owned() } else { said.join("\n    ") };
    format!("{shown}\n    {said}\n")
}

/// Returns true if a message begins with its place and ends with a remedy.
fn is_whole(said: &str) -> bool {
    let said = said.strip_prefix("warning: ").unwrap_or(said);
    let mut parts = said.splitn(3, ':');
    let has_place = parts.by_ref().take(2).all(|part| part.parse::<usize>().is_ok());
    let says_what_to_do = said.ends_with(')') || said.contains("to be `"); // names one of the allowed words
    has_place && parts.next().is_some_and(|text| !text.is_empty()) && says_what_to_do
}

#[test]
fn every_wrong_value_of_every_key_of_a_yaml_lane_is_told_with_what_to_do() {
    let of_step = ["name", "needs", "dir", "env", "shell", "when", "changed", "allow_failure", "junit"];
    let of_numbers = ["timeout", "retries", "retry_delay"];
    let of_lane = ["description", "fail_fast", "timeout", "env", "jobs", "tasks"].iter().chain(&TERMS);
    let more = ["~", "-5s", "366d", "yes", "010", "99999999999"];
    let mut table = String::new();
    let mut note = |shown: String, text: String| {
        let said = yaml(&text);
        assert!(said.iter().all(|said| is_whole(said)), "{shown}: {said:#?}");
        table += &row(&shown, &said);
    };
    for key in ["run", "task", "lane", "parallel", "steps"] {
        for value in WRONG.iter().chain(&["~"]) {
            let text = if key == "steps" { format!("steps: {value}") } else { format!("steps: [{{{key}: {value}}}]") };
            note(format!("{key}: {value}"), text);
        }
    }
    for key in of_step {
        WRONG.iter().chain(&more[..1]).for_each(|value| {
            note(format!("{key}: {value}"), format!("steps: [{{run: a, {key}: {value}}}]"));
        });
    }
    for key in of_numbers {
        WRONG.iter().chain(&more).for_each(|value| {
            note(format!("{key}: {value}"), format!("steps: [{{run: a, {key}: {value}}}]"));
        });
    }
    for key in of_lane {
        WRONG.iter().chain(&more).for_each(|value| {
            note(format!("lane {key}: {value}"), format!("{key}: {value}\nsteps: [run: a]"));
        });
    }
    for key in ["cmd", "deps", "env", "dir", "description"] {
        WRONG.iter().chain(&more[..1]).for_each(|value| {
            let rest = if key == "cmd" { "" } else { ", cmd: a" };
            note(format!("task {key}: {value}"), format!("steps: [task: t]\ntasks: {{t: {{{key}: {value}{rest}}}}}"));
        });
    }
    insta::assert_snapshot!(table);
}

#[test]
fn every_wrong_value_of_every_key_of_a_fledge_toml_is_told_with_what_to_do() {
    let mut table = String::new();
    let mut note = |shown: String, text: String| {
        let said = toml(&text);
        assert!(said.iter().all(|said| is_whole(said)), "{shown}: {said:#?}");
        table += &row(&shown, &said);
    };
    let values: Vec<String> =
        WRONG.iter().chain(&["99999999999", "1979-05-27"]).map(|value| (*value).to_owned()).collect();
    let head = "[lanes.ci]\ndescription = 'd'\n";
    for value in &values {
        for key in ["run", "task", "parallel"] {
            note(format!("{key} = {value}"), format!("{head}steps = [{{{key} = {value}}}]"));
        }
        for key in ["when", "timeout", "retries", "retry_delay"] {
            note(format!("{key} = {value}"), format!("{head}steps = [{{run = 'a', {key} = {value}}}]"));
        }
        for key in ["steps", "fail_fast"] {
            let steps = if key == "steps" { "" } else { "steps = [{run = 'a'}]\n" };
            note(format!("lane {key} = {value}"), format!("{head}{steps}{key} = {value}"));
        }
        for key in ["cmd", "deps", "env", "dir", "description"] {
            let cmd = if key == "cmd" { "" } else { "cmd = 'a'\n" };
            note(format!("task {key} = {value}"), format!("[tasks.t]\n{cmd}{key} = {value}"));
        }
    }
    insta::assert_snapshot!(table);
}

#[test]
fn several_problems_of_one_value_come_at_once_and_in_their_order() {
    let text = "env: { A: 1, B: true, C: [] }\nsteps:\n  - { run: a, needs: [1, '', b], changed: [2, ../x], retries: x }\n  - 7\njobs: 0\n";
    let places: Vec<String> =
        yaml(text).iter().map(|said| said.splitn(3, ':').take(2).collect::<Vec<_>>().join(":")).collect();
    let expected = ["1:11", "1:17", "1:26", "3:23", "3:26", "3:44", "3:47", "3:63", "4:5", "5:7"];
    assert_eq!(places, expected);
}

#[test]
fn keys_that_a_later_stage_will_know_are_refused_in_a_lane_and_in_its_steps() {
    for key in ["holdout", "baseline", "expect", "sandbox"] {
        let said = yaml(&format!("{key}: 1\nsteps: [{{run: a, {key}: 2}}]"));
        let refused = |place: &str| format!("{place}: `{key}` is not supported yet (remove it)");
        assert_eq!(said, [refused("1:1"), refused("2:18")]);
        let said = toml(&format!("[lanes.ci]\ndescription = 'd'\nsteps = [{{run = 'a'}}]\n{key} = 1"));
        assert_eq!(said, [format!("warning: 4:1: `{key}` is not supported yet (remove it)")]);
    }
}

#[test]
fn keys_of_a_lane_are_refused_in_a_step_and_ignored_in_fledge_toml() {
    for key in TERMS {
        let said = yaml(&format!("steps: [{{run: a, {key}: 2}}]"));
        assert_eq!(said, [format!("1:18: `{key}` is said of a whole lane (write it beside `steps`)")]);
        let said = toml(&format!("[lanes.ci]\ndescription = 'd'\nsteps = [{{run = 'a'}}]\n{key} = 1"));
        let reported =
            format!("warning: 4:1: `{key}` is not read here (write the lane as `lanes/<name>.yaml` to use it)");
        assert_eq!(said, [reported]);
    }
}

#[test]
fn keys_of_others_are_told_with_ours() {
    let said = |key: &str| yaml(&format!("steps: [{{name: a, run: a, {key}: x}}]")).concat();
    let pairs = [("if", "when"), ("cwd", "dir"), ("depends_on", "needs"), ("continue-on-error", "allow_failure")];
    for (other, ours) in pairs {
        assert!(said(other).ends_with(&format!("(did you mean `{ours}`?)")), "{}", said(other));
    }
    assert!(yaml("steps: [{cmd: a}]")[1].ends_with("(did you mean `run`?)"));
    assert!(yaml("tasks: {t: {run: a}}\nsteps: [task: t]")[1].ends_with("(did you mean `cmd`?)"));
}

#[test]
fn forms_of_yaml_that_mean_no_harm_are_read_and_the_others_refused_where_they_stand() {
    let right = [
        "steps:\r\n- run: a\r\n",
        "steps: [run: a]",
        "---\nsteps: [run: a]\n...\n",
        "\u{feff}steps: [run: a]",
        "%YAML 1.2\n---\nsteps: [run: a]",
    ];
    right.iter().for_each(|text| assert_eq!(yaml(text), [""; 0], "{text:?}"));
    let wrong = [
        "steps:\r- run: a\r",
        "steps:\n\t- run: a",
        "steps:\n- run:\ta\n- name:\tb",
        "---\nsteps: [run: a]\n---\nsteps: [run: b]",
        "base: &b {run: a}\nsteps: [{<<: *b, name: x}]",
        "steps: [run: a, run: a]\nsteps: [run: b]",
        "steps:\n- &s {name: x, run: a}\n- *s",
        "on: push\njobs: {build: {steps: [run: a]}}",
        "fail_fast: on\nsteps: [{run: a, env: {A: 2020-01-01, B: ~, C: 0x10, D: 1e3, E: 010}}]",
        "steps:\n- name: a: b\n  run: x",
        "steps: [run: \"a",
    ];
    let table: Vec<String> = wrong.iter().map(|text| row(&format!("{text:?}"), &yaml(text))).collect();
    insta::assert_snapshot!(table.concat());
}

#[test]
fn what_is_made_to_exhaust_is_refused_with_what_to_do() {
    let mut bomb = String::from("a0: &a0 [x, x]\n");
    (1..60).for_each(|n| bomb += &format!("a{n}: &a{n} [*a{0}, *a{0}]\n", n - 1));
    let cases = [
        bomb,
        format!("steps: {}", "[".repeat(5_000)),
        format!("steps: {}", "{a: ".repeat(5_000)),
        format!("steps:\n{}", "- run: a\n".repeat(100_000)),
        format!("steps:\n{}", "- run: a\n".repeat(10_001)),
        format!("steps: [{{run: a, name: {}}}]", "x".repeat(1_000_000)),
        format!("steps: [{{run: a, needs: [{}]}}]", vec!["x"; 90_000].join(",")),
        format!("steps: [{{task: {}}}]", "x".repeat(1_000_000)),
        format!("steps: [{{run: a, {}: 1}}]", "x".repeat(1_000)),
    ];
    for text in cases {
        let said = yaml(&text);
        let (last, first) = (said.last().unwrap(), &said[0]);
        assert!(is_whole(first) && first.len() < 300, "{first}");
        assert!(said.len() == 1 || (said.len() == 201 && last.ends_with("more")), "{said:?}");
    }
}
