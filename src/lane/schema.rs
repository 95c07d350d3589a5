//! The JSON Schema of a lane file, for editors. It uses the words and ranges of the reader; a test
//! compares its keys with those of the reader.

use super::file::{MOST_JOBS, MOST_RETRIES, OPTIONS};
use super::reading::LONGEST_NAME;
use super::terms::{CanaryTerms, FLAKY, ROOMS};
use crate::yaml::schema::{KeyRow, any_of, any_text, defined, document, duration, flag, int, like, map, map_with};
use crate::yaml::schema::{names_to, one_of, text, text_or_texts, texts, with};
use serde_json::{Map, Value, json};

/// The pattern of variable names.
const VARIABLE: &str = "^[A-Za-z_][A-Za-z0-9_]*$";

/// Builds the schema of `lanes/<name>.yaml`.
pub(crate) fn schema() -> Value {
    let what = "A lane, `lanes/<name>.yaml`: steps that check the project, by hand or as the gate of a task.";
    let steps = |of: &str| json!({ "type": "array", "minItems": 1, "items": defined(of) });
    let rows = vec![
        ("description", any_text(), "An explanation for people."),
        ("fail_fast", flag(), "Whether the first failed step ends the lane. Default: `true`."),
        ("timeout", duration(), "The time limit of the whole lane. Default: `30m`."),
        ("env", variables(), "Environment variables of all steps."),
        ("jobs", int(1..=MOST_JOBS), "The maximum number of steps that run at once. Default: the number of cores."),
        ("tasks", tasks(), "Commands that steps can name."),
        ("steps", steps("step"), "The steps. They run one after the other, except for steps with `needs`."),
    ];
    let root = map_with(&["steps"], rows.into_iter().chain(terms()));
    let parallel = ("parallel", steps("member"), "Steps that may run at the same time.");
    let definitions = json!({
        "step": step([kinds(), vec![parallel]].concat()),
        "member": step(kinds()),
        "command": command(),
    });
    document("lane", "A fledge lane", what, with(root, json!({ "$defs": definitions })))
}

/// Builds the schema of `tasks`, which `fledge.yaml` also uses.
pub(crate) fn tasks() -> Value {
    let rows = [
        ("cmd", like(text(), "make all"), "The shell command."),
        ("deps", texts("build"), "Tasks that must run first."),
        ("env", variables(), "Environment variables of the task."),
        ("dir", like(text(), "web"), "The working folder, relative to the project's root."),
        ("description", any_text(), "An explanation for people."),
    ];
    let whole = with(map(rows), json!({ "anyOf": [{ "required": ["cmd"] }, { "required": ["deps"] }] }));
    names_to(any_of([like(text(), "make all"), whole]))
}

/// Lists the keys of a lane's gate settings.
fn terms() -> Vec<KeyRow> {
    let own = map_with(
        &["file", "text"],
        [
            ("file", like(text(), "tests/canary.rs"), "The path of the failing test, relative to the project's root."),
            ("text", text(), "The text of the failing test."),
            ("run", like(text(), "test"), "The step that must fail. Default: any step."),
        ],
    );
    let setup = json!({ "type": "array", "minItems": 1, "items": defined("command") });
    vec![
        (
            "room",
            one_of(&ROOMS),
            "Where the gate runs the lane: in a fresh copy of the tree, or in the workspace. Default: `clean`.",
        ),
        ("setup", setup, "Commands that prepare the room, on the base and with network, one after the other."),
        ("cache", texts("target"), "Folders that are built once on the base and copied for each gate run."),
        ("network", flag(), "Whether the steps have network access in the room. Default: `false`."),
        ("writes", flag(), "Whether the steps may change sources in the room. Default: `false`."),
        (
            "canary",
            any_of([one_of(&CanaryTerms::WORDS), own]),
            "The failing tests that the gate plants. The lane must report them; otherwise a pass proves nothing. Default: `auto`, by the runners of the lane.",
        ),
        ("flaky", one_of(&FLAKY), "How the gate counts a step that passed only after a retry. Default: `pass`."),
        ("include_ignored", texts(".env.test"), "Ignored files and folders that the room needs."),
        (
            "hidden",
            text_or_texts("tests/acceptance/**"),
            "Files of the base that the agent does not see and the gate uses: globs, or `auto 25%` of the test files.",
        ),
    ]
}

