//! A batch file as a JSON Schema, for editors. Its words and ranges are the reader's own; a test holds its keys to it.

use super::{MOST_AT_ONCE, MOST_RETRIES};
use crate::task::{Commit, Isolation, OnTamper, Tier, budget_schema};
use crate::yaml::schema::{Row, any_of, document, dollars, duration, flag, int, like, map, map_with, names_to, one_of};
use crate::yaml::schema::{text, text_or_texts, with};
use serde_json::{Value, json};

/// The schema of a batch file.
pub(crate) fn schema() -> Value {
    let tasks = "Task files, folders and globs, relative to this file: of a folder its `*.md`, but for `README.md`.";
    let bounds = [
        ("jobs", int(1..=MOST_AT_ONCE), "Runs at once. Default: one for each processor."),
        ("fail_fast", flag(), "Whether the first task that is not verified ends all of it. Default: `false`."),
        ("retries", int(0..=MOST_RETRIES), "Further runs for a task whose run ended in an error. Default: 0."),
        ("retry_delay", duration(), "How long is waited before each of these. Default: `10s`."),
        ("max_usd", dollars(), "What all of them may cost together, in US dollars. Default: no limit."),
    ];
    let rows: [Row; 4] = [
        ("tasks", text_or_texts("tasks/*.md"), tasks),
        ("matrix", matrix(), "Values for the parameters of the tasks: each task is run with every combination."),
        ("repositories", repositories(), "Folders that each task is worked on in. Default: the one of the command."),
        ("defaults", defaults(), "What holds for tasks that do not say it themselves."),
    ];
    let what = "Many tasks, with the values and the repositories that they are run with: `fledge run batch.yaml`.";
    document("batch", "A fledge batch", what, map_with(&["tasks"], rows.into_iter().chain(bounds)))
}

fn matrix() -> Value {
    let value = json!({ "type": ["string", "number", "boolean"] });
    let values = like(json!({ "type": "array", "minItems": 1, "items": value.clone() }), json!(["1", "2"]));
    let entry = with(names_to(value), json!({ "minProperties": 1 }));
    let entries = |what: &str| json!({ "type": "array", "items": entry.clone(), "description": what });
    let include = entries("Further values for combinations that they do not contradict, or combinations of their own.");
    let exclude = entries("Combinations that are left out; `task` and `repository` may be named in them too.");
    with(names_to(values), json!({ "properties": { "include": include, "exclude": exclude } }))
}

fn repositories() -> Value {
    let with_base = map_with(
        &["path"],
        [
            ("path", like(text(), "../service"), "The folder, relative to this file."),
            ("base", like(text(), "origin/main"), "The commit that work begins from. Default: its head."),
        ],
    );
    json!({ "type": "array", "minItems": 1, "items": any_of([like(text(), "../library"), with_base]) })
}

fn defaults() -> Value {
    map([
        ("model", text_or_texts("anthropic/claude-sonnet-4-5"), "The model, and those that stand in for it."),
        ("lane", text_or_texts("verify"), "The lane that is the gate, or a list of lanes."),
        ("max_retries", int(0..=100), "Further attempts after the first one when the gate says no."),
        ("on_tamper", one_of(&OnTamper::WORDS), "What happens when a protected path was changed."),
        ("tier", one_of(&Tier::WORDS), "Which tools there are."),
        ("commit", one_of(&Commit::WORDS), "What becomes a commit."),
        ("isolation", one_of(&Isolation::WORDS), "Where the agent works. Default: `worktree`."),
        ("budget", budget_schema(), "What each run may spend."),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::plan::parse;
    use crate::yaml::schema_law::{holds, keys, known};

    #[test]
    fn the_schema_of_a_batch_has_the_keys_of_its_reader_and_takes_what_that_takes() {
        let read = |text: &str| parse(text, "batch.yaml").map(drop).map_err(|fault| fault.to_string());
        let schema = schema();
        assert_eq!(keys(&schema), known("@", read));
        let within = |path: &str| schema.pointer(path).unwrap();
        assert_eq!(keys(within("/properties/defaults")), known("tasks: a\ndefaults: { @ }", read));
        let repository = within("/properties/repositories/items/anyOf/1");
        assert_eq!(keys(repository), known("tasks: a\nrepositories: [{ path: x, @ }]", read));
        holds(&schema, read);
    }
}
