//! The front matter of a task as a JSON Schema, for editors. Words and ranges come from the parser,
//! and a test compares the keys with the parser's.

use super::{Baseline, CANDIDATES, Commit, Expect, Isolation, OnTamper, STUCK_AFTER, Tier};
use crate::yaml::schema::{any_of, any_text, document, dollars, duration, flag, int, like, map, names_to, one_of};
use crate::yaml::schema::{some_texts, text, text_or_texts, texts, with, word_of};
use serde_json::{Value, json};

/// Returns the schema of a task's front matter.
pub(crate) fn schema() -> Value {
    let what = "The front matter of a task, between the `---` lines. The text below it is the prompt.";
    let root = map(gate().into_iter().chain(paths()).chain(means()));
    document("task", "A fledge task", what, with(root, json!({ "type": ["object", "null"] })))
}

fn gate() -> Vec<crate::yaml::schema::KeyRow> {
    let lane = any_of([json!({ "const": false }), text_or_texts("verify")]);
    vec![
        (
            "title",
            text(),
            "A one-line title for people and for the commit. Default: the first heading, else the file name.",
        ),
        ("lane", lane, "The lanes that judge the work, in this order; `false` skips verification. Default: `verify`."),
        ("max_retries", int(0..=100), "Further attempts after the gate failed. Default: 3."),
        ("stuck_after", int(STUCK_AFTER), "Ends the run after this many equal gate failures in a row. Default: off."),
        (
            "on_tamper",
            one_of(&OnTamper::WORDS),
            "What fledge does when the work changed a protected path: restore the path, or fail the run. Default: `restore`.",
        ),
        (
            "expect",
            one_of(&Expect::WORDS),
            "The verdict that the gate must give on the base before the first model call.",
        ),
        ("baseline", one_of(&Baseline::WORDS), "When the gate judges the base. Default: `auto`."),
        ("commit", one_of(&Commit::WORDS), "What fledge commits. Default: `none`; in a worktree, `on-success`."),
    ]
}

fn paths() -> Vec<crate::yaml::schema::KeyRow> {
    let specs = any_of([word_of(["auto", "all", "none"]), texts("dates")]);
    vec![
        (
            "files",
            some_texts("src/**"),
            "Globs of the only paths that file tools may change. Default: all unprotected paths.",
        ),
        ("protect", texts("fixtures/**"), "Globs of more protected paths."),
        ("allow_edit", texts("tests/dates.rs"), "Globs of protected paths that this task may change."),
        (
            "hidden",
            text_or_texts("tests/acceptance/**"),
            "Files of the base that the agent does not see and the gate uses: globs, or `auto 25%` of the test files.",
        ),
        ("context", texts("docs/dates.md"), "Files whose text goes into the first message, up to 64 KiB each."),
        (
            "output_schema",
            like(text(), "report.schema.json"),
            "The file of a JSON Schema that the final answer must match.",
        ),
        (
            "specs",
            specs,
            "The specs that go into the prompt: `auto`, `all`, `none`, or names of modules. Default: `auto`.",
        ),
    ]
}

fn means() -> Vec<crate::yaml::schema::KeyRow> {
    let tools = map([
        ("allow", texts("files-*"), "Globs of the available tools. Default: all tools of the tier."),
        ("deny", texts("shell-exec"), "Globs of tools that the task may not use."),
    ]);
    vec![
        (
            "model",
            text_or_texts("anthropic/claude-sonnet-4-5"),
            "`provider/model` or a configured name. The next model of a list replaces a model that fails for good.",
        ),
        (
            "tier",
            one_of(&Tier::WORDS),
            "The set of tools: `read` reads, `tool` also changes files, `code` also runs commands. Default: `code`.",
        ),
        ("tools", tools, "Globs that select tools of the tier."),
        ("approve", approve(), "Calls that a person must approve. Without a person, fledge denies them."),
        ("mcp", texts("docs"), "Configured MCP servers whose tools the task may use."),
        ("budget", budget(), "What the run may spend."),
        (
            "candidates",
            any_of([int(CANDIDATES), some_texts("claude")]),
            "Several runs of the task race: this many, or one for each of these models. The first verified run wins.",
        ),
        ("params", params(), "Parameters of the text; `{{ name }}` inserts a value."),
        (
            "isolation",
            one_of(&Isolation::WORDS),
            "Where the agent works: in the checkout, or in a git worktree with its own branch. Default: `in-place`.",
        ),
        (
            "base",
            like(text(), "origin/main"),
            "The commit from which fledge makes the worktree. Default: the newest commit of the checkout.",
        ),
        ("schedule", any_of([like(text(), "0 3 * * *"), schedule()]), "When `fledge serve` starts the task."),
        ("needs", texts("bump-deps"), "Names of tasks of the same batch that must be verified first."),
    ]
}

fn schedule() -> Value {
    let monitor = map([
        ("margin", duration(), "How late a run may start before its monitor reports a missed run. Default: `5m`."),
        ("max_runtime", duration(), "How long a run may take before its monitor reports it. Default: no limit."),
    ]);
    map([
        (
            "cron",
            like(text(), "0 3 * * *"),
            "Five fields (minute, hour, day, month, weekday), or a shorthand such as `@daily`.",
        ),
        ("every", duration(), "The interval between two starts."),
        ("zone", like(text(), "Europe/Berlin"), "The time zone of `cron`. Default: `UTC`."),
        (
            "jitter",
            duration(),
            "Delays each start by a random time up to this, so that not all tasks start at once. Default: no delay.",
        ),
        (
            "monitor",
            any_of([json!({ "const": false }), monitor]),
            "The limits of the task's monitor; `false` for no monitor.",
        ),
    ])
}

fn params() -> Value {
    names_to(map([
        ("required", flag(), "Whether a value must be given. Default: `true` without a `default`."),
        ("default", any_text(), "The value if none is given."),
        ("choices", texts("minimal"), "The only allowed values."),
        ("description", text(), "An explanation for people."),
    ]))
}

/// Returns the schema of `approve`, in tasks and in the configuration.
pub(crate) fn approve() -> Value {
    map([("ask", texts("shell-exec:git push*"), "Globs of tools, or of commands of a tool: `shell-exec:git push*`.")])
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
        assert_eq!(keys(&schema), crate::task::TASK_KEYS);
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