fn kinds() -> Vec<KeyRow> {
    vec![
        ("run", like(text(), "cargo test"), "A shell command."),
        ("task", like(text(), "build"), "The name of a task."),
        ("lane", like(text(), "spec-check"), "The name of another lane, whose steps are inserted here."),
    ]
}

/// Describes a step of one of these kinds.
fn step(kinds: Vec<KeyRow>) -> Value {
    let one: Vec<Value> = kinds.iter().map(|(kind, ..)| json!({ "required": [kind] })).collect();
    let none = |but: &str| -> Map<String, Value> {
        OPTIONS.iter().filter(|key| **key != but).map(|key| ((*key).to_owned(), json!(false))).collect()
    };
    let mut closed = json!({ "lane": { "properties": none("env") } });
    if kinds.iter().any(|(kind, ..)| *kind == "parallel") {
        closed["parallel"] = json!({ "properties": none("") });
    }
    let rows =
        kinds.into_iter().chain([name(), ("needs", texts("build"), "Steps that must end before this step starts.")]);
    with(map(rows.chain(options())), json!({ "oneOf": one, "dependentSchemas": closed }))
}

/// Describes a step of `setup`.
fn command() -> Value {
    let kinds = kinds().into_iter().filter(|(kind, ..)| *kind != "lane");
    let needs = (
        "needs",
        with(texts("build"), json!({ "maxItems": 0 })),
        "Always empty: setup commands run one after the other.",
    );
    with(
        map(kinds.chain([name(), needs]).chain(options())),
        json!({ "oneOf": [{ "required": ["run"] }, { "required": ["task"] }] }),
    )
}

fn name() -> KeyRow {
    ("name", with(text(), json!({ "maxLength": LONGEST_NAME })), "The name of the step. Default: its command.")
}

/// Lists the settings of a command.
fn options() -> [KeyRow; OPTIONS.len()] {
    [
        ("shell", like(text(), "bash -c"), "The shell and its arguments before the command. Default: `/bin/sh -c`."),
        ("dir", like(text(), "web"), "The working folder, relative to the project's root."),
        ("env", variables(), "Environment variables of this step; they override those of the lane."),
        ("timeout", duration(), "The time limit of each try, within that of the lane."),
        ("retries", int(0..=MOST_RETRIES), "How often a failed step is retried. Default: 0."),
        ("retry_delay", duration(), "The pause before a retry."),
        (
            "when",
            like(text(), "CI,!FAST=1"),
            "Conditions for the step, separated by commas: `VAR`, `VAR=value`, `!VAR`, `!VAR=value`. All must hold.",
        ),
        ("changed", texts("src/**"), "Globs; the step runs only if the run changed a matching path."),
        ("allow_failure", flag(), "Whether a failure of the step is only reported. Default: `false`."),
        ("junit", like(text(), "target/junit.xml"), "The JUnit report that the step writes."),
    ]
}

fn variables() -> Value {
    with(crate::yaml::schema::map_of_text(), json!({ "propertyNames": { "pattern": VARIABLE } }))
}

/// Returns the problems of `tasks` in a file that has other content too.
#[cfg(test)]
pub(crate) fn tasks_fault(text: &str) -> Option<String> {
    super::file::tasks(text).err().map(|problems| problems.within("f"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lane::file::draft;
    use crate::yaml::schema_law::{holds, keys, known};

    fn read(text: &str) -> Result<(), String> {
        let problems = draft(text).1;
        if problems.is_empty() { Ok(()) } else { Err(problems.within("lane.yaml")) }
    }

    #[test]
    fn the_schema_of_a_lane_has_the_keys_of_its_reader_and_takes_what_that_takes() {
        let schema = schema();
        let of = |path: &str| keys(schema.pointer(path).unwrap());
        assert_eq!(of(""), known("{ steps: [run: a], @ }", read));
        assert_eq!(of("/$defs/step"), known("steps: [{ run: a, @ }]", read));
        assert_eq!(
            of("/properties/tasks/additionalProperties/anyOf/1"),
            known("{ tasks: { a: { cmd: b, @ } }, steps: [run: a] }", read)
        );
        assert_eq!(
            of("/properties/canary/anyOf/1"),
            known("{ canary: { file: a, text: b, @ }, steps: [run: a] }", read)
        );
        let mut member = of("/$defs/member");
        member.push("parallel".into());
        member.sort();
        assert_eq!(member, of("/$defs/step"), "a member of a group is a step that is no group");
        assert_eq!(options().map(|(key, ..)| key), OPTIONS);
        holds(&schema, read);
    }
}
