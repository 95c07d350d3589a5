//! The front matter of a task as a JSON Schema, for editors. Words and ranges come from the parser,
//! and a test compares the keys with the parser's.

use super::{Baseline, CANDIDATES, Commit, Expect, Isolation, OnTamper, STUCK_AFTER, Tier};
use crate::yaml::schema::{any_of, any_text, document, dollars, duration, flag, int, like, map, names_to, one_of};
use crate::yaml::schema::{some_texts, text, text_or_texts, texts, with, word_of};
use serde_json::{Value, json};

/// Returns the schema of a task's front matter.
pub(crate) fn schema() -> Value {
    let what =
        "What stands between the `---` lines at the top of a task; the text below is what the agent is asked to do.";
    let root = map(gate().into_iter().chain(paths()).chain(means()));
    document("task", "A fledge task", what, with(root, json!({ "type": ["object", "null"] })))
}

fn gate() -> Vec<crate::yaml::schema::KeyRow> {
    let lane = any_of([json!({ "const": false }), text_or_texts("verify")]);
    vec![
        ("title", text(), "What the task is called; else its first heading, or the file's name."),
        ("lane", lane, "The lane that is the gate, or a list of lanes; `false` skips verification. Default: `verify`."),
        ("max_retries", int(0..=100), "Further attempts after the first one when the gate says no. Default: 3."),
        ("stuck_after", int(STUCK_AFTER), "So many equal failures in a row end the run early. Default: off."),
        (
            "on_tamper",
            one_of(&OnTamper::WORDS),
            "What happens when a protected path was changed: it is put back, or the run fails. Default: `restore`.",
        ),
        ("expect", one_of(&Expect::WORDS), "What the gate must say about the base, before the agent begins."),
        (
            "baseline",
            one_of(&Baseline::WORDS),
            "Whether the gate judges the base before the first model call. Default: `auto`.",
        ),
        ("commit", one_of(&Commit::WORDS), "What becomes a commit. Default: `none`."),
    ]
}

fn paths() -> Vec<crate::yaml::schema::KeyRow> {
    let specs = any_of([word_of(["auto", "all", "none"]), texts("dates")]);
    vec![
        (
            "files",
            some_texts("src/**"),
            "Globs of the only paths that the agent may change. Default: all but protected ones.",
        ),
        ("protect", texts("fixtures/**"), "Globs of more paths that the agent may not change."),
        (
            "allow_edit",
            texts("tests/dates.rs"),
            "Protected paths that this task may change, as globs; always reported.",
        ),
        ("context", texts("docs/dates.md"), "Files that are put into the first message."),
        (
            "output_schema",
            like(text(), "report.schema.json"),
            "A file with the JSON Schema that the final answer must fit.",
        ),
        (
            "specs",
            specs,
            "Which of the project's specs go into the context: `auto`, `all`, `none`, or modules by name. Default: `auto`.",
        ),
    ]
}

fn means() -> Vec<crate::yaml::schema::KeyRow> {
    let tools = map([
        ("allow", texts("files-*"), "Globs of the tools that there are. Default: all of the tier's."),
        ("deny", texts("shell-exec"), "Globs of tools that are taken away."),
    ]);
    vec![
        (
            "model",
            text_or_texts("anthropic/claude-sonnet-4-5"),
            "`provider/model`, or a name from the configuration; of a list, each stands in for the one before it.",
        ),
        (
            "tier",
            one_of(&Tier::WORDS),
            "Which tools there are: to read, to change files, to run commands. Default: `code`.",
        ),
        ("tools", tools, "Which tools of the tier there are."),
        ("approve", approve(), "Calls that a person must agree to; where nobody is there, they are denied."),
        ("mcp", texts("docs"), "MCP servers whose tools there are, by their names in the configuration."),
        ("budget", budget(), "What the run may spend."),
        (
            "candidates",
            any_of([int(CANDIDATES), some_texts("claude")]),
            "So many runs of the task race, or one with each of these models; the first one that is verified counts.",
        ),
        ("params", params(), "Parameters of the text, where `{{ name }}` stands for the value."),
        (
            "isolation",
            one_of(&Isolation::WORDS),
            "Where the agent works: in the workspace itself, or in a worktree of its own, on a branch of its own.",
        ),
        (
            "base",
            like(text(), "origin/main"),
            "The commit that the worktree is made from. Default: the newest one of the checkout.",
        ),
        (
            "schedule",
            any_of([like(text(), "0 3 * * *"), schedule()]),
            "When the task comes again by itself, as long as `fledge serve` serves its project.",
        ),
        ("needs", texts("bump-deps"), "Other tasks of the same batch that must be verified first, by their names."),
    ]
}

fn schedule() -> Value {
    let monitor = map([
        ("margin", duration(), "How late it may begin. Default: `5m`."),
        ("max_runtime", duration(), "How long it may take. Default: as long as it likes."),
    ]);
    map([
        (
            "cron",
            like(text(), "0 3 * * *"),
            "Five fields (minute, hour, day, month, weekday), or `@daily` and its like.",
        ),
        ("every", duration(), "An interval."),
        ("zone", like(text(), "Europe/Berlin"), "The time zone of `cron`. Default: `UTC`."),
        ("jitter", duration(), "How long it may be put off, so that not all begin at once. Default: not at all."),
        ("monitor", any_of([json!({ "const": false }), monitor]), "What its monitor expects; `false`: it has none."),
    ])
}

fn params() -> Value {
    names_to(map([
        ("required", flag(), "Whether a value must be given. Default: where there is no `default`."),
        ("default", any_text(), "The value when none is given."),
        ("choices", texts("minimal"), "The only values that there are."),
        ("description", text(), "What it is for."),
    ]))
}

/// Returns the schema of `approve`, in tasks and in the configuration.
pub(crate) fn approve() -> Value {
    map([("ask", texts("shell-exec:git push*"), "Tools, as globs, or commands: `shell-exec:git push*`.")])
}

/// Returns the schema of `budget`, in tasks and in the configuration.
pub(crate) fn budget() -> Value {
    map([
        ("turns", int(1..=i64::MAX), "Model calls, over all attempts. Default: 100."),
        ("tokens", int(1..=i64::MAX), "Input and output tokens together. Default: no limit."),
        ("usd", dollars(), "US dollars. Default: no limit."),
        ("time", duration(), "Time from start to end. Default: `60m`."),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::{ParamValues, parse};
    use crate::yaml::schema_law::{holds, keys, known};

    fn read(front: &str) -> Result<(), String> {
        let given = [ParamValues::new(), ParamValues::from([("NAME_0".into(), "minimal".into())])];
        let read = |values| parse(&format!("---\n{front}\n---\ntext"), "t.md", values).map(drop);
        read(&given[1]).or_else(|_| read(&given[0])).map_err(|fault| fault.to_string())
    }

    #[test]
    fn the_schema_of_a_task_has_the_keys_of_its_reader_and_takes_what_that_takes() {
        let schema = schema();
        assert_eq!(keys(&schema), known("@", read));
        for (path, around) in [
            ("tools", "tools: { @ }"),
            ("approve", "approve: { @ }"),
            ("budget", "budget: { @ }"),
            ("params/additionalProperties", "params: { x: { @ } }"),
        ] {
            let map = schema.pointer(&format!("/properties/{path}")).unwrap();
            assert_eq!(keys(map), known(around, read), "{path}");
        }
        holds(&schema, read);
    }
}
