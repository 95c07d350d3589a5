//! The JSON Schema of configuration files, for editors: everything that the operator may set. Its
//! words and ranges are those of the parser, and a test compares its keys with the parser's.
//! [`super::trust`] decides what a project's file may set.

use super::file::{COMPACT_AT, LOOP_THRESHOLD, MAX_TRIES, RECALLED};
use super::limits::PROCESSES;
use super::model::ProviderKind;
use super::model_keys::{AT_ONCE, CONTEXT_TOKENS, EFFORTS, OUTPUT_TOKENS, PER_MINUTE, TOOLS_MODES};
use crate::lane::tasks_schema;
use crate::process::sandbox::SandboxChoice;
use crate::task::{Baseline, Commit, Isolation, OnTamper, STUCK_AFTER, Tier, approve_schema, budget_schema};
use crate::yaml::schema::{KeyRow, any_of, any_text, document, dollars, duration, flag, int, like, map, map_of_text};
use crate::yaml::schema::{map_with, names_to, one_of, text, text_or_texts, texts, with, word_of};
use serde_json::{Value, json};

/// Returns the schema of `fledge.yaml`, `fledge.local.yaml` and `~/.config/fledge/config.yaml`.
pub(crate) fn schema() -> Value {
    let what = "The configuration of fledge: `fledge.yaml` in a project, `fledge.local.yaml` beside it, and `~/.config/fledge/config.yaml` for all projects.";
    let root = map(means().into_iter().chain(defaults()).chain(safety()));
    document("config", "A fledge configuration", what, with(root, json!({ "type": ["object", "null"] })))
}

fn means() -> Vec<KeyRow> {
    let memory = map([
        ("ephemeral_ttl", duration(), "How long fledge keeps the notes that runs leave in memory."),
        (
            "recall_tokens",
            int(RECALLED),
            "The maximum number of tokens of memories in the first message, at four bytes per token. Default: 500.",
        ),
    ]);
    vec![
        (
            "default_model",
            like(text(), "claude"),
            "The model of tasks that do not name one: a name under `models`, or `provider/model`.",
        ),
        (
            "models",
            with(names_to(model()), json!({ "propertyNames": { "pattern": "^[A-Za-z0-9._-]+$" } })),
            "Models, by the names that tasks use.",
        ),
        (
            "mcp",
            with(names_to(server()), json!({ "propertyNames": { "pattern": "^[A-Za-z0-9_-]{1,32}$" } })),
            "MCP servers, by the names that tasks use.",
        ),
        ("hooks", hooks(), "Commands that fledge runs after turns of the agent."),
        ("tasks", tasks_schema(), "Commands that steps of lanes can name."),
        ("memory", memory, "Settings of the memory of earlier runs."),
        ("sync", sync(), "A fledge server to which this machine sends its runs. Only in your own configuration."),
    ]
}

/// Returns the defaults for tasks that do not set a value.
fn defaults() -> Vec<KeyRow> {
    let share =
        like(json!({ "type": "number", "minimum": COMPACT_AT[0] / 100.0, "maximum": COMPACT_AT[1] / 100.0 }), 0.7);
    vec![
        ("lane", text_or_texts("verify"), "The lanes that judge the work, in this order. Default: `verify`."),
        ("max_retries", int(0..=100), "Further attempts after the gate failed. Default: 3."),
        ("stuck_after", int(STUCK_AFTER), "Ends a run after this many equal gate failures in a row. Default: off."),
        (
            "tier",
            one_of(&Tier::WORDS),
            "The set of tools: `read` reads, `tool` also changes files, `code` also runs commands. Default: `code`.",
        ),
        ("commit", one_of(&Commit::WORDS), "What fledge commits. Default: `none`; in a worktree, `on-success`."),
        (
            "isolation",
            one_of(&Isolation::WORDS),
            "Where agents work: in the checkout, or in a git worktree. Default: `in-place`; in a batch, `worktree`.",
        ),
        ("baseline", one_of(&Baseline::WORDS), "When the gate judges the base. Default: `auto`."),
        ("budget", budget_schema(), "The limits on what a run may spend."),
        (
            "parallel_reads",
            flag(),
            "Whether fledge runs consecutive calls that only read in parallel. Default: `false`.",
        ),
        (
            "loop_threshold",
            int(LOOP_THRESHOLD),
            "The number of similar calls that count as a loop, which ends the run. Default: 8.",
        ),
        (
            "compact_at",
            share,
            "The share of the model's context window at which fledge shortens a conversation. Default: 0.7.",
        ),
        ("confirm_within", duration(), "How long fledge waits for a person to approve a call."),
        ("max_tries", int(MAX_TRIES), "The maximum number of tries of one model call. Default: 4."),
        ("max_wait", duration(), "The longest pause that a provider may request. Default: `2m`."),
    ]
}

