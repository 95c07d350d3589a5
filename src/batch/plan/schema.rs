//! JSON Schema of a batch file, for editors. Words and ranges come from the parser; a test compares
//! the keys with it.

use super::{MOST_AT_ONCE, MOST_RETRIES};
use crate::task::{Commit, Isolation, OnTamper, Tier, budget_schema};
use crate::yaml::schema::{
    KeyRow, any_of, document, dollars, duration, flag, int, like, map, map_with, names_to, one_of,
};
use crate::yaml::schema::{text, text_or_texts, with};
use serde_json::{Value, json};

/// Returns the schema of a batch file.
pub(crate) fn schema() -> Value {
    let tasks = "Task files, folders and globs, relative to this file. A folder means its `*.md` without `README.md`.";
    let bounds = [
        ("jobs", int(1..=MOST_AT_ONCE), "Parallel runs. Default: one for each processor."),
        ("fail_fast", flag(), "Stop the batch at the first task that is not verified. Default: `false`."),
        ("retries", int(0..=MOST_RETRIES), "Extra runs of a task whose run ended in an error. Default: 0."),
        ("retry_delay", duration(), "Delay before each extra run. Default: `10s`."),
        ("max_usd", dollars(), "Cost limit of all runs together, in US dollars. Default: no limit."),
    ];
    let rows: [KeyRow; 4] = [
        ("tasks", text_or_texts("tasks/*.md"), tasks),
        ("matrix", matrix(), "Values of task parameters. Each task runs with every combination."),
        ("repositories", repositories(), "Folders in which each task runs. Default: the folder of the command."),
        ("defaults", defaults(), "Defaults for tasks that do not set these keys."),
    ];
    let what = "Many tasks, with their parameter values and repositories: `fledge run batch.yaml`.";
    document("batch", "A fledge batch", what, map_with(&["tasks"], rows.into_iter().chain(bounds)))
}

fn matrix() -> Value {
    let value = json!({ "type": ["string", "number", "boolean"] });
    let values = like(json!({ "type": "array", "minItems": 1, "items": value.clone() }), json!(["1", "2"]));
    let entry = with(names_to(value), json!({ "minProperties": 1 }));
    let entries = |what: &str| json!({ "type": "array", "items": entry.clone(), "description": what });
    let include = entries("Extra values for the combinations that do not contradict them, or additional combinations.");
    let exclude = entries("Combinations to leave out. Entries may also name `task` and `repository`.");
    with(names_to(values), json!({ "properties": { "include": include, "exclude": exclude } }))
}

fn repositories() -> Value {
    let with_base = map_with(
        &["path"],
        [
            ("path", like(text(), "../service"), "The folder, relative to this file."),
            ("base", like(text(), "origin/main"), "The commit where the work begins. Default: the repository's head."),
        ],
    );
    json!({ "type": "array", "minItems": 1, "items": any_of([like(text(), "../library"), with_base]) })
}

fn defaults() -> Value {
    map([
        ("model", text_or_texts("anthropic/claude-sonnet-4-5"), "The model, or a list: the model and its fallbacks."),
        ("lane", text_or_texts("verify"), "The lane that is the gate, or a list of lanes."),
        ("max_retries", int(0..=100), "Extra attempts after the first if the gate fails."),
        ("on_tamper", one_of(&OnTamper::WORDS), "What happens when a protected path was changed."),
        ("tier", one_of(&Tier::WORDS), "The set of tools for the agent."),
        ("commit", one_of(&Commit::WORDS), "What to commit."),
        ("isolation", one_of(&Isolation::WORDS), "Where the agent works. Default: `worktree`."),
        ("budget", budget_schema(), "The budget of each run."),
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