fn safety() -> Vec<KeyRow> {
    vec![
        ("protect", texts("CODEOWNERS"), "Globs of more protected paths."),
        (
            "hidden",
            text_or_texts("tests/acceptance/**"),
            "Files of the base that agents do not see and gates use: globs, or `auto 25%` of the test files.",
        ),
        (
            "on_tamper",
            one_of(&OnTamper::WORDS),
            "What fledge does when the work changed a protected path: restore the path, or fail the run. Default: `restore`.",
        ),
        ("approve", approve_schema(), "Calls that a person must approve. Without a person, fledge denies them."),
        (
            "sandbox",
            word_of(SandboxChoice::NAMES),
            "The sandbox of agents and gates: the best one here, only bubblewrap, or none. Default: `auto`.",
        ),
        ("network", word_of(["deny", "allow"]), "Whether agents have network access. Default: `deny`."),
        (
            "limits",
            limits(),
            "What one tool call or one gate step may use. A project's own files can only lower these limits.",
        ),
        (
            "trust",
            texts("/home/me/project"),
            "Absolute paths of projects whose own files may set every key. Only in your own configuration.",
        ),
    ]
}

fn limits() -> Value {
    map([
        ("processes", int(PROCESSES), "The maximum number of processes at once. Default: 4096."),
        (
            "memory",
            like(text(), "4GiB"),
            "The maximum memory of all its processes together. Default: three quarters of the machine's memory.",
        ),
        ("file_size", like(text(), "1GiB"), "The largest file that a process may write. Default: 16GiB."),
    ])
}

fn sync() -> Value {
    map_with(
        &["url"],
        [
            ("url", url(), "The address of the server."),
            ("token_env", variable("MY_TOKEN"), "The environment variable with the server's token."),
            ("token_file", path("~/.keys/fledge"), "The file with the server's token."),
            ("token_command", text_or_texts("pass show fledge"), "A command that prints the server's token."),
            ("machine", like(text(), "ci-7"), "The name of this machine on the server. Default: its host name."),
            (
                "ca_file",
                path("~/ca.pem"),
                "Certificates (PEM) that are trusted for the server, in addition to the system's.",
            ),
        ],
    )
}

fn model() -> Value {
    let timeouts = map([
        ("first_byte", duration(), "The time until the first byte of the answer."),
        ("idle", duration(), "The time between two parts of the answer."),
        ("turn", duration(), "The time for the whole answer."),
    ]);
    let price = map_with(
        &["input", "output"],
        [
            ("input", dollars(), "Input tokens."),
            ("output", dollars(), "Output tokens."),
            ("cached_input", dollars(), "Input tokens from the cache."),
            ("cache_write", dollars(), "Input tokens that are written to the cache."),
        ],
    );
    map_with(
        &["provider", "model"],
        [
            ("provider", one_of(&ProviderKind::WORDS), "The API that the model speaks."),
            ("model", like(text(), "claude-sonnet-4-5"), "The provider's name of the model."),
            ("base_url", url(), "The address of the API, if not the provider's own."),
            ("api_key_env", variable("MY_API_KEY"), "The environment variable with the API key."),
            ("api_key_file", path("~/.keys/model"), "The file with the API key."),
            ("api_key_command", text_or_texts("pass show model"), "A command that prints the API key."),
            ("api_key_ttl", duration(), "How long a key from `api_key_command` is valid."),
            ("tier", one_of(&Tier::WORDS), "The tier of tasks that use this model if they name none."),
            ("price", price, "US dollars per million tokens."),
            ("max_context_tokens", int(CONTEXT_TOKENS), "The maximum number of tokens of a conversation."),
            ("max_output_tokens", int(OUTPUT_TOKENS), "The maximum number of tokens of one answer."),
            (
                "max_requests_per_minute",
                int(PER_MINUTE),
                "The maximum number of requests per minute, over all runs of this process.",
            ),
            (
                "max_concurrent",
                int(AT_ONCE),
                "The maximum number of concurrent requests, over all runs of this process.",
            ),
            ("headers", headers(), "HTTP headers that are sent with each request."),
            ("ca_file", path("~/.keys/ca.pem"), "Certificates (PEM) that are trusted for the model's server."),
            ("proxy", like(text(), "http://proxy.example:3128"), "The proxy for requests to the model."),
            ("reasoning", one_of(&EFFORTS), "How much the model reasons before it answers."),
            (
                "tools_mode",
                one_of(&TOOLS_MODES),
                "How the model calls tools: by the provider's API, or in its text. Default: `native`.",
            ),
            ("timeouts", timeouts, "Time limits of a turn."),
            ("max_response", like(text(), "16MB"), "The maximum number of bytes of one answer, from `4KB` to `1GB`."),
        ],
    )
}

fn headers() -> Value {
    let at = map([
        ("env", variable("MY_TOKEN"), "The environment variable with the value."),
        ("file", path("~/.keys/token"), "The file with the value."),
        ("command", text_or_texts("pass show token"), "A command that prints the value."),
        ("ttl", duration(), "How long a value from `command` is valid."),
    ]);
    names_to(any_of([any_text(), at]))
}

fn server() -> Value {
    let rows = [
        ("command", text_or_texts("docs-server"), "The program that fledge starts, with its arguments."),
        ("url", url(), "The address of a running server."),
        ("env", map_of_text(), "The environment of the program."),
        ("headers", map_of_text(), "HTTP headers that are sent with each request."),
        ("sandbox", word_of(["auto", "off"]), "Whether the server runs in the agent's sandbox. Default: `auto`."),
        (
            "network",
            word_of(["deny", "allow"]),
            "Whether the server has network access in the sandbox. Default: `deny`.",
        ),
        ("tier", one_of(&Tier::WORDS), "The lowest tier of tasks that may use the server's tools. Default: `tool`."),
        ("timeout", duration(), "How long one call may take."),
        ("required", flag(), "Whether a run fails if the server does not start. Default: `false`."),
    ];
    with(map(rows), json!({ "oneOf": [{ "required": ["command"] }, { "required": ["url"] }] }))
}

fn hooks() -> Value {
    let rows = [
        (
            "run",
            like(text(), "cargo fmt"),
            "The shell command. It gets the turn as JSON on standard input and in FLEDGE_ variables.",
        ),
        ("name", text(), "The name of the hook. Default: its command."),
        ("timeout", duration(), "The time limit of the hook."),
        (
            "tell_model",
            flag(),
            "Whether the model sees the hook's failures, their output, and the files that the hook changed. Default: `false`.",
        ),
    ];
    let each = any_of([like(text(), "cargo fmt"), map_with(&["run"], rows)]);
    let after = json!({ "type": "array", "items": each });
    map([(
        "post_tools",
        after,
        "Commands that run after each turn in which files may have changed. Each gets a JSON object about the turn.",
    )])
}

fn url() -> Value {
    like(json!({ "type": "string", "pattern": "^https?://" }), "https://llm.example.com/v1")
}

fn path(example: &str) -> Value {
    like(json!({ "type": "string", "pattern": "^(/|~/)" }), example)
}

fn variable(example: &str) -> Value {
    like(json!({ "type": "string", "pattern": "^[A-Z_][A-Z0-9_]*$" }), example)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::file::parse;
    use crate::config::trust::Owner;
    use crate::yaml::schema_law::{holds, keys, known};

    fn read(text: &str) -> Result<(), String> {
        parse(text, "f", Owner::User).map(drop).map_err(|fault| fault.to_string())
    }

    #[test]
    fn the_configuration_schema_has_the_keys_of_the_reader_and_accepts_the_same_values() {
        let schema = schema();
        let of = |path: &str| keys(schema.pointer(&format!("/properties/{path}")).unwrap());
        assert_eq!(keys(&schema), known("@", read));
        let model = |inside: &str| format!("models: {{ m: {{ provider: openai, model: m, {inside} }} }}");
        for (path, around) in [
            ("models/additionalProperties", model("@")),
            ("models/additionalProperties/properties/timeouts", model("timeouts: { @ }")),
            ("models/additionalProperties/properties/price", model("price: { input: 1, output: 1, @ }")),
            (
                "models/additionalProperties/properties/headers/additionalProperties/anyOf/1",
                model("headers: { x-a: { env: A, @ } }"),
            ),
            ("mcp/additionalProperties", "mcp: { d: { command: x, @ } }".into()),
            ("hooks", "hooks: { @ }".into()),
            ("hooks/properties/post_tools/items/anyOf/1", "hooks: { post_tools: [{ run: x, @ }] }".into()),
            ("memory", "memory: { @ }".into()),
            ("budget", "budget: { @ }".into()),
            ("approve", "approve: { @ }".into()),
        ] {
            assert_eq!(of(path), known(&around, read), "{path}");
        }
        holds(&schema, |text| {
            read(text)?;
            // Tasks are read with the lanes that refer to them.
            let lanes = crate::lane::tasks_fault(text);
            lanes.map_or(Ok(()), Err)
        });
    }
}
